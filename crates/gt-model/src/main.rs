//! `gt-model`: the scripted model as a program, to try an agent by hand. `docs/real-agents.md` shows how.

use std::process::ExitCode;
use std::{env, fs, io};

use gt_model::{Model, Script};

const HELP: &str = "\
Usage: gt-model [--script FILE] [--port N]

Answers agents on loopback as FILE says, until it is killed; without FILE every agent is told to do its work.
Prints its address on the first line. docs/real-agents.md describes FILE.
";

/// The exit status of a command line that was not understood.
const USAGE_STATUS: u8 = 2;

fn main() -> ExitCode {
    let args: Vec<String> = env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let (script, port) = match read(&args) {
        Ok(order) => order,
        Err(refusal) => {
            eprintln!("error: {refusal}");
            return ExitCode::from(USAGE_STATUS);
        }
    };
    match serve(script, port) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: cannot serve on port {port}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read(args: &[String]) -> Result<(Script, u16), String> {
    let (mut script, mut port) = (Script::work(), 0);
    let mut args = args.iter();
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("`{option}` needs a value"));
        match option.as_str() {
            "--script" => script = read_script(value()?)?,
            "--port" => port = value()?.parse().map_err(|_| "a port is a number up to 65535".to_owned())?,
            other => return Err(format!("`{other}` is none of `--script FILE` and `--port N`")),
        }
    }
    Ok((script, port))
}

fn read_script(file: &str) -> Result<Script, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("cannot read `{file}`: {error}"))?;
    Script::read(&text).map_err(|error| format!("`{file}`: {error}"))
}

/// Serves until it is killed.
fn serve(script: Script, port: u16) -> io::Result<()> {
    let model = Model::serve_at(script, port)?;
    println!("{}", model.url());
    loop {
        std::thread::park();
    }
}

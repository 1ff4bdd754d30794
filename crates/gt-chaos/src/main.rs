//! `chaos`, the program behind `cargo xtask chaos`.

use std::ffi::OsString;
use std::process::ExitCode;

use gt_chaos::Options;

const USAGE_STATUS: u8 = 2;
const INTERRUPTED_STATUS: u8 = 130;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let options = match Options::parse(&arguments) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(USAGE_STATUS);
        }
    };
    match gt_chaos::run(&options) {
        Ok(report) => {
            print!("{report}");
            if report.was_interrupted {
                ExitCode::from(INTERRUPTED_STATUS)
            } else if report.is_clean() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

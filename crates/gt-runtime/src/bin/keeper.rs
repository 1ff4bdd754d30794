//! The keeper as a program of its own, for the tests of this crate, which cannot count on `gt` being built.
//!
//! `gt` starts its keeper as `gt keeper`; nothing installs this one.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(dir) = arguments.next() else {
        eprintln!("usage: gt-keeper DIRECTORY [MESSENGER…]");
        return ExitCode::from(2);
    };
    match gt_runtime::process::keep(Path::new(&dir), &arguments.collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}: {:?}", std::error::Error::source(&error));
            ExitCode::FAILURE
        }
    }
}

//! Text as a file that lies in memory, so that whoever reads it never waits for us to write it.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};

use rustix::fs::{MemfdFlags, memfd_create};

pub(crate) fn file_of(text: &str) -> io::Result<File> {
    let mut file = File::from(memfd_create("text", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

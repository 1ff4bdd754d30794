//! Text or bytes as a file that lies in memory, so that whoever reads it never waits for us to write it.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};

use rustix::fs::{MemfdFlags, memfd_create};

pub(crate) fn file_of(text: impl AsRef<[u8]>) -> io::Result<File> {
    let mut file = File::from(memfd_create("text", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_ref())?;
    file.rewind()?;
    Ok(file)
}

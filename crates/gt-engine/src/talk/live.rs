//! What a run that answers has said so far, as its log grows.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use gt_core::agent::{Vendor, speech};

use crate::agents;
use crate::config::Config;
use crate::town::Town;

/// No more than this is read at a time.
const READ_BYTES_MAX: u64 = 256 * 1024;

/// An answer that is still being given.
#[derive(Debug)]
pub struct LiveReply {
    log: PathBuf,
    speaks: Option<Vendor>,
    offset: u64,
    /// What was read of a line, or of a character, that is not complete yet.
    rest: Vec<u8>,
}

impl LiveReply {
    pub fn of(town: &Town, config: &Config, run: &str, agent: &str) -> LiveReply {
        let speaks = agents::speaks(config, agent);
        LiveReply { log: town.log_path(run), speaks, offset: 0, rest: Vec::new() }
    }

    /// What it has said since the last time.
    pub fn more(&mut self) -> io::Result<String> {
        let mut file = match File::open(&self.log) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(self.offset))?;
        let n = file.take(READ_BYTES_MAX).read_to_end(&mut self.rest)?;
        self.offset += n as u64;
        Ok(match self.speaks {
            Some(vendor) => self.take_lines(vendor),
            None => self.take_text(),
        })
    }

    fn take_lines(&mut self, vendor: Vendor) -> String {
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return String::new() };
        let lines: Vec<u8> = self.rest.drain(..=end).collect();
        String::from_utf8_lossy(&lines).lines().filter_map(|line| speech(vendor, line)).collect()
    }

    /// A character may have been read in part; what is none is replaced.
    fn take_text(&mut self) -> String {
        let complete = match std::str::from_utf8(&self.rest) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.rest.len(),
        };
        let text: Vec<u8> = self.rest.drain(..complete).collect();
        String::from_utf8_lossy(&text).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_plain_answer_is_told_as_it_grows_and_never_in_pieces_of_a_character() {
        let dir = tempfile::tempdir().expect("a directory");
        let town = Town::init(dir.path(), &gt_store::Stamp::new(jiff::Timestamp::UNIX_EPOCH, "me")).expect("a town").0;
        let mut live = LiveReply::of(&town, &Config::default(), "r", "nobody");
        assert_eq!(live.more().expect("nothing is no error"), "");
        std::fs::create_dir_all(town.logs_dir()).expect("it can be made");
        let mut log = File::create(town.log_path("r")).expect("it can be made");
        let mut say = |bytes: &[u8]| {
            log.write_all(bytes).expect("it can be written");
            live.more().expect("it can be read")
        };
        assert_eq!(say(b"Gr\xc3"), "Gr");
        assert_eq!(say(b"\xbc\xc3\x9f"), "\u{fc}\u{df}");
        assert_eq!(say(b"e\n\xff!"), "e\n\u{fffd}!", "what is no text does not hold up the rest");
    }
}

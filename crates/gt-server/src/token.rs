//! The token of a town: made once, kept in a file that only its owner reads, asked for with every request. // SPEC U3

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use gt_engine::{Town, TownError};
use subtle::ConstantTimeEq as _;

/// 256 bits.
const TOKEN_BYTES: usize = 32;
/// Shortest token that somebody may have written there instead.
const OWN_CHARS_MIN: usize = 16;

/// What callers must know.
pub(crate) struct Token(String);

/// The file that holds the token of a town.
pub fn token_path(town: &Town) -> PathBuf {
    town.state_dir().join("token")
}

impl Token {
    /// The token of a town, which is made if it is not there.
    pub(crate) fn of(town: &Town) -> Result<Token, TownError> {
        let path = token_path(town);
        let failed = |source| TownError::Io { doing: "keep the token in", path: path.clone(), source };
        match read(&path) {
            Ok(Some(token)) => Ok(token),
            Ok(None) => make(&path).map_err(failed),
            Err(error) => Err(failed(error)),
        }
    }

    /// Whether this is the token; how long that takes tells nothing about it.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }
}

/// A file that is empty is one whose maker was killed.
fn read(path: &Path) -> io::Result<Option<Token>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let word = text.trim();
    if word.is_empty() {
        return Ok(None);
    }
    if word.len() < OWN_CHARS_MIN || !word.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(io::Error::other("what it holds is too short or no single word; remove it, and one is made"));
    }
    if fs::metadata(path)?.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
    }
    Ok(Some(Token(word.to_owned())))
}

fn make(path: &Path) -> io::Result<Token> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let word = bytes.iter().fold(String::new(), |word, byte| word + &format!("{byte:02x}"));
    // Under another name first, so that nobody ever reads half of it.
    let draft = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(format!("{word}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    Ok(Token(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_only_its_owner_reads_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("token");
        let made = make(&path).expect("it can be made");
        assert_eq!(made.0.len(), 64);
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("it is ours");
        let read = read(&path).expect("it can be read").expect("it is there");
        assert!(read.is(made.0.as_bytes()));
        assert!(!read.is(&made.0.as_bytes()[1..]) && !read.is(b""));
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600, "it was opened up");
    }

    #[test]
    fn what_is_no_token_is_refused_and_an_empty_file_is_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("token");
        assert!(read(&path).expect("none is no error").is_none());
        fs::write(&path, " \n").expect("it can be written");
        assert!(read(&path).expect("empty is none").is_none());
        for bad in ["secret", "two words, long enough", "fünfundzwanzig-lange-zeichen"] {
            fs::write(&path, bad).expect("it can be written");
            assert!(read(&path).is_err(), "{bad}");
        }
    }
}

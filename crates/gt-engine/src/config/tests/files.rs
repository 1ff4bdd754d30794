//! The file on disk: missing, linked, protected, and written by two at once.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

fn town() -> (tempfile::TempDir, ConfigFile) {
    let dir = tempfile::tempdir().unwrap();
    let file = ConfigFile::new(dir.path().join("town.toml"));
    (dir, file)
}

#[test]
fn a_file_that_is_missing_or_empty_is_broken_and_left_alone() {
    let (_dir, file) = town();
    assert!(matches!(file.load(), Err(ConfigError::Missing { .. })));
    assert!(matches!(file.set("lanes.main", "3"), Err(ConfigError::Missing { .. })));
    assert!(matches!(file.unset("lanes.main"), Err(ConfigError::Missing { .. })));
    assert!(!file.path().exists());
    for blank in ["", "\n", " \r\n\t", "\u{feff}", "\u{feff}\n"] {
        fs::write(file.path(), blank).unwrap();
        assert!(matches!(file.load(), Err(ConfigError::Blank { .. })), "{blank:?}");
        assert!(matches!(file.set("lanes.main", "3"), Err(ConfigError::Blank { .. })), "{blank:?}");
        assert!(matches!(file.unset("lanes.main"), Err(ConfigError::Blank { .. })), "{blank:?}");
        assert_eq!(fs::read_to_string(file.path()).unwrap(), blank);
    }
    fs::write(file.path(), template()).unwrap();
    assert_eq!(file.load().unwrap(), Config::default());
}

#[test]
fn a_file_that_loses_its_last_key_is_not_empty() {
    let (_dir, file) = town();
    fs::write(file.path(), "lanes.main = 3\n").unwrap();
    assert!(file.unset("lanes.main").unwrap());
    assert_eq!(file.load().unwrap(), Config::default());
}

#[test]
fn permissions_stay_and_no_other_file_is_left() {
    let (dir, file) = town();
    fs::write(file.path(), "# mine\n").unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o640)).unwrap();
    file.set("lanes.main", "3").unwrap();
    assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_link_is_written_through() {
    let (dir, _) = town();
    fs::create_dir(dir.path().join("real")).unwrap();
    symlink("real/hop.toml", dir.path().join("town.toml")).unwrap();
    symlink("target.toml", dir.path().join("real/hop.toml")).unwrap();
    let file = ConfigFile::new(dir.path().join("town.toml"));
    fs::write(file.path(), "# linked\n").unwrap();
    for lane in ["3", "4"] {
        file.set("lanes.main", lane).unwrap();
        assert!(fs::symlink_metadata(file.path()).unwrap().is_symlink());
        let target = fs::read_to_string(dir.path().join("real/target.toml")).unwrap();
        assert_eq!(value_in(&target, "lanes.main"), Some(Value::Integer(lane.parse().unwrap())));
    }
    symlink("loop.toml", dir.path().join("loop.toml")).unwrap();
    assert!(ConfigFile::new(dir.path().join("loop.toml")).set("lanes.main", "1").is_err());
}

#[test]
fn a_refusal_changes_nothing_and_names_the_file_when_it_is_to_blame() {
    let (_dir, file) = town();
    let broken = "[scheduler\nmax_polecats = 3\n";
    fs::write(file.path(), broken).unwrap();
    let path = file.path().display().to_string();
    assert!(file.load().unwrap_err().to_string().starts_with(&path));
    assert!(file.set("lanes.main", "3").unwrap_err().to_string().starts_with(&path));
    assert!(file.unset("lanes.main").unwrap_err().to_string().starts_with(&path));
    assert_eq!(fs::read_to_string(file.path()).unwrap(), broken);
    fs::write(file.path(), "# fine\n").unwrap();
    let typed = file.set("lanes.main", "none").unwrap_err().to_string();
    assert!(typed.starts_with("`lanes.main` cannot be `none`"), "{typed}");
    assert_eq!(fs::read_to_string(file.path()).unwrap(), "# fine\n");
}

#[test]
fn what_cannot_be_read_or_written_is_named() {
    let (dir, file) = town();
    fs::create_dir(file.path()).unwrap();
    assert!(file.load().unwrap_err().to_string().starts_with("cannot read /"));
    assert!(file.set("lanes.main", "1").unwrap_err().to_string().starts_with("cannot read /"));
    let nowhere = ConfigFile::new(dir.path().join("gone/town.toml"));
    assert!(matches!(nowhere.set("lanes.main", "1"), Err(ConfigError::Missing { .. })));
    let latin1 = ConfigFile::new(dir.path().join("latin1.toml"));
    fs::write(latin1.path(), b"# caf\xe9\n").unwrap();
    assert!(matches!(latin1.load(), Err(ConfigError::Read { .. })));
}

#[test]
fn an_unchanged_value_does_not_touch_the_file() {
    let (_dir, file) = town();
    fs::write(file.path(), "lanes.main = 3 # x\n").unwrap();
    let before = fs::metadata(file.path()).unwrap().modified().unwrap();
    file.set("lanes.main", "3").unwrap();
    assert_eq!(fs::metadata(file.path()).unwrap().modified().unwrap(), before);
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let (_dir, file) = town();
    fs::write(file.path(), "# shared\n").unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let file = &file;
            scope.spawn(move || {
                for lane in 0..10 {
                    file.set(&format!("lanes.w{writer}l{lane}"), "5").unwrap();
                }
            });
        }
    });
    assert_eq!(file.load().unwrap().names("lanes").len(), 40);
}

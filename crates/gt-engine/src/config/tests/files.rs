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
fn a_missing_file_gives_the_defaults_and_starts_as_the_template() {
    let (_dir, file) = town();
    assert_eq!(file.load().unwrap(), Config::default());
    assert!(!file.unset("scheduler.max_polecats").unwrap());
    assert!(!file.path().exists());
    file.set("scheduler.max_polecats", "3").unwrap();
    assert!(fs::read_to_string(file.path()).unwrap().starts_with(&template()));
    assert_eq!(file.load().unwrap().integer("scheduler.max_polecats"), 3);
    assert!(file.unset("scheduler.max_polecats").unwrap());
    assert_eq!(fs::read_to_string(file.path()).unwrap(), template());
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
    // The target is missing at first: it is made where the link points.
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
    assert_eq!(nowhere.load().unwrap(), Config::default());
    assert!(nowhere.set("lanes.main", "1").unwrap_err().to_string().starts_with("cannot write /"));
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

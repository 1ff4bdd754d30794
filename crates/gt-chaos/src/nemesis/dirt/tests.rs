//! Files of a person in a repository of their own: whatever happens to them is found, and all of it is put away.

use std::path::PathBuf;

use super::*;
use crate::town::Shell;

struct Repository {
    dir: PathBuf,
    person: Person,
}

impl Repository {
    /// A repository with `shared.txt` committed.
    fn new() -> Repository {
        let dir = std::env::temp_dir().join(format!("chaos-dirt-{:016x}", fastrand::u64(..)));
        fs::create_dir(&dir).expect("temporary files can be made");
        let identity = "[user]\n\tname = Person\n\temail = person@example.org\n";
        fs::write(dir.join(".gitconfig"), identity).expect("it can be written");
        let person = Person(Shell { dir: dir.clone(), home: dir.clone(), token: "c0ffee".to_owned() });
        let repository = Repository { dir, person };
        repository.git(&["init", "--quiet"]);
        fs::write(repository.person.file("shared.txt"), "old").expect("it can be written");
        repository.git(&["add", "shared.txt"]);
        repository.git(&["commit", "--quiet", "--message=start"]);
        repository
    }

    fn git(&self, words: &[&str]) -> String {
        self.person.git(words).unwrap_or_else(|| panic!("git {words:?} fails"))
    }

    fn edit(&self, is_staged: bool) -> Dirt {
        let dirt = Dirt::edit(self.person.clone(), "shared.txt".to_owned(), b"mine".to_vec(), is_staged);
        dirt.expect("nothing is changed yet")
    }

    fn new_file(&self, path: &str, is_staged: bool) -> Dirt {
        let dirt = Dirt::new(self.person.clone(), path.to_owned(), b"mine".to_vec(), is_staged);
        dirt.expect("nothing is there")
    }

    fn status(&self) -> String {
        self.git(&["status", "--porcelain", "shared.txt", "work"])
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.dir).ok();
    }
}

#[test]
fn files_that_stay_as_they_are_have_no_damage_and_are_put_away() {
    let repository = Repository::new();
    for is_staged in [false, true] {
        let dirts = [repository.edit(is_staged), repository.new_file("work/1", is_staged)];
        assert!(!repository.status().is_empty());
        for mut dirt in dirts {
            assert_eq!(dirt.damage(), None);
            assert!(dirt.is_put_away(), "{dirt:?}");
        }
        assert_eq!(repository.status(), "");
        assert_eq!(fs::read(repository.person.file("shared.txt")).ok(), Some(b"old".to_vec()));
        assert!(!repository.person.file("work/1").exists());
    }
}

#[test]
fn a_file_that_is_overwritten_removed_or_staged_otherwise_is_found() {
    let repository = Repository::new();
    let damage = |dirt: &mut Dirt| dirt.damage().unwrap_or_default();
    let mut dirt = repository.edit(false);
    fs::write(repository.person.file("shared.txt"), "theirs").expect("it can be written");
    assert!(damage(&mut dirt).contains("was overwritten: \"theirs\""), "{dirt:?}");
    assert!(dirt.is_put_away());

    let mut dirt = repository.new_file("work/1", false);
    fs::remove_file(repository.person.file("work/1")).expect("it is there");
    assert!(damage(&mut dirt).contains("is gone"), "{dirt:?}");

    let mut dirt = repository.edit(true);
    repository.git(&["reset", "--quiet", "--", "shared.txt"]);
    assert!(damage(&mut dirt).contains("it was staged as"), "{dirt:?}");
}

#[test]
fn nothing_is_written_over_what_is_there() {
    let repository = Repository::new();
    let _edit = repository.edit(false);
    let other = |path: &str| path.to_owned();
    assert!(Dirt::edit(repository.person.clone(), other("shared.txt"), b"x".to_vec(), false).is_none());
    assert!(Dirt::new(repository.person.clone(), other("shared.txt"), b"x".to_vec(), false).is_none());
    assert_eq!(fs::read(repository.person.file("shared.txt")).ok(), Some(b"mine".to_vec()));
}

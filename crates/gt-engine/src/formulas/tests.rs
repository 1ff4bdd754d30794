//! Where formulas are found, and files that are none.

use std::os::unix::fs::symlink;

use super::*;

struct Shelves {
    dir: tempfile::TempDir,
    library: Library,
}

impl Shelves {
    fn new() -> Shelves {
        let dir = tempfile::tempdir().expect("a directory");
        let place = |name: &str| {
            let path = dir.path().join(name);
            fs::create_dir(&path).expect("it is empty");
            path
        };
        let places = vec![(Origin::Town, place("town")), (Origin::User, place("user"))];
        Shelves { dir, library: Library { places, recipes: Mutex::default() } }
    }

    fn path(&self, place: &str, name: &str) -> PathBuf {
        self.dir.path().join(place).join(format!("{name}{SUFFIX}"))
    }

    fn put(&self, place: &str, name: &str, title: &str) {
        let text = format!(
            "formula = '{name}'\nversion = 1\ndescription = '{title}'\n[[steps]]\nid = 'a'\ntitle = '{title}'\n"
        );
        fs::write(self.path(place, name), text).expect("it can be written");
    }

    fn title(&self, name: &str) -> String {
        self.library.recipe(name).expect("it is there").steps[0].title.clone()
    }

    fn errors(&self, name: &str) -> String {
        let recipe = self.library.recipe(name).expect("it is there");
        let told: Vec<String> = recipe.errors().map(ToString::to_string).collect();
        told.join("\n").replace(&self.dir.path().display().to_string(), "DIR")
    }
}

#[test]
fn the_built_in_formula_is_sound_and_short_enough_to_read() {
    let shelves = Shelves::new();
    let recipe = shelves.library.recipe(DEFAULT).expect("it is always there");
    assert!(recipe.findings.is_empty(), "{:?}", recipe.findings);
    let values = Values::default().about("gt-1", "Title", "shop", "main");
    let cooked = cook(&recipe, &values).expect("it cooks");
    let text = serde_json::to_string(&cooked.steps).expect("JSON");
    assert!(!text.contains("{{") && text.len() < 6_000, "{text}");
    assert!(text.contains("gt-1") && text.contains("gt done") && text.contains("Do it: Title"), "{text}");
}

#[test]
fn the_town_comes_before_the_user_and_both_before_what_is_built_in() {
    let shelves = Shelves::new();
    shelves.put("user", "release", "User");
    shelves.put("user", DEFAULT, "Mine");
    assert_eq!((shelves.title("release"), shelves.title(DEFAULT)), ("User".to_owned(), "Mine".to_owned()));
    let shelves = Shelves { library: Library { recipes: Mutex::default(), ..shelves.library }, ..shelves };
    shelves.put("town", "release", "Town");
    assert_eq!(shelves.title("release"), "Town");
    let told: Vec<(String, &str, bool)> = shelves
        .library
        .list()
        .into_iter()
        .map(|entry| (entry.name, entry.origin.as_str(), entry.is_shadowed))
        .collect();
    let wanted =
        [(DEFAULT, "user", false), (DEFAULT, "built in", true), ("release", "town", false), ("release", "user", true)];
    assert_eq!(told, wanted.map(|(name, origin, shadowed)| (name.to_owned(), origin, shadowed)));
}

#[test]
fn a_formula_is_read_once_for_as_long_as_its_library_lives() {
    let shelves = Shelves::new();
    shelves.put("town", "x", "First");
    assert_eq!(shelves.title("x"), "First");
    shelves.put("town", "x", "Second");
    assert_eq!(shelves.title("x"), "First");
}

#[test]
fn names_with_parts_of_a_path_find_nothing() {
    let shelves = Shelves::new();
    shelves.put("town", "x", "X");
    for name in ["../town/x", "./x", "/etc/passwd", "", "x/", "x\0", "..", "x\n"] {
        assert!(shelves.library.recipe(name).is_none(), "{name:?}");
    }
    assert_eq!(shelves.library.near("xy"), ["x"]);
}

#[test]
fn only_regular_files_of_text_are_read_and_none_is_waited_for() {
    let shelves = Shelves::new();
    shelves.put("user", "real", "Real");
    rustix::fs::mknodat(rustix::fs::CWD, shelves.path("town", "pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .expect("a pipe can be made");
    symlink(shelves.path("user", "real"), shelves.path("town", "real")).expect("a link can be made");
    symlink("/dev/zero", shelves.path("town", "device")).expect("a link can be made");
    fs::create_dir(shelves.path("town", "folder")).expect("a folder can be made");
    fs::write(shelves.path("town", "bytes"), b"formula = '\xff'").expect("it can be written");
    fs::write(shelves.path("town", "large"), vec![b' '; FILE_BYTES_MAX + 1]).expect("it can be written");
    for (name, wanted) in [
        ("pipe", "DIR/town/pipe.formula.toml is no regular file"),
        ("real", "DIR/town/real.formula.toml is a symbolic link; put the file itself there"),
        ("device", "DIR/town/device.formula.toml is a symbolic link; put the file itself there"),
        ("folder", "DIR/town/folder.formula.toml is no regular file"),
        ("bytes", "DIR/town/bytes.formula.toml is no UTF-8 text"),
        ("large", "DIR/town/large.formula.toml has 1048577 bytes; at most 1048576 are read"),
    ] {
        assert_eq!(shelves.errors(name), wanted);
    }
    let n_broken = shelves.library.list().iter().filter(|entry| entry.problem.is_some()).count();
    assert_eq!(n_broken, 6, "all are listed, none is waited for");
}

#[test]
fn a_formula_that_extends_one_that_cannot_be_read_says_which() {
    let shelves = Shelves::new();
    fs::create_dir(shelves.path("town", "base")).expect("a folder can be made");
    let text = "formula = 'x'\nversion = 1\nextends = ['base']\n[[steps]]\nid = 'a'\ntitle = 'A'\n";
    fs::write(shelves.path("town", "x"), text).expect("it can be written");
    assert_eq!(shelves.errors("x"), "DIR/town/x.formula.toml:3: DIR/town/base.formula.toml is no regular file");
}

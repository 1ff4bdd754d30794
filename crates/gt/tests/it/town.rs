//! A temporary town and the real binary in it.
//!
//! Ids that the binary made up are renamed in the order in which they are met (`gt-id01`, `gt-id02`, …), so that a
//! transcript says which bead is which. Ids that a test chose itself are shorter and stay as they are.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::rc::Rc;

use serde_json::Value;
use tempfile::TempDir;

pub(crate) const GT: &str = env!("CARGO_BIN_EXE_gt");

/// Prefixes under which ids are made up in these tests.
const PREFIXES: [&str; 7] = ["gt", "gt-mr", "gt-wisp", "hq", "hq-cv", "shop", "shop-wisp"];

/// A snapshot with everything masked that differs from run to run.
macro_rules! snapshot {
    ($text:expr, @$expected:literal) => {
        crate::town::masks().bind(|| insta::assert_snapshot!($text, @$expected))
    };
    ($name:literal, $text:expr) => {
        crate::town::masks().bind(|| insta::assert_snapshot!($name, $text))
    };
}
pub(crate) use snapshot;

pub(crate) fn masks() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "[TIME]");
    settings.add_filter(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "[RUN]");
    settings.add_filter(r"@[0-9a-f]{12}\b", "@[RUN]");
    settings.add_filter(r"(sound: .*, schema|this one knows) \d+", "$1 [N]");
    settings.add_filter(r"(took +)\d+\.\d+ s\b", "$1[SPAN]");
    settings.add_filter(r#""duration_ms":\d+"#, r#""duration_ms":"[SPAN]""#);
    settings.add_filter(r"(next try|retry) (in \d+ (s|min|h)|now)\b", "$1 in [SPAN]");
    settings.add_filter(r"is removed in [0-9dhms ]+", "is removed in [SPAN]");
    settings.add_filter(r"\(process \d+\)", "(process [PID])");
    settings.add_filter(r"HTTP at \S+", "HTTP at [ADDRESS]");
    settings.add_filter(r"(git +)\d+\.\d+[^\n]*", "$1[VERSION]");
    settings.add_filter(r"gt \d+\.\d+\.\d+", "gt [VERSION]");
    settings.add_filter(r"(?m)^[✓!] (tmux|agent|disk) [^\n]*(\n    →[^\n]*)?", "? $1 [DEPENDS ON THE MACHINE]");
    settings
}

/// A directory for one test, with a town in it and a home of its own.
pub(crate) struct Town {
    dir: TempDir,
    root: PathBuf,
    names: Rc<Names>,
}

/// What is masked in the transcripts of one town.
#[derive(Debug)]
struct Names {
    paths: [(String, &'static str); 2],
    ids: RefCell<Vec<String>>,
}

impl Town {
    /// A fresh town without rigs.
    pub(crate) fn new() -> Town {
        let town = Town::unmade();
        town.gt(["init"]).success();
        town
    }

    /// An empty directory where a town could be.
    pub(crate) fn unmade() -> Town {
        let dir = TempDir::with_prefix("it-").expect("a temporary directory can be made");
        let home = dir.path().canonicalize().expect("it was just made");
        let root = home.join("town");
        fs::create_dir(&root).expect("the directory is empty");
        let paths = [(root.display().to_string(), "[TOWN]"), (home.display().to_string(), "[HOME]")];
        Town { dir, root, names: Rc::new(Names { paths, ids: RefCell::default() }) }
    }

    /// A town with one rig, `shop`, prefix `gt`, at `shop/`.
    pub(crate) fn with_rig() -> Town {
        let town = Town::new();
        town.repository("shop");
        town.gt(["rig", "add", "shop", "shop", "--prefix", "gt"]).success();
        town
    }

    /// A town that holds these lines.
    pub(crate) fn holding(lines: &[&str]) -> Town {
        let town = Town::with_rig();
        town.call(["bead", "import", "-"]).stdin(lines.join("\n").as_bytes()).run().success();
        town
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().canonicalize().expect("it lives as long as the town")
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.root.join(".gt/town.db")
    }

    /// Makes the store one that has kept no config, as one of an older version.
    pub(crate) fn forget_config(&self) {
        let store = rusqlite::Connection::open(self.store()).expect("the store is there");
        store.execute("DELETE FROM config_kept", []).expect("it is SQL");
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).expect("the town can be written");
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("the file is there")
    }

    pub(crate) fn gt<const N: usize>(&self, arguments: [&str; N]) -> Answer {
        self.call(arguments).run()
    }

    pub(crate) fn call<S: Into<OsString>>(&self, arguments: impl IntoIterator<Item = S>) -> Call<'_> {
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let mut command = self.command(GT);
        command.args(&arguments);
        Call { town: self, name: "gt", arguments, command, stdin: Vec::new() }
    }

    /// A program in the town's surroundings; nothing of ours leaks in.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(&self.root);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.home()).env("TMPDIR", self.home());
        command.env("GT_ACTOR", "tester").env("TZ", "UTC");
        command
    }

    /// Makes a git repository with one commit.
    pub(crate) fn repository(&self, name: &str) -> PathBuf {
        let path = self.empty_repository(name);
        self.git(&["-C", name, "commit", "--quiet", "--allow-empty", "--message=start"]);
        path
    }

    pub(crate) fn empty_repository(&self, name: &str) -> PathBuf {
        self.git(&["init", "--quiet", "--initial-branch=main", name]);
        self.path(name)
    }

    pub(crate) fn git(&self, arguments: &[&str]) {
        let identity = ["-c", "user.name=it", "-c", "user.email=it@example.org"];
        let output = self.command("git").args(identity).args(arguments).output().expect("git is installed");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Creates a bead and returns its real id.
    pub(crate) fn create(&self, arguments: &[&str]) -> String {
        let answer = self.call(["create", "--quiet"].iter().chain(arguments).copied()).run();
        answer.success();
        answer.stdout.trim().to_owned()
    }

    pub(crate) fn export(&self) -> String {
        let answer = self.gt(["bead", "export"]);
        answer.success();
        answer.stdout
    }

    /// Every event so far.
    pub(crate) fn events(&self) -> Vec<Value> {
        let answer = self.gt(["activity", "--json"]);
        answer.success();
        answer.stdout.lines().map(|line| serde_json::from_str(line).expect("an event is JSON")).collect()
    }

    /// All that a refused command must leave as it was.
    pub(crate) fn state(&self) -> (String, usize, String) {
        let config = fs::read_to_string(self.path("town.toml")).unwrap_or_default();
        (self.export(), self.events().len(), config)
    }

    /// The transcript of a refused command, in words and in JSON; asserts that it changed nothing.
    pub(crate) fn refused<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> String {
        let arguments: Vec<&str> = arguments.into_iter().collect();
        let before = self.state();
        let in_words = self.call(arguments.clone()).run();
        let in_json = self.call(arguments.into_iter().chain(["--json"])).run();
        assert_eq!(before, self.state(), "a refused command changed something");
        in_json.assert_is_json_error();
        assert_eq!(in_words.code, in_json.code);
        assert_ne!(in_words.code, 0, "{in_words}");
        in_words.to_string()
    }

    pub(crate) fn assert_healthy(&self) {
        let answer = self.gt(["doctor"]);
        assert_eq!(answer.code, 0, "{answer}");
    }
}

/// One call of the binary, before it is made.
pub(crate) struct Call<'a> {
    town: &'a Town,
    name: &'static str,
    arguments: Vec<OsString>,
    command: Command,
    stdin: Vec<u8>,
}

impl Call<'_> {
    /// Calls the binary through a symbolic link of this name.
    pub(crate) fn called_as(mut self, name: &'static str) -> Self {
        let link = self.town.home().join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(GT, &link).expect("the home can be written");
        }
        let mut command = self.town.command(link);
        command.args(&self.arguments);
        (self.name, self.command) = (name, command);
        self
    }

    pub(crate) fn at(mut self, dir: impl AsRef<Path>) -> Self {
        self.command.current_dir(dir);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn stdin(mut self, bytes: &[u8]) -> Self {
        self.stdin.extend_from_slice(bytes);
        self
    }

    pub(crate) fn spawn(mut self) -> Child {
        let command = self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the binary can be started")
    }

    pub(crate) fn run(mut self) -> Answer {
        let command = self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary can be started");
        let mut input = child.stdin.take().expect("standard input is a pipe");
        let bytes = std::mem::take(&mut self.stdin);
        // A binary that does not want its input closes the pipe; that is its right.
        let feeding = std::thread::spawn(move || input.write_all(&bytes).unwrap_or_default());
        let output = child.wait_with_output().expect("the binary can be waited for");
        feeding.join().expect("feeding does not panic");
        self.answer(&output)
    }

    fn answer(&self, output: &Output) -> Answer {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_owned()).expect("the answer is UTF-8");
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        let code = output.status.code().expect("the binary ends by itself");
        let words: Vec<String> = self.arguments.iter().map(|word| quoted(&word.to_string_lossy())).collect();
        let mut transcript = format!("$ {} {}\n{stdout}", self.name, words.join(" "));
        for line in stderr.lines() {
            transcript.extend([format!("! {line}").trim_end(), "\n"]);
        }
        if code != 0 {
            transcript.extend([format!("[exit {code}]\n")]);
        }
        Answer { transcript, names: Rc::clone(&self.town.names), stdout, stderr, code }
    }
}

/// Long and odd words are shortened: what matters is what the binary makes of them.
fn quoted(word: &str) -> String {
    let shown: String = word.chars().take(60).collect();
    let rest = if shown.len() < word.len() { "…" } else { "" };
    let is_plain = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./:=,@[]%|+".contains(c));
    let visible = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    let shown: String = shown.chars().map(visible).collect();
    if is_plain && rest.is_empty() { shown } else { format!("'{shown}{rest}'") }
}

/// What the binary answered.
#[derive(Debug)]
pub(crate) struct Answer {
    transcript: String,
    names: Rc<Names>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl Answer {
    pub(crate) fn success(&self) -> &Answer {
        assert_eq!(self.code, 0, "{self}");
        self
    }

    pub(crate) fn json(&self) -> Value {
        self.success();
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self}"))
    }

    pub(crate) fn assert_is_json_error(&self) {
        assert_eq!(self.stdout, "", "{self}");
        let error: Value = serde_json::from_str(&self.stderr).unwrap_or_else(|error| panic!("{error} in {self}"));
        let fields: Vec<&str> = error["error"].as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(fields, ["code", "hint", "message"], "{self}");
        assert!(error["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{self}");
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mask = |text: String, (path, name): &(String, &str)| text.replace(path, name);
        let text = self.names.paths.iter().fold(self.transcript.clone(), mask);
        f.write_str(&rename_ids(&text, &mut self.names.ids.borrow_mut()))
    }
}

/// Answers below each other, as in a terminal.
pub(crate) fn session<const N: usize>(answers: [Answer; N]) -> String {
    answers.map(|answer| answer.to_string()).concat()
}

/// Gives made-up ids names in the order in which they are met.
fn rename_ids(text: &str, known: &mut Vec<String>) -> String {
    let mut renamed = String::new();
    let mut rest = text;
    while let Some((at, prefix, id)) = first_id(rest) {
        let place = known.iter().position(|other| other == id).unwrap_or_else(|| {
            known.push(id.to_owned());
            known.len() - 1
        });
        renamed.extend([&rest[..at], &format!("{prefix}-id{:02}", place + 1)]);
        rest = &rest[at + id.len()..];
    }
    renamed + rest
}

fn first_id(text: &str) -> Option<(usize, &'static str, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let starts = |at: usize| !text[..at].ends_with(is_word);
    let found = |prefix: &'static str| {
        let dashed = format!("{prefix}-");
        text.match_indices(&dashed).filter(|(at, _)| starts(*at)).find_map(|(at, _)| {
            let tail = &text[at + dashed.len()..];
            let n_chars = tail.find(|c: char| !is_word(c)).unwrap_or(tail.len());
            let is_made_up = (4..=8).contains(&n_chars)
                && tail[..n_chars].chars().all(|c| c.is_ascii_digit() || c.is_ascii_lowercase());
            is_made_up.then(|| (at, prefix, &text[at..at + dashed.len() + n_chars]))
        })
    };
    PREFIXES.into_iter().filter_map(found).min_by_key(|(at, ..)| *at)
}

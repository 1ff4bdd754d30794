//! The tutorial and the README as their readers follow them: every command, in order, in a fresh home, and what it shows.
//!
//! Ids in the text stand for those that `gt create` makes; a line `Created ID …` below a command says which. What the text shows
//! below a command has to be printed by it; numbers of processes and ids that nothing has named may differ.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Output;

use crate::fleet::Fleet;
use crate::town::GT;

const TUTORIAL: &str = include_str!("../../../../docs/tutorial.md");
const README: &str = include_str!("../../../../README.md");

/// A command and what the text shows below it.
struct Step {
    command: String,
    shown: Vec<&'static str>,
}

/// The commands of the console blocks. A here-document belongs to its command.
fn steps(text: &'static str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut is_console, mut is_document) = (false, false);
    for line in text.lines() {
        if line.starts_with("```") {
            is_console = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) {
            is_document = command.ends_with("<<'EOF'");
            steps.push(Step { command: command.to_owned(), shown: Vec::new() });
        } else if is_document {
            let step = steps.last_mut().expect("it began with a command");
            step.command.extend(["\n", line]);
            is_document = line != "EOF";
        } else if is_console {
            steps.last_mut().expect("output follows a command").shown.push(line);
        }
    }
    steps
}

struct Reader {
    fleet: Fleet,
    cwd: PathBuf,
    /// Ids of the text and of the town.
    ids: BTreeMap<String, String>,
}

impl Reader {
    /// In a home with a repository at `~/src/shop`, and a name for git.
    fn new() -> Reader {
        let fleet = Fleet::unmade();
        fleet.town.git(&["init", "--quiet", "--initial-branch=main", "../src/shop"]);
        fs::create_dir(fleet.home("src/shop/.beads")).expect("the home can be written");
        fs::write(fleet.home("src/shop/.beads/issues.jsonl"), "{\"id\":\"shop-old1\",\"title\":\"An old one\"}\n")
            .expect("the home can be written");
        fleet.town.git(&["-C", "../src/shop", "add", "."]);
        fleet.town.git(&["-C", "../src/shop", "commit", "--quiet", "--message=start"]);
        fleet.town.git(&["config", "--global", "user.name", "Ada"]);
        fleet.town.git(&["config", "--global", "user.email", "ada@example.org"]);
        let cwd = fleet.town.home();
        Reader { fleet, cwd, ids: BTreeMap::new() }
    }

    /// Runs all that a text has its readers type.
    fn follow(&mut self, steps: &[Step]) {
        for step in steps {
            self.run(step);
            if step.command.starts_with("gt init") {
                // The tests' own places, so that they are in nobody's way.
                self.fleet.set("runtime", "process");
                self.fleet.set("server.bind", "127.0.0.1:0");
                self.fleet.set("guards.load_per_core", "0");
                self.fleet.set("guards.free_memory", "0 B");
                self.fleet.set("guards.free_disk", "0 B");
            }
        }
    }

    fn run(&mut self, step: &Step) {
        let command = self.in_town(&step.command);
        let (command, directory) = match command.split_once("cd ~/") {
            Some((before, directory)) => (before.trim_end_matches([' ', '&']), Some(self.fleet.home(directory))),
            None => (command.as_str(), None),
        };
        if !command.is_empty() {
            self.check(command, step);
        }
        self.cwd = directory.unwrap_or_else(|| self.cwd.clone());
    }

    fn check(&mut self, command: &str, step: &Step) {
        let output = self.bash(command);
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "$ {command}\n{stdout}{stderr}{}", self.fleet.town.gt(["status"]));
        let created = |line: &str| Some(line.strip_prefix("Created ")?.split(' ').next()?.to_owned());
        if let (Some(shown), Some(real)) = (step.shown.first().and_then(|line| created(line)), created(&stdout)) {
            self.ids.insert(shown, real);
        }
        for line in &step.shown {
            let shown = self.masked(&self.in_town(line));
            let is_printed = stdout.lines().any(|line| self.masked(line) == shown);
            assert!(is_printed, "$ {command}\nshould print: {line}\nprints:\n{stdout}");
        }
    }

    /// A text with the ids of the town instead of its own.
    fn in_town(&self, text: &str) -> String {
        self.ids.iter().fold(text.to_owned(), |text, (shown, real)| text.replace(shown, real))
    }

    /// A line without what differs from town to town.
    fn masked(&self, line: &str) -> Vec<String> {
        let words = line.split_whitespace().map(|word| self.masked_word(word));
        let mut words: Vec<String> = words.collect();
        // Who is free takes the work.
        if words.first().is_some_and(|first| first == "▶") {
            words.remove(1);
        }
        words
    }

    fn masked_word(&self, word: &str) -> String {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let is_known = self.ids.values().any(|id| bare.starts_with(id.as_str()));
        if !is_known && ["shop-", "hq-cv-"].iter().any(|prefix| bare.starts_with(prefix)) {
            let kind = bare.rsplit_once('-').map_or(bare, |(kind, _)| kind);
            return word.replace(bare, &format!("{kind}-ID"));
        }
        let is_number = !bare.is_empty() && bare.len() > 2 && bare.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { word.replace(bare, "NUMBER") } else { word.to_owned() }
    }

    fn bash(&self, command: &str) -> Output {
        let directory = PathBuf::from(GT).parent().expect("it is in a directory").display().to_string();
        let own = self.fleet.home("bin").display().to_string();
        let mut bash = self.fleet.town.command("bash");
        // Only what every machine has: no agent of the tester's.
        bash.env("PATH", format!("{own}:{directory}:/usr/local/bin:/usr/bin:/bin")).current_dir(&self.cwd);
        bash.args(["-c", command]).stdin(std::process::Stdio::null());
        bash.output().expect("bash is installed")
    }

    /// Waits until all of these beads of the text are closed.
    fn until_closed(&self, ids: &[&str]) -> Vec<String> {
        let ids: Vec<String> = ids.iter().map(|id| self.in_town(id)).collect();
        self.fleet.until("all of it to be closed", |events| {
            let is_closed =
                |id: &String| events.iter().any(|event| event["type"] == "bead.closed" && event["bead"] == **id);
            ids.iter().all(is_closed)
        });
        ids
    }
}

#[test]
fn every_command_of_the_tutorial_works_as_written() {
    let mut reader = Reader::new();
    let steps = steps(TUTORIAL);
    assert!(steps.len() > 40, "the tutorial has {} commands", steps.len());
    reader.follow(&steps);
    let landed = reader.until_closed(&["shop-5n8k.1", "shop-5n8k.2", "shop-5n8k.3"]);
    let files = reader.bash("git -C ~/src/shop ls-files");
    let files = String::from_utf8_lossy(&files.stdout).into_owned();
    for bead in &landed {
        assert!(files.contains(&format!("note-{bead}.txt")), "{bead} is merged: {files}");
    }
}

/// The agent is Claude Code there; here it is a script of that name, which works until it is let go.
#[test]
fn every_command_of_the_readme_works_as_written() {
    let mut reader = Reader::new();
    let claude = reader.fleet.home("bin/claude");
    fs::create_dir(reader.fleet.home("bin")).expect("the home can be written");
    let waits = "#!/bin/sh\nwhile [ ! -e \"$HOME/gate\" ]; do sleep 0.05; done\nexec gt done --no-changes\n";
    fs::write(&claude, waits).expect("the home can be written");
    fs::set_permissions(&claude, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mut steps: Vec<Step> = steps(README).into_iter().filter(|step| !step.command.starts_with("cargo ")).collect();
    assert!(steps.len() > 6, "the README has {} commands", steps.len());
    // Whoever reads and types gives the agent the time to begin.
    let is_typed_later = |step: &Step| step.command.starts_with("gt explain");
    let later = steps.split_off(steps.iter().position(is_typed_later).expect("it explains something"));
    reader.follow(&steps);
    reader.fleet.until_events("run.started", None, 1);
    reader.follow(&later);
    reader.fleet.open_gate("gate");
    reader.until_closed(&["shop-4k2p", "shop-9d0x"]);
}

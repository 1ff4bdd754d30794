//! A town in which both agents can work, and the model that they ask.

use std::fs;

use gt_model::{Model, Script};
use rusqlite::Connection;
use serde_json::Value;

use crate::cli::{Cli, Place, Rights, Setup, programs};
use crate::fleet::{Fleet, PATIENCE, count};
use crate::town::Answer;

pub(crate) struct Workshop {
    // Dropped first: it ends the agents, which would else find their model gone.
    pub(crate) fleet: Fleet,
    model: Model,
    /// Where programs are found, as in the shell of a user who has installed the agents.
    path: String,
}

impl Workshop {
    /// A town with a daemon, whose agents print what they do.
    pub(crate) fn open(script: Script, rights: Rights) -> Workshop {
        Workshop::open_at(Place::Process, script, rights)
    }

    /// The same with agents at a place; each works in a worktree of its own.
    pub(crate) fn open_at(place: Place, script: Script, rights: Rights) -> Workshop {
        let programs = programs();
        let model = Model::serve(script).expect("there is a free port");
        let fleet = Fleet::new("exit 1");
        let (home, town, url) = (fleet.town.home(), fleet.town.root(), model.url());
        let setup = Setup { rights, place, home: &home, town, url: &url };
        let config = fleet.town.read("town.toml") + &Cli::ALL.map(|cli| cli.section(&setup)).concat();
        fleet.town.write("town.toml", config);
        fleet.set("rigs.shop.isolation", "worktree");
        fleet.set("runtime", place.runtime());
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("it is text"));
        fleet.start_daemon_with(&[("PATH", &path)]);
        Workshop { fleet, model, path }
    }

    /// Gives a new bead to an agent.
    pub(crate) fn sling(&self, cli: Cli, bead: &str) {
        self.fleet.hold(&[bead]);
        self.gt(&["sling", bead, "--agent", cli.name()]);
    }

    /// What a user types who has the agents on the PATH.
    pub(crate) fn gt(&self, words: &[&str]) -> Answer {
        let answer = self.fleet.town.call(words.iter().copied()).env("PATH", &self.path).run();
        answer.success();
        answer
    }

    /// Waits until the model was asked so often about a bead.
    pub(crate) fn await_questions(&self, bead: &str, n: usize) {
        assert!(self.model.wait_for(bead, n, PATIENCE), "{bead} was not asked about {n} times\n{}", self.logs());
    }

    /// What the model was asked about a bead, or about all that the script does not name.
    pub(crate) fn questions(&self, key: &str) -> Vec<String> {
        self.model.questions(key).iter().map(|question| question.body.to_string()).collect()
    }

    /// Waits until so many runs of a bead have ended, and returns the last of these ends.
    pub(crate) fn await_end(&self, bead: &str, n: usize) -> Value {
        let events = self.fleet.until_events("run.ended", Some(bead), n);
        let end = events.iter().rfind(|event| event["type"] == "run.ended" && event["bead"] == bead);
        end.expect("it was waited for").clone()
    }

    /// What is shown of the only worker.
    pub(crate) fn worker(&self) -> Value {
        self.gt(&["polecat", "list", "--json"]).json()[0].clone()
    }

    /// The lines of JSON that a run printed.
    pub(crate) fn said(&self, end: &Value) -> Vec<Value> {
        let run = end["run"].as_str().expect("an end names its run");
        let log = self.fleet.town.read(&format!(".gt/logs/{run}.log"));
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Time passes for whoever runs; the daemon is woken to see it.
    pub(crate) fn let_time_pass(&self, since: &str) {
        let change = format!("UPDATE run SET {since} = {since} - 31000000 WHERE state <> 'ended'");
        let store = Connection::open(self.fleet.town.store()).expect("the store is there");
        assert_eq!(store.execute(&change, []).expect("it is changed"), 1, "something runs");
        drop(store);
        self.gt(&["create", "Wake up"]);
    }

    /// Kills all processes of a worker at once.
    pub(crate) fn kill_group(&self, worker: &Value) {
        let line = format!("kill -9 -{}", worker["pid"]);
        let status = self.fleet.town.command("sh").args(["-c", &line]).status().expect("a shell is there");
        assert!(status.success(), "{worker}");
    }

    /// What is shown of the run that has ended: what it used, and the name of its conversation.
    pub(crate) fn assert_shows_use(&self, cli: Cli, end: &Value, (read, written): (u64, u64)) {
        let shown = self.gt(&["polecat", "show", "Toast"]).stdout;
        assert!(shown.contains(&format!("{read} tokens in (0 cached), {written} out")), "{shown}");
        let talk = shown.lines().find_map(|line| line.trim().strip_prefix("talk")).expect("it has a name").trim();
        let is_the_runs = end["run"] == talk;
        assert_eq!(is_the_runs, cli == Cli::Claude, "Claude is given a name, Codex finds one: {shown}");
        assert_eq!(talk.len(), 36, "{shown}");
    }

    /// After the first run of gt-a has met a limit: what is shown, that another agent works, and that nothing was lost.
    pub(crate) fn assert_limit_is_survived(&self, cli: Cli, other: Cli) -> Value {
        let limited = self.await_end("gt-a", 1);
        assert_eq!(limited["data"]["outcome"], "rate-limited", "{limited}");
        let why = self.gt(&["explain", "gt-a"]).stdout;
        let held_up = format!("agent `{}` is held up: ", cli.name());
        assert!(why.contains(&held_up) && why.contains("it is rate limited"), "{why}");
        self.fleet.hold(&["gt-b"]);
        // Not merged: Claude tells its model of the latest commits, and the script would take the one bead for the other.
        self.gt(&["sling", "gt-b", "--agent", other.name(), "--merge", "local"]);
        self.fleet.until_events("bead.closed", Some("gt-b"), 1);
        assert_eq!(count(&self.fleet.town.events(), "bead.hooked", Some("gt-a")), 1, "it was started too early");
        self.gt(&["scheduler", "resume"]);
        let end = self.await_end("gt-a", 2);
        assert_eq!(end["data"]["outcome"], "completed", "{end}");
        assert!(!self.questions("gt-a")[1].contains("Once before"), "an attempt was counted");
        self.fleet.until_done(&["gt-a".to_owned(), "gt-b".to_owned()]);
        self.fleet.assert_at_rest(&["gt-a".to_owned(), "gt-b".to_owned()]);
        limited
    }

    pub(crate) fn status_of(&self, bead: &str) -> String {
        self.fleet.town.gt(["show", bead, "--json"]).json()["status"].as_str().expect("a text").to_owned()
    }

    /// What is in a file on the branch of a run.
    pub(crate) fn committed(&self, end: &Value, file: &str) -> Option<String> {
        self.on_branch(end["data"]["branch"].as_str().expect("it worked on a branch"), file)
    }

    fn on_branch(&self, branch: &str, file: &str) -> Option<String> {
        let object = format!("{branch}:{file}");
        let output = self.fleet.town.command("git").args(["-C", "shop", "show", &object]).output();
        let output = output.expect("git is installed");
        output.status.success().then(|| String::from_utf8(output.stdout).expect("it is text"))
    }

    /// Waits until the work of a bead is merged, and tells what `main` has in a file.
    pub(crate) fn merged(&self, bead: &str, file: &str) -> Option<String> {
        self.fleet.until_done(&[bead.to_owned()]);
        assert_eq!(count(&self.fleet.town.events(), "merge.landed", Some(bead)), 1, "{bead} is merged once");
        self.on_branch("main", file)
    }

    /// All that the agents printed, for the report of a test that fails.
    pub(crate) fn logs(&self) -> String {
        let files = fs::read_dir(self.fleet.town.path(".gt/logs")).into_iter().flatten().flatten();
        files.map(|file| fs::read_to_string(file.path()).unwrap_or_default()).collect::<Vec<_>>().join("\n")
    }
}

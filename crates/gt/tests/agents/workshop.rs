//! A town in which both agents can work, and the model that they ask.

use std::fs;

use gt_model::{Model, Script};
use serde_json::Value;

use crate::cli::{Cli, Place, Rights, Setup, programs};
use crate::fleet::{Fleet, PATIENCE};

pub(crate) struct Workshop {
    // Dropped first: it ends the agents, which would else find their model gone.
    pub(crate) fleet: Fleet,
    model: Model,
}

impl Workshop {
    /// A town with a daemon, whose agents print what they do; nothing where no agents are installed.
    pub(crate) fn open(script: Script, rights: Rights) -> Option<Workshop> {
        Workshop::open_at(Place::Process, script, rights)
    }

    /// The same with agents at a place; each works in a worktree of its own.
    pub(crate) fn open_at(place: Place, script: Script, rights: Rights) -> Option<Workshop> {
        let programs = programs()?;
        let model = Model::serve(script).expect("there is a free port");
        let fleet = Fleet::new("exit 1");
        let (home, town, url) = (fleet.town.home(), fleet.town.root(), model.url());
        let setup = Setup { programs: &programs, rights, place, home: &home, town, url: &url };
        let config = fleet.town.read("town.toml") + &Cli::ALL.map(|cli| cli.section(&setup)).concat();
        fleet.town.write("town.toml", config);
        fleet.set("rigs.shop.isolation", "worktree");
        fleet.start_daemon();
        Some(Workshop { fleet, model })
    }

    /// Gives a new bead to an agent.
    pub(crate) fn sling(&self, cli: Cli, bead: &str) {
        self.fleet.hold(&[bead]);
        self.fleet.town.gt(["sling", bead, "--agent", cli.name()]).success();
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

    /// The lines of JSON that a run printed.
    pub(crate) fn said(&self, end: &Value) -> Vec<Value> {
        let run = end["run"].as_str().expect("an end names its run");
        let log = self.fleet.town.read(&format!(".gt/logs/{run}.log"));
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub(crate) fn status_of(&self, bead: &str) -> String {
        self.fleet.town.gt(["show", bead, "--json"]).json()["status"].as_str().expect("a text").to_owned()
    }

    /// What is in a file on the branch of a run.
    pub(crate) fn committed(&self, end: &Value, file: &str) -> Option<String> {
        let branch = end["data"]["branch"].as_str().expect("it worked on a branch");
        let object = format!("{branch}:{file}");
        let output = self.fleet.town.command("git").args(["-C", "shop", "show", &object]).output();
        let output = output.expect("git is installed");
        output.status.success().then(|| String::from_utf8(output.stdout).expect("it is text"))
    }

    /// All that the agents printed, for the report of a test that fails.
    pub(crate) fn logs(&self) -> String {
        let files = fs::read_dir(self.fleet.town.path(".gt/logs")).into_iter().flatten().flatten();
        files.map(|file| fs::read_to_string(file.path()).unwrap_or_default()).collect::<Vec<_>>().join("\n")
    }
}

//! What gates say of files, and how long they take: the truth is in the files, and chance may add a flake, a kill or a hang.

use std::path::Path;
use std::time::Duration;

use gt_engine::surroundings::Command;
use gt_runtime::merge::{Asked, Gate, MergeError};

use super::origin::{Request, RequestState};
use super::{GateRun, Tree, history};
use crate::around::Around;

/// A file that says this fails every gate.
pub const BROKEN: &str = "broken";
/// Two files that say this fail a gate together, and neither by itself.
pub const CLASH: &str = "clash";
/// A file that says this keeps a gate from ending.
pub const ENDLESS: &str = "endless";

/// Rewrites a file that git tracks, as formatters do.
pub const FORMAT: &str = "format";
pub const TEST: &str = "test";

/// Whether files pass, by themselves.
pub fn is_sound(tree: &Tree) -> bool {
    let n_of = |word: &str| tree.values().filter(|content| content.starts_with(word)).count();
    n_of(BROKEN) == 0 && n_of(CLASH) < 2 && n_of(ENDLESS) == 0
}

impl Around {
    pub fn run_gate(&self, command: &str, how: &Command<'_>) -> Result<Gate, MergeError> {
        self.git_boundary("run a gate", None)?;
        let (root, head, files, is_on_commit) = {
            let world = self.world.lock();
            let root = world.git.root_of(how.dir).unwrap_or_default();
            let head = world.git.commit_of(how.dir, "HEAD")?;
            let files = world.git.repositories[&root].checkouts[how.dir].files.clone();
            let is_on_commit = files == *world.git.objects.tree(&head);
            (root, head, files, is_on_commit)
        };
        if command == FORMAT {
            self.world.lock().git.write(how.dir, "formatted", Some("by a gate"));
        }
        let is_endless = command == TEST && files.values().any(|content| content.starts_with(ENDLESS));
        let span = if is_endless { how.timeout } else { Duration::from_secs(self.world.lock().rng.u64(0..20)) };
        self.spend(span);
        let (killed, flake) = {
            let mut world = self.world.lock();
            let (killed, flake) = (world.faults.killed_gate, world.faults.flake);
            (world.chance(killed), world.chance(flake))
        };
        let fails = (command == TEST && !is_sound(&files)) || flake;
        let tree = history::tree_id(&files);
        let has_passed = !killed && !fails && !is_endless;
        self.world.tell(|| format!("process {}: gate {command} on {head:.24}: {has_passed}", self.pid));
        let run = GateRun {
            repository: root,
            head,
            tree,
            command: command.to_owned(),
            has_passed,
            was_killed: killed,
            is_on_commit,
        };
        self.world.lock().git.gates.push(run);
        self.git_boundary("run a gate", None)?;
        let tail = "what it printed".to_owned();
        Ok(match (killed, is_endless, fails) {
            (true, ..) => Gate::Killed { how: "ended by signal 9".to_owned(), tail },
            (_, true, _) => Gate::Failed { how: format!("took longer than {}s", how.timeout.as_secs()), tail },
            (.., true) => Gate::Failed { how: "exit code 1".to_owned(), tail },
            _ => Gate::Passed,
        })
    }

    /// The program that opens pull requests and says how they stand.
    pub fn run_request(&self, argv: &[String], how: &Command<'_>) -> Result<Asked, MergeError> {
        self.git_boundary("ask a program", None)?;
        let of = |wanted: &str| {
            let found = how.env.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let answer = {
            let mut world = self.world.lock();
            let fails = world.faults.git;
            if world.chance(fails) {
                return Ok(Asked::Failed("rate limited".to_owned()));
            }
            let (_, repository) = world.git.at(how.dir)?;
            request(repository, argv, &of, how.dir)
        };
        self.git_boundary("ask a program", None)?;
        Ok(answer)
    }
}

fn request(repository: &mut super::Repository, argv: &[String], of: &dyn Fn(&str) -> String, _: &Path) -> Asked {
    let words: Vec<&str> = argv.iter().skip(1).map(String::as_str).collect();
    match words[..] {
        ["open"] => {
            let name = format!("pr-{}", of("GT_MERGE"));
            let (merge, branch, target) = (of("GT_MERGE"), of("GT_BRANCH"), of("GT_TARGET"));
            let tip = of("GT_COMMIT");
            let new = Request { merge, branch, target, tip, state: RequestState::Open };
            let request = repository.requests.entry(name.clone()).or_insert_with(|| new.clone());
            // An open one follows its branch; one that is over is opened anew for other commits.
            if request.state == RequestState::Closed || request.tip != new.tip {
                *request = new;
            }
            Asked::Said(name)
        }
        ["status", name] => match repository.requests.get(name).map(|request| request.state) {
            Some(RequestState::Open) => Asked::Said("open".to_owned()),
            Some(RequestState::Merged) => Asked::Said("merged".to_owned()),
            Some(RequestState::Closed) | None => Asked::Said("closed".to_owned()),
        },
        _ => Asked::Failed("unknown words".to_owned()),
    }
}

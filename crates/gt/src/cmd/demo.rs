//! `gt demo`: the product showing itself, in a temporary town. // SPEC U4
//!
//! Every step is this very binary, called as a user would call it; the agents are small shell scripts, but real
//! processes in real worktrees. What is drawn while they work is `demo/progress.rs`.

mod progress;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use clap::Args;
use gt_core::event::Event;

use self::progress::Progress;
use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::render::{BOLD, DIM, GREEN, paint};

/// What an agent of the demo does: a file, a commit, done.
const AGENT: &str = r#"sleep 0.$(($$ % 5 + 3))
echo "$GT_POLECAT was here" > "$GT_BEAD.txt"
git add --all
git -c user.name="$GT_POLECAT" -c user.email=polecat@example.org commit --quiet --message "$GT_BEAD"
gt done --note "wrote $GT_BEAD.txt"
"#;

/// The graph: each bead with what it waits for.
const BEADS: [(&str, &[usize]); 10] = [
    ("Design the schema", &[]),
    ("Write the migrations", &[0]),
    ("Write the server", &[0]),
    ("Write the page", &[0]),
    ("Choose the colours", &[]),
    ("Draw the logo", &[4]),
    ("Style the page", &[3, 4]),
    ("Test the server", &[1, 2]),
    ("Test the page", &[6]),
    ("Release", &[5, 7, 8]),
];

/// See it work, in a temporary town
///
/// Makes a town with ten beads that wait for each other and a cap of three, gives them to small scripted agents, and
/// shows how the daemon starts each the moment it can. Needs git; touches nothing outside a temporary directory.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt demo
  gt demo --keep     leave the town there to look around in")]
pub(crate) struct DemoArgs {
    /// Leave the town there to look around in
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(context: &Context, args: &DemoArgs) -> Result<(), Failure> {
    if context.wants_json() {
        return Err(Failure::new(Kind::Usage, "the demo is a show for people; it has no JSON").hint("type `gt demo`"));
    }
    if context.is_dry_run() {
        return Err(Failure::new(Kind::Usage, "the demo has no dry run").hint("its town is temporary: type `gt demo`"));
    }
    let failed = |error: std::io::Error| Failure::new(Kind::Refused, format!("cannot make a temporary town: {error}"));
    let dir = tempfile::Builder::new().prefix("gt-demo-").tempdir().map_err(failed)?;
    let stage = Stage { context, town: dir.path() };
    stage.play()?;
    if args.keep {
        let path = dir.keep();
        return context.say(&format!("\nThe town is at {}.", paint(BOLD, &path.display().to_string())));
    }
    context.say(&paint(DIM, "\nThe temporary town is gone again. Your own: `gt init`."))
}

struct Stage<'a> {
    context: &'a Context,
    town: &'a Path,
}

impl Stage<'_> {
    fn play(&self) -> Result<(), Failure> {
        self.act("A town is a directory. A rig is a git repository in it. An agent is a command.")?;
        self.make_repository()?;
        self.show(&["init"])?;
        self.write_agent()?;
        self.turn_guards_off()?;
        let command = format!("[\"sh\", \"{}\"]", self.town.join("agent.sh").display());
        self.show(&["config", "set", "agents.demo.command", &command])?;
        self.show(&["config", "set", "default_agent", "demo"])?;
        self.show(&["rig", "add", "shop", "shop"])?;
        self.show(&["config", "set", "scheduler.max_polecats", "3"])?;

        self.act("An epic of ten beads that wait for each other, handed over in one go.")?;
        let epic = self.create(&["Ship the checkout", "--type", "epic", "--rig", "shop"])?;
        let ids = self.create_beads(&epic)?;
        self.show(&["sling", &epic])?;

        self.act("Why does the last one not run?")?;
        self.show(&["explain", &ids[9]])?;

        self.act("The daemon starts each the moment it can, three at the most.")?;
        self.prompt(&["daemon", "start"])?;
        let daemon = Daemon::start(self)?;
        let n_agents = self.watch(&ids)?;
        drop(daemon);

        self.act("Every agent worked in its own worktree and left its commits on a branch.")?;
        self.show(&["polecat", "list"])?;
        self.git_log()?;
        self.context.say(&format!("\n{}", paint(GREEN, &n_agents)))
    }

    fn write_agent(&self) -> Result<(), Failure> {
        let path = self.town.join("agent.sh");
        std::fs::write(&path, AGENT)
            .map_err(|error| Failure::new(Kind::Refused, format!("cannot write the agent: {error}")))
    }

    /// A busy machine would hold the show up, and its agents cost next to nothing.
    fn turn_guards_off(&self) -> Result<(), Failure> {
        for [key, value] in [["load_per_core", "0"], ["free_memory", "0 B"], ["free_disk", "0 B"]] {
            let key = format!("guards.{key}");
            let call = ["config", "set", &key, value];
            let status = self.gt(&call).stdout(Stdio::null()).status().map_err(|error| not_started(&error))?;
            if !status.success() {
                return Err(stopped(&call));
            }
        }
        Ok(())
    }

    /// Makes the ten beads without a word: the sling names them all.
    fn create_beads(&self, epic: &str) -> Result<Vec<String>, Failure> {
        let mut ids: Vec<String> = Vec::new();
        for (title, blockers) in BEADS {
            let blockers: Vec<&str> = blockers.iter().map(|at| ids[*at].as_str()).collect();
            let blockers = blockers.join(",");
            let mut call = vec!["create", title, "--parent", epic, "--quiet"];
            if !blockers.is_empty() {
                call.extend(["--blocked-by", &blockers]);
            }
            let output = self.gt(&call).output().map_err(|error| not_started(&error))?;
            if !output.status.success() {
                return Err(stopped(&call));
            }
            ids.push(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        Ok(ids)
    }

    /// Follows the town's own log, and draws what it says; returns the summary.
    fn watch(&self, ids: &[String]) -> Result<String, Failure> {
        let titles = BEADS.map(|(title, _)| title);
        let mut progress = Progress::new(ids, &titles, self.context);
        let mut follow = self.gt(&["activity", "--follow", "--json"]);
        let mut child = follow.stdout(Stdio::piped()).spawn().map_err(|error| not_started(&error))?;
        let lines = BufReader::new(child.stdout.take().expect("its output is a pipe")).lines();
        for line in lines.map_while(Result::ok) {
            let event: Event =
                serde_json::from_str(&line).map_err(|error| Failure::new(Kind::Refused, error.to_string()))?;
            progress.note(&event)?;
            if progress.is_over() {
                break;
            }
        }
        child.kill().and_then(|()| child.wait()).map(drop).unwrap_or_default();
        Ok(progress.summary())
    }

    fn git_log(&self) -> Result<(), Failure> {
        self.context.say(&paint(BOLD, "$ git -C shop log --all --oneline"))?;
        let output = Command::new("git")
            .args(["-C", "shop", "log", "--all", "--oneline", "--no-decorate"])
            .current_dir(self.town)
            .output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
        self.context.say(&text)
    }

    fn act(&self, line: &str) -> Result<(), Failure> {
        self.context.say(&format!("\n{}", paint(GREEN, line)))
    }

    fn make_repository(&self) -> Result<(), Failure> {
        let git = |arguments: &[&str]| {
            let identity = ["-c", "user.name=demo", "-c", "user.email=demo@example.org"];
            Command::new("git").args(identity).args(arguments).current_dir(self.town).output()
        };
        let made = git(&["init", "--quiet", "--initial-branch=main", "shop"])
            .and_then(|_| git(&["-C", "shop", "commit", "--quiet", "--allow-empty", "--message=start"]));
        match made {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                Err(Failure::new(Kind::Refused, format!("git could not make a repository: {said}")))
            }
            Err(error) => {
                Err(Failure::new(Kind::Refused, format!("git cannot be started: {error}")).hint("install git"))
            }
        }
    }

    /// Creates a bead in sight of the user and returns its id.
    fn create(&self, arguments: &[&str]) -> Result<String, Failure> {
        let mut call = vec!["create"];
        call.extend(arguments);
        self.prompt(&call)?;
        let output = self.gt(&call).stdout(Stdio::piped()).output().map_err(|error| not_started(&error))?;
        let answer = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        self.context.say(&answer)?;
        // "Created ID in RIG: TITLE"
        answer
            .split_whitespace()
            .nth(1)
            .filter(|_| output.status.success())
            .map(str::to_owned)
            .ok_or_else(|| stopped(&call))
    }

    fn show(&self, arguments: &[&str]) -> Result<(), Failure> {
        self.prompt(arguments)?;
        let status = self.gt(arguments).status().map_err(|error| not_started(&error))?;
        if status.success() { Ok(()) } else { Err(stopped(arguments)) }
    }

    fn prompt(&self, arguments: &[&str]) -> Result<(), Failure> {
        let quoted: Vec<String> = arguments
            .iter()
            .map(|word| match word {
                word if word.contains('"') => format!("'{word}'"),
                word if word.contains(' ') => format!("\"{word}\""),
                word => (*word).to_owned(),
            })
            .collect();
        self.context.say(&paint(BOLD, &format!("$ gt {}", quoted.join(" "))))
    }

    fn gt(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "gt".into()));
        command.args(arguments).current_dir(self.town).stdin(Stdio::null());
        for name in ["GT_TOWN", "GT_RIG", "GT_RUN", "GT_BEAD", "GT_KEEPER"] {
            command.env_remove(name);
        }
        command.env("GT_ACTOR", "demo");
        command
    }
}

fn not_started(error: &std::io::Error) -> Failure {
    Failure::new(Kind::Refused, format!("gt cannot call itself: {error}"))
}

fn stopped(arguments: &[&str]) -> Failure {
    Failure::new(Kind::Refused, format!("the demo stopped at `gt {}`", arguments.join(" ")))
        .hint("this is a fault of gt; `gt demo --keep` leaves the town to look at")
}

/// The demo's daemon; ends with the demo, however that ends.
struct Daemon(Child);

impl Daemon {
    fn start(stage: &Stage<'_>) -> Result<Daemon, Failure> {
        let mut command = stage.gt(&["daemon", "run"]);
        command.stdout(Stdio::null());
        Ok(Daemon(command.spawn().map_err(|error| not_started(&error))?))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // All agents have ended by now; there is nothing to be lost.
        self.0.kill().and_then(|()| self.0.wait()).map(drop).unwrap_or_default();
    }
}

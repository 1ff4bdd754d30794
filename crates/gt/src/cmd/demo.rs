//! `gt demo`: the product showing itself, in a temporary town. // SPEC U4
//!
//! Every step is this very binary, called as a user would call it.

use std::path::Path;
use std::process::{Command, Stdio};

use clap::Args;

use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::render::{BOLD, DIM, GREEN, paint};

/// See it work, in a temporary town
///
/// Makes a town with a small graph of beads, shows what is ready and what is blocked, closes a blocker and shows
/// what became ready. Needs git; touches nothing outside a temporary directory.
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
        self.act("A town is a directory. A rig is a git repository in it.")?;
        self.make_repository()?;
        self.show(&["init"])?;
        self.show(&["rig", "add", "shop", "shop"])?;

        self.act("An epic, and four beads that wait for each other.")?;
        let epic = self.create(&["Ship the checkout", "--type", "epic", "--rig", "shop"])?;
        let schema = self.create(&["Design the schema", "--parent", &epic, "--priority", "1"])?;
        let server = self.create(&["Write the server", "--parent", &epic, "--blocked-by", &schema])?;
        let page = self.create(&["Write the page", "--parent", &epic, "--blocked-by", &schema])?;
        let release = self.create(&["Release", "--parent", &epic, "--blocked-by", &format!("{server},{page}")])?;
        self.show(&["bead", "dep", "tree", &epic])?;

        self.act("What can be worked on, and what waits for what?")?;
        self.show(&["ready"])?;
        self.show(&["bead", "blocked"])?;
        self.show(&["explain", &release])?;

        self.act("Closing a blocker says what it made ready.")?;
        self.show(&["close", &schema, "--reason", "three tables are enough"])?;
        self.show(&["ready"])?;

        self.act("A cycle is refused by name, and changes nothing.")?;
        self.show_refusal(&["bead", "dep", "add", &server, &release])?;

        self.act("Everything that happened is in the log.")?;
        self.show(&["activity", "--since", "6"])
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

    /// Runs a command that must be refused.
    fn show_refusal(&self, arguments: &[&str]) -> Result<(), Failure> {
        self.prompt(arguments)?;
        let status = self.gt(arguments).status().map_err(|error| not_started(&error))?;
        if status.code() == Some(1) { Ok(()) } else { Err(stopped(arguments)) }
    }

    fn prompt(&self, arguments: &[&str]) -> Result<(), Failure> {
        let quoted: Vec<String> = arguments
            .iter()
            .map(|word| if word.contains(' ') { format!("\"{word}\"") } else { (*word).to_owned() })
            .collect();
        self.context.say(&paint(BOLD, &format!("$ gt {}", quoted.join(" "))))
    }

    fn gt(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "gt".into()));
        command.args(arguments).current_dir(self.town).stdin(Stdio::null());
        command.env_remove("GT_TOWN").env_remove("GT_RIG").env("GT_ACTOR", "demo");
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

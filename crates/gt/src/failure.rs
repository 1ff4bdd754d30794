//! An error as a person or a script meets it: a kind, one sentence, its causes, and what to try.
//!
//! The kind alone decides the exit code. // SPEC U1

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use gt_core::refusal::Refusal;
use gt_core::text::BadText;
use gt_engine::done::NotDone;
use gt_engine::sling::BadRequest;
use gt_engine::{TownError, unwritten};
use gt_store::StoreError;
use serde_json::json;

use crate::context;

/// What went wrong, as far as a script needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Refused,
    Usage,
    NotFound,
    Unreachable,
    NotNow,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Kind::Refused => 1,
            Kind::Usage => 2,
            Kind::NotFound => 3,
            Kind::Unreachable => 4,
            Kind::NotNow => 5,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Kind::Refused => "refused",
            Kind::Usage => "usage",
            Kind::NotFound => "not-found",
            Kind::Unreachable => "unreachable",
            Kind::NotNow => "not-now",
        }
    }

    pub(crate) fn exit_code(self) -> ExitCode {
        ExitCode::from(self.code())
    }
}

#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Failure {
        Failure { kind, message: message.into(), causes: Vec::new(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// Names the causes one by one.
    pub(crate) fn because(mut self, causes: impl IntoIterator<Item = String>) -> Failure {
        self.causes.extend(causes);
        self
    }

    /// The same, said by a command of another name.
    pub(crate) fn reworded(mut self, words: &[(&str, &str)]) -> Failure {
        self.message = reword(&self.message, words);
        self.hint = self.hint.map(|hint| reword(&hint, words));
        self
    }

    fn caused_by(mut self, error: &dyn Error) -> Failure {
        let mut cause = error.source();
        while let Some(error) = cause {
            self.causes.push(error.to_string());
            cause = error.source();
        }
        self
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        self.kind.exit_code()
    }

    /// Writes itself to standard error.
    pub(crate) fn report(&self, as_json: bool) {
        let text = if as_json { self.json() } else { self.text() };
        // With standard error gone there is nobody left to tell.
        anstream::stderr().write_all(text.as_bytes()).unwrap_or_default();
    }

    fn json(&self) -> String {
        let message = std::iter::once(&self.message).chain(&self.causes).cloned().collect::<Vec<_>>().join(": ");
        format!("{}\n", json!({ "error": { "code": self.kind.word(), "message": message, "hint": self.hint } }))
    }

    fn text(&self) -> String {
        let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
        let blue = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
        let mut text = format!("{red}error:{red:#} {}\n", self.message);
        for cause in &self.causes {
            text.extend(["  caused by: ", cause, "\n"]);
        }
        if let Some(hint) = &self.hint {
            text.extend([format!("{blue}hint:{blue:#} {hint}\n")]);
        }
        text
    }
}

/// A text with other words in place of some.
pub(crate) fn reword(text: &str, words: &[(&str, &str)]) -> String {
    words.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

impl From<&Refusal> for Failure {
    fn from(refusal: &Refusal) -> Failure {
        // A job that is to hand over what is under way finds it free another time.
        let is_passing = matches!(refusal, Refusal::Hooked { .. }) && context::variable("GT_FIRE").is_some();
        let kind = if is_passing || refusal.is_for_now() { Kind::NotNow } else { Kind::Refused };
        Failure::new(kind, refusal.to_string()).hint(refusal.hint())
    }
}

impl From<BadText> for Failure {
    fn from(bad: BadText) -> Failure {
        (&Refusal::from(bad)).into()
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        (&error).into()
    }
}

impl From<&StoreError> for Failure {
    fn from(error: &StoreError) -> Failure {
        let (kind, hint) = match error {
            StoreError::NoBead { near, .. } => {
                (Kind::NotFound, did_you_mean(near, "`gt bead list --all` shows what there is"))
            }
            StoreError::NoRig { near, .. } => (Kind::NotFound, did_you_mean(near, "`gt rig list` shows what there is")),
            StoreError::NoMerge { near, .. } => {
                (Kind::NotFound, did_you_mean(near, "`gt refinery list --all` shows what there is"))
            }
            StoreError::NoJob { near, .. } => {
                (Kind::NotFound, did_you_mean(near, "`gt cron list` shows what there is"))
            }
            StoreError::NoLetter { .. } => (
                Kind::NotFound,
                "`gt mail inbox --all` shows what there is; `gt mail inbox WHO --all` somebody's".into(),
            ),
            StoreError::NoBox { boxes, .. } => (Kind::NotFound, format!("write to one of {}", few(boxes))),
            StoreError::Refused(refusal) => return refusal.into(),
            StoreError::NewerSchema { .. } => {
                (Kind::Unreachable, "use the newer gt that wrote it; nothing was changed".into())
            }
            StoreError::NotAStore { .. } => {
                (Kind::Unreachable, "move that file away, then `gt init` makes a fresh store".into())
            }
            StoreError::ReadOnly { .. } => (
                Kind::Unreachable,
                "see that the file and its directory can be written by you; nothing was changed".into(),
            ),
            StoreError::Full { .. } => (Kind::Unreachable, "make room and try again; nothing was changed".into()),
            StoreError::Busy { .. } => (Kind::Unreachable, "try again when the other process is done".into()),
            StoreError::Damaged { .. } | StoreError::Unreadable { .. } => {
                (Kind::Unreachable, "see how bad it is with `gt doctor`".into())
            }
            StoreError::CannotOpen { .. } => (
                Kind::Unreachable,
                "even a reader writes beside the store: see that its directory and disk can be written".into(),
            ),
            StoreError::Failed { .. } | StoreError::Sqlite(_) => {
                (Kind::Unreachable, "see what is wrong with `gt doctor`, and that the disk is not full".into())
            }
        };
        Failure::new(kind, error.to_string()).caused_by(error).hint(hint)
    }
}

/// The first of them, and how many more.
fn few(boxes: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown = boxes.iter().take(SHOWN).map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ");
    match boxes.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} or one of {more} more"),
    }
}

fn did_you_mean(near: &[String], otherwise: &str) -> String {
    if near.is_empty() {
        return otherwise.to_owned();
    }
    let quoted: Vec<String> = near.iter().map(|word| format!("`{word}`")).collect();
    format!("did you mean {}?", quoted.join(" or "))
}

impl From<BadRequest> for Failure {
    fn from(bad: BadRequest) -> Failure {
        let (kind, hint) = match &bad {
            BadRequest::Nothing | BadRequest::OnlyARig { .. } => (Kind::Usage, "as in `gt sling gt-a1b2`".to_owned()),
            BadRequest::Unknown { near, .. } => {
                (Kind::NotFound, did_you_mean(near, "`gt ready` and `gt rig list` show what there is"))
            }
            BadRequest::NewWithoutRig => (Kind::Usage, "as in `gt sling --new \"Fix the login\" RIG`".to_owned()),
            BadRequest::NoFormula { near, .. } => {
                (Kind::NotFound, did_you_mean(near, "`gt formula list` shows what there is"))
            }
            BadRequest::NoAgent { name, near } => {
                let set = format!(
                    "built in are claude, codex, gemini, opencode and shell; your own: set `agents.{name}.command`"
                );
                (Kind::NotFound, did_you_mean(near, &set))
            }
            BadRequest::BadFormula { name, .. } if gt_core::formula::check_name(name).is_err() => {
                (Kind::Usage, "`gt formula list` shows what there is".to_owned())
            }
            BadRequest::BadFormula { name, .. } => {
                (Kind::Refused, format!("see everything about it with `gt formula cook {name}`"))
            }
            BadRequest::OnlyAFormula { name } => (Kind::Usage, format!("as in `gt sling {name} --on BEAD`")),
            BadRequest::OnNeedsFormula => {
                (Kind::Usage, "as in `gt sling mol-polecat-work --on gt-a1b2 [RIG]`".to_owned())
            }
            BadRequest::LoadWithRig { id, .. } => (Kind::Usage, format!("leave the rig out: `gt sling {id}`")),
            BadRequest::TaskFlags { .. } => (Kind::Usage, "sling its tasks by their ids to use these flags".to_owned()),
            BadRequest::Staged { id } => (Kind::Refused, format!("`gt convoy launch {id}` starts it")),
            BadRequest::Empty { id, .. } => (Kind::Refused, format!("see what is in it with `gt bead dep tree {id}`")),
            BadRequest::Town(_) => {
                let BadRequest::Town(error) = bad else { unreachable!("it was just matched") };
                return error.into();
            }
        };
        Failure::new(kind, bad.to_string()).hint(hint)
    }
}

impl From<NotDone> for Failure {
    fn from(error: NotDone) -> Failure {
        let hint = match &error {
            NotDone::Town(_) => None,
            NotDone::Unsaved { .. } => {
                Some("commit what belongs to your work and remove the rest, then `gt done` again".to_owned())
            }
            NotDone::NoChanges { .. } => Some(
                "commit your work, then `gt done` again; if it cannot be done: `gt done --status failed --note WHY`"
                    .to_owned(),
            ),
            NotDone::TooLate { branch, .. } => {
                Some(format!("they stay on {branch}; if they are needed: `gt escalate \"merge {branch} too\"`"))
            }
            NotDone::NoRework { .. } => Some("say it without: `gt done --note WHY`".to_owned()),
            NotDone::TooLateToReplace { of, .. } => Some(format!(
                "ask for a person: `gt escalate \"{} is replaced by this\"`",
                if of.is_empty() { "what it was made for".to_owned() } else { of.join(", ") }
            )),
            NotDone::LoneSubmodule { submodule } => {
                Some(format!("push it first, as in `git -C {submodule} push origin HEAD:BRANCH`, then `gt done` again"))
            }
            NotDone::NoBranch { own, .. } => Some(format!("give your commits a branch: `git switch -C {own}`")),
            NotDone::NoWorktree { .. } => Some("ask for a person: `gt escalate \"my worktree is gone\"`".to_owned()),
        };
        match error {
            NotDone::Town(error) => error.into(),
            other => Failure { hint, ..Failure::new(Kind::Refused, other.to_string()) },
        }
    }
}

impl From<TownError> for Failure {
    fn from(error: TownError) -> Failure {
        let (kind, hint) = match &error {
            TownError::Store(error) => return error.into(),
            TownError::Config(config) => (Kind::Refused, config.hint()),
            TownError::NotInATown { .. } => (
                Kind::NotFound,
                Some("make one here with `gt init`, or name one with `--town DIR` or GT_TOWN".to_owned()),
            ),
            TownError::NoTownThere { dir } => {
                (Kind::NotFound, Some(format!("make one with `gt init {}`", dir.display())))
            }
            TownError::Nested { .. } => {
                (Kind::Refused, Some("use that town, or choose a directory outside it".to_owned()))
            }
            TownError::NoStore { root } => {
                let file = root.join(".gt/town.db");
                let hint = format!("bring back {}, or start empty with `gt init {}`", file.display(), root.display());
                (Kind::Unreachable, Some(hint))
            }
            TownError::NoSuchPath { .. } => (
                Kind::NotFound,
                Some("give the path of a git repository, or a URL such as https://… or git@host:path".to_owned()),
            ),
            TownError::NotARepository { path } => (
                Kind::Refused,
                Some(format!("make it one with `git -C {} init`, or give the top of a repository", path.display())),
            ),
            TownError::InsideRepository { top, .. } => {
                (Kind::Refused, Some(format!("a rig is a whole repository: give {}", top.display())))
            }
            TownError::OtherClone { path } => (
                Kind::Refused,
                Some(format!("move it away, or register it as it is: `gt rig add NAME {}`", path.display())),
            ),
            TownError::NoSuchBranch { path, .. } => {
                (Kind::Refused, Some(format!("see the branches with `git -C {} branch --all`", path.display())))
            }
            TownError::DaemonRuns { .. } => (
                Kind::Refused,
                Some("stop it with `gt daemon stop`, or wait for its end with `gt daemon run --wait`".to_owned()),
            ),
            TownError::NoGit { .. } => (Kind::Refused, Some("install git".to_owned())),
            TownError::BadLines { .. } => (
                Kind::Refused,
                Some("mend the lines, or leave `--strict` away to skip them; nothing was written".to_owned()),
            ),
            TownError::Git { .. } => {
                (Kind::Refused, Some("see that the address is right and that you may read it".to_owned()))
            }
            TownError::Runtime(_) | TownError::Terminal(_) => {
                (Kind::Unreachable, Some("see what is wrong with `gt doctor`".to_owned()))
            }
            TownError::Merge(_) => {
                (Kind::Refused, Some("see that git works there: `gt doctor`; nothing was recorded".to_owned()))
            }
            TownError::Worktree(_) => (Kind::Refused, None),
            TownError::Io { source, .. } => (Kind::Refused, Some(unwritten(source).to_owned())),
        };
        Failure { hint, ..Failure::new(kind, error.to_string()).caused_by(&error) }
    }
}

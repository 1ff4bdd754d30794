//! The lists that agents look after, `HEARTBEAT.md`: there or not, full or with nothing in them, as people have left them.

use std::fs;
use std::path::PathBuf;

use fastrand::Rng;
use gt_engine::daemon::Cause;
use gt_engine::jobs::FILE;

use super::AGENTS;
use super::book::Shared;
use crate::stage::Stage;

/// Lists that say nothing.
const EMPTY: [&str; 6] =
    ["", "# What to look after\n", "- \n* [ ]\n", "<!-- - is it up? -->\n", "\u{feff}\n\n", "```\n```\n"];

/// A list as it lies there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum List {
    Missing,
    /// Its directory is gone, too.
    Removed,
    Empty(&'static str),
    Full(String),
}

impl List {
    pub(super) fn draw(rng: &mut Rng, n: u32) -> List {
        match rng.u32(0..10) {
            0 | 1 => List::Missing,
            2 => List::Removed,
            3 | 4 => List::Empty(EMPTY[rng.usize(0..EMPTY.len())]),
            5 => List::Full(format!("<!-- not this -->\n# List\n- [ ] is thing {n} up?\n")),
            6 => List::Full(format!("{n} things need looking after")),
            _ => List::Full(format!("- is thing {n} up?\n- \n")),
        }
    }

    pub(super) fn is_there(&self) -> bool {
        matches!(self, List::Empty(_) | List::Full(_))
    }
}

/// Where the list of an agent lies. The first one's is the town's.
fn path_of(stage: &Stage, agent: &str) -> PathBuf {
    let root = stage.ground.town.root();
    if agent == AGENTS[0] { root.join(FILE) } else { root.join("agents").join(agent).join(FILE) }
}

/// How its list is called in reasons.
pub(super) fn shown(agent: &str) -> String {
    if agent == AGENTS[0] { FILE.to_owned() } else { format!("agents/{agent}/{FILE}") }
}

/// People leave the list of an agent so. Whoever watches the town's files hears of the town's own.
pub(super) fn leave(stage: &mut Stage, book: &Shared, agent: &str, list: &List) {
    let path = path_of(stage, agent);
    let dir = path.parent().expect("it lies in the town").to_owned();
    let is_own = agent != AGENTS[0];
    match list {
        List::Missing | List::Removed => {
            fs::remove_file(&path).unwrap_or_default();
            if is_own && *list == List::Removed {
                fs::remove_dir(&dir).unwrap_or_default();
            }
        }
        List::Empty(_) | List::Full(_) => {
            let text = if let List::Full(text) = list { text } else { empty_text(list) };
            fs::create_dir_all(&dir).expect("the town's directory can be written");
            crate::knobs::replace(&path, text);
        }
    }
    let step = stage.world().lock().step;
    book.lock().list(agent).push(step, list.clone());
    stage.world().tell(|| format!("the list of {agent} is now {list:?}"));
    if !is_own {
        stage.world().lock().post_all(|| Cause::HeartbeatWritten);
    }
}

fn empty_text(list: &List) -> &str {
    if let List::Empty(text) = list { text } else { "" }
}

//! The places in which runs are started, and the one list of them: every exercise becomes a test of its own in each.
//!
//! A new place describes itself as a [`Place`] and gets a line in [`in_every_place`]; what it cannot do it says there.

use gt_runtime::exec::ExecRuntime;
use gt_runtime::{Handle, Runtime, terminal};

use super::town::Town;

/// A place, as the exercises need to know it.
pub(crate) struct Place {
    /// What stands in a launch.
    pub launch: gt_runtime::Place,
    pub runtime: fn(&Town) -> Box<dyn Runtime>,
    /// How it names a run that is gone.
    pub gone: Handle,
    /// Why it cannot be tried on this machine.
    pub missing: fn() -> Option<&'static str>,
    /// What it adds to the environment of a run.
    pub own_variables: &'static [&'static str],
    /// A log has everything that a run printed, and not only the end of it.
    pub keeps_all_output: bool,
    /// What is left of a run in the foreground is ended by the place itself, when its first process ends.
    pub hangs_up: bool,
    /// How a run ended is known even when its keeper was killed before.
    pub sees_ends_without_keeper: bool,
}

pub(crate) const PROCESS: Place = Place {
    launch: gt_runtime::Place::Process,
    runtime: |town| Box::new(town.process_runtime()),
    gone: Handle { pid: 4_000_000, birth: 1 },
    missing: || None,
    own_variables: &[],
    keeps_all_output: true,
    hangs_up: false,
    sees_ends_without_keeper: false,
};

pub(crate) const TERMINAL: Place = Place {
    launch: gt_runtime::Place::Terminal,
    runtime: |town| Box::new(town.process_runtime()),
    gone: Handle { pid: 4_000_000, birth: 1 },
    missing: || (!terminal::is_installed()).then_some("tmux is not installed"),
    own_variables: &["SHELL", "TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION"],
    keeps_all_output: false,
    hangs_up: true,
    sees_ends_without_keeper: true,
};

/// Another directory, as if it were another host, through the project's example. It has no keeper, so it keeps the promises
/// of every runtime and takes no part in the exercises of the keeper; more of it is in `tests/exec`.
pub(crate) const ELSEWHERE: Place = Place {
    launch: gt_runtime::Place::Process,
    runtime: |town| {
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/exec/other-host");
        let argv = [program.into(), "--place".into(), town.path("other").into_os_string()];
        Box::new(ExecRuntime::new(argv.to_vec(), town.path("")))
    },
    gone: Handle::ELSEWHERE,
    missing: || None,
    own_variables: &[],
    keeps_all_output: true,
    hangs_up: false,
    sees_ends_without_keeper: false,
};

/// Makes a test of every exercise in every place that has a keeper.
macro_rules! in_every_place {
    ($($exercise:ident),+ $(,)?) => {
        $crate::it::place::tests_in!(process, PROCESS, $($exercise),+);
        $crate::it::place::tests_in!(terminal, TERMINAL, $($exercise),+);
    };
}

macro_rules! tests_in {
    ($name:ident, $place:ident, $($exercise:ident),+ $(,)?) => {
        mod $name {
            $(#[test]
            fn $exercise() {
                $crate::it::place::exercise(&$crate::it::place::$place, super::$exercise);
            })+
        }
    };
}

pub(crate) use {in_every_place, tests_in};

/// Tries it in a town of its own. Where that cannot be, it says so, and fails if `GT_TEST_SKIP_NOTHING` is set.
pub(crate) fn exercise(place: &'static Place, exercise: fn(&Town)) {
    if let Some(why) = (place.missing)() {
        assert!(std::env::var_os("GT_TEST_SKIP_NOTHING").is_none(), "cannot be skipped: {why}");
        eprintln!("SKIPPED: {why}");
        return;
    }
    exercise(&Town::new_in(place));
}

//! The binary with its agents in the hands of a program: what holds for plain processes holds there too. One test binary.
//!
//! The program is a copy of the project's example, changed as whoever copies it changes it: its place is here, so that
//! agents see what they see in the other tests. What the example does as it is, is in `it/exec.rs`.

/// Where the agents of these tests run.
mod place {
    use std::fs;
    use std::path::Path;

    pub(crate) fn config(town: &Path) -> String {
        let program = town.join("host/other-host");
        fs::create_dir(town.join("host")).expect("the town can be written");
        for (from, to) in [
            ("../../examples/exec/other-host", "other-host"),
            ("../../examples/exec/runs.py", "runs.py"),
            ("../../examples/exec/supervisor.py", "carrier.py"),
            ("tests/elsewhere/supervisor.py", "supervisor.py"),
            ("tests/elsewhere/place.py", "place.py"),
        ] {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(from);
            fs::copy(from, town.join("host").join(to)).expect("the example can be copied");
        }
        format!(
            "runtime = \"exec\"\nexec.command = [\"env\", \"PATH=/usr/bin:/bin\", {:?}, \"--place\", \".\"]\n",
            program.display().to_string()
        )
    }
    /// How a run ended is known to its supervisor, and to nobody when that was killed.
    pub(crate) const KEEPS_STATUS: bool = false;
    /// A supervisor that is killed takes its run with it: nobody else could bring its work home.
    pub(crate) const OUTLIVES_KEEPER: bool = false;
    /// What a run leaves behind is ended by its supervisor.
    pub(crate) const HANGS_UP: bool = false;
    /// Whether all that was printed is kept.
    pub(crate) const KEEPS_ALL: bool = true;
    /// As many beads as are many here: each call of the program costs more than a start does elsewhere.
    pub(crate) const MANY: usize = 60;
    /// How often a point is passed, at most, before somebody is killed there; for the same reason.
    pub(crate) const TIMES: usize = 1;
    /// What the product has of its patience, in percent: all of it is waited for where agents are processes.
    pub(crate) const PATIENCE: u8 = 20;
}

#[path = "it/fleet.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod fleet;
#[path = "it/town.rs"]
#[allow(dead_code, unused_imports, unused_macros, reason = "other tests use the rest of it")]
mod town;

#[path = "it/bad_agents.rs"]
mod bad_agents;
#[path = "it/caps.rs"]
mod caps;
#[path = "it/crash.rs"]
mod crash;

//! An upgrade under a live daemon and keeper of the last release, with the real old binary.
//!
//! Built with the feature `old-release` only, which `cargo xtask test --with-old-release` sets together with the variable
//! that names the old program. The town is the one that `it/upgrade/make.sh` makes and leaves running.

/// Where the agents of these tests run.
mod place {
    pub(crate) fn config(_town: &std::path::Path) -> String {
        "runtime = \"process\"\n".to_owned()
    }
}

#[allow(dead_code, reason = "written for `it.rs`, which uses more of it")]
#[path = "it/fleet.rs"]
mod fleet;
#[path = "it/upgrade/goes_on.rs"]
mod goes_on;
#[allow(dead_code, unused_imports, unused_macros, reason = "written for `it.rs`, which uses more of it")]
#[path = "it/town.rs"]
mod town;

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use fleet::Fleet;
use goes_on::goes_on;
use town::GT;

/// Names the old program; `cargo xtask test --with-old-release` sets it.
const VARIABLE: &str = "GT_TEST_OLD_RELEASE";

/// A town that a program of 0.1.0 has made and runs: daemon, keeper and agents live.
struct Live {
    fleet: Fleet,
    /// The program that the town's people and agents call `gt`.
    program: PathBuf,
}

impl Live {
    fn new() -> Live {
        let old = std::env::var_os(VARIABLE)
            .unwrap_or_else(|| panic!("{VARIABLE} is not set: run `cargo xtask test --with-old-release`"));
        let fleet = Fleet::unmade();
        let bin = fleet.home("bin");
        fs::create_dir(&bin).expect("the home is fresh");
        let program = bin.join("gt");
        for copy in [&program, &bin.join("gt-0.1.0")] {
            fs::copy(&old, copy).expect("the old program can be copied");
        }
        fs::write(fleet.home("make.sh"), include_str!("it/upgrade/make.sh")).expect("the home can be written");
        let mut make = fleet.town.command("bash");
        make.arg(fleet.home("make.sh")).arg(fleet.town.home()).stdin(Stdio::null());
        assert!(make.status().expect("bash is installed").success(), "make.sh failed");
        Live { fleet, program }
    }

    /// Puts the newer program in the place of the old one, as an upgrade does: under a new inode.
    fn replace_program(&self) {
        let newer = self.fleet.home("bin/gt.new");
        fs::copy(GT, &newer).expect("the program can be copied");
        fs::rename(&newer, &self.program).expect("it can be moved");
    }

    /// A command of the newer program by its new path, so that the daemon that it starts has it, too.
    fn gt(&self, arguments: &[&str]) -> std::process::Output {
        let mut command = self.fleet.town.command(&self.program);
        let output = command.args(arguments).stdin(Stdio::null()).output().expect("the program can be started");
        assert!(output.status.success(), "gt {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// What the old program would read or write is refused with what to do, and stays as it is.
    fn is_refused_by_the_old_program(&self) {
        let all = || {
            [["bead", "list", "--all", "--json"], ["activity", "--since", "0", "--json"]]
                .map(|words| self.gt(&words).stdout)
        };
        let before = all();
        let reads_and_writes: [&[&str]; 5] =
            [&["status"], &["create", "Late"], &["send", "dm:anna", "late"], &["daemon", "start"], &["daemon", "run"]];
        for arguments in reads_and_writes {
            let mut command = self.fleet.town.command(self.fleet.home("bin/gt-0.1.0"));
            let refused = command.args(arguments).stdin(Stdio::null()).output().expect("the program can be started");
            let said = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(refused.status.code(), Some(4), "gt {arguments:?}: {said}");
            assert!(
                said.contains("was written by a newer gt") && said.contains("hint: use the newer gt"),
                "gt {arguments:?}: {said}"
            );
        }
        assert!(before == all(), "a refused command changed nothing");
    }
}

#[test]
fn a_town_goes_on_under_the_live_daemon_keeper_and_agents_of_0_1_0() {
    let live = Live::new();
    let fleet = &live.fleet;
    let n_agents = fleet.agents().len();
    assert!(n_agents >= 3, "two beads and a turn are under way: {:?}", fleet.agents());
    let keepers = fleet.keepers();
    assert_eq!(keepers.len(), 1, "the old keeper runs");

    live.replace_program();
    let shown = live.gt(&["status"]);
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.contains("New defaults, shown once"), "{shown}");
    live.gt(&["daemon", "restart"]);
    goes_on(fleet);
    live.gt(&["daemon", "stop"]);
    live.is_refused_by_the_old_program();
}

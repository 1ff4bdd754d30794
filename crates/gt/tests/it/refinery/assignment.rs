//! What an agent finds in its worktree besides the work, and what git must never see of it. // SPEC P7

use std::fs;

use super::{fleet, git, merges, worktree};
use crate::fleet::Fleet;

/// Shows what it is given, adds everything there is, and is done.
const ADDS_ALL: &str = "cat .gasworks/ASSIGNMENT.md > \"$HOME/assignment-$GT_BEAD\"; gt prime > \"$HOME/prime-$GT_BEAD\"; \
    git status --porcelain > \"$HOME/status-$GT_BEAD\"; echo work > \"$GT_BEAD.txt\"; git add -A; \
    git -c user.name=it -c user.email=it@example.org commit --quiet --message=work; gt done 2> \"$HOME/said-$GT_BEAD\"";

fn read(fleet: &Fleet, name: &str) -> String {
    fs::read_to_string(fleet.home(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn the_assignment_lies_in_the_worktree_and_is_never_committed() {
    let fleet = fleet(ADDS_ALL);
    fleet.town.gt(["refinery", "pause"]).success();
    for bead in ["gt-a", "gt-b"] {
        super::work_on(&fleet, bead);
        assert_eq!(
            read(&fleet, &format!("assignment-{bead}")),
            read(&fleet, &format!("prime-{bead}")),
            "the same text"
        );
        assert!(read(&fleet, &format!("assignment-{bead}")).contains(&format!("Your work is {bead}")));
        assert_eq!(read(&fleet, &format!("status-{bead}")), "", "git does not see it");
        assert_eq!(read(&fleet, &format!("said-{bead}")), "", "and `gt done` does not mind it");
    }
    for merge in merges(&fleet) {
        let files = git(&fleet, &["ls-tree", "-r", "--name-only", &format!("refs/gt/merges/{merge}")]);
        assert!(!files.contains("gasworks"), "{files}");
    }
    let exclude = git(&fleet, &["rev-parse", "--path-format=absolute", "--git-path", "info/exclude"]);
    let excluded = fs::read_to_string(exclude).expect("git has such a file");
    assert_eq!(excluded.lines().filter(|line| *line == "/.gasworks/").count(), 1, "once is enough: {excluded}");
}

#[test]
fn a_repository_that_has_such_a_file_of_its_own_keeps_it() {
    let fleet = fleet(super::COMMITS);
    fs::create_dir(fleet.town.path("shop/.gasworks")).expect("it is new");
    fleet.town.write("shop/.gasworks/ASSIGNMENT.md", "theirs\n");
    fleet.town.git(&["-C", "shop", "add", "."]);
    fleet.town.git(&["-C", "shop", "commit", "--quiet", "--message=theirs"]);
    fleet.town.gt(["refinery", "pause"]).success();
    super::work_on(&fleet, "gt-a");
    assert_eq!(fs::read_to_string(worktree(&fleet).join(".gasworks/ASSIGNMENT.md")).expect("it is there"), "theirs\n");
    let id = &merges(&fleet)[0];
    let changed = git(&fleet, &["diff", "--name-only", "main", &format!("refs/gt/merges/{id}")]);
    assert_eq!(changed, "gt-a.txt");
}

//! Tests of the runtimes, of worktrees and of merging, with real processes and real git.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report; also in what tests share")]

mod it {
    mod flocks;
    mod keeper_life;
    mod leftovers;
    mod merging;
    mod place;
    mod privileges;
    mod promises;
    mod starting;
    mod terminals;
    mod town;
    mod worktrees;
}

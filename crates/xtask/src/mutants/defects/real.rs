//! What can be wrong with what only the real binary has: git, files, web hooks. `cargo xtask chaos --defect NAME` finds these.

use super::Defect;
use super::Towns::Chaos;

pub(super) const DEFECTS: &[Defect] = &[
    Defect::new(
        Chaos,
        "half-moved-checkout-left",
        "A checkout is moved though git is locked there, and what that leaves half-way is not settled.",
    ),
    Defect::new(Chaos, "ignored-file-overwritten", "A merge overwrites files of a person that git ignores."),
    Defect::new(
        Chaos,
        "unnoted-notice-sent-again",
        "A notice that was sent and could not be noted as sent is due again at once.",
    ),
    Defect::new(Chaos, "landing-untold", "Nobody is told that a convoy has landed."),
    Defect::new(Chaos, "unseen-end-is-a-death", "A turn that answered, and whose end nobody saw, is run again."),
    Defect::new(
        Chaos,
        "blank-config-counts",
        "An empty config counts, and an edit that drops gates and caps does so at once.",
    ),
    Defect::new(Chaos, "broken-config-ends-the-daemon", "The daemon exits when somebody breaks its config."),
    Defect::new(
        Chaos,
        "salvaged-worktrees-stay",
        "The worktree of a dead worker stays although its changes are salvaged.",
    ),
    Defect::new(
        Chaos,
        "salvage-is-for-people",
        "Every dead worktree is left to a person, also if its changes are salvaged.",
    ),
    Defect::new(
        Chaos,
        "merge-settings-read-once",
        "A merge goes by the settings of its beginning, though they were changed.",
    ),
];

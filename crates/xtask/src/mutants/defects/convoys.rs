//! What can be wrong with convoys: how they feed, land, are cancelled and swept.

use super::Defect;
use super::Towns::Beads;

pub(super) const DEFECTS: &[Defect] = &[
    Defect::new(Beads, "fed-though-held", "What was taken off the queue is put back for its convoy's sake."),
    Defect::new(Beads, "fed-though-staged", "A convoy that is staged feeds."),
    Defect::new(Beads, "parked-rig-fed", "What lies in a parked rig is put in line for its convoy."),
    Defect::new(Beads, "feeding-left-to-sweep", "What a close makes ready is not put in line before the next sweep."),
    Defect::new(Beads, "lands-with-open-beads", "A convoy lands though one of its beads is not closed."),
    Defect::new(Beads, "lands-twice", "A convoy that has landed lands again when one of its beads does."),
    Defect::new(Beads, "owned-lands-by-itself", "A convoy that its owner is to land lands by itself."),
    Defect::new(
        Beads,
        "laggard-never-looked-at-again",
        "A bead that kept its convoy from landing keeps it so for ever.",
    ),
    Defect::new(Beads, "cancel-withdraws-nobody", "What a cancelled convoy has put in line stays there."),
    Defect::new(Beads, "never-swept", "Nobody searches open convoys for what is stranded."),
    Defect::new(
        Beads,
        "sweep-waits-for-the-clock",
        "A clock that was set back holds up the sweep until it has caught up.",
    ),
];

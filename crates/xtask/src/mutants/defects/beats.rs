//! What can be wrong with heartbeats: their hours and lists, busy agents, alerts, and hearts that stop.

use super::Defect;
use super::Towns::Beats;

pub(super) const DEFECTS: &[Defect] = &[
    Defect::new(Beats, "active-hours-ignored", "A heartbeat comes outside of the active hours."),
    Defect::new(Beats, "late-heartbeat-starts", "A heartbeat that waited starts after the active hours."),
    Defect::new(Beats, "busy-agent-woken", "A heartbeat comes while its agent answers a message."),
    Defect::new(Beats, "empty-list-asked", "An agent is asked to look after a list with nothing in it."),
    Defect::new(Beats, "heartbeat-in-a-session", "A heartbeat is a message in a session of a person."),
    Defect::new(Beats, "heartbeat-keeps-its-place", "A heartbeat keeps the place that a message waits for."),
    Defect::new(Beats, "skipped-heartbeat-unrecorded", "A heartbeat that is left out has no record."),
    Defect::new(Beats, "heartbeat-ok-delivered", "That all is well is told."),
    Defect::new(Beats, "alert-told-again", "The same alert is told again within 24 hours."),
    Defect::new(Beats, "only-the-last-alert-known", "An alert is told again if another one was told in between."),
    Defect::new(Beats, "alert-told-once-for-ever", "An alert is not told again after 24 hours."),
    Defect::new(Beats, "stranded-alert-lost", "An alert for which there is no channel is lost."),
    Defect::new(Beats, "failing-heart-goes-on", "A heart goes on however often it fails."),
    Defect::new(Beats, "switched-off-heart-beats", "Hearts beat on when all are switched off."),
    Defect::new(Beats, "stopped-heart-beats-again", "A heart that a person has stopped beats again by itself."),
];

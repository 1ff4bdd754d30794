//! What can be wrong with sessions: messages, modes, lanes and deliveries.

use super::Defect;
use super::Towns::Sessions;

pub(super) const DEFECTS: &[Defect] = &[
    Defect::new(Sessions, "debounce-ignored", "What one sender says within the debounce is a turn for each message."),
    Defect::new(Sessions, "debounce-mixes-senders", "What several senders say within the debounce becomes one turn."),
    Defect::new(Sessions, "session-cap-exceeded", "One message more than the cap of a session waits."),
    Defect::new(Sessions, "newest-waiting-dropped", "Where the oldest that waits is to give way, the newest does."),
    Defect::new(Sessions, "full-session-takes-more", "A full session that is to refuse messages takes them."),
    Defect::new(
        Sessions,
        "throttle-ignored",
        "A group whose conversation fills its window still runs several turns at once.",
    ),
    Defect::new(Sessions, "full-window-unnoticed", "That a conversation fills its window is not noticed."),
    Defect::new(Sessions, "repeated-message-taken-again", "A message that comes again under its name is taken again."),
    Defect::new(Sessions, "interrupt-leaves-what-runs", "A message that interrupts leaves what runs alone."),
    Defect::new(
        Sessions,
        "interrupt-overtakes-what-ends",
        "A message that interrupts starts before what gives way to it has ended.",
    ),
    Defect::new(Sessions, "stop-hides-what-is-left", "`/stop` does not say what goes on all the same."),
    Defect::new(Sessions, "stop-takes-the-newest", "`/stop` stops the newest turn that runs, not the oldest."),
    Defect::new(Sessions, "stop-all-leaves-what-waits", "`/stopall` stops what runs and leaves the queue."),
    Defect::new(Sessions, "stop-spares-nested-work", "What a stopped run has asked others goes on."),
    Defect::new(Sessions, "killed-turn-tried-for-ever", "A turn whose runs are killed is started again however often."),
    Defect::new(Sessions, "failed-turn-tried-again", "A turn that failed by itself is started again."),
    Defect::new(
        Sessions,
        "last-word-not-believed",
        "A run that was killed after its last record counts as killed, and is made again.",
    ),
    Defect::new(
        Sessions,
        "rate-limited-turn-fails",
        "A turn whose agent has met a rate limit fails instead of waiting.",
    ),
    Defect::new(Sessions, "lane-limit-exceeded", "A lane takes one turn more than its limit."),
    Defect::new(Sessions, "session-agent-ignored", "The agent that was set for a session is not asked."),
    Defect::new(Sessions, "conversation-shared", "Turns that run beside each other go on with one conversation."),
    Defect::new(Sessions, "turn-deadline-forgotten", "The daemon does not wake up when a debounce is over."),
    Defect::new(
        Sessions,
        "reason-forgets-the-session",
        "Of a turn that waits for others of its session it is said that nothing is in its way.",
    ),
    Defect::new(Sessions, "drop-not-told", "Nothing is delivered for a turn that gave way to newer messages."),
    Defect::new(
        Sessions,
        "unnoted-delivery-sent-again",
        "What has arrived and could not be noted is sent again by the same daemon.",
    ),
    Defect::new(
        Sessions,
        "receiver-not-left-in-peace",
        "A receiver that asks for a pause is asked again before that is over.",
    ),
    Defect::new(Sessions, "delivery-given-up-at-once", "What did not arrive is given up after the first try."),
    Defect::new(Sessions, "passing-refusal-is-final", "A receiver that refuses for the moment is not asked again."),
    Defect::new(
        Sessions,
        "delivery-deadline-forgotten",
        "Whoever delivers does not wake up for what is to be tried again.",
    ),
    Defect::new(Sessions, "answers-overtake", "The newest answer of a session is delivered first."),
];

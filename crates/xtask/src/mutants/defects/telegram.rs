//! What can be wrong with Telegram: what is read, who may write, and what is answered.

use super::Defect;
use super::Towns::Telegram;

pub(super) const DEFECTS: &[Defect] = &[
    Defect::new(Telegram, "offset-before-store", "An update that could not be stored counts as read."),
    Defect::new(Telegram, "update-taken-again", "An update that comes again is taken again."),
    Defect::new(Telegram, "stranger-let-in", "Anybody may write to the bot."),
    Defect::new(
        Telegram,
        "bot-api-not-left-in-peace",
        "Telegram is asked again before the pause that it wants is over.",
    ),
    Defect::new(Telegram, "group-answered-in-private", "What is asked in a group is answered to whoever asked, alone."),
    Defect::new(Telegram, "parts-sent-again", "Parts of an answer that have arrived are sent again with the others."),
    Defect::new(
        Telegram,
        "delivery-waits-for-the-clock",
        "After the clock was set back, a delivery that is retried waits until the clock has caught up.",
    ),
];

//! What an agent answers to a heartbeat, and the list that it is given: the same bytes as both.
//!
//! An alert says something, and only what the agent wrote; a task in a list is never overlooked; a word that asks for
//! silence is heard. The first line may be the number of characters that are allowed beside the token.

use gt_core::heartbeat::{Verdict as Judged, is_empty, judge, prompt, wants_silence};

use crate::fuzz::{Target, Verdict};

pub(super) const TARGET: Target = Target { name: "heartbeat", check, tokens: TOKENS };

const ACK_CHARS: usize = 300;

const TOKENS: &[&str] = &[
    "HEARTBEAT_OK",
    "**HEARTBEAT_OK**",
    "<b>HEARTBEAT_OK</b>",
    "HEARTBEAT_OK.",
    "NO_REPLY",
    "no_reply",
    "<b>",
    "</b>",
    "<br/>",
    "<img src=\"x\">",
    "&nbsp;",
    "**",
    "_",
    "`",
    "...",
    "🔥",
    "# Head\n",
    "- [ ]",
    "- task\n",
    "```",
    "~~~",
    "<!--",
    "-->",
    "// note",
    "\n",
    "0\n",
];

fn check(bytes: &[u8]) -> Verdict {
    let lossy = String::from_utf8_lossy(bytes);
    let first = lossy.lines().next().and_then(|line| Some((line, line.parse().ok()?)));
    let (max, text) = first.map_or((ACK_CHARS, &lossy[..]), |(line, max)| (max, &lossy[line.len()..]));
    silence_is_heard(text);
    tasks_are_seen(text);
    Verdict::accepted_if(is_alert(text, max))
}

fn is_alert(reply: &str, max: usize) -> bool {
    let judged = judge(reply, max);
    assert_eq!(judge(&format!("\n {reply}\t\n"), max), judged, "space around {reply:?} changes nothing");
    match &judged {
        Judged::Alert(text) => {
            assert!(!text.is_empty() && text.trim() == text, "{text:?} is said");
            let mut left = reply.chars();
            assert!(text.chars().all(|wanted| left.any(|c| c == wanted)), "{text:?} is not what was written");
            assert!(reply.contains("HEARTBEAT_OK") || text == reply.trim(), "without the token all of it is delivered");
            assert_eq!(judge(reply, 0), judged, "what is too long for {max} characters is too long for none");
        }
        Judged::AllWell => {
            assert_eq!(judge(reply, max.saturating_add(1)), Judged::AllWell, "{reply:?} with more beside it");
            let says_something = reply.contains(char::is_alphanumeric) && !reply.contains(['<', '&']);
            assert!(!says_something || reply.contains("HEARTBEAT_OK"), "{reply:?} is kept back");
        }
    }
    judged != Judged::AllWell
}

fn silence_is_heard(reply: &str) {
    assert!(wants_silence(&format!("{reply} no_Reply")) && wants_silence(&format!("NO_REPLY\n{reply}")));
    let is_there = reply.to_ascii_uppercase().contains("NO_REPLY");
    assert!(is_there || !wants_silence(reply), "nobody asked for silence in {reply:?}");
}

fn tasks_are_seen(file: &str) {
    let is_nothing = is_empty(file);
    assert!(prompt(file).trim_end().ends_with(file.trim()), "the agent is given the whole list");
    assert!(!is_empty(&format!("- Check email\n{file}")), "a task stands before {file:?}");
    let unmarked = file.trim_start_matches('\u{feff}');
    assert_eq!(is_empty(&format!("\n# Head\n\n{unmarked}")), is_nothing, "a heading says nothing: {file:?}");
    assert_eq!(is_empty(&file.replace('\n', "\r\n")), is_nothing, "how lines end does not matter: {file:?}");
    let half: Vec<&str> = file.split('\n').take(file.split('\n').count() / 2).collect();
    assert!(!is_nothing || is_empty(&half.join("\n")), "the first lines of nothing are nothing: {file:?}");
}

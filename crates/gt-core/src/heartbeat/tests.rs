//! Heartbeats without anybody being woken: prompt, repetition, silence.

mod checklist;
mod hours;
mod verdict;

use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn the_prompt_has_the_rules_and_the_list() {
    insta::assert_snapshot!(prompt("\n# Every day\n\n- Is the shop up?\n\n"), @"
    This is a heartbeat: you were woken by the clock, nobody wrote to you. Follow the list below, HEARTBEAT.md, strictly, and do nothing else. Do not infer or repeat tasks from earlier conversations.

    If nothing needs attention, reply HEARTBEAT_OK and nothing else. That there is no news is not worth telling. If something does need attention, reply with what is to be told, without HEARTBEAT_OK.

    --- HEARTBEAT.md ---
    # Every day

    - Is the shop up?
    ");
}

#[test]
fn the_answer_that_the_prompt_asks_for_is_the_one_that_is_understood() {
    assert!(prompt("").contains("reply HEARTBEAT_OK and nothing else"));
    assert_eq!(judge("HEARTBEAT_OK", 0), Verdict::AllWell);
}

#[test]
fn the_same_text_within_a_day_is_repeated() {
    let said = at("2026-03-01T08:00:00Z");
    for (text, now, wanted) in [
        ("The disk is full", "2026-03-01T08:30:00Z", true),
        ("\n The disk is full\t", "2026-03-01T08:30:00Z", true),
        ("The disk is full", "2026-03-02T07:59:59.999Z", true),
        ("The disk is full", "2026-03-02T08:00:00Z", false),
        ("The disk is full.", "2026-03-01T08:30:00Z", false),
        ("the disk is full", "2026-03-01T08:30:00Z", false),
        ("The disk  is full", "2026-03-01T08:30:00Z", false),
        // The clock was set back an hour, or had been years ahead.
        ("The disk is full", "2026-03-01T07:00:00Z", true),
        ("The disk is full", "2024-03-01T08:00:00Z", false),
    ] {
        assert_eq!(is_repeated(text, Some((" The disk is full\n", said)), at(now)), wanted, "{text:?} at {now}");
        assert!(!is_repeated(text, None, at(now)), "nothing was said before");
    }
}

#[test]
fn the_ends_of_time_are_no_repetition() {
    assert!(!is_repeated("x", Some(("x", Timestamp::MIN)), Timestamp::MAX));
    assert!(!is_repeated("x", Some(("x", Timestamp::MAX)), Timestamp::MIN));
}

#[test]
fn an_agent_asks_for_silence_with_one_word_anywhere() {
    for reply in [
        "NO_REPLY",
        "NO_REPLY - x",
        "x NO_REPLY",
        "no_reply",
        "No_Reply",
        "NO_REPLY_",
        "_NO_REPLY_",
        "**NO_REPLY**",
        "x\nNO_REPLY\ny",
        "ärger:NO_REPLY…",
        "NO_REPLYING, or rather NO_REPLY",
        // An emoji is no letter.
        "🦞NO_REPLY🦞",
    ] {
        assert!(wants_silence(reply), "{reply:?}");
    }
}

#[test]
fn what_only_looks_like_it_is_delivered() {
    for reply in [
        "NO_REPLYING",
        "XNO_REPLY",
        "no reply needed",
        "",
        " ",
        "NO_REPL",
        "NO-REPLY",
        "öNO_REPLY",
        "NO_REPLYß",
        "NO_REPLY2",
    ] {
        assert!(!wants_silence(reply), "{reply:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_word_is_found_in_any_text_that_leaves_it_alone(before in "\\PC*", after in "\\PC*", upper in any::<bool>()) {
        let word = if upper { "NO_REPLY" } else { "no_reply" };
        let (apart, joined) = (format!("{before} {word} {after}"), format!("{}x{word}", before.replace('_', "-")));
        prop_assert!(wants_silence(&apart) && !wants_silence(&joined));
    }

    #[test]
    fn the_prompt_of_any_file_ends_with_it(file in "\\PC*") {
        let prompt = prompt(&file);
        prop_assert!(prompt.trim_end().ends_with(file.trim()));
    }
}

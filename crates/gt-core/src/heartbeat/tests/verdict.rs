//! The token in every dress, and what is left of an answer without it.

use proptest::prelude::*;

use super::{Verdict, judge};

fn alert(text: &str) -> Verdict {
    Verdict::Alert(text.to_owned())
}

fn check(reply: &str, ack_max_chars: usize, wanted: &Verdict) {
    assert_eq!(judge(reply, ack_max_chars), *wanted, "{reply:?} with {ack_max_chars}");
}

/// The token alone, however it is dressed.
const DRESSED: &[&str] = &[
    "HEARTBEAT_OK",
    " HEARTBEAT_OK\n",
    "**HEARTBEAT_OK**",
    "*HEARTBEAT_OK*",
    "_HEARTBEAT_OK_",
    "__HEARTBEAT_OK__",
    "***HEARTBEAT_OK***",
    "~~HEARTBEAT_OK~~",
    "`HEARTBEAT_OK`",
    "**`HEARTBEAT_OK`**",
    "```\nHEARTBEAT_OK\n```",
    "<b>HEARTBEAT_OK</b>",
    "<strong>HEARTBEAT_OK</strong>",
    "<code>HEARTBEAT_OK</code>",
    "<i>HEARTBEAT_OK</i>",
    "<B>HEARTBEAT_OK</B>",
    "<p><b>HEARTBEAT_OK</b></p>",
    "<p>\n  HEARTBEAT_OK\n</p>",
    "<br/>HEARTBEAT_OK<br />",
    "<b>HEARTBEAT_OK",
    "HEARTBEAT_OK**",
    "&nbsp;HEARTBEAT_OK&nbsp;",
    "<b>&nbsp;HEARTBEAT_OK</b>&nbsp;",
    "\u{a0}HEARTBEAT_OK\u{a0}",
    "HEARTBEAT_OK.",
    "HEARTBEAT_OK!!!",
    "HEARTBEAT_OK---",
    "HEARTBEAT_OK ...!",
    "**HEARTBEAT_OK.**",
    "**HEARTBEAT_OK**.",
    "`HEARTBEAT_OK`!",
    "<b>HEARTBEAT_OK!</b>",
    "HEARTBEAT_OK HEARTBEAT_OK",
    "HEARTBEAT_OK\n\n**HEARTBEAT_OK**",
    "HEARTBEAT_OK. HEARTBEAT_OK.",
    "\"HEARTBEAT_OK\"",
    "(HEARTBEAT_OK)",
    "- HEARTBEAT_OK",
    "> **HEARTBEAT_OK**",
];

#[test]
fn the_token_alone_is_all_well_in_any_dress() {
    for reply in DRESSED {
        check(reply, 300, &Verdict::AllWell);
    }
}

#[test]
fn the_dress_of_the_token_is_no_text_beside_it() {
    for reply in DRESSED {
        check(reply, 0, &Verdict::AllWell);
    }
}

#[test]
fn the_cases_of_the_strip_table_that_decide_about_delivery() {
    for reply in [
        // v2 delivers an empty answer; there is nothing in it that could be.
        "",
        "  ",
        "\n\t\u{a0}",
        "HEARTBEAT_OK 🦞",
        "🦞 HEARTBEAT_OK",
        "ALERT HEARTBEAT_OK",
        "There is nothing todo, so i should respond with HEARTBEAT_OK !!!",
        "HEARTBEAT_OK\nAll quiet.",
        "All quiet.\nHEARTBEAT_OK",
    ] {
        check(reply, 300, &Verdict::AllWell);
    }
}

#[test]
fn the_cases_of_the_strip_table_that_say_what_is_left() {
    // With no text allowed beside the token, whatever is left is delivered.
    for (reply, wanted) in [
        ("HEARTBEAT_OK hello", "hello"),
        ("hello HEARTBEAT_OK", "hello"),
        ("<code>HEARTBEAT_OK</code> all good", "all good"),
        ("I should not respond HEARTBEAT_OK.", "I should not respond."),
        ("All clear. HEARTBEAT_OK", "All clear."),
    ] {
        check(reply, 0, &alert(wanted));
    }
}

#[test]
fn a_token_in_the_middle_changes_nothing() {
    // v2 takes a token anywhere for all well; the seed delivers everything when it is at neither end.
    for reply in [
        "hello HEARTBEAT_OK there",
        "x HEARTBEAT_OK y",
        "I ran the checks.\nI would say HEARTBEAT_OK, but the disk is full.\nPlease look.",
        "The disk is **full**, not HEARTBEAT_OK **at all**",
        // Five characters of punctuation are more than a flourish.
        "hello HEARTBEAT_OK-----",
        "hello HEARTBEAT_OK......",
        // A tag with attributes can show something.
        "hello HEARTBEAT_OK <img src=\"disk.png\">",
    ] {
        check(reply, 300, &alert(reply));
        check(&format!("\n {reply}\t"), 300, &alert(reply));
    }
}

#[test]
fn what_is_not_the_token_is_delivered() {
    // One case, one spelling, a word of its own.
    for reply in [
        "hello",
        "heartbeat_ok",
        "heartbeat_ok all good",
        // Nor is it one with a backslash in it.
        r"HEARTBEAT\_OK",
        "Heartbeat_OK",
        "HEARTBEAT_OKAY",
        "HEARTBEAT_OK_NOT",
        "NOT_HEARTBEAT_OK",
        "XHEARTBEAT_OK",
        "HEARTBEAT_OK2",
        "HEARTBEAT_OKé",
        "HEARTBEAT OK",
        "HEARTBEAT-OK",
        "HEARTBEAT_OKHEARTBEAT_OK",
        "🔥",
        "<https://shop.example>",
        "<img src=\"disk.png\">",
    ] {
        check(reply, 300, &alert(reply));
    }
}

#[test]
fn an_answer_of_nothing_but_dress_has_nothing_to_deliver() {
    for reply in ["**", "```\n```", "<br>", "<p>&nbsp;</p>", "&nbsp;"] {
        check(reply, 0, &Verdict::AllWell);
    }
}

#[test]
fn text_beside_the_token_is_counted_in_characters() {
    // v1 counts bytes, in which 300 letters of some languages are far more.
    for letter in ["A", "ü", "界", "🦞"] {
        for (template, wanted_template) in [
            ("HEARTBEAT_OK x", "x"),
            ("x HEARTBEAT_OK", "x"),
            ("x\nHEARTBEAT_OK.", "x."),
            ("<b>HEARTBEAT_OK</b>: x", "x"),
        ] {
            check(&template.replace('x', &letter.repeat(300)), 300, &Verdict::AllWell);
            let long = letter.repeat(301);
            check(&template.replace('x', &long), 300, &alert(&wanted_template.replace('x', &long)));
        }
    }
}

#[test]
fn the_space_around_the_text_is_not_counted_and_that_within_it_is() {
    check("HEARTBEAT_OK \n\n a b \n\n HEARTBEAT_OK", 3, &Verdict::AllWell);
    check("HEARTBEAT_OK \n\n a b \n\n HEARTBEAT_OK", 2, &alert("a b"));
}

#[test]
fn what_is_delivered_keeps_its_lines_and_its_own_dress() {
    for (reply, wanted) in [
        ("HEARTBEAT_OK\n\n- one\n- **two**\n", "- one\n- **two**"),
        ("- one\n- **two**\n\nHEARTBEAT_OK", "- one\n- **two**"),
        ("HEARTBEAT_OK one HEARTBEAT_OK", "one"),
        ("HEARTBEAT_OK one HEARTBEAT_OK two", "one HEARTBEAT_OK two"),
        ("HEARTBEAT_OK: one", "one"),
        ("HEARTBEAT_OK! one", "one"),
        ("**HEARTBEAT_OK**\n**one** two", "**one** two"),
        ("**HEARTBEAT_OK.** one", "one"),
        // The dress of a whole text is not the token's own.
        ("**HEARTBEAT_OK but one**", "**but one**"),
        ("**one HEARTBEAT_OK**", "**one**"),
        ("<p>one HEARTBEAT_OK</p>", "<p>one</p>"),
        ("<p><b>HEARTBEAT_OK</b> one</p>", "<p>one</p>"),
        ("one **HEARTBEAT_OK**!", "one!"),
        ("one HEARTBEAT_OK 🔥", "one 🔥"),
        // One full stop is enough.
        ("All clear. HEARTBEAT_OK.", "All clear."),
        ("**All clear.** HEARTBEAT_OK", "**All clear.**"),
        ("`one` HEARTBEAT_OK", "`one`"),
        ("HEARTBEAT_OK `one`", "`one`"),
    ] {
        check(reply, 0, &alert(wanted));
    }
}

/// Texts in which tokens and dress are likely.
fn some_reply() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => Just("HEARTBEAT_OK".to_owned()),
        2 => "[ \n.!*_`~<>&;/-]{1,3}",
        2 => prop::sample::select(vec!["<b>", "</b>", "<code>", "</code>", "<br/>", "&nbsp;", "**", "```"]).prop_map(str::to_owned),
        2 => "[a-z ]{1,8}",
        1 => "\\PC{0,4}",
    ];
    prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

fn is_subsequence(part: &str, whole: &str) -> bool {
    let mut left = whole.chars();
    part.chars().all(|wanted| left.any(|c| c == wanted))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_alert_says_something_and_only_what_the_agent_wrote(reply in some_reply(), max in 0_usize..20) {
        if let Verdict::Alert(text) = judge(&reply, max) {
            prop_assert!(!text.trim().is_empty() && text.trim() == text, "{:?} of {:?}", text, reply);
            prop_assert!(is_subsequence(&text, &reply), "{:?} of {:?}", text, reply);
            // Dress behind a dropped token stays, and was not beside what stands before it now.
            let said = text.trim_matches(|c: char| !c.is_alphanumeric());
            prop_assert!(reply.contains(said) || reply.contains(['<', '&']), "{:?} of {:?} in one piece", said, reply);
        }
    }

    #[test]
    fn without_the_token_everything_that_says_something_is_delivered(reply in "[\\PC&&[^<&]]*[a-z0-9][\\PC&&[^<&]]*", max in 0_usize..1_000) {
        prop_assert_eq!(judge(&reply, max), alert(reply.trim()));
    }

    #[test]
    fn only_tokens_are_missing_from_an_alert(reply in some_reply(), max in 0_usize..20) {
        if let Verdict::Alert(text) = judge(&reply, max) {
            let plain = |text: &str| letters(&text.replace("HEARTBEAT_OK", "").replace("&nbsp;", ""));
            let tagless = ["<b>", "</b>", "<code>", "</code>"].iter().fold(reply, |reply, tag| reply.replace(tag, ""));
            prop_assert!(is_subsequence(&plain(&tagless), &letters(&text)), "{:?} of {:?}", text, tagless);
        }
    }

    #[test]
    fn what_is_well_with_less_beside_it_is_well_with_more(reply in some_reply(), max in 0_usize..20) {
        if judge(&reply, max) == Verdict::AllWell {
            prop_assert_eq!(judge(&reply, max + 1), Verdict::AllWell);
        }
    }

    #[test]
    fn space_around_an_answer_changes_nothing(reply in some_reply(), max in 0_usize..20) {
        prop_assert_eq!(judge(&format!("\n {reply}\t\n"), max), judge(&reply, max));
    }

    #[test]
    fn a_token_in_front_of_anything_says_that_it_was_acknowledged(text in "\\PC{0,40}") {
        prop_assert_eq!(judge(&format!("HEARTBEAT_OK {text}"), 40), Verdict::AllWell);
        prop_assert_eq!(judge(&format!("{text} HEARTBEAT_OK"), 40), Verdict::AllWell);
    }
}

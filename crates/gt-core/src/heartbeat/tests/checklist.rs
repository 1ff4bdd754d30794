//! What in a `HEARTBEAT.md` is something to do.

use proptest::prelude::*;

use super::is_empty;

#[test]
fn there_is_nothing_to_do() {
    for file in [
        "",
        " \n\t\r\n\u{a0}",
        "\u{feff}",
        "\u{feff}# HEARTBEAT.md\n",
        // v1 takes a heading with text for a task; it is one that says what no line below it asks for.
        "# HEARTBEAT.md",
        "## a\n### b",
        "#",
        "###   ",
        "#\ttab",
        "  # indented",
        "####### many",
        "# Mac\r# lines\r",
        "# Windows\r\n\r\n- \r\n",
        "-",
        "- ",
        "*",
        "* ",
        "+",
        "- [ ]",
        "- [x]",
        "- [X] ",
        "* [ ]",
        "+ []",
        "  - [ ]",
        "# Tasks\n\n- [ ]\n- [x]\n- \n",
        "```",
        "```\n```",
        "```markdown\n```",
        "~~~\n~~~",
        "```sh\n# keep this file empty\n#\n\n# to skip heartbeats\n```",
        "```js\n// nothing yet\n//\n```",
        "```\n<!-- nothing yet -->\n- [ ]\n```",
        "````\n```\n````",
        // A block that nobody closed goes on to the end.
        "```\n# only this",
        "<!-- Check email -->",
        "<!-- a --><!-- b -->",
        "<!--\n- Check email\n-->",
        "<!--\nCheck email\n\n# and this\n--> <!-- more\nof it -->\n",
        "<!-->\n<!--->",
        "- <!-- nothing yet -->",
        "# Head <!--\nCheck email\n-->",
        // So does a comment, as it is shown.
        "<!-- Check email\n- and the shop",
        "<!-- ```\n- Check email\n``` -->",
    ] {
        assert!(is_empty(file), "{file:?}");
    }
}

#[test]
fn there_is_something_to_do() {
    for file in [
        "Check email",
        "- Check email",
        "* Check email",
        "+ Check email",
        "- [ ] Check email",
        "- [x] Check email",
        "1. Check email",
        "> Check email",
        "# HEARTBEAT.md\n\nLook at the shop.",
        "# HEARTBEAT.md\n- [ ]\n- [ ] Look at the shop.",
        "#TODO",
        "#TODO look at the shop",
        "##TODO",
        "-1 degrees is an alarm",
        "- [y]",
        "--",
        "\\# no heading",
        "```\nLook at the shop.\n```",
        "```sh\n# comment\ncurl shop\n```",
        "```\n- Check email\n```",
        "```\n# comment\n```\nLook at the shop.",
        "~~~\n```\n~~~\nLook at the shop.",
        // What looks like the end of a block is shorter than its beginning, or has more to say.
        "````\n```\nLook at the shop.\n````",
        "```\n``` x\n```",
        // No block, but a text that is shown as code.
        "```Look at the shop.```",
        "// out here this is text",
        "```\n//share/shop\n```",
        "<!-- a --> Check email",
        "Check <!-- the\nspam --> email",
        "<!-- a\nb --> Check email",
        "<!-- a -->\nCheck email",
        "- <!-- a --> Check email",
        // In a block these open no comment that would hide what follows.
        "```\n<!--\n```\nCheck email",
        "```\n# <!--\n```\nCheck email",
        "-->",
        "# Mac\rCheck email\r",
    ] {
        assert!(!is_empty(file), "{file:?}");
    }
}

fn some_line() -> impl Strategy<Value = String> {
    let known = vec!["", "# a", "- ", "- [ ]", "```", "~~~", "<!--", "-->", "<!-- a -->", "// a", "task", "- task"];
    prop_oneof![8 => prop::sample::select(known).prop_map(str::to_owned), 1 => "[#<>!`~\\[\\] x-]{0,8}", 1 => "\\PC{0,6}"]
}

fn some_file() -> impl Strategy<Value = String> {
    prop::collection::vec(some_line(), 0..8).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_task_in_front_is_seen_whatever_follows(file in some_file()) {
        let with_a_task = format!("- Check email\n{file}");
        prop_assert!(!is_empty(&with_a_task));
    }

    #[test]
    fn blank_lines_and_headings_in_front_change_nothing(file in some_file()) {
        prop_assert_eq!(is_empty(&format!("\n# Head\n\n{file}")), is_empty(&file));
    }

    #[test]
    fn a_file_that_is_empty_has_nothing_in_its_first_lines_either(file in some_file(), n_lines in 0_usize..8) {
        let first: Vec<&str> = file.split('\n').take(n_lines).collect();
        prop_assert!(!is_empty(&file) || is_empty(&first.join("\n")));
    }

    #[test]
    fn how_lines_end_does_not_matter(file in some_file()) {
        prop_assert_eq!(is_empty(&file.replace('\n', "\r\n")), is_empty(&file));
    }

    #[test]
    fn any_text_is_judged(file in "(?s).*") {
        prop_assert!(!is_empty(&file) || is_empty(file.trim()));
    }
}

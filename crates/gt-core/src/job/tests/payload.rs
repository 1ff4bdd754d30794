//! What a job does, and how the store keeps it.

use proptest::prelude::*;

use super::*;

fn message(text: &str, session: Option<&str>, agent: Option<&str>) -> Payload {
    Payload::Message { text: text.to_owned(), session: session.map(str::to_owned), agent: agent.map(str::to_owned) }
}

fn sling(words: &[&str]) -> Payload {
    Payload::Sling { words: words.iter().map(|word| (*word).to_owned()).collect() }
}

fn run(command: &str) -> Payload {
    Payload::Run { command: command.to_owned() }
}

fn beat(agent: &str) -> Payload {
    let (agent, target) = (agent.to_owned(), "last".to_owned());
    Payload::Heartbeat(Beat { agent, target, ack_max_chars: 300, hours: None, channels: Vec::new() })
}

#[test]
fn what_the_store_keeps_what_people_read_and_what_is_started() {
    let payloads = [
        message("Look at the inbox", None, None),
        message("Say \"hi\"\n", Some("mayor"), Some("claude")),
        sling(&["gt-a1b2", "shop"]),
        sling(&[]),
        run("make backup > log 2>&1"),
        beat("claude"),
        Payload::parse("?"),
    ];
    let told = payloads.each_ref().map(|payload| {
        let (words, command) = (payload.words(), payload.command());
        format!("{}: {}\n  {words:?}\n  {command:?}\n", payload.kind(), payload.text())
    });
    insta::assert_snapshot!(told.concat(), @r#"
    message: {"message":{"text":"Look at the inbox"}}
      "Look at the inbox"
      None
    message: {"message":{"text":"Say \"hi\"\n","session":"mayor","agent":"claude"}}
      "Say \"hi\"\n"
      None
    sling: {"sling":{"words":["gt-a1b2","shop"]}}
      "gt sling gt-a1b2 shop"
      Some(Gt(["sling", "gt-a1b2", "shop"]))
    sling: {"sling":{"words":[]}}
      "gt sling "
      Some(Gt(["sling"]))
    run: {"run":{"command":"make backup > log 2>&1"}}
      "make backup > log 2>&1"
      Some(Shell("make backup > log 2>&1"))
    heartbeat: {"heartbeat":{"agent":"claude","target":"last","ack_max_chars":300}}
      "heartbeat of claude"
      None
    unreadable: ?
      "?"
      None
    "#);
    for payload in payloads {
        assert_eq!(Payload::parse(&payload.text()), payload);
    }
}

#[test]
fn what_is_not_there_is_none_and_what_is_unknown_is_passed_over() {
    for (text, wanted) in [
        (r#"{"message":{"text":"hi"}}"#, message("hi", None, None)),
        (r#"{"message":{"text":"hi","session":null}}"#, message("hi", None, None)),
        (r#"{"heartbeat":{"agent":"claude","target":"last","ack_max_chars":300}}"#, beat("claude")),
        (r#" { "run" : { "command" : "x", "shell" : "zsh" } } "#, run("x")),
    ] {
        assert_eq!(Payload::parse(text), wanted, "{text}");
    }
}

#[test]
fn what_nobody_can_read_is_kept_as_it_is_and_starts_nothing() {
    for text in [
        "",
        "null",
        "make backup",
        "{}",
        r#""run""#,
        r#"{"run":"make"}"#,
        r#"{"run":{}}"#,
        r#"{"run":{"command":1}}"#,
        r#"{"run":{"command":"a"},"sling":{"words":[]}}"#,
        r#"{"run":{"command":"a"}} b"#,
        r#"{"Run":{"command":"a"}}"#,
        r#"{"sling":{"words":"a"}}"#,
        r#"{"broken":"a"}"#,
        r#"{"Broken":"a"}"#,
        r#"{"heartbeat":{"agent":"a","target":"last","ack_max_chars":-1}}"#,
    ] {
        let payload = Payload::parse(text);
        assert_eq!(payload, Payload::Broken(text.to_owned()));
        assert_eq!((payload.kind(), payload.text(), payload.words()), ("unreadable", text.to_owned(), text.to_owned()));
        assert_eq!(payload.command(), None);
    }
    let deep = "[".repeat(100_000);
    assert_eq!(Payload::parse(&deep), Payload::Broken(deep));
}

/// What is started is kept with a turn, and has to come back from there too.
#[test]
fn a_command_comes_back_as_it_was() {
    for payload in [run("make backup > log"), sling(&["gt-1", "--agent", "a \"b\"\n"])] {
        let command = payload.command().expect("it starts something");
        let kept = serde_json::to_string(&command).expect("texts can be written");
        assert_eq!(serde_json::from_str::<Command>(&kept).expect("what we write we can read"), command, "{kept}");
    }
}

fn some_payload() -> impl Strategy<Value = Payload> {
    let text = || "(?s).{0,20}";
    let message = (text(), proptest::option::of(text()), proptest::option::of(text()));
    prop_oneof![
        message.prop_map(|(text, session, agent)| Payload::Message { text, session, agent }),
        prop::collection::vec(text(), 0..4).prop_map(|words| Payload::Sling { words }),
        text().prop_map(|command| Payload::Run { command }),
        (text(), text(), any::<usize>(), proptest::option::of(text()), prop::collection::vec(text(), 0..3)).prop_map(
            |(agent, target, ack_max_chars, hours, channels)| {
                Payload::Heartbeat(Beat { agent, target, ack_max_chars, hours, channels })
            }
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_payload_comes_back_from_the_store_on_one_line(payload in some_payload()) {
        prop_assert!(!payload.text().contains('\n'));
        prop_assert_eq!(Payload::parse(&payload.text()), payload);
    }

    #[test]
    fn any_text_means_the_same_once_it_was_read(
        text in r#"(?s).{0,40}|\{"(run|sling|message)":\{"(command|words|text)":("a"|\[\]|1)\}\}"#,
    ) {
        let payload = Payload::parse(&text);
        prop_assert_eq!(Payload::parse(&payload.text()), payload);
    }
}

//! What an entry means, and what of it is shown.

use super::{Kind, Target, host};

#[test]
fn an_entry_is_the_desktop_an_address_or_a_command() {
    let kind = |text: &str| Target::parse(text).kind;
    assert_eq!(kind("desktop"), Kind::Desktop);
    assert_eq!(kind("http://localhost:1/x"), Kind::Web { url: "http://localhost:1/x".to_owned() });
    assert_eq!(kind("https://x"), Kind::Web { url: "https://x".to_owned() });
    for command in ["./tell.sh --all", "desktop-notifier", "curl -d @- http://x", "ftp://x"] {
        assert_eq!(kind(command), Kind::Command { command: command.to_owned() });
    }
}

#[test]
fn an_entry_is_remembered_by_a_word_that_tells_nothing() {
    let keys = ["desktop", "http://a/token", "http://a/token2"].map(|text| Target::parse(text).key);
    assert!(keys.iter().all(|key| key.len() == 16 && key.chars().all(|c| c.is_ascii_hexdigit())), "{keys:?}");
    assert!(keys[0] != keys[1] && keys[1] != keys[2]);
    assert_eq!(Target::parse("desktop").key, keys[0]);
}

#[test]
fn of_an_address_only_its_host_is_shown() {
    let cases = [
        ("https://hooks.example.org/T0/secret", "https://hooks.example.org"),
        ("http://ada:secret@localhost:8080/x?key=secret", "http://localhost:8080"),
        ("http://", "http://"),
    ];
    for (url, wanted) in cases {
        assert_eq!(host(url), wanted);
    }
}

//! Chat turns of real agents: an answer, what it used, and a conversation that goes on. // SPEC L5

use gt_model::{Answer, Script, TOKENS};
use serde_json::Value;

use crate::cli::{Cli, Rights};
use crate::workshop::Workshop;

/// A script that knows a conversation by a word of its first message only.
fn script() -> Script {
    let say = |words: &str| Answer::Text(words.to_owned());
    Script::work().with("red-kite", vec![say("The first answer."), say("The second answer.")])
}

fn trace(shop: &Workshop) -> Value {
    shop.gt(&["trace", "show", "dm:a", "--json"]).json()
}

fn check(cli: Cli) {
    let shop = Workshop::open(script(), Rights::All);
    shop.fleet.set("sessions.debounce_ms", "0");
    let send = |text: &str| shop.gt(&["send", "dm:a", text, "--agent", cli.name(), "--wait"]).stdout;
    assert_eq!(send("Have you seen the red-kite?").trim(), "The first answer.", "{}", shop.logs());
    let first = trace(&shop);
    // Without the word of the first message, only a conversation that goes on finds its script.
    assert_eq!(send("And now?").trim(), "The second answer.", "{}", shop.logs());
    let second = trace(&shop);
    assert_eq!((&first["resumed"], &second["resumed"]), (&Value::Null, &first["conversation"]));
    assert_eq!(first["conversation"], second["conversation"], "it is the same one");
    for trace in [&first, &second] {
        assert_eq!(trace["status"], "completed", "{trace}");
        assert_eq!(trace["usage"]["tokens_in"], TOKENS.0, "{trace}");
        assert_eq!(trace["usage"]["tokens_out"], TOKENS.1, "{trace}");
    }
    let asked = shop.questions("red-kite");
    assert!(asked[1].contains("And now?") && asked[1].contains("The first answer."), "{asked:?}");
}

#[test]
fn claude_answers_and_goes_on_with_its_conversation() {
    check(Cli::Claude);
}

#[test]
fn codex_answers_and_goes_on_with_its_conversation() {
    check(Cli::Codex);
}

/// The agent has forgotten, or was installed anew: the message is answered all the same.
fn check_lost(cli: Cli) {
    let shop = Workshop::open(script(), Rights::All);
    shop.fleet.set("sessions.debounce_ms", "0");
    let send = |text: &str| shop.gt(&["send", "dm:a", text, "--agent", cli.name(), "--wait"]).stdout;
    send("Have you seen the red-kite?");
    let own = shop.fleet.home(cli.name());
    for below in ["projects", "sessions", "state"] {
        std::fs::remove_dir_all(own.join(below)).unwrap_or_default();
    }
    for entry in std::fs::read_dir(&own).expect("it is there").flatten() {
        if entry.file_name().to_string_lossy().contains(".sqlite") {
            std::fs::remove_file(entry.path()).unwrap_or_default();
        }
    }
    assert_eq!(send("The red-kite again").trim(), "The second answer.", "{}", shop.logs());
    assert_eq!(trace(&shop)["resumed"], Value::Null);
}

#[test]
fn claude_that_has_lost_a_conversation_begins_a_new_one() {
    check_lost(Cli::Claude);
}

#[test]
fn codex_that_has_lost_a_conversation_begins_a_new_one() {
    check_lost(Cli::Codex);
}

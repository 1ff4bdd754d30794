//! Secrets of channels are shown nowhere: not in listings, answers, errors, events or the daemon's log.

use std::fs;

use super::double::{Answer, Double};
use super::talking;

const SECRETS: [&str; 3] = ["12345:hush-token", "hush-secret", "hush-path"];

fn assert_hushed(what: &str, text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{what} shows {secret}:\n{text}");
    }
}

#[test]
fn tokens_secrets_and_paths_are_shown_nowhere() {
    let double = Double::new(|_, _| {
        // One that tells what it was asked.
        let said = r#"{"ok":false,"error_code":401,"description":"no bot12345:hush-token"}"#;
        Answer::Status(401, "", said.to_owned())
    });
    let fleet = talking();
    let url = format!("{}/hush-path", double.url);
    let settings = [
        ("channels.tg.kind", "telegram"),
        ("channels.tg.url", double.url.as_str()),
        ("channels.tg.token", SECRETS[0]),
        ("channels.dead.kind", "telegram"),
        ("channels.dead.url", "http://127.0.0.1:9"),
        ("channels.dead.token", SECRETS[0]),
        ("channels.hook.kind", "webhook"),
        ("channels.hook.url", url.as_str()),
        ("channels.hook.secret", SECRETS[1]),
    ];
    for (key, value) in settings {
        assert_hushed(key, &fleet.town.gt(["config", "set", key, value]).success().stdout);
        assert_hushed(key, &fleet.town.gt(["config", "get", key]).success().stdout);
        assert_hushed(key, &fleet.town.gt(["config", "get", key, "--json"]).success().stdout);
    }
    assert_hushed("a list", &fleet.town.gt(["config", "list"]).success().stdout);
    assert_hushed("a list", &fleet.town.gt(["config", "list", "--json"]).success().stdout);
    fleet.town.gt(["daemon", "start"]).success();
    fleet.town.gt(["send", "dm:anna", "one", "--channel", "hook"]).success();
    fleet.town.gt(["send", "dm:anna", "two", "--channel", "tg", "--to", "7"]).success();
    let events = fleet.until_events("delivery.failed", None, 2);
    let log = fleet.town.path(".gt/daemon.log");
    let log = || fs::read_to_string(&log).expect("there is a log");
    for words in
        ["the channel dead: messages cannot be read: ", "the channel tg: messages cannot be read: ", "given up turn-1"]
    {
        fleet.until_seen(&format!("`{words}` in the log"), || log().contains(words));
    }
    assert_hushed("the log", &log());
    for event in events {
        assert_hushed("an event", &event.to_string());
    }
    let broken = fleet.town.read("town.toml") + "\n[channels.other]\ntoken = \"12345:hush-token\n";
    fleet.town.write("town.toml", broken);
    assert_hushed("a refusal", &fleet.town.gt(["config", "list"]).stderr);
}

#[test]
fn what_is_read_from_the_environment_is_shown_as_its_name_and_found_there() {
    let fleet = talking();
    fleet.set("channels.tg.token", "env:BOT_TOKEN");
    let answer = fleet.town.gt(["config", "get", "channels.tg.token"]);
    assert_eq!(answer.success().stdout, "env:BOT_TOKEN\n");
    let double = Double::new(|_, _| Answer::Never);
    fleet.set("channels.tg.url", &double.url);
    fleet.set("channels.tg.kind", "telegram");
    fleet.start_daemon_with(&[("BOT_TOKEN", "1:from-outside")]);
    let requests = double.until("the first call", |requests| !requests.is_empty());
    assert_eq!(requests[0].path, "/bot1:from-outside/getMe");
}

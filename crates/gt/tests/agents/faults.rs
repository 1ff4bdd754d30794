//! What goes wrong with real agents: they may not act, hit a limit, die, or lose the model in the middle of an answer.

use gt_model::{Answer, Script, WORK};
use serde_json::Value;

use crate::cli::{Cli, Rights};
use crate::fleet::kill;
use crate::workshop::Workshop;

/// A script in which an agent at this bead first meets something else and then is told to work.
fn first(answer: Answer) -> Script {
    let answers = [vec![answer], Script::working()].concat();
    Script::default().with("gt-a", answers)
}

#[test]
fn claude_that_may_not_act_is_not_believed_when_it_says_done() {
    let (shop, end) = one_that_may_not_act_is_not_believed(Cli::Claude);
    let said = shop.said(&end);
    let result = said.iter().rfind(|line| line["type"] == "result").expect("it said how it ended");
    assert_eq!(result["is_error"], false, "{result}");
    assert_eq!(result["permission_denials"][0]["tool_name"], "Bash", "{result}");
}

#[test]
fn codex_that_may_not_act_is_not_believed_when_it_says_done() {
    let (shop, end) = one_that_may_not_act_is_not_believed(Cli::Codex);
    let said = shop.said(&end);
    assert!(said.iter().any(|line| line["type"] == "turn.completed"), "{said:?}");
    assert!(shop.questions("gt-a")[1].contains("approval policy is Never"), "{}", shop.logs());
}

/// An agent without a terminal cannot ask: it is refused, goes on, and ends as if all were well.
fn one_that_may_not_act_is_not_believed(cli: Cli) -> (Workshop, Value) {
    let answers = vec![Answer::Escalate(WORK.to_owned()), Answer::Text("All done.".to_owned())];
    let shop = Workshop::open(Script::default().with("gt-a", answers), Rights::Few);
    shop.fleet.set("witness.redispatch_cooldown", "1h");
    shop.sling(cli, "gt-a");
    let end = shop.await_end("gt-a", 1);
    assert_eq!((&end["data"]["outcome"], &end["data"]["exit_code"]), (&"died".into(), &0.into()), "{}", shop.logs());
    assert_eq!(shop.committed(&end, "gt-a.txt"), None);
    assert_eq!(shop.status_of("gt-a"), "open");
    (shop, end)
}

#[test]
fn a_limit_of_claude_holds_it_up_until_the_time_it_tells_and_costs_nothing() {
    let (shop, limited) = a_limit_holds_up_and_costs_nothing(Cli::Claude, Cli::Codex);
    let said = shop.said(&limited);
    let event = said.iter().find(|line| line["type"] == "rate_limit_event").expect("it tells of the limit");
    let resets_at = event["rate_limit_info"]["resetsAt"].as_i64().expect("it tells when");
    let events = shop.fleet.town.events();
    let held_up = events.iter().find(|event| event["type"] == "scheduler.held_up").expect("it was held up");
    let until: jiff::Timestamp = held_up["data"]["until"].as_str().expect("a time").parse().expect("a time");
    assert_eq!(until.as_second(), resets_at, "{held_up}");
}

#[test]
fn a_limit_of_codex_holds_it_up_and_costs_nothing() {
    let (shop, limited) = a_limit_holds_up_and_costs_nothing(Cli::Codex, Cli::Claude);
    let reason = limited["data"]["reason"].as_str().expect("a text");
    assert!(reason.contains("hit your usage limit"), "{}", shop.logs());
}

fn a_limit_holds_up_and_costs_nothing(cli: Cli, other: Cli) -> (Workshop, Value) {
    let script = first(Answer::Limit(3600)).with("gt-b", Script::working());
    let shop = Workshop::open(script, Rights::All);
    shop.sling(cli, "gt-a");
    let limited = shop.assert_limit_is_survived(cli, other);
    assert_eq!(limited["data"]["exit_code"], 1, "{limited}");
    (shop, limited)
}

#[test]
fn a_limit_that_has_passed_is_forgotten_by_itself() {
    let shop = Workshop::open(first(Answer::Limit(2)), Rights::All);
    shop.sling(Cli::Claude, "gt-a");
    assert_eq!(shop.await_end("gt-a", 1)["data"]["outcome"], "rate-limited", "{}", shop.logs());
    assert_eq!(shop.await_end("gt-a", 2)["data"]["outcome"], "completed", "{}", shop.logs());
    assert_eq!(shop.merged("gt-a", "gt-a.txt").as_deref(), Some("gt-a\n"));
    shop.fleet.assert_at_rest(&["gt-a".to_owned()]);
}

/// Two beads of which one meets a model that does not know the key, the other one that has too much to do. Each has an
/// account of its own, so that neither holds up the other.
fn refused(cli: Cli) -> [Vec<Value>; 2] {
    let script = Script::default().with("gt-a", vec![Answer::Unauthorised]).with("gt-b", vec![Answer::Overloaded]);
    let shop = Workshop::open(script, Rights::All);
    [("gt-a", "auth"), ("gt-b", "overloaded")].map(|(bead, failure)| {
        shop.fleet.hold(&[bead]);
        shop.gt(&["sling", bead, "--agent", cli.name(), "--account", bead]);
        let end = shop.await_end(bead, 1);
        let data = &end["data"];
        assert_eq!((&data["outcome"], &data["failure"]), (&"agent-unable".into(), &failure.into()), "{end}");
        assert_eq!(data["exit_code"], 1, "{end}");
        shop.said(&end)
    })
}

/// The line that tells how it ended calls itself a success; what tells the truth is beside that word.
#[test]
fn claude_tells_a_refused_key_from_a_model_that_is_busy() {
    let said = refused(Cli::Claude);
    for (said, error, status) in [(&said[0], "authentication_failed", 401), (&said[1], "overloaded", 529)] {
        let retry = said.iter().find(|line| line["subtype"] == "api_retry").expect("it tries again");
        assert_eq!((&retry["error"], &retry["error_status"]), (&error.into(), &status.into()), "{retry}");
        let result = said.iter().rfind(|line| line["type"] == "result").expect("it says how it ended");
        assert_eq!((&result["is_error"], &result["api_error_status"]), (&true.into(), &status.into()), "{result}");
        assert_eq!(result["subtype"], "success", "{result}");
    }
}

#[test]
fn codex_tells_a_refused_key_from_a_model_that_is_busy() {
    let said = refused(Cli::Codex);
    for (said, words) in [(&said[0], "401 Unauthorized"), (&said[1], "at capacity")] {
        let failed = said.iter().rfind(|line| line["type"] == "turn.failed").expect("it tells that it failed");
        let message = failed["error"]["message"].as_str().expect("a text");
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_claude_that_is_killed_is_followed_by_another() {
    one_that_is_killed_is_followed_by_another(Cli::Claude);
}

#[test]
fn a_codex_that_is_killed_is_followed_by_another() {
    one_that_is_killed_is_followed_by_another(Cli::Codex);
}

/// Only the first process is killed. Codex has a second one, which would stay.
fn one_that_is_killed_is_followed_by_another(cli: Cli) {
    let shop = Workshop::open(first(Answer::Hang), Rights::All);
    shop.fleet.set("witness.redispatch_cooldown", "0s");
    shop.sling(cli, "gt-a");
    shop.await_questions("gt-a", 1);
    let agents = shop.fleet.agents();
    let leader = agents.iter().find(|agent| agent.leads).expect("it works");
    kill(leader.pid);
    let killed = shop.await_end("gt-a", 1);
    assert_eq!((&killed["data"]["outcome"], &killed["data"]["signal"]), (&"died".into(), &9.into()), "{killed}");
    let end = shop.await_end("gt-a", 2);
    assert_eq!(end["data"]["outcome"], "completed", "{}", shop.logs());
    let told = &shop.questions("gt-a")[1];
    assert!(told.contains("Once before a worker ended without finishing this."), "it does not know of the first");
    assert_eq!(shop.merged("gt-a", "gt-a.txt").as_deref(), Some("gt-a\n"));
    shop.fleet.assert_at_rest(&["gt-a".to_owned()]);
    assert!(!shop.fleet.agents().iter().any(|agent| agent.run == leader.run), "something of the killed run is left");
}

#[test]
fn an_answer_that_is_cut_off_is_the_business_of_claude() {
    an_answer_that_is_cut_off_costs_no_run(Cli::Claude);
}

#[test]
fn an_answer_that_is_cut_off_is_the_business_of_codex() {
    an_answer_that_is_cut_off_costs_no_run(Cli::Codex);
}

fn an_answer_that_is_cut_off_costs_no_run(cli: Cli) {
    let shop = Workshop::open(first(Answer::Cut), Rights::All);
    shop.sling(cli, "gt-a");
    let end = shop.await_end("gt-a", 1);
    assert_eq!(end["data"]["outcome"], "completed", "{}", shop.logs());
    assert!(shop.questions("gt-a").len() >= 3, "it did not ask again");
    assert_eq!(shop.merged("gt-a", "gt-a.txt").as_deref(), Some("gt-a\n"));
    shop.fleet.assert_at_rest(&["gt-a".to_owned()]);
}

//! A bead goes from sling to merged, by the hand of a real agent.

use gt_model::{Script, TOKENS};

use crate::cli::{Cli, Rights};
use crate::workshop::Workshop;

#[test]
fn claude_takes_a_bead_from_sling_to_merged() {
    takes_a_bead_from_sling_to_merged(Cli::Claude);
}

#[test]
fn codex_takes_a_bead_from_sling_to_merged() {
    takes_a_bead_from_sling_to_merged(Cli::Codex);
}

fn takes_a_bead_from_sling_to_merged(cli: Cli) {
    let shop = Workshop::open(Script::work(), Rights::All);
    shop.fleet.set("default_agent", cli.name());
    shop.fleet.hold(&["gt-a"]);
    shop.gt(&["sling", "gt-a"]);
    let end = shop.await_end("gt-a", 1);
    assert_eq!(
        (&end["data"]["outcome"], &end["data"]["exit_code"]),
        (&"completed".into(), &0.into()),
        "{}",
        shop.logs()
    );
    assert_eq!(shop.merged("gt-a", "gt-a.txt").as_deref(), Some("gt-a\n"));
    let questions = shop.questions("");
    assert_eq!(questions.len(), 2, "one command, one end of the turn");
    assert!(questions[0].contains("Your work is gt-a"), "the agent was not told its work");
    assert!(questions[1].contains("gt-a is done"), "the agent did not see that its work is over");
    shop.assert_shows_use(cli, &end, (2 * TOKENS.0, 2 * TOKENS.1));
    shop.fleet.assert_at_rest(&["gt-a".to_owned()]);
}

#[test]
fn both_work_side_by_side_within_the_cap() {
    let shop = Workshop::open(Script::work(), Rights::All);
    shop.fleet.set("scheduler.max_polecats", "2");
    let work = [(Cli::Claude, "gt-a"), (Cli::Codex, "gt-b"), (Cli::Claude, "gt-c"), (Cli::Codex, "gt-d")];
    let beads = work.map(|(cli, bead)| {
        shop.sling(cli, bead);
        bead.to_owned()
    });
    shop.fleet.until_done(&beads);
    for bead in &beads {
        assert_eq!(shop.merged(bead, &format!("{bead}.txt")), Some(format!("{bead}\n")));
    }
    shop.fleet.assert_at_rest(&beads);
}

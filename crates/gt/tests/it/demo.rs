//! `gt demo`: what it shows is true.

use std::fs;

use crate::town::{Town, snapshot};

#[test]
fn the_demo_shows_ten_beads_through_three_agents_and_leaves_nothing_behind() {
    let town = Town::unmade();
    let answer = town.gt(["demo"]);
    answer.success();
    let left: Vec<String> =
        fs::read_dir(town.home()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(left, ["town"], "the demo left something behind");
    assert!(fs::read_dir(town.root()).unwrap().next().is_none());
    let demo_dir = |line: &str| line.split('/').find(|part| part.starts_with("gt-demo-")).map(str::to_owned);
    let dir = answer.stdout.lines().find_map(demo_dir).unwrap();
    let dir = dir.trim_end_matches(|c: char| !c.is_alphanumeric());
    let text = answer.to_string().replace(dir, "[DEMO]");
    let (before, after) = text.split_once("$ gt daemon start\n").expect("a daemon is started");
    snapshot!("demo", before);
    let (work, rest) = after.split_once("\n\n").expect("the work ends");
    assert_worked(work);
    assert!(rest.contains("shop/Toast"), "{rest}");
    let summary = rest.lines().find(|line| line.starts_with("10 beads done by 3 polecats in")).expect("a summary");
    assert!(summary.ends_with(", never more than 3 at once."), "{summary}");
}

/// Every bead was started once and ended once, at most three at a time, none before what it waits for.
fn assert_worked(lines: &str) {
    const WAITS: [(&str, &str); 3] =
        [("Write the server", "Design the schema"), ("Test the page", "Style the page"), ("Release", "Draw the logo")];
    let place = |sign: &str, title: &str| {
        let is_it = |line: &&str| line.trim().starts_with(sign) && line.contains(title);
        let found: Vec<usize> = lines.lines().enumerate().filter(|(_, line)| is_it(line)).map(|(at, _)| at).collect();
        assert_eq!(found.len(), 1, "{sign} {title}:\n{lines}");
        found[0]
    };
    for (later, earlier) in WAITS {
        assert!(place("▶", later) > place("▶", earlier), "{later} waits for {earlier}:\n{lines}");
    }
    let mut n_live = 0;
    for line in lines.lines() {
        n_live += if line.trim().starts_with('▶') { 1 } else { -1 };
        assert!((0..=3).contains(&n_live), "{lines}");
    }
    assert_eq!((n_live, lines.lines().count()), (0, 20), "{lines}");
}

#[test]
fn the_demo_can_be_kept_and_ignores_the_town_around() {
    let town = Town::with_rig();
    let before = town.state();
    let answer = town.call(["demo", "--keep"]).env("GT_TOWN", town.root()).env("GT_RIG", "shop").run();
    answer.success();
    assert_eq!(town.state(), before);
    let kept =
        answer.stdout.lines().last().unwrap().trim_start_matches("The town is at ").trim_end_matches('.').to_owned();
    town.call(["--town", &kept, "doctor"]).run().success();
}

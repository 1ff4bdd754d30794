//! Lanes by default, by config and by environment.

use super::*;

#[test]
fn the_defaults_are_those_of_the_seed() {
    let lanes: Vec<(String, usize)> = Lanes::default().iter().map(|(name, limit)| (name.to_owned(), limit)).collect();
    let wanted = [("cron", 1), ("delegate", 100), ("main", 2), ("subagent", 4)];
    assert_eq!(lanes, wanted.map(|(name, limit)| (name.to_owned(), limit)));
}

#[test]
fn an_unknown_lane_is_main() {
    let lanes = Lanes::default().with([("custom".to_owned(), 8)]);
    assert_eq!((lanes.resolve("nonexistent"), lanes.limit("nonexistent")), ("main", 2));
    assert_eq!((lanes.resolve("custom"), lanes.limit("custom")), ("custom", 8));
    assert_eq!(lanes.resolve(POLECAT), "main", "the scheduler's lane takes no turns");
}

#[test]
fn the_lane_of_the_scheduler_takes_no_limit_for_turns() {
    let lanes = Lanes::default().with([(POLECAT.to_owned(), 8), ("empty".to_owned(), 0)]);
    assert_eq!(lanes, Lanes::default());
    assert_eq!((lanes.has(POLECAT), lanes.resolve(POLECAT), lanes.limit(POLECAT)), (false, MAIN, 2));
}

#[test]
fn the_environment_overrides_with_numbers_above_zero() {
    for (ours, theirs, wanted) in [
        (Some("7"), None, 7),
        (None, Some("9"), 9),
        (Some("7"), Some("9"), 7),
        (Some("0"), Some("9"), 9),
        (Some("-1"), None, 2),
        (Some("many"), None, 2),
        (Some(" 3 "), None, 3),
        (None, None, 2),
    ] {
        let lanes = Lanes::default().overridden(|name| match name {
            "GT_LANE_MAIN" => ours.map(str::to_owned),
            "GOCLAW_LANE_MAIN" => theirs.map(str::to_owned),
            _ => None,
        });
        assert_eq!(lanes.limit("main"), wanted, "{ours:?} {theirs:?}");
    }
    let own = Lanes::default().with([("my-lane".to_owned(), 8)]);
    let own = own.overridden(|name| (name == "GT_LANE_MY_LANE").then(|| "5".to_owned()));
    assert_eq!(own.limit("my-lane"), 5);
}

//! Which failures are tried again, how soon, and by what chance.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const EXIT_CODES: [Option<i32>; 12] = [
    None,
    Some(0),
    Some(1),
    Some(2),
    Some(3),
    Some(4),
    Some(5),
    Some(-1),
    Some(125),
    Some(126),
    Some(127),
    Some(128 + 9),
];

/// Whether it is tried again: `yes`, `-`, or but for these exit codes.
fn verdict(outcome: Option<Outcome>, class: Option<FailureClass>, is_gt: bool) -> String {
    let is_worth = |exit_code: Option<i32>| Setback { outcome, class, exit_code, is_gt }.is_worth_retrying();
    let not: Vec<String> = EXIT_CODES.into_iter().filter(|code| !is_worth(*code)).map(code_word).collect();
    match not.len() {
        0 => "yes".to_owned(),
        n if n == EXIT_CODES.len() => "-".to_owned(),
        _ => format!("not {}", not.join(" ")),
    }
}

fn code_word(code: Option<i32>) -> String {
    code.map_or("none".to_owned(), |code| code.to_string())
}

/// Every outcome with every class, exit code and kind of program.
#[test]
fn failures_that_would_be_the_same_again_are_not_tried_again() {
    let classes = [None].into_iter().chain(FailureClass::ALL.map(Some));
    let row = |head: &str, cell: &dyn Fn(Option<FailureClass>) -> String| {
        let cells: Vec<String> = classes.clone().map(|class| format!(" {:<17}", cell(class))).collect();
        format!("{head:<19}{}", cells.concat()).trim_end().to_owned()
    };
    let mut told = vec![row("", &|class| class.map_or("no class", FailureClass::as_str).to_owned())];
    for outcome in [None].into_iter().chain(Outcome::ALL.map(Some)) {
        for (is_gt, who) in [(false, "other"), (true, "gt")] {
            let head = format!("{:<13} {who}", outcome.map_or("never ran", Outcome::as_str));
            told.push(row(&head, &|class| verdict(outcome, class, is_gt)));
        }
    }
    insta::assert_snapshot!(told.join("\n"), @"
                        no class          other             context           overloaded        auth              billing           rate-limit
    never ran     other -                 -                 -                 -                 -                 -                 -
    never ran     gt    -                 -                 -                 -                 -                 -                 -
    completed     other yes               yes               -                 yes               -                 -                 yes
    completed     gt    yes               yes               -                 yes               -                 -                 yes
    step-done     other yes               yes               -                 yes               -                 -                 yes
    step-done     gt    yes               yes               -                 yes               -                 -                 yes
    handed-off    other yes               yes               -                 yes               -                 -                 yes
    handed-off    gt    yes               yes               -                 yes               -                 -                 yes
    failed        other not 126 127       not 126 127       -                 not 126 127       -                 -                 not 126 127
    failed        gt    not 1 2 3 126 127 not 1 2 3 126 127 -                 not 1 2 3 126 127 -                 -                 not 1 2 3 126 127
    deferred      other yes               yes               -                 yes               -                 -                 yes
    deferred      gt    yes               yes               -                 yes               -                 -                 yes
    died          other yes               yes               -                 yes               -                 -                 yes
    died          gt    yes               yes               -                 yes               -                 -                 yes
    not-started   other yes               yes               -                 yes               -                 -                 yes
    not-started   gt    yes               yes               -                 yes               -                 -                 yes
    stopped       other -                 -                 -                 -                 -                 -                 -
    stopped       gt    -                 -                 -                 -                 -                 -                 -
    timed-out     other -                 -                 -                 -                 -                 -                 -
    timed-out     gt    -                 -                 -                 -                 -                 -                 -
    lost          other yes               yes               -                 yes               -                 -                 yes
    lost          gt    yes               yes               -                 yes               -                 -                 yes
    rate-limited  other yes               yes               -                 yes               -                 -                 yes
    rate-limited  gt    yes               yes               -                 yes               -                 -                 yes
    agent-unable  other yes               yes               -                 yes               -                 -                 yes
    agent-unable  gt    yes               yes               -                 yes               -                 -                 yes
    ");
}

fn secs(seconds: f64) -> SignedDuration {
    SignedDuration::from_secs_f64(seconds)
}

#[test]
fn waiting_doubles_up_to_half_a_minute_a_quarter_more_or_less() {
    for (n, least, middle, most) in [
        (0, 1.5, 2.0, 2.5),
        (1, 3.0, 4.0, 5.0),
        (2, 6.0, 8.0, 10.0),
        (3, 12.0, 16.0, 20.0),
        (4, 22.5, 30.0, 37.5),
        (5, 22.5, 30.0, 37.5),
        (61, 22.5, 30.0, 37.5),
        (62, 22.5, 30.0, 37.5),
        (63, 22.5, 30.0, 37.5),
        (64, 22.5, 30.0, 37.5),
        (u32::MAX, 22.5, 30.0, 37.5),
    ] {
        let waits = [0.0, 0.5, 1.0].map(|chance| retry_after(n, chance));
        assert_eq!(waits, [secs(least), secs(middle), secs(most)], "{n}");
        assert_eq!([-1.0, 2.0].map(|chance| retry_after(n, chance)), [secs(least), secs(most)], "{n}");
    }
}

#[test]
fn chance_is_the_same_whenever_it_is_asked_for() {
    let slot = at("2026-01-01T00:00:00Z");
    // By any daemon, on any day.
    assert_eq!([1, 2].map(|attempt| (chance(1, slot, attempt) * 1e6) as u32), [639_132, 345_640]);
}

/// Jobs that fail together, as they do when a machine is overloaded, shall not come back together.
#[test]
fn chance_differs_from_job_to_job_slot_to_slot_and_try_to_try() {
    let mut seen = BTreeSet::new();
    let mut n_in = [0_u32; 10];
    for job in 1..=50 {
        for n in 0..50 {
            for attempt in 1..=4 {
                let chance = chance(job, at("2026-01-01T00:00:00Z") + SignedDuration::from_mins(n), attempt);
                assert!((0.0..1.0).contains(&chance));
                seen.insert(chance.to_bits());
                n_in[(chance * 10.0) as usize] += 1;
            }
        }
    }
    assert_eq!(seen.len(), 10_000);
    assert!(n_in.iter().all(|n| (900..1_100).contains(n)), "a thousand in each tenth, more or less: {n_in:?}");
}

/// Ten jobs that were made one after another, of which all fail at the same time.
#[test]
fn neighbours_do_not_come_back_together() {
    let slot = at("2026-01-01T00:00:00Z");
    for first in 1..=100 {
        let tenths: BTreeSet<u8> = (first..first + 10).map(|job| (chance(job, slot, 1) * 10.0) as u8).collect();
        assert!(tenths.len() >= 5, "from job {first} on: {tenths:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn later_tries_and_larger_chances_wait_no_less(
        n in prop_oneof![0..8_u32, any::<u32>()],
        low in 0.0..=1.0_f64,
        high in 0.0..=1.0_f64,
    ) {
        prop_assert!(retry_after(n, low) <= retry_after(n.saturating_add(1), low));
        prop_assert!(retry_after(n, low.min(high)) <= retry_after(n, low.max(high)));
    }

    #[test]
    fn any_wait_is_within_its_bounds(n in any::<u32>(), chance in prop_oneof![0.0..=1.0_f64, -1e9..1e9_f64]) {
        let whole = (2.0 * 2_f64.powi(n.min(10) as i32)).min(30.0);
        prop_assert!((secs(whole * 0.75)..=secs(whole * 1.25)).contains(&retry_after(n, chance)));
    }

    #[test]
    fn any_chance_is_between_none_and_all_and_repeats(
        job in any::<i64>(),
        second in -4_000_000_000..4_000_000_000_i64,
        attempt in any::<i64>(),
    ) {
        let slot = Timestamp::from_second(second).expect("within bounds");
        let drawn = chance(job, slot, attempt);
        prop_assert!((0.0..1.0).contains(&drawn));
        prop_assert_eq!(drawn.to_bits(), chance(job, slot, attempt).to_bits());
    }
}

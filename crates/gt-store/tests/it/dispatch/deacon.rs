//! The deacon: what is given out again, what is not, and hooks that nobody works on. // SPEC R2

use gt_core::run::Outcome;
use gt_store::{Fault, MAYOR, Redispatch, StaleHook};
use jiff::SignedDuration;

use crate::yard::Yard;

fn redispatch(yard: &mut Yard, bead: &str) -> Redispatch {
    let (stamp, policy) = (yard.stamp(), yard.policy.clone());
    let answer = yard.store.redispatch(bead, &policy, &stamp).expect("it answers");
    yard.check();
    answer
}

fn n_letters(yard: &mut Yard) -> usize {
    yard.store.inbox(MAYOR, true, 100).expect("it answers").letters.len()
}

#[test]
fn what_nobody_has_is_scheduled_once_and_what_somebody_has_is_left_to_him() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    let Redispatch::Scheduled { context } = redispatch(&mut yard, "gt-1") else { panic!("it is free") };
    assert_eq!(redispatch(&mut yard, "gt-1"), Redispatch::AlreadyScheduled { context });
    let run = yard.claim_one().run;
    let running = Redispatch::Running { polecat: "shop/Toast".to_owned() };
    assert_eq!(redispatch(&mut yard, "gt-1"), running, "also while it is being started");
    yard.start(&run);
    assert_eq!(redispatch(&mut yard, "gt-1"), running);
    yard.report(&run, Outcome::Completed).expect("its word counts");
    yard.end(&run);
    assert_eq!(redispatch(&mut yard, "gt-1"), Redispatch::Done);
    yard.assign("gt-2", Some("ada"));
    let held = Redispatch::Held { reason: "it is assigned to ada".to_owned(), until: None };
    assert_eq!(redispatch(&mut yard, "gt-2"), held);
    let stamp = yard.stamp();
    let policy = yard.policy.clone();
    let error = yard.store.redispatch("gt-9", &policy, &stamp).expect_err("it is not there");
    assert_eq!(error.to_string(), "there is no bead `gt-9`");
}

#[test]
fn a_bead_cools_down_whether_it_is_in_line_or_not() {
    let mut yard = Yard::with(&["gt-1"]);
    let run = yard.working("gt-1").run;
    yard.end(&run);
    let cooldown = yard.policy.redispatch_cooldown;
    let until = yard.now + cooldown;
    assert_eq!(redispatch(&mut yard, "gt-1"), Redispatch::CoolingDown { until });
    yard.pass(cooldown.as_secs() - 1);
    assert_eq!(redispatch(&mut yard, "gt-1"), Redispatch::CoolingDown { until });
    yard.pass(1);
    assert!(matches!(redispatch(&mut yard, "gt-1"), Redispatch::AlreadyScheduled { .. }));
}

#[test]
fn what_is_held_stays_held() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    let run = yard.working("gt-1").run;
    yard.stop(&run, Outcome::Stopped);
    yard.end(&run);
    let Redispatch::Held { reason, until: None } = redispatch(&mut yard, "gt-1") else { panic!("it is held") };
    assert!(reason.starts_with("its run was stopped"), "{reason}");

    yard.sling(&["gt-2"]);
    for _ in 0..yard.policy.max_failures {
        let run = yard.claim_one().run;
        yard.fail(&run, "no such tool", Fault::Bead);
        yard.pass(10);
    }
    let Redispatch::Held { reason, until: Some(_) } = redispatch(&mut yard, "gt-2") else { panic!("it is held") };
    assert!(reason.starts_with("its circuit is broken"), "{reason}");
    assert_eq!(yard.claims(), Vec::<String>::new());
}

#[test]
fn a_bead_without_attempts_is_one_letter_and_a_retry_gives_it_new_ones() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.sling(&["gt-1"]);
    for _ in 0..=yard.policy.redispatch_attempts {
        let run = yard.claim_one().run;
        yard.start(&run);
        yard.end(&run);
        yard.pass(301);
    }
    assert_eq!(n_letters(&mut yard), 1);
    let asked = Redispatch::Escalated { attempts: 4, is_new: false };
    assert_eq!(redispatch(&mut yard, "gt-1"), asked);
    assert_eq!(n_letters(&mut yard), 1);

    // A town of before there were letters.
    yard.peek.execute("DELETE FROM mail", []).expect("it is spoilt");
    assert_eq!(redispatch(&mut yard, "gt-1"), Redispatch::Escalated { attempts: 4, is_new: true });
    assert_eq!(redispatch(&mut yard, "gt-1"), asked);
    assert_eq!(n_letters(&mut yard), 1);

    let stamp = yard.stamp();
    yard.store.retry("gt-1", &stamp).expect("it is taken");
    assert_eq!(yard.claims(), ["gt-1"]);
}

/// Beads on hooks, as another tool may have left them.
fn on_hooks() -> Yard {
    let mut yard = Yard::new();
    let line = |id: &str, status: &str, assignee: &str| {
        format!(
            r#"{{"id":"{id}","title":"Work {id}","status":"{status}"{assignee},"updated_at":"2025-12-31T23:00:00Z"}}"#
        )
    };
    let lines = [
        line("gt-1", "hooked", r#","assignee":"shop/polecats/Nux""#),
        line("gt-2", "in_progress", ""),
        line("gt-3", "in_progress", r#","assignee":"ada""#),
        line("gt-4", "open", r#","assignee":"shop/polecats/Nux""#),
    ];
    yard.import(&lines.join("\n"));
    yard
}

fn release(yard: &mut Yard, seconds: i64) -> Vec<String> {
    let stamp = yard.stamp();
    let before = yard.now - SignedDuration::from_secs(seconds);
    let released: Vec<StaleHook> = yard.store.release_stale_hooks(before, &stamp).expect("it answers");
    released.into_iter().map(|hook| hook.bead).collect()
}

#[test]
fn hooks_that_nobody_works_on_are_released_and_a_persons_are_not() {
    let mut yard = on_hooks();
    let now = yard.now;
    assert!(!yard.store.has_stale_hooks(now - SignedDuration::from_secs(3601)).expect("it answers"));
    assert_eq!(release(&mut yard, 3601), Vec::<String>::new());
    assert!(yard.store.has_stale_hooks(now - SignedDuration::from_secs(3600)).expect("it answers"));
    assert_eq!(release(&mut yard, 3600), ["gt-1", "gt-2"]);
    yard.check();
    assert_eq!(yard.holder("gt-1"), ("open".to_owned(), None));
    assert_eq!(yard.holder("gt-3"), ("in_progress".to_owned(), Some("ada".to_owned())));
    assert_eq!(release(&mut yard, 0), Vec::<String>::new(), "once is enough");
    let told = yard.rows("SELECT bead || ' ' || data FROM event WHERE type = 'bead.released' ORDER BY seq");
    assert_eq!(
        told,
        [
            r#"gt-1 {"assignee":"shop/polecats/Nux","from":"hooked","reason":"stale-hook","since":"2025-12-31T23:00:00Z","status":"open"}"#,
            r#"gt-2 {"assignee":null,"from":"in_progress","reason":"stale-hook","since":"2025-12-31T23:00:00Z","status":"open"}"#
        ]
    );
    assert!(matches!(redispatch(&mut yard, "gt-1"), Redispatch::Scheduled { .. }));
}

#[test]
fn who_works_or_is_being_started_is_no_stale_hook() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    yard.working("gt-1");
    yard.sling(&["gt-2"]);
    yard.claim_one();
    yard.pass(100_000);
    assert_eq!(release(&mut yard, 0), Vec::<String>::new());
}

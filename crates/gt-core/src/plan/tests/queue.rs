//! The queue's own limits, where the scheduler has no cap. // SPEC Q1

use super::*;

fn queued(bead: &str) -> Candidate {
    Candidate { is_queued: true, ..candidate(bead) }
}

fn rules(cap: Option<usize>, batch: Option<usize>) -> QueueRules {
    QueueRules { cap, batch, is_open: true }
}

/// Seed 002's formula: `min(capacity, batch, ready)`, where 0 polecats and a batch of 0 mean no limit.
#[test]
fn the_count_of_the_queue_is_the_smallest_of_three() {
    //  cap       live  batch     ready  starts  limit
    let table = [
        (Some(10), 0, Some(3), 0, 0, Limit::None),
        (Some(10), 0, Some(3), 5, 3, Limit::Batch),
        (Some(10), 8, Some(3), 5, 2, Limit::Capacity),
        (Some(10), 10, Some(3), 5, 0, Limit::Capacity),
        (Some(10), 12, Some(3), 5, 0, Limit::Capacity),
        (Some(10), 0, Some(3), 2, 2, Limit::Ready),
        (Some(10), 0, None, 20, 10, Limit::Capacity),
        (None, 50, Some(3), 20, 3, Limit::Batch),
        (None, 50, None, 20, 20, Limit::Ready),
    ];
    for (cap, n_live, batch, n_ready, n, limit) in table {
        let live = vec![live("Toast", "shop", "claude"); n_live];
        let mut planner = Planner::new(Scene { queue: Some(rules(cap, batch)), live, ..scene() });
        let what = format!("{cap:?}, {n_live}, {batch:?}, {n_ready}");
        assert_eq!(to_dispatch(planner.capacity(Side::Queue), batch, n_ready), (n, n_ready - n, limit), "{what}");
        for _ in 0..n_ready {
            planner.consider(&queued("x"));
        }
        assert_eq!((planner.n_started(), planner.limit()), (n, limit), "{what}");
    }
}

#[test]
fn the_queue_limits_what_is_queued_and_nothing_else() {
    let candidates = [queued("a"), queued("b"), candidate("c"), queued("d"), candidate("e")];
    insta::assert_snapshot!(transcript(Scene { queue: Some(rules(None, Some(1))), ..scene() }, &candidates), @r"
    a: start
    b: a pass starts 1 at most (`queue.batch_size`); it waits for the next one (batch)
    c: start
    d: a pass starts 1 at most (`queue.batch_size`); it waits for the next one (batch)
    e: start
    ");
    let scene = Scene { queue: Some(rules(Some(2), None)), live: vec![live("Toast", "shop", "claude")], ..scene() };
    insta::assert_snapshot!(transcript(scene, &candidates), @r"
    a: start
    b: all 2 slots of the queue are taken by shop/Toast or go to what is before it (queue-full)
    c: start
    d: all 2 slots of the queue are taken by shop/Toast or go to what is before it (queue-full)
    e: start
    ");
}

#[test]
fn a_queue_that_is_not_enabled_says_so_and_lets_others_pass() {
    let closed = Some(QueueRules { cap: None, batch: None, is_open: false });
    let scene = Scene { queue: closed, ..scene() };
    assert!(Planner::new(scene.clone()).is_full(Side::Queue));
    insta::assert_snapshot!(transcript(scene, &[queued("a"), candidate("b")]), @r"
    a: queue.enabled is false: the daemon leaves it alone; `gt queue run` starts it, or `gt config set queue.enabled true` (queue-off)
    b: start
    ");
}

#[test]
fn under_a_cap_of_the_scheduler_what_is_queued_is_like_anything_else() {
    let scene = Scene { caps: Caps { town: Some(2), ..Caps::default() }, batch: Some(1), ..scene() };
    assert!(Planner::new(scene.clone()).is_full(Side::Queue), "nothing belongs to the queue");
    insta::assert_snapshot!(transcript(scene, &[queued("a"), candidate("b")]), @r"
    a: start
    b: a pass starts 1 at most (`scheduler.batch_size`); it waits for the next one (batch)
    ");
}

#[test]
fn a_batch_for_once_counts_both_kinds() {
    let scene = Scene { batch_once: Some(2), queue: Some(rules(None, None)), ..scene() };
    insta::assert_snapshot!(transcript(scene, &[queued("a"), candidate("b"), queued("c"), candidate("d")]), @r"
    a: start
    b: start
    c: a pass starts 2 at most (`--batch`); it waits for the next one (batch)
    d: a pass starts 2 at most (`--batch`); it waits for the next one (batch)
    ");
}

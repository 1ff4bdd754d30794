//! What a pass costs follows what happens, not how much lies around. // SPEC B8

use std::time::{Duration, Instant};

use gt_core::plan::{PerSide, Policy};
use gt_store::{Assignment, Claimant, Findings, Store};

use crate::town::Town;
use crate::yard::{asked, ended, rig, started};

const LINKS: usize = 40;

/// A town in which so many beads are scheduled and blocked, and so many runs have ended, beside one chain.
fn crowded(n: usize) -> Town {
    let mut town = Town::new();
    let stamp = town.stamp();
    town.store.add_rig(&rig("shop", "gt"), &stamp).expect("the rig is new");
    let blocked = |at: usize| format!("gt-w{at} > gt-0:blocks");
    let link = |at: usize| if at == 0 { "gt-c0".to_owned() } else { format!("gt-c{at} > gt-c{}:blocks", at - 1) };
    let lines: Vec<String> = std::iter::once("gt-0".to_owned())
        .chain((0..n).map(|at| format!("gt-o{at}")))
        .chain((0..n).map(blocked))
        .chain((0..LINKS).map(link))
        .collect();
    town.import(&crate::town::file(&lines.iter().map(String::as_str).collect::<Vec<_>>()));
    sling(&mut town, "o", n);
    let runs = advance(&mut town, &Findings::default());
    let ids: Vec<String> = (0..n).map(|at| format!("gt-o{at}")).collect();
    town.store.close_beads(&ids, None, &stamp).expect("they close");
    let of = |run: &Assignment| run.run.clone();
    advance(&mut town, &Findings { ended: runs.iter().map(|run| ended(&of(run))).collect(), ..Findings::default() });
    sling(&mut town, "w", n);
    sling(&mut town, "c", LINKS);
    town
}

fn sling(town: &mut Town, kind: &str, n: usize) {
    let ids: Vec<String> = (0..n).map(|at| format!("gt-{kind}{at}")).collect();
    let stamp = town.stamp();
    let wanted = asked(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    town.store.sling(&wanted, None, &stamp).expect("they are scheduled");
}

fn advance(town: &mut Town, findings: &Findings) -> Vec<Assignment> {
    let (stamp, policy) = (town.stamp(), Policy::default());
    let first = town.store.last_event().expect("the log answers");
    let mut n = 0;
    let mut new_run = || {
        n += 1;
        format!("run-{first}-{n}")
    };
    let mut claimant =
        Claimant { policy: &policy, starter: "me:1", new_run: &mut new_run, limits: PerSide::both(None), n_before: 0 };
    town.store.advance(findings, &policy, Some(&mut claimant), &stamp).expect("it is claimed").claimed
}

/// The quickest link of the chain: close, record the end, claim the next, look at what lives and when to look again.
fn quickest_link(town: &mut Town) -> Duration {
    let mut run = advance(town, &Findings::default()).remove(0);
    let mut quickest = Duration::MAX;
    for _ in 1..LINKS {
        town.pass(3);
        let stamp = town.stamp();
        let findings =
            Findings { started: vec![started(&run.run)], ended: vec![ended(&run.run)], ..Findings::default() };
        let since = Instant::now();
        town.store.close_beads(std::slice::from_ref(&run.bead), None, &stamp).expect("it closes");
        run = advance(town, &findings).remove(0);
        look(&mut town.store, stamp.now);
        quickest = quickest.min(since.elapsed());
    }
    quickest
}

fn look(store: &mut Store, now: jiff::Timestamp) {
    assert_eq!(store.live_runs().expect("it answers").len(), 1);
    assert_eq!(store.next_deadline(&Policy::default(), now).expect("it answers"), None);
}

/// The quickest of many, so that a busy machine does not matter; a walk through 3,000 rows takes several times as long.
#[test]
fn a_link_of_a_chain_costs_the_same_in_a_crowded_town() {
    let (small, large) = (quickest_link(&mut crowded(30)), quickest_link(&mut crowded(3_000)));
    assert!(large < small * 2, "{small:?} beside 30 others, {large:?} beside 3,000");
}

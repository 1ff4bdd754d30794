//! What holds for every graph, whatever it looks like.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Beads that may be done, no work, outside or without a rig; edges any way round, rings included.
fn any_graph() -> impl Strategy<Value = (Vec<Spot>, Vec<(u32, u32)>)> {
    (1_u32..40).prop_flat_map(|n| {
        let spots = prop::collection::vec((0_u8..8, 0_u8..6, 0_u8..10, 0_u8..10), n as usize);
        let edges = prop::collection::vec((0..n, 0..n), 0..(2 * n as usize));
        (spots.prop_map(|drawn| drawn.into_iter().enumerate().map(made).collect()), edges)
    })
}

fn made((at, (kind, status, outside, rig)): (usize, (u8, u8, u8, u8))) -> Spot {
    let kind = ["task", "task", "task", "bug", "feature", "chore", "decision", "epic"][kind as usize];
    let status = ["open", "open", "open", "in_progress", "closed", "deferred"][status as usize];
    let outside = if outside == 0 { "-" } else { "" };
    let rig = if rig == 0 { "nowhere" } else { "shop" };
    spot(&format!("{outside}t{at:02}:{kind}:{status}@{rig}"))
}

fn built(spots: &[Spot], edges: &[(u32, u32)]) -> Graph {
    let link = |(source, target): &(u32, u32)| {
        let holds = spots[*target as usize].status.is_active();
        Link { source: *source, target: *target, kind: if holds { LinkKind::Holds } else { LinkKind::Held } }
    };
    let places = vec![Place { name: "shop".to_owned(), state: RigState::Active }];
    Graph::new(spots.to_vec(), places, &edges.iter().map(link).collect::<Vec<_>>())
}

/// The rule, said again: whatever waits for nothing that is left makes the next wave.
fn rule(graph: &Graph) -> (Vec<Vec<u32>>, Vec<u32>) {
    let tasks: Vec<u32> = graph.all().filter(|at| graph.spot(*at).is_task()).collect();
    let is_holding = |at: &u32| {
        let spot = graph.spot(*at);
        spot.status.is_active() && (!spot.is_slingable || spot.is_member)
    };
    let mut left: BTreeMap<u32, Vec<u32>> =
        tasks.into_iter().map(|at| (at, graph.blockers(at).iter().copied().filter(is_holding).collect())).collect();
    let mut waves = Vec::new();
    loop {
        let wave: Vec<u32> = left.iter().filter(|(_, needs)| needs.is_empty()).map(|(at, _)| *at).collect();
        if wave.is_empty() {
            return (waves, left.into_keys().collect());
        }
        left.retain(|at, _| !wave.contains(at));
        for needs in left.values_mut() {
            needs.retain(|need| !wave.contains(need));
        }
        waves.push(wave);
    }
}

proptest! {
    #[test]
    fn waves_are_those_of_the_rule((spots, edges) in any_graph()) {
        let graph = built(&spots, &edges);
        let plan = plan(&graph, Source::Tasks);
        let (waves, left) = rule(&graph);
        prop_assert_eq!(plan.waves().map(<[u32]>::to_vec).collect::<Vec<_>>(), waves);
        // What is in no wave is gated, in a ring or behind one.
        let has_ring = plan.errors.iter().any(|error| error.category == Category::Cycle);
        let n_gated = plan.gated.iter().filter(|gated| left.contains(&gated.bead)).count();
        prop_assert_eq!(n_gated, plan.gated.len());
        prop_assert!(has_ring || n_gated == left.len());
    }

    #[test]
    fn each_task_has_one_place_and_comes_after_what_it_waits_for((spots, edges) in any_graph()) {
        let graph = built(&spots, &edges);
        let plan = plan(&graph, Source::Epic);
        let mut seen: Vec<u32> = plan.waves().flatten().copied().collect();
        for at in &seen {
            for blocker in graph.blockers(*at).iter().filter(|blocker| graph.spot(**blocker).is_task()) {
                prop_assert!(plan.wave_of(*blocker).is_some_and(|wave| Some(wave) < plan.wave_of(*at)));
            }
        }
        let n = seen.len();
        seen.sort_unstable();
        seen.dedup();
        prop_assert_eq!(seen.len(), n);
        prop_assert!(seen.iter().all(|at| graph.spot(*at).is_task()));
    }

    #[test]
    fn every_ring_is_real_and_none_is_overlooked((spots, edges) in any_graph()) {
        let graph = built(&spots, &edges);
        let found = plan(&graph, Source::Tasks).errors;
        let rings: Vec<_> = found.iter().filter(|error| error.category == Category::Cycle).collect();
        for ring in &rings {
            let next = ring.beads.iter().skip(1).chain(ring.beads.first());
            prop_assert!(ring.beads.iter().zip(next).all(|(at, next)| graph.blockers(*at).contains(next)));
        }
        // Without the gates, whatever the rule cannot place is in a ring or behind one.
        let mut open: Vec<Spot> = spots.clone();
        for spot in open.iter_mut().filter(|spot| !spot.is_slingable) {
            spot.is_member = false;
            spot.is_slingable = true;
        }
        let (_, left) = rule(&built(&open, &edges));
        prop_assert_eq!(rings.is_empty(), left.is_empty());
    }

    #[test]
    fn the_order_in_which_it_was_read_changes_nothing((spots, edges) in any_graph(), turn in 0_usize..40) {
        let n = spots.len();
        let moved = |at: usize| (at + turn) % n;
        let mut others = spots.clone();
        for (at, spot) in spots.iter().enumerate() {
            others[moved(at)] = spot.clone();
        }
        let mut other_edges: Vec<(u32, u32)> =
            edges.iter().map(|(a, b)| (moved(*a as usize) as u32, moved(*b as usize) as u32)).collect();
        other_edges.reverse();
        let (one, other) = (built(&spots, &edges), built(&others, &other_edges));
        prop_assert_eq!(plan(&one, Source::Epic), plan(&other, Source::Epic));
        prop_assert_eq!(one, other);
    }
}

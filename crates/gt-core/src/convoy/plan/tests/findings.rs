//! Tests of what is said about a convoy before it is launched.

use super::*;

/// Each finding as `category (beads): message → fix`.
fn found(beads: &str, edges: &str, source: Source) -> Vec<String> {
    let graph = graph(beads, edges);
    let plan = plan(&graph, source);
    let line = |finding: &Finding| {
        let (word, beads) = (finding.category.as_str(), ids(&graph, &finding.beads));
        format!("{word} ({beads}): {} → {}", finding.message, finding.suggested_fix)
    };
    plan.errors.iter().map(|error| format!("error {}", line(error))).chain(plan.warnings.iter().map(line)).collect()
}

#[test]
fn a_chain_in_one_rig_is_fine() {
    assert_eq!(found("e:epic a b", "e>a e>b a<b", Source::Epic), [""; 0]);
}

#[test]
fn work_without_a_rig_is_an_error() {
    assert_eq!(
        found("a@nowhere b c@nowhere d:decision@nowhere x:task:closed@nowhere", "", Source::Tasks),
        ["error no-rig (a c): a and c belong to no rig → gt bead update a --rig RIG"]
    );
}

#[test]
fn a_ring_is_an_error() {
    assert_eq!(
        found("a b", "a<b b<a", Source::Tasks),
        ["error cycle (a b): these wait for each other: a → b → a → gt bead dep remove a b"]
    );
}

#[test]
fn only_an_epic_has_orphans() {
    let (beads, edges) = ("e:epic a b c d:task:closed f", "e>a e>b e>c e>d e>f a<b d<f");
    assert_eq!(
        found(beads, edges, Source::Epic),
        ["orphan (c): c is tied to nothing else in the epic by a dependency → gt bead dep add c BEAD"]
    );
    assert_eq!(found(beads, edges, Source::Tasks), [""; 0]);
    assert_eq!(found(beads, edges, Source::Convoy), [""; 0]);
}

#[test]
fn rigs_that_take_no_work_and_those_off_the_way_are_told() {
    assert_eq!(
        found("a b c@attic d@dock", "", Source::Tasks),
        [
            "blocked-rig (c): rig `attic` is parked, so c will not start → gt rig unpark attic",
            "blocked-rig (d): rig `dock` is docked, so d will not start → gt rig undock dock",
            "cross-rig (c d): most tasks belong to rig `shop`, but c and d belong elsewhere (c to `attic`) → gt bead \
             update c --rig shop",
        ]
    );
    assert_eq!(found("a b c:task:closed@attic d:epic@dock", "", Source::Tasks), [""; 0]);
}

#[test]
fn a_crowded_wave_is_told_and_many_in_one_sentence() {
    assert_eq!(found("a b c d e", "", Source::Tasks), [""; 0]);
    assert_eq!(
        found("a b c d e f", "", Source::Tasks),
        ["capacity (a b c d e f): wave 1 has 6 tasks that could all run at once → gt config set \
          scheduler.max_polecats 5"]
    );
    let beads: Vec<String> = (0..30).map(|at| format!("t{at:02}")).collect();
    let edges: Vec<String> = (6..30).map(|at| format!("t{:02}<t{at:02}", at - 6)).collect();
    let found = found(&beads.join(" "), &edges.join(" "), Source::Tasks);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("5 waves have more than 5 tasks, up to 6 at once"), "{found:?}");
}

#[test]
fn an_epic_below_has_a_branch_or_a_warning() {
    let (beads, edges) = ("e:epic s:epic t:epic:closed a b", "e>s e>t s>a s>b a<b");
    assert_eq!(
        found(beads, edges, Source::Epic),
        ["missing-branch (s): s is an epic below this one, and has no branch of its own → gt bead label add s \
          branch:NAME"]
    );
}

#[test]
fn what_is_gated_is_told_with_its_gate() {
    assert_eq!(
        found("d:decision a b c", "d<a a<b", Source::Tasks),
        ["gated (a b): a and b wait for what no agent works on, such as a decision d → gt close d"]
    );
}

//! Files of beads: taken in whole, twice without harm, and out again to the letter. // SPEC B2

use gt_core::rig::{Rig, RigState};
use gt_store::{ImportOptions, ImportReport, Store};
use proptest::prelude::*;

use crate::town::{Town, file, owned};

/// Odd, but all of it good.
const ODD: &str = r#"{"id":"gt-1","title":"a","status":"open","priority":2,"created_at":"2026-01-01T02:00:00.123456789+02:00","weird":{"n":1e400},"labels":["y","x"]}
{"id":"gt-2","title":"","status":"in_review","priority":-3,"dependencies":[{"issue_id":"gt-2","type":"tracks","depends_on_id":"external:a:gt-1"},{"issue_id":"gt-2","depends_on_id":"gt-9","type":"made up","metadata":"{\"gate\":\"any-children\"}"}]}
{"id":"gt-3","title":"t","status":"tombstone","priority":4,"deleted_at":"2025-01-01T00:00:00Z","comments":[{"id":7,"text":"hi"}]}
"#;

fn counts(report: &ImportReport) -> [usize; 5] {
    [report.created, report.updated, report.unchanged, report.duplicates, report.dangling]
}

#[test]
fn an_import_twice_is_an_import_once() {
    let mut town = Town::new();
    assert_eq!(counts(&town.import(ODD)), [3, 0, 0, 0, 1]);
    let stamp = town.stamp();
    let seq = town.store.last_event().expect("the log answers");
    let (before, report) = (town.export(), town.import(ODD));
    assert_eq!(counts(&report), [0, 0, 3, 0, 1]);
    assert_eq!((town.export(), town.told_since(seq)), (before, Vec::<String>::new()), "{stamp:?}");
}

#[test]
fn an_export_is_what_was_imported_to_the_letter() {
    let mut town = Town::new();
    town.import(ODD);
    assert_eq!(town.export(), ODD);
    let mut fresh = Town::new();
    fresh.import(&town.export());
    assert_eq!(fresh.export(), ODD);
}

#[test]
fn each_new_and_each_changed_bead_has_its_event() {
    let mut town = Town::new();
    town.import(&file(&["gt-1", "gt-2"]));
    assert_eq!(
        town.told_since(0),
        [r#"bead.created gt-1 {"imported":true}"#, r#"bead.created gt-2 {"imported":true}"#]
    );
    let report = town.import(&file(&["gt-1", "gt-2 > gt-1:blocks"]));
    assert_eq!(counts(&report), [0, 1, 1, 0, 0]);
    assert_eq!(town.told_since(2), [r#"bead.updated gt-2 {"imported":true}"#]);
    assert_eq!(town.blocked(), ["gt-2"]);
}

#[test]
fn of_lines_with_one_id_the_last_wins() {
    let mut town = Town::new();
    let text = "{\"id\":\"gt-1\",\"title\":\"old\",\"status\":\"closed\"}\n{\"id\":\"gt-2\",\"title\":\"b\"}\n{\"id\":\"gt-1\",\"title\":\"new\"}";
    assert_eq!(counts(&town.import(text)), [2, 0, 0, 1, 0]);
    assert_eq!(town.store.bead("gt-1").expect("it is there").bead.title, "new");
    assert_eq!(town.ready(), ["gt-1", "gt-2"]);
}

#[test]
fn of_edges_said_twice_the_last_wins() {
    let mut town = Town::new();
    let edge = |n: u32| format!(r#"{{"depends_on_id":"gt-2","type":"blocks","n":{n}}}"#);
    town.import(&format!(r#"{{"id":"gt-1","title":"a","labels":["x","x"],"dependencies":[{},{}]}}"#, edge(1), edge(2)));
    let bead = town.store.bead("gt-1").expect("it is there").bead;
    assert_eq!((bead.labels.len(), bead.edges.len(), bead.edges[0].extra.to_json()), (1, 1, r#"{"n":2}"#.to_owned()));
}

#[test]
fn a_dangling_edge_is_counted_and_takes_effect_when_its_target_comes() {
    let mut town = Town::new();
    assert_eq!(town.import(&file(&["gt-1 > gt-8:blocks gt-9:parent-child gt-7:tracks"])).dangling, 3);
    assert_eq!(town.ready(), ["gt-1"]);
    assert_eq!(town.import(&file(&["gt-8"])).dangling, 0);
    assert_eq!(town.blocked(), ["gt-1"]);
    town.close("gt-8");
    town.import(&file(&["gt-9 > gt-10:blocks"]));
    assert_eq!(town.ready(), ["gt-1", "gt-9"]);
    town.import(&file(&["gt-10"]));
    assert_eq!(town.blocked(), ["gt-1", "gt-9"]);
}

#[test]
fn a_wrapped_target_blocks_and_keeps_its_spelling() {
    let mut town = Town::new();
    town.import(&file(&["gt-1", "gt-2 > WRAPPED:blocks"]).replace("WRAPPED", "external:a:gt-1"));
    assert_eq!(town.blocked(), ["gt-2"]);
    assert!(town.export().contains(r#""depends_on_id":"external:a:gt-1""#), "{}", town.export());
}

#[test]
fn a_tombstone_holds_nothing_back_and_is_never_ready() {
    let mut town = Town::new();
    town.import(&format!("{}\n{}", r#"{"id":"gt-1","title":"a","status":"tombstone"}"#, file(&["gt-2 > gt-1:blocks"])));
    assert_eq!((town.ready(), town.blocked()), (owned(&["gt-2"]), vec![]));
}

fn at(id: &str, title: &str, day: u32) -> String {
    format!(r#"{{"id":"{id}","title":"{title}","updated_at":"2026-01-{day:02}T00:00:00Z"}}"#)
}

#[test]
fn what_is_newer_here_stays_unless_told_otherwise() {
    let mut town = Town::new();
    town.import(&at("gt-1", "here", 9));
    let report = town.import(&at("gt-1", "older", 8));
    assert_eq!((counts(&report), report.kept_newer), ([0, 0, 0, 0, 0], owned(&["gt-1"])));
    assert_eq!(town.store.bead("gt-1").expect("it is there").bead.title, "here");
    let overwrite = ImportOptions { overwrite: true, ..ImportOptions::default() };
    assert_eq!(counts(&town.import_with(&at("gt-1", "older", 8), &overwrite)), [0, 1, 0, 0, 0]);
    assert_eq!(town.store.bead("gt-1").expect("it is there").bead.title, "older");
    assert_eq!(counts(&town.import(&at("gt-1", "same day", 8))), [0, 1, 0, 0, 0]);
}

fn rig() -> Rig {
    let (name, prefix, path) = ("gasworks".to_owned(), "gw".to_owned(), "/src".to_owned());
    Rig { name, prefix, path, url: None, branch: "main".to_owned(), state: RigState::Active }
}

#[test]
fn an_import_binds_every_bead_to_its_rig_and_the_next_one_keeps_that() {
    let mut town = Town::new();
    town.told(|store, stamp| store.add_rig(&rig(), stamp));
    let bind = ImportOptions { rig: Some("gasworks".into()), ..ImportOptions::default() };
    town.import_with(&format!("{}\n{}", at("hq-1", "a", 1), at("zz-1", "b", 9)), &bind);
    let mut home = |id: &str| town.store.bead(id).expect("it is there").rig;
    assert_eq!([home("hq-1"), home("zz-1")], [Some("gasworks".to_owned()), Some("gasworks".to_owned())]);
    town.import(&format!("{}\n{}", at("hq-1", "changed", 2), at("zz-1", "older", 8)));
    let mut home = |id: &str| town.store.bead(id).expect("it is there").rig;
    assert_eq!([home("hq-1"), home("zz-1")], [Some("gasworks".to_owned()), Some("gasworks".to_owned())]);
}

#[test]
fn an_import_for_an_unknown_rig_writes_nothing() {
    let mut town = Town::new();
    town.told(|store, stamp| store.add_rig(&rig(), stamp));
    let bind = ImportOptions { rig: Some("gaswork".into()), ..ImportOptions::default() };
    let beads = crate::town::parse(&file(&["gt-1"]));
    let refusal = town.refused(|store, stamp| store.import(beads, &bind, stamp, |_| {}));
    assert_eq!(refusal, "there is no rig `gaswork`; near: gasworks");
}

/// Imports one file after the other; the town checks itself after each.
fn check_ready_after(files: &[&str], ready: &[&str]) {
    let mut town = Town::new();
    for file in files {
        town.import(file);
    }
    assert_eq!(town.ready(), ready);
}

#[test]
fn an_edge_that_goes_as_its_target_comes_was_never_counted() {
    let before = r#"{"id":"a","title":"A","updated_at":"2026-01-01T00:00:00Z","dependencies":[{"depends_on_id":"n","type":"blocks"}]}"#;
    let after = r#"{"id":"a","title":"A","updated_at":"2026-01-02T00:00:00Z"}
{"id":"n","title":"N","updated_at":"2026-01-02T00:00:00Z"}"#;
    check_ready_after(&[before, after], &["a", "n"]);
}

#[test]
fn a_new_bead_hears_of_a_blocker_that_closes_on_a_later_line() {
    let before = r#"{"id":"a","title":"A","updated_at":"2026-01-01T00:00:00Z"}"#;
    let after = r#"{"id":"n","title":"N","updated_at":"2026-01-02T00:00:00Z","dependencies":[{"depends_on_id":"a","type":"blocks"}]}
{"id":"a","title":"A","status":"closed","updated_at":"2026-01-02T00:00:00Z"}"#;
    check_ready_after(&[before, after], &["n"]);
}

#[test]
fn a_bead_that_a_file_closes_or_reopens_says_so_in_the_log() {
    let mut town = Town::new();
    let line = |status: &str, day: u8| {
        format!(r#"{{"id":"a","title":"A","status":"{status}","updated_at":"2026-01-0{day}T00:00:00Z"}}"#)
    };
    for (status, day) in [("open", 1), ("closed", 2), ("open", 3), ("tombstone", 4)] {
        town.import(&line(status, day));
    }
    let told: Vec<String> =
        town.told_since(0).iter().map(|event| event.split(' ').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(told, ["bead.created", "bead.closed", "bead.reopened", "bead.deleted"]);
}

#[test]
fn a_rehearsal_reports_the_same_and_writes_nothing() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("town.db");
    let mut town = Town::on(Store::create(&path).expect("a fresh store"));
    town.import(&file(&["gt-1"]));
    let before = (town.export(), town.store.last_event().expect("the log answers"));
    let lines = file(&["gt-1 > gt-2:blocks", "gt-2 > gt-1:blocks", "gt-3 > gt-9:tracks"]);
    let mut rehearsal = Store::open(&path).and_then(Store::rehearse).expect("it opens");
    let stamp = town.stamp();
    let beads = crate::town::parse(&lines);
    let rehearsed = rehearsal.import(beads, &ImportOptions::default(), &stamp, |_| {}).expect("the import works");
    assert!(rehearsal.bead("gt-3").is_ok(), "the rehearsal sees its own work");
    drop(rehearsal);
    assert_eq!((town.export(), town.store.last_event().expect("the log answers")), before);
    assert_eq!(rehearsed, town.import(&lines));
    assert_eq!((rehearsed.created, rehearsed.dropped_edges.len()), (2, 1));
}

#[test]
fn progress_counts_every_bead_to_the_last() {
    let mut town = Town::new();
    let stamp = town.stamp();
    let mut heard = Vec::new();
    let beads = crate::town::parse(&file(&["a", "b", "c"]));
    town.store.import(beads, &ImportOptions::default(), &stamp, |n| heard.push(n)).expect("the import works");
    assert_eq!(heard, [1, 2, 3]);
}

const KINDS: [&str; 6] = ["blocks", "waits-for", "merge-blocks", "parent-child", "tracks", "made-up"];
const STATUSES: [&str; 6] = ["open", "closed", "hooked", "tombstone", "pinned", "odd"];

/// A file with few cycles: edges lead to lower numbers, or to beads that are nowhere.
fn some_file() -> impl Strategy<Value = Vec<String>> {
    let bead = (0..STATUSES.len(), proptest::collection::vec((0_usize..12, 0..KINDS.len()), 0..4));
    proptest::collection::vec(bead, 2..12).prop_map(|beads| {
        let line = |(at, (status, edges)): (usize, (usize, Vec<(usize, usize)>))| {
            let edges: Vec<_> = edges
                .into_iter()
                .filter(|(target, _)| *target < at || *target > 10)
                .map(|(target, kind)| serde_json::json!({ "depends_on_id": format!("gt-{target:02}"), "type": KINDS[kind] }))
                .collect();
            let id = format!("gt-{at:02}");
            serde_json::json!({ "id": id, "title": id, "status": STATUSES[status], "dependencies": edges }).to_string()
        };
        beads.into_iter().enumerate().map(line).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_in_two_parts_is_the_file_at_once(lines in some_file(), picks in proptest::collection::vec(any::<bool>(), 12)) {
        let (first, second): (Vec<_>, Vec<_>) = lines.iter().zip(&picks).partition(|(_, pick)| **pick);
        let text = |part: Vec<(&String, &bool)>| part.into_iter().map(|(line, _)| line.as_str()).collect::<Vec<_>>().join("\n");
        let (mut whole, mut parts) = (Town::new(), Town::new());
        let report = whole.import(&lines.join("\n"));
        prop_assume!(report.dropped_edges.is_empty());
        parts.import(&text(first));
        parts.import(&text(second));
        prop_assert_eq!(whole.export(), parts.export());
        prop_assert_eq!(whole.ready(), parts.ready());
        prop_assert_eq!(whole.blocked(), parts.blocked());
    }
}

const MANY: usize = 20_000;

/// Imports without judging every step: the judge reads everything.
fn import_many(line: impl Fn(usize) -> String) -> Town {
    let mut town = Town::new();
    let report = town.import(&(0..MANY).map(line).collect::<Vec<_>>().join("\n"));
    assert_eq!((report.created, report.dropped_edges.len()), (MANY, 0));
    town
}

fn link(from: usize, to: usize, kind: &str) -> String {
    format!(r#"{{"id":"gt-{from}","title":"a","dependencies":[{{"depends_on_id":"gt-{to}","type":"{kind}"}}]}}"#)
}

#[test]
fn a_long_chain_is_taken_in_and_moves_on_link_by_link() {
    let mut town = import_many(|n| link(n, n + 1, "blocks"));
    assert_eq!(town.ready(), [format!("gt-{}", MANY - 1)]);
    assert_eq!(town.close(&format!("gt-{}", MANY - 1)), [format!("gt-{}", MANY - 2)]);
}

#[test]
fn a_deep_family_is_blocked_and_freed_at_once() {
    let blocker = format!("gt-{MANY}");
    let mut town = import_many(|n| if n == 0 { link(0, MANY, "blocks") } else { link(n, n - 1, "parent-child") });
    assert_eq!(town.ready().len(), MANY);
    town.import(&file(&[&blocker]));
    assert_eq!(town.ready(), std::slice::from_ref(&blocker));
    assert_eq!(town.close(&blocker).len(), MANY);
}

#[test]
fn a_wide_fan_is_taken_in_and_freed_at_once() {
    let mut town =
        import_many(|n| if n == 0 { r#"{"id":"gt-0","title":"a"}"#.to_owned() } else { link(n, 0, "blocks") });
    assert_eq!(town.ready(), ["gt-0"]);
    assert_eq!(town.close("gt-0").len(), MANY - 1);
}

//! A small town for tests: verbs by short names, and the judge after every step.

use gt_core::bead::Bead;
use gt_core::edge::{Edge, EdgeType};
use gt_core::status::Status;
use gt_store::{BeadPatch, ImportBead, ImportOptions, ImportReport, NewBead, ReadyFilter, Stamp, Store, StoreError};
use jiff::{SignedDuration, Timestamp};

pub(crate) struct Town {
    pub(crate) store: Store,
    pub(crate) now: Timestamp,
}

impl Town {
    pub(crate) fn new() -> Town {
        Town::on(Store::in_memory().expect("a store in memory"))
    }

    pub(crate) fn on(store: Store) -> Town {
        Town { store, now: "2026-01-01T00:00:00Z".parse().expect("a time") }
    }

    pub(crate) fn stamp(&self) -> Stamp {
        Stamp::new(self.now, "tester")
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// Beads with these exact ids, open, without edges.
    pub(crate) fn with(ids: &[&str]) -> Town {
        let mut town = Town::new();
        let lines: Vec<String> = ids.iter().map(|id| format!(r#"{{"id":"{id}","title":"{id}"}}"#)).collect();
        town.import(&lines.join("\n"));
        town
    }

    pub(crate) fn import(&mut self, text: &str) -> ImportReport {
        self.import_with(text, &ImportOptions::default())
    }

    pub(crate) fn import_with(&mut self, text: &str, options: &ImportOptions) -> ImportReport {
        let beads = parse(text);
        let stamp = self.stamp();
        let report = self.store.import(beads, options, &stamp, |_| {}).expect("the import works");
        self.check();
        report
    }

    pub(crate) fn create(&mut self, title: &str, parent: Option<&str>) -> String {
        let new = NewBead { prefix: "gt".into(), parent: parent.map(Into::into), bead: Bead::new("", title) };
        let stamp = self.stamp();
        let id = self.store.create_bead(&new, &stamp).expect("the bead is made");
        self.check();
        id
    }

    pub(crate) fn link(&mut self, source: &str, target: &str, kind: &str) {
        self.try_link(source, &Edge::new(target, EdgeType::parse(kind))).expect("the edge is fine");
    }

    pub(crate) fn link_any(&mut self, source: &str, target: &str) {
        let mut edge = Edge::new(target, EdgeType::WaitsFor);
        edge.extra.put("metadata", r#"{"gate":"any-children"}"#);
        self.try_link(source, &edge).expect("the edge is fine");
    }

    pub(crate) fn try_link(&mut self, source: &str, edge: &Edge) -> Result<bool, StoreError> {
        let stamp = self.stamp();
        let answer = self.store.add_edge(source, edge, &stamp);
        self.check();
        answer
    }

    pub(crate) fn unlink(&mut self, source: &str, target: &str) -> Vec<String> {
        let stamp = self.stamp();
        let done = self.store.remove_edges(source, target, None, &stamp).expect("the edge was there");
        self.check();
        done.became_ready
    }

    /// Closes a bead and returns what became ready by it.
    pub(crate) fn close(&mut self, id: &str) -> Vec<String> {
        self.close_because(id, None)
    }

    pub(crate) fn close_because(&mut self, id: &str, reason: Option<&str>) -> Vec<String> {
        let stamp = self.stamp();
        let done = self.store.close_beads(&[id.to_owned()], reason, &stamp).expect("it closes");
        self.check();
        done.became_ready
    }

    pub(crate) fn reopen(&mut self, id: &str) {
        let stamp = self.stamp();
        self.store.reopen_beads(&[id.to_owned()], &stamp).expect("it reopens");
        self.check();
    }

    pub(crate) fn delete(&mut self, id: &str) {
        let stamp = self.stamp();
        self.store.delete_beads(&[id.to_owned()], None, &stamp).expect("it is deleted");
        self.check();
    }

    pub(crate) fn patch(&mut self, id: &str, patch: &BeadPatch) -> Result<(), StoreError> {
        let stamp = self.stamp();
        let answer = self.store.update_bead(id, patch, &stamp).map(|_| ());
        self.check();
        answer
    }

    pub(crate) fn set_status(&mut self, id: &str, word: &str) {
        let patch = BeadPatch { status: Some(Status::parse(word)), ..BeadPatch::default() };
        self.patch(id, &patch).expect("the status is fine");
    }

    /// Defers a bead until so many seconds from now.
    pub(crate) fn defer(&mut self, id: &str, seconds: Option<i64>) {
        let until = seconds.map(|seconds| self.now + SignedDuration::from_secs(seconds));
        self.patch(id, &BeadPatch { defer_until: Some(until), ..BeadPatch::default() }).expect("it is deferred");
    }

    pub(crate) fn ready(&mut self) -> Vec<String> {
        self.ready_with(&ReadyFilter::default())
    }

    pub(crate) fn ready_with(&mut self, filter: &ReadyFilter) -> Vec<String> {
        let mut ids = ids(self.store.ready(filter, 0, self.now).expect("ready answers").beads);
        ids.sort();
        ids
    }

    pub(crate) fn blocked(&mut self) -> Vec<String> {
        let mut ids = ids(self.store.blocked(None, 0).expect("blocked answers").beads);
        ids.sort();
        ids
    }

    /// The judge: stored readiness is what follows from facts and edges, and runs, sessions and jobs agree with each other.
    pub(crate) fn check(&mut self) {
        let found = self.store.inspect(self.now).expect("the inspection answers");
        assert!(found.damage.is_empty(), "{:?}", found.damage);
        assert!(found.disagreements.is_empty(), "{:#?}", found.disagreements);
        assert_eq!(found.ring_edges, Vec::new(), "no beads wait for each other for ever");
        assert_eq!(found.dispatch, Vec::<String>::new(), "runs, sessions and jobs agree");
    }

    pub(crate) fn export(&mut self) -> String {
        let mut text = String::new();
        self.store
            .each_bead::<StoreError>(|bead| {
                text.push_str(&gt_core::jsonl::to_line(bead));
                text.push('\n');
                Ok(())
            })
            .expect("the export answers");
        text
    }
}

impl Town {
    /// What happened since an event, one line each: `bead.closed gt-1 {…}`.
    pub(crate) fn told_since(&mut self, seq: i64) -> Vec<String> {
        let events = self.store.events(seq, 1_000_000).expect("the log answers");
        let line = |event: gt_core::event::Event| {
            assert_eq!((event.ts, event.actor.as_str()), (self.now, "tester"), "{event:?}");
            format!("{} {} {}", event.kind, event.bead.as_deref().unwrap_or("-"), event.data)
        };
        events.into_iter().map(line).collect()
    }

    /// Does something and says what the log heard of it.
    pub(crate) fn told<T>(
        &mut self,
        work: impl FnOnce(&mut Store, &Stamp) -> Result<T, StoreError>,
    ) -> (T, Vec<String>) {
        let seq = self.store.last_event().expect("the log answers");
        let stamp = self.stamp();
        let answer = work(&mut self.store, &stamp).expect("it is done");
        self.check();
        (answer, self.told_since(seq))
    }

    /// Asks for something that is refused; nothing may have changed by it.
    pub(crate) fn refused<T: std::fmt::Debug>(
        &mut self,
        work: impl FnOnce(&mut Store, &Stamp) -> Result<T, StoreError>,
    ) -> String {
        let before = (self.export(), self.store.last_event().expect("the log answers"));
        let stamp = self.stamp();
        let error = work(&mut self.store, &stamp).expect_err("it is refused");
        self.check();
        assert_eq!(before, (self.export(), self.store.last_event().expect("the log answers")), "after: {error}");
        match &error {
            StoreError::NoBead { near, .. } | StoreError::NoRig { near, .. } if !near.is_empty() => {
                format!("{error}; near: {}", near.join(", "))
            }
            _ => error.to_string(),
        }
    }

    /// Does something that must leave no trace.
    pub(crate) fn quiet<T>(&mut self, work: impl FnOnce(&mut Store, &Stamp) -> Result<T, StoreError>) -> T {
        let before = self.export();
        let (answer, events) = self.told(work);
        assert_eq!(events, Vec::<String>::new());
        assert_eq!(before, self.export());
        answer
    }
}

/// A file of beads, one `id` or `id > target:type target:type` a line; `id!type` where it is no task.
pub(crate) fn file(lines: &[&str]) -> String {
    let line = |line: &&str| {
        let (id, edges) = line.split_once(" > ").unwrap_or((line, ""));
        let (id, kind) = id.split_once('!').map_or((id, None), |(id, kind)| (id, Some(kind)));
        let edges: Vec<_> = edges
            .split_whitespace()
            .map(|edge| edge.split_once(':').expect("target:type"))
            .map(|(target, kind)| serde_json::json!({ "issue_id": id, "depends_on_id": target, "type": kind }))
            .collect();
        serde_json::json!({ "id": id, "title": id, "issue_type": kind, "dependencies": edges }).to_string()
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Ids as the store takes them.
pub(crate) fn owned(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

pub(crate) fn ids(views: Vec<gt_store::View>) -> Vec<String> {
    views.into_iter().map(|view| view.bead.id).collect()
}

pub(crate) fn parse(text: &str) -> Vec<ImportBead> {
    let bead = |(at, line): (usize, &str)| match gt_core::jsonl::parse_line(line).expect("a good line") {
        gt_core::jsonl::Line::Bead { bead, .. } => ImportBead { line: at + 1, bead },
        gt_core::jsonl::Line::NoBead => panic!("a bead is expected in {line}"),
    };
    text.lines().enumerate().map(bead).collect()
}

/// How many random histories are tried, unless somebody asks for more.
pub(crate) fn n_cases(usual: u32) -> u32 {
    std::env::var("GT_RANDOM_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

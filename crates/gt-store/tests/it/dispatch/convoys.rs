//! Convoys: made and changed, fed when their beads become ready, landed once when all are closed. // SPEC C1–C5

use gt_core::event::EventType;
use gt_core::rig::RigState;
use gt_core::status::Status;
use gt_store::{BeadPatch, Checked, Going, NewConvoy, Staging, Swept, Withdrawn};
use jiff::SignedDuration;

use crate::yard::{Yard, ended};

fn convoy_of(members: &[&str]) -> NewConvoy {
    let members = members.iter().map(|id| (*id).to_owned()).collect();
    NewConvoy { title: "Together".to_owned(), members, ..NewConvoy::default() }
}

impl Yard {
    fn convoy(&mut self, members: &[&str]) -> String {
        self.make_convoy(&convoy_of(members))
    }

    fn make_convoy(&mut self, new: &NewConvoy) -> String {
        let stamp = self.stamp();
        let id = self.store.create_convoy(new, &stamp).expect("its beads are there");
        self.check();
        id
    }

    /// The beads that wait in line, in order.
    fn in_line(&mut self) -> Vec<String> {
        self.rows(
            "SELECT bead.id FROM context JOIN bead ON bead.key = context.bead
             WHERE context.state = 'open' AND context.ready <> 2 ORDER BY enqueued_at, context.id",
        )
    }

    fn status(&mut self, id: &str) -> String {
        self.holder(id).0
    }

    fn sweep(&mut self) -> (Vec<String>, Vec<String>) {
        let stamp = self.stamp();
        let is_needed = self.store.needs_sweep(stamp.now).expect("it answers");
        let swept = self.store.sweep(&stamp).expect("it sweeps");
        assert_eq!(is_needed, swept != Swept::default(), "{swept:?}");
        self.check();
        (swept.fed, swept.landed)
    }

    fn landings(&self) -> Vec<String> {
        self.rows("SELECT bead FROM event WHERE type = 'convoy.landed' ORDER BY seq")
    }

    fn stage(&mut self, id: &str) {
        // As staging leaves it; from open nobody else may.
        self.peek.execute("UPDATE bead SET status = 'staged:ready' WHERE id = ?1", [id]).expect("it is staged");
    }
}

#[test]
fn a_convoy_that_opens_puts_its_ready_beads_in_line() {
    let mut yard = Yard::with(&["gt-1", "gt-2 > gt-1:blocks", "gt-3", "ml-4"]);
    let id = yard.convoy(&["gt-1", "gt-2", "ml-4"]);
    assert!(id.starts_with("hq-cv-"), "{id}");
    assert_eq!(yard.in_line(), ["gt-1", "ml-4"]);
    let convoys = "SELECT DISTINCT json_extract(fields, '$.convoy') FROM context";
    assert_eq!(yard.rows(convoys), [id]);
}

#[test]
fn a_close_feeds_all_that_it_makes_ready_whatever_rig_and_convoy() {
    let mut yard =
        Yard::with(&["gt-1", "gt-2 > gt-1:blocks", "ml-3 > gt-1:blocks", "gt-4 > gt-1:blocks", "gt-5 > gt-1:blocks"]);
    yard.convoy(&["gt-1", "gt-2", "ml-3"]);
    yard.convoy(&["gt-4"]);
    assert_eq!(yard.in_line(), ["gt-1"]);
    yard.close("gt-1");
    // In the transaction of the close; gt-5 is nobody's.
    assert_eq!(yard.in_line(), ["gt-2", "ml-3", "gt-4"]);
    assert_eq!(yard.claims(), ["gt-2", "ml-3", "gt-4"]);
    let by = "SELECT json_extract(data, '$.by') FROM event WHERE type = 'context.scheduled' AND bead = 'gt-2'";
    assert_eq!(yard.rows(by), ["feed"]);
}

#[test]
fn the_more_urgent_is_fed_first() {
    let mut yard = Yard::with(&["gt-1", "gt-2 > gt-1:blocks", "gt-3 > gt-1:blocks"]);
    yard.patch("gt-3", &BeadPatch { priority: Some(0), ..BeadPatch::default() }).expect("it is changed");
    yard.convoy(&["gt-1", "gt-2", "gt-3"]);
    yard.close("gt-1");
    assert_eq!(yard.in_line(), ["gt-3", "gt-2"]);
}

#[test]
fn only_what_somebody_should_work_on_is_fed() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3", "gt-4", "gt-5", "gt-6", "zz-7", "ml-8", "gt-9"]);
    let kind = |word: &str| BeadPatch { issue_type: Some(word.to_owned()), ..BeadPatch::default() };
    yard.patch("gt-2", &kind("epic")).expect("it is changed");
    yard.assign("gt-3", Some("ada"));
    yard.close("gt-4");
    yard.sling(&["gt-5"]);
    yard.patch("gt-6", &BeadPatch { pinned: Some(true), ..BeadPatch::default() }).expect("it is pinned");
    let stamp = yard.stamp();
    yard.store.set_rig_state("mill", RigState::Parked, EventType::RigParked, &stamp).expect("it is parked");
    yard.sling(&["gt-9"]);
    yard.store.clear_contexts(Some("gt-9"), &stamp).expect("it is cleared");
    yard.pass(1);
    yard.convoy(&["gt-1", "gt-2", "gt-3", "gt-4", "gt-5", "gt-6", "zz-7", "ml-8", "gt-9"]);
    assert_eq!(yard.in_line(), ["gt-5", "gt-1"]);
    assert_eq!(yard.sweep(), (vec![], vec![]));
    // What is put right is found by the sweep, or at once where a verb says so.
    yard.store.set_rig_state("mill", RigState::Active, EventType::RigUnparked, &stamp).expect("it is unparked");
    yard.assign("gt-3", None);
    assert_eq!(yard.sweep(), (vec!["gt-3".to_owned(), "ml-8".to_owned()], vec![]));
    // What was cleared stays so.
    assert_eq!(yard.explained("gt-9"), "ready: cleared");
}

#[test]
fn a_staged_convoy_is_inert_until_it_opens() {
    let mut yard = Yard::with(&["gt-1", "gt-2 > gt-1:blocks", "gt-3"]);
    let id = yard.convoy(&["gt-2", "gt-3"]);
    let stamp = yard.stamp();
    yard.store.clear_contexts(None, &stamp).expect("they are cleared");
    yard.peek.execute("DELETE FROM dispatch_record", []).expect("it is as if it had never been fed");
    yard.stage(&id);
    yard.close("gt-1");
    assert_eq!((yard.in_line(), yard.sweep()), (vec![], (vec![], vec![])));
    let fed = yard.store.feed_stranded(SignedDuration::ZERO, 9, &stamp).expect("it answers");
    assert_eq!((fed, yard.store.stranded().expect("it answers")), (vec![], vec![]));
    yard.close("gt-2");
    yard.close("gt-3");
    assert_eq!((yard.status(&id), yard.sweep()), ("staged:ready".to_owned(), (vec![], vec![])));
    // Somebody opens it, however: all are closed, so it lands.
    yard.set_status(&id, "open");
    assert_eq!((yard.status(&id), yard.landings()), ("closed".to_owned(), vec![id]));
}

#[test]
fn opening_a_staged_convoy_feeds_it() {
    let mut yard = Yard::with(&["gt-1"]);
    let id = yard.convoy(&["gt-1"]);
    let stamp = yard.stamp();
    yard.store.clear_contexts(None, &stamp).expect("they are cleared");
    yard.peek.execute("DELETE FROM dispatch_record", []).expect("it is as if it had never been fed");
    yard.stage(&id);
    yard.set_status(&id, "open");
    assert_eq!(yard.in_line(), ["gt-1"]);
}

#[test]
fn a_convoy_changes_its_status_only_as_the_table_says() {
    let mut yard = Yard::with(&["gt-1"]);
    let id = yard.convoy(&["gt-1"]);
    for word in ["staged:ready", "staged_warnings", "in_progress", "archived"] {
        let status = BeadPatch { status: Some(Status::parse(word)), ..BeadPatch::default() };
        let said = yard.patch(&id, &status).expect_err("it is refused").to_string();
        assert_eq!(said, format!("a convoy that is open cannot become {word}"));
    }
    yard.set_status(&id, "closed");
    yard.set_status(&id, "open");
    yard.stage(&id);
    yard.set_status(&id, "staged:warnings");
    yard.set_status(&id, "closed");
}

#[test]
fn a_convoy_lands_once_with_the_last_of_its_beads() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "ml-3"]);
    let id =
        yard.make_convoy(&NewConvoy { watchers: vec!["mayor".to_owned(); 2], ..convoy_of(&["gt-1", "gt-2", "ml-3"]) });
    yard.close("gt-1");
    yard.close("ml-3");
    assert_eq!((yard.status(&id), yard.landings()), ("open".to_owned(), vec![]));
    yard.close("gt-2");
    assert_eq!((yard.status(&id), yard.landings()), ("closed".to_owned(), vec![id.clone()]));
    assert_eq!(yard.rows("SELECT recipient || ': ' || subject FROM mail"), ["mayor: Convoy landed: Together"]);
    assert_eq!(yard.rows("SELECT kind || ' ' || bead FROM notice"), [format!("convoy.landed {id}")]);
    // It stays landed, though a member comes back.
    let stamp = yard.stamp();
    yard.store.reopen_beads(&["gt-2".to_owned()], &stamp).expect("it opens");
    yard.close("gt-2");
    assert_eq!((yard.sweep(), yard.landings().len()), ((vec![], vec![]), 1));
}

#[test]
fn whatever_ends_a_bead_lands_its_convoys() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3", "gt-4"]);
    let ids: Vec<String> = ["gt-1", "gt-2", "gt-3"].iter().map(|bead| yard.convoy(&[bead])).collect();
    // A worker that is done, a deletion, a member that is taken out.
    let run = yard.claim().into_iter().find(|one| one.bead == "gt-1").expect("it is claimed").run;
    yard.start(&run);
    yard.report(&run, gt_core::run::Outcome::Completed).expect("it is heard");
    let stamp = yard.stamp();
    yard.store.delete_beads(&["gt-2".to_owned()], None, &stamp).expect("it is deleted");
    yard.store.add_to_convoy(&ids[2], &["gt-4".to_owned()], &stamp).expect("it grows");
    yard.close("gt-4");
    yard.store.remove_from_convoy(&ids[2], &["gt-3".to_owned()], &stamp).expect("it shrinks");
    assert_eq!(yard.landings(), ids);
    yard.check();
}

#[test]
fn a_convoy_that_is_empty_owned_unresolved_or_pinned_does_not_land() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3", "gt-4"]);
    let empty = yard.convoy(&["gt-1"]);
    let stamp = yard.stamp();
    yard.store.remove_from_convoy(&empty, &["gt-1".to_owned()], &stamp).expect("it is taken out");
    let owned = yard.make_convoy(&NewConvoy { is_owned: true, ..convoy_of(&["gt-1"]) });
    let unresolved = yard.convoy(&["gt-2"]);
    yard.peek
        .execute("INSERT INTO edge SELECT key, 'external:x:y', 'tracks', '{}' FROM bead WHERE id = ?1", [&unresolved])
        .expect("it is linked");
    let pinned = yard.convoy(&["gt-3", "gt-4"]);
    yard.set_status("gt-4", "pinned");
    for bead in ["gt-1", "gt-2", "gt-3"] {
        yard.close(bead);
    }
    assert_eq!((yard.sweep(), yard.landings()), ((vec![], vec![]), vec![]));
    for id in [&empty, &owned, &unresolved, &pinned] {
        assert_eq!(yard.status(id), "open");
    }
    let said = yard.refused(|store, stamp| store.land_convoy(&unresolved, false, stamp));
    assert_eq!(said, format!("convoy {unresolved} lands by itself once its beads are closed"));
    assert!(yard.store.land_convoy(&owned, false, &stamp).expect("its owner lands it"));
    assert!(!yard.store.land_convoy(&owned, false, &stamp).expect("it is closed"));
    assert_eq!(yard.landings(), [owned]);
}

#[test]
fn what_was_closed_behind_everybodys_back_lands_with_a_check_or_a_sweep() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3"]);
    let (one, two) = (yard.convoy(&["gt-1"]), yard.convoy(&["gt-2", "gt-3"]));
    yard.import("{\"id\":\"gt-1\",\"title\":\"One\",\"status\":\"closed\"}\n{\"id\":\"gt-2\",\"title\":\"Two\",\"status\":\"closed\"}\n");
    assert_eq!(yard.landings(), Vec::<String>::new(), "what was imported exports as it was");
    let stamp = yard.stamp();
    let checked = yard.store.check_convoys(None, &stamp).expect("they are looked at");
    let short = |one: &Checked| (one.convoy.id.clone(), one.has_landed, one.convoy.n_done, one.convoy.n_total);
    assert_eq!(checked.iter().map(short).collect::<Vec<_>>(), [(one.clone(), true, 1, 1), (two.clone(), false, 1, 2)]);
    yard.import("{\"id\":\"gt-3\",\"title\":\"Three\",\"status\":\"closed\"}\n");
    assert_eq!(yard.sweep(), (vec![], vec![two.clone()]));
    assert_eq!(yard.landings(), [one, two]);
}

#[test]
fn a_closed_convoy_that_grows_opens_again() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    let id = yard.convoy(&["gt-1"]);
    yard.close("gt-1");
    let stamp = yard.stamp();
    let both = ["gt-1".to_owned(), "gt-2".to_owned()];
    assert_eq!(yard.store.add_to_convoy(&id, &both, &stamp).expect("it grows"), ["gt-2"]);
    assert_eq!((yard.status(&id), yard.in_line()), ("open".to_owned(), vec!["gt-2".to_owned()]));
    yard.close("gt-2");
    assert_eq!(yard.landings(), [id.clone(), id]);
    yard.check();
}

#[test]
fn closing_by_hand_needs_force_where_beads_are_open() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    let id = yard.convoy(&["gt-1", "gt-2"]);
    let said = yard.refused(|store, stamp| store.close_convoy(&id, None, false, stamp));
    assert_eq!(said, format!("convoy {id} has 2 open beads"));
    let stamp = yard.stamp();
    assert!(yard.store.close_convoy(&id, Some("enough"), true, &stamp).expect("it closes"));
    assert!(!yard.store.close_convoy(&id, None, false, &stamp).expect("it is closed"));
    assert_eq!(yard.landings(), Vec::<String>::new());
    let said = yard.refused(|store, stamp| store.close_convoy("gt-1", None, false, stamp));
    assert_eq!(said, "gt-1 is no convoy");
}

#[test]
fn a_cancelled_convoy_withdraws_what_has_not_started() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3", "gt-4 > gt-1:blocks", "gt-5"]);
    yard.policy.caps.town = Some(1);
    let id = yard.convoy(&["gt-1", "gt-2", "gt-3", "gt-4", "gt-5"]);
    yard.convoy(&["gt-3"]);
    assert_eq!(yard.claims(), ["gt-1"]);
    yard.close("gt-5");
    let stamp = yard.stamp();
    let withdrawn = yard.store.cancel_convoy(&id, Some("no more"), &stamp).expect("it is cancelled");
    let wanted = Withdrawn { beads: vec!["gt-2".to_owned()], running: vec!["gt-1".to_owned()] };
    assert_eq!(withdrawn, Some(wanted));
    assert_eq!(yard.store.cancel_convoy(&id, None, &stamp).expect("it is closed"), None);
    assert_eq!((yard.status(&id), yard.in_line()), ("closed".to_owned(), vec!["gt-3".to_owned()]));
    yard.close("gt-1");
    assert_eq!((yard.in_line(), yard.landings()), (vec!["gt-3".to_owned()], vec![]));
}

#[test]
fn a_staged_convoy_keeps_nothing_in_line_that_is_cancelled() {
    let mut yard = Yard::with(&["gt-1"]);
    let id = yard.convoy(&["gt-1"]);
    let stamp = yard.stamp();
    let staging = Staging { words: vec!["gt-1".to_owned()], ..Staging::default() };
    yard.store.stage_convoy(&staging, &stamp).expect("it is staged");
    let withdrawn = yard.store.cancel_convoy(&id, None, &stamp).expect("it is cancelled").expect("it was open");
    assert_eq!((withdrawn.beads, yard.in_line()), (vec!["gt-1".to_owned()], vec![]));
}

#[test]
fn a_convoy_does_not_track_itself() {
    let mut yard = Yard::with(&["gt-1"]);
    let id = yard.convoy(&["gt-1"]);
    let said = yard.refused(|store, stamp| store.add_to_convoy(&id, std::slice::from_ref(&id), stamp));
    assert_eq!(said, format!("{id} cannot depend on itself"));
}

#[test]
fn what_a_dead_worker_left_is_let_go_and_what_a_person_has_is_not() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3", "gt-4"]);
    yard.convoy(&["gt-4"]);
    let run = yard.claim_one();
    yard.start(&run.run);
    let stamp = yard.stamp();
    // As another town has left them.
    for (bead, who) in [("gt-1", None), ("gt-2", Some("shop/polecats/Nux")), ("gt-3", Some("ada"))] {
        let assignee = Some(who.map(Into::into));
        let status = Some(Status::parse("in_progress"));
        let patch = BeadPatch { status, assignee, ..BeadPatch::default() };
        yard.store.update_bead(bead, &patch, &stamp).expect("it is changed");
    }
    yard.store.create_convoy(&convoy_of(&["gt-1", "gt-2", "gt-3", "gt-4"]), &stamp).expect("its beads are there");
    assert_eq!(yard.sweep(), (vec!["gt-1".to_owned(), "gt-2".to_owned()], vec![]));
    assert_eq!(yard.holder("gt-3"), ("in_progress".to_owned(), Some("ada".to_owned())));
    // Who lives is left alone, and one that dies comes again by its own record.
    yard.end_as(ended(&run.run));
    assert_eq!(yard.sweep(), (vec![], vec![]));
    assert_eq!(yard.held_by("gt-4"), ["cooling-down"]);
}

#[test]
fn the_deacon_feeds_each_convoy_once_in_a_while_and_so_many_at_a_time() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3", "gt-4"]);
    for bead in ["gt-1", "gt-2", "gt-3"] {
        yard.assign(bead, Some("ada"));
    }
    let ids: Vec<String> = ["gt-1", "gt-2", "gt-3"].iter().map(|bead| yard.convoy(&[bead])).collect();
    for bead in ["gt-1", "gt-2", "gt-3"] {
        yard.assign(bead, None);
    }
    let stranded = yard.store.stranded().expect("it answers");
    assert_eq!(stranded.iter().map(|one| (one.n_tracked, one.ready.len())).collect::<Vec<_>>(), [(1, 1); 3]);
    let cooldown = SignedDuration::from_mins(10);
    let cycle = |yard: &mut Yard| {
        let stamp = yard.stamp();
        let fed = yard.store.feed_stranded(cooldown, 2, &stamp).expect("it answers");
        yard.check();
        fed.into_iter().map(|one| (one.id, one.beads, one.cooling_until.is_some())).collect::<Vec<_>>()
    };
    let fed = cycle(&mut yard);
    let wanted = [(&ids[0], vec!["gt-1"], false), (&ids[1], vec!["gt-2"], false), (&ids[2], vec![], false)];
    assert_eq!(
        fed,
        wanted.map(|(id, beads, cools)| (id.clone(), beads.into_iter().map(str::to_owned).collect(), cools))
    );
    let stamp = yard.stamp();
    yard.store.add_to_convoy(&ids[0], &["gt-4".to_owned()], &stamp).expect("it grows");
    yard.store.clear_contexts(Some("gt-4"), &stamp).expect("it is cleared");
    yard.peek.execute("DELETE FROM dispatch_record", []).expect("nothing holds it");
    let fed = cycle(&mut yard);
    assert_eq!(fed[0], (ids[0].clone(), vec![], true));
    assert_eq!(fed[1], (ids[2].clone(), vec!["gt-3".to_owned()], false));
    yard.pass(601);
    assert_eq!(cycle(&mut yard), [(ids[0].clone(), vec!["gt-4".to_owned()], false)]);
}

#[test]
fn a_deferral_that_ends_feeds() {
    let mut yard = Yard::with(&["gt-1"]);
    let until = Some(Some(yard.now + SignedDuration::from_secs(60)));
    yard.patch("gt-1", &BeadPatch { defer_until: until, ..BeadPatch::default() }).expect("it is deferred");
    yard.convoy(&["gt-1"]);
    assert_eq!(yard.in_line(), Vec::<String>::new());
    yard.pass(61);
    assert_eq!(yard.claims(), ["gt-1"]);
}

#[test]
fn launching_one_convoy_leaves_the_others_their_turn() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    let until = Some(Some(yard.now + SignedDuration::from_secs(60)));
    yard.patch("gt-1", &BeadPatch { defer_until: until, ..BeadPatch::default() }).expect("it is deferred");
    yard.convoy(&["gt-1"]);
    yard.pass(61);
    let stamp = yard.stamp();
    let staging =
        Staging { words: vec!["gt-2".to_owned()], then: Going::Launch { force: false }, ..Staging::default() };
    yard.store.stage_convoy(&staging, &stamp).expect("it is launched");
    assert_eq!(yard.in_line(), ["gt-1"], "the deferral ended just then, and gt-2 is for whoever launches");
}

#[test]
fn a_watcher_is_noted_once() {
    let mut yard = Yard::with(&["gt-1"]);
    let id = yard.convoy(&["gt-1"]);
    let stamp = yard.stamp();
    for (watches, changes) in [(true, true), (true, false), (false, true), (false, false)] {
        assert_eq!(yard.store.watch_convoy(&id, "mayor", watches, &stamp).expect("it is noted"), changes);
    }
}

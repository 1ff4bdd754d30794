//! The seed's tables: every command with its flags, the detection chain, the rigs, the count, the keys.

use serde_json::{Value, json};

use super::{STAYS, beads, cast, fields, gastown, gt, queued, said};
use crate::fleet::FINISHES;
use crate::town::{session, snapshot};

/// Row `gt queue <bead>`: each flag is kept in the context, under the name of the seed's field table.
#[test]
fn every_flag_of_a_task_is_kept_in_its_context() {
    let fleet = gastown(FINISHES);
    let rows = [
        ("--merge mr", "merge", json!("mr")),
        ("--args carefully", "args", json!("carefully")),
        ("--formula mol-polecat-work", "formula", json!("mol-polecat-work")),
        ("--hook-raw-bead", "hook_raw_bead", json!(true)),
        ("--account work", "account", json!("work")),
        ("--agent scripted", "agent", json!("scripted")),
        ("--ralph", "mode", json!("ralph")),
        ("--var a=b", "vars", json!("a=b")),
        ("--base-branch dev", "base_branch", json!("dev")),
        ("--no-merge", "no_merge", json!(true)),
        ("--owned", "owned", json!(true)),
    ];
    let ids: Vec<String> = (0..2 * rows.len()).map(|n| format!("gt-t{n}")).collect();
    fleet.hold(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    let mut beads = ids.iter();
    for (flag, field, value) in rows {
        for line in [format!("queue BEAD {flag}"), format!("sling BEAD gastown --queue {flag}")] {
            let bead = beads.next().expect("two for each row");
            gt(&fleet, &line.replace("BEAD", bead)).success();
            let fields = fields(&fleet, bead);
            assert_eq!(fields[field], value, "{line}: {fields}");
            assert_eq!((&fields["target_rig"], &fields["queued"]), (&"gastown".into(), &true.into()), "{line}");
        }
    }
}

#[test]
fn force_no_convoy_and_dry_run_do_what_they_say() {
    let fleet = gastown(FINISHES);
    fleet.hold(&["gt-abc", "gt-def"]);
    let before = fleet.town.state();
    let dry = said(&fleet, "queue gt-abc --dry-run");
    assert_eq!(dry["results"][0]["outcome"], "scheduled");
    assert_eq!(fleet.town.state(), before, "a dry run changes nothing");
    assert_eq!(said(&fleet, "queue gt-abc --no-convoy")["results"][0]["convoy"], Value::Null);
    gt(&fleet, "bead update gt-def --status in_progress --assignee ann").success();
    assert_eq!(gt(&fleet, "queue gt-def").code, 1, "the status guard");
    assert_eq!(said(&fleet, "queue gt-def --force")["results"][0]["outcome"], "scheduled");
}

/// Rows `gt queue <convoy-id>` and `gt queue <epic-id>`: what they take, and what they refuse.
#[test]
fn epics_and_convoys_take_their_row_of_flags_and_refuse_the_others() {
    let fleet = gastown(FINISHES);
    cast(&fleet);
    for id in ["hq-cv-abc", "gt-epic-123"] {
        for flag in ["--dry-run", "--force", "--formula mol-polecat-work", "--hook-raw-bead"] {
            let answer = said(&fleet, &format!("queue {id} {flag}"));
            let outcomes: Vec<&Value> =
                answer["results"].as_array().expect("a list").iter().map(|one| &one["outcome"]).collect();
            assert_eq!(outcomes, ["scheduled", "scheduled"], "{id} {flag}");
            gt(&fleet, "queue clear").success();
        }
    }
    let mut transcript = fleet.town.refused("queue gt-epic-123 gastown".split(' '));
    transcript += &fleet.town.refused("queue hq-cv-abc --args carefully --agent scripted".split(' '));
    for flag in ["--merge mr", "--no-convoy", "--account a", "--ralph", "--formula nosuch"] {
        let answer = gt(&fleet, &format!("queue gt-epic-123 {flag}"));
        assert_ne!(answer.code, 0, "{answer}");
        transcript.extend([flag, ": ", answer.stderr.lines().next().unwrap_or_default(), "\n"]);
    }
    assert!(queued(&fleet).is_empty());
    snapshot!(transcript, @r"
    $ gt queue gt-epic-123 gastown
    ! error: gt-epic-123 is an epic, and its parts go to their own rigs
    ! hint: leave the rig out: `gt queue gt-epic-123`
    [exit 2]
    $ gt queue hq-cv-abc --args carefully --agent scripted
    ! error: queuing a convoy does not take --args, --agent
    ! hint: queue its tasks by their ids to use these flags
    [exit 2]
    --merge mr: error: queuing an epic does not take --merge
    --no-convoy: error: queuing an epic does not take --no-convoy
    --account a: error: queuing an epic does not take --account
    --ralph: error: queuing an epic does not take --ralph
    --formula nosuch: error: there is no formula `nosuch`
    ");
}

/// The detection chain: `--on`, then `hq-cv-`, then the type epic, then the type convoy, then a task.
#[test]
fn what_is_meant_is_detected_in_the_order_of_the_seed() {
    let fleet = gastown(FINISHES);
    cast(&fleet);
    fleet.hold_lines(&[
        r#"{"id":"gt-cvy","title":"A convoy by type","issue_type":"convoy","dependencies":[{"depends_on_id":"gt-abc","type":"tracks"}]}"#,
        r#"{"id":"hq-cv-odd","title":"A convoy by name","issue_type":"task","dependencies":[{"depends_on_id":"gt-def","type":"tracks"}]}"#,
    ]);
    for (line, wanted) in [
        ("queue mol-polecat-work --on gt-abc", &["gt-abc"][..]),
        ("queue mol-polecat-work --on gt-abc gastown", &["gt-abc"]),
        ("queue hq-cv-odd", &["gt-def"]),
        ("queue hq-cv-abc", &["gt-one", "gt-two"]),
        ("queue gt-epic-123", &["gt-e1", "gt-e2"]),
        ("queue gt-cvy", &["gt-abc"]),
        ("queue gt-ghi", &["gt-ghi"]),
        ("queue gt-ghi gastown", &["gt-ghi"]),
        ("queue gt-ghi gt-abc gastown", &["gt-ghi", "gt-abc"]),
    ] {
        let answer = said(&fleet, line);
        assert_eq!(beads(&answer["results"]), wanted, "{line}");
        assert_eq!(queued(&fleet), wanted, "{line}");
        gt(&fleet, "queue clear").success();
    }
    assert_eq!(gt(&fleet, "queue nosuch --on gt-abc").code, 3);
}

#[test]
fn rigs_are_resolved_bead_by_bead_and_town_beads_are_skipped() {
    let fleet = gastown(FINISHES);
    fleet.town.repository("docs");
    gt(&fleet, "rig add docs docs --prefix shop").success();
    fleet.hold(&["gt-abc", "shop-one"]);
    fleet.hold_lines(&[
        r#"{"id":"hq-one","title":"Coordinate"}"#,
        r#"{"id":"hq-cv-mix","title":"Mixed","issue_type":"convoy","dependencies":[{"depends_on_id":"gt-abc","type":"tracks"},{"depends_on_id":"hq-one","type":"tracks"},{"depends_on_id":"shop-one","type":"tracks"}]}"#,
    ]);
    snapshot!(session([
        gt(&fleet, "queue hq-cv-mix"),
        gt(&fleet, "queue clear"),
        gt(&fleet, "queue shop-one gastown"),
        gt(&fleet, "queue shop-one gastown --force"),
        gt(&fleet, "queue gt-abc hq-one"),
    ]), @r"
    $ gt queue hq-cv-mix
    ✓ Queued gt-abc → gastown (context: gt-wisp-id01)
        queue.enabled is false: the daemon leaves it alone; `gt queue run` starts it, or `gt config set queue.enabled true`
    ! Skipped hq-one: hq-one is a town bead, which is never given to an agent
    ✓ Queued shop-one → docs (context: shop-wisp-id02)
        queue.enabled is false: the daemon leaves it alone; `gt queue run` starts it, or `gt config set queue.enabled true`
    Tracked by convoy hq-cv-mix.
    3 beads: 2 queued, 1 skipped.
    $ gt queue clear
    Took 2 beads off the queue.
    $ gt queue shop-one gastown
    ! error: shop-one belongs to rig `docs`, not to rig `gastown`
    ! hint: leave the rig out, or insist with `gt queue shop-one gastown --force`
    [exit 1]
    $ gt queue shop-one gastown --force
    ✓ Queued shop-one → gastown (context: gt-wisp-id03)
        queue.enabled is false: the daemon leaves it alone; `gt queue run` starts it, or `gt config set queue.enabled true`
    Tracked by convoy hq-cv-mix.
    $ gt queue gt-abc hq-one
    ✓ Queued gt-abc → gastown (context: gt-wisp-id04)
        queue.enabled is false: the daemon leaves it alone; `gt queue run` starts it, or `gt config set queue.enabled true`
    ! Skipped hq-one: hq-one is a town bead, which is never given to an agent
    Tracked by convoy hq-cv-mix.
    2 beads: 1 queued, 1 skipped.
    ");
}

/// `toDispatch = min(capacity, batchSize, readyCount)`, with 0 for no limit; the planner's own table is in the core.
#[test]
fn a_run_starts_the_smallest_of_capacity_batch_and_ready() {
    for (max, batch, flags, n, reason) in [
        ("2", "3", "", 2, "capacity"),
        ("10", "3", "", 3, "batch"),
        ("0", "3", "", 3, "batch"),
        ("0", "0", "", 5, "ready"),
        ("10", "0", "", 5, "ready"),
        ("10", "3", " --batch 1", 1, "batch"),
        ("10", "3", " --batch 4", 4, "batch"),
        ("10", "0", " --max-polecats 2", 2, "capacity"),
        ("2", "0", " --max-polecats 4", 4, "capacity"),
    ] {
        let fleet = gastown(STAYS);
        fleet.set("queue.max_polecats", max);
        fleet.set("queue.batch_size", batch);
        fleet.hold(&["gt-a", "gt-b", "gt-c", "gt-d", "gt-e"]);
        gt(&fleet, "queue gt-a gt-b gt-c gt-d gt-e").success();
        let dry = said(&fleet, &format!("queue run --dry-run{flags}"));
        let run = said(&fleet, &format!("queue run{flags}"));
        let what = format!("{max}, {batch},{flags}: {run}");
        assert_eq!((beads(&run["dispatched"]).len(), &run["reason"]), (n, &reason.into()), "{what}");
        assert_eq!(beads(&dry["would_dispatch"]), beads(&run["dispatched"]), "{what}");
        assert_eq!((&run["ready"], &run["skipped"]), (&5.into(), &(5 - n).into()), "{what}");
    }
}

/// Active polecats are all of them, whoever started them.
#[test]
fn what_was_slung_counts_against_the_cap_of_the_queue() {
    let fleet = gastown(STAYS);
    fleet.set("queue.max_polecats", "2");
    fleet.hold(&["gt-a", "gt-b", "gt-c", "gt-d"]);
    gt(&fleet, "sling gt-a").success();
    gt(&fleet, "queue gt-b gt-c").success();
    assert_eq!(said(&fleet, "queue status")["free"], 1);
    assert_eq!(beads(&said(&fleet, "queue run")["dispatched"]), ["gt-b"]);
    let full = gt(&fleet, "queue run");
    assert_eq!(full.code, 5, "{full}");
    assert_eq!(said(&fleet, "sling gt-d")["results"][0]["outcome"], "dispatched", "a sling has no cap");
    snapshot!(full.to_string(), @r"
    $ gt queue run
    ⏸ 1 ready bead waiting: all 2 slots of the queue are taken by gastown/Toast, gastown/Ember
    [exit 5]
    ");
}

#[test]
fn the_keys_have_the_defaults_of_the_seed_and_are_set_as_it_says() {
    let fleet = crate::fleet::Fleet::in_rig("gastown", FINISHES);
    for (key, default, value) in [
        ("queue.enabled", "false", "true"),
        ("queue.max_polecats", "10", "5"),
        ("queue.batch_size", "3", "2"),
        ("queue.spawn_delay", "2s", "3s"),
    ] {
        assert_eq!(gt(&fleet, &format!("config get {key}")).stdout.trim(), default);
        gt(&fleet, &format!("config set {key} {value}")).success();
        assert_eq!(gt(&fleet, &format!("config get {key}")).stdout.trim(), value);
    }
}

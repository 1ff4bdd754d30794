//! What can be wrong with convoys: how they feed, land, are cancelled and swept.

use super::{DAEMON, Defect, Edit};

const CONVOYS: &str = "crates/gt-store/src/dispatch/convoys.rs";
const FEED: &str = "crates/gt-store/src/dispatch/feed.rs";
const LANDING: &str = "crates/gt-store/src/dispatch/landing.rs";
const STORE: &str = "crates/gt-store/src/store.rs";

pub(super) const DEFECTS: &[Defect] = &[
    Defect {
        name: "fed-though-held",
        what: "What was taken off the queue is put back for its convoy's sake.",
        edits: &[Edit {
            file: FEED,
            from: r"let found = tx.prepare_cached(&sql)?.query_row([key], member)",
            to: r#"let sql = if crate::defect("fed-though-held") { sql.replace("record.hold IS NOT NULL", "0") } else { sql };
        let found = tx.prepare_cached(&sql)?.query_row([key], member)"#,
        }],
    },
    Defect {
        name: "fed-though-staged",
        what: "A convoy that is staged feeds.",
        edits: &[Edit {
            file: FEED,
            from: r#" AND bead.key = ?1 ORDER BY convoy.key LIMIT 1");"#,
            to: r#" AND bead.key = ?1 ORDER BY convoy.key LIMIT 1");
        let sql = if crate::defect("fed-though-staged") { sql.replace("AND convoy.status = 'open'", "") } else { sql };"#,
        }],
    },
    Defect {
        name: "parked-rig-fed",
        what: "What lies in a parked rig is put in line for its convoy.",
        edits: &[Edit {
            file: FEED,
            from: r"&& rig.state == RigState::Active).then_some(rig)",
            to: r#"&& (rig.state == RigState::Active || crate::defect("parked-rig-fed"))).then_some(rig)"#,
        }],
    },
    Defect {
        name: "feeding-left-to-sweep",
        what: "What a close makes ready is not put in line before the next sweep.",
        edits: &[Edit {
            file: STORE,
            from: r"feed::settle(tx, stamp)?;",
            to: r#"if !crate::defect("feeding-left-to-sweep") {
                feed::settle(tx, stamp)?;
            }"#,
        }],
    },
    Defect {
        name: "lands-with-open-beads",
        what: "A convoy lands though one of its beads is not closed.",
        edits: &[Edit {
            file: LANDING,
            from: r"Ok(laggard.is_none())",
            to: r#"Ok(laggard.is_none() || crate::defect("lands-with-open-beads"))"#,
        }],
    },
    Defect {
        name: "lands-twice",
        what: "A convoy that has landed lands again when one of its beads does.",
        edits: &[Edit {
            file: LANDING,
            from: r"if !tx.prepare_cached(&sql)?.query_row([convoy], |row| row.get(0))? {",
            to: r#"let sql = match crate::defect("lands-twice") {
        true => sql.replace("AND convoy.standing IS NOT NULL AND convoy.status = 'open'", ""),
        false => sql,
    };
    if !tx.prepare_cached(&sql)?.query_row([convoy], |row| row.get(0))? {"#,
        }],
    },
    Defect {
        name: "owned-lands-by-itself",
        what: "A convoy that its owner is to land lands by itself.",
        edits: &[Edit {
            file: LANDING,
            from: r#"WHERE convoy.key = ?1 AND {MAY_LAND})");"#,
            to: r#"WHERE convoy.key = ?1 AND {MAY_LAND})");
    let sql = if crate::defect("owned-lands-by-itself") { sql.replace("), 0) = 0", "), 0) >= 0") } else { sql };"#,
        }],
    },
    Defect {
        name: "laggard-never-looked-at-again",
        what: "A bead that kept its convoy from landing keeps it so for ever.",
        edits: &[Edit {
            file: LANDING,
            from: r"let known = known.unwrap_or_default();",
            to: r#"if crate::defect("laggard-never-looked-at-again") && known.is_some() {
        return Ok(known);
    }
    let known = known.unwrap_or_default();"#,
        }],
    },
    Defect {
        name: "cancel-withdraws-nobody",
        what: "What a cancelled convoy has put in line stays there.",
        edits: &[Edit {
            file: CONVOYS,
            from: r"if following(tx, &edge.target)?.is_some_and(|other| !other.is_staged) {",
            to: r#"if following(tx, &edge.target)?.is_some_and(|other| !other.is_staged) || crate::defect("cancel-withdraws-nobody") {"#,
        }],
    },
    Defect {
        name: "never-swept",
        what: "Nobody searches open convoys for what is stranded.",
        edits: &[Edit {
            file: "crates/gt-engine/src/daemon/chores.rs",
            from: r"if is_needed { self.store.sweep(stamp)? }",
            to: r#"if is_needed && !crate::defect("never-swept") { self.store.sweep(stamp)? }"#,
        }],
    },
    Defect {
        name: "sweep-waits-for-the-clock",
        what: "A clock that was set back holds up the sweep until it has caught up.",
        edits: &[Edit {
            file: DAEMON,
            from: r"at > now + self.settings.sweep)",
            to: r#"(at > now + self.settings.sweep && !crate::defect("sweep-waits-for-the-clock")))"#,
        }],
    },
];

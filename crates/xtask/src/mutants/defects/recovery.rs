//! What can be wrong with the witness, with letters and notices, with imports, and with staging and launching.

use super::{Defect, Edit, RUNS};

const CORE_WITNESS: &str = "crates/gt-core/src/witness.rs";
const WITNESS: &str = "crates/gt-engine/src/dispatch/witness.rs";
const STORE_WITNESS: &str = "crates/gt-store/src/dispatch/witness.rs";
const ALARMS: &str = "crates/gt-store/src/dispatch/alarms.rs";
const LANDING: &str = "crates/gt-store/src/dispatch/landing.rs";
const FEED: &str = "crates/gt-store/src/dispatch/feed.rs";
const IMPORT: &str = "crates/gt-store/src/import.rs";
const STAGING: &str = "crates/gt-store/src/dispatch/staging.rs";

pub(super) const DEFECTS: &[Defect] = &[
    Defect {
        name: "silence-ignored",
        what: "Nobody looks at runs that give no sign of life.",
        edits: &[Edit {
            file: WITNESS,
            from: r"if due.is_empty() {",
            to: r#"if due.is_empty() || crate::defect("silence-ignored") {"#,
        }],
    },
    Defect {
        name: "silence-answered-too-early",
        what: "A run is reported, interrupted and stopped however short its silence is.",
        edits: &[Edit {
            file: CORE_WITNESS,
            from: r"(at, due) if now >= at && at < Timestamp::MAX => due,",
            to: r#"(at, due) if now >= at || crate::defect("silence-answered-too-early") => due,
        (at, due) if now >= at && at < Timestamp::MAX => due,"#,
        }],
    },
    Defect {
        name: "stopped-without-interrupt",
        what: "A silent run that was reported is stopped and not interrupted before.",
        edits: &[Edit {
            file: CORE_WITNESS,
            from: r"(Some(stalled_at), None) => (after(stalled_at, span), Step::Interrupt),",
            to: r#"(Some(stalled_at), None) if crate::defect("stopped-without-interrupt") => (after(stalled_at, span), Step::Stop),
            (Some(stalled_at), None) => (after(stalled_at, span), Step::Interrupt),"#,
        }],
    },
    Defect {
        name: "interrupt-not-noted",
        what: "A silent run is interrupted, and nobody writes that down.",
        edits: &[Edit {
            file: WITNESS,
            from: r"if store.note_interrupt(run, since, &stamp)? {",
            to: r#"if crate::defect("interrupt-not-noted") || store.note_interrupt(run, since, &stamp)? {"#,
        }],
    },
    Defect {
        name: "waiting-taken-for-stalled",
        what: "A run that has said that it waits, while nobody listened, counts as stalled.",
        edits: &[Edit {
            file: WITNESS,
            from: r"_ if self.has_reason(run, settings) => {}",
            to: r#"_ if !crate::defect("waiting-taken-for-stalled") && self.has_reason(run, settings) => {}"#,
        }],
    },
    Defect {
        name: "spoken-taken-for-stalled",
        what: "A run that speaks between the look at it and the report is reported as stalled.",
        edits: &[Edit {
            file: STORE_WITNESS,
            from: r"let seen = [run.stalled_at, run.interrupted_at]",
            to: r#"let sql = match crate::defect("spoken-taken-for-stalled") {
        true => sql.replace("AND said IS NULL AND waiting_for IS NULL", ""),
        false => sql,
    };
    let seen = [run.stalled_at, run.interrupted_at]"#,
        }],
    },
    Defect {
        name: "silence-waits-for-the-clock",
        what: "A clock that was set back hides a silence until it has caught up.",
        edits: &[Edit {
            file: WITNESS,
            from: r"if sign > now {",
            to: r#"if sign > now && !crate::defect("silence-waits-for-the-clock") {"#,
        }],
    },
    Defect {
        name: "stall-untold",
        what: "A stalled run is in the log, and no notice tells of it.",
        edits: &[Edit {
            file: STORE_WITNESS,
            from: r"alarms::stalled(tx, run, &data, stamp)?;",
            to: r#"if !crate::defect("stall-untold") {
                    alarms::stalled(tx, run, &data, stamp)?;
                }"#,
        }],
    },
    Defect {
        name: "recovery-untold",
        what: "The deacon is not written to when a run has ended without a word.",
        edits: &[Edit {
            file: RUNS,
            from: r"alarms::recovered(tx, &run, outcome, &reason, last_output, stamp)",
            to: r#"if crate::defect("recovery-untold") {
        return Ok(());
    }
    alarms::recovered(tx, &run, outcome, &reason, last_output, stamp)"#,
        }],
    },
    Defect {
        name: "mayor-not-asked",
        what: "The mayor is not written to when a bead is out of attempts.",
        edits: &[Edit {
            file: ALARMS,
            from: r"send(tx, MAYOR, &subject, body, run, stamp)?;",
            to: r#"if !crate::defect("mayor-not-asked") {
        send(tx, MAYOR, &subject, body, run, stamp)?;
    }"#,
        }],
    },
    Defect {
        name: "circuit-breaks-silently",
        what: "Nobody is written to when a circuit breaks.",
        edits: &[Edit {
            file: RUNS,
            from: r"if failures <= n_failed_starts(tx, context)? {",
            to: r#"if failures <= n_failed_starts(tx, context)? && !crate::defect("circuit-breaks-silently") {"#,
        }],
    },
    Defect {
        name: "landing-told-twice",
        what: "Two notices tell of one landing.",
        edits: &[Edit {
            file: LANDING,
            from: r"notices::put(tx, EventType::ConvoyLanded, Some(&convoy.id), &text, &data, stamp)",
            to: r#"if crate::defect("landing-told-twice") {
        notices::put(tx, EventType::ConvoyLanded, Some(&convoy.id), &text, &data, stamp)?;
    }
    notices::put(tx, EventType::ConvoyLanded, Some(&convoy.id), &text, &data, stamp)"#,
        }],
    },
    Defect {
        name: "imported-links-stay",
        what: "An edge that a file no longer has stays when it is imported.",
        edits: &[Edit {
            file: IMPORT,
            from: r"unlink_gone(ledger, self.key, before, &self.bead)?;",
            to: r#"if !crate::defect("imported-links-stay") {
            unlink_gone(ledger, self.key, before, &self.bead)?;
        }"#,
        }],
    },
    Defect {
        name: "imported-end-unnoticed",
        what: "A convoy that an import has completed is not found by the sweep.",
        edits: &[Edit {
            file: FEED,
            from: r"landing::is_any_complete(tx)?",
            to: r#"(landing::is_any_complete(tx)? && !crate::defect("imported-end-unnoticed"))"#,
        }],
    },
    Defect {
        name: "imported-work-unnoticed",
        what: "Work that an import has freed is not found by the sweep.",
        edits: &[Edit {
            file: FEED,
            from: r"Ok(is_hungry(tx)? ||",
            to: r#"Ok((is_hungry(tx)? && !crate::defect("imported-work-unnoticed")) ||"#,
        }],
    },
    Defect {
        name: "launch-forgets-one",
        what: "Whoever launches a convoy slings all but one of its first wave.",
        edits: &[Edit {
            file: STAGING,
            from: r"first.into_iter().map(|at| self.graph.id(at).to_owned()).collect()",
            to: r#"let n_left = usize::from(crate::defect("launch-forgets-one") && first.len() > 1);
        first.into_iter().skip(n_left).map(|at| self.graph.id(at).to_owned()).collect()"#,
        }],
    },
    Defect {
        name: "staged-without-its-first",
        what: "Staging does not track the first of what it says it does.",
        edits: &[Edit {
            file: STAGING,
            from: r"for id in wanted.iter().filter(|id| !tracked.contains(**id)) {",
            to: r#"let n_left = usize::from(crate::defect("staged-without-its-first"));
    for id in wanted.iter().filter(|id| !tracked.contains(**id)).skip(n_left) {"#,
        }],
    },
];

//! The judge of dispatch: what must hold between contexts, runs, polecats and beads. // DESIGN, invariants
//!
//! Slow on purpose, like the judge of readiness: for tests and `gt doctor`.

use gt_core::context::ContextState;
use gt_core::run::RunState;
use gt_core::status::Status;
use jiff::Timestamp;
use rusqlite::Connection;

use crate::error::{Result, StoreError};
use crate::rows::timestamp;
use crate::store::Store;
use crate::{jobs, sessions};

/// What must never be, each with a query that finds it.
const NEVER: [(&str, &str); 7] = [
    (
        "a bead has two contexts that are not closed",
        "SELECT bead FROM context WHERE state <> 'closed' GROUP BY bead HAVING count(*) > 1",
    ),
    (
        "a bead has two live runs",
        "SELECT bead FROM run WHERE state <> 'ended' AND bead IS NOT NULL GROUP BY bead HAVING count(*) > 1",
    ),
    (
        "the queue does not follow the bead of a context",
        "SELECT context.id FROM context JOIN bead ON bead.key = context.bead WHERE context.state = 'open'
           AND context.ready <> CASE WHEN bead.standing IS NULL THEN 2 ELSE bead.standing = 'ready' END",
    ),
    (
        "a context is claimed by a run that does not live",
        "SELECT id FROM context WHERE state = 'claimed'
           AND NOT EXISTS (SELECT 1 FROM run WHERE run.id = context.run AND run.state <> 'ended')",
    ),
    (
        "a run is being started without its context",
        "SELECT id FROM run WHERE state = 'starting' AND bead IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM context WHERE context.id = run.context AND context.state = 'claimed')",
    ),
    (
        "a polecat has a run that does not live",
        "SELECT name FROM polecat WHERE run IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM run WHERE run.id = polecat.run AND run.state <> 'ended')",
    ),
    (
        "a live run has no polecat of its own",
        "SELECT id FROM run WHERE state <> 'ended' AND bead IS NOT NULL AND (SELECT count(*) FROM polecat WHERE polecat.run = run.id) <> 1",
    ),
];

/// How a bead stands in dispatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    pub bead: String,
    pub status: Status,
    /// Of its open or claimed context.
    pub context: Option<ContextState>,
    /// Its live run.
    pub run: Option<(String, RunState)>,
    pub attempts: i64,
    pub hold: Option<String>,
}

/// A step of the plan of a bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFigure {
    pub bead: String,
    pub id: String,
    /// Who has done it.
    pub run: Option<String>,
}

/// What a run has cost, as far as that was told.
#[derive(Debug, Clone, PartialEq)]
pub struct Expense {
    pub run: String,
    pub dollars: f64,
    pub told_at: Timestamp,
}

impl Store {
    /// How every bead that could be given to an agent stands in dispatch, for judges.
    pub fn figures(&mut self) -> std::result::Result<Vec<Figure>, StoreError> {
        self.read(figures)
    }

    /// Every step as the last sling by steps planned it, in order, for judges.
    pub fn planned_steps(&mut self) -> std::result::Result<Vec<PlannedFigure>, StoreError> {
        self.read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT bead.id, step.id, step.run FROM step JOIN bead ON bead.key = step.bead
                 ORDER BY step.bead, place",
            )?;
            let steps = query
                .query_map([], |row| Ok(PlannedFigure { bead: row.get(0)?, id: row.get(1)?, run: row.get(2)? }))?;
            Ok(steps.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// What every run is known to have cost, for judges.
    pub fn expenses(&mut self) -> std::result::Result<Vec<Expense>, StoreError> {
        self.read(|tx| {
            let mut query = tx.prepare_cached("SELECT id, cost, cost_at FROM run WHERE cost_at IS NOT NULL")?;
            let expenses = query.query_map([], |row| {
                Ok(Expense { run: row.get(0)?, dollars: row.get(1)?, told_at: timestamp(row.get(2)?) })
            })?;
            Ok(expenses.collect::<rusqlite::Result<_>>()?)
        })
    }
}

fn figures(tx: &Connection) -> Result<Vec<Figure>> {
    let mut query = tx.prepare_cached(
        "SELECT bead.id, bead.status, context.state, run.id, run.state, coalesce(attempts, 0), hold FROM bead
         LEFT JOIN context ON context.bead = bead.key AND context.state <> 'closed'
         LEFT JOIN run ON run.bead = bead.key AND run.state <> 'ended'
         LEFT JOIN dispatch_record ON dispatch_record.bead = bead.key
         WHERE bead.issue_type IS NOT 'convoy' ORDER BY bead.key",
    )?;
    let figures = query.query_map([], |row| {
        let word = |column| row.get::<_, Option<String>>(column);
        let run = word(3)?.zip(word(4)?.as_deref().and_then(RunState::parse));
        Ok(Figure {
            bead: row.get(0)?,
            status: Status::parse(row.get_ref(1)?.as_str()?),
            context: word(2)?.as_deref().and_then(ContextState::parse),
            run,
            attempts: row.get(5)?,
            hold: word(6)?,
        })
    })?;
    Ok(figures.collect::<rusqlite::Result<_>>()?)
}

/// Every sentence that does not hold; empty when all is well.
pub(crate) fn complaints(tx: &Connection) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for (sentence, sql) in NEVER {
        let mut query = tx.prepare_cached(&format!("SELECT count(*) FROM ({sql})"))?;
        let n: i64 = query.query_row([], |row| row.get(0))?;
        if n > 0 {
            complaints.push(format!("{sentence} ({n} times)"));
        }
    }
    complaints.extend(sessions::check::faults(tx)?);
    complaints.extend(jobs::check::faults(tx)?);
    Ok(complaints)
}

/// Mends what can be worked out anew: the queue's view of the beads.
pub(crate) fn mend_queue(tx: &Connection) -> Result<usize> {
    Ok(tx.execute(
        "UPDATE context SET ready = (SELECT CASE WHEN standing IS NULL THEN 2 ELSE standing = 'ready' END
           FROM bead WHERE key = context.bead) WHERE state = 'open'",
        [],
    )?)
}

//! What jobs are at right now: which of their fires is under way, and how far. // SPEC K1, K4

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::Row;

use crate::error::StoreError;
use crate::rows::timestamp;
use crate::store::Store;

/// What a job is at: of its fires that are not over the one that is furthest, and of those the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnderWay {
    pub stage: Stage,
    pub slot: Timestamp,
    /// Which attempt it is at, or was.
    pub attempt: i64,
    /// The last slot of which a fire is not over.
    pub last_slot: Timestamp,
}

/// How far a fire is that is not over; what is furthest comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// An attempt is being made, since then where that is known.
    Runs { since: Option<Timestamp> },
    /// Its attempt waits to be started.
    Waits,
    /// It has failed, and is tried again then.
    TriedAgain { at: Timestamp },
}

/// By the index of fires that are not over, so that it costs the same however long the log is. Whether an attempt is being made
/// is known to its turn.
pub(super) const UNDER_WAY: &str =
    "SELECT fire.job, fire.slot, fire.attempt, fire.retry_at, turn.state IS 'live', run.started_at
     FROM fire LEFT JOIN turn ON turn.id = fire.turn LEFT JOIN run ON run.id = turn.run
     WHERE fire.status = 'running'";

impl Store {
    /// What each job is at that is at something, by its id.
    pub fn under_way(&mut self) -> std::result::Result<BTreeMap<String, UnderWay>, StoreError> {
        self.read(|tx| {
            let mut all: BTreeMap<String, UnderWay> = BTreeMap::new();
            let mut query = tx.prepare_cached(UNDER_WAY)?;
            for row in query.query_map([], from_row)? {
                let (job, fire) = row?;
                let known = all.entry(format!("job-{job}")).or_insert_with(|| fire.clone());
                let last_slot = known.last_slot.max(fire.slot);
                if (fire.stage, fire.slot) < (known.stage, known.slot) {
                    *known = fire;
                }
                known.last_slot = last_slot;
            }
            Ok(all)
        })
    }
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<(i64, UnderWay)> {
    let time = |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(timestamp));
    let stage = match (row.get(4)?, time(3)?) {
        (_, Some(at)) => Stage::TriedAgain { at },
        (true, None) => Stage::Runs { since: time(5)? },
        (false, None) => Stage::Waits,
    };
    let slot = timestamp(row.get(1)?);
    Ok((row.get(0)?, UnderWay { stage, slot, attempt: row.get(2)?, last_slot: slot }))
}

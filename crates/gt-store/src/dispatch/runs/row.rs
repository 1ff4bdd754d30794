//! A run as it stands in its table.

use gt_core::agent::{Activity, Usage};
use gt_core::run::{Outcome, RunState, StopOrder};
use jiff::SignedDuration;
use rusqlite::Row;

use super::{Run, TurnOf};
use crate::rows::timestamp;

pub(super) const SELECT: &str = "SELECT run.id, coalesce(bead.id, ''), coalesce(bead.title, ''),
    run.bead IS NOT NULL AND bead.standing IS NULL, bead.closed_at, run.context, run.rig,
    run.polecat, run.agent, run.host, run.state, run.starter, run.claimed_at, run.started_at, run.ended_at, run.pid,
    run.birth, run.session, run.branch, run.worktree, run.log, run.said, run.said_at, run.stop_at, run.stop_by,
    run.stop_outcome, run.stop_reason, run.outcome, run.end_reason, coalesce(run.bead, 0), run.activity, run.waiting_for,
    run.activity_at, run.conversation, run.tokens_in, run.tokens_out, run.tokens_cached, run.cost,
    (SELECT 'step ' || place || ' of ' || (SELECT max(place) FROM step WHERE bead = run.bead) || ': ' || title FROM step
       WHERE bead = run.bead AND done_at IS NULL AND run.state <> 'ended' ORDER BY place LIMIT 1),
    run.last_output, run.stalled_at, run.interrupted_at, run.turn, session.key, run.lane, run.resumes, run.is_aside,
    turn.timeout
  FROM run LEFT JOIN bead ON bead.key = run.bead LEFT JOIN turn ON turn.id = run.turn
    LEFT JOIN session ON session.id = turn.session";

pub(super) fn from_row(row: &Row<'_>) -> rusqlite::Result<Run> {
    let time = |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(timestamp));
    let outcome = |column| Ok::<_, rusqlite::Error>(row.get_ref(column)?.as_str_or_null()?.and_then(Outcome::parse));
    let stop = match time(23)? {
        None => None,
        Some(at) => Some(StopOrder {
            at,
            by: row.get::<_, Option<String>>(24)?.unwrap_or_default(),
            outcome: outcome(25)?.unwrap_or(Outcome::Stopped),
            reason: row.get::<_, Option<String>>(26)?.unwrap_or_default(),
        }),
    };
    let waiting_for = row.get_ref(31)?.as_str_or_null()?;
    Ok(Run {
        id: row.get(0)?,
        bead: row.get(1)?,
        title: row.get(2)?,
        is_bead_done: row.get(3)?,
        bead_closed_at: time(4)?,
        context: row.get(5)?,
        rig: row.get(6)?,
        polecat: row.get(7)?,
        agent: row.get(8)?,
        host: row.get(9)?,
        state: RunState::parse(row.get_ref(10)?.as_str()?).unwrap_or(RunState::Ended),
        starter: row.get(11)?,
        claimed_at: timestamp(row.get(12)?),
        started_at: time(13)?,
        ended_at: time(14)?,
        pid: row.get(15)?,
        birth: row.get::<_, Option<i64>>(16)?.map(|birth| birth as u64),
        session: row.get(17)?,
        branch: row.get(18)?,
        worktree: row.get(19)?,
        log: row.get(20)?,
        said: outcome(21)?,
        said_at: time(22)?,
        stop,
        outcome: outcome(27)?,
        end_reason: row.get(28)?,
        key: row.get(29)?,
        step: row.get(38)?,
        last_output: row.get(39)?,
        stalled_at: time(40)?,
        interrupted_at: time(41)?,
        activity: row.get_ref(30)?.as_str_or_null()?.and_then(|word| Activity::parse(word, waiting_for)),
        activity_at: time(32)?,
        conversation: row.get(33)?,
        usage: usage(row)?,
        turn: row
            .get::<_, Option<i64>>(42)?
            .map(|id| {
                let timeout = row.get::<_, Option<i64>>(47)?.map(SignedDuration::from_micros);
                Ok::<_, rusqlite::Error>(TurnOf { id, session: text_or_empty(row, 43)?, timeout })
            })
            .transpose()?,
        lane: row.get(44)?,
        resumes: row.get(45)?,
        is_aside: row.get(46)?,
    })
}

fn usage(row: &Row<'_>) -> rusqlite::Result<Usage> {
    let count = |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.unwrap_or(0).max(0) as u64);
    let dollars: Option<f64> = row.get(37)?;
    Ok(Usage {
        tokens_in: count(34)?,
        tokens_out: count(35)?,
        tokens_cached: count(36)?,
        cost_micros: dollars.map_or(0, |dollars| (dollars * 1e6).round().max(0.0) as u64),
    })
}

fn text_or_empty(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(row.get::<_, Option<String>>(column)?.unwrap_or_default())
}

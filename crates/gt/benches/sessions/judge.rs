//! What must hold, judged by what the agents themselves have noted and by what the store answers.

use std::collections::BTreeMap;

use gt_core::session::TurnOutcome;
use gt_store::TurnView;

use crate::{LaneOf, Size};

/// What was found wrong, in words.
pub(crate) struct Judged {
    faults: Vec<String>,
}

impl Judged {
    pub(crate) fn is_well(&self) -> bool {
        self.faults.is_empty()
    }

    pub(crate) fn words(&self) -> String {
        match self.faults.first() {
            None => "every message answered once, in order; no limit exceeded".to_owned(),
            Some(first) => format!("**{} faults, such as: {first}**", self.faults.len()),
        }
    }
}

/// Judges a log of the agents, and the turns of every session.
pub(crate) fn judge(size: Size, lane_of: LaneOf, log: &str, turns: &[Vec<TurnView>]) -> Judged {
    let mut faults = Vec::new();
    for (session, turns) in turns.iter().enumerate() {
        let wanted: Vec<String> = (0..size.messages).map(|n| format!("re {n}")).collect();
        let answers: Vec<&str> = turns.iter().map(|turn| turn.reply.as_deref().unwrap_or("nothing")).collect();
        if answers != wanted || turns.iter().any(|turn| turn.outcome != Some(TurnOutcome::Done)) {
            faults.push(format!("session {session} was answered {answers:?}"));
        }
    }
    faults.extend(of_log(size, lane_of, log));
    Judged { faults }
}

/// Messages ran once each, in order, one after the other; and no more of a lane at once than it takes.
fn of_log(size: Size, lane_of: LaneOf, log: &str) -> Vec<String> {
    let mut lines: Vec<(u128, &str, &str, usize)> = log
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?.parse().ok()?, words.next()?, words.next()?, words.next()?.parse().ok()?))
        })
        .collect();
    lines.sort_unstable();
    let mut faults = Vec::new();
    let mut next: BTreeMap<&str, usize> = BTreeMap::new();
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    let mut live: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, what, session, message) in lines {
        let lane = session.strip_prefix("dm:").and_then(|n| n.parse().ok()).map_or("?", lane_of);
        if what == "start" {
            if open.insert(session, message).is_some() {
                faults.push(format!("two turns of {session} ran at once"));
            }
            let wanted = next.entry(session).or_default();
            if *wanted != message {
                faults.push(format!("{session} ran {message} instead of {wanted}"));
            }
            *wanted = message + 1;
            let n = live.entry(lane).or_default();
            *n += 1;
            if *n > limit(lane) {
                faults.push(format!("{n} turns at once in {lane}"));
            }
        } else {
            open.remove(session);
            *live.entry(lane).or_default() -= 1;
        }
    }
    if next.values().sum::<usize>() != size.n() {
        faults.push(format!("{} messages ran, of {}", next.values().sum::<usize>(), size.n()));
    }
    faults
}

pub(crate) fn limit(lane: &str) -> usize {
    gt_core::lane::Lanes::default().limit(lane)
}

//! A slot of a job fires at most once, and every slot has a record.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Case, Violation};
use crate::clock::{self, Micros, SECOND};

const ONCE: &str = "a slot fires once";
const RECORD: &str = "every slot has a record, and no more than one of its run";

/// The record of a slot, or of all slots that were missed together.
#[derive(Debug)]
struct Record {
    slot: Micros,
    until: Micros,
    status: String,
}

impl Record {
    fn is_about(&self, slot: Micros) -> bool {
        (self.slot..=self.until).contains(&slot)
    }
}

pub(super) fn judge(case: &Case) -> Vec<Violation> {
    let asked =
        case.town.ask(&["cron", "list"]).and_then(|jobs| Ok((jobs, case.town.ask(&["cron", "runs", "--limit", "0"])?)));
    let (jobs, runs) = match asked {
        Ok(asked) => asked,
        Err(error) => return vec![Violation::new(RECORD, error)],
    };
    let records = records(&runs);
    let mut violations = fired_once(case, &records);
    for job in jobs.as_array().into_iter().flatten() {
        violations.extend(recorded(case, job, &records));
    }
    violations
}

fn records(runs: &Value) -> BTreeMap<String, Vec<Record>> {
    let mut records: BTreeMap<String, Vec<Record>> = BTreeMap::new();
    for run in runs.as_array().into_iter().flatten() {
        let Some(slot) = run["slot"].as_str().and_then(clock::from_rfc3339) else { continue };
        let until = run["until"].as_str().and_then(clock::from_rfc3339).unwrap_or(slot);
        let status = run["status"].as_str().unwrap_or_default().to_owned();
        records.entry(run["job"].as_str().unwrap_or_default().to_owned()).or_default().push(Record {
            slot,
            until,
            status,
        });
    }
    records
}

/// By the lines of the commands themselves.
fn fired_once(case: &Case, records: &BTreeMap<String, Vec<Record>>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut seen = BTreeSet::new();
    for line in case.slots.iter().filter(|line| line.what == "start") {
        let (slot, attempt) = line.split_rest();
        if !seen.insert((&line.subject, slot, attempt)) {
            violations.push(Violation::new(
                ONCE,
                format!("{} {slot}, attempt {attempt}, again by run {}", line.subject, line.run),
            ));
        }
        let slot_at = clock::from_rfc3339(slot);
        let of_slot = |record: &&Record| Some(record.slot) == slot_at;
        let record = records.get(&line.subject).and_then(|records| records.iter().find(of_slot));
        if record.is_none_or(|record| record.status == "missed" || record.status == "skipped") {
            violations.push(Violation::new(RECORD, format!("{} ran for {slot}; its record: {record:?}", line.subject)));
        }
    }
    case.tally.add("commands of jobs", seen.len());
    violations
}

/// Every time from the first slot to the pause is in one record.
fn recorded(case: &Case, job: &Value, records: &BTreeMap<String, Vec<Record>>) -> Vec<Violation> {
    let name = job["name"].as_str().unwrap_or_default();
    let every =
        job["schedule"].as_str().and_then(|text| text.strip_suffix('s')?.parse::<Micros>().ok()).unwrap_or(1) * SECOND;
    let Some(made) = job["made_at"].as_str().and_then(clock::from_rfc3339) else { return Vec::new() };
    let none = Vec::new();
    let records = records.get(name).unwrap_or(&none);
    let mut violations = Vec::new();
    let mut slot = made + every;
    let mut n_slots = 0;
    while slot < case.jobs_paused_at {
        if !is_recorded(records, slot) {
            let about: Vec<&Record> = records.iter().filter(|record| record.is_about(slot)).collect();
            violations.push(Violation::new(RECORD, format!("{name} {}: {about:?}", clock::shown(slot))));
        }
        n_slots += 1;
        slot += every;
    }
    case.tally.add("slots", n_slots);
    violations
}

/// One that was missed and runs late has a record of each.
fn is_recorded(records: &[Record], slot: Micros) -> bool {
    let about = records.iter().filter(|record| record.is_about(slot));
    let (missed, ran): (Vec<&Record>, Vec<&Record>) = about.partition(|record| record.status == "missed");
    (1..=2).contains(&(missed.len() + ran.len())) && missed.len() <= 1 && ran.len() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(slot: Micros, until: Micros, status: &str) -> Record {
        Record { slot, until, status: status.to_owned() }
    }

    #[test]
    fn a_slot_is_recorded_as_run_or_as_missed_or_as_both() {
        assert!(!is_recorded(&[], 5));
        assert!(is_recorded(&[record(5, 5, "ok")], 5));
        assert!(is_recorded(&[record(1, 9, "missed")], 5));
        assert!(is_recorded(&[record(5, 5, "missed"), record(5, 5, "ok")], 5));
        assert!(!is_recorded(&[record(5, 5, "ok"), record(5, 5, "failed")], 5));
        assert!(!is_recorded(&[record(6, 9, "missed")], 5));
    }
}

//! What the scripts wrote: reading their append-only logs, and watching the processes that wrote them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::clock::{self, Micros};
use crate::pause::End;
use crate::processes::Entry;

/// How often live processes are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Which script wrote a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Script {
    Agent,
    Turn,
    Slot,
}

impl Script {
    pub(crate) const ALL: [Script; 3] = [Script::Agent, Script::Turn, Script::Slot];

    fn file(self) -> &'static str {
        match self {
            Script::Agent => "agents.log",
            Script::Turn => "turns.log",
            Script::Slot => "slots.log",
        }
    }
}

/// `TIME WHAT SUBJECT RUN PID REST`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) at: Micros,
    pub(crate) what: String,
    /// The bead, session or job.
    pub(crate) subject: String,
    pub(crate) run: String,
    pub(crate) pid: i32,
    pub(crate) rest: String,
}

impl Line {
    fn parse(text: &str) -> Option<Line> {
        let mut words = text.splitn(6, ' ');
        Some(Line {
            at: clock::from_bash(words.next()?)?,
            what: words.next()?.to_owned(),
            subject: words.next()?.to_owned(),
            run: words.next()?.to_owned(),
            pid: words.next()?.parse().ok()?,
            rest: words.next().unwrap_or_default().trim_end().to_owned(),
        })
    }

    /// The first word of the rest, and what follows it.
    pub(crate) fn split_rest(&self) -> (&str, &str) {
        self.rest.split_once(' ').unwrap_or((&self.rest, ""))
    }
}

/// All lines of a script's log.
pub(crate) fn lines(evidence: &Path, script: Script) -> Vec<Line> {
    Tail::of(evidence.join(script.file())).fresh().iter().filter_map(|line| Line::parse(line)).collect()
}

/// Reads what was added to a file since the last look.
#[derive(Debug)]
pub(crate) struct Tail {
    path: PathBuf,
    read: u64,
}

impl Tail {
    pub(crate) fn of(path: PathBuf) -> Tail {
        Tail { path, read: 0 }
    }

    /// Whole lines that are new.
    pub(crate) fn fresh(&mut self) -> Vec<String> {
        let mut bytes = Vec::new();
        if let Ok(mut file) = File::open(&self.path)
            && file.seek(SeekFrom::Start(self.read)).is_ok()
        {
            file.read_to_end(&mut bytes).ok();
        }
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        self.read += end as u64;
        String::from_utf8_lossy(&bytes[..end]).lines().map(str::to_owned).collect()
    }
}

/// A process that wrote that it started.
#[derive(Debug, Clone)]
struct Sighting {
    script: Script,
    pid: i32,
    /// When it started, by the process table; none once it is gone.
    started: Option<u64>,
    last_seen: Micros,
}

/// Looks again and again which of the scripts' processes live, so that the end of one that was killed is known.
#[derive(Debug)]
pub(crate) struct Watch {
    sightings: Mutex<BTreeMap<String, Sighting>>,
    over: End,
}

impl Watch {
    pub(crate) fn start(evidence: &Path) -> (Arc<Watch>, JoinHandle<()>) {
        let watch = Arc::new(Watch { sightings: Mutex::default(), over: End::default() });
        let (watching, evidence) = (Arc::clone(&watch), evidence.to_owned());
        let looking = thread::spawn(move || {
            let mut tails = Script::ALL.map(|script| (script, Tail::of(evidence.join(script.file()))));
            while !watching.over.wait(LOOK) {
                for (script, tail) in &mut tails {
                    watching.take_in(*script, &tail.fresh());
                }
                watching.look();
            }
        });
        (watch, looking)
    }

    fn take_in(&self, script: Script, lines: &[String]) {
        let mut sightings = self.lock();
        for line in lines.iter().filter_map(|line| Line::parse(line)).filter(|line| line.what == "start") {
            let started = Entry::of(line.pid).map(|entry| entry.started);
            sightings.insert(line.run, Sighting { script, pid: line.pid, started, last_seen: line.at });
        }
    }

    fn look(&self) {
        for sighting in self.lock().values_mut().filter(|sighting| sighting.started.is_some()) {
            // The time is taken first: what is alive after it was alive then.
            let now = clock::now();
            let entry =
                Entry::of(sighting.pid).filter(|entry| entry.is_alive() && Some(entry.started) == sighting.started);
            match entry {
                Some(_) => sighting.last_seen = sighting.last_seen.max(now),
                None => sighting.started = None,
            }
        }
    }

    /// Live processes of a script: process and run.
    pub(crate) fn alive(&self, script: Script) -> Vec<(i32, String)> {
        let sightings = self.lock();
        let alive = sightings.iter().filter(|(_, sighting)| sighting.script == script && sighting.started.is_some());
        alive.map(|(run, sighting)| (sighting.pid, run.clone())).collect()
    }

    /// When the process of each run was seen alive for the last time.
    pub(crate) fn last_seen(&self) -> BTreeMap<String, Micros> {
        self.lock().iter().map(|(run, sighting)| (run.clone(), sighting.last_seen)).collect()
    }

    pub(crate) fn end(&self) {
        self.over.declare();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Sighting>> {
        self.sightings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_and_without_a_rest() {
        let line = Line::parse("1763468921.743416 start ya-work1 r1 77 yard ").expect("it is whole");
        assert_eq!((line.what.as_str(), line.subject.as_str(), line.pid), ("start", "ya-work1", 77));
        assert_eq!(line.split_rest(), ("yard", ""));
        assert_eq!(Line::parse("1763468921.743416 end ya-work1 r1 77 ").map(|line| line.rest), Some(String::new()));
        assert_eq!(Line::parse("1763468921.743416 end"), None);
    }
}

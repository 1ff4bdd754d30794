//! Reading what agents have told: the stream that they print, or the lines that their hooks have left and the record that
//! they keep themselves.
//!
//! What was read is kept in mind; of each file only its end is read, and of a flood only the last of it. Whoever begins to
//! listen later reads the same files again, so nothing of this has to be stored.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use gt_core::agent::{Failure, Hook, LINE_BYTES_MAX, Told, Vendor};
use gt_store::{Run, Telling};
use jiff::{SignedDuration, Timestamp};

use super::hooks::{HOOKED_MARK, TERMINAL_MARK};
use crate::town::Town;
use crate::wake::{Follow, Followed};

/// No more than this is read of a file at a time; what lies before is passed over.
const TAIL_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// A cost that has grown by so much is worth being remembered at once.
const COST_STEP_MICROS: u64 = 10_000;

/// The first hook of an agent is called within a second or two of its start.
const SILENCE: SignedDuration = SignedDuration::from_secs(20);

/// Opening does not wait for anybody.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

/// Whoever listens to the agents of a town.
#[derive(Debug, Default)]
pub struct Listener {
    ears: BTreeMap<String, Ear>,
    /// Has us woken when an agent writes its own record.
    follow: Option<Follow>,
}

/// What is known of one run.
#[derive(Debug, Default)]
struct Ear {
    /// Whose lines it prints.
    speaks: Option<Vendor>,
    /// Whose hooks it calls; that is known from the first that told something.
    hooks: Option<Vendor>,
    told: Told,
    log: Tail,
    events: Tail,
    record: Option<Record>,
    is_in_terminal: bool,
    /// Whether we gave it hooks, so that it should say something.
    is_hooked: bool,
    /// The failure that was last passed on.
    failure: Option<Failure>,
}

/// The record that an agent on a screen keeps itself.
#[derive(Debug)]
struct Record {
    path: PathBuf,
    tail: Tail,
    followed: Option<Followed>,
}

impl Listener {
    /// From now on whoever has this is woken by what agents write into their own records.
    pub fn follow_with(&mut self, follow: Follow) {
        self.follow = Some(follow);
    }

    /// Whether somebody is listened to.
    pub fn is_listening(&self) -> bool {
        !self.ears.is_empty()
    }

    /// Listens to these runs, and to no others any more; says what they have told that is not recorded and matters.
    pub fn listen(
        &mut self,
        town: &Town,
        runs: &[&Run],
        speaks: impl Fn(&str) -> Option<Vendor>,
        now: Timestamp,
    ) -> Vec<Telling> {
        let ids: BTreeSet<&str> = runs.iter().map(|run| run.id.as_str()).collect();
        self.ears.retain(|id, _| ids.contains(id.as_str()));
        let mut tellings = Vec::new();
        for run in runs {
            let ear = self.ears.entry(run.id.clone()).or_default();
            ear.learn(|| speaks(&run.agent));
            ear.hear(town, &run.id, false, now);
            if ear.follow(self.follow.as_ref()) {
                // Of what was written meanwhile nobody was woken.
                ear.hear(town, &run.id, false, now);
            }
            if ear.is_hooked && silent_until(run).is_some_and(|at| now >= at) {
                ear.told.hear_silence(now);
            }
            if ear.has_news(run) {
                tellings.extend(ear.telling(&run.id));
            }
        }
        tellings
    }

    /// When somebody should look at a run that has said nothing yet.
    pub fn next_look(&self, run: &Run) -> Option<Timestamp> {
        let is_mute = self.ears.get(&run.id).is_some_and(|ear| ear.is_hooked && ear.told.activity().is_none());
        silent_until(run).filter(|_| is_mute)
    }

    /// That what was last told has been recorded.
    pub fn note_recorded(&mut self, tellings: &[Telling]) {
        for telling in tellings {
            if let Some(ear) = self.ears.get_mut(&telling.run) {
                ear.failure = telling.told.failure().cloned();
            }
        }
    }

    /// All that a run has told by now; with `is_over` also a last line that was not finished. `None`: it speaks like nobody,
    /// and no hook of it has told anything.
    pub fn words_of(
        &mut self,
        town: &Town,
        run: &Run,
        speaks: Option<Vendor>,
        is_over: bool,
        now: Timestamp,
    ) -> Option<Telling> {
        let ear = self.ears.entry(run.id.clone()).or_default();
        ear.learn(|| speaks);
        ear.hear(town, &run.id, is_over, now);
        ear.telling(&run.id)
    }
}

/// When the silence of a run that has hooks begins to mean something.
fn silent_until(run: &Run) -> Option<Timestamp> {
    run.started_at.map(|at| at + SILENCE)
}

impl Ear {
    /// Whoever could not be understood may be by now: the config was mended.
    fn learn(&mut self, speaks: impl FnOnce() -> Option<Vendor>) {
        self.speaks = self.speaks.or_else(speaks);
    }

    fn telling(&self, run: &str) -> Option<Telling> {
        let vendor = self.speaks.or(self.hooks)?;
        Some(Telling { run: run.to_owned(), vendor, told: self.told.clone() })
    }

    /// What cannot be read now is read later.
    fn hear(&mut self, town: &Town, run: &str, is_over: bool, now: Timestamp) {
        let Ear { speaks, hooks, told, log, events, record, is_in_terminal, is_hooked, .. } = self;
        let heard = events.read(&town.events_path(run), is_over, |line| {
            *is_hooked |= line == HOOKED_MARK;
            *is_in_terminal |= line == TERMINAL_MARK || line == HOOKED_MARK;
            if let Some(hook) = Hook::parse(line) {
                hooks.get_or_insert(hook.vendor);
                told.hear_hook(&hook);
                note_record(record, &hook);
            }
        });
        heard.unwrap_or_default();
        let Some(vendor) = speaks.or(*hooks) else { return };
        // What stands on a screen is a picture, whatever it looks like; but who ends without having told anything otherwise
        // may have printed a stream there, and what was on its screen is in its log by then.
        let is_stream = speaks.is_some() && (!*is_in_terminal || (is_over && hooks.is_none()));
        if is_stream {
            log.read(&town.log_path(run), is_over, |line| told.hear_line(vendor, line, now)).unwrap_or_default();
        } else if let Some(Record { path, tail, .. }) = record {
            tail.read(path, is_over, |line| told.hear_record(vendor, line, now)).unwrap_or_default();
        }
    }

    /// Has us woken when its record grows; says whether that is new. What cannot be followed is read when something else
    /// wakes us.
    fn follow(&mut self, follow: Option<&Follow>) -> bool {
        let Some((record, follow)) = self.record.as_mut().zip(follow).filter(|(record, _)| record.followed.is_none())
        else {
            return false;
        };
        record.followed = follow.file(&record.path);
        record.followed.is_some()
    }

    /// Whether it has told something that should be remembered, and is not.
    fn has_news(&self, run: &Run) -> bool {
        let told = &self.told;
        let counts = run.stop.is_none() && run.said.is_none() && !run.is_bead_done;
        let is_other = |name: &str| run.conversation.as_deref() != Some(name);
        let has_failed =
            told.failure() != self.failure.as_ref() && told.failure().is_some_and(|f| f.class.is_the_agents());
        told.usage().cost_micros >= run.usage.cost_micros + COST_STEP_MICROS
            || told.conversation().is_some_and(is_other)
            || (counts && (told.activity() != run.activity || has_failed))
    }
}

/// A conversation that begins has a record of its own.
fn note_record(record: &mut Option<Record>, hook: &Hook) {
    let known = record.as_ref().map(|record| record.path.as_path());
    if let Some(path) = hook.record().map(Path::new).filter(|path| known != Some(*path)) {
        *record = Some(Record { path: path.to_owned(), tail: Tail::default(), followed: None });
    }
}

/// How far a file has been read.
#[derive(Debug, Default)]
struct Tail {
    offset: u64,
    /// The beginning of the line here was passed over.
    is_inside: bool,
}

impl Tail {
    /// Calls for each line that was finished since the last time; at the end also for one that never will be.
    fn read(&mut self, path: &Path, is_over: bool, mut heard: impl FnMut(&str)) -> io::Result<()> {
        let mut file = match open_file(path) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let length = file.metadata()?.len();
        if length < self.offset {
            *self = Tail::default();
        }
        let start = self.offset.max(length.saturating_sub(TAIL_BYTES_MAX));
        self.is_inside |= start > self.offset;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        file.take(length - start).read_to_end(&mut bytes)?;
        let mut rest = bytes.as_slice();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            if !std::mem::take(&mut self.is_inside) {
                heard(String::from_utf8_lossy(&rest[..end]).trim());
            }
            rest = &rest[end + 1..];
        }
        let is_endless = rest.len() > LINE_BYTES_MAX;
        if is_over && !self.is_inside && !is_endless {
            heard(String::from_utf8_lossy(rest).trim());
        }
        let read = start + bytes.len() as u64;
        self.is_inside |= is_endless;
        self.offset = if self.is_inside || is_over { read } else { read - rest.len() as u64 };
        Ok(())
    }
}

/// Opens what should be a file: what an agent names or puts there may be anything, and nothing here waits for a pipe.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path)?;
    let is_file = file.metadata()?.is_file();
    if is_file { Ok(file) } else { Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file")) }
}

#[cfg(test)]
mod tests;

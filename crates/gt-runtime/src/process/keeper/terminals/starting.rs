//! Starting many runs at once: every session is asked for before the first answer is read.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use super::records::Record;
use super::{Question, Terminals, handle_of, order};
use crate::process::keeper::events::Events;
use crate::process::keeper::spawn::{Prepared, classify, open_log, spawn_error};
use crate::program;
use crate::terminal::{Pane, quoted};
use crate::{Handle, Launch, StartError};

type Started = Result<Handle, StartError>;

impl Terminals {
    /// Starts runs that are not known here, in order; one result each.
    pub(in crate::process::keeper) fn start(
        &mut self,
        wanted: &[(&Launch, Prepared<'_>)],
        events: &mut Events,
    ) -> Vec<Started> {
        if let Err(cause) = self.connect(events) {
            return vec![Err(StartError::NoRoom { cause }); wanted.len()];
        }
        let mut results: Vec<Option<Started>> = (0..wanted.len()).map(|_| None).collect();
        let mut taken = BTreeSet::new();
        for is_last_try in [false, true] {
            self.started.clear();
            for (slot, (launch, prepared)) in wanted.iter().enumerate() {
                if results[slot].is_none() {
                    let ordered = self.order(slot, launch, prepared, taken.contains(&slot));
                    results[slot] = ordered.err().map(Err);
                }
            }
            let is_worth_another = self.await_started(events) && !is_last_try;
            for (slot, (launch, _)) in wanted.iter().enumerate() {
                if results[slot].is_some() {
                    continue;
                }
                results[slot] = match self.answer(slot, launch) {
                    None if is_worth_another => None,
                    Some(Err(cause))
                        if cause.starts_with("duplicate session") && taken.insert(slot) && !is_last_try =>
                    {
                        None
                    }
                    answer => Some(self.result(launch, answer.unwrap_or_else(|| Err(self.unanswered())))),
                };
            }
        }
        self.flush(events);
        let unknown = || StartError::NoRoom { cause: "tmux did not say what became of it".to_owned() };
        results.into_iter().map(|result| result.unwrap_or_else(|| Err(unknown()))).collect()
    }

    /// Lays out the files of a run and asks for its session.
    fn order(
        &mut self,
        slot: usize,
        launch: &Launch,
        prepared: &Prepared<'_>,
        is_taken: bool,
    ) -> Result<(), StartError> {
        program::check(&prepared.program, &launch.dir).map_err(|error| spawn_error(&error, launch))?;
        check_dir(launch)?;
        let name = order::session_name(launch, is_taken);
        drop(open_log(&launch.log)?);
        let line = self.lay_out(launch).and_then(|input| order::line(&name, launch, prepared, input.as_deref()));
        let line = line.inspect_err(|_| self.give_up(launch))?;
        let shell = prepared.env().filter(|(name, _)| *name == "SHELL").last().map_or("/bin/sh", |(_, value)| value);
        if self.shell != shell && !shell.contains('\0') {
            shell.clone_into(&mut self.shell);
            self.ask(Question::Whatever, &format!("set-option -g default-shell {}", quoted(shell)));
        }
        self.ask(Question::Start(launch.run.clone(), Some(slot)), &line);
        Ok(())
    }

    fn lay_out(&mut self, launch: &Launch) -> Result<Option<PathBuf>, StartError> {
        let no_room = |error: &io::Error| classify(error, format!("cannot keep what its terminal needs: {error}"));
        let record = Record { log: launch.log.clone(), handle: None };
        self.records.insert(&launch.run, record).map_err(|error| no_room(&error))?;
        let text = launch.stdin.as_ref();
        text.map(|text| self.records.keep_input(&launch.run, text).map_err(|error| no_room(&error))).transpose()
    }

    /// Takes back what was laid out for a run that does not start. A log is the trace of one that has begun.
    fn give_up(&mut self, launch: &Launch) {
        self.records.remove(&launch.run);
        std::fs::remove_file(&launch.log).ok();
    }

    /// Waits for the answers to all starts. When the client is lost meanwhile, another one looks what there is; true if
    /// so, for then what is not there was not started. What a server has started that is gone, nobody knows.
    fn await_started(&mut self, events: &mut Events) -> bool {
        let server = self.server_handle();
        let is_waited_for = |question: &Question| matches!(question, Question::Start(_, Some(_)));
        self.converse_until(events, |terminals| !terminals.asked.iter().any(|(question, _)| is_waited_for(question)));
        for (question, _) in &mut self.asked {
            if let Question::Start(_, slot) = question {
                *slot = None;
            }
        }
        self.control.is_none() && self.connect(events).is_ok() && self.server_handle() == server
    }

    fn server_handle(&self) -> Option<Handle> {
        self.process.as_ref().map(|process| process.handle.clone())
    }

    fn unanswered(&self) -> String {
        if self.is_stuck() { super::no_answer() } else { "tmux ended before it had answered".to_owned() }
    }

    /// What tmux says of a start, or shows of it.
    fn answer(&mut self, slot: usize, launch: &Launch) -> Option<Result<Pane, String>> {
        self.started.remove(&slot).or_else(|| self.panes.get(&launch.run).cloned().map(Ok))
    }

    fn result(&mut self, launch: &Launch, answer: Result<Pane, String>) -> Started {
        let pane = answer.map_err(|cause| {
            self.give_up(launch);
            refusal(cause)
        })?;
        let handle = handle_of(&pane);
        self.records.set_handle(&launch.run, &handle);
        self.panes.insert(launch.run.clone(), pane);
        Ok(handle)
    }

    pub(super) fn hear_start(&mut self, run: &str, slot: Option<usize>, answer: Result<&str, &str>) {
        let pane = answer.map(|text| Pane::parse(text.trim()));
        match (slot, pane) {
            (Some(slot), Ok(Some(pane))) => drop(self.started.insert(slot, Ok(pane))),
            (Some(slot), Ok(None)) => drop(self.started.insert(slot, Err("it answered something else".to_owned()))),
            (Some(slot), Err(cause)) => drop(self.started.insert(slot, Err(cause.to_owned()))),
            // Whoever wanted it was told that it did not start, so it must not run.
            (None, Ok(Some(pane))) if !self.panes.get(run).is_some_and(|known| *known == pane) => self.discard(&pane),
            (None, _) => {}
        }
    }
}

fn check_dir(launch: &Launch) -> Result<(), StartError> {
    match launch.dir.metadata() {
        Ok(dir) if dir.is_dir() => Ok(()),
        Ok(_) => Err(spawn_error(&rustix::io::Errno::NOTDIR.into(), launch)),
        Err(error) => Err(spawn_error(&error, launch)),
    }
}

/// Making a session fails for lack of processes, terminals or memory, or of an answer; a line that is not understood is ours.
fn refusal(cause: String) -> StartError {
    if cause.starts_with("parse error") {
        StartError::Failed { cause: format!("tmux does not take this start: {cause}") }
    } else {
        StartError::NoRoom { cause }
    }
}

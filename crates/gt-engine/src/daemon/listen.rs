//! Every way in which the daemon is woken, each from a thread that does nothing but wait.

use std::sync::mpsc::Sender;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::Cause;
use super::deletion::Home;
use crate::error::TownError;
use crate::town::Town;
use crate::wake::{Bell, FileWatch, Follow, WordWatch, Written};

pub(super) fn catch_signals(town: &Town, sender: &Sender<Cause>) -> Result<(), TownError> {
    let caught = Signals::new([SIGTERM, SIGINT]);
    let mut signals = caught.map_err(|source| TownError::io("catch signals for", &town.state_dir(), source))?;
    let stop = sender.clone();
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            stop.send(Cause::Stop).unwrap_or_default();
        }
    });
    Ok(())
}

/// Every other way to be woken, each from a thread that does nothing but wait.
pub(super) fn listen(town: &Town, sender: &Sender<Cause>) -> Result<Option<Follow>, TownError> {
    let state_dir = town.state_dir();
    let socket = Bell::new(town).listen().map_err(|source| TownError::io("listen in", &state_dir, source))?;
    let wake = sender.clone();
    thread::spawn(move || {
        let mut byte = [0];
        while socket.recv(&mut byte).is_ok() && wake.send(Cause::News).is_ok() {}
    });
    let clock = sender.clone();
    // Where it cannot be watched, the patrol sees what the clock says.
    crate::clock::on_clock_set(move || clock.send(Cause::ClockSet).unwrap_or_default()).unwrap_or_default();
    let follow = listen_to_agents(town, sender);
    let home = Home::open(town).map_err(|source| TownError::io("open", &state_dir, source))?;
    let files = FileWatch::new(town)?;
    let written = sender.clone();
    thread::spawn(move || {
        files.for_each(|file| {
            let cause = match file {
                Written::Store => Cause::StoreWritten,
                Written::Config => Cause::ConfigWritten,
                Written::Heartbeat => Cause::HeartbeatWritten,
                Written::StoreRemoved => return home.look_after_removal(&written).is_ok(),
            };
            written.send(cause).is_ok()
        });
    });
    Ok(follow)
}

/// Wakes up when agents tell something. Where that cannot be watched, patrols and hooks are what is left.
fn listen_to_agents(town: &Town, sender: &Sender<Cause>) -> Option<Follow> {
    let words = WordWatch::new(town).ok()?;
    let follow = words.follow();
    let told = sender.clone();
    thread::spawn(move || words.for_each(|| told.send(Cause::Told).is_ok()));
    Some(follow)
}

//! The config of a town of heartbeats: how often, in which hours, and where alerts go, each seed with its own.

use std::fmt::Write as _;

use fastrand::Rng;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::{AGENTS, CHANNEL};
use crate::knobs::Knobs;

/// Those that may be told of alerts; the last is no channel of the config.
const TARGETS: [&str; 6] = ["last", "last", CHANNEL, "post:anna", "none", "gone:anna"];
/// Whose clock hangs at the wall, and how many minutes it is ahead.
const ZONES: [(&str, u16); 2] = [("UTC", 0), ("Asia/Kolkata", 330)];
/// When hearts may beat, in minutes of the day in UTC; the simulation begins at midnight.
const HOURS: [(u16, u16); 6] = [(0, 45), (20, 1439), (1430, 30), (10, 80), (60, 120), (0, 600)];
const DAY: u16 = 24 * 60;

/// How long one run of a heartbeat may take.
pub(super) const TIMEOUT: SignedDuration = SignedDuration::from_mins(2);

/// What people have set for heartbeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pulse {
    pub(super) is_on: bool,
    pub(super) interval: SignedDuration,
    /// In minutes of the day, by the clock of the zone.
    pub(super) hours: Option<(u16, u16)>,
    zone: &'static str,
    pub(super) target: &'static str,
    ack_max_chars: usize,
    /// How many runs each agent may have at once; 0: any number.
    pub(super) places: [usize; 2],
}

impl Pulse {
    pub(super) fn draw(rng: &mut Rng) -> Pulse {
        let (zone, ahead) = ZONES[rng.usize(0..ZONES.len())];
        let hours = (rng.u32(0..2) == 0).then(|| HOURS[rng.usize(0..HOURS.len())]);
        Pulse {
            is_on: rng.u32(0..8) > 0,
            interval: SignedDuration::from_secs([20, 60, 90, 300, 600][rng.usize(0..5)]),
            hours: hours.map(|(from, to)| ((from + ahead) % DAY, (to + ahead) % DAY)),
            zone,
            target: TARGETS[rng.usize(0..TARGETS.len())],
            ack_max_chars: [300, 300, 30][rng.usize(0..3)],
            places: [rng.usize(0..3), rng.usize(0..2)],
        }
    }

    pub(super) fn switched(self, is_on: bool) -> Pulse {
        Pulse { is_on, ..self }
    }

    /// At any hour, for whoever waits for what must come.
    pub(super) fn wakeful(self) -> Pulse {
        Pulse { is_on: true, hours: None, ..self }
    }

    /// As often as that, all of it to the one receiver.
    pub(super) fn slow(self, interval: SignedDuration) -> Pulse {
        Pulse { interval, target: CHANNEL, ..self.wakeful() }
    }

    /// At short intervals, and only for so long from now.
    pub(super) fn closing(self, now: Timestamp, minutes: u16) -> Pulse {
        let (is_on, interval) = (true, SignedDuration::from_secs(60));
        let minute = self.minute(now);
        let hours = Some(((minute + DAY - minutes) % DAY, (minute + minutes) % DAY));
        Pulse { is_on, interval, hours, ..self }
    }

    /// The whole config.
    pub(super) fn with(&self, knobs: Knobs) -> Knobs {
        let Pulse { is_on, interval, zone, target, ack_max_chars, places, .. } = self;
        let mut more = format!(
            "lanes.main = 3\nsessions.cap = 100\nsessions.debounce_ms = 0\nsessions.timeout = \"10m\"\ncron.timeout = \"2m\"\n\
             cron.retries = 1\nheartbeat.enabled = {is_on}\nheartbeat.interval = \"{}s\"\nheartbeat.tz = \"{zone}\"\n\
             heartbeat.target = \"{target}\"\nheartbeat.ack_max_chars = {ack_max_chars}\n\
             channels.post.kind = \"webhook\"\nchannels.post.url = \"http://receiver.invalid/answers\"\n",
            interval.as_secs()
        );
        if let Some((from, to)) = self.hours {
            let hours = format!("{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60);
            writeln!(more, "heartbeat.active_hours = \"{hours}\"").expect("writing to a string cannot fail");
        }
        for agent in AGENTS {
            writeln!(more, "agents.{agent}.headless = [\"{agent}\"]").expect("writing to a string cannot fail");
        }
        Knobs { more, agents: *places, ..knobs }
    }

    /// Whether hearts may beat then, by the clock on the wall.
    pub(super) fn is_open(&self, at: Timestamp) -> bool {
        let Some((from, to)) = self.hours else { return true };
        let minute = self.minute(at);
        if from <= to { (from..to).contains(&minute) } else { minute >= from || minute < to }
    }

    /// When they may beat again, at the latest.
    pub(super) fn opening(&self, after: Timestamp) -> Timestamp {
        let Some((from, _)) = self.hours.filter(|_| !self.is_open(after)) else { return after };
        let minutes = (from + DAY - self.minute(after)) % DAY;
        let zone = TimeZone::get(self.zone).expect("it is a zone");
        let second = zone.to_datetime(after).time().second();
        after + SignedDuration::from_mins(minutes.into())
            - SignedDuration::from_secs(second.into())
            - SignedDuration::from_nanos(after.subsec_nanosecond().into())
    }

    fn minute(&self, at: Timestamp) -> u16 {
        let zone = TimeZone::get(self.zone).expect("it is a zone");
        let time = zone.to_datetime(at).time();
        u16::try_from(time.hour()).unwrap_or(0) * 60 + u16::try_from(time.minute()).unwrap_or(0)
    }

    pub(super) fn places_of(&self, agent: &str) -> usize {
        AGENTS.iter().position(|one| *one == agent).map_or(0, |at| self.places[at])
    }

    /// The channel and recipient that it names, if it names one.
    pub(super) fn named(target: &str) -> Option<(String, Option<String>)> {
        match target {
            "last" | "none" => None,
            named => Some(
                named
                    .split_once(':')
                    .map_or((named.to_owned(), None), |(channel, to)| (channel.to_owned(), Some(to.to_owned()))),
            ),
        }
    }
}

//! Remembering: the town's store, one SQLite file.
//!
//! Every method of `Store` is a domain verb and one transaction; a change appends its event in the same one.
//! What should happen is decided in `gt-core`; nothing here reads a clock or talks to a person.

mod beads;
mod check;
mod config;
mod dispatch;
mod error;
mod events;
mod import;
mod jobs;
mod ledger;
mod links;
mod mail;
mod notices;
mod query;
mod rigs;
mod rows;
mod schema;
mod sessions;
mod store;

pub use beads::{BeadPatch, Changed, NewBead};
pub use check::{Disagreement, Inspection};
pub use config::{ChangedConfig, DroppedLimit, KeptConfig, NewConfig, SeenConfig, Via};
pub use dispatch::check::{Expense, Figure, PlannedFigure};
pub use dispatch::claim::{Advance, Assignment, Claimant, Claimed, Findings, Kinds};
pub use dispatch::convoys::{Checked, ConvoyProgress, NewConvoy, Withdrawn};
pub use dispatch::deacon::{Redispatch, StaleHook};
pub use dispatch::feed::{FedConvoy, Stranded, Swept};
pub use dispatch::merges::{HandOver, Merge, RefineryPause, ReturnedAs, Rework, Target, TargetHold};
pub use dispatch::outlook::{Outlook, Scheduled};
pub use dispatch::polecats::Polecat;
pub use dispatch::records::{Hold, Plea, Record};
pub use dispatch::reports::{ESCALATED, Report};
pub use dispatch::runs::{Ended, Fault, NotStarted, Run, Started, TurnOf};
pub use dispatch::scheduler::SchedulerState;
pub use dispatch::sling::{ConvoyWish, Homed, Load, LoadKind, Prescription, Sling, SlingOutcome, Slung};
pub use dispatch::staging::picture::{ConvoyPicture, Progress, Worker};
pub use dispatch::staging::{Going, Staged, Staging};
pub use dispatch::steps::{CurrentStep, DoneStep, PlannedStep};
pub use dispatch::tellings::Telling;
pub use error::StoreError;
pub use import::{ImportBead, ImportOptions, ImportReport};
pub use jobs::beats::{Beats, beat_of};
pub use jobs::fire::{AskBeat, BeatWord, FireRules, Fired};
pub use jobs::log::{Attempt, Fire, FireFilter, FiresOf};
pub use jobs::under_way::{Stage, UnderWay};
pub use jobs::{Job, JobOutlook, JobPlan};
pub use mail::{DEACON, Inbox, Letter, MAYOR, NewLetter, box_of};
pub use notices::{Notice, Tries};
pub use query::{Filter, Listing, ReadyFilter, TreeNode, View};
pub use sessions::arrive::{Address, NewMessage, SendOutcome, Sent};
pub use sessions::claim::{FireOf, LaneFigure, Turn};
pub use sessions::outbox::{FailingChannel, Parcel};
pub use sessions::reason::ABOUT_TO_START;
pub use sessions::stop::Stopped;
pub use sessions::turns::{TurnState, TurnView};
pub use sessions::{Session, Wishes};
pub use store::{Gate, Moment, Stamp, Store};

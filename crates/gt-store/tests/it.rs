//! The store's tests: verbs, readiness, import. One binary, real SQLite, in memory or in a temporary directory.

#[path = "it/exercise/claims.rs"]
mod claims;
#[path = "it/exercise/config.rs"]
mod config;
#[path = "it/sessions/desk.rs"]
mod desk;
#[path = "it/dispatch/alarms.rs"]
mod dispatch_alarms;
#[path = "it/dispatch/claims.rs"]
mod dispatch_claims;
#[path = "it/dispatch/contexts.rs"]
mod dispatch_contexts;
#[path = "it/dispatch/convoys.rs"]
mod dispatch_convoys;
#[path = "it/dispatch/deacon.rs"]
mod dispatch_deacon;
#[path = "it/dispatch/merges.rs"]
mod dispatch_merges;
#[path = "it/dispatch/queue.rs"]
mod dispatch_queue;
#[path = "it/dispatch/random.rs"]
mod dispatch_random;
#[path = "it/dispatch/runs.rs"]
mod dispatch_runs;
#[path = "it/dispatch/slings.rs"]
mod dispatch_slings;
#[path = "it/dispatch/staging.rs"]
mod dispatch_staging;
#[path = "it/dispatch/step_by_step.rs"]
mod dispatch_step_by_step;
#[path = "it/dispatch/steps.rs"]
mod dispatch_steps;
#[path = "it/dispatch/tellings.rs"]
mod dispatch_tellings;
#[path = "it/dispatch/troubles.rs"]
mod dispatch_troubles;
#[path = "it/exercise/edges.rs"]
mod edges;
#[path = "it/exercise/events.rs"]
mod events;
#[path = "it/exercise.rs"]
mod exercise;
#[path = "it/import.rs"]
mod import;
#[path = "it/import/cycles.rs"]
mod import_cycles;
#[path = "it/exercise/inspection.rs"]
mod inspection;
#[path = "it/jobs/beats.rs"]
mod jobs_beats;
#[path = "it/jobs/clock.rs"]
mod jobs_clock;
#[path = "it/jobs/delivery.rs"]
mod jobs_delivery;
#[path = "it/jobs/jumps.rs"]
mod jobs_jumps;
#[path = "it/jobs/once.rs"]
mod jobs_once;
#[path = "it/jobs/payloads.rs"]
mod jobs_payloads;
#[path = "it/jobs/random.rs"]
mod jobs_random;
#[path = "it/jobs/retention.rs"]
mod jobs_retention;
#[path = "it/jobs/retries.rs"]
mod jobs_retries;
#[path = "it/jobs/slots.rs"]
mod jobs_slots;
#[path = "it/jobs/under_way.rs"]
mod jobs_under_way;
#[path = "it/jobs/verbs.rs"]
mod jobs_verbs;
#[path = "it/exercise/lists.rs"]
mod lists;
#[path = "it/exercise/mail.rs"]
mod mail;
#[path = "it/exercise/moves.rs"]
mod moves;
#[path = "it/random.rs"]
mod random;
#[path = "it/exercise/rigs.rs"]
mod rigs;
#[path = "it/schema.rs"]
mod schema;
#[path = "it/semantics.rs"]
mod semantics;
#[path = "it/semantics/time.rs"]
mod semantics_time;
#[path = "it/sessions/ends.rs"]
mod sessions_ends;
#[path = "it/sessions/outbox.rs"]
mod sessions_outbox;
#[path = "it/sessions/queue.rs"]
mod sessions_queue;
#[path = "it/sessions/random.rs"]
mod sessions_random;
#[path = "it/town.rs"]
mod town;
#[path = "it/yard.rs"]
mod yard;

//! The one table of config keys: path, kind, default and help.
//!
//! A new setting is one entry here; reading, editing, listing and the template follow.
//! Defaults and examples are written as a user would type them after `gt config set`.

use super::keys::{Initial, Key};
use super::value::Kind;

/// Stands for a name the user chooses, in a path such as `rigs.NAME.gates`.
pub(super) const WILDCARD: &str = "NAME";

const ANY: Kind = Kind::Integer { min: 0, max: 1_000_000 };
const SOME: Kind = Kind::Integer { min: 1, max: 1_000_000 };
const WINDOW: Kind = Kind::Integer { min: 0, max: 1_000_000_000 };
const CAP: Kind = Kind::Integer { min: -1, max: 1_000_000 };
const SPAN: Kind = Kind::Duration { zero: false };
const DELAY: Kind = Kind::Duration { zero: true };
const LIST: Kind = Kind::TextList { empty: true };
const ARGV: Kind = Kind::TextList { empty: false };

macro_rules! keys {
    ($($path:literal $kind:expr, $how:ident $text:literal, $help:literal;)*) => {
        &[$(Key { path: $path, kind: $kind, initial: keys!(@$how $text), help: $help }),*]
    };
    (@is $text:literal) => { Initial::Default($text) };
    (@eg $text:literal) => { Initial::Unset { example: $text } };
}

/// Every key, grouped and in the order in which people see them.
///
/// `is` gives the default; `eg` gives an example for a key that has none.
pub static KEYS: &[Key] = keys! {
    "default_agent" Kind::Text, is "claude",
        "agent that works where none is named";
    "runtime" Kind::Choice(&["tmux", "process", "exec"]), eg "tmux",
        "how agents run; unset: tmux where installed";

    "exec.command" ARGV, eg r#"["./my-host"]"#,
        "program that runs agents elsewhere, for runtime = \"exec\"";
    "exec.timeout" SPAN, is "1m",
        "a call of this program that takes longer is ended";

    "scheduler.max_polecats" CAP, is "-1",
        "polecats alive at once; -1 and 0: no cap, work starts at once";
    "scheduler.batch_size" Kind::AutoOrCount, is "auto",
        "starts in one pass; auto: every free slot";
    "scheduler.spawn_delay" DELAY, is "0s",
        "pause between two starts of a pass";
    "scheduler.order" Kind::Choice(&["fifo", "priority"]), is "fifo",
        "who is next: first come or most urgent";
    "scheduler.max_failures" SOME, is "3",
        "failed starts until the circuit breaks";
    "scheduler.start_timeout" SPAN, is "5m",
        "a start that takes longer has failed";
    "scheduler.breaker_reset" DELAY, is "1h",
        "time until a broken circuit lets one try through";

    "queue.enabled" Kind::Boolean, is "false",
        "let the daemon dispatch what `gt queue` enqueued";
    "queue.max_polecats" ANY, is "10",
        "polecats alive at once for the queue; 0: no cap";
    "queue.batch_size" ANY, is "3",
        "starts in one pass of the queue; 0: no cap";
    "queue.spawn_delay" DELAY, is "2s",
        "pause between two starts of the queue";

    "rigs.NAME.isolation" Kind::Choice(&["worktree", "none"]), is "worktree",
        "where a polecat works";
    "rigs.NAME.max_polecats" CAP, is "-1",
        "polecats alive at once in this rig; -1 and 0: no own cap";
    "rigs.NAME.gates" LIST, is "[]",
        "commands that must all succeed, in order, before a merge";
    "rigs.NAME.merge" Kind::Choice(&["mr", "direct", "local"]), is "mr",
        "what becomes of finished work";
    "rigs.NAME.push" Kind::Boolean, eg "true",
        "push merged work to origin; unset: rigs cloned from a URL do";
    "rigs.NAME.pull_request" LIST, is "[]",
        "program that asks for merges into protected branches";
    "rigs.NAME.default_formula" Kind::Text, is "mol-polecat-work",
        "formula for work slung without one";

    "agents.NAME.command" ARGV, eg r#"["bash", "agent.sh"]"#,
        "program and arguments of a polecat; unset: the built-in agent's";
    "agents.NAME.prompt" Kind::Choice(&["arg", "stdin", "none"]), is "arg",
        "how the assignment reaches it";
    "agents.NAME.headless" ARGV, eg r#"["bash", "turn.sh"]"#,
        "program for one chat turn: prompt on stdin, reply on stdout";
    "agents.NAME.env" Kind::TextTable, is "{}",
        "extra environment of its processes";
    "agents.NAME.speaks" Kind::Choice(&["claude", "codex", "gemini", "opencode", "none"]), eg "claude",
        "whose lines it prints";
    "agents.NAME.context_window" WINDOW, eg "200000",
        "tokens that its model keeps in mind; 0: not known";
    "agents.NAME.max" ANY, is "0",
        "runs of this agent at once; 0: no own cap";

    "hosts.NAME.max" ANY, is "0",
        "polecats alive at once on this host; 0: no own cap";

    "lanes.main" SOME, is "2", "chat turns at once; unknown lanes count here";
    "lanes.subagent" SOME, is "4", "subagent runs at once";
    "lanes.delegate" SOME, is "100", "delegated runs at once";
    "lanes.cron" SOME, is "1", "cron runs at once";
    "lanes.NAME" SOME, eg "8", "runs at once in a lane of your own";

    "sessions.mode" Kind::Choice(&["queue", "followup", "interrupt"]), is "queue",
        "what a message does to a busy session";
    "sessions.cap" SOME, is "10",
        "messages that may wait in one session";
    "sessions.drop" Kind::Choice(&["old", "new"]), is "old",
        "which message gives way when a session is full";
    "sessions.debounce_ms" Kind::Integer { min: 0, max: 600_000 }, is "800",
        "milliseconds in which messages of one sender become one turn";
    "sessions.timeout" DELAY, is "30m",
        "longest turn; 0s: no limit";

    "channels.NAME.kind" Kind::Choice(&["webhook", "telegram"]), eg "telegram",
        "what kind of channel it is";
    "channels.NAME.url" Kind::Web, eg "https://h.example/x",
        "where a webhook posts; telegram: its API, if another";
    "channels.NAME.secret" Kind::Secret, eg "env:HOOK_SECRET",
        "signs what a webhook posts; env:NAME: from the environment";
    "channels.NAME.token" Kind::Secret, eg "env:TELEGRAM_TOKEN",
        "token of a telegram bot; env:NAME: from the environment";
    "channels.NAME.allow" LIST, is "[]",
        "telegram: who may write; webhook: sessions, [] for all";
    "channels.NAME.agent" Kind::Text, eg "claude",
        "agent that answers what comes in; unset: the session's";
    "channels.NAME.lane" Kind::Text, eg "main",
        "lane in which that runs; unset: the session's";

    "refinery.batch" SOME, is "20",
        "merges that pass the gates together";
    "refinery.gate_timeout" SPAN, is "30m",
        "how long a gate may take";
    "refinery.poll" SPAN, is "30s",
        "how often open pull requests are looked at";

    "convoy.sweep" SPAN, is "30s",
        "how often open convoys are searched for stranded work";
    "convoy.notify" LIST, is "[]",
        "told what lands or needs a person: desktop, hook, channel, command";

    "witness.stall_after" DELAY, is "10m",
        "silence after which a polecat counts as stalled; 0s: never";
    "witness.max_run" DELAY, is "0s",
        "longest run; 0s: no limit";
    "witness.redispatch_cooldown" DELAY, is "5m",
        "time between two redispatches of a bead";
    "witness.redispatch_attempts" SOME, is "3",
        "redispatches of a bead until the mayor is asked";

    "deacon.feed_cooldown" DELAY, is "10m",
        "time between two feeds of a stranded convoy";
    "deacon.feed_max" SOME, is "3",
        "stranded convoys fed in one cycle";
    "deacon.stale_after" SPAN, is "1h",
        "age at which a hook nobody works on is released";

    "daemon.heartbeat" SPAN, is "3m",
        "how often the daemon patrols";

    "cron.retries" ANY, is "3",
        "retries of a cron run that failed";
    "cron.timeout" SPAN, is "10m",
        "longest cron run";
    "cron.grace" SPAN, is "1h",
        "how late a cron run that was missed may come";
    "cron.max_failures" ANY, is "5",
        "failures in a row that disable a job; 0: never";

    "heartbeat.enabled" Kind::Boolean, is "true",
        "look at HEARTBEAT.md at all; without that file nothing runs";
    "heartbeat.interval" Kind::Interval, is "30m",
        "time between two heartbeats";
    "heartbeat.agent" Kind::Text, eg "claude",
        "agent that answers; unset: default_agent";
    "heartbeat.active_hours" Kind::ActiveHours, eg "08:00-22:00",
        "hours in which it may run, over midnight too; unset: always";
    "heartbeat.tz" Kind::TimeZone, eg "Europe/Berlin",
        "time zone of these hours; unset: this machine's";
    "heartbeat.target" Kind::Text, is "last",
        "where its answer goes: last (used channel), none, or a channel";
    "heartbeat.ack_max_chars" ANY, is "300",
        "text beside HEARTBEAT_OK that still counts as all well";

    "guards.max_agents" ANY, is "16",
        "polecats alive at once where no cap is set; 0: no limit";
    "guards.load_per_core" ANY, is "16",
        "no start above this load per core; 0: no limit";
    "guards.free_memory" Kind::Size, is "256 MB",
        "no start with less memory free";
    "guards.free_disk" Kind::Size, is "1 GB",
        "no start with less disk free";
    "guards.starts_per_second" ANY, is "0",
        "starts in one second; 0: no limit";

    "budget.daily" Kind::Money, is "0",
        "US dollars a day that agents may report; 0: no limit";

    "retention.events" SPAN, is "30d",
        "age at which events are pruned, unread ones never";
    "retention.messages" SPAN, is "30d",
        "age at which what sessions said is pruned";
    "retention.logs" SPAN, is "14d",
        "age at which logs are pruned";
    "retention.worktrees" SPAN, is "24h",
        "time after which salvaged worktrees of closed beads go";
    "retention.logs_size" Kind::Size, is "1 GB",
        "size of all logs above which the oldest go; 0 B: no limit";

    "store.url" Kind::Url, eg "postgres://user@host/town",
        "PostgreSQL, not supported yet: leave it unset";

    "server.bind" Kind::Address, is "127.0.0.1:7777",
        "address of the dashboard and the HTTP API";
    "server.allow" LIST, is r#"["*"]"#,
        "sessions that HTTP callers may talk to; *: anything";
};

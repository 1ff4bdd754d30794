//! What people read: the error texts and the fresh file.

use super::*;

fn refused(text: &str) -> String {
    told(&Config::parse(text).unwrap_err())
}

#[test]
fn errors_of_a_file() {
    let texts = [
        "[scheduler]\nmax_polecats 3\n",
        "[scheduler]\nmax_polecats = 3\n\n[scheduler]\n",
        "default_agent = \"claude\nstore.url = 'x'\n",
        "store.url = \"postgres://u:hunter2@h/db\n",
        "[scheduler]\nmax_polecat = 3\n",
        "max_polecats = 3\n",
        "[agents.x]\ncomand = ['a']\n",
        "[agents.x.env.K]\nv = 1\n",
        "wombat = 1\n",
        "scheduler = 3\n",
        "[[rigs]]\nname = 'a'\n",
        "[scheduler]\nspawn_delay = 5\n",
        "[rigs.r]\ngates = 'make test'\n",
        "[rigs.\"a.b\"]\nisolation = 'container'\n",
        "[agents.x]\nenv = { TOKEN = 5, KEY = 'hunter2' }\n",
        "[store]\nurl = 'mysql://u:hunter2@h/db'\n",
    ];
    let all = texts.map(refused).join("\n");
    insta::assert_snapshot!(all, @r##"
    line 2, column 14: key with no value, expected `=` in `max_polecats 3`
    line 4, column 2: duplicate key in `[scheduler]`
    line 1, column 24: invalid basic string, expected `"` in `default_agent = "claude`
    line 1, column 39: invalid basic string, expected `"` in `store.url = "postgres://u:***@h/db`
    line 2: unknown key `scheduler.max_polecat`
      hint: did you mean `scheduler.max_polecats`? `gt config list` shows all keys
    line 1: unknown key `max_polecats`
      hint: did you mean `scheduler.max_polecats` or `queue.max_polecats` or `rigs.NAME.max_polecats`? `gt config list` shows all keys
    line 2: unknown key `agents.x.comand`
      hint: did you mean `agents.x.command`? `gt config list` shows all keys
    line 1: `agents.x.env` cannot be `***`: it must be a table of texts, such as `{ KEY = "value" }`
      hint: `gt config unset agents.x.env` returns it to the default, `{}`
    line 1: unknown key `wombat`
      hint: `gt config list` shows all keys
    line 1: `scheduler` must be a table of keys
      hint: write `[scheduler]` on a line of its own and its keys below
    line 1: `rigs` must be a table of keys
      hint: write `[rigs]` on a line of its own and its keys below
    line 2: `scheduler.spawn_delay` cannot be `5`: it must be a duration with its unit, such as `0s`, `800ms`, `5m` or `1h 30m`, not a bare number
      hint: `gt config unset scheduler.spawn_delay` returns it to the default, `0s`
    line 2: `rigs.r.gates` cannot be `'make test'`: it must be a list of texts, such as `["cmd a", "cmd b"]`
      hint: `gt config unset rigs.r.gates` returns it to the default, `[]`
    line 2: `rigs."a.b".isolation` cannot be `'container'`: it must be `worktree` or `none`
      hint: `gt config unset rigs."a.b".isolation` returns it to the default, `worktree`
    line 2: `agents.x.env` cannot be `***`: it must be a table of texts, such as `{ KEY = "value" }`
      hint: `gt config unset agents.x.env` returns it to the default, `{}`
    line 2: `store.url` cannot be `'mysql://u:***@h/db'`: it must be left unset, since this version keeps all data in the town's own SQLite file
      hint: `gt config unset store.url` leaves it out; `gt config list` says what each key is for
    "##);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one snapshot, read as a whole")]
fn errors_of_a_command() {
    let typed = [
        ("scheduler.max_polecats", "many"),
        ("scheduler.max_polecats", "-2"),
        ("scheduler.batch_size", "0"),
        ("scheduler.spawn_delay", "5"),
        ("scheduler.start_timeout", "0s"),
        ("scheduler.order", "lifo"),
        ("queue.enabled", "yes"),
        ("guards.free_disk", "5"),
        ("budget.daily", "-1"),
        ("sessions.mode", "drop"),
        ("heartbeat.active_hours", "8-22"),
        ("heartbeat.tz", "Berlin"),
        ("server.bind", "localhost"),
        ("store.url", "town.db"),
        ("agents.x.command", "[]"),
        ("agents.x.env", "TOKEN"),
        ("rigs.r.gates", "[make test]"),
        ("default_agent", ""),
        ("schedular.max_polecats", "3"),
        ("rigs.web.isolaton", "none"),
        ("agents.x.env.TOKEN", "x"),
        ("scheduler", "3"),
        ("rigs.web", "3"),
        ("a..b", "3"),
        ("", "3"),
        ("default_agent", &"x".repeat(100_000)),
    ];
    let all = typed.map(|(key, raw)| told(&set("", key, raw).unwrap_err()));
    insta::assert_snapshot!(all.join("\n"), @r#"
    `scheduler.max_polecats` cannot be `many`: it must be a whole number from -1 to 1000000
      hint: `gt config unset scheduler.max_polecats` returns it to the default, `-1`
    `scheduler.max_polecats` cannot be `-2`: it must be a whole number from -1 to 1000000
      hint: `gt config unset scheduler.max_polecats` returns it to the default, `-1`
    `scheduler.batch_size` cannot be `0`: it must be `auto` or a whole number above 0
      hint: `gt config unset scheduler.batch_size` returns it to the default, `auto`
    `scheduler.spawn_delay` cannot be `5`: it must be a duration with its unit, such as `0s`, `800ms`, `5m` or `1h 30m`, not a bare number
      hint: `gt config unset scheduler.spawn_delay` returns it to the default, `0s`
    `scheduler.start_timeout` cannot be `0s`: it must be a duration above zero with its unit, such as `800ms`, `5m` or `1h 30m`, not a bare number
      hint: `gt config unset scheduler.start_timeout` returns it to the default, `5m`
    `scheduler.order` cannot be `lifo`: it must be `fifo` or `priority`
      hint: `gt config unset scheduler.order` returns it to the default, `fifo`
    `queue.enabled` cannot be `yes`: it must be `true` or `false`
      hint: `gt config unset queue.enabled` returns it to the default, `false`
    `guards.free_disk` cannot be `5`: it must be a size with its unit, such as `256 MB` or `1 GB`, not a bare number
      hint: `gt config unset guards.free_disk` returns it to the default, `1 GB`
    `budget.daily` cannot be `-1`: it must be an amount of 0 or more with at most six decimals, such as `12.50`
      hint: `gt config unset budget.daily` returns it to the default, `0`
    `sessions.mode` cannot be `drop`: it must be `queue`, `followup` or `interrupt`
      hint: `gt config unset sessions.mode` returns it to the default, `queue`
    `heartbeat.active_hours` cannot be `8-22`: it must be a span of the day such as `08:00-22:00`
      hint: `gt config unset heartbeat.active_hours` leaves it out; `gt config list` says what each key is for
    `heartbeat.tz` cannot be `Berlin`: it must be an IANA time zone such as `Europe/Berlin` or `UTC`
      hint: `gt config unset heartbeat.tz` leaves it out; `gt config list` says what each key is for
    `server.bind` cannot be `localhost`: it must be an address with its port, such as `127.0.0.1:7777`
      hint: `gt config unset server.bind` returns it to the default, `127.0.0.1:7777`
    `store.url` cannot be `town.db`: it must be left unset, since this version keeps all data in the town's own SQLite file
      hint: `gt config unset store.url` leaves it out; `gt config list` says what each key is for
    `agents.x.command` cannot be `[]`: it must be a list of at least one text, such as `["bash", "agent.sh"]`
      hint: `gt config unset agents.x.command` leaves it out; `gt config list` says what each key is for
    `agents.x.env` cannot be `***`: it must be a table of texts, such as `{ KEY = "value" }`
      hint: `gt config unset agents.x.env` returns it to the default, `{}`
    `rigs.r.gates` cannot be `[make test]`: it must be a list of texts, such as `["cmd a", "cmd b"]`
      hint: `gt config unset rigs.r.gates` returns it to the default, `[]`
    `default_agent` cannot be empty: it must be a text of one line, not empty
      hint: `gt config unset default_agent` returns it to the default, `claude`
    unknown key `schedular.max_polecats`
      hint: did you mean `scheduler.max_polecats`? `gt config list` shows all keys
    unknown key `rigs.web.isolaton`
      hint: did you mean `rigs.web.isolation`? `gt config list` shows all keys
    unknown key `agents.x.env.TOKEN`
      hint: did you mean `agents.x.env`? `gt config list` shows all keys
    `scheduler` is a group of keys, not a key
      hint: its keys are `scheduler.max_polecats`, `scheduler.batch_size`, `scheduler.spawn_delay`, `scheduler.order`, `scheduler.max_failures`, `scheduler.start_timeout`, `scheduler.breaker_reset`
    `rigs.web` is a group of keys, not a key
      hint: its keys are `rigs.web.isolation`, `rigs.web.max_polecats`, `rigs.web.gates`, `rigs.web.merge`, `rigs.web.push`, `rigs.web.pull_request`, `rigs.web.default_formula`
    `a..b` is not a key: unquoted keys cannot be empty, expected letters, numbers, `-`, `_`
      hint: join names with dots and quote a name that has some, as in `rigs."a.b".gates`
    `` is not a key: it is empty
      hint: join names with dots and quote a name that has some, as in `rigs."a.b".gates`
    `default_agent` cannot be `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…`: it must be shorter than 64 KiB
      hint: `gt config unset default_agent` returns it to the default, `claude`
    "#);
}

#[test]
fn errors_of_the_layout() {
    let all = [
        told(&set("scheduler = 3", "scheduler.order", "fifo").unwrap_err()),
        told(&set("[scheduler.order]\n", "scheduler.order", "fifo").unwrap_err()),
        told(&unset("[scheduler]\norder = 'fifo'\n", "scheduler").unwrap_err()),
        told(&unset("", "wombat").unwrap_err()),
    ];
    insta::assert_snapshot!(all.join("\n"), @r##"
    `scheduler` must be a table of keys
      hint: write `[scheduler]` on a line of its own and its keys below
    `scheduler.order` is written in a way that cannot be edited from here
      hint: change it in the file by hand
    `scheduler` is a group of keys, not a key
      hint: its keys are `scheduler.max_polecats`, `scheduler.batch_size`, `scheduler.spawn_delay`, `scheduler.order`, `scheduler.max_failures`, `scheduler.start_timeout`, `scheduler.breaker_reset`
    unknown key `wombat`
      hint: `gt config list` shows all keys
    "##);
}

#[test]
fn the_template_sets_nothing() {
    let document = toml_edit::Document::parse(template()).unwrap();
    assert!(document.as_table().is_empty());
    assert_eq!(Config::parse(&template()).unwrap(), Config::default());
}

/// Takes the comment sign off the lines that show a default, or an example.
fn uncommented(lead: &str) -> String {
    let lines = template().lines().map(str::to_owned).collect::<Vec<_>>();
    let shows = |line: &str| line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '[');
    let lines = lines.iter().map(|line| match line.strip_prefix(lead) {
        Some(rest) if shows(rest) && (rest.contains(" = ") || rest.starts_with('[')) => rest,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_template_shows_every_default() {
    let config = Config::parse(&uncommented("# ")).unwrap();
    for key in KEYS {
        let setting = config.get(key.path).unwrap();
        let expected = match key.default_text() {
            Some(_) => Source::File,
            None => Source::Default,
        };
        assert_eq!(setting.source, expected, "{}", key.path);
        assert_eq!(setting.value, key.default_value(), "{}", key.path);
    }
}

#[test]
fn the_examples_of_the_template_are_valid() {
    let config = Config::parse(&uncommented("#   ")).unwrap();
    for key in KEYS.iter().filter(|key| key.default_text().is_none()) {
        assert_eq!(config.value(key.path), Some(key.sample()), "{}", key.path);
    }
    assert_eq!(config.texts("agents.scripted.command"), ["bash", "agent.sh"]);
}

#[test]
fn the_lines_of_the_template_fit() {
    let widest = template().lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(120), "{widest:?}");
}

#[test]
fn a_table_can_follow_lines_of_the_template() {
    let text = template().replace("# agents.NAME.max = 0", "agents.NAME.max = 1");
    let text = format!("{text}\n[agents.scripted]\nmax = 2\n");
    let config = Config::parse(&text).unwrap();
    assert_eq!(config.integer("agents.NAME.max"), 1);
    assert_eq!(config.integer("agents.scripted.max"), 2);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one snapshot, read as a whole")]
fn the_template_as_people_see_it() {
    insta::assert_snapshot!(template(), @r#"
    # town.toml: the settings of this town.
    #
    # Each line below is a comment that shows a key with its default and its meaning.
    # To change one, remove the `# ` before it and edit the value, or let gt do it:
    #
    #   gt config set scheduler.max_polecats 3
    #   gt config get scheduler.max_polecats
    #   gt config unset scheduler.max_polecats
    #   gt config list
    #
    # A running daemon takes changes at once. Lines indented further are examples.
    # NAME stands for a name of your own. Tables such as [scheduler] can be added at the end.

    # default_agent = "claude"                        # agent that works where none is named
    #   runtime = "tmux"                              # how agents run; unset: tmux where installed (tmux | process | exec)

    #   exec.command = ["./my-host"]                  # program that runs agents elsewhere, for runtime = "exec"
    # exec.timeout = "1m"                             # a call of this program that takes longer is ended

    # scheduler.max_polecats = -1                     # polecats alive at once; -1 and 0: no cap, work starts at once
    # scheduler.batch_size = "auto"                   # starts in one pass; auto: every free slot
    # scheduler.spawn_delay = "0s"                    # pause between two starts of a pass
    # scheduler.order = "fifo"                        # who is next: first come or most urgent (fifo | priority)
    # scheduler.max_failures = 3                      # failed starts until the circuit breaks
    # scheduler.start_timeout = "5m"                  # a start that takes longer has failed
    # scheduler.breaker_reset = "1h"                  # time until a broken circuit lets one try through

    # queue.enabled = false                           # let the daemon dispatch what `gt queue` enqueued
    # queue.max_polecats = 10                         # polecats alive at once for the queue; 0: no cap
    # queue.batch_size = 3                            # starts in one pass of the queue; 0: no cap
    # queue.spawn_delay = "2s"                        # pause between two starts of the queue

    # rigs.NAME.isolation = "worktree"                # where a polecat works (worktree | none)
    # rigs.NAME.max_polecats = -1                     # polecats alive at once in this rig; -1 and 0: no own cap
    # rigs.NAME.gates = []                            # commands that must all succeed, in order, before a merge
    # rigs.NAME.merge = "mr"                          # what becomes of finished work (mr | direct | local)
    #   rigs.NAME.push = true                         # push merged work to origin; unset: rigs cloned from a URL do
    # rigs.NAME.pull_request = []                     # program that asks for merges into protected branches
    # rigs.NAME.default_formula = "mol-polecat-work"  # formula for work slung without one

    #   agents.NAME.command = ["bash", "agent.sh"]    # program and arguments of a polecat; unset: the built-in agent's
    # agents.NAME.prompt = "arg"                      # how the assignment reaches it (arg | stdin | none)
    #   agents.NAME.headless = ["bash", "turn.sh"]    # program for one chat turn: prompt on stdin, reply on stdout
    # agents.NAME.env = {}                            # extra environment of its processes
    #   agents.NAME.speaks = "claude"                 # whose lines it prints (claude | codex | gemini | opencode | none)
    #   agents.NAME.context_window = 200000           # tokens that its model keeps in mind; 0: not known
    # agents.NAME.max = 0                             # runs of this agent at once; 0: no own cap

    # hosts.NAME.max = 0                              # polecats alive at once on this host; 0: no own cap

    # lanes.main = 2                                  # chat turns at once; unknown lanes count here
    # lanes.subagent = 4                              # subagent runs at once
    # lanes.delegate = 100                            # delegated runs at once
    # lanes.cron = 1                                  # cron runs at once
    #   lanes.NAME = 8                                # runs at once in a lane of your own

    # sessions.mode = "queue"                         # what a message does to a busy session (queue | followup | interrupt)
    # sessions.cap = 10                               # messages that may wait in one session
    # sessions.drop = "old"                           # which message gives way when a session is full (old | new)
    # sessions.debounce_ms = 800                      # milliseconds in which messages of one sender become one turn
    # sessions.timeout = "30m"                        # longest turn; 0s: no limit

    #   channels.NAME.kind = "telegram"               # what kind of channel it is (webhook | telegram)
    #   channels.NAME.url = "https://h.example/x"     # where a webhook posts; telegram: its API, if another
    #   channels.NAME.secret = "env:HOOK_SECRET"      # signs what a webhook posts; env:NAME: from the environment
    #   channels.NAME.token = "env:TELEGRAM_TOKEN"    # token of a telegram bot; env:NAME: from the environment
    # channels.NAME.allow = []                        # telegram: who may write; webhook: sessions, [] for all
    #   channels.NAME.agent = "claude"                # agent that answers what comes in; unset: the session's
    #   channels.NAME.lane = "main"                   # lane in which that runs; unset: the session's

    # refinery.batch = 20                             # merges that pass the gates together
    # refinery.gate_timeout = "30m"                   # how long a gate may take
    # refinery.poll = "30s"                           # how often open pull requests are looked at

    # convoy.sweep = "30s"                            # how often open convoys are searched for stranded work
    # convoy.notify = []                              # told what lands or needs a person: desktop, hook, channel, command

    # witness.stall_after = "10m"                     # silence after which a polecat counts as stalled; 0s: never
    # witness.max_run = "0s"                          # longest run; 0s: no limit
    # witness.redispatch_cooldown = "5m"              # time between two redispatches of a bead
    # witness.redispatch_attempts = 3                 # redispatches of a bead until the mayor is asked

    # deacon.feed_cooldown = "10m"                    # time between two feeds of a stranded convoy
    # deacon.feed_max = 3                             # stranded convoys fed in one cycle
    # deacon.stale_after = "1h"                       # age at which a hook nobody works on is released

    # daemon.heartbeat = "3m"                         # how often the daemon patrols

    # cron.retries = 3                                # retries of a cron run that failed
    # cron.timeout = "10m"                            # longest cron run
    # cron.grace = "1h"                               # how late a cron run that was missed may come
    # cron.max_failures = 5                           # failures in a row that disable a job; 0: never

    # heartbeat.enabled = true                        # look at HEARTBEAT.md at all; without that file nothing runs
    # heartbeat.interval = "30m"                      # time between two heartbeats
    #   heartbeat.agent = "claude"                    # agent that answers; unset: default_agent
    #   heartbeat.active_hours = "08:00-22:00"        # hours in which it may run, over midnight too; unset: always
    #   heartbeat.tz = "Europe/Berlin"                # time zone of these hours; unset: this machine's
    # heartbeat.target = "last"                       # where its answer goes: last (used channel), none, or a channel
    # heartbeat.ack_max_chars = 300                   # text beside HEARTBEAT_OK that still counts as all well

    # guards.max_agents = 16                          # polecats alive at once where no cap is set; 0: no limit
    # guards.load_per_core = 16                       # no start above this load per core; 0: no limit
    # guards.free_memory = "256 MB"                   # no start with less memory free
    # guards.free_disk = "1 GB"                       # no start with less disk free
    # guards.starts_per_second = 0                    # starts in one second; 0: no limit

    # budget.daily = 0                                # US dollars a day that agents may report; 0: no limit

    # retention.events = "30d"                        # age at which events are pruned, unread ones never
    # retention.messages = "30d"                      # age at which what sessions said is pruned
    # retention.logs = "14d"                          # age at which logs are pruned
    # retention.worktrees = "24h"                     # time after which salvaged worktrees of closed beads go
    # retention.logs_size = "1 GB"                    # size of all logs above which the oldest go; 0 B: no limit

    #   store.url = "postgres://user@host/town"       # PostgreSQL, not supported yet: leave it unset

    # server.bind = "127.0.0.1:7777"                  # address of the dashboard and the HTTP API
    # server.allow = ["*"]                            # sessions that HTTP callers may talk to; *: anything

    # An agent of your own, beside claude, codex, gemini, opencode and shell:
    #
    #   [agents.scripted]
    #   command  = ["bash", "agent.sh"]   # started in the worktree with the GT_* environment
    #   prompt   = "arg"                  # how the assignment reaches it: arg | stdin | none
    #   headless = ["bash", "turn.sh"]    # one chat turn: prompt on stdin, reply on stdout
    #   env      = { KEY = "value" }
    "#);
}

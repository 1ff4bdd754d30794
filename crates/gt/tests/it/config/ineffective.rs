//! Settings that have no effect are refused, and shown where a file has them. // SPEC T8

use crate::fleet::Fleet;
use crate::town::{Town, session, snapshot};

#[test]
fn a_setting_that_would_have_no_effect_is_refused_with_what_to_type() {
    let town = Town::with_rig();
    let before = town.read("town.toml");
    let refused = [
        town.refused(["config", "set", "rigs.shpo.gates", "[\"make\"]"]),
        town.refused(["config", "set", "rigs.docs.merge", "direct"]),
        town.refused(["config", "set", "agents.cluade.max", "2"]),
        town.refused(["config", "set", "agents.own.prompt", "stdin"]),
        town.refused(["config", "set", "agents.claude.prompt", "stdin"]),
        town.refused(["config", "set", "default_agent", "cluade"]),
        town.refused(["config", "set", "channels.ops.agent", "claude"]),
        town.refused(["config", "set", "convoy.notify", "[\"channel:ops\"]"]),
        town.refused(["config", "set", "convoy.notify", "desktp"]),
        town.refused(["config", "set", "heartbeat.target", "ops"]),
        town.refused(["config", "set", "lanes.polecat", "2"]),
    ];
    snapshot!(refused.concat(), @r#"
    $ gt config set rigs.shpo.gates '["make"]'
    ! error: `rigs.shpo.gates` would do nothing: there is no rig `shpo`
    ! hint: did you mean `rigs.shop.gates`? Or add the rig: `gt rig add shpo PATH`
    [exit 1]
    $ gt config set rigs.docs.merge direct
    ! error: `rigs.docs.merge` would do nothing: there is no rig `docs`
    ! hint: add the rig: `gt rig add docs PATH`
    [exit 1]
    $ gt config set agents.cluade.max 2
    ! error: `agents.cluade.max` would do nothing: there is no agent `cluade`
    ! hint: did you mean `agents.claude.max`? Or define it first: `gt config set agents.cluade.command '["PROGRAM"]'`
    [exit 1]
    $ gt config set agents.own.prompt stdin
    ! error: `agents.own.prompt` would do nothing: there is no agent `own`
    ! hint: define it first: `gt config set agents.own.command '["PROGRAM"]'`
    [exit 1]
    $ gt config set agents.claude.prompt stdin
    ! error: `agents.claude.prompt` would do nothing: the agent `claude` has no command of its own
    ! hint: set it first: `gt config set agents.claude.command '["PROGRAM"]'`
    [exit 1]
    $ gt config set default_agent cluade
    ! error: `default_agent` would do nothing: there is no agent `cluade`
    ! hint: did you mean `claude`? Or define it first: `gt config set agents.cluade.command '["PROGRAM"]'`
    [exit 1]
    $ gt config set channels.ops.agent claude
    ! error: `channels.ops.agent` would do nothing: the channel `ops` has no kind
    ! hint: define it: `gt config set channels.ops.kind webhook` (or telegram)
    [exit 1]
    $ gt config set convoy.notify '["channel:ops"]'
    ! error: `channel:ops` in `convoy.notify` would do nothing: there is no channel `ops`
    ! hint: define it: `gt config set channels.ops.kind webhook` (or telegram)
    [exit 1]
    $ gt config set convoy.notify desktp
    ! error: `desktp` in `convoy.notify` would do nothing: there is no such notification
    ! hint: did you mean `desktop`? Or give `desktop`, `channel:NAME`, an http(s) URL or a command
    [exit 1]
    $ gt config set heartbeat.target ops
    ! error: `heartbeat.target` would do nothing: there is no channel `ops`
    ! hint: define it: `gt config set channels.ops.kind webhook` (or telegram)
    [exit 1]
    $ gt config set lanes.polecat 2
    ! error: `lanes.polecat` would do nothing: polecats are limited by the scheduler
    ! hint: `gt config set scheduler.max_polecats N`
    [exit 1]
    "#);
    assert_eq!(town.read("town.toml"), before);
}

#[test]
fn the_setting_of_something_that_does_not_exist_is_not_found() {
    let town = Town::with_rig();
    let keys = ["rigs.shpo.gates", "agents.cluade.command", "hosts.nowhere.max"];
    let asked = keys.map(|key| town.gt(["config", "get", key]));
    assert!(asked.iter().all(|asked| asked.code == 3), "{asked:?}");
    snapshot!(asked[..2].iter().map(ToString::to_string).collect::<String>(), @r#"
    $ gt config get rigs.shpo.gates
    ! error: there is no rig `shpo`
    ! hint: did you mean `rigs.shop.gates`? Or add the rig: `gt rig add shpo PATH`
    [exit 3]
    $ gt config get agents.cluade.command
    ! error: there is no agent `cluade`
    ! hint: did you mean `agents.claude.command`? Or define it first: `gt config set agents.cluade.command '["PROGRAM"]'`
    [exit 3]
    "#);
    assert_eq!(town.gt(["config", "get", "rigs.shop.gates"]).code, 0);
    assert_eq!(town.gt(["config", "get", "agents.claude.command"]).code, 0);
}

#[test]
fn a_database_that_cannot_be_used_is_refused() {
    let town = Town::new();
    let refused = [
        town.refused(["config", "set", "store.url", "postgres://me:hush@db/town"]),
        town.refused(["config", "set", "store.url", "town.db"]),
    ];
    snapshot!(refused.concat(), @r"
    $ gt config set store.url postgres://me:hush@db/town
    ! error: `store.url` would do nothing: this version keeps all data in the town's own SQLite file
    ! hint: leave it out: `gt config unset store.url`
    [exit 1]
    $ gt config set store.url town.db
    ! error: `store.url` cannot be `town.db`: it must be left unset, since this version keeps all data in the town's own SQLite file
    ! hint: `gt config unset store.url` leaves it out; `gt config list` says what each key is for
    [exit 1]
    ");
}

#[test]
fn the_limit_of_another_host_is_refused_with_the_key_of_this_one() {
    let town = Town::with_rig();
    let elsewhere = town.refused(["config", "set", "hosts.elsewhere.max", "2"]);
    assert!(elsewhere.contains("the town does not run on a host `elsewhere`"), "{elsewhere}");
    let (_, key) = elsewhere.split_once("for this host set `").expect("a hint");
    town.gt(["config", "set", key.split('`').next().expect("a key"), "2"]).success();
}

#[test]
fn settings_may_come_in_the_order_in_which_they_make_sense() {
    let town = Town::with_rig();
    for (key, value) in [
        ("rigs.shop.gates", "[\"make\"]"),
        ("agents.own.command", "[\"own\"]"),
        ("agents.own.prompt", "stdin"),
        ("default_agent", "own"),
        ("agents.talks.headless", "[\"talk\"]"),
        ("agents.talks.env", "{ A = \"b\" }"),
        ("heartbeat.agent", "talks"),
        ("channels.ops.kind", "webhook"),
        ("channels.ops.url", "https://h.example/x"),
        ("convoy.notify", "[\"channel:ops\"]"),
        ("heartbeat.target", "ops"),
    ] {
        let set = town.gt(["config", "set", key, value]);
        set.success();
        assert_eq!(set.stderr, "", "{set}");
    }
    // A channel starts when it has a kind, so its address and who may write there can be set before.
    let set = town.gt(["config", "set", "channels.tg.allow", "@you"]);
    set.success();
    snapshot!(set.to_string(), @r#"
    $ gt config set channels.tg.allow @you
    Set channels.tg.allow = ["@you"]
    ! note: `channels.tg.allow` does nothing yet: the channel `tg` has no kind
    ! hint: define it: `gt config set channels.tg.kind webhook` (or telegram)
    "#);
    town.gt(["config", "set", "channels.tg.kind", "telegram"]).success();
    town.gt(["config", "set", "channels.tg.agent", "talks"]).success();
    assert_eq!(town.gt(["status", "--json"]).json()["config_warnings"], serde_json::json!([]));
}

#[test]
fn in_a_file_it_is_a_warning_and_stops_nothing() {
    let town = Town::with_rig();
    town.write("town.toml", "rigs.shpo.gates = [\"make\"]\nscheduler.max_polecats = 3\n");
    let status = town.gt(["status"]);
    let doctor = town.gt(["doctor"]);
    assert_eq!(doctor.code, 0, "{doctor}");
    let config = doctor.to_string().lines().skip(1).take(3).collect::<Vec<_>>().join("\n");
    assert_eq!(town.gt(["config", "get", "scheduler.max_polecats"]).to_string().lines().count(), 2);
    snapshot!(status.to_string() + &town.gt(["config", "get", "rigs.shpo.gates"]).to_string() + &config, @r#"
    $ gt status
    [TOWN]  no daemon: `gt daemon start`
    0 of 3 agents running

    Needs a person (1)
      ! `rigs.shpo.gates` does nothing: there is no rig `shpo`
          did you mean `rigs.shop.gates`? Or add the rig: `gt rig add shpo PATH`

    Nothing runs.

    Nothing is scheduled.
    $ gt config get rigs.shpo.gates
    ["make"]
    ! note: `rigs.shpo.gates` does nothing: there is no rig `shpo`
    ! hint: did you mean `rigs.shop.gates`? Or add the rig: `gt rig add shpo PATH`
    ✓ config     [TOWN]/town.toml is fine
    ! config     `rigs.shpo.gates` does nothing: there is no rig `shpo`
        → did you mean `rigs.shop.gates`? Or add the rig: `gt rig add shpo PATH`
    "#);
    let warnings = &town.gt(["status", "--json"]).json()["config_warnings"];
    assert_eq!(warnings[0]["key"], "rigs.shpo.gates");
    assert_eq!(warnings[0]["message"], "`rigs.shpo.gates` does nothing: there is no rig `shpo`");
}

#[test]
fn a_database_that_cannot_be_used_is_never_ignored_silently() {
    let fleet = Fleet::new("true");
    let url = "\n[store]\nurl = \"postgres://me:hush@db/town\"\n";
    fleet.town.write("town.toml", fleet.town.read("town.toml") + url);
    let warning = "`store.url` does nothing: this version keeps all data in the town's own SQLite file";
    fleet.start_daemon();
    fleet.until_seen("the daemon's warning", || fleet.n_said(&[warning]) == 1);
    let answers = [
        fleet.town.gt(["status"]),
        fleet.town.gt(["doctor"]),
        fleet.town.gt(["config", "get", "store.url"]),
        fleet.town.gt(["config", "list"]),
    ];
    for answer in answers.map(|answer| answer.to_string()) {
        assert!(answer.contains(warning), "{answer}");
        assert!(!answer.contains("hush"), "{answer}");
    }
    fleet.town.gt(["config", "unset", "store.url"]).success();
    assert!(!fleet.town.gt(["status"]).to_string().contains("store.url"));
}

#[test]
fn removing_a_rig_removes_its_settings() {
    let town = Town::with_rig();
    town.write(
        "town.toml",
        "# ours\n[rigs.shop] # the first\ngates = [\"make\"]\nmerge = \"direct\"\n\n[scheduler]\nmax_polecats = 3\n",
    );
    let before = town.read("town.toml");
    let rehearsed = town.gt(["rig", "remove", "shop", "--dry-run", "--json"]).json();
    assert_eq!(rehearsed["settings_removed"], true);
    assert_eq!(town.read("town.toml"), before);
    let answers = [town.gt(["rig", "remove", "shop"]), town.gt(["status"])];
    snapshot!(session(answers) + &town.read("town.toml"), @"
    $ gt rig remove shop
    Took rig shop off the registry and its settings out of town.toml; its repository and beads stay.
    $ gt status
    [TOWN]  no daemon: `gt daemon start`
    0 of 3 agents running

    Nothing runs.

    Nothing is scheduled.
    # ours
    # the first

    [scheduler]
    max_polecats = 3
    ");
    let town = Town::with_rig();
    town.gt(["config", "set", "rigs.shop.merge", "direct"]).success();
    assert_eq!(town.gt(["rig", "remove", "shop", "--json"]).json()["settings_removed"], true);
    // A broken file is left alone, and that is said.
    let town = Town::with_rig();
    town.gt(["config", "set", "rigs.shop.merge", "direct"]).success();
    town.write("town.toml", "");
    let removed = town.gt(["rig", "remove", "shop"]);
    removed.success();
    assert!(removed.stderr.contains("the settings of this rig stay in town.toml: "), "{removed}");
    assert_eq!(town.read("town.toml"), "");
}

#[test]
fn a_setting_that_another_one_rules_out_is_refused_and_names_it() {
    let town = Town::with_rig();
    town.gt(["config", "set", "scheduler.max_polecats", "3"]).success();
    let refused = [
        town.refused(["config", "set", "queue.max_polecats", "2"]),
        town.refused(["config", "set", "guards.max_agents", "4"]),
        town.refused(["config", "set", "rigs.shop.default_formula", "mol-polecat-wrok"]),
        town.refused(["config", "set", "rigs.shop.push", "true"]),
    ];
    snapshot!(refused.concat(), @"
    $ gt config set queue.max_polecats 2
    ! error: `queue.max_polecats` would do nothing: `scheduler.max_polecats` = 3 rules queued work too
    ! hint: change that one: `gt config set scheduler.max_polecats N`
    [exit 1]
    $ gt config set guards.max_agents 4
    ! error: `guards.max_agents` would do nothing: `scheduler.max_polecats` = 3 limits agents already
    ! hint: change that one: `gt config set scheduler.max_polecats N`
    [exit 1]
    $ gt config set rigs.shop.default_formula mol-polecat-wrok
    ! error: `rigs.shop.default_formula` would do nothing: there is no formula `mol-polecat-wrok`
    ! hint: did you mean `mol-polecat-work`? Or list formulas with `gt formula list`
    [exit 1]
    $ gt config set rigs.shop.push true
    ! error: `rigs.shop.push` would do nothing: the repository of rig shop has no remote `origin`
    ! hint: add it there: `git remote add origin URL`
    [exit 1]
    ");
    let town = Town::with_rig();
    town.gt(["config", "set", "queue.enabled", "true"]).success();
    let guard = town.refused(["config", "set", "guards.max_agents", "4"]);
    assert!(guard.contains("`queue.max_polecats` = 10 limits agents already"), "{guard}");
    town.gt(["config", "set", "queue.max_polecats", "0"]).success();
    town.gt(["config", "set", "guards.max_agents", "4"]).success();
}

#[test]
fn a_setting_that_does_nothing_yet_is_set_with_a_note() {
    let town = Town::with_rig();
    let set = [
        town.gt(["config", "set", "exec.command", "[\"./my-host\"]"]),
        town.gt(["config", "set", "rigs.shop.merge", "local"]),
        town.gt(["config", "set", "rigs.shop.gates", "[\"make\"]"]),
        town.gt(["lane", "set", "mian", "3"]),
        town.gt(["lane", "set", "research", "3"]),
        town.gt(["config", "set", "channels.hook.kind", "webhook"]),
        town.gt(["config", "set", "channels.hook.secret", "env:GT_NO_SUCH_SECRET"]),
    ];
    snapshot!(session(set), @r#"
    $ gt config set exec.command '["./my-host"]'
    Set exec.command = ["./my-host"]
    ! note: `exec.command` does nothing yet: `exec.command` counts with `runtime = "exec"` alone
    ! hint: run agents elsewhere: `gt config set runtime exec`
    $ gt config set rigs.shop.merge local
    Set rigs.shop.merge = local
    $ gt config set rigs.shop.gates '["make"]'
    Set rigs.shop.gates = ["make"]
    ! note: `rigs.shop.gates` does nothing yet: finished work of rig shop is not merged, since `rigs.shop.merge` is local
    ! hint: `gt config set rigs.shop.merge mr`
    $ gt lane set mian 3
    mian runs up to 3 at once.
    ! note: `lanes.mian` does nothing yet: only turns that name the lane `mian` count in it
    ! hint: did you mean `lanes.main`? Or name it: `gt session set SESSION --lane mian`
    $ gt lane set research 3
    research runs up to 3 at once.
    $ gt config set channels.hook.kind webhook
    Set channels.hook.kind = webhook
    $ gt config set channels.hook.secret env:GT_NO_SUCH_SECRET
    Set channels.hook.secret = env:GT_NO_SUCH_SECRET
    ! note: this command has no GT_NO_SUCH_SECRET in its environment, and the daemon needs it
    ! hint: `export GT_NO_SUCH_SECRET=…`, then `gt daemon restart`
    "#);
    let warned = town.gt(["status"]).stdout;
    for key in ["exec.command", "rigs.shop.gates", "lanes.mian"] {
        assert!(warned.contains(&format!("`{key}` does nothing yet")), "{warned}");
    }
}

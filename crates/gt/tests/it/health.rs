//! `gt doctor`, `gt activity`, and stores that are not what they should be. // SPEC T6, B7

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::town::{Town, session, snapshot};

#[test]
fn a_healthy_town_says_so() {
    let town = Town::with_rig();
    town.gt(["create", "work", "--rig", "shop"]).success();
    let as_json = town.gt(["doctor", "--json"]).json();
    let checks: Vec<&str> = as_json.as_array().unwrap().iter().filter_map(|row| row["check"].as_str()).collect();
    assert_eq!(checks, ["config", "store", "readiness", "daemon", "rig", "git", "tmux", "agent", "disk"]);
    snapshot!(town.gt(["doctor"]).success(), @r"
    $ gt doctor
    ✓ config     [TOWN]/town.toml is fine
    ✓ store      [TOWN]/.gt/town.db is sound: 1 bead, schema [N]
    ✓ readiness  what is stored is what follows from the dependencies
    ✓ daemon     none runs, and nothing is scheduled
    ✓ rig        shop is at [TOWN]/shop
    ✓ git        [VERSION]
    ? tmux [DEPENDS ON THE MACHINE]
    ? agent [DEPENDS ON THE MACHINE]
    ? disk [DEPENDS ON THE MACHINE]
    ");
}

#[test]
fn an_agent_of_the_user_s_own_is_looked_for_and_not_started() {
    let town = Town::new();
    let program = town.path("own-agent").display().to_string();
    town.write("own-agent", "#!/bin/sh\ntouch \"$0.started\"\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
    town.gt(["config", "set", "agents.own.command", &format!("[\"{program}\"]")]).success();
    town.gt(["config", "set", "default_agent", "own"]).success();
    let healthy = town.gt(["doctor"]);
    assert!(!town.path("own-agent.started").exists(), "it was started");
    assert!(healthy.stdout.contains(&format!("own: {program}")), "{healthy}");
    fs::remove_file(&program).expect("it is ours");
    let missing = town.gt(["doctor"]);
    assert!(missing.stdout.contains(&format!("the default agent own needs `{program}`")), "{missing}");
}

#[test]
fn agents_elsewhere_without_a_program_are_a_finding() {
    let town = Town::new();
    town.gt(["config", "set", "runtime", "exec"]).success();
    let unset = town.gt(["doctor"]);
    let wanted = "✗ exec       `runtime` is \"exec\", and no program is set that runs agents: none can start\n    \
                  → name it with `gt config set exec.command '[\"./my-host\"]'`";
    assert!(unset.code == 1 && unset.stdout.contains(wanted), "{unset}");
    town.gt(["config", "set", "exec.command", r#"["./my-host"]"#]).success();
    let missing = town.gt(["doctor"]);
    let wanted = "✗ exec       `exec.command` names `./my-host`, which is no program that can be run: no agent can start\n    \
                  → put it there, or name another with `gt config set exec.command '[\"./my-host\"]'`";
    assert!(missing.code == 1 && missing.stdout.contains(wanted), "{missing}");
    town.gt(["config", "unset", "runtime"]).success();
    let unused = town.gt(["doctor"]);
    assert!(unused.code == 0 && unused.stdout.contains("! exec       `exec.command` names `./my-host`"), "{unused}");
    town.gt(["config", "set", "runtime", "exec"]).success();
    let program = town.write("my-host", "#!/bin/sh\n");
    assert_eq!(town.gt(["doctor"]).code, 1, "a file that nobody may run is none");
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let set = town.gt(["doctor"]);
    assert!(set.code == 0 && !set.stdout.contains("exec "), "{set}");
}

#[test]
fn a_broken_config_is_a_finding_with_its_line() {
    let town = Town::new();
    town.write("town.toml", "[scheduler]\nmax_polecats = \"many\"\n");
    let wrong = town.gt(["doctor"]);
    town.write("town.toml", "[scheduler\n");
    let broken = town.gt(["doctor"]);
    fs::remove_file(town.path("town.toml")).unwrap();
    let missing = town.gt(["doctor"]);
    assert_eq!((wrong.code, broken.code, missing.code), (1, 1, 0));
    snapshot!(session([wrong, broken, missing]), @r#"
    $ gt doctor
    ✗ config     [TOWN]/town.toml: line 2: `scheduler.max_polecats` cannot be `"many"`: it must be a whole number from -1 to 1000000; the last good config stays in force
        → `gt config unset scheduler.max_polecats` returns it to the default, `-1`
    ✓ store      [TOWN]/.gt/town.db is sound: 0 beads, schema [N]
    ✓ readiness  what is stored is what follows from the dependencies
    ✓ daemon     none runs, and nothing is scheduled
    ✓ git        [VERSION]
    ? tmux [DEPENDS ON THE MACHINE]
    ? agent [DEPENDS ON THE MACHINE]
    ? disk [DEPENDS ON THE MACHINE]
    [exit 1]
    $ gt doctor
    ✗ config     [TOWN]/town.toml: line 1, column 11: unclosed table, expected `]` in `[scheduler`; the last good config stays in force
        → mend line 1 of [TOWN]/town.toml in an editor
    ✓ store      [TOWN]/.gt/town.db is sound: 0 beads, schema [N]
    ✓ readiness  what is stored is what follows from the dependencies
    ✓ daemon     none runs, and nothing is scheduled
    ✓ git        [VERSION]
    ? tmux [DEPENDS ON THE MACHINE]
    ? agent [DEPENDS ON THE MACHINE]
    ? disk [DEPENDS ON THE MACHINE]
    [exit 1]
    $ gt doctor
    ! config     [TOWN]/town.toml is missing; the last good config stays in force
        → bring it back, or let `gt init` write the last good one
    ✓ store      [TOWN]/.gt/town.db is sound: 0 beads, schema [N]
    ✓ readiness  what is stored is what follows from the dependencies
    ✓ daemon     none runs, and nothing is scheduled
    ✓ git        [VERSION]
    ? tmux [DEPENDS ON THE MACHINE]
    ? agent [DEPENDS ON THE MACHINE]
    ? disk [DEPENDS ON THE MACHINE]
    "#);
}

#[test]
fn tampered_readiness_is_found_and_mended() {
    let town = Town::holding(&[
        r#"{"id":"gt-a1","title":"A"}"#,
        r#"{"id":"gt-b2","title":"B","dependencies":[{"depends_on_id":"gt-a1","type":"blocks"}]}"#,
    ]);
    let store = rusqlite::Connection::open(town.store()).unwrap();
    store.execute("UPDATE bead SET standing = 'ready', holding = 0 WHERE id = 'gt-b2'", []).unwrap();
    drop(store);
    let answers = [
        town.gt(["ready"]),
        town.gt(["doctor"]),
        town.gt(["doctor", "--fix"]),
        town.gt(["doctor"]),
        town.gt(["ready"]),
    ];
    assert_eq!(answers.each_ref().map(|answer| answer.code), [0, 1, 0, 0, 0]);
    snapshot!(session(answers), @r"
    $ gt ready
    ○ gt-a1  P2  task  A
    ○ gt-b2  P2  task  B
    $ gt doctor
    ✓ config     [TOWN]/town.toml is fine
    ✓ store      [TOWN]/.gt/town.db is sound: 2 beads, schema [N]
    ✗ readiness  wrong for 1 bead: gt-b2 is stored as ready, and should be blocked
        → work it out anew with `gt doctor --fix`
    ✓ daemon     none runs, and nothing is scheduled
    ✓ rig        shop is at [TOWN]/shop
    ✓ git        [VERSION]
    ? tmux [DEPENDS ON THE MACHINE]
    ? agent [DEPENDS ON THE MACHINE]
    ? disk [DEPENDS ON THE MACHINE]
    [exit 1]
    $ gt doctor --fix
    ✓ config     [TOWN]/town.toml is fine
    ✓ store      [TOWN]/.gt/town.db is sound: 2 beads, schema [N]
    ✓ readiness  mended: worked out anew for 1 bead
    ✓ daemon     none runs, and nothing is scheduled
    ✓ rig        shop is at [TOWN]/shop
    ✓ git        [VERSION]
    ? tmux [DEPENDS ON THE MACHINE]
    ? agent [DEPENDS ON THE MACHINE]
    ? disk [DEPENDS ON THE MACHINE]
    $ gt doctor
    ✓ config     [TOWN]/town.toml is fine
    ✓ store      [TOWN]/.gt/town.db is sound: 2 beads, schema [N]
    ✓ readiness  what is stored is what follows from the dependencies
    ✓ daemon     none runs, and nothing is scheduled
    ✓ rig        shop is at [TOWN]/shop
    ✓ git        [VERSION]
    ? tmux [DEPENDS ON THE MACHINE]
    ? agent [DEPENDS ON THE MACHINE]
    ? disk [DEPENDS ON THE MACHINE]
    $ gt ready
    ○ gt-a1  P2  task  A
    ");
}

#[test]
fn a_rig_whose_repository_is_gone_is_a_finding() {
    let town = Town::with_rig();
    fs::remove_dir_all(town.path("shop")).unwrap();
    let answer = town.gt(["doctor"]);
    assert_eq!(answer.code, 1);
    snapshot!(answer, @r"
    $ gt doctor
    ✓ config     [TOWN]/town.toml is fine
    ✓ store      [TOWN]/.gt/town.db is sound: 0 beads, schema [N]
    ✓ readiness  what is stored is what follows from the dependencies
    ✓ daemon     none runs, and nothing is scheduled
    ✗ rig        shop: no git repository at [TOWN]/shop
        → bring the repository back, or take the rig off with `gt rig remove shop`
    ✓ git        [VERSION]
    ? tmux [DEPENDS ON THE MACHINE]
    ? agent [DEPENDS ON THE MACHINE]
    ? disk [DEPENDS ON THE MACHINE]
    [exit 1]
    ");
}

#[test]
fn without_git_the_remedy_is_git() {
    let town = Town::with_rig();
    let answer = town.call(["doctor"]).env("PATH", "/nowhere").run();
    assert!(answer.stdout.contains("✗ rig        shop: git is not installed, or not on the PATH\n    → install git\n"));
    assert_eq!(answer.code, 1, "{answer}");
}

#[test]
fn a_store_of_a_newer_schema_is_left_alone() {
    let town = Town::with_rig();
    rusqlite::Connection::open(town.store()).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(town.store()).unwrap();
    let answers = [town.gt(["ready"]), town.gt(["create", "x"]), town.gt(["ready", "--json"]), town.gt(["doctor"])];
    assert_eq!(answers.each_ref().map(|answer| answer.code), [4, 4, 4, 1]);
    assert_eq!(fs::read(town.store()).unwrap(), before);
    snapshot!(session(answers), @r#"
    $ gt ready
    ! error: the store [TOWN]/.gt/town.db was written by a newer gt (schema 99; this one knows [N])
    ! hint: use the newer gt that wrote it; nothing was changed
    [exit 4]
    $ gt create x
    ! error: the store [TOWN]/.gt/town.db was written by a newer gt (schema 99; this one knows [N])
    ! hint: use the newer gt that wrote it; nothing was changed
    [exit 4]
    $ gt ready --json
    ! {"error":{"code":"unreachable","hint":"use the newer gt that wrote it; nothing was changed","message":"the store [TOWN]/.gt/town.db was written by a newer gt (schema 99; this one knows [N])"}}
    [exit 4]
    $ gt doctor
    ✓ config     [TOWN]/town.toml is fine
    ✗ store      the store [TOWN]/.gt/town.db was written by a newer gt (schema 99; this one knows [N])
        → use the newer gt that wrote it
    ✓ git        [VERSION]
    ? tmux [DEPENDS ON THE MACHINE]
    ? agent [DEPENDS ON THE MACHINE]
    ? disk [DEPENDS ON THE MACHINE]
    [exit 1]
    "#);
}

#[test]
fn a_store_that_is_garbage_or_a_strangers_is_never_touched() {
    let town = Town::new();
    let garbage = "this is no database, whatever its name says. ".repeat(200);
    fs::write(town.store(), &garbage).unwrap();
    let answers = [town.gt(["ready"]), town.gt(["create", "x", "--json"]), town.gt(["init"]), town.gt(["doctor"])];
    assert_eq!(fs::read_to_string(town.store()).unwrap(), garbage);
    snapshot!(session(answers), @r#"
    $ gt ready
    ! error: [TOWN]/.gt/town.db is not a town's store
    ! hint: move that file away, then `gt init` makes a fresh store
    [exit 4]
    $ gt create x --json
    ! {"error":{"code":"unreachable","hint":"move that file away, then `gt init` makes a fresh store","message":"[TOWN]/.gt/town.db is not a town's store"}}
    [exit 4]
    $ gt init
    ! error: [TOWN]/.gt/town.db is not a town's store
    ! hint: move that file away, then `gt init` makes a fresh store
    [exit 4]
    $ gt doctor
    ✓ config     [TOWN]/town.toml is fine
    ✗ store      [TOWN]/.gt/town.db is not a town's store
        → move that file away, then bring back a copy or `gt init`
    ✓ git        [VERSION]
    ? tmux [DEPENDS ON THE MACHINE]
    ? agent [DEPENDS ON THE MACHINE]
    ? disk [DEPENDS ON THE MACHINE]
    [exit 1]
    "#);
    fs::remove_file(town.store()).unwrap();
    let stranger = rusqlite::Connection::open(town.store()).unwrap();
    stranger.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1);").unwrap();
    drop(stranger);
    snapshot!(town.gt(["create", "x"]), @r"
    $ gt create x
    ! error: [TOWN]/.gt/town.db is not a town's store
    ! hint: move that file away, then `gt init` makes a fresh store
    [exit 4]
    ");
    let stranger = rusqlite::Connection::open(town.store()).unwrap();
    let n_tables: i64 = stranger.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
    assert_eq!(n_tables, 1);
}

#[test]
fn a_store_that_is_gone_is_not_made_anew_in_silence() {
    let town = Town::with_rig();
    fs::remove_file(town.store()).unwrap();
    let answers = [town.gt(["ready"]), town.gt(["create", "x"]), town.gt(["ready", "--json"]), town.gt(["doctor"])];
    assert!(!town.store().exists());
    snapshot!(session(answers), @r#"
    $ gt ready
    ! error: the town [TOWN] has lost its store
    ! hint: bring back [TOWN]/.gt/town.db, or start empty with `gt init [TOWN]`
    [exit 4]
    $ gt create x
    ! error: the town [TOWN] has lost its store
    ! hint: bring back [TOWN]/.gt/town.db, or start empty with `gt init [TOWN]`
    [exit 4]
    $ gt ready --json
    ! {"error":{"code":"unreachable","hint":"bring back [TOWN]/.gt/town.db, or start empty with `gt init [TOWN]`","message":"the town [TOWN] has lost its store"}}
    [exit 4]
    $ gt doctor
    ✓ config     [TOWN]/town.toml is fine
    ✗ store      the town [TOWN] has lost its store
        → bring back a copy, or start with an empty one: `gt init`
    ✓ git        [VERSION]
    ? tmux [DEPENDS ON THE MACHINE]
    ? agent [DEPENDS ON THE MACHINE]
    ? disk [DEPENDS ON THE MACHINE]
    [exit 1]
    "#);
}

#[test]
fn a_damaged_page_is_found() {
    let town = Town::with_rig();
    for n in 0..40 {
        town.create(&[&format!("bead {n}"), "--description", &"words ".repeat(200)]);
    }
    let mut bytes = fs::read(town.store()).unwrap();
    let (start, end) = (bytes.len() / 2, bytes.len() / 2 + 6000);
    bytes[start..end].fill(0x5a);
    fs::write(town.store(), bytes).unwrap();
    let answer = town.gt(["doctor"]);
    assert_eq!(answer.code, 1, "{answer}");
    assert!(answer.stdout.contains("✗ store"), "{answer}");
}

#[test]
fn the_log_is_read_from_where_one_left_off() {
    let town = Town::new();
    for title in ["one", "two", "three"] {
        town.gt(["create", title]).success();
    }
    let answers = [
        town.gt(["activity"]),
        town.gt(["activity", "--since", "2"]),
        town.gt(["activity", "--since", "99"]),
        town.gt(["activity", "--since", "3", "--json"]),
    ];
    snapshot!(session(answers), @r#"
    $ gt activity
         1  [TIME]  town.created      -              tester
         2  [TIME]  bead.created      hq-id01        tester  {"priority":2,"title":"one","type":"task"}
         3  [TIME]  bead.created      hq-id02        tester  {"priority":2,"title":"two","type":"task"}
         4  [TIME]  bead.created      hq-id03        tester  {"priority":2,"title":"three","type":"task"}
    $ gt activity --since 2
         3  [TIME]  bead.created      hq-id02        tester  {"priority":2,"title":"two","type":"task"}
         4  [TIME]  bead.created      hq-id03        tester  {"priority":2,"title":"three","type":"task"}
    $ gt activity --since 99
    $ gt activity --since 3 --json
    {"seq":4,"ts":"[TIME]","type":"bead.created","actor":"tester","bead":"hq-id03","run":null,"data":{"priority":2,"title":"three","type":"task"}}
    "#);
}

#[test]
fn times_of_any_length_leave_the_columns_of_the_log_where_they_are() {
    let town = Town::new();
    town.gt(["create", "one"]).success();
    let store = rusqlite::Connection::open(town.store()).unwrap();
    for (seq, micros) in [(1, 0), (2, 120_000)] {
        store.execute("UPDATE event SET ts = 1767323045000000 + ?2 WHERE seq = ?1", (seq, micros)).unwrap();
    }
    let log = town.gt(["activity"]).stdout;
    let places: Vec<Option<usize>> =
        log.lines().zip(["town.created", "bead.created"]).map(|(line, kind)| line.find(kind)).collect();
    assert!(places[0].is_some() && places[0] == places[1], "{log}");
}

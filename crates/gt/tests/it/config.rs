//! `gt config`: typed keys in a file that people edit. // SPEC T5

use crate::town::{Town, session, snapshot};

#[path = "config/ineffective.rs"]
mod ineffective;
#[path = "config/last_good.rs"]
mod last_good;

#[test]
fn set_get_unset_and_back() {
    let town = Town::with_rig();
    let fresh = town.read("town.toml");
    let answers = [
        town.gt(["config", "get", "scheduler.max_polecats"]),
        town.gt(["config", "set", "scheduler.max_polecats", "3"]),
        town.gt(["config", "get", "scheduler.max_polecats"]),
        town.gt(["config", "get", "scheduler.max_polecats", "--json"]),
        town.gt(["config", "set", "rigs.shop.gates", "[\"cargo test\"]"]),
        town.gt(["config", "unset", "rigs.shop.gates"]),
        town.gt(["config", "unset", "scheduler.max_polecats"]),
        town.gt(["config", "unset", "scheduler.max_polecats"]),
        town.gt(["config", "get", "runtime"]),
    ];
    snapshot!(session(answers), @r#"
    $ gt config get scheduler.max_polecats
    -1
    $ gt config set scheduler.max_polecats 3
    Set scheduler.max_polecats = 3
    $ gt config get scheduler.max_polecats
    3
    $ gt config get scheduler.max_polecats --json
    {"help":"polecats alive at once; -1 and 0: no cap, work starts at once","key":"scheduler.max_polecats","source":"file","value":3}
    $ gt config set rigs.shop.gates '["cargo test"]'
    Set rigs.shop.gates = ["cargo test"]
    $ gt config unset rigs.shop.gates
    Unset rigs.shop.gates; its default counts again.
    $ gt config unset scheduler.max_polecats
    Unset scheduler.max_polecats; its default counts again.
    $ gt config unset scheduler.max_polecats
    scheduler.max_polecats was not set; nothing was changed.
    $ gt config get runtime
    "#);
    assert_eq!(town.read("town.toml"), fresh);
}

#[test]
fn peoples_comments_stay() {
    let town = Town::new();
    town.write("town.toml", "# ours\n[scheduler] # the heart\nmax_polecats = 2 # two is company\n\n# the end\n");
    town.gt(["config", "set", "scheduler.max_polecats", "5"]).success();
    town.gt(["config", "set", "scheduler.batch_size", "1"]).success();
    town.gt(["config", "set", "default_agent", "codex"]).success();
    snapshot!(town.read("town.toml"), @r#"
    # ours
    default_agent = "codex"

    [scheduler] # the heart
    max_polecats = 5 # two is company
    batch_size = 1

    # the end
    "#);
}

#[test]
fn a_change_is_an_event_and_setting_the_same_again_is_fine() {
    let town = Town::new();
    town.gt(["config", "set", "scheduler.max_polecats", "3"]).success();
    town.gt(["config", "unset", "scheduler.max_polecats"]).success();
    town.gt(["config", "unset", "scheduler.max_polecats"]).success();
    snapshot!(town.gt(["activity", "--since", "1"]), @r#"
    $ gt activity --since 1
         2  [TIME]  config.changed    -              tester  {"key":"scheduler.max_polecats"}
         3  [TIME]  config.changed    -              tester  {"key":"scheduler.max_polecats"}
    "#);
}

#[test]
fn unknown_keys_and_bad_values_are_refused_with_what_would_be_valid() {
    let town = Town::new();
    snapshot!(town.refused(["config", "get", "scheduler.max_polecat"]), @r"
    $ gt config get scheduler.max_polecat
    ! error: unknown key `scheduler.max_polecat`
    ! hint: did you mean `scheduler.max_polecats`? `gt config list` shows all keys
    [exit 1]
    ");
    snapshot!(town.refused(["config", "set", "schedular.max_polecats", "3"]), @r"
    $ gt config set schedular.max_polecats 3
    ! error: unknown key `schedular.max_polecats`
    ! hint: did you mean `scheduler.max_polecats`? `gt config list` shows all keys
    [exit 1]
    ");
    snapshot!(town.refused(["config", "unset", "nothing.like.it"]), @r"
    $ gt config unset nothing.like.it
    ! error: unknown key `nothing.like.it`
    ! hint: `gt config list` shows all keys
    [exit 1]
    ");
    snapshot!(town.refused(["config", "get", ""]), @r#"
    $ gt config get ''
    ! error: `` is not a key: it is empty
    ! hint: join names with dots and quote a name that has some, as in `rigs."a.b".gates`
    [exit 1]
    "#);
    snapshot!(town.refused(["config", "set", "scheduler.max_polecats", "many"]), @r"
    $ gt config set scheduler.max_polecats many
    ! error: `scheduler.max_polecats` cannot be `many`: it must be a whole number from -1 to 1000000
    ! hint: `gt config unset scheduler.max_polecats` returns it to the default, `-1`
    [exit 1]
    ");
    snapshot!(town.refused(["config", "set", "scheduler.max_polecats", "-7"]), @r"
    $ gt config set scheduler.max_polecats -7
    ! error: `scheduler.max_polecats` cannot be `-7`: it must be a whole number from -1 to 1000000
    ! hint: `gt config unset scheduler.max_polecats` returns it to the default, `-1`
    [exit 1]
    ");
    snapshot!(town.refused(["config", "set", "scheduler.spawn_delay", "soon"]), @r"
    $ gt config set scheduler.spawn_delay soon
    ! error: `scheduler.spawn_delay` cannot be `soon`: it must be a duration with its unit, such as `0s`, `800ms`, `5m` or `1h 30m`, not a bare number
    ! hint: `gt config unset scheduler.spawn_delay` returns it to the default, `0s`
    [exit 1]
    ");
    snapshot!(town.refused(["config", "set", "runtime", "tmx"]), @r"
    $ gt config set runtime tmx
    ! error: `runtime` cannot be `tmx`: it must be `tmux`, `process` or `exec`
    ! hint: `gt config unset runtime` leaves it out; `gt config list` says what each key is for
    [exit 1]
    ");
    snapshot!(town.refused(["config", "set", "rigs.shop.isolation", "some"]), @r"
    $ gt config set rigs.shop.isolation some
    ! error: `rigs.shop.isolation` cannot be `some`: it must be `worktree` or `none`
    ! hint: `gt config unset rigs.shop.isolation` returns it to the default, `worktree`
    [exit 1]
    ");
    snapshot!(town.refused(["config", "set", "rigs.shop.gates", "[1,"]), @r#"
    $ gt config set rigs.shop.gates [1,
    ! error: `rigs.shop.gates` cannot be `[1,`: it must be a list of texts, such as `["cmd a", "cmd b"]`
    ! hint: `gt config unset rigs.shop.gates` returns it to the default, `[]`
    [exit 1]
    "#);
}

#[test]
fn a_broken_file_is_named_with_its_line_and_never_overwritten() {
    let town = Town::new();
    let broken = "[scheduler]\nmax_polecats = = 3\n";
    town.write("town.toml", broken);
    let answers = [
        town.gt(["config", "get", "scheduler.max_polecats"]),
        town.gt(["config", "set", "scheduler.max_polecats", "3"]),
        town.gt(["config", "unset", "scheduler.max_polecats"]),
        town.gt(["create", "work goes on"]),
    ];
    assert_eq!(town.read("town.toml"), broken);
    snapshot!(session(answers), @"
    $ gt config get scheduler.max_polecats
    -1
    ! warning: [TOWN]/town.toml: line 2, column 16: extra `=`, expected nothing in `max_polecats = = 3`; the last good config stays in force
    ! hint: mend line 2 of [TOWN]/town.toml in an editor
    $ gt config set scheduler.max_polecats 3
    ! error: [TOWN]/town.toml: line 2, column 16: extra `=`, expected nothing in `max_polecats = = 3`
    ! hint: mend line 2 of [TOWN]/town.toml in an editor
    [exit 1]
    $ gt config unset scheduler.max_polecats
    ! error: [TOWN]/town.toml: line 2, column 16: extra `=`, expected nothing in `max_polecats = = 3`
    ! hint: mend line 2 of [TOWN]/town.toml in an editor
    [exit 1]
    $ gt create 'work goes on'
    Created hq-id01 (a town bead): work goes on
    ");
}

#[test]
fn a_wrong_key_or_value_in_the_file_is_named_with_its_line() {
    let town = Town::new();
    town.write("town.toml", "[scheduler]\nmax_polecat = 3\n");
    let unknown = town.gt(["config", "get", "runtime"]);
    town.write("town.toml", "[scheduler]\nmax_polecats = \"three\"\n");
    let bad = town.gt(["config", "get", "runtime"]);
    town.write("town.toml", b"default_agent = \"\xff\"\n");
    snapshot!(session([unknown, bad, town.gt(["config", "get", "runtime"])]), @r#"
    $ gt config get runtime

    ! warning: [TOWN]/town.toml: line 2: unknown key `scheduler.max_polecat`; the last good config stays in force
    ! hint: did you mean `scheduler.max_polecats`? `gt config list` shows all keys
    $ gt config get runtime

    ! warning: [TOWN]/town.toml: line 2: `scheduler.max_polecats` cannot be `"three"`: it must be a whole number from -1 to 1000000; the last good config stays in force
    ! hint: `gt config unset scheduler.max_polecats` returns it to the default, `-1`
    $ gt config get runtime

    ! warning: cannot read [TOWN]/town.toml: stream did not contain valid UTF-8; the last good config stays in force
    ! hint: see that [TOWN]/town.toml is a file of UTF-8 text that you may read
    "#);
}

#[test]
fn every_setting_is_listed_with_value_and_meaning() {
    let town = Town::new();
    town.gt(["config", "set", "lanes.main", "2"]).success();
    let listed = town.gt(["config", "list", "--json"]).json();
    let rows = listed.as_array().unwrap();
    assert!(rows.iter().all(|row| row["help"].as_str().is_some_and(|help| !help.is_empty())));
    let set: Vec<&str> =
        rows.iter().filter(|row| row["source"] == "file").filter_map(|row| row["key"].as_str()).collect();
    assert_eq!(set, ["lanes.main"]);
    snapshot!("config_list", town.gt(["config", "list"]));
}

#[test]
fn config_works_while_the_store_is_gone_as_far_as_it_can() {
    let town = Town::new();
    std::fs::remove_file(town.store()).unwrap();
    let before = town.read("town.toml");
    let answers = [
        town.gt(["config", "get", "scheduler.max_polecats"]),
        town.gt(["config", "set", "scheduler.max_polecats", "3"]),
    ];
    assert_eq!(town.read("town.toml"), before, "a refused change was made");
    snapshot!(session(answers), @r"
    $ gt config get scheduler.max_polecats
    -1
    $ gt config set scheduler.max_polecats 3
    ! error: the town [TOWN] has lost its store
    ! hint: bring back [TOWN]/.gt/town.db, or start empty with `gt init [TOWN]`
    [exit 4]
    ");
}

//! `gt init` and finding the town. // SPEC T1, T2

use std::fs;

use crate::town::{Town, session, snapshot};

#[test]
fn a_fresh_town_works_at_once_and_a_second_init_changes_nothing() {
    let town = Town::unmade();
    let first = town.gt(["init"]);
    let before = town.state();
    snapshot!(session([first, town.gt(["init"]), town.gt(["init", "--json"]), town.gt(["ready"]), town.gt(["bead", "list"]), town.gt(["bead", "blocked"]), town.gt(["rig", "list"])]), @r#"
    $ gt init
    Made a town at [TOWN].
    Next: `gt rig add NAME PATH` registers a repository, `gt create "…"` writes down work.
    $ gt init
    There is already a town at [TOWN]; nothing was changed.
    $ gt init --json
    {"outcome":"already-there","town":"[TOWN]"}
    $ gt ready
    Nothing is ready. `gt bead blocked` shows what waits for what.
    $ gt bead list
    No beads match. `gt create "…"` writes one down, `--all` shows finished ones too.
    $ gt bead blocked
    Nothing is blocked.
    $ gt rig list
    No rigs yet. `gt rig add NAME PATH` registers one.
    "#);
    assert_eq!(before, town.state());
}

#[test]
fn init_makes_the_directory_it_is_given() {
    let town = Town::unmade();
    snapshot!(session([town.gt(["init", "a/b"]), town.gt(["--town", "a/b", "bead", "list", "--json"])]), @r#"
    $ gt init a/b
    Made a town at [TOWN]/a/b.
    Next: `gt rig add NAME PATH` registers a repository, `gt create "…"` writes down work.
    $ gt --town a/b bead list --json
    []
    "#);
}

#[test]
fn init_cannot_make_a_town_in_a_file() {
    let town = Town::unmade();
    town.write("file", "");
    snapshot!(session([town.gt(["init", "file"]), town.gt(["init", "file/below"])]), @r"
    $ gt init file
    ! error: cannot make [TOWN]/file/.gt
    !   caused by: Not a directory (os error 20)
    ! hint: choose another place: there is a file already
    [exit 1]
    $ gt init file/below
    ! error: cannot make [TOWN]/file/below/.gt
    !   caused by: Not a directory (os error 20)
    ! hint: choose another place: there is a file already
    [exit 1]
    ");
}

#[test]
fn init_puts_back_what_is_missing_and_nothing_else() {
    let town = Town::with_rig();
    town.gt(["create", "stays", "--rig", "shop"]).success();
    let before = town.export();
    let fresh = town.read("town.toml");
    fs::remove_file(town.path("town.toml")).unwrap();
    let answer = town.gt(["init"]);
    assert_eq!(town.export(), before);
    assert_eq!(town.read("town.toml"), fresh);
    fs::remove_file(town.store()).unwrap();
    snapshot!(session([answer, town.gt(["init"]), town.gt(["bead", "list"]), town.gt(["init"])]), @r#"
    $ gt init
    Put back what was missing in the town at [TOWN].
    $ gt init
    Put back what was missing in the town at [TOWN].
    $ gt bead list
    No beads match. `gt create "…"` writes one down, `--all` shows finished ones too.
    $ gt init
    There is already a town at [TOWN]; nothing was changed.
    "#);
}

#[test]
fn a_town_inside_a_town_is_refused() {
    let town = Town::new();
    fs::create_dir(town.path("below")).unwrap();
    let answer = town.gt(["init", "below"]);
    assert!(fs::read_dir(town.path("below")).unwrap().next().is_none());
    snapshot!(answer, @r"
    $ gt init below
    ! error: [TOWN]/below lies inside the town [TOWN]
    ! hint: use that town, or choose a directory outside it
    [exit 1]
    ");
}

#[test]
fn inside_a_town_is_where_a_path_leads_not_how_it_is_written() {
    let town = Town::new();
    fs::create_dir(town.path("below")).unwrap();
    std::os::unix::fs::symlink(town.path("below"), town.home().join("link")).unwrap();
    let answers = [
        town.gt(["init", "../other"]),
        town.gt(["init", "gone/../../third"]),
        town.gt(["init", "../link/deeper"]),
        town.gt(["--town", "below/../../other", "init", "../town"]),
        town.gt(["--town", "below/../../none", "ready"]),
    ];
    snapshot!(session(answers), @r#"
    $ gt init ../other
    Made a town at [HOME]/other.
    Next: `gt rig add NAME PATH` registers a repository, `gt create "…"` writes down work.
    $ gt init gone/../../third
    Made a town at [HOME]/third.
    Next: `gt rig add NAME PATH` registers a repository, `gt create "…"` writes down work.
    $ gt init ../link/deeper
    ! error: [TOWN]/below/deeper lies inside the town [TOWN]
    ! hint: use that town, or choose a directory outside it
    [exit 1]
    $ gt --town below/../../other init ../town
    There is already a town at [TOWN]; nothing was changed.
    $ gt --town below/../../none ready
    ! error: there is no town at [HOME]/none
    ! hint: make one with `gt init [HOME]/none`
    [exit 3]
    "#);
}

#[test]
fn a_named_town_needs_no_directory_to_stand_in() {
    let town = Town::with_rig();
    town.create(&["work"]);
    fs::create_dir(town.path("gone")).unwrap();
    let script = "cd gone && rmdir ../gone && exec \"$0\" --town \"$1\" \"$2\" more";
    for verb in ["create", "ready"] {
        let script = if verb == "ready" { script.trim_end_matches(" more") } else { script };
        fs::create_dir_all(town.path("gone")).unwrap();
        let call = ["-c", script, crate::town::GT, &town.root().display().to_string(), verb];
        let output = town.command("sh").args(call).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_town_is_found_from_below_by_name_and_by_environment() {
    let town = Town::with_rig();
    town.gt(["create", "here"]).success();
    let (outside, below) = (town.home(), town.path("shop"));
    let titles = |answer: crate::town::Answer| answer.json()[0]["title"].clone();
    assert_eq!(titles(town.call(["ready", "--json"]).at(&below).run()), "here");
    assert_eq!(titles(town.call(["--town", "town", "ready", "--json"]).at(&outside).run()), "here");
    assert_eq!(titles(town.call(["ready", "--json", "--town=town"]).at(&outside).run()), "here");
    assert_eq!(titles(town.call(["ready", "--json"]).at(&outside).env("GT_TOWN", "town").run()), "here");
    let both = town.call(["ready", "--json", "--town", "town"]).at(&outside).env("GT_TOWN", "elsewhere").run();
    assert_eq!(titles(both), "here");
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let town = Town::with_rig();
    let answer = town.call(["create", "written"]).env("GT_TOWN", "").env("GT_RIG", "").run();
    let nobody = town.call(["create", "by the user"]).env("GT_ACTOR", "").env("USER", "ada").run();
    snapshot!(session([answer, nobody, town.gt(["activity", "--since", "2"])]), @r#"
    $ gt create written
    Created hq-id01 (a town bead): written
    $ gt create 'by the user'
    Created hq-id02 (a town bead): by the user
    $ gt activity --since 2
         3  [TIME]  bead.created      hq-id01        tester  {"priority":2,"title":"written","type":"task"}
         4  [TIME]  bead.created      hq-id02        ada  {"priority":2,"title":"by the user","type":"task"}
    "#);
}

#[test]
fn outside_a_town_one_sentence_says_what_to_do() {
    let town = Town::unmade();
    let wrong = town.call(["ready"]).env("GT_TOWN", "nowhere").run();
    let as_json = town.gt(["ready", "--json"]);
    as_json.assert_is_json_error();
    snapshot!(session([town.gt(["ready"]), as_json, town.gt(["--town", "nowhere", "create", "x"]), wrong, town.gt(["doctor"])]), @r#"
    $ gt ready
    ! error: [TOWN] is not in a town
    ! hint: make one here with `gt init`, or name one with `--town DIR` or GT_TOWN
    [exit 3]
    $ gt ready --json
    ! {"error":{"code":"not-found","hint":"make one here with `gt init`, or name one with `--town DIR` or GT_TOWN","message":"[TOWN] is not in a town"}}
    [exit 3]
    $ gt --town nowhere create x
    ! error: there is no town at [TOWN]/nowhere
    ! hint: make one with `gt init [TOWN]/nowhere`
    [exit 3]
    $ gt ready
    ! error: there is no town at [TOWN]/nowhere
    ! hint: make one with `gt init [TOWN]/nowhere`
    [exit 3]
    $ gt doctor
    ! error: [TOWN] is not in a town
    ! hint: make one here with `gt init`, or name one with `--town DIR` or GT_TOWN
    [exit 3]
    "#);
    assert!(fs::read_dir(town.root()).unwrap().next().is_none(), "something was made");
}

#[test]
fn a_directory_that_is_gone_is_named_as_such() {
    let town = Town::unmade();
    let gone = town.path("gone");
    fs::create_dir(&gone).unwrap();
    let script = "cd gone && rmdir ../gone && exec \"$0\" ready";
    let output = town.command("sh").args(["-c", script, crate::town::GT]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    snapshot!(String::from_utf8(output.stderr).unwrap(), @r"
    error: the current directory cannot be read: No such file or directory (os error 2)
    hint: go to a directory that exists, or name the town with `--town DIR`
    ");
}

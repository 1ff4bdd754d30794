//! `gt rig`: registering repositories, and everything that cannot be one. // SPEC T3, T4

use std::fs;

use crate::town::{Town, session, snapshot};

#[test]
fn a_local_repository_from_add_to_remove() {
    let town = Town::new();
    town.repository("shop");
    let answers = [
        town.gt(["rig", "add", "shop", "shop", "--prefix", "gt"]),
        town.gt(["rig", "list"]),
        town.gt(["rig", "show", "shop"]),
        town.gt(["rig", "park", "shop"]),
        town.gt(["rig", "park", "shop"]),
        town.gt(["rig", "list"]),
        town.gt(["rig", "unpark", "shop"]),
        town.gt(["rig", "unpark", "shop"]),
        town.gt(["rig", "dock", "shop"]),
        town.gt(["rig", "undock", "shop"]),
        town.gt(["rig", "remove", "shop"]),
        town.gt(["rig", "list"]),
    ];
    assert!(town.path("shop/.git").exists());
    snapshot!(session(answers), @"
    $ gt rig add shop shop --prefix gt
    Registered rig shop: [TOWN]/shop, prefix gt, branch main.
    Merged work lands on branch main of [TOWN]/shop. It has no origin, so nothing is pushed.
    Agents run without permission prompts: claude may do all that you may. Change that with `agents.claude.command` (docs/agents.md).
    Claude Code must trust the town once: start `claude` in [TOWN] and confirm.
    $ gt rig list
    shop             gt       [TOWN]/shop
    $ gt rig show shop
    shop
      prefix  gt
      path    [TOWN]/shop
      branch  main
      push    merged work is not pushed
      state   active
    $ gt rig park shop
    Rig shop is parked.
    $ gt rig park shop
    Rig shop is parked already; nothing was changed.
    $ gt rig list
    shop             gt       [TOWN]/shop  parked
    $ gt rig unpark shop
    Rig shop is active.
    $ gt rig unpark shop
    Rig shop is active already; nothing was changed.
    $ gt rig dock shop
    Rig shop is docked.
    $ gt rig undock shop
    Rig shop is active.
    $ gt rig remove shop
    Took rig shop off the registry; its repository and beads stay.
    $ gt rig list
    No rigs yet. `gt rig add NAME PATH` registers one.
    ");
}

#[test]
fn every_change_of_a_rig_is_an_event_and_a_repetition_is_none() {
    let town = Town::with_rig();
    for verb in ["park", "park", "unpark", "dock", "undock", "remove"] {
        town.gt(["rig", verb, "shop"]).success();
    }
    let types: Vec<String> = town.events().iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
    snapshot!(types.join(" "), @r"
    town.created rig.added rig.parked rig.unparked rig.docked rig.undocked rig.removed
    ");
}

#[test]
fn a_url_is_cloned_into_the_town() {
    let town = Town::new();
    let origin = town.repository("origin");
    let url = format!("file://{}", origin.display());
    let answers = [
        town.gt(["rig", "add", "shop", &url]),
        town.gt(["rig", "show", "shop"]),
        town.gt(["rig", "add", "lost", "file:///nowhere/at/all"]),
        town.gt(["rig", "list", "--json"]),
    ];
    assert!(town.path("rigs/shop/.git").exists());
    assert!(!town.path("rigs/lost").exists(), "a failed clone was left behind");
    snapshot!(session(answers), @r#"
    $ gt rig add shop file://[TOWN]/origin
    Registered rig shop: [TOWN]/rigs/shop, prefix shop, branch main.
    Merged work lands on branch main of [TOWN]/rigs/shop and is pushed to origin. Stop pushing with `gt config set rigs.shop.push false`.
    Agents run without permission prompts: claude may do all that you may. Change that with `agents.claude.command` (docs/agents.md).
    Claude Code must trust the town once: start `claude` in [TOWN] and confirm.
    $ gt rig show shop
    shop
      prefix  shop
      path    [TOWN]/rigs/shop
      url     file://[TOWN]/origin
      branch  main
      push    merged work is pushed to origin
      state   active
    $ gt rig add lost file:///nowhere/at/all
    ! error: git could not clone file:///nowhere/at/all: '/nowhere/at/all' does not appear to be a git repository
    ! hint: see that the address is right and that you may read it
    [exit 1]
    $ gt rig list --json
    [{"branch":"main","name":"shop","path":"[TOWN]/rigs/shop","prefix":"shop","push":true,"state":"active","url":"file://[TOWN]/origin"}]
    "#);
}

#[test]
fn a_prefix_is_derived_and_a_clash_is_refused() {
    let town = Town::new();
    town.repository("one");
    let answers = [
        town.gt(["rig", "add", "gastown", "one"]),
        town.gt(["rig", "add", "garage", "one"]),
        town.gt(["rig", "add", "garage", "one", "--prefix", "gar"]),
        town.gt(["rig", "add", "beads-rust", "one"]),
        town.gt(["rig", "add", "town", "one", "--prefix", "hq"]),
        town.gt(["rig", "add", "dashes", "one", "--prefix", "ga-x"]),
        town.gt(["rig", "list"]),
    ];
    snapshot!(session(answers), @"
    $ gt rig add gastown one
    Registered rig gastown: [TOWN]/one, prefix ga, branch main.
    Merged work lands on branch main of [TOWN]/one. It has no origin, so nothing is pushed.
    Agents run without permission prompts: claude may do all that you may. Change that with `agents.claude.command` (docs/agents.md).
    Claude Code must trust the town once: start `claude` in [TOWN] and confirm.
    $ gt rig add garage one
    ! error: the prefix `ga` is taken by rig `gastown`
    ! hint: choose another, as in `--prefix ga2`
    [exit 1]
    $ gt rig add garage one --prefix gar
    Registered rig garage: [TOWN]/one, prefix gar, branch main.
    Merged work lands on branch main of [TOWN]/one. It has no origin, so nothing is pushed.
    $ gt rig add beads-rust one
    Registered rig beads-rust: [TOWN]/one, prefix br, branch main.
    Merged work lands on branch main of [TOWN]/one. It has no origin, so nothing is pushed.
    $ gt rig add town one --prefix hq
    ! error: the prefix `hq` is taken by the town
    ! hint: choose another, as in `--prefix hq2`
    [exit 1]
    $ gt rig add dashes one --prefix ga-x
    Registered rig dashes: [TOWN]/one, prefix ga-x, branch main.
    Merged work lands on branch main of [TOWN]/one. It has no origin, so nothing is pushed.
    $ gt rig list
    beads-rust       br       [TOWN]/one
    dashes           ga-x     [TOWN]/one
    garage           gar      [TOWN]/one
    gastown          ga       [TOWN]/one
    ");
}

#[test]
fn what_is_no_repository_is_refused_with_the_way_on() {
    let town = Town::with_rig();
    fs::create_dir(town.path("plain")).unwrap();
    fs::create_dir(town.path("shop/inside")).unwrap();
    town.write("file", "");
    snapshot!(town.refused(["rig", "add", "x", "plain"]), @r"
    $ gt rig add x plain
    ! error: [TOWN]/plain is not a git repository
    ! hint: make it one with `git -C [TOWN]/plain init`, or give the top of a repository
    [exit 1]
    ");
    snapshot!(town.refused(["rig", "add", "x", "shop/inside"]), @r"
    $ gt rig add x shop/inside
    ! error: [TOWN]/shop/inside is only a part of the repository [TOWN]/shop
    ! hint: a rig is a whole repository: give [TOWN]/shop
    [exit 1]
    ");
    snapshot!(town.refused(["rig", "add", "x", "missing"]), @r"
    $ gt rig add x missing
    ! error: there is nothing at `missing`, and it is not a URL to clone from
    ! hint: give the path of a git repository, or a URL such as https://… or git@host:path
    [exit 3]
    ");
    snapshot!(town.refused(["rig", "add", "x", "file"]), @r"
    $ gt rig add x file
    ! error: [TOWN]/file is not a git repository
    ! hint: make it one with `git -C [TOWN]/file init`, or give the top of a repository
    [exit 1]
    ");
    snapshot!(town.refused(["rig", "add", "x", ""]), @r"
    $ gt rig add x ''
    ! error: there is nothing at ``, and it is not a URL to clone from
    ! hint: give the path of a git repository, or a URL such as https://… or git@host:path
    [exit 3]
    ");
}

#[test]
fn a_town_that_lies_in_a_repository_takes_only_its_top() {
    let town = Town::unmade();
    town.git(&["init", "--quiet", "."]);
    town.gt(["init"]).success();
    fs::create_dir(town.path("plain")).unwrap();
    snapshot!(town.refused(["rig", "add", "x", "plain"]), @r"
    $ gt rig add x plain
    ! error: [TOWN]/plain is only a part of the repository [TOWN]
    ! hint: a rig is a whole repository: give [TOWN]
    [exit 1]
    ");
    let status = town.command("git").args(["status", "--porcelain", "--ignored"]).output().unwrap();
    snapshot!(String::from_utf8(status.stdout).unwrap(), @r"
    ?? town.toml
    !! .gt/
    ");
}

#[test]
fn names_prefixes_and_branches_are_checked() {
    let town = Town::with_rig();
    snapshot!(town.refused(["rig", "add", "shop", "shop", "--prefix", "other"]), @r"
    $ gt rig add shop shop --prefix other
    ! error: there is already a rig `shop`
    ! hint: see it with `gt rig show shop`, or choose another name
    [exit 1]
    ");
    snapshot!(town.refused(["rig", "add", "a/b", "shop"]), @r"
    $ gt rig add a/b shop
    ! error: `a/b` is not a rig name: use up to 40 letters, digits, `-` and `_`, starting with a letter
    ! hint: choose another, as in `gt rig add my-rig PATH`
    [exit 1]
    ");
    snapshot!(town.refused(["rig", "add", "", "shop"]), @r"
    $ gt rig add '' shop
    ! error: `` is not a rig name: use up to 40 letters, digits, `-` and `_`, starting with a letter
    ! hint: choose another, as in `gt rig add my-rig PATH`
    [exit 1]
    ");
    snapshot!(town.refused(["rig", "add", "..", "shop"]), @r"
    $ gt rig add .. shop
    ! error: `..` is not a rig name: use up to 40 letters, digits, `-` and `_`, starting with a letter
    ! hint: choose another, as in `gt rig add my-rig PATH`
    [exit 1]
    ");
    snapshot!(town.refused(["rig", "add", "x", "shop", "--prefix", "A B"]), @r"
    $ gt rig add x shop --prefix 'A B'
    ! error: `A B` is not a prefix: use up to 20 lower-case letters, digits, `-` and `_`, starting with a letter and not ending with `-`
    ! hint: choose another, as in `--prefix gt`
    [exit 1]
    ");
    snapshot!(town.refused(["rig", "add", "x", "shop", "--prefix", ""]), @r"
    $ gt rig add x shop --prefix ''
    ! error: `` is not a prefix: use up to 20 lower-case letters, digits, `-` and `_`, starting with a letter and not ending with `-`
    ! hint: choose another, as in `--prefix gt`
    [exit 1]
    ");
    snapshot!(town.refused(["rig", "add", "x", "shop", "--prefix", "gt"]), @r"
    $ gt rig add x shop --prefix gt
    ! error: the prefix `gt` is taken by rig `shop`
    ! hint: choose another, as in `--prefix gt2`
    [exit 1]
    ");
    snapshot!(town.refused(["rig", "add", "x", "shop", "--branch", "nope"]), @r"
    $ gt rig add x shop --branch nope
    ! error: the repository [TOWN]/shop has no branch `nope`
    ! hint: see the branches with `git -C [TOWN]/shop branch --all`
    [exit 1]
    ");
}

#[test]
fn a_dry_run_clones_nothing() {
    let town = Town::with_rig();
    let before = town.state();
    let answers = [
        town.gt(["rig", "add", "far", "https://nowhere.invalid/x.git", "--dry-run"]),
        town.gt(["rig", "add", "far", "https://nowhere.invalid/x.git", "--branch", "next", "--dry-run", "--json"]),
        town.gt(["rig", "add", "far", "https://nowhere.invalid/x.git", "--prefix", "gt", "--dry-run"]),
    ];
    assert_eq!(town.state(), before);
    assert!(!town.path("rigs").exists());
    snapshot!(session(answers), @r#"
    $ gt rig add far https://nowhere.invalid/x.git --dry-run
    Dry run, nothing is changed. This would happen:
    Registered rig far: [TOWN]/rigs/far, prefix far, branch HEAD.
    Merged work lands on branch HEAD of [TOWN]/rigs/far and is pushed to origin. Stop pushing with `gt config set rigs.far.push false`.
    ! warning: a dry run clones nothing: neither the address nor the branch was checked
    $ gt rig add far https://nowhere.invalid/x.git --branch next --dry-run --json
    {"branch":"next","dry_run":true,"name":"far","path":"[TOWN]/rigs/far","prefix":"far","push":true,"state":"active","url":"https://nowhere.invalid/x.git"}
    ! warning: a dry run clones nothing: neither the address nor the branch was checked
    $ gt rig add far https://nowhere.invalid/x.git --prefix gt --dry-run
    ! error: the prefix `gt` is taken by rig `shop`
    ! hint: choose another, as in `--prefix gt2`
    [exit 1]
    "#);
}

#[test]
fn a_refused_branch_of_a_url_leaves_no_clone() {
    let town = Town::new();
    let origin = town.repository("origin");
    let url = format!("file://{}", origin.display());
    snapshot!(town.refused(["rig", "add", "shop", &url, "--branch", "nope"]), @r"
    $ gt rig add shop file://[TOWN]/origin --branch nope
    ! error: the repository [TOWN]/rigs/shop has no branch `nope`
    ! hint: see the branches with `git -C [TOWN]/rigs/shop branch --all`
    [exit 1]
    ");
    assert!(!town.path("rigs/shop").exists(), "a clone was left behind");
    let second = town.repository("second");
    let url = format!("file://{}", second.display());
    snapshot!(session([town.gt(["rig", "add", "shop", &url]), town.gt(["rig", "show", "shop"])]), @"
    $ gt rig add shop file://[TOWN]/second
    Registered rig shop: [TOWN]/rigs/shop, prefix shop, branch main.
    Merged work lands on branch main of [TOWN]/rigs/shop and is pushed to origin. Stop pushing with `gt config set rigs.shop.push false`.
    Agents run without permission prompts: claude may do all that you may. Change that with `agents.claude.command` (docs/agents.md).
    Claude Code must trust the town once: start `claude` in [TOWN] and confirm.
    $ gt rig show shop
    shop
      prefix  shop
      path    [TOWN]/rigs/shop
      url     file://[TOWN]/second
      branch  main
      push    merged work is pushed to origin
      state   active
    ");
}

#[test]
fn a_repository_without_commits_is_taken_with_a_warning() {
    let town = Town::new();
    town.empty_repository("empty");
    town.git(&["init", "--quiet", "--bare", "bare.git"]);
    snapshot!(session([town.gt(["rig", "add", "empty", "empty"]), town.gt(["rig", "add", "bare", "bare.git"])]), @"
    $ gt rig add empty empty
    Registered rig empty: [TOWN]/empty, prefix em, branch main.
    Merged work lands on branch main of [TOWN]/empty. It has no origin, so nothing is pushed.
    Agents run without permission prompts: claude may do all that you may. Change that with `agents.claude.command` (docs/agents.md).
    Claude Code must trust the town once: start `claude` in [TOWN] and confirm.
    ! warning: the repository has no commit yet; make one with `git -C [TOWN]/empty commit --allow-empty -m start`
    $ gt rig add bare bare.git
    Registered rig bare: [TOWN]/bare.git, prefix bare, branch master.
    Merged work lands on branch master of [TOWN]/bare.git. It has no origin, so nothing is pushed.
    ! warning: the repository has no commit yet; push one from a repository that has some: `git push [TOWN]/bare.git HEAD:master`
    ");
}

#[test]
fn a_rig_with_active_beads_is_removed_by_force_only() {
    let town = Town::with_rig();
    town.create(&["work", "--rig", "shop"]);
    let before = town.state();
    let refused = town.gt(["rig", "remove", "shop"]);
    assert_eq!(before, town.state());
    let id = town.gt(["ready", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    snapshot!(session([refused, town.gt(["rig", "remove", "shop", "--force"]), town.gt(["explain", &id])]), @r"
    $ gt rig remove shop
    ! error: rig `shop` still has 1 active bead
    ! hint: close them first, or take it out with `gt rig remove shop --force`: they stay, without a rig, and nothing more is merged
    [exit 1]
    $ gt rig remove shop --force
    Took rig shop off the registry; its repository and beads stay.
    $ gt explain gt-id01
    gt-id01 is ready:
      - no registered rig has a prefix that fits gt-id01
    ");
}

#[test]
fn an_unknown_rig_is_named_with_the_nearest() {
    let town = Town::with_rig();
    snapshot!(town.refused(["rig", "show", "shp"]), @r"
    $ gt rig show shp
    ! error: there is no rig `shp`
    ! hint: did you mean `shop`?
    [exit 3]
    ");
    snapshot!(town.refused(["rig", "park", "zzzzzz"]), @r"
    $ gt rig park zzzzzz
    ! error: there is no rig `zzzzzz`
    ! hint: `gt rig list` shows what there is
    [exit 3]
    ");
    snapshot!(town.refused(["rig", "remove", "shopp"]), @r"
    $ gt rig remove shopp
    ! error: there is no rig `shopp`
    ! hint: did you mean `shop`?
    [exit 3]
    ");
    snapshot!(town.refused(["create", "x", "--rig", "shp"]), @r"
    $ gt create x --rig shp
    ! error: there is no rig `shp`
    ! hint: did you mean `shop`?
    [exit 3]
    ");
    snapshot!(town.refused(["ready", "--rig", "shp"]), @r"
    $ gt ready --rig shp
    ! error: there is no rig `shp`
    ! hint: did you mean `shop`?
    [exit 3]
    ");
    snapshot!(town.refused(["bead", "list", "--rig", "shp"]), @r"
    $ gt bead list --rig shp
    ! error: there is no rig `shp`
    ! hint: did you mean `shop`?
    [exit 3]
    ");
    snapshot!(town.refused(["bead", "blocked", "--rig", "shp"]), @r"
    $ gt bead blocked --rig shp
    ! error: there is no rig `shp`
    ! hint: did you mean `shop`?
    [exit 3]
    ");
    snapshot!(town.refused(["bead", "import", "-", "--rig", "shp"]), @r"
    $ gt bead import - --rig shp
    ! error: there is no rig `shp`
    ! hint: did you mean `shop`?
    [exit 3]
    ");
}

#[test]
fn a_new_bead_belongs_to_the_repository_around() {
    let town = Town::with_rig();
    fs::create_dir(town.path("shop/src")).unwrap();
    let inside = town.call(["create", "in the shop"]).at(town.path("shop/src")).run();
    let by_variable = town.call(["create", "by variable"]).env("GT_RIG", "shop").run();
    let outside = town.gt(["create", "outside"]);
    snapshot!(session([inside, by_variable, outside]), @r"
    $ gt create 'in the shop'
    Created gt-id01 in shop: in the shop
    $ gt create 'by variable'
    Created gt-id02 in shop: by variable
    $ gt create outside
    Created hq-id03 (a town bead): outside
    ");
}

#[test]
fn a_child_belongs_where_its_parent_does_before_any_variable() {
    let town = Town::with_rig();
    town.repository("other");
    town.gt(["rig", "add", "other", "other"]).success();
    let (in_rig, in_town) = (town.create(&["Epic", "--rig", "shop"]), town.create(&["Town epic"]));
    let rig_of = |arguments: &[&str]| {
        let call = town.call(arguments.iter().copied().chain(["--json"])).env("GT_RIG", "other");
        call.run().json()["rig"].as_str().map(str::to_owned)
    };
    assert_eq!(rig_of(&["create", "child", "--parent", &in_rig]).as_deref(), Some("shop"));
    assert_eq!(rig_of(&["create", "child", "--parent", &in_rig, "--rig", "other"]).as_deref(), Some("other"));
    assert_eq!(rig_of(&["create", "child", "--parent", &in_town]).as_deref(), Some("other"));
}

#[test]
fn a_clone_of_another_url_is_never_taken_for_this_one() {
    let town = Town::new();
    let url = |name: &str| format!("file://{}", town.repository(name).display());
    let (first, second) = (url("first"), url("second"));
    town.gt(["rig", "add", "shop", &first]).success();
    town.gt(["rig", "remove", "shop"]).success();
    snapshot!(town.refused(["rig", "add", "shop", &second]), @r"
    $ gt rig add shop file://[TOWN]/second
    ! error: [TOWN]/rigs/shop is already there, cloned from elsewhere
    ! hint: move it away, or register it as it is: `gt rig add NAME [TOWN]/rigs/shop`
    [exit 1]
    ");
    town.gt(["rig", "add", "shop", &first]).success();
}

#[test]
fn parked_and_docked_are_not_the_same() {
    let town = Town::with_rig();
    let answers = [
        town.gt(["rig", "dock", "shop"]),
        town.gt(["rig", "unpark", "shop"]),
        town.gt(["rig", "park", "shop"]),
        town.gt(["rig", "undock", "shop"]),
        town.gt(["rig", "park", "shop"]),
        town.gt(["rig", "undock", "shop"]),
        town.gt(["rig", "dock", "shop"]),
        town.gt(["rig", "list"]),
    ];
    snapshot!(session(answers), @r"
    $ gt rig dock shop
    Rig shop is docked.
    $ gt rig unpark shop
    ! error: rig `shop` is docked
    ! hint: bring it back with `gt rig undock shop`
    [exit 1]
    $ gt rig park shop
    ! error: rig `shop` is docked
    ! hint: bring it back with `gt rig undock shop`
    [exit 1]
    $ gt rig undock shop
    Rig shop is active.
    $ gt rig park shop
    Rig shop is parked.
    $ gt rig undock shop
    Rig shop is parked; nothing was changed.
    $ gt rig dock shop
    Rig shop is docked.
    $ gt rig list
    shop             gt       [TOWN]/shop  docked
    ");
}

/// A town beside a repository `shop` that has an origin.
fn with_origin() -> Town {
    let town = Town::new();
    town.repository("shop");
    town.git(&["init", "--quiet", "--bare", "origin.git"]);
    let origin = town.path("origin.git").display().to_string();
    town.git(&["-C", "shop", "remote", "add", "origin", &origin]);
    town
}

#[test]
fn rig_add_says_what_becomes_of_merged_work_and_does_not_push_unless_told() {
    let town = with_origin();
    let answers = [
        town.gt(["rig", "add", "shop", "shop"]),
        town.gt(["config", "get", "rigs.shop.push"]),
        town.gt(["rig", "show", "shop"]),
        town.gt(["rig", "add", "told", "shop", "--push", "--prefix", "told"]),
        town.gt(["config", "get", "rigs.told.push"]),
        town.gt(["rig", "show", "told", "--json"]),
        town.gt(["rig", "add", "kept", "shop", "--no-push", "--prefix", "kept", "--json"]),
        town.gt(["config", "get", "rigs.kept.push"]),
        town.gt(["rig", "add", "both", "shop", "--no-push", "--push"]),
    ];
    snapshot!(session(answers), @r#"
    $ gt rig add shop shop
    Registered rig shop: [TOWN]/shop, prefix shop, branch main.
    Merged work lands on branch main of [TOWN]/shop and is not pushed. Push it to origin with `gt config set rigs.shop.push true`.
    Agents run without permission prompts: claude may do all that you may. Change that with `agents.claude.command` (docs/agents.md).
    Claude Code must trust the town once: start `claude` in [TOWN] and confirm.
    $ gt config get rigs.shop.push

    $ gt rig show shop
    shop
      prefix  shop
      path    [TOWN]/shop
      branch  main
      push    merged work is not pushed
      state   active
    $ gt rig add told shop --push --prefix told
    Registered rig told: [TOWN]/shop, prefix told, branch main.
    Merged work lands on branch main of [TOWN]/shop and is pushed to origin. Stop pushing with `gt config set rigs.told.push false`.
    $ gt config get rigs.told.push
    true
    $ gt rig show told --json
    {"branch":"main","name":"told","path":"[TOWN]/shop","prefix":"told","push":true,"state":"active","url":null}
    $ gt rig add kept shop --no-push --prefix kept --json
    {"branch":"main","name":"kept","path":"[TOWN]/shop","prefix":"kept","push":false,"state":"active","url":null}
    $ gt config get rigs.kept.push
    false
    $ gt rig add both shop --no-push --push
    ! error: the argument '--no-push' cannot be used with '--push'
    !
    ! Usage: gt rig add --no-push <NAME> <PATH|URL>
    !
    ! For more information, try '--help'.
    [exit 2]
    "#);
}

#[test]
fn a_dry_run_of_rig_add_sets_nothing() {
    let town = with_origin();
    let before = (town.state(), town.read("town.toml"));
    town.gt(["rig", "add", "shop", "shop", "--push", "--dry-run"]).success();
    assert_eq!((town.state(), town.read("town.toml")), before);
}

#[test]
fn a_rig_whose_push_cannot_be_written_down_is_not_registered() {
    let town = with_origin();
    let url = format!("file://{}", town.path("shop").display());
    town.write("town.toml", "this is not toml");
    assert_eq!(town.gt(["rig", "add", "shop", &url, "--no-push"]).code, 1);
    assert_eq!(town.gt(["rig", "list", "--json"]).json(), serde_json::json!([]));
}

/// Answers what `gt rig add` asks at a terminal.
fn add_at_a_terminal(answer: &str) -> (Town, String) {
    let town = with_origin();
    let mut command = town.command("script");
    let line = format!("{} rig add shop shop", crate::town::GT);
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("`script` is installed");
    std::io::Write::write_all(child.stdin.as_mut().expect("it is piped"), answer.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    (town, String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn at_a_terminal_rig_add_asks_whether_merged_work_is_pushed() {
    for (answer, is_pushed) in [("y\n", true), ("n\n", false), ("\n", false)] {
        let (town, said) = add_at_a_terminal(answer);
        assert!(said.contains("Push it to the repository's origin too? [y/N]"), "{said}");
        assert_eq!(town.gt(["rig", "show", "shop", "--json"]).json()["push"], is_pushed, "{answer:?}: {said}");
    }
}

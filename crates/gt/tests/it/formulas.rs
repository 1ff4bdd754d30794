//! Formulas, as people write them and as agents are told them. // SPEC P9, P3

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::Value;

use crate::fleet::{FINISHES, Fleet, count};
use crate::town::{Town, session, snapshot};

/// A recipe with a variable, a need that goes against the order, a group and a condition.
const RELEASE: &str = r#"
formula = "release"
version = 2
description = "Brings out a version."

[vars.version]
description = "what to bring out"
required = true
pattern = '^v[0-9]+$'

[vars.level]
default = "minor"
enum = ["major", "minor"]

[[steps]]
id = "publish"
title = "Publish {{version}}"
needs = ["prepare"]
notes = "Ask before you push."

[[steps]]
id = "prepare"
title = "Prepare {{issue}}"
description = "The {{level}} release: {{feature}}"
acceptance = ["The notes name {{version}}."]

[[steps.children]]
id = "notes"
title = "Write the notes"

[[steps]]
id = "announce"
title = "Announce it"
condition = "{{level}} == major"
"#;

fn put(town: &Town, name: &str, text: &str) {
    fs::create_dir_all(town.path("formulas")).expect("the town can be written");
    town.write(&format!("formulas/{name}.formula.toml"), text);
}

/// A formula with one step of this title.
fn plain(name: &str, title: &str) -> String {
    format!("formula = '{name}'\nversion = 1\ndescription = '{title}'\n[[steps]]\nid = 'a'\ntitle = '{title}'\n")
}

/// Agents that leave their assignment in `told`, and end their bead.
const LISTENS: &str = "gt prime >> \"$HOME/told\"; gt done";

fn told(fleet: &Fleet) -> String {
    fs::read_to_string(fleet.home("told")).unwrap_or_default()
}

#[test]
fn formulas_are_listed_with_where_they_come_from_and_what_is_wrong() {
    let town = Town::with_rig();
    put(&town, "release", RELEASE);
    put(&town, "mol-polecat-work", &plain("mol-polecat-work", "Our way"));
    put(&town, "broken", "formula = 'broken'\nversion = 0\n");
    let user = town.home().join(".config/gasworks/formulas");
    fs::create_dir_all(&user).expect("the home can be written");
    fs::write(user.join("mine.formula.toml"), plain("mine", "Mine")).expect("the home can be written");
    fs::write(user.join("release.formula.toml"), plain("release", "Elsewhere")).expect("the home can be written");
    snapshot!(town.gt(["formula", "list"]).success().to_string(), @r"
    $ gt formula list
    broken            town      broken: [TOWN]/formulas/broken.formula.toml: a workflow needs at least one step
    mine              user      Mine
    mol-polecat-work  town      Our way
    mol-polecat-work  built in  (shadowed) One bead, from reading it to handing it over.
    release           town      Brings out a version.
    release           user      (shadowed) Elsewhere
    ");
    let list = town.gt(["formula", "list", "--json"]).json();
    let fields: Vec<&str> = list[1].as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        ["description", "file", "name", "problem", "shadowed", "source", "steps", "type", "version"],
        "{list}"
    );
    let elsewhere = town.home().join("elsewhere");
    fs::create_dir_all(elsewhere.join("gasworks/formulas")).expect("the home can be written");
    let list = town.call(["formula", "list", "--json"]).env("XDG_CONFIG_HOME", &elsewhere).run().json();
    assert!(list.as_array().expect("a list").iter().all(|entry| entry["source"] != "user"), "{list}");
}

#[test]
fn a_formula_is_shown_with_its_variables_and_its_steps_in_order() {
    let town = Town::with_rig();
    put(&town, "release", RELEASE);
    snapshot!(session([town.gt(["formula", "show", "release"]), town.gt(["formula", "cook", "release", "--var", "version=v3"])]), @r"
    $ gt formula show release
    release  version 2, workflow  eb02c2796c04
    Brings out a version.

    Variables
      version  required, matches `^v[0-9]+$`  what to bring out
      level    default `minor`, one of major, minor

    Steps
       1 Prepare {{issue}}  [prepare]
         2 Write the notes  [notes]
       3 Publish {{version}}  [publish] needs prepare
       4 Announce it  [announce] if {{level}} == major
    $ gt formula cook release --var version=v3
    release  version 2, workflow  eb02c2796c04
    Brings out a version.

    Variables
      version  = v3, matches `^v[0-9]+$`  what to bring out
      level    = minor, one of major, minor

    Steps
       1 Prepare {{issue}}  [prepare]
           The minor release: {{feature}}
           done when: The notes name v3.
         2 Write the notes  [notes]
       3 Publish v3  [publish] needs prepare
           note: Ask before you push.
    ");
}

#[test]
fn cooking_tells_everything_that_is_wrong_at_once() {
    let town = Town::with_rig();
    put(&town, "release", RELEASE);
    put(&town, "odd", "formula = 'odd'\nversion = 1\ntype = 'workflw'\nsteps = [{ id = 'a', needs = ['b'] }]\n");
    put(
        &town,
        "ring",
        "formula = 'ring'\nversion = 1\nextends = ['ring']\nsteps = [{ id = 'a', title = 'A', needs = ['a'] }]\n",
    );
    put(
        &town,
        "looped",
        "formula = 'looped'\nversion = 1\n[[steps]]\nid = 'a'\ntitle = 'A'\nloop = { count = 3, body = [{ id = 'b' }] }\ngate = { type = 'human' }\n",
    );
    let refused = |line: &str| town.refused(line.split(' '));
    snapshot!([
        refused("formula cook odd"),
        refused("bead cook ring"),
        refused("formula cook looped"),
        refused("formula cook release --var version=3 --var level=minr"),
        refused("formula cook release --var level=major"),
        refused("formula cook relase"),
        refused("formula show ../release"),
    ].concat(), @r"
    $ gt formula cook odd
    ! error: the formula `odd` does not cook: 3 problems
    !   caused by: [TOWN]/formulas/odd.formula.toml:3: there is no type `workflw`; it is one of workflow, expansion, aspect, convoy (did you mean `workflow`?)
    !   caused by: [TOWN]/formulas/odd.formula.toml:4: step `a` needs `b`, and there is no such step
    !   caused by: [TOWN]/formulas/odd.formula.toml:4: step `a` has no title
    ! hint: mend the file, then `gt formula cook odd` again; docs/formulas.md says what each key means
    [exit 1]
    $ gt bead cook ring
    ! error: the formula `ring` does not cook: 2 problems
    !   caused by: [TOWN]/formulas/ring.formula.toml:3: formulas extend each other in a circle: ring → ring
    !   caused by: [TOWN]/formulas/ring.formula.toml:4: step `a` needs itself
    ! hint: mend the file, then `gt formula cook ring` again; docs/formulas.md says what each key means
    [exit 1]
    $ gt formula cook looped
    ! error: the formula `looped` makes sense, but cannot be given to an agent
    !   caused by: [TOWN]/formulas/looped.formula.toml:6: step `a` is a loop, and loops are not supported
    !   caused by: [TOWN]/formulas/looped.formula.toml:7: step `a` has a gate, and gates are not supported
    ! hint: `gt formula show looped` shows it all the same
    [exit 1]
    $ gt formula cook release --var version=3 --var level=minr
    ! error: the formula `release` does not cook: 2 problems
    !   caused by: the variable `version` is `3`, which does not match `^v[0-9]+$`
    !   caused by: the variable `level` is `minr`, which is none of `major`, `minor`; did you mean `minor`?
    ! hint: give other values; `gt formula show release` shows what each variable takes
    [exit 1]
    $ gt formula cook release --var level=major
    ! error: the formula `release` does not cook: 1 problem
    !   caused by: the variable `version` of `release` is required (give it: `--var version=VALUE`)
    ! hint: give other values; `gt formula show release` shows what each variable takes
    [exit 1]
    $ gt formula cook relase
    ! error: there is no formula `relase`
    ! hint: did you mean `release`?
    [exit 3]
    $ gt formula show ../release
    ! error: `../release` is no name of a formula: use letters, digits, `-`, `_` and `.`, and no dot at the beginning
    ! hint: `gt formula list` shows what there is
    [exit 2]
    ");
}

#[test]
fn a_formula_that_extends_a_broken_one_says_whose_fault_it_is() {
    let town = Town::new();
    let broken = "formula = 'base'\nversion = 1\n[[steps]]\nid = 'a'\ntitle = 'A'\nneeds = ['zz']\n";
    put(&town, "base", broken);
    put(&town, "child", "formula = 'child'\nversion = 1\nextends = ['base']\n");
    let listed = town.gt(["formula", "list"]);
    let line = |name: &str| listed.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("child").contains("broken: it extends `base`, which is broken: "), "{listed}");
    assert!(line("base").contains("broken: /") && !line("base").contains("extends"), "{listed}");
}

#[test]
fn no_hint_leads_back_to_what_was_refused() {
    let town = Town::new();
    std::fs::create_dir_all(town.path("formulas/dir.formula.toml")).unwrap();
    for verb in ["show", "cook"] {
        let refused = town.gt(["formula", verb, "dir"]);
        assert!(refused.stderr.contains("hint: mend the file, then `gt formula cook dir` again"), "{refused}");
    }
}

#[test]
fn cook_in_json_has_all_there_is_to_know() {
    let town = Town::with_rig();
    put(&town, "release", RELEASE);
    let cooked =
        town.gt(["formula", "cook", "release", "--var", "version=v3", "--var", "level=major", "--json"]).json();
    let steps: Vec<&str> =
        cooked["steps"].as_array().expect("a list").iter().map(|step| step["id"].as_str().expect("an id")).collect();
    assert_eq!(steps, ["prepare", "notes", "publish", "announce"]);
    assert_eq!((&cooked["dispatchable"], &cooked["steps"][0]["title"]), (&true.into(), &"Prepare {{issue}}".into()));
    assert_eq!(cooked["steps"][1]["parent"], "prepare");
    let as_bd = town.call(["cook", "release", "--json"]).called_as("bd").run().json();
    assert_eq!((&as_bd["formula"], &as_bd["steps"][2]["title"]), (&"release".into(), &"Publish {{version}}".into()));
    put(
        &town,
        "part",
        "formula = 'part'\nversion = 1\ntype = 'expansion'\n[[template]]\nid = '{target}.x'\ntitle = 'X'\n",
    );
    assert_eq!(town.gt(["formula", "cook", "part", "--json"]).json()["dispatchable"], false);
}

#[test]
fn an_agent_is_told_its_steps_in_order_and_prime_tells_the_same() {
    let fleet = Fleet::new("printf '%s\\n' \"$1\" > \"$HOME/argument\"; gt prime > \"$HOME/told\"; gt done");
    fleet.set("agents.scripted.prompt", "arg");
    put(&fleet.town, "release", RELEASE);
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "release", "--on", "gt-a", "--var", "version=v3"]).success();
    fleet.until_done(&["gt-a".to_owned()]);
    let argument = fs::read_to_string(fleet.home("argument")).expect("it was told");
    assert_eq!(argument.trim_end(), told(&fleet).trim_end());
    let (_, steps) = argument.split_once("## Steps").expect("there are steps");
    let (steps, _) = steps.split_once("## How to work").expect("there are rules");
    snapshot!(steps.trim(), @r"
    Work by the formula release, in this order:

    ### 1 Prepare gt-a [prepare]
    The minor release: Do gt-a
    Done when: The notes name v3.

    ### 1.1 Write the notes [notes]

    ### 2 Publish v3 [publish]
    Note: Ask before you push.
    Needs: prepare
    ");
    let events = fleet.town.events();
    let started = events.iter().find(|event| event["type"] == "run.started").expect("it started");
    let formula = started["data"]["formula"].as_str().expect("it is recorded");
    let hash = fleet.town.gt(["formula", "show", "release", "--json"]).json()["hash"].as_str().map(str::to_owned);
    assert_eq!(Some(formula), hash.map(|hash| format!("release@{hash}")).as_deref());
}

#[test]
fn the_formula_is_the_one_named_the_rigs_or_the_built_in_one_and_none_for_a_raw_bead() {
    let fleet = Fleet::with_cap(5, LISTENS);
    put(&fleet.town, "house", &plain("house", "The way of the house"));
    put(&fleet.town, "named", &plain("named", "As it was named"));
    fleet.hold(&["gt-a", "gt-b", "gt-c", "gt-d"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.set("rigs.shop.default_formula", "house");
    fleet.town.gt(["sling", "gt-b"]).success();
    fleet.town.gt(["sling", "gt-c", "--formula", "named"]).success();
    fleet.town.gt(["sling", "gt-d", "--hook-raw-bead"]).success();
    let listed = fleet.town.gt(["bead", "list", "--label", "gt:sling-context", "--json"]).json();
    let formula = |row: &Value| {
        let fields: Value = serde_json::from_str(row["description"].as_str().expect("a text")).expect("JSON");
        (fields["work_bead_id"].clone(), fields["formula"].clone())
    };
    let mut formulas: Vec<(Value, Value)> = listed.as_array().expect("a list").iter().map(formula).collect();
    formulas.sort_by_key(|(bead, _)| bead.to_string());
    let wanted = [
        ("gt-a", "mol-polecat-work".into()),
        ("gt-b", "house".into()),
        ("gt-c", "named".into()),
        ("gt-d", Value::Null),
    ];
    assert_eq!(formulas, wanted.map(|(bead, formula)| (bead.into(), formula)));
    fleet.start_daemon();
    fleet.until_done(&["gt-a", "gt-b", "gt-c", "gt-d"].map(str::to_owned));
    let told = told(&fleet);
    for title in ["Hand it over", "The way of the house", "As it was named"] {
        assert_eq!(told.matches(title).count(), 1, "{told}");
    }
    assert_eq!(told.matches("## Steps").count(), 3, "{told}");
}

#[test]
fn a_sling_that_would_not_cook_is_refused_with_every_reason_and_stores_nothing() {
    let fleet = Fleet::new(FINISHES);
    put(&fleet.town, "release", RELEASE);
    put(&fleet.town, "part", "formula = 'part'\nversion = 1\ntype = 'expansion'\n");
    put(
        &fleet.town,
        "gated",
        "formula = 'gated'\nversion = 1\n[[steps]]\nid = 'a'\ntitle = 'A'\ngate = { type = 'human' }\n",
    );
    fleet.hold(&["gt-a", "gt-b"]);
    let refused = |line: &str| fleet.town.refused(line.split(' '));
    let transcript = [
        refused("sling release --on gt-a"),
        refused("sling gt-a --formula release --var version=3 --var level=x"),
        refused("sling part --on gt-a"),
        refused("sling gated --on gt-a shop"),
        refused("sling relase --on gt-a"),
        refused("sling gt-a --formula ../release"),
        refused("sling --new Work shop --formula release"),
        refused("sling release"),
        refused("sling release shop"),
    ]
    .concat();
    snapshot!(transcript, @r"
    $ gt sling release --on gt-a
    ! error: gt-a cannot be worked on by the formula `release`: the variable `version` of `release` is required (give it: `--var version=VALUE`)
    ! hint: see it with `gt formula cook release`, or go without: `--hook-raw-bead`
    [exit 1]
    $ gt sling gt-a --formula release --var version=3 --var level=x
    ! error: gt-a cannot be worked on by the formula `release`: the variable `version` is `3`, which does not match `^v[0-9]+$`; the variable `level` is `x`, which is none of `major`, `minor`
    ! hint: see it with `gt formula cook release`, or go without: `--hook-raw-bead`
    [exit 1]
    $ gt sling part --on gt-a
    ! error: the formula `part` cannot be used: `part` is of the type `expansion`; only workflows are given to agents
    ! hint: see everything about it with `gt formula cook part`
    [exit 1]
    $ gt sling gated --on gt-a shop
    ! error: the formula `gated` cannot be used: [TOWN]/formulas/gated.formula.toml:6: step `a` has a gate, and gates are not supported
    ! hint: see everything about it with `gt formula cook gated`
    [exit 1]
    $ gt sling relase --on gt-a
    ! error: there is no formula `relase`
    ! hint: did you mean `release`?
    [exit 3]
    $ gt sling gt-a --formula ../release
    ! error: the formula `../release` cannot be used: `../release` is no name of a formula: use letters, digits, `-`, `_` and `.`, and no dot at the beginning
    ! hint: `gt formula list` shows what there is
    [exit 2]
    $ gt sling --new Work shop --formula release
    ! error: the formula `release` cannot be used: the variable `version` of `release` is required (give it: `--var version=VALUE`)
    ! hint: see everything about it with `gt formula cook release`
    [exit 1]
    $ gt sling release
    ! error: `release` is a formula, and needs a bead to be worked on by it
    ! hint: as in `gt sling release --on BEAD`
    [exit 2]
    $ gt sling release shop
    ! error: `release` is a formula, and needs a bead to be worked on by it
    ! hint: as in `gt sling release --on BEAD`
    [exit 2]
    ");
    assert_eq!(fleet.starts(), Vec::<String>::new());
}

#[test]
fn a_default_formula_that_is_not_there_refuses_what_would_get_it() {
    let fleet = Fleet::new(FINISHES);
    fleet.hold(&["gt-a", "gt-b"]);
    put(&fleet.town, "gone", &plain("gone", "Once"));
    fleet.set("rigs.shop.default_formula", "gone");
    fs::remove_file(fleet.town.path("formulas/gone.formula.toml")).expect("it was just written");
    let refused = |line: &str| fleet.town.refused(line.split(' '));
    let batch = || fleet.town.gt(["sling", "gt-a", "gt-b"]).to_string();
    snapshot!([refused("sling gt-a"), refused("sling --new Work shop"), batch()].concat(), @r"
    $ gt sling gt-a
    ! error: gt-a cannot be worked on by the formula `gone`: there is no formula `gone`
    ! hint: see it with `gt formula cook gone`, or go without: `--hook-raw-bead`
    [exit 1]
    $ gt sling --new Work shop
    ! error: the formula `gone` cannot be used: there is no formula `gone`
    ! hint: see everything about it with `gt formula cook gone`
    [exit 1]
    $ gt sling gt-a gt-b
    ✗ Refused gt-a: gt-a cannot be worked on by the formula `gone`: there is no formula `gone`
    ✗ Refused gt-b: gt-b cannot be worked on by the formula `gone`: there is no formula `gone`
    2 beads: 2 refused.
    [exit 1]
    ");
    assert_eq!(fleet.starts(), Vec::<String>::new());
}

#[test]
fn a_formula_that_does_not_cook_any_more_is_a_failed_start_and_never_left_out() {
    let fleet = Fleet::with_cap(5, LISTENS);
    put(&fleet.town, "house", &plain("house", "Once"));
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a", "--formula", "house"]).success();
    fs::remove_file(fleet.town.path("formulas/house.formula.toml")).expect("it is there");
    fleet.start_daemon();
    fleet.until_events("context.failed", Some("gt-a"), 1);
    let list = fleet.town.gt(["scheduler", "list", "--json"]).json();
    assert_eq!(list[0]["dispatch_failures"], 1, "{list}");
    assert_eq!(list[0]["last_failure"], "the formula `house` does not cook: there is no formula `house` any more");
    assert_eq!(fleet.starts(), Vec::<String>::new());
    put(&fleet.town, "house", &plain("house", "Mended"));
    fleet.town.gt(["scheduler", "retry", "gt-a"]).success();
    fleet.until_done(&["gt-a".to_owned()]);
    assert!(told(&fleet).contains("Mended"), "{}", told(&fleet));
}

#[test]
fn odd_things_in_the_formula_directory_are_told_and_hang_nobody() {
    let town = Town::with_rig();
    put(&town, "fine", &plain("fine", "Fine"));
    let pipe = town.path("formulas/pipe.formula.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there").success());
    symlink("/dev/zero", town.path("formulas/zero.formula.toml")).expect("a link can be made");
    town.write("formulas/bytes.formula.toml", b"\xff\xfe");
    town.write("formulas/large.formula.toml", vec![b'#'; 2_000_000]);
    town.write("formulas/a b.formula.toml", "");
    town.write("formulas/deep.formula.toml", "a = ".to_owned() + &"[".repeat(500_000));
    let list = town.gt(["formula", "list", "--json"]).json();
    let problems = list.as_array().expect("a list").iter().filter(|entry| !entry["problem"].is_null()).count();
    assert_eq!(problems, 6, "{list}");
    for name in ["pipe", "zero", "bytes", "large", "deep"] {
        town.refused(["formula", "cook", name]);
        town.refused(["sling", "--new", "Work", "shop", "--formula", name]);
    }
}

/// A recipe of three steps for agents that come one after the other.
const THREE: &str = "formula = 'three'\nversion = 1\nsteps = [\n  { id = 'one', title = 'First {{issue}}', description = 'Begin.' },\n  \
                     { id = 'two', title = 'Second' },\n  { id = 'three', title = 'Third', acceptance = 'It is all there.' },\n]\n";

#[test]
fn step_by_step_each_agent_is_told_one_step_and_goes_on_where_the_last_one_left_off() {
    let fleet = Fleet::with_cap(
        5,
        "git config user.name it; git config user.email it@example.org\n\
         gt prime >> \"$HOME/told\"; n=$(ls | wc -l); echo $n > file$n; git add . ; git commit -qm step$n\n\
         [ $n = 1 ] && exit 0\n\
         gt done --note \"file$n is there\"",
    );
    fleet.set("rigs.shop.isolation", "worktree");
    put(&fleet.town, "three", THREE);
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "three", "--on", "gt-a", "--ralph"]).success();
    let before = fleet.town.gt(["explain", "gt-a"]).to_string();
    assert!(before.contains("it is done step by step, and is at step 1 of 3: First gt-a"), "{before}");
    fleet.start_daemon();
    fleet.until_done(&["gt-a".to_owned()]);
    let told = told(&fleet);
    let steps: Vec<&str> =
        told.split("## Your step").skip(1).filter_map(|part| part.split("## How to work").next()).collect();
    snapshot!(steps.join("---").trim(), @r"
    This work is done by the formula three, each step by a fresh worker. Yours is step 1 of 3, and only that:

    ### First gt-a [one]
    Begin.

    ---
    This work is done by the formula three, each step by a fresh worker. Yours is step 2 of 3, and only that:

    ### Second [two]

    Done before you:
    1. First gt-a: file0 is there

    ---
    This work is done by the formula three, each step by a fresh worker. Yours is step 3 of 3, and only that:

    ### Third [three]
    Done when: It is all there.

    Done before you:
    1. First gt-a: file0 is there
    2. Second
    ");
    let events = fleet.town.events();
    let outcomes: Vec<&Value> =
        events.iter().filter(|e| e["type"] == "run.ended").map(|e| &e["data"]["outcome"]).collect();
    assert_eq!(outcomes, ["step-done", "step-done", "completed"]);
    // The last branch holds the work of all.
    let branch = events
        .iter()
        .rfind(|e| e["type"] == "run.started")
        .and_then(|e| e["data"]["branch"].as_str())
        .expect("a branch");
    let files = fleet.town.command("git").args(["-C", "shop", "ls-tree", "--name-only", branch]).output().expect("git");
    assert_eq!(String::from_utf8_lossy(&files.stdout), "file0\nfile1\nfile2\n");
    fleet.assert_at_rest(&["gt-a".to_owned()]);
}

#[test]
fn a_step_is_told_only_of_those_who_tried_it_before() {
    let fleet = Fleet::with_cap(
        5,
        "gt prime > \"$HOME/told$(grep -c start \"$HOME/trace\")\"\n\
         case $(grep -c start \"$HOME/trace\") in 1|3|4) exit 1;; esac\ngt done --no-changes",
    );
    fleet.set("rigs.shop.isolation", "worktree");
    fleet.set("witness.redispatch_cooldown", "0s");
    put(&fleet.town, "three", THREE);
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "three", "--on", "gt-a", "--ralph"]).success();
    fleet.start_daemon();
    fleet.until_done(&["gt-a".to_owned()]);
    let before = |n: usize| -> String {
        let told = fs::read_to_string(fleet.home(&format!("told{n}"))).expect("it was told");
        let step = told.lines().find_map(|line| line.strip_prefix("### ")).expect("a step").to_owned();
        let before = told.split("## Before you\n").nth(1).and_then(|rest| rest.lines().next());
        format!("{step}: {}", before.unwrap_or("nothing"))
    };
    let told: Vec<String> = (1..=6).map(before).collect();
    let events = fleet.town.events();
    let started: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "run.started")
        .map(|event| event["data"]["branch"].as_str().expect("a branch"))
        .collect();
    let once = |n: usize| {
        format!("Once before a worker ended without finishing this. What it left is on the branch {}.", started[n])
    };
    assert_eq!(
        told,
        [
            "First gt-a [one]: nothing".to_owned(),
            format!("First gt-a [one]: {}", once(0)),
            "Second [two]: nothing".to_owned(),
            format!("Second [two]: {}", once(2)),
            format!("Second [two]: {}", once(3).replace("Once", "2 times")),
            "Third [three]: nothing".to_owned(),
        ]
    );
}

#[test]
fn a_daemon_killed_between_steps_does_none_twice_and_leaves_none_out() {
    let fleet = Fleet::with_cap(
        2,
        "gt prime | grep '^### ' >> \"$HOME/steps\"\nwhile [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done\ngt done",
    );
    put(&fleet.town, "three", THREE);
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "three", "--on", "gt-a", "--ralph"]).success();
    fleet.start_daemon();
    fleet.until_events("run.started", Some("gt-a"), 1);
    fleet.kill_daemon();
    fleet.open_gate("gate");
    fleet.start_daemon_with(&[("GT_CRASH_AT", "recorded-ends:1")]);
    fleet.await_daemon_death();
    fleet.start_daemon();
    fleet.until_done(&["gt-a".to_owned()]);
    let steps = fs::read_to_string(fleet.home("steps")).expect("they were told");
    assert_eq!(steps, "### First gt-a [one]\n### Second [two]\n### Third [three]\n");
    assert_eq!(count(&fleet.town.events(), "run.ended", Some("gt-a")), 3);
    fleet.assert_at_rest(&["gt-a".to_owned()]);
}

#[test]
fn status_and_done_say_which_step_it_is() {
    let fleet = Fleet::new("gt done > \"$HOME/said\"; while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done");
    put(&fleet.town, "three", THREE);
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "three", "--on", "gt-a", "--ralph"]).success();
    fleet.until_events("run.reported", Some("gt-a"), 1);
    let status = fleet.town.gt(["status", "--json"]).json();
    assert_eq!(status["running"][0]["step"], "step 1 of 3: First gt-a", "{status}");
    assert!(fleet.town.gt(["status"]).stdout.contains("(step 1 of 3: First gt-a)"));
    fleet.await_file("said");
    let wanted = "gt-a goes on with its next step; yours is done (step 1 of 3: First gt-a). End your process now.\n";
    fleet.until_seen("what it was told", || fs::read_to_string(fleet.home("said")).is_ok_and(|said| said == wanted));
    fleet.open_gate("gate");
    fleet.until_done(&["gt-a".to_owned()]);
}

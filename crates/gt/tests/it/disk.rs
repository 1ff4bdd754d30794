//! A disk that is full, and one that cannot be written: real ones, in a mount namespace of their own.

use std::process::Command;

use crate::town::{GT, Town, snapshot};

/// What every script begins with: a small disk with a town on it, and a way to show a call.
const SETUP: &str = r#"
mount -t tmpfs -o size=3m tmpfs "$HOME/disk" || exit 99
cd "$HOME/disk"
gt() { "$GT" "$@"; }
show() { echo "\$ gt $*" | cut -c1-60; "$GT" "$@" 2>&1; echo "[exit $?]"; }
fill() { dd if=/dev/zero of=fill bs=4k 2>/dev/null; truncate --size="-$1" fill; }
gt init >/dev/null
gt create "was here first" --quiet >/dev/null
"#;

/// Where nothing may be skipped that is possible, it has to be known that this is not.
fn skipped(why: &str) -> Option<String> {
    let may_skip =
        std::env::var("GT_TEST_MAY_SKIP").is_ok_and(|limits| limits.split(',').any(|limit| limit == "mount"));
    assert!(may_skip || std::env::var_os("GT_TEST_SKIP_NOTHING").is_none(), "cannot be skipped: {why}");
    eprintln!("SKIPPED: {why}");
    None
}

/// Runs a script on a small disk; `None` where mounting is not permitted.
fn on_a_small_disk(town: &Town, script: &str) -> Option<String> {
    std::fs::create_dir(town.home().join("disk")).expect("the home is empty");
    let namespaces: [&[&str]; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];
    let may = |flags: &&&[&str]| {
        let tried = Command::new("unshare").args(**flags).arg("true").output();
        tried.is_ok_and(|output| output.status.success())
    };
    let Some(flags) = namespaces.iter().find(may) else {
        return skipped("no mount namespace can be made here (unshare)");
    };
    let mut command = town.command("unshare");
    let output = command.args(*flags).args(["sh", "-uc", &format!("{SETUP}{script}")]).env("GT", GT).output();
    let output = output.expect("unshare was there a moment ago");
    if output.status.code() == Some(99) {
        return skipped("no disk of our own can be mounted here");
    }
    let said = String::from_utf8(output.stdout).expect("the answer is UTF-8");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    Some(said.replace(&town.home().display().to_string(), "[HOME]"))
}

#[test]
fn a_write_that_does_not_fit_is_refused_and_what_was_acknowledged_stays() {
    let town = Town::unmade();
    let script = r#"
    big=$(head -c 100000 /dev/zero | tr '\0' x)
    fill 200k
    for n in 1 2 3 4 5; do
        id=$(gt create "number $n" --quiet --description "$big" 2>/dev/null) && echo "$id" >> "$HOME/acknowledged"
    done
    show create "too big" --description "$big"
    show config set runtime process
    show bead export --output export.jsonl
    ls -A
    rm fill
    gt doctor > "$HOME/doctor" || cat "$HOME/doctor"
    gt bead export > "$HOME/export"
    for id in $(cat "$HOME/acknowledged"); do grep -q "\"id\":\"$id\"" "$HOME/export" || echo "$id is lost"; done
    [ "$(wc -l < "$HOME/export")" = "$(($(wc -l < "$HOME/acknowledged") + 1))" ] || echo "more than was acknowledged"
    gt create "fits again" --quiet > /dev/null; echo "[exit $?]"
    "#;
    let Some(said) = on_a_small_disk(&town, script) else { return };
    snapshot!(said, @r"
    $ gt create too big --description xxxxxxxxxxxxxxxxxxxxxxxxxx
    error: the disk is full: the store [HOME]/disk/.gt/town.db cannot grow
      caused by: database or disk is full
      caused by: Error code 13: database or disk is full
    hint: make room and try again; nothing was changed
    [exit 4]
    $ gt config set runtime process
    error: cannot write [HOME]/disk/town.toml
      caused by: No space left on device (os error 28)
    hint: make room and try again; nothing was changed
    [exit 1]
    $ gt bead export --output export.jsonl
    error: cannot write export.jsonl: No space left on device (os error 28)
    hint: make room and try again; nothing was changed
    [exit 1]
    .gt
    fill
    town.toml
    [exit 0]
    ");
}

#[test]
fn a_disk_without_a_single_free_byte_is_called_full() {
    let town = Town::unmade();
    let script = r#"
    fill 0
    show create "does not fit"
    rm fill
    gt doctor > /dev/null; echo "doctor: $?"
    gt bead list
    "#;
    let Some(said) = on_a_small_disk(&town, script) else { return };
    assert!(said.contains("error: the disk is full") && said.contains("[exit 4]"), "{said}");
    assert!(said.contains("doctor: 0") && said.contains("was here first"), "{said}");
}

#[test]
fn an_import_that_does_not_fit_leaves_nothing() {
    let town = Town::unmade();
    let script = r#"
    fill 400k
    before=$(gt bead export)
    n=0; while [ $n -lt 3000 ]; do n=$((n + 1)); echo "{\"id\":\"gt-$n\",\"title\":\"bead number $n of many\"}"; done > "$HOME/many"
    show bead import "$HOME/many"
    rm fill
    [ "$(gt bead export)" = "$before" ] || echo "something was left"
    gt doctor > /dev/null; echo "doctor: $?"
    gt bead import "$HOME/many" > /dev/null; echo "import: $?"
    gt doctor > /dev/null; echo "doctor: $?"
    "#;
    let Some(said) = on_a_small_disk(&town, script) else { return };
    snapshot!(said, @r"
    $ gt bead import [HOME]/many
    error: the disk is full: the store [HOME]/disk/.gt/town.db cannot grow
      caused by: database or disk is full
      caused by: Error code 13: database or disk is full
    hint: make room and try again; nothing was changed
    [exit 4]
    doctor: 0
    import: 0
    doctor: 0
    ");
}

#[test]
fn a_disk_that_cannot_be_written_is_named_and_nothing_is_lost() {
    let town = Town::unmade();
    let script = r#"
    before=$(gt bead export)
    mount -o remount,bind,ro "$HOME/disk" || exit 99
    show create "cannot be written"
    show ready
    show ready --json
    show config get runtime
    show config set runtime process
    show init "$HOME/disk/new"
    show doctor | grep -A1 -e store -e exit
    mount -o remount,bind,rw "$HOME/disk"
    [ "$(gt bead export)" = "$before" ] || echo "something was changed"
    gt doctor > /dev/null; echo "doctor: $?"
    "#;
    let Some(said) = on_a_small_disk(&town, script) else { return };
    snapshot!(said, @r#"
    $ gt create cannot be written
    error: the store [HOME]/disk/.gt/town.db cannot be opened
      caused by: unable to open database file
      caused by: Error code 14: unable to open database file
    hint: even a reader writes beside the store: see that its directory and disk can be written
    [exit 4]
    $ gt ready
    error: the store [HOME]/disk/.gt/town.db cannot be opened
      caused by: unable to open database file
      caused by: Error code 14: unable to open database file
    hint: even a reader writes beside the store: see that its directory and disk can be written
    [exit 4]
    $ gt ready --json
    {"error":{"code":"unreachable","hint":"even a reader writes beside the store: see that its directory and disk can be written","message":"the store [HOME]/disk/.gt/town.db cannot be opened: unable to open database file: Error code 14: unable to open database file"}}
    [exit 4]
    $ gt config get runtime

    [exit 0]
    $ gt config set runtime process
    error: the store [HOME]/disk/.gt/town.db cannot be opened
      caused by: unable to open database file
      caused by: Error code 14: unable to open database file
    hint: even a reader writes beside the store: see that its directory and disk can be written
    [exit 4]
    $ gt init [HOME]/disk/new
    error: [HOME]/disk/new lies inside the town [HOME]/disk
    hint: use that town, or choose a directory outside it
    [exit 1]
    ✗ store      the store [HOME]/disk/.gt/town.db cannot be opened: unable to open database file: Error code 14: unable to open database file
        → see that the file can be read and written, or bring back a copy
    --
    [exit 1]
    doctor: 0
    "#);
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let town = Town::with_rig();
    town.create(&["work"]);
    let script = "\"$0\" \"$@\" > /dev/full";
    for arguments in [&["ready"][..], &["ready", "--json"], &["bead", "export"], &["completions", "bash"], &["--help"]]
    {
        let output = town.command("sh").args(["-c", script, GT]).args(arguments).output().expect("sh is there");
        assert_eq!(output.status.code(), Some(1), "gt {arguments:?} > /dev/full");
    }
}

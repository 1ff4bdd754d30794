//! `gt bead import` and `export` through the binary. // SPEC B2

use std::fs;

use crate::town::{Town, session, snapshot};

/// A file as time makes them: cut lines, strange bytes, other systems' habits.
fn damaged() -> Vec<u8> {
    let mut file = b"\xEF\xBB\xBF{\"id\":\"gt-a1\",\"title\":\"After a byte order mark\"}\r\n".to_vec();
    let lines: [&[u8]; 18] = [
        b"",
        b"   ",
        b"{\"id\":\"gt-b2\",\"title\":\"Cut o",
        b"\x00\x01\xfe\xff garbage",
        b"{\"id\":\"gt-c3\",\"title\":\"not \xff UTF-8\"}",
        b"[1,2,3]",
        b"\"text\"",
        b"null",
        b"{\"id\":7,\"title\":\"a number for an id\"}",
        b"{\"id\":\"gt-d4\",\"title\":\"a text\",\"priority\":\"high\"}",
        b"{\"id\":\"gt-e5\",\"title\":\"labels\",\"labels\":\"not a list\"}",
        b"{\"id\":\"two words\",\"title\":\"bad id\"}",
        b"{\"type\":\"memory\",\"text\":\"no id, no bead\"}",
        b"{\"id\":\"gt-f6\",\"title\":\"first version\"}",
        b"{\"id\":\"gt-f6\",\"title\":\"last version\",\"unknown\":{\"kept\":[1,null]}}\r",
        b"{\"id\":\"gt-g7\",\"title\":\"odd edges\",\"dependencies\":[{\"depends_on_id\":\"gt-a1\",\"type\":\"smells-like\"},{\"depends_on_id\":\"gt-m0\",\"type\":\"blocks\"},{\"type\":\"blocks\"},{\"depends_on_id\":\"external:gt:gt-a1\",\"type\":\"blocks\"},{\"depends_on_id\":\"gt-g7\",\"type\":\"blocks\"}]}",
        b"{\"id\":\"gt-h8\",\"title\":\"cycle\",\"dependencies\":[{\"depends_on_id\":\"gt-g7\",\"type\":\"parent-child\"}]}",
        b"{\"id\":\"gt-i9\",\"title\":\"gone\",\"status\":\"tombstone\"}",
    ];
    for line in lines {
        file.extend_from_slice(line);
        file.push(b'\n');
    }
    file.extend_from_slice(b"{\"id\":\"gt-j0\",\"title\":\"no newline at the end\"}");
    file
}

#[test]
fn a_damaged_file_is_taken_as_far_as_it_goes_and_reported() {
    let town = Town::with_rig();
    town.write("issues.jsonl", damaged());
    let before = town.state();
    let strict = town.gt(["bead", "import", "issues.jsonl", "--strict"]);
    let rehearsed = town.gt(["bead", "import", "issues.jsonl", "--dry-run"]);
    assert_eq!(town.state(), before);
    let answers = [
        strict,
        rehearsed,
        town.gt(["bead", "import", "issues.jsonl"]),
        town.gt(["bead", "import", "issues.jsonl"]),
        town.gt(["bead", "import", "issues.jsonl", "--json"]),
        town.gt(["bead", "export"]),
    ];
    snapshot!(session(answers), @r#"
    $ gt bead import issues.jsonl --strict
    ! error: 10 of 18 lines cannot be read; the first is line 4: not valid JSON: EOF while parsing a string at column 28
    ! hint: mend the lines, or leave `--strict` away to skip them; nothing was written
    [exit 1]
    $ gt bead import issues.jsonl --dry-run
    Dry run, nothing is changed. This would happen:
    Would import issues.jsonl: 6 new, 0 changed, 0 as they were.
      lines skipped, because they cannot be read: 10 (line 4: not valid JSON: EOF while parsing a string at column 28; line 5: not valid UTF-8; line 6: not valid UTF-8; line 7: a JSON list, where an object is needed; also 8, 9, 10, 11, 12, 13)
      earlier lines of an id that comes again: 1
      records without an id, which are no beads: 1
      dependencies left out, because they close a cycle: 1 (gt-g7 → gt-g7)
      dependencies left out, because they name no target: 1
      dependencies on beads that are not here: 1
      dependencies written as external:…: 1
      dependencies of unknown type, which never block: 1 (smells-like: 1)
      deleted beads (tombstones): 1
    $ gt bead import issues.jsonl
    Imported issues.jsonl: 6 new, 0 changed, 0 as they were.
      lines skipped, because they cannot be read: 10 (line 4: not valid JSON: EOF while parsing a string at column 28; line 5: not valid UTF-8; line 6: not valid UTF-8; line 7: a JSON list, where an object is needed; also 8, 9, 10, 11, 12, 13)
      earlier lines of an id that comes again: 1
      records without an id, which are no beads: 1
      dependencies left out, because they close a cycle: 1 (gt-g7 → gt-g7)
      dependencies left out, because they name no target: 1
      dependencies on beads that are not here: 1
      dependencies written as external:…: 1
      dependencies of unknown type, which never block: 1 (smells-like: 1)
      deleted beads (tombstones): 1
    $ gt bead import issues.jsonl
    Imported issues.jsonl: 0 new, 0 changed, 6 as they were.
      lines skipped, because they cannot be read: 10 (line 4: not valid JSON: EOF while parsing a string at column 28; line 5: not valid UTF-8; line 6: not valid UTF-8; line 7: a JSON list, where an object is needed; also 8, 9, 10, 11, 12, 13)
      earlier lines of an id that comes again: 1
      records without an id, which are no beads: 1
      dependencies left out, because they close a cycle: 1 (gt-g7 → gt-g7)
      dependencies left out, because they name no target: 1
      dependencies on beads that are not here: 1
      dependencies written as external:…: 1
      dependencies of unknown type, which never block: 1 (smells-like: 1)
      deleted beads (tombstones): 1
    $ gt bead import issues.jsonl --json
    {"bad_dependencies":1,"created":0,"dangling":1,"dropped_edges":[["gt-g7","gt-g7"]],"dry_run":false,"duplicates":1,"kept_newer":[],"lines":18,"skipped":[{"line":4,"reason":"not valid JSON: EOF while parsing a string at column 28"},{"line":5,"reason":"not valid UTF-8"},{"line":6,"reason":"not valid UTF-8"},{"line":7,"reason":"a JSON list, where an object is needed"},{"line":8,"reason":"a JSON text, where an object is needed"},{"line":9,"reason":"a JSON null, where an object is needed"},{"line":10,"reason":"`id` must be a text"},{"line":11,"reason":"`priority` must be a whole number"},{"line":12,"reason":"`labels` must be a list of texts"},{"line":13,"reason":"`two words` cannot be an id: it must be one word of at most 200 characters"}],"tombstones":1,"unchanged":6,"unknown_types":{"smells-like":1},"updated":0,"without_id":1,"wrapped":1}
    $ gt bead export
    {"id":"gt-a1","title":"After a byte order mark","status":"open","priority":2}
    {"id":"gt-f6","title":"last version","status":"open","priority":2,"unknown":{"kept":[1,null]}}
    {"id":"gt-g7","title":"odd edges","status":"open","priority":2,"dependencies":[{"issue_id":"gt-g7","type":"blocks","depends_on_id":"external:gt:gt-a1"},{"issue_id":"gt-g7","depends_on_id":"gt-a1","type":"smells-like"},{"issue_id":"gt-g7","depends_on_id":"gt-m0","type":"blocks"}]}
    {"id":"gt-h8","title":"cycle","status":"open","priority":2,"dependencies":[{"issue_id":"gt-h8","depends_on_id":"gt-g7","type":"parent-child"}]}
    {"id":"gt-i9","title":"gone","status":"tombstone","priority":2}
    {"id":"gt-j0","title":"no newline at the end","status":"open","priority":2}
    "#);
    town.assert_healthy();
}

#[test]
fn importing_again_is_no_event() {
    let town = Town::with_rig();
    town.write("issues.jsonl", damaged());
    town.gt(["bead", "import", "issues.jsonl"]).success();
    let before = town.state();
    town.gt(["bead", "import", "issues.jsonl"]).success();
    assert_eq!(town.state(), before);
}

#[test]
fn huge_titles_and_deep_nesting_do_no_harm() {
    let town = Town::with_rig();
    let huge = format!(r#"{{"id":"gt-h1","title":"{}"}}"#, "x".repeat(10_000_000));
    let deep = format!(r#"{{"id":"gt-d1","title":"deep","metadata":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let fine = r#"{"id":"gt-f1","title":"fine"}"#;
    let answer = town.call(["bead", "import", "-"]).stdin([&huge, &deep, fine].join("\n").as_bytes()).run();
    answer.success();
    assert_eq!(town.gt(["show", "gt-f1", "--json"]).json()["title"], "fine");
    snapshot!(answer, @r"
    $ gt bead import -
    Imported standard input: 2 new, 0 changed, 0 as they were.
      lines skipped, because they cannot be read: 1 (line 1: the title of gt-h1 has 10000000 characters; at most 500 fit)
    ");
    let exported = town.export();
    let fresh = Town::with_rig();
    fresh.call(["bead", "import", "-"]).stdin(exported.as_bytes()).run().success();
    assert_eq!(fresh.export(), exported);
    town.assert_healthy();
}

#[test]
fn an_export_imports_into_a_fresh_town_and_exports_the_same() {
    let town = Town::with_rig();
    town.write("issues.jsonl", damaged());
    town.gt(["bead", "import", "issues.jsonl"]).success();
    let parent = town.create(&["An epic", "--rig", "shop", "--type", "epic"]);
    let child =
        town.create(&["A child", "--parent", &parent, "--label", "b,a", "--description", "ünïcode\n\ttabs \"quotes\""]);
    town.gt(["bead", "comment", "add", &child, "a comment"]).success();
    town.gt(["bead", "dep", "add", &child, "gt-j0", "--type", "waits-for", "--gate", "any-children"]).success();
    town.gt(["close", "gt-a1", "--reason", "done"]).success();
    town.gt(["bead", "update", "gt-f6", "--defer", "2099-01-01", "--pinned"]).success();
    let answer = town.gt(["bead", "export", "--output", "out.jsonl"]);
    answer.success();
    let exported = town.export();
    assert_eq!(town.read("out.jsonl"), exported);
    let fresh = Town::with_rig();
    let out = town.path("out.jsonl").display().to_string();
    fresh.gt(["bead", "import", &out, "--strict"]).success();
    assert_eq!(fresh.export(), exported);
    assert_eq!(fresh.gt(["ready", "--json"]).stdout, town.gt(["ready", "--json"]).stdout);
    fresh.assert_healthy();
}

#[test]
fn files_that_are_not_there_or_cannot_be_written() {
    let town = Town::with_rig();
    snapshot!(town.refused(["bead", "import", "missing.jsonl"]), @r"
    $ gt bead import missing.jsonl
    ! error: cannot read missing.jsonl: No such file or directory (os error 2)
    ! hint: give a file that is there, or `-` for standard input
    [exit 3]
    ");
    snapshot!(town.refused(["bead", "import", "."]), @r"
    $ gt bead import .
    ! error: cannot read .: Is a directory (os error 21)
    ! hint: give a file in it, such as .beads/issues.jsonl
    [exit 1]
    ");
    snapshot!(town.refused(["bead", "export", "--output", "no/such/dir/x.jsonl"]), @r"
    $ gt bead export --output no/such/dir/x.jsonl
    ! error: cannot write no/such/dir/x.jsonl: there is no directory no/such/dir
    ! hint: make it with `mkdir -p no/such/dir`
    [exit 3]
    ");
    fs::create_dir(town.path("taken")).unwrap();
    snapshot!(town.refused(["bead", "export", "--output", "taken"]), @r"
    $ gt bead export --output taken
    ! error: cannot write taken: Is a directory (os error 21)
    ! hint: give the name of a file in it
    [exit 1]
    ");
    town.create(&["work"]);
    snapshot!(town.refused(["bead", "export", "--output", "/dev/full"]), @r"
    $ gt bead export --output /dev/full
    ! error: cannot write /dev/full: No space left on device (os error 28)
    ! hint: make room and try again; nothing was changed
    [exit 1]
    ");
}

#[test]
fn a_dry_export_writes_nothing() {
    let town = Town::holding(&[r#"{"id":"gt-a1","title":"A"}"#]);
    town.write("old.jsonl", "old");
    let answers = [
        town.gt(["bead", "export", "--output", "old.jsonl", "--dry-run"]),
        town.gt(["bead", "export", "--output", "new.jsonl", "--dry-run", "--json"]),
    ];
    assert_eq!(town.read("old.jsonl"), "old");
    assert!(!town.path("new.jsonl").exists());
    snapshot!(session(answers), @r#"
    $ gt bead export --output old.jsonl --dry-run
    Dry run, nothing is changed. This would happen:
    Would write 1 bead to old.jsonl.
    $ gt bead export --output new.jsonl --dry-run --json
    {"beads":1,"dry_run":true,"file":"new.jsonl"}
    "#);
}

#[test]
fn an_export_goes_where_a_link_points_and_keeps_permissions() {
    use std::os::unix::fs::PermissionsExt as _;
    let town = Town::holding(&[r#"{"id":"gt-a1","title":"A"}"#]);
    let mode = |name: &str| fs::metadata(town.path(name)).unwrap().permissions().mode() & 0o777;
    let old = town.write("old.jsonl", "old");
    fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("old.jsonl", town.path("link.jsonl")).unwrap();
    town.gt(["bead", "export", "--output", "link.jsonl"]).success();
    assert!(town.path("link.jsonl").is_symlink());
    assert_eq!((town.read("old.jsonl"), mode("old.jsonl")), (town.export(), 0o640));
    let script = "umask 027 && exec \"$0\" bead export --output new.jsonl";
    assert!(town.command("sh").args(["-c", script, crate::town::GT]).output().unwrap().status.success());
    assert_eq!(mode("new.jsonl"), 0o640);
}

#[test]
fn an_export_into_a_pipe_goes_through_it() {
    let town = Town::holding(&[r#"{"id":"gt-a1","title":"A"}"#]);
    let script = "mkfifo pipe && { cat pipe > got & } && \"$0\" bead export --output pipe && wait && test -p pipe";
    assert!(town.command("sh").args(["-c", script, crate::town::GT]).output().unwrap().status.success());
    assert_eq!(town.read("got"), town.export());
}

#[test]
fn an_empty_file_is_nothing_to_do() {
    let town = Town::with_rig();
    town.write("empty.jsonl", "");
    let answers = [town.gt(["bead", "import", "empty.jsonl"]), town.call(["bead", "import", "-", "--json"]).run()];
    assert_eq!(answers.each_ref().map(|answer| answer.code), [0, 0]);
    snapshot!(session(answers), @r#"
    $ gt bead import empty.jsonl
    Imported empty.jsonl: 0 new, 0 changed, 0 as they were.
    $ gt bead import - --json
    {"bad_dependencies":0,"created":0,"dangling":0,"dropped_edges":[],"dry_run":false,"duplicates":0,"kept_newer":[],"lines":0,"skipped":[],"tombstones":0,"unchanged":0,"unknown_types":{},"updated":0,"without_id":0,"wrapped":0}
    "#);
}

#[test]
fn a_file_is_bound_to_a_rig_whatever_its_prefixes() {
    let town = Town::with_rig();
    let lines = "{\"id\":\"hq-x1\",\"title\":\"A\"}\n{\"id\":\"other-y2\",\"title\":\"B\"}\n";
    let import = town.call(["bead", "import", "-", "--rig", "shop"]).stdin(lines.as_bytes()).run();
    snapshot!(session([import, town.gt(["bead", "list", "--rig", "shop"]), town.gt(["explain", "hq-x1"])]), @r"
    $ gt bead import - --rig shop
    Imported standard input: 2 new, 0 changed, 0 as they were.
    $ gt bead list --rig shop
    ○ hq-x1     P2  task  A
    ○ other-y2  P2  task  B
    $ gt explain hq-x1
    hq-x1 is ready:
      - it is ready; nothing holds it back, and nobody has taken it: `gt sling hq-x1`
    ");
}

#[test]
fn what_is_newer_here_stays_unless_overwritten() {
    let town = Town::with_rig();
    let line = b"{\"id\":\"gt-a1\",\"title\":\"Old\",\"updated_at\":\"2020-01-01T00:00:00Z\"}";
    town.call(["bead", "import", "-"]).stdin(line).run().success();
    town.gt(["bead", "update", "gt-a1", "--title", "New"]).success();
    let kept = town.call(["bead", "import", "-"]).stdin(line).run();
    let title = town.gt(["show", "gt-a1", "--json"]).json()["title"].clone();
    assert_eq!(title, "New");
    let taken = town.call(["bead", "import", "-", "--overwrite"]).stdin(line).run();
    snapshot!(session([kept, taken, town.gt(["bead", "list"])]), @r"
    $ gt bead import -
    Imported standard input: 0 new, 0 changed, 0 as they were.
      beads kept, because they were changed here later: 1 (gt-a1)
    $ gt bead import - --overwrite
    Imported standard input: 0 new, 1 changed, 0 as they were.
    $ gt bead list
    ○ gt-a1  P2  task  Old
    ");
}

#[test]
fn a_binding_survives_export_and_import() {
    let town = Town::with_rig();
    town.call(["bead", "import", "-", "--rig", "shop"]).stdin(br#"{"id":"hq-1","title":"A"}"#).run().success();
    let exported = town.export();
    assert_eq!(exported.trim(), r#"{"id":"hq-1","title":"A","status":"open","priority":2,"gt_rig":"shop"}"#);
    let fresh = Town::with_rig();
    fresh.call(["bead", "import", "-"]).stdin(exported.as_bytes()).run().success();
    assert_eq!(fresh.gt(["show", "hq-1", "--json"]).json()["rig"], "shop");
    assert_eq!(fresh.export(), exported);
}

#[test]
fn an_edge_type_of_a_stranger_cannot_drive_the_terminal() {
    let town = Town::with_rig();
    let edge = r#"{"depends_on_id":"gt-2","type":"a\u202eb\u001bc"}"#;
    town.write("issues.jsonl", format!(r#"{{"id":"gt-1","title":"a","dependencies":[{edge}]}}"#));
    let answer = town.gt(["bead", "import", "issues.jsonl"]);
    assert!(answer.stdout.contains("(a\u{FFFD}b\u{FFFD}c: 1)"), "{answer}");
}

//! Setting and unsetting: the value arrives, and everything else stays.

use super::*;

/// The same setting in the styles people write, each with comments all round.
const STYLES: &[&str] = &[
    "# top\n\n# above\n[scheduler] # on the header\n# inside\nmax_polecats = 1 # on the line\n# below\n\n# end\n",
    "# top\n# above\nscheduler.max_polecats = 1 # on the line\n# below\n[agents.x] # other\nmax = 1\n# end\n",
    "# top\nscheduler = { max_polecats = 1 } # on the line\n# below\n",
    "scheduler = { # a\n  max_polecats = 1, # b\n  # c\n} # d\n",
    "[scheduler]\n\tmax_polecats    =   1\t# on the line\n[agents.x]\nmax = 1 # other\n",
    "[scheduler]\nmax_polecats = 1 # no newline at the end",
    "# crlf\r\n[scheduler]\r\nmax_polecats = 1 # on the line\r\n# below\r\n",
    "\u{feff}# bom\n[scheduler]\nmax_polecats = 1 # x\n",
    "[ scheduler ]\n\"max_polecats\" = 0x1 # quoted\n",
];

fn comments(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split_once('#')).map(|(_, comment)| comment).collect()
}

#[test]
fn every_key_set_to_a_sample_reads_back_as_it() {
    for key in KEYS {
        let (name, raw) = (concrete(key), sample(key));
        for before in ["", "# only comments", &template(), STYLES[0], STYLES[1], STYLES[2]] {
            let after = set(before, &name, raw).unwrap();
            assert_eq!(value_in(&after, &name), key.kind.read_text(raw), "{name} in {before}");
            // Once more changes nothing, another value changes the one line.
            assert_eq!(set(&after, &name, raw).unwrap(), after);
            let (Initial::Default(other) | Initial::Unset { example: other }) = key.initial;
            let other_text = set(&after, &name, other).unwrap();
            assert_eq!(value_in(&other_text, &name), key.kind.read_text(other));
            for comment in comments(before) {
                assert!(other_text.contains(comment), "{name} lost {comment:?}");
            }
        }
    }
}

#[test]
fn a_key_set_and_unset_leaves_the_text_as_it_was() {
    for key in KEYS.iter().filter(|key| key.path.contains('.')) {
        let name = concrete(key);
        for before in ["", "# only comments\n", &template(), "[guards]\nfree_disk = '2 GB'\n"] {
            if before.contains("[guards]") && name == "guards.free_disk" {
                continue;
            }
            let after = set(before, &name, sample(key)).unwrap();
            assert_eq!(unset(&after, &name).unwrap().as_deref(), Some(before), "{name}");
            assert_eq!(unset(before, &name).unwrap(), None);
        }
    }
}

#[test]
fn a_changed_value_changes_only_itself() {
    for before in STYLES {
        let after = set(before, "scheduler.max_polecats", "23").unwrap();
        let (head, tail) = before.split_once("max_polecats").unwrap();
        let old = if tail.contains("0x1") { "0x1" } else { "1" };
        let expected = format!("{head}max_polecats{}", tail.replacen(old, "23", 1));
        assert_eq!(after, expected);
    }
}

#[test]
fn a_new_sibling_keeps_every_comment() {
    for before in STYLES {
        let after = set(before, "scheduler.order", "priority").unwrap();
        assert_eq!(comments(&after).len(), comments(before).len(), "{after}");
        assert_eq!(value_in(&after, "scheduler.max_polecats"), Some(Value::Integer(1)));
        assert_eq!(after.contains("\r\n"), before.contains("\r\n"));
        assert_eq!(after.matches('\n').count() == after.matches("\r\n").count(), before.contains("\r\n"));
        let back = unset(&after, "scheduler.order").unwrap().unwrap();
        assert_eq!(back.trim_end(), before.trim_end());
    }
}

#[test]
fn new_keys_follow_the_style_of_their_table() {
    let check = |before: &str, key: &str, raw: &str, expected: &str| {
        assert_eq!(set(before, key, raw).unwrap(), expected, "{key} in {before:?}");
    };
    check(
        "scheduler.order = 'fifo'\n# x\n",
        "scheduler.max_polecats",
        "3",
        "scheduler.order = 'fifo'\nscheduler.max_polecats = 3\n# x\n",
    );
    check(
        "scheduler = { order = 'fifo' }\n",
        "scheduler.max_polecats",
        "3",
        "scheduler = { order = 'fifo', max_polecats = 3 }\n",
    );
    check("scheduler = {}\n", "scheduler.max_polecats", "3", "scheduler = { max_polecats = 3 }\n");
    check("[scheduler]\n[queue]\n", "scheduler.max_polecats", "3", "[scheduler]\nmax_polecats = 3\n[queue]\n");
    check(
        "[rigs.a]\ngates = []\n[queue]\n",
        "rigs.b.gates",
        "x",
        "[rigs.a]\ngates = []\n[queue]\n\n[rigs.b]\ngates = [\"x\"]\n",
    );
    check("rigs.a.gates = []\n", "rigs.b.gates", "x", "rigs.a.gates = []\nrigs.b.gates = [\"x\"]\n");
    check("[rigs]\na.gates = []\n", "rigs.a.isolation", "none", "[rigs]\na.gates = []\na.isolation = \"none\"\n");
    check("rigs = { a = {} }\n", "rigs.b.isolation", "none", "rigs = { a = {}, b.isolation = \"none\" }\n");
    check("[agents.x.env]\nA = 'b'\n", "agents.x.max", "2", "[agents.x.env]\nA = 'b'\n\n[agents.x]\nmax = 2\n");
    check("", "rigs.\"a.b\".isolation", "none", "[rigs.\"a.b\"]\nisolation = \"none\"\n");
}

#[test]
fn comments_at_the_top_stay_at_the_top() {
    let check = |before: &str, key: &str, raw: &str, expected: &str| {
        assert_eq!(set(before, key, raw).unwrap(), expected, "{key} in {before:?}");
    };
    check("# a\n# b", "scheduler.max_polecats", "3", "# a\n# b\n\n[scheduler]\nmax_polecats = 3\n");
    check("# a\n", "default_agent", "codex", "# a\n\ndefault_agent = \"codex\"\n");
    check(
        "# a\n\n# of the table\n[queue]\n",
        "default_agent",
        "codex",
        "# a\n\ndefault_agent = \"codex\"\n\n# of the table\n[queue]\n",
    );
    check("# a\n[queue]\n", "default_agent", "codex", "# a\ndefault_agent = \"codex\"\n\n[queue]\n");
    check("[queue]\n", "default_agent", "codex", "default_agent = \"codex\"\n\n[queue]\n");
    let fresh = set(&template(), "scheduler.max_polecats", "3").unwrap();
    assert_eq!(fresh, format!("{}\n[scheduler]\nmax_polecats = 3\n", template()));
    let both = set(&fresh, "default_agent", "codex").unwrap();
    assert!(both.starts_with(&template()));
    let appended = format!("{both}[agents.mine]\nmax = 1\n");
    assert_eq!(value_in(&appended, "agents.mine.max"), Some(Value::Integer(1)));
}

#[test]
fn comments_inside_a_list_stay() {
    let before = "[rigs.r]\ngates = [ # why\n  \"a\", # first\n  \"b\", # second\n] # after\n";
    for raw in ["[]", "x", r#"["x", "y"]"#, r#"["x", "y", "z", "w"]"#] {
        let after = set(before, "rigs.r.gates", raw).unwrap();
        assert_eq!(comments(&after), comments(before), "{after}");
    }
    let grown = set(before, "rigs.r.gates", r#"["a", "b", "c"]"#).unwrap();
    assert_eq!(grown, before.replace("# second\n", "# second\n  \"c\",\n"));
}

#[test]
fn a_table_of_texts_is_changed_entry_by_entry() {
    let before = "[agents.x.env] # mine\nA = \"1\" # a\nB = \"2\" # b\n";
    let after = set(before, "agents.x.env", r#"{ B = "3", C = "4" }"#).unwrap();
    assert_eq!(after, "[agents.x.env] # mine\nB = \"3\" # b\nC = \"4\"\n");
    let after = set(before, "agents.x.env", "{}").unwrap();
    assert_eq!(after, "# mine\n\n[agents.x]\nenv = {}\n");
    let braces = "agents.x.env = { # mine\n  A = \"1\", # a\n  B = \"2\" }\n";
    let after = set(braces, "agents.x.env", "B=3").unwrap();
    assert_eq!(after, "agents.x.env = { # mine\n # a\n  B = \"3\" }\n");
    let dotted = "[agents.x]\nenv.A = \"1\" # a\nmax = 2\n";
    let after = set(dotted, "agents.x.env", "B=2").unwrap();
    assert_eq!(after, "[agents.x]\nenv.B = \"2\"\nmax = 2\n");
    assert_eq!(unset(dotted, "agents.x.env").unwrap().unwrap(), "[agents.x]\nmax = 2\n");
}

#[test]
fn unset_removes_the_line_and_an_emptied_header() {
    let check = |before: &str, key: &str, expected: &str| {
        assert_eq!(unset(before, key).unwrap().as_deref(), Some(expected), "{key} in {before:?}");
    };
    let key = "scheduler.order";
    check("[scheduler]\norder = 'fifo' # own\n", key, "");
    check(
        "# top\n\n# above\n[scheduler] # header\n# inside\norder = 'fifo' # own\n# below\n",
        key,
        "# top\n\n# above\n# header\n# inside\n# below\n",
    );
    check("scheduler = { order = 'fifo', max_polecats = 1 }\n", key, "scheduler = { max_polecats = 1 }\n");
    check("scheduler = { max_polecats = 1, order = 'fifo' }\n", key, "scheduler = { max_polecats = 1 }\n");
    check("# x\nscheduler = { order = 'fifo' } # own\n", key, "# x\n");
    check(
        "rigs = { a = { isolation = 'none' }, b = { gates = [] } }\n",
        "rigs.a.isolation",
        "rigs = { b = { gates = [] } }\n",
    );
    check("rigs = { a = { isolation = 'none' } }\n", "rigs.a.isolation", "");
    check("agents = { x.env.A = 'b', x.max = 1 }\n", "agents.x.env", "agents = { x.max = 1 }\n");
    check("scheduler = 5 # broken\n", "scheduler", "");
    check(
        "rigs = { a.isolation = 'none', b.gates = [], a.gates = [] }\n",
        "rigs.a.gates",
        "rigs = { a.isolation = 'none', b.gates = [] }\n",
    );
    check(
        "lanes = { # a\n  main = 1, # b\n  cron = 2, # c\n  # d\n}\n",
        "lanes.cron",
        "lanes = { # a\n  main = 1, # b\n # c\n  # d\n}\n",
    );
    check("lanes = { main = 1 # a\n , cron = 2 # b\n}\n", "lanes.cron", "lanes = { main = 1 # a\n  # b\n}\n");
    check("[rigs]\n[rigs.a]\nisolation = 'none'\n", "rigs.a.isolation", "");
    check("[agents.x]\nmax = 1\n[agents.x.env]\nA = 'b'\n", "agents.x.env", "[agents.x]\nmax = 1\n");
    check("[rigs.r]\ngates = [\n  'a', # x\n]\nisolation = 'none'\n", "rigs.r.gates", "[rigs.r]\nisolation = 'none'\n");
    check("a = 1\n\nb = 2\n\nc = 3\n", "b", "a = 1\n\nc = 3\n");
}

#[test]
fn unset_repairs_what_the_config_refuses() {
    let unknown = unset("[schedular]\nmax = 1\n", "schedular.max").unwrap();
    assert_eq!(unknown.as_deref(), Some(""));
    let ill_typed = "[scheduler]\nmax_polecats = 'three' # x\n";
    assert_eq!(unset(ill_typed, "scheduler.max_polecats").unwrap().as_deref(), Some(""));
    let set = set(ill_typed, "scheduler.max_polecats", "3").unwrap();
    assert_eq!(set, "[scheduler]\nmax_polecats = 3 # x\n");
}

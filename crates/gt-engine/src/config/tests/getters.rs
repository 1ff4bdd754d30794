//! Reading settings: values, defaults, order, and typed access.

use super::*;

#[test]
fn an_empty_file_gives_the_defaults() {
    let config = Config::parse("").unwrap();
    assert_eq!(config.integer("scheduler.max_polecats"), -1);
    assert_eq!(config.value("scheduler.batch_size"), Some(Value::Auto));
    assert_eq!(config.duration("scheduler.start_timeout"), Duration::from_mins(5));
    assert!(!config.boolean("queue.enabled"));
    assert_eq!(config.size_bytes("guards.free_memory"), 256_000_000);
    assert_eq!(config.text("default_agent").as_deref(), Some("claude"));
    assert_eq!(config.text("runtime"), None);
    assert_eq!(config.texts("convoy.notify"), Vec::<String>::new());
    assert_eq!(config.value("store.url"), None);
    assert_eq!(config, Config::default());
}

#[test]
fn the_file_beats_the_default_and_says_so() {
    let config = Config::parse("[scheduler]\nmax_polecats = 3\n").unwrap();
    let set = config.get("scheduler.max_polecats").unwrap();
    assert_eq!((set.value, set.source), (Some(Value::Integer(3)), Source::File));
    let kept = config.get("scheduler.max_failures").unwrap();
    assert_eq!((kept.value, kept.source), (Some(Value::Integer(3)), Source::Default));
    assert!(kept.help.contains("circuit"));
}

#[test]
fn names_are_taken_as_they_are() {
    let text = "[rigs.\"a.b\"]\ngates = ['x', 'y']\n[agents.z]\nmax = 1\n[agents.b.env]\nK = 'v'\n";
    let config = Config::parse(text).unwrap();
    let key = join(&["rigs", "a.b", "gates"]);
    assert_eq!(key, "rigs.\"a.b\".gates");
    assert_eq!(config.texts(&key), ["x", "y"]);
    assert_eq!(config.text("rigs.\"a.b\".isolation").as_deref(), Some("worktree"));
    assert_eq!(config.names("agents"), ["b", "z"]);
    assert_eq!(config.names("hosts"), Vec::<&str>::new());
}

#[test]
fn built_in_lanes_have_defaults_and_others_have_none() {
    let config = Config::parse("lanes.research = 8").unwrap();
    assert_eq!(config.integer("lanes.delegate"), 100);
    assert_eq!(config.integer("lanes.research"), 8);
    assert_eq!(config.value("lanes.other"), None);
}

#[test]
fn the_list_is_stable_and_has_names_only_where_set() {
    let keys = |text: &str| {
        let list = Config::parse(text).unwrap().list();
        list.into_iter().map(|setting| setting.key).collect::<Vec<_>>()
    };
    let plain = KEYS.iter().filter(|key| key.is_plain()).map(|key| key.path);
    assert_eq!(keys(""), plain.collect::<Vec<_>>());
    let text = "[lanes]\nz = 1\nmain = 3\na = 2\n[rigs.r]\nisolation = 'none'\n";
    let more = keys(text).into_iter().filter(|key| !keys("").contains(key));
    assert_eq!(more.collect::<Vec<_>>(), ["rigs.r.isolation", "lanes.a", "lanes.z"]);
}

#[test]
fn every_form_of_table_is_read() {
    for text in [
        "agents.x.env.K = 'v'",
        "agents.x.env = { K = 'v' }",
        "[agents]\nx = { env.K = 'v' }",
        "[agents.x]\nenv.K = 'v'",
        "[agents.x.env]\nK = 'v'",
    ] {
        let value = value_in(text, "agents.x.env");
        let Some(Value::Table(entries)) = value else {
            panic!("{text}");
        };
        assert_eq!(entries["K"].reveal(), "v");
    }
}

#[test]
fn a_name_from_elsewhere_may_be_anything() {
    let config = Config::parse("").unwrap();
    for name in ["", "a.b", "\"", "\0\n", "ä ö", &"x".repeat(100_000)] {
        assert_eq!(config.integer(&join(&["rigs", name, "max_polecats"])), -1);
    }
}

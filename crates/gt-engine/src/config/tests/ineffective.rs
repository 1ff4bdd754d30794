//! Settings that have no effect, and why.

use super::*;

fn names() -> KnownNames {
    KnownNames {
        rigs: vec!["shop".to_owned(), "a.b".to_owned()],
        hosts: vec!["here".to_owned()],
        ..KnownNames::default()
    }
}

fn found(text: &str) -> Vec<String> {
    let found = ineffective(&Config::parse(text).unwrap(), &names());
    found.iter().map(|one| format!("{one}; {}", one.hint)).collect()
}

#[test]
fn a_key_that_names_nothing_that_exists_has_no_effect() {
    let define = "define it first: `gt config set agents.own.command '[\"PROGRAM\"]'`";
    let kind = "the channel `x` has no kind; define it: `gt config set channels.x.kind webhook` (or telegram)";
    for (text, wanted) in [
        (
            "rigs.shpo.gates = []",
            "`rigs.shpo.gates` does nothing: there is no rig `shpo`; \
             did you mean `rigs.shop.gates`? Or add the rig: `gt rig add shpo PATH`",
        ),
        (
            "rigs.docks.merge = \"mr\"",
            "`rigs.docks.merge` does nothing: there is no rig `docks`; add the rig: `gt rig add docks PATH`",
        ),
        (
            "agents.cluade.max = 1",
            "`agents.cluade.max` does nothing: there is no agent `cluade`; did you mean `agents.claude.max`? \
             Or define it first: `gt config set agents.cluade.command '[\"PROGRAM\"]'`",
        ),
        (
            "agents.own.env = { A = \"b\" }",
            &format!("`agents.own.env` does nothing: there is no agent `own`; {define}"),
        ),
        (
            "hosts.there.max = 1",
            "`hosts.there.max` does nothing: the town does not run on a host `there`; for this host set `hosts.here.max`",
        ),
        ("channels.x.lane = \"main\"", &format!("`channels.x.lane` does nothing: {kind}")),
        ("channels.x.url = \"https://h.example\"", &format!("`channels.x.url` does nothing yet: {kind}")),
        (
            "lanes.polecat = 3",
            "`lanes.polecat` does nothing: polecats are limited by the scheduler; `gt config set scheduler.max_polecats N`",
        ),
        (
            "store.url = \"postgres://me:hush@db/town\"",
            "`store.url` does nothing: this version keeps all data in the town's own SQLite file; \
             leave it out: `gt config unset store.url`",
        ),
    ] {
        assert_eq!(found(text), [wanted], "{text}");
    }
}

#[test]
fn a_value_that_names_nothing_that_exists_has_no_effect() {
    let ops = "define it: `gt config set channels.ops.kind webhook` (or telegram)";
    let entry = "give `desktop`, `channel:NAME`, an http(s) URL or a command";
    let telegram = "[channels.ops]\nkind = \"telegram\"\n";
    for (text, wanted) in [
        (
            "default_agent = \"cluade\"",
            "`default_agent` does nothing: there is no agent `cluade`; did you mean `claude`? \
             Or define it first: `gt config set agents.cluade.command '[\"PROGRAM\"]'`",
        ),
        (
            "heartbeat.agent = \"own\"",
            "`heartbeat.agent` does nothing: there is no agent `own`; \
             define it first: `gt config set agents.own.command '[\"PROGRAM\"]'`",
        ),
        (
            &format!("{telegram}agent = \"own\""),
            "`channels.ops.agent` does nothing: there is no agent `own`; \
             define it first: `gt config set agents.own.command '[\"PROGRAM\"]'`",
        ),
        ("heartbeat.target = \"ops\"", &format!("`heartbeat.target` does nothing: there is no channel `ops`; {ops}")),
        (
            &format!("heartbeat.target = \"opps\"\n{telegram}"),
            "`heartbeat.target` does nothing: there is no channel `opps`; did you mean `ops`? \
             Or define it: `gt config set channels.opps.kind webhook` (or telegram)",
        ),
        (
            "convoy.notify = [\"desktop\", \"channel:ops:7\"]",
            &format!("`channel:ops` in `convoy.notify` does nothing: there is no channel `ops`; {ops}"),
        ),
        (
            "convoy.notify = [\"desktp\"]",
            &format!(
                "`desktp` in `convoy.notify` does nothing: there is no such notification; did you mean `desktop`? Or {entry}"
            ),
        ),
        (
            "convoy.notify = [\"chanel:ops\"]",
            &format!(
                "`chanel:ops` in `convoy.notify` does nothing: there is no such notification; did you mean `channel:ops`? Or {entry}"
            ),
        ),
        (
            "convoy.notify = [\"slack://hush@team\"]",
            &format!("`slack://…` in `convoy.notify` does nothing: there is no such notification; {entry}"),
        ),
    ] {
        assert_eq!(found(text), [wanted], "{text}");
    }
}

#[test]
fn a_setting_that_is_not_read_where_it_stands_has_no_effect() {
    let hook = "[channels.ops]\nkind = \"webhook\"\n";
    for leaf in ["token", "agent", "lane"] {
        let wanted = format!(
            "`channels.ops.{leaf}` does nothing: only a channel of the kind telegram has a `{leaf}`; \
             the kind of `ops` is webhook: `docs/channels.md`"
        );
        assert_eq!(found(&format!("{hook}{leaf} = \"claude\"")), [wanted]);
    }
    let telegram = "[channels.ops]\nkind = \"telegram\"\ntoken = \"t\"\nagent = \"claude\"\nlane = \"main\"\n";
    assert_eq!(found(telegram), Vec::<String>::new());
    let wanted = "`channels.ops.secret` does nothing: only a channel of the kind webhook has a `secret`; \
                  the kind of `ops` is telegram: `docs/channels.md`";
    assert_eq!(found(&format!("{telegram}secret = \"s\"")), [wanted]);
    // How the built-in agents take their assignment is not for the config to say.
    let wanted = "`agents.claude.prompt` does nothing: the agent `claude` has no command of its own; \
                  set it first: `gt config set agents.claude.command '[\"PROGRAM\"]'`";
    assert_eq!(found("agents.claude.prompt = \"stdin\""), [wanted]);
}

#[test]
fn a_setting_that_names_something_that_exists_is_fine() {
    for text in [
        "rigs.shop.gates = []\nrigs.\"a.b\".merge = \"mr\"",
        "agents.claude.max = 1\nagents.shell.env = { A = \"b\" }\ndefault_agent = \"shell\"",
        "agents.own.command = [\"x\"]\nagents.own.max = 1\nagents.own.prompt = \"stdin\"\ndefault_agent = \"own\"",
        "agents.talks.headless = [\"x\"]\nagents.talks.max = 1\nheartbeat.agent = \"talks\"",
        "hosts.here.max = 1",
        "channels.ops.kind = \"webhook\"\nchannels.ops.secret = \"s\"\nconvoy.notify = [\"channel:ops\", \"channel:ops:7\"]",
        "convoy.notify = [\"desktop\", \"https://h.example\", \"notify-send\", \"desktop.sh\", \"./tell.sh a://b\", \"echo a:b\"]",
        "channels.ops.kind = \"webhook\"\nheartbeat.target = \"ops\"",
        "heartbeat.target = \"none\"\nlanes.own = 3\nlanes.main = 1",
        "# comments only",
    ] {
        assert_eq!(found(text), Vec::<String>::new(), "{text}");
    }
    assert_eq!(found(&template()), Vec::<String>::new());
}

#[test]
fn a_channel_may_get_its_kind_last() {
    let refuse = |text: &str, key: &str| refuse_ineffective(&Config::parse(text).unwrap(), &names(), key);
    let parts = "channels.x.url = \"https://h.example\"\nchannels.x.lane = \"main\"\nchannels.x.allow = [\"@you\"]";
    assert_eq!(refuse(parts, "channels.x.url").unwrap().unwrap().key, "channels.x.url");
    assert_eq!(refuse(parts, "channels.x.allow").unwrap().unwrap().key, "channels.x.allow");
    assert!(refuse(parts, "channels.x.lane").is_err());
    // A name that is close to one that exists is more likely mistyped.
    let mistyped = "channels.ops.kind = \"webhook\"\nchannels.opps.url = \"https://h.example\"";
    assert!(refuse(mistyped, "channels.opps.url").is_err());
    assert_eq!(refuse(mistyped, "channels.ops.kind").unwrap(), None);
}

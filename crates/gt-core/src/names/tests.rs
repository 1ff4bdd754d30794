//! Tests of the name pool, and of reading sessions' names.

use std::collections::BTreeSet;

use super::*;

#[test]
fn names_are_different_and_never_run_out() {
    let names: Vec<String> = proposals().take(1000).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 1000);
    assert_eq!(names[0], "Toast");
    assert_eq!(names[60], "Polecat-61");
}

#[test]
fn sessions_of_different_polecats_differ() {
    let sessions: BTreeSet<String> = proposals().take(200).map(|name| session("gt", &name)).collect();
    assert_eq!(sessions.len(), 200);
}

const RIGS: &[(&str, &str)] = &[
    ("sh", "shop"),
    ("sh-b", "backyard"),
    ("web", "web"),
    ("x", "x-ray"),
    ("hq", "offices"),
    ("", "without a prefix"),
];

/// The whole table in lines of `session: whose`, so that it can be read.
#[test]
fn a_sessions_name_says_whose_it_is() {
    use Role::*;
    let table = [
        ("hq-mayor", Mayor),
        ("hq-deacon", Deacon),
        ("hq-boot", Boot),
        ("hq-overseer", Overseer),
        ("hq-dog-rex", Dog { name: "rex" }),
        ("hq-dog-good-boy", Dog { name: "good-boy" }),
        // A rig may have the town's prefix: what is no role of the town is of the rig.
        ("hq-witness", Witness { rig: "offices" }),
        ("hq-refinery", Refinery { rig: "offices" }),
        ("hq-crew-ann", Crew { rig: "offices", name: "ann" }),
        ("hq-toast", Polecat { rig: "offices", name: "toast" }),
        ("hq-dog", Polecat { rig: "offices", name: "dog" }),
        ("sh-witness", Witness { rig: "shop" }),
        ("sh-refinery", Refinery { rig: "shop" }),
        ("sh-crew-bob", Crew { rig: "shop", name: "bob" }),
        ("sh-crew-mary-jane", Crew { rig: "shop", name: "mary-jane" }),
        ("sh-ember", Polecat { rig: "shop", name: "ember" }),
        ("sh-polecat-61", Polecat { rig: "shop", name: "polecat-61" }),
        ("sh-mayor", Polecat { rig: "shop", name: "mayor" }),
        ("sh-crew", Polecat { rig: "shop", name: "crew" }),
        ("web-wick", Polecat { rig: "web", name: "wick" }),
        ("x-witness", Witness { rig: "x-ray" }),
        // The longest prefix that fits.
        ("sh-b-ember", Polecat { rig: "backyard", name: "ember" }),
        ("sh-b-crew-bob", Crew { rig: "backyard", name: "bob" }),
        ("sh-bo", Polecat { rig: "shop", name: "bo" }),
    ];
    for (session, role) in table {
        assert_eq!(parse_session(session, RIGS), Ok(role), "{session}");
    }
}

#[test]
fn a_strangers_session_is_nobodys() {
    for session in
        ["", "-", "main", "shember", "webwitness", "zz-toast", "other-witness", "SH-ember", "-sh-ember", "hqmayor"]
    {
        let nobody = parse_session(session, RIGS);
        assert!(matches!(nobody, Err(NotOurs::UnknownPrefix { .. })), "{session}: {nobody:?}");
    }
    for session in ["sh-", "sh-crew-", "hq-"] {
        assert!(matches!(parse_session(session, RIGS), Err(NotOurs::Nobody { .. })), "{session}");
    }
    assert_eq!(parse_session("hq-mayor", &[]), Ok(Role::Mayor));
    assert!(parse_session("hq-toast", &[]).is_err(), "without rigs there are no polecats");
    assert_eq!(
        parse_session("zz-toast", RIGS).unwrap_err().to_string(),
        "no rig has the prefix that `zz-toast` begins with"
    );
}

#[test]
fn the_session_of_every_polecat_is_read_back() {
    for name in proposals().take(200) {
        let session = session("sh", &name);
        assert_eq!(parse_session(&session, RIGS), Ok(Role::Polecat { rig: "shop", name: &name.to_lowercase() }));
    }
}

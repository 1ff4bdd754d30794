//! Names of sessions and holders, made of a prefix, a rig and a polecat: the three lines of an input.
//!
//! Made of what the town takes, a name is one plain word that fits where names go; made of anything, it can be shown.
//! Reading a session's name never fails but by saying so, and what we make is read back.

use gt_core::names::{self, Role};
use gt_core::rig;
use gt_core::text::{check_word, one_line};

use crate::fuzz::{Target, Verdict};

pub(super) const TARGET: Target = Target { name: "session-names", check, tokens: TOKENS };

/// As many polecats as a town may have under one prefix in a search.
const POLECATS_MAX: usize = 500;

const TOKENS: &[&str] = &["gt", "Toast", "Polecat-61", "shop", "/polecats/", "a-b", "-", "_", "/", "..", "\u{130}"];

fn check(bytes: &[u8]) -> Verdict {
    let lossy = String::from_utf8_lossy(bytes);
    let mut lines = lossy.split('\n');
    let mut next = || lines.next().unwrap_or_default();
    let (prefix, rig_name, polecat) = (next(), next(), next());
    for any in [names::session(prefix, polecat), names::assignee(rig_name, polecat)] {
        assert!(!one_line(&any).contains(char::is_control), "it can be shown");
        assert!(any.len() <= prefix.len().max(rig_name.len()) + 3 * polecat.len() + 16);
    }
    names::parse_session(polecat, &[(prefix, rig_name)]).map(drop).unwrap_or_default();
    let is_taken = rig::check_prefix(prefix, &[]).is_ok() && rig::check_name(rig_name).is_ok();
    if is_taken {
        of_ours(prefix, rig_name, bytes.len() % POLECATS_MAX);
    }
    Verdict::accepted_if(is_taken)
}

fn of_ours(prefix: &str, rig_name: &str, number: usize) {
    let polecat = names::proposals().nth(number).expect("names never run out");
    let session = names::session(prefix, &polecat);
    assert!(rig::has_prefix(&session, prefix), "a session begins with its prefix");
    assert!(session.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "`{session}` is plain");
    let whose = names::parse_session(&session, &[(prefix, rig_name)]);
    assert_eq!(whose, Ok(Role::Polecat { rig: rig_name, name: &polecat.to_lowercase() }), "`{session}`");
    assert!(session.len() <= 64, "`{session}` fits into a list");
    let other = names::proposals().nth(number + 1).expect("names never run out");
    assert_ne!(session, names::session(prefix, &other), "each polecat has its own");
    let assignee = names::assignee(rig_name, &polecat);
    assert_eq!(check_word("assignee", &assignee), Ok(()), "a person could have typed `{assignee}`");
}

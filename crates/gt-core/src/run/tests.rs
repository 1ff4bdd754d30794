//! Tests of the words for runs.

use super::*;

#[test]
fn words_come_back_as_what_they_were() {
    for state in [RunState::Starting, RunState::Working, RunState::Ended] {
        assert_eq!(RunState::parse(state.as_str()), Some(state));
    }
    for outcome in Outcome::ALL {
        assert_eq!(Outcome::parse(outcome.as_str()), Some(outcome));
    }
    assert_eq!(RunState::parse("gone"), None);
    assert_eq!(Outcome::parse(""), None);
}

#[test]
fn only_what_the_agent_did_wrong_costs_an_attempt() {
    let costly: Vec<&str> = Outcome::ALL.into_iter().filter(|o| o.costs_an_attempt()).map(Outcome::as_str).collect();
    assert_eq!(costly, ["failed", "died", "timed-out"]);
}

#[test]
fn an_end_is_told_in_words() {
    assert_eq!(exit_words(Some(3), None), "exit code 3");
    assert_eq!(exit_words(None, Some(9)), "killed by signal 9");
    assert_eq!(exit_words(None, None), "nobody saw how it ended");
}

//! Tests of the words and changes of a convoy's status.

use super::*;

#[test]
fn words_are_read_as_people_and_other_tools_write_them() {
    for status in ConvoyStatus::ALL {
        assert_eq!(ConvoyStatus::parse(status.as_str()), Some(status));
    }
    assert_eq!(ConvoyStatus::parse(" STAGED_READY "), Some(ConvoyStatus::StagedReady));
    assert_eq!(ConvoyStatus::parse("staged_warnings"), Some(ConvoyStatus::StagedWarnings));
    for unknown in ["in_progress", "archived", "staged_unknown", ""] {
        assert_eq!(ConvoyStatus::parse(unknown), None, "{unknown}");
    }
}

#[test]
fn only_what_is_staged_is_staged_again() {
    use ConvoyStatus::{Closed, Open, StagedReady, StagedWarnings};
    let staged = [StagedReady, StagedWarnings];
    for from in ConvoyStatus::ALL {
        assert!(from.may_become(from) && from.may_become(Open) && from.may_become(Closed), "{from}");
        for to in staged {
            assert_eq!(from.may_become(to), staged.contains(&from), "{from} to {to}");
        }
    }
}

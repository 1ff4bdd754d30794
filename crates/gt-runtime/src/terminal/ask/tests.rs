//! Tests of which tmux will do.

use super::*;

#[test]
fn versions_are_told_apart() {
    for (version, will_do) in [
        ("3.3a", true),
        ("3.2", true),
        ("3.10", true),
        ("4.0", true),
        ("next-3.6", true),
        ("openbsd-7.5", true),
        ("3.1c", false),
        ("2.9", false),
        ("1.8", false),
        ("", false),
    ] {
        assert_eq!(is_new_enough(version), will_do, "{version}");
    }
}

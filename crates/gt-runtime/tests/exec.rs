//! Tests of the runtime `exec`: with scripts that are good and bad, and with the example of the project.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report; also in what tests share")]

mod exec {
    mod answers;
    mod calls;
    mod errands;
    mod host;
    mod place;
    mod watching;
}

//! gt.
fn main() {}

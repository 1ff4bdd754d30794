//! The one integration binary of this crate; each module below is a file of its own.

mod mutants;
#[cfg(unix)]
mod test_command;
mod tidy;

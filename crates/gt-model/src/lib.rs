//! A model that says what a script says, for tests with real agents: a server on loopback that answers as Anthropic's
//! messages and OpenAI's responses do.
//!
//! `Script` says what is answered to whom, `Model` serves it and remembers what it was asked. Not part of the product:
//! nothing but tests depends on this crate.

mod anthropic;
mod http;
mod openai;
mod script;
mod server;

pub use script::{Answer, BadScript, Script, WORK};
pub use server::{Model, Question, Vendor};

/// What every answer says it has cost, in tokens: read, and written.
pub const TOKENS: (u64, u64) = (100, 20);

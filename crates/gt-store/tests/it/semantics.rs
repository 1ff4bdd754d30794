//! semantics.

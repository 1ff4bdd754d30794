//! import.

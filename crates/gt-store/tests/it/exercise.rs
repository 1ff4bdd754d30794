//! exercise.

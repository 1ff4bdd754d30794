//! Planted defects: places at which the program can be broken on purpose, to see that the tests notice.
//!
//! `defect!("name")` is `false` in every build of the product, so the compiler removes what it guards. Only
//! `cargo xtask mutants` and `cargo xtask chaos --defect` build with `--cfg gt_defects`; the environment variable
//! `GT_DEFECT` then switches one defect on. `docs/simulation.md` lists them.

/// Whether the planted defect of this name is switched on.
#[macro_export]
macro_rules! defect {
    ($name:literal) => {
        $crate::defect::is_on($name)
    };
}

#[cfg(not(gt_defects))]
#[inline]
pub const fn is_on(_name: &str) -> bool {
    false
}

#[cfg(gt_defects)]
pub fn is_on(name: &str) -> bool {
    static ON: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    ON.get_or_init(|| std::env::var("GT_DEFECT").ok()).as_deref() == Some(name)
}

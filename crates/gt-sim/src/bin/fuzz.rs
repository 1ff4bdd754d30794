//! The program behind `cargo xtask fuzz`: searches targets for inputs that break their promises.
//!
//! Owns: its arguments, its report and its exit code. It notes in `target/fuzz/current` what it is about to try, since
//! an input that kills the process leaves no other trace.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use gt_sim::fuzz::search::search_stored;
use gt_sim::fuzz::{Target, targets};

const SEEDS_DEFAULT: u64 = 20_000;
const USAGE_STATUS: u8 = 2;

struct Order {
    targets: Vec<Target>,
    first_seed: u64,
    n_seeds: u64,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let order = match read(&args) {
        Ok(order) => order,
        Err(refusal) => {
            eprintln!("error: {refusal}");
            return ExitCode::from(USAGE_STATUS);
        }
    };
    match search_all(&order) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: cannot read the stored inputs or write a found one: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read(args: &[String]) -> Result<Order, String> {
    let (mut targets, mut seed, mut n_seeds) = (targets::ALL.to_vec(), None, None);
    let mut args = args.iter();
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("`{option}` needs a value"));
        match option.as_str() {
            "--target" => targets = vec![named(value()?)?],
            "--seed" => seed = Some(number(option, value()?)?),
            "--seeds" => n_seeds = Some(number(option, value()?)?),
            other => return Err(format!("`{other}` is none of `--target NAME`, `--seeds N` and `--seed S`")),
        }
    }
    let n_seeds = n_seeds.unwrap_or(if seed.is_some() { 1 } else { SEEDS_DEFAULT });
    Ok(Order { targets, first_seed: seed.unwrap_or(0), n_seeds })
}

fn named(name: &str) -> Result<Target, String> {
    let known = || targets::ALL.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
    let found = targets::ALL.iter().find(|target| target.name == name);
    found.copied().ok_or_else(|| format!("there is no target `{name}`; there are {}", known()))
}

fn number(option: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{option}` needs a whole number from 0 to {}, not `{text}`", u64::MAX))
}

/// Searches one target after the other; false when something was found.
fn search_all(order: &Order) -> io::Result<bool> {
    let folder = folder();
    fs::create_dir_all(&folder)?;
    let current = File::create(folder.join("current"))?;
    let mut is_clean = true;
    for target in &order.targets {
        is_clean &= search_one(target, order, &folder, &current)?;
    }
    drop(current);
    // Another search beside this one may have removed it.
    fs::remove_file(folder.join("current")).unwrap_or_default();
    Ok(is_clean)
}

fn search_one(target: &Target, order: &Order, folder: &Path, current: &File) -> io::Result<bool> {
    let since = Instant::now();
    let seeds = order.first_seed..order.first_seed.saturating_add(order.n_seeds);
    // Padded, so that a shorter note covers a longer one. A note that cannot be written is missed only by a crash.
    let note = |what: &str| current.write_all_at(format!("{what:<60}\n").as_bytes(), 0).unwrap_or_default();
    note(&format!("--target {} --seeds 0", target.name));
    let found = search_stored(target, seeds, folder, |seed| note(&format!("--target {} --seed {seed}", target.name)))?;
    match found {
        Ok(summary) => {
            let n_inputs = summary.n_inputs();
            let rate = n_inputs as f64 / since.elapsed().as_secs_f64();
            println!(
                "{:<14} {n_inputs:>9} inputs ({} stored), {:>9} accepted, {:>9} refused, {rate:>8.0} a second",
                target.name, summary.n_stored, summary.n_accepted, summary.n_refused
            );
            Ok(true)
        }
        Err(found) => {
            println!("{found}");
            Ok(false)
        }
    }
}

/// Beside the build's own output, which nobody commits.
fn folder() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    workspace.canonicalize().unwrap_or(workspace).join("target").join("fuzz")
}

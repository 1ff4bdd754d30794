//! `cargo xtask mutants`: shows that the simulation finds what is wrong, by breaking the town on purpose.
//!
//! Owns: the build with planted defects, for `cargo xtask chaos --defect` too, running it once for each defect, and the
//! table of what was found. Does not own: the list of defects (`mutants/defects.rs`) nor the simulation (`gt-sim`). All
//! defects are in one build; an environment variable switches one of them on.

mod defects;

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::agents::target;
use crate::{help, refuse};
use defects::{Defect, Towns};

/// The environment variable that names the defect that is switched on. `gt_core::defect!` reads it.
const SWITCH: &str = "GT_DEFECT";
/// What the compiler is told so that the defects are in the build.
const CFG: [&str; 2] = ["--cfg", "gt_defects"];
/// Set where cargo calls this program in place of the compiler.
const IN_PLACE_OF_RUSTC: &str = "GT_XTASK_IS_RUSTC";

/// How many seeds a defect has to be found in, unless told otherwise.
const N_SEEDS: u64 = 2_000;
/// How many seeds at the most show that the switch alone breaks nothing.
const N_CLEAN_SEEDS: u64 = 100;
/// How much of a verdict is shown.
const VERDICT_LETTERS: usize = 140;

/// Builds the simulation with every defect in it and looks for each of them; fails unless every one is found.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        return help();
    }
    let wishes = match Wishes::read(args) {
        Ok(wishes) => wishes,
        Err(obstacle) => return refuse(&obstacle),
    };
    match wishes.fulfil() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(cause) => {
            eprintln!("error: {cause}");
            ExitCode::FAILURE
        }
    }
}

struct Wishes {
    defects: Vec<&'static Defect>,
    n_seeds: u64,
    profile: String,
}

impl Wishes {
    fn read(args: &[OsString]) -> Result<Wishes, String> {
        let mut wishes = Wishes { defects: Vec::new(), n_seeds: N_SEEDS, profile: "checked".to_owned() };
        let mut words = args.iter().map(|arg| arg.to_string_lossy().into_owned());
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value"));
            match word.as_str() {
                "--only" => wishes.defects.push(by_name(&value()?)?),
                "--towns" => wishes.defects.extend(by_towns(&value()?)?),
                "--seeds" => wishes.n_seeds = number(&value()?)?,
                "--profile" => wishes.profile = value()?,
                other => return Err(format!("`mutants` has no `{other}`")),
            }
        }
        if wishes.defects.is_empty() {
            wishes.defects = defects::simulated().collect();
        }
        Ok(wishes)
    }

    /// Says whether all were found.
    fn fulfil(&self) -> Result<bool, String> {
        let begin = Instant::now();
        let simulation = Simulation { program: build("gt-sim", "sim", &self.profile)? };
        println!("built in {:.0} s", begin.elapsed().as_secs_f64());
        for towns in self.defects.iter().map(|defect| defect.towns).collect::<BTreeSet<Towns>>() {
            self.expect_clean(&simulation, towns)?;
        }
        let mut n_found = 0;
        for defect in &self.defects {
            let found = simulation.first_failure(defect.towns, Some(defect), self.n_seeds)?;
            println!("{}", row(defect, found.as_ref(), self.n_seeds));
            n_found += usize::from(found.is_some());
        }
        println!("{n_found} of {} defects found, in {:.0} s", self.defects.len(), begin.elapsed().as_secs_f64());
        Ok(n_found == self.defects.len())
    }

    /// The switch alone breaks nothing.
    fn expect_clean(&self, simulation: &Simulation, towns: Towns) -> Result<(), String> {
        let n_clean = self.n_seeds.min(N_CLEAN_SEEDS);
        if let Some(found) = simulation.first_failure(towns, None, n_clean)? {
            return Err(format!("without any defect seed {} of {towns} fails: {}", found.seed, found.verdict));
        }
        println!("without a defect {n_clean} seeds of {towns} are clean");
        Ok(())
    }
}

fn by_name(name: &str) -> Result<&'static Defect, String> {
    let mut known = defects::simulated();
    known.find(|defect| defect.name == name).ok_or_else(|| format!("there is no defect `{name}`"))
}

fn by_towns(word: &str) -> Result<impl Iterator<Item = &'static Defect> + use<>, String> {
    let towns = Towns::SIMULATED.into_iter().find(|towns| towns.to_string() == word);
    let towns = towns.ok_or_else(|| format!("there are no towns of `{word}`"))?;
    Ok(defects::simulated().filter(move |defect| defect.towns == towns))
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("`{word}` is not a number"))
}

fn row(defect: &Defect, found: Option<&Found>, n_seeds: u64) -> String {
    let width = defects::simulated().map(|defect| defect.name.len()).max().unwrap_or_default();
    let came_to = match found {
        Some(Found { seed, step, verdict }) => format!("seed {seed:>4}, step {step:>4}: {}", shortened(verdict)),
        None => format!("NOT FOUND in {n_seeds} seeds: {}", defect.what),
    };
    format!("{:<width$}  {came_to}", defect.name)
}

fn shortened(verdict: &str) -> String {
    match verdict.char_indices().nth(VERDICT_LETTERS) {
        Some((end, _)) => format!("{}…", &verdict[..end]),
        None => verdict.to_owned(),
    }
}

/// The simulation with the defects in it.
struct Simulation {
    program: PathBuf,
}

/// The lowest seed that fails, and why.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    seed: u64,
    step: u64,
    verdict: String,
}

impl Simulation {
    fn first_failure(&self, towns: Towns, defect: Option<&Defect>, n_seeds: u64) -> Result<Option<Found>, String> {
        let mut program = Command::new(&self.program);
        program.args(["--until-found", "--seeds", &n_seeds.to_string()]).env_remove(SWITCH);
        program.args(towns.option());
        program.envs(defect.map(|defect| (SWITCH, defect.name)));
        let ended = program.output().map_err(|error| format!("cannot start {}: {error}", self.program.display()))?;
        let said = String::from_utf8_lossy(&ended.stdout);
        match (ended.status.code(), said.lines().find_map(Found::read)) {
            (Some(0), None) => Ok(None),
            (Some(1), Some(found)) => Ok(Some(found)),
            _ => Err(format!("the simulation ended oddly ({}): {said}", ended.status)),
        }
    }
}

impl Found {
    /// Reads a line that the simulation prints for a seed that fails.
    fn read(line: &str) -> Option<Found> {
        let (seed, rest) = line.strip_prefix("seed ")?.split_once(", step ")?;
        let (step, rest) = rest.split_once(": ")?;
        let (verdict, _) = rest.rsplit_once(" — repeat with ")?;
        Some(Found { seed: seed.parse().ok()?, step: step.parse().ok()?, verdict: verdict.to_owned() })
    }
}

/// Refuses a name that no defect has.
pub(crate) fn require_defect(name: &str) -> Result<(), String> {
    let names: Vec<&str> = defects::all().map(|known| known.name).collect();
    if names.contains(&name) {
        return Ok(());
    }
    Err(format!("there is no defect `{name}`; there are {}", names.join(", ")))
}

/// Builds a `gt` with every defect in it.
pub(crate) fn build_gt(profile: &str) -> Result<PathBuf, String> {
    build("gt", "gt", profile)
}

/// Builds a program with every defect in it. It lies in a folder of its own, so it never passes for the product.
///
/// Cargo calls this program in place of the compiler for the crates of this workspace only, and keeps what comes of that
/// apart. So the crates of others are compiled once, for builds with and without defects.
fn build(package: &str, program: &str, profile: &str) -> Result<PathBuf, String> {
    let folder = target().join("defects");
    let this = env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--package", package, "--bin", program, "--profile", profile, "--target-dir"]);
    cargo.arg(&folder).current_dir(root()).env("CARGO_BUILD_BUILD_DIR", target());
    cargo.env("RUSTC_WORKSPACE_WRAPPER", this).env(IN_PLACE_OF_RUSTC, "1");
    match cargo.status() {
        Ok(ended) if ended.success() => {}
        Ok(ended) => return Err(format!("cargo cannot build {program} with defects ({ended})")),
        Err(error) => return Err(format!("cannot start cargo: {error}")),
    }
    let profile_folder = if profile == "dev" { "debug" } else { profile };
    Ok(folder.join(profile_folder).join(program))
}

/// Whether cargo calls this program in place of the compiler.
pub(crate) fn is_called_as_compiler() -> bool {
    env::var_os(IN_PLACE_OF_RUSTC).is_some()
}

/// Runs the compiler with the defects switched in: the first argument is the compiler, the others are for it.
pub(crate) fn compile(args: &[OsString]) -> ExitCode {
    let Some((compiler, rest)) = args.split_first() else { return refuse("there is no compiler to call") };
    let error = Command::new(compiler).args(rest).args(CFG).env_remove(IN_PLACE_OF_RUSTC).exec();
    eprintln!("error: cannot start {}: {error}", compiler.display());
    ExitCode::FAILURE
}

fn root() -> &'static Path {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates.and_then(Path::parent).expect("this crate lies in `crates/xtask`")
}

#[cfg(test)]
mod tests;

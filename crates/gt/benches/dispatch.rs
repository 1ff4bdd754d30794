//! `cargo bench --bench dispatch`: how long does it take from cause to agent, and what does waiting cost?
//!
//! Every figure stands beside bare process starts (and durable commits) of the same number in the same run; only the
//! ratios mean anything. Prints Markdown for `docs/benchmarks.md`; exits with 1 when a limit is not met.
//! `-- --quick` has fewer rounds and a shorter look at the idle daemon; `-- chain` measures the chain alone, `-- pass`
//! the passes, `-- convoys` the table of seed 001.

#[path = "dispatch/agent.rs"]
mod agent;
#[path = "dispatch/bare.rs"]
mod bare;
#[path = "dispatch/convoys.rs"]
mod convoys;
#[path = "dispatch/idle.rs"]
mod idle;
#[path = "dispatch/pass.rs"]
mod pass;
#[path = "dispatch/town.rs"]
mod town;
#[path = "dispatch/watch.rs"]
mod watch;

use std::time::{Duration, Instant};

use town::Town;

const FAN: usize = 100;
const CHAIN: usize = 100;

/// Ours beside the bare one, each the median of its rounds.
struct Pair {
    name: &'static str,
    ours: Duration,
    bare: Duration,
    most: f64,
}

impl Pair {
    fn new(name: &'static str, most: f64, rounds: Vec<(Duration, Duration)>) -> Pair {
        let (ours, bare) = rounds.into_iter().unzip();
        Pair { name, ours: median(ours), bare: median(bare), most }
    }

    fn ratio(&self) -> f64 {
        self.ours.as_secs_f64() / self.bare.as_secs_f64()
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(role) = agent::role(&arguments) {
        return role.play();
    }
    let is_quick = arguments.iter().any(|argument| argument == "--quick");
    let rounds = if is_quick { 5 } else { 15 };
    if arguments.iter().any(|argument| argument == "chain") {
        return report_pairs(&[chain(5)]);
    }
    if arguments.iter().any(|argument| argument == "pass") {
        return println!("{}", pass::measure(rounds).table());
    }
    if arguments.iter().any(|argument| argument == "convoys") {
        std::process::exit(i32::from(!convoys::report(rounds)));
    }
    let pairs = [fan_out(rounds), chain(if is_quick { 2 } else { 5 }), sling(rounds * 4)];
    let shim = shim(rounds);
    eprintln!("watching an idle daemon …");
    let idle = idle::measure(Duration::from_secs(if is_quick { 10 } else { 60 }));
    let passes = gt_runtime::terminal::is_installed().then(|| pass::measure(rounds));
    report(&pairs, &shim, &idle);
    println!(
        "\n{}",
        passes.as_ref().map_or_else(|| "tmux is not installed: no passes".to_owned(), pass::Passes::table)
    );
    let is_flat = passes.is_none_or(|passes| passes.is_well());
    println!();
    let is_fed = convoys::report(rounds);
    if pairs.iter().any(|pair| pair.ratio() > pair.most) || !idle.is_well(idle::MEMORY_MB_MAX) || !is_flat || !is_fed {
        std::process::exit(1);
    }
}

/// One blocker, 100 scheduled dependents, cap 128: from the start of `gt close` to the last agent's first instruction.
fn fan_out(rounds: usize) -> Pair {
    eprintln!("fan-out of {FAN} …");
    let town = Town::new(128, agent::STAMP);
    let mut times = Vec::new();
    for _ in 0..rounds {
        let blocker = town.create(1, None).remove(0);
        let dependents = town.create(FAN, Some(&blocker));
        town.gt(&[&["sling"], refs(&dependents).as_slice()].concat());
        town.forget_stamps();
        let start = agent::now();
        town.gt(&["close", &blocker]);
        let ours = town.await_stamps(FAN).saturating_sub(start);
        town.finish(&dependents);
        let bare = bare::starts(&town, FAN);
        times.push((ours, bare));
    }
    Pair::new("fan-out: a close to the last of 100 agents, beside 100 bare starts", 2.0, times)
}

/// A chain of 100 beads whose agents end them: from the first sling to the last close.
fn chain(rounds: usize) -> Pair {
    eprintln!("chain of {CHAIN} …");
    let town = Town::new(8, agent::FINISH);
    let mut times = Vec::new();
    for _ in 0..rounds {
        let beads = town.create_chain(CHAIN);
        town.gt(&["scheduler", "pause"]);
        town.gt(&[&["sling"], refs(&beads).as_slice()].concat());
        let start = Instant::now();
        town.gt(&["scheduler", "resume"]);
        town.await_closed(beads.last().expect("a chain has an end"));
        let ours = start.elapsed();
        times.push((ours, bare::chain(&town, CHAIN)));
    }
    Pair::new("chain of 100, beside process starts with one durable commit a link", 4.0, times)
}

/// One sling to a waiting daemon: from the start of the command to the agent's first instruction.
fn sling(rounds: usize) -> Pair {
    eprintln!("single slings …");
    let town = Town::new(128, agent::STAMP);
    let mut times = Vec::new();
    for _ in 0..rounds {
        let bead = town.create(1, None).remove(0);
        town.forget_stamps();
        let start = agent::now();
        town.gt(&["sling", &bead]);
        let ours = town.await_stamps(1).saturating_sub(start);
        town.finish(&[bead]);
        times.push((ours, bare::two_starts_three_commits(&town)));
    }
    Pair::new("one sling to a waiting daemon, beside two process starts and three durable commits", 3.0, times)
}

/// What a shim per run would cost: each agent started by a shell that waits for it. For decision 0004; no limit.
fn shim(rounds: usize) -> Pair {
    eprintln!("bare starts with a shim each …");
    let town = Town::new(1, agent::STAMP);
    let times = (0..rounds).map(|_| (bare::shimmed_starts(&town, FAN), bare::starts(&town, FAN))).collect();
    Pair::new("100 bare starts, each through a shim that waits for it, beside 100 without", f64::MAX, times)
}

fn refs(ids: &[String]) -> Vec<&str> {
    ids.iter().map(String::as_str).collect()
}

fn report(pairs: &[Pair], shim: &Pair, idle: &watch::Idle) {
    report_pairs(pairs);
    println!("| {} | {} | {} | {:.2} | | |", shim.name, show(shim.ours), show(shim.bare), shim.ratio());
    println!("\n{}", idle::table(idle));
}

fn report_pairs(pairs: &[Pair]) {
    println!("| what | gt | bare | ratio | limit | |\n|---|--:|--:|--:|--:|---|");
    for pair in pairs {
        let verdict = if pair.ratio() <= pair.most { "met" } else { "**not met**" };
        let (ours, bare) = (show(pair.ours), show(pair.bare));
        println!("| {} | {ours} | {bare} | {:.2} | {:.1} | {verdict} |", pair.name, pair.ratio(), pair.most);
    }
}

fn show(time: Duration) -> String {
    if time < Duration::from_millis(1) {
        return format!("{} µs", time.as_micros());
    }
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

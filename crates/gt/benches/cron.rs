//! `cargo bench --bench cron`: how late do jobs start, among very many, and what does waiting for them cost?
//!
//! 100,000 jobs are stored. 1,000 are due spread over one second, then 1,000 at the same instant, with the lane wide open;
//! beside each, in the same run, a bare loop that sleeps and starts the same program, which does nothing. Commands are timed while 100 jobs
//! start in each second, beside the same commands in a town without jobs. Prints Markdown for `docs/benchmarks.md`; exits
//! with 1 when a limit is not met. `-- --quick` has fewer rounds and a shorter look at the idle daemon.

#[path = "cron/bare.rs"]
mod bare;
#[path = "cron/town.rs"]
mod town;
#[path = "dispatch/watch.rs"]
mod watch;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use town::Town;
use watch::Idle;

const STORED: usize = 100_000;
const DUE: usize = 1_000;
/// How late the start of a job may be that is due among others. // SPEC K2
const LATE_MAX: Duration = Duration::from_millis(50);
/// How much longer as many at once may take than bare starts.
const AT_ONCE_MAX: f64 = 2.0;
/// What the daemon may take that has just run thousands of them: most of it is the store's cache.
const MEMORY_MB_MAX: u64 = 100;
/// How much longer a command may take that everybody waits for.
const COMMAND_MAX: f64 = 4.0;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let is_quick = arguments.iter().any(|argument| argument == "--quick");
    let rounds = if is_quick { 1 } else { 5 };
    eprintln!("storing {STORED} jobs …");
    let town = Town::new(STORED, DUE);
    let is_in_time = spread(&town, rounds);
    let is_fast = at_once(&town, rounds);
    let is_answering = commands(&town, if is_quick { 5 } else { 20 });
    eprintln!("watching an idle daemon …");
    let idle = Idle::watch(town.pid(), Duration::from_secs(if is_quick { 10 } else { 60 }));
    println!("\n{}", idle.table(&format!("{STORED} jobs"), MEMORY_MB_MAX));
    if !(is_in_time && is_fast && is_answering && idle.is_well(MEMORY_MB_MAX)) {
        std::process::exit(1);
    }
}

/// So many times, from soon on, with that much between two of them.
fn slots(n: usize, between: SignedDuration) -> Vec<Timestamp> {
    let first = Timestamp::now() + SignedDuration::from_secs(3);
    let first = Timestamp::from_second(first.as_second()).expect("not the end of time");
    (0..n).map(|at| first + between * i32::try_from(at).expect("few")).collect()
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "**not met**" }
}

/// Jobs that are due one after another: how late does each start?
fn spread(town: &Town, rounds: usize) -> bool {
    eprintln!("{DUE} jobs in one second …");
    let (mut ours, mut bare): (Vec<Duration>, Vec<Duration>) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let due = slots(DUE, SignedDuration::from_millis(1));
        town.add(&due);
        ours.extend(town.lateness(&due));
        bare.extend(bare::lateness(&slots(DUE, SignedDuration::from_millis(1))));
    }
    let is_met = percentile(&mut ours, 99) < LATE_MAX;
    println!("| {DUE} of {STORED} jobs due in one second: how late they start | p50 | p99 | last |\n|---|--:|--:|--:|");
    for (who, times) in [("gt", &mut ours), ("a loop that sleeps and starts", &mut bare)] {
        let [half, most, last] = [50, 99, 100].map(|percent| millis(percentile(times, percent)));
        println!("| {who} | {half} | {most} | {last} |");
    }
    println!("\nLimit of p99, {}: {}.\n", millis(LATE_MAX), verdict(is_met));
    is_met
}

/// Jobs that are due at the same instant: how long until the last one has started?
fn at_once(town: &Town, rounds: usize) -> bool {
    eprintln!("{DUE} jobs at once …");
    let last = |late: Vec<Duration>| late.into_iter().max().expect("some have started");
    let (mut ours, mut bare): (Vec<Duration>, Vec<Duration>) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let due = slots(DUE, SignedDuration::ZERO);
        town.add(&due);
        ours.push(last(town.lateness(&due)));
        bare.push(last(bare::lateness(&slots(DUE, SignedDuration::ZERO))));
    }
    let (ours, bare) = (percentile(&mut ours, 50), percentile(&mut bare, 50));
    let ratio = ours.as_secs_f64() / bare.as_secs_f64();
    println!(
        "| {DUE} of {STORED} jobs due at one instant: until the last has started | gt | bare starts | ratio | limit |"
    );
    println!("|---|--:|--:|--:|--:|\n| | {} | {} | {ratio:.2} | {AT_ONCE_MAX} |\n", millis(ours), millis(bare));
    ratio < AT_ONCE_MAX
}

/// Commands while jobs start all the time, beside the same where there is nothing.
fn commands(town: &Town, rounds: usize) -> bool {
    eprintln!("commands meanwhile …");
    let quiet = Town::new(0, 1);
    println!("| a command while 100 jobs start each second, {STORED} stored | p50 | p99 | in an empty town | ratio |");
    println!("|---|--:|--:|--:|--:|");
    let mut is_met = true;
    for (n, kind) in ["add", "edit", "show", "list --limit 20"].into_iter().enumerate() {
        let alone = (0..rounds).map(|round| quiet.time(&words(kind, n, round))).collect();
        let n_due = 1_000;
        let due = slots(n_due, SignedDuration::from_millis(10));
        town.add(&due);
        watch::wait(Duration::try_from(due[0].duration_since(Timestamp::now())).unwrap_or_default());
        let beside = (0..rounds).map(|round| town.time(&words(kind, n, round))).collect();
        town.lateness(&due);
        let (mut alone, mut beside): (Vec<Duration>, Vec<Duration>) = (alone, beside);
        let [half, most] = [50, 99].map(|percent| percentile(&mut beside, percent));
        let usual = percentile(&mut alone, 50);
        let ratio = half.as_secs_f64() / usual.as_secs_f64();
        is_met &= ratio < COMMAND_MAX;
        println!("| `gt cron {kind}` | {} | {} | {} | {ratio:.2} |", millis(half), millis(most), millis(usual));
    }
    println!("\nLimit of the ratio, {COMMAND_MAX}: {}.", verdict(is_met));
    is_met
}

/// The words of a command, each time about another job.
fn words(kind: &str, place: usize, round: usize) -> Vec<&'static str> {
    let text = match kind {
        "add" => format!("cron add new-{place}-{round} --every 30d --run true"),
        "edit" => format!("cron edit new-0-{round} --timeout 5m"),
        "show" => format!("cron show new-0-{round}"),
        _ => "cron list --limit 20".to_owned(),
    };
    text.leak().split(' ').collect()
}

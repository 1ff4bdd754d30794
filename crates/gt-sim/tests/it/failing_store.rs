//! A store that refuses every write, as one on a full disk does: the daemon retries, ever more rarely, and says so in few lines.

use std::time::Duration;

use gt_core::job::{Payload, Schedule};
use gt_engine::daemon::Cause;
use gt_sim::faults::Faults;
use gt_sim::knobs::Knobs;
use gt_sim::people::sling_of;
use gt_sim::processes::Errand;
use gt_sim::scenario::Scenario;
use gt_sim::stage::Stage;
use gt_store::{BeadPatch, JobPlan};
use jiff::SignedDuration;

/// A minute of failing is this many passes at most: the pause between two soon lasts for seconds.
const PASSES_PER_MINUTE: usize = 20;
const MINUTE: Duration = Duration::from_mins(1);

/// A daemon whose store refuses everything, and a bead whose deferral has ended meanwhile.
fn with_deadline_that_has_come() -> Scenario {
    let mut scenario = Scenario::new(Knobs { town: 2, heartbeat: 3600, ..Knobs::calm() });
    let bead = scenario.bead("Deferred");
    let stamp = scenario.stage.stamp("ann");
    let until = Some(Some(stamp.now + SignedDuration::from_secs(20)));
    let patch = BeadPatch { defer_until: until, ..BeadPatch::default() };
    scenario.stage.store.update_bead(&bead, &patch, &stamp).expect("a person may do this");
    let queue = scenario.launch(Errand::Sling(Box::new(sling_of(vec![bead]))));
    scenario.finish(queue);
    scenario.launch(Errand::Daemon);
    scenario.settle();
    refuse_writes(&scenario, true);
    scenario.pass(Duration::from_secs(20));
    scenario
}

fn refuse_writes(scenario: &Scenario, does: bool) {
    scenario.stage.world().lock().faults.refusal = u32::from(does);
}

fn n_lines(scenario: &Scenario, words: &str) -> usize {
    scenario.story().lines().filter(|line| line.contains(words)).count()
}

fn n_passes(scenario: &Scenario) -> usize {
    n_lines(scenario, "wants the turn")
}

/// Lets a span pass as it does for processes: each moves when it wakes up, and `meanwhile` happens every time.
fn live_through(scenario: &mut Scenario, span: Duration, mut meanwhile: impl FnMut(&mut Scenario)) {
    let uptime = |scenario: &Scenario| scenario.stage.world().lock().uptime();
    let end = uptime(scenario) + span;
    scenario.settle();
    while uptime(scenario) < end {
        let next = scenario.stage.next_wake().map_or(end, |wake| wake.clamp(uptime(scenario), end));
        scenario.pass(next.saturating_sub(uptime(scenario)));
        meanwhile(scenario);
        scenario.settle();
    }
}

#[test]
fn a_deadline_that_has_come_does_not_bypass_the_pause_after_a_failed_pass() {
    let mut scenario = with_deadline_that_has_come();
    let before = n_passes(&scenario);
    live_through(&mut scenario, MINUTE, |_| ());
    let n = n_passes(&scenario) - before;
    assert!((2..=PASSES_PER_MINUTE).contains(&n), "{n} passes in a minute:\n{}", scenario.story());
    // Full or busy, each said at once, and once again after a minute.
    let n_said = n_lines(&scenario, "a pass failed");
    assert!((1..=4).contains(&n_said), "{n_said} lines in a minute:\n{}", scenario.story());
    refuse_writes(&scenario, false);
    live_through(&mut scenario, Duration::from_secs(15), |_| ());
    assert_eq!(scenario.running().len(), 1, "what was due starts soon:\n{}", scenario.story());
    assert_eq!(n_lines(&scenario, "passes succeed again"), 1, "{}", scenario.story());
}

#[test]
fn news_and_words_of_agents_do_not_bypass_the_pause_either() {
    let mut scenario = with_deadline_that_has_come();
    let before = n_passes(&scenario);
    // Something happens every 50 ms.
    for _ in 0..1200 {
        live_through(&mut scenario, Duration::from_millis(50), |_| ());
        let causes =
            [|| Cause::News, || Cause::StoreWritten, || Cause::Told, || Cause::Ended(None), || Cause::ClockSet];
        for cause in causes {
            scenario.stage.world().lock().post_all(cause);
        }
    }
    let n = n_passes(&scenario) - before;
    assert!(n <= PASSES_PER_MINUTE, "{n} passes in a minute:\n{}", scenario.story());
}

#[test]
fn an_edited_config_ends_the_pause() {
    let mut scenario = with_deadline_that_has_come();
    live_through(&mut scenario, MINUTE, |_| ());
    refuse_writes(&scenario, false);
    assert_eq!(scenario.running().len(), 0);
    scenario.stage.configure(Knobs { town: 3, heartbeat: 3600, ..Knobs::calm() });
    scenario.settle();
    assert_eq!(scenario.running().len(), 1, "without waiting:\n{}", scenario.story());
}

/// A job of every second whose run goes on: after the daemon stood still for half a minute the log says so once.
#[test]
fn slots_that_were_left_out_while_the_daemon_stood_still_are_one_line() {
    let mut stage = Stage::set(0, false, true);
    stage.world().lock().faults = Faults::none(0);
    stage.configure(Knobs::calm());
    let stamp = stage.stamp("ann");
    let schedule = Schedule::Every { span: SignedDuration::from_secs(1), anchor: stamp.now };
    let job = JobPlan::new("busy", schedule, Payload::Run { command: "sleep 600".to_owned() });
    stage.store.add_jobs(&[job], &stamp).expect("nothing is wrong with it");
    stage.launch(Errand::Daemon);
    let settle = |stage: &mut Stage| {
        while let Some(pid) = stage.ready_strands().first().copied() {
            stage.step_strand(pid);
        }
    };
    settle(&mut stage);
    for span in [1, 1, 30] {
        stage.world().lock().pass(Duration::from_secs(span));
        settle(&mut stage);
    }
    let story = stage.world().lock().story.clone().unwrap_or_default();
    assert_eq!(stage.ground.runtime.n_running(), 1, "{}", story.join("\n"));
    let left_out: Vec<&String> = story.iter().filter(|line| line.contains("busy was left out")).collect();
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    assert!(left_out[1].contains("30 times"), "{left_out:?}");
}

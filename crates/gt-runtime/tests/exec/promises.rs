//! What every runtime promises, by the project's example: agents of another user, in another directory.

use std::fs;

use gt_runtime::exec::ExecRuntime;
use gt_runtime::{Handle, Known, Launch, Runtime as _, Sighting, Stop};

use super::place::{Place, ending, known};

/// The example, watched.
fn stage() -> (Place, ExecRuntime) {
    let place = Place::new();
    let mut runtime = place.host();
    place.watch(&mut runtime);
    (place, runtime)
}

/// A run that ends when it is told to.
fn waiting(place: &Place, run: &str) -> Launch {
    let fifo = place.path(&format!("{run}.exit"));
    if !fifo.exists() {
        place.fifo(&format!("{run}.exit"));
    }
    place.launch(run, &format!("read code < {}; exit $code", fifo.display()))
}

fn exit(place: &Place, run: &str, code: i32) {
    fs::write(place.path(&format!("{run}.exit")), format!("{code}\n")).unwrap();
}

fn wait_for_end(place: &Place, run: &str) {
    while place.next_news().is_none_or(|(told, _)| told != run) {}
}

#[test]
fn a_run_that_nobody_asks_about_is_seen_too() {
    let (place, mut runtime) = stage();
    let launch = waiting(&place, "r1");
    assert_eq!(runtime.start(&[launch]), [Ok(Handle::ELSEWHERE)]);
    assert_eq!(runtime.survey(&[]).unwrap()["r1"], Sighting::Running(Handle::ELSEWHERE));
}

#[test]
fn a_run_is_seen_running_then_ended_with_its_code_until_that_is_acknowledged() {
    let (place, mut runtime) = stage();
    runtime.start(&[waiting(&place, "r1")]).remove(0).unwrap();
    assert_eq!(runtime.survey(&[known("r1")]).unwrap()["r1"], Sighting::Running(Handle::ELSEWHERE));
    exit(&place, "r1", 7);
    wait_for_end(&place, "r1");
    let seen = runtime.survey(&[]).unwrap();
    let Sighting::Ended(ending) = &seen["r1"] else { panic!("{seen:?}") };
    assert_eq!((ending.code, ending.signal, ending.leftover), (Some(7), None, 0));
    runtime.acknowledge(&["r1".to_owned()]).unwrap();
    assert!(runtime.survey(&[]).unwrap().is_empty());
    assert!(!place.path("other/r1").exists(), "its place is cleared");
}

#[test]
fn a_run_that_was_never_started_is_not_seen_and_one_that_was_and_is_gone_has_ended() {
    let (_place, mut runtime) = stage();
    let never = Known { run: "never".to_owned(), handle: None };
    let seen = runtime.survey(&[never, known("gone")]).unwrap();
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["gone"]);
    let Sighting::Ended(ending) = &seen["gone"] else { panic!("{seen:?}") };
    assert_eq!((ending.code, ending.signal), (None, None));
}

#[test]
fn a_start_repeated_while_it_runs_or_before_its_end_is_acknowledged_starts_once() {
    let (place, mut runtime) = stage();
    let mut launch = waiting(&place, "r1");
    launch.argv[2] = format!("echo started; {}", launch.argv[2]);
    let first = runtime.start(&[launch.clone(), launch.clone()]);
    assert_eq!(first, [Ok(Handle::ELSEWHERE), Ok(Handle::ELSEWHERE)]);
    assert_eq!(runtime.start(std::slice::from_ref(&launch)), first[..1]);
    exit(&place, "r1", 0);
    wait_for_end(&place, "r1");
    assert_eq!(runtime.start(&[launch]), first[..1]);
    assert!(matches!(runtime.survey(&[known("r1")]).unwrap()["r1"], Sighting::Ended(_)));
    assert_eq!(place.log("r1"), "started\n");
}

#[test]
fn a_run_that_many_start_at_once_starts_once() {
    let place = Place::new();
    let launch = place.launch("r1", "echo started");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let (mut runtime, launch) = (place.host(), launch.clone());
            scope.spawn(move || assert_eq!(runtime.start(&[launch]), [Ok(Handle::ELSEWHERE)]));
        }
    });
    assert_eq!(ending(&mut place.host(), "r1").code, Some(0));
    assert_eq!(place.log("r1"), "started\n");
}

#[test]
fn a_stopped_run_ends_by_a_signal() {
    let (place, mut runtime) = stage();
    for (run, how, signal) in [("soft", Stop::Gently, 15), ("hard", Stop::Now, 9)] {
        runtime.start(&[waiting(&place, run)]).remove(0).unwrap();
        runtime.stop(&known(run), how).unwrap();
        wait_for_end(&place, run);
        let seen = runtime.survey(&[]).unwrap();
        let Sighting::Ended(ending) = &seen[run] else { panic!("{seen:?}") };
        assert_eq!((ending.code, ending.signal), (None, Some(signal)));
    }
}

#[test]
fn stopping_or_acknowledging_what_is_not_there_is_fine() {
    let (_place, mut runtime) = stage();
    runtime.stop(&known("never"), Stop::Gently).unwrap();
    runtime.acknowledge(&["never".to_owned()]).unwrap();
}

#[test]
fn acknowledging_what_runs_forgets_nothing() {
    let (place, mut runtime) = stage();
    runtime.start(&[waiting(&place, "r1")]).remove(0).unwrap();
    runtime.acknowledge(&["r1".to_owned()]).unwrap();
    assert_eq!(runtime.survey(&[]).unwrap()["r1"], Sighting::Running(Handle::ELSEWHERE));
}

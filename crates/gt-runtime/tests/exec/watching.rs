//! Telling of endings: lines, deaths, floods, programs that cannot watch, and who ends with whom.

use std::fs;
use std::time::{Duration, Instant};

use super::place::{PATIENCE, Place, is_alive, kill, pid_in, until};

#[test]
fn each_line_is_an_end_and_an_empty_one_says_look() {
    let place = Place::new();
    let lines = r#"echo '{}'; echo; echo '{"run": "r1", "code": 3, "more": 1}'; echo '{"run": "r2", "signal": 9}'"#;
    let mut runtime = place.script(&format!("{lines}; cat > /dev/null"));
    place.watch(&mut runtime);
    let mut told = Vec::new();
    let mut n_looks = 0;
    while told.len() < 2 {
        match place.next_news() {
            Some((run, ending)) => told.push((run, ending.code, ending.signal)),
            None => n_looks += 1,
        }
    }
    assert_eq!(told, [("r1".to_owned(), Some(3), None), ("r2".to_owned(), None, Some(9))]);
    if n_looks == 0 {
        assert_eq!(place.next_news(), None);
    }
    assert!(place.is_quiet_for(Duration::from_millis(300)), "nothing else is told");
}

#[test]
fn what_nobody_understands_says_look() {
    for line in ["rubbish", "[1]", r#"{"run": 7}"#, r"\377\376"] {
        let place = Place::new();
        let mut runtime = place.script(&format!("printf '{line}\\n'; cat > /dev/null"));
        place.watch(&mut runtime);
        assert_eq!(place.next_news(), None, "{line}");
    }
}

#[test]
fn a_program_that_dies_is_called_again_ever_more_rarely_and_each_time_somebody_looks() {
    let place = Place::new();
    let mut runtime = place.script("echo x >> calls; exit 1");
    place.watch(&mut runtime);
    let begin = Instant::now();
    for _ in 0..4 {
        assert_eq!(place.next_news(), None);
    }
    let n_calls = fs::read_to_string(place.town().join("calls")).unwrap().lines().count();
    assert!(n_calls >= 4, "{n_calls}");
    // Pauses of 0.1, 0.2, 0.4 seconds and so on lie between the calls, of which more may have come by now.
    let pauses: Duration = (0..n_calls - 1).map(|n| Duration::from_millis(100) * (1 << n)).sum();
    assert!(begin.elapsed() >= pauses, "{n_calls} calls in {:?}", begin.elapsed());
}

#[test]
fn a_program_that_was_killed_watches_again() {
    let place = Place::new();
    let mut runtime = place.script(r#"echo $$ > pid; echo '{"run": "r1", "code": 0}'; cat > /dev/null"#);
    place.watch(&mut runtime);
    assert!(place.next_news().is_some());
    kill(pid_in(&place.town().join("pid")));
    assert_eq!(place.next_news(), None);
    assert!(place.next_news().is_some(), "it is called again");
}

#[test]
fn a_program_that_cannot_be_called_is_tried_again_until_it_can() {
    let place = Place::new();
    let mut runtime = place.runtime(&["./later"]);
    place.watch(&mut runtime);
    assert_eq!(place.next_news(), None);
    place.write_script("later", r#"echo '{"run": "r1", "code": 0}'; cat > /dev/null"#);
    until("it is called", || place.next_news().is_some());
}

#[test]
fn a_program_that_does_not_know_watch_is_polled() {
    let place = Place::new();
    let mut runtime = place.script("echo x >> calls; exit 64");
    place.watch(&mut runtime);
    let begin = Instant::now();
    assert_eq!(place.next_news(), None);
    assert!(begin.elapsed() >= Duration::from_secs(4), "{:?}", begin.elapsed());
    assert_eq!(fs::read_to_string(place.town().join("calls")).unwrap(), "x\n", "it is asked once");
}

#[test]
fn a_flood_fills_no_memory_and_a_line_without_end_is_cut_off() {
    let place = Place::new();
    let mut runtime = place.script(r#"exec yes '{"run": "r1", "code": 0}'"#);
    let begin = Instant::now();
    place.watch(&mut runtime);
    for _ in 0..3000 {
        assert!(place.next_news().is_some());
    }
    // About a thousand are passed on each second, so the last come in the third one at the earliest.
    assert!(begin.elapsed() >= Duration::from_secs(2), "3,000 in {:?}", begin.elapsed());
    let mut runtime = place.script("echo x >> calls; exec cat /dev/zero");
    place.watch(&mut runtime);
    assert_eq!(place.next_news(), None);
    until("it is called again", || fs::read_to_string(place.town().join("calls")).unwrap().lines().count() > 1);
}

#[test]
fn it_ends_with_the_runtime_whether_it_listens_or_not() {
    for body in ["exec sleep 1000", "trap '' TERM; sleep 1000 & wait", "exec yes '{}'"] {
        let place = Place::new();
        let mut runtime = place.script(&format!("echo $$ > pid; {body}"));
        place.watch(&mut runtime);
        let pid = pid_in(&place.town().join("pid"));
        let begin = Instant::now();
        drop(runtime);
        assert!(!is_alive(pid), "{body}");
        assert!(begin.elapsed() < PATIENCE, "{body}");
    }
}

#[test]
fn its_input_closes_when_nobody_listens() {
    let place = Place::new();
    // What left the group of its program is not ended with it, but hears that nobody listens.
    let far = "read -r request; echo \"$request\" > told; cat > /dev/null; echo over > over";
    let mut runtime = place.script(&format!("exec 3<&0; setsid sh -c '{far}' <&3 & wait"));
    place.watch(&mut runtime);
    let told = place.town().join("told");
    until("it was asked", || fs::read_to_string(&told).is_ok_and(|text| text.ends_with('\n')));
    let expected = format!("{{\"protocol\":1,\"town\":\"{}\"}}\n", place.town().display());
    assert_eq!(fs::read_to_string(&told).unwrap(), expected);
    assert!(!place.town().join("over").exists());
    drop(runtime);
    until("it has heard", || place.town().join("over").exists());
}

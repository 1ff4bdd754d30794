//! What the program is told, word for word, and what becomes of its answers.

use std::fs;

use gt_runtime::process::ProcessRuntime;
use gt_runtime::{Ending, Handle, Known, Launch, Runtime as _, Sighting, Stop};

use super::place::{Place, known};

/// A program that keeps what it is told under the verb's name, and answers with what lies under `VERB.answer`.
const RECORDS: &str = "cat > $verb.told; cat $verb.answer 2> /dev/null || exit 0";

fn answer(place: &Place, verb: &str, text: &str) {
    fs::write(place.town().join(format!("{verb}.answer")), text).unwrap();
}

fn told(place: &Place, verb: &str) -> String {
    let text = fs::read_to_string(place.town().join(format!("{verb}.told"))).unwrap();
    text.replace(place.path("").to_str().unwrap(), "/")
}

#[test]
fn each_verb_says_what_the_documentation_promises() {
    let place = Place::new();
    let mut runtime = place.script(RECORDS);
    answer(&place, "start", r#"{"results": [{"run": "r1"}]}"#);
    answer(&place, "survey", r#"{"runs": {}}"#);
    let launch = Launch { stdin: Some("do it".to_owned()), ..place.launch("r1", "true") };
    assert_eq!(runtime.start(&[launch]), [Ok(Handle::ELSEWHERE)]);
    runtime.survey(&[known("r1"), Known { run: "r2".to_owned(), handle: None, log: None }]).unwrap();
    runtime.stop(&known("r1"), Stop::Gently).unwrap();
    assert_eq!(told(&place, "stop"), r#"{"protocol":1,"town":"/town","run":"r1","how":"gently"}"#);
    runtime.stop(&known("r1"), Stop::Now).unwrap();
    runtime.stop(&known("r1"), Stop::Interrupt).unwrap();
    assert_eq!(told(&place, "interrupt"), r#"{"protocol":1,"town":"/town","run":"r1"}"#);
    runtime.acknowledge(&["r1".to_owned()]).unwrap();
    assert!(runtime.send("r1", "go on").unwrap());
    assert_eq!(
        told(&place, "start"),
        concat!(
            r#"{"protocol":1,"town":"/town","launches":[{"run":"r1","session":"test-r1","dir":"/town","#,
            r#""log":"/r1.log","errors":null,"argv":["sh","-c","true"],"stdin":"do it","#,
            r#""env":{"GT_RUN":"r1","PATH":"/usr/bin:/bin","SECRET":"hush"}}]}"#
        )
    );
    assert_eq!(
        told(&place, "survey"),
        r#"{"protocol":1,"town":"/town","known":[{"run":"r1","started":true},{"run":"r2","started":false}]}"#
    );
    assert_eq!(told(&place, "stop"), r#"{"protocol":1,"town":"/town","run":"r1","how":"now"}"#);
    assert_eq!(told(&place, "acknowledge"), r#"{"protocol":1,"town":"/town","runs":["r1"]}"#);
    assert_eq!(told(&place, "send"), r#"{"protocol":1,"town":"/town","run":"r1","text":"go on"}"#);
    let apart = Launch { errors: Some(place.path("r1.err")), ..place.launch("r1", "true") };
    assert_eq!(runtime.start(&[apart]), [Ok(Handle::ELSEWHERE)]);
    assert!(told(&place, "start").contains(r#""log":"/r1.log","errors":"/r1.err","argv""#));
}

#[test]
fn a_survey_is_taken_as_it_is_and_what_was_started_and_is_not_in_it_is_gone() {
    let place = Place::new();
    let mut runtime = place.script(RECORDS);
    answer(
        &place,
        "survey",
        r#"{"protocol": 1, "runs": {
            "here": {"state": "running", "node": "n7"},
            "over": {"state": "ended", "code": 3, "at": "2026-01-02T03:04:05Z", "leftover": 2},
            "shot": {"state": "ended", "code": null, "signal": 9},
            "stranger": {"state": "running"}}}"#,
    );
    let never = Known { run: "never".to_owned(), handle: None, log: None };
    let seen = runtime.survey(&[known("here"), known("over"), known("shot"), known("gone"), never]).unwrap();
    let names: Vec<&str> = seen.keys().map(String::as_str).collect();
    assert_eq!(names, ["gone", "here", "over", "shot", "stranger"]);
    assert_eq!(seen["here"], Sighting::Running(Handle::ELSEWHERE));
    let at = "2026-01-02T03:04:05Z".parse().unwrap();
    assert_eq!(seen["over"], Sighting::Ended(Ending { code: Some(3), signal: None, at, leftover: 2, is_lost: false }));
    let end = |run: &str| match &seen[run] {
        Sighting::Ended(ending) => (ending.code, ending.signal),
        other => panic!("{other:?}"),
    };
    assert_eq!((end("shot"), end("gone")), ((None, Some(9)), (None, None)));
}

#[test]
fn a_survey_that_cannot_be_read_is_an_error_and_no_end_of_anything() {
    let place = Place::new();
    let answers = [
        "",
        "[]",
        r#"{"runs": {"r1": {"state": "resting"}}}"#,
        r#"{"runs": {"r1": {}}}"#,
        r#"{"runs": {"r1": {"state": "ended", "code": "three"}}}"#,
        r#"{"protocol": 7, "runs": {}}"#,
    ];
    for text in answers {
        let mut runtime = place.script(RECORDS);
        answer(&place, "survey", text);
        let error = runtime.survey(&[known("r1")]).unwrap_err().to_string();
        assert!(error.contains("`./program survey`"), "{text}: {error}");
    }
    let error = place.script("echo no route to host >&2; exit 255").survey(&[known("r1")]).unwrap_err().to_string();
    assert!(error.ends_with("`./program survey` ended with exit code 255: no route to host"), "{error}");
}

#[test]
fn what_a_program_need_not_know_is_asked_for_and_missed_politely() {
    let place = Place::new();
    let mut runtime = place.script(RECORDS);
    answer(&place, "peek", r#"{"text": "last words\n"}"#);
    answer(&place, "attach", r#"{"argv": ["ssh", "-t", "host7", "screen", "-x"]}"#);
    assert_eq!(runtime.peek("r1", 40).unwrap().as_deref(), Some("last words\n"));
    assert_eq!(told(&place, "peek"), r#"{"protocol":1,"town":"/town","run":"r1","lines":40}"#);
    assert_eq!(runtime.attach("r1").unwrap().unwrap(), ["ssh", "-t", "host7", "screen", "-x"]);
    answer(&place, "attach", r#"{"argv": []}"#);
    assert!(runtime.attach("r1").unwrap_err().to_string().ends_with("`./program attach` named no command"));
    let mut plain = place.script("exit 64");
    assert_eq!(plain.peek("r1", 40).unwrap(), None);
    assert_eq!(plain.attach("r1").unwrap(), None);
    assert!(!plain.send("r1", "go on").unwrap());
}

#[test]
fn a_runtime_says_so_when_a_run_is_not_its_own() {
    let place = Place::new();
    let here = Known { run: "r1".to_owned(), handle: Some(Handle { pid: std::process::id(), birth: 1 }), log: None };
    let error = place.script(RECORDS).survey(&[here]).unwrap_err().to_string();
    assert_eq!(error, "run r1 is a process of this machine; until it has ended `runtime` stays as it was");
    let mut process = ProcessRuntime::new(place.path("keeper"), vec!["/no/such/keeper".into()]);
    let error = process.survey(&[known("r1")]).unwrap_err().to_string();
    assert_eq!(error, "run r1 is in another place; until it has ended `runtime` stays as it was");
}

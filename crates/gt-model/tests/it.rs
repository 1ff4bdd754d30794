//! The scripted model as agents meet it: over a real connection.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use gt_model::{Answer, Model, Script, Vendor};

/// How long a fact may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// What a question has in it when the agent has run a command.
const RAN: [&str; 2] =
    [r#""messages":[{"content":[{"type":"tool_result"}]}]"#, r#""input":[{"type":"function_call_output"}]"#];

const CLAUDE: (&str, &str) = ("/v1/messages?beta=true", r#""tools":[{"name":"Bash"}],"stream":true"#);
const CODEX: (&str, &str) = ("/v1/responses", r#""tools":[{"type":"function","name":"exec_command"}],"stream":true"#);

fn connect(model: &Model) -> TcpStream {
    let url = model.url();
    let stream = TcpStream::connect(url.trim_start_matches("http://")).expect("the model serves");
    stream.set_read_timeout(Some(PATIENCE)).expect("it is a socket");
    stream
}

fn send(model: &Model, head: &str, body: &str) -> TcpStream {
    let mut stream = connect(model);
    write!(stream, "{head} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len()).expect("it listens");
    stream
}

/// Asks as an agent does whose assignment holds these words, and returns all that is answered.
fn ask(model: &Model, (path, rest): (&str, &str), words: &str) -> String {
    let mut answer = String::new();
    let body = format!(r#"{{"model":"m","prompt":"{words}",{rest}}}"#);
    send(model, &format!("POST {path}"), &body).read_to_string(&mut answer).expect("it answers");
    answer
}

fn model(answers: Vec<Answer>) -> Model {
    Model::serve(Script::default().with("gt-a", answers)).expect("there is a free port")
}

#[test]
fn both_vendors_are_told_to_do_the_work_and_then_thanked() {
    let model = Model::serve(Script::work()).expect("there is a free port");
    for (agent, ran, call, end) in [
        (CLAUDE, RAN[0], "input_json_delta", "event: message_stop"),
        (CODEX, RAN[1], "function_call", "event: response.completed"),
    ] {
        for bead in ["gt-x", "gt-y"] {
            let first = ask(&model, agent, bead);
            assert!(first.starts_with("HTTP/1.1 200 ") && first.contains(call) && first.contains("gt done"), "{first}");
            let second = ask(&model, (agent.0, &format!("{ran},{}", agent.1)), bead);
            assert!(second.contains("All done.") && second.contains(end), "{second}");
        }
    }
    let vendors: Vec<Vendor> = model.questions("").iter().map(|question| question.vendor).collect();
    assert_eq!(vendors, [[Vendor::Anthropic; 4], [Vendor::OpenAi; 4]].concat());
}

#[test]
fn refusals_have_the_status_and_headers_that_agents_read() {
    let answers = vec![Answer::Limit(60), Answer::Unauthorised, Answer::Overloaded];
    let (claude, codex) = (model(answers.clone()), model(answers));
    let statuses = |model: &Model, agent| [(); 3].map(|()| ask(model, agent, "gt-a"));
    let [limit, key, load] = statuses(&claude, CLAUDE);
    assert!(limit.starts_with("HTTP/1.1 429 ") && limit.contains("anthropic-ratelimit-unified-reset: "), "{limit}");
    assert!(key.starts_with("HTTP/1.1 401 ") && load.starts_with("HTTP/1.1 529 "), "{key}{load}");
    let [limit, key, load] = statuses(&codex, CODEX);
    assert!(limit.starts_with("HTTP/1.1 429 ") && limit.contains(r#""resets_in_seconds":60"#), "{limit}");
    assert!(key.starts_with("HTTP/1.1 401 ") && load.starts_with("HTTP/1.1 503 "), "{key}{load}");
}

#[test]
fn what_an_agent_asks_on_the_side_uses_up_no_answer() {
    let model = model(vec![Answer::Text("first".to_owned()), Answer::Text("second".to_owned())]);
    let aside = ask(&model, (CLAUDE.0, r#""stream":false"#), "a title for gt-a");
    assert!(aside.contains(r#""text":"Work""#), "{aside}");
    assert!(ask(&model, CLAUDE, "gt-a").contains("first"));
    assert_eq!(model.questions("gt-a").len(), 1);
}

#[test]
fn one_that_hangs_is_silent_until_whoever_asked_goes_away() {
    let model = model(vec![Answer::Hang, Answer::Text("awake".to_owned())]);
    let body = format!(r#"{{"input":"gt-a",{}}}"#, CODEX.1);
    let mut asking = send(&model, "POST /v1/responses", &body);
    assert!(model.wait_for("gt-a", 1, PATIENCE), "it was asked");
    asking.set_read_timeout(Some(Duration::from_millis(50))).expect("it is a socket");
    let silence = asking.read(&mut [0; 1]).expect_err("nothing comes");
    assert!(matches!(silence.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut), "{silence}");
    drop(asking);
    assert!(ask(&model, CODEX, "gt-a").contains("awake"));
    assert!(!model.wait_for("gt-a", 3, Duration::from_millis(20)), "nobody asked a third time");
}

#[test]
fn one_that_is_cut_begins_and_does_not_end() {
    for (agent, begins, ends) in
        [(CLAUDE, "event: message_start", "message_stop"), (CODEX, "event: response.created", "response.completed")]
    {
        let answer = ask(&model(vec![Answer::Cut]), agent, "gt-a");
        assert!(answer.contains(begins) && !answer.contains(ends), "{answer}");
    }
}

#[test]
fn a_body_in_chunks_is_read_like_any_other() {
    let model = model(vec![Answer::Text("whole".to_owned())]);
    let (first, second) = (r#"{"input":"gt"#, format!(r#"-a",{}}}"#, CODEX.1));
    let mut stream = connect(&model);
    let chunks = format!("{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n", first.len(), second.len());
    write!(stream, "POST /v1/responses HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}").expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.contains("whole"), "{answer}");
}

#[test]
fn what_is_not_scripted_is_told_so() {
    let model = model(vec![]);
    for (head, body, why) in [
        ("GET /v1/teapots", "", "GET /v1/teapots is not scripted"),
        ("POST /v1/messages", "{", "the question is no JSON"),
        ("POST /v1/messages", r#"{"input":"gt-a","tools":[{"name":"Bash"}]}"#, "has no answers"),
        ("POST /v1/messages", r#"{"input":"gt-b","tools":[{"name":"Bash"}]}"#, "no part of the script"),
    ] {
        let mut answer = String::new();
        send(&model, head, body).read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 404 ") && answer.contains(why), "{answer}");
    }
}

#[test]
fn the_program_says_where_it_serves_and_refuses_what_it_does_not_understand() {
    let program = env!("CARGO_BIN_EXE_gt-model");
    let mut child = Command::new(program).stdout(Stdio::piped()).spawn().expect("it was built for this test");
    let mut url = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut url).expect("it says where it serves");
    let answered = TcpStream::connect(url.trim().trim_start_matches("http://"));
    child.kill().expect("it serves until it is killed");
    child.wait().expect("it is a child");
    assert!(answered.is_ok(), "nobody serves at {url}");
    for (arguments, why) in [
        (&["--dance"][..], "error: `--dance` is none of `--script FILE` and `--port N`\n"),
        (&["--port"], "error: `--port` needs a value\n"),
        (&["--port", "many"], "error: a port is a number up to 65535\n"),
        (&["--script", "/nowhere"], "error: cannot read `/nowhere`: No such file or directory (os error 2)\n"),
    ] {
        let output = Command::new(program).args(arguments).output().expect("it was built for this test");
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(2), why));
    }
}

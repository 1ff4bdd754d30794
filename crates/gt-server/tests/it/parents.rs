//! Messages that agents send: which of them are work that their run waits for.

use gt_server::Limits;
use gt_store::TurnState;
use serde_json::json;

use crate::served::{Served, until};

#[test]
fn a_run_is_the_parent_of_what_it_waits_for_and_of_nothing_else() {
    let served = Served::new(Limits::default());
    let send = |session: &str, wait: bool| {
        let body = json!({ "text": "x", "wait": wait }).to_string();
        served.ask(&format!("POST /v1/sessions/{session}/messages"), "X-Gasworks-Run: run-7\r\n", &body)
    };
    let answer = send("dm:told", false);
    assert_eq!(answer.status, 202);
    let mut store = served.store();
    let told = store.turns("dm:told", 9).expect("it answers").remove(0);
    assert_eq!((told.parent.as_deref(), told.lane.as_str()), (None, "main"), "nothing waits for it");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| send("dm:asked", true));
        let mut asked = Vec::new();
        until("it is taken", || {
            asked = store.turns("dm:asked", 9).expect("it answers");
            !asked.is_empty()
        });
        let stopped = served.ask("POST /v1/sessions/dm:asked/stop", "", r#"{"all": true}"#);
        assert_eq!(stopped.status, 200);
        assert_eq!(waits.join().expect("it is answered").json()["outcome"], "cancelled");
        assert_eq!((asked[0].parent.as_deref(), asked[0].lane.as_str()), (Some("run-7"), "subagent"));
    });
    assert_eq!(store.turns("dm:told", 9).expect("it answers")[0].state, TurnState::Waiting);
}

//! Channels: answers go out by web hook and Telegram, and messages come in, with receivers on loopback. // SPEC L6

use std::fs;

use serde_json::json;

use crate::fleet::Fleet;

#[path = "channels/double.rs"]
pub(crate) mod double;
#[path = "channels/secrets.rs"]
mod secrets;
#[path = "channels/telegram.rs"]
mod telegram;
#[path = "channels/webhook.rs"]
mod webhook;

/// A town whose agent answers `re: TEXT`, waits for the gate when it is told to, and can go on for long.
fn talking() -> Fleet {
    let fleet = Fleet::new("");
    let script = r#"text=$(cat)
echo "turn $text" >> "$HOME/trace"
case "$text" in
  wait*) while [ ! -e "$HOME/gate" ]; do sleep 0.02; done ;;
  long*) for i in $(seq 1500); do echo "line $i of it"; done; exit ;;
esac
echo "re: $text"
"#;
    fs::write(fleet.home("turn.sh"), script).expect("the home can be written");
    let turn = fleet.home("turn.sh").display().to_string();
    fleet.set("agents.scripted.headless", &json!(["bash", turn]).to_string());
    fleet.set("sessions.debounce_ms", "0");
    fleet
}

/// What the agent was asked, in order.
fn asked(fleet: &Fleet) -> Vec<String> {
    let trace = fs::read_to_string(fleet.home("trace")).unwrap_or_default();
    trace.lines().filter_map(|line| Some(line.strip_prefix("turn ")?.to_owned())).collect()
}

/// Waits until so many parcels are in a state.
fn await_parcels(fleet: &Fleet, state: &str, n: i64) {
    let store = rusqlite::Connection::open(fleet.town.store()).expect("the store is there");
    let sql = "SELECT count(*) FROM outbox WHERE state = ?1";
    let count = || store.query_row(sql, [state], |row| row.get::<_, i64>(0)).expect("it answers");
    fleet.until_seen(&format!("{n} parcels {state}"), || count() == n);
}

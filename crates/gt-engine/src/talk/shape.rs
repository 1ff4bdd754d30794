//! Sessions, turns and lanes as JSON, the same by command and by HTTP. // SPEC appendix

use gt_core::session::{Mode, Overflow, TurnOutcome};
use gt_core::time::format;
use gt_store::{LaneFigure, Session, TurnState, TurnView};
use serde_json::{Value, json};

pub fn session(session: &Session) -> Value {
    let wishes = &session.wishes;
    json!({
        "key": session.key,
        "running": session.n_live,
        "waiting": session.n_waiting,
        "limit": session.limit(),
        "agent": wishes.agent,
        "lane": wishes.lane,
        "mode": wishes.mode.map(Mode::as_str),
        "cap": wishes.cap,
        "drop": wishes.overflow.map(Overflow::as_str),
        "debounce_ms": wishes.debounce.map(|span| i64::try_from(span.as_millis()).unwrap_or(i64::MAX)),
        "channel": wishes.channel,
        "to": wishes.recipient,
        "conversation": session.conversation,
        "conversation_agent": session.talks_to,
        "context_tokens": session.tokens,
        "created_at": format(session.made_at),
        "last_at": format(session.last_at),
    })
}

/// A turn, with its answer once there is one, or why it waits.
pub fn turn(turn: &TurnView, why: Option<&str>) -> Value {
    let state = match turn.state {
        TurnState::Waiting => "waiting",
        TurnState::Live => "running",
        TurnState::Ended => "ended",
    };
    json!({
        "turn": turn.id.to_string(),
        "session": turn.session,
        "text": turn.text,
        "messages": turn.n_messages,
        "agent": turn.agent,
        "lane": turn.lane,
        "state": state,
        "outcome": turn.outcome.map(TurnOutcome::as_str),
        "run": turn.run,
        "reply": turn.reply,
        "error": turn.error,
        "reason": why,
        "created_at": format(turn.made_at),
        "ended_at": turn.ended_at.map(format),
    })
}

pub fn lane(lane: &LaneFigure) -> Value {
    json!({ "name": lane.name, "limit": lane.limit, "active": lane.active, "pending": lane.pending })
}

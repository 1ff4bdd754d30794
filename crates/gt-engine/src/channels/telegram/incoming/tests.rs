//! Messages as Telegram sends them, and what they are to us.

use serde_json::{Value, json};

use super::*;

fn user(id: u64, name: &str, is_bot: bool) -> Value {
    json!({ "id": id, "is_bot": is_bot, "first_name": "X", "username": name })
}

/// Judges a message of Anna, user 7; `more` overwrites what is there.
fn judged(more: &Value, is_edited: bool, allow: &[&str]) -> Incoming {
    let mut message = json!({
        "message_id": 5, "date": 1, "from": user(7, "Anna", false), "chat": { "id": 7, "type": "private" },
    });
    for (key, value) in more.as_object().expect("an object") {
        message[key] = value.clone();
    }
    let message: Message = serde_json::from_value(message).expect("a message");
    let bot: User = serde_json::from_value(user(1, "OurBot", true)).expect("a user");
    let allow: Vec<String> = allow.iter().map(|&entry| entry.to_owned()).collect();
    judge(&message, is_edited, &bot, &Allow::new(&allow), "telegram")
}

fn session(more: &Value) -> (String, String) {
    match judged(more, false, &["7"]) {
        Incoming::Said { from, .. } => (from.session, from.recipient),
        other => panic!("{other:?} is nothing that was said"),
    }
}

#[test]
fn who_may_write_is_named_by_user_chat_or_name() {
    for (entry, is_allowed) in
        [("7", true), ("@anna", true), ("ANNA", true), (" @Anna ", true), ("8", false), ("@ann", false), ("", false)]
    {
        let said = matches!(judged(&json!({ "text": "hi" }), false, &[entry]), Incoming::Said { .. });
        assert_eq!(said, is_allowed, "{entry:?}");
    }
    let stranger = Sender { id: 7, name: Some("Anna".to_owned()) };
    assert_eq!(judged(&json!({ "text": "hi" }), false, &[]), Incoming::Stranger { sender: stranger, chat: 7 });
    let group = json!({ "text": "/x", "chat": { "id": -9, "type": "group" } });
    assert!(matches!(judged(&group, false, &["-9"]), Incoming::Said { .. }));
}

#[test]
fn each_chat_and_topic_is_a_session_of_its_own() {
    let group = |more: &Value| {
        let mut all = json!({ "text": "@ourbot hi", "chat": { "id": -9, "type": "supergroup" } });
        more.as_object().expect("an object").iter().for_each(|(key, value)| all[key] = value.clone());
        session(&all)
    };
    let is = |session: &str, recipient: &str| (session.to_owned(), recipient.to_owned());
    assert_eq!(session(&json!({ "text": "hi" })), is("dm:telegram:7", "7"));
    assert_eq!(group(&json!({})), is("group:telegram:-9", "-9"));
    assert_eq!(
        group(&json!({ "message_thread_id": 3 })),
        is("group:telegram:-9", "-9"),
        "a thread of answers is no topic"
    );
    let topic = json!({ "message_thread_id": 3, "is_topic_message": true });
    assert_eq!(group(&topic), is("group:telegram:-9:topic:3", "-9:3"));
}

#[test]
fn in_a_group_only_what_is_for_the_bot_counts() {
    let heard = |text: &str, more: &Value| {
        let mut all = json!({ "text": text, "chat": { "id": -9, "type": "group" } });
        more.as_object().expect("an object").iter().for_each(|(key, value)| all[key] = value.clone());
        judged(&all, false, &["7"]) != Incoming::Nothing
    };
    for (text, is_for_us) in [
        ("hi", false),
        ("hi @OURBOT!", true),
        ("@ourbot", true),
        ("@ourbottle", false),
        ("/stop", true),
        ("/stop@ourbot", true),
        ("/stop@other", false),
        ("/stop@other @ourbot", false),
    ] {
        assert_eq!(heard(text, &json!({})), is_for_us, "{text}");
    }
    let ours =
        json!({ "message_id": 4, "date": 1, "chat": { "id": -9, "type": "group" }, "from": user(1, "OurBot", true) });
    assert!(heard("yes", &json!({ "reply_to_message": ours })));
    let mut opened = ours.clone();
    opened["forum_topic_created"] = json!({ "name": "x", "icon_color": 1 });
    assert!(
        !heard("yes", &json!({ "reply_to_message": opened })),
        "everything in a topic seems to answer its first message"
    );
    let mut others = ours;
    others["from"] = user(8, "bob", false);
    assert!(!heard("yes", &json!({ "reply_to_message": others })));
    let link = json!([{ "type": "text_mention", "offset": 0, "length": 3, "user": user(1, "OurBot", true) }]);
    assert!(heard("you there", &json!({ "entities": link })));
}

#[test]
fn a_caption_is_text_and_other_things_are_not_but_only_people_are_told() {
    let photo = json!([{ "file_id": "a", "file_unique_id": "b", "width": 1, "height": 1 }]);
    assert!(matches!(judged(&json!({ "photo": photo, "caption": "look" }), false, &["7"]), Incoming::Said { .. }));
    assert!(matches!(judged(&json!({ "photo": photo }), false, &["7"]), Incoming::Unreadable { .. }));
    assert_eq!(judged(&json!({ "photo": photo }), true, &["7"]), Incoming::Nothing, "nobody is told at each edit");
    assert_eq!(judged(&json!({ "new_chat_title": "x" }), false, &["7"]), Incoming::Nothing);
    assert_eq!(judged(&json!({ "text": "hi", "from": user(7, "anna", true) }), false, &["7"]), Incoming::Nothing);
    let channel = json!({ "text": "hi", "chat": { "id": -9, "type": "channel" } });
    assert_eq!(judged(&channel, false, &["7", "-9"]), Incoming::Nothing);
}

#[test]
fn what_was_edited_is_said_anew() {
    assert!(matches!(judged(&json!({ "text": "hi" }), true, &["7"]), Incoming::Said { .. }));
}

//! JSON that comes back out of the store or stands inside a bead: context fields, a bead's body, an edge's metadata.
//!
//! It is read or refused in words; what is read is written as it reads, and a context shows as a bead like any other.

use gt_core::context::{self, ContextBead, ContextState, SlingFields};
use gt_core::edge::gate_of;
use gt_core::fields::Fields;
use gt_core::jsonl::{self, Line};
use gt_core::{bead, text, time};

use crate::fuzz::{Target, Verdict};

pub(super) const TARGET: Target = Target { name: "fields", check, tokens: TOKENS };

const TOKENS: &[&str] = &[
    r#""version":1,"#,
    r#""work_bead_id":"gt-1","#,
    r#""target_rig":"shop","#,
    r#""enqueued_at":"2026-01-01T00:00:00Z","#,
    r#""vars":"a=1\nb=2","#,
    r#""args":"x","#,
    r#""no_merge":true,"#,
    r#""dispatch_failures":-1,"#,
    r#""last_failure":"\u001b[31m","#,
    r#""formula":null,"#,
    r#""metadata":{"gate":"any-children"},"#,
    r#""metadata":"{\"gate\":\"any-children\"}","#,
    r#""x":[1,2],"#,
    "9999-12-31T23:59:59+01:00",
    "null",
    "true",
    "1",
    "{",
    "}",
    ",",
    ":",
];

fn check(bytes: &[u8]) -> Verdict {
    let Ok(text) = str::from_utf8(bytes) else { return Verdict::Refused };
    let is_object = kept_as_they_came(text);
    let is_context = match context::parse(text) {
        Ok(fields) => {
            reads_back(&fields);
            shows_as_a_bead(&fields);
            true
        }
        Err(refusal) => {
            assert!(!refusal.is_empty() && refusal.len() <= 400 + 8 * text.len(), "{} bytes", refusal.len());
            false
        }
    };
    assert!(is_object || !is_context, "a context is an object");
    Verdict::accepted_if(is_object)
}

fn kept_as_they_came(text: &str) -> bool {
    let Ok(fields) = Fields::parse(text) else { return false };
    let written = fields.to_json();
    let again = Fields::parse(&written).expect("what we write we can read");
    assert_eq!(again, fields, "fields come back as they were");
    assert_eq!(again.to_json(), written);
    let names: Vec<&str> = fields.iter().map(|(name, _)| name).collect();
    assert!(names.windows(2).all(|two| two[0] < two[1]), "sorted, each once");
    gate_of(&fields);
    carried_by_a_bead(fields);
    true
}

/// Whatever a body holds: a line of the bead can be read again.
fn carried_by_a_bead(mut body: Fields) {
    // These are a bead's own and never part of its body.
    let own = ["id", "title", "status", "priority", "issue_type", "assignee", "gt_rig", "labels", "comments"];
    let times = ["dependencies", "created_at", "updated_at", "closed_at", "defer_until"];
    own.into_iter().chain(times).for_each(|name| body.remove(name));
    let mut bead = bead::Bead::new("gt-1", "t");
    bead.comments = vec![body.clone()];
    bead.body = body;
    assert_eq!(read(&jsonl::to_line(&bead)), bead, "a body comes back as it was");
    jsonl::to_row(&bead, &jsonl::RowExtras::default());
}

fn reads_back(fields: &SlingFields) {
    let again = context::parse(&context::json(fields));
    assert_eq!(again.as_ref(), Ok(fields), "fields come back as they were");
    let vars = fields.vars.as_deref().unwrap_or_default();
    assert!(context::split_vars(vars).all(|line| !line.trim().is_empty() && !line.contains('\n')));
}

fn shows_as_a_bead(fields: &SlingFields) {
    let at = time::truncate(time::parse(&fields.enqueued_at).expect("it was checked"));
    let context = ContextBead {
        id: "hq-1",
        work_title: fields.args.as_deref().unwrap_or_default(),
        state: ContextState::Open,
        fields,
        enqueued_at: at,
        closed_at: None,
        close_reason: fields.last_failure.as_deref(),
    };
    let bead = context.to_bead();
    assert!(bead.title.chars().count() <= text::TITLE_CHARS_MAX);
    // An edge without a target is left out when a file is read, and a rig without a name is none.
    let read = read(&jsonl::to_line(&bead));
    assert_eq!((read.body, read.created_at, read.edges.len()), (bead.body, bead.created_at, 1));
}

fn read(line: &str) -> bead::Bead {
    match jsonl::parse_line(line) {
        Ok(Line::Bead { bead, n_bad_edges: 0 }) => *bead,
        other => panic!("{other:?} is what became of {line}"),
    }
}

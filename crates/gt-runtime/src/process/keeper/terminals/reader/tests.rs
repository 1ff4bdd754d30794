//! Tests of reading what tmux says in control mode.

use super::*;

const TALK: &str = "%begin 1 2 0\nof its own start\n%end 1 2 0\n%session-changed $0 gt-keeper\n\
    %begin 5 7 1\none\n\n%end 4 7 1\n%begin 5 8 1\n%end 5 7 10\nlast\n%end 5 7 1\n%unlinked-window-close @4\n\
    %output %1 %end 5 9 1\n%end 5 9 1\n%begin 6 9 1\nno such pane\n%error 6 9 1\n";

fn answer(is_ok: bool, text: &str) -> Said {
    Said::Answer { is_ok, text: text.as_bytes().to_owned() }
}

#[test]
fn only_the_line_that_was_announced_ends_an_answer() {
    let said = Reader::default().read(TALK.as_bytes());
    let first = "one\n\n%end 4 7 1\n%begin 5 8 1\n%end 5 7 10\nlast\n";
    assert_eq!(said, [answer(true, first), Said::WindowClosed("@4".to_owned()), answer(false, "no such pane\n")]);
}

#[test]
fn how_it_is_cut_makes_no_difference() {
    let whole = Reader::default().read(TALK.as_bytes());
    for size in 1..40 {
        let mut reader = Reader::default();
        let said: Vec<Said> = TALK.as_bytes().chunks(size).flat_map(|chunk| reader.read(chunk)).collect();
        assert_eq!(said, whole, "in pieces of {size}");
    }
}

#[test]
fn what_has_no_end_takes_no_more_than_its_room() {
    let mut reader = Reader::default();
    let flood = vec![b'x'; 1 << 20];
    for _ in 0..20 {
        assert!(reader.read(&flood).is_empty());
    }
    assert!(reader.incoming.len() <= LINE_BYTES_MAX + flood.len());
    reader.read(b"\n%begin 1 1 1\n");
    for _ in 0..20 {
        reader.read(&flood);
        reader.read(b"\n");
    }
    let said = reader.read(b"%end 1 1 1\n");
    assert!(matches!(&said[..], [Said::Answer { text, .. }] if text.len() <= ANSWER_BYTES_MAX));
}

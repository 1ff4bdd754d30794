//! Who may ask: whoever has the token of now, from this machine's own names.

use std::io::Write as _;

use gt_server::{Limits, token_path};

use crate::served::{Reply, Served, reply};

fn ask_with(served: &Served, token: &str, more: &str) -> Reply {
    let mut stream = served.connect();
    let address = served.address();
    let head = format!(
        "GET /v1/lanes HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{more}Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("it is read");
    reply(stream)
}

#[test]
fn a_token_whose_file_was_removed_is_made_anew_by_the_next_server_and_the_old_one_opens_nothing() {
    let mut served = Served::new(Limits::default());
    let old = served.token();
    assert_eq!(ask_with(&served, &old, "").status, 200);
    std::fs::remove_file(token_path(&served.town)).expect("it is there");
    served.restart(Limits::default());
    let new = served.token();
    assert_ne!(new, old);
    assert_eq!((ask_with(&served, &new, "").status, ask_with(&served, &old, "").code()), (200, "unauthorized".into()));
    // One of the user's own holds as well, and stays.
    std::fs::write(token_path(&served.town), "a-word-of-my-own\n").expect("it can be written");
    served.restart(Limits::default());
    assert_eq!(ask_with(&served, "a-word-of-my-own", "").status, 200);
    assert_eq!(ask_with(&served, &new, "").status, 401);
}

#[test]
fn a_page_of_another_site_is_refused_though_it_knows_the_token() {
    let served = Served::new(Limits::default());
    let token = served.token();
    for head in ["Origin: https://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        let answer = ask_with(&served, &token, head);
        assert_eq!((answer.status, answer.code().as_str()), (403, "forbidden"), "{head}");
    }
}

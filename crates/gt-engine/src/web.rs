//! Asking somebody by HTTP: who is named is asked, nobody else, and not for ever.

use std::time::Duration;

/// A caller that follows no redirection, which would lead to somebody who was not named, and leaves it to the caller what a
/// status means.
pub(crate) fn caller(timeout: Duration) -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .max_redirects(0)
        .http_status_as_error(false)
        .user_agent("gasworks")
        .build()
        .into()
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn a_redirection_is_told_and_not_followed() {
        let [named, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("there is a free port"));
        let [address, elsewhere] = [&named, &other].map(|one| one.local_addr().expect("it has one"));
        for status in [301, 302, 303, 307, 308] {
            let taken = named.try_clone().expect("it can be");
            let answers = thread::spawn(move || {
                let (mut stream, _) = taken.accept().expect("it is asked");
                let mut question = [0; 4096];
                let n = stream.read(&mut question).expect("it asks");
                let answer = format!(
                    "HTTP/1.1 {status} Elsewhere\r\nLocation: http://{elsewhere}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                );
                stream.write_all(answer.as_bytes()).expect("it listens");
                n
            });
            let asked = caller(Duration::from_mins(1)).post(format!("http://{address}/")).send("a secret");
            assert_eq!(asked.expect("it is answered").status().as_u16(), status);
            assert!(answers.join().expect("it is answered") > 0);
        }
        other.set_nonblocking(true).expect("it can be set");
        let nobody = other.accept().expect_err("it was not named");
        assert_eq!(nobody.kind(), ErrorKind::WouldBlock);
    }
}

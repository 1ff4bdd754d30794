//! Who may ask: the holder of the token, and no page of another site in that holder's browser. // SPEC U3
//!
//! A name that leads to this machine may be anybody's, so only addresses and `localhost` are taken for our name. There is no
//! way to allow another site: no answer ever carries a header that would.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, uri::Authority};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::app::App;
use crate::problem::Problem;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Lets a request through, or answers it.
pub(crate) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if let Err(why) = from_here(request.headers(), request.uri(), app.address) {
        let problem = Problem::new(StatusCode::FORBIDDEN, "forbidden", why);
        return problem.hint("call it by its address, from no other site").into_response();
    }
    if !bearer(request.headers()).is_some_and(|given| app.token.is(given)) {
        let message = "this needs the token of the town";
        let problem = Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
            .hint("send `Authorization: Bearer TOKEN` with what is in the town's `.gt/token`");
        let mut response = problem.into_response();
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return response;
    }
    next.run(request).await
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (given.next()?.as_bytes(), given.next()) else { return None };
    let at = value.iter().position(|byte| *byte == b' ')?;
    value[..at].eq_ignore_ascii_case(b"bearer").then(|| value[at..].trim_ascii())
}

/// Whether a request was made for our own name and by no page of another site; else why it is refused.
fn from_here(headers: &HeaderMap, uri: &Uri, ours: SocketAddr) -> Result<(), &'static str> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()),
        _ => None,
    };
    let Some(host) = host.filter(|host| is_our_name(host, ours)) else {
        return Err("the `Host` that was asked for is not this server");
    };
    if uri.authority().is_some_and(|named| !is_our_name(named, ours)) {
        return Err("the address that was asked for is not this server");
    }
    let is_own = |origin: &HeaderValue| {
        let origin = origin.to_str().unwrap_or_default();
        let site = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        site.is_some_and(|site| site.eq_ignore_ascii_case(host.as_str()))
    };
    if !headers.get_all(ORIGIN).iter().all(is_own) {
        return Err("requests of other sites are refused");
    }
    let is_fine = |site: &HeaderValue| ["same-origin", "none"].iter().any(|fine| site.as_bytes() == fine.as_bytes());
    if !headers.get_all(FETCH_SITE).iter().all(is_fine) {
        return Err("requests of other sites are refused");
    }
    Ok(())
}

fn is_our_name(named: &Authority, ours: SocketAddr) -> bool {
    let name = named.host().trim_start_matches('[').trim_end_matches(']');
    if named.as_str().contains('@') {
        return false;
    }
    match name.parse::<IpAddr>() {
        // Who listens everywhere has many addresses.
        Ok(address) => address.to_canonical().is_loopback() || address == ours.ip() || ours.ip().is_unspecified(),
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(ours: &str, uri: &str, headers: &[(&'static str, &str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_str(value).expect("a header"));
        }
        from_here(&map, &uri.parse().expect("an address"), ours.parse().expect("an address")).is_ok()
    }

    #[test]
    fn only_addresses_of_this_server_and_localhost_are_its_names() {
        let at = |ours: &str, host: &str| judged(ours, "/v1/lanes", &[("host", host)]);
        for host in ["127.0.0.1:7777", "localhost:7777", "LOCALHOST", "127.9.9.9:1", "[::1]:7777", "[::ffff:127.0.0.1]"]
        {
            assert!(at("127.0.0.1:7777", host), "{host}");
        }
        for host in
            ["", "evil.example", "localhost.evil.example:7777", "192.168.1.5:7777", "a@localhost", "127.0.0.1.evil"]
        {
            assert!(!at("127.0.0.1:7777", host), "{host}");
        }
        assert!(at("192.168.1.5:7777", "192.168.1.5:7777"));
        assert!(at("0.0.0.0:7777", "192.168.1.5:7777"));
        assert!(!at("0.0.0.0:7777", "evil.example:7777"));
        assert!(!judged("127.0.0.1:1", "/", &[]), "no host at all");
        assert!(!judged("127.0.0.1:1", "/", &[("host", "localhost"), ("host", "localhost")]), "two of them");
        assert!(!judged("127.0.0.1:1", "http://evil.example/", &[("host", "localhost")]));
    }

    #[test]
    fn a_page_of_another_site_is_refused() {
        let with = |name: &'static str, value: &str| {
            judged("127.0.0.1:7777", "/", &[("host", "localhost:7777"), (name, value)])
        };
        assert!(with("origin", "http://localhost:7777"));
        for origin in ["null", "", "http://evil.example", "http://localhost:7778", "http://localhost", "localhost:7777"]
        {
            assert!(!with("origin", origin), "{origin}");
        }
        assert!(with("sec-fetch-site", "same-origin") && with("sec-fetch-site", "none"));
        for site in ["cross-site", "same-site", "whatever"] {
            assert!(!with("sec-fetch-site", site), "{site}");
        }
    }

    #[test]
    fn the_token_is_one_bearer_whatever_its_case() {
        let given = |values: &[&str]| {
            let mut map = HeaderMap::new();
            for value in values {
                map.append(AUTHORIZATION, HeaderValue::from_str(value).expect("a header"));
            }
            bearer(&map).map(<[u8]>::to_vec)
        };
        assert_eq!(given(&["Bearer abc"]), Some(b"abc".to_vec()));
        assert_eq!(given(&["bearer  abc "]), Some(b"abc".to_vec()));
        assert_eq!(given(&["Basic abc"]), None);
        assert_eq!(given(&["abc"]), None);
        assert_eq!(given(&["Bearer abc", "Bearer abc"]), None);
    }
}

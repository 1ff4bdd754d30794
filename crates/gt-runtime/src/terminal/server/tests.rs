//! Tests of what a town's server is called.

use super::*;

#[test]
fn a_server_is_called_like_its_town_and_never_like_that_of_another() {
    let name = |dir: &str| Server::of(Path::new(dir)).name().to_owned();
    let without_hash = |dir: &str| name(dir).rsplit_once('-').unwrap().0.to_owned();
    assert_eq!(without_hash("/home/me/My Town/.gt/keeper"), "gt-my-town");
    assert_eq!(without_hash("/home/me/x;$(y)'\"/.gt/keeper"), "gt-x---y");
    assert_eq!(without_hash("/.gt/keeper"), "gt-town");
    assert_eq!(without_hash(&format!("/{}/.gt/keeper", "é".repeat(90))), "gt-town");
    assert_eq!(without_hash(&format!("/{}/.gt/keeper", "a".repeat(90))), format!("gt-{}", "a".repeat(24)));
    assert_ne!(name("/a/town/.gt/keeper"), name("/b/town/.gt/keeper"));
    assert_eq!(name("/a/town/.gt/keeper"), name("/a/town/.gt/keeper"));
}

#[test]
fn the_path_of_a_socket_is_never_too_long_to_be_bound() {
    let deep = format!("/{}/.gt/keeper", "long/".repeat(100));
    assert!(Server::of(Path::new(&deep)).socket().as_os_str().len() < 100);
}

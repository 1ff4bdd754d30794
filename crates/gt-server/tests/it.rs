//! The server's tests, from outside: a town in a directory of its own, served in this process, and callers over real sockets.

#[path = "it/bodies.rs"]
mod bodies;
#[path = "it/connections.rs"]
mod connections;
#[path = "it/parents.rs"]
mod parents;
#[path = "it/served.rs"]
mod served;
#[path = "it/tokens.rs"]
mod tokens;

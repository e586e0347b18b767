//! The native port of a real process, and everything that should not come by it: strangers, damaged frames, requests that make no sense, clients that do not read or that vanish,
//! and a server that dies before it has answered. After each the server serves as before, and keeps neither memory nor descriptors nor locks.

mod lost;
mod many;
mod raw;
mod requests;
mod strangers;

/// One message of each signal, from the crate whose golden bytes they are.
#[allow(dead_code)]
#[path = "../../../../wire/tests/messages/mod.rs"]
mod messages;

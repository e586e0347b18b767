//! The native port of a real process, and everything that should not come by it: strangers, damaged frames, requests that make no sense, clients that do not read or that vanish,
//! and a server that dies before it has answered. After each the server serves as before, and keeps neither memory nor descriptors nor locks.

mod common;

#[path = "native_bad_input/lost.rs"]
mod lost;
#[path = "native_bad_input/many.rs"]
mod many;
#[path = "native_bad_input/raw.rs"]
mod raw;
#[path = "native_bad_input/requests.rs"]
mod requests;
#[path = "native_bad_input/strangers.rs"]
mod strangers;

/// One message of each signal, from the crate whose golden bytes they are.
#[allow(dead_code)]
#[path = "../../wire/tests/messages/mod.rs"]
mod messages;

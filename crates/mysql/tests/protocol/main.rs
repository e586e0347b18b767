//! MySQL's protocol against a scripted server: what clients send, and what they should not.

mod support;

mod commands;
mod local_infile;
mod login;
mod misbehaviour;

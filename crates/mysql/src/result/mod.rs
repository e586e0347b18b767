//! Answers: OK, ERR and EOF packets, column definitions, rows in text and binary form, and the [`Sink`](sink::Sink) that statements
//! write them into.

pub mod binary;
pub mod column;
pub mod cursor;
pub mod encode;
pub mod sink;
pub mod status;
pub mod text;

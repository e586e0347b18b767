//! Tests of the partition: cases by subject, and random histories against a plain model.

mod cases;
mod digest;
mod empty;
mod ends;
mod large;
mod model;
mod replica;
mod several;
mod support;
mod waits;

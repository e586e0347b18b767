//! Logs of a cluster's node written by hand, opened, and compared with partitions that went along.

mod cases;
mod random;
mod streams;

//! Connections between processes: links, peers, certificates, and when what is buffered is sent.

mod loads;
mod support;

mod adaptive_send;
mod certificates;
mod links;
mod nodes;
mod peers;

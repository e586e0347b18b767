//! Connections between processes: links, peers, certificates.

mod support;

mod certificates;
mod links;
mod nodes;
mod peers;

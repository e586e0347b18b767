//! Certificates of nodes: every link between nodes of a cluster is mutual TLS 1.3.
//!
//! A cluster has an [`Authority`] of its own, whose certificate is the only one that its nodes trust. Each node has a
//! key of its own and a certificate, signed by the authority, with a [`Name`]: the cluster, the node's number and the
//! number of its data directory. A side that connects knows which node it wants, and goes on only if the certificate
//! says so (or has no number yet: a node that is joining); a side that accepts learns from the certificate which node
//! sends ([`crate::Link::certified`]).
//!
//! A node that has no certificate yet, or one that has run out, gets one on a link of its own ([`crate::Tls::Enrol`]).
//! There neither side can trust the other's certificate. Both prove the cluster's secret instead, and the proofs
//! contain a value that TLS derives from the keys of this one connection: somebody in between would have another.
//!
//! What is not here: where keys are kept and who signs ([`Authority::sign`] asks nothing), which the program decides.
//! A certificate cannot be revoked. It runs out after [`VALID`], and the control plane refuses nodes that it does not
//! know.

mod authority;
mod node_tls;

pub use authority::{Authority, KEY_BYTES, Name, NodeKey, VALID};
pub(crate) use node_tls::explain;
pub use node_tls::{Clock, NodeCertificate, NodeTls};

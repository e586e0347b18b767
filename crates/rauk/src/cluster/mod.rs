//! A node as a process of a cluster: who it is, how it finds the others, how it takes its place, how it is shown.
//!
//! | file | what |
//! |---|---|
//! | [`settings`] | what `rauk start` can be told about the cluster |
//! | [`directory`] | `member.json`: who a data directory is |
//! | [`credentials`] | the certificate of a node, the cluster's certificate authority |
//! | [`transport`] | messages and calls over the cluster port |
//! | [`member`] | founding, joining, coming back; the end and the new start of a process that was taken for gone |
//! | [`view`] | the cluster as JSON, for `/cluster` and `rauk cluster status` |
//! | [`local`] | `rauk cluster …`: a cluster of real processes on this host |

pub mod credentials;
pub mod directory;
pub mod local;
pub mod member;
pub mod settings;
pub mod transport;
pub mod view;

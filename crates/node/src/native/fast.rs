//! Batches that are answered at once, by the thread that has read them: no task, no wait.

use super::session::Session;
use super::{Reply, Request};
use std::sync::Arc;

pub fn try_call(_session: &Arc<Session>, _request: &Request, frame: Vec<u8>) -> Result<Reply, Vec<u8>> {
    Err(frame)
}

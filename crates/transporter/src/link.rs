//! One connection.

use crate::CloseReason;
use crate::TransportError;
use rauk_wire::Header;
use std::any::Any;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

/// Whether a frame may wait for company.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// As the socket's adaptive state says.
    Adaptive,
    /// At once (but by somebody else, if somebody is sending on this socket this moment).
    Force,
}

/// A connection whose handshake went well. Cheap to share.
pub struct Link {
    _private: (),
}

impl Link {
    /// Sends a frame made by [`rauk_wire::frame::begin`]: header and checksum are filled in here. The buffer is sent as it is, without a copy.
    /// `Congested` when more than the limit waits already; the frame is then not taken.
    pub fn send(&self, _header: &Header, _frame: Vec<u8>, _urgency: Urgency) -> Result<(), TransportError> {
        todo!()
    }

    /// Sends what waits.
    pub fn flush(&self) {
        todo!()
    }

    /// A buffer to build a frame in, from those that were sent; made as by [`rauk_wire::frame::begin`].
    pub fn buffer(&self) -> Vec<u8> {
        todo!()
    }

    /// Resolves when less than half of the limit waits to be sent, or the link is closed.
    pub fn writable(self: &Arc<Self>) -> impl Future<Output = Result<(), TransportError>> + Send + 'static {
        async { todo!() }
    }

    /// Polls the future at once on this thread, which must be the link's receive thread (that is: within [`crate::Handler`]'s calls), and goes on with it there whenever it
    /// is woken. Dropped when the link closes.
    pub fn spawn(self: &Arc<Self>, _task: impl Future<Output = ()> + Send + 'static) {
        todo!()
    }

    /// What the handler keeps for this link; set once in `on_open`.
    pub fn set_data(&self, _data: Arc<dyn Any + Send + Sync>) {
        todo!()
    }

    pub fn data(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        todo!()
    }

    /// Ends it: what waits is sent if that goes at once, requests under way are dropped.
    pub fn close(&self, _reason: CloseReason) {
        todo!()
    }

    pub fn is_closed(&self) -> bool {
        todo!()
    }

    pub fn peer(&self) -> SocketAddr {
        todo!()
    }

    /// What the peer said in the handshake: its cluster, incarnation, version and name.
    pub fn identity(&self) -> &crate::Identity {
        todo!()
    }

    pub fn connection(&self) -> u64 {
        todo!()
    }
}

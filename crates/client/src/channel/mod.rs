//! The way to a node and back: the one place that knows whether it is over the network or in the same process.
//!
//! A [`Line`] carries the requests of one session: a connection ([`remote`]) or a session of the database in this process ([`local`]). Transactions and scans stay
//! on the line that they began on; everything else takes any. [`Line::call`] sends a request and gives the answer's payload, or a [`CallError`] that says, besides what
//! is wrong, whether the request may have been carried out and whether its transaction is gone.

#[cfg(feature = "embedded")]
pub(crate) mod local;
pub(crate) mod places;
pub(crate) mod remote;
mod sweep;
mod waiting;

use crate::Error;
use bytes::Bytes;
use places::division::{Dealt, Located};
use rauk_wire::{Failure, Kind};
use std::sync::Arc;
use std::time::Duration;

/// What a request's loss means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It changes nothing for good: reads, and work in a transaction that was not to be committed with it.
    None,
    /// It writes for good: writes outside of transactions, commits, definitions.
    Lasting,
}

/// A request but for its payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub kind: Kind,
    /// 0: none.
    pub transaction: u64,
    pub effect: Effect,
}

impl Ask {
    pub fn new(kind: Kind) -> Ask {
        Ask { kind, transaction: 0, effect: Effect::None }
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct CallError {
    pub error: Error,
    /// The transaction of the request is gone.
    pub ended: bool,
    /// The node has said so; else nobody knows whether it has heard of the request.
    pub answered: bool,
}

impl CallError {
    fn failed(failure: Failure) -> CallError {
        CallError { ended: failure.ended, answered: true, error: failure.into() }
    }

    fn lost(error: Error) -> CallError {
        CallError { error, ended: true, answered: false }
    }

    /// Noticed here, before anything was sent.
    pub fn here(error: Error) -> CallError {
        CallError { error, ended: false, answered: true }
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Error {
        error.error
    }
}

pub(crate) enum Channel {
    Remote(Arc<remote::Remote>),
    #[cfg(feature = "embedded")]
    Local(Arc<local::Local>),
}

/// Cheap to clone.
#[derive(Clone)]
pub(crate) enum Line {
    Remote(Arc<remote::Connection>),
    #[cfg(feature = "embedded")]
    Local(Arc<local::Local>),
}

impl Channel {
    /// What the database in this process answers without a wait, past everything that is there for waiting; `None`: nothing has been done.
    #[inline]
    pub fn at_once(&self, ask: Ask, timeout: Duration, build: impl Fn(Vec<u8>) -> Vec<u8>) -> Option<(Kind, Bytes)> {
        match self {
            Channel::Remote(_) => None,
            #[cfg(feature = "embedded")]
            Channel::Local(local) => local.try_call(ask, timeout, build),
        }
    }

    pub fn is_local(&self) -> bool {
        !matches!(self, Channel::Remote(_))
    }

    /// Whether requests go to the nodes that lead what they are about.
    pub fn is_placed(&self) -> bool {
        match self {
            Channel::Remote(remote) => remote.is_placed(),
            #[cfg(feature = "embedded")]
            Channel::Local(_) => false,
        }
    }

    /// See [`Line::epoch`].
    pub fn epoch(&self) -> u64 {
        match self {
            Channel::Remote(remote) => remote.epoch(),
            #[cfg(feature = "embedded")]
            Channel::Local(_) => 0,
        }
    }

    /// A line to the node that leads a bucket where there is one, else any.
    pub async fn line_at(&self, bucket: u16, writes: bool, turn: Option<u64>) -> Result<Line, Error> {
        if let Channel::Remote(remote) = self
            && let Some(connection) = remote.open_at(bucket, writes, turn)
        {
            return Ok(Line::Remote(connection));
        }
        self.line(turn).await
    }

    /// See [`remote::Remote::deal`].
    pub fn deal(&self, located: Located<'_>) -> Dealt {
        match self {
            Channel::Remote(remote) => remote.deal(located),
            #[cfg(feature = "embedded")]
            Channel::Local(_) => Dealt::Together(None),
        }
    }

    /// A line that works, as far as is known; a lost one is made again first. `turn` spreads transactions over the lines, those without one stay with their thread.
    pub async fn line(&self, turn: Option<u64>) -> Result<Line, Error> {
        match self {
            Channel::Remote(remote) => match remote.open(turn) {
                Some(connection) => Ok(Line::Remote(connection)),
                None => Box::pin(remote.reconnect(turn)).await.map(Line::Remote),
            },
            #[cfg(feature = "embedded")]
            Channel::Local(local) => Ok(Line::Local(local.clone())),
        }
    }
}

impl Line {
    /// Grows when a server has started again: definitions of an earlier epoch are opened again.
    pub fn epoch(&self) -> u64 {
        match self {
            Line::Remote(connection) => connection.epoch(),
            #[cfg(feature = "embedded")]
            Line::Local(_) => 0,
        }
    }

    /// Sends a request whose payload `build` appends to a buffer, and gives the answer's payload, which is of kind `answer`. `build` is called again when the payload could not
    /// be sent yet. Dropping the future cancels the request.
    pub async fn call(
        &self,
        ask: Ask,
        answer: Kind,
        timeout: Duration,
        build: impl Fn(Vec<u8>) -> Vec<u8>,
    ) -> Result<Bytes, CallError> {
        let (kind, payload) = match self {
            Line::Remote(connection) => connection.call(ask, timeout, build).await?,
            #[cfg(feature = "embedded")]
            Line::Local(local) => local.call(ask, timeout, build).await,
        };
        if kind == answer {
            return Ok(payload);
        }
        match kind {
            Kind::Failed => match Failure::decode(&payload) {
                Ok(failure) => Err(CallError::failed(failure)),
                Err(error) => Err(self.nonsense(ask, error)),
            },
            other => Err(self.nonsense(ask, format_args!("{other:?} in place of {answer:?}"))),
        }
    }

    /// An answer that cannot be right: the line is given up.
    pub fn nonsense(&self, ask: Ask, what: impl std::fmt::Display) -> CallError {
        if let Line::Remote(connection) = self {
            connection.give_up(&what.to_string());
        }
        CallError::lost(match ask.effect {
            Effect::None => Error::protocol(what),
            Effect::Lasting => Error::outcome_unknown(Error::protocol(what)),
        })
    }

    /// Sends a request whose answer nobody waits for: the end of a transaction or of a scan.
    pub fn tell(&self, kind: Kind, transaction: u64, build: impl Fn(Vec<u8>) -> Vec<u8>) {
        match self {
            Line::Remote(connection) => connection.tell(kind, transaction, build),
            #[cfg(feature = "embedded")]
            Line::Local(local) => local.tell(kind, transaction, build),
        }
    }
}

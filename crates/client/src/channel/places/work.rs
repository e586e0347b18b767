//! What is done beside requests: asking for the placement, connecting to nodes.
//!
//! A thread does it, one job after the other, and ends when there is none. So a name that is resolved slowly, or an
//! address that does not answer, is waited for by nobody. Jobs are few: one when the placement has changed, one for
//! each node. The client's present connections are remembered weakly, to be asked later on.
//!
//! A question is asked no sooner than a pause after the one before. The pause grows while answers bring nothing new:
//! nodes hear of a change one after the other, and one that lags behind is not asked in a loop.

use super::Places;
use super::place::Place;
use crate::channel::remote::Connection;
use crate::channel::{Ask, Line};
use crate::{Error, ErrorKind, blocking};
use rauk_transporter::CloseReason;
use rauk_wire::placement::is_newer;
use rauk_wire::{Kind, Placement};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Between two questions for the placement: the shortest and the longest time.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Between two questions that a silent node has caused.
const SUSPICION: Duration = Duration::from_millis(500);
/// An answer, or a connection, is waited for no longer.
const PATIENCE: Duration = Duration::from_secs(3);
/// Present connections that are remembered. More are those of `Options::connections`, and lead to the same nodes.
const MOST_PRESENT: usize = 64;

#[derive(Default)]
pub(super) struct Work {
    /// The thread is there.
    running: bool,
    asks: bool,
    not_before: Option<Instant>,
    pause: Duration,
    suspected: Option<Instant>,
    present: Vec<Weak<Connection>>,
    opens: VecDeque<Arc<Place>>,
    /// The account was refused: nobody else is asked whether it is let in.
    denied: bool,
}

enum Job {
    Ask,
    Open(Arc<Place>),
}

impl Work {
    fn next(&mut self) -> Option<Job> {
        let job = match std::mem::take(&mut self.asks) {
            true => Some(Job::Ask),
            false => self.opens.pop_front().map(Job::Open),
        };
        self.running = job.is_some();
        job
    }

    fn remember(&mut self, present: &Arc<Connection>) {
        let known = |weak: &Weak<Connection>| std::ptr::eq(weak.as_ptr(), Arc::as_ptr(present));
        if self.present.iter().any(known) {
            return;
        }
        self.present.retain(|weak| weak.upgrade().is_some_and(|connection| connection.is_usable()));
        if self.present.len() < MOST_PRESENT {
            self.present.push(Arc::downgrade(present));
        }
    }
}

impl Places {
    /// Has the placement asked for, unless that was just done.
    pub(super) fn ask(&self, present: Option<&Arc<Connection>>) {
        let mut work = self.work.lock();
        if let Some(present) = present {
            work.remember(present);
        }
        if work.asks || work.not_before.is_some_and(|time| Instant::now() < time) {
            return;
        }
        work.asks = true;
        self.start(&mut work);
    }

    /// A node that requests wait for has been silent: has it asked for whether the cluster has given it up.
    pub fn suspect(&self) {
        let mut work = self.work.lock();
        let now = Instant::now();
        if work.asks || work.suspected.is_some_and(|time| now < time + SUSPICION) {
            return;
        }
        work.suspected = Some(now);
        work.asks = true;
        self.start(&mut work);
    }

    /// Has a connection made, unless it is too early to try again.
    pub(super) fn open(&self, place: &Arc<Place>) {
        if !place.begins(Instant::now()) {
            return;
        }
        let mut work = self.work.lock();
        match work.denied {
            true => place.not_tried(),
            false => {
                work.opens.push_back(place.clone());
                self.start(&mut work);
            }
        }
    }

    fn start(&self, work: &mut Work) {
        if work.running || self.closed.load(Ordering::SeqCst) {
            return;
        }
        let own = self.own.clone();
        let thread = std::thread::Builder::new().name("rauk-client-places".into()).spawn(move || run(&own));
        // Without a thread nothing is done now; the next request tries again.
        work.running = thread.is_ok();
        if !work.running {
            work.asks = false;
            work.opens.drain(..).for_each(|place| place.not_tried());
        }
    }

    /// Asks the present connections that have not said yet where they lead; then one of them, or another node, until
    /// one knows what is newest.
    async fn ask_now(&self) {
        let present: Vec<Arc<Connection>> = {
            let work = self.work.lock();
            work.present.iter().filter_map(Weak::upgrade).filter(|connection| connection.is_usable()).collect()
        };
        let told = self.means.seen.placement.load(Ordering::Relaxed);
        let map = self.map.read().clone();
        let mut heard = false;
        for connection in present.iter().filter(|connection| connection.node().is_none()) {
            heard |= self.ask_at(connection).await.is_ok();
        }
        let others = map.nodes().iter().filter_map(|place| place.connection());
        let is_new = |heard: bool| heard && !is_newer(told, self.map.read().version);
        for connection in present.iter().cloned().chain(others) {
            if is_new(heard) {
                break;
            }
            heard |= self.ask_at(&connection).await.is_ok();
        }
        let is_new = is_new(heard);
        let mut work = self.work.lock();
        work.pause = if is_new { FIRST_PAUSE } else { (work.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE) };
        work.not_before = Some(Instant::now() + work.pause);
    }

    async fn ask_at(&self, connection: &Arc<Connection>) -> Result<Placement, Error> {
        let line = Line::Remote(connection.clone());
        let ask = Ask::new(Kind::AskPlacement);
        let payload = line.call(ask, Kind::Placement, PATIENCE.min(self.means.timeout), |out| out).await?;
        // A hint that makes no sense is none: the connection is as good as it was.
        let placement = Placement::decode(&payload).map_err(|error| {
            tracing::warn!(server = %connection.peer(), %error, "the placement that a server names makes no sense");
            Error::protocol(error)
        })?;
        connection.set_node(placement.here);
        self.adopt(&placement);
        Ok(placement)
    }

    async fn open_now(&self, place: &Place) {
        let error = match self.try_open(place).await {
            Ok(connection) => {
                if !place.opened(connection.clone()) || self.closed.load(Ordering::SeqCst) {
                    connection.close(CloseReason::Here);
                }
                return;
            }
            Err(error) => error,
        };
        tracing::info!(node = place.node.0, address = place.address, %error, "no connection to the node that leads");
        // An account's code: also one for a while is for an hour.
        let by_account = error.code != 0;
        place.failed(Instant::now(), by_account || !error.is_temporary());
        if by_account && !error.is_temporary() {
            let mut work = self.work.lock();
            work.denied = true;
            work.opens.drain(..).for_each(|place| place.not_tried());
        }
    }

    async fn try_open(&self, place: &Place) -> Result<Arc<Connection>, Error> {
        let means = &self.means;
        let gone = || Error::disconnected("the client is closed");
        let transporter = means.transporter.upgrade().ok_or_else(gone)?;
        blocking::receives_for(&means.transporter);
        let link = transporter.connect(&place.address, &means.security, PATIENCE.min(means.timeout)).await?;
        let connection = means.connection(link, Some(means.timeout))?;
        connection.belongs_to(&self.own);
        // Addresses that nodes advertise may lead to others of them, behind a router or in containers.
        match self.ask_at(&connection).await {
            Ok(placement) if placement.here == place.node => Ok(connection),
            Ok(placement) => {
                connection.close(CloseReason::Here);
                let message = format!("{} leads to node {}", place.address, placement.here.0);
                Err(Error::new(ErrorKind::Connection, 0, message))
            }
            Err(error) => {
                connection.close(CloseReason::Here);
                Err(Error { code: 0, ..error })
            }
        }
    }
}

fn run(places: &Weak<Places>) {
    while let Some(places) = places.upgrade() {
        let job = {
            let mut work = places.work.lock();
            match places.closed.load(Ordering::SeqCst) {
                true => None,
                false => work.next(),
            }
        };
        match job {
            None => return,
            Some(Job::Ask) => blocking::wait(places.ask_now()),
            Some(Job::Open(place)) => blocking::wait(places.open_now(&place)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_types::NodeId;

    #[test]
    fn questions_come_before_connections_and_the_thread_ends_without_work() {
        let mut work = Work { running: true, asks: true, ..Work::default() };
        work.opens.push_back(Arc::new(Place::new(NodeId(1), "a:1".into())));
        assert!(matches!(work.next(), Some(Job::Ask)));
        assert!(matches!(work.next(), Some(Job::Open(_))));
        assert!(work.running);
        assert!(work.next().is_none());
        assert!(!work.running, "whoever comes next starts it again");
    }
}

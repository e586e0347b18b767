//! Requests that wait too long, and servers that have fallen silent: what is found by looking from time to time.
//!
//! While requests of a link wait, a timer looks at them. Those whose time is over are lost. Where the client has another server to go to, the server is also asked for a sign of life
//! (`Ping`) when it has sent nothing since the last look, and given up when it has sent nothing for the time that a connection may take: a machine that has lost its power, or a
//! link that is cut, never ends a connection. Nothing is looked at while nothing waits, and nothing here is on the way of a request.
//!
//! Looks come late in a process that was stopped itself; the silence begins again then, since the server may have answered meanwhile.

use super::remote::{Session, give_up, session_of};
use crate::timer;
use rauk_transporter::{Link, Urgency};
use rauk_wire::{Header, Kind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

/// A node that has sent nothing for so long while requests wait may have been given up by its cluster.
const SUSPICIOUS: Duration = Duration::from_millis(250);

struct Sweep {
    link: Weak<Link>,
    /// Of requests; zero: none.
    timeout: Duration,
    silence: Option<Silence>,
}

/// What was heard of a server at the last look.
#[derive(Clone, Copy)]
struct Silence {
    patience: Duration,
    bytes: u64,
    /// Since when it is all.
    since: Instant,
    looked: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Alive,
    Ask,
    GiveUp,
}

impl Silence {
    fn new(patience: Duration, bytes: u64, now: Instant) -> Silence {
        Silence { patience, bytes, since: now, looked: now }
    }

    fn look(&mut self, bytes: u64, now: Instant) -> Verdict {
        let late = now.duration_since(self.looked) > self.patience / 2;
        self.looked = now;
        if bytes != self.bytes {
            (self.bytes, self.since) = (bytes, now);
            return Verdict::Alive;
        }
        if late {
            self.since = now;
        }
        match now.duration_since(self.since) >= self.patience {
            true => Verdict::GiveUp,
            false => Verdict::Ask,
        }
    }
}

/// Sees to it that a sweep is under way.
pub(super) fn watch(link: &Arc<Link>, session: &Session, timeout: Duration, patience: Option<Duration>) {
    // Whoever finds it set has put his request where that sweep, which clears it first, will find it.
    if session.sweeping.load(Ordering::SeqCst) || session.sweeping.swap(true, Ordering::SeqCst) {
        return;
    }
    let silence = patience.map(|patience| Silence::new(patience, link.received_bytes(), Instant::now()));
    begin(link, timeout, silence);
}

fn begin(link: &Arc<Link>, timeout: Duration, silence: Option<Silence>) {
    let of_requests = (!timeout.is_zero()).then_some(timeout / 8);
    let of_silence = silence.map(|silence| silence.patience / 4);
    let pause = of_requests.into_iter().chain(of_silence).min().unwrap_or_default();
    // A node of several is asked about long before it is given up.
    let is_watched = session_of(link).is_some_and(|session| session.places.get().is_some());
    let longest = if is_watched { SUSPICIOUS } else { Duration::from_secs(1) };
    let pause = pause.clamp(Duration::from_millis(1), longest);
    let sweep = Arc::new(Sweep { link: Arc::downgrade(link), timeout, silence });
    timer::wake_at(Instant::now() + pause, Waker::from(sweep));
}

impl Wake for Sweep {
    fn wake(self: Arc<Self>) {
        let Some(link) = self.link.upgrade() else { return };
        let Some(session) = session_of(&link) else { return };
        session.sweeping.store(false, Ordering::SeqCst);
        let now = Instant::now();
        if !session.waiting.expire(now, self.silence.is_some()) {
            return;
        }
        let mut silence = self.silence;
        match silence.as_mut().map(|silence| silence.look(link.received_bytes(), now)) {
            Some(Verdict::GiveUp) => {
                let millis = silence.map_or(0, |silence| silence.patience.as_millis());
                return give_up(&link, session, &format!("no sign of life from {} for {millis} ms", link.peer()));
            }
            // A link that takes no frames any more is closed, or stays silent.
            Some(Verdict::Ask) => {
                drop(link.send(&Header::new(Kind::Ping, 0), link.buffer(), Urgency::Force));
                if let Some(places) = session.places.get().and_then(Weak::upgrade) {
                    places.suspect();
                }
            }
            Some(Verdict::Alive) | None => {}
        }
        // A request that came meanwhile has begun one of its own.
        if !session.sweeping.swap(true, Ordering::SeqCst) {
            begin(&link, self.timeout, silence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_given_up_after_silence_that_was_looked_at() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut silence = Silence::new(Duration::from_millis(1000), 7, start);
        assert_eq!(silence.look(7, at(250)), Verdict::Ask);
        assert_eq!(silence.look(9, at(500)), Verdict::Alive);
        for millis in [750, 1000, 1250] {
            assert_eq!(silence.look(9, at(millis)), Verdict::Ask);
        }
        assert_eq!(silence.look(9, at(1500)), Verdict::GiveUp);
        // This process was stopped: the server gets its time again.
        let mut silence = Silence::new(Duration::from_millis(1000), 9, start);
        assert_eq!(silence.look(9, at(60_000)), Verdict::Ask);
        assert_eq!(silence.look(9, at(60_400)), Verdict::Ask);
        assert_eq!(silence.look(9, at(60_800)), Verdict::Ask);
        assert_eq!(silence.look(9, at(61_000)), Verdict::GiveUp);
    }
}

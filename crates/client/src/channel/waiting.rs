//! Requests that wait for their answers, on one link.
//!
//! A request's number says where it waits: shard, place in the shard, and how often the place was used before, so that the answer to a request that
//! was given up finds nobody. Threads use different shards, so that many of them on one link seldom meet. A lock is held for a few instructions; wakers are
//! called outside of it.

use parking_lot::Mutex;
use rauk_wire::Frame;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

const SHARD_BITS: u32 = 4;
const SHARDS: usize = 1 << SHARD_BITS;
const NOBODY: u32 = u32::MAX;

/// Why a request gets no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The link has ended, with the reason.
    Closed(String),
    TimedOut,
}

enum State {
    /// The next free place.
    Free(u32),
    Waiting {
        waker: Option<Waker>,
        until: Option<Instant>,
    },
    Answered(Frame),
    Lost(Lost),
}

struct Place {
    /// Of its present or next use; never 0, so that no request has the number 0.
    turn: u32,
    state: State,
}

struct Shard {
    places: Vec<Place>,
    free: u32,
    closed: Option<Lost>,
}

pub(crate) struct Waiting {
    shards: [Mutex<Shard>; SHARDS],
}

fn shard_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<Option<usize>> = const { Cell::new(None) };
    }
    MINE.with(|mine| match mine.get() {
        Some(shard) => shard,
        None => {
            let shard = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
            mine.set(Some(shard));
            shard
        }
    })
}

fn take_apart(number: u64) -> (usize, usize, u32) {
    let low = number as u32;
    (low as usize & (SHARDS - 1), (low >> SHARD_BITS) as usize, (number >> 32) as u32)
}

impl Shard {
    /// The place of a request that still is there.
    fn place(&mut self, number: u64) -> Option<(u32, &mut Place)> {
        let (_, index, turn) = take_apart(number);
        let place = self.places.get_mut(index)?;
        (place.turn == turn && !matches!(place.state, State::Free(_))).then_some((index as u32, place))
    }

    fn release(&mut self, index: u32) -> State {
        let place = &mut self.places[index as usize];
        place.turn = place.turn.wrapping_add(1).max(1);
        let state = std::mem::replace(&mut place.state, State::Free(self.free));
        self.free = index;
        state
    }
}

impl Waiting {
    pub fn new() -> Waiting {
        let shard = |_| Mutex::new(Shard { places: Vec::new(), free: NOBODY, closed: None });
        Waiting { shards: std::array::from_fn(shard) }
    }

    /// A new request; its number.
    pub fn begin(&self, until: Option<Instant>) -> Result<u64, Lost> {
        let shard_number = shard_of_thread();
        let mut shard = self.shards[shard_number].lock();
        if let Some(lost) = &shard.closed {
            return Err(lost.clone());
        }
        let state = State::Waiting { waker: None, until };
        let index = shard.free;
        let index = match shard.places.get_mut(index as usize) {
            Some(place) => {
                let State::Free(next) = std::mem::replace(&mut place.state, state) else {
                    unreachable!("places in the list of free ones are free")
                };
                shard.free = next;
                index
            }
            None => {
                shard.places.push(Place { turn: 1, state });
                shard.places.len() as u32 - 1
            }
        };
        let turn = shard.places[index as usize].turn;
        Ok(u64::from(turn) << 32 | u64::from(index << SHARD_BITS) | shard_number as u64)
    }

    /// The answer, once; the request is over then. A number that is not waiting is a mistake of this crate.
    pub fn poll(&self, number: u64, cx: &mut Context<'_>) -> Poll<Result<Frame, Lost>> {
        let mut shard = self.shards[take_apart(number).0].lock();
        let (index, place) = shard.place(number).expect("a request is polled until it has its answer");
        if let State::Waiting { waker, .. } = &mut place.state {
            match waker {
                Some(waker) => waker.clone_from(cx.waker()),
                None => *waker = Some(cx.waker().clone()),
            }
            return Poll::Pending;
        }
        match shard.release(index) {
            State::Answered(frame) => Poll::Ready(Ok(frame)),
            State::Lost(lost) => Poll::Ready(Err(lost)),
            State::Waiting { .. } | State::Free(_) => unreachable!("looked at above"),
        }
    }

    /// Gives a request up; whether it was still waiting.
    pub fn forget(&self, number: u64) -> bool {
        let mut shard = self.shards[take_apart(number).0].lock();
        let Some((index, _)) = shard.place(number) else { return false };
        let state = shard.release(index);
        drop(shard);
        matches!(state, State::Waiting { .. })
    }

    /// An answer has come; nobody may be waiting for it any more.
    pub fn answer(&self, number: u64, frame: Frame) {
        let mut shard = self.shards[take_apart(number).0].lock();
        let Some((_, place)) = shard.place(number) else { return };
        let State::Waiting { waker, .. } = &mut place.state else { return };
        let waker = waker.take();
        place.state = State::Answered(frame);
        drop(shard);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// All requests are lost, and there will be no new ones.
    pub fn close(&self, reason: &str) {
        let lost = Lost::Closed(reason.to_owned());
        for shard in &self.shards {
            let mut shard = shard.lock();
            shard.closed = Some(lost.clone());
            let wakers = shard.lose(&lost, |_| true);
            drop(shard);
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// Gives up what has waited too long; whether anything goes on waiting, with a limit or, where `all`, without.
    pub fn expire(&self, now: Instant, all: bool) -> bool {
        let mut more = false;
        for shard in &self.shards {
            let mut shard = shard.lock();
            let wakers = shard.lose(&Lost::TimedOut, |until| until.is_some_and(|until| until <= now));
            let waits = |place: &Place| matches!(place.state, State::Waiting { until, .. } if all || until.is_some());
            more |= shard.places.iter().any(waits);
            drop(shard);
            wakers.into_iter().for_each(Waker::wake);
        }
        more
    }
}

impl Shard {
    fn lose(&mut self, lost: &Lost, which: impl Fn(Option<Instant>) -> bool) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for place in &mut self.places {
            if let State::Waiting { waker, until } = &mut place.state
                && which(*until)
            {
                wakers.extend(waker.take());
                place.state = State::Lost(lost.clone());
            }
        }
        wakers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_wire::{Header, Kind};
    use std::sync::Arc;
    use std::task::Wake;
    use std::time::Duration;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn frame(request: u64) -> Frame {
        Frame { header: Header::new(Kind::Done, request), payload: bytes::Bytes::new() }
    }

    #[test]
    fn each_request_gets_its_own_answer_once() {
        let waiting = Waiting::new();
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let mut cx = Context::from_waker(&waker);
        let numbers: Vec<u64> = (0..100).map(|_| waiting.begin(None).expect("open")).collect();
        assert!(numbers.iter().all(|n| *n != 0));
        assert!(numbers.iter().all(|n| waiting.poll(*n, &mut cx).is_pending()));
        for number in numbers.iter().rev() {
            waiting.answer(*number, frame(*number));
        }
        assert_eq!(count.0.load(Ordering::SeqCst), 100);
        for number in &numbers {
            let Poll::Ready(Ok(frame)) = waiting.poll(*number, &mut cx) else { panic!("no answer") };
            assert_eq!(frame.header.request, *number);
        }
    }

    #[test]
    fn a_late_answer_finds_nobody_though_the_place_is_in_use_again() {
        let waiting = Waiting::new();
        let mut cx = Context::from_waker(Waker::noop());
        let first = waiting.begin(None).expect("open");
        assert!(waiting.forget(first));
        assert!(!waiting.forget(first));
        let second = waiting.begin(None).expect("open");
        assert_ne!(first, second);
        waiting.answer(first, frame(first));
        assert!(waiting.poll(second, &mut cx).is_pending());
        waiting.answer(second, frame(second));
        waiting.answer(second, frame(second));
        assert!(waiting.poll(second, &mut cx).is_ready());
        waiting.answer(u64::MAX, frame(0));
        waiting.answer(0, frame(0));
    }

    #[test]
    fn closing_and_time_lose_what_waits() {
        let waiting = Waiting::new();
        let mut cx = Context::from_waker(Waker::noop());
        let now = Instant::now();
        let short = waiting.begin(Some(now)).expect("open");
        let long = waiting.begin(Some(now + Duration::from_secs(9))).expect("open");
        let endless = waiting.begin(None).expect("open");
        assert!(waiting.expire(now, false));
        assert_eq!(waiting.poll(short, &mut cx).map(Result::err), Poll::Ready(Some(Lost::TimedOut)));
        assert!(waiting.poll(long, &mut cx).is_pending());
        assert!(!waiting.expire(now + Duration::from_secs(9), false));
        assert!(waiting.expire(now + Duration::from_secs(9), true));
        waiting.close("gone");
        let closed = Lost::Closed("gone".into());
        assert_eq!(waiting.poll(endless, &mut cx).map(Result::err), Poll::Ready(Some(closed.clone())));
        assert_eq!(waiting.begin(None).err(), Some(closed));
    }
}

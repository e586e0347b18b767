//! Adaptive send, as the builders of MySQL Cluster described it: per socket, how many sends may wait for company.
//!
//! Sending costs a system call, a trip through the network stack and, at the peer, a wake-up and another system call. A frame that waits a little for
//! the next one saves all of that; a frame that waits for company that never comes has only lost time. Nobody knows the load in advance, so each
//! socket learns it: [`AdaptiveSend`] keeps `max_waits`, the number of frames that may wait at a time. With 0 every frame is sent at
//! once; with `n` the frame that finds `n` waiting takes them along.
//!
//! # The rule
//! For each frame it takes the time since the frame `max_waits` before it, and since the one `max_waits + 1` before it: that is how long the first of a full group
//! has waited when this one completes it, as things are and with one more. Both are averaged over the frames of a window of about 10 ms, then
//!
//! * the mean at present is above half of the wanted maximum: one less may wait;
//! * it is not, and the mean with one more is not either: one more may wait;
//! * else nothing changes.
//!
//! Whatever the rule says, a frame leaves when the wanted maximum has passed since the first of its group; the caller has a timer for that.
//!
//! # What the means are taken over
//! Over *frames*, not over groups or time. The sum over frames of "time since the n-th before" telescopes: its mean is `n / rate`, whatever the shape of the arrivals. So for
//! open loads (senders that do not wait for answers) the rule settles where `max_waits = rate × maximum / 2`, for Poisson arrivals and bursts alike, and the half
//! leaves room for the spread around that mean. A frame's own wait is less still: the last of a group has none.
//!
//! # Two additions for closed loops
//! A program that sends, waits for the answer, and sends again has a short mean (one round trip) as long as nothing waits, and no company at all when something does: the rule
//! alone would go up, stall for the maximum, go down, and so on, every 10 ms. Therefore
//!
//! * four waits in a row that ran out (nearly) count as a window's verdict: one less, at once. A load that vanishes is noticed in a few frames in the same way;
//! * an increase that is taken back in this way within two windows was a mistake; the next try comes after 2, 4, … at most 128 windows, or as soon as the mean
//!   is less than half of what it was then (the load has changed). Ping-pong loses less than a thousandth of its time to these tries.
//!
//! A window without any frame is a mean without end: one less for each, so that after idle time the first frame goes at once.
//!
//! Pure: the time is passed in, as the duration since any fixed moment. The simulation in `tests/adaptive_send.rs` shows where it settles; `docs/adaptive-send.svg` draws it
//! (made by `cargo run -p rauk-transporter --example adaptive_plot`).

use std::time::Duration;

/// Most that may wait: with the one that takes them along, as many as one `writev` sends.
pub const MOST_WAITS: u32 = 63;
const WINDOW: u64 = 10_000_000;
/// Waits that ran out, one after the other, before `max_waits` goes down at once.
const LONELY: u32 = 4;
/// Windows that an increase must last to have been right.
const TRIAL: u32 = 2;
const LONGEST_PENALTY: u32 = 128;
const HISTORY: usize = MOST_WAITS as usize + 1;

/// What to do with a message that was put into the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send everything that waits.
    Send,
    /// Leave it; it must have gone by this time.
    WaitUntil(Duration),
}

/// One socket's state.
#[derive(Debug)]
pub struct AdaptiveSend {
    longest_wait: u64,
    max_waits: u32,
    /// Frames that wait now, and by when the first of them must have gone.
    waiting: u32,
    deadline: u64,
    /// Times of the last frames; `count` frames have been seen, the next goes to `count % HISTORY`.
    times: Box<[u64; HISTORY]>,
    count: u64,
    window: Window,
    lonely: u32,
    trial: Trial,
}

/// Sums since the window began.
#[derive(Debug, Default)]
struct Window {
    start: u64,
    samples: u64,
    now: u64,
    one_more: u64,
}

/// What became of the last increase.
#[derive(Debug, Default)]
struct Trial {
    /// Windows since the last increase.
    age: u32,
    /// Mean wait with one more, as it looked when the increase was made, and when it failed.
    promised: u64,
    failed: u64,
    /// Windows until the next try, and how many it was the last time.
    hold: u32,
    penalty: u32,
}

impl AdaptiveSend {
    /// `longest_wait` zero: every message is sent at once.
    pub fn new(longest_wait: Duration) -> AdaptiveSend {
        AdaptiveSend {
            longest_wait: nanos(longest_wait),
            max_waits: 0,
            waiting: 0,
            deadline: 0,
            times: Box::new([0; HISTORY]),
            count: 0,
            window: Window::default(),
            lonely: 0,
            trial: Trial { age: u32::MAX, ..Trial::default() },
        }
    }

    /// Holds from the next message on. What waits keeps its deadline.
    pub fn set_longest_wait(&mut self, longest_wait: Duration) {
        let longest_wait = nanos(longest_wait);
        if longest_wait == self.longest_wait {
            return;
        }
        self.longest_wait = longest_wait;
        self.window = Window::default();
        self.trial = Trial { age: u32::MAX, ..Trial::default() };
        self.count = 0;
        if longest_wait == 0 {
            self.max_waits = 0;
        }
    }

    /// A message was put into the buffer at `now`.
    pub fn on_message(&mut self, now: Duration) -> Decision {
        if self.longest_wait == 0 {
            self.waiting = 0;
            return Decision::Send;
        }
        let now = nanos(now);
        self.learn(now);
        self.waiting += 1;
        if self.waiting == 1 {
            self.deadline = now + self.longest_wait;
        }
        if now >= self.deadline {
            self.sent(now);
            Decision::Send
        } else if self.waiting > self.max_waits {
            self.waiting = 0;
            self.lonely = 0;
            Decision::Send
        } else {
            Decision::WaitUntil(Duration::from_nanos(self.deadline))
        }
    }

    /// What waited was sent at `now` for another reason (forced, timer, somebody else's send).
    pub fn on_sent(&mut self, now: Duration) {
        if self.waiting > 0 {
            self.sent(nanos(now));
        }
    }

    /// How many may wait at present.
    pub fn max_waits(&self) -> u32 {
        self.max_waits
    }

    fn sent(&mut self, now: u64) {
        self.waiting = 0;
        // Whoever ends a wait for its age does so a little early rather than late: the second half of the time counts as run out.
        if now + self.longest_wait / 2 < self.deadline {
            return;
        }
        self.lonely += 1;
        if self.lonely >= LONELY {
            self.lonely = 0;
            self.decrease(true);
            self.window = Window { start: now, ..Window::default() };
        }
    }

    /// Takes this message's two times into the window, and judges the window when it is over.
    fn learn(&mut self, now: u64) {
        if self.count > 0 {
            let last = self.before(1);
            let empty = now.saturating_sub(last) / WINDOW;
            if empty >= 2 {
                self.max_waits = self.max_waits.saturating_sub(empty.min(u64::from(u32::MAX)) as u32);
                self.window = Window { start: now, ..Window::default() };
            }
        } else {
            self.window = Window { start: now, ..Window::default() };
        }
        let waits = u64::from(self.max_waits);
        if self.count > waits {
            self.window.samples += 1;
            self.window.now += if waits == 0 { 0 } else { now.saturating_sub(self.before(waits)) };
            self.window.one_more += now.saturating_sub(self.before(waits + 1));
        }
        self.times[(self.count % HISTORY as u64) as usize] = now;
        self.count += 1;
        if now.saturating_sub(self.window.start) >= WINDOW && self.window.samples > 0 {
            self.judge();
            self.window = Window { start: now, ..Window::default() };
        }
    }

    /// Time of the message `back` before the next one; `back` is at most `count` and [`HISTORY`].
    fn before(&self, back: u64) -> u64 {
        self.times[((self.count - back) % HISTORY as u64) as usize]
    }

    fn judge(&mut self) {
        let acceptable = self.longest_wait / 2;
        let (present, one_more) = (self.window.now / self.window.samples, self.window.one_more / self.window.samples);
        self.trial.age = self.trial.age.saturating_add(1);
        if self.trial.age == TRIAL + 1 {
            self.trial.penalty = 0;
        }
        if present > acceptable {
            self.decrease(false);
        } else if one_more <= acceptable && self.max_waits < MOST_WAITS {
            if self.trial.hold > 0 && one_more * 2 >= self.trial.failed {
                self.trial.hold -= 1;
                return;
            }
            self.max_waits += 1;
            self.trial.hold = 0;
            self.trial.age = 0;
            self.trial.promised = one_more;
        }
    }

    /// `alone`: waits ran out. If there was an increase lately, it was a mistake, and not just a slower moment of the load.
    fn decrease(&mut self, alone: bool) {
        self.max_waits = self.max_waits.saturating_sub(1);
        if alone && self.trial.age <= TRIAL {
            self.trial.penalty = (self.trial.penalty * 2).clamp(2, LONGEST_PENALTY);
            self.trial.hold = self.trial.penalty;
            self.trial.failed = self.trial.promised;
        }
        self.trial.age = u32::MAX;
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_micros(200);

    fn micros(n: u64) -> Duration {
        Duration::from_micros(n)
    }

    /// `count` messages, `apart` microseconds from each other, with a timer; gives the time after them.
    fn steady(adaptive: &mut AdaptiveSend, start: u64, apart: u64, count: u64) -> u64 {
        let mut deadline = None;
        for i in 0..count {
            let now = micros(start + i * apart);
            if let Some(due) = deadline.take_if(|due| *due <= now) {
                adaptive.on_sent(due);
            }
            match adaptive.on_message(now) {
                Decision::Send => deadline = None,
                Decision::WaitUntil(until) => {
                    assert!(until <= now + LONGEST && until > now);
                    deadline = Some(until);
                }
            }
        }
        start + count * apart
    }

    #[test]
    fn zero_sends_at_once() {
        let mut adaptive = AdaptiveSend::new(Duration::ZERO);
        for i in 0..100_000 {
            assert_eq!(adaptive.on_message(micros(i)), Decision::Send);
        }
        assert_eq!(adaptive.max_waits(), 0);
    }

    #[test]
    fn grows_by_one_a_window_until_half_the_maximum() {
        let mut adaptive = AdaptiveSend::new(LONGEST);
        let now = steady(&mut adaptive, 0, 10, 1002);
        assert_eq!(adaptive.max_waits(), 1, "one window, one more");
        steady(&mut adaptive, now, 10, 50_000);
        assert_eq!(adaptive.max_waits(), 10, "ten messages in half of the maximum");
    }

    #[test]
    fn a_slow_load_never_waits() {
        let mut adaptive = AdaptiveSend::new(LONGEST);
        for i in 0..5_000 {
            assert_eq!(adaptive.on_message(micros(i * 150)), Decision::Send);
        }
    }

    #[test]
    fn the_maximum_is_kept_by_a_late_message() {
        let mut adaptive = AdaptiveSend::new(LONGEST);
        let now = steady(&mut adaptive, 0, 10, 20_000);
        adaptive.on_sent(micros(now));
        let first = adaptive.on_message(micros(now));
        assert_eq!(first, Decision::WaitUntil(micros(now + 200)));
        assert_eq!(adaptive.on_message(micros(now + 100)), first, "the first one's deadline holds for all");
        assert_eq!(adaptive.on_message(micros(now + 200)), Decision::Send);
    }

    #[test]
    fn idle_windows_count_down() {
        let mut adaptive = AdaptiveSend::new(LONGEST);
        let now = steady(&mut adaptive, 0, 10, 50_000);
        adaptive.on_sent(micros(now));
        adaptive.on_message(micros(now + 35_000));
        assert_eq!(adaptive.max_waits(), 7);
        adaptive.on_sent(micros(now + 35_000));
        assert_eq!(adaptive.on_message(micros(now + 1_000_000)), Decision::Send);
        assert_eq!(adaptive.max_waits(), 0);
    }

    #[test]
    fn waits_that_run_out_go_down_at_once() {
        let mut adaptive = AdaptiveSend::new(LONGEST);
        let mut now = steady(&mut adaptive, 0, 10, 50_000);
        adaptive.on_sent(micros(now));
        let before = adaptive.max_waits();
        for _ in 0..LONELY {
            let Decision::WaitUntil(until) = adaptive.on_message(micros(now)) else { panic!("waits") };
            adaptive.on_sent(until);
            now += 225;
        }
        assert_eq!(adaptive.max_waits(), before - 1);
    }

    #[test]
    fn changed_online() {
        let mut adaptive = AdaptiveSend::new(Duration::ZERO);
        steady(&mut adaptive, 0, 10, 10_000);
        adaptive.set_longest_wait(LONGEST);
        let now = steady(&mut adaptive, 100_000, 10, 50_000);
        assert_eq!(adaptive.max_waits(), 10);
        adaptive.set_longest_wait(Duration::ZERO);
        assert_eq!(adaptive.on_message(micros(now)), Decision::Send);
        assert_eq!(adaptive.max_waits(), 0);
    }

    #[test]
    fn clocks_that_step_back_do_no_harm() {
        let mut adaptive = AdaptiveSend::new(LONGEST);
        for i in 0..10_000u64 {
            adaptive.on_message(micros(if i % 7 == 0 { 0 } else { i }));
        }
        assert!(adaptive.max_waits() <= MOST_WAITS);
    }
}

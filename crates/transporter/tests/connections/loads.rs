//! A socket under a load, simulated: times are drawn from a seed, a send is free, and the timer is exact.
//!
//! Shared by the tests and by the example that draws the plot.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_transporter::adaptive::{AdaptiveSend, Decision};
use std::time::Duration;

pub const LONGEST: Duration = Duration::from_micros(200);

/// How messages come.
#[derive(Clone, Copy)]
pub enum Load {
    Idle,
    /// At random, so many a second on average, whoever waits for answers or not.
    Poisson(f64),
    /// So many at once (a microsecond apart), so often a second.
    Bursts(u32, f64),
    /// So many senders that wait for their answer, which comes after so many microseconds, before they send again.
    PingPong(usize, u64),
}

/// What was seen.
#[derive(Default)]
pub struct Seen {
    pub messages: u64,
    pub sends: u64,
    /// Sum and maximum of what messages waited, in nanoseconds.
    pub waited: u64,
    pub longest: u64,
    /// Time and `max_waits`, about every millisecond.
    pub course: Vec<(f64, u32)>,
    /// `max_waits` weighted by messages.
    pub waits: u64,
}

impl Seen {
    pub fn mean_waits(&self) -> f64 {
        self.waits as f64 / self.messages as f64
    }

    pub fn mean_wait_us(&self) -> f64 {
        self.waited as f64 / self.messages as f64 / 1000.0
    }
}

pub struct Socket {
    pub adaptive: AdaptiveSend,
    random: SmallRng,
    now: u64,
    /// Who waits in the buffer, since when; and until when at most.
    buffer: Vec<(usize, u64)>,
    deadline: Option<u64>,
}

impl Socket {
    pub fn new(seed: u64) -> Socket {
        Socket {
            adaptive: AdaptiveSend::new(LONGEST),
            random: SmallRng::seed_from_u64(seed),
            now: 0,
            buffer: Vec::new(),
            deadline: None,
        }
    }

    fn exponential(&mut self, mean: f64) -> u64 {
        let uniform: f64 = self.random.random_range(f64::MIN_POSITIVE..1.0);
        (-uniform.ln() * mean) as u64 + 1
    }

    /// Everything in the buffer leaves; gives who sent it.
    fn send(&mut self, seen: &mut Seen) -> Vec<usize> {
        self.deadline = None;
        seen.sends += 1;
        let senders = self.buffer.iter().map(|(sender, _)| *sender).collect();
        for (_, since) in self.buffer.drain(..) {
            seen.waited += self.now - since;
            seen.longest = seen.longest.max(self.now - since);
        }
        senders
    }

    /// The load for so long.
    pub fn run(&mut self, load: Load, length: Duration) -> Seen {
        let mut seen = Seen::default();
        let end = self.now + length.as_nanos() as u64;
        // When each sender comes next. Open loads have one, that never waits.
        let mut next: Vec<u64> = match load {
            Load::Idle => vec![u64::MAX],
            Load::Poisson(_) | Load::Bursts(..) => vec![self.now + 1],
            Load::PingPong(senders, _) => (0..senders as u64).map(|i| self.now + 1 + i * 700).collect(),
        };
        let mut left = 0;
        let mut drawn = 0;
        loop {
            let (sender, at) = next.iter().copied().enumerate().min_by_key(|(_, at)| *at).expect("a sender");
            let due = self.deadline.unwrap_or(u64::MAX);
            if at.min(due) >= end {
                self.now = end;
                seen.course.push((end as f64 / 1e9, self.adaptive.max_waits()));
                return seen;
            }
            self.now = at.min(due);
            if self.now >= drawn {
                drawn = self.now + 1_000_000;
                seen.course.push((self.now as f64 / 1e9, self.adaptive.max_waits()));
            }
            let gone = if due <= at {
                self.adaptive.on_sent(Duration::from_nanos(self.now));
                self.send(&mut seen)
            } else {
                seen.messages += 1;
                self.buffer.push((sender, self.now));
                let decision = self.adaptive.on_message(Duration::from_nanos(self.now));
                seen.waits += u64::from(self.adaptive.max_waits());
                next[sender] = match load {
                    Load::Idle => u64::MAX,
                    Load::Poisson(rate) => self.now + self.exponential(1e9 / rate),
                    Load::Bursts(count, rate) => {
                        left = if left == 0 { count - 1 } else { left - 1 };
                        if left == 0 { self.now + self.exponential(1e9 / rate) } else { self.now + 1000 }
                    }
                    // Until its answer is there.
                    Load::PingPong(..) => u64::MAX,
                };
                match decision {
                    Decision::Send => self.send(&mut seen),
                    Decision::WaitUntil(until) => {
                        self.deadline.get_or_insert(until.as_nanos() as u64);
                        Vec::new()
                    }
                }
            };
            if let Load::PingPong(_, answer_us) = load {
                for sender in gone {
                    let spread = self.random.random_range(0.8..1.2);
                    next[sender] = self.now + (answer_us as f64 * 1000.0 * spread) as u64;
                }
            }
        }
    }
}

//! How long a receiver spins before it sleeps.
//!
//! Waking a sleeping thread costs about eight times what a small message does, so a receiver looks for a while before it sleeps. How long is learned: a sleep that ends within
//! the longest spin shows that spinning would have found the message, and the bound doubles; a spin that finds nothing, and a long sleep after it, halve it, down to nothing. So a
//! receiver with nothing to do uses no CPU at all, after a few messages too.
//!
//! It does not spin when more threads can run than there are cores: then it takes the time from whoever would send the message. The count is that of `/proc/loadavg`
//! (all threads of the machine, as the scheduler sees them, read at most every 10 ms, a few microseconds): our own active threads would be cheaper to count,
//! but the client on the same machine, which is what we would be in the way of, is not among them. Without that file it spins.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

const FIRST: Duration = Duration::from_micros(8);
const SHORTEST: Duration = Duration::from_micros(2);
const LOOK_AT_LOAD: Duration = Duration::from_millis(10);

pub(crate) struct Spin {
    longest: Duration,
    bound: Duration,
    load: Option<File>,
    cores: usize,
    looked: Option<Duration>,
    crowded: bool,
}

impl Spin {
    pub fn new(longest: Duration) -> Spin {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Spin {
            longest,
            bound: longest.min(FIRST),
            load: (!longest.is_zero()).then(|| File::open("/proc/loadavg").ok()).flatten(),
            cores,
            looked: None,
            crowded: false,
        }
    }

    /// How long to spin now.
    pub fn bound(&mut self, now: Duration) -> Duration {
        if self.bound.is_zero() {
            return Duration::ZERO;
        }
        if self.looked.is_none_or(|looked| now >= looked + LOOK_AT_LOAD) {
            self.looked = Some(now);
            self.crowded = self.running().is_some_and(|running| running > self.cores);
        }
        if self.crowded { Duration::ZERO } else { self.bound }
    }

    /// A spin has found something after so long.
    pub fn found(&mut self, after: Duration) {
        // Room above what it took, so that the next one is found too.
        self.bound = self.bound.max(after * 2).min(self.longest);
    }

    /// A sleep ended with something after so long.
    pub fn slept(&mut self, slept: Duration) {
        if slept <= self.longest {
            self.bound = (self.bound * 2).max(FIRST).min(self.longest);
        } else {
            self.bound /= 2;
            if self.bound < SHORTEST {
                self.bound = Duration::ZERO;
            }
        }
    }

    /// Threads that can run, on the whole machine.
    fn running(&self) -> Option<usize> {
        let mut text = [0u8; 64];
        let count = self.load.as_ref()?.read_at(&mut text, 0).ok()?;
        parse_running(std::str::from_utf8(&text[..count]).ok()?)
    }
}

/// `0.20 0.18 0.12 1/80 11206`: the first number of the fourth field.
fn parse_running(text: &str) -> Option<usize> {
    text.split(' ').nth(3)?.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learns_from_sleeps() {
        let longest = Duration::from_micros(50);
        let mut spin = Spin::new(longest);
        spin.load = None;
        for _ in 0..10 {
            spin.slept(Duration::from_millis(5));
        }
        assert_eq!(spin.bound(Duration::ZERO), Duration::ZERO, "nothing comes");
        for _ in 0..4 {
            spin.slept(Duration::from_micros(30));
        }
        assert_eq!(spin.bound(Duration::ZERO), longest, "messages come within the bound");
        spin.found(Duration::from_micros(3));
        assert_eq!(spin.bound(Duration::ZERO), longest);
    }

    #[test]
    fn never_without_a_longest() {
        let mut spin = Spin::new(Duration::ZERO);
        spin.slept(Duration::ZERO);
        assert_eq!(spin.bound(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn reads_the_load() {
        assert_eq!(parse_running("0.20 0.18 0.12 3/80 11206\n"), Some(3));
        assert_eq!(parse_running("nonsense"), None);
    }
}

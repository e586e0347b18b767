//! How long a client went without a success: what a failure is to whoever is not told of it.
//!
//! A client notes when each of its operations succeeded. A pause is the time from one success to the next, whatever was tried and refused between; the last one lasts until the client is stopped, so a client that
//! never succeeds again has the whole rest as its pause.

use std::time::{Duration, Instant};

pub struct Successes {
    began: Instant,
    ended: Instant,
    at: Vec<Instant>,
}

impl Successes {
    pub fn begin() -> Successes {
        let now = Instant::now();
        Successes { began: now, ended: now, at: Vec::new() }
    }

    pub fn another(&mut self) {
        self.at.push(Instant::now());
    }

    pub fn end(&mut self) {
        self.ended = Instant::now();
    }

    pub fn duration(&self) -> Duration {
        self.ended - self.began
    }

    /// The longest pauses that end before a moment, and after it.
    pub fn around(&self, moment: Instant) -> (Duration, Duration) {
        let longest = self.longest(moment, self.ended);
        (longest[0], longest[1])
    }

    /// The longest pauses before a failure, of the failure, and of its repair: those that end before the first moment, those that are open at it or begin after it, those that begin after the second.
    pub fn longest(&self, failed: Instant, mended: Instant) -> [Duration; 3] {
        let mut longest = [Duration::ZERO; 3];
        let mut last = self.began;
        for at in self.at.iter().copied().chain([self.ended]) {
            let phase = match () {
                () if at < failed => 0,
                () if last < mended => 1,
                () => 2,
            };
            longest[phase] = longest[phase].max(at - last);
            last = at;
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_a_failures_however_long_it_lasts_and_the_last_one_lasts_until_the_end() {
        let began = Instant::now();
        let ms = Duration::from_millis;
        let at = [5, 25, 30, 330, 340].map(|n| began + ms(n)).to_vec();
        let seen = Successes { began, ended: began + ms(1000), at };
        // Never a success again: that counts until the end.
        assert_eq!(seen.around(began + ms(35)), (ms(20), ms(660)));
        let seen = Successes { ended: began + ms(345), ..seen };
        assert_eq!(seen.around(began + ms(35)), (ms(20), ms(300)));
        assert_eq!(seen.longest(began + ms(26), began + ms(330)), [ms(20), ms(300), ms(10)]);
        // Mended before it was over.
        assert_eq!(seen.longest(began + ms(35), began + ms(40)), [ms(20), ms(300), ms(10)]);
        assert_eq!(seen.longest(began + ms(35), began + ms(335)), [ms(20), ms(300), ms(5)]);
    }
}

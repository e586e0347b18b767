//! Time that goes on while the machine sleeps.
//!
//! A lease is a promise about time that others keep too: who was suspended for longer than its lease must not find it
//! valid when the machine wakes up. `Instant` of the standard library is the clock `CLOCK_MONOTONIC` on Linux, which
//! stands still while a machine is suspended (a virtual machine that is paused and resumed, a laptop that is closed).
//! This clock is `CLOCK_BOOTTIME` there, which does not. On systems without one it is `Instant`.
//!
//! Timers (`super::timer`) keep `Instant`: who sleeps measures nothing, and looks at this clock when it wakes.

use std::time::Duration;

/// Time since it was made.
pub struct Clock {
    start: Moment,
}

#[cfg(target_os = "linux")]
type Moment = Duration;
#[cfg(not(target_os = "linux"))]
type Moment = std::time::Instant;

impl Clock {
    pub fn start() -> Clock {
        Clock { start: moment() }
    }

    pub fn now(&self) -> Duration {
        #[cfg(target_os = "linux")]
        return moment().saturating_sub(self.start);
        #[cfg(not(target_os = "linux"))]
        self.start.elapsed()
    }
}

#[cfg(target_os = "linux")]
fn moment() -> Moment {
    use nix::time::ClockId;
    let read = ClockId::CLOCK_BOOTTIME.now().expect("Linux has this clock since 2.6.39");
    read.into()
}

#[cfg(not(target_os = "linux"))]
fn moment() -> Moment {
    std::time::Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_as_the_system_does() {
        let clock = Clock::start();
        let mut last = clock.now();
        for _ in 0..10_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
        let (before, start) = (clock.now(), std::time::Instant::now());
        std::thread::sleep(Duration::from_millis(20));
        let slept = start.elapsed();
        assert!(clock.now() - before >= slept, "it counts at least what the other clock counts");
    }

    /// The time since boot, suspension included, which the system tells too.
    #[test]
    #[cfg(target_os = "linux")]
    fn it_is_the_clock_that_counts_suspension() {
        let uptime = || -> f64 {
            let text = std::fs::read_to_string("/proc/uptime").expect("Linux tells it");
            text.split(' ').next().expect("it has two numbers").parse().expect("seconds")
        };
        let before = uptime();
        let read = moment().as_secs_f64();
        let after = uptime();
        // It is told in hundredths.
        assert!(before - 0.02 <= read && read <= after + 0.02, "{before} {read} {after}");
    }
}

//! `rauk check-disk DIR`: what a disk does for a database, before a database depends on it.
//!
//! A commit waits until its log entry is durable, so the latency of `fdatasync` bounds how fast one client can commit, and
//! whether `fdatasync` means what it says decides whether an acknowledged commit survives a power cut. Both are properties of
//! the medium, its cache, the file system and whatever is between them, and none of these says so reliably. So it is
//! measured ([`measure`]) and compared with what a medium of this kind ([`medium`]) can do at best: a rotating disk
//! cannot write one place a thousand times a second, and no flash answers a flush within a few microseconds. What is
//! faster has been acknowledged by a cache.
//!
//! Overwriting is compared with appending since Rauk's redo log overwrites preallocated segments: on most file systems an
//! append costs a second write, for the file's length.
//!
//! Invariants: the run is bounded in bytes ([`measure::BYTES`], twice) and in time; its files are unlinked as soon as they
//! are open, so nothing is left behind, however it ends. Left out: throughput of large transfers and reads, and proof: only
//! a power cut proves that a cache does not lie.

mod measure;
mod medium;

use crate::out;
use clap::{Arg, ArgMatches, Command, value_parser};
use measure::Latencies;
use medium::{Kind, Medium};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Commits a second of one client below which a disk is called slow: a rotating disk.
const SLOW: f64 = 300.0;

pub fn command() -> Command {
    Command::new("check-disk")
        .about("Measure what a disk does for commits, and whether its write cache seems to lie")
        .arg(
            Arg::new("dir")
                .value_name("DIR")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("A directory on the disk; 64 MiB are written there for the time of the run, and nothing is left"),
        )
        .arg(
            Arg::new("seconds")
                .long("seconds")
                .value_name("N")
                .value_parser(value_parser!(u64).range(1..=60))
                .default_value("4")
                .help("Time of the measurements together"),
        )
}

pub fn run(arguments: &ArgMatches) -> Result<(), String> {
    let dir = arguments.get_one::<PathBuf>("dir").expect("required");
    let seconds = *arguments.get_one::<u64>("seconds").expect("has a default");
    if !dir.is_dir() {
        return Err(format!("{} is no directory: name one on the disk that is to be checked", dir.display()));
    }
    let medium = Medium::of(dir);
    out::line(format_args!("{}: {}", dir.display(), medium.described()))?;
    let each = Duration::from_secs(seconds) / 2;
    let told = |e: std::io::Error| cannot(dir, &e);
    let overwrite = measure::overwrite(dir, each).map_err(told)?;
    out::line(format_args!("  overwrite 4 KiB, then fdatasync: {}", words(&overwrite)))?;
    let append = measure::append(dir, each).map_err(told)?;
    out::line(format_args!("  append 4 KiB, then fdatasync:    {}", words(&append)))?;
    out::line(format_args!("  {}", compared(&overwrite, &append)))?;
    let verdict = Verdict::of(&medium, &overwrite);
    let text = verdict.text(&medium, &overwrite);
    match verdict {
        Verdict::Memory | Verdict::Lies => Err(format!("not durable: {text}")),
        Verdict::Slow => out::line(format_args!("slow: {text}")),
        Verdict::Good => out::line(format_args!("good: {text}")),
    }
}

fn cannot(dir: &Path, error: &std::io::Error) -> String {
    let way_out = match error.kind() {
        std::io::ErrorKind::StorageFull => "; 64 MiB must be free for the time of the run",
        std::io::ErrorKind::PermissionDenied => "; run it as the user that the server runs as",
        _ => "",
    };
    format!("cannot write in {}: {error}{way_out}", dir.display())
}

fn shown(latency: Duration) -> String {
    let micros = latency.as_secs_f64() * 1e6;
    match micros {
        m if m < 1_000.0 => format!("{m:.0} µs"),
        m if m < 10_000.0 => format!("{:.2} ms", m / 1e3),
        m => format!("{:.0} ms", m / 1e3),
    }
}

fn words(found: &Latencies) -> String {
    format!(
        "{:.0} a second; half of them within {}, 99 % within {}, the longest {}",
        found.per_second(),
        shown(found.median()),
        shown(found.quantile(0.99)),
        shown(found.longest())
    )
}

fn compared(overwrite: &Latencies, append: &Latencies) -> String {
    let ratio = append.median().as_secs_f64() / overwrite.median().as_secs_f64().max(1e-9);
    let rauk = "Rauk's redo log overwrites";
    match ratio {
        r if r >= 1.2 => format!("Overwriting is {r:.1} times as fast as appending: {rauk}."),
        r if r <= 0.8 => format!("Appending is {:.1} times as fast as overwriting; {rauk}.", 1.0 / r),
        _ => format!("Overwriting is as fast as appending; {rauk}."),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    Slow,
    /// The cache acknowledges what the medium cannot have.
    Lies,
    /// The file system is in memory.
    Memory,
}

impl Verdict {
    fn of(medium: &Medium, overwrite: &Latencies) -> Verdict {
        match medium.kind {
            Kind::Memory => Verdict::Memory,
            kind if overwrite.median() < kind.fastest() => Verdict::Lies,
            _ if overwrite.per_second() < SLOW => Verdict::Slow,
            _ => Verdict::Good,
        }
    }

    fn text(self, medium: &Medium, overwrite: &Latencies) -> String {
        let (rate, median, fastest) = (overwrite.per_second(), shown(overwrite.median()), medium.kind.fastest());
        match self {
            Verdict::Memory => format!(
                "{} is a file system in memory: what is stored there is gone after a restart of the machine; choose a \
                 directory on a disk",
                medium.file_system
            ),
            Verdict::Lies => format!(
                "fdatasync returns after {median}, and {} needs {} at least: something between Rauk and the medium \
                 acknowledges writes that it has in memory, and a power cut would lose acknowledged commits, unless that \
                 memory has a battery. Switch the write cache off (hdparm -W0, cache=none of the virtual machine), mount \
                 without nobarrier, or use another disk",
                medium.kind.name(),
                shown(fastest)
            ),
            Verdict::Slow => format!(
                "one client commits at most {rate:.0} times a second; many clients share flushes and are faster together. \
                 A disk with power-loss protection, or --durability relaxed if the last 50 ms may be lost, is faster"
            ),
            Verdict::Good => format!(
                "one client commits up to {rate:.0} times a second, and fdatasync takes as long as {} needs. Only a \
                 power cut proves that nothing acknowledged is lost",
                medium.kind.name()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(micros: u64) -> Latencies {
        Latencies::of(vec![Duration::from_micros(micros); 100])
    }

    fn medium(kind: Kind) -> Medium {
        Medium { kind, file_system: "ext4".into(), device: Some("sda".into()), cache: None }
    }

    #[test]
    fn what_is_faster_than_the_medium_is_a_lie() {
        let verdict = |kind, micros| Verdict::of(&medium(kind), &latencies(micros));
        assert_eq!(verdict(Kind::Rotating, 8_000), Verdict::Slow);
        assert_eq!(verdict(Kind::Rotating, 300), Verdict::Lies);
        assert_eq!(verdict(Kind::Flash, 300), Verdict::Good);
        assert_eq!(verdict(Kind::Flash, 25), Verdict::Good, "power-loss protection");
        assert_eq!(verdict(Kind::Flash, 3), Verdict::Lies);
        assert_eq!(verdict(Kind::Virtual, 300), Verdict::Good);
        assert_eq!(verdict(Kind::Unknown, 3), Verdict::Lies);
        assert_eq!(verdict(Kind::Memory, 300), Verdict::Memory);
        let text = Verdict::Lies.text(&medium(Kind::Rotating), &latencies(300));
        assert!(text.contains("returns after 300 µs, and a rotating disk needs 2.00 ms at least"), "{text}");
    }

    #[test]
    fn overwriting_is_compared_with_appending() {
        assert!(compared(&latencies(100), &latencies(250)).starts_with("Overwriting is 2.5 times as fast"));
        assert!(compared(&latencies(100), &latencies(105)).starts_with("Overwriting is as fast"));
        assert!(compared(&latencies(300), &latencies(100)).starts_with("Appending is 3.0 times as fast"));
    }
}

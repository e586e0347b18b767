//! One run: client threads, the clock, and what comes out.
//!
//! Client threads work all the time; a [`Stage`] tells them whether what they do counts. The calling thread moves the stage on (warm-up, measured, over), reads the
//! processor times at its changes, and shows the progress. A group of operations counts when it *ends* within the measured time. Work that is done once (loading, deleting) has no
//! warm-up: it counts from the first group to the last.

use super::workload::{Op, Source, Step};
use crate::bench::process::{CpuTime, cpu_time};
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const WARM_UP: u8 = 0;
const MEASURED: u8 = 1;
const OVER: u8 = 2;

/// What the client threads of a run share.
pub struct Stage {
    stage: AtomicU8,
    running: AtomicUsize,
    /// Operations so far, warm-up included: for the progress bar.
    done: AtomicU64,
}

impl Stage {
    pub fn is_over(&self) -> bool {
        self.stage.load(Ordering::Relaxed) == OVER
    }

    fn counts(&self) -> bool {
        self.stage.load(Ordering::Relaxed) == MEASURED
    }
}

pub type Latencies = Histogram<u64>;

/// Nanoseconds up to a minute, to one in a hundred.
pub fn latencies() -> Latencies {
    Histogram::new_with_bounds(1, 60_000_000_000, 2).expect("the bounds are in order")
}

/// What a client thread has counted.
pub struct Tally<'s> {
    stage: &'s Stage,
    pub operations: u64,
    pub payload_bytes: u64,
    /// Transactions that the server undid to be run again (deadlocks, conflicts).
    pub aborted: u64,
    pub errors: u64,
    /// Words of the first error.
    pub first_error: Option<String>,
    pub latencies: Latencies,
}

impl<'s> Tally<'s> {
    fn new(stage: &'s Stage) -> Tally<'s> {
        let latencies = latencies();
        Tally { stage, operations: 0, payload_bytes: 0, aborted: 0, errors: 0, first_error: None, latencies }
    }

    pub fn is_over(&self) -> bool {
        self.stage.is_over()
    }

    /// A group went well.
    #[inline]
    pub fn on_done(&mut self, steps: &[Step], size: usize, took: Duration) {
        // Relaxed: it is only shown.
        self.stage.done.fetch_add(steps.len() as u64, Ordering::Relaxed);
        if !self.stage.counts() {
            return;
        }
        self.operations += steps.len() as u64;
        let carried = match steps.first() {
            // Groups are of one kind but in a mix, where the few deletes do not matter enough to be looked for in all others.
            Some(first) if steps.last().is_some_and(|last| last.op == first.op) && first.op == Op::Delete => 0,
            Some(_) => steps.iter().filter(|s| s.op.carries_payload()).count(),
            None => 0,
        };
        self.payload_bytes += (carried * size) as u64;
        self.latencies.saturating_record(took.as_nanos() as u64);
    }

    pub fn on_aborted(&mut self) {
        if self.stage.counts() {
            self.aborted += 1;
        }
    }

    /// Errors count from the beginning, so that none is lost in the warm-up.
    pub fn on_error(&mut self, words: impl FnOnce() -> String) {
        self.errors += 1;
        self.first_error.get_or_insert_with(words);
    }
}

/// Round trips.
#[derive(Clone)]
pub enum Latency {
    Measured(Latencies),
    /// What another program says: p50, p95, p99, the longest, in microseconds.
    Quoted([f64; 4]),
}

impl Latency {
    /// In microseconds; `None`: not known.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        match self {
            Latency::Measured(all) => Some(all.value_at_quantile(q) as f64 / 1e3),
            Latency::Quoted(quoted) => {
                [0.5, 0.95, 0.99, 1.0].iter().position(|known| *known == q).map(|place| quoted[place])
            }
        }
    }
}

/// What one run gave, or all rounds of one.
#[derive(Clone)]
pub struct Sample {
    pub operations: u64,
    pub seconds: f64,
    pub payload_bytes: u64,
    pub aborted: u64,
    pub errors: u64,
    pub first_error: Option<String>,
    pub latency: Latency,
    /// Where the process is known.
    pub server_cpu: Option<f64>,
    pub client_cpu: Option<f64>,
}

impl Sample {
    pub fn rate(&self) -> f64 {
        self.operations as f64 / self.seconds.max(1e-9)
    }

    /// Adds another round of the same.
    pub fn add(&mut self, other: &Sample) {
        let share = other.seconds / (self.seconds + other.seconds).max(1e-9);
        match (&mut self.latency, &other.latency) {
            (Latency::Measured(all), Latency::Measured(more)) => {
                all.add(more).expect("both have the same bounds");
            }
            (Latency::Quoted(all), Latency::Quoted(more)) => {
                for (a, b) in all[..3].iter_mut().zip(more) {
                    *a += (b - *a) * share;
                }
                all[3] = all[3].max(more[3]);
            }
            _ => unreachable!("rounds of one target are measured in one way"),
        }
        self.operations += other.operations;
        self.seconds += other.seconds;
        self.payload_bytes += other.payload_bytes;
        self.aborted += other.aborted;
        self.errors += other.errors;
        self.first_error = self.first_error.take().or_else(|| other.first_error.clone());
        self.server_cpu = self.server_cpu.zip(other.server_cpu).map(|(a, b)| a + b);
        self.client_cpu = self.client_cpu.zip(other.client_cpu).map(|(a, b)| a + b);
    }
}

/// How long to run, and what to say of it.
pub struct Run<'r> {
    pub threads: usize,
    /// Warm-up and measured time, or less when the sources are empty before. `None`: until they are.
    pub time: Option<(Duration, Duration)>,
    pub title: String,
    /// Operations in all, where that is known: of work that is done once.
    pub total: Option<u64>,
    /// The processes of the server; none: its processor time is not wanted.
    pub servers: &'r [u32],
    /// The server is this process.
    pub embedded: bool,
    pub source: &'r (dyn Fn(usize) -> Source + Sync),
}

/// Runs `client` on each thread and adds up. It works until the tally says that it is over or its source is empty; an error of its own (a lost connection) ends the run.
pub fn run(
    run: &Run<'_>,
    client: &(dyn Fn(usize, &mut Source, &mut Tally<'_>) -> Result<(), String> + Sync),
) -> Result<(Sample, Vec<Source>), String> {
    let first = if run.time.is_some_and(|(warm_up, _)| !warm_up.is_zero()) { WARM_UP } else { MEASURED };
    let stage = Stage { stage: AtomicU8::new(first), running: AtomicUsize::new(run.threads), done: AtomicU64::new(0) };
    let mut sources: Vec<Source> = (0..run.threads).map(run.source).collect();
    let bar = bar(run);
    let (tallies, clock) = std::thread::scope(|scope| {
        let stage = &stage;
        let clock_starts = Clock::read(run);
        let threads: Vec<_> = sources
            .iter_mut()
            .enumerate()
            .map(|(i, source)| {
                let client = move || {
                    let _running = Running(stage);
                    let mut tally = Tally::new(stage);
                    client(i, source, &mut tally).map(|()| tally)
                };
                std::thread::Builder::new()
                    .name(format!("client-{i}"))
                    .spawn_scoped(scope, client)
                    .map_err(|e| format!("cannot start thread: {e}"))
            })
            .collect();
        let clock = conduct(run, stage, &bar, clock_starts);
        stage.stage.store(OVER, Ordering::Relaxed);
        let tallies: Vec<Result<Tally<'_>, String>> = threads
            .into_iter()
            .map(|thread| thread?.join().map_err(|_| "a client thread panicked".to_string())?)
            .collect();
        (tallies, clock)
    });
    bar.finish_and_clear();
    let (before, after) = clock?;
    let mut sample = Sample {
        operations: 0,
        seconds: (after.at - before.at).as_secs_f64(),
        payload_bytes: 0,
        aborted: 0,
        errors: 0,
        first_error: None,
        latency: Latency::Quoted([0.0; 4]),
        server_cpu: after.server.zip(before.server).map(|(a, b)| a - b),
        client_cpu: (!run.embedded).then_some(after.client.own - before.client.own),
    };
    let mut all = latencies();
    for tally in tallies {
        let tally = tally?;
        sample.operations += tally.operations;
        sample.payload_bytes += tally.payload_bytes;
        sample.aborted += tally.aborted;
        sample.errors += tally.errors;
        sample.first_error = sample.first_error.or(tally.first_error);
        all.add(&tally.latencies).map_err(|e| e.to_string())?;
    }
    sample.latency = Latency::Measured(all);
    Ok((sample, sources))
}

/// Counts a thread as running for as long as it lives, panics included.
struct Running<'s>(&'s Stage);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Release);
    }
}

struct Clock {
    at: Instant,
    /// Seconds of all its processes.
    server: Option<f64>,
    client: CpuTime,
}

impl Clock {
    fn read(run: &Run<'_>) -> Result<Clock, String> {
        let client = cpu_time(std::process::id())?;
        let server = match (run.embedded, run.servers) {
            (true, _) => Some(client.own),
            (false, []) => None,
            (false, processes) => {
                Some(processes.iter().map(|pid| Ok(cpu_time(*pid)?.own)).sum::<Result<f64, String>>()?)
            }
        };
        Ok(Clock { at: Instant::now(), server, client })
    }
}

/// Moves the stage on; gives the clocks at the beginning and end of what counts.
fn conduct(
    run: &Run<'_>,
    stage: &Stage,
    bar: &ProgressBar,
    mut before: Result<Clock, String>,
) -> Result<(Clock, Clock), String> {
    let started = Instant::now();
    let wait_until = |end: Option<Instant>| {
        while stage.running.load(Ordering::Acquire) > 0 {
            let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return;
            }
            let done = stage.done.load(Ordering::Relaxed);
            if run.total.is_some() {
                bar.set_position(done);
            } else {
                bar.set_position(started.elapsed().as_millis() as u64);
            }
            bar.set_message(format!("{:.2} M operations", done as f64 / 1e6));
            // Short for work that ends by itself, whose end is the end of the measured time.
            let pause = if run.total.is_some() || run.time.is_none() {
                Duration::from_millis(2)
            } else {
                Duration::from_millis(50)
            };
            std::thread::sleep(left.min(pause));
        }
    };
    if let Some((warm_up, _)) = run.time
        && !warm_up.is_zero()
    {
        wait_until(Some(started + warm_up));
        before = Clock::read(run);
        // Release is not needed: nothing but the number itself is told.
        stage.stage.store(MEASURED, Ordering::Relaxed);
    }
    let before = before?;
    wait_until(run.time.map(|(_, measured)| before.at + measured));
    Ok((before, Clock::read(run)?))
}

fn bar(run: &Run<'_>) -> ProgressBar {
    let length = run.total.unwrap_or_else(|| {
        let (warm_up, measured) = run.time.unwrap_or_default();
        (warm_up + measured).as_millis() as u64
    });
    // Shows nothing where standard error is no terminal.
    let bar = ProgressBar::new(length);
    let style = ProgressStyle::with_template("{prefix} {bar:30} {msg}").expect("the template is right");
    bar.set_style(style);
    bar.set_prefix(run.title.clone());
    bar
}

#[cfg(test)]
mod tests {
    use super::super::workload::{Distribution, Work, Workload};
    use super::*;

    fn run_of(work: Work, time: Option<(u64, u64)>, source: &(dyn Fn(usize) -> Source + Sync)) -> (Sample, u64) {
        let done = AtomicU64::new(0);
        let (sample, _) = run(
            &Run {
                threads: 2,
                time: time.map(|(a, b)| (Duration::from_millis(a), Duration::from_millis(b))),
                title: String::new(),
                total: None,
                servers: &[],
                embedded: false,
                source,
            },
            &|_, source, tally| {
                let mut steps = Vec::new();
                while !tally.is_over() && source.group(10, &mut steps) {
                    if work != Work::Load {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    done.fetch_add(10, Ordering::Relaxed);
                    tally.on_done(&steps, 100, Duration::from_micros(50));
                }
                Ok(())
            },
        )
        .unwrap();
        (sample, done.into_inner())
    }

    #[test]
    fn work_that_is_done_once_counts_wholly() {
        let source = |thread| Source::new(Work::Load, Distribution::Uniform, 1000, thread, 2, 0);
        let (sample, done) = run_of(Work::Load, None, &source);
        assert_eq!((sample.operations, sample.payload_bytes, done), (1000, 100_000, 1000));
        assert!((49.0..=51.0).contains(&sample.latency.quantile(1.0).unwrap()));
        let mut twice = sample.clone();
        twice.add(&sample);
        assert_eq!((twice.operations, twice.latency.quantile(0.5)), (2000, sample.latency.quantile(0.5)));
        let quoted = Latency::Quoted([1.0, 2.0, 3.0, 4.0]);
        assert_eq!((quoted.quantile(0.99), quoted.quantile(0.999)), (Some(3.0), None));
    }

    #[test]
    fn the_warm_up_does_not_count() {
        let work = Work::Workload(Workload::One(Op::Read));
        let source = |thread| Source::new(work, Distribution::Uniform, 1000, thread, 2, 0);
        let (sample, done) = run_of(work, Some((100, 100)), &source);
        assert!(sample.operations > 0 && sample.operations < done, "{} of {done}", sample.operations);
        assert!((0.09..5.0).contains(&sample.seconds), "{}", sample.seconds);
    }

    #[test]
    fn an_error_of_one_thread_is_the_runs() {
        let source = |thread| Source::new(Work::Load, Distribution::Uniform, 10, thread, 2, 0);
        let result = run(
            &Run {
                threads: 2,
                time: None,
                title: String::new(),
                total: None,
                servers: &[],
                embedded: false,
                source: &source,
            },
            &|i, _, _| if i == 1 { Err("lost".into()) } else { Ok(()) },
        );
        assert_eq!(result.err(), Some("lost".to_string()));
    }
}

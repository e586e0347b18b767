//! `cargo run -p rauk-simulation -- [--only K] [--scenario X] [--seeds N] [--from S] [--minutes M]`: runs N seeds of every simulation, beginning with S, and says how to see again those that
//! failed. It fails also if the seeds are not done within the minutes: a run that was cut short has not shown what it should.
use mimalloc::MiMalloc;
use parking_lot::Mutex;
use rauk_node::member::hooks::Safeguards;
use rauk_simulation::cluster::run::{ClusterRun, Summary};
use rauk_simulation::cluster::scenario::{self, Scenario};
use rauk_simulation::journal_run::JournalRun;
use rauk_simulation::log_run::LogRun;
use rauk_simulation::node::NodeRun;
use rauk_simulation::raft_run::RaftRun;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const USAGE: &str = "usage: rauk-simulation [--only log|journal|raft|node|cluster] [--scenario NAME] [--without SAFEGUARD] [--seeds N] [--from S] [--minutes M] [--failures N]
  --only      one kind of simulation: the log, the catalog's journal, the files of Raft, a whole node, a whole cluster
  --scenario  of the cluster: one of crates/simulation/scenarios, or a file (*.toml); without it, each takes its share of the seeds
  --without   switches a safeguard of the cluster off, to see that a seed fails: lease, view, incarnation, prepare_everywhere,
              sync_before_acknowledge, abort_fence, max_read, dedupe, leaving, cut_decided, cut_durable, cut_kept, cut_covers,
              doubtful_end, memory_kept, silence, claims, starts, lacking, failed_slot, pacing,
              adopted, taken_back; in the scenario made for it unless another is named
  --seeds     how many (100)
  --from      the first (0); --seed is the same
  --minutes   at most so long; it is a failure if the seeds are not done by then
  --failures  ends when so many seeds have failed (1)";

/// Seeds that have begun when the time is over may take so long.
const LAST_SEEDS: Duration = Duration::from_secs(60);

type Simulation = (&'static str, fn(u64));

const ALONE: &[Simulation] = &[
    ("log", |seed| {
        LogRun::new(seed).run(12);
    }),
    ("journal", |seed| {
        JournalRun::new(seed).run(12);
    }),
    ("raft", |seed| {
        RaftRun::new(seed).run(12);
    }),
    ("node", |seed| {
        NodeRun::new(seed).run(5);
    }),
];

struct Arguments {
    seeds: u64,
    first: u64,
    only: Option<String>,
    scenario: Option<String>,
    safeguards: Safeguards,
    /// The safeguard that is switched off.
    without: Option<String>,
    minutes: Option<u64>,
    failures: usize,
}

fn arguments() -> Result<Arguments, String> {
    let mut parsed = Arguments {
        seeds: 100,
        first: 0,
        only: None,
        scenario: None,
        safeguards: Safeguards::default(),
        without: None,
        minutes: None,
        failures: 1,
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let value = given.next().ok_or(USAGE)?;
        let number = || value.parse::<u64>().map_err(|_| format!("{name} takes a number, not '{value}'\n{USAGE}"));
        match name.as_str() {
            "--seeds" => parsed.seeds = number()?,
            "--seed" | "--from" => parsed.first = number()?,
            "--minutes" => parsed.minutes = Some(number()?),
            "--failures" => parsed.failures = number()? as usize,
            "--only" if value == "cluster" || ALONE.iter().any(|(name, _)| *name == value) => parsed.only = Some(value),
            "--scenario" => {
                Scenario::find(&value)?;
                parsed.scenario = Some(value);
                parsed.only = Some("cluster".to_string());
            }
            "--without" => {
                parsed.safeguards = scenario::without(&value).ok_or(USAGE)?;
                parsed.scenario.get_or_insert(format!("safeguards/{value}"));
                parsed.only = Some("cluster".to_string());
                parsed.without = Some(value);
            }
            _ => return Err(USAGE.to_string()),
        }
    }
    Ok(parsed)
}

/// One simulation and what its seeds gave.
struct Part<'a> {
    /// For people, and what to type to get it alone.
    name: String,
    again: String,
    seeds: u64,
    run: Box<dyn Fn(u64) -> Option<Summary> + Sync + 'a>,
    done: Mutex<Done>,
}

#[derive(Default)]
struct Done {
    seeds: u64,
    /// Of one core.
    time: Duration,
    failed: Vec<u64>,
    counts: BTreeMap<&'static str, u64>,
    messages: u64,
    healing: Duration,
}

impl Part<'_> {
    fn run(&self, seed: u64) {
        let begin = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.run)(seed)));
        let mut done = self.done.lock();
        done.seeds += 1;
        done.time += begin.elapsed();
        match outcome {
            Err(_) => done.failed.push(seed),
            Ok(None) => {}
            Ok(Some(summary)) => {
                summary.counts.iter().for_each(|(what, count)| *done.counts.entry(what).or_insert(0) += count);
                done.messages += summary.messages;
                done.healing = summary.healing.max(done.healing);
            }
        }
    }

    /// One line.
    fn report(&self) -> String {
        let Done { seeds, time, failed, counts, messages, healing } = &*self.done.lock();
        let mut line = format!("{}: {seeds} seeds, {:.1} s on one core", self.name, time.as_secs_f64());
        if *messages > 0 {
            line += &format!("; {messages} messages, whole again within {healing:.1?}; {counts:?}");
        }
        if !failed.is_empty() {
            line += &format!("; FAILED: {failed:?}");
        }
        line
    }
}

/// Runs all seeds of all parts, on all cores, until enough have failed or the time is over; `Err` is what went wrong, in words.
fn run(arguments: &Arguments, parts: &[Part]) -> Result<(), String> {
    let most = parts.iter().map(|part| part.seeds).max().unwrap_or(0);
    // The parts in turn, so that what is done when the time is over is a share of each.
    let jobs: Vec<(&Part, u64)> = (0..most)
        .flat_map(|seed| {
            parts.iter().filter(move |part| seed < part.seeds).map(move |part| (part, arguments.first + seed))
        })
        .collect();
    let (next, failures) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let begin = Instant::now();
    let in_time = || arguments.minutes.is_none_or(|minutes| begin.elapsed().as_secs() < minutes * 60);
    let running: Mutex<Vec<String>> = Mutex::default();
    let work = || {
        while in_time() && failures.load(Ordering::Relaxed) < arguments.failures {
            let Some((part, seed)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            let what = format!("{} --from {seed}", part.again);
            running.lock().push(what.clone());
            part.run(*seed);
            running.lock().retain(|other| *other != what);
            if part.done.lock().failed.contains(seed) {
                failures.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let threads = available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        while !workers.iter().all(|worker| worker.is_finished()) {
            if arguments.minutes.is_some_and(|minutes| begin.elapsed() > Duration::from_secs(minutes * 60) + LAST_SEEDS)
            {
                eprintln!("these seeds do not end: {:?}", running.lock());
                std::process::exit(1);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    parts.iter().for_each(|part| println!("{}", part.report()));
    let done: u64 = parts.iter().map(|part| part.done.lock().seeds).sum();
    println!("{done} of {} seeds in {:.1} s on {threads} cores", jobs.len(), begin.elapsed().as_secs_f64());
    let again = |part: &Part| {
        let failed = part.done.lock().failed.clone();
        let again = part.again.clone();
        failed.into_iter().map(move |seed| {
            format!("seed {seed} failed; again with: cargo run --release -p rauk-simulation -- {again} --from {seed} --seeds 1")
        })
    };
    let failed: Vec<String> = parts.iter().flat_map(again).collect();
    if !failed.is_empty() {
        return Err(failed.join("\n"));
    }
    if done < jobs.len() as u64 {
        let minutes = arguments.minutes.unwrap_or(0);
        return Err(format!("only {done} of {} seeds were done within {minutes} minutes", jobs.len()));
    }
    Ok(())
}

fn alone(arguments: &Arguments) -> Vec<Part<'static>> {
    let wanted = |name: &str| arguments.only.as_deref().is_none_or(|only| only == name);
    let part = |&(name, run): &Simulation| Part {
        name: name.to_string(),
        again: format!("--only {name}"),
        seeds: arguments.seeds,
        run: Box::new(move |seed| {
            run(seed);
            None
        }),
        done: Mutex::default(),
    };
    ALONE.iter().filter(|(name, _)| wanted(name)).map(part).collect()
}

fn clusters(arguments: &Arguments) -> Result<Vec<Part<'static>>, String> {
    let names: Vec<&str> = match &arguments.scenario {
        _ if arguments.only.as_deref().is_some_and(|only| only != "cluster") => Vec::new(),
        Some(name) => vec![name],
        None => scenario::ALL.iter().map(|(name, _)| *name).collect(),
    };
    let each = arguments.seeds.div_ceil(names.len().max(1) as u64);
    let safeguards = arguments.safeguards;
    let without = arguments.without.as_ref().map_or(String::new(), |name| format!(" --without {name}"));
    let part = |name: &str| {
        let scenario = Scenario::find(name)?;
        Ok(Part {
            name: format!("cluster, {name}"),
            again: format!("--only cluster --scenario {name}{without}"),
            seeds: each,
            run: Box::new(move |seed| Some(ClusterRun::without(&scenario, seed, safeguards).run())),
            done: Mutex::default(),
        })
    };
    names.into_iter().map(part).collect()
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let parts = clusters(&arguments).map(|clusters| alone(&arguments).into_iter().chain(clusters).collect::<Vec<_>>());
    match parts.and_then(|parts| run(&arguments, &parts)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

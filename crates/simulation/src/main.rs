//! `cargo run -p rauk-simulation -- --seeds N [--seed S]`: runs N seeds of every simulation, beginning with S, and stops at the first that fails, naming it.
use rauk_simulation::journal_run::JournalRun;
use rauk_simulation::log_run::LogRun;
use rauk_simulation::node::NodeRun;
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::Instant;

const USAGE: &str = "usage: rauk-simulation [--seeds N] [--seed S] [--only log|journal|node]";

type Simulation = (&'static str, fn(u64));

const ALL: &[Simulation] = &[
    ("log", |seed| {
        LogRun::new(seed).run(12);
    }),
    ("journal", |seed| {
        JournalRun::new(seed).run(12);
    }),
    ("node", |seed| {
        NodeRun::new(seed).run(5);
    }),
];

struct Arguments {
    seeds: u64,
    first: u64,
    only: Option<String>,
}

fn arguments() -> Result<Arguments, String> {
    let mut parsed = Arguments { seeds: 100, first: 0, only: None };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let value = given.next().ok_or(USAGE)?;
        let number = || value.parse::<u64>().map_err(|_| format!("{name} takes a number, not '{value}'\n{USAGE}"));
        match name.as_str() {
            "--seeds" => parsed.seeds = number()?,
            "--seed" => parsed.first = number()?,
            "--only" if ALL.iter().any(|(name, _)| *name == value) => parsed.only = Some(value),
            _ => return Err(USAGE.to_string()),
        }
    }
    Ok(parsed)
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    for &(name, run) in ALL {
        if arguments.only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let start = Instant::now();
        for seed in arguments.first..arguments.first + arguments.seeds {
            if catch_unwind(|| run(seed)).is_err() {
                eprintln!(
                    "{name}: seed {seed} failed; again with: cargo run -p rauk-simulation -- --only {name} --seed {seed} --seeds 1"
                );
                return ExitCode::FAILURE;
            }
        }
        println!("{name}: {} seeds in {:.1} s", arguments.seeds, start.elapsed().as_secs_f64());
    }
    ExitCode::SUCCESS
}

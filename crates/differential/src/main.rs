//! `rauk-differential`: random statements on Rauk and on a MariaDB that it starts, differences shrunk to golden files.

use clap::Parser;
use rauk_differential::campaign::{self, Plan};
use rauk_differential::partitioned;
use rauk_differential::run::Pair;
use rauk_differential::run::servers::{self, Rauk};
use rauk_differential::tree::feature::Features;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Compares Rauk with MariaDB by random statements. Ends with 1 when something differs.
#[derive(Parser)]
struct Arguments {
    /// How many seeds; each has its own tables.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// Statements of each seed.
    #[arg(long, default_value_t = 100)]
    statements: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    seed_from: u64,
    /// No seed begins after so many minutes.
    #[arg(long)]
    minutes: Option<u64>,
    /// Only these features of SQL, separated by commas.
    #[arg(long)]
    features: Option<String>,
    /// Not these features.
    #[arg(long)]
    without: Option<String>,
    /// Ends when so many differences are found.
    #[arg(long, default_value_t = 20)]
    findings: usize,
    /// One case: SEED:NUMBER, as a finding names it.
    #[arg(long)]
    case: Option<String>,
    /// Print every statement.
    #[arg(long)]
    verbose: bool,
    /// Print every difference of a known kind, with its kind.
    #[arg(long)]
    known: bool,
    /// MariaDB against a MariaDB that plans in other ways: judges the generator.
    #[arg(long)]
    against_itself: bool,
    /// Tables with partitions against the same without, on Rauk alone, which is killed now and then.
    #[arg(long)]
    partitioned: bool,
    /// Rauk's binary; without it, the one beside this program.
    #[arg(long)]
    rauk: Option<PathBuf>,
}

fn plan(arguments: &Arguments) -> Result<Plan, String> {
    let mut features = match &arguments.features {
        Some(names) => Features::parse(names)?,
        None => Features::all(),
    };
    if let Some(names) = &arguments.without {
        features = Features::parse(names)?.iter().fold(features, Features::without);
    }
    let mut plan = Plan {
        first_seed: arguments.seed_from,
        seeds: arguments.seeds,
        statements: arguments.statements,
        limit: arguments.minutes.map(|minutes| Duration::from_secs(minutes * 60)),
        features,
        findings: arguments.findings.max(1),
        only: None,
        verbose: arguments.verbose,
        known: arguments.known,
    };
    if let Some(case) = &arguments.case {
        let wrong = || format!("--case takes SEED:NUMBER, not '{case}'");
        let (seed, number) = case.split_once(':').ok_or_else(wrong)?;
        plan.first_seed = seed.parse().map_err(|_| wrong())?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        (plan.seeds, plan.only, plan.statements) = (1, Some(number), number + 1);
    }
    Ok(plan)
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let plan = plan(arguments)?;
    servers::end_with_this_process().map_err(|e| e.to_string())?;
    let beside = || std::env::current_exe().ok().map(|program| program.with_file_name("rauk"));
    let program = arguments.rauk.clone().or_else(beside).ok_or("where is rauk? --rauk PATH")?;
    if arguments.partitioned {
        return run_partitioned(&plan, &program);
    }
    let pair = if arguments.against_itself { Pair::start_twins() } else { Pair::start(&program) };
    let mut pair = pair.map_err(|e| e.to_string())?;
    let summary = campaign::run(&plan, &mut pair, |finding| println!("{finding}")).map_err(|e| e.to_string())?;
    println!("{summary}");
    Ok(summary.findings.is_empty())
}

fn run_partitioned(plan: &Plan, program: &Path) -> Result<bool, String> {
    let mut rauk = Rauk::start_durable(program).map_err(|e| e.to_string())?;
    let plan = partitioned::Plan {
        first_seed: plan.first_seed,
        seeds: plan.seeds,
        steps: plan.statements,
        limit: plan.limit,
        findings: plan.findings,
        verbose: plan.verbose,
    };
    let summary = partitioned::run(&plan, &mut rauk, |finding| println!("{finding}")).map_err(|e| e.to_string())?;
    println!("{summary}");
    Ok(summary.findings.is_empty())
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("rauk-differential: {message}");
            ExitCode::from(2)
        }
    }
}

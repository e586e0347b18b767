//! Exhausts the models from the command line: `cargo run --release -p rauk-models -- NAME [--large]`. Prints a line
//! for each size, with the number of states; a broken property is printed with its trace and ends the run with 1.

use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use rauk_models::check::{self, Seen, Settles};
use rauk_models::{
    bucket_move, commit_takeover, comparison, cuts, follower_reads, foreign_keys, group_entry, group_split, in_sync,
    large_chunks, least_timestamp, new_foreign_key, table_copy,
};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Name {
    CommitTakeover,
    LeastTimestamp,
    InSync,
    Cuts,
    FollowerReads,
    ForeignKeys,
    NewForeignKey,
    TableCopy,
    GroupEntry,
    BucketMove,
    GroupSplit,
    LargeChunks,
    Comparison,
    All,
}

/// Exhausts the models of the cluster's protocols.
#[derive(Parser)]
struct Options {
    name: Name,
    /// The large sizes: minutes and gigabytes instead of seconds.
    #[arg(long)]
    large: bool,
    /// Leave out the first sizes of each model.
    #[arg(long, default_value_t = 0)]
    skip: usize,
    /// Threads of the checker.
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let wanted = |name| options.name == name || options.name == Name::All;
    let mut holds = true;
    if wanted(Name::CommitTakeover) {
        for size in commit_takeover::sizes(options.large).into_iter().skip(options.skip) {
            let model = commit_takeover::CommitTakeover { size, mutation: None };
            holds &= safe(&format!("{size:?}"), model.clone(), options.threads);
            if !options.large {
                holds &= settles(&model);
            }
        }
    }
    if wanted(Name::LeastTimestamp) {
        for (second, size) in least_timestamp::sizes(options.large).into_iter().skip(options.skip) {
            let rule = least_timestamp::Rule::Confirm;
            let model = least_timestamp::LeastTimestamp { rule, second, size, mutation: None };
            holds &= safe(&format!("{second:?} {size:?}"), model, options.threads);
        }
    }
    if wanted(Name::InSync) {
        for size in in_sync::sizes(options.large).into_iter().skip(options.skip) {
            holds &= safe(&format!("{size:?}"), in_sync::InSync { size, mutation: None }, options.threads);
        }
    }
    if wanted(Name::Cuts) {
        for size in cuts::sizes(options.large).into_iter().skip(options.skip) {
            let model = cuts::Cuts { size, mutation: None };
            holds &= safe(&format!("{size:?}"), model.clone(), options.threads);
            if !options.large {
                holds &= settles(&model);
            }
        }
    }
    if wanted(Name::FollowerReads) {
        for size in follower_reads::sizes(options.large).into_iter().skip(options.skip) {
            let model = follower_reads::FollowerReads { size, mutation: None };
            holds &= safe(&format!("{size:?}"), model, options.threads);
        }
    }
    if wanted(Name::ForeignKeys) {
        for (form, failures) in foreign_keys::sizes(options.large).into_iter().skip(options.skip) {
            let model = foreign_keys::ForeignKeys { form, failures, mutation: None };
            holds &= safe(&format!("{form:?} {failures}"), model, options.threads);
        }
    }
    if wanted(Name::NewForeignKey) {
        for (has_child, failures) in new_foreign_key::sizes(options.large).into_iter().skip(options.skip) {
            let model = new_foreign_key::NewForeignKey { has_child, failures, mutation: None };
            holds &= safe(&format!("child {has_child} {failures}"), model, options.threads);
        }
    }
    if wanted(Name::TableCopy) {
        for (has_row, failures) in table_copy::sizes(options.large).into_iter().skip(options.skip) {
            let model = table_copy::TableCopy { has_row, failures, mutation: None };
            holds &= safe(&format!("row {has_row} {failures}"), model, options.threads);
        }
    }
    if wanted(Name::GroupEntry) {
        for (second, size) in group_entry::sizes(options.large).into_iter().skip(options.skip) {
            let model = group_entry::GroupEntry { second, size, mutation: None };
            holds &= safe(&format!("{second:?} {size:?}"), model, options.threads);
        }
    }
    if wanted(Name::BucketMove) {
        for (first, size) in bucket_move::sizes(options.large).into_iter().skip(options.skip) {
            let model = bucket_move::BucketMove { first, size, mutation: None };
            holds &= safe(&format!("{first:?} {size:?}"), model, options.threads);
        }
    }
    if wanted(Name::GroupSplit) {
        for (form, size) in group_split::sizes(options.large).into_iter().skip(options.skip) {
            let model = group_split::GroupSplit { form, size, mutation: None };
            holds &= safe(&format!("{form:?} {size:?}"), model.clone(), options.threads);
            if !options.large {
                holds &= settles(&model);
            }
        }
    }
    if wanted(Name::LargeChunks) {
        for size in large_chunks::sizes(options.large).into_iter().skip(options.skip) {
            let model = large_chunks::LargeChunks { size, mutation: None };
            holds &= safe(&format!("{size:?}"), model.clone(), options.threads);
            if !options.large {
                holds &= settles(&model);
            }
        }
    }
    if wanted(Name::Comparison) {
        for (entries, views) in comparison::sizes(options.large).into_iter().skip(options.skip) {
            let model = comparison::Comparison { entries, views, mutation: None };
            holds &= safe(&format!("entries {entries} views {views}"), model, options.threads);
        }
    }
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn safe<M>(title: &str, model: M, threads: usize) -> bool
where
    M: stateright::Model + Send + Sync + 'static,
    M::State: Clone + std::fmt::Debug + std::hash::Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + std::fmt::Debug + PartialEq + Send + Sync + 'static,
{
    let begin = Instant::now();
    let Seen { states, steps, depth, exhausted, broken, never } = check::exhaust(model, threads);
    let seconds = begin.elapsed().as_secs_f64();
    println!("{title}: {states} states, {steps} steps, depth {depth}, exhausted: {exhausted}, {seconds:.1} s");
    for name in &never {
        println!("  not seen at this size: {name}");
    }
    for (name, trace) in &broken {
        println!("  BROKEN: {name}\n    {}", trace.join("\n    "));
    }
    exhausted && broken.is_empty()
}

fn settles<M>(model: &M) -> bool
where
    M: Settles,
    M::State: Clone + std::hash::Hash + Eq,
    M::Action: Clone + std::fmt::Debug,
{
    match check::stuck(model).1 {
        None => println!("  comes to rest from every state when faults stop"),
        Some(stuck) => {
            println!("  STUCK: {stuck:#?}");
            return false;
        }
    }
    true
}

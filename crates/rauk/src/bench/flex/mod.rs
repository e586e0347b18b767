//! `rauk bench flex`: the native API under load, as MySQL Cluster's flexAsynch did it, and Redis and memcached beside it.
//!
//! Client threads × groups in flight × operations a group × bytes a record. Every target holds the same keys and records, gets the same operations in the same order, and takes
//! its turn in every round, so that a change of the machine's mood meets all. Every answer is checked: the right rows, with the bytes that were written. Reported are
//! operations and payload bytes a second, round trips (of a group), processor time of server and client an operation, and Rauk's ratio to each target of the same run.
//!
//! | module | what |
//! |---|---|
//! | [`arguments`] | the command line |
//! | [`workload`], [`payload`] | operations and their keys; the bytes of a record |
//! | [`measure`] | one run: threads, clock, counters |
//! | [`native`] | Rauk as a target |
//! | [`pipeline`], [`redis`], [`memcached`] | the peers as targets |
//! | [`servers`] | processes that the run starts |
//! | [`report`], [`plot`] | table, CSV, JSON; SVG |

mod arguments;
mod measure;
mod memcached;
mod native;
mod payload;
mod pipeline;
mod plot;
mod redis;
mod report;
mod servers;
mod workload;

pub use arguments::{command, options};

use super::process::{Process, temporary_directory};
use crate::out;
use arguments::{Options, Peer, Place};
use measure::Sample;
use native::{Native, Shape};
use pipeline::Protocol;
use rauk_client::{Client, Rauk, blocking};
use report::{Line, Report};
use std::path::Path;
use std::time::Duration;
use workload::{Op, Source, Work, Workload};

/// One that is measured.
struct Target {
    name: String,
    access: Access,
    /// The server's processes, where they are known.
    servers: Vec<u32>,
    /// Whose data it uses: two ways to one server are one family, the better of which counts.
    family: &'static str,
    /// It works on the data of one before it in the list.
    shares: bool,
}

enum Access {
    Native(Native),
    Embedded(Native),
    Peer(u16, Protocol),
    /// `redis-benchmark` on the Redis that stands before it in the list.
    RedisBenchmark(u16),
}

/// Everything that must live as long as the run; ends in this order.
#[derive(Default)]
struct Held {
    processes: Vec<Process>,
    embedded: Option<Rauk>,
}

pub fn run(options: &Options) -> Result<(), String> {
    let root = temporary_directory()?;
    let mut held = Held::default();
    let targets = targets(options, root.path(), &mut held)?;
    for target in targets.iter().filter(|t| !t.shares) {
        fill(options, target, Work::Load)?;
    }
    let mut report = Report::new(options);
    for workload in &options.workloads {
        for line in rounds(options, &targets, *workload)? {
            report.lines.push(line);
        }
    }
    out::line(format_args!("{}", report.table()))?;
    for (file, text) in [(&options.csv, report.csv()?), (&options.json, report.json())] {
        if let Some(file) = file {
            std::fs::write(file, text).map_err(|e| format!("cannot write {}: {e}", file.display()))?;
        }
    }
    if let Some(file) = &options.plot {
        plot::draw(file, &report)?;
    }
    drop(targets);
    if let Some(embedded) = held.embedded.take() {
        embedded.close().map_err(|e| e.to_string())?;
    }
    for process in held.processes.drain(..) {
        process.stop()?;
    }
    report.verdict()
}

impl Target {
    /// Whether it can do this at all.
    fn can(&self, workload: Workload, options: &Options) -> bool {
        match self.access {
            Access::Native(_) | Access::Embedded(_) => true,
            // Other ways to read are for reads.
            Access::Peer(..) if self.shares => workload == Workload::One(Op::Read),
            Access::Peer(..) => workload != Workload::One(Op::Scan),
            // It draws its keys uniformly, and knows no transactions.
            Access::RedisBenchmark(_) => {
                matches!(workload, Workload::One(Op::Read | Op::Update | Op::Write))
                    && options.distribution == workload::Distribution::Uniform
                    && !options.transactional
            }
        }
    }
}

const FORCE: &str = "Rauk, force-send";
const UNPLACED: &str = "Rauk, placement=off";

fn client_options(options: &Options, secret: &Path, force: bool) -> rauk_client::Options {
    let mut client = rauk_client::Options::secret_file(secret);
    client.name = "rauk bench flex".into();
    client.force_send = force;
    client.connections = options.connections;
    if let Some(wait) = options.longest_wait {
        client.longest_wait = wait;
    }
    client
}

/// Starts what is to be measured.
fn targets(options: &Options, root: &Path, held: &mut Held) -> Result<Vec<Target>, String> {
    let mut targets = Vec::new();
    let connect = |port: &servers::NativePort, force: bool| -> Result<Client, String> {
        blocking::connect(&port.address, client_options(options, &port.secret_file, force)).map_err(|e| e.to_string())
    };
    let wait = options.longest_wait.map(|wait| wait.as_micros() as u64);
    let own = |durability: &str, held: &mut Held| -> Result<(servers::NativePort, u32), String> {
        let (process, port) = servers::start_rauk(&root.join(format!("rauk-{durability}")), durability, wait)?;
        let pid = process.pid();
        held.processes.push(process);
        Ok((port, pid))
    };
    let mut main = None;
    match &options.place {
        Place::Own => {
            let (port, pid) = own(&options.durability, held)?;
            main = Some((port, vec![pid]));
        }
        Place::Running { address, secret_file, pids } => {
            let port = servers::NativePort { address: address.clone(), secret_file: secret_file.clone() };
            main = Some((port, pids.clone()));
        }
        Place::Embedded => {
            let defaults = rauk_node::Config::default();
            let durability = match options.durability.as_str() {
                "fsync" => rauk_node::Durability::Fsync,
                _ => rauk_node::Durability::Relaxed,
            };
            // Room for what is loaded and as much again that is inserted, whatever the default is.
            let memory_limit = defaults.memory_limit.max(options.keys * (options.size as u64 + 200) * 3);
            let config = rauk_node::Config { durability, memory_limit, ..defaults };
            let rauk = Rauk::open_with(root.join("embedded"), config).map_err(|e| e.to_string())?;
            let native = Native::create(rauk.client(), options.size)?;
            held.embedded = Some(rauk);
            let name = "Rauk, embedded".into();
            targets.push(Target {
                name,
                access: Access::Embedded(native),
                servers: Vec::new(),
                family: "Rauk",
                shares: false,
            });
        }
        Place::Nowhere => {}
    }
    if let Some((port, servers)) = &main {
        let native = Native::create(connect(port, options.force_send)?, options.size)?;
        let name = if options.force_send { FORCE } else { "Rauk" };
        let access = Access::Native(native);
        targets.push(Target { name: name.into(), access, servers: servers.clone(), family: "Rauk", shares: false });
    }
    for peer in &options.against {
        match peer {
            Peer::Force => {
                let (port, servers) = main.as_ref().expect("the options were checked");
                let access = Access::Native(Native::open(connect(port, true)?, options.size)?);
                let (servers, family) = (servers.clone(), "force-send");
                targets.push(Target { name: FORCE.into(), access, servers, family, shares: true });
            }
            Peer::Unplaced => {
                let (port, servers) = main.as_ref().expect("the options were checked");
                let client = client_options(options, &port.secret_file, options.force_send).placement(false);
                let client = blocking::connect(&port.address, client).map_err(|e| e.to_string())?;
                let access = Access::Native(Native::open(client, options.size)?);
                let (servers, family) = (servers.clone(), "unplaced");
                targets.push(Target { name: UNPLACED.into(), access, servers, family, shares: true });
            }
            Peer::Relaxed | Peer::Fsync => {
                let (durability, name) =
                    if *peer == Peer::Relaxed { ("relaxed", "Rauk, relaxed") } else { ("fsync", "Rauk, fsync") };
                let (port, pid) = own(durability, held)?;
                let native = Native::create(connect(&port, options.force_send)?, options.size)?;
                let access = Access::Native(native);
                let (servers, family) = (vec![pid], durability);
                targets.push(Target { name: name.into(), access, servers, family, shares: false });
            }
            Peer::Redis => {
                let (process, port) = servers::start_redis(&root.join("redis"), options.durability == "fsync")?;
                let servers = vec![process.pid()];
                held.processes.push(process);
                let mut push = |name: &str, access, shares| {
                    targets.push(Target {
                        name: name.into(),
                        access,
                        servers: servers.clone(),
                        family: "Redis",
                        shares,
                    });
                };
                let protocol = |mget| Protocol::Redis { mget, transactional: options.transactional };
                push("Redis", Access::Peer(port, protocol(false)), false);
                if options.redis_mget {
                    push("Redis, MGET", Access::Peer(port, protocol(true)), true);
                }
                if options.redis_benchmark && redis::benchmark_is_installed() {
                    push("Redis, redis-benchmark", Access::RedisBenchmark(port), true);
                }
            }
            Peer::Memcached => {
                let (process, port) = servers::start_memcached(options.keys)?;
                let servers = vec![process.pid()];
                held.processes.push(process);
                let mut push = |name: &str, multi_get, shares| {
                    let access = Access::Peer(port, Protocol::Memcached { multi_get });
                    targets.push(Target {
                        name: name.into(),
                        access,
                        servers: servers.clone(),
                        family: "memcached",
                        shares,
                    });
                };
                push("memcached", false, false);
                if options.memcached_get {
                    push("memcached, get", true, true);
                }
            }
        }
    }
    Ok(targets)
}

/// All rounds of one workload on all targets that can do it.
fn rounds(options: &Options, targets: &[Target], workload: Workload) -> Result<Vec<Line>, String> {
    let mut sums: Vec<Option<Sample>> = targets.iter().map(|_| None).collect();
    for round in 0..options.rounds {
        let mut last_rate = 0.0;
        for (target, sum) in targets.iter().zip(&mut sums) {
            if !target.can(workload, options) {
                continue;
            }
            let title = format!("{workload}, round {} of {}, {}", round + 1, options.rounds, target.name);
            let failed = |e: String| format!("{title}: {e}");
            let sample = match target.access {
                Access::RedisBenchmark(port) => {
                    let rate = sum.as_ref().map_or(last_rate, Sample::rate);
                    let write = workload != Workload::One(Op::Read);
                    let benchmark = redis::Benchmark {
                        port,
                        server: target.servers[0],
                        write,
                        keys: options.keys,
                        size: options.size,
                        pipeline: options.operations,
                        clients: (options.threads * options.parallel).min(512),
                        requests: ((rate * options.measured.as_secs_f64()) as u64).max(options.operations as u64),
                    };
                    let sample = redis::benchmark(&benchmark).map_err(failed)?;
                    if write {
                        // It has written its own bytes over ours.
                        let redis = targets.iter().find(|t| t.name == "Redis").expect("it stands before its benchmark");
                        fill(options, redis, Work::Restore(options.keys))?;
                    }
                    sample
                }
                _ => turn(options, target, workload, round, &title).map_err(failed)?,
            };
            last_rate = sample.rate();
            match sum {
                None => *sum = Some(sample),
                Some(sum) => sum.add(&sample),
            }
        }
    }
    let lines = targets.iter().zip(sums).filter_map(|(target, sample)| {
        let (target, family) = (target.name.clone(), target.family);
        sample.map(|sample| Line { workload: workload.to_string(), target, family, sample })
    });
    Ok(lines.collect())
}

/// One round of a workload on one target, and the data as it was before.
fn turn(options: &Options, target: &Target, workload: Workload, round: usize, title: &str) -> Result<Sample, String> {
    let once = workload == Workload::One(Op::Delete);
    let work = if once { Work::DeleteAll } else { Work::Workload(workload) };
    let source = |thread| Source::new(work, options.distribution, options.keys, thread, options.threads, round);
    let run = measure::Run {
        threads: options.threads,
        time: Some((if once { Duration::ZERO } else { options.warm_up }, options.measured)),
        title: title.to_string(),
        total: once.then_some(options.keys),
        servers: &target.servers,
        embedded: matches!(target.access, Access::Embedded(_)),
        source: &source,
    };
    let shape = Shape {
        parallel: options.parallel,
        operations: options.operations,
        size: options.size,
        transactional: options.transactional,
    };
    let (sample, sources) = perform(target, &run, shape)?;
    if once {
        let reached = sources.iter().map(Source::reached).max().unwrap_or(0);
        fill(options, target, Work::Restore(reached))?;
    }
    if workload.leaves_new_keys() {
        let source = |thread: usize| sources[thread].forgetting();
        let title = format!("{}: clearing up", target.name);
        let run = measure::Run { time: None, title, total: None, source: &source, ..run };
        // What a mix has deleted already is missing now; only lost connections matter here.
        perform(target, &run, loading(options))?;
    }
    Ok(sample)
}

/// Large groups, but not large frames.
fn loading(options: &Options) -> Shape {
    let operations = (256 << 10) / options.size;
    Shape { parallel: 4, operations: operations.clamp(1, 500), size: options.size, transactional: false }
}

/// Loads all keys, or writes them anew.
fn fill(options: &Options, target: &Target, work: Work) -> Result<(), String> {
    let source = |thread| Source::new(work, workload::Distribution::Uniform, options.keys, thread, options.threads, 0);
    let total = if let Work::Restore(keys) = work { keys } else { options.keys };
    let run = measure::Run {
        threads: options.threads,
        time: None,
        title: format!("{}: loading", target.name),
        total: Some(total),
        servers: &target.servers,
        embedded: matches!(target.access, Access::Embedded(_)),
        source: &source,
    };
    let (sample, _) = perform(target, &run, loading(options)).map_err(|e| format!("loading {}: {e}", target.name))?;
    if sample.errors == 0 && sample.operations == total {
        return Ok(());
    }
    let first = sample.first_error.unwrap_or_else(|| format!("{} of {total} rows", sample.operations));
    Err(format!("loading {}: {first}", target.name))
}

fn perform(target: &Target, run: &measure::Run<'_>, shape: Shape) -> Result<(Sample, Vec<Source>), String> {
    match &target.access {
        Access::Native(native) | Access::Embedded(native) => {
            measure::run(run, &|_, source, tally| native.run(shape, source, tally))
        }
        Access::Peer(port, protocol) => {
            // Loading is no transaction.
            let protocol = match *protocol {
                Protocol::Redis { mget, .. } => Protocol::Redis { mget, transactional: shape.transactional },
                other => other,
            };
            measure::run(run, &|_, source, tally| {
                pipeline::client(*port, protocol, shape.parallel, shape.operations, shape.size, source, tally)
            })
        }
        Access::RedisBenchmark(_) => unreachable!("it is a program of its own"),
    }
}

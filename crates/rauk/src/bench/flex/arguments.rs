//! The command line of `rauk bench flex`.

use super::payload;
use super::workload::{Distribution, Op, Workload};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::PathBuf;
use std::time::Duration;

/// What else runs in the same run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Redis,
    Memcached,
    /// The same server, by a client that sends at once.
    Force,
    /// The same cluster, by a client that sends all to the nodes of its address.
    Unplaced,
    /// A Rauk of this durability.
    Relaxed,
    Fsync,
}

const PEERS: &[(&str, Peer)] = &[
    ("redis", Peer::Redis),
    ("memcached", Peer::Memcached),
    ("force", Peer::Force),
    ("unplaced", Peer::Unplaced),
    ("relaxed", Peer::Relaxed),
    ("fsync", Peer::Fsync),
];

/// Where Rauk is.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// A process that the run starts.
    Own,
    /// A server or a cluster that runs; its processes, if they are on this machine and their processor time is wanted.
    Running {
        address: String,
        secret_file: PathBuf,
        pids: Vec<u32>,
    },
    Embedded,
    /// Rauk takes no part: only peers.
    Nowhere,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub threads: usize,
    pub parallel: usize,
    pub operations: usize,
    pub transactional: bool,
    pub size: usize,
    pub keys: u64,
    pub workloads: Vec<Workload>,
    pub distribution: Distribution,
    pub measured: Duration,
    pub warm_up: Duration,
    pub rounds: usize,
    pub place: Place,
    pub durability: String,
    pub force_send: bool,
    pub longest_wait: Option<Duration>,
    pub connections: usize,
    pub against: Vec<Peer>,
    pub redis_mget: bool,
    pub redis_benchmark: bool,
    pub memcached_get: bool,
    pub csv: Option<PathBuf>,
    pub json: Option<PathBuf>,
    pub plot: Option<PathBuf>,
}

fn text(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn number(name: &'static str, help: &'static str, range: std::ops::RangeInclusive<u64>, default: &'static str) -> Arg {
    text(name, "N", help).value_parser(value_parser!(u64).range(range)).default_value(default)
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

fn list<T: Clone + Send + Sync + 'static>(arg: Arg, parse: fn(&str) -> Result<T, String>) -> Arg {
    arg.value_delimiter(',').value_parser(parse)
}

fn peer(text: &str) -> Result<Peer, String> {
    let found = PEERS.iter().find(|(name, _)| *name == text).map(|(_, peer)| *peer);
    found.ok_or_else(|| {
        let names: Vec<&str> = PEERS.iter().map(|(name, _)| *name).collect();
        format!("there is no peer '{text}'; wanted: {}", names.join(", "))
    })
}

/// Decimals allowed: `0.5`.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|s| (0.0..=86_400.0).contains(s));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "seconds, 0 to 86400".into())
}

pub fn command() -> Command {
    Command::new("flex")
        .about("The native API: keys, batches, transactions, scans; against Redis and memcached in the same run")
        .arg(number("threads", "Client threads", 1..=128, "1"))
        .arg(number("parallel", "Groups of operations that each thread has in flight", 1..=1024, "8"))
        .arg(number("operations", "Operations in a group, which is one round trip", 1..=10_000, "100"))
        .arg(flag("transactional", "Each group is one transaction, whose commit travels with it"))
        .arg(number("size", "Bytes of a record", payload::MIN_SIZE as u64..=60_000, "100"))
        .arg(number("keys", "Records that are loaded", 1..=4_000_000_000, "1000000"))
        .arg(
            list(
                text(
                    "workload",
                    "LIST",
                    "read, insert, update, write, delete, scan, mix=READS:UPDATES:INSERTS:DELETES",
                ),
                |text| text.parse::<Workload>(),
            )
            .default_value("read,update"),
        )
        .arg(
            text("distribution", "WHICH", "uniform or zipf:EXPONENT")
                .value_parser(|text: &str| text.parse::<Distribution>())
                .default_value("uniform"),
        )
        .arg(text("seconds", "N", "Seconds that are measured, a round").value_parser(seconds).default_value("5"))
        .arg(text("warm-up", "N", "Seconds before them").value_parser(seconds).default_value("1"))
        .arg(number("rounds", "Rounds; targets take turns in each", 1..=100, "3"))
        .arg(
            text(
                "connect",
                "ADDRESS",
                "HOST:PORT or rauk://HOST:PORT,…: what runs, in place of a server of this run's own",
            )
            .requires("secret-file"),
        )
        .arg(
            text("secret-file", "FILE", "The running server's secret")
                .value_parser(value_parser!(PathBuf))
                .requires("connect"),
        )
        .arg(
            text("server-pid", "LIST", "The running server's processes, to measure their CPU")
                .value_delimiter(',')
                .value_parser(value_parser!(u32))
                .requires("connect"),
        )
        .arg(flag("embedded", "The database in this process, no server").conflicts_with("connect"))
        .arg(flag("peers-only", "Without Rauk").conflicts_with_all(["connect", "embedded"]).requires("against"))
        .arg(
            text("durability", "WHICH", "Of servers of this run's own")
                .value_parser(["fsync", "relaxed"])
                .default_value("relaxed"),
        )
        .arg(flag("force-send", "The client sends each request at once"))
        .arg(
            text("longest-wait", "MICROSECONDS", "How long adaptive send may hold back a frame, on both sides")
                .value_parser(value_parser!(u64).range(0..=1_000_000)),
        )
        .arg(number("connections", "Sockets of the client, shared by its threads", 1..=128, "1"))
        .arg(list(
            text("against", "LIST", "redis, memcached; force, unplaced, relaxed, fsync: Rauk in another way"),
            peer,
        ))
        .arg(flag("redis-mget", "Redis reads by MGET too; the better counts"))
        .arg(flag("no-redis-benchmark", "Redis without its own benchmark as a second client"))
        .arg(flag(
            "memcached-get",
            "memcached reads by get with many keys too, besides meta commands; the better counts",
        ))
        .arg(text("csv", "FILE", "Write the figures as CSV").value_parser(value_parser!(PathBuf)))
        .arg(text("json", "FILE", "Write the figures as JSON").value_parser(value_parser!(PathBuf)))
        .arg(text("plot", "FILE", "Draw them as SVG").value_parser(value_parser!(PathBuf)))
}

pub fn options(arguments: &ArgMatches) -> Result<Options, String> {
    let number = |name: &str| *arguments.get_one::<u64>(name).expect("has a default");
    let duration = |name: &str| *arguments.get_one::<Duration>(name).expect("has a default");
    let path = |name: &str| arguments.get_one::<PathBuf>(name).cloned();
    let place = match (arguments.get_one::<String>("connect"), path("secret-file")) {
        (Some(address), Some(secret_file)) => {
            let pids = arguments.get_many::<u32>("server-pid").into_iter().flatten().copied().collect();
            Place::Running { address: address.clone(), secret_file, pids }
        }
        _ if arguments.get_flag("embedded") => Place::Embedded,
        _ if arguments.get_flag("peers-only") => Place::Nowhere,
        _ => Place::Own,
    };
    let mut against: Vec<Peer> = Vec::new();
    for peer in arguments.get_many::<Peer>("against").into_iter().flatten() {
        if !against.contains(peer) {
            against.push(*peer);
        }
    }
    let options = Options {
        threads: number("threads") as usize,
        parallel: number("parallel") as usize,
        operations: number("operations") as usize,
        transactional: arguments.get_flag("transactional"),
        size: number("size") as usize,
        keys: number("keys"),
        workloads: arguments.get_many::<Workload>("workload").expect("has a default").copied().collect(),
        distribution: *arguments.get_one::<Distribution>("distribution").expect("has a default"),
        measured: duration("seconds"),
        warm_up: duration("warm-up"),
        rounds: number("rounds") as usize,
        place,
        durability: arguments.get_one::<String>("durability").expect("has a default").clone(),
        force_send: arguments.get_flag("force-send"),
        longest_wait: arguments.get_one::<u64>("longest-wait").map(|micros| Duration::from_micros(*micros)),
        connections: number("connections") as usize,
        against,
        redis_mget: arguments.get_flag("redis-mget"),
        redis_benchmark: !arguments.get_flag("no-redis-benchmark"),
        memcached_get: arguments.get_flag("memcached-get"),
        csv: path("csv"),
        json: path("json"),
        plot: path("plot"),
    };
    check(&options)?;
    Ok(options)
}

/// What the options forbid each other.
fn check(options: &Options) -> Result<(), String> {
    let has = |peer| options.against.contains(&peer);
    if options.measured.is_zero() {
        return Err("--seconds must be above 0".into());
    }
    if options.transactional && has(Peer::Memcached) {
        return Err("memcached has no transactions: leave out --transactional, or memcached".into());
    }
    if options.transactional && options.workloads.contains(&Workload::One(Op::Scan)) {
        return Err("a scan is a statement of its own: leave out --transactional, or scan".into());
    }
    if has(Peer::Force) && !matches!(options.place, Place::Own | Place::Running { .. }) {
        return Err("'force' is another way to a server: it goes neither with --embedded nor with --peers-only".into());
    }
    if has(Peer::Unplaced) && !matches!(options.place, Place::Running { .. }) {
        return Err("'unplaced' is another way to a cluster that runs: name its nodes with --connect".into());
    }
    if options.force_send && has(Peer::Force) {
        return Err("with --force-send there is nothing else to compare 'force' with".into());
    }
    for (peer, name) in [(Peer::Relaxed, "relaxed"), (Peer::Fsync, "fsync")] {
        if has(peer) && (options.place != Place::Own || options.durability == name) {
            return Err(format!("'{name}' is a server of this run's own beside one of another --durability"));
        }
    }
    if options.rounds * options.threads > 8192 {
        return Err("at most 8192 rounds × threads".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let arguments = std::iter::once("flex").chain(line.split_whitespace());
        command().try_get_matches_from(arguments).map_err(|e| e.to_string()).and_then(|m| options(&m))
    }

    #[test]
    fn a_line_becomes_options() {
        let options =
            parse("--threads 2 --workload read,mix=80:20 --against redis,memcached,redis --seconds 0.5").unwrap();
        assert_eq!((options.threads, options.operations, options.size), (2, 100, 100));
        assert_eq!(options.workloads, [Workload::One(Op::Read), Workload::Mix([80, 20, 0, 0])]);
        assert_eq!(options.against, [Peer::Redis, Peer::Memcached]);
        assert_eq!((options.measured, options.place), (Duration::from_millis(500), Place::Own));
    }

    #[test]
    fn what_will_not_do_is_said_with_what_would() {
        for (line, wanted) in [
            ("--workload reads", "wanted: read, insert, update"),
            ("--against postgres", "wanted: redis, memcached, force"),
            ("--distribution normal", "uniform or zipf:EXPONENT"),
            ("--size 4", "8..=60000"),
            ("--seconds 0", "above 0"),
            ("--connect 127.0.0.1:1", "--secret-file"),
            ("--transactional --against memcached", "memcached has no transactions"),
            ("--embedded --against force", "--embedded"),
            ("--against unplaced", "--connect"),
            ("--durability fsync --against fsync", "another --durability"),
            ("--peers-only", "--against"),
            ("--rounds 100 --threads 128", "8192"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(wanted), "{line}: {error}");
        }
    }
}

//! The command line of `rauk bench cluster`.

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Replicas,
    Scale,
    Rejoin,
    Failures,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Galera,
    MariaDb,
}

const PARTS: &[(&str, Part)] =
    &[("replicas", Part::Replicas), ("scale", Part::Scale), ("rejoin", Part::Rejoin), ("failures", Part::Failures)];
const PEERS: &[(&str, Peer)] = &[("galera", Peer::Galera), ("mariadb", Peer::MariaDb)];

#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub parts: Vec<Part>,
    pub seconds: u64,
    pub rounds: usize,
    pub threads: usize,
    pub tables: u64,
    /// Of each of sysbench's tables, and of the table of `rejoin`.
    pub rows: u64,
    pub against: Vec<Peer>,
    pub partitions: u16,
    /// Replication groups of each cluster; 0: one a partition.
    pub groups: u16,
    /// Data nodes of each cluster of `scale` and `failures`, ascending; empty: as each has it by default.
    nodes: Vec<usize>,
    pub warehouses: u32,
    /// Whether warehouses and client threads of scale grow with the data nodes.
    pub grows: bool,
    /// Whether scale sets each cluster against as many nodes that are clusters of two.
    pub control: bool,
    /// Per cent of transactions that touch a second warehouse.
    pub remote: u32,
    /// Cores of a node in the projection.
    pub cores: f64,
    pub json: Option<PathBuf>,
}

impl Options {
    /// What was asked for, or a part's own default.
    pub fn nodes_or<'a>(&'a self, default: &'a [usize]) -> &'a [usize] {
        if self.nodes.is_empty() { default } else { &self.nodes }
    }
}

fn text(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn number(name: &'static str, help: &'static str, range: std::ops::RangeInclusive<u64>, default: &'static str) -> Arg {
    text(name, "N", help).value_parser(value_parser!(u64).range(range)).default_value(default)
}

/// One of a list of names.
fn named<T: Copy>(list: &[(&str, T)], text: &str) -> Result<T, String> {
    let found = list.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    let names: Vec<&str> = list.iter().map(|(name, _)| *name).collect();
    found.ok_or_else(|| format!("there is no '{text}'; wanted: {}", names.join(", ")))
}

pub fn command() -> Command {
    Command::new("cluster")
        .about("What replicas, more nodes, a node that comes back and nodes that fail cost; Galera in the same run")
        .after_help(
            "Everything runs on this host, in processes that the run starts and ends, with data under the working directory. Few cores show what the nodes cost together, not how fast they would be on \
             machines of their own: docs/scaling.md.\n\n\
             scale: transactions as TPC-C's New-Order and Payment, half of each, on tables distributed by warehouse. It is not TPC-C: no items, no names, no keying times, no delivery, order status and \
             stock level, other numbers of rows; its figures compare with nothing but themselves. \"near, control\": as many data nodes, as clusters of two that know nothing of each other, with the same \
             load; \"against the control\" is what being one cluster costs, without what processes on few cores cost each other.\n\n\
             failures: nodes that are killed, hung, shut down, cut off, all killed at once; a writer and a reader in each partition, connected to a node that stays. --seconds is how long a failure lasts. Ends \
             with an error when an acknowledged write is lost.",
        )
        .arg(
            text("only", "PART", "replicas, scale, rejoin, failures; several with commas [default: all]")
                .value_delimiter(',')
                .value_parser(|text: &str| named(PARTS, text)),
        )
        .arg(number("seconds", "Seconds of each measurement", 1..=3600, "5"))
        .arg(number("rounds", "Measurements of each kind", 1..=100, "2"))
        .arg(number("threads", "Client threads", 1..=256, "8"))
        .arg(number("tables", "Tables of sysbench", 1..=64, "1"))
        .arg(number("rows", "Rows of each of them, and of the table of rejoin", 100..=100_000_000, "100000"))
        .arg(
            text("against", "LIST", "Peers of replicas: galera, mariadb, none")
                .value_delimiter(',')
                .value_parser(|text: &str| match text {
                    "none" => Ok(None),
                    _ => named(PEERS, text).map(Some).map_err(|e| format!("{e}, none")),
                })
                .default_value("galera"),
        )
        .arg(number("partitions", "Partitions of each cluster", 1..=256, "16"))
        .arg(number("groups", "Replication groups of each cluster; 0: one a partition", 0..=256, "0"))
        .arg(
            text("nodes", "LIST", "Data nodes of each cluster of scale [default: 2,4,8] and of failures [default: 3]")
                .value_delimiter(',')
                .value_parser(value_parser!(u64).range(1..=16)),
        )
        .arg(number("warehouses", "Warehouses of scale, at two data nodes", 1..=10_000, "16"))
        .arg(
            Arg::new("load")
                .long("load")
                .value_name("grows|same")
                .value_parser(["grows", "same"])
                .default_value("grows")
                .help("Whether warehouses and threads of scale grow with the data nodes, or are the same for all"),
        )
        .arg(
            Arg::new("no-control")
                .long("no-control")
                .action(ArgAction::SetTrue)
                .help("Leave out the controls of scale: as many data nodes, as clusters of two"),
        )
        .arg(number("remote", "Per cent of transactions of scale that touch a second warehouse", 0..=100, "0"))
        .arg(number("cores", "Cores of each node in the projection", 1..=1024, "8"))
        .arg(
            text("json", "FILE", "Write the figures as JSON too")
                .value_parser(value_parser!(PathBuf))
                .action(ArgAction::Set),
        )
}

pub fn options(arguments: &ArgMatches) -> Result<Options, String> {
    let number = |name: &str| *arguments.get_one::<u64>(name).expect("has a default");
    let mut parts: Vec<Part> = arguments.get_many::<Part>("only").into_iter().flatten().copied().collect();
    if parts.is_empty() {
        parts = PARTS.iter().map(|(_, part)| *part).collect();
    }
    let mut against = Vec::new();
    for peer in arguments.get_many::<Option<Peer>>("against").expect("has a default").flatten() {
        if !against.contains(peer) {
            against.push(*peer);
        }
    }
    let mut nodes: Vec<usize> = arguments.get_many::<u64>("nodes").into_iter().flatten().map(|n| *n as usize).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let options = Options {
        parts,
        seconds: number("seconds"),
        rounds: number("rounds") as usize,
        threads: number("threads") as usize,
        tables: number("tables"),
        rows: number("rows"),
        against,
        partitions: number("partitions") as u16,
        groups: number("groups") as u16,
        nodes,
        warehouses: number("warehouses") as u32,
        grows: arguments.get_one::<String>("load").is_some_and(|load| load == "grows"),
        control: !arguments.get_flag("no-control"),
        remote: number("remote") as u32,
        cores: number("cores") as f64,
        json: arguments.get_one::<PathBuf>("json").cloned(),
    };
    if options.threads > options.warehouses as usize && options.parts.contains(&Part::Scale) {
        return Err("--warehouses must be at least --threads: each thread has warehouses of its own".into());
    }
    if options.remote > 0 && options.warehouses < 2 {
        return Err("--remote needs a second warehouse: --warehouses".into());
    }
    if options.parts.contains(&Part::Failures) && options.nodes_or(&[3])[0] < 3 {
        return Err("--nodes must be at least 3 for failures: two must be left to go on with a majority".into());
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let arguments = std::iter::once("cluster").chain(line.split_whitespace());
        command().try_get_matches_from(arguments).map_err(|e| e.to_string()).and_then(|m| options(&m))
    }

    #[test]
    fn a_line_becomes_options() {
        let options = parse("").unwrap();
        assert_eq!(options.parts, [Part::Replicas, Part::Scale, Part::Rejoin, Part::Failures]);
        assert_eq!((options.nodes_or(&[3]), &options.against[..]), (&[3][..], &[Peer::Galera][..]));
        assert!(options.control && !parse("--only scale --no-control").unwrap().control);
        let options = parse("--only rejoin --against none --nodes 4,2,4 --threads 2 --remote 10").unwrap();
        assert_eq!((options.parts, options.against), (vec![Part::Rejoin], vec![]));
        assert_eq!((options.nodes, options.threads, options.remote), (vec![2, 4], 2, 10));
    }

    #[test]
    fn what_will_not_do_is_said_with_what_would() {
        for (line, wanted) in [
            ("--only speed", "wanted: replicas, scale, rejoin, failures"),
            ("--only failures --nodes 2,4", "at least 3"),
            ("--against oracle", "wanted: galera, mariadb, none"),
            ("--nodes 0", "1..=16"),
            ("--threads 9 --warehouses 8", "--warehouses"),
            ("--remote 5 --warehouses 1 --threads 1", "second warehouse"),
            ("--seconds 0", "1..=3600"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(wanted), "{line}: {error}");
        }
    }
}

//! Nodes that fail while the cluster is written to and read: how long nobody was served, when all was whole again, and whether anything acknowledged is gone.
//!
//! | file | what |
//! |---|---|
//! | this | the kinds of failure, a round of one, all nodes at once |
//! | [`clients`] | who writes and reads meanwhile, and the book of what was acknowledged |
//! | [`circle`] | deadlocks over two nodes: from the closing of the circle to error 1213 |
//! | [`report`] | the table, and the same as JSON |
//!
//! # A round
//! The cluster is whole and its primaries rest. Each partition gets a writer and a reader, connected to a node that stays; so a time without service is that of the partition that was hit hardest, not an average
//! that others smooth. After a moment a node fails; it stays so for `--seconds`; then it is started again, goes on, or is reached again, and the round ends when every replica is in-sync in a process that the
//! cluster did not know before. Then the book is read back through every node. A single missing row fails the run.
//!
//! All clients are connected to nodes that stay: what a client of the failed node sees is its own reconnecting. When all nodes are killed at once there is nobody else; they are started again at once.
//!
//! A pause of a client may also be the machine's, which carries all nodes and clients: the longest pause of any of them *before* the failure is printed beside.

mod circle;
mod clients;
mod report;

pub use circle::Circles;
pub use report::{json, table};

use super::arguments::Options;
use super::nodes::{self, Cluster, Plan};
use clients::{Book, Clients, Errors, Gaps};
use std::path::Path;
use std::time::{Duration, Instant};

/// A node that comes back is whole within this.
const BACK: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(10);
/// How long the clients work before something fails, and after all is whole.
const CALM: Duration = Duration::from_millis(1500);
const AFTER: Duration = Duration::from_millis(500);
const GOAL: Duration = Duration::from_millis(500);
const GOAL_OF_LEADER: Duration = Duration::from_millis(700);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Killed,
    Hung,
    ShutDown,
    LeaderKilled,
    LeaderHung,
    CutOff,
    AllKilled,
}

/// In the order of the table. Who is cut off is in a cluster of its own, with relays.
const KINDS: &[Kind] =
    &[Kind::Killed, Kind::Hung, Kind::ShutDown, Kind::LeaderKilled, Kind::LeaderHung, Kind::AllKilled];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Killed => "killed (SIGKILL)",
            Kind::Hung => "hung (SIGSTOP)",
            Kind::ShutDown => "shut down (SIGTERM)",
            Kind::LeaderKilled => "manage leader killed",
            Kind::LeaderHung => "manage leader hung",
            Kind::CutOff => "cut off, both ways",
            Kind::AllKilled => "all nodes killed at once",
        }
    }

    /// Without service at most, as the project wants it.
    fn goal(self) -> Option<Duration> {
        match self {
            Kind::Killed | Kind::Hung | Kind::ShutDown | Kind::CutOff => Some(GOAL),
            Kind::LeaderKilled | Kind::LeaderHung => Some(GOAL_OF_LEADER),
            Kind::AllKilled => None,
        }
    }

    fn is_of_leader(self) -> bool {
        matches!(self, Kind::LeaderKilled | Kind::LeaderHung)
    }
}

/// One failure, measured.
struct Round {
    gaps: Gaps,
    /// From where the node was started, went on or could be reached again.
    whole: Duration,
    acknowledged: u64,
    lost: u64,
}

pub struct Line {
    pub nodes: usize,
    kind: Kind,
    rounds: Vec<Round>,
    errors: Errors,
}

pub struct Measured {
    pub lines: Vec<Line>,
    pub circles: Vec<Circles>,
}

impl Measured {
    fn lost(&self) -> u64 {
        self.lines.iter().flat_map(|line| &line.rounds).map(|round| round.lost).sum()
    }
}

pub fn run(options: &Options, root: &Path) -> Result<Measured, String> {
    let mut measured = Measured { lines: Vec::new(), circles: Vec::new() };
    for &count in options.nodes_or(&[3]) {
        let plan = Plan::of(count, 2, options.partitions, options.groups);
        let mut cluster = Cluster::start(&root.join(format!("failures-{count}")), plan.clone())?;
        let mut book = Book::make(&cluster, options.partitions)?;
        measured.circles.push(circle::run(&cluster, count, options.partitions)?);
        for &kind in KINDS {
            measured.lines.push(rounds(&mut cluster, kind, &mut book, options)?);
        }
        drop(cluster);
        let mut cluster = Cluster::start_relayed(&root.join(format!("failures-{count}-cut")), plan)?;
        let mut book = Book::make(&cluster, options.partitions)?;
        let line = rounds(&mut cluster, Kind::CutOff, &mut book, options)?;
        // Before that of all nodes at once.
        measured.lines.insert(measured.lines.len() - 1, line);
    }
    if measured.lost() > 0 {
        return Err(format!("{}\n{} acknowledged writes are lost", table(&measured), measured.lost()));
    }
    Ok(measured)
}

fn rounds(cluster: &mut Cluster, kind: Kind, book: &mut Book, options: &Options) -> Result<Line, String> {
    let mut line = Line { nodes: cluster.nodes.len(), kind, rounds: Vec::new(), errors: Errors::new() };
    for round in 0..options.rounds {
        eprintln!("failures, {}: round {} of {}", kind.name(), round + 1, options.rounds);
        let round = one(cluster, kind, book, &mut line.errors, Duration::from_secs(options.seconds));
        line.rounds.push(round.map_err(|e| format!("{}: {e}", kind.name()))?);
    }
    Ok(line)
}

/// In a cluster that is whole and whose primaries rest, as it leaves it.
fn one(
    cluster: &mut Cluster,
    kind: Kind,
    book: &mut Book,
    errors: &mut Errors,
    lasts: Duration,
) -> Result<Round, String> {
    let leader = cluster.leader().ok_or("nobody leads the manage group")?;
    let with_data = |at: &usize| cluster.nodes[*at].has_data();
    let victim = match kind.is_of_leader() {
        true => leader,
        false => (0..cluster.nodes.len()).rev().filter(with_data).find(|at| *at != leader).ok_or("no node may fail")?,
    };
    let stays = (0..cluster.nodes.len()).filter(with_data).find(|at| *at != victim);
    let port = stays.and_then(|at| cluster.nodes[at].sql_port()).ok_or("no node with data stays")?;
    let before = cluster.newest_process();
    let clients = Clients::start(port, book);
    std::thread::sleep(CALM);
    let events = match kind {
        Kind::AllKilled => fail_all(cluster, before),
        _ => fail(cluster, kind, victim, before, lasts),
    };
    if events.is_ok() {
        std::thread::sleep(AFTER);
    }
    let seen = clients.stop()?;
    let events = events?;
    let acknowledged = book.note(&seen);
    cluster.wait_healthy(BACK)?;
    let lost = book.lost(cluster)?;
    for (error, count) in seen.errors() {
        *errors.entry(error).or_default() += count;
    }
    let gaps = seen.gaps(events.failed, events.mended);
    Ok(Round { gaps, whole: events.whole - events.mended, acknowledged, lost })
}

struct Events {
    failed: Instant,
    mended: Instant,
    whole: Instant,
}

fn fail(cluster: &mut Cluster, kind: Kind, victim: usize, before: u64, lasts: Duration) -> Result<Events, String> {
    let failed = Instant::now();
    match kind {
        Kind::Killed | Kind::LeaderKilled => cluster.kill(victim),
        Kind::ShutDown => cluster.stop(victim)?,
        Kind::Hung | Kind::LeaderHung => cluster.signal(victim, "STOP")?,
        Kind::CutOff => cluster.cut_off(victim, true),
        Kind::AllKilled => unreachable!("there is more than one victim"),
    }
    std::thread::sleep(lasts.saturating_sub(failed.elapsed()));
    let mended = Instant::now();
    match kind {
        Kind::Hung | Kind::LeaderHung => cluster.signal(victim, "CONT")?,
        Kind::CutOff => cluster.cut_off(victim, false),
        _ => cluster.launch(victim)?,
    }
    wait_whole(cluster, &[victim], before)?;
    Ok(Events { failed, mended, whole: Instant::now() })
}

fn fail_all(cluster: &mut Cluster, before: u64) -> Result<Events, String> {
    let failed = Instant::now();
    let all: Vec<usize> = (0..cluster.nodes.len()).collect();
    // Told one after the other within a millisecond; waited for afterwards.
    all.iter().try_for_each(|at| cluster.signal(*at, "KILL"))?;
    all.iter().for_each(|at| cluster.kill(*at));
    let mended = Instant::now();
    all.iter().try_for_each(|at| cluster.launch(*at))?;
    wait_whole(cluster, &all, before)?;
    Ok(Events { failed, mended, whole: Instant::now() })
}

/// Until each of these nodes serves in a process that is newer than `before`, and all replicas are in-sync.
fn wait_whole(cluster: &mut Cluster, victims: &[usize], before: u64) -> Result<(), String> {
    let began = Instant::now();
    loop {
        let mut ready = true;
        for &at in victims {
            ready &= cluster.is_ready(at)?;
        }
        let state = if ready { cluster.state() } else { None };
        if let Some(state) = &state {
            // As long as the new processes are not known, the state may be that of before they were missed.
            let known = nodes::processes(state).filter(|process| *process > before).count() >= victims.len();
            if known && nodes::is_healthy(state) && nodes::nodes_up(state) >= cluster.nodes.len() {
                return Ok(());
            }
        }
        if began.elapsed() >= BACK {
            let why = state.map_or("no node answers".to_string(), |s| s["reasons"].to_string());
            return Err(format!("the cluster is not whole after {BACK:?}: {why}"));
        }
        std::thread::sleep(LOOK);
    }
}

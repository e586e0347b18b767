//! Memory pressure: says that memory runs out before it has run out.
//!
//! At 80 % of the memory limit a node is *yellow*, at 95 % *red*; at 98 % writes are refused. Each border is told once, in
//! one line of the log and one event, with the tables that hold most and those that have grown most, since whoever reads
//! that line wants to know what to delete. Health, metrics and status show the colour for as long as it lasts.
//!
//! Mechanism: the task that runs every epoch compares two counters ([`look`]), which costs nothing. The tables are gone
//! through only when a border is crossed, and when memory has grown by a tenth of the limit: what they held then is what
//! growth is told against. A colour ends 3 per cent below the border where it began, so that a node which works at a border
//! does not tell it again and again.
//!
//! Invariant: a colour says how full memory is, whatever filled it; tables are an explanation. A partition that is busy
//! counts as it did when it was last looked at ([`crate::node::Node::usage`]), so that no look waits for a statement.
//!
//! Left out: a forecast of when memory is full. It would be wrong whenever a load begins or ends.

use crate::database::Database;
use crate::member::event_log::Level;
use crate::member::room::NEARLY_FULL;
use crate::node::Node;
use parking_lot::Mutex;
use rauk_manage::group::Colour;
use rauk_types::{NodeId, TableId, size};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;

/// Per cent of the limit from which a colour holds, and how far below it ends.
const YELLOW: u64 = 80;
const RED: u64 = 95;
const BACK: u64 = 3;
/// Tables that are named.
const NAMED: usize = 3;
/// The most tables that are gone through.
const MOST: usize = 10_000;
/// Growth below this is not worth a table's name.
const LEAST_GROWTH: u64 = 64 << 10;

fn percent(used: u64, limit: u64) -> u64 {
    u64::try_from(u128::from(used) * 100 / u128::from(limit.max(1))).unwrap_or(u64::MAX)
}

/// The colour of a node whose memory is so full, if nothing is known of before.
pub fn colour(used: u64, limit: u64) -> Colour {
    next(Colour::Green, percent(used, limit))
}

/// What follows a colour when memory is so full.
fn next(before: Colour, percent: u64) -> Colour {
    let from = |colour: Colour, border: u64| if before >= colour { border - BACK } else { border };
    match percent {
        full if full >= from(Colour::Red, RED) => Colour::Red,
        full if full >= from(Colour::Yellow, YELLOW) => Colour::Yellow,
        _ => Colour::Green,
    }
}

/// What tables held at some time.
#[derive(Debug, Default)]
struct Held {
    at: Duration,
    /// Of the limit, in tenths.
    tenth: u64,
    bytes: FxHashMap<TableId, u64>,
}

/// What is known of a node's memory.
#[derive(Debug)]
pub struct Pressure {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    colour: Colour,
    before: Held,
    /// Of the colour that holds, if it is not green: the tables, in words.
    tables: String,
}

impl Default for Pressure {
    fn default() -> Self {
        let state = State { colour: Colour::Green, before: Held::default(), tables: String::new() };
        Pressure { state: Mutex::new(state) }
    }
}

/// Compares what is used with the limit, and tells when a border has been crossed.
pub fn look(node: &Arc<Node>) {
    let (used, limit) = (node.budget.used(), node.budget.limit());
    let percent = percent(used, limit);
    let tenth = percent / 10;
    let (colour, is_new, is_grown) = {
        let state = node.pressure.state.lock();
        let colour = next(state.colour, percent);
        (colour, colour != state.colour, tenth != state.before.tenth)
    };
    if !is_new {
        // Growth is told against the last tenth; what is given back begins it again.
        if is_grown {
            let now = held(node, tenth);
            node.pressure.state.lock().before = now;
        }
        return;
    }
    let now = held(node, tenth);
    // Nobody else writes them, so whoever asks for health meanwhile waits for no table.
    let before = std::mem::take(&mut node.pressure.state.lock().before);
    let (largest, grown) = (largest(node, &now), grown(node, &before, &now));
    let since = now.at.saturating_sub(before.at).as_secs();
    let tables = match (largest.is_empty(), grown.is_empty()) {
        (true, _) => String::new(),
        (false, true) => format!("the largest tables are {largest}"),
        (false, false) => format!("the largest tables are {largest}; those that grew most in {since} s are {grown}"),
    };
    *node.pressure.state.lock() = State { colour, before: now, tables: tables.clone() };
    let (used, limit) = (size::show(used), size::show(limit));
    match colour {
        Colour::Green => tracing::info!(percent, used, limit, "memory pressure ended"),
        Colour::Yellow => {
            tracing::warn!(percent, used, limit, largest, grown, since_s = since, "memory pressure is yellow")
        }
        Colour::Red => tracing::error!(percent, used, limit, largest, grown, since_s = since, "memory pressure is red"),
    }
    let level = match colour {
        Colour::Green => Level::Info,
        Colour::Yellow => Level::Warning,
        Colour::Red => Level::Error,
    };
    let me = node.cluster().map_or(NodeId(1), |cluster| cluster.me().node);
    let tables = if tables.is_empty() { tables } else { format!("; {tables}") };
    node.event_log.note(me, level, format!("memory pressure is {colour}: {percent} % of {limit} are used{tables}"));
}

/// What all tables hold now; index tables count with their tables.
fn held(node: &Arc<Node>, tenth: u64) -> Held {
    let tables: Vec<_> = node.catalog.lock().catalog().tables().map(|t| (t.id, t.entry_of)).take(MOST).collect();
    let mut bytes: FxHashMap<TableId, u64> = FxHashMap::default();
    for (id, entry_of) in tables {
        if let Some(info) = node.tables.by_id(id) {
            let usage = node.usage(&info);
            let all = usage.row_bytes + usage.hash_bytes + usage.ordered_bytes + usage.history_bytes;
            *bytes.entry(entry_of.map_or(id, |(base, _)| base)).or_default() += all;
        }
    }
    Held { at: node.runtime.now(), tenth, bytes }
}

/// Names of the tables with the largest numbers, and these.
fn named(node: &Node, mut tables: Vec<(TableId, u64)>, sign: &str) -> String {
    tables.sort_by_key(|(id, bytes)| (std::cmp::Reverse(*bytes), *id));
    let name = |(id, bytes): (TableId, u64)| {
        let info = node.tables.by_id(id)?;
        Some(format!("{}.{} {sign}{}", info.schema.database, info.schema.name, size::show(bytes)))
    };
    let names: Vec<String> = tables.into_iter().filter_map(name).take(NAMED).collect();
    names.join(", ")
}

fn largest(node: &Node, now: &Held) -> String {
    named(node, now.bytes.iter().map(|(id, bytes)| (*id, *bytes)).filter(|(_, bytes)| *bytes > 0).collect(), "")
}

fn grown(node: &Node, before: &Held, now: &Held) -> String {
    let growth = |(id, bytes): (&TableId, &u64)| {
        let more = bytes.saturating_sub(before.bytes.get(id).copied().unwrap_or(0));
        (more >= LEAST_GROWTH).then_some((*id, more))
    };
    named(node, now.bytes.iter().filter_map(growth).collect(), "+")
}

impl Database {
    /// How full this node's memory is.
    pub fn memory_pressure(&self) -> Colour {
        self.node.pressure.state.lock().colour
    }

    /// A sentence for the operator while it is not green.
    pub(crate) fn pressure_reason(&self) -> Option<(Colour, String)> {
        let (used, limit) = (self.memory_used(), self.memory_limit());
        let state = self.node.pressure.state.lock();
        let what = match state.colour {
            Colour::Green => return None,
            Colour::Yellow => "before it is full".to_owned(),
            // Others refuse for this node earlier than it does for itself.
            Colour::Red if self.node.cluster().is_some() => format!("now: writes are refused from {NEARLY_FULL} %"),
            Colour::Red => "now: writes are refused from 98 %".to_owned(),
        };
        let tables =
            if state.tables.is_empty() { String::new() } else { format!(". When that began, {}", state.tables) };
        Some((
            state.colour,
            format!(
                "{} % of this node's memory limit are used ({} of {}): delete rows or raise rauk_memory_limit {what}{tables}",
                percent(used, limit),
                size::show(used),
                size::show(limit)
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_begins_at_its_border_and_ends_below_it() {
        use Colour::{Green, Red, Yellow};
        let mut colour = Green;
        let mut seen = Vec::new();
        for percent in [0, 79, 80, 79, 80, 77, 76, 79, 94, 95, 93, 95, 92, 91, 96, 200, 50, 96, 77, 76] {
            colour = next(colour, percent);
            seen.push(colour);
        }
        assert_eq!(
            seen,
            [
                Green, Green, Yellow, Yellow, Yellow, Yellow, Green, Green, Yellow, Red, Red, Red, Red, Yellow, Red,
                Red, Green, Red, Yellow, Green
            ]
        );
        assert_eq!((colour_of(79), colour_of(80), colour_of(95)), (Green, Yellow, Red));
        assert_eq!(super::colour(1, 0), Red, "no limit of 0 divides");
    }

    fn colour_of(percent: u64) -> Colour {
        super::colour(percent * 1000, 100_000)
    }
}

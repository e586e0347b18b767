//! The order in which the inner tables of a join are read.
//!
//! Up to [`MAX_EXACT`] tables are searched exactly, by dynamic programming over sets of tables: for each set the cheapest
//! order of it, with and without the order of rows that the block wants. More tables are taken one after the other; each
//! time the search looks [`AHEAD`] tables ahead, at the [`WIDTH`] best choices of each, and takes the first table of the
//! cheapest way. When [`MOST_ASKED`] access paths have been asked for, it looks no further than the next table: planning
//! a join of 61 tables is bounded whatever its conditions are.
//!
//! What is compared is the cost so far and one unit for each row that comes out: whatever follows looks at it. Ties go to
//! the order that was written. The search knows tables by their position in a list and sets of them as bits; the access
//! path of a table behind a set is asked from outside, once for each set of those tables that it has a condition with.

use super::access::sort_cost;
use super::cost::{self, Inner};
use rustc_hash::FxHashMap;

/// Tables that are searched exactly.
const MAX_EXACT: usize = 8;
const AHEAD: usize = 3;
const WIDTH: usize = 4;
/// Access paths that are asked for before the search stops to look ahead.
const MOST_ASKED: usize = 4096;
/// Sets are bits of a number.
const MAX_TABLES: usize = 128;

/// The access path of a table behind others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// Of one loop.
    pub cost: f64,
    pub rows: f64,
    /// Rows that its conditions leave.
    pub kept: f64,
    pub inner: Inner,
    /// The table may be read once for so much, and be probed.
    pub once: Option<f64>,
    /// As the first table: it gives the order that is wanted.
    pub ordered: bool,
}

pub(super) struct Tables<'a> {
    /// Of each table: those that must come before it.
    pub needs: &'a [u128],
    /// Of each table: those that it has a condition with.
    pub related: &'a [u128],
    /// Rows that are there before the first of them.
    pub rows: f64,
    /// The table whose rows may come in the order that is wanted.
    pub wanted: Option<usize>,
}

/// Asks for the path of a table behind the related ones of those before it; `true`: it is the first of all.
type Ask<'a> = &'a mut dyn FnMut(usize, u128, bool) -> Path;

struct Search<'a> {
    tables: &'a Tables<'a>,
    ask: Ask<'a>,
    known: FxHashMap<(usize, u128, bool), Path>,
}

/// A part of an order.
#[derive(Clone, Copy, Debug)]
struct State {
    taken: u128,
    cost: f64,
    rows: f64,
    ordered: bool,
}

impl State {
    /// What is compared.
    fn value(&self) -> f64 {
        self.cost + self.rows
    }
}

/// The cheapest order that is found.
pub(super) fn search(tables: &Tables<'_>, ask: Ask<'_>) -> Vec<usize> {
    let count = tables.needs.len();
    if !(2..=MAX_TABLES).contains(&count) {
        return (0..count).collect();
    }
    let mut search = Search { tables, ask, known: FxHashMap::default() };
    if count <= MAX_EXACT {
        return search.exact();
    }
    let (order, state) = search.ahead(None);
    // To begin with the table that gives the order saves a sort.
    if let Some(wanted) = tables.wanted
        && !state.ordered
        && tables.needs[wanted] == 0
    {
        let (other, other_state) = search.ahead(Some(wanted));
        if search.total(&other_state) < search.total(&state) {
            return other;
        }
    }
    order
}

impl Search<'_> {
    fn count(&self) -> usize {
        self.tables.needs.len()
    }

    fn start(&self) -> State {
        State { taken: 0, cost: 0.0, rows: self.tables.rows, ordered: false }
    }

    fn may_follow(&self, state: &State, table: usize) -> bool {
        state.taken & (1 << table) == 0 && self.tables.needs[table] & !state.taken == 0
    }

    /// `state` with one table more.
    fn with(&mut self, state: &State, table: usize) -> State {
        let related = state.taken & self.tables.related[table];
        let first = state.taken == 0;
        let path = match self.known.get(&(table, related, first)) {
            Some(path) => *path,
            None => {
                let path = (self.ask)(table, related, first);
                self.known.insert((table, related, first), path);
                path
            }
        };
        let step = cost::step(state.rows, path.cost, path.rows, path.inner);
        let once = path.once.map_or(step, |once| cost::step(state.rows, once, path.rows, Inner::Probed));
        let step = step.min(once);
        State {
            taken: state.taken | 1 << table,
            cost: state.cost + step,
            rows: (state.rows * path.kept).max(1.0),
            ordered: state.ordered || first && path.ordered,
        }
    }

    /// With the sort that is left.
    fn total(&self, state: &State) -> f64 {
        let sorts = self.tables.wanted.is_some() && !state.ordered;
        state.cost + if sorts { sort_cost(state.rows) } else { 0.0 }
    }

    fn exact(&mut self) -> Vec<usize> {
        let count = self.count();
        let all = (1usize << count) - 1;
        // Of each set: the cheapest order without and with the order of rows, and its last table.
        let mut best: Vec<[Option<(State, usize)>; 2]> = vec![[None, None]; all + 1];
        for set in 0..all {
            let states: Vec<State> = match set {
                0 => vec![self.start()],
                _ => best[set].iter().flatten().map(|(state, _)| *state).collect(),
            };
            for state in states {
                for table in 0..count {
                    if !self.may_follow(&state, table) {
                        continue;
                    }
                    let next = self.with(&state, table);
                    let place = &mut best[set | 1 << table][usize::from(next.ordered)];
                    let value = |state: &State| if next.taken == all as u128 { state.cost } else { state.value() };
                    if place.as_ref().is_none_or(|(known, _)| value(&next) < value(known)) {
                        *place = Some((next, table));
                    }
                }
            }
        }
        let [unordered, ordered] = &best[all];
        let cheaper = match (unordered, ordered) {
            (Some((a, _)), Some((b, _))) => usize::from(self.total(b) <= self.total(a)),
            (None, Some(_)) => 1,
            _ => 0,
        };
        // Back from the last table. The first table alone decides whether the rows are ordered.
        let mut order = Vec::with_capacity(count);
        let mut set = all;
        while set != 0 {
            let (_, last) = best[set][cheaper].expect("each set that is passed has an order");
            order.push(last);
            set &= !(1 << last);
        }
        order.reverse();
        order
    }

    /// Table by table, looking ahead.
    fn ahead(&mut self, first: Option<usize>) -> (Vec<usize>, State) {
        let mut state = self.start();
        let mut order = Vec::with_capacity(self.count());
        while order.len() < self.count() {
            let next = match first.filter(|_| order.is_empty()) {
                Some(first) => first,
                None => self.look(&state, AHEAD).expect("a table that needs no other is left").1,
            };
            state = self.with(&state, next);
            order.push(next);
        }
        (order, state)
    }

    /// The value of the best way on, and its first table.
    fn look(&mut self, state: &State, depth: usize) -> Option<(f64, usize)> {
        let mut next: Vec<(State, usize)> = Vec::new();
        for table in 0..self.count() {
            if self.may_follow(state, table) {
                next.push((self.with(state, table), table));
            }
        }
        next.sort_by(|a, b| a.0.value().total_cmp(&b.0.value()));
        let far = depth > 1 && self.known.len() < MOST_ASKED;
        next.truncate(if far { WIDTH } else { 1 });
        let mut best: Option<(f64, usize)> = None;
        for (state, table) in next {
            let value = match far {
                true => self.look(&state, depth - 1).map_or(state.value(), |(value, _)| value),
                false => state.value(),
            };
            if best.is_none_or(|(known, _)| value < known) {
                best = Some((value, table));
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables in a chain, each with a key lookup from its neighbours; `rows` of a full scan.
    fn chain(rows: &[f64]) -> (Vec<u128>, impl FnMut(usize, u128, bool) -> Path + use<'_>) {
        let count = rows.len();
        let related = (0..count)
            .map(|at| {
                let before = if at > 0 { 1u128 << (at - 1) } else { 0 };
                before | if at + 1 < count { 1 << (at + 1) } else { 0 }
            })
            .collect();
        let ask = move |table: usize, before: u128, first: bool| match before {
            0 => Path {
                cost: rows[table] + 10.0,
                rows: rows[table],
                kept: rows[table],
                inner: if first { Inner::Each } else { Inner::Looped },
                once: None,
                ordered: false,
            },
            _ => Path { cost: 1.0, rows: 1.0, kept: 1.0, inner: Inner::Each, once: None, ordered: false },
        };
        (related, ask)
    }

    fn plan(rows: &[f64], needs: &[u128]) -> Vec<usize> {
        let (related, mut ask) = chain(rows);
        search(&Tables { needs, related: &related, rows: 1.0, wanted: None }, &mut ask)
    }

    #[test]
    fn the_smallest_table_of_a_chain_is_first_and_no_product_is_made() {
        for count in [2, 5, 8, 9, 20, 61] {
            for smallest in [0, count / 2, count - 1] {
                let rows: Vec<f64> =
                    (0..count).map(|at| if at == smallest { 10.0 } else { 1000.0 + at as f64 }).collect();
                let order = plan(&rows, &vec![0; count]);
                assert_eq!(order[0], smallest, "{count} tables: {order:?}");
                for (at, &table) in order.iter().enumerate().skip(1) {
                    let near = order[..at].iter().any(|&before| before.abs_diff(table) == 1);
                    assert!(near, "{table} joins nothing before it: {order:?}");
                }
            }
        }
    }

    #[test]
    fn what_must_come_before_does() {
        for count in [3, 8, 30] {
            let rows = vec![100.0; count];
            // Backwards.
            let needs: Vec<u128> = (0..count).map(|at| if at + 1 < count { 1 << (at + 1) } else { 0 }).collect();
            assert_eq!(plan(&rows, &needs), (0..count).rev().collect::<Vec<_>>());
        }
    }

    #[test]
    fn many_tables_that_are_all_related_are_planned_within_bounds() {
        let count = 61;
        let related: Vec<u128> = (0..count).map(|at| ((1u128 << count) - 1) & !(1 << at)).collect();
        let mut asked = 0usize;
        let mut ask = |table: usize, before: u128, _: bool| {
            asked += 1;
            let rows = 1000.0 / f64::from(before.count_ones() + 1) + table as f64;
            Path { cost: rows, rows, kept: 1.5, inner: Inner::Each, once: None, ordered: false }
        };
        let needs = vec![0; count];
        let order = search(&Tables { needs: &needs, related: &related, rows: 1.0, wanted: None }, &mut ask);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..count).collect::<Vec<_>>());
        assert!(asked < MOST_ASKED + WIDTH * count * count, "{asked} access paths");
    }

    #[test]
    fn an_order_that_saves_a_sort_is_taken_when_it_is_cheaper() {
        for count in [3, 12] {
            let needs = vec![0; count];
            let related: Vec<u128> = (0..count).map(|at| ((1u128 << count) - 1) & !(1 << at)).collect();
            for (extra, first) in [(1.0, 2), (1e9, 0)] {
                let mut ask = |table: usize, before: u128, _: bool| {
                    let ordered = table == 2 && before == 0;
                    let cost = if before > 0 { 1.0 } else { 1000.0 + if ordered { extra } else { 0.0 } };
                    let rows = if before > 0 { 1.0 } else { 1000.0 };
                    Path { cost, rows, kept: rows, inner: Inner::Each, once: None, ordered }
                };
                let tables = Tables { needs: &needs, related: &related, rows: 1.0, wanted: Some(2) };
                assert_eq!(search(&tables, &mut ask)[0], first, "{count} tables, {extra} more");
            }
        }
    }
}

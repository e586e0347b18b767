//! The order of tables, and the steps of nested loops.
//!
//! Inner tables may be read in any order: up to six are tried in every order (with the cheapest so far as a bound), more are taken greedily,
//! always the one that adds least. Outer join groups follow the inner tables beside them, in the order written, since their null rows depend on all of these; a group
//! whose null rows some condition rejects anyway is an inner join and moves freely. Every condition is checked as soon as its tables are
//! there; conditions of WHERE on a group's tables wait until the group is complete.
//!
//! A table that no index reaches is read once into memory and probed by hash where an equality joins it, else looped over.

use super::access::{Chosen, Wanted, choose, sort_cost};
use super::condition::{self, Sarg, tables_of};
use super::model::{Access, HashJoin, Level, Source, Step};
use crate::expr::Expr;
use rauk_node::Database;
use rauk_node::transaction::Lock;

const MAX_EXHAUSTIVE: usize = 6;

/// A table, or the inner side of an outer join.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Table(usize),
    Outer { items: Vec<Item>, on: Vec<Expr> },
}

impl Item {
    pub fn tables(&self, out: &mut Vec<usize>) {
        match self {
            Item::Table(table) => out.push(*table),
            Item::Outer { items, .. } => items.iter().for_each(|i| i.tables(out)),
        }
    }
}

pub(crate) struct JoinPlan {
    pub steps: Vec<Step>,
    /// Conditions without columns.
    pub once: Vec<Expr>,
    /// The order that was wanted comes from the first table's access path.
    pub ordered: bool,
    pub outer_groups: usize,
}

/// An order over one table that would save a sort.
pub(crate) struct WantedOrder {
    pub table: usize,
    pub order: Vec<(usize, bool)>,
    pub limit: Option<f64>,
}

pub(crate) struct JoinInput<'a> {
    pub sources: &'a [Source],
    pub items: Vec<Item>,
    /// Conjuncts of WHERE and of inner joins.
    pub conditions: Vec<Expr>,
    pub keep_order: bool,
    pub wanted: Option<WantedOrder>,
    /// How each table's rows are locked.
    pub locks: &'a [Lock],
    pub database: &'a Database,
}

pub(crate) fn plan_join(input: JoinInput<'_>) -> JoinPlan {
    let JoinInput { sources, mut items, mut conditions, keep_order, wanted, locks, database } = input;
    simplify_outer(&mut items, &mut conditions);
    let mut once = Vec::new();
    conditions.retain(|c| {
        let now = c.is_constant();
        if now {
            once.push(c.clone());
        }
        !now
    });
    let mut builder = Builder {
        sources,
        database,
        keep_order,
        wanted,
        locks,
        placed: vec![],
        steps: vec![],
        groups: 0,
        ordered: false,
    };
    let mut pool = Pool::new(conditions);
    builder.block(&items, &mut pool, true);
    let rest = pool.take_all();
    if !rest.is_empty() {
        // Conditions that read nothing yet change from row to row, like RAND(): with the last row, or once where there is no table.
        match builder.steps.last_mut() {
            Some(Step::Scan(level)) => level.check(rest),
            Some(Step::Leave { filters, .. }) => filters.extend(rest),
            Some(Step::Enter { .. }) => unreachable!("a group has a table"),
            None => once.extend(rest),
        }
    }
    JoinPlan { steps: builder.steps, once, ordered: builder.ordered, outer_groups: builder.groups }
}

/// Turns outer joins into inner ones where a condition of the enclosing block is never true for null rows.
fn simplify_outer(items: &mut Vec<Item>, conditions: &mut Vec<Expr>) {
    loop {
        let mut rejected = Vec::new();
        for condition in conditions.iter() {
            condition::null_rejected(condition, &mut rejected);
        }
        let found = items.iter().position(|item| match item {
            Item::Outer { .. } => {
                let mut direct = Vec::new();
                direct_tables(item, &mut direct);
                direct.iter().any(|t| rejected.contains(t))
            }
            Item::Table(_) => false,
        });
        let Some(found) = found else { break };
        let Item::Outer { items: inner, on } = items.remove(found) else { unreachable!("found as an outer join") };
        for (offset, item) in inner.into_iter().enumerate() {
            items.insert(found + offset, item);
        }
        conditions.extend(on);
    }
    for item in items {
        if let Item::Outer { items, on } = item {
            simplify_outer(items, on);
        }
    }
}

/// The tables of a group that are not in a group inside it.
fn direct_tables(item: &Item, out: &mut Vec<usize>) {
    if let Item::Outer { items, .. } = item {
        out.extend(items.iter().filter_map(|i| match i {
            Item::Table(table) => Some(*table),
            Item::Outer { .. } => None,
        }));
    }
}

/// The conjuncts of one block, with what an index could use of them.
struct Pool {
    conditions: Vec<Option<Expr>>,
    tables: Vec<Vec<usize>>,
    sargs: Vec<Sarg>,
}

impl Pool {
    fn new(conditions: Vec<Expr>) -> Pool {
        let mut sargs = Vec::new();
        let mut tables = Vec::new();
        for (number, condition) in conditions.iter().enumerate() {
            condition::sargs(condition, number, &mut sargs);
            tables.push(tables_of(condition));
        }
        Pool { conditions: conditions.into_iter().map(Some).collect(), tables, sargs }
    }

    /// Conditions on a table whose values are known when `placed` is.
    fn sargs_of(&self, table: usize, placed: &[usize]) -> Vec<&Sarg> {
        self.sargs
            .iter()
            .filter(|s| s.table == table && s.needs.iter().all(|t| placed.contains(t)))
            .filter(|s| self.conditions[s.conjunct].is_some())
            .collect()
    }

    /// How many conditions can be checked first when `table` joins `placed`.
    fn checked_at(&self, table: usize, placed: &[usize]) -> usize {
        (0..self.conditions.len())
            .filter(|&i| {
                self.conditions[i].is_some()
                    && self.tables[i].contains(&table)
                    && self.tables[i].iter().all(|t| *t == table || placed.contains(t))
            })
            .count()
    }

    /// Takes out the conditions whose tables are all there, with their numbers.
    fn take(&mut self, placed: &[usize]) -> Vec<(usize, Expr)> {
        let mut out = Vec::new();
        for i in 0..self.conditions.len() {
            if self.tables[i].iter().all(|t| placed.contains(t))
                && !self.tables[i].is_empty()
                && let Some(condition) = self.conditions[i].take()
            {
                out.push((i, condition));
            }
        }
        out
    }

    fn take_all(&mut self) -> Vec<Expr> {
        self.conditions.iter_mut().filter_map(Option::take).collect()
    }
}

struct Builder<'a> {
    sources: &'a [Source],
    database: &'a Database,
    keep_order: bool,
    wanted: Option<WantedOrder>,
    locks: &'a [Lock],
    placed: Vec<usize>,
    steps: Vec<Step>,
    groups: usize,
    ordered: bool,
}

impl Builder<'_> {
    /// Places the inner tables of a block, then its outer join groups.
    fn block(&mut self, items: &[Item], pool: &mut Pool, top: bool) {
        let inner: Vec<usize> = items
            .iter()
            .filter_map(|i| match i {
                Item::Table(table) => Some(*table),
                Item::Outer { .. } => None,
            })
            .collect();
        let order = self.order(&inner, pool);
        for (position, table) in order.into_iter().enumerate() {
            let first = top && position == 0 && self.placed.is_empty();
            let chosen = self.choose(table, pool, first);
            if first {
                self.ordered = chosen.ordered && self.wanted.is_some();
            }
            self.level(table, chosen, pool);
        }
        for item in items {
            let Item::Outer { items, on } = item else { continue };
            let group = self.groups;
            self.groups += 1;
            let mut tables = Vec::new();
            item.tables(&mut tables);
            let enter = self.steps.len();
            self.steps.push(Step::Enter { group, leave: 0, tables });
            let mut inner_pool = Pool::new(on.clone());
            self.block(items, &mut inner_pool, false);
            let rest = inner_pool.take_all();
            if !rest.is_empty() {
                match self.steps.last_mut() {
                    Some(Step::Scan(level)) => level.check(rest),
                    Some(Step::Leave { filters, .. }) => filters.extend(rest),
                    _ => unreachable!("a group has a table"),
                }
            }
            let filters = pool.take(&self.placed).into_iter().map(|(_, c)| c).collect();
            let leave_at = self.steps.len();
            self.steps.push(Step::Leave { group, filters });
            if let Step::Enter { leave, .. } = &mut self.steps[enter] {
                *leave = leave_at;
            }
        }
    }

    fn choose(&self, table: usize, pool: &Pool, first: bool) -> Chosen {
        self.choose_after(table, pool, &self.placed, first)
    }

    fn choose_after(&self, table: usize, pool: &Pool, placed: &[usize], first: bool) -> Chosen {
        let sargs = pool.sargs_of(table, placed);
        let wanted = self
            .wanted
            .as_ref()
            .filter(|w| first && w.table == table)
            .map(|w| Wanted { order: &w.order, limit: w.limit });
        choose(&self.sources[table], &sargs, pool.checked_at(table, placed), wanted.as_ref(), self.database)
    }

    /// The cheapest order of inner tables.
    fn order(&self, inner: &[usize], pool: &Pool) -> Vec<usize> {
        if inner.len() < 2 || self.keep_order {
            return inner.to_vec();
        }
        let mut search = Search { best: inner.to_vec(), best_cost: f64::INFINITY };
        self.search(&mut search, pool, &mut Vec::new(), inner, 0.0, 1.0, false);
        search.best
    }

    #[allow(clippy::too_many_arguments)]
    fn search(
        &self,
        search: &mut Search,
        pool: &Pool,
        taken: &mut Vec<usize>,
        inner: &[usize],
        cost: f64,
        rows: f64,
        ordered: bool,
    ) {
        if taken.len() == inner.len() {
            let unsorted = self.wanted.as_ref().is_some_and(|w| inner.contains(&w.table)) && !ordered;
            let total = cost + if unsorted { sort_cost(rows) } else { 0.0 };
            if total < search.best_cost {
                search.best_cost = total;
                search.best = taken.clone();
            }
            return;
        }
        let placed: Vec<usize> = self.placed.iter().chain(taken.iter()).copied().collect();
        let mut next: Vec<(f64, f64, usize, bool)> = Vec::new();
        for &table in inner.iter().filter(|t| !taken.contains(t)) {
            let chosen = self.choose_after(table, pool, &placed, placed.is_empty());
            let buffered = matches!(chosen.access, Access::Full { .. } | Access::Virtual { .. }) && !placed.is_empty();
            let step = if buffered {
                // Read once; then a probe or a loop in memory for each row so far.
                chosen.cost
                    + rows * if self.hash_join(table, pool, &placed).is_some() { 0.5 } else { chosen.rows * 0.2 }
            } else {
                rows * chosen.cost
            };
            next.push((step, rows * chosen.kept, table, placed.is_empty() && chosen.ordered));
        }
        // Least added cost first, then fewest rows, then as written: the bound then cuts most.
        next.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        if inner.len() > MAX_EXHAUSTIVE {
            next.truncate(1);
        }
        for (step, kept, table, in_order) in next {
            if cost + step >= search.best_cost {
                continue;
            }
            taken.push(table);
            self.search(search, pool, taken, inner, cost + step, kept, ordered || in_order);
            taken.pop();
        }
    }

    /// Equalities of this table with the ones before it.
    fn hash_join(&self, table: usize, pool: &Pool, placed: &[usize]) -> Option<HashJoin> {
        let mut out = HashJoin { inner: vec![], outer: vec![], classes: vec![] };
        for condition in pool.conditions.iter().flatten() {
            let Some((left, right, class)) = condition::equality(condition) else { continue };
            let (left_tables, right_tables) = (tables_of(left), tables_of(right));
            let known = |tables: &[usize]| !tables.is_empty() && tables.iter().all(|t| placed.contains(t));
            let (inner, outer) = if left_tables == [table] && known(&right_tables) {
                (left, right)
            } else if right_tables == [table] && known(&left_tables) {
                (right, left)
            } else {
                continue;
            };
            out.inner.push(inner.clone());
            out.outer.push(outer.clone());
            out.classes.push(class);
        }
        (!out.inner.is_empty()).then_some(out)
    }

    fn level(&mut self, table: usize, chosen: Chosen, pool: &mut Pool) {
        let buffered = !self.steps.is_empty()
            && match chosen.access {
                Access::Rows => true,
                Access::Full { .. } | Access::Virtual { .. } => self.locks[table].is_none(),
                _ => false,
            };
        let hash = if buffered { self.hash_join(table, pool, &self.placed) } else { None };
        self.placed.push(table);
        let mut taken = pool.take(&self.placed);
        let used_where = !taken.is_empty();
        taken.retain(|(number, _)| !chosen.covers.contains(number));
        let conditions = taken.into_iter().map(|(_, condition)| condition);
        let (late_filters, filters): (Vec<Expr>, Vec<Expr>) = conditions.partition(Expr::has_subquery);
        let own_filters = filters.iter().filter(|f| tables_of(f) == [table]).cloned().collect();
        self.steps.push(Step::Scan(Box::new(Level {
            table,
            used_where: used_where && !(filters.is_empty() && late_filters.is_empty()),
            filtered: (chosen.kept / chosen.rows.max(1.0) * 100.0).clamp(0.0, 100.0),
            rows: chosen.rows.round().max(1.0) as u64,
            access: chosen.access,
            own_filters,
            late_filters,
            filters,
            hash,
            buffered,
            lock: self.locks[table],
            changed: false,
            possible: chosen.possible,
            partitions: self.database.partition_count(),
        })));
    }
}

impl Level {
    /// Adds conditions that are checked on each row.
    fn check(&mut self, conditions: Vec<Expr>) {
        let (late, filters): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(Expr::has_subquery);
        self.late_filters.extend(late);
        self.filters.extend(filters);
    }
}

struct Search {
    best: Vec<usize>,
    best_cost: f64,
}

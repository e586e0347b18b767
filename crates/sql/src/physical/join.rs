//! The order of tables, and the steps of nested loops.
//!
//! Inner tables may be read in any order (see `order`). Outer join groups follow the inner tables beside them, in the order written, since their null rows depend on all of these; a group
//! whose null rows some condition rejects anyway is an inner join and moves freely. Every condition is checked as soon as its tables are
//! there; conditions of WHERE on a group's tables wait until the group is complete.
//!
//! A semi or anti join is tested as soon as the tables are there that its conditions read, so that its loops run for few rows
//! and what follows runs for fewer; but behind tables that drop rows at less cost. A condition with a subquery that is run for
//! each row waits for such tables too. The inner tables of a semi or anti join are reached by an index, or read once and probed by hash, whichever costs less for the rows that are expected before it.
//!
//! A table that no index reaches is read once into memory and probed by hash where an equality joins it, else looped over. One
//! that an index reaches is read so too where that costs less than an index lookup for each row before it.

use super::access::{Chosen, Table, Wanted, choose};
use super::condition::{self, Sarg, tables_of};
use super::cost::{BUILD, Estimate, Inner, MOST_BUILT, PROBE};
use super::covering;
use super::equal::Classes;
use super::model::{Access, HashJoin, Level, Source, Step};
use super::order;
use super::prune::Prune;
use super::skip::Groups;
use crate::expr::{Expr, Switches};
use rauk_node::Database;
use rauk_node::transaction::Lock;
use std::cell::Cell;
use std::sync::Arc;

/// From this cost on planning costs little beside running.
const DEAR: f64 = 5_000.0;
/// What a semi or anti join is thought to leave.
const TEST_SELECTIVITY: f64 = 0.5;

/// A table, or the inner side of an outer join.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Table(usize),
    Outer {
        items: Vec<Item>,
        on: Vec<Expr>,
    },
    /// The inner side of a semi or anti join.
    Test {
        items: Vec<Item>,
        on: Vec<Expr>,
        anti: bool,
    },
}

impl Item {
    pub fn tables(&self, out: &mut Vec<usize>) {
        match self {
            Item::Table(table) => out.push(*table),
            Item::Outer { items, .. } | Item::Test { items, .. } => items.iter().for_each(|i| i.tables(out)),
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
    /// It costs much, and the values of parameters would have said more of it.
    pub by_values: bool,
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
    /// Of a block with one table: what it reads where equal rows count once.
    pub equal_rows: Option<Groups>,
    /// The columns of each table that the block reads, but for its conditions.
    pub read: &'a [Vec<usize>],
    /// How each table's rows are locked.
    pub locks: &'a [Lock],
    pub switches: Switches,
    pub database: &'a Database,
}

pub(crate) fn plan_join(input: JoinInput<'_>) -> JoinPlan {
    let JoinInput {
        sources,
        mut items,
        mut conditions,
        keep_order,
        wanted,
        equal_rows,
        read,
        locks,
        switches,
        database,
    } = input;
    simplify_outer(&mut items, &mut conditions);
    let mut once = Vec::new();
    conditions.retain(|c| {
        let now = c.is_constant();
        if now {
            once.push(c.clone());
        }
        !now
    });
    // What reads no column and changes from row to row is checked on each row.
    let equal_rows = equal_rows.filter(|_| conditions.iter().all(|condition| !tables_of(condition).is_empty()));
    let mut builder = Builder {
        sources,
        database,
        keep_order,
        wanted,
        equal_rows,
        read,
        locks,
        switches,
        placed: vec![],
        steps: vec![],
        groups: 0,
        ordered: false,
        rows: 1.0,
        testing: false,
        by_values: Cell::new(false),
    };
    let mut pool = Pool::new(conditions);
    builder.block(&items, &mut pool, true);
    let rest = pool.take_all();
    if !rest.is_empty() {
        // Conditions that read nothing yet change from row to row, like RAND(): with the last row, or once where there is no table.
        match builder.steps.is_empty() {
            true => once.extend(rest),
            false => builder.check_last(rest),
        }
    }
    let mut steps = builder.steps;
    covering::cover(&mut steps, sources, read);
    let mut estimate = Estimate::new();
    steps.iter().for_each(|step| estimate.step(step));
    let by_values = builder.by_values.get() && estimate.cost >= DEAR;
    JoinPlan { steps, once, ordered: builder.ordered, outer_groups: builder.groups, by_values }
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
            Item::Table(_) | Item::Test { .. } => false,
        });
        let Some(found) = found else { break };
        let Item::Outer { items: inner, on } = items.remove(found) else { unreachable!("found as an outer join") };
        for (offset, item) in inner.into_iter().enumerate() {
            items.insert(found + offset, item);
        }
        conditions.extend(on);
    }
    for item in items {
        if let Item::Outer { items, on } | Item::Test { items, on, .. } = item {
            simplify_outer(items, on);
        }
    }
}

/// The tables of a group that are not in a group inside it.
fn direct_tables(item: &Item, out: &mut Vec<usize>) {
    if let Item::Outer { items, .. } = item {
        out.extend(items.iter().filter_map(|i| match i {
            Item::Table(table) => Some(*table),
            Item::Outer { .. } | Item::Test { .. } => None,
        }));
    }
}

/// Adds what hints ask for, unless tables would wait for each other.
fn with_hints(needs: Vec<u128>, hints: impl Iterator<Item = u128>) -> Vec<u128> {
    let both: Vec<u128> = needs.iter().zip(hints).map(|(needs, hint)| needs | hint).collect();
    let mut taken = 0u128;
    for _ in 0..both.len() {
        for (at, needs) in both.iter().enumerate() {
            if needs & !taken == 0 {
                taken |= 1 << at;
            }
        }
    }
    if taken.count_ones() as usize == both.len() { both } else { needs }
}

/// The conjuncts of one block, with what an index could use of them.
struct Pool {
    conditions: Vec<Option<Expr>>,
    tables: Vec<Vec<usize>>,
    sargs: Vec<Sarg>,
    classes: Classes,
}

impl Pool {
    fn new(mut conditions: Vec<Expr>) -> Pool {
        let classes = Classes::new(&mut conditions);
        let mut sargs = Vec::new();
        let mut tables = Vec::new();
        for (number, condition) in conditions.iter().enumerate() {
            condition::sargs(condition, number, &mut sargs);
            tables.push(tables_of(condition));
        }
        Pool { conditions: conditions.into_iter().map(Some).collect(), tables, sargs, classes }
    }

    /// Conditions on a table whose values are known when `placed` is.
    fn sargs_of(&self, table: usize, placed: &[usize]) -> Vec<&Sarg> {
        let mut first = self.first_of_column(table);
        self.sargs
            .iter()
            .filter(|s| s.table == table && s.needs.iter().all(|t| placed.contains(t)))
            .filter(|s| self.conditions[s.conjunct].is_some())
            .filter(|s| first(s.conjunct))
            .collect()
    }

    /// Of conditions that say the same of a table, since their other columns are equal: whether it is the first one.
    fn first_of_column(&self, table: usize) -> impl FnMut(usize) -> bool {
        let mut met: Vec<usize> = Vec::new();
        move |condition| match self.classes.column_of(condition, table) {
            Some(column) if met.contains(&column) => false,
            Some(column) => {
                met.push(column);
                true
            }
            None => true,
        }
    }

    /// The tables that a table has conditions with.
    fn related(&self, table: usize) -> Vec<usize> {
        let of =
            self.tables.iter().zip(&self.conditions).filter(|(tables, of)| of.is_some() && tables.contains(&table));
        of.flat_map(|(tables, _)| tables.iter().copied()).filter(|other| *other != table).collect()
    }

    /// The conditions, with their numbers, that can be checked first when `table` joins `placed`.
    fn checked_at(&self, table: usize, placed: &[usize]) -> Vec<(usize, &Expr)> {
        let known = |tables: &[usize]| {
            tables.contains(&table) && tables.iter().all(|other| *other == table || placed.contains(other))
        };
        let mut first = self.first_of_column(table);
        let conditions = self.conditions.iter().enumerate().filter(|(number, _)| known(&self.tables[*number]));
        let conditions = conditions.filter_map(|(number, condition)| Some((number, condition.as_ref()?)));
        conditions.filter(|(number, _)| first(*number)).collect()
    }

    /// Takes out the conditions whose tables are all there, and gives those that must be checked: not those of which an access
    /// path makes sure (`covers`), nor those that follow. `wait`: those stay that run a subquery for each row.
    fn take(&mut self, placed: &[usize], covers: &[usize], wait: bool) -> Taken {
        covers.iter().for_each(|&number| _ = self.classes.connect(number));
        let mut out = Taken { any: false, conditions: vec![] };
        for i in 0..self.conditions.len() {
            if self.tables[i].iter().all(|t| placed.contains(t))
                && !self.tables[i].is_empty()
                && let Some(condition) = self.conditions[i].take_if(|condition| !(wait && condition.reads_around()))
            {
                out.any = true;
                if !covers.contains(&i) && self.classes.connect(i) {
                    out.conditions.push(condition);
                }
            }
        }
        out
    }

    fn take_all(&mut self) -> Vec<Expr> {
        self.conditions.iter_mut().filter_map(Option::take).collect()
    }
}

/// Conditions that were taken out of a pool.
struct Taken {
    /// There were some.
    any: bool,
    /// Those that must be checked.
    conditions: Vec<Expr>,
}

struct Builder<'a> {
    sources: &'a [Source],
    database: &'a Database,
    keep_order: bool,
    wanted: Option<WantedOrder>,
    equal_rows: Option<Groups>,
    read: &'a [Vec<usize>],
    locks: &'a [Lock],
    switches: Switches,
    placed: Vec<usize>,
    steps: Vec<Step>,
    groups: usize,
    ordered: bool,
    /// Rows that are expected when the next step begins.
    rows: f64,
    /// Inside of a semi or anti join.
    testing: bool,
    by_values: Cell<bool>,
}

impl Builder<'_> {
    /// The tables that must be there before this part of FROM is read.
    fn needs(&self, item: &Item) -> Vec<usize> {
        let mut needs = Vec::new();
        let mut own = Vec::new();
        item.tables(&mut own);
        for &table in &own {
            let lateral = self.sources[table].lateral();
            lateral.iter().flat_map(|lateral| &lateral.outer).for_each(|outer| needs.extend(tables_of(outer)));
        }
        let mut pending = vec![item];
        while let Some(Item::Outer { items, on } | Item::Test { items, on, .. }) = pending.pop() {
            on.iter().for_each(|condition| needs.extend(tables_of(condition)));
            pending.extend(items.iter().filter(|item| !matches!(item, Item::Table(_))));
        }
        needs.retain(|table| !own.contains(table));
        needs
    }

    fn is_ready(&self, item: &Item, taken: &[usize]) -> bool {
        self.needs(item).iter().all(|table| self.placed.contains(table) || taken.contains(table))
    }

    /// Places the inner tables of a block, then its outer join groups; semi and anti joins as soon as they can be. A lateral table comes behind those that it
    /// reads, which may be of outer join groups.
    fn block(&mut self, items: &[Item], pool: &mut Pool, top: bool) {
        let mut left: Vec<&Item> = items.iter().collect();
        while !left.is_empty() {
            let before = left.len();
            let mut inner: Vec<usize> = Vec::new();
            for item in &left {
                if let Item::Table(table) = item
                    && self.is_ready(item, &inner)
                {
                    inner.push(*table);
                }
            }
            left.retain(|item| !matches!(item, Item::Table(table) if inner.contains(table)));
            let order = self.order(&inner, pool);
            for (at, &table) in order.iter().enumerate() {
                let first = top && self.placed.is_empty();
                let chosen = self.choose(table, pool, first);
                if first {
                    self.ordered = chosen.ordered && self.wanted.is_some();
                }
                let next = order.get(at + 1).copied();
                self.level(table, chosen, next, pool);
                let next = next.map(|next| self.choose(next, pool, false));
                self.tests(&mut left, next.as_ref());
            }
            let next = left.iter().position(|item| matches!(item, Item::Outer { .. }) && self.is_ready(item, &[]));
            if let Some(Item::Outer { items, on }) = next.map(|next| left.remove(next)) {
                self.outer_group(items, on, pool);
                self.tests(&mut left, None);
            }
            assert!(left.len() < before, "a table stands behind those that it reads");
        }
    }

    fn outer_group(&mut self, items: &[Item], on: &[Expr], pool: &mut Pool) {
        let group = self.groups;
        self.groups += 1;
        let mut tables = Vec::new();
        items.iter().for_each(|item| item.tables(&mut tables));
        let enter = self.steps.len();
        self.steps.push(Step::Enter { group, leave: 0, tables });
        let mut inner_pool = Pool::new(on.to_vec());
        self.block(items, &mut inner_pool, false);
        let rest = inner_pool.take_all();
        self.check_last(rest);
        let filters = pool.take(&self.placed, &[], false).conditions;
        let leave_at = self.steps.len();
        self.steps.push(Step::Leave { group, filters });
        if let Step::Enter { leave, .. } = &mut self.steps[enter] {
            *leave = leave_at;
        }
    }

    /// Places the semi and anti joins whose tables are there, but those that cost more for each row that they drop than `next`
    /// does, the table to be read next.
    fn tests(&mut self, left: &mut Vec<&Item>, next: Option<&Chosen>) {
        let ready = |item: &Item, builder: &Self| match item {
            Item::Test { items, on, .. } => builder.is_ready(item, &[]) && !builder.is_dearer(items, on, next),
            _ => false,
        };
        while let Some(at) = left.iter().position(|item| ready(item, self)) {
            let Item::Test { items, on, anti } = left.remove(at) else { unreachable!("found as a semi or anti join") };
            self.test(items, on, *anti);
        }
    }

    /// Whether a semi or anti join should wait for a table that drops rows at less cost.
    fn is_dearer(&self, items: &[Item], on: &[Expr], next: Option<&Chosen>) -> bool {
        let Some(next) = next.filter(|next| next.kept < 1.0) else { return false };
        let Some(Item::Table(table)) = items.iter().find(|item| matches!(item, Item::Table(_))) else { return false };
        let pool = Pool::new(on.to_vec());
        let chosen = self.choose_after(*table, &pool, &self.placed, false);
        let probed = self.probed(*table, &pool, &chosen).is_some() || self.is_read_once(*table, &chosen.access);
        let cost = if probed { PROBE } else { chosen.cost };
        next.cost / (1.0 - next.kept) < cost / (1.0 - TEST_SELECTIVITY)
    }

    fn test(&mut self, items: &[Item], on: &[Expr], anti: bool) {
        let group = self.groups;
        self.groups += 1;
        let begin = self.steps.len();
        let (placed, rows) = (self.placed.len(), self.rows);
        let testing = std::mem::replace(&mut self.testing, true);
        self.steps.push(Step::Test { group, anti, end: 0 });
        let mut pool = Pool::new(on.to_vec());
        self.block(items, &mut pool, false);
        self.check_last(pool.take_all());
        let match_at = self.steps.len();
        // Steps before the match that only close outer joins, and ask no query.
        let quiet = |step: &Step| match step {
            Step::Leave { filters, .. } => !filters.iter().any(Expr::has_subquery),
            _ => false,
        };
        let last = self.steps.iter().rposition(|step| !quiet(step));
        if let Some(Step::Scan(level)) = last.map(|last| &mut self.steps[last]) {
            level.ends_match = level.late_filters.is_empty();
            if last == Some(match_at - 1) {
                level.keep_keys();
            }
        }
        self.steps.push(Step::Match { group });
        if let Step::Test { end, .. } = &mut self.steps[begin] {
            *end = match_at;
        }
        self.testing = testing;
        self.placed.truncate(placed);
        self.rows = (rows * TEST_SELECTIVITY).max(1.0);
    }

    /// Checks conditions on each row that the steps so far give.
    fn check_last(&mut self, conditions: Vec<Expr>) {
        if conditions.is_empty() {
            return;
        }
        let mut at = self.steps.len() - 1;
        // Not on the rows of a semi join, of which one is enough.
        while let Step::Match { group } = self.steps[at] {
            let begins = |step: &Step| matches!(step, Step::Test { group: of, .. } if *of == group);
            let begin = self.steps.iter().position(begins).expect("a semi join begins before it ends");
            at = begin.checked_sub(1).expect("a semi join follows a table");
        }
        match &mut self.steps[at] {
            Step::Scan(level) => level.check(conditions),
            Step::Leave { filters, .. } => filters.extend(conditions),
            _ => unreachable!("a group has a table"),
        }
    }

    fn table<'t>(&'t self, number: usize, read: &'t [usize]) -> Table<'t> {
        Table {
            number,
            source: &self.sources[number],
            joins: self.sources.len() > 1,
            by_values: &self.by_values,
            plain: self.locks[number].is_none(),
            read,
            switches: self.switches,
            groups: self.equal_rows.as_ref(),
        }
    }

    /// Columns of a table that are read behind the conditions that are checked on its rows.
    fn read_later(&self, table: usize, pool: &Pool, checked: &[(usize, &Expr)]) -> Vec<usize> {
        let mut read = self.read[table].clone();
        if self.locks[table].is_some() {
            return read;
        }
        for (number, condition) in pool.conditions.iter().enumerate() {
            let Some(condition) = condition else { continue };
            if pool.tables[number].contains(&table) && checked.iter().all(|(of, _)| *of != number) {
                condition.for_each_column(&mut |of, column| {
                    if of == table {
                        read.push(column);
                    }
                });
            }
        }
        read
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
        let conditions = pool.checked_at(table, placed);
        let read = self.read_later(table, pool, &conditions);
        choose(&self.table(table, &read), &sargs, &conditions, wanted.as_ref(), self.database)
    }

    /// The order of inner tables.
    fn order(&self, inner: &[usize], pool: &Pool) -> Vec<usize> {
        if inner.len() < 2 || self.keep_order {
            return inner.to_vec();
        }
        let bit = |table: usize| inner.iter().position(|of| *of == table).map_or(0, |at| 1u128 << at);
        let bits = |tables: &[usize]| tables.iter().fold(0, |set, table| set | bit(*table));
        let needs: Vec<u128> = inner.iter().map(|table| bits(&self.needs(&Item::Table(*table)))).collect();
        let needs = with_hints(needs, inner.iter().map(|table| bits(&self.sources[*table].follows)));
        let related: Vec<u128> = inner.iter().map(|table| bits(&pool.related(*table))).collect();
        let wanted = self.wanted.as_ref().filter(|_| self.placed.is_empty());
        let tables = order::Tables {
            needs: &needs,
            related: &related,
            rows: self.rows,
            wanted: wanted.and_then(|wanted| inner.iter().position(|table| *table == wanted.table)),
        };
        let mut ask = |at: usize, before: u128, first: bool| {
            let table = inner[at];
            let taken = (0..inner.len()).filter(|other| before & (1 << other) != 0).map(|other| inner[other]);
            let placed: Vec<usize> = self.placed.iter().copied().chain(taken).collect();
            let first = first && placed.is_empty();
            let chosen = self.choose_after(table, pool, &placed, first);
            let inner = match !first && self.is_read_once(table, &chosen.access) {
                false => Inner::Each,
                true if self.hash_join(table, pool, &placed).is_some() => Inner::Probed,
                true => Inner::Looped,
            };
            let once = self.once(table, pool, &placed, &chosen).filter(|_| !first).map(|(_, cost)| cost);
            let (cost, rows, kept) = (chosen.cost, chosen.rows, chosen.kept);
            order::Path { cost, rows, kept, inner, once, ordered: first && chosen.ordered }
        };
        order::search(&tables, &mut ask).into_iter().map(|at| inner[at]).collect()
    }

    /// Whether the rows of an inner table are kept in memory.
    fn is_read_once(&self, table: usize, access: &Access) -> bool {
        match access {
            Access::Rows => self.sources[table].lateral().is_none(),
            Access::Virtual { .. } => self.locks[table].is_none(),
            Access::Full { .. } => self.locks[table].is_none() && self.buffers(table),
            _ => false,
        }
    }

    /// Whether optimizer_switch and hints let the rows of a table be kept in memory.
    fn buffers(&self, table: usize) -> bool {
        self.sources[table].join_hints.buffer.unwrap_or(self.switches.block_nested_loop())
    }

    /// Whether they let them be probed by hash.
    fn hashes(&self, table: usize) -> bool {
        self.buffers(table) && self.sources[table].join_hints.hash.unwrap_or(self.switches.hash_join())
    }

    /// Equalities of this table with the ones before it, for a hash join.
    fn hash_join(&self, table: usize, pool: &Pool, placed: &[usize]) -> Option<HashJoin> {
        // A semi or anti join is another matter.
        if self.testing || self.hashes(table) { self.equalities(table, pool, placed) } else { None }
    }

    fn equalities(&self, table: usize, pool: &Pool, placed: &[usize]) -> Option<HashJoin> {
        let mut out = HashJoin { inner: vec![], outer: vec![], classes: vec![] };
        let mut first = pool.first_of_column(table);
        for (number, condition) in pool.conditions.iter().enumerate() {
            let Some(condition) = condition else { continue };
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
            if !first(number) {
                continue;
            }
            out.inner.push(inner.clone());
            out.outer.push(outer.clone());
            out.classes.push(class);
        }
        (!out.inner.is_empty()).then_some(out)
    }

    /// Of a table that an index reaches, behind others: its own access path to read it once and to probe it by hash, and
    /// what it costs until then.
    fn once(&self, table: usize, pool: &Pool, placed: &[usize], chosen: &Chosen) -> Option<(Chosen, f64)> {
        let indexed =
            !matches!(chosen.access, Access::Full { .. } | Access::Skip(_) | Access::Virtual { .. } | Access::Rows);
        let hints = self.sources[table].join_hints;
        let allowed = match self.testing {
            true => hints.materialization.unwrap_or(self.switches.materialization()),
            false => self.hashes(table),
        };
        if placed.is_empty() || !indexed || !allowed || self.locks[table].is_some() {
            return None;
        }
        self.equalities(table, pool, placed)?;
        let conditions = pool.checked_at(table, &[]);
        let read = self.read_later(table, pool, &conditions);
        let own = choose(&self.table(table, &read), &pool.sargs_of(table, &[]), &conditions, None, self.database);
        let (built, forced) = match self.testing {
            // Often the keys are enough.
            true => (0.0, !hints.first_match.unwrap_or(self.switches.first_match())),
            false => (own.kept, hints.hash == Some(true)),
        };
        let cost = if forced { 0.0 } else { own.cost + built * BUILD };
        // What is left does not depend on the way to it.
        (forced || built <= MOST_BUILT).then_some((Chosen { kept: chosen.kept, ..own }, cost))
    }

    /// The access path to read a table once, when that costs less than its index for each row before it.
    fn probed(&self, table: usize, pool: &Pool, chosen: &Chosen) -> Option<Chosen> {
        let (own, cost) = self.once(table, pool, &self.placed, chosen)?;
        (cost + self.rows * PROBE < self.rows * chosen.cost).then_some(own)
    }

    /// Places a table; `next`: the one that will be read behind it.
    fn level(&mut self, table: usize, chosen: Chosen, next: Option<usize>, pool: &mut Pool) {
        let probed = self.probed(table, pool, &chosen);
        let read_once = probed.is_some();
        let chosen = probed.unwrap_or(chosen);
        let buffered = read_once || !self.steps.is_empty() && self.is_read_once(table, &chosen.access);
        let mut chosen = chosen;
        if buffered && let Access::Full { distribution } = &mut chosen.access {
            // It is read before the tables that would say which partition.
            distribution.take_if(|key| key.values.iter().any(|value| !tables_of(value).is_empty()));
        }
        let hash = if buffered { self.hash_join(table, pool, &self.placed) } else { None };
        let known: &[usize] = if buffered { &[] } else { &self.placed };
        let prune = Prune::of(&self.sources[table], &pool.sargs_of(table, known));
        self.placed.push(table);
        self.rows = (self.rows * chosen.kept).max(1.0);
        // A subquery for each row waits until the next table has dropped some.
        let wait = next.is_some_and(|next| self.choose(next, pool, false).kept < 1.0);
        let Taken { any: used_where, conditions } = pool.take(&self.placed, &chosen.covers, wait);
        let (late_filters, filters): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(Expr::has_subquery);
        let own_filters = filters.iter().filter(|f| tables_of(f) == [table]).cloned().collect();
        self.steps.push(Step::Scan(Box::new(Level {
            table,
            used_where: used_where && !(filters.is_empty() && late_filters.is_empty()),
            filtered: (chosen.kept / chosen.rows.max(1.0) * 100.0).clamp(0.0, 100.0),
            rows: chosen.rows.round().max(1.0) as u64,
            cost: chosen.cost,
            covering: None,
            unread: Arc::default(),
            access: chosen.access,
            own_filters,
            late_filters,
            filters,
            hash,
            buffered,
            ends_match: false,
            keys_only: None,
            lock: self.locks[table],
            changed: false,
            key_order: false,
            possible: chosen.possible,
            partitions: self.database.partition_count(),
            prune,
        })));
    }
}

impl Level {
    /// Of the last table of a semi or anti join: finds out whether keys are enough.
    fn keep_keys(&mut self) {
        let Some(hash) = &self.hash else { return };
        let mut others = Vec::new();
        for filter in &self.filters {
            let tables = tables_of(filter);
            let equality = condition::equality(filter).is_some_and(|(left, right, _)| {
                let sides = hash.inner.iter().zip(&hash.outer);
                sides.into_iter().any(|(i, o)| (i, o) == (left, right) || (i, o) == (right, left))
            });
            if !tables.contains(&self.table) {
                others.push(filter.clone());
            } else if !equality && tables != [self.table] {
                return;
            }
        }
        if self.ends_match && self.buffered {
            self.keys_only = Some(others);
        }
    }

    /// Adds conditions that are checked on each row.
    fn check(&mut self, conditions: Vec<Expr>) {
        let (late, filters): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(Expr::has_subquery);
        self.late_filters.extend(late);
        self.filters.extend(filters);
    }
}

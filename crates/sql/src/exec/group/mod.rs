//! GROUP BY and aggregates.
//!
//! Groups are found by the memcomparable key of the grouped values and come out in key order, whatever order the rows had. A group keeps the
//! columns that later expressions read from its first row. Without GROUP BY there is exactly one group, even of no rows.
//!
//! WITH ROLLUP makes groups of super-aggregate rows beside the others: for a key (a, b) one of all rows with that a, and one of all rows. A group knows
//! the one above it, so a row is looked up once and goes to its group and to all above. The key of a super-aggregate is the beginning that
//! its rows share and a byte that no value begins with, higher than all of these: it comes behind the groups it sums up. No rows at all give the
//! row of the total, as in MySQL 8.
//!
//! ```text
//! state    one aggregate of one group; DISTINCT
//! number   sums, averages, variances, bits
//! extreme  MIN and MAX
//! concat   GROUP_CONCAT
//! json     JSON_ARRAYAGG and JSON_OBJECTAGG
//! ```

mod concat;
mod extreme;
mod json;
mod number;
mod state;

pub(super) use number::{Sum, number};
pub(super) use state::State;

use super::output::with_value;
use super::row::GroupRow;
use super::sort::sort_in_runs;
use crate::expr::value_key::{append_key, shown};
use crate::expr::{Aggregate, Columns, Context};
use crate::hash::hash_of;
use crate::memory::{Memory, values_bytes};
use crate::parse::statement::Scope;
use crate::physical::model::Grouping;
use hashbrown::HashTable;
use rauk_types::{DataType, MysqlError, Value, ValueRef};
use rauk_wire::WireError;
use rauk_wire::read::Reader;
use smallvec::SmallVec;

pub(crate) struct Grouper<'a> {
    grouping: &'a Grouping,
    /// A lone MIN or MAX in index order: the first value is the answer.
    first_row_only: bool,
    groups: Vec<Group>,
    /// The aggregates of the first group, of the second one, and so on.
    states: Vec<State>,
    /// A part of each key's hash and the group's number. The hash is kept, so that the table grows without a look at the keys.
    by_key: HashTable<(u32, u32)>,
    memory: Memory,
    key: Vec<u8>,
    /// Of ROLLUP: where each key ends in `key`, and the keys themselves.
    ends: Vec<usize>,
    keys: Vec<Value>,
    concat_limit: usize,
}

/// A hash of all bits, of which the table takes both ends.
fn spread(short: u32) -> u64 {
    u64::from(short).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// A key as it is read above the grouping: a DECIMAL has the digits that it shows.
fn shown_value(value: ValueRef<'_>, ty: &DataType) -> Value {
    match value {
        ValueRef::Decimal(decimal) => Value::Decimal(shown(decimal, ty)),
        value => value.to_owned(),
    }
}

/// Groups that are finished between two looks at KILL.
const LOOK_GROUPS: usize = 4096;

/// Ends the key of a super-aggregate. Values begin with 0 (NULL) and 1.
const BEHIND_ALL: u8 = 0xFF;

/// The key of two numbers lies in the group itself.
struct Group {
    key: SmallVec<[u8; 24]>,
    /// The carried columns of the first row, and its keys that are kept.
    values: Vec<Value>,
    /// How many keys its rows share: all of them but in a super-aggregate.
    shared: u32,
    /// The super-aggregate that it is a part of.
    above: Option<u32>,
}

impl Group {
    /// What it takes, its place in the tables included.
    fn bytes(&self, aggregates: usize) -> usize {
        // Tables have up to twice as many places as entries.
        let key = if self.key.spilled() { self.key.capacity() } else { 0 };
        (size_of::<Group>() + aggregates * size_of::<State>()) * 2 + key + values_bytes(&self.values) + 16
    }
}

impl<'a> Grouper<'a> {
    pub fn new(grouping: &'a Grouping, first_row_only: bool, memory: Memory, context: &Context) -> Self {
        let concat_limit = match context.variables.get(Scope::Default, "group_concat_max_len") {
            Ok(Value::Int(v)) => v.max(4) as usize,
            Ok(Value::UInt(v)) => v as usize,
            _ => 1024,
        };
        let concat_limit = concat_limit.min(context.max_allowed_packet);
        Grouper {
            grouping,
            first_row_only,
            groups: Vec::new(),
            states: Vec::new(),
            by_key: HashTable::new(),
            memory,
            key: Vec::new(),
            ends: Vec::new(),
            keys: Vec::new(),
            concat_limit,
        }
    }

    /// Takes a row; `true`: no more are needed.
    pub fn push(&mut self, row: &dyn Columns, context: &mut Context) -> Result<bool, MysqlError> {
        let grouping = self.grouping;
        let number = self.group_of(row, context)?;
        let mut at = Some(number as u32);
        while let Some(number) = at {
            let first = number as usize * grouping.aggregates.len();
            for (state, aggregate) in self.states[first..].iter_mut().zip(&grouping.aggregates) {
                state.push(aggregate, row, context, &self.memory)?;
            }
            at = self.groups[number as usize].above;
        }
        Ok(self.first_row_only && self.states[number * grouping.aggregates.len()].is_found())
    }

    /// The number of a row's group, which is made if it is the first one of it.
    #[inline]
    pub fn group_of(&mut self, row: &dyn Columns, context: &mut Context) -> Result<usize, MysqlError> {
        let grouping = self.grouping;
        let rolls = grouping.rollup.is_some();
        Ok(if grouping.keys.is_empty() {
            if self.groups.is_empty() {
                let group = self.new_group(Some(row), 0);
                self.add_group(group);
            }
            0
        } else {
            self.key.clear();
            self.ends.clear();
            self.keys.clear();
            for (key, &kept) in grouping.keys.iter().zip(&grouping.kept) {
                let (bytes, keys) = (&mut self.key, &mut self.keys);
                with_value(key, row, context, |value| {
                    append_key(value, &key.ty, false, bytes);
                    if kept {
                        keys.push(shown_value(value, &key.ty));
                    }
                })?;
                self.ends.push(self.key.len());
            }
            let (number, new) = self.find(row, grouping.keys.len())?;
            if rolls && new {
                self.add_above(number, row)?;
            }
            number
        })
    }

    /// The states of all groups, those of one group together.
    pub fn states(&mut self) -> &mut [State] {
        &mut self.states
    }

    pub fn aggregates(&self) -> &'a [Aggregate] {
        &self.grouping.aggregates
    }

    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// How many columns a group carries.
    pub fn carries(&self) -> usize {
        self.grouping.carried.len()
    }

    /// Adds a group of rows on another node, none of ROLLUP. The inner error: these are no bytes of its states.
    pub fn absorb(
        &mut self,
        key: &[u8],
        carried: Vec<Value>,
        states: &mut Reader<'_>,
    ) -> Result<Result<(), WireError>, MysqlError> {
        let grouping = self.grouping;
        self.key.clear();
        self.key.extend_from_slice(key);
        let group = || Group { key: SmallVec::from_slice(key), values: carried, shared: 0, above: None };
        let number = if grouping.keys.is_empty() {
            if self.groups.is_empty() {
                self.add_group(group());
            }
            0
        } else {
            self.find_or(|_| Group { shared: grouping.keys.len() as u32, ..group() })?.0
        };
        let first = number * grouping.aggregates.len();
        for (state, aggregate) in self.states[first..].iter_mut().zip(&grouping.aggregates) {
            if let Err(error) = state.absorb(aggregate, states, &self.memory)? {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    /// The group with the present key, and whether it is new.
    fn find(&mut self, row: &dyn Columns, shared: usize) -> Result<(usize, bool), MysqlError> {
        self.find_or(|grouper| grouper.new_group(Some(row), shared))
    }

    #[inline]
    fn find_or(&mut self, make: impl FnOnce(&Self) -> Group) -> Result<(usize, bool), MysqlError> {
        let short = (hash_of(&self.key) >> 32) as u32;
        let groups = &self.groups;
        let is_it = |&(hash, number): &(u32, u32)| hash == short && *groups[number as usize].key == *self.key;
        if let Some(&(_, number)) = self.by_key.find(spread(short), is_it) {
            return Ok((number as usize, false));
        }
        let group = make(self);
        self.memory.take(group.bytes(self.grouping.aggregates.len()))?;
        let number = self.groups.len();
        self.add_group(group);
        self.by_key.insert_unique(spread(short), (short, number as u32), |&(hash, _)| spread(hash));
        Ok((number, true))
    }

    /// Finds or makes the super-aggregates above a new group, up to the first that was there.
    fn add_above(&mut self, group: usize, row: &dyn Columns) -> Result<(), MysqlError> {
        let mut below = group;
        for shared in (0..self.grouping.keys.len()).rev() {
            self.key.truncate(if shared == 0 { 0 } else { self.ends[shared - 1] });
            self.key.push(BEHIND_ALL);
            let (number, new) = self.find(row, shared)?;
            self.groups[below].above = Some(number as u32);
            if !new {
                break;
            }
            below = number;
        }
        Ok(())
    }

    fn new_group(&self, row: Option<&dyn Columns>, shared: usize) -> Group {
        let mut values: Vec<Value> = match row {
            Some(row) => self.grouping.carried.iter().map(|&(t, c)| row.column(t, c).to_owned()).collect(),
            None => Vec::new(),
        };
        values.extend_from_slice(&self.keys);
        Group { key: SmallVec::from_slice(&self.key), values, shared: shared as u32, above: None }
    }

    fn add_group(&mut self, group: Group) {
        self.groups.push(group);
        self.states.extend(self.grouping.aggregates.iter().map(State::new));
    }

    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// All groups, in key order.
    pub fn finish(mut self, context: &mut Context) -> Result<Groups<'a>, MysqlError> {
        let grouping = self.grouping;
        if self.groups.is_empty() && (grouping.keys.is_empty() || grouping.rollup.is_some()) {
            let group = self.new_group(None, 0);
            self.add_group(group);
        }
        let width = grouping.aggregates.len();
        let count = self.groups.len();
        self.memory.take(count * size_of::<u32>())?;
        let by_key = |a: &u32, b: &u32| self.groups[*a as usize].key.cmp(&self.groups[*b as usize].key);
        let order = sort_in_runs((0..count as u32).collect(), &self.memory, by_key)?;
        let mut groups =
            Groups { carried: &grouping.carried, rows: Vec::with_capacity(count), memory: self.memory.clone() };
        for number in order {
            if groups.rows.len().is_multiple_of(LOOK_GROUPS) {
                self.memory.look()?;
            }
            let number = number as usize;
            let group = &mut self.groups[number];
            group.key = SmallVec::new();
            let mut aggregates = Vec::with_capacity(width);
            let shared = group.shared as usize;
            for (state, aggregate) in self.states[number * width..].iter_mut().zip(&grouping.aggregates) {
                aggregates.push(state.take().finish(aggregate, self.concat_limit, &self.memory, context)?);
            }
            let mut values = std::mem::take(&mut group.values);
            let keys = values.split_off(grouping.carried.len().min(values.len()));
            if let Some(rollup) = &grouping.rollup {
                aggregates.extend(keys.into_iter().take(shared));
                aggregates.resize(grouping.aggregates.len() + grouping.keys.len(), Value::Null);
                for positions in &rollup.groupings {
                    let bits = positions.iter().fold(0, |bits, &key| bits << 1 | i64::from(key >= shared));
                    aggregates.push(Value::Int(bits));
                }
            } else {
                aggregates.extend(keys);
            }
            groups.rows.push((aggregates, values));
        }
        Ok(groups)
    }
}

impl Drop for Grouper<'_> {
    fn drop(&mut self) {
        let freed = (std::mem::take(&mut self.groups), std::mem::take(&mut self.states));
        self.memory.free_aside(freed.0.len(), freed);
    }
}

pub(crate) struct Groups<'a> {
    carried: &'a [(usize, usize)],
    rows: Vec<(Vec<Value>, Vec<Value>)>,
    memory: Memory,
}

impl Drop for Groups<'_> {
    fn drop(&mut self) {
        self.memory.free_aside(self.rows.len(), std::mem::take(&mut self.rows));
    }
}

impl Groups<'_> {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn row(&self, index: usize) -> GroupRow<'_> {
        let (aggregates, values) = &self.rows[index];
        GroupRow { aggregates, carried: self.carried, values }
    }
}

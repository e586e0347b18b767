//! GROUP BY and aggregates.
//!
//! Groups are found by the memcomparable key of the grouped values and come out in key order, whatever order the rows had. A group keeps the
//! columns that later expressions read from its first row. Without GROUP BY there is exactly one group, even of no rows.
//!
//! ```text
//! state    one aggregate of one group; DISTINCT
//! number   sums, averages, variances, bits
//! extreme  MIN and MAX
//! concat   GROUP_CONCAT
//! ```

mod concat;
mod extreme;
mod number;
mod state;

use super::output::with_value;
use super::row::GroupRow;
use super::sort::append_key;
use crate::expr::{Columns, Context};
use crate::memory::{Memory, values_bytes};
use crate::parse::statement::Scope;
use crate::plan::model::Grouping;
use hashbrown::HashTable;
use rauk_types::{MysqlError, Value};
use rustc_hash::FxBuildHasher;
use state::State;
use std::hash::BuildHasher;

pub(crate) struct Grouper<'a> {
    grouping: &'a Grouping,
    /// A lone MIN or MAX in index order: the first value is the answer.
    first_row_only: bool,
    groups: Vec<Group>,
    /// Their numbers, by their keys.
    by_key: HashTable<u32>,
    memory: Memory,
    key: Vec<u8>,
    concat_limit: usize,
}

struct Group {
    key: Box<[u8]>,
    states: Vec<State>,
    /// The carried columns of the first row.
    values: Vec<Value>,
}

impl Group {
    /// What it takes, its place in the tables included.
    fn bytes(&self) -> usize {
        // Tables have up to twice as many places as entries.
        size_of::<Group>() * 2 + self.key.len() + size_of_val(&*self.states) + values_bytes(&self.values) + 16
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
            by_key: HashTable::new(),
            memory,
            key: Vec::new(),
            concat_limit,
        }
    }

    /// Takes a row; `true`: no more are needed.
    pub fn push(&mut self, row: &dyn Columns, context: &mut Context) -> Result<bool, MysqlError> {
        let grouping = self.grouping;
        let number = if grouping.keys.is_empty() {
            if self.groups.is_empty() {
                let group = self.new_group(Some(row))?;
                self.groups.push(group);
            }
            0
        } else {
            self.key.clear();
            for key in &grouping.keys {
                with_value(key, row, context, |value| append_key(value, &key.ty, false, &mut self.key))?;
            }
            let hash = |key: &[u8]| FxBuildHasher.hash_one(key);
            let groups = &self.groups;
            match self.by_key.find(hash(&self.key), |&number| *groups[number as usize].key == *self.key) {
                Some(&number) => number as usize,
                None => {
                    let group = self.new_group(Some(row))?;
                    self.memory.take(group.bytes())?;
                    let number = self.groups.len();
                    let place = hash(&group.key);
                    self.groups.push(group);
                    let groups = &self.groups;
                    self.by_key.insert_unique(place, number as u32, |&number| hash(&groups[number as usize].key));
                    number
                }
            }
        };
        let group = &mut self.groups[number];
        for (state, aggregate) in group.states.iter_mut().zip(&grouping.aggregates) {
            state.push(aggregate, row, context, &self.memory)?;
        }
        Ok(self.first_row_only && group.states[0].is_found())
    }

    fn new_group(&self, row: Option<&dyn Columns>) -> Result<Group, MysqlError> {
        let states = self.grouping.aggregates.iter().map(State::new).collect();
        let values = match row {
            Some(row) => self.grouping.carried.iter().map(|&(t, c)| row.column(t, c).to_owned()).collect(),
            None => Vec::new(),
        };
        Ok(Group { key: self.key.as_slice().into(), states, values })
    }

    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// All groups, in key order.
    pub fn finish(mut self, context: &mut Context) -> Result<Groups<'a>, MysqlError> {
        if self.groups.is_empty() && self.grouping.keys.is_empty() {
            let group = self.new_group(None)?;
            self.groups.push(group);
        }
        self.groups.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let mut rows = Vec::with_capacity(self.groups.len());
        for group in self.groups {
            let mut aggregates = Vec::with_capacity(group.states.len());
            for (state, aggregate) in group.states.into_iter().zip(&self.grouping.aggregates) {
                aggregates.push(state.finish(aggregate, self.concat_limit, &self.memory, context)?);
            }
            rows.push((aggregates, group.values));
        }
        Ok(Groups { carried: &self.grouping.carried, rows })
    }
}

pub(crate) struct Groups<'a> {
    carried: &'a [(usize, usize)],
    rows: Vec<(Vec<Value>, Vec<Value>)>,
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

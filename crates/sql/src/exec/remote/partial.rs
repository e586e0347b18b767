//! Groups of the rows of one request, on their way to the groups of the statement.
//!
//! ```text
//! groups    count varint, groups
//! group     key (length varint, bytes), values of carried columns, states of aggregates (group/state)
//! ```
//! There are few groups ([`MAX_GROUPS`], [`MAX_BYTES`]): a row that would begin another one is sent instead. A row counts in all aggregates or in none.

use super::program::Aggregation;
use crate::exec::group::State;
use crate::exec::output::with_value;
use crate::expr::value_key::append_key;
use crate::expr::{Aggregate, AggregateFunction, Columns, Context, ExprKind};
use crate::memory::{Memory, values_bytes};
use rauk_types::{MysqlError, Value};
use rauk_wire::WireError;
use rauk_wire::read::{Reader, put_prefixed, put_varint};
use rustc_hash::FxHashMap;

const MAX_GROUPS: usize = 1024;
/// Of keys and carried values.
const MAX_BYTES: usize = 256 << 10;

pub(super) struct Partial {
    aggregation: Aggregation,
    groups: FxHashMap<Box<[u8]>, Group>,
    bytes: usize,
    key: Vec<u8>,
    /// An aggregate may fail after others have taken the row: then they are what they were.
    may_fail: bool,
}

struct Group {
    carried: Vec<Value>,
    states: Vec<State>,
}

/// Whether taking a row may fail, or changes more than one state before it does.
fn may_fail(aggregates: &[Aggregate]) -> bool {
    let simple = |aggregate: &Aggregate| {
        let columns = aggregate.arguments.iter().all(|part| matches!(part.kind, ExprKind::Column { .. }));
        aggregate.function == AggregateFunction::Count && columns
    };
    let single =
        matches!(aggregates, [one] if !matches!(one.function, AggregateFunction::Min | AggregateFunction::Max));
    !single && !aggregates.iter().all(simple)
}

impl Partial {
    pub fn new(aggregation: Aggregation) -> Partial {
        let may_fail = may_fail(&aggregation.aggregates);
        Partial { aggregation, groups: FxHashMap::default(), bytes: 0, key: Vec::new(), may_fail }
    }

    /// Takes a row. `false`: there is no room for its group. On an error it has not been taken.
    pub fn push(&mut self, row: &dyn Columns, context: &mut Context, memory: &Memory) -> Result<bool, MysqlError> {
        let Aggregation { keys, carried, aggregates } = &self.aggregation;
        self.key.clear();
        for key in keys {
            with_value(key, row, context, |value| append_key(value, &key.ty, false, &mut self.key))?;
        }
        let take = |states: &mut [State], context: &mut Context| {
            states.iter_mut().zip(aggregates).try_for_each(|(state, one)| state.push(one, row, context, memory))
        };
        if let Some(group) = self.groups.get_mut(self.key.as_slice()) {
            let before = self.may_fail.then(|| group.states.clone());
            let taken = take(&mut group.states, context);
            if let (Err(_), Some(before)) = (&taken, before) {
                group.states = before;
            }
            return taken.map(|()| true);
        }
        let values: Vec<Value> = carried.iter().map(|&column| row.column(0, column.into()).to_owned()).collect();
        let states = aggregates.len() * size_of::<State>();
        let bytes = self.bytes + self.key.len() + values_bytes(&values) + states;
        if self.groups.len() >= MAX_GROUPS || bytes > MAX_BYTES {
            return Ok(false);
        }
        let mut states: Vec<State> = aggregates.iter().map(State::new).collect();
        take(&mut states, context)?;
        self.bytes = bytes;
        self.groups.insert(self.key.as_slice().into(), Group { carried: values, states });
        Ok(true)
    }

    pub fn finish(self, out: &mut Vec<u8>) {
        put_varint(self.groups.len() as u32, out);
        for (key, group) in &self.groups {
            put_prefixed(key, out);
            group.carried.iter().for_each(|value| rauk_wire::value::put(value.as_ref(), out));
            group.states.iter().for_each(|state| state.put(out));
        }
    }
}

/// Gives each group to `take`: its key, the values that it carries, and a reader at its states, which `take` reads.
pub(super) fn read_groups<'a>(
    reader: &mut Reader<'a>,
    carried: usize,
    mut take: impl FnMut(&'a [u8], Vec<Value>, &mut Reader<'a>) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let count = reader.varint()? as usize;
    if count > MAX_GROUPS {
        return Err(reader.malformed());
    }
    for _ in 0..count {
        let key = reader.prefixed()?;
        let values = (0..carried).map(|_| Ok(rauk_wire::value::get(reader)?.to_owned()));
        let values = values.collect::<Result<_, WireError>>()?;
        take(key, values, reader)?;
    }
    reader.end()
}

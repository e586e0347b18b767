//! Toy contents: each entry sets one key; it counts when it is stable, and stands beside the map until then.
//!
//! As in the real thing, rows carry the time of their last change (here: the position), a stream replaces equal or older ones, a copy only older ones, and a
//! deleted key is remembered. Counts what it is told, so that effects that are told twice or not at all are found.

use bytes::Bytes;
use rauk_types::Position;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub const KEYS: u64 = 40;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub key: u64,
    /// `None`: deleted.
    pub value: Option<u64>,
}

impl Change {
    pub fn encode(&self, padding: usize) -> Bytes {
        let mut bytes = vec![0xff];
        bytes.extend(postcard::to_stdvec(self).unwrap());
        bytes.extend(std::iter::repeat_n(0, padding));
        bytes.into()
    }

    /// `None`: an opening.
    pub fn decode(record: &[u8]) -> Option<Change> {
        (record.first() == Some(&0xff)).then(|| postcard::take_from_bytes(&record[1..]).unwrap().0)
    }
}

/// Key → (position of its last change, value).
pub type Rows = BTreeMap<u64, (u64, Option<u64>)>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Entries that are not stable: position → record.
    pub pending: BTreeMap<u64, Vec<u8>>,
    pub last: u64,
    pub stable: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    pub table: Table,
    pub rows: Rows,
}

impl Content {
    pub fn entry(&mut self, position: Position, record: &[u8]) {
        assert_eq!(
            position.0,
            self.table.last + 1,
            "the table hears of entry {} after {}",
            position.0,
            self.table.last
        );
        if let Some(Change { key, .. }) = Change::decode(record) {
            assert!(!self.is_locked(key), "two pending changes of one key");
        }
        self.table.last = position.0;
        self.table.pending.insert(position.0, record.to_vec());
    }

    /// Whether a change of the key is pending: a primary writes the next one when that is stable, and so it is everywhere.
    pub fn is_locked(&self, key: u64) -> bool {
        self.table.pending.values().any(|record| Change::decode(record).is_some_and(|change| change.key == key))
    }

    pub fn cut(&mut self, after: Position) {
        assert!(after.0 >= self.table.stable, "the table hears of a cut of what is stable");
        self.table.pending.split_off(&(after.0 + 1));
        self.table.last = self.table.last.min(after.0);
    }

    pub fn stable(&mut self, upto: Position) {
        assert!(upto.0 <= self.table.last, "the table hears that {} is stable, and has {}", upto.0, self.table.last);
        let behind = self.table.pending.split_off(&(upto.0 + 1));
        for (position, record) in std::mem::replace(&mut self.table.pending, behind) {
            if let Some(Change { key, value }) = Change::decode(&record)
                && self.rows.get(&key).is_none_or(|(at, _)| *at <= position)
            {
                self.rows.insert(key, (position, value));
            }
        }
        self.table.stable = self.table.stable.max(upto.0);
    }

    pub fn reset(&mut self, state: &[u8]) {
        self.rows.clear();
        self.table = postcard::from_bytes(state).unwrap();
    }

    pub fn state(&self) -> Bytes {
        postcard::to_stdvec(&self.table).unwrap().into()
    }

    pub fn install(&mut self, rows: &[u8]) {
        let rows: Vec<(u64, u64, u64)> = postcard::from_bytes(rows).unwrap();
        for (key, at, value) in rows {
            if self.rows.get(&key).is_none_or(|(old, _)| *old < at) {
                self.rows.insert(key, (at, Some(value)));
            }
        }
    }

    /// Some rows from `cursor` on, and where to go on.
    pub fn slice(&self, cursor: &[u8], count: usize) -> (Bytes, Option<Bytes>) {
        let from = cursor.first().map_or(0, |key| u64::from(*key));
        let rows: Vec<(u64, u64, u64)> = self
            .rows
            .range(from..)
            .filter_map(|(key, (at, value))| value.map(|value| (*key, *at, value)))
            .take(count)
            .collect();
        let next = rows.last().filter(|_| rows.len() == count).map(|row| Bytes::from(vec![row.0 as u8 + 1]));
        (postcard::to_stdvec(&rows).unwrap().into(), next)
    }

    /// What a reader sees.
    pub fn visible(&self) -> BTreeMap<u64, (u64, u64)> {
        self.rows.iter().filter_map(|(key, (at, value))| value.map(|value| (*key, (*at, value)))).collect()
    }
}

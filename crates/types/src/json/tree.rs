//! A document as a tree, to be made and changed.
//!
//! A part that was not looked into is a [`Json::Stored`]: [`Json::open`] replaces it by its elements or members, one level. So changing
//! a value deep in a large document copies the rest of it as bytes.

use super::{Corrupt, JsonRef, Node};
use crate::{Date, DateTime, Decimal, Time};
use std::borrow::Cow;

/// A value and what is in it.
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'a> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    /// Finite.
    Double(f64),
    Decimal(Decimal),
    String(Cow<'a, str>),
    Date(Date),
    Time(Time),
    DateTime(DateTime),
    /// MySQL's column type and bytes.
    Opaque(u8, Cow<'a, [u8]>),
    Array(Vec<Json<'a>>),
    Object(Members<'a>),
    /// As it lies somewhere, in the binary form.
    Stored(JsonRef<'a>),
}

/// Members in MySQL's order: by the lengths of their names, then by the names' bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Members<'a> {
    list: Vec<(Cow<'a, str>, Json<'a>)>,
}

fn key(name: &str) -> (usize, &[u8]) {
    (name.len(), name.as_bytes())
}

impl<'a> Members<'a> {
    /// Of members in any order; of those of one name the last counts.
    pub fn new(mut list: Vec<(Cow<'a, str>, Json<'a>)>) -> Members<'a> {
        let is_sorted = list.windows(2).all(|pair| key(&pair[0].0) < key(&pair[1].0));
        if !is_sorted {
            list.sort_by(|a, b| key(&a.0).cmp(&key(&b.0)));
            list.dedup_by(|later, kept| {
                let same = later.0 == kept.0;
                if same {
                    std::mem::swap(later, kept);
                }
                same
            });
        }
        Members { list }
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.list.binary_search_by(|(other, _)| key(other).cmp(&key(name)))
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&Json<'a>> {
        self.find(name).ok().map(|at| &self.list[at].1)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Json<'a>> {
        self.find(name).ok().map(|at| &mut self.list[at].1)
    }

    pub fn insert(&mut self, name: Cow<'a, str>, value: Json<'a>) {
        match self.find(&name) {
            Ok(at) => self.list[at].1 = value,
            Err(at) => self.list.insert(at, (name, value)),
        }
    }

    pub fn remove(&mut self, name: &str) -> Option<Json<'a>> {
        self.find(name).ok().map(|at| self.list.remove(at).1)
    }

    pub fn iter(&self) -> impl Iterator<Item = &(Cow<'a, str>, Json<'a>)> {
        self.list.iter()
    }

    pub fn into_list(self) -> Vec<(Cow<'a, str>, Json<'a>)> {
        self.list
    }
}

impl<'a> Json<'a> {
    /// Replaces a stored value by what it is, one level deep.
    pub fn open(&mut self) -> Result<&mut Json<'a>, Corrupt> {
        if let Json::Stored(value) = *self {
            *self = match value.read()? {
                Node::Null => Json::Null,
                Node::Bool(v) => Json::Bool(v),
                Node::Int(v) => Json::Int(v),
                Node::UInt(v) => Json::UInt(v),
                Node::Double(v) => Json::Double(v),
                Node::Decimal(v) => Json::Decimal(v),
                Node::String(v) => Json::String(Cow::Borrowed(v)),
                Node::Date(v) => Json::Date(v),
                Node::Time(v) => Json::Time(v),
                Node::DateTime(v) => Json::DateTime(v),
                Node::Opaque(ty, v) => Json::Opaque(ty, Cow::Borrowed(v)),
                Node::Array(list) => Json::Array(
                    list.iter().map(|item| item.map(|(_, value)| Json::Stored(value))).collect::<Result<_, _>>()?,
                ),
                Node::Object(list) => Json::Object(Members {
                    list: list
                        .iter()
                        .map(|item| item.map(|(name, value)| (Cow::Borrowed(name), Json::Stored(value))))
                        .collect::<Result<_, _>>()?,
                }),
            };
        }
        Ok(self)
    }
}

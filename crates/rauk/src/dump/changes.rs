//! What a target does not take, and what becomes of it.
//!
//! The same change of many places is one line with the first of them and a count: a database of a thousand columns with
//! one collation gives one line.

use std::collections::HashMap;

#[derive(Debug, Default)]
pub struct Changes {
    list: Vec<Change>,
    /// By text, where it is in the list.
    known: HashMap<String, usize>,
}

#[derive(Debug)]
struct Change {
    place: String,
    text: String,
    more: u64,
}

impl Changes {
    pub fn add(&mut self, place: &str, text: &str) {
        match self.known.get(text) {
            Some(at) => self.list[*at].more += 1,
            None => {
                self.known.insert(text.into(), self.list.len());
                self.list.push(Change { place: place.into(), text: text.into(), more: 0 });
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn lines(&self) -> Vec<String> {
        let line = |change: &Change| match change.more {
            0 => format!("{}: {}", change.place, change.text),
            more => format!("{} (and {more} more): {}", change.place, change.text),
        };
        self.list.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_changes_are_one_line() {
        let mut changes = Changes::default();
        assert!(changes.is_empty());
        changes.add("table d.a", "x becomes y");
        changes.add("table d.b", "z is left out");
        changes.add("table d.c", "x becomes y");
        assert_eq!(changes.lines(), ["table d.a (and 1 more): x becomes y", "table d.b: z is left out"]);
    }
}

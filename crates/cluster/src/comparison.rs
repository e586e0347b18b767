//! The digests that replicas tell of their rows of one partition, at one place of the stream (rules 78, 79).
//!
//! The primary writes an entry that asks all in-sync replicas ([`crate::Record::Compare`]). Each tells a digest of every
//! table that it has in the partition, as its rows are at that entry. All are equal, unless somebody's memory, disk or
//! program is wrong. Then those who have what *more than half* of the asked have are right, and the others are not;
//! where no digest has so many, nobody knows who is right: with two replicas always.
//!
//! A table counts where it is known. One that has been dropped here and not there yet is compared among those who have
//! it, or not at all.
//!
//! Who does not tell (its message is lost, it is removed, it cannot tell at the moment) leaves the comparison
//! incomplete. That says nothing, and another comparison takes its place; but a replica that differs from a majority is
//! found as soon as that has told.

use crate::EntryId;
use rauk_types::{Member, TableId};
use std::collections::BTreeMap;

/// A digest of each table, by table.
pub type Digests = Vec<(TableId, u128)>;

/// What a comparison has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All have the same rows.
    Equal,
    /// These have other rows of this table than the majority.
    Minority { members: Vec<Member>, table: TableId },
    /// They differ in this table, and no majority has the same.
    Divided { table: TableId },
}

/// A comparison that is under way.
#[derive(Clone, Debug)]
pub struct Comparison {
    entry: EntryId,
    asked: Vec<Member>,
    told: BTreeMap<Member, Digests>,
}

impl Comparison {
    /// `asked`: the in-sync replicas.
    pub fn new(entry: EntryId, asked: Vec<Member>) -> Comparison {
        Comparison { entry, asked, told: BTreeMap::new() }
    }

    /// Of which entry.
    pub fn entry(&self) -> EntryId {
        self.entry
    }

    /// What a replica has at this entry. Gives a verdict when there is one; after that, by another telling, another one
    /// may follow.
    pub fn tell(&mut self, entry: EntryId, from: Member, digests: Digests) -> Option<Verdict> {
        if entry != self.entry || !self.asked.contains(&from) {
            return None;
        }
        // Who tells twice tells the same.
        self.told.entry(from).or_insert(digests);
        let mut tables: BTreeMap<TableId, Vec<(Member, u128)>> = BTreeMap::new();
        for (member, digests) in &self.told {
            for (table, digest) in digests {
                tables.entry(*table).or_default().push((*member, *digest));
            }
        }
        let is_complete = self.told.len() == self.asked.len();
        let mut divided = None;
        for (table, told) in tables {
            let (_, first) = told[0];
            if told.iter().all(|(_, digest)| *digest == first) {
                continue;
            }
            let count = |digest: u128| told.iter().filter(|(_, other)| *other == digest).count();
            match told.iter().find(|(_, digest)| count(*digest) * 2 > self.asked.len()) {
                Some((_, right)) => {
                    let members =
                        told.iter().filter(|(_, digest)| digest != right).map(|(member, _)| *member).collect();
                    return Some(Verdict::Minority { members, table });
                }
                None => divided = divided.or(Some(Verdict::Divided { table })),
            }
        }
        match divided {
            _ if !is_complete => None,
            Some(divided) => Some(divided),
            None => Some(Verdict::Equal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_types::{NodeId, Position, ProcessId, View};

    const ENTRY: EntryId = EntryId { view: View(1), position: Position(9) };

    fn member(number: u16) -> Member {
        Member { node: NodeId(number), process: ProcessId(number.into()) }
    }

    /// Node 1, 2, 3 … tell these digests of table 5.
    fn compared(asked: u16, told: &[u128]) -> Vec<Option<Verdict>> {
        let mut comparison = Comparison::new(ENTRY, (1..=asked).map(member).collect());
        let told = (1..).zip(told);
        told.map(|(number, digest)| comparison.tell(ENTRY, member(number), vec![(TableId(5), *digest)])).collect()
    }

    fn minority(numbers: &[u16]) -> Option<Verdict> {
        Some(Verdict::Minority { members: numbers.iter().map(|number| member(*number)).collect(), table: TableId(5) })
    }

    const DIVIDED: Option<Verdict> = Some(Verdict::Divided { table: TableId(5) });
    const EQUAL: Option<Verdict> = Some(Verdict::Equal);

    #[test]
    fn equal_when_all_have_told_the_same() {
        assert_eq!(compared(1, &[7]), [EQUAL]);
        assert_eq!(compared(3, &[7, 7, 7]), [None, None, EQUAL]);
        assert_eq!(compared(3, &[7, 7]), [None, None]);
    }

    #[test]
    fn who_differs_from_a_majority_is_found_as_soon_as_that_has_told() {
        assert_eq!(compared(3, &[7, 8, 7]), [None, None, minority(&[2])]);
        assert_eq!(compared(3, &[8, 7, 7]), [None, None, minority(&[1])]);
        assert_eq!(compared(4, &[7, 7, 8, 7]), [None, None, None, minority(&[3])]);
        assert_eq!(compared(5, &[7, 7, 8, 7, 9]), [None, None, None, minority(&[3]), minority(&[3, 5])]);
    }

    #[test]
    fn without_a_majority_nobody_is_said_to_be_wrong() {
        assert_eq!(compared(2, &[7, 8]), [None, DIVIDED]);
        assert_eq!(compared(3, &[7, 8, 9]), [None, None, DIVIDED]);
        assert_eq!(compared(4, &[7, 8, 8, 7]), [None, None, None, DIVIDED]);
    }

    #[test]
    fn a_table_counts_where_it_is_known() {
        let mut comparison = Comparison::new(ENTRY, vec![member(1), member(2), member(3)]);
        let (old, new) = (TableId(4), TableId(5));
        assert_eq!(comparison.tell(ENTRY, member(1), vec![(old, 1), (new, 0)]), None);
        assert_eq!(comparison.tell(ENTRY, member(2), vec![(new, 0)]), None);
        let mut other = comparison.clone();
        assert_eq!(comparison.tell(ENTRY, member(3), vec![(new, 0)]), EQUAL);
        assert_eq!(other.tell(ENTRY, member(3), vec![(old, 2), (new, 0)]), Some(Verdict::Divided { table: old }));
    }

    #[test]
    fn what_is_of_another_entry_or_from_somebody_else_counts_for_nothing() {
        let mut comparison = Comparison::new(ENTRY, vec![member(1), member(2)]);
        let other_view = EntryId { view: View(2), ..ENTRY };
        assert_eq!(comparison.tell(ENTRY, member(1), vec![(TableId(5), 7)]), None);
        assert_eq!(comparison.tell(other_view, member(2), vec![(TableId(5), 8)]), None);
        assert_eq!(comparison.tell(ENTRY, member(3), vec![(TableId(5), 8)]), None);
        assert_eq!(comparison.tell(ENTRY, member(1), vec![(TableId(5), 9)]), None, "the first word counts");
        assert_eq!(comparison.tell(ENTRY, member(2), vec![(TableId(5), 7)]), EQUAL);
    }
}

//! The members of an ENUM or SET.
//!
//! A [`DataType`](crate::DataType) is copied with every expression, so a list of members is *interned*: one [`Members`] for each list that is
//! declared, kept while the process runs, and named by a reference. Equal lists are the same reference. A process that declares new
//! lists again and again keeps them all: the limits of a declaration ([`MAX_ENUM_MEMBERS`], [`MAX_MEMBERS_BYTES`]) bound each, and
//! [`Members::declare`] refuses a new one when all have [`MAX_KEPT_BYTES`]. What a catalog says is never refused.
//!
//! Columns hold numbers. Of an ENUM the position of the member from 1 on, with 0 for the error value, whose text is empty; of a SET a bit for
//! each member, the first member the lowest. Text becomes a number by the column's collation.
//!
//! Left out: what a lossy conversion does. [`Members::position`] and [`Members::bits`] say what matches; errors and warnings are SQL's.

use crate::Collation;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Most members of an ENUM.
pub const MAX_ENUM_MEMBERS: usize = 65_535;
/// Most members of a SET.
pub const MAX_SET_MEMBERS: usize = 64;
/// Longest member in characters.
pub const MAX_MEMBER_CHARS: usize = 255;
/// Most bytes of all members of a column.
pub const MAX_MEMBERS_BYTES: usize = 1 << 20;

/// From so many bytes of all lists on no new ones are declared.
pub const MAX_KEPT_BYTES: usize = 64 << 20;

/// Lists of at most so many members are searched from the first to the last.
const SHORT: usize = 16;

/// A list of members. There is one of each.
#[derive(Debug)]
pub struct Members {
    texts: Box<[Box<str>]>,
    /// Positions by sort key, for each collation that was asked for.
    by_key: Mutex<BTreeMap<u16, &'static BTreeMap<Vec<u8>, usize>>>,
    longest: OnceLock<usize>,
}

impl PartialEq for Members {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Members {}

impl Hash for Members {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::from_ref(self).hash(state);
    }
}

/// All lists, by their texts.
static LISTS: Mutex<Lists> = Mutex::new(Lists { by_texts: BTreeSet::new(), bytes: 0 });

struct Lists {
    by_texts: BTreeSet<ByTexts>,
    /// Of all texts, with what stands beside each.
    bytes: usize,
}

struct ByTexts(&'static Members);

impl PartialEq for ByTexts {
    fn eq(&self, other: &Self) -> bool {
        self.0.texts == other.0.texts
    }
}

impl Eq for ByTexts {}

impl PartialOrd for ByTexts {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByTexts {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.texts.cmp(&other.0.texts)
    }
}

impl std::borrow::Borrow<[Box<str>]> for ByTexts {
    fn borrow(&self) -> &[Box<str>] {
        &self.0.texts
    }
}

impl Members {
    /// The one list of these members.
    pub fn intern(texts: Vec<String>) -> &'static Members {
        Members::within(texts, usize::MAX).expect("there is no limit")
    }

    /// The one list of these members, as a statement declares them. `None`: it is new, and there is no room for more lists until the next start.
    pub fn declare(texts: Vec<String>) -> Option<&'static Members> {
        Members::within(texts, MAX_KEPT_BYTES)
    }

    fn within(texts: Vec<String>, limit: usize) -> Option<&'static Members> {
        let texts: Box<[Box<str>]> = texts.into_iter().map(String::into_boxed_str).collect();
        let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lists.by_texts.get(&*texts) {
            return Some(known.0);
        }
        let bytes = size_of::<Members>() + texts.iter().map(|text| size_of::<Box<str>>() + text.len()).sum::<usize>();
        if lists.bytes.saturating_add(bytes) > limit {
            return None;
        }
        lists.bytes += bytes;
        let members: &'static Members =
            Box::leak(Box::new(Members { texts, by_key: Mutex::default(), longest: OnceLock::new() }));
        lists.by_texts.insert(ByTexts(members));
        Some(members)
    }

    pub fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Characters of the longest member.
    pub fn longest(&self) -> usize {
        *self.longest.get_or_init(|| self.texts().map(|text| text.chars().count()).max().unwrap_or(0))
    }

    /// Characters of the text of a SET that has all members.
    pub fn joined(&self) -> usize {
        self.texts().map(|text| text.chars().count() + 1).sum::<usize>().saturating_sub(1)
    }

    /// The text of an ENUM's number; the error value's is empty, as is that of a number that is none.
    #[inline]
    pub fn text(&self, number: u64) -> &str {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        at.and_then(|at| self.texts.get(at)).map_or("", |text| text)
    }

    /// Appends the text of a SET's bits.
    pub fn append_set(&self, bits: u64, out: &mut Vec<u8>) {
        let mut first = true;
        for (at, text) in self.texts.iter().enumerate().take(MAX_SET_MEMBERS) {
            if bits >> at & 1 == 1 {
                if !first {
                    out.push(b',');
                }
                first = false;
                out.extend_from_slice(text.as_bytes());
            }
        }
    }

    /// The bits of a SET that has all members.
    pub fn all(&self) -> u64 {
        match self.len() {
            0 => 0,
            count => u64::MAX >> (MAX_SET_MEMBERS - count.min(MAX_SET_MEMBERS)),
        }
    }

    /// The number of the member that is equal to `text`, from 1 on.
    pub fn position(&self, text: &str, collation: Collation) -> Option<u64> {
        if self.len() <= SHORT {
            let equal = |member: &str| collation.equal(member.as_bytes(), text.as_bytes());
            return self.texts().position(equal).map(|at| at as u64 + 1);
        }
        let mut key = Vec::new();
        collation.sort_key(text.as_bytes(), &mut key);
        self.keys(collation).get(&key).map(|at| *at as u64 + 1)
    }

    fn keys(&self, collation: Collation) -> &'static BTreeMap<Vec<u8>, usize> {
        let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        by_key.entry(collation.mysql_id()).or_insert_with(|| {
            let mut keys = BTreeMap::new();
            for (at, text) in self.texts.iter().enumerate() {
                let mut key = Vec::new();
                collation.sort_key(text.as_bytes(), &mut key);
                keys.entry(key).or_insert(at);
            }
            Box::leak(Box::new(keys))
        })
    }

    /// The bits of the members that a list names, and whether all of its items are members. The empty text names none.
    pub fn bits(&self, list: &str, collation: Collation) -> (u64, bool) {
        let mut bits = 0;
        let mut all = true;
        if list.is_empty() {
            return (0, true);
        }
        for item in list.split(',') {
            match self.position(item, collation) {
                Some(position) => bits |= 1 << (position - 1),
                None => all = false,
            }
        }
        (bits, all)
    }

    /// The bits of the value whose text is equal to `text`: members in their order, each once.
    pub fn exact_bits(&self, text: &str, collation: Collation) -> Option<u64> {
        // Spaces, or what the collation passes over.
        if collation.equal(b"", text.as_bytes()) {
            return Some(0);
        }
        let (bits, all) = self.bits(text, collation);
        let mut written = Vec::with_capacity(text.len());
        self.append_set(bits, &mut written);
        (all && collation.equal(&written, text.as_bytes())).then_some(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> &'static Members {
        Members::intern(texts.iter().map(|text| text.to_string()).collect())
    }

    #[test]
    fn equal_lists_are_one() {
        assert!(std::ptr::eq(of(&["a", "b"]), of(&["a", "b"])));
        assert_ne!(of(&["a", "b"]), of(&["b", "a"]));
        assert_ne!(of(&["a,b"]), of(&["a", "b"]));
    }

    #[test]
    fn there_is_a_limit_for_new_lists_alone() {
        let known = of(&["known"]);
        assert_eq!(Members::within(vec!["known".into()], 0), Some(known));
        assert_eq!(Members::within(vec!["unknown".into()], 0), None);
        assert_eq!(Members::declare(vec!["unknown".into()]), Some(of(&["unknown"])));
    }

    #[test]
    fn members_are_found_by_collation() {
        let many: Vec<String> = (0..40_000).map(|n| format!("m{n}")).collect();
        let members = Members::intern(many);
        assert_eq!(members.position("M39999", Collation::DEFAULT), Some(40_000));
        assert_eq!(members.position("M39999", Collation::Utf8mb4Bin), None);
        assert_eq!(members.position("m39999 ", Collation::Utf8mb4Bin), Some(40_000));
        let few = of(&["Red", "ß", ""]);
        assert_eq!(few.position("red", Collation::Utf8mb4GeneralCi), Some(1));
        assert_eq!(few.position("ss", Collation::Utf8mb4UnicodeCi), Some(2));
        assert_eq!(few.position("", Collation::DEFAULT), Some(3));
        assert_eq!((few.text(1), few.text(0), few.text(4), few.text(u64::MAX)), ("Red", "", "", ""));
    }

    #[test]
    fn sets_are_lists_in_the_order_of_members() {
        let members = of(&["a", "b", "c"]);
        let by = Collation::DEFAULT;
        assert_eq!(members.bits("c,A,c", by), (5, true));
        assert_eq!(members.bits("a,x", by), (1, false));
        assert_eq!(members.bits("", by), (0, true));
        assert_eq!(members.bits("a,", by), (1, false));
        assert_eq!(members.exact_bits("A,c", by), Some(5));
        assert_eq!(members.exact_bits("c,a", by), None);
        assert_eq!(members.exact_bits("", by), Some(0));
        assert_eq!(members.exact_bits("  ", Collation::Utf8mb4UnicodeCi), Some(0));
        assert_eq!((members.all(), of(&[]).all()), (7, 0));
        let mut text = Vec::new();
        members.append_set(5, &mut text);
        assert_eq!(text, b"a,c");
        let all = Members::intern((0..64).map(|n| format!("m{n}")).collect());
        assert_eq!(all.all(), u64::MAX);
        assert_eq!(all.bits("m63", by), (1 << 63, true));
    }
}

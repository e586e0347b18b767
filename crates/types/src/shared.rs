//! What definitions have in common.
//!
//! A user's partitioned table may have thousands of leaves, each a table with a definition of its own that says nearly the same. [`Shared`] holds a
//! part that many definitions have: cloning it copies nothing, and whoever changes it gets a copy of its own first. [`Memo`] holds what was
//! made of a definition, for all who have that one.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

/// A value that is copied when one of those who have it changes it. It is stored as the value itself.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shared<T>(Arc<T>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared(self.0.clone())
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Shared(Arc::new(value))
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<E> FromIterator<E> for Shared<Vec<E>> {
    fn from_iter<I: IntoIterator<Item = E>>(items: I) -> Self {
        Vec::from_iter(items).into()
    }
}

impl<'a, E> IntoIterator for &'a Shared<Vec<E>> {
    type Item = &'a E;
    type IntoIter = std::slice::Iter<'a, E>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a, E: Clone> IntoIterator for &'a mut Shared<Vec<E>> {
    type Item = &'a mut E;
    type IntoIter = std::slice::IterMut<'a, E>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

/// What was made of a definition. It is no part of it: all are equal, and a copy, which may be changed, has none.
pub struct Memo<T>(OnceLock<T>);

impl<T> Memo<T> {
    /// What `make` gave the first time.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(make)
    }
}

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Memo(OnceLock::new())
    }
}

impl<T> Clone for Memo<T> {
    fn clone(&self) -> Self {
        Memo::default()
    }
}

impl<T> PartialEq for Memo<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> fmt::Debug for Memo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memo")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_by_nobody_else() {
        let one: Shared<Vec<u8>> = vec![1, 2].into();
        let mut other = one.clone();
        assert!(std::ptr::eq(&*one, &*other));
        other.push(3);
        other.iter_mut().for_each(|value| *value += 1);
        assert_eq!((&*one, &*other), (&vec![1, 2], &vec![2, 3, 4]));
        assert_eq!(serde_json::to_string(&other).unwrap(), "[2,3,4]");
        assert_eq!(serde_json::from_str::<Shared<Vec<u8>>>("[1,2]").unwrap(), one);
    }

    #[test]
    fn a_copy_of_a_definition_has_no_memo_of_it() {
        let memo = Memo::default();
        assert_eq!(memo.get_or_make(|| 1), &1);
        assert_eq!(memo.get_or_make(|| 2), &1);
        assert_eq!(memo.clone().get_or_make(|| 3), &3);
    }
}

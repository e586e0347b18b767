//! What one level reads in this execution: keys, ranges or everything.

use super::keys::{self, KeyRange, Points, SingleKey};
use super::merge::{self, Merge};
use super::prune;
use super::row::Joined;
use super::search;
use super::skip::{self, Skip};
use crate::expr::{Context, Expr};
use crate::physical::model::{Access, IndexAccess, Level, MergeAccess, MergeWay, Source};
use crate::physical::place::{self, Distribution};
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_node::{NodeError, ScanSpec, TableHandle};
use rauk_types::{IndexId, MysqlError};
use smallvec::SmallVec;
use std::ops::Bound;
use std::sync::Arc;

/// How a read locks.
pub(crate) type Lock = Option<(LockMode, WaitPolicy)>;

/// Rows in a batch of a scan.
pub(crate) const BATCH: usize = 256;

/// Rows after which other tasks get a turn; evaluation's work counts as rows.
pub(crate) const YIELD_ROWS: usize = 4096;

pub(crate) enum Opened {
    Nothing,
    /// Whole keys, of the primary key or of the unique index at this position.
    Keys {
        unique: Option<usize>,
        keys: SmallVec<[Key; 1]>,
    },
    Scans(SmallVec<[ScanSpec; 1]>),
    /// Of [`Access::Merge`].
    Merge(Box<Merge>),
    /// Of [`Access::Skip`].
    Skip(Box<Skip>),
}

/// An encoded key; most are short.
pub(crate) type Key = SmallVec<[u8; 40]>;

/// How the rows of a level are locked in this execution.
#[inline]
pub(crate) fn lock_of(level: &Level, context: &Context) -> Lock {
    match level.changed && context.locks_changed_tables {
        true => Some((LockMode::Exclusive, WaitPolicy::Wait)),
        false => level.lock,
    }
}

/// Finds out what to read for `row`, the rows of the levels before.
pub(crate) fn open(
    level: &Level,
    source: &Source,
    row: &Joined<'_>,
    context: &mut Context,
    limit_hint: Option<u64>,
) -> Result<Opened, MysqlError> {
    let lock = lock_of(level, context);
    let leaves = prune::leaves(level.prune.as_deref(), source, row, context)?;
    if leaves.as_ref().is_some_and(|leaves| !leaves.contains(&true)) {
        return Ok(Opened::Nothing);
    }
    let everything = |distribution: Option<Vec<u8>>| {
        Opened::Scans(SmallVec::from_elem(
            ScanSpec {
                ordered_if_small: level.key_order,
                lock,
                distribution,
                leaves: leaves.clone(),
                limit_hint,
                covering: level.covering.clone().filter(|_| lock.is_none()),
                unread: level.unread.clone(),
                ..ScanSpec::default()
            },
            1,
        ))
    };
    match &level.access {
        Access::Full { distribution } => {
            Ok(match place::distribution(distribution.as_ref(), row, row.zone, context)? {
                Distribution::Nothing => Opened::Nothing,
                Distribution::Key(key) => everything(Some(key)),
                Distribution::Unknown => everything(None),
            })
        }
        Access::Primary(access) | Access::Unique(access) => {
            let unique = matches!(level.access, Access::Unique(_)).then_some(access.index);
            match lookup(access, unique, row, context)? {
                Some(opened) => Ok(opened),
                None if source.schema().indexes[access.index].is_ordered() => {
                    open_ranges(access, level, source, row, context, limit_hint, &leaves)
                }
                None => Ok(everything(None)),
            }
        }
        Access::Range(access) => open_ranges(access, level, source, row, context, limit_hint, &leaves),
        Access::Skip(access) => {
            let distribution = match place::distribution(access.access.distribution.as_ref(), row, row.zone, context)? {
                Distribution::Nothing => return Ok(Opened::Nothing),
                Distribution::Key(key) => Some(key),
                Distribution::Unknown => None,
            };
            match everything(distribution) {
                Opened::Scans(mut scans) => skip::open(access, source, scans.remove(0), row, context),
                _ => unreachable!("a scan of everything is one"),
            }
        }
        Access::Merge(access) if access.way == MergeWay::Intersect => {
            open_common(access, level, source, row, context, limit_hint, &leaves)
        }
        Access::Merge(access) => match everything(None) {
            Opened::Scans(mut scans) => merge::open(access, source, scans.remove(0), row, context),
            _ => unreachable!("a scan of everything is one"),
        },
        Access::Text(access) => match everything(None) {
            Opened::Scans(mut scans) => search::open(access, source, scans.remove(0), row, context),
            _ => unreachable!("a scan of everything is one"),
        },
        Access::Virtual { .. } | Access::Rows => {
            unreachable!("rows of virtual tables and queries are read from a buffer")
        }
    }
}

/// The scans of an index's ranges.
fn open_ranges(
    access: &IndexAccess,
    level: &Level,
    source: &Source,
    row: &Joined<'_>,
    context: &mut Context,
    limit_hint: Option<u64>,
    leaves: &Option<Arc<[bool]>>,
) -> Result<Opened, MysqlError> {
    let lock = lock_of(level, context);
    let distribution = match place::distribution(access.distribution.as_ref(), row, row.zone, context)? {
        Distribution::Nothing => return Ok(Opened::Nothing),
        Distribution::Key(key) => Some(key),
        Distribution::Unknown => None,
    };
    let mut ranges = keys::ranges(access, row, context)?;
    if access.reverse {
        ranges.reverse();
    }
    let index = source.schema().indexes[access.index].id;
    let scans: SmallVec<[ScanSpec; 1]> = ranges
        .into_iter()
        .map(|KeyRange { low, high }| ScanSpec {
            index: Some(index),
            low: if low.is_empty() { Bound::Unbounded } else { Bound::Included(low) },
            high: high.map_or(Bound::Unbounded, Bound::Excluded),
            reverse: access.reverse,
            ordered: access.ordered,
            ordered_if_small: level.key_order && !access.reverse,
            lock,
            distribution: distribution.clone(),
            leaves: leaves.clone(),
            limit_hint,
            covering: level.covering.clone().filter(|_| lock.is_none()),
            unread: level.unread.clone(),
            ..ScanSpec::default()
        })
        .collect();
    Ok(if scans.is_empty() { Opened::Nothing } else { Opened::Scans(scans) })
}

/// The scan of the rows that have a whole key in each of several indexes.
fn open_common(
    access: &MergeAccess,
    level: &Level,
    source: &Source,
    row: &Joined<'_>,
    context: &mut Context,
    limit_hint: Option<u64>,
    leaves: &Option<Arc<[bool]>>,
) -> Result<Opened, MysqlError> {
    let [first, others @ ..] = access.parts.as_slice() else { unreachable!("a merge has parts") };
    let opened = open_ranges(first, level, source, row, context, limit_hint, leaves)?;
    let Opened::Scans(mut scans) = opened else { return Ok(opened) };
    let mut also = Vec::with_capacity(others.len());
    for part in others {
        let mut key = Vec::with_capacity(40);
        match keys::single_key(part, row, context, &mut key)? {
            SingleKey::Key => also.push((source.schema().indexes[part.index].id, key)),
            SingleKey::Nothing => return Ok(Opened::Nothing),
            // The condition is checked on the rows.
            SingleKey::Unknown => {}
        }
    }
    let mut key = Vec::with_capacity(40);
    if keys::single_key(first, row, context, &mut key)? == SingleKey::Key
        && let [scan] = scans.as_mut_slice()
    {
        scan.low = Bound::Included(key.clone());
        scan.high = Bound::Included(key);
        scan.also = also.into();
    }
    Ok(Opened::Scans(scans))
}

/// `None`: a value is not exactly one key.
fn lookup(
    access: &IndexAccess,
    unique: Option<usize>,
    row: &Joined<'_>,
    context: &mut Context,
) -> Result<Option<Opened>, MysqlError> {
    if access.condition.tuples.is_none() && access.condition.points() == 1 {
        let mut bytes = Vec::with_capacity(40);
        return Ok(match keys::single_key(access, row, context, &mut bytes)? {
            SingleKey::Key => Some(Opened::Keys { unique, keys: SmallVec::from_elem(SmallVec::from_vec(bytes), 1) }),
            SingleKey::Nothing => Some(Opened::Nothing),
            SingleKey::Unknown => None,
        });
    }
    Ok(match keys::points(access, row, context)? {
        Points::Unknown => None,
        Points::Keys(mut keys) => {
            if access.reverse {
                keys.reverse();
            }
            Some(Opened::Keys { unique, keys: keys.into_iter().map(SmallVec::from_vec).collect() })
        }
    })
}

/// Whether all conditions hold.
#[inline]
pub(crate) fn passes(filters: &[Expr], row: &Joined<'_>, context: &mut Context) -> Result<bool, MysqlError> {
    for filter in filters {
        if !filter.eval_bool(row, context)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads a row by a whole key of the primary key, or of the unique index at `unique`.
pub(crate) async fn get<R: Send>(
    txn: &mut rauk_node::Transaction,
    table: &TableHandle,
    unique: Option<usize>,
    key: &[u8],
    lock: Lock,
    visit: impl FnOnce(Option<rauk_types::RowView<'_>>) -> R + Send,
) -> Result<R, rauk_node::NodeError> {
    match unique {
        None => txn.get(table, key, lock, visit).await,
        Some(position) => {
            let index = table.schema().indexes[position].id;
            txn.get_unique(table, index, key, lock, visit).await
        }
    }
}

/// Reads a row that the statement wants to lock, if it meets the conditions. A row that has changed after the snapshot is a
/// conflict (1020) only if it meets them in the form that the snapshot has, or as it is now: as in a scan.
#[expect(clippy::too_many_arguments, reason = "a read and its conditions")]
pub(crate) async fn get_if<R: Send + Default>(
    txn: &mut rauk_node::Transaction,
    table: &TableHandle,
    unique: Option<usize>,
    key: &[u8],
    lock: Lock,
    context: &mut Context,
    meets: impl Fn(&rauk_types::RowView<'_>, &mut Context) -> Result<bool, MysqlError> + Send + Sync,
    visit: impl FnOnce(rauk_types::RowView<'_>, &mut Context) -> Result<R, MysqlError> + Send,
) -> Result<R, MysqlError> {
    let read = get(txn, table, unique, key, lock, |view| match view {
        Some(view) if meets(&view, context)? => visit(view, context),
        _ => Ok(R::default()),
    });
    match read.await {
        Err(NodeError::Changed { table: name }) => {
            let mut failed = None;
            let mut wants = |view: rauk_types::RowView<'_>| {
                meets(&view, context).unwrap_or_else(|error| {
                    failed = Some(error);
                    true
                })
            };
            let index = unique.map_or(IndexId::PRIMARY, |position| table.schema().indexes[position].id);
            // In a box: it is rare, and others' calls are not the larger for it.
            match Box::pin(txn.wants_changed(table, index, key, &mut wants)).await? {
                true => Err(failed.unwrap_or_else(|| NodeError::Changed { table: name }.into())),
                false => Ok(R::default()),
            }
        }
        other => other?,
    }
}

/// Whether the statement was killed.
pub(crate) fn is_interrupted(txn: &rauk_node::Transaction) -> bool {
    txn.options().interrupt.is_killed()
}

/// Lets other tasks run when evaluation has worked for long; 1317.
#[inline]
pub(crate) async fn give_way(txn: &rauk_node::Transaction, context: &mut Context) -> Result<(), MysqlError> {
    if !context.budget.is_due() {
        return Ok(());
    }
    context.budget.take_work();
    if is_interrupted(txn) {
        return Err(rauk_node::NodeError::Interrupted.into());
    }
    yield_now(context).await;
    Ok(())
}

/// Lets other tasks of the thread run.
pub(crate) async fn yield_now(context: &Context) {
    let give_way = context.budget.give_way;
    let mut yielded = false;
    std::future::poll_fn(|cx| {
        if yielded {
            return std::task::Poll::Ready(());
        }
        yielded = true;
        give_way(cx);
        std::task::Poll::Pending
    })
    .await;
}

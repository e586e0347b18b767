//! What a transaction has written, by replication group, and collecting it for an entry.
//!
//! A group's part of a transaction is one entry, whatever number of its partitions it is from. The guards of these are
//! taken one after another, and no two at a time. What was collected in the first stays as it is until the entry is
//! appended: the commit protocol has the transaction, so nobody but a new view takes its locks and writes away, and the
//! view is looked at again when the entry is appended (rule 45).

use super::group_rows::Parts;
use super::signal::Part;
use super::slot::Collected;
use super::{Cluster, Place, slot::Refused};
use crate::commit::group::yield_once;
use crate::executor::Class;
use crate::member::commit::Touched;
use crate::node::Node;
use bytes::Bytes;
use rauk_kernel::Write;
use rauk_log::record::CommitBuilder;
use rauk_types::row::sparse::read_sparse;
use rauk_types::{GroupId, PartitionId, RowView, TableId, TxnId, key};
use smallvec::SmallVec;
use std::sync::Arc;

/// A group where a transaction has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub group: GroupId,
    /// Who led it when the transaction first touched it.
    pub place: Place,
    /// In their order.
    pub parts: SmallVec<[Part; 2]>,
}

/// Puts together what is in one group, in the order of groups; sorts `touched` by partition. `None`: a group has had
/// another view since the transaction first touched it, so that some of its locks are gone.
pub fn by_group(cluster: &Cluster, touched: &mut [Touched]) -> Option<SmallVec<[Written; 1]>> {
    touched.sort_unstable_by_key(|t| t.partition);
    let mut groups: SmallVec<[Written; 1]> = SmallVec::new();
    for Touched { partition, place, undo_to, .. } in touched {
        let (group, part) =
            (cluster.group_of(*partition), Part { partition: PartitionId(*partition), undo_to: *undo_to });
        match groups.last_mut().filter(|last| last.group == group) {
            Some(last) if last.place == *place => last.parts.push(part),
            Some(_) => return None,
            None => groups.push(Written { group, place: *place, parts: SmallVec::from_slice(&[part]) }),
        }
    }
    Some(groups)
}

/// Whether these are partitions of the group, each once.
pub fn are_parts(cluster: &Cluster, group: GroupId, parts: &[Part]) -> bool {
    cluster.layout().groups().contains(&group.0)
        && !parts.is_empty()
        && parts.windows(2).all(|pair| pair[0].partition < pair[1].partition)
        && parts.iter().all(|part| cluster.layout().partitions_of(group).contains(&part.partition.0))
}

pub fn numbers(parts: &[Part]) -> Parts {
    parts.iter().map(|part| part.partition.0).collect()
}

/// Collects what the transaction has written in these partitions of one group, behind what it undoes there. `may`, asked under each guard: whether
/// its locks are there. No entry comes of it if one says no.
pub async fn collect(
    node: &Arc<Node>,
    txn: TxnId,
    parts: &[Part],
    may: impl Fn() -> bool + Sync,
) -> Result<Collected, Refused> {
    let mut builder = CommitBuilder::default();
    let mut has_chunks = false;
    for Part { partition, mut undo_to } in parts.iter().copied() {
        loop {
            let (builder, may, has_chunks) = (&mut builder, &may, &mut has_chunks);
            let collected = node.on_partition(partition.0, Class::Prepare, |p| {
                if !may() {
                    return Err(Refused);
                }
                if let Some(number) = undo_to.take() {
                    p.rollback_to(txn, number);
                }
                if p.has_ends() && !p.go_on_with(txn) {
                    return Ok(false);
                }
                p.seal_chunks(txn);
                *has_chunks |= p.has_chunks(txn);
                p.collect_writes(txn, &mut |table, write| add(node, builder, table, write));
                Ok(true)
            });
            if collected.await? {
                break;
            }
            yield_once().await;
        }
    }
    Ok(Collected { writes: Bytes::copy_from_slice(builder.payload()), parts: numbers(parts), has_chunks })
}

/// Adds what a transaction has written to a row.
pub(super) fn add(node: &Node, builder: &mut CommitBuilder, table: TableId, write: Write<'_>) {
    let info = node.tables.by_id(table).expect("a table is used under its metadata lock");
    match write {
        Write::Put { layout, row } => {
            let view = RowView::new(&info.schema, layout, row);
            builder.put(info.route.bucket_of_row(&view, &mut Vec::new()), table, layout, row);
        }
        Write::Sparse { layout, row } => {
            let key = read_sparse(row).expect("the partition has just written it").key;
            builder.put_sparse(info.route.bucket_of_key(key, key::hash(key)), table, layout, row);
        }
        Write::Delete { key } => builder.delete(info.route.bucket_of_key(key, key::hash(key)), table, key),
    }
}

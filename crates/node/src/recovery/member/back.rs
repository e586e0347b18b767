//! Going back to a cut (rules 29, 30): what a directory has of the cut that the cluster has gone back to, and making that all that it has.
//!
//! A group is *held* if the control plane counts this node among those that had the cut on disk, and the log still has
//! the stream up to the cut's entry. If a copy has taken its place since, the log is read up to where that began: the
//! cut may be on no other disk. Of a held group the rows are those that committed at or before the cut's time; whatever
//! committed later is passed over wherever it stands, also before the entry, and what is not decided before the entry
//! did not commit by then. Its stream ends with the cut's entry. Of any other group nothing is kept: it gets a copy.
//!
//! Checkpoints are published only when a cut covers them, so that the rows that restart begins with are never newer than the cut.
//!
//! The result is written as a checkpoint at once, with anchors behind the end of the log: what the log has before them counts no more, for ever. The manifest names the recovery; until it does, opening does all
//! of this again.

use super::{Back, MemberGroup, broken};
use crate::checkpoint::SLICE_ROWS;
use crate::error::NodeError;
use rauk_cluster::replica::{Contents, EntryId, LogRecord, Restored};
use rauk_kernel::{Partition, RowId};
use rauk_log::record::CommitBuilder;
use rauk_log::{CheckpointWriter, Manifest, RedoLog, Superblocks, checkpoint as files};
use rauk_types::{GroupId, TableId, Timestamp};

/// What one group goes back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    pub time: Timestamp,
    /// What committed later is passed over.
    pub newest: Timestamp,
    pub entry: EntryId,
    /// The control plane counts this node among the holders.
    pub holds: bool,
}

impl Goal {
    pub fn of(back: &Back<'_>, group: GroupId) -> Goal {
        let cut = &back.recovery.cut;
        let newest = if back.keeps_later { Timestamp::MAX } else { cut.time };
        Goal { time: cut.time, newest, entry: cut.entry(group), holds: cut.is_holder(group, back.node) }
    }

    /// How the replica goes on.
    pub fn restored(&self, held: bool) -> Option<Restored> {
        let at = self.entry.position;
        let (contents, stable, history) = match held {
            true if at.0 == 0 => return None,
            true => (Contents::Whole, at, vec![self.entry]),
            false => (Contents::Partial, Default::default(), Vec::new()),
        };
        Some(Restored { contents, stable, history, kept: Vec::new() })
    }
}

/// Makes what groups and partitions have now all that the directory has. `source`: the place among `partitions` of the
/// rows of a table that belong into a partition; `None`: there are none.
#[allow(clippy::too_many_arguments)] // the parts of a directory
pub(in crate::recovery) fn persist(
    superblocks: &Superblocks,
    log: &RedoLog,
    old: &Manifest,
    recovery: u64,
    groups: &[MemberGroup],
    partitions: &mut [Partition],
    tables: &[TableId],
    source: &dyn Fn(u16, TableId) -> Option<usize>,
) -> Result<Manifest, NodeError> {
    let redo_start = log.end_lsn();
    let mut builder = CommitBuilder::default();
    for group in groups {
        let Some(restored) = &group.restored else { continue };
        let anchor = LogRecord::Anchor {
            last: restored.history.last().copied().unwrap_or_default(),
            stable: restored.stable,
            history: restored.history.clone(),
            kept: Vec::new(),
            contents: restored.contents,
            state: group.table.encode(),
        };
        let bytes = postcard::to_stdvec(&anchor).map_err(|e| broken(&e.to_string()))?;
        builder.clear();
        builder.stream(group.group, &bytes);
        log.append(builder.payload())?;
    }
    let number = old.checkpoint + 1;
    let disk = superblocks.disk();
    let mut written = Vec::new();
    for file in 0..old.partitions {
        let mut writer = CheckpointWriter::create(disk, old.database, number, file)?;
        for table in tables {
            let Some(place) = source(file, *table) else { continue };
            let partition = &mut partitions[place];
            let mut next = Some(RowId(0));
            while let Some(from) = next {
                let mut failed = None;
                next = partition.checkpoint_slice(*table, from, SLICE_ROWS, &mut |layout, time, row| {
                    failed = failed.take().or(writer.put(*table, layout, time, row).err());
                });
                failed.map_or(Ok(()), Err)?;
            }
        }
        written.push(writer.finish()?);
    }
    log.flush()?;
    let mut manifest = Manifest {
        checkpoint: number,
        redo_start,
        redo_durable: log.durable_lsn(),
        last_time: log.last_time(),
        recovery,
        files: written,
        fenced: None,
        ..old.clone()
    };
    manifest.store(superblocks)?;
    if let Err(error) = files::remove_others(disk, number) {
        tracing::warn!(%error, "an old checkpoint could not be removed");
    }
    log.release_before(redo_start)?;
    Ok(manifest)
}

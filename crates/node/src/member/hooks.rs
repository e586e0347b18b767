//! What tests of a cluster may look at and switch off. Production has the default: everything on, nobody watching.

use rauk_types::{GroupId, Timestamp, View};
use std::sync::Arc;
use std::time::Duration;

/// Told of what this process does as a primary or a replica. Calls come in the middle of things: they must not block and not call back.
pub trait Observer: Send + Sync {
    /// An operation, a vote or an outcome of the group is answered from here now, after all checks (view, lease):
    /// called last before the answer goes out, to a client here as to another process.
    fn answered(&self, group: GroupId, view: View);

    /// A snapshot read of the partition is answered from this replica without asking the primary.
    fn answered_snapshot(&self, partition: u16, snapshot: Timestamp) {
        let _ = (partition, snapshot);
    }

    /// Asked before each thing that a step of a group wants done outside of the guard (messages, flushes, the end
    /// of the process): whether this thread is interrupted here, and another one does the rest later.
    fn leaves_actions(&self) -> bool {
        false
    }

    /// The redo log that is being opened lacks entries of the group's stream.
    fn hole(&self, group: GroupId) {
        let _ = group;
    }

    /// The rows of a group that others hold are to be forgotten here.
    fn orphaned(&self, group: GroupId) {
        let _ = group;
    }
}

/// Each is a check that the cluster's promises rest on. The simulator switches them off one at a time, to see that its checkers find what goes wrong then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Safeguards {
    /// A primary answers only while its lease holds (rule 15).
    pub lease: bool,
    /// A transaction goes on only in the view in which it first touched a partition (rules 5, 6).
    pub view: bool,
    /// Messages to or from another process of a node are dropped (rule 21).
    pub incarnation: bool,
    /// "Prepared" is said when the prepare is on every in-sync replica, not only here (rule 1).
    pub prepare_everywhere: bool,
    /// Followers and primary acknowledge what is on disk, not what they have received.
    pub sync_before_acknowledge: bool,
    /// Who is asked about a transaction that it does not know writes a fence first (rule 3).
    pub abort_fence: bool,
    /// Least times are above every snapshot that was read at (rule 10).
    pub max_read: bool,
    /// An operation that comes twice is done once.
    pub dedupe: bool,
    /// A follower that was struck while it was up is counted until it knows (rule 33).
    pub leaving: bool,
    /// A primary writes a cut when everything at or below it is decided (rule 27).
    pub cut_decided: bool,
    /// A cut is reported when it is on the disks of all in-sync replicas (rule 28).
    pub cut_durable: bool,
    /// Who goes back to a cut keeps nothing that committed after it (rule 29).
    pub cut_kept: bool,
    /// A checkpoint is published when a cut covers it (rule 30).
    pub cut_covers: bool,
    /// A process that had to cut the damaged end of its log says so when it registers (rule 37).
    pub doubtful_end: bool,
    /// A process that follows a fenced one says so, and keeps its memory (rule 34).
    pub memory_kept: bool,
    /// The last memory of a partition is waited for when it is silent (rule 35): the simulator's clusters are made so.
    pub silence: bool,
    /// A start is refused when a file lacks what the superblocks claim.
    pub claims: bool,
    /// A directory that does not know of its node's newest start is refused (rule 38).
    pub starts: bool,
    /// A primary that an in-sync member tells of a stable entry which it lacks ends its process (rule 38).
    pub lacking: bool,
    /// A group whose record could not be logged logs and acknowledges nothing more (rule 39).
    pub failed_slot: bool,
    /// Commits wait while cuts fall behind (rule 36).
    pub pacing: bool,
    /// Whoever enters a partition brings what the stream has said to the rows first (rule 50).
    pub adopted: bool,
    /// What was sent of a large transaction and is undone is taken back in the stream first (rule 65).
    pub taken_back: bool,
    /// A replica that cannot go on stops alone (rule 80). Off: its process ends, so that the simulator sees our own mistakes
    /// where nothing was damaged.
    pub stops_alone: bool,
}

impl Default for Safeguards {
    fn default() -> Self {
        Safeguards {
            lease: true,
            view: true,
            incarnation: true,
            prepare_everywhere: true,
            sync_before_acknowledge: true,
            abort_fence: true,
            max_read: true,
            dedupe: true,
            leaving: true,
            cut_decided: true,
            cut_durable: true,
            cut_kept: true,
            cut_covers: true,
            doubtful_end: true,
            memory_kept: true,
            silence: true,
            claims: true,
            starts: true,
            lacking: true,
            failed_slot: true,
            pacing: true,
            adopted: true,
            taken_back: true,
            stops_alone: true,
        }
    }
}

#[derive(Clone, Default)]
pub struct Hooks {
    pub safeguards: Safeguards,
    pub observer: Option<Arc<dyn Observer>>,
    /// How long rows of partitions that others hold are kept, if not as long as usual.
    pub orphaned_after: Option<Duration>,
}

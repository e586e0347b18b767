//! Directories that somebody has meddled with while no process ran there ([`crate::meddling`]).
//!
//! A start on such a directory either opens it, and then the checkers judge what the cluster has, or it is refused. A
//! refusal must name the file and the way out, and must have changed nothing: then the directory is put back as it was,
//! and the next start must open it. A process that ends while it opens leaves the question to the next one, unless it
//! has written something: then it had accepted what it found.
//!
//! A copy of a whole directory that was made while its newest process ran opens like the directory itself (rule 38). It is put back only while another in-sync replica knows an entry to be stable that the copy
//! lacks: then nothing may be lost.
use super::World;
use crate::cluster::network::Site;
use crate::disk::SimDisk;
use crate::meddling::{Image, Kind, Meddling};
use rand::rngs::SmallRng;
use rauk_cluster::Role;
use rauk_log::Superblocks;
use rauk_manage::group::ReplicationGroup;
use rauk_node::NodeError;
use rauk_types::{ErrorClass, GroupId, Member, Position};

/// What a directory was at or before the end of its process number so many.
pub(super) struct Copy {
    starts: u64,
    image: Image,
}

/// A directory as it was while its process ran, and how far the streams of that process reached then.
pub struct RunningCopy {
    process: Member,
    /// By partition: up to where its stream was known to be stable, and its last entry.
    ends: Vec<(Position, Position)>,
    image: Image,
}

impl World {
    /// Something happens to one file of a site without a process; `older`: its directory some time ago.
    pub fn damage_file(&self, site: Site, rng: &mut SmallRng, older: &Image) {
        let disk = self.disk(site);
        let Some(meddling) = Meddling::do_one(rng, &disk, older) else { return };
        let claimed = Superblocks::load(&disk.mount()).map(|superblocks| superblocks.claims().redo.0);
        if claimed.is_ok_and(|claimed| meddling.hides_an_end(claimed)) {
            return meddling.undo(&disk);
        }
        self.counts.add(match meddling.kind {
            Kind::Flip => "file flipped",
            Kind::Missing => "file missing",
            Kind::Short => "file shortened",
            Kind::Older | Kind::OlderDirectory => "file older",
        });
        self.counts.add(match meddling.path.split_once('/') {
            Some(("redo", _)) => "redo segment damaged",
            Some(("checkpoint", "manifest")) => "manifest damaged",
            Some(("checkpoint", _)) => "checkpoint damaged",
            None if meddling.path.starts_with("superblock") => "superblock damaged",
            _ => "another file damaged",
        });
        self.set_damaged(site, meddling);
    }

    /// Copies a site's directory, unless that has been done or it is damaged.
    pub fn copy_directory(&self, site: Site) {
        let disk = self.disk(site);
        let mut inner = self.inner.lock();
        let machine = inner.machines.get_mut(&site).expect("sites have machines");
        if machine.damaged.is_some() {
            return;
        }
        machine.copy.get_or_insert_with(|| Copy { starts: machine.starts, image: disk.image() });
    }

    /// Whether a site's directory has been copied, and a later process of its node has been registered.
    pub fn has_older_directory(&self, site: Site) -> bool {
        let inner = self.inner.lock();
        let machine = &inner.machines[&site];
        machine.copy.as_ref().is_some_and(|copy| copy.starts < machine.opened)
    }

    /// A site without a process gets its older directory back; the copy is used up.
    pub fn put_older_directory_back(&self, site: Site) {
        let disk = self.disk(site);
        let copy = self.inner.lock().machines.get_mut(&site).expect("sites have machines").copy.take();
        if let Some(copy) = copy {
            self.counts.add("directory older");
            self.set_damaged(site, Meddling::put_back(&disk, &copy.image));
        }
    }

    /// Copies a site's directory while its process runs.
    pub fn copy_running_directory(&self, site: Site) -> Option<RunningCopy> {
        let db = self.database(site)?;
        let member = db.member()?;
        let end = |group: usize| {
            let state = member.slot(GroupId(group as u16)).state.lock();
            (state.replica.stable(), state.replica.last().position)
        };
        let ends = (0..self.consensus.group().replication_groups.len()).map(end).collect();
        Some(RunningCopy { process: member.me(), ends, image: self.disk(site).image() })
    }

    /// Whether the process that was copied still runs, and in each of its partitions nothing was written since, or another in-sync replica knows an entry to be stable that the copy lacks, while all
    /// in-sync replicas have everything. So nothing is lost if that one is heard.
    pub fn others_know_what_lacks(&self, site: Site, copy: &RunningCopy) -> bool {
        let open: Vec<_> = self.members().into_iter().filter_map(|site| self.database(site)).collect();
        let cluster = |wanted: Member| {
            let mut members = open.iter().filter_map(|db| db.member());
            members.find(|member| member.me() == wanted)
        };
        let knows = |(group, state): (usize, &ReplicationGroup)| {
            let replica = |member: Member| {
                let state = cluster(member)?.slot(GroupId(group as u16)).state.lock();
                Some((state.replica.role(), state.replica.stable(), state.replica.last().position))
            };
            let Some((Role::Primary, stable, _)) = state.primary.and_then(replica) else { return false };
            let all = |member: &Member| replica(*member).is_some_and(|(_, _, last)| last >= stable);
            let (then, end) = copy.ends[group];
            let other = |member: &Member| {
                *member != copy.process && replica(*member).is_some_and(|(_, stable, _)| stable > end)
            };
            let same = replica(copy.process).is_some_and(|(_, _, last)| then == end && last == end);
            let holds = state.in_sync.contains(&copy.process);
            state.in_sync.iter().all(all) && (!holds || same || state.in_sync.iter().any(other))
        };
        let runs = self.database(site).and_then(|db| db.member().map(|member| member.me())) == Some(copy.process);
        runs && self.consensus.group().replication_groups.iter().enumerate().all(knows)
    }

    /// A site without a process gets its directory back as it was while that process ran.
    pub fn put_running_directory_back(&self, site: Site, copy: &RunningCopy) {
        self.counts.add("copied directory put back");
        self.set_damaged(site, Meddling::put_back(&self.disk(site), &copy.image));
    }

    fn set_damaged(&self, site: Site, meddling: Meddling) {
        let mut inner = self.inner.lock();
        let machine = inner.machines.get_mut(&site).expect("sites have machines");
        assert!(machine.life.is_none(), "{site:?} runs");
        // One at a time: what is damaged already is put back before.
        let before = machine.damaged.replace(meddling);
        assert!(before.is_none(), "{site:?} is damaged already");
    }

    /// Whether nobody has meddled with a site's directory, or the start since has judged it.
    pub fn is_undamaged(&self, site: Site) -> bool {
        self.inner.lock().machines[&site].damaged.is_none()
    }

    /// The node has opened: the damage did no harm, or the checkers find what it did.
    pub(super) fn opened_damaged(&self, site: Site) {
        let mut inner = self.inner.lock();
        let machine = inner.machines.get_mut(&site).expect("sites have machines");
        machine.opened = machine.starts;
        if machine.damaged.take().is_some() {
            self.counts.add("damage accepted");
        }
    }

    /// The process ends without having opened or been refused, as far as is known.
    pub(super) fn ended_damaged(&self, site: Site, disk: &SimDisk) {
        let mut inner = self.inner.lock();
        let machine = inner.machines.get_mut(&site).expect("sites have machines");
        if machine.damaged.as_ref().is_some_and(|meddling| !meddling.is_untouched(disk)) {
            machine.damaged = None;
        }
    }

    /// The node has not opened. Whether that is what a damaged directory is for: then it is put back.
    pub(super) fn refused_damaged(&self, site: Site, error: &NodeError) -> bool {
        if matches!(error.class(), ErrorClass::Temporary | ErrorClass::UnknownOutcome) {
            return false;
        }
        let (meddling, disk) = {
            let mut inner = self.inner.lock();
            let machine = inner.machines.get_mut(&site).expect("sites have machines");
            (machine.damaged.take(), machine.disk.clone())
        };
        let Some(meddling) = meddling else { return false };
        meddling.check_refusal(&error.to_string(), &disk);
        meddling.undo(&disk);
        self.counts.add(match meddling.kind {
            Kind::OlderDirectory => "older directory refused",
            _ => "damaged file refused",
        });
        true
    }
}

//! The redo log, its checkpoints' manifests and files under a seed: lives of a program that appends, flushes, checkpoints and ends in all sorts of ways, and after each the question whether the log
//! gives back what it must.
//!
//! What is checked at every opening:
//! - it opens, unless the disk stopped, failed or was full while it did;
//! - the manifest is the last one stored, or the one whose storing was interrupted, and the checkpoint that it names can be read and holds what was written;
//! - the records from the manifest's start on are a prefix of those appended, byte for byte, with their times and positions;
//! - none is missing whose flush had returned, or that an earlier opening had given back;
//! - times grow, and go on above all that were there.
//!
//! Between two lives somebody may meddle with one file ([`crate::meddling`]). Then the start gives what it must or is refused, and only records beyond the superblocks' last claim may be lost, by a
//! flipped bit only if the end of the log is called doubtful.
use crate::clock::SimClock;
use crate::crash::{Plan, arm, end_life};
use crate::disk::SimDisk;
#[cfg(test)]
use crate::meddling::{Kind, Meddling};
use crate::trace::Trace;
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use rauk_log::checkpoint::{RowsFile, remove_others};
use rauk_log::{
    CheckpointReader, CheckpointWriter, DatabaseId, Disk, LogError, Lsn, Manifest, RedoLog, RedoOptions, RedoReader,
    Superblocks,
};
use rauk_types::{TableId, Timestamp};
use std::sync::Arc;

const ID: DatabaseId = DatabaseId([9; 16]);
const PARTITIONS: u16 = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    start: Lsn,
    end: Lsn,
    time: Option<u64>,
    payload: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub lives: u64,
    pub records: u64,
    pub recovered: u64,
    pub checkpoints: u64,
    pub trace: u64,
}

/// A whole simulation.
pub struct LogRun {
    rng: SmallRng,
    disk: SimDisk,
    segment_bytes: u64,
    /// Everything appended since `manifest.redo_start`, as far as it may still be there.
    records: Vec<Record>,
    /// So many of them must be there.
    certain: usize,
    /// The superblocks claim the log up to here, at least.
    claimed: Lsn,
    /// In force for certain.
    manifest: Option<Manifest>,
    /// May be in force.
    maybe: Option<Manifest>,
    newest_time: u64,
    trace: Trace,
    summary: Summary,
}

/// The program ended because of what the plan had set up.
#[derive(Debug)]
struct Ended;

impl LogRun {
    pub fn new(seed: u64) -> LogRun {
        let mut rng = SmallRng::seed_from_u64(seed);
        let disk = SimDisk::new(rng.next_u64(), SimClock::default());
        let segment_bytes = [8 << 10, 16 << 10, 64 << 10][rng.random_range(0..3)];
        LogRun {
            rng,
            disk,
            segment_bytes,
            records: Vec::new(),
            certain: 0,
            claimed: Lsn(0),
            manifest: None,
            maybe: None,
            newest_time: 0,
            trace: Trace::default(),
            summary: Summary::default(),
        }
    }

    /// Runs `lives` lives with random ends, and a calm one that checks the last.
    pub fn run(mut self, lives: u64) -> Summary {
        for _ in 0..lives {
            let plan = Plan::draw(&mut self.rng, 150);
            let steps = self.rng.random_range(0..60);
            let limit = self.rng.random_bool(0.2).then(|| self.disk.used() + self.rng.random_range(0..100_000));
            self.disk.set_limit(limit);
            self.life(plan, steps);
        }
        self.disk.set_limit(None);
        self.life(Plan::Calm, 10);
        self.summary.trace = self.trace.value();
        self.summary
    }

    /// One life under a plan; gives whether the plan came true in it.
    pub fn life(&mut self, plan: Plan, steps: u64) -> bool {
        self.summary.lives += 1;
        self.trace.add(self.summary.lives);
        let armed = arm(plan, &self.disk);
        let ended = match self.open() {
            Ok((log, superblocks)) => self.work(log, &superblocks, steps).is_err(),
            Err(Ended) => true,
        };
        drop(armed);
        end_life(&mut self.rng, &self.disk);
        ended
    }

    /// An error is in order if the plan brought it about, or the disk is full.
    fn allow<T>(&self, result: Result<T, LogError>, plan: &str) -> Result<T, Ended> {
        result.map_err(|error| {
            let expected = matches!(error, LogError::DiskFull(_))
                || self.disk.is_stopped()
                || error.to_string().contains("write failed")
                || error.to_string().contains("sync failed");
            assert!(expected, "{plan}: {error}");
            Ended
        })
    }

    fn options(&self) -> RedoOptions {
        RedoOptions { segment_bytes: self.segment_bytes, database: ID }
    }

    fn open(&mut self) -> Result<(RedoLog, Arc<Superblocks>), Ended> {
        let disk = self.disk.mount();
        let superblocks = Arc::new(self.allow(Superblocks::load(&disk), "loading the superblocks")?);
        let found = self.allow(Manifest::load(&superblocks), "loading the manifest")?;
        assert!(found == self.manifest || (found.is_some() && found == self.maybe), "the manifest is an unknown one");
        // It was made durable by loading it.
        self.adopt_manifest(found);
        let manifest = match self.manifest.clone() {
            Some(manifest) => manifest,
            None => {
                self.store(&superblocks, Manifest::new(ID, PARTITIONS, "fsync"))?;
                self.manifest.clone().expect("just stored")
            }
        };
        self.allow(read_checkpoint(&disk, &manifest), "reading the checkpoint")?;
        self.allow(remove_others(&disk, manifest.checkpoint), "removing old checkpoints")?;
        let reader = RedoReader::open(&superblocks, self.options(), manifest.redo_start, manifest.redo_durable);
        let mut reader = self.allow(reader, "opening the log")?;
        let read = self.allow(read_records(&mut reader), "reading the log")?;
        assert!(read.len() >= self.certain, "{} records came back, {} were durable", read.len(), self.certain);
        assert!(
            read.len() <= self.records.len(),
            "{} records came back, {} were there",
            read.len(),
            self.records.len()
        );
        for (i, (read, written)) in read.iter().zip(&self.records).enumerate() {
            assert_eq!(read, written, "record {i}");
        }
        let log = reader.into_log(manifest.last_time);
        let log = self.allow(log, "going on with the log")?;
        self.records.truncate(read.len());
        self.certain = read.len();
        self.summary.recovered += read.len() as u64;
        self.trace.add(read.len() as u64);
        let newest = self.records.iter().filter_map(|r| r.time).max().unwrap_or(0).max(manifest.last_time.0);
        assert_eq!(log.last_time(), Timestamp(newest));
        assert_eq!(log.durable_time(), Timestamp(newest));
        self.newest_time = newest;
        Ok((log, superblocks))
    }

    /// A start on a directory that somebody has meddled with, up to where it would begin to write. Gives the records that it finds.
    #[cfg(test)]
    fn look(&self, superblocks: Superblocks) -> Result<Look, LogError> {
        let superblocks = Arc::new(superblocks);
        let manifest = Manifest::load(&superblocks)?;
        let Some(manifest) = manifest else { return Ok(Look::default()) };
        read_checkpoint(superblocks.disk(), &manifest)?;
        let mut reader = RedoReader::open(&superblocks, self.options(), manifest.redo_start, manifest.redo_durable)?;
        let records = read_records(&mut reader)?;
        Ok(Look { records, doubtful: reader.doubtful_end().is_some(), manifest: Some(manifest) })
    }

    /// What a start with this result has lost silently, if anything.
    #[cfg(test)]
    fn lost(&self, found: &Look, meddling: &Meddling) -> Option<String> {
        let known = [&self.manifest, &self.maybe];
        if found.manifest.is_none() && self.manifest.is_some() || !known.contains(&&found.manifest) {
            return Some(format!("the manifest is {:?}", found.manifest));
        }
        // Where the manifest is the one that was being stored, its redo begins later.
        let start = found.manifest.as_ref().map_or(Lsn(0), |m| m.redo_start);
        let mut written = self.records.iter().enumerate().filter(|(_, record)| record.start >= start);
        for (i, record) in found.records.iter().enumerate() {
            if written.next().is_none_or(|(_, wanted)| wanted != record) {
                return Some(format!("record {i} is not what was written"));
            }
        }
        let (i, record) = written.next().filter(|(i, _)| *i < self.certain)?;
        let beyond = record.end > self.claimed && (meddling.kind != Kind::Flip || found.doubtful);
        (!beyond).then(|| format!("record {i}, which ends at {:?}, claimed {:?}", record.end, self.claimed))
    }

    fn work(&mut self, log: RedoLog, superblocks: &Arc<Superblocks>, steps: u64) -> Result<(), Ended> {
        for _ in 0..steps {
            match self.rng.random_range(0..22) {
                0..=10 => self.append(&log)?,
                11..=17 => self.flush(&log)?,
                18 => self.checkpoint(&log, superblocks)?,
                19..=20 => {
                    let durable = log.durable_lsn();
                    self.allow(log.claim(), "claiming")?;
                    self.claimed = if superblocks.claims().redo >= durable { durable } else { self.claimed };
                }
                _ => {
                    // A size that the next start has.
                    self.segment_bytes = [8 << 10, 16 << 10, 64 << 10][self.rng.random_range(0..3)];
                }
            }
        }
        if steps > 0 && self.rng.random_bool(0.3) {
            // Stopped in order.
            self.flush(&log)?;
            self.allow(log.claim_all(), "claiming")?;
            self.claimed = superblocks.claims().redo;
        }
        Ok(())
    }

    fn append(&mut self, log: &RedoLog) -> Result<(), Ended> {
        let length = match self.rng.random_range(0..20) {
            0 => 0,
            1 => self.rng.random_range(0..30_000),
            2..=5 => self.rng.random_range(0..4000),
            _ => self.rng.random_range(1..300),
        };
        let mut payload = vec![0; length];
        self.rng.fill_bytes(&mut payload);
        let before = log.end_lsn();
        let appended = if self.rng.random_bool(0.9) {
            let newest = self.newest_time;
            log.append_commit(&payload, |time| assert!(time.0 > newest)).map(|a| (a, Some(a.time.0)))
        } else {
            log.append(&payload).map(|a| (a, None))
        };
        match appended {
            Ok((appended, time)) => {
                self.newest_time = time.unwrap_or(self.newest_time);
                self.summary.records += 1;
                self.trace.add(appended.end.0);
                self.records.push(Record { start: appended.start, end: appended.end, time, payload });
                assert_eq!(log.last_time(), Timestamp(self.newest_time));
                Ok(())
            }
            Err(LogError::DiskFull(_)) => {
                assert_eq!(log.end_lsn(), before, "nothing was appended");
                Ok(())
            }
            Err(error) => self.allow(Err(error), "appending"),
        }
    }

    fn flush(&mut self, log: &RedoLog) -> Result<(), Ended> {
        let result = log.flush();
        // Whatever the result, what is called durable must be.
        let durable = log.durable_lsn();
        self.certain = self.certain.max(self.records.iter().filter(|r| r.end <= durable).count());
        let newest = self.records.iter().filter(|r| r.end <= durable).filter_map(|r| r.time).max();
        assert!(newest.is_none_or(|newest| log.durable_time().0 == newest), "durable time and position agree");
        if self.allow(result, "flushing")? {
            assert_eq!(self.certain, self.records.len());
        }
        Ok(())
    }

    fn checkpoint(&mut self, log: &RedoLog, superblocks: &Superblocks) -> Result<(), Ended> {
        let disk = self.disk.mount();
        let mut files = Vec::new();
        let number = self.manifest.as_ref().map_or(0, |m| m.checkpoint) + 1;
        let redo_start = log.end_lsn();
        let last_time = log.last_time();
        for partition in 0..PARTITIONS {
            match write_checkpoint(&disk, number, partition) {
                Ok(file) => files.push(file),
                Err(LogError::DiskFull(_)) => return Ok(()),
                Err(error) => return self.allow(Err(error), "writing a checkpoint"),
            }
            if self.rng.random_bool(0.5) {
                self.append(log)?;
            }
        }
        self.flush(log)?;
        let manifest = Manifest {
            checkpoint: number,
            redo_start,
            redo_durable: log.durable_lsn(),
            last_time,
            counters: vec![(TableId(1), number)],
            files,
            ..Manifest::new(ID, PARTITIONS, "fsync")
        };
        // If it failed the program would stop or try again with another number, so let it end here.
        self.store(superblocks, manifest)?;
        self.summary.checkpoints += 1;
        match log.release_before(redo_start) {
            Err(LogError::DiskFull(_)) => {}
            released => self.allow(released, "releasing segments")?,
        }
        let removed = remove_others(&disk, number);
        self.allow(removed, "removing old checkpoints").map(drop)
    }

    fn store(&mut self, superblocks: &Superblocks, mut manifest: Manifest) -> Result<(), Ended> {
        let result = manifest.store(superblocks);
        self.maybe = Some(manifest.clone());
        self.allow(result, "storing the manifest")?;
        self.adopt_manifest(Some(manifest));
        Ok(())
    }

    fn adopt_manifest(&mut self, manifest: Option<Manifest>) {
        let start = manifest.as_ref().map_or(Lsn(0), |m| m.redo_start);
        let before = self.records.iter().take_while(|r| r.start < start).count();
        self.records.drain(..before);
        self.certain = self.certain.saturating_sub(before);
        self.manifest = manifest;
        self.maybe = None;
    }
}

/// What a start finds.
#[cfg(test)]
#[derive(Default)]
struct Look {
    manifest: Option<Manifest>,
    records: Vec<Record>,
    doubtful: bool,
}

fn read_records(reader: &mut RedoReader) -> Result<Vec<Record>, LogError> {
    let mut read = Vec::new();
    while let Some(entry) = reader.next()? {
        let time = entry.time.map(|t| t.0);
        read.push(Record { start: entry.start, end: entry.end, time, payload: entry.payload.to_vec() });
    }
    Ok(read)
}

fn read_checkpoint(disk: &Arc<dyn Disk>, manifest: &Manifest) -> Result<(), LogError> {
    if manifest.checkpoint == 0 {
        return Ok(());
    }
    for partition in 0..manifest.partitions {
        let mut reader = CheckpointReader::open(disk, manifest, partition)?;
        let mut expected = checkpoint_rows(manifest.checkpoint, partition);
        while let Some(row) = reader.next()? {
            let wanted = expected.next().expect("no more rows than were written");
            assert_eq!((row.time.0, row.row), (wanted.0, &wanted.1[..]));
        }
        assert!(expected.next().is_none(), "all rows");
    }
    Ok(())
}

/// The rows that a checkpoint has: a function of its number, so that the model need not keep them.
fn checkpoint_rows(number: u64, partition: u16) -> impl Iterator<Item = (u64, Vec<u8>)> {
    (0..number % 5 * 40).map(move |i| (i + 1, vec![(number + i) as u8; (i * 13 % 97) as usize + partition as usize]))
}

fn write_checkpoint(disk: &Arc<dyn Disk>, number: u64, partition: u16) -> Result<RowsFile, LogError> {
    let mut writer = CheckpointWriter::create(disk, ID, number, partition)?;
    for (time, row) in checkpoint_rows(number, partition) {
        writer.put(TableId(1), 0, Timestamp(time), &row)?;
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::points_met;
    use rauk_log::fault;
    use std::collections::BTreeMap;

    #[test]
    fn seeds() {
        for seed in 0..400 {
            LogRun::new(seed).run(12);
        }
    }

    #[test]
    fn same_seed_same_trace() {
        let summary = LogRun::new(5).run(20);
        assert_eq!(LogRun::new(5).run(20), summary);
        assert_ne!(LogRun::new(6).run(20).trace, summary.trace);
        assert!(summary.recovered > 0 && summary.checkpoints > 0);
    }

    /// The machine stops within every single disk operation, and at every fault point met, of one life after another.
    #[test]
    fn every_operation_and_every_point() {
        for seed in 0..3 {
            for plan in [Plan::Operation as fn(u64) -> Plan, Plan::Point] {
                let mut at = 1;
                loop {
                    let mut run = LogRun::new(seed);
                    run.life(Plan::Calm, 25);
                    let ended = run.life(plan(at), 40);
                    run.life(Plan::Calm, 5);
                    run.life(Plan::Calm, 0);
                    if !ended {
                        break;
                    }
                    at += 1;
                }
                assert!(at > 50, "{at} places only");
            }
        }
        let met = points_met();
        // The node's own points of checkpoints are not met here, and rarely are more than eight segments free.
        let elsewhere = [
            "checkpoint.begin",
            "checkpoint.after_rows",
            "checkpoint.after_manifest",
            "redo.release.before_remove",
            "redo.segment.before_upgrade",
        ];
        let ours = |point: &str| {
            ["redo.", "checkpoint.", "replace.", "superblock."].iter().any(|part| point.starts_with(part))
        };
        let missing: Vec<_> =
            fault::ALL.iter().filter(|p| ours(p) && !elsewhere.contains(p) && !met.contains_key(*p)).collect();
        assert!(missing.is_empty(), "fault points that no simulation meets: {missing:?}");
    }

    /// How starts after a meddling ended: refused, with everything, without records beyond the claim; and what was lost silently.
    #[derive(Default)]
    struct Ends {
        refused: BTreeMap<Kind, u64>,
        whole: BTreeMap<Kind, u64>,
        cut: u64,
        lost: Vec<String>,
    }

    fn meddle(seeds: std::ops::Range<u64>, ignores_claims: bool) -> Ends {
        let mut ends = Ends::default();
        for seed in seeds {
            let mut run = LogRun::new(seed);
            run.life(Plan::Calm, 40);
            let older = run.disk.image();
            run.life(Plan::Calm, 30);
            if seed % 3 == 0 {
                let plan = Plan::draw(&mut run.rng, 150);
                run.life(plan, 30);
            }
            let Some(meddling) = Meddling::do_one(&mut run.rng, &run.disk, &older) else { continue };
            let kind = meddling.kind;
            let disk = run.disk.mount();
            let superblocks = Superblocks::load(&disk).map(|s| if ignores_claims { s.ignoring_claims() } else { s });
            match superblocks.and_then(|superblocks| run.look(superblocks)) {
                Err(error) => {
                    meddling.check_refusal(&error, &run.disk);
                    meddling.undo(&run.disk);
                    *ends.refused.entry(kind).or_default() += 1;
                }
                Ok(found) => match run.lost(&found, &meddling) {
                    Some(what) => {
                        ends.lost.push(format!("seed {seed}, {} {kind:?}: {what}", meddling.path));
                        meddling.undo(&run.disk);
                    }
                    None if found.records.len() < run.certain && found.manifest == run.manifest => {
                        ends.cut += 1;
                        run.certain = found.records.len();
                    }
                    None => *ends.whole.entry(kind).or_default() += 1,
                },
            }
            if ignores_claims {
                meddling.undo(&run.disk);
            }
            run.life(Plan::Calm, 10);
            run.life(Plan::Calm, 0);
        }
        ends
    }

    /// One file is damaged, missing, shortened or an older copy: the start says so, or gives back the right records; at most records beyond the claim are gone.
    #[test]
    fn meddling_is_refused_or_harmless() {
        let ends = meddle(0..1500, false);
        assert!(ends.lost.is_empty(), "{:#?}", ends.lost);
        let all = |ends: &BTreeMap<Kind, u64>| ends.len() == 4 && ends.values().all(|n| *n > 10);
        assert!(all(&ends.refused) && all(&ends.whole), "refused {:?}, whole {:?}", ends.refused, ends.whole);
        assert!(ends.cut > 0, "records beyond the claim are cut now and then");
    }

    /// With the claims ignored the checker finds what they are for.
    #[test]
    fn without_claims_records_are_lost() {
        let ends = meddle(0..400, true);
        let lost = |kind: &str| ends.lost.iter().any(|what| what.contains(kind));
        assert!(lost("redo") && lost("Flip") && lost("Missing") && lost("Older"), "{:#?}", ends.lost);
    }
}

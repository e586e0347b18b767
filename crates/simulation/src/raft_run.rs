//! The files of the manage group's consensus under a seed: votes, entries, truncations, snapshots, purges, and ends of all sorts, within any operation.
//!
//! After each end, what was acknowledged is there, and at most what was being written besides. The newest entry is written
//! to two files at the same time ([`rauk_raft::files`]); the disk draws the order of both threads' operations.
//! Between two lives somebody may meddle with a file ([`crate::meddling`]), after an orderly end or not: then the start
//! gives everything, or is refused with the place and the way out, and works when the file has been put back.
//!
//! What is not here: messages and elections (`cluster`, where consensus is a model; the tests of crate `raft`, with
//! openraft itself), and a whole directory that is older, which its own files cannot tell.
use crate::clock::SimClock;
use crate::crash::{Plan, arm, end_life};
use crate::disk::SimDisk;
use crate::meddling::{Image, Meddling};
use crate::trace::Trace;
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use rauk_log::LogError;
use rauk_raft::files::{Contents, Files, Item};

pub struct RaftRun {
    rng: SmallRng,
    disk: SimDisk,
    /// What must be there.
    wanted: Contents,
    /// What may be there instead: something was being written.
    maybe: Option<Contents>,
    term: u64,
    ignores_claims: bool,
    /// The directory at the end of some earlier life.
    older: Image,
    /// One file has been meddled with, and the start gave everything. Once a run: a second one would meet what the first has left.
    meddled: bool,
    pub counts: Counts,
    trace: Trace,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Starts on a directory that was meddled with.
    pub refused: u64,
    pub whole: u64,
    /// Ends within something that was written, which the next start found done.
    pub done: u64,
    pub undone: u64,
}

impl RaftRun {
    pub fn new(seed: u64) -> RaftRun {
        RaftRun::with(seed, false)
    }

    /// `ignores_claims`: the safeguard is switched off.
    pub fn with(seed: u64, ignores_claims: bool) -> RaftRun {
        let mut rng = SmallRng::seed_from_u64(seed);
        let disk = SimDisk::new(rng.next_u64(), SimClock::default());
        RaftRun {
            rng,
            disk,
            wanted: Contents::default(),
            maybe: None,
            term: 1,
            ignores_claims,
            older: Image::new(),
            meddled: false,
            counts: Counts::default(),
            trace: Trace::default(),
        }
    }

    /// Runs so many lives and a calm one; gives the trace.
    pub fn run(&mut self, lives: u64) -> u64 {
        for _ in 0..lives {
            // A copy of what was there, not of what was being written: that may have gone again without ever having been acknowledged.
            if self.maybe.is_none() && self.rng.random_bool(0.4) {
                self.older = self.disk.image();
            }
            let plan = Plan::draw(&mut self.rng, 60);
            let limit = self.rng.random_bool(0.15).then(|| self.disk.used() + self.rng.random_range(0..4000));
            self.disk.set_limit(limit);
            self.life(plan, 14);
            self.disk.set_limit(None);
            if !self.meddled && self.rng.random_bool(0.5) {
                self.meddle();
            }
        }
        self.life(Plan::Calm, 0);
        self.trace.value()
    }

    /// One life; gives whether the plan ended it.
    pub fn life(&mut self, plan: Plan, steps: u64) -> bool {
        let armed = arm(plan, &self.disk);
        let ended = self.work(steps).is_err();
        drop(armed);
        end_life(&mut self.rng, &self.disk);
        ended
    }

    fn work(&mut self, steps: u64) -> Result<(), ()> {
        let files = self.allow(Files::open(&self.disk.mount(), self.ignores_claims))?;
        self.check(&files);
        if self.wanted.node.is_none() {
            let wanted = Contents { node: Some(4), ..self.wanted.clone() };
            self.write(wanted, || files.save_identity(4))?;
        }
        for _ in 0..steps {
            self.step(&files)?;
        }
        Ok(())
    }

    fn check(&mut self, files: &Files) {
        let found = files.contents();
        if found != self.wanted {
            assert_eq!(Some(&found), self.maybe.as_ref(), "neither what was there nor what was being written");
            self.counts.done += 1;
            self.wanted = found;
        } else if self.maybe.is_some() {
            self.counts.undone += 1;
        }
        // What a start has shown stays.
        self.maybe = None;
        self.trace.add(self.wanted.entries.last().map_or(0, |item| item.tag));
    }

    fn step(&mut self, files: &Files) -> Result<(), ()> {
        let mut wanted = self.wanted.clone();
        let next = wanted.entries.last().map(|item| item.index).or(wanted.purged).map_or(0, |index| index + 1);
        match self.rng.random_range(0..10) {
            0..=3 => {
                let most = if self.rng.random_bool(0.1) { 40 } else { 4 };
                let count = self.rng.random_range(1..=most);
                let items: Vec<Item> = (next..next + count)
                    .map(|index| Item { term: self.term, index, tag: self.rng.next_u64() })
                    .collect();
                wanted.entries.extend(&items);
                self.write(wanted, || files.append(&items))
            }
            // Another leader's entries will take their place.
            4 if !wanted.entries.is_empty() => {
                let at = self.rng.random_range(0..wanted.entries.len());
                let index = wanted.entries[at].index;
                wanted.entries.truncate(at);
                self.term += 1;
                self.write(wanted, || files.truncate(index))
            }
            5 | 6 => {
                self.term += self.rng.random_range(0..2);
                let vote = (self.term, self.rng.random_range(1..4));
                wanted.vote = Some(vote);
                self.write(wanted, || files.vote(vote.0, vote.1))
            }
            // A snapshot of what is in the log; sometimes the log is cut behind it.
            7 | 8 if !wanted.entries.is_empty() => {
                let at = self.rng.random_range(0..wanted.entries.len());
                let Item { term, index, .. } = wanted.entries[at];
                if wanted.snapshot.as_ref().is_some_and(|(last, _)| *last > index) {
                    return Ok(());
                }
                self.snapshot(files, term, index)?;
                if self.rng.random_bool(0.5) {
                    return Ok(());
                }
                wanted = self.wanted.clone();
                wanted.entries.drain(..=at);
                wanted.purged = Some(index);
                self.write(wanted, || files.purge(term, index))
            }
            // One from the leader, beyond all that is here.
            9 if self.rng.random_bool(0.3) => {
                let behind = wanted.snapshot.map_or(0, |(last, _)| last + 1);
                let (term, index) = (self.term, next.max(behind) + self.rng.random_range(0..5));
                self.snapshot(files, term, index)?;
                wanted = self.wanted.clone();
                wanted.entries.clear();
                wanted.purged = Some(index);
                self.write(wanted, || files.purge(term, index))
            }
            _ => Ok(()),
        }
    }

    fn snapshot(&mut self, files: &Files, term: u64, index: u64) -> Result<(), ()> {
        let (tag, sessions) = (self.rng.next_u64(), self.rng.random_range(0..60));
        let wanted = Contents { snapshot: Some((index, tag)), ..self.wanted.clone() };
        self.write(wanted, || files.replace_snapshot(term, index, tag, sessions))
    }

    /// Does it. An error ends the life, as it ends the process' part in Raft.
    fn write(&mut self, wanted: Contents, work: impl FnOnce() -> Result<(), LogError>) -> Result<(), ()> {
        self.maybe = Some(wanted.clone());
        self.allow(work())?;
        (self.wanted, self.maybe) = (wanted, None);
        Ok(())
    }

    fn allow<T>(&self, result: Result<T, LogError>) -> Result<T, ()> {
        result.map_err(|error| {
            let text = error.to_string();
            let expected = matches!(error, LogError::DiskFull(_)) || self.disk.is_stopped();
            assert!(expected || text.contains("write failed") || text.contains("sync failed"), "{error}");
        })
    }

    /// Somebody is at one file, and the process starts.
    fn meddle(&mut self) {
        let Some(meddling) = Meddling::do_one(&mut self.rng, &self.disk, &self.older) else { return };
        match Files::open(&self.disk.mount(), self.ignores_claims) {
            Err(error) => {
                meddling.check_refusal(&error.to_string(), &self.disk);
                meddling.undo(&self.disk);
                self.counts.refused += 1;
            }
            Ok(files) => {
                let found = files.contents();
                let there = found == self.wanted || Some(&found) == self.maybe.as_ref();
                assert!(there, "lost silently: {} {:?}", meddling.path, meddling.kind);
                self.check(&files);
                self.counts.whole += 1;
                self.meddled = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn seeds() {
        let mut all = Counts::default();
        for seed in 0..400 {
            let mut run = RaftRun::new(seed);
            run.run(12);
            all.refused += run.counts.refused;
            all.whole += run.counts.whole;
            all.done += run.counts.done;
            all.undone += run.counts.undone;
        }
        let least = all.refused.min(all.whole).min(all.done).min(all.undone);
        assert!(least > 100, "{all:?}");
        assert_eq!(RaftRun::new(3).run(12), RaftRun::new(3).run(12));
    }

    #[test]
    fn every_operation_and_every_point() {
        for seed in 0..6 {
            for plan in [Plan::Operation as fn(u64) -> Plan, Plan::Point] {
                let mut at = 1;
                loop {
                    let mut run = RaftRun::new(seed);
                    run.life(Plan::Calm, 10);
                    let ended = run.life(plan(at), 12);
                    run.life(Plan::Calm, 2);
                    run.life(Plan::Calm, 0);
                    if !ended {
                        break;
                    }
                    at += 1;
                }
            }
        }
    }

    /// With the claims ignored the checker finds what they are for.
    #[test]
    fn without_claims_entries_are_lost() {
        let mut lost = Vec::new();
        for seed in 0..300 {
            let failed = catch_unwind(AssertUnwindSafe(|| RaftRun::with(seed, true).run(12)));
            let failed = failed.err().and_then(|why| why.downcast_ref::<String>().cloned());
            lost.extend(failed.filter(|why| why.starts_with("lost silently")));
        }
        for kind in ["Flip", "Missing", "Short", "Older"] {
            assert!(lost.iter().any(|what| what.ends_with(kind)), "{kind}: {lost:#?}");
        }
    }
}

//! The journal and what the superblocks claim of it, under a seed: appends, compactions, ends of all sorts; after each, all entries whose append returned are there, in order, and at most the one that was being appended besides.
//! Between two lives somebody may meddle with a file ([`crate::meddling`]): then the start gives all of them or is refused.
use crate::clock::SimClock;
use crate::crash::{Plan, arm, end_life};
use crate::disk::SimDisk;
use crate::trace::Trace;
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use rauk_log::journal::JournalEntry;
use rauk_log::{DatabaseId, Journal, LogError, Superblocks};
use std::sync::Arc;

const ID: DatabaseId = DatabaseId([4; 16]);
const PATH: &str = "catalog.journal";

pub struct JournalRun {
    rng: SmallRng,
    disk: SimDisk,
    /// What must be there.
    entries: Vec<Vec<u8>>,
    /// What may be there instead: an operation was interrupted.
    maybe: Option<Vec<Vec<u8>>>,
    sequence: u64,
    trace: Trace,
}

impl JournalRun {
    pub fn new(seed: u64) -> JournalRun {
        let mut rng = SmallRng::seed_from_u64(seed);
        let disk = SimDisk::new(rng.next_u64(), SimClock::default());
        JournalRun { rng, disk, entries: Vec::new(), maybe: None, sequence: 0, trace: Trace::default() }
    }

    /// Runs so many lives and a calm one; gives the trace.
    pub fn run(mut self, lives: u64) -> u64 {
        for _ in 0..lives {
            let plan = Plan::draw(&mut self.rng, 40);
            let limit = self.rng.random_bool(0.2).then(|| self.disk.used() + self.rng.random_range(0..2000));
            self.disk.set_limit(limit);
            self.life(plan, 12);
        }
        self.disk.set_limit(None);
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
        let (mut journal, found) = self.allow(self.read(false))?;
        let sequences: Vec<u64> = found.iter().map(|e| e.sequence).collect();
        assert!(sequences.windows(2).all(|pair| pair[1] == pair[0] + 1));
        let found: Vec<_> = found.into_iter().map(|e| e.content).collect();
        if found != self.entries {
            assert_eq!(Some(&found), self.maybe.as_ref(), "neither what was there nor what was being written");
            // Until it is settled, the last entry may go again.
            self.maybe = Some(std::mem::replace(&mut self.entries, found));
        }
        assert!(journal.sequence() >= self.sequence, "sequence numbers only grow");
        self.allow(journal.settle())?;
        self.maybe = None;
        self.trace.add(journal.sequence());
        for _ in 0..steps {
            let mut wanted = self.entries.clone();
            let result = if self.rng.random_bool(0.8) {
                let most = if self.rng.random_bool(0.1) { 3000 } else { 60 };
                let length = self.rng.random_range(0..most);
                let mut content = vec![0; length];
                self.rng.fill_bytes(&mut content);
                wanted.push(content);
                self.maybe = Some(wanted.clone());
                journal.append(wanted.last().expect("just pushed")).map(drop)
            } else {
                let keep = self.rng.random_range(0..=wanted.len().min(3));
                wanted.truncate(keep);
                self.maybe = Some(wanted.clone());
                journal.compact(&wanted)
            };
            match result {
                Ok(()) => self.entries = wanted,
                // Nothing happened, and the journal goes on.
                Err(LogError::DiskFull(_)) => {}
                Err(error) => self.allow(Err(error))?,
            }
            self.maybe = None;
            self.sequence = journal.sequence();
        }
        Ok(())
    }

    fn read(&self, ignores_claims: bool) -> Result<(Journal, Vec<JournalEntry>), LogError> {
        let superblocks = Superblocks::load(&self.disk.mount())?;
        let superblocks = if ignores_claims { superblocks.ignoring_claims() } else { superblocks };
        Journal::read(&Arc::new(superblocks), PATH, ID)
    }

    fn allow<T>(&self, result: Result<T, LogError>) -> Result<T, ()> {
        result.map_err(|error| {
            let text = error.to_string();
            let expected = matches!(error, LogError::DiskFull(_)) || self.disk.is_stopped();
            assert!(expected || text.contains("write failed") || text.contains("sync failed"), "{error}");
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::points_met;
    use crate::meddling::Meddling;
    use rauk_log::fault;

    #[test]
    fn seeds() {
        for seed in 0..1500 {
            JournalRun::new(seed).run(12);
        }
        assert_eq!(JournalRun::new(3).run(12), JournalRun::new(3).run(12));
    }

    #[test]
    fn every_operation_and_every_point() {
        for seed in 0..10 {
            for plan in [Plan::Operation as fn(u64) -> Plan, Plan::Point] {
                let mut at = 1;
                loop {
                    let mut run = JournalRun::new(seed);
                    run.life(Plan::Calm, 5);
                    let ended = run.life(plan(at), 15);
                    run.life(Plan::Calm, 2);
                    run.life(Plan::Calm, 0);
                    if !ended {
                        break;
                    }
                    at += 1;
                }
            }
        }
        let met = points_met();
        let missing: Vec<_> = fault::ALL
            .iter()
            .filter(|p| p.starts_with("journal.") || p.starts_with("superblock."))
            .filter(|p| !met.contains_key(*p))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    /// Gives how many starts were refused, how many gave everything, and what was lost silently.
    fn meddle(seeds: std::ops::Range<u64>, ignores_claims: bool) -> (u64, u64, Vec<String>) {
        let (mut refused, mut whole, mut lost) = (0, 0, Vec::new());
        for seed in seeds {
            let mut run = JournalRun::new(seed);
            run.life(Plan::Calm, 10);
            let older = run.disk.image();
            run.life(Plan::Calm, 10);
            let Some(meddling) = Meddling::do_one(&mut run.rng, &run.disk, &older) else { continue };
            match run.read(ignores_claims) {
                Err(error) => {
                    meddling.check_refusal(&error, &run.disk);
                    refused += 1;
                }
                Ok((_, found)) => {
                    let found: Vec<_> = found.into_iter().map(|e| e.content).collect();
                    match found == run.entries {
                        true => whole += 1,
                        false => lost.push(format!("seed {seed}, {} {:?}", meddling.path, meddling.kind)),
                    }
                }
            }
            meddling.undo(&run.disk);
            run.life(Plan::Calm, 5);
            run.life(Plan::Calm, 0);
        }
        (refused, whole, lost)
    }

    #[test]
    fn meddling_is_refused_or_harmless() {
        let (refused, whole, lost) = meddle(0..1500, false);
        assert!(lost.is_empty(), "{lost:#?}");
        assert!(refused > 300 && whole > 300, "{refused} refused, {whole} whole");
    }

    /// With the claims ignored the checker finds what they are for.
    #[test]
    fn without_claims_entries_are_lost() {
        let (_, _, lost) = meddle(0..200, true);
        for kind in ["Flip", "Missing", "Short", "Older"] {
            assert!(lost.iter().any(|what| what.ends_with(kind)), "{kind}: {lost:#?}");
        }
    }
}

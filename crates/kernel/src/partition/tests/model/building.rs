//! An index that comes and goes while transactions are under way, within the random histories: it is filled slice by
//! slice between their steps, and from then on gives what the rows give, to old snapshots too, or says that it cannot.

use super::*;
use crate::budget::Purpose;

const BUILT: IndexId = IndexId(9);

/// How far the index is.
#[derive(Clone, Copy)]
enum Build {
    Absent,
    At(RowId),
    There,
}

/// What has been seen of the index.
#[derive(Default)]
struct Built {
    built: u64,
    /// Builds that were given up halfway.
    given_up: u64,
    reads: u64,
    /// Reads at a snapshot that was there before the index.
    old_reads: u64,
    refused: u64,
}

impl Model {
    /// Everything by the new index, at a snapshot that is held, at any time, or as it is now.
    fn look_by_built(&mut self, since: u64, seen: &mut Built) {
        let held = self.w.snapshots.clone();
        let (at, upto, stale) = match self.rng.random_range(0..3) {
            0 => (ReadAt::Newest, u64::MAX, false),
            1 if !held.is_empty() => {
                let time = held[self.rng.random_range(0..held.len())];
                (ReadAt::Snapshot(Timestamp(time)), time, false)
            }
            _ => {
                let time = self.rng.random_range(0..=self.w.now);
                (ReadAt::Snapshot(Timestamp(time)), time, true)
            }
        };
        if let ReadAt::Snapshot(time) = at {
            self.read_at = self.read_at.max(time.0);
        }
        let request = whole(Some(BUILT));
        let mut position = ScanPosition::Start;
        let mut access = self.w.access(None, at);
        let mut found: Vec<Row> = Vec::new();
        loop {
            let scanned = self.w.p.scan(&request, &mut position, 5, &mut access, &mut |row| {
                found.push(decode(&row.row));
                Verdict::Keep
            });
            match scanned {
                Ok(ScanEnd::More) => {}
                Ok(ScanEnd::Finished) => break,
                Err(Stop::Prepared(_)) => return,
                Err(Stop::SnapshotTooOld) => {
                    assert!(stale || self.limited, "a snapshot that is held cannot use the index");
                    seen.refused += 1;
                    return;
                }
                Err(other) => panic!("{other:?}"),
            }
        }
        found.sort();
        let expected: Vec<Row> = (0..IDS).filter_map(|id| self.sees(None, id, upto).0).collect();
        assert_eq!(found, expected, "by the new index, at {at:?}");
        seen.reads += 1;
        seen.old_reads += u64::from(upto < since);
    }
}

fn built_meanwhile(seeds: std::ops::Range<u64>, limited: bool, cluster: bool) -> Built {
    let mut seen = Built::default();
    let plain = schema(false, true);
    let mut with = (*plain).clone();
    with.indexes.push(index(BUILT, &[(1, true), (2, false)]));
    let with = Arc::new(with);
    for seed in seeds {
        let mut model = Model::new(seed, plain.clone(), limited, cluster);
        let (mut build, mut since) = (Build::Absent, 0);
        for _ in 0..1500 {
            model.step();
            build = match build {
                Build::Absent if model.rng.random_ratio(1, 10) => {
                    model.w.p.alter_table(with.clone());
                    since = model.w.now;
                    Build::At(RowId(0))
                }
                Build::At(from) if model.rng.random_ratio(1, 2) => {
                    let rows = model.rng.random_range(1..6);
                    match model.w.p.build_index(TABLE, BUILT, from, rows, Purpose::Write).expect("there is room") {
                        Some(next) => Build::At(next),
                        None => {
                            seen.built += 1;
                            model.w.p.validate();
                            Build::There
                        }
                    }
                }
                Build::At(_) if model.rng.random_ratio(1, 60) => {
                    seen.given_up += 1;
                    model.w.p.alter_table(plain.clone());
                    model.w.p.validate();
                    Build::Absent
                }
                Build::There if model.rng.random_ratio(1, 60) => {
                    model.w.p.validate();
                    model.w.p.alter_table(plain.clone());
                    Build::Absent
                }
                there => there,
            };
            if let Build::There = build {
                model.look_by_built(since, &mut seen);
            }
        }
        if let Build::At(_) = build {
            model.w.p.alter_table(plain.clone());
        }
        model.finish();
    }
    seen
}

#[test]
fn random_histories_while_an_index_is_built() {
    for (limited, cluster) in [(false, false), (true, false), (false, true), (true, true)] {
        let first = 800_000 + 1000 * (2 * u64::from(limited) + u64::from(cluster));
        let seen = built_meanwhile(first..first + 3 * rounds(), limited, cluster);
        let Built { built, given_up, reads, old_reads, refused } = seen;
        let often = built > 10 && given_up > 3 && reads > 500 && old_reads > 20 && refused > 20;
        assert!(often, "{built} {given_up} {reads} {old_reads} {refused}");
    }
}

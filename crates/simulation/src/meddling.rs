//! Somebody is at a directory while no program runs: one file is damaged, missing, shortened or an older copy.
//!
//! What a start must do then: give everything that was acknowledged, or be refused with the file, the place and the way out; and a refused start changes nothing, so
//! that the file can be put back.
use crate::disk::SimDisk;
use rand::Rng;
use rand::rngs::SmallRng;
use rauk_log::LogError;
use std::collections::BTreeMap;

/// All files of a directory.
pub type Image = BTreeMap<String, Vec<u8>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Flip,
    Missing,
    Short,
    Older,
}

/// What was done, and how it is undone.
#[derive(Debug)]
pub struct Meddling {
    pub kind: Kind,
    pub path: String,
    good: Vec<u8>,
    /// The directory as the start finds it.
    bad: Image,
}

impl Meddling {
    /// Does something to one file, drawn evenly from the kinds of files; `older`: the directory as it was some time ago. `None`: what was drawn changes nothing.
    pub fn do_one(rng: &mut SmallRng, disk: &SimDisk, older: &Image) -> Option<Meddling> {
        let image = disk.image();
        let kind_of = |path: &str| {
            path.trim_matches(|c: char| !c.is_ascii_alphabetic()).rsplit('.').next().unwrap_or("").to_string()
        };
        let mut kinds: Vec<String> = image.keys().map(|path| kind_of(path)).collect();
        kinds.sort();
        kinds.dedup();
        let wanted = kinds.get(rng.random_range(0..kinds.len().max(1)))?;
        let paths: Vec<&String> = image.keys().filter(|path| kind_of(path) == *wanted).collect();
        let path = paths[rng.random_range(0..paths.len())].clone();
        let good = image[&path].clone();
        let kind = [Kind::Flip, Kind::Missing, Kind::Short, Kind::Older][rng.random_range(0..4)];
        let bad = match kind {
            Kind::Flip if good.is_empty() => return None,
            Kind::Flip => {
                let mut bad = good.clone();
                let at = rng.random_range(0..bad.len());
                bad[at] ^= 1 << rng.random_range(0..8);
                Some(bad)
            }
            Kind::Missing => None,
            Kind::Short => Some(good[..rng.random_range(0..=good.len().saturating_sub(1))].to_vec()),
            Kind::Older => Some(older.get(&path)?.clone()),
        };
        if bad.as_ref() == Some(&good) {
            return None;
        }
        disk.put(&path, bad.as_deref());
        Some(Meddling { kind, path, good, bad: disk.image() })
    }

    /// The refusal is one, names a file and says what to do, and nothing was changed.
    pub fn check_refusal(&self, error: &LogError, disk: &SimDisk) {
        let text = error.to_string();
        match error {
            LogError::Damaged { .. } | LogError::Missing { .. } | LogError::Outdated { .. } => {
                assert!(text.contains("put the file back from a copy"), "{self:?}: {text}");
            }
            // A flipped bit may turn a header into one of another version or database.
            LogError::NewerVersion { .. } | LogError::Foreign { .. } => {}
            _ => panic!("{} {:?} is refused by {text}", self.path, self.kind),
        }
        assert!(
            disk.image() == self.bad,
            "{} {:?}: the refused start changed something ({text})",
            self.path,
            self.kind
        );
    }

    pub fn undo(&self, disk: &SimDisk) {
        disk.put(&self.path, Some(&self.good));
    }
}

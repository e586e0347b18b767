//! Somebody is at a directory while no program runs: one file is damaged, missing, shortened or an older copy, or the
//! whole directory is an older copy.
//!
//! What a start must do then: give everything that was acknowledged, or be refused with the file, the place and the
//! way out; and a refused start changes nothing, so that the file can be put back.
use crate::disk::{SimDisk, frames};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;

/// All files of a directory.
pub type Image = BTreeMap<String, Vec<u8>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Flip,
    Missing,
    Short,
    Older,
    /// All files are those of some time ago.
    OlderDirectory,
}

/// What was done, and how it is undone.
pub struct Meddling {
    pub kind: Kind,
    /// The file; of a directory its name.
    pub path: String,
    /// The directory as it was.
    good: Image,
    /// The directory as the start finds it.
    bad: Image,
}

impl Meddling {
    /// Does something to one file, drawn evenly from the kinds of files; `older`: the directory as it was some time
    /// ago. `None`: what was drawn changes nothing.
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
        let good = &image[&path];
        let kind = [Kind::Flip, Kind::Missing, Kind::Short, Kind::Older][rng.random_range(0..4)];
        let bad = match kind {
            Kind::Flip if good.is_empty() => return None,
            Kind::Flip => {
                let mut bad = good.clone();
                // What was written last is what a reader without claims takes for torn.
                let end = bad.iter().rposition(|byte| *byte != 0).map_or(bad.len(), |last| last + 1);
                let first = if rng.random_bool(0.5) { 0 } else { end.saturating_sub(300) };
                let at = rng.random_range(first..end);
                bad[at] ^= 1 << rng.random_range(0..8);
                Some(bad)
            }
            Kind::Missing => None,
            Kind::Short => Some(good[..rng.random_range(0..=good.len().saturating_sub(1))].to_vec()),
            Kind::Older | Kind::OlderDirectory => Some(older.get(&path)?.clone()),
        };
        if bad.as_ref() == Some(good) {
            return None;
        }
        disk.put(&path, bad.as_deref());
        Some(Meddling { kind, path, good: image, bad: disk.image() })
    }

    /// Puts the directory back to what it was some time ago.
    pub fn put_back(disk: &SimDisk, older: &Image) -> Meddling {
        let good = disk.image();
        replace(disk, &good, older);
        Meddling { kind: Kind::OlderDirectory, path: "the directory".to_string(), good, bad: older.clone() }
    }

    /// Nothing has been written since.
    pub fn is_untouched(&self, disk: &SimDisk) -> bool {
        disk.image() == self.bad
    }

    /// Whether the redo log now ends, without a sign of it, before what may have been acknowledged and has not been
    /// claimed yet: for some ten milliseconds only the log itself knows how long it is. `claimed`: the superblocks'
    /// claim.
    pub fn hides_an_end(&self, claimed: u64) -> bool {
        let end = |image: &Image| frames::last(image.get(&self.path)?).map(|(at, _, length)| at + length);
        self.kind == Kind::Older && self.path.starts_with("redo/") && end(&self.bad) >= Some(claimed)
    }

    /// The refusal is one, names a file and says what to do, and nothing was changed.
    pub fn check_refusal(&self, text: &str, disk: &SimDisk) {
        // A flipped bit may turn a header into one of another version or database.
        let refusals = match self.kind {
            Kind::OlderDirectory => ["older copy"].as_slice(),
            _ => &[
                "; put the file back from a copy",
                "put the newest copy of the whole data directory back",
                "has format version",
                "belongs to another database",
            ],
        };
        let is_refusal = refusals.iter().any(|part| text.contains(part));
        assert!(is_refusal, "{} {:?} is refused by {text}", self.path, self.kind);
        let same = self.is_untouched(disk);
        assert!(same, "{} {:?}: the refused start changed something ({text})", self.path, self.kind);
    }

    /// What was changed is as it was. The rest stays as it is now.
    pub fn undo(&self, disk: &SimDisk) {
        replace(disk, &self.bad, &self.good);
    }
}

/// Puts all files of one image that are not the same in the other.
fn replace(disk: &SimDisk, from: &Image, to: &Image) {
    let changed = from.keys().chain(to.keys()).filter(|path| from.get(*path) != to.get(*path));
    changed.for_each(|path| disk.put(path, to.get(path).map(Vec::as_slice)));
}

//! One file of the simulated disk: its bytes as the program sees them, and for every sector written since the last sync what would be there instead.
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::io;

pub(super) const SECTOR: usize = 512;

type Sector = Box<[u8; SECTOR]>;

#[derive(Clone, Default)]
pub(super) struct Inode {
    bytes: Vec<u8>,
    /// Sectors that are not synced, with what is on disk; `None`: nothing ever was.
    dirty: BTreeMap<u64, Option<Sector>>,
    /// Sectors that a failed sync left out and that count as clean: a sync does not write them, a power failure takes them.
    forgotten: BTreeMap<u64, Option<Sector>>,
    /// Length that is on disk.
    durable_length: u64,
}

impl Inode {
    pub fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub fn contents(&self) -> &[u8] {
        &self.bytes
    }

    pub fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let start = offset as usize;
        let end = start + buffer.len();
        buffer.copy_from_slice(self.bytes.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    /// Keeps what is on disk of the sectors that `start..end` touches.
    fn touch(&mut self, start: u64, end: u64) {
        for sector in start / SECTOR as u64..end.div_ceil(SECTOR as u64) {
            if self.dirty.contains_key(&sector) {
                continue;
            }
            let old = self.forgotten.remove(&sector).unwrap_or_else(|| {
                let at = sector as usize * SECTOR;
                (sector * (SECTOR as u64) < self.durable_length).then(|| {
                    let mut old = Box::new([0; SECTOR]);
                    let end = self.bytes.len().min(at + SECTOR);
                    if at < end {
                        old[..end - at].copy_from_slice(&self.bytes[at..end]);
                    }
                    old
                })
            });
            self.dirty.insert(sector, old);
        }
    }

    pub fn write(&mut self, buffer: &[u8], offset: u64) {
        let end = offset + buffer.len() as u64;
        self.touch(offset, end);
        if self.length() < end {
            self.set_length(end);
        }
        self.bytes[offset as usize..end as usize].copy_from_slice(buffer);
    }

    pub fn set_length(&mut self, length: u64) {
        if length < self.length() {
            self.touch(length, self.length());
        } else {
            self.touch(self.length(), length);
        }
        self.bytes.resize(length as usize, 0);
    }

    pub fn sync(&mut self) {
        self.dirty.clear();
        self.durable_length = self.length();
    }

    /// Some dirty sectors reach the disk, the others do not; all count as clean from now on.
    pub fn fail_sync(&mut self, rng: &mut SmallRng) {
        for (sector, old) in std::mem::take(&mut self.dirty) {
            if rng.random_bool(0.5) {
                self.forgotten.insert(sector, old);
            }
        }
    }

    /// What is there when the power comes back.
    pub fn power_failure(&mut self, lost: f64, rng: &mut SmallRng) {
        let kept_length = if rng.random_bool(lost) { self.durable_length } else { self.length() };
        self.bytes.resize(kept_length as usize, 0);
        let forgotten = std::mem::take(&mut self.forgotten).into_iter().map(|(sector, old)| (sector, old, 1.0));
        let dirty: Vec<_> = std::mem::take(&mut self.dirty).into_iter().map(|(s, old)| (s, old, lost)).collect();
        for (sector, old, lost) in forgotten.chain(dirty) {
            let at = sector as usize * SECTOR;
            let end = self.bytes.len().min(at + SECTOR);
            if at >= end || !rng.random_bool(lost) {
                continue;
            }
            match old {
                Some(old) => self.bytes[at..end].copy_from_slice(&old[..end - at]),
                None if rng.random_bool(0.5) => self.bytes[at..end].fill(0),
                None => rng.fill(&mut self.bytes[at..end]),
            }
        }
        self.durable_length = kept_length;
    }

    pub fn flip(&mut self, at: u64, bit: u32) {
        self.bytes[at as usize] ^= 1 << bit;
    }
}

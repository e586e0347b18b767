//! The simulated disk: everything a real one may do to a program, under a seed.
//!
//! It keeps what the running program sees and, beside it, what would be there after a power failure. The unit is the sector of 512 bytes ([`inode`]). Creating,
//! renaming and removing a file stay undecided until their directory is synced.
//!
//! - [`SimDisk::power_failure`]: every sector written since the last sync is old or new, each for itself (a sector that never was on disk may be zero or garbage);
//!   lengths are old or new; directory changes happened or not. How much is lost is drawn first, so that "nothing" and "everything" occur as well.
//! - [`SimDisk::kill`]: only the process ends; the page cache stays, un-synced and all.
//! - Both are also ordered in advance: [`SimDisk::stop_at`] stops the disk within the n-th operation, or a fault point calls [`SimDisk::stop`]. A stopped disk fails everything until one of the
//!   two is decided on.
//! - Between two lives a file may be damaged, removed, shortened or put back as an older copy ([`SimDisk::flip_bit`], [`SimDisk::put`]).
//! - Faults: a full disk, a write or sync that fails (after a failed sync, dirty sectors count as clean without being on disk, as on Linux), flipped bits,
//!   slowness (the simulated clock moves, or only the process that waits is told, where there are others).
//!
//! Where only the process that waits is told of a slow sync, the clock stands still while it goes on to ask for more: all that happens when the sync is over. A power failure before that finds the files as they
//! were, and nothing of what was asked for behind it.
//!
//! A *mount* is what one life of the program holds; after a power failure or kill an older mount and its files only give errors.
pub mod frames;
mod inode;
mod turns;

use crate::clock::SimClock;
use inode::Inode;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_log::{Disk, DiskFile};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Length of the longest run of time that a slow operation takes.
const SLOW_MS: u64 = 200;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub operations: u64,
    pub writes: u64,
    pub written_bytes: u64,
    pub syncs: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Directory,
    File(u64),
}

/// A directory change that is not durable yet.
#[derive(Clone, Debug)]
enum Change {
    Link(String, Node),
    Unlink(String),
    Rename { from: String, to: String, file: u64 },
}

impl Change {
    fn directory(&self) -> &str {
        match self {
            Change::Link(path, _) | Change::Unlink(path) | Change::Rename { to: path, .. } => parent(path),
        }
    }

    fn apply(&self, names: &mut BTreeMap<String, Node>) {
        match self {
            Change::Link(path, node) => {
                names.insert(path.clone(), node.clone());
            }
            Change::Unlink(path) => {
                names.remove(path);
            }
            Change::Rename { from, to, file } => {
                if names.get(from) == Some(&Node::File(*file)) {
                    names.remove(from);
                }
                names.insert(to.clone(), Node::File(*file));
            }
        }
    }
}

struct World {
    rng: SmallRng,
    clock: SimClock,
    files: BTreeMap<u64, Inode>,
    next_file: u64,
    names: BTreeMap<String, Node>,
    durable_names: BTreeMap<String, Node>,
    /// Not synced: each with when it is made, which is later than now behind a slow sync.
    changes: Vec<(Duration, Change)>,
    /// Those of directories whose sync comes after a slow one: when it is done, and the changes.
    dir_syncs: Vec<(Duration, Vec<Change>)>,
    /// Which life of the program may use the disk.
    generation: u64,
    stopped: bool,
    stop_at: Option<u64>,
    fail_write_at: Option<u64>,
    fail_sync_at: Option<u64>,
    limit: Option<u64>,
    slow: f64,
    slow_most: Duration,
    stall: Option<Stall>,
    /// What has been asked for behind slow syncs that go on, and those themselves, happens later than now: when, and the files as they are until then.
    later: Vec<(Duration, u64, Inode)>,
    stats: Stats,
}

/// Told how long a slow operation takes; gives when it ends.
pub type Stall = Arc<dyn Fn(Duration) -> Duration + Send + Sync>;

/// A handle on the simulated machine's disk, for the simulator. Clones are the same disk.
#[derive(Clone)]
pub struct SimDisk {
    world: Arc<Mutex<World>>,
}

struct Mount {
    world: Arc<Mutex<World>>,
    generation: u64,
}

struct File {
    mount: Mount,
    file: u64,
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

fn error(kind: io::ErrorKind, what: &str) -> io::Error {
    io::Error::new(kind, format!("simulated disk: {what}"))
}

impl SimDisk {
    pub fn new(seed: u64, clock: SimClock) -> SimDisk {
        let world = World {
            rng: SmallRng::seed_from_u64(seed),
            clock,
            files: BTreeMap::new(),
            next_file: 1,
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            changes: Vec::new(),
            dir_syncs: Vec::new(),
            generation: 0,
            stopped: false,
            stop_at: None,
            fail_write_at: None,
            fail_sync_at: None,
            limit: None,
            slow: 0.0,
            slow_most: Duration::from_millis(SLOW_MS),
            stall: None,
            later: Vec::new(),
            stats: Stats::default(),
        };
        SimDisk { world: Arc::new(Mutex::new(world)) }
    }

    /// The disk as the present life of the program sees it.
    pub fn mount(&self) -> Arc<dyn Disk> {
        let generation = self.world.lock().generation;
        Arc::new(Mount { world: self.world.clone(), generation })
    }

    pub fn stats(&self) -> Stats {
        self.world.lock().stats
    }

    /// Fails every operation from now on: the moment of the crash, which `power_failure` or `kill` then completes.
    pub fn stop(&self) {
        self.world.lock().stopped = true;
    }

    pub fn is_stopped(&self) -> bool {
        self.world.lock().stopped
    }

    /// Stops within the `operations`-th operation from now, which may have happened or not.
    pub fn stop_at(&self, operations: Option<u64>) {
        let mut world = self.world.lock();
        world.stop_at = operations.map(|n| world.stats.operations + n);
    }

    /// The `writes`-th write from now fails.
    pub fn fail_write_at(&self, writes: Option<u64>) {
        let mut world = self.world.lock();
        world.fail_write_at = writes.map(|n| world.stats.writes + n);
    }

    /// The `syncs`-th sync of a file from now fails.
    pub fn fail_sync_at(&self, syncs: Option<u64>) {
        let mut world = self.world.lock();
        world.fail_sync_at = syncs.map(|n| world.stats.syncs + n);
    }

    /// Room for this many bytes in all files; `None` is no limit.
    pub fn set_limit(&self, bytes: Option<u64>) {
        self.world.lock().limit = bytes;
    }

    pub fn is_limited(&self) -> bool {
        self.world.lock().limit.is_some()
    }

    /// Bytes that all files take.
    pub fn used(&self) -> u64 {
        self.world.lock().used()
    }

    /// Part of the syncs that take up to 200 ms of simulated time.
    pub fn set_slow(&self, part: f64) {
        self.world.lock().slow = part;
    }

    /// How long a slow sync takes at most.
    pub fn set_slow_most(&self, most: Duration) {
        self.world.lock().slow_most = most;
    }

    /// Who is told of the time that slow operations take, in place of the clock: where there are several processes, only the one that waits for its disk stands still.
    pub fn set_stall(&self, stall: Option<Stall>) {
        self.world.lock().stall = stall;
    }

    /// The machine loses power: un-synced data is thrown away or torn. The disk works again afterwards, for new mounts.
    pub fn power_failure(&self) {
        let mut world = self.world.lock();
        let world = &mut *world;
        // How much of what was not synced gets lost: nothing, all, or each piece with one probability.
        let lost = match world.rng.random_range(0..6) {
            0 => 0.0,
            1 => 1.0,
            2 => 0.5,
            _ => world.rng.random_range(0.0..1.0),
        };
        let now = world.clock.now();
        world.settle(now);
        // What waits for a slow sync has not been asked for yet.
        world.dir_syncs.clear();
        for (made, change) in std::mem::take(&mut world.changes) {
            if made <= now && !world.rng.random_bool(lost) {
                change.apply(&mut world.durable_names);
            }
        }
        // A file whose directory is not there cannot be found.
        let names = world.durable_names.clone();
        world.durable_names.retain(|path, _| {
            let directory = parent(path);
            directory.is_empty() || names.contains_key(directory)
        });
        world.names = world.durable_names.clone();
        for (at, file, before) in std::mem::take(&mut world.later).into_iter().rev() {
            if at > now {
                world.files.insert(file, before);
            }
        }
        let linked: Vec<u64> = world.linked().collect();
        world.files.retain(|file, _| linked.contains(file));
        for inode in world.files.values_mut() {
            inode.power_failure(lost, &mut world.rng);
        }
        world.restart();
    }

    /// Only the process ends.
    pub fn kill(&self) {
        self.world.lock().restart();
    }

    /// Flips one bit of a file that is on disk; gives the file and the byte. `None` when there is nothing to flip.
    pub fn flip_bit(&self) -> Option<(String, u64)> {
        let mut world = self.world.lock();
        let world = &mut *world;
        let candidates: Vec<(String, u64)> = world
            .names
            .iter()
            .filter_map(|(path, node)| match node {
                Node::File(file) if world.files[file].length() > 0 => Some((path.clone(), *file)),
                _ => None,
            })
            .collect();
        if candidates.is_empty() {
            return None;
        }
        let (path, file) = &candidates[world.rng.random_range(0..candidates.len())];
        let inode = world.files.get_mut(file).expect("it has a name");
        let at = world.rng.random_range(0..inode.length());
        inode.flip(at, world.rng.random_range(0..8));
        Some((path.clone(), at))
    }

    /// Flips one bit of the last frame of the redo log, and gives the file and the byte. `None`: the log has no frame that begins at `claimed` or later.
    pub fn flip_bit_of_last_frame(&self, claimed: u64) -> Option<(String, u64)> {
        let mut world = self.world.lock();
        let world = &mut *world;
        let files = world.names.iter().filter_map(|(path, node)| match node {
            Node::File(file) if path.starts_with("redo/") && path.ends_with(".redo") => Some((path.clone(), *file)),
            _ => None,
        });
        let last = |(path, file): (String, u64)| {
            let (position, start, length) = frames::last(world.files[&file].contents())?;
            Some((position, path, file, start, length))
        };
        let (_, path, file, start, length) = files.filter_map(last).max().filter(|frame| frame.0 >= claimed)?;
        let at = start + world.rng.random_range(0..length);
        let bit = world.rng.random_range(0..8);
        world.files.get_mut(&file).expect("it has a name").flip(at, bit);
        Some((path, at))
    }

    /// All files with their contents, as the program sees them.
    pub fn image(&self) -> BTreeMap<String, Vec<u8>> {
        let world = self.world.lock();
        let file = |(path, node): (&String, &Node)| match node {
            Node::File(file) => Some((path.clone(), world.files[file].contents().to_vec())),
            Node::Directory => None,
        };
        world.names.iter().filter_map(file).collect()
    }

    /// A file gets other contents, or is removed: somebody is at the directory while no program runs. On disk at once.
    pub fn put(&self, path: &str, contents: Option<&[u8]>) {
        let mut world = self.world.lock();
        let world = &mut *world;
        // Nothing that was not synced may undo it.
        let pending = std::mem::take(&mut world.changes);
        pending.into_iter().for_each(|(_, change)| change.apply(&mut world.durable_names));
        world.durable_names.remove(path);
        world.names.remove(path);
        if let Some(contents) = contents {
            let (file, mut inode) = (world.next_file, Inode::default());
            world.next_file += 1;
            inode.write(contents, 0);
            inode.sync();
            world.files.insert(file, inode);
            world.names.insert(path.to_string(), Node::File(file));
            world.durable_names.insert(path.to_string(), Node::File(file));
        }
    }

    /// Names of all files that the program sees.
    pub fn files(&self) -> Vec<String> {
        let world = self.world.lock();
        world.names.iter().filter(|(_, node)| **node != Node::Directory).map(|(path, _)| path.clone()).collect()
    }
}

impl World {
    fn restart(&mut self) {
        self.generation += 1;
        self.stopped = false;
        self.stop_at = None;
        self.fail_write_at = None;
        self.fail_sync_at = None;
        self.settle(Duration::MAX);
        self.changes.iter_mut().for_each(|(made, _)| *made = Duration::ZERO);
        self.later.clear();
    }

    /// When what is asked for now happens: behind slow syncs that go on.
    fn busy_until(&self) -> Duration {
        self.later.iter().map(|(at, ..)| *at).max().unwrap_or_default()
    }

    /// Something happens to a file at that time, which may be later than now.
    fn keep_until(&mut self, at: Duration, file: u64) {
        let now = self.clock.now();
        if at <= now || self.later.iter().any(|(other, kept, _)| (*other, *kept) == (at, file)) {
            return;
        }
        self.later.retain(|(at, ..)| *at > now);
        let before = self.file(file).clone();
        self.later.push((at, file, before));
    }

    /// A file that is to be changed, behind slow syncs that go on.
    fn change_file(&mut self, file: u64) -> &mut Inode {
        self.keep_until(self.busy_until(), file);
        self.file(file)
    }

    /// Directories that are synced by `now`.
    fn settle(&mut self, now: Duration) {
        let (done, left) = std::mem::take(&mut self.dir_syncs).into_iter().partition(|(end, _)| *end <= now);
        self.dir_syncs = left;
        let done: Vec<(Duration, Vec<Change>)> = done;
        done.into_iter().flat_map(|(_, changes)| changes).for_each(|change| change.apply(&mut self.durable_names));
    }

    fn linked(&self) -> impl Iterator<Item = u64> {
        self.names.values().filter_map(|node| match node {
            Node::File(file) => Some(*file),
            Node::Directory => None,
        })
    }

    fn used(&self) -> u64 {
        self.linked().map(|file| self.files[&file].length()).sum()
    }

    fn check_room(&self, more: u64) -> io::Result<()> {
        match self.limit {
            Some(limit) if more > 0 && self.used() + more > limit => {
                Err(error(io::ErrorKind::StorageFull, "no space left on device"))
            }
            _ => Ok(()),
        }
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.names);
        let made = self.busy_until();
        self.changes.push((made, change));
    }

    fn file(&mut self, file: u64) -> &mut Inode {
        self.files.get_mut(&file).expect("open files stay")
    }

    fn node(&self, path: &str) -> io::Result<&Node> {
        self.names.get(path).ok_or_else(|| error(io::ErrorKind::NotFound, &format!("no {path}")))
    }
}

impl Mount {
    /// Runs one operation. If the disk stops within it, it may have happened, but the caller is told of an error.
    fn run<T>(&self, operation: impl FnOnce(&mut World) -> io::Result<T>) -> io::Result<T> {
        turns::before_operation(|| self.world.lock().rng.random_bool(0.5));
        let mut world = self.world.lock();
        let stopped = || error(io::ErrorKind::Other, "stopped");
        if world.stopped || world.generation != self.generation {
            return Err(stopped());
        }
        world.stats.operations += 1;
        if world.stop_at != Some(world.stats.operations) {
            return operation(&mut world);
        }
        if world.rng.random_bool(0.5) {
            let _ = operation(&mut world);
        }
        world.stopped = true;
        Err(stopped())
    }
}

impl Disk for Mount {
    fn create_dir_all(&self, path: &str) -> io::Result<()> {
        self.run(|world| {
            let mut end = 0;
            while end < path.len() {
                end = path[end + 1..].find('/').map_or(path.len(), |at| end + 1 + at);
                if !world.names.contains_key(&path[..end]) {
                    world.change(Change::Link(path[..end].to_string(), Node::Directory));
                }
            }
            Ok(())
        })
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.run(|world| {
            if !path.is_empty() {
                world.node(path)?;
            }
            let inside = world.names.keys().filter(|name| parent(name) == path);
            Ok(inside.map(|name| name.rsplit('/').next().unwrap_or(name).to_string()).collect())
        })
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        self.run(|world| Ok(world.names.contains_key(path)))
    }

    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        self.run(|world| {
            let file = match world.node(path) {
                Ok(Node::File(file)) => *file,
                Ok(Node::Directory) => return Err(error(io::ErrorKind::IsADirectory, path)),
                Err(_) if create => {
                    if !parent(path).is_empty() {
                        world.node(parent(path))?;
                    }
                    let file = world.next_file;
                    world.next_file += 1;
                    world.files.insert(file, Inode::default());
                    world.change(Change::Link(path.to_string(), Node::File(file)));
                    file
                }
                Err(e) => return Err(e),
            };
            let mount = Mount { world: self.world.clone(), generation: self.generation };
            Ok(Arc::new(File { mount, file }) as Arc<dyn DiskFile>)
        })
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.run(|world| {
            world.node(path)?;
            world.change(Change::Unlink(path.to_string()));
            Ok(())
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.run(|world| {
            let Node::File(file) = *world.node(from)? else {
                return Err(error(io::ErrorKind::IsADirectory, from));
            };
            assert_eq!(parent(from), parent(to), "the simulated disk renames within a directory");
            world.change(Change::Rename { from: from.to_string(), to: to.to_string(), file });
            Ok(())
        })
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        self.run(|world| {
            if !path.is_empty() {
                world.node(path)?;
            }
            let (done, left): (Vec<_>, Vec<_>) = world.changes.drain(..).partition(|(_, c)| c.directory() == path);
            world.changes = left;
            let end = world.busy_until();
            world.dir_syncs.push((end, done.into_iter().map(|(_, change)| change).collect()));
            let now = world.clock.now();
            world.settle(now);
            Ok(())
        })
    }

    fn together<'a>(&self, first: Box<dyn FnOnce() + Send + 'a>, second: Box<dyn FnOnce() + Send + 'a>) {
        turns::together(first, second);
    }
}

impl DiskFile for File {
    fn len(&self) -> io::Result<u64> {
        self.mount.run(|world| Ok(world.file(self.file).length()))
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.mount.run(|world| world.file(self.file).read(buffer, offset))
    }

    fn write_all_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        self.mount.run(|world| {
            world.stats.writes += 1;
            let end = offset + buffer.len() as u64;
            let more = end.saturating_sub(world.file(self.file).length());
            let room = world.check_room(more);
            let fails = world.fail_write_at == Some(world.stats.writes);
            if fails || room.is_err() {
                // A part of it may have been written: what fits, or up to where it failed.
                let most = if fails { end } else { end.min(world.file(self.file).length()) };
                let part = world.rng.random_range(0..=most.saturating_sub(offset)) as usize;
                world.change_file(self.file).write(&buffer[..part], offset);
                room?;
                return Err(error(io::ErrorKind::Other, "write failed"));
            }
            world.stats.written_bytes += buffer.len() as u64;
            world.change_file(self.file).write(buffer, offset);
            Ok(())
        })
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.mount.run(|world| {
            let present = world.file(self.file).length();
            world.check_room(length.saturating_sub(present))?;
            world.change_file(self.file).set_length(length.max(present));
            Ok(())
        })
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.mount.run(|world| {
            let present = world.file(self.file).length();
            world.check_room(length.saturating_sub(present))?;
            world.change_file(self.file).set_length(length);
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.mount.run(|world| {
            world.stats.syncs += 1;
            if world.slow > 0.0 && world.rng.random_bool(world.slow) {
                let pause = Duration::from_millis(world.rng.random_range(0..world.slow_most.as_millis() as u64));
                match world.stall.clone() {
                    None => world.clock.advance(pause),
                    Some(stall) => world.keep_until(stall(pause), self.file),
                }
            }
            let fails = world.fail_sync_at == Some(world.stats.syncs);
            world.change_file(self.file);
            let World { files, rng, .. } = world;
            let inode = files.get_mut(&self.file).expect("open files stay");
            if fails {
                inode.fail_sync(rng);
                return Err(error(io::ErrorKind::Other, "sync failed"));
            }
            inode.sync();
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;

//! Segment files: making them, finding them again, using them again.
//!
//! `redo/0007.redo` is a slot: which part of the log it holds stands in its header (number, base position, size) and changes when it is reused. A new file is
//! allocated, given its header, synced and only then renamed to its name, so every `.redo` file has a whole header. A released one gets the header of its next life written over the
//! old one. The header is there twice, in two sectors written one after the other, so that a write that fails halfway leaves one of them whole; the one with the higher number
//! counts. Either way it is durable before the segment is used, and so is the end mark where its first frame will begin.
use crate::disk::{Disk, DiskFile};
use crate::error::{LogError, is_disk_full};
use crate::fault;
use crate::header::{FileHeader, HEADER_BYTES, version_of};
use crate::redo::{DIRECTORY, MAX_SEGMENT_BYTES, RedoOptions, frame};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const KIND: &[u8; 8] = b"RAUKREDO";
/// Where the two copies of the header stand.
const HEADER_COPIES: [u64; 2] = [0, 512];
/// Where a segment's first frame begins.
pub(crate) const FIRST_FRAME: u64 = 4096;
/// The first format version whose segments have end marks.
const VERSION_WITH_END_MARKS: u32 = 2;
/// Released segments that are kept for reuse; more are given back to the file system.
const KEPT: usize = 8;

pub(crate) struct Segment {
    pub path: String,
    pub file: Arc<dyn DiskFile>,
    /// Counts from 1 without gaps.
    pub number: u64,
    /// Position of the file's first byte.
    pub base: u64,
    pub size: u64,
    /// Whether an end mark stands behind the last frame, if that lies in this segment: its header has a version that says so.
    pub end_marked: bool,
    /// Bytes before this offset have been written since the file was allocated (`u64::MAX`: all of them).
    pub touched: AtomicU64,
}

impl Segment {
    pub fn end(&self) -> u64 {
        self.base + self.size
    }

    fn header(options: &RedoOptions, number: u64, base: u64, size: u64) -> [u8; HEADER_BYTES] {
        FileHeader { kind: KIND, database: options.database, words: [number, base, size] }.encode()
    }

    /// Writes the header of a segment without frames again and syncs it: see `reader.rs` for why.
    pub fn confirm(&self, options: &RedoOptions) -> Result<(), LogError> {
        let start = Start::of(options, self.number, self.base, self.size);
        recycle(self, &start).map_err(|e| LogError::io(&self.path, "cannot write the header of", e))
    }

    /// Gives a segment that an older version made the header of this one. The end mark behind its last frame is durable already.
    pub fn upgrade(&self, options: &RedoOptions) -> Result<(), LogError> {
        let header = Segment::header(options, self.number, self.base, self.size);
        let write = || {
            fault::point("redo.segment.before_upgrade")?;
            write_header(&self.file, &header)?;
            self.file.sync_data()
        };
        write().map_err(|e| LogError::io(&self.path, "cannot write the header of", e))
    }

    fn open(disk: &Arc<dyn Disk>, options: &RedoOptions, name: &str) -> Result<Segment, LogError> {
        let path = format!("{DIRECTORY}/{name}");
        let error = |e| LogError::io(&path, "cannot read", e);
        fault::point("redo.open.segment").map_err(error)?;
        let file = disk.open(&path, false).map_err(error)?;
        let length = file.len().map_err(error)?;
        if length < FIRST_FRAME {
            return Err(LogError::damaged(&path, length, "the file is shorter than a segment's header"));
        }
        let mut copies = Vec::new();
        for at in HEADER_COPIES {
            let mut bytes = [0; HEADER_BYTES];
            file.read_exact_at(&mut bytes, at).map_err(error)?;
            let decoded = FileHeader::decode(&path, &bytes, KIND, Some(options.database));
            copies.push(decoded.map(|header| (header.words, version_of(&bytes))));
        }
        let best = copies.iter().filter_map(|copy| copy.as_ref().ok()).max().copied();
        let ([number, base, size], version) = best.map_or_else(|| copies.remove(0), Ok)?;
        if number == 0
            || size > length
            || !(FIRST_FRAME..=MAX_SEGMENT_BYTES).contains(&size)
            || base.checked_add(size).is_none()
        {
            return Err(LogError::damaged(
                &path,
                32,
                format!("its header speaks of {size} bytes and the file has {length}"),
            ));
        }
        let end_marked = version >= VERSION_WITH_END_MARKS;
        Ok(Segment { path, file, number, base, size, end_marked, touched: AtomicU64::new(FIRST_FRAME) })
    }
}

/// What a segment begins with, before its first frame is written.
struct Start {
    header: [u8; HEADER_BYTES],
    end_mark: [u8; frame::END_MARK_BYTES as usize],
}

impl Start {
    fn of(options: &RedoOptions, number: u64, base: u64, size: u64) -> Start {
        let end_mark = frame::end_mark(options.database.seed(), base + FIRST_FRAME);
        Start { header: Segment::header(options, number, base, size), end_mark }
    }

    fn write(&self, file: &Arc<dyn DiskFile>) -> io::Result<()> {
        write_header(file, &self.header)?;
        file.write_all_at(&self.end_mark, FIRST_FRAME)
    }
}

/// Makes segments, one after the other, from released files or new ones.
pub(crate) struct SegmentMaker {
    disk: Arc<dyn Disk>,
    pub options: RedoOptions,
    free: Vec<Segment>,
    next_slot: u32,
    next_number: u64,
    next_base: u64,
}

/// The segments of a log, as found on disk.
pub(crate) struct Found {
    /// In order of the log, without gaps; from the one that holds `from` on.
    pub live: Vec<Arc<Segment>>,
    pub maker: SegmentMaker,
}

/// Finds all segments. Those that end before `from` are free to be used again.
pub(crate) fn find(disk: &Arc<dyn Disk>, options: RedoOptions, from: u64) -> Result<Found, LogError> {
    let dir_error = |e| LogError::io(DIRECTORY, "cannot open directory", e);
    disk.create_dir_all(DIRECTORY).map_err(dir_error)?;
    // What a killed process renamed or made and did not sync is used from now on, so it must stay.
    disk.sync_dir("").map_err(dir_error)?;
    disk.sync_dir(DIRECTORY).map_err(dir_error)?;
    let mut all = Vec::new();
    let mut next_slot = 0;
    for name in disk.list(DIRECTORY).map_err(dir_error)? {
        if name.ends_with(".tmp") {
            // A segment that was being made when the process ended.
            disk.remove(&format!("{DIRECTORY}/{name}")).map_err(dir_error)?;
        } else if let Some(slot) = name.strip_suffix(".redo").and_then(|slot| slot.parse::<u32>().ok()) {
            next_slot = next_slot.max(slot + 1);
            all.push(Segment::open(disk, &options, &name)?);
        }
    }
    all.sort_by_key(|s| s.number);
    let (free, live): (Vec<_>, Vec<_>) = all.into_iter().partition(|s| s.end() < from);
    for pair in live.windows(2) {
        if pair[1].number != pair[0].number + 1 || pair[1].base != pair[0].end() {
            let what = format!(
                "it is segment {} of the log and begins at position {}; the segment before it is {}, {}, which ends at {}",
                pair[1].number,
                pair[1].base,
                pair[0].number,
                pair[0].path,
                pair[0].end()
            );
            return Err(LogError::damaged(&pair[1].path, 32, what));
        }
    }
    match live.first() {
        Some(first) if first.base > from => {
            let what = format!("the log begins at position {}; positions from {from} are missing", first.base);
            return Err(LogError::damaged(&first.path, 32, what));
        }
        None if from > 0 => {
            let what = format!("no segment holds position {from}, where recovery must begin");
            return Err(LogError::damaged(DIRECTORY, 0, what));
        }
        _ => {}
    }
    let (next_number, next_base) = live.last().map_or((1, 0), |last| (last.number + 1, last.end()));
    let maker = SegmentMaker { disk: disk.clone(), options, free, next_slot, next_number, next_base };
    Ok(Found { live: live.into_iter().map(Arc::new).collect(), maker })
}

impl SegmentMaker {
    /// Size of the next segment.
    pub fn size(&self) -> u64 {
        self.options.segment_bytes()
    }

    /// The next segment of the log, durable and empty. After `DiskFull` it can be called again; other errors are final.
    pub fn make(&mut self) -> Result<Arc<Segment>, LogError> {
        let size = self.size();
        let start = Start::of(&self.options, self.next_number, self.next_base, size);
        let segment = match self.free.iter().position(|s| s.size == size) {
            Some(at) => {
                let free = &self.free[at];
                recycle(free, &start).map_err(|e| LogError::Failed(format!("cannot reuse {}: {e}", free.path)))?;
                let free = self.free.swap_remove(at);
                let touched = AtomicU64::new(u64::MAX);
                Segment { number: self.next_number, base: self.next_base, end_marked: true, touched, ..free }
            }
            None => self.create(&start, size)?,
        };
        self.next_number += 1;
        self.next_base += size;
        Ok(Arc::new(segment))
    }

    fn create(&mut self, start: &Start, size: u64) -> Result<Segment, LogError> {
        let path = format!("{DIRECTORY}/{:04}.redo", self.next_slot);
        let temporary = format!("{DIRECTORY}/{:04}.tmp", self.next_slot);
        let make = || -> io::Result<Arc<dyn DiskFile>> {
            fault::point("redo.segment.before_allocate")?;
            let file = self.disk.open(&temporary, true)?;
            file.allocate(size)?;
            fault::point("redo.segment.before_write")?;
            start.write(&file)?;
            fault::point("redo.segment.before_sync")?;
            file.sync_data()?;
            fault::point("redo.segment.before_rename")?;
            Ok(file)
        };
        let file = make().map_err(|e| {
            // Gives the room back; what is left over is removed at the next start.
            let _ = self.disk.remove(&temporary);
            if is_disk_full(&e) {
                LogError::DiskFull(format!("a redo segment of {size} bytes: {e}"))
            } else {
                LogError::Failed(format!("cannot make {path}: {e}"))
            }
        })?;
        let publish = || {
            self.disk.rename(&temporary, &path)?;
            fault::point("redo.segment.before_sync_dir")?;
            self.disk.sync_dir(DIRECTORY)
        };
        publish().map_err(|e| LogError::Failed(format!("cannot make {path}: {e}")))?;
        self.next_slot += 1;
        let (number, base) = (self.next_number, self.next_base);
        Ok(Segment { path, file, number, base, size, end_marked: true, touched: AtomicU64::new(FIRST_FRAME) })
    }

    /// Removes released segments that cannot be reused because they have another size than is configured now.
    pub fn remove_misfits(&mut self) -> io::Result<()> {
        let size = self.size();
        let (keep, remove): (Vec<_>, Vec<_>) = self.free.drain(..).partition(|s| s.size == size);
        self.free = keep;
        remove.iter().try_for_each(|s| self.disk.remove(&s.path))
    }

    /// Takes back a segment that nothing needs any more.
    pub fn release(&mut self, segment: &Arc<Segment>) -> io::Result<()> {
        if self.free.len() >= KEPT || segment.size != self.size() {
            fault::point("redo.release.before_remove")?;
            return self.disk.remove(&segment.path);
        }
        self.free.push(Segment {
            path: segment.path.clone(),
            file: segment.file.clone(),
            touched: AtomicU64::new(segment.touched.load(Ordering::Relaxed)),
            ..**segment
        });
        Ok(())
    }
}

fn recycle(segment: &Segment, start: &Start) -> io::Result<()> {
    fault::point("redo.segment.before_recycle")?;
    start.write(&segment.file)?;
    fault::point("redo.segment.before_recycle_sync")?;
    segment.file.sync_data()
}

fn write_header(file: &Arc<dyn DiskFile>, header: &[u8]) -> io::Result<()> {
    HEADER_COPIES.iter().try_for_each(|&at| file.write_all_at(header, at))
}

//! Segment files: making them, finding them again, using them again.
//!
//! `redo/0007.redo` is a slot: which part of the log it holds stands in its header (number, base position, size) and changes when it is reused. A new file is
//! allocated, given its header, synced and only then renamed to its name, so every `.redo` file has a whole header. A released one gets the header of its next life written over the
//! old one. The header is there twice, in two sectors written one after the other, so that a write that fails halfway leaves one of them whole; the one with the higher number
//! counts. Either way it is durable before the segment is used, and so is the end mark where its first frame will begin.
use crate::disk::DiskFile;
use crate::error::{LogError, is_disk_full};
use crate::fault;
use crate::header::{FORMAT_VERSION, FileHeader, HEADER_BYTES, version_of};
use crate::redo::{DIRECTORY, Lsn, MAX_SEGMENT_BYTES, RedoOptions, frame};
use crate::superblock::{Claims, SegmentClaim, Superblocks};
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
    /// Of its header.
    version: u32,
    /// Bytes before this offset have been written since the file was allocated (`u64::MAX`: all of them).
    pub touched: AtomicU64,
}

impl Segment {
    pub fn end(&self) -> u64 {
        self.base + self.size
    }

    /// Whether an end mark stands behind the last frame, if that lies in this segment.
    pub fn is_end_marked(&self) -> bool {
        self.version >= VERSION_WITH_END_MARKS
    }

    /// Whether an older version made it, so that what is written now may be new to programs that would read it by its header.
    pub fn is_older(&self) -> bool {
        self.version < FORMAT_VERSION
    }

    fn claim(&self) -> SegmentClaim {
        SegmentClaim { path: self.path.clone(), number: self.number, base: self.base, size: self.size }
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

    fn open(superblocks: &Superblocks, options: &RedoOptions, name: &str) -> Result<Segment, LogError> {
        let path = format!("{DIRECTORY}/{name}");
        let error = |e| LogError::io(&path, "cannot read", e);
        fault::point("redo.open.segment").map_err(error)?;
        let file = superblocks.disk().open(&path, false).map_err(error)?;
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
        Ok(Segment { path, file, number, base, size, version, touched: AtomicU64::new(FIRST_FRAME) })
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
    pub superblocks: Arc<Superblocks>,
    pub options: RedoOptions,
    free: Vec<Segment>,
    /// Files of segments that were being made when the process before ended.
    unfinished: Vec<String>,
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

/// Finds all segments and changes nothing. Those that end before `from` are free to be used again.
pub(crate) fn find(superblocks: &Arc<Superblocks>, options: RedoOptions, from: u64) -> Result<Found, LogError> {
    let dir_error = |e| LogError::io(DIRECTORY, "cannot open directory", e);
    let disk = superblocks.disk();
    let mut names = Vec::new();
    if disk.exists(DIRECTORY).map_err(dir_error)? {
        // What a killed process renamed or made and did not sync is used from now on, so it must stay.
        disk.sync_dir("").map_err(dir_error)?;
        disk.sync_dir(DIRECTORY).map_err(dir_error)?;
        names = disk.list(DIRECTORY).map_err(dir_error)?;
    }
    let mut all = Vec::new();
    let mut unfinished = Vec::new();
    let mut next_slot = 0;
    for name in names {
        if name.ends_with(".tmp") {
            unfinished.push(format!("{DIRECTORY}/{name}"));
        } else if let Some(slot) = name.strip_suffix(".redo").and_then(|slot| slot.parse::<u32>().ok()) {
            next_slot = next_slot.max(slot + 1);
            all.push(Segment::open(superblocks, &options, &name)?);
        }
    }
    check_listed(&superblocks.claims(), &all, from)?;
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
    let superblocks = superblocks.clone();
    let maker = SegmentMaker { superblocks, options, free, unfinished, next_slot, next_number, next_base };
    Ok(Found { live: live.into_iter().map(Arc::new).collect(), maker })
}

/// What is listed must be there, unless recovery begins behind it. There may be more: made, and not listed before the process ended.
fn check_listed(claims: &Claims, found: &[Segment], from: u64) -> Result<(), LogError> {
    for listed in claims.segments.iter().filter(|listed| listed.base + listed.size > from) {
        let is =
            |what: &str| format!("{what} segment {} of the redo log, from position {}", listed.number, listed.base);
        match found.iter().find(|segment| segment.path == listed.path) {
            None => return Err(LogError::missing(&listed.path, is("it was"))),
            Some(segment) if segment.number < listed.number => {
                return Err(LogError::outdated(
                    &listed.path,
                    format!("it is segment {}, {}", segment.number, is("and was")),
                ));
            }
            Some(segment) if segment.claim() != *listed => {
                let what = format!("it is segment {}, and the superblocks say that {}", segment.number, is("it is"));
                return Err(LogError::damaged(&listed.path, 32, what));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

impl SegmentMaker {
    /// Size of the next segment.
    pub fn size(&self) -> u64 {
        self.options.segment_bytes()
    }

    /// What a start has to do to the directory before the log goes on in `live`: from now on the other segments are not needed any more. Records why the log's end is doubtful.
    pub fn settle(&mut self, live: &[Arc<Segment>], doubt: Option<String>) -> Result<(), LogError> {
        let error = |e| LogError::io(DIRECTORY, "cannot make ready directory", e);
        let disk = self.superblocks.disk();
        self.superblocks.begin(self.options.database)?;
        disk.create_dir_all(DIRECTORY).and_then(|()| disk.sync_dir("")).map_err(error)?;
        let listed: Vec<_> = live.iter().map(|segment| segment.claim()).collect();
        self.superblocks.update_both(|claims| {
            claims.segments = listed;
            claims.doubt = doubt.or(claims.doubt.take());
        })?;
        // Segments of another size than is configured now cannot be used again.
        let size = self.size();
        let (keep, remove): (Vec<_>, Vec<_>) = self.free.drain(..).partition(|s| s.size == size);
        self.free = keep;
        let paths = remove.iter().map(|segment| &segment.path).chain(&self.unfinished);
        paths.into_iter().try_for_each(|path| disk.remove(path)).map_err(error)?;
        self.unfinished.clear();
        Ok(())
    }

    /// The next segment of the log, durable, listed and empty. After `DiskFull` it can be called again; other errors are final.
    pub fn make(&mut self) -> Result<Arc<Segment>, LogError> {
        let size = self.size();
        let start = Start::of(&self.options, self.next_number, self.next_base, size);
        let segment = match self.free.iter().position(|s| s.size == size) {
            Some(at) => {
                let free = &self.free[at];
                recycle(free, &start).map_err(|e| LogError::Failed(format!("cannot reuse {}: {e}", free.path)))?;
                let free = self.free.swap_remove(at);
                let touched = AtomicU64::new(u64::MAX);
                Segment { number: self.next_number, base: self.next_base, version: FORMAT_VERSION, touched, ..free }
            }
            None => self.create(&start, size)?,
        };
        if let Err(error) = self.superblocks.update(|claims| claims.segments.push(segment.claim())) {
            self.free.push(segment);
            return Err(error);
        }
        self.next_number += 1;
        self.next_base += size;
        Ok(Arc::new(segment))
    }

    fn create(&mut self, start: &Start, size: u64) -> Result<Segment, LogError> {
        let path = format!("{DIRECTORY}/{:04}.redo", self.next_slot);
        let temporary = format!("{DIRECTORY}/{:04}.tmp", self.next_slot);
        let disk = self.superblocks.disk();
        let make = || -> io::Result<Arc<dyn DiskFile>> {
            fault::point("redo.segment.before_allocate")?;
            let file = disk.open(&temporary, true)?;
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
            let _ = disk.remove(&temporary);
            if is_disk_full(&e) {
                LogError::DiskFull(format!("a redo segment of {size} bytes: {e}"))
            } else {
                LogError::Failed(format!("cannot make {path}: {e}"))
            }
        })?;
        let publish = || {
            disk.rename(&temporary, &path)?;
            fault::point("redo.segment.before_sync_dir")?;
            disk.sync_dir(DIRECTORY)
        };
        publish().map_err(|e| LogError::Failed(format!("cannot make {path}: {e}")))?;
        self.next_slot += 1;
        let (number, base) = (self.next_number, self.next_base);
        Ok(Segment { path, file, number, base, size, version: FORMAT_VERSION, touched: AtomicU64::new(FIRST_FRAME) })
    }

    /// The log does not need these any more, so neither superblock lists them when this returns. It is synced up to `redo`.
    pub fn omit(&self, segments: &[Arc<Segment>], redo: Lsn) -> Result<(), LogError> {
        self.superblocks.update_both(|claims| {
            claims.redo = claims.redo.max(redo);
            claims.segments.retain(|listed| segments.iter().all(|segment| segment.number != listed.number));
        })
    }

    /// Takes back a segment that is listed no more.
    pub fn release(&mut self, segment: &Arc<Segment>) -> io::Result<()> {
        if self.free.len() >= KEPT || segment.size != self.size() {
            fault::point("redo.release.before_remove")?;
            return self.superblocks.disk().remove(&segment.path);
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

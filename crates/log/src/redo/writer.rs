//! The writing side: appending into a buffer, and flushing it.
//!
//! *Append* holds the log's lock for as long as it takes to copy a record. *Flush* takes the filled frames out under the lock, then writes and syncs them without it: the
//! next frame fills meanwhile, so one sync serves everything that was appended during the one before it. Flushing also makes the next segment when the present one is half full,
//! so that append hardly ever has to.
//!
//! A new segment's blocks are allocated but were never written, and a first write costs twice as much as a later one (the file system must note that the block
//! has content, `real_disk.rs`). So a flush into one also writes zeros over the [`ZERO_AHEAD`] bytes that follow: dozens of flushes share one such cost.
//!
//! Behind the last frame of a flush stands an end mark, written together with it, so that recovery tells a clean end of the log from one
//! whose last frame cannot be read. A frame that fills its segment needs none: the next segment was made with one.
//!
//! Locks, in this order: `flusher`, `maker`, `inner`; the superblocks' own lock is taken under `maker` or alone.
use super::frame::{self, ALIGNMENT, FRAME_HEADER, FrameHeader, MIN_ROOM};
use super::segment::{FIRST_FRAME, Segment, SegmentMaker};
use super::{Appended, Lsn, MAX_RECORD_BYTES};
use crate::error::LogError;
use crate::fault;
use crate::superblock::Superblocks;
use parking_lot::Mutex;
use rauk_types::Timestamp;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far flushes into new segments zero ahead.
const ZERO_AHEAD: usize = 256 << 10;
static ZEROS: [u8; ZERO_AHEAD] = [0; ZERO_AHEAD];
/// Buffers larger than this are given back after a flush.
const KEPT_BUFFER_BYTES: usize = 4 << 20;
/// Written without a sync in between: other files' syncs (the manage group's log) wait for no more than this.
const SYNC_BYTES: usize = 4 << 20;

pub struct RedoLog {
    inner: Mutex<Inner>,
    /// Held by whoever flushes.
    flusher: Mutex<()>,
    maker: Mutex<SegmentMaker>,
    superblocks: Arc<Superblocks>,
    incarnation: u32,
    seed: u32,
    last_time: AtomicU64,
    durable_time: AtomicU64,
    durable_lsn: AtomicU64,
    /// Why nothing more is accepted.
    failed: OnceLock<String>,
}

struct Inner {
    /// Segments that hold a position from the release point on; the last is being filled.
    live: VecDeque<Arc<Segment>>,
    /// Segments that follow, in order.
    ready: VecDeque<Arc<Segment>>,
    /// Offset in the last live segment of the next byte.
    at: u64,
    /// Frames to be written, in order; the last is being filled if `open`. All but the last reach to the end of their segments.
    frames: Vec<Frame>,
    open: bool,
    last_time: u64,
    /// A buffer that a flush is done with.
    spare: Vec<u8>,
}

struct Frame {
    segment: Arc<Segment>,
    /// Offset of its header in the segment.
    start: u64,
    /// Room for the header, then the pieces.
    bytes: Vec<u8>,
    time_before: u64,
    /// Newest commit that ends in it or before it.
    last_time: u64,
}

/// Where a recovered log goes on.
pub(super) struct Continuation {
    pub live: VecDeque<Arc<Segment>>,
    pub ready: VecDeque<Arc<Segment>>,
    pub at: u64,
    pub incarnation: u32,
    pub last_time: u64,
    pub maker: SegmentMaker,
}

impl Inner {
    fn segment(&self) -> &Arc<Segment> {
        self.live.back().expect("a log has a segment")
    }

    /// Position of the next byte.
    fn end(&self) -> u64 {
        self.segment().base + self.at
    }

    /// Bytes of one record that go into what the segments at hand have left; stops counting at `wanted`.
    fn room(&self, time: Option<u64>, wanted: u64) -> u64 {
        let size = self.segment().size;
        let header = frame::piece_header(true, time);
        let mut room = match size - self.at {
            left if left < MIN_ROOM => 0,
            left if self.open => left - header,
            _ => size - self.at.next_multiple_of(ALIGNMENT) - FRAME_HEADER - header,
        };
        for next in &self.ready {
            if room >= wanted {
                break;
            }
            room += next.size - FIRST_FRAME - FRAME_HEADER - header;
        }
        room
    }

    /// Copies a record into frames; there is room for it.
    fn put(&mut self, time: Option<u64>, payload: &[u8]) -> (Lsn, Lsn) {
        let mut rest = payload;
        let mut start = None;
        loop {
            if self.segment().size - self.at < MIN_ROOM {
                let next = self.ready.pop_front().expect("room was counted");
                self.live.push_back(next);
                self.at = FIRST_FRAME;
                self.open = false;
            }
            if !self.open {
                self.begin_frame();
            }
            let first = start.is_none();
            let header = frame::piece_header(first, time);
            let left = (self.segment().size - self.at - header) as usize;
            let (piece, after) = rest.split_at(rest.len().min(left));
            start.get_or_insert(Lsn(self.end()));
            let frame = self.frames.last_mut().expect("a frame is open");
            frame::put_piece(&mut frame.bytes, first, after.is_empty(), time, piece);
            self.at += header + piece.len() as u64;
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        if let Some(time) = time {
            self.last_time = time;
            self.frames.last_mut().expect("a frame is open").last_time = time;
        }
        (start.expect("at least one piece"), Lsn(self.end()))
    }

    fn begin_frame(&mut self) {
        self.at = self.at.next_multiple_of(ALIGNMENT);
        let mut bytes = std::mem::take(&mut self.spare);
        bytes.clear();
        bytes.resize(FRAME_HEADER as usize, 0);
        let (segment, time) = (self.segment().clone(), self.last_time);
        self.frames.push(Frame { segment, start: self.at, bytes, time_before: time, last_time: time });
        self.at += FRAME_HEADER;
        self.open = true;
    }
}

/// Puts the end mark behind the frame that begins at `start` of its segment, unless the frame ends the segment.
pub(super) fn put_end_mark(frame: &mut Vec<u8>, segment: &Segment, start: u64, seed: u32) {
    let end = start + frame.len() as u64;
    if segment.size - end < MIN_ROOM {
        return;
    }
    let at = end.next_multiple_of(ALIGNMENT);
    frame.resize((at - start) as usize, 0);
    frame.extend_from_slice(&frame::end_mark(seed, segment.base + at));
}

impl RedoLog {
    pub(super) fn new(from: Continuation) -> RedoLog {
        let seed = from.maker.options.database.seed();
        let inner = Inner {
            live: from.live,
            ready: from.ready,
            at: from.at,
            frames: Vec::new(),
            open: false,
            last_time: from.last_time,
            spare: Vec::new(),
        };
        RedoLog {
            durable_lsn: AtomicU64::new(inner.end()),
            inner: Mutex::new(inner),
            flusher: Mutex::new(()),
            superblocks: from.maker.superblocks.clone(),
            maker: Mutex::new(from.maker),
            incarnation: from.incarnation,
            seed,
            last_time: AtomicU64::new(from.last_time),
            durable_time: AtomicU64::new(from.last_time),
            failed: OnceLock::new(),
        }
    }

    /// Puts a commit record into the buffer. Its time is above that of every record before it, and `decided` is called with it while the
    /// log's lock is held, so that times and positions have one order and a snapshot drawn afterwards (`last_time`) sees it.
    /// On error nothing was appended. Does no I/O except taking a new segment when the present one is full.
    pub fn append_commit(&self, payload: &[u8], decided: impl FnOnce(Timestamp)) -> Result<Appended, LogError> {
        self.append_record(true, payload, decided)
    }

    /// A record without a commit time of its own (counters).
    pub fn append(&self, payload: &[u8]) -> Result<Appended, LogError> {
        self.append_record(false, payload, |_| {})
    }

    fn append_record(
        &self,
        commit: bool,
        payload: &[u8],
        decided: impl FnOnce(Timestamp),
    ) -> Result<Appended, LogError> {
        if payload.len() > MAX_RECORD_BYTES {
            return Err(LogError::RecordTooLarge(payload.len()));
        }
        fault::point("redo.append").map_err(|e| LogError::io("redo log", "cannot append to", e))?;
        let wanted = (payload.len() as u64).max(1);
        loop {
            if let Some(why) = self.failed.get() {
                return Err(LogError::Failed(why.clone()));
            }
            let mut inner = self.inner.lock();
            let time = commit.then_some(inner.last_time + 1);
            if inner.room(time, wanted) >= wanted {
                let (start, end) = inner.put(time, payload);
                let time = Timestamp(inner.last_time);
                if commit {
                    decided(time);
                    self.last_time.store(time.0, Ordering::Release);
                }
                return Ok(Appended { start, end, time });
            }
            drop(inner);
            self.make_room(commit, wanted)?;
        }
    }

    /// Makes segments until a record of `wanted` bytes would fit.
    fn make_room(&self, commit: bool, wanted: u64) -> Result<(), LogError> {
        let mut maker = self.maker.lock();
        loop {
            {
                let inner = self.inner.lock();
                if inner.room(commit.then_some(0), wanted) >= wanted {
                    return Ok(());
                }
            }
            let segment = maker.make().inspect_err(|e| self.note_failure(e))?;
            self.inner.lock().ready.push_back(segment);
            fault::point("redo.segment.after_take").map_err(|e| LogError::io("redo log", "cannot append to", e))?;
        }
    }

    /// Time of the newest appended commit: a snapshot at this time sees all appended commits and no later one.
    pub fn last_time(&self) -> Timestamp {
        Timestamp(self.last_time.load(Ordering::Acquire))
    }

    /// Every commit at or before this time is on disk.
    pub fn durable_time(&self) -> Timestamp {
        Timestamp(self.durable_time.load(Ordering::Acquire))
    }

    pub fn durable_lsn(&self) -> Lsn {
        Lsn(self.durable_lsn.load(Ordering::Acquire))
    }

    pub fn end_lsn(&self) -> Lsn {
        Lsn(self.inner.lock().end())
    }

    /// Bytes of all segments that the log occupies now, those kept for reuse not counted.
    pub fn live_bytes(&self) -> u64 {
        let inner = self.inner.lock();
        inner.live.iter().chain(&inner.ready).map(|s| s.size).sum()
    }

    /// Writes and syncs everything appended so far, outside of the log's lock. `false`: another thread is at it (it may or may not
    /// take what was appended last; look at `durable_lsn`). An error is final.
    pub fn flush(&self) -> Result<bool, LogError> {
        let Some(_flushing) = self.flusher.try_lock() else { return Ok(false) };
        if let Some(why) = self.failed.get() {
            return Err(LogError::Failed(why.clone()));
        }
        let frames = {
            let mut inner = self.inner.lock();
            inner.open = false;
            std::mem::take(&mut inner.frames)
        };
        for mut frame in frames {
            let end = frame.segment.base + frame.start + frame.bytes.len() as u64;
            self.write(&mut frame).map_err(|e| {
                let error = LogError::Failed(format!("{} at byte {}: {e}", frame.segment.path, frame.start));
                self.note_failure(&error);
                error
            })?;
            self.durable_time.store(frame.last_time, Ordering::Release);
            self.durable_lsn.store(end, Ordering::Release);
            if frame.bytes.capacity() <= KEPT_BUFFER_BYTES {
                self.inner.lock().spare = frame.bytes;
            }
        }
        self.make_ahead()?;
        Ok(true)
    }

    /// Writes one frame with an end mark behind it and syncs it, a long one piece by piece. The next frame may be written only after this has returned: that is what recovery relies on.
    fn write(&self, frame: &mut Frame) -> io::Result<()> {
        let (header, payload) = frame.bytes.split_at_mut(FRAME_HEADER as usize);
        let encoded = FrameHeader {
            length: payload.len() as u32,
            lsn: frame.segment.base + frame.start,
            incarnation: self.incarnation,
            time_before: frame.time_before,
            payload_crc: frame::payload_crc(self.seed, payload),
        };
        header.copy_from_slice(&encoded.encode(self.seed));
        put_end_mark(&mut frame.bytes, &frame.segment, frame.start, self.seed);
        fault::point("redo.flush.before_write")?;
        let segment = &frame.segment;
        let mut at = frame.start;
        for piece in frame.bytes.chunks(SYNC_BYTES) {
            if at > frame.start {
                segment.file.sync_data()?;
            }
            segment.file.write_all_at(piece, at)?;
            at += piece.len() as u64;
        }
        let end = frame.start + frame.bytes.len() as u64;
        if end > segment.touched.load(Ordering::Relaxed) {
            let ahead = if frame.bytes.len() < ZERO_AHEAD { (segment.size - end).min(ZERO_AHEAD as u64) } else { 0 };
            segment.file.write_all_at(&ZEROS[..ahead as usize], end)?;
            segment.touched.store(end + ahead, Ordering::Relaxed);
        }
        fault::point("redo.flush.before_sync")?;
        segment.file.sync_data()?;
        fault::point("redo.flush.after_sync")?;
        fault::point("redo.flush.before_publish")
    }

    /// Makes the next segment when the present one is half full. A full disk is no error yet: append will say so.
    fn make_ahead(&self) -> Result<(), LogError> {
        let due = |inner: &Inner| inner.ready.is_empty() && inner.at > inner.segment().size / 2;
        if !due(&self.inner.lock()) {
            return Ok(());
        }
        let mut maker = self.maker.lock();
        if !due(&self.inner.lock()) {
            return Ok(());
        }
        match maker.make() {
            Ok(segment) => self.inner.lock().ready.push_back(segment),
            Err(LogError::DiskFull(_)) => {}
            Err(error) => {
                self.note_failure(&error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Segments wholly before `lsn` may be overwritten. The caller has made sure that recovery will never begin before it. Segments that are not
    /// kept for reuse are removed; failing to remove one only costs its room. After `DiskFull` nothing has been released, other errors are final.
    pub fn release_before(&self, lsn: Lsn) -> Result<(), LogError> {
        let durable = self.durable_lsn();
        let bound = lsn.min(durable).0;
        let mut maker = self.maker.lock();
        let released: Vec<_> = {
            let inner = self.inner.lock();
            let most = inner.live.len() - 1;
            inner.live.iter().take(most).take_while(|segment| segment.end() <= bound).cloned().collect()
        };
        if released.is_empty() {
            return Ok(());
        }
        maker.omit(&released, durable).inspect_err(|e| self.note_failure(e))?;
        for segment in released {
            self.inner.lock().live.pop_front();
            if let Err(error) = maker.release(&segment) {
                tracing::warn!(file = segment.path, %error, "cannot remove a redo segment that is not needed any more");
            }
        }
        Ok(())
    }

    /// Claims in the superblocks that what is durable now must be there at the next start. Does no I/O when both say so already. An error is final.
    pub fn claim(&self) -> Result<(), LogError> {
        let claimed = self.superblocks.claim_redo(self.durable_lsn());
        match claimed {
            // The claim stays behind until there is room.
            Err(LogError::DiskFull(_)) => Ok(()),
            claimed => claimed.inspect_err(|e| self.note_failure(e)),
        }
    }

    /// Claims at a stop, in both superblocks.
    pub fn claim_all(&self) -> Result<(), LogError> {
        self.claim()?;
        self.claim()
    }

    fn note_failure(&self, error: &LogError) {
        if let LogError::Failed(why) = error {
            // Later failures follow from the first.
            let _ = self.failed.set(why.clone());
        }
    }
}

//! The reading side: recovery from a position to the end of the log, and what the end means.
//!
//! Read all entries with [`RedoReader::next`]; when it gives `None` the log's end is found and judged, and [`RedoReader::into_log`] goes on behind it. See the module's text for
//! how a torn end is told from damage.
//!
//! Before the log goes on, its last frame is written again and synced, and so are the headers of segments that follow: they may be whole without ever having been
//! synced (then the frame counts as committed from now on, and must not vanish in the next crash), and after a failed sync the page cache may hold what the disk does not.
use super::frame::{self, ALIGNMENT, END_MARK_BYTES, FRAME_HEADER, FrameHeader, MIN_ROOM, take_piece};
use super::segment::{self, FIRST_FRAME, Segment, SegmentMaker};
use super::writer::{Continuation, RedoLog, put_end_mark};
use super::{Lsn, MAX_RECORD_BYTES, RedoOptions};
use crate::error::LogError;
use crate::fault;
use crate::superblock::Superblocks;
use rauk_types::Timestamp;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// A record, borrowed from the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    pub start: Lsn,
    pub end: Lsn,
    /// The commit's time; `None` for records without one.
    pub time: Option<Timestamp>,
    pub payload: &'a [u8],
}

/// The log has no end mark where its last readable frame ends: the last write was torn by a crash, or what it wrote was damaged later, and then
/// records that were acknowledged may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoubtfulEnd {
    /// The segment file.
    pub path: String,
    /// Where in the file the next frame or the end mark should be.
    pub offset: u64,
    /// The same place as a position of the log; records before it were read.
    pub position: Lsn,
    /// What was found there.
    pub what: String,
}

impl fmt::Display for DoubtfulEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}, and no end mark", self.path, self.offset, self.what)
    }
}

/// Reads the log from a position to its end.
pub struct RedoReader {
    segments: Vec<Arc<Segment>>,
    maker: SegmentMaker,
    seed: u32,
    /// Records that begin before this are left out.
    from: u64,
    /// Everything before this was durable.
    durable: u64,
    /// The segment being read, and the offset behind the last frame in it.
    segment: usize,
    at: u64,
    /// The frame being read: its payload, the position of the payload's first byte, and how much of it is read.
    payload: Vec<u8>,
    payload_base: u64,
    read: usize,
    /// A record whose first pieces were in earlier frames.
    partial: Option<Partial>,
    /// Whether pieces without their beginning may come: the record began before `from`.
    midway: bool,
    last_frame: Option<(usize, u64, u64)>,
    last_time: u64,
    incarnation: u32,
    ended: bool,
    doubtful: Option<DoubtfulEnd>,
}

struct Partial {
    start: u64,
    time: Option<u64>,
    bytes: Vec<u8>,
    done: bool,
}

enum Found {
    /// In the frame's payload.
    Whole(u64, u64, Option<u64>, std::ops::Range<usize>),
    /// Put together in `partial`.
    Assembled(u64),
}

impl RedoReader {
    /// Opens the log to read it from `from` on: zero, or a position that `end_lsn` gave between two records. Everything before `durable` is known to have been
    /// durable (from a checkpoint's manifest), and so is what the superblocks claim: a log that ends before it is damaged. A database without any segment has an empty log.
    /// Reading changes nothing on disk; [`RedoReader::into_log`] does.
    pub fn open(
        superblocks: &Arc<Superblocks>,
        options: RedoOptions,
        from: Lsn,
        durable: Lsn,
    ) -> Result<RedoReader, LogError> {
        let found = segment::find(superblocks, options, from.0)?;
        let durable = durable.max(superblocks.claims().redo);
        Ok(RedoReader {
            segments: found.live,
            maker: found.maker,
            seed: options.database.seed(),
            from: from.0,
            durable: durable.max(from).0,
            segment: 0,
            at: FIRST_FRAME,
            payload: Vec::new(),
            payload_base: 0,
            read: 0,
            partial: None,
            midway: from.0 > 0,
            last_frame: None,
            last_time: 0,
            incarnation: 0,
            ended: false,
            doubtful: None,
        })
    }

    /// The next record; `None` at the end of the log.
    #[allow(clippy::should_implement_trait)] // it lends
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, LogError> {
        if self.partial.as_ref().is_some_and(|p| p.done) {
            self.partial = None;
        }
        let found = loop {
            if self.ended {
                return Ok(None);
            }
            if self.read == self.payload.len() {
                self.load_frame()?;
                continue;
            }
            if let Some(found) = self.take_record()? {
                let start = match found {
                    Found::Whole(start, ..) => start,
                    Found::Assembled(_) => self.partial.as_ref().expect("just put together").start,
                };
                if start >= self.from {
                    break found;
                }
                self.partial = None;
            }
        };
        Ok(Some(match found {
            Found::Whole(start, end, time, range) => {
                Entry { start: Lsn(start), end: Lsn(end), time: time.map(Timestamp), payload: &self.payload[range] }
            }
            Found::Assembled(end) => {
                let partial = self.partial.as_ref().expect("just put together");
                let time = partial.time.map(Timestamp);
                Entry { start: Lsn(partial.start), end: Lsn(end), time, payload: &partial.bytes }
            }
        }))
    }

    /// Takes the next piece; gives the record that it completes.
    fn take_record(&mut self) -> Result<Option<Found>, LogError> {
        let start = self.payload_base + self.read as u64;
        let piece = take_piece(&self.payload, self.read).ok_or_else(|| self.malformed(start, "a piece of a record"))?;
        self.read = piece.content.end;
        let end = self.payload_base + self.read as u64;
        if piece.first {
            self.midway = false;
            if self.partial.is_some() {
                return Err(self.malformed(start, "the rest of a record, but another one begins"));
            }
            if let Some(time) = piece.time.filter(|&time| time <= self.last_time) {
                let what = format!("a commit after {}, but its time is {time}", self.last_time);
                return Err(self.malformed(start, &what));
            }
            if piece.last {
                self.last_time = piece.time.unwrap_or(self.last_time);
                return Ok(Some(Found::Whole(start, end, piece.time, piece.content)));
            }
            self.partial = Some(Partial { start, time: piece.time, bytes: Vec::new(), done: false });
        }
        let Some(partial) = &mut self.partial else {
            return if self.midway {
                Ok(None)
            } else {
                Err(self.malformed(start, "a record, but this is the middle of one"))
            };
        };
        partial.bytes.extend_from_slice(&self.payload[piece.content]);
        if partial.bytes.len() > MAX_RECORD_BYTES {
            return Err(self.malformed(start, "a record of at most 1 GiB"));
        }
        partial.done = piece.last;
        if !piece.last {
            return Ok(None);
        }
        self.last_time = partial.time.unwrap_or(self.last_time);
        Ok(Some(Found::Assembled(end)))
    }

    /// Reads the next frame, or finds the end of the log.
    fn load_frame(&mut self) -> Result<(), LogError> {
        let mut index = self.segment;
        let mut start = self.at.next_multiple_of(ALIGNMENT);
        if self.segments.get(index).is_some_and(|s| s.size - self.at < MIN_ROOM) {
            index += 1;
            start = FIRST_FRAME;
        }
        let Some(segment) = self.segments.get(index).cloned() else {
            return self.end(index, start, "no segment follows");
        };
        let error = |e| LogError::io(&segment.path, "cannot read", e);
        fault::point("redo.read.frame").map_err(error)?;
        let mut bytes = [0; FRAME_HEADER as usize];
        segment.file.read_exact_at(&mut bytes, start).map_err(error)?;
        let Some(header) = FrameHeader::decode(&bytes, self.seed, segment.base + start) else {
            return self.end(index, start, "no frame of the log begins here");
        };
        let content = start + FRAME_HEADER;
        let end = content + u64::from(header.length);
        if end > segment.size {
            return self.end(index, start, "the frame that begins here does not end within the segment");
        }
        self.payload.clear();
        self.read = 0;
        // Frames wholly before `from` are only stepped over: a checkpoint holds what they say.
        if segment.base + end > self.from {
            self.payload.resize(header.length as usize, 0);
            segment.file.read_exact_at(&mut self.payload, content).map_err(error)?;
            if frame::payload_crc(self.seed, &self.payload) != header.payload_crc {
                return self.end(index, start, "the checksum of the frame that begins here does not match");
            }
        }
        if header.incarnation < self.incarnation {
            let what = format!("a frame of incarnation {} follows one of {}", header.incarnation, self.incarnation);
            return Err(LogError::damaged(&segment.path, start, what));
        }
        if header.incarnation > self.incarnation {
            // What the incarnation before had begun and not finished was never acknowledged.
            self.partial = None;
        }
        self.incarnation = header.incarnation;
        self.last_time = self.last_time.max(header.time_before);
        self.payload_base = segment.base + content;
        self.last_frame = Some((index, start, end));
        self.segment = index;
        self.at = end;
        Ok(())
    }

    /// No frame could be read at offset `start` of segment `index`, where one was looked for: the end of the log, or damage.
    fn end(&mut self, index: usize, start: u64, what: &str) -> Result<(), LogError> {
        self.payload.clear();
        self.read = 0;
        self.ended = true;
        let file = self.segments.get(index).map_or(super::DIRECTORY, |s| &s.path);
        if self.end_lsn().0 < self.durable {
            let what = format!("{what}, but the log was durable up to position {}", self.durable);
            return Err(LogError::damaged(file, start, what));
        }
        for (i, segment) in self.segments.iter().enumerate().skip(index) {
            // A later segment has frames only if it has a first one.
            let found = match i == index {
                true => self.find_frame(segment, start + ALIGNMENT, segment.size)?,
                false => self.find_frame(segment, FIRST_FRAME, FIRST_FRAME + FRAME_HEADER)?,
            };
            if let Some(lsn) = found {
                let what = format!("{what}, but the log goes on at position {lsn}, in {}", segment.path);
                return Err(LogError::damaged(file, start, what));
            }
        }
        if let Some(segment) = self.segments.get(index).filter(|segment| segment.is_end_marked()) {
            let position = segment.base + start;
            let mut bytes = [0; END_MARK_BYTES as usize];
            let read = segment.file.read_exact_at(&mut bytes, start);
            read.map_err(|e| LogError::io(&segment.path, "cannot read", e))?;
            if !frame::is_end_mark(&bytes, self.seed, position) {
                let (path, position) = (segment.path.clone(), Lsn(position));
                self.doubtful = Some(DoubtfulEnd { path, offset: start, position, what: what.to_string() });
            }
        }
        Ok(())
    }

    /// Position of the first valid frame header between two offsets of a segment.
    fn find_frame(&self, segment: &Segment, from: u64, to: u64) -> Result<Option<u64>, LogError> {
        const CHUNK: u64 = 1 << 20;
        let mut bytes = Vec::new();
        let mut at = from;
        while at + FRAME_HEADER <= to {
            let length = (to - at).min(CHUNK + FRAME_HEADER);
            bytes.resize(length as usize, 0);
            segment.file.read_exact_at(&mut bytes, at).map_err(|e| LogError::io(&segment.path, "cannot read", e))?;
            for offset in (0..=(length - FRAME_HEADER).min(CHUNK - ALIGNMENT)).step_by(ALIGNMENT as usize) {
                let lsn = segment.base + at + offset;
                if FrameHeader::decode(&bytes[offset as usize..], self.seed, lsn).is_some() {
                    return Ok(Some(lsn));
                }
            }
            at += CHUNK;
        }
        Ok(None)
    }

    fn malformed(&self, lsn: u64, expected: &str) -> LogError {
        let segment = &self.segments[self.segment];
        LogError::damaged(&segment.path, lsn - segment.base, format!("expected {expected}"))
    }

    /// Where the log ends, once `next` has given `None`.
    pub fn end_lsn(&self) -> Lsn {
        Lsn(self.segments.get(self.segment).map_or(0, |s| s.base + self.at))
    }

    /// Once `next` has given `None`: whether the end lacks its end mark. `None` is a clean end, or one in a segment of an older format version, which
    /// has no end marks. [`RedoReader::into_log`] cuts what follows the last readable frame and puts an end mark there, so the next opening finds a clean end; the
    /// superblocks keep the doubt.
    pub fn doubtful_end(&self) -> Option<&DoubtfulEnd> {
        assert!(self.ended, "the log is read to its end before that is judged");
        self.doubtful.as_ref()
    }

    /// Time of the newest commit read so far.
    pub fn last_time(&self) -> Timestamp {
        Timestamp(self.last_time)
    }

    /// Bytes read so far and an upper bound of what there is to read, for showing progress.
    pub fn progress(&self) -> (u64, u64) {
        let base = self.segments.first().map_or(0, |s| s.base);
        let last = self.segments.last().map_or(0, |s| s.end());
        (self.end_lsn().0.saturating_sub(self.from.max(base)), last.saturating_sub(self.from.max(base)))
    }

    /// Goes on behind the end that was found. The log's times continue above `last_time` (a checkpoint's, perhaps) and those read.
    pub fn into_log(mut self, last_time: Timestamp) -> Result<RedoLog, LogError> {
        assert!(self.ended, "the log is read to its end before it goes on");
        self.maker.settle(&self.segments, self.doubtful.as_ref().map(|end| end.to_string()))?;
        if self.segments.is_empty() {
            self.segments.push(self.maker.make()?);
        }
        let (last_segment, options) = (&self.segments[self.segment], &self.maker.options);
        if let Some((segment, start, end)) = self.last_frame {
            assert_eq!(segment, self.segment, "the log goes on behind its last frame");
            let error = |e| LogError::io(&last_segment.path, "cannot write the last frame again to", e);
            let mut bytes = vec![0; (end - start) as usize];
            last_segment.file.read_exact_at(&mut bytes, start).map_err(error)?;
            put_end_mark(&mut bytes, last_segment, start, self.seed);
            fault::point("redo.open.before_rewrite").map_err(error)?;
            last_segment.file.write_all_at(&bytes, start).map_err(error)?;
            fault::point("redo.open.before_sync").map_err(error)?;
            last_segment.file.sync_data().map_err(error)?;
            if last_segment.is_older() {
                last_segment.upgrade(options)?;
            }
        } else {
            last_segment.confirm(options)?;
        }
        let ready: VecDeque<_> = self.segments.split_off(self.segment + 1).into();
        ready.iter().try_for_each(|segment| segment.confirm(&self.maker.options))?;
        Ok(RedoLog::new(Continuation {
            live: self.segments.into(),
            ready,
            at: self.at,
            incarnation: self.incarnation + 1,
            last_time: self.last_time.max(last_time.0),
            maker: self.maker,
        }))
    }
}

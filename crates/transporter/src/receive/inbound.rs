//! Bytes in, frames out: reading a link's socket.
//!
//! A receiver has one buffer for all its sockets. Bytes are read into it and frames are cut off its front: what a handler gets is a part of that memory, counted by
//! reference, without a copy. When little room is left, the memory is used again if all frames of it are gone, else a new piece is taken. (It is always initialised; clearing a piece
//! costs a small part of what the kernel's copy into it does.)
//!
//! The beginning of a frame whose rest has not come stays with its link: a small one is copied (it will stand in front of the next read), one that announces more than
//! [`LARGE`] gets memory of its own, into which the rest is read directly. That memory grows with what has come, to eight times of it at most: a peer that
//! announces much and sends little costs little.

use crate::stream::Stream;
use bytes::{Bytes, BytesMut};
use rauk_wire::frame::{HEADER, Parsed, parse};
use rauk_wire::{Frame, WireError};
use std::io::{self, ErrorKind};

/// Bytes of a receiver's buffer.
const CHUNK: usize = 256 << 10;
/// The least room that is read into.
const ROOM: usize = 32 << 10;
/// Frames longer than this are read into memory of their own.
pub(crate) const LARGE: usize = 64 << 10;
/// A link that keeps still has no more memory than this for the beginning of a frame.
const KEPT: usize = 4 << 10;
/// Bytes of one link that are read before others have their turn.
const TURN: usize = 1 << 20;

/// What a link's socket has brought of a frame that is not whole.
#[derive(Default)]
pub(crate) struct Inbound {
    partial: Vec<u8>,
    large: Option<Large>,
}

struct Large {
    bytes: BytesMut,
    filled: usize,
    /// Of the whole frame.
    need: usize,
}

/// How reading ended.
#[derive(Debug)]
pub(crate) enum Read {
    /// Nothing is left; the poll set will tell of more.
    Drained,
    /// It was enough for one turn; there may be more.
    More,
    /// It was not allowed to go on; there may be more.
    Paused,
    /// The handler of frames asked to stop.
    Stopped,
    /// The peer has ended.
    End,
    Failed(io::Error),
    Garbage(WireError),
}

pub(crate) trait Reader {
    /// Whether the socket may be read (on).
    fn may_read(&mut self) -> bool;
    /// Answers whether to go on.
    fn on_frame(&mut self, frame: Frame) -> bool;
}

impl Inbound {
    /// `bytes` have come already.
    pub fn beginning_with(bytes: Vec<u8>) -> Inbound {
        Inbound { partial: bytes, large: None }
    }

    /// Reads until nothing is left, or one of the reasons in [`Read`]. `buffer` is the receiver's; `ended`: the poll set has told of an end, so that it must be read up to.
    /// Gives the number of bytes as well.
    pub fn read(
        &mut self,
        stream: &Stream,
        buffer: &mut BytesMut,
        ended: bool,
        reader: &mut impl Reader,
    ) -> (Read, usize) {
        let mut filled = 0;
        let mut total = 0;
        let read = if self.partial.is_empty() {
            self.read_on(stream, buffer, &mut filled, &mut total, ended, reader)
        } else {
            let partial = std::mem::take(&mut self.partial);
            make_room(buffer, 0, partial.len() + ROOM);
            buffer[..partial.len()].copy_from_slice(&partial);
            filled = partial.len();
            if partial.capacity() <= KEPT {
                self.partial = partial;
                self.partial.clear();
            }
            match self.cut(buffer, &mut filled, reader) {
                Some(end) => end,
                None => self.read_on(stream, buffer, &mut filled, &mut total, ended, reader),
            }
        };
        self.partial.extend_from_slice(&buffer[..filled]);
        (read, total)
    }

    fn read_on(
        &mut self,
        stream: &Stream,
        buffer: &mut BytesMut,
        filled: &mut usize,
        total: &mut usize,
        ended: bool,
        reader: &mut impl Reader,
    ) -> Read {
        loop {
            if !reader.may_read() {
                return Read::Paused;
            }
            if *total >= TURN {
                return Read::More;
            }
            let room = match &mut self.large {
                Some(large) => large.room(),
                None => {
                    make_room(buffer, *filled, *filled + ROOM);
                    &mut buffer[*filled..]
                }
            };
            let size = room.len();
            let count = match stream.read(room) {
                Ok(0) => return Read::End,
                Ok(count) => count,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Read::Drained,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Read::Failed(e),
            };
            *total += count;
            match &mut self.large {
                Some(large) => {
                    large.filled += count;
                    if large.filled == large.need {
                        let whole = self.large.take().expect("it is there").bytes.freeze();
                        match parse(&whole) {
                            Ok(Parsed::Whole(header, _)) => {
                                if !reader.on_frame(Frame { header, payload: payload(whole) }) {
                                    return Read::Stopped;
                                }
                            }
                            Ok(Parsed::Incomplete(_)) => unreachable!("the header said how long it is"),
                            Err(e) => return Read::Garbage(e),
                        }
                    }
                }
                None => {
                    *filled += count;
                    if let Some(end) = self.cut(buffer, filled, reader) {
                        return end;
                    }
                }
            }
            // A plain socket that gave less than was asked for is empty, and will be reported when it is not.
            if count < size && !ended && !stream.is_tls() {
                return Read::Drained;
            }
        }
    }

    /// Cuts whole frames off the buffer's first `filled` bytes.
    fn cut(&mut self, buffer: &mut BytesMut, filled: &mut usize, reader: &mut impl Reader) -> Option<Read> {
        while *filled > 0 {
            match parse(&buffer[..*filled]) {
                Ok(Parsed::Whole(header, length)) => {
                    let whole = buffer.split_to(length).freeze();
                    *filled -= length;
                    if !reader.on_frame(Frame { header, payload: payload(whole) }) {
                        return Some(Read::Stopped);
                    }
                }
                Ok(Parsed::Incomplete(need)) => {
                    if need > LARGE {
                        let mut bytes = BytesMut::zeroed(need.min(CHUNK.max(*filled)));
                        bytes[..*filled].copy_from_slice(&buffer[..*filled]);
                        self.large = Some(Large { bytes, filled: *filled, need });
                        *filled = 0;
                    }
                    return None;
                }
                Err(e) => return Some(Read::Garbage(e)),
            }
        }
        None
    }
}

impl Large {
    /// Where to read the rest, or as much of it as the bytes so far vouch for.
    fn room(&mut self) -> &mut [u8] {
        if self.filled == self.bytes.len() {
            self.bytes.resize(self.need.min(self.filled * 8), 0);
        }
        &mut self.bytes[self.filled..]
    }
}

fn payload(mut frame: Bytes) -> Bytes {
    frame.split_off(HEADER)
}

/// Sees that the buffer has `size` bytes, the first `filled` of which are kept.
fn make_room(buffer: &mut BytesMut, filled: usize, size: usize) {
    if buffer.len() < size {
        buffer.truncate(filled);
        buffer.resize(size.max(CHUNK), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rauk_wire::{Header, Kind, frame};
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    struct Collect {
        frames: Vec<Frame>,
        paused: bool,
    }

    impl Reader for Collect {
        fn may_read(&mut self) -> bool {
            !self.paused
        }
        fn on_frame(&mut self, frame: Frame) -> bool {
            self.frames.push(frame);
            true
        }
    }

    fn pair() -> (TcpStream, Stream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        other.set_nonblocking(true).unwrap();
        (one, Stream::new(other, None))
    }

    fn made(number: u64, length: usize) -> Vec<u8> {
        let mut made = frame::begin();
        made.extend((0..length).map(|i| (i as u64 * 7 + number) as u8));
        frame::finish(&mut made, &Header::new(Kind::Ping, number));
        made
    }

    /// Writes `bytes` in pieces, reads after each until the peer's side is drained.
    fn through(bytes: &[u8], pieces: &[usize]) -> Vec<Frame> {
        let (mut one, stream) = pair();
        let mut collect = Collect { frames: Vec::new(), paused: false };
        let (mut inbound, mut buffer) = (Inbound::default(), BytesMut::new());
        let (mut rest, mut read, mut pieces) = (bytes, 0, pieces.iter().cycle());
        while !rest.is_empty() {
            let count = rest.len().min(*pieces.next().unwrap());
            one.write_all(&rest[..count]).unwrap();
            rest = &rest[count..];
            while read < bytes.len() - rest.len() {
                let (end, count) = inbound.read(&stream, &mut buffer, false, &mut collect);
                assert!(matches!(end, Read::Drained | Read::More), "{end:?}");
                read += count;
            }
        }
        collect.frames
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn frames_come_out_as_they_went_in(
            lengths in prop::collection::vec(prop_oneof![0usize..300, 60_000usize..70_000, 100_000usize..400_000], 1..12),
            pieces in prop::collection::vec(prop_oneof![1usize..200, 1_000usize..100_000], 1..20),
        ) {
            // Pieces of a byte or two would take long on long frames.
            let pieces = if lengths.iter().sum::<usize>() > 20_000 {
                pieces.iter().map(|p| p + 5_000).collect()
            } else { pieces };
            let frames: Vec<_> = lengths.iter().enumerate().map(|(i, l)| made(i as u64, *l)).collect();
            let out = through(&frames.concat(), &pieces);
            prop_assert_eq!(out.len(), frames.len());
            for (i, (out, went_in)) in out.iter().zip(&frames).enumerate() {
                prop_assert_eq!(out.header.request, i as u64);
                prop_assert_eq!(&out.payload[..], &went_in[HEADER..]);
            }
        }
    }

    #[test]
    fn a_liar_costs_little() {
        let (mut one, stream) = pair();
        let mut announced = made(1, 0);
        announced[8..12].copy_from_slice(&(60u32 << 20).to_le_bytes());
        one.write_all(&announced).unwrap();
        one.write_all(&[1; 1000]).unwrap();
        let mut collect = Collect { frames: Vec::new(), paused: false };
        let (mut inbound, mut buffer) = (Inbound::default(), BytesMut::new());
        while inbound.large.as_ref().is_none_or(|large| large.filled < HEADER + 1000) {
            inbound.read(&stream, &mut buffer, false, &mut collect);
        }
        assert!(inbound.large.unwrap().bytes.capacity() <= CHUNK);
    }

    #[test]
    fn frames_do_not_share_memory_that_is_written_again() {
        let (mut one, stream) = pair();
        let mut collect = Collect { frames: Vec::new(), paused: false };
        let (mut inbound, mut buffer) = (Inbound::default(), BytesMut::new());
        for number in 0..200u64 {
            one.write_all(&made(number, 5_000)).unwrap();
            while collect.frames.len() <= number as usize {
                inbound.read(&stream, &mut buffer, false, &mut collect);
            }
        }
        for (number, frame) in collect.frames.iter().enumerate() {
            assert_eq!(frame.payload, made(number as u64, 5_000)[HEADER..]);
        }
    }

    #[test]
    fn an_end_is_read_up_to_and_a_pause_is_kept() {
        let (mut one, stream) = pair();
        one.write_all(&made(1, 10)).unwrap();
        drop(one);
        std::thread::sleep(std::time::Duration::from_millis(10));
        let mut collect = Collect { frames: Vec::new(), paused: true };
        let (mut inbound, mut buffer) = (Inbound::default(), BytesMut::new());
        assert!(matches!(inbound.read(&stream, &mut buffer, true, &mut collect).0, Read::Paused));
        collect.paused = false;
        assert!(matches!(inbound.read(&stream, &mut buffer, true, &mut collect).0, Read::End));
        assert_eq!(collect.frames.len(), 1);
    }
}

//! One client's packets: the stream, the packet reader, the packet writer, and compression between them.
//!
//! [`Channel`] has two halves that are borrowed apart: while a statement runs, its text is borrowed from the reader and its results go
//! to the [`Link`]. Reading takes a buffer only when bytes are there; a command's answer is one write unless it is large.
use super::stream::Stream;
use crate::packet::compression::{self, Inflater};
use crate::packet::pool;
use crate::packet::read::Malformed;
use crate::packet::reader::{FrameError, Packet, PacketReader};
use crate::packet::writer::PacketWriter;
use crate::runtime::{sleep, timeout_at};
use rauk_types::{DataType, MysqlError};
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::ReadBuf;

#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The client has closed its side between packets.
    #[error("the client has gone")]
    Gone,
    #[error("connection: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// What ends waits for the client.
struct Ending(Pin<Box<dyn Future<Output = ()> + Send>>);

impl fmt::Debug for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ending")
    }
}

/// The sending half.
#[derive(Debug)]
pub struct Link {
    pub stream: Stream,
    pub writer: PacketWriter,
    /// The number of the next compressed chunk, when the connection is compressed.
    compressed: Option<u8>,
    /// Column types of the present result, kept for its memory.
    pub types: Vec<DataType>,
    write_timeout: Duration,
    /// Resolves when a client that takes nothing is not waited for any more: the connection was killed, or the server ends.
    end: Option<Ending>,
    /// Compressed bytes that are not sent yet, or not all of them.
    deflated: Vec<u8>,
    /// How many bytes of `deflated`, or of the writer, the stream has taken.
    written: usize,
    /// A write failed: nothing more can be sent.
    broken: bool,
    /// Bytes handed to the stream since the last [`Link::take_sent`].
    sent: u64,
}

#[derive(Debug)]
pub struct Channel {
    pub reader: PacketReader,
    inflater: Option<Inflater>,
    pub link: Link,
    received: u64,
    /// Reads that brought something; tells progress from silence.
    pub reads: u64,
}

impl Link {
    /// Sends everything that was written. Fails when the client does not take it for as long as the write timeout.
    /// It may be dropped while it waits: more may be written, and the next call goes on where it was.
    pub async fn send(&mut self) -> Result<(), MysqlError> {
        while !self.writer.is_empty() || !self.deflated.is_empty() {
            if let Some(sequence) = &mut self.compressed
                && self.deflated.is_empty()
            {
                self.deflated = pool::take_write();
                compression::deflate(self.writer.bytes(), sequence, &mut self.deflated);
                self.writer.clear();
            }
            let bytes = if self.deflated.is_empty() { self.writer.bytes() } else { &self.deflated };
            let outcome = match self.broken {
                true => Err(write_error()),
                false => write_all(&mut self.stream, bytes, &mut self.written, self.write_timeout, &mut self.end).await,
            };
            self.sent += self.written as u64;
            self.written = 0;
            if self.deflated.is_empty() {
                self.writer.clear();
            } else {
                self.deflated.clear();
                pool::give_write(std::mem::take(&mut self.deflated));
            }
            if outcome.is_err() {
                self.writer.clear();
                self.broken = true;
                return outcome;
            }
        }
        Ok(())
    }

    pub fn set_write_timeout(&mut self, timeout: Duration) {
        self.write_timeout = timeout;
    }

    /// From when on a client that takes nothing is not waited for any more.
    pub fn end_waits_with(&mut self, end: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.end = Some(Ending(end));
    }

    /// Bytes that were written and that the stream has not taken.
    pub fn unsent(&self) -> usize {
        self.writer.len() + self.deflated.len() - self.written
    }

    /// What comes from the client cannot be told apart any more: the connection ends with the present command.
    pub fn break_off(&mut self) {
        self.writer.clear();
        self.broken = true;
    }

    pub fn is_broken(&self) -> bool {
        self.broken
    }

    pub fn take_sent(&mut self) -> u64 {
        std::mem::take(&mut self.sent)
    }
}

/// Sends `bytes` from `written` on, which goes with what the stream has taken.
async fn write_all(
    stream: &mut Stream,
    bytes: &[u8],
    written: &mut usize,
    timeout: Duration,
    end: &mut Option<Ending>,
) -> Result<(), MysqlError> {
    // Only a client that is slow to read costs a timer.
    let mut timer = None;
    poll_fn(|cx| {
        loop {
            let step = if *written < bytes.len() {
                stream.poll_write(cx, &bytes[*written..])
            } else {
                stream.poll_flush(cx).map_ok(|()| usize::MAX)
            };
            match step {
                Poll::Ready(Ok(usize::MAX)) => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(write_error())),
                Poll::Ready(Ok(n)) => {
                    *written += n;
                    timer = None;
                }
                Poll::Pending if end.as_mut().is_some_and(|end| end.0.as_mut().poll(cx).is_ready()) => {
                    *end = None;
                    return Poll::Ready(Err(write_error()));
                }
                Poll::Pending => {
                    let timer = timer.get_or_insert_with(|| Box::pin(sleep(timeout)));
                    ready!(timer.as_mut().poll(cx));
                    return Poll::Ready(Err(MysqlError {
                        state: *b"08S01",
                        ..MysqlError::new(1161, "Got timeout writing communication packets")
                    }));
                }
            }
        }
    })
    .await
}

fn write_error() -> MysqlError {
    MysqlError { state: *b"08S01", ..MysqlError::new(1160, "Got an error writing communication packets") }
}

impl Channel {
    pub fn new(stream: Stream, limit: usize, write_timeout: Duration) -> Self {
        Channel {
            reader: PacketReader::new(limit),
            inflater: None,
            link: Link {
                stream,
                writer: PacketWriter::default(),
                compressed: None,
                types: Vec::new(),
                write_timeout,
                end: None,
                deflated: Vec::new(),
                written: 0,
                broken: false,
                sent: 0,
            },
            received: 0,
            reads: 0,
        }
    }

    /// From now on both directions are compressed.
    pub fn compress(&mut self) -> Result<(), ChannelError> {
        let mut inflater = Inflater::default();
        let early = self.reader.take_unread();
        inflater.feed(&early, |bytes| self.reader.feed(bytes))?;
        self.inflater = Some(inflater);
        self.link.compressed = Some(0);
        Ok(())
    }

    /// Negotiates TLS after the client has asked for it.
    pub async fn start_tls(&mut self, config: std::sync::Arc<rustls::ServerConfig>) -> io::Result<()> {
        let early = self.reader.take_unread();
        let plain = std::mem::replace(&mut self.link.stream, Stream::Closed);
        self.link.stream = plain.into_tls(config, early).await?;
        Ok(())
    }

    /// Whether part of a packet has come and the rest has not.
    pub fn in_packet(&self) -> bool {
        self.reader.in_packet() || self.inflater.as_ref().is_some_and(Inflater::in_chunk)
    }

    pub fn take_received(&mut self) -> u64 {
        std::mem::take(&mut self.received)
    }

    /// The next packet; the answer's numbers go on from it.
    pub fn poll_packet(&mut self, cx: &mut Context<'_>) -> Poll<Result<Packet, ChannelError>> {
        loop {
            let next = self.reader.next_packet();
            self.link.writer.set_sequence(self.reader.sequence());
            if let Some(packet) = next? {
                if let (Some(compressed), Some(inflater)) = (&mut self.link.compressed, &self.inflater) {
                    *compressed = inflater.sequence();
                }
                return Poll::Ready(Ok(packet));
            }
            let n = ready!(self.poll_fill(cx))?;
            if n == 0 {
                return Poll::Ready(Err(ChannelError::Gone));
            }
            self.received += n as u64;
            self.reads += 1;
        }
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, ChannelError>> {
        let Some(inflater) = &mut self.inflater else {
            let mut buf = ReadBuf::new(self.reader.space());
            let outcome = self.link.stream.poll_read(cx, &mut buf);
            let n = buf.filled().len();
            return match outcome {
                Poll::Pending => {
                    self.reader.park();
                    Poll::Pending
                }
                Poll::Ready(Ok(())) => {
                    self.reader.filled(n);
                    Poll::Ready(Ok(n))
                }
                Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
            };
        };
        let mut space = pool::take_read();
        let mut buf = ReadBuf::new(&mut space);
        let outcome = self.link.stream.poll_read(cx, &mut buf);
        let n = buf.filled().len();
        let outcome = match outcome {
            Poll::Pending => {
                self.reader.park();
                Poll::Pending
            }
            Poll::Ready(Ok(())) => {
                Poll::Ready(inflater.feed(&space[..n], |bytes| self.reader.feed(bytes)).map(|()| n).map_err(Into::into))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
        };
        pool::give_read(space);
        outcome
    }

    /// The next packet of a conversation in which the two sides take turns (authentication).
    pub async fn read(&mut self) -> Result<Packet, ChannelError> {
        self.reader.set_sequence(self.link.writer.sequence());
        poll_fn(|cx| self.poll_packet(cx)).await
    }

    /// Says goodbye: what is written is sent, the stream is closed in order, and what the client still sends is thrown away for a moment, so that
    /// an answer under way is not lost to a reset.
    pub async fn close(&mut self, linger: Duration) {
        let deadline = Instant::now() + linger;
        let _ = timeout_at(deadline, async {
            self.link.send().await.map_err(|_| io::ErrorKind::BrokenPipe)?;
            poll_fn(|cx| self.link.stream.poll_shutdown(cx)).await?;
            let mut scratch = [0; 512];
            loop {
                let mut buf = ReadBuf::new(&mut scratch);
                poll_fn(|cx| self.link.stream.poll_read(cx, &mut buf)).await?;
                if buf.filled().is_empty() {
                    return Ok::<(), io::Error>(());
                }
            }
        })
        .await;
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::connection::stream::Socket;
    use crate::runtime::Runtime;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::pin::pin;
    use std::sync::mpsc;
    use std::task::Waker;

    /// Sends three times without a reader, then with one that gives what it read; also what should have come.
    async fn send_and_drop(ours: Socket, compressed: bool, reader: impl FnOnce()) -> Vec<u8> {
        let mut channel = Channel::new(Stream::Plain(ours), 1 << 24, Duration::from_secs(60));
        if compressed {
            channel.compress().unwrap();
        }
        let link = &mut channel.link;
        let mut expected = Vec::new();
        for round in 0..3u32 {
            // What deflate cannot make small: xorshift.
            let mut state = 0x9E37_79B9_7F4A_7C15_u64 + u64::from(round);
            let random = std::iter::repeat_with(|| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            });
            let payload: Vec<u8> = random.take(500_000).collect();
            link.writer.packet(&payload);
            let before = link.writer.len();
            expected.extend_from_slice(&link.writer.bytes()[before - payload.len() - 4..]);
            let pending = pin!(link.send()).poll(&mut Context::from_waker(Waker::noop())).is_pending();
            assert!(pending, "nobody reads");
            assert!(link.unsent() > 0 && !link.is_broken());
        }
        reader();
        link.send().await.unwrap();
        assert_eq!(link.unsent(), 0);
        expected
    }

    /// A send that is dropped while the client does not read goes on later where it was, compressed or not.
    #[test]
    fn a_send_that_was_dropped_goes_on_where_it_was() {
        let runtime = Runtime::start("test".into()).unwrap();
        for compressed in [false, true] {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            let ours = Socket::unix(&runtime, mio::net::UnixStream::from_std(ours)).unwrap();
            let (sender, expected) = mpsc::channel();
            let (begin, begun) = mpsc::channel();
            runtime.spawn(async move {
                let sent = send_and_drop(ours, compressed, move || begin.send(()).unwrap()).await;
                sender.send(sent).unwrap();
            });
            begun.recv().unwrap();
            let mut received = Vec::new();
            theirs.read_to_end(&mut received).unwrap();
            if compressed {
                let (mut inflater, mut plain) = (Inflater::default(), Vec::new());
                inflater.feed(&received, |bytes| plain.extend_from_slice(bytes)).unwrap();
                received = plain;
            }
            assert!(received == expected.recv().unwrap(), "compressed: {compressed}");
        }
        runtime.end(Duration::from_secs(10));
    }
}

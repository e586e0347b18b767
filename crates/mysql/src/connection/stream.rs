//! A client's byte stream: TCP or Unix-domain socket, plain or under TLS.
//!
//! The socket is shared: while a statement runs and has the stream, a [`Peer`] sees whether the client is still there.
use socket2::{SockRef, TcpKeepalive};
use std::future::Future;
use std::io;
use std::net::Shutdown;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a client may be silent before the system asks its machine.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// The socket, and bytes that were read from it before it was handed to TLS.
#[derive(Debug)]
pub struct Socket {
    kind: Kind,
    early: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Kind {
    Tcp(Arc<TcpStream>),
    #[cfg(unix)]
    Unix(Arc<UnixStream>),
}

/// Looks whether the client is there while a statement has the stream.
#[derive(Debug)]
pub struct Peer(Kind);

impl Peer {
    /// Whether the client has closed its side, or the connection is broken. Costs no system call.
    pub fn is_gone(&self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        let poll = |ready: Pin<&mut dyn Future<Output = io::Result<Ready>>>, context: &mut Context<'_>| match ready
            .poll(context)
        {
            Poll::Ready(Ok(ready)) => ready.is_read_closed(),
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        match &self.0 {
            Kind::Tcp(stream) => poll(pin!(stream.ready(Interest::READABLE)), &mut context),
            #[cfg(unix)]
            Kind::Unix(stream) => poll(pin!(stream.ready(Interest::READABLE)), &mut context),
        }
    }
}

/// Reads what is there. Less than asked for: there is no more, and the socket is asked again only when it says so.
macro_rules! poll_read {
    ($stream:expr, $cx:expr, $buf:expr) => {{
        loop {
            ready!($stream.poll_read_ready($cx))?;
            let mut read = None;
            let space = $buf.initialize_unfilled();
            let length = space.len();
            let outcome = $stream.try_io(Interest::READABLE, || match $stream.try_read(space) {
                Ok(n) if n > 0 && n < length => {
                    read = Some(n);
                    Err(io::ErrorKind::WouldBlock.into())
                }
                other => other,
            });
            match (outcome, read) {
                (Ok(n), _) | (Err(_), Some(n)) => {
                    $buf.advance(n);
                    return Poll::Ready(Ok(()));
                }
                (Err(error), None) if error.kind() == io::ErrorKind::WouldBlock => {}
                (Err(error), None) => return Poll::Ready(Err(error)),
            }
        }
    }};
}

macro_rules! poll_write {
    ($stream:expr, $cx:expr, $write:expr) => {{
        loop {
            ready!($stream.poll_write_ready($cx))?;
            match $write {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return Poll::Ready(outcome),
            }
        }
    }};
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        // Answers go out in one write each; waiting for more to come would only delay them.
        let _ = stream.set_nodelay(true);
        // A client whose machine is gone says nothing; the system asks after it.
        let _ = SockRef::from(&stream)
            .set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE));
        Socket { kind: Kind::Tcp(Arc::new(stream)), early: Vec::new() }
    }
}

#[cfg(unix)]
impl From<UnixStream> for Socket {
    fn from(stream: UnixStream) -> Self {
        Socket { kind: Kind::Unix(Arc::new(stream)), early: Vec::new() }
    }
}

impl Socket {
    pub fn peer(&self) -> Peer {
        Peer(self.kind.clone())
    }

    /// A Unix-domain socket: nobody else can listen on the way.
    pub fn is_local(&self) -> bool {
        match self.kind {
            Kind::Tcp(_) => false,
            #[cfg(unix)]
            Kind::Unix(_) => true,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.early.is_empty() {
            let n = self.early.len().min(buf.remaining());
            buf.put_slice(&self.early[..n]);
            self.early.drain(..n);
            return Poll::Ready(Ok(()));
        }
        match &self.kind {
            Kind::Tcp(stream) => poll_read!(stream, cx, buf),
            #[cfg(unix)]
            Kind::Unix(stream) => poll_read!(stream, cx, buf),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &self.kind {
            Kind::Tcp(stream) => poll_write!(stream, cx, stream.try_write(buf)),
            #[cfg(unix)]
            Kind::Unix(stream) => poll_write!(stream, cx, stream.try_write(buf)),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &self.kind {
            Kind::Tcp(stream) => poll_write!(stream, cx, stream.try_write_vectored(bufs)),
            #[cfg(unix)]
            Kind::Unix(stream) => poll_write!(stream, cx, stream.try_write_vectored(bufs)),
        }
    }

    /// TLS hands over all its records at once.
    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match &self.kind {
            Kind::Tcp(stream) => SockRef::from(&**stream).shutdown(Shutdown::Write),
            #[cfg(unix)]
            Kind::Unix(stream) => SockRef::from(&**stream).shutdown(Shutdown::Write),
        })
    }
}

#[derive(Debug)]
pub enum Stream {
    Plain(Socket),
    Tls(Box<TlsStream<Socket>>),
    /// While TLS is being negotiated, and after that failed.
    Closed,
}

impl Stream {
    /// Negotiates TLS; `early` is what the client sent behind its request.
    pub async fn into_tls(self, config: Arc<rustls::ServerConfig>, early: Vec<u8>) -> io::Result<Stream> {
        let Stream::Plain(mut socket) = self else { return Err(io::ErrorKind::NotConnected.into()) };
        socket.early = early;
        Ok(Stream::Tls(Box::new(TlsAcceptor::from(config).accept(socket).await?)))
    }

    /// Nobody on the way can read along: TLS or a Unix-domain socket.
    pub fn is_secure(&self) -> bool {
        match self {
            Stream::Plain(socket) => socket.is_local(),
            Stream::Tls(_) => true,
            Stream::Closed => false,
        }
    }

    /// The client's end; `None` once it is closed.
    pub fn peer(&self) -> Option<Peer> {
        match self {
            Stream::Plain(socket) => Some(socket.peer()),
            Stream::Tls(stream) => Some(stream.get_ref().0.peer()),
            Stream::Closed => None,
        }
    }

    /// OpenSSL's name of the cipher, as `Ssl_cipher` shows it.
    pub fn cipher(&self) -> Option<String> {
        let Stream::Tls(stream) = self else { return None };
        let suite = stream.get_ref().1.negotiated_cipher_suite()?;
        Some(format!("{:?}", suite.suite()).replace("TLS13_", "TLS_"))
    }

    pub fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Stream::Tls(stream) => Pin::new(&mut **stream).poll_read(cx, buf),
            Stream::Closed => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Stream::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(&mut **stream).poll_write(cx, bytes),
            Stream::Closed => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Plain(_) => Poll::Ready(Ok(())),
            Stream::Tls(stream) => Pin::new(&mut **stream).poll_flush(cx),
            Stream::Closed => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(cx),
            Stream::Closed => Poll::Ready(Ok(())),
        }
    }
}

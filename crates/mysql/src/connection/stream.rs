//! A client's byte stream: TCP or Unix-domain socket, plain or under TLS.
//!
//! The socket is shared: while a statement runs and has the stream, a [`Peer`] sees whether the client is still there.
use crate::backend::Transport;
use crate::runtime::{Direction, Done, Registered, Runtime};
use crate::tls;
use mio::net::TcpStream;
#[cfg(unix)]
use mio::net::UnixStream;
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
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
    Tcp(Arc<Registered<TcpStream>>),
    #[cfg(unix)]
    Unix(Arc<Registered<UnixStream>>),
}

/// Looks whether the client is there while a statement has the stream.
#[derive(Debug)]
pub struct Peer(Kind);

impl Peer {
    /// Whether the client has closed its side, or the connection is broken. Costs no system call.
    pub fn is_gone(&self) -> bool {
        match &self.0 {
            Kind::Tcp(stream) => stream.is_read_closed(),
            #[cfg(unix)]
            Kind::Unix(stream) => stream.is_read_closed(),
        }
    }
}

/// Reads what is there. Less than asked for: there is no more.
fn read(mut stream: impl Read, space: &mut [u8]) -> io::Result<Done<usize>> {
    let n = stream.read(space)?;
    Ok(if n > 0 && n < space.len() { Done::All(n) } else { Done::Some(n) })
}

impl Kind {
    fn poll_read(&self, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Kind::Tcp(stream) => stream.poll_io(Direction::Read, cx, |stream| read(stream, space)),
            #[cfg(unix)]
            Kind::Unix(stream) => stream.poll_io(Direction::Read, cx, |stream| read(stream, space)),
        }
    }

    fn poll_write(
        &self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(&mut dyn Write) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        match self {
            Kind::Tcp(stream) => stream.poll_io(Direction::Write, cx, |mut stream| write(&mut stream).map(Done::Some)),
            #[cfg(unix)]
            Kind::Unix(stream) => stream.poll_io(Direction::Write, cx, |mut stream| write(&mut stream).map(Done::Some)),
        }
    }
}

impl Socket {
    pub fn tcp(runtime: &Runtime, stream: TcpStream) -> io::Result<Socket> {
        // Answers go out in one write each; waiting for more to come would only delay them.
        let _ = stream.set_nodelay(true);
        // A client whose machine is gone says nothing; the system asks after it.
        let _ = SockRef::from(&stream)
            .set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE));
        Ok(Socket { kind: Kind::Tcp(Arc::new(Registered::new(runtime, stream)?)), early: Vec::new() })
    }

    #[cfg(unix)]
    pub fn unix(runtime: &Runtime, stream: UnixStream) -> io::Result<Socket> {
        Ok(Socket { kind: Kind::Unix(Arc::new(Registered::new(runtime, stream)?)), early: Vec::new() })
    }

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
        let n = ready!(self.kind.poll_read(cx, buf.initialize_unfilled()))?;
        buf.advance(n);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.kind.poll_write(cx, |stream| stream.write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.kind.poll_write(cx, |stream| stream.write_vectored(bufs))
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
            Kind::Tcp(stream) => stream.socket().shutdown(Shutdown::Write),
            #[cfg(unix)]
            Kind::Unix(stream) => stream.socket().shutdown(Shutdown::Write),
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
    pub fn transport(&self) -> Transport {
        let certificate = match self {
            Stream::Tls(stream) => stream.get_ref().1.peer_certificates().and_then(|chain| chain.first()),
            _ => None,
        };
        Transport { cipher: self.cipher(), certificate: certificate.and_then(|der| tls::names_of(der)) }
    }

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

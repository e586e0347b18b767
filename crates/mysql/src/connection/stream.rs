//! A client's byte stream: TCP or Unix-domain socket, plain or under TLS.
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The socket, and bytes that were read from it before it was handed to TLS.
#[derive(Debug)]
pub struct Socket {
    kind: Kind,
    early: Vec<u8>,
}

#[derive(Debug)]
enum Kind {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        // Answers go out in one write each; waiting for more to come would only delay them.
        let _ = stream.set_nodelay(true);
        Socket { kind: Kind::Tcp(stream), early: Vec::new() }
    }
}

#[cfg(unix)]
impl From<UnixStream> for Socket {
    fn from(stream: UnixStream) -> Self {
        Socket { kind: Kind::Unix(stream), early: Vec::new() }
    }
}

impl Socket {
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
        match &mut self.kind {
            Kind::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            #[cfg(unix)]
            Kind::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.kind {
            Kind::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            #[cfg(unix)]
            Kind::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.kind {
            Kind::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            #[cfg(unix)]
            Kind::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    /// TLS hands over all its records at once.
    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.kind {
            Kind::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            #[cfg(unix)]
            Kind::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
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

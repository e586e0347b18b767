//! A connected socket, plain or under TLS, that never blocks.
//!
//! Under TLS the connection's state has a lock of its own: a sender holds it to seal bytes, a receiver to read and open records (its reading of the socket included, which never
//! blocks). What a sender writes to the socket are sealed bytes, outside of that lock; order is kept because one sender is active at a time.

use crate::Name;
use parking_lot::Mutex;
use rustls::Connection;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsRawFd, RawFd};

/// Bytes by which a proof is bound to a TLS connection.
pub(crate) const BINDING: usize = 32;

pub(crate) struct Stream {
    socket: TcpStream,
    tls: Option<Box<Mutex<Connection>>>,
}

impl Stream {
    /// The socket must not block.
    pub fn new(socket: TcpStream, tls: Option<Connection>) -> Stream {
        let tls = tls.map(|mut connection| {
            // What is handed over is sealed and taken at once.
            connection.set_buffer_limit(None);
            Box::new(Mutex::new(connection))
        });
        Stream { socket, tls }
    }

    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether the peer has shown a certificate (which was verified then).
    pub fn is_certified(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.lock().peer_certificates().is_some_and(|chain| !chain.is_empty()))
    }

    /// Who the peer's certificate names, if it is a node's (which was verified then).
    pub fn certified(&self) -> Option<Name> {
        let tls = self.tls.as_ref()?.lock();
        Name::read(tls.peer_certificates()?.first()?).map(|(name, _)| name)
    }

    /// The TLS handshake is not over.
    pub fn is_shaking_hands(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.lock().is_handshaking())
    }

    /// What both sides of this TLS connection know and nobody else: proofs contain it. `None`: not under TLS.
    pub fn binding(&self) -> Option<[u8; BINDING]> {
        let tls = self.tls.as_ref()?.lock();
        tls.export_keying_material([0; BINDING], b"EXPORTER-rauk-handshake", None).ok()
    }

    /// The first byte that the peer sends or has sent, left where it is. `None`: it has ended.
    pub fn peek(&self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        Ok((self.socket.peek(&mut byte)? > 0).then_some(byte[0]))
    }

    /// Bytes of the peer as they come.
    pub fn read_raw(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.socket).read(buffer)
    }

    /// Bytes of the peer, opened; 0 at the end. Under TLS go on until `WouldBlock`; bytes that TLS itself wants to say are for [`Stream::pull`].
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &self.tls else { return (&self.socket).read(buffer) };
        let mut tls = tls.lock();
        loop {
            if !tls.is_handshaking() {
                match tls.reader().read(buffer) {
                    Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                    // A peer that goes without saying so has gone all the same.
                    Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                    other => return other,
                }
            }
            if tls.read_tls(&mut &self.socket)? == 0 {
                return Ok(0);
            }
            if let Err(error) = tls.process_new_packets() {
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
            if tls.is_handshaking() && tls.wants_write() {
                return Err(ErrorKind::Interrupted.into());
            }
        }
    }

    /// Appends what TLS makes of `plain`.
    pub fn seal(&self, plain: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let tls = self.tls.as_ref().expect("only under TLS");
        tls.lock().writer().write_all(plain)?;
        self.pull(out)
    }

    /// Appends what TLS wants to be sent.
    pub fn pull(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let Some(tls) = &self.tls else { return Ok(()) };
        let mut tls = tls.lock();
        while tls.wants_write() {
            tls.write_tls(out)?;
        }
        Ok(())
    }

    /// Whether there is something to [`Stream::pull`].
    pub fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.lock().wants_write())
    }

    /// Writes raw bytes: under TLS they must have been sealed.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.socket).write(bytes)
    }

    pub fn write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        (&self.socket).write_vectored(slices)
    }

    /// Ends both directions; says goodbye in TLS if that goes at once, and if `whole` records were written so far.
    pub fn end(&self, whole: bool) {
        if let Some(tls) = self.tls.as_ref().filter(|_| whole) {
            tls.lock().send_close_notify();
            let mut last = Vec::new();
            if self.pull(&mut last).is_ok() {
                let _ = self.write(&last);
            }
        }
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Nothing more will be sent; the peer may still read.
    pub fn end_sending(&self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

//! A relay between two nodes that can be cut: what was sent before does not arrive any more, and nobody is told.
//!
//! A node is given the relay's address as its way to a peer (`--peer-address`), one relay for each direction, so that links break one way or both. While it is cut a connection stays open and swallows what
//! comes; when it is whole again such a connection ends, since nothing can go on where a part is missing. Tests of real processes use this file too, so it needs the standard library only. What it
//! does not show: packets lost under a connection that lives on, which a network namespace does.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::Duration;

#[derive(Clone)]
pub struct Relay {
    pub address: SocketAddr,
    target: Arc<AtomicU16>,
    cut: Arc<AtomicBool>,
}

impl Relay {
    /// Listens at once; leads to a port of this host once that is known.
    pub fn start() -> std::io::Result<Relay> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let relay = Relay {
            address: listener.local_addr()?,
            target: Arc::new(AtomicU16::new(0)),
            cut: Arc::new(AtomicBool::new(false)),
        };
        let serving = relay.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let relay = serving.clone();
                std::thread::spawn(move || relay.carry(stream));
            }
        });
        Ok(relay)
    }

    pub fn lead_to(&self, port: u16) {
        self.target.store(port, Ordering::SeqCst);
    }

    pub fn set_cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::SeqCst);
    }

    fn carry(&self, from: TcpStream) {
        let Ok(to) = TcpStream::connect(("127.0.0.1", self.target.load(Ordering::SeqCst))) else { return };
        // It must not hold small messages back.
        let _ = from.set_nodelay(true).and(to.set_nodelay(true));
        let (Ok(back_from), Ok(back_to)) = (to.try_clone(), from.try_clone()) else { return };
        let relay = self.clone();
        std::thread::spawn(move || relay.pump(back_from, back_to));
        self.pump(from, to);
    }

    /// What comes while it is cut is lost, and the connection with it: nothing goes on where a part is missing.
    fn pump(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; 64 << 10];
        let mut lost = false;
        let _ = from.set_read_timeout(Some(Duration::from_millis(100)));
        loop {
            let cut = self.cut.load(Ordering::SeqCst);
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(_) if cut => lost = true,
                Ok(_) if lost => break,
                Ok(count) => {
                    if to.write_all(&buffer[..count]).is_err() {
                        break;
                    }
                }
                Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                    if lost && !cut {
                        break;
                    }
                }
                Err(_) => break,
            }
        }
        let _ = from.shutdown(std::net::Shutdown::Both);
        let _ = to.shutdown(std::net::Shutdown::Both);
    }
}

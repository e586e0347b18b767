//! Tells systemd when the server serves and when it stops (`Type=notify` in the unit).
//!
//! systemd sets `NOTIFY_SOCKET` to a Unix datagram socket. `READY=1` on it ends `systemctl start`: a start that fails, on
//! a wrong setting say, is then a failed `systemctl start` and not a unit that dies a moment later, and units that are
//! ordered after Rauk find a server that answers. Recovery may take longer than the manager's limit for a start, so the
//! unit sets no limit.
//!
//! The protocol is one datagram of text, which the standard library can send; a library for it would be larger than
//! this. Without the variable nothing is sent. An error is a warning in the log: whether the server serves does not
//! depend on whoever started it. Left out: the watchdog, because the manager's clock cannot tell a hang from a long
//! pause of the machine, and restarting would then cost a recovery for nothing.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Clients can connect.
pub fn ready(line: &str) {
    tell(&format!("READY=1\nSTATUS={line}"));
}

/// The server stops in order.
pub fn stopping() {
    tell("STOPPING=1\nSTATUS=stopping");
}

fn tell(text: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()) else { return };
    if let Err(error) = send(&socket, text) {
        tracing::warn!(%error, socket = %socket.display(), "cannot notify the service manager");
    }
}

fn send(socket: &OsStr, text: &str) -> std::io::Result<()> {
    let address = match socket.as_bytes() {
        // A name without a file.
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(text.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        socket.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        let mut buffer = [0; 200];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_path_and_an_abstract_name_are_reached() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        assert_eq!(received(&socket), "READY=1");

        let name = format!("rauk-test-{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        send(OsStr::new(&format!("@{name}")), "STOPPING=1").unwrap();
        assert_eq!(received(&socket), "STOPPING=1");
    }

    #[test]
    fn a_socket_that_does_not_exist_is_an_error() {
        assert!(send(OsStr::new("/nowhere/notify"), "READY=1").is_err());
    }
}

//! Listening, and directories that are somebody else's.

use crate::cluster::directory;
use rauk_log::real_disk::LOCK_FILE;
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::Path;

/// `name` is the setting of the port, `host_name` that of the address.
pub fn bind(host: IpAddr, host_name: &str, port: u16, name: &str) -> Result<TcpListener, String> {
    let address = SocketAddr::new(host, port);
    let socket = || -> std::io::Result<TcpListener> {
        let socket = socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None)?;
        // A restart must not wait for old connections' TIME_WAIT; a live listener is still refused.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(1024)?;
        Ok(socket.into())
    };
    socket().map_err(|e| match e.kind() {
        std::io::ErrorKind::AddrInUse => {
            format!(
                "port {port} on {host} is in use by another process; choose another with --{name} (0 takes a free one)"
            )
        }
        std::io::ErrorKind::PermissionDenied => {
            format!("no permission to listen on port {port}; choose one above 1023 with --{name}")
        }
        _ => format!("cannot listen on {address} (--{name}, --{host_name}): {e}"),
    })
}

/// A directory that holds something else is left alone.
pub fn check_directory(path: &Path) -> Result<(), String> {
    let entries = match std::fs::read_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("cannot use data directory {}: {error}", path.display())),
        Ok(entries) => entries,
    };
    let names: Vec<_> = entries.filter_map(|e| e.ok()).map(|e| e.file_name()).collect();
    // A copy may lack the lock file: what else is missing is said by whoever opens it.
    let is_ours = |name: &OsString| name == LOCK_FILE || directory::is_ours(name);
    if names.is_empty() || names.iter().any(is_ours) {
        return Ok(());
    }
    Err(format!(
        "{} is not a Rauk data directory and not empty (it holds {}); choose another with --data-dir",
        path.display(),
        names[0].to_string_lossy()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_directory_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(check_directory(directory.path()), Ok(()));
        assert_eq!(check_directory(&directory.path().join("not/there")), Ok(()));
        std::fs::write(directory.path().join("letters.txt"), "x").unwrap();
        let error = check_directory(directory.path()).unwrap_err();
        assert!(error.contains("letters.txt") && error.contains("--data-dir"), "{error}");
        for ours in [LOCK_FILE, directory::FILE, "superblock.1"] {
            let directory = tempfile::tempdir().unwrap();
            std::fs::write(directory.path().join(ours), "x").unwrap();
            assert_eq!(check_directory(directory.path()), Ok(()), "{ours}");
        }
    }
}

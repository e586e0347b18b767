//! How peers prove who they are: mutual TLS, a shared secret, or both.

use crate::TransportError;
use std::path::{Path, PathBuf};

/// A shared secret: 16 to 1 024 bytes. Never printed.
#[derive(Clone)]
pub struct Secret(#[allow(dead_code)] Vec<u8>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    /// Refuses what is too short to be secret.
    pub fn new(_bytes: impl Into<Vec<u8>>) -> Result<Secret, TransportError> {
        todo!()
    }

    /// Reads a file (white space around it is left out).
    pub fn from_file(_path: &Path) -> Result<Secret, TransportError> {
        todo!()
    }

    /// Reads the file, or makes it with 256 random bits (in hexadecimal, mode 0600) when it is not there.
    pub fn from_file_or_new(_path: &Path) -> Result<Secret, TransportError> {
        todo!()
    }
}

/// Certificates in PEM files. The peer's must be signed by `authority`.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub authority: PathBuf,
    /// Name expected in the server's certificate, when it is not the host that was connected to.
    pub server_name: Option<String>,
}

/// What a side has to show and asks of the other. With neither, nobody is let in.
#[derive(Clone, Debug, Default)]
pub struct Security {
    pub secret: Option<Secret>,
    pub tls: Option<TlsFiles>,
}

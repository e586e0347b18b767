//! TLS: the server's certificate, given or made.
//!
//! Without a certificate of the operator's own, one is made at the first start and kept in the data directory, so that clients can encrypt
//! from the first minute (they cannot verify it unless they are given that file, as with MySQL's own automatic certificates).
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names of the files made by [`TlsOptions::Automatic`].
pub const CERTIFICATE_FILE: &str = "server-cert.pem";
pub const KEY_FILE: &str = "server-key.pem";

#[derive(Clone, Debug, Default)]
pub enum TlsOptions {
    #[default]
    Off,
    /// A certificate chain and its private key, both PEM.
    Files { certificate: PathBuf, key: PathBuf },
    /// A self-signed certificate in this directory, made when it is not there.
    Automatic { directory: PathBuf },
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read the certificate {path}: {reason}")]
    Certificate { path: String, reason: String },
    #[error("cannot read the private key {path}: {reason}")]
    Key { path: String, reason: String },
    #[error("certificate and key do not work together: {0}")]
    Mismatch(rustls::Error),
    #[error("cannot make a certificate: {0}")]
    Generate(String),
    #[error("cannot write {path}: {error}")]
    Write { path: String, error: std::io::Error },
}

impl TlsOptions {
    /// The configuration for accepting; `None` when TLS is off.
    pub fn load(&self) -> Result<Option<Arc<ServerConfig>>, TlsError> {
        match self {
            TlsOptions::Off => Ok(None),
            TlsOptions::Files { certificate, key } => load(certificate, key).map(Some),
            TlsOptions::Automatic { directory } => {
                let (certificate, key) = (directory.join(CERTIFICATE_FILE), directory.join(KEY_FILE));
                if !certificate.exists() || !key.exists() {
                    generate(&certificate, &key)?;
                }
                load(&certificate, &key).map(Some)
            }
        }
    }
}

fn load(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let bad = |reason: String| TlsError::Certificate { path: certificate.display().to_string(), reason };
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect).map_err(|e| bad(e.to_string()))?;
    if chain.is_empty() {
        return Err(bad("no certificate in it".into()));
    }
    let key = PrivateKeyDer::from_pem_file(key)
        .map_err(|e| TlsError::Key { path: key.display().to_string(), reason: e.to_string() })?;
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Mismatch)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(TlsError::Mismatch)?;
    Ok(Arc::new(config))
}

fn generate(certificate: &Path, key: &Path) -> Result<(), TlsError> {
    let names = ["localhost", "127.0.0.1", "::1"].map(String::from).to_vec();
    let made = rcgen::generate_simple_self_signed(names).map_err(|e| TlsError::Generate(e.to_string()))?;
    let write = |path: &Path, text: &str| {
        write_private(path, text.as_bytes())
            .map_err(|error| TlsError::Write { path: path.display().to_string(), error })
    };
    write(key, &made.signing_key.serialize_pem())?;
    write(certificate, &made.cert.pem())
}

/// Writes a file that only its owner may read, whole or not at all.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let part = path.with_extension("pem.part");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file: File = options.open(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&part, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_once_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let options = TlsOptions::Automatic { directory: directory.path().into() };
        assert!(options.load().unwrap().is_some());
        let first = std::fs::read(directory.path().join(CERTIFICATE_FILE)).unwrap();
        assert!(options.load().unwrap().is_some());
        assert_eq!(std::fs::read(directory.path().join(CERTIFICATE_FILE)).unwrap(), first);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(directory.path().join(KEY_FILE)).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "the key is nobody else's business");
        }
    }

    #[test]
    fn bad_files_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let (certificate, key) = (directory.path().join("c.pem"), directory.path().join("k.pem"));
        let options = TlsOptions::Files { certificate: certificate.clone(), key };
        assert!(options.load().unwrap_err().to_string().contains("c.pem"));
        std::fs::write(&certificate, "nothing").unwrap();
        assert!(options.load().unwrap_err().to_string().contains("c.pem"));
    }
}

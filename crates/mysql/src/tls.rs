//! TLS: the server's certificate, given or made.
//!
//! Without a certificate of the operator's own, one is made at the first start and kept in the data directory, so that clients can encrypt
//! from the first minute (they cannot verify it unless they are given that file, as with MySQL's own automatic certificates).
use crate::backend::Certificate;
use rustls::crypto::aws_lc_rs;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use x509_parser::prelude::{FromDer, X509Certificate, X509Name};

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
    /// `client_ca`: where the certificates of clients come from, who may show one and need not.
    pub fn load(&self, client_ca: Option<&Path>) -> Result<Option<Arc<ServerConfig>>, TlsError> {
        match self {
            TlsOptions::Off => Ok(None),
            TlsOptions::Files { certificate, key } => load(certificate, key, client_ca).map(Some),
            TlsOptions::Automatic { directory } => {
                let (certificate, key) = (directory.join(CERTIFICATE_FILE), directory.join(KEY_FILE));
                if !certificate.exists() || !key.exists() {
                    generate(&certificate, &key)?;
                }
                load(&certificate, &key, client_ca).map(Some)
            }
        }
    }
}

fn load(certificate: &Path, key: &Path, client_ca: Option<&Path>) -> Result<Arc<ServerConfig>, TlsError> {
    let bad = |reason: String| bad_certificate(certificate, reason);
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect).map_err(|e| bad(e.to_string()))?;
    if chain.is_empty() {
        return Err(bad("no certificate in it".into()));
    }
    let key = PrivateKeyDer::from_pem_file(key)
        .map_err(|e| TlsError::Key { path: key.display().to_string(), reason: e.to_string() })?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Mismatch)?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(path)?), provider);
            let verifier = verifier.allow_unauthenticated().build();
            builder.with_client_cert_verifier(verifier.map_err(|e| bad_certificate(path, e.to_string()))?)
        }
    };
    Ok(Arc::new(builder.with_single_cert(chain, key).map_err(TlsError::Mismatch)?))
}

fn bad_certificate(path: &Path, reason: String) -> TlsError {
    TlsError::Certificate { path: path.display().to_string(), reason }
}

fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(path).map_err(|e| bad_certificate(path, e.to_string()))?;
    for certificate in certificates {
        let added = certificate.map_err(|e| e.to_string()).and_then(|c| roots.add(c).map_err(|e| e.to_string()));
        added.map_err(|reason| bad_certificate(path, reason))?;
    }
    Ok(roots)
}

/// Subject and issuer of a certificate, as REQUIRE SUBJECT and ISSUER name them.
pub(crate) fn names_of(der: &[u8]) -> Option<Certificate> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(Certificate { subject: one_line(certificate.subject()), issuer: one_line(certificate.issuer()) })
}

/// OpenSSL's short names of what names are made of.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.46", "dnQualifier"),
    ("2.5.4.65", "pseudonym"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

/// As OpenSSL's X509_NAME_oneline: a part of which no short name is known has its number, and bytes that are no
/// printable ASCII are written in hexadecimal.
fn one_line(name: &X509Name<'_>) -> String {
    let mut out = String::new();
    for attribute in name.iter_attributes() {
        let kind = attribute.attr_type();
        let number = kind.to_id_string();
        let short = SHORT_NAMES.iter().find(|(known, _)| *known == number).map_or(number.as_str(), |(_, short)| short);
        out.push_str(&format!("/{short}="));
        for &byte in attribute.attr_value().data {
            match byte {
                b' '..=b'~' => out.push(char::from(byte)),
                other => out.push_str(&format!("\\x{other:02X}")),
            }
        }
    }
    out
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
        assert!(options.load(None).unwrap().is_some());
        let first = std::fs::read(directory.path().join(CERTIFICATE_FILE)).unwrap();
        assert!(options.load(None).unwrap().is_some());
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
        assert!(options.load(None).unwrap_err().to_string().contains("c.pem"));
        std::fs::write(&certificate, "nothing").unwrap();
        assert!(options.load(None).unwrap_err().to_string().contains("c.pem"));
    }
}

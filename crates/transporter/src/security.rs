//! How peers prove who they are: mutual TLS, a shared secret, or both.
//!
//! What a listener is given it asks for: a secret (proved by the handshake, see [`rauk_wire::hello`]), a certificate that its authority has signed, or both when both are given.
//! A side that connects shows what it has, and asks the same of the server: with a secret the server must prove that it knows it too, with TLS its certificate must be
//! signed and carry the name.

use crate::TransportError;
use crate::certificates::NodeTls;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::aws_lc_rs;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SHORTEST: usize = 16;
const LONGEST: usize = 1024;

/// A shared secret: 16 to 1 024 bytes. Never printed.
#[derive(Clone)]
pub struct Secret {
    bytes: Vec<u8>,
    /// What a listener takes as well.
    earlier: Option<Vec<u8>>,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    /// Refuses what is too short to be secret.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Secret, TransportError> {
        let bytes = bytes.into();
        if !(SHORTEST..=LONGEST).contains(&bytes.len()) {
            return configuration(format!(
                "a shared secret has {SHORTEST} to {LONGEST} bytes; this one has {}",
                bytes.len()
            ));
        }
        Ok(Secret { bytes, earlier: None })
    }

    /// For a listener: whoever knows `earlier` is let in, too. Programs that were given a secret before it was changed.
    pub fn or(self, earlier: Secret) -> Secret {
        Secret { earlier: Some(earlier.bytes), ..self }
    }

    /// Reads a file (white space around it is left out).
    pub fn from_file(path: &Path) -> Result<Secret, TransportError> {
        let bytes = std::fs::read(path)
            .or_else(|e| configuration(format!("cannot read the secret file {}: {e}", path.display())))?;
        Secret::new(bytes.trim_ascii())
            .or_else(|e| configuration(format!("the secret file {} cannot be used: {e}", path.display())))
    }

    /// Reads the file, or makes it with 256 random bits (in hexadecimal, mode 0600) when it is not there.
    pub fn from_file_or_new(path: &Path) -> Result<Secret, TransportError> {
        if !path.exists() {
            Secret::random().store(path)?;
        }
        Secret::from_file(path)
    }

    /// 256 random bits, in hexadecimal.
    pub fn random() -> Secret {
        let mut random = [0u8; 32];
        fill_random(&mut random);
        let text: String = random.iter().map(|b| format!("{b:02x}")).collect();
        Secret { bytes: text.into_bytes(), earlier: None }
    }

    /// Writes a file that only its owner may read; on disk when it returns.
    pub fn store(&self, path: &Path) -> Result<(), TransportError> {
        let part = path.with_extension("part");
        let made = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&part)
            .and_then(|mut file| {
                file.write_all(&self.bytes)?;
                file.write_all(b"\n")?;
                file.sync_all()
            })
            .and_then(|()| std::fs::rename(&part, path));
        made.or_else(|e| configuration(format!("cannot make the secret file {}: {e}", path.display())))
    }

    /// For who keeps it in a safe place: it is not to be shown or logged.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What a listener takes.
    pub(crate) fn accepted(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(self.bytes.as_slice()).chain(self.earlier.as_deref())
    }
}

/// Random bytes of the cryptographic library; without them nothing here can be safe.
pub(crate) fn fill_random(bytes: &mut [u8]) {
    ::aws_lc_rs::rand::fill(bytes).expect("the system gives random bytes");
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

/// The TLS of a port or a link.
#[derive(Clone, Debug)]
pub enum Tls {
    Files(TlsFiles),
    /// Between nodes. A listener takes the secret in the place of a certificate, so that nodes can get one.
    Nodes(Arc<NodeTls>),
    /// Of a side that connects to get a certificate: both sides prove the secret.
    Enrol(Arc<NodeTls>),
}

/// What a side has to show and asks of the other. With neither, nobody is let in.
#[derive(Clone, Debug, Default)]
pub struct Security {
    pub secret: Option<Secret>,
    pub tls: Option<Tls>,
}

/// The TLS of a listener. A node's changes with its certificate.
pub(crate) enum ServerTls {
    Fixed(Arc<ServerConfig>),
    Nodes(Arc<NodeTls>),
}

impl ServerTls {
    /// `None`: there is no certificate yet.
    pub fn config(&self) -> Option<Arc<ServerConfig>> {
        match self {
            ServerTls::Fixed(config) => Some(config.clone()),
            ServerTls::Nodes(tls) => tls.server(),
        }
    }

    /// Whether a certificate takes the place of the secret.
    pub fn certificate_suffices(&self) -> bool {
        matches!(self, ServerTls::Nodes(_))
    }
}

impl Tls {
    pub(crate) fn server(&self) -> Result<ServerTls, TransportError> {
        match self {
            Tls::Files(files) => files.server().map(ServerTls::Fixed),
            Tls::Nodes(tls) | Tls::Enrol(tls) => Ok(ServerTls::Nodes(tls.clone())),
        }
    }

    pub(crate) fn client(&self, host: &str) -> Result<(Arc<ClientConfig>, ServerName<'static>), TransportError> {
        match self {
            Tls::Files(files) => files.client(host),
            Tls::Nodes(tls) => tls.client(),
            Tls::Enrol(tls) => tls.enrolling(),
        }
    }

    /// Whether the server's certificate is verified, so that it is proof enough.
    pub(crate) fn verifies(&self) -> bool {
        !matches!(self, Tls::Enrol(_))
    }
}

fn configuration<T>(message: String) -> Result<T, TransportError> {
    Err(TransportError::Configuration(message))
}

/// A file's certificates, or a key, read.
struct Loaded {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    authority: Arc<RootCertStore>,
}

impl TlsFiles {
    fn load(&self) -> Result<Loaded, TransportError> {
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .or_else(|e| configuration(format!("cannot read the private key {}: {e}", self.key.display())))?;
        let mut authority = RootCertStore::empty();
        for certificate in certificates(&self.authority)? {
            authority.add(certificate).or_else(|e| {
                configuration(format!("the authority in {} cannot be used: {e}", self.authority.display()))
            })?;
        }
        Ok(Loaded { chain: certificates(&self.certificate)?, key, authority: Arc::new(authority) })
    }

    /// For accepting: clients must show a certificate of the authority.
    fn server(&self) -> Result<Arc<ServerConfig>, TransportError> {
        let Loaded { chain, key, authority } = self.load()?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(authority, provider.clone())
            .build()
            .or_else(|e| configuration(format!("{} is no authority: {e}", self.authority.display())))?;
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_client_cert_verifier(verifier).with_single_cert(chain, key))
            .map(Arc::new)
            .or_else(|e| self.mismatch(&e))
    }

    /// For connecting to `host`: shows our certificate, asks for one of the authority with the server's name.
    fn client(&self, host: &str) -> Result<(Arc<ClientConfig>, ServerName<'static>), TransportError> {
        let Loaded { chain, key, authority } = self.load()?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(authority, provider.clone())
            .build()
            .or_else(|e| configuration(format!("{} is no authority: {e}", self.authority.display())))?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_webpki_verifier(verifier).with_client_auth_cert(chain, key))
            .or_else(|e| self.mismatch(&e))?;
        let name = self.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_string())
            .or_else(|_| configuration(format!("{name:?} cannot be the name in a certificate")))?;
        Ok((Arc::new(config), name))
    }

    fn mismatch<T>(&self, error: &rustls::Error) -> Result<T, TransportError> {
        configuration(format!(
            "the certificate {} and the key {} do not work together: {error}",
            self.certificate.display(),
            self.key.display()
        ))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TransportError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => configuration(format!("no certificate in {}", path.display())),
        Err(e) => configuration(format!("cannot read the certificate {}: {e}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn secrets_are_bounded_and_not_printed() {
        assert!(Secret::new("short").is_err());
        assert!(Secret::new(vec![1; LONGEST + 1]).is_err());
        assert_eq!(format!("{:?}", Secret::new("0123456789abcdef").unwrap()), "Secret(…)");
    }

    #[test]
    fn a_secret_is_made_once_for_its_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("native.secret");
        assert!(Secret::from_file(&path).unwrap_err().to_string().contains("native.secret"));
        let first = Secret::from_file_or_new(&path).unwrap();
        assert_eq!(first.bytes().len(), 64);
        assert_eq!(Secret::from_file_or_new(&path).unwrap().bytes(), first.bytes());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
        std::fs::write(&path, "  0123456789abcdef \n").unwrap();
        assert_eq!(Secret::from_file(&path).unwrap().bytes(), b"0123456789abcdef");
    }
}

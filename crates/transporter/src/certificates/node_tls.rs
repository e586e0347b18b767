//! What a node shows and asks for on its links: TLS configurations that change when its certificate does.

use super::authority::{Authority, Name};
use crate::TransportError;
use parking_lot::RwLock;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{AlertDescription, CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls::{CipherSuite, ClientConfig, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Tells the time by which certificates are valid. The system's, or a test's.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    pub fn system() -> Clock {
        Clock::new(SystemTime::now)
    }

    pub fn new(tell: impl Fn() -> SystemTime + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(tell))
    }

    pub fn now(&self) -> SystemTime {
        (self.0)()
    }

    fn seconds(&self) -> Duration {
        self.now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(self.seconds()))
    }
}

/// A node's certificate with its key and the authority's certificate, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeCertificate {
    pub certificate: String,
    pub key: String,
    pub authority: String,
}

/// A certificate in use.
struct Installed {
    name: Name,
    /// Seconds since 1970.
    until: u64,
    fingerprint: String,
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

/// The TLS of a node's links. It has no certificate at first, and then lets nobody in.
pub struct NodeTls {
    clock: Clock,
    provider: Arc<CryptoProvider>,
    installed: RwLock<Option<Arc<Installed>>>,
}

impl std::fmt::Debug for NodeTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NodeTls({:?})", self.name())
    }
}

impl NodeTls {
    pub fn new(clock: Clock) -> Arc<NodeTls> {
        Arc::new(NodeTls { clock, provider: Arc::new(provider()), installed: RwLock::new(None) })
    }

    /// Links that are made from now on show it; links that are open stay.
    pub fn install(&self, pem: &NodeCertificate) -> Result<(), TransportError> {
        let unusable = |e: &dyn std::fmt::Display| {
            TransportError::Configuration(format!("the certificate of this node cannot be used: {e}"))
        };
        let read = |text: &str| CertificateDer::from_pem_slice(text.as_bytes()).map_err(|e| unusable(&e));
        let (certificate, authority) = (read(&pem.certificate)?, read(&pem.authority)?);
        let fingerprint = Authority::fingerprint(&pem.authority).ok_or_else(|| unusable(&"no authority"))?;
        let (name, until) = Name::read(&certificate).ok_or_else(|| unusable(&"it does not name a node"))?;
        let key = || PrivateKeyDer::from_pem_slice(pem.key.as_bytes()).map_err(|e| unusable(&e));
        let mut roots = RootCertStore::empty();
        roots.add(authority).map_err(|e| unusable(&e))?;
        let roots = Arc::new(roots);
        let (provider, clock) = (self.provider.clone(), Arc::new(self.clock.clone()));

        // Nodes that have no certificate yet show none: they must prove the secret.
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone());
        let verifier = verifier.allow_unauthenticated().build().map_err(|e| unusable(&e))?;
        let mut server = ServerConfig::builder_with_details(provider.clone(), clock.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(|e| unusable(&e))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate.clone()], key()?)
            .map_err(|e| unusable(&e))?;
        // A resumed session would outlive its certificates.
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;

        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone());
        let verifier = verifier.build().map_err(|e| unusable(&e))?;
        let mut client = ClientConfig::builder_with_details(provider, clock)
            .with_protocol_versions(&[&TLS13])
            .map_err(|e| unusable(&e))?
            .with_webpki_verifier(verifier)
            .with_client_auth_cert(vec![certificate], key()?)
            .map_err(|e| unusable(&e))?;
        client.resumption = Resumption::disabled();
        let installed = Installed { name, until, fingerprint, server: Arc::new(server), client: Arc::new(client) };
        *self.installed.write() = Some(Arc::new(installed));
        Ok(())
    }

    fn installed(&self) -> Option<Arc<Installed>> {
        self.installed.read().clone()
    }

    /// Who this node is, by its certificate.
    pub fn name(&self) -> Option<Name> {
        self.installed().map(|installed| installed.name)
    }

    /// Fingerprint of the authority that it trusts.
    pub fn authority(&self) -> Option<String> {
        self.installed().map(|installed| installed.fingerprint.clone())
    }

    /// How long the certificate is valid from now on; zero when it has run out, or there is none.
    pub fn left(&self) -> Duration {
        let until = self.installed().map_or(0, |installed| installed.until);
        Duration::from_secs(until).saturating_sub(self.clock.seconds())
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// `None`: there is no certificate yet.
    pub(crate) fn server(&self) -> Option<Arc<ServerConfig>> {
        self.installed().map(|installed| installed.server.clone())
    }

    /// For connecting to a node of the cluster.
    pub(crate) fn client(&self) -> Result<(Arc<ClientConfig>, ServerName<'static>), TransportError> {
        let Some(installed) = self.installed() else {
            return Err(TransportError::NoCertificate);
        };
        let name = ServerName::try_from(Name::of_cluster(&installed.name.cluster)).expect("a host name");
        Ok((installed.client.clone(), name))
    }

    /// For asking a node for a certificate: it may show any, and must prove the secret instead.
    pub(crate) fn enrolling(&self) -> Result<(Arc<ClientConfig>, ServerName<'static>), TransportError> {
        let verifier = Arc::new(ProvesTheSecret(self.provider.clone()));
        let builder = ClientConfig::builder_with_details(self.provider.clone(), Arc::new(self.clock.clone()))
            .with_protocol_versions(&[&TLS13])
            .map_err(|e| TransportError::Configuration(format!("TLS cannot be used: {e}")))?;
        let mut config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        config.resumption = Resumption::disabled();
        Ok((Arc::new(config), ServerName::try_from("rauk").expect("a host name")))
    }
}

/// The cipher that costs this processor least comes first, and is the only one that is used between equal machines.
fn provider() -> CryptoProvider {
    let mut provider = aws_lc_rs::default_provider();
    let best =
        if has_aes() { CipherSuite::TLS13_AES_128_GCM_SHA256 } else { CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 };
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != best);
    provider
}

fn has_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes") && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    false
}

/// Takes any certificate whose key the server has. Only for links on which both sides prove the secret, with proofs
/// that are bound to the connection.
#[derive(Debug)]
struct ProvesTheSecret(Arc<CryptoProvider>);

impl ServerCertVerifier for ProvesTheSecret {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("links between nodes are TLS 1.3".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// What a person is told of a link between nodes that TLS has ended, and whether that is so until somebody acts.
pub(crate) fn explain(error: &Error) -> (String, bool) {
    use AlertDescription as Alert;
    use CertificateError as Bad;
    let renewed = "a node that is started again gets a new one with the cluster's secret";
    let (text, permanent) = match error {
        Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            (format!("its certificate has expired, or a clock is wrong; {renewed}"), false)
        }
        Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            ("its certificate is not valid yet: the clock of one of the nodes is wrong, set it".into(), false)
        }
        Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
            ("its certificate is of another cluster; correct the address, or use an empty data directory".into(), true)
        }
        Error::AlertReceived(Alert::CertificateExpired) => {
            (format!("it says that the certificate of this node has expired, or a clock is wrong; {renewed}"), false)
        }
        Error::AlertReceived(Alert::UnknownCA | Alert::DecryptError) => (
            "it says that the certificate of this node is of another cluster; \
             correct the address, or use an empty data directory"
                .into(),
            true,
        ),
        Error::InvalidMessage(_) => (
            "it does not answer in TLS as nodes do: it is no cluster port, or its links are plain \
             (start all nodes of a cluster with --plain-links, or none)"
                .into(),
            true,
        ),
        other => (format!("TLS: {other}"), false),
    };
    (text, permanent)
}

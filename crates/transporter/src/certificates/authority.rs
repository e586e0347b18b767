//! The cluster's certificate authority, the names in its certificates, and keys of nodes. All keys are Ed25519.
//!
//! The authority's certificate follows from its key and the cluster's id alone: the signature has no random part and
//! the dates are fixed. So whoever has the key has the same certificate, and it never has to be renewed.

use crate::security::fill_random;
use crate::{Secret, TransportError};
use aws_lc_rs::{digest, hmac};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ED25519, PublicKeyData, SerialNumber, SignatureAlgorithm,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::time::{Duration, SystemTime};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Bytes of a public key.
pub const KEY_BYTES: usize = 32;
/// How long a node's certificate is valid.
pub const VALID: Duration = Duration::from_secs(90 * 86_400);
/// A certificate is valid for a clock that is behind the authority's by so much.
const BEFORE: Duration = Duration::from_secs(86_400);
const DOMAIN: &str = ".rauk";
/// An Ed25519 private key in PKCS #8, before its 32 bytes.
const PKCS8: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// Whose certificate it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    pub cluster: [u8; 16],
    /// 0: it has no number yet.
    pub node: u16,
    /// Random number of its data directory.
    pub directory: u64,
}

impl Name {
    /// The host name that every certificate of a cluster has.
    pub(super) fn of_cluster(cluster: &[u8; 16]) -> String {
        format!("cluster-{}{DOMAIN}", hexadecimal(cluster))
    }

    fn host_names(&self) -> Vec<String> {
        let cluster = Name::of_cluster(&self.cluster);
        let mut names = vec![cluster.clone(), format!("directory-{:016x}.{cluster}", self.directory)];
        if self.node != 0 {
            names.push(format!("node-{}.{cluster}", self.node));
        }
        names
    }

    /// Reads a certificate that has been verified; with the time until which it is valid, in seconds since 1970.
    /// `None`: it is no node's.
    pub fn read(certificate: &CertificateDer<'_>) -> Option<(Name, u64)> {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let until = u64::try_from(certificate.validity().not_after.timestamp()).ok()?;
        let names = &certificate.subject_alternative_name().ok()??.value.general_names;
        let mut found = Name { cluster: [0; 16], node: 0, directory: 0 };
        for name in names {
            let GeneralName::DNSName(name) = name else { return None };
            let name = name.strip_suffix(DOMAIN)?;
            let (first, rest) = name.split_once('.').unwrap_or((name, ""));
            let (kind, value) = first.split_once('-')?;
            match kind {
                "cluster" if rest.is_empty() => found.cluster = bytes(value)?,
                "node" => found.node = value.parse().ok()?,
                "directory" => found.directory = u64::from_str_radix(value, 16).ok()?,
                _ => return None,
            }
        }
        (found.cluster != [0; 16]).then_some((found, until))
    }
}

/// A node's private key.
pub struct NodeKey(KeyPair);

impl NodeKey {
    pub fn new() -> Result<NodeKey, TransportError> {
        KeyPair::generate_for(&PKCS_ED25519).map(NodeKey).map_err(failed)
    }

    pub fn public(&self) -> [u8; KEY_BYTES] {
        self.0.public_key_raw().try_into().expect("an Ed25519 key has 32 bytes")
    }

    pub fn pem(&self) -> String {
        self.0.serialize_pem()
    }
}

/// A public key that came from another node.
struct PublicKey([u8; KEY_BYTES]);

impl PublicKeyData for PublicKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ED25519
    }
}

/// Signs certificates of a cluster's nodes.
pub struct Authority {
    cluster: [u8; 16],
    key: Issuer<'static, KeyPair>,
    certificate: rcgen::Certificate,
}

impl Authority {
    /// Of a cluster that is being founded: its key is random.
    pub fn found(cluster: [u8; 16]) -> Result<Authority, TransportError> {
        let mut seed = [0; 32];
        fill_random(&mut seed);
        Authority::from_seed(cluster, &seed)
    }

    /// Of a cluster that was founded without: each of its nodes makes the same from the secret that they share.
    pub fn from_secret(cluster: [u8; 16], secret: &Secret) -> Result<Authority, TransportError> {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, secret.bytes()));
        context.update(b"rauk certificate authority");
        context.update(&cluster);
        let seed: [u8; 32] = context.sign().as_ref().try_into().expect("HMAC-SHA-256 has 32 bytes");
        Authority::from_seed(cluster, &seed)
    }

    fn from_seed(cluster: [u8; 16], seed: &[u8; 32]) -> Result<Authority, TransportError> {
        let pkcs8 = [&PKCS8[..], seed].concat();
        Authority::from_key(cluster, &PrivatePkcs8KeyDer::from(pkcs8))
    }

    /// Reads what [`Authority::key_pem`] gave.
    pub fn from_pem(cluster: [u8; 16], text: &str) -> Result<Authority, TransportError> {
        let key = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes()).map_err(failed)?;
        Authority::from_key(cluster, &key)
    }

    fn from_key(cluster: [u8; 16], key: &PrivatePkcs8KeyDer<'_>) -> Result<Authority, TransportError> {
        let key = KeyPair::from_pkcs8_der_and_sign_algo(key, &PKCS_ED25519).map_err(failed)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let name = format!("Rauk authority of {}", Name::of_cluster(&cluster));
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.serial_number = Some(SerialNumber::from_slice(&[1]));
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2120, 1, 1);
        let certificate = params.self_signed(&key).map_err(failed)?;
        Ok(Authority { cluster, key: Issuer::new(params, key), certificate })
    }

    pub fn cluster(&self) -> [u8; 16] {
        self.cluster
    }

    /// The private key: for its owner only.
    pub fn key_pem(&self) -> String {
        self.key.key().serialize_pem()
    }

    pub fn certificate_pem(&self) -> String {
        self.certificate.pem()
    }

    /// SHA-256 of a certificate in PEM, in hexadecimal. `None`: it is none.
    pub fn fingerprint(certificate: &str) -> Option<String> {
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).ok()?;
        Some(hexadecimal(digest::digest(&digest::SHA256, &certificate).as_ref()))
    }

    /// A certificate in PEM, valid from `now` on. Whoever calls has made sure that the key's owner is who it says.
    pub fn sign(&self, name: &Name, key: [u8; KEY_BYTES], now: SystemTime) -> Result<String, TransportError> {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut params = CertificateParams::new(name.host_names()).map_err(failed)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, format!("Rauk node {}", name.node));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let mut serial = [0; 16];
        fill_random(&mut serial);
        serial[0] &= 0x7f;
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        params.not_before = epoch + now.saturating_sub(BEFORE);
        params.not_after = epoch + now + VALID;
        Ok(params.signed_by(&PublicKey(key), &self.key).map_err(failed)?.pem())
    }
}

fn failed(error: impl std::fmt::Display) -> TransportError {
    TransportError::Configuration(format!("a certificate cannot be made or read: {error}"))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn bytes(text: &str) -> Option<[u8; 16]> {
    let number = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32)?;
    Some(number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        let authority = Authority::found([7; 16]).unwrap();
        let key = NodeKey::new().unwrap();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_900_000_000);
        for node in [0, 3] {
            let name = Name { cluster: [7; 16], node, directory: 0xabc };
            let pem = authority.sign(&name, key.public(), now).unwrap();
            let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
            assert_eq!(Name::read(&certificate), Some((name, 1_900_000_000 + VALID.as_secs())));
        }
        // The authority is no node.
        assert_eq!(Name::read(authority.certificate.der()), None);
    }

    #[test]
    fn all_nodes_make_the_same_authority_of_a_secret() {
        let secret = Secret::new("0123456789abcdef").unwrap();
        let [first, second] = [1, 1].map(|_| Authority::from_secret([7; 16], &secret).unwrap().certificate_pem());
        assert_eq!(first, second);
        let other = Authority::from_secret([8; 16], &secret).unwrap().certificate_pem();
        assert_ne!(Authority::fingerprint(&first), Authority::fingerprint(&other));
        let founded = Authority::found([7; 16]).unwrap();
        assert_ne!(founded.certificate_pem(), first);
        let again = Authority::from_pem([7; 16], &founded.key_pem()).unwrap();
        assert_eq!(again.certificate_pem(), founded.certificate_pem());
    }

    #[test]
    fn nonsense_is_no_authority() {
        for text in ["", "nonsense", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            assert!(Authority::from_pem([7; 16], text).is_err());
            assert_eq!(Authority::fingerprint(text), None);
        }
    }
}

//! The RSA key with which clients without TLS send their password once, for `caching_sha2_password`'s full authentication.
//!
//! Loaded or made at first need, since most connections never need it, and kept in a file when there is a path for it, so that
//! clients that pinned the public key go on working after a restart. Decryption is aws-lc's, in constant time.
use super::NONCE;
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, PrivateDecryptingKey};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use std::path::Path;

pub struct RsaKey {
    key: OaepPrivateDecryptingKey,
    public_pem: String,
}

#[derive(Debug, thiserror::Error)]
pub enum RsaError {
    #[error("cannot make an RSA key")]
    Generate,
    #[error("{path} is not an RSA private key in PEM form (PKCS#8)")]
    Unreadable { path: String },
    #[error("cannot write {path}: {error}")]
    Write { path: String, error: std::io::Error },
}

impl RsaKey {
    /// Reads the key at `path`, or makes one of 2 048 bits (about 0.1 s) and writes it there. Blocks.
    pub fn load_or_generate(path: Option<&Path>) -> Result<RsaKey, RsaError> {
        let private = match path {
            Some(path) if path.exists() => {
                let unreadable = || RsaError::Unreadable { path: path.display().to_string() };
                let der = PrivatePkcs8KeyDer::from_pem_file(path).map_err(|_| unreadable())?;
                PrivateDecryptingKey::from_pkcs8(der.secret_pkcs8_der()).map_err(|_| unreadable())?
            }
            _ => {
                let key = PrivateDecryptingKey::generate(KeySize::Rsa2048).map_err(|_| RsaError::Generate)?;
                if let Some(path) = path {
                    let der: Pkcs8V1Der<'_> = key.as_der().map_err(|_| RsaError::Generate)?;
                    crate::tls::write_private(path, pem("PRIVATE KEY", der.as_ref()).as_bytes())
                        .map_err(|error| RsaError::Write { path: path.display().to_string(), error })?;
                }
                key
            }
        };
        let public: PublicKeyX509Der<'_> = private.public_key().as_der().map_err(|_| RsaError::Generate)?;
        let public_pem = pem("PUBLIC KEY", public.as_ref());
        let key = OaepPrivateDecryptingKey::new(private).map_err(|_| RsaError::Generate)?;
        Ok(RsaKey { key, public_pem })
    }

    /// The public key as clients ask for it.
    pub fn public_pem(&self) -> &str {
        &self.public_pem
    }

    /// The password that a client encrypted: OAEP (SHA-1) of password and NUL, masked with the challenge.
    pub fn password(&self, encrypted: &[u8], nonce: &[u8; NONCE]) -> Option<Vec<u8>> {
        let mut out = vec![0; self.key.min_output_size()];
        let plain = self.key.decrypt(&OAEP_SHA1_MGF1SHA1, encrypted, &mut out, None).ok()?;
        let mut password: Vec<u8> = plain.iter().zip(nonce.iter().cycle()).map(|(a, b)| a ^ b).collect();
        (password.pop() == Some(0)).then_some(password)
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = format!("-----BEGIN {label}-----");
    for (i, chunk) in der.chunks(3).enumerate() {
        if i % 16 == 0 {
            text.push('\n');
        }
        let word =
            u32::from_be_bytes([0, chunk[0], chunk.get(1).copied().unwrap_or(0), chunk.get(2).copied().unwrap_or(0)]);
        for k in 0..4 {
            let sextet = (word >> (18 - 6 * k)) & 63;
            text.push(if k <= chunk.len() { ALPHABET[sextet as usize] as char } else { '=' });
        }
    }
    text.push_str(&format!("\n-----END {label}-----\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::rsa::{OaepPublicEncryptingKey, PublicEncryptingKey};
    use rustls_pki_types::SubjectPublicKeyInfoDer;

    #[test]
    fn a_client_sends_its_password() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("private_key.pem");
        let made = RsaKey::load_or_generate(Some(&path)).unwrap();
        let key = RsaKey::load_or_generate(Some(&path)).unwrap();
        assert_eq!(made.public_pem(), key.public_pem(), "kept over a restart");

        let nonce = crate::auth::nonce();
        let spki = SubjectPublicKeyInfoDer::from_pem_slice(key.public_pem().as_bytes()).unwrap();
        let public = OaepPublicEncryptingKey::new(PublicEncryptingKey::from_der(&spki).unwrap()).unwrap();
        let masked: Vec<u8> =
            b"a longer password than the nonce\0".iter().zip(nonce.iter().cycle()).map(|(a, b)| a ^ b).collect();
        let mut out = vec![0; public.ciphertext_size()];
        let encrypted = public.encrypt(&OAEP_SHA1_MGF1SHA1, &masked, &mut out, None).unwrap();
        assert_eq!(key.password(encrypted, &nonce).unwrap(), b"a longer password than the nonce");
        assert_eq!(key.password(b"junk", &nonce), None);
        assert_eq!(key.password(&[7; 256], &nonce), None);

        std::fs::write(&path, "not a key").unwrap();
        assert!(matches!(RsaKey::load_or_generate(Some(&path)), Err(RsaError::Unreadable { .. })));
    }
}

//! The login of an account, for clients that have a user and a password: the crypto of both sides, and what a port asks of whoever knows the accounts.
//!
//! The messages are [`rauk_wire::login`]'s. What was wanted, and how it is got:
//!
//! | wanted | by |
//! |---|---|
//! | the password is never in the clear, TLS or not | it is sealed with a key that both make of X25519 keys of this connection |
//! | nobody between the two can read it | each side first proves, over all that was said (the X25519 keys among it), that it knows the *verifier*: what the server has stored of the password. Who stands between and changes the keys fails at that |
//! | a server that is not the one that was meant gets nothing to log in with | the client seals its password after the server's proof only; what it has shown before is worth a guess at the password offline, as with any password protocol without certificates |
//! | strangers get nothing to guess at | the client proves first |
//! | a stored hash is no password | the verifier alone (out of a dump, or by SELECT on mysql.user) lets nobody in: the password itself is sent, sealed, and hashed again |
//! | wrong guesses cost the server little | proofs are HMACs; the slow hash is computed for who has proved the verifier |
//!
//! MySQL's fast path (a scramble of SHA256(SHA256(password))) needs the password to be shown once before, in TLS or by RSA with a key that the client has to know, and does
//! not prove the server; so it is not used here.
//! Accounts without a password are not let in, since there is nothing to prove. Left out: other plugins, several factors.

use crate::TransportError;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use aws_lc_rs::hmac;
use rauk_types::password::{self, MAX_PASSWORD, ROUNDS};
use rauk_wire::login::{KEY, MAX_USER, Salt};
use std::any::Any;
use std::net::IpAddr;
use std::sync::Arc;

/// A user and a password, of a side that connects. The password is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    pub user: String,
    password: String,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Account {
    /// Refuses what no account can have.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Result<Account, TransportError> {
        let account = Account { user: user.into(), password: password.into() };
        let wrong = |text: &str| Err(TransportError::Configuration(text.into()));
        match (account.user.len(), account.password.len()) {
            (MAX_USER.., _) => wrong("a user's name has at most 32 characters"),
            (_, 0) => wrong("an account of the native API needs a password"),
            (_, length) if length > MAX_PASSWORD => wrong("a password has at most 256 bytes"),
            _ => Ok(account),
        }
    }

    pub(crate) fn password(&self) -> &[u8] {
        self.password.as_bytes()
    }

    /// What the server has stored of this password, if it is the right one.
    pub(crate) fn verifier(&self, salt: &Salt) -> Vec<u8> {
        match salt {
            Salt::CachingSha2(salt) => password::sha256_crypt(self.password(), salt, ROUNDS).to_vec(),
            Salt::Native => password::native(self.password()).to_vec(),
        }
    }
}

/// Whoever wants to be let in by an account.
#[derive(Clone, Debug)]
pub struct Stranger {
    pub user: String,
    pub peer: IpAddr,
    pub tls: bool,
    /// TLS has verified its certificate.
    pub certified: bool,
}

/// What a server has stored of a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub salt: Salt,
    /// The digits of SHA-256-crypt, or the bytes of SHA1(SHA1(password)).
    pub verifier: Vec<u8>,
}

pub use rauk_wire::login::Denied;

/// What an account is given: the handler finds it at the link ([`crate::Link::granted`]).
pub type Granted = Arc<dyn Any + Send + Sync>;

/// Whoever knows the accounts of a port. Calls come on receive threads.
pub trait Accounts: Send + Sync {
    /// What is stored of the password, and of a second one. Of an unknown user something made up, always the same, so that nobody learns who is known.
    fn stored(&self, who: &Stranger) -> Result<Vec<Stored>, Denied>;
    /// The proof was wrong.
    fn wrong(&self, who: &Stranger) -> Denied;
    /// The proof for this was right; checks the password as well.
    fn grant(&self, who: &Stranger, stored: &Stored, password: &[u8]) -> Result<Granted, Denied>;
}

/// This connection's key pair.
pub(crate) struct Keys {
    own: EphemeralPrivateKey,
    pub public: [u8; KEY],
}

impl Keys {
    pub fn new() -> Keys {
        let random = aws_lc_rs::rand::SystemRandom::new();
        let own = EphemeralPrivateKey::generate(&X25519, &random).expect("the system gives random bytes");
        let public = own.compute_public_key().expect("a key that was just made");
        let public = public.as_ref().try_into().expect("a key of X25519 has 32 bytes");
        Keys { own, public }
    }

    /// The key of the password, for this peer and what was said. `None`: the peer's key is none.
    fn seal_key(self, peer: &[u8; KEY], said: &[u8]) -> Option<LessSafeKey> {
        agree_ephemeral(self.own, UnparsedPublicKey::new(&X25519, peer), (), |shared| {
            let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, shared));
            context.update(b"rauk password");
            context.update(said);
            let key = UnboundKey::new(&AES_256_GCM, context.sign().as_ref()).map_err(|_| ())?;
            Ok(LessSafeKey::new(key))
        })
        .ok()
    }

    pub fn seal(self, peer: &[u8; KEY], said: &[u8], password: &[u8]) -> Option<Vec<u8>> {
        let key = self.seal_key(peer, said)?;
        let mut sealed = password.to_vec();
        key.seal_in_place_append_tag(only(), Aad::empty(), &mut sealed).ok()?;
        Some(sealed)
    }

    pub fn open(self, peer: &[u8; KEY], said: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let key = self.seal_key(peer, said)?;
        let mut bytes = sealed.to_vec();
        let length = key.open_in_place(only(), Aad::empty(), &mut bytes).ok()?.len();
        bytes.truncate(length);
        Some(bytes)
    }
}

/// The key is used once, so its only nonce may be anything.
fn only() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_sealed_for_one_connection() {
        let (client, server, other) = (Keys::new(), Keys::new(), Keys::new());
        let (to_client, to_server) = (client.public, server.public);
        let sealed = client.seal(&to_server, b"said", b"secret").unwrap();
        assert!(!sealed.windows(6).any(|part| part == b"secret"));
        assert_eq!(server.open(&to_client, b"said", &sealed).unwrap(), b"secret");
        assert!(other.open(&to_client, b"said", &sealed).is_none());
        let (client, server) = (Keys::new(), Keys::new());
        let to_client = client.public;
        let sealed = client.seal(&server.public, b"said", b"secret").unwrap();
        assert!(server.open(&to_client, b"said otherwise", &sealed).is_none());
    }

    #[test]
    fn accounts_are_bounded_and_their_passwords_not_printed() {
        assert_eq!(format!("{:?}", Account::new("ann", "secret").unwrap()), r#"Account { user: "ann", .. }"#);
        for (user, password) in [("ann", ""), ("ann", &"x".repeat(257)), (&"u".repeat(200), "secret")] {
            assert!(Account::new(user, password).is_err());
        }
    }
}

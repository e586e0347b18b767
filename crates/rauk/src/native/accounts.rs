//! Accounts at the native port: what the transporter's handshake asks, answered by `sql`'s engine.
//!
//! The rules are those of the MySQL port: most specific host first, locked accounts, REQUIRE, FAILED_LOGIN_ATTEMPTS, limits of
//! connections, the age of a password. An unknown user, one without a password and one of another plugin are answered like a wrong
//! password, with a salt that is made up of the name, so that names cannot be guessed.
//!
//! Wrong passwords make further ones slower, as at the MySQL port: after [`FREE`] of an account from one address, the next is looked at
//! after a pause that grows up to [`LONGEST`]. Until then the client is told to come again (1129), and tries again by itself.
//! Other addresses do not wait for that, so strangers lock nobody out. The table is bounded; what was quiet longest is forgotten first.
//!
//! The slow hash of a password is computed once: afterwards SHA256(SHA256(password)) is remembered for the stored hash, in memory only.

use parking_lot::Mutex;
use rauk_mysql::auth::sha2::{self, Cache};
use rauk_node::native::Rights;
use rauk_sql::session::{Account, Engine, LoginAttempt};
use rauk_transporter::{Accounts, Denied, Granted, Secret, Stored, Stranger};
use rauk_types::MysqlError;
use rauk_types::error::codes;
use rauk_types::password::{ALPHABET, DIGEST_CHARS, native, sha256_crypt};
use rauk_wire::login::{SALT, Salt};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Wrong passwords of an account from one address that cost nothing.
const FREE: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3);
/// Wrong passwords are forgotten when none came for so long.
const FORGOTTEN: Duration = Duration::from_secs(300);
/// Accounts and addresses that are remembered, as many as the MySQL port remembers.
const ENTRIES: usize = 4096;
const HOST_IS_BLOCKED: u16 = 1129;
const SECURE_TRANSPORT_REQUIRED: u16 = 3159;
/// What a hash of `caching_sha2_password` begins with.
const PREFIX: &str = "$A$005$";

/// The accounts of a server.
pub struct Gate {
    engine: Arc<Engine>,
    passwords: Cache,
    brake: Brake,
    /// Salts of unknown users are made of it.
    decoy: Secret,
}

impl Gate {
    pub fn new(engine: Arc<Engine>) -> Arc<Gate> {
        Arc::new(Gate { engine, passwords: Cache::default(), brake: Brake::default(), decoy: Secret::random() })
    }

    /// What nobody's password is.
    fn nobody(&self, user: &str) -> Stored {
        let digits = sha256_crypt(user.as_bytes(), self.decoy.bytes(), 1);
        let mut salt = [ALPHABET[0]; SALT];
        salt.copy_from_slice(&digits[..SALT]);
        Stored { salt: Salt::CachingSha2(salt), verifier: self.decoy.bytes().to_vec() }
    }

    fn judge(&self, who: &Stranger, account: &Account, proven: bool) -> Result<(), MysqlError> {
        self.engine.judge_login(&LoginAttempt {
            user: &who.user,
            account_host: &account.host,
            peer: who.peer,
            proven,
            // Which cipher, and whose certificate, is not known here: accounts that ask for one of these are not let in.
            cipher: who.tls.then_some(""),
            certificate: who.certified.then_some(("", "")),
        })
    }

    fn is_right(&self, who: &Stranger, account: &Account, stored: &Stored, password: &[u8]) -> bool {
        let Some(hash) = hashes(account).find(|hash| parse(hash).as_ref() == Some(stored)) else { return false };
        match stored.salt {
            Salt::Native => native(password)[..] == stored.verifier[..],
            Salt::CachingSha2(_) => {
                let digest = sha2::digest2(password);
                if self.passwords.get(&who.user, &account.host, hash) == Some(digest) {
                    return true;
                }
                let right = sha2::verify_password(hash.as_bytes(), password);
                if right {
                    self.passwords.put(&who.user, &account.host, hash, digest);
                }
                right
            }
        }
    }
}

fn hashes(account: &Account) -> impl Iterator<Item = &str> {
    [account.hash.as_str(), account.second.as_str()].into_iter()
}

/// A stored hash; `None`: no password, or one of another plugin.
fn parse(hash: &str) -> Option<Stored> {
    if let Some(rest) = hash.strip_prefix(PREFIX) {
        let (salt, digits) = rest.as_bytes().split_first_chunk::<SALT>()?;
        let is_whole = digits.len() == DIGEST_CHARS;
        return is_whole.then(|| Stored { salt: Salt::CachingSha2(*salt), verifier: digits.to_vec() });
    }
    let digits = hash.strip_prefix('*').filter(|digits| digits.len() == 40)?;
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let verifier = (0..40).step_by(2).map(byte).collect::<Option<Vec<u8>>>()?;
    Some(Stored { salt: Salt::Native, verifier })
}

fn host_of(peer: IpAddr) -> String {
    let peer = peer.to_canonical();
    if peer.is_loopback() { "localhost".into() } else { peer.to_string() }
}

fn told(error: MysqlError) -> Denied {
    Denied { code: error.code, message: error.message }
}

impl Accounts for Gate {
    fn stored(&self, who: &Stranger) -> Result<Vec<Stored>, Denied> {
        if self.brake.holds(who, Instant::now()) {
            let host = host_of(who.peer);
            let message =
                format!("Host '{host}' is blocked because of many connection errors; try again in some seconds");
            return Err(Denied { code: HOST_IS_BLOCKED, message });
        }
        if self.engine.requires_secure_transport() && !who.tls {
            let message = "Connections using insecure transport are prohibited while --require_secure_transport=ON.";
            return Err(Denied { code: SECURE_TRANSPORT_REQUIRED, message: message.into() });
        }
        let account = self.engine.account(&who.user, who.peer);
        let found: Vec<Stored> = account.iter().flat_map(hashes).filter_map(parse).collect();
        Ok(if found.is_empty() { vec![self.nobody(&who.user)] } else { found })
    }

    fn wrong(&self, who: &Stranger) -> Denied {
        self.brake.failed(who, Instant::now());
        if let Some(account) = self.engine.account(&who.user, who.peer)
            && let Err(error) = self.judge(who, &account, false)
        {
            return told(error);
        }
        let message = format!("Access denied for user '{}'@'{}' (using password: YES)", who.user, host_of(who.peer));
        Denied { code: codes::ACCESS_DENIED, message }
    }

    fn grant(&self, who: &Stranger, stored: &Stored, password: &[u8]) -> Result<Granted, Denied> {
        let account = self.engine.account(&who.user, who.peer);
        let Some(account) = account.filter(|account| self.is_right(who, account, stored, password)) else {
            return Err(self.wrong(who));
        };
        self.brake.proven(who);
        self.judge(who, &account, true).map_err(told)?;
        let rights: Arc<dyn Rights> = self.engine.native_account(&who.user, &account.host, who.peer).map_err(told)?;
        Ok(Arc::new(rights))
    }
}

/// Wrong passwords, by address and user.
#[derive(Default)]
struct Brake {
    failures: Mutex<HashMap<(IpAddr, String), Failures>>,
}

struct Failures {
    count: u32,
    last: Instant,
}

impl Failures {
    fn pause(&self) -> Duration {
        match self.count.checked_sub(FREE) {
            None | Some(0) => Duration::ZERO,
            Some(more) => FIRST_PAUSE.saturating_mul(1 << (more - 1).min(10)).min(LONGEST),
        }
    }
}

fn key(who: &Stranger) -> (IpAddr, String) {
    (who.peer.to_canonical(), who.user.clone())
}

impl Brake {
    fn holds(&self, who: &Stranger, now: Instant) -> bool {
        let failures = self.failures.lock();
        failures.get(&key(who)).is_some_and(|failures| now.duration_since(failures.last) < failures.pause())
    }

    fn failed(&self, who: &Stranger, now: Instant) {
        let mut failures = self.failures.lock();
        let key = key(who);
        if failures.len() >= ENTRIES
            && !failures.contains_key(&key)
            && let Some(oldest) = failures.iter().min_by_key(|(_, f)| f.last).map(|(key, _)| key.clone())
        {
            failures.remove(&oldest);
        }
        let of_key = failures.entry(key).or_insert(Failures { count: 0, last: now });
        if now.duration_since(of_key.last) > FORGOTTEN {
            of_key.count = 0;
        }
        *of_key = Failures { count: of_key.count.saturating_add(1), last: now };
    }

    fn proven(&self, who: &Stranger) {
        self.failures.lock().remove(&key(who));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(user: &str) -> Stranger {
        Stranger { user: user.into(), peer: "10.0.0.1".parse().unwrap(), tls: false, certified: false }
    }

    #[test]
    fn stored_hashes_of_both_plugins_are_read() {
        let sha2 = sha2::hash(b"secret");
        let Some(Stored { salt: Salt::CachingSha2(salt), verifier }) = parse(&sha2) else { panic!("{sha2}") };
        assert_eq!(verifier, sha256_crypt(b"secret", &salt, 5000));
        let stored = parse("*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19").unwrap();
        assert_eq!(stored, Stored { salt: Salt::Native, verifier: native(b"password").to_vec() });
        for none in ["", "$A$005$short", "*24", "$A$006$", "*zz70C0C06DEE42FD1618BB99005ADCA2EC9D1E19"] {
            assert_eq!(parse(none), None, "{none}");
        }
    }

    #[test]
    fn guessing_becomes_slow_for_one_address_and_account() {
        let brake = Brake::default();
        let start = Instant::now();
        for _ in 0..FREE {
            assert!(!brake.holds(&who("ann"), start));
            brake.failed(&who("ann"), start);
        }
        assert!(!brake.holds(&who("ann"), start));
        brake.failed(&who("ann"), start);
        assert!(brake.holds(&who("ann"), start) && !brake.holds(&who("bob"), start));
        assert!(!brake.holds(&who("ann"), start + FIRST_PAUSE));
        for _ in 0..20 {
            brake.failed(&who("ann"), start);
        }
        assert!(brake.holds(&who("ann"), start + LONGEST / 2) && !brake.holds(&who("ann"), start + LONGEST));
        let elsewhere = Stranger { peer: "10.0.0.2".parse().unwrap(), ..who("ann") };
        assert!(!brake.holds(&elsewhere, start));
        brake.proven(&who("ann"));
        assert!(!brake.holds(&who("ann"), start));
        for user in 0..ENTRIES + 10 {
            brake.failed(&who(&user.to_string()), start);
        }
        assert!(brake.failures.lock().len() <= ENTRIES);
    }
}

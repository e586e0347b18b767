//! Logins of accounts: who is let in, and what somebody in between can do.

use super::*;
use crate::handshake::{Room, Side};
use crate::login::{Accounts, Granted, Stranger};
use crate::{Identity, Secret};
use rauk_types::password::{native, sha256_crypt};
use rauk_wire::frame::{HEADER, Parsed, parse};
use rauk_wire::hello::{NONCE, Role};
use rauk_wire::login::Salt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const SALT: [u8; 20] = [b'x'; 20];

/// Ann has a password and an older one; Bob's is stored in the other way.
#[derive(Default)]
struct Book {
    wrong: AtomicU32,
}

fn sha2(password: &str) -> Stored {
    Stored { salt: Salt::CachingSha2(SALT), verifier: sha256_crypt(password.as_bytes(), &SALT, 5000).to_vec() }
}

impl Accounts for Book {
    fn stored(&self, who: &Stranger) -> Result<Vec<Stored>, Denied> {
        match who.user.as_str() {
            "ann" => Ok(vec![sha2("new password"), sha2("old password")]),
            "bob" => Ok(vec![Stored { salt: Salt::Native, verifier: native(b"secret").to_vec() }]),
            "eve" => Err(Denied { code: 1129, message: "later".into() }),
            _ => Ok(vec![sha2("nobody knows this one")]),
        }
    }

    fn wrong(&self, who: &Stranger) -> Denied {
        self.wrong.fetch_add(1, Ordering::SeqCst);
        Denied { code: 1045, message: format!("Access denied for user '{}'", who.user) }
    }

    fn grant(&self, who: &Stranger, stored: &Stored, password: &[u8]) -> Result<Granted, Denied> {
        let right = match stored.salt {
            Salt::CachingSha2(salt) => sha256_crypt(password, &salt, 5000)[..] == stored.verifier[..],
            Salt::Native => native(password)[..] == stored.verifier[..],
        };
        match right {
            true => Ok(Arc::new(who.user.clone())),
            false => Err(self.wrong(who)),
        }
    }
}

fn side(role: Role, secret: Option<&str>) -> Side {
    let cluster = if role == Role::Node { [7; 16] } else { [0; 16] };
    Side {
        identity: Identity { role, cluster, incarnation: 3, version: 1, name: "test".into() },
        versions: (0, 1),
        secret: secret.map(|secret| Secret::new(secret).unwrap()),
        accepts: None,
        certified: false,
        certificate_suffices: false,
        nonce: [role as u8; NONCE],
    }
}

fn server(book: &Arc<Book>) -> ServerHandshake {
    let accounts: Arc<dyn Accounts> = book.clone();
    let stranger = Stranger { user: String::new(), peer: "10.0.0.1".parse().unwrap(), tls: false, certified: false };
    ServerHandshake::new(side(Role::Node, Some("0123456789abcdef")), 9, 100).with_accounts(Some(&accounts), stranger)
}

fn client(user: &str, password: &str) -> ClientHandshake {
    let account = Account::new(user, password).unwrap();
    ClientHandshake::new(side(Role::Client, None)).with_account(Some(&account))
}

/// The frames in some bytes.
fn frames(bytes: &[u8]) -> Vec<(Kind, Vec<u8>)> {
    let mut rest = bytes;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let Ok(Parsed::Whole(header, total)) = parse(rest) else { panic!("not a whole frame") };
        found.push((header.kind, rest[HEADER..total].to_vec()));
        rest = &rest[total..];
    }
    found
}

/// How a talk ends: for the client, and what the server has granted.
type End = (Step, Option<Granted>);

/// Talks to the end; `meddle` changes what is on its way, `true` for what the client has sent.
fn talk_with(
    mut client: ClientHandshake,
    mut server: ServerHandshake,
    mut meddle: impl FnMut(bool, Kind, &mut Vec<u8>),
) -> End {
    let mut to_server = frames(&client.hello());
    let mut granted = None;
    loop {
        let mut to_client = Vec::new();
        for (kind, mut payload) in to_server.drain(..) {
            meddle(true, kind, &mut payload);
            match server.on_frame(kind, &payload, || Room::Free) {
                Step::Wait => {}
                Step::Send(bytes) | Step::Deny(bytes, _) | Step::Refuse(bytes, _) => to_client.extend(frames(&bytes)),
                Step::Done { last, granted: given, .. } => {
                    granted = given;
                    to_client.extend(frames(&last.expect("a welcome")));
                }
                step => panic!("{step:?}"),
            }
        }
        assert!(!to_client.is_empty(), "the server is silent");
        for (kind, mut payload) in to_client {
            meddle(false, kind, &mut payload);
            match client.on_frame(kind, &payload) {
                Step::Wait => {}
                Step::Send(bytes) => to_server.extend(frames(&bytes)),
                step => return (step, granted),
            }
        }
    }
}

fn talk(user: &str, password: &str) -> End {
    talk_with(client(user, password), server(&Arc::default()), |_, _, _| {})
}

fn denied(step: &Step) -> (u16, &str) {
    match step {
        Step::DeniedBy(denied) => (denied.code, &denied.message),
        step => panic!("{step:?}"),
    }
}

#[test]
fn accounts_come_in_with_their_passwords() {
    for (user, password) in [("ann", "new password"), ("ann", "old password"), ("bob", "secret")] {
        let (step, granted) = talk(user, password);
        assert!(matches!(step, Step::Done { .. }), "{step:?}");
        let granted = granted.expect("of an account");
        assert_eq!(granted.downcast_ref::<String>().map(String::as_str), Some(user));
    }
    for (user, password) in [("ann", "secret"), ("bob", "new password"), ("carl", "secret")] {
        let (step, granted) = talk(user, password);
        assert_eq!(denied(&step).0, 1045);
        assert!(granted.is_none());
    }
    assert_eq!(denied(&talk("eve", "secret").0), (1129, "later"));
}

#[test]
fn nothing_of_the_password_is_in_the_clear() {
    for (user, password) in [("ann", "new password"), ("bob", "secret")] {
        let verifier = Account::new(user, password).unwrap().verifier(&Salt::CachingSha2(SALT));
        let once = native(password.as_bytes());
        let (step, _) = talk_with(client(user, password), server(&Arc::default()), |_, _, payload| {
            for secret in [password.as_bytes(), &verifier, &once] {
                assert!(!payload.windows(secret.len()).any(|part| part == secret));
            }
        });
        assert!(matches!(step, Step::Done { .. }));
    }
}

/// Whoever stands between changes a key to read the password, or a proof.
#[test]
fn nobody_in_between_gets_the_password() {
    for (from_client, kind, at) in [
        (true, Kind::Login, 0),
        (false, Kind::Salts, 0),
        (true, Kind::Claim, 1),
        (false, Kind::Known, 1),
        (true, Kind::Password, 1),
        (true, Kind::Hello, 30),
        (false, Kind::Challenge, 30),
    ] {
        let book = Arc::new(Book::default());
        let mut sealed = false;
        let (step, granted) = talk_with(client("bob", "secret"), server(&book), |by_client, passing, payload| {
            sealed |= passing == Kind::Password;
            if (by_client, passing) == (from_client, kind) {
                payload[at] ^= 1;
            }
        });
        assert!(!matches!(step, Step::Done { .. }) && granted.is_none(), "{kind:?}: {step:?}");
        assert_eq!(sealed, kind == Kind::Password, "{kind:?}: the password was sent");
    }
}

/// A server that does not know what is stored of the password.
#[test]
fn a_server_that_does_not_know_the_account_gets_no_password() {
    let mut client = client("ann", "new password");
    client.hello();
    let mut real = server(&Arc::default());
    let mut other = self::client("ann", "another password");
    for (kind, payload) in frames(&other.hello()) {
        if let Step::Send(bytes) = real.on_frame(kind, &payload, || Room::Free) {
            for (kind, payload) in frames(&bytes) {
                client.on_frame(kind, &payload);
            }
        }
    }
    let made_up = Known { which: 0, proof: [1; 32] };
    let mut payload = Vec::new();
    made_up.encode(&mut payload);
    assert!(matches!(client.on_frame(Kind::Known, &payload), Step::Untrusted));
}

/// Out of a dump: it proves what is stored, and has no password to send.
#[test]
fn a_stored_hash_is_no_password() {
    let mut thief = client("ann", "a guess");
    let mut server = server(&Arc::default());
    let mut at_server = frames(&thief.hello());
    let mut answer = Vec::new();
    for (kind, payload) in at_server.drain(..) {
        if let Step::Send(bytes) = server.on_frame(kind, &payload, || Room::Free) {
            answer.extend(frames(&bytes));
        }
    }
    let stolen = vec![sha2("new password").verifier, sha2("old password").verifier];
    for (kind, payload) in answer {
        if kind == Kind::Salts {
            let salts = Salts::decode(&payload).unwrap();
            thief.transcript.add(Kind::Salts, &payload);
            let login = thief.login.as_mut().unwrap();
            (login.key, login.verifiers) = (salts.key, stolen.clone());
        } else {
            thief.on_frame(kind, &payload);
        }
    }
    let claim = Claim { proofs: stolen.iter().map(|stolen| thief.transcript.prove(stolen, BY_CLIENT)).collect() };
    let claim = thief.transcript.say(Kind::Claim, |out| claim.encode(out));
    let Step::Send(known) = server.on_frame(Kind::Claim, &frames(&claim)[0].1, || Room::Free) else { panic!() };
    let Step::Send(password) = thief.on_frame(Kind::Known, &frames(&known)[0].1) else { panic!() };
    let step = server.on_frame(Kind::Password, &frames(&password)[0].1, || Room::Free);
    assert!(matches!(step, Step::Deny(..)), "{step:?}");
}

#[test]
fn what_comes_out_of_turn_is_refused() {
    let mut payload = Vec::new();
    Login { user: "ann".into(), key: [1; 32] }.encode(&mut payload);
    let mut twice = server(&Arc::default());
    assert!(matches!(twice.on_frame(Kind::Login, &payload, || Room::Free), Step::Wait));
    assert!(matches!(twice.on_frame(Kind::Login, &payload, || Room::Free), Step::Refuse(..)));
    for kind in [Kind::Claim, Kind::Password, Kind::Known, Kind::Salts, Kind::Denied] {
        let mut server = server(&Arc::default());
        let step = server.on_frame(kind, &payload, || Room::Free);
        assert!(matches!(step, Step::Refuse(..)), "{kind:?}: {step:?}");
    }
    // A port that knows no accounts.
    let mut without = ServerHandshake::new(side(Role::Node, Some("0123456789abcdef")), 9, 100);
    assert!(
        matches!(without.on_frame(Kind::Login, &payload, || Room::Free), Step::Refuse(_, refused) if refused.reason == Refusal::Credentials)
    );
}

//! The handshake's steps for an account; [`crate::login`] says what each is for.

use super::{BY_CLIENT, BY_SERVER, ClientHandshake, ServerHandshake, Step, message};
use crate::login::{Account, Denied, Keys, Stored};
use rauk_wire::Kind;
use rauk_wire::hello::{Hello, Refusal};
use rauk_wire::login::{Claim, KEY, Known, Login, Password, Salts};

/// Of the side that accepts.
pub(super) struct ServerLogin {
    /// The client's public key.
    key: [u8; KEY],
    keys: Option<Keys>,
    stored: Vec<Stored>,
    /// The proof for this was right.
    known: Option<Stored>,
}

/// Of the side that connects.
pub(super) struct ClientLogin {
    account: Account,
    keys: Option<Keys>,
    /// The server's public key.
    key: [u8; KEY],
    verifiers: Vec<Vec<u8>>,
}

impl ClientLogin {
    pub fn new(account: Account) -> ClientLogin {
        ClientLogin { account, keys: None, key: [0; KEY], verifiers: Vec::new() }
    }
}

fn deny(denied: Denied) -> Step {
    Step::Deny(message(Kind::Denied, |out| denied.encode(out)), denied.message)
}

impl ServerHandshake {
    fn misplaced(&self, kind: Kind) -> Step {
        self.refuse(Refusal::Malformed, format!("{kind:?} does not belong here in the handshake"))
    }

    pub(super) fn on_login(&mut self, payload: &[u8]) -> Step {
        let login = match Login::decode(payload) {
            Ok(login) => login,
            Err(e) => return self.refuse(Refusal::Malformed, e.to_string()),
        };
        if self.login.is_some() {
            return self.misplaced(Kind::Login);
        }
        let Some(stranger) = self.stranger.as_mut().filter(|_| self.accounts.is_some()) else {
            return self.refuse(Refusal::Credentials, "this port lets in no accounts".into());
        };
        stranger.user = login.user;
        self.transcript.add(Kind::Login, payload);
        self.login = Some(ServerLogin { key: login.key, keys: None, stored: Vec::new(), known: None });
        Step::Wait
    }

    /// Behind the challenge, for who has logged in.
    pub(super) fn salts(&mut self, frames: &mut Vec<u8>) -> Result<(), Step> {
        let (Some(login), Some(accounts), Some(stranger)) = (&mut self.login, &self.accounts, &self.stranger) else {
            return Ok(());
        };
        let keys = Keys::new();
        login.stored = accounts.stored(stranger).map_err(deny)?;
        let salts = Salts { key: keys.public, salts: login.stored.iter().map(|stored| stored.salt).collect() };
        login.keys = Some(keys);
        frames.extend_from_slice(&self.transcript.say(Kind::Salts, |out| salts.encode(out)));
        Ok(())
    }

    pub(super) fn on_claim(&mut self, payload: &[u8], hello: (Hello, u16)) -> Step {
        let claim = match Claim::decode(payload) {
            Ok(claim) => claim,
            Err(e) => return self.refuse(Refusal::Malformed, e.to_string()),
        };
        let (Some(login), Some(accounts), Some(stranger)) = (&mut self.login, &self.accounts, &self.stranger) else {
            return self.misplaced(Kind::Claim);
        };
        if login.known.is_some() || claim.proofs.len() != login.stored.len() {
            return self.misplaced(Kind::Claim);
        }
        let mut pairs = login.stored.iter().zip(&claim.proofs);
        let found = pairs.position(|(stored, proof)| self.transcript.verify(&stored.verifier, BY_CLIENT, proof));
        let Some(which) = found else { return deny(accounts.wrong(stranger)) };
        let stored = login.stored.swap_remove(which);
        self.transcript.add(Kind::Claim, payload);
        let known = Known { which: which as u8, proof: self.transcript.prove(&stored.verifier, BY_SERVER) };
        login.known = Some(stored);
        self.hello = Some(hello);
        Step::Send(self.transcript.say(Kind::Known, |out| known.encode(out)))
    }

    pub(super) fn on_password(&mut self, payload: &[u8], hello: Hello, version: u16) -> Step {
        let password = match Password::decode(payload) {
            Ok(password) => password,
            Err(e) => return self.refuse(Refusal::Malformed, e.to_string()),
        };
        let (Some(login), Some(accounts), Some(stranger)) = (&mut self.login, &self.accounts, &self.stranger) else {
            return self.misplaced(Kind::Password);
        };
        let (Some(stored), Some(keys)) = (login.known.take(), login.keys.take()) else {
            return self.misplaced(Kind::Password);
        };
        let Some(password) = keys.open(&login.key, &self.transcript.said, &password.sealed) else {
            return deny(accounts.wrong(stranger));
        };
        match accounts.grant(stranger, &stored, &password) {
            Ok(granted) => self.welcome(None, hello, version, Some(granted)),
            Err(denied) => deny(denied),
        }
    }
}

impl ClientHandshake {
    /// What goes before the hello.
    pub(super) fn log_in(&mut self) -> Vec<u8> {
        let Some(login) = &mut self.login else { return Vec::new() };
        let key = login.keys.insert(Keys::new()).public;
        let said = Login { user: login.account.user.clone(), key };
        self.transcript.say(Kind::Login, |out| said.encode(out))
    }

    pub(super) fn on_salts(&mut self, payload: &[u8]) -> Step {
        let salts = match Salts::decode(payload) {
            Ok(salts) => salts,
            Err(e) => return Step::Violation(e.to_string()),
        };
        let Some(login) = self.login.as_mut().filter(|login| login.verifiers.is_empty()) else {
            return Step::Violation("salts that were not asked for".into());
        };
        login.key = salts.key;
        login.verifiers = salts.salts.iter().map(|salt| login.account.verifier(salt)).collect();
        self.transcript.add(Kind::Salts, payload);
        let proofs = login.verifiers.iter().map(|verifier| self.transcript.prove(verifier, BY_CLIENT)).collect();
        let claim = Claim { proofs };
        Step::Send(self.transcript.say(Kind::Claim, |out| claim.encode(out)))
    }

    pub(super) fn on_known(&mut self, payload: &[u8]) -> Step {
        let known = match Known::decode(payload) {
            Ok(known) => known,
            Err(e) => return Step::Violation(e.to_string()),
        };
        let Some(login) = &mut self.login else { return Step::Violation("a proof that was not asked for".into()) };
        let verifier = login.verifiers.get(usize::from(known.which));
        if !verifier.is_some_and(|verifier| self.transcript.verify(verifier, BY_SERVER, &known.proof)) {
            return Step::Untrusted;
        }
        self.transcript.add(Kind::Known, payload);
        let sealed =
            login.keys.take().and_then(|keys| keys.seal(&login.key, &self.transcript.said, login.account.password()));
        let Some(sealed) = sealed else { return Step::Violation("the server's key is none".into()) };
        let password = Password { sealed };
        self.proved = true;
        Step::Send(self.transcript.say(Kind::Password, |out| password.encode(out)))
    }
}

#[cfg(test)]
mod tests;

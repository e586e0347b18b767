//! The certificate of a member: where it is kept, who signs it, when it is renewed.
//!
//! # Who signs
//! The node that founds a cluster makes its certificate authority. Every node with the role manage has the authority's
//! key in its data directory (`cluster.authority`), so none of them is needed for ever: it gets the key with its first
//! certificate. The key is not in the control plane's state, since that is on every node, in its log and in its dumps.
//!
//! # How a node gets a certificate
//! It makes a key, and asks a node with the authority's key to sign it, on a link on which both sides prove the
//! cluster's secret. Its first certificate has no number, since it has none yet; with that it joins. Then it gets one
//! with its number, which is signed only if the control plane knows that number for that data directory. A node with
//! the authority's key signs its own. Certificates are renewed when a third of their time is left; one that has run out
//! while the node was down is replaced in the same way at its start.
//!
//! # Directories of earlier builds
//! They have a secret and no authority. Each node with the role manage makes the same authority from the secret, so
//! that it does not matter which of them starts first. `member.json` notes the authority's fingerprint from then on: a
//! directory that has lost its files gets them from others and never makes another authority.

use super::directory::{MemberFile, write_durably};
use super::transport::Links;
use parking_lot::{Mutex, RwLock};
use rauk_manage::group::{Group, RoleKind};
use rauk_transporter::certificates::{KEY_BYTES, VALID};
use rauk_transporter::{Authority, Clock, Name, NodeCertificate, NodeKey, NodeTls, Secret, TransportError};
use rauk_types::{ErrorClass, NodeId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

pub const AUTHORITY_FILE: &str = "cluster.authority";
pub const CERTIFICATE_FILE: &str = "cluster.certificate";
const AGAIN: Duration = Duration::from_millis(200);
/// How often a process looks whether its certificate is to be renewed.
const LOOK: Duration = Duration::from_secs(3600);

#[derive(Serialize, Deserialize)]
struct Request {
    directory: u64,
    /// 0: it has none yet.
    node: u16,
    key: [u8; KEY_BYTES],
    /// It has the role manage.
    wants_authority: bool,
}

#[derive(Serialize, Deserialize)]
enum Answer {
    /// All in PEM.
    Signed {
        certificate: String,
        authority: String,
        authority_key: Option<String>,
    },
    /// These nodes have the authority's key.
    Elsewhere(Vec<String>),
    Refused(String),
}

pub struct Credentials {
    directory: PathBuf,
    number: u64,
    keeps_authority: bool,
    tls: Arc<NodeTls>,
    authority: RwLock<Option<Authority>>,
    /// Fingerprint of the cluster's authority, once it is known.
    known: Mutex<Option<String>>,
}

impl Credentials {
    /// What the directory has. `founds`: the cluster is being made here, and its id is in the file.
    pub fn open(
        directory: &Path,
        file: &MemberFile,
        roles: &BTreeSet<RoleKind>,
        secret: &Secret,
        founds: bool,
    ) -> Result<Arc<Credentials>, String> {
        let tls = NodeTls::new(Clock::system());
        let own = Credentials {
            directory: directory.into(),
            number: file.directory(),
            keeps_authority: roles.contains(&RoleKind::Manage),
            tls,
            authority: RwLock::new(None),
            known: Mutex::new(file.authority.clone()),
        };
        if file.node.is_none() && !founds {
            // What an attempt to join has left may be of another cluster.
            return Ok(Arc::new(own));
        }
        let path = directory.join(AUTHORITY_FILE);
        let authority = if let Some(text) = read(&path)? {
            Some(Authority::from_pem(file.cluster(), &text).map_err(|e| {
                format!("{} is damaged ({e}); remove it, the node gets it again from another one", path.display())
            })?)
        } else if founds {
            Some(own.keep(Authority::found(file.cluster()))?)
        } else if own.keeps_authority && file.authority.is_none() {
            tracing::info!("certificate authority made from the secret of a cluster that had none");
            Some(own.keep(Authority::from_secret(file.cluster(), secret))?)
        } else {
            None
        };
        if let Some(authority) = &authority {
            own.check(&authority.certificate_pem())?;
        }
        *own.authority.write() = authority;
        if let Some(text) = read(&directory.join(CERTIFICATE_FILE))?
            && let Err(error) = own.install_text(&text)
        {
            tracing::warn!(%error, "certificate cannot be used; the node gets a new one");
        }
        Ok(Arc::new(own))
    }

    pub fn tls(&self) -> &Arc<NodeTls> {
        &self.tls
    }

    /// Fingerprint of the authority, for `member.json`.
    pub fn authority(&self) -> Option<String> {
        self.known.lock().clone()
    }

    /// Makes an authority's key last.
    fn keep(&self, made: Result<Authority, TransportError>) -> Result<Authority, String> {
        let authority = made.map_err(|e| e.to_string())?;
        let text = authority.key_pem() + &authority.certificate_pem();
        self.write(AUTHORITY_FILE, &text)?;
        Ok(authority)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let shown = self.directory.join(name);
        write_durably(&self.directory, name, text.as_bytes())
            .map_err(|e| format!("cannot write {}: {e}", shown.display()))
    }

    /// Refuses an authority that is not the one that this directory knows.
    fn check(&self, authority: &str) -> Result<(), String> {
        let found = Authority::fingerprint(authority).ok_or("the authority's certificate cannot be read")?;
        let mut known = self.known.lock();
        match known.as_ref() {
            Some(known) if *known != found => Err(format!(
                "the certificate authority {found:.16} is not that of this directory's cluster ({known:.16}): put back {AUTHORITY_FILE} and {CERTIFICATE_FILE}, or correct --join"
            )),
            _ => {
                *known = Some(found);
                Ok(())
            }
        }
    }

    fn install_text(&self, text: &str) -> Result<(), String> {
        let [certificate, authority, key] = sections(text).try_into().map_err(|_| "it is not whole".to_string())?;
        self.check(&authority)?;
        self.tls.install(&NodeCertificate { certificate, key, authority }).map_err(|e| e.to_string())
    }

    /// From now on links show this one.
    fn install(&self, certificate: NodeCertificate) -> Result<(), String> {
        self.check(&certificate.authority)?;
        self.tls.install(&certificate).map_err(|e| e.to_string())?;
        let text = certificate.certificate + &certificate.authority + &certificate.key;
        self.write(CERTIFICATE_FILE, &text)
    }

    fn is_current(&self, node: u16) -> bool {
        self.is_usable(node) && self.tls.left() > VALID / 3
    }

    fn is_usable(&self, node: u16) -> bool {
        let name = self.tls.name();
        name.is_some_and(|name| name.node == node && name.directory == self.number) && !self.tls.left().is_zero()
    }

    /// Sees to it that there is a certificate for this number; with the authority's key at once, else by asking
    /// `sources` until the time is over. `Ok(true)`: there is a new one.
    pub fn ensure(&self, links: &Links, node: u16, sources: &[String], patience: Duration) -> Result<bool, Unsigned> {
        if self.is_current(node) {
            return Ok(false);
        }
        let key = NodeKey::new().map_err(|e| Unsigned::Refused(e.to_string()))?;
        if self.sign_own(node, &key).map_err(Unsigned::Refused)? {
            return Ok(true);
        }
        let request =
            Request { directory: self.number, node, key: key.public(), wants_authority: self.keeps_authority };
        let request = serde_json::to_vec(&request).expect("a request can be written");
        let began = Instant::now();
        let mut last = "no node is known that could".to_string();
        loop {
            let mut asked: Vec<String> = Vec::new();
            let mut next: Vec<String> = sources.to_vec();
            while let Some(source) = next.pop() {
                if asked.contains(&source) {
                    continue;
                }
                asked.push(source.clone());
                let answer = match links.enrol(&source, &self.tls, request.clone()) {
                    Ok(answer) => answer,
                    Err(TransportError::Oneself { .. }) => continue,
                    Err(error) if error.class() == ErrorClass::Permanent => {
                        return Err(Unsigned::By(source, error));
                    }
                    Err(error) => {
                        last = format!("{source}: {error}");
                        continue;
                    }
                };
                match serde_json::from_slice(&answer) {
                    Ok(Answer::Signed { certificate, authority, authority_key }) => {
                        let certificate = NodeCertificate { certificate, key: key.pem(), authority };
                        self.take(certificate, authority_key).map_err(Unsigned::Refused)?;
                        return Ok(true);
                    }
                    Ok(Answer::Elsewhere(others)) => next.extend(others),
                    // It may not have heard of this node yet.
                    Ok(Answer::Refused(why)) => last = format!("{source}: {why}"),
                    Err(_) => last = format!("{source}: its answer cannot be read"),
                }
            }
            if began.elapsed() >= patience {
                return Err(Unsigned::Unreachable(last));
            }
            std::thread::sleep(AGAIN);
        }
    }

    fn take(&self, certificate: NodeCertificate, authority_key: Option<String>) -> Result<(), String> {
        self.install(certificate)?;
        if let Some(key) = authority_key.filter(|_| self.keeps_authority) {
            let cluster = self.tls.name().map(|name| name.cluster).unwrap_or_default();
            let authority = self.keep(Authority::from_pem(cluster, &key))?;
            self.check(&authority.certificate_pem())?;
            *self.authority.write() = Some(authority);
        }
        Ok(())
    }

    fn sign_own(&self, node: u16, key: &NodeKey) -> Result<bool, String> {
        let authority = self.authority.read();
        let Some(authority) = authority.as_ref() else { return Ok(false) };
        let name = Name { cluster: authority.cluster(), node, directory: self.number };
        let certificate = authority.sign(&name, key.public(), self.tls.clock().now()).map_err(|e| e.to_string())?;
        self.install(NodeCertificate { certificate, key: key.pem(), authority: authority.certificate_pem() })?;
        Ok(true)
    }

    /// To a node that has proved the secret.
    pub fn answer(&self, request: &[u8], group: Option<&Group>) -> Vec<u8> {
        let answer = serde_json::from_slice(request).map(|request| self.decide(&request, group));
        let answer = answer.unwrap_or_else(|_| Answer::Refused("the request cannot be read".into()));
        serde_json::to_vec(&answer).expect("an answer can be written")
    }

    fn decide(&self, request: &Request, group: Option<&Group>) -> Answer {
        let authority = self.authority.read();
        let Some(authority) = authority.as_ref() else {
            return Answer::Elsewhere(group.map(sources).unwrap_or_default());
        };
        let Request { directory, node, .. } = *request;
        let known = group.and_then(|group| group.nodes.get(&NodeId(node)));
        if node != 0 && known.is_none_or(|known| known.directory != directory) {
            return Answer::Refused(format!("the control plane does not know that data directory as node {node}"));
        }
        let name = Name { cluster: authority.cluster(), node, directory };
        match authority.sign(&name, request.key, self.tls.clock().now()) {
            Ok(certificate) => {
                tracing::info!(node, directory = format!("{directory:016x}"), "certificate signed");
                let authority_key = request.wants_authority.then(|| authority.key_pem());
                Answer::Signed { certificate, authority: authority.certificate_pem(), authority_key }
            }
            Err(error) => Answer::Refused(error.to_string()),
        }
    }

    /// Renews the certificate when it is time, until the other end of the channel is dropped.
    pub fn renew(self: &Arc<Self>, links: &Arc<Links>, node: u16) -> Result<Sender<()>, String> {
        let (sender, stopped): (_, Receiver<()>) = channel();
        let (own, links) = (self.clone(), links.clone());
        let life = move || {
            while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                match own.ensure(&links, node, &links.sources(), Duration::ZERO) {
                    Ok(true) => tracing::info!(node, "certificate renewed"),
                    Ok(false) => {}
                    Err(error) => {
                        let days_left = own.tls.left().as_secs() / 86_400;
                        tracing::warn!(node, days_left, "certificate could not be renewed: {}", error.text());
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("rauk-certificate".into());
        thread.spawn(life).map_err(|e| format!("cannot start a thread: {e}"))?;
        Ok(sender)
    }
}

/// Why there is no certificate.
pub enum Unsigned {
    /// This node does not let us in.
    By(String, TransportError),
    Refused(String),
    /// Nobody has signed it in time.
    Unreachable(String),
}

impl Unsigned {
    pub fn text(&self) -> String {
        match self {
            Unsigned::By(source, error) => format!("{source}: {error}"),
            Unsigned::Refused(why) | Unsigned::Unreachable(why) => why.clone(),
        }
    }
}

/// Addresses of the nodes that have the authority's key.
pub fn sources(group: &Group) -> Vec<String> {
    let manage = group.nodes.values().filter(|node| node.has(RoleKind::Manage) && !node.address.is_empty());
    manage.map(|node| node.address.clone()).collect()
}

/// `None`: there is none.
fn read(path: &Path) -> Result<Option<String>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

/// Of a PEM file.
fn sections(text: &str) -> Vec<String> {
    let mut sections: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with("-----BEGIN") {
            sections.push(String::new());
        }
        if let Some(section) = sections.last_mut() {
            section.push_str(line);
            section.push('\n');
        }
    }
    sections
}

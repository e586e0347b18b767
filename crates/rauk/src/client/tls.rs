//! TLS to the server, beside the protocol library.
//!
//! The library's own TLS trusts all public authorities beside the one that is given, and brings several crates and a
//! second C library. So a relay speaks TLS instead: the library connects to a Unix socket that only this user can open,
//! where a thread accepts this one connection and carries its bytes to the server.
//!
//! In MySQL's protocol TLS begins in the middle. The server greets in plain text; the client answers with the first 32
//! bytes of its login and the flag for TLS; the handshake of TLS follows; then the whole login. The relay puts that
//! request in between. Therefore packets are numbered differently on both sides, by one, until the login is over; the
//! relay renumbers them. From then on it copies bytes. The library takes a Unix socket as secure, which it is: a
//! password in clear text leaves this process only inside TLS, and only when the server's certificate has been
//! accepted.
//!
//! | `--ssl-mode` | encrypted | certificate |
//! |---|---|---|
//! | DISABLED | no | |
//! | PREFERRED (default) | if the server has TLS and the two agree on it | not looked at |
//! | REQUIRED | yes | not looked at |
//! | VERIFY_CA (default with `--ssl-ca`) | yes | signed by an authority in `--ssl-ca` |
//! | VERIFY_IDENTITY | yes | so, and for the name or address that was given as host |

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    Disabled,
    Preferred,
    Required,
    VerifyAuthority,
    VerifyIdentity,
}

/// As MySQL's programs name them.
pub const MODES: &[(&str, TlsMode)] = &[
    ("DISABLED", TlsMode::Disabled),
    ("PREFERRED", TlsMode::Preferred),
    ("REQUIRED", TlsMode::Required),
    ("VERIFY_CA", TlsMode::VerifyAuthority),
    ("VERIFY_IDENTITY", TlsMode::VerifyIdentity),
];

#[derive(Clone, Debug)]
pub struct TlsOptions {
    pub mode: TlsMode,
    pub authority: Option<PathBuf>,
    /// The client's own certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl Default for TlsOptions {
    fn default() -> Self {
        TlsOptions { mode: TlsMode::Preferred, authority: None, identity: None }
    }
}

impl TlsOptions {
    /// Whether to use TLS with a server that has it or not.
    pub fn wants(&self, offered: bool) -> Result<bool, String> {
        match self.mode {
            TlsMode::Disabled => Ok(false),
            TlsMode::Preferred => Ok(offered),
            _ if offered => Ok(true),
            _ => Err("the server has no TLS, which --ssl-mode asks for".into()),
        }
    }

    fn config(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?;
        let authorities = match (self.mode, &self.authority) {
            (TlsMode::VerifyAuthority | TlsMode::VerifyIdentity, Some(file)) => Some(roots(file)?),
            (TlsMode::VerifyAuthority | TlsMode::VerifyIdentity, None) => {
                return Err("--ssl-mode VERIFY_CA and VERIFY_IDENTITY need --ssl-ca FILE".into());
            }
            _ => None,
        };
        let trust = match authorities {
            None => None,
            Some(roots) => {
                let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
                Some(verifier.map_err(|e| format!("--ssl-ca: {e}"))?)
            }
        };
        let any_name = self.mode != TlsMode::VerifyIdentity;
        let builder =
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Verifier { trust, any_name, provider }));
        match &self.identity {
            None => Ok(builder.with_no_client_auth()),
            Some((certificate, key)) => {
                let chain = certificates("--ssl-cert", certificate)?;
                let key = PrivateKeyDer::from_pem_file(key)
                    .map_err(|e| format!("--ssl-key: cannot read {}: {e}", key.display()))?;
                builder.with_client_auth_cert(chain, key).map_err(|e| format!("--ssl-cert and --ssl-key: {e}"))
            }
        }
    }
}

fn certificates(flag: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let found = found.map_err(|e| format!("{flag}: cannot read {}: {e}", file.display()))?;
    match found.is_empty() {
        true => Err(format!("{flag}: there is no certificate in {}", file.display())),
        false => Ok(found),
    }
}

fn roots(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("--ssl-ca", file)? {
        roots.add(certificate).map_err(|e| format!("--ssl-ca: {}: {e}", file.display()))?;
    }
    Ok(roots)
}

/// Accepts the server's certificate as the mode says.
#[derive(Debug)]
struct Verifier {
    /// `None`: any certificate.
    trust: Option<Arc<WebPkiServerVerifier>>,
    /// The certificate may be for another name.
    any_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(trust) = &self.trust else { return Ok(ServerCertVerified::assertion()) };
        match trust.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.any_name => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The flag for TLS among the capabilities, of which the greeting has the lower half behind version, id and nonce.
const TLS_FLAG: u32 = 1 << 11;
const HEADER: usize = 4;
/// Of a login, what a request for TLS repeats: capabilities, longest packet, character set, filler.
const REQUEST: usize = 32;
/// Packets of a login are short; a greeting or answer beyond this is no server of MySQL's protocol.
const LONGEST_LOGIN: usize = 128 * 1024;

/// Where the capabilities stand in a greeting with its header; `None`: the version has no end yet.
fn capabilities_at(greeting: &[u8]) -> Option<usize> {
    // Protocol, version with a zero, connection id, eight bytes of nonce, a filler.
    let version = greeting.get(HEADER + 1..)?.iter().position(|b| *b == 0)?;
    Some(HEADER + 1 + version + 1 + 4 + 8 + 1)
}

/// Whether the server that greets so has TLS.
pub fn is_offered(greeting: &[u8]) -> bool {
    let flags = capabilities_at(greeting).and_then(|at| greeting.get(at..at + 2));
    // An error takes the place of a greeting, with 255 in place of the protocol.
    greeting.get(HEADER) == Some(&10)
        && flags.is_some_and(|two| u32::from(u16::from_le_bytes([two[0], two[1]])) & TLS_FLAG != 0)
}

/// How many bytes of a greeting [`is_offered`] needs, as far as these say. An error in place of a greeting is whole.
pub fn shortest_greeting(seen: &[u8]) -> usize {
    if seen.get(HEADER).is_some_and(|protocol| *protocol != 10) {
        return seen.len();
    }
    capabilities_at(seen).map_or(seen.len() + 1, |at| at + 2)
}

/// A Unix socket in a directory that only this user can enter; both are removed with this.
pub struct Place {
    listener: Option<UnixListener>,
    path: PathBuf,
    directory: PathBuf,
}

impl Place {
    /// In the first directory that takes it: a container may have read-only file systems, and the path of a socket may
    /// not be long.
    pub fn make() -> Result<Place, String> {
        let mut failed = None;
        for parent in [std::env::temp_dir(), "/tmp".into(), "/dev/shm".into()] {
            let name = format!("rauk-tls-{}-{:016x}", std::process::id(), super::unlikely_number());
            let directory = parent.join(name);
            match std::fs::DirBuilder::new().mode(0o700).create(&directory) {
                Ok(()) => {}
                Err(error) => {
                    failed.get_or_insert((parent, error));
                    continue;
                }
            }
            let path = directory.join("s");
            match UnixListener::bind(&path) {
                Ok(listener) => return Ok(Place { listener: Some(listener), path, directory }),
                Err(error) => {
                    let _ = std::fs::remove_dir(&directory);
                    failed.get_or_insert((parent, error));
                }
            }
        }
        let (parent, error) = failed.expect("nothing else ends the loop");
        Err(format!("cannot make a socket for TLS in {}: {error}; TMPDIR may name another directory", parent.display()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_dir(&self.directory);
    }
}

/// A connection of the protocol library that is carried over TLS.
pub struct Relay {
    place: Place,
    server: TcpStream,
    outcome: Arc<Mutex<Option<Result<String, String>>>>,
}

impl Relay {
    /// Takes a stream on which the server has greeted and nothing has been read.
    pub fn begin(mut place: Place, stream: TcpStream, host: &str, options: &TlsOptions) -> Result<Relay, String> {
        let config = Arc::new(options.config()?);
        let name = ServerName::try_from(host.to_string());
        let name = match name {
            // Where the name is not checked, any will do.
            Err(_) if options.mode != TlsMode::VerifyIdentity => ServerName::try_from("localhost".to_string()),
            name => name,
        };
        let name = name.map_err(|_| format!("'{host}' is no name that a certificate could have"))?;
        let tls = ClientConnection::new(config, name).map_err(|e| e.to_string())?;
        let Some(listener) = place.listener.take() else { return Err("the socket for TLS is in use".into()) };
        let outcome = Arc::new(Mutex::new(None));
        let said = outcome.clone();
        let server = stream.try_clone().map_err(|e| format!("cannot watch the connection: {e}"))?;
        let relay = Relay { place, server, outcome };
        let thread = std::thread::Builder::new().name("tls".into()).spawn(move || {
            let (client, _) = listener.accept()?;
            drop(listener);
            let mut link = Link { client, server: stream, tls, carry: vec![0; CARRY] };
            let login = link.login(&mut |outcome| *said.lock().expect("nobody panics with it") = Some(outcome));
            if let Err(error) = &login {
                // The first reason counts: what the library says to a closed socket comes later.
                said.lock().expect("nobody panics with it").get_or_insert(Err(error.to_string()));
            }
            let carried = login.and_then(|()| link.carry());
            link.close();
            carried
        });
        thread.map_err(|e| format!("cannot start a thread for TLS: {e}"))?;
        Ok(relay)
    }

    /// Where the protocol library connects.
    pub fn path(&self) -> String {
        self.place.path.display().to_string()
    }

    /// Protocol and cipher with the connection to the server, or why there is no TLS. To be asked when the library has an
    /// answer.
    pub fn outcome(self) -> Result<(String, TcpStream), String> {
        let outcome = self.outcome.lock().expect("nobody panics with it").clone();
        let cipher = outcome.unwrap_or_else(|| Err("the server closed the connection before TLS began".into()))?;
        Ok((cipher, self.server))
    }
}

/// Most bytes that are under way in one direction.
const CARRY: usize = 64 * 1024;

struct Link {
    client: UnixStream,
    server: TcpStream,
    tls: ClientConnection,
    carry: Vec<u8>,
}

impl Link {
    /// The login: a request for TLS is put in, and packets are renumbered. Tells the cipher when there is one.
    fn login(&mut self, told: &mut dyn FnMut(Result<String, String>)) -> io::Result<()> {
        self.server.set_nodelay(true)?;
        let mut greeting = read_packet(&mut self.server)?;
        if let Some(at) = capabilities_at(&greeting).filter(|at| at + 1 < greeting.len()) {
            // The library is not to ask for TLS itself.
            greeting[at + 1] &= !((TLS_FLAG >> 8) as u8);
        }
        self.client.write_all(&greeting)?;
        let mut login = read_packet(&mut self.client)?;
        if login.len() < HEADER + REQUEST {
            return Err(io::Error::new(ErrorKind::InvalidData, "the login is too short"));
        }
        login[HEADER + 1] |= (TLS_FLAG >> 8) as u8;
        let mut request = vec![REQUEST as u8, 0, 0, login[3]];
        request.extend_from_slice(&login[HEADER..HEADER + REQUEST]);
        self.server.write_all(&request)?;
        while self.tls.is_handshaking() {
            self.tls.complete_io(&mut self.server)?;
        }
        let protocol = self.tls.protocol_version().map_or("TLS", |v| match v {
            rustls::ProtocolVersion::TLSv1_3 => "TLSv1.3",
            rustls::ProtocolVersion::TLSv1_2 => "TLSv1.2",
            _ => "TLS",
        });
        let cipher = self.tls.negotiated_cipher_suite().and_then(|s| s.suite().as_str()).unwrap_or("?");
        told(Ok(format!("{protocol}, {cipher}")));
        self.pass_on(login)?;
        loop {
            let mut tls = rustls::Stream::new(&mut self.tls, &mut self.server);
            let mut answer = read_packet(&mut tls)?;
            answer[3] = answer[3].wrapping_sub(1);
            let (kind, more) = (answer.get(HEADER).copied(), answer.get(HEADER + 1).copied());
            self.client.write_all(&answer)?;
            match (kind, more) {
                (Some(0 | 0xFF), _) => return Ok(()),
                // The password was known: an OK follows without a word of the client.
                (Some(1), Some(3)) => {}
                _ => {
                    let packet = read_packet(&mut self.client)?;
                    self.pass_on(packet)?;
                }
            }
        }
    }

    /// A packet of the client's, whose number is one higher for the server.
    fn pass_on(&mut self, mut packet: Vec<u8>) -> io::Result<()> {
        packet[3] = packet[3].wrapping_add(1);
        let mut tls = rustls::Stream::new(&mut self.tls, &mut self.server);
        tls.write_all(&packet)?;
        tls.flush()
    }

    /// Copies bytes until one side has ended.
    fn carry(&mut self) -> io::Result<()> {
        loop {
            loop {
                match self.tls.reader().read(&mut self.carry) {
                    Ok(0) => return Ok(()),
                    Ok(n) => self.client.write_all(&self.carry[..n])?,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
            let (from_client, from_server) = {
                let mut watched = [
                    PollFd::new(self.client.as_fd(), PollFlags::POLLIN),
                    PollFd::new(self.server.as_fd(), PollFlags::POLLIN),
                ];
                match poll(&mut watched, PollTimeout::NONE) {
                    Ok(_) => {}
                    Err(nix::errno::Errno::EINTR) => continue,
                    Err(error) => return Err(error.into()),
                }
                let ready = |at: usize| watched[at].any().unwrap_or(true);
                (ready(0), ready(1))
            };
            if from_client {
                match self.client.read(&mut self.carry)? {
                    0 => return Ok(()),
                    n => self.tls.writer().write_all(&self.carry[..n])?,
                }
            }
            if from_server {
                if self.tls.read_tls(&mut self.server)? == 0 {
                    return Ok(());
                }
                self.tls.process_new_packets().map_err(|e| io::Error::new(ErrorKind::InvalidData, e))?;
            }
            while self.tls.wants_write() {
                self.tls.write_tls(&mut self.server)?;
            }
        }
    }

    fn close(&mut self) {
        self.tls.send_close_notify();
        while self.tls.wants_write() && self.tls.write_tls(&mut self.server).is_ok_and(|n| n > 0) {}
        let _ = self.server.shutdown(std::net::Shutdown::Both);
        let _ = self.client.shutdown(std::net::Shutdown::Both);
    }
}

/// A packet with its header.
fn read_packet(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut packet = vec![0; HEADER];
    from.read_exact(&mut packet)?;
    let length = u32::from_le_bytes([packet[0], packet[1], packet[2], 0]) as usize;
    if length > LONGEST_LOGIN {
        return Err(io::Error::new(ErrorKind::InvalidData, "it does not speak MySQL's protocol"));
    }
    packet.resize(HEADER + length, 0);
    from.read_exact(&mut packet[HEADER..])?;
    Ok(packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(version: &str, flags: u16) -> Vec<u8> {
        let mut text = vec![0, 0, 0, 0, 10];
        text.extend_from_slice(version.as_bytes());
        text.extend_from_slice(&[0; 14]);
        text.extend_from_slice(&flags.to_le_bytes());
        text
    }

    #[test]
    fn a_greeting_says_whether_there_is_tls() {
        let with = greeting("8.4.0-rauk", 0xFFFF);
        assert!(is_offered(&with) && !is_offered(&greeting("8.4.0", 0xF7FF)));
        for end in 0..with.len() {
            assert!(!is_offered(&with[..end]));
            assert!(shortest_greeting(&with[..end]) > end);
        }
        assert!(!is_offered(b"\x10\0\0\0\xFF\x10\x04Too many\0 connections and more text behind it"));
    }

    #[test]
    fn modes_that_cannot_be_kept_are_refused() {
        let options = |mode| TlsOptions { mode, ..TlsOptions::default() };
        assert_eq!(options(TlsMode::Preferred).wants(false), Ok(false));
        assert!(options(TlsMode::Required).wants(false).unwrap_err().contains("has no TLS"));
        assert!(options(TlsMode::VerifyIdentity).config().unwrap_err().contains("--ssl-ca"));
        let missing = TlsOptions { authority: Some("/not/there.pem".into()), ..options(TlsMode::VerifyAuthority) };
        assert!(missing.config().unwrap_err().contains("/not/there.pem"));
        let none = TlsOptions { authority: Some("/dev/null".into()), ..options(TlsMode::VerifyAuthority) };
        assert!(none.config().unwrap_err().contains("no certificate"));
    }
}

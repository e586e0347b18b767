//! Who gets in, how, and what the others are told.

use crate::support::client::{self, Client, Failure};
use crate::support::{Running, backend::Scripted, limits, run, run_default};
use rauk_mysql::{Listener, Server, ServerOptions, TlsOptions, workers};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SHA2: &str = "caching_sha2_password";
const NATIVE: &str = "mysql_native_password";

fn login(port: u16, user: &str, password: &str, plugin: &str) -> Result<Client, Failure> {
    let mut client = Client::connect(port)?;
    client.login(user, password, client::DEPRECATE_EOF, plugin)?;
    Ok(client)
}

#[test]
fn both_plugins_whatever_the_client_begins_with() {
    let running = run_default();
    for user in ["native", "sha2"] {
        for plugin in [NATIVE, SHA2, "something_else"] {
            for round in 0..2 {
                let mut client = login(running.port, user, "secret", plugin)
                    .unwrap_or_else(|e| panic!("{user} with {plugin}, round {round}: {e:?}"));
                assert_eq!(client.query("WHOAMI").unwrap().text()[0][0].as_deref(), Some(user));
            }
        }
    }
}

#[test]
fn the_second_login_needs_no_key() {
    let running = run_default();
    login(running.port, "sha2", "secret", SHA2).unwrap();
    let mut client = Client::connect(running.port).unwrap();
    client.capabilities = client::PROTOCOL_41;
    let nonce = client.nonce;
    let mut p = (1u32 | 0x200 | 0x8000 | 1 << 19).to_le_bytes().to_vec();
    p.extend_from_slice(&[0; 28]);
    p.extend_from_slice(b"sha2\0\x20");
    p.extend_from_slice(
        &mysql_common::auth::plugins::caching_sha2_password::scramble_sha256(&nonce, b"secret").unwrap(),
    );
    p.extend_from_slice(b"caching_sha2_password\0");
    client.send(&p);
    assert_eq!(client.read(), [1, 3], "fast authentication");
    assert_eq!(client.read()[0], 0);
}

#[test]
fn refusals_say_what_mysql_says() {
    let running = run_default();
    let denied = |user: &str, password: &str, plugin: &str| match login(running.port, user, password, plugin) {
        Ok(_) => panic!("{user} came in"),
        Err(failure) => (failure.code, failure.state, failure.message),
    };
    let message = |user: &str, using: &str| {
        (1045, "28000".to_owned(), format!("Access denied for user '{user}'@'localhost' (using password: {using})"))
    };
    assert_eq!(denied("native", "wrong", NATIVE), message("native", "YES"));
    assert_eq!(denied("sha2", "wrong", SHA2), message("sha2", "YES"));
    assert_eq!(denied("native", "", NATIVE), message("native", "NO"));
    assert_eq!(denied("sha2", "", SHA2), message("sha2", "NO"));
    assert_eq!(denied("nobody", "secret", SHA2), message("nobody", "YES"));
    assert_eq!(denied("nobody", "", SHA2), message("nobody", "NO"));
    // An account without a password takes none.
    assert_eq!(denied("root", "secret", SHA2), message("root", "YES"));
    let (code, _, text) = denied("locked", "secret", SHA2);
    assert_eq!((code, text.as_str()), (3118, "Access denied for user 'locked'@'localhost'. Account is locked."));
}

/// A connection to the running server as if it came from `peer`.
fn from_afar(peer: &str, running: &Running) -> TcpStream {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    running.workers.as_ref().unwrap().serve(accepted, peer.parse().unwrap()).unwrap();
    stream
}

#[test]
fn no_password_only_from_here() {
    let running = run_default();
    let mut client = Client::greeted(Box::new(from_afar("10.1.2.3", &running))).unwrap();
    let failure = client.login("root", "", 0, SHA2).unwrap_err();
    assert_eq!(failure.message, "Access denied for user 'root'@'10.1.2.3' (using password: NO)");
    let mut client = Client::greeted(Box::new(from_afar("10.1.2.3", &running))).unwrap();
    client.login("native", "secret", 0, NATIVE).unwrap();
    let mut client = Client::greeted(Box::new(from_afar("::1", &running))).unwrap();
    client.login("root", "", 0, SHA2).unwrap();
}

/// libmariadb begins with this name while another thread loads the right plugin, and then answers a switch whatever it was told.
#[test]
fn an_unknown_plugin_is_asked_again_also_without_a_password() {
    let running = run_default();
    let mut client = Client::connect(running.port).unwrap();
    let mut p = (1u32 | 0x200 | 0x8000 | 1 << 19).to_le_bytes().to_vec();
    p.extend_from_slice(&[0; 28]);
    p.extend_from_slice(b"root\0\0dummy_fallback_auth\0");
    client.send(&p);
    assert_eq!(client.read()[0], 0xFE);
    client.send(&[]);
    assert_eq!(client.read()[0], 0);
}

#[test]
fn guessing_is_slowed() {
    let running = run_default();
    let guess = |peer: &str| {
        let began = Instant::now();
        let mut client = Client::greeted(Box::new(from_afar(peer, &running))).unwrap();
        assert_eq!(client.login("native", "guess", 0, NATIVE).unwrap_err().code, 1045);
        began.elapsed()
    };
    for _ in 0..5 {
        guess("10.0.0.9");
    }
    assert!(guess("10.0.0.9") >= Duration::from_millis(100));
    assert!(guess("10.0.0.9") >= Duration::from_millis(200));
    // Others, and those who know the password, wait for nothing.
    assert!(guess("10.0.0.10") < Duration::from_millis(100));
    let began = Instant::now();
    let mut client = Client::greeted(Box::new(from_afar("10.0.0.9", &running))).unwrap();
    client.login("native", "secret", 0, NATIVE).unwrap();
    assert!(began.elapsed() < Duration::from_millis(100));
}

/// Connections that guess the password of one account at the same time take turns; other accounts and addresses do not
/// wait for them, and who knows the password gets in.
#[test]
fn guessing_with_many_connections_is_slowed() {
    let running = run_default();
    let login = |peer: &str, password: &str| {
        let mut client = Client::greeted(Box::new(from_afar(peer, &running))).unwrap();
        client.login("native", password, 0, NATIVE).map_err(|e| e.code)
    };
    let refused = std::thread::scope(|scope| {
        let guesses: Vec<_> = (0..30).map(|_| scope.spawn(|| login("10.0.0.9", "guess").unwrap_err())).collect();
        // Meanwhile.
        login("10.0.0.10", "secret").unwrap();
        guesses.into_iter().map(|guess| guess.join().unwrap()).filter(|code| *code == 1129).count()
    });
    assert!((5..30).contains(&refused), "{refused} of 30 were refused unseen");
    login("127.0.0.1", "secret").unwrap();
    login("10.0.0.10", "secret").unwrap();
}

#[test]
fn a_client_that_says_nothing_is_dropped() {
    let running =
        run(Scripted { connect_timeout: Duration::from_millis(100), ..Scripted::default() }, Default::default());
    let mut silent = Client::connect(running.port).unwrap();
    let mut half = Client::connect(running.port).unwrap();
    half.stream.write_all(&[200, 0, 0, 1, 5]).unwrap();
    assert!(silent.is_closed() && half.is_closed());
    crate::support::eventually(|| running.server.totals().aborted_connects == 2);
}

#[test]
fn too_many_connections() {
    let running = run(Scripted::default(), limits(|l| l.max_connections = 2));
    let mut first = running.client();
    let _second = running.client();
    let mut third = Client::connect(running.port).unwrap();
    let failure = third.login("root", "", 0, SHA2).unwrap_err();
    assert_eq!(
        (failure.code, failure.state.as_str(), failure.message.as_str()),
        (1040, "08004", "Too many connections")
    );
    first.command(&[1]);
    crate::support::eventually(|| running.server.totals().sessions == 1);
    running.client();
    // Those who have not said who they are are bounded as well, without taking anyone's place.
    let _waiting: Vec<Client> = (0..2).map(|_| Client::connect(running.port).unwrap()).collect();
    crate::support::eventually(|| Client::connect(running.port).err().is_some_and(|f| f.code == 1040));
}

#[test]
fn garbage_before_the_handshake() {
    let running = run_default();
    for garbage in
        [&b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..], &[0xFF; 64], &[3, 0, 0, 1, 1, 2, 3], &[0, 0, 0, 9]]
    {
        let mut client = Client::connect(running.port).unwrap();
        client.stream.write_all(garbage).unwrap();
        // Where the packet's own number was right, the answer has the next one.
        client.sequence = if garbage[3] == 1 { 2 } else { 1 };
        if let Ok(packet) = client.try_read() {
            assert_eq!(
                (client::failure(&packet).code, client::failure(&packet).message.as_str()),
                (1043, "Bad handshake")
            );
        }
        assert!(client.is_closed());
    }
    running.client().query("SELECT 1").unwrap();
}

/// A client's certificate and key.
type Shown = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn over_tls(port: u16, directory: &std::path::Path, shown: Option<Shown>) -> Client {
    let mut plain = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut greeting = [0; 4];
    std::io::Read::read_exact(&mut plain, &mut greeting).unwrap();
    let mut whole = greeting.to_vec();
    whole.resize(4 + greeting[0] as usize, 0);
    std::io::Read::read_exact(&mut plain, &mut whole[4..]).unwrap();
    let mut request = vec![32, 0, 0, 1];
    request.extend_from_slice(&(client::PROTOCOL_41 | client::SSL | 0x8000 | 1 << 19).to_le_bytes());
    request.extend_from_slice(&[0; 28]);
    std::io::Write::write_all(&mut plain, &request).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(directory.join("server-cert.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match shown {
        Some((chain, key)) => config.with_client_auth_cert(chain, key).unwrap(),
        None => config.with_no_client_auth(),
    };
    let name = ServerName::try_from("localhost").unwrap();
    let connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut nonce = [0; 20];
    let at = 4 + 1 + whole[5..].iter().position(|b| *b == 0).unwrap() + 1;
    nonce[..8].copy_from_slice(&whole[at + 4..at + 12]);
    nonce[8..].copy_from_slice(&whole[at + 31..at + 43]);
    let stream = Box::new(rustls::StreamOwned::new(connection, plain));
    Client { stream, sequence: 2, capabilities: 0, connection_id: 0, nonce }
}

#[test]
fn tls_with_the_certificate_that_was_made() {
    let directory = tempfile::tempdir().unwrap();
    let options =
        ServerOptions { tls: TlsOptions::Automatic { directory: directory.path().into() }, ..ServerOptions::default() };
    let running = run(Scripted { require_secure_transport: true, ..Scripted::default() }, options);
    let mut client = over_tls(running.port, directory.path(), None);
    client.login("native", "secret", client::SSL, NATIVE).unwrap();
    assert_eq!(client.query("WHOAMI").unwrap().text()[0][3].as_deref(), Some("TLS_AES_256_GCM_SHA384"));
    assert_eq!(client.query("ROWS 3000 100").unwrap().rows.len(), 3000);

    let failure = login(running.port, "native", "secret", NATIVE).err().unwrap();
    assert_eq!(failure.code, 3159);
}

/// Who an authority has signed is known by name; clients without a certificate come in as before, unless an account
/// asks for one.
#[test]
fn certificates_of_clients() {
    let directory = tempfile::tempdir().unwrap();
    let authority = |name: &str| {
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        (certificate.pem(), rcgen::Issuer::new(params, key))
    };
    let ((pem, good), (_, bad)) = (authority("our ca"), authority("other"));
    let signed = |issuer: &rcgen::Issuer<'_, rcgen::KeyPair>| -> Shown {
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CountryName, "SE");
        params.distinguished_name.push(rcgen::DnType::OrganizationName, "Ünion");
        params.distinguished_name.push(rcgen::DnType::CommonName, "app");
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, issuer).unwrap();
        (vec![certificate.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
    };
    let path = directory.path().join("ca.pem");
    std::fs::write(&path, pem).unwrap();
    let options = ServerOptions {
        tls: TlsOptions::Automatic { directory: directory.path().into() },
        client_ca: Some(path),
        ..ServerOptions::default()
    };
    let running = run(Scripted::default(), options);
    let port = running.port;
    let transport = |shown: Option<Shown>| {
        over_tls(port, directory.path(), shown).login("native", "secret", client::SSL, NATIVE).unwrap();
        running.backend.transport.lock().unwrap().clone()
    };
    let with = transport(Some(signed(&good)));
    assert_eq!(with.cipher.as_deref(), Some("TLS_AES_256_GCM_SHA384"));
    let names = with.certificate.unwrap();
    assert_eq!((names.subject.as_str(), names.issuer.as_str()), ("/C=SE/O=\\xC3\\x9Cnion/CN=app", "/CN=our ca"));
    assert_eq!(transport(None).certificate, None);
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        over_tls(port, directory.path(), Some(signed(&bad))).login("native", "secret", client::SSL, NATIVE)
    }));
    assert!(!matches!(refused, Ok(Ok(_))), "an unknown authority has signed it");
}

#[test]
fn a_second_password_is_as_good() {
    let mut backend = Scripted::default();
    for user in ["native", "sha2"] {
        let account = backend.accounts.get_mut(user).unwrap();
        account.second = match user {
            "native" => rauk_mysql::auth::native::hash(b"before"),
            _ => rauk_mysql::auth::sha2::hash(b"before"),
        };
    }
    let running = run(backend, ServerOptions::default());
    for (user, plugin) in [("native", NATIVE), ("sha2", SHA2)] {
        for round in 0..2 {
            for password in ["secret", "before"] {
                login(running.port, user, password, plugin)
                    .unwrap_or_else(|e| panic!("{user} {password} {round}: {e:?}"));
            }
            assert_eq!(login(running.port, user, "neither", plugin).err().unwrap().code, 1045);
        }
    }
}

#[cfg(unix)]
#[test]
fn a_unix_domain_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mysql.sock");
    let server = Server::new(Arc::new(Scripted::default()), ServerOptions::default()).unwrap();
    let running = workers::start(server, 1, vec![Listener::bind_unix(&path).unwrap()]).unwrap();
    assert_eq!(Listener::bind_unix(&path).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    let stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let mut client = Client::greeted(Box::new(stream)).unwrap();
    client.login("root", "", client::DEPRECATE_EOF, SHA2).unwrap();
    client.query("SELECT 1").unwrap();
    running.shutdown(Duration::ZERO);
    assert!(!path.exists());
}

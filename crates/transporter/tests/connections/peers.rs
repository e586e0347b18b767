//! Peers that are slow, wrong, hostile or many.

use crate::support::*;
use rauk_transporter::security::TlsFiles;
use rauk_transporter::{CloseReason, Options, Secret, Security, Tls, TransportError, Transporter, Urgency};
use rauk_wire::hello::{Challenge, Hello, Proof, Refusal, Refused, Role};
use rauk_wire::{Header, Kind, WireError, frame};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

fn made(kind: Kind, request: u64, payload: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut made = frame::begin();
    payload(&mut made);
    frame::finish(&mut made, &Header::new(kind, request));
    made
}

/// Reads one whole frame.
fn read(stream: &mut TcpStream) -> (Header, Vec<u8>) {
    let mut bytes = vec![0; frame::HEADER];
    stream.read_exact(&mut bytes).unwrap();
    loop {
        match frame::parse(&bytes).unwrap() {
            frame::Parsed::Whole(header, _) => return (header, bytes.split_off(frame::HEADER)),
            frame::Parsed::Incomplete(need) => {
                let before = bytes.len();
                bytes.resize(need, 0);
                stream.read_exact(&mut bytes[before..]).unwrap();
            }
        }
    }
}

fn hello(oldest: u16, newest: u16) -> Hello {
    Hello { oldest, newest, role: Role::Client, cluster: [0; 16], nonce: [9; 32], has_secret: true, name: "raw".into() }
}

/// A client made by hand, with a write function of choice, up to the welcome.
fn shake_hands(address: SocketAddr, write: impl Fn(&mut TcpStream, &[u8])) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let hello = made(Kind::Hello, 0, |out| hello(1, 1).encode(out));
    write(&mut stream, &hello);
    let (header, payload) = read(&mut stream);
    assert_eq!(header.kind, Kind::Challenge);
    Challenge::decode(&payload).unwrap();
    // The transcript, as the protocol says: kind, length and payload of each frame.
    let mut signed = b"rauk client".to_vec();
    for (kind, payload) in [(Kind::Hello, &hello[frame::HEADER..]), (Kind::Challenge, &payload)] {
        signed.extend_from_slice(&(kind as u16).to_le_bytes());
        signed.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        signed.extend_from_slice(payload);
    }
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = aws_lc_rs::hmac::sign(&key, &signed);
    let proof = Proof { proof: Some(tag.as_ref().try_into().unwrap()) };
    write(&mut stream, &made(Kind::Proof, 0, |out| proof.encode(out)));
    assert_eq!(read(&mut stream).0.kind, Kind::Welcome);
    stream
}

/// Everything until the other side ends (or resets).
fn until_the_end(stream: &mut TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(e) => assert_eq!(e.kind(), std::io::ErrorKind::ConnectionReset, "{e}"),
    }
    rest
}

fn refusal(bytes: &[u8]) -> Refused {
    match frame::parse(bytes) {
        Ok(frame::Parsed::Whole(header, _)) if header.kind == Kind::Refused => {
            Refused::decode(&bytes[frame::HEADER..]).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_byte_at_a_time() {
    let (_server, address) = serve(Options::default(), Server::new(echo));
    let slowly = |stream: &mut TcpStream, bytes: &[u8]| {
        for byte in bytes {
            stream.write_all(&[*byte]).unwrap();
        }
    };
    let mut stream = shake_hands(address, slowly);
    for length in [0, 1, 700] {
        slowly(&mut stream, &made(Kind::Batch, 5, |out| out.extend(pattern(1, length))));
        let (header, payload) = read(&mut stream);
        assert_eq!((header.kind, header.request), (Kind::BatchAnswer, 5));
        assert_eq!(payload, pattern(1, length));
    }
}

#[test]
fn garbage_and_damage_close_the_link_and_nothing_else() {
    let handler = Server::new(echo);
    let (server, address) = serve(Options::default(), handler.clone());
    let good = connect(address, 0);
    // Before the handshake.
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: rauk\r\n\r\n").unwrap();
    assert!(until_the_end(&mut stream).is_empty());
    let mut stream = TcpStream::connect(address).unwrap();
    let mut long = made(Kind::Hello, 0, |out| hello(1, 1).encode(out));
    long[8..12].copy_from_slice(&1_000_000u32.to_le_bytes());
    stream.write_all(&long).unwrap();
    until_the_end(&mut stream);
    // After it.
    let mut damaged = made(Kind::Batch, 1, |out| out.extend_from_slice(&[1; 100]));
    *damaged.last_mut().unwrap() ^= 1;
    let mut endless = made(Kind::Batch, 1, |_| {});
    endless[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    let cases: [(Vec<u8>, WireError); 3] = [
        (b"nonsense nonsense nonsense".to_vec(), WireError::Magic),
        (damaged, WireError::Checksum),
        (endless, WireError::TooLong(u64::from(u32::MAX))),
    ];
    for (i, (bytes, error)) in cases.into_iter().enumerate() {
        let mut stream = shake_hands(address, |stream, bytes| stream.write_all(bytes).unwrap());
        stream.write_all(&bytes).unwrap();
        until_the_end(&mut stream);
        eventually("the handler is told", || handler.closed.lock().len() == i + 1);
        assert_eq!(handler.closed.lock()[i], CloseReason::Wire(error));
    }
    // A handshake after the handshake.
    let mut stream = shake_hands(address, |stream, bytes| stream.write_all(bytes).unwrap());
    stream.write_all(&made(Kind::Hello, 0, |out| hello(1, 1).encode(out))).unwrap();
    until_the_end(&mut stream);
    assert_eq!(good.call(b"still there", Urgency::Force).unwrap(), &b"still there"[..]);
    assert_eq!(server.statistics().links_refused, 2);
    assert_eq!(server.statistics().links_open, 1);
}

#[test]
fn refused_peers_are_told_why() {
    let (server, address) = serve(Options { max_links: 1, ..Options::default() }, Server::new(echo));
    let refused = |security: &Security| match try_connect(address, client_options(0), security).map(|_| ()) {
        Err(TransportError::Refused { reason, message }) => (reason, message),
        other => panic!("{other:?}"),
    };
    let (reason, message) =
        refused(&Security { secret: Some(Secret::new("another secret, quite another").unwrap()), tls: None });
    assert_eq!(reason, Refusal::Credentials);
    assert!(message.contains("the secret is wrong"), "{message}");
    let (reason, message) = refused(&Security::default());
    assert_eq!(reason, Refusal::Credentials);
    assert!(message.contains("asks for a shared secret"), "{message}");
    let first = connect(address, 0);
    let (reason, message) = refused(&secret());
    assert_eq!(reason, Refusal::TooManyConnections);
    assert!(message.contains("too many connections"), "{message}");
    drop(first);
    eventually("its place is free again", || server.statistics().links_open == 0);
    connect(address, 0);
    eventually("its place is free again", || server.statistics().links_open == 0);

    // Another cluster is wanted.
    let calls = Arc::new(Client::default());
    let expects = rauk_transporter::Identity { cluster: [1; 16], ..identity(Role::Client) };
    let transporter = Transporter::start(client_options(0), expects, calls).unwrap();
    match connect_with(&transporter, address, &secret()) {
        Err(TransportError::Refused { reason: Refusal::Cluster, .. }) => {}
        other => panic!("{other:?}"),
    }

    // Versions that nobody speaks here; the peer goes on talking.
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&made(Kind::Hello, 0, |out| hello(100, 101).encode(out))).unwrap();
    stream.write_all(&[7; 10_000]).unwrap();
    let refused = refusal(&until_the_end(&mut stream));
    assert_eq!((refused.reason, refused.newest), (Refusal::Version, rauk_wire::PROTOCOL));
    assert!(refused.message.contains("100 to 101"), "{}", refused.message);
    // An older client range that overlaps is let in.
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&made(Kind::Hello, 0, |out| hello(0, 1).encode(out))).unwrap();
    assert_eq!(read(&mut stream).0.kind, Kind::Challenge);
    // Nonsense in the right frame.
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&made(Kind::Proof, 0, |_| {})).unwrap();
    assert_eq!(refusal(&until_the_end(&mut stream)).reason, Refusal::Malformed);
    assert_eq!(server.statistics().links_refused, 6);
}

#[test]
fn a_server_that_does_not_know_the_secret_is_noticed() {
    // It accepts everything it is told, and proves nothing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let impostor = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read(&mut stream);
        let challenge = Challenge { version: 1, cluster: CLUSTER, incarnation: 1, nonce: [3; 32], wants_secret: true };
        stream.write_all(&made(Kind::Challenge, 0, |out| challenge.encode(out))).unwrap();
        read(&mut stream);
        let welcome =
            rauk_wire::hello::Welcome { proof: Some([5; 32]), connection: 1, max_payload: 1, max_requests: 1 };
        stream.write_all(&made(Kind::Welcome, 0, |out| welcome.encode(out))).unwrap();
        until_the_end(&mut stream);
    });
    let error = try_connect(address, client_options(0), &secret()).map(|_| ()).unwrap_err();
    assert_eq!(error, TransportError::Untrusted { address: address.to_string() });
    impostor.join().unwrap();
}

#[test]
fn peers_that_say_nothing_are_given_up() {
    let (server, address) =
        serve(Options { handshake: Duration::from_millis(100), ..Options::default() }, Server::new(echo));
    let mut silent = TcpStream::connect(address).unwrap();
    let begin = Instant::now();
    assert!(until_the_end(&mut silent).is_empty());
    assert!(begin.elapsed() >= Duration::from_millis(90));
    assert_eq!(server.statistics().links_refused, 1);

    // And a server that says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    for receive_threads in [0, 1] {
        let calls = Arc::new(Client::default());
        let transporter = Transporter::start(client_options(receive_threads), identity(Role::Client), calls).unwrap();
        let mut connecting = Box::pin(transporter.connect(&address, &secret(), Duration::from_millis(100)));
        match transporter.receive_until(|context| connecting.as_mut().poll(context)) {
            Err(TransportError::Timeout { millis: 100, .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    drop(listener);
    let error = try_connect(address.parse().unwrap(), client_options(0), &secret()).map(|_| ()).unwrap_err();
    assert!(matches!(error, TransportError::Connect { .. }), "{error}");
}

#[test]
fn a_listener_that_asks_for_nothing_is_refused() {
    let transporter = Transporter::start(Options::default(), identity(Role::Node), Server::new(echo)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    assert!(matches!(
        transporter.listen(listener, Security::default()),
        Err(TransportError::Configuration(message)) if message.contains("secret")
    ));
}

/// Certificates of one authority, and files of them.
struct Authority {
    directory: tempfile::TempDir,
    certificate: rcgen::Certificate,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&key).unwrap();
        Authority { directory: tempfile::tempdir().unwrap(), certificate, issuer: rcgen::Issuer::new(parameters, key) }
    }

    fn files(&self, name: &str) -> TlsFiles {
        let key = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new(vec![name.to_string()]).unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        let path = |what: &str| self.directory.path().join(format!("{name}-{what}.pem"));
        let write = |path: &Path, text: String| std::fs::write(path, text).unwrap();
        write(&path("certificate"), certificate.pem());
        write(&path("key"), key.serialize_pem());
        write(&path("authority"), self.certificate.pem());
        TlsFiles {
            certificate: path("certificate"),
            key: path("key"),
            authority: path("authority"),
            server_name: Some("node.rauk".into()),
        }
    }
}

fn serve_with(security: Security) -> (Arc<Transporter>, SocketAddr) {
    let transporter = Transporter::start(Options::default(), identity(Role::Node), Server::new(echo)).unwrap();
    let address = transporter.listen(TcpListener::bind("127.0.0.1:0").unwrap(), security).unwrap();
    (transporter, address)
}

#[test]
fn mutual_tls() {
    let (ours, others) = (Authority::new(), Authority::new());
    let with = |tls: TlsFiles, secret: Option<&str>| Security {
        secret: secret.map(|secret| Secret::new(secret).unwrap()),
        tls: Some(Tls::Files(tls)),
    };
    let (server, address) = serve_with(with(ours.files("node.rauk"), None));
    for receive_threads in [0, 1] {
        let client = try_connect(address, client_options(receive_threads), &with(ours.files("client"), None)).unwrap();
        for length in [0, 100, 20_000, 300_000, 5 << 20] {
            let sent = pattern(3, length);
            assert!(client.call(&sent, Urgency::Adaptive).unwrap() == sent, "{length} bytes");
        }
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let client = &client;
                scope.spawn(move || {
                    for i in 0..50 {
                        let sent = pattern(thread, 1000 + (i as usize % 7) * 20_000);
                        assert!(client.call(&sent, Urgency::Adaptive).unwrap() == sent);
                    }
                });
            }
        });
    }
    let fails = |security: &Security| try_connect(address, client_options(0), security).map(|_| ()).unwrap_err();
    // Signed by somebody else; nothing to show; the wrong server.
    let mut foreign = others.files("client");
    foreign.authority = ours.files("client").authority;
    for (what, security) in [
        ("a certificate of another authority", with(foreign, None)),
        ("an authority that has not signed the server", with(others.files("client"), None)),
        ("another name", {
            let mut files = ours.files("client");
            files.server_name = Some("other.rauk".into());
            with(files, None)
        }),
    ] {
        let error = fails(&security);
        assert!(matches!(error, TransportError::Connect { .. }), "{what}: {error}");
    }
    let error = fails(&secret());
    assert!(matches!(&error, TransportError::Refused { message, .. } if message.contains("speaks TLS")), "{error}");
    assert_eq!(server.statistics().links_accepted, 2);

    // Both are asked for when both are given.
    let (_server, address) = serve_with(with(ours.files("node.rauk"), Some(SECRET)));
    assert!(try_connect(address, client_options(0), &with(ours.files("client"), Some(SECRET))).is_ok());
    let error = try_connect(address, client_options(0), &with(ours.files("client"), None)).map(|_| ()).unwrap_err();
    assert!(matches!(error, TransportError::Refused { reason: Refusal::Credentials, .. }), "{error}");

    // Files that cannot be used name themselves.
    let mut missing = ours.files("client");
    missing.key = missing.key.with_file_name("nothing.pem");
    let error = try_connect(address, client_options(0), &with(missing, None)).map(|_| ()).unwrap_err();
    assert!(matches!(&error, TransportError::Configuration(message) if message.contains("nothing.pem")), "{error}");
}

#[test]
fn a_slow_reader_is_paused_and_goes_on() {
    let handled = Arc::new(AtomicUsize::new(0));
    let count = handled.clone();
    let handler = Server::new(move |link, frame| {
        count.fetch_add(1, SeqCst);
        let mut answer = link.buffer();
        answer.resize(frame::HEADER + 10_000, 1);
        link.send(&Header::new(Kind::BatchAnswer, frame.header.request), answer, Urgency::Adaptive).unwrap();
    });
    let limit = 1 << 20;
    let (server, address) = serve(Options { send_limit: limit, ..Options::default() }, handler.clone());
    let mut stream = shake_hands(address, |stream, bytes| stream.write_all(bytes).unwrap());
    let requests = 20_000;
    let asks: Vec<u8> = (1..=requests).flat_map(|i| made(Kind::Batch, i, |_| {})).collect();
    let mut writer = stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || writer.write_all(&asks));
    eventually("reading is paused", || server.statistics().pauses > 0);
    std::thread::sleep(Duration::from_millis(100));
    let before = handled.load(SeqCst);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(handled.load(SeqCst), before, "nothing is read while it is paused");
    let unsent = server.links()[0].unsent_bytes as usize;
    // What a read had brought already is answered as well: at most a buffer of requests.
    assert!(unsent > limit / 2 && unsent < limit + (256 << 10) / frame::HEADER * 10_200, "{unsent} bytes");
    for i in 1..=requests {
        assert_eq!(read(&mut stream).0.request, i, "answers keep their order");
    }
    writing.join().unwrap().unwrap();
    assert_eq!(server.links()[0].unsent_bytes, 0);
}

#[test]
fn a_peer_that_never_reads_is_cut_off() {
    let handler = Server::new(|link, frame| {
        let mut answer = link.buffer();
        answer.resize(frame::HEADER + 100_000, 1);
        let _ = link.send(&Header::new(Kind::BatchAnswer, frame.header.request), answer, Urgency::Adaptive);
    });
    let options = Options { send_limit: 1 << 20, stalled: Duration::from_millis(200), ..Options::default() };
    let (server, address) = serve(options, handler.clone());
    let mut stream = shake_hands(address, |stream, bytes| stream.write_all(bytes).unwrap());
    for i in 1..=200 {
        if stream.write_all(&made(Kind::Batch, i, |_| {})).is_err() {
            break;
        }
    }
    eventually("it is cut off", || handler.closed.lock().len() == 1);
    assert_eq!(handler.closed.lock()[0], CloseReason::NotReading(0));
    assert_eq!(server.statistics().links_open, 0);
}

#[test]
fn requests_without_an_answer_are_bounded() {
    let held = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let hold = held.clone();
    let handler = Server::new(move |link, frame| hold.lock().push((link.clone(), frame)));
    let (server, address) = serve(Options { max_requests: 100, ..Options::default() }, handler);
    let client = connect(address, 0);
    assert_eq!(client.link.max_requests(), 100);
    let sending = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            (0..5000)
                .map(|i| client.calls.ask(&client.link, &pattern(i, 1000), Urgency::Force).unwrap())
                .collect::<Vec<_>>()
        });
        eventually("reading pauses", || server.statistics().pauses > 0);
        std::thread::sleep(Duration::from_millis(50));
        let most = 100 + (256 << 10) / 1000;
        assert!(held.lock().len() <= most, "{} requests are held", held.lock().len());
        sender.join().unwrap()
    });
    let answering = std::thread::scope(|scope| {
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let stopped = stop.clone();
        let held = &held;
        let answering = scope.spawn(move || {
            while !stopped.load(SeqCst) {
                let some = std::mem::take(&mut *held.lock());
                for (link, frame) in some {
                    answer(&link, &frame, Urgency::Adaptive);
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        for (i, request) in sending.into_iter().enumerate() {
            assert!(client.wait(request).unwrap() == pattern(i as u64, 1000));
        }
        stop.store(true, SeqCst);
        answering.join()
    });
    answering.unwrap();
    assert!(server.statistics().pauses > 5);
}

#[test]
fn a_sender_is_told_that_nobody_reads() {
    // A server that shakes hands and then sleeps.
    let gate = Arc::new(std::sync::Barrier::new(2));
    let (enter, first) = (gate.clone(), AtomicUsize::new(0));
    let handler = Server::new(move |link, frame| {
        if first.fetch_add(1, SeqCst) == 0 {
            enter.wait();
            enter.wait();
        }
        echo(link, frame);
    });
    let (_server, address) = serve(Options::default(), handler);
    let limit = 1 << 20;
    let client = try_connect(address, Options { send_limit: limit, ..client_options(1) }, &secret()).unwrap();
    let mut asked = vec![client.calls.ask(&client.link, b"stop", Urgency::Force).unwrap()];
    gate.wait();
    let error = loop {
        match client.calls.ask(&client.link, &[0; 50_000], Urgency::Adaptive) {
            Ok(request) => asked.push(request),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, TransportError::Congested { bytes } if bytes > 2 * limit && bytes < 2 * limit + 51_000));
    let unsent = client.transporter.links()[0].unsent_bytes as usize;
    assert!(unsent <= 2 * limit + 51_000, "{unsent}");
    let mut writable = Box::pin(client.link.writable());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(writable.as_mut().poll(&mut context).is_pending());
    gate.wait();
    client.transporter.receive_until(|context| writable.as_mut().poll(context)).unwrap();
    assert!(client.transporter.links()[0].unsent_bytes as usize <= limit / 2);
    for request in asked {
        client.wait(request).unwrap();
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn connections_that_come_and_go_leave_nothing() {
    let handler = Server::new(echo);
    let (server, address) = serve(Options { receive_threads: 2, ..Options::default() }, handler.clone());
    let calls = Arc::new(Client::default());
    let transporter = Transporter::start(client_options(0), identity(Role::Client), calls.clone()).unwrap();
    let keep = connect(address, 0);
    // Other tests have sockets of their own: what counts is that theirs are few beside 2 000.
    let before = descriptors();
    for i in 0..2000u32 {
        match i % 4 {
            0 => drop(TcpStream::connect(address).unwrap()),
            1 => {
                let mut stream = TcpStream::connect(address).unwrap();
                let _ = stream.write_all(b"\x16\x03\x01 not for you");
            }
            2 => {
                let mut stream = TcpStream::connect(address).unwrap();
                let _ = stream.write_all(&made(Kind::Hello, 0, |out| hello(1, 1).encode(out)));
            }
            _ => {
                let link = connect_with(&transporter, address, &secret()).unwrap();
                let request = calls.ask(&link, b"once", Urgency::Adaptive).unwrap();
                transporter.receive_until(|context| calls.poll(request, context)).unwrap();
                link.close(CloseReason::Here);
            }
        }
    }
    eventually("all links are closed", || server.statistics().links_open == 1);
    eventually("descriptors are as before", || descriptors() < before + 200);
    assert_eq!(server.statistics().links_accepted, 501);
    assert_eq!(keep.call(b"still there", Urgency::Force).unwrap(), &b"still there"[..]);
}

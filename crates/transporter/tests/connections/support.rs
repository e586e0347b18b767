//! A server that answers, and a client that asks, over loopback.
#![allow(dead_code)]

use bytes::Bytes;
use parking_lot::Mutex;
use rauk_transporter::{
    CloseReason, Handler, Identity, Link, Options, Secret, Security, TransportError, Transporter, Urgency,
};
use rauk_wire::hello::Role;
use rauk_wire::{Frame, Header, Kind};
use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

pub const SECRET: &str = "0123456789abcdef0123456789abcdef";
pub const CLUSTER: [u8; 16] = *b"cluster of tests";
pub const TIMEOUT: Duration = Duration::from_secs(5);

pub fn secret() -> Security {
    Security { secret: Some(Secret::new(SECRET).unwrap()), tls: None }
}

pub fn identity(role: Role) -> Identity {
    let cluster = if role == Role::Node { CLUSTER } else { [0; 16] };
    Identity { role, cluster, incarnation: 7, version: rauk_wire::PROTOCOL, name: "tests".into() }
}

pub type OnFrame = Box<dyn Fn(&Arc<Link>, Frame) + Send + Sync>;

/// A handler made of a closure; counts links.
pub struct Server {
    on_frame: OnFrame,
    pub opened: AtomicUsize,
    pub closed: Mutex<Vec<CloseReason>>,
    pub links: Mutex<Vec<Arc<Link>>>,
}

impl Server {
    pub fn new(on_frame: impl Fn(&Arc<Link>, Frame) + Send + Sync + 'static) -> Arc<Server> {
        Arc::new(Server {
            on_frame: Box::new(on_frame),
            opened: AtomicUsize::new(0),
            closed: Mutex::default(),
            links: Mutex::default(),
        })
    }
}

impl Handler for Server {
    fn on_open(&self, link: &Arc<Link>) {
        self.opened.fetch_add(1, SeqCst);
        self.links.lock().push(link.clone());
    }
    fn on_frame(&self, link: &Arc<Link>, frame: Frame) {
        (self.on_frame)(link, frame);
    }
    fn on_close(&self, link: &Arc<Link>, reason: &CloseReason) {
        assert!(link.is_closed());
        self.links.lock().retain(|other| !Arc::ptr_eq(other, link));
        self.closed.lock().push(reason.clone());
    }
}

/// Sends the payload back.
pub fn answer(link: &Arc<Link>, frame: &Frame, urgency: Urgency) {
    let mut answer = link.buffer();
    answer.extend_from_slice(&frame.payload);
    let _ = link.send(&Header::new(Kind::BatchAnswer, frame.header.request), answer, urgency);
}

pub fn echo(link: &Arc<Link>, frame: Frame) {
    answer(link, &frame, Urgency::Adaptive);
}

/// A transporter that listens.
pub fn serve(options: Options, handler: Arc<Server>) -> (Arc<Transporter>, SocketAddr) {
    let transporter = Transporter::start(options, identity(Role::Node), handler).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = transporter.listen(listener, secret()).unwrap();
    (transporter, address)
}

/// What a client waits for.
#[derive(Default)]
struct Waiting {
    answer: Option<Result<Bytes, CloseReason>>,
    waker: Option<Waker>,
}

#[derive(Default)]
pub struct Client {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Waiting>>,
    pub closed: Mutex<Option<CloseReason>>,
    pub goodbyes: AtomicUsize,
}

impl Client {
    fn tell(&self, request: u64, answer: Result<Bytes, CloseReason>) {
        let mut waiting = self.waiting.lock();
        let Some(entry) = waiting.get_mut(&request) else { return };
        entry.answer = Some(answer);
        let waker = entry.waker.take();
        drop(waiting);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub fn ask(&self, link: &Link, payload: &[u8], urgency: Urgency) -> Result<u64, TransportError> {
        self.ask_as(link, Kind::Batch, payload, urgency)
    }

    pub fn ask_as(&self, link: &Link, kind: Kind, payload: &[u8], urgency: Urgency) -> Result<u64, TransportError> {
        let request = self.next.fetch_add(1, SeqCst) + 1;
        self.waiting.lock().insert(request, Waiting::default());
        let mut frame = link.buffer();
        frame.extend_from_slice(payload);
        link.send(&Header::new(kind, request), frame, urgency)?;
        Ok(request)
    }

    pub fn poll(&self, request: u64, context: &mut Context<'_>) -> Poll<Result<Bytes, CloseReason>> {
        let mut waiting = self.waiting.lock();
        let entry = waiting.get_mut(&request).expect("asked before");
        match entry.answer.take() {
            Some(answer) => {
                waiting.remove(&request);
                Poll::Ready(answer)
            }
            None => {
                entry.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Handler for Client {
    fn on_open(&self, _link: &Arc<Link>) {}
    fn on_frame(&self, _link: &Arc<Link>, frame: Frame) {
        if frame.header.kind == Kind::Goodbye {
            self.goodbyes.fetch_add(1, SeqCst);
        } else {
            self.tell(frame.header.request, Ok(frame.payload));
        }
    }
    fn on_close(&self, _link: &Arc<Link>, reason: &CloseReason) {
        *self.closed.lock() = Some(reason.clone());
        let all: Vec<u64> = self.waiting.lock().keys().copied().collect();
        for request in all {
            self.tell(request, Err(reason.clone()));
        }
    }
}

/// A connected client.
pub struct Connected {
    pub transporter: Arc<Transporter>,
    pub calls: Arc<Client>,
    pub link: Arc<Link>,
}

pub fn client_options(receive_threads: usize) -> Options {
    Options { receive_threads, ..Options::default() }
}

pub fn try_connect(address: SocketAddr, options: Options, security: &Security) -> Result<Connected, TransportError> {
    let calls = Arc::new(Client::default());
    let transporter = Transporter::start(options, identity(Role::Client), calls.clone()).unwrap();
    let link = connect_with(&transporter, address, security)?;
    Ok(Connected { transporter, calls, link })
}

pub fn connect_with(
    transporter: &Arc<Transporter>,
    address: SocketAddr,
    security: &Security,
) -> Result<Arc<Link>, TransportError> {
    let mut connecting = Box::pin(transporter.connect(&address.to_string(), security, TIMEOUT));
    transporter.receive_until(|context| connecting.as_mut().poll(context))
}

pub fn connect(address: SocketAddr, receive_threads: usize) -> Connected {
    try_connect(address, client_options(receive_threads), &secret()).unwrap()
}

impl Connected {
    pub fn call(&self, payload: &[u8], urgency: Urgency) -> Result<Bytes, CloseReason> {
        match self.calls.ask(&self.link, payload, urgency) {
            Ok(request) => self.wait(request),
            Err(TransportError::Closed(reason)) => Err(reason),
            Err(other) => panic!("{other}"),
        }
    }

    pub fn wait(&self, request: u64) -> Result<Bytes, CloseReason> {
        self.transporter.receive_until(|context| self.calls.poll(request, context))
    }
}

/// Waits for something that other threads do.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not within ten seconds");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn pattern(number: u64, length: usize) -> Vec<u8> {
    (0..length).map(|i| (i as u64).wrapping_mul(31).wrapping_add(number) as u8).collect()
}

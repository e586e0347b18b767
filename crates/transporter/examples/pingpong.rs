//! How long a request takes, and how many a second: `cargo run --release -p rauk-transporter --example pingpong [SECONDS]`.
//!
//! One process is server and client over loopback, each with a transporter of its own. First one thread asks and waits, again and again; then eight threads on one
//! connection, and on one each, with every frame sent at once and with adaptive send.

use parking_lot::Mutex;
use rauk_transporter::{CloseReason, Handler, Identity, Link, Options, Secret, Security, Transporter, Urgency};
use rauk_wire::hello::Role;
use rauk_wire::{Frame, Header, Kind};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

struct Echo;

impl Handler for Echo {
    fn on_open(&self, _: &Arc<Link>) {}
    fn on_frame(&self, link: &Arc<Link>, frame: Frame) {
        let mut answer = link.buffer();
        answer.extend_from_slice(&frame.payload);
        link.send(&Header::new(Kind::BatchAnswer, frame.header.request), answer, Urgency::Adaptive)
            .expect("the client reads");
    }
    fn on_close(&self, _: &Arc<Link>, _: &CloseReason) {}
}

/// One place for each asking thread: the number of the last answer, and who waits for it.
#[derive(Default)]
struct Place {
    answered: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

struct Client(Vec<Place>);

impl Handler for Client {
    fn on_open(&self, _: &Arc<Link>) {}
    fn on_frame(&self, _: &Arc<Link>, frame: Frame) {
        let place = &self.0[(frame.header.request >> 48) as usize];
        place.answered.store(frame.header.request, Relaxed);
        let waker = place.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
    fn on_close(&self, _: &Arc<Link>, reason: &CloseReason) {
        if *reason != CloseReason::Here {
            panic!("{reason}");
        }
    }
}

fn identity(role: Role) -> Identity {
    Identity { role, cluster: [0; 16], incarnation: 1, version: rauk_wire::PROTOCOL, name: "pingpong".into() }
}

struct Run {
    name: &'static str,
    threads: usize,
    links: usize,
    urgency: Urgency,
    options: Options,
}

fn run(address: &str, security: &Security, length: Duration, run: Run) -> f64 {
    let Run { name, threads, links, urgency, options } = run;
    let places = Arc::new(Client((0..threads).map(|_| Place::default()).collect()));
    let transporter =
        Transporter::start(Options { receive_threads: 0, ..options }, identity(Role::Client), places.clone())
            .expect("it starts");
    let links: Vec<Arc<Link>> = (0..links)
        .map(|_| {
            let mut connecting = Box::pin(transporter.connect(address, security, Duration::from_secs(5)));
            transporter.receive_until(|context| connecting.as_mut().poll(context)).expect("it connects")
        })
        .collect();
    let end = Instant::now() + length;
    let mut times: Vec<u32> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..threads)
            .map(|thread| {
                let (transporter, place, link) = (&transporter, &places.0[thread], &links[thread % links.len()]);
                scope.spawn(move || {
                    let mut times = Vec::with_capacity(1 << 20);
                    let mut request = (thread as u64) << 48;
                    let mut begin = Instant::now();
                    while begin < end {
                        request += 1;
                        let mut frame = link.buffer();
                        frame.extend_from_slice(&[7; 32]);
                        link.send(&Header::new(Kind::Batch, request), frame, urgency).expect("the server reads");
                        transporter.receive_until(|context| {
                            if place.answered.load(Relaxed) == request {
                                return Poll::Ready(());
                            }
                            *place.waker.lock() = Some(context.waker().clone());
                            if place.answered.load(Relaxed) == request { Poll::Ready(()) } else { Poll::Pending }
                        });
                        let now = Instant::now();
                        times.push((now - begin).as_nanos() as u32);
                        begin = now;
                    }
                    times
                })
            })
            .collect();
        asking.into_iter().flat_map(|thread| thread.join().expect("it asks")).collect()
    });
    times.sort_unstable();
    let at = |share: f64| f64::from(times[((times.len() - 1) as f64 * share) as usize]) / 1000.0;
    let rate = times.len() as f64 / length.as_secs_f64();
    let sums = transporter.statistics();
    println!(
        "{name:44} {rate:9.0}/s   p50 {:6.1} µs   p99 {:6.1} µs   p99.9 {:6.1} µs   {:.2} sends a frame, max_waits {}, \
         spins {} sleeps {}",
        at(0.5),
        at(0.99),
        at(0.999),
        sums.sends as f64 / sums.frames_sent as f64,
        transporter.links().iter().map(|link| link.max_waits).max().unwrap_or(0),
        sums.spins,
        sums.sleeps,
    );
    transporter.shutdown(Duration::ZERO);
    rate
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2.0);
    let length = Duration::from_secs_f64(seconds);
    let security = Security { secret: Some(Secret::new("a secret of this example").expect("long enough")), tls: None };
    let server = Transporter::start(Options::default(), identity(Role::Node), Arc::new(Echo)).expect("it starts");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = server.listen(listener, security.clone()).expect("it listens").to_string();
    let with = |name, threads, links, urgency| Run { name, threads, links, urgency, options: Options::default() };
    let at = |run_: Run| run(&address, &security, length, run_);
    at(with("1 thread, adaptive", 1, 1, Urgency::Adaptive));
    at(with("1 thread, forced", 1, 1, Urgency::Force));
    at(Run {
        options: Options { longest_spin: Duration::ZERO, ..Options::default() },
        ..with("1 thread, forced, no spinning", 1, 1, Urgency::Force)
    });
    let forced = at(with("8 threads, 1 connection, forced", 8, 1, Urgency::Force));
    let adaptive = at(with("8 threads, 1 connection, adaptive", 8, 1, Urgency::Adaptive));
    println!("adaptive / forced: {:.2}", adaptive / forced);
    let forced = at(with("8 threads, 8 connections, forced", 8, 8, Urgency::Force));
    let adaptive = at(with("8 threads, 8 connections, adaptive", 8, 8, Urgency::Adaptive));
    println!("adaptive / forced: {:.2}", adaptive / forced);
    server.shutdown(Duration::ZERO);
}

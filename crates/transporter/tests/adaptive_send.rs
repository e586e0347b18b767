//! Adaptive send: where it settles in a simulation, and what it does on a real socket.

#[path = "connections/loads.rs"]
mod loads;
#[path = "connections/support.rs"]
mod support;

use loads::{LONGEST, Load, Socket};
use rauk_transporter::{Options, Urgency};
use rauk_wire::{Header, Kind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use support::*;

const SECOND: Duration = Duration::from_secs(1);

/// Under the load for a second to settle, then for two more.
fn settled(seed: u64, load: Load) -> (Socket, loads::Seen) {
    let mut socket = Socket::new(seed);
    socket.run(load, SECOND);
    let seen = socket.run(load, 2 * SECOND);
    assert!(seen.longest <= LONGEST.as_nanos() as u64, "nothing waits longer than the maximum");
    (socket, seen)
}

#[test]
fn open_loads_settle_at_half_the_maximum() {
    for seed in 0..2 {
        // max_waits = rate × 100 µs, whatever the shape.
        for (load, expected) in [
            (Load::Poisson(2_000.0), 0.0),
            (Load::Poisson(50_000.0), 5.0),
            (Load::Poisson(100_000.0), 10.0),
            (Load::Poisson(300_000.0), 30.0),
            (Load::Bursts(10, 5_000.0), 5.0),
            // 50 in 549 µs.
            (Load::Bursts(50, 2_000.0), 9.1),
        ] {
            let (_, seen) = settled(seed, load);
            let waits = seen.mean_waits();
            assert!((waits - expected).abs() <= 1.0 + expected * 0.15, "{waits} instead of {expected}, seed {seed}");
            let mean = seen.mean_wait_us();
            assert!(mean <= 100.0, "messages wait {mean} µs on average");
            if expected >= 5.0 {
                let size = seen.messages as f64 / seen.sends as f64;
                assert!(size > expected / 2.0, "{size} messages a send");
            }
        }
    }
}

#[test]
fn the_largest_group_is_bounded() {
    let mut socket = Socket::new(1);
    socket.run(Load::Poisson(1_200_000.0), SECOND * 4 / 5);
    let seen = socket.run(Load::Poisson(1_200_000.0), SECOND / 10);
    assert_eq!(socket.adaptive.max_waits(), rauk_transporter::adaptive::MOST_WAITS);
    assert!(seen.mean_wait_us() < 35.0);
}

#[test]
fn ping_pong_pays_nearly_nothing() {
    for (senders, answer) in [(1, 20), (1, 60), (1, 90), (1, 500)] {
        let (_, seen) = settled(2, Load::PingPong(senders, answer));
        // What it would be if nothing ever waited.
        let best = 2e6 / answer as f64 * senders as f64;
        let share = seen.messages as f64 / best;
        assert!(share > 0.98, "{senders} with answers after {answer} µs: {share:.3} of what is possible");
    }
}

#[test]
fn eight_that_wait_share_their_sends() {
    let (_, seen) = settled(3, Load::PingPong(8, 60));
    let size = seen.messages as f64 / seen.sends as f64;
    assert!(size > 3.0, "{size} messages a send");
    let best = 2e6 / 60.0 * 8.0;
    assert!(seen.messages as f64 > best * 0.5, "{} of {best} messages", seen.messages);
    // Two do as well: they wait for each other, and a send in two is saved.
    let (_, seen) = settled(3, Load::PingPong(2, 30));
    assert!(seen.sends * 10 < seen.messages * 6, "{} sends of {}", seen.sends, seen.messages);
    assert!(seen.messages as f64 > 2e6 / 30.0 * 2.0 * 0.85, "{} messages", seen.messages);
}

#[test]
fn follows_a_changing_load() {
    let mut socket = Socket::new(4);
    socket.run(Load::Poisson(100_000.0), SECOND);
    assert!((9..=12).contains(&socket.adaptive.max_waits()), "{}", socket.adaptive.max_waits());
    // One that waits for answers is not slowed down for long by what was learned before.
    let seen = socket.run(Load::PingPong(1, 25), SECOND / 10);
    assert!(seen.messages as f64 > 1e5 / 25.0 * 0.8, "{} messages", seen.messages);
    let seen = socket.run(Load::Poisson(200_000.0), SECOND / 2);
    assert!(seen.course.last().unwrap().1 >= 18, "up again within half a second");
    socket.run(Load::Idle, SECOND);
    let seen = socket.run(Load::Poisson(500.0), SECOND);
    assert!(seen.mean_wait_us() < 1.0, "after idle time nobody waits: {} µs", seen.mean_wait_us());
}

#[test]
fn frames_travel_together_under_load() {
    let (_server, address) = serve(Options::default(), Server::new(|_, _| {}));
    let client = connect(address, 1);
    // On a crowded machine the sender itself is interrupted for longer than the longest wait: a slice in which it was not is looked for.
    eventually("frames travel together", || {
        let before = client.transporter.statistics();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(100) {
            client.link.send(&Header::new(Kind::Batch, 0), client.link.buffer(), Urgency::Adaptive).unwrap();
        }
        let sums = client.transporter.statistics();
        let frames = sums.frames_sent - before.frames_sent;
        (sums.sends - before.sends) * 3 < frames && sums.frames_waited - before.frames_waited > frames / 2
    });
    // Forced ones do not.
    let before = client.transporter.statistics().sends;
    for _ in 0..100 {
        client.link.send(&Header::new(Kind::Batch, 0), client.link.buffer(), Urgency::Force).unwrap();
    }
    assert!(client.transporter.statistics().sends - before >= 90);
    // Nor does anything without a longest wait.
    client.transporter.set_longest_wait(Duration::ZERO);
    let before = client.transporter.statistics();
    for _ in 0..100 {
        client.link.send(&Header::new(Kind::Batch, 0), client.link.buffer(), Urgency::Adaptive).unwrap();
    }
    let after = client.transporter.statistics();
    assert_eq!(after.frames_waited, before.frames_waited);
    assert!(after.sends - before.sends >= 90);
}

#[test]
fn a_frame_without_company_leaves_by_the_timer() {
    let arrived = Arc::new(AtomicU64::new(0));
    let tell = arrived.clone();
    let (_server, address) =
        serve(Options::default(), Server::new(move |_, frame| tell.store(frame.header.request, SeqCst)));
    let longest = Duration::from_millis(20);
    for receive_threads in [0, 1] {
        let options = Options { longest_wait: longest, ..client_options(receive_threads) };
        let client = try_connect(address, options, &secret()).unwrap();
        let send = |request| {
            let header = Header::new(Kind::Batch, request);
            client.link.send(&header, client.link.buffer(), Urgency::Adaptive).unwrap();
        };
        let mut timed = 0;
        let mut late = 0;
        for request in 1000..1010 {
            // A load that makes it wait: a frame each 200 µs.
            while client.transporter.links()[0].max_waits < 5 {
                send(1);
                std::thread::sleep(Duration::from_micros(200));
            }
            client.link.flush();
            let before = client.transporter.statistics().sends_by_timer;
            let begin = Instant::now();
            send(request);
            while arrived.load(SeqCst) != request {
                std::thread::sleep(Duration::from_micros(100));
                assert!(begin.elapsed() < Duration::from_secs(5), "it never leaves");
            }
            timed += client.transporter.statistics().sends_by_timer - before;
            late += u32::from(begin.elapsed() > longest + Duration::from_millis(15));
        }
        assert!(timed >= 4, "{timed} of 10 left by the timer");
        assert!(late <= 6, "{late} of 10 came late, beyond what scheduling explains");
    }
}

/// Processor time of this process.
fn used() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

#[test]
fn idle_transporters_use_no_time() {
    let (server, address) = serve(Options::default(), Server::new(echo));
    let clients: Vec<_> = [0, 1].map(|receive_threads| connect(address, receive_threads)).into();
    for client in &clients {
        for i in 0..200 {
            client.call(&pattern(i, 10), Urgency::Adaptive).unwrap();
        }
    }
    // Other tests of this program run beside this one: a quiet moment is looked for.
    eventually("a quiet quarter of a second", || {
        let (before, sleeps) = (used(), server.statistics().sleeps);
        std::thread::sleep(Duration::from_millis(250));
        let quiet = server.statistics().sleeps <= sleeps + 2;
        assert!(quiet || server.statistics().sleeps < sleeps + 100, "an idle server goes on waking up");
        quiet && used() - before <= Duration::from_millis(20)
    });
    for client in &clients {
        assert_eq!(client.call(b"awake", Urgency::Adaptive).unwrap(), &b"awake"[..]);
    }
}

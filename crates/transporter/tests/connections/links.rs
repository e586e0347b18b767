//! Links between two transporters: frames both ways, tasks, waiters, threads, ends.

use crate::support::*;
use rauk_transporter::{CloseReason, Options, Transporter, Urgency};
use rauk_wire::hello::Role;
use rauk_wire::{Header, Kind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

#[test]
fn frames_of_all_sizes_come_back() {
    for receive_threads in [0, 1] {
        let (_server, address) = serve(Options::default(), Server::new(echo));
        let client = connect(address, receive_threads);
        assert_eq!(client.link.identity().cluster, CLUSTER);
        assert_eq!(client.link.identity().incarnation, 7);
        for length in [0, 1, 100, 4_000, 65_400, 65_536, 300_000, 1 << 20, 8 << 20] {
            let sent = pattern(length as u64, length);
            let back = client.call(&sent, Urgency::Adaptive).unwrap();
            assert!(back == sent, "{length} bytes");
        }
    }
}

#[test]
fn eight_threads_over_one_link_keep_their_order() {
    for receive_threads in [0, 1] {
        // Frames of one sender arrive in the order in which they were sent.
        let last: Arc<Vec<AtomicU64>> = Arc::new((0..8).map(|_| AtomicU64::new(0)).collect());
        let seen = last.clone();
        let (server, address) = serve(
            Options { receive_threads: 2, ..Options::default() },
            Server::new(move |link, frame| {
                let thread = frame.payload[0] as usize;
                let number = u64::from_le_bytes(frame.payload[1..9].try_into().unwrap());
                let before = seen[thread].swap(number, SeqCst);
                assert_eq!(number, before + 1, "thread {thread}");
                echo(link, frame);
            }),
        );
        let client = connect(address, receive_threads);
        std::thread::scope(|scope| {
            for thread in 0..8u8 {
                let client = &client;
                scope.spawn(move || {
                    let mut number = 0u64;
                    for round in 0..40 {
                        let mut asked = Vec::new();
                        for i in 0..8 {
                            number += 1;
                            let length = if (round + i) % 37 == 0 { 200_000 } else { (round * 13 + i * 7) % 900 };
                            let mut payload = vec![thread];
                            payload.extend_from_slice(&number.to_le_bytes());
                            payload.extend_from_slice(&pattern(number, length));
                            let urgency = if number.is_multiple_of(3) { Urgency::Force } else { Urgency::Adaptive };
                            asked.push((client.calls.ask(&client.link, &payload, urgency).unwrap(), payload));
                        }
                        for (request, payload) in asked {
                            assert!(client.wait(request).unwrap() == payload);
                        }
                    }
                });
            }
        });
        let sums = server.statistics();
        assert_eq!(sums.frames_received, 8 * 40 * 8);
        assert_eq!(sums.frames_sent, 8 * 40 * 8);
        assert_eq!(server.links()[0].requests, 0);
        assert_eq!(client.transporter.links()[0].unsent_bytes, 0);
    }
}

#[test]
fn large_frames_both_ways_at_once() {
    let (_server, address) = serve(Options::default(), Server::new(echo));
    let client = connect(address, 0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let client = &client;
            scope.spawn(move || {
                for i in 0..3 {
                    let sent = pattern(thread * 10 + i, 3 << 20);
                    assert!(client.call(&sent, Urgency::Adaptive).unwrap() == sent);
                }
            });
        }
    });
}

#[test]
fn waiters_hand_over_the_role() {
    let (_server, address) = serve(Options::default(), Server::new(echo));
    let client = connect(address, 0);
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let client = &client;
            scope.spawn(move || {
                for i in 0..500 {
                    let sent = pattern(thread * 1000 + i, 60);
                    assert!(client.call(&sent, Urgency::Adaptive).unwrap() == sent);
                }
            });
        }
    });
    assert_eq!(client.transporter.statistics().frames_received, 4000);
}

#[test]
fn somebody_stands_in_when_nobody_waits() {
    let (_server, address) = serve(Options::default(), Server::new(echo));
    let client = connect(address, 0);
    for i in 0..5 {
        // As a task of an asynchronous runtime: the waker is all that waits.
        let sent = pattern(i, 50);
        let request = client.calls.ask(&client.link, &sent, Urgency::Force).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        struct Tell(std::sync::mpsc::Sender<()>);
        impl std::task::Wake for Tell {
            fn wake(self: Arc<Self>) {
                let _ = self.0.send(());
            }
        }
        let waker = std::task::Waker::from(Arc::new(Tell(tell)));
        let mut context = std::task::Context::from_waker(&waker);
        let answer = loop {
            if let Poll::Ready(answer) = client.calls.poll(request, &mut context) {
                break answer;
            }
            told.recv_timeout(Duration::from_secs(5)).expect("woken by the stand-in");
        };
        assert!(answer.unwrap() == sent);
        // And waiters take the role from it again.
        assert!(client.call(&sent, Urgency::Adaptive).unwrap() == sent);
        std::thread::sleep(Duration::from_millis(5 * i));
    }
}

#[test]
fn tasks_go_on_when_woken_and_end_with_the_link() {
    struct Ended(Arc<AtomicUsize>);
    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let ended = Arc::new(AtomicUsize::new(0));
    let count = ended.clone();
    let handler = Server::new(move |link, frame| {
        let (task, guard) = (link.clone(), Ended(count.clone()));
        link.spawn(async move {
            let _guard = guard;
            match frame.payload[0] {
                0 => {}
                1 => {
                    // Pending a few times, woken by another thread and by itself.
                    let mut left = 4;
                    std::future::poll_fn(|context| {
                        left -= 1;
                        if left == 0 {
                            return Poll::Ready(());
                        }
                        let waker = context.waker().clone();
                        if left == 2 {
                            waker.wake();
                        } else {
                            std::thread::spawn(move || waker.wake());
                        }
                        Poll::Pending
                    })
                    .await;
                }
                _ => std::future::pending().await,
            }
            answer(&task, &frame, Urgency::Adaptive);
        });
    });
    let (_server, address) = serve(Options::default(), handler.clone());
    let client = connect(address, 0);
    for i in 0..100u8 {
        assert_eq!(client.call(&[i % 2], Urgency::Adaptive).unwrap(), &[i % 2][..]);
    }
    for _ in 0..10 {
        client.calls.ask(&client.link, &[2], Urgency::Force).unwrap();
    }
    assert_eq!(client.call(&[0], Urgency::Force).unwrap(), &[0][..]);
    assert_eq!(ended.load(SeqCst), 101);
    client.link.close(CloseReason::Here);
    eventually("pending tasks are dropped", || ended.load(SeqCst) == 111);
    eventually("the handler is told", || handler.closed.lock().len() == 1);
    assert_eq!(handler.closed.lock()[0], CloseReason::Peer);
}

#[test]
fn tasks_can_be_spawned_from_elsewhere() {
    let handler = Server::new(echo);
    let (_server, address) = serve(Options::default(), handler.clone());
    let client = connect(address, 0);
    client.call(b"x", Urgency::Force).unwrap();
    let link = handler.links.lock()[0].clone();
    let done = Arc::new(AtomicUsize::new(0));
    let tell = done.clone();
    link.spawn(async move {
        assert_eq!(std::thread::current().name(), Some("rauk-receive-0"));
        tell.store(1, SeqCst);
    });
    eventually("it runs on the receive thread", || done.load(SeqCst) == 1);
}

#[test]
fn panics_close_one_link_and_nothing_else() {
    let handler = Server::new(|link, frame| match &frame.payload[..] {
        b"panic" => panic!("the handler's own mistake"),
        b"task" => link.spawn(async { panic!("the task's own mistake") }),
        b"later" => {
            let mut first = true;
            link.spawn(std::future::poll_fn(move |context| {
                assert!(first, "the second time");
                first = false;
                context.waker().wake_by_ref();
                Poll::Pending
            }));
        }
        _ => echo(link, frame),
    });
    let (_server, address) = serve(Options::default(), handler.clone());
    let good = connect(address, 0);
    for (i, what) in [&b"panic"[..], b"task", b"later"].iter().enumerate() {
        let bad = connect(address, 0);
        assert!(bad.call(what, Urgency::Force).is_err());
        eventually("the handler is told", || handler.closed.lock().len() == i + 1);
        assert!(matches!(handler.closed.lock()[i], CloseReason::Protocol(_)));
        assert_eq!(good.call(b"still there", Urgency::Force).unwrap(), &b"still there"[..]);
    }
}

#[test]
fn closing_while_sending() {
    for receive_threads in [0, 1] {
        let handler = Server::new(echo);
        let (_server, address) = serve(Options::default(), handler.clone());
        for round in 0..10 {
            let client = connect(address, receive_threads);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    let client = &client;
                    scope.spawn(move || {
                        while let Ok(request) = client.calls.ask(&client.link, &[5; 2000], Urgency::Adaptive) {
                            if client.wait(request).is_err() {
                                break;
                            }
                        }
                    });
                }
                std::thread::sleep(Duration::from_millis(round));
                client.link.close(CloseReason::Here);
            });
            eventually("our handler is told", || client.calls.closed.lock().is_some());
            assert_eq!(*client.calls.closed.lock(), Some(CloseReason::Here));
            assert!(client.link.send(&Header::new(Kind::Ping, 1), client.link.buffer(), Urgency::Force).is_err());
        }
        eventually("all are closed", || handler.closed.lock().len() == 10);
        assert_eq!(_server.statistics().links_open, 0);
    }
}

#[test]
fn what_waits_is_sent_before_the_end() {
    let got = Arc::new(AtomicUsize::new(0));
    let count = got.clone();
    let (_server, address) = serve(
        Options::default(),
        Server::new(move |_, _| {
            count.fetch_add(1, SeqCst);
        }),
    );
    let client =
        try_connect(address, Options { longest_wait: Duration::from_secs(3), ..client_options(0) }, &secret()).unwrap();
    for _ in 0..100 {
        client.link.send(&Header::new(Kind::Batch, 0), client.link.buffer(), Urgency::Adaptive).unwrap();
    }
    client.link.close(CloseReason::Here);
    eventually("all have arrived", || got.load(SeqCst) == 100);
}

#[test]
fn pings_are_answered_without_the_handler() {
    let (server, address) = serve(Options::default(), Server::new(|_, _| panic!("not for the handler")));
    let client = connect(address, 0);
    let request = client.calls.ask_as(&client.link, Kind::Ping, b"anybody there?", Urgency::Force).unwrap();
    assert_eq!(client.wait(request).unwrap(), &b"anybody there?"[..]);
    assert_eq!(server.links()[0].requests, 0);
}

#[test]
fn links_move_between_threads() {
    let handler = Server::new(|link, frame| {
        assert_eq!(
            std::thread::current().name(),
            Some(format!("rauk-receive-{}", link.receive_thread()).as_str()),
            "a frame is handled by its link's thread"
        );
        echo(link, frame);
    });
    let (server, address) = serve(Options { receive_threads: 3, ..Options::default() }, handler.clone());
    let client = connect(address, 0);
    client.call(b"open", Urgency::Force).unwrap();
    let link = handler.links.lock()[0].clone();
    std::thread::scope(|scope| {
        let calls = scope.spawn(|| {
            for i in 0..3000 {
                let sent = pattern(i, 100);
                assert!(client.call(&sent, Urgency::Force).unwrap() == sent);
            }
        });
        let mut target = 0;
        while !calls.is_finished() {
            target = (target + 1) % 3;
            assert!(link.move_to(target));
            std::thread::sleep(Duration::from_micros(500));
        }
    });
    assert!(!link.move_to(3));
    assert!(server.statistics().moves > 5);
}

#[test]
fn uneven_loads_become_even() {
    let handler = Server::new(|_, _| {});
    let (server, address) = serve(Options { receive_threads: 2, ..Options::default() }, handler.clone());
    let clients = [connect(address, 0), connect(address, 0)];
    eventually("both are open", || handler.links.lock().len() == 2);
    let links = handler.links.lock().clone();
    for link in &links {
        link.move_to(0);
    }
    eventually("both are on one thread", || links.iter().all(|link| link.receive_thread() == 0));
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for client in &clients {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(SeqCst) {
                    for _ in 0..100 {
                        let frame = client.link.buffer();
                        client.link.send(&Header::new(Kind::Batch, 0), frame, Urgency::Adaptive).unwrap();
                    }
                    std::thread::sleep(Duration::from_micros(500));
                }
            });
        }
        eventually("one moves by itself", || links[0].receive_thread() != links[1].receive_thread());
        stop.store(true, SeqCst);
    });
    drop(server);
}

#[test]
fn new_links_go_to_the_thread_with_the_fewest() {
    let handler = Server::new(echo);
    let (server, address) = serve(Options { receive_threads: 3, ..Options::default() }, handler.clone());
    let clients: Vec<_> = (0..9).map(|_| connect(address, 0)).collect();
    eventually("all are open", || server.links().len() == 9);
    let mut counts = [0; 3];
    for link in server.links() {
        counts[link.receive_thread] += 1;
    }
    // One thread has the listening socket as well.
    assert!(counts.iter().all(|count| (2..=4).contains(count)), "{counts:?}");
    drop(clients);
}

#[test]
fn whoever_gives_up_connecting_leaves_no_link() {
    let (server, address) = serve(Options::default(), Server::new(echo));
    for receive_threads in [0, 1] {
        let calls = Arc::new(Client::default());
        let options = client_options(receive_threads);
        let transporter = Transporter::start(options, identity(Role::Client), calls.clone()).unwrap();
        let mut connecting = Box::pin(transporter.connect(&address.to_string(), &secret(), TIMEOUT));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(connecting.as_mut().poll(&mut context).is_pending());
        drop(connecting);
        eventually("the link is closed", || calls.closed.lock().is_some());
        assert_eq!(transporter.statistics().links_open, 0);
    }
    eventually("there too", || server.statistics().links_accepted == 2 && server.statistics().links_open == 0);
}

#[test]
fn shutdown_says_goodbye_and_waits_for_answers() {
    let handler = Server::new(|link, frame| {
        let task = link.clone();
        link.spawn(async move {
            let mut waited = false;
            std::future::poll_fn(|context| {
                if waited {
                    return Poll::Ready(());
                }
                waited = true;
                let waker = context.waker().clone();
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(50));
                    waker.wake();
                });
                Poll::Pending
            })
            .await;
            answer(&task, &frame, Urgency::Adaptive);
        });
    });
    let (server, address) = serve(Options::default(), handler.clone());
    let client = connect(address, 0);
    let request = client.calls.ask(&client.link, b"slow", Urgency::Force).unwrap();
    eventually("it has arrived", || server.links().first().is_some_and(|link| link.requests == 1));
    let stopping = server.clone();
    let stop = std::thread::spawn(move || stopping.shutdown(Duration::from_secs(5)));
    assert_eq!(client.wait(request).unwrap(), &b"slow"[..]);
    stop.join().unwrap();
    eventually("the link is closed", || client.link.is_closed());
    assert_eq!(client.calls.goodbyes.load(SeqCst), 1);
    assert_eq!(handler.closed.lock().len(), 1);
    assert!(try_connect(address, client_options(0), &secret()).is_err());
}

#[test]
fn shutdown_does_not_wait_for_ever() {
    let (server, address) = serve(Options::default(), Server::new(|link, _| link.spawn(std::future::pending())));
    let client = connect(address, 0);
    let request = client.calls.ask(&client.link, b"never", Urgency::Force).unwrap();
    eventually("it has arrived", || server.links().first().is_some_and(|link| link.requests == 1));
    let begin = std::time::Instant::now();
    server.shutdown(Duration::from_millis(100));
    assert!(begin.elapsed() < Duration::from_secs(3));
    assert!(client.wait(request).is_err());
}

#[test]
fn threads_end_with_the_transporter() {
    struct Nobody;
    impl rauk_transporter::Handler for Nobody {
        fn on_open(&self, _: &Arc<rauk_transporter::Link>) {}
        fn on_frame(&self, _: &Arc<rauk_transporter::Link>, _: rauk_wire::Frame) {}
        fn on_close(&self, _: &Arc<rauk_transporter::Link>, _: &CloseReason) {}
    }
    let handler = Arc::new(Nobody);
    for receive_threads in [0, 2] {
        let transporter =
            Transporter::start(client_options(receive_threads), identity(Role::Client), handler.clone()).unwrap();
        drop(transporter);
        // Every thread holds the handler through what they share.
        eventually("threads end", || Arc::strong_count(&handler) == 1);
    }
}

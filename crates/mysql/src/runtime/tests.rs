use super::*;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, channel};
use std::task::{Context, Poll};

const LONG: Duration = Duration::from_secs(60);

fn runtime() -> Runtime {
    Runtime::start("runtime-test".into()).unwrap()
}

/// Is ready at its second poll, and wakes itself for it.
async fn give_way() {
    let mut given = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut given, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

fn registered(runtime: &Runtime, stream: UnixStream) -> Registered<mio::net::UnixStream> {
    stream.set_nonblocking(true).unwrap();
    Registered::new(runtime, mio::net::UnixStream::from_std(stream)).unwrap()
}

async fn read(socket: &Registered<mio::net::UnixStream>, space: &mut [u8]) -> usize {
    poll_fn(|cx| {
        socket.poll_io(Direction::Read, cx, |mut socket| {
            let n = socket.read(space)?;
            Ok(if n > 0 && n < space.len() { Done::All(n) } else { Done::Some(n) })
        })
    })
    .await
    .unwrap()
}

async fn write(socket: &Registered<mio::net::UnixStream>, bytes: &[u8]) -> usize {
    poll_fn(|cx| socket.poll_io(Direction::Write, cx, |mut socket| socket.write(bytes).map(Done::Some))).await.unwrap()
}

#[test]
fn tasks_that_give_way_take_turns() {
    let runtime = runtime();
    let (sender, order) = channel();
    let start = Arc::new(Mutex::new(()));
    let hold = start.lock();
    for name in ["a", "b"] {
        let (sender, start) = (sender.clone(), start.clone());
        runtime.spawn(async move {
            drop(start.lock());
            for _ in 0..3 {
                sender.send(name).unwrap();
                give_way().await;
            }
        });
    }
    drop((hold, sender));
    assert_eq!(order.iter().collect::<Vec<_>>().concat(), "ababab");
    runtime.end(LONG);
}

#[test]
fn others_run_while_a_task_computes_and_afterwards() {
    let runtime = runtime();
    let (done, finished) = channel();
    // Each computes until the next one says that it runs; the last one needs nobody.
    let mut before = None;
    for number in 0..20 {
        let (sender, next) = channel::<()>();
        let last: Option<std::sync::mpsc::Sender<()>> = before.replace(sender);
        let done = done.clone();
        runtime.spawn(async move {
            if let Some(last) = last {
                last.send(()).unwrap();
            }
            let next = Mutex::new(next);
            if number < 19 {
                beside(&mut || next.lock().recv().unwrap());
            }
            give_way().await;
            done.send(number).unwrap();
        });
    }
    let mut all: Vec<i32> = finished.iter().take(20).collect();
    all.sort_unstable();
    assert_eq!(all, (0..20).collect::<Vec<_>>());
    drop(before);
    runtime.end(LONG);
    assert_eq!(runtime.shared().threads.lock().all, 0);
}

#[test]
fn spare_threads_are_used_again() {
    let runtime = runtime();
    for _ in 0..50 {
        let (sender, done) = channel();
        let (other, wait) = channel();
        runtime.spawn(async move {
            let wait = Mutex::new(wait);
            beside(&mut || wait.lock().recv().unwrap());
            sender.send(()).unwrap();
        });
        runtime.spawn(async move { other.send(()).unwrap() });
        done.recv().unwrap();
    }
    assert!(runtime.shared().threads.lock().all <= SPARES + 2);
    runtime.end(LONG);
}

#[test]
fn timers_end_in_their_order_and_not_before_their_time() {
    let runtime = runtime();
    let (sender, ended) = channel();
    let start = Instant::now();
    for milliseconds in [30, 10, 20] {
        let sender = sender.clone();
        let deadline = start + Duration::from_millis(milliseconds);
        runtime.spawn(async move {
            sleep_until(deadline).await;
            assert!(Instant::now() >= deadline);
            sender.send(milliseconds).unwrap();
        });
    }
    assert_eq!(ended.iter().take(3).collect::<Vec<_>>(), [10, 20, 30]);
    let (sender, ended) = channel();
    runtime.spawn(async move {
        let never = timeout_at(Instant::now() + Duration::from_millis(5), std::future::pending::<()>()).await;
        let soon = timeout_at(Instant::now() + LONG, give_way()).await;
        let mut timer = std::pin::pin!(sleep(LONG));
        let first = poll_fn(|cx| Poll::Ready(timer.as_mut().poll(cx).is_ready())).await;
        timer.as_mut().reset(Instant::now() + Duration::from_millis(5));
        timer.as_mut().await;
        sender.send((never, soon, first)).unwrap();
    });
    assert_eq!(ended.recv().unwrap(), (None, Some(()), false));
    assert_eq!(runtime.shared().timers.next(), None, "timers that were dropped are gone");
    runtime.end(LONG);
}

/// A timer of a thread that computes is seen by the one that sleeps.
#[test]
fn a_timer_from_a_thread_without_a_seat_wakes_the_sleeper() {
    let runtime = runtime();
    let (sender, ended) = channel();
    runtime.spawn(async move {
        let shared = home();
        // The spare thread has the seat and sleeps without a deadline.
        beside(&mut || {
            while !shared.sleeping.load(SeqCst) {
                std::thread::yield_now();
            }
        });
        sleep(Duration::from_millis(1)).await;
        sender.send(()).unwrap();
    });
    ended.recv_timeout(LONG).unwrap();
    runtime.end(LONG);
}

/// A task whose socket is always ready gives way to others.
#[test]
fn a_socket_that_is_always_ready_does_not_keep_the_seat() {
    let runtime = runtime();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (busy, mut feeder) = (registered(&runtime, ours), theirs);
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, fed) = (stop.clone(), stop.clone());
    let writer = std::thread::spawn(move || while !fed.load(SeqCst) && feeder.write_all(&[7; 4096]).is_ok() {});
    let (begin, begun) = channel();
    runtime.spawn(async move {
        let mut space = [0; 1];
        while read(&busy, &mut space).await != 0 && !stopped.load(SeqCst) {
            let _ = begin.send(());
        }
    });
    begun.recv_timeout(LONG).unwrap();
    let (sender, ended) = channel();
    runtime.spawn(async move { sender.send(()).unwrap() });
    let other_ran = ended.recv_timeout(LONG);
    stop.store(true, SeqCst);
    other_ran.unwrap();
    drop(begun);
    runtime.end(LONG);
    writer.join().unwrap();
}

#[test]
fn sockets_carry_what_is_larger_than_their_buffers() {
    let runtime = runtime();
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let socket = registered(&runtime, ours);
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let expected = bytes.clone();
    let (sender, ended) = channel();
    runtime.spawn(async move {
        let mut sent = 0;
        while sent < bytes.len() {
            sent += write(&socket, &bytes[sent..]).await;
        }
        let (mut back, mut space) = (Vec::new(), [0; 1000]);
        loop {
            let n = read(&socket, &mut space).await;
            if n == 0 {
                break;
            }
            back.extend_from_slice(&space[..n]);
        }
        // The end may be read before the poll set tells of it.
        while !socket.is_read_closed() {
            give_way().await;
        }
        sender.send(back).unwrap();
    });
    let mut received = vec![0; expected.len()];
    theirs.read_exact(&mut received).unwrap();
    assert!(received == expected);
    theirs.write_all(&received).unwrap();
    theirs.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(ended.recv().unwrap() == expected);
    runtime.end(LONG);
}

/// Bytes that come while a read is under way on a thread without a seat are told by another one.
#[test]
fn what_is_told_during_a_read_is_not_lost() {
    let runtime = runtime();
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let (ours, echo) = (registered(&runtime, ours), theirs.try_clone().unwrap());
    let (sender, ended) = channel();
    runtime.spawn(async move {
        let (mut sum, mut space) = (0u64, [0; 16]);
        loop {
            let mut n = 0;
            poll_fn(|cx: &mut Context<'_>| {
                let mut outcome = Poll::Pending;
                // The whole poll runs beside the thread that looks at the sockets.
                beside(&mut || {
                    outcome = ours.poll_io(Direction::Read, cx, |mut socket| {
                        n = socket.read(&mut space)?;
                        Ok(if n > 0 && n < space.len() { Done::All(n) } else { Done::Some(n) })
                    });
                });
                outcome
            })
            .await
            .unwrap();
            if n == 0 {
                break;
            }
            sum += space[..n].iter().map(|&byte| u64::from(byte)).sum::<u64>();
        }
        sender.send(sum).unwrap();
    });
    let mut sum = 0;
    for round in 0..20_000_u32 {
        let byte = (round % 256) as u8;
        theirs.write_all(&[byte]).unwrap();
        sum += u64::from(byte);
    }
    drop((theirs, echo));
    assert_eq!(ended.recv_timeout(LONG).unwrap(), sum);
    runtime.end(LONG);
}

#[test]
fn no_wake_from_another_thread_is_lost() {
    let runtime = runtime();
    let count = Arc::new(AtomicUsize::new(0));
    let waker = Arc::new(futures::task::AtomicWaker::new());
    let (sender, ended) = channel();
    const ROUNDS: usize = 50_000;
    let task = (count.clone(), waker.clone());
    runtime.spawn(async move {
        let (count, waker) = task;
        for next in 1..=ROUNDS {
            poll_fn(|cx| {
                waker.register(cx.waker());
                if count.load(SeqCst) >= next { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
        sender.send(()).unwrap();
    });
    for _ in 0..ROUNDS {
        count.fetch_add(1, SeqCst);
        waker.wake();
    }
    ended.recv_timeout(LONG).unwrap();
    runtime.end(LONG);
}

struct Told(std::sync::mpsc::Sender<&'static str>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.send("dropped").unwrap();
    }
}

fn told() -> (Told, Receiver<&'static str>) {
    let (sender, receiver) = channel();
    (Told(sender), receiver)
}

#[test]
fn a_panic_ends_its_task_alone() {
    let runtime = runtime();
    let (told, dropped) = told();
    runtime.spawn(async move {
        let _told = told;
        give_way().await;
        panic!("a test's panic");
    });
    dropped.recv_timeout(LONG).unwrap();
    let (sender, ended) = channel();
    runtime.spawn(async move { sender.send(()).unwrap() });
    ended.recv_timeout(LONG).unwrap();
    while !runtime.shared().tasks.lock().is_empty() {
        std::thread::yield_now();
    }
    runtime.end(LONG);
}

#[test]
fn the_end_drops_tasks_that_wait_and_those_that_compute() {
    let runtime = runtime();
    let (waiting, waiting_dropped) = told();
    runtime.spawn(async move {
        let _told = waiting;
        std::future::pending::<()>().await;
    });
    let (computing, computing_dropped) = told();
    let (begin, begun) = channel();
    let (release, wait) = channel::<()>();
    runtime.spawn(async move {
        let _told = computing;
        let wait = Mutex::new(wait);
        begin.send(()).unwrap();
        beside(&mut || wait.lock().recv().unwrap());
        std::future::pending::<()>().await;
    });
    begun.recv().unwrap();
    runtime.end(Duration::from_millis(1));
    waiting_dropped.recv_timeout(LONG).unwrap();
    assert!(computing_dropped.try_recv().is_err(), "it computes");
    release.send(()).unwrap();
    computing_dropped.recv_timeout(LONG).unwrap();
    runtime.end(LONG);
    assert_eq!(runtime.shared().threads.lock().all, 0);
}

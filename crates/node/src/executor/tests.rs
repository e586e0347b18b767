//! The executor under loom (all interleavings of small cases) and under real threads.
//!
//! Loom: `scripts/loom.sh`.

use super::*;

#[cfg(loom)]
mod model {
    use super::*;
    use loom::sync::{Arc, Notify};
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Wake, Waker};

    struct Wakes(Notify);

    impl Wake for Wakes {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.notify();
        }
    }

    /// Polls again only when woken: a wake that is lost is a deadlock, which loom finds.
    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let wakes = std::sync::Arc::new(Wakes(Notify::new()));
        let waker = Waker::from(wakes.clone());
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return value;
            }
            wakes.0.wait();
        }
    }

    fn guarded() -> Arc<Guarded<u32>> {
        Arc::new(Guarded::new(0, || panic!("a job panicked")))
    }

    fn model(f: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(f);
    }

    /// Three bring work at once: all of it is done, nobody waits for ever, nobody meets another inside.
    #[test]
    fn all_work_is_done() {
        model(|| {
            let g = guarded();
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let g = g.clone();
                    loom::thread::spawn(move || block_on(g.with(Class::Point, |n| *n += 1)))
                })
                .collect();
            block_on(g.with(Class::Scan, |n| *n += 1));
            threads.into_iter().for_each(|t| t.join().unwrap());
            assert_eq!(g.try_with(|n| *n).ok(), Some(3));
        });
    }

    /// Work that nobody waits for is done by whoever leaves last.
    #[test]
    fn detached_work_is_not_left_behind() {
        model(|| {
            let g = guarded();
            let other = g.clone();
            let thread = loom::thread::spawn(move || other.detach(Class::Resolve, |n| *n += 1));
            g.detach(Class::Background, |n| *n += 1);
            thread.join().unwrap();
            assert_eq!(g.try_with(|n| *n).ok(), Some(2));
        });
    }

    /// A task that goes away while it waits: its job is either done wholly or not at all, what it borrows is not touched afterwards, and others go on.
    #[test]
    fn a_task_may_go_away() {
        model(|| {
            let g = guarded();
            let other = g.clone();
            let thread = loom::thread::spawn(move || block_on(other.with(Class::Point, |n| *n += 1)));
            let mut done = 0;
            {
                let mut waiting = pin!(g.with(Class::Point, |n| {
                    *n += 10;
                    done = 10;
                }));
                let _ = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }
            thread.join().unwrap();
            assert_eq!(g.try_with(|n| *n).ok(), Some(1 + done));
        });
    }

    /// The guard is handed to a waiting task, which goes on or goes away; either way nothing is left behind.
    #[test]
    fn a_handed_over_guard_is_taken_up() {
        for goes_away in [false, true] {
            model(move || {
                let g = guarded();
                let other = g.clone();
                let thread = loom::thread::spawn(move || {
                    if !goes_away {
                        return block_on(other.with(Class::Background, |n| *n += 1));
                    }
                    let mut first = pin!(other.with(Class::Background, |n| *n += 1));
                    let _ = first.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                });
                // A turn that is full at once: the release hands over to whoever waits.
                g.try_with(|n| *n += 1).ok();
                g.hand_over_for_test();
                thread.join().unwrap();
                assert!(g.try_with(|n| *n).is_ok(), "work or the guard was left behind");
            });
        }
    }
}

#[cfg(not(loom))]
mod threads {
    use super::*;
    use crate::runtime::threads::block_on;
    use std::future::Future;
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, AtomicUsize};
    use std::task::{Context, Poll};
    use std::time::{Duration, Instant};

    const CLASSES: [Class; 5] = [Class::Resolve, Class::Prepare, Class::Point, Class::Scan, Class::Background];

    #[test]
    fn many_threads_one_value() {
        let g = Guarded::new((0u64, false), || panic!("a job panicked"));
        std::thread::scope(|scope| {
            for thread in 0..8usize {
                let g = &g;
                scope.spawn(move || {
                    for i in 0..20_000 {
                        let bring = |v: &mut (u64, bool)| {
                            assert!(!std::mem::replace(&mut v.1, true), "two are inside");
                            v.0 += 1;
                            v.1 = false;
                        };
                        let class = CLASSES[(thread + i) % 5];
                        if i % 7 == 0 {
                            g.detach(class, bring);
                        } else {
                            block_on(g.with(class, bring));
                        }
                    }
                });
            }
        });
        assert_eq!(block_on(g.with(Class::Background, |v| v.0)), 160_000);
    }

    /// Tasks that are dropped while they wait leave the rest working.
    #[test]
    fn tasks_come_and_go() {
        let g = Guarded::new(0u64, || panic!("a job panicked"));
        let finished = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let (g, finished) = (&g, &finished);
                scope.spawn(move || {
                    for i in 0..5_000 {
                        let mut mine = 0;
                        if (i + thread) % 3 == 0 {
                            let mut once = pin!(g.with(Class::Point, |n| {
                                *n += 1;
                                mine += 1;
                            }));
                            let _ = once.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                        } else {
                            block_on(g.with(Class::Point, |n| {
                                *n += 1;
                                mine += 1;
                            }));
                        }
                        finished.fetch_add(mine, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(block_on(g.with(Class::Point, |n| *n)), finished.load(Ordering::Relaxed) as u64);
    }

    fn occupy(g: &Guarded<Vec<u32>>, meanwhile: impl FnOnce() + Send) {
        let (inside, go) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                block_on(g.with(Class::Point, |_| {
                    inside.store(true, Ordering::SeqCst);
                    while !go.load(Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                }));
            });
            while !inside.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            meanwhile();
            go.store(true, Ordering::SeqCst);
        });
    }

    #[test]
    fn waiting_work_is_done_in_the_order_of_its_class() {
        let g = Guarded::new(Vec::new(), || panic!("a job panicked"));
        occupy(&g, || {
            for (i, class) in CLASSES.iter().rev().enumerate() {
                g.detach(*class, move |v| v.push(i as u32));
            }
        });
        assert_eq!(block_on(g.with(Class::Point, |v| v.clone())), vec![4, 3, 2, 1, 0]);
    }

    #[test]
    fn background_work_is_not_starved() {
        let g = Guarded::new(Vec::new(), || panic!("a job panicked"));
        occupy(&g, || {
            g.detach(Class::Background, |v| v.push(999));
            (0..60).for_each(|i| g.detach(Class::Point, move |v| v.push(i)));
        });
        let order = block_on(g.with(Class::Point, |v| v.clone()));
        assert!(order.iter().position(|&n| n == 999).unwrap() < 20);
    }

    /// Undo that nobody waited for comes before what is brought after it, also when it is a slow class's turn.
    #[test]
    fn nothing_overtakes_what_frees_others() {
        for before in 0..25 {
            let g = Guarded::new(Vec::new(), || panic!("a job panicked"));
            occupy(&g, || {
                (0..before).for_each(|_| g.detach(Class::Resolve, |_| ()));
                g.detach(Class::Resolve, |v| v.push(1));
                g.detach(Class::Point, |v| v.push(2));
                g.detach(Class::Background, |v| v.push(3));
            });
            assert_eq!(block_on(g.with(Class::Background, |v| v.clone())), vec![1, 2, 3], "after {before}");
        }
    }

    /// After a full turn the guard goes to a task that waits, which does the rest.
    #[test]
    fn a_turn_ends() {
        let g = Guarded::new(Vec::new(), || panic!("a job panicked"));
        let mut last = Box::pin(g.with(Class::Resolve, |v| v.push(1)));
        occupy(&g, || {
            (0..3 * TURN).for_each(|_| g.detach(Class::Resolve, |v| v.push(0)));
            assert_eq!(last.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
        });
        // The holder did a turn and went; what is left waits for the task it woke.
        assert_eq!(g.state.load(Ordering::SeqCst), WORK);
        block_on(last);
        assert_eq!(block_on(g.with(Class::Background, |v| v.len())), 3 * TURN as usize + 1);
    }

    /// Whoever enters meets what was announced before, and nobody is made to enter for it.
    #[test]
    fn what_is_announced_is_brought_before_the_next_work() {
        let g = Guarded::new(Vec::new(), || panic!("a job panicked"));
        let queue = std::sync::Arc::new(std::sync::Mutex::new(vec![1]));
        let first = queue.clone();
        g.set_first(move |list: &mut Vec<u32>| list.append(&mut first.lock().unwrap()));
        assert!(g.try_with(|list| list.is_empty()).is_ok_and(|is_empty| is_empty), "nothing was announced");
        g.announce();
        assert!(g.try_with(|list| list.clone()).is_ok_and(|list| list == [1]));
        queue.lock().unwrap().push(2);
        g.announce();
        let seen = g.try_with(|list| {
            // Brought while the guard is held: for the next.
            queue.lock().unwrap().push(3);
            g.announce();
            g.detach(Class::Point, |list| list.push(4));
            list.clone()
        });
        assert!(seen.is_ok_and(|list| list == [1, 2]));
        assert!(g.try_with(|list| list.clone()).is_ok_and(|list| list == [1, 2, 3, 4]));
    }

    #[test]
    fn a_panic_is_told_and_the_value_never_touched_again() {
        let told = std::sync::Arc::new(AtomicUsize::new(0));
        let count = told.clone();
        let g = std::sync::Arc::new(Guarded::new(0u32, move || {
            count.fetch_add(1, Ordering::SeqCst);
        }));
        let inner = g.clone();
        let thread = std::thread::spawn(move || block_on(inner.with(Class::Point, |_| panic!("on purpose"))));
        assert!(thread.join().is_err());
        assert_eq!(told.load(Ordering::SeqCst), 1);
        assert!(g.try_with(|_| ()).is_err());
    }

    #[test]
    fn a_thread_never_waits_long_for_point_work() {
        let g = Guarded::new(0u64, || panic!("a job panicked"));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    block_on(g.with(Class::Background, |n| *n += 1));
                }
            });
            let start = Instant::now();
            for _ in 0..10_000 {
                block_on(g.with(Class::Point, |n| *n += 1));
            }
            assert!(start.elapsed() < Duration::from_secs(10));
            stop.store(true, Ordering::Relaxed);
        });
    }
}

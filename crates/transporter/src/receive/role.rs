//! Without receive threads: who receives.
//!
//! The receiver lies here when nobody has it. A thread that waits for something takes it, receives for everybody, and goes as soon as what it waits for is there, handing
//! the receiver to the next waiter (one is woken). So a request over the network needs no change of threads: who asks reads the answer.
//!
//! When nobody waits, a *stand-in* thread receives, for whoever is not a thread: tasks of an asynchronous runtime, and links that must notice their end. It does not take
//! the receiver at once, or a program that asks again and again would wake it each time: it looks about every millisecond, and takes what has been lying for as long. While waiters have
//! the receiver all the time it sleeps without a time-out, until one leaves and no other comes. A waiter that finds the stand-in receiving interrupts it.

use super::{ReceiveSet, Receiver};
use crate::shared::Shared;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// The receiver may lie for so long before the stand-in takes it.
const GRACE: Duration = Duration::from_millis(1);
/// Looks that find a waiter receiving, before the stand-in sleeps until one leaves.
const LOOKS: u32 = 50;

pub(crate) struct Role {
    set: Arc<ReceiveSet>,
    state: Mutex<State>,
    stand_in: Condvar,
    /// Somebody waits for the receiver: the stand-in must let go.
    wanted: AtomicBool,
}

#[derive(Default)]
struct State {
    receiver: Option<Box<Receiver>>,
    waiters: VecDeque<Arc<Waiter>>,
    /// Since when the receiver has been lying here.
    left: Option<Instant>,
    /// The stand-in sleeps without a time-out; has the receiver.
    asleep: bool,
    stands_in: bool,
}

/// A thread in [`Role::receive_until`].
struct Waiter {
    thread: Thread,
    set: Option<Arc<ReceiveSet>>,
    /// What it waits for may be there.
    woken: AtomicBool,
    /// It may take the receiver.
    offered: AtomicBool,
    receiving: AtomicBool,
}

impl Waiter {
    fn new(set: Option<Arc<ReceiveSet>>) -> Arc<Waiter> {
        Arc::new(Waiter {
            thread: std::thread::current(),
            set,
            woken: AtomicBool::new(false),
            offered: AtomicBool::new(false),
            receiving: AtomicBool::new(false),
        })
    }
}

impl Wake for Waiter {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.woken.swap(true, SeqCst) {
            return;
        }
        match &self.set {
            Some(set) if self.receiving.load(SeqCst) => set.interrupt(),
            _ => self.thread.unpark(),
        }
    }
}

/// The receiver in a waiter's hands; goes on to the next one when it is dropped.
struct Held<'a> {
    role: &'a Role,
    receiver: Option<Box<Receiver>>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.role.state.lock().receiver = self.receiver.take();
        self.role.pass_on();
    }
}

/// Waits on this thread, for a transporter whose own threads receive.
pub(crate) fn wait<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let waiter = Waiter::new(None);
    let waker = Waker::from(waiter.clone());
    loop {
        if let Poll::Ready(value) = poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        while !waiter.woken.swap(false, SeqCst) {
            std::thread::park();
        }
    }
}

impl Role {
    pub fn new(set: Arc<ReceiveSet>) -> Role {
        Role { set, state: Mutex::default(), stand_in: Condvar::new(), wanted: AtomicBool::new(false) }
    }

    /// The receiver begins its life here.
    pub fn put(&self, receiver: Receiver) {
        self.state.lock().receiver = Some(Box::new(receiver));
    }

    pub fn receive_until<T>(&self, shared: &Shared, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        let waiter = Waiter::new(Some(self.set.clone()));
        let waker = Waker::from(waiter.clone());
        let mut held: Option<Held<'_>> = None;
        let mut queued = false;
        loop {
            waiter.woken.store(false, SeqCst);
            if let Poll::Ready(value) = poll(&mut Context::from_waker(&waker)) {
                if held.is_none() && queued {
                    self.leave(&waiter);
                }
                return value;
            }
            if shared.ending.load(SeqCst) {
                held = None;
            } else if held.is_none() {
                held = self.take(&waiter);
                queued = held.is_none();
            }
            match &mut held {
                Some(Held { receiver: Some(receiver), .. }) => {
                    waiter.receiving.store(true, SeqCst);
                    let leave = || waiter.woken.load(SeqCst) || shared.ending.load(SeqCst);
                    while !leave() {
                        receiver.turn(&leave);
                    }
                    waiter.receiving.store(false, SeqCst);
                }
                _ => {
                    while !waiter.woken.load(SeqCst) && !waiter.offered.swap(false, SeqCst) {
                        std::thread::park();
                    }
                }
            }
        }
    }

    /// The receiver, if it lies here; else the waiter is queued for it.
    fn take(&self, waiter: &Arc<Waiter>) -> Option<Held<'_>> {
        let mut state = self.state.lock();
        if let Some(receiver) = state.receiver.take() {
            state.waiters.retain(|other| !Arc::ptr_eq(other, waiter));
            self.wanted.store(!state.waiters.is_empty(), SeqCst);
            return Some(Held { role: self, receiver: Some(receiver) });
        }
        if !state.waiters.iter().any(|other| Arc::ptr_eq(other, waiter)) {
            state.waiters.push_back(waiter.clone());
        }
        self.wanted.store(true, SeqCst);
        let stands_in = state.stands_in;
        drop(state);
        if stands_in {
            // It sleeps perhaps, and must let go. A waiter that receives goes on.
            self.set.interrupt();
        }
        None
    }

    /// A waiter goes without having received.
    fn leave(&self, waiter: &Arc<Waiter>) {
        let mut state = self.state.lock();
        state.waiters.retain(|other| !Arc::ptr_eq(other, waiter));
        self.wanted.store(!state.waiters.is_empty(), SeqCst);
        let lies_here = state.receiver.is_some();
        drop(state);
        if lies_here {
            self.pass_on();
        }
    }

    /// The receiver lies here: the next waiter is told, or else the stand-in will find it.
    fn pass_on(&self) {
        let mut state = self.state.lock();
        let mut next = None;
        while let Some(waiter) = state.waiters.pop_front() {
            // One that is awake already comes by itself, if it has to wait on.
            if !waiter.woken.load(SeqCst) {
                next = Some(waiter);
                break;
            }
        }
        self.wanted.store(!state.waiters.is_empty(), SeqCst);
        state.left = Some(Instant::now());
        match next {
            Some(waiter) => {
                drop(state);
                waiter.offered.store(true, SeqCst);
                waiter.thread.unpark();
            }
            None if state.asleep => {
                self.stand_in.notify_one();
            }
            None => {}
        }
    }

    pub fn on_end(&self) {
        self.wanted.store(true, SeqCst);
        self.set.interrupt();
        let _state = self.state.lock();
        self.stand_in.notify_one();
    }

    /// The stand-in's life.
    pub fn stand_in(&self, shared: &Shared) {
        let ending = || shared.ending.load(SeqCst);
        let mut state = self.state.lock();
        let mut looks = 0;
        loop {
            let lies_here = state.receiver.is_some();
            if ending() && lies_here {
                let receiver = state.receiver.take().expect("just seen");
                drop(state);
                return receiver.end();
            }
            let long = state.left.is_none_or(|left| left.elapsed() >= GRACE);
            if lies_here && long && state.waiters.is_empty() {
                let mut receiver = state.receiver.take().expect("just seen");
                state.stands_in = true;
                drop(state);
                let leave = || self.wanted.load(SeqCst) || ending();
                while !leave() {
                    receiver.turn(&leave);
                }
                state = self.state.lock();
                state.receiver = Some(receiver);
                state.stands_in = false;
                drop(state);
                self.pass_on();
                state = self.state.lock();
                looks = 0;
                continue;
            }
            looks = if lies_here { 0 } else { looks + 1 };
            if looks >= LOOKS && !ending() {
                state.asleep = true;
                self.stand_in.wait(&mut state);
                state.asleep = false;
                looks = 0;
            } else {
                self.stand_in.wait_for(&mut state, GRACE);
            }
        }
    }
}

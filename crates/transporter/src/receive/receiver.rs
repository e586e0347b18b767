//! The receiver: one thread at a time has it, and goes round with it.

use super::opening::Opening;
use super::poll_set::{PollSet, Ready};
use super::round::{self, Spawned};
use super::sockets::Socket;
use super::spin::Spin;
use super::tasks::{self, Task};
use super::{Command, ReceiveSet};
use crate::shared::Shared;
use crate::{CloseReason, Link};
use bytes::BytesMut;
use slab::Slab;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often the loads of receive threads are compared.
const COMPARE: Duration = Duration::from_secs(1);
/// A link moves when its thread has handled twice as many frames as another, and so many more.
const UNEVEN: u64 = 10_000;

/// Something to look at later. What it is about may be gone by then.
pub(super) enum Timer {
    Opening { token: usize, serial: u64 },
    Accept(usize),
    Stalled(Weak<Link>),
}

pub(crate) struct Receiver {
    pub(super) shared: Arc<Shared>,
    pub(super) set: Arc<ReceiveSet>,
    pub(super) poll: PollSet,
    pub(super) sockets: Slab<Socket>,
    pub(super) tasks: Slab<Task>,
    /// What sockets are read into.
    pub(super) buffer: BytesMut,
    /// Sockets that may have something left.
    pub(super) again: Vec<usize>,
    timers: BTreeMap<(Duration, u64), Timer>,
    ready: Vec<Ready>,
    spin: Spin,
    /// Frames since the loads were last compared, and when that was.
    pub(super) frames: u64,
    compared: Duration,
}

impl Receiver {
    pub fn new(shared: Arc<Shared>, index: usize, poll: PollSet) -> Receiver {
        Receiver {
            set: shared.sets[index].clone(),
            spin: Spin::new(shared.options.longest_spin),
            shared,
            poll,
            sockets: Slab::new(),
            tasks: Slab::new(),
            buffer: BytesMut::new(),
            again: Vec::new(),
            timers: BTreeMap::new(),
            ready: Vec::new(),
            frames: 0,
            compared: Duration::ZERO,
        }
    }

    /// A receive thread's life.
    pub fn run(mut self) {
        let shared = self.shared.clone();
        let ending = || shared.ending.load(SeqCst);
        while !ending() {
            self.turn(&ending);
        }
        self.end();
    }

    /// Goes round once: does what there is to do; if there is nothing, spins and then sleeps until something has happened, or `leave` says so (whoever
    /// changes its mind interrupts the set).
    pub fn turn(&mut self, leave: &dyn Fn() -> bool) {
        self.work();
        if leave() {
            return;
        }
        let mut ready = std::mem::take(&mut self.ready);
        ready.clear();
        self.look(leave, &mut ready);
        if !ready.is_empty() || !self.again.is_empty() {
            round::begin(&self.set);
            let again = std::mem::take(&mut self.again);
            for event in &ready {
                self.handle(*event);
            }
            for token in again {
                self.handle(Ready { token, readable: true, writable: false, ended: false });
            }
            round::end();
        }
        self.ready = ready;
    }

    /// Fills `ready`; waits for that if nothing is left to do.
    fn look(&mut self, leave: &dyn Fn() -> bool, ready: &mut Vec<Ready>) {
        let busy = |receiver: &Receiver| !receiver.again.is_empty() || receiver.set.has_work.load(SeqCst);
        let start = self.shared.now();
        let bound = self.spin.bound(start);
        if busy(self) {
            self.poll.wait(Some(Duration::ZERO), ready);
            return;
        }
        if !bound.is_zero() {
            let mut spun = false;
            loop {
                if self.poll.wait(Some(Duration::ZERO), ready) {
                    if spun {
                        self.set.spins_that_found.fetch_add(1, Relaxed);
                        self.spin.found(self.shared.now().saturating_sub(start));
                    }
                    return;
                }
                if busy(self) || leave() {
                    return;
                }
                if !spun {
                    spun = true;
                    self.set.spins.fetch_add(1, Relaxed);
                }
                let now = self.shared.now();
                self.shared.send_thread.send_due(now);
                if now >= start + bound {
                    break;
                }
                std::hint::spin_loop();
            }
        }
        // What must go soon goes now: this thread has nothing else to do, and later others would have to wake up for it.
        let now = self.shared.now();
        self.shared.send_thread.send_due(now + self.shared.longest_wait() / 2);
        let timeout = self.timers.first_key_value().map(|((at, _), _)| at.saturating_sub(now));
        self.set.sleeping.store(true, SeqCst);
        if self.set.has_work.load(SeqCst) || leave() {
            self.set.sleeping.store(false, SeqCst);
            return;
        }
        self.set.sleeps.fetch_add(1, Relaxed);
        self.poll.wait(timeout, ready);
        self.set.sleeping.store(false, SeqCst);
        self.spin.slept(self.shared.now().saturating_sub(now));
    }

    /// Commands, woken tasks, timers, the balance of loads.
    fn work(&mut self) {
        let now = self.shared.now();
        if self.timers.first_key_value().is_some_and(|((at, _), _)| *at <= now) {
            self.fire_timers(now);
        }
        if now >= self.compared + COMPARE {
            self.compare_loads(now);
        }
        if !self.set.has_work.load(Relaxed) || !self.set.has_work.swap(false, SeqCst) {
            return;
        }
        round::begin(&self.set);
        let (commands, woken) = {
            let mut inbox = self.set.inbox.lock();
            (std::mem::take(&mut inbox.commands), std::mem::take(&mut inbox.woken))
        };
        for command in commands {
            self.obey(command);
        }
        for waker in woken {
            waker.is_taken();
            let key = waker.key();
            let Some(task) = self.tasks.get_mut(key).filter(|task| Arc::ptr_eq(&task.waker, &waker)) else { continue };
            if !tasks::poll(&task.link, &mut task.future, &waker) {
                self.remove_task(key);
            }
            self.adopt_spawned();
        }
        round::end();
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Listen(listening) => self.listen(listening),
            Command::Open(opening) => self.open(opening),
            Command::Adopt(socket) => self.adopt(socket),
            Command::StopListening => self.stop_listening(),
            Command::Spawn(link, mut future) => {
                if self.token_of(&link).is_none() {
                    // It has moved, or is moving; or it has closed, and the future ends.
                    if !link.is_closed() {
                        self.shared.sets[link.place().set].command(Command::Spawn(link, future));
                    }
                    return;
                }
                let waker = tasks::TaskWaker::new(self.set.clone());
                if tasks::poll(&link, &mut future, &waker) {
                    self.adopt_task(Spawned { link, future, waker });
                }
                self.adopt_spawned();
            }
            Command::Closed(link) => self.at_home(link, Command::Closed, |receiver, _, token| receiver.finish(token)),
            Command::Resume(link) => self.at_home(link, Command::Resume, |receiver, _, token| {
                receiver.handle(Ready { token, readable: true, writable: false, ended: false });
            }),
            Command::OverLimit(link) => self.at_home(link, Command::OverLimit, |receiver, link, _| {
                receiver.watch_stalled(&link);
            }),
            Command::Move(link, target) => {
                if let Some(token) = self.token_of(&link) {
                    self.move_link(token, target);
                }
            }
        }
    }

    /// The link's number here, if it is here.
    fn token_of(&self, link: &Link) -> Option<usize> {
        let place = link.place();
        place.token.filter(|_| place.set == self.set.index)
    }

    /// Does what is asked if the link is here, and passes it on if it has moved. (One that is on its way here is looked at when it arrives.)
    fn at_home(&mut self, link: Arc<Link>, again: fn(Arc<Link>) -> Command, act: fn(&mut Receiver, Arc<Link>, usize)) {
        let place = link.place();
        match place.token {
            _ if place.set != self.set.index => self.shared.sets[place.set].command(again(link)),
            Some(token) => {
                if matches!(self.sockets.get(token), Some(Socket::Link(socket)) if Arc::ptr_eq(&socket.link, &link)) {
                    act(self, link, token);
                }
            }
            None => {}
        }
    }

    /// The link is over its limit, perhaps: sees that its peer reads, with one timer at a time.
    pub(super) fn watch_stalled(&mut self, link: &Arc<Link>) {
        if !link.watched.swap(true, Relaxed) {
            self.watch_on(link);
        }
    }

    fn watch_on(&mut self, link: &Arc<Link>) {
        match link.check_stalled() {
            Some(at) => self.add_timer(at, Timer::Stalled(Arc::downgrade(link))),
            None => link.watched.store(false, Relaxed),
        }
    }

    pub(super) fn add_timer(&mut self, at: Duration, timer: Timer) {
        self.timers.insert((at, self.shared.next_serial()), timer);
    }

    /// An opening's deadline, under its own serial number.
    pub(super) fn add_opening_timer(&mut self, opening: &Opening, token: usize) {
        self.timers.insert((opening.deadline, opening.serial), Timer::Opening { token, serial: opening.serial });
    }

    pub(super) fn remove_opening_timer(&mut self, opening: &Opening) {
        self.timers.remove(&(opening.deadline, opening.serial));
    }

    /// Tokens of the openings, the one with the earliest deadline first.
    pub(super) fn openings(&self) -> impl Iterator<Item = usize> {
        self.timers.values().filter_map(|timer| match timer {
            Timer::Opening { token, .. } => Some(*token),
            _ => None,
        })
    }

    fn fire_timers(&mut self, now: Duration) {
        round::begin(&self.set);
        while let Some(first) = self.timers.first_entry().filter(|entry| entry.key().0 <= now) {
            match first.remove() {
                Timer::Opening { token, serial } => self.on_opening_deadline(token, serial, now),
                Timer::Accept(token) => {
                    if matches!(self.sockets.get(token), Some(Socket::Listening(_))) {
                        self.handle(Ready { token, readable: true, writable: false, ended: false });
                    }
                }
                Timer::Stalled(link) => {
                    if let Some(link) = link.upgrade() {
                        self.watch_on(&link);
                    }
                }
            }
        }
        round::end();
    }

    fn on_opening_deadline(&mut self, token: usize, serial: u64, now: Duration) {
        let Some(socket @ Socket::Opening(_)) = self.sockets.get_mut(token) else { return };
        let Socket::Opening(mut opening) = std::mem::replace(socket, Socket::Taken) else { unreachable!("just seen") };
        if opening.serial != serial || opening.deadline > now {
            self.sockets[token] = Socket::Opening(opening);
            return;
        }
        opening.on_deadline();
        self.discard(token, &opening);
    }

    pub(super) fn adopt_task(&mut self, spawned: Spawned) {
        let Spawned { link, future, waker } = spawned;
        // A link that has closed meanwhile has no tasks.
        let Some(token) = self.token_of(&link) else { return };
        let Some(Socket::Link(socket)) = self.sockets.get_mut(token) else { return };
        let position = socket.tasks.len();
        let key = self.tasks.insert(Task { link, future, waker: waker.clone(), token, position });
        socket.tasks.push(key);
        waker.set_key(key);
    }

    fn remove_task(&mut self, key: usize) {
        let task = self.tasks.remove(key);
        if let Some(Socket::Link(socket)) = self.sockets.get_mut(task.token) {
            socket.tasks.swap_remove(task.position);
            if let Some(moved) = socket.tasks.get(task.position) {
                self.tasks[*moved].position = task.position;
            }
            if let Some(target) = socket.moving_to.filter(|_| socket.tasks.is_empty()) {
                self.move_link(task.token, target);
            }
        }
    }

    /// About once a second: when this thread has much more to do than another, the link goes there that makes them most even.
    fn compare_loads(&mut self, now: Duration) {
        let (mine, over) = (self.frames, now.saturating_sub(self.compared));
        self.frames = 0;
        self.compared = now;
        if self.shared.sets.len() == 1 {
            return;
        }
        let fresh = over < 2 * COMPARE;
        self.set.set_load(if fresh { mine } else { 0 }, now);
        let least = self.shared.sets.iter().min_by_key(|set| set.load(now)).expect("there is one");
        let theirs = least.load(now);
        let excess = mine.saturating_sub(theirs);
        let uneven = fresh && mine > theirs * 2 && excess > UNEVEN && !Arc::ptr_eq(least, &self.set);
        let target = least.index;
        let mut best: Option<(u64, usize)> = None;
        for (token, socket) in &mut self.sockets {
            let Socket::Link(socket) = socket else { continue };
            let frames = std::mem::take(&mut socket.frames);
            // What moves must leave the difference smaller than it was.
            let after = excess.abs_diff(frames * 2);
            if frames > 0 && frames < excess && best.is_none_or(|(least, _)| after < least) {
                best = Some((after, token));
            }
        }
        if let (true, Some((_, token))) = (uneven, best) {
            self.move_link(token, target);
        }
    }

    /// Closes everything.
    pub fn end(mut self) {
        for command in self.set.end() {
            match command {
                Command::Adopt(socket) => self.adopt(socket),
                other => drop(other),
            }
        }
        let tokens: Vec<usize> = self.sockets.iter().map(|(token, _)| token).collect();
        for token in tokens {
            if let Some(Socket::Link(socket)) = self.sockets.get(token) {
                socket.link.close(CloseReason::Here);
                self.finish(token);
            }
        }
    }
}

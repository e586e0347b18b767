//! The brake on guessing passwords, by address, by account, and by both.
//!
//! * *Address.* After several failures from one address its next refusals come late, up to three seconds, and while
//!   many of its connections are being held back, the address is not served at all.
//! * *Account.* After several failures of one account from an address, or more of them from all addresses together,
//!   attempts at that account take turns in each address: the password of the next is looked at when its turn comes,
//!   however many connections ask. What does not get a turn within [`QUEUE`] is refused unseen (1129). An attempt
//!   counts as a failure from its beginning until it has proven the password, so that many at once count too.
//!
//! Nobody is locked out by strangers: an address from which the account was opened lately takes no turns, a new address
//! gets its first turn at once, and loopback is never refused unseen. So whoever has the password waits for nothing but
//! for others who guess the same account's password at the same address. The addresses of one IPv6 network (64 bits)
//! count as one, since one machine has them all.
//!
//! The tables are bounded: what was quiet longest is forgotten first, and those who have proven the password last.
//! Failures fade, one half a minute.
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, hash_map::RandomState};
use std::hash::{BuildHasher, Hash};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Failures of an address, or of an account at one address, that cost nothing.
const FREE: u32 = 5;
/// Failures of an account, from all addresses together, that cost nothing.
const FREE_OF_ACCOUNT: u32 = 20;
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(3);
const HALF_LIFE: Duration = Duration::from_secs(60);
/// The longest wait for a turn: two attempts may stand before this one.
pub const QUEUE: Duration = Duration::from_secs(6);
/// Connections held back at a time for one address.
const HELD: u32 = 32;
/// Entries of each table.
const ENTRIES: usize = 4096;

/// How long the next failure, or turn, is put off after so many failures beyond the free ones.
fn delay_after(failures: u32, free: u32) -> Duration {
    match failures.checked_sub(free) {
        None | Some(0) => Duration::ZERO,
        Some(more) => FIRST_DELAY.saturating_mul(1 << (more - 1).min(10)).min(LONGEST_DELAY),
    }
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Failures {
    fn none(now: Instant) -> Failures {
        Failures { count: 0, last: now }
    }

    fn fade(&mut self, now: Instant) {
        let halves = now.saturating_duration_since(self.last).as_secs() / HALF_LIFE.as_secs();
        if halves > 0 {
            self.count = self.count.checked_shr(halves.min(31) as u32).unwrap_or(0);
            self.last = now;
        }
    }

    fn add(&mut self, now: Instant) {
        self.fade(now);
        self.count = self.count.saturating_add(1);
    }
}

#[derive(Clone, Copy, Debug)]
struct Address {
    failures: Failures,
    /// Its connections that wait for a turn, or whose refusal waits.
    held: u32,
}

/// An account at an address.
#[derive(Clone, Copy, Debug)]
struct Pair {
    failures: Failures,
    /// When the next turn begins.
    next: Instant,
    proven: bool,
}

/// When an attempt may be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    pub wait: Duration,
    /// Its turn is too far off: it is refused when it has waited, unless another of its kind has proven the password by
    /// then.
    pub refused: bool,
}

#[derive(Default)]
struct Tables {
    addresses: BTreeMap<IpAddr, Address>,
    accounts: HashMap<u64, Failures>,
    pairs: HashMap<(IpAddr, u64), Pair>,
}

#[derive(Default)]
pub struct Throttle {
    tables: Mutex<Tables>,
    hasher: RandomState,
}

/// What counts as one address.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => IpAddr::from((u128::from(address) >> 64 << 64).to_be_bytes()),
        other => other,
    }
}

/// Makes room for one more entry.
fn make_room<K: Copy + Eq + Hash, V>(table: &mut HashMap<K, V>, age: impl Fn(&V) -> (bool, Instant)) {
    if table.len() >= ENTRIES
        && let Some(oldest) = table.iter().min_by_key(|(_, v)| age(v)).map(|(k, _)| *k)
    {
        table.remove(&oldest);
    }
}

impl Tables {
    fn pair(&mut self, key: (IpAddr, u64), now: Instant) -> &mut Pair {
        if !self.pairs.contains_key(&key) {
            make_room(&mut self.pairs, |p| (p.proven, p.failures.last));
        }
        self.pairs.entry(key).or_insert(Pair { failures: Failures::none(now), next: now, proven: false })
    }

    fn account(&mut self, key: u64, now: Instant) -> &mut Failures {
        if !self.accounts.contains_key(&key) {
            make_room(&mut self.accounts, |failures| (false, failures.last));
        }
        self.accounts.entry(key).or_insert(Failures::none(now))
    }

    fn address(&mut self, peer: IpAddr, now: Instant) -> &mut Address {
        let addresses = &mut self.addresses;
        if addresses.len() >= ENTRIES && !addresses.contains_key(&peer) {
            addresses.retain(|_, a| {
                a.failures.fade(now);
                a.failures.count > 0 || a.held > 0
            });
            if addresses.len() >= ENTRIES
                && let Some(oldest) =
                    addresses.iter().filter(|(_, a)| a.held == 0).min_by_key(|(_, a)| a.failures.last).map(|(k, _)| *k)
            {
                addresses.remove(&oldest);
            }
        }
        addresses.entry(peer).or_insert(Address { failures: Failures::none(now), held: 0 })
    }
}

impl Throttle {
    fn account(&self, user: &str) -> u64 {
        self.hasher.hash_one(user)
    }

    /// Whether an address may try at all now.
    pub fn admits(&self, peer: IpAddr) -> bool {
        peer.is_loopback() || self.tables.lock().addresses.get(&network(peer)).is_none_or(|a| a.held < HELD)
    }

    /// When the password of an attempt may be looked at. It counts as failed until [`Throttle::proven`] says otherwise.
    pub fn turn(&self, peer: IpAddr, user: &str, now: Instant) -> Turn {
        let (peer, account) = (network(peer), self.account(user));
        let at_once = Turn { wait: Duration::ZERO, refused: false };
        let mut tables = self.tables.lock();
        let pair = tables.pair((peer, account), now);
        if pair.proven {
            return at_once;
        }
        pair.failures.add(now);
        let of_pair = pair.failures.count;
        let of_account = tables.account(account, now);
        of_account.add(now);
        let apart = delay_after(of_pair, FREE).max(delay_after(of_account.count, FREE_OF_ACCOUNT));
        if apart.is_zero() {
            return at_once;
        }
        let pair = tables.pair((peer, account), now);
        let begin = pair.next.max(now);
        let wait = begin - now;
        if wait > QUEUE {
            return Turn { wait: QUEUE, refused: !peer.is_loopback() };
        }
        pair.next = begin + apart;
        Turn { wait, refused: false }
    }

    /// The account was opened from this address.
    pub fn proven(&self, peer: IpAddr, user: &str, now: Instant) {
        let key = (network(peer), self.account(user));
        let mut tables = self.tables.lock();
        let pair = tables.pair(key, now);
        let known = pair.proven;
        *pair = Pair { failures: Failures::none(now), next: now, proven: true };
        if !known {
            let of_account = tables.account(key.1, now);
            of_account.count = of_account.count.saturating_sub(1);
        }
    }

    /// Whether the account was opened from this address lately.
    pub fn is_proven(&self, peer: IpAddr, user: &str) -> bool {
        let key = (network(peer), self.account(user));
        self.tables.lock().pairs.get(&key).is_some_and(|pair| pair.proven)
    }

    /// Notes a failure of an address and says how long to hold the refusal back.
    pub fn failed(&self, peer: IpAddr, now: Instant) -> Duration {
        let mut tables = self.tables.lock();
        let address = tables.address(network(peer), now);
        address.failures.add(now);
        delay_after(address.failures.count, FREE)
    }

    /// Counts a connection as held back until the guard is dropped.
    pub fn hold(&self, peer: IpAddr, now: Instant) -> Held<'_> {
        let peer = network(peer);
        self.tables.lock().address(peer, now).held += 1;
        Held { throttle: self, peer }
    }
}

/// A connection that is held back.
pub struct Held<'a> {
    throttle: &'a Throttle,
    peer: IpAddr,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(address) = self.throttle.tables.lock().addresses.get_mut(&self.peer) {
            address.held = address.held.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const AT_ONCE: Turn = Turn { wait: Duration::ZERO, refused: false };

    fn peer(n: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(0x0A00_0000 + n))
    }

    #[test]
    fn slower_and_slower_then_forgiven() {
        let throttle = Throttle::default();
        let start = Instant::now();
        let delays: Vec<u64> = (0..12).map(|_| throttle.failed(peer(1), start).as_millis() as u64).collect();
        assert_eq!(delays, [0, 0, 0, 0, 0, 100, 200, 400, 800, 1600, 3000, 3000]);
        assert_eq!(throttle.failed(peer(2), start), Duration::ZERO, "others are not concerned");
        assert_eq!(throttle.failed(peer(1), start + 3 * HALF_LIFE), Duration::ZERO);
    }

    #[test]
    fn attempts_at_one_account_take_turns_however_many_connections_ask() {
        let throttle = Throttle::default();
        let now = Instant::now();
        let turns: Vec<Turn> = (0..100).map(|_| throttle.turn(peer(1), "root", now)).collect();
        let looked_at: Vec<_> = turns.iter().filter(|t| !t.refused).map(|t| t.wait.as_millis()).collect();
        assert_eq!(looked_at, [0, 0, 0, 0, 0, 0, 100, 300, 700, 1500, 3100], "of a hundred connections at once");
        assert!(turns[looked_at.len()..].iter().all(|t| *t == Turn { wait: QUEUE, refused: true }));
        let later = |seconds| throttle.turn(peer(1), "root", now + Duration::from_secs(seconds));
        let looked_at = (10..40).filter(|seconds| !later(*seconds).refused).count();
        assert!((10..=12).contains(&looked_at), "{looked_at} in thirty seconds");
        // Another account at this address, and this account at another, are not concerned.
        assert_eq!(throttle.turn(peer(1), "app", now), AT_ONCE);
        assert_eq!(throttle.turn(peer(2), "root", now), AT_ONCE);
        // Loopback waits, and is looked at.
        let here = IpAddr::from([127, 0, 0, 1]);
        let last = (0..20).map(|_| throttle.turn(here, "root", now)).last();
        assert_eq!(last, Some(Turn { wait: QUEUE, refused: false }));
        let later = now + 20 * HALF_LIFE;
        assert_eq!((throttle.turn(peer(1), "root", later), throttle.turn(peer(1), "root", later)), (AT_ONCE, AT_ONCE));
    }

    /// Failures from many addresses count for the account; the owner gets in all the same.
    #[test]
    fn strangers_slow_each_other_and_not_the_owner() {
        let throttle = Throttle::default();
        let now = Instant::now();
        throttle.proven(peer(1), "root", now);
        for n in 0..200 {
            assert_eq!(throttle.turn(peer(1000 + n), "root", now), AT_ONCE, "the first of an address");
        }
        let stranger: Vec<_> = (0..3).map(|_| throttle.turn(peer(1000), "root", now).wait.as_secs()).collect();
        assert_eq!(stranger, [0, 3, 6]);
        assert!((0..50).all(|_| throttle.turn(peer(1), "root", now) == AT_ONCE), "known");
        assert_eq!(throttle.turn(peer(2), "root", now), AT_ONCE, "the owner from a new address");
        assert!(throttle.turn(peer(2), "root", now).wait > Duration::ZERO);
        throttle.proven(peer(2), "root", now);
        assert!(throttle.is_proven(peer(2), "root") && !throttle.is_proven(peer(2), "app"));
        assert_eq!(throttle.turn(peer(2), "root", now), AT_ONCE);
    }

    /// Who has the password leaves no trace, however many connections it opens from however many addresses.
    #[test]
    fn right_passwords_make_nobody_wait() {
        let throttle = Throttle::default();
        let now = Instant::now();
        for n in 0..1000 {
            assert_eq!(throttle.turn(peer(n % 100), "app", now), AT_ONCE);
            throttle.proven(peer(n % 100), "app", now);
        }
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let throttle = Throttle::default();
        let now = Instant::now();
        let peer = |n: u16| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 2, n, 4, 5, n));
        let last = (0..20).map(|n| throttle.failed(peer(n), now)).last();
        assert_eq!(last, Some(LONGEST_DELAY));
        let elsewhere = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 3, 0, 0, 0, 1));
        assert_eq!(throttle.failed(elsewhere, now), Duration::ZERO);
        let mapped = IpAddr::V6(Ipv4Addr::new(10, 1, 2, 3).to_ipv6_mapped());
        assert_eq!(network(mapped), IpAddr::from([10, 1, 2, 3]));
    }

    #[test]
    fn too_many_at_once_are_not_admitted() {
        let throttle = Throttle::default();
        let now = Instant::now();
        let mut held: Vec<_> = (0..HELD).map(|_| throttle.hold(peer(1), now)).collect();
        assert!(!throttle.admits(peer(1)));
        assert!(throttle.admits(peer(2)));
        held.pop();
        assert!(throttle.admits(peer(1)));
    }

    #[test]
    fn the_tables_are_bounded() {
        let throttle = Throttle::default();
        let now = Instant::now();
        throttle.proven(peer(1), "owner", now);
        for n in 2..ENTRIES as u32 + 500 {
            let at = now + Duration::from_millis(n.into());
            throttle.turn(peer(n), &format!("user{n}"), at);
            throttle.failed(peer(n), at);
        }
        let tables = throttle.tables.lock();
        assert!(tables.addresses.len() <= ENTRIES && tables.accounts.len() <= ENTRIES && tables.pairs.len() <= ENTRIES);
        drop(tables);
        assert!(throttle.is_proven(peer(1), "owner"), "who guesses does not make it forget who is known");
    }
}

//! The simulated network: messages between sites are late, lost, doubled and reordered, and links are cut in one direction or both, all from the seed.
//!
//! A *site* is a machine with an address; what runs there changes with every start. Messages of one link arrive in order unless the weather says otherwise, as on a TCP connection
//! that now and then is made anew. What arrives lies in the process's inbox until it is polled, so a paused process finds everything when it is resumed; what arrives at a site
//! where nothing runs is lost. A process that has ended cannot send, though what it sent before may still be on its way.
use crate::executor::Executor;
use crate::runtime::SimRuntime;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_node::member::network::Network;
use rauk_types::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// A machine of the simulation: 1, 2, 3 …
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Site(pub u16);

impl Site {
    /// Where others reach it.
    pub fn address(self) -> String {
        format!("site-{}:7306", self.0)
    }

    fn of_address(address: &str) -> Option<Site> {
        address.strip_prefix("site-")?.strip_suffix(":7306")?.parse().ok().map(Site)
    }
}

/// What the network does to each message.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Weather {
    /// Delay of most messages, in microseconds, from … to.
    pub delay_us: (u64, u64),
    /// Part of the messages that take longer.
    pub slow: f64,
    /// How long these take at most, in milliseconds.
    pub slow_ms: u64,
    pub loss: f64,
    pub doubled: f64,
    /// Part of the messages that may overtake others of their link.
    pub reordered: f64,
}

impl Default for Weather {
    fn default() -> Self {
        Weather { delay_us: (50, 400), slow: 0.0, slow_ms: 0, loss: 0.0, doubled: 0.0, reordered: 0.0 }
    }
}

impl Weather {
    pub fn delay(&self, rng: &mut SmallRng) -> Duration {
        let (low, high) = self.delay_us;
        let usual = Duration::from_micros(rng.random_range(low..=high.max(low)));
        if self.slow_ms > 0 && rng.random_bool(self.slow) {
            return usual + Duration::from_micros(rng.random_range(0..self.slow_ms * 1000));
        }
        usual
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub sent: u64,
    pub bytes: u64,
    pub lost: u64,
    pub doubled: u64,
    pub cut: u64,
    pub delivered: u64,
}

/// The whole network. Clones are the same.
#[derive(Clone)]
pub struct SimNetwork {
    shared: Arc<Shared>,
}

struct Shared {
    executor: Executor,
    state: Mutex<State>,
}

struct State {
    rng: SmallRng,
    weather: Weather,
    /// Directions that let nothing through.
    cuts: BTreeSet<(Site, Site)>,
    /// Directions in which a message takes any time up to this.
    slow: BTreeMap<(Site, Site), Duration>,
    /// When the newest message of a link arrives: later ones come after it.
    newest: BTreeMap<(Site, Site), Duration>,
    inboxes: BTreeMap<Site, Inbox>,
    traffic: Traffic,
}

/// Of the process that runs at a site.
struct Inbox {
    process: u32,
    messages: VecDeque<Vec<u8>>,
    waker: Option<Waker>,
}

/// Takes messages in. Called in the receiving process.
pub type Receiver = Box<dyn Fn(&[u8]) + Send>;

/// One process's side of the network.
pub struct Endpoint {
    network: SimNetwork,
    site: Site,
    runtime: SimRuntime,
    peers: Mutex<BTreeMap<NodeId, Site>>,
}

impl SimNetwork {
    pub fn new(seed: u64, executor: Executor) -> SimNetwork {
        let state = State {
            rng: SmallRng::seed_from_u64(seed),
            weather: Weather::default(),
            cuts: BTreeSet::new(),
            slow: BTreeMap::new(),
            newest: BTreeMap::new(),
            inboxes: BTreeMap::new(),
            traffic: Traffic::default(),
        };
        SimNetwork { shared: Arc::new(Shared { executor, state: Mutex::new(state) }) }
    }

    /// The process now is what runs at `site`: in place of an earlier one, whose messages are forgotten.
    pub fn attach(&self, site: Site, runtime: &SimRuntime) -> Arc<Endpoint> {
        let inbox = Inbox { process: runtime.number(), messages: VecDeque::new(), waker: None };
        self.shared.state.lock().inboxes.insert(site, inbox);
        Arc::new(Endpoint { network: self.clone(), site, runtime: runtime.clone(), peers: Mutex::default() })
    }

    /// Nothing runs at `site` any more.
    pub fn detach(&self, site: Site) {
        self.shared.state.lock().inboxes.remove(&site);
    }

    pub fn set_weather(&self, weather: Weather) {
        self.shared.state.lock().weather = weather;
    }

    /// Nothing gets from `from` to `to` until it is mended; what is on its way there may still arrive.
    pub fn cut(&self, from: Site, to: Site) {
        self.shared.state.lock().cuts.insert((from, to));
    }

    pub fn mend(&self, from: Site, to: Site) {
        self.shared.state.lock().cuts.remove(&(from, to));
    }

    /// Messages from `from` to `to` take any time up to `most`, each for itself, until it is mended with `None`.
    pub fn slow_down(&self, from: Site, to: Site, most: Option<Duration>) {
        let mut state = self.shared.state.lock();
        match most {
            Some(most) => state.slow.insert((from, to), most),
            None => state.slow.remove(&(from, to)),
        };
    }

    pub fn mend_all(&self) {
        let mut state = self.shared.state.lock();
        state.cuts.clear();
        state.slow.clear();
    }

    /// Cuts everything, both ways, between members of different groups.
    pub fn partition(&self, groups: &[Vec<Site>]) {
        let mut state = self.shared.state.lock();
        for (i, group) in groups.iter().enumerate() {
            for other in groups.iter().enumerate().filter(|(j, _)| *j != i).flat_map(|(_, other)| other) {
                state.cuts.extend(group.iter().map(|site| (*site, *other)));
            }
        }
    }

    /// Whether messages get from one site to the other.
    pub fn reaches(&self, from: Site, to: Site) -> bool {
        from == to || !self.shared.state.lock().cuts.contains(&(from, to))
    }

    /// Whether they can talk: both ways.
    pub fn connected(&self, a: Site, b: Site) -> bool {
        self.reaches(a, b) && self.reaches(b, a)
    }

    /// The delay of one more message, in the weather as it is.
    pub fn delay(&self) -> Duration {
        let state = &mut *self.shared.state.lock();
        state.weather.delay(&mut state.rng)
    }

    pub fn traffic(&self) -> Traffic {
        self.shared.state.lock().traffic
    }

    fn send(&self, from: Site, to: Site, departs: Duration, message: Vec<u8>) {
        let state = &mut *self.shared.state.lock();
        state.traffic.sent += 1;
        state.traffic.bytes += message.len() as u64;
        let weather = state.weather;
        if state.cuts.contains(&(from, to)) {
            state.traffic.cut += 1;
            return;
        }
        if state.rng.random_bool(weather.loss) {
            state.traffic.lost += 1;
            return;
        }
        let copies = if state.rng.random_bool(weather.doubled) { 2 } else { 1 };
        state.traffic.doubled += copies - 1;
        for copy in 0..copies {
            let mut at = departs + weather.delay(&mut state.rng);
            let slow = state.slow.get(&(from, to)).copied();
            if let Some(most) = slow {
                at += Duration::from_micros(state.rng.random_range(0..most.as_micros() as u64));
            }
            let newest = state.newest.entry((from, to)).or_default();
            if copy == 0 && slow.is_none() && !state.rng.random_bool(weather.reordered) {
                at = at.max(*newest);
                *newest = at;
            }
            let (network, message) = (self.clone(), message.clone());
            self.shared.executor.at(at, move || network.arrive(from, to, message));
        }
    }

    fn arrive(&self, from: Site, to: Site, message: Vec<u8>) {
        let state = &mut *self.shared.state.lock();
        // What was on its way when the link was cut is lost with it, mostly.
        if state.cuts.contains(&(from, to)) && state.rng.random_bool(0.7) {
            state.traffic.cut += 1;
            return;
        }
        if let Some(inbox) = state.inboxes.get_mut(&to) {
            state.traffic.delivered += 1;
            inbox.messages.push_back(message);
            if let Some(waker) = inbox.waker.take() {
                waker.wake();
            }
        }
    }
}

impl Endpoint {
    /// Hands what arrives to `receiver`, in a task of the process. What arrived before waits in the inbox.
    pub fn receive(&self, receiver: Receiver) {
        let (network, site, process) = (self.network.clone(), self.site, self.runtime.number());
        self.runtime.spawn("network", async move {
            loop {
                let next = std::future::poll_fn(|context| {
                    let state = &mut *network.shared.state.lock();
                    let Some(inbox) = state.inboxes.get_mut(&site).filter(|inbox| inbox.process == process) else {
                        return Poll::Ready(None);
                    };
                    if let Some(message) = inbox.messages.pop_front() {
                        return Poll::Ready(Some(message));
                    }
                    inbox.waker = Some(context.waker().clone());
                    Poll::Pending
                });
                let Some(message) = next.await else { return };
                receiver(&message);
                crate::node::client::yield_now().await;
            }
        });
    }
}

impl Network for Endpoint {
    fn send(&self, to: NodeId, message: Vec<u8>) {
        let Some(site) = self.peers.lock().get(&to).copied() else { return };
        if !self.runtime.is_alive() {
            return;
        }
        let departs = self.runtime.simulated_now();
        if departs <= self.network.shared.executor.now() {
            return self.network.send(self.site, site, departs, message);
        }
        // It waits for its disk: the message leaves after that, if the process does.
        let (network, from, runtime) = (self.network.clone(), self.site, self.runtime.clone());
        self.network.shared.executor.at(departs, move || {
            if runtime.is_alive() {
                network.send(from, site, departs, message);
            }
        });
    }

    fn set_peers(&self, addresses: &BTreeMap<NodeId, String>) {
        let known = addresses.iter().filter_map(|(node, address)| Some((*node, Site::of_address(address)?)));
        *self.peers.lock() = known.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SimClock;
    use crate::executor::{Drift, Stopped};

    /// Three toy nodes, each sending numbers to the next and noting what it receives.
    struct Toys {
        executor: Executor,
        network: SimNetwork,
        runtimes: Vec<SimRuntime>,
        received: Arc<Mutex<Vec<(u16, u64)>>>,
    }

    fn toys(seed: u64, weather: Weather, count: u64) -> Toys {
        let executor = Executor::new(seed, SimClock::default());
        let network = SimNetwork::new(seed, executor.clone());
        network.set_weather(weather);
        let received: Arc<Mutex<Vec<(u16, u64)>>> = Arc::default();
        let peers: BTreeMap<NodeId, String> = (1..=3).map(|n| (NodeId(n), Site(n).address())).collect();
        let mut runtimes = Vec::new();
        for n in 1..=3u16 {
            let runtime = executor.process(None, Drift::default());
            let endpoint = network.attach(Site(n), &runtime);
            endpoint.set_peers(&peers);
            let notes = received.clone();
            endpoint.receive(Box::new(move |message| {
                let number = u64::from_le_bytes(message.try_into().expect("eight bytes"));
                notes.lock().push((n, number));
            }));
            let handle = runtime.handle();
            runtime.spawn("sender", async move {
                for number in 0..count {
                    endpoint.send(NodeId(n % 3 + 1), number.to_le_bytes().to_vec());
                    handle.sleep(Duration::from_millis(1)).await;
                }
            });
            runtimes.push(runtime);
        }
        Toys { executor, network, runtimes, received }
    }

    impl Toys {
        fn run(&self, time: Duration) {
            let end = self.executor.now() + time;
            self.executor.at(end, || {});
            assert_eq!(self.executor.run_until(|| self.executor.now() >= end), Stopped::Done);
        }

        fn of(&self, n: u16) -> Vec<u64> {
            self.received.lock().iter().filter(|(to, _)| *to == n).map(|(_, number)| *number).collect()
        }
    }

    #[test]
    fn good_weather_delivers_everything_in_order() {
        let toys = toys(1, Weather { slow: 0.2, slow_ms: 20, ..Weather::default() }, 100);
        toys.run(Duration::from_secs(1));
        for n in 1..=3 {
            assert_eq!(toys.of(n), (0..100).collect::<Vec<_>>());
        }
    }

    #[test]
    fn bad_weather_loses_doubles_and_reorders_as_the_seed_says() {
        let bad = Weather { slow: 0.2, slow_ms: 20, loss: 0.1, doubled: 0.1, reordered: 0.3, ..Weather::default() };
        let history = |seed| {
            let toys = toys(seed, bad, 200);
            toys.run(Duration::from_secs(1));
            let received = toys.received.lock().clone();
            (received, toys.executor.trace(), toys.network.traffic())
        };
        let (received, trace, traffic) = history(5);
        assert!(traffic.lost > 20 && traffic.doubled > 20, "{traffic:?}");
        let one: Vec<u64> = received.iter().filter(|(to, _)| *to == 1).map(|(_, number)| *number).collect();
        assert!(one.windows(2).any(|pair| pair[0] > pair[1]));
        assert_eq!(history(5), (received.clone(), trace, traffic));
        assert_ne!(history(6).0, received);
    }

    #[test]
    fn cuts_have_directions_and_are_mended() {
        let toys = toys(2, Weather::default(), 1000);
        toys.network.cut(Site(1), Site(2));
        toys.run(Duration::from_millis(100));
        assert!(toys.of(2).is_empty() && toys.of(3).len() > 50 && toys.of(1).len() > 50);
        assert!(toys.network.reaches(Site(2), Site(1)) && !toys.network.connected(Site(2), Site(1)));
        toys.network.mend(Site(1), Site(2));
        toys.network.partition(&[vec![Site(1), Site(2)], vec![Site(3)]]);
        toys.run(Duration::from_millis(10));
        let before = (toys.of(1).len(), toys.of(3).len());
        toys.run(Duration::from_millis(100));
        assert!(toys.of(2).len() > 50);
        assert_eq!((toys.of(1).len(), toys.of(3).len()), before);
        toys.network.mend_all();
        toys.run(Duration::from_millis(100));
        assert!(toys.of(3).len() > before.1 + 50);
    }

    #[test]
    fn the_paused_find_everything_later_and_the_dead_nothing() {
        let toys = toys(3, Weather::default(), 300);
        toys.run(Duration::from_millis(50));
        toys.runtimes[1].pause();
        toys.runtimes[2].kill();
        toys.network.detach(Site(3));
        toys.run(Duration::from_millis(1));
        let before: Vec<usize> = (1..=3).map(|n| toys.of(n).len()).collect();
        toys.run(Duration::from_millis(100));
        assert_eq!((1..=3).map(|n| toys.of(n).len()).collect::<Vec<_>>(), before);
        toys.runtimes[1].resume();
        toys.run(Duration::from_millis(300));
        assert_eq!(toys.of(2), (0..300).collect::<Vec<_>>());
        assert_eq!(toys.of(3).len(), before[2]);
    }
}

use super::*;
use crate::clock::SimClock;
use crate::cluster::network::Weather;
use crate::executor::{Drift, Stopped};
use crate::node::tables::{DATABASE, columns, table};
use rauk_manage::Command;
use rauk_manage::group::{
    CatalogAnswer, ClusterConfig, ClusterDurability, DEFAULT_MEMORY_RETURN, DEFAULT_REPLACE_AFTER,
};
use rauk_types::{Collation, DataType, TableId};
use std::collections::BTreeMap;

const TABLE: TableId = TableId(1);

struct World {
    executor: Executor,
    network: SimNetwork,
    consensus: SimConsensus,
    members: BTreeMap<Site, SimMember>,
    rng: SmallRng,
}

impl World {
    fn new(seed: u64, sites: u16) -> World {
        let executor = Executor::new(seed, SimClock::default());
        let network = SimNetwork::new(seed + 1, executor.clone());
        network.set_weather(Weather { slow: 0.1, slow_ms: 30, ..Weather::default() });
        let voters = (1..=3).map(Site).collect();
        let consensus = SimConsensus::new(seed + 2, executor.clone(), network.clone(), voters);
        let config = ClusterConfig {
            id: [1; 16],
            name: "sim".to_string(),
            partitions: 1,
            groups: None,
            replicas: 1,
            durability: ClusterDurability::Fsync,
            replace_after: DEFAULT_REPLACE_AFTER,
            memory_return: DEFAULT_MEMORY_RETURN,
        };
        consensus.commit(GroupCommand::Create { config, adopted: None });
        let database = Command::CreateDatabase {
            name: DATABASE.to_string(),
            collation: Collation::DEFAULT,
            comment: String::new(),
        };
        let mut schema = table("counted", columns(&[("id", DataType::BIGINT, false)]), Vec::new());
        schema.id = TABLE;
        schema.auto_increment = Some(0);
        for command in [database, Command::CreateTables { tables: vec![Arc::new(schema)] }] {
            let answer = consensus.commit(GroupCommand::Catalog { command, intent: None });
            assert!(matches!(answer, Answer::Catalog(CatalogAnswer::Applied(_))), "{answer:?}");
        }
        let mut world =
            World { executor, network, consensus, members: BTreeMap::new(), rng: SmallRng::seed_from_u64(seed) };
        (1..=sites).for_each(|site| world.start(Site(site)));
        world
    }

    fn start(&mut self, site: Site) {
        let runtime = self.executor.process(None, Drift::default());
        self.members.insert(site, self.consensus.start(site, &runtime));
    }

    fn restart(&mut self, site: Site) {
        self.consensus.stop(site);
        if let Some(member) = self.members.remove(&site) {
            member.runtime.kill();
        }
        self.start(site);
    }

    fn run(&self, time: Duration) {
        let end = self.executor.now() + time;
        self.executor.at(end, || {});
        assert_eq!(self.executor.run_until(|| self.executor.now() >= end), Stopped::Done);
    }

    /// Proposes at a site; the result appears in the slot.
    fn propose(&self, site: Site, command: GroupCommand) -> Arc<Mutex<Option<Result<Answer, ProposeError>>>> {
        let slot: Arc<Mutex<Option<_>>> = Arc::default();
        let (result, future) = (slot.clone(), self.members[&site].propose(command, Duration::from_secs(2)));
        self.members[&site].runtime.spawn("proposer", async move {
            let answer = future.await;
            *result.lock() = Some(answer);
        });
        slot
    }
}

fn reserve(count: u64) -> GroupCommand {
    GroupCommand::Reserve { table: TABLE, count }
}

/// Notes the index of each state that it is told of.
#[derive(Default)]
struct Notes(Mutex<Vec<u64>>);

impl Watcher for Notes {
    fn on_applied(&self, group: &Arc<Group>) {
        self.0.lock().push(group.index);
    }
}

#[test]
fn commands_are_applied_everywhere_in_order() {
    let world = World::new(1, 5);
    let notes = Arc::new(Notes::default());
    let watcher: Arc<dyn Watcher> = notes.clone();
    world.members[&Site(5)].watch(Arc::downgrade(&watcher));
    world.run(Duration::from_secs(1));
    let slots: Vec<_> = (1..=5).map(|site| world.propose(Site(site), reserve(10))).collect();
    world.run(Duration::from_secs(1));
    let mut firsts: Vec<u64> = slots
        .iter()
        .map(|slot| match slot.lock().clone() {
            Some(Ok(Answer::Numbers(first))) => first,
            other => panic!("{other:?}"),
        })
        .collect();
    firsts.sort_unstable();
    assert!(firsts.windows(2).all(|pair| pair[1] == pair[0] + 10), "{firsts:?}");
    let newest = world.consensus.group();
    assert!(world.members.values().all(|member| *member.group() == *newest));
    assert_eq!(*notes.0.lock(), (1..=newest.index).collect::<Vec<_>>());
}

#[test]
fn a_cut_off_minority_commits_nothing_and_its_leader_is_replaced() {
    let mut confirmed_old = 0;
    for seed in 0..20 {
        let world = World::new(seed, 4);
        world.run(Duration::from_secs(1));
        let (old, term) = world.consensus.leader().expect("elected");
        let others: Vec<Site> = (1..=4).map(Site).filter(|site| *site != old).collect();
        world.network.partition(&[vec![old], others.clone()]);
        let lost = world.propose(old, reserve(1));
        let before = world.consensus.group().index;
        world.run(Duration::from_millis(100));
        assert_eq!(world.members[&old].leading(), Some(term), "it believes to lead for a while");
        assert_eq!(world.consensus.group().index, before);
        world.run(Duration::from_millis(900));
        let (new, newer) = world.consensus.leader().expect("elected");
        assert!(new != old && newer > term);
        let answered = world.propose(others[0], reserve(1));
        world.run(Duration::from_secs(3));
        assert!(matches!(*lost.lock(), Some(Err(ProposeError::Unknown(_)))));
        assert!(matches!(*answered.lock(), Some(Ok(_))));
        assert!(world.members[&old].group().index < world.consensus.group().index);
        let slot = Arc::new(Mutex::new(None));
        let (result, confirm) = (slot.clone(), world.members[&old].confirm());
        world.members[&old].runtime.spawn("confirm", async move { *result.lock() = Some(confirm.await) });
        world.run(Duration::from_secs(2));
        assert_eq!(*slot.lock(), Some(None), "nobody follows it");
        confirmed_old += 1;
        world.network.mend_all();
        world.run(Duration::from_secs(1));
        assert!(world.members.values().all(|member| *member.group() == *world.consensus.group()));
    }
    assert_eq!(confirmed_old, 20);
}

#[test]
fn confirm_names_the_newest_command() {
    let world = World::new(3, 3);
    world.run(Duration::from_secs(1));
    for site in 1..=3 {
        world.propose(Site(site), reserve(5));
    }
    world.run(Duration::from_millis(200));
    let (leader, _) = world.consensus.leader().expect("elected");
    let slot = Arc::new(Mutex::new(None));
    let (result, confirm) = (slot.clone(), world.members[&leader].confirm());
    world.members[&leader].runtime.spawn("confirm", async move { *result.lock() = Some(confirm.await) });
    world.run(Duration::from_millis(300));
    assert_eq!(*slot.lock(), Some(Some(world.consensus.group().index)));
}

/// Sites come and go, links break: what was answered stays, once, and everybody ends with the same state.
#[test]
fn answered_commands_stay() {
    let mut unavailable = 0;
    for seed in 0..30 {
        let mut world = World::new(seed, 5);
        world.consensus.set_restless(0.2);
        world.consensus.set_lost_answers(0.05);
        let mut slots = Vec::new();
        for _ in 0..40 {
            let site = Site(world.rng.random_range(1..=5));
            slots.push(world.propose(site, reserve(1)));
            match world.rng.random_range(0..8) {
                0 => world.restart(site),
                1 => world.network.cut(site, Site(world.rng.random_range(1..=5))),
                2 => world.network.mend_all(),
                3 => world.members[&site].runtime.pause(),
                4 => world.members.values().for_each(|member| member.runtime.resume()),
                _ => {}
            }
            world.run(Duration::from_millis(world.rng.clone().random_range(0..200)));
        }
        world.network.mend_all();
        world.members.values().for_each(|member| member.runtime.resume());
        world.consensus.set_restless(0.0);
        world.run(Duration::from_secs(5));
        let mut numbers = Vec::new();
        for slot in &slots {
            match &*slot.lock() {
                Some(Ok(Answer::Numbers(first))) => numbers.push(*first),
                Some(Ok(other)) => panic!("{other:?}"),
                Some(Err(_)) => unavailable += 1,
                // Its process was killed.
                None => {}
            }
        }
        let answered = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), answered, "a number was given twice");
        let newest = world.consensus.group();
        assert!(newest.counters[&TABLE] > *numbers.last().expect("some were answered"));
        assert!(world.members.values().all(|member| *member.group() == *newest), "seed {seed}");
    }
    assert!(unavailable > 0);
}

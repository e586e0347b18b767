//! What goes wrong, as the scenario says: each kind in a task of its own, at random times, for random lengths, to random sites.
use super::network::Site;
use super::scenario::{Fault, FaultKind};
use super::workload::ballast;
use super::world::{End, MEMORY, World};
use crate::node::tables::DATABASE;
use crate::runtime::SimRuntime;
use rand::rngs::SmallRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rauk_log::Superblocks;
use rauk_manage::group::{GroupCommand, ReplicationGroup};
use rauk_node::runtime::Runtime;
use rauk_types::{GroupId, Member};
use std::time::Duration;

/// Seconds in which nobody is taken for gone.
const WITHIN_A_LEASE: f64 = 0.3;

/// One kind of fault, until simulated time `until`. What it has done it undoes when its time has come, also after that.
pub async fn run(fault: Fault, world: World, runtime: SimRuntime, seed: u64, until: Duration) {
    let mut striker = Striker { rng: SmallRng::seed_from_u64(seed), world, runtime, fault, until };
    striker.sleep(fault.after).await;
    loop {
        // Exponential, as of things that have no memory.
        let wait = -fault.every * (1.0 - striker.rng.random::<f64>()).ln();
        striker.sleep(wait).await;
        if striker.world.executor.now() >= until {
            return;
        }
        striker.strike().await;
    }
}

struct Striker {
    rng: SmallRng,
    world: World,
    runtime: SimRuntime,
    fault: Fault,
    until: Duration,
}

impl Striker {
    async fn sleep(&self, seconds: f64) {
        self.runtime.sleep(Duration::from_secs_f64(seconds)).await;
    }

    fn site(&mut self) -> Site {
        let sites = self.world.members();
        sites[self.rng.random_range(0..sites.len())]
    }

    fn lasts(&mut self) -> Duration {
        let (low, high) = self.fault.lasts;
        Duration::from_secs_f64(if high > low { self.rng.random_range(low..high) } else { low })
    }

    /// Runs `undo` when the fault's time is over.
    fn undo_after(&self, lasts: Duration, undo: impl FnOnce(World) + Send + 'static) {
        let world = self.world.clone();
        self.world.executor.after(lasts, move || undo(world));
    }

    async fn strike(&mut self) {
        let (world, lasts) = (self.world.clone(), self.lasts());
        match self.fault.kind {
            FaultKind::Kill => world.end(self.site(), End::Kill, lasts),
            FaultKind::Power => world.end(self.site(), End::Power, lasts),
            FaultKind::Wipe => {
                if world.wipe(self.site(), lasts) {
                    world.counts.add("wiped");
                }
            }
            FaultKind::WipeAndKill => {
                let site = self.site();
                if world.wipe(site, lasts) {
                    world.counts.add("wiped");
                    let others: Vec<Site> = world.members().into_iter().filter(|other| *other != site).collect();
                    let other = others[self.rng.random_range(0..others.len())];
                    let later = self.rng.random_range(0.0..WITHIN_A_LEASE);
                    self.sleep(later).await;
                    let how = if self.rng.random_bool(0.5) { End::Kill } else { End::Power };
                    world.end(other, how, lasts);
                }
            }
            FaultKind::Blackout => world.members().into_iter().for_each(|site| world.end(site, End::Power, lasts)),
            FaultKind::DamagedEnd => {
                if !self.all_is_twice() {
                    return;
                }
                world.members().into_iter().for_each(|site| world.end(site, End::Kill, lasts));
                let site = self.site();
                // What is claimed to be synced must be there, else the node does not start.
                let disk = world.disk(site);
                let superblocks = Superblocks::load(&disk.mount()).expect("superblocks can be read");
                if disk.flip_bit_of_last_frame(superblocks.claims().redo.0).is_some() {
                    world.counts.add("log end damaged");
                }
            }
            FaultKind::FileDamaged => self.damage_file(lasts).await,
            FaultKind::OlderDirectory => self.put_older_directory_back(lasts),
            FaultKind::CopiedDirectory => self.put_copied_directory_back(lasts).await,
            FaultKind::Pause => {
                if let Some(process) = world.runtime(self.site()) {
                    world.counts.add("paused");
                    process.pause();
                    self.undo_after(lasts, move |_| process.resume());
                }
            }
            FaultKind::CutsEndInBlackout => self.end_cuts(lasts).await,
            FaultKind::Cut => {
                let (from, to) = (self.site(), self.site());
                if from != to {
                    world.counts.add("cut");
                    world.network.cut(from, to);
                    self.undo_after(lasts, move |world| world.network.mend(from, to));
                }
            }
            FaultKind::Apart => {
                if let Some((primary, follower)) = self.followed() {
                    let both = [(primary, follower), (follower, primary)];
                    let links = [&both[..], &both[..1], &both[1..]][self.rng.random_range(0..3)].to_vec();
                    world.counts.add("follower apart");
                    links.iter().for_each(|(from, to)| world.network.cut(*from, *to));
                    self.undo_after(lasts, move |world| {
                        links.iter().for_each(|(from, to)| world.network.mend(*from, *to));
                    });
                }
            }
            FaultKind::Slow => {
                let to = self.site();
                if world.is_manage(to) {
                    return;
                }
                let others: Vec<Site> =
                    world.members().into_iter().filter(|from| *from != to && !world.is_manage(*from)).collect();
                let most = Duration::from_secs_f64(self.fault.delay);
                world.counts.add("slow to hear");
                others.iter().for_each(|from| world.network.slow_down(*from, to, Some(most)));
                self.undo_after(lasts, move |world| {
                    others.iter().for_each(|from| world.network.slow_down(*from, to, None));
                });
            }
            FaultKind::Deaf => {
                let (site, hears) = (self.site(), self.rng.random_bool(0.5));
                let links: Vec<(Site, Site)> = world
                    .members()
                    .into_iter()
                    .filter(|other| *other != site)
                    .map(|other| if hears { (site, other) } else { (other, site) })
                    .collect();
                world.counts.add("deaf or mute");
                links.iter().for_each(|(from, to)| world.network.cut(*from, *to));
                self.undo_after(lasts, move |world| {
                    links.iter().for_each(|(from, to)| world.network.mend(*from, *to));
                });
            }
            FaultKind::Partition => {
                let mut sites = world.members();
                sites.shuffle(&mut self.rng);
                let few = self.rng.random_range(1..=sites.len() / 2);
                let many = sites.split_off(few);
                world.counts.add("partitioned");
                world.network.partition(&[sites.clone(), many.clone()]);
                self.undo_after(lasts, move |world| {
                    for (few, many) in sites.iter().flat_map(|few| many.iter().map(move |many| (*few, *many))) {
                        world.network.mend(few, many);
                        world.network.mend(many, few);
                    }
                });
            }
            FaultKind::DiskFull => {
                let site = self.site();
                world.counts.add("disk full");
                self.fill_disk(site, lasts, 100_000);
            }
            FaultKind::JoinerDiskFull => self.fill_joiner(lasts).await,
            FaultKind::DiskFails => {
                let site = self.site();
                if world.runtime(site).is_none() {
                    return;
                }
                let disk = world.disk(site);
                world.excuse(site);
                world.counts.add("disk fails");
                let within = self.rng.random_range(1..60);
                match self.rng.random_range(0..3) {
                    0 => disk.stop_at(Some(within)),
                    1 => disk.fail_write_at(Some(within)),
                    _ => disk.fail_sync_at(Some(within)),
                }
            }
            FaultKind::DiskSlow => {
                let disk = world.disk(self.site());
                world.counts.add("disk slow");
                disk.set_slow(self.rng.random_range(0.05..0.8));
                self.undo_after(lasts, move |_| disk.set_slow(0.0));
            }
            FaultKind::Relieve => {
                let group = world.consensus.group();
                let led: Vec<(u16, u64)> = (0..)
                    .zip(&group.replication_groups)
                    .filter(|(_, state)| state.primary.is_some())
                    .map(|(number, state)| (number, state.version))
                    .collect();
                if !led.is_empty() {
                    let (number, version) = led[self.rng.random_range(0..led.len())];
                    world.counts.add("relieved");
                    world.consensus.commit(GroupCommand::Relieve { group: GroupId(number), version });
                }
            }
            FaultKind::Elections => world.consensus.set_restless(if self.rng.random_bool(0.5) { 3.0 } else { 0.0 }),
            FaultKind::KillJoiner => self.kill_joiner(lasts).await,
            FaultKind::Memory => {
                let (site, share) = (self.site(), self.rng.random_range(0.8..1.06));
                if let Some(limited) = world.limit_memory(site, share) {
                    world.counts.add("memory short");
                    self.undo_after(lasts, move |_| limited.set_memory_limit(MEMORY));
                }
            }
            FaultKind::Rolling => self.roll(lasts).await,
            FaultKind::Damage => self.damage().await,
        }
    }

    /// Whether all that one directory has is elsewhere too. What is damaged everywhere is lost: all others must have
    /// what this one has, with the ends of their logs read since they were damaged.
    fn all_is_twice(&self) -> bool {
        let world = &self.world;
        let is_alone = |state: &ReplicationGroup| state.in_sync.len() < 2;
        world.members().into_iter().all(|site| world.database(site).is_some() && world.is_undamaged(site))
            && !world.consensus.group().replication_groups.iter().any(is_alone)
    }

    /// One process ends, or all do.
    fn end_some(&mut self, site: Site, rest: Duration) {
        let how = if self.rng.random_bool(0.5) { End::Kill } else { End::Power };
        match self.rng.random_bool(0.5) {
            true => self.world.end(site, how, rest),
            false => self.world.members().into_iter().for_each(|site| self.world.end(site, how, rest)),
        }
    }

    /// All processes that hold some partition stop, but no majority of the voters: so no cut is complete, while the
    /// others go on. When that has lasted, power fails everywhere.
    async fn end_cuts(&mut self, lasts: Duration) {
        let (world, group) = (self.world.clone(), self.world.consensus.group());
        let site = |member: &Member| {
            let address = &group.nodes.get(&member.node)?.address;
            world.members().into_iter().find(|site| site.address() == *address)
        };
        let held: Vec<Vec<Site>> =
            group.replication_groups.iter().map(|state| state.in_sync.iter().filter_map(site).collect()).collect();
        let voters = world.members().into_iter().filter(|site| world.is_manage(*site)).count();
        let may_stop = |sites: &&Vec<Site>| {
            let stopped = sites.iter().filter(|site| world.is_manage(**site)).count();
            !sites.is_empty() && (voters - stopped) * 2 > voters
        };
        let Some(sites) = held.iter().filter(may_stop).collect::<Vec<_>>().choose(&mut self.rng).copied() else {
            return;
        };
        world.counts.add("cuts ended");
        let stopped: Vec<SimRuntime> = sites.iter().filter_map(|site| world.runtime(*site)).collect();
        stopped.iter().for_each(SimRuntime::pause);
        self.sleep(lasts.as_secs_f64()).await;
        if world.executor.now() < self.until {
            let rest = Duration::from_millis(self.rng.random_range(50..500));
            world.members().into_iter().for_each(|site| world.end(site, End::Power, rest));
        }
        stopped.iter().for_each(SimRuntime::resume);
    }

    /// One file of a directory is damaged, missing, shortened or older.
    async fn damage_file(&mut self, rest: Duration) {
        let site = self.site();
        let older = self.world.disk(site).image();
        let age = self.rng.random_range(0.05..1.0);
        self.sleep(age).await;
        if self.world.executor.now() < self.until && self.all_is_twice() {
            self.end_some(site, rest);
            self.world.damage_file(site, &mut self.rng, &older);
        }
    }

    /// A directory is copied, or put back to what it was before the newest start of its node.
    fn put_older_directory_back(&mut self, rest: Duration) {
        let site = self.site();
        if self.world.has_older_directory(site) && self.all_is_twice() {
            self.end_some(site, rest);
            self.world.put_older_directory_back(site);
        } else {
            self.world.copy_directory(site);
        }
    }

    /// A directory is copied while its process runs, and put back when that has ended.
    async fn put_copied_directory_back(&mut self, rest: Duration) {
        let (world, site) = (self.world.clone(), self.site());
        let Some(copy) = world.copy_running_directory(site) else { return };
        let age = self.rng.random_range(0.05..0.6);
        self.sleep(age).await;
        if world.executor.now() < self.until && self.all_is_twice() && world.others_know_what_lacks(site, &copy) {
            world.end(site, End::Kill, rest);
            world.put_running_directory_back(site, &copy);
        }
    }

    /// A primary and a replica that follows it, neither of them where the manage group is led.
    fn followed(&mut self) -> Option<(Site, Site)> {
        let (group, leader) = (self.world.consensus.group(), self.world.consensus.leader().map(|(site, _)| site));
        let site = |member: &Member| {
            let address = &group.nodes.get(&member.node)?.address;
            self.world.members().into_iter().find(|site| site.address() == *address && Some(*site) != leader)
        };
        let followers = |state: &ReplicationGroup| {
            let primary = state.primary?;
            let others = state.in_sync.iter().filter(|member| **member != primary).filter_map(site);
            Some((site(&primary)?, others.collect::<Vec<_>>()))
        };
        let led = group.replication_groups.iter().filter_map(followers);
        let pairs: Vec<(Site, Site)> =
            led.flat_map(|(primary, others)| others.into_iter().map(move |other| (primary, other))).collect();
        pairs.choose(&mut self.rng).copied()
    }

    /// Damages a row of a replica, or tells its rows what contradicts them, and waits until it is removed from the in-sync set.
    async fn damage(&mut self) {
        let (world, group) = (self.world.clone(), self.world.consensus.group());
        let wanted = group.config.as_ref().map_or(0, |config| usize::from(config.replicas));
        let numbers: Vec<u16> = (0..).take(group.replication_groups.len()).collect();
        let Some(number) = numbers.choose(&mut self.rng).copied() else { return };
        let state = &group.replication_groups[usize::from(number)];
        let Some(member) = state.in_sync.choose(&mut self.rng).copied() else { return };
        let address = &group.nodes[&member.node].address;
        let site = world.members().into_iter().find(|site| site.address() == *address);
        let Some(db) = site.and_then(|site| world.database(site)) else { return };
        let (Ok(table), true) = (db.table(DATABASE, ballast::NAME), state.in_sync.len() >= wanted) else { return };
        let layout = db.member().expect("it is a member").layout();
        let parts: Vec<u16> = layout.partitions_of(GroupId(number)).collect();
        let partition = parts[self.rng.random_range(0..parts.len())];
        // Where nobody can say who is right, the partition would take no writes any more.
        let as_written = wanted > 2 && self.rng.random_bool(0.5);
        let leads = state.primary == Some(member);
        let stops = db.counters().stopped_replicas;
        let (nth, bit) = (self.rng.random_range(0..1000), self.rng.random_range(40 * 8..100 * 8));
        if self.rng.random_bool(0.3) {
            db.contradict(partition);
            world.counts.add("rows contradicted");
        } else if db.flip_bit(partition, table.schema().id, nth, bit, as_written).await {
            world.counts.add(if as_written { "row written wrongly" } else { "row damaged" });
        } else {
            return;
        }
        for _ in 0..100 {
            self.sleep(0.1).await;
            let now = world.consensus.group();
            // It may be in-sync again already.
            let has_stopped = db.counters().stopped_replicas > stops;
            if has_stopped || !now.replication_groups[usize::from(number)].in_sync.contains(&member) {
                world.counts.add(if leads { "damage of a primary found" } else { "damage found" });
                return;
            }
        }
        panic!("damage of partition {partition} on node {} is not found", member.node.0);
    }

    /// Leaves less than `room` bytes.
    fn fill_disk(&mut self, site: Site, lasts: Duration, room: u64) {
        let disk = self.world.disk(site);
        // A node that has no room for its log stops.
        self.world.excuse(site);
        disk.set_limit(Some(disk.used() + self.rng.random_range(0..room)));
        self.undo_after(lasts, move |_| disk.set_limit(None));
    }

    /// Entries are brought within milliseconds: a process that lacks some is waited for.
    async fn fill_joiner(&mut self, lasts: Duration) {
        for _ in 0..1000 {
            if self.world.executor.now() >= self.until {
                return;
            }
            if let Some(site) = self.world.joiners().choose(&mut self.rng).copied()
                && self.world.database(site).is_some()
            {
                self.world.counts.add("joiner's disk full");
                return self.fill_disk(site, lasts, 20_000);
            }
            let pause = self.rng.random_range(0.0..0.002);
            self.sleep(pause).await;
        }
    }

    /// A copy is brought within milliseconds: it is waited for, then ended somewhere on its way.
    async fn kill_joiner(&mut self, rest: Duration) {
        for _ in 0..1000 {
            if self.world.executor.now() >= self.until {
                return;
            }
            if let Some(site) = self.world.joiners().choose(&mut self.rng) {
                self.world.counts.add("joiner killed");
                return self.world.end(*site, End::Kill, rest);
            }
            let pause = self.rng.random_range(0.0..0.002);
            self.sleep(pause).await;
        }
    }

    /// Each node in turn: shut down as an operator does it, started again, given time to come back.
    async fn roll(&mut self, rest: Duration) {
        self.world.counts.add("rolled");
        for site in self.world.members() {
            if self.world.executor.now() >= self.until {
                return;
            }
            if let Some(db) = self.world.database(site)
                && let Some(process) = self.world.runtime(site)
            {
                let ended = std::sync::Arc::new(parking_lot::Mutex::new(false));
                let done = ended.clone();
                process.spawn("shutdown", async move {
                    // Whatever it says, the program ends.
                    let _ = db.shutdown().await;
                    *done.lock() = true;
                });
                for _ in 0..200 {
                    if *ended.lock() {
                        break;
                    }
                    self.sleep(0.01).await;
                }
            }
            self.world.end(site, End::Kill, rest);
            let more = self.rng.random_range(0.2..1.0);
            self.sleep(rest.as_secs_f64() + more).await;
        }
    }
}

//! The directory of a node alone becomes that of a cluster's first node (rule 81), while the machine stops within each
//! operation of its disk and at each fault point: the start after that goes on, with every row.

use super::super::*;
use rauk_kernel::RowId;
use rauk_log::{DatabaseId, Superblocks};
use rauk_manage::group::{
    Answer, ClusterConfig, ClusterDurability, DEFAULT_MEMORY_RETURN, DEFAULT_REPLACE_AFTER, Group, GroupCommand,
};
use rauk_node::Runtime;
use rauk_node::recovery::adopt;
use rauk_node::recovery::member::{Back, MemberGroup, open_member};
use rauk_types::{NodeId, TableId, Timestamp};
use std::collections::BTreeSet;

/// By partition and table: times and bytes of rows.
type Rows = BTreeMap<(u16, TableId), BTreeSet<(Timestamp, Vec<u8>)>>;

struct Adopting {
    clock: SimClock,
    disk: SimDisk,
    config: Config,
    durability: ClusterDurability,
    /// What the manage group has, once the cluster was made.
    group: Option<Group>,
}

impl Adopting {
    /// A directory with these files.
    fn of(seed: u64, files: &BTreeMap<String, Vec<u8>>, config: &Config) -> Adopting {
        let clock = SimClock::default();
        let disk = SimDisk::new(seed, clock.clone());
        for path in files.keys() {
            if let Some((directory, _)) = path.rsplit_once('/') {
                disk.mount().create_dir_all(directory).unwrap();
            }
            disk.mount().sync_dir("").unwrap();
            disk.put(path, Some(&files[path]));
        }
        let durability = if seed.is_multiple_of(2) { ClusterDurability::Fsync } else { ClusterDurability::Replicated };
        Adopting { clock, disk, config: config.clone(), durability, group: None }
    }

    /// One start; `None`: the plan has ended it.
    fn attempt(&mut self, plan: Plan) -> Option<Rows> {
        let runtime = SimRuntime::new(7, self.clock.clone(), self.disk.clone());
        let armed = arm(plan, &self.disk);
        let result = self.start(&*runtime.handle());
        drop(armed);
        runtime.kill();
        match result {
            Ok(rows) => Some(rows),
            Err(error) => {
                assert!(self.disk.is_stopped() || is_planned(&error), "{plan:?}: {error}");
                None
            }
        }
    }

    /// As `rauk start` and [`Database::open_member`] do it.
    fn start(&mut self, runtime: &dyn Runtime) -> Result<Rows, NodeError> {
        let (disk, config) = (self.disk.mount(), &self.config);
        let group = match &self.group {
            Some(group) => group,
            None => {
                let surveyed = adopt::survey(config, &disk, runtime, &|_| {})?.expect("it is that of a node alone");
                let cluster = ClusterConfig {
                    id: surveyed.id.0,
                    name: "test".into(),
                    partitions: surveyed.partitions,
                    groups: None,
                    replicas: 2,
                    durability: self.durability,
                    replace_after: DEFAULT_REPLACE_AFTER,
                    memory_return: DEFAULT_MEMORY_RETURN,
                };
                let create = GroupCommand::Create { config: cluster, adopted: Some(surveyed.adopted.encode()) };
                let mut group = Group::new();
                assert_eq!(group.apply(1, &create), Answer::Done);
                self.group.insert(group)
            }
        };
        let cluster = group.config.as_ref().expect("it was made");
        let layout = cluster.layout();
        let tables: Vec<_> = group.catalog.tables().cloned().collect();
        let back = Back { node: NodeId(1), recovery: &group.recovery, keeps_later: false };
        adopt::convert(config, &disk, runtime, layout, &tables, &back, &|_| {})?;
        let superblocks = Arc::new(Superblocks::load(&disk)?);
        let id = DatabaseId(cluster.id);
        let mut parts = open_member(config, superblocks, runtime, id, layout, &tables, back, &|_| {})?;
        parts.manifest.store(&parts.superblocks)?;
        adopt::give_up_catalog(&parts.superblocks)?;
        let is_held = |held: &MemberGroup| held.is_held(&group.recovery) && held.hole.is_none();
        assert!(parts.groups.iter().all(is_held), "all of each group is there, up to the cut");
        let mut rows = Rows::new();
        for (number, partition) in (0..).zip(&mut parts.partitions) {
            for table in &tables {
                let found = rows.entry((number, table.id)).or_default();
                let mut next = Some(RowId(0));
                while let Some(from) = next {
                    next = partition.checkpoint_slice(table.id, from, 1_000, &mut |_, time, bytes| {
                        found.insert((time, bytes.to_vec()));
                    });
                }
            }
        }
        Ok(rows)
    }
}

#[test]
fn a_directory_becomes_a_clusters_wherever_the_machine_stops() {
    let (mut ended, mut rows) = (0, 0);
    for seed in 0..3 {
        let mut run = NodeRun::new(seed);
        run.shuts_down = seed.is_multiple_of(2);
        run.life(Plan::Calm, 6);
        let (files, config) = (run.disk.image(), &run.config);
        let expected = Adopting::of(seed, &files, config).attempt(Plan::Calm).expect("nothing is in the way");
        rows += expected.values().map(BTreeSet::len).sum::<usize>();
        for plan in [Plan::Operation as fn(u64) -> Plan, Plan::Point, Plan::FailSync, Plan::FailWrite] {
            for at in 1.. {
                let mut adopting = Adopting::of(seed + 100 * at, &files, config);
                if adopting.attempt(plan(at)).is_some() {
                    break;
                }
                ended += 1;
                match at % 3 {
                    0 => adopting.disk.kill(),
                    _ => adopting.disk.power_failure(),
                }
                for again in ["after it was cut off", "as a cluster's"] {
                    let found = adopting.attempt(Plan::Calm);
                    assert!(found.as_ref() == Some(&expected), "seed {seed}, {:?}, {again}", plan(at));
                    adopting.disk.power_failure();
                }
            }
        }
    }
    assert!(ended > 250 && rows > 100, "{ended} starts were cut off, {rows} rows");
}

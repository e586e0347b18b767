//! ALTER TABLE in a cluster: a new definition over the same rows, or the rows in a new form.
//!
//! A new definition without new indexes is one command. New ordered indexes are filled before, on each process over its
//! own rows and while users go on ([`crate::ddl::online`]), or with the tables held alone: its partitions have a
//! definition with the new indexes during the job (and still have what it drops, in case that the old one comes back).
//! A new unique index is filled by transactions, into a hidden index table whose partitions see all that could collide,
//! wherever the rows are. New foreign keys are validated by the statement, beside the writers of all processes.

use super::tables::replaced;
use super::{Held, Place, describe};
use crate::database::TableHandle;
use crate::ddl::alter::{Plan, added_keys, between, copies_online, follow, next_version};
use crate::ddl::build::{self, Patience};
use crate::ddl::copying::{Convert, Copied, Copying, Further, Look, look_at_rows, tables_with_rows};
use crate::ddl::entering;
use crate::ddl::foreign;
use crate::ddl::online::building_definition;
use crate::ddl::partitions::with_tables;
use crate::ddl::reorganize;
use crate::ddl::workers::Workers;
use crate::error::NodeError;
use crate::locks::metadata::{DdlWait, Meanwhile};
use crate::member::catalog::intents::Own;
use crate::member::nothing_seen;
use crate::member::signal::Signal;
use crate::node::Node;
use crate::table::building::{Building as KeptByWriters, notes_schema};
use crate::table::counter::hidden_counter;
use crate::table::{TableInfo, UniqueIndex};
use futures::future::{Either, join_all, select};
use rauk_log::fault;
use rauk_manage::group::GroupCommand;
use rauk_manage::{Command, JobId};
use rauk_types::{ForeignKey, IndexKeys, IndexSchema, Member, ProcessId, TableId, TableSchema};
use std::any::Any;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

pub async fn alter_table(
    place: Place<'_>,
    old: &Arc<TableInfo>,
    new: TableSchema,
    wait: DdlWait<'_>,
) -> Result<(), NodeError> {
    let wait = wait.under_locks();
    let what = describe("ALTER TABLE", &[(new.database.clone(), new.name.clone())]);
    let beside = || foreign::beside(place.node, old, &new);
    let held = place.lock_with(Some(old.clone()), beside, what.clone(), wait).await?;
    let old = &held.tables[0];
    let mut new = next_version(&old.schema, new);
    let children: Schemas = follow(place.node, old, &mut new, wait)?.iter().map(|c| c.schema.clone()).collect();
    let added = added_keys(&old.schema, &new, wait);
    let node = place.node;
    let had = |id| old.schema.index(id).is_some_and(IndexSchema::has_entries);
    let built = new.indexes.iter().any(|i| i.has_entries() && !had(i.id));
    let mut again = Again { tries: 0, patience: Patience::with_users(wait.limit) };
    let is_online = building_definition(&old.schema, &new, &added, wait.meanwhile).is_some();
    if Plan::fresh(&new) == 0 && !built && !is_online {
        let Plan { new, dropped, .. } = Plan::make(old, new, || unreachable!("no table is made"));
        wait.unless_killed(validate(node, old, &new, &added)).await?;
        let replace = std::iter::once(new).chain(children).collect();
        held.change(Command::Switch { job: None, drop: dropped, create: vec![], replace }).await?;
        return Ok(());
    }
    loop {
        held.alone_again(wait).await?;
        let (job, (plan, is_online)) = Job::start(&held, &what, wait, |ids| {
            let plan = Plan::make(old, new.clone(), &mut *ids);
            let online = building_definition(&old.schema, &plan.new, &added, wait.meanwhile);
            let is_online = online.is_some();
            let definition = online.or_else(|| built.then(|| between(&old.schema, &plan.new))).map(Arc::new);
            let mut tables = plan.made.clone();
            if is_online && (!plan.fresh.is_empty() || !added.is_empty()) {
                tables.push(Arc::new(notes_schema(&old.schema, ids())));
            }
            (tables, definition.into_iter().collect(), (plan, is_online))
        })
        .await?;
        let filled = async {
            if is_online {
                held.let_users_in(wait.meanwhile).await?;
                fault::point("node.ddl.cluster.open").map_err(build::fault_error)?;
            }
            fill_indexes(&job, &plan, built, is_online, !added.is_empty(), &mut again.patience, wait).await?;
            if !is_online {
                validate(node, old, &plan.new, &added).await?;
            }
            job.covered().await
        };
        match wait.unless_killed(filled).await {
            Ok(()) => {
                if is_online {
                    wait.unless_killed(held.have_alone_again(wait.limit)).await?;
                    wait.unless_killed(look_at_notes(&job, &mut again.patience)).await?;
                }
                let replace = std::iter::once(plan.new).chain(children).collect();
                return job.switch(plan.dropped, plan.made, replace).await;
            }
            Err(error) => {
                if !plan.fresh.is_empty() || !added.is_empty() {
                    held.alone_again_to_end(wait).await;
                }
                job.give_up(error, &mut again).await?
            }
        }
    }
}

/// What writers noted, while the tables are held alone.
async fn look_at_notes(job: &Job<'_>, patience: &mut Patience) -> Result<(), NodeError> {
    let table = &job.held.tables[0];
    let Some(kept) = table.shared.building.get() else { return Ok(()) };
    match entering::look_at_notes(job.held.place.node, table, &kept, patience).await? {
        0 => Ok(()),
        _ => job.covered().await,
    }
}

/// New foreign keys of an altered table, whose new index tables are filled.
async fn validate(
    node: &Arc<Node>,
    old: &Arc<TableInfo>,
    new: &Arc<TableSchema>,
    added: &[ForeignKey],
) -> Result<(), NodeError> {
    if added.is_empty() {
        return Ok(());
    }
    let mut gone = false;
    let info = TableInfo::new(new.clone(), old.shared.clone(), |id| {
        node.tables.by_id(id).unwrap_or_else(|| {
            gone = true;
            old.clone()
        })
    });
    // The group has ended the job.
    if gone {
        return Err(NodeError::LockTimeout);
    }
    foreign::validate(node, old, &info, added).await
}

async fn fill_indexes(
    job: &Job<'_>,
    plan: &Plan,
    ordered: bool,
    is_online: bool,
    validates: bool,
    patience: &mut Patience,
    wait: DdlWait<'_>,
) -> Result<(), NodeError> {
    if ordered {
        job.wait_filled().await?;
    }
    if is_online && (!plan.fresh.is_empty() || validates) {
        let table = &job.held.tables[0];
        // If it is not there any more the group has ended the job.
        let kept = table.shared.building.get().ok_or(NodeError::LockTimeout)?;
        let workers = (&Workers::default(), Some(job.keeps()));
        return entering::fill(job.held.place.node, table, &kept, patience, wait, workers).await;
    }
    let mut uniques = Vec::new();
    for id in &plan.fresh {
        let index = plan.new.index(*id).expect("it is being added");
        let entries = job.table(index.entry_table.expect("a unique index has one"))?;
        let (key, keys) = (plan.new.key_def(index), IndexKeys::new(&plan.new, index));
        uniques.push(UniqueIndex { id: *id, key: key.into(), keys: keys.into(), entries, global: false });
    }
    if uniques.is_empty() {
        return Ok(());
    }
    let uniques: Vec<&UniqueIndex> = uniques.iter().collect();
    build::fill_uniques(job.held.place.node, &job.held.tables[0], &plan.new, &uniques, patience, wait).await
}

pub async fn rewrite_table(
    place: Place<'_>,
    old: &Arc<TableInfo>,
    new: TableSchema,
    wait: DdlWait<'_>,
    mut look: Option<&mut Look<'_>>,
    (convert, further): (&mut Convert<'_>, Option<&Further<'_>>),
) -> Result<u64, NodeError> {
    let what = describe("ALTER TABLE", &[(new.database.clone(), new.name.clone())]);
    let wait = wait.under_locks();
    let mut new = new;
    let beside = || foreign::beside(place.node, old, &new);
    let held = place.lock_with(Some(old.clone()), beside, what.clone(), wait).await?;
    let old = &held.tables[0];
    let children: Schemas = follow(place.node, old, &mut new, wait)?.iter().map(|c| c.schema.clone()).collect();
    let added = added_keys(&old.schema, &new, wait);
    let is_online = look.is_none() && added.is_empty() && copies_online(&old.schema, &new, wait);
    let mut again = Again::beside_users(is_online, wait);
    loop {
        held.alone_again(wait).await?;
        let (job, schemas) = Job::start(&held, &what, wait, |ids| {
            let schemas = Node::complete(new.clone(), &mut *ids);
            let mut tables = schemas.clone();
            tables.extend(is_online.then(|| Arc::new(notes_schema(&old.schema, ids()))));
            (tables, vec![], schemas)
        })
        .await?;
        let filled = async {
            let info = job.table(schemas[0].id)?;
            if let Some(look) = look.as_deref_mut() {
                wait.unless_killed(look_at_rows(place.node, old, look)).await?;
            }
            let kept = job.kept(old, is_online)?;
            let new = TableHandle::new(info.clone());
            let copying = Copying::new(place.node, old, new, kept, convert, &mut again.patience)
                .with_further(further)
                .telling(wait);
            let copied = job.copy(copying, is_online, wait).await?;
            wait.unless_killed(foreign::validate(place.node, &info, &info, &added)).await?;
            job.count_above(&info, copied.highest).await?;
            Ok(copied.rows)
        };
        match filled.await {
            Ok(rows) => {
                let dropped = old.family().map(|s| s.id).collect();
                let new = schemas[0].id;
                job.switch(dropped, schemas, children).await?;
                replaced(place, old.schema.id, new, wait);
                return Ok(rows);
            }
            Err(error) => {
                held.alone_again_to_end(wait).await;
                job.give_up(error, &mut again).await?;
            }
        }
    }
}

/// [`crate::Database::reorganize_leaves`].
pub async fn reorganize_leaves(
    place: Place<'_>,
    old: &Arc<TableInfo>,
    new: TableSchema,
    wait: DdlWait<'_>,
) -> Result<u64, NodeError> {
    let what = describe("ALTER TABLE", &[(new.database.clone(), new.name.clone())]);
    let wait = wait.under_locks();
    let held = place.lock_with(Some(old.clone()), Vec::new, what.clone(), wait).await?;
    let old = &held.tables[0];
    let is_online = copies_online(&old.schema, &new, wait);
    let mut again = Again::beside_users(is_online, wait);
    loop {
        held.alone_again(wait).await?;
        let (job, schema) = Job::start(&held, &what, wait, |ids| {
            let schema = with_tables(old, new.clone(), &mut *ids);
            let mut tables = reorganize::made(old, &schema);
            tables.extend(is_online.then(|| Arc::new(notes_schema(&old.schema, ids()))));
            (tables, vec![], schema)
        })
        .await?;
        let filled = async {
            // The leaves are known here, as on all processes, before anything goes into them.
            reorganize::made(old, &schema).iter().try_for_each(|table| job.table(table.id).map(drop))?;
            let (leave, into) = reorganize::moving(old, &reorganize::without_global(old, &schema));
            let kept = job.kept(old, is_online)?;
            let mut same = reorganize::same;
            let copying = Copying::new(place.node, old, into, kept, &mut same, &mut again.patience)
                .with_further(Some(&reorganize::further_same))
                .of_leaves(leave)
                .telling(wait);
            Ok(job.copy(copying, is_online, wait).await?.rows)
        };
        match filled.await {
            Ok(rows) => {
                job.switch(vec![], vec![], vec![schema]).await?;
                return Ok(rows);
            }
            Err(error) => {
                held.alone_again_to_end(wait).await;
                job.give_up(error, &mut again).await?;
            }
        }
    }
}

/// A cut that covers what a job has filled is waited for so long.
const COVERED: Duration = Duration::from_secs(30);

/// How often a job is done.
const TRIES: u32 = 3;
/// A statement gives up when a process that is to fill indexes has not answered for so long.
const SILENT: Duration = Duration::from_secs(10);
/// How often it looks, and how long one answer may take.
const LOOK: Duration = Duration::from_millis(250);

/// For doing a job once more.
#[derive(Default)]
struct Again {
    tries: u32,
    patience: Patience,
}

impl Again {
    /// Users may be in the way as long as the statement waits for its table.
    fn beside_users(is_online: bool, wait: DdlWait<'_>) -> Again {
        let patience = if is_online { Patience::with_users(wait.limit) } else { Patience::default() };
        Again { tries: 0, patience }
    }
}

type Schemas = Vec<Arc<TableSchema>>;

/// A job that builds tables. Dropped before the switch, it is aborted.
struct Job<'a> {
    held: &'a Held<'a>,
    id: JobId,
    own: Arc<Own>,
}

impl<'a> Job<'a> {
    /// Makes the tables known to all processes, and definitions to their partitions. `make` takes new ids and gives these, and what it made beside them.
    async fn start<T>(
        held: &'a Held<'a>,
        what: &str,
        wait: DdlWait<'_>,
        mut make: impl FnMut(&mut dyn FnMut() -> TableId) -> (Schemas, Schemas, T),
    ) -> Result<(Job<'a>, T), NodeError> {
        let place = held.place;
        let intents = &place.cluster.catalog_state().intents;
        let _starting = intents.starting();
        let (table, owner, limits) = (held.tables[0].schema.id, place.cluster.me().process, wait.limits());
        let command = |ids: &mut dyn FnMut() -> _| {
            let (tables, definitions, made) = make(ids);
            (Command::StartBuild { what: what.to_string(), table, owner, tables, definitions, limits }, made)
        };
        let (applied, made) = place.change_with_ids(held.number(), command).await.map_err(nothing_seen)?;
        let id = applied.job.expect("a started job is told").id;
        Ok((Job { held, id, own: Arc::new(intents.own_job(id)) }, made))
    }

    /// A table that it builds. If it is not there any more the job was ended, since the group took this process for dead.
    fn table(&self, id: TableId) -> Result<Arc<TableInfo>, NodeError> {
        self.held.place.node.tables.by_id(id).ok_or(NodeError::LockTimeout)
    }

    /// While a worker has this, this process ends neither the job nor its intent as it is now.
    fn keeps(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::new((self.own.clone(), self.held.own()))
    }

    /// What writers see to while rows of `old` are copied.
    fn kept(&self, old: &Arc<TableInfo>, is_online: bool) -> Result<Option<Arc<KeptByWriters>>, NodeError> {
        if !is_online {
            return Ok(None);
        }
        let tables = tables_with_rows(old);
        let first = tables.first().expect("a table has rows somewhere");
        // If it is not there any more the group has ended the job.
        first.shared.building.get().map(Some).ok_or(NodeError::LockTimeout)
    }

    /// Copies a table, which is held alone again at the end.
    async fn copy(&self, copying: Copying<'_, '_>, is_online: bool, wait: DdlWait<'_>) -> Result<Copied, NodeError> {
        let mut copying = copying.by(Workers::default(), Some(self.keeps()));
        if !is_online {
            wait.unless_killed(copying.pass()).await?;
            wait.unless_killed(self.covered()).await?;
            return Ok(copying.copied);
        }
        self.held.let_users_in(wait.meanwhile).await?;
        copying = copying.by(Workers::default(), Some(self.keeps()));
        fault::point("node.ddl.cluster.open").map_err(build::fault_error)?;
        wait.unless_killed(copying.pass()).await?;
        let mut returns = 0;
        loop {
            wait.unless_killed(copying.rounds()).await?;
            wait.unless_killed(self.covered()).await?;
            wait.unless_killed(self.held.have_alone_again(wait.limit)).await?;
            if !wait.unless_killed(copying.is_far_behind(returns)).await? {
                break;
            }
            returns += 1;
            self.held.let_users_in(Meanwhile::All).await?;
        }
        if wait.unless_killed(copying.last()).await? > 0 {
            wait.unless_killed(self.covered()).await?;
        }
        Ok(copying.copied)
    }

    /// A new table goes on counting where the old one is, and above all its numbers, before it takes its place.
    async fn count_above(&self, new: &TableInfo, highest: u64) -> Result<(), NodeError> {
        let cluster = self.held.place.cluster;
        let old = self.held.tables[0].schema.id;
        let given = |counter| cluster.group().counters.get(&counter).copied().unwrap_or(1).saturating_sub(1);
        let mut counted = vec![(new.schema.id, given(old).max(highest))];
        // Rows keep their hidden keys where they had some.
        counted.extend(new.schema.hidden_key.then(|| (hidden_counter(new.schema.id), given(hidden_counter(old)))));
        for (table, value) in counted.into_iter().filter(|(_, value)| *value > 0) {
            cluster.propose(GroupCommand::Observe { table, value }).await?;
        }
        Ok(())
    }

    /// Waits until every process that is up has filled the new ordered indexes.
    async fn wait_filled(&self) -> Result<(), NodeError> {
        let Place { node, cluster } = self.held.place;
        let processes = || cluster.processes().iter().map(|m| m.process).collect();
        let filled = pin!(cluster.catalog_state().intents.wait_filled(&*node.runtime, self.id, processes));
        let table = || self.held.tables[0].schema.name.clone();
        match select(filled, pin!(self.lost())).await {
            Either::Left((filled, _)) => filled.map_err(|limit| NodeError::MemoryFull { table: table(), limit }),
            Either::Right((error, _)) => Err(error),
        }
    }

    /// Resolves when the others, or one of them, cannot be heard any more although the group takes them for up, or the group has ended the job.
    async fn lost(&self) -> NodeError {
        let Place { node, cluster } = self.held.place;
        let mut heard: BTreeMap<ProcessId, Duration> = BTreeMap::new();
        loop {
            node.runtime.sleep(LOOK).await;
            if let Err(error) = node.check_running() {
                return error;
            }
            if !cluster.group().catalog.jobs().any(|job| job.id == self.id) {
                return NodeError::LockTimeout;
            }
            let processes = cluster.processes();
            let ask = |to: Member| cluster.request(to, Signal::Reached { index: 0 }, LOOK);
            let answers = join_all(processes.iter().map(|to| ask(*to))).await;
            let now = node.runtime.now();
            for (to, answer) in processes.iter().zip(answers) {
                let last = heard.entry(to.process).or_insert(now);
                match answer {
                    Ok(_) => *last = now,
                    Err(_) if now.saturating_sub(*last) > SILENT && cluster.is_up(to.process) => {
                        return NodeError::Unavailable(format!("node {} does not answer this one", to.node.0));
                    }
                    Err(_) => {}
                }
            }
        }
    }

    /// Ends a job whose filling has failed. `Ok`: it may be tried anew, for what failed passes, or nobody knows what became of it.
    async fn give_up(self, error: NodeError, again: &mut Again) -> Result<(), NodeError> {
        let Place { node, .. } = self.held.place;
        let aborted = self.held.place.propose(Command::AbortJob { job: self.id }, None).await;
        again.tries += 1;
        let may_pass = build::passes(&error) || matches!(error, NodeError::UnknownOutcome(_));
        let may = may_pass && again.tries < TRIES && !again.patience.is_over(node);
        match may && aborted.is_ok() && self.held.is_alive() {
            true => Ok(()),
            // Before the switch nothing has happened, whatever became of rows that nobody sees.
            false => Err(nothing_seen(error)),
        }
    }

    /// The catalog never goes back; the rows that were filled in must not either (rule 31).
    async fn covered(&self) -> Result<(), NodeError> {
        self.held.place.cluster.wait_cut(COVERED).await
    }

    /// Puts what was built in place.
    async fn switch(
        self,
        drop: Vec<TableId>,
        create: Vec<Arc<TableSchema>>,
        replace: Vec<Arc<TableSchema>>,
    ) -> Result<(), NodeError> {
        fault::point("node.ddl.cluster.before_switch").map_err(build::fault_error)?;
        self.held.change(Command::Switch { job: Some(self.id), drop, create, replace }).await?;
        Ok(())
    }
}

//! What `/metrics` shows: read from the engine's own counters when it is asked for, so that counting costs nothing extra.

use crate::backend::Backend;
use crate::cluster::member::Member;
use crate::start::opening::{Opening, seconds};
use crate::start::services::Services;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use rauk_manage::consensus::Consensus;
use rauk_manage::group::Life;
use rauk_mysql::server::Server;
use rauk_node::Database;
use rauk_node::member::report::{PartitionReport, Wanted};
use rauk_node::native::Service;
use rauk_transporter::Transporter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

struct Clients {
    server: Arc<Server<Backend>>,
    service: Arc<Service>,
    transporter: Arc<Transporter>,
}

struct Source {
    database: Database,
    opening: Arc<Opening>,
    /// Of a node that serves clients.
    clients: Option<Clients>,
    /// Of a member of a cluster.
    member: Option<Arc<Member>>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Source")
    }
}

/// Of a node that does not serve yet.
struct Start(Arc<Opening>);

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Start")
    }
}

impl Collector for Start {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let state = self.0.state();
        let percent = state.map_or(0, |state| u64::from(state.percent));
        let left = state.and_then(|state| state.left).map_or(0, seconds);
        encode_start(&mut encoder, &self.0, [1, percent, left])?;
        gauges(
            &mut encoder,
            &[
                ("recovery_rows", "Rows and changes that recovery has read", state.map_or(0, |state| state.rows)),
                ("start_elapsed_seconds", "Seconds since this process began to open", self.0.elapsed().as_secs()),
            ],
        )
    }
}

/// What a node shows that opens and one that serves: 1 while it opens, per cent, seconds left.
fn encode_start(
    encoder: &mut DescriptorEncoder<'_>,
    opening: &Opening,
    [opens, percent, left]: [u64; 3],
) -> Result<(), std::fmt::Error> {
    gauges(
        encoder,
        &[
            ("recovering", "1: this node opens its data directory and does not serve yet", opens),
            ("recovery_percent", "How far recovery is", percent),
            ("recovery_left_seconds", "Estimate of the time that recovery still takes; 0: not known, or none", left),
        ],
    )?;
    let help = "MySQL clients refused with error 1053 because this node did not serve yet";
    counters(encoder, &[("connections_refused_while_starting", help, opening.refused())])
}

/// Of a node that does not serve yet.
pub fn opening(opening: Arc<Opening>) -> Registry {
    let mut registry = Registry::with_prefix("rauk");
    registry.register_collector(Box::new(Start(opening)));
    registry
}

pub fn registry(
    database: &Database,
    services: Option<&Services>,
    member: Option<Arc<Member>>,
    opening: Arc<Opening>,
) -> Registry {
    let mut registry = Registry::with_prefix("rauk");
    let clients = services.map(|services| Clients {
        server: services.server.clone(),
        service: services.native.service.clone(),
        transporter: services.native.transporter.clone(),
    });
    registry.register_collector(Box::new(Source { database: database.clone(), opening, clients, member }));
    registry
}

/// A name, what it is, its value.
type Metric = (&'static str, &'static str, u64);

fn counters(encoder: &mut DescriptorEncoder<'_>, list: &[Metric]) -> Result<(), std::fmt::Error> {
    for (name, help, value) in list {
        let metric = ConstCounter::new(*value);
        metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)?;
    }
    Ok(())
}

fn gauges(encoder: &mut DescriptorEncoder<'_>, list: &[Metric]) -> Result<(), std::fmt::Error> {
    for (name, help, value) in list {
        let metric = ConstGauge::new(*value as i64);
        metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)?;
    }
    Ok(())
}

/// One value for each set of labels.
fn gauge_family<const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = ([(&'static str, String); N], u64)>,
) -> Result<(), std::fmt::Error> {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in values {
        ConstGauge::new(value as i64).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

impl Collector for Source {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        encode_start(&mut encoder, &self.opening, [0, 100, 0])?;
        self.node(&mut encoder)?;
        if let Some(clients) = &self.clients {
            clients.encode(&mut encoder)?;
        }
        match &self.member {
            Some(member) => encode_member(member, &mut encoder),
            None => Ok(()),
        }
    }
}

impl Source {
    fn node(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let node = self.database.counters();
        counters(
            encoder,
            &[
                ("commits", "Transactions committed", node.commits),
                ("rollbacks", "Transactions rolled back", node.rollbacks),
                ("deadlocks", "Transactions ended with error 1213", node.deadlocks),
                ("lock_waits", "Waits for row locks", node.lock_waits),
                ("lock_timeouts", "Waits for row locks that ended with error 1205", node.lock_timeouts),
                ("redo_flushes", "Writes of the redo log that were synced", node.flushes),
                ("redo_commit_bytes", "Bytes of commit records", node.commit_bytes),
                ("remote_scan_rows", "Rows that other nodes sent to scans", node.remote_scan_rows),
                ("remote_scan_bytes", "Bytes of rows that other nodes sent to scans", node.remote_scan_bytes),
                ("remote_scan_answers", "Answers of other nodes to scans and lookups", node.remote_scan_answers),
                ("remote_operations", "Operations that other nodes were asked for", node.remote_operations),
                ("scrubbed_rows", "Stored rows compared with what was written", node.scrubbed_rows),
                ("scrub_rounds", "Walks over all stored rows", node.scrub_rounds),
                ("damaged_tables", "Tables found with damaged rows in memory", node.damaged_tables),
                ("digest_mismatches", "Comparisons of replicas that found other rows", node.digest_mismatches),
                ("stopped_replicas", "Replicas that could not go on, and stopped", node.stopped_replicas),
                ("checkpoints", "Checkpoints finished", node.checkpoints),
                ("checkpoint_failures", "Checkpoints given up", node.checkpoint_failures),
            ],
        )?;
        gauges(
            encoder,
            &[
                ("transactions", "Transactions now", node.transactions),
                ("snapshots", "Snapshots that keep old row versions", node.snapshots),
                ("memory_used_bytes", "Rows, indexes, versions", node.memory_used),
                ("memory_limit_bytes", "rauk_memory_limit", node.memory_limit),
                (
                    "memory_pressure",
                    "0 green, 1 yellow (from 80 % of the limit), 2 red (from 95 %)",
                    self.database.memory_pressure() as u64,
                ),
                ("health", "0 green, 1 yellow, 2 red", self.database.health().0 as u64),
                ("redo_live_bytes", "Redo segments that recovery would read", node.redo_live_bytes),
                ("uptime_seconds", "Seconds since the start", self.database.report(Wanted::Node).uptime.as_secs()),
            ],
        )
    }
}

/// What a member does for its cluster.
fn encode_member(member: &Member, encoder: &mut DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
    let report = member.database.report(Wanted::Partitions);
    let group = member.raft.group();
    let (messages, requests) = member.links.traffic();
    let links = member.links.statistics();
    let dropped = links.iter().map(|l| l.dropped).sum();
    counters(
        encoder,
        &[
            ("cluster_messages_sent", "Messages to other nodes", messages.sent),
            ("cluster_messages_sent_bytes", "Bytes of messages to other nodes", messages.sent_bytes),
            ("cluster_messages_received", "Messages from other nodes", messages.received),
            ("cluster_messages_received_bytes", "Bytes of messages from other nodes", messages.received_bytes),
            ("cluster_manage_sent", "Requests and answers of the manage group sent", requests.sent),
            ("cluster_manage_sent_bytes", "Their bytes", requests.sent_bytes),
            ("cluster_manage_received", "Requests and answers of the manage group received", requests.received),
            ("cluster_manage_received_bytes", "Their bytes", requests.received_bytes),
            ("cluster_dropped", "Messages dropped since there was no link, or nobody read", dropped),
        ],
    )?;
    let roles = report.partitions.iter();
    let led = roles.clone().filter(|p| p.serves).count() as u64;
    let joiners = roles.flat_map(|p| &p.followers).filter(|f| !f.in_sync).count() as u64;
    let cut_age = member.database.member().map_or(0, |cluster| cluster.cut_age().as_millis() as u64);
    let up = group.nodes.values().filter(|n| n.life == Life::Up).count() as u64;
    gauges(
        encoder,
        &[
            ("cluster_node", "Number of this node", u64::from(member.node.0)),
            ("cluster_process", "Number of this process", u64::from(report.member.process.0)),
            ("cluster_nodes", "Nodes of the cluster", group.nodes.len() as u64),
            ("cluster_nodes_up", "Nodes that are up", up),
            ("cluster_lease", "1: this process holds its lease", u64::from(report.lease)),
            ("cluster_leads", "1: this node leads the manage group", u64::from(member.raft.leading().is_some())),
            ("cluster_index", "Changes of the manage group followed", report.index),
            ("cluster_primaries", "Partitions led here that take work", led),
            ("cluster_joiners", "Replicas that are brought up by primaries here", joiners),
            ("cluster_links", "Links to other nodes", links.iter().filter(|l| l.connected).count() as u64),
            ("cluster_health", "0 green, 1 yellow, 2 red", member.database.health().0 as u64),
            ("cluster_cut_age_milliseconds", "Age of the oldest commit that no complete cut covers", cut_age),
        ],
    )?;
    let number = |p: &PartitionReport| ("partition", p.partition.0.to_string());
    let led = report.partitions.iter().filter(|p| p.serves);
    gauge_family(
        encoder,
        "cluster_partition_lag",
        "Entries of a partition that is led here which its slowest replica that counts has not acknowledged",
        led.map(|p| ([number(p)], p.last - p.stable)),
    )?;
    gauge_family(
        encoder,
        "cluster_partition_view",
        "View of a partition, as this node has it",
        report.partitions.iter().map(|p| ([number(p), ("role", p.role.name().to_string())], p.view)),
    )
}

impl Clients {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let protocol = self.server.totals();
        let links = self.transporter.statistics();
        let native = self.service.counts();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (native_transactions, native_scans, native_sessions) = self.service.open();
        counters(
            encoder,
            &[
                ("connections", "Connections accepted", protocol.connections),
                ("aborted_connects", "Connections that never became sessions", protocol.aborted_connects),
                ("aborted_clients", "Sessions that ended without saying so", protocol.aborted_clients),
                ("commands", "Commands received", protocol.commands),
                ("received_bytes", "Bytes from clients", protocol.received_bytes),
                ("sent_bytes", "Bytes to clients", protocol.sent_bytes),
                ("native_batches", "Native batches", count(&native.batches)),
                ("native_batches_at_once", "Native batches answered without a wait", count(&native.batches_at_once)),
                ("native_operations", "Operations of native batches", count(&native.operations)),
                ("native_scans", "Native scans begun", count(&native.scans)),
                ("native_scan_pages", "Further pages of native scans", count(&native.scan_pages)),
                ("native_definitions", "Native requests that open, create and drop", count(&native.definitions)),
                ("native_failures", "Native requests that failed as a whole", count(&native.failures)),
                ("native_links_accepted", "Native connections accepted", links.links_accepted),
                ("native_links_refused", "Native connections refused", links.links_refused),
                ("native_frames_received", "Frames from native clients", links.frames_received),
                ("native_received_bytes", "Bytes from native clients", links.bytes_received),
                ("native_frames_sent", "Frames to native clients", links.frames_sent),
                ("native_sent_bytes", "Bytes to native clients", links.bytes_sent),
                ("native_sends", "System calls that sent to native clients", links.sends),
                ("native_frames_waited", "Frames that waited for others to go with", links.frames_waited),
                ("native_frames_left", "Frames left to whoever was sending", links.frames_left_to_sender),
                ("native_sends_by_timer", "Sends because a frame had waited long enough", links.sends_by_timer),
                ("native_sends_by_send_thread", "Sends by the send thread", links.sends_by_send_thread),
                ("native_pauses", "Times a native client was not read since it did not read", links.pauses),
                ("native_spins", "Times a native thread looked for requests before it slept", links.spins),
                ("native_spins_that_found", "Those of them that found some", links.spins_that_found),
                ("native_sleeps", "Times a native thread slept", links.sleeps),
            ],
        )?;
        gauges(
            encoder,
            &[
                ("sessions", "Sessions now", protocol.sessions),
                ("native_links", "Native connections now", links.links_open),
                ("native_sessions", "Native sessions now", native_sessions as u64),
                ("native_transactions", "Native transactions now", native_transactions as u64),
                ("native_open_scans", "Native scans now", native_scans as u64),
            ],
        )
    }
}

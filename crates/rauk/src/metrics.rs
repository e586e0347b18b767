//! What `/metrics` shows: read from the engine's own counters when it is asked for, so that counting costs nothing extra.

use crate::backend::Backend;
use crate::native::Native;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use rauk_mysql::server::Server;
use rauk_node::native::Service;
use rauk_sql::session::Engine;
use rauk_transporter::Transporter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

struct Source {
    engine: Arc<Engine>,
    server: Arc<Server<Backend>>,
    service: Arc<Service>,
    transporter: Arc<Transporter>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Source")
    }
}

pub fn registry(engine: Arc<Engine>, server: Arc<Server<Backend>>, native: &Native) -> Registry {
    let mut registry = Registry::with_prefix("rauk");
    let (service, transporter) = (native.service.clone(), native.transporter.clone());
    registry.register_collector(Box::new(Source { engine, server, service, transporter }));
    registry
}

impl Collector for Source {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let node = self.engine.database.counters();
        let protocol = self.server.totals();
        let links = self.transporter.statistics();
        let native = self.service.counts();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (native_transactions, native_scans, native_sessions) = self.service.open();
        let counters = [
            ("commits", "Transactions committed", node.commits),
            ("rollbacks", "Transactions rolled back", node.rollbacks),
            ("deadlocks", "Transactions ended with error 1213", node.deadlocks),
            ("lock_waits", "Waits for row locks", node.lock_waits),
            ("lock_timeouts", "Waits for row locks that ended with error 1205", node.lock_timeouts),
            ("redo_flushes", "Writes of the redo log that were synced", node.flushes),
            ("redo_commit_bytes", "Bytes of commit records", node.commit_bytes),
            ("checkpoints", "Checkpoints finished", node.checkpoints),
            ("checkpoint_failures", "Checkpoints given up", node.checkpoint_failures),
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
        ];
        for (name, help, value) in counters {
            let metric = ConstCounter::new(value);
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)?;
        }
        let gauges = [
            ("sessions", "Sessions now", protocol.sessions),
            ("native_links", "Native connections now", links.links_open),
            ("native_sessions", "Native sessions now", native_sessions as u64),
            ("native_transactions", "Native transactions now", native_transactions as u64),
            ("native_open_scans", "Native scans now", native_scans as u64),
            ("transactions", "Transactions now", node.transactions),
            ("snapshots", "Snapshots that keep old row versions", node.snapshots),
            ("memory_used_bytes", "Rows, indexes, versions", node.memory_used),
            ("memory_limit_bytes", "rauk_memory_limit", node.memory_limit),
            ("redo_live_bytes", "Redo segments that recovery would read", node.redo_live_bytes),
            ("uptime_seconds", "Seconds since the start", self.engine.uptime().as_secs()),
        ];
        for (name, help, value) in gauges {
            let metric = ConstGauge::new(value as i64);
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)?;
        }
        Ok(())
    }
}

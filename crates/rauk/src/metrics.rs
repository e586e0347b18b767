//! What `/metrics` shows: read from the engine's own counters when it is asked for, so that counting costs nothing extra.

use crate::backend::Backend;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use rauk_mysql::server::Server;
use rauk_sql::session::Engine;
use std::sync::Arc;

struct Source {
    engine: Arc<Engine>,
    server: Arc<Server<Backend>>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Source")
    }
}

pub fn registry(engine: Arc<Engine>, server: Arc<Server<Backend>>) -> Registry {
    let mut registry = Registry::with_prefix("rauk");
    registry.register_collector(Box::new(Source { engine, server }));
    registry
}

impl Collector for Source {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let node = self.engine.database.counters();
        let protocol = self.server.totals();
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
        ];
        for (name, help, value) in counters {
            let metric = ConstCounter::new(value);
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)?;
        }
        let gauges = [
            ("sessions", "Sessions now", protocol.sessions),
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

//! The HTTP port: `/health` for load balancers (200 while this node can serve clients, with its health and why), `/metrics` in Prometheus' text format, `/cluster` for a member of a cluster.

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::json;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpListener;

/// Why the node cannot serve clients, if it cannot.
pub type Trouble = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// A colour, and why.
pub type Health = Box<dyn Fn() -> (String, Vec<String>) + Send + Sync>;

/// Makes a page as JSON when it is asked for.
pub type Page = Box<dyn Fn() -> String + Send + Sync>;

pub struct Pages {
    pub registry: Registry,
    /// Turns false while the server stops.
    pub healthy: Arc<AtomicBool>,
    pub trouble: Trouble,
    /// Its health, and why: the same as `rauk.health`.
    pub health: Health,
    /// What this node knows of its cluster; a node that is alone has none.
    pub cluster: Option<Page>,
}

/// Serves until `stop` resolves.
pub async fn serve(
    listener: TcpListener,
    pages: Pages,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let Pages { registry, healthy, trouble, health: colour, cluster } = pages;
    let (registry, cluster) = (Arc::new(registry), Arc::new(cluster));
    let (trouble, colour) = (Arc::new(trouble), Arc::new(colour));
    let metrics = move || {
        let registry = registry.clone();
        async move {
            let mut text = String::new();
            match encode(&mut text, &registry) {
                Ok(()) => {
                    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
                        .into_response()
                }
                Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
            }
        }
    };
    let health = move || {
        let (healthy, trouble, colour) = (healthy.clone(), trouble.clone(), colour.clone());
        async move {
            let (code, page) = match trouble() {
                _ if !healthy.load(Ordering::Relaxed) => {
                    (StatusCode::SERVICE_UNAVAILABLE, json!({"status": "stopping"}))
                }
                Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, json!({"status": "unavailable", "reason": reason})),
                None => {
                    let (health, reasons) = colour();
                    (StatusCode::OK, json!({"status": "ok", "health": health, "reasons": reasons}))
                }
            };
            (code, page.to_string() + "\n")
        }
    };
    let cluster = move || {
        let cluster = cluster.clone();
        async move {
            match &*cluster {
                Some(page) => ([(header::CONTENT_TYPE, "application/json")], page() + "\n").into_response(),
                None => (StatusCode::NOT_FOUND, "{\"error\":\"this node is alone\"}\n").into_response(),
            }
        }
    };
    let router =
        Router::new().route("/metrics", get(metrics)).route("/health", get(health)).route("/cluster", get(cluster));
    axum::serve(listener, router).with_graceful_shutdown(stop).await
}

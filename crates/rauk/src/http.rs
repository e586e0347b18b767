//! The HTTP port: `/health` for load balancers (200 while this node can serve clients, with its health and why), `/metrics` in Prometheus' text format, `/cluster` for a member of a cluster.
//!
//! It answers from the beginning of the process. Until the node serves ([`Site::serve`]) `/health` and `/cluster` are 503 and say how far it is.

use crate::start::opening::Opening;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
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

/// What the port shows: of a node that opens, then of one that serves.
pub struct Site {
    opening: Arc<Opening>,
    /// Of a node that opens.
    metrics: Registry,
    serving: OnceLock<Pages>,
}

impl Site {
    /// `metrics`: those of a node that opens.
    pub fn new(opening: Arc<Opening>, metrics: Registry) -> Site {
        Site { opening, metrics, serving: OnceLock::new() }
    }

    /// The node serves from now on.
    pub fn serve(&self, pages: Pages) {
        // A node begins to serve once.
        let _ = self.serving.set(pages);
    }

    fn health(&self) -> (StatusCode, Value) {
        let Some(pages) = self.serving.get() else { return (StatusCode::SERVICE_UNAVAILABLE, self.opening.page()) };
        match (pages.trouble)() {
            _ if !pages.healthy.load(Ordering::Relaxed) => {
                (StatusCode::SERVICE_UNAVAILABLE, json!({"status": "stopping"}))
            }
            Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, json!({"status": "unavailable", "reason": reason})),
            None => {
                let (health, reasons) = (pages.health)();
                (StatusCode::OK, json!({"status": "ok", "health": health, "reasons": reasons}))
            }
        }
    }
}

/// Serves until `stop` resolves.
pub async fn serve(
    listener: TcpListener,
    site: Arc<Site>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let of = site.clone();
    let metrics = move || {
        let site = of.clone();
        async move {
            let mut text = String::new();
            match encode(&mut text, site.serving.get().map_or(&site.metrics, |pages| &pages.registry)) {
                Ok(()) => {
                    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
                        .into_response()
                }
                Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
            }
        }
    };
    let of = site.clone();
    let health = move || {
        let site = of.clone();
        async move {
            let (code, page) = site.health();
            (code, page.to_string() + "\n")
        }
    };
    let cluster = move || {
        let site = site.clone();
        async move {
            match site.serving.get().map(|pages| &pages.cluster) {
                None => (StatusCode::SERVICE_UNAVAILABLE, site.opening.page().to_string() + "\n").into_response(),
                Some(Some(page)) => ([(header::CONTENT_TYPE, "application/json")], page() + "\n").into_response(),
                Some(None) => (StatusCode::NOT_FOUND, "{\"error\":\"this node is alone\"}\n").into_response(),
            }
        }
    };
    let router =
        Router::new().route("/metrics", get(metrics)).route("/health", get(health)).route("/cluster", get(cluster));
    axum::serve(listener, router).with_graceful_shutdown(stop).await
}

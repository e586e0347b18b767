//! The HTTP port: `/health` for load balancers, `/metrics` in Prometheus' text format, `/cluster` for a member of a cluster.

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpListener;

/// Makes a page as JSON when it is asked for.
pub type Page = Box<dyn Fn() -> String + Send + Sync>;

pub struct Pages {
    pub registry: Registry,
    /// Turns false while the server stops.
    pub healthy: Arc<AtomicBool>,
    /// What this node knows of its cluster; a node that is alone has none.
    pub cluster: Option<Page>,
}

/// Serves until `stop` resolves.
pub async fn serve(
    listener: TcpListener,
    pages: Pages,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let Pages { registry, healthy, cluster } = pages;
    let (registry, cluster) = (Arc::new(registry), Arc::new(cluster));
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
        let healthy = healthy.clone();
        async move {
            if healthy.load(Ordering::Relaxed) {
                (StatusCode::OK, "{\"status\":\"ok\"}\n")
            } else {
                (StatusCode::SERVICE_UNAVAILABLE, "{\"status\":\"stopping\"}\n")
            }
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

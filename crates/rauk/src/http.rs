//! The HTTP port: `/health` for load balancers, `/metrics` in Prometheus' text format.

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

/// Serves until `stop` resolves. `healthy` turns false while the server stops.
pub async fn serve(
    listener: TcpListener,
    registry: Registry,
    healthy: Arc<AtomicBool>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let registry = Arc::new(registry);
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
    let router = Router::new().route("/metrics", get(metrics)).route("/health", get(health));
    axum::serve(listener, router).with_graceful_shutdown(stop).await
}

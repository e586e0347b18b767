//! The native port: the node's native service behind a transporter, with what the operator may set.
//!
//! Peers prove that they know the shared secret (`secret-file`; made at the first start, readable by its owner only), or show a certificate (`native-tls-…`), or both
//! where both are set. All nodes of a cluster have the same secret ([`secret`]). A client that shows an account of SQL instead may do what that may ([`accounts`]). Receive threads execute what they read, as MySQL's workers do; by default there are half as many as cores, since the workers have all of them.

mod accounts;
mod secret;

use crate::config::Settings;
use accounts::Gate;
use rauk_node::Database;
use rauk_node::native::server::Server;
use rauk_node::native::{Limits, Service};
use rauk_sql::session::Engine;
use rauk_transporter::security::TlsFiles;
use rauk_transporter::{Identity, Options, Secret, Security, Tls, Transporter};
use rauk_types::Value;
use rauk_wire::hello::Role;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

pub struct Native {
    pub address: SocketAddr,
    pub transporter: Arc<Transporter>,
    pub service: Arc<Service>,
}

impl Native {
    pub fn start(
        settings: &Settings,
        database: Database,
        engine: &Arc<Engine>,
        listener: TcpListener,
        cores: usize,
    ) -> Result<Native, String> {
        let security = security(settings, &database)?;
        let service = Service::new(database, Limits::default());
        let identity = Identity {
            role: Role::Node,
            cluster: service.cluster(),
            incarnation: service.incarnation(),
            version: rauk_wire::PROTOCOL,
            name: format!("rauk {}", env!("CARGO_PKG_VERSION")),
        };
        let threads = usize::from(settings.native_threads);
        let options = Options {
            receive_threads: if threads == 0 { (cores / 2).max(1) } else { threads },
            longest_wait: Duration::from_micros(settings.native_longest_wait.into()),
            longest_spin: Duration::from_micros(settings.native_longest_spin.into()),
            max_links: settings.max_connections as usize,
            accepts: Some(Role::Client),
            ..Options::default()
        };
        let transporter =
            Transporter::start(options, identity, Server::new(service.clone())).map_err(|e| e.to_string())?;
        transporter.set_accounts(Gate::new(engine.clone()));
        let address = transporter
            .listen(listener, security)
            .map_err(|e| format!("the native port cannot be opened: {e} (--secret-file, --native-tls-cert)"))?;
        Ok(Native { address, transporter, service })
    }

    /// SET GLOBAL rauk_native_longest_wait takes effect at once; a persisted value from the start.
    pub fn follow(&self, engine: &Engine) {
        let transporter = self.transporter.clone();
        engine.variables.watch("rauk_native_longest_wait", move |value| {
            if let Value::UInt(micros) = value {
                transporter.set_longest_wait(Duration::from_micros(*micros));
            }
        });
    }

    /// No new clients; requests at work may end, then open transactions are rolled back.
    pub fn stop(&self, grace: Duration) {
        self.transporter.shutdown(grace);
    }
}

fn security(settings: &Settings, database: &Database) -> Result<Security, String> {
    let tls = match (&settings.native_tls_cert, &settings.native_tls_key, &settings.native_tls_ca) {
        (Some(certificate), Some(key), Some(authority)) => Some(Tls::Files(TlsFiles {
            certificate: certificate.clone(),
            key: key.clone(),
            authority: authority.clone(),
            server_name: None,
        })),
        _ => None,
    };
    let secret = match &settings.secret_file {
        Some(file) => Some(Secret::from_file(file).map_err(|e| e.to_string())),
        // Certificates are proof enough.
        None if tls.is_some() => None,
        None => Some(secret::own(&settings.data_dir, database)),
    };
    Ok(Security { secret: secret.transpose().map_err(|e| format!("{e} (--secret-file)"))?, tls })
}

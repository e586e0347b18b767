//! Whoever serves clients: the SQL engine behind the MySQL port and its socket, and the native port.

use crate::backend::Backend;
use crate::config::{RESET_ROOT_PASSWORD, Settings};
use crate::native::Native;
use crate::start::opening::RefusingPort;
use rauk_mysql::server::{Limits, Server, ServerOptions};
use rauk_mysql::tls::TlsOptions;
use rauk_mysql::workers::{self, Listener};
use rauk_node::{Database, Runtime};
use rauk_sql::session::{Engine, EngineOptions, RootPassword};
use rauk_types::Value;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub struct Services {
    pub mysql: SocketAddr,
    pub native: Native,
    pub server: Arc<Server<Backend>>,
    workers: workers::Workers<Backend>,
}

impl Services {
    /// `clients`: listeners of the MySQL port and the native one. `refusing` is on the first until it is served.
    pub fn start(
        settings: &Settings,
        database: &Database,
        runtime: Arc<dyn Runtime>,
        (mysql, native): (TcpListener, TcpListener),
        refusing: Option<RefusingPort>,
        cores: usize,
    ) -> Result<Services, String> {
        let engine = Engine::new(database.clone(), runtime, engine_options(settings, &mysql, &native)?)
            .map_err(|e| e.to_string())?;
        engine.keep_intervals();
        engine.purge_as_time_passes();
        let tls = match (&settings.tls_cert, &settings.tls_key) {
            (Some(certificate), Some(key)) => TlsOptions::Files { certificate: certificate.clone(), key: key.clone() },
            _ => TlsOptions::Automatic { directory: settings.data_dir.clone() },
        };
        let options = ServerOptions {
            tls,
            client_ca: settings.tls_ca.clone(),
            rsa_key_path: Some(settings.data_dir.join("private_key.pem")),
            limits: Limits { max_connections: settings.max_connections as usize, ..Limits::default() },
        };
        let server = Server::new(Arc::new(Backend(engine.clone())), options).map_err(|e| e.to_string())?;
        let native = Native::start(settings, database.clone(), &engine, native, cores)?;
        native.follow(&engine);
        let address = mysql.local_addr().map_err(|e| e.to_string())?;
        let mut listeners = vec![Listener::Tcp(mysql)];
        if let Some(path) = &settings.socket {
            let listener =
                Listener::bind_unix(path).map_err(|e| format!("cannot listen on socket {}: {e}", path.display()))?;
            listeners.push(listener);
        }
        drop(refusing);
        let count = if settings.threads == 0 { cores } else { settings.threads as usize };
        let workers =
            workers::start(server.clone(), count, listeners).map_err(|e| format!("cannot start threads: {e}"))?;
        Ok(Services { mysql: address, native, server, workers })
    }

    /// Both kinds of clients at the same time: requests that run may end, open transactions are rolled back.
    pub fn stop(self, grace: Duration) {
        let native = self.native;
        let cancelled = std::thread::scope(|scope| {
            scope.spawn(|| native.stop(grace));
            self.workers.shutdown(grace)
        });
        if cancelled > 0 {
            tracing::warn!(cancelled, "statements that still ran were cancelled");
        }
    }
}

fn engine_options(settings: &Settings, mysql: &TcpListener, native: &TcpListener) -> Result<EngineOptions, String> {
    let port_of = |listener: &TcpListener| listener.local_addr().map(|a| a.port()).map_err(|e| e.to_string());
    let (port, native_port) = (port_of(mysql)?, port_of(native)?);
    let hostname =
        std::fs::read_to_string("/proc/sys/kernel/hostname").map_or("localhost".into(), |h| h.trim().to_string());
    let directory = settings.data_dir.canonicalize().unwrap_or_else(|_| settings.data_dir.clone());
    Ok(EngineOptions {
        variables: vec![
            ("port", Value::UInt(port.into())),
            ("datadir", Value::Str(format!("{}/", directory.display()))),
            ("hostname", Value::Str(hostname)),
            ("socket", Value::Str(settings.socket.as_ref().map_or(String::new(), |s| s.display().to_string()))),
            ("rauk_history_limit", Value::UInt(settings.history_limit)),
            ("rauk_checkpoint_redo_bytes", Value::UInt(settings.checkpoint_redo)),
            ("rauk_native_port", Value::UInt(native_port.into())),
            ("rauk_native_longest_wait", Value::UInt(settings.native_longest_wait.into())),
            ("rauk_native_longest_spin", Value::UInt(settings.native_longest_spin.into())),
            ("require_secure_transport", Value::Int(settings.require_tls.into())),
            ("disconnect_on_expired_password", Value::Int(settings.disconnect_on_expired_password.into())),
            ("ssl_ca", Value::Str(settings.tls_ca.as_ref().map_or(String::new(), |path| path.display().to_string()))),
            ("secure_file_priv", secure_file_priv(settings)?),
            ("max_connections", Value::UInt(settings.max_connections.into())),
        ],
        root_password: root_password(settings)?,
        beside: workers::beside,
        give_way: workers::give_way,
        ..EngineOptions::default()
    })
}

/// What the settings say of root's password.
fn root_password(settings: &Settings) -> Result<Option<RootPassword>, String> {
    let of_file = |file: &Path, name: &str, reset| {
        let text =
            std::fs::read_to_string(file).map_err(|e| format!("--{name}: cannot read {}: {e}", file.display()))?;
        // An editor, and `echo`, put a line's end behind it.
        let text = text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
        if text.is_empty() || text.contains(['\n', '\r']) {
            return Err(format!("--{name}: {} must have one line, the password", file.display()));
        }
        Ok(Some(RootPassword { text: text.into(), given_by: format!("--{name}"), reset }))
    };
    match (&settings.reset_root_password, &settings.root_password_file, &settings.root_password) {
        (Some(file), ..) => of_file(file, RESET_ROOT_PASSWORD, true),
        (None, Some(file), _) => of_file(file, "root-password-file", false),
        (None, None, Some(password)) => {
            let given_by = "RAUK_ROOT_PASSWORD".to_string();
            Ok(Some(RootPassword { text: password.0.clone(), given_by, reset: false }))
        }
        (None, None, None) => Ok(None),
    }
}

/// The directory of files for clients, with a slash at its end, as MySQL shows it.
fn secure_file_priv(settings: &Settings) -> Result<Value, String> {
    match &settings.secure_file_priv {
        None => Ok(Value::Null),
        Some(path) if path.as_os_str().is_empty() => Ok(Value::from("")),
        Some(path) => match path.canonicalize() {
            Ok(directory) if directory.is_dir() => Ok(Value::Str(format!("{}/", directory.display()))),
            Ok(_) => Err(format!("secure-file-priv: {} is not a directory", path.display())),
            Err(error) => Err(format!("secure-file-priv: {}: {error}", path.display())),
        },
    }
}

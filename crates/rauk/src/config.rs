//! Configuration: defaults, then a TOML file, then environment, then flags; every setting in all of them under one name.
//!
//! `--memory-limit 4GiB` on the command line is `RAUK_MEMORY_LIMIT=4GiB` in the environment and `memory-limit = "4GiB"` in the file. A key that
//! does not exist, or a value that does not fit, is an error that names the key, where it stood, and the nearest right one. Nothing is
//! ignored silently: an unknown `RAUK_…` variable is an error as well, but for those with which container orchestrators
//! announce a service that is called rauk ([`environment`]).

pub mod environment;

use crate::cluster::settings::{self as cluster, ClusterSettings};
use crate::machine::{self, Memory};
use rauk_node::Durability;
use rauk_types::size;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Everything `rauk start` can be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub data_dir: PathBuf,
    pub host: IpAddr,
    /// 0: any free port, printed at start.
    pub mysql_port: u16,
    /// A Unix socket beside the port, if wanted.
    pub socket: Option<PathBuf>,
    /// Where /metrics, /cluster and /health are answered, without login; `None`: on loopback.
    pub http_host: Option<IpAddr>,
    pub http_port: u16,
    /// Port of the native API; 0: any free port.
    pub native_port: u16,
    /// The native API's shared secret; `None`: `native.secret` in the data directory, made at the first start.
    pub secret_file: Option<PathBuf>,
    pub native_tls_cert: Option<PathBuf>,
    pub native_tls_key: Option<PathBuf>,
    pub native_tls_ca: Option<PathBuf>,
    /// Threads that receive and execute native requests; 0: one for two cores.
    pub native_threads: u16,
    /// Microseconds that an answer may wait for others to be sent with; 0 sends each at once.
    pub native_longest_wait: u32,
    /// Microseconds that a receiver spins at most before it sleeps.
    pub native_longest_spin: u32,
    pub durability: Durability,
    pub memory_limit: u64,
    pub history_limit: u64,
    /// Threads that execute statements; 0: one a core.
    pub threads: u16,
    /// Partitions of a new data directory; 0: two a core, at least four.
    pub partitions: u16,
    pub max_connections: u32,
    pub redo_segment: u64,
    /// Redo written since the last checkpoint that starts the next.
    pub checkpoint_redo: u64,
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    /// What certificates of clients (REQUIRE X509) are checked by.
    pub tls_ca: Option<PathBuf>,
    pub require_tls: bool,
    pub disconnect_on_expired_password: bool,
    /// root's password on a server without accounts: a file that has it, or the text itself.
    pub root_password_file: Option<PathBuf>,
    pub root_password: Option<Hidden>,
    /// A file with root's password on a server that has accounts, for one start.
    pub reset_root_password: Option<PathBuf>,
    /// Where LOAD DATA and SELECT … INTO OUTFILE may use files of this machine; `None`: nowhere; empty: everywhere.
    pub secure_file_priv: Option<PathBuf>,
    pub log_level: String,
    pub log_json: bool,
    pub cluster: ClusterSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            data_dir: PathBuf::from("rauk-data"),
            host: IpAddr::from([127, 0, 0, 1]),
            mysql_port: 3306,
            socket: None,
            http_host: None,
            http_port: 8306,
            native_port: 4407,
            secret_file: None,
            native_tls_cert: None,
            native_tls_key: None,
            native_tls_ca: None,
            native_threads: 0,
            native_longest_wait: 200,
            native_longest_spin: 50,
            durability: Durability::Fsync,
            memory_limit: default_memory_limit(),
            history_limit: 256 << 20,
            threads: 0,
            partitions: 0,
            max_connections: 10_000,
            redo_segment: 64 << 20,
            checkpoint_redo: 512 << 20,
            tls_cert: None,
            tls_key: None,
            tls_ca: None,
            require_tls: false,
            disconnect_on_expired_password: true,
            root_password_file: None,
            root_password: None,
            reset_root_password: None,
            secure_file_priv: None,
            log_level: "info".into(),
            log_json: false,
            cluster: ClusterSettings::default(),
        }
    }
}

/// 60 % of the memory that this process may have, or 4 GiB where that cannot be read.
fn default_memory_limit() -> u64 {
    machine::memory().map_or(4 << 30, |memory| memory.bytes / 10 * 6)
}

/// A setting: its name, what it is, and how its text is taken.
pub struct Key {
    pub name: &'static str,
    pub value_name: &'static str,
    pub help: &'static str,
    set: fn(&mut Settings, &str) -> Result<(), String>,
}

macro_rules! key {
    ($name:expr, $value:literal, $help:literal, $set:expr) => {
        Key { name: $name, value_name: $value, help: $help, set: $set }
    };
}

pub const KEYS: &[Key] = &[
    key!("data-dir", "DIR", "Where the data lies [default: rauk-data]", |s, v| path(v).map(|p| s.data_dir = p)),
    key!("host", "ADDRESS", "Address to listen on; beyond loopback only when told [default: 127.0.0.1]", |s, v| {
        address(v).map(|x| s.host = x)
    }),
    key!("mysql-port", "PORT", "Port for MySQL clients; 0 takes a free one [default: 3306]", |s, v| parse(
        v,
        "a port number, 0 to 65535"
    )
    .map(|x| s.mysql_port = x)),
    key!("socket", "PATH", "Unix socket for MySQL clients, besides the port [default: none]", |s, v| path(v)
        .map(|p| s.socket = Some(p))),
    key!(
        "http-host",
        "ADDRESS",
        "Address for /metrics, /cluster and /health, which ask for no login [default: loopback, whatever --host is]",
        |s, v| address(v).map(|x| s.http_host = Some(x))
    ),
    key!("http-port", "PORT", "Port for /metrics and /health; 0 takes a free one [default: 8306]", |s, v| parse(
        v,
        "a port number, 0 to 65535"
    )
    .map(|x| s.http_port = x)),
    key!("native-port", "PORT", "Port of the native API; 0 takes a free one [default: 4407]", |s, v| parse(
        v,
        "a port number, 0 to 65535"
    )
    .map(|x| s.native_port = x)),
    key!(
        "secret-file",
        "FILE",
        "Shared secret of native clients [default: native.secret in the data directory, made at first start]",
        |s, v| path(v).map(|p| s.secret_file = Some(p))
    ),
    key!("native-tls-cert", "FILE", "Certificate chain of the native port, PEM [default: no TLS]", |s, v| path(v)
        .map(|p| s.native_tls_cert = Some(p))),
    key!("native-tls-key", "FILE", "Its private key, PEM", |s, v| path(v).map(|p| s.native_tls_key = Some(p))),
    key!(
        "native-tls-ca",
        "FILE",
        "Authority that native clients' certificates must be signed by, PEM; with it the secret is asked for only when --secret-file is given",
        |s, v| path(v).map(|p| s.native_tls_ca = Some(p))
    ),
    key!("native-threads", "N", "Threads that execute native requests; 0: one for two cores [default: 0]", |s, v| {
        let n: u16 = parse(v, "a number of threads, 0 to 256")?;
        if n > 256 {
            return Err("a number of threads, 0 to 256".into());
        }
        s.native_threads = n;
        Ok(())
    }),
    key!(
        "native-longest-wait",
        "MICROSECONDS",
        "Longest wait of a native answer for others to go with; 0 sends each at once [default: 200]",
        |s, v| micros(v).map(|x| s.native_longest_wait = x)
    ),
    key!(
        "native-longest-spin",
        "MICROSECONDS",
        "Longest time that a native thread looks for requests before it sleeps [default: 50]",
        |s, v| micros(v).map(|x| s.native_longest_spin = x)
    ),
    key!(
        "durability",
        "fsync|relaxed|replicated",
        "fsync: acknowledged means on disk; relaxed: on disk within 50 ms; replicated: in the memory of all in-sync replicas of the cluster that is founded [default: fsync]",
        |s, v| {
            s.durability = match v {
                "fsync" => Durability::Fsync,
                "relaxed" => Durability::Relaxed,
                "replicated" => Durability::Replicated,
                _ => return Err(nearest("fsync, relaxed or replicated", v, &["fsync", "relaxed", "replicated"])),
            };
            Ok(())
        }
    ),
    key!(
        "memory-limit",
        "SIZE",
        "Memory for rows, indexes and versions, as 4GiB; no more than this machine, or its control group (cgroup), has [default: 60% of that]",
        |s, v| {
            let bytes = size_of(v)?;
            if bytes < 16 << 20 {
                return Err("at least 16MiB".into());
            }
            s.memory_limit = bytes;
            Ok(())
        }
    ),
    key!("history-limit", "SIZE", "Memory for old row versions that snapshots need [default: 256MiB]", |s, v| size_of(
        v
    )
    .map(|x| s.history_limit = x)),
    key!("threads", "N", "Threads that execute statements; 0: one a core [default: 0]", |s, v| parse(
        v,
        "a number of threads"
    )
    .map(|x| s.threads = x)),
    key!("partitions", "N", "Partitions of a new data directory; 0: two a core [default: 0]", |s, v| {
        let n: u16 = parse(v, "a number of partitions, 0 to 1024")?;
        if n > 1024 {
            return Err("a number of partitions, 0 to 1024".into());
        }
        s.partitions = n;
        Ok(())
    }),
    key!("max-connections", "N", "Clients at one time [default: 10000]", |s, v| parse(v, "a number of connections")
        .map(|x| s.max_connections = x)),
    key!("redo-segment", "SIZE", "Size of a redo log segment [default: 64MiB]", |s, v| {
        let bytes = size_of(v)?;
        if !(1 << 20..=1 << 30).contains(&bytes) {
            return Err("1MiB to 1GiB".into());
        }
        s.redo_segment = bytes;
        Ok(())
    }),
    key!(
        "checkpoint-redo",
        "SIZE",
        "Redo written since the last checkpoint that starts the next [default: 512MiB]",
        |s, v| {
            let bytes = size_of(v)?;
            if bytes < 1 << 20 {
                return Err("at least 1MiB".into());
            }
            s.checkpoint_redo = bytes;
            Ok(())
        }
    ),
    key!("tls-cert", "FILE", "Certificate chain, PEM [default: self-signed, made at first start]", |s, v| path(v)
        .map(|p| s.tls_cert = Some(p))),
    key!("tls-key", "FILE", "Private key, PEM", |s, v| path(v).map(|p| s.tls_key = Some(p))),
    key!(
        "tls-ca",
        "FILE",
        "Authority that clients' certificates must be signed by (REQUIRE X509), PEM [default: clients show none]",
        |s, v| path(v).map(|p| s.tls_ca = Some(p))
    ),
    key!(
        "disconnect-on-expired-password",
        "true|false",
        "Refuse clients that cannot handle an expired password [default: true]",
        |s, v| boolean(v).map(|x| s.disconnect_on_expired_password = x)
    ),
    key!(
        "root-password-file",
        "FILE",
        "File with root's password for a server without accounts; RAUK_ROOT_PASSWORD is the password itself [default: no password, from this machine only]",
        |s, v| path(v).map(|p| s.root_password_file = Some(p))
    ),
    key!(
        RESET_ROOT_PASSWORD,
        "FILE",
        "File with a new password for root, for one start on a directory whose password is lost; on the command line only",
        |s, v| path(v).map(|p| s.reset_root_password = Some(p))
    ),
    key!("require-tls", "true|false", "Refuse connections over TCP without TLS [default: false]", |s, v| boolean(v)
        .map(|x| s.require_tls = x)),
    key!(
        "secure-file-priv",
        "DIR",
        "Directory whose files LOAD DATA and SELECT ... INTO OUTFILE may use; empty: any but the data directory [default: none]",
        |s, v| {
            s.secure_file_priv = Some(PathBuf::from(v));
            Ok(())
        }
    ),
    key!("log-level", "LEVEL", "error, warn, info, debug or trace [default: info]", |s, v| {
        const LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace"];
        if !LEVELS.contains(&v) {
            return Err(nearest("error, warn, info, debug or trace", v, LEVELS));
        }
        s.log_level = v.into();
        Ok(())
    }),
    key!("log-json", "true|false", "One JSON object a line instead of text [default: false]", |s, v| boolean(v)
        .map(|x| s.log_json = x)),
    key!(
        "roles",
        "ROLE,…",
        "Member of a cluster: what this node does, of manage, data and sql [default: all, or what it did before]",
        |s, v| cluster::roles(v).map(|x| s.cluster.roles = Some(x))
    ),
    key!(
        "cluster-port",
        "PORT",
        "Member of a cluster: port for other nodes; 0 takes a free one [default: 7306]",
        |s, v| parse(v, "a port number, 0 to 65535").map(|x| s.cluster.port = Some(x))
    ),
    key!(
        "replicas",
        "N",
        "Member of a cluster: replicas of each partition of a cluster that is founded, 1 to 4 [default: 2]",
        |s, v| cluster::replicas(v).map(|x| s.cluster.replicas = Some(x))
    ),
    key!(
        "groups",
        "N",
        "Member of a cluster: replication groups of a cluster that is founded. A transaction within one group is \
         one log entry; at most as many nodes lead as there are groups; 0: one a partition [default: 0]",
        |s, v| cluster::groups(v).map(|x| s.cluster.groups = x)
    ),
    key!(
        "replace-after",
        "SECONDS",
        "Member of a cluster: others get the replicas of a node that is down for so long; counts when it is founded [default: 60]",
        |s, v| cluster::replace_after(v).map(|x| s.cluster.replace_after = Some(x))
    ),
    key!(
        "join",
        "HOST:PORT,…",
        "Member of a cluster: members to ask to be taken in; without, an empty directory founds a cluster",
        |s, v| cluster::addresses(v).map(|x| s.cluster.join = x)
    ),
    key!(
        "cluster-secret-file",
        "FILE",
        "The cluster's secret [default: cluster.secret in the data directory, made by the founding node]",
        |s, v| path(v).map(|p| s.cluster.secret_file = Some(p))
    ),
    key!(
        "plain-links",
        "true|false",
        "Member of a cluster: links between nodes without TLS; the same on all nodes [default: false]",
        |s, v| boolean(v).map(|x| s.cluster.plain_links = x)
    ),
    key!("cluster-name", "NAME", "Name of the cluster to found or join [default: rauk]", |s, v| cluster::name(v)
        .map(|x| s.cluster.name = Some(x))),
    key!("advertise", "HOST", "Host by which other nodes reach this one [default: --host]", |s, v| cluster::host(v)
        .map(|x| s.cluster.advertise = Some(x))),
    key!(
        "peer-address",
        "NODE=HOST:PORT",
        "Another way to a node than the address that it announces; can be repeated",
        |s, v| cluster::peer_addresses(v).map(|x| s.cluster.peer_addresses.extend(x))
    ),
];

/// The setting that is for one start.
pub const RESET_ROOT_PASSWORD: &str = "reset-root-password";

/// A text that is shown nowhere.
#[derive(Clone, PartialEq)]
pub struct Hidden(pub String);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// A setting that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

impl Settings {
    /// Where HTTP is answered: if nothing is said of it, `host` if that is loopback, else the loopback address of its
    /// kind.
    pub fn http_address(&self) -> IpAddr {
        let loopback = match self.host {
            host if host.is_loopback() => host,
            IpAddr::V4(_) => IpAddr::from([127, 0, 0, 1]),
            IpAddr::V6(_) => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
        };
        self.http_host.unwrap_or(loopback)
    }

    pub fn names_root_password(&self) -> bool {
        self.root_password.is_some() || self.root_password_file.is_some() || self.reset_root_password.is_some()
    }

    /// Defaults, overlaid by a file's text, by variables that begin with `RAUK_`, by flags.
    pub fn load(
        file: Option<(&Path, &str)>,
        environment: impl Iterator<Item = (String, String)>,
        flags: &[(&str, String)],
    ) -> Result<Settings, ConfigError> {
        let mut settings = Settings::default();
        if let Some((name, text)) = file {
            settings.take_file(name, text)?;
        }
        let environment: BTreeMap<_, _> = environment.collect();
        for (name, value) in &environment {
            // Fault points are for tests; the configuration file's name is read before this.
            let Some(rest) = name.strip_prefix("RAUK_") else { continue };
            if matches!(rest, "CONFIG" | "FAULT" | "LOG") || environment::is_orchestrators(name, value) {
                continue;
            }
            // Not a setting of its own: command lines and files are seen by others.
            if rest == "ROOT_PASSWORD" {
                if value.is_empty() {
                    return Err(ConfigError(format!(
                        "environment variable {name}: it is empty; leave it out for none"
                    )));
                }
                settings.root_password = Some(Hidden(value.clone()));
                continue;
            }
            let key = rest.to_ascii_lowercase().replace('_', "-");
            settings.take(&key, value, &format!("environment variable {name}"))?;
        }
        for (key, value) in flags {
            settings.take(key, value, &format!("--{key}"))?;
        }
        if settings.tls_cert.is_some() != settings.tls_key.is_some() {
            return Err(ConfigError("tls-cert and tls-key go together: give both or none".into()));
        }
        let native = [&settings.native_tls_cert, &settings.native_tls_key, &settings.native_tls_ca];
        if native.iter().any(|f| f.is_some()) && native.iter().any(|f| f.is_none()) {
            let text = "native-tls-cert, native-tls-key and native-tls-ca go together: give all or none";
            return Err(ConfigError(text.into()));
        }
        if settings.root_password.is_some() && settings.root_password_file.is_some() {
            let text = "RAUK_ROOT_PASSWORD and root-password-file are two passwords for root: give one of them";
            return Err(ConfigError(text.into()));
        }
        settings.check_memory(machine::memory().as_ref())?;
        Ok(settings)
    }

    /// A limit beyond what there is would not be kept: the system ends the process before.
    fn check_memory(&self, memory: Option<&Memory>) -> Result<(), ConfigError> {
        let Some(memory) = memory.filter(|memory| self.memory_limit > memory.bytes) else { return Ok(()) };
        let (limit, most) = (size::show(self.memory_limit), size::show(memory.bytes));
        Err(ConfigError(format!(
            "memory-limit: {limit} is more than the {most} that {}; give at most {most}, and leave some of it for \
             connections and statements: without the setting it is 60 % of it",
            memory.of
        )))
    }

    fn take_file(&mut self, name: &Path, text: &str) -> Result<(), ConfigError> {
        let table: toml::Table = text.parse().map_err(|e| ConfigError(not_toml(name, text, &e)))?;
        for (key, value) in table {
            let text = match value {
                toml::Value::String(text) => text,
                toml::Value::Integer(n) => n.to_string(),
                toml::Value::Boolean(b) => b.to_string(),
                other => {
                    return Err(ConfigError(format!(
                        "{}: '{key}' is {}, but every setting is a text, a number or true/false",
                        name.display(),
                        other.type_str()
                    )));
                }
            };
            self.take(&key, &text, &format!("{}: '{key}'", name.display()))?;
        }
        Ok(())
    }

    fn take(&mut self, name: &str, value: &str, place: &str) -> Result<(), ConfigError> {
        let Some(key) = KEYS.iter().find(|k| k.name == name) else {
            let names: Vec<&str> = KEYS.iter().map(|k| k.name).collect();
            return Err(ConfigError(nearest(&format!("{place}: there is no setting '{name}'"), name, &names)));
        };
        // Where it stays it would undo every later change of the password.
        if key.name == RESET_ROOT_PASSWORD && !place.starts_with("--") {
            let text = "is for one start: give it on the command line, as --reset-root-password FILE";
            return Err(ConfigError(format!("{place} {text}")));
        }
        (key.set)(self, value)
            .map_err(|wanted| ConfigError(format!("{place}: '{value}' will not do; wanted: {wanted}")))
    }
}

/// The parser shows the text over several lines; an error of ours is one line. The most frequent cause is a value with a
/// unit and no quotes.
fn not_toml(name: &Path, text: &str, error: &toml::de::Error) -> String {
    let at = error.span().map_or(0, |span| span.start.min(text.len()));
    let number = text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    let line = text.lines().nth(number - 1).unwrap_or_default().trim();
    let cause = error.message().lines().collect::<Vec<_>>().join(", ");
    let (name, way_out) = (name.display(), "write key = \"text\", key = number or key = true, each on its own line");
    format!("{name}: line {number}, '{line}': {cause}; {way_out}")
}

/// `text`, with the nearest of the right words where one is near.
fn nearest(text: &str, word: &str, words: &[&str]) -> String {
    let best = words.iter().map(|w| (strsim::jaro_winkler(w, word), w)).max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((score, best)) if score > 0.7 => format!("{text}; did you mean '{best}'?"),
        _ => text.to_string(),
    }
}

fn parse<T: FromStr>(value: &str, wanted: &str) -> Result<T, String> {
    value.trim().parse().map_err(|_| wanted.to_string())
}

fn address(value: &str) -> Result<IpAddr, String> {
    match value {
        "localhost" => Ok(IpAddr::from([127, 0, 0, 1])),
        _ => parse(value, "an IP address such as 127.0.0.1 or 0.0.0.0"),
    }
}

fn path(value: &str) -> Result<PathBuf, String> {
    if value.is_empty() { Err("a path".into()) } else { Ok(PathBuf::from(value)) }
}

/// Up to a second.
fn micros(value: &str) -> Result<u32, String> {
    let wanted = "microseconds, 0 to 1000000";
    let micros: u32 = parse(value, wanted)?;
    if micros > 1_000_000 { Err(wanted.into()) } else { Ok(micros) }
}

fn boolean(value: &str) -> Result<bool, String> {
    match value {
        "true" | "1" | "on" => Ok(true),
        "false" | "0" | "off" => Ok(false),
        _ => Err("true or false".into()),
    }
}

/// `512`, `64KiB`, `1.5GiB`, `4G`, `100MB` in bytes.
fn size_of(value: &str) -> Result<u64, String> {
    size::parse(value).ok_or_else(|| "a size such as 512MiB or 4GiB".to_string())
}

#[cfg(test)]
mod tests;

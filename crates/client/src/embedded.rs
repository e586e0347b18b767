//! The whole database in this process: no port, no thread between the program and its rows.
//!
//! What a client asks is done by the thread that asks. Threads of the database's own write checkpoints, collect old versions and keep timers. The directory is a server's data directory: a
//! server can be started on it when the program has ended, and the other way round.

use crate::channel::Channel;
use crate::channel::local::Local;
use crate::options::Options;
use crate::{Client, Error, ErrorKind};
use rauk_log::{Disk, RealDisk};
use rauk_node::native::{Limits, Service};
use rauk_node::runtime::threads::Threads;
use rauk_node::{Config, Database, Runtime};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a database that is being closed may take to give its directory back.
const CLOSING: Duration = Duration::from_secs(1);

/// An open database. [`Rauk::client`] gives the same API as over the network.
pub struct Rauk {
    database: Database,
    service: Arc<Service>,
    closed: bool,
}

impl Rauk {
    /// Opens or makes the database in a directory; recovers what a crash left.
    pub fn open(directory: impl AsRef<Path>) -> Result<Rauk, Error> {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Rauk::open_with(directory, Config { partitions: (cores * 2).clamp(4, 256) as u16, ..Config::default() })
    }

    /// The same with limits and durability.
    pub fn open_with(directory: impl AsRef<Path>, config: Config) -> Result<Rauk, Error> {
        let directory = directory.as_ref();
        check(directory)?;
        let disk: Arc<dyn Disk> = Arc::new(lock(directory)?);
        let threads = Threads::start().map_err(|error| refused(format!("cannot start threads: {error}")))?;
        let runtime: Arc<dyn Runtime> = threads;
        let progress = |text: &str| tracing::info!("{text}");
        let database = Database::open(config, disk, runtime, &progress)
            .map_err(|error| refused(format!("cannot open data directory {}: {error}", directory.display())))?;
        let service = Service::new(database.clone(), Limits::default());
        Ok(Rauk { database, service, closed: false })
    }

    /// A client; its requests fail once the database is closed.
    pub fn client(&self) -> Client {
        let options = Options::default();
        Client::new(Channel::Local(Local::new(self.service.session())), options.retry, options.request_timeout)
    }

    /// For what the native API does not have: limits, counters, checkpoints.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Writes a last checkpoint and closes. Dropping it closes too, and loses nothing that was acknowledged. The directory is free for another database when
    /// the last client is gone.
    pub fn close(mut self) -> Result<(), Error> {
        self.closed = true;
        rauk_node::block_on(self.database.shutdown()).map_err(|error| {
            refused(format!(
                "the last checkpoint failed ({error}); the redo log holds everything that was acknowledged"
            ))
        })
    }
}

impl Drop for Rauk {
    fn drop(&mut self) {
        if !self.closed
            && let Err(error) = rauk_node::block_on(self.database.shutdown())
        {
            tracing::error!(%error, "the last checkpoint failed; the redo log holds everything that was acknowledged");
        }
    }
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::Connection, 0, message)
}

/// Waits a moment for a directory that is in use: a database that was closed in this process gives it back when the last of its clients and background tasks has ended.
fn lock(directory: &Path) -> Result<RealDisk, Error> {
    let deadline = Instant::now() + CLOSING;
    loop {
        match RealDisk::open(directory) {
            Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            opened => return opened.map_err(|error| refused(error.to_string())),
        }
    }
}

/// A directory with other things in it is not made a data directory.
fn check(directory: &Path) -> Result<(), Error> {
    let names: Vec<PathBuf> = match std::fs::read_dir(directory) {
        Ok(entries) => entries.filter_map(|entry| Some(PathBuf::from(entry.ok()?.file_name()))).collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(refused(format!("cannot read data directory {}: {error}", directory.display()))),
    };
    match names.is_empty() || names.iter().any(|name| name == Path::new(rauk_log::real_disk::LOCK_FILE)) {
        true => Ok(()),
        false => Err(refused(format!(
            "{} has files in it and is not a data directory of Rauk: choose an empty or new one",
            directory.display()
        ))),
    }
}

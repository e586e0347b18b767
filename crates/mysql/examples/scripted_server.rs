//! A server that answers a handful of statements by heart, to try clients on: `scripted_server PORT [DIRECTORY] [WORKERS]`. With a directory
//! it has TLS, keeps its keys there, and listens on `DIRECTORY/mysql.sock` as well. It stops when its standard input ends.
use rauk_mysql::{Listener, Server, ServerOptions, TlsOptions, workers};
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[path = "../tests/protocol/support/backend.rs"]
mod backend;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments.next().ok_or("which port?")?.parse()?;
    let directory = arguments.next().filter(|d| d != "-").map(PathBuf::from);
    let count: usize = arguments.next().map_or(Ok(1), |n| n.parse())?;
    let mut options = ServerOptions::default();
    let mut listeners = vec![Listener::Tcp(std::net::TcpListener::bind(("127.0.0.1", port))?)];
    if let Some(directory) = directory {
        options.rsa_key_path = Some(directory.join("private_key.pem"));
        #[cfg(unix)]
        listeners.push(Listener::bind_unix(directory.join("mysql.sock"))?);
        options.tls = TlsOptions::Automatic { directory };
    }
    let server = Server::new(Arc::new(backend::Scripted::default()), options)?;
    let running = workers::start(server, count, listeners)?;
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    println!("{:?}", running.server().totals());
    running.shutdown(Duration::from_secs(1));
    Ok(())
}

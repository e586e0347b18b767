//! One client from greeting to goodbye.
//!
//! ```text
//! greeting → (TLS) → who are you → proof → session → command, answer, command, … → close
//! ```
//! Everything up to the session must happen within the connect timeout. COM_CHANGE_USER goes back to the proof with a new session. While it
//! waits for a command, a connection holds no buffer; it ends when the client goes, is idle for too long, is killed, or the server stops.

pub mod authenticate;
pub mod command;
pub mod link;
pub mod stream;

use crate::backend::{Backend, ConnectionInfo};
use crate::constants::{capability, code};
use crate::handshake::{self, FirstPacket, Login};
use crate::result::sink::Context;
use crate::result::status;
use crate::runtime::{sleep, timeout_at};
use crate::server::{Counters, Server};
use authenticate::{Refusal, authenticate, bad_handshake};
use command::{Commands, Exit};
use link::Channel;
use rauk_types::error::codes;
use rauk_types::result::{Completion, ServerStatus};
use rauk_types::{Charset, MysqlError};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use stream::{Socket, Stream};

/// How long the last words may take.
const LINGER: Duration = Duration::from_millis(500);

/// What is known of a client once it has spoken.
struct Client {
    login: Login,
    capabilities: u32,
    collation: u16,
}

/// Serves one connection until it ends. Cancelling the future closes it.
pub async fn serve<B: Backend>(
    server: Arc<Server<B>>,
    socket: Socket,
    peer: IpAddr,
    connection_id: u32,
    counters: Arc<Counters>,
) {
    let limits = server.limits();
    let patience = server.backend().connect_timeout();
    let mut channel = Channel::new(Stream::Plain(socket), handshake::MAX_PACKET, patience);
    counters.connections.fetch_add(1, Relaxed);
    let Some(handshaking) = server.admit_handshake(peer) else {
        counters.aborted_connects.fetch_add(1, Relaxed);
        status::write_early_error(&mut channel.link.writer, &too_many());
        channel.close(LINGER).await;
        return;
    };
    let deadline = Instant::now() + patience;
    let greeted = timeout_at(deadline, async {
        let nonce = greet(&server, &mut channel, connection_id).await?;
        let client = introduce(&server, &mut channel).await?;
        let account = authenticate(&server, &mut channel, &client.login, Some(nonce), peer).await?;
        Ok((client, account))
    })
    .await
    .unwrap_or(Err(Refusal::Gone));
    let (mut client, mut account) = match greeted {
        Ok(known) => known,
        Err(refusal) => return refuse(&server, &mut channel, refusal, peer, &counters).await,
    };
    drop(handshaking);
    let Some(_slot) = server.admit_session() else {
        return refuse(&server, &mut channel, Refusal::Other(too_many()), peer, &counters).await;
    };

    let mut first = true;
    loop {
        let context = Context { capabilities: client.capabilities, cursor_limit: limits.cursor_bytes };
        let info = ConnectionInfo {
            connection_id,
            user: client.login.user.clone(),
            account_host: account.host,
            peer,
            database: client.login.database.take(),
            collation: client.collation,
            multi_statements: client.capabilities & capability::MULTI_STATEMENTS != 0,
            found_rows: client.capabilities & capability::FOUND_ROWS != 0,
            ignore_space: client.capabilities & capability::IGNORE_SPACE != 0,
            local_files: client.capabilities & capability::LOCAL_FILES != 0,
            interactive: client.capabilities & capability::INTERACTIVE != 0,
            handles_expired_passwords: client.capabilities & capability::CAN_HANDLE_EXPIRED_PASSWORDS != 0,
            tls_cipher: channel.link.stream.cipher(),
            attributes: std::mem::take(&mut client.login.attributes),
        };
        let session = match server.backend().connect(info).await {
            Ok(session) => session,
            Err(error) => return refuse(&server, &mut channel, Refusal::Other(error), peer, &counters).await,
        };
        let mut commands = Commands::new(&server, &mut channel, session, context, &counters);
        commands.welcome();
        if first && client.capabilities & capability::COMPRESS != 0 {
            // The OK itself is still plain.
            if commands.channel.link.send().await.is_err() || commands.channel.compress().is_err() {
                return;
            }
        }
        first = false;
        let exit = commands.run().await;
        drop(commands);
        match exit {
            Exit::Closed => break,
            Exit::Aborted => {
                counters.aborted_clients.fetch_add(1, Relaxed);
                break;
            }
            Exit::ChangeUser(login, collation) => {
                client.login = login;
                client.collation = collation.unwrap_or(client.collation);
                channel.reader.set_limit(handshake::MAX_PACKET);
                let deadline = Instant::now() + server.backend().connect_timeout();
                let again = authenticate(&server, &mut channel, &client.login, None, peer);
                match timeout_at(deadline, again).await.unwrap_or(Err(Refusal::Gone)) {
                    Ok(found) => account = found,
                    Err(refusal) => return refuse(&server, &mut channel, refusal, peer, &counters).await,
                }
            }
        }
    }
    counters.sent.fetch_add(channel.link.take_sent(), Relaxed);
    channel.close(LINGER).await;
}

fn too_many() -> MysqlError {
    MysqlError::new(codes::CON_COUNT, "Too many connections")
}

async fn greet<B: Backend>(
    server: &Server<B>,
    channel: &mut Channel,
    connection_id: u32,
) -> Result<[u8; crate::auth::NONCE], Refusal> {
    let nonce = crate::auth::nonce();
    let writer = &mut channel.link.writer;
    writer.begin();
    handshake::write_greeting(
        &server.backend().server_version(),
        connection_id,
        &nonce,
        server.offered(),
        writer.out(),
    );
    writer.end();
    channel.link.send().await.map_err(|_| Refusal::Gone)?;
    Ok(nonce)
}

async fn introduce<B: Backend>(server: &Server<B>, channel: &mut Channel) -> Result<Client, Refusal> {
    let mut over_tls = false;
    loop {
        let packet = channel.read().await?;
        let first = handshake::read_first(channel.reader.payload(&packet), server.offered(), over_tls)
            .map_err(|_| Refusal::Other(bad_handshake()))?;
        match first {
            FirstPacket::Tls(_) => {
                let config = server.tls().ok_or_else(|| Refusal::Other(bad_handshake()))?;
                channel.start_tls(config).await.map_err(|error| {
                    tracing::debug!(%error, "TLS negotiation failed");
                    Refusal::Gone
                })?;
                over_tls = true;
            }
            FirstPacket::Response(response) => {
                if server.backend().requires_secure_transport() && !channel.link.stream.is_secure() {
                    return Err(Refusal::Other(MysqlError::new(
                        code::SECURE_TRANSPORT_REQUIRED,
                        "Connections using insecure transport are prohibited while --require_secure_transport=ON.",
                    )));
                }
                let handshake::Response { capabilities, collation, login } = response;
                return Ok(Client { login, capabilities, collation });
            }
        }
    }
}

/// Tells a client why not, late if its address has failed often, and closes.
async fn refuse<B: Backend>(
    server: &Server<B>,
    channel: &mut Channel,
    refusal: Refusal,
    peer: IpAddr,
    counters: &Counters,
) {
    counters.aborted_connects.fetch_add(1, Relaxed);
    let error = match refusal {
        Refusal::Gone => return,
        Refusal::Other(error) => error,
        Refusal::Denied(error, delay) => {
            tracing::info!(%peer, error = %error.message, ?delay, "refused");
            if !delay.is_zero() {
                let _held = server.throttle().hold(peer, Instant::now());
                sleep(delay).await;
            }
            error
        }
    };
    status::write_error(&mut channel.link.writer, &error, Charset::UTF8MB4);
    channel.close(LINGER).await;
}

/// An OK packet without anything to report.
fn plain_ok(status: ServerStatus) -> Completion {
    Completion { status, ..Completion::default() }
}

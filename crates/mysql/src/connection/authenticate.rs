//! Proving who one is: the conversation after the client has named itself.
//!
//! An unknown user goes the same way as a known one with a wrong password, so that names cannot be guessed from the answers. Hashing takes
//! milliseconds and runs beside the workers, two at a time for the whole server.
use super::link::{Channel, ChannelError};
use crate::auth::throttle::Throttle;
use crate::auth::{self, NONCE, native, sha2};
use crate::backend::{Account, Backend};
use crate::constants::code;
use crate::handshake::{self, Login};
use crate::runtime::sleep;
use crate::server::Server;
use rauk_types::MysqlError;
use rauk_types::error::codes;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Parts of AuthMoreData.
const FAST_SUCCESS: [u8; 2] = [1, 3];
const FULL_AUTHENTICATION: [u8; 2] = [1, 4];
const REQUEST_PUBLIC_KEY: &[u8] = &[2];

/// Between looks, while an attempt waits for its turn, whether another has proven the password.
const LOOK: Duration = Duration::from_millis(100);

/// Nobody's password: what unknown users are checked against.
const DECOY: &str = "$A$005$aaaaaaaaaaaaaaaaaaaa...........................................";

pub enum Refusal {
    /// A wrong name or password, noted: the refusal is sent after this time.
    Denied(MysqlError, Duration),
    Other(MysqlError),
    Gone,
}

impl From<ChannelError> for Refusal {
    fn from(error: ChannelError) -> Self {
        match error {
            ChannelError::Frame(_) | ChannelError::Malformed(_) => Refusal::Other(bad_handshake()),
            ChannelError::Gone | ChannelError::Io(_) => Refusal::Gone,
        }
    }
}

pub fn bad_handshake() -> MysqlError {
    MysqlError::new(codes::HANDSHAKE, "Bad handshake")
}

/// The host as messages and the process list show it.
pub fn host_name(peer: IpAddr) -> String {
    if peer.is_loopback() { "localhost".into() } else { peer.to_canonical().to_string() }
}

fn denied(user: &str, peer: IpAddr, with_password: bool) -> Refusal {
    let using = if with_password { "YES" } else { "NO" };
    let error = MysqlError::new(
        codes::ACCESS_DENIED,
        format!("Access denied for user '{user}'@'{}' (using password: {using})", host_name(peer)),
    );
    Refusal::Denied(error, Duration::ZERO)
}

/// Checks `login` when its turn has come, and notes what came of it; `nonce` is the challenge that its response
/// answers, `None` when that must be asked for again.
pub async fn authenticate<B: Backend>(
    server: &Server<B>,
    channel: &mut Channel,
    login: &Login,
    nonce: Option<[u8; NONCE]>,
    peer: IpAddr,
) -> Result<Account, Refusal> {
    wait_for_turn(server.throttle(), &login.user, peer).await?;
    let result = check(server, channel, login, nonce, peer).await;
    match result {
        Ok(account) => {
            server.throttle().proven(peer, &login.user, Instant::now());
            Ok(account)
        }
        Err(Refusal::Denied(error, _)) => {
            let delay = server.throttle().failed(peer, Instant::now());
            Err(Refusal::Denied(error, delay))
        }
        Err(other) => Err(other),
    }
}

/// Waits while the password of this account is being guessed from this address.
async fn wait_for_turn(throttle: &Throttle, user: &str, peer: IpAddr) -> Result<(), Refusal> {
    let now = Instant::now();
    let turn = throttle.turn(peer, user, now);
    if turn.wait.is_zero() {
        return Ok(());
    }
    let _held = throttle.hold(peer, now);
    loop {
        // A pool opens many connections at a time: the first that proves the password lets the others in.
        if throttle.is_proven(peer, user) {
            return Ok(());
        }
        let left = turn.wait.saturating_sub(now.elapsed());
        if left.is_zero() {
            break;
        }
        sleep(left.min(LOOK)).await;
    }
    if !turn.refused {
        return Ok(());
    }
    tracing::info!(%peer, user, "login refused unseen reason=too_many_wrong_passwords");
    Err(Refusal::Other(MysqlError::new(
        code::HOST_IS_BLOCKED,
        format!("Host '{}' is blocked because of many connection errors; try again in some seconds", host_name(peer)),
    )))
}

async fn check<B: Backend>(
    server: &Server<B>,
    channel: &mut Channel,
    login: &Login,
    nonce: Option<[u8; NONCE]>,
    peer: IpAddr,
) -> Result<Account, Refusal> {
    let found = server.backend().account(&login.user, peer);
    let known = found.is_some();
    let account = found.unwrap_or_else(|| Account {
        host: String::new(),
        plugin: auth::CACHING_SHA2.into(),
        hash: DECOY.into(),
        second: String::new(),
        locked: false,
    });
    let (proven, denial) = match prove(server, channel, login, nonce, peer, &account).await {
        Ok(proven) => (proven && known, denied(&login.user, peer, true)),
        Err(denial @ Refusal::Denied(..)) => (false, denial),
        Err(other) => return Err(other),
    };
    if known {
        let transport = channel.link.stream.transport();
        let judged = server.backend().judge_login(&login.user, &account, peer, proven, &transport);
        judged.map_err(|error| match proven {
            // A wrong password counts for its address, whatever else is wrong.
            false => Refusal::Denied(error, Duration::ZERO),
            true => Refusal::Other(error),
        })?;
    }
    if proven { Ok(account) } else { Err(denial) }
}

/// Whether the client knows the account's password, or its second one.
async fn prove<B: Backend>(
    server: &Server<B>,
    channel: &mut Channel,
    login: &Login,
    nonce: Option<[u8; NONCE]>,
    peer: IpAddr,
    account: &Account,
) -> Result<bool, Refusal> {
    if account.hash.is_empty() {
        no_password(channel, login, peer, account, nonce.is_some()).await
    } else if account.plugin == auth::CACHING_SHA2 {
        caching_sha2(server, channel, login, nonce, peer, account).await
    } else if account.plugin == auth::NATIVE {
        mysql_native(channel, login, nonce, peer, account).await
    } else {
        Err(Refusal::Other(MysqlError::new(1524, format!("Plugin '{}' is not loaded", account.plugin))))
    }
}

/// The hashes of an account's passwords.
fn hashes(account: &Account) -> impl Iterator<Item = &str> {
    [account.hash.as_str(), account.second.as_str()].into_iter().filter(|hash| !hash.is_empty())
}

/// An account without a password: only from the same machine, and only for who offers none.
async fn no_password(
    channel: &mut Channel,
    login: &Login,
    peer: IpAddr,
    account: &Account,
    answered: bool,
) -> Result<bool, Refusal> {
    // Who names another plugin (libmariadb's `dummy_fallback_auth`, while another thread loads the right one) expects to be asked again,
    // and sends one packet more whatever it is answered.
    let expects_switch = !matches!(login.plugin.as_str(), "" | auth::CACHING_SHA2 | auth::NATIVE);
    let offered = if !expects_switch && (answered || is_empty(&login.response)) {
        !is_empty(&login.response)
    } else {
        let (response, _) = switch(channel, &account.plugin).await?;
        !is_empty(&response)
    };
    if offered || !peer.is_loopback() {
        return Err(denied(&login.user, peer, offered));
    }
    Ok(true)
}

/// An empty response, which some clients send as one NUL.
fn is_empty(response: &[u8]) -> bool {
    matches!(response, [] | [0])
}

/// Asks for another plugin's proof, with a fresh challenge.
async fn switch(channel: &mut Channel, plugin: &str) -> Result<(Vec<u8>, [u8; NONCE]), Refusal> {
    let nonce = auth::nonce();
    let writer = &mut channel.link.writer;
    writer.begin();
    handshake::write_auth_switch(plugin, &nonce, writer.out());
    writer.end();
    Ok((exchange(channel).await?, nonce))
}

/// Sends what is written and waits for the client's next packet.
async fn exchange(channel: &mut Channel) -> Result<Vec<u8>, Refusal> {
    channel.link.send().await.map_err(|_| Refusal::Gone)?;
    let packet = channel.read().await?;
    Ok(channel.reader.payload(&packet).to_vec())
}

/// The response for `plugin`: the one at hand when it is that plugin's, else asked for.
async fn response_for(
    channel: &mut Channel,
    login: &Login,
    nonce: Option<[u8; NONCE]>,
    plugin: &str,
) -> Result<(Vec<u8>, [u8; NONCE]), Refusal> {
    match nonce {
        Some(nonce) if login.plugin == plugin => Ok((login.response.clone(), nonce)),
        _ => switch(channel, plugin).await,
    }
}

async fn mysql_native(
    channel: &mut Channel,
    login: &Login,
    nonce: Option<[u8; NONCE]>,
    peer: IpAddr,
    account: &Account,
) -> Result<bool, Refusal> {
    let (response, nonce) = response_for(channel, login, nonce, auth::NATIVE).await?;
    if is_empty(&response) {
        return Err(denied(&login.user, peer, false));
    }
    Ok(hashes(account).any(|hash| native::verify(hash, &nonce, &response)))
}

async fn caching_sha2<B: Backend>(
    server: &Server<B>,
    channel: &mut Channel,
    login: &Login,
    nonce: Option<[u8; NONCE]>,
    peer: IpAddr,
    account: &Account,
) -> Result<bool, Refusal> {
    let (response, nonce) = response_for(channel, login, nonce, auth::CACHING_SHA2).await?;
    if is_empty(&response) {
        return Err(denied(&login.user, peer, false));
    }
    let fast = |hash: &str| {
        let digest = server.password_cache().get(&login.user, &account.host, hash);
        digest.is_some_and(|digest| sha2::verify_fast(&digest, &nonce, &response))
    };
    if hashes(account).any(fast) {
        channel.link.writer.packet(&FAST_SUCCESS);
        return Ok(true);
    }
    channel.link.writer.packet(&FULL_AUTHENTICATION);
    let mut answer = exchange(channel).await?;
    let password = if channel.link.stream.is_secure() {
        (answer.pop() == Some(0)).then_some(answer)
    } else {
        let key = server.rsa_key().await.map_err(Refusal::Other)?;
        if answer == REQUEST_PUBLIC_KEY {
            let writer = &mut channel.link.writer;
            writer.begin();
            writer.out().push(1);
            writer.out().extend_from_slice(key.public_pem().as_bytes());
            writer.end();
            answer = exchange(channel).await?;
        }
        key.password(&answer, &nonce)
    };
    let Some(password) = password else { return Ok(false) };
    let (good, digest) = server
        .hash_beside(|| {
            let good = hashes(account).find(|hash| sha2::verify_password(hash.as_bytes(), &password));
            (good, sha2::digest2(&password))
        })
        .await;
    if let Some(hash) = good {
        server.password_cache().put(&login.user, &account.host, hash, digest);
    }
    Ok(good.is_some())
}

//! How a client connects, waits and tries again. Every option has a default that works.

use crate::Error;
use rauk_transporter::security::TlsFiles;
use rauk_transporter::{Secret, Security, Tls};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often, and for how long, what failed for a while is tried again.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// The first one included.
    pub attempts: u32,
    /// Before the second attempt; each further pause is twice as long, and all are shortened at random by up to a half.
    pub first_pause: Duration,
    pub longest_pause: Duration,
}

impl Default for RetryPolicy {
    /// About three seconds in all.
    fn default() -> Self {
        RetryPolicy { attempts: 12, first_pause: Duration::from_millis(2), longest_pause: Duration::from_millis(1000) }
    }
}

impl RetryPolicy {
    /// Nothing is tried again.
    pub fn never() -> RetryPolicy {
        RetryPolicy { attempts: 1, ..RetryPolicy::default() }
    }
}

/// A user and a password. The password is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    pub user: String,
    pub password: String,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account").field("user", &self.user).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    pub secret: Option<Vec<u8>>,
    pub secret_file: Option<PathBuf>,
    pub tls: Option<TlsFiles>,
    /// Shown in the place of the secret: the client may do what this account of SQL may.
    pub account: Option<Account>,
    /// Of the program, for the server's log: at most 255 bytes.
    pub name: String,
    /// Of an attempt to connect, all servers of the address together. Where there are several, one that is silent for so long while requests wait is given up, too.
    pub connect_timeout: Duration,
    /// Of each request; zero: none. A node waits for row locks no longer than that either.
    pub request_timeout: Duration,
    /// Of single operations outside of transactions that failed temporarily and have certainly not taken place, of lost connections, and of
    /// [`crate::Client::transact`].
    pub retry: RetryPolicy,
    /// Longest wait of adaptive send; zero sends at once.
    pub longest_wait: Duration,
    /// Longest time that a thread that waits for an answer looks for it without sleeping.
    pub longest_spin: Duration,
    /// Every frame is sent at once.
    pub force_send: bool,
    /// Sockets, spread over the servers of the address; operations are spread over them by transaction and thread.
    pub connections: usize,
    /// Requests go to the nodes that lead the rows that they are about, over further connections: one to a node, at
    /// most 64. Changes nothing at a server that is no member of a cluster.
    pub placement: bool,
}

impl Default for Options {
    fn default() -> Self {
        let transporter = rauk_transporter::Options::default();
        Options {
            secret: None,
            secret_file: None,
            tls: None,
            account: None,
            name: std::env::args()
                .next()
                .and_then(|program| PathBuf::from(program).file_name().map(|name| name.to_string_lossy().into_owned()))
                .filter(|name| name.len() <= 255)
                .unwrap_or_else(|| "rauk-client".into()),
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(60),
            retry: RetryPolicy::default(),
            longest_wait: transporter.longest_wait,
            longest_spin: transporter.longest_spin,
            force_send: false,
            connections: 1,
            placement: true,
        }
    }
}

impl Options {
    pub fn secret(secret: impl Into<Vec<u8>>) -> Options {
        Options { secret: Some(secret.into()), ..Options::default() }
    }

    pub fn secret_file(path: impl Into<PathBuf>) -> Options {
        Options { secret_file: Some(path.into()), ..Options::default() }
    }

    /// A user and a password of SQL. Nothing is looked at before [`crate::Client::connect`].
    pub fn account(user: impl Into<String>, password: impl Into<String>) -> Options {
        Options { account: Some(Account { user: user.into(), password: password.into() }), ..Options::default() }
    }

    /// Whether requests go to the nodes that lead the rows that they are about: see the field.
    pub fn placement(self, placement: bool) -> Options {
        Options { placement, ..self }
    }

    /// `named`: the secret's file that the address names.
    pub(crate) fn security(&self, named: Option<&Path>) -> Result<Security, Error> {
        let secret = match (named.or(self.secret_file.as_deref()), &self.secret) {
            (Some(file), secret) if named.is_some() || secret.is_none() => Some(Secret::from_file(file)?),
            (_, Some(secret)) => Some(Secret::new(secret.clone())?),
            (_, None) => None,
        };
        Ok(Security { secret, tls: self.tls.clone().map(Tls::Files) })
    }
}

//! The text that says where a client connects: one or more servers of one cluster, and what else can be said there.
//!
//! | form | |
//! |---|---|
//! | `HOST[:PORT][,HOST[:PORT]…]` | servers alone |
//! | `rauk://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…][/][?OPTION=VALUE[&OPTION=VALUE…]]` | with options |
//!
//! A port that is left out is [`DEFAULT_PORT`]. An IPv6 address with a port stands in brackets. Options are named in [`OPTIONS`]; they
//! count more than the same fields of [`crate::Options`], since whoever starts a program may set the address and not the
//! program. In users, passwords and values `%XX` is a byte in hexadecimal.
//!
//! Every mistake is an error that names the part and the way out. A password is never part of an error: what is behind
//! the last `@` alone is repeated there.

use crate::options::Account;
use crate::{Error, ErrorKind};
use std::path::PathBuf;

/// The native port, where an address names none.
const DEFAULT_PORT: u16 = 4407;
/// Most servers of one address: as many as `rauk sql --host` takes.
const MOST: usize = 64;
const SCHEME: &str = "rauk://";
const OPTIONS: &str = "secret-file, connections, name, placement";
/// Longest name of a program in the handshake.
const LONGEST_NAME: usize = 255;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Address {
    /// `host:port`, in the order of the text, each once.
    pub servers: Vec<String>,
    pub account: Option<Account>,
    pub secret_file: Option<PathBuf>,
    pub connections: Option<u16>,
    pub name: Option<String>,
    pub placement: Option<bool>,
}

fn wrong<T>(message: String) -> Result<T, Error> {
    Err(Error::new(ErrorKind::Connection, 0, message))
}

impl Address {
    pub fn parse(text: &str) -> Result<Address, Error> {
        let text = text.trim();
        match text.split_once("://") {
            None => Address::plain(text),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("rauk") => Address::url(rest),
            // Without the rest, which may have a password.
            Some((scheme, _)) => wrong(format!("an address begins with {SCHEME}, or is HOST:PORT: not {scheme}://…")),
        }
    }

    fn plain(text: &str) -> Result<Address, Error> {
        if text.contains(['@', '/', '?']) {
            return wrong(format!("an address with a user or options begins with {SCHEME}"));
        }
        Ok(Address { servers: servers(text)?, ..Address::default() })
    }

    fn url(rest: &str) -> Result<Address, Error> {
        let (authority, behind) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if behind.contains('@') {
            return wrong(
                "in a user, a password or an option's value write / as %2F, ? as %3F, # as %23 and @ as %40".into(),
            );
        }
        let query = match behind.strip_prefix('/').unwrap_or(behind) {
            "" => "",
            query => match query.strip_prefix('?') {
                Some(query) => query,
                None => return wrong(format!("behind the servers of an address comes ?OPTION=VALUE: not '{behind}'")),
            },
        };
        let (account, list) = match authority.rsplit_once('@') {
            Some((account, list)) => (Some(account_of(account)?), list),
            None => (None, authority),
        };
        let mut address = Address { servers: servers(list)?, account, ..Address::default() };
        for option in query.split('&').filter(|option| !option.is_empty()) {
            address.option(option)?;
        }
        Ok(address)
    }

    fn option(&mut self, option: &str) -> Result<(), Error> {
        let Some((name, value)) = option.split_once('=') else {
            return wrong(format!("'{option}' is no OPTION=VALUE; options are {OPTIONS}"));
        };
        let value = decoded(value)?;
        let repeated = match name {
            "secret-file" => self.secret_file.replace(value.into()).is_some(),
            "connections" => match value.parse() {
                Ok(0) | Err(_) => return wrong(format!("connections={value}: a number from 1 to {}", u16::MAX)),
                Ok(count) => self.connections.replace(count).is_some(),
            },
            "name" if value.len() > LONGEST_NAME => return wrong(format!("name: at most {LONGEST_NAME} bytes")),
            "name" => self.name.replace(value).is_some(),
            "placement" => match value.as_str() {
                "on" | "off" => self.placement.replace(value == "on").is_some(),
                _ => return wrong(format!("placement={value}: on or off")),
            },
            _ => return wrong(format!("there is no option '{name}'; options are {OPTIONS}")),
        };
        if repeated {
            return wrong(format!("the option '{name}' is given twice"));
        }
        Ok(())
    }
}

/// `user:password`
fn account_of(text: &str) -> Result<Account, Error> {
    match text.split_once(':') {
        Some((user, password)) if !password.is_empty() => {
            Ok(Account { user: decoded(user)?, password: decoded(password)? })
        }
        _ => wrong("a user in an address comes with a password: rauk://USER:PASSWORD@HOST:PORT,…".into()),
    }
}

/// `a,b:4408,[::1]:4409,::1`
fn servers(list: &str) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for item in list.split(',').map(str::trim) {
        let server = server(item).or_else(|()| wrong(format!("'{item}' in '{list}' is no HOST or HOST:PORT")))?;
        // The same server twice would only be asked twice.
        if !found.contains(&server) {
            found.push(server);
        }
    }
    match found.len() > MOST {
        true => wrong(format!("{} servers in an address; at most {MOST} are taken", found.len())),
        false => Ok(found),
    }
}

fn server(item: &str) -> Result<String, ()> {
    let (host, port) = match item.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']').ok_or(())?;
            let port = if behind.is_empty() { None } else { Some(behind.strip_prefix(':').ok_or(())?) };
            (host, port)
        }
        // An IPv6 address without brackets has no port.
        None if item.matches(':').count() > 1 => (item, None),
        None => item.split_once(':').map_or((item, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() || host.contains(|c: char| c.is_whitespace() || "[]@/?#".contains(c)) {
        return Err(());
    }
    let port = match port {
        Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or(())?,
        None => DEFAULT_PORT,
    };
    Ok(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

/// A text in which `%XX` is a byte.
fn decoded(text: &str) -> Result<String, Error> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = rest.next().zip(rest.next());
                let digit = |digit: u8| char::from(digit).to_digit(16);
                match digits.and_then(|(high, low)| Some(digit(high)? << 4 | digit(low)?)) {
                    Some(byte) => byte as u8,
                    None => {
                        return wrong("in an address % is followed by two hexadecimal digits; write % as %25".into());
                    }
                }
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).or_else(|_| wrong("a text in an address is not UTF-8".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<String> {
        Address::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).servers
    }

    fn refused(text: &str) -> String {
        let error = Address::parse(text).expect_err(text);
        assert_eq!(error.kind, ErrorKind::Connection);
        error.message
    }

    #[test]
    fn servers_with_and_without_ports() {
        assert_eq!(parsed("127.0.0.1:4408"), ["127.0.0.1:4408"]);
        assert_eq!(parsed("a"), ["a:4407"]);
        assert_eq!(parsed("a, b:1 ,c"), ["a:4407", "b:1", "c:4407"]);
        assert_eq!(parsed("rauk://a,b:1,c"), ["a:4407", "b:1", "c:4407"]);
        assert_eq!(parsed("RAUK://a/"), ["a:4407"]);
        assert_eq!(parsed("::1,[::1]:4408,[fe80::1]"), ["[::1]:4407", "[::1]:4408", "[fe80::1]:4407"]);
        assert_eq!(parsed("a,a:4407,a:4408,a"), ["a:4407", "a:4408"]);
    }

    #[test]
    fn options_behind_the_servers() {
        let address = Address::parse("rauk://a,b/?secret-file=/etc/my%20secret&connections=4&name=shop").unwrap();
        assert_eq!(address.secret_file, Some("/etc/my secret".into()));
        assert_eq!((address.connections, address.name.as_deref()), (Some(4), Some("shop")));
        assert_eq!(Address::parse("rauk://a?name=x").unwrap().name.as_deref(), Some("x"));
        assert_eq!(Address::parse("rauk://a/?").unwrap().name, None);
        let placement = |text: &str| Address::parse(text).unwrap().placement;
        assert_eq!(placement("rauk://a"), None);
        assert_eq!(placement("rauk://a?placement=off"), Some(false));
        assert_eq!(placement("rauk://a?placement=on"), Some(true));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("", "'' in ''"),
            ("a,,b", "'' in 'a,,b'"),
            ("a,b,", "'' in 'a,b,'"),
            ("a:0", "'a:0'"),
            ("a:70000", "'a:70000'"),
            ("a:port", "'a:port'"),
            ("a b:1", "'a b:1'"),
            ("[::1:4407", "'[::1:4407'"),
            ("[::1]4407", "'[::1]4407'"),
            ("rauk://", "'' in ''"),
            ("rauk://a;b:c:d]", "'a;b:c:d]'"),
            ("mysql://a", "mysql://"),
            ("http://a:b@c", "http://"),
            ("a/shop", "begins with rauk://"),
            ("u@a", "begins with rauk://"),
            ("rauk://a/shop", "'/shop'"),
            ("rauk://a#x", "'#x'"),
            ("rauk://a/?colour=red", "'colour'; options are secret-file"),
            ("rauk://a/?connections", "'connections' is no OPTION=VALUE"),
            ("rauk://a/?connections=0", "connections=0"),
            ("rauk://a/?connections=65536", "connections=65536"),
            ("rauk://a/?name=x&name=y", "'name' is given twice"),
            ("rauk://a/?placement=no", "placement=no: on or off"),
            ("rauk://a/?placement=on&placement=on", "'placement' is given twice"),
            ("rauk://a/?name=%f", "%25"),
            ("rauk://a/?name=%zz", "%25"),
            ("rauk://a/?name=%ff", "UTF-8"),
        ] {
            let message = refused(text);
            assert!(message.contains(part), "{text}: {message}");
        }
        let many: Vec<String> = (0..65).map(|number| format!("h{number}")).collect();
        assert!(refused(&many.join(",")).contains("at most 64"));
        assert!(refused(&format!("rauk://a/?name={}", "x".repeat(256))).contains("255"));
    }

    #[test]
    fn users_and_passwords() {
        let account = |text: &str| {
            let account = Address::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).account;
            account.map(|account| (account.user, account.password))
        };
        let both = |user: &str, password: &str| Some((user.to_string(), password.to_string()));
        assert_eq!(account("rauk://ann:secret@a,b"), both("ann", "secret"));
        assert_eq!(account("rauk://ann:a%2Fb%40c:d@a/?name=x"), both("ann", "a/b@c:d"));
        assert_eq!(account("rauk://a,b"), None);
        assert_eq!(account("rauk://:x@a"), both("", "x"));
        for text in ["rauk://ann@a", "rauk://ann:@a", "rauk://@a"] {
            assert!(refused(text).contains("comes with a password"), "{text}");
        }
    }

    #[test]
    fn a_password_is_not_repeated_in_an_error() {
        for text in
            ["rauk://u:pass/word@a", "rauk://u:pass?word@a", "rauk://u:pass#word@a", "u:password@a", "x://u:password@a"]
        {
            let message = refused(text);
            assert!(!message.contains("pass") || message.contains("a password"), "{text}: {message}");
            assert!(!message.contains("word@") && !message.contains(":pass"), "{text}: {message}");
        }
    }
}

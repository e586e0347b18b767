//! The flags and environment variables of a connection, as MySQL's programs have them.
//!
//! A flag counts more than an environment variable. Variables are MySQL's (MYSQL_HOST, MYSQL_TCP_PORT, MYSQL_UNIX_PORT,
//! MYSQL_PWD) and those with which a server of the same machine is configured (RAUK_HOST, RAUK_MYSQL_PORT,
//! RAUK_SOCKET); the latter count more, since they say where a Rauk is. A flag for the host leaves variables for a
//! socket aside, and the other way round.
//!
//! `-p` and `--password` take a text only when it is written together with them (`-pTEXT`, `--password=TEXT`) and ask
//! for the password otherwise, so that `-p shop` is a question and a database. [`with_password_forms`] brings all four
//! into a form that the parser of arguments can take.

use super::connect::{Host, Options};
use super::password;
use super::tls::{MODES, TlsMode, TlsOptions};
use crate::config::environment::is_orchestrators;
use clap::{Arg, ArgMatches, Command, value_parser};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

const DEFAULT_PORT: u16 = 3306;
/// Most hosts of a list.
const MOST_HOSTS: usize = 64;

fn text(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// A command with the flags of a connection. `-h` is the host, as in MySQL's programs.
pub fn with_connection(command: Command) -> Command {
    let modes: Vec<&str> = MODES.iter().map(|(name, _)| *name).collect();
    command
        .disable_help_flag(true)
        .arg(Arg::new("help").long("help").action(clap::ArgAction::Help).help("Print help"))
        .arg(
            text(
                "host",
                "HOST[:PORT],…",
                "Servers; the first that answers is taken [env: RAUK_HOST, MYSQL_HOST] [default: 127.0.0.1]",
            )
            .short('h'),
        )
        .arg(
            text("port", "PORT", "Port of hosts without one [env: RAUK_MYSQL_PORT, MYSQL_TCP_PORT] [default: 3306]")
                .short('P')
                .value_parser(value_parser!(u16).range(1..)),
        )
        .arg(text("socket", "PATH", "Unix socket instead of hosts [env: RAUK_SOCKET, MYSQL_UNIX_PORT]").short('S'))
        .arg(text("user", "NAME", "User").short('u').default_value("root"))
        .arg(
            text("password", "TEXT", "Password; asks for it without =TEXT [env: MYSQL_PWD]")
                .short('p')
                .num_args(0..=1)
                .require_equals(true),
        )
        .arg(
            text("ssl-mode", "MODE", "TLS [default: PREFERRED, with --ssl-ca VERIFY_CA]")
                .value_parser(clap::builder::PossibleValuesParser::new(modes))
                .ignore_case(true),
        )
        .arg(text("ssl-ca", "FILE", "Certificates (PEM) of authorities that the server's is checked by"))
        .arg(text("ssl-cert", "FILE", "The client's certificate (PEM), for accounts that require one"))
        .arg(text("ssl-key", "FILE", "The key (PEM) of --ssl-cert"))
}

/// `-pTEXT` as `--password=TEXT` and `-p` as `--password`, for the subcommands that have the flags of a connection.
pub fn with_password_forms(command: &Command, arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments = arguments.peekable();
    let mut given: Vec<OsString> = arguments.next().into_iter().collect();
    let named = arguments.peek().and_then(|name| command.find_subcommand(name));
    let Some(command) = named.filter(|c| c.get_arguments().any(|a| a.get_id() == "password")) else {
        given.extend(arguments);
        return given;
    };
    given.extend(arguments.next());
    // An option that takes a text takes the next argument, even one that looks like a flag.
    let takes_next = |argument: &OsStr| -> bool {
        let bytes = argument.as_bytes();
        let found = command.get_arguments().find(|a| match bytes {
            [b'-', b'-', long @ ..] => a.get_long().is_some_and(|l| l.as_bytes() == long),
            [b'-', short] => a.get_short() == Some(*short as char),
            _ => false,
        });
        found.is_some_and(|a| a.get_action().takes_values() && a.get_id() != "password")
    };
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            given.push(argument);
            break;
        }
        match argument.as_bytes() {
            [b'-', b'p', rest @ ..] => {
                let text = if rest.is_empty() { Vec::new() } else { [&b"="[..], rest].concat() };
                given.push(OsString::from_vec([&b"--password"[..], &text].concat()));
            }
            _ => {
                let next = takes_next(&argument);
                given.push(argument);
                if next {
                    given.extend(arguments.next());
                }
            }
        }
    }
    given.extend(arguments);
    given
}

/// Options from flags and variables. `-p` without a text asks for the password.
pub fn options(arguments: &ArgMatches) -> Result<Options, String> {
    let mut options = without_password(arguments, &|name| {
        std::env::var(name).ok().filter(|v| !v.is_empty() && !is_orchestrators(name, v))
    })?;
    if arguments.contains_id("password") {
        options.password = match arguments.get_one::<String>("password") {
            Some(text) => Some(text.clone()),
            None => Some(password::ask("Password: ")?),
        };
    }
    Ok(options)
}

/// All but a password that is to be asked for.
fn without_password(arguments: &ArgMatches, environment: &dyn Fn(&str) -> Option<String>) -> Result<Options, String> {
    let get = |name: &str| arguments.get_one::<String>(name).cloned();
    let variable = |names: [&'static str; 2]| names.into_iter().find_map(|n| Some((n, environment(n)?)));
    let port = match arguments.get_one::<u16>("port") {
        Some(port) => *port,
        None => match variable(["RAUK_MYSQL_PORT", "MYSQL_TCP_PORT"]) {
            // A server with port 0 takes any; it does not say here which.
            Some((_, text)) if text.trim() == "0" => DEFAULT_PORT,
            Some((name, text)) => {
                text.trim().parse().map_err(|_| format!("environment variable {name}: '{text}' is no port number"))?
            }
            None => DEFAULT_PORT,
        },
    };
    let socket = match (get("socket"), get("host")) {
        (Some(socket), _) => Some(socket),
        (None, Some(_)) => None,
        (None, None) if arguments.contains_id("port") => None,
        (None, None) => variable(["RAUK_SOCKET", "MYSQL_UNIX_PORT"]).map(|(_, path)| path),
    };
    let hosts = match get("host") {
        Some(list) => hosts(&list, port).map_err(|e| format!("--host: {e}"))?,
        None => match variable(["RAUK_HOST", "MYSQL_HOST"]) {
            Some((name, list)) => hosts(&list, port).map_err(|e| format!("environment variable {name}: {e}"))?,
            None => hosts("127.0.0.1", port)?,
        },
    };
    let tls = tls(arguments)?;
    if socket.is_some() && !matches!(tls.mode, TlsMode::Disabled | TlsMode::Preferred) {
        return Err("--ssl-mode: a Unix socket has no TLS; give --host instead of --socket".into());
    }
    Ok(Options {
        hosts,
        socket,
        user: get("user").expect("has a default"),
        password: environment("MYSQL_PWD"),
        database: None,
        tls,
        answer: None,
    })
}

fn tls(arguments: &ArgMatches) -> Result<TlsOptions, String> {
    let file = |name: &str| arguments.get_one::<String>(name).map(PathBuf::from);
    let authority = file("ssl-ca");
    let mode = arguments.get_one::<String>("ssl-mode").map(|given| {
        let known = MODES.iter().find(|(name, _)| name.eq_ignore_ascii_case(given));
        known.expect("only these are taken").1
    });
    let mode = match (mode, &authority) {
        (Some(mode), _) => mode,
        (None, Some(_)) => TlsMode::VerifyAuthority,
        (None, None) => TlsMode::Preferred,
    };
    if matches!(mode, TlsMode::VerifyAuthority | TlsMode::VerifyIdentity) && authority.is_none() {
        return Err("--ssl-mode VERIFY_CA and VERIFY_IDENTITY need --ssl-ca FILE".into());
    }
    let identity = match (file("ssl-cert"), file("ssl-key")) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err("--ssl-cert and --ssl-key go together: give both or none".into()),
    };
    Ok(TlsOptions { mode, authority, identity })
}

/// `a,b:3307,[::1]:3308,::1`
fn hosts(list: &str, port: u16) -> Result<Vec<Host>, String> {
    let mut found = Vec::new();
    for item in list.split(',').map(str::trim) {
        let wrong = || format!("'{item}' in '{list}' is no HOST or HOST:PORT");
        let (name, own) = match item.strip_prefix('[') {
            Some(rest) => {
                let (name, behind) = rest.split_once(']').ok_or_else(wrong)?;
                match behind {
                    "" => (name, None),
                    behind => (name, Some(behind.strip_prefix(':').ok_or_else(wrong)?)),
                }
            }
            // An IPv6 address without brackets has no port.
            None if item.matches(':').count() > 1 => (item, None),
            None => match item.split_once(':') {
                Some((name, own)) => (name, Some(own)),
                None => (item, None),
            },
        };
        let port = match own {
            Some(own) => own.parse().ok().filter(|p| *p > 0).ok_or_else(wrong)?,
            None => port,
        };
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == '/') {
            return Err(wrong());
        }
        // A server that listens everywhere listens here.
        let name = match name {
            "0.0.0.0" => "127.0.0.1",
            "::" => "::1",
            name => name,
        };
        found.push(Host { name: name.into(), port });
    }
    match found.len() > MOST_HOSTS {
        true => Err(format!("{} hosts; at most {MOST_HOSTS} are taken", found.len())),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        let tool =
            with_connection(Command::new("sql")).arg(Arg::new("database")).arg(text("execute", "X", "").short('e'));
        Command::new("rauk").subcommand(tool).subcommand(Command::new("start").arg(Arg::new("p").short('p')))
    }

    fn forms(line: &str) -> String {
        let given = line.split(' ').map(OsString::from);
        let found = with_password_forms(&command(), given);
        found.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    fn parsed(line: &str, environment: &[(&str, &str)]) -> Result<Options, String> {
        let given = with_password_forms(&command(), line.split(' ').map(OsString::from));
        let matches = command().try_get_matches_from(given).map_err(|e| e.to_string())?;
        let (_, matches) = matches.subcommand().expect("sql");
        without_password(matches, &|name| {
            environment.iter().find(|(n, _)| *n == name).map(|(_, value)| value.to_string())
        })
    }

    fn addresses(options: &Options) -> String {
        options.hosts.iter().map(Host::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_password_is_text_only_where_it_is_written_together() {
        assert_eq!(forms("rauk sql -p shop"), "rauk sql --password shop");
        assert_eq!(forms("rauk sql -psecret -u p"), "rauk sql --password=secret -u p");
        assert_eq!(forms("rauk sql -e -p -p"), "rauk sql -e -p --password");
        assert_eq!(forms("rauk sql --execute -px -- -p"), "rauk sql --execute -px -- -p");
        assert_eq!(forms("rauk sql --user=a -p=b"), "rauk sql --user=a --password==b");
        assert_eq!(forms("rauk start -p x"), "rauk start -p x");
        let password = |line: &str| {
            let given = with_password_forms(&command(), line.split(' ').map(OsString::from));
            let matches = command().try_get_matches_from(given).expect("right");
            let (_, matches) = matches.subcommand().expect("sql");
            let database = matches.get_one::<String>("database").cloned();
            (matches.contains_id("password"), matches.get_one::<String>("password").cloned(), database)
        };
        assert_eq!(password("rauk sql -p shop"), (true, None, Some("shop".into())));
        assert_eq!(password("rauk sql shop -pa=b"), (true, Some("a=b".into()), Some("shop".into())));
        assert_eq!(password("rauk sql --password=x"), (true, Some("x".into()), None));
        assert_eq!(password("rauk sql --password= shop"), (true, Some(String::new()), Some("shop".into())));
        assert_eq!(password("rauk sql shop"), (false, None, Some("shop".into())));
    }

    #[test]
    fn flags_count_more_than_variables() {
        let at = |line: &str, environment: &[(&str, &str)]| addresses(&parsed(line, environment).expect("right"));
        assert_eq!(at("rauk sql", &[]), "127.0.0.1:3306");
        assert_eq!(at("rauk sql -h a,b:3307,[::1]:9,::2 -P 5", &[]), "a:5 b:3307 [::1]:9 [::2]:5");
        let both = [("MYSQL_HOST", "m"), ("RAUK_HOST", "0.0.0.0"), ("MYSQL_TCP_PORT", "1"), ("RAUK_MYSQL_PORT", "2")];
        assert_eq!(at("rauk sql", &both), "127.0.0.1:2");
        assert_eq!(at("rauk sql", &[both[0], both[2]]), "m:1");
        assert_eq!(at("rauk sql -h x -P 7", &both), "x:7");
        let socket = |line: &str| parsed(line, &[("MYSQL_UNIX_PORT", "/s")]).expect("right").socket;
        assert_eq!(socket("rauk sql").as_deref(), Some("/s"));
        assert_eq!((socket("rauk sql -h a"), socket("rauk sql -P 1")), (None, None));
        assert_eq!(socket("rauk sql -S /t").as_deref(), Some("/t"));
        assert_eq!(parsed("rauk sql", &[("MYSQL_PWD", "w")]).expect("right").password.as_deref(), Some("w"));
    }

    #[test]
    fn wrong_arguments_name_themselves() {
        let error = |line: &str| parsed(line, &[("MYSQL_TCP_PORT", "x")]).expect_err(line);
        assert!(error("rauk sql").contains("MYSQL_TCP_PORT: 'x' is no port number"));
        for list in ["a:,b", ",a", "a:0", "a:70000", "[::1", "[::1]x", "a b", "a/b"] {
            let given = ["rauk", "sql", "-P", "1", "-h", list].map(OsString::from);
            let matches = command().try_get_matches_from(given).expect("right");
            let (_, matches) = matches.subcommand().expect("sql");
            let error = without_password(matches, &|_| None).expect_err(list);
            assert!(error.starts_with("--host: ") && error.contains("is no HOST or HOST:PORT"), "{error}");
        }
        assert!(error("rauk sql -P 0").contains("0"));
        assert!(error("rauk sql -P 1 --ssl-mode VERIFY_CA").contains("--ssl-ca"));
        assert!(error("rauk sql -P 1 --ssl-mode SOMETIMES").contains("VERIFY_IDENTITY"));
        assert!(error("rauk sql -P 1 --ssl-cert a.pem").contains("--ssl-key"));
        assert!(error("rauk sql -P 1 --ssl-mode REQUIRED -S /s").contains("Unix socket"));
        assert_eq!(parsed("rauk sql --ssl-ca a", &[]).expect("right").tls.mode, TlsMode::VerifyAuthority);
        assert_eq!(parsed("rauk sql --ssl-mode required", &[]).expect("right").tls.mode, TlsMode::Required);
    }
}

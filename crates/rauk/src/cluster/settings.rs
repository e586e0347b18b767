//! What `rauk start` can be told about the cluster, checked as it is read.
//!
//! Any of `roles`, `cluster-port`, `replicas`, `groups` and `join` makes the node a member of a cluster; without them
//! it is alone, as ever. A member with an empty directory founds a cluster, or joins one when it is told whom to ask; a
//! directory that is a member's already only comes back.

use rauk_manage::group::{MOST_REPLACE_AFTER, RoleKind};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

pub const DEFAULT_PORT: u16 = 7306;
pub const DEFAULT_NAME: &str = "rauk";
pub const DEFAULT_REPLICAS: u8 = 2;
const LONGEST_NAME: usize = 64;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterSettings {
    /// `None`: what the directory had, or all of them.
    pub roles: Option<BTreeSet<RoleKind>>,
    /// 0: any free one.
    pub port: Option<u16>,
    /// Of a cluster that is founded.
    pub replicas: Option<u8>,
    /// Replication groups of a cluster that is founded; `None`: as many as partitions.
    pub groups: Option<u16>,
    /// Seconds after which a node that is down is replaced, of a cluster that is founded.
    pub replace_after: Option<u32>,
    /// Members to ask, `host:port`.
    pub join: Vec<String>,
    pub secret_file: Option<PathBuf>,
    /// Links between nodes without TLS.
    pub plain_links: bool,
    pub name: Option<String>,
    /// The host by which others reach this node.
    pub advertise: Option<String>,
    /// Where some nodes are to be reached instead of where they say.
    pub peer_addresses: BTreeMap<u16, String>,
}

impl ClusterSettings {
    pub fn is_member(&self) -> bool {
        let founds = self.replicas.is_some() || self.groups.is_some();
        founds || self.roles.is_some() || self.port.is_some() || !self.join.is_empty()
    }

    /// The first of the given settings that have no meaning without those that make a member.
    pub fn idle(&self) -> Option<&'static str> {
        if self.is_member() {
            return None;
        }
        let given = [
            (self.secret_file.is_some(), "cluster-secret-file"),
            (self.plain_links, "plain-links"),
            (self.name.is_some(), "cluster-name"),
            (self.replace_after.is_some(), "replace-after"),
            (self.advertise.is_some(), "advertise"),
            (!self.peer_addresses.is_empty(), "peer-address"),
        ];
        given.into_iter().find(|(given, _)| *given).map(|(_, name)| name)
    }

    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(DEFAULT_NAME)
    }
}

pub fn role_name(role: RoleKind) -> &'static str {
    match role {
        RoleKind::Manage => "manage",
        RoleKind::Data => "data",
        RoleKind::Sql => "sql",
    }
}

pub fn role_names(roles: &BTreeSet<RoleKind>) -> String {
    roles.iter().map(|r| role_name(*r)).collect::<Vec<_>>().join(",")
}

pub fn roles(text: &str) -> Result<BTreeSet<RoleKind>, String> {
    let wanted = "one or more of manage, data and sql, with commas between";
    let role = |word: &str| match word.trim() {
        "manage" => Ok(RoleKind::Manage),
        "data" => Ok(RoleKind::Data),
        "sql" => Ok(RoleKind::Sql),
        _ => Err(wanted.to_string()),
    };
    text.split(',').map(role).collect()
}

pub fn replicas(text: &str) -> Result<u8, String> {
    let wanted = || "a number of replicas, 1 to 4".to_string();
    let number: u8 = text.trim().parse().map_err(|_| wanted())?;
    if (1..=4).contains(&number) { Ok(number) } else { Err(wanted()) }
}

/// `None`: as many as partitions.
pub fn groups(text: &str) -> Result<Option<u16>, String> {
    let wanted = || "a number of replication groups, 1 to the number of partitions, or 0: as many as these".to_string();
    let number: u16 = text.trim().parse().map_err(|_| wanted())?;
    Ok((number > 0).then_some(number))
}

/// Seconds.
pub fn replace_after(text: &str) -> Result<u32, String> {
    let wanted = || format!("a number of seconds, 1 to {MOST_REPLACE_AFTER}");
    let seconds: u32 = text.trim().parse().map_err(|_| wanted())?;
    if (1..=MOST_REPLACE_AFTER).contains(&seconds) { Ok(seconds) } else { Err(wanted()) }
}

/// `host:port`, an IPv6 address in brackets.
pub fn address(text: &str) -> Result<String, String> {
    let wanted = || "an address as 10.0.0.1:7306 or node1.example:7306".to_string();
    let text = text.trim();
    let (host, port) = text.rsplit_once(':').ok_or_else(wanted)?;
    let port: u16 = port.parse().map_err(|_| wanted())?;
    if port == 0 {
        return Err("an address with the port of a member, which is not 0".into());
    }
    self::host(host).map_err(|_| wanted())?;
    Ok(text.to_string())
}

pub fn addresses(text: &str) -> Result<Vec<String>, String> {
    text.split(',').map(address).collect()
}

/// A name, an IPv4 address, or an IPv6 address in brackets or not.
pub fn host(text: &str) -> Result<String, String> {
    let wanted = || "a host name or an IP address by which other nodes reach this one".to_string();
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return if address.is_unspecified() { Err(wanted()) } else { Ok(text.to_string()) };
    }
    let is_name = !text.is_empty()
        && text.len() <= 253
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'));
    if is_name { Ok(text.to_string()) } else { Err(wanted()) }
}

pub fn name(text: &str) -> Result<String, String> {
    let fits = (1..=LONGEST_NAME).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'));
    if fits {
        Ok(text.to_string())
    } else {
        Err(format!("1 to {LONGEST_NAME} letters, digits, dots, hyphens and underscores"))
    }
}

/// `NODE=HOST:PORT`, with commas between.
pub fn peer_addresses(text: &str) -> Result<BTreeMap<u16, String>, String> {
    let one = |part: &str| {
        let wanted = || "a node's number and an address, as 2=127.0.0.1:9000".to_string();
        let (node, to) = part.trim().split_once('=').ok_or_else(wanted)?;
        let node: u16 = node.parse().ok().filter(|n| *n != 0).ok_or_else(wanted)?;
        Ok((node, address(to)?))
    };
    text.split(',').map(one).collect()
}

/// `host:port` from a host that may be a bare IPv6 address.
pub fn with_port(host: &str, port: u16) -> String {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(v6)) => format!("[{v6}]:{port}"),
        _ => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_are_refused_with_what_is_wanted() {
        assert_eq!(role_names(&roles("sql,data").unwrap()), "data,sql");
        assert!(roles("data,spl").unwrap_err().contains("manage, data and sql"));
        assert!(roles("").is_err());
        assert_eq!(replicas("4"), Ok(4));
        for bad in ["0", "5", "-1", "two", "300"] {
            assert!(replicas(bad).unwrap_err().contains("1 to 4"), "{bad}");
        }
        assert_eq!(replace_after("90"), Ok(90));
        for bad in ["0", "-1", "1m", "99999999999"] {
            assert!(replace_after(bad).unwrap_err().contains("seconds"), "{bad}");
        }
        assert_eq!(addresses("a:1,[::1]:2, 10.0.0.1:3").unwrap(), ["a:1", "[::1]:2", "10.0.0.1:3"]);
        for bad in ["a", "a:0", "a:65536", ":1", "a b:1", "0.0.0.0:1", ""] {
            assert!(addresses(bad).is_err(), "{bad}");
        }
        assert_eq!(peer_addresses("2=a:1,3=b:2").unwrap()[&3], "b:2");
        for bad in ["0=a:1", "a:1", "70000=a:1", "2=a"] {
            assert!(peer_addresses(bad).is_err(), "{bad}");
        }
        assert!(name("prod-1").is_ok() && name("").is_err() && name("a b").is_err() && name(&"x".repeat(65)).is_err());
        assert_eq!(with_port("::1", 5), "[::1]:5");
    }

    #[test]
    fn settings_without_a_cluster_are_noticed() {
        let mut settings = ClusterSettings { name: Some("x".into()), ..ClusterSettings::default() };
        assert_eq!(settings.idle(), Some("cluster-name"));
        settings.port = Some(0);
        assert_eq!(settings.idle(), None);
        assert!(settings.is_member());
    }
}

//! What statements say of accounts: definitions with their options, roles, privileges.

use crate::parse::statement::{Authentication, UserName};
use serde::{Deserialize, Serialize};

/// One account of CREATE USER or ALTER USER.
#[derive(Clone, Debug, PartialEq)]
pub struct UserDefinition {
    pub name: UserName,
    pub authentication: Option<Authentication>,
    /// REPLACE 'the present password'.
    pub replaced: Option<String>,
    /// RETAIN CURRENT PASSWORD.
    pub retain: bool,
    /// DISCARD OLD PASSWORD.
    pub discard: bool,
}

/// SET PASSWORD; `user` `None`: one's own. `password` `None`: TO RANDOM.
#[derive(Clone, Debug, PartialEq)]
pub struct SetPassword {
    pub user: Option<UserName>,
    pub password: Option<String>,
    pub replaced: Option<String>,
    pub retain: bool,
}

/// PASSWORD EXPIRE …
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    Now,
    Default,
    Never,
    Days(u16),
}

/// REQUIRE …: what a connection must be like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TlsRule {
    #[default]
    None,
    /// SSL.
    Any,
    /// A certificate that the server trusts.
    X509,
    /// Such a certificate, and these things of it and of the connection.
    Specified { subject: Option<String>, issuer: Option<String>, cipher: Option<String> },
}

/// WITH MAX_…; `None`: not named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    pub queries: Option<u32>,
    pub updates: Option<u32>,
    pub connections: Option<u32>,
    pub user_connections: Option<u32>,
}

/// COMMENT 'text' or ATTRIBUTE 'JSON object'.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountNote {
    Comment(String),
    Attribute(String),
}

/// What stands behind the accounts of CREATE USER and ALTER USER, and is meant for all of them. `Some(None)`: DEFAULT.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccountOptions {
    pub default_role: Option<RoleChoice>,
    /// ACCOUNT LOCK and UNLOCK.
    pub lock: Option<bool>,
    pub tls: Option<TlsRule>,
    pub limits: ResourceLimits,
    pub expiry: Option<Expiry>,
    pub history: Option<Option<u32>>,
    pub reuse_days: Option<Option<u32>>,
    pub require_current: Option<Option<bool>>,
    pub failed_logins: Option<u16>,
    /// PASSWORD_LOCK_TIME in days; -1: UNBOUNDED.
    pub lock_days: Option<i32>,
    pub note: Option<AccountNote>,
}

/// Which roles, of those that are granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleChoice {
    /// Of SET ROLE only, as `AllExcept`.
    Default,
    None,
    All,
    AllExcept(Vec<UserName>),
    Named(Vec<UserName>),
}

/// A privilege, in upper case, on a level or on columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivilegeItem {
    pub name: String,
    /// Empty: on the whole level.
    pub columns: Vec<String>,
}

/// How REVOKE and DROP take what is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgiving {
    /// IF EXISTS: what is not granted is a warning.
    pub missing_grants: bool,
    /// IGNORE UNKNOWN USER: an account that does not exist is a warning.
    pub unknown_users: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleStatement {
    Create { roles: Vec<UserName>, if_not_exists: bool },
    Drop { roles: Vec<UserName>, if_exists: bool },
    Grant { roles: Vec<UserName>, users: Vec<UserName>, admin: bool },
    Revoke { roles: Vec<UserName>, users: Vec<UserName>, forgiving: Forgiving },
    Set(RoleChoice),
    SetDefault { choice: RoleChoice, users: Vec<UserName> },
}

//! What statements say of accounts: definitions with their options, roles, privileges.

use crate::parse::statement::{Authentication, UserName};

/// One account of CREATE USER or ALTER USER.
#[derive(Clone, Debug, PartialEq)]
pub struct UserDefinition {
    pub name: UserName,
    pub authentication: Option<Authentication>,
}

/// What stands behind the accounts of CREATE USER and ALTER USER, and is meant for all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccountOptions {
    pub default_role: Option<RoleChoice>,
    /// ACCOUNT LOCK and UNLOCK.
    pub lock: Option<bool>,
    /// The first option that nothing follows.
    pub unsupported: Option<String>,
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

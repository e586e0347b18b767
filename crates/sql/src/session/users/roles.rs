//! Roles: which are granted to an account, which are active, and what an account may do with them.
//!
//! An edge leads from an account to a role that was granted to it; roles have edges to roles. GRANT refuses an edge
//! that would close a circle. Active are roles with a direct edge, or *mandatory* ones (the variable
//! `mandatory_roles`, for every account); whatever roles lead to is active with them. A role that was revoked or
//! dropped is no longer active from the next statement on, also in sessions that are open.
//!
//! Both variables belong to one node. Whatever depends on them is made again when they change:
//! [`RoleSettings::changes`] is part of the epoch that sessions compare, and plans that have read a view are
//! forgotten.

use super::record::AccountRecord;
use super::store::Users;
use crate::parse;
use crate::parse::statement::UserName;
use parking_lot::RwLock;
use rauk_types::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Variables that say what roles accounts have.
#[derive(Default)]
pub struct RoleSettings {
    mandatory: RwLock<Arc<Vec<UserName>>>,
    activate_all: AtomicBool,
    changes: AtomicU64,
}

impl RoleSettings {
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// `mandatory_roles`; SET has refused what is no list of roles.
    pub fn set_mandatory(&self, value: &Value) {
        let Value::Str(text) = value else { return };
        *self.mandatory.write() = Arc::new(parse::role_list(text).unwrap_or_default());
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// `activate_all_roles_on_login`.
    pub fn set_activate_all(&self, value: &Value) {
        self.activate_all.store(*value == Value::Int(1), Ordering::Release);
        self.changes.fetch_add(1, Ordering::AcqRel);
    }
}

impl Users {
    /// Whether a role is one of `mandatory_roles`.
    pub fn is_mandatory(&self, role: &UserName) -> bool {
        self.role_settings.mandatory.read().iter().any(|known| known == role)
    }

    pub fn record(&self, name: &UserName) -> Option<Arc<AccountRecord>> {
        self.find(&name.user, &name.host)
    }

    /// Mandatory roles that exist, but for the role itself.
    pub fn mandatory_roles(&self, of: &AccountRecord) -> Vec<UserName> {
        let mandatory = self.role_settings.mandatory.read().clone();
        // An edge back to a mandatory role would close a circle.
        let exists = |role: &&UserName| {
            self.record(role).is_some_and(|record| !of.is(role) && !self.leads_to(&record, &of.name()))
        };
        mandatory.iter().filter(exists).cloned().collect()
    }

    /// Roles that an account may make active, with whether it may grant them.
    pub fn granted_roles(&self, of: &AccountRecord) -> BTreeMap<UserName, bool> {
        let mut granted: BTreeMap<UserName, bool> = of
            .roles
            .iter()
            .filter(|(role, _)| self.record(role).is_some())
            .map(|(r, admin)| (r.clone(), *admin))
            .collect();
        for role in self.mandatory_roles(of) {
            granted.entry(role).or_insert(false);
        }
        granted
    }

    /// Roles that are active at the beginning of a session, and where a view is read with the rights of its definer.
    pub fn roles_at_login(&self, of: &AccountRecord) -> Vec<UserName> {
        if of.default_roles.is_empty() && !self.role_settings.activate_all.load(Ordering::Acquire) {
            return vec![];
        }
        let granted = self.granted_roles(of);
        match self.role_settings.activate_all.load(Ordering::Acquire) {
            true => granted.into_keys().collect(),
            false => of.default_roles.iter().filter(|role| granted.contains_key(role)).cloned().collect(),
        }
    }

    /// The roles and all that they lead to, each once.
    pub fn reached(&self, roles: &[UserName]) -> Vec<Arc<AccountRecord>> {
        let mut reached: Vec<Arc<AccountRecord>> = Vec::new();
        let mut open: Vec<UserName> = roles.to_vec();
        while let Some(role) = open.pop() {
            if reached.iter().any(|known| known.is(&role)) {
                continue;
            }
            if let Some(record) = self.record(&role) {
                open.extend(record.roles.keys().cloned());
                reached.push(record);
            }
        }
        reached
    }

    /// Whether edges lead from an account to a role.
    pub fn leads_to(&self, from: &AccountRecord, role: &UserName) -> bool {
        let roles: Vec<UserName> = from.roles.keys().cloned().collect();
        self.reached(&roles).iter().any(|record| record.is(role))
    }

    /// What an account may do while roles are active.
    pub fn with_roles(&self, own: &Arc<AccountRecord>, active: &[UserName]) -> Arc<AccountRecord> {
        if active.is_empty() {
            return own.clone();
        }
        let mut all = AccountRecord::clone(own);
        self.reached(active).iter().for_each(|role| all.merge(role));
        Arc::new(all)
    }

    /// What the definer of a view may do in it.
    pub fn as_definer(&self, definer: &Arc<AccountRecord>) -> Arc<AccountRecord> {
        self.with_roles(definer, &self.roles_at_login(definer))
    }
}

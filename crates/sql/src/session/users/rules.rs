//! The rules of an account beyond its name, password and privileges, as they are stored.
//!
//! They are one member of the account's document (`rules`), absent while all of them are the defaults, so documents
//! that an older version has written have none. Members that this version does not know are kept.
//!
//! Passwords of the past are kept newest first, the present one among them, while a rule asks for them: at most
//! [`MOST_PAST`], which bounds the document and the time that a change of the password takes.

use crate::parse::ast::{AccountNote, AccountOptions, Expiry, ResourceLimits, TlsRule};
use crate::session::errors;
use rauk_types::MysqlError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// Passwords of the past that an account keeps at most.
pub const MOST_PAST: u32 = 1000;
const DAY: i64 = 86_400_000_000;
const BAD_ATTRIBUTE: u16 = 3982;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastPassword {
    /// When it was set, in microseconds since 1970 UTC.
    pub set: i64,
    pub hash: String,
}

/// Of an account; zero: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    pub queries: u32,
    pub updates: u32,
    pub connections: u32,
    pub user_connections: u32,
}

/// Global variables that hold where an account says DEFAULT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PasswordDefaults {
    pub lifetime: u64,
    pub history: u64,
    pub reuse_days: u64,
    pub require_current: bool,
}

/// `None` of an option is DEFAULT.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountRules {
    /// PASSWORD EXPIRE: until the password is changed.
    pub expired: bool,
    /// When the password was changed, in microseconds since 1970 UTC; zero: nobody noted it.
    pub changed: i64,
    /// PASSWORD EXPIRE INTERVAL in days; zero: NEVER.
    pub lifetime: Option<u16>,
    pub history: Option<u32>,
    pub reuse_days: Option<u32>,
    pub require_current: Option<bool>,
    /// Of a second password that is as good as the first; empty: there is none.
    pub second: String,
    pub past: Vec<PastPassword>,
    pub failed_logins: u16,
    /// PASSWORD_LOCK_TIME in days; -1: UNBOUNDED.
    pub lock_days: i32,
    /// Moves when failed logins are to be forgotten.
    pub unlocks: u64,
    pub tls: TlsRule,
    pub limits: Limits,
    /// COMMENT and ATTRIBUTE.
    pub attribute: Option<Map<String, Json>>,
    #[serde(flatten)]
    pub unknown: Map<String, Json>,
}

impl AccountRules {
    /// Whether a password has to be changed before anything else is done.
    pub fn is_expired(&self, now_micros: i64, defaults: &PasswordDefaults) -> bool {
        let days = self.lifetime.map_or(defaults.lifetime, u64::from);
        let days = i64::try_from(days).unwrap_or(i64::MAX);
        let is_old = days > 0 && self.changed > 0 && (now_micros - self.changed) / DAY >= days;
        self.expired || is_old
    }

    pub fn requires_current(&self, defaults: &PasswordDefaults) -> bool {
        self.require_current.unwrap_or(defaults.require_current)
    }

    fn kept(&self, defaults: &PasswordDefaults) -> (usize, i64) {
        let history = self.history.map_or(defaults.history, u64::from).min(MOST_PAST.into());
        let days = self.reuse_days.map_or(defaults.reuse_days, u64::from);
        (history as usize, i64::try_from(days).unwrap_or(i64::MAX).saturating_mul(DAY))
    }

    /// Passwords that must not be used again now.
    pub fn forbidden(&self, now_micros: i64, defaults: &PasswordDefaults) -> impl Iterator<Item = &PastPassword> {
        let (count, age) = self.kept(defaults);
        let past = self.past.iter().enumerate();
        past.filter(move |(at, past)| *at < count || (age > 0 && now_micros - past.set < age)).map(|(_, past)| past)
    }

    /// A new password is set.
    pub fn password_changed(&mut self, hash: &str, now_micros: i64, defaults: &PasswordDefaults) {
        self.expired = false;
        self.changed = now_micros;
        let (count, age) = self.kept(defaults);
        if (count > 0 || age > 0) && !hash.is_empty() {
            self.past.insert(0, PastPassword { set: now_micros, hash: hash.to_string() });
        }
        let kept: Vec<PastPassword> = self.forbidden(now_micros, defaults).take(MOST_PAST as usize).cloned().collect();
        self.past = kept;
    }

    /// What CREATE USER and ALTER USER say. Errors 1235, 3982.
    pub fn apply(&mut self, options: &AccountOptions, now_micros: i64) -> Result<(), MysqlError> {
        match options.expiry {
            None => {}
            Some(Expiry::Now) => self.expired = true,
            Some(Expiry::Default) => self.lifetime = None,
            Some(Expiry::Never) => self.lifetime = Some(0),
            Some(Expiry::Days(days)) => self.lifetime = Some(days),
        }
        if matches!(options.expiry, Some(Expiry::Days(_))) && self.changed == 0 {
            self.changed = now_micros;
        }
        if let Some(history) = options.history {
            if history.is_some_and(|passwords| passwords > MOST_PAST) {
                return Err(errors::not_supported("PASSWORD HISTORY of more than 1000 passwords"));
            }
            self.history = history;
        }
        self.reuse_days = options.reuse_days.unwrap_or(self.reuse_days);
        self.require_current = options.require_current.unwrap_or(self.require_current);
        if options.failed_logins.is_some() || options.lock_days.is_some() || options.lock == Some(false) {
            self.failed_logins = options.failed_logins.unwrap_or(self.failed_logins);
            self.lock_days = options.lock_days.unwrap_or(self.lock_days);
            if self.failed_logins > 0 {
                self.unlocks += 1;
            }
        }
        if let Some(tls) = &options.tls {
            self.tls = tls.clone();
        }
        let ResourceLimits { queries, updates, connections, user_connections } = options.limits;
        for (place, value) in [
            (&mut self.limits.queries, queries),
            (&mut self.limits.updates, updates),
            (&mut self.limits.connections, connections),
            (&mut self.limits.user_connections, user_connections),
        ] {
            *place = value.unwrap_or(*place);
        }
        if let Some(note) = &options.note {
            self.note(note)?;
        }
        Ok(())
    }

    /// Members are added to those that are there; `null` takes one away.
    fn note(&mut self, note: &AccountNote) -> Result<(), MysqlError> {
        let change = match note {
            AccountNote::Comment(text) => Map::from_iter([("comment".to_string(), Json::from(text.as_str()))]),
            AccountNote::Attribute(text) => match serde_json::from_str(text) {
                Ok(Json::Object(object)) => object,
                _ => return Err(MysqlError::new(BAD_ATTRIBUTE, "The user attribute must be a valid JSON object")),
            },
        };
        merge_patch(self.attribute.get_or_insert_default(), change);
        Ok(())
    }

    /// The attribute as text, as MySQL prints JSON.
    pub fn attribute_text(&self) -> Option<String> {
        self.attribute.as_ref().map(|object| json_text(&Json::Object(object.clone())))
    }
}

/// RFC 7396.
fn merge_patch(target: &mut Map<String, Json>, patch: Map<String, Json>) {
    for (name, value) in patch {
        match value {
            Json::Null => drop(target.remove(&name)),
            Json::Object(inner) => {
                let mut known = match target.remove(&name) {
                    Some(Json::Object(known)) => known,
                    _ => Map::new(),
                };
                merge_patch(&mut known, inner);
                target.insert(name, Json::Object(known));
            }
            other => drop(target.insert(name, other)),
        }
    }
}

/// As MySQL prints it: short names first, a space behind each comma and colon.
pub fn json_text(value: &Json) -> String {
    match value {
        Json::Object(members) => {
            let mut members: Vec<(&String, &Json)> = members.iter().collect();
            members.sort_by_key(|(name, _)| (name.len(), *name));
            let member =
                |(name, value): (&String, &Json)| format!("{}: {}", Json::from(name.as_str()), json_text(value));
            format!("{{{}}}", members.into_iter().map(member).collect::<Vec<_>>().join(", "))
        }
        Json::Array(values) => format!("[{}]", values.iter().map(json_text).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: PasswordDefaults =
        PasswordDefaults { lifetime: 0, history: 0, reuse_days: 0, require_current: false };

    #[test]
    fn passwords_grow_old() {
        let rules = AccountRules { changed: DAY, lifetime: Some(2), ..AccountRules::default() };
        assert!(!rules.is_expired(3 * DAY - 1, &DEFAULTS) && rules.is_expired(3 * DAY, &DEFAULTS));
        let by_default = AccountRules { lifetime: None, ..rules.clone() };
        assert!(!by_default.is_expired(9 * DAY, &DEFAULTS));
        assert!(by_default.is_expired(9 * DAY, &PasswordDefaults { lifetime: 5, ..DEFAULTS }));
        let never = AccountRules { lifetime: Some(0), ..rules };
        assert!(!never.is_expired(9 * DAY, &PasswordDefaults { lifetime: 5, ..DEFAULTS }));
    }

    #[test]
    fn the_past_is_kept_as_long_as_a_rule_asks_for_it() {
        let mut rules = AccountRules { history: Some(2), reuse_days: Some(0), ..AccountRules::default() };
        for (at, hash) in ["a", "b", "c"].into_iter().enumerate() {
            rules.password_changed(hash, at as i64 * DAY, &DEFAULTS);
        }
        let forbidden = |rules: &AccountRules, now: i64| -> Vec<String> {
            rules.forbidden(now, &DEFAULTS).map(|past| past.hash.clone()).collect()
        };
        assert_eq!(forbidden(&rules, 3 * DAY), ["c", "b"]);
        rules.reuse_days = Some(10);
        rules.password_changed("d", 3 * DAY, &DEFAULTS);
        assert_eq!(forbidden(&rules, 3 * DAY), ["d", "c", "b"]);
        assert_eq!(forbidden(&rules, 12 * DAY), ["d", "c"]);
        for turn in 0..2 * i64::from(MOST_PAST) {
            rules.password_changed("e", 13 * DAY + turn, &DEFAULTS);
        }
        assert_eq!(rules.past.len(), MOST_PAST as usize);
    }

    #[test]
    fn attributes_are_merged() {
        let mut rules = AccountRules::default();
        let attribute = |text: &str| AccountNote::Attribute(text.to_string());
        rules.note(&attribute(r#"{"team": "a", "deep": {"x": 1, "y": [1,2]}}"#)).unwrap();
        rules.note(&AccountNote::Comment("hello".to_string())).unwrap();
        rules.note(&attribute(r#"{"team": null, "deep": {"x": 2}}"#)).unwrap();
        let text = rules.attribute_text().unwrap();
        assert_eq!(text, r#"{"deep": {"x": 2, "y": [1, 2]}, "comment": "hello"}"#);
        assert_eq!(rules.note(&attribute("[1]")).unwrap_err().code, 3982);
    }
}

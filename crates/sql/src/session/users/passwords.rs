//! Changes of passwords: what IDENTIFIED and SET PASSWORD make, and the rules that a new password has to keep.
//!
//! Credentials are made once per statement, since hashing takes long, however often the statement is drafted
//! ([`super::change`]). A password is compared with those of the past by their hashes, which takes as long as so many
//! logins: it is done beside the thread's other tasks.

use super::password::{self, CACHING_SHA2, NATIVE};
use super::privilege::Privileges;
use super::record::AccountRecord;
use super::rules::PasswordDefaults;
use super::store::Users;
use crate::parse::statement::{Authentication, UserName};
use crate::session::run::Done;
use crate::session::session::Session;
use crate::session::show::{integer_column, send, text_column};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rauk_types::result::ResultSink;
use rauk_types::{MysqlError, Value};

const INCORRECT_CURRENT: u16 = 3891;
const MISSING_CURRENT: u16 = 3892;
const CURRENT_OF_OTHERS: u16 = 3893;
const RETAINED_ON_PLUGIN_CHANGE: u16 = 3894;
const RETAINED_FOR_EMPTY: u16 = 3895;
const EMPTY_RETAINED: u16 = 3878;
const USED_BEFORE: u16 = 3638;
const BAD_HASH: u16 = 1827;

/// What a statement gives an account.
#[derive(Clone)]
pub(super) struct Credentials {
    pub plugin: String,
    pub hash: String,
    /// `None`: only the hash is known.
    pub text: Option<String>,
    /// IDENTIFIED WITH plugin and no more: a password has to be chosen at the next login.
    pub bare: bool,
    pub random: bool,
}

/// A password that the server has made, for the client.
pub(super) struct Generated {
    pub name: UserName,
    pub text: String,
}

/// As many characters as `length`, of which no one can guess the next.
fn random_password(length: u64) -> String {
    const SIGNS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789,.-+*;:_!#%&/()=?><@^{}[]~";
    let mut rng = StdRng::from_os_rng();
    (0..length).map(|_| char::from(SIGNS[rng.random_range(0..SIGNS.len())])).collect()
}

impl Session {
    pub(super) fn password_defaults(&self) -> PasswordDefaults {
        self.engine.password_defaults()
    }

    /// `keep`: the plugin where none is named.
    pub(super) fn credentials(
        &self,
        authentication: &Authentication,
        keep: Option<&str>,
    ) -> Result<Credentials, MysqlError> {
        let plugin = match authentication {
            Authentication::Password { plugin, .. } | Authentication::Random { plugin } => {
                plugin.as_deref().or(keep).unwrap_or(CACHING_SHA2)
            }
            Authentication::Plugin(plugin) | Authentication::Hash { plugin, .. } => plugin,
        };
        Users::check_plugin(plugin)?;
        let (text, random) = match authentication {
            Authentication::Hash { hash, .. } => {
                if !password::is_hash(plugin, hash) {
                    return Err(MysqlError::new(BAD_HASH, "The password hash doesn't have the expected format."));
                }
                let (plugin, hash) = (plugin.to_string(), hash.clone());
                return Ok(Credentials { plugin, hash, text: None, bare: false, random: false });
            }
            Authentication::Password { password, .. } => (password.clone(), false),
            Authentication::Random { .. } => {
                let length = self.variables.by_name("generated_random_password_length");
                let length = u64::try_from(length.as_ref().as_integer().unwrap_or(0));
                (random_password(length.unwrap_or_default()), true)
            }
            Authentication::Plugin(_) => (String::new(), false),
        };
        let make = || password::hash(plugin, &text, &mut || self.engine.runtime.random());
        let hash = if plugin == NATIVE { make() } else { self.context.budget.beside(make) };
        let bare = matches!(authentication, Authentication::Plugin(_));
        Ok(Credentials { plugin: plugin.to_string(), hash, text: Some(text), bare, random })
    }

    /// REPLACE names the present password of one's own account, and has to where a rule says so. Errors 3891, 3892,
    /// 3893.
    pub(super) fn check_replaced(&self, record: &AccountRecord, replaced: Option<&str>) -> Result<(), MysqlError> {
        let own = self.own.is(&record.name());
        match replaced {
            Some(_) if !own => {
                let message = "Do not specify the current password while changing it for other users.";
                Err(MysqlError::new(CURRENT_OF_OTHERS, message))
            }
            Some(present) if !password::matches(&record.plugin, &record.hash, present) => {
                let message = "Incorrect current password. Specify the correct password which has to be replaced.";
                Err(MysqlError::new(INCORRECT_CURRENT, message))
            }
            None if own
                && !record.hash.is_empty()
                && record.rules.requires_current(&self.password_defaults())
                && !self.account.global.contains(Privileges::CREATE_USER)
                && !self.account.on_table("mysql", "user").contains(Privileges::UPDATE) =>
            {
                let message = "Current password needs to be specified in the REPLACE clause in order to change it.";
                Err(MysqlError::new(MISSING_CURRENT, message))
            }
            _ => Ok(()),
        }
    }

    /// Gives an account a password. Errors 3638, 3878, 3894, 3895.
    pub(super) fn draft_password(
        &self,
        record: &mut AccountRecord,
        made: &Credentials,
        retain: bool,
    ) -> Result<(), MysqlError> {
        let name = format!("'{}'@'{}'", record.user, record.host);
        if retain {
            let refused = |code: u16, why: &str| {
                Err(MysqlError::new(
                    code,
                    format!("Current password can not be retained for user {name} because {why}."),
                ))
            };
            if record.plugin != made.plugin {
                return refused(RETAINED_ON_PLUGIN_CHANGE, "authentication plugin is being changed");
            }
            if made.hash.is_empty() {
                return refused(RETAINED_FOR_EMPTY, "new password is empty");
            }
            if record.hash.is_empty() {
                let message = format!("Empty password can not be retained as second password for user {name}.");
                return Err(MysqlError::new(EMPTY_RETAINED, message));
            }
        }
        let defaults = self.password_defaults();
        let now = self.engine.now_micros();
        if let Some(text) = made.text.as_deref().filter(|text| !text.is_empty()) {
            let known = || {
                let mut past = record.rules.forbidden(now, &defaults);
                past.any(|past| past.hash == made.hash || self.was(&past.hash, text))
            };
            if self.context.budget.beside(known) {
                let message = format!(
                    "Cannot use these credentials for '{}@{}' because they contradict the password history policy",
                    record.user, record.host
                );
                return Err(MysqlError::new(USED_BEFORE, message));
            }
        }
        if retain {
            record.rules.second = std::mem::take(&mut record.hash);
        } else if made.hash.is_empty() || record.plugin != made.plugin {
            record.rules.second.clear();
        }
        record.plugin.clone_from(&made.plugin);
        record.hash.clone_from(&made.hash);
        record.rules.password_changed(&made.hash, now, &defaults);
        Ok(())
    }

    /// Whether a hash of the past, of whatever plugin, is that of a password.
    fn was(&self, hash: &str, text: &str) -> bool {
        let plugin = if hash.starts_with('*') { NATIVE } else { CACHING_SHA2 };
        password::matches(plugin, hash, text)
    }

    /// The rows of a statement that has made passwords.
    pub(super) fn send_generated(&self, generated: &[Generated], sink: &mut dyn ResultSink) -> Done {
        if generated.is_empty() {
            return Done::default();
        }
        let columns = [("user", 32), ("host", 255), ("generated password", 255)];
        let mut columns: Vec<_> = columns.iter().map(|(name, width)| text_column(name, *width)).collect();
        columns.push(integer_column("auth_factor"));
        let row = |made: &Generated| {
            vec![
                Value::from(made.name.user.as_str()),
                Value::from(made.name.host.as_str()),
                Value::from(made.text.as_str()),
                Value::Int(1),
            ]
        };
        let rows: Vec<Vec<Value>> = generated.iter().map(row).collect();
        send(&columns, &rows, sink);
        Done::rows()
    }
}

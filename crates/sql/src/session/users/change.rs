//! How a statement changes accounts: from what it has read, and only if that is still so.
//!
//! What a process knows of the accounts is a copy, and a statement gives a whole record back. If it were stored whatever is there by then, it would undo what others have been
//! answered for meanwhile: a user dropped on another node would be back, with the old password. So a statement makes a [`Draft`], which holds for every account that it has looked at
//! the text that it found. The catalog takes it only if all of them are the same; else the statement is drafted again from what is there now, and fails as it would have if it had begun only then.
//!
//! Of several that meet, one gets through each time, so all do after some tries. Whoever has had bad luck for very long gets a temporary error.

use super::record::AccountRecord;
use super::store::Users;
use crate::expr::context::WarningLevel;
use crate::memory::interrupted;
use crate::parse::statement::UserName;
use crate::session::session::Session;
use rauk_node::{NodeError, SettingChange};
use rauk_types::MysqlError;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often a statement is drafted.
const TRIES: u32 = 100;
/// The longest pause between two tries is two to the power of this, in milliseconds.
const PAUSE_BITS: u32 = 5;

/// What a statement makes of the accounts.
#[derive(Default)]
pub struct Draft {
    /// By the keys of their settings.
    accounts: BTreeMap<String, Drafted>,
    /// For the client, if the statement is carried out.
    notes: Vec<(WarningLevel, u16, String)>,
}

struct Drafted {
    text: Option<String>,
    found: Option<Arc<AccountRecord>>,
    now: Option<AccountRecord>,
}

impl Draft {
    /// An account as the statement has made it so far: to be looked at, changed, made (`Some`) or removed (`None`).
    pub fn account(&mut self, users: &Users, user: &str, host: &str) -> &mut Option<AccountRecord> {
        let stored = users.stored(user, host);
        let drafted = self.accounts.entry(stored.key).or_insert_with(|| Drafted {
            text: stored.text,
            now: stored.record.as_deref().cloned(),
            found: stored.record,
        });
        &mut drafted.now
    }

    pub fn note(&mut self, code: u16, message: String) {
        self.notes.push((WarningLevel::Note, code, message));
    }

    pub fn warn(&mut self, code: u16, message: String) {
        self.notes.push((WarningLevel::Warning, code, message));
    }

    /// Whether an account is a role or has it, directly or by others. All accounts between are looked at.
    pub fn leads_to(&mut self, users: &Users, from: &UserName, role: &UserName) -> bool {
        let mut seen = Vec::new();
        let mut open = vec![from.clone()];
        while let Some(name) = open.pop() {
            if name == *role {
                return true;
            }
            if seen.contains(&name) {
                continue;
            }
            if let Some(record) = self.account(users, &name.user, &name.host) {
                open.extend(record.roles.keys().cloned());
            }
            seen.push(name);
        }
        false
    }

    /// Accounts that were only looked at are among them: that they are there, or not, is what the statement answers.
    fn changes(&self) -> Vec<SettingChange> {
        let change = |(key, drafted): (&String, &Drafted)| {
            let from = drafted.text.clone();
            let to = match drafted.now == drafted.found.as_deref().cloned() {
                true => from.clone(),
                false => drafted.now.as_ref().map(AccountRecord::to_json),
            };
            SettingChange { key: key.clone(), from, to }
        };
        self.accounts.iter().map(change).collect()
    }
}

impl Session {
    /// Carries out what `draft` makes of the accounts, durably. It is called again, with the session's own rights as they are by then, when somebody else was faster.
    pub(crate) async fn change_accounts(
        &mut self,
        mut draft: impl FnMut(&Session, &mut Draft) -> Result<(), MysqlError>,
    ) -> Result<(), MysqlError> {
        let mut tries = 0;
        loop {
            let mut drafted = Draft::default();
            draft(self, &mut drafted)?;
            tries += 1;
            match self.engine.users.change(drafted.changes()).await {
                Err(NodeError::SettingsChanged) if tries < TRIES => {}
                result => {
                    result?;
                    for (level, code, message) in drafted.notes {
                        match level {
                            WarningLevel::Note => self.note(code, message),
                            _ => self.push_warning(level, code, message),
                        }
                    }
                    // The session's own rights may have changed: its next statement, and what follows in this one,
                    // has them.
                    self.refresh_account();
                    return Ok(());
                }
            }
            self.let_others_go_first(tries).await?;
            self.refresh_account();
        }
    }

    /// The more tries there were, the longer it may be.
    async fn let_others_go_first(&mut self, tries: u32) -> Result<(), MysqlError> {
        let longest = 1_u64 << (tries - 1).min(PAUSE_BITS);
        let pause = self.engine.runtime.random() % longest;
        match self.context.budget.memory.sleep(Duration::from_millis(pause)).await {
            true => Err(interrupted()),
            false => Ok(()),
        }
    }
}

//! `read_only` and `super_read_only`: while one is on, statements that change data, definitions or accounts are error 1290.
//!
//! Accounts with SUPER or CONNECTION_ADMIN pass `read_only`, nobody passes `super_read_only`. What has been written and is not committed when one is
//! switched on is rolled back at its COMMIT, with the same error. Each node has its own value: a change goes through the node that a client is
//! connected to. The native API's writes are not SQL's and go on.

use super::session::Session;
use super::users::Privileges;
use crate::parse::Statement;
use crate::parse::ast::RoleStatement;
use rauk_types::MysqlError;
use rauk_types::error::codes;

/// What the two variables say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ReadOnly {
    Off = 0,
    /// read_only
    On = 1,
    /// super_read_only
    Super = 2,
}

impl ReadOnly {
    pub fn of(byte: u8) -> ReadOnly {
        match byte {
            0 => ReadOnly::Off,
            1 => ReadOnly::On,
            _ => ReadOnly::Super,
        }
    }
}

fn refused(option: &str) -> MysqlError {
    let message = format!("The MySQL server is running with the {option} option so it cannot execute this statement");
    MysqlError::new(codes::OPTION_PREVENTS_STATEMENT, message)
}

impl Session {
    /// Error 1290 where a change is not allowed.
    pub(crate) fn may_change(&self) -> Result<(), MysqlError> {
        match self.engine.variables.read_only() {
            ReadOnly::Off => Ok(()),
            ReadOnly::Super => Err(refused("--super-read-only")),
            ReadOnly::On => {
                let passes = Privileges::SUPER.with(Privileges::CONNECTION_ADMIN);
                if self.account.global.intersects(passes) { Ok(()) } else { Err(refused("--read-only")) }
            }
        }
    }

    /// The same for a statement that has no plan.
    pub(crate) fn may_run(&self, statement: &Statement) -> Result<(), MysqlError> {
        if self.changes_definitions(statement) { self.may_begin_change() } else { Ok(()) }
    }

    /// Whether a statement changes definitions of what is stored, or accounts.
    pub(crate) fn changes_definitions(&self, statement: &Statement) -> bool {
        use Statement::{
            AlterDatabase, AlterTable, AlterUser, CreateDatabase, CreateIndex, CreateTable, CreateUser, CreateView,
            DropDatabase, DropIndex, DropTable, DropUser, DropView, Grant, RenameTable, RenameUser, Revoke, Role,
            SetPassword, TruncateTable,
        };
        match statement {
            CreateDatabase { .. }
            | AlterDatabase { .. }
            | DropDatabase { .. }
            | CreateTable(_)
            | AlterTable { .. }
            | DropTable { .. }
            | CreateView(_)
            | DropView { .. }
            | TruncateTable(_)
            | RenameTable(_)
            | CreateIndex(_)
            | DropIndex { .. }
            | CreateUser { .. }
            | AlterUser { .. }
            | DropUser { .. }
            | RenameUser(_)
            | SetPassword(_)
            | Grant { .. }
            | Revoke { .. } => !self.changes_only_temporary(statement),
            Role(role) => !matches!(**role, RoleStatement::Set(_)),
            _ => false,
        }
    }

    fn may_begin_change(&self) -> Result<(), MysqlError> {
        self.may_change()?;
        self.check_read_lock()?;
        self.spend_update()
    }
}

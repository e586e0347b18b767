//! Tables for the planner: stored ones and virtual ones, with the privileges that using them takes.

use super::engine::Engine;
use super::errors;
use super::plan_cache::Needs;
use super::session::Session;
use super::system;
use super::users::{AccountRecord, Privileges};
use super::variables::SessionVariables;
use crate::lookup::{Lookup, TableSource};
use crate::statistics::TableStatistics;
use rauk_node::{Database, NodeError, TableHandle};
use rauk_types::MysqlError;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// Whose eyes a virtual table is read with.
#[derive(Clone)]
pub struct Viewer {
    pub engine: Arc<Engine>,
    pub account: Arc<AccountRecord>,
    pub variables: Arc<SessionVariables>,
    pub connection_id: u32,
}

/// Implements [`Lookup`] for one planning, and notes what the plan will need on each use.
pub struct SessionLookup<'a> {
    session: &'a Session,
    needs: RefCell<Needs>,
    virtual_used: Cell<bool>,
}

impl<'a> SessionLookup<'a> {
    pub fn new(session: &'a Session) -> Self {
        SessionLookup { session, needs: RefCell::default(), virtual_used: Cell::new(false) }
    }

    /// What must be granted; and whether a virtual table was used (such plans belong to one session).
    pub fn finish(self) -> (Needs, bool) {
        (self.needs.into_inner(), self.virtual_used.get())
    }

    fn need(&self, database: &str, name: &str, privileges: Privileges) {
        let needs = &mut self.needs.borrow_mut().privileges;
        match needs.iter_mut().find(|(d, n, _)| d == database && n == name) {
            Some((_, _, all)) => *all = all.with(privileges),
            None => needs.push((database.to_string(), name.to_string(), privileges)),
        }
    }
}

/// A stored table by name. Errors 1049, 1146.
pub fn stored(engine: &Engine, database: &str, name: &str) -> Result<TableHandle, MysqlError> {
    engine.database.table(database, name).map_err(|error| match error {
        NodeError::NoSuchTable { .. } if engine.database.database_collation(database).is_none() => {
            errors::unknown_database(database)
        }
        NodeError::NoSuchTable { .. } => errors::no_such_table(database, name),
        other => other.into(),
    })
}

impl Lookup for SessionLookup<'_> {
    fn table(&self, database: Option<&str>, name: &str, privilege: &str) -> Result<TableSource, MysqlError> {
        let session = self.session;
        let database = database.or(session.context.current_database.as_deref()).ok_or_else(errors::no_database)?;
        let canonical = system::canonical_database(database);
        if system::is_system(&canonical) {
            self.virtual_used.set(true);
            if privilege != "SELECT" {
                return Err(errors::table_denied(privilege, &session.account.user, &session.process.host, name));
            }
            return Ok(TableSource::Virtual(system::table(&canonical, name, session.viewer())?));
        }
        let privileges = Privileges::named(privilege).unwrap_or(Privileges::SELECT);
        session.require_table(privilege, &canonical, name, privileges)?;
        self.need(&canonical, name, privileges);
        Ok(TableSource::Stored(stored(&session.engine, &canonical, name)?))
    }

    fn may_lock_rows(&self, table: &TableHandle) -> Result<(), MysqlError> {
        let schema = table.schema();
        self.session.require_row_locks(&schema.database, &schema.name)?;
        let mut needs = self.needs.borrow_mut();
        needs.row_locks.push((schema.database.clone(), schema.name.clone()));
        Ok(())
    }

    fn statistics(&self, table: &TableHandle) -> Option<Arc<TableStatistics>> {
        self.session.engine.statistics_for_plan(table)
    }

    fn database(&self) -> &Database {
        &self.session.engine.database
    }
}

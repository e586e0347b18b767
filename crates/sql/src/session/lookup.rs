//! Tables for the planner: stored ones, virtual ones and views, with the privileges that using them takes.
//!
//! A statement's own names are looked up with the session's account, and each privilege is noted, so that a cached plan can be checked for another user.
//! Names in a view's query are looked up with the account that its SQL SECURITY says: the definer's, or whoever's the names around the view are looked up with.
//! What a definer may do is not noted: a plan that has used a view is good for one version of the catalog, in which
//! accounts are too ([`Used::catalog`]).

use super::ddl::types::{self, TypeAttributes};
use super::engine::Engine;
use super::errors;
use super::plan_cache::{Need, Needs};
use super::session::Session;
use super::system;
use super::table_locks::{LockedNames, NOT_LOCKED, NOT_LOCKED_TO_WRITE};
use super::temporary::TemporaryTables;
use super::users::{AccountRecord, Privileges};
use super::variables::SessionVariables;
use crate::bind::view::invalid;
use crate::expr::BindContext;
use crate::lookup::{GuardedTable, Lookup, TableSource};
use crate::nearest;
use crate::parse::ast::{ColumnOption, ColumnType, TableName};
use crate::parse::statement::UserName;
use crate::statistics::TableStatistics;
use rauk_node::{Database, NodeError, TableHandle};
use rauk_types::error::codes;
use rauk_types::{DataType, MysqlError, ViewSchema, ViewSecurity};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Whose eyes a virtual table is read with.
#[derive(Clone)]
pub struct Viewer {
    pub engine: Arc<Engine>,
    pub account: Arc<AccountRecord>,
    pub active_roles: Vec<UserName>,
    pub variables: Arc<SessionVariables>,
    pub connection_id: u32,
    pub temporary: Arc<TemporaryTables>,
    /// LOCK TABLES.
    pub(crate) locked: Option<Arc<LockedNames>>,
}

/// Implements [`Lookup`] for one planning, and notes what the plan will need on each use.
pub struct SessionLookup {
    viewer: Viewer,
    /// The client's host in errors.
    host: String,
    database: Option<String>,
    /// The outermost view around the names; `None`: they are the statement's own.
    view: Option<(String, String)>,
    /// The account is the session's.
    is_own: bool,
    notes: Rc<Notes>,
}

#[derive(Default)]
struct Notes {
    needs: RefCell<Needs>,
    virtual_used: Cell<bool>,
    view_used: Cell<bool>,
    /// The first temporary table.
    temporary_used: RefCell<Option<String>>,
    /// By their places: a lock is used once by a statement.
    locks_used: RefCell<Vec<usize>>,
}

/// What a planning has used.
pub struct Used {
    pub needs: Needs,
    /// A virtual table: such plans belong to one session.
    pub virtual_table: bool,
    /// A temporary table: of the session, too, but the plan is good as long as the table is there.
    pub temporary: bool,
    /// The version of the catalog for which the plan is good; `None`: any, as long as its tables are what they were.
    pub catalog: Option<u32>,
}

impl SessionLookup {
    pub fn new(session: &Session) -> Self {
        SessionLookup {
            viewer: session.viewer(),
            host: session.process.host.clone(),
            database: session.context.current_database.clone(),
            view: None,
            is_own: true,
            notes: Rc::default(),
        }
    }

    /// For what a virtual table shows of views.
    pub(crate) fn of_viewer(viewer: &Viewer) -> Self {
        SessionLookup {
            viewer: viewer.clone(),
            host: viewer.account.host.clone(),
            database: None,
            view: None,
            is_own: true,
            notes: Rc::default(),
        }
    }

    /// `catalog`: the catalog's version before the planning began.
    pub fn finish(self, catalog: u32) -> Used {
        let notes = &self.notes;
        Used {
            needs: notes.needs.take(),
            virtual_table: notes.virtual_used.get(),
            temporary: notes.temporary_used.borrow().is_some(),
            catalog: notes.view_used.get().then_some(catalog),
        }
    }

    /// The first temporary table that was found.
    pub fn temporary_used(&self) -> Option<String> {
        self.notes.temporary_used.borrow().clone()
    }

    /// Names in views never mean a temporary table.
    fn temporary(&self, database: &str, name: &str, privilege: &str) -> Option<TableHandle> {
        let table = self.viewer.temporary.meant(database, name, privilege).filter(|_| self.view.is_none())?;
        if table.is_temporary() {
            self.notes.temporary_used.borrow_mut().get_or_insert_with(|| name.to_string());
        }
        Some(table.clone())
    }

    fn need(&self, database: &str, name: &str, privileges: Privileges) {
        if !self.is_own {
            return;
        }
        let needs = &mut self.notes.needs.borrow_mut().privileges;
        match needs.iter_mut().find(|n| n.database == database && n.name == name && n.view == self.view) {
            Some(need) => need.privileges = need.privileges.with(privileges),
            None => {
                let view = self.view.clone();
                needs.push(Need { database: database.to_string(), name: name.to_string(), privileges, view });
            }
        }
    }

    fn require(&self, command: &str, database: &str, name: &str, privileges: Privileges) -> Result<(), MysqlError> {
        let account = &self.viewer.account;
        if account.global_on(database).contains(privileges) || account.on_table(database, name).contains(privileges) {
            return Ok(());
        }
        Err(errors::table_denied(command, &account.user, &self.host, name))
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

/// Error 1142 where a plan out of the cache reads a table that its user may not, or 1356 where a view hides it.
pub(crate) fn denied(need: &Need, error: MysqlError) -> MysqlError {
    match &need.view {
        Some((database, name)) => invalid(database, name),
        None => error,
    }
}

impl Lookup for SessionLookup {
    fn is_system(&self, database: &str) -> bool {
        system::is_system(database)
    }

    fn table(&self, database: Option<&str>, name: &str, privilege: &str) -> Result<TableSource, MysqlError> {
        Ok(self.find(database, name, privilege, false)?.0)
    }

    fn table_by_columns(
        &self,
        database: Option<&str>,
        name: &str,
        privilege: &str,
    ) -> Result<(TableSource, bool), MysqlError> {
        self.find(database, name, privilege, true)
    }

    fn check_locked(&self, name: &TableName, alias: Option<&str>, privilege: &str) -> Result<(), MysqlError> {
        let Some(locked) = self.viewer.locked.as_ref().filter(|_| self.view.is_none()) else { return Ok(()) };
        let (database, table) = {
            let database = name.database.as_deref().or(self.database.as_deref()).ok_or_else(errors::no_database)?;
            (system::canonical_database(database), name.name.clone())
        };
        if crate::session::system::is_system(&database) || self.temporary(&database, &table, privilege).is_some() {
            return Ok(());
        }
        let mut used = self.notes.locks_used.borrow_mut();
        let at = locked.find(&database, &table, alias, &used).ok_or_else(|| {
            let message = format!("Table '{}' was not locked with LOCK TABLES", alias.unwrap_or(&name.name));
            MysqlError::new(NOT_LOCKED, message)
        })?;
        used.push(at);
        if privilege == "INSERT" && !locked.names[at].write {
            let message = format!("Table '{}' was locked with a READ lock and can't be updated", name.name);
            return Err(MysqlError::new(NOT_LOCKED_TO_WRITE, message));
        }
        Ok(())
    }

    fn may_use_column(&self, table: &GuardedTable, column: &str, privilege: &str) -> Result<(), MysqlError> {
        let account = &self.viewer.account;
        let privileges = Privileges::named(privilege).unwrap_or(Privileges::SELECT);
        match account.on_column(&table.database, &table.name, column, privileges) {
            true => Ok(()),
            false => Err(errors::column_denied(privilege, &account.user, &self.host, column, &table.name)),
        }
    }

    fn may_lock_rows(&self, database: &str, name: &str) -> Result<(), MysqlError> {
        if self.temporary(database, name, "SELECT").is_some() {
            return Ok(());
        }
        let any = Privileges::UPDATE.with(Privileges::DELETE).with(Privileges::LOCK_TABLES);
        let account = &self.viewer.account;
        if !account.global_on(database).intersects(any) && !account.on_table(database, name).intersects(any) {
            let command = "SELECT with locking clause";
            return Err(errors::table_denied(command, &account.user, &self.host, name));
        }
        if self.is_own {
            self.notes.needs.borrow_mut().row_locks.push((database.to_string(), name.to_string()));
        }
        Ok(())
    }

    fn within(&self, view: &ViewSchema) -> Result<Box<dyn Lookup>, MysqlError> {
        let mut viewer = self.viewer.clone();
        let mut lookup = SessionLookup {
            host: self.host.clone(),
            database: Some(view.database.clone()),
            view: self.view.clone().or_else(|| Some(view.full_name())),
            is_own: self.is_own,
            notes: self.notes.clone(),
            viewer: viewer.clone(),
        };
        if view.security == ViewSecurity::Definer {
            let (user, host) = &view.definer;
            let definer = viewer.engine.users.find(user, host).ok_or_else(|| self.no_definer(user, host))?;
            viewer.account = viewer.engine.users.as_definer(&definer);
            lookup.is_own = false;
            lookup.host.clone_from(&viewer.account.host);
            lookup.viewer = viewer;
        }
        Ok(Box::new(lookup))
    }

    fn column_type(
        &self,
        name: &str,
        declared: &ColumnType,
        options: &[ColumnOption],
        context: &BindContext,
    ) -> Result<DataType, MysqlError> {
        let mut attributes = TypeAttributes {
            inherited: context.collation,
            strict: context.sql_mode.strict,
            ..TypeAttributes::default()
        };
        for option in options {
            match option {
                ColumnOption::Charset(charset) => attributes.charset = Some(charset),
                ColumnOption::Collation(collation) => attributes.collation = Some(collation),
                ColumnOption::BinaryCollation => attributes.binary = true,
                ColumnOption::Zerofill => attributes.zerofill = true,
                // Of a spatial type, which is refused below.
                ColumnOption::Srid(_) => {}
                other => unreachable!("{other:?} is no part of a type"),
            }
        }
        let ty = types::convert(declared, name, &attributes)?;
        if ty.has_own_text() || ty.is_geometry() {
            return Err(errors::not_supported("ENUM, SET, BIT, YEAR, ZEROFILL and spatial types in JSON_TABLE"));
        }
        Ok(ty)
    }

    fn statistics(&self, table: &TableHandle) -> Option<Arc<TableStatistics>> {
        self.viewer.engine.statistics_for_plan(table)
    }

    fn database(&self) -> &Database {
        &self.viewer.engine.database
    }
}

impl SessionLookup {
    /// `by_columns`: a privilege on some column is enough; whether it is one, is given too.
    fn find(
        &self,
        database: Option<&str>,
        name: &str,
        privilege: &str,
        by_columns: bool,
    ) -> Result<(TableSource, bool), MysqlError> {
        let viewer = &self.viewer;
        let database = database.or(self.database.as_deref()).ok_or_else(errors::no_database)?;
        let canonical = system::canonical_database(database);
        if system::is_system(&canonical) {
            self.notes.virtual_used.set(true);
            if privilege != "SELECT" {
                return Err(errors::table_denied(privilege, &viewer.account.user, &self.host, name));
            }
            if let Some(found) = system::sys_view(name).filter(|_| canonical == system::SYS) {
                system::may_read_sys(&viewer.account, &self.host, name)?;
                self.notes.view_used.set(true);
                // Whoever runs it is asked for privileges again: nobody else gets the plan.
                self.notes.virtual_used.set(true);
                return Ok((TableSource::View(found.clone()), false));
            }
            return Ok((TableSource::Virtual(system::table(&canonical, name, viewer.clone())?), false));
        }
        if let Some(table) = self.temporary(&canonical, name, privilege) {
            return Ok((TableSource::Stored(table), false));
        }
        let privileges = Privileges::named(privilege).unwrap_or(Privileges::SELECT);
        let required = self.require(privilege, &canonical, name, privileges);
        let some = required.is_err() && by_columns && viewer.account.on_any_column(&canonical, name, privileges);
        if !some {
            required?;
        }
        self.need(&canonical, name, privileges);
        match stored(&viewer.engine, &canonical, name) {
            Ok(table) => Ok((TableSource::Stored(table), some)),
            Err(error) => match viewer.engine.database.view(&canonical, name) {
                Some(view) => {
                    self.notes.view_used.set(true);
                    Ok((TableSource::View(view), some))
                }
                None => Err(self.with_nearest(error, &canonical, name)),
            },
        }
    }

    /// The nearest of the tables and views that the account may see in any way.
    fn with_nearest(&self, error: MysqlError, database: &str, name: &str) -> MysqlError {
        let (viewer, account) = (&self.viewer, &self.viewer.account);
        // A view may name what whoever reads it does not see.
        if error.code != codes::NO_SUCH_TABLE || self.view.is_some() {
            return error;
        }
        let (tables, views) = (viewer.engine.database.tables(database), viewer.engine.database.views(database));
        let tables = tables.unwrap_or_default();
        let names = tables.iter().map(|table| table.name.as_str()).chain(views.iter().map(|view| view.name.as_str()));
        let sees = |name: &&str| account.sees_table(database, name);
        MysqlError::new(error.code, format!("{}{}", error.message, nearest::hint(name, names.filter(sees))))
    }

    /// Who may not know of other accounts hears of a refused access only.
    fn no_definer(&self, user: &str, host: &str) -> MysqlError {
        let account = &self.viewer.account;
        if account.global.intersects(Privileges::SUPER) {
            return errors::no_such_definer(user, host);
        }
        let message = format!("Access denied for user '{}'@'{}' (using password: YES)", account.user, self.host);
        MysqlError::new(codes::ACCESS_DENIED, message)
    }
}

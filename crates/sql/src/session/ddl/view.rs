//! CREATE VIEW, ALTER VIEW, DROP VIEW.
//!
//! The query is bound once, with the privileges of whoever defines the view, to find its mistakes and the full name of everything in it; what the catalog
//! keeps is text ([`crate::bind::view`]). Planning the query finds what binding does not look at (ONLY_FULL_GROUP_BY). Nothing is locked: running
//! statements go on with the definition that they began with, and plans that have read it are made again.

use crate::bind::view;
use crate::expr::context::WarningLevel;
use crate::parse::ast::{Query, TableName};
use crate::parse::statement::{CreateView, Statement, UserName, ViewChange};
use crate::physical;
use crate::session::ddl::table;
use crate::session::errors;
use crate::session::session::Session;
use crate::session::system;
use crate::session::users::Privileges;
use rauk_node::TableHandle;
use rauk_types::error::codes;
use rauk_types::result::Completion;
use rauk_types::{Collation, MysqlError, Value, ViewAlgorithm, ViewCheck, ViewSchema};

impl Session {
    pub(crate) async fn create_view(&mut self, statement: &CreateView) -> Result<Completion, MysqlError> {
        let (database, name) = self.qualified(&statement.name)?;
        system::refuse_change(&database, &self.account)?;
        self.require_table("CREATE VIEW", &database, &name, Privileges::CREATE_VIEW)?;
        if statement.change != ViewChange::Create {
            self.require_table("DROP", &database, &name, Privileges::DROP)?;
        }
        table::check_table_name(&name)?;
        self.database_collation(&database)?;
        let definer = self.definer(statement.definer.as_ref())?;
        self.commit_implicitly().await?;
        let known = self.engine.database.view(&database, &name);
        let is_table = self.table_exists(&database, &name);
        match statement.change {
            ViewChange::Create if is_table || known.is_some() => return Err(errors::table_exists(&name)),
            ViewChange::CreateOrReplace | ViewChange::Alter if is_table => {
                return Err(errors::wrong_object(&database, &name, "VIEW"));
            }
            ViewChange::Alter if known.is_none() => return Err(errors::no_such_table(&database, &name)),
            _ => {}
        }
        let known = known.filter(|_| statement.change == ViewChange::Alter);
        let defined = self.defined_view(&database, &name, statement)?;
        let mut algorithm =
            statement.algorithm.unwrap_or(known.as_ref().map_or_else(Default::default, |v| v.algorithm));
        if algorithm == ViewAlgorithm::Merge && !defined.is_mergeable {
            let message = "View merge algorithm can't be used here for now (assumed undefined algorithm)";
            self.push_warning(WarningLevel::Warning, codes::WARN_VIEW_MERGE, message.to_string());
            algorithm = ViewAlgorithm::Undefined;
        }
        let is_updatable = defined.is_updatable && algorithm != ViewAlgorithm::Temptable;
        if statement.check != ViewCheck::None && !is_updatable {
            let message = format!("CHECK OPTION on non-updatable view '{database}.{name}'");
            return Err(MysqlError::new(codes::VIEW_NONUPD_CHECK, message));
        }
        if let Some((user, host)) = definer.as_ref().filter(|(user, host)| self.engine.users.find(user, host).is_none())
        {
            let error = errors::no_such_definer(user, host);
            self.note(error.code, error.message);
        }
        let own = || (self.account.user.clone(), self.account.host.clone());
        let text = |name: &str| match self.variables.by_name(name) {
            Value::Str(text) => text,
            _ => String::new(),
        };
        let view = ViewSchema {
            definer: definer.or_else(|| Some(known.as_ref()?.definer.clone())).unwrap_or_else(own),
            security: statement.security.unwrap_or(known.as_ref().map_or_else(Default::default, |v| v.security)),
            query: defined.query,
            columns: statement.columns.clone(),
            algorithm,
            check: statement.check,
            charset: text("character_set_client"),
            collation: Collation::from_name(&text("collation_connection")).unwrap_or_default(),
            database,
            name,
        };
        self.engine.database.create_view(view, statement.change != ViewChange::Create).await?;
        Ok(Completion::default())
    }

    /// Who is named as the definer; `None`: nobody, so the view is whose it was, or the present user's. Error 1227.
    fn definer(&self, named: Option<&UserName>) -> Result<Option<(String, String)>, MysqlError> {
        let own = (self.account.user.clone(), self.account.host.clone());
        let Some(UserName { user, host }) = named else { return Ok(None) };
        let definer = if user.is_empty() && host.is_empty() { own.clone() } else { (user.clone(), host.clone()) };
        if definer != own {
            self.require_any(
                Privileges::SUPER.with(Privileges::SET_USER_ID).with(Privileges::SET_ANY_DEFINER),
                "SUPER or SET_USER_ID",
            )?;
        }
        Ok(Some(definer))
    }

    fn defined_view(
        &self,
        database: &str,
        name: &str,
        statement: &CreateView,
    ) -> Result<view::DefinedView, MysqlError> {
        let mut query: Query = statement.query.clone();
        view::name_items(&mut query);
        let lookup = self.lookup();
        let context = self.bind_context(Vec::new());
        let defined = view::define(database, name, &statement.columns, &query, &lookup, &context)?;
        if let Some(table) = lookup.temporary_used() {
            let message = format!("View's SELECT refers to a temporary table '{table}'");
            return Err(MysqlError::new(1352, message));
        }
        physical::plan(&Statement::Query(Box::new(query)), &lookup, &context)?;
        Ok(defined)
    }

    /// Drops all or, when one is no view or is not there, none. Errors 1051, 1347.
    pub(crate) async fn drop_views(&mut self, views: &[TableName], if_exists: bool) -> Result<Completion, MysqlError> {
        let mut names = Vec::with_capacity(views.len());
        for view in views {
            let (database, name) = self.qualified(view)?;
            system::refuse_change(&database, &self.account)?;
            self.require_table("DROP", &database, &name, Privileges::DROP)?;
            if names.contains(&(database.clone(), name.clone())) {
                return Err(MysqlError::new(codes::NONUNIQ_TABLE, format!("Not unique table/alias: '{name}'")));
            }
            names.push((database, name));
        }
        self.commit_implicitly().await?;
        if let Some((database, name)) = names.iter().find(|(database, name)| self.table_exists(database, name)) {
            return Err(errors::wrong_object(database, name, "VIEW"));
        }
        let is_missing = |(database, name): &(String, String)| self.engine.database.view(database, name).is_none();
        let missing: Vec<String> =
            names.iter().filter(|name| is_missing(name)).map(|(database, name)| format!("{database}.{name}")).collect();
        if !missing.is_empty() && !if_exists {
            return Err(MysqlError::new(codes::BAD_TABLE, format!("Unknown table '{}'", missing.join(","))));
        }
        names.retain(|name| !is_missing(name));
        for name in missing {
            self.note(codes::BAD_TABLE, format!("Unknown table '{name}'"));
        }
        if !names.is_empty() {
            self.engine.database.drop_views(names).await?;
        }
        Ok(Completion::default())
    }

    /// A stored table for a statement that takes no view. Errors 1347, 1049, 1146.
    pub(crate) fn base_table(&self, database: &str, name: &str) -> Result<TableHandle, MysqlError> {
        self.stored_table(database, name).map_err(|error| match self.view(database, name) {
            Some(_) => errors::wrong_object(database, name, "BASE TABLE"),
            None => error,
        })
    }

    /// Whether a stored table or a view of this name is there.
    pub(crate) fn is_named(&self, database: &str, name: &str) -> bool {
        self.table_exists(database, name) || self.engine.database.view(database, name).is_some()
    }
}

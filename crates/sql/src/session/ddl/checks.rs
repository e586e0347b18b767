//! CHECK constraints on their way into a table.
//!
//! A CHECK without a name is called `table_chk_1`, `table_chk_2` and so on in the order in which they are written. Names are unique in a database, without regard
//! to case; a table keeps its CHECKs in their order, in which they are checked and shown. A CHECK that stands beside a column may read that column only.
//!
//! A column that a CHECK reads beside others cannot be dropped, and no column that a CHECK reads can be renamed (3959); CHECKs that read a dropped
//! column alone go with it.
//!
//! Errors: 1059, 3819, 3821, 3822, 3940, 3941, 3959. What an expression may be: [`crate::bind::own_row`].

use super::table::TableDraft;
use crate::parse::ast::{Check, ColumnDefinition, ColumnOption, TableConstraint};
use crate::parse::statement::CreateTable;
use crate::session::session::Session;
use rauk_types::{CheckConstraint, IndexKind, MysqlError, TableId, TableSchema};

/// A CHECK on its way into a table.
#[derive(Clone, Debug)]
pub struct CheckDraft {
    /// `None`: named after the table.
    pub name: Option<String>,
    /// Names columns as they were written until the table is built.
    pub expression: String,
    pub enforced: bool,
    /// The column that it stands beside.
    pub beside: Option<String>,
}

impl CheckDraft {
    pub fn of(check: &CheckConstraint) -> CheckDraft {
        CheckDraft {
            name: Some(check.name.clone()),
            expression: check.expression.clone(),
            enforced: check.enforced,
            beside: None,
        }
    }

    pub fn new(check: &Check, beside: Option<&str>) -> CheckDraft {
        CheckDraft {
            name: check.name.clone(),
            expression: check.expr.to_string(),
            enforced: check.enforced,
            beside: beside.map(str::to_string),
        }
    }
}

/// The CHECKs that stand beside a column.
pub fn of_column(column: &ColumnDefinition) -> impl Iterator<Item = CheckDraft> {
    column.options.iter().filter_map(|option| match option {
        ColumnOption::Check(check) => Some(CheckDraft::new(check, Some(&column.name))),
        _ => None,
    })
}

/// The CHECKs of CREATE TABLE, as they are written.
pub fn written(statement: &CreateTable) -> Vec<CheckDraft> {
    let mut checks = Vec::new();
    let mut constraints = statement.constraints.iter().zip(&statement.behind).peekable();
    for at in 0..=statement.columns.len() {
        while let Some((constraint, _)) = constraints.next_if(|(_, behind)| **behind == at) {
            if let TableConstraint::Check(check) = constraint {
                checks.push(CheckDraft::new(check, None));
            }
        }
        checks.extend(statement.columns.get(at).into_iter().flat_map(of_column));
    }
    checks
}

/// The number in the generated name of a CHECK of this table.
fn number_of(name: &str, table: &str) -> Option<u64> {
    let rest =
        name.get(..table.len()).filter(|start| start.eq_ignore_ascii_case(table)).map(|_| &name[table.len()..])?;
    rest.strip_prefix("_chk_")?.parse().ok()
}

/// The CHECKs with names, in their order, and by name the columns that they stand beside. Errors 1059, 3822.
#[allow(clippy::type_complexity)]
pub fn name_all(
    table: &str,
    drafts: Vec<CheckDraft>,
) -> Result<(Vec<CheckConstraint>, Vec<(String, String)>), MysqlError> {
    let mut number = drafts.iter().filter_map(|d| number_of(d.name.as_deref()?, table)).max().unwrap_or(0);
    let mut checks: Vec<CheckConstraint> = Vec::with_capacity(drafts.len());
    let mut columns = Vec::new();
    for CheckDraft { name, expression, enforced, beside } in drafts {
        let name = name.unwrap_or_else(|| {
            number += 1;
            format!("{table}_chk_{number}")
        });
        super::check_identifier(&name)?;
        if checks.iter().any(|known| known.name.eq_ignore_ascii_case(&name)) {
            return Err(duplicate(&name));
        }
        columns.extend(beside.map(|column| (name.clone(), column)));
        checks.push(CheckConstraint { name, expression, enforced });
    }
    checks.sort_by_cached_key(|check| check.name.to_lowercase());
    Ok((checks, columns))
}

fn duplicate(name: &str) -> MysqlError {
    MysqlError::new(3822, format!("Duplicate check constraint name '{name}'."))
}

/// ER_CONSTRAINT_NOT_FOUND.
fn no_constraint(name: &str) -> MysqlError {
    MysqlError::new(3940, format!("Constraint '{name}' does not exist."))
}

fn position(draft: &TableDraft, name: &str) -> Option<usize> {
    draft.checks.iter().position(|check| check.name.as_deref().is_some_and(|known| known.eq_ignore_ascii_case(name)))
}

fn is_key(draft: &TableDraft, name: &str) -> bool {
    let named = |known: &str| known.eq_ignore_ascii_case(name);
    draft
        .indexes
        .iter()
        .any(|i| matches!(i.kind, IndexKind::Primary | IndexKind::Unique) && i.name.as_deref().is_some_and(named))
}

fn is_foreign(draft: &TableDraft, name: &str) -> bool {
    let named = |known: &str| known.eq_ignore_ascii_case(name);
    draft.foreign_keys.iter().any(|foreign| foreign.name.as_deref().is_some_and(named))
}

/// DROP CHECK. Error 3821.
pub fn remove(draft: &mut TableDraft, name: &str) -> Result<(), MysqlError> {
    let at = position(draft, name).ok_or_else(|| missing(name))?;
    draft.checks.remove(at);
    Ok(())
}

/// DROP CONSTRAINT: a CHECK, a unique key or the primary key. Errors 3939, 3940.
pub fn remove_constraint(draft: &mut TableDraft, name: &str) -> Result<(), MysqlError> {
    match (position(draft, name), is_key(draft, name)) {
        (Some(_), true) => Err(several(name)),
        (Some(at), false) => {
            draft.checks.remove(at);
            Ok(())
        }
        (None, true) => super::drop::remove_index(&mut draft.indexes, name),
        (None, false) => Err(no_constraint(name)),
    }
}

pub fn several(name: &str) -> MysqlError {
    let text = "Please use constraint specific 'DROP' clause.";
    MysqlError::new(3939, format!("Table has multiple constraints with the name '{name}'. {text}"))
}

/// ALTER CHECK, ALTER CONSTRAINT. Errors 3821, 3940, 3941.
pub fn enforce(draft: &mut TableDraft, name: &str, enforced: bool, constraint: bool) -> Result<(), MysqlError> {
    match position(draft, name) {
        Some(at) => {
            draft.checks[at].enforced = enforced;
            Ok(())
        }
        None if constraint && (is_key(draft, name) || is_foreign(draft, name)) => Err(MysqlError::new(
            3941,
            format!(
                "Altering constraint enforcement is not supported for the constraint '{name}'. Enforcement state alter is not supported for the PRIMARY, UNIQUE and FOREIGN KEY type constraints."
            ),
        )),
        None if constraint => Err(no_constraint(name)),
        None => Err(missing(name)),
    }
}

fn missing(name: &str) -> MysqlError {
    MysqlError::new(3821, format!("Check constraint '{name}' is not found in the table."))
}

/// A CHECK reads a column that ALTER TABLE drops or renames.
pub fn dependent(name: &str, column: &str) -> MysqlError {
    let message =
        format!("Check constraint '{name}' uses column '{column}', hence column cannot be dropped or renamed.");
    MysqlError::new(3959, message)
}

/// Whether rows that are there may break a CHECK of the new definition that they were not held to before.
pub fn must_validate(old: &TableSchema, new: &TableSchema) -> bool {
    let same = |check: &CheckConstraint, before: &CheckConstraint| {
        before.enforced && before.name == check.name && before.expression == check.expression
    };
    new.checks.iter().filter(|check| check.enforced).any(|check| !old.checks.iter().any(|before| same(check, before)))
}

impl Session {
    /// Error 3822: where a table goes by RENAME, another one has a CHECK of a name that one of its own has then.
    pub(super) fn checks_may_move(&self, from: &(String, String), to: &(String, String)) -> Result<(), MysqlError> {
        let Ok(table) = self.engine.database.table(&from.0, &from.1) else { return Ok(()) };
        let mut schema = (**table.schema()).clone();
        schema.database = to.0.clone();
        for check in &mut schema.checks {
            if let Some(number) = number_of(&check.name, &from.1) {
                check.name = format!("{}_chk_{number}", to.1);
            }
        }
        self.check_names_are_free(&schema, Some(schema.id))
    }

    /// Error 3822: another table of the database has a CHECK of the same name.
    pub(super) fn check_names_are_free(&self, schema: &TableSchema, own: Option<TableId>) -> Result<(), MysqlError> {
        if schema.checks.is_empty() {
            return Ok(());
        }
        for other in self.engine.database.tables(&schema.database)? {
            if own == Some(other.id) {
                continue;
            }
            let taken = |name: &str| other.checks.iter().any(|check| check.name.eq_ignore_ascii_case(name));
            if let Some(check) = schema.checks.iter().find(|check| taken(&check.name)) {
                return Err(duplicate(&check.name));
            }
        }
        Ok(())
    }
}

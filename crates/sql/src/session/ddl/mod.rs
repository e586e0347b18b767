//! Definitions: CREATE, ALTER, DROP, TRUNCATE, RENAME.
//!
//! [`types`] turns a declared type into a [`rauk_types::DataType`], [`columns`] a column definition into a draft, [`keys`] checks and builds indexes, [`checks`] CHECK constraints, [`foreign`] foreign keys,
//! [`table`] puts a whole table together from drafts. CREATE TABLE and ALTER TABLE both end there: ALTER takes the table apart into
//! drafts, applies its operations and builds it again, so that every rule is checked in one place.
//! [`create`], [`alter`], [`drop`] and [`view`] are the statements; all commit the open transaction first, as MySQL does.
//!
//! [`demanded`] checks what ALGORITHM and LOCK ask for.
//!
//! Left out, with error 1235: spatial indexes.

pub mod alter;
pub mod checks;
pub mod columns;
pub mod create;
mod demanded;
pub mod drop;
pub mod foreign;
pub mod keys;
pub mod options;
pub mod table;
pub mod types;
pub mod view;

/// Columns and constraints, or operations, of one statement after which MySQL's own limits on names apply.
pub(crate) fn check_identifier(name: &str) -> Result<(), rauk_types::MysqlError> {
    if name.chars().count() > rauk_types::schema::MAX_IDENTIFIER_CHARS {
        return Err(crate::session::errors::too_long_identifier(name));
    }
    Ok(())
}

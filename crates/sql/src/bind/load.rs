//! LOAD DATA.
//!
//! Its fields go into columns and user variables; SET reads the row as the fields have made it, and the variables. The columns that no field
//! and no assignment names get their defaults, as in INSERT. The rows of the file are stored as those of an INSERT are.

use super::Binder;
use super::change::Forbidden;
use super::frame::Frame;
use super::from::{of_partitions, refuse_partitions};
use super::own_row;
use crate::logical::{
    FileRows, FileTarget, Insert, InsertSource, LineFormat, OnDuplicate, SetColumn, Write, file_charset,
};
use crate::parse::ast::{LoadData, LoadDuplicates, LoadTarget};
use rauk_types::error::codes;
use rauk_types::{Charset, MysqlError};

impl Binder<'_> {
    pub(super) fn load(&mut self, load: &LoadData) -> Result<Write, MysqlError> {
        let format = LineFormat::new(&load.format)?;
        let charset = load.charset.as_deref().map_or(Ok(Charset::UTF8MB4), file_charset)?;
        let of_fields = load.targets.iter().filter_map(|target| match target {
            LoadTarget::Column(column) => Some(column.name.clone()),
            LoadTarget::Variable(_) => None,
        });
        let named: Vec<String> = of_fields.chain(load.set.iter().map(|set| set.column.name.clone())).collect();
        let into = self.target_table(&load.table, Some(&named)).map_err(|error| match error.code {
            codes::NON_INSERTABLE_TABLE => {
                let message = format!("The target table {} of the LOAD is not updatable", load.table.name);
                MysqlError::new(codes::NON_UPDATABLE_TABLE, message)
            }
            _ => error,
        })?;
        if into.below.is_some() {
            refuse_partitions(&load.partitions)?;
        }
        if load.duplicates == LoadDuplicates::Replace {
            self.may_change(&load.table, &into, "DELETE")?;
        }
        let table = of_partitions(&load.partitions, into.table.clone())?;
        let schema = table.schema().clone();
        let existing = self.row_columns(&table, false);

        let mut targets = Vec::new();
        for target in &load.targets {
            targets.push(match target {
                LoadTarget::Column(column) => FileTarget::Column(self.position_in(&into, column)?),
                LoadTarget::Variable(name) => FileTarget::Variable(name.to_lowercase()),
            });
        }
        if targets.is_empty() {
            let all = into.columns.iter().map(|(_, at)| *at);
            let seen = all.filter(|&at| into.below.is_some() || !schema.columns[at].invisible);
            targets.extend(seen.map(FileTarget::Column));
        }
        let mut columns: Vec<usize> = Vec::new();
        for target in &targets {
            let FileTarget::Column(at) = target else { continue };
            if schema.columns[*at].generated.is_some() {
                return Err(own_row::not_default(&schema, *at));
            }
            columns.push(*at);
        }
        self.targets.push(Forbidden::by_table(schema.id, &schema.name));
        self.frames.push(Frame::new());
        self.add_row(&into, &existing);
        let mut assigned = || {
            let mut set: Vec<SetColumn> = Vec::with_capacity(load.set.len());
            for assignment in &load.set {
                let column = self.position_in(&into, &assignment.column)?;
                set.push(self.assigned_value(column, &assignment.value, &schema, &existing)?);
            }
            Ok(set)
        };
        let set: Result<Vec<SetColumn>, MysqlError> = assigned();
        self.frames.pop();
        let set = set?;
        columns.extend(set.iter().map(|set| set.column));

        self.may_write(&schema, &columns, "INSERT")?;
        let ignore = load.ignores();
        let on_duplicate = match load.duplicates {
            LoadDuplicates::Replace => OnDuplicate::Replace,
            _ if ignore => OnDuplicate::Skip,
            _ => OnDuplicate::Error,
        };
        let fill = self.fills(&table)?;
        if into.below.is_some() && !ignore {
            self.check_defaults(&load.table, &fill, &columns)?;
        }
        let check = match into.check {
            Some(check) => Some(check.reading(&into.below, &existing, &self.absent_row(&into.others)?)),
            None => None,
        };
        let rules = own_row::row_rules(&schema, self.context)?;
        let file = FileRows { name: load.file.clone(), format, charset, skip: load.skip, targets, set };
        Ok(Write::Insert(Box::new(Insert {
            ignored: Vec::new(),
            table,
            existing,
            inserted: vec![],
            columns,
            source: InsertSource::File(file),
            fill,
            on_duplicate,
            ignore,
            update: vec![],
            reads_row: false,
            inputs: vec![],
            returning: vec![],
            check,
            rules,
        })))
    }
}

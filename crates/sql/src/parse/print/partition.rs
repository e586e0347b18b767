//! PARTITION BY, in the layout of MySQL's SHOW CREATE TABLE but for its version comment. INTERVAL, which only Rauk has, stands
//! where it may be written.
//!
//! The older spelling with COLUMN_LIST is printed as RANGE COLUMNS and LIST COLUMNS, which is the same tree. Options of
//! partitions come as they were written.

use super::{Print, Printer};
use crate::parse::ast::{
    ListValue, PartitionBound, PartitionBy, PartitionClause, PartitionDefinition, PartitionOn, PartitionOptions,
    PartitionValues,
};
use rauk_types::partitioning::PartitionMethod;
use std::fmt;

impl Printer<'_> {
    fn partition_clause(&mut self, clause: &PartitionClause) -> fmt::Result {
        self.text("PARTITION BY ")?;
        self.partition_by(&clause.by)?;
        if let Some(interval) = &clause.interval {
            write!(self.out, " {interval}")?;
        }
        if let Some(count) = clause.count {
            write!(self.out, "\nPARTITIONS {count}")?;
        }
        if let Some(sub) = &clause.sub {
            self.text("\nSUBPARTITION BY ")?;
            self.partition_by(&sub.by)?;
            if let Some(count) = sub.count {
                write!(self.out, "\nSUBPARTITIONS {count}")?;
            }
        }
        if clause.definitions.is_empty() {
            return Ok(());
        }
        self.text("\n(")?;
        for (at, definition) in clause.definitions.iter().enumerate() {
            self.text(if at > 0 { ",\n " } else { "" })?;
            self.partition(definition)?;
        }
        self.text(")")
    }

    fn partition_by(&mut self, by: &PartitionBy) -> fmt::Result {
        let of_columns = matches!(by.on, PartitionOn::Columns(_));
        match by.method {
            PartitionMethod::Range => self.text(if of_columns { "RANGE COLUMNS" } else { "RANGE" })?,
            PartitionMethod::List => self.text(if of_columns { "LIST COLUMNS" } else { "LIST" })?,
            PartitionMethod::Hash { linear } => self.text(if linear { "LINEAR HASH" } else { "HASH" })?,
            PartitionMethod::Key { linear, algorithm } => {
                self.text(if linear { "LINEAR KEY" } else { "KEY" })?;
                if let Some(algorithm) = algorithm {
                    write!(self.out, " ALGORITHM = {algorithm}")?;
                }
            }
        }
        self.text(" ")?;
        match &by.on {
            PartitionOn::Columns(columns) => self.names(columns),
            PartitionOn::Expr(expr) => {
                self.text("(")?;
                self.expr(expr)?;
                self.text(")")
            }
        }
    }

    fn partition(&mut self, definition: &PartitionDefinition) -> fmt::Result {
        self.text("PARTITION ")?;
        self.name(&definition.name)?;
        match &definition.values {
            PartitionValues::None => {}
            PartitionValues::Default => self.text(" DEFAULT")?,
            PartitionValues::LessThan(bounds) if bounds.as_slice() == [PartitionBound::MaxValue] => {
                // Of RANGE COLUMNS it stands in parentheses, which RANGE takes too.
                self.text(" VALUES LESS THAN (MAXVALUE)")?;
            }
            PartitionValues::LessThan(bounds) => {
                self.text(" VALUES LESS THAN ")?;
                self.bounds(bounds)?;
            }
            PartitionValues::In(values) => {
                self.text(" VALUES IN (")?;
                self.list(values, |p, value| match value {
                    ListValue::One(bound) => p.bound(bound),
                    ListValue::Row(bounds) => p.bounds(bounds),
                })?;
                self.text(")")?;
            }
        }
        self.partition_options(&definition.options)?;
        if definition.subpartitions.is_empty() {
            return Ok(());
        }
        self.text("\n (")?;
        for (at, sub) in definition.subpartitions.iter().enumerate() {
            self.text(if at > 0 { ",\n  SUBPARTITION " } else { "SUBPARTITION " })?;
            self.name(&sub.name)?;
            self.partition_options(&sub.options)?;
        }
        self.text(")")
    }

    fn bounds(&mut self, bounds: &[PartitionBound]) -> fmt::Result {
        self.text("(")?;
        self.list(bounds, Self::bound)?;
        self.text(")")
    }

    fn bound(&mut self, bound: &PartitionBound) -> fmt::Result {
        match bound {
            PartitionBound::MaxValue => self.text("MAXVALUE"),
            PartitionBound::Value(value) => self.expr(value),
        }
    }

    fn partition_options(&mut self, options: &PartitionOptions) -> fmt::Result {
        for (option, value) in options {
            write!(self.out, " {option} = ")?;
            match *option {
                "COMMENT" | "DATA DIRECTORY" | "INDEX DIRECTORY" => self.string(value)?,
                "TABLESPACE" => self.name(value)?,
                _ => self.text(value)?,
            }
        }
        Ok(())
    }
}

impl Print for PartitionClause {
    fn print(&self, printer: &mut Printer<'_>) -> fmt::Result {
        printer.partition_clause(self)
    }
}

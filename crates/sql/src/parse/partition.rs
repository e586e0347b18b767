//! PARTITION BY, partition definitions, and what ALTER TABLE does with partitions.

use super::ast::{
    ListValue, PartitionBound, PartitionBy, PartitionClause, PartitionDefinition, PartitionNames, PartitionOn,
    PartitionOperation, PartitionOptions, PartitionValues, PartitionWork, Reorganization, SubpartitionClause,
    SubpartitionDefinition,
};
use super::cursor::{Parser, Result};
use super::dispatch::not_supported;
use super::lexer::Kind;
use super::operators::BIT_OR;
use rauk_types::partitioning::{PartitionInterval, PartitionMethod, Span, SpanUnit};

impl Parser<'_> {
    /// Behind PARTITION BY.
    pub fn partition_clause(&mut self) -> Result<PartitionClause> {
        if self.is_kw("SYSTEM_TIME") {
            return Err(not_supported("PARTITION BY SYSTEM_TIME"));
        }
        let by = match self.accept_any_kw(&["RANGE", "LIST"]) {
            Some(word) => {
                let method = if word == "RANGE" { PartitionMethod::Range } else { PartitionMethod::List };
                PartitionBy { method, on: self.ranged_on()? }
            }
            None => self.hashed_by(true)?,
        };
        let mut interval = self.partition_interval()?;
        let count = if self.accept_kw("PARTITIONS") { Some(self.integer()?) } else { None };
        let sub = if self.accept_kws(&["SUBPARTITION", "BY"]) {
            let by = self.hashed_by(false)?;
            let count = if self.accept_kw("SUBPARTITIONS") { Some(self.integer()?) } else { None };
            Some(SubpartitionClause { by, count })
        } else {
            None
        };
        let definitions = if self.kind() == Kind::LParen { self.partition_definitions()? } else { vec![] };
        if interval.is_none() {
            // Where SHOW CREATE TABLE has it, behind the comment that MySQL reads.
            interval = self.partition_interval()?;
        }
        Ok(PartitionClause { by, count, sub, definitions, interval })
    }

    /// `INTERVAL n unit [RETAIN n unit]`, if it stands here.
    fn partition_interval(&mut self) -> Result<Option<PartitionInterval>> {
        if !self.accept_kw("INTERVAL") {
            return Ok(None);
        }
        let every = self.span()?;
        let retain = if self.accept_kw("RETAIN") { Some(self.span()?) } else { None };
        Ok(Some(PartitionInterval { every, retain }))
    }

    fn span(&mut self) -> Result<Span> {
        let count = match self.integer()? {
            count @ 1.. if count <= u64::from(Span::MAX_COUNT) => count as u32,
            _ => return self.fail(),
        };
        let unit = SpanUnit::ALL.into_iter().find(|unit| self.is_kw(unit.name()));
        let Some(unit) = unit else { return self.fail() };
        self.advance();
        Ok(Span { count, unit })
    }

    /// Behind RANGE and LIST.
    fn ranged_on(&mut self) -> Result<PartitionOn> {
        if self.accept_any_kw(&["COLUMNS", "COLUMN_LIST"]).is_some() {
            return self.column_list().map(PartitionOn::Columns);
        }
        self.parenthesized(|p| {
            if p.is_column_list() {
                p.advance();
                return p.column_list().map(PartitionOn::Columns);
            }
            p.partition_expr()
        })
    }

    /// `[LINEAR] HASH (…)`, `[LINEAR] KEY [ALGORITHM = n] (…)`. `may_be_empty`: the columns of KEY.
    fn hashed_by(&mut self, may_be_empty: bool) -> Result<PartitionBy> {
        let linear = self.accept_kw("LINEAR");
        if self.accept_kw("HASH") {
            let on = self.parenthesized(Self::partition_expr)?;
            return Ok(PartitionBy { method: PartitionMethod::Hash { linear }, on });
        }
        self.expect_kw("KEY")?;
        let mut algorithm = None;
        if self.accept_kw("ALGORITHM") {
            self.expect(Kind::Eq)?;
            algorithm = match self.integer()? {
                1 => Some(1),
                2 => Some(2),
                _ => return self.fail(),
            };
        }
        let columns = if may_be_empty && self.kind() == Kind::LParen && self.kind_at(1) == Kind::RParen {
            self.skip_parentheses()?;
            vec![]
        } else {
            self.column_list()?
        };
        Ok(PartitionBy { method: PartitionMethod::Key { linear, algorithm }, on: PartitionOn::Columns(columns) })
    }

    fn partition_expr(&mut self) -> Result<PartitionOn> {
        Ok(PartitionOn::Expr(Box::new(self.operators(BIT_OR)?)))
    }

    /// The older spelling of several columns and of their values.
    fn is_column_list(&self) -> bool {
        self.is_kw("COLUMN_LIST") && self.kind_at(1) == Kind::LParen
    }

    fn partition_definitions(&mut self) -> Result<Vec<PartitionDefinition>> {
        self.parenthesized(|p| p.comma_separated(Self::partition_definition))
    }

    fn partition_definition(&mut self) -> Result<PartitionDefinition> {
        self.expect_kw("PARTITION")?;
        let name = self.name()?;
        let values = self.partition_values()?;
        let options = self.partition_options()?;
        let subpartitions = match self.kind() {
            Kind::LParen => self.parenthesized(|p| {
                p.comma_separated(|p| {
                    p.expect_kw("SUBPARTITION")?;
                    let name = if p.kind() == Kind::String { p.string()? } else { p.name()? };
                    Ok(SubpartitionDefinition { name, options: p.partition_options()? })
                })
            })?,
            _ => vec![],
        };
        Ok(PartitionDefinition { name, values, options, subpartitions })
    }

    fn partition_values(&mut self) -> Result<PartitionValues> {
        if self.accept_kw("DEFAULT") {
            return Ok(PartitionValues::Default);
        }
        if !self.accept_kw("VALUES") {
            return Ok(PartitionValues::None);
        }
        if self.accept_kws(&["LESS", "THAN"]) {
            if self.accept_kw("MAXVALUE") {
                return Ok(PartitionValues::LessThan(vec![PartitionBound::MaxValue]));
            }
            let bounds = self.parenthesized(|p| {
                if p.is_column_list() {
                    p.advance();
                    return p.partition_bounds();
                }
                p.comma_separated(Self::partition_bound)
            })?;
            return Ok(PartitionValues::LessThan(bounds));
        }
        self.expect_kw("IN")?;
        if self.kind() == Kind::LParen && self.is_kw_at(1, "DEFAULT") && self.kind_at(2) == Kind::RParen {
            self.skip_parentheses()?;
            return Ok(PartitionValues::Default);
        }
        let values = self.parenthesized(|p| p.comma_separated(Self::list_value))?;
        Ok(PartitionValues::In(values))
    }

    /// One of VALUES IN. What begins with a parenthesis is a row, unless more than a comma stands behind it.
    fn list_value(&mut self) -> Result<ListValue> {
        if self.is_column_list() {
            self.advance();
            return self.partition_bounds().map(ListValue::Row);
        }
        if self.kind() == Kind::LParen {
            let before = self.position();
            if let Ok(row) = self.partition_bounds()
                && matches!(self.kind(), Kind::Comma | Kind::RParen)
            {
                return Ok(ListValue::Row(row));
            }
            self.rewind(before);
        }
        self.partition_bound().map(ListValue::One)
    }

    fn partition_bounds(&mut self) -> Result<Vec<PartitionBound>> {
        self.parenthesized(|p| p.comma_separated(Self::partition_bound))
    }

    fn partition_bound(&mut self) -> Result<PartitionBound> {
        if self.accept_kw("MAXVALUE") {
            return Ok(PartitionBound::MaxValue);
        }
        self.operators(BIT_OR).map(PartitionBound::Value)
    }

    fn partition_options(&mut self) -> Result<PartitionOptions> {
        const NAMES: &[&str] = &["ENGINE", "COMMENT", "MAX_ROWS", "MIN_ROWS", "TABLESPACE", "NODEGROUP"];
        let mut options = Vec::new();
        loop {
            if self.is_any_kw(&["STORAGE"]) && !self.is_kw_at(1, "ENGINE") {
                return self.fail();
            }
            self.accept_kw("STORAGE");
            let name = if self.accept_kws(&["DATA", "DIRECTORY"]) {
                "DATA DIRECTORY"
            } else if self.accept_kws(&["INDEX", "DIRECTORY"]) {
                "INDEX DIRECTORY"
            } else {
                match self.accept_any_kw(NAMES) {
                    Some(name) => name,
                    None => return Ok(options),
                }
            };
            self.accept(Kind::Eq);
            let value = match name {
                "MAX_ROWS" | "MIN_ROWS" | "NODEGROUP" => self.integer()?.to_string(),
                "COMMENT" | "DATA DIRECTORY" | "INDEX DIRECTORY" => self.string()?,
                "ENGINE" if self.kind() == Kind::String => self.string()?,
                _ => self.name()?,
            };
            options.push((name, value));
        }
    }

    // ALTER TABLE

    /// An operation that stands alone, if one stands here.
    pub(super) fn partition_operation(&mut self) -> Result<Option<PartitionOperation>> {
        const VERBS: &[&str] = &[
            "ADD",
            "DROP",
            "TRUNCATE",
            "COALESCE",
            "REORGANIZE",
            "EXCHANGE",
            "REBUILD",
            "ANALYZE",
            "CHECK",
            "OPTIMIZE",
            "REPAIR",
        ];
        if let Some(interval) = self.partition_interval()? {
            return Ok(Some(PartitionOperation::Interval(Some(interval))));
        }
        if self.is_kw_at(1, "INTERVAL")
            && let Some(verb) = self.accept_any_kw(&["APPLY", "REMOVE"])
        {
            self.advance();
            return Ok(Some(match verb {
                "APPLY" => PartitionOperation::ApplyInterval,
                _ => PartitionOperation::Interval(None),
            }));
        }
        if !self.is_kw_at(1, "PARTITION") {
            return Ok(None);
        }
        let Some(verb) = self.accept_any_kw(VERBS) else { return Ok(None) };
        self.advance();
        if !matches!(verb, "DROP" | "TRUNCATE" | "EXCHANGE") {
            let _ = self.accept_any_kw(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
        }
        let operation = match verb {
            "ADD" => {
                let if_not_exists = self.accept_kws(&["IF", "NOT", "EXISTS"]);
                if self.accept_kw("PARTITIONS") {
                    PartitionOperation::AddCount(self.integer()?)
                } else {
                    PartitionOperation::Add { definitions: self.partition_definitions()?, if_not_exists }
                }
            }
            "DROP" => {
                let if_exists = self.accept_kws(&["IF", "EXISTS"]);
                PartitionOperation::Drop { names: self.comma_separated(Self::name)?, if_exists }
            }
            "TRUNCATE" => PartitionOperation::Truncate(self.partition_names()?),
            "COALESCE" => PartitionOperation::Coalesce(self.integer()?),
            "REORGANIZE" if self.at_end() => PartitionOperation::Reorganize(None),
            "REORGANIZE" => {
                let names = self.comma_separated(Self::name)?;
                self.expect_kw("INTO")?;
                let into = self.partition_definitions()?;
                PartitionOperation::Reorganize(Some(Reorganization { names, into }))
            }
            "EXCHANGE" => {
                let partition = self.name()?;
                self.expect_kws(&["WITH", "TABLE"])?;
                let table = self.table_name()?;
                let validation = self.accept_any_kw(&["WITH", "WITHOUT"]);
                if validation.is_some() {
                    self.expect_kw("VALIDATION")?;
                }
                PartitionOperation::Exchange { partition, table, validates: validation != Some("WITHOUT") }
            }
            _ => {
                let (work, options): (_, &[&str]) = match verb {
                    "REBUILD" => (PartitionWork::Rebuild, &[]),
                    "ANALYZE" => (PartitionWork::Analyze, &[]),
                    "CHECK" => (PartitionWork::Check, &["QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED"]),
                    "OPTIMIZE" => (PartitionWork::Optimize, &[]),
                    _ => (PartitionWork::Repair, &["QUICK", "EXTENDED", "USE_FRM"]),
                };
                let names = self.partition_names()?;
                // How thorough it is makes no difference, as of CHECK TABLE and REPAIR TABLE.
                while self.accept_any_kw(options).is_some()
                    || work == PartitionWork::Check && self.accept_kws(&["FOR", "UPGRADE"])
                {}
                PartitionOperation::Maintain { work, names }
            }
        };
        Ok(Some(operation))
    }

    /// PARTITION BY or REMOVE PARTITIONING, which come last, if they stand here.
    pub(super) fn repartition(&mut self) -> Result<Option<PartitionOperation>> {
        if self.accept_kws(&["REMOVE", "PARTITIONING"]) {
            return Ok(Some(PartitionOperation::Remove));
        }
        if self.accept_kws(&["PARTITION", "BY"]) {
            return Ok(Some(PartitionOperation::By(Box::new(self.partition_clause()?))));
        }
        Ok(None)
    }

    fn partition_names(&mut self) -> Result<PartitionNames> {
        if self.accept_kw("ALL") {
            return Ok(PartitionNames::All);
        }
        self.comma_separated(Self::name).map(PartitionNames::Named)
    }
}

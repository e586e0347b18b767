//! Columns, keys and constraints, in the layout of MySQL's SHOW CREATE TABLE: types in lower case, the words around
//! them in upper case.

use super::{Print, Printer};
use crate::parse::RAUK_VERSION;
use crate::parse::ast::{
    Check, ColumnDefinition, ColumnOption, ColumnType, DefaultValue, Digits, IndexAlgorithm, IntegerSize,
    KeyDefinition, KeyPart, MatchKind, References, ReferentialAction, TableConstraint,
};
use std::fmt;

impl Printer<'_> {
    fn column_definition(&mut self, column: &ColumnDefinition) -> fmt::Result {
        self.typed_name(&column.name, &column.column_type, &column.options)
    }

    /// A name with a type and what belongs to it.
    pub(super) fn typed_name(&mut self, name: &str, column_type: &ColumnType, options: &[ColumnOption]) -> fmt::Result {
        self.name(name)?;
        self.text(" ")?;
        self.column_type(column_type)?;
        options.iter().try_for_each(|option| self.column_option(option))
    }

    fn column_type(&mut self, column_type: &ColumnType) -> fmt::Result {
        use ColumnType as T;
        match column_type {
            T::Integer { size, width, unsigned } => {
                let name = match size {
                    IntegerSize::Tiny => "tinyint",
                    IntegerSize::Small => "smallint",
                    IntegerSize::Medium => "mediumint",
                    IntegerSize::Int => "int",
                    IntegerSize::Big => "bigint",
                };
                self.with_length(name, *width)?;
                self.unsigned(*unsigned)
            }
            T::Boolean => self.text("tinyint(1)"),
            T::Decimal { digits, unsigned } => self.number("decimal", digits, *unsigned),
            T::Float { digits, unsigned } => self.number("float", digits, *unsigned),
            T::Double { digits, unsigned } => self.number("double", digits, *unsigned),
            T::Char(length) => self.with_length("char", *length),
            T::VarChar(length) => self.with_length("varchar", *length),
            T::TinyText => self.text("tinytext"),
            T::Text => self.text("text"),
            T::MediumText => self.text("mediumtext"),
            T::LongText => self.text("longtext"),
            T::Binary(length) => self.with_length("binary", *length),
            T::VarBinary(length) => self.with_length("varbinary", *length),
            T::TinyBlob => self.text("tinyblob"),
            T::Blob => self.text("blob"),
            T::MediumBlob => self.text("mediumblob"),
            T::LongBlob => self.text("longblob"),
            T::Date => self.text("date"),
            T::Time(digits) => self.with_length("time", *digits),
            T::DateTime(digits) => self.with_length("datetime", *digits),
            T::Timestamp(digits) => self.with_length("timestamp", *digits),
            T::Year(width) => self.with_length("year", *width),
            T::Json => self.text("json"),
            T::Bit(width) => self.with_length("bit", *width),
            T::Enum(members) => self.members("enum", members),
            T::Set(members) => self.members("set", members),
            T::Geometry(kind) => self.text(kind.type_name()),
            T::Other(name) => self.text(&name.to_ascii_lowercase()),
        }
    }

    fn unsigned(&mut self, unsigned: bool) -> fmt::Result {
        self.text(if unsigned { " unsigned" } else { "" })
    }

    fn number(&mut self, name: &str, digits: &Digits, unsigned: bool) -> fmt::Result {
        self.with_digits(name, digits.precision, digits.scale)?;
        self.unsigned(unsigned)
    }

    fn members(&mut self, name: &str, members: &[String]) -> fmt::Result {
        self.text(name)?;
        self.text("(")?;
        self.list(members, |p, member| p.string(member))?;
        self.text(")")
    }

    fn column_option(&mut self, option: &ColumnOption) -> fmt::Result {
        match option {
            ColumnOption::Null => self.text(" NULL"),
            ColumnOption::NotNull => self.text(" NOT NULL"),
            ColumnOption::Default(DefaultValue::Plain(value)) => self.clause(" DEFAULT ", Some(value)),
            ColumnOption::Default(DefaultValue::Expr(value)) => {
                self.clause(" DEFAULT (", Some(value))?;
                self.text(")")
            }
            ColumnOption::OnUpdate(value) => self.clause(" ON UPDATE ", Some(value)),
            ColumnOption::AutoIncrement => self.text(" AUTO_INCREMENT"),
            ColumnOption::Unique => self.text(" UNIQUE KEY"),
            ColumnOption::PrimaryKey => self.text(" PRIMARY KEY"),
            ColumnOption::Comment(text) => self.comment(text),
            ColumnOption::Charset(name) => {
                self.text(" CHARACTER SET ")?;
                self.charset(name)
            }
            ColumnOption::Collation(name) => {
                self.text(" COLLATE ")?;
                self.collation(name)
            }
            ColumnOption::BinaryCollation => self.text(" BINARY"),
            ColumnOption::References(references) => self.references(references),
            ColumnOption::Check(check) => {
                self.text(" ")?;
                self.check(check)
            }
            ColumnOption::Generated { expr, stored } => {
                self.clause(" GENERATED ALWAYS AS (", Some(expr))?;
                self.text(if *stored { ") STORED" } else { ") VIRTUAL" })
            }
            ColumnOption::Zerofill => self.text(" zerofill"),
            ColumnOption::Invisible => self.text(" /*!80023 INVISIBLE */"),
            ColumnOption::Storage(word) => write!(self.out, " /*!50606 STORAGE {word} */"),
            ColumnOption::Format(word) => write!(self.out, " /*!50606 COLUMN_FORMAT {word} */"),
            ColumnOption::Srid(id) => {
                self.clause(" /*!80003 SRID ", Some(id))?;
                self.text(" */")
            }
        }
    }

    fn comment(&mut self, text: &str) -> fmt::Result {
        self.text(" COMMENT ")?;
        self.string(text)
    }

    fn symbol(&mut self, symbol: Option<&str>) -> fmt::Result {
        let Some(symbol) = symbol else { return Ok(()) };
        self.text("CONSTRAINT ")?;
        self.name(symbol)?;
        self.text(" ")
    }

    fn check(&mut self, check: &Check) -> fmt::Result {
        self.symbol(check.name.as_deref())?;
        self.clause("CHECK (", Some(&check.expr))?;
        self.text(if check.enforced { ")" } else { ") /*!80016 NOT ENFORCED */" })
    }

    fn references(&mut self, references: &References) -> fmt::Result {
        self.text(" REFERENCES ")?;
        self.table_name(&references.table)?;
        self.column_names(&references.columns)?;
        self.text(match references.match_kind {
            None => "",
            Some(MatchKind::Full) => " MATCH FULL",
            Some(MatchKind::Partial) => " MATCH PARTIAL",
            Some(MatchKind::Simple) => " MATCH SIMPLE",
        })?;
        for (event, action) in [(" ON DELETE ", references.on_delete), (" ON UPDATE ", references.on_update)] {
            let action = match action {
                None => continue,
                Some(ReferentialAction::Restrict) => "RESTRICT",
                Some(ReferentialAction::Cascade) => "CASCADE",
                Some(ReferentialAction::SetNull) => "SET NULL",
                Some(ReferentialAction::SetDefault) => "SET DEFAULT",
                Some(ReferentialAction::NoAction) => "NO ACTION",
            };
            self.text(event)?;
            self.text(action)?;
        }
        Ok(())
    }

    fn constraint(&mut self, constraint: &TableConstraint) -> fmt::Result {
        match constraint {
            TableConstraint::PrimaryKey(key) => self.key("PRIMARY KEY", key),
            TableConstraint::Unique(key) => self.key("UNIQUE KEY", key),
            TableConstraint::Index(key) => self.key("KEY", key),
            TableConstraint::FullText(key) => self.key("FULLTEXT KEY", key),
            TableConstraint::Spatial(key) => self.key("SPATIAL KEY", key),
            TableConstraint::ForeignKey { symbol, index, columns, references } => {
                self.symbol(symbol.as_deref())?;
                self.text("FOREIGN KEY ")?;
                if let Some(index) = index {
                    self.name(index)?;
                    self.text(" ")?;
                }
                self.names(columns)?;
                self.references(references)
            }
            TableConstraint::Check(check) => self.check(check),
        }
    }

    fn key(&mut self, kind: &str, key: &KeyDefinition) -> fmt::Result {
        self.symbol(key.symbol.as_deref())?;
        self.text(kind)?;
        if let Some(name) = &key.name {
            self.text(" ")?;
            self.name(name)?;
        }
        self.text(" (")?;
        self.list(&key.parts, Self::key_part)?;
        self.text(match key.algorithm {
            None => ")",
            Some(IndexAlgorithm::BTree) => ") USING BTREE",
            Some(IndexAlgorithm::Hash) => ") USING HASH",
            Some(IndexAlgorithm::RTree) => ") USING RTREE",
        })?;
        if key.block_size > 0 {
            write!(self.out, " KEY_BLOCK_SIZE={}", key.block_size)?;
        }
        key.comment.as_ref().map_or(Ok(()), |text| self.comment(text))?;
        if let Some(parser) = &key.parser {
            self.text(" WITH PARSER ")?;
            self.name(parser)?;
        }
        self.text(if key.invisible { " /*!80000 INVISIBLE */" } else { "" })?;
        if key.global { write!(self.out, " /*!{RAUK_VERSION} GLOBAL */") } else { Ok(()) }
    }

    fn key_part(&mut self, part: &KeyPart) -> fmt::Result {
        let descending = match part {
            KeyPart::Column { name, prefix, descending } => {
                self.name(name)?;
                if let Some(length) = prefix {
                    write!(self.out, "({length})")?;
                }
                *descending
            }
            KeyPart::Expr { expr, descending } => {
                self.clause("(", Some(expr))?;
                self.text(")")?;
                *descending
            }
        };
        self.text(if descending { " DESC" } else { "" })
    }
}

impl Print for ColumnType {
    fn print(&self, printer: &mut Printer<'_>) -> fmt::Result {
        printer.column_type(self)
    }
}

impl Print for ColumnDefinition {
    fn print(&self, printer: &mut Printer<'_>) -> fmt::Result {
        printer.column_definition(self)
    }
}

impl Print for TableConstraint {
    fn print(&self, printer: &mut Printer<'_>) -> fmt::Result {
        printer.constraint(self)
    }
}

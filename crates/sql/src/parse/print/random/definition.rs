//! Random columns, keys and constraints.

use super::Choices;
use crate::parse::ast::*;

impl Choices<'_> {
    pub fn column_type(&mut self) -> ColumnType {
        use ColumnType as T;
        let precision = self.maybe(Self::number);
        let scale = if precision.is_some() { self.maybe(Self::number) } else { None };
        let (digits, unsigned) = (Digits { precision, scale }, self.flag());
        match self.pick(27) {
            0 => T::Integer {
                size: self.one_of(&[
                    IntegerSize::Int,
                    IntegerSize::Tiny,
                    IntegerSize::Small,
                    IntegerSize::Medium,
                    IntegerSize::Big,
                ]),
                width: precision,
                unsigned,
            },
            1 => T::Decimal { digits, unsigned },
            2 => T::Float { digits, unsigned },
            3 => T::Double { digits, unsigned },
            4 => T::Char(precision),
            5 => T::VarChar(precision),
            6 => T::TinyText,
            7 => T::Text,
            8 => T::MediumText,
            9 => T::LongText,
            10 => T::Binary(precision),
            11 => T::VarBinary(precision),
            12 => T::TinyBlob,
            13 => T::Blob,
            14 => T::MediumBlob,
            15 => T::LongBlob,
            16 => T::Date,
            17 => T::Time(precision),
            18 => T::DateTime(precision),
            19 => T::Timestamp(precision),
            20 => T::Year(precision),
            21 => T::Json,
            22 => T::Bit(precision),
            23 => T::Enum(self.some(1, Self::string)),
            24 => T::Set(self.some(1, Self::string)),
            25 => T::Geometry(self.one_of(&rauk_types::GeometryKind::ALL)),
            _ => T::Other(self.one_of(&["VECTOR", "INET6"]).into()),
        }
    }

    pub fn now(&mut self) -> Expr {
        Expr::call("now", self.some(0, |_| Expr::number("6")).into_iter().take(1).collect())
    }

    pub fn column_option(&mut self, depth: usize) -> ColumnOption {
        match self.pick(17) {
            0 => ColumnOption::Null,
            1 => ColumnOption::NotNull,
            2 => ColumnOption::Default(DefaultValue::Plain(match self.pick(4) {
                0 => Expr::Literal(Literal::Null),
                1 => Expr::text(self.string()),
                2 => {
                    let op = self.one_of(&[UnaryOp::Minus, UnaryOp::Plus]);
                    Expr::Unary { op, operand: Box::new(Expr::number("1")) }
                }
                _ => self.now(),
            })),
            3 => ColumnOption::Default(DefaultValue::Expr(self.expr(depth))),
            4 => ColumnOption::OnUpdate(self.now()),
            5 => ColumnOption::AutoIncrement,
            6 => ColumnOption::Unique,
            7 => ColumnOption::PrimaryKey,
            8 => ColumnOption::Comment(self.string()),
            9 => ColumnOption::Charset(self.charset()),
            10 => ColumnOption::Collation(self.charset()),
            11 => ColumnOption::Check(self.check(depth)),
            12 => ColumnOption::Generated { expr: self.expr(depth), stored: self.flag() },
            13 => ColumnOption::Invisible,
            14 => ColumnOption::Storage(self.one_of(&["DISK", "MEMORY"])),
            15 => ColumnOption::Format(self.one_of(&["FIXED", "DYNAMIC"])),
            _ => ColumnOption::Srid(Expr::number("0")),
        }
    }

    pub fn check(&mut self, depth: usize) -> Check {
        Check { name: self.maybe(Self::name), expr: self.expr(depth), enforced: self.flag() }
    }

    pub fn references(&mut self) -> References {
        use ReferentialAction::*;
        let action = |c: &mut Self| c.maybe(|c| c.one_of(&[Restrict, Cascade, SetNull, SetDefault, NoAction]));
        References {
            table: self.table_name(),
            columns: self.names(0),
            match_kind: self.maybe(|c| c.one_of(&[MatchKind::Full, MatchKind::Partial, MatchKind::Simple])),
            on_delete: action(self),
            on_update: action(self),
        }
    }

    pub fn constraint(&mut self, depth: usize) -> TableConstraint {
        let kind = self.pick(7);
        match kind {
            0 => TableConstraint::Check(self.check(depth)),
            1 => TableConstraint::ForeignKey {
                symbol: self.maybe(Self::name),
                index: self.maybe(Self::name),
                columns: self.names(1),
                references: self.references(),
            },
            2 => TableConstraint::PrimaryKey(self.key(true, depth)),
            3 => TableConstraint::Unique(self.key(true, depth)),
            4 => TableConstraint::Index(self.key(false, depth)),
            5 => TableConstraint::FullText(self.key(false, depth)),
            _ => TableConstraint::Spatial(self.key(false, depth)),
        }
    }

    pub fn key(&mut self, has_symbol: bool, depth: usize) -> KeyDefinition {
        KeyDefinition {
            invisible: false,
            global: self.flag(),
            block_size: self.maybe(Self::number).unwrap_or(0),
            symbol: if has_symbol { self.maybe(Self::name) } else { None },
            name: self.maybe(Self::name),
            algorithm: self.maybe(|c| c.one_of(&[IndexAlgorithm::BTree, IndexAlgorithm::Hash, IndexAlgorithm::RTree])),
            parts: self.some(1, |c| match c.pick(3) {
                2 => KeyPart::Expr { expr: c.expr(depth), descending: c.flag() },
                _ => KeyPart::Column { name: c.name(), prefix: c.maybe(Self::number), descending: c.flag() },
            }),
            comment: self.maybe(Self::string),
            parser: None,
        }
    }
}

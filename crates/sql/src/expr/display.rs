//! Expressions as people read them: EXPLAIN, and the texts of error 1690.
//!
//! What a client wrote is printed from the syntax tree, with MySQL's parentheses and backquotes ([`readable`]). A bound expression has no
//! names any more: its columns print as `#table.column`, unless whoever prints it knows their names ([`Named`]).

use super::{AskedElements, CompareOp, Expr, ExprKind, Subquery, SubqueryId, SubqueryTest, fulltext};
use crate::parse::ast;
use crate::parse::print::Bounded;
use rauk_types::format::append_text;
use rauk_types::{DataType, Value};
use std::fmt;

/// Levels of an expression that are printed.
const SHOWN: usize = 32;

/// MySQL's print of an expression: `(`a` + 1)`. What lies deep in it is printed as `...`.
pub fn readable(expr: &ast::Expr) -> String {
    Bounded(expr, SHOWN).to_string()
}

fn literal(value: &Value, ty: &DataType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match value {
        Value::Null => f.write_str("NULL"),
        Value::Str(text) => write!(f, "'{}'", text.replace('\'', "''")),
        Value::Json(_) => {
            let mut text = Vec::new();
            append_text(value.as_ref(), ty, &mut text);
            write!(f, "cast('{}' as json)", String::from_utf8_lossy(&text).replace('\'', "''"))
        }
        Value::Bytes(bytes) => {
            f.write_str("0x")?;
            bytes.iter().try_for_each(|b| write!(f, "{b:02X}"))
        }
        other => {
            let mut out = Vec::new();
            append_text(other.as_ref(), ty, &mut out);
            let text = String::from_utf8_lossy(&out);
            if ty.is_temporal() { write!(f, "'{text}'") } else { f.write_str(&text) }
        }
    }
}

impl fmt::Display for CompareOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CompareOp::Eq => "=",
            CompareOp::NullSafeEq => "<=>",
            CompareOp::Ne => "<>",
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Gt => ">",
            CompareOp::Ge => ">=",
        })
    }
}

/// What columns and parameters are called.
pub(crate) trait Names {
    fn column(&self, table: usize, column: usize) -> String;
    fn group_value(&self, number: usize) -> String;
    fn parameter(&self, index: usize) -> String;
    fn subquery(&self, id: SubqueryId) -> String;
}

/// Numbers in the place of names.
struct Numbers;

impl Names for Numbers {
    fn column(&self, table: usize, column: usize) -> String {
        format!("#{table}.{column}")
    }

    fn group_value(&self, number: usize) -> String {
        format!("#aggregate.{number}")
    }

    fn parameter(&self, index: usize) -> String {
        format!("?{index}")
    }

    fn subquery(&self, id: SubqueryId) -> String {
        (id.0 + 2).to_string()
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Named { expr: self, names: &Numbers })
    }
}

/// An expression whose columns have names.
pub(crate) struct Named<'a> {
    pub expr: &'a Expr,
    pub names: &'a dyn Names,
}

impl<'a> Named<'a> {
    fn of<'e>(&self, expr: &'e Expr) -> Named<'e>
    where
        'a: 'e,
    {
        Named { expr, names: self.names }
    }
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expr = self.expr;
        let of = |expr| Named { expr, names: self.names };
        let not = |negated: bool| if negated { "not " } else { "" };
        match &expr.kind {
            ExprKind::Literal(value) => literal(value, &expr.ty, f),
            ExprKind::Column { table, column } => f.write_str(&self.names.column(*table, *column)),
            ExprKind::GroupValue(number) => f.write_str(&self.names.group_value(*number)),
            ExprKind::Reference(column) => write!(f, "#{}", column.0),
            ExprKind::Parameter(index) => f.write_str(&self.names.parameter(*index)),
            ExprKind::Subquery(subquery) => self.subquery(subquery, f),
            ExprKind::Compare { op, left, right, .. } => write!(f, "({} {op} {})", of(left), of(right)),
            ExprKind::RowOrder { op, parts } => {
                f.write_str("((")?;
                self.separated(parts.iter().map(|part| &part.left), f)?;
                write!(f, ") {op} (")?;
                self.separated(parts.iter().map(|part| &part.right), f)?;
                f.write_str("))")
            }
            ExprKind::RowIn(row_in) => {
                f.write_str("((")?;
                self.separated(row_in.left.iter(), f)?;
                write!(f, ") {}in (", not(row_in.negated))?;
                for (number, row) in row_in.rows.iter().enumerate() {
                    f.write_str(if number > 0 { ",(" } else { "(" })?;
                    self.separated(row.iter().map(|(value, _)| value), f)?;
                    f.write_str(")")?;
                }
                f.write_str("))")
            }
            ExprKind::NullIf { left, right, .. } => write!(f, "nullif({},{})", of(left), of(right)),
            ExprKind::And(left, right) => write!(f, "({} and {})", of(left), of(right)),
            ExprKind::Or(left, right) => write!(f, "({} or {})", of(left), of(right)),
            ExprKind::Xor(left, right) => write!(f, "({} xor {})", of(left), of(right)),
            ExprKind::Not(expr) => write!(f, "(not({}))", of(expr)),
            ExprKind::IsNull { expr, negated } => write!(f, "({} is {}null)", of(expr), not(*negated)),
            ExprKind::IsTruth { expr, truth, negated } => {
                write!(f, "({} is {}{truth})", of(expr), not(*negated))
            }
            ExprKind::Between { expr, negated, low, high, .. } => {
                write!(f, "({} {}between {} and {})", of(expr), not(*negated), of(low), of(high))
            }
            ExprKind::InList { expr, negated, list, .. } => {
                write!(f, "({} {}in (", of(expr), not(*negated))?;
                self.separated(list.iter().map(|(item, _)| item), f)?;
                f.write_str("))")
            }
            ExprKind::Like(like) => {
                write!(f, "({} {}like {})", of(&like.expr), not(like.negated), of(&like.pattern))
            }
            ExprKind::Regexp(regexp) => {
                write!(f, "({} {}regexp {})", of(&regexp.expr), not(regexp.negated), of(&regexp.pattern))
            }
            ExprKind::Arithmetic { op, left, right, .. } => {
                write!(f, "({} {} {})", of(left), op.symbol(), of(right))
            }
            ExprKind::Negate { expr, .. } => write!(f, "-({})", of(expr)),
            ExprKind::Bit { op, left, right } => {
                write!(f, "({} {} {})", of(left), op.symbol(), of(right))
            }
            ExprKind::BitNot(expr) => write!(f, "~({})", of(expr)),
            ExprKind::Case { operand, branches, otherwise } => {
                f.write_str("(case")?;
                if let Some(operand) = operand {
                    write!(f, " {}", of(operand))?;
                }
                for branch in branches {
                    write!(f, " when {} then {}", of(&branch.when), of(&branch.then))?;
                }
                if let Some(otherwise) = otherwise {
                    write!(f, " else {}", of(otherwise))?;
                }
                f.write_str(" end)")
            }
            ExprKind::Coalesce(items) => {
                f.write_str("coalesce(")?;
                self.separated(items.iter(), f)?;
                f.write_str(")")
            }
            ExprKind::Cast(inner) => write!(f, "cast({} as {:?})", of(inner), expr.ty.kind),
            ExprKind::Deep(deep) => deep.with(|inner| write!(f, "{}", self.of(inner))),
            ExprKind::Collate(inner) => write!(f, "({} collate {})", of(inner), expr.ty.collation.name()),
            ExprKind::DateAdd { date, amount, unit, subtract } => {
                let sign = if *subtract { '-' } else { '+' };
                write!(f, "({} {sign} interval {} {})", of(date), of(amount), unit.name())
            }
            ExprKind::Function { function, arguments } => {
                if let Some(asked) = AskedElements::of(expr) {
                    return write!(f, "{}", of(asked.test));
                }
                write!(f, "{}(", function.name.to_ascii_lowercase())?;
                // Behind the arguments of a function that waits, and of RAND, stands the number of the call.
                let shown = match function.name {
                    "RAND" => 1,
                    _ if function.waits => arguments.len().saturating_sub(1),
                    _ => usize::MAX,
                };
                // Before the columns of MATCH stands the number of its search.
                let before = usize::from(fulltext::called(expr).is_some());
                self.separated(arguments.iter().take(shown).skip(before), f)?;
                f.write_str(")")
            }
            ExprKind::UserVariable(name) => write!(f, "@{name}"),
            ExprKind::AssignVariable { name, value } => write!(f, "(@{name}:={})", of(value)),
            ExprKind::SystemVariable { name, .. } => write!(f, "@@{name}"),
        }
    }
}

impl Named<'_> {
    fn subquery(&self, subquery: &Subquery, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = |left: &[Expr], f: &mut fmt::Formatter<'_>| match left {
            [one] => write!(f, "{}", self.of(one)),
            several => {
                f.write_str("(")?;
                self.separated(several.iter(), f)?;
                f.write_str(")")
            }
        };
        f.write_str("(")?;
        match &subquery.test {
            SubqueryTest::Scalar => {}
            SubqueryTest::Exists => f.write_str("exists ")?,
            SubqueryTest::Quantified { left: row, op, all, .. } => {
                left(row, f)?;
                match (op, all) {
                    (CompareOp::Eq, false) => f.write_str(" in ")?,
                    (CompareOp::Ne, true) => f.write_str(" not in ")?,
                    (op, all) => write!(f, " {op} {} ", if *all { "all" } else { "any" })?,
                }
            }
            SubqueryTest::Row { left: row, op, .. } => {
                left(row, f)?;
                write!(f, " {op} ")?;
            }
        }
        write!(f, "(select #{}))", self.names.subquery(subquery.id))
    }

    fn separated<'e>(&self, items: impl Iterator<Item = &'e Expr>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, item) in items.enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{}", self.of(item))?;
        }
        Ok(())
    }
}

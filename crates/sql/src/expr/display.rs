//! Expressions as people read them: EXPLAIN, and the texts of error 1690.
//!
//! What a client wrote is printed from the syntax tree, with MySQL's parentheses and backquotes ([`readable`]). A bound expression has no
//! names any more: its columns print as `#table.column`.

use super::{ArithmeticOp, BitOp, CompareOp, Expr, ExprKind, Subquery, SubqueryTest};
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

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = |negated: bool| if negated { "not " } else { "" };
        match &self.kind {
            ExprKind::Literal(value) => literal(value, &self.ty, f),
            ExprKind::Column { table: super::AGGREGATES, column } => write!(f, "#aggregate.{column}"),
            ExprKind::Column { table, column } => write!(f, "#{table}.{column}"),
            ExprKind::Reference(column) => write!(f, "#{}", column.0),
            ExprKind::Parameter(index) => write!(f, "?{index}"),
            ExprKind::Subquery(subquery) => subquery_text(subquery, f),
            ExprKind::Compare { op, left, right, .. } => write!(f, "({left} {op} {right})"),
            ExprKind::RowOrder { op, parts } => {
                f.write_str("((")?;
                separated(parts.iter().map(|part| &part.left), f)?;
                write!(f, ") {op} (")?;
                separated(parts.iter().map(|part| &part.right), f)?;
                f.write_str("))")
            }
            ExprKind::NullIf { left, right, .. } => write!(f, "nullif({left},{right})"),
            ExprKind::And(left, right) => write!(f, "({left} and {right})"),
            ExprKind::Or(left, right) => write!(f, "({left} or {right})"),
            ExprKind::Xor(left, right) => write!(f, "({left} xor {right})"),
            ExprKind::Not(expr) => write!(f, "(not({expr}))"),
            ExprKind::IsNull { expr, negated } => write!(f, "({expr} is {}null)", not(*negated)),
            ExprKind::IsTruth { expr, truth, negated } => write!(f, "({expr} is {}{truth})", not(*negated)),
            ExprKind::Between { expr, negated, low, high, .. } => {
                write!(f, "({expr} {}between {low} and {high})", not(*negated))
            }
            ExprKind::InList { expr, negated, list, .. } => {
                write!(f, "({expr} {}in (", not(*negated))?;
                separated(list.iter().map(|(item, _)| item), f)?;
                f.write_str("))")
            }
            ExprKind::Like(like) => write!(f, "({} {}like {})", like.expr, not(like.negated), like.pattern),
            ExprKind::Regexp(regexp) => {
                write!(f, "({} {}regexp {})", regexp.expr, not(regexp.negated), regexp.pattern)
            }
            ExprKind::Arithmetic { op, left, right, .. } => {
                let op = match op {
                    ArithmeticOp::Add => "+",
                    ArithmeticOp::Subtract => "-",
                    ArithmeticOp::Multiply => "*",
                    ArithmeticOp::Divide => "/",
                    ArithmeticOp::IntegerDivide => "DIV",
                    ArithmeticOp::Modulo => "%",
                };
                write!(f, "({left} {op} {right})")
            }
            ExprKind::Negate { expr, .. } => write!(f, "-({expr})"),
            ExprKind::Bit { op, left, right } => {
                let op = match op {
                    BitOp::And => "&",
                    BitOp::Or => "|",
                    BitOp::Xor => "^",
                    BitOp::ShiftLeft => "<<",
                    BitOp::ShiftRight => ">>",
                };
                write!(f, "({left} {op} {right})")
            }
            ExprKind::BitNot(expr) => write!(f, "~({expr})"),
            ExprKind::Case { operand, branches, otherwise } => {
                f.write_str("(case")?;
                if let Some(operand) = operand {
                    write!(f, " {operand}")?;
                }
                for branch in branches {
                    write!(f, " when {} then {}", branch.when, branch.then)?;
                }
                if let Some(otherwise) = otherwise {
                    write!(f, " else {otherwise}")?;
                }
                f.write_str(" end)")
            }
            ExprKind::Coalesce(items) => {
                f.write_str("coalesce(")?;
                separated(items.iter(), f)?;
                f.write_str(")")
            }
            ExprKind::Cast(expr) => write!(f, "cast({expr} as {:?})", self.ty.kind),
            ExprKind::Deep(deep) => deep.with(|expr| expr.fmt(f)),
            ExprKind::Collate(expr) => write!(f, "({expr} collate {})", self.ty.collation.name()),
            ExprKind::DateAdd { date, amount, unit, subtract } => {
                write!(f, "({date} {} interval {amount} {})", if *subtract { '-' } else { '+' }, unit.name())
            }
            ExprKind::Function { function, arguments } => {
                write!(f, "{}(", function.name.to_ascii_lowercase())?;
                separated(arguments.iter(), f)?;
                f.write_str(")")
            }
            ExprKind::UserVariable(name) => write!(f, "@{name}"),
            ExprKind::AssignVariable { name, value } => write!(f, "(@{name}:={value})"),
            ExprKind::SystemVariable { name, .. } => write!(f, "@@{name}"),
        }
    }
}

fn subquery_text(subquery: &Subquery, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let left = |left: &[Expr], f: &mut fmt::Formatter<'_>| match left {
        [one] => write!(f, "{one}"),
        several => {
            f.write_str("(")?;
            separated(several.iter(), f)?;
            f.write_str(")")
        }
    };
    let number = subquery.id.0 + 2;
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
    write!(f, "(select #{number}))")
}

fn separated<'e>(items: impl Iterator<Item = &'e Expr>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (i, item) in items.enumerate() {
        if i > 0 {
            f.write_str(",")?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

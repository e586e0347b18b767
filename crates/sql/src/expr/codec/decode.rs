//! A typed expression out of the form that travels, for the rows of one table.

use super::super::bind::{boolean, row_keys, sorted_list};
use super::super::functions;
use super::super::pattern::{LikePattern, RegexpPattern};
use super::super::{CaseBranch, Comparison, Deep, Expr, ExprKind, Like, Regexp, RowIn, RowPart, types};
use super::{ARITHMETIC, BITS, COMPARISONS, DATE_SUB, ROW_ORDERS, TRUTHS, by_name, collation, comparison};
use crate::parse::ast::Unit;
use rauk_types::{TableSchema, Value};
use rauk_wire::expression::{Expression, Type};

/// The columns of the table are those of table 0. `None`: something of it is not known, or does not fit.
pub(crate) fn decode(expression: &Expression, table: &TableSchema) -> Option<Expr> {
    Decoder { table }.decode(expression, 1)
}

struct Decoder<'a> {
    table: &'a TableSchema,
}

/// The value of an attribute.
fn attribute(expression: &Expression) -> Option<&Value> {
    match expression {
        Expression::Literal { value, ty: None } => Some(value),
        _ => None,
    }
}

fn text(expression: &Expression) -> Option<&str> {
    match attribute(expression)? {
        Value::Str(text) => Some(text),
        _ => None,
    }
}

fn compared(expression: &Expression) -> Option<Comparison> {
    comparison(text(expression)?)
}

/// A low tree of a chain: both sides are evaluated from left to right, as in a chain.
fn tree(mut parts: Vec<Expr>, join: fn(Box<Expr>, Box<Expr>) -> ExprKind) -> Option<Expr> {
    if parts.len() < 2 {
        return parts.pop();
    }
    let right = parts.split_off(parts.len().div_ceil(2));
    let (left, right) = (tree(parts, join)?, tree(right, join)?);
    let nullable = left.nullable || right.nullable;
    Some(boolean(join(Box::new(left), Box::new(right)), nullable))
}

impl Decoder<'_> {
    /// `level`: how deep it stands, from 1.
    fn decode(&self, expression: &Expression, level: usize) -> Option<Expr> {
        let expr = match expression {
            Expression::Literal { value, ty: Some(ty) } => typed(ExprKind::Literal(value.clone()), ty),
            Expression::Column { column, ty } => {
                let known = self.table.columns.get(usize::from(*column))?;
                (known.ty == ty.ty).then(|| typed(ExprKind::Column { table: 0, column: usize::from(*column) }, ty))?
            }
            Expression::And(parts) => tree(self.all(parts, level)?, ExprKind::And)?,
            Expression::Or(parts) => tree(self.all(parts, level)?, ExprKind::Or)?,
            Expression::Not(part) => {
                let part = self.decode(part, level + 1)?;
                let nullable = part.nullable;
                boolean(ExprKind::Not(Box::new(part)), nullable)
            }
            Expression::Call { name, ty, arguments } => typed(self.call(name, ty, arguments, level)?, ty),
            // An attribute is no operand; a test of a native filter has no types.
            Expression::Literal { ty: None, .. } | Expression::Test(_) => return None,
        };
        // Evaluation of what is high asks for stack.
        Some(if level.is_multiple_of(Deep::LEVELS) { Deep::mark(expr) } else { expr })
    }

    fn all(&self, parts: &[Expression], level: usize) -> Option<Vec<Expr>> {
        parts.iter().map(|part| self.decode(part, level + 1)).collect()
    }

    fn call(&self, name: &str, ty: &Type, arguments: &[Expression], level: usize) -> Option<ExprKind> {
        let operand = |expression: &Expression| self.decode(expression, level + 1).map(Box::new);
        if let Some(kind) = self.binary(name, arguments, level) {
            return kind;
        }
        Some(match (name, arguments) {
            ("XOR", [left, right]) => ExprKind::Xor(operand(left)?, operand(right)?),
            ("IS NULL" | "IS NOT NULL", [expr]) => {
                ExprKind::IsNull { expr: operand(expr)?, negated: name == "IS NOT NULL" }
            }
            ("BETWEEN" | "NOT BETWEEN", [expr, low, low_by, high, high_by]) => ExprKind::Between {
                expr: operand(expr)?,
                negated: name == "NOT BETWEEN",
                low: operand(low)?,
                low_by: compared(low_by)?,
                high: operand(high)?,
                high_by: compared(high_by)?,
            },
            ("IN" | "NOT IN", [expr, by, items @ ..]) if !items.is_empty() => {
                let by = compared(by)?;
                let list = self.all(items, level)?.into_iter().map(|item| (item, by)).collect();
                in_list(operand(expr)?, name == "NOT IN", list)
            }
            ("IN EACH" | "NOT IN EACH", [expr, items @ ..]) if !items.is_empty() && items.len().is_multiple_of(2) => {
                let item = |pair: &[Expression]| Some((self.decode(&pair[0], level + 1)?, compared(&pair[1])?));
                let list = items.chunks_exact(2).map(item).collect::<Option<_>>()?;
                in_list(operand(expr)?, name == "NOT IN EACH", list)
            }
            ("LIKE" | "NOT LIKE", [expr, pattern, escape, by]) => {
                let escape = match attribute(escape)? {
                    Value::Null => None,
                    Value::Str(text) if text.chars().nth(1).is_none() => Some(text.chars().next()?),
                    _ => return None,
                };
                let (expr, pattern) = (*operand(expr)?, *operand(pattern)?);
                let compiled = match &pattern.kind {
                    ExprKind::Literal(Value::Str(text)) => Some(LikePattern::new(text, escape)),
                    _ => None,
                };
                let (negated, collation) = (name == "NOT LIKE", collation(text(by)?)?);
                ExprKind::Like(Box::new(Like { expr, pattern, escape, negated, collation, compiled }))
            }
            ("REGEXP" | "NOT REGEXP", [expr, pattern, any_case]) => {
                let case_insensitive = match attribute(any_case)? {
                    Value::Int(0) => false,
                    Value::Int(1) => true,
                    _ => return None,
                };
                let (expr, pattern) = (*operand(expr)?, *operand(pattern)?);
                let ExprKind::Literal(Value::Str(text)) = &pattern.kind else { return None };
                let compiled = Some(RegexpPattern::bounded(text, case_insensitive)?);
                let negated = name == "NOT REGEXP";
                ExprKind::Regexp(Box::new(Regexp { expr, pattern, negated, case_insensitive, compiled }))
            }
            ("ROW IN" | "NOT ROW IN" | "ROW IN EACH" | "NOT ROW IN EACH", [width, rest @ ..]) => {
                let Value::Int(width) = attribute(width)? else { return None };
                let width = usize::try_from(*width).ok().filter(|width| (1..=rest.len()).contains(width))?;
                let (left, rest) = rest.split_at(width);
                let left = self.all(left, level)?;
                let rows = self.rows(width, name.ends_with("EACH"), rest, level)?;
                // What they take is in proportion to what came.
                let keys = row_keys(&left, &rows, &mut |_| Ok(())).ok()?;
                ExprKind::RowIn(Box::new(RowIn { left, negated: name.starts_with("NOT"), rows, keys }))
            }
            ("NEGATE", [expr, printed]) => ExprKind::Negate { expr: operand(expr)?, text: text(printed)?.into() },
            ("~", [expr]) => ExprKind::BitNot(operand(expr)?),
            ("CASE", arguments) => {
                let branch = |pair: &[Expression]| {
                    let (when, then) = (self.decode(&pair[0], level + 1)?, self.decode(&pair[1], level + 1)?);
                    Some(CaseBranch { when, by: Comparison::Integer, then })
                };
                let pairs = arguments.chunks_exact(2);
                let otherwise = pairs.remainder().first().map(operand);
                let branches = pairs.map(branch).collect::<Option<_>>()?;
                ExprKind::Case { operand: None, branches, otherwise: transposed(otherwise)? }
            }
            ("CASE OF", [of, arguments @ ..]) => {
                let branch = |part: &[Expression]| {
                    let (when, then) = (self.decode(&part[0], level + 1)?, self.decode(&part[2], level + 1)?);
                    Some(CaseBranch { when, by: compared(&part[1])?, then })
                };
                let parts = arguments.chunks_exact(3);
                let otherwise = match parts.remainder() {
                    [] => None,
                    [otherwise] => Some(operand(otherwise)?),
                    _ => return None,
                };
                let branches = parts.map(branch).collect::<Option<_>>()?;
                ExprKind::Case { operand: Some(operand(of)?), branches, otherwise }
            }
            ("COALESCE", items) => ExprKind::Coalesce(self.all(items, level)?),
            ("NULLIF", [left, right, by]) => {
                ExprKind::NullIf { by: compared(by)?, left: operand(left)?, right: operand(right)? }
            }
            ("CAST", [expr]) => ExprKind::Cast(operand(expr)?),
            ("COLLATE", [expr]) => ExprKind::Collate(operand(expr)?),
            ("DATE_ADD" | DATE_SUB, [date, amount, unit]) => {
                let unit = Unit::from_name(text(unit)?)?;
                ExprKind::DateAdd { date: operand(date)?, amount: operand(amount)?, unit, subtract: name == DATE_SUB }
            }
            (name, arguments) => {
                let function = functions::find(name).filter(|function| function.bounded && function.name == name)?;
                let count = arguments.len();
                let fits = count >= usize::from(function.min)
                    && (count <= usize::from(function.max) || function.max == u8::MAX)
                    && count.is_multiple_of(usize::from(function.step));
                if !fits || types::Class::of(&ty.ty) == types::Class::Null {
                    return None;
                }
                ExprKind::Function { function, arguments: self.all(arguments, level)? }
            }
        })
    }

    /// The rows of IN, each value with how it compares.
    fn rows(
        &self,
        width: usize,
        each: bool,
        expressions: &[Expression],
        level: usize,
    ) -> Option<Vec<Vec<(Expr, Comparison)>>> {
        let (values, by): (Vec<&Expression>, Vec<&Expression>) = match each {
            true => expressions.chunks(2).map(|pair| Some((&pair[0], pair.get(1)?))).collect::<Option<_>>()?,
            false => {
                let (by, values) = expressions.split_at_checked(width)?;
                (values.iter().collect(), by.iter().cycle().take(values.len()).collect())
            }
        };
        if values.is_empty() || !values.len().is_multiple_of(width) {
            return None;
        }
        let value = |(value, by): (&&Expression, &&Expression)| Some((self.decode(value, level + 1)?, compared(by)?));
        let all: Vec<(Expr, Comparison)> = values.iter().zip(&by).map(value).collect::<Option<_>>()?;
        let mut all = all.into_iter();
        Some((0..values.len() / width).map(|_| all.by_ref().take(width).collect()).collect())
    }

    /// An operator of two operands, or of one; `None`: the name is not one of theirs.
    fn binary(&self, name: &str, arguments: &[Expression], level: usize) -> Option<Option<ExprKind>> {
        let operand = |expression: &Expression| self.decode(expression, level + 1).map(Box::new);
        if let Some(op) = by_name(&ROW_ORDERS, name) {
            let part = |part: &[Expression]| {
                let [left, right, by] = part else { return None };
                let (left, right) = (self.decode(left, level + 1)?, self.decode(right, level + 1)?);
                Some(RowPart { by: compared(by)?, left, right })
            };
            let parts: Option<Vec<RowPart>> = arguments.chunks(3).map(part).collect();
            return Some(parts.filter(|parts| !parts.is_empty()).map(|parts| ExprKind::RowOrder { op, parts }));
        }
        if let Some(op) = by_name(&COMPARISONS, name) {
            return Some(match arguments {
                [left, right, by] => {
                    let compare = || {
                        let (left, right) = (operand(left)?, operand(right)?);
                        Some(ExprKind::Compare { op, by: compared(by)?, left, right })
                    };
                    compare()
                }
                _ => None,
            });
        }
        if let Some(op) = by_name(&ARITHMETIC, name) {
            return Some(match arguments {
                [left, right, printed] => {
                    let calculate = || {
                        let (left, right) = (operand(left)?, operand(right)?);
                        Some(ExprKind::Arithmetic { op, left, right, text: text(printed)?.into() })
                    };
                    calculate()
                }
                _ => None,
            });
        }
        if let Some(op) = by_name(&BITS, name) {
            return Some(match arguments {
                [left, right] => {
                    let both = || Some(ExprKind::Bit { op, left: operand(left)?, right: operand(right)? });
                    both()
                }
                _ => None,
            });
        }
        let (truth, negated) = by_name(&TRUTHS, name)?;
        Some(match arguments {
            [expr] => operand(expr).map(|expr| ExprKind::IsTruth { expr, truth, negated }),
            _ => None,
        })
    }
}

fn typed(kind: ExprKind, ty: &Type) -> Expr {
    Expr { kind, ty: ty.ty, nullable: ty.nullable, coercibility: ty.coercibility }
}

fn in_list(expr: Box<Expr>, negated: bool, list: Vec<(Expr, Comparison)>) -> ExprKind {
    let sorted = sorted_list(&list);
    ExprKind::InList { expr, negated, list, sorted }
}

/// `None`: there is one, and it is not known.
fn transposed<T>(part: Option<Option<T>>) -> Option<Option<T>> {
    match part {
        None => Some(None),
        Some(part) => part.map(Some),
    }
}

//! A typed expression in the form that travels.

use super::super::functions;
use super::super::pattern::RegexpPattern;
use super::super::{AskedElements, CaseBranch, Columns, Comparison, Expr, ExprKind, Like, Regexp, RowIn, RowPart};
use super::{ARITHMETIC, BITS, COMPARISONS, DATE_SUB, ROW_ORDERS, TRUTHS, comparison_name, name_of};
use rauk_types::Value;
use rauk_wire::expression::{Expression, Type};

/// What stands for the values that an expression reads.
pub(crate) struct Inputs<'a> {
    /// The table whose rows the receiver has.
    pub table: usize,
    pub parameters: &'a [Value],
    /// The rows of the other tables; `None`: they are not known.
    pub others: Option<&'a dyn Columns>,
}

/// `None`: it is not bounded, or has no such form.
pub(crate) fn encode(expr: &Expr, inputs: &Inputs<'_>) -> Option<Expression> {
    let encoded = inputs.encode(expr)?;
    encoded.is_within_bounds().then_some(encoded)
}

fn type_of(expr: &Expr) -> Type {
    Type { ty: expr.ty, nullable: expr.nullable, coercibility: expr.coercibility }
}

fn attribute(by: Comparison) -> Expression {
    Expression::attribute(comparison_name(by))
}

fn negated(negated: bool, name: &str) -> String {
    if negated { format!("NOT {name}") } else { name.to_string() }
}

impl Inputs<'_> {
    fn encode(&self, expr: &Expr) -> Option<Expression> {
        // Types with members do not travel, nor do geometries.
        if expr.ty.has_members() || expr.ty.is_geometry() {
            return None;
        }
        let ty = type_of(expr);
        let literal = |value: Value| Some(Expression::Literal { value, ty: Some(ty) });
        let call =
            |name: &str, arguments: Vec<Expression>| Some(Expression::Call { name: name.to_string(), ty, arguments });
        match &expr.kind {
            ExprKind::Literal(value) => literal(value.clone()),
            ExprKind::Parameter(index) => literal(self.parameters.get(*index).cloned().unwrap_or_default()),
            ExprKind::Column { table, column } if *table == self.table => {
                Some(Expression::Column { column: u16::try_from(*column).ok()?, ty })
            }
            ExprKind::Column { table, column } => literal(self.others?.column(*table, *column).to_owned()),
            ExprKind::Deep(deep) => deep.with(|expr| self.encode(expr)),
            ExprKind::And(..) => self.chain(expr).map(Expression::And),
            ExprKind::Or(..) => self.chain(expr).map(Expression::Or),
            ExprKind::Not(part) => Some(Expression::Not(Box::new(self.encode(part)?))),
            ExprKind::Xor(left, right) => call("XOR", vec![self.encode(left)?, self.encode(right)?]),
            ExprKind::Compare { op, by, left, right } => {
                call(name_of(&COMPARISONS, op), vec![self.encode(left)?, self.encode(right)?, attribute(*by)])
            }
            ExprKind::IsNull { expr, negated } => {
                call(if *negated { "IS NOT NULL" } else { "IS NULL" }, vec![self.encode(expr)?])
            }
            ExprKind::IsTruth { expr, truth, negated } => {
                call(name_of(&TRUTHS, &(*truth, *negated)), vec![self.encode(expr)?])
            }
            ExprKind::Between { expr, negated: not, low, low_by, high, high_by } => {
                let (low_by, high_by) = (attribute(*low_by), attribute(*high_by));
                let arguments = vec![self.encode(expr)?, self.encode(low)?, low_by, self.encode(high)?, high_by];
                call(&negated(*not, "BETWEEN"), arguments)
            }
            ExprKind::InList { expr, negated: not, list, .. } => {
                let (name, arguments) = self.in_list(expr, list)?;
                call(&negated(*not, name), arguments)
            }
            ExprKind::Like(like) => {
                let Like { expr, pattern, escape, negated: not, collation, .. } = &**like;
                let escape = escape.map_or(Value::Null, |escape| Value::Str(escape.to_string()));
                let (expr, pattern) = (self.encode(expr)?, self.encode(pattern)?);
                let attributes = [Expression::attribute(escape), Expression::attribute(collation.name())];
                call(&negated(*not, "LIKE"), [expr, pattern].into_iter().chain(attributes).collect())
            }
            ExprKind::Arithmetic { op, left, right, text } => {
                let text = Expression::attribute(&**text);
                call(name_of(&ARITHMETIC, op), vec![self.encode(left)?, self.encode(right)?, text])
            }
            ExprKind::Negate { expr, text } => call("NEGATE", vec![self.encode(expr)?, Expression::attribute(&**text)]),
            ExprKind::Bit { op, left, right } => {
                call(name_of(&BITS, op), vec![self.encode(left)?, self.encode(right)?])
            }
            ExprKind::BitNot(part) => call("~", vec![self.encode(part)?]),
            ExprKind::Case { operand, branches, otherwise } => {
                let (name, arguments) = self.case(operand.as_deref(), branches, otherwise.as_deref())?;
                call(name, arguments)
            }
            ExprKind::Coalesce(items) => call("COALESCE", self.all(items)?),
            ExprKind::NullIf { by, left, right } => {
                call("NULLIF", vec![self.encode(left)?, self.encode(right)?, attribute(*by)])
            }
            ExprKind::Cast(part) => call("CAST", vec![self.encode(part)?]),
            ExprKind::Collate(part) => call("COLLATE", vec![self.encode(part)?]),
            ExprKind::DateAdd { date, amount, unit, subtract } => {
                let arguments = vec![self.encode(date)?, self.encode(amount)?, Expression::attribute(unit.name())];
                call(if *subtract { DATE_SUB } else { "DATE_ADD" }, arguments)
            }
            ExprKind::Function { function, arguments } => {
                if let Some(asked) = AskedElements::of(expr) {
                    return self.encode(asked.test);
                }
                let known = functions::find(function.name).is_some_and(|known| std::ptr::eq(known, *function));
                if !known || !function.bounded {
                    return None;
                }
                call(function.name, self.all(arguments)?)
            }
            ExprKind::Regexp(regexp) => {
                let Regexp { expr, pattern, negated: not, case_insensitive, .. } = &**regexp;
                let (expr, pattern) = (self.encode(expr)?, self.encode(pattern)?);
                let Expression::Literal { value: Value::Str(text), .. } = &pattern else { return None };
                RegexpPattern::bounded(text, *case_insensitive)?;
                let any_case = Expression::attribute(i64::from(*case_insensitive));
                call(&negated(*not, "REGEXP"), vec![expr, pattern, any_case])
            }
            ExprKind::RowOrder { op, parts } => {
                let mut arguments = Vec::with_capacity(3 * parts.len());
                for RowPart { by, left, right } in parts {
                    arguments.extend([self.encode(left)?, self.encode(right)?, attribute(*by)]);
                }
                call(ROW_ORDERS.iter().find(|(known, _)| known == op)?.1, arguments)
            }
            ExprKind::RowIn(row_in) => {
                let (name, arguments) = self.row_in(row_in)?;
                call(&negated(row_in.negated, name), arguments)
            }
            ExprKind::Reference(_)
            | ExprKind::GroupValue(_)
            | ExprKind::Subquery(_)
            | ExprKind::UserVariable(_)
            | ExprKind::AssignVariable { .. }
            | ExprKind::SystemVariable { .. } => None,
        }
    }

    fn all(&self, exprs: &[Expr]) -> Option<Vec<Expression>> {
        exprs.iter().map(|expr| self.encode(expr)).collect()
    }

    /// The parts of a chain of ANDs, or of ORs, from left to right.
    fn chain(&self, expr: &Expr) -> Option<Vec<Expression>> {
        let conjunction = matches!(expr.kind, ExprKind::And(..));
        let mut parts = Vec::new();
        let mut pending = vec![expr];
        while let Some(next) = pending.pop() {
            match &next.kind {
                ExprKind::And(left, right) if conjunction => pending.extend([&**right, &**left]),
                ExprKind::Or(left, right) if !conjunction => pending.extend([&**right, &**left]),
                _ => parts.push(self.encode(next)?),
            }
        }
        Some(parts)
    }

    fn in_list(&self, expr: &Expr, list: &[(Expr, Comparison)]) -> Option<(&'static str, Vec<Expression>)> {
        let (_, by) = list.first()?;
        let same = list.iter().all(|(_, other)| other == by);
        let mut arguments = vec![self.encode(expr)?];
        if same {
            arguments.push(attribute(*by));
        }
        for (item, by) in list {
            arguments.push(self.encode(item)?);
            if !same {
                arguments.push(attribute(*by));
            }
        }
        Some((if same { "IN" } else { "IN EACH" }, arguments))
    }

    /// How many values a row has, the row on the left, then the rows: with how each value compares, or where these are the same in all rows, behind
    /// these.
    fn row_in(&self, row_in: &RowIn) -> Option<(&'static str, Vec<Expression>)> {
        let RowIn { left, rows, .. } = row_in;
        let first = rows.first()?;
        let same = rows.iter().all(|row| row.iter().zip(first).all(|((_, by), (_, of))| by == of));
        let mut arguments = vec![Expression::attribute(i64::try_from(left.len()).ok()?)];
        arguments.extend(self.all(left)?);
        if same {
            arguments.extend(first.iter().map(|(_, by)| attribute(*by)));
        }
        for (value, by) in rows.iter().flatten() {
            arguments.push(self.encode(value)?);
            if !same {
                arguments.push(attribute(*by));
            }
        }
        Some((if same { "ROW IN" } else { "ROW IN EACH" }, arguments))
    }

    fn case(
        &self,
        operand: Option<&Expr>,
        branches: &[CaseBranch],
        otherwise: Option<&Expr>,
    ) -> Option<(&'static str, Vec<Expression>)> {
        let mut arguments = Vec::new();
        if let Some(operand) = operand {
            arguments.push(self.encode(operand)?);
        }
        for CaseBranch { when, by, then } in branches {
            arguments.push(self.encode(when)?);
            if operand.is_some() {
                arguments.push(attribute(*by));
            }
            arguments.push(self.encode(then)?);
        }
        if let Some(otherwise) = otherwise {
            arguments.push(self.encode(otherwise)?);
        }
        Some((if operand.is_some() { "CASE OF" } else { "CASE" }, arguments))
    }
}

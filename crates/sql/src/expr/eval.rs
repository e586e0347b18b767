//! The evaluator: one recursive walk over the tree.
//!
//! [`Expr::truth`] is the walk for conditions, [`Expr::value`] the one for everything; each calls the other for the nodes that are its own. Values
//! are borrowed ([`Val`]) from the row, from literals and from the parameters, which are taken out of the [`Context`] for the
//! time of the walk, so that the rest of it can be changed (warnings, user variables).

use super::budget::run;
use super::convert::{self, Result};
use super::functions::Chosen;
use super::types;
use super::{
    Beside, BitOp, Columns, CompareOp, Comparison, Context, Expr, ExprKind, Function, RowIn, SortedList, SubqueryTest,
    Val, arithmetic, cast, interval,
};
use crate::expr::value_key::append_class_key;
use crate::memory::LARGE;
use rauk_types::{DataType, DateTime, TypeKind, Value, ValueRef};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// What a walk reads and does not change.
pub(crate) struct Env<'a> {
    pub row: &'a dyn Columns,
    pub parameters: &'a [Value],
}

/// Runs `walk` with the parameters borrowed beside the rest of the context.
#[inline]
pub(crate) fn with_parameters<R>(context: &mut Context, walk: impl FnOnce(&[Value], &mut Context) -> R) -> R {
    let parameters = std::mem::take(&mut context.parameters);
    let result = walk(&parameters, context);
    context.parameters = parameters;
    result
}

fn not(truth: Option<bool>, negated: bool) -> Option<bool> {
    truth.map(|t| t != negated)
}

impl RowIn {
    /// Whether one of the rows is the one on the left; unknown where only a NULL stands between.
    fn truth(&self, env: &Env<'_>, context: &mut Context) -> Result<Option<bool>> {
        let mut left: SmallVec<[Val<'_>; 4]> = SmallVec::with_capacity(self.left.len());
        let mut held = 0;
        for part in &self.left {
            let value = part.value(env, context)?;
            held += hold(&value, context)?;
            left.push(value);
        }
        let found = self.find(&left, env, context)?;
        if held > 0 {
            context.budget.memory.give(held);
        }
        Ok(not(found, self.negated))
    }

    fn find(&self, left: &[Val<'_>], env: &Env<'_>, context: &mut Context) -> Result<Option<bool>> {
        if let Some(known) = self.keys.as_ref().filter(|_| !left.iter().any(Val::is_null)) {
            let mut key = Vec::with_capacity(40);
            for (value, class) in left.iter().zip(&known.classes) {
                append_class_key(value.as_ref(), class, &mut key);
            }
            if known.keys.contains(key.as_slice()) {
                return Ok(Some(true));
            }
            if !known.nulls {
                return Ok(Some(false));
            }
        }
        let mut unknown = false;
        for (number, row) in self.rows.iter().enumerate() {
            if number % 1024 == 1023 {
                context.budget.work(64 << 10)?;
            }
            let mut equal = Some(true);
            for (value, (other, by)) in left.iter().zip(row) {
                let other = other.value(env, context)?;
                match compare(CompareOp::Eq, *by, value.as_ref(), other.as_ref(), context)? {
                    Some(true) => {}
                    Some(false) => {
                        equal = Some(false);
                        break;
                    }
                    None => equal = None,
                }
            }
            match equal {
                Some(true) => return Ok(Some(true)),
                Some(false) => {}
                None => unknown = true,
            }
        }
        Ok(if unknown { None } else { Some(false) })
    }
}

impl Expr {
    /// As a condition; `None` is NULL.
    pub(crate) fn truth(&self, env: &Env<'_>, context: &mut Context) -> Result<Option<bool>> {
        match &self.kind {
            ExprKind::Compare { op, by, left, right } => {
                let left = left.value(env, context)?;
                if left.is_null() && *op != CompareOp::NullSafeEq {
                    return Ok(None);
                }
                let held = hold(&left, context)?;
                let right = right.value(env, context)?;
                if held > 0 {
                    context.budget.memory.give(held);
                }
                compare(*op, *by, left.as_ref(), right.as_ref(), context)
            }
            ExprKind::RowOrder { op, parts } => {
                for part in parts {
                    let left = part.left.value(env, context)?;
                    if left.is_null() {
                        return Ok(None);
                    }
                    let held = hold(&left, context)?;
                    let right = part.right.value(env, context)?;
                    if held > 0 {
                        context.budget.memory.give(held);
                    }
                    if right.is_null() {
                        return Ok(None);
                    }
                    match part.by.compare(left.as_ref(), right.as_ref(), context)? {
                        Ordering::Equal => {}
                        order => return Ok(Some(op.holds(order))),
                    }
                }
                Ok(Some(op.holds(Ordering::Equal)))
            }
            ExprKind::RowIn(row_in) => row_in.truth(env, context),
            ExprKind::And(left, right) => {
                let left = left.truth(env, context)?;
                if left == Some(false) {
                    return Ok(Some(false));
                }
                Ok(match right.truth(env, context)? {
                    Some(false) => Some(false),
                    Some(true) => left,
                    None => None,
                })
            }
            ExprKind::Or(left, right) => {
                let left = left.truth(env, context)?;
                if left == Some(true) {
                    return Ok(Some(true));
                }
                Ok(match right.truth(env, context)? {
                    Some(true) => Some(true),
                    Some(false) => left,
                    None => None,
                })
            }
            ExprKind::Xor(left, right) => {
                // Behind NULL nothing decides, and nothing is evaluated.
                let Some(left) = left.truth(env, context)? else { return Ok(None) };
                Ok(right.truth(env, context)?.map(|right| left != right))
            }
            ExprKind::Deep(deep) => deep.with(|expr| expr.truth(env, context)),
            ExprKind::Subquery(subquery) if !matches!(subquery.test, SubqueryTest::Scalar) => {
                subquery.truth(env, context)
            }
            ExprKind::Not(expr) => Ok(not(expr.truth(env, context)?, true)),
            ExprKind::IsNull { expr, negated } => Ok(Some(expr.value(env, context)?.is_null() != *negated)),
            ExprKind::IsTruth { expr, truth, negated } => {
                Ok(Some((expr.truth(env, context)? == Some(*truth)) != *negated))
            }
            ExprKind::Between { expr, negated, low, low_by, high, high_by } => {
                let value = expr.value(env, context)?;
                if value.is_null() {
                    return Ok(None);
                }
                let low = low.value(env, context)?;
                let above = compare(CompareOp::Ge, *low_by, value.as_ref(), low.as_ref(), context)?;
                if above == Some(false) {
                    return Ok(Some(*negated));
                }
                let high = high.value(env, context)?;
                let below = compare(CompareOp::Le, *high_by, value.as_ref(), high.as_ref(), context)?;
                Ok(match (above, below) {
                    (_, Some(false)) => Some(*negated),
                    (Some(true), Some(true)) => Some(!*negated),
                    _ => None,
                })
            }
            ExprKind::InList { expr, negated, list, sorted } => {
                let value = expr.value(env, context)?;
                if value.is_null() {
                    return Ok(None);
                }
                if let Some(sorted) = sorted
                    && let Some(found) = sorted.contains(value.as_ref())
                {
                    return Ok(Some(found != *negated));
                }
                let mut unknown = false;
                for (item, by) in list {
                    let item = item.value(env, context)?;
                    match compare(CompareOp::Eq, *by, value.as_ref(), item.as_ref(), context)? {
                        Some(true) => return Ok(Some(!*negated)),
                        Some(false) => {}
                        None => unknown = true,
                    }
                }
                Ok(if unknown { None } else { Some(*negated) })
            }
            ExprKind::Like(like) => {
                let value = like.expr.value(env, context)?;
                let held = hold(&value, context)?;
                let pattern = like.pattern.value(env, context)?;
                if held > 0 {
                    context.budget.memory.give(held);
                }
                if value.is_null() || pattern.is_null() {
                    return Ok(None);
                }
                let runner = text_work(&value, &pattern, context)?;
                let matches = run(runner, || like.matches(value.as_ref(), pattern.as_ref(), context))?;
                Ok(Some(matches != like.negated))
            }
            ExprKind::Regexp(regexp) => {
                let value = regexp.expr.value(env, context)?;
                let held = hold(&value, context)?;
                let pattern = regexp.pattern.value(env, context)?;
                if held > 0 {
                    context.budget.memory.give(held);
                }
                if value.is_null() || pattern.is_null() {
                    return Ok(None);
                }
                let runner = text_work(&value, &pattern, context)?;
                let matches = run(runner, || regexp.matches(value.as_ref(), pattern.as_ref()))?;
                Ok(Some(matches != regexp.negated))
            }
            _ => {
                let value = self.value(env, context)?;
                if value.is_null() {
                    return Ok(None);
                }
                convert::is_true(convert::as_number(value.as_ref(), &self.ty), context).map(Some)
            }
        }
    }

    pub(crate) fn value<'a>(&'a self, env: &Env<'a>, context: &mut Context) -> Result<Val<'a>> {
        Ok(match &self.kind {
            ExprKind::Literal(value) => Val::Ref(value.as_ref()),
            ExprKind::Column { table, column } => match env.row.column(*table, *column) {
                ValueRef::Timestamp(micros) => Val::Ref(local_time(micros, context)),
                value => Val::Ref(value),
            },
            ExprKind::GroupValue(number) => match env.row.group_value(*number) {
                ValueRef::Timestamp(micros) => Val::Ref(local_time(micros, context)),
                value => Val::Ref(value),
            },
            ExprKind::Parameter(index) => match env.parameters.get(*index) {
                Some(value) => Val::Ref(value.as_ref()),
                None => Val::NULL,
            },
            ExprKind::Arithmetic { op, left, right, text } => {
                let dividend = &left.ty;
                let left = left.value(env, context)?;
                if left.is_null() && self.ty.kind == TypeKind::Decimal {
                    return Ok(Val::NULL);
                }
                let is_integer = |ty: &DataType| types::Class::of(ty) == types::Class::Integer;
                if left.is_null()
                    && *op == super::ArithmeticOp::IntegerDivide
                    && !(is_integer(dividend) && is_integer(&right.ty))
                {
                    // DIV of other than integers is a division of DECIMALs.
                    return Ok(Val::NULL);
                }
                // Warnings of the other side come whatever this one is, but where both are exact.
                let right = right.value(env, context)?;
                if left.is_null() || right.is_null() {
                    for side in [&left, &right].into_iter().filter(|side| !side.is_null()) {
                        match self.ty.kind {
                            TypeKind::Double => _ = convert::to_f64(side.as_ref(), context)?,
                            TypeKind::BigInt => _ = convert::to_integer(side.as_ref(), context)?,
                            _ => {}
                        }
                    }
                    return Ok(Val::NULL);
                }
                let digits =
                    if *op == super::ArithmeticOp::Divide { types::quotient_digits(&self.ty, dividend) } else { 0 };
                arithmetic::calculate(*op, left.as_ref(), right.as_ref(), &self.ty, digits, text, context)?.into()
            }
            ExprKind::Negate { expr, text } => {
                let value = expr.value(env, context)?;
                if value.is_null() {
                    return Ok(Val::NULL);
                }
                arithmetic::negate(value.as_ref(), &self.ty, text, context)?.into()
            }
            ExprKind::Bit { op, left, right } => {
                // The right side is not computed beside NULL; the left one is converted before it is known.
                let left = left.value(env, context)?;
                if left.is_null() {
                    return Ok(Val::NULL);
                }
                let left = convert::to_bits(left.as_ref(), context)?;
                let right = right.value(env, context)?;
                if right.is_null() {
                    return Ok(Val::NULL);
                }
                let right = convert::to_bits(right.as_ref(), context)?;
                Value::UInt(match op {
                    BitOp::And => left & right,
                    BitOp::Or => left | right,
                    BitOp::Xor => left ^ right,
                    BitOp::ShiftLeft => {
                        if right < 64 {
                            left << right
                        } else {
                            0
                        }
                    }
                    BitOp::ShiftRight => {
                        if right < 64 {
                            left >> right
                        } else {
                            0
                        }
                    }
                })
                .into()
            }
            ExprKind::BitNot(expr) => {
                let value = expr.value(env, context)?;
                if value.is_null() {
                    return Ok(Val::NULL);
                }
                Value::UInt(!convert::to_bits(value.as_ref(), context)?).into()
            }
            ExprKind::Case { operand, branches, otherwise } => {
                let operand = match operand {
                    Some(operand) => Some(operand.value(env, context)?),
                    None => None,
                };
                for branch in branches {
                    let chosen = match &operand {
                        Some(operand) => {
                            let when = branch.when.value(env, context)?;
                            compare(CompareOp::Eq, branch.by, operand.as_ref(), when.as_ref(), context)?
                        }
                        None => branch.when.truth(env, context)?,
                    };
                    if chosen == Some(true) {
                        return branch.then.value(env, context);
                    }
                }
                match otherwise {
                    Some(otherwise) => otherwise.value(env, context)?,
                    None => Val::NULL,
                }
            }
            ExprKind::Coalesce(items) => {
                for item in items {
                    let value = item.value(env, context)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Val::NULL
            }
            ExprKind::NullIf { by, left, right } => {
                let value = left.value(env, context)?;
                let held = hold(&value, context)?;
                let other = if value.is_null() { Val::NULL } else { right.value(env, context)? };
                if held > 0 {
                    context.budget.memory.give(held);
                }
                match compare(CompareOp::Eq, *by, value.as_ref(), other.as_ref(), context)? {
                    Some(true) => Val::NULL,
                    _ => value,
                }
            }
            ExprKind::Cast(expr) => {
                let value = expr.value(env, context)?;
                if value.is_null() {
                    return Ok(Val::NULL);
                }
                cast::cast(value, &expr.ty, &self.ty, context)?
            }
            ExprKind::Collate(expr) => expr.value(env, context)?,
            ExprKind::Deep(deep) => deep.with(|expr| expr.value(env, context))?,
            ExprKind::Subquery(subquery) => subquery.value(env, context)?,
            ExprKind::Reference(column) => unreachable!("lowering left a reference to column {}", column.0),
            ExprKind::DateAdd { date, amount, unit, subtract } => {
                let date_value = date.value(env, context)?;
                if date_value.is_null() {
                    return Ok(Val::NULL);
                }
                let held = hold(&date_value, context)?;
                let amount_value = amount.value(env, context)?;
                if held > 0 {
                    context.budget.memory.give(held);
                }
                if amount_value.is_null() {
                    return Ok(Val::NULL);
                }
                let amount = interval::Amount::read(amount_value.as_ref(), &amount.ty, *unit, context)?;
                interval::add(date_value.as_ref(), amount, *subtract, *unit, &self.ty, context)?.into()
            }
            ExprKind::Function { function: Function { walk: Some(walk), .. }, arguments } => {
                walk(arguments, env, context)?
            }
            ExprKind::Function { function, arguments } => {
                let mut values: SmallVec<[Val<'a>; 4]> = SmallVec::with_capacity(arguments.len());
                // Values wait here while those beside them are computed. An error ends the statement, which gives all back.
                let mut held = 0;
                let mut null = false;
                let mut chosen = None;
                for (at, argument) in arguments.iter().enumerate() {
                    if chosen.is_some_and(|chosen: Chosen| !chosen.has(at)) {
                        values.push(Val::NULL);
                        continue;
                    }
                    let mut value = argument.value(env, context)?;
                    null = function.null_on_null && value.is_null();
                    if null {
                        break;
                    }
                    if let (0, Some(choose)) = (at, function.choose) {
                        // NULL chooses none.
                        let none = Chosen::One(0);
                        chosen = Some(if value.is_null() { none } else { choose(&mut value, &argument.ty, context)? });
                    }
                    held += hold(&value, context)?;
                    values.push(value);
                }
                let result = if null { Value::Null } else { function.call(arguments, &values, &self.ty, context)? };
                if held > 0 {
                    context.budget.memory.give(held);
                }
                result.into()
            }
            ExprKind::UserVariable(name) => match context.user_variables.get(&**name) {
                Some(variable) => Val::Own(variable.value.clone()),
                None => Val::NULL,
            },
            ExprKind::AssignVariable { name, value } => {
                let expr_collation = value.ty.collation;
                let value = value.value(env, context)?.into_value();
                context.set_user_variable(name.to_string(), value.clone(), expr_collation)?;
                Val::Own(value)
            }
            ExprKind::SystemVariable { scope, name } => {
                let variables = context.variables.clone();
                Val::Own(variables.get(*scope, name)?)
            }
            _ => Val::truth(self.truth(env, context)?),
        })
    }
}

/// Counts a value that waits for another one; gives the bytes that are to be given back.
#[inline]
pub(super) fn hold(value: &Val<'_>, context: &mut Context) -> Result<usize> {
    let bytes = value.held();
    if bytes > 0 {
        context.budget.memory.take(bytes)?;
    }
    Ok(bytes)
}

/// Counts the work of going through two texts; gives how to do it.
#[inline]
fn text_work(a: &Val<'_>, b: &Val<'_>, context: &mut Context) -> Result<Beside> {
    let bytes = a.bytes() + b.bytes();
    context.budget.work(bytes)?;
    Ok(context.budget.runner(bytes))
}

fn local_time(micros: i64, context: &Context) -> ValueRef<'static> {
    let local = match micros {
        0 => Some(DateTime::ZERO),
        micros => DateTime::from_unix_micros(micros, &context.time_zone),
    };
    ValueRef::DateTime(local.unwrap_or(DateTime::ZERO))
}

/// Compares with NULLs.
#[inline]
pub(crate) fn compare(
    op: CompareOp,
    by: Comparison,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    context: &mut Context,
) -> Result<Option<bool>> {
    match (op, left.is_null(), right.is_null()) {
        (CompareOp::NullSafeEq, true, true) => Ok(Some(true)),
        (CompareOp::NullSafeEq, true, false) | (CompareOp::NullSafeEq, false, true) => Ok(Some(false)),
        (_, true, _) | (_, _, true) => Ok(None),
        // Long texts take their time.
        _ if matches!(by, Comparison::Text(_)) && left.as_bytes().is_some_and(|text| text.len() >= LARGE) => {
            context.budget.work(left.as_bytes().map_or(0, <[u8]>::len))?;
            Ok(Some(op.holds(by.compare(left, right, context)?)))
        }
        (CompareOp::Eq | CompareOp::NullSafeEq, ..) => by.equal(left, right, context).map(Some),
        (CompareOp::Ne, ..) => Ok(Some(!by.equal(left, right, context)?)),
        _ => Ok(Some(op.holds(by.compare(left, right, context)?))),
    }
}

impl SortedList {
    /// `None`: the value is of another kind than the list.
    fn contains(&self, value: ValueRef<'_>) -> Option<bool> {
        match self {
            SortedList::Integers(list) => Some(list.binary_search(&value.as_integer()?).is_ok()),
            SortedList::Texts(list, collation) => {
                let text = value.as_str()?;
                Some(list.binary_search_by(|item| collation.compare(item.as_bytes(), text.as_bytes())).is_ok())
            }
        }
    }
}

//! ENUM, SET and YEAR in comparisons, and where text is wanted.
//!
//! Columns of ENUM and SET hold numbers, and so does an expression that reads one. Where text is wanted the number becomes the member's text
//! ([`as_text`]); where a number is wanted it is the value as it is. A comparison with a text is by text, but for an equality with a constant:
//! there the constant becomes the number of the member that equals it, so that an index answers `e = 'b'` and `e IN ('a', 'b')`.
//! A text that is no member becomes [`NO_MEMBER`], which no row holds. An ENUM that has an empty member compares with the text of the error
//! value too, so that it keeps comparing by text.
//!
//! A YEAR beside a constant number or text of two digits compares with the year that they stand for.

use crate::expr::functions::miscellaneous::{MEMBER_CONSTANT, YEAR_CONSTANT};
use crate::expr::types::{self, Class, text_length, text_type};
use crate::expr::{CompareOp, Comparison, Expr, ExprKind, Scope, member_number, year_number};
use rauk_types::{Collation, DataType, TypeKind, Value};

/// Whether values compare by something that is read from their text.
pub(super) fn as_texts(by: Comparison) -> bool {
    matches!(by, Comparison::Text(_) | Comparison::Bytes | Comparison::DateTime | Comparison::Time)
}

fn cast(expr: Expr, ty: DataType) -> Expr {
    let (nullable, coercibility) = (expr.nullable, expr.coercibility);
    Expr { kind: ExprKind::Cast(Box::new(expr)), ty, nullable, coercibility }
}

/// The text of an ENUM or SET; anything else as it is.
pub fn as_text(expr: Expr) -> Expr {
    if !expr.ty.has_members() {
        return expr;
    }
    let ty = text_type(text_length(&expr.ty), expr.ty.collation);
    cast(expr, ty)
}

/// The text of whatever has a text of its own; anything else as it is.
pub fn as_shown(expr: Expr) -> Expr {
    match expr.ty.kind {
        _ if !expr.ty.has_own_text() => expr,
        TypeKind::Enum | TypeKind::Set => as_text(expr),
        TypeKind::Bit => {
            let ty = DataType::varbinary(expr.ty.length.div_ceil(8));
            Expr { coercibility: types::IMPLICIT, ..cast(expr, ty) }
        }
        _ => {
            let ty = text_type(text_length(&expr.ty), Collation::Utf8mb4Bin);
            Expr { coercibility: types::COERCIBLE, ..cast(expr, ty) }
        }
    }
}

/// Whether this is the text of a number as [`as_shown`] has it, which decides no collation.
pub fn is_shown_number(expr: &Expr) -> bool {
    let is_number = |ty: &DataType| ty.has_own_text() && !ty.has_members() && ty.kind != TypeKind::Bit;
    matches!(&expr.kind, ExprKind::Cast(inner) if is_number(&inner.ty)) && expr.ty.collation == Collation::Utf8mb4Bin
}

/// The number of a BIT; anything else as [`as_shown`] has it.
pub fn as_sorted(expr: Expr) -> Expr {
    match expr.ty.kind {
        TypeKind::Bit => cast(expr, DataType::BIGINT_UNSIGNED),
        // An order by them is by number.
        TypeKind::Enum | TypeKind::Set => expr,
        _ => as_shown(expr),
    }
}

/// The digits of a BIT's number, as the bytes that a BIT is beside texts.
pub fn as_digits(number: Expr) -> Expr {
    let ty = DataType::varbinary(types::text_length(&number.ty) as u32);
    Expr { coercibility: types::IMPLICIT, ..cast(number, ty) }
}

/// The number that a value is in a document: BIT is none.
pub fn as_document(expr: Expr) -> Expr {
    match expr.ty.kind {
        TypeKind::Enum | TypeKind::Set => as_text(expr),
        TypeKind::Year => cast(expr, DataType::BIGINT_UNSIGNED),
        _ if expr.ty.zerofill => {
            let ty = DataType { zerofill: false, ..expr.ty };
            cast(expr, ty)
        }
        _ => expr,
    }
}

fn is_equality(op: CompareOp) -> bool {
    matches!(op, CompareOp::Eq | CompareOp::NullSafeEq | CompareOp::Ne)
}

/// Whether an equality by text with this constant is one of numbers.
fn by_number(side: &Expr, constant: &Expr, by: Comparison) -> bool {
    let collation = side.ty.collation;
    let plain = by == Comparison::Text(collation) && constant.is_constant() && !constant.ty.has_members();
    let empty_is_one = || side.ty.members.is_none_or(|members| members.position("", collation).is_some());
    side.ty.has_members() && plain && !constant.has_subquery() && !empty_is_one()
}

/// The number of the member that a constant text names.
fn member_of(constant: Expr, ty: &DataType) -> Expr {
    if let ExprKind::Literal(Value::Str(text)) = &constant.kind {
        let value = member_number(text, ty);
        return Expr { kind: ExprKind::Literal(value), ty: *ty, nullable: false, coercibility: types::NUMERIC };
    }
    let nullable = constant.nullable;
    let kind = ExprKind::Function { function: &MEMBER_CONSTANT, arguments: vec![constant] };
    Expr { kind, ty: *ty, nullable, coercibility: types::NUMERIC }
}

/// A YEAR as the number that it is.
pub fn plain_year(expr: Expr) -> Expr {
    if expr.ty.kind == TypeKind::Year { cast(expr, DataType::BIGINT_UNSIGNED) } else { expr }
}

/// The year of two digits that a constant beside a YEAR stands for.
fn year_of(constant: Expr) -> Expr {
    let ty = if Class::of(&constant.ty) == Class::Integer { DataType::BIGINT } else { DataType::DOUBLE };
    if let ExprKind::Literal(value) = &constant.kind {
        return match year_number(value.as_ref()) {
            Some(year) => {
                let kind = ExprKind::Literal(Value::Int(year));
                Expr { kind, ty: DataType::BIGINT, nullable: false, coercibility: types::NUMERIC }
            }
            None => constant,
        };
    }
    let nullable = constant.nullable;
    let kind = ExprKind::Function { function: &YEAR_CONSTANT, arguments: vec![constant] };
    Expr { kind, ty, nullable, coercibility: types::NUMERIC }
}

/// Brings two sides that compare `by` into the form in which they do; gives how they compare then.
pub(super) fn settle_sides(
    scope: &dyn Scope,
    op: CompareOp,
    left: &mut Expr,
    right: &mut Expr,
    by: Comparison,
) -> Comparison {
    let take = |side: &mut Expr| std::mem::replace(side, Expr::null());
    if is_equality(op) {
        let same = left.ty.members.is_some() && left.ty == right.ty && by == Comparison::Text(left.ty.collation);
        if same && left.ty.members.is_some_and(|members| members.position("", left.ty.collation).is_none()) {
            return Comparison::Integer;
        }
        if by_number(left, right, by) {
            *right = member_of(take(right), &left.ty);
            return Comparison::Integer;
        }
        if by_number(right, left, by) {
            *left = member_of(take(left), &right.ty);
            return Comparison::Integer;
        }
    }
    if as_texts(by) {
        *left = as_text(take(left));
        *right = as_text(take(right));
    }
    settle_strings([&mut *left, &mut *right], by);
    let mut by = by;
    settle_year(scope, left, right, &mut by);
    by
}

/// Brings strings together in the collation that they are compared by.
pub(super) fn settle_strings<'e>(sides: impl IntoIterator<Item = &'e mut Expr>, by: Comparison) {
    let collation = match by {
        Comparison::Bytes => Collation::Binary,
        Comparison::Text(collation) => collation,
        _ => return,
    };
    sides.into_iter().for_each(|side| *side = types::beside(std::mem::replace(side, Expr::null()), collation));
}

/// Turns a constant beside a YEAR into the year that it stands for.
pub(super) fn settle_year(scope: &dyn Scope, left: &mut Expr, right: &mut Expr, by: &mut Comparison) {
    // Of a column only: a function of it, MAX too, has its value, and is no YEAR to a comparison.
    let year = |expr: &Expr| {
        let is_column = match expr.kind {
            ExprKind::Column { .. } => true,
            ExprKind::Reference(id) => !scope.is_computed(id),
            _ => false,
        };
        expr.ty.kind == TypeKind::Year && is_column
    };
    let number = |expr: &Expr| {
        let class = Class::of(&expr.ty);
        (class.is_number() || class.is_string())
            && expr.is_constant()
            && !expr.has_subquery()
            && expr.ty.kind != TypeKind::Year
    };
    let constant = match (year(left), year(right)) {
        (true, false) if number(right) => right,
        (false, true) if number(left) => left,
        _ => return,
    };
    let changed = year_of(std::mem::replace(constant, Expr::null()));
    if Class::of(&changed.ty) == Class::Integer {
        *by = Comparison::Integer;
    }
    *constant = changed;
}

/// The same for a value and a list. `false`: each item has to compare on its own.
pub(super) fn settle_list(scope: &dyn Scope, expr: &mut Expr, list: &mut [Expr], each: &mut [Comparison]) -> bool {
    let take = |side: &mut Expr| std::mem::replace(side, Expr::null());
    if !expr.ty.has_members() {
        for (item, by) in list.iter_mut().zip(&*each) {
            if as_texts(*by) {
                *item = as_text(take(item));
            }
        }
        // A constant at the left is compared with every item: beside one YEAR it stays what it is.
        // MySQL converts the constants of a list that has nothing else.
        let all_constant = || list.iter().all(|item| item.is_constant() && !item.has_subquery());
        if expr.ty.kind == TypeKind::Year && all_constant() {
            list.iter_mut().zip(each).for_each(|(item, by)| settle_year(scope, expr, item, by));
        }
        return true;
    }
    let texts = each.iter().filter(|by| as_texts(**by)).count();
    let constants = list.iter().zip(&*each).filter(|(item, by)| as_texts(**by) && by_number(expr, item, **by)).count();
    if constants == texts {
        for (item, by) in list.iter_mut().zip(each) {
            if as_texts(*by) {
                *item = member_of(take(item), &expr.ty);
                *by = Comparison::Integer;
            }
        }
        return true;
    }
    if texts < each.len() {
        return false;
    }
    *expr = as_text(take(expr));
    list.iter_mut().for_each(|item| *item = as_text(take(item)));
    true
}

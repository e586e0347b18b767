//! Computing constants while binding.
//!
//! A node whose operands are all literals is evaluated once, if nothing but the operands decides its value (no clock, time zone, user or variable) and
//! it gives neither a warning nor an error: those belong to every execution. Nor is a large value kept: plans stay in a cache, and a few
//! nested calls make gigabytes of a character.

use crate::expr::types::Class;
use crate::expr::{BindContext, Context, Expr, ExprKind, NoColumns};
use crate::memory::heap_bytes;
use rauk_types::Value;

/// The largest value that is computed while binding.
const LARGEST: usize = 4 << 10;

fn is_foldable(expr: &Expr) -> bool {
    let own = match &expr.kind {
        ExprKind::Arithmetic { .. }
        | ExprKind::Negate { .. }
        | ExprKind::Bit { .. }
        | ExprKind::BitNot(_)
        | ExprKind::Compare { .. }
        | ExprKind::Not(_)
        | ExprKind::IsNull { .. }
        | ExprKind::Cast(_)
        | ExprKind::Coalesce(_)
        | ExprKind::DateAdd { .. } => true,
        ExprKind::Function { function, .. } => function.pure,
        _ => false,
    };
    if !own {
        return false;
    }
    let dates = matches!(expr.kind, ExprKind::Cast(_) | ExprKind::DateAdd { .. } | ExprKind::Compare { .. })
        || Class::of(&expr.ty).is_temporal();
    let mut foldable = true;
    expr.for_each_child(&mut |child| {
        foldable &= match &child.kind {
            ExprKind::Literal(value) => !dates || !depends_on_zone(value),
            _ => false,
        }
    });
    foldable
}

/// A time of day becomes a date with today's, a text with an offset is moved to the session's time zone.
fn depends_on_zone(value: &Value) -> bool {
    match value {
        Value::Time(_) => true,
        Value::Str(text) => {
            let bytes = text.as_bytes();
            bytes.contains(&b'+') || bytes.len() > 10 && bytes[10..].contains(&b'-')
        }
        _ => false,
    }
}

pub fn fold(expr: Expr, bind: &BindContext) -> Expr {
    if !is_foldable(&expr) {
        return expr;
    }
    match evaluate(&expr, bind) {
        Some(value) => {
            let nullable = value.is_null();
            Expr { kind: ExprKind::Literal(value), nullable, ..expr }
        }
        None => expr,
    }
}

/// The value of a literal, or of a short CASE, IF or NULLIF among literals, which stay what was written; `None`: it is
/// something else, or only its evaluation can tell.
pub fn chosen(expr: &Expr, bind: &BindContext) -> Option<Value> {
    fn is_choice(expr: &Expr) -> bool {
        let own = match &expr.kind {
            ExprKind::Literal(value) => !depends_on_zone(value),
            ExprKind::Case { .. } | ExprKind::NullIf { .. } => true,
            _ => is_foldable(expr),
        };
        let mut choice = own;
        expr.for_each_child(&mut |child| choice = choice && is_choice(child));
        choice
    }
    match &expr.kind {
        ExprKind::Literal(value) => Some(value.clone()),
        _ if expr.is_simple() && is_choice(expr) => evaluate(expr, bind),
        _ => None,
    }
}

/// `None`: it warns or fails, or is too large.
fn evaluate(expr: &Expr, bind: &BindContext) -> Option<Value> {
    let mut context = Context::without_session();
    context.sql_mode = bind.sql_mode;
    context.collation = bind.collation;
    context.max_allowed_packet = LARGEST;
    let value = expr.eval(&NoColumns, &mut context).ok()?;
    (context.warning_count == 0 && heap_bytes(&value) <= LARGEST).then_some(value)
}

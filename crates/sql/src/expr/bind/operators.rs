//! Operators: what they are bound to, and how two sides compare.
//!
//! ```text
//! both integers → integers           exact numbers → decimals        any double → doubles
//! both text → the aggregated collation; binary data beside text of no stronger collation → bytes
//! a DATE or DATETIME beside text or a constant number → dates        a TIME beside text → times
//! a number beside text → doubles (integers exactly)                  NULL → as the other side
//! ```

use super::{Binder, fold, literal, members, one_column};
use crate::expr::convert::{Result, hex_number};
use crate::expr::display::readable;
use crate::expr::functions::clock;
use crate::expr::functions::json::TRUTH as JSON_TRUTH;
use crate::expr::interval;
use crate::expr::key_class;
use crate::expr::pattern::{LikePattern, RegexpPattern};
use crate::expr::types::{self, BOOLEAN, Class, aggregate_collations};
use crate::expr::value_key::append_class_key;
use crate::expr::{
    ArithmeticOp, BitOp, ColumnId, CompareOp, Comparison, Deep, Expr, ExprKind, Like, Regexp, RowIn, RowKeys, RowPart,
    SortedList,
};
use crate::parse::ast::{self, BinaryOp, UnaryOp, Unit};
use crate::stack;
use rauk_types::error::codes;
use rauk_types::{Collation, DataType, MysqlError, TypeKind, Value, datetime};

/// ER_WRONG_VALUE.
pub const WRONG_VALUE: u16 = 1525;
/// IN lists of at least so many literals are sorted.
const SORTED_LENGTH: usize = 8;

/// A text that is no date or time.
pub fn wrong_value(kind: &str, text: &str) -> MysqlError {
    MysqlError::new(WRONG_VALUE, format!("Incorrect {kind} value: '{text}'"))
}

pub fn boolean(kind: ExprKind, nullable: bool) -> Expr {
    Expr { kind, ty: BOOLEAN, nullable, coercibility: types::NUMERIC }
}

/// A hexadecimal or bit literal where a number is asked for.
pub fn as_number(expr: Expr) -> Expr {
    match &expr.kind {
        ExprKind::Literal(Value::Bytes(bytes)) if types::is_hex(&expr.ty) => {
            literal(Value::UInt(hex_number(bytes)), DataType::BIGINT_UNSIGNED, types::NUMERIC)
        }
        _ => expr,
    }
}

impl Binder<'_> {
    // Arithmetic

    pub fn unary(&mut self, op: UnaryOp, operand: &ast::Expr, whole: &ast::Expr) -> Result<Expr> {
        match op {
            UnaryOp::Plus => self.bind(operand),
            UnaryOp::Minus => {
                let expr = as_number(self.bind(operand)?);
                types::refuse_geometry([&expr], "-")?;
                // -9223372036854775808 is a BIGINT, though 9223372036854775808 alone is not.
                if let ExprKind::Literal(Value::UInt(value)) = expr.kind
                    && value == i64::MIN.unsigned_abs()
                    && matches!(operand, ast::Expr::Literal(_))
                {
                    return Ok(literal(
                        Value::Int(i64::MIN),
                        DataType { length: 20, ..DataType::BIGINT },
                        types::NUMERIC,
                    ));
                }
                let mut ty = types::numeric(&expr.ty);
                if ty.kind == TypeKind::BigInt {
                    // Of a constant whose negative no BIGINT is, it is exact as a DECIMAL.
                    let beyond = match fold::chosen(&expr, self.context) {
                        Some(Value::UInt(value)) => i64::try_from(value).is_err(),
                        Some(Value::Int(value)) => value == i64::MIN,
                        _ => false,
                    };
                    ty = if beyond {
                        DataType::decimal(20, 0)
                    } else {
                        DataType { length: (ty.length + 1) % 21, ..DataType::BIGINT }
                    };
                }
                let nullable = expr.nullable;
                let kind = ExprKind::Negate { expr: Box::new(expr), text: readable(whole).into() };
                Ok(Expr { kind, ty, nullable, coercibility: types::NUMERIC })
            }
            UnaryOp::Not => {
                let expr = self.boxed(operand)?;
                let nullable = expr.nullable;
                Ok(boolean(ExprKind::Not(expr), nullable))
            }
            UnaryOp::BitNot => {
                let expr = Box::new(as_number(self.bind(operand)?));
                types::refuse_geometry([&*expr], "~")?;
                let nullable = expr.nullable;
                let kind = ExprKind::BitNot(expr);
                Ok(Expr { kind, ty: DataType::BIGINT_UNSIGNED, nullable, coercibility: types::NUMERIC })
            }
        }
    }

    pub fn binary(&mut self, op: BinaryOp, left: &ast::Expr, right: &ast::Expr, whole: &ast::Expr) -> Result<Expr> {
        match op {
            BinaryOp::Equal => self.compare_sides(CompareOp::Eq, left, right),
            BinaryOp::NullSafeEqual => self.compare_sides(CompareOp::NullSafeEq, left, right),
            BinaryOp::NotEqual => self.compare_sides(CompareOp::Ne, left, right),
            BinaryOp::Less => self.compare_sides(CompareOp::Lt, left, right),
            BinaryOp::LessOrEqual => self.compare_sides(CompareOp::Le, left, right),
            BinaryOp::Greater => self.compare_sides(CompareOp::Gt, left, right),
            BinaryOp::GreaterOrEqual => self.compare_sides(CompareOp::Ge, left, right),
            BinaryOp::Or => self.logical(ExprKind::Or, left, right),
            BinaryOp::Xor => self.logical(ExprKind::Xor, left, right),
            BinaryOp::And => self.logical(ExprKind::And, left, right),
            BinaryOp::BitOr => self.bits(BitOp::Or, left, right),
            BinaryOp::BitAnd => self.bits(BitOp::And, left, right),
            BinaryOp::BitXor => self.bits(BitOp::Xor, left, right),
            BinaryOp::ShiftLeft => self.bits(BitOp::ShiftLeft, left, right),
            BinaryOp::ShiftRight => self.bits(BitOp::ShiftRight, left, right),
            BinaryOp::Add => self.calculation(ArithmeticOp::Add, left, right, whole),
            BinaryOp::Subtract => self.calculation(ArithmeticOp::Subtract, left, right, whole),
            BinaryOp::Multiply => self.calculation(ArithmeticOp::Multiply, left, right, whole),
            BinaryOp::Divide => self.calculation(ArithmeticOp::Divide, left, right, whole),
            BinaryOp::IntegerDivide => self.calculation(ArithmeticOp::IntegerDivide, left, right, whole),
            BinaryOp::Modulo => self.calculation(ArithmeticOp::Modulo, left, right, whole),
            BinaryOp::Concat => {
                let arguments = vec![self.bind(left)?, self.bind(right)?];
                self.call("CONCAT", arguments)
            }
        }
    }

    fn logical(
        &mut self,
        kind: fn(Box<Expr>, Box<Expr>) -> ExprKind,
        left: &ast::Expr,
        right: &ast::Expr,
    ) -> Result<Expr> {
        let left = self.boxed(left)?;
        let right = self.boxed(right)?;
        let nullable = left.nullable || right.nullable;
        Ok(boolean(kind(left, right), nullable))
    }

    fn bits(&mut self, op: BitOp, left: &ast::Expr, right: &ast::Expr) -> Result<Expr> {
        let left = Box::new(as_number(self.bind(left)?));
        let right = Box::new(as_number(self.bind(right)?));
        types::refuse_geometry([&*left, &*right], op.symbol())?;
        let nullable = left.nullable || right.nullable;
        let kind = ExprKind::Bit { op, left, right };
        Ok(Expr { kind, ty: DataType::BIGINT_UNSIGNED, nullable, coercibility: types::NUMERIC })
    }

    /// Numbers, or a date with an interval. `INTERVAL 1 DAY + date` has come as `date + INTERVAL 1 DAY`.
    fn calculation(
        &mut self,
        op: ArithmeticOp,
        left: &ast::Expr,
        right: &ast::Expr,
        whole: &ast::Expr,
    ) -> Result<Expr> {
        let left = self.bind(left)?;
        if let (ArithmeticOp::Add | ArithmeticOp::Subtract, ast::Expr::Interval { amount, unit }) = (op, right) {
            let amount = self.bind(amount)?;
            return Ok(self.date_add(left, amount, *unit, op == ArithmeticOp::Subtract));
        }
        let right = self.bind(right)?;
        self.arithmetic(op, left, right, || readable(whole))
    }

    pub fn arithmetic(&self, op: ArithmeticOp, left: Expr, right: Expr, text: impl FnOnce() -> String) -> Result<Expr> {
        let (left, right) = (as_number(left), as_number(right));
        types::refuse_geometry([&left, &right], op.symbol())?;
        let mut ty = types::arithmetic(op, &left.ty, &right.ty, self.context.sql_mode.formats.division_digits);
        if op == ArithmeticOp::Subtract && self.context.sql_mode.no_unsigned_subtraction && ty.unsigned {
            // Its length has no sign yet; 0 is the full width.
            let length = if ty.length > 0 { types::integer_length(ty.length, false) } else { 0 };
            ty = DataType { unsigned: false, length, ..ty };
        }
        let divides = matches!(op, ArithmeticOp::Divide | ArithmeticOp::IntegerDivide | ArithmeticOp::Modulo);
        let nullable = left.nullable || right.nullable || divides;
        let text = text().into();
        let kind = ExprKind::Arithmetic { op, left: Box::new(left), right: Box::new(right), text };
        Ok(Expr { kind, ty, nullable, coercibility: types::NUMERIC })
    }

    /// `date + INTERVAL amount unit`.
    pub fn date_add(&self, date: Expr, amount: Expr, unit: Unit, subtract: bool) -> Expr {
        let amount = if unit.is_composite() { amount } else { as_number(amount) };
        let ty = interval::result_type(&date, &amount, unit, self.context.collation);
        let coercibility = if ty.is_text() { types::COERCIBLE } else { types::NUMERIC };
        let kind = ExprKind::DateAdd { date: Box::new(date), amount: Box::new(amount), unit, subtract };
        Expr { kind, ty, nullable: true, coercibility }
    }

    // Comparisons

    fn compare_sides(&mut self, op: CompareOp, left: &ast::Expr, right: &ast::Expr) -> Result<Expr> {
        match (left, right) {
            (ast::Expr::Row(left), ast::Expr::Row(right)) => self.compare_rows(op, left, right),
            (ast::Expr::Row(left), ast::Expr::Subquery(query)) => self.compare_with_row(op, left, query),
            (ast::Expr::Subquery(query), ast::Expr::Row(right)) => self.compare_with_row(op.flipped(), right, query),
            (ast::Expr::Row(_), _) | (_, ast::Expr::Row(_)) => Err(one_column()),
            _ => {
                let booleans = [super::is_boolean(left), super::is_boolean(right)];
                let mut left = self.bind(left)?;
                let mut right = self.bind(right)?;
                // TRUE beside JSON is a boolean, 1 is none.
                match (left.ty.kind == TypeKind::Json, right.ty.kind == TypeKind::Json, booleans) {
                    (true, false, [_, true]) => right = self.boolean_document(right)?,
                    (false, true, [true, _]) => left = self.boolean_document(left)?,
                    _ => {}
                }
                self.compare(op, left, right)
            }
        }
    }

    pub fn compare(&self, op: CompareOp, left: Expr, right: Expr) -> Result<Expr> {
        self.compare_as(op, left, right, &op.to_string())
    }

    /// The same for the call that errors name.
    pub fn compare_as(&self, op: CompareOp, mut left: Expr, mut right: Expr, operation: &str) -> Result<Expr> {
        if matches!(op, CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge) {
            types::refuse_geometry([&left, &right], operation)?;
        }
        let by = self.comparison(&left, &right, operation)?;
        let by = members::settle_sides(self.scope, op, &mut left, &mut right, by);
        left = adapted(left, by, &right.ty)?;
        right = adapted(right, by, &left.ty)?;
        let nullable = op != CompareOp::NullSafeEq && (left.nullable || right.nullable);
        Ok(boolean(ExprKind::Compare { op, by, left: Box::new(left), right: Box::new(right) }, nullable))
    }

    /// The same for parts of rows, where a constant beside a YEAR is what it says.
    fn compare_parts(&mut self, op: CompareOp, left: &ast::Expr, right: &ast::Expr) -> Result<Expr> {
        let are_values = !matches!((left, right), (ast::Expr::Row(_), _) | (_, ast::Expr::Row(_)));
        if !are_values {
            return self.compare_sides(op, left, right);
        }
        let (left, right) = (self.bind(left)?, self.bind(right)?);
        self.compare_in_row(op, left, right)
    }

    fn compare_in_row(&self, op: CompareOp, left: Expr, right: Expr) -> Result<Expr> {
        self.compare(op, members::plain_year(left), members::plain_year(right))
    }

    /// Rows compare part by part: equality needs all of them, order the first that differs.
    fn compare_rows(&mut self, op: CompareOp, left: &[ast::Expr], right: &[ast::Expr]) -> Result<Expr> {
        if left.len() != right.len() {
            return Err(MysqlError::new(
                codes::OPERAND_COLUMNS,
                format!("Operand should contain {} column(s)", left.len()),
            ));
        }
        match op {
            CompareOp::Eq | CompareOp::NullSafeEq | CompareOp::Ne => {
                let each = if op == CompareOp::Ne { CompareOp::Eq } else { op };
                let mut parts = Vec::with_capacity(left.len());
                for (left, right) in left.iter().zip(right) {
                    parts.push(self.compare_parts(each, left, right)?);
                }
                let all = balanced(parts, ExprKind::And).ok_or_else(one_column)?;
                if op != CompareOp::Ne {
                    return Ok(all);
                }
                let nullable = all.nullable;
                Ok(boolean(ExprKind::Not(Box::new(all)), nullable))
            }
            _ => {
                let mut parts = Vec::new();
                self.pair_parts(left, right, &mut parts)?;
                self.ordered_rows(op, parts)
            }
        }
    }

    /// The parts of two rows, those of rows in them included, each bound once.
    fn pair_parts(&mut self, left: &[ast::Expr], right: &[ast::Expr], out: &mut Vec<(Expr, Expr)>) -> Result<()> {
        if left.len() != right.len() {
            return Err(MysqlError::new(
                codes::OPERAND_COLUMNS,
                format!("Operand should contain {} column(s)", left.len()),
            ));
        }
        for (left, right) in left.iter().zip(right) {
            match (left, right) {
                (ast::Expr::Row(left), ast::Expr::Row(right)) => {
                    stack::grow(|| self.pair_parts(left, right, out))?;
                }
                (ast::Expr::Row(_), _) | (_, ast::Expr::Row(_)) => return Err(one_column()),
                _ => out.push((self.bind(left)?, self.bind(right)?)),
            }
        }
        Ok(())
    }

    /// `(a, b) < (1, 2)` is `a < 1 OR (a = 1 AND b < 2)`, which an index can use. That says all parts but the last
    /// twice: if one of them is more than simple, the rows are compared as they are.
    fn ordered_rows(&self, op: CompareOp, mut parts: Vec<(Expr, Expr)>) -> Result<Expr> {
        let last = parts.pop().ok_or_else(one_column)?;
        if !parts.iter().all(|(left, right)| left.is_simple() && right.is_simple()) {
            parts.push(last);
            let mut nullable = false;
            let mut compared = Vec::with_capacity(parts.len());
            for (left, right) in parts {
                let equal = self.compare_in_row(CompareOp::Eq, left, right)?;
                nullable |= equal.nullable;
                let ExprKind::Compare { by, left, right, .. } = equal.kind else { unreachable!("made so") };
                compared.push(RowPart { by, left: *left, right: *right });
            }
            return Ok(boolean(ExprKind::RowOrder { op, parts: compared }, nullable));
        }
        let strict = match op {
            CompareOp::Le => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Gt,
            op => op,
        };
        let join = |kind: fn(Box<Expr>, Box<Expr>) -> ExprKind, a: Expr, b: Expr| {
            let nullable = a.nullable || b.nullable;
            boolean(kind(Box::new(a), Box::new(b)), nullable)
        };
        let mut rest = self.compare_in_row(op, last.0, last.1)?;
        for (level, (left, right)) in parts.into_iter().rev().enumerate() {
            let decided = self.compare_in_row(strict, left.clone(), right.clone())?;
            let equal = self.compare_in_row(CompareOp::Eq, left, right)?;
            if (level + 1) % (Deep::LEVELS / 2) == 0 {
                rest = Deep::mark(rest);
            }
            rest = join(ExprKind::Or, decided, join(ExprKind::And, equal, rest));
        }
        Ok(rest)
    }

    /// How a value compares with each of several others. As texts it compares with all of them by one collation: that of
    /// all together. Errors 1267, 1270, 1271.
    pub fn comparisons(&self, left: &Expr, others: &[&Expr], operation: &str) -> Result<Vec<Comparison>> {
        let json = left.ty.kind == TypeKind::Json;
        let own = |e: &Expr| {
            let texts = Class::of(&left.ty).is_string() && Class::of(&e.ty).is_string();
            texts && !json && e.ty.kind != TypeKind::Json
        };
        // A NULL at the left does not keep texts of different collations from meeting.
        let texts = others.iter().filter(|other| Class::of(&other.ty).is_string()).count();
        let null = Class::of(&left.ty) == Class::Null && texts > 1;
        let text = (null || others.iter().any(|other| own(other))).then(|| {
            let all = std::iter::once(left).chain(others.iter().copied());
            aggregate_collations(all, operation, self.context.collation).map(|(collation, _)| by_text(collation))
        });
        let text = text.transpose()?;
        if others.iter().all(|other| Class::of(&other.ty) == Class::Null) {
            let all: Vec<&Expr> = std::iter::once(left).chain(others.iter().copied()).collect();
            types::refuse_mixed_beside(&all, operation)?;
        }
        let each = others.iter().map(|other| match text {
            Some(by) if own(other) => Ok(by),
            _ => self.comparison(left, other, operation),
        });
        each.collect()
    }

    /// As what two sides compare.
    pub fn comparison(&self, left: &Expr, right: &Expr, operation: &str) -> Result<Comparison> {
        let (l, r) = (Class::of(&left.ty), Class::of(&right.ty));
        Ok(match (l, r) {
            (Class::Null, Class::Null) => Comparison::Integer,
            (Class::Null, _) | (_, Class::Null) => {
                types::refuse_mixed_beside(&[left, right], operation)?;
                alone(if l == Class::Null { &right.ty } else { &left.ty })
            }
            _ if left.ty.kind == TypeKind::Json || right.ty.kind == TypeKind::Json => Comparison::Json,
            (Class::Integer, Class::Integer) => Comparison::Integer,
            (Class::Integer | Class::Decimal, Class::Integer | Class::Decimal) => Comparison::Decimal,
            _ if l.is_number() && r.is_number() => Comparison::Double,
            _ if l.is_string() && r.is_string() => {
                by_text(aggregate_collations([left, right], operation, self.context.collation)?.0)
            }
            (Class::Time, Class::Time) => Comparison::Time,
            _ if l.is_temporal() && r.is_temporal() => Comparison::DateTime,
            (Class::Time, _) if r.is_string() => Comparison::Time,
            (_, Class::Time) if l.is_string() => Comparison::Time,
            (Class::Date | Class::DateTime, _) if r.is_string() || right.is_constant() => Comparison::DateTime,
            (_, Class::Date | Class::DateTime) if l.is_string() || left.is_constant() => Comparison::DateTime,
            _ => Comparison::Double,
        })
    }

    pub fn between(&mut self, expr: &ast::Expr, negated: bool, low: &ast::Expr, high: &ast::Expr) -> Result<Expr> {
        if let ast::Expr::Row(_) = expr {
            return Err(one_column());
        }
        let mut expr = self.bind(expr)?;
        let (low, high) = (self.bind(low)?, self.bind(high)?);
        types::refuse_geometry([&expr, &low, &high], "between")?;
        if types::is_hex(&expr.ty) {
            match [&low, &high].map(|e| Class::of(&e.ty).is_number()) {
                [true, true] => expr = as_number(expr),
                [false, false] => {}
                _ => return self.between_each(expr, negated, low, high),
            }
        }
        let both = self.comparisons(&expr, &[&low, &high], "between")?;
        let (mut low_by, mut high_by) = (both[0], both[1]);
        let (mut expr, mut low, mut high) = (expr, low, high);
        if low_by == high_by {
            members::settle_strings([&mut expr, &mut low, &mut high], low_by);
        }
        // A constant at the left is compared with both bounds: beside one YEAR it stays what it is.
        if expr.ty.kind == TypeKind::Year {
            members::settle_year(self.scope, &mut expr, &mut low, &mut low_by);
            members::settle_year(self.scope, &mut expr, &mut high, &mut high_by);
        }
        if expr.ty.has_members() && members::as_texts(low_by) != members::as_texts(high_by) {
            // One number makes all of them numbers.
            (low_by, high_by) = (Comparison::Double, Comparison::Double);
        }
        let side = |expr: Expr, by: Comparison| if members::as_texts(by) { members::as_text(expr) } else { expr };
        let (expr, low, high) = (side(expr, low_by), side(low, low_by), side(high, high_by));
        let low = adapted(low, low_by, &expr.ty)?;
        let high = adapted(high, high_by, &expr.ty)?;
        let expr = settled(expr);
        let nullable = expr.nullable || low.nullable || high.nullable;
        let kind = ExprKind::Between {
            expr: Box::new(expr),
            negated,
            low: Box::new(low),
            low_by,
            high: Box::new(high),
            high_by,
        };
        Ok(boolean(kind, nullable))
    }

    /// BETWEEN of a literal that is a number beside one bound and bytes beside the other.
    fn between_each(&mut self, expr: Expr, negated: bool, low: Expr, high: Expr) -> Result<Expr> {
        let above = Box::new(self.compare(CompareOp::Ge, expr.clone(), low)?);
        let below = Box::new(self.compare(CompareOp::Le, expr, high)?);
        let nullable = above.nullable || below.nullable;
        let both = boolean(ExprKind::And(above, below), nullable);
        Ok(if negated { boolean(ExprKind::Not(Box::new(both)), nullable) } else { both })
    }

    pub fn in_list(&mut self, expr: &ast::Expr, list: &[ast::Expr], negated: bool) -> Result<Expr> {
        if let ast::Expr::Row(columns) = expr {
            return self.row_in_list(columns, list, negated);
        }
        let mut expr = self.bind(expr)?;
        let list = list.iter().map(|item| self.bind(item)).collect::<Result<Vec<Expr>>>()?;
        if types::is_hex(&expr.ty) && list.iter().any(|item| Class::of(&item.ty).is_number()) {
            if !list.iter().all(|item| Class::of(&item.ty).is_number()) {
                // A number beside numbers, bytes beside texts.
                let each = list.into_iter().map(|item| self.compare(CompareOp::Eq, expr.clone(), item));
                let any = balanced(each.collect::<Result<_>>()?, ExprKind::Or).ok_or_else(one_column)?;
                let nullable = any.nullable;
                return Ok(if negated { boolean(ExprKind::Not(Box::new(any)), nullable) } else { any });
            }
            expr = as_number(expr);
        }
        let mut items = Vec::with_capacity(list.len());
        let mut nullable = expr.nullable;
        let mut list = list;
        let mut each =
            self.comparisons(&expr, &list.iter().collect::<Vec<_>>(), if list.len() == 1 { "=" } else { "in" })?;
        if let ([item], [by]) = (&mut list[..], &mut each[..])
            && item.ty.kind == TypeKind::Year
        {
            // One item is an equality.
            members::settle_year(self.scope, &mut expr, item, by);
        }
        if let Some(by) = each.first().filter(|by| each.iter().all(|other| other == *by)) {
            members::settle_strings(std::iter::once(&mut expr).chain(&mut list), *by);
        }
        if !members::settle_list(self.scope, &mut expr, &mut list, &mut each) {
            // A number beside numbers, a text beside texts.
            let each = list.into_iter().map(|item| self.compare(CompareOp::Eq, expr.clone(), item));
            let any = balanced(each.collect::<Result<_>>()?, ExprKind::Or).ok_or_else(one_column)?;
            let nullable = any.nullable;
            return Ok(if negated { boolean(ExprKind::Not(Box::new(any)), nullable) } else { any });
        }
        for (item, by) in list.into_iter().zip(each) {
            let item = adapted(item, by, &expr.ty)?;
            nullable |= item.nullable;
            items.push((item, by));
        }
        let sorted = sorted_list(&items);
        let expr = settled(expr);
        Ok(boolean(ExprKind::InList { expr: Box::new(expr), negated, list: items, sorted }, nullable))
    }

    /// `(a, b) IN ((1, 2), (3, 4))`.
    fn row_in_list(&mut self, columns: &[ast::Expr], list: &[ast::Expr], negated: bool) -> Result<Expr> {
        let wrong =
            || MysqlError::new(codes::OPERAND_COLUMNS, format!("Operand should contain {} column(s)", columns.len()));
        if let [ast::Expr::Row(values)] = list {
            let equal = self.compare_rows(CompareOp::Eq, columns, values)?;
            let nullable = equal.nullable;
            return Ok(if negated { boolean(ExprKind::Not(Box::new(equal)), nullable) } else { equal });
        }
        if list.iter().any(|item| matches!(item, ast::Expr::Subquery(_))) {
            // A query gives its row when it is run: one of the equalities.
            let each = list.iter().map(|item| match item {
                ast::Expr::Row(values) => self.compare_rows(CompareOp::Eq, columns, values),
                ast::Expr::Subquery(query) => self.compare_with_row(CompareOp::Eq, columns, query),
                _ => Err(wrong()),
            });
            let any = balanced(each.collect::<Result<_>>()?, ExprKind::Or).ok_or_else(one_column)?;
            let nullable = any.nullable;
            return Ok(if negated { boolean(ExprKind::Not(Box::new(any)), nullable) } else { any });
        }
        let mut left = Vec::with_capacity(columns.len());
        self.row_parts_of(columns, &mut left)?;
        let mut rows: Vec<Vec<Expr>> = Vec::with_capacity(list.len());
        for item in list {
            let ast::Expr::Row(values) = item else { return Err(wrong()) };
            let mut row = Vec::with_capacity(left.len());
            same_shape(columns, values)?;
            self.row_parts_of(values, &mut row)?;
            rows.push(row);
        }
        let mut by: Vec<Vec<Comparison>> = Vec::with_capacity(left.len());
        for (at, part) in left.iter().enumerate() {
            by.push(rows.iter().map(|row| self.comparison(part, &row[at], "in")).collect::<Result<_>>()?);
        }
        for (at, part) in left.iter_mut().enumerate() {
            let texts = by[at].iter().filter(|by| members::as_texts(**by)).count();
            if part.ty.has_members() && texts != 0 && texts != by[at].len() {
                return Err(super::not_yet("row IN with an ENUM or SET beside both texts and numbers"));
            }
            if texts > 0 {
                let sides = std::iter::once(part).chain(rows.iter_mut().map(|row| &mut row[at]));
                sides.for_each(|side| *side = members::as_text(std::mem::replace(side, Expr::null())));
            }
        }
        let mut nullable = left.iter().any(|part| part.nullable);
        let mut adapted_rows = Vec::with_capacity(rows.len());
        for (number, row) in rows.into_iter().enumerate() {
            let mut values = Vec::with_capacity(row.len());
            for (at, value) in row.into_iter().enumerate() {
                let value = adapted(value, by[at][number], &left[at].ty)?;
                nullable |= value.nullable;
                values.push((value, by[at][number]));
            }
            adapted_rows.push(values);
        }
        for (part, by) in left.iter_mut().zip(&by) {
            let own = std::mem::replace(part, Expr::null());
            *part = if by.iter().any(|by| *by != Comparison::Decimal) { own } else { settled(own) };
        }
        let keys = row_keys(&left, &adapted_rows, &mut |bytes| self.context.memory.take(bytes))?;
        let row_in = RowIn { left, negated, rows: adapted_rows, keys };
        Ok(boolean(ExprKind::RowIn(Box::new(row_in)), nullable))
    }

    /// The parts of a row, those of rows in it included.
    fn row_parts_of(&mut self, row: &[ast::Expr], out: &mut Vec<Expr>) -> Result<()> {
        for part in row {
            match part {
                ast::Expr::Row(inner) => stack::grow(|| self.row_parts_of(inner, out))?,
                part => out.push(self.bind(part)?),
            }
        }
        Ok(())
    }

    pub fn is_null(&mut self, expr: &ast::Expr, negated: bool) -> Result<Expr> {
        let expr = self.boxed(expr)?;
        Ok(boolean(ExprKind::IsNull { expr, negated }, false))
    }

    pub fn is_truth(&mut self, expr: &ast::Expr, truth: bool, negated: bool) -> Result<Expr> {
        let expr = self.boxed(expr)?;
        Ok(boolean(ExprKind::IsTruth { expr, truth, negated }, false))
    }

    // Patterns

    pub fn like(
        &mut self,
        expr: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
        negated: bool,
    ) -> Result<Expr> {
        let expr = members::as_shown(self.bind(expr)?);
        let pattern = members::as_shown(self.bind(pattern)?);
        let escape = match escape {
            None if self.context.sql_mode.no_backslash_escapes => None,
            None => Some('\\'),
            Some(escape) => self.escape(escape)?,
        };
        types::refuse_geometry([&expr, &pattern], "like")?;
        let strings = [&expr, &pattern].into_iter().filter(|e| Class::of(&e.ty).is_string());
        let (collation, _) = aggregate_collations(strings, "like", self.context.collation)?;
        let [expr, pattern] = [expr, pattern].map(|side| types::beside(side, collation));
        let compiled = match &pattern.kind {
            ExprKind::Literal(Value::Str(text)) => {
                self.context.memory.take(text.len() * LikePattern::BYTES)?;
                Some(LikePattern::new(text, escape))
            }
            _ => None,
        };
        let nullable = expr.nullable || pattern.nullable;
        let like = Like { expr, pattern, escape, negated, collation, compiled };
        Ok(boolean(ExprKind::Like(Box::new(like)), nullable))
    }

    /// The character of ESCAPE: a text of one, or none with an empty text. Error 1210 for anything else.
    fn escape(&mut self, escape: &ast::Expr) -> Result<Option<char>> {
        let escape = self.bind(escape)?;
        let hexadecimal = types::is_hex(&escape.ty);
        let escape = match escape.kind {
            // A literal of a connection of bytes.
            ExprKind::Literal(Value::Bytes(bytes)) if !hexadecimal => match String::from_utf8(bytes) {
                Ok(text) => ExprKind::Literal(Value::Str(text)),
                Err(error) => ExprKind::Literal(Value::Bytes(error.into_bytes())),
            },
            other => other,
        };
        match escape {
            ExprKind::Literal(Value::Str(text)) if text.chars().nth(1).is_none() => Ok(text.chars().next()),
            ExprKind::Literal(Value::Null) => Ok(Some('\\')),
            _ => Err(MysqlError::new(codes::WRONG_ARGUMENTS, "Incorrect arguments to ESCAPE")),
        }
    }

    pub fn regexp(&mut self, expr: &ast::Expr, pattern: &ast::Expr, negated: bool) -> Result<Expr> {
        let expr = members::as_shown(self.bind(expr)?);
        let pattern = members::as_shown(self.bind(pattern)?);
        let strings = [&expr, &pattern].into_iter().filter(|e| Class::of(&e.ty).is_string());
        let (collation, _) = aggregate_collations(strings, "regexp_like", self.context.collation)?;
        let case_insensitive = !collation.is_case_sensitive();
        let compiled = match &pattern.kind {
            ExprKind::Literal(Value::Str(text)) => Some(RegexpPattern::new(text, case_insensitive)?),
            _ => None,
        };
        let nullable = expr.nullable || pattern.nullable;
        let regexp = Regexp { expr, pattern, negated, case_insensitive, compiled };
        Ok(boolean(ExprKind::Regexp(Box::new(regexp)), nullable))
    }
}

/// Rows side by side have as many parts at every level. Error 1241.
fn same_shape(left: &[ast::Expr], right: &[ast::Expr]) -> Result<()> {
    let wrong = || MysqlError::new(codes::OPERAND_COLUMNS, format!("Operand should contain {} column(s)", left.len()));
    if left.len() != right.len() {
        return Err(wrong());
    }
    left.iter().zip(right).try_for_each(|(left, right)| match (left, right) {
        (ast::Expr::Row(left), ast::Expr::Row(right)) => stack::grow(|| same_shape(left, right)),
        (ast::Expr::Row(_), _) | (_, ast::Expr::Row(_)) => Err(one_column()),
        _ => Ok(()),
    })
}

/// All of them joined, as a tree of logarithmic height.
fn balanced(mut rows: Vec<Expr>, join: fn(Box<Expr>, Box<Expr>) -> ExprKind) -> Option<Expr> {
    if rows.len() < 2 {
        return rows.pop();
    }
    let right = rows.split_off(rows.len() / 2);
    let (left, right) = (balanced(rows, join)?, balanced(right, join)?);
    let nullable = left.nullable || right.nullable;
    Some(boolean(join(Box::new(left), Box::new(right)), nullable))
}

fn by_text(collation: Collation) -> Comparison {
    if collation == Collation::Binary { Comparison::Bytes } else { Comparison::Text(collation) }
}

/// Whether a DECIMAL may have more digits than its type shows. `averages`: columns that may.
fn has_more(expr: &Expr, averages: &[ColumnId]) -> bool {
    if expr.ty.kind != TypeKind::Decimal {
        return false;
    }
    match &expr.kind {
        ExprKind::Literal(Value::Decimal(value)) => value.scale() > expr.ty.scale,
        ExprKind::Reference(id) => averages.contains(id),
        ExprKind::Arithmetic { op: ArithmeticOp::Divide, .. } => true,
        ExprKind::Arithmetic { .. }
        | ExprKind::Negate { .. }
        | ExprKind::Case { .. }
        | ExprKind::Coalesce(_)
        | ExprKind::NullIf { .. }
        | ExprKind::Function { .. }
        | ExprKind::AssignVariable { .. }
        | ExprKind::Deep(_) => {
            let mut more = false;
            expr.for_each_child(&mut |child| more |= has_more(child, averages));
            more
        }
        _ => false,
    }
}

/// Settles both sides of the comparisons of DECIMALs in an expression: what stands there now may have more digits than what was bound.
/// `averages`: columns that may.
pub(crate) fn settle_comparisons(expr: Expr, averages: &[ColumnId]) -> Expr {
    expr.map(&mut |expr| match expr.kind {
        ExprKind::Compare { op, by: Comparison::Decimal, left, right } => {
            let side = |expr: Box<Expr>| Box::new(settled_as(*expr, averages));
            let kind = ExprKind::Compare { op, by: Comparison::Decimal, left: side(left), right: side(right) };
            Expr { kind, ..expr }
        }
        kind => Expr { kind, ..expr },
    })
}

/// A DECIMAL as it compares: with the digits that its type shows. A quotient has some more while it is calculated with.
fn settled(expr: Expr) -> Expr {
    settled_as(expr, &[])
}

fn settled_as(expr: Expr, averages: &[ColumnId]) -> Expr {
    if !has_more(&expr, averages) {
        return expr;
    }
    let (ty, nullable, coercibility) = (expr.ty, expr.nullable, expr.coercibility);
    match expr.kind {
        ExprKind::Literal(Value::Decimal(value)) => literal(Value::Decimal(value.rounded(ty.scale)), ty, coercibility),
        kind => {
            let expr = Box::new(Expr { kind, ty, nullable, coercibility });
            Expr { kind: ExprKind::Cast(expr), ty, nullable, coercibility }
        }
    }
}

/// How a value compares with NULL: it never comes to it, but a planner may look.
fn alone(ty: &DataType) -> Comparison {
    match Class::of(ty) {
        _ if ty.kind == TypeKind::Json => Comparison::Json,
        Class::Decimal => Comparison::Decimal,
        Class::Double => Comparison::Double,
        Class::Text => Comparison::Text(ty.collation),
        Class::Bytes => Comparison::Bytes,
        Class::Time => Comparison::Time,
        Class::Date | Class::DateTime => Comparison::DateTime,
        Class::Null | Class::Integer => Comparison::Integer,
    }
}

/// A value beside JSON: a predicate is a boolean, an ENUM or SET its text.
fn beside_json(expr: Expr) -> Expr {
    let expr = members::as_document(expr);
    if !expr.is_boolean() {
        return expr;
    }
    let nullable = expr.nullable;
    let kind = ExprKind::Function { function: &JSON_TRUTH, arguments: vec![expr] };
    Expr { kind, ty: DataType::new(TypeKind::Json), nullable, coercibility: types::NUMERIC }
}

/// A literal in the form in which it will be compared: dates are read once. Error 1525 for a text that is no date.
pub(super) fn adapted(expr: Expr, by: Comparison, other: &DataType) -> Result<Expr> {
    if by == Comparison::Decimal {
        return Ok(settled(as_number(expr)));
    }
    if by == Comparison::Json {
        return Ok(beside_json(expr));
    }
    let expr = if members::as_texts(by) { members::as_text(expr) } else { expr };
    let expr = if matches!(by, Comparison::Double) || Class::of(other).is_number() { as_number(expr) } else { expr };
    if let ExprKind::Parameter(_) = expr.kind
        && by == Comparison::DateTime
        && Class::of(&expr.ty) == Class::Text
    {
        let function = match other.kind {
            TypeKind::Date => &clock::DATE_CONSTANT,
            TypeKind::Timestamp => &clock::TIMESTAMP_CONSTANT,
            TypeKind::DateTime => &clock::DATETIME_CONSTANT,
            _ => return Ok(expr),
        };
        let ty = DataType { scale: 6, ..DataType::new(TypeKind::DateTime) };
        let kind = ExprKind::Function { function, arguments: vec![expr] };
        return Ok(Expr { kind, ty, nullable: true, coercibility: types::NUMERIC });
    }
    let ExprKind::Literal(Value::Str(text)) = &expr.kind else { return Ok(expr) };
    match by {
        Comparison::DateTime if Class::of(other).is_temporal() => {
            let flags = datetime::DateFlags::default();
            match datetime::parse_date_time(text.as_bytes(), flags) {
                // An offset needs the session's time zone.
                Ok(parsed) if parsed.offset.is_some() || parsed.truncated => Ok(expr),
                Ok(parsed) => match parsed.to_precision(6, false) {
                    Some(value) => {
                        let ty = DataType { scale: parsed.fraction_digits, ..DataType::new(TypeKind::DateTime) };
                        Ok(literal(Value::DateTime(value), ty, types::NUMERIC))
                    }
                    None => Ok(expr),
                },
                Err(_) => {
                    let kind = match other.kind {
                        TypeKind::Date => "DATE",
                        TypeKind::Timestamp => "TIMESTAMP",
                        _ => "DATETIME",
                    };
                    Err(wrong_value(kind, text))
                }
            }
        }
        Comparison::Time => match datetime::parse_time(text.as_bytes()) {
            Ok(parsed) if !parsed.truncated && !parsed.out_of_range => {
                let ty = DataType { scale: parsed.fraction_digits, ..DataType::new(TypeKind::Time) };
                Ok(literal(Value::Time(parsed.to_precision(6, false)), ty, types::NUMERIC))
            }
            _ => Ok(expr),
        },
        _ => Ok(expr),
    }
}

/// Keys of rows of literals, if there are many and keys say what is equal; `take` counts their bytes.
pub fn row_keys(
    left: &[Expr],
    rows: &[Vec<(Expr, Comparison)>],
    take: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Option<RowKeys>> {
    if rows.len() < SORTED_LENGTH {
        return Ok(None);
    }
    let mut classes = Vec::with_capacity(left.len());
    for (at, part) in left.iter().enumerate() {
        let (first, by) = &rows[0][at];
        let class = key_class(*by, &part.ty, &first.ty);
        let same = |row: &Vec<(Expr, Comparison)>| row[at].1 == *by && key_class(*by, &part.ty, &row[at].0.ty) == class;
        match class.filter(|_| rows.iter().all(same)) {
            Some(class) => classes.push(class),
            None => return Ok(None),
        }
    }
    let mut keys = rustc_hash::FxHashSet::default();
    let mut nulls = false;
    for row in rows {
        let mut key = Vec::new();
        for ((value, _), class) in row.iter().zip(&classes) {
            let Some(value) = literal_of(value) else { return Ok(None) };
            nulls |= value.is_null();
            append_class_key(value.as_ref(), class, &mut key);
        }
        take(key.len() + 40)?;
        keys.insert(key.into_boxed_slice());
    }
    Ok(Some(RowKeys { classes, keys, nulls }))
}

/// Of a long list of literals.
pub fn sorted_list(items: &[(Expr, Comparison)]) -> Option<Box<SortedList>> {
    if items.len() < SORTED_LENGTH {
        return None;
    }
    let by = items[0].1;
    if items.iter().any(|(_, other)| *other != by) {
        return None;
    }
    match by {
        Comparison::Integer => {
            let mut list =
                items.iter().map(|(e, _)| literal_of(e)?.as_ref().as_integer()).collect::<Option<Vec<_>>>()?;
            list.sort_unstable();
            Some(Box::new(SortedList::Integers(list)))
        }
        Comparison::Text(collation) => {
            let texts = items.iter().map(|(e, _)| literal_of(e)?.as_ref().as_str().map(str::to_string));
            let mut list = texts.collect::<Option<Vec<_>>>()?;
            list.sort_by(|a, b| collation.compare(a.as_bytes(), b.as_bytes()));
            Some(Box::new(SortedList::Texts(list, collation)))
        }
        _ => None,
    }
}

fn literal_of(expr: &Expr) -> Option<&Value> {
    match &expr.kind {
        ExprKind::Literal(value) => Some(value),
        _ => None,
    }
}

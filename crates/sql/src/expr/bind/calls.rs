//! Calls: functions of the registry, and what has nodes of its own (CASE, IF, COALESCE, CAST, dates plus intervals).

use super::aggregates::aggregate_function;
use super::operators::{as_number, boolean};
use super::{Binder, charset_named, literal, members, not_yet, syntax};
use crate::expr::convert::Result;
use crate::expr::functions::json::elements::CAST_ARRAY;
use crate::expr::functions::{self, Typing};
use crate::expr::types::{self, Class, text_type, unify};
use crate::expr::{CaseBranch, CompareOp, Comparison, Expr, ExprKind, WindowFunction, cast};
use crate::nearest;
use crate::parse::ast::{self, Arguments, Call, CastType, TrimSide, UnaryOp, Unit};
use rauk_types::error::codes;
use rauk_types::{Charset, Collation, DataType, MysqlError, TypeKind, Value};
use std::sync::atomic::{AtomicI64, Ordering};

fn wrong_count(name: &str) -> MysqlError {
    MysqlError::new(
        codes::WRONG_PARAMCOUNT_TO_NATIVE_FCT,
        format!("Incorrect parameter count in the call to native function '{name}'"),
    )
}

fn unknown_function(name: &str) -> MysqlError {
    MysqlError::new(codes::SP_DOES_NOT_EXIST, format!("FUNCTION {name} does not exist"))
}

/// The same, with the nearest function there is.
fn no_such_function(name: &str) -> MysqlError {
    let MysqlError { code, message, .. } = unknown_function(name);
    MysqlError::new(code, format!("{message}{}", nearest::hint(name, functions::names())))
}

/// The expression as a value of type `ty`, when it is of another class.
pub fn converted(expr: Expr, ty: &DataType) -> Expr {
    let expr = if Class::of(ty).is_number() || expr.ty == *ty { expr } else { members::as_text(expr) };
    let (from, to) = (Class::of(&expr.ty), Class::of(ty));
    let same = from == to
        && (expr.ty.kind == TypeKind::Json) == (ty.kind == TypeKind::Json)
        && (from != Class::Integer || expr.ty.unsigned == ty.unsigned);
    // A DATE among DATETIMEs gets its time, a decimal keeps its digits: the type says how many are shown.
    if same || from == Class::Null {
        return expr;
    }
    // Text is never cut here.
    let target = if ty.is_text() {
        DataType { length: cast::NO_LENGTH, ..*ty }
    } else if ty.is_bytes() {
        DataType { length: cast::NO_LENGTH, ..DataType::new(TypeKind::VarBinary) }
    } else {
        *ty
    };
    let (nullable, coercibility) = (expr.nullable, expr.coercibility);
    Expr { kind: ExprKind::Cast(Box::new(expr)), ty: target, nullable, coercibility }
}

/// Calls of RAND(seed), SLEEP and GET_LOCK's family that have been bound: each has a number of its own.
static CALLS: AtomicI64 = AtomicI64::new(0);

impl Binder<'_> {
    pub fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        written: &[(ast::Expr, ast::Expr)],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Expr> {
        let mut operand = operand.map(|e| self.bind(e)).transpose()?;
        // A hexadecimal literal is a number beside numbers and bytes beside texts: each WHEN compares on its own.
        // So is an ENUM or SET.
        let two = |o: &Expr| types::is_hex(&o.ty) || o.ty.has_members();
        let literal = if operand.as_ref().is_some_and(two) { operand.take() } else { None };
        let mut branches = Vec::with_capacity(written.len());
        let bound = written.iter().map(|(when, then)| Ok((self.bind(when)?, self.bind(then)?)));
        let bound = bound.collect::<Result<Vec<_>>>()?;
        let by = match &operand {
            Some(operand) => {
                self.comparisons(operand, &bound.iter().map(|(when, _)| when).collect::<Vec<_>>(), "case")?
            }
            None => Vec::new(),
        };
        for (number, (mut when, then)) in bound.into_iter().enumerate() {
            let by = match (&operand, &literal) {
                (Some(operand), _) => {
                    let by = by[number];
                    if by == Comparison::Double || Class::of(&operand.ty).is_number() {
                        when = as_number(when);
                    }
                    if members::as_texts(by) {
                        when = members::as_text(when);
                    }
                    by
                }
                (None, Some(literal)) => {
                    when = self.compare(CompareOp::Eq, literal.clone(), when)?;
                    Comparison::Integer
                }
                (None, None) => Comparison::Integer,
            };
            branches.push(CaseBranch { when, by, then });
        }
        let otherwise = otherwise.map(|e| self.bind(e)).transpose()?;
        self.case_of(operand, branches, otherwise, "case")
    }

    /// A CASE whose parts are bound: its type, and the branches converted to it.
    pub fn case_of(
        &mut self,
        operand: Option<Expr>,
        branches: Vec<CaseBranch>,
        otherwise: Option<Expr>,
        name: &str,
    ) -> Result<Expr> {
        let results = branches.iter().map(|b| &b.then).chain(&otherwise);
        let (ty, coercibility) = unify(results, name, self.context.collation)?;
        let nullable = branches.iter().any(|b| b.then.nullable) || otherwise.as_ref().is_none_or(|e| e.nullable);
        let branches = branches.into_iter().map(|b| CaseBranch { then: converted(b.then, &ty), ..b }).collect();
        let otherwise = otherwise.map(|e| Box::new(converted(e, &ty)));
        Ok(Expr {
            kind: ExprKind::Case { operand: operand.map(Box::new), branches, otherwise },
            ty,
            nullable,
            coercibility,
        })
    }

    fn coalesce(&mut self, items: Vec<Expr>, name: &str) -> Result<Expr> {
        let (ty, coercibility) = unify(&items, name, self.context.collation)?;
        let nullable = items.iter().all(|e| e.nullable);
        let items = items.into_iter().map(|e| converted(e, &ty)).collect();
        Ok(Expr { kind: ExprKind::Coalesce(items), ty, nullable, coercibility })
    }

    pub fn cast(&mut self, expr: &ast::Expr, target: &CastType, text: impl Fn() -> String) -> Result<Expr> {
        if let CastType::Array(element) = target
            && self.context.arrays
        {
            return self.cast_array(expr, element, text);
        }
        let boolean = super::is_boolean(expr);
        let expr = self.bind(expr)?;
        let ty = types::cast_type(target, self.text_connection(), text)?;
        if ty.kind == TypeKind::Json {
            let expr = members::as_document(expr);
            let expr = if boolean { self.boolean_document(expr)? } else { expr };
            return Ok(self.cast_to(expr, ty));
        }
        let expr = if ty.is_numeric() { as_number(expr) } else { members::as_text(expr) };
        Ok(self.cast_to(expr, ty))
    }

    /// The elements of a document, as a key has them. Error 1235 for types that keys have not.
    fn cast_array(&mut self, expr: &ast::Expr, element: &CastType, text: impl Fn() -> String) -> Result<Expr> {
        let refused = |what: &str| errors_of_arrays(&format!("CAST-ing data to array of {what}"));
        let ty = match element {
            CastType::Char { charset: Some(set), .. } if !set.eq_ignore_ascii_case("utf8mb4") => {
                return Err(refused("non-utf8mb4 strings"));
            }
            CastType::Char { length: None, .. } => return Err(refused("char/binary BLOBs")),
            CastType::Binary(_) => return Err(refused("BINARY")),
            CastType::Json => return Err(refused("JSON")),
            CastType::Float(_) => return Err(refused("FLOAT")),
            CastType::Double => return Err(refused("DOUBLE")),
            CastType::Array(_) => return Err(super::syntax("array")),
            element => types::cast_type(element, Collation::DEFAULT, text)?,
        };
        // Texts that MySQL takes as equal in such an index.
        let collation = Collation::from_name("utf8mb4_0900_as_cs").expect("it is there");
        let ty = if ty.is_text() { DataType { collation, ..ty } } else { ty };
        let document = self.bind_document_of(expr)?;
        let of = Expr { ty, ..Expr::null() };
        self.registered(&CAST_ARRAY, vec![document, of])
    }

    fn bind_document_of(&mut self, expr: &ast::Expr) -> Result<Expr> {
        let boolean = super::is_boolean(expr);
        let bound = members::as_document(self.bind(expr)?);
        let bound = if boolean { self.boolean_document(bound)? } else { bound };
        let json = DataType::new(TypeKind::Json);
        Ok(if bound.ty.kind == TypeKind::Json { bound } else { self.cast_to(bound, json) })
    }

    pub fn cast_to(&self, expr: Expr, ty: DataType) -> Expr {
        let coercibility = if Class::of(&ty).is_string() { types::IMPLICIT } else { types::NUMERIC };
        let may_fail = Class::of(&ty).is_temporal() && !Class::of(&expr.ty).is_temporal();
        let nullable = expr.nullable || may_fail || expr.ty.is_bytes() && ty.is_text();
        Expr { kind: ExprKind::Cast(Box::new(expr)), ty, nullable, coercibility }
    }

    /// JSON_VALUE with more than a document and a path: a call with what to do, and the values of DEFAULT.
    pub fn json_value(&mut self, call: &ast::JsonValue) -> Result<Expr> {
        let document = self.bind(&call.document)?;
        let ty = match &call.returning {
            Some(target) => types::cast_type(target, Collation::Utf8mb4Bin, || "JSON_VALUE".to_string())?,
            None => text_type(512, Collation::Utf8mb4Bin),
        };
        let mut arguments = vec![document, self.text_literal(call.path.clone())];
        for action in [&call.on_empty, &call.on_error] {
            let (number, value) = match action {
                None | Some(ast::OnNoValue::Null) => (0, Expr::null()),
                Some(ast::OnNoValue::Error) => (1, Expr::null()),
                Some(ast::OnNoValue::Default(value)) => (0, self.bind(value)?),
            };
            arguments.push(literal(Value::Int(number), DataType::BIGINT, types::NUMERIC));
            arguments.push(if Class::of(&value.ty) == Class::Null { value } else { self.cast_to(value, ty) });
        }
        let value = self.call("JSON_VALUE_OF", arguments)?;
        let coercibility = if ty.is_text() { types::COERCIBLE } else { types::NUMERIC };
        Ok(Expr { ty, nullable: true, coercibility, ..value })
    }

    fn text_connection(&self) -> Collation {
        if self.context.collation == Collation::Binary { Collation::DEFAULT } else { self.context.collation }
    }

    /// CONVERT(x USING charset): of the set's default collation, whatever the connection's; `binary` gives the bytes.
    pub fn convert_using(&mut self, expr: &ast::Expr, charset: &str) -> Result<Expr> {
        let expr = members::as_text(self.bind(expr)?);
        let set = charset_named(charset)?;
        if set == Charset::BINARY {
            return Ok(self.cast_to(expr, DataType::varbinary(cast::NO_LENGTH)));
        }
        let length = types::text_length(&expr.ty);
        let ty = text_type(length, Collation::of_charset(set));
        if expr.ty.is_text() && expr.ty.kind != TypeKind::Json && types::is_superset(set, expr.ty.collation.charset()) {
            let (nullable, kind) = (expr.nullable, ExprKind::Collate(Box::new(expr)));
            return Ok(Expr { kind, ty, nullable, coercibility: types::IMPLICIT });
        }
        // It is never cut; the type says how long a text may be.
        let converted = self.cast_to(expr, DataType { length: cast::NO_LENGTH, ..ty });
        let (nullable, coercibility) = (converted.nullable, converted.coercibility);
        Ok(Expr { kind: ExprKind::Collate(Box::new(converted)), ty, nullable, coercibility })
    }

    pub fn collate(&mut self, expr: &ast::Expr, name: &str) -> Result<Expr> {
        let expr = members::as_text(self.bind(expr)?);
        let Some(collation) = Collation::from_name(name) else {
            return Err(MysqlError::new(codes::UNKNOWN_COLLATION, format!("Unknown collation: '{name}'")));
        };
        let set = if expr.ty.is_bytes() || expr.ty.kind == TypeKind::Bit {
            Charset::BINARY
        } else if expr.ty.is_text() {
            expr.ty.collation.charset()
        } else {
            self.text_connection().charset()
        };
        // What tables of the system show is utf8mb4 here and utf8mb3 in MySQL, whose collations tools write beside it.
        let system = set == Charset::UTF8MB4 && collation.charset() == Charset::UTF8MB3 && self.is_of_system(&expr);
        if collation.charset() != set && !system {
            let message = format!("COLLATION '{name}' is not valid for CHARACTER SET '{}'", set.name());
            return Err(MysqlError::new(COLLATION_CHARSET_MISMATCH, message));
        }
        let ty = if expr.ty.is_text() {
            DataType { collation, ..expr.ty }
        } else {
            text_type(types::text_length(&expr.ty), collation)
        };
        let nullable = expr.nullable;
        let expr = converted(expr, &ty);
        Ok(Expr { kind: ExprKind::Collate(Box::new(expr)), ty, nullable, coercibility: types::EXPLICIT })
    }

    fn is_of_system(&self, expr: &Expr) -> bool {
        let mut found = matches!(expr.kind, ExprKind::Reference(id) if self.scope.is_of_system(id));
        expr.for_each_child(&mut |child| found = found || crate::stack::grow(|| self.is_of_system(child)));
        found
    }

    pub fn extract(&mut self, unit: Unit, operand: &ast::Expr) -> Result<Expr> {
        let unit = self.text_literal(unit.name().to_string());
        let value = self.bind(operand)?;
        self.call("EXTRACT", vec![unit, value])
    }

    pub fn timestamp_diff(&mut self, unit: Unit, from: &ast::Expr, to: &ast::Expr) -> Result<Expr> {
        let unit = self.text_literal(unit.name().to_string());
        let arguments = vec![unit, self.bind(from)?, self.bind(to)?];
        self.call("TIMESTAMPDIFF", arguments)
    }

    /// WEIGHT_STRING(x AS CHAR(n)): a second argument says how many characters; AS BINARY(n) casts.
    pub fn weight_string(&mut self, operand: &ast::Expr, binary: bool, length: u32) -> Result<Expr> {
        let operand = self.bind(operand)?;
        let arguments = match binary {
            true => vec![self.cast_to(operand, DataType { length, ..DataType::new(TypeKind::Binary) })],
            false => vec![operand, literal(Value::Int(length.into()), DataType::BIGINT, types::NUMERIC)],
        };
        self.registered(functions::find("WEIGHT_STRING").expect("it is there"), arguments)
    }

    pub fn trim(&mut self, side: TrimSide, what: Option<&ast::Expr>, operand: &ast::Expr) -> Result<Expr> {
        let mut arguments = vec![self.bind(operand)?];
        if let Some(what) = what {
            arguments.push(self.bind(what)?);
        }
        let name = match side {
            TrimSide::Both => "TRIM",
            TrimSide::Leading => "LTRIM",
            TrimSide::Trailing => "RTRIM",
        };
        self.call(name, arguments)
    }

    pub fn function(&mut self, call: &Call) -> Result<Expr> {
        let written = &call.name;
        if call.database.as_deref() == Some("sys")
            && let Some(meaning) = super::sys::meaning(call)
        {
            return self.bind(&meaning);
        }
        if let Some(database) = &call.database {
            return Err(unknown_function(&format!("{database}.{written}")));
        }
        let name = written.to_ascii_uppercase();
        if call.over.is_some() || WindowFunction::from_name(&name).is_some() {
            return self.window_call(call, &name);
        }
        if let Some(function) = aggregate_function(&name) {
            self.scope.within_aggregate(true);
            let bound = self.aggregate(function, call, &name);
            self.scope.within_aggregate(false);
            return bound;
        }
        let arguments = match &call.arguments {
            Arguments::List { distinct: false, items } if call.order_by.is_empty() && call.separator.is_none() => items,
            _ => return Err(wrong_count(written)),
        };
        match (name.as_str(), arguments.as_slice()) {
            ("NAME_CONST", [name, value]) if !is_written_out(name) || !is_written_out(value) => {
                return Err(MysqlError::new(codes::WRONG_ARGUMENTS, "Incorrect arguments to NAME_CONST"));
            }
            // These are nodes where they are written in their grammar. A quoted name finds nothing, and a second argument says a side.
            ("EXTRACT" | "TIMESTAMPDIFF" | "TRIM", _) => return Err(unknown_function(written)),
            ("LTRIM" | "RTRIM", [_, _]) => return Err(wrong_count(written)),
            ("DATE_ADD" | "ADDDATE" | "DATE_SUB" | "SUBDATE", [date, ast::Expr::Interval { amount, unit }]) => {
                let (date, amount) = (self.bind(date)?, self.bind(amount)?);
                let subtract = matches!(name.as_str(), "DATE_SUB" | "SUBDATE");
                return Ok(self.date_add(date, amount, *unit, subtract));
            }
            _ => {}
        }
        let mut bound = Vec::with_capacity(arguments.len());
        let documents = name.starts_with("JSON_") && functions::makes_documents(&name);
        for argument in arguments {
            bound.push(if documents { self.bind_for_document(argument)? } else { self.bind(argument)? });
        }
        if name == "GROUPING" {
            if bound.is_empty() {
                return Err(syntax(")"));
            }
            let kind = self.scope.grouping(bound)?;
            return Ok(Expr { kind, ty: DataType::BIGINT, nullable: false, coercibility: types::NUMERIC });
        }
        self.call_written(&name, written, bound)
    }

    pub fn call(&mut self, name: &str, arguments: Vec<Expr>) -> Result<Expr> {
        self.call_written(name, name, arguments)
    }

    /// A call of the function `name` (upper case), which errors show as `written`.
    fn call_written(&mut self, name: &str, written: &str, mut arguments: Vec<Expr>) -> Result<Expr> {
        let count = arguments.len();
        let expect = |range: std::ops::RangeInclusive<usize>| {
            if range.contains(&count) { Ok(()) } else { Err(wrong_count(written)) }
        };
        match name {
            "IF" => {
                expect(3..=3)?;
                let otherwise = arguments.pop();
                let (then, when) =
                    (arguments.pop().unwrap_or_else(Expr::null), arguments.pop().unwrap_or_else(Expr::null));
                let branch = CaseBranch { when, by: Comparison::Integer, then };
                return self.case_of(None, vec![branch], otherwise, "if");
            }
            "IFNULL" | "NVL" => {
                expect(2..=2)?;
                return self.coalesce(arguments, "ifnull");
            }
            "COALESCE" => {
                expect(1..=usize::MAX)?;
                return self.coalesce(arguments, "coalesce");
            }
            "NULLIF" => {
                expect(2..=2)?;
                let right = arguments.pop().unwrap_or_else(Expr::null);
                let left = arguments.pop().unwrap_or_else(Expr::null);
                if !left.is_simple() {
                    let (ty, coercibility) = unify([&Expr::null(), &left], "nullif", self.context.collation)?;
                    let left_type = (left.ty, left.coercibility);
                    let equal = self.compare_as(CompareOp::Eq, left, right, "nullif")?;
                    let ExprKind::Compare { by, left, right, .. } = equal.kind else { unreachable!("made so") };
                    let kind = ExprKind::NullIf { by, left, right };
                    let value = Expr { kind, ty: left_type.0, nullable: true, coercibility: left_type.1 };
                    return Ok(Expr { nullable: true, coercibility, ..converted(value, &ty) });
                }
                let when = self.compare_as(CompareOp::Eq, left.clone(), right, "nullif")?;
                let branch = CaseBranch { when, by: Comparison::Integer, then: Expr::null() };
                let mut result = self.case_of(None, vec![branch], Some(left), "nullif")?;
                result.nullable = true;
                return Ok(result);
            }
            "ISNULL" => {
                expect(1..=1)?;
                let expr = Box::new(arguments.pop().unwrap_or_else(Expr::null));
                return Ok(boolean(ExprKind::IsNull { expr, negated: false }, false));
            }
            "MOD" => {
                expect(2..=2)?;
                let right = arguments.pop().unwrap_or_else(Expr::null);
                let left = arguments.pop().unwrap_or_else(Expr::null);
                return self.arithmetic(crate::expr::ArithmeticOp::Modulo, left, right, || "mod()".into());
            }
            "ADDDATE" | "SUBDATE" => {
                expect(2..=2)?;
                let amount = arguments.pop().unwrap_or_else(Expr::null);
                let date = arguments.pop().unwrap_or_else(Expr::null);
                return Ok(self.date_add(date, amount, Unit::Day, name == "SUBDATE"));
            }
            "REGEXP_LIKE" if count == 2 => {
                let pattern = members::as_shown(arguments.pop().unwrap_or_else(Expr::null));
                let expr = members::as_shown(arguments.pop().unwrap_or_else(Expr::null));
                let collation =
                    types::aggregate_collations([&expr, &pattern], "regexp_like", self.context.collation)?.0;
                let nullable = expr.nullable || pattern.nullable;
                let case_insensitive = !collation.is_case_sensitive();
                let regexp = crate::expr::Regexp { expr, pattern, negated: false, case_insensitive, compiled: None };
                return Ok(boolean(ExprKind::Regexp(Box::new(regexp)), nullable));
            }
            "CHARSET" | "COLLATION" | "COERCIBILITY" => {
                expect(1..=1)?;
                return Ok(self.about_collation(name, &arguments[0]));
            }
            _ => {}
        }
        let Some(function) = functions::find(name) else {
            if let Some(refusal) = functions::internal::refusal(name, written) {
                return Err(refusal);
            }
            if functions::is_not_yet(name) {
                return Err(not_yet(name));
            }
            return Err(no_such_function(written));
        };
        expect(function.min.into()..=if function.max == u8::MAX { usize::MAX } else { function.max.into() })?;
        if function.max == u8::MAX && function.step == 2 && count % 2 == 1 {
            return Err(wrong_count(written));
        }
        if function.name == "RAND" && count == 1 && arguments[0].is_constant() && !arguments[0].has_subquery() {
            // Each call has a sequence of its own.
            let number = CALLS.fetch_add(1, Ordering::Relaxed);
            arguments.push(literal(Value::Int(number), DataType::BIGINT, types::NUMERIC));
        }
        self.add_formats(function.name, &mut arguments);
        if function.waits {
            self.context.waits.store(true, Ordering::Relaxed);
            let number = CALLS.fetch_add(1, Ordering::Relaxed);
            arguments.push(literal(Value::Int(number), DataType::BIGINT, types::NUMERIC));
        }
        self.registered(function, arguments)
    }

    /// Arguments for what default_week_format and lc_time_names say where the statement does not.
    fn add_formats(&self, name: &str, arguments: &mut Vec<Expr>) {
        let formats = self.context.sql_mode.formats;
        let named = match (name, arguments.len()) {
            ("WEEK", 1) if formats.week != 0 => {
                arguments.push(literal(Value::Int(formats.week.into()), DataType::BIGINT, types::NUMERIC));
                return;
            }
            ("DAYNAME" | "MONTHNAME", 1) | ("DATE_FORMAT" | "FROM_UNIXTIME", 2) => formats.locale,
            _ => return,
        };
        if let Some(locale) = functions::locale::numbered(named.into()).filter(|_| named != 0) {
            arguments.push(self.text_literal(locale.name.to_string()));
        }
    }

    /// A call of a function of the registry, with as many arguments as it takes.
    fn registered(&self, function: &'static functions::Function, mut arguments: Vec<Expr>) -> Result<Expr> {
        if function.coded {
            arguments = arguments.into_iter().map(types::coded).collect();
        }
        let is_geometry = |argument: &Expr| argument.ty.kind == TypeKind::Geometry;
        if arguments.iter().any(is_geometry) && functions::is_of_numbers(function) {
            types::refuse_geometry(&arguments, &function.name.to_ascii_lowercase())?;
        }
        let typing = Typing { name: function.name, arguments: &mut arguments, context: self.context };
        let derived = (function.ty)(typing)?;
        let nullable = derived.nullable || function.null_on_null && arguments.iter().any(|a| a.nullable);
        Ok(Expr {
            kind: ExprKind::Function { function, arguments },
            ty: derived.ty,
            nullable,
            coercibility: derived.coercibility,
        })
    }

    /// What is known of an expression's collation without its value.
    fn about_collation(&self, name: &str, expr: &Expr) -> Expr {
        let collation = if Class::of(&expr.ty) == Class::Text { expr.ty.collation } else { Collation::Binary };
        match name {
            "COERCIBILITY" => literal(Value::Int(expr.coercibility.into()), DataType::BIGINT, types::NUMERIC),
            "CHARSET" => literal(
                Value::from(collation.charset_name()),
                text_type(64, Collation::Utf8mb4GeneralCi),
                types::COERCIBLE,
            ),
            _ => literal(Value::from(collation.name()), text_type(64, Collation::Utf8mb4GeneralCi), types::COERCIBLE),
        }
    }
}

fn errors_of_arrays(what: &str) -> MysqlError {
    MysqlError::new(codes::NOT_SUPPORTED_YET, format!("This version of MySQL doesn't yet support '{what}'"))
}

/// Whether NAME_CONST takes it: a literal, with a sign or a collation at most.
fn is_written_out(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Literal(_) => true,
        ast::Expr::Collate { operand, .. } | ast::Expr::Unary { op: UnaryOp::Minus | UnaryOp::Plus, operand } => {
            is_written_out(operand)
        }
        _ => false,
    }
}

/// ER_COLLATION_CHARSET_MISMATCH.
const COLLATION_CHARSET_MISMATCH: u16 = 1253;

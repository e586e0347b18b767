//! Expressions.
//!
//! Each operator stands in parentheses of its own, so that its text reads the same wherever it is put. What stands
//! without are primaries: literals, names, variables, calls and subqueries; and signs (`-5`, ``-(`a`)``), which only
//! COLLATE and `->` would bind more tightly than.

use super::{Construct, Print, Printer, is_plain_word};
use crate::parse::ast::{
    Arguments, BinaryOp, Call, CastType, Expr, Introducer, IsTest, Literal, MatchMode, NullTreatment, OnNoValue,
    Quantifier, TrimSide, UnaryOp,
};
use crate::parse::reserved::{is_reserved, is_reserved_function};
use crate::parse::statement::Scope;
use crate::stack;
use std::fmt;

/// Words that the parser reads in a way of their own when a parenthesis follows. As names of functions they need
/// quotes.
const OWN_GRAMMAR: &[&str] = &[
    "any",
    "cast",
    "char",
    "convert",
    "exists",
    "extract",
    "get_format",
    "match",
    "position",
    "some",
    "timestampadd",
    "timestampdiff",
    "trim",
    "values",
];

/// What GET_FORMAT may begin with: words without quotes.
const FORMAT_KINDS: [&str; 4] = ["DATE", "TIME", "DATETIME", "TIMESTAMP"];

fn not(negated: bool) -> &'static str {
    if negated { " not" } else { "" }
}

impl Printer<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> fmt::Result {
        let Some(below) = self.levels.checked_sub(1) else { return self.text("...") };
        let levels = std::mem::replace(&mut self.levels, below);
        let result = stack::grow(|| self.node(expr));
        self.levels = levels;
        result
    }

    fn node(&mut self, expr: &Expr) -> fmt::Result {
        match expr {
            Expr::Literal(literal) => self.literal(literal),
            Expr::Column(column) => self.column_name(column),
            Expr::Parameter(_) => self.text("?"),
            Expr::UserVariable(name) => self.user_variable(name),
            Expr::AssignVariable { name, value } => {
                self.text("(")?;
                self.user_variable(name)?;
                self.text(":=")?;
                self.expr(value)?;
                self.text(")")
            }
            Expr::SystemVariable { scope, name } => self.system_variable(*scope, name),
            Expr::Default => self.text("default"),
            Expr::DefaultOf(column) => {
                self.text("default(")?;
                self.column_name(column)?;
                self.text(")")
            }
            Expr::InsertedValue(column) => {
                self.text("values(")?;
                self.column_name(column)?;
                self.text(")")
            }
            Expr::Unary { op, operand } => self.unary(*op, operand),
            Expr::Binary { op: op @ (BinaryOp::And | BinaryOp::Or), .. } => self.junction(*op, expr),
            Expr::Binary { op: BinaryOp::Concat, left, right } => {
                self.text("concat(")?;
                self.expr(left)?;
                self.text(",")?;
                self.expr(right)?;
                self.text(")")
            }
            Expr::Binary { op, left, right } => self.infix(left, &[op.symbol()], right),
            Expr::Is { operand, test, negated } => {
                self.text("(")?;
                self.expr(operand)?;
                let test = match test {
                    IsTest::Null => "null",
                    IsTest::True => "true",
                    IsTest::False => "false",
                    IsTest::Unknown => "unknown",
                };
                write!(self.out, " is{} {test})", not(*negated))
            }
            Expr::Between { operand, low, high, negated } => {
                self.text("(")?;
                self.expr(operand)?;
                write!(self.out, "{} between ", not(*negated))?;
                self.expr(low)?;
                self.text(" and ")?;
                self.expr(high)?;
                self.text(")")
            }
            Expr::InList { operand, list, negated } => {
                self.text("(")?;
                self.expr(operand)?;
                write!(self.out, "{} in (", not(*negated))?;
                self.exprs(list)?;
                self.text("))")
            }
            Expr::InQuery { operand, query, negated } => {
                self.text("(")?;
                self.expr(operand)?;
                write!(self.out, "{} in ", not(*negated))?;
                self.subquery(query)?;
                self.text(")")
            }
            Expr::Like { operand, pattern, escape, negated } => {
                self.text("(")?;
                self.expr(operand)?;
                write!(self.out, "{} like ", not(*negated))?;
                self.expr(pattern)?;
                if let Some(escape) = escape {
                    self.text(" escape ")?;
                    self.expr(escape)?;
                }
                self.text(")")
            }
            Expr::Regexp { operand, pattern, negated } => {
                self.infix(operand, if *negated { &["not", "regexp"] } else { &["regexp"] }, pattern)
            }
            Expr::MemberOf { value, array } => {
                self.meets_if(true, Construct::MemberOf);
                self.text("(")?;
                self.expr(value)?;
                self.text(" member of (")?;
                self.expr(array)?;
                self.text("))")
            }
            Expr::JsonValue(call) => {
                self.meets_if(true, Construct::JsonValueClauses);
                self.text("json_value(")?;
                self.expr(&call.document)?;
                self.text(",")?;
                self.string(&call.path)?;
                if let Some(returning) = &call.returning {
                    self.text(" returning ")?;
                    self.cast_type(returning)?;
                }
                for (action, place) in [(&call.on_empty, " on empty"), (&call.on_error, " on error")] {
                    match action {
                        None => continue,
                        Some(OnNoValue::Null) => self.text(" null")?,
                        Some(OnNoValue::Error) => self.text(" error")?,
                        Some(OnNoValue::Default(value)) => {
                            self.text(" default ")?;
                            self.expr(value)?;
                        }
                    }
                    self.text(place)?;
                }
                self.text(")")
            }
            Expr::JsonPath { column, path, unquote } if self.has_json_functions() => {
                self.text(if *unquote { "json_unquote(json_extract(" } else { "json_extract(" })?;
                self.expr(column)?;
                self.text(",")?;
                self.string(path)?;
                self.text(if *unquote { "))" } else { ")" })
            }
            Expr::JsonPath { column, path, unquote } => {
                self.text("(")?;
                self.tight(column)?;
                self.text(if *unquote { "->>" } else { "->" })?;
                self.string(path)?;
                self.text(")")
            }
            Expr::Row(items) => {
                // One item in parentheses would be the item.
                self.meets_if(items.len() == 1, Construct::RowOfOne);
                self.text(if items.len() == 1 { "row(" } else { "(" })?;
                self.exprs(items)?;
                self.text(")")
            }
            Expr::Subquery(query) => self.subquery(query),
            Expr::Exists(query) => {
                self.text("exists")?;
                self.subquery(query)
            }
            Expr::Quantified { left, op, quantifier, query } => {
                self.text("(")?;
                self.expr(left)?;
                let quantifier = match quantifier {
                    Quantifier::Any => "any",
                    Quantifier::All => "all",
                };
                write!(self.out, " {} {quantifier} ", op.symbol())?;
                self.subquery(query)?;
                self.text(")")
            }
            Expr::Case { operand, branches, otherwise } => {
                self.text("(case")?;
                if let Some(operand) = operand {
                    self.text(" ")?;
                    self.expr(operand)?;
                }
                for (when, then) in branches {
                    self.text(" when ")?;
                    self.expr(when)?;
                    self.text(" then ")?;
                    self.expr(then)?;
                }
                if let Some(otherwise) = otherwise {
                    self.text(" else ")?;
                    self.expr(otherwise)?;
                }
                self.text(" end)")
            }
            Expr::Cast { operand, target } => {
                self.text("cast(")?;
                self.expr(operand)?;
                self.text(" as ")?;
                self.cast_type(target)?;
                self.text(")")
            }
            Expr::ConvertUsing { operand, charset } => {
                self.text("convert(")?;
                self.expr(operand)?;
                self.text(" using ")?;
                self.charset(charset)?;
                self.text(")")
            }
            Expr::Collate { operand, collation } => {
                self.text("(")?;
                self.tight(operand)?;
                self.text(" collate ")?;
                self.collation(collation)?;
                self.text(")")
            }
            Expr::Extract { unit, operand } => {
                write!(self.out, "extract({} from ", unit.name().to_ascii_lowercase())?;
                self.expr(operand)?;
                self.text(")")
            }
            Expr::WeightString { operand, binary, length } => {
                self.text("weight_string(")?;
                self.expr(operand)?;
                write!(self.out, " as {}({length}))", if *binary { "binary" } else { "char" })
            }
            Expr::Trim { side, what, operand } => {
                self.text("trim(")?;
                self.text(match (side, what) {
                    (TrimSide::Both, None) => "",
                    (TrimSide::Both, Some(_)) => "both ",
                    (TrimSide::Leading, _) => "leading ",
                    (TrimSide::Trailing, _) => "trailing ",
                })?;
                if let Some(what) = what {
                    self.expr(what)?;
                    self.text(" ")?;
                }
                if what.is_some() || *side != TrimSide::Both {
                    self.text("from ")?;
                }
                self.expr(operand)?;
                self.text(")")
            }
            Expr::Interval { amount, unit } => {
                self.text("interval ")?;
                // `INTERVAL (1, 2)` is the function.
                self.enclosed_unless(!matches!(&**amount, Expr::Row(_)), amount)?;
                write!(self.out, " {}", unit.name().to_ascii_lowercase())
            }
            Expr::TimestampAdd { unit, amount, date } => {
                write!(self.out, "timestampadd({},", unit.name())?;
                self.expr(amount)?;
                self.text(",")?;
                self.expr(date)?;
                self.text(")")
            }
            Expr::TimestampDiff { unit, from, to } => {
                write!(self.out, "timestampdiff({},", unit.name())?;
                self.expr(from)?;
                self.text(",")?;
                self.expr(to)?;
                self.text(")")
            }
            Expr::Match { columns, against, mode } => {
                self.text("(match ")?;
                self.list(columns, |p, column| p.column_name(column))?;
                self.text(" against (")?;
                self.expr(against)?;
                self.text(match mode {
                    MatchMode::Natural => "",
                    MatchMode::NaturalWithExpansion => " in natural language mode with query expansion",
                    MatchMode::Boolean => " in boolean mode",
                    MatchMode::Expansion => " with query expansion",
                })?;
                self.text("))")
            }
            Expr::Call(call) => self.call(call),
        }
    }

    /// `(left operator right)`
    fn infix(&mut self, left: &Expr, operator: &[&str], right: &Expr) -> fmt::Result {
        self.text("(")?;
        self.expr(left)?;
        for word in operator {
            write!(self.out, " {word}")?;
        }
        self.text(" ")?;
        self.expr(right)?;
        self.text(")")
    }

    /// The operands of a chain of AND, or of OR: `(a and b and c)`, whatever the shape of the tree.
    fn junction(&mut self, op: BinaryOp, chain: &Expr) -> fmt::Result {
        self.text("(")?;
        let mut waiting = vec![chain];
        let mut is_first = true;
        while let Some(expr) = waiting.pop() {
            match expr {
                Expr::Binary { op: other, left, right } if *other == op => waiting.extend([&**right, &**left]),
                operand => {
                    if !is_first {
                        write!(self.out, " {} ", op.symbol())?;
                    }
                    is_first = false;
                    self.expr(operand)?;
                }
            }
        }
        self.text(")")
    }

    fn unary(&mut self, op: UnaryOp, operand: &Expr) -> fmt::Result {
        self.text(match op {
            UnaryOp::Plus => "+",
            UnaryOp::Minus => "-",
            UnaryOp::BitNot => "~",
            UnaryOp::Not => "(not(",
        })?;
        if op == UnaryOp::Not {
            self.expr(operand)?;
            return self.text("))");
        }
        let is_bare = match operand {
            Expr::Literal(_) | Expr::Parameter(_) => true,
            operand => has_parentheses(operand),
        };
        self.enclosed_unless(is_bare, operand)
    }

    /// An operand of what binds more tightly than signs do.
    fn tight(&mut self, operand: &Expr) -> fmt::Result {
        let is_signed = matches!(operand, Expr::Unary { op: UnaryOp::Plus | UnaryOp::Minus | UnaryOp::BitNot, .. });
        self.enclosed_unless(!is_signed, operand)
    }

    fn enclosed_unless(&mut self, is_bare: bool, expr: &Expr) -> fmt::Result {
        if is_bare {
            return self.expr(expr);
        }
        self.text("(")?;
        self.expr(expr)?;
        self.text(")")
    }

    // Variables

    /// `@name`, in backquotes whatever the sql_mode where it is not a word.
    pub(super) fn user_variable(&mut self, name: &str) -> fmt::Result {
        self.text("@")?;
        if !name.is_empty() && name.split('.').all(is_variable_part) { self.text(name) } else { self.quoted(name, '`') }
    }

    fn system_variable(&mut self, scope: Scope, name: &str) -> fmt::Result {
        self.text(match scope {
            Scope::Default => "@@",
            Scope::Session => "@@session.",
            Scope::Global => "@@global.",
            Scope::Persist => "@@persist.",
        })?;
        for (at, part) in name.split('.').enumerate() {
            if at > 0 {
                self.text(".")?;
            }
            if is_variable_part(part) { self.text(part)? } else { self.quoted(part, '`')? }
        }
        Ok(())
    }

    // Literals

    fn literal(&mut self, literal: &Literal) -> fmt::Result {
        match literal {
            Literal::Null => self.text("NULL"),
            Literal::Boolean(true) => self.text("true"),
            Literal::Boolean(false) => self.text("false"),
            Literal::Number(digits) => self.text(digits),
            Literal::Text { value, introducer } => {
                match introducer {
                    Some(introducer) if self.is_bare(introducer) => {}
                    Some(Introducer::National) => self.text("N")?,
                    None if self.of_own_row => self.text("_utf8mb4")?,
                    introducer => self.introducer(introducer.as_ref(), "")?,
                }
                self.string(value)
            }
            Literal::Hex { digits, introducer } => {
                self.introducer(introducer.as_ref(), " ")?;
                if digits.is_empty() { self.text("x''") } else { write!(self.out, "0x{digits}") }
            }
            Literal::Bits { digits, introducer } => {
                self.introducer(introducer.as_ref(), " ")?;
                if digits.is_empty() { self.text("b''") } else { write!(self.out, "0b{digits}") }
            }
            Literal::Date(text) => {
                self.text("DATE")?;
                self.string(text)
            }
            Literal::Time(text) => {
                self.text("TIME")?;
                self.string(text)
            }
            Literal::Timestamp(text) => {
                self.text("TIMESTAMP")?;
                self.string(text)
            }
        }
    }

    /// `_charset` with what separates it from the literal.
    fn introducer(&mut self, introducer: Option<&Introducer>, behind: &str) -> fmt::Result {
        match introducer {
            None => Ok(()),
            Some(Introducer::Charset(name)) => write!(self.out, "_{name}{behind}"),
            Some(Introducer::National) => write!(self.out, "_utf8mb3{behind}"),
        }
    }

    // Calls

    fn call(&mut self, call: &Call) -> fmt::Result {
        if let Some((sign, date, interval)) = date_arithmetic(call) {
            return self.infix(date, &[sign], interval);
        }
        if let Some((kind, place)) = format_kind(call) {
            write!(self.out, "get_format({kind},")?;
            self.expr(place)?;
            return self.text(")");
        }
        self.meets_call(call);
        self.function_name(call)?;
        self.text("(")?;
        match &call.arguments {
            Arguments::Star => self.text("*")?,
            Arguments::List { distinct, items } => {
                if *distinct {
                    self.text("distinct ")?;
                }
                self.exprs(items)?;
            }
        }
        self.order_by(&call.order_by)?;
        if let Some(separator) = &call.separator {
            self.text(" separator ")?;
            self.string(separator)?;
        }
        self.text(")")?;
        if call.from_last {
            self.text(" from last")?;
        }
        match call.nulls {
            None => {}
            Some(NullTreatment::Respect) => self.text(" respect nulls")?,
            Some(NullTreatment::Ignore) => self.text(" ignore nulls")?,
        }
        match &call.over {
            None => Ok(()),
            Some(window) => self.over(window),
        }
    }

    fn function_name(&mut self, call: &Call) -> fmt::Result {
        if let Some(database) = &call.database {
            self.name(database)?;
            self.text(".")?;
            return self.name(&call.name);
        }
        let lower = call.name.to_ascii_lowercase();
        let is_bare = match (lower.as_str(), &call.arguments) {
            ("char", Arguments::List { distinct: false, items }) => !items.is_empty(),
            ("interval", Arguments::List { distinct: false, items }) => items.len() > 1,
            (name, _) => {
                is_plain_word(name)
                    && !OWN_GRAMMAR.contains(&name)
                    && (!is_reserved(name) || is_reserved_function(name))
            }
        };
        if is_bare { self.text(&lower) } else { self.name(&call.name) }
    }

    // Types

    pub(super) fn cast_type(&mut self, target: &CastType) -> fmt::Result {
        self.meets_cast(target);
        match target {
            CastType::Signed => self.text("signed"),
            CastType::Unsigned => self.text("unsigned"),
            CastType::Char { length, charset } => {
                self.with_length("char", *length)?;
                match charset {
                    None => Ok(()),
                    Some(charset) => {
                        self.text(" charset ")?;
                        self.charset(charset)
                    }
                }
            }
            CastType::Binary(length) => {
                self.with_length("char", *length)?;
                self.text(" charset binary")
            }
            CastType::Date => self.text("date"),
            CastType::DateTime(digits) => self.with_length("datetime", *digits),
            CastType::Time(digits) => self.with_length("time", *digits),
            CastType::Decimal { precision, scale } => self.with_digits("decimal", *precision, *scale),
            CastType::Float(precision) => self.with_length("float", *precision),
            CastType::Double => self.text("double"),
            CastType::Json => self.text("json"),
            CastType::Year => self.text("year"),
            CastType::Geometry(kind) => self.text(kind.type_name()),
            CastType::Array(element) => {
                self.cast_type(element)?;
                self.text(" array")
            }
        }
    }

    pub(super) fn with_length(&mut self, name: &str, length: Option<u64>) -> fmt::Result {
        self.with_digits(name, length, None)
    }

    pub(super) fn with_digits(&mut self, name: &str, precision: Option<u64>, scale: Option<u64>) -> fmt::Result {
        self.text(name)?;
        match (precision, scale) {
            (None, _) => Ok(()),
            (Some(precision), None) => write!(self.out, "({precision})"),
            (Some(precision), Some(scale)) => write!(self.out, "({precision},{scale})"),
        }
    }
}

/// Whether the text of an expression begins and ends with parentheses of its own.
fn has_parentheses(expr: &Expr) -> bool {
    match expr {
        Expr::Binary { op, .. } => *op != BinaryOp::Concat,
        Expr::Unary { op, .. } => *op == UnaryOp::Not,
        Expr::Row(items) => items.len() != 1,
        Expr::Call(call) => date_arithmetic(call).is_some(),
        Expr::AssignVariable { .. }
        | Expr::Is { .. }
        | Expr::Between { .. }
        | Expr::InList { .. }
        | Expr::InQuery { .. }
        | Expr::Like { .. }
        | Expr::Regexp { .. }
        | Expr::MemberOf { .. }
        | Expr::JsonPath { .. }
        | Expr::Subquery(_)
        | Expr::Quantified { .. }
        | Expr::Case { .. }
        | Expr::Collate { .. }
        | Expr::Match { .. } => true,
        _ => false,
    }
}

fn is_variable_part(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(crate::parse::lexer::is_word_byte)
}

/// `DATE_ADD(date, INTERVAL …)` and its like: the sign, the date, the interval.
fn date_arithmetic(call: &Call) -> Option<(&'static str, &Expr, &Expr)> {
    let Arguments::List { distinct: false, items } = &call.arguments else { return None };
    let [date, interval @ Expr::Interval { .. }] = &items[..] else { return None };
    let is = |name: &str| call.database.is_none() && call.name.eq_ignore_ascii_case(name);
    if is("date_add") || is("adddate") {
        Some(("+", date, interval))
    } else if is("date_sub") || is("subdate") {
        Some(("-", date, interval))
    } else {
        None
    }
}

/// `GET_FORMAT(DATE, place)`.
fn format_kind(call: &Call) -> Option<(&str, &Expr)> {
    let Arguments::List { distinct: false, items } = &call.arguments else { return None };
    let [Expr::Literal(Literal::Text { value, introducer: None }), place] = &items[..] else { return None };
    let is_format = call.database.is_none() && call.name.eq_ignore_ascii_case("get_format");
    (is_format && FORMAT_KINDS.contains(&value.as_str())).then_some((value, place))
}

impl Print for Expr {
    fn print(&self, printer: &mut Printer<'_>) -> fmt::Result {
        printer.expr(self)
    }
}

impl Print for CastType {
    fn print(&self, printer: &mut Printer<'_>) -> fmt::Result {
        printer.cast_type(self)
    }
}

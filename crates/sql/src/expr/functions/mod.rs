//! The registry of functions: one entry each, in files by subject.
//!
//! An entry says how many arguments there may be, how the result's type follows from theirs, and how the value is computed from theirs. A
//! function with `null_on_null` is not called when an argument is NULL. `pure` ones depend on their arguments alone and are folded when these are
//! literals; `volatile` ones may differ from row to row with the same arguments.
//!
//! **Bound.** No result is longer than max_allowed_packet: it is NULL with warning 1301 instead. [`Function::call`], the only caller, sees to that. A
//! function whose result can be longer than its arguments asks [`Call::fits`] *before* it allocates; the others need not.

mod aes;
mod archive;
mod benchmark;
mod binary;
#[cfg(test)]
mod bounds;
mod calendar;
pub(super) mod clock;
mod date_format;
pub(crate) mod digits;
pub(super) mod full_text;
mod gtid;
mod information;
pub(super) mod internal;
pub(super) mod json;
pub(crate) mod locale;
mod locks;
pub(super) mod miscellaneous;
mod network;
mod numeric;
mod regexp;
mod search;
mod sleep;
pub(super) mod spatial;
mod string;
mod weights;
mod xml;

pub(crate) use binary::crc32;
pub(crate) use gtid::check_set as check_gtid_set;
pub(crate) use miscellaneous::ANY_VALUE;
pub(crate) use spatial::collect::Collected;
pub(crate) use spatial::is_test as is_spatial_test;

use super::cast::string_value;
use super::convert::{self, Result};
use super::types::{self, Class, aggregate_collations, result_collation, text_length, text_type};
use super::{BindContext, Context, Expr, Val, budget};
use rauk_types::{Collation, DataType, Date, DateTime, Decimal, Time, TypeKind, Value, ValueRef};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::OnceLock;

/// The value of a call, from its arguments.
pub(crate) type Walk = for<'a> fn(&'a [Expr], &super::eval::Env<'a>, &mut Context) -> Result<Val<'a>>;

/// What the first argument chooses of those behind it: the others are not evaluated, and are NULL.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Chosen {
    One(usize),
    /// The bits from the lowest on.
    Bits(u64),
}

impl Chosen {
    pub fn has(self, argument: usize) -> bool {
        match self {
            Chosen::One(number) => number == argument,
            Chosen::Bits(bits) => matches!(argument, 1..=64) && bits >> (argument - 1) & 1 == 1,
        }
    }
}

/// Reads the first argument, which is not NULL and becomes the number that it is.
pub(crate) type Choose = fn(&mut Val<'_>, &DataType, &mut Context) -> Result<Chosen>;

/// A function as the registry knows it.
pub struct Function {
    /// In upper case.
    pub name: &'static str,
    pub min: u8,
    /// `u8::MAX`: any number.
    pub max: u8,
    /// 2: the number of arguments is even.
    pub step: u8,
    pub null_on_null: bool,
    pub pure: bool,
    pub volatile: bool,
    /// It depends on nothing but its arguments and what is sent along to other nodes (sql_mode, time zone, time of the statement), waits for nothing, and
    /// takes time and memory in proportion to its arguments: so it may run under the guard of a partition elsewhere.
    pub bounded: bool,
    /// The operator waits before it has a value, as it does for a subquery: SLEEP, GET_LOCK. Behind its arguments stands the number of the call.
    pub waits: bool,
    /// Of a text it sees the bytes of its character set.
    pub coded: bool,
    /// It evaluates its arguments itself, instead of `eval`.
    pub(crate) walk: Option<Walk>,
    /// Evaluates only some of its arguments.
    pub(crate) choose: Option<Choose>,
    pub(crate) ty: fn(Typing<'_>) -> Result<Derived>,
    pub(crate) eval: fn(&Call<'_, '_>, &mut Context) -> Result<Value>,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Function {
    /// A pure function that gives NULL for NULL.
    const fn new(
        name: &'static str,
        min: u8,
        max: u8,
        ty: fn(Typing<'_>) -> Result<Derived>,
        eval: fn(&Call<'_, '_>, &mut Context) -> Result<Value>,
    ) -> Function {
        Function {
            name,
            min,
            max,
            step: 1,
            null_on_null: true,
            pure: true,
            volatile: false,
            bounded: true,
            waits: false,
            coded: false,
            walk: None,
            choose: None,
            ty,
            eval,
        }
    }

    /// Sees NULL arguments.
    const fn with_null(self) -> Function {
        Function { null_on_null: false, ..self }
    }

    /// Depends on the statement's time, and on the session's time zone and sql_mode.
    const fn of_statement(self) -> Function {
        Function { pure: false, ..self }
    }

    /// Depends on the session: its user, its counters.
    const fn impure(self) -> Function {
        Function { pure: false, bounded: false, ..self }
    }

    /// Sees bytes.
    const fn of_bytes(self) -> Function {
        Function { coded: true, ..self }
    }

    /// Evaluates those arguments that the first one chooses.
    const fn choosing(self, choose: Choose) -> Function {
        Function { null_on_null: false, choose: Some(choose), ..self }
    }

    /// May take long, or make much of little.
    const fn unbounded(self) -> Function {
        Function { bounded: false, ..self }
    }

    const fn volatile(self) -> Function {
        Function { pure: false, volatile: true, bounded: false, ..self }
    }

    /// Waits, again for each row.
    const fn waiting(self) -> Function {
        Function { waits: true, ..self.volatile() }
    }
}

/// What a type rule sees: the bound arguments, which it may convert.
pub(crate) struct Typing<'a> {
    pub name: &'static str,
    pub arguments: &'a mut Vec<Expr>,
    pub context: &'a BindContext,
}

pub(crate) struct Derived {
    pub ty: DataType,
    /// NULL is possible though no argument is NULL.
    pub nullable: bool,
    pub coercibility: u8,
}

impl Derived {
    pub fn new(ty: DataType) -> Derived {
        let coercibility = if Class::of(&ty).is_string() { types::COERCIBLE } else { types::NUMERIC };
        Derived { ty, nullable: false, coercibility }
    }

    pub fn nullable(self) -> Derived {
        Derived { nullable: true, ..self }
    }
}

impl Typing<'_> {
    pub fn length(&self, argument: usize) -> u64 {
        self.arguments.get(argument).map_or(0, |e| text_length(&e.ty))
    }

    /// The literal integer that an argument is.
    pub fn constant(&self, argument: usize) -> Option<i64> {
        match self.arguments.get(argument)?.kind {
            super::ExprKind::Literal(Value::Int(v)) => Some(v),
            super::ExprKind::Literal(Value::UInt(v)) => i64::try_from(v).ok(),
            super::ExprKind::Literal(Value::Bytes(ref bytes)) if types::is_hex(&self.arguments[argument].ty) => {
                i64::try_from(convert::hex_number(bytes)).ok()
            }
            _ => None,
        }
    }

    /// Makes bytes of BIT arguments where text is asked for.
    fn show_bits(&mut self, range: std::ops::Range<usize>) {
        let end = range.end.min(self.arguments.len());
        for argument in &mut self.arguments[range.start.min(end)..end] {
            if argument.ty.kind == TypeKind::Bit {
                let shown = super::bind_shown(std::mem::replace(argument, Expr::null()));
                *argument = Expr { coercibility: types::IMPLICIT, ..shown };
            }
        }
    }

    /// Text of so many characters, in the collation of the arguments in `range`.
    pub fn text(&mut self, range: std::ops::Range<usize>, length: u64) -> Result<Derived> {
        self.show_bits(range.clone());
        let end = range.end.min(self.arguments.len());
        let strings = || self.arguments[range.start.min(end)..end].iter().filter(|e| Class::of(&e.ty).is_string());
        let (collation, coercibility) =
            result_collation(strings(), &self.name.to_ascii_lowercase(), self.context.collation)?;
        self.settle(range.start.min(end)..end, collation);
        Ok(Derived { ty: text_type(length, collation), nullable: false, coercibility })
    }

    /// The same of a function that compares these arguments. Errors 1267, 1270, 1271.
    pub fn compared_text(&mut self, range: std::ops::Range<usize>, length: u64) -> Result<Derived> {
        self.show_bits(range.clone());
        let end = range.end.min(self.arguments.len());
        let strings = || self.arguments[range.start.min(end)..end].iter().filter(|e| Class::of(&e.ty).is_string());
        let (collation, coercibility) =
            aggregate_collations(strings(), &self.name.to_ascii_lowercase(), self.context.collation)?;
        self.settle(range.start.min(end)..end, collation);
        Ok(Derived { ty: text_type(length, collation), nullable: false, coercibility })
    }

    /// Brings the arguments together in a collation.
    fn settle(&mut self, range: std::ops::Range<usize>, collation: Collation) {
        if !collation.charset().is_utf8mb4() {
            for argument in &mut self.arguments[range] {
                *argument = types::beside(std::mem::replace(argument, Expr::null()), collation);
            }
        }
    }

    /// Text in the connection's collation.
    pub fn connection_text(&self, length: u64) -> Derived {
        let collation =
            if self.context.collation == Collation::Binary { Collation::DEFAULT } else { self.context.collation };
        Derived::new(text_type(length, collation))
    }
}

/// What a function sees of its call.
pub(crate) struct Call<'a, 'v> {
    name: &'static str,
    pub arguments: &'a [Expr],
    pub values: &'a [Val<'v>],
    pub ty: &'a DataType,
}

impl Function {
    /// The value of a call.
    pub(crate) fn call(
        &self,
        arguments: &[Expr],
        values: &[Val<'_>],
        ty: &DataType,
        context: &mut Context,
    ) -> Result<Value> {
        let call = Call { name: self.name, arguments, values, ty };
        let bytes = values.iter().map(Val::bytes).sum();
        context.budget.work(bytes)?;
        let value = budget::run(context.budget.runner(bytes), || (self.eval)(&call, context))?;
        let length = crate::memory::heap_length(&value);
        Ok(if call.fits(length, context) { value } else { Value::Null })
    }
}

/// ER_WARN_ALLOWED_PACKET_OVERFLOWED.
const OVERFLOWED: u16 = 1301;

/// Warning 1301: a result would be longer than max_allowed_packet, and is NULL.
pub(crate) fn overflowed(name: &str, context: &mut Context) {
    let limit = context.max_allowed_packet;
    let name = name.to_ascii_lowercase();
    context.warn(OVERFLOWED, format!("Result of {name}() was larger than max_allowed_packet ({limit}) - truncated"));
}

impl Call<'_, '_> {
    /// Whether a result of `size` bytes may be made; if not, it has been warned, and the result is NULL.
    pub fn fits(&self, size: usize, context: &mut Context) -> bool {
        let fits = size <= context.max_allowed_packet;
        if !fits {
            overflowed(self.name, context);
        }
        fits
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn has(&self, argument: usize) -> bool {
        argument < self.values.len()
    }

    #[inline]
    pub fn value(&self, argument: usize) -> ValueRef<'_> {
        self.values[argument].as_ref()
    }

    /// An argument where a number is asked for.
    pub fn number(&self, argument: usize) -> ValueRef<'_> {
        convert::as_number(self.value(argument), self.argument_type(argument))
    }

    pub fn is_null(&self, argument: usize) -> bool {
        self.values[argument].is_null()
    }

    pub fn argument_type(&self, argument: usize) -> &DataType {
        &self.arguments[argument].ty
    }

    pub fn bytes(&self, argument: usize) -> Cow<'_, [u8]> {
        convert::text_bytes(self.value(argument), self.argument_type(argument))
    }

    pub fn text(&self, argument: usize) -> Cow<'_, str> {
        convert::text(self.value(argument), self.argument_type(argument))
    }

    pub fn int(&self, argument: usize, context: &mut Context) -> Result<i64> {
        convert::to_i64(self.number(argument), context)
    }

    pub fn f64(&self, argument: usize, context: &mut Context) -> Result<f64> {
        convert::to_f64(self.number(argument), context)
    }

    pub fn decimal(&self, argument: usize, context: &mut Context) -> Result<Decimal> {
        convert::to_decimal(self.number(argument), context)
    }

    /// An argument as a date or time reads it: an ENUM or SET by its text, a YEAR as a date without month and day.
    fn moment(&self, argument: usize) -> Val<'_> {
        if let (TypeKind::Year, Some(year)) = (self.argument_type(argument).kind, self.value(argument).as_integer()) {
            return Val::Own(Value::Date(Date::from_parts(year as u16, 0, 0)));
        }
        match self.argument_type(argument).has_members() && !self.is_null(argument) {
            true => Val::Own(Value::Str(self.text(argument).into_owned())),
            false => Val::Ref(self.value(argument)),
        }
    }

    pub fn date(&self, argument: usize, context: &mut Context) -> Result<Option<Date>> {
        convert::read_date(self.moment(argument).as_ref(), context)
    }

    pub fn datetime(&self, argument: usize, context: &mut Context) -> Result<Option<DateTime>> {
        convert::read_datetime(self.moment(argument).as_ref(), context)
    }

    pub fn time(&self, argument: usize, context: &mut Context) -> Result<Option<Time>> {
        convert::to_time(self.moment(argument).as_ref(), context)
    }

    /// Whether text is bytes here: characters are bytes then.
    pub fn is_binary(&self) -> bool {
        self.ty.collation == Collation::Binary
    }

    /// A text result: text or bytes as the type says.
    pub fn string(&self, bytes: Vec<u8>) -> Value {
        string_value(bytes, self.ty.collation)
    }
}

/// Type rules that many functions share.
mod rules {
    use super::*;

    pub fn integer(_: Typing<'_>) -> Result<Derived> {
        Ok(Derived::new(DataType::BIGINT))
    }

    pub fn integer_or_null(_: Typing<'_>) -> Result<Derived> {
        Ok(Derived::new(DataType::BIGINT).nullable())
    }

    /// An integer that comes from comparing all texts among the arguments: errors 1267, 1270 and 1271 when they cannot be compared.
    pub fn compared(mut t: Typing<'_>) -> Result<Derived> {
        let strings = t.arguments.iter().filter(|e| Class::of(&e.ty).is_string());
        let (collation, _) = aggregate_collations(strings, &t.name.to_ascii_lowercase(), t.context.collation)?;
        t.settle(0..t.arguments.len(), collation);
        Ok(Derived::new(DataType::BIGINT))
    }

    pub fn boolean(_: Typing<'_>) -> Result<Derived> {
        Ok(Derived::new(types::BOOLEAN))
    }

    pub fn unsigned(_: Typing<'_>) -> Result<Derived> {
        Ok(Derived::new(DataType::BIGINT_UNSIGNED))
    }

    pub fn unsigned_or_null(_: Typing<'_>) -> Result<Derived> {
        Ok(Derived::new(DataType::BIGINT_UNSIGNED).nullable())
    }

    pub fn double(_: Typing<'_>) -> Result<Derived> {
        Ok(Derived::new(DataType::DOUBLE))
    }

    pub fn double_or_null(_: Typing<'_>) -> Result<Derived> {
        Ok(Derived::new(DataType::DOUBLE).nullable())
    }

    /// Text as long as the first argument, in its collation.
    pub fn same_text(mut t: Typing<'_>) -> Result<Derived> {
        t.text(0..1, t.length(0))
    }
}

const GROUPS: &[&[Function]] = &[
    string::FUNCTIONS,
    search::FUNCTIONS,
    regexp::FUNCTIONS,
    binary::FUNCTIONS,
    aes::FUNCTIONS,
    archive::FUNCTIONS,
    numeric::FUNCTIONS,
    clock::FUNCTIONS,
    calendar::FUNCTIONS,
    date_format::FUNCTIONS,
    information::FUNCTIONS,
    network::FUNCTIONS,
    miscellaneous::FUNCTIONS,
    json::FUNCTIONS,
    json::change::FUNCTIONS,
    json::search::FUNCTIONS,
    json::schema::FUNCTIONS,
    locks::FUNCTIONS,
    sleep::FUNCTIONS,
    benchmark::FUNCTIONS,
    weights::FUNCTIONS,
    gtid::FUNCTIONS,
    xml::FUNCTIONS,
];

fn registered() -> impl Iterator<Item = &'static Function> {
    GROUPS.iter().chain(spatial::GROUPS).copied().flatten()
}

/// Of all functions, aliases left out.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    registered().map(|function| function.name)
}

/// By upper-case name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    static INDEX: OnceLock<FxHashMap<&'static str, &'static Function>> = OnceLock::new();
    let index = INDEX.get_or_init(|| registered().map(|f| (f.name, f)).collect());
    let name = match name {
        "SUBSTR" | "MID" => "SUBSTRING",
        "CEILING" => "CEIL",
        "POWER" => "POW",
        "LCASE" => "LOWER",
        "UCASE" => "UPPER",
        "CHARACTER_LENGTH" => "CHAR_LENGTH",
        // LENGTHB is MariaDB's.
        "OCTET_LENGTH" | "LENGTHB" => "LENGTH",
        "POSITION" => "LOCATE",
        "DAY" => "DAYOFMONTH",
        "SHA" => "SHA1",
        "JSON_APPEND" => "JSON_ARRAY_APPEND",
        "SCHEMA" => "DATABASE",
        "SESSION_USER" | "SYSTEM_USER" => "USER",
        "CURRENT_TIMESTAMP" | "LOCALTIME" | "LOCALTIMESTAMP" => "NOW",
        "CURRENT_DATE" => "CURDATE",
        "CURRENT_TIME" => "CURTIME",
        name => spatial::of_mariadb(name),
    };
    index.get(name).copied()
}

/// Functions that put their arguments into documents.
pub(crate) fn makes_documents(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "JSON_ARRAY",
        "JSON_OBJECT",
        "JSON_SET",
        "JSON_INSERT",
        "JSON_REPLACE",
        "JSON_ARRAY_APPEND",
        "JSON_ARRAY_INSERT",
    ];
    NAMES.contains(&name)
}

/// Functions that compute with numbers.
pub(crate) fn is_of_numbers(function: &Function) -> bool {
    numeric::FUNCTIONS.contains(function)
}

/// Functions that MySQL has and Rauk has not yet.
pub(crate) fn is_not_yet(name: &str) -> bool {
    const NAMES: &[&str] = &["ICU_VERSION", "PS_THREAD_ID"];
    NAMES.contains(&name)
}

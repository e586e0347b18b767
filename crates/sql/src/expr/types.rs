//! MySQL's rules for the types and collations of results.
//!
//! **Numbers.** Integer arithmetic is BIGINT, unsigned when one side is; with a DECIMAL it is DECIMAL whose digits follow from both sides; anything
//! else (DOUBLE, text) makes it DOUBLE. Dates count as their digits: DATE and DATETIME as BIGINT, with a fraction as DECIMAL.
//!
//! **One type for several values** (CASE, COALESCE, UNION): [`unify`]. **Collations**: [`aggregate_collations`]; the smaller coercibility wins,
//! and among equals `_bin`. Of different character sets one has to take the other's text without loss: Unicode does, each takes ASCII, and constants are
//! converted to what columns have. Else errors 1267, 1270 and 1271 name the sides.

use super::{Expr, ExprKind};
use crate::parse::ast::CastType;
use rauk_types::error::codes;
use rauk_types::{Charset, Collation, DataType, GeometryKind, Members, MysqlError, TypeKind, Value};
use smallvec::SmallVec;

/// Coercibilities, as COERCIBILITY() gives them.
pub const EXPLICIT: u8 = 0;
/// Of text from sources whose collations differ: it cannot be compared.
pub const MIXED: u8 = 1;
pub const IMPLICIT: u8 = 2;
pub const SYSTEM: u8 = 3;
pub const COERCIBLE: u8 = 4;
pub const NUMERIC: u8 = 5;
pub const IGNORABLE: u8 = 6;

/// Longest text in characters that is VARCHAR and not TEXT as a result.
const MAX_VARCHAR: u64 = 16_383;
/// The integer part of BIGINT has so many digits.
const BIGINT_DIGITS: u8 = 20;
const MAX_PRECISION: u8 = rauk_types::decimal::MAX_PRECISION;
const MAX_SCALE: u8 = rauk_types::decimal::MAX_SCALE;

/// What conversions and comparisons distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Null,
    Integer,
    Decimal,
    Double,
    Text,
    Bytes,
    Date,
    Time,
    DateTime,
}

impl Class {
    pub fn of(ty: &DataType) -> Class {
        match ty.kind {
            TypeKind::Null => Class::Null,
            TypeKind::Decimal => Class::Decimal,
            TypeKind::Float | TypeKind::Double => Class::Double,
            TypeKind::Date => Class::Date,
            TypeKind::Time => Class::Time,
            TypeKind::DateTime | TypeKind::Timestamp => Class::DateTime,
            TypeKind::Bit | TypeKind::Year => Class::Integer,
            TypeKind::Enum | TypeKind::Set => Class::Text,
            _ if ty.is_integer() => Class::Integer,
            _ if ty.is_text() => Class::Text,
            _ => Class::Bytes,
        }
    }

    pub fn is_number(self) -> bool {
        matches!(self, Class::Integer | Class::Decimal | Class::Double)
    }

    pub fn is_temporal(self) -> bool {
        matches!(self, Class::Date | Class::Time | Class::DateTime)
    }

    pub fn is_string(self) -> bool {
        matches!(self, Class::Text | Class::Bytes)
    }
}

/// SQL's booleans.
pub const BOOLEAN: DataType = DataType { length: 1, ..DataType::BIGINT };

pub fn text_type(characters: u64, collation: Collation) -> DataType {
    let length = characters.min(u32::MAX.into()) as u32;
    match collation {
        Collation::Binary if characters <= 65_535 => DataType::varbinary(length),
        Collation::Binary => DataType { length, ..DataType::new(TypeKind::LongBlob) },
        _ if characters <= MAX_VARCHAR => DataType::varchar(length, collation),
        _ => {
            let length = length.saturating_mul(collation.charset().max_bytes());
            DataType { length, collation, ..DataType::new(TypeKind::LongText) }
        }
    }
}

/// The type of a hexadecimal or bit literal: bytes that are a number where a number is asked for. Other bytes are read as text there. It is
/// VARBINARY with the flag that other bytes never have, as clients see it from MySQL too; what is made of such a value is plain bytes.
pub fn hex_type(bytes: usize) -> DataType {
    DataType { unsigned: true, ..text_type(bytes as u64, Collation::Binary) }
}

pub fn is_hex(ty: &DataType) -> bool {
    ty.unsigned && Class::of(ty) == Class::Bytes
}

/// A type without the mark of a literal.
pub fn plain(ty: DataType) -> DataType {
    if is_hex(&ty) { DataType { unsigned: false, ..ty } } else { ty }
}

/// Characters that the longest value takes as text.
pub fn text_length(ty: &DataType) -> u64 {
    let fraction = if ty.scale > 0 { u64::from(ty.scale) + 1 } else { 0 };
    if ty.zerofill {
        let padded = rauk_types::format::display_width(ty).into();
        return text_length(&DataType { zerofill: false, ..*ty }).max(padded);
    }
    match ty.kind {
        TypeKind::Enum => ty.members.map_or(0, Members::longest) as u64,
        TypeKind::Set => ty.members.map_or(0, Members::joined) as u64,
        TypeKind::Year => 4,
        TypeKind::Null => 0,
        TypeKind::TinyInt => 4,
        TypeKind::SmallInt => 6,
        TypeKind::MediumInt => 8,
        TypeKind::Int => 11,
        TypeKind::BigInt if ty.length > 0 => ty.length.into(),
        TypeKind::BigInt => 20,
        TypeKind::Decimal => u64::from(ty.precision) + 2,
        TypeKind::Float => 12,
        TypeKind::Double => 22,
        TypeKind::Date => 10,
        TypeKind::Time => 10 + fraction,
        TypeKind::DateTime | TypeKind::Timestamp => 19 + fraction,
        _ if ty.is_text() && ty.is_lob() => u64::from(ty.length / ty.collation.charset().max_bytes()),
        _ => ty.length.into(),
    }
}

/// Digits of an integer type.
fn integer_digits(ty: &DataType) -> u8 {
    match ty.kind {
        TypeKind::TinyInt => 3,
        TypeKind::SmallInt => 5,
        TypeKind::MediumInt => 8,
        TypeKind::Int => 10,
        TypeKind::Year => 4,
        TypeKind::Bit => BIGINT_DIGITS,
        _ if ty.length > 0 && ty.length < 20 => ty.length as u8,
        _ => BIGINT_DIGITS - u8::from(!ty.unsigned),
    }
}

/// The length of a computed BIGINT of at most so many digits, with its sign; 0 where that is the full width.
pub fn integer_length(digits: u32, unsigned: bool) -> u32 {
    match digits + u32::from(!unsigned) {
        length @ ..20 => length,
        _ => 0,
    }
}

/// A type as arithmetic sees it: BIGINT, DECIMAL or DOUBLE.
pub fn numeric(ty: &DataType) -> DataType {
    match Class::of(ty) {
        // NULL is a text without a character.
        Class::Null => DataType { scale: 0, ..DataType::DOUBLE },
        Class::Integer => DataType {
            unsigned: ty.unsigned || ty.is_plain_number(),
            length: integer_digits(ty).into(),
            ..DataType::BIGINT
        },
        Class::Decimal => DataType { unsigned: false, zerofill: false, ..*ty },
        Class::Double => DataType { scale: ty.scale, ..DataType::DOUBLE },
        Class::Bytes if is_hex(ty) => DataType { length: 20, ..DataType::BIGINT_UNSIGNED },
        Class::Text | Class::Bytes => DataType::DOUBLE,
        Class::Date => DataType { length: 8, ..DataType::BIGINT },
        Class::Time if ty.scale == 0 => DataType { length: 7, ..DataType::BIGINT },
        Class::DateTime if ty.scale == 0 => DataType { length: 14, ..DataType::BIGINT },
        Class::Time => DataType::decimal(7 + ty.scale, ty.scale),
        Class::DateTime => DataType::decimal(14 + ty.scale, ty.scale),
    }
}

/// Precision and scale of an exact numeric type as a DECIMAL.
pub fn decimal_digits(ty: &DataType) -> (u8, u8) {
    if ty.kind == TypeKind::Decimal { (ty.precision, ty.scale) } else { (integer_digits(ty), 0) }
}

fn decimal(integer: u16, scale: u16) -> DataType {
    let scale = scale.min(MAX_SCALE.into());
    let precision = (integer + scale).clamp(1, MAX_PRECISION.into());
    DataType::decimal(precision as u8, scale as u8)
}

/// How many more digits a quotient of this type has behind its point than what is divided.
pub fn quotient_digits(quotient: &DataType, dividend: &DataType) -> u8 {
    quotient.scale.saturating_sub(decimal_digits(&numeric(dividend)).1)
}

/// The type of `left op right`. `digits`: div_precision_increment.
pub fn arithmetic(op: super::ArithmeticOp, left: &DataType, right: &DataType, digits: u8) -> DataType {
    use super::ArithmeticOp::*;
    let (l, r) = (numeric(left), numeric(right));
    let unsigned = l.unsigned || r.unsigned;
    if op == IntegerDivide {
        return DataType { unsigned, ..DataType::BIGINT };
    }
    if l.kind == TypeKind::Double || r.kind == TypeKind::Double {
        // Fixed digits (of PI(), ROUND and DOUBLE(10,2)) stay fixed beside exact numbers.
        let fixed = l.scale.max(r.scale);
        let scale = if op == Divide { fixed.saturating_add(digits) } else { fixed };
        let scale = scale.min(DataType::DOUBLE.scale);
        return DataType { scale, ..DataType::DOUBLE };
    }
    let exact = l.kind == TypeKind::Decimal || r.kind == TypeKind::Decimal || op == Divide;
    if !exact {
        let unsigned = if op == Modulo { l.unsigned } else { unsigned };
        let digits = match op {
            Add | Subtract => l.length.max(r.length) + 1,
            Multiply => l.length + r.length,
            _ => l.length.max(r.length),
        };
        return DataType { unsigned, length: integer_length(digits, unsigned), ..DataType::BIGINT };
    }
    let ((lp, ls), (rp, rs)) = (decimal_digits(&l), decimal_digits(&r));
    let [lp, ls, rp, rs] = [lp, ls, rp, rs].map(u16::from);
    match op {
        Add | Subtract => decimal((lp - ls).max(rp - rs) + 1, ls.max(rs)),
        Multiply => {
            let scale = (ls + rs).min(MAX_SCALE.into());
            decimal((lp + rp).saturating_sub(scale), scale)
        }
        Modulo => decimal((lp - ls).max(rp - rs), ls.max(rs)),
        _ => {
            let scale = (ls + u16::from(digits)).min(MAX_SCALE.into());
            let precision = (lp + rs + u16::from(digits)).min(MAX_PRECISION.into());
            decimal(precision.saturating_sub(scale), scale)
        }
    }
}

fn coercibility_name(coercibility: u8) -> &'static str {
    ["EXPLICIT", "NONE", "IMPLICIT", "SYSCONST", "COERCIBLE", "NUMERIC", "IGNORABLE"][usize::from(coercibility.min(6))]
}

/// The collation in which `items` compare, and its coercibility. Items that are no text (numbers, dates, NULL) do not count beside text.
/// Errors 1267, 1270 and 1271 name `operation` when there is none.
pub fn aggregate_collations<'e>(
    items: impl IntoIterator<Item = &'e Expr>,
    operation: &str,
    connection: Collation,
) -> Result<(Collation, u8), MysqlError> {
    aggregate(items, operation, connection, false)
}

/// As [`aggregate_collations`] for text that is put together and not compared: of different collations it becomes the set's _bin, of
/// coercibility [`MIXED`].
pub fn result_collation<'e>(
    items: impl IntoIterator<Item = &'e Expr>,
    operation: &str,
    connection: Collation,
) -> Result<(Collation, u8), MysqlError> {
    aggregate(items, operation, connection, true)
}

/// Whether a set has every character of another.
pub fn is_superset(set: Charset, of: Charset) -> bool {
    set == of || of == Charset::ASCII || set.is_unicode() && (set.has_supplementary() || !of.has_supplementary())
}

/// Whether an expression's text is ASCII, whatever the row.
fn is_ascii(e: &Expr) -> bool {
    match &e.kind {
        _ if !Class::of(&e.ty).is_string() || e.ty.collation.charset() == Charset::ASCII => true,
        ExprKind::Literal(Value::Str(text)) => text.is_ascii(),
        ExprKind::Literal(Value::Null) => true,
        ExprKind::Collate(inner) | ExprKind::Cast(inner) => is_ascii(inner),
        _ => false,
    }
}

/// One of several texts: its collation, its coercibility, and whether it is ASCII.
#[derive(Clone, Copy)]
struct Side {
    collation: Collation,
    strength: u8,
    ascii: bool,
}

impl Side {
    /// Whether text of another character set is converted to this one's because nothing is lost: to Unicode, and from ASCII.
    fn takes(self, other: Side) -> bool {
        let (own, set) = (self.collation.charset(), other.collation.charset());
        let wider = !set.is_unicode()
            || own.has_supplementary() && !set.has_supplementary() && own.min_bytes() == set.min_bytes();
        let stronger = self.strength < other.strength;
        let equal = self.strength == other.strength;
        own.is_unicode() && (stronger || equal && wider) || other.ascii && (stronger || equal && !self.ascii)
    }
}

fn aggregate<'e>(
    items: impl IntoIterator<Item = &'e Expr>,
    operation: &str,
    connection: Collation,
    mixed: bool,
) -> Result<(Collation, u8), MysqlError> {
    // What is no text becomes text of the connection's collation when it must.
    let own =
        |e: &Expr| if e.ty.is_text() || e.ty.is_bytes() || e.ty.has_members() { e.ty.collation } else { connection };
    let items: SmallVec<[&Expr; 8]> = items.into_iter().collect();
    let sides: SmallVec<[(Collation, u8); 8]> = items.iter().map(|e| (own(e), e.coercibility)).collect();
    let mut result: Option<(Collation, u8)> = None;
    for (at, &(collation, coercibility)) in sides.iter().enumerate() {
        let Some((present, strength)) = result else {
            result = Some((collation, coercibility));
            continue;
        };
        if present.charset() != collation.charset() && present != Collation::Binary && collation != Collation::Binary {
            let before = Side { collation: present, strength, ascii: items[..at].iter().all(|e| is_ascii(e)) };
            let next = Side { collation, strength: coercibility, ascii: is_ascii(items[at]) };
            let converted = |from: Side, to: Side| to.strength < from.strength && from.strength >= SYSTEM;
            if before.takes(next) {
                continue;
            }
            if next.takes(before) || converted(before, next) {
                result = Some((collation, coercibility));
            } else if !converted(next, before) {
                return Err(mix(&sides, operation));
            }
            continue;
        }
        if strength < coercibility || present == collation && strength == coercibility {
            continue;
        }
        if coercibility < strength {
            result = Some((collation, coercibility));
            continue;
        }
        let bytes = present == Collation::Binary || collation == Collation::Binary;
        result = Some(if strength == EXPLICIT {
            return Err(mix(&sides, operation));
        } else if bytes {
            (Collation::Binary, strength)
        } else if let Some(binary) = [present, collation].into_iter().find(|c| c.is_binary()) {
            (binary, strength)
        } else if strength >= COERCIBLE {
            (present, strength)
        } else {
            (Collation::binary_of(present.charset()), MIXED)
        });
    }
    match result {
        Some((_, MIXED)) if !mixed => Err(mix(&sides, operation)),
        Some((collation, _)) if items.iter().any(|e| is_lost(e, collation.charset())) => Err(mix(&sides, operation)),
        result => Ok(result.unwrap_or((connection, COERCIBLE))),
    }
}

/// Whether a constant has a character that the common set lacks. Parameters that came out of a text say whether they are ASCII (`normalize`);
/// those that are not make the statement one that is planned with its literals. What a client binds is not looked at: it equals nothing.
fn is_lost(e: &Expr, set: Charset) -> bool {
    let own = e.ty.collation.charset();
    if !e.ty.is_text() || set == Charset::BINARY || is_superset(set, own) {
        return false;
    }
    match &e.kind {
        ExprKind::Literal(Value::Str(text)) => set.lacks(text).is_some(),
        ExprKind::Parameter(_) => e.ty.unsigned,
        _ => false,
    }
}

/// One of several strings that stand together in a collation: among bytes a text becomes the bytes of its set, among texts bytes are read in theirs.
/// Where texts are UTF-8 nothing is done, as bytes are read so anyway.
pub fn beside(expr: Expr, collation: Collation) -> Expr {
    if collation == Collation::Binary {
        return coded(expr);
    }
    if !expr.ty.is_bytes() || collation.charset().is_utf8mb4() {
        return expr;
    }
    let ty = DataType { length: u32::MAX, ..text_type(text_length(&expr.ty), collation) };
    let coercibility = expr.coercibility;
    Expr { kind: ExprKind::Cast(Box::new(expr)), ty, nullable: true, coercibility }
}

/// The bytes that a text is in its set.
pub fn coded(expr: Expr) -> Expr {
    let text = expr.ty.is_text() && expr.ty.kind != TypeKind::Json || expr.ty.has_members();
    if !text || expr.ty.collation.charset().is_utf8mb4() {
        return expr;
    }
    let length = text_length(&expr.ty).saturating_mul(expr.ty.collation.charset().max_bytes().into());
    let shown = text_type(length, Collation::Binary);
    let ty = DataType { length: u32::MAX, ..shown };
    let (nullable, coercibility) = (expr.nullable, expr.coercibility);
    Expr { kind: ExprKind::Cast(Box::new(expr)), ty, nullable, coercibility }
}

/// Error 1267: the text is put together from texts of different collations, and has none to compare by.
pub fn refuse_mixed(expr: &Expr, operation: &str) -> Result<(), MysqlError> {
    let side = (expr.ty.collation, expr.coercibility);
    let mixed = Class::of(&expr.ty).is_string() && expr.coercibility == MIXED;
    if mixed { Err(mix(&[side, side], operation)) } else { Ok(()) }
}

/// The same of what is compared, with NULL too.
pub fn refuse_mixed_beside(sides: &[&Expr], operation: &str) -> Result<(), MysqlError> {
    let is_mixed = |e: &&Expr| Class::of(&e.ty).is_string() && e.coercibility == MIXED;
    let side = |e: &&Expr| (e.ty.collation, e.coercibility);
    if sides.iter().any(is_mixed) { Err(mix(&sides.iter().map(side).collect::<Vec<_>>(), operation)) } else { Ok(()) }
}

/// Error 1210: a geometry is no number, and has no order.
pub fn refuse_geometry<'e>(sides: impl IntoIterator<Item = &'e Expr>, operation: &str) -> Result<(), MysqlError> {
    match sides.into_iter().any(|e| e.ty.kind == TypeKind::Geometry) {
        true => Err(MysqlError::new(codes::WRONG_ARGUMENTS, format!("Incorrect arguments to {operation}"))),
        false => Ok(()),
    }
}

/// Errors 1267 and 1270 name two and three sides that do not agree; 1271 is of more.
fn mix(sides: &[(Collation, u8)], operation: &str) -> MysqlError {
    let side = |(c, s): &(Collation, u8)| format!("({},{})", c.name(), coercibility_name(*s));
    let (code, named) = match sides {
        [a, b] => (codes::CANT_AGGREGATE_2COLLATIONS, format!(" {} and {}", side(a), side(b))),
        [a, b, c] => (CANT_AGGREGATE_3COLLATIONS, format!(" {}, {}, {}", side(a), side(b), side(c))),
        _ => return mix_of_many(operation),
    };
    MysqlError::new(code, format!("Illegal mix of collations{named} for operation '{operation}'"))
}

/// Error 1271.
pub fn mix_of_many(operation: &str) -> MysqlError {
    MysqlError::new(CANT_AGGREGATE_NCOLLATIONS, format!("Illegal mix of collations for operation '{operation}'"))
}

/// ER_CANT_AGGREGATE_3COLLATIONS.
const CANT_AGGREGATE_3COLLATIONS: u16 = 1270;
/// ER_CANT_AGGREGATE_NCOLLATIONS.
const CANT_AGGREGATE_NCOLLATIONS: u16 = 1271;

/// How strongly the collation of a table's column holds.
pub fn column_coercibility(ty: &DataType) -> u8 {
    if Class::of(ty).is_string() { IMPLICIT } else { NUMERIC }
}

/// The one type of several alternatives (CASE, IF, COALESCE, LEAST …): every value can be converted to it.
pub fn unify<'e>(
    items: impl IntoIterator<Item = &'e Expr> + Clone,
    operation: &str,
    connection: Collation,
) -> Result<(DataType, u8), MysqlError> {
    let classes = || items.clone().into_iter().map(|e| Class::of(&e.ty)).filter(|c| *c != Class::Null);
    let present = || items.clone().into_iter().filter(|e| Class::of(&e.ty) != Class::Null);
    let types = || present().map(|e| &e.ty);
    let all = |f: fn(Class) -> bool| classes().all(f);
    if classes().next().is_none() {
        return Ok((DataType::new(TypeKind::Null), IGNORABLE));
    }
    let coercibility = types_coercibility(present());
    if all(|c| c == Class::Integer) {
        let first = *types().next().expect("one is there");
        if first.is_plain_number() && types().all(|t| t.kind == first.kind) {
            let length = types().map(|t| t.length).max().unwrap_or(0);
            return Ok((DataType { length, ..first }, NUMERIC));
        }
        let plain: SmallVec<[DataType; 8]> = types().map(plain_integer).collect();
        let types = || plain.iter();
        let widest = types().max_by_key(|t| t.integer_range().map_or(0, |r| r.1 - r.0)).expect("one is there");
        let (signed, unsigned) = (types().any(|t| !t.unsigned), types().any(|t| t.unsigned));
        if !(signed && unsigned) {
            return Ok((DataType { length: unified_length(types, widest), ..*widest }, NUMERIC));
        }
        if types().any(|t| t.unsigned && t.kind == TypeKind::BigInt) {
            return Ok((DataType::decimal(20, 0), NUMERIC));
        }
        return Ok((DataType::BIGINT, NUMERIC));
    }
    if all(|c| matches!(c, Class::Integer | Class::Decimal)) {
        let digits = || types().map(decimal_digits);
        let scale = digits().map(|d| d.1).max().unwrap_or(0);
        let integer = digits().map(|d| d.0 - d.1).max().unwrap_or(0);
        return Ok((decimal(integer.into(), scale.into()), NUMERIC));
    }
    if all(Class::is_number) {
        let kind = if types().all(|t| t.kind == TypeKind::Float) { TypeKind::Float } else { TypeKind::Double };
        let scale = types().map(|t| numeric(t).scale).max().unwrap_or(DataType::DOUBLE.scale);
        return Ok((DataType { scale, ..DataType::new(kind) }, NUMERIC));
    }
    if all(Class::is_temporal) {
        let scale = types().map(|t| t.scale).max().unwrap_or(0);
        let first = *types().next().expect("one is there");
        let kind = if types().all(|t| t.kind == first.kind) { first.kind } else { TypeKind::DateTime };
        return Ok((DataType { scale, ..DataType::new(kind) }, NUMERIC));
    }
    if types().all(|t| t.kind == TypeKind::Json) {
        return Ok((DataType::new(TypeKind::Json), coercibility));
    }
    // Beside what is no geometry, it is bytes.
    if types().all(DataType::is_geometry) {
        let first = *types().next().expect("one is there");
        let same = types().all(|ty| *ty == first);
        return Ok((if same { first } else { DataType::geometry(GeometryKind::Geometry, None) }, coercibility));
    }
    let length = types().map(text_length).max().unwrap_or(0);
    let texts = || present().filter(|e| Class::of(&e.ty).is_string());
    if classes().any(|c| c == Class::Bytes)
        && texts().all(|e| Class::of(&e.ty) == Class::Bytes)
        && all(Class::is_string)
    {
        return Ok((text_type(length, Collation::Binary), coercibility));
    }
    let (collation, coercibility) = result_collation(texts(), operation, connection)?;
    Ok((text_type(length, collation), coercibility))
}

/// The integer type whose values a column's are, without what concerns only its text.
fn plain_integer(ty: &DataType) -> DataType {
    match ty.kind {
        TypeKind::Year => DataType { unsigned: true, ..DataType::new(TypeKind::SmallInt) },
        TypeKind::Bit => DataType::BIGINT_UNSIGNED,
        // A width that was declared for padding says nothing of the values.
        _ if ty.zerofill => DataType { zerofill: false, length: 0, ..*ty },
        _ => *ty,
    }
}

/// The length of the integer type that several are unified to. A column has none, which means the full width of its kind; a literal has its own. So what
/// is BIGINT only by a literal is as wide as the widest part, and a BIGINT column keeps the full width.
fn unified_length<'e, I: Iterator<Item = &'e DataType>>(types: impl Fn() -> I, widest: &DataType) -> u32 {
    let is_bigint = |t: &&DataType| t.kind == TypeKind::BigInt;
    if is_bigint(&widest) && types().filter(is_bigint).any(|t| t.length == 0) {
        return 0;
    }
    let length = |t: &DataType| if is_bigint(&widest) { text_length(t) as u32 } else { t.length };
    types().map(length).max().unwrap_or(0)
}

fn types_coercibility<'e>(items: impl Iterator<Item = &'e Expr>) -> u8 {
    items.map(|e| e.coercibility).min().unwrap_or(IGNORABLE)
}

fn length_of(length: Option<u64>) -> u32 {
    length.map_or(u32::MAX, |l| l.min(u32::MAX.into()) as u32)
}

fn fraction(digits: Option<u64>, name: impl Fn() -> String) -> Result<u8, MysqlError> {
    let digits = digits.unwrap_or(0);
    if digits > 6 {
        return Err(MysqlError::new(
            codes::TOO_BIG_PRECISION,
            format!("Too-big precision {digits} specified for '{}'. Maximum is 6.", name()),
        ));
    }
    Ok(digits as u8)
}

/// The type that CAST and CONVERT name; errors show `text`. A length of `u32::MAX` stands for none given.
pub fn cast_type(target: &CastType, connection: Collation, text: impl Fn() -> String) -> Result<DataType, MysqlError> {
    Ok(match target {
        CastType::Signed => DataType::BIGINT,
        CastType::Unsigned => DataType::BIGINT_UNSIGNED,
        CastType::Char { length, charset: Some(charset) } if charset.eq_ignore_ascii_case("binary") => {
            binary_type(*length)
        }
        CastType::Char { length, charset: Some(charset) } => {
            let unknown =
                || MysqlError::new(codes::UNKNOWN_CHARACTER_SET, format!("Unknown character set: '{charset}'"));
            let set = Charset::named(charset).ok_or_else(unknown)?;
            let collation = if connection.charset() == set { connection } else { Collation::of_charset(set) };
            DataType::varchar(length_of(*length), collation)
        }
        CastType::Char { length, charset: None } => DataType::varchar(length_of(*length), connection),
        CastType::Binary(length) => binary_type(*length),
        CastType::Date => DataType::new(TypeKind::Date),
        CastType::DateTime(digits) => {
            DataType { scale: fraction(*digits, &text)?, ..DataType::new(TypeKind::DateTime) }
        }
        CastType::Time(digits) => DataType { scale: fraction(*digits, &text)?, ..DataType::new(TypeKind::Time) },
        CastType::Decimal { precision, scale } => {
            let precision = precision.filter(|p| *p > 0).unwrap_or(10);
            let scale = scale.unwrap_or(0);
            if scale > MAX_SCALE.into() {
                return Err(MysqlError::new(
                    codes::TOO_BIG_SCALE,
                    format!("Too big scale {scale} specified for column '{}'. Maximum is 30.", text()),
                ));
            }
            if precision > MAX_PRECISION.into() {
                return Err(MysqlError::new(
                    codes::TOO_BIG_PRECISION,
                    format!("Too-big precision {precision} specified for '{}'. Maximum is 65.", text()),
                ));
            }
            if scale > precision {
                return Err(MysqlError::new(
                    codes::M_BIGGER_THAN_D,
                    format!("For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{}').", text()),
                ));
            }
            DataType::decimal(precision as u8, scale as u8)
        }
        CastType::Double => DataType::DOUBLE,
        CastType::Float(Some(precision)) if *precision > 24 => DataType::DOUBLE,
        CastType::Float(_) => DataType::new(TypeKind::Float),
        CastType::Json => DataType::new(TypeKind::Json),
        CastType::Year => {
            return Err(MysqlError::new(
                codes::NOT_SUPPORTED_YET,
                "This version of MySQL doesn't yet support 'CAST ... AS YEAR'",
            ));
        }
        CastType::Geometry(kind) => DataType::geometry(*kind, None),
        CastType::Array(_) => return Err(misplaced_array()),
    })
}

/// CAST(… AS … ARRAY) where no key begins.
pub fn misplaced_array() -> MysqlError {
    let message = "This version of MySQL doesn't yet support 'Use of CAST( .. AS .. ARRAY) outside of functional index in \
                   CREATE(non-SELECT)/ALTER TABLE or in general expressions'";
    MysqlError::new(codes::NOT_SUPPORTED_YET, message)
}

/// BINARY(n) pads, BINARY does not.
fn binary_type(length: Option<u64>) -> DataType {
    let kind = if length.is_some() { TypeKind::Binary } else { TypeKind::VarBinary };
    DataType { kind, ..DataType::varbinary(length_of(length)) }
}

//! Expressions as they travel to where the rows are: one form for the filters of the native API and for remote scans.
//!
//! A node of the form is a tag and what belongs to it. The first six tags are those of [`crate::filter`]: a native filter is an expression
//! that uses no other. The others are for typed expressions: operators and functions are calls by name, so that a receiver that does not
//! know one says so and the sender evaluates it.
//!
//! ```text
//! Compare, IsNull, StartsWith   0 to 2, as in a filter
//! And, Or                       3 or 4, count varint, expressions
//! Not                           5, expression
//! Literal                       6, value
//! TypedLiteral                  7, type, value
//! Column                        8, type, column varint
//! Call                          9, type, name length u8, name, count varint, expressions
//! type                          kind u8, flags u8 (1 unsigned, 2 nullable), length varint, precision u8, scale u8,
//!                               MySQL's number of the collation varint, coercibility u8
//! ```
//!
//! What an operator needs to know besides its operands (as what it compares, its escape character) is a literal without a type among its
//! arguments. Types are checked for their ranges only: whether they fit the columns and the operators the evaluator decides.
//!
//! Bounds: [`MAX_DEPTH`], [`MAX_NODES`], [`MAX_NAME`]. A length is never trusted: nothing is allocated for nodes that have not come.

use crate::WireError;
use crate::filter::{self, Filter, column_number};
use crate::read::{Reader, put_varint};
use rauk_types::decimal::{MAX_PRECISION, MAX_SCALE};
use rauk_types::{Collation, DataType, TypeKind, Value};

/// Deepest nesting of an expression; of a filter it is less.
pub const MAX_DEPTH: usize = 48;
/// Most nodes.
pub const MAX_NODES: usize = 4096;
/// Longest name of an operator or function, in bytes.
pub const MAX_NAME: usize = 64;

#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A leaf of a native filter: `Compare`, `IsNull` or `StartsWith`.
    Test(Filter),
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Not(Box<Expression>),
    /// An operand, if it has a type; else an attribute of the operator that it is an argument of.
    Literal {
        value: Value,
        ty: Option<Type>,
    },
    Column {
        column: u16,
        ty: Type,
    },
    Call {
        name: String,
        ty: Type,
        arguments: Vec<Expression>,
    },
}

/// What is known of an expression's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    pub ty: DataType,
    pub nullable: bool,
    pub coercibility: u8,
}

const AND: u8 = 3;
const OR: u8 = 4;
const NOT: u8 = 5;
const LITERAL: u8 = 6;
const TYPED_LITERAL: u8 = 7;
const COLUMN: u8 = 8;
const CALL: u8 = 9;

const UNSIGNED: u8 = 1;
const NULLABLE: u8 = 2;
const ZEROFILL: u8 = 4;

/// Of FLOAT and DOUBLE: not fixed.
const NO_SCALE: u8 = 31;
const MAX_COERCIBILITY: u8 = 6;

/// By number on the wire.
/// Types with members have no form here: an expression over them stays where it is.
const KINDS: [TypeKind; 28] = [
    TypeKind::Null,
    TypeKind::TinyInt,
    TypeKind::SmallInt,
    TypeKind::MediumInt,
    TypeKind::Int,
    TypeKind::BigInt,
    TypeKind::Decimal,
    TypeKind::Float,
    TypeKind::Double,
    TypeKind::Char,
    TypeKind::VarChar,
    TypeKind::TinyText,
    TypeKind::Text,
    TypeKind::MediumText,
    TypeKind::LongText,
    TypeKind::Binary,
    TypeKind::VarBinary,
    TypeKind::TinyBlob,
    TypeKind::Blob,
    TypeKind::MediumBlob,
    TypeKind::LongBlob,
    TypeKind::Date,
    TypeKind::Time,
    TypeKind::DateTime,
    TypeKind::Timestamp,
    TypeKind::Json,
    TypeKind::Bit,
    TypeKind::Year,
];

impl Expression {
    /// An attribute of an operator.
    pub fn attribute(value: impl Into<Value>) -> Expression {
        Expression::Literal { value: value.into(), ty: None }
    }

    /// Whether it is within the bounds that a receiver sets.
    pub fn is_within_bounds(&self) -> bool {
        self.fits(MAX_DEPTH, &mut { MAX_NODES })
    }

    fn fits(&self, depth: usize, nodes: &mut usize) -> bool {
        if depth == 0 || *nodes == 0 {
            return false;
        }
        *nodes -= 1;
        match self {
            Expression::Test(_) | Expression::Literal { .. } | Expression::Column { .. } => true,
            Expression::And(parts) | Expression::Or(parts) => parts.iter().all(|part| part.fits(depth - 1, nodes)),
            Expression::Not(part) => part.fits(depth - 1, nodes),
            Expression::Call { name, arguments, .. } => {
                name.len() <= MAX_NAME && arguments.iter().all(|argument| argument.fits(depth - 1, nodes))
            }
        }
    }

    /// One beyond the bounds is refused by the receiver.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Expression::Test(test) => test.encode(out),
            Expression::And(parts) => put_list(AND, parts, out),
            Expression::Or(parts) => put_list(OR, parts, out),
            Expression::Not(part) => {
                out.push(NOT);
                part.encode(out);
            }
            Expression::Literal { value, ty: None } => {
                out.push(LITERAL);
                crate::value::put(value.as_ref(), out);
            }
            Expression::Literal { value, ty: Some(ty) } => {
                out.push(TYPED_LITERAL);
                ty.encode(out);
                crate::value::put(value.as_ref(), out);
            }
            Expression::Column { column, ty } => {
                out.push(COLUMN);
                ty.encode(out);
                put_varint((*column).into(), out);
            }
            Expression::Call { name, ty, arguments } => {
                out.push(CALL);
                ty.encode(out);
                out.push(u8::try_from(name.len()).expect("names are short"));
                out.extend_from_slice(name.as_bytes());
                put_all(arguments, out);
            }
        }
    }

    pub fn decode(reader: &mut Reader<'_>) -> Result<Expression, WireError> {
        decode(reader, MAX_DEPTH, &mut { MAX_NODES })
    }
}

impl Type {
    fn encode(&self, out: &mut Vec<u8>) {
        let Type { ty, nullable, coercibility } = self;
        let kind = KINDS.iter().position(|kind| *kind == ty.kind).expect("every kind has a number");
        let bit = |on: bool, flag: u8| if on { flag } else { 0 };
        let flags = bit(ty.unsigned, UNSIGNED) | bit(*nullable, NULLABLE) | bit(ty.zerofill, ZEROFILL);
        out.extend_from_slice(&[kind as u8, flags]);
        put_varint(ty.length, out);
        out.extend_from_slice(&[ty.precision, ty.scale]);
        put_varint(ty.collation.mysql_id().into(), out);
        out.push(*coercibility);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Type, WireError> {
        let [kind, flags] = reader.array()?;
        let kind = *KINDS.get(usize::from(kind)).ok_or_else(|| reader.malformed())?;
        let length = reader.varint()?;
        let [precision, scale] = reader.array()?;
        let number = reader.varint()?;
        let collation = u16::try_from(number).ok().and_then(Collation::from_mysql_id);
        let collation = collation.ok_or_else(|| reader.malformed())?;
        let coercibility = reader.u8()?;
        let sound = flags & !(UNSIGNED | NULLABLE | ZEROFILL) == 0
            && (flags & ZEROFILL == 0 || DataType::new(kind).is_numeric())
            && precision <= MAX_PRECISION
            && (scale <= MAX_SCALE || scale == NO_SCALE && kind != TypeKind::Decimal)
            && coercibility <= MAX_COERCIBILITY;
        if !sound {
            return Err(reader.malformed());
        }
        let zerofill = flags & ZEROFILL != 0;
        let unsigned = flags & UNSIGNED != 0;
        let ty = DataType { unsigned, length, precision, scale, collation, zerofill, ..DataType::new(kind) };
        Ok(Type { ty, nullable: flags & NULLABLE != 0, coercibility })
    }
}

fn put_list(tag: u8, parts: &[Expression], out: &mut Vec<u8>) {
    out.push(tag);
    put_all(parts, out);
}

fn put_all(parts: &[Expression], out: &mut Vec<u8>) {
    put_varint(u32::try_from(parts.len()).expect("a list in memory"), out);
    parts.iter().for_each(|part| part.encode(out));
}

fn decode(reader: &mut Reader<'_>, depth: usize, nodes: &mut usize) -> Result<Expression, WireError> {
    if depth == 0 || *nodes == 0 {
        return Err(reader.malformed());
    }
    let mut ahead = *reader;
    Ok(match ahead.u8()? {
        0..=2 => Expression::Test(filter::decode(reader, 1, nodes)?),
        tag => {
            *nodes -= 1;
            *reader = ahead;
            match tag {
                AND => Expression::And(decode_all(reader, depth, nodes)?),
                OR => Expression::Or(decode_all(reader, depth, nodes)?),
                NOT => Expression::Not(Box::new(decode(reader, depth - 1, nodes)?)),
                LITERAL => Expression::Literal { value: crate::value::get(reader)?.to_owned(), ty: None },
                TYPED_LITERAL => {
                    let ty = Some(Type::decode(reader)?);
                    Expression::Literal { value: crate::value::get(reader)?.to_owned(), ty }
                }
                COLUMN => {
                    let ty = Type::decode(reader)?;
                    Expression::Column { column: column_number(reader)?, ty }
                }
                CALL => {
                    let ty = Type::decode(reader)?;
                    let length = usize::from(reader.u8()?);
                    if length > MAX_NAME {
                        return Err(reader.malformed());
                    }
                    let name = std::str::from_utf8(reader.bytes(length)?).map_err(|_| reader.malformed())?.to_string();
                    Expression::Call { name, ty, arguments: decode_all(reader, depth, nodes)? }
                }
                _ => return Err(reader.malformed()),
            }
        }
    })
}

fn decode_all(reader: &mut Reader<'_>, depth: usize, nodes: &mut usize) -> Result<Vec<Expression>, WireError> {
    let count = reader.varint()? as usize;
    // Each takes a byte at least.
    if count > *nodes || count > reader.remaining() {
        return Err(reader.malformed());
    }
    (0..count).map(|_| decode(reader, depth - 1, nodes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CompareOp;
    use proptest::prelude::*;

    fn ty(kind: TypeKind) -> Type {
        Type { ty: DataType::new(kind), nullable: true, coercibility: 2 }
    }

    fn bytes(expression: &Expression) -> Vec<u8> {
        let mut out = Vec::new();
        expression.encode(&mut out);
        out
    }

    fn read(bytes: &[u8]) -> Result<Expression, WireError> {
        let mut reader = Reader::new(bytes, "expression");
        let read = Expression::decode(&mut reader)?;
        reader.end().map(|()| read)
    }

    fn expressions() -> impl Strategy<Value = Expression> {
        let types = (0..KINDS.len(), any::<(bool, bool)>(), 0..100u32, 0..=6u8).prop_map(|(kind, flags, length, c)| {
            let plain = DataType::new(KINDS[kind]);
            let ty = DataType { unsigned: flags.0, zerofill: flags.0 && plain.is_numeric(), length, ..plain };
            Type { ty, nullable: flags.1, coercibility: c }
        });
        let value =
            prop_oneof![any::<i64>().prop_map(Value::Int), "[a-z]{0,20}".prop_map(Value::Str), Just(Value::Null)];
        let compare = |(column, value)| Filter::Compare { column, op: CompareOp::Less, value };
        let leaf = prop_oneof![
            (0..100u16, value.clone()).prop_map(compare).prop_map(Expression::Test),
            (value, proptest::option::of(types.clone())).prop_map(|(value, ty)| Expression::Literal { value, ty }),
            (0..100u16, types.clone()).prop_map(|(column, ty)| Expression::Column { column, ty }),
        ];
        leaf.prop_recursive(6, 40, 4, move |inner| {
            let list = prop::collection::vec(inner.clone(), 0..4);
            prop_oneof![
                list.clone().prop_map(Expression::And),
                list.clone().prop_map(Expression::Or),
                inner.prop_map(|part| Expression::Not(Box::new(part))),
                ("[A-Z ]{0,20}", types.clone(), list).prop_map(|(name, ty, arguments)| Expression::Call {
                    name,
                    ty,
                    arguments
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(expression in expressions()) {
            prop_assert!(expression.is_within_bounds());
            prop_assert_eq!(read(&bytes(&expression)), Ok(expression));
        }

        /// Whatever comes is read or refused, and what is read can be written and read again.
        #[test]
        fn any_bytes_do_no_harm(data in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(expression) = read(&data) {
                // By bytes: a double may be none that equals itself.
                let written = bytes(&expression);
                prop_assert_eq!(read(&written).map(|again| bytes(&again)), Ok(written));
            }
        }

        /// The same of bytes that are nearly right.
        #[test]
        fn damaged_bytes_do_no_harm(expression in expressions(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut data = bytes(&expression);
            let at = at.index(data.len());
            data[at] = byte;
            if let Ok(expression) = read(&data) {
                // By bytes: a double may be none that equals itself.
                let written = bytes(&expression);
                prop_assert_eq!(read(&written).map(|again| bytes(&again)), Ok(written));
            }
            let _ = read(&data[..at]);
        }
    }

    /// Bytes that are frozen: nodes of several versions read them.
    #[test]
    fn bytes_stay() {
        let column = Expression::Column { column: 300, ty: ty(TypeKind::Int) };
        let value = Expression::Literal { value: Value::Int(7), ty: Some(ty(TypeKind::BigInt)) };
        let arguments = vec![column, value, Expression::attribute("integer")];
        let equal = Expression::Call { name: "=".to_string(), ty: ty(TypeKind::Int), arguments };
        let test = Expression::Test(Filter::IsNull { column: 2 });
        let all = Expression::And(vec![equal, Expression::Not(Box::new(test))]);
        let expected = [
            3, 2, // AND of two
            9, 4, 2, 0, 0, 0, 63, 2, 1, b'=', 3, // = of three, INT NULL
            8, 4, 2, 0, 0, 0, 63, 2, 0xAC, 2, // column 300
            7, 5, 2, 0, 0, 0, 63, 2, 0x11, 7, // 7
            6, 0x97, b'i', b'n', b't', b'e', b'g', b'e', b'r', // as what they compare
            5, 1, 2, // NOT column 2 IS NULL
        ];
        assert_eq!(bytes(&all), expected);
        assert_eq!(read(&expected), Ok(all));
    }

    #[test]
    fn a_native_filter_is_an_expression() {
        let test = |column| Filter::Compare { column, op: CompareOp::Equal, value: Value::Int(1) };
        let filter = Filter::And(vec![test(1), Filter::Not(Box::new(Filter::Or(vec![test(2), test(3)])))]);
        let mut data = Vec::new();
        filter.encode(&mut data);
        let expression = read(&data).unwrap();
        assert_eq!(bytes(&expression), data);
        assert!(matches!(&expression, Expression::And(parts) if parts[0] == Expression::Test(test(1))));
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let leaf = || Expression::attribute(1);
        let deep = |levels: usize| (1..levels).fold(leaf(), |inner, _| Expression::Not(Box::new(inner)));
        assert!(deep(MAX_DEPTH).is_within_bounds() && read(&bytes(&deep(MAX_DEPTH))).is_ok());
        assert!(!deep(MAX_DEPTH + 1).is_within_bounds() && read(&bytes(&deep(MAX_DEPTH + 1))).is_err());
        let wide = |nodes: usize| Expression::Or((1..nodes).map(|_| leaf()).collect());
        assert!(wide(MAX_NODES).is_within_bounds() && read(&bytes(&wide(MAX_NODES))).is_ok());
        assert!(!wide(MAX_NODES + 1).is_within_bounds() && read(&bytes(&wide(MAX_NODES + 1))).is_err());
        // A count that lies.
        assert!(read(&[AND, 0xFF, 0xFF, 3]).is_err());
        let long = Expression::Call { name: "N".repeat(MAX_NAME + 1), ty: ty(TypeKind::Int), arguments: vec![] };
        assert!(!long.is_within_bounds() && read(&bytes(&long)).is_err());
    }
}

//! Expressions on their way to other nodes: typed trees as the form of [`rauk_wire::expression`], and back.
//!
//! Operators and functions go by name ([`encode`], [`decode`] have the same list). An operator's comparison, escape character or unit is an
//! attribute behind its operands. AND and OR are flattened, and built again as low trees: both are evaluated from left to right. What can be
//! derived is not sent: compiled patterns, sorted lists, marks of high trees.
//!
//! Only *bounded* expressions are encoded: they depend on nothing but their row, their parameters and the context that is sent along (sql_mode, time
//! zone, statement time), and take time in proportion to their inputs. A function says so of itself ([`Function::bounded`](super::functions::Function)).
//! Parameters, and columns of other tables, become literals.
//!
//! A regular expression goes when its pattern is known, short and compiles into little; beside the rows it takes texts up to a length that depends on its
//! size, longer ones are left to the sender. Rows compared in order are a call with the operator's name behind `ROW`.
//!
//! Left out, and evaluated by the sender: subqueries, variables, other regular expressions, functions that read the session or may make long results.
//!
//! Who decodes trusts nothing: sizes are bounded by the form, a column must have the type that the receiver knows, an operator the operands
//! that it needs. What is not known or does not fit is `None`.

mod decode;
mod encode;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use decode::decode;
pub(crate) use encode::{Inputs, encode};

use super::{ArithmeticOp, BitOp, CompareOp, Comparison};
use rauk_types::Collation;

const COMPARISONS: [(CompareOp, &str); 7] = [
    (CompareOp::Eq, "="),
    (CompareOp::NullSafeEq, "<=>"),
    (CompareOp::Ne, "<>"),
    (CompareOp::Lt, "<"),
    (CompareOp::Le, "<="),
    (CompareOp::Gt, ">"),
    (CompareOp::Ge, ">="),
];

const ARITHMETIC: [(ArithmeticOp, &str); 6] = [
    (ArithmeticOp::Add, "+"),
    (ArithmeticOp::Subtract, "-"),
    (ArithmeticOp::Multiply, "*"),
    (ArithmeticOp::Divide, "/"),
    (ArithmeticOp::IntegerDivide, "DIV"),
    (ArithmeticOp::Modulo, "%"),
];

const BITS: [(BitOp, &str); 5] =
    [(BitOp::And, "&"), (BitOp::Or, "|"), (BitOp::Xor, "^"), (BitOp::ShiftLeft, "<<"), (BitOp::ShiftRight, ">>")];

/// IS [NOT] TRUE and FALSE, as (truth, negated).
const TRUTHS: [((bool, bool), &str); 4] = [
    ((true, false), "IS TRUE"),
    ((true, true), "IS NOT TRUE"),
    ((false, false), "IS FALSE"),
    ((false, true), "IS NOT FALSE"),
];

/// The other operators.
#[cfg(test)]
const OTHERS: [&str; 26] = [
    "XOR",
    "IS NULL",
    "IS NOT NULL",
    "BETWEEN",
    "NOT BETWEEN",
    "IN",
    "NOT IN",
    "IN EACH",
    "NOT IN EACH",
    "LIKE",
    "NOT LIKE",
    "REGEXP",
    "NOT REGEXP",
    "ROW IN",
    "NOT ROW IN",
    "ROW IN EACH",
    "NOT ROW IN EACH",
    "NEGATE",
    "~",
    "CASE",
    "CASE OF",
    "COALESCE",
    "NULLIF",
    "CAST",
    "COLLATE",
    "DATE_ADD",
];
const DATE_SUB: &str = "DATE_SUB";

/// Rows in an order.
const ROW_ORDERS: [(CompareOp, &str); 4] =
    [(CompareOp::Lt, "ROW <"), (CompareOp::Le, "ROW <="), (CompareOp::Gt, "ROW >"), (CompareOp::Ge, "ROW >=")];

fn name_of<T: PartialEq>(list: &[(T, &'static str)], value: &T) -> &'static str {
    list.iter().find(|(known, _)| known == value).map(|(_, name)| *name).expect("every operator has a name")
}

fn by_name<T: Copy>(list: &[(T, &'static str)], name: &str) -> Option<T> {
    list.iter().find(|(_, known)| *known == name).map(|(value, _)| *value)
}

/// As what values are compared; text by the name of its collation.
fn comparison_name(by: Comparison) -> &'static str {
    match by {
        Comparison::Integer => "INTEGER",
        Comparison::Decimal => "DECIMAL",
        Comparison::Double => "DOUBLE",
        Comparison::Text(collation) => collation.name(),
        Comparison::Bytes => "BYTES",
        Comparison::DateTime => "DATETIME",
        Comparison::Time => "TIME",
        Comparison::Json => "JSON",
    }
}

fn comparison(name: &str) -> Option<Comparison> {
    Some(match name {
        "INTEGER" => Comparison::Integer,
        "DECIMAL" => Comparison::Decimal,
        "DOUBLE" => Comparison::Double,
        "BYTES" => Comparison::Bytes,
        "DATETIME" => Comparison::DateTime,
        "TIME" => Comparison::Time,
        "JSON" => Comparison::Json,
        name => Comparison::Text(collation(name)?),
    })
}

fn collation(name: &str) -> Option<Collation> {
    Collation::named(name)
}

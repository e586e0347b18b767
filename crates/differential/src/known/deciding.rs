//! Values that decide nothing: whether they are computed, and warn.
//!
//! A value beside NULL in `<=>`, the upper bound of a BETWEEN whose lower one decides and what stands in IN behind a
//! value that is equal are not converted here; MariaDB converts them, and warns. It does not compute what IS UNKNOWN
//! and IS NULL ask of where that can never be NULL, and so neither warns of it nor, in a strict change, refuses it. In
//! these words MariaDB computes what Rauk does.

use super::evidence::is_null;
use super::names::Names;
use super::words::{Step, each, reworded};
use super::{Kind, Test};
use crate::tree::{Class, Expr, Statement};

pub const KINDS: &[Kind] = &[Kind {
    name: "values that decide nothing",
    manual: "https://dev.mysql.com/doc/refman/8.0/en/comparison-operators.html",
    test: Test::Words(&[deciding]),
}];

pub(super) fn deciding(statement: &mut Statement, _: &Names<'_>) -> bool {
    let is_known = each(statement, &mut |expr| match expr {
        Expr::Form { form: "({0} <=> {1})", arguments, .. } if arguments.iter().any(is_null) => {
            let at = usize::from(is_null(&arguments[0]));
            *expr = Expr::form("({0} IS NULL)", Class::Boolean, vec![arguments.swap_remove(at)]);
            Step::Changed
        }
        _ => Step::Same,
    });
    let is_reworded = reworded(
        statement,
        &[
            ("({0} BETWEEN {1} AND {2})", "({0} >= {1} AND {0} <= {2})"),
            ("({0} NOT BETWEEN {1} AND {2})", "({0} < {1} OR {0} > {2})"),
            ("({0} IN ({1}, {2}, {3}))", "({0} = {1} OR {0} = {2} OR {0} = {3})"),
            ("({0} NOT IN ({1}, {2}))", "(NOT ({0} = {1} OR {0} = {2}))"),
            ("ELT({0}, {1}, {2})", "CASE {0} WHEN 1 THEN {1} WHEN 2 THEN {2} END"),
            // Counted without a look at what is never NULL.
            ("COUNT({0})", "COUNT(CASE WHEN LENGTH({0}) >= 0 THEN 1 END)"),
            // The length of NULL is NULL, and is not known before there is a value.
            ("({0} IS UNKNOWN)", "CASE WHEN LENGTH({0}) >= 0 THEN 0 ELSE 1 END"),
            ("({0} IS NULL)", "CASE WHEN LENGTH({0}) >= 0 THEN 0 ELSE 1 END"),
            ("({0} IS NOT NULL)", "CASE WHEN LENGTH({0}) >= 0 THEN 1 ELSE 0 END"),
        ],
    );
    is_known || is_reworded
}

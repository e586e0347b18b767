//! Values that decide nothing: whether they are computed, and warn.
//!
//! A value beside NULL in `<=>`, the upper bound of a BETWEEN whose lower one decides and what stands in IN behind a
//! value that is equal are not converted here, nor are constants behind one that decides an AND or OR; MariaDB
//! converts them, and warns. It does not compute what IS UNKNOWN
//! and IS NULL ask of where that can never be NULL, and so neither warns of it nor, in a strict change, refuses it. In
//! these words MariaDB computes what Rauk does.

use super::evidence::is_null;
use super::names::Names;
use super::places::is_constant;
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
        Expr::Form { form: form @ ("({0} AND {1})" | "({0} OR {1})"), arguments, .. }
            if arguments.iter().all(is_constant) =>
        {
            *form = match *form {
                "({0} AND {1})" => "CASE WHEN NOT {0} THEN 0 WHEN NOT {1} THEN 0 WHEN {0} AND {1} THEN 1 END",
                _ => "CASE WHEN {0} THEN 1 WHEN {1} THEN 1 WHEN NOT ({0} OR {1}) THEN 0 END",
            };
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
            // Computed also where the left side is NULL.
            ("({0} ^ {1})", "CASE WHEN {0} IS NULL THEN NULL ELSE ({0} ^ {1}) END"),
            // Taken for a number without a warning.
            ("GROUP_CONCAT({0} ORDER BY {0} + 0)", "CONCAT(GROUP_CONCAT({0} ORDER BY {0} + 0))"),
            (
                "GROUP_CONCAT(DISTINCT {0} ORDER BY {0} + 0 DESC)",
                "CONCAT(GROUP_CONCAT(DISTINCT {0} ORDER BY {0} + 0 DESC))",
            ),
            (
                "GROUP_CONCAT({0} ORDER BY HEX({0}) DESC SEPARATOR '|')",
                "CONCAT(GROUP_CONCAT({0} ORDER BY HEX({0}) DESC SEPARATOR '|'))",
            ),
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

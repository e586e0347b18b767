//! Expressions that a plan may or may not evaluate.
//!
//! Conditions are taken in any order, tables are joined in any order, a filter may go before what a derived table
//! computes, and under a LIMIT or an EXISTS no more rows are made than are asked for; LEAD and its like give the values of
//! some rows. What such a place computes for a row that the result does not need may fail, or not be computed. Everywhere
//! else an error is an error for both.

use super::evidence::{begins, is_null};
use super::words::is_aggregate;
use crate::tree::feature::is_correlated;
use crate::tree::visit::{Node, walk};
use crate::tree::{Body, Class, Expr, From, Query, Select, Statement};

/// Whether the statement computes something that fails with this code where a plan may leave it out.
pub fn may_be_left_out(statement: &Statement, code: u16) -> bool {
    let mut search = Search { code, found: false, is_beside: false };
    search.statement(statement);
    search.found
}

struct Search {
    code: u16,
    found: bool,
    /// There is another condition than the change's own.
    is_beside: bool,
}

impl Search {
    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Query(query) | Statement::View { query, .. } => self.query(query, false),
            Statement::ThroughView { filter, change, .. } => {
                // The view's condition stands beside that of the change.
                filter.iter().for_each(|filter| self.expr(filter, true));
                self.is_beside = filter.is_some();
                self.statement(change);
            }
            Statement::Insert { source, on_duplicate, .. } => {
                match source {
                    crate::tree::Source::Rows(rows) => rows.iter().flatten().for_each(|e| self.expr(e, false)),
                    crate::tree::Source::Query(query) => self.query(query, false),
                }
                on_duplicate.iter().for_each(|(_, value)| self.expr(value, false));
            }
            Statement::Update { with, from, set, filter, limit, .. } => {
                with.iter().for_each(|cte| self.query(&cte.query, true));
                self.from(from);
                let is_open = limit.is_some() || self.is_beside || matches!(from, From::Join { .. });
                set.iter().for_each(|(_, value)| self.expr(value, is_open));
                self.filter(filter.as_ref(), is_open);
            }
            Statement::Delete { with, from, filter, limit, .. } => {
                with.iter().for_each(|cte| self.query(&cte.query, true));
                self.from(from);
                let is_open = limit.is_some() || self.is_beside || matches!(from, From::Join { .. });
                self.filter(filter.as_ref(), is_open);
            }
        }
    }

    /// `is_open`: what the query gives is not needed, or not all of it.
    fn query(&mut self, query: &Query, is_open: bool) {
        query.with.iter().for_each(|cte| self.query(&cte.query, true));
        let is_open = is_open || query.limit.is_some();
        match &query.body {
            Body::Select(select) => self.select(select, is_open),
            Body::Set { left, right, .. } => {
                self.query(left, is_open);
                self.query(right, is_open);
            }
            Body::Values(rows) => rows.iter().flatten().for_each(|expr| self.expr(expr, is_open)),
            Body::Table(_) => {}
        }
    }

    fn select(&mut self, select: &Select, is_open: bool) {
        if let Some(from) = &select.from {
            self.from(from);
        }
        let joins = matches!(select.from, Some(From::Join { .. }));
        // A group's item may be computed before HAVING has dropped the group.
        let items_open = is_open || select.having.is_some();
        select.items.iter().for_each(|item| self.expr(&item.expr, items_open));
        select.group.iter().for_each(|expr| self.expr(expr, is_open));
        self.filter(select.filter.as_ref(), is_open || joins || select.having.is_some());
        self.filter(select.having.as_ref(), is_open || select.filter.is_some());
    }

    fn from(&mut self, from: &From) {
        match from {
            From::Table { .. } => {}
            From::Derived { query, .. } => self.query(query, true),
            From::Join { left, right, on, .. } => {
                self.from(left);
                self.from(right);
                on.iter().for_each(|on| self.expr(on, true));
            }
        }
    }

    fn filter(&mut self, filter: Option<&Expr>, is_open: bool) {
        if let Some(filter) = filter {
            self.expr(filter, is_open);
        }
    }

    fn expr(&mut self, expr: &Expr, is_open: bool) {
        // A subquery that depends on no row may be evaluated before there is one.
        self.found |= (is_open || self.code == 1242) && may_fail(expr, self.code);
        match expr {
            Expr::Literal { .. } | Expr::Column { .. } => {}
            Expr::Form { form, arguments, .. } => {
                // Of a value that is compared with itself the answer is known.
                let is_same = matches!(&arguments[..], [one, other] if one == other);
                let is_open = is_open || is_same || form.contains(" AND ") || form.contains(" OR ");
                // What stands behind a NULL is not looked at, nor behind what is NULL for every row.
                let stops =
                    ["FIELD(", "COUNT(DISTINCT {0}, {1}", "SUBSTRING("].iter().any(|begin| form.starts_with(begin));
                for (at, argument) in arguments.iter().enumerate() {
                    let stops = stops && at > 0 || arguments[..at].iter().any(is_always_null);
                    self.expr(argument, is_open || stops);
                }
            }
            Expr::Subquery { arguments, query, .. } => {
                arguments.iter().for_each(|argument| self.expr(argument, true));
                self.query(query, true);
            }
            Expr::Window { function, partition, .. } => {
                // Of rows that no other row asks for nothing is needed.
                let is_of_one = begins(function, &["LAG(", "LEAD(", "FIRST_VALUE(", "LAST_VALUE(", "NTH_VALUE("]);
                self.expr(function, is_open || is_of_one);
                partition.iter().for_each(|expr| self.expr(expr, is_open));
            }
        }
    }
}

/// Whether something is computed from an aggregate, or from constants, that fails with this code: MariaDB computes it when
/// there is no row yet.
pub fn may_fail_before_rows(statement: &Statement, code: u16) -> bool {
    let mut found = false;
    walk(statement, &mut |node| {
        if let Node::Expr(expr @ Expr::Form { arguments, .. }) = node {
            let is_early = arguments.iter().any(has_aggregate) || arguments.iter().all(is_known);
            found |= may_fail(expr, code) && (is_early || code == 1292 && is_looked_up(expr));
        }
    });
    found
}

/// A constant, or what is computed from constants and subqueries that read no row of the blocks around them.
fn is_known(expr: &Expr) -> bool {
    match expr {
        Expr::Form { form, arguments, .. } => !is_aggregate(form) && arguments.iter().all(is_known),
        Expr::Subquery { arguments, query, .. } => arguments.iter().all(is_known) && !is_correlated(query),
        other => is_constant(other),
    }
}

/// A constant that may be NULL, as MariaDB knows before there is a row.
fn is_always_null(expr: &Expr) -> bool {
    match expr {
        Expr::Form { arguments, .. } => is_constant(expr) && arguments.iter().any(is_always_null),
        other => is_null(other),
    }
}

pub fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Literal { .. } => true,
        Expr::Form { form, arguments, .. } => !is_aggregate(form) && arguments.iter().all(is_constant),
        _ => false,
    }
}

/// A constant text that is equal to something is converted before there is a row, to look for it in an index.
fn is_looked_up(expr: &Expr) -> bool {
    let is_text = |expr: &Expr| is_constant(expr) && expr.class() == Class::Text;
    match expr {
        Expr::Form { form: "({0} = {1})" | "({0} <=> {1})", arguments, .. } => arguments.iter().any(is_text),
        _ => false,
    }
}

fn has_aggregate(expr: &Expr) -> bool {
    match expr {
        Expr::Form { form, arguments, .. } => is_aggregate(form) || arguments.iter().any(has_aggregate),
        _ => false,
    }
}

/// Whether this expression itself, of some values, fails with this code.
pub fn may_fail(expr: &Expr, code: u16) -> bool {
    match (expr, code) {
        (Expr::Subquery { form, .. }, 1242) => *form == "{Q}",
        (Expr::Form { form, .. }, 1365) => {
            [" / ", " % ", " DIV ", "MOD(", "LN(", "LOG("].iter().any(|text| form.contains(text))
        }
        (Expr::Form { form, .. }, 1441) => ["INTERVAL", "ADD(", "TIME("].iter().any(|text| form.contains(text)),
        // Out of range; 1916 is MariaDB's own.
        (Expr::Form { class, .. }, 1690 | 1916) => class.is_number() && *class != Class::Boolean,
        // A text that is no number or date, a value that its type has not.
        (Expr::Form { form, arguments, .. }, 1264 | 1292) => {
            let is_time = || {
                ["ADDTIME(", "SUBTIME(", "TIMEDIFF(", "SEC_TO_TIME(", "MAKETIME("].iter().any(|f| form.starts_with(f))
            };
            form.contains("CAST(")
                || arguments.iter().any(|argument| argument.class() == Class::Text)
                || code == 1292 && is_time()
        }
        _ => false,
    }
}

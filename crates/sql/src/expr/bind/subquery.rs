//! Subqueries in expressions: values, rows, EXISTS, IN, ANY and ALL.
//!
//! The query is bound by the scope ([`Scope::subquery`](crate::expr::Scope::subquery)); here it is decided how its columns compare with what stands at the
//! left, by the same rules as two expressions side by side. A column of ENUM or SET is its text as a value and in a row; in IN, ANY and ALL it is what its
//! comparison asks for: the number beside a number.

use super::operators::{adapted, boolean};
use super::{Binder, members, one_column};
use crate::expr::convert::Result;
use crate::expr::{BoundSubquery, CompareOp, Comparison, Expr, ExprKind, Subquery, SubqueryTest};
use crate::parse::ast::{self, Quantifier};
use rauk_types::MysqlError;
use rauk_types::error::codes;

fn columns_expected(count: usize) -> MysqlError {
    MysqlError::new(codes::OPERAND_COLUMNS, format!("Operand should contain {count} column(s)"))
}

fn node(bound: BoundSubquery, test: SubqueryTest) -> ExprKind {
    ExprKind::Subquery(Box::new(Subquery { id: bound.id, outer: bound.outer, test }))
}

impl Binder<'_> {
    /// `(SELECT …)` as a value. Error 1241 unless it has one column.
    pub fn subquery_value(&mut self, query: &ast::Query) -> Result<Expr> {
        let bound = self.text_query(query)?;
        let [column] = bound.columns.as_slice() else { return Err(one_column()) };
        let (ty, coercibility) = (column.ty, column.coercibility);
        Ok(Expr { kind: node(bound, SubqueryTest::Scalar), ty, nullable: true, coercibility })
    }

    pub fn exists(&mut self, query: &ast::Query) -> Result<Expr> {
        let bound = self.scope.subquery(query)?;
        Ok(boolean(node(bound, SubqueryTest::Exists), false))
    }

    /// `operand [NOT] IN (SELECT …)`.
    pub fn in_query(&mut self, operand: &ast::Expr, query: &ast::Query, negated: bool) -> Result<Expr> {
        let op = if negated { CompareOp::Ne } else { CompareOp::Eq };
        self.quantified(operand, op, negated, query)
    }

    /// `left op ANY (SELECT …)`, `left op ALL (SELECT …)`.
    pub fn any_or_all(
        &mut self,
        left: &ast::Expr,
        op: CompareOp,
        quantifier: Quantifier,
        query: &ast::Query,
    ) -> Result<Expr> {
        self.quantified(left, op, quantifier == Quantifier::All, query)
    }

    fn quantified(&mut self, left: &ast::Expr, op: CompareOp, all: bool, query: &ast::Query) -> Result<Expr> {
        let left = self.row_parts(left)?;
        // Rows have an order only side by side.
        let membership = matches!((op, all), (CompareOp::Eq, false) | (CompareOp::Ne, true));
        if left.len() > 1 && !membership {
            return Err(one_column());
        }
        let mut bound = self.scope.subquery(query)?;
        let (left, by) = self.beside(left, &bound, &if membership { CompareOp::Eq } else { op }.to_string())?;
        let texts: Vec<bool> = by.iter().map(|by| members::as_texts(*by)).collect();
        self.members_to_texts(&mut bound, &texts);
        // A query may have no rows, and then the answer is never NULL; who knows before it runs.
        Ok(boolean(node(bound, SubqueryTest::Quantified { left, op, by, all }), true))
    }

    /// `(a, b) op (SELECT x, y …)`.
    pub fn compare_with_row(&mut self, op: CompareOp, left: &[ast::Expr], query: &ast::Query) -> Result<Expr> {
        let left = left.iter().map(|part| self.bind(part)).collect::<Result<Vec<_>>>()?;
        let bound = self.text_query(query)?;
        let (left, by) = self.beside(left, &bound, "=")?;
        Ok(boolean(node(bound, SubqueryTest::Row { left, op, by }), op != CompareOp::NullSafeEq))
    }

    /// A query whose columns of ENUM and SET are texts.
    fn text_query(&mut self, query: &ast::Query) -> Result<BoundSubquery> {
        let mut bound = self.scope.subquery(query)?;
        let all = vec![true; bound.columns.len()];
        self.members_to_texts(&mut bound, &all);
        Ok(bound)
    }

    fn members_to_texts(&mut self, bound: &mut BoundSubquery, wanted: &[bool]) {
        if bound.columns.iter().zip(wanted).any(|(column, wanted)| *wanted && column.ty.has_members()) {
            self.scope.subquery_texts(bound, wanted);
        }
    }

    fn row_parts(&mut self, expr: &ast::Expr) -> Result<Vec<Expr>> {
        match expr {
            ast::Expr::Row(parts) => parts.iter().map(|part| self.bind(part)).collect(),
            expr => Ok(vec![self.bind(expr)?]),
        }
    }

    /// How each part at the left compares with its column. Error 1241.
    fn beside(&self, left: Vec<Expr>, bound: &BoundSubquery, name: &str) -> Result<(Vec<Expr>, Vec<Comparison>)> {
        if left.len() != bound.columns.len() {
            return Err(columns_expected(left.len()));
        }
        let mut parts = Vec::with_capacity(left.len());
        let mut by = Vec::with_capacity(left.len());
        for (part, column) in left.into_iter().zip(&bound.columns) {
            let comparison = self.comparison(&part, column, name)?;
            parts.push(adapted(part, comparison, &column.ty)?);
            by.push(comparison);
        }
        Ok((parts, by))
    }
}

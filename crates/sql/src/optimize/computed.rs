//! Expressions that keys have.
//!
//! `KEY ((LOWER(name)))` keeps its expression in a column that no statement can name, and a generated column keeps one that statements often write out
//! instead of its name. Where a block computes such an expression of a table in its reach, it reads the column: then conditions on it find the
//! key, as conditions on any column do, and ORDER BY and GROUP BY find its order. MySQL does the same ("Optimizer Use of Generated Column Indexes").
//!
//! An expression is the same when its bound tree is the same: the same functions over the same columns, types, collations and literals. Which columns a
//! table offers is the binder's choice (`Scan::computed`): the column gives every session what the session would compute.
//!
//! Behind an outer join a row of its right side may be one of NULLs, of which the expression may be something else than NULL: there the right side offers
//! nothing, but to the join's own condition.
//!
//! A key on the elements of an array (`CAST(doc->'$.zips' AS UNSIGNED ARRAY)`) serves conditions on the array: `… MEMBER OF (doc->'$.zips')`, JSON_CONTAINS and
//! JSON_OVERLAPS with constants, and MEMBER OF with columns of other tables. Such a condition stays as it is, and says beside it what elements the rows have that it holds for ([`by_elements`]).
//!
//! A literal that the plan cache has taken out of a statement is a parameter. An expression that would be the same with a literal in its place makes the
//! statement one that is planned with its literals ([`Statement::by_values`]).

use super::elements::{Asked, Way};
use super::walk::for_each_inner_query;
use crate::expr::{ColumnId, Expr, ExprKind, by_elements, elements_of};
use crate::logical::{Body, JoinKind, Node, Query, Statement, Target, Write};
use rauk_types::{DataType, TypeKind};

/// What a column holds.
#[derive(Clone)]
struct Computed {
    column: ColumnId,
    ty: DataType,
    expr: Expr,
    /// The same without what a literal in the place of a parameter may change.
    outline: Expr,
}

/// Tells whether it has found something to do; the tree is the same otherwise.
pub fn pass(statement: &mut Statement) -> bool {
    let mut look = Look { found: false, by_values: false };
    match &mut statement.body {
        Body::Query(query) => look.in_query(query),
        Body::Write(write) => {
            match write {
                Write::Update(update) => look.in_target(&mut update.target),
                Write::Delete(delete) => look.in_target(&mut delete.target),
                Write::Insert(_) | Write::Change(_) => {}
            }
            if let Some(query) = write.query_mut() {
                look.in_query(query);
            }
        }
    }
    for subquery in &mut statement.subqueries {
        look.in_query(&mut subquery.query);
    }
    for table in &mut statement.tables {
        look.in_query(&mut table.seed);
        if let Some(recursive) = &mut table.recursive {
            look.in_query(&mut recursive.query);
        }
    }
    statement.by_values |= look.by_values;
    look.found
}

struct Look {
    found: bool,
    by_values: bool,
}

impl Look {
    fn in_query(&mut self, query: &mut Query) {
        self.in_node(&mut query.node);
        for_each_inner_query(&mut query.node, &mut |inner| crate::stack::grow(|| self.in_query(inner)));
    }

    fn in_target(&mut self, target: &mut Target) {
        let computed = of_scan(&target.scan);
        self.replace_all(
            target.conditions.iter_mut().chain(target.order.iter_mut().map(|key| &mut key.expr)),
            &computed,
        );
        self.find_elements(target.conditions.iter_mut(), &computed);
    }

    /// Gives what expressions above the node may use.
    fn in_node(&mut self, node: &mut Node) -> Vec<Computed> {
        match node {
            Node::Scan(scan) => of_scan(scan),
            Node::Join(join) => crate::stack::grow(|| {
                let mut left = self.in_node(&mut join.left);
                let right = self.in_node(&mut join.right);
                let own = left.len();
                left.extend(right);
                self.replace_all(join.on.iter_mut(), &left);
                self.find_elements(join.on.iter_mut(), &left);
                if join.kind != JoinKind::Inner {
                    left.truncate(own);
                }
                left
            }),
            Node::Filter { input, conditions, .. } => {
                let computed = crate::stack::grow(|| self.in_node(input));
                self.replace_all(conditions.iter_mut(), &computed);
                self.find_elements(conditions.iter_mut(), &computed);
                computed
            }
            Node::Aggregate(aggregate) => {
                let computed = self.in_node(&mut aggregate.input);
                self.replace_all(aggregate.keys.iter_mut(), &computed);
                for (_, aggregate) in &mut aggregate.aggregates {
                    let order = aggregate.order_by.iter_mut().map(|(expr, _)| expr);
                    self.replace_all(aggregate.arguments.iter_mut().chain(order), &computed);
                }
                computed
            }
            Node::Sort { input, keys } => {
                let computed = self.in_node(input);
                self.replace_all(keys.iter_mut().map(|key| &mut key.expr), &computed);
                computed
            }
            Node::Project { input, items } => {
                let computed = self.in_node(input);
                self.replace_all(items.iter_mut().map(|(_, expr)| expr), &computed);
                vec![]
            }
            Node::Distinct { input, .. } => self.in_node(input),
            Node::Limit(limit) => self.in_node(&mut limit.input),
            Node::OneRow
            | Node::Values { .. }
            | Node::CommonTable(_)
            | Node::Derived(_)
            | Node::Lateral(_)
            | Node::TableFunction(_)
            | Node::Window(_)
            | Node::SetOperation(_) => vec![],
        }
    }

    fn replace_all<'a>(&mut self, exprs: impl Iterator<Item = &'a mut Expr>, computed: &[Computed]) {
        if !computed.is_empty() {
            exprs.for_each(|expr| self.replace(expr, computed));
        }
    }

    fn find_elements<'a>(&mut self, conditions: impl Iterator<Item = &'a mut Expr>, computed: &[Computed]) {
        if computed.iter().any(|known| elements_of(&known.expr).is_some()) {
            conditions.for_each(|condition| self.in_condition(condition, computed));
        }
    }

    /// Adds to conditions on arrays what elements they ask for.
    fn in_condition(&mut self, condition: &mut Expr, computed: &[Computed]) {
        if let ExprKind::And(left, right) | ExprKind::Or(left, right) = &mut condition.kind {
            crate::stack::grow(|| {
                self.in_condition(left, computed);
                self.in_condition(right, computed);
            });
            return;
        }
        let Some(asked) = Asked::of(condition) else { return };
        for known in computed {
            let Some((document, ty)) = elements_of(&known.expr) else { continue };
            let Some(value) = asked.value_beside(document) else {
                self.by_values |= asked.may_be(document);
                continue;
            };
            if has_parameter(value) {
                self.by_values = true;
                return;
            }
            if let Some(keys) = asked.keys(value, &ty).or_else(|| asked.key_of_column(value, &ty)) {
                let column = Expr { kind: ExprKind::Reference(known.column), ty, nullable: true, coercibility: 5 };
                let test = std::mem::replace(condition, Expr::null());
                *condition = by_elements(test, column, asked.way == Way::All, keys);
                self.found = true;
                return;
            }
        }
    }

    /// The largest expressions first.
    fn replace(&mut self, expr: &mut Expr, computed: &[Computed]) {
        match expr.kind {
            ExprKind::Reference(_) | ExprKind::Literal(_) | ExprKind::Parameter(_) => return,
            _ => {}
        }
        for known in computed {
            if std::mem::discriminant(&known.expr.kind) != std::mem::discriminant(&expr.kind) {
                continue;
            }
            if without_texts(expr.clone()) == known.expr {
                self.found = true;
                *expr = Expr { kind: ExprKind::Reference(known.column), ty: known.ty, nullable: true, ..*expr };
                return;
            }
            if has_parameter(expr) && outline(expr.clone()) == known.outline {
                self.by_values = true;
            }
        }
        expr.for_each_child_mut(&mut |child| crate::stack::grow(|| self.replace(child, computed)));
    }
}

fn of_scan(scan: &crate::logical::Scan) -> Vec<Computed> {
    let known = |(column, expr): &(ColumnId, Expr)| {
        let at = scan.columns.iter().position(|id| id == column).expect("a column of the table");
        let ty = scan.schema().columns[at].ty;
        Computed { column: *column, ty, expr: without_texts(expr.clone()), outline: outline(expr.clone()) }
    };
    scan.computed.iter().map(known).collect()
}

pub(super) fn has_parameter(expr: &Expr) -> bool {
    let mut found = matches!(expr.kind, ExprKind::Parameter(_));
    expr.for_each_child(&mut |child| found = found || crate::stack::grow(|| has_parameter(child)));
    found
}

/// The expression without the texts that only errors show.
pub(super) fn without_texts(expr: Expr) -> Expr {
    expr.map(&mut |mut expr| {
        if let ExprKind::Arithmetic { text, .. } | ExprKind::Negate { text, .. } = &mut expr.kind {
            *text = Box::default();
        }
        // An outer join below, or a NOT NULL that a key has brought, changes nothing of the values.
        expr.nullable = true;
        expr
    })
}

/// The expression without texts, values of literals, and types.
pub(super) fn outline(expr: Expr) -> Expr {
    without_texts(expr).map(&mut |expr| {
        let kind = match expr.kind {
            ExprKind::Literal(_) | ExprKind::Parameter(_) => ExprKind::Parameter(0),
            kind => kind,
        };
        Expr { kind, ty: DataType::new(TypeKind::Null), nullable: true, coercibility: 0 }
    })
}

//! Where the columns of one block lie.

use crate::expr::{ColumnId, Expr, ExprKind};
use rauk_types::MysqlError;
use rustc_hash::FxHashMap;

/// Columns of the queries around a subquery, as parameters of it.
#[derive(Default)]
pub(super) struct Outer {
    parameters: FxHashMap<ColumnId, usize>,
}

impl Outer {
    /// `first`: the parameter of the first of them.
    pub fn new(columns: &[ColumnId], first: usize) -> Outer {
        Outer { parameters: columns.iter().enumerate().map(|(at, id)| (*id, first + at)).collect() }
    }

    /// The parameter that is this column.
    pub fn parameter(&self, id: ColumnId) -> usize {
        self.parameters[&id]
    }
}

pub(super) struct Places<'a> {
    outer: &'a Outer,
    /// Table and column in the block.
    columns: FxHashMap<ColumnId, (usize, usize)>,
    /// What the block computes of a group.
    group_values: FxHashMap<ColumnId, usize>,
    /// Columns of the projection: the expressions that they stand for, placed already.
    items: FxHashMap<ColumnId, Expr>,
}

impl<'a> Places<'a> {
    pub fn new(outer: &'a Outer) -> Places<'a> {
        Places { outer, columns: FxHashMap::default(), group_values: FxHashMap::default(), items: FxHashMap::default() }
    }

    /// The columns of a table of the block.
    pub fn add_table(&mut self, table: usize, columns: &[ColumnId]) {
        self.columns.extend(columns.iter().enumerate().map(|(column, id)| (*id, (table, column))));
    }

    /// The table of the block that a column belongs to.
    pub fn table_of(&self, id: ColumnId) -> Option<usize> {
        self.columns.get(&id).map(|(table, _)| *table)
    }

    pub fn add_group_value(&mut self, id: ColumnId, number: usize) {
        self.group_values.insert(id, number);
    }

    pub fn add_item(&mut self, id: ColumnId, placed: Expr) {
        self.items.insert(id, placed);
    }

    pub fn item(&self, id: ColumnId) -> Option<&Expr> {
        self.items.get(&id)
    }

    /// The expression with places instead of ids.
    pub fn place(&self, expr: Expr) -> Result<Expr, MysqlError> {
        let mut lost = None;
        let placed = expr.map(&mut |expr| {
            let ExprKind::Reference(id) = expr.kind else { return expr };
            if let Some(&(table, column)) = self.columns.get(&id) {
                return Expr { kind: ExprKind::Column { table, column }, ..expr };
            }
            if let Some(&number) = self.group_values.get(&id) {
                return Expr { kind: ExprKind::GroupValue(number), ..expr };
            }
            if let Some(item) = self.items.get(&id) {
                return item.clone();
            }
            match self.outer.parameters.get(&id) {
                Some(&parameter) => Expr { kind: ExprKind::Parameter(parameter), ..expr },
                None => {
                    lost = Some(id);
                    expr
                }
            }
        });
        match lost {
            None => Ok(placed),
            Some(id) => Err(MysqlError::new(1815, format!("Internal error: column {} has no place", id.0))),
        }
    }

    pub fn place_all(&self, list: Vec<Expr>) -> Result<Vec<Expr>, MysqlError> {
        list.into_iter().map(|expr| self.place(expr)).collect()
    }
}

//! Common table expressions.
//!
//! A common table is bound where WITH stands, once, and stands beside the tree of the statement; each reference to it has columns of its own.
//! A recursive one is a UNION whose first members (the seed) do not name it and whose others do: these read the rows that the last round added
//! (working rows). The seed decides names and types; every column may be NULL, as in MySQL. A recursive part names the table once, in its own FROM
//! and not on the inner side of an outer join (3576, 3577), and neither groups nor sorts (3575, 1235).
//!
//! A table that nothing reads is not bound, as in MySQL: it may name what does not exist, or what its reader may not see.
//!
//! A common table in a subquery may read columns of the queries around that. It lists them, and every query that reads the table reads them
//! too ([`CommonTable::within`]): its rows are kept for one set of values, and made again for another.

use super::Binder;
use super::select::Clauses;
use super::select::bind_limit;
use crate::expr::{ColumnId, Expr};
use crate::logical::{CommonTable, CommonTableScan, JoinKind, Node, Query, Recursive, SetOp};
use crate::lookup::unsupported;
use crate::parse::ast;
use crate::parse::print::{Reader, are_read};
use rauk_types::error::codes;
use rauk_types::{DataType, MysqlError, TypeKind};

/// A name that WITH has made.
pub(super) struct CommonName {
    name: String,
    /// Its place among the tables of the statement.
    table: usize,
    columns: Vec<CommonColumn>,
    stage: Stage,
    /// References met in the recursive part.
    references: usize,
    /// Queries around its definition.
    nesting: usize,
    /// Columns of the queries around its WITH that it reads.
    outer: Vec<(ColumnId, Expr)>,
}

/// A column of a common table, for its references.
#[derive(Clone)]
struct CommonColumn {
    name: String,
    ty: DataType,
    nullable: bool,
    coercibility: u8,
}

/// What a reference to a common table means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its rows.
    Bound,
    /// Its recursive part is being bound: the working rows.
    Working,
    /// Under RECURSIVE its definition names it where nothing recursive may stand. Errors 3573, 3574, 3577.
    Refused { union: bool },
}

impl Binder<'_> {
    /// Binds the tables of a statement's WITH that are read.
    pub(super) fn with(&mut self, reader: Reader<'_>) -> Result<(), MysqlError> {
        let Some(with) = reader.with() else { return Ok(()) };
        self.materialized += 1;
        let bound = self.definitions(with, &are_read(reader));
        self.materialized -= 1;
        bound
    }

    fn definitions(&mut self, with: &ast::With, are_read: &[bool]) -> Result<(), MysqlError> {
        for (at, definition) in with.tables.iter().enumerate() {
            if with.tables[..at].iter().any(|known| known.name.eq_ignore_ascii_case(&definition.name)) {
                return Err(MysqlError::new(
                    codes::NONUNIQ_TABLE,
                    format!("Not unique table/alias: '{}'", definition.name),
                ));
            }
            if !are_read[at] {
                self.note_unread(definition);
                continue;
            }
            let members = recursive_members(definition).filter(|_| with.recursive);
            let (mut bound, outer) = self.watched(None, |binder| match members {
                Some(members) => binder.recursive(definition, members),
                None if with.recursive => binder.not_recursive(definition),
                None => binder.plain(definition),
            })?;
            if !outer.is_empty() {
                let within = self.open.iter().rev().find_map(|open| open.id);
                let table = self.tables[bound.table].as_mut().expect("it was bound above");
                assert!(within.is_some(), "only a subquery has queries around it");
                table.within = within;
                table.outer = outer.iter().map(|(id, _)| *id).collect();
                bound.outer = outer;
            }
            self.common.push(bound);
        }
        Ok(())
    }

    /// Under RECURSIVE, a definition whose FROM does not name it.
    fn not_recursive(&mut self, definition: &ast::CommonTable) -> Result<CommonName, MysqlError> {
        let union = matches!(definition.query.body, ast::QueryBody::SetOperation { .. });
        let place = self.common.len();
        self.common.push(CommonName {
            name: definition.name.clone(),
            table: usize::MAX,
            columns: vec![],
            stage: Stage::Refused { union },
            references: 0,
            nesting: self.nesting,
            outer: vec![],
        });
        let bound = self.plain(definition);
        if place < self.common.len() {
            self.common.remove(place);
        }
        bound
    }

    fn plain(&mut self, definition: &ast::CommonTable) -> Result<CommonName, MysqlError> {
        let query = self.query(&definition.query)?;
        let columns = self.common_columns(definition, &query, false)?;
        let types = columns.iter().map(|column| column.ty).collect();
        let names = columns.iter().map(|column| column.name.clone()).collect();
        let name = definition.name.clone();
        let (outer, within) = (vec![], None);
        let table = CommonTable { name, seed: query, recursive: None, names, types, outer, within };
        self.tables.push(Some(table));
        let name = definition.name.clone();
        let (table, nesting) = (self.tables.len() - 1, self.nesting);
        Ok(CommonName { name, table, columns, stage: Stage::Bound, references: 0, nesting, outer: vec![] })
    }

    fn recursive(&mut self, definition: &ast::CommonTable, members: Members<'_>) -> Result<CommonName, MysqlError> {
        if !definition.query.order_by.is_empty() || !definition.query.locks.is_empty() {
            return Err(unsupported("ORDER BY over UNION in recursive Common Table Expression"));
        }
        let known = self.common.len();
        self.with(Reader::Query(&definition.query))?;
        let mut seed: Option<Query> = None;
        for (body, all) in &members.seed {
            let next = self.member(body)?;
            seed = Some(match seed {
                None => next,
                Some(before) => self.set_operation(SetOp::Union, *all, before, next)?,
            });
        }
        let seed = seed.expect("a recursive table has a seed");
        let mut columns = self.common_columns(definition, &seed, true)?;
        // Rows that come later may have more digits than the seed's literals.
        columns.iter_mut().filter(|column| column.ty.kind == TypeKind::BigInt).for_each(|column| column.ty.length = 0);
        let types: Vec<DataType> = columns.iter().map(|column| column.ty).collect();
        let names = columns.iter().map(|column| column.name.clone()).collect();
        let (limit, offset) = bind_limit(definition.query.limit.as_ref(), self.context)?;
        let table = self.tables.len();
        self.tables.push(None);
        self.common.push(CommonName {
            name: definition.name.clone(),
            table,
            columns,
            stage: Stage::Working,
            references: 0,
            nesting: self.nesting,
            outer: vec![],
        });
        let place = self.common.len() - 1;
        let mut recursive: Option<Query> = None;
        let mut all = true;
        for (body, member_all) in &members.recursive {
            self.common[place].references = 0;
            let next = self.member(body)?;
            if self.common[place].references > 1 {
                return Err(more_than_one_reference(&definition.name));
            }
            check_recursive(&next.node, table, &definition.name)?;
            if next.columns.len() != types.len() {
                return Err(MysqlError::new(
                    codes::WRONG_NUMBER_OF_COLUMNS_IN_SELECT,
                    "The used SELECT statements have a different number of columns",
                ));
            }
            // With or without a sign, it is judged as it is whether the column takes it; several parts agree on a type first.
            let is_only = members.recursive.len() == 1;
            let own = |(&id, ty): (&ColumnId, &DataType)| match self.columns.get(id).ty {
                own if is_only && own.is_integer() && ty.is_integer() && own.unsigned != ty.unsigned => own,
                _ => *ty,
            };
            let wanted: Vec<DataType> = next.columns.iter().zip(&types).map(own).collect();
            let next = self.converted(next, &wanted);
            all &= *member_all;
            recursive = Some(match recursive {
                None => next,
                Some(before) => self.set_operation(SetOp::Union, true, before, next)?,
            });
        }
        let recursive = recursive.map(|query| Recursive { query, all, limit, offset });
        let mut name = self.common.remove(place);
        name.stage = Stage::Bound;
        self.common.truncate(known);
        let (outer, within) = (vec![], None);
        let whole = CommonTable { name: definition.name.clone(), seed, recursive, names, types, outer, within };
        self.tables[table] = Some(whole);
        Ok(name)
    }

    /// One member of the UNION of a recursive table.
    fn member(&mut self, body: &ast::QueryBody) -> Result<Query, MysqlError> {
        self.body(body, Clauses { order_by: &[], limit: None, locks: &[] })
    }

    fn common_columns(
        &mut self,
        definition: &ast::CommonTable,
        query: &Query,
        nullable: bool,
    ) -> Result<Vec<CommonColumn>, MysqlError> {
        let named = self.named_columns(&definition.name, &definition.columns, query)?;
        let column = |(name, id): (String, ColumnId)| {
            let column = self.columns.get(id);
            let (ty, coercibility) = (column.ty, column.coercibility);
            CommonColumn { name, ty, nullable: nullable || column.nullable, coercibility }
        };
        Ok(named.into_iter().map(column).collect())
    }

    /// Whether a name by itself means a common table.
    pub(super) fn is_common_table(&self, name: &str) -> bool {
        self.common.iter().any(|known| known.name.eq_ignore_ascii_case(name))
    }

    /// A reference to a common table by its name, the innermost first; `None`: there is none of that name.
    pub(super) fn common_table(&mut self, name: &str, alias: &str) -> Result<Option<Reference>, MysqlError> {
        let Some(place) = self.common.iter().rposition(|known| known.name.eq_ignore_ascii_case(name)) else {
            return Ok(None);
        };
        self.common[place].references += 1;
        let CommonName { table, stage, nesting, .. } = self.common[place];
        let working = match stage {
            Stage::Bound => false,
            Stage::Working if self.nesting > nesting => return Err(more_than_one_reference(name)),
            Stage::Working => true,
            Stage::Refused { union: false } => return Err(needs_union(name)),
            Stage::Refused { union: true } if self.nesting > nesting => return Err(more_than_one_reference(name)),
            Stage::Refused { union: true } => return Err(needs_seed_first(name)),
        };
        // Who reads the table reads what it reads.
        for (id, expr) in self.common[place].outer.clone() {
            let level = self.frames.iter().rposition(|frame| frame.makes(id));
            self.note_outer(level.expect("the queries around WITH are around its tables"), &expr);
        }
        let definition = self.common[place].columns.clone();
        let mut columns = Vec::new();
        for CommonColumn { name, ty, nullable, coercibility } in definition {
            let id = self.add_column(ty, nullable, name.clone());
            let column = self.columns.get_mut(id);
            column.result.table = alias.to_string();
            column.coercibility = coercibility;
            columns.push((name, id));
        }
        let ids = columns.iter().map(|(_, id)| *id).collect();
        let apart = self.hint_merge(alias);
        let pushdown = self.hint_pushdown(alias);
        let scan = CommonTableScan { table, alias: alias.to_string(), columns: ids, working, apart, pushdown };
        Ok(Some((Node::CommonTable(Box::new(scan)), columns)))
    }
}

fn needs_union(name: &str) -> MysqlError {
    MysqlError::new(3573, format!("Recursive Common Table Expression '{name}' should contain a UNION"))
}

fn needs_seed_first(name: &str) -> MysqlError {
    MysqlError::new(
        3574,
        format!(
            "Recursive Common Table Expression '{name}' should have one or more non-recursive query blocks followed by one or more recursive ones"
        ),
    )
}

fn more_than_one_reference(name: &str) -> MysqlError {
    MysqlError::new(
        3577,
        format!(
            "In recursive query block of Recursive Common Table Expression '{name}', the recursive table must be referenced only once, \
             and not in any subquery"
        ),
    )
}

/// Refuses what a recursive part may not do: grouping (3575), sorting and the like, and null rows for working rows (3576).
fn check_recursive(mut node: &Node, table: usize, name: &str) -> Result<(), MysqlError> {
    loop {
        node = match node {
            Node::Sort { .. } | Node::Distinct { .. } | Node::Limit(_) => {
                return Err(unsupported(
                    "ORDER BY / LIMIT / SELECT DISTINCT in recursive query block of Common Table Expression",
                ));
            }
            Node::Aggregate(_) | Node::Window(_) => {
                return Err(MysqlError::new(
                    3575,
                    format!(
                        "Recursive Common Table Expression '{name}' can contain neither aggregation nor window functions in recursive query block"
                    ),
                ));
            }
            Node::Project { input, .. } | Node::Filter { input, .. } => input,
            joins => return check_joins(joins, table, name, false),
        }
    }
}

fn check_joins(node: &Node, table: usize, name: &str, null_rows: bool) -> Result<(), MysqlError> {
    match node {
        Node::CommonTable(scan) if null_rows && scan.working && scan.table == table => Err(MysqlError::new(
            3576,
            format!(
                "In recursive query block of Recursive Common Table Expression '{name}', the recursive table must neither be in the right \
                 argument of a LEFT JOIN, nor be forced to be non-first with join order hints"
            ),
        )),
        Node::Join(join) => {
            crate::stack::grow(|| check_joins(&join.left, table, name, null_rows))?;
            let null_rows = null_rows || join.kind == JoinKind::Left;
            crate::stack::grow(|| check_joins(&join.right, table, name, null_rows))
        }
        _ => Ok(()),
    }
}

/// The rows of a common table in FROM, and its columns there.
type Reference = (Node, Vec<(String, ColumnId)>);

/// The members of the UNION of a recursive table, each with whether ALL stands before it.
struct Members<'q> {
    seed: Vec<(&'q ast::QueryBody, bool)>,
    recursive: Vec<(&'q ast::QueryBody, bool)>,
}

/// `None`: the definition does not name itself.
fn recursive_members(definition: &ast::CommonTable) -> Option<Members<'_>> {
    let mut all_members = Vec::new();
    let mut at = &definition.query.body;
    // `((a UNION b) UNION c)` leans to the left.
    while let ast::QueryBody::SetOperation { op: ast::SetOp::Union, all, left, right } = at {
        all_members.push((&**right, *all));
        at = left;
    }
    all_members.push((at, true));
    all_members.reverse();
    let first = all_members.iter().position(|(body, _)| names_table(body, &definition.name))?;
    if first == 0 {
        return None;
    }
    let recursive = all_members.split_off(first);
    Some(Members { seed: all_members, recursive })
}

/// Whether FROM of a body names a table.
fn names_table(body: &ast::QueryBody, name: &str) -> bool {
    fn reference(at: &ast::TableReference, name: &str) -> bool {
        match at {
            ast::TableReference::Table(factor) => {
                factor.name.database.is_none() && factor.name.name.eq_ignore_ascii_case(name)
            }
            ast::TableReference::Derived { query, .. } => names_table(&query.body, name),
            ast::TableReference::JsonTable(_) => false,
            ast::TableReference::Join(join) => reference(&join.left, name) || reference(&join.right, name),
        }
    }
    match body {
        ast::QueryBody::Select(select) => select.from.iter().any(|table| reference(table, name)),
        ast::QueryBody::Query(query) => names_table(&query.body, name),
        ast::QueryBody::SetOperation { left, right, .. } => names_table(left, name) || names_table(right, name),
        ast::QueryBody::Values(_) => false,
        ast::QueryBody::Table(table) => table.database.is_none() && table.name.eq_ignore_ascii_case(name),
    }
}

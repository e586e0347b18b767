//! FROM: tables with their aliases and hints, views, derived tables, and joins.
//!
//! RIGHT JOIN is a LEFT JOIN with its sides exchanged. USING and NATURAL become equalities, and hide the right-hand (of RIGHT JOIN: left-hand)
//! column from bare names and `*`. Then `*` gives the common columns in the order of the first table (of RIGHT JOIN: the second)
//! before the others.
//!
//! A derived table sees the blocks around its own block, but not the tables beside it; with LATERAL it sees those before it. A LATERAL that reads none of
//! them is a derived table. One at the right of a RIGHT JOIN may not read the left side (3668), which is not there before it.

use super::change::{Forbidden, is_kept, target_used};
use super::frame::{Table, Visible};
use super::names::{Clause, check_alias, unknown_column};
use super::own_row;
use super::{Binder, Searchable, view};
use crate::expr::{self, ColumnId, CompareOp, Expr, SubqueryId};
use crate::logical::{
    self, Column, Derived, Join, JoinHints, JoinKind, Lateral, MAX_TABLES, Node, PathHint, PathHints, Query, Scan,
    ScanTable,
};
use crate::lookup::{GuardedTable, TableSource};
use crate::parse::ast;
use rauk_node::TableHandle;
use rauk_types::error::codes;
use rauk_types::result::ResultColumn;
use rauk_types::{IndexKind, MysqlError, TableSchema};

/// ER_TF_FORBIDDEN_JOIN_TYPE.
const FORBIDDEN_JOIN_TYPE: u16 = 3668;

/// A part of FROM.
pub(super) struct Tree {
    pub node: Node,
    /// Tables of the frame that are in it.
    tables: Vec<usize>,
    pub visible: Vec<Visible>,
}

impl Binder<'_> {
    /// Binds FROM into the innermost frame. `straight`: tables are read as written.
    pub(super) fn from(&mut self, from: &[ast::TableReference], straight: bool) -> Result<Node, MysqlError> {
        let mut whole: Option<Tree> = None;
        for reference in from {
            self.frame().before = whole.as_ref().map_or(vec![], |tree| tree.visible.clone());
            let tree = self.reference_of_table(reference, straight)?;
            whole = Some(match whole {
                None => tree,
                Some(left) => joined(JoinKind::Inner, left, tree, vec![], straight),
            });
        }
        Ok(match whole {
            None => Node::OneRow,
            Some(tree) => {
                self.frame().visible = tree.visible;
                tree.node
            }
        })
    }

    fn reference_of_table(&mut self, reference: &ast::TableReference, straight: bool) -> Result<Tree, MysqlError> {
        match reference {
            ast::TableReference::Table(factor) => self.table(factor),
            ast::TableReference::Derived { lateral, query, alias, columns } => {
                check_alias(alias)?;
                if *lateral {
                    return self.lateral(alias, columns, |binder| binder.query(query));
                }
                self.frame().hidden = true;
                let apart = self.hint_merge(alias).unwrap_or(!self.switches.derived_merge());
                let kept = usize::from(apart || is_kept(query));
                self.materialized += kept;
                let bound = self.deeper(|binder| binder.query(query));
                self.materialized -= kept;
                self.frame().hidden = false;
                self.derived(alias, columns, bound?)
            }
            ast::TableReference::JsonTable(table) => {
                check_alias(&table.alias)?;
                self.lateral(&table.alias, &[], |binder| binder.table_function(table))
            }
            ast::TableReference::Join(join) => crate::stack::grow(|| self.join(join, straight)),
        }
    }

    fn join(&mut self, join: &ast::Join, straight: bool) -> Result<Tree, MysqlError> {
        let left = self.reference_of_table(&join.left, straight)?;
        let known = self.frame().before.len();
        self.frame().before.extend(left.visible.iter().cloned());
        let right = self.reference_of_table(&join.right, straight)?;
        self.frame().before.truncate(known);
        if join.kind == ast::JoinKind::Right {
            self.check_right_join(&left, &right.node)?;
        }
        let straight = straight || join.kind == ast::JoinKind::Straight;
        let mut on = Vec::new();
        let visible;
        match &join.condition {
            ast::JoinCondition::On(condition) => {
                visible = [left.visible.clone(), right.visible.clone()].concat();
                let frame = self.frame();
                frame.in_reach = Some([left.tables.clone(), right.tables.clone()].concat());
                frame.visible = visible.clone();
                // Null rows of this join come after its condition: what is bound here sees the columns as they are.
                let bound = self.bind_in(condition, Clause::On)?;
                self.frame().in_reach = None;
                on = bound.conjuncts();
            }
            ast::JoinCondition::Using(columns) => {
                visible = self.merge_columns(&left, &right, columns, join.kind, &mut on)?;
            }
            ast::JoinCondition::Natural => {
                let names: Vec<String> = left
                    .visible
                    .iter()
                    .filter(|l| !self.invisible.contains(&l.id))
                    .filter(|l| {
                        let same = |r: &Visible| r.name.eq_ignore_ascii_case(&l.name);
                        right.visible.iter().any(|r| same(r) && !self.invisible.contains(&r.id))
                    })
                    .map(|l| l.name.clone())
                    .collect();
                visible = self.merge_columns(&left, &right, &names, join.kind, &mut on)?;
            }
            ast::JoinCondition::None => {
                if matches!(join.kind, ast::JoinKind::Left | ast::JoinKind::Right) {
                    return Err(MysqlError::new(
                        codes::PARSE_ERROR,
                        "You have an error in your SQL syntax; an outer join needs ON or USING",
                    ));
                }
                visible = [left.visible.clone(), right.visible.clone()].concat();
            }
        }
        let (kind, outer, inner) = match join.kind {
            ast::JoinKind::Inner | ast::JoinKind::Straight => (JoinKind::Inner, left, right),
            ast::JoinKind::Left => (JoinKind::Left, left, right),
            ast::JoinKind::Right => (JoinKind::Left, right, left),
        };
        if kind == JoinKind::Left {
            for &table in &inner.tables {
                self.frame().tables[table].null_rows = true;
            }
        }
        Ok(Tree { visible, ..joined(kind, outer, inner, on, straight) })
    }

    /// Equalities for the common columns, and what is visible after them: the common columns, then the rest of the first side, then the rest of
    /// the second. A RIGHT JOIN is a LEFT JOIN whose first side is written second. The common columns come in the order of the first
    /// side, whatever the order in USING.
    fn merge_columns(
        &mut self,
        left: &Tree,
        right: &Tree,
        names: &[String],
        kind: ast::JoinKind,
        on: &mut Vec<Expr>,
    ) -> Result<Vec<Visible>, MysqlError> {
        let (first, second) = if kind == ast::JoinKind::Right { (right, left) } else { (left, right) };
        for (number, name) in names.iter().enumerate() {
            if names[..number].iter().any(|n| n.eq_ignore_ascii_case(name)) {
                continue;
            }
            let left = self.common_column(left, name)?;
            let right = self.common_column(right, name)?;
            let context = self.context;
            on.push(expr::compare(CompareOp::Eq, left, right, self, context)?);
        }
        let common = |visible: &&Visible| names.iter().any(|n| n.eq_ignore_ascii_case(&visible.name));
        let rest = |side: &Tree| side.visible.iter().filter(|v| !common(v)).cloned().collect::<Vec<_>>();
        let mut visible: Vec<Visible> = first.visible.iter().filter(common).cloned().collect();
        visible.extend(rest(first));
        visible.extend(rest(second));
        Ok(visible)
    }

    fn common_column(&mut self, side: &Tree, name: &str) -> Result<Expr, MysqlError> {
        let frame = self.frame();
        frame.clause = Clause::From;
        frame.visible = side.visible.clone();
        let id = frame.column(&[name])?.ok_or_else(|| unknown_column(&[name], Clause::From))?;
        let column = self.reference(id, self.frames.last().is_some_and(|frame| frame.null_rows(id)));
        self.may_read(&column)?;
        Ok(column)
    }

    fn table(&mut self, factor: &ast::TableFactor) -> Result<Tree, MysqlError> {
        let name = &factor.name;
        if name.database.is_none() && name.name.eq_ignore_ascii_case("dual") && factor.alias.is_none() {
            return Ok(Tree { node: Node::OneRow, tables: vec![], visible: vec![] });
        }
        let alias = match &factor.alias {
            Some(alias) => {
                check_alias(alias)?;
                alias.clone()
            }
            None => name.name.clone(),
        };
        if name.database.is_none()
            && let Some((node, columns)) = self.common_table(&name.name, &alias)?
        {
            refuse_partitions(&factor.partitions)?;
            let table = Table { database: None, alias, is_aliased: true, columns, null_rows: false, schema: None };
            return self.add_table(node, table);
        }
        let (node, visible) = self.named_table(factor, "SELECT")?;
        Ok(Tree { node, tables: vec![self.frame().tables.len() - 1], visible })
    }

    /// A stored or computed table of the innermost frame.
    pub(super) fn named_table(
        &mut self,
        factor: &ast::TableFactor,
        privilege: &str,
    ) -> Result<(Node, Vec<Visible>), MysqlError> {
        let name = &factor.name;
        let alias = factor.alias.as_ref().unwrap_or(&name.name).clone();
        check_alias(&alias)?;
        let (source, by_columns) = self.lookup.table_by_columns(name.database.as_deref(), &name.name, privilege)?;
        self.lookup.check_locked(name, factor.alias.as_deref(), privilege)?;
        let table = match source {
            TableSource::Stored(handle) => {
                self.check_target(&handle, &alias)?;
                ScanTable::Stored(of_partitions(&factor.partitions, handle)?)
            }
            TableSource::Virtual(table) => {
                refuse_partitions(&factor.partitions)?;
                ScanTable::Virtual(table)
            }
            TableSource::View(view) => {
                if let Some(hint) = factor.hints.iter().flat_map(|hint| &hint.indexes).next() {
                    return Err(missing_key(hint, &alias));
                }
                refuse_partitions(&factor.partitions)?;
                self.note_table(name, &view.database);
                if by_columns && privilege != "SELECT" {
                    self.lookup.table(name.database.as_deref(), &name.name, privilege)?;
                }
                let guarded = GuardedTable { database: view.database.clone(), name: view.name.clone() };
                let (node, table) = self.view(&alias, factor.alias.is_some(), view)?;
                if by_columns {
                    self.guard(guarded, &table.columns);
                }
                self.check_unique(&table)?;
                let Tree { node, visible, .. } = self.add_table(node, table)?;
                return Ok((node, visible));
            }
        };
        let mut scan = Scan {
            table,
            alias,
            columns: vec![],
            computed: vec![],
            allowed_indexes: None,
            force_index: false,
            lock: None,
            follows: vec![],
            join_hints: JoinHints::default(),
            path_hints: PathHints::default(),
        };
        let schema = scan.schema().clone();
        scan.columns = (0..schema.columns.len())
            .map(|at| {
                let definition = &schema.columns[at];
                let result = stored_column(&schema, &scan.alias, at);
                let coercibility = crate::expr::column_coercibility(&definition.ty);
                self.columns.add(Column { ty: definition.ty, nullable: definition.nullable, coercibility, result })
            })
            .collect();
        if by_columns {
            self.by_columns.push(schema.id);
            self.guard_row(&schema, &scan.columns);
        }
        if schema.columns.iter().any(|column| column.generated.is_some()) {
            scan.computed = own_row::computed_columns(&schema, &scan.columns);
        }
        let visible = schema.visible_columns().iter().zip(&scan.columns).map(|(c, id)| (c.name.clone(), *id)).collect();
        let hidden = schema.columns.iter().zip(&scan.columns).filter(|(column, _)| column.invisible);
        self.invisible.extend(hidden.map(|(_, id)| *id));
        self.note_table(name, &schema.database);
        let table = Table {
            database: Some(schema.database.clone()),
            alias: scan.alias.clone(),
            is_aliased: factor.alias.is_some(),
            columns: visible,
            null_rows: false,
            schema: Some(schema),
        };
        self.check_unique(&table)?;
        let invisible_too = self.switches.use_invisible_indexes();
        apply_hints(&mut scan, &factor.hints, invisible_too)?;
        self.hint_indexes(&mut scan);
        let indexes = &scan.schema().indexes;
        if !invisible_too && indexes.iter().any(|index| index.invisible) {
            let visible = (0..indexes.len()).filter(|&at| !indexes[at].invisible);
            let allowed = scan.allowed_indexes.as_ref();
            let left = visible.filter(|at| allowed.is_none_or(|allowed| allowed.contains(at))).collect();
            scan.allowed_indexes = Some(left);
        }
        let Tree { node, visible, .. } = self.add_table(Node::Scan(Box::new(scan)), table)?;
        Ok((node, visible))
    }

    /// A derived table, or a table function, that sees the tables before it.
    fn lateral(
        &mut self,
        alias: &str,
        names: &[String],
        bind: impl FnOnce(&mut Self) -> Result<Query, MysqlError>,
    ) -> Result<Tree, MysqlError> {
        let id = SubqueryId(self.subqueries.len() as u32);
        self.subqueries.push(None);
        let frame = self.frame();
        let before = frame.before.clone();
        let visible = std::mem::replace(&mut frame.visible, before);
        let in_reach = frame.in_reach.take();
        self.materialized += 1;
        let bound = self.watched(Some(id), bind);
        self.materialized -= 1;
        let frame = self.frame();
        frame.visible = visible;
        frame.in_reach = in_reach;
        let (query, outer) = bound?;
        if !outer.iter().any(|(column, _)| self.frame().makes(*column)) {
            // The place in the list stays empty.
            self.subqueries[id.0 as usize] = Some(logical::Subquery::gone());
            return self.derived(alias, names, query);
        }
        let columns = self.named_columns(alias, names, &query)?;
        let table = Table {
            database: None,
            alias: alias.to_string(),
            is_aliased: true,
            columns,
            null_rows: false,
            schema: None,
        };
        self.check_unique(&table)?;
        let given = query.columns.clone();
        let (ids, outer): (Vec<ColumnId>, Vec<Expr>) = outer.into_iter().unzip();
        self.subqueries[id.0 as usize] = Some(logical::Subquery { query, outer: ids, apart: false, shared: false });
        let lateral = Lateral { alias: alias.to_string(), subquery: id, outer, columns: given };
        self.add_table(Node::Lateral(Box::new(lateral)), table)
    }

    /// Error 3668: a lateral table at the right of a RIGHT JOIN reads its left side.
    fn check_right_join(&mut self, left: &Tree, right: &Node) -> Result<(), MysqlError> {
        let mut failed = None;
        let frame = self.frame();
        let of_left = |id: ColumnId| left.tables.iter().any(|&t| frame.tables[t].columns.iter().any(|(_, c)| *c == id));
        let mut pending = vec![right];
        while let Some(node) = pending.pop() {
            if let Node::Lateral(lateral) = node {
                let reads = |expr: &Expr| matches!(expr.kind, expr::ExprKind::Reference(id) if of_left(id));
                if lateral.outer.iter().any(reads) {
                    failed = Some(lateral.alias.clone());
                }
            } else if let Node::Join(join) = node {
                pending.extend([&join.left, &join.right]);
            }
        }
        match failed {
            None => Ok(()),
            Some(alias) => Err(MysqlError::new(
                FORBIDDEN_JOIN_TYPE,
                format!("INNER or LEFT JOIN must be used for LATERAL references made by '{alias}'"),
            )),
        }
    }

    /// A query as a table of the innermost frame.
    fn derived(&mut self, alias: &str, names: &[String], query: Query) -> Result<Tree, MysqlError> {
        let columns = self.named_columns(alias, names, &query)?;
        let table = Table {
            database: None,
            alias: alias.to_string(),
            is_aliased: true,
            columns,
            null_rows: false,
            schema: None,
        };
        self.check_unique(&table)?;
        let apart = self.hint_merge(alias);
        let pushdown = self.hint_pushdown(alias);
        let derived = Derived { alias: alias.to_string(), query, view: None, lock: None, apart, pushdown };
        self.add_table(Node::Derived(Box::new(derived)), table)
    }

    /// The columns of a query under the names that a list gives them, or their own. Errors 1353, 1060.
    pub(super) fn named_columns(
        &mut self,
        alias: &str,
        names: &[String],
        query: &Query,
    ) -> Result<Vec<(String, ColumnId)>, MysqlError> {
        if !names.is_empty() && names.len() != query.columns.len() {
            return Err(MysqlError::new(
                1353,
                "In definition of view, derived table or common table expression, SELECT list and column names list have different column counts",
            ));
        }
        let mut columns: Vec<(String, ColumnId)> = Vec::new();
        for (at, &id) in query.columns.iter().enumerate() {
            let name = names.get(at).cloned().unwrap_or_else(|| self.columns.get(id).result.name.clone());
            if columns.iter().any(|(known, _)| known.eq_ignore_ascii_case(&name)) {
                return Err(MysqlError::new(codes::DUP_FIELDNAME, format!("Duplicate column name '{name}'")));
            }
            if let Some((scan, at)) = view::base_of(&query.node, id)
                && scan.schema().indexes.iter().any(|index| index.is_full_text())
            {
                let (schema, of) = (scan.schema().clone(), scan.columns[0]);
                self.searchable.push(Searchable { column: id, schema, at, of });
            }
            let result = &mut self.columns.get_mut(id).result;
            result.name.clone_from(&name);
            result.table = alias.to_string();
            columns.push((name, id));
        }
        Ok(columns)
    }

    /// Error 1093: a subquery reads the table that the statement changes.
    fn check_target(&mut self, table: &TableHandle, alias: &str) -> Result<(), MysqlError> {
        if self.materialized > 0 {
            return Ok(());
        }
        let id = table.schema().id;
        if !self.open.is_empty() {
            self.read.push(id);
        }
        match self.targets.iter().find(|target| target.meets(id, alias)) {
            Some(Forbidden { alias, .. }) => Err(self.prevented_by_view(alias).unwrap_or_else(|| target_used(alias))),
            None => Ok(()),
        }
    }

    fn check_unique(&mut self, table: &Table) -> Result<(), MysqlError> {
        let same = |other: &Table| other.alias == table.alias && other.database == table.database;
        if self.frame().tables.iter().any(same) {
            return Err(MysqlError::new(codes::NONUNIQ_TABLE, format!("Not unique table/alias: '{}'", table.alias)));
        }
        Ok(())
    }

    fn add_table(&mut self, node: Node, table: Table) -> Result<Tree, MysqlError> {
        let visible = table.columns.iter().map(|(name, id)| Visible { name: name.clone(), id: *id }).collect();
        let frame = self.frame();
        if frame.tables.len() == MAX_TABLES {
            let text = format!("Too many tables; MySQL can only use {MAX_TABLES} tables in a join");
            return Err(MysqlError::new(codes::TOO_MANY_TABLES, text));
        }
        frame.tables.push(table);
        Ok(Tree { node, tables: vec![frame.tables.len() - 1], visible })
    }
}

fn joined(kind: JoinKind, left: Tree, right: Tree, on: Vec<Expr>, straight: bool) -> Tree {
    let mut tables = left.tables;
    tables.extend(right.tables);
    let mut visible = left.visible;
    visible.extend(right.visible);
    let node = Node::Join(Box::new(Join { kind, left: left.node, right: right.node, on, straight }));
    Tree { node, tables, visible }
}

/// What clients are told of a column of a table.
pub(super) fn stored_column(schema: &TableSchema, alias: &str, column: usize) -> ResultColumn {
    let definition = &schema.columns[column];
    let mut out = super::computed_column(definition.ty, definition.nullable, definition.name.clone());
    out.org_name = definition.name.clone();
    out.table = alias.to_string();
    out.org_table = schema.name.clone();
    out.database = schema.database.clone();
    out.auto_increment = schema.auto_increment == Some(column);
    for index in &schema.indexes {
        let first = index.parts.first().is_some_and(|p| p.column == column);
        match index.kind {
            IndexKind::Primary => out.primary_key |= index.parts.iter().any(|p| p.column == column),
            IndexKind::Unique if index.parts.len() == 1 => out.unique_key |= first,
            _ => out.multiple_key |= first,
        }
    }
    out
}

/// PARTITION (…) behind what is no stored table: error 1747.
pub(super) fn refuse_partitions(names: &[String]) -> Result<(), MysqlError> {
    match names.is_empty() {
        true => Ok(()),
        false => Err(MysqlError::new(1747, "PARTITION () clause on non partitioned table")),
    }
}

/// A table of which PARTITION (…) names the only partitions that are looked in. Errors: 1747 where it has none, 1735 for a name that none has.
pub(super) fn of_partitions(names: &[String], table: TableHandle) -> Result<TableHandle, MysqlError> {
    if names.is_empty() {
        return Ok(table);
    }
    let schema = table.schema().clone();
    let Some(partitioning) = &schema.partitioning else {
        refuse_partitions(names)?;
        return Ok(table);
    };
    let mut leaves = vec![false; partitioning.leaves().count()];
    for name in names {
        let Some(named) = partitioning.named(name) else {
            let text = format!("Unknown partition '{name}' in table '{}'", schema.name);
            return Err(MysqlError::new(codes::UNKNOWN_PARTITION, text));
        };
        leaves[named].fill(true);
    }
    Ok(table.with_leaves(leaves.into()))
}

fn missing_key(key: &str, table: &str) -> MysqlError {
    MysqlError::new(codes::KEY_DOES_NOT_EXITS, format!("Key '{key}' doesn't exist in table '{table}'"))
}

/// USE, FORCE and IGNORE INDEX. Error 1176.
/// `invisible_too`: invisible indexes may be named.
fn apply_hints(scan: &mut Scan, hints: &[ast::IndexHint], invisible_too: bool) -> Result<(), MysqlError> {
    let schema = scan.schema().clone();
    let mut used: Option<Vec<usize>> = None;
    let mut ignored = Vec::new();
    for hint in hints {
        let mut named = Vec::new();
        for name in &hint.indexes {
            let position = schema.indexes.iter().position(|i| i.name.eq_ignore_ascii_case(name));
            let named_so =
                |&p: &usize| !(p == 0 && schema.hidden_key) && (invisible_too || !schema.indexes[p].invisible);
            let Some(position) = position.filter(named_so) else {
                return Err(missing_key(name, &scan.alias));
            };
            named.push(position);
        }
        let path = match hint.scope {
            Some(ast::IndexHintScope::OrderBy) => Some(&mut scan.path_hints.order),
            Some(ast::IndexHintScope::GroupBy) => Some(&mut scan.path_hints.group),
            Some(ast::IndexHintScope::Join) | None => None,
        };
        if let Some(path) = path {
            let wanted = hint.action != ast::IndexHintAction::Ignore;
            // USE INDEX () leaves none.
            *path = Some(PathHint { wanted: wanted && !named.is_empty(), indexes: named });
            continue;
        }
        match hint.action {
            ast::IndexHintAction::Ignore => ignored.extend(named),
            ast::IndexHintAction::Use => used.get_or_insert_default().extend(named),
            ast::IndexHintAction::Force => {
                scan.force_index = true;
                used.get_or_insert_default().extend(named);
            }
        }
    }
    if used.is_some() || !ignored.is_empty() {
        let mut allowed = used.unwrap_or_else(|| (0..schema.indexes.len()).collect());
        allowed.retain(|p| !ignored.contains(p));
        scan.allowed_indexes = Some(allowed);
    }
    Ok(())
}

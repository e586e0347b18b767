//! Random queries and changes.

use super::Choices;
use crate::parse::ast::*;
use crate::parse::statement::Statement;

impl Choices<'_> {
    pub fn query(&mut self, depth: usize) -> Query {
        let depth = depth.saturating_sub(1);
        let query = Query {
            with: self.with(depth),
            body: self.body(depth),
            order_by: self.order_by(depth),
            limit: self.maybe(Self::limit),
            locks: self.some(0, Self::lock),
            into: None,
        };
        query.without_parentheses()
    }

    pub fn with(&mut self, depth: usize) -> Option<With> {
        if depth == 0 {
            return None;
        }
        self.maybe(|c| With {
            recursive: c.flag(),
            tables: c.some(1, |c| CommonTable { name: c.name(), columns: c.names(0), query: c.query(depth) }),
        })
    }

    pub fn body(&mut self, depth: usize) -> QueryBody {
        match if depth == 0 { 0 } else { self.pick(6) } {
            0 | 1 => QueryBody::Select(Box::new(self.select(depth))),
            2 => QueryBody::SetOperation {
                op: self.one_of(&[SetOp::Union, SetOp::Except, SetOp::Intersect]),
                all: self.flag(),
                left: Box::new(self.body(depth - 1)),
                right: Box::new(self.body(depth - 1)),
            },
            3 => QueryBody::Query(Box::new(self.query(depth))).without_parentheses(),
            4 => QueryBody::Values(self.some(1, |c| c.exprs(1, depth - 1))),
            _ => QueryBody::Table(self.table_name()),
        }
    }

    pub fn select(&mut self, depth: usize) -> Select {
        let [distinct, straight_join, calc_found_rows] = [self.flag(), self.flag(), self.flag()];
        let items = self.items(1, depth);
        let from = if self.flag() { vec![self.table(depth)] } else { vec![] };
        let filter = self.maybe(|c| c.expr(depth));
        let group_by = self.exprs(0, depth);
        Select {
            hints: Default::default(),
            distinct,
            straight_join,
            calc_found_rows,
            items,
            from,
            filter,
            rollup: !group_by.is_empty() && self.flag(),
            group_by,
            having: self.maybe(|c| c.expr(depth)),
            windows: self.some(0, |c| (c.name(), c.window_spec(depth))),
        }
    }

    pub fn items(&mut self, least: usize, depth: usize) -> Vec<SelectItem> {
        self.some(least, |c| match c.pick(6) {
            4 => SelectItem::Wildcard,
            5 => SelectItem::TableWildcard(c.table_name()),
            _ => {
                let expr = c.expr(depth);
                let name = if c.pick(8) == 7 { String::new() } else { c.name() };
                SelectItem::Expr { expr, name: ItemName::Alias(name) }
            }
        })
    }

    pub fn limit(&mut self) -> Limit {
        // In the order in which the text has them.
        match self.pick(5) {
            0 => Limit { count: Expr::number("10"), offset: None },
            1 => Limit { count: self.parameter(), offset: None },
            2 => Limit { count: Expr::number("10"), offset: Some(self.parameter()) },
            3 => Limit { count: self.parameter(), offset: Some(Expr::number("5")) },
            _ => Limit { count: self.parameter(), offset: Some(self.parameter()) },
        }
    }

    pub fn lock(&mut self) -> LockClause {
        LockClause {
            strength: self.one_of(&[LockStrength::Update, LockStrength::Share]),
            of: self.some(0, Self::table_name),
            wait: self.one_of(&[LockWait::Wait, LockWait::NoWait, LockWait::SkipLocked]),
        }
    }

    pub fn table(&mut self, depth: usize) -> TableReference {
        match if depth == 0 { 0 } else { self.pick(6) } {
            0 | 1 => TableReference::Table(TableFactor {
                name: self.table_name(),
                partitions: self.names(0),
                alias: self.maybe(Self::name),
                hints: self.some(0, Self::index_hint),
            }),
            2 => TableReference::Derived {
                lateral: self.flag(),
                query: Box::new(self.query(depth)),
                alias: self.name(),
                columns: self.names(0),
            },
            3 if self.flag() => TableReference::JsonTable(Box::new(JsonTable {
                document: self.expr(depth),
                path: self.string(),
                columns: self.some(1, |c| c.json_column(depth)),
                alias: self.name(),
            })),
            _ => {
                let left = self.table(depth - 1);
                let right = self.table(depth - 1);
                let (kind, condition) = match self.pick(8) {
                    0 => (JoinKind::Inner, JoinCondition::None),
                    1 => (JoinKind::Straight, JoinCondition::None),
                    2 => {
                        let kind = self.one_of(&[JoinKind::Inner, JoinKind::Left, JoinKind::Right]);
                        (kind, JoinCondition::Natural)
                    }
                    choice => {
                        let kind = self.one_of(&[JoinKind::Inner, JoinKind::Straight, JoinKind::Left, JoinKind::Right]);
                        let using = choice == 3;
                        (
                            kind,
                            if using {
                                JoinCondition::Using(self.names(1))
                            } else {
                                JoinCondition::On(self.expr(depth))
                            },
                        )
                    }
                };
                TableReference::Join(Box::new(Join { kind, left, right, condition }))
            }
        }
    }

    fn json_column(&mut self, depth: usize) -> JsonTableColumn {
        match if depth == 0 { self.pick(3) } else { self.pick(4) } {
            0 => JsonTableColumn::Ordinality(self.name()),
            1 => JsonTableColumn::Value {
                name: self.name(),
                column_type: self.column_type(),
                options: vec![],
                path: self.string(),
                on_empty: self.maybe(Self::on_missing),
                on_error: self.maybe(Self::on_missing),
            },
            2 => JsonTableColumn::Exists {
                name: self.name(),
                column_type: self.column_type(),
                options: vec![],
                path: self.string(),
            },
            _ => JsonTableColumn::Nested { path: self.string(), columns: self.some(1, |c| c.json_column(depth - 1)) },
        }
    }

    fn on_missing(&mut self) -> OnMissing {
        match self.pick(3) {
            0 => OnMissing::Null,
            1 => OnMissing::Error,
            _ => OnMissing::Default(self.string()),
        }
    }

    pub fn index_hint(&mut self) -> IndexHint {
        let action = self.one_of(&[IndexHintAction::Use, IndexHintAction::Force, IndexHintAction::Ignore]);
        let scope = self.maybe(|c| c.one_of(&[IndexHintScope::Join, IndexHintScope::OrderBy, IndexHintScope::GroupBy]));
        // Only USE INDEX may have no names.
        IndexHint { action, scope, indexes: self.names(usize::from(action != IndexHintAction::Use)) }
    }

    // Changes

    pub fn statement(&mut self, depth: usize) -> Statement {
        match self.pick(5) {
            0 | 1 => Statement::Query(Box::new(Query { into: self.maybe(Self::into), ..self.query(depth) })),
            2 => Statement::Insert(Box::new(self.insert(depth))),
            3 => Statement::Update(Box::new(Update {
                hints: Default::default(),
                with: self.with(depth),
                ignore: self.flag(),
                tables: vec![self.table(depth)],
                assignments: self.assignments(1, depth),
                filter: self.maybe(|c| c.expr(depth)),
                order_by: self.order_by(depth),
                limit: self.maybe(|_| Expr::number("3")),
            })),
            _ => Statement::Delete(Box::new(self.delete(depth))),
        }
    }

    pub fn into(&mut self) -> Into {
        match self.pick(3) {
            0 => Into::Variables(
                self.some(1, |c| if c.flag() { IntoVariable::User(c.name()) } else { IntoVariable::Local(c.name()) }),
            ),
            1 => {
                let (path, charset) = (self.string(), None);
                let field_end = self.string().into_bytes();
                let format = FileFormat { field_end, line_start: vec![0xFF, 0], ..FileFormat::default() };
                Into::OutFile(Box::new(OutFile { path, charset, format }))
            }
            _ => Into::DumpFile(self.string()),
        }
    }

    pub fn assignments(&mut self, least: usize, depth: usize) -> Vec<Assignment> {
        self.some(least, |c| Assignment { column: c.column_name(), value: c.expr(depth) })
    }

    pub fn insert(&mut self, depth: usize) -> Insert {
        let replace = self.flag();
        let table = self.table_name();
        let partitions = self.names(0);
        let (columns, source) = match self.pick(3) {
            0 => (None, InsertSource::Set(self.assignments(1, depth))),
            kind => {
                let columns = self.maybe(|c| c.some(0, Self::column_name));
                let source = if kind == 1 {
                    InsertSource::Values(self.some(1, |c| c.exprs(0, depth)))
                } else {
                    InsertSource::Query(Box::new(self.query(depth)))
                };
                (columns, source)
            }
        };
        let row_alias = match source {
            InsertSource::Query(_) => None,
            _ => self.maybe(|c| RowAlias { name: c.name(), columns: c.names(0) }),
        };
        Insert {
            hints: Default::default(),
            replace,
            ignore: !replace && self.flag(),
            table,
            partitions,
            columns,
            source,
            row_alias,
            on_duplicate: if replace { vec![] } else { self.assignments(0, depth) },
            returning: self.items(0, depth),
        }
    }

    pub fn delete(&mut self, depth: usize) -> Delete {
        let with = self.with(depth);
        let targets = self.some(0, Self::table_name);
        let is_single = targets.is_empty();
        let from = if is_single {
            let (name, partitions) = (self.table_name(), self.names(0));
            TableReference::Table(TableFactor { name, alias: self.maybe(Self::name), partitions, hints: vec![] })
        } else {
            self.table(depth)
        };
        Delete {
            hints: Default::default(),
            with,
            ignore: self.flag(),
            targets,
            from: vec![from],
            filter: self.maybe(|c| c.expr(depth)),
            order_by: if is_single { self.order_by(depth) } else { vec![] },
            limit: if is_single { self.maybe(Self::parameter) } else { None },
            returning: self.items(0, depth),
        }
    }
}

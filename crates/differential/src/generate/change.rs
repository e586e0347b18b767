//! INSERT, REPLACE, UPDATE and DELETE.

use super::{Generator, Scope};
use crate::data;
use crate::schema::{Column, Table};
use crate::tree::feature::Feature;
use crate::tree::print::VIEW;
use crate::tree::visit::{self, NodeMut, walk_mut};
use crate::tree::{Body, Class, Cte, Expr, From, Item, OrderKey, Query, Select, Source, Statement};

impl Generator<'_> {
    pub(super) fn change(&mut self, kind: Feature) -> Statement {
        let change = self.plain_change(kind);
        if self.allows(Feature::ChangeView) { self.through_view(change) } else { change }
    }

    /// The change through a view, if it is one of a single table.
    fn through_view(&mut self, mut change: Statement) -> Statement {
        let table = match &change {
            Statement::Insert { table, .. } => table.clone(),
            Statement::Update { from: From::Table { name, .. }, with, .. } if with.is_empty() => name.clone(),
            Statement::Delete { from: From::Table { name, .. }, with, .. } if with.is_empty() => name.clone(),
            _ => return change,
        };
        let definition = self.schema.table(&table).expect("it is a table of the schema");
        self.scopes.push(Scope::default());
        self.show(&table, definition.columns.iter().map(|column| (column.name.clone(), column.class())).collect());
        let tables_left = std::mem::take(&mut self.tables_left);
        let filter = if self.dice.chance(0.7) { Some(self.condition(1)) } else { None };
        self.tables_left = tables_left;
        self.scopes.pop();
        let options = ["", "", "WITH CHECK OPTION", "WITH LOCAL CHECK OPTION", "WITH CASCADED CHECK OPTION"];
        let check = *self.dice.pick(&options);
        rename(&mut change, &table);
        let columns = definition.columns.iter().map(|column| column.name.clone()).collect();
        Statement::ThroughView { table, columns, filter, check, change: Box::new(change) }
    }

    fn plain_change(&mut self, kind: Feature) -> Statement {
        match kind {
            Feature::Insert | Feature::Replace => self.insert(kind == Feature::Replace),
            Feature::Update => self.update(),
            Feature::UpdateJoin => self.update_join(),
            Feature::DeleteJoin => self.delete_join(),
            _ => self.delete(),
        }
    }

    fn insert(&mut self, replace: bool) -> Statement {
        let table = self.dice.pick(&self.schema.tables);
        let mut columns: Vec<&Column> = table.base();
        if columns.len() > 1 && self.dice.chance(0.3) {
            columns.remove(self.dice.below(columns.len()));
        }
        let verb = match replace {
            true => "REPLACE",
            false if self.allows(Feature::Ignore) && self.dice.chance(0.3) => "INSERT IGNORE",
            false => "INSERT",
        };
        let has_select = self.allows(Feature::InsertSelect) && self.dice.chance(0.3);
        let source = if has_select {
            let classes: Vec<Class> = columns.iter().map(|column| column.class()).collect();
            Source::Query(self.ordered_rows(&classes))
        } else {
            let rows = self.dice.between(1, 3);
            Source::Rows(
                (0..rows).map(|_| columns.iter().map(|column| self.inserted(table, column)).collect()).collect(),
            )
        };
        let mut on_duplicate = Vec::new();
        let is_duplicate = verb == "INSERT" && self.allows(Feature::OnDuplicate) && self.dice.chance(0.4);
        let assignments = if is_duplicate { self.dice.between(1, 2) } else { 0 };
        for _ in 0..assignments {
            let column = *self.dice.pick(&table.base());
            let values =
                |name: &str, class| Expr::Column { table: String::new(), name: format!("VALUES({name})"), class };
            let other = *self.dice.pick(&table.base());
            let value = match self.dice.below(5) {
                0 => values(&column.name, column.class()),
                1 if other.class() == column.class() && !has_select => Expr::form(
                    "COALESCE({0}, {1})",
                    column.class(),
                    vec![values(&other.name, other.class()), Expr::column("", &column.name, column.class())],
                ),
                2 if column.class() == Class::Integer && other.class() == Class::Integer => {
                    Expr::form("GREATEST({0}, {0} - 1)", Class::Integer, vec![values(&other.name, Class::Integer)])
                }
                3 if column.class() == Class::Integer => {
                    Expr::form("({0} + 1)", Class::Integer, vec![Expr::column("", &column.name, Class::Integer)])
                }
                _ => Expr::literal(data::value(&mut self.dice, column, self.schema.variants), column.class()),
            };
            // In INSERT … SELECT a name may also be one of the query's.
            let is_taken = on_duplicate.iter().any(|(name, _)| *name == column.name);
            if !is_taken && (!has_select || !matches!(&value, Expr::Form { form: "({0} + 1)", .. })) {
                on_duplicate.push((column.name.clone(), value));
            }
        }
        let returning = self.returning(table);
        let columns = columns.into_iter().map(|column| column.name.clone()).collect();
        Statement::Insert { verb, table: table.name.clone(), columns, source, on_duplicate, returning }
    }

    fn inserted(&mut self, table: &Table, column: &Column) -> Expr {
        let class = column.class();
        let literal = |text: String| Expr::literal(text, class);
        match self.dice.below(20) {
            0 => literal(data::odd_value(&mut self.dice, class)),
            1 => literal("DEFAULT".into()),
            2..=3 if self.allows(Feature::ChangeSubquery) => self.other_table_subquery(&table.name, class),
            4..=5 => self.expression(class, 1),
            _ => literal(data::value(&mut self.dice, column, self.schema.variants)),
        }
    }

    /// A scalar subquery that does not read the table that is changed (1093).
    fn other_table_subquery(&mut self, changed: &str, class: Class) -> Expr {
        let others: Vec<&Table> = self.schema.tables.iter().filter(|table| table.name != changed).collect();
        let table = *self.dice.pick(&others);
        let alias = self.name("r");
        self.scopes.push(Scope { keys: Some(Vec::new()), ..Scope::default() });
        self.show(&alias, table.columns.iter().map(|column| (column.name.clone(), column.class())).collect());
        let mut select = Select::of(Vec::new());
        select.from = Some(From::Table { name: table.name.clone(), alias, hint: String::new() });
        let keys = self.scope().keys.take();
        if self.dice.chance(0.6) {
            select.filter = Some(self.condition(1));
        }
        self.scope().keys = keys;
        let expr = self.aggregate(class);
        select.items.push(Item { expr, alias: self.name("e") });
        self.scopes.pop();
        let mut query = Query::of(Body::Select(Box::new(select)));
        // Where the class has no aggregate, the list is a literal and every row of the table is one of the result's.
        query.limit = Some((0, 1));
        Expr::Subquery { form: "{Q}", arguments: Vec::new(), query: Box::new(query), class }
    }

    fn returning(&mut self, table: &Table) -> Vec<Item> {
        if !self.allows(Feature::Returning) {
            return Vec::new();
        }
        let mut items = Vec::new();
        for column in &table.columns {
            if self.dice.chance(0.6) {
                items.push(Item { expr: Expr::column("", &column.name, column.class()), alias: self.name("e") });
            }
        }
        if self.dice.chance(0.3) {
            self.scopes.push(Scope::default());
            let columns = table.columns.iter().map(|column| (column.name.clone(), column.class()));
            self.show("", columns.collect());
            let tables_left = std::mem::take(&mut self.tables_left);
            let class = self.comparable();
            let expr = self.expression(class, 2);
            self.tables_left = tables_left;
            self.scopes.pop();
            items.push(Item { expr, alias: self.name("e") });
        }
        items
    }

    /// Opens the scope of a change of one table.
    fn target(&mut self, table: &Table) -> From {
        self.scopes.push(Scope::default());
        self.nesting = 1;
        self.tables_left = 2;
        self.show(&table.name, table.columns.iter().map(|column| (column.name.clone(), column.class())).collect());
        From::Table { name: table.name.clone(), alias: table.name.clone(), hint: String::new() }
    }

    /// An assignment that does not depend on the order of rows: unique columns get literals only.
    fn assignment(&mut self, table: &Table, alias: &str) -> (Expr, Expr) {
        let column = *self.dice.pick(&table.base());
        let place = Expr::column(alias, &column.name, column.class());
        let class = column.class();
        let value = match self.dice.below(10) {
            0 => Expr::literal(data::odd_value(&mut self.dice, class), class),
            1..=2 if self.allows(Feature::ChangeSubquery) => self.other_table_subquery(&table.name, class),
            3..=6 if !table.is_unique_part(&column.name) => {
                let (features, tables_left) = (self.features, std::mem::take(&mut self.tables_left));
                self.features = self.features.without(Feature::ScalarSubquery);
                let value = self.expression(class, 2);
                (self.features, self.tables_left) = (features, tables_left);
                value
            }
            _ => Expr::literal(data::value(&mut self.dice, column, self.schema.variants), class),
        };
        (place, value)
    }

    fn assignments(&mut self, table: &Table, alias: &str) -> Vec<(Expr, Expr)> {
        let mut set = vec![self.assignment(table, alias)];
        if self.dice.chance(0.3) {
            let more = self.assignment(table, alias);
            if set[0].0 != more.0 {
                set.push(more);
            }
        }
        set
    }

    /// The condition of a change; subqueries in it only where they are allowed.
    fn change_filter(&mut self) -> Option<Expr> {
        if !self.dice.chance(0.85) {
            return None;
        }
        let tables_left = self.tables_left;
        if !self.allows(Feature::ChangeSubquery) {
            self.tables_left = 0;
        }
        let filter = self.condition(2);
        self.tables_left = tables_left;
        Some(filter)
    }

    /// The condition of a change behind WITH: it reads the common tables, which nothing else may do.
    fn filter_by_common(&mut self, with: &[Cte]) -> Option<Expr> {
        let mut filter = self.change_filter();
        for cte in with {
            let Some((_, columns)) = self.ctes.iter().find(|(name, _)| *name == cte.name).cloned() else { continue };
            let (column, class) = self.dice.pick(&columns).clone();
            let alias = self.name("r");
            let item = Item { expr: Expr::column(&alias, &column, class), alias: self.name("e") };
            let mut select = Select::of(vec![item]);
            select.from = Some(From::Table { name: cte.name.clone(), alias, hint: String::new() });
            let query = Box::new(Query::of(Body::Select(Box::new(select))));
            let own = if class == Class::Json { None } else { self.column(class) };
            let (form, arguments) = match own {
                Some(own) => (*self.dice.pick(&["({0} IN {Q})", "({0} NOT IN {Q})"]), vec![own]),
                None => ("EXISTS {Q}", Vec::new()),
            };
            let reads = Expr::Subquery { form, arguments, query, class: Class::Boolean };
            filter = Some(match filter {
                None => reads,
                Some(other) => {
                    let form = *self.dice.pick(&["({0} AND {1})", "({0} OR {1})"]);
                    Expr::form(form, Class::Boolean, vec![other, reads])
                }
            });
        }
        filter
    }

    /// ORDER BY over all columns, and LIMIT.
    fn change_limit(&mut self) -> (Vec<OrderKey>, Option<u64>) {
        if !self.allows(Feature::Limit) || !self.dice.chance(0.25) {
            return (Vec::new(), None);
        }
        (self.total_order(), Some(self.dice.between(0, 6) as u64))
    }

    fn update(&mut self) -> Statement {
        let with = if self.allows(Feature::ChangeWith) { self.with() } else { Vec::new() };
        let table = self.dice.pick(&self.schema.tables);
        let from = self.target(table);
        let set = self.assignments(table, &table.name);
        let filter = self.filter_by_common(&with);
        let (order, limit) = self.change_limit();
        // IGNORE passes over rows by their order where keys collide.
        let is_safe =
            set.iter().all(|(place, _)| matches!(place, Expr::Column { name, .. } if !table.is_unique_part(name)));
        let ignore = is_safe && self.allows(Feature::Ignore) && self.dice.chance(0.15);
        self.scopes.pop();
        Statement::Update { with, ignore, from, set, filter, order, limit }
    }

    fn delete(&mut self) -> Statement {
        let with = if self.allows(Feature::ChangeWith) { self.with() } else { Vec::new() };
        let table = self.dice.pick(&self.schema.tables);
        let from = self.target(table);
        let filter = self.filter_by_common(&with);
        let (order, limit) = self.change_limit();
        let returning = if with.is_empty() { self.returning(table) } else { Vec::new() };
        // MariaDB gives back rows that IGNORE has passed over too.
        let ignore = self.allows(Feature::Ignore) && self.dice.chance(0.2) && returning.is_empty();
        self.scopes.pop();
        Statement::Delete { with, ignore, targets: Vec::new(), from, filter, order, limit, returning }
    }

    /// Two or three tables under aliases, with a derived table at times; the scope stays open.
    fn joined_targets(&mut self) -> (From, Vec<(Table, String)>) {
        self.scopes.push(Scope::default());
        self.nesting = 1;
        self.tables_left = 2;
        let mut tables = Vec::new();
        let mut from: Option<From> = None;
        for _ in 0..2 {
            let table = self.dice.pick(&self.schema.tables).clone();
            let alias = self.name("r");
            self.show(&alias, table.columns.iter().map(|column| (column.name.clone(), column.class())).collect());
            let one = From::Table { name: table.name.clone(), alias: alias.clone(), hint: String::new() };
            from = Some(match from {
                None => one,
                Some(left) => {
                    let kind = *self.dice.pick(&["JOIN", "JOIN", "LEFT JOIN"]);
                    let tables_left = std::mem::take(&mut self.tables_left);
                    let on = self.condition(1);
                    self.tables_left = tables_left;
                    From::Join { kind, left: Box::new(left), right: Box::new(one), on: Some(on) }
                }
            });
            tables.push((table, alias));
        }
        let mut from = from.expect("two tables are joined");
        if self.allows(Feature::Derived) && self.dice.chance(0.4) {
            let derived = self.derived(false);
            let kind = *self.dice.pick(&["JOIN", "JOIN", "LEFT JOIN"]);
            let on = Some(self.join_condition());
            from = From::Join { kind, left: Box::new(from), right: Box::new(derived), on };
        }
        (from, tables)
    }

    fn update_join(&mut self) -> Statement {
        let (from, tables) = self.joined_targets();
        let all = self.scope().columns.clone();
        let (table, alias) = self.dice.pick(&tables).clone();
        // The value may depend on the changed row alone: which partner is met first is open.
        self.scope().columns.retain(|column| column.table == alias);
        let set = self.assignments(&table, &alias);
        self.scope().columns = all;
        let filter = self.change_filter();
        self.scopes.pop();
        let is_safe =
            set.iter().all(|(place, _)| matches!(place, Expr::Column { name, .. } if !table.is_unique_part(name)));
        let ignore = is_safe && self.allows(Feature::Ignore) && self.dice.chance(0.2);
        Statement::Update { with: Vec::new(), ignore, from, set, filter, order: Vec::new(), limit: None }
    }

    fn delete_join(&mut self) -> Statement {
        let (from, tables) = self.joined_targets();
        let mut targets = vec![self.dice.pick(&tables).1.clone()];
        if self.dice.chance(0.3) {
            targets = tables.iter().map(|(_, alias)| alias.clone()).collect();
        }
        let filter = self.change_filter();
        self.scopes.pop();
        Statement::Delete {
            with: Vec::new(),
            ignore: self.allows(Feature::Ignore) && self.dice.chance(0.2),
            targets,
            from,
            filter,
            order: Vec::new(),
            limit: None,
            returning: Vec::new(),
        }
    }
}

/// Names the view in the place of the table that is changed.
fn rename(change: &mut Statement, table: &str) {
    let column = |node: NodeMut<'_>| {
        if let NodeMut::Expr(Expr::Column { table: named, .. }) = node
            && named == table
        {
            *named = VIEW.into();
        }
    };
    walk_mut(change, &mut |node| column(node));
    match change {
        Statement::Insert { table, .. } => *table = VIEW.into(),
        Statement::Update { from, set, order, .. } => {
            *from = From::Table { name: VIEW.into(), alias: VIEW.into(), hint: String::new() };
            set.iter_mut().for_each(|(place, _)| visit::expr(place, &mut |node| column(node)));
            order.iter_mut().for_each(|key| visit::expr(&mut key.expr, &mut |node| column(node)));
        }
        Statement::Delete { from, order, .. } => {
            *from = From::Table { name: VIEW.into(), alias: VIEW.into(), hint: String::new() };
            order.iter_mut().for_each(|key| visit::expr(&mut key.expr, &mut |node| column(node)));
        }
        _ => unreachable!("only changes of one table go through a view"),
    }
}

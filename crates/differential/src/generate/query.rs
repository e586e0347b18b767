//! Queries: SELECT with joins, groups and windows, set operations, common tables, subqueries.

use super::expression::by_bytes;
use super::{DEEPEST, Generator, Scope, Visible};
use crate::dice::Dice;
use crate::schema::Table;
use crate::tree::feature::Feature;
use crate::tree::{Body, Class, Cte, Expr, From, Item, OrderKey, Query, Select};

/// What a query is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The statement itself, a derived table, a common table: any number of rows, in any order.
    Rows,
    /// One row at most, but for the few that test error 1242.
    Single,
    /// IN, EXISTS, ANY: no LIMIT there.
    Operand,
}

impl Generator<'_> {
    /// The query of a statement.
    pub(super) fn top_query(&mut self) -> Query {
        if self.allows(Feature::TableStatement) && self.dice.chance(0.5) {
            let table = self.dice.pick(&self.schema.tables).name.clone();
            return Query::of(Body::Table(table));
        }
        if self.allows(Feature::ValuesStatement) && self.dice.chance(0.5) {
            return self.values();
        }
        let with = self.with();
        let mut query = self.compound(None, Purpose::Rows);
        query.with = with;
        if query.order.is_empty() && self.dice.chance(0.4) {
            self.order_by_names(&mut query);
        }
        query
    }

    /// Rows of these classes in an order that leaves nothing open, for INSERT … SELECT.
    pub(super) fn ordered_rows(&mut self, classes: &[Class]) -> Query {
        let mut query = self.simple(Some(classes), Purpose::Operand);
        self.order_totally(&mut query);
        query
    }

    fn values(&mut self) -> Query {
        let count = self.dice.between(1, 3) as usize;
        let classes: Vec<Class> =
            (0..count).map(|_| *self.dice.pick(&[Class::Integer, Class::Text, Class::Decimal])).collect();
        let rows = (0..self.dice.between(1, 4))
            .map(|_| classes.iter().map(|class| self.expression(*class, 1)).collect())
            .collect();
        Query::of(Body::Values(rows))
    }

    /// Common tables for the query that follows.
    pub(super) fn with(&mut self) -> Vec<Cte> {
        let mut with = Vec::new();
        // A common table is closed: it sees no outer query.
        let outer = std::mem::take(&mut self.scopes);
        if self.allows(Feature::With) && self.dice.chance(0.8) {
            for _ in 0..self.dice.between(1, 2) {
                let query = self.compound(None, Purpose::Rows);
                let name = self.name("w");
                // The ORDER BY of a set operation names columns as its parts do: MariaDB has renamed them by then.
                let is_renamed = query.order.is_empty() || matches!(query.body, Body::Select(_));
                let columns = if is_renamed { self.common(&name, &query) } else { Vec::new() };
                if !is_renamed {
                    self.ctes.push((name.clone(), columns_of(&query)));
                }
                with.push(Cte { name, columns, recursive: false, query });
            }
        }
        if self.allows(Feature::Recursive) && self.dice.chance(0.8) {
            with.push(self.recursive());
        }
        self.scopes = outer;
        with
    }

    /// Makes a query's columns known under a name; gives their names.
    fn common(&mut self, name: &str, query: &Query) -> Vec<String> {
        let columns: Vec<(String, Class)> =
            columns_of(query).into_iter().map(|(_, class)| (self.name("n"), class)).collect();
        self.ctes.push((name.to_string(), columns.clone()));
        columns.into_iter().map(|(name, _)| name).collect()
    }

    /// Counts up to a limit, or walks along a table's rows by a number.
    fn recursive(&mut self) -> Cte {
        let name = self.name("w");
        let column = self.name("n");
        let alias = self.name("r");
        let item = |expr: Expr, alias: String| Item { expr, alias };
        let numbers = |table: &Table| -> Vec<String> {
            let numbers = table.columns.iter().filter(|column| column.class() == Class::Integer);
            numbers.map(|column| column.name.clone()).collect()
        };
        let walked = self.dice.pick(&self.schema.tables);
        if let [first, .., last] = numbers(walked).as_slice()
            && self.tables_left > 1
            && self.dice.chance(0.4)
        {
            return self.walk(name, column, alias, (&walked.name, first, last));
        }
        let start = Select::of(vec![item(Expr::literal("1", Class::Integer), self.name("e"))]);
        let own = Expr::column(&alias, &column, Class::Integer);
        let step = *self.dice.pick(&["({0} + 1)", "({0} + 2)", "({0} * 2)"]);
        let limit = Expr::literal(self.dice.between(3, 40).to_string(), Class::Integer);
        let mut next = Select::of(vec![item(Expr::form(step, Class::Integer, vec![own.clone()]), self.name("e"))]);
        next.from = Some(From::Table { name: name.clone(), alias, hint: String::new() });
        next.filter = Some(Expr::form("({0} < {1})", Class::Boolean, vec![own, limit]));
        let operator = *self.dice.pick(&["UNION ALL", "UNION"]);
        let query = Query::of(Body::Set {
            operator,
            left: Box::new(Query::of(Body::Select(Box::new(start)))),
            right: Box::new(Query::of(Body::Select(Box::new(next)))),
        });
        self.ctes.push((name.clone(), vec![(column.clone(), Class::Integer)]));
        Cte { name, columns: vec![column], recursive: true, query }
    }

    /// From row to row of a table: a row's one number is the next row's other. UNION ends it, in a circle too.
    fn walk(&mut self, name: String, column: String, alias: String, (table, from, to): (&str, &str, &str)) -> Cte {
        self.tables_left -= 1;
        let own = Expr::column(&alias, &column, Class::Integer);
        let base = self.name("r");
        let item = |expr: Expr, alias: String| vec![Item { expr, alias }];
        let mut start = Select::of(item(Expr::column(&base, from, Class::Integer), self.name("e")));
        start.from = Some(From::Table { name: table.into(), alias: base.clone(), hint: String::new() });
        let limit = Expr::literal(self.dice.between(0, 5).to_string(), Class::Integer);
        let first = Expr::column(&base, from, Class::Integer);
        start.filter = Some(Expr::form("({0} < {1})", Class::Boolean, vec![first, limit]));
        let next = self.name("r");
        let mut step = Select::of(item(Expr::column(&next, to, Class::Integer), self.name("e")));
        let on = Expr::form("({0} = {1})", Class::Boolean, vec![Expr::column(&next, from, Class::Integer), own]);
        let kind = *self.dice.pick(&["JOIN", "STRAIGHT_JOIN"]);
        step.from = Some(From::Join {
            kind,
            left: Box::new(From::Table { name: name.clone(), alias, hint: String::new() }),
            right: Box::new(From::Table { name: table.into(), alias: next, hint: String::new() }),
            on: Some(on),
        });
        let query = Query::of(Body::Set {
            operator: "UNION",
            left: Box::new(Query::of(Body::Select(Box::new(start)))),
            right: Box::new(Query::of(Body::Select(Box::new(step)))),
        });
        self.ctes.push((name.clone(), vec![(column.clone(), Class::Integer)]));
        Cte { name, columns: vec![column], recursive: true, query }
    }

    /// A SELECT or a set operation.
    fn compound(&mut self, classes: Option<&[Class]>, purpose: Purpose) -> Query {
        let mut operators = Vec::new();
        if self.allows(Feature::Union) {
            operators.extend(["UNION", "UNION ALL", "UNION ALL"]);
        }
        if self.allows(Feature::Intersect) {
            operators.extend(["INTERSECT", "INTERSECT", "INTERSECT ALL"]);
        }
        if self.allows(Feature::Except) {
            operators.extend(["EXCEPT", "EXCEPT", "EXCEPT ALL"]);
        }
        if operators.is_empty() || purpose == Purpose::Single || self.tables_left < 2 || self.dice.chance(0.4) {
            return self.simple(classes, purpose);
        }
        let operator = *self.dice.pick(&operators);
        let left = self.simple(classes, purpose);
        let mut wanted: Vec<Class> = columns_of(&left).into_iter().map(|(_, class)| class).collect();
        for class in &mut wanted {
            // The two sides agree on a type.
            if class.is_number() && self.dice.chance(0.2) {
                *class = *self.dice.pick(&[Class::Integer, Class::Decimal]);
            }
        }
        let right = if self.dice.chance(0.2) {
            self.compound(Some(&wanted), purpose)
        } else {
            self.simple(Some(&wanted), purpose)
        };
        let mut query = Query::of(Body::Set { operator, left: Box::new(left), right: Box::new(right) });
        let is_text =
            columns_of(&query).iter().any(|(_, class)| matches!(class, Class::Text | Class::Binary | Class::Json));
        if purpose == Purpose::Rows && !is_text && self.allows(Feature::Limit) && self.dice.chance(0.3) {
            self.order_totally(&mut query);
            query.limit = Some(self.limit());
        }
        query
    }

    /// A SELECT with its ORDER BY and LIMIT.
    fn simple(&mut self, classes: Option<&[Class]>, purpose: Purpose) -> Query {
        let select = self.select(classes, purpose);
        let mut query = Query::of(Body::Select(Box::new(select)));
        let Body::Select(select) = &query.body else { unreachable!("made here") };
        if select.rollup {
            return query;
        }
        let is_limited = match purpose {
            Purpose::Rows => self.allows(Feature::Limit) && self.dice.chance(0.25) && !select.distinct,
            // The few others are error 1242, or one row by chance.
            Purpose::Single => (!select.group.is_empty() || !is_grouped(select)) && self.dice.chance(0.95),
            Purpose::Operand => false,
        };
        let is_open = is_grouped(select) && self.schema.variants && purpose == Purpose::Rows;
        if is_limited && !is_open {
            self.order_totally(&mut query);
            query.limit = Some(if purpose == Purpose::Single { (0, 1) } else { self.limit() });
        }
        query
    }

    fn limit(&mut self) -> (u64, u64) {
        let skipped = if self.dice.chance(0.3) { self.dice.between(1, 4) as u64 } else { 0 };
        (skipped, self.dice.between(0, 8) as u64)
    }

    /// By all columns of the result.
    fn order_totally(&mut self, query: &mut Query) {
        // The name of an aggregate stands in no function (1247).
        let in_groups = query.first_select().is_some_and(is_grouped);
        let mut keys: Vec<OrderKey> = columns_of(query)
            .into_iter()
            .map(|(name, class)| {
                let column = Expr::column("", &name, class);
                let expr = if in_groups { column } else { by_bytes(column) };
                OrderKey { expr, descending: self.dice.chance(0.3) }
            })
            .collect();
        let first = self.dice.below(keys.len());
        keys.swap(0, first);
        query.order = keys;
    }

    /// By some of the result's columns, under their own collations.
    fn order_by_names(&mut self, query: &mut Query) {
        let is_rolled_up = query.first_select().is_none_or(|select| select.rollup);
        for (name, class) in columns_of(query) {
            if class != Class::Json && !is_rolled_up && self.dice.chance(0.6) {
                let expr = Expr::column("", &name, class);
                query.order.push(OrderKey { expr, descending: self.dice.chance(0.3) });
            }
        }
    }

    fn select(&mut self, classes: Option<&[Class]>, purpose: Purpose) -> Select {
        self.nesting += 1;
        self.scopes.push(Scope::default());
        let from = if self.nesting == 1 && self.dice.chance(0.06) { None } else { Some(self.from()) };
        let mut select = Select { from, ..Select::of(Vec::new()) };
        if select.from.is_some() && self.dice.chance(0.65) {
            select.filter = Some(self.condition(2));
        }
        if select.from.is_some() && self.allows(Feature::Group) && self.dice.chance(0.35) {
            self.group(&mut select, purpose);
        } else if purpose == Purpose::Single && select.from.is_some() && self.dice.chance(0.8) {
            self.scope().keys = Some(Vec::new());
        }
        if self.allows(Feature::NamedWindow) && self.scope().keys.is_none() && select.from.is_some() {
            let class = self.comparable();
            let partition = if self.dice.chance(0.5) { self.column(class).into_iter().collect() } else { Vec::new() };
            self.scope().window = Some((partition, self.total_order()));
        }
        let count = self.dice.between(1, 5) as usize;
        for i in 0..classes.map_or(count, <[Class]>::len) {
            let class = match classes {
                Some(classes) => classes[i],
                None => self.item_class(),
            };
            let expr = self.item(class);
            select.items.push(Item { expr, alias: self.name("e") });
        }
        let is_grouped = self.scope().keys.is_some();
        if !is_grouped && self.allows(Feature::Distinct) && self.dice.chance(0.2) {
            select.distinct = true;
        }
        if is_grouped && !select.rollup && !select.group.is_empty() && self.dice.chance(0.4) {
            let class = *self.dice.pick(&[Class::Integer, Class::Decimal]);
            let left = self.aggregate(class);
            let right = if self.may_nest() && self.allows(Feature::ScalarSubquery) && self.dice.chance(0.5) {
                self.scalar_subquery(class)
            } else {
                self.expression(class, 0)
            };
            let form = *self.dice.pick(&["({0} > {1})", "({0} <= {1})", "({0} <> {1})"]);
            select.having = Some(Expr::form(form, Class::Boolean, vec![left, right]));
        }
        select.window = self.scope().window.take();
        if self.allows(Feature::OptimizerHint)
            && let Some(from) = &select.from
        {
            select.hints = hints(&mut self.dice, from, self.nesting == 1);
        }
        self.scopes.pop();
        self.nesting -= 1;
        select
    }

    fn item_class(&mut self) -> Class {
        let columns = &self.scopes.last().expect("a query is open").columns;
        if !columns.is_empty() && self.dice.chance(0.8) {
            let at = self.dice.below(columns.len());
            return columns[at].class;
        }
        *self.dice.pick(&[Class::Integer, Class::Decimal, Class::Text, Class::Boolean, Class::Date, Class::Double])
    }

    fn item(&mut self, class: Class) -> Expr {
        let is_grouped = self.scope().keys.is_some();
        let has_rows = match &self.scope().keys {
            None => !self.scope().columns.is_empty(),
            Some(keys) => !keys.is_empty() && !self.scope().rollup,
        };
        if has_rows
            && self.allows(Feature::Window)
            && self.dice.chance(if is_grouped { 0.3 } else { 0.5 })
            && let Some(window) = self.window(class)
        {
            return window;
        }
        if is_grouped && self.allows(Feature::Grouping) && class == Class::Integer && self.dice.chance(0.4) {
            let keys = self.scope().keys.clone().unwrap_or_default();
            if !keys.is_empty() {
                return Expr::form("GROUPING({0})", class, vec![self.dice.pick(&keys).clone()]);
            }
        }
        // Text of a group is shown as it is: which of equal texts it is, is open.
        let depth = if is_grouped && matches!(class, Class::Text | Class::Binary) { 0 } else { 2 };
        self.expression(class, depth)
    }

    /// GROUP BY columns, or none: then the query has one row.
    fn group(&mut self, select: &mut Select, purpose: Purpose) {
        let columns: Vec<Expr> =
            self.scope().columns.iter().filter(|c| c.class != Class::Json).map(|column| column.expr()).collect();
        let count = if purpose == Purpose::Single { 0 } else { self.dice.between(0, 2) };
        let mut keys: Vec<Expr> = Vec::new();
        for _ in 0..count {
            if columns.is_empty() {
                break;
            }
            let mut key = self.dice.pick(&columns).clone();
            if self.allows(Feature::GroupExpression) && self.dice.chance(0.7) {
                let form = match key.class() {
                    Class::Integer => "({0} % 3)",
                    Class::Decimal => "FLOOR({0})",
                    Class::Text => "LEFT({0}, 1)",
                    Class::Date | Class::DateTime => "YEAR({0})",
                    _ => "({0} IS NULL)",
                };
                let class = if key.class() == Class::Text { Class::Text } else { Class::Integer };
                key = Expr::form(form, class, vec![key]);
            }
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        select.rollup = !keys.is_empty() && self.allows(Feature::Rollup) && self.dice.chance(0.8);
        select.group = keys.clone();
        self.scope().rollup = select.rollup;
        self.scope().keys = Some(keys);
    }

    fn from(&mut self) -> From {
        let mut from = self.source(true);
        let joins = match (self.allows(Feature::Join), self.allows(Feature::OuterJoin)) {
            (false, false) => &[][..],
            (true, false) => &["JOIN", "JOIN", "CROSS JOIN", "STRAIGHT_JOIN"][..],
            (false, true) => &["LEFT JOIN", "RIGHT JOIN"][..],
            (true, true) => &["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "CROSS JOIN"][..],
        };
        while !joins.is_empty() && self.tables_left > 0 && self.dice.chance(0.45) {
            let kind = *self.dice.pick(joins);
            // An outer join turned round sees nothing of its left side.
            let right = self.source(!kind.starts_with("RIGHT"));
            let on = (kind != "CROSS JOIN").then(|| self.join_condition());
            from = From::Join { kind, left: Box::new(from), right: Box::new(right), on };
        }
        from
    }

    pub(super) fn join_condition(&mut self) -> Expr {
        let columns = &self.scopes.last().expect("a query is open").columns;
        let newest = columns.last().expect("a table has columns").table.clone();
        let (right, left): (Vec<&Visible>, Vec<&Visible>) = columns.iter().partition(|column| column.table == newest);
        let pairs: Vec<(Expr, Expr)> = left
            .iter()
            .flat_map(|l| right.iter().map(move |r| (*l, *r)))
            .filter(|(l, r)| l.class == r.class && l.class != Class::Json)
            .map(|(l, r)| (l.expr(), r.expr()))
            .collect();
        let mut condition = if pairs.is_empty() || self.dice.chance(0.1) {
            self.condition(1)
        } else {
            let (left, right) = self.dice.pick(&pairs).clone();
            let form = *self.dice.pick(&["({0} = {1})", "({0} = {1})", "({0} = {1})", "({0} <=> {1})", "({0} < {1})"]);
            Expr::form(form, Class::Boolean, vec![left, right])
        };
        if self.dice.chance(0.25) {
            let more = self.condition(1);
            condition = Expr::form("({0} AND {1})", Class::Boolean, vec![condition, more]);
        }
        condition
    }

    /// A table, a common table or a derived one; its columns come into scope.
    fn source(&mut self, may_be_lateral: bool) -> From {
        self.tables_left = self.tables_left.saturating_sub(1);
        if !self.ctes.is_empty() && self.dice.chance(0.6) {
            let (name, columns) = self.dice.pick(&self.ctes).clone();
            let alias = self.name("r");
            self.show(&alias, columns);
            self.scope().twins = true;
            return From::Table { name, alias, hint: String::new() };
        }
        let has_columns = !self.scope().columns.is_empty();
        let is_lateral = may_be_lateral && has_columns && self.allows(Feature::Lateral) && self.dice.chance(0.7);
        if self.nesting < DEEPEST
            && self.tables_left > 0
            && (is_lateral || self.allows(Feature::Derived) && self.dice.chance(0.5))
        {
            return self.derived(is_lateral);
        }
        let table = self.dice.pick(&self.schema.tables);
        self.scope().twins |= table.primary().is_none();
        let alias = self.name("r");
        let mut hint = String::new();
        let names: Vec<&str> = table.keys.iter().filter(|key| !key.primary).map(|key| key.name.as_str()).collect();
        if self.allows(Feature::Hint) && !names.is_empty() && self.dice.chance(0.15) {
            let verb = self.dice.pick(&["USE", "FORCE", "IGNORE"]);
            hint = format!("{verb} INDEX ({})", self.dice.pick(&names));
        }
        let columns = table.columns.iter().map(|column| (column.name.clone(), column.class())).collect();
        self.show(&alias, columns);
        From::Table { name: table.name.clone(), alias, hint }
    }

    pub(super) fn show(&mut self, alias: &str, columns: Vec<(String, Class)>) {
        let visible = columns.into_iter().map(|(name, class)| {
            // A condition's result is a number once it is a column.
            let class = if class == Class::Boolean { Class::Integer } else { class };
            Visible { table: alias.to_string(), name, class }
        });
        self.scope().columns.extend(visible);
    }

    pub(super) fn derived(&mut self, lateral: bool) -> From {
        let correlated = self.features;
        let outer = if lateral { Vec::new() } else { std::mem::take(&mut self.scopes) };
        if lateral {
            self.features = self.features.with(Feature::Correlated);
        }
        let nesting = self.nesting;
        let known = self.ctes.len();
        let with = if self.dice.chance(0.3) { self.with() } else { Vec::new() };
        let mut query = self.compound(None, Purpose::Rows);
        query.with = with;
        if self.allows(Feature::Lock) && matches!(query.body, Body::Select(_)) && self.dice.chance(0.5) {
            query.lock = "FOR UPDATE";
        }
        self.ctes.truncate(known);
        self.nesting = nesting;
        self.features = correlated;
        if !lateral {
            self.scopes = outer;
        }
        let alias = self.name("d");
        let columns = columns_of(&query);
        self.show(&alias, columns);
        self.scope().twins = true;
        From::Derived { query: Box::new(query), alias, lateral }
    }

    pub(super) fn scalar_subquery(&mut self, class: Class) -> Expr {
        let query = self.simple(Some(&[class]), Purpose::Single);
        Expr::Subquery { form: "{Q}", arguments: Vec::new(), query: Box::new(query), class }
    }

    /// IN, EXISTS, ANY, ALL, of those that are allowed.
    pub(super) fn subquery_condition(&mut self) -> Option<Expr> {
        let mut forms: Vec<&'static str> = Vec::new();
        if self.allows(Feature::InSubquery) {
            forms.extend(["({0} IN {Q})", "({0} NOT IN {Q})"]);
        }
        if self.allows(Feature::Exists) {
            forms.extend(["EXISTS {Q}", "(NOT EXISTS {Q})"]);
        }
        if self.allows(Feature::Quantified) {
            forms.extend([
                "({0} = ANY {Q})",
                "({0} > ALL {Q})",
                "({0} < ANY {Q})",
                "({0} <> ALL {Q})",
                "({0} >= ANY {Q})",
            ]);
        }
        if self.allows(Feature::RowSubquery) {
            forms.extend(["(({0}, {1}) IN {Q})", "(({0}, {1}) NOT IN {Q})"]);
        }
        if forms.is_empty() {
            return None;
        }
        let form = *self.dice.pick(&forms);
        let count = (0..2).filter(|i| form.contains(&format!("{{{i}}}"))).count();
        let mut classes: Vec<Class> = (0..count).map(|_| self.comparable()).collect();
        // MariaDB has no subquery in a row at the left of IN: there are few.
        let nesting = self.nesting;
        if form.starts_with("((") && self.dice.chance(0.9) {
            self.nesting = DEEPEST;
        }
        let arguments = classes.iter().map(|class| self.expression(*class, 1)).collect();
        self.nesting = nesting;
        if classes.is_empty() {
            classes.push(Class::Integer);
        }
        let query = self.compound(Some(&classes), Purpose::Operand);
        Some(Expr::Subquery { form, arguments, query: Box::new(query), class: Class::Boolean })
    }
}

/// Hints that choose plans and no answers. MariaDB takes them for a comment.
pub fn hints(dice: &mut Dice, from: &From, is_outermost: bool) -> String {
    fn aliases(from: &From, tables: &mut Vec<String>, derived: &mut Vec<String>) {
        match from {
            From::Table { alias, .. } => tables.push(alias.clone()),
            From::Derived { alias, .. } => derived.push(alias.clone()),
            From::Join { left, right, .. } => {
                aliases(left, tables, derived);
                aliases(right, tables, derived);
            }
        }
    }
    let (mut tables, mut derived) = (Vec::new(), Vec::new());
    aliases(from, &mut tables, &mut derived);
    let mut found: Vec<String> = vec!["NO_SEMIJOIN()".into(), "NO_INDEX()".into(), "NO_MERGE()".into()];
    if tables.len() > 1 {
        let at = dice.below(tables.len());
        tables.swap(0, at);
        found.push(format!("JOIN_ORDER({})", tables.join(", ")));
        found.push(format!("JOIN_PREFIX({})", tables[0]));
        found.push(format!("JOIN_SUFFIX({})", tables[0]));
        found.push("JOIN_FIXED_ORDER()".into());
    }
    if !tables.is_empty() {
        found.push(format!("NO_INDEX({})", dice.pick(&tables)));
    }
    if !derived.is_empty() {
        let name = dice.pick(&derived).clone();
        found.push(format!("NO_MERGE({name})"));
        found.push(format!("MERGE({name})"));
    }
    if is_outermost {
        found.push(format!("SET_VAR(optimizer_switch = '{}')", dice.pick(SWITCHES)));
        found.push("MAX_EXECUTION_TIME(100000)".into());
    }
    dice.pick(&found).clone()
}

/// Values of `optimizer_switch` that change plans.
pub const SWITCHES: &[&str] = &[
    "semijoin=off",
    "firstmatch=off",
    "materialization=off",
    "derived_merge=off",
    "subquery_to_derived=off",
    "derived_condition_pushdown=off",
    "semijoin=off,materialization=off,subquery_to_derived=off",
    "derived_merge=off,derived_condition_pushdown=off",
    "batch_execution_cost_based=off",
    "batch_execution=off",
];

/// Names and classes of a query's result.
fn columns_of(query: &Query) -> Vec<(String, Class)> {
    let select = query.first_select().expect("only SELECT is nested");
    select.items.iter().map(|item| (item.alias.clone(), item.expr.class())).collect()
}

/// There are groups, or aggregates that make the rows one group.
fn is_grouped(select: &Select) -> bool {
    use super::forms::{AGGREGATES, BITS, STATISTICS};
    fn has_aggregate(expr: &Expr) -> bool {
        match expr {
            Expr::Form { form, arguments, .. } => {
                AGGREGATES.iter().any(|(_, f, _)| f == form)
                    || STATISTICS.contains(form)
                    || BITS.contains(form)
                    || form.contains("AGG(")
                    || arguments.iter().any(has_aggregate)
            }
            Expr::Subquery { arguments, .. } => arguments.iter().any(has_aggregate),
            _ => false,
        }
    }
    !select.group.is_empty() || select.items.iter().any(|item| has_aggregate(&item.expr))
}

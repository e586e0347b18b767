//! Features: parts of SQL that the summary counts one by one, and that a run can switch on and off.
//!
//! A statement is drawn with a few features allowed, most of them off ("swarm testing": a statement that may use
//! everything meets little of anything, and one feature that a server refuses hides all the others). Which features a
//! statement has in the end is read off its tree.

use super::visit::{self, Node, NodeMut, walk};
use super::{Body, Expr, From, Query, Source, Statement};

macro_rules! features {
    ($($name:ident = $text:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Feature { $($name,)* }

        pub const ALL: &[(Feature, &str)] = &[$((Feature::$name, $text),)*];
    };
}

features! {
    Join = "join",
    OuterJoin = "outer-join",
    Group = "group",
    Distinct = "distinct",
    Limit = "limit",
    Hint = "hint",
    ScalarSubquery = "scalar-subquery",
    InSubquery = "in-subquery",
    Exists = "exists",
    Quantified = "quantified",
    RowSubquery = "row-subquery",
    Correlated = "correlated",
    Derived = "derived",
    Lateral = "lateral",
    Union = "union",
    Intersect = "intersect",
    Except = "except",
    With = "with",
    Recursive = "recursive",
    Window = "window",
    Rollup = "rollup",
    Grouping = "grouping",
    Statistics = "statistics",
    BitAggregate = "bit-aggregate",
    JsonAggregate = "json-aggregate",
    AnyValue = "any-value",
    TableStatement = "table-statement",
    ValuesStatement = "values-statement",
    View = "view",
    ChangeView = "change-view",
    NamedWindow = "named-window",
    GroupExpression = "group-expression",
    OptimizerHint = "optimizer-hint",
    Lock = "lock",
    Insert = "insert",
    InsertSelect = "insert-select",
    OnDuplicate = "on-duplicate",
    Replace = "replace",
    Ignore = "ignore",
    Update = "update",
    UpdateJoin = "update-join",
    Delete = "delete",
    DeleteJoin = "delete-join",
    ChangeSubquery = "change-subquery",
    ChangeWith = "change-with",
    Returning = "returning",
}

/// Features that nearly every statement may have.
pub const COMMON: &[Feature] = &[
    Feature::Join,
    Feature::OuterJoin,
    Feature::Group,
    Feature::Distinct,
    Feature::Limit,
    Feature::Hint,
    Feature::Insert,
    Feature::InsertSelect,
    Feature::OnDuplicate,
    Feature::Replace,
    Feature::Ignore,
    Feature::Update,
    Feature::Delete,
];

impl Feature {
    pub fn name(self) -> &'static str {
        ALL[self as usize].1
    }

    /// MariaDB 10.11 has it; the others are said to it in other words (`dialect`), where there are any.
    pub fn is_in_reference(self) -> bool {
        use Feature::*;
        !matches!(self, Lateral | Grouping | ChangeWith | AnyValue | TableStatement | ValuesStatement)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(u64);

impl Features {
    pub fn all() -> Features {
        ALL.iter().fold(Features::default(), |set, (feature, _)| set.with(*feature))
    }

    pub fn with(self, feature: Feature) -> Features {
        Features(self.0 | 1 << feature as u64)
    }

    pub fn without(self, feature: Feature) -> Features {
        Features(self.0 & !(1 << feature as u64))
    }

    pub fn has(self, feature: Feature) -> bool {
        self.0 >> feature as u64 & 1 == 1
    }

    pub fn iter(self) -> impl Iterator<Item = Feature> {
        ALL.iter().map(|(feature, _)| *feature).filter(move |feature| self.has(*feature))
    }

    /// Names separated by commas.
    pub fn parse(names: &str) -> Result<Features, String> {
        let mut set = Features::default();
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let found = ALL.iter().find(|(_, text)| *text == name);
            let (feature, _) = found.ok_or_else(|| {
                let known: Vec<&str> = ALL.iter().map(|(_, text)| *text).collect();
                format!("unknown feature '{name}'; features: {}", known.join(", "))
            })?;
            set = set.with(*feature);
        }
        Ok(set)
    }

    /// What a statement has.
    pub fn of(statement: &Statement) -> Features {
        let mut set = Features::default();
        let mut queries = 0;
        walk(statement, &mut |node| {
            let mut add = |feature| set = set.with(feature);
            match node {
                Node::Expr(expr) => of_expr(expr, &mut add),
                Node::Query(query) => {
                    queries += 1;
                    for cte in &query.with {
                        add(if cte.recursive { Feature::Recursive } else { Feature::With });
                    }
                    match &query.body {
                        Body::Set { operator, .. } if operator.starts_with("INTERSECT") => add(Feature::Intersect),
                        Body::Set { operator, .. } if operator.starts_with("EXCEPT") => add(Feature::Except),
                        Body::Set { .. } => add(Feature::Union),
                        Body::Values(_) => add(Feature::ValuesStatement),
                        Body::Table(_) => add(Feature::TableStatement),
                        Body::Select(_) => {}
                    }
                    if query.limit.is_some() {
                        add(Feature::Limit);
                    }
                    if !query.lock.is_empty() {
                        add(Feature::Lock);
                    }
                }
                Node::Select(select) => {
                    if select.distinct {
                        add(Feature::Distinct);
                    }
                    if !select.hints.is_empty() {
                        add(Feature::OptimizerHint);
                    }
                    if select.window.is_some() {
                        add(Feature::NamedWindow);
                    }
                    if select.group.iter().any(|key| !matches!(key, Expr::Column { .. })) {
                        add(Feature::GroupExpression);
                    }
                    if !select.group.is_empty() {
                        add(if select.rollup { Feature::Rollup } else { Feature::Group });
                    }
                }
                Node::From(From::Table { hint, .. }) if !hint.is_empty() => add(Feature::Hint),
                Node::From(From::Table { .. }) => {}
                Node::From(From::Derived { lateral: false, .. }) => add(Feature::Derived),
                Node::From(From::Derived { lateral: true, query, .. }) => {
                    add(Feature::Lateral);
                    if is_correlated(query) {
                        add(Feature::Correlated);
                    }
                }
                Node::From(From::Join { kind, .. }) => add(if kind.starts_with("LEFT") || kind.starts_with("RIGHT") {
                    Feature::OuterJoin
                } else {
                    Feature::Join
                }),
            }
        });
        set.of_statement(statement, queries)
    }

    fn of_statement(self, statement: &Statement, queries: usize) -> Features {
        let mut set = self;
        let mut add = |feature, holds: bool| set = if holds { set.with(feature) } else { set };
        match statement {
            Statement::Query(_) => {}
            Statement::View { .. } => add(Feature::View, true),
            Statement::ThroughView { change, .. } => {
                return set.with(Feature::ChangeView).of_statement(change, queries);
            }
            Statement::Insert { verb, source, on_duplicate, returning, .. } => {
                add(Feature::Insert, *verb != "REPLACE");
                add(Feature::Replace, *verb == "REPLACE");
                add(Feature::Ignore, verb.ends_with("IGNORE"));
                let own = usize::from(matches!(source, Source::Query(_)));
                add(Feature::InsertSelect, own == 1);
                add(Feature::ChangeSubquery, queries > own);
                add(Feature::OnDuplicate, !on_duplicate.is_empty());
                add(Feature::Returning, !returning.is_empty());
            }
            Statement::Update { with, ignore, from, .. } => {
                let join = !matches!(from, From::Table { .. });
                add(Feature::Update, !join);
                add(Feature::UpdateJoin, join);
                add(Feature::Ignore, *ignore);
                add(Feature::ChangeSubquery, queries > with.len());
                add(Feature::ChangeWith, !with.is_empty());
            }
            Statement::Delete { with, ignore, targets, returning, .. } => {
                add(Feature::Delete, targets.is_empty());
                add(Feature::DeleteJoin, !targets.is_empty());
                add(Feature::Ignore, *ignore);
                add(Feature::ChangeSubquery, queries > with.len());
                add(Feature::ChangeWith, !with.is_empty());
                add(Feature::Returning, !returning.is_empty());
            }
        }
        set
    }
}

/// The query names a table that is not its own.
pub fn is_correlated(query: &Query) -> bool {
    let (mut own, mut named) = (Vec::new(), Vec::new());
    visit::query(&mut query.clone(), &mut |node| match node {
        NodeMut::From(From::Table { alias, .. } | From::Derived { alias, .. }) => own.push(alias.clone()),
        NodeMut::Expr(Expr::Column { table, .. }) if !table.is_empty() => named.push(table.clone()),
        _ => {}
    });
    named.iter().any(|table| !own.contains(table))
}

fn of_expr(expr: &Expr, add: &mut dyn FnMut(Feature)) {
    if let Expr::Subquery { query, .. } = expr
        && is_correlated(query)
    {
        add(Feature::Correlated);
    }
    match expr {
        Expr::Subquery { form, .. } if form.contains("EXISTS") => add(Feature::Exists),
        Expr::Subquery { form, .. } if form.contains("ANY") || form.contains("ALL") => add(Feature::Quantified),
        Expr::Subquery { form, .. } if form.starts_with("((") => add(Feature::RowSubquery),
        Expr::Subquery { form, .. } if form.contains("IN ") => add(Feature::InSubquery),
        Expr::Subquery { .. } => add(Feature::ScalarSubquery),
        Expr::Window { .. } => add(Feature::Window),
        Expr::Form { form, .. } if form.starts_with("STDDEV") || form.starts_with("VAR") => add(Feature::Statistics),
        Expr::Form { form, .. }
            if form.starts_with("BIT_") && !form.starts_with("BIT_COUNT") && !form.starts_with("BIT_LENGTH") =>
        {
            add(Feature::BitAggregate)
        }
        Expr::Form { form, .. } if form.contains("JSON_ARRAYAGG") => add(Feature::JsonAggregate),
        Expr::Form { form, .. } if form.starts_with("ANY_VALUE") => add(Feature::AnyValue),
        Expr::Form { form, .. } if form.starts_with("GROUPING") => add(Feature::Grouping),
        _ => {}
    }
}

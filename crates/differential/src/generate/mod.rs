//! Random statements, by a grammar with weights and a depth.
//!
//! [`expression`] draws expressions of a wanted class, [`query`] queries, [`change`] INSERT, UPDATE and DELETE. Names
//! are resolved by a stack of scopes, one for each query that is open; an inner query may see the outer ones only where
//! the feature `correlated` is allowed.
//!
//! Invariant: what is generated has one right answer. Rows under a LIMIT are ordered by all their columns (so that rows
//! that tie are the same), window functions that depend on an order have one over all columns of the tables, of which a
//! block has one where rows may be the same (which of these is the first for each of two windows is open), an
//! assignment of a joined UPDATE reads only the row that it changes.

pub mod change;
pub mod expression;
pub mod forms;
pub mod query;

use crate::dice::Dice;
use crate::schema::Schema;
use crate::tree::feature::{COMMON, Feature, Features};
use crate::tree::{Body, Class, Expr, OrderKey, Statement};

/// So many queries may stand in one another.
const DEEPEST: u32 = 3;

pub struct Generator<'a> {
    dice: Dice,
    schema: &'a Schema,
    features: Features,
    /// The innermost query is last.
    scopes: Vec<Scope>,
    /// Common tables that a FROM may use: name, columns.
    ctes: Vec<(String, Vec<(String, Class)>)>,
    names: u32,
    /// Queries that are open.
    nesting: u32,
    /// Base tables that the statement may still read: it bounds the work.
    tables_left: u32,
}

/// What a query's expressions may name.
#[derive(Default)]
struct Scope {
    columns: Vec<Visible>,
    /// Group keys, once the query is grouped and its list is drawn.
    keys: Option<Vec<Expr>>,
    /// Its groups are summed up by ROLLUP too.
    rollup: bool,
    /// Inside of an aggregate, where only columns of this query are named, and no query stands.
    in_aggregate: bool,
    /// Rows of its tables may be the same in all columns.
    twins: bool,
    /// A window function is drawn whose value depends on the order of rows.
    sorted: bool,
    /// Partition and order of the block's named window.
    window: Option<(Vec<Expr>, Vec<OrderKey>)>,
}

#[derive(Clone)]
struct Visible {
    table: String,
    name: String,
    class: Class,
}

impl Visible {
    fn expr(&self) -> Expr {
        Expr::column(&self.table, &self.name, self.class)
    }
}

/// The statement of this number. It depends on nothing else: those before it need not be drawn.
pub fn statement(schema: &Schema, seed: u64, number: u64, enabled: Features) -> Statement {
    let mut dice = Dice::new(seed, number + 1);
    let features = swarm(&mut dice, enabled);
    let mut generator = Generator {
        dice,
        schema,
        features,
        scopes: Vec::new(),
        ctes: Vec::new(),
        names: 0,
        nesting: 0,
        // Of several large tables the product is too much for a judge that waits 20 s.
        tables_left: if schema.large { 2 } else { 4 },
    };
    generator.statement()
}

/// The few features that one statement may have, of those that are switched on.
fn swarm(dice: &mut Dice, enabled: Features) -> Features {
    let mut features = Features::default();
    for feature in COMMON.iter().filter(|feature| enabled.has(**feature)) {
        if dice.chance(0.7) {
            features = features.with(*feature);
        }
    }
    let wide: Vec<Feature> = enabled.iter().filter(|feature| !COMMON.contains(feature)).collect();
    if !wide.is_empty() && dice.chance(0.7) {
        for _ in 0..dice.between(1, 3) {
            features = features.with(*dice.pick(&wide));
        }
    }
    // What needs another to be met.
    let implied = [
        (Feature::Grouping, Feature::Rollup),
        (Feature::Rollup, Feature::Group),
        (Feature::Statistics, Feature::Group),
        (Feature::BitAggregate, Feature::Group),
        (Feature::JsonAggregate, Feature::Group),
        (Feature::AnyValue, Feature::Group),
        (Feature::GroupExpression, Feature::Group),
        (Feature::ChangeWith, Feature::With),
        (Feature::NamedWindow, Feature::Window),
    ];
    for (one, other) in implied {
        if features.has(one) && enabled.has(other) {
            features = features.with(other);
        }
    }
    if features.has(Feature::Correlated) {
        let subqueries = [Feature::ScalarSubquery, Feature::InSubquery, Feature::Exists, Feature::Lateral];
        let possible: Vec<Feature> = subqueries.into_iter().filter(|feature| enabled.has(*feature)).collect();
        if !possible.is_empty() {
            features = features.with(*dice.pick(&possible));
        }
    }
    features
}

impl Generator<'_> {
    fn statement(&mut self) -> Statement {
        let changes = [
            (Feature::Insert, 4),
            (Feature::Replace, 1),
            (Feature::Update, 3),
            (Feature::Delete, 2),
            (Feature::UpdateJoin, 8),
            (Feature::DeleteJoin, 8),
        ];
        let wide = [
            Feature::UpdateJoin,
            Feature::DeleteJoin,
            Feature::Returning,
            Feature::ChangeSubquery,
            Feature::ChangeWith,
            Feature::ChangeView,
        ];
        let share = if wide.iter().any(|feature| self.allows(*feature)) { 0.7 } else { 0.25 };
        if self.dice.chance(share) {
            let features = self.features;
            let chosen = self.dice.weighted(&changes, |(f, weight)| if features.has(*f) { *weight } else { 0 });
            if let Some((chosen, _)) = chosen {
                return self.change(*chosen);
            }
        }
        let mut query = self.top_query();
        if self.allows(Feature::View) && !query.names().is_empty() {
            let names = query.names().len();
            // An ORDER BY names what the list names; MariaDB has renamed it by then.
            let columns = if query.order.is_empty() && self.dice.chance(0.3) {
                (0..names).map(|_| self.name("v")).collect()
            } else {
                Vec::new()
            };
            return Statement::View { query, columns, twice: self.dice.chance(0.3) };
        }
        if self.allows(Feature::Lock) && matches!(query.body, Body::Select(_)) {
            query.lock = *self.dice.pick(&["FOR UPDATE", "LOCK IN SHARE MODE"]);
        }
        Statement::Query(query)
    }

    fn allows(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("a query is open")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_number_gives_the_same_statement_and_every_feature_is_met() {
        let mut met: BTreeMap<Feature, u32> = BTreeMap::new();
        for seed in 0..60 {
            let schema = Schema::random(seed);
            for number in 0..50 {
                let one = statement(&schema, seed, number, Features::all());
                assert_eq!(one.to_string(), statement(&schema, seed, number, Features::all()).to_string());
                for feature in Features::of(&one).iter() {
                    *met.entry(feature).or_default() += 1;
                }
            }
        }
        let missing: Vec<&str> = Features::all().iter().filter(|f| !met.contains_key(f)).map(Feature::name).collect();
        assert!(missing.is_empty(), "never generated: {missing:?}");
    }

    #[test]
    fn what_is_switched_off_is_not_generated() {
        let narrow = COMMON.iter().fold(Features::default(), |set, f| set.with(*f));
        for seed in 0..30 {
            let schema = Schema::random(seed);
            for number in 0..30 {
                let one = statement(&schema, seed, number, narrow);
                let wide: Vec<&str> =
                    Features::of(&one).iter().filter(|f| !narrow.has(*f)).map(Feature::name).collect();
                assert!(wide.is_empty(), "{wide:?} in {one}");
            }
        }
    }
}

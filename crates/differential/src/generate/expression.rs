//! Expressions of a wanted class.

use super::forms::{AGGREGATES, BITS, BY_BYTES, CHOICES, COMPARISONS, FORMS, Form, STATISTICS};
use super::{DEEPEST, Generator, Scope};
use crate::data;
use crate::tree::feature::Feature;
use crate::tree::{Class, Expr, OrderKey};

/// Classes that a condition may compare.
const COMPARED: &[Class] = &[
    Class::Integer,
    Class::Integer,
    Class::Text,
    Class::Decimal,
    Class::Double,
    Class::Date,
    Class::DateTime,
    Class::Time,
    Class::Binary,
];

/// Pairs of different classes whose comparison has one meaning.
const MIXED: &[(Class, Class)] = &[
    (Class::Integer, Class::Decimal),
    (Class::Integer, Class::Double),
    (Class::Decimal, Class::Double),
    (Class::Date, Class::DateTime),
    (Class::Integer, Class::Text),
];

const FRAMES: &[&str] = &[
    "",
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
    "ROWS UNBOUNDED PRECEDING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
];

/// Of one key that is a number.
const RANGES: &[&str] = &[
    "RANGE BETWEEN 2 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN 1 PRECEDING AND 3 FOLLOWING",
    "RANGE BETWEEN 5 PRECEDING AND 1 PRECEDING",
    "RANGE BETWEEN CURRENT ROW AND 2 FOLLOWING",
];

impl Generator<'_> {
    /// An expression; `depth` bounds its height.
    pub(super) fn expression(&mut self, class: Class, depth: u32) -> Expr {
        if class == Class::Boolean {
            return self.condition(depth);
        }
        if depth == 0 || class == Class::Json || self.dice.chance(0.4) {
            return self.leaf(class);
        }
        if self.may_nest() && self.allows(Feature::ScalarSubquery) && self.dice.chance(0.2) {
            return self.scalar_subquery(class);
        }
        if self.dice.chance(0.2) {
            let (form, conditions) = *self.dice.pick(CHOICES);
            let arguments = conditions
                .iter()
                .map(|c| self.expression(if *c { Class::Boolean } else { class }, depth - 1))
                .collect();
            return Expr::form(form, class, arguments);
        }
        let variants = self.schema.variants;
        let fits = |form: &Form| form.result == class && !(variants && BY_BYTES.contains(&form.form));
        let form = self.dice.weighted(FORMS, |form| if fits(form) { form.weight } else { 0 });
        let Some(form) = form else { return self.leaf(class) };
        let arguments = form.arguments.iter().map(|class| self.expression(*class, depth - 1)).collect();
        Expr::form(form.form, class, arguments)
    }

    /// A column, a group key, an aggregate or a literal.
    pub(super) fn leaf(&mut self, class: Class) -> Expr {
        if let Some(scope) = self.scopes.last()
            && scope.keys.is_some()
            && !scope.in_aggregate
        {
            return self.grouped_leaf(class);
        }
        if self.dice.chance(0.78)
            && let Some(column) = self.column(class)
        {
            return column;
        }
        if self.dice.chance(0.04) {
            return Expr::literal("NULL", class);
        }
        Expr::literal(data::literal(&mut self.dice, class, self.schema.variants), class)
    }

    /// A column of the class, of this query or, where that is allowed, of one around it.
    pub(super) fn column(&mut self, class: Class) -> Option<Expr> {
        let innermost = self.scopes.last()?;
        let is_inner_only = innermost.in_aggregate;
        let of = |scope: &Scope| -> Vec<Expr> {
            scope.columns.iter().filter(|column| column.class == class).map(|column| column.expr()).collect()
        };
        let outer: Vec<Expr> = match self.scopes.split_last() {
            Some((_, outer)) if self.allows(Feature::Correlated) && !is_inner_only => {
                outer.iter().filter(|scope| scope.keys.is_none() && !scope.in_aggregate).flat_map(of).collect()
            }
            _ => Vec::new(),
        };
        let inner = of(innermost);
        let from = if !outer.is_empty() && (inner.is_empty() || self.dice.chance(0.35)) { outer } else { inner };
        if from.is_empty() { None } else { Some(self.dice.pick(&from).clone()) }
    }

    fn grouped_leaf(&mut self, class: Class) -> Expr {
        let keys = self.scopes.last().and_then(|scope| scope.keys.clone()).unwrap_or_default();
        let keys: Vec<Expr> = keys.into_iter().filter(|key| key.class() == class).collect();
        if !keys.is_empty() && self.dice.chance(0.5) {
            let key = self.dice.pick(&keys).clone();
            if self.allows(Feature::AnyValue) && self.dice.chance(0.5) {
                return Expr::form("ANY_VALUE({0})", class, vec![key]);
            }
            return key;
        }
        if self.dice.chance(0.1) {
            return Expr::literal(data::literal(&mut self.dice, class, self.schema.variants), class);
        }
        self.aggregate(class)
    }

    /// An aggregate of the class, or a literal if there is none.
    pub(super) fn aggregate(&mut self, class: Class) -> Expr {
        let wide = [
            (Feature::Statistics, Class::Double, STATISTICS),
            (Feature::BitAggregate, Class::Integer, BITS),
            (Feature::JsonAggregate, Class::Integer, &["JSON_LENGTH(JSON_ARRAYAGG({0}))"]),
        ];
        for (feature, result, forms) in wide {
            if class == result && self.allows(feature) && self.dice.chance(0.6) {
                let form = *self.dice.pick(forms);
                let argument = self.aggregated(Class::Integer);
                return Expr::form(form, class, vec![argument]);
            }
        }
        let fits = |(result, ..): &(Option<Class>, &str, Option<Class>)| result.is_none_or(|r| r == class);
        let chosen = self.dice.weighted(AGGREGATES, |a| u32::from(fits(a) && class != Class::Json));
        let Some((result, form, argument)) = chosen.copied() else {
            return Expr::literal(data::literal(&mut self.dice, class, self.schema.variants), class);
        };
        if form == "COUNT(*)" {
            return Expr::form(form, Class::Integer, Vec::new());
        }
        let wanted = match (result, argument) {
            (None, _) => class,
            (_, Some(argument)) => argument,
            (Some(_), None) => *self.dice.pick(COMPARED),
        };
        let count = if form.contains("{1}") { 2 } else { 1 };
        let arguments = (0..count).map(|_| self.aggregated(wanted)).collect();
        Expr::form(form, class, arguments)
    }

    fn aggregated(&mut self, class: Class) -> Expr {
        let before = std::mem::replace(&mut self.scope().in_aggregate, true);
        let depth = u32::from(self.dice.chance(0.4));
        let argument = self.expression(class, depth);
        self.scope().in_aggregate = before;
        argument
    }

    /// A subquery may stand here.
    pub(super) fn may_nest(&self) -> bool {
        self.nesting < DEEPEST && self.tables_left > 0 && !self.scopes.last().is_some_and(|scope| scope.in_aggregate)
    }

    /// A condition. Its leaves are comparisons.
    pub(super) fn condition(&mut self, depth: u32) -> Expr {
        if depth > 0 && self.dice.chance(0.35) {
            let form =
                *self.dice.pick(&["({0} AND {1})", "({0} AND {1})", "({0} OR {1})", "({0} XOR {1})", "(NOT {0})"]);
            let count = if form.contains("{1}") { 2 } else { 1 };
            let arguments = (0..count).map(|_| self.condition(depth - 1)).collect();
            return Expr::form(form, Class::Boolean, arguments);
        }
        if self.may_nest()
            && self.dice.chance(0.35)
            && let Some(condition) = self.subquery_condition()
        {
            return condition;
        }
        let depth = depth.saturating_sub(1);
        match self.dice.below(20) {
            0..=1 => {
                let class = self.comparable();
                let form = *self.dice.pick(&["({0} IS NULL)", "({0} IS NOT NULL)"]);
                Expr::form(form, Class::Boolean, vec![self.expression(class, depth)])
            }
            2 => {
                let form =
                    *self.dice.pick(&["({0} IS TRUE)", "({0} IS NOT TRUE)", "({0} IS FALSE)", "({0} IS UNKNOWN)"]);
                Expr::form(form, Class::Boolean, vec![self.condition(depth)])
            }
            3..=4 => {
                let form = *self.dice.pick(&[
                    "({0} LIKE 'a%')",
                    "({0} LIKE '%b%')",
                    "({0} LIKE '_b')",
                    "({0} LIKE '%')",
                    "({0} LIKE '')",
                    "({0} LIKE 'a\\_b')",
                    "({0} LIKE '1%')",
                    "({0} LIKE 'a|%%' ESCAPE '|')",
                    "({0} NOT LIKE '%a%')",
                    "({0} NOT LIKE 'ab%')",
                ]);
                Expr::form(form, Class::Boolean, vec![self.expression(Class::Text, depth)])
            }
            5 if self.dice.chance(0.4) => {
                let form = *self.dice.pick(&[
                    "({0} REGEXP '^a')",
                    "({0} REGEXP 'b$')",
                    "({0} REGEXP '[0-9]')",
                    "({0} REGEXP 'a.?b')",
                ]);
                Expr::form(form, Class::Boolean, vec![self.expression(Class::Text, depth)])
            }
            6 => {
                let (one, other) = (self.comparable(), self.comparable());
                let form = *self.dice.pick(&[
                    "(({0}, {1}) = ({2}, {3}))",
                    "(({0}, {1}) IN (({2}, {3}), ({4}, {5})))",
                    "(({0}, {1}) < ({2}, {3}))",
                ]);
                let count = if form.contains("{4}") { 6 } else { 4 };
                let arguments = (0..count).map(|i| self.expression(if i % 2 == 0 { one } else { other }, 0)).collect();
                Expr::form(form, Class::Boolean, arguments)
            }
            7 if self.dice.chance(0.6) => {
                let (one, other) = *self.dice.pick(MIXED);
                let form = COMPARISONS[self.dice.below(9)];
                let arguments = vec![self.expression(one, depth), self.expression(other, depth)];
                Expr::form(form, Class::Boolean, arguments)
            }
            _ => {
                let class = self.comparable();
                self.comparison(class, depth)
            }
        }
    }

    pub(super) fn comparison(&mut self, class: Class, depth: u32) -> Expr {
        let form = *self.dice.pick(COMPARISONS);
        let count = (0..4).filter(|i| form.contains(&format!("{{{i}}}"))).count();
        let mut arguments = vec![self.expression(class, depth)];
        for _ in 1..count {
            // Comparisons with literals are what indexes serve.
            let argument = if self.dice.chance(0.4) {
                Expr::literal(data::literal(&mut self.dice, class, self.schema.variants), class)
            } else {
                self.expression(class, depth.min(1))
            };
            arguments.push(argument);
        }
        Expr::form(form, Class::Boolean, arguments)
    }

    /// A class that the query has columns of, for most of the time.
    pub(super) fn comparable(&mut self) -> Class {
        let class = self.scopes.last().filter(|scope| !scope.columns.is_empty()).map(|scope| {
            let at = self.dice.below(scope.columns.len());
            scope.columns[at].class
        });
        match class {
            Some(class) if class != Class::Json && self.dice.chance(0.85) => class,
            _ => *self.dice.pick(COMPARED),
        }
    }

    /// A window function of the class, if there is one.
    pub(super) fn window(&mut self, class: Class) -> Option<Expr> {
        /// Its result depends on the order of rows that tie.
        const ORDERED: bool = true;
        let mut choices: Vec<(&'static str, Option<Class>, bool)> = vec![
            ("MIN({0})", Some(class), !ORDERED),
            ("MAX({0})", Some(class), !ORDERED),
            ("LAG({0})", Some(class), ORDERED),
            ("LEAD({0}, 2)", Some(class), ORDERED),
            ("FIRST_VALUE({0})", Some(class), ORDERED),
            ("LAST_VALUE({0})", Some(class), ORDERED),
            ("NTH_VALUE({0}, 2)", Some(class), ORDERED),
        ];
        match class {
            Class::Integer => choices.extend([
                ("ROW_NUMBER()", None, ORDERED),
                ("RANK()", None, !ORDERED),
                ("DENSE_RANK()", None, !ORDERED),
                ("NTILE(3)", None, ORDERED),
                ("COUNT(*)", None, !ORDERED),
                ("COUNT({0})", Some(Class::Text), !ORDERED),
                ("BIT_OR({0})", Some(Class::Integer), !ORDERED),
                ("LAG({0}, 1, 7)", Some(Class::Integer), ORDERED),
            ]),
            Class::Decimal => choices.extend([
                ("SUM({0})", Some(Class::Integer), !ORDERED),
                ("SUM({0})", Some(Class::Decimal), !ORDERED),
                ("AVG({0})", Some(Class::Integer), !ORDERED),
            ]),
            Class::Double => choices.extend([
                ("PERCENT_RANK()", None, !ORDERED),
                ("CUME_DIST()", None, !ORDERED),
                ("SUM({0})", Some(Class::Double), !ORDERED),
                ("STDDEV_POP({0})", Some(Class::Integer), !ORDERED),
                ("VAR_SAMP({0})", Some(Class::Integer), !ORDERED),
            ]),
            Class::Json | Class::Boolean => return None,
            _ => {}
        }
        // Of rows that are the same, which one is the first is decided by each window for itself.
        let is_open = self.scope().keys.is_none() && self.scope().twins && self.scope().sorted;
        if is_open {
            choices.retain(|(.., is_ordered)| !is_ordered);
        }
        let (form, argument, is_ordered) = *self.dice.pick(&choices);
        // Of a grouped block's window, a row is a group.
        let keys = self.scope().keys.clone();
        let mut arguments: Vec<Expr> = Vec::new();
        if let Some(class) = argument {
            arguments.push(if keys.is_some() { self.expression(class, 0) } else { self.aggregated(class) });
        }
        let function = Expr::form(form, class, arguments);
        let takes_frame =
            !form.ends_with("()") && !form.starts_with("L") && !form.starts_with("NTILE") || form == "COUNT(*)";
        if let Some((partition, order)) = self.scope().window.clone()
            && self.dice.chance(0.6)
        {
            let mut frame = if takes_frame && self.dice.chance(0.5) { *self.dice.pick::<&str>(FRAMES) } else { "" };
            if is_open && frame.starts_with("ROWS") {
                frame = "";
            }
            self.scope().sorted |= is_ordered || frame.starts_with("ROWS");
            return Some(Expr::Window {
                function: Box::new(function),
                partition,
                order,
                frame: frame.into(),
                named: true,
            });
        }
        let mut partition = Vec::new();
        if self.dice.chance(0.5) {
            partition.extend(self.window_column(&keys));
        }
        let is_ranking = ["RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()"].contains(&form);
        let mut order = if is_ordered { self.total_order() } else { Vec::new() };
        if !is_ordered
            && (is_ranking || self.dice.chance(0.4))
            && let Some(expr) = self.window_column(&keys)
        {
            order.push(OrderKey { expr, descending: self.dice.chance(0.3) });
        }
        let mut frame = "";
        if takes_frame && !order.is_empty() && self.dice.chance(0.6) {
            frame = *self.dice.pick::<&str>(FRAMES);
            if is_open && frame.starts_with("ROWS") {
                frame = "";
            }
            if frame.starts_with("ROWS") {
                order = self.total_order();
            }
            // A distance in the values of the one key.
            if let [OrderKey { expr, .. }] = order.as_slice()
                && !is_ordered
                && self.dice.chance(0.4)
            {
                frame = match expr.class() {
                    Class::Integer | Class::Decimal => *self.dice.pick::<&str>(RANGES),
                    Class::Date | Class::DateTime => "RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW",
                    _ => frame,
                };
            }
        }
        self.scope().sorted |= is_ordered || frame.starts_with("ROWS");
        Some(Expr::Window { function: Box::new(function), partition, order, frame: frame.into(), named: false })
    }

    /// A column that a window's partition or order may name: in a grouped block one of the keys.
    fn window_column(&mut self, keys: &Option<Vec<Expr>>) -> Option<Expr> {
        match keys {
            Some(keys) => Some(self.dice.pick(keys).clone()),
            None => {
                let class = self.comparable();
                self.column(class)
            }
        }
    }

    /// Over all columns of the query's tables: rows that tie are the same.
    pub(super) fn total_order(&mut self) -> Vec<OrderKey> {
        let exprs: Vec<Expr> = match &self.scope().keys {
            // Groups differ in their keys.
            Some(keys) => keys.clone(),
            None => self.scope().columns.iter().map(|column| by_bytes(column.expr())).collect(),
        };
        let mut keys: Vec<OrderKey> = exprs.into_iter().map(|expr| OrderKey { expr, descending: false }).collect();
        if keys.is_empty() {
            return keys;
        }
        let first = self.dice.below(keys.len());
        keys.swap(0, first);
        keys[0].descending = self.dice.chance(0.3);
        keys
    }
}

/// An expression for an order in which only what is the same ties.
pub fn by_bytes(expr: Expr) -> Expr {
    match expr.class() {
        Class::Text | Class::Binary | Class::Json => Expr::form("HEX({0})", Class::Text, vec![expr]),
        _ => expr,
    }
}

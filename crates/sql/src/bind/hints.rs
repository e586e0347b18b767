//! Optimizer hints: what each asks of its block, and warnings for those that cannot be followed.
//!
//! ```text
//! JOIN_FIXED_ORDER                     tables are read as written
//! JOIN_ORDER, JOIN_PREFIX, JOIN_SUFFIX some tables are read before others
//! INDEX, NO_INDEX                      the indexes that a table may be read by
//! JOIN_INDEX, ORDER_INDEX, GROUP_INDEX the same for conditions, for orders, for groups; and their opposites
//! NO_RANGE_OPTIMIZATION                indexes are not read by ranges and lists of values
//! MRR, NO_MRR, NO_ICP                  nothing: see below
//! INDEX_MERGE, NO_INDEX_MERGE          whether several indexes are read for a table, and which
//! SKIP_SCAN, NO_SKIP_SCAN              whether an index is read for each value of its leading columns, and which
//! MERGE, NO_MERGE                      whether a derived table, a view or a common table becomes part of the block
//! BNL, NO_BNL                          whether a table that no index reaches is kept in memory
//! HASH_JOIN, NO_HASH_JOIN              whether a table is probed by hash: always, or never
//! BKA, NO_BKA                          whether a table is looked up for many rows before it at once
//! DERIVED_CONDITION_PUSHDOWN, NO_…     whether conditions move into a derived table
//! SEMIJOIN, NO_SEMIJOIN                whether a subquery becomes a join, and by FIRSTMATCH or MATERIALIZATION
//! SUBQUERY                             a subquery stays one
//! MAX_EXECUTION_TIME, SET_VAR          of the whole statement
//! QB_NAME                              names the block, so that a hint may say @name
//! ```
//! Hints stand behind SELECT, UPDATE, DELETE, INSERT and REPLACE; those behind INSERT … SELECT count for the SELECT. A hint
//! speaks of its own block, or of one inside of it by @name. Some hints choose what is not to be chosen here, and do
//! nothing once their names have been found: rows lie in memory, so that there is no reading of them in another order
//! (MRR), and conditions are decided where the rows are in any case (NO_ICP). What MySQL knows and this server does not
//! follow is warning 1235; a mistake is 1064, an unknown table or index 3128, an unknown block 3127, a second hint of a
//! kind 3126.

use super::Binder;
use crate::expr::ColumnId;
use crate::logical::{JoinHints, Node, PathHint, PathHints, Scan};
use crate::parse::ast::{Hint, HintArgument, Hints};
use std::collections::BTreeSet;

const SYNTAX: u16 = 1064;
const NOT_YET: u16 = 1235;
const TOP_LEVEL_ONLY: u16 = 3125;
const CONFLICTING: u16 = 3126;
const UNKNOWN_BLOCK: u16 = 3127;
const UNRESOLVED: u16 = 3128;

/// Hints of MySQL that nothing here follows.
const WITHOUT_EFFECT: &[&str] = &["RESOURCE_GROUP"];

/// What hints ask of one block.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockHints {
    /// As warnings call it.
    block: String,
    pub fixed_order: bool,
    /// As a subquery it does not become a join.
    pub no_semijoin: bool,
    /// Each: the tables in their order, and whether they are first or last.
    orders: Vec<(OrderHint, Vec<String>)>,
    indexes: Vec<(String, bool, String, Vec<String>)>,
    /// MERGE (`true`) and NO_MERGE of a table; `None`: of all.
    merges: Vec<(bool, Option<String>)>,
    /// DERIVED_CONDITION_PUSHDOWN (`true`) and its opposite.
    pushdowns: Vec<(bool, Option<String>)>,
    /// BNL, BKA and HASH_JOIN: the hint, and its table; `None`: all.
    joins: Vec<(&'static str, Option<String>)>,
    /// SEMIJOIN with strategies: how the tables of the block are found.
    semijoin: Option<Strategies>,
    /// Tables and indexes that were met, in lower case.
    met: BTreeSet<String>,
}

/// The hints of one block of how its tables are joined.
const JOIN_HINTS: [&str; 6] = ["BNL", "NO_BNL", "HASH_JOIN", "NO_HASH_JOIN", "BKA", "NO_BKA"];
const PUSHDOWN: &str = "DERIVED_CONDITION_PUSHDOWN";
const NO_PUSHDOWN: &str = "NO_DERIVED_CONDITION_PUSHDOWN";
/// Strategies of MySQL for semi joins; the first two are followed.
const STRATEGIES: [&str; 4] = ["FIRSTMATCH", "MATERIALIZATION", "LOOSESCAN", "DUPSWEEDOUT"];

/// The ways that a semi join may go.
#[derive(Clone, Copy, Debug)]
struct Strategies {
    first_match: bool,
    materialization: bool,
}

/// What a hint that names indexes speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Any,
    Lookup,
    Order,
    Group,
    Merge,
    Skip,
    Range,
    /// Which rows are read first.
    RowOrder,
    /// Where conditions are decided.
    Conditions,
}

impl Way {
    /// `None`: the hint names no indexes.
    fn of(hint: &str) -> Option<Way> {
        Some(match hint {
            "NO_ICP" => Way::Conditions,
            "NO_RANGE_OPTIMIZATION" => Way::Range,
            _ => match hint.trim_start_matches("NO_") {
                "INDEX" => Way::Any,
                "JOIN_INDEX" => Way::Lookup,
                "ORDER_INDEX" => Way::Order,
                "GROUP_INDEX" => Way::Group,
                "INDEX_MERGE" => Way::Merge,
                "SKIP_SCAN" => Way::Skip,
                "MRR" => Way::RowOrder,
                _ => return None,
            },
        })
    }

    /// Where a table keeps it.
    fn place(self, hints: &mut PathHints) -> Option<&mut Option<PathHint>> {
        Some(match self {
            Way::Lookup => &mut hints.lookup,
            Way::Order => &mut hints.order,
            Way::Group => &mut hints.group,
            Way::Merge => &mut hints.merge,
            Way::Skip => &mut hints.skip,
            Way::Range => &mut hints.range,
            Way::Any | Way::RowOrder | Way::Conditions => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OrderHint {
    Order,
    Prefix,
    Suffix,
}

impl OrderHint {
    fn name(self) -> &'static str {
        match self {
            OrderHint::Order => "JOIN_ORDER",
            OrderHint::Prefix => "JOIN_PREFIX",
            OrderHint::Suffix => "JOIN_SUFFIX",
        }
    }
}

impl Binder<'_> {
    /// Takes up the hints of a block, whose frame is the innermost.
    pub(super) fn take_hints(&mut self, hints: &Hints) {
        self.blocks += 1;
        if hints.list.is_empty() && hints.wrong.is_none() && self.of_others.is_empty() {
            return;
        }
        let number = format!("select#{}", self.blocks);
        let mut block = BlockHints { block: number.clone(), ..BlockHints::default() };
        let mut names = vec![number];
        for hint in hints.list.iter().filter(|hint| hint.name == "QB_NAME") {
            match hint.arguments.as_slice() {
                [argument] if names.len() == 1 => names.push(argument.name.clone()),
                [_] => {
                    self.hints.warn(CONFLICTING, format!("Hint {} is ignored as conflicting/duplicated", text(hint)))
                }
                _ => self.hints.warn(SYNTAX, syntax(&text(hint), 1)),
            }
        }
        if let Some(name) = names.get(1) {
            block.block = name.clone();
        }
        let is_own = |name: &str| names.iter().any(|own| own.eq_ignore_ascii_case(name));
        let passed: Vec<(String, Hint)> = self.of_others.extract_if(.., |(name, _)| is_own(name)).collect();
        passed.iter().for_each(|(_, hint)| self.take_hint(hint, &mut block));
        for hint in hints.list.iter().filter(|hint| hint.name != "QB_NAME") {
            let mut of = hint.block.iter().chain(hint.arguments.iter().filter_map(|argument| argument.block.as_ref()));
            match of.find(|name| !is_own(name)) {
                // A block inside of this one perhaps.
                Some(other) => self.of_others.push((other.clone(), hint.clone())),
                None => self.take_hint(hint, &mut block),
            }
        }
        if let Some((near, line)) = &hints.wrong {
            self.hints.warn(SYNTAX, syntax(near, *line));
        }
        self.frame().hints = Some(Box::new(block));
    }

    /// Hints behind INSERT … SELECT: the next block takes them.
    pub(super) fn pass_hints(&mut self, hints: &Hints) {
        let next = format!("select#{}", self.blocks + 1);
        for hint in &hints.list {
            let of = hint.block.clone().unwrap_or_else(|| next.clone());
            self.of_others.push((of, hint.clone()));
        }
        if let Some((near, line)) = &hints.wrong {
            self.hints.warn(SYNTAX, syntax(near, *line));
        }
    }

    /// Notes the table that rows are inserted into, which a hint may name.
    pub(super) fn hint_target(&mut self, name: &str) {
        if let Some(block) = &mut self.frame().hints {
            block.met.insert(name.to_lowercase());
        }
    }

    /// Hints whose block was not met.
    pub(super) fn warn_of_unknown_blocks(&mut self) {
        for (block, hint) in std::mem::take(&mut self.of_others) {
            let message = format!("Query block name `{block}` is not found for {} hint", hint.name);
            self.hints.warn(UNKNOWN_BLOCK, message);
        }
    }

    pub(super) fn has_fixed_order(&mut self) -> bool {
        self.frame().hints.as_ref().is_some_and(|hints| hints.fixed_order)
    }

    fn take_hint(&mut self, hint: &Hint, block: &mut BlockHints) {
        let names = || hint.arguments.iter().map(|argument| argument.name.clone()).collect::<Vec<String>>();
        let duplicate = || format!("Hint {} is ignored as conflicting/duplicated", text(hint));
        match hint.name.as_str() {
            "JOIN_FIXED_ORDER" if hint.arguments.is_empty() => block.fixed_order = true,
            "JOIN_ORDER" | "JOIN_PREFIX" | "JOIN_SUFFIX" if !hint.arguments.is_empty() => {
                let kind = match hint.name.as_str() {
                    "JOIN_ORDER" => OrderHint::Order,
                    "JOIN_PREFIX" => OrderHint::Prefix,
                    _ => OrderHint::Suffix,
                };
                let again = kind != OrderHint::Order && block.orders.iter().any(|(known, _)| *known == kind);
                match again || block.fixed_order {
                    true => self.hints.warn(CONFLICTING, duplicate()),
                    false => block.orders.push((kind, names())),
                }
            }
            name if !hint.arguments.is_empty() && Way::of(name).is_some() => {
                let mut names = names();
                let table = names.remove(0);
                let use_them = !hint.name.starts_with("NO_");
                let same = |known: &(String, bool, String, Vec<String>)| {
                    known.2.eq_ignore_ascii_case(&table) && Way::of(&known.0) == Way::of(&hint.name)
                };
                match block.indexes.iter().any(same) {
                    true => self.hints.warn(CONFLICTING, duplicate()),
                    false => block.indexes.push((hint.name.clone(), use_them, table, names)),
                }
            }
            "SEMIJOIN" | "NO_SEMIJOIN" | "SUBQUERY" => self.take_subquery_hint(hint, block),
            name if let Some(known) = JOIN_HINTS.into_iter().find(|known| *known == name) => {
                let tables: Vec<Option<String>> = match hint.arguments.is_empty() {
                    true => vec![None],
                    false => names().into_iter().map(Some).collect(),
                };
                for table in tables {
                    let same = |(other, of): &(&str, Option<String>)| {
                        other.trim_start_matches("NO_") == known.trim_start_matches("NO_") && *of == table
                    };
                    match block.joins.iter().any(same) {
                        true => self.hints.warn(CONFLICTING, duplicate()),
                        false => block.joins.push((known, table)),
                    }
                }
            }
            "MERGE" | "NO_MERGE" => {
                let merge = hint.name == "MERGE";
                match hint.arguments.is_empty() {
                    true => block.merges.push((merge, None)),
                    false => block.merges.extend(names().into_iter().map(|name| (merge, Some(name)))),
                }
            }
            PUSHDOWN | NO_PUSHDOWN => {
                let moves = hint.name == PUSHDOWN;
                match hint.arguments.is_empty() {
                    true => block.pushdowns.push((moves, None)),
                    false => block.pushdowns.extend(names().into_iter().map(|name| (moves, Some(name)))),
                }
            }
            "MAX_EXECUTION_TIME" => match hint.arguments.as_slice() {
                [HintArgument { name, value: None, .. }] if name.parse::<u64>().is_ok() => {
                    if self.blocks > 1 || !self.is_query {
                        let text =
                            "MAX_EXECUTION_TIME hint is supported by top-level standalone SELECT statements only";
                        self.hints.warn(TOP_LEVEL_ONLY, text.to_string());
                    } else if self.hints.max_execution_time.is_some() {
                        self.hints.warn(CONFLICTING, duplicate());
                    } else {
                        self.hints.max_execution_time = name.parse().ok();
                    }
                }
                _ => self.hints.warn(SYNTAX, syntax(&text(hint), 1)),
            },
            "SET_VAR" => match hint.arguments.as_slice() {
                [HintArgument { name, value: Some(value), .. }] => {
                    let known = self.hints.variables.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
                    match known {
                        true => self.hints.warn(CONFLICTING, duplicate()),
                        false => {
                            self.switch_by_hint(name, value);
                            self.hints.variables.push((name.clone(), value.clone()));
                        }
                    }
                }
                _ => self.hints.warn(SYNTAX, syntax(&text(hint), 1)),
            },
            name if WITHOUT_EFFECT.contains(&name) => {
                let text = format!("This version of MySQL doesn't yet support 'the hint {name}'");
                self.hints.warn(NOT_YET, text);
            }
            _ => self.hints.warn(SYNTAX, syntax(&text(hint), 1)),
        }
    }

    /// How a subquery is run: as a join, by which strategies, or as a subquery.
    fn take_subquery_hint(&mut self, hint: &Hint, block: &mut BlockHints) {
        if block.semijoin.is_some() || block.no_semijoin {
            let message = format!("Hint {} is ignored as conflicting/duplicated", text(hint));
            return self.hints.warn(CONFLICTING, message);
        }
        let known: &[&str] = if hint.name == "SUBQUERY" { &["INTOEXISTS", "MATERIALIZATION"] } else { &STRATEGIES };
        let named = |strategy: &str| hint.arguments.iter().any(|of| of.name.eq_ignore_ascii_case(strategy));
        let all_known = hint.arguments.iter().all(|of| known.iter().any(|name| name.eq_ignore_ascii_case(&of.name)));
        let one = hint.name == "SUBQUERY" && hint.arguments.len() != 1;
        if !all_known || one {
            return self.hints.warn(SYNTAX, syntax(&text(hint), 1));
        }
        match hint.name.as_str() {
            "SUBQUERY" => block.no_semijoin = true,
            _ if hint.arguments.is_empty() => block.no_semijoin = hint.name == "NO_SEMIJOIN",
            name => {
                let may = |strategy: &str| named(strategy) == (name == "SEMIJOIN");
                let (first_match, materialization) = (may(STRATEGIES[0]), may(STRATEGIES[1]));
                match first_match || materialization {
                    true => block.semijoin = Some(Strategies { first_match, materialization }),
                    // Of the strategies that are left none is here.
                    false if name == "NO_SEMIJOIN" => block.no_semijoin = true,
                    false => self.hints.warn(NOT_YET, format!("{} has no effect here", text(hint))),
                }
            }
        }
    }

    /// SET_VAR of optimizer_switch counts for the plan itself; all other variables are set when the plan is run, which warns
    /// of a wrong value too.
    fn switch_by_hint(&mut self, name: &str, value: &str) {
        if !name.eq_ignore_ascii_case("optimizer_switch") {
            return;
        }
        if let Ok(switches) = self.switches.changed(value, self.context.usual_switches)
            && !switches.hypergraph()
        {
            self.switches = switches;
            self.hints.by_global |= value.to_ascii_lowercase().contains("default");
        }
    }

    /// The indexes that hints leave a table of the innermost block.
    pub(super) fn hint_indexes(&mut self, scan: &mut Scan) {
        let Some(mut block) = self.frame().hints.take() else { return };
        let schema = scan.schema().clone();
        for (hint, use_them, table, names) in &block.indexes {
            if !table.eq_ignore_ascii_case(&scan.alias) {
                continue;
            }
            block.met.insert(table.to_lowercase());
            let mut positions = Vec::new();
            for name in names {
                let found = schema.indexes.iter().position(|index| index.name.eq_ignore_ascii_case(name));
                match found.filter(|&at| !(at == 0 && schema.hidden_key)) {
                    Some(at) => positions.push(at),
                    None => {
                        let message = format!("Unresolved name `{table}`@`{}` `{name}` for {hint} hint", block.block);
                        self.hints.warn(UNRESOLVED, message);
                    }
                }
            }
            if positions.is_empty() && !names.is_empty() {
                continue;
            }
            let way = Way::of(hint).expect("only such hints are kept");
            if way != Way::Any {
                if let Some(place) = way.place(&mut scan.path_hints) {
                    *place = Some(PathHint { wanted: *use_them, indexes: positions });
                }
                continue;
            }
            let all = || (0..schema.indexes.len()).collect::<Vec<usize>>();
            // They take the place of USE and IGNORE INDEX.
            scan.allowed_indexes = Some(match (use_them, names.is_empty()) {
                (true, true) => all(),
                (true, false) => positions,
                (false, true) => vec![],
                (false, false) => all().into_iter().filter(|at| !positions.contains(at)).collect(),
            });
            scan.force_index = *use_them;
        }
        scan.join_hints = block.join_hints(&scan.alias);
        self.frame().hints = Some(block);
    }

    /// Whether a derived table of the innermost block stays a table of its own; `None`: no hint speaks of it.
    pub(super) fn hint_merge(&mut self, alias: &str) -> Option<bool> {
        let block = self.frame().hints.as_mut()?;
        let of = |name: &Option<String>| name.as_ref().is_none_or(|name| name.eq_ignore_ascii_case(alias));
        let found = block.merges.iter().rev().find(|(_, name)| of(name)).map(|(merge, _)| !merge);
        if found.is_some() {
            block.met.insert(alias.to_lowercase());
        }
        found
    }

    /// Whether conditions move into a derived table of the innermost block; `None`: no hint speaks of it.
    pub(super) fn hint_pushdown(&mut self, alias: &str) -> Option<bool> {
        let block = self.frame().hints.as_mut()?;
        let of = |name: &Option<String>| name.as_ref().is_none_or(|name| name.eq_ignore_ascii_case(alias));
        let found = block.pushdowns.iter().rev().find(|(_, name)| of(name)).map(|(moves, _)| *moves);
        if found.is_some() {
            block.met.insert(alias.to_lowercase());
        }
        found
    }

    /// The order that hints ask of the tables of the innermost block; FROM is bound. Tables that are not there: warning 3128.
    pub(super) fn hint_order(&mut self, node: &mut Node) {
        let Some(block) = self.frame().hints.clone() else { return };
        let tables: Vec<(String, Option<ColumnId>)> = self
            .frame()
            .tables
            .iter()
            .map(|table| (table.alias.clone(), table.columns.first().map(|(_, id)| *id)))
            .collect();
        let find = |name: &str| tables.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name));
        let unresolved = |name: &str, hint: &str| format!("Unresolved name `{name}`@`{}` for {hint} hint", block.block);
        for (kind, names) in &block.orders {
            if let Some(name) = names.iter().find(|name| find(name).is_none()) {
                self.hints.warn(UNRESOLVED, unresolved(name, kind.name()));
                continue;
            }
            let named: Vec<ColumnId> = names.iter().filter_map(|name| find(name)?.1).collect();
            let others = tables.iter().filter_map(|(_, id)| *id).filter(|id| !named.contains(id));
            let others: Vec<ColumnId> = others.collect();
            let mut pairs: Vec<(ColumnId, ColumnId)> = named.windows(2).map(|pair| (pair[0], pair[1])).collect();
            match kind {
                OrderHint::Order => {}
                OrderHint::Prefix => {
                    pairs.extend(others.iter().flat_map(|after| named.last().map(|last| (*last, *after))))
                }
                OrderHint::Suffix => {
                    pairs.extend(others.iter().flat_map(|before| named.first().map(|first| (*before, *first))))
                }
            }
            follow(node, &pairs);
        }
        for (hint, _, table, _) in &block.indexes {
            if !block.met.contains(&table.to_lowercase()) {
                self.hints.warn(UNRESOLVED, unresolved(table, hint));
            }
        }
        for (hint, table) in &block.joins {
            if let Some(name) = table.as_ref().filter(|name| find(name).is_none()) {
                self.hints.warn(UNRESOLVED, unresolved(name, hint));
            }
        }
        let merges = block.merges.iter().map(|(on, name)| (if *on { "MERGE" } else { "NO_MERGE" }, name));
        let pushdowns = block.pushdowns.iter().map(|(on, name)| (if *on { PUSHDOWN } else { NO_PUSHDOWN }, name));
        for (hint, name) in merges.chain(pushdowns) {
            if let Some(name) = name
                && !block.met.contains(&name.to_lowercase())
            {
                self.hints.warn(UNRESOLVED, unresolved(name, hint));
            }
        }
    }
}

impl BlockHints {
    /// What is said of a table; what names it wins.
    fn join_hints(&self, alias: &str) -> JoinHints {
        let mut out = JoinHints::default();
        for named in [false, true] {
            let of = |table: &Option<String>| match table {
                Some(table) => named && table.eq_ignore_ascii_case(alias),
                None => !named,
            };
            for (hint, _) in self.joins.iter().filter(|(_, table)| of(table)) {
                match *hint {
                    "BNL" => out.buffer = Some(true),
                    "NO_BNL" => out.buffer = Some(false),
                    "BKA" => out.batch = Some(true),
                    "NO_BKA" => out.batch = Some(false),
                    "HASH_JOIN" => out.hash = Some(true),
                    _ => out.hash = Some(false),
                }
            }
        }
        out.first_match = self.semijoin.map(|strategies| strategies.first_match);
        out.materialization = self.semijoin.map(|strategies| strategies.materialization);
        out
    }
}

/// Notes at each table those that are to be read before it.
fn follow(node: &mut Node, pairs: &[(ColumnId, ColumnId)]) {
    match node {
        Node::Scan(scan) => {
            for (before, after) in pairs {
                if scan.columns.contains(after) && !scan.follows.contains(before) {
                    scan.follows.push(*before);
                }
            }
        }
        Node::Join(join) => crate::stack::grow(|| {
            follow(&mut join.left, pairs);
            follow(&mut join.right, pairs);
        }),
        _ => {}
    }
}

/// As warnings show a hint.
fn text(hint: &Hint) -> String {
    let argument = |argument: &HintArgument| match &argument.value {
        Some(value) => format!("{}='{value}'", argument.name),
        None if argument.name.parse::<f64>().is_ok() => argument.name.clone(),
        None => format!("`{}`", argument.name),
    };
    format!("{}({})", hint.name, hint.arguments.iter().map(argument).collect::<Vec<String>>().join(","))
}

fn syntax(near: &str, line: usize) -> String {
    format!("Optimizer hint syntax error near '{near}' at line {line}")
}

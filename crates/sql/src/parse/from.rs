//! FROM: tables, subqueries and joins.
//!
//! A join takes what stands left of it and, on its right, everything up to its own condition: `a JOIN b JOIN c ON x ON y` is
//! `a JOIN (b JOIN c ON x) ON y`. A join without a condition (only inner ones may have none) binds its neighbours first:
//! `a JOIN b JOIN c ON x` is `(a JOIN b) JOIN c ON x`. So the right side is read greedily, and when no condition
//! follows, the left side becomes the leftmost leaf of what was read ([`graft`]); this is what MySQL's grammar does. A NATURAL join has
//! a table on its right, never a join.
//!
//! Parentheses around joins leave no node, `(a, b)` is an inner join without condition. How many joins there
//! may be is bounded ([`MAX_JOINS`]), and so are the levels of parentheses.

use super::ast::{
    IndexHint, IndexHintAction, IndexHintScope, Join, JoinCondition, JoinKind, Query, TableFactor, TableName,
    TableReference,
};
use super::cursor::{Parser, Result, too_deep};
use super::lexer::Kind;
use super::reserved::is_reserved;
use rauk_types::MysqlError;
use rauk_types::error::codes;

/// How many joins may follow each other, and how many commas a statement may have between tables in parentheses.
const MAX_JOINS: usize = 500;

/// What stands in parentheses of FROM.
enum QueryOrTables {
    Query(Query),
    Tables(TableReference),
}

/// A table reference and how many joins are on its left edge, outside of parentheses.
struct Joined {
    tree: TableReference,
    edge: usize,
}

fn join(kind: JoinKind, left: TableReference, right: TableReference, condition: JoinCondition) -> TableReference {
    TableReference::Join(Box::new(Join { kind, left, right, condition }))
}

/// Joins `left` with the leftmost table of `right`, without a condition.
fn graft(left: TableReference, kind: JoinKind, mut right: Joined) -> Joined {
    let mut leaf = &mut right.tree;
    for _ in 0..right.edge {
        let TableReference::Join(node) = leaf else { unreachable!("the edge counts joins") };
        leaf = &mut node.left;
    }
    // Something has to stand there while the leaf moves.
    let nothing = TableReference::Table(TableFactor {
        name: TableName { database: None, name: String::new() },
        alias: None,
        partitions: vec![],
        hints: vec![],
    });
    let table = std::mem::replace(leaf, nothing);
    *leaf = join(kind, left, table, JoinCondition::None);
    Joined { tree: right.tree, edge: right.edge + 1 }
}

impl Parser<'_> {
    /// What stands between commas of FROM.
    pub fn table_reference(&mut self) -> Result<TableReference> {
        let first = self.table_factor()?;
        self.joins_behind(first)
    }

    /// The joins of a reference whose first table has been read.
    fn joins_behind(&mut self, first: TableReference) -> Result<TableReference> {
        let mut joins = 0;
        self.joins(first, &mut joins).map(|joined| joined.tree)
    }

    fn joins(&mut self, first: TableReference, count: &mut usize) -> Result<Joined> {
        let mut left = Joined { tree: first, edge: 0 };
        while let Some((kind, natural)) = self.join_operator()? {
            *count += 1;
            if *count > MAX_JOINS {
                return Err(too_deep());
            }
            let table = self.table_factor()?;
            if natural {
                left = Joined { tree: join(kind, left.tree, table, JoinCondition::Natural), edge: left.edge + 1 };
                self.taller(1)?;
                continue;
            }
            let right = self.nested(|p| p.joins(table, count))?;
            left = match self.join_condition()? {
                JoinCondition::None if matches!(kind, JoinKind::Left | JoinKind::Right) => return self.fail(),
                JoinCondition::None => {
                    let edge = left.edge;
                    let joined = graft(left.tree, kind, right);
                    Joined { edge: joined.edge + edge, ..joined }
                }
                condition => Joined { tree: join(kind, left.tree, right.tree, condition), edge: left.edge + 1 },
            };
            self.taller(1)?;
        }
        Ok(left)
    }

    /// The kind of the join that begins here, and whether it is NATURAL.
    fn join_operator(&mut self) -> Result<Option<(JoinKind, bool)>> {
        let natural = self.accept_kw("NATURAL");
        let kind = match self.accept_any_kw(&["JOIN", "INNER", "LEFT", "RIGHT"]) {
            Some("JOIN") => return Ok(Some((JoinKind::Inner, natural))),
            Some("INNER") => JoinKind::Inner,
            Some(side) => {
                self.accept_kw("OUTER");
                if side == "LEFT" { JoinKind::Left } else { JoinKind::Right }
            }
            None if natural => return self.fail(),
            None if self.accept_kw("STRAIGHT_JOIN") => return Ok(Some((JoinKind::Straight, false))),
            None if self.accept_kw("CROSS") => JoinKind::Inner,
            None => return Ok(None),
        };
        self.expect_kw("JOIN")?;
        Ok(Some((kind, natural)))
    }

    fn join_condition(&mut self) -> Result<JoinCondition> {
        if self.accept_kw("ON") {
            return self.expr().map(JoinCondition::On);
        }
        if self.accept_kw("USING") { self.column_list().map(JoinCondition::Using) } else { Ok(JoinCondition::None) }
    }

    fn table_factor(&mut self) -> Result<TableReference> {
        let lateral = self.accept_kw("LATERAL");
        if self.kind() == Kind::LParen {
            return match self.nested(|p| p.parenthesized(Self::query_or_tables))? {
                QueryOrTables::Query(query) => self.derived(lateral, query),
                QueryOrTables::Tables(_) if lateral => self.fail(),
                QueryOrTables::Tables(tables) => Ok(tables),
            };
        }
        if lateral {
            return self.fail();
        }
        if self.is_kw("JSON_TABLE") && self.kind_at(1) == Kind::LParen {
            return self.json_table();
        }
        // `{ OJ a LEFT JOIN b ON … }`
        if self.kind() == Kind::LBrace && self.is_kw_at(1, "OJ") {
            self.advance();
            self.advance();
            let inner = self.nested(Self::table_reference)?;
            self.expect(Kind::RBrace)?;
            return Ok(inner);
        }
        let name = self.table_name()?;
        let partitions = self.partitions()?;
        let alias = self.table_alias()?;
        let hints = self.index_hints()?;
        Ok(TableReference::Table(TableFactor { name, alias, partitions, hints }))
    }

    /// Behind `(`: a query, or tables. Parentheses that open here may belong to either (`((SELECT 1) UNION …)`, `((SELECT 1) AS a JOIN b)`).
    fn query_or_tables(&mut self) -> Result<QueryOrTables> {
        let first = if !self.is_query_start() {
            self.table_factor()?
        } else if self.kind() != Kind::LParen {
            return self.subquery().map(QueryOrTables::Query);
        } else {
            self.advance();
            let inner = self.nested(Self::query_or_tables)?;
            self.expect(Kind::RParen)?;
            match inner {
                QueryOrTables::Query(query) if self.goes_on_as_query() => {
                    return self.subquery_from(query).map(QueryOrTables::Query);
                }
                QueryOrTables::Query(query) => self.derived(false, query)?,
                QueryOrTables::Tables(tables) => tables,
            }
        };
        let mut tables = self.joins_behind(first)?;
        while self.accept(Kind::Comma) {
            self.tables_in_parentheses += 1;
            if self.tables_in_parentheses > MAX_JOINS {
                return Err(too_deep());
            }
            let next = self.table_reference()?;
            tables = join(JoinKind::Inner, tables, next, JoinCondition::None);
            self.taller(1)?;
        }
        Ok(QueryOrTables::Tables(tables))
    }

    /// `[AS] alias [(columns)]` behind a subquery.
    fn derived(&mut self, lateral: bool, query: Query) -> Result<TableReference> {
        let Some(alias) = self.table_alias()? else {
            return Err(MysqlError::new(codes::DERIVED_MUST_HAVE_ALIAS, "Every derived table must have its own alias"));
        };
        let columns = if self.kind() == Kind::LParen { self.column_list()? } else { vec![] };
        Ok(TableReference::Derived { lateral, query: Box::new(query), alias, columns })
    }

    /// `PARTITION (a, b)`, if it stands here.
    pub fn partitions(&mut self) -> Result<Vec<String>> {
        if !self.is_kw("PARTITION") || self.kind_at(1) != Kind::LParen {
            return Ok(vec![]);
        }
        self.advance();
        self.column_list()
    }

    /// `[AS] alias`. In statements with RETURNING, that word is no alias.
    pub fn table_alias(&mut self) -> Result<Option<String>> {
        let explicit = self.accept_kw("AS");
        if explicit || (self.is_name() && !(self.may_return && self.is_kw("RETURNING"))) {
            return self.name().map(Some);
        }
        Ok(None)
    }

    fn index_hints(&mut self) -> Result<Vec<IndexHint>> {
        let mut hints = Vec::new();
        loop {
            let action = match self.accept_any_kw(&["USE", "FORCE", "IGNORE"]) {
                Some("USE") => IndexHintAction::Use,
                Some("FORCE") => IndexHintAction::Force,
                Some(_) => IndexHintAction::Ignore,
                None => return Ok(hints),
            };
            if self.accept_any_kw(&["INDEX", "KEY"]).is_none() {
                return self.fail();
            }
            let scope = if self.accept_kw("FOR") {
                Some(match () {
                    () if self.accept_kw("JOIN") => IndexHintScope::Join,
                    () if self.accept_kws(&["ORDER", "BY"]) => IndexHintScope::OrderBy,
                    () if self.accept_kws(&["GROUP", "BY"]) => IndexHintScope::GroupBy,
                    () => return self.fail(),
                })
            } else {
                None
            };
            let indexes = self.parenthesized(|p| {
                // `USE INDEX ()` is none at all; the others need one.
                if action == IndexHintAction::Use && p.kind() == Kind::RParen {
                    return Ok(vec![]);
                }
                p.comma_separated(|p| {
                    let token = p.peek();
                    // PRIMARY is the one reserved word that names an index.
                    if token.kind == Kind::Word && is_reserved(p.text(token)) && !p.is_kw("PRIMARY") {
                        return p.fail();
                    }
                    p.any_word()
                })
            })?;
            hints.push(IndexHint { action, scope, indexes });
            // Hints may be separated by commas, but so are tables.
            if self.kind() == Kind::Comma && ["USE", "FORCE", "IGNORE"].iter().any(|k| self.is_kw_at(1, k)) {
                self.advance();
            }
        }
    }
}

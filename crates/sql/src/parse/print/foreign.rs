//! Trees printed for another server: MariaDB, or MySQL itself.
//!
//! Names of collations are those of the other server ([`Foreign::collation`]), and `->` becomes the functions that it
//! stands for, where the other server has no such operator. What cannot be printed otherwise stays as it is and is
//! noted in [`Met`]: which functions, collations and [`Construct`]s the tree has, so that the caller, who knows what
//! the other server lacks, can leave the view, the CHECK or the default out. The tables that a query reads are noted
//! too, by their names as they are written; a common table is one of them.
//!
//! The printer visits every node, and it is the only code that does; noting on the way is why there is no second walk
//! over the trees. Left out: whether an expression means the same on the other server.

use super::{Print, Printer};
use crate::parse::ast::{Arguments, Call, CastType, Expr, Frame, FrameBound, FrameUnit, LockClause, LockStrength};
use crate::parse::ast::{Introducer, NullTreatment, TableName};
use crate::parse::lexer::Mode;
use std::collections::BTreeSet;
use std::fmt;

/// How another server differs.
pub struct Foreign<'a> {
    /// The name of a collation there; `None`: the same.
    pub collation: &'a dyn Fn(&str) -> Option<String>,
    /// `->` and `->>` are printed as JSON_EXTRACT and JSON_UNQUOTE.
    pub json_functions: bool,
    /// Texts come without `_utf8mb4` before them, which a session in utf8mb4 reads alike: MariaDB cannot read back its
    /// own definition of a generated column, default or CHECK where such a text has a quote in it.
    pub bare_texts: bool,
}

/// Grammar that not every server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Construct {
    MemberOf,
    /// JSON_VALUE with RETURNING, ON EMPTY or ON ERROR.
    JsonValueClauses,
    CastToJson,
    CastToYear,
    CastToGeometry,
    CastToArray,
    /// `ROW(a)`: a row of one value.
    RowOfOne,
    Lateral,
    /// `(SELECT …) alias (columns)`
    DerivedColumns,
    /// `VALUES ROW(…)`
    ValuesRows,
    /// `TABLE name`
    WholeTable,
    /// FOR SHARE, and `OF table` behind it and FOR UPDATE.
    LockOptions,
    IgnoreNulls,
    RespectNulls,
    FromLast,
    /// LAG and LEAD with a default.
    LagDefault,
    /// RANGE with an INTERVAL.
    RangeInterval,
}

impl Construct {
    /// As a message names it.
    pub fn text(self) -> &'static str {
        match self {
            Construct::MemberOf => "MEMBER OF",
            Construct::JsonValueClauses => "JSON_VALUE with RETURNING, ON EMPTY or ON ERROR",
            Construct::CastToJson => "CAST to JSON",
            Construct::CastToYear => "CAST to YEAR",
            Construct::CastToGeometry => "CAST to a spatial type",
            Construct::CastToArray => "CAST to an ARRAY",
            Construct::RowOfOne => "ROW of one value",
            Construct::Lateral => "LATERAL",
            Construct::DerivedColumns => "derived table with a list of columns",
            Construct::ValuesRows => "VALUES ROW(…)",
            Construct::WholeTable => "TABLE as a query",
            Construct::LockOptions => "FOR SHARE and no OF behind FOR UPDATE",
            Construct::IgnoreNulls => "IGNORE NULLS",
            Construct::RespectNulls => "RESPECT NULLS",
            Construct::FromLast => "FROM LAST",
            Construct::LagDefault => "default of LAG and LEAD",
            Construct::RangeInterval => "frame RANGE … INTERVAL",
        }
    }
}

/// What a tree has that another server may lack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// Database, where one is written, and name.
    pub tables: BTreeSet<(Option<String>, String)>,
    /// In upper case.
    pub functions: BTreeSet<String>,
    pub collations: BTreeSet<String>,
    pub constructs: BTreeSet<Construct>,
}

/// What the printer carries for [`for_server`].
pub(super) struct Abroad<'w> {
    rules: &'w Foreign<'w>,
    met: Met,
}

/// The text for the other server, and what is in it.
pub fn for_server<T: Print>(tree: &T, rules: &Foreign<'_>) -> (String, Met) {
    let mut text = String::new();
    let abroad = Some(Abroad { rules, met: Met::default() });
    let mut printer = Printer { abroad, ..Printer::new(&mut text, Mode::default()) };
    tree.print(&mut printer).expect("a string takes all that is written");
    let met = printer.abroad.take().map(|abroad| abroad.met).unwrap_or_default();
    (text, met)
}

impl Printer<'_> {
    fn meets(&mut self, construct: Construct) {
        if let Some(abroad) = &mut self.abroad {
            abroad.met.constructs.insert(construct);
        }
    }

    /// What is noted of a construct, if it is one.
    pub(super) fn meets_if(&mut self, is_one: bool, construct: Construct) {
        if is_one {
            self.meets(construct);
        }
    }

    pub(super) fn meets_table(&mut self, table: &TableName) {
        if let Some(abroad) = &mut self.abroad {
            abroad.met.tables.insert((table.database.clone(), table.name.clone()));
        }
    }

    pub(super) fn meets_call(&mut self, call: &Call) {
        let Some(abroad) = &mut self.abroad else { return };
        let name = call.name.to_ascii_uppercase();
        let has_default = matches!(name.as_str(), "LAG" | "LEAD")
            && matches!(&call.arguments, Arguments::List { items, .. } if items.len() > 2);
        abroad.met.functions.insert(name);
        self.meets_if(has_default, Construct::LagDefault);
        self.meets_if(call.from_last, Construct::FromLast);
        self.meets_if(call.nulls == Some(NullTreatment::Ignore), Construct::IgnoreNulls);
        self.meets_if(call.nulls == Some(NullTreatment::Respect), Construct::RespectNulls);
    }

    pub(super) fn meets_cast(&mut self, target: &CastType) {
        match target {
            CastType::Json => self.meets(Construct::CastToJson),
            CastType::Year => self.meets(Construct::CastToYear),
            CastType::Geometry(_) => self.meets(Construct::CastToGeometry),
            CastType::Array(_) => self.meets(Construct::CastToArray),
            _ => {}
        }
    }

    pub(super) fn meets_lock(&mut self, lock: &LockClause) {
        let is_one = lock.strength == LockStrength::Share || !lock.of.is_empty();
        self.meets_if(is_one, Construct::LockOptions);
    }

    pub(super) fn meets_frame(&mut self, frame: &Frame) {
        let has_interval = |bound: &FrameBound| match bound {
            FrameBound::Preceding(distance) | FrameBound::Following(distance) => {
                matches!(distance, Expr::Interval { .. })
            }
            _ => false,
        };
        let is_one = frame.unit == FrameUnit::Range
            && (has_interval(&frame.start) || frame.end.as_ref().is_some_and(has_interval));
        self.meets_if(is_one, Construct::RangeInterval);
    }

    /// Whether `->` and `->>` are printed as functions.
    pub(super) fn has_json_functions(&self) -> bool {
        self.abroad.as_ref().is_some_and(|abroad| abroad.rules.json_functions)
    }

    /// Whether the character set of a text goes without saying.
    pub(super) fn is_bare(&self, introducer: &Introducer) -> bool {
        let is_utf8 = matches!(introducer, Introducer::Charset(name) if name == "utf8mb4");
        is_utf8 && self.abroad.as_ref().is_some_and(|abroad| abroad.rules.bare_texts)
    }

    /// The name of a collation, as the server that reads it calls it.
    pub(super) fn collation(&mut self, name: &str) -> fmt::Result {
        let Some(abroad) = &mut self.abroad else { return self.charset(name) };
        abroad.met.collations.insert(name.to_string());
        match (abroad.rules.collation)(name) {
            Some(there) => self.charset(&there),
            None => self.charset(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Statement, parse, parse_expression};

    fn there(name: &str) -> Option<String> {
        (name == "utf8mb4_0900_ai_ci").then(|| "utf8mb4_unicode_520_ci".to_string())
    }

    fn rules() -> Foreign<'static> {
        Foreign { collation: &there, json_functions: true, bare_texts: true }
    }

    fn expression(sql: &str) -> (String, Met) {
        for_server(&parse_expression(sql, Mode::default()).expect("an expression"), &rules())
    }

    #[test]
    fn names_of_collations_change_and_texts_do_not() {
        let (text, met) = expression("'x collate utf8mb4_0900_ai_ci' = a COLLATE utf8mb4_0900_ai_ci");
        assert_eq!(text, "('x collate utf8mb4_0900_ai_ci' = (`a` collate utf8mb4_unicode_520_ci))");
        assert_eq!(met.collations.into_iter().collect::<Vec<_>>(), ["utf8mb4_0900_ai_ci"]);
        let (text, _) = expression("a COLLATE utf8mb4_bin");
        assert_eq!(text, "(`a` collate utf8mb4_bin)");
        assert_eq!(expression("_utf8mb4'it''s'").0, "'it''s'");
        assert_eq!(expression("_latin1'x'").0, "_latin1'x'");
    }

    #[test]
    fn what_a_server_may_lack_is_noted_at_any_depth() {
        let (text, met) = expression("j->>'$.a' = (SELECT lower(x) FROM d.t WHERE 1 MEMBER OF (j->'$.b'))");
        assert!(text.starts_with("(json_unquote(json_extract(`j`,'$.a')) = (select lower(`x`)"), "{text}");
        assert!(text.contains("json_extract(`j`,'$.b')") && !text.contains("->"), "{text}");
        assert_eq!(met.tables.into_iter().collect::<Vec<_>>(), [(Some("d".to_string()), "t".to_string())]);
        assert!(
            met.functions.contains("LOWER") && met.constructs.contains(&Construct::MemberOf),
            "{:?}",
            met.functions
        );
        let query = "SELECT LAG(a, 1, 0) OVER (), CAST(a AS JSON) FROM u, LATERAL (SELECT 1) v(x) FOR SHARE";
        let tree = parse(query, Mode::default()).expect("a query").statement;
        let Statement::Query(query) = &*tree else { panic!("{tree:?}") };
        let (_, met) = for_server(&**query, &rules());
        for one in [
            Construct::LagDefault,
            Construct::CastToJson,
            Construct::Lateral,
            Construct::DerivedColumns,
            Construct::LockOptions,
        ] {
            assert!(met.constructs.contains(&one), "{one:?}: {:?}", met.constructs);
        }
    }

    #[test]
    fn partitions_read_back_as_the_same_tree() {
        for clause in [
            "KEY ALGORITHM = 2 (a) PARTITIONS 3",
            "LINEAR HASH ((a + 1)) PARTITIONS 4",
            "RANGE (a) (PARTITION p0 VALUES LESS THAN (10) COMMENT = 'it''s', PARTITION `p ``1` VALUES LESS THAN MAXVALUE)",
            "RANGE COLUMNS (a, b) (PARTITION p0 VALUES LESS THAN (1, 'x'), PARTITION p1 VALUES LESS THAN (MAXVALUE, MAXVALUE))",
            "LIST (a) (PARTITION p0 VALUES IN (1, NULL) ENGINE = InnoDB, PARTITION p1 DEFAULT)",
            "LIST COLUMNS (a, b) (PARTITION p0 VALUES IN ((1, 'x'), (2, 'y')))",
            "RANGE (a) SUBPARTITION BY HASH (b) SUBPARTITIONS 2 (PARTITION p0 VALUES LESS THAN (5))",
            "RANGE (a) SUBPARTITION BY KEY (b) (PARTITION p0 VALUES LESS THAN (5) (SUBPARTITION s0, SUBPARTITION s1 MAX_ROWS = 7))",
        ] {
            let of = |clause: &str| {
                let text = format!("CREATE TABLE t (a INT, b INT) PARTITION BY {clause}");
                let tree = parse(&text, Mode::default()).unwrap_or_else(|e| panic!("{text}: {e:?}")).statement;
                let Statement::CreateTable(table) = &*tree else { panic!("{tree:?}") };
                (**table.partition_by.as_ref().expect("a clause")).clone()
            };
            let tree = of(clause);
            let printed = tree.to_string();
            assert_eq!(of(printed.strip_prefix("PARTITION BY ").expect("its beginning")), tree, "{printed}");
        }
    }
}

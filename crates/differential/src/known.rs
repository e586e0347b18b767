//! Differences that are known: MariaDB is not MySQL 8 there, or SQL leaves the answer open.
//!
//! Each kind is a predicate over the statement and both answers, as narrow as it can be, with the page of a manual that
//! says why. There are at most forty: a list that grows beyond is a judge that looks away.

use crate::compare::{self, Category};
use crate::data;
use crate::run::Answers;
use crate::run::outcome::{Family, Outcome};
use crate::tree::feature::{Feature, Features};
use crate::tree::visit::{Node, walk};
use crate::tree::{Expr, Statement};

pub struct Kind {
    pub name: &'static str,
    pub manual: &'static str,
    pub holds: fn(&Evidence<'_>) -> bool,
}

/// What a predicate looks at.
pub struct Evidence<'a> {
    pub statement: &'a Statement,
    pub text: &'a str,
    pub features: Features,
    pub category: Category,
    pub answers: &'a Answers,
}

pub const MOST: usize = 40;

pub const KINDS: &[Kind] = &[
    Kind {
        // Which of several texts that are equal by their collation a group, a DISTINCT, a UNION or MIN shows, is open.
        name: "one of several equal texts",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/group-by-handling.html",
        holds: |e| {
            e.category == Category::Rows
                && e.is_merged()
                && compare::same_folded_rows(&e.answers.reference, &e.answers.rauk)
        },
    },
    Kind {
        // Whether a row whose expression fails is met, depends on the order in which conditions and tables are taken.
        name: "an error of a row that a plan may not meet",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/where-optimization.html",
        holds: |e| match e.category {
            Category::Code(0, code) | Category::Code(code, 0) => RUNTIME_ERRORS.contains(&code) && e.reads_tables(),
            Category::Code(one, other) => {
                RUNTIME_ERRORS.contains(&one) && RUNTIME_ERRORS.contains(&other) && e.reads_tables()
            }
            _ => false,
        },
    },
    Kind {
        // In MySQL no subquery of a change reads the table that is changed, however deep it stands; in MariaDB some may.
        name: "a subquery that reads the changed table",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/subquery-errors.html",
        holds: |e| {
            // 1443 is the same through a view.
            let changes = !matches!(e.statement, Statement::Query(_) | Statement::View { .. });
            changes && matches!(e.category, Category::Code(_, 1093 | 1443))
        },
    },
    Kind {
        // MySQL 8 keeps a mix of signed and unsigned numbers, and ROUND of a number, an integer where MariaDB makes it
        // a DECIMAL; JSON is a type in MySQL and a LONGTEXT in MariaDB; the type of an expression over a literal NULL
        // is not told by either manual.
        name: "types of columns",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/flow-control-functions.html",
        holds: |e| {
            let has_null = e.has_literal("NULL");
            // How long an integer is decides whether its AVG is rounded to an integer; MariaDB counts digits of literals.
            let is_rounded = ["CEILING(", "FLOOR(", "ROUND("].iter().any(|name| e.text.contains(name));
            let is_set = [" UNION ", " INTERSECT ", " EXCEPT "].iter().any(|name| e.text.contains(name));
            let is_known = |reference, rauk| {
                has_null
                    || rauk == Family::Other
                    // BIT beside another type: MariaDB makes bytes of its digits.
                    || (is_set || e.text.contains("GROUP_CONCAT(")) && reference == Family::Bytes
                    || reference == Family::Decimal && rauk == Family::Integer
                    || is_rounded && reference == Family::Integer && rauk == Family::Decimal
            };
            e.category == Category::Types && e.differing().all(|(reference, rauk)| is_known(reference, rauk))
        },
    },
    Kind {
        // MariaDB's JSON is a CHECK constraint, whose error IGNORE turns into a warning; MySQL's error 3140 stays one. What
        // IGNORE puts where a value is missing is valid JSON in MySQL, and an empty text in MariaDB.
        name: "JSON that is not valid",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/json.html",
        holds: |e| {
            matches!(e.category, Category::Code(4025, _) | Category::Code(_, 3140))
                || matches!(e.category, Category::Affected | Category::Contents)
                    && e.features.has(Feature::Ignore)
                    && e.changes_json()
        },
    },
    Kind {
        // A column that only ON DUPLICATE KEY UPDATE names is not given a value by the INSERT; MariaDB takes it for one
        // that is.
        name: "a value given by ON DUPLICATE KEY UPDATE",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/data-type-defaults.html",
        holds: |e| matches!(e.category, Category::Code(_, 1364 | 1423)) && e.features.has(Feature::OnDuplicate),
    },
    Kind {
        // Several rows or columns are wrong; or MySQL's strict mode makes a warning of a function an error, and MariaDB
        // goes on to the next one.
        name: "which of several errors of data comes first",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/sql-mode.html#sql-mode-strict",
        holds: |e| match e.category {
            Category::Code(one, other) => DATA_ERRORS.contains(&one) && DATA_ERRORS.contains(&other),
            _ => false,
        },
    },
    Kind {
        // In MySQL 8 the scale of ROUND and TRUNCATE is not larger than that of their argument.
        name: "scale of ROUND and TRUNCATE",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/mathematical-functions.html#function_round",
        holds: |e| {
            e.category == Category::Rows
                && (e.text.contains("ROUND(") || e.text.contains("TRUNCATE("))
                && e.same_rows_by(without_zeros)
        },
    },
    Kind {
        // A quotient has digits behind its scale, until it is stored in a temporary table; whether it is, the plan
        // decides.
        name: "digits of a quotient behind its scale",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/arithmetic-functions.html",
        holds: |e| {
            matches!(e.category, Category::Rows | Category::Contents)
                && (e.text.contains(" / ") || e.text.contains("AVG("))
                && e.same_rows_by(two_digits)
        },
    },
    Kind {
        // A comparison of rows with a NULL: MariaDB says 0 for (NULL, 1) = (2, 1), and drops rows of an outer join for
        // which (1, 1) < (12, NULL) is true. Both are its own: a partition by such a predicate is checked on Rauk
        // alone.
        name: "rows compared with NULL",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/comparison-operators.html",
        holds: |e| {
            matches!(e.category, Category::Rows | Category::Affected | Category::Contents)
                && e.has_form(ROW_COMPARISONS)
        },
    },
    Kind {
        // FIELD and MAKE_SET pass over a NULL, and INTERVAL of NULL is -1. MariaDB drops the NULL rows of an outer join all the same.
        name: "FIELD and INTERVAL above an outer join",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/string-functions.html#function_field",
        holds: |e| {
            matches!(e.category, Category::Rows | Category::Affected | Category::Contents)
                && e.features.has(Feature::OuterJoin)
                && ["FIELD(", "INTERVAL(", "MAKE_SET("].iter().any(|name| e.text.contains(name))
        },
    },
    Kind {
        // In an UPDATE of several tables, assignments may see the values from before or from assignments to their left.
        name: "order of assignments in an UPDATE of several tables",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/update.html",
        holds: |e| {
            e.category == Category::Contents
                && matches!(e.statement, Statement::Update { set, .. } if set.len() > 1)
                && e.text.contains(" JOIN ")
        },
    },
    Kind {
        // The sign of a DECIMAL zero.
        name: "minus zero",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/precision-math-decimal-characteristics.html",
        holds: |e| e.category == Category::Rows && e.same_rows_by(unsigned_zero),
    },
    Kind {
        // Whether a function gives a zero date or NULL under NO_ZERO_DATE.
        name: "zero dates in functions",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/sql-mode.html",
        holds: |e| e.category == Category::Rows && e.shows("0000-00-00"),
    },
    Kind {
        // MySQL 8 looks for columns without a value and a default row by row: no row, no error; two rows, two warnings.
        name: "columns without a value and a default, by row",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/data-type-defaults.html",
        holds: |e| match e.category {
            Category::Code(1364, 0) => e.features.has(Feature::InsertSelect),
            Category::Warnings => e.text.starts_with("INSERT IGNORE") && e.text.contains("), ("),
            _ => false,
        },
    },
    Kind {
        // The new values of the row collide with another row. MariaDB says nothing where the key is a unique HASH key.
        name: "ON DUPLICATE KEY UPDATE that collides again",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/insert-on-duplicate.html",
        holds: |e| e.category == Category::Code(0, 1062) && e.features.has(Feature::OnDuplicate),
    },
    Kind {
        // A row that ON DUPLICATE KEY UPDATE sets to what it was is not counted, also where a column without a value is
        // NULL before and behind.
        name: "a duplicate that stays as it was",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/insert-on-duplicate.html",
        holds: |e| e.category == Category::Affected && e.features.has(Feature::OnDuplicate),
    },
    Kind {
        // MySQL 8 rounds digits of a second that do not fit, MariaDB cuts them. How many digits the time of a NULL has is
        // told by neither.
        name: "fractions of a second are rounded",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/fractional-seconds.html",
        holds: |e| {
            // The generator's one literal with too many digits.
            let is_stored = e.category == Category::Contents && e.text.contains("1.005");
            let casts = [" AS TIME)", " AS DATETIME)", "TIME("];
            let is_null = e.has_literal("NULL") && e.same_rows_by(without_fraction);
            is_stored || e.category == Category::Rows && (is_null || casts.iter().any(|text| e.text.contains(text)))
        },
    },
    Kind {
        // NULL into a TIMESTAMP that is NOT NULL is the current time in MariaDB; in MySQL 8 it is an error. A subquery
        // without rows is NULL too.
        name: "NULL for a TIMESTAMP",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/timestamp-initialization.html",
        holds: |e| e.category == Category::Code(0, 1048) && (e.has_literal("NULL") || e.text.contains("(SELECT ")),
    },
    Kind {
        // The result is whole seconds in MySQL; MariaDB has the digits of a second too.
        name: "TIME_TO_SEC is whole",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/date-and-time-functions.html#function_time-to-sec",
        holds: |e| {
            matches!(e.category, Category::Rows | Category::Types | Category::Contents)
                && e.text.contains("TIME_TO_SEC(")
        },
    },
    Kind {
        // REPLACE with a NULL is NULL, also where there is nothing to replace.
        name: "REPLACE with NULL",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/string-functions.html#function_replace",
        holds: |e| e.category == Category::Rows && e.text.contains("REPLACE(") && e.has_null_in_rauk(),
    },
    Kind {
        // Whether two texts inside of rows that IN compares must agree on a collation.
        name: "collations inside of rows",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/charset-collation-coercibility.html",
        holds: |e| {
            matches!(e.category, Category::Code(_, 1267))
                && (e.has_form(ROW_COMPARISONS) || e.features.has(Feature::RowSubquery))
        },
    },
    Kind {
        // Without groups, HAVING may name a column of the select list in MySQL.
        name: "HAVING without groups",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/select.html",
        holds: |e| e.category == Category::Code(1463, 0),
    },
    Kind {
        // RANK and its kin take all rows for equal where nothing orders them; MariaDB asks for an order.
        name: "ranks without an order",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/window-function-descriptions.html",
        holds: |e| matches!(e.category, Category::Code(4018, _)) && e.features.has(Feature::Window),
    },
    Kind {
        // The numbers of rows are unsigned in MySQL 8; what they agree on with signed ones is a DECIMAL.
        name: "numbers of rows are unsigned",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/window-function-descriptions.html",
        holds: |e| {
            let ranks = ["ROW_NUMBER()", "RANK()", "NTILE("];
            e.category == Category::Types
                && ranks.iter().any(|name| e.text.contains(name))
                && e.differing().all(|types| {
                    // The second as in "types of columns".
                    [(Family::Integer, Family::Decimal), (Family::Decimal, Family::Integer)].contains(&types)
                })
        },
    },
    Kind {
        // MariaDB 10.11 sorts the rows of several windows into one order and then loses ends of partitions: MAX over a
        // partition is that of a part of it, LEAD gives the row itself. It looks for NULLs among the rows of IN before it
        // has computed their windows, and loses groups for which HAVING holds when windows read them.
        name: "several windows in a block, windows below IN and above HAVING",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/window-functions-usage.html",
        holds: |e| {
            matches!(e.category, Category::Rows | Category::Affected | Category::Contents)
                && (e.windows() > 1 || e.has_window_in_subquery() || e.windows() > 0 && e.text.contains(" HAVING "))
        },
    },
    Kind {
        // MIN and MAX of ENUM and SET compare texts, as both manuals say, and are texts here. MariaDB sorts such results by
        // number, and finds them by number where it has a key.
        name: "MIN and MAX of ENUM and SET",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/aggregate-functions.html",
        holds: |e| {
            let same_but_for_members = || {
                compare::same_rows_by(&e.answers.reference, &e.answers.rauk, |cell| match cell {
                    Some(text) if data::is_list_of_members(text) => Some(b"members".to_vec()),
                    cell => cell.clone(),
                })
            };
            let differs = e.category == Category::Order || e.category == Category::Rows && same_but_for_members();
            differs && ["MIN(", "MAX("].iter().any(|name| e.text.contains(name))
        },
    },
    Kind {
        // MariaDB does not find a group key by its qualified name when another key has the same column name.
        name: "group keys of the same name in HAVING",
        manual: "https://mariadb.com/kb/en/group-by/",
        holds: |e| e.category == Category::Code(1054, 0) && e.text.contains(" HAVING "),
    },
    Kind {
        // MySQL 8 gives the row of the total also where there are no rows to sum up; MariaDB gives none. And where a key
        // is selected twice, MariaDB shows NULL for it once. A key in an expression, and DISTINCT of a constant, keep what
        // they had in the group before.
        name: "ROLLUP of no rows, keys that are selected twice",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/group-by-modifiers.html",
        holds: |e| {
            let none = |outcome: &Outcome| outcome.rows().is_some_and(<[_]>::is_empty);
            e.features.has(Feature::Rollup)
                && (e.has_inner_rollup()
                    || e.selects_key_twice()
                    || e.category == Category::Rows && (e.text.contains("(DISTINCT ") || e.text.contains("(NULL OR "))
                    || e.category == Category::Rows && none(&e.answers.reference))
        },
    },
    Kind {
        // MySQL finds a group key inside of a larger expression; MariaDB looks for columns alone.
        name: "expressions over a group key that is an expression",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/group-by-handling.html",
        holds: |e| matches!(e.category, Category::Code(1055, _)) && e.features.has(Feature::GroupExpression),
    },
    Kind {
        // IGNORE leaves out rows that a view's CHECK OPTION refuses; MariaDB's INSERT of one row is refused.
        name: "IGNORE and CHECK OPTION",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/sql-mode.html#ignore-effect-on-execution",
        holds: |e| e.category == Category::Code(1369, 0) && e.features.has(Feature::Ignore),
    },
    Kind {
        // A logarithm of zero is an error in a strict change.
        name: "logarithms of zero",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/mathematical-functions.html#function_ln",
        holds: |e| e.category == Category::Code(0, 3020),
    },
    Kind {
        // MySQL 8 does not change a table from which a subquery of the same statement reads.
        name: "a subquery over the table that is changed",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/update.html",
        holds: |e| e.category == Category::Code(0, 1093),
    },
    Kind {
        // MySQL 8 shows all digits of a variance or deviation; MariaDB four behind those of its argument.
        name: "digits of deviations",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/aggregate-functions.html#function_std",
        holds: |e| {
            e.category == Category::Rows
                && (e.text.contains("STD") || e.text.contains("VAR_"))
                && e.same_rows_by(two_digits)
        },
    },
    Kind {
        // CRC32 of NULL is NULL; MariaDB takes it for a number where it looks for NULLs among the rows of NOT IN.
        name: "CRC32 of NULL",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/mathematical-functions.html#function_crc32",
        holds: |e| {
            matches!(e.category, Category::Rows | Category::Affected | Category::Contents)
                && e.text.contains("CRC32(")
                && e.text.contains(" (SELECT ")
        },
    },
    Kind {
        // A NULL among the rows of ALL or ANY makes the comparison unknown. MariaDB compares with the largest or smallest
        // row, and forgets the NULL below IS UNKNOWN and NOT.
        name: "ALL and ANY over NULLs",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/all-subqueries.html",
        holds: |e| {
            matches!(e.category, Category::Rows | Category::Affected | Category::Contents)
                && e.features.has(Feature::Quantified)
                && [" IS UNKNOWN)", " IS NOT TRUE)", " IS FALSE)", " IS NULL)"].iter().any(|test| e.text.contains(test))
        },
    },
    Kind {
        // CAST(… AS CHAR) has the collation of the connection. MariaDB's view keeps the character set alone, whose
        // default is another collation. And it keeps a key of ROLLUP without the name of its table.
        name: "CAST AS CHAR and keys of ROLLUP in a view",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/cast-functions.html",
        holds: |e| {
            let is_cast = matches!(e.category, Category::Code(1267 | 1270 | 1271, _) | Category::Rows)
                && e.text.contains(" AS CHAR");
            let is_key = matches!(e.category, Category::Code(1052 | 1356, 0)) && e.features.has(Feature::Rollup);
            matches!(e.statement, Statement::View { .. }) && (is_cast || is_key)
        },
    },
    Kind {
        // Several places of a statement mix collations: which is bound first is not told. MariaDB does not look into a
        // subquery that has no rows for sure.
        name: "which mix of collations comes first",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/charset-collation-coercibility.html",
        holds: |e| match e.category {
            Category::Code(0, 1267) => e.text.contains("WHERE NULL"),
            Category::Code(one, other) => [one, other].iter().all(|code| matches!(code, 1267 | 1270 | 1271)),
            _ => false,
        },
    },
];

const ROW_COMPARISONS: &[&str] =
    &["(({0}, {1}) = ({2}, {3}))", "(({0}, {1}) IN (({2}, {3}), ({4}, {5})))", "(({0}, {1}) < ({2}, {3}))"];

/// Of what is stored, and of what is computed for it.
const DATA_ERRORS: &[u16] = &[1048, 1062, 1264, 1265, 1292, 1364, 1365, 1366, 1406, 1441, 1690, 1242, 3020, 3819, 4025];

/// Out of range (1916 is MariaDB's own), division, wrong value, more than one row of a subquery.
const RUNTIME_ERRORS: &[u16] = &[1690, 1916, 1365, 1264, 1292, 1242, 1441];

/// The kind that a difference is of.
pub fn find(statement: &Statement, category: Category, answers: &Answers) -> Option<&'static Kind> {
    let text = statement.to_string();
    let evidence = Evidence { statement, text: &text, features: Features::of(statement), category, answers };
    KINDS.iter().find(|kind| (kind.holds)(&evidence))
}

impl Evidence<'_> {
    /// Rows are merged: a group, a DISTINCT, a set operation, MIN or MAX.
    fn is_merged(&self) -> bool {
        let merging = [
            Feature::Group,
            Feature::Rollup,
            Feature::Distinct,
            Feature::Union,
            Feature::Intersect,
            Feature::Except,
            Feature::Recursive,
        ];
        merging.iter().any(|feature| self.features.has(*feature)) || self.has_form(&["MIN({0})", "MAX({0})"])
    }

    /// Different windows.
    fn windows(&self) -> usize {
        let mut found = Vec::new();
        walk(self.statement, &mut |node| {
            if let Node::Expr(Expr::Window { partition, order, .. }) = node {
                found.push((partition.clone(), order.clone()));
            }
        });
        (0..found.len()).filter(|&at| !found[..at].contains(&found[at])).count()
    }

    fn has_window_in_subquery(&self) -> bool {
        let mut found = false;
        walk(self.statement, &mut |node| {
            if let Node::Expr(Expr::Subquery { query, .. }) = node {
                found |= query.to_string().contains(" OVER ");
            }
        });
        found
    }

    /// Another query reads what ROLLUP gives.
    fn has_inner_rollup(&self) -> bool {
        let (mut selects, mut rolled) = (0, Vec::new());
        walk(self.statement, &mut |node| {
            if let Node::Select(select) = node {
                if select.rollup {
                    rolled.push(selects);
                }
                selects += 1;
            }
        });
        let is_outermost = matches!(self.statement, Statement::Query(_) | Statement::View { .. });
        rolled.iter().any(|at| *at > 0 || !is_outermost)
    }

    /// A key of ROLLUP is two items of its list.
    fn selects_key_twice(&self) -> bool {
        let mut found = false;
        walk(self.statement, &mut |node| {
            if let Node::Select(select) = node
                && select.rollup
            {
                let times = |key: &Expr| select.items.iter().filter(|item| item.expr == *key).count();
                found |= self.category == Category::Rows && select.group.iter().any(|key| times(key) > 1);
            }
        });
        found
    }

    /// A changed table has a JSON column.
    fn changes_json(&self) -> bool {
        let is_json = |outcome: &Outcome| match outcome {
            Outcome::Rows { columns, .. } => columns.iter().any(|column| column.family == Family::Other),
            _ => false,
        };
        self.answers.contents.iter().any(|(_, _, rauk)| is_json(rauk))
    }

    fn has_form(&self, forms: &[&str]) -> bool {
        let mut found = false;
        walk(self.statement, &mut |node| {
            if let Node::Expr(Expr::Form { form, .. }) = node {
                found |= forms.contains(form);
            }
        });
        found
    }

    fn has_literal(&self, wanted: &str) -> bool {
        let mut found = false;
        walk(self.statement, &mut |node| {
            if let Node::Expr(Expr::Literal { text, .. }) = node {
                found |= text == wanted;
            }
        });
        found
    }

    /// Families of the columns that differ.
    fn differing(&self) -> impl Iterator<Item = (Family, Family)> {
        let families = |outcome: &Outcome| match outcome {
            Outcome::Rows { columns, .. } => columns.iter().map(|c| c.family).collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        let pairs = families(&self.answers.reference).into_iter().zip(families(&self.answers.rauk));
        pairs.filter(|(a, b)| a != b)
    }

    /// The same rows, and the same tables after a change, when values are shown in this way.
    fn same_rows_by(&self, shown: fn(&[u8]) -> Vec<u8>) -> bool {
        let same = |a: &Outcome, b: &Outcome| compare::same_rows_by(a, b, |cell| cell.as_ref().map(|c| shown(c)));
        let contents = self.answers.contents.iter();
        same(&self.answers.reference, &self.answers.rauk) && contents.into_iter().all(|(_, a, b)| same(a, b))
    }

    fn has_null_in_rauk(&self) -> bool {
        self.answers.rauk.rows().unwrap_or_default().iter().flatten().any(Option::is_none)
    }

    /// A value of Rauk's answer has this text in it.
    fn shows(&self, text: &str) -> bool {
        let rows = self.answers.rauk.rows().unwrap_or_default();
        rows.iter().flatten().flatten().any(|cell| String::from_utf8_lossy(cell).contains(text))
    }

    fn reads_tables(&self) -> bool {
        let mut found = !matches!(self.statement, Statement::Query(_) | Statement::View { .. });
        walk(self.statement, &mut |node| found |= matches!(node, Node::From(_)));
        found
    }
}

/// `0.00` for `-0.00`.
fn unsigned_zero(cell: &[u8]) -> Vec<u8> {
    match cell.strip_prefix(b"-") {
        Some(rest) if !rest.is_empty() && rest.iter().all(|c| matches!(c, b'0' | b'.')) => rest.to_vec(),
        _ => cell.to_vec(),
    }
}

/// `10:00:00` for `10:00:00.000`.
fn without_fraction(cell: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(cell);
    match text.split_once('.') {
        Some((whole, fraction)) if whole.contains(':') && fraction.bytes().all(|digit| digit == b'0') => whole.into(),
        _ => cell.to_vec(),
    }
}

fn number(cell: &[u8]) -> Option<f64> {
    std::str::from_utf8(cell).ok()?.parse().ok()
}

/// `7` for `7.00`.
fn without_zeros(cell: &[u8]) -> Vec<u8> {
    match number(cell) {
        Some(0.0) => b"0".to_vec(),
        Some(_) if cell.contains(&b'.') => {
            let text = String::from_utf8_lossy(cell);
            text.trim_end_matches('0').trim_end_matches('.').as_bytes().to_vec()
        }
        _ => cell.to_vec(),
    }
}

fn two_digits(cell: &[u8]) -> Vec<u8> {
    number(cell).map_or(cell.to_vec(), |number| format!("{number:.2}").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_short_and_each_kind_has_a_manual() {
        assert!(KINDS.len() <= MOST, "{} kinds", KINDS.len());
        for kind in KINDS {
            assert!(kind.manual.starts_with("https://"), "{}", kind.name);
        }
    }
}

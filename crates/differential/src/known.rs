//! Differences that are known: MariaDB is not MySQL 8 there, or SQL leaves the answer open.
//!
//! Each kind is a predicate over the statement and both answers, as narrow as it can be, with the page of a manual that
//! says why. There are at most forty: a list that grows beyond is a judge that looks away.

use crate::compare::{self, Category};
use crate::data;
use crate::run::Answers;
use crate::run::outcome::{Family, Outcome};
use crate::schema::{Schema, Table};
use crate::tree::feature::{Feature, Features};
use crate::tree::visit::{Node, walk};
use crate::tree::{Class, Expr, Statement};

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
    pub schema: &'a Schema,
}

pub const MOST: usize = 40;

pub const KINDS: &[Kind] = &[
    Kind {
        // Which of several texts that are equal by their collation a group, a DISTINCT, a UNION or MIN shows, is open, and so is
        // their order.
        name: "one of several equal texts",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/group-by-handling.html",
        holds: |e| {
            let folded = |a: &Outcome, b: &Outcome| compare::same_folded_rows(a, b);
            // The bytes of a BIT are control characters, most of which no collation looks at.
            let count = |outcome: &Outcome| outcome.rows().map(<[_]>::len);
            let are_as_many = || count(&e.answers.rauk) == count(&e.answers.reference);
            let is_ignored = e.has_kind("BIT")
                && e.text.contains(" AS CHAR)")
                && (e.category == Category::Order || e.category == Category::Rows && e.is_merged() && are_as_many());
            is_ignored
                || matches!(e.category, Category::Rows | Category::Contents)
                    && e.is_merged()
                    && folded(&e.answers.reference, &e.answers.rauk)
                    && e.answers.contents.iter().all(|(_, a, b)| folded(a, b))
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
                    || is_set && e.has_kind("BIT") && reference == Family::Text
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
        // Several rows or columns are wrong; or MySQL's strict mode makes a warning of a function an error, and MariaDB
        // goes on to the next one.
        name: "which of several errors of data comes first",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/sql-mode.html#sql-mode-strict",
        holds: |e| match e.category {
            Category::Code(1369, other) => DATA_ERRORS.contains(&other),
            Category::Code(one, other) => are_data_errors(one, other),
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
        // A quotient has digits behind its scale, and a DOUBLE of fixed digits others, until they are stored in a temporary table; whether they are, the plan
        // decides. MySQL 8 shows all digits of a variance or deviation, MariaDB four behind those of its argument. A product of DECIMALs
        // loses digits beyond nine words of nine; here it keeps them. MariaDB takes a YEARWEEK beside a YEAR, a quotient of it, and an AVG of ASCII or BIT_COUNT for
        // shorter than they are, and gives the largest number that its type holds. Its CUME_DIST has ten digits.
        name: "digits",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/arithmetic-functions.html",
        holds: |e| {
            let is_fixed =
                || e.schema.tables.iter().flat_map(|table| &table.columns).any(|c| c.kind.sql == "DOUBLE(8,2)");
            let divides = [" / ", "AVG(", "STD", "VAR_"].iter().any(|text| e.text.contains(text));
            let cut = ["YEARWEEK(", "AVG(ASCII(", "AVG(BIT_COUNT(", "AVG(DISTINCT ASCII(", "AVG(DISTINCT BIT_COUNT("];
            let is_cut = cut.iter().any(|text| e.text.contains(text));
            matches!(e.category, Category::Rows | Category::Contents)
                && (divides && e.same_rows_by(two_digits)
                    || e.text.contains(" * ") && e.same_rows_by(eighteen_digits)
                    || e.text.contains(" * ") && is_fixed() && e.same_rows_by(one_digit)
                    || is_cut && e.reference_shows("9.9999")
                    || e.text.contains("YEARWEEK(") && e.reference_shows("99999")
                    || ["CUME_DIST(", "PERCENT_RANK("].iter().any(|name| e.text.contains(name))
                        && e.same_rows_by(eight_digits))
        },
    },
    Kind {
        // A comparison of rows with a NULL: MariaDB says 0 for (NULL, 1) = (2, 1), and drops rows of an outer join for
        // which (1, 1) < (12, NULL) is true. Both are its own: a partition by such a predicate is checked on Rauk
        // alone. In a subquery it takes a comparison of an outer column with NULL in ON for true.
        name: "rows and outer columns compared with NULL",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/comparison-operators.html",
        holds: |e| {
            let differs = matches!(e.category, Category::Rows | Category::Affected | Category::Contents);
            // What the dropped rows would have met.
            let of_data = |code| DATA_ERRORS.contains(&code);
            let fails = matches!(e.category, Category::Code(0, code) | Category::Code(code, 0) if of_data(code));
            let is_outer = || {
                let compares = [" = NULL)", " < NULL)", " <= NULL)", " > NULL)", " >= NULL)", " <> NULL)"];
                e.features.has(Feature::OuterJoin)
                    && e.text.contains("(SELECT ")
                    && compares.iter().any(|end| e.text.contains(end))
            };
            (differs || fails) && e.has_form(ROW_COMPARISONS)
                || differs && (e.features.has(Feature::RowSubquery) || is_outer())
        },
    },
    Kind {
        // FIELD and MAKE_SET pass over a NULL, and INTERVAL of NULL is -1. MariaDB drops the NULL rows of an outer join all the same, and its MAKE_SET takes
        // the next text for one that is NULL.
        name: "FIELD, INTERVAL and MAKE_SET with NULL",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/string-functions.html#function_field",
        holds: |e| {
            let fails = matches!(e.category, Category::Code(0, code) if DATA_ERRORS.contains(&code));
            (fails || matches!(e.category, Category::Rows | Category::Affected | Category::Contents))
                && (e.features.has(Feature::OuterJoin) || e.text.contains("MAKE_SET("))
                && ["FIELD(", "INTERVAL(", "MAKE_SET("].iter().any(|name| e.text.contains(name))
        },
    },
    Kind {
        // In an UPDATE of several tables, assignments may see the values from before or from assignments to their left.
        // In a DELETE of several tables a parent may come before its children, which a cascade has deleted then.
        name: "order in a change of several tables",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/update.html",
        holds: |e| {
            let is_update = matches!(e.statement, Statement::Update { set, .. } if set.len() > 1);
            let is_delete = e.text.starts_with("DELETE ");
            e.text.contains(" JOIN ")
                && match e.category {
                    Category::Contents => is_update,
                    Category::Code(0, code) | Category::Code(code, 0) if is_update => DATA_ERRORS.contains(&code),
                    Category::Code(0, 1451) | Category::Code(1451, 0) | Category::Affected => is_delete,
                    _ => false,
                }
        },
    },
    Kind {
        // The sign of a DECIMAL zero, which MariaDB shows, and compares by `<=>` and `=`.
        name: "minus zero",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/precision-math-decimal-characteristics.html",
        holds: |e| {
            let compares = e.text.contains(" % ") && [" <=> ", " = "].iter().any(|op| e.text.contains(op));
            e.category == Category::Rows && (e.same_rows_by(unsigned_zero) || compares)
        },
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
        // A column that only ON DUPLICATE KEY UPDATE names is not given a value by the INSERT; MariaDB takes it for one that is. The new values
        // of the row may collide with another row, which MariaDB does not see where the key is a unique HASH key; and of two rows that
        // the new one collides with it takes that of such a key first, MySQL that of the first key. A row that is set to what it was
        // is not counted, also where a column without a value is NULL before and behind; in REPLACE it is not, if the key is the last one, which for
        // MariaDB a unique HASH key is not.
        name: "ON DUPLICATE KEY UPDATE",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/insert-on-duplicate.html",
        holds: |e| {
            let by_hash = || e.changed_table().is_some_and(|table| table.keys.iter().any(|key| key.unique && key.hash));
            let replaces = e.text.starts_with("REPLACE ") && e.category == Category::Affected && by_hash();
            replaces
                || e.features.has(Feature::OnDuplicate)
                    && match e.category {
                        Category::Code(_, 1364 | 1423) | Category::Code(0, 1062) | Category::Affected => true,
                        Category::Contents | Category::Rows | Category::Code(1062, 0) => by_hash(),
                        _ => false,
                    }
        },
    },
    Kind {
        // The largest TIME has no fraction in MySQL. MySQL 8 rounds digits of a second that do not fit, MariaDB cuts them. How many digits the time of a NULL has is
        // told by neither.
        name: "fractions of a second are rounded",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/fractional-seconds.html",
        holds: |e| {
            // The generator's one literal with too many digits.
            let is_stored = e.category == Category::Contents && e.text.contains("1.005");
            let casts = [" AS TIME)", " AS DATETIME)", "TIME(", " AS SIGNED)"];
            let is_largest = e.text.contains("TIMEDIFF(") && e.reference_shows("838:59:59.9");
            let is_null = e.has_literal("NULL") && e.same_rows_by(without_fraction);
            is_stored
                || e.category == Category::Rows
                    && (is_null || is_largest || casts.iter().any(|text| e.text.contains(text)) && e.has_time())
        },
    },
    Kind {
        // NULL into a TIMESTAMP that is NOT NULL is the current time in MariaDB; in MySQL 8 it is an error, with IGNORE the zero.
        name: "NULL for a TIMESTAMP",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/timestamp-initialization.html",
        holds: |e| {
            let of_timestamp = |c: &crate::schema::Column| c.kind.sql.starts_with("TIMESTAMP") && !c.nullable;
            let has_one = || e.schema.tables.iter().flat_map(|table| &table.columns).any(of_timestamp);
            match e.category {
                Category::Code(0, 1048) => has_one(),
                Category::Contents | Category::Warnings => {
                    e.features.has(Feature::Ignore) && has_one() && e.changes_timestamp()
                }
                _ => false,
            }
        },
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
        holds: |e| {
            e.category == Category::Rows
                && e.text.contains("REPLACE(")
                && (e.has_null_in_rauk()
                    || e.text.split_once(" WHERE ").is_some_and(|(_, filter)| filter.contains("REPLACE(")))
        },
    },
    Kind {
        // Whether two texts inside of rows that IN compares must agree on a collation. Where several places of a statement mix collations, which is
        // bound first is not told. MariaDB does not look into a subquery that has no rows for sure.
        name: "mixes of collations",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/charset-collation-coercibility.html",
        holds: |e| match e.category {
            Category::Code(0, 1267) if e.text.contains("WHERE NULL") || e.has_fixed_comparison() => true,
            Category::Code(_, 1267) | Category::Code(1267, 0)
                if e.has_form(ROW_COMPARISONS) || e.features.has(Feature::RowSubquery) =>
            {
                true
            }
            Category::Code(one, other) => [one, other].iter().all(|code| matches!(code, 1267 | 1270 | 1271)),
            _ => false,
        },
    },
    Kind {
        // RANK and its kin take all rows for equal where nothing orders them; MariaDB asks for an order. The numbers of rows are unsigned in
        // MySQL 8; what they agree on with signed ones is a DECIMAL.
        name: "numbers of rows",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/window-function-descriptions.html",
        holds: |e| {
            let ranks = ["ROW_NUMBER()", "RANK()", "NTILE("];
            matches!(e.category, Category::Code(4018, _)) && e.features.has(Feature::Window)
                || e.category == Category::Types
                    && ranks.iter().any(|name| e.text.contains(name))
                    && e.differing().all(|types| {
                        // The second as in "types of columns".
                        [(Family::Integer, Family::Decimal), (Family::Decimal, Family::Integer)].contains(&types)
                    })
        },
    },
    Kind {
        // MariaDB 10.11 takes no value out of BIT_OR and BIT_AND when a frame loses rows. It sorts the rows of several windows into one order and then loses ends of partitions: MAX over a
        // partition is that of a part of it, LEAD gives the row itself. It looks for NULLs among the rows of IN before it
        // has computed their windows, and loses groups for which HAVING holds when windows read them. Ranges of rows are those of signed numbers.
        name: "windows",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/window-functions-usage.html",
        holds: |e| {
            matches!(e.category, Category::Rows | Category::Affected | Category::Contents)
                && (e.takes_bits_away()
                    || e.windows() > 1
                    || e.has_kind("BIGINT UNSIGNED") && e.text.contains(" RANGE BETWEEN ")
                    || e.has_window_in_subquery()
                    || e.windows() > 0 && e.text.contains(" HAVING "))
        },
    },
    Kind {
        // MIN and MAX of ENUM and SET compare texts, as both manuals say, and are texts here. MariaDB sorts such results by
        // number, finds them by number where it has a key, and has their number where it groups. The year zero has four digits in MySQL.
        name: "MIN and MAX of ENUM, SET and YEAR",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/aggregate-functions.html",
        holds: |e| {
            let same_but_for_members = || {
                compare::same_rows_by(&e.answers.reference, &e.answers.rauk, |cell| match cell {
                    Some(text) if data::is_list_of_members(text) => Some(b"members".to_vec()),
                    cell => cell.clone(),
                })
            };
            let is_year = || e.category == Category::Rows && e.same_rows_by(short_year) && e.has_kind("YEAR");
            // Of a column, in something larger.
            let by_number = || {
                matches!(e.category, Category::Rows | Category::Contents | Category::Warnings | Category::Types)
                    && (e.has_kind("ENUM") || e.has_kind("SET"))
                    && e.aggregates_members()
            };
            let differs =
                e.category == Category::Order || e.category == Category::Rows && same_but_for_members() || by_number();
            is_year() || differs && ["MIN(", "MAX("].iter().any(|name| e.text.contains(name))
        },
    },
    Kind {
        // A number and a text are compared as DOUBLE, a YEAR and a number as numbers. MariaDB converts what does not change to the type of the
        // column that it stands beside: 2 is not larger than '1.5', 0.05 is found among whole numbers by a key, and whatever a YEAR with a key is compared with, and a fraction beside one, is a year.
        name: "a column beside a constant of another type",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/type-conversion.html",
        holds: |e| {
            let fails = |code| DATA_ERRORS.contains(&code);
            let rounds = e.has_key_of("DECIMAL(5,0)") && ["0.05", "1.50"].iter().any(|text| e.has_literal(text));
            let differs = matches!(e.category, Category::Rows | Category::Affected | Category::Contents);
            (differs || matches!(e.category, Category::Code(code, 0) if fails(code))) && rounds
                || differs
                    && (e.has_key_of("YEAR")
                        || e.has_kind("YEAR") && e.has_literal("5e-1")
                        || e.compares_with_cast_text())
        },
    },
    Kind {
        // MariaDB does not find a group key by its qualified name when another key has the same column name. And without groups, HAVING may
        // name a column of the select list in MySQL. In a UNION in a UNION of a subquery (EXCEPT, INTERSECT) MariaDB does not find the
        // columns around it.
        name: "names in HAVING and in nested set operations",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/select.html",
        holds: |e| {
            e.category == Category::Code(1463, 0)
                || e.category == Category::Code(1054, 0)
                    && ["UNION", "EXCEPT", "INTERSECT"].iter().any(|op| e.text.contains(&format!("{op} ((SELECT ")))
                || matches!(e.category, Category::Code(1054, 0 | 1292)) && e.text.contains(" HAVING ")
        },
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
                    || e.category == Category::Rows
                        && ["(DISTINCT ", "(NULL OR ", "(1 AND "].iter().any(|text| e.text.contains(text))
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
        // MariaDB takes a NULL of CRC32 for a number where it looks for NULLs among the rows of NOT IN, forgets that of a BIT and of an aggregate without rows
        // there, and finds one among the rows of EXCEPT and INTERSECT that is not in the result.
        name: "NULL among the rows of IN",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/comparison-operators.html#operator_in",
        holds: |e| {
            let differs = matches!(e.category, Category::Rows | Category::Affected | Category::Contents);
            differs
                && e.text.contains("(SELECT ")
                && (e.text.contains("CRC32(")
                    || e.text.contains(" IN (")
                        && (e.features.has(Feature::Except) || e.features.has(Feature::Intersect))
                        && e.has_literal("NULL")
                    || e.text.contains(" IN (SELECT COUNT(")
                    || e.text.contains(" NOT IN (SELECT ") && e.has_kind("BIT")
                    || e.text.contains(" IN (SELECT M"))
        },
    },
    Kind {
        // A NULL among the rows of ALL or ANY makes the comparison unknown. MariaDB compares with the largest or smallest
        // row, and forgets the NULL below IS UNKNOWN and NOT, and beside dates.
        name: "ALL and ANY over NULLs",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/all-subqueries.html",
        holds: |e| {
            matches!(e.category, Category::Rows | Category::Affected | Category::Contents)
                && e.features.has(Feature::Quantified)
                && [
                    "(NOT (NOT ",
                    "(SELECT MIN(",
                    "(SELECT MAX(",
                    " IS UNKNOWN)",
                    " IS NOT TRUE)",
                    " IS FALSE)",
                    " IS NULL)",
                ]
                .iter()
                .any(|test| e.text.contains(test))
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
        // A BIT stays one in CASE, NULLIF, MIN and in temporary tables, and is shown as bytes; MariaDB shows its number there. MariaDB's
        // ROLLUP has zero for the total, and its recursive table refuses what the column cannot hold.
        name: "a BIT is bytes",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/bit-value-literals.html",
        holds: |e| {
            let is_shown = || {
                let (Outcome::Rows { columns, rows, .. }, Some(others)) = (&e.answers.rauk, e.answers.reference.rows())
                else {
                    return false;
                };
                let bits = |at: usize| columns.get(at).is_some_and(|column| column.family == Family::Other);
                rows.len() == others.len() && (0..columns.len()).any(bits) && e.same_rows_by(bit_number)
            };
            e.has_kind("BIT")
                && (matches!(e.category, Category::Rows | Category::Order | Category::Types) && is_shown()
                    || e.category == Category::Rows && e.features.has(Feature::Rollup)
                    || e.category == Category::Code(1406, 0) && e.features.has(Feature::Recursive))
        },
    },
    Kind {
        // MySQL does not resolve a common table that nothing reads. MariaDB does, without the tables and columns around it.
        name: "a common table that nothing reads",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/with.html",
        holds: |e| matches!(e.category, Category::Code(1054 | 1146 | 1267 | 1270 | 1271, _)) && e.has_unread_table(),
    },
    Kind {
        // GREATEST and LEAST of texts compare texts; MariaDB compares numbers where a number is asked for.
        name: "GREATEST and LEAST of texts as a number",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/comparison-operators.html#function_greatest",
        holds: |e| {
            let differs =
                matches!(e.category, Category::Rows | Category::Warnings | Category::Affected | Category::Contents);
            differs && e.compares_texts_by(&["GREATEST({0}, {1})", "LEAST({0}, {1}, {2})"])
        },
    },
    Kind {
        // `a = b AND a <=> b` is false for NULLs; MariaDB joins by the second alone.
        name: "= beside <=> of the same columns",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/comparison-operators.html#operator_equal-to",
        holds: |e| matches!(e.category, Category::Rows | Category::Affected | Category::Contents) && e.equals_twice(),
    },
    Kind {
        // What a signed and an unsigned integer agree on is a BIGINT in MySQL 8, and keeps a negative number's bits in CAST AS UNSIGNED. An aggregate of a
        // literal beyond BIGINT is unsigned; MariaDB subtracts it as a negative number. What BIT_AND and BIT_XOR give is not negative.
        // A difference of an unsigned DECIMAL may be negative; MariaDB makes it zero in a temporary table.
        name: "unsigned numbers beyond BIGINT",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/out-of-range-and-overflow.html",
        holds: |e| {
            let literal = "18446744073709551615";
            e.category == Category::Rows && e.text.contains(" AS UNSIGNED)") && e.shows("1844674407370955")
                || e.category == Category::Rows && e.text.contains(&format!("({literal})"))
                || e.category == Category::Rows && e.text.contains("SIGN(BIT_")
                || e.category == Category::Rows
                    && e.has_kind("DECIMAL(8,3) UNSIGNED")
                    && e.text.contains(" - ")
                    && e.reference_shows("0.000")
                || e.category == Category::Warnings && e.has_literal(literal)
        },
    },
    Kind {
        // NULLIF(a, MAX(a)) of a group by `a` is NULL; MariaDB compares with the group before.
        name: "NULLIF of an aggregate",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/flow-control-functions.html#function_nullif",
        holds: |e| {
            e.category == Category::Rows
                && e.features.has(Feature::Group)
                && [", MAX(", ", MIN("].iter().any(|aggregate| e.text.contains("NULLIF(") && e.text.contains(aggregate))
        },
    },
    Kind {
        // A text with a number that is none of the SET's has no member; MariaDB takes the low bits of the number.
        name: "a text with a number beyond the members of a SET",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/set.html",
        holds: |e| {
            e.category == Category::Contents
                && e.features.has(Feature::Ignore)
                && (e.text.contains("'-") || e.stores_nothing())
                && e.changed_table().is_some_and(|table| table.columns.iter().any(|c| c.kind.sql.starts_with("SET(")))
        },
    },
    Kind {
        // A value beside NULL in `<=>` and IN, and the upper bound of a BETWEEN whose lower one decides, are not converted here; MariaDB converts them, and warns.
        // It does not look at what IS UNKNOWN and IS NULL ask of, where that is never NULL.
        name: "warnings of values that decide nothing",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/comparison-operators.html#operator_equal-to",
        holds: |e| {
            e.category == Category::Warnings
                && (e.text.contains(" <=> ") && e.has_literal("NULL")
                    || e.text.contains(" BETWEEN ")
                    || e.text.contains(" IS UNKNOWN)")
                    || e.text.contains("(NULL IN (")
                    || e.text.contains("CAST(")
                        && [" IS NULL)", " IS NOT NULL)"].iter().any(|test| e.text.contains(test)))
        },
    },
];

const ROW_COMPARISONS: &[&str] =
    &["(({0}, {1}) = ({2}, {3}))", "(({0}, {1}) IN (({2}, {3}), ({4}, {5})))", "(({0}, {1}) < ({2}, {3}))"];

/// Of what is stored, and of what is computed for it.
const DATA_ERRORS: &[u16] =
    &[1048, 1062, 1264, 1265, 1292, 1364, 1365, 1366, 1406, 1441, 1451, 1452, 1690, 1761, 1242, 3020, 3819, 4025];

/// Both are errors of data: which of them is found first is open.
pub fn are_data_errors(one: u16, other: u16) -> bool {
    DATA_ERRORS.contains(&one) && DATA_ERRORS.contains(&other)
}

/// Out of range (1916 is MariaDB's own), division, wrong value, more than one row of a subquery.
const RUNTIME_ERRORS: &[u16] = &[1690, 1916, 1365, 1264, 1292, 1242, 1441];

/// The kind that a difference is of.
pub fn find(statement: &Statement, category: Category, answers: &Answers, schema: &Schema) -> Option<&'static Kind> {
    let text = statement.to_string();
    let evidence = Evidence { statement, text: &text, features: Features::of(statement), category, answers, schema };
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

    /// A value of MariaDB's answer has this text in it.
    fn reference_shows(&self, text: &str) -> bool {
        let rows = self.answers.reference.rows().unwrap_or_default();
        rows.iter().flatten().flatten().any(|cell| String::from_utf8_lossy(cell).contains(text))
    }

    /// A column of this type is in the schema.
    fn has_kind(&self, prefix: &str) -> bool {
        self.schema.tables.iter().flat_map(|table| &table.columns).any(|column| column.kind.sql.starts_with(prefix))
    }

    /// In a changed table Rauk has an empty value.
    fn stores_nothing(&self) -> bool {
        let rows = self.answers.contents.iter().filter_map(|(_, _, rauk)| rauk.rows()).flatten();
        rows.flatten().any(|cell| cell.as_ref().is_some_and(|cell| cell.is_empty()))
    }

    fn has_time(&self) -> bool {
        self.text.contains("TIME") || self.has_kind("TIME") || self.has_kind("DATETIME")
    }

    /// A key has a column of this type.
    fn has_key_of(&self, kind: &str) -> bool {
        let of = |table: &Table| {
            let mut found = table.columns.iter().filter(|column| column.kind.sql == kind);
            found.any(|own| table.keys.iter().any(|key| key.parts.iter().any(|part| part.column == own.name)))
        };
        self.schema.tables.iter().any(of)
    }

    /// The table that an INSERT, REPLACE, UPDATE or DELETE of one table names.
    fn changed_table(&self) -> Option<&Table> {
        let mut statement = self.statement;
        if let Statement::ThroughView { table, .. } = statement {
            return self.schema.table(table);
        }
        while let Statement::ThroughView { change, .. } = statement {
            statement = change;
        }
        match statement {
            Statement::Insert { table, .. } => self.schema.table(table),
            _ => self.schema.tables.iter().find(|table| self.text.contains(&format!(" {} ", table.name))),
        }
    }

    /// A changed table has a TIMESTAMP that is NOT NULL.
    fn changes_timestamp(&self) -> bool {
        let timestamp = |c: &crate::schema::Column| c.kind.sql.starts_with("TIMESTAMP") && !c.nullable;
        self.changed_table().is_some_and(|table| table.columns.iter().any(timestamp))
    }

    /// `WHERE (a < a)`, `WHERE (2 = 1)`.
    fn has_fixed_comparison(&self) -> bool {
        let mut found = false;
        walk(self.statement, &mut |node| {
            if let Node::Expr(Expr::Form { arguments, class: Class::Boolean, .. }) = node
                && let [left, right] = &arguments[..]
            {
                found |= match (left, right) {
                    (Expr::Column { .. }, _) => left == right,
                    (Expr::Literal { .. }, Expr::Literal { .. }) => true,
                    _ => false,
                };
            }
        });
        found
    }

    /// MIN or MAX of an ENUM or SET stands inside of something.
    fn aggregates_members(&self) -> bool {
        let members = |name: &str| {
            let columns = self.schema.tables.iter().flat_map(|table| &table.columns);
            columns
                .filter(|c| c.name == name)
                .any(|c| c.kind.sql.starts_with("ENUM(") || c.kind.sql.starts_with("SET("))
        };
        let mut found = false;
        walk(self.statement, &mut |node| {
            if let Node::Expr(Expr::Form { form: "MIN({0})" | "MAX({0})", arguments, .. }) = node
                && let Some(Expr::Column { name, .. }) = arguments.first()
            {
                found |= members(name);
            }
        });
        found
    }

    /// Aggregates of bits over frames that lose rows.
    fn takes_bits_away(&self) -> bool {
        ["BIT_OR(", "BIT_AND("].iter().any(|name| self.text.contains(name)) && self.text.contains(" OVER ")
    }

    /// A common table of which only its definition speaks, or whose only readers nothing reads.
    fn has_unread_table(&self) -> bool {
        let mut rest = self.text;
        let mut names = Vec::new();
        while let Some(at) = rest.find(" AS (") {
            let before = rest[..at].rsplit_once(" (").map_or(&rest[..at], |(name, _)| name);
            let name = before.rsplit([' ', '(']).next().unwrap_or_default();
            if name.starts_with('w') {
                names.push(name.to_string());
            }
            rest = &rest[at + 5..];
        }
        names.iter().any(|name| {
            let reads = [format!("FROM {name} "), format!("JOIN {name} "), format!("FROM {name})")];
            !reads.iter().any(|read| self.text.contains(read))
        })
    }

    /// One of these forms has texts.
    fn compares_texts_by(&self, forms: &[&str]) -> bool {
        let mut found = false;
        walk(self.statement, &mut |node| {
            if let Node::Expr(Expr::Form { form, class: Class::Text, .. }) = node {
                found |= forms.contains(form);
            }
        });
        found
    }

    /// A comparison with a CAST of a literal AS CHAR.
    fn compares_with_cast_text(&self) -> bool {
        let is_cast = |side: &Expr| match side {
            Expr::Form { form: "CAST({0} AS CHAR)", arguments, .. } => matches!(arguments[..], [Expr::Literal { .. }]),
            _ => false,
        };
        let mut found = false;
        walk(self.statement, &mut |node| {
            if let Node::Expr(Expr::Form { class: Class::Boolean, arguments, .. }) = node {
                found |= arguments.iter().any(is_cast);
            }
        });
        found
    }

    /// Two columns are compared by `=` and by `<=>`.
    fn equals_twice(&self) -> bool {
        let (mut equal, mut same) = (Vec::new(), Vec::new());
        walk(self.statement, &mut |node| {
            if let Node::Expr(Expr::Form { form, arguments, .. }) = node
                && let [left @ Expr::Column { .. }, right @ Expr::Column { .. }] = &arguments[..]
            {
                let mut pair = [format!("{left:?}"), format!("{right:?}")];
                pair.sort();
                match *form {
                    "({0} = {1})" => equal.push(pair),
                    "({0} <=> {1})" => same.push(pair),
                    _ => {}
                }
            }
        });
        equal.iter().any(|pair| same.contains(pair))
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
    number(cell).map_or(cell.to_vec(), |number| unsigned_zero(format!("{number:.2}").as_bytes()))
}

fn eight_digits(cell: &[u8]) -> Vec<u8> {
    number(cell).map_or(cell.to_vec(), |number| format!("{number:.8}").into_bytes())
}

/// For a DOUBLE of two digits that was multiplied.
fn one_digit(cell: &[u8]) -> Vec<u8> {
    number(cell).map_or(cell.to_vec(), |number| unsigned_zero(format!("{:.0}", number / 2.0).as_bytes()))
}

fn eighteen_digits(cell: &[u8]) -> Vec<u8> {
    match number(cell) {
        Some(_) if cell.len() > 20 => cell[..20].to_vec(),
        _ => cell.to_vec(),
    }
}

/// `0` for the year zero.
fn short_year(cell: &[u8]) -> Vec<u8> {
    if cell == b"0000" { b"0".to_vec() } else { cell.to_vec() }
}

/// The digits of a BIT(10) that is shown as bytes.
fn bit_number(cell: &[u8]) -> Vec<u8> {
    match cell {
        [high @ 0..=3, low] if !(high.is_ascii_digit() && low.is_ascii_digit()) => {
            (u32::from(*high) << 8 | u32::from(*low)).to_string().into_bytes()
        }
        _ => cell.to_vec(),
    }
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

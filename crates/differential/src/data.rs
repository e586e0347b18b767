//! Random values, as literals.
//!
//! They come from small pools, so that equality, joins and groups find partners, and seldom from the ends of a type's
//! range.

use crate::dice::Dice;
use crate::schema::Column;
use crate::tree::Class;

const WORDS: &[&str] =
    &["''", "'a'", "'b'", "'ab'", "'abc'", "'b a'", "'x'", "'10'", "'7'", "'-3'", "'1.5'", "'rauk'", "'a_b'", "'50%'"];
/// Equal to others under collations that are not binary.
const VARIANTS: &[&str] = &["'A'", "'AB'", "'Abc'", "'a '", "'é'", "'É'", "'ab  '"];
const BYTES: &[&str] = &["''", "'a'", "'ab'", "X'00'", "X'FF'", "X'6100'", "'b'", "X'0A0B'"];
/// Values of the one ENUM and the one SET, by text and by number.
const ENUM: &[&str] = &["'b'", "'ab'", "'a'", "'x'", "'10'", "2", "3"];
const SET: &[&str] = &["''", "'ab'", "'x'", "'b'", "'7'", "'ab,b'", "'b,x'", "'ab,x,b,7'", "3"];
const YEARS: &[&str] = &["0", "5", "99", "1999", "2000", "2020", "2021", "2024"];
const DATES: &[&str] =
    &["2020-01-01", "2020-02-29", "2021-12-31", "1999-12-31", "2024-03-10", "2020-01-31", "1970-01-01", "2038-01-18"];
const TIMES: &[&str] = &["00:00:00", "10:30:15", "23:59:59", "-01:00:00", "100:20:30", "12:00:00"];
const CLOCKS: &[&str] = &["00:00:00", "10:30:15", "23:59:59", "12:00:00", "06:07:08"];
const DECIMALS: &[&str] = &["0.00", "1.50", "-1.50", "2.00", "10.25", "-0.01", "3.14", "100.00", "7.00", "0.05"];
const DOUBLES: &[&str] = &["0", "0.5", "-0.5", "1.25", "2", "-3", "1e3", "10.75", "7"];
const JSON: &[&str] = &["'1'", "'[1, 2]'", "'{\"a\": 1}'", "'null'", "'\"x\"'"];

/// Whether a value of the ENUM or SET may have this text.
pub fn is_list_of_members(text: &[u8]) -> bool {
    const MEMBERS: &[&[u8]] = &[b"b", b"ab", b"a", b"x", b"10", b"7", b""];
    text.split(|byte| *byte == b',').all(|member| MEMBERS.contains(&member))
}

/// What a column takes, for most of the time.
pub fn value(dice: &mut Dice, column: &Column, variants: bool) -> String {
    if column.generated.is_some() {
        return "DEFAULT".into();
    }
    if column.nullable && dice.chance(0.2) {
        return "NULL".into();
    }
    match (column.class(), column.kind.sql) {
        (Class::Integer, "YEAR") => (*dice.pick(YEARS)).into(),
        (Class::Integer, "BIT(10)") => dice.between(0, 12).to_string(),
        (Class::Integer, sql) => integer(dice, sql),
        (Class::Text, sql) if sql.starts_with("ENUM") => (*dice.pick(ENUM)).into(),
        (Class::Text, sql) if sql.starts_with("SET") => (*dice.pick(SET)).into(),
        (Class::Decimal, "DECIMAL(8,3) UNSIGNED") => dice.pick(DECIMALS).trim_start_matches('-').into(),
        (Class::Decimal, "DECIMAL(30,10)") if dice.chance(0.2) => "1234567890.1234567891".into(),
        (Class::Text, _) => text(dice, variants),
        (Class::DateTime, "TIMESTAMP" | "TIMESTAMP(3)") => {
            // Its range begins behind 1970-01-01 00:00:00.
            let date = dice.pick(&DATES[..6]);
            format!("'{date} {}'", dice.pick(CLOCKS))
        }
        (Class::DateTime, sql) => {
            let fraction = if sql != "DATETIME" && dice.chance(0.5) { ".125" } else { "" };
            format!("'{} {}{fraction}'", dice.pick(DATES), dice.pick(CLOCKS))
        }
        (Class::Time, sql) => format!("'{}{}'", dice.pick(TIMES), if sql == "TIME(2)" { ".25" } else { "" }),
        (class, _) => unquoted_or_literal(dice, class),
    }
}

fn unquoted_or_literal(dice: &mut Dice, class: Class) -> String {
    match class {
        Class::Date => format!("'{}'", dice.pick(DATES)),
        Class::Decimal => (*dice.pick(DECIMALS)).into(),
        Class::Double => (*dice.pick(DOUBLES)).into(),
        Class::Binary => (*dice.pick(BYTES)).into(),
        Class::Json => (*dice.pick(JSON)).into(),
        Class::Boolean | Class::Integer => dice.between(-3, 12).to_string(),
        Class::Text | Class::Time | Class::DateTime => unreachable!("the caller has these"),
    }
}

fn text(dice: &mut Dice, variants: bool) -> String {
    if variants && dice.chance(0.4) { (*dice.pick(VARIANTS)).into() } else { (*dice.pick(WORDS)).into() }
}

fn integer(dice: &mut Dice, sql: &str) -> String {
    let unsigned = sql.ends_with("UNSIGNED");
    if dice.chance(0.04) {
        let ends: &[&str] = match sql {
            "TINYINT" | "BOOL" => &["-128", "127"],
            "TINYINT UNSIGNED" => &["0", "255"],
            "SMALLINT" => &["-32768", "32767"],
            "MEDIUMINT" => &["-8388608", "8388607"],
            "INT" => &["-2147483648", "2147483647"],
            "INT UNSIGNED" => &["0", "4294967295"],
            "BIGINT UNSIGNED" => &["0", "18446744073709551615"],
            _ => &["-9223372036854775808", "9223372036854775807"],
        };
        return (*dice.pick(ends)).into();
    }
    dice.between(if unsigned { 0 } else { -3 }, 12).to_string()
}

/// A literal in an expression.
pub fn literal(dice: &mut Dice, class: Class, variants: bool) -> String {
    match class {
        Class::Boolean => (*dice.pick(&["TRUE", "FALSE", "1", "0"])).into(),
        Class::Integer if dice.chance(0.03) => {
            (*dice.pick(&["2147483648", "-9223372036854775808", "18446744073709551615", "1000000"])).into()
        }
        Class::Decimal => match *dice.pick(DECIMALS) {
            negative if negative.starts_with('-') => format!("({negative})"),
            positive => positive.into(),
        },
        Class::Integer => match dice.between(-3, 12) {
            n @ ..0 => format!("({n})"),
            n => n.to_string(),
        },
        Class::Double => (*dice.pick(&["0e0", "5e-1", "1.25e0", "2e0", "1e3", "7e0"])).into(),
        Class::Text => text(dice, variants),
        Class::Binary => (*dice.pick(&["X'61'", "X'00'", "X'FF'", "X'6162'"])).into(),
        Class::Date => format!("DATE'{}'", dice.pick(DATES)),
        Class::Time => format!("TIME'{}'", dice.pick(TIMES)),
        Class::DateTime => format!("TIMESTAMP'{} {}'", dice.pick(DATES), dice.pick(CLOCKS)),
        Class::Json => (*dice.pick(JSON)).into(),
    }
}

/// A value of any type, for an assignment that may be refused.
pub fn odd_value(dice: &mut Dice, class: Class) -> String {
    let value = *dice.pick(&[
        "NULL",
        "'x'",
        "'12abc'",
        "''",
        "1e30",
        "-1",
        "300",
        "9999999999",
        "1.005",
        "'2020-13-01'",
        "'2020-02-30'",
        "'25:61:00'",
        "20200101",
        "'a much longer text than fits'",
        "TRUE",
        "'  5'",
        "0.25",
    ]);
    match (value, class) {
        // Too many hours; MariaDB takes a number for a date.
        ("20200101" | "9999999999", Class::Time) => "'900:00:00'".into(),
        // MariaDB keeps the spaces of a JSON.
        ("'  5'", Class::Json) => "'5'".into(),
        (value, _) => value.into(),
    }
}

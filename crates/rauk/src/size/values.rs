//! Sample rows: values that take as much memory as real ones would.
//!
//! What a row takes depends on the lengths of its values, what an index takes also on the order in which keys come.
//! So lengths are spread evenly around the mean, and keys come in the order that tables are mostly filled in:
//! integers of a unique key, AUTO_INCREMENT and times that default to now ascend; everything else comes at random.
//! Nothing is NULL.
//!
//! A row is a function of its number, so a run can be repeated. A unique key needs one column that differs in every
//! row: the number itself, or a permutation of it ([`scramble`]), or several columns that are its digits
//! ([`make_unique`]).

use crate::import::literal::push_hex;
use std::fmt::Write;

/// Digits of texts.
const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
/// Bytes that a VARCHAR has at most by default.
const LONGEST_DEFAULT: u64 = 64;
/// Of a TEXT, BLOB or JSON.
const OPEN_DEFAULT: u64 = 200;
/// `{"a":""}`
const JSON_FRAME: u64 = 8;
/// Enough for any number of rows that is tried.
const ENOUGH: u64 = 1 << 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    Fixed(u64),
    /// From, to.
    Spread(u64, u64),
}

impl Lengths {
    /// Around a mean, by half of it, within a limit.
    pub fn around(mean: u64, limit: u64) -> Lengths {
        let by = (mean / 2).min(limit.saturating_sub(mean));
        if by == 0 { Lengths::Fixed(mean) } else { Lengths::Spread(mean - by, mean + by) }
    }

    pub fn mean(self) -> u64 {
        match self {
            Lengths::Fixed(bytes) => bytes,
            Lengths::Spread(least, most) => (least + most) / 2,
        }
    }

    fn of_row(self, row: u64, column: usize) -> u64 {
        let (least, most) = match self {
            Lengths::Fixed(bytes) => return bytes,
            Lengths::Spread(least, most) => (least, most),
        };
        // Evenly spread whatever the number of rows is, and by another step in every column.
        let step = 0x9E37_79B9_7F4A_7C15u64.wrapping_mul(2 * column as u64 + 1);
        let part = u128::from(row.wrapping_mul(step)) * u128::from(most - least + 1);
        least + (part >> 64) as u64
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// The largest value.
    Integer(u64),
    /// Digits before the point, at most 18, and behind it.
    Decimal(u32, u32),
    Float,
    Date,
    DateTime,
    /// Ends in 2038.
    Timestamp,
    Time,
    Year,
    Text {
        lengths: Lengths,
        limit: u64,
    },
    Bytes {
        lengths: Lengths,
        limit: u64,
    },
    Json {
        lengths: Lengths,
    },
    /// So many values.
    Enum(u64),
    Set(u64),
    Geometry(&'static str, u64),
    /// There are no sample values of it.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Any,
    Ascending,
    /// Differs in every row.
    Unique,
    /// A digit of the row's number: divided by the first, modulo the second.
    Digit(u64, u64),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: String,
    pub type_shown: String,
    pub kind: Kind,
    pub role: Role,
}

impl Kind {
    /// By `information_schema.COLUMNS`.
    pub fn of(data_type: &str, column_type: &str, length: Option<u64>, srid: Option<u64>) -> Kind {
        let arguments = || -> Vec<u64> {
            let inside = column_type.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(i, _)| i);
            inside.split(',').filter_map(|number| number.trim().parse().ok()).collect()
        };
        let integer = |bits: u32| match column_type.contains("unsigned") {
            true => Kind::Integer(u64::MAX >> (64 - bits)),
            false => Kind::Integer(u64::MAX >> (65 - bits)),
        };
        let limit = length.unwrap_or(u64::from(u32::MAX));
        let short = Lengths::around((limit / 2).clamp(limit.min(1), LONGEST_DEFAULT), limit);
        let open = Lengths::around(OPEN_DEFAULT.min(limit / 2), limit);
        let values = || values_of(column_type);
        match data_type.to_ascii_lowercase().as_str() {
            "tinyint" => integer(8),
            "smallint" => integer(16),
            "mediumint" => integer(24),
            "int" => integer(32),
            "bigint" => integer(64),
            "bit" => Kind::Integer(u64::MAX >> (64 - arguments().first().copied().unwrap_or(1).clamp(1, 64))),
            "decimal" => {
                let (digits, scale) = (arguments().first().copied().unwrap_or(10), arguments().get(1).copied());
                let scale = scale.unwrap_or(0).min(30);
                Kind::Decimal(digits.saturating_sub(scale).min(18) as u32, scale as u32)
            }
            "float" | "double" => Kind::Float,
            "date" => Kind::Date,
            "datetime" => Kind::DateTime,
            "timestamp" => Kind::Timestamp,
            "time" => Kind::Time,
            "year" => Kind::Year,
            "char" => Kind::Text { lengths: Lengths::Fixed(limit), limit },
            "varchar" => Kind::Text { lengths: short, limit },
            "tinytext" | "text" | "mediumtext" | "longtext" => Kind::Text { lengths: open, limit },
            "binary" => Kind::Bytes { lengths: Lengths::Fixed(limit), limit },
            "varbinary" => Kind::Bytes { lengths: short, limit },
            "tinyblob" | "blob" | "mediumblob" | "longblob" => Kind::Bytes { lengths: open, limit },
            "json" => Kind::Json { lengths: Lengths::around(OPEN_DEFAULT, u64::from(u32::MAX)) },
            "enum" => Kind::Enum(values().max(1)),
            "set" => Kind::Set(values().clamp(1, 63)),
            "geometry" | "point" => Kind::Geometry("POINT(1 2)", srid.unwrap_or(0)),
            "linestring" => Kind::Geometry("LINESTRING(0 0,1 1,2 1,3 2)", srid.unwrap_or(0)),
            "polygon" => Kind::Geometry("POLYGON((0 0,0 1,1 1,1 0,0 0))", srid.unwrap_or(0)),
            _ => Kind::Unknown,
        }
    }

    /// Sets how long values are; the error says why not.
    pub fn set_lengths(&mut self, least: u64, most: Option<u64>) -> Result<(), String> {
        let (lengths, limit) = match self {
            Kind::Text { lengths, limit } | Kind::Bytes { lengths, limit } => (lengths, *limit),
            Kind::Json { lengths } => (lengths, u64::from(u32::MAX)),
            _ => return Err("its values have one length; leave --width out".into()),
        };
        if most.unwrap_or(least) > limit {
            return Err(format!("it holds at most {limit}"));
        }
        *lengths = match most {
            None => Lengths::around(least, limit),
            Some(most) if most == least => Lengths::Fixed(least),
            Some(most) => Lengths::Spread(least, most),
        };
        Ok(())
    }

    pub fn lengths(&self) -> Option<Lengths> {
        match self {
            Kind::Text { lengths, .. } | Kind::Bytes { lengths, .. } | Kind::Json { lengths } => Some(*lengths),
            _ => None,
        }
    }

    /// In how many rows it can differ, if a key has so many of its characters.
    fn capacity(&self, prefix: Option<u64>) -> u64 {
        match self {
            Kind::Integer(most) => *most,
            Kind::Decimal(digits, _) => 10u64.pow(*digits).saturating_sub(1),
            Kind::Float => 1 << 22,
            Kind::Date => 2_900_000,
            Kind::DateTime => ENOUGH,
            Kind::Timestamp => 2_000_000_000,
            Kind::Time => 3_000_000,
            Kind::Year => 150,
            Kind::Text { limit, .. } => 1u64 << text_bits((*limit).min(prefix.unwrap_or(u64::MAX))),
            Kind::Bytes { limit, .. } => 1u64 << byte_bits((*limit).min(prefix.unwrap_or(u64::MAX))),
            Kind::Enum(values) => *values,
            Kind::Set(values) => (1u64 << values) - 1,
            Kind::Json { .. } | Kind::Geometry(..) | Kind::Unknown => 1,
        }
    }
}

/// Bits of a row's number that so many digits hold.
fn text_bits(characters: u64) -> u32 {
    (characters.min(12) as f64 * 36f64.log2()) as u32
}

fn byte_bits(bytes: u64) -> u32 {
    (bytes.min(7) * 8) as u32
}

/// How many values `enum('a','b')` names.
fn values_of(column_type: &str) -> u64 {
    let (mut quoted, mut commas) = (false, 0);
    for c in column_type.chars() {
        match c {
            // A doubled quote ends and begins again.
            '\'' => quoted = !quoted,
            ',' if !quoted => commas += 1,
            _ => {}
        }
    }
    commas + 1
}

/// A part of a key: its column, if it is no expression, and of how many characters of it.
pub type KeyPart = (Option<String>, Option<u64>);

/// Gives columns of a unique key the roles that make it so; the most rows that it has values for.
pub fn make_unique(columns: &mut [Column], key: &[KeyPart]) -> Option<u64> {
    let at: Vec<(usize, Option<u64>)> = key
        .iter()
        .filter_map(|(name, prefix)| Some((columns.iter().position(|c| Some(&c.name) == name.as_ref())?, *prefix)))
        .collect();
    let unique = |&(at, prefix): &(usize, Option<u64>)| {
        let found: &Column = &columns[at];
        (found.role == Role::Unique).then(|| found.kind.capacity(prefix))
    };
    if let Some(capacity) = at.iter().filter_map(unique).max() {
        return Some(capacity);
    }
    let capacities: Vec<u64> = at.iter().map(|&(at, prefix)| columns[at].kind.capacity(prefix)).collect();
    // Of several columns the last ascends, so that keys come at random: the costlier case for an ordered index.
    if let Some(last) = capacities.iter().rposition(|capacity| *capacity >= 1 << 30) {
        columns[at[last].0].role = Role::Unique;
        return Some(capacities[last]);
    }
    if at.is_empty() {
        return None;
    }
    let mut product = 1u64;
    for (&(at, _), capacity) in at.iter().zip(&capacities).rev() {
        columns[at].role = Role::Digit(product, (*capacity).max(1));
        product = product.saturating_mul((*capacity).max(1)).min(ENOUGH);
    }
    Some(product)
}

/// A permutation of the numbers of so many bits that looks like chance.
fn scramble(number: u64, bits: u32) -> u64 {
    let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
    let mut mixed = number & mask;
    for factor in [0xBF58_476D_1CE4_E5B9u64, 0x94D0_49BB_1331_11EB, 0xD6E8_FEB8_6659_FD93] {
        mixed ^= mixed >> (bits / 2).max(1);
        mixed = mixed.wrapping_mul(factor) & mask;
    }
    mixed ^ mixed >> (bits / 2).max(1)
}

/// Which value of a kind a row has.
fn number_of(column: &Column, row: u64, at: usize) -> u64 {
    match column.role {
        Role::Ascending | Role::Unique => row,
        Role::Digit(divisor, modulus) => row / divisor % modulus,
        Role::Any => scramble(row.wrapping_add(at as u64 * 0x1000_0001), 64),
    }
}

/// Appends the value of a column in a row as SQL.
pub fn push(out: &mut String, column: &Column, at: usize, row: u64) {
    let number = number_of(column, row, at);
    let chosen = column.role == Role::Any;
    // The first value is 1 where 0 means something else.
    let within = |most: u64| if chosen { number % most.max(1) } else { number.min(most - 1) } + 1;
    let time = |seconds: u64| (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let _ = match &column.kind {
        Kind::Integer(most) => write!(out, "{}", within(*most)),
        Kind::Decimal(digits, 0) => write!(out, "{}", within(10u64.pow(*digits).saturating_sub(1).max(1))),
        Kind::Decimal(0, scale) => write!(out, "0.{:0>1$}", 1, *scale as usize),
        Kind::Decimal(digits, scale) => {
            write!(out, "{}.{:0>2$}", within(10u64.pow(*digits).saturating_sub(1)), 5, *scale as usize)
        }
        Kind::Float => write!(out, "{}.5", number % (1 << 22)),
        Kind::Date => {
            let day = if chosen { 350_000 + number % 20_000 } else { number };
            write!(out, "'1000-01-01' + INTERVAL {day} DAY")
        }
        Kind::DateTime | Kind::Timestamp => {
            // A second a row, from 1990 to 2037.
            let seconds = number % 1_360_000_000;
            let (hours, minutes, seconds, days) = {
                let (h, m, s) = time(seconds);
                (h, m, s, seconds / 86_400)
            };
            // Months of 28 days: every day of it exists.
            let (year, month, day) = (1990 + days / 336, days / 28 % 12 + 1, days % 28 + 1);
            write!(out, "'{year}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}'")
        }
        Kind::Time => {
            let (_, minutes, seconds) = time(number);
            write!(out, "'{:02}:{minutes:02}:{seconds:02}'", number / 3600 % 830)
        }
        Kind::Year => write!(out, "{}", 1901 + number % 150),
        Kind::Enum(values) => write!(out, "{}", number % values + 1),
        Kind::Set(values) => write!(out, "{}", within((1 << values) - 1)),
        Kind::Geometry(text, srid) => write!(out, "ST_GeomFromText('{text}', {srid})"),
        Kind::Text { lengths, limit } => {
            let characters = lengths.of_row(row, at).max(least_length(column, *limit, 12));
            out.push('\'');
            push_text(out, column, row, at, characters);
            out.push('\'');
            Ok(())
        }
        Kind::Json { lengths } => {
            out.push_str("'{\"a\":\"");
            push_text(out, column, row, at, lengths.of_row(row, at).saturating_sub(JSON_FRAME));
            out.push_str("\"}'");
            Ok(())
        }
        Kind::Bytes { lengths, limit } => {
            let bytes = lengths.of_row(row, at).max(least_length(column, *limit, 7));
            out.push_str("x'");
            push_bytes(out, column, row, at, bytes);
            out.push('\'');
            Ok(())
        }
        Kind::Unknown => write!(out, "NULL"),
    };
}

/// A value that must differ is long enough for that.
fn least_length(column: &Column, limit: u64, enough: u64) -> u64 {
    match column.role {
        Role::Unique | Role::Digit(..) => limit.min(enough),
        _ => 0,
    }
}

fn push_text(out: &mut String, column: &Column, row: u64, at: usize, characters: u64) {
    let differs = matches!(column.role, Role::Unique | Role::Digit(..));
    let mut left = characters;
    if differs {
        let first = characters.min(12);
        let mut number = scramble(number_of(column, row, at), text_bits(first).max(1));
        for _ in 0..first {
            out.push(DIGITS[(number % 36) as usize] as char);
            number /= 36;
        }
        left -= first;
    }
    let mut state = scramble(row.wrapping_add(at as u64 * 0x1000_0001), 64);
    for _ in 0..left {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        out.push(DIGITS[((state >> 40) % 36) as usize] as char);
    }
}

fn push_bytes(out: &mut String, column: &Column, row: u64, at: usize, bytes: u64) {
    let differs = matches!(column.role, Role::Unique | Role::Digit(..));
    let mut left = bytes;
    if differs {
        let first = bytes.min(7);
        let number = scramble(number_of(column, row, at), byte_bits(first).max(1));
        push_hex(out, &number.to_le_bytes()[..first as usize]);
        left -= first;
    }
    let mut state = scramble(row.wrapping_add(at as u64 * 0x1000_0001), 64);
    for _ in 0..left {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        push_hex(out, &[(state >> 40) as u8]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn column(data_type: &str, column_type: &str, length: Option<u64>) -> Column {
        let kind = Kind::of(data_type, column_type, length, None);
        Column { name: data_type.into(), type_shown: column_type.into(), kind, role: Role::Any }
    }

    fn value(column: &Column, row: u64) -> String {
        let mut out = String::new();
        push(&mut out, column, 0, row);
        out
    }

    #[test]
    fn kinds_of_columns() {
        assert_eq!(column("tinyint", "tinyint(1)", None).kind, Kind::Integer(127));
        assert_eq!(column("bigint", "bigint unsigned", None).kind, Kind::Integer(u64::MAX));
        assert_eq!(column("bit", "bit(3)", None).kind, Kind::Integer(7));
        assert_eq!(column("decimal", "decimal(12,2)", None).kind, Kind::Decimal(10, 2));
        assert_eq!(column("enum", "enum('a','b,c','it''s')", None).kind, Kind::Enum(3));
        assert_eq!(column("multipoint", "multipoint", None).kind, Kind::Unknown);
        let lengths = |data_type: &str, length: u64| column(data_type, data_type, Some(length)).kind.lengths();
        assert_eq!(lengths("char", 36), Some(Lengths::Fixed(36)));
        assert_eq!(lengths("varchar", 60), Some(Lengths::Spread(15, 45)));
        assert_eq!(lengths("varchar", 1000), Some(Lengths::Spread(32, 96)));
        assert_eq!(lengths("text", 65_535), Some(Lengths::Spread(100, 300)));
        assert_eq!(lengths("varchar", 1), Some(Lengths::Fixed(1)));
        assert_eq!(lengths("varchar", 0), Some(Lengths::Fixed(0)));
    }

    #[test]
    fn lengths_have_the_mean_that_was_asked_for() {
        let mut kind = column("varchar", "varchar(100)", Some(100)).kind;
        assert!(kind.set_lengths(101, None).expect_err("too long").contains("at most 100"));
        for (least, most, mean) in [(40, None, 40.0), (100, None, 100.0), (90, None, 90.0), (10, Some(30), 20.0)] {
            kind.set_lengths(least, most).expect("it fits");
            let lengths = kind.lengths().expect("a text");
            let sum: u64 = (0..10_000).map(|row| lengths.of_row(row, 3)).sum();
            assert!((sum as f64 / 1e4 - mean).abs() < 0.1, "{least}: {sum}");
        }
        assert!(Kind::Date.set_lengths(3, None).is_err());
    }

    #[test]
    fn a_permutation_has_every_number_once() {
        for bits in [1, 2, 5, 10, 15] {
            let all: HashSet<u64> = (0..1 << bits).map(|n| scramble(n, bits)).collect();
            assert_eq!(all.len(), 1 << bits, "{bits} bits");
        }
    }

    #[test]
    fn keys_differ_in_every_row() {
        let key =
            |names: &[&str]| -> Vec<KeyPart> { names.iter().map(|name| (Some(name.to_string()), None)).collect() };
        for (columns, rows) in [
            (vec![column("int", "int", None)], 5000),
            (vec![column("char", "char(36)", Some(36))], 5000),
            (vec![column("varchar", "varchar(20)", Some(20))], 5000),
            (vec![column("binary", "binary(16)", Some(16))], 5000),
            (vec![column("tinyint", "tinyint", None)], 127),
            (vec![column("char", "char(2)", Some(2))], 1024),
            (vec![column("enum", "enum('a','b','c')", None), column("smallint", "smallint", None)], 5000),
            (vec![column("date", "date", None), column("tinyint", "tinyint", None)], 5000),
            (vec![column("datetime", "datetime", None)], 5000),
            (vec![column("decimal", "decimal(5,2)", None), column("year", "year", None)], 5000),
            (vec![column("time", "time", None)], 5000),
        ] {
            let mut columns = columns;
            let names: Vec<String> = columns.iter().map(|c| c.name.clone()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let most = make_unique(&mut columns, &key(&names)).expect("columns of the key");
            assert!(most >= rows, "{names:?}: {most}");
            let all: HashSet<String> =
                (0..rows).map(|row| columns.iter().map(|c| value(c, row)).collect::<Vec<_>>().join("|")).collect();
            assert_eq!(all.len() as u64, rows, "{names:?}");
        }
        let mut small = [column("tinyint", "tinyint", None)];
        assert_eq!(make_unique(&mut small, &key(&["tinyint"])), Some(127));
        assert_eq!(make_unique(&mut small, &[(None, None)]), None, "an expression is the server's to judge");
    }
}

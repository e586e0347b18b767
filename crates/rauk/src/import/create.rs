//! A table for a file that has none (`--create`).
//!
//! Types are guessed from the first lines: whole numbers are BIGINT, numbers with a point DECIMAL with as many digits
//! behind it as were seen, with an exponent DOUBLE, dates DATE, moments DATETIME(6), everything else TEXT (`utf8mb4`).
//! A number with a zero in front (`007`) is a text. All columns take NULL, and there is no key: the guess can be wrong
//! behind those lines, and a key is a decision. The statement is shown.

use super::columns::Table;
use super::fields::{self, BadField, Format};
use super::json::{self, Scalar};
use super::literal::quoted;
use super::records::Records;
use std::fs::File;

/// Lines that are looked at.
const SEEN: usize = 10_000;
const INTEGER_DIGITS: usize = 18;
const DECIMAL_DIGITS: usize = 38;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guess {
    /// No value was seen.
    Nothing,
    Integer,
    Decimal {
        scale: usize,
    },
    Double,
    Date,
    Moment,
    Document,
    Text,
}

/// CREATE TABLE for what follows in the file. With JSON lines the names are those of the members.
pub fn statement(
    records: &mut Records<File>,
    format: Format,
    null: &[u8],
    names: Option<&[String]>,
    table: &Table,
) -> Result<String, String> {
    let mut columns: Vec<(String, Guess)> =
        names.unwrap_or_default().iter().map(|name| (name.clone(), Guess::Nothing)).collect();
    let mut seen = 0;
    while seen < SEEN {
        let Some((bytes, record)) = records.next_record().map_err(|e| format!("cannot read: {e}"))? else { break };
        seen += 1;
        let text = &bytes[record.begin..record.end];
        if record.fault.is_some() {
            continue;
        }
        // A bad line says nothing about types, and is told when it is loaded.
        let _ = match format {
            Format::Jsonl => guess_object(text, names.is_some(), &mut columns),
            Format::Csv { .. } | Format::Tsv => fields::each::<BadField>(text, format, null, |at, field| {
                if let Some((_, guess)) = columns.get_mut(at)
                    && !field.null
                    && (field.quoted || !field.bytes.is_empty())
                {
                    *guess = joined(*guess, of_text(&field.bytes));
                }
                Ok(())
            })
            .map(|_| ())
            .map_err(|bad| bad.what.to_string()),
        };
    }
    columns.retain(|(name, _)| name != "-");
    if columns.is_empty() {
        return Err("there is nothing in the file that columns could be made of".into());
    }
    let list: Vec<String> =
        columns.iter().map(|(name, guess)| format!("{} {}", quoted(name), sql_type(*guess))).collect();
    Ok(format!("CREATE TABLE {} ({}) DEFAULT CHARACTER SET utf8mb4", table.sql(), list.join(", ")))
}

fn guess_object(text: &[u8], named: bool, columns: &mut Vec<(String, Guess)>) -> Result<(), String> {
    let line = std::str::from_utf8(text).map_err(|e| e.to_string())?;
    if line.trim().is_empty() {
        return Ok(());
    }
    json::each(
        line,
        |e| e,
        |name, value| {
            let at = match columns.iter().position(|(known, _)| known.eq_ignore_ascii_case(name)) {
                Some(at) => at,
                None if named => return Ok(()),
                None => {
                    columns.push((name.to_string(), Guess::Nothing));
                    columns.len() - 1
                }
            };
            let guess = match value.scalar() {
                Scalar::Null => return Ok(()),
                Scalar::Bool(_) => Guess::Integer,
                Scalar::Number(text) => of_text(text.as_bytes()),
                Scalar::Text(text) => match of_text(text.as_bytes()) {
                    // A number in quotes was meant as a text.
                    found @ (Guess::Date | Guess::Moment) => found,
                    _ => Guess::Text,
                },
                Scalar::Document(_) => Guess::Document,
            };
            columns[at].1 = joined(columns[at].1, guess);
            Ok(())
        },
    )
}

fn of_text(text: &[u8]) -> Guess {
    let Ok(text) = std::str::from_utf8(text) else { return Guess::Text };
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect();
    if shape == "9999-99-99" {
        return Guess::Date;
    }
    if let Some(rest) = shape.strip_prefix("9999-99-99").and_then(|s| s.strip_prefix(['T', ' ']))
        && let Some(rest) = rest.strip_prefix("99:99:99")
        && (rest.is_empty()
            || rest.strip_prefix('.').is_some_and(|s| !s.is_empty() && s.len() <= 6 && s.bytes().all(|b| b == b'9')))
    {
        return Guess::Moment;
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, behind) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) {
        return Guess::Text;
    }
    if all_digits(whole) && all_digits(behind) {
        return match (digits.contains('.'), whole.len() + behind.len()) {
            (false, n) if n <= INTEGER_DIGITS => Guess::Integer,
            (true, n) if n <= DECIMAL_DIGITS && !behind.is_empty() => Guess::Decimal { scale: behind.len() },
            _ => Guess::Text,
        };
    }
    match shape.contains(['e', 'E']) && text.parse::<f64>().is_ok_and(f64::is_finite) {
        true => Guess::Double,
        false => Guess::Text,
    }
}

/// What takes both.
fn joined(a: Guess, b: Guess) -> Guess {
    use Guess::*;
    match (a, b) {
        (Nothing, other) | (other, Nothing) => other,
        (a, b) if a == b => a,
        (Decimal { scale: a }, Decimal { scale: b }) => Decimal { scale: a.max(b) },
        (Integer, Decimal { scale }) | (Decimal { scale }, Integer) => Decimal { scale },
        (Integer | Decimal { .. } | Double, Double) | (Double, Integer | Decimal { .. }) => Double,
        (Date, Moment) | (Moment, Date) => Moment,
        _ => Text,
    }
}

fn sql_type(guess: Guess) -> String {
    match guess {
        Guess::Integer => "BIGINT".into(),
        Guess::Decimal { scale } => format!("DECIMAL({},{scale})", (20 + scale).min(65)),
        Guess::Double => "DOUBLE".into(),
        Guess::Date => "DATE".into(),
        Guess::Moment => "DATETIME(6)".into(),
        Guess::Document => "JSON".into(),
        Guess::Nothing | Guess::Text => "LONGTEXT".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_texts() {
        let of = |text: &str| of_text(text.as_bytes());
        assert_eq!(
            (of("12"), of("-0"), of("007"), of("1234567890123456789")),
            (Guess::Integer, Guess::Integer, Guess::Text, Guess::Text)
        );
        assert_eq!(
            (of("1.50"), of("1."), of(".5"), of("1e5")),
            (Guess::Decimal { scale: 2 }, Guess::Text, Guess::Text, Guess::Double)
        );
        assert_eq!(
            (of("2026-11-29"), of("2026-11-29T06:00:00.5"), of("2026-11-29 06")),
            (Guess::Date, Guess::Moment, Guess::Text)
        );
        assert_eq!(joined(Guess::Integer, Guess::Decimal { scale: 3 }), Guess::Decimal { scale: 3 });
        assert_eq!(joined(Guess::Date, Guess::Integer), Guess::Text);
    }
}

//! New values for system variables: checked, converted and clipped as MySQL does.
//!
//! Errors: 1231 (a value that is not allowed), 1232 (a value of the wrong type), 1115, 1273, 1298, 3999. Numbers outside of the range are clipped and
//! leave warning 1292; in strict mode as well, as in MySQL.

use super::definition::{Kind, Variable};
use super::modes;
use crate::expr::context::{Warning, WarningLevel};
use crate::expr::{Switches, locale};
use crate::session::charset;
use crate::session::errors;
use rauk_types::error::codes;
use rauk_types::{Charset, DataType, MysqlError, TypeKind, Value, format, size};

/// ER_UNKNOWN_LOCALE.
const UNKNOWN_LOCALE: u16 = 1649;
/// ER_HYPERGRAPH_NOT_SUPPORTED_YET.
const HYPERGRAPH_NOT_SUPPORTED_YET: u16 = 3999;

/// The text of a value as an error message shows it.
fn shown(value: &Value) -> String {
    let ty = match value {
        Value::Null => return "NULL".to_string(),
        Value::Int(_) => DataType::BIGINT,
        Value::UInt(_) => DataType::BIGINT_UNSIGNED,
        Value::Double(_) => DataType::DOUBLE,
        Value::Decimal(_) => DataType::decimal(65, 30),
        Value::Date(_) => DataType::new(TypeKind::Date),
        Value::Time(_) => DataType::new(TypeKind::Time),
        Value::DateTime(_) => DataType::new(TypeKind::DateTime),
        Value::Timestamp(_) => DataType::new(TypeKind::Timestamp),
        Value::Json(_) => DataType::new(TypeKind::Json),
        Value::Str(text) => return text.clone(),
        Value::Bytes(bytes) => return String::from_utf8_lossy(bytes).into_owned(),
    };
    let mut out = Vec::new();
    format::append_text(value.as_ref(), &ty, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn clipped(variable: &Variable, value: &Value, warnings: &mut Vec<Warning>) {
    let message = format!("Truncated incorrect {} value: '{}'", variable.name, shown(value));
    warnings.push(Warning { level: WarningLevel::Warning, code: codes::TRUNCATED_WRONG_VALUE, message });
}

fn text(variable: &Variable, value: &Value) -> Result<String, MysqlError> {
    match value {
        Value::Str(text) => Ok(text.clone()),
        Value::Bytes(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        Value::Null => Err(errors::wrong_value(variable.name, "NULL")),
        _ => Err(errors::wrong_type(variable.name)),
    }
}

/// What a value that is merged begins with.
#[derive(Clone, Copy)]
pub struct Before<'a> {
    pub now: &'a Value,
    pub default: &'a Value,
}

/// `value` as the variable stores it.
pub fn convert(
    variable: &Variable,
    value: Value,
    before: Before<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Value, MysqlError> {
    let refused = || errors::wrong_value(variable.name, &shown(&value));
    match variable.kind {
        Kind::Bool => match &value {
            Value::Int(v @ (0 | 1)) => Ok(Value::Int(*v)),
            Value::UInt(v @ (0 | 1)) => Ok(Value::Int(*v as i64)),
            Value::Double(_) | Value::Decimal(_) => Err(errors::wrong_type(variable.name)),
            Value::Str(word) if word.eq_ignore_ascii_case("ON") || word.eq_ignore_ascii_case("TRUE") => {
                Ok(Value::Int(1))
            }
            Value::Str(word) if word.eq_ignore_ascii_case("OFF") || word.eq_ignore_ascii_case("FALSE") => {
                Ok(Value::Int(0))
            }
            _ => Err(refused()),
        },
        Kind::Unsigned { min, max, step } => {
            let wanted: u64 = match &value {
                Value::UInt(v) => *v,
                Value::Int(v) => u64::try_from(*v).unwrap_or(0),
                Value::Null => return Err(errors::wrong_type(variable.name)),
                _ => return Err(errors::wrong_type(variable.name)),
            };
            let mut given = wanted.clamp(min, max);
            given -= given % step;
            let given = given.max(min);
            if given != wanted || matches!(value, Value::Int(v) if v < 0) {
                clipped(variable, &value, warnings);
            }
            Ok(Value::UInt(given))
        }
        Kind::Size { min } => {
            let wanted: u64 = match &value {
                Value::UInt(v) => *v,
                Value::Int(v) => u64::try_from(*v).unwrap_or(0),
                Value::Str(text) => size::parse(text).ok_or_else(|| {
                    let MysqlError { code, message, .. } = refused();
                    MysqlError::new(code, format!("{message}; wanted: a size such as '512MiB' or '4GiB'"))
                })?,
                _ => return Err(errors::wrong_type(variable.name)),
            };
            let given = wanted.max(min);
            if given != wanted || matches!(value, Value::Int(v) if v < 0) {
                clipped(variable, &value, warnings);
            }
            Ok(Value::UInt(given))
        }
        Kind::Double { min, max } => {
            let wanted: f64 = match &value {
                Value::UInt(v) => *v as f64,
                Value::Int(v) => *v as f64,
                Value::Double(v) => *v,
                Value::Decimal(_) => shown(&value).parse().map_err(|_| refused())?,
                _ => return Err(errors::wrong_type(variable.name)),
            };
            let given = wanted.clamp(min, max);
            if given != wanted {
                clipped(variable, &value, warnings);
            }
            Ok(Value::Double(given))
        }
        Kind::Text => Ok(Value::Str(text(variable, &value)?)),
        Kind::NullableText => match &value {
            Value::Null => Ok(Value::Null),
            _ => Ok(Value::Str(text(variable, &value)?)),
        },
        Kind::Choice(words) => match &value {
            Value::Int(v) => {
                let word = usize::try_from(*v).ok().and_then(|i| words.get(i)).ok_or_else(refused)?;
                Ok(Value::Str(word.to_string()))
            }
            Value::UInt(v) => {
                let word = usize::try_from(*v).ok().and_then(|i| words.get(i)).ok_or_else(refused)?;
                Ok(Value::Str(word.to_string()))
            }
            Value::Str(given) => {
                // `SET transaction_isolation = 'REPEATABLE READ'` is not MySQL; only the hyphened words are.
                let word = words.iter().find(|w| w.eq_ignore_ascii_case(given)).ok_or_else(refused)?;
                Ok(Value::Str(word.to_string()))
            }
            Value::Null => Err(refused()),
            _ => Err(errors::wrong_type(variable.name)),
        },
        Kind::SqlMode => match &value {
            Value::Int(v) if *v >= 0 => Ok(Value::Str(modes::from_number(*v as u64).map_err(|_| refused())?)),
            Value::UInt(v) => Ok(Value::Str(modes::from_number(*v).map_err(|_| refused())?)),
            Value::Str(given) => {
                Ok(Value::Str(modes::normalize(given).map_err(|word| errors::wrong_value(variable.name, &word))?))
            }
            _ => Err(refused()),
        },
        Kind::Switches => {
            let stored = |value: &Value| match value {
                Value::Str(text) => Switches::of(text),
                other => unreachable!("{} is {other:?}", variable.name),
            };
            let (now, default) = (stored(before.now), stored(before.default));
            let wanted = match &value {
                Value::Int(v) => u64::try_from(*v).ok().and_then(Switches::from_number).ok_or_else(refused)?,
                Value::UInt(v) => Switches::from_number(*v).ok_or_else(refused)?,
                _ => now
                    .changed(&text(variable, &value)?, default)
                    .map_err(|wrong| errors::wrong_value(variable.name, wrong))?,
            };
            if wanted.hypergraph() {
                let text = "The hypergraph optimizer does not yet support 'use in non-debug builds'";
                return Err(MysqlError::new(HYPERGRAPH_NOT_SUPPORTED_YET, text));
            }
            Ok(Value::Str(wanted.to_string()))
        }
        Kind::CharacterSet => {
            let set = charset::charset(&text(variable, &value)?)?;
            let set = if variable.name == "character_set_client" { client_charset(set)? } else { set };
            Ok(Value::from(set.name()))
        }
        Kind::NullableCharacterSet => match &value {
            Value::Null => Ok(Value::Null),
            _ => Ok(Value::from(charset::charset(&text(variable, &value)?)?.name())),
        },
        Kind::Collation => {
            let name = text(variable, &value)?;
            Ok(Value::from(charset::collation(&name)?.name()))
        }
        Kind::Locale => {
            let found = match &value {
                Value::UInt(number) => locale::numbered(*number),
                Value::Int(number) => u64::try_from(*number).ok().and_then(locale::numbered),
                Value::Null => return Err(refused()),
                _ => locale::find(&text(variable, &value)?),
            };
            let unknown = || MysqlError::new(UNKNOWN_LOCALE, format!("Unknown locale: '{}'", shown(&value)));
            Ok(Value::Str(found.ok_or_else(unknown)?.name.to_string()))
        }
        Kind::TimeZone => {
            let name = text(variable, &value)?;
            time_zone(&name)?;
            let name = if name.eq_ignore_ascii_case("SYSTEM") { "SYSTEM".to_string() } else { name };
            Ok(Value::Str(name))
        }
    }
}

/// The zone that a value of `time_zone` names: SYSTEM, an offset from -13:59 to +14:00, or a name of the zone database. Error 1298.
pub fn time_zone(name: &str) -> Result<jiff::tz::TimeZone, MysqlError> {
    use jiff::tz::{Offset, TimeZone};
    let unknown = || MysqlError::new(codes::UNKNOWN_TIME_ZONE, format!("Unknown or incorrect time zone: '{name}'"));
    if name.eq_ignore_ascii_case("SYSTEM") {
        return Ok(TimeZone::system());
    }
    let sign = match name.as_bytes().first() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return TimeZone::get(name).map_err(|_| unknown()),
    };
    let (hours, minutes) = name[1..].split_once(':').ok_or_else(unknown)?;
    let number = |digits: &str| -> Result<i32, MysqlError> {
        if digits.is_empty() || digits.len() > 2 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(unknown());
        }
        digits.parse().map_err(|_| unknown())
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let total = sign * (hours * 60 + minutes);
    if minutes > 59 || !(-13 * 60 - 59..=14 * 60).contains(&total) {
        return Err(unknown());
    }
    Ok(TimeZone::fixed(Offset::from_seconds(total * 60).map_err(|_| unknown())?))
}

/// Statements are read as ASCII and what else there is, so a set whose ASCII is written otherwise is error 1231.
pub fn client_charset(set: Charset) -> Result<Charset, MysqlError> {
    if set.is_for_clients() { Ok(set) } else { Err(errors::wrong_value("character_set_client", set.name())) }
}

#[cfg(test)]
mod tests {
    use super::super::store::find;
    use super::*;

    fn set(name: &str, value: Value) -> (Result<Value, MysqlError>, Vec<Warning>) {
        let mut warnings = Vec::new();
        let variable = find(name).unwrap().0;
        let default = variable.default_value();
        let before = Before { now: &default, default: &default };
        let result = convert(variable, value, before, &mut warnings);
        (result, warnings)
    }

    #[test]
    fn booleans_take_words_and_bits() {
        assert_eq!(set("autocommit", Value::from("off")).0.unwrap(), Value::Int(0));
        assert_eq!(set("autocommit", Value::Int(1)).0.unwrap(), Value::Int(1));
        let error = set("autocommit", Value::Int(2)).0.unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (1231, "Variable 'autocommit' can't be set to the value of '2'")
        );
    }

    #[test]
    fn numbers_are_clipped_with_a_warning() {
        let (value, warnings) = set("innodb_lock_wait_timeout", Value::Int(0));
        assert_eq!(value.unwrap(), Value::UInt(1));
        assert_eq!(warnings[0].message, "Truncated incorrect innodb_lock_wait_timeout value: '0'");
        let (value, warnings) = set("max_allowed_packet", Value::Int(2047));
        assert_eq!((value.unwrap(), warnings.len()), (Value::UInt(1024), 1));
        assert_eq!(set("max_allowed_packet", Value::from("x")).0.unwrap_err().code, 1232);
    }

    #[test]
    fn choices_are_words_or_numbers() {
        assert_eq!(
            set("transaction_isolation", Value::from("read-committed")).0.unwrap(),
            Value::from("READ-COMMITTED")
        );
        assert_eq!(set("transaction_isolation", Value::Int(3)).0.unwrap(), Value::from("SERIALIZABLE"));
        assert_eq!(set("transaction_isolation", Value::from("x")).0.unwrap_err().code, 1231);
    }

    #[test]
    fn time_zones() {
        assert!(time_zone("SYSTEM").is_ok());
        assert!(time_zone("+02:00").is_ok());
        assert!(time_zone("Europe/Stockholm").is_ok());
        for wrong in ["+15:00", "-14:00", "+1", "nowhere", "+00:60", ""] {
            let error = time_zone(wrong).unwrap_err();
            assert_eq!(error.message, format!("Unknown or incorrect time zone: '{wrong}'"));
        }
    }
}

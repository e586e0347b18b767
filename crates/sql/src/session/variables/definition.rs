//! What a system variable is.

use crate::expr::Switches;
use rauk_types::{Collation, DataType, Value};

/// Where a variable has values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableScope {
    Global,
    Session,
    Both,
}

/// What values a variable takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Read as 1 or 0, shown as ON or OFF.
    Bool,
    /// Clipped into the range, and down to a multiple of `step`, with warning 1292.
    Unsigned {
        min: u64,
        max: u64,
        step: u64,
    },
    /// Bytes, of which there are at least `min`: a number, or a text with a unit (`'4GiB'`).
    Size {
        min: u64,
    },
    Double {
        min: f64,
        max: f64,
    },
    Text,
    /// Text that may be NULL.
    NullableText,
    /// One of these words, or its number.
    Choice(&'static [&'static str]),
    SqlMode,
    /// `optimizer_switch`: a new value changes flags of the present one.
    Switches,
    CharacterSet,
    /// `character_set_results`: NULL means "as it is".
    NullableCharacterSet,
    Collation,
    TimeZone,
    /// A name or a number of `lc_time_names`.
    Locale,
}

/// One system variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variable {
    pub name: &'static str,
    pub scope: VariableScope,
    /// SET is allowed.
    pub dynamic: bool,
    pub kind: Kind,
    /// As text; empty is NULL where the kind allows NULL. Switches know their own.
    pub default: &'static str,
}

/// The type that `@@name` has in expressions; `None`: there is no such variable.
pub fn type_by_name(name: &str) -> Option<DataType> {
    let (variable, _) = super::store::find(name).ok()?;
    Some(match variable.kind {
        Kind::Bool => DataType::BIGINT,
        Kind::Unsigned { .. } | Kind::Size { .. } => DataType::BIGINT_UNSIGNED,
        Kind::Double { .. } => DataType::DOUBLE,
        _ => DataType::varchar(1024, Collation::Utf8mb4GeneralCi),
    })
}

impl Variable {
    pub fn has_session(&self) -> bool {
        self.scope != VariableScope::Global
    }

    pub fn has_global(&self) -> bool {
        self.scope != VariableScope::Session
    }

    /// The least and the largest value of a number, as text.
    pub fn bounds(&self) -> Option<(String, String)> {
        match self.kind {
            Kind::Unsigned { min, max, .. } => Some((min.to_string(), max.to_string())),
            Kind::Size { min } => Some((min.to_string(), u64::MAX.to_string())),
            Kind::Double { min, max } => Some((min.to_string(), max.to_string())),
            _ => None,
        }
    }

    /// The compiled-in value.
    pub fn default_value(&self) -> Value {
        match self.kind {
            Kind::Bool => Value::Int(i64::from(self.default == "ON")),
            Kind::Unsigned { .. } | Kind::Size { .. } => {
                Value::UInt(self.default.parse().expect("a default is of its kind"))
            }
            Kind::Double { .. } => Value::Double(self.default.parse().expect("a default is of its kind")),
            Kind::NullableText | Kind::NullableCharacterSet if self.default.is_empty() => Value::Null,
            Kind::Switches => Value::Str(Switches::default().to_string()),
            _ => Value::Str(self.default.to_string()),
        }
    }

    /// As SHOW VARIABLES prints it.
    pub fn show(&self, value: &Value) -> String {
        match (self.kind, value) {
            (Kind::Bool, Value::Int(v)) => if *v != 0 { "ON" } else { "OFF" }.to_string(),
            (Kind::Double { .. }, Value::Double(v)) => format!("{v:.6}"),
            (_, Value::Int(v)) => v.to_string(),
            (_, Value::UInt(v)) => v.to_string(),
            (_, Value::Double(v)) => v.to_string(),
            (_, Value::Str(v)) => v.clone(),
            _ => String::new(),
        }
    }
}

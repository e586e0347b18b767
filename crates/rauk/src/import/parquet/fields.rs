//! The fields of a Parquet file: which types they have, and which columns they may go to.
//!
//! A type is what is stored (32 bits, bytes, …) and what that means (a date, a decimal, …). The meaning is the newer
//! *logical* type where a file has one, else the older *converted* type. Whether a field can go to its column is
//! decided here, from the definitions, before anything is read; what a value is worth is the server's question.
//!
//! Lists, structs and maps go to JSON columns only. Not taken, each with its name: intervals, VARIANT, moments of 96
//! bits and in nanoseconds inside of lists and structs, and types that this version does not know.

use super::super::columns::{Column, Table};
use super::super::literal::{self, quoted};
use super::values::Bytes;
use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Milli,
    Micro,
    Nano,
}

impl Unit {
    pub fn each_second(self) -> i64 {
        match self {
            Unit::Milli => 1_000,
            Unit::Micro => 1_000_000,
            Unit::Nano => 1_000_000_000,
        }
    }

    pub fn digits(self) -> usize {
        match self {
            Unit::Milli => 3,
            Unit::Micro => 6,
            Unit::Nano => 9,
        }
    }
}

/// What the values of a field mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    /// Signed integers of so many bits.
    Signed {
        bits: u8,
    },
    Unsigned {
        bits: u8,
    },
    /// FLOAT and DOUBLE.
    Number,
    /// A float of 16 bits.
    Half,
    Decimal {
        precision: usize,
        scale: usize,
    },
    Date,
    Time {
        unit: Unit,
    },
    /// `utc`: a moment; else what a clock on the wall says.
    Timestamp {
        unit: Unit,
        utc: bool,
    },
    /// A moment of 96 bits.
    Legacy,
    Uuid,
    Text,
    /// A text that is a JSON document.
    Document,
    Bytes,
    /// A list, a struct or a map.
    Nested,
}

#[derive(Clone, Debug)]
pub struct Field {
    pub name: String,
    pub kind: Kind,
    pub required: bool,
    pub definition: TypePtr,
    /// Which of the file's leaves it is; of a nested one the first.
    pub leaf: usize,
    physical: Option<Physical>,
    /// The length of values that all have the same.
    length: usize,
}

/// `Err`: the name of a field, and why it cannot be taken. It is no matter while the field is left out.
pub type Found = Result<Field, (String, String)>;

pub fn of_file(schema: &SchemaDescriptor) -> Vec<Found> {
    let mut leaf = 0;
    let roots = schema.root_schema().get_fields().iter().map(|definition| {
        let first = leaf;
        leaf += leaves(definition);
        field(definition, first)
    });
    roots.collect()
}

fn leaves(definition: &Type) -> usize {
    match definition.is_primitive() {
        true => 1,
        false => definition.get_fields().iter().map(|field| leaves(field)).sum(),
    }
}

fn field(definition: &TypePtr, leaf: usize) -> Found {
    let name = definition.name().to_string();
    let refused = |why: String| (name.clone(), why);
    let repetition = definition.get_basic_info().has_repetition().then(|| definition.get_basic_info().repetition());
    let is_nested = !definition.is_primitive() || repetition == Some(Repetition::REPEATED);
    let (kind, physical, length) = match is_nested {
        true => {
            readable(definition).map_err(refused)?;
            (Kind::Nested, None, 0)
        }
        false => {
            let (physical, length) = stored(definition);
            (kind(definition).map_err(refused)?, Some(physical), length)
        }
    };
    let required = repetition == Some(Repetition::REQUIRED);
    Ok(Field { name, kind, required, definition: definition.clone(), leaf, physical, length })
}

fn stored(definition: &Type) -> (Physical, usize) {
    let Type::PrimitiveType { type_length, .. } = definition else { unreachable!("a leaf is asked for") };
    (definition.get_physical_type(), usize::try_from(*type_length).unwrap_or(0))
}

fn unit(unit: &TimeUnit) -> Unit {
    match unit {
        TimeUnit::MILLIS => Unit::Milli,
        TimeUnit::MICROS => Unit::Micro,
        TimeUnit::NANOS => Unit::Nano,
    }
}

/// Of a leaf.
fn kind(definition: &Type) -> Result<Kind, String> {
    let Type::PrimitiveType { physical_type, precision, scale, type_length, .. } = definition else {
        return Ok(Kind::Nested);
    };
    let info = definition.get_basic_info();
    let decimal = || {
        let (precision, scale) = (usize::try_from(*precision).unwrap_or(0), usize::try_from(*scale).unwrap_or(0));
        Ok(Kind::Decimal { precision, scale })
    };
    let unknown = |name: &str| Err(format!("it has the type {name}, which rauk import does not read"));
    let bits = if *physical_type == Physical::INT32 { 32 } else { 64 };
    if let Some(logical) = info.logical_type_ref() {
        return match logical {
            LogicalType::String | LogicalType::Enum => Ok(Kind::Text),
            LogicalType::Json => Ok(Kind::Document),
            LogicalType::Bson | LogicalType::Geometry(_) => Ok(Kind::Bytes),
            LogicalType::Decimal(_) => decimal(),
            LogicalType::Date => Ok(Kind::Date),
            LogicalType::Time(time) => Ok(Kind::Time { unit: unit(&time.unit) }),
            LogicalType::Timestamp(moment) => {
                Ok(Kind::Timestamp { unit: unit(&moment.unit), utc: moment.is_adjusted_to_u_t_c })
            }
            LogicalType::Integer(integer) => {
                let bits = integer.bit_width.unsigned_abs();
                Ok(if integer.is_signed { Kind::Signed { bits } } else { Kind::Unsigned { bits } })
            }
            // All values are NULL.
            LogicalType::Unknown => Ok(plain(*physical_type, bits)),
            LogicalType::Uuid if *type_length == 16 => Ok(Kind::Uuid),
            LogicalType::Float16 if *type_length == 2 => Ok(Kind::Half),
            other => unknown(&format!("{other:?}")),
        };
    }
    match info.converted_type() {
        ConvertedType::NONE => Ok(plain(*physical_type, bits)),
        ConvertedType::UTF8 | ConvertedType::ENUM => Ok(Kind::Text),
        ConvertedType::JSON => Ok(Kind::Document),
        ConvertedType::BSON => Ok(Kind::Bytes),
        ConvertedType::DECIMAL => decimal(),
        ConvertedType::DATE => Ok(Kind::Date),
        ConvertedType::TIME_MILLIS => Ok(Kind::Time { unit: Unit::Milli }),
        ConvertedType::TIME_MICROS => Ok(Kind::Time { unit: Unit::Micro }),
        ConvertedType::TIMESTAMP_MILLIS => Ok(Kind::Timestamp { unit: Unit::Milli, utc: true }),
        ConvertedType::TIMESTAMP_MICROS => Ok(Kind::Timestamp { unit: Unit::Micro, utc: true }),
        ConvertedType::UINT_8 => Ok(Kind::Unsigned { bits: 8 }),
        ConvertedType::UINT_16 => Ok(Kind::Unsigned { bits: 16 }),
        ConvertedType::UINT_32 => Ok(Kind::Unsigned { bits: 32 }),
        ConvertedType::UINT_64 => Ok(Kind::Unsigned { bits: 64 }),
        ConvertedType::INT_8 => Ok(Kind::Signed { bits: 8 }),
        ConvertedType::INT_16 => Ok(Kind::Signed { bits: 16 }),
        ConvertedType::INT_32 => Ok(Kind::Signed { bits: 32 }),
        ConvertedType::INT_64 => Ok(Kind::Signed { bits: 64 }),
        other => unknown(&other.to_string()),
    }
}

fn plain(physical: Physical, bits: u8) -> Kind {
    match physical {
        Physical::BOOLEAN => Kind::Bool,
        Physical::INT32 | Physical::INT64 => Kind::Signed { bits },
        Physical::INT96 => Kind::Legacy,
        Physical::FLOAT | Physical::DOUBLE => Kind::Number,
        Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY => Kind::Bytes,
    }
}

/// Whether the library's reader of nested values says all of them.
fn readable(definition: &Type) -> Result<(), String> {
    if !definition.is_primitive() {
        return definition.get_fields().iter().try_for_each(|field| readable(field));
    }
    let inside = |what: &str| Err(format!("'{}' in it {what}", definition.name()));
    let has_converted = definition.get_basic_info().converted_type() != ConvertedType::NONE;
    match kind(definition) {
        Err(why) => Err(why),
        Ok(Kind::Legacy | Kind::Time { unit: Unit::Nano } | Kind::Timestamp { unit: Unit::Nano, .. }) => {
            inside("is in nanoseconds, which rauk import does not read inside of lists and structs")
        }
        // They go by the older type there.
        Ok(Kind::Decimal { .. } | Kind::Date | Kind::Time { .. } | Kind::Timestamp { .. } | Kind::Document)
            if !has_converted =>
        {
            inside("has a type that rauk import does not read inside of lists and structs")
        }
        Ok(Kind::Text | Kind::Unsigned { .. }) if !has_converted => {
            inside("has a type that rauk import does not read inside of lists and structs")
        }
        Ok(_) => Ok(()),
    }
}

impl Field {
    /// How its bytes are written for a column; `Err`: it cannot go there.
    pub fn fits(&self, column: &Column, table: &Table) -> Result<Bytes, String> {
        let refused = |what: &str| {
            Err(format!(
                "column '{}' of the file is {what}, which column '{}' of {table} does not take; leave it out (--columns)",
                self.name, column.name
            ))
        };
        match (self.kind, column.kind) {
            (Kind::Nested, literal::Kind::Json) => Ok(Bytes::Text),
            (Kind::Nested, _) => refused("a list, a struct or a map"),
            (Kind::Text | Kind::Document | Kind::Uuid | Kind::Bytes, literal::Kind::Bytes) => Ok(Bytes::Hex),
            (Kind::Bytes, literal::Kind::Json) => refused("bytes"),
            (_, literal::Kind::Bytes) => refused("no text and no bytes"),
            (Kind::Bool | Kind::Signed { .. } | Kind::Unsigned { .. }, _) => Ok(Bytes::Text),
            (_, literal::Kind::Bit) => refused("no integer"),
            _ => Ok(Bytes::Text),
        }
    }

    /// Whether its values are moments, which TIMESTAMP columns take in UTC.
    pub fn is_utc(&self) -> bool {
        matches!(self.kind, Kind::Legacy | Kind::Timestamp { utc: true, .. })
    }

    /// The definition of a column of this name that takes all its values.
    pub fn column(&self, name: &str) -> Result<String, String> {
        let sql_type = match (self.kind, self.physical) {
            (Kind::Bool, _) => "BOOLEAN".to_string(),
            (Kind::Signed { bits }, _) => integer(bits).into(),
            (Kind::Unsigned { bits }, _) => format!("{} UNSIGNED", integer(bits)),
            (Kind::Number, Some(Physical::FLOAT)) | (Kind::Half, _) => "FLOAT".into(),
            (Kind::Number, _) => "DOUBLE".into(),
            (Kind::Decimal { precision, scale }, _) if precision <= 65 && scale <= 30 => {
                format!("DECIMAL({precision},{scale})")
            }
            (Kind::Decimal { precision, scale }, _) => {
                return Err(format!(
                    "column '{}' of the file is DECIMAL({precision},{scale}), and SQL's have at most 65 digits, 30 of them \
                     behind the point; create the table without --create",
                    self.name
                ));
            }
            (Kind::Date, _) => "DATE".into(),
            (Kind::Time { unit }, _) => format!("TIME({})", unit.digits().min(6)),
            (Kind::Timestamp { unit, .. }, _) => format!("DATETIME({})", unit.digits().min(6)),
            (Kind::Legacy, _) => "DATETIME(6)".into(),
            (Kind::Uuid, _) => "CHAR(36) CHARACTER SET ascii".into(),
            (Kind::Text, _) => "LONGTEXT".into(),
            (Kind::Document | Kind::Nested, _) => "JSON".into(),
            (Kind::Bytes, Some(Physical::FIXED_LEN_BYTE_ARRAY)) if (1..=255).contains(&self.length) => {
                format!("BINARY({})", self.length)
            }
            (Kind::Bytes, _) => "LONGBLOB".into(),
        };
        let null = if self.required { " NOT NULL" } else { "" };
        Ok(format!("{} {sql_type}{null}", quoted(name)))
    }
}

fn integer(bits: u8) -> &'static str {
    match bits {
        8 => "TINYINT",
        16 => "SMALLINT",
        32 => "INT",
        _ => "BIGINT",
    }
}

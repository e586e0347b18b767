//! Exact decimals: up to 65 digits, 30 of them behind the point, with MySQL's rounding (half away from zero).
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Decimal;

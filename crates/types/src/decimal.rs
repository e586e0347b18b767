//! Exact decimals: up to 65 digits, 30 of them behind the point, with MySQL's rounding (half away from zero).
use serde::{Deserialize, Serialize};
/// An exact decimal number with a scale. `Copy`, 28 bytes, whatever its width.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decimal {
    low: [u32; 4],
    high: [u32; 3],
}

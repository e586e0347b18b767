//! DATE, TIME(6) and DATETIME(6) as packed numbers, zero dates included.
use serde::{Deserialize, Serialize};
/// A calendar date; `0000-00-00` and zero months or days are representable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Date(u32);
/// A signed duration of up to 838:59:59.999999, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time(i64);
/// Date and time of day with microseconds, packed so that numeric order is time order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DateTime(u64);

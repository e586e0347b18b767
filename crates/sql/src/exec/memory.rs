//! The memory that one statement may use for sorting, grouping, DISTINCT and joins.
//!
//! There is no spilling to disk: at the limit the statement fails with error 1038, which names it. The limit is the session's variable
//! `rauk_query_memory_limit`.

use crate::expr::Context;
use crate::parse::statement::Scope;
use rauk_types::error::codes;
use rauk_types::{MysqlError, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) const VARIABLE: &str = "rauk_query_memory_limit";
/// Where the variable is not known.
const DEFAULT_LIMIT: usize = 256 << 20;

/// A share in the statement's memory.
#[derive(Clone)]
pub(crate) struct Memory {
    used: Arc<AtomicUsize>,
    limit: usize,
}

impl Memory {
    pub fn of_session(context: &Context) -> Self {
        let limit = match context.variables.get(Scope::Default, VARIABLE) {
            Ok(Value::Int(v)) => usize::try_from(v).unwrap_or(DEFAULT_LIMIT),
            Ok(Value::UInt(v)) => usize::try_from(v).unwrap_or(usize::MAX),
            _ => DEFAULT_LIMIT,
        };
        Memory { used: Arc::default(), limit }
    }

    #[cfg(test)]
    pub fn unlimited() -> Self {
        Memory { used: Arc::default(), limit: usize::MAX }
    }

    pub fn take(&self, bytes: usize) -> Result<(), MysqlError> {
        if self.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > self.limit {
            return Err(MysqlError::new(
                codes::OUT_OF_SORTMEMORY,
                format!(
                    "Out of sort memory, consider increasing server sort buffer size: the statement needs more than {VARIABLE} ({} bytes)",
                    self.limit
                ),
            ));
        }
        Ok(())
    }

    pub fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes that values take in memory.
pub(crate) fn values_bytes(values: &[Value]) -> usize {
    let heap: usize = values
        .iter()
        .map(|v| match v {
            Value::Str(s) => s.capacity(),
            Value::Bytes(b) => b.capacity(),
            _ => 0,
        })
        .sum();
    std::mem::size_of_val(values) + heap
}

//! A sink that keeps results in memory: for the SQL shell, for statements that the server runs itself, and for tests.

use rauk_types::result::{Completion, FlushFuture, ResultColumn, ResultSink, SessionChange};
use rauk_types::{Value, ValueRef, format};

/// The result of one statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collected {
    /// Empty for a statement without a result set.
    pub columns: Vec<ResultColumn>,
    pub rows: Vec<Vec<Value>>,
    pub completion: Completion,
    /// What it changed of the session.
    pub changes: Vec<SessionChange>,
}

impl Collected {
    /// A value as the text protocol would send it; `None` is NULL.
    pub fn text(&self, row: usize, column: usize) -> Option<String> {
        text(&self.rows[row][column], &self.columns[column])
    }

    /// All rows as text, NULL as `NULL`.
    pub fn texts(&self) -> Vec<Vec<String>> {
        let value = |row: usize, column: usize| self.text(row, column).unwrap_or_else(|| "NULL".to_string());
        (0..self.rows.len()).map(|row| (0..self.columns.len()).map(|column| value(row, column)).collect()).collect()
    }
}

fn text(value: &Value, column: &ResultColumn) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let mut out = Vec::new();
    format::append_text(value.as_ref(), &column.ty, &mut out);
    Some(String::from_utf8_lossy(&out).into_owned())
}

/// Keeps the results of all statements that ran.
#[derive(Debug, Default)]
pub struct Collector {
    pub results: Vec<Collected>,
    current: Option<Collected>,
    changes: Vec<SessionChange>,
}

impl Collector {
    /// The result of the last statement.
    pub fn last(&self) -> Option<&Collected> {
        self.results.last()
    }
}

impl ResultSink for Collector {
    fn columns(&mut self, columns: &[ResultColumn]) {
        self.current = Some(Collected { columns: columns.to_vec(), ..Collected::default() });
    }

    fn row(&mut self, values: &[ValueRef<'_>]) {
        let current = self.current.get_or_insert_default();
        current.rows.push(values.iter().map(|v| Value::from(*v)).collect());
    }

    fn withdraw(&mut self) -> bool {
        self.current = None;
        true
    }

    fn changed(&mut self, change: SessionChange) {
        self.changes.push(change);
    }

    fn complete(&mut self, completion: &Completion) {
        let mut result = self.current.take().unwrap_or_default();
        result.completion = completion.clone();
        result.changes = std::mem::take(&mut self.changes);
        self.results.push(result);
    }

    fn buffered(&self) -> usize {
        0
    }

    fn flush(&mut self) -> FlushFuture<'_> {
        Box::pin(std::future::ready(Ok(())))
    }
}

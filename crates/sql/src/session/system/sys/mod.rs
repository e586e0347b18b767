//! The database `sys`: views over performance_schema and information_schema that people and tools read, as MySQL 8's
//! sys schema has them.
//!
//! A view is a text ([`views`]), bound like any view with SQL SECURITY INVOKER. Most come twice: with times, bytes and
//! statements written for people, and as `x$…` with the numbers themselves; one text serves both (`{t:…}` is a time,
//! `{b:…}` bytes, `{s:…}` a statement). Missing are the views about files, stages and the buffer pool, which Rauk does
//! not measure or has not, and procedures; of functions `sys.format_bytes` and others are other names of built-in ones
//! (`expr::bind::sys`).

mod views;

use super::{Definition, Hints, Rows, s};
use crate::session::lookup::Viewer;
use rauk_types::view::{ViewAlgorithm, ViewCheck, ViewSchema, ViewSecurity};
use rauk_types::{Collation, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

pub(crate) const SYS: &str = "sys";

pub(super) const TABLES: &[Definition] = &[Definition {
    database: SYS,
    name: "sys_config",
    columns: "variable b128, value b128?, set_time p?, set_by b128?",
    rows: configuration,
}];

/// MySQL's defaults, which nothing here changes.
fn configuration(_: &Viewer, _: &Hints<'_>) -> Rows {
    let row =
        |(name, value): (&str, Option<&str>)| vec![s(name), value.map_or(Value::Null, s), Value::Null, Value::Null];
    let all = [
        ("diagnostics.allow_i_s_tables", Some("OFF")),
        ("diagnostics.include_raw", Some("OFF")),
        ("ps_thread_trx_info.max_length", Some("65535")),
        ("statement_performance_analyzer.limit", Some("100")),
        ("statement_performance_analyzer.view", None),
        ("statement_truncate_len", Some("64")),
    ];
    Ok(all.into_iter().map(row).collect())
}

/// All views, by name.
pub(crate) fn views() -> &'static BTreeMap<String, Arc<ViewSchema>> {
    static VIEWS: OnceLock<BTreeMap<String, Arc<ViewSchema>>> = OnceLock::new();
    VIEWS.get_or_init(|| {
        let mut all = BTreeMap::new();
        let mut add = |name: String, query: String| {
            let view = ViewSchema {
                database: SYS.to_string(),
                name: name.clone(),
                query,
                columns: Vec::new(),
                algorithm: ViewAlgorithm::Undefined,
                definer: ("mysql.sys".to_string(), "localhost".to_string()),
                security: ViewSecurity::Invoker,
                check: ViewCheck::None,
                charset: "utf8mb4".to_string(),
                collation: Collation::DEFAULT,
            };
            all.insert(name, Arc::new(view));
        };
        for (name, text) in views::VIEWS {
            if text.contains('{') {
                add(format!("x${name}"), written(text, true));
            }
            add(name.to_string(), written(text, false));
        }
        all
    })
}

/// A view by its name, which has case.
pub(crate) fn view(name: &str) -> Option<&'static Arc<ViewSchema>> {
    views().get(name)
}

/// The text of a view: raw numbers, or what people read.
fn written(text: &str, raw: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, marked)) = rest.split_once('{') {
        out.push_str(before);
        let (inside, after) = marked.split_once('}').expect("a mark ends");
        let (kind, expression) = inside.split_once(':').expect("a mark has a kind");
        match kind {
            _ if raw => out.push_str(expression),
            "t" => out.push_str(&format!("FORMAT_PICO_TIME({expression})")),
            "b" => out.push_str(&format!("FORMAT_BYTES({expression})")),
            "s" => out.push_str(&format!(
                "REPLACE(IF(CHAR_LENGTH({expression}) > 64, CONCAT(LEFT({expression}, 30), ' ... ', RIGHT({expression}, 30)), {expression}), '\\n', ' ')"
            )),
            other => unreachable!("no mark is {other}"),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_become_functions_or_nothing() {
        assert_eq!(
            written("SELECT {t:a + b} AS c, {b:d}", false),
            "SELECT FORMAT_PICO_TIME(a + b) AS c, FORMAT_BYTES(d)"
        );
        assert_eq!(written("SELECT {t:a + b} AS c, {b:d}", true), "SELECT a + b AS c, d");
        assert!(view("statement_analysis").is_some() && view("x$statement_analysis").is_some());
        assert!(view("version").is_some() && view("x$version").is_none());
    }
}

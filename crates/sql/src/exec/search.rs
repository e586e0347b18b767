//! MATCH … AGAINST: what a search knows before the statement reads its rows, and the rows that it reads by the index.
//!
//! Before the statement, the entries of each term are counted, as the statement sees them: relevance asks in how many rows a
//! word is. Entries are enough for that, but where a row has changed lately. With query expansion, the rows that the search
//! finds are read as well, and their words are terms too, whose entries are counted then.
//!
//! Rows are read by the terms that every row has one of ([`Search::cover`]): a scan for each, merged as other indexes are.
//! Where it is one word, rows without the other required words are left out by their entries ([`Search::also`]).
//! Whether a row is found, and how relevant it is, is computed from its texts.

use super::answer::turn;
use super::merge::{Merge, Parts};
use super::row::Joined;
use super::scan::Opened;
use super::select::take_snapshot;
use crate::expr::fulltext::{Range, Search};
use crate::expr::{Context, NoColumns, SearchMode, text_of};
use crate::physical::model::{SearchPlan, Source, TextAccess};
use crate::physical::{Plan, PlanKind};
use rauk_kernel::Verdict;
use rauk_node::{CountPushdown, ScanCursor, ScanSpec, Transaction};
use rauk_types::{Covering, KeyDef, MysqlError, RowView, Value, ValueRef, WordKeys};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Entries that are counted, or rows that are read, before others have their turn.
const ROWS: usize = 2048;

/// Memory for terms, for each byte of the text that they are of.
const TERM_BYTES: usize = 48;

/// Makes the searches of a statement.
pub(super) async fn begin(plan: &Plan, txn: &mut Transaction, context: &mut Context) -> Result<(), MysqlError> {
    // A change draws its snapshot itself.
    if matches!(plan.kind, PlanKind::Select(_) | PlanKind::Query(_)) && plan.is_read_only() {
        take_snapshot(txn).await?;
    }
    let mut searches = Vec::with_capacity(plan.searches.len());
    for search in &plan.searches {
        searches.push(match search {
            Some(search) => Some(Arc::new(ready(search, txn, context).await?)),
            None => None,
        });
    }
    context.searches.begin(searches);
    Ok(())
}

async fn ready(plan: &SearchPlan, txn: &mut Transaction, context: &mut Context) -> Result<Search, MysqlError> {
    let schema = plan.table.schema();
    let index = schema.index(plan.index).and_then(|index| WordKeys::new(schema, index));
    let keys = index.expect("a search is of a full-text index of the table that the plan uses");
    let text = match plan.against.eval(&NoColumns, context)? {
        Value::Null => String::new(),
        value => text_of(value.as_ref(), &plan.against.ty).into_owned(),
    };
    context.budget.memory.take(text.len() * TERM_BYTES)?;
    let mut search = Search::read(&text, plan.mode, &keys)?;
    count(&mut search, plan, txn, context).await?;
    if plan.mode == SearchMode::Expansion {
        let words = words_of_found(&search, &keys, plan, txn, context).await?;
        search = search.with_words(words);
        count(&mut search, plan, txn, context).await?;
    }
    Ok(search)
}

/// A scan of a range of entries.
fn scan(plan: &SearchPlan, range: Range) -> ScanSpec {
    ScanSpec { index: Some(plan.index), low: range.0, high: range.1, ..ScanSpec::default() }
}

/// Counts the rows of each term.
async fn count(
    search: &mut Search,
    plan: &SearchPlan,
    txn: &mut Transaction,
    context: &mut Context,
) -> Result<(), MysqlError> {
    let nothing = Covering::new(plan.table.schema(), &KeyDef { parts: vec![] }, &[]).map(Arc::new);
    let mut rows = Vec::with_capacity(search.terms());
    for term in 0..search.terms() {
        let mut found = 0;
        if let Some(range) = search.range(term) {
            // Other nodes count their rows and send none.
            let elsewhere = Arc::new(CountPushdown::default());
            let pushdown = Some(elsewhere.clone() as _);
            let spec = ScanSpec { covering: nothing.clone(), pushdown, ..scan(plan, range) };
            let mut cursor = ScanCursor::new(&plan.table, spec);
            let mut more = true;
            while more {
                let mut seen = 0;
                let mut visit = |_: &RowView<'_>| {
                    seen += 1;
                    if seen == ROWS { Verdict::KeepAndStop } else { Verdict::Keep }
                };
                more = cursor.visit_next(txn, ROWS, &mut visit).await?;
                found += seen as u64;
                turn(seen / 8, txn, context).await?;
            }
            found += elsewhere.counted();
        }
        rows.push(found);
        turn(1, txn, context).await?;
    }
    let total = plan.database.estimate_rows(&plan.table);
    search.learn(rows, total);
    Ok(())
}

/// The words of the rows that a search finds, by their keys.
async fn words_of_found(
    search: &Search,
    keys: &WordKeys,
    plan: &SearchPlan,
    txn: &mut Transaction,
    context: &mut Context,
) -> Result<Vec<String>, MysqlError> {
    let mut words = BTreeMap::new();
    for &term in search.cover() {
        let Some(range) = search.range(term) else { continue };
        let mut cursor = ScanCursor::new(&plan.table, scan(plan, range));
        let mut more = true;
        while more {
            let (mut seen, mut added, mut read) = (0, 0, 0);
            let mut visit = |row: &RowView<'_>| {
                seen += 1;
                let texts = texts(row, keys.columns());
                read += texts.iter().map(|text| text.len()).sum::<usize>();
                if search.finds(&texts) {
                    added += search.new_words(&texts, &mut words);
                }
                if seen == ROWS { Verdict::KeepAndStop } else { Verdict::Keep }
            };
            more = cursor.visit_next(txn, ROWS, &mut visit).await?;
            context.budget.memory.take(added)?;
            context.budget.work(read)?;
            turn(seen, txn, context).await?;
        }
    }
    Ok(words.into_values().collect())
}

/// The texts of a row in these columns.
pub(super) fn texts<'r>(row: &'r RowView<'_>, columns: &[usize]) -> SmallVec<[&'r str; 4]> {
    let text = |column: &usize| match row.get(*column) {
        ValueRef::Str(text) => Some(text),
        _ => None,
    };
    columns.iter().filter_map(text).collect()
}

/// Finds out what to read; `scan` has neither index nor bounds.
pub(super) fn open(
    access: &TextAccess,
    source: &Source,
    scan: ScanSpec,
    row: &Joined<'_>,
    context: &mut Context,
) -> Result<Opened, MysqlError> {
    if let Some((value, inclusive)) = &access.above {
        // Below zero it holds for rows that are not found.
        let value = value.eval(row, context)?;
        let narrows = match value {
            Value::Null => return Ok(Opened::Nothing),
            value => crate::expr::to_f64(value.as_ref(), context)?,
        };
        if narrows < 0.0 || narrows == 0.0 && *inclusive {
            return Ok(Opened::Scans(SmallVec::from_elem(scan, 1)));
        }
    }
    let search = context.searches.get(access.search).clone();
    let schema = source.schema();
    let index = &schema.indexes[access.access.index];
    let key = |term: &usize| match search.range(*term)?.0 {
        Bound::Included(key) => Some((index.id, key)),
        Bound::Excluded(_) | Bound::Unbounded => None,
    };
    let also: Arc<[_]> = search.also().iter().filter_map(key).collect();
    let of_term = |(number, term): (usize, &usize)| {
        let (low, high) = search.range(*term)?;
        let also = also.clone();
        Some((number, ScanSpec { index: Some(index.id), low, high, ordered_if_small: false, also, ..scan.clone() }))
    };
    let scans: Vec<(usize, ScanSpec)> = search.cover().iter().enumerate().filter_map(of_term).collect();
    if scans.is_empty() {
        return Ok(Opened::Nothing);
    }
    let repeats = search.cover().iter().any(|term| search.repeats(*term));
    let columns = index.parts.iter().map(|part| part.column).collect();
    let parts = Parts::Words { search: access.search, columns };
    Ok(Opened::Merge(Box::new(Merge::of_words(scans, parts, repeats, schema, context))))
}

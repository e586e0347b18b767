//! EXTRACTVALUE and UPDATEXML.
//!
//! The path is the same for all rows of a statement (1105). Texts compare in the collation of the document and the
//! path. A text that is no document gives NULL with warning 1525. UPDATEXML replaces exactly one element or attribute;
//! where the path finds none or several, the document stays as it is.

use super::{Call, Derived, Function, Typing};
use crate::expr::Context;
use crate::expr::convert::Result;
use crate::expr::types::{self, Class};
use crate::expr::xml::{self, Document, Found, Kind, Path, PathError};
use rauk_types::error::codes;
use rauk_types::{Collation, MysqlError, Value};
use std::cell::RefCell;

pub const FUNCTIONS: &[Function] = &[
    Function::new("EXTRACTVALUE", 2, 2, |t| document_type(t, 2), extract).unbounded().of_statement(),
    Function::new("UPDATEXML", 3, 3, |t| document_type(t, 3), update).unbounded().of_statement(),
];

/// Characters of a result whose length is not known.
const LONG: u64 = 1 << 24;

fn document_type(mut t: Typing<'_>, texts: usize) -> Result<Derived> {
    if !t.arguments[1].is_constant() || t.arguments[1].has_subquery() {
        return Err(MysqlError::new(codes::UNKNOWN_ERROR, "Only constant XPATH queries are supported"));
    }
    Ok(t.compared_text(0..texts, LONG)?.nullable())
}

thread_local! {
    static LAST: RefCell<Option<(String, Path)>> = const { RefCell::new(None) };
}

/// Error 1105.
fn path(text: &str) -> Result<Path> {
    let parse = |text: &str| {
        Path::parse(text).map_err(|wrong| {
            let message = match wrong {
                PathError::Syntax { at } => format!("XPATH syntax error: '{}'", &text[at..]),
                PathError::TwoNodeSets { at } => {
                    format!("XPATH error: comparison of two nodesets is not supported: '{}'", &text[at..])
                }
                PathError::Variable { at } => format!("Unknown XPATH variable at: '{}'", &text[at..]),
            };
            MysqlError::new(codes::UNKNOWN_ERROR, message)
        })
    };
    LAST.with_borrow_mut(|last| match last {
        Some((known, path)) if known == text => Ok(path.clone()),
        _ => {
            let path = parse(text)?;
            *last = Some((text.to_string(), path.clone()));
            Ok(path)
        }
    })
}

fn parsed<'t>(text: &'t str, context: &mut Context) -> Result<Option<Document<'t>>> {
    // A node takes more than the byte that may be its text.
    context.budget.memory.check(text.len().saturating_mul(4))?;
    match Document::parse(text) {
        Ok(document) => Ok(Some(document)),
        Err(wrong) => {
            let line = text[..wrong.at].matches('\n').count() + 1;
            let column = wrong.at - text[..wrong.at].rfind('\n').map_or(0, |at| at + 1) + 1;
            let what = format!("parse error at line {line} pos {column}: {}", wrong.what);
            context.warn(codes::WRONG_VALUE, format!("Incorrect XML value: '{what}'"));
            Ok(None)
        }
    }
}

fn collation(c: &Call<'_, '_>) -> Collation {
    let strings = c.arguments.iter().filter(|e| Class::of(&e.ty).is_string());
    types::aggregate_collations(strings, "", Collation::DEFAULT).map_or(Collation::DEFAULT, |c| c.0)
}

fn extract(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let path = path(&c.text(1))?;
    let text = c.text(0);
    let Some(document) = parsed(&text, context)? else { return Ok(Value::Null) };
    let found = xml::find(&path, &document, collation(c), context)?;
    if found == Found::Null {
        return Ok(Value::Null);
    }
    Ok(c.string(xml::string(&found, &document).into_bytes()))
}

fn update(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let path = path(&c.text(1))?;
    let (text, new) = (c.text(0), c.text(2));
    let Some(document) = parsed(&text, context)? else { return Ok(Value::Null) };
    let Found::Nodes(hits) = xml::find(&path, &document, collation(c), context)? else { return Ok(Value::Null) };
    let [hit] = hits.as_slice() else { return Ok(c.string(text.into_owned().into_bytes())) };
    let node = &document.nodes[hit.node];
    if node.kind == Kind::Root {
        return Ok(c.string(new.into_owned().into_bytes()));
    }
    let (before, behind) = (&text[..node.place.start], &text[node.place.end..]);
    if !c.fits(before.len() + new.len() + behind.len(), context) {
        return Ok(Value::Null);
    }
    Ok(c.string([before, &*new, behind].concat().into_bytes()))
}

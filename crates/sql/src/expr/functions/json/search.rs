//! Functions that look for values in documents.

use super::{Call, Derived, Function, Typing, VISIT, document, found, json_or_null, path, rules, single};
use crate::expr::convert::Result;
use crate::expr::json::{
    self,
    path::{append_element, append_member},
};
use crate::expr::pattern::LikePattern;
use crate::expr::{Context, Expr, bind_document};
use rauk_types::json::{Json, JsonRef, List, Node};
use rauk_types::{MysqlError, Value, ValueRef};
use std::borrow::Cow;
use std::collections::HashSet;

pub const FUNCTIONS: &[Function] = &[
    Function::new("JSON_CONTAINS", 2, 3, rules::integer_or_null, contains),
    Function::new("JSON_CONTAINS_PATH", 3, u8::MAX, rules::integer_or_null, contains_path),
    Function::new("JSON_OVERLAPS", 2, 2, rules::integer, |c, x| {
        let (a, b) = (document(c, 0, x)?, document(c, 1, x)?);
        Ok(Value::Int(overlap(a.get(), b.get(), x)?.into()))
    }),
    Function::new("JSON_SEARCH", 3, u8::MAX, json_or_null, search).with_null(),
    Function::new("MEMBER OF", 2, 2, member_type, member_of),
];

fn member_type(t: Typing<'_>) -> Result<Derived> {
    t.arguments[0] = bind_document(std::mem::replace(&mut t.arguments[0], Expr::null()));
    rules::boolean(t)
}

/// Whether `one` and not `all` is asked for. Error 3154.
fn is_one(c: &Call<'_, '_>, at: usize) -> Result<bool> {
    let word = c.text(at);
    if word.eq_ignore_ascii_case("one") {
        return Ok(true);
    }
    if word.eq_ignore_ascii_case("all") {
        return Ok(false);
    }
    let name = super::lower(c);
    Err(MysqlError::new(3154, format!("The oneOrAll argument to {name} may take these values: 'one' or 'all'.")))
}

fn contains(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let (target, candidate) = (document(c, 0, context)?, document(c, 1, context)?);
    let mut value = Some(target.get());
    if c.has(2) {
        let path = path(c, 2, context)?;
        single(&path)?;
        value = path.get(target.get())?;
    }
    let Some(value) = value else { return Ok(Value::Null) };
    Ok(Value::Int(is_in(candidate.get(), value, context)?.into()))
}

fn equal(a: JsonRef<'_>, b: JsonRef<'_>) -> Result<bool> {
    Ok(a.compare(b)?.is_eq())
}

/// Whether a candidate is contained in a target.
fn is_in(candidate: JsonRef<'_>, target: JsonRef<'_>, context: &mut Context) -> Result<bool> {
    context.budget.work(VISIT)?;
    Ok(match (candidate.read()?, target.read()?) {
        (Node::Object(candidate), Node::Object(target)) => {
            for member in candidate.iter() {
                let (name, value) = member?;
                let Some(place) = target.find(name)? else { return Ok(false) };
                if !is_in(value, target.value(place)?, context)? {
                    return Ok(false);
                }
            }
            true
        }
        (Node::Array(candidate), Node::Array(target)) => {
            let scalars = scalar_keys(&target, context)?;
            for item in candidate.iter() {
                if !is_among(item?.1, &target, &scalars, context)? {
                    return Ok(false);
                }
            }
            true
        }
        (Node::Object(_), Node::Array(target)) => is_among(candidate, &target, &HashSet::new(), context)?,
        (Node::Array(_) | Node::Object(_), _) => false,
        (_, Node::Array(target)) => {
            for item in target.iter() {
                let item = item?.1;
                context.budget.work(VISIT)?;
                if item.read()?.is_scalar() && equal(candidate, item)? {
                    return Ok(true);
                }
            }
            is_among(candidate, &target, &HashSet::new(), context)?
        }
        (_, Node::Object(_)) => false,
        _ => equal(candidate, target)?,
    })
}

/// Keys of the scalars of an array.
fn scalar_keys(list: &List<'_>, context: &mut Context) -> Result<HashSet<Vec<u8>>> {
    let mut keys = HashSet::new();
    for item in list.iter() {
        let item = item?.1;
        context.budget.work(VISIT + item.stored_len())?;
        if item.read()?.is_scalar() {
            let mut key = Vec::new();
            item.append_key(&mut key)?;
            keys.insert(key);
        }
    }
    Ok(keys)
}

/// Whether a value is contained in one of an array's elements, of which `scalars` has the keys.
fn is_among(value: JsonRef<'_>, list: &List<'_>, scalars: &HashSet<Vec<u8>>, context: &mut Context) -> Result<bool> {
    let is_scalar = value.read()?.is_scalar();
    if is_scalar {
        let mut key = Vec::new();
        value.append_key(&mut key)?;
        if scalars.contains(&key) {
            return Ok(true);
        }
    }
    for item in list.iter() {
        let item = item?.1;
        context.budget.work(VISIT)?;
        // A scalar may be in an array among the elements.
        if !item.read()?.is_scalar() && is_in(value, item, context)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contains_path(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let document = document(c, 0, context)?;
    let one = is_one(c, 1)?;
    for at in 2..c.len() {
        let path = path(c, at, context)?;
        let exists = !found(&path, document.get(), context)?.is_empty();
        if exists == one {
            return Ok(Value::Int(one.into()));
        }
    }
    Ok(Value::Int((!one).into()))
}

fn overlap(a: JsonRef<'_>, b: JsonRef<'_>, context: &mut Context) -> Result<bool> {
    context.budget.work(a.stored_len() + b.stored_len())?;
    let key = |value: JsonRef<'_>| {
        let mut key = Vec::new();
        value.append_key(&mut key).map(|()| key)
    };
    Ok(match (a.read()?, b.read()?) {
        (Node::Object(a), Node::Object(b)) => {
            for member in a.iter() {
                let (name, value) = member?;
                if let Some(place) = b.find(name)?
                    && equal(value, b.value(place)?)?
                {
                    return Ok(true);
                }
            }
            false
        }
        (Node::Array(a), Node::Array(b)) => {
            let keys = a.iter().map(|item| key(item?.1)).collect::<std::result::Result<HashSet<_>, _>>()?;
            for item in b.iter() {
                if keys.contains(&key(item?.1)?) {
                    return Ok(true);
                }
            }
            false
        }
        (Node::Array(list), _) => has(&list, b)?,
        (_, Node::Array(list)) => has(&list, a)?,
        _ => equal(a, b)?,
    })
}

fn has(list: &List<'_>, value: JsonRef<'_>) -> Result<bool> {
    for item in list.iter() {
        if equal(item?.1, value)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn member_of(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let mut copy = Vec::new();
    let part = json::part_of(c.value(0), &c.arguments[0], &mut copy, context)?;
    let value = json::encoded(&part, context)?;
    let ValueRef::Json(value) = value.as_ref() else { return Ok(Value::Null) };
    let array = document(c, 1, context)?;
    context.budget.work(array.get().stored_len())?;
    let found = match array.get().read()? {
        Node::Array(list) => has(&list, value)?,
        _ => equal(array.get(), value)?,
    };
    Ok(Value::Int(found.into()))
}

struct Search<'p> {
    pattern: &'p LikePattern,
    one: bool,
    path: String,
    found: Vec<String>,
    known: HashSet<String>,
}

impl Search<'_> {
    /// Looks through a value; gives whether it is enough.
    fn look(&mut self, value: JsonRef<'_>, context: &mut Context) -> Result<bool> {
        context.budget.work(VISIT)?;
        let (list, object) = match value.read()? {
            Node::String(text) => {
                context.budget.work(text.len())?;
                if self.pattern.matches_exactly(text) && self.known.insert(self.path.clone()) {
                    context.budget.work(self.path.len())?;
                    self.found.push(self.path.clone());
                }
                return Ok(self.one && !self.found.is_empty());
            }
            Node::Array(list) => (list, false),
            Node::Object(list) => (list, true),
            _ => return Ok(false),
        };
        for (place, item) in list.iter().enumerate() {
            let (name, value) = item?;
            let before = self.path.len();
            if object {
                append_member(name, &mut self.path);
            } else {
                append_element(place, &mut self.path);
            }
            let enough = self.look(value, context)?;
            self.path.truncate(before);
            if enough {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Paths of the strings that are like a pattern.
fn search(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    // Only the escape character may be NULL.
    if (0..c.len()).any(|at| at != 3 && c.is_null(at)) {
        return Ok(Value::Null);
    }
    let document = document(c, 0, context)?;
    let one = is_one(c, 1)?;
    let mut escape = Some('\\');
    if c.has(3) && !c.is_null(3) {
        let text = c.text(3);
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (None, _) => {}
            (Some(character), None) => escape = Some(character),
            _ => return Err(MysqlError::new(1210, "Incorrect arguments to ESCAPE")),
        }
    }
    let text = c.text(2);
    context.budget.work(text.len() * LikePattern::BYTES)?;
    let pattern = LikePattern::new(&text, escape);
    let mut search = Search { pattern: &pattern, one, path: "$".into(), found: vec![], known: HashSet::new() };
    if c.len() <= 4 {
        search.look(document.get(), context)?;
    }
    for at in 4..c.len() {
        let path = path(c, at, context)?;
        for (place, value) in located(&path, document.get(), context)? {
            search.path = place;
            if search.look(value, context)? {
                break;
            }
        }
        if one && !search.found.is_empty() {
            break;
        }
    }
    let strings = |found: Vec<String>| found.into_iter().map(|path| Json::String(Cow::Owned(path)));
    let mut found = search.found;
    match found.len() {
        0 => Ok(Value::Null),
        1 => json::encoded(&Json::String(Cow::Owned(found.remove(0))), context),
        _ => json::encoded(&Json::Array(strings(found).collect()), context),
    }
}

/// What a path finds, with the paths without wildcards that lead there.
fn located<'v>(
    path: &crate::expr::json::path::Path,
    document: JsonRef<'v>,
    context: &mut Context,
) -> Result<Vec<(String, JsonRef<'v>)>> {
    let wanted: HashSet<*const u8> = found(path, document, context)?.into_iter().map(JsonRef::address).collect();
    let mut out = Vec::new();
    collect(document, &mut String::from("$"), &wanted, &mut out, context)?;
    Ok(out)
}

fn collect<'v>(
    value: JsonRef<'v>,
    path: &mut String,
    wanted: &HashSet<*const u8>,
    out: &mut Vec<(String, JsonRef<'v>)>,
    context: &mut Context,
) -> Result<()> {
    context.budget.work(VISIT)?;
    if wanted.contains(&value.address()) {
        out.push((path.clone(), value));
    }
    let Some(list) = value.list()? else { return Ok(()) };
    for (place, item) in list.iter().enumerate() {
        let (name, value) = item?;
        let before = path.len();
        if list.is_object() {
            append_member(name, path);
        } else {
            append_element(place, path);
        }
        collect(value, path, wanted, out, context)?;
        path.truncate(before);
    }
    Ok(())
}

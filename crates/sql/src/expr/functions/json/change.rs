//! Functions that give a changed document.
//!
//! The document is opened along the paths only; what no path goes through is copied as it lies. Pairs are applied from left to right, each to
//! what those before it have made.

use super::{Call, Derived, Function, Typing, document, json_or_null, path, single};
use crate::expr::convert::Result;
use crate::expr::json::{
    self,
    path::{Index, Leg},
};
use crate::expr::{Context, Expr, bind_document};
use rauk_types::json::{Json, Members, Normal};
use rauk_types::{DataType, MysqlError, TypeKind, Value};
use std::borrow::Cow;

pub const FUNCTIONS: &[Function] = &[
    pairs(Function::new("JSON_SET", 3, u8::MAX, pairs_type, |c, x| {
        change(c, x, Change { insert: true, replace: true })
    })),
    pairs(Function::new("JSON_INSERT", 3, u8::MAX, pairs_type, |c, x| {
        change(c, x, Change { insert: true, replace: false })
    })),
    pairs(Function::new("JSON_REPLACE", 3, u8::MAX, pairs_type, |c, x| {
        change(c, x, Change { insert: false, replace: true })
    })),
    pairs(Function::new("JSON_ARRAY_APPEND", 3, u8::MAX, pairs_type, append)),
    pairs(Function::new("JSON_ARRAY_INSERT", 3, u8::MAX, pairs_type, insert)),
    Function::new("JSON_REMOVE", 2, u8::MAX, json_or_null, remove).unbounded(),
    Function::new("JSON_MERGE", 2, u8::MAX, json_or_null, merge_deprecated).unbounded(),
    Function::new("JSON_MERGE_PRESERVE", 2, u8::MAX, json_or_null, merge).unbounded(),
    Function::new("JSON_MERGE_PATCH", 2, u8::MAX, json_or_null, patch).with_null().unbounded(),
];

/// A document, then paths and values.
const fn pairs(function: Function) -> Function {
    function.with_null().unbounded()
}

fn pairs_type(t: Typing<'_>) -> Result<Derived> {
    if t.arguments.len().is_multiple_of(2) {
        let name = t.name.to_ascii_lowercase();
        let message = format!("Incorrect parameter count in the call to native function '{name}'");
        return Err(MysqlError::new(rauk_types::error::codes::WRONG_PARAMCOUNT_TO_NATIVE_FCT, message));
    }
    for argument in t.arguments.iter_mut().skip(2).step_by(2) {
        *argument = bind_document(std::mem::replace(argument, Expr::null()));
    }
    Ok(Derived::new(DataType::new(TypeKind::Json)).nullable())
}

#[derive(Clone, Copy)]
struct Change {
    insert: bool,
    replace: bool,
}

/// The value that legs lead to, where there is one.
fn locate<'t, 'a>(tree: &'t mut Json<'a>, legs: &[Leg]) -> Result<Option<&'t mut Json<'a>>> {
    let mut tree = tree;
    for leg in legs {
        let next = match (leg, tree.open()?) {
            (Leg::Member(name), Json::Object(members)) => members.get_mut(name),
            (Leg::Element(index), Json::Array(items)) => {
                let place = index.place(items.len());
                place.and_then(|place| items.get_mut(place))
            }
            // Of an array of this value alone.
            (Leg::Element(index), scalar) if index.place(1) == Some(0) => Some(scalar),
            _ => None,
        };
        match next {
            Some(next) => tree = next,
            None => return Ok(None),
        }
    }
    Ok(Some(tree))
}

/// Puts a value where a path leads.
type Put<'p> = dyn for<'a> Fn(&mut Json<'a>, &[Leg], Place, Json<'a>) -> Result<()> + 'p;

/// Applies `apply` to the tree for each path and value. NULL when the document or a path is NULL.
fn with_pairs(
    c: &Call<'_, '_>,
    context: &mut Context,
    apply: &dyn Fn(&mut Json<'_>, &[Leg]) -> Result<Place>,
    put: &Put<'_>,
) -> Result<Value> {
    if c.is_null(0) || (1..c.len()).step_by(2).any(|at| c.is_null(at)) {
        return Ok(Value::Null);
    }
    let document = document(c, 0, context)?;
    let mut copies = vec![Vec::new(); c.len() / 2];
    let mut tree = Json::Stored(document.get());
    for (pair, copy) in copies.iter_mut().enumerate() {
        let path = path(c, 1 + 2 * pair, context)?;
        single(&path)?;
        let at = 2 + 2 * pair;
        let value = json::part_of(c.value(at), &c.arguments[at], copy, context)?;
        let place = apply(&mut tree, path.legs())?;
        put(&mut tree, path.legs(), place, value)?;
        context.budget.work(64 * path.legs().len() + 64)?;
    }
    json::encoded(&tree, context)
}

/// Whether a path leads to a value.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Found,
    Missing,
}

fn place(tree: &mut Json<'_>, legs: &[Leg]) -> Result<Place> {
    Ok(if locate(tree, legs)?.is_some() { Place::Found } else { Place::Missing })
}

fn change(c: &Call<'_, '_>, context: &mut Context, how: Change) -> Result<Value> {
    with_pairs(c, context, &place, &move |tree, legs, place, value| put(tree, legs, place, value, how))
}

fn put<'a>(tree: &mut Json<'a>, legs: &[Leg], place: Place, value: Json<'a>, how: Change) -> Result<()> {
    if place == Place::Found {
        if how.replace
            && let Some(old) = locate(tree, legs)?
        {
            *old = value;
        }
        return Ok(());
    }
    let Some((last, before)) = legs.split_last().filter(|_| how.insert) else { return Ok(()) };
    let Some(parent) = locate(tree, before)? else { return Ok(()) };
    match (last, parent.open()?) {
        (Leg::Member(name), Json::Object(members)) => members.insert(Cow::Owned(name.clone()), value),
        (Leg::Element(index), Json::Array(items)) => match index {
            Index::First(_) => items.push(value),
            // Before its beginning.
            Index::Last(_) => items.insert(0, value),
        },
        // A value that is no array becomes one.
        (Leg::Element(index), single) => {
            let old = std::mem::replace(single, Json::Null);
            *single = Json::Array(match index {
                Index::First(_) => vec![old, value],
                Index::Last(_) => vec![value, old],
            });
        }
        _ => {}
    }
    Ok(())
}

fn append(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    with_pairs(c, context, &place, &|tree, legs, place, value| {
        if place == Place::Missing {
            return Ok(());
        }
        if let Some(target) = locate(tree, legs)? {
            match target.open()? {
                Json::Array(items) => items.push(value),
                single => {
                    let old = std::mem::replace(single, Json::Null);
                    *single = Json::Array(vec![old, value]);
                }
            }
        }
        Ok(())
    })
}

/// Error 3165: the path leads to no element of an array.
fn insert(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let check = |_: &mut Json<'_>, legs: &[Leg]| match legs.last() {
        Some(Leg::Element(_)) => Ok(Place::Found),
        _ => Err(MysqlError::new(3165, "A path expression is not a path to a cell in an array.")),
    };
    with_pairs(c, context, &check, &|tree, legs, _, value| {
        let Some((Leg::Element(index), before)) = legs.split_last() else { return Ok(()) };
        if let Some(parent) = locate(tree, before)?
            && let Json::Array(items) = parent.open()?
        {
            let at = index.place(items.len()).unwrap_or(0).min(items.len());
            items.insert(at, value);
        }
        Ok(())
    })
}

fn remove(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let document = document(c, 0, context)?;
    let mut tree = Json::Stored(document.get());
    for at in 1..c.len() {
        let path = path(c, at, context)?;
        single(&path)?;
        let Some((last, before)) = path.legs().split_last() else {
            return Err(MysqlError::new(3153, "The path expression '$' is not allowed in this context."));
        };
        let Some(parent) = locate(&mut tree, before)? else { continue };
        match (last, parent.open()?) {
            (Leg::Member(name), Json::Object(members)) => drop(members.remove(name)),
            (Leg::Element(index), Json::Array(items)) => {
                if let Some(place) = index.place(items.len()).filter(|place| *place < items.len()) {
                    items.remove(place);
                }
            }
            _ => {}
        }
    }
    json::encoded(&tree, context)
}

fn merge_deprecated(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let message = "'JSON_MERGE' is deprecated and will be removed in a future release. Please use \
                   JSON_MERGE_PRESERVE/JSON_MERGE_PATCH instead";
    context.warn(1287, message.to_string());
    merge(c, context)
}

fn documents<'c>(c: &'c Call<'_, '_>, context: &mut Context) -> Result<Vec<Normal<'c>>> {
    (0..c.len()).map(|at| document(c, at, context)).collect()
}

fn merge(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let documents = documents(c, context)?;
    let mut all = documents.iter().map(|document| Json::Stored(document.get()));
    let mut tree = all.next().unwrap_or(Json::Null);
    for other in all {
        preserve(&mut tree, other, context)?;
    }
    json::encoded(&tree, context)
}

/// Arrays are joined, objects member by member; what is neither becomes an array first.
fn preserve<'a>(tree: &mut Json<'a>, mut other: Json<'a>, context: &mut Context) -> Result<()> {
    context.budget.work(64)?;
    tree.open()?;
    other.open()?;
    if let (Json::Object(members), Json::Object(_)) = (&mut *tree, &other) {
        let Json::Object(others) = other else { return Ok(()) };
        let mut new = Vec::new();
        for (name, value) in others.into_list() {
            match members.get_mut(&name) {
                Some(old) => preserve(old, value, context)?,
                None => new.push((name, value)),
            }
        }
        add(members, new);
        return Ok(());
    }
    let items = |json: Json<'a>| match json {
        Json::Array(items) => items,
        single => vec![single],
    };
    let mut joined = items(std::mem::replace(tree, Json::Null));
    joined.extend(items(other));
    *tree = Json::Array(joined);
    Ok(())
}

/// Adds members whose names are new.
fn add<'a>(members: &mut Members<'a>, new: Vec<(Cow<'a, str>, Json<'a>)>) {
    if !new.is_empty() {
        let mut list = std::mem::take(members).into_list();
        list.extend(new);
        *members = Members::new(list);
    }
}

/// RFC 7396. NULL beside documents gives NULL, until a later argument is no object.
fn patch(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let mut documents = Vec::with_capacity(c.len());
    for at in 0..c.len() {
        documents.push(if c.is_null(at) { None } else { Some(document(c, at, context)?) });
    }
    let mut tree: Option<Json<'_>> = None;
    for (at, document) in documents.iter().enumerate() {
        let Some(document) = document else {
            tree = None;
            continue;
        };
        let mut other = Json::Stored(document.get());
        let is_object = matches!(other.open()?, Json::Object(_));
        tree = match tree {
            _ if at == 0 || !is_object => Some(other),
            Some(mut tree) => {
                patched(&mut tree, other, context)?;
                Some(tree)
            }
            None => None,
        };
    }
    match tree {
        Some(tree) => json::encoded(&tree, context),
        None => Ok(Value::Null),
    }
}

fn patched<'a>(tree: &mut Json<'a>, mut other: Json<'a>, context: &mut Context) -> Result<()> {
    context.budget.work(64)?;
    other.open()?;
    let Json::Object(others) = other else {
        *tree = other;
        return Ok(());
    };
    if !matches!(tree.open()?, Json::Object(_)) {
        *tree = Json::Object(Members::default());
    }
    let Json::Object(members) = tree else { return Ok(()) };
    let (mut new, mut gone) = (Vec::new(), Vec::new());
    for (name, mut value) in others.into_list() {
        if *value.open()? == Json::Null {
            gone.push(name);
        } else if let Some(old) = members.get_mut(&name) {
            patched(old, value, context)?;
        } else {
            let mut fresh = Json::Null;
            patched(&mut fresh, value, context)?;
            new.push((name, fresh));
        }
    }
    if !gone.is_empty() {
        let gone: std::collections::HashSet<Cow<'_, str>> = gone.into_iter().collect();
        let list = std::mem::take(members).into_list();
        *members = Members::new(list.into_iter().filter(|(name, _)| !gone.contains(name)).collect());
    }
    add(members, new);
    Ok(())
}

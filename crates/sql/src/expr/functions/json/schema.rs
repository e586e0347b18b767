//! JSON_SCHEMA_VALID and JSON_SCHEMA_VALIDATION_REPORT: JSON Schema, draft 4, as MySQL has it.
//!
//! The validator is ours: the crate `jsonschema` brings a client for the network and documents of its own form, while here schema and document
//! are read where they lie, and time is counted. References lead into the schema itself (`#/definitions/x`); others are refused (1235). Keywords that draft
//! 4 has not are ignored, as are patterns that are no regular expressions of ours.

use super::{Call, Derived, Function, document, json_or_null, lower, rules};
use crate::expr::Context;
use crate::expr::convert::Result;
use crate::expr::json;
use rauk_types::json::{Json, JsonRef, List, Members, Node};
use rauk_types::{MysqlError, Value};
use std::borrow::Cow;

pub const FUNCTIONS: &[Function] = &[
    Function::new("JSON_SCHEMA_VALID", 2, 2, rules::integer_or_null, |c, x| {
        Ok(Value::Int(validate(c, x)?.is_none().into()))
    })
    .unbounded(),
    Function::new("JSON_SCHEMA_VALIDATION_REPORT", 2, 2, |t| json_or_null(t).map(Derived::nullable), report)
        .unbounded(),
];

/// References followed in one go.
const MOST_REFERENCES: usize = 64;
/// Bytes that a pattern may compile into.
const PATTERN_BYTES: usize = 1 << 20;

/// What a document does not fulfil.
struct Failure {
    keyword: &'static str,
    schema: String,
    document: String,
}

struct Validator<'s, 'c> {
    root: JsonRef<'s>,
    context: &'c mut Context,
}

type Checked = Result<Option<Failure>>;

fn validate(c: &Call<'_, '_>, context: &mut Context) -> Checked {
    let (schema, document) = (document(c, 0, context)?, document(c, 1, context)?);
    if !matches!(schema.get().read()?, Node::Object(_)) {
        let name = lower(c);
        let message = format!("Invalid JSON type in argument 1 to function {name}; an object is required.");
        return Err(MysqlError::new(3853, message));
    }
    let mut validator = Validator { root: schema.get(), context };
    validator.check(schema.get(), document.get(), &mut "#".into(), &mut "#".into(), 0)
}

fn report(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let mut members = Vec::new();
    let text = |text: String| Json::String(Cow::Owned(text));
    match validate(c, context)? {
        None => members.push((Cow::Borrowed("valid"), Json::Bool(true))),
        Some(Failure { keyword, schema, document }) => {
            let reason = format!(
                "The JSON document location '{document}' failed requirement '{keyword}' at JSON Schema location '{schema}'"
            );
            members.push((Cow::Borrowed("valid"), Json::Bool(false)));
            members.push((Cow::Borrowed("reason"), text(reason)));
            members.push((Cow::Borrowed("schema-location"), text(schema)));
            members.push((Cow::Borrowed("document-location"), text(document)));
            members.push((Cow::Borrowed("schema-failed-keyword"), text(keyword.to_string())));
        }
    }
    json::encoded(&Json::Object(Members::new(members)), context)
}

fn member<'v>(list: &List<'v>, name: &str) -> Result<Option<JsonRef<'v>>> {
    Ok(list.find(name)?.map(|place| list.value(place)).transpose()?)
}

fn number(value: JsonRef<'_>) -> Result<Option<f64>> {
    Ok(match value.read()? {
        Node::Int(v) => Some(v as f64),
        Node::UInt(v) => Some(v as f64),
        Node::Double(v) => Some(v),
        Node::Decimal(v) => Some(v.to_f64()),
        _ => None,
    })
}

fn count(value: Option<JsonRef<'_>>) -> Result<Option<usize>> {
    let number = value.map(number).transpose()?.flatten();
    Ok(number.filter(|number| *number >= 0.0).map(|number| number as usize))
}

fn is_true(value: Option<JsonRef<'_>>) -> Result<bool> {
    Ok(value.map(JsonRef::read).transpose()? == Some(Node::Bool(true)))
}

fn has_type(value: &Node<'_>, name: &str) -> bool {
    match value {
        Node::Null => name == "null",
        Node::Bool(_) => name == "boolean",
        Node::Int(_) | Node::UInt(_) => name == "integer" || name == "number",
        Node::Double(_) | Node::Decimal(_) => name == "number",
        Node::Array(_) => name == "array",
        Node::Object(_) => name == "object",
        _ => name == "string",
    }
}

/// Runs a check below: with names added to where it is in the schema and in the document.
macro_rules! below {
    ($self:ident, $schema:expr, $value:expr, $at:ident + $name:expr, $place:ident + $part:expr, $references:expr) => {{
        let (schema_end, document_end) = ($at.len(), $place.len());
        $at.push_str(&$name);
        $place.push_str(&$part);
        let checked = $self.check($schema, $value, $at, $place, $references);
        $at.truncate(schema_end);
        $place.truncate(document_end);
        checked?
    }};
}

impl<'s> Validator<'s, '_> {
    fn check(
        &mut self,
        schema: JsonRef<'_>,
        value: JsonRef<'_>,
        at: &mut String,
        place: &mut String,
        references: usize,
    ) -> Checked {
        self.context.budget.work(256)?;
        let Node::Object(rules) = schema.read()? else { return Ok(None) };
        if let Some(reference) = member(&rules, "$ref")?
            && let Node::String(reference) = reference.read()?
        {
            let Some(pointer) = reference.strip_prefix('#') else {
                let message = "This version of MySQL doesn't yet support 'references to external JSON Schema'";
                return Err(MysqlError::new(1235, message));
            };
            let Some(found) = self.at_pointer(pointer)?.filter(|_| references < MOST_REFERENCES) else {
                return Ok(None);
            };
            let mut at = format!("#{pointer}");
            return self.check(found, value, &mut at, place, references + 1);
        }
        let node = value.read()?;
        let fail = |keyword: &'static str| Ok(Some(Failure { keyword, schema: at.clone(), document: place.clone() }));
        if let Some(wanted) = member(&rules, "type")? {
            let fits = match wanted.read()? {
                Node::String(name) => has_type(&node, name),
                Node::Array(names) => {
                    let mut fits = false;
                    for name in names.iter() {
                        fits |= matches!(name?.1.read()?, Node::String(name) if has_type(&node, name));
                    }
                    fits
                }
                _ => true,
            };
            if !fits {
                return fail("type");
            }
        }
        if let Some(list) = member(&rules, "enum")?
            && let Node::Array(list) = list.read()?
        {
            let mut found = false;
            for item in list.iter() {
                found |= item?.1.compare(value)?.is_eq();
            }
            if !found {
                return fail("enum");
            }
        }
        let failed = match &node {
            Node::String(text) => self.text(&rules, text)?,
            Node::Object(list) => object_bounds(&rules, list)?,
            Node::Array(list) => array_bounds(&rules, list)?,
            _ => numeric(&rules, value)?,
        };
        if let Some(keyword) = failed {
            return fail(keyword);
        }
        let inner = match &node {
            Node::Object(list) => self.members(&rules, list, at, place, references)?,
            Node::Array(list) => self.elements(&rules, list, at, place, references)?,
            _ => None,
        };
        if inner.is_some() {
            return Ok(inner);
        }
        self.combined(&rules, value, at, place, references)
    }

    /// The schema at a pointer into the root.
    fn at_pointer(&self, pointer: &str) -> Result<Option<JsonRef<'s>>> {
        let mut value = self.root;
        for part in pointer.split('/').skip(1) {
            let name = part.replace("~1", "/").replace("~0", "~");
            let next = match value.read()? {
                Node::Object(list) => member(&list, &name)?,
                Node::Array(list) => match name.parse::<usize>() {
                    Ok(place) if place < list.len() => Some(list.value(place)?),
                    _ => None,
                },
                _ => None,
            };
            match next {
                Some(next) => value = next,
                None => return Ok(None),
            }
        }
        Ok(Some(value))
    }

    fn text(&mut self, rules: &List<'_>, text: &str) -> Result<Option<&'static str>> {
        let length = text.chars().count();
        if count(member(rules, "minLength")?)?.is_some_and(|least| length < least) {
            return Ok(Some("minLength"));
        }
        if count(member(rules, "maxLength")?)?.is_some_and(|most| length > most) {
            return Ok(Some("maxLength"));
        }
        if let Some(pattern) = member(rules, "pattern")?
            && let Node::String(pattern) = pattern.read()?
            && !self.is_like(pattern, text)?
        {
            return Ok(Some("pattern"));
        }
        Ok(None)
    }

    /// Whether a pattern is somewhere in a text.
    fn is_like(&mut self, pattern: &str, text: &str) -> Result<bool> {
        self.context.budget.work(pattern.len() * 64 + text.len())?;
        let compiled = regex::RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build();
        Ok(compiled.map_or(true, |compiled| compiled.is_match(text)))
    }

    fn members(
        &mut self,
        rules: &List<'_>,
        list: &List<'_>,
        at: &mut String,
        place: &mut String,
        references: usize,
    ) -> Checked {
        let object = |name: &str| -> Result<Option<List<'_>>> {
            Ok(match member(rules, name)?.map(JsonRef::read).transpose()? {
                Some(Node::Object(list)) => Some(list),
                _ => None,
            })
        };
        let (properties, patterns) = (object("properties")?, object("patternProperties")?);
        let additional = member(rules, "additionalProperties")?;
        for item in list.iter() {
            let (name, value) = item?;
            let mut known = false;
            if let Some(schema) = properties.map(|list| member(&list, name)).transpose()?.flatten() {
                known = true;
                let failed = below!(
                    self,
                    schema,
                    value,
                    at + format!("/properties/{name}"),
                    place + format!("/{name}"),
                    references
                );
                if failed.is_some() {
                    return Ok(failed);
                }
            }
            for pattern in patterns.iter().flat_map(List::iter) {
                let (pattern, schema) = pattern?;
                if self.is_like(pattern, name)? {
                    known = true;
                    let failed = below!(
                        self,
                        schema,
                        value,
                        at + format!("/patternProperties/{pattern}"),
                        place + format!("/{name}"),
                        references
                    );
                    if failed.is_some() {
                        return Ok(failed);
                    }
                }
            }
            if let Some(additional) = additional.filter(|_| !known) {
                if additional.read()? == Node::Bool(false) {
                    let document = format!("{place}/{name}");
                    return Ok(Some(Failure { keyword: "additionalProperties", schema: at.clone(), document }));
                }
                let failed = below!(
                    self,
                    additional,
                    value,
                    at + "/additionalProperties",
                    place + format!("/{name}"),
                    references
                );
                if failed.is_some() {
                    return Ok(failed);
                }
            }
        }
        let Some(dependencies) = object("dependencies")? else { return Ok(None) };
        for dependency in dependencies.iter() {
            let (name, wanted) = dependency?;
            if list.find(name)?.is_none() {
                continue;
            }
            if let Node::Array(names) = wanted.read()? {
                for other in names.iter() {
                    if matches!(other?.1.read()?, Node::String(other) if list.find(other)?.is_none()) {
                        let (schema, document) = (at.clone(), place.clone());
                        return Ok(Some(Failure { keyword: "dependencies", schema, document }));
                    }
                }
            }
        }
        Ok(None)
    }

    fn elements(
        &mut self,
        rules: &List<'_>,
        list: &List<'_>,
        at: &mut String,
        place: &mut String,
        references: usize,
    ) -> Checked {
        let Some(items) = member(rules, "items")? else { return Ok(None) };
        let each = match items.read()? {
            Node::Array(each) => Some(each),
            _ => None,
        };
        for (number, item) in list.iter().enumerate() {
            let value = item?.1;
            let (schema, name) = match each {
                None => (items, "/items".to_string()),
                Some(each) if number < each.len() => (each.value(number)?, format!("/items/{number}")),
                Some(_) => match member(rules, "additionalItems")? {
                    Some(schema) if schema.read()? == Node::Bool(false) => {
                        let (schema, document) = (at.clone(), format!("{place}/{number}"));
                        return Ok(Some(Failure { keyword: "additionalItems", schema, document }));
                    }
                    Some(schema) => (schema, "/additionalItems".to_string()),
                    None => break,
                },
            };
            let failed = below!(self, schema, value, at + name, place + format!("/{number}"), references);
            if failed.is_some() {
                return Ok(failed);
            }
        }
        Ok(None)
    }

    /// allOf, anyOf, oneOf and not.
    fn combined(
        &mut self,
        rules: &List<'_>,
        value: JsonRef<'_>,
        at: &mut String,
        place: &mut String,
        references: usize,
    ) -> Checked {
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let Some(Node::Array(all)) = member(rules, keyword)?.map(JsonRef::read).transpose()? else { continue };
            let (mut fitting, mut number) = (0, 0);
            for schema in all.iter() {
                let failed =
                    below!(self, schema?.1, value, at + format!("/{keyword}/{number}"), place + "", references + 1);
                fitting += usize::from(failed.is_none());
                number += 1;
            }
            let fits = match keyword {
                "allOf" => fitting == number,
                "anyOf" => fitting > 0,
                _ => fitting == 1,
            };
            if !fits {
                return Ok(Some(Failure { keyword, schema: at.clone(), document: place.clone() }));
            }
        }
        if let Some(schema) = member(rules, "not")? {
            let failed = below!(self, schema, value, at + "/not", place + "", references + 1);
            if failed.is_none() {
                return Ok(Some(Failure { keyword: "not", schema: at.clone(), document: place.clone() }));
            }
        }
        Ok(None)
    }
}

fn object_bounds(rules: &List<'_>, list: &List<'_>) -> Result<Option<&'static str>> {
    if count(member(rules, "minProperties")?)?.is_some_and(|least| list.len() < least) {
        return Ok(Some("minProperties"));
    }
    if count(member(rules, "maxProperties")?)?.is_some_and(|most| list.len() > most) {
        return Ok(Some("maxProperties"));
    }
    if let Some(Node::Array(names)) = member(rules, "required")?.map(JsonRef::read).transpose()? {
        for name in names.iter() {
            if matches!(name?.1.read()?, Node::String(name) if list.find(name)?.is_none()) {
                return Ok(Some("required"));
            }
        }
    }
    Ok(None)
}

fn array_bounds(rules: &List<'_>, list: &List<'_>) -> Result<Option<&'static str>> {
    if count(member(rules, "minItems")?)?.is_some_and(|least| list.len() < least) {
        return Ok(Some("minItems"));
    }
    if count(member(rules, "maxItems")?)?.is_some_and(|most| list.len() > most) {
        return Ok(Some("maxItems"));
    }
    if is_true(member(rules, "uniqueItems")?)? {
        let mut known = std::collections::HashSet::new();
        for item in list.iter() {
            let mut key = Vec::new();
            item?.1.append_key(&mut key)?;
            if !known.insert(key) {
                return Ok(Some("uniqueItems"));
            }
        }
    }
    Ok(None)
}

fn numeric(rules: &List<'_>, value: JsonRef<'_>) -> Result<Option<&'static str>> {
    let Some(own) = number(value)? else { return Ok(None) };
    if let Some(least) = member(rules, "minimum")?.filter(|bound| number(*bound).is_ok_and(|n| n.is_some())) {
        let order = value.compare(least)?;
        let exclusive = is_true(member(rules, "exclusiveMinimum")?)?;
        if order.is_lt() || exclusive && order.is_eq() {
            return Ok(Some(if exclusive { "exclusiveMinimum" } else { "minimum" }));
        }
    }
    if let Some(most) = member(rules, "maximum")?.filter(|bound| number(*bound).is_ok_and(|n| n.is_some())) {
        let order = value.compare(most)?;
        let exclusive = is_true(member(rules, "exclusiveMaximum")?)?;
        if order.is_gt() || exclusive && order.is_eq() {
            return Ok(Some(if exclusive { "exclusiveMaximum" } else { "maximum" }));
        }
    }
    if let Some(unit) = member(rules, "multipleOf")?.map(number).transpose()?.flatten().filter(|unit| *unit > 0.0)
        && (own / unit - (own / unit).round()).abs() > 1e-9
    {
        return Ok(Some("multipleOf"));
    }
    Ok(None)
}

//! What a path finds in a document.
//!
//! A set of nodes is in the order in which it was found. A node of it knows its position among those that one step
//! found from one node, which `[n]` and `position()` ask for; `last()` is the size of the whole set, as in MySQL. A
//! comparison of a set with a value holds when it holds for one of the texts that stand in its nodes.

use super::document::{Document, Kind};
use super::path::{Arithmetic, Axis, Comparison, Function, Path};
use crate::expr::Context;
use crate::expr::convert::{self, Result};
use rauk_types::format::{append_f64, append_text};
use rauk_types::{Collation, DataType, MysqlError, TypeKind, Value, ValueRef};
use std::cmp::Ordering;

/// A node of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    pub node: usize,
    /// From 0.
    position: usize,
    /// Of the set, where a predicate judges it; 0 elsewhere.
    of: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    Nodes(Vec<Hit>),
    Number(Number),
    Truth(bool),
    Text(String),
    /// Of a division by zero.
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number {
    value: f64,
    /// Digits that are shown behind the point; `None`: as many as it has.
    digits: Option<u8>,
}

impl Number {
    fn whole(value: f64) -> Number {
        Number { value, digits: Some(0) }
    }
}

struct Search<'d, 't, 'c> {
    document: &'d Document<'t>,
    collation: Collation,
    context: &'c mut Context,
}

/// Looking at a node costs as much as going through so many bytes.
const NODE_BYTES: usize = 16;

/// The value of a path, whose texts compare in `collation`. Errors: 1317, 3024.
pub fn find(path: &Path, document: &Document<'_>, collation: Collation, context: &mut Context) -> Result<Found> {
    let root = Hit { node: 0, position: 0, of: 0 };
    Search { document, collation, context }.value(path, root)
}

fn number_text(number: Number) -> String {
    if let Some(digits) = number.digits {
        return format!("{:.*}", usize::from(digits), number.value);
    }
    let mut out = Vec::new();
    append_f64(number.value, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The texts that stand in the nodes of a set, in the order of the document; other values as text.
pub fn string(found: &Found, document: &Document<'_>) -> String {
    match found {
        Found::Text(text) => text.clone(),
        Found::Number(number) => number_text(*number),
        Found::Truth(truth) => u8::from(*truth).to_string(),
        Found::Null => String::new(),
        Found::Nodes(hits) => {
            let mut wanted = vec![false; document.nodes.len()];
            hits.iter().for_each(|hit| wanted[hit.node] = true);
            let shown = document.nodes.iter().enumerate().filter(|(number, node)| match node.kind {
                Kind::Text => wanted[node.parent],
                Kind::Attribute => wanted[*number],
                Kind::Root | Kind::Element => false,
            });
            shown.map(|(_, node)| &document.text[node.value.clone()]).collect::<Vec<_>>().join(" ")
        }
    }
}

impl Search<'_, '_, '_> {
    fn value(&mut self, path: &Path, here: Hit) -> Result<Found> {
        Ok(match path {
            Path::Root => Found::Nodes(vec![Hit { node: 0, position: 0, of: 0 }]),
            Path::Here => Found::Nodes(vec![here]),
            Path::Step { from, axis, name } => {
                let from = self.nodes(from, here)?;
                Found::Nodes(self.step(&from, *axis, name.as_deref())?)
            }
            Path::Filter { from, by } => {
                let from = self.nodes(from, here)?;
                Found::Nodes(self.filter(from, by)?)
            }
            Path::Union(left, right) => {
                let mut nodes: Vec<usize> = self.nodes(left, here)?.iter().map(|hit| hit.node).collect();
                nodes.extend(self.nodes(right, here)?.iter().map(|hit| hit.node));
                nodes.sort_unstable();
                nodes.dedup();
                Found::Nodes(
                    nodes.into_iter().enumerate().map(|(position, node)| Hit { node, position, of: 0 }).collect(),
                )
            }
            Path::Number(value, digits) => Found::Number(Number { value: *value, digits: Some(*digits) }),
            Path::Text(text) => Found::Text(text.clone()),
            Path::UserVariable(name) => self.variable(name),
            Path::And(left, right) => Found::Truth(self.truth(left, here)? && self.truth(right, here)?),
            Path::Or(left, right) => Found::Truth(self.truth(left, here)? || self.truth(right, here)?),
            Path::Compare(comparison, left, right) => {
                let (left, right) = (self.value(left, here)?, self.value(right, here)?);
                Found::Truth(self.compare(*comparison, &left, &right)?)
            }
            Path::Arithmetic(operation, left, right) => {
                let (left, right) = (self.number(left, here)?, self.number(right, here)?);
                self.arithmetic(*operation, left, right)?
            }
            Path::Negate(inside) => match self.number(inside, here)? {
                Some(number) => Found::Number(Number { value: -number.value, ..number }),
                None => Found::Null,
            },
            Path::Call(function, arguments) => self.call(*function, arguments, here)?,
        })
    }

    /// Numbers stay numbers.
    fn variable(&self, name: &str) -> Found {
        let Some(known) = self.context.user_variables.get(name) else { return Found::Null };
        let number = match &known.value {
            Value::Int(number) => Some(Number::whole(*number as f64)),
            Value::UInt(number) => Some(Number::whole(*number as f64)),
            Value::Double(number) => Some(Number { value: *number, digits: None }),
            Value::Decimal(number) => Some(Number { value: number.to_f64(), digits: None }),
            _ => None,
        };
        match number {
            Some(number) => Found::Number(number),
            None if known.value == Value::Null => Found::Null,
            None => {
                let mut out = Vec::new();
                append_text(known.value.as_ref(), &DataType::new(TypeKind::LongText), &mut out);
                Found::Text(String::from_utf8_lossy(&out).into_owned())
            }
        }
    }

    fn nodes(&mut self, path: &Path, here: Hit) -> Result<Vec<Hit>> {
        match self.value(path, here)? {
            Found::Nodes(hits) => Ok(hits),
            _ => Ok(Vec::new()),
        }
    }

    /// NULL where one of them is.
    fn arithmetic(&mut self, operation: Arithmetic, left: Option<Number>, right: Option<Number>) -> Result<Found> {
        let (Some(left), Some(right)) = (left, right) else { return Ok(Found::Null) };
        let of = |combine: fn(u8, u8) -> u8| left.digits.zip(right.digits).map(|(a, b)| combine(a, b));
        let (a, b) = (left.value, right.value);
        if matches!(operation, Arithmetic::Divide | Arithmetic::Modulo) && b == 0.0 {
            self.context.division_by_zero()?;
            return Ok(Found::Null);
        }
        Ok(Found::Number(match operation {
            Arithmetic::Add => Number { value: a + b, digits: of(u8::max) },
            Arithmetic::Subtract => Number { value: a - b, digits: of(u8::max) },
            Arithmetic::Multiply => Number { value: a * b, digits: of(u8::saturating_add) },
            Arithmetic::Divide => Number::whole((a / b).trunc()),
            Arithmetic::Modulo => Number { value: a % b, digits: of(u8::max) },
        }))
    }

    fn number_of(&mut self, found: &Found) -> Result<Option<Number>> {
        let text = match found {
            Found::Number(number) => return Ok(Some(*number)),
            Found::Truth(truth) => return Ok(Some(Number::whole(f64::from(u8::from(*truth))))),
            Found::Null => return Ok(None),
            Found::Text(text) => text.clone(),
            Found::Nodes(_) => string(found, self.document),
        };
        let value = convert::to_f64(ValueRef::Str(&text), self.context)?;
        Ok(Some(Number { value, digits: None }))
    }

    fn number(&mut self, path: &Path, here: Hit) -> Result<Option<Number>> {
        let found = self.value(path, here)?;
        self.number_of(&found)
    }

    fn text(&mut self, path: &Path, here: Hit) -> Result<String> {
        let found = self.value(path, here)?;
        self.context.budget.work(self.document.nodes.len())?;
        Ok(string(&found, self.document))
    }

    fn truth(&mut self, path: &Path, here: Hit) -> Result<bool> {
        let found = self.value(path, here)?;
        Ok(match &found {
            Found::Nodes(hits) => !hits.is_empty(),
            _ => self.number_of(&found)?.is_some_and(|number| number.value != 0.0),
        })
    }

    /// The nodes of an axis from each of `from`, of a name if one is given.
    fn step(&mut self, from: &[Hit], axis: Axis, name: Option<&str>) -> Result<Vec<Hit>> {
        let document = self.document;
        let named = |node: usize| name.is_none_or(|name| document.name(node) == name);
        let parent = |node: usize| document.nodes[node].parent;
        let mut found = Vec::new();
        if matches!(axis, Axis::Parent | Axis::Ancestor { .. }) {
            let mut nodes = Vec::new();
            for hit in from {
                let mut node = hit.node;
                if axis == (Axis::Ancestor { itself: true }) && named(node) {
                    nodes.push(node);
                }
                while node > 0 {
                    self.context.budget.work(NODE_BYTES)?;
                    node = parent(node);
                    if named(node) && (node > 0 || axis == Axis::Parent) {
                        nodes.push(node);
                    }
                    if axis == Axis::Parent {
                        break;
                    }
                }
            }
            nodes.sort_unstable();
            nodes.dedup();
            let count = nodes.len();
            let position = |at: usize| if axis == Axis::Parent { at } else { count - 1 - at };
            found.extend(nodes.into_iter().enumerate().map(|(at, node)| Hit { node, position: position(at), of: 0 }));
            return Ok(found);
        }
        for hit in from {
            let mut position = if axis == Axis::Itself { found.len() } else { 0 };
            let itself = matches!(axis, Axis::Itself | Axis::Descendant { itself: true });
            if itself && named(hit.node) {
                found.push(Hit { node: hit.node, position, of: 0 });
                position += 1;
            }
            if axis == Axis::Itself {
                self.context.budget.work(NODE_BYTES)?;
                continue;
            }
            let kind = if axis == Axis::Attribute { Kind::Attribute } else { Kind::Element };
            let all = matches!(axis, Axis::Descendant { .. });
            let level = document.nodes[hit.node].level;
            for (number, node) in document.nodes.iter().enumerate().skip(hit.node + 1) {
                self.context.budget.work(NODE_BYTES)?;
                if node.level <= level {
                    break;
                }
                if node.kind == kind && (all || node.parent == hit.node) && named(number) {
                    found.push(Hit { node: number, position, of: 0 });
                    position += 1;
                }
            }
        }
        Ok(found)
    }

    /// The nodes for which a predicate holds, or whose position it is.
    fn filter(&mut self, from: Vec<Hit>, by: &Path) -> Result<Vec<Hit>> {
        let mut found = Vec::new();
        let of = from.len();
        for hit in from {
            self.context.budget.work(NODE_BYTES)?;
            let here = Hit { of, ..hit };
            let holds = if by.is_nodes() || by.is_truth() {
                self.truth(by, here)?
            } else {
                let wanted = self.number(by, here)?;
                wanted.is_some_and(|number| number.value.round_ties_even() == (hit.position + 1) as f64)
            };
            if holds {
                found.push(Hit { node: hit.node, position: found.len(), of: 0 });
            }
        }
        Ok(found)
    }

    fn compare(&mut self, comparison: Comparison, left: &Found, right: &Found) -> Result<bool> {
        let document = self.document;
        let (nodes, value, turned) = match (left, right) {
            (Found::Nodes(nodes), value) => (nodes, value, false),
            (value, Found::Nodes(nodes)) => (nodes, value, true),
            _ => return Ok(holds(comparison, self.ordering(left, right)?)),
        };
        let compare = |text: &str, search: &mut Self| -> Result<bool> {
            let text = Found::Text(text.to_string());
            let order = search.ordering(&text, value)?;
            Ok(holds(comparison, order.map(|order| if turned { order.reverse() } else { order })))
        };
        for hit in nodes {
            let node = &document.nodes[hit.node];
            if node.kind == Kind::Attribute {
                self.context.budget.work(NODE_BYTES + node.value.len())?;
                if compare(&document.text[node.value.clone()], self)? {
                    return Ok(true);
                }
                continue;
            }
            for below in document.nodes[hit.node + 1..].iter().take_while(|below| below.level > node.level) {
                self.context.budget.work(NODE_BYTES)?;
                let own = below.kind == Kind::Text && below.parent == hit.node;
                if own && compare(&document.text[below.value.clone()], self)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn ordering(&mut self, left: &Found, right: &Found) -> Result<Option<Ordering>> {
        if let (Found::Text(left), Found::Text(right)) = (left, right) {
            return Ok(Some(self.collation.compare(left.as_bytes(), right.as_bytes())));
        }
        let (Some(left), Some(right)) = (self.number_of(left)?, self.number_of(right)?) else { return Ok(None) };
        Ok(left.value.partial_cmp(&right.value))
    }

    /// A number that a function makes of one.
    fn made(&mut self, path: &Path, here: Hit, make: fn(f64) -> f64) -> Result<Found> {
        let number = self.number(path, here)?;
        Ok(number.map_or(Found::Null, |number| Found::Number(Number::whole(make(number.value)))))
    }

    fn rounded(&mut self, path: &Path, here: Hit) -> Result<i64> {
        Ok(self.number(path, here)?.map_or(0, |number| number.value.round_ties_even() as i64))
    }

    fn call(&mut self, function: Function, arguments: &[Path], here: Hit) -> Result<Found> {
        Ok(match function {
            Function::True => Found::Truth(true),
            Function::False => Found::Truth(false),
            Function::Boolean => Found::Truth(self.truth(&arguments[0], here)?),
            Function::Not => Found::Truth(!self.truth(&arguments[0], here)?),
            Function::Number => self.number(&arguments[0], here)?.map_or(Found::Null, Found::Number),
            Function::Ceiling => self.made(&arguments[0], here, f64::ceil)?,
            Function::Floor => self.made(&arguments[0], here, f64::floor)?,
            Function::Round => self.made(&arguments[0], here, f64::round_ties_even)?,
            Function::Position => Found::Number(Number::whole((here.position + 1) as f64)),
            Function::Last => Found::Number(Number::whole(here.of.max(1) as f64)),
            Function::Count => Found::Number(Number::whole(self.nodes(&arguments[0], here)?.len() as f64)),
            Function::Sum => {
                let hits = self.nodes(&arguments[0], here)?;
                let mut sum = 0.0;
                for hit in hits {
                    sum += self.sum_in(hit.node)?;
                }
                Found::Number(Number { value: sum, digits: None })
            }
            Function::Concat => {
                let mut text = String::new();
                for argument in arguments {
                    let piece = self.text(argument, here)?;
                    if text.len() + piece.len() > self.context.max_allowed_packet {
                        return Err(too_long());
                    }
                    text.push_str(&piece);
                }
                Found::Text(text)
            }
            Function::Contains => {
                let (text, sought) = (self.text(&arguments[0], here)?, self.text(&arguments[1], here)?);
                // Texts of nodes have no collation of their own here, as in MySQL.
                let of_nodes = arguments.iter().any(Path::is_nodes);
                let found = if of_nodes { text.contains(&sought) } else { self.contains(&text, &sought)? };
                Found::Truth(found)
            }
            Function::StringLength => {
                Found::Number(Number::whole(self.text(&arguments[0], here)?.chars().count() as f64))
            }
            Function::Substring => {
                let text = self.text(&arguments[0], here)?;
                let from = self.rounded(&arguments[1], here)?;
                let length = match arguments.get(2) {
                    Some(length) => usize::try_from(self.rounded(length, here)?).unwrap_or(0),
                    None => usize::MAX,
                };
                let before = match from {
                    1.. => Some(from as usize - 1),
                    0 => None,
                    _ => text.chars().count().checked_sub(from.unsigned_abs() as usize),
                };
                Found::Text(before.map_or_else(String::new, |before| text.chars().skip(before).take(length).collect()))
            }
        })
    }

    fn contains(&mut self, text: &str, sought: &str) -> Result<bool> {
        let characters = sought.chars().count();
        if characters == 0 {
            return Ok(true);
        }
        let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        for window in 0..(starts.len()).saturating_sub(characters) {
            self.context.budget.work(sought.len())?;
            let piece = &text[starts[window]..starts[window + characters]];
            if self.collation.equal(piece.as_bytes(), sought.as_bytes()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The sum of the numbers that stand in a node.
    fn sum_in(&mut self, node: usize) -> Result<f64> {
        let found = &self.document.nodes[node];
        if found.kind == Kind::Attribute {
            return convert::to_f64(ValueRef::Str(&self.document.text[found.value.clone()]), self.context);
        }
        let mut sum = 0.0;
        for below in self.document.nodes[node + 1..].iter().take_while(|below| below.level > found.level) {
            self.context.budget.work(NODE_BYTES)?;
            if below.kind == Kind::Text && below.parent == node {
                sum += convert::to_f64(ValueRef::Str(&self.document.text[below.value.clone()]), self.context)?;
            }
        }
        Ok(sum)
    }
}

fn too_long() -> MysqlError {
    MysqlError::new(rauk_types::error::codes::UNKNOWN_ERROR, "XPATH error: the text is longer than max_allowed_packet")
}

fn holds(comparison: Comparison, order: Option<Ordering>) -> bool {
    let Some(order) = order else { return false };
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

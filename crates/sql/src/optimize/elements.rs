//! Conditions on arrays, and the elements that they ask for: constants, or the values of a column of another table.

use super::computed::{has_parameter, outline, without_texts};
use crate::bind::names::literal;
use crate::expr::{Context, Expr, ExprKind, constant_document, sought};
use rauk_types::json::Node;
use rauk_types::{DataType, JsonRef, TypeKind};

/// Most elements that are looked for.
const MOST_KEYS: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// A row has all of the elements.
    All,
    /// A row has one of them.
    Any,
}

/// A condition: `value MEMBER OF (array)`, `JSON_CONTAINS(array, value)`, `JSON_OVERLAPS(array, value)`.
pub(super) struct Asked {
    pub way: Way,
    /// Either may be the array.
    sides: Vec<(Expr, Expr)>,
    /// The value is one element, also where it is a text.
    one: bool,
}

/// A document without what makes no difference: the collations of paths.
fn plain(document: &Expr) -> Expr {
    without_texts(document.clone()).map(&mut |mut expr| {
        if let ExprKind::Function { function, arguments } = &mut expr.kind
            && function.name == "JSON_EXTRACT"
        {
            for path in &mut arguments[1..] {
                if matches!(path.kind, ExprKind::Literal(_)) {
                    (path.ty, path.coercibility) = (DataType::BIGINT, 0);
                }
            }
        }
        expr
    })
}

impl Asked {
    pub fn of(condition: &Expr) -> Option<Asked> {
        let ExprKind::Function { function, arguments } = &condition.kind else { return None };
        let [first, second] = arguments.as_slice() else { return None };
        let (first, second) = (first.clone(), second.clone());
        Some(match function.name {
            "MEMBER OF" => Asked { way: Way::All, sides: vec![(second, first)], one: true },
            "JSON_CONTAINS" => Asked { way: Way::All, sides: vec![(first, second)], one: false },
            "JSON_OVERLAPS" => {
                let sides = vec![(first.clone(), second.clone()), (second, first)];
                Asked { way: Way::Any, sides, one: false }
            }
            _ => return None,
        })
    }

    /// The value, where the array is this document.
    pub fn value_beside(&self, document: &Expr) -> Option<&Expr> {
        let document = plain(document);
        self.sides.iter().find(|(array, _)| plain(array) == document).map(|(_, value)| value)
    }

    /// Whether the array would be this document with literals in the place of parameters.
    pub fn may_be(&self, document: &Expr) -> bool {
        let document = outline(document.clone());
        self.sides.iter().any(|(array, _)| has_parameter(array) && outline(array.clone()) == document)
    }

    /// The key that a column's values have in an index of type `ty`, where each of them is one of the index or none that
    /// an element could have: a row of another table looks for its own.
    pub fn key_of_column(&self, value: &Expr, ty: &DataType) -> Option<Vec<Expr>> {
        let fits = match ty.kind {
            TypeKind::BigInt | TypeKind::Decimal => value.ty.is_integer(),
            TypeKind::VarChar | TypeKind::Char => value.ty.is_text() && value.ty.kind != TypeKind::Json,
            _ => false,
        };
        let is_column = matches!(value.kind, ExprKind::Reference(_));
        (self.one && fits && is_column).then(|| vec![value.clone()])
    }

    /// The keys of the elements that it asks for in an index of type `ty`; `None`: the index cannot tell.
    pub fn keys(&self, value: &Expr, ty: &DataType) -> Option<Vec<Expr>> {
        let stored = constant_document(value, self.one)?;
        let mut context = Context::without_session();
        let mut keys = Vec::new();
        let mut add = |element: JsonRef<'_>| {
            let key = sought(element, ty, &mut context)?;
            keys.push(literal(key, *ty));
            Some(())
        };
        let document = JsonRef::stored(&stored);
        match document.read().ok()? {
            // An array is an element of no indexed one.
            Node::Array(_) | Node::Object(_) if self.one => return None,
            Node::Array(list) if (1..=MOST_KEYS).contains(&list.len()) => {
                for at in 0..list.len() {
                    let known = add(list.value(at).ok()?);
                    // Of what all must be there, what is known is enough.
                    if known.is_none() && self.way == Way::Any {
                        return None;
                    }
                }
            }
            Node::Array(_) | Node::Object(_) | Node::Null => return None,
            _ => add(document)?,
        }
        (!keys.is_empty()).then_some(keys)
    }
}

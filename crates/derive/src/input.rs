//! A struct and its attributes, as read and checked.
//!
//! All mistakes of a struct are reported together. Each error points at the attribute or field that is wrong and says what would be right.

use crate::field_type::{FieldType, Kind};
use proc_macro2::Span;
use std::collections::BTreeMap;
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Fields, Ident, LitInt, LitStr, Token, Type};

/// MySQL's limit of names, in characters.
const MAX_NAME: usize = 64;
/// Most columns of a key, and of a table.
const MAX_KEY_FIELDS: usize = 16;
const MAX_FIELDS: usize = 1017;
/// A row has at most 65 535 bytes beside TEXT and BLOB, and a character of utf8mb4 up to four.
const MAX_CHARACTERS: u32 = 16_383;
const MAX_BYTES: u32 = 65_535;

pub struct Input {
    pub name: Ident,
    pub database: String,
    pub table: String,
    pub fields: Vec<Field>,
}

pub struct Field {
    pub name: Ident,
    pub ty: Type,
    pub field_type: FieldType,
    pub column: String,
    pub key: bool,
    pub unique: bool,
    pub index: bool,
    pub auto_increment: bool,
    pub length: Option<u32>,
    /// The name of its constant in `Collation`.
    pub collation: Option<&'static str>,
    /// Digits of a Decimal: all, and behind the point.
    pub digits: Option<(u8, u8)>,
    pub fraction: Option<u8>,
}

/// Attributes of one struct or field as written; where each stands.
#[derive(Default)]
struct Given {
    flags: BTreeMap<&'static str, Span>,
    texts: BTreeMap<&'static str, LitStr>,
    numbers: BTreeMap<&'static str, LitInt>,
}

/// Gathers errors, to give them all at once.
#[derive(Default)]
struct Errors(Option<syn::Error>);

impl Errors {
    fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            none => *none = Some(error),
        }
    }

    fn at(&mut self, span: Span, text: impl std::fmt::Display) {
        self.push(syn::Error::new(span, text));
    }

    fn keep<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }
}

const OF_STRUCT: &[&str] = &["database", "table"];
const OF_FIELD: &[&str] =
    &["key", "unique", "index", "auto_increment", "column", "collation", "length", "precision", "scale", "fraction"];
const FLAGS: &[&str] = &["key", "unique", "index", "auto_increment"];
const NUMBERS: &[&str] = &["length", "precision", "scale", "fraction"];

impl Given {
    fn read(attributes: &[Attribute], allowed: &'static [&'static str], errors: &mut Errors) -> Given {
        let mut given = Given::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("rauk")) {
            let read = attribute.parse_nested_meta(|meta| given.read_one(&meta, allowed, errors));
            errors.keep(read);
        }
        given
    }

    fn read_one(
        &mut self,
        meta: &ParseNestedMeta<'_>,
        allowed: &'static [&'static str],
        errors: &mut Errors,
    ) -> syn::Result<()> {
        let written = meta.path.get_ident().map(Ident::to_string).unwrap_or_default();
        let Some(&name) = allowed.iter().find(|name| **name == written) else {
            let place = if std::ptr::eq(allowed, OF_STRUCT) { "a struct" } else { "a field" };
            let text = match (OF_STRUCT.contains(&written.as_str()), OF_FIELD.contains(&written.as_str())) {
                (true, _) => format!("`{written}` belongs above the struct, not on a field"),
                (_, true) => format!("`{written}` belongs on a field, not above the struct"),
                _ => format!("unknown attribute `{written}`; {place} has {}", allowed.join(", ")),
            };
            return Err(meta.error(text));
        };
        let span = meta.path.span();
        if self.flags.insert(name, span).is_some() {
            errors.at(span, format!("`{name}` is given twice"));
        }
        if FLAGS.contains(&name) {
            if meta.input.peek(Token![=]) {
                return Err(meta.error(format!("write `{name}` alone, without a value")));
            }
        } else if NUMBERS.contains(&name) {
            let wrong = |_| meta.error(format!("write a number: `{name} = 2`"));
            self.numbers.insert(name, meta.value().and_then(|value| value.parse()).map_err(wrong)?);
        } else {
            let wrong = |_| meta.error(format!("write a text: `{name} = \"…\"`"));
            self.texts.insert(name, meta.value().and_then(|value| value.parse()).map_err(wrong)?);
        }
        Ok(())
    }

    fn flag(&self, name: &str) -> bool {
        self.flags.contains_key(name)
    }

    /// A number within a range; `None` when it is not given or wrong.
    fn number(&self, name: &str, low: u32, high: u32, errors: &mut Errors) -> Option<u32> {
        let literal = self.numbers.get(name)?;
        match literal.base10_parse::<u32>() {
            Ok(number) if (low..=high).contains(&number) => Some(number),
            _ => {
                errors.at(literal.span(), format!("`{name}` is from {low} to {high}"));
                None
            }
        }
    }

    /// A name for the database; `None` when it is not given or wrong.
    fn name(&self, name: &str, errors: &mut Errors) -> Option<String> {
        let literal = self.texts.get(name)?;
        let text = literal.value();
        if text.is_empty() || text.chars().count() > MAX_NAME || text.ends_with(' ') || text.contains(['\0', '\u{1}']) {
            errors.at(literal.span(), format!("`{name}` has 1 to {MAX_NAME} characters and no space at its end"));
            return None;
        }
        Some(text)
    }
}

pub fn read(input: DeriveInput) -> syn::Result<Input> {
    let mut errors = Errors::default();
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new_spanned(&input.ident, "a record is a struct: each of its fields is a column"));
    };
    let Fields::Named(named) = &data.fields else {
        return Err(syn::Error::new_spanned(
            &input.ident,
            "a record's fields have names, which are those of the columns",
        ));
    };
    if !input.generics.params.is_empty() {
        errors.push(syn::Error::new_spanned(
            &input.generics,
            "a record has no parameters: its table's columns have one type each, and its values are its own",
        ));
    }
    let given = Given::read(&input.attrs, OF_STRUCT, &mut errors);
    let missing = OF_STRUCT.iter().any(|name| !given.flag(name));
    if missing {
        let text = "say where its rows are: #[rauk(database = \"…\", table = \"…\")] above the struct";
        errors.at(input.ident.span(), text);
    }
    let database = given.name("database", &mut errors);
    let table = given.name("table", &mut errors);
    let mut fields: Vec<Field> = Vec::with_capacity(named.named.len());
    let mut broken = false;
    for field in &named.named {
        match read_field(field, &mut errors) {
            Some(field) => fields.push(field),
            None => broken = true,
        }
    }
    // What follows would complain about fields that were left out.
    if !broken {
        check_together(&input.ident, &fields, &mut errors);
    }
    match (errors.0, database, table) {
        (None, Some(database), Some(table)) => Ok(Input { name: input.ident, database, table, fields }),
        (Some(errors), _, _) => Err(errors),
        (None, _, _) => unreachable!("a missing name is an error"),
    }
}

/// `None`: with an error.
fn read_field(field: &syn::Field, errors: &mut Errors) -> Option<Field> {
    let name = field.ident.clone().expect("the fields are named");
    let given = Given::read(&field.attrs, OF_FIELD, errors);
    let field_type = errors.keep(FieldType::of(&field.ty))?;
    let kind = field_type.kind;
    let column = match given.flag("column") {
        true => given.name("column", errors)?,
        false => name.unraw().to_string(),
    };
    for (attribute, span) in &given.flags {
        let (fits, wanted) = match *attribute {
            "length" => (matches!(kind, Kind::Text | Kind::Bytes), "a String or Vec<u8>"),
            "collation" => (kind == Kind::Text, "a String"),
            "precision" | "scale" => (kind == Kind::Decimal, "a Decimal"),
            "fraction" => (matches!(kind, Kind::Time | Kind::DateTime), "a Time or DateTime"),
            "auto_increment" => (matches!(kind, Kind::Integer { .. }), "an integer"),
            _ => (true, ""),
        };
        if !fits {
            errors.at(*span, format!("`{attribute}` is for {wanted}, and `{}` is {}", name.unraw(), kind.described()));
        }
    }
    if given.flag("key") && field_type.optional {
        errors.push(syn::Error::new_spanned(&field.ty, "a key is never NULL: leave the Option out"));
    }
    let longest = if kind == Kind::Bytes { MAX_BYTES } else { MAX_CHARACTERS };
    Some(Field {
        column,
        key: given.flag("key"),
        unique: given.flag("unique"),
        index: given.flag("index"),
        auto_increment: given.flag("auto_increment"),
        length: given.number("length", 1, longest, errors),
        collation: collation(&given, errors),
        digits: digits(&given, &name, errors),
        fraction: given.number("fraction", 0, 6, errors).map(|digits| digits as u8),
        field_type,
        ty: field.ty.clone(),
        name,
    })
}

fn collation(given: &Given, errors: &mut Errors) -> Option<&'static str> {
    let literal = given.texts.get("collation")?;
    match literal.value().to_ascii_lowercase().as_str() {
        "utf8mb4_bin" => Some("Utf8mb4Bin"),
        "utf8mb4_0900_ai_ci" => Some("Utf8mb40900AiCi"),
        "utf8mb4_general_ci" => Some("Utf8mb4GeneralCi"),
        "utf8mb4_unicode_ci" => Some("Utf8mb4UnicodeCi"),
        _ => {
            let text = "collations are utf8mb4_0900_ai_ci, utf8mb4_bin, utf8mb4_general_ci, utf8mb4_unicode_ci";
            errors.at(literal.span(), text);
            None
        }
    }
}

fn digits(given: &Given, field: &Ident, errors: &mut Errors) -> Option<(u8, u8)> {
    let precision = given.number("precision", 1, 65, errors);
    let scale = given.number("scale", 0, 30, errors);
    match (precision, scale) {
        (Some(precision), scale) if scale.unwrap_or(0) <= precision => {
            Some((precision as u8, scale.unwrap_or(0) as u8))
        }
        (Some(_), _) => {
            errors.at(given.flags["scale"], "`scale`, the digits behind the point, is at most `precision`, all digits");
            None
        }
        (None, Some(_)) if !given.flag("precision") => {
            errors.at(
                field.span(),
                "`scale` comes with `precision`, the number of all digits: `precision = 12, scale = 2`",
            );
            None
        }
        _ => None,
    }
}

/// What no field can know of itself.
fn check_together(name: &Ident, fields: &[Field], errors: &mut Errors) {
    let keys = fields.iter().filter(|field| field.key).count();
    if keys == 0 {
        errors.at(name.span(), "a record has a key: mark the fields of its primary key with #[rauk(key)]");
    }
    if keys > MAX_KEY_FIELDS {
        errors.at(name.span(), format!("a key has at most {MAX_KEY_FIELDS} fields"));
    }
    if fields.len() > MAX_FIELDS {
        errors.at(name.span(), format!("a table has at most {MAX_FIELDS} columns"));
    }
    let mut columns = BTreeMap::new();
    for field in fields {
        // Names of columns are the same in any case.
        if let Some(other) = columns.insert(field.column.to_lowercase(), &field.name) {
            let text = format!("the column `{}` is that of the field `{}` already", field.column, other.unraw());
            errors.at(field.name.span(), text);
        }
        if field.key && keys == 1 && (field.unique || field.index) {
            errors.at(field.name.span(), "a key is unique and indexed by itself: leave `unique` and `index` out");
        } else if field.unique && field.index {
            errors.at(field.name.span(), "a unique index is an index: leave `index` out");
        }
    }
    let mut numbered = fields.iter().filter(|field| field.auto_increment);
    if let Some(field) = numbered.next()
        && fields.iter().find(|field| field.key).is_none_or(|key| key.name != field.name)
    {
        errors.at(field.name.span(), "`auto_increment` is for the first field of the key");
    }
    for field in numbered {
        errors.at(field.name.span(), "only one field has `auto_increment`");
    }
}

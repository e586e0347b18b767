//! The types that fields have, as they are written.
//!
//! A macro sees names, not types: `u64` may be written with a path before it (`std::primitive::u64`), but not hidden behind an alias.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{GenericArgument, PathArguments, Type};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Integer { bits: u8, unsigned: bool },
    Bool,
    Float,
    Double,
    Text,
    Bytes,
    Decimal,
    Date,
    Time,
    DateTime,
}

/// A field's type, with the `Option` around it taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldType {
    pub kind: Kind,
    pub optional: bool,
}

const SUPPORTED: &str = "fields are i8 to i64, u8 to u64, f32, f64, bool, String, Vec<u8>, Decimal, Date, Time, DateTime, and Option of these";

impl FieldType {
    pub fn of(ty: &Type) -> syn::Result<FieldType> {
        match option(ty) {
            None => Ok(FieldType { kind: kind(ty)?, optional: false }),
            Some(inner) if option(inner).is_some() => {
                Err(syn::Error::new_spanned(ty, "there is only one NULL: write Option once"))
            }
            Some(inner) => Ok(FieldType { kind: kind(inner)?, optional: true }),
        }
    }
}

/// The last name of a path and its only argument: `std::option::Option<T>` is `Option` of `T`.
fn name(ty: &Type) -> Option<(String, Option<&Type>)> {
    let path = match ty {
        Type::Group(group) => return name(&group.elem),
        Type::Paren(paren) => return name(&paren.elem),
        Type::Path(path) if path.qself.is_none() => path,
        _ => return None,
    };
    let last = path.path.segments.last()?;
    let argument = match &last.arguments {
        PathArguments::None => None,
        PathArguments::AngleBracketed(arguments) => match arguments.args.first() {
            Some(GenericArgument::Type(argument)) if arguments.args.len() == 1 => Some(argument),
            _ => return None,
        },
        PathArguments::Parenthesized(_) => return None,
    };
    Some((last.ident.to_string(), argument))
}

fn option(ty: &Type) -> Option<&Type> {
    match name(ty) {
        Some((name, argument)) if name == "Option" => argument,
        _ => None,
    }
}

fn kind(ty: &Type) -> syn::Result<Kind> {
    let refuse = |right: &str| Err(syn::Error::new_spanned(ty, right));
    if matches!(ty, Type::Reference(_)) {
        return refuse("a record owns its values: String in place of &str, Vec<u8> in place of &[u8]");
    }
    let (name, argument) = match name(ty) {
        Some(found) => found,
        None => return refuse(&format!("not a type for a column; {SUPPORTED}")),
    };
    let kind = match (name.as_str(), argument) {
        ("i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64", None) => Kind::Integer {
            bits: name[1..].parse().expect("the names above end in a number"),
            unsigned: name.starts_with('u'),
        },
        ("bool", None) => Kind::Bool,
        ("f32", None) => Kind::Float,
        ("f64", None) => Kind::Double,
        ("String", None) => Kind::Text,
        ("Vec", Some(element)) if self::name(element).is_some_and(|(name, _)| name == "u8") => Kind::Bytes,
        ("Decimal", None) => Kind::Decimal,
        ("Date", None) => Kind::Date,
        ("Time", None) => Kind::Time,
        ("DateTime", None) => Kind::DateTime,
        ("usize", None) => return refuse("usize has another size on another machine: write u64"),
        ("isize", None) => return refuse("isize has another size on another machine: write i64"),
        ("u128" | "i128", None) => return refuse("no integer column is so wide: write u64, i64 or Decimal"),
        ("char", None) => return refuse("write String, with #[rauk(length = 1)]"),
        ("Vec", Some(_)) => return refuse("a column has one value: of the Vecs only Vec<u8> is one (BLOB)"),
        _ => return refuse(&format!("`{name}` is not a type for a column; {SUPPORTED}")),
    };
    Ok(kind)
}

impl Kind {
    /// What the type is called in errors about attributes.
    pub fn described(self) -> &'static str {
        match self {
            Kind::Integer { .. } => "an integer",
            Kind::Bool => "a bool",
            Kind::Float | Kind::Double => "a floating point number",
            Kind::Text => "a String",
            Kind::Bytes => "a Vec<u8>",
            Kind::Decimal => "a Decimal",
            Kind::Date => "a Date",
            Kind::Time => "a Time",
            Kind::DateTime => "a DateTime",
        }
    }

    /// The kind's name in `rauk_types::TypeKind`; of text and bytes those without a length.
    pub fn type_kind(self) -> TokenStream {
        match self {
            Kind::Integer { bits: 8, .. } | Kind::Bool => quote!(TinyInt),
            Kind::Integer { bits: 16, .. } => quote!(SmallInt),
            Kind::Integer { bits: 32, .. } => quote!(Int),
            Kind::Integer { .. } => quote!(BigInt),
            Kind::Float => quote!(Float),
            Kind::Double => quote!(Double),
            Kind::Text => quote!(MediumText),
            Kind::Bytes => quote!(MediumBlob),
            Kind::Decimal => quote!(Decimal),
            Kind::Date => quote!(Date),
            Kind::Time => quote!(Time),
            Kind::DateTime => quote!(DateTime),
        }
    }
}

//! The implementation of `Record` for a struct that was read.

use crate::field_type::Kind;
use crate::input::{self, Field, Input};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::DeriveInput;
use syn::spanned::Spanned;

/// Characters or bytes of an indexed String or `Vec<u8>` without a length: TEXT and BLOB are not indexed whole.
const INDEXED_LENGTH: u32 = 255;

/// The implementation, or the errors that the compiler is to show.
pub fn record(input: TokenStream) -> TokenStream {
    let read = syn::parse2::<DeriveInput>(input).and_then(input::read);
    read.map_or_else(|error| error.to_compile_error(), |input| implementation(&input))
}

fn implementation(input: &Input) -> TokenStream {
    let Input { name, database, table, fields } = input;
    let infos = fields.iter().map(field_info);
    let values = fields.iter().map(|field| {
        let name = &field.name;
        quote_spanned!(field.ty.span()=> ::rauk_client::record::Field::value(&self.#name))
    });
    let reads = fields.iter().enumerate().map(|(i, field)| {
        let (name, ty) = (&field.name, &field.ty);
        quote_spanned! {ty.span()=>
            #name: <#ty as ::rauk_client::convert::FromColumn>::from_value(value(#i)).ok_or(#i)?
        }
    });
    let accepts = fields.iter().enumerate().map(|(i, field)| {
        let ty = &field.ty;
        quote_spanned! {ty.span()=>
            #i => (!nullable || <#ty as ::rauk_client::record::Field>::NULLABLE)
                && <#ty as ::rauk_client::record::Field>::accepts(ty)
        }
    });
    quote! {
        #[automatically_derived]
        impl ::rauk_client::record::Record for #name {
            const DATABASE: &'static str = #database;
            const TABLE: &'static str = #table;

            fn fields() -> &'static [::rauk_client::record::FieldInfo] {
                use ::rauk_client::record::{Collation, DataType, FieldInfo, TypeKind};
                static FIELDS: &[FieldInfo] = &[#(#infos),*];
                FIELDS
            }

            #[inline]
            fn values<'a>(&'a self, into: &mut ::std::vec::Vec<::rauk_client::record::ValueRef<'a>>) {
                into.extend([#(#values),*]);
            }

            #[inline]
            fn from_values<'a>(
                value: &mut dyn ::std::ops::FnMut(usize) -> ::rauk_client::record::ValueRef<'a>,
            ) -> ::std::result::Result<Self, usize> {
                ::std::result::Result::Ok(#name { #(#reads),* })
            }

            fn accepts(field: usize, ty: &::rauk_client::record::DataType, nullable: bool) -> bool {
                match field {
                    #(#accepts,)*
                    _ => false,
                }
            }
        }
    }
}

fn field_info(field: &Field) -> TokenStream {
    let Field { column, key, unique, index, auto_increment, .. } = field;
    let nullable = field.field_type.optional;
    let rust = field.ty.to_token_stream().to_string().replace(' ', "");
    let ty = data_type(field);
    quote! {
        FieldInfo {
            column: #column,
            rust: #rust,
            ty: #ty,
            nullable: #nullable,
            key: #key,
            unique: #unique,
            index: #index,
            auto_increment: #auto_increment,
        }
    }
}

/// The type of the column in a table that is made from the struct.
fn data_type(field: &Field) -> TokenStream {
    let kind = field.field_type.kind;
    let type_kind = kind.type_kind();
    let plain = quote!(DataType::new(TypeKind::#type_kind));
    let indexed = (field.key || field.unique || field.index).then_some(INDEXED_LENGTH);
    let length = field.length.or(indexed);
    match kind {
        Kind::Integer { unsigned, .. } => quote!(DataType { unsigned: #unsigned, ..#plain }),
        Kind::Bool => quote!(DataType { length: 1, ..#plain }),
        Kind::Text => {
            let collation = match field.collation {
                Some(name) => {
                    let name = syn::Ident::new(name, field.name.span());
                    quote!(Collation::#name)
                }
                None => quote!(Collation::DEFAULT),
            };
            match length {
                Some(length) => quote!(DataType::varchar(#length, #collation)),
                None => quote!(DataType { collation: #collation, ..#plain }),
            }
        }
        Kind::Bytes => match length {
            Some(length) => quote!(DataType::varbinary(#length)),
            None => plain,
        },
        Kind::Decimal => {
            let (precision, scale) = field.digits.unwrap_or((65, 30));
            quote!(DataType::decimal(#precision, #scale))
        }
        Kind::Time | Kind::DateTime => {
            let digits = field.fraction.unwrap_or(6);
            quote!(DataType { scale: #digits, ..#plain })
        }
        Kind::Float | Kind::Double | Kind::Date => plain,
    }
}

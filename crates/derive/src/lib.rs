//! `#[derive(Record)]`: rows of the native API as structs. What the attributes mean stands with the trait (`rauk_client::record`).
//!
//! The macro works in two steps: [`input`] reads the struct and its attributes, and finds every mistake in them at once, each pointed at where it is made; [`expand`] writes
//! the implementation. Which column types a field accepts is not decided here but by the trait `rauk_client::record::Field`, so that a type that only has
//! the name of one of ours is refused by the compiler.

use proc_macro::TokenStream;

mod expand;
mod field_type;
mod input;
#[cfg(test)]
mod tests;

#[proc_macro_derive(Record, attributes(rauk))]
pub fn record(input: TokenStream) -> TokenStream {
    expand::record(input.into()).into()
}

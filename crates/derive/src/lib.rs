//! `#[derive(Record)]`: rows of the native API as structs. What the attributes mean stands with the trait (`rauk_client::record`).

use proc_macro::TokenStream;

#[proc_macro_derive(Record, attributes(rauk))]
pub fn record(_input: TokenStream) -> TokenStream {
    TokenStream::new()
}

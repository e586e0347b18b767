//! What the macro makes of structs, right and wrong.

use crate::expand::record;
use crate::input;
use proc_macro2::TokenStream;
use std::str::FromStr;

/// What is written for a right struct, without white space.
fn written(text: &str) -> String {
    let tokens = record(TokenStream::from_str(text).expect("tokens"));
    let file: syn::File = syn::parse2(tokens.clone()).expect("the macro writes items");
    assert!(matches!(&file.items[..], [syn::Item::Impl(_)]), "{tokens}");
    tokens.to_string().replace(char::is_whitespace, "")
}

/// All errors about a wrong struct.
fn errors(text: &str) -> Vec<String> {
    let parsed = syn::parse_str(text).expect("a struct");
    match input::read(parsed) {
        Ok(_) => panic!("not refused: {text}"),
        Err(errors) => errors.into_iter().map(|error| error.to_string()).collect(),
    }
}

/// The only error about a struct with these fields.
fn error(fields: &str) -> String {
    let mut errors = errors(&format!("#[rauk(database = \"d\", table = \"t\")] struct T {{ {fields} }}"));
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0)
}

fn table(fields: &str) -> String {
    written(&format!("#[rauk(database = \"d\", table = \"t\")] struct T {{ {fields} }}"))
}

fn column(field: &str) -> String {
    let text = table(&format!("#[rauk(key)] id: u64, {field}"));
    let (_, rest) = text.split_once("},FieldInfo{").expect("two fields");
    rest.split_once("},];").or_else(|| rest.split_once("}];")).expect("the end of the list").0.into()
}

#[test]
fn a_struct_becomes_a_table() {
    let text = written(
        "#[rauk(database = \"shop\", table = \"users\")]
         pub struct User { #[rauk(key, auto_increment)] id: u64, #[rauk(column = \"Name\", length = 100)] r#type: Option<String> }",
    );
    assert!(text.contains("impl::rauk_client::record::RecordforUser"), "{text}");
    assert!(text.contains("constDATABASE:&'staticstr=\"shop\";constTABLE:&'staticstr=\"users\";"), "{text}");
    assert!(text.contains("column:\"id\",rust:\"u64\",ty:DataType{unsigned:true,..DataType::new(TypeKind::BigInt)},nullable:false,key:true,unique:false,index:false,auto_increment:true"), "{text}");
    assert!(text.contains("column:\"Name\",rust:\"Option<String>\",ty:DataType::varchar(100u32,Collation::DEFAULT),nullable:true,key:false"), "{text}");
    assert!(text.contains("Field::value(&self.r#type)"), "{text}");
    assert!(
        text.contains(
            "r#type:<Option<String>as::rauk_client::convert::FromColumn>::from_value(value(1usize)).ok_or(1usize)?"
        ),
        "{text}"
    );
}

#[test]
fn every_type_has_its_column() {
    for (field, expected) in [
        ("a: i8", "DataType{unsigned:false,..DataType::new(TypeKind::TinyInt)}"),
        ("a: u16", "DataType{unsigned:true,..DataType::new(TypeKind::SmallInt)}"),
        ("a: i32", "DataType{unsigned:false,..DataType::new(TypeKind::Int)}"),
        ("a: Option<u64>", "DataType{unsigned:true,..DataType::new(TypeKind::BigInt)}"),
        ("a: bool", "DataType{length:1,..DataType::new(TypeKind::TinyInt)}"),
        ("a: f32", "DataType::new(TypeKind::Float)"),
        ("a: f64", "DataType::new(TypeKind::Double)"),
        ("a: String", "DataType{collation:Collation::DEFAULT,..DataType::new(TypeKind::MediumText)}"),
        ("#[rauk(index)] a: String", "DataType::varchar(255u32,Collation::DEFAULT)"),
        ("#[rauk(length = 9, collation = \"utf8mb4_bin\")] a: String", "DataType::varchar(9u32,Collation::Utf8mb4Bin)"),
        ("a: Vec<u8>", "DataType::new(TypeKind::MediumBlob)"),
        ("#[rauk(unique)] a: std::vec::Vec<u8>", "DataType::varbinary(255u32)"),
        ("a: Decimal", "DataType::decimal(65u8,30u8)"),
        ("#[rauk(precision = 12, scale = 2)] a: rauk_client::Decimal", "DataType::decimal(12u8,2u8)"),
        ("#[rauk(precision = 12)] a: Decimal", "DataType::decimal(12u8,0u8)"),
        ("a: Date", "DataType::new(TypeKind::Date)"),
        ("a: Time", "DataType{scale:6u8,..DataType::new(TypeKind::Time)}"),
        (
            "#[rauk(fraction = 0)] a: std::option::Option<DateTime>",
            "DataType{scale:0u8,..DataType::new(TypeKind::DateTime)}",
        ),
    ] {
        let text = column(field);
        assert!(text.contains(&format!(",ty:{expected},nullable:")), "{field}: {text}");
    }
}

#[test]
fn other_attributes_are_left_alone() {
    table("/// Its number.\n #[serde(skip)] #[rauk(key)] #[cfg(all())] id: u64,");
}

#[test]
fn wrong_types_are_named() {
    let with = |ty: &str| error(&format!("#[rauk(key)] id: u64, a: {ty}"));
    assert!(with("HashMap<u8, u8>").starts_with("not a type for a column; fields are i8 to i64"));
    assert!(with("Uuid").starts_with("`Uuid` is not a type for a column; fields are"));
    assert!(with("(u8, u8)").starts_with("not a type for a column"));
    assert_eq!(with("usize"), "usize has another size on another machine: write u64");
    assert!(with("&'static str").contains("String in place of &str"));
    assert!(with("u128").contains("Decimal"));
    assert!(with("Vec<String>").contains("only Vec<u8>"));
    assert_eq!(with("Option<Option<u8>>"), "there is only one NULL: write Option once");
    assert_eq!(error("#[rauk(key)] id: Option<u64>"), "a key is never NULL: leave the Option out");
}

#[test]
fn wrong_attributes_are_named() {
    let with = |attribute: &str| error(&format!("#[rauk(key)] id: u64, #[rauk({attribute})] a: String"));
    assert_eq!(
        with("primary"),
        "unknown attribute `primary`; a field has key, unique, index, auto_increment, column, collation, length, precision, scale, fraction"
    );
    assert_eq!(with("table = \"x\""), "`table` belongs above the struct, not on a field");
    assert_eq!(with("length"), "write a number: `length = 2`");
    assert_eq!(with("length = \"2\""), "write a number: `length = 2`");
    assert_eq!(with("length = 0"), "`length` is from 1 to 16383");
    assert_eq!(with("length = 99999"), "`length` is from 1 to 16383");
    assert_eq!(with("unique = true"), "write `unique` alone, without a value");
    assert_eq!(with("column = 3"), "write a text: `column = \"…\"`");
    assert_eq!(with("column = \"\""), "`column` has 1 to 64 characters and no space at its end");
    assert_eq!(with("unique, unique"), "`unique` is given twice");
    assert_eq!(with("unique, index"), "a unique index is an index: leave `index` out");
    assert_eq!(with("precision = 3"), "`precision` is for a Decimal, and `a` is a String");
    assert_eq!(with("fraction = 3"), "`fraction` is for a Time or DateTime, and `a` is a String");
    assert_eq!(
        error("#[rauk(key, auto_increment)] a: String"),
        "`auto_increment` is for an integer, and `a` is a String"
    );
    assert!(with("collation = \"latin1_bin\"").starts_with("collations are utf8mb4_0900_ai_ci"));
    let decimal = |attribute: &str| error(&format!("#[rauk(key)] id: u64, #[rauk({attribute})] a: Decimal"));
    assert!(decimal("scale = 2").starts_with("`scale` comes with `precision`"));
    assert!(decimal("precision = 2, scale = 3").contains("at most `precision`"));
    assert_eq!(decimal("precision = 66"), "`precision` is from 1 to 65");
    assert_eq!(decimal("length = 5"), "`length` is for a String or Vec<u8>, and `a` is a Decimal");
    assert_eq!(errors("#[rauk(key)] struct T { #[rauk(key)] a: u8 }").len(), 2);
}

#[test]
fn what_belongs_together_is_checked() {
    assert!(error("a: u8, b: u8").starts_with("a record has a key"));
    assert!(error("#[rauk(key)] a: u8, A: u8").contains("`A` is that of the field `a` already"));
    assert!(
        error("#[rauk(key)] a: u8, #[rauk(column = \"a\")] b: u8").contains("`a` is that of the field `a` already")
    );
    assert!(error("#[rauk(key, unique)] a: u8").contains("leave `unique` and `index` out"));
    assert_eq!(
        error("#[rauk(key)] a: u8, #[rauk(auto_increment)] b: u8"),
        "`auto_increment` is for the first field of the key"
    );
    let two = errors(
        "#[rauk(database = \"d\", table = \"t\")] struct T { #[rauk(key, auto_increment)] a: u8, #[rauk(auto_increment)] b: u8 }",
    );
    assert_eq!(two, ["only one field has `auto_increment`"]);
    table("#[rauk(key)] a: u8, #[rauk(key, index)] b: u8");
}

#[test]
fn all_mistakes_are_told_at_once() {
    let found = errors("#[rauk(database = \"d\")] struct T { #[rauk(primary)] a: usize, #[rauk(key)] b: Option<u8> }");
    assert_eq!(found.len(), 4, "{found:?}");
}

#[test]
fn only_structs_with_named_fields() {
    assert!(errors("enum T { A }")[0].starts_with("a record is a struct"));
    assert!(errors("struct T(u8);")[0].starts_with("a record's fields have names"));
    assert!(
        errors("#[rauk(database = \"d\", table = \"t\")] struct T<A> { #[rauk(key)] a: u8 }")[0]
            .contains("no parameters")
    );
    assert!(errors("struct T { #[rauk(key)] a: u8 }")[0].starts_with("say where its rows are"));
    let tokens = record(TokenStream::from_str("enum T { A }").unwrap());
    assert!(tokens.to_string().contains("compile_error"));
}

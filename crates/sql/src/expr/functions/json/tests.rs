use super::*;
use crate::expr::tests::Variables;
use crate::expr::{Columns, ExprKind};
use rauk_types::json::parse;

/// A row of one JSON column.
struct Row(Vec<u8>);

impl Columns for Row {
    fn column(&self, _: usize, _: usize) -> ValueRef<'_> {
        ValueRef::Json(JsonRef::stored(&self.0))
    }
}

fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let function = crate::expr::functions::find(name).unwrap();
    Expr {
        kind: ExprKind::Function { function, arguments },
        ty: DataType::new(TypeKind::Json),
        nullable: true,
        coercibility: 2,
    }
}

fn column() -> Expr {
    let ty = DataType::new(TypeKind::Json);
    Expr { kind: ExprKind::Column { table: 0, column: 0 }, ty, nullable: true, coercibility: 2 }
}

fn text(text: &str) -> Expr {
    let ty = DataType::varchar(100, Collation::DEFAULT);
    Expr { kind: ExprKind::Literal(Value::from(text)), ty, nullable: false, coercibility: 4 }
}

fn shown(expr: &Expr, row: &Row) -> Result<String> {
    let mut context = Context::new(Arc::new(Variables));
    expr.eval_ref(row, &mut context, |value| {
        let mut out = Vec::new();
        rauk_types::format::append_text(value, &expr.ty, &mut out);
        String::from_utf8(out).unwrap()
    })
}

#[test]
fn rows_of_before_and_of_now_read_the_same() {
    let written = r#" {"b":[1,{"k":"x\ny"}],  "a":null, "a":2.50}"#;
    let binary = parse(written, &mut |_| Ok(())).unwrap().unwrap().encode(&mut |_| Ok(())).unwrap();
    let rows = [Row(written.as_bytes().to_vec()), Row(binary)];
    for (expr, expected) in [
        (column(), r#"{"a": 2.5, "b": [1, {"k": "x\ny"}]}"#),
        (call("JSON_EXTRACT", vec![column(), text("$.a")]), "2.5"),
        (call("JSON_EXTRACT", vec![column(), text("$.b[last].k")]), r#""x\ny""#),
        (call("JSON_EXTRACT", vec![column(), text("$**.k")]), r#"["x\ny"]"#),
        (call("JSON_UNQUOTE", vec![call("JSON_EXTRACT", vec![column(), text("$.b[1].k")])]), "x\ny"),
        (call("JSON_SET", vec![column(), text("$.b[0]"), text("z")]), r#"{"a": 2.5, "b": ["z", {"k": "x\ny"}]}"#),
        (call("JSON_TYPE", vec![column()]), "OBJECT"),
        (call("JSON_LENGTH", vec![column()]), "2"),
        (call("JSON_ARRAY", vec![column()]), r#"[{"a": 2.5, "b": [1, {"k": "x\ny"}]}]"#),
    ] {
        for row in &rows {
            assert_eq!(shown(&expr, row).unwrap(), expected, "{expr:?}");
        }
    }
}

#[test]
fn a_path_into_a_column_copies_nothing() {
    let binary = parse(r#"{"a":{"b":"text"}}"#, &mut |_| Ok(())).unwrap().unwrap().encode(&mut |_| Ok(())).unwrap();
    let row = Row(binary);
    let expr = call("JSON_UNQUOTE", vec![call("JSON_EXTRACT", vec![column(), text("$.a.b")])]);
    let mut context = Context::new(Arc::new(Variables));
    let range = row.0.as_ptr_range();
    let inside =
        expr.eval_ref(&row, &mut context, |value| value.as_str().is_some_and(|text| range.contains(&text.as_ptr())));
    assert!(inside.unwrap());
}

#[test]
fn damaged_documents_are_errors() {
    for bytes in [vec![1, 0, 9], vec![1, 0x55], vec![1, 12, 200, 1], vec![1, 2, 1, 0, 7, 0, 12, 3, 0]] {
        let row = Row(bytes);
        for name in ["JSON_TYPE", "JSON_LENGTH", "JSON_DEPTH", "JSON_KEYS", "JSON_PRETTY"] {
            let result = shown(&call(name, vec![column()]), &row);
            assert!(result.is_ok() || result.as_ref().is_err_and(|error| error.code == 3142), "{name}: {result:?}");
        }
        // Of what is no array and no object it finds nothing.
        let found = shown(&call("JSON_EXTRACT", vec![column(), text("$.a[0]")]), &row);
        assert!(found.as_ref().map_or_else(|error| error.code == 3142, String::is_empty), "{found:?}");
        let whole = shown(&call("JSON_EXTRACT", vec![column(), text("$**.a")]), &row);
        assert!(whole.as_ref().is_ok_and(String::is_empty) || whole.is_err_and(|error| error.code == 3142));
    }
}

#[test]
fn what_wildcards_find_counts_as_memory() {
    let document = format!("{}{}1{}", "[".repeat(90), "1,".repeat(200_000), "]".repeat(90));
    let binary = parse(&document, &mut |_| Ok(())).unwrap().unwrap().encode(&mut |_| Ok(())).unwrap();
    let row = Row(binary);
    let mut context = Context::new(Arc::new(Variables));
    context.budget.memory = crate::memory::Memory::limited(1 << 20);
    let expr = call("JSON_EXTRACT", vec![column(), text("$**[*]**[*]")]);
    // It needs more memory than it may use for the answer.
    let error = expr.eval(&row, &mut context).unwrap_err();
    assert_eq!(error.code, 1038, "{error}");
}

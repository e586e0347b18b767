use super::*;
use crate::TypeKind;

/// A column without default.
pub(crate) fn column(id: u16, ty: DataType, nullable: bool) -> Column {
    Column::new(ColumnId(id), format!("c{id}"), ty, nullable)
}

/// A table whose key is the first column.
pub(crate) fn table(columns: Vec<Column>) -> TableSchema {
    TableSchema::new(TableId(1), "d", "t", columns, vec![IndexSchema::primary(&[0])])
}

#[test]
fn schemas_survive_serialization() {
    let mut schema = table(vec![
        column(0, DataType::BIGINT_UNSIGNED, false),
        column(7, DataType::decimal(65, 30), true),
        column(3, DataType::varchar(10, Collation::Utf8mb4UnicodeCi), true),
    ]);
    schema.columns[1].initial = Value::Decimal("1.50".parse().unwrap());
    schema.columns[2].default = ColumnDefault::Value(Value::from("x"));
    schema.indexes.push(IndexSchema {
        id: IndexId(4),
        name: "other".into(),
        kind: IndexKind::Unique,
        parts: vec![IndexPart { column: 2, prefix: Some(3), descending: true }],
        hash_only: false,
        entry_table: Some(TableId(9)),
        comment: String::new(),
        invisible: false,
        global: false,
    });
    let read: TableSchema = serde_json::from_str(&serde_json::to_string(&schema).unwrap()).unwrap();
    assert_eq!(read, schema);
    assert_eq!(read.column_position(ColumnId(3)), Some(2));
    assert_eq!(read.column_position(ColumnId(1)), None);
    assert_eq!(read.index_by_name("OTHER").unwrap().id, IndexId(4));
    assert_eq!(read.key_def(read.primary()).parts[0].ty.kind, TypeKind::BigInt);
    assert_eq!(read.visible_columns().len(), 3);
}

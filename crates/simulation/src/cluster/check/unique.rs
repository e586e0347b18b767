//! Promise: *what is declared unique is unique*, over all partitions and nodes: primary keys and unique indexes; NULL is no value.
use super::Verdict;
use rauk_types::{TableSchema, Value};
use std::collections::BTreeMap;

/// `rows`: all rows of the table.
pub fn check(schema: &TableSchema, rows: &[Vec<Value>]) -> Verdict {
    for index in schema.indexes.iter().filter(|index| index.is_unique()) {
        let def = schema.key_def(index);
        let mut seen: BTreeMap<Vec<u8>, &Vec<Value>> = BTreeMap::new();
        for row in rows {
            if index.parts.iter().any(|part| row[part.column].is_null()) {
                continue;
            }
            let mut key = Vec::new();
            def.encode_values(row, &mut key);
            if let Some(other) = seen.insert(key, row) {
                let (table, index) = (&schema.name, &index.name);
                return Err(format!("table {table}: two rows have one key of {index}: {other:?} and {row:?}"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::tables::{columns, index, table};
    use rauk_types::DataType;
    use rauk_types::schema::IndexKind;

    #[test]
    fn duplicates_are_found() {
        let columns = columns(&[("id", DataType::BIGINT, false), ("code", DataType::BIGINT, true)]);
        let schema = table("t", columns, vec![index(1, "code", IndexKind::Unique, &[1])]);
        let row = |id, code: Option<i64>| vec![Value::Int(id), code.map_or(Value::Null, Value::Int)];
        assert_eq!(check(&schema, &[row(1, Some(1)), row(2, None), row(3, None), row(4, Some(2))]), Ok(()));
        assert!(check(&schema, &[row(1, Some(1)), row(1, Some(2))]).unwrap_err().contains("PRIMARY"));
        assert!(check(&schema, &[row(1, Some(1)), row(2, Some(1))]).unwrap_err().contains("code"));
    }
}

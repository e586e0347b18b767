//! Promise: *every index says what the rows say*: a scan of it gives the same rows, in its order, both ways, and a unique key leads to its row.
use super::Verdict;
use rauk_types::schema::IndexSchema;
use rauk_types::{TableSchema, Value};

/// What one index gave, in one snapshot with the rows.
pub struct Scanned {
    pub forward: Vec<Vec<Value>>,
    pub backward: Vec<Vec<Value>>,
    /// For a unique index: the row that each row's key leads to, in the order of the rows (`None`: the key has NULL, or leads nowhere).
    pub found: Option<Vec<Option<Vec<Value>>>>,
}

pub fn check(schema: &TableSchema, rows: &[Vec<Value>], index: &IndexSchema, scanned: &Scanned) -> Verdict {
    let def = schema.key_def(index);
    let key = |row: &Vec<Value>| {
        let mut key = Vec::new();
        def.encode_values(row, &mut key);
        key
    };
    let name = format!("index {} of table {}", index.name, schema.name);
    for (scan, reverse) in [(&scanned.forward, false), (&scanned.backward, true)] {
        let keys: Vec<_> = scan.iter().map(key).collect();
        if !keys.windows(2).all(|pair| if reverse { pair[0] >= pair[1] } else { pair[0] <= pair[1] }) {
            return Err(format!("{name} is not in order (reverse: {reverse})"));
        }
        if sorted(scan) != sorted(rows) {
            return Err(format!("{name} has {} rows, the table {} (reverse: {reverse})", scan.len(), rows.len()));
        }
    }
    for (row, found) in rows.iter().zip(scanned.found.iter().flatten()) {
        let has_null = index.parts.iter().any(|part| row[part.column].is_null());
        if !has_null && found.as_ref() != Some(row) {
            return Err(format!("{name} leads from {row:?} to {found:?}"));
        }
    }
    Ok(())
}

/// Rows as text, in one order whatever order they came in.
fn sorted(rows: &[Vec<Value>]) -> Vec<String> {
    let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::tables::{columns, index, table};
    use rauk_types::DataType;
    use rauk_types::schema::IndexKind;

    #[test]
    fn indexes_that_differ_from_the_rows_are_found() {
        let columns = columns(&[("id", DataType::BIGINT, false), ("code", DataType::BIGINT, true)]);
        let schema = table("t", columns, vec![index(1, "code", IndexKind::Unique, &[1])]);
        let row = |id, code| vec![Value::Int(id), Value::Int(code)];
        let rows = vec![row(1, 30), row(2, 20)];
        let judge = |forward: &[Vec<Value>], backward: &[Vec<Value>], found: &[Option<Vec<Value>>]| {
            let scanned =
                Scanned { forward: forward.to_vec(), backward: backward.to_vec(), found: Some(found.to_vec()) };
            check(&schema, &rows, &schema.indexes[1], &scanned)
        };
        let (up, down) = ([row(2, 20), row(1, 30)], [row(1, 30), row(2, 20)]);
        let found = [Some(row(1, 30)), Some(row(2, 20))];
        assert_eq!(judge(&up, &down, &found), Ok(()));
        assert!(judge(&down, &down, &found).unwrap_err().contains("not in order"));
        assert!(judge(&up, &down[..1], &found).unwrap_err().contains("has 1 rows"));
        assert!(judge(&up, &down, &[found[0].clone(), None]).unwrap_err().contains("leads"));
        assert!(judge(&[row(2, 20), row(1, 31)], &down, &found).is_err());
    }
}

//! Table definitions on the wire: JSON, since they are large, seldom sent, and grow with every release.
//!
//! What a program asks a node to create is not taken as it is: its layouts are thrown away and one is made anew from its columns, since a layout has a table by column
//! number, and a few bytes of JSON could ask for a lot of memory. Whether columns, types, names and keys are those of a table is for the node to say, with
//! MySQL's errors; nothing here has looked at them.

use crate::WireError;
use rauk_types::schema::MAX_COLUMNS;
use rauk_types::{Collation, RowLayout, TableSchema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableName {
    pub database: String,
    pub table: String,
}

/// Answer to `OpenTable` and `CreateTable`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    pub schema: TableSchema,
    /// Partitions of the node, for scans in parallel.
    pub partitions: u16,
}

/// `schema` is completed by the node (id, version, layouts, index tables). As it is read it has one layout, of its columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Asked")]
pub struct CreateTable {
    pub schema: TableSchema,
    /// An existing table with the same columns and keys is answered instead of error 1050.
    pub if_not_exists: bool,
}

/// More columns than this are not an error of whoever declares a table, but nonsense.
const MOST_COLUMNS: usize = 4 * MAX_COLUMNS;

/// As it comes.
#[derive(Deserialize)]
struct Asked {
    schema: serde_json::Value,
    if_not_exists: bool,
}

impl TryFrom<Asked> for CreateTable {
    type Error = String;

    fn try_from(mut asked: Asked) -> Result<CreateTable, String> {
        if let Some(layouts) = asked.schema.get_mut("layouts") {
            *layouts = serde_json::Value::Array(Vec::new());
        }
        let mut schema: TableSchema = serde_json::from_value(asked.schema).map_err(|error| error.to_string())?;
        if schema.columns.len() > MOST_COLUMNS {
            return Err(format!("{} columns", schema.columns.len()));
        }
        schema.layouts = vec![Arc::new(RowLayout::for_columns(0, &schema.columns))];
        Ok(CreateTable { schema, if_not_exists: asked.if_not_exists })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropTable {
    pub name: TableName,
    pub if_exists: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateDatabase {
    pub name: String,
    pub collation: Collation,
    pub if_not_exists: bool,
}

/// Appends the JSON of any of these.
pub fn encode<T: Serialize>(value: &T, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("definitions have no maps with keys that are not strings");
}

/// Of the whole payload.
pub fn decode<T: DeserializeOwned>(payload: &[u8]) -> Result<T, WireError> {
    serde_json::from_slice(payload).map_err(|_| WireError::Malformed("definition"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_types::{Column, ColumnId, DataType, IndexSchema, TableId};

    fn asked() -> CreateTable {
        let column = |id, name| Column::new(ColumnId(id), name, DataType::BIGINT, false);
        let indexes = vec![IndexSchema::primary(&[0])];
        let schema = TableSchema::new(TableId(1), "d", "t", vec![column(0, "a"), column(1, "b")], indexes);
        CreateTable { schema, if_not_exists: true }
    }

    fn changed(change: impl FnOnce(&mut serde_json::Value)) -> Result<CreateTable, WireError> {
        let mut json = serde_json::to_value(asked()).unwrap();
        change(&mut json["schema"]);
        decode(json.to_string().as_bytes())
    }

    #[test]
    fn a_table_without_keys_may_be_asked_for() {
        assert_eq!(changed(|_| {}).unwrap(), asked());
        assert!(changed(|schema| schema["indexes"] = serde_json::json!([])).unwrap().schema.indexes.is_empty());
        let many = |schema: &mut serde_json::Value| {
            let column = schema["columns"][0].clone();
            schema["columns"] = vec![column; MOST_COLUMNS + 1].into();
        };
        assert!(changed(many).is_err());
    }

    /// A layout has two bytes for each column number up to its highest: 65 536 in fifty bytes of JSON.
    #[test]
    fn layouts_are_not_taken_from_programs() {
        let layouts = |schema: &mut serde_json::Value| {
            let layout = schema["layouts"][0].clone();
            schema["layouts"] = vec![layout; 1000].into();
        };
        assert_eq!(changed(layouts).unwrap().schema.layouts, asked().schema.layouts);
    }
}

//! Tables made from records.
//!
//! Fields in their order are columns, `key` fields the primary key; `unique` and `index` fields get an index of their own, named after the column. The node checks it all as it checks CREATE
//! TABLE, and completes it.

use crate::{Client, Error, ErrorKind, Record, Records, Table};
use rauk_types::{Collation, Column, ColumnId, IndexId, IndexKind, IndexPart, IndexSchema, TableId, TableSchema};
use rauk_wire::Kind;
use rauk_wire::definition::{CreateDatabase, CreateTable};

pub(crate) async fn open_or_create<R: Record>(client: &Client) -> Result<Records<R>, Error> {
    match client.table(R::DATABASE, R::TABLE).await {
        Err(error) if error.kind == ErrorKind::UnknownTable => {}
        opened => return Records::new(opened?),
    }
    let database = CreateDatabase { name: R::DATABASE.to_owned(), collation: Collation::DEFAULT, if_not_exists: true };
    client.define(Kind::CreateDatabase, &database, Kind::Done).await?;
    let table = CreateTable { schema: schema_of::<R>()?, if_not_exists: true };
    client.define(Kind::CreateTable, &table, Kind::Definition).await?;
    // Opened as every other: somebody may have made it differently in the meantime.
    let table: Table = client.table(R::DATABASE, R::TABLE).await?;
    Records::new(table)
}

fn schema_of<R: Record>() -> Result<TableSchema, Error> {
    let fields = R::fields();
    let columns: Vec<Column> = fields
        .iter()
        .enumerate()
        .map(|(i, field)| Column::new(ColumnId(i as u16), field.column, field.ty, field.nullable))
        .collect();
    let key: Vec<usize> = fields.iter().enumerate().filter(|(_, field)| field.key).map(|(i, _)| i).collect();
    if key.is_empty() {
        let message = format!("the record of {}.{} has no key: mark a field with #[rauk(key)]", R::DATABASE, R::TABLE);
        return Err(Error::new(ErrorKind::WrongType, 0, message));
    }
    let mut indexes = vec![IndexSchema::primary(&key)];
    for (column, field) in fields.iter().enumerate().filter(|(_, field)| field.unique || field.index) {
        indexes.push(IndexSchema {
            id: IndexId(indexes.len() as u16),
            name: field.column.to_owned(),
            kind: if field.unique { IndexKind::Unique } else { IndexKind::Ordered },
            parts: vec![IndexPart { column, prefix: None, descending: false }],
            hash_only: false,
            entry_table: None,
            comment: String::new(),
            invisible: false,
            global: false,
        });
    }
    let mut schema = TableSchema::new(TableId(0), R::DATABASE, R::TABLE, columns, indexes);
    schema.auto_increment = fields.iter().position(|field| field.auto_increment);
    Ok(schema)
}

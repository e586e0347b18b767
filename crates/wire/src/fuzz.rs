//! The entry for fuzzing everything that reads bytes from the network: called by the fuzz target, and by a bounded random run.

use crate::batch::Batch;
use crate::definition::{self, CreateDatabase, CreateTable, Definition, DropTable, TableName};
use crate::frame::{self, Parsed};
use crate::hello::{Challenge, Hello, Proof, Refused, Welcome};
use crate::login::{Claim, Denied, Known, Login, Password, Salts};
use crate::read::Reader;
use crate::scan::{self, PageReader, PageRow, Scan};
use crate::{AnswerReader, BatchBuilder, Expression, Failure, Filter, Kind, Outcome, Placement, Values, WireError};
use rauk_types::{
    Collation, Column, ColumnId, DataType, IndexSchema, RowView, TableId, TableSchema, TypeKind, Value, ValueRef, row,
};

/// Takes `data` as a stream of frames, and as the payload of each signal. Nothing may panic or take memory out of proportion; what
/// can be read and written again reads the same.
pub fn fuzz_signal(data: &[u8]) {
    let mut rest = data;
    while let Ok(Parsed::Whole(header, length)) = frame::parse(rest) {
        let mut again = rest[..length].to_vec();
        frame::finish(&mut again, &header);
        assert_eq!(frame::parse(&again), Ok(Parsed::Whole(header, length)));
        let _ = read_payload(header.kind, &rest[frame::HEADER..length]);
        rest = &rest[length..];
    }
    for kind in Kind::ALL {
        let _ = read_payload(*kind, data);
    }
    if let Ok(filter) = Filter::decode(&mut Reader::new(data, "filter")) {
        filter_on_a_row(&filter);
    }
    if let Ok(expression) = Expression::decode(&mut Reader::new(data, "expression")) {
        let mut again = Vec::new();
        expression.encode(&mut again);
        let mut twice = Vec::new();
        Expression::decode(&mut Reader::new(&again, "expression")).expect("it was written").encode(&mut twice);
        assert_eq!(again, twice);
    }
}

/// Reads the payload of a signal to its end, as whoever gets it does.
pub fn read_payload(kind: Kind, payload: &[u8]) -> Result<(), WireError> {
    match kind {
        Kind::Hello => again(payload, Hello::decode, Hello::encode),
        Kind::Challenge => again(payload, Challenge::decode, Challenge::encode),
        Kind::Proof => again(payload, Proof::decode, Proof::encode),
        Kind::Welcome => again(payload, Welcome::decode, Welcome::encode),
        Kind::Refused => again(payload, Refused::decode, Refused::encode),
        Kind::Login => again(payload, Login::decode, Login::encode),
        Kind::Salts => again(payload, Salts::decode, Salts::encode),
        Kind::Claim => again(payload, Claim::decode, Claim::encode),
        Kind::Known => again(payload, Known::decode, Known::encode),
        Kind::Password => again(payload, Password::decode, Password::encode),
        Kind::Denied => again(payload, Denied::decode, Denied::encode),
        Kind::Ping | Kind::Pong | Kind::Member | Kind::Raft | Kind::RaftAnswer => Ok(()),
        Kind::Goodbye | Kind::Failed => again(payload, Failure::decode, Failure::encode),
        Kind::OpenTable => again(payload, definition::decode::<TableName>, definition::encode),
        Kind::Definition => again(payload, definition::decode::<Definition>, definition::encode),
        Kind::CreateTable => again(payload, definition::decode::<CreateTable>, definition::encode),
        Kind::DropTable => again(payload, definition::decode::<DropTable>, definition::encode),
        Kind::CreateDatabase => again(payload, definition::decode::<CreateDatabase>, definition::encode),
        Kind::Done | Kind::Rollback | Kind::AskPlacement => Reader::new(payload, "empty payload").end(),
        Kind::Placement => again(payload, Placement::decode, Placement::encode),
        Kind::Batch => read_batch(payload),
        Kind::BatchAnswer => read_answer(payload),
        Kind::Scan => again(payload, Scan::decode, Scan::encode),
        Kind::ScanNext | Kind::ScanClose | Kind::Cancel => scan::decode_number(payload).map(drop),
        Kind::ScanPage => read_page(payload),
    }
}

fn again<T: PartialEq + std::fmt::Debug>(
    payload: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, WireError>,
    encode: impl Fn(&T, &mut Vec<u8>),
) -> Result<(), WireError> {
    let read = decode(payload)?;
    let mut written = Vec::new();
    encode(&read, &mut written);
    let read = decode(&written).expect("what was written is read");
    // Values may hold a NaN, which is not itself; bytes are.
    let mut once_more = Vec::new();
    encode(&read, &mut once_more);
    assert_eq!(written, once_more);
    Ok(())
}

fn read_values<'a>(values: Values<'a>, read: &mut Vec<ValueRef<'a>>) -> Result<(), WireError> {
    read.clear();
    values.read(read)?;
    assert_eq!(read.len(), values.len());
    for value in read {
        // What the wire lets in, nothing that shows or orders it panics of.
        let _ = format!("{value:?}");
        let mut text = Vec::new();
        rauk_types::format::append_text(*value, &type_of(value), &mut text);
    }
    Ok(())
}

fn type_of(value: &ValueRef<'_>) -> DataType {
    DataType::new(match value {
        ValueRef::Null => TypeKind::Null,
        ValueRef::Int(_) | ValueRef::UInt(_) => TypeKind::BigInt,
        ValueRef::Double(_) => TypeKind::Double,
        ValueRef::Decimal(_) => TypeKind::Decimal,
        ValueRef::Date(_) => TypeKind::Date,
        ValueRef::Time(_) => TypeKind::Time,
        ValueRef::DateTime(_) => TypeKind::DateTime,
        ValueRef::Timestamp(_) => TypeKind::Timestamp,
        ValueRef::Str(_) => TypeKind::Text,
        ValueRef::Bytes(_) => TypeKind::Blob,
        ValueRef::Json(_) => TypeKind::Json,
    })
}

fn read_batch(payload: &[u8]) -> Result<(), WireError> {
    let batch = Batch::parse(payload)?;
    let mut builder = BatchBuilder::new(Vec::new(), &batch.options, &batch.shapes);
    let (mut read, mut operations) = (Vec::new(), 0);
    for operation in batch.operations() {
        let operation = operation?;
        read_values(operation.values, &mut read)?;
        operations += 1;
        let values = read.iter().copied();
        let (key, condition) = (operation.key, operation.condition.as_deref());
        match operation.shape {
            None if key.is_empty() => builder.savepoint(),
            None => builder.rollback_to(u32::from_le_bytes(key.try_into().expect("a number"))),
            Some(shape) if !operation.kind.has_values() => builder.key(shape, key, condition),
            Some(shape) if !operation.kind.has_key() => builder.values(shape, values),
            Some(shape) => builder.key_and_values(shape, key, values, condition),
        };
    }
    assert_eq!(operations, batch.operations);
    let written = builder.finish();
    let again = Batch::parse(&written).expect("what was written is read");
    assert_eq!((again.options, &again.shapes), (batch.options, &batch.shapes));
    assert_eq!(again.operations().filter(Result::is_ok).count(), operations);
    Ok(())
}

fn read_answer(payload: &[u8]) -> Result<(), WireError> {
    let mut reader = AnswerReader::parse(payload)?;
    let mut entries = 0;
    let mut read = Vec::new();
    while let Some((_, outcome)) = reader.next_entry()? {
        entries += 1;
        if let Outcome::Columns { count, bytes } = outcome {
            read_values(Values::new(count.into(), bytes), &mut read)?;
        }
    }
    assert_eq!(entries, reader.answer.entries);
    Ok(())
}

fn read_page(payload: &[u8]) -> Result<(), WireError> {
    let mut reader = PageReader::parse(payload)?;
    let mut read = Vec::new();
    while let Some(row) = reader.next_row()? {
        if let PageRow::Columns { count, bytes } = row {
            read_values(Values::new(count.into(), bytes), &mut read)?;
        }
    }
    Ok(())
}

/// A checked filter has an answer for every row.
fn filter_on_a_row(filter: &Filter) {
    use TypeKind::*;
    let kinds = [BigInt, Int, Double, Decimal, VarChar, VarBinary, Date, Time, DateTime, Timestamp];
    let column = |(i, kind): (usize, &TypeKind)| {
        let mut ty = DataType::new(*kind);
        ty.unsigned = *kind == Int;
        ty.length = if ty.is_text() || ty.is_bytes() { 100 } else { 0 };
        ty.collation = if ty.is_text() { Collation::DEFAULT } else { Collation::Binary };
        Column::new(ColumnId(i as u16), format!("c{i}"), ty, i > 0)
    };
    let columns: Vec<Column> = kinds.iter().enumerate().map(column).collect();
    let table = TableSchema::new(TableId(1), "d", "t", columns, vec![IndexSchema::primary(&[0])]);
    if filter.check(&table).is_err() {
        return;
    }
    let mut nulls = vec![Value::Null; kinds.len()];
    nulls[0] = Value::Int(-7);
    let full = vec![
        Value::Int(i64::MAX),
        Value::UInt(5),
        Value::Double(1e300),
        Value::Decimal(rauk_types::Decimal::from(42)),
        Value::from("text"),
        Value::Bytes(vec![0, 255]),
        Value::Date(rauk_types::Date::MAX),
        Value::Time(rauk_types::Time::MIN),
        Value::DateTime(rauk_types::DateTime::MAX),
        Value::Timestamp(1_000_000),
    ];
    for values in [nulls, full] {
        let mut bytes = Vec::new();
        row::encode_row(&table, &values, &mut bytes);
        let view = RowView::new(&table, 0, &bytes);
        assert_eq!(filter.passes(&view), filter.eval(&view) == Some(true));
    }
}

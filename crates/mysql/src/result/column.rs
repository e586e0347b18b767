//! Column definitions, with the types, lengths and flags that MySQL reports.
//!
//! Text is sent in character_set_results, so lengths are counted at the bytes of its longest character.
use crate::constants::{COLLATION_BINARY, column_flag as flag, column_type};
use crate::packet::write;
use rauk_types::result::{Charsets, ResultColumn};
use rauk_types::{Charset, DataType, Members, TypeKind};

/// The protocol's type of a column.
pub fn wire_type(kind: TypeKind) -> u8 {
    use TypeKind::*;
    match kind {
        Null => column_type::NULL,
        TinyInt => column_type::TINY,
        SmallInt => column_type::SHORT,
        MediumInt => column_type::INT24,
        Int => column_type::LONG,
        BigInt => column_type::LONGLONG,
        Decimal => column_type::NEWDECIMAL,
        Float => column_type::FLOAT,
        Double => column_type::DOUBLE,
        Char | Binary => column_type::STRING,
        VarChar | VarBinary => column_type::VAR_STRING,
        TinyText | Text | MediumText | LongText | TinyBlob | Blob | MediumBlob | LongBlob => column_type::BLOB,
        Date => column_type::DATE,
        Time => column_type::TIME,
        DateTime => column_type::DATETIME,
        Timestamp => column_type::TIMESTAMP,
        Json => column_type::JSON,
        // As MySQL sends them: with a flag that says which.
        Enum | Set => column_type::STRING,
        Bit => column_type::BIT,
        Year => column_type::YEAR,
        Geometry => column_type::GEOMETRY,
    }
}

/// Longest text form in bytes; of text in the set in which the column is sent.
fn length(ty: &DataType, set: Charset) -> u32 {
    let of_characters = |characters: usize| (characters as u32).saturating_mul(set.max_bytes());
    let fraction = if ty.scale == 0 { 0 } else { u32::from(ty.scale) + 1 };
    let width = |signed, unsigned| match (ty.length, ty.unsigned) {
        (0, true) => unsigned,
        (0, false) => signed,
        (given, _) => given,
    };
    match ty.kind {
        TypeKind::Null => 0,
        TypeKind::TinyInt => width(4, 3),
        TypeKind::SmallInt => width(6, 5),
        TypeKind::MediumInt => width(9, 8),
        TypeKind::Int => width(11, 10),
        TypeKind::BigInt => width(20, 20),
        TypeKind::Decimal => u32::from(ty.precision) + u32::from(ty.scale > 0) + u32::from(!ty.unsigned),
        TypeKind::Float => 12,
        TypeKind::Double => 22,
        TypeKind::Date => 10,
        TypeKind::Time => 10 + fraction,
        TypeKind::DateTime | TypeKind::Timestamp => 19 + fraction,
        TypeKind::Json => u32::MAX,
        TypeKind::Enum => of_characters(ty.members.map_or(0, Members::longest)),
        TypeKind::Set => of_characters(ty.members.map_or(0, Members::joined)),
        TypeKind::Year => 4,
        // Of the kinds of TEXT the limit is in bytes of the column's own set.
        _ if ty.is_text() && ty.is_lob() => of_characters((ty.length / ty.collation.charset().min_bytes()) as usize),
        _ if ty.is_text() => of_characters(ty.length as usize),
        _ => ty.length,
    }
}

fn flags(column: &ResultColumn) -> u16 {
    let ty = &column.ty;
    let stored = !column.org_table.is_empty();
    let mut flags = 0;
    let mut set = |on: bool, flag: u16| {
        if on {
            flags |= flag;
        }
    };
    set(!column.nullable, flag::NOT_NULL);
    set(column.primary_key, flag::PRI_KEY);
    set(column.unique_key, flag::UNIQUE_KEY);
    set(column.multiple_key, flag::MULTIPLE_KEY);
    set(column.primary_key || column.unique_key || column.multiple_key, flag::PART_KEY);
    set(column.auto_increment, flag::AUTO_INCREMENT);
    set(ty.is_lob(), flag::BLOB);
    // Of a text it marks a constant (see `rauk_sql`).
    set(ty.unsigned && !ty.is_text() || matches!(ty.kind, TypeKind::Bit | TypeKind::Year), flag::UNSIGNED);
    set(ty.zerofill || ty.kind == TypeKind::Year, flag::ZEROFILL);
    set(ty.kind == TypeKind::Enum, flag::ENUM);
    set(ty.kind == TypeKind::Set, flag::SET);
    set(ty.kind == TypeKind::Timestamp, flag::TIMESTAMP);
    let binary = if ty.is_numeric() || matches!(ty.kind, TypeKind::Bit | TypeKind::Year) {
        !stored
    } else {
        !(ty.is_text() || ty.has_members()) || ty.kind == TypeKind::Json || ty.collation.is_binary()
    };
    set(binary, flag::BINARY);
    flags
}

/// Appends the payload of a column definition.
pub fn write_column(column: &ResultColumn, charsets: &Charsets, out: &mut Vec<u8>) {
    let ty = &column.ty;
    write::lenenc_bytes(b"def", out);
    let set = charsets.of_names();
    for name in [&column.database, &column.table, &column.org_table, &column.name, &column.org_name] {
        match set.is_utf8mb4() {
            true => write::lenenc_bytes(name.as_bytes(), out),
            false => write::lenenc_bytes(&set.encode(name), out),
        }
    }
    out.push(0x0C);
    let text = ty.is_text() && ty.kind != TypeKind::Json || ty.has_members();
    let collation = match charsets.results {
        _ if !text => COLLATION_BINARY,
        Some(_) => charsets.results_collation.mysql_id(),
        None => ty.collation.mysql_id(),
    };
    out.extend_from_slice(&collation.to_le_bytes());
    out.extend_from_slice(&length(ty, charsets.of_column(ty)).to_le_bytes());
    out.push(wire_type(ty.kind));
    out.extend_from_slice(&flags(column).to_le_bytes());
    let decimals = match ty.kind {
        TypeKind::Decimal
        | TypeKind::Float
        | TypeKind::Double
        | TypeKind::Time
        | TypeKind::DateTime
        | TypeKind::Timestamp => ty.scale,
        _ if text && column.org_table.is_empty() => 31,
        _ => 0,
    };
    out.push(decimals);
    out.extend_from_slice(&[0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_types::Collation;

    pub fn stored(name: &str, ty: DataType) -> ResultColumn {
        ResultColumn {
            name: name.into(),
            org_name: name.into(),
            table: "t".into(),
            org_table: "t".into(),
            database: "d".into(),
            ty,
            nullable: true,
            primary_key: false,
            unique_key: false,
            multiple_key: false,
            auto_increment: false,
        }
    }

    /// Collation, length, type, flags, decimals.
    fn tail(column: &ResultColumn) -> (u16, u32, u8, u16, u8) {
        let mut out = Vec::new();
        write_column(column, &Charsets::default(), &mut out);
        let t = &out[out.len() - 12..];
        (
            u16::from_le_bytes([t[0], t[1]]),
            u32::from_le_bytes([t[2], t[3], t[4], t[5]]),
            t[6],
            u16::from_le_bytes([t[7], t[8]]),
            t[9],
        )
    }

    #[test]
    fn a_definition_byte_for_byte() {
        let column = ResultColumn {
            nullable: false,
            primary_key: true,
            auto_increment: true,
            ..stored("id", DataType::new(TypeKind::Int))
        };
        let mut out = Vec::new();
        write_column(&column, &Charsets::default(), &mut out);
        assert_eq!(out, b"\x03def\x01d\x01t\x01t\x02id\x02id\x0c\x3f\0\x0b\0\0\0\x03\x03\x42\0\0\0");
    }

    #[test]
    fn what_mysql_reports() {
        let new = DataType::new;
        let text = DataType::varchar(20, Collation::DEFAULT);
        let members = Members::intern(vec!["ü".to_string(), "ab".to_string()]);
        let padded = DataType { unsigned: true, zerofill: true, length: 5, ..new(TypeKind::Int) };
        for (ty, expected) in [
            (DataType::BIGINT_UNSIGNED, (63, 20, 8, 32, 0)),
            (DataType { length: 1, ..new(TypeKind::TinyInt) }, (63, 1, 1, 0, 0)),
            (DataType::decimal(10, 2), (63, 12, 246, 0, 2)),
            (DataType { unsigned: true, ..DataType::decimal(10, 0) }, (63, 10, 246, 32, 0)),
            (new(TypeKind::Double), (63, 22, 5, 0, 31)),
            (text, (255, 80, 253, 0, 0)),
            (DataType { collation: Collation::Utf8mb4Bin, ..text }, (255, 80, 253, 128, 0)),
            (new(TypeKind::Text), (255, 262_140, 252, 16, 0)),
            (new(TypeKind::Blob), (63, 65_535, 252, 144, 0)),
            (DataType::varbinary(9), (63, 9, 253, 128, 0)),
            (DataType { scale: 6, ..new(TypeKind::DateTime) }, (63, 26, 12, 128, 6)),
            (new(TypeKind::Timestamp), (63, 19, 7, 1152, 0)),
            (new(TypeKind::Date), (63, 10, 10, 128, 0)),
            (new(TypeKind::Json), (63, u32::MAX, 245, 144, 0)),
            (DataType::of_members(TypeKind::Enum, members, Collation::DEFAULT), (255, 8, 254, 256, 0)),
            (DataType::of_members(TypeKind::Set, members, Collation::DEFAULT), (255, 16, 254, 2048, 0)),
            (DataType::bit(10), (63, 10, 16, 32, 0)),
            (new(TypeKind::Year), (63, 4, 13, 96, 0)),
            (new(TypeKind::Geometry), (63, u32::MAX, 255, 144, 0)),
            (padded, (63, 5, 3, 96, 0)),
        ] {
            assert_eq!(tail(&stored("c", ty)), expected, "{ty:?}");
        }
        let computed = ResultColumn { org_table: String::new(), nullable: false, ..stored("1", DataType::BIGINT) };
        assert_eq!(tail(&computed), (63, 20, 8, 129, 0));
    }
}

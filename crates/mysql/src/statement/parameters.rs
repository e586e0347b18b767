//! Decodes the parameters of COM_STMT_EXECUTE, and the attributes in front of COM_QUERY.
//!
//! The types come from the client and hold until it sends others. Text that is valid in character_set_client becomes a string, other text and BLOB types become
//! bytes. A date with impossible parts is an error, as no column could take it.
use super::{Bound, Statement};
use crate::constants::{capability, column_type as t};
use crate::packet::read::{Fields, Malformed};
use rauk_types::charset::Decoded;
use rauk_types::{Charset, Date, DateTime, Decimal, Time, Value};

/// Flag of COM_STMT_EXECUTE: query attributes follow although the statement may have no parameters.
const PARAMETER_COUNT_AVAILABLE: u8 = 8;
/// Any cursor type; all are served as read-only.
const CURSOR: u8 = 1 | 2 | 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execute {
    pub wants_cursor: bool,
}

/// Decodes what follows the statement id; leaves one value for each parameter in `out`.
pub fn read_execute(
    fields: &mut Fields<'_>,
    statement: &mut Statement,
    capabilities: u32,
    client: Charset,
    out: &mut Vec<Value>,
) -> Result<Execute, Malformed> {
    out.clear();
    let flags = fields.u8()?;
    let _iterations = fields.u32()?;
    let named = capabilities & capability::QUERY_ATTRIBUTES != 0;
    let execute = Execute { wants_cursor: flags & CURSOR != 0 };
    let own = usize::from(statement.parameters);
    if own == 0 && !(named && flags & PARAMETER_COUNT_AVAILABLE != 0) {
        return Ok(execute);
    }
    let mut count = own;
    if named {
        count = usize::try_from(fields.lenenc()?).map_err(|_| Malformed("number of parameters"))?;
        if count < own {
            return Err(Malformed("fewer parameters than the statement has"));
        }
        if count == 0 {
            return Ok(execute);
        }
    }
    let nulls = fields.take(count.div_ceil(8))?;
    match fields.u8()? {
        0 => {}
        1 => statement.types = read_types(fields, count, named)?,
        _ => return Err(Malformed("bound-types flag")),
    }
    if statement.types.len() < count {
        return Err(Malformed("parameters without types"));
    }
    for i in 0..count {
        let bound = statement.types[i];
        let long = u16::try_from(i).ok().and_then(|i| statement.long_data.get(&i));
        let value = match long {
            Some(data) => text_or_bytes(data.clone(), bound.wire_type, client),
            None if nulls[i / 8] & (1 << (i % 8)) != 0 => Value::Null,
            None => read_value(fields, bound, client)?,
        };
        if i < own {
            out.push(value);
        }
    }
    // Behind the statement's own parameters stand query attributes, which have no meaning here.
    statement.types.truncate(own);
    Ok(execute)
}

/// Skips the query attributes in front of a COM_QUERY's text.
pub fn skip_attributes(fields: &mut Fields<'_>) -> Result<(), Malformed> {
    let count = usize::try_from(fields.lenenc()?).map_err(|_| Malformed("number of attributes"))?;
    let _sets = fields.lenenc()?;
    if count == 0 {
        return Ok(());
    }
    let nulls = fields.take(count.div_ceil(8))?;
    if fields.u8()? != 1 {
        return Err(Malformed("attributes without types"));
    }
    for (i, bound) in read_types(fields, count, true)?.into_iter().enumerate() {
        if nulls[i / 8] & (1 << (i % 8)) == 0 {
            read_value(fields, bound, Charset::UTF8MB4)?;
        }
    }
    Ok(())
}

fn read_types(fields: &mut Fields<'_>, count: usize, named: bool) -> Result<Vec<Bound>, Malformed> {
    if fields.len() < count * 2 {
        return Err(Malformed("ends within the types"));
    }
    let mut types = Vec::with_capacity(count);
    for _ in 0..count {
        let [wire_type, flags] = fields.u16()?.to_le_bytes();
        types.push(Bound { wire_type, unsigned: flags & 0x80 != 0 });
        if named {
            fields.lenenc_bytes()?;
        }
    }
    Ok(types)
}

fn read_value(fields: &mut Fields<'_>, bound: Bound, client: Charset) -> Result<Value, Malformed> {
    let signed = |signed: i64, unsigned: u64| if bound.unsigned { Value::UInt(unsigned) } else { Value::Int(signed) };
    Ok(match bound.wire_type {
        t::NULL => Value::Null,
        t::TINY | t::BOOL => {
            let n = fields.u8()?;
            signed((n as i8).into(), n.into())
        }
        t::SHORT | t::YEAR => {
            let n = fields.u16()?;
            signed((n as i16).into(), n.into())
        }
        t::LONG | t::INT24 => {
            let n = fields.u32()?;
            signed((n as i32).into(), n.into())
        }
        t::LONGLONG => {
            let n = fields.u64()?;
            signed(n as i64, n)
        }
        t::FLOAT => Value::Double(f32::from_bits(fields.u32()?).into()),
        t::DOUBLE => Value::Double(f64::from_bits(fields.u64()?)),
        t::DATE => Value::Date(read_datetime(fields)?.date()),
        t::DATETIME | t::TIMESTAMP => Value::DateTime(read_datetime(fields)?),
        t::TIME => Value::Time(read_time(fields)?),
        t::DECIMAL | t::NEWDECIMAL => {
            let text = text_or_bytes(fields.lenenc_bytes()?.to_vec(), t::VAR_STRING, client);
            match &text {
                Value::Str(s) => s.parse::<Decimal>().map(Value::Decimal).unwrap_or(text),
                _ => text,
            }
        }
        t::VARCHAR
        | t::BIT
        | t::JSON
        | t::ENUM
        | t::SET
        | t::TINY_BLOB
        | t::MEDIUM_BLOB
        | t::LONG_BLOB
        | t::BLOB
        | t::VAR_STRING
        | t::STRING
        | t::GEOMETRY => text_or_bytes(fields.lenenc_bytes()?.to_vec(), bound.wire_type, client),
        _ => return Err(Malformed("unknown type of a parameter")),
    })
}

fn text_or_bytes(bytes: Vec<u8>, wire_type: u8, client: Charset) -> Value {
    match wire_type {
        t::TINY_BLOB | t::MEDIUM_BLOB | t::LONG_BLOB | t::BLOB | t::BIT | t::GEOMETRY => Value::Bytes(bytes),
        _ if is_other(client, &bytes) => match client.decode(&bytes) {
            Decoded { text, malformed: None } => Value::Str(text.into_owned()),
            _ => Value::Bytes(bytes),
        },
        _ => match String::from_utf8(bytes) {
            Ok(text) => Value::Str(text),
            Err(error) => Value::Bytes(error.into_bytes()),
        },
    }
}

/// Whether bytes mean something else in the client's set than in UTF-8.
#[inline]
fn is_other(client: Charset, bytes: &[u8]) -> bool {
    !client.is_utf8mb4() && client != Charset::UTF8MB3 && client != Charset::BINARY && !bytes.is_ascii()
}

fn read_datetime(fields: &mut Fields<'_>) -> Result<DateTime, Malformed> {
    let length = fields.u8()?;
    let mut fields = Fields::new(fields.take(length.into())?);
    if length == 0 {
        return Ok(DateTime::ZERO);
    }
    let (year, month, day) = (fields.u16()?, fields.u8()?, fields.u8()?);
    if year > 9999 || month > 12 || day > 31 {
        return Err(Malformed("impossible date"));
    }
    let date = Date::from_parts(year, month, day);
    if length == 4 {
        return Ok(date.at_midnight());
    }
    let (hour, minute, second) = (fields.u8()?, fields.u8()?, fields.u8()?);
    let micros = if length == 7 { 0 } else { fields.u32()? };
    if hour > 23 || minute > 59 || second > 59 || micros > 999_999 {
        return Err(Malformed("impossible time of day"));
    }
    let seconds = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
    Ok(DateTime::new(date, seconds * 1_000_000 + i64::from(micros)))
}

fn read_time(fields: &mut Fields<'_>) -> Result<Time, Malformed> {
    let length = fields.u8()?;
    let mut fields = Fields::new(fields.take(length.into())?);
    if length == 0 {
        return Ok(Time::ZERO);
    }
    let negative = fields.u8()? != 0;
    // More than TIME can hold is clipped; so many days keep the sum within 64 bits.
    let days = i64::from(fields.u32()?.min(100));
    let (hour, minute, second) = (i64::from(fields.u8()?), i64::from(fields.u8()?), i64::from(fields.u8()?));
    let micros = if length == 8 { 0 } else { i64::from(fields.u32()?) };
    if minute > 59 || second > 59 || micros > 999_999 {
        return Err(Malformed("impossible time"));
    }
    let total = (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + micros;
    Ok(Time::clipped(if negative { -total } else { total }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(parameters: u16) -> Statement {
        Statement { parameters, ..Statement::default() }
    }

    fn execute(statement: &mut Statement, body: &[u8]) -> Result<Vec<Value>, Malformed> {
        let mut packet = vec![0, 1, 0, 0, 0];
        packet.extend_from_slice(body);
        let mut out = Vec::new();
        read_execute(&mut Fields::new(&packet), statement, 0, Charset::UTF8MB4, &mut out)?;
        Ok(out)
    }

    #[test]
    fn every_type() {
        let mut types: Vec<u8> = Vec::new();
        let mut values: Vec<u8> = Vec::new();
        let mut expected = Vec::new();
        let mut add = |ty: u8, unsigned: bool, bytes: &[u8], value: Value| {
            types.extend_from_slice(&[ty, if unsigned { 0x80 } else { 0 }]);
            values.extend_from_slice(bytes);
            expected.push(value);
        };
        add(t::TINY, false, &[0xFF], Value::Int(-1));
        add(t::TINY, true, &[0xFF], Value::UInt(255));
        add(t::SHORT, false, &[0xFE, 0xFF], Value::Int(-2));
        add(t::LONG, true, &[0xFF; 4], Value::UInt(u32::MAX.into()));
        add(t::LONGLONG, false, &[0xFF; 8], Value::Int(-1));
        add(t::LONGLONG, true, &[0xFF; 8], Value::UInt(u64::MAX));
        add(t::FLOAT, false, &1.5f32.to_le_bytes(), Value::Double(1.5));
        add(t::DOUBLE, false, &0.1f64.to_le_bytes(), Value::Double(0.1));
        add(t::NEWDECIMAL, false, b"\x051.250", Value::Decimal("1.250".parse().unwrap()));
        add(t::VAR_STRING, false, b"\x03abc", Value::Str("abc".into()));
        add(t::STRING, false, b"\x02\xff\xfe", Value::Bytes(vec![255, 254]));
        add(t::BLOB, false, b"\x03abc", Value::Bytes(b"abc".to_vec()));
        add(t::DATE, false, &[0], Value::Date(Date::ZERO));
        add(t::DATE, false, &[4, 0xE8, 7, 2, 29], Value::Date(Date::new(2024, 2, 29).unwrap()));
        let noon = |us| Value::DateTime(DateTime::from_parts(2024, 2, 29, 12, 30, 1, us).unwrap());
        add(t::DATETIME, false, &[7, 0xE8, 7, 2, 29, 12, 30, 1], noon(0));
        add(t::TIMESTAMP, false, &[11, 0xE8, 7, 2, 29, 12, 30, 1, 5, 0, 0, 0], noon(5));
        add(t::TIME, false, &[0], Value::Time(Time::ZERO));
        add(t::TIME, false, &[8, 1, 1, 0, 0, 0, 2, 3, 4], Value::Time(Time::new(true, 26, 3, 4, 0).unwrap()));
        add(t::TIME, false, &[12, 0, 0xFF, 0xFF, 0xFF, 0xFF, 2, 3, 4, 1, 0, 0, 0], Value::Time(Time::MAX));
        add(t::NULL, false, &[], Value::Null);
        let mut body = vec![0; expected.len().div_ceil(8)];
        body.push(1);
        body.extend_from_slice(&types);
        body.extend_from_slice(&values);
        let mut s = statement(expected.len() as u16);
        assert_eq!(execute(&mut s, &body).unwrap(), expected);
        // The types hold for the next execution, which does not send them.
        let mut again = vec![0; expected.len().div_ceil(8)];
        again.push(0);
        again.extend_from_slice(&values);
        assert_eq!(execute(&mut s, &again).unwrap(), expected);
    }

    #[test]
    fn nulls_and_long_data_take_no_bytes() {
        let mut s = statement(3);
        s.long_data.insert(2, b"long text".to_vec());
        let body = [0b001, 1, t::LONG, 0, t::TINY, 0, t::VAR_STRING, 0, 7];
        assert_eq!(execute(&mut s, &body).unwrap(), [Value::Null, Value::Int(7), Value::Str("long text".into())]);
    }

    #[test]
    fn attributes_are_skipped() {
        let mut packet = vec![2, 1, 0b10, 1, t::VAR_STRING, 0, 1, b'k', t::LONG, 0, 0, 1, b'v'];
        packet.extend_from_slice(b"SELECT 1");
        let mut fields = Fields::new(&packet);
        skip_attributes(&mut fields).unwrap();
        assert_eq!(fields.rest(), b"SELECT 1");
        let mut fields = Fields::new(b"\0\x01SELECT 2");
        skip_attributes(&mut fields).unwrap();
        assert_eq!(fields.rest(), b"SELECT 2");
    }

    #[test]
    fn attributes_behind_the_parameters() {
        let body = [8, 1, 0, 0, 0, 2, 0, 1, t::TINY, 0, 0, t::TINY, 0, 1, b'a', 5, 6];
        let (mut s, mut out) = (statement(1), Vec::new());
        read_execute(&mut Fields::new(&body), &mut s, capability::QUERY_ATTRIBUTES, Charset::UTF8MB4, &mut out)
            .unwrap();
        assert_eq!(out, [Value::Int(5)]);
        assert_eq!(s.types.len(), 1);
        // Without attributes, the count is there as well (mysql-connector-python).
        let body = [0, 1, 0, 0, 0, 1, 0, 1, t::TINY, 0, 0, 7];
        read_execute(&mut Fields::new(&body), &mut s, capability::QUERY_ATTRIBUTES, Charset::UTF8MB4, &mut out)
            .unwrap();
        assert_eq!(out, [Value::Int(7)]);
    }

    #[test]
    fn nonsense_is_refused() {
        for body in [
            &[][..],
            &[0],
            &[0, 0],
            &[0, 2],
            &[0, 1, 99, 0, 1],
            &[0, 1, t::DATE, 0, 4, 0, 0, 13, 1],
            &[0, 1, t::DATETIME, 0, 5, 0, 0, 1, 1, 1],
            &[0, 1, t::BLOB, 0, 0xFE, 255, 255, 255, 255, 255, 255, 255, 127],
        ] {
            assert!(execute(&mut statement(1), body).is_err(), "{body:?}");
        }
        let absurd = [8, 1, 0, 0, 0, 0xFE, 255, 255, 255, 255, 255, 255, 255, 127];
        let mut out = Vec::new();
        assert!(
            read_execute(&mut Fields::new(&absurd), &mut statement(1), u32::MAX, Charset::UTF8MB4, &mut out).is_err()
        );
    }

    #[test]
    fn texts_in_the_set_of_the_client() {
        let of = |set, bytes: &[u8]| text_or_bytes(bytes.to_vec(), t::VAR_STRING, set);
        assert_eq!(of(Charset::LATIN1, b"\xE4\x80"), Value::from("ä€"));
        assert_eq!(of(Charset::UTF8MB3, "ä😀".as_bytes()), Value::from("ä😀"));
        assert_eq!(of(Charset::BINARY, "ä".as_bytes()), Value::from("ä"));
        // What is malformed stays bytes, and bytes are bytes.
        assert_eq!(of(Charset::GBK, b"\xD6"), Value::Bytes(vec![0xD6]));
        assert_eq!(text_or_bytes(vec![0xE4], t::BLOB, Charset::LATIN1), Value::Bytes(vec![0xE4]));
    }
}

//! COMPRESS and UNCOMPRESS: the length of the text in four bytes, little end first, then zlib's form of it.

use super::{Call, Derived, Function, Typing, rules};
use crate::expr::Context;
use crate::expr::convert::Result;
use crate::expr::types::text_type;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use rauk_types::{Collation, Value};

pub const FUNCTIONS: &[Function] = &[
    Function::new("COMPRESS", 1, 1, bytes_type, compress).unbounded().of_bytes(),
    Function::new("UNCOMPRESS", 1, 1, bytes_type, uncompress).unbounded(),
    Function::new("UNCOMPRESSED_LENGTH", 1, 1, rules::unsigned_or_null, |c, x| {
        let bytes = c.bytes(0);
        match length(&bytes) {
            _ if bytes.is_empty() => Ok(Value::UInt(0)),
            Some(length) => Ok(Value::UInt(length as u64)),
            None => {
                damaged(x);
                Ok(Value::Null)
            }
        }
    }),
];

/// ER_TOO_BIG_FOR_UNCOMPRESS.
const TOO_BIG: u16 = 1256;
/// ER_ZLIB_Z_BUF_ERROR.
const NO_ROOM: u16 = 1258;
/// ER_ZLIB_Z_DATA_ERROR.
const DAMAGED: u16 = 1259;
/// Bytes of the length.
const HEAD: usize = 4;
/// Two bits of the length say nothing.
const LENGTH_BITS: u32 = 0x3FFF_FFFF;
/// Bytes between two looks at KILL.
const PIECE: usize = 256 << 10;

fn bytes_type(_: Typing<'_>) -> Result<Derived> {
    Ok(Derived::new(text_type(u32::MAX.into(), Collation::Binary)).nullable())
}

fn length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.first_chunk::<HEAD>().filter(|_| bytes.len() > HEAD)?;
    Some((u32::from_le_bytes(*head) & LENGTH_BITS) as usize)
}

fn damaged(context: &mut Context) {
    context.warn(DAMAGED, "ZLIB: Input data corrupted".into());
}

fn compress(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let bytes = c.bytes(0);
    if bytes.is_empty() {
        return Ok(Value::Bytes(Vec::new()));
    }
    // What zlib takes at most.
    let most = bytes.len() + bytes.len() / 1000 + 64;
    if !c.fits(most, context) {
        return Ok(Value::Null);
    }
    let mut out = Vec::with_capacity(most);
    out.extend_from_slice(&(bytes.len() as u32 & LENGTH_BITS).to_le_bytes());
    let mut state = Compress::new(Compression::default(), true);
    loop {
        context.budget.memory.look()?;
        let rest = &bytes[state.total_in() as usize..];
        let (piece, flush) = match rest.len() > PIECE {
            true => (&rest[..PIECE], FlushCompress::None),
            false => (rest, FlushCompress::Finish),
        };
        out.reserve(PIECE);
        match state.compress_vec(piece, &mut out, flush) {
            Ok(Status::StreamEnd) => break,
            Ok(Status::Ok | Status::BufError) => {}
            Err(_) => return Ok(Value::Null),
        }
    }
    // A column that cuts spaces off would damage it.
    if out.last() == Some(&b' ') {
        out.push(b'.');
    }
    Ok(Value::Bytes(out))
}

fn uncompress(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let bytes = c.bytes(0);
    if bytes.is_empty() {
        return Ok(Value::Bytes(Vec::new()));
    }
    let Some(length) = length(&bytes) else {
        damaged(context);
        return Ok(Value::Null);
    };
    if length > context.max_allowed_packet {
        let message = format!(
            "Uncompressed data size too large; the maximum size is {} (probably, length of uncompressed data was corrupted)",
            context.max_allowed_packet
        );
        context.warn(TOO_BIG, message);
        return Ok(Value::Null);
    }
    // It grows with what is really there: a length may lie.
    let mut out = Vec::new();
    let mut state = Decompress::new(true);
    let data = &bytes[HEAD..];
    loop {
        context.budget.memory.look()?;
        let before = (state.total_in(), out.len());
        out.reserve(PIECE.min(length + 1 - out.len().min(length)));
        let status = state.decompress_vec(&data[state.total_in() as usize..], &mut out, FlushDecompress::None);
        match status {
            Ok(Status::StreamEnd) if out.len() == length => return Ok(Value::Bytes(out)),
            Ok(Status::Ok | Status::BufError) if out.len() <= length && (state.total_in(), out.len()) != before => {}
            _ if out.len() > length => {
                let message = "ZLIB: Not enough room in the output buffer \
                               (probably, length of uncompressed data was corrupted)";
                context.warn(NO_ROOM, message.into());
                return Ok(Value::Null);
            }
            _ => {
                damaged(context);
                return Ok(Value::Null);
            }
        }
    }
}

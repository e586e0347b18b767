//! One entry for fuzzers: arbitrary bytes through every decoder that clients can reach. It must return, without a panic, with bounded memory.
use crate::constants::capability;
use crate::packet::compression::Inflater;
use crate::packet::read::Fields;
use crate::packet::reader::PacketReader;
use crate::statement::{Statement, parameters};
use crate::{handshake, statement_text};
use rauk_types::Charset;

/// The packet limit under which fuzzing runs, in bytes.
const LIMIT: usize = 1 << 20;

/// Takes `data` as a byte stream, as each kind of packet, and as compressed chunks.
pub fn fuzz_packet(data: &[u8]) {
    stream(data);
    let mut inflated = 0;
    let _ = Inflater::default().feed(data, |bytes| inflated += bytes.len());
    let choices = data.first().copied().unwrap_or(0);
    let capabilities = if choices & 1 == 0 { u32::MAX } else { !capability::QUERY_ATTRIBUTES };
    let _ = handshake::read_first(data, capabilities, choices & 2 != 0);
    let _ = handshake::read_change_user(data, capabilities);
    let sets: Vec<Charset> = Charset::all().filter(|set| set.is_for_clients()).collect();
    let set = sets[data.get(1).map_or(0, |byte| usize::from(*byte)) % sets.len()];
    let mut statement = Statement { parameters: u16::from(choices >> 2), ..Statement::default() };
    statement.long_data.insert(1, data.to_vec());
    let mut values = Vec::new();
    for _ in 0..2 {
        let _ = parameters::read_execute(&mut Fields::new(data), &mut statement, capabilities, set, &mut values);
    }
    let mut fields = Fields::new(data);
    if parameters::skip_attributes(&mut fields).is_ok() {
        let _ = statement_text::decode(fields.rest(), set, choices & 4 != 0);
    }
    let _ = statement_text::decode(data, set, choices & 4 != 0);
}

fn stream(data: &[u8]) {
    let mut reader = PacketReader::new(LIMIT);
    let step = 1 + data.len() / 3;
    for piece in data.chunks(step) {
        reader.feed(piece);
        loop {
            match reader.next_packet() {
                Ok(Some(packet)) => {
                    assert!(reader.payload(&packet).len() <= LIMIT);
                    reader.set_sequence(data[0]);
                }
                Ok(None) => break,
                Err(crate::packet::reader::FrameError::TooLarge) => {}
                Err(_) => return,
            }
        }
        reader.park();
        assert!(reader.memory() <= 4 * (LIMIT + data.len()), "memory follows what arrived");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    /// Random bytes, and plausible packets with random damage.
    #[test]
    fn random_bytes_do_no_harm() {
        let seeds: [&[u8]; 4] = [
            b"\x8d\xa2\x3a\0\0\0\0\x40\x2d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0root\0\x03abcdb\0mysql_native_password\0\x04\x01a\x01b",
            b"\0\x01\0\0\0\0\x01\xfd\0\x03\0\x0c\0\x03abc\x01\0\0\0\x0b\xe8\x07\x02\x1d\x01\x02\x03\x04\0\0\0",
            b"\x09\0\0\0\x03SELECT 1\x05\0\0\x01hello\xff\xff\xff\x02",
            b"\x01\x01\0\x01\xfd\0\x01k\x01vSELECT '\xff', `x` /* */",
        ];
        let mut rng = SmallRng::seed_from_u64(8306);
        for round in 0..20_000 {
            let mut data: Vec<u8> = if round % 2 == 0 {
                (0..rng.random_range(0..200)).map(|_| rng.random()).collect()
            } else {
                seeds[rng.random_range(0..seeds.len())].to_vec()
            };
            for _ in 0..rng.random_range(0..6) {
                if data.is_empty() {
                    break;
                }
                let at = rng.random_range(0..data.len());
                match rng.random_range(0..4) {
                    0 => data[at] = rng.random(),
                    1 => data.truncate(at),
                    2 => data[at] = 0xFF,
                    _ => data.insert(at, [0xFB, 0xFC, 0xFD, 0xFE][rng.random_range(0..4)]),
                }
            }
            fuzz_packet(&data);
        }
    }
}

//! The bytes of every signal, as they are for ever: a difference needs a new protocol version.
//!
//! `RAUK_WRITE_GOLDEN=1 cargo test -p rauk-wire --test golden` writes those that are meant to be new.

mod messages;

use rauk_wire::frame::{self, HEADER, Parsed};
use rauk_wire::fuzz::read_payload;
use rauk_wire::{Kind, WireError};
use std::fmt::Write;
use std::path::Path;

/// Thirty-two bytes a line.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(32) {
        line.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
        text.push('\n');
    }
    text
}

#[test]
fn bytes_are_what_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let rewrite = std::env::var_os("RAUK_WRITE_GOLDEN").is_some();
    let mut changed = Vec::new();
    for message in messages::all() {
        let file = folder.join(format!("{}.hex", message.name));
        let bytes = hex(&message.frame());
        if rewrite {
            std::fs::write(&file, &bytes).unwrap();
        } else if std::fs::read_to_string(&file).unwrap_or_default() != bytes {
            changed.push(message.name);
        }
    }
    assert!(changed.is_empty(), "other bytes than in {}: {changed:?}", folder.display());
}

#[test]
fn every_signal_has_its_golden_bytes() {
    let messages = messages::all();
    for kind in Kind::ALL {
        assert!(messages.iter().any(|message| message.kind == *kind), "{kind:?}");
        assert_eq!(Kind::from_number(*kind as u16), Some(*kind));
    }
    let numbers = (0..=u16::MAX).filter(|number| Kind::from_number(*number).is_some()).count();
    assert_eq!(numbers, Kind::ALL.len());
}

#[test]
fn frames_are_read_as_they_were_written() {
    for message in messages::all() {
        let frame = message.frame();
        let Ok(Parsed::Whole(header, length)) = frame::parse(&frame) else { panic!("{}", message.name) };
        assert_eq!((header.kind, length), (message.kind, frame.len()));
        assert_eq!((header.request, header.transaction, header.deadline_us), (0x0102_0304_0506_0708, 15, 1_000_000));
        assert_eq!(read_payload(header.kind, &frame[HEADER..]), Ok(()), "{}", message.name);
        let two = [frame.as_slice(), &frame].concat();
        assert!(matches!(frame::parse(&two), Ok(Parsed::Whole(_, first)) if first == length));
    }
}

/// A reader waits for the rest of a frame, and says for how much; a payload that ends early is an error in every place.
#[test]
fn cut_at_every_byte() {
    for message in messages::all() {
        let frame = message.frame();
        for end in 0..frame.len() {
            let expected = if end < HEADER { HEADER } else { frame.len() };
            assert_eq!(frame::parse(&frame[..end]), Ok(Parsed::Incomplete(expected)), "{} at {end}", message.name);
        }
        if message.kind.is_opaque() {
            continue;
        }
        for end in 0..message.payload.len() {
            assert!(read_payload(message.kind, &message.payload[..end]).is_err(), "{} at {end}", message.name);
        }
        let longer = [message.payload.as_slice(), b"\0"].concat();
        assert!(read_payload(message.kind, &longer).is_err(), "{} with a byte behind it", message.name);
    }
}

#[test]
fn every_damaged_bit_is_noticed() {
    for message in messages::all() {
        let frame = message.frame();
        for bit in 0..8 * frame.len() {
            let mut damaged = frame.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(frame::parse(&damaged), Ok(Parsed::Whole(..))), "{} bit {bit}", message.name);
        }
    }
}

/// The golden frame of this name, with bytes replaced and the checksum not mended.
fn replaced(name: &str, at: usize, bytes: &[u8]) -> Result<Parsed, WireError> {
    let message = messages::all().into_iter().find(|message| message.name == name).unwrap();
    let mut frame = message.frame();
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    frame::parse(&frame)
}

#[test]
fn what_can_never_become_right_is_refused_at_once() {
    for (bytes, wrong) in [(&b"G"[..], true), (b"RAUX", true), (b"RA", false), (b"", false), (b"\x16\x03\x01", true)] {
        assert_eq!(frame::parse(bytes) == Err(WireError::Magic), wrong, "{bytes:?}");
    }
    assert_eq!(replaced("ping", 6, &[9, 0]), Err(WireError::Kind(9)));
    assert_eq!(replaced("ping", 8, &u32::MAX.to_le_bytes()), Err(WireError::TooLong(u32::MAX.into())));
    assert_eq!(replaced("ping", 8, &[1, 0, 0, 4]), Err(WireError::TooLong((64 << 20) + 1)));
    assert_eq!(replaced("hello", 8, &4097u32.to_le_bytes()), Err(WireError::TooLong(4097)));
    assert_eq!(replaced("ping", 12, &[0; 4]), Err(WireError::Checksum));
    assert_eq!(replaced("ping", 84, &[1, 0, 0, 0]), Err(WireError::Malformed("header")));
    let ping = messages::all().into_iter().find(|message| message.name == "ping").unwrap().frame();
    assert_eq!(frame::parse_bounded(&ping[..HEADER], 7), Err(WireError::TooLong(8)));
    assert_eq!(frame::parse_bounded(&ping[..HEADER], 8), Ok(Parsed::Incomplete(HEADER + 8)));
}

/// This version and the one before are read; the handshake's signals are in any.
#[test]
fn versions() {
    for (format, spoken) in
        [(rauk_wire::PROTOCOL, true), (rauk_wire::OLDEST_PROTOCOL, true), (2, false), (u16::MAX, false)]
    {
        for message in messages::all() {
            let mut frame = message.frame();
            let Ok(Parsed::Whole(mut header, length)) = frame::parse(&frame) else { panic!("{}", message.name) };
            header.format = format;
            frame::finish(&mut frame, &header);
            let expected = if spoken || message.kind.is_handshake() {
                Ok(Parsed::Whole(header, length))
            } else {
                Err(WireError::Version(format))
            };
            assert_eq!(frame::parse(&frame), expected, "{} in version {format}", message.name);
        }
    }
}

//! OK, ERR and EOF packets.
use crate::constants::{capability, status};
use crate::packet::write;
use crate::packet::writer::PacketWriter;
use rauk_types::result::{Completion, ServerStatus, SessionChange};
use rauk_types::{Charset, MysqlError};

/// The status flags as a packet carries them.
pub fn flags(status: &ServerStatus) -> u16 {
    let mut flags = 0;
    for (on, flag) in [
        (status.in_transaction, status::IN_TRANS),
        (status.autocommit, status::AUTOCOMMIT),
        (status.in_transaction_readonly, status::IN_TRANS_READONLY),
        (status.more_results, status::MORE_RESULTS_EXISTS),
        (status.no_backslash_escapes, status::NO_BACKSLASH_ESCAPES),
    ] {
        if on {
            flags |= flag;
        }
    }
    flags
}

/// The OK packet of a statement without a result set.
pub fn write_ok(writer: &mut PacketWriter, capabilities: u32, completion: &Completion, changes: &[SessionChange]) {
    ok(writer, 0x00, capabilities, completion, flags(&completion.status), changes);
}

/// The end of a result set: an EOF packet, or the OK packet in its place for clients that asked for that.
pub fn write_end(
    writer: &mut PacketWriter,
    capabilities: u32,
    completion: &Completion,
    more_flags: u16,
    changes: &[SessionChange],
) {
    let flags = flags(&completion.status) | more_flags;
    if capabilities & capability::DEPRECATE_EOF != 0 {
        // Rows number the affected rows of other statements; a result set has none.
        let end = Completion { affected_rows: 0, last_insert_id: 0, ..completion.clone() };
        ok(writer, 0xFE, capabilities, &end, flags, changes);
    } else {
        write_eof(writer, completion.warnings, flags);
    }
}

/// A plain EOF packet.
pub fn write_eof(writer: &mut PacketWriter, warnings: u16, flags: u16) {
    writer.begin();
    let out = writer.out();
    out.push(0xFE);
    out.extend_from_slice(&warnings.to_le_bytes());
    out.extend_from_slice(&flags.to_le_bytes());
    writer.end();
}

fn ok(
    writer: &mut PacketWriter,
    header: u8,
    capabilities: u32,
    completion: &Completion,
    mut flags: u16,
    changes: &[SessionChange],
) {
    let tracked = capabilities & capability::SESSION_TRACK != 0 && !changes.is_empty();
    if tracked {
        flags |= status::SESSION_STATE_CHANGED;
    }
    writer.begin();
    let out = writer.out();
    out.push(header);
    write::lenenc(completion.affected_rows, out);
    write::lenenc(completion.last_insert_id, out);
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&completion.warnings.to_le_bytes());
    if tracked || !completion.info.is_empty() {
        write::lenenc_bytes(completion.info.as_bytes(), out);
    }
    if tracked {
        let set = completion.status.charsets.of_names();
        write::lenenc_with(out, |out| {
            for change in changes {
                match change {
                    SessionChange::Variable { name, value } => {
                        out.push(0);
                        write::lenenc_with(out, |out| {
                            write::lenenc_bytes(name.as_bytes(), out);
                            write::lenenc_bytes(&set.encode(value), out);
                        });
                    }
                    SessionChange::Schema(name) => tracked_text(1, &set.encode(name), out),
                    SessionChange::State => tracked_text(2, b"1", out),
                    SessionChange::TransactionCharacteristics(text) => tracked_text(4, text.as_bytes(), out),
                    SessionChange::TransactionState(letters) => tracked_text(5, letters.as_bytes(), out),
                }
            }
        });
    }
    writer.end();
}

/// A change that is one text.
fn tracked_text(kind: u8, text: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    write::lenenc_with(out, |out| write::lenenc_bytes(text, out));
}

/// `set`: that of messages.
pub fn write_error(writer: &mut PacketWriter, error: &MysqlError, set: Charset) {
    writer.begin();
    let out = writer.out();
    out.push(0xFF);
    out.extend_from_slice(&error.code.to_le_bytes());
    out.push(b'#');
    out.extend_from_slice(&error.state);
    // MySQL's limit, and a bound for messages that quote input.
    let mut end = error.message.len().min(512);
    while !error.message.is_char_boundary(end) {
        end -= 1;
    }
    out.extend_from_slice(&set.encode(&error.message[..end]));
    writer.end();
}

/// An error before the client has said who it is: without the SQLSTATE, which it may not expect yet.
pub fn write_early_error(writer: &mut PacketWriter, error: &MysqlError) {
    writer.begin();
    let out = writer.out();
    out.push(0xFF);
    out.extend_from_slice(&error.code.to_le_bytes());
    out.extend_from_slice(error.message.as_bytes());
    writer.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn autocommit() -> ServerStatus {
        ServerStatus { autocommit: true, ..Default::default() }
    }

    #[test]
    fn ok_as_mysql_sends_it() {
        let mut writer = PacketWriter::default();
        writer.set_sequence(1);
        let completion = Completion {
            affected_rows: 3,
            last_insert_id: 300,
            warnings: 1,
            info: "Records: 3".into(),
            status: autocommit(),
        };
        write_ok(&mut writer, 0, &completion, &[]);
        assert_eq!(writer.bytes(), b"\x14\0\0\x01\x00\x03\xfc\x2c\x01\x02\x00\x01\x00\x0aRecords: 3");
    }

    #[test]
    fn ends_of_result_sets() {
        let completion = Completion { affected_rows: 9, warnings: 2, status: autocommit(), ..Default::default() };
        let mut writer = PacketWriter::default();
        write_end(&mut writer, 0, &completion, 0, &[]);
        assert_eq!(writer.bytes(), [5, 0, 0, 0, 0xFE, 2, 0, 2, 0]);
        let mut writer = PacketWriter::default();
        write_end(&mut writer, capability::DEPRECATE_EOF, &completion, status::CURSOR_EXISTS, &[]);
        assert_eq!(writer.bytes(), [7, 0, 0, 0, 0xFE, 0, 0, 66, 0, 2, 0]);
    }

    #[test]
    fn session_changes() {
        let changes = [
            SessionChange::Schema("shop".into()),
            SessionChange::Variable { name: "autocommit".into(), value: "ON".into() },
        ];
        let mut writer = PacketWriter::default();
        let completion = Completion { status: autocommit(), ..Default::default() };
        write_ok(&mut writer, capability::SESSION_TRACK, &completion, &changes);
        let expected = b"\0\0\0\x02\x40\0\0\0\x17\x01\x05\x04shop\x00\x0e\x0aautocommit\x02ON";
        assert_eq!(&writer.bytes()[4..], expected);
        let mut writer = PacketWriter::default();
        let transaction = [
            SessionChange::State,
            SessionChange::TransactionState("T_______".into()),
            SessionChange::TransactionCharacteristics("START TRANSACTION;".into()),
        ];
        write_ok(&mut writer, capability::SESSION_TRACK, &completion, &transaction);
        let expected = b"\0\0\0\x02\x40\0\0\0\x24\x02\x02\x011\x05\x09\x08T_______\x04\x13\x12START TRANSACTION;";
        assert_eq!(&writer.bytes()[4..], expected);
        let mut writer = PacketWriter::default();
        write_ok(&mut writer, 0, &completion, &changes);
        assert_eq!(&writer.bytes()[4..], b"\0\0\0\x02\0\0\0");
    }

    #[test]
    fn errors_carry_their_state() {
        let mut writer = PacketWriter::default();
        write_error(&mut writer, &MysqlError::new(1146, "Table 'a.b' doesn't exist"), Charset::UTF8MB4);
        assert_eq!(writer.bytes(), b"\x22\0\0\0\xff\x7a\x04#42S02Table 'a.b' doesn't exist");
        let mut writer = PacketWriter::default();
        write_error(&mut writer, &MysqlError::new(1064, "ß".repeat(400)), Charset::UTF8MB4);
        assert_eq!(writer.len(), 4 + 9 + 512);
    }
}

//! Every command and its answer, with and without the newer forms of EOF.

use crate::support::client::{self, Client, Outcome};
use crate::support::{backend::Scripted, run_default};

const AUTOCOMMIT: u16 = 2;

fn each_form(test: impl Fn(&mut Client)) {
    let running = run_default();
    for extra in [0, client::DEPRECATE_EOF] {
        test(&mut running.client_with(extra));
    }
}

fn prepare(client: &mut Client, sql: &str) -> (u32, u16, u16) {
    let mut p = vec![0x16];
    p.extend_from_slice(sql.as_bytes());
    client.command(&p);
    let ok = client.read();
    assert_eq!(ok[0], 0, "{ok:?}");
    let word = |at: usize| u16::from_le_bytes([ok[at], ok[at + 1]]);
    let (columns, parameters) = (word(5), word(7));
    for count in [parameters, columns] {
        for _ in 0..count {
            client.read();
        }
        if count > 0 && client.capabilities & client::DEPRECATE_EOF == 0 {
            assert_eq!(client.read()[0], 0xFE);
        }
    }
    (u32::from_le_bytes(ok[1..5].try_into().unwrap()), columns, parameters)
}

fn execute(client: &mut Client, id: u32, flags: u8, body: &[u8]) {
    let mut p = vec![0x17];
    p.extend_from_slice(&id.to_le_bytes());
    p.extend_from_slice(&[flags, 1, 0, 0, 0]);
    p.extend_from_slice(body);
    client.command(&p);
}

#[test]
fn queries() {
    each_form(|client| {
        let got = client.query("SELECT 1 AS one, 'two'").unwrap();
        assert_eq!(got.columns, ["one", "'two'"]);
        assert_eq!(got.text(), [[Some("1".to_owned()), Some("two".to_owned())]]);
        assert_eq!(got.status, AUTOCOMMIT);
        let got = client.query("INSERT").unwrap();
        assert_eq!((got.affected, got.insert_id, got.warnings), (3, 41, 1));
        assert_eq!(got.info, b"\x26Records: 3  Duplicates: 0  Warnings: 1");
        let error = client.query("NONSENSE").unwrap_err();
        assert_eq!((error.code, error.state.as_str()), (1064, "42000"));
        assert_eq!(client.query("").unwrap_err().code, 1065);
        assert_eq!(client.query("BEGIN").unwrap().status, AUTOCOMMIT | 1);
        assert_eq!(client.query("COMMIT").unwrap().status, AUTOCOMMIT);
        assert_eq!(client.query("SILENCE").unwrap_err().code, 1105);
        assert_eq!(client.query("EVERY TYPE").unwrap().text()[0].len(), 23);
    });
}

#[test]
fn several_statements_in_one() {
    let running = run_default();
    let mut client = running.client_with(client::MULTI | client::DEPRECATE_EOF);
    let more = |o: &Outcome| o.status & 8 != 0;
    let first = client.query("SELECT 1; INSERT; SELECT 2").unwrap();
    let second = client.result().unwrap();
    let third = client.result().unwrap();
    assert_eq!([more(&first), more(&second), more(&third)], [true, true, false]);
    assert_eq!((second.affected, third.text()[0][0].as_deref()), (3, Some("2")));
    client.query("SELECT 1; NONSENSE; SELECT 2").unwrap();
    assert_eq!(client.result().unwrap_err().code, 1064);
    // COM_SET_OPTION takes it away.
    client.command(&[0x1B, 1, 0]);
    assert_eq!(client.read()[0], 0xFE);
    assert!(client.query("SELECT 1; SELECT 2").is_err());
}

#[test]
fn an_error_takes_its_result_set_back_unless_it_was_sent() {
    each_form(|client| {
        assert_eq!(client.query("ROWS_THEN_ERROR 0").unwrap_err().code, 1317);
        client.command(b"\x03ROWS_THEN_ERROR 1");
        assert_eq!(client.read(), [1], "one column");
        client.read();
        if client.capabilities & client::DEPRECATE_EOF == 0 {
            client.read();
        }
        assert_eq!(client.rows(Outcome::default()).unwrap_err().code, 1317);
        client.query("SELECT 1").unwrap();
    });
}

/// What a client must never see is the beginning of one result before another.
#[test]
fn a_statement_that_begins_anew_takes_its_result_set_back_unless_it_was_sent() {
    each_form(|client| {
        let got = client.query("ROWS_THEN_AGAIN 0").unwrap();
        assert_eq!((got.columns.len(), got.text()), (1, vec![vec![Some("2".to_owned())]]));
        assert_eq!(client.query("ROWS_THEN_AGAIN 1").unwrap_err().code, 1412);
        assert_eq!(client.query("SELECT 1").unwrap().text(), [[Some("1".to_owned())]]);
    });
}

#[test]
fn prepared_statements() {
    each_form(|client| {
        let (id, columns, parameters) = prepare(client, "ECHO ? ? ?");
        assert_eq!((columns, parameters), (3, 3));
        execute(client, id, 0, b"\x04\x01\x08\x00\xfd\x00\x06\x00\x07\0\0\0\0\0\0\0\x03abc");
        let row = client.result().unwrap().rows.remove(0);
        assert_eq!(row, b"\x00\x10\x07\0\0\0\0\0\0\0\x03abc");
        // The same types again, then long data for the second.
        execute(client, id, 0, b"\x06\x00\x09\0\0\0\0\0\0\0");
        assert_eq!(client.result().unwrap().rows[0], b"\x00\x18\x09\0\0\0\0\0\0\0");
        let mut long = vec![0x18];
        long.extend_from_slice(&id.to_le_bytes());
        long.extend_from_slice(b"\x01\0piece ");
        client.command(&long);
        client.command(&long);
        execute(client, id, 0, b"\x04\x00\x0a\0\0\0\0\0\0\0");
        assert_eq!(client.result().unwrap().rows[0], b"\x00\x10\x0a\0\0\0\0\0\0\0\x0cpiece piece ");
        // Too short: an error, and the connection goes on.
        execute(client, id, 0, b"\x00\x00\x01");
        let error = client.result().unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (1210, "Incorrect arguments to mysqld_stmt_execute"));
        let reset: Vec<u8> = [&[0x1A][..], &id.to_le_bytes()].concat();
        client.command(&reset);
        client.result().unwrap();
        let close: Vec<u8> = [&[0x19][..], &id.to_le_bytes()].concat();
        client.command(&close);
        execute(client, id, 0, b"\x07\x00");
        let error = client.result().unwrap_err();
        assert_eq!((error.code, error.state.as_str()), (1243, "HY000"));
        assert_eq!(error.message, format!("Unknown prepared statement handler ({id}) given to mysqld_stmt_execute"));
        client.command(b"\x16SYNTAX");
        assert_eq!(client.result().unwrap_err().code, 1064);
        let (id, ..) = prepare(client, "INSERT");
        execute(client, id, 0, b"");
        assert_eq!(client.result().unwrap().affected, 3);
    });
}

#[test]
fn cursors() {
    each_form(|client| {
        let (id, ..) = prepare(client, "ROWS 5 3");
        execute(client, id, 1, b"");
        let opened = client.result().unwrap();
        assert_eq!((opened.rows.len(), opened.status), (0, AUTOCOMMIT | 64));
        let mut fetch = |count: u32| {
            let p: Vec<u8> = [&[0x1C][..], &id.to_le_bytes(), &count.to_le_bytes()].concat();
            client.command(&p);
            client.rows(Outcome::default()).map(|o| (o.rows.len(), o.status))
        };
        assert_eq!(fetch(2), Ok((2, AUTOCOMMIT | 64)));
        assert_eq!(fetch(2), Ok((2, AUTOCOMMIT | 64)));
        assert_eq!(fetch(2), Ok((1, AUTOCOMMIT | 128)));
        let error = fetch(2).unwrap_err();
        assert_eq!((error.code, error.message), (1421, format!("The statement ({id}) has no open cursor.")));
    });
}

#[test]
fn cursors_are_bounded() {
    let running = crate::support::run(Scripted::default(), crate::support::limits(|l| l.cursor_bytes = 10_000));
    let mut client = running.client();
    let (id, ..) = prepare(&mut client, "ROWS 1000 100");
    execute(&mut client, id, 1, b"");
    let error = client.result().unwrap_err();
    assert_eq!(error.code, 1114);
    assert!(error.message.contains("10000 bytes"), "{error:?}");
    execute(&mut client, id, 0, b"");
    assert_eq!(client.result().unwrap().rows.len(), 1000);
}

#[test]
fn the_smaller_commands() {
    each_form(|client| {
        client.command(&[0x0E]);
        client.result().unwrap();
        client.command(b"\x02shop");
        client.result().unwrap();
        assert_eq!(client.query("WHOAMI").unwrap().text()[0][2].as_deref(), Some("shop"));
        client.command(b"\x02missing");
        assert_eq!(client.result().unwrap_err().code, 1049);
        client.command(&[0x09]);
        assert!(client.read().starts_with(b"Uptime"));
        client.command(&[0x0D]);
        assert_eq!(client.read()[0], 0xFE);
        client.command(&[0x0A]);
        assert_eq!(client.result().unwrap().text()[0][0], Some(client.connection_id.to_string()));
        client.command(b"\x04t\0%");
        let columns = client.rows(Outcome::default()).unwrap().rows;
        assert_eq!((columns.len(), columns[0].last()), (23, Some(&0xFB)));
        client.command(b"\x04missing\0");
        assert_eq!(client.read()[0], 0xFF);
        client.command(&[0x1F]);
        client.result().unwrap();
        for unknown in [&[0x00][..], &[0x05], &[0x12, 1, 2], &[0xFA], &[0xFF]] {
            client.command(unknown);
            let error = client.result().unwrap_err();
            assert_eq!((error.code, error.state.as_str(), error.message.as_str()), (1047, "08S01", "Unknown command"));
        }
        client.command(&[]);
        assert_eq!(client.result().unwrap_err().code, 1835);
        client.command(&[1]);
        assert!(client.is_closed());
    });
}

#[test]
fn commands_sent_ahead_are_answered_in_order() {
    let running = run_default();
    let mut client = running.client();
    let mut both = Vec::new();
    for sql in [&b"\x03SELECT 1"[..], b"\x03SELECT 2", b"\x0e"] {
        both.extend_from_slice(&[sql.len() as u8, 0, 0, 0]);
        both.extend_from_slice(sql);
    }
    client.stream.write_all(&both).unwrap();
    for expected in ["1", "2"] {
        client.sequence = 1;
        assert_eq!(client.result().unwrap().text()[0][0].as_deref(), Some(expected));
    }
    client.sequence = 1;
    client.result().unwrap();
}

#[test]
fn change_user_begins_a_new_session() {
    let running = run_default();
    let mut client = running.client();
    client.query("BEGIN").unwrap();
    let (id, ..) = prepare(&mut client, "ECHO ?");
    client.command(b"\x11native\0\0shop\0\x2d\0mysql_native_password\0");
    client.authenticate("secret").unwrap();
    assert_eq!(client.query("WHOAMI").unwrap().text()[0][..3], ["native", "%", "shop"].map(|s| Some(s.to_owned())));
    assert_eq!(client.query("SELECT 1").unwrap().status, AUTOCOMMIT);
    execute(&mut client, id, 0, b"\x01\x00");
    assert_eq!(client.result().unwrap_err().code, 1243);
    client.command(b"\x11sha2\0\0\0\x2d\0caching_sha2_password\0");
    client.authenticate("secret").unwrap();
    client.command(b"\x11root\0\0\0");
    client.authenticate("").unwrap();
    crate::support::eventually(|| running.backend.sessions.load(std::sync::atomic::Ordering::Relaxed) == 1);
    // A wrong password ends the connection.
    client.command(b"\x11native\0\0\0\x2d\0mysql_native_password\0");
    assert_eq!(client.authenticate("wrong").unwrap_err().code, 1045);
    assert!(client.is_closed());
}

#[test]
fn killing() {
    let running = run_default();
    let (mut victim, mut killer) = (running.client(), running.client());
    let kill: Vec<u8> = [&[0x0C][..], &victim.connection_id.to_le_bytes()].concat();
    // Running: the statement is interrupted, then the connection ends.
    victim.command(b"\x03SLEEP 10000");
    std::thread::sleep(std::time::Duration::from_millis(50));
    killer.command(&kill);
    killer.result().unwrap();
    assert_eq!(victim.result().unwrap_err().code, 1317);
    assert!(victim.is_closed());
    // Idle.
    let mut victim = running.client();
    killer.query(&format!("KILL {}", victim.connection_id)).unwrap();
    assert!(victim.is_closed());
    killer.command(&[0x0C, 0, 0, 0, 9]);
    assert_eq!(killer.result().unwrap_err().code, 1094);
}

#[test]
fn session_changes_are_told_to_who_asks() {
    let running = run_default();
    let mut client = running.client_with(client::DEPRECATE_EOF | client::SESSION_TRACK);
    let changed = client.query("USE shop").unwrap();
    assert_eq!((changed.status & 0x4000, &changed.info[..]), (0x4000, &b"\0\x07\x01\x05\x04shop"[..]));
    client.command(b"\x02other");
    assert_eq!(client.result().unwrap().info, b"\0\x08\x01\x06\x05other");
    // A variable, that anything has changed, the transaction's state, and how to begin it again.
    let tracked = client.query("TRACK").unwrap();
    assert_eq!(
        (tracked.status & 0x4000, &tracked.info[..]),
        (0x4000, &b"\0\x2a\0\x04\x01a\x011\x02\x02\x011\x05\x09\x08T_R___S_\x04\x13\x12START TRANSACTION;"[..])
    );
    assert_eq!(client.query("INSERT").unwrap().status & 0x4000, 0);
    assert_eq!(running.client().query("USE shop").unwrap().info, b"");
}

#[test]
fn raw_bytes_in_a_literal() {
    let running = run_default();
    let mut client = running.client();
    client.command(b"\x03LENGTH '\xff\xfe'");
    assert_eq!(client.result().unwrap().text()[0][0].as_deref(), Some("7"), "x'FFFE'");
    client.command(b"\x03SELECT \xff");
    assert_eq!(client.result().unwrap_err().code, 1300);
}

#[test]
fn packets_of_more_than_a_frame() {
    let running = run_default();
    let mut client = running.client();
    let sql = format!("LENGTH {}", "x".repeat(40 << 20));
    assert_eq!(client.query(&sql).unwrap().text()[0][0], Some((40u32 << 20).to_string()));
    let big = client.query(&format!("ROWS 2 {}", 20 << 20)).unwrap();
    assert_eq!(big.rows.iter().map(Vec::len).collect::<Vec<_>>(), [(20 << 20) + 11; 2]);
    client.query("SELECT 1").unwrap();
}

//! What a statement costs in one process: `cargo test --release -p rauk-sql --lib session::tests::cost -- --ignored --nocapture`.

use super::{Server, Test, server};
use rauk_node::block_on;
use rauk_types::result::{Completion, FlushFuture, ResultColumn, ResultSink};
use rauk_types::{Value, ValueRef};
use std::time::Instant;

/// Counts and forgets.
#[derive(Default)]
struct Nowhere {
    rows: u64,
}

impl ResultSink for Nowhere {
    fn columns(&mut self, _: &[ResultColumn]) {}
    fn row(&mut self, _: &[ValueRef<'_>]) {
        self.rows += 1;
    }
    fn withdraw(&mut self) -> bool {
        self.rows == 0
    }
    fn complete(&mut self, _: &Completion) {}
    fn buffered(&self) -> usize {
        0
    }
    fn flush(&mut self) -> FlushFuture<'_> {
        Box::pin(std::future::ready(Ok(())))
    }
}

const ROWS: u64 = 10_000;

fn filled(server: &Server) -> Test {
    let mut t = server.session();
    t.ok("CREATE TABLE sbtest1 (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', KEY k_1 (k))");
    for batch in 0..ROWS / 500 {
        let rows: Vec<String> =
            (0..500).map(|n| format!("({}, 'c-{batch}-{n}', 'pad')", (batch * 7919 + n * 31) % ROWS)).collect();
        t.ok(&format!("INSERT INTO sbtest1 (k, c, pad) VALUES {}", rows.join(",")));
    }
    t
}

fn measure(what: &str, times: u64, mut each: impl FnMut(u64)) {
    (0..times / 10).for_each(&mut each);
    let start = Instant::now();
    (0..times).for_each(&mut each);
    println!("{what:<28} {:>8.2} µs", start.elapsed().as_secs_f64() * 1e6 / times as f64);
}

#[test]
#[ignore = "a measurement"]
fn statements() {
    let server = server();
    let mut t = filled(&server);
    let mut sink = Nowhere::default();
    let id = |n: u64| (n * 7919) % ROWS + 1;
    measure("point select, text", 100_000, |n| {
        let sql = format!("SELECT c FROM sbtest1 WHERE id={}", id(n));
        block_on(t.session.query(&sql, &mut sink)).unwrap();
    });
    let select = t.prepare("SELECT c FROM sbtest1 WHERE id=?").id;
    measure("point select, prepared", 100_000, |n| {
        block_on(t.session.execute(select, &[Value::Int(id(n) as i64)], &mut sink)).unwrap();
    });
    let range = t.prepare("SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?").id;
    measure("range of 100, prepared", 5_000, |n| {
        let low = id(n) as i64;
        block_on(t.session.execute(range, &[Value::Int(low), Value::Int(low + 99)], &mut sink)).unwrap();
    });
    let order = t.prepare("SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c").id;
    measure("distinct order of 100", 5_000, |n| {
        let low = id(n) as i64;
        block_on(t.session.execute(order, &[Value::Int(low), Value::Int(low + 99)], &mut sink)).unwrap();
    });
    let update = t.prepare("UPDATE sbtest1 SET k=k+1 WHERE id=?").id;
    measure("update of an indexed column", 20_000, |n| {
        block_on(t.session.execute(update, &[Value::Int(id(n) as i64)], &mut sink)).unwrap();
    });
    measure("select of a constant", 100_000, |_| {
        block_on(t.session.query("SELECT 1", &mut sink)).unwrap();
    });
    measure("begin and commit", 100_000, |_| {
        block_on(t.session.query("BEGIN", &mut sink)).unwrap();
        block_on(t.session.query("COMMIT", &mut sink)).unwrap();
    });
    measure("set of a variable", 20_000, |_| {
        block_on(t.session.query("SET autocommit=1", &mut sink)).unwrap();
    });
    assert!(sink.rows > 0);
}

/// Every statement's future is copied into its box at the start: with the futures of all rare statements in it, it had 13 KiB. A scan, which may go through
/// several tables, is in it.
#[test]
fn a_statement_begins_with_a_small_future() {
    let server = server();
    let mut t = server.session();
    let bytes = t.session.text_future_bytes(&mut Nowhere::default());
    assert!(bytes < 7_400, "{bytes} bytes");
}

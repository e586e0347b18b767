//! Debian's sysbench against a server of the test.

use super::cluster::{Node, insist_on};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const TABLES: usize = 2;
pub const ROWS: usize = 1000;
/// Conflicts, waits, moved primaries, and what nobody could do at the moment: a client begins its transaction again. With a lost connection (2006, 2013) it connects again: a busy machine's node may lose its
/// lease and start anew.
const IGNORED: &str = "1020,1180,1205,1213,1297,2006,2013";

/// A running load; ended by pid when dropped.
pub struct Load {
    child: Child,
    output: Option<JoinHandle<Vec<String>>>,
    errors: Option<JoinHandle<String>>,
    ended: Arc<AtomicBool>,
}

fn command(ports: &[u16]) -> Command {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let mut command = Command::new("sysbench");
    command
        .args(["oltp_read_write", "--db-driver=mysql", "--mysql-host=127.0.0.1", "--mysql-user=root"])
        .args(["--mysql-db=sbtest", "--mysql-ssl=off"])
        // sysbench crashes when it gives up the statements of a connection that was lost.
        .arg("--db-ps-mode=disable")
        .arg(format!("--mysql-ignore-errors={IGNORED}"))
        .arg(format!("--mysql-port={}", ports.join(",")))
        .arg(format!("--tables={TABLES}"))
        .arg(format!("--table-size={ROWS}"));
    command
}

const MISSING: &str = "this test uses sysbench: install Debian's sysbench (scripts/setup.sh test)";

/// Makes and fills the tables. sysbench gives up at an error here, as when a primary moves, and is then begun again.
pub fn prepare(node: &Node) {
    let mut told = String::new();
    for _ in 0..5 {
        insist_on(node, &["DROP DATABASE IF EXISTS sbtest", "CREATE DATABASE IF NOT EXISTS sbtest"]);
        let output = command(&[node.process().port]).arg("prepare").output().expect(MISSING);
        if output.status.success() {
            return;
        }
        told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    }
    panic!("sysbench prepare: {told}");
}

impl Load {
    /// Reports every second, until that many are over.
    pub fn start(ports: &[u16], threads: usize, seconds: u64) -> Load {
        let mut child = command(ports)
            .arg(format!("--threads={threads}"))
            .arg(format!("--time={seconds}"))
            .args(["--report-interval=1", "--rand-type=uniform", "run"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect(MISSING);
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut stderr = child.stderr.take().expect("piped");
        let ended = Arc::new(AtomicBool::new(false));
        let over = ended.clone();
        let output = std::thread::spawn(move || {
            let lines: Vec<String> = stdout.lines().map_while(Result::ok).collect();
            over.store(true, Ordering::SeqCst);
            lines
        });
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = std::io::Read::read_to_string(&mut stderr, &mut text);
            text
        });
        Load { child, output: Some(output), errors: Some(errors), ended }
    }

    pub fn goes_on(&self) -> bool {
        !self.ended.load(Ordering::SeqCst)
    }

    /// Waits for its end, and gives transactions a second of each second. Fails when it ended with an error or does not end.
    pub fn wait(mut self, limit: Duration) -> Vec<f64> {
        let end = Instant::now() + limit;
        let status = loop {
            match self.child.try_wait().expect("a child can be waited for") {
                Some(status) => break status,
                None if Instant::now() > end => panic!("sysbench does not end"),
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        let lines = self.output.take().and_then(|thread| thread.join().ok()).expect("read");
        let errors = self.errors.take().and_then(|thread| thread.join().ok()).expect("read");
        assert!(status.success(), "sysbench ended with {status}:\n{}\n{errors}", lines.join("\n"));
        // [ 3s ] thds: 4 tps: 120.95 qps: …
        let rate = |line: &String| line.split_once(" tps: ")?.1.split(' ').next()?.parse::<f64>().ok();
        lines.iter().filter_map(rate).collect()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A row of sysbench's tables.
pub type Row = (i64, i64, String, String);

/// A table through one node; its index must say the same.
pub fn rows(connection: &mut Conn, table: usize) -> Vec<Row> {
    let rows: Vec<Row> = connection
        .query(format!("SELECT id, k, c, pad FROM sbtest.sbtest{table} ORDER BY id"))
        .unwrap_or_else(|e| panic!("sbtest{table} is read: {e}"));
    let mut by_index: Vec<(i64, i64)> = connection
        .query(format!("SELECT id, k FROM sbtest.sbtest{table} FORCE INDEX (k_{table}) WHERE k >= 0"))
        .unwrap_or_else(|e| panic!("sbtest{table} is read by its index: {e}"));
    by_index.sort();
    assert_eq!(by_index, rows.iter().map(|row| (row.0, row.1)).collect::<Vec<_>>(), "index and rows of sbtest{table}");
    rows
}

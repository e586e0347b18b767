//! Redis's commands, and its own benchmark as a second client.
//!
//! Reads are GET, writes SET, inserts SETNX (which refuses what is there), deletes DEL. `redis-benchmark` runs the same GET or SET over the same keys: its client in C, which
//! does not look at the values, may be faster than ours; the better of the two is the peer's figure.

use super::measure::{Latency, Sample};
use super::pipeline::{Decimal, Expected, Stamped};
use super::workload::{Op, Step};
use crate::bench::process::cpu_time;
use std::collections::VecDeque;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Appends the commands of a group, and what is to be answered.
pub fn encode(
    steps: &[Step],
    mget: bool,
    transactional: bool,
    payload: &mut Stamped,
    out: &mut Vec<u8>,
    expected: &mut VecDeque<Expected>,
) {
    let length = Decimal::new(payload.size() as u64, 1);
    let mut commands = 0;
    if transactional {
        out.extend_from_slice(b"*1\r\n$5\r\nMULTI\r\n");
        expected.push_back(Expected::Text(b"+OK\r\n"));
    }
    // Answers of the commands come after EXEC in a transaction.
    let first = expected.len();
    let mut i = 0;
    while let Some(step) = steps.get(i) {
        commands += 1;
        i += 1;
        match step.op {
            Op::Read | Op::Scan if mget => {
                let more = steps[i..].iter().take_while(|s| s.op == step.op).count();
                let run = &steps[i - 1..i + more];
                i += more;
                out.push(b'*');
                out.extend_from_slice(Decimal::new(run.len() as u64 + 1, 1).text());
                out.extend_from_slice(b"\r\n$4\r\nMGET\r\n");
                expected.push_back(Expected::List(run.len()));
                for step in run {
                    key(step.key, out);
                    expected.push_back(Expected::Value { key: step.key, named: false });
                }
            }
            Op::Read | Op::Scan => {
                out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
                key(step.key, out);
                expected.push_back(Expected::Value { key: step.key, named: false });
            }
            Op::Update | Op::Write | Op::Insert => {
                let insert = step.op == Op::Insert;
                out.extend_from_slice(if insert { b"*3\r\n$5\r\nSETNX\r\n" } else { b"*3\r\n$3\r\nSET\r\n" });
                key(step.key, out);
                out.push(b'$');
                out.extend_from_slice(length.text());
                out.extend_from_slice(b"\r\n");
                out.extend_from_slice(payload.of(step.key));
                out.extend_from_slice(b"\r\n");
                expected.push_back(Expected::Text(if insert { b":1\r\n" } else { b"+OK\r\n" }));
            }
            Op::Delete => {
                out.extend_from_slice(b"*2\r\n$3\r\nDEL\r\n");
                key(step.key, out);
                expected.push_back(Expected::Text(b":1\r\n"));
            }
        }
    }
    if transactional {
        out.extend_from_slice(b"*1\r\n$4\r\nEXEC\r\n");
        let answers = expected.split_off(first);
        expected.extend(std::iter::repeat_n(Expected::Text(b"+QUEUED\r\n"), commands));
        expected.push_back(Expected::List(commands));
        expected.extend(answers);
    }
}

fn key(key: u64, out: &mut Vec<u8>) {
    let key = Decimal::key(key);
    out.push(b'$');
    out.extend_from_slice(Decimal::new(key.text().len() as u64, 1).text());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(key.text());
    out.extend_from_slice(b"\r\n");
}

pub fn benchmark_is_installed() -> bool {
    let version = Command::new("redis-benchmark").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

/// What `redis-benchmark` is to do.
pub struct Benchmark {
    pub port: u16,
    /// The server's process.
    pub server: u32,
    /// SET, else GET.
    pub write: bool,
    pub keys: u64,
    pub size: usize,
    pub pipeline: usize,
    pub clients: usize,
    pub requests: u64,
}

pub fn benchmark(wanted: &Benchmark) -> Result<Sample, String> {
    let Benchmark { port, server, write, keys, size, pipeline, clients, requests } = *wanted;
    let mut command = Command::new("redis-benchmark");
    command
        .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-r", &keys.to_string(), "-P", &pipeline.to_string()])
        .args(["-c", &clients.to_string(), "-n", &requests.to_string(), "--csv", "--precision", "3"]);
    if write {
        command.args(["SET", "__rand_int__", &"v".repeat(size)]);
    } else {
        command.args(["GET", "__rand_int__"]);
    }
    let before = (cpu_time(server)?, cpu_time(std::process::id())?, Instant::now());
    let output = command.output().map_err(|e| format!("cannot start redis-benchmark: {e}"))?;
    let after = (cpu_time(server)?, cpu_time(std::process::id())?, before.2.elapsed());
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("redis-benchmark failed: {text}{}", String::from_utf8_lossy(&output.stderr)));
    }
    let numbers = parse(&text).ok_or_else(|| format!("redis-benchmark's answer is not understood: {text}"))?;
    // Its own rate leaves out its start and end.
    let seconds = requests as f64 / numbers[0];
    if !seconds.is_finite() || seconds > after.2.as_secs_f64() * 1.1 {
        return Err(format!("redis-benchmark's rate is not one: {text}"));
    }
    Ok(Sample {
        operations: requests,
        seconds,
        payload_bytes: requests * size as u64,
        aborted: 0,
        errors: 0,
        first_error: None,
        latency: Latency::Quoted([numbers[3], numbers[4], numbers[5], numbers[6]].map(|ms| ms * 1e3)),
        server_cpu: Some(after.0.own - before.0.own),
        client_cpu: Some(after.1.children - before.1.children),
    })
}

/// rps, then milliseconds: mean, least, p50, p95, p99, longest.
fn parse(csv: &str) -> Option<[f64; 7]> {
    let mut lines = csv.lines();
    let head = lines.find(|l| l.starts_with("\"test\",\"rps\""))?;
    if head.split(',').count() != 8 {
        return None;
    }
    let mut numbers = [0.0; 7];
    // The test's name holds the command; the numbers stand at the end, each in quotation marks.
    let line = lines.next()?;
    let fields: Vec<&str> = line.rsplit(',').take(7).collect();
    for (number, field) in numbers.iter_mut().zip(fields.iter().rev()) {
        *number = field.trim_matches('"').parse().ok()?;
    }
    (fields.len() == 7).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(steps: &[Step], mget: bool, transactional: bool) -> (String, Vec<Expected>) {
        let (mut out, mut expected) = (Vec::new(), VecDeque::new());
        encode(steps, mget, transactional, &mut Stamped::new(8), &mut out, &mut expected);
        (String::from_utf8_lossy(&out).into_owned(), expected.into())
    }

    #[test]
    fn commands_as_redis_reads_them() {
        let read = |key| Step { op: Op::Read, key };
        let (text, expected) = encoded(&[read(7), Step { op: Op::Delete, key: 8 }], false, false);
        assert_eq!(text, "*2\r\n$3\r\nGET\r\n$12\r\n000000000007\r\n*2\r\n$3\r\nDEL\r\n$12\r\n000000000008\r\n");
        assert_eq!(expected, [Expected::Value { key: 7, named: false }, Expected::Text(b":1\r\n")]);
        let (text, expected) = encoded(&[read(1), read(2)], true, false);
        assert_eq!(text, "*3\r\n$4\r\nMGET\r\n$12\r\n000000000001\r\n$12\r\n000000000002\r\n");
        assert_eq!(expected.len(), 3);
        assert_eq!(expected[0], Expected::List(2));
    }

    #[test]
    fn a_transaction_answers_after_exec() {
        let steps = [Step { op: Op::Read, key: 1 }, Step { op: Op::Update, key: 2 }];
        let (text, expected) = encoded(&steps, false, true);
        assert!(text.starts_with("*1\r\n$5\r\nMULTI\r\n") && text.ends_with("*1\r\n$4\r\nEXEC\r\n"));
        assert_eq!(
            expected,
            [
                Expected::Text(b"+OK\r\n"),
                Expected::Text(b"+QUEUED\r\n"),
                Expected::Text(b"+QUEUED\r\n"),
                Expected::List(2),
                Expected::Value { key: 1, named: false },
                Expected::Text(b"+OK\r\n"),
            ]
        );
    }

    #[test]
    fn the_benchmarks_csv_is_read() {
        let head = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"";
        let line = "\"GET __rand_int__\",\"1700000.12\",\"0.250\",\"0.100\",\"0.240\",\"0.300\",\"0.400\",\"1.500\"";
        assert_eq!(parse(&format!("{head}\n{line}\n")), Some([1_700_000.12, 0.25, 0.1, 0.24, 0.3, 0.4, 1.5]));
        assert_eq!(parse(head), None);
        assert_eq!(parse("-ERR"), None);
    }
}

//! memcached's commands.
//!
//! Writes are its meta commands (`ms`, in mode `E` for inserts, which refuse what is there; `md`), whose answers are the shortest. Reads are one `get` with many keys, or a
//! meta command each.

use super::pipeline::{Decimal, Expected, Stamped};
use super::workload::{Op, Step};
use std::collections::VecDeque;

/// Appends the commands of a group, and what is to be answered.
pub fn encode(
    steps: &[Step],
    multi_get: bool,
    payload: &mut Stamped,
    out: &mut Vec<u8>,
    expected: &mut VecDeque<Expected>,
) {
    let length = Decimal::new(payload.size() as u64, 1);
    let mut i = 0;
    while let Some(step) = steps.get(i) {
        i += 1;
        match step.op {
            Op::Read | Op::Scan if multi_get => {
                let more = steps[i..].iter().take_while(|s| s.op == step.op).count();
                out.extend_from_slice(b"get");
                for step in &steps[i - 1..i + more] {
                    out.push(b' ');
                    out.extend_from_slice(Decimal::key(step.key).text());
                    expected.push_back(Expected::Value { key: step.key, named: true });
                }
                out.extend_from_slice(b"\r\n");
                expected.push_back(Expected::Text(b"END\r\n"));
                i += more;
            }
            Op::Read | Op::Scan => {
                out.extend_from_slice(b"mg ");
                out.extend_from_slice(Decimal::key(step.key).text());
                out.extend_from_slice(b" v\r\n");
                expected.push_back(Expected::Value { key: step.key, named: false });
            }
            Op::Update | Op::Write | Op::Insert => {
                out.extend_from_slice(b"ms ");
                out.extend_from_slice(Decimal::key(step.key).text());
                out.push(b' ');
                out.extend_from_slice(length.text());
                out.extend_from_slice(if step.op == Op::Insert { b" ME\r\n" } else { b"\r\n" });
                out.extend_from_slice(payload.of(step.key));
                out.extend_from_slice(b"\r\n");
                expected.push_back(Expected::Text(b"HD\r\n"));
            }
            Op::Delete => {
                out.extend_from_slice(b"md ");
                out.extend_from_slice(Decimal::key(step.key).text());
                out.extend_from_slice(b"\r\n");
                expected.push_back(Expected::Text(b"HD\r\n"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_as_memcached_reads_them() {
        let steps = [
            Step { op: Op::Read, key: 1 },
            Step { op: Op::Read, key: 2 },
            Step { op: Op::Delete, key: 3 },
            Step { op: Op::Read, key: 4 },
        ];
        let (mut out, mut expected) = (Vec::new(), VecDeque::new());
        encode(&steps, true, &mut Stamped::new(8), &mut out, &mut expected);
        assert_eq!(out, b"get 000000000001 000000000002\r\nmd 000000000003\r\nget 000000000004\r\n");
        let value = |key| Expected::Value { key, named: true };
        let end = Expected::Text(b"END\r\n");
        assert_eq!(expected, [value(1), value(2), end, Expected::Text(b"HD\r\n"), value(4), end]);
        out.clear();
        encode(&steps[..1], false, &mut Stamped::new(8), &mut out, &mut expected);
        assert_eq!(out, b"mg 000000000001 v\r\n");
        out.clear();
        encode(&[Step { op: Op::Insert, key: 0xa }], false, &mut Stamped::new(8), &mut out, &mut expected);
        assert!(out.starts_with(b"ms 000000000010 8 ME\r\n") && out.len() == 22 + 10, "{out:?}");
    }
}

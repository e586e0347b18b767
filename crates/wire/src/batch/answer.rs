//! The answer's side of a batch: written by nodes, read by programs.

use super::{Answer, Outcome};
use crate::read::Reader;
use crate::{Failure, MAX_OPERATIONS, WireError};
use rauk_types::{IndexId, ValueRef};

const COMMITTED: u8 = 1;
const ENDED: u8 = 2;

const DONE: u8 = 0;
const ROW: u8 = 1;
const COLUMNS: u8 = 2;
const MISSING: u8 = 3;
const DUPLICATE: u8 = 4;
const CONDITION_FALSE: u8 = 5;
const SAVEPOINT: u8 = 6;
const NOT_EXECUTED: u8 = 7;
const FAILED: u8 = 8;
const GENERATED: u8 = 9;

/// Bytes before the entries, before each of them, and of the head of a row.
const ANSWER_HEAD: usize = 3;
const ENTRY_HEAD: usize = 3;
const ROW_HEAD: usize = 9;

/// Writes an answer's payload at the end of a buffer.
pub struct AnswerBuilder {
    out: Vec<u8>,
    start: usize,
    entries: usize,
}

impl AnswerBuilder {
    pub fn new(mut out: Vec<u8>) -> AnswerBuilder {
        let start = out.len();
        out.resize(start + ANSWER_HEAD, 0);
        AnswerBuilder { out, start, entries: 0 }
    }

    pub fn done(&mut self, operation: u16, generated: Option<u64>) {
        match generated {
            None => self.entry(operation, DONE, &[]),
            Some(number) => self.entry(operation, GENERATED, &number.to_le_bytes()),
        }
    }

    /// Copies the row's bytes: the only copy between the row store and the socket.
    #[inline]
    pub fn row(&mut self, operation: u16, layout: u16, bytes: &[u8]) {
        self.out.reserve(ROW_HEAD + bytes.len());
        self.out.extend_from_slice(&row_head(operation, ROW, layout, bytes.len()));
        self.out.extend_from_slice(bytes);
        self.entries += 1;
    }

    pub fn columns<'v>(&mut self, operation: u16, values: impl ExactSizeIterator<Item = ValueRef<'v>>) {
        let count = u16::try_from(values.len()).expect("a table has fewer columns");
        let at = self.out.len();
        self.out.resize(at + ROW_HEAD, 0);
        values.for_each(|value| crate::value::put_shown(value, &mut self.out));
        let head = row_head(operation, COLUMNS, count, self.out.len() - at - ROW_HEAD);
        self.out[at..at + ROW_HEAD].copy_from_slice(&head);
        self.entries += 1;
    }

    #[inline]
    pub fn missing(&mut self, operation: u16) {
        self.entry(operation, MISSING, &[]);
    }

    pub fn duplicate(&mut self, operation: u16, index: IndexId) {
        self.entry(operation, DUPLICATE, &index.0.to_le_bytes());
    }

    pub fn condition_false(&mut self, operation: u16) {
        self.entry(operation, CONDITION_FALSE, &[]);
    }

    pub fn savepoint(&mut self, operation: u16, number: u32) {
        self.entry(operation, SAVEPOINT, &number.to_le_bytes());
    }

    pub fn not_executed(&mut self, operation: u16) {
        self.entry(operation, NOT_EXECUTED, &[]);
    }

    pub fn failed(&mut self, operation: u16, failure: &Failure) {
        self.entry(operation, FAILED, &[]);
        failure.encode(&mut self.out);
    }

    #[inline]
    fn entry(&mut self, operation: u16, tag: u8, rest: &[u8]) {
        let [a, b] = operation.to_le_bytes();
        self.out.extend_from_slice(&[a, b, tag]);
        self.out.extend_from_slice(rest);
        self.entries += 1;
    }

    /// Entries so far.
    pub fn len(&self) -> usize {
        self.entries
    }

    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Bytes so far. Whoever builds stops before they are more than [`crate::MAX_PAYLOAD`].
    #[inline]
    pub fn bytes(&self) -> usize {
        self.out.len() - self.start
    }

    /// Takes back everything from the `bytes()` of then on: when a statement is undone its answers are, too. Takes time for what is taken back only.
    pub fn truncate(&mut self, bytes: usize) {
        let at = self.start + bytes;
        assert!(bytes >= ANSWER_HEAD, "{bytes} is no place in an answer");
        let mut rest = Reader::new(&self.out[at..], "answer");
        while rest.remaining() > 0 {
            read_entry(&mut rest).expect("a place between entries");
            self.entries -= 1;
        }
        self.out.truncate(at);
    }

    /// `committed`: the batch asked for a commit and it took place. `ended`: there is no transaction any more.
    pub fn finish(mut self, committed: bool, ended: bool) -> Vec<u8> {
        assert!(self.entries <= MAX_OPERATIONS, "more entries than operations");
        let flags = if committed { COMMITTED } else { 0 } | if ended { ENDED } else { 0 };
        let [a, b] = (self.entries as u16).to_le_bytes();
        self.out[self.start..self.start + ANSWER_HEAD].copy_from_slice(&[flags, a, b]);
        self.out
    }
}

#[inline]
fn row_head(operation: u16, tag: u8, number: u16, length: usize) -> [u8; ROW_HEAD] {
    let [a, b] = operation.to_le_bytes();
    let [c, d] = number.to_le_bytes();
    let [e, f, g, h] = u32::try_from(length).expect("a payload is bounded").to_le_bytes();
    [a, b, tag, c, d, e, f, g, h]
}

/// Gives the entries in the order in which they were written: (operation, outcome).
#[derive(Clone, Debug)]
pub struct AnswerReader<'a> {
    pub answer: Answer,
    left: u16,
    rest: Reader<'a>,
}

impl<'a> AnswerReader<'a> {
    pub fn parse(payload: &'a [u8]) -> Result<AnswerReader<'a>, WireError> {
        let mut rest = Reader::new(payload, "answer");
        let (flags, entries) = (rest.u8()?, rest.u16()?);
        if flags > COMMITTED | ENDED || usize::from(entries) > rest.remaining() / ENTRY_HEAD {
            return Err(rest.malformed());
        }
        let answer = Answer { committed: flags & COMMITTED != 0, ended: flags & ENDED != 0, entries };
        Ok(AnswerReader { answer, left: entries, rest })
    }

    /// `None` after the last; an error when something follows it.
    #[inline]
    pub fn next_entry(&mut self) -> Result<Option<(u16, Outcome<'a>)>, WireError> {
        if self.left == 0 {
            return self.rest.end().map(|()| None);
        }
        self.left -= 1;
        read_entry(&mut self.rest).map(Some)
    }
}

#[inline]
fn read_entry<'a>(rest: &mut Reader<'a>) -> Result<(u16, Outcome<'a>), WireError> {
    let [a, b, tag] = rest.array()?;
    let outcome = match tag {
        ROW => {
            let (layout, bytes) = counted(rest)?;
            Outcome::Row { layout, bytes }
        }
        MISSING => Outcome::Missing,
        DONE => Outcome::Done { generated: None },
        _ => rare_outcome(tag, rest)?,
    };
    Ok((u16::from_le_bytes([a, b]), outcome))
}

fn rare_outcome<'a>(tag: u8, rest: &mut Reader<'a>) -> Result<Outcome<'a>, WireError> {
    Ok(match tag {
        COLUMNS => {
            let (count, bytes) = counted(rest)?;
            Outcome::Columns { count, bytes }
        }
        DUPLICATE => Outcome::Duplicate { index: IndexId(rest.u16()?) },
        CONDITION_FALSE => Outcome::ConditionFalse,
        SAVEPOINT => Outcome::Savepoint(rest.u32()?),
        NOT_EXECUTED => Outcome::NotExecuted,
        FAILED => Outcome::Failed(Failure::read(rest)?),
        GENERATED => Outcome::Done { generated: Some(rest.u64()?) },
        _ => return Err(rest.malformed()),
    })
}

/// A number, a length, and so many bytes.
#[inline]
fn counted<'a>(rest: &mut Reader<'a>) -> Result<(u16, &'a [u8]), WireError> {
    let [a, b, c, d, e, f] = rest.array()?;
    Ok((u16::from_le_bytes([a, b]), rest.bytes(u32::from_le_bytes([c, d, e, f]) as usize)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Values;
    use rauk_types::ErrorClass;

    fn read(payload: &[u8]) -> (Answer, Vec<(u16, Outcome<'_>)>) {
        let mut reader = AnswerReader::parse(payload).unwrap();
        let mut entries = Vec::new();
        while let Some(entry) = reader.next_entry().unwrap() {
            entries.push(entry);
        }
        (reader.answer, entries)
    }

    #[test]
    fn every_outcome_comes_back() {
        let failure = Failure { ended: true, ..Failure::new(1213, ErrorClass::Temporary, "Deadlock found") };
        let mut builder = AnswerBuilder::new(vec![5; 88]);
        builder.row(4, 2, b"the row");
        builder.columns(0, [ValueRef::Int(-1), ValueRef::Str("é")].into_iter());
        builder.done(1, None);
        builder.done(2, Some(u64::MAX));
        builder.missing(3);
        builder.duplicate(5, IndexId(9));
        builder.condition_false(6);
        builder.savepoint(7, 70);
        builder.failed(8, &failure);
        builder.not_executed(u16::MAX);
        let frame = builder.finish(true, false);
        assert_eq!(frame[..88], [5; 88]);
        let (answer, entries) = read(&frame[88..]);
        assert_eq!(answer, Answer { committed: true, ended: false, entries: 10 });
        let Outcome::Columns { count, bytes } = entries[1].1 else { panic!("{:?}", entries[1]) };
        let mut values = Vec::new();
        Values::new(count.into(), bytes).read(&mut values).unwrap();
        assert_eq!(values, [ValueRef::Int(-1), ValueRef::Str("é")]);
        let others: Vec<_> = entries.iter().filter(|(operation, _)| *operation != 0).cloned().collect();
        assert_eq!(
            others,
            [
                (4, Outcome::Row { layout: 2, bytes: b"the row" }),
                (1, Outcome::Done { generated: None }),
                (2, Outcome::Done { generated: Some(u64::MAX) }),
                (3, Outcome::Missing),
                (5, Outcome::Duplicate { index: IndexId(9) }),
                (6, Outcome::ConditionFalse),
                (7, Outcome::Savepoint(70)),
                (8, Outcome::Failed(failure)),
                (u16::MAX, Outcome::NotExecuted),
            ]
        );
    }

    #[test]
    fn what_is_taken_back_is_not_counted() {
        let mut builder = AnswerBuilder::new(vec![0; 10]);
        builder.row(0, 0, b"kept");
        let mark = builder.bytes();
        builder.row(1, 0, b"undone");
        builder.failed(2, &Failure::new(1062, ErrorClass::Permanent, "twice"));
        builder.columns(3, [ValueRef::Null].into_iter());
        builder.truncate(mark);
        assert_eq!((builder.len(), builder.bytes()), (1, mark));
        builder.not_executed(1);
        builder.truncate(builder.bytes());
        let frame = builder.finish(false, true);
        let (answer, entries) = read(&frame[10..]);
        assert_eq!(answer, Answer { committed: false, ended: true, entries: 2 });
        assert_eq!(entries, [(0, Outcome::Row { layout: 0, bytes: b"kept" }), (1, Outcome::NotExecuted)]);
        let mut all = AnswerBuilder::new(Vec::new());
        let mark = all.bytes();
        all.missing(0);
        all.truncate(mark);
        assert!(all.is_empty());
        assert_eq!(read(&all.finish(false, false)).0.entries, 0);
    }

    #[test]
    fn lengths_that_lie() {
        let mut builder = AnswerBuilder::new(Vec::new());
        builder.row(0, 0, b"row");
        let payload = builder.finish(false, false);
        let mut longer = payload.clone();
        longer[8] = 200;
        assert!(AnswerReader::parse(&longer).unwrap().next_entry().is_err());
        let mut more = payload.clone();
        more[1..3].copy_from_slice(&u16::MAX.to_le_bytes());
        assert!(AnswerReader::parse(&more).is_err(), "65 535 entries in 12 bytes");
        let mut behind = payload;
        behind.push(0);
        let mut reader = AnswerReader::parse(&behind).unwrap();
        assert!(reader.next_entry().unwrap().is_some());
        assert!(reader.next_entry().is_err());
    }
}

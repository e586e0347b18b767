//! What a language's weights differ in from those of its version of the Unicode collation algorithm.
//!
//! `tables/tailorings.txt` says it, in the form that `tools/uca_tables.py` describes; it is read when the first such collation is used. Like the
//! tables it is frozen.

use super::first_char;
use super::table::{UCA_0900, UCA_1400, UNICODE_CI, UcaTable};
use super::uca::MOST;
use std::sync::LazyLock;

/// Weights on the three levels.
type Levels = [Box<[u16]>; 3];

pub(super) struct Tailoring {
    name: &'static str,
    /// Characters, ordered.
    singles: Vec<(u32, Levels)>,
    /// Characters that stand together, ordered.
    contractions: Vec<(Box<[u32]>, Levels)>,
    /// Characters that contractions begin with, ordered.
    heads: Vec<u32>,
    /// Characters of contractions but the last ones, ordered.
    inner: Vec<u32>,
    ascii: [u16; 256],
    /// Primary weights from, to and where they are moved.
    moves: Vec<(u16, u16, u16)>,
    upper_first: bool,
}

static TAILORINGS: LazyLock<Vec<Tailoring>> = LazyLock::new(|| {
    let mut tailorings: Vec<Tailoring> = Vec::new();
    for section in include_str!("tables/tailorings.txt").split('[').skip(1) {
        let (head, lines) = section.split_once("]\n").expect("a section has a name");
        // The contractions of UCA 14.0.0 are in each of its languages; their section comes first.
        let common = if head.starts_with("uca1400_") { tailorings.first() } else { None };
        let tailoring = Tailoring::parse(head, lines, common);
        tailorings.push(tailoring);
    }
    tailorings
});

fn hexadecimal<T: TryFrom<u32>>(text: &str) -> Box<[T]> {
    let number = |word: &str| u32::from_str_radix(word, 16).ok().and_then(|n| T::try_from(n).ok());
    text.split_ascii_whitespace().map(|word| number(word).expect("the table is hexadecimal")).collect()
}

impl Tailoring {
    /// The tailoring of a section. There is one.
    pub fn of(name: &'static str) -> &'static Tailoring {
        TAILORINGS.iter().find(|t| t.name == name).expect("each language has a section")
    }

    fn parse(head: &'static str, lines: &str, common: Option<&Tailoring>) -> Tailoring {
        let mut words = head.split(' ');
        let name = words.next().expect("a section has a name");
        let table: &UcaTable = match name {
            _ if name.starts_with("0900_") => &UCA_0900,
            _ if name.starts_with("uca1400") => &UCA_1400,
            _ => &UNICODE_CI,
        };
        let mut tailoring = Tailoring {
            name,
            singles: Vec::new(),
            contractions: common.map_or_else(Vec::new, |common| common.contractions.clone()),
            heads: Vec::new(),
            inner: Vec::new(),
            ascii: *table.ascii_weights(),
            moves: Vec::new(),
            upper_first: false,
        };
        for word in words {
            match word.strip_prefix("reorder=") {
                None => tailoring.upper_first = true,
                Some(ranges) => {
                    for range in ranges.split(',') {
                        let words = hexadecimal(&range.replace(['-', ':'], " "));
                        tailoring.moves.push((words[0], words[1], words[2]));
                    }
                }
            }
        }
        for line in lines.lines() {
            let mut fields = line.split(';');
            let points: Box<[u32]> = hexadecimal(fields.next().unwrap_or_default());
            let levels: Levels = std::array::from_fn(|_| hexadecimal(fields.next().unwrap_or_default()));
            assert!(levels.iter().all(|weights| weights.len() <= MOST), "more weights than a character has");
            match *points {
                [code] => tailoring.singles.push((code, levels)),
                // What the language says replaces what is common.
                _ => match tailoring.contractions.iter_mut().find(|(known, _)| *known == points) {
                    Some(known) => known.1 = levels,
                    None => tailoring.contractions.push((points, levels)),
                },
            }
        }
        tailoring.complete();
        tailoring
    }

    fn complete(&mut self) {
        self.singles.sort_by_key(|(code, _)| *code);
        self.contractions.sort_by(|a, b| a.0.cmp(&b.0));
        for (points, _) in &self.contractions {
            self.heads.push(points[0]);
            self.inner.extend(&points[..points.len() - 1]);
        }
        for list in [&mut self.heads, &mut self.inner] {
            list.sort_unstable();
            list.dedup();
        }
        for byte in 0..128u8 {
            let weight = match self.single(byte.into()) {
                Some(levels) => match *levels[0] {
                    [only] => only,
                    _ => 0,
                },
                None => self.ascii[usize::from(byte)],
            };
            let head = self.heads.binary_search(&byte.into()).is_ok();
            self.ascii[usize::from(byte)] = if head { 0 } else { self.finish(weight, 0) };
        }
    }

    pub fn ascii_weights(&self) -> &[u16; 256] {
        &self.ascii
    }

    pub fn single(&self, code: u32) -> Option<&Levels> {
        self.singles.binary_search_by_key(&code, |(code, _)| *code).ok().map(|at| &self.singles[at].1)
    }

    /// The longest contraction that `text` begins with, and its length in bytes. `code` is the first character.
    pub fn contraction(&self, code: u32, text: &[u8]) -> Option<(&Levels, usize)> {
        self.heads.binary_search(&code).ok()?;
        let start = self.contractions.partition_point(|(points, _)| points[0] < code);
        let mut longest: Option<(&Levels, usize, usize)> = None;
        for (points, levels) in self.contractions[start..].iter().take_while(|(points, _)| points[0] == code) {
            let mut length = 0;
            let matches = points.iter().all(|point| {
                if length >= text.len() {
                    return false;
                }
                let (code, bytes) = first_char(&text[length..]);
                length += bytes;
                code == *point
            });
            if matches && longest.is_none_or(|(_, count, _)| count < points.len()) {
                longest = Some((levels, points.len(), length));
            }
        }
        longest.map(|(levels, _, length)| (levels, length))
    }

    /// Whether what follows the character may belong to a contraction with it.
    pub fn is_open(&self, code: u32) -> bool {
        self.inner.binary_search(&code).is_ok()
    }

    /// A weight of a table or of the tailoring as the language orders it.
    #[inline]
    pub fn finish(&self, weight: u16, level: usize) -> u16 {
        match level {
            0 => match self.moves.iter().find(|(from, to, _)| (*from..=*to).contains(&weight)) {
                Some((from, _, at)) => weight - from + at,
                None => weight,
            },
            // Upper case first: marks above the tertiary weight, which tailored weights have already.
            2 if self.upper_first && weight < 0x20 => {
                let upper = matches!(weight, 0x08..=0x0C | 0x0E | 0x11 | 0x12 | 0x1D);
                weight | if upper { 0x0100 } else { 0x0300 }
            }
            _ => weight,
        }
    }
}

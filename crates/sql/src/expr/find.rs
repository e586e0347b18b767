//! Finding text in text under a collation, in time linear in both: for LOCATE, INSTR, and for LIKE where trying place after place takes long.
//!
//! Two characters match when their weights are the same. So each character becomes a *unit*, a number that stands for its weights
//! ([`Units`]), and units are sought by the algorithm of Knuth, Morris and Pratt, which never goes back in the text. Where characters match
//! only themselves (binary collations), bytes are sought instead.

use super::Context;
use super::convert::Result;
use rauk_types::Collation;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A character by its weights. Below 2^16: one weight.
pub type Unit = u32;

/// Bytes that a unit of a sought text takes, with its entry in the table of borders.
pub const NEEDLE_BYTES: usize = 8;

/// Of characters without weights.
const IGNORED: Unit = 1 << 16;

/// Characters to units.
pub struct Units {
    collation: Collation,
    /// Characters of several weights.
    sequences: FxHashMap<SmallVec<[u16; 8]>, Unit>,
}

impl Units {
    pub fn new(collation: Collation) -> Self {
        Units { collation, sequences: FxHashMap::default() }
    }

    pub fn unit(&mut self, c: char) -> Unit {
        if self.collation.is_binary() {
            return c.into();
        }
        let mut utf8 = [0; 4];
        let mut weights = self.collation.weights(c.encode_utf8(&mut utf8).as_bytes());
        match (weights.next(), weights.next()) {
            (None, _) => IGNORED,
            (Some(only), None) => only.into(),
            (Some(first), Some(second)) => {
                let sequence = [first, second].into_iter().chain(weights).collect();
                let next = IGNORED + 1 + self.sequences.len() as Unit;
                *self.sequences.entry(sequence).or_insert(next)
            }
        }
    }
}

/// A sought text.
pub struct Needle {
    units: SmallVec<[Unit; 32]>,
    /// For each length of a beginning that matched: the longest shorter beginning that it ends with.
    borders: SmallVec<[u32; 32]>,
}

impl Needle {
    /// `units` is not empty.
    pub fn new(units: impl IntoIterator<Item = Unit>) -> Self {
        let units: SmallVec<[Unit; 32]> = units.into_iter().collect();
        let mut borders: SmallVec<[u32; 32]> = SmallVec::with_capacity(units.len());
        borders.push(0);
        let mut matched = 0usize;
        for unit in &units[1..] {
            while matched > 0 && units[matched] != *unit {
                matched = borders[matched - 1] as usize;
            }
            matched += usize::from(units[matched] == *unit);
            borders.push(matched as u32);
        }
        Needle { units, borders }
    }

    /// The places where it begins in `text`, also where they overlap.
    pub fn places(&self, text: impl Iterator<Item = Unit>) -> impl Iterator<Item = usize> {
        let mut matched = 0;
        text.enumerate().filter_map(move |(at, unit)| {
            while matched > 0 && self.units[matched] != unit {
                matched = self.borders[matched - 1] as usize;
            }
            matched += usize::from(self.units[matched] == unit);
            if matched < self.units.len() {
                return None;
            }
            matched = self.borders[matched - 1] as usize;
            Some(at + 1 - self.units.len())
        })
    }
}

/// A part of a LIKE pattern between two `%`; `None` is `_`.
type Segment = [Option<Unit>];

/// Whether the whole `text` matches `pattern`, whose segments are what lies between its `%` (several).
pub fn like(text: &[Unit], pattern: &[&Segment], context: &mut Context) -> Result<bool> {
    let [first, middle @ .., last] = pattern else { unreachable!("a pattern with % has two segments") };
    if first.len() + last.len() > text.len() {
        return Ok(false);
    }
    let mut rest = &text[first.len()..text.len() - last.len()];
    if !fits(&text[..first.len()], first) || !fits(&text[text.len() - last.len()..], last) {
        return Ok(false);
    }
    for segment in middle {
        match find(rest, segment, context)? {
            Some(at) => rest = &rest[at + segment.len()..],
            None => return Ok(false),
        }
    }
    Ok(true)
}

fn fits(text: &[Unit], segment: &Segment) -> bool {
    text.iter().zip(segment).all(|(unit, wanted)| wanted.is_none_or(|wanted| wanted == *unit))
}

/// The first place of a segment. The longest part without `_` is sought, and what is around it looked at: linear without a `_`; with them it may take
/// as long as the product of both lengths, and can be killed.
fn find(text: &[Unit], segment: &Segment, context: &mut Context) -> Result<Option<usize>> {
    if segment.len() > text.len() {
        return Ok(None);
    }
    let runs = segment.split(|piece| piece.is_none());
    let Some(run) = runs.max_by_key(|run| run.len()).filter(|run| !run.is_empty()) else { return Ok(Some(0)) };
    // Where the run lies in the segment.
    let before = segment.windows(run.len()).position(|window| std::ptr::eq(window, run)).unwrap_or(0);
    let after = segment.len() - before - run.len();
    let memory = context.budget.memory.clone();
    let needle = memory.while_it_may(run.iter().copied().flatten(), |run| Needle::new(run))?;
    memory.while_it_may(text[before..text.len() - after].iter().copied(), |text_of_runs| {
        for at in needle.places(text_of_runs) {
            if run.len() == segment.len() {
                return Ok(Some(at));
            }
            let same =
                text[at..].iter().zip(segment).take_while(|(unit, wanted)| wanted.is_none_or(|w| w == **unit)).count();
            if same == segment.len() {
                return Ok(Some(at));
            }
            context.budget.work(same * size_of::<Unit>())?;
        }
        Ok(None)
    })?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_are_equal_when_characters_are() {
        let characters: Vec<char> = "aAàÀbßsSæÆ \u{301}\u{0}\u{1F600}\u{1F601}中ǆㇰ".chars().collect();
        for collation in [
            Collation::Utf8mb40900AiCi,
            Collation::Utf8mb4GeneralCi,
            Collation::Utf8mb4UnicodeCi,
            Collation::Utf8mb4Bin,
        ] {
            let mut units = Units::new(collation);
            for (a, b) in characters.iter().flat_map(|a| characters.iter().map(move |b| (*a, *b))) {
                assert_eq!(units.unit(a) == units.unit(b), collation.chars_equal(a, b), "{collation:?} {a:?} {b:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn places_are_those_of_a_plain_search(
            text in proptest::collection::vec(0u32..3, 0..60),
            needle in proptest::collection::vec(0u32..3, 1..5),
        ) {
            let found: Vec<usize> = Needle::new(needle.iter().copied()).places(text.iter().copied()).collect();
            let expected: Vec<usize> =
                text.windows(needle.len()).enumerate().filter(|(_, w)| *w == needle).map(|(at, _)| at).collect();
            prop_assert_eq!(found, expected);
        }
    }
}

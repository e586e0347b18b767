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

/// Bytes of work that the comparison of one character with one of a segment counts as.
const STEP_BYTES: usize = 16;

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
        if let Some(weight) = self.collation.ascii_weight(c) {
            return weight.into();
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

    /// Takes the next unit of a text of which the last `matched` are the needle's beginning. Whether the needle ends here.
    fn step(&self, matched: &mut usize, unit: Unit) -> bool {
        while *matched > 0 && self.units[*matched] != unit {
            *matched = self.borders[*matched - 1] as usize;
        }
        *matched += usize::from(self.units[*matched] == unit);
        let ends = *matched == self.units.len();
        if ends {
            *matched = self.borders[*matched - 1] as usize;
        }
        ends
    }

    /// The places where it begins in `text`, also where they overlap.
    pub fn places(&self, text: impl Iterator<Item = Unit>) -> impl Iterator<Item = usize> {
        let mut matched = 0;
        let found = text.enumerate().filter(move |(_, unit)| self.step(&mut matched, *unit));
        found.map(|(at, _)| at + 1 - self.units.len())
    }
}

/// A part of a LIKE pattern between two `%`; `None` is `_`.
type Segment = [Option<Unit>];

/// Whether the whole `text` matches `pattern`, whose segments are what lies between its `%`. The text is read where it is: nothing of it is copied.
pub fn like<T>(mut text: T, pattern: &[&Segment], units: &mut Units, context: &mut Context) -> Result<bool>
where
    T: DoubleEndedIterator<Item = char> + Clone,
{
    let [first, rest @ ..] = pattern else { unreachable!("a pattern has a segment") };
    if !fits(&mut text, first.iter(), units, context)? {
        return Ok(false);
    }
    let Some((last, middle)) = rest.split_last() else { return Ok(text.next().is_none()) };
    if !fits(&mut text.by_ref().rev(), last.iter().rev(), units, context)? {
        return Ok(false);
    }
    for segment in middle {
        if !find(&mut text, segment, units, context)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the next characters are these; takes them.
fn fits<'s>(
    text: &mut impl Iterator<Item = char>,
    wanted: impl Iterator<Item = &'s Option<Unit>>,
    units: &mut Units,
    context: &mut Context,
) -> Result<bool> {
    let mut fits = |wanted: &Option<Unit>| text.next().is_some_and(|c| wanted.is_none_or(|unit| unit == units.unit(c)));
    context.budget.memory.while_it_may(wanted, |mut wanted| wanted.all(&mut fits))
}

/// Takes so many characters, if there are so many.
fn skip(text: &mut impl Iterator<Item = char>, count: usize, context: &mut Context) -> Result<bool> {
    context.budget.memory.while_it_may(text, |text| text.take(count).count() == count)
}

/// Seeks the first place of a segment, and takes the text as far as the segment's end there.
fn find<T>(text: &mut T, segment: &Segment, units: &mut Units, context: &mut Context) -> Result<bool>
where
    T: Iterator<Item = char> + Clone,
{
    // Each `_` at an end only says that there is a character.
    let Some(begin) = segment.iter().position(Option::is_some) else { return skip(text, segment.len(), context) };
    let end = segment.iter().rposition(Option::is_some).map_or(begin, |last| last + 1);
    Ok(skip(text, begin, context)?
        && find_core(text, &segment[begin..end], units, context)?
        && skip(text, segment.len() - end, context)?)
}

/// The same for a segment with characters at both ends. The longest part without `_` is sought, and what is around it looked at: linear without a
/// `_`; with them it may take as long as the product of both lengths.
fn find_core<T>(text: &mut T, core: &Segment, units: &mut Units, context: &mut Context) -> Result<bool>
where
    T: Iterator<Item = char> + Clone,
{
    let memory = context.budget.memory.clone();
    let (mut run, mut at) = (0..0, 0);
    for part in core.split(Option::is_none) {
        if part.len() > run.len() {
            run = at..at + part.len();
        }
        at += part.len() + 1;
    }
    let needle = memory.while_it_may(core[run.clone()].iter().copied().flatten(), |run| Needle::new(run))?;
    if run.len() == core.len() {
        return memory.while_it_may(text, |text| needle.places(text.map(|c| units.unit(c))).next().is_some());
    }
    // Where the segment would begin for the place that was found last, and how far that is from here.
    let (mut start, mut passed) = (text.clone(), 0);
    if !skip(text, run.start, context)? {
        return Ok(false);
    }
    let found = memory.while_it_may(&mut *text, |text| -> Result<Option<T>> {
        let mut matched = 0;
        for (at, c) in text.enumerate() {
            if !needle.step(&mut matched, units.unit(c)) {
                continue;
            }
            let begin = at + 1 - run.len();
            if let Some(further) = (begin - passed).checked_sub(1) {
                start.nth(further);
                passed = begin;
            }
            let mut rest = start.clone();
            let mut same =
                |wanted: &&Option<Unit>| rest.next().is_some_and(|c| wanted.is_none_or(|unit| unit == units.unit(c)));
            let same = memory.while_it_may(core.iter(), |pieces| pieces.take_while(&mut same).count())?;
            if same == core.len() {
                return Ok(Some(rest));
            }
            // A step takes as long as reading some bytes does.
            context.budget.work(same * STEP_BYTES)?;
        }
        Ok(None)
    })??;
    Ok(found.map(|rest| *text = rest).is_some())
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
            Collation::from_name("utf8mb4_0900_as_cs").unwrap(),
            Collation::from_name("utf8mb4_hu_0900_ai_ci").unwrap(),
            Collation::from_name("utf8mb4_uca1400_as_ci").unwrap(),
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

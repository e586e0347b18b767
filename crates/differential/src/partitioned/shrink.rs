//! Makes the steps of a failure few: they are left out by halves, quarters, …, one by one, and so are the rows of an
//! INSERT, as long as what is left fails in the same way on tables that are made again.
//!
//! A step that needs one which is left out fails in another way, so that it is kept.

use super::step::{Step, Text, Write};

/// Trials at most.
const TRIALS: usize = 400;

pub fn steps(mut best: Vec<Step>, still: &mut dyn FnMut(&[Step]) -> bool) -> Vec<Step> {
    let mut trials = 0;
    let mut try_one = |candidate: &[Step]| {
        trials += 1;
        trials <= TRIALS && still(candidate)
    };
    let mut size = best.len() / 2;
    while size > 0 {
        let mut end = best.len();
        while end > 0 {
            let begin = end.saturating_sub(size);
            let mut candidate = best.clone();
            candidate.drain(begin..end);
            if try_one(&candidate) {
                best = candidate;
            }
            end = begin;
        }
        size /= 2;
    }
    for at in 0..best.len() {
        let mut row = 0;
        while let Some(candidate) = without_row(&best, at, row) {
            match try_one(&candidate) {
                true => best = candidate,
                false => row += 1,
            }
        }
    }
    best
}

/// `None`: there is no such row, or it is the only one.
fn without_row(steps: &[Step], at: usize, row: usize) -> Option<Vec<Step>> {
    let mut steps = steps.to_vec();
    let Step::Write(Write { text: Text::Rows { rows, .. }, .. }) = &mut steps[at] else { return None };
    if rows.len() < 2 || row >= rows.len() {
        return None;
    }
    rows.remove(row);
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partitioned::step::Which;

    #[test]
    fn what_is_not_needed_goes() {
        let insert = |rows: &[&str]| {
            let rows = rows.iter().map(|row| row.to_string()).collect();
            let text = Text::Rows { before: "INSERT".into(), rows, behind: String::new(), only: None };
            Step::Write(Write { which: Which::Main, text, ignores: false, loose: false, replaces: false })
        };
        let steps_before: Vec<Step> = (0..9)
            .map(|at| if at == 4 { insert(&["1", "2", "3"]) } else { Step::Transaction("BEGIN".into()) })
            .collect();
        let has_two = |steps: &[Step]| {
            steps.iter().any(|step| {
                matches!(step, Step::Write(Write { text: Text::Rows { rows, .. }, .. }) if rows.contains(&"2".to_string()))
            })
        };
        let small = steps(steps_before, &mut |candidate| has_two(candidate));
        assert_eq!(small.len(), 1);
        assert!(matches!(&small[0], Step::Write(Write { text: Text::Rows { rows, .. }, .. }) if rows == &["2"]));
    }
}

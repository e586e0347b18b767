//! Makes a case small: the statement first (in the database as it is), then what the database holds, then the statement
//! again.
//!
//! [`candidates`] are the statements that are one step simpler; a step is taken if the case still differs in the same
//! way. Every step makes the text shorter, so that it ends. No step takes an ORDER BY from under a LIMIT, or a key from
//! it: what is left has one right answer, as what was generated.

pub mod candidates;

use crate::schema::{Schema, Table};
use crate::tree::Statement;

/// What a case needs before its statement.
#[derive(Clone, Debug)]
pub struct Setup {
    pub schema: Schema,
    /// Changes that were kept.
    pub history: Vec<Statement>,
}

/// Trials of one shrinking at most.
const TRIALS: usize = 1500;

/// The smallest statement that is found for which `still` holds.
pub fn statement(mut best: Statement, still: &mut dyn FnMut(&Statement) -> bool) -> Statement {
    let mut trials = 0;
    'smaller: loop {
        let length = best.to_string().len();
        let mut next: Vec<(usize, Statement)> = candidates::of(&best)
            .into_iter()
            .map(|candidate| (candidate.to_string().len(), candidate))
            .filter(|(l, _)| *l < length)
            .collect();
        next.sort_by_key(|(length, _)| *length);
        for (_, candidate) in next {
            trials += 1;
            if trials > TRIALS {
                return best;
            }
            if still(&candidate) {
                best = candidate;
                continue 'smaller;
            }
        }
        return best;
    }
}

/// The smallest tables, rows and history that are found for which `still` holds.
pub fn setup(mut best: Setup, still: &mut dyn FnMut(&Setup) -> bool) -> Setup {
    // All of the history at once, which is most of the time without effect.
    let without = Setup { history: Vec::new(), ..best.clone() };
    if still(&without) {
        best = without;
    }
    let mut at = best.history.len();
    while at > 0 {
        at -= 1;
        try_step(&mut best, still, |setup| drop(setup.history.remove(at)));
    }
    let mut at = best.schema.tables.len();
    while at > 0 && best.schema.tables.len() > 1 {
        at -= 1;
        try_step(&mut best, still, |setup| drop(setup.schema.tables.remove(at)));
    }
    for table in 0..best.schema.tables.len() {
        rows(&mut best, table, still);
        keys(&mut best, table, still);
        for at in (0..best.schema.tables[table].foreign.len()).rev() {
            try_step(&mut best, still, |setup| drop(setup.schema.tables[table].foreign.remove(at)));
        }
        columns(&mut best, table, still);
    }
    best
}

fn try_step(best: &mut Setup, still: &mut dyn FnMut(&Setup) -> bool, step: impl FnOnce(&mut Setup)) -> bool {
    let mut candidate = best.clone();
    step(&mut candidate);
    let holds = still(&candidate);
    if holds {
        *best = candidate;
    }
    holds
}

/// Halves, quarters, …, single rows.
fn rows(best: &mut Setup, table: usize, still: &mut dyn FnMut(&Setup) -> bool) {
    let mut size = best.schema.tables[table].rows.len();
    while size > 0 {
        let mut at = 0;
        while at < best.schema.tables[table].rows.len() {
            let end = (at + size).min(best.schema.tables[table].rows.len());
            let taken = try_step(best, still, |setup| drop(setup.schema.tables[table].rows.drain(at..end)));
            if !taken {
                at += size;
            }
        }
        size /= 2;
    }
}

fn keys(best: &mut Setup, table: usize, still: &mut dyn FnMut(&Setup) -> bool) {
    for at in (0..best.schema.tables[table].keys.len()).rev() {
        try_step(best, still, |setup| drop(setup.schema.tables[table].keys.remove(at)));
    }
}

fn columns(best: &mut Setup, table: usize, still: &mut dyn FnMut(&Setup) -> bool) {
    for at in (0..best.schema.tables[table].columns.len()).rev() {
        if best.schema.tables[table].columns.len() > 1 {
            try_step(best, still, |setup| remove_column(&mut setup.schema.tables[table], at));
        }
    }
    for at in 0..best.schema.tables[table].columns.len() {
        let column = &best.schema.tables[table].columns[at];
        if column.default.is_some() {
            try_step(best, still, |setup| setup.schema.tables[table].columns[at].default = None);
        }
        if !best.schema.tables[table].columns[at].collation.is_empty() {
            try_step(best, still, |setup| setup.schema.tables[table].columns[at].collation = "");
        }
    }
}

fn remove_column(table: &mut Table, at: usize) {
    let name = table.columns.remove(at).name;
    table.rows.iter_mut().for_each(|row| drop(row.remove(at)));
    for key in &mut table.keys {
        key.parts.retain(|part| part.column != name);
    }
    table.keys.retain(|key| !key.parts.is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;
    use crate::tree::feature::Features;

    #[test]
    fn a_statement_shrinks_to_what_the_condition_needs() {
        let mut shrunk = 0;
        for seed in 0..20 {
            let schema = Schema::random(seed);
            for number in 0..20 {
                let one = generate::statement(&schema, seed, number, Features::all());
                let needs = |statement: &Statement| statement.to_string().contains("COALESCE");
                if !needs(&one) {
                    continue;
                }
                let small = statement(one, &mut |candidate| needs(candidate));
                let text = small.to_string();
                assert!(needs(&small));
                assert!(text.len() < 260, "not small: {text}");
                shrunk += 1;
            }
        }
        assert!(shrunk > 5, "only {shrunk} statements have what is looked for");
    }

    #[test]
    fn a_setup_shrinks_to_one_row() {
        let schema = (0..50).map(Schema::random).find(|s| s.tables[0].rows.len() > 8).expect("one has rows");
        let wanted = schema.tables[0].rows[5].clone();
        let still = &mut |setup: &Setup| setup.schema.tables[0].rows.contains(&wanted);
        let small = setup(Setup { schema, history: Vec::new() }, still);
        assert_eq!(small.schema.tables.len(), 1);
        assert_eq!(small.schema.tables[0].rows, std::slice::from_ref(&wanted));
        assert!(small.schema.tables[0].keys.is_empty());
    }
}

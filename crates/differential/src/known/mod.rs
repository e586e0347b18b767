//! Differences that are known: MariaDB is not MySQL 8 there, or SQL leaves the answer open.
//!
//! Each kind has the page of a manual that says why, and a test of whether a difference is of it. The best test asks
//! MariaDB again: by another plan, or in [`words`] that mean to it what the statement means to MySQL 8. If it then
//! gives Rauk's answer, nothing that Rauk alone gets wrong is hidden. Where no words help, a predicate looks at the
//! statement and at both answers, as narrowly as it can: [`types`], [`values`], [`changes`], [`errors`].
//!
//! There are at most forty kinds: a list that grows beyond is a judge that looks away. Where MariaDB is compared with
//! itself nobody is asked again, so that what is generated without one right answer is found.

mod changes;
mod deciding;
mod errors;
mod evidence;
mod functions;
mod joins;
mod layers;
mod names;
mod orders;
mod places;
mod texts;
mod types;
mod values;
mod words;

pub use errors::are_data_errors;
pub use values::merges_rows;
pub use words::groupings;

use crate::campaign::REFERENCE_LACKS;
use crate::compare::{Category, Cell};
use crate::run::outcome::{Family, Outcome};
use crate::run::{Answers, Pair};
use crate::schema::Schema;
use crate::tree::{Query, Statement};
use evidence::Evidence;
use names::Names;

pub struct Kind {
    pub name: &'static str,
    pub manual: &'static str,
    test: Test,
}

enum Test {
    /// MariaDB says what Rauk says when it plans otherwise.
    Plan,
    /// MariaDB says what Rauk says when dates may be zero.
    ZeroDates,
    /// MariaDB says what Rauk says when the statement is put in one of these words.
    Words(&'static [fn(&mut Statement, &Names<'_>) -> bool]),
    /// MariaDB says what Rauk says when rows or assignments are taken in one of these orders.
    Orders(fn(&Statement, &Names<'_>) -> Vec<Statement>),
    /// MariaDB warns of Rauk's error, or would if it passed over errors.
    Warnings(fn(&Evidence<'_>, &[u16], u16) -> bool),
    /// Only types differ, and this column's may: its number, MariaDB's family of types, Rauk's.
    Type(fn(&Evidence<'_>, usize, Family, Family) -> bool),
    /// Only rows, or what is stored, differs, and these two values may, of MariaDB and of Rauk in the column of this
    /// number.
    Value(fn(&Evidence<'_>, usize, &Cell, &Cell) -> bool),
    /// The statement and the answers.
    Answers(fn(&Evidence<'_>) -> bool),
}

pub const MOST: usize = 40;

/// What is asked of MariaDB comes first.
pub const KINDS: &[&[Kind]] = &[
    words::KINDS,
    layers::KINDS,
    deciding::KINDS,
    orders::KINDS,
    errors::KINDS,
    types::KINDS,
    values::KINDS,
    changes::KINDS,
];

/// The kind that a difference is of.
pub fn find(
    pair: &mut Pair,
    schema: &Schema,
    statement: &Statement,
    category: Category,
    answers: &Answers,
) -> Option<&'static Kind> {
    let names = Names::of(statement, schema);
    let evidence = Evidence::new(statement, category, answers, schema, &names);
    by_columns(&evidence).or_else(|| by_reference(pair, &evidence)).or_else(|| by_answers(&evidence))
}

/// Two answers of Rauk to a query, with its derived tables merged and not, are the same but for digits of quotients.
pub fn same_but_for_quotients(schema: &Schema, query: &Query, one: &Outcome, other: &Outcome) -> bool {
    let statement = Statement::Query(query.clone());
    let names = Names::of(&statement, schema);
    let answers = Answers { reference: one.clone(), rauk: other.clone(), contents: Vec::new() };
    values::same_but_for_quotients(&Evidence::new(&statement, Category::Rows, &answers, schema, &names))
}

/// Each column that differs may.
fn by_columns(e: &Evidence<'_>) -> Option<&'static Kind> {
    if e.category == Category::Types {
        let open = |(at, reference, rauk)| {
            KINDS
                .iter()
                .copied()
                .flatten()
                .find(|kind| matches!(kind.test, Test::Type(holds) if holds(e, at, reference, rauk)))
        };
        let found: Option<Vec<&Kind>> = e.differing().into_iter().map(open).collect();
        return found?.into_iter().next();
    }
    let met = std::cell::Cell::new(None);
    let goes = |at: usize, a: &Cell, b: &Cell| {
        let found = of_values(e, at, a, b);
        met.set(found.or(met.get()));
        found.is_some()
    };
    if e.rows_go(&goes) || e.stored_go(&goes) {
        return met.get();
    }
    None
}

/// The kind of two values of a column.
fn of_values(e: &Evidence<'_>, at: usize, a: &Cell, b: &Cell) -> Option<&'static Kind> {
    KINDS.iter().copied().flatten().find(|kind| matches!(kind.test, Test::Value(holds) if holds(e, at, a, b)))
}

/// Nobody is asked.
fn by_answers(e: &Evidence<'_>) -> Option<&'static Kind> {
    KINDS.iter().copied().flatten().find(|kind| matches!(kind.test, Test::Answers(holds) if holds(e)))
}

/// The reference is asked again.
fn by_reference(pair: &mut Pair, e: &Evidence<'_>) -> Option<&'static Kind> {
    if !pair.has_reference_beside() {
        return None;
    }
    // What is known without a question is of that kind.
    let is_open = by_answers(e).is_none();
    let agrees = |said: &Answers| match said.difference(e.statement) {
        None => true,
        // What is left of the warnings is known.
        Some(Category::Warnings) if is_open && e.category == Category::Warnings => {
            by_answers(&Evidence::new(e.statement, Category::Warnings, said, e.schema, e.names)).is_some()
        }
        // Other words have other types.
        Some(Category::Types | Category::Warnings) => !matches!(e.category, Category::Types | Category::Warnings),
        // Behind its first error is what it does not have at all.
        Some(Category::Code(lacks, _)) if REFERENCE_LACKS.contains(&lacks) => {
            matches!(e.category, Category::Code(one, _) if one != 0)
        }
        // It is still the same.
        Some(category @ Category::Code(..)) if category == e.category => false,
        // What is left is known; of two errors of data either may come first.
        Some(Category::Code(one, other)) if is_open && one != 0 && are_data_errors(one, other) => true,
        Some(category @ (Category::Rows | Category::Contents | Category::Affected | Category::Code(..))) if is_open => {
            let rest = Evidence::new(e.statement, category, said, e.schema, e.names);
            by_columns(&rest).or_else(|| by_answers(&rest)).is_some()
        }
        Some(_) => false,
    };
    let mut all = e.statement.clone();
    let mut changed: Vec<&Kind> = Vec::new();
    for kind in KINDS.iter().copied().flatten() {
        let holds = match kind.test {
            Test::Plan => pair.by_other_plans(e.schema, e.statement, e.answers).iter().any(agrees),
            Test::Words(changes) => {
                if changes[0](&mut all, e.names) {
                    changed.push(kind);
                }
                changes.iter().any(|change| {
                    let mut other = e.statement.clone();
                    change(&mut other, e.names) && pair.in_other_words(&other, e.answers).iter().any(agrees)
                })
            }
            Test::ZeroDates => {
                // Where Rauk refuses to store a zero date, MariaDB stores it.
                let stores = |said: &Answers| said.reference.error_code().is_none() && is_zero_date(e.rauk_message());
                let mut said = pair.with_zero_dates(e.statement, e.answers);
                // The least of a group may be a zero date then.
                for reword in functions::LEAST_DATES {
                    let mut other = e.statement.clone();
                    if reword(&mut other, e.names) {
                        said.extend(pair.with_zero_dates(&other, e.answers));
                    }
                }
                said.iter().any(|said| agrees(said) || stores(said))
            }
            Test::Orders(others) => others(e.statement, e.names)
                .iter()
                .any(|other| pair.in_other_words(other, e.answers).iter().any(agrees)),
            Test::Warnings(is_meant) => match e.category {
                Category::Code(reference, rauk) if rauk != 0 && e.is_change() => {
                    let mut warned = pair.warned_of(e.statement, reference != 0);
                    for reword in [deciding::deciding, words::compared_numbers, words::rollup_by_union] {
                        let mut other = e.statement.clone();
                        if reword(&mut other, e.names) {
                            warned.extend(pair.warned_of(&other, reference != 0));
                        }
                    }
                    is_meant(e, &warned, rauk)
                }
                _ => false,
            },
            Test::Type(_) | Test::Value(_) | Test::Answers(_) => false,
        };
        if holds {
            return Some(kind);
        }
    }
    // Several differences in one statement.
    let first = *changed.first()?;
    let agrees_on_all = changed.len() > 1 && pair.in_other_words(&all, e.answers).iter().any(agrees)
        || pair.with_zero_dates(&all, e.answers).iter().any(agrees);
    agrees_on_all.then_some(first)
}

/// `Incorrect date value: '0000-00-00' for column 'c' at row 1`
fn is_zero_date(message: &str) -> bool {
    message.starts_with("Incorrect date")
        && message.split('\'').nth(1).is_some_and(|value| value.starts_with("0000-00-00"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_short_and_each_kind_has_a_manual() {
        let kinds: Vec<&Kind> = KINDS.iter().copied().flatten().collect();
        assert!(kinds.len() <= MOST, "{} kinds", kinds.len());
        for kind in kinds {
            assert!(kind.manual.starts_with("https://"), "{}", kind.name);
        }
    }
}

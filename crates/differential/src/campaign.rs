//! A run: seeds, their statements, what came of each.
//!
//! A seed is a schema and some numbers of statements. Statement n of a seed is drawn from the seed and n alone; what it
//! meets in the tables is what the changes before it left, which the same seed repeats. A difference that is not of a
//! known kind is shrunk and becomes a [`Finding`].

use crate::compare::{self, Category};
use crate::data;
use crate::dialect;
use crate::dice::Dice;
use crate::generate;
use crate::golden;
use crate::known::{self, Kind};
use crate::metamorphic::{self, CHECKS, Check};
use crate::run::outcome::Outcome;
use crate::run::{Answers, Error, NOT_SUPPORTED_YET, Pair};
use crate::schema::Schema;
use crate::shrink::{self, Setup};
use crate::summary::Summary;
use crate::tree::feature::{Feature, Features};
use crate::tree::visit::{NodeMut, walk_mut};
use crate::tree::{Expr, Statement};
use std::time::{Duration, Instant};

pub struct Plan {
    pub first_seed: u64,
    pub seeds: u64,
    pub statements: u64,
    /// No further seed is begun after this time.
    pub limit: Option<Duration>,
    pub features: Features,
    /// The run ends with so many findings.
    pub findings: usize,
    /// Only the statement of this number is judged; the changes before it run.
    pub only: Option<u64>,
    /// Every statement is printed before it runs.
    pub verbose: bool,
    /// Every difference of a known kind is printed.
    pub known: bool,
}

pub struct Finding {
    pub seed: u64,
    pub number: Option<u64>,
    pub category: Category,
    /// The shrunk statement.
    pub statement: String,
    pub reference: String,
    pub rauk: String,
    /// A golden file.
    pub script: String,
}

/// What came of one statement.
pub enum Verdict {
    Same,
    /// Rauk's message of error 1235.
    NotSupported(String),
    /// MariaDB has no such statement; Rauk answered.
    Alone,
    Known(&'static Kind),
    Different(Category),
}

/// What the reference says when it is not one: syntax, not supported, ROLLUP with ORDER BY, took too long.
pub const REFERENCE_LACKS: &[u16] = &[1064, 1221, 1235, 1969];

pub fn run(plan: &Plan, pair: &mut Pair, mut tell: impl FnMut(&Finding)) -> Result<Summary, Error> {
    let begin = Instant::now();
    let mut summary = Summary::default();
    for seed in plan.first_seed..plan.first_seed + plan.seeds {
        if plan.limit.is_some_and(|limit| begin.elapsed() > limit) || summary.findings.len() >= plan.findings {
            break;
        }
        run_seed(plan, seed, pair, &mut summary, &mut tell)?;
        summary.seeds += 1;
    }
    summary.time = begin.elapsed();
    Ok(summary)
}

fn run_seed(
    plan: &Plan,
    seed: u64,
    pair: &mut Pair,
    summary: &mut Summary,
    tell: &mut dyn FnMut(&Finding),
) -> Result<(), Error> {
    let mut schema = Schema::random(seed);
    let original = schema.clone();
    if let Some((sql, answers)) = pair.fill(&mut schema)? {
        if answers.rauk.error_code() == Some(NOT_SUPPORTED_YET) {
            summary.schemas_not_supported += 1;
            return Ok(());
        }
        let category = compare::codes(&answers.reference, &answers.rauk).unwrap_or(Category::Contents);
        let setup = Setup { schema: original, history: Vec::new() };
        let tables: Vec<String> = setup.schema.tables.iter().map(crate::schema::Table::create).collect();
        let finding = Finding {
            seed,
            number: None,
            category,
            statement: sql,
            reference: answers.reference.shown(),
            rauk: answers.rauk.shown(),
            script: tables.join(";\n"),
        };
        tell(&finding);
        summary.findings.push(finding);
        return Ok(());
    }
    let mut setup = Setup { schema, history: Vec::new() };
    for number in 0..plan.statements {
        if summary.findings.len() >= plan.findings {
            break;
        }
        let statement = generate::statement(&setup.schema, seed, number, plan.features);
        let mut dice = Dice::new(seed, number + (1 << 40));
        let keep = dice.chance(0.3);
        let check = dice.chance(if setup.schema.newest { 0.8 } else { 0.25 }).then(|| *dice.pick(CHECKS));
        if plan.only.is_some_and(|only| number > only) {
            break;
        }
        let is_judged = plan.only.is_none_or(|only| number == only);
        if plan.verbose && is_judged {
            eprintln!("{seed}:{number} {statement}");
        }
        let mut next = Some(statement);
        let mut is_variant = false;
        while let Some(statement) = next.take() {
            let was_variant = std::mem::replace(&mut is_variant, true);
            let asked = dialect::of(&statement, &setup.schema);
            let answers = pair.run(&setup.schema, &statement, asked.as_ref(), keep)?;
            let mut verdict = judge(pair, &statement, asked.as_ref(), &answers, &setup.schema);
            if pair.was_restarted() {
                // What the two say of tables that one of them has lost, says nothing.
                if !matches!(verdict, Verdict::Different(Category::Lost)) {
                    verdict = Verdict::Alone;
                }
                refill(pair, &setup)?;
            }
            let is_change = !matches!(statement, Statement::Query(_) | Statement::View { .. });
            if is_change && keep && matches!(verdict, Verdict::Same) && answers.rauk.error_code().is_none() {
                setup.history.push(statement.clone());
            }
            if !is_judged {
                continue;
            }
            if let (Verdict::Known(kind), true) = (&verdict, plan.known) {
                println!("{}", shown(seed, number, kind, &statement, &answers));
            }
            if matches!(verdict, Verdict::Same) && !was_variant {
                next = variant(&statement, &mut dice, setup.schema.variants);
            }
            summary.count(&statement, &verdict, &answers);
            let mut found = match verdict {
                Verdict::Different(category) => Some((category, None)),
                _ => None,
            };
            if found.is_none()
                && let Some(check) = check
                && matches!(answers.rauk, Outcome::Rows { .. })
                && let Some(outcome) = metamorphic::run(check, &setup.schema, &statement, &mut |sql| pair.ask(sql))
            {
                *summary.checks.entry(check.name()).or_default() += 1;
                found = outcome.map(|category| (category, Some(check)));
            }
            if let Some((category, check)) = found {
                if summary.is_repeated(category, &answers.rauk) {
                    continue;
                }
                let finding = shrunk(pair, seed, number, category, check, &setup, statement)?;
                if summary.is_new(&finding) {
                    tell(&finding);
                    summary.findings.push(finding);
                }
                // What shrinking left in the database is not this seed's.
                refill(pair, &setup)?;
            }
        }
    }
    Ok(())
}

/// The seed's tables as its changes have left them.
fn refill(pair: &mut Pair, setup: &Setup) -> Result<(), Error> {
    let mut schema = setup.schema.clone();
    pair.fill(&mut schema)?;
    for change in &setup.history {
        run_change(pair, &setup.schema, change)?;
    }
    pair.was_restarted();
    Ok(())
}

/// A change of a seed's history, on both servers.
fn run_change(pair: &mut Pair, schema: &Schema, change: &Statement) -> Result<Answers, Error> {
    let asked = dialect::of(change, schema);
    pair.run(schema, change, asked.as_ref(), true)
}

/// The same query with other literals, for some queries: a plan that was kept for the first must serve it.
fn variant(statement: &Statement, dice: &mut Dice, variants: bool) -> Option<Statement> {
    // A recursion that counts up to a limit would have no end.
    let is_fixed = !matches!(statement, Statement::Query(_)) || Features::of(statement).has(Feature::Recursive);
    if is_fixed || !dice.chance(0.15) {
        return None;
    }
    let mut other = statement.clone();
    walk_mut(&mut other, &mut |node| {
        if let NodeMut::Expr(Expr::Literal { text, class }) = node
            && text != "NULL"
        {
            *text = data::literal(dice, *class, variants);
        }
    });
    (other != *statement).then_some(other)
}

/// `asked` is the statement in MariaDB's words; `None`: it takes no part.
fn judge(
    pair: &mut Pair,
    statement: &Statement,
    asked: Option<&Statement>,
    answers: &Answers,
    schema: &Schema,
) -> Verdict {
    if let Outcome::Error { code: NOT_SUPPORTED_YET, message } = &answers.rauk {
        return Verdict::NotSupported(message.clone());
    }
    if matches!(answers.rauk, Outcome::Lost(_)) {
        return Verdict::Different(Category::Lost);
    }
    let lacks = answers.reference.error_code().is_some_and(|code| REFERENCE_LACKS.contains(&code));
    let Some(asked) = asked else { return Verdict::Alone };
    // The groupings are parts of a UNION, where texts of two collations do not go together.
    let mixes =
        matches!(&answers.reference, Outcome::Error { code: 1267 | 1271, message } if message.contains("UNION"));
    let mixes = mixes && Features::of(statement).has(Feature::Grouping);
    if lacks || mixes || matches!(answers.reference, Outcome::Lost(_)) {
        return Verdict::Alone;
    }
    match answers.difference(asked) {
        None => Verdict::Same,
        // Other words have other types.
        Some(Category::Types | Category::Warnings) if Features::of(statement).has(Feature::Grouping) => Verdict::Same,
        Some(category) => match known::find(pair, schema, asked, category, answers) {
            Some(kind) => Verdict::Known(kind),
            None => Verdict::Different(category),
        },
    }
}

/// A difference of a known kind, for people.
fn shown(seed: u64, number: u64, kind: &Kind, statement: &Statement, answers: &Answers) -> String {
    let mut text = format!("~~ {seed}:{number} {}\n{statement}\n", kind.name);
    let mut answer = |one: &Outcome, other: &Outcome| {
        text += &format!("   MariaDB: {}\n   Rauk:    {}\n", one.shown(), other.shown());
    };
    answer(&answers.reference, &answers.rauk);
    let differs = answers.contents.iter().find(|(_, one, other)| !compare::same_rows(one, other));
    if let Some((_, one, other)) = differs {
        answer(one, other);
    }
    text
}

/// Does the case differ in this way, in the database as it is? Gives the answers if so.
fn differs(
    pair: &mut Pair,
    schema: &Schema,
    statement: &Statement,
    category: Category,
    check: Option<Check>,
) -> Option<Answers> {
    let asked = dialect::of(statement, schema);
    let answers = pair.run(schema, statement, asked.as_ref(), false).ok()?;
    let holds = match check {
        Some(check) => metamorphic::run(check, schema, statement, &mut |sql| pair.ask(sql)).flatten() == Some(category),
        None => {
            matches!(judge(pair, statement, asked.as_ref(), &answers, schema), Verdict::Different(c) if c == category)
        }
    };
    holds.then_some(answers)
}

fn shrunk(
    pair: &mut Pair,
    seed: u64,
    number: u64,
    category: Category,
    check: Option<Check>,
    setup: &Setup,
    statement: Statement,
) -> Result<Finding, Error> {
    let mut in_place = |candidate: &Statement| differs(pair, &setup.schema, candidate, category, check).is_some();
    let mut small = statement;
    // A lost server has lost the tables too: nothing is tried in its place.
    if category != Category::Lost {
        small = shrink::statement(small, &mut in_place);
    }
    let mut setup = setup.clone();
    let again = |pair: &mut Pair, setup: &Setup, statement: &Statement| -> Option<Answers> {
        let mut schema = setup.schema.clone();
        if pair.fill(&mut schema).ok()?.is_some() {
            return None;
        }
        for change in &setup.history {
            run_change(pair, &schema, change).ok()?;
        }
        differs(pair, &schema, statement, category, check)
    };
    if again(pair, &setup, &small).is_some() {
        setup = shrink::setup(setup, &mut |candidate| again(pair, candidate, &small).is_some());
        // With fewer rows and columns more of the statement may go.
        if category != Category::Lost && again(pair, &setup, &small).is_some() {
            let schema = setup.schema.clone();
            small =
                shrink::statement(small, &mut |candidate| differs(pair, &schema, candidate, category, check).is_some());
        }
    }
    let answers = again(pair, &setup, &small);
    let gone = Answers {
        reference: Outcome::Lost("the case does not repeat in an empty database".into()),
        rauk: Outcome::Lost("the case does not repeat in an empty database".into()),
        contents: Vec::new(),
    };
    let answers = answers.unwrap_or(gone);
    let mut reference = answers.reference.shown();
    let mut rauk = answers.rauk.shown();
    for (table, one, other) in &answers.contents {
        if category == Category::Contents {
            reference += &format!("\n      {table}: {}", one.shown());
            rauk += &format!("\n      {table}: {}", other.shown());
        }
    }
    let script = golden::script(&setup, &small, &answers);
    Ok(Finding { seed, number: Some(number), category, statement: small.to_string(), reference, rauk, script })
}

//! Random statements that manage partitions, and what is true after each.
//!
//! A statement is drawn so that it succeeds, save where rows decide (error 1526). What its partitions are afterwards is
//! known here; what rows the twin loses follows from conditions, or of KEY from the rows that the partition has.

use super::model::{MOST, Partition, Partitioning, Values};
use super::statement::Drawing;
use super::step::{Exchange, MARK, Manage, Step, Twin};
use super::table::{Table, some_of};
use crate::dice::Dice;

/// The longest time after which a server is killed in the middle of a statement.
const LATEST_KILL: i64 = 30_000;

/// ALTER TABLE and its like, now.
pub fn step(dice: &mut Dice, table: &Table, partitioning: Option<&Partitioning>) -> Step {
    let killed_after = dice.chance(0.06).then(|| dice.between(0, LATEST_KILL) as u64);
    let Some(now) = partitioning else {
        let mut divided = partition_again(dice, table, 0, killed_after);
        divided.sql = divided.sql.replacen(MARK, &format!("{MARK} {}", table.keys_to_divide()), 1);
        return Step::Manage(Box::new(divided));
    };
    // Tables with GLOBAL keys are not exchanged.
    if dice.chance(0.2) && !table.primary.is_empty() && table.globals.is_empty() {
        return exchange(dice, table, now, killed_after);
    }
    let whole = Manage {
        sql: String::new(),
        twin: Twin::Nothing,
        table: table.clone(),
        partitioning: Some(now.clone()),
        misfits: None,
        killed_after,
        answers: false,
    };
    let managed = match dice.below(20) {
        0..2 => Some(partition_again(dice, table, now.names, killed_after)),
        2 => {
            Some(Manage { sql: format!("ALTER TABLE {MARK} REMOVE PARTITIONING"), partitioning: None, ..whole.clone() })
        }
        3 => definition(dice, &whole),
        4 => Some(maintain(dice, &whole, now)),
        5..8 => Some(truncate(dice, &whole, now)),
        8 if dice.chance(0.3) => {
            Some(Manage { sql: format!("TRUNCATE TABLE {MARK}"), twin: Twin::Delete("TRUE".into()), ..whole.clone() })
        }
        _ if now.by.is_range() || now.by.is_list() => match dice.below(9) {
            0..4 => add(dice, &whole, now),
            4 | 5 => drop_some(dice, &whole, now),
            _ => Some(reorganize(dice, &whole, now)),
        },
        _ => Some(other_number(dice, &whole, now)),
    };
    Step::Manage(Box::new(managed.unwrap_or_else(|| truncate(dice, &whole, now))))
}

fn named(partitions: &[&Partition]) -> String {
    partitions.iter().map(|partition| partition.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn misfits(partitioning: &Partitioning, table: &Table) -> Option<String> {
    partitioning.fits(table).map(|fits| format!("NOT ({fits})"))
}

fn partition_again(dice: &mut Dice, table: &Table, names: usize, killed_after: Option<u64>) -> Manage {
    let new = Partitioning::random(dice, table, names);
    Manage {
        sql: format!("ALTER TABLE {MARK} {}", new.clause(table)),
        twin: Twin::Nothing,
        table: table.clone(),
        misfits: misfits(&new, table),
        partitioning: Some(new),
        killed_after,
        answers: false,
    }
}

/// The columns and keys of all tables.
fn definition(dice: &mut Dice, whole: &Manage) -> Option<Manage> {
    let mut table = whole.table.clone();
    let sql = match dice.below(3) {
        0 if table.indexes.len() < 2 => {
            let name = if table.indexes.iter().any(|(name, _)| name == "k1") { "k2" } else { "k1" };
            let columns = some_of(dice, &(0..table.columns.len()).collect::<Vec<_>>());
            let sql = format!("ALTER TABLE {MARK} ADD KEY {name} ({})", table.names(&columns));
            table.indexes.push((name.into(), columns));
            sql
        }
        1 if !table.indexes.is_empty() => {
            let (name, _) = table.indexes.remove(dice.below(table.indexes.len()));
            format!("ALTER TABLE {MARK} DROP KEY {name}")
        }
        _ if table.columns.len() < 6 => {
            let name = format!("c{}", table.columns.len());
            table.columns.push(super::table::Column {
                name: name.clone(),
                kind: super::table::Kind::Int,
                nullable: true,
            });
            let default = dice.pick(&["NULL", "5"]);
            format!("ALTER TABLE {MARK} ADD COLUMN {name} INT DEFAULT {default}")
        }
        _ => return None,
    };
    Some(Manage { sql, twin: Twin::Same, table, killed_after: None, ..whole.clone() })
}

fn maintain(dice: &mut Dice, whole: &Manage, now: &Partitioning) -> Manage {
    let some = some_of(dice, &now.partitions.iter().collect::<Vec<_>>());
    let names = if dice.chance(0.3) { "ALL".to_string() } else { named(&some) };
    let work = *dice.pick(&["REBUILD", "ANALYZE", "CHECK", "REPAIR", "OPTIMIZE"]);
    Manage { sql: format!("ALTER TABLE {MARK} {work} PARTITION {names}"), answers: work != "REBUILD", ..whole.clone() }
}

/// Of a partition or a subpartition.
fn truncate(dice: &mut Dice, whole: &Manage, now: &Partitioning) -> Manage {
    let (name, members) = match dice.chance(0.5) {
        true => dice.pick(&now.leaves(&whole.table)).clone(),
        false => {
            let at = dice.below(now.partitions.len());
            (now.partitions[at].name.clone(), now.members(&whole.table, at))
        }
    };
    let sql = format!("ALTER TABLE {MARK} TRUNCATE PARTITION {name}");
    let twin = match members {
        Some(members) => Twin::Delete(members),
        None => Twin::DeleteOf { clause: format!("PARTITION ({name})"), columns: deciding(&whole.table, now) },
    };
    Manage { sql, twin, ..whole.clone() }
}

fn deciding(table: &Table, now: &Partitioning) -> Vec<String> {
    now.columns().iter().map(|&column| table.columns[column].name.clone()).collect()
}

fn add(dice: &mut Dice, whole: &Manage, now: &Partitioning) -> Option<Manage> {
    let mut new = now.clone();
    let count = dice.between(1, 2) as usize;
    if now.by.is_range() {
        let last = now.last_bound().expect("a range has an end");
        let most = dice.chance(0.3);
        if last[0] == MOST {
            return None;
        }
        for bound in now.bounds_between(dice, &whole.table, Some(last), None, count, most) {
            new.push(Values::Less(bound));
        }
    } else {
        for values in now.share_out(dice, &whole.table, count) {
            new.push(Values::In(values));
        }
    }
    let added = &new.partitions[now.partitions.len()..];
    if added.is_empty() {
        return None;
    }
    let sql = format!("ALTER TABLE {MARK} ADD PARTITION ({})", new.definitions(&whole.table, added));
    Some(Manage { sql, partitioning: Some(new), ..whole.clone() })
}

fn drop_some(dice: &mut Dice, whole: &Manage, now: &Partitioning) -> Option<Manage> {
    let all: Vec<usize> = (0..now.partitions.len()).collect();
    if all.len() < 2 {
        return None;
    }
    let gone = some_of(dice, &all);
    let gone = &gone[..gone.len().min(2).min(all.len() - 1)];
    let members: Vec<String> =
        gone.iter().filter_map(|at| now.members(&whole.table, *at)).map(|members| format!("({members})")).collect();
    let names: Vec<&Partition> = gone.iter().map(|at| &now.partitions[*at]).collect();
    let mut new = now.clone();
    new.partitions.retain(|partition| !names.contains(&partition));
    let sql = format!("ALTER TABLE {MARK} DROP PARTITION {}", named(&names));
    Some(Manage { sql, twin: Twin::Delete(members.join(" OR ")), partitioning: Some(new), ..whole.clone() })
}

fn reorganize(dice: &mut Dice, whole: &Manage, now: &Partitioning) -> Manage {
    let (table, count) = (&whole.table, now.partitions.len());
    let mut new = now.clone();
    // Partitions that stand side by side (error 1519).
    let first = dice.below(count);
    let last = first + dice.below((count - first).min(3));
    let taken: Vec<usize> = (first..=last).collect();
    let into: Vec<Values> = if now.by.is_range() {
        let end = |at: usize| match &now.partitions[at].values {
            Values::Less(bound) => bound,
            other => unreachable!("{other:?} of a range"),
        };
        let mut high = end(last).clone();
        if last + 1 == count && dice.chance(0.2) {
            high.fill(MOST);
        }
        let low = first.checked_sub(1).map(end);
        let some = dice.below(3);
        let mut bounds = now.bounds_between(dice, table, low, Some(&high), some, false);
        // Where nothing is known of either end, one is made up.
        bounds.retain(|bound| *bound < high);
        bounds.push(high);
        bounds.into_iter().map(Values::Less).collect()
    } else {
        let into = 1 + dice.below(3);
        let mut lists = vec![Vec::new(); into];
        let mut had_default = false;
        for at in &taken {
            match &now.partitions[*at].values {
                Values::In(values) => values.iter().for_each(|value| {
                    if !dice.chance(0.05) {
                        lists[dice.below(into)].push(value.clone());
                    }
                }),
                _ => had_default = true,
            }
        }
        for more in now.share_out(dice, table, 1) {
            if dice.chance(0.2) {
                lists[dice.below(into)].extend(more);
            }
        }
        let mut into: Vec<Values> = lists.into_iter().filter(|list| !list.is_empty()).map(Values::In).collect();
        if had_default || into.is_empty() && !now.has_default() {
            into.push(Values::Default);
        }
        if into.is_empty() {
            return truncate(dice, whole, now);
        }
        into
    };
    let names = named(&taken.iter().map(|at| &now.partitions[*at]).collect::<Vec<_>>());
    // The name of one that goes may be that of a new one.
    let again = dice.chance(0.3).then(|| now.partitions[taken[0]].name.clone());
    let mut partitions: Vec<Partition> = Vec::new();
    for values in into {
        let name = again.clone().filter(|_| partitions.is_empty()).unwrap_or_else(|| new.new_name());
        partitions.push(Partition { name, values });
    }
    let sql = format!("ALTER TABLE {MARK} REORGANIZE PARTITION {names} INTO ({})", new.definitions(table, &partitions));
    let mut at = 0;
    new.partitions.retain(|_| {
        at += 1;
        !taken.contains(&(at - 1))
    });
    new.partitions.splice(taken[0]..taken[0], partitions);
    Manage { sql, misfits: misfits(&new, table), partitioning: Some(new), ..whole.clone() }
}

/// More or fewer partitions of HASH or KEY.
fn other_number(dice: &mut Dice, whole: &Manage, now: &Partitioning) -> Manage {
    let mut new = now.clone();
    let count = now.partitions.len();
    if count > 1 && (count > 6 || dice.chance(0.5)) {
        let fewer = 1 + dice.below((count - 1).min(3));
        new.partitions.truncate(count - fewer);
        let sql = format!("ALTER TABLE {MARK} COALESCE PARTITION {fewer}");
        return Manage { sql, partitioning: Some(new), ..whole.clone() };
    }
    let more = 1 + dice.below(3);
    let names = (count..count + more).map(|at| Partition { name: format!("p{at}"), values: Values::None });
    new.partitions.extend(names);
    let sql = format!("ALTER TABLE {MARK} ADD PARTITION PARTITIONS {more}");
    Manage { sql, partitioning: Some(new), ..whole.clone() }
}

fn exchange(dice: &mut Dice, table: &Table, now: &Partitioning, killed_after: Option<u64>) -> Step {
    let leaves = now.leaves(table);
    let (leaf, members) = dice.pick(&leaves).clone();
    let validates = *dice.pick(&["", "", " WITH VALIDATION"]);
    let filled_by = match &members {
        Some(members) if dice.chance(0.6) => Some(copy_of(dice, table, now, members)),
        _ => None,
    };
    Step::Exchange(Exchange { filled_by, leaf, validates, members, columns: deciding(table, now), killed_after })
}

/// Rows for the table that is exchanged: those of one leaf, if its condition is known.
pub fn fill(drawing: &mut Drawing<'_>) -> Option<String> {
    let partitioning = drawing.partitioning?;
    let leaves = partitioning.leaves(drawing.table);
    let members = drawing.dice.pick(&leaves).1.clone()?;
    Some(copy_of(drawing.dice, drawing.table, partitioning, &members))
}

/// Copies the twin's rows that hold a condition, with other values in columns that do not decide where a row is.
fn copy_of(dice: &mut Dice, table: &Table, now: &Partitioning, members: &str) -> String {
    let deciding = now.columns();
    let shown: Vec<String> = (0..table.columns.len())
        .map(|at| match deciding.contains(&at) || !dice.chance(0.5) {
            true => table.columns[at].name.clone(),
            false => table.columns[at].value(dice),
        })
        .collect();
    let order = table.whole_order();
    format!("INSERT IGNORE INTO {MARK} SELECT {} FROM t WHERE {members} ORDER BY {order}", shown.join(", "))
}

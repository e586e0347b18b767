//! ALTER TABLE … PARTITION: what becomes of the partitions of a table that has some, on its draft.
//!
//! ADD (RANGE, LIST), DROP and TRUNCATE give partitions new tables or take theirs away: no row is copied, and the others keep their
//! tables. REORGANIZE, and ADD beside a DEFAULT partition, move rows of some partitions into new ones. Everything else moves rows between
//! all partitions, so the table is written again. What is wrong with the result
//! (names, values, numbers) is found as in CREATE TABLE.
//!
//! Errors: 1221, 1481, 1492, 1505 to 1520, 1735.

use super::interval;
use super::partition_clause::{
    check_counts, check_names, check_options, check_shape, check_values, count, count_each, is_ranged, kind,
    subpartition_name,
};
use super::partition_values as values;
use super::partitions::{Due, PartitionsDraft};
use crate::expr::Context;
use crate::parse::ast::{
    PartitionBound, PartitionClause, PartitionDefinition, PartitionNames, PartitionOperation,
    PartitionValues as Written, Reorganization, SubpartitionDefinition,
};
use rauk_types::MysqlError;
use rauk_types::error::codes;

const MAXVALUE_NOT_LAST: u16 = 1481;
const MUST_BE_DEFINED: u16 = 1492;
/// ER_DROP_PARTITION_NON_EXISTENT and what follows it.
const NOT_IN_LIST: u16 = 1507;
const CANNOT_DROP_ALL: u16 = 1508;
const COALESCE_ONLY_ON_HASH: u16 = 1509;
const REORGANIZE_SAME_NUMBER: u16 = 1510;
const REORGANIZE_NEEDS_NAMES: u16 = 1511;
const ONLY_ON_RANGE_LIST: u16 = 1512;
const WRONG_SUBPARTITIONS: u16 = 1513;
const NOTHING_ADDED: u16 = 1514;
const NOTHING_COALESCED: u16 = 1515;
const MORE_THAN_THERE_ARE: u16 = 1516;
const NOT_CONSECUTIVE: u16 = 1519;

/// The end of the ranges that REORGANIZE has made, which must be the end of those that it took.
#[derive(Clone, Debug)]
pub(super) struct RangeEnd {
    /// The last partition that was made.
    pub made: usize,
    /// The values of the last one that was taken.
    pub taken: Written,
}

fn wrong(code: u16, text: impl Into<String>) -> Result<(), MysqlError> {
    Err(MysqlError::new(code, text))
}

fn not_in_list(verb: &str) -> MysqlError {
    MysqlError::new(NOT_IN_LIST, format!("Error in list of partitions to {verb}"))
}

impl PartitionsDraft {
    /// An operation but PARTITION BY, REMOVE PARTITIONING, EXCHANGE and those of maintenance.
    pub fn change(
        &mut self,
        operation: &PartitionOperation,
        table: &str,
        engine: Option<&str>,
        context: &mut Context,
    ) -> Result<(), MysqlError> {
        match operation {
            PartitionOperation::Add { definitions, if_not_exists } => {
                self.add(definitions, *if_not_exists, engine, context)?;
            }
            PartitionOperation::AddCount(number) => self.add_count(*number)?,
            PartitionOperation::Drop { names, if_exists } => self.drop_named(names, *if_exists)?,
            PartitionOperation::Truncate(names) => self.truncate(names, table)?,
            PartitionOperation::Coalesce(number) => self.coalesce(*number)?,
            PartitionOperation::Reorganize(None) if is_ranged(&self.clause.by.method) => {
                let text = "REORGANIZE PARTITION without parameters can only be used on auto-partitioned tables using HASH PARTITIONs";
                return wrong(REORGANIZE_NEEDS_NAMES, text);
            }
            // Their number is what it is.
            PartitionOperation::Reorganize(None) => {}
            PartitionOperation::Interval(None) if self.clause.interval.take().is_none() => {
                return Err(interval::none_to("REMOVE"));
            }
            PartitionOperation::Interval(None) => {}
            PartitionOperation::Interval(interval) => {
                self.clause.interval = *interval;
                self.due = Some(Due::now(context, true));
            }
            PartitionOperation::ApplyInterval if self.clause.interval.is_none() => {
                return Err(interval::none_to("APPLY"));
            }
            PartitionOperation::ApplyInterval => self.due = Some(Due::now(context, true)),
            PartitionOperation::Reorganize(Some(reorganization)) => self.reorganize(reorganization, engine, context)?,
            other => unreachable!("{other:?} is seen to before"),
        }
        check_counts(&self.clause)?;
        check_shape(&self.clause)?;
        interval::check_clause(&self.clause)?;
        check_names(&self.clause)
    }

    /// Error 1507: there is no partition of a name, or a name is there twice.
    pub fn check_names_to_rebuild(&self, names: &PartitionNames) -> Result<(), MysqlError> {
        let PartitionNames::Named(names) = names else { return Ok(()) };
        let mut seen = Vec::new();
        for name in names {
            match self.position(name).filter(|at| !seen.contains(at)) {
                Some(at) => seen.push(at),
                None => return wrong(NOT_IN_LIST, "Wrong partition name or partition list"),
            }
        }
        Ok(())
    }

    /// Rows of all partitions go to others than before.
    fn move_all_rows(&mut self) {
        self.tables.clear();
    }

    /// Every partition has a definition with its name.
    fn name_all(&mut self) {
        if self.clause.definitions.is_empty() {
            let names = (0..count(&self.clause)).map(|at| format!("p{at}"));
            self.clause.definitions = names.map(unnamed).collect();
            self.clause.count = None;
        }
    }

    fn position(&self, name: &str) -> Option<usize> {
        match self.clause.definitions.is_empty() {
            true => (0..count(&self.clause)).find(|at| format!("p{at}").eq_ignore_ascii_case(name)),
            false => self.clause.definitions.iter().position(|of| of.name.eq_ignore_ascii_case(name)),
        }
    }

    /// New definitions with their values computed.
    fn checked(
        &self,
        definitions: &[PartitionDefinition],
        engine: Option<&str>,
        context: &mut Context,
    ) -> Result<Vec<PartitionDefinition>, MysqlError> {
        for (at, definition) in definitions.iter().enumerate() {
            check_values(&self.clause.by, definition, at + 1 == definitions.len())?;
            let subpartitions = definition.subpartitions.len() as u64;
            if subpartitions > 0 && subpartitions != count_each(&self.clause) {
                wrong(WRONG_SUBPARTITIONS, "Trying to Add partition(s) with wrong number of subpartitions")?;
            }
        }
        check_options(definitions, engine, context)?;
        let mut definitions = definitions.to_vec();
        values::fold(&mut definitions, context)?;
        // Where others have names for their subpartitions, so have these.
        let named = self.clause.definitions.first().is_some_and(|first| !first.subpartitions.is_empty());
        for definition in definitions.iter_mut().filter(|of| named && of.subpartitions.is_empty()) {
            definition.subpartitions = default_subpartitions(&self.clause, &definition.name);
        }
        Ok(definitions)
    }

    fn add(
        &mut self,
        definitions: &[PartitionDefinition],
        if_not_exists: bool,
        engine: Option<&str>,
        context: &mut Context,
    ) -> Result<(), MysqlError> {
        let mut definitions = definitions.to_vec();
        if if_not_exists {
            definitions.retain(|definition| self.position(&definition.name).is_none());
            if definitions.is_empty() {
                return Ok(());
            }
        }
        if definitions.is_empty() {
            return wrong(NOTHING_ADDED, "At least one partition must be added");
        }
        let definitions = self.checked(&definitions, engine, context)?;
        if !is_ranged(&self.clause.by.method) {
            self.name_all();
            self.clause.definitions.extend(definitions);
            self.move_all_rows();
            return Ok(());
        }
        let is_open = |of: &PartitionDefinition| match &of.values {
            Written::LessThan(bounds) => bounds.iter().all(|bound| *bound == PartitionBound::MaxValue),
            _ => false,
        };
        if self.clause.definitions.last().is_some_and(is_open) {
            return wrong(MAXVALUE_NOT_LAST, "MAXVALUE can only be used in last partition definition");
        }
        // Rows of a list's default partition may belong to a new one.
        let default = self.clause.definitions.iter().position(|of| of.values == Written::Default);
        let each = count_each(&self.clause) as usize;
        self.tables.extend(std::iter::repeat_n(Vec::new(), definitions.len() * each));
        self.clause.definitions.extend(definitions);
        if let Some(default) = default {
            self.tables[default * each..(default + 1) * each].iter_mut().for_each(Vec::clear);
            self.moves_rows = true;
        }
        Ok(())
    }

    fn add_count(&mut self, number: u64) -> Result<(), MysqlError> {
        if is_ranged(&self.clause.by.method) {
            let text = format!("For {} partitions each partition must be defined", kind(&self.clause.by.method));
            return wrong(MUST_BE_DEFINED, text);
        }
        if number == 0 {
            return wrong(NOTHING_ADDED, "At least one partition must be added");
        }
        let before = count(&self.clause) as u64;
        match self.clause.definitions.is_empty() {
            true => self.clause.count = Some(before.saturating_add(number)),
            false => {
                let names = (before..before.saturating_add(number).min(before + 10_000)).map(|at| format!("p{at}"));
                self.clause.definitions.extend(names.map(unnamed));
            }
        }
        self.move_all_rows();
        Ok(())
    }

    fn drop_named(&mut self, names: &[String], if_exists: bool) -> Result<(), MysqlError> {
        if !is_ranged(&self.clause.by.method) {
            return wrong(ONLY_ON_RANGE_LIST, "DROP PARTITION can only be used on RANGE/LIST partitions");
        }
        let mut gone = vec![false; self.clause.definitions.len()];
        for name in names {
            match self.position(name) {
                Some(at) if !gone[at] => gone[at] = true,
                None if if_exists => {}
                _ => return Err(not_in_list("DROP")),
            }
        }
        if gone.iter().all(|gone| *gone) {
            return wrong(CANNOT_DROP_ALL, "Cannot remove all partitions, use DROP TABLE instead");
        }
        let each = count_each(&self.clause) as usize;
        let mut leaf = 0;
        self.tables.retain(|_| {
            leaf += 1;
            !gone[(leaf - 1) / each]
        });
        let mut at = 0;
        self.clause.definitions.retain(|_| {
            at += 1;
            !gone[at - 1]
        });
        Ok(())
    }

    fn truncate(&mut self, names: &PartitionNames, table: &str) -> Result<(), MysqlError> {
        let PartitionNames::Named(names) = names else {
            self.tables.iter_mut().for_each(Vec::clear);
            return Ok(());
        };
        let each = count_each(&self.clause) as usize;
        for name in names {
            let leaves = match self.position(name) {
                Some(at) => at * each..(at + 1) * each,
                None => match self.subpartition(name) {
                    Some(leaf) => leaf..leaf + 1,
                    None => {
                        let text = format!("Unknown partition '{name}' in table '{table}'");
                        return wrong(codes::UNKNOWN_PARTITION, text);
                    }
                },
            };
            self.tables[leaves].iter_mut().for_each(Vec::clear);
        }
        Ok(())
    }

    /// The leaf of a subpartition's name.
    fn subpartition(&self, name: &str) -> Option<usize> {
        let each = count_each(&self.clause) as usize;
        self.clause.definitions.iter().enumerate().find_map(|(at, definition)| {
            let named = match definition.subpartitions.is_empty() {
                true => default_subpartitions(&self.clause, &definition.name),
                false => definition.subpartitions.clone(),
            };
            let sub = named.iter().position(|sub| sub.name.eq_ignore_ascii_case(name))?;
            Some(at * each + sub)
        })
    }

    fn coalesce(&mut self, number: u64) -> Result<(), MysqlError> {
        if is_ranged(&self.clause.by.method) {
            return wrong(COALESCE_ONLY_ON_HASH, "COALESCE PARTITION can only be used on HASH/KEY partitions");
        }
        if number == 0 {
            return wrong(NOTHING_COALESCED, "At least one partition must be coalesced");
        }
        let before = count(&self.clause) as u64;
        if number >= before {
            return wrong(CANNOT_DROP_ALL, "Cannot remove all partitions, use DROP TABLE instead");
        }
        match self.clause.definitions.is_empty() {
            true => self.clause.count = Some(before - number),
            false => self.clause.definitions.truncate((before - number) as usize),
        }
        self.move_all_rows();
        Ok(())
    }

    fn reorganize(
        &mut self,
        reorganization: &Reorganization,
        engine: Option<&str>,
        context: &mut Context,
    ) -> Result<(), MysqlError> {
        let Reorganization { names, into } = reorganization;
        let ranged = is_ranged(&self.clause.by.method);
        if names.len() > count(&self.clause) {
            return wrong(MORE_THAN_THERE_ARE, "More partitions to reorganize than there are partitions");
        }
        if !ranged && names.len() != into.len() {
            let text = "REORGANIZE PARTITION can only be used to reorganize partitions not to change their numbers";
            return wrong(REORGANIZE_SAME_NUMBER, text);
        }
        let mut taken = Vec::with_capacity(names.len());
        for name in names {
            let at = self.position(name).filter(|at| !taken.contains(at)).ok_or_else(|| not_in_list("REORGANIZE"))?;
            taken.push(at);
        }
        let into = self.checked(into, engine, context)?;
        self.name_all();
        taken.sort_unstable();
        let (first, last) = (taken[0], taken[taken.len() - 1]);
        let by_range = self.clause.by.method == rauk_types::partitioning::PartitionMethod::Range;
        if last - first + 1 != taken.len() {
            let text = "When reorganizing a set of partitions they must be in consecutive order";
            return wrong(NOT_CONSECUTIVE, text);
        }
        if by_range {
            let taken = self.clause.definitions[last].values.clone();
            self.range_end = Some(RangeEnd { made: first + into.len() - 1, taken });
        }
        let each = count_each(&self.clause) as usize;
        let is_default = |at: usize| self.clause.definitions[at].values == Written::Default;
        let has_default = (0..self.clause.definitions.len()).any(|at| is_default(at) && !taken.contains(&at));
        match ranged {
            // Rows of HASH and KEY are where they are by the places of partitions, whatever their names.
            false => {}
            // The new partitions may take rows of the default one.
            true if has_default => self.move_all_rows(),
            true => {
                let new = std::iter::repeat_n(Vec::new(), into.len() * each);
                self.tables.splice(first * each..(last + 1) * each, new);
                self.moves_rows = true;
            }
        }
        self.clause.definitions.splice(first..=last, into);
        Ok(())
    }
}

/// The subpartitions that a partition has where none are written.
fn default_subpartitions(clause: &PartitionClause, partition: &str) -> Vec<SubpartitionDefinition> {
    let sub = |at| SubpartitionDefinition { name: subpartition_name(partition, at), options: Vec::new() };
    if clause.sub.is_some() { (0..count_each(clause)).map(sub).collect() } else { Vec::new() }
}

/// A partition of HASH or KEY.
fn unnamed(name: String) -> PartitionDefinition {
    PartitionDefinition { name, values: Written::None, options: Vec::new(), subpartitions: Vec::new() }
}

//! optimizer_switch: flags that choose plans, and never answers.
//!
//! The flags are those of MySQL 8.0 in its order, and behind them those of this server alone. A flag is on by default where the planner does what it stands for, so that the list tells
//! the truth; a dozen have an effect (they have methods of [`Switches`]), the others are kept and shown. A text changes flags of the
//! present value: `flag=on`, `flag=off` and `flag=default` separated by commas, each flag at most once; a single `default` among them begins
//! from the default. As in MySQL there are no spaces, and case does not count.
//!
//! Left out: MySQL's hypergraph optimizer, which cannot be asked for (3999, as of a MySQL that is not built for debugging).

/// Names, and whether they are on by default.
const FLAGS: [(&str, bool); 28] = [
    ("index_merge", true),
    ("index_merge_union", true),
    ("index_merge_sort_union", true),
    ("index_merge_intersection", true),
    ("engine_condition_pushdown", true),
    ("index_condition_pushdown", true),
    ("mrr", false),
    ("mrr_cost_based", false),
    ("block_nested_loop", true),
    ("batched_key_access", true),
    ("materialization", true),
    ("semijoin", true),
    ("loosescan", false),
    ("firstmatch", true),
    ("duplicateweedout", false),
    ("subquery_materialization_cost_based", true),
    ("use_index_extensions", true),
    ("condition_fanout_filter", true),
    ("derived_merge", true),
    ("use_invisible_indexes", false),
    ("skip_scan", true),
    ("hash_join", true),
    ("subquery_to_derived", true),
    ("prefer_ordering_index", true),
    ("hypergraph_optimizer", false),
    ("derived_condition_pushdown", true),
    ("batch_execution", true),
    ("batch_execution_cost_based", true),
];

const BLOCK_NESTED_LOOP: u32 = bit("block_nested_loop");
const BATCHED_KEY_ACCESS: u32 = bit("batched_key_access");
const HASH_JOIN: u32 = bit("hash_join");
const MATERIALIZATION: u32 = bit("materialization");
const SEMI_JOIN: u32 = bit("semijoin");
const FIRST_MATCH: u32 = bit("firstmatch");
const DERIVED_MERGE: u32 = bit("derived_merge");
const SUBQUERY_TO_DERIVED: u32 = bit("subquery_to_derived");
const HYPERGRAPH: u32 = bit("hypergraph_optimizer");
const INDEX_MERGE: u32 = bit("index_merge");
const INDEX_MERGE_UNION: u32 = bit("index_merge_union");
const INDEX_MERGE_SORT_UNION: u32 = bit("index_merge_sort_union");
const INDEX_MERGE_INTERSECTION: u32 = bit("index_merge_intersection");
const SKIP_SCAN: u32 = bit("skip_scan");
const USE_INVISIBLE_INDEXES: u32 = bit("use_invisible_indexes");
const CONDITION_PUSHDOWN: u32 = bit("derived_condition_pushdown");
const BATCH_EXECUTION: u32 = bit("batch_execution");
const BATCH_EXECUTION_COST_BASED: u32 = bit("batch_execution_cost_based");

/// The bit of a flag; a name that is none does not compile.
const fn bit(name: &str) -> u32 {
    let name = name.as_bytes();
    let mut at = 0;
    loop {
        let flag = FLAGS[at].0.as_bytes();
        let mut same = 0;
        while same < flag.len() && same < name.len() && flag[same] == name[same] {
            same += 1;
        }
        if same == flag.len() && same == name.len() {
            return 1 << at;
        }
        at += 1;
    }
}

/// Which flags are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches(u32);

impl Default for Switches {
    fn default() -> Self {
        let on = FLAGS.iter().enumerate().filter(|(_, (_, on))| *on);
        Switches(on.fold(0, |bits, (at, _)| bits | 1 << at))
    }
}

impl std::fmt::Display for Switches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, (name, _)) in FLAGS.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{name}={}", if self.has(1 << at) { "on" } else { "off" })?;
        }
        Ok(())
    }
}

impl Switches {
    fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }

    /// The rows of an inner table that no index reaches are kept in memory.
    pub fn block_nested_loop(self) -> bool {
        self.has(BLOCK_NESTED_LOOP)
    }

    /// A table that an index reaches is looked up for many rows of a join at once.
    pub fn batched_key_access(self) -> bool {
        self.has(BATCHED_KEY_ACCESS)
    }

    /// The rows of an inner table in memory are probed by hash where an equality joins them; so are those of a table
    /// that an index reaches, if that costs less.
    pub fn hash_join(self) -> bool {
        self.has(HASH_JOIN)
    }

    /// IN, EXISTS, ANY and ALL become semi and anti joins.
    pub fn semi_join(self) -> bool {
        self.has(SEMI_JOIN)
    }

    /// Their tables may be read once, and probed by hash, where an index finds their rows too.
    pub fn materialization(self) -> bool {
        self.has(MATERIALIZATION)
    }

    /// Without it they are read once wherever they can be.
    pub fn first_match(self) -> bool {
        self.has(FIRST_MATCH)
    }

    /// Derived tables, views and common tables that are read once become part of the block around them.
    pub fn derived_merge(self) -> bool {
        self.has(DERIVED_MERGE)
    }

    /// Correlated subqueries with an aggregate become joins with a grouped table.
    pub fn subquery_to_derived(self) -> bool {
        self.has(SUBQUERY_TO_DERIVED)
    }

    /// Conditions on a derived table move into it.
    pub fn condition_pushdown(self) -> bool {
        self.has(CONDITION_PUSHDOWN)
    }

    /// The parts of an OR may be read by an index each.
    pub fn index_merge(self) -> bool {
        self.has(INDEX_MERGE)
    }

    /// The same, by whole keys, or by ranges.
    pub fn index_merge_of(self, whole_keys: bool) -> bool {
        self.has(if whole_keys { INDEX_MERGE_UNION } else { INDEX_MERGE_SORT_UNION })
    }

    /// Rows may be looked for that have their keys in several indexes.
    pub fn index_merge_intersection(self) -> bool {
        self.has(INDEX_MERGE) && self.has(INDEX_MERGE_INTERSECTION)
    }

    /// An index may be read for each value of leading columns that no condition fixes.
    pub fn skip_scan(self) -> bool {
        self.has(SKIP_SCAN)
    }

    /// Invisible indexes are used as others are.
    pub fn use_invisible_indexes(self) -> bool {
        self.has(USE_INVISIBLE_INDEXES)
    }

    /// The rows of one table are grouped in batches, column by column.
    pub fn batch_execution(self) -> bool {
        self.has(BATCH_EXECUTION)
    }

    /// Only where many rows are expected.
    pub fn batch_execution_cost_based(self) -> bool {
        self.has(BATCH_EXECUTION_COST_BASED)
    }

    /// What this server does not have.
    pub fn hypergraph(self) -> bool {
        self.has(HYPERGRAPH)
    }

    /// The flags of a value as it is stored.
    pub fn of(stored: &str) -> Switches {
        Switches::default().changed(stored, Switches::default()).unwrap_or_else(|at| unreachable!("stored: {at}"))
    }

    /// Flags given as a number. The bit behind the last is that of the word `default` in MySQL, and says nothing.
    pub fn from_number(number: u64) -> Option<Switches> {
        let all = (1 << FLAGS.len()) - 1;
        (number <= all << 1 | 1).then_some(Switches((number & all) as u32))
    }

    /// The flags after `text` was applied to them; `Err`: the text from the item on that is wrong.
    pub fn changed(self, text: &str, default: Switches) -> Result<Switches, &str> {
        let (mut on, mut off, mut from_default) = (0u32, 0u32, false);
        let mut rest = text;
        while !text.is_empty() {
            let (item, behind) = match rest.split_once(',') {
                Some((item, behind)) => (item, Some(behind)),
                None => (rest, None),
            };
            match item.split_once('=') {
                None if item.eq_ignore_ascii_case("default") && !from_default => from_default = true,
                None => return Err(rest),
                Some((name, value)) => {
                    let found = FLAGS.iter().position(|(flag, _)| flag.eq_ignore_ascii_case(name)).ok_or(rest)?;
                    let bit = 1 << found;
                    if (on | off) & bit != 0 {
                        return Err(rest);
                    }
                    let is_on = match value {
                        _ if value.eq_ignore_ascii_case("on") => true,
                        _ if value.eq_ignore_ascii_case("off") => false,
                        _ if value.eq_ignore_ascii_case("default") => default.has(bit),
                        _ => return Err(rest),
                    };
                    if is_on { on |= bit } else { off |= bit }
                }
            }
            match behind {
                Some(behind) => rest = behind,
                None => break,
            }
        }
        let begin = if from_default { default } else { self };
        Ok(Switches((begin.0 | on) & !off))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_change_the_present_value() {
        let usual = Switches::default();
        let off = usual.changed("semijoin=off,MRR=On", usual).unwrap();
        assert!(!off.semi_join() && off.first_match() && off.has(bit("mrr")));
        let more = off.changed("firstmatch=off", usual).unwrap();
        assert!(!more.semi_join() && !more.first_match());
        assert_eq!(more.changed("", usual).unwrap(), more);
        assert_eq!(more.changed("default", usual).unwrap(), usual);
        // Wherever the word stands, it is where the others begin.
        assert_eq!(more.changed("semijoin=off,default,mrr=on", usual).unwrap(), off);
        assert!(more.changed("semijoin=default", usual).unwrap().semi_join());
        assert!(!usual.changed("semijoin=default", more).unwrap().semi_join());
        assert_eq!(usual.changed("default", more).unwrap(), more);
    }

    #[test]
    fn what_is_wrong_is_shown_from_its_item_on() {
        let usual = Switches::default();
        for (text, shown) in [
            ("x=off", "x=off"),
            ("semijoin", "semijoin"),
            ("semijoin=x", "semijoin=x"),
            ("semijoin=off,materialization=x,mrr=on", "materialization=x,mrr=on"),
            ("semijoin=off,semijoin=on", "semijoin=on"),
            ("semijoin=off,", ""),
            ("semijoin=off,,", ","),
            (",", ","),
            ("=on", "=on"),
            (" semijoin=off", " semijoin=off"),
            ("semijoin = off", "semijoin = off"),
            ("semijoin=off=on", "semijoin=off=on"),
            ("default,default", "default"),
            ("default=on", "default=on"),
        ] {
            assert_eq!(usual.changed(text, usual), Err(shown), "{text}");
        }
    }

    #[test]
    fn text_and_number_mean_the_same_flags() {
        let usual = Switches::default();
        assert_eq!(Switches::of(&usual.to_string()), usual);
        for (at, (name, on)) in FLAGS.iter().enumerate() {
            assert_eq!(bit(name), 1 << at);
            let other = usual.changed(&format!("{name}={}", if *on { "off" } else { "on" }), usual).unwrap();
            assert_eq!(other.0, usual.0 ^ 1 << at);
            assert_eq!(Switches::of(&other.to_string()), other);
            assert_eq!(Switches::from_number(u64::from(other.0)), Some(other));
        }
        let last = 1 << FLAGS.len();
        assert_eq!(Switches::from_number(last), Some(Switches(0)));
        assert_eq!(Switches::from_number(last << 1), None);
    }
}

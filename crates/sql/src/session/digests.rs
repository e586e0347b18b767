//! What statements cost: counts by statement digest, and by kind for each session.
//!
//! A *digest* is the text of a statement without its literals (`parse::digest`), together with the current database.
//! There are at most performance_schema_digests_size of them; statements of further ones count together in one row
//! without a text. A plan of the plan cache knows its digest, so that a statement whose plan is there neither reads its
//! text again nor looks anything up; other statements find theirs by their text, of which a session remembers the last
//! few.
//!
//! Many sessions may run one digest at the same time. Each counts in a stripe that its number chooses, by atomic
//! additions, and only what is not nothing is added; a stripe is made when it is first used. What a session has done by
//! kinds of statements is counted in blocks that only it writes ([`Kinds`]). Who reads adds them up.
//!
//! Times are those of the engine's clock, in microseconds. TRUNCATE of the digests' table forgets all digests; the plan
//! cache is emptied with it, since plans know theirs.

use super::status::{Counter, NAMES};
use crate::physical::facts::Facts;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use sha2::Digest as _;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

const STRIPES: usize = 8;
/// Bytes of a digest's text, and of an example, that are kept.
const KEPT_TEXT: usize = 1024;
/// Accounts whose ended sessions are told apart; those of further ones count together.
const MAX_ACCOUNTS: usize = 1000;
/// Halves of powers of two of a microsecond.
const BUCKETS: usize = 64;

/// What is counted of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Count,
    Micros,
    Longest,
    Errors,
    Warnings,
    Affected,
    Sent,
    Examined,
    Scans,
    FullJoins,
    Ranges,
    NoIndex,
    SortsOfScans,
    SortsOfRanges,
    SortedRows,
    Temporary,
    Locked,
}

pub(crate) const FIELDS: usize = Field::Locked as usize + 1;

/// Sums of [`Field`]s, and the shortest run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sums {
    values: [u64; FIELDS],
    pub shortest: u64,
}

impl Default for Sums {
    fn default() -> Self {
        Sums { values: [0; FIELDS], shortest: u64::MAX }
    }
}

impl Sums {
    pub fn get(&self, field: Field) -> u64 {
        self.values[field as usize]
    }

    pub fn add(&mut self, other: &Sums) {
        for (at, value) in other.values.iter().enumerate() {
            match at == Field::Longest as usize {
                true => self.values[at] = self.values[at].max(*value),
                false => self.values[at] += value,
            }
        }
        self.shortest = self.shortest.min(other.shortest);
    }
}

/// One run of a statement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ran {
    pub micros: u64,
    /// Of these, in waits for locks on this node.
    pub locked: u64,
    pub failed: bool,
    pub warnings: u64,
    pub affected: u64,
    pub sent: u64,
    pub examined: u64,
    pub facts: Facts,
}

struct Counts {
    values: [AtomicU64; FIELDS],
    shortest: AtomicU64,
}

impl Default for Counts {
    fn default() -> Self {
        Counts { values: std::array::from_fn(|_| AtomicU64::new(0)), shortest: AtomicU64::new(u64::MAX) }
    }
}

impl Counts {
    /// `add` adds to a counter: in a way for many, or for one that counts alone.
    #[inline]
    fn note(&self, ran: &Ran, add: impl Fn(&AtomicU64, u64)) {
        let one = |field: Field, value: u64| {
            if value > 0 {
                add(&self.values[field as usize], value);
            }
        };
        one(Field::Count, 1);
        one(Field::Micros, ran.micros);
        one(Field::Locked, ran.locked);
        one(Field::Errors, ran.failed.into());
        one(Field::Warnings, ran.warnings);
        one(Field::Affected, ran.affected);
        one(Field::Sent, ran.sent);
        one(Field::Examined, ran.examined);
        let facts = &ran.facts;
        if *facts != Facts::default() {
            one(Field::Scans, facts.scans.into());
            one(Field::FullJoins, facts.full_join.into());
            one(Field::Ranges, facts.range.into());
            one(Field::NoIndex, facts.no_index.into());
            one(Field::SortsOfScans, (facts.sorts && !facts.range).into());
            one(Field::SortsOfRanges, (facts.sorts && facts.range).into());
            one(Field::SortedRows, if facts.sorts { ran.sent } else { 0 });
            one(Field::Temporary, facts.temporary.into());
        }
        // These change seldom.
        if self.values[Field::Longest as usize].load(Relaxed) < ran.micros {
            self.values[Field::Longest as usize].fetch_max(ran.micros, Relaxed);
        }
        if self.shortest.load(Relaxed) > ran.micros {
            self.shortest.fetch_min(ran.micros, Relaxed);
        }
    }

    fn sums(&self) -> Sums {
        Sums { values: std::array::from_fn(|at| self.values[at].load(Relaxed)), shortest: self.shortest.load(Relaxed) }
    }

    fn clear(&self) {
        self.values.iter().for_each(|value| value.store(0, Relaxed));
        self.shortest.store(u64::MAX, Relaxed);
    }
}

struct Stripe {
    counts: Counts,
    /// Runs by how long they took.
    buckets: [AtomicU32; BUCKETS],
}

impl Default for Stripe {
    fn default() -> Self {
        Stripe { counts: Counts::default(), buckets: std::array::from_fn(|_| AtomicU32::new(0)) }
    }
}

/// The bucket of a time: twice its power of two, and one more in the upper half of it.
fn bucket_of(micros: u64) -> usize {
    let micros = micros.max(1);
    let power = micros.ilog2() as usize;
    let upper = power > 0 && micros >> (power - 1) & 1 == 1;
    (2 * power + usize::from(upper)).min(BUCKETS - 1)
}

/// The longest time in a bucket.
fn longest_of(bucket: usize) -> u64 {
    let power = 1u64 << (bucket / 2);
    if bucket.is_multiple_of(2) { power + power / 2 } else { 2 * power }
}

/// An example of a digest's statements: of the slowest run.
#[derive(Clone, Default)]
pub(crate) struct Sample {
    pub text: String,
    pub seen: i64,
    pub micros: u64,
}

/// The statements of one digest in one database.
#[derive(Default)]
pub struct Digest {
    pub database: Option<Box<str>>,
    /// `None`: those for which there is no room.
    pub text: Option<Box<str>>,
    /// Of the whole text, by SHA-256, in hexadecimal digits: what STATEMENT_DIGEST gives.
    pub hash: Option<Box<str>>,
    stripes: [OnceLock<Box<Stripe>>; STRIPES],
    first_seen: AtomicI64,
    last_seen: AtomicI64,
    /// Of `sample`, so that others need not look at it.
    sample_micros: AtomicU64,
    sample: Mutex<Sample>,
}

/// A digest's counts.
pub(crate) struct DigestRow {
    pub sums: Sums,
    /// 95 %, 99 % and 99.9 % of all runs took no longer, in microseconds.
    pub quantiles: [u64; 3],
    pub first_seen: i64,
    pub last_seen: i64,
    pub sample: Sample,
}

impl Digest {
    /// A run by a session. `sql` gives the text, where it may be shown; it is asked for seldom.
    #[inline]
    pub(crate) fn note(&self, session: u32, ran: &Ran, now: i64, sql: impl FnOnce() -> Option<String>) {
        let stripe = self.stripes[session as usize % STRIPES].get_or_init(Box::default);
        stripe.counts.note(ran, |count, n| _ = count.fetch_add(n, Relaxed));
        stripe.buckets[bucket_of(ran.micros)].fetch_add(1, Relaxed);
        if self.first_seen.load(Relaxed) == 0 {
            let _ = self.first_seen.compare_exchange(0, now, Relaxed, Relaxed);
        }
        self.last_seen.store(now, Relaxed);
        if ran.micros > self.sample_micros.load(Relaxed)
            && let Some(sql) = sql()
        {
            self.keep_sample(&sql, ran.micros, now);
        }
    }

    fn keep_sample(&self, sql: &str, micros: u64, now: i64) {
        self.sample_micros.fetch_max(micros, Relaxed);
        let Some(mut sample) = self.sample.try_lock() else { return };
        if micros > sample.micros || sample.seen == 0 {
            *sample = Sample { text: beginning(sql, KEPT_TEXT).to_string(), seen: now, micros };
        }
    }

    pub(crate) fn row(&self) -> DigestRow {
        let mut sums = Sums::default();
        let mut buckets = [0u64; BUCKETS];
        for stripe in self.stripes.iter().filter_map(OnceLock::get) {
            sums.add(&stripe.counts.sums());
            for (sum, bucket) in buckets.iter_mut().zip(&stripe.buckets) {
                *sum += u64::from(bucket.load(Relaxed));
            }
        }
        let total: u64 = buckets.iter().sum();
        let quantile = |thousandths: u64| {
            let wanted = (total * thousandths).div_ceil(1000);
            let mut seen = 0;
            let found = buckets.iter().position(|count| {
                seen += count;
                seen >= wanted
            });
            found.map_or(0, longest_of).min(sums.get(Field::Longest))
        };
        DigestRow {
            sums,
            quantiles: [quantile(950), quantile(990), quantile(999)],
            first_seen: self.first_seen.load(Relaxed),
            last_seen: self.last_seen.load(Relaxed),
            sample: self.sample.lock().clone(),
        }
    }
}

/// At most so many bytes of a text.
fn beginning(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[derive(PartialEq, Eq, Hash)]
struct Name {
    database: Option<Box<str>>,
    hash: [u8; 32],
}

/// All digests.
pub struct Digests {
    known: RwLock<FxHashMap<Name, Arc<Digest>>>,
    most: usize,
    /// Those for which there is no room.
    others: RwLock<Arc<Digest>>,
    /// How often all were forgotten.
    generation: AtomicU32,
}

impl Digests {
    pub fn new(most: usize) -> Digests {
        Digests { known: RwLock::default(), most, others: RwLock::default(), generation: AtomicU32::new(0) }
    }

    /// The digest of this text, which is one without literals.
    pub fn find(&self, database: Option<&str>, text: &str) -> Arc<Digest> {
        let hash: [u8; 32] = sha2::Sha256::digest(text.as_bytes()).into();
        let name = Name { database: database.map(Into::into), hash };
        if let Some(found) = self.known.read().get(&name) {
            return found.clone();
        }
        let mut known = self.known.write();
        if known.len() >= self.most && !known.contains_key(&name) {
            return self.others.read().clone();
        }
        let made = || {
            let hexadecimal: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            Arc::new(Digest {
                database: database.map(Into::into),
                text: Some(beginning(text, KEPT_TEXT).into()),
                hash: Some(hexadecimal.into()),
                ..Digest::default()
            })
        };
        known.entry(name).or_insert_with(made).clone()
    }

    pub fn generation(&self) -> u32 {
        self.generation.load(Relaxed)
    }

    /// Those that have been run, the one for which there was no room last.
    pub fn all(&self) -> Vec<Arc<Digest>> {
        let mut all: Vec<Arc<Digest>> = self.known.read().values().cloned().collect();
        all.sort_by(|a, b| (&a.database, &a.hash).cmp(&(&b.database, &b.hash)));
        all.push(self.others.read().clone());
        all.retain(|digest| digest.last_seen.load(Relaxed) != 0);
        all
    }

    /// TRUNCATE. Who knows a digest is to forget it.
    pub fn clear(&self) {
        self.generation.fetch_add(1, Relaxed);
        self.known.write().clear();
        *self.others.write() = Arc::default();
    }
}

/// What one session has run, by kinds of statements. Only the session adds to it.
pub(crate) struct Kinds {
    /// By [`Counter`]; the one behind the last is of what could not be read.
    kinds: [OnceLock<Box<Counts>>; NAMES.len() + 1],
}

impl Default for Kinds {
    fn default() -> Self {
        Kinds { kinds: std::array::from_fn(|_| OnceLock::new()) }
    }
}

/// Sums by kind: the kind's number, and what was counted.
pub(crate) type KindSums = FxHashMap<usize, Sums>;

/// `statement/sql/…` as performance_schema calls a kind.
pub(crate) fn event_name(kind: usize) -> String {
    match NAMES.get(kind) {
        Some(name) => format!("statement/sql/{}", name.trim_start_matches("Com_")),
        None => "statement/sql/error".to_string(),
    }
}

/// The kinds that are of statements.
pub(crate) fn event_kinds() -> impl Iterator<Item = usize> {
    (0..=NAMES.len())
        .filter(|kind| NAMES.get(*kind).is_none_or(|name| name.starts_with("Com_") && !name.contains("stmt")))
}

impl Kinds {
    #[inline]
    pub fn note(&self, kind: Option<Counter>, ran: &Ran) {
        let at = kind.map_or(NAMES.len(), |kind| kind as usize);
        let counts = self.kinds[at].get_or_init(Box::default);
        counts.note(ran, |count, n| count.store(count.load(Relaxed).wrapping_add(n), Relaxed));
    }

    pub fn add_to(&self, sums: &mut KindSums) {
        for (kind, counts) in self.kinds.iter().enumerate() {
            if let Some(counts) = counts.get() {
                sums.entry(kind).or_default().add(&counts.sums());
            }
        }
    }

    /// The session may be counting: what it adds at this moment may be lost or left.
    pub fn clear(&self) {
        self.kinds.iter().filter_map(OnceLock::get).for_each(|counts| counts.clear());
    }
}

/// What there is of an account: sessions so far, and what ended ones have run.
#[derive(Clone, Default)]
pub(crate) struct AccountSums {
    pub sessions: u64,
    pub kinds: KindSums,
}

/// User and host of sessions; `None`: further ones.
pub(crate) type AccountName = Option<(String, String)>;

/// Accounts that have been connected since the start.
#[derive(Default)]
pub(crate) struct Accounts(Mutex<FxHashMap<AccountName, AccountSums>>);

impl Accounts {
    fn with(&self, user: &str, host: &str, change: impl FnOnce(&mut AccountSums)) {
        let mut accounts = self.0.lock();
        let name = Some((user.to_string(), host.to_string()));
        let name = if accounts.len() >= MAX_ACCOUNTS && !accounts.contains_key(&name) { None } else { name };
        change(accounts.entry(name).or_default());
    }

    pub fn enter(&self, user: &str, host: &str) {
        self.with(user, host, |account| account.sessions += 1);
    }

    pub fn leave(&self, user: &str, host: &str, kinds: &Kinds) {
        self.with(user, host, |account| kinds.add_to(&mut account.kinds));
    }

    pub fn all(&self) -> Vec<(AccountName, AccountSums)> {
        let mut all: Vec<_> = self.0.lock().iter().map(|(name, sums)| (name.clone(), sums.clone())).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// TRUNCATE of sums over kinds.
    pub fn clear_kinds(&self) {
        self.0.lock().values_mut().for_each(|account| account.kinds.clear());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(micros: u64) -> Ran {
        Ran { micros, sent: 2, ..Ran::default() }
    }

    #[test]
    fn runs_add_up_over_stripes() {
        let digest = Digest::default();
        for session in 0..100 {
            digest.note(session, &ran(u64::from(session) + 1), 5, || Some("SELECT 1".to_string()));
        }
        let row = digest.row();
        let get = |field| row.sums.get(field);
        assert_eq!(
            (get(Field::Count), get(Field::Micros), get(Field::Sent), get(Field::Longest)),
            (100, 5050, 200, 100)
        );
        assert_eq!((row.sums.shortest, row.first_seen, row.last_seen), (1, 5, 5));
        assert_eq!((row.sample.text.as_str(), row.sample.micros), ("SELECT 1", 100));
        assert!(row.quantiles[0] >= 95 && row.quantiles[0] <= 100, "{:?}", row.quantiles);
    }

    #[test]
    fn a_bucket_holds_its_times() {
        for micros in [0, 1, 2, 3, 4, 5, 6, 7, 8, 1000, 1 << 20, (1 << 31) - 1] {
            let bucket = bucket_of(micros);
            assert!(longest_of(bucket) >= micros, "{micros} is in {bucket}");
            assert!(bucket == 0 || longest_of(bucket - 1) <= micros.max(1), "{micros} is in {bucket}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn those_without_room_count_together() {
        let digests = Digests::new(2);
        for text in ["a", "b", "c", "d", "a"] {
            digests.find(Some("x"), text).note(0, &ran(1), 1, || None);
        }
        let all = digests.all();
        let texts: Vec<Option<&str>> = all.iter().map(|digest| digest.text.as_deref()).collect();
        assert_eq!(texts.iter().filter(|text| text.is_some()).count(), 2);
        assert_eq!(texts.last(), Some(&None));
        assert_eq!(all.last().unwrap().row().sums.get(Field::Count), 2);
        digests.clear();
        assert!(digests.all().is_empty());
    }

    #[test]
    fn kinds_have_names() {
        assert_eq!(event_name(Counter::Select as usize), "statement/sql/select");
        assert_eq!(event_name(NAMES.len()), "statement/sql/error");
        assert!(event_kinds().all(|kind| kind != Counter::Questions as usize));
    }
}

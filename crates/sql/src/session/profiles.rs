//! `profiling`: what the last statements of a session took, for SHOW PROFILES, SHOW PROFILE and
//! information_schema.PROFILING.
//!
//! A statement that begins while the variable is on notes the time at which each of its stages begins; when it ends
//! with the variable still on, it is kept, as one of at most `profiling_history_size`. Other sessions read nothing of
//! it. A statement runs on threads that it shares with others, so what MySQL counts by thread (CPU, context switches,
//! page faults) is not measured: NULL. With the variable off a statement pays one look at it.

use super::session::Session;
use crate::parse::statement::ProfileType;
use rauk_types::{DataType, TypeKind, Value};
use std::collections::VecDeque;

/// Characters of a statement's text that are kept.
const MAX_TEXT: usize = 300;
/// Stages of one statement that are kept.
const MAX_STAGES: usize = 100;

/// What the running statement has noted.
#[derive(Default)]
pub(crate) struct Stages {
    on: bool,
    /// Each with its beginning, in nanoseconds of the runtime's clock.
    begun: Vec<(&'static str, u64)>,
}

pub(crate) struct Profile {
    pub number: u64,
    /// `None`: it may have a password in it.
    pub text: Option<String>,
    /// Each with its duration in nanoseconds.
    pub stages: Vec<(&'static str, u64)>,
}

impl Profile {
    fn nanos(&self) -> u64 {
        self.stages.iter().map(|(_, nanos)| nanos).sum()
    }
}

/// Of one session, oldest first.
#[derive(Default)]
pub(crate) struct Profiles {
    last: u64,
    pub kept: VecDeque<Profile>,
}

/// Seconds as SHOW PROFILES gives them.
pub(crate) fn seconds(nanos: u64) -> Value {
    Value::Double(nanos as f64 / 1e9)
}

impl Session {
    fn nanos(&self) -> u64 {
        u64::try_from(self.engine.runtime.now().as_nanos()).unwrap_or(u64::MAX)
    }

    /// A statement begins.
    pub(crate) fn begin_profile(&mut self) {
        self.run.stages.on = self.settings.profiling;
        if self.run.stages.on {
            self.run.stages.begun.clear();
            self.stage("starting");
        }
    }

    /// The running statement begins a stage.
    #[inline]
    pub(crate) fn stage(&mut self, name: &'static str) {
        if self.run.stages.on && self.run.stages.begun.len() < MAX_STAGES {
            let now = self.nanos();
            self.run.stages.begun.push((name, now));
        }
    }

    /// A statement that is not to be kept.
    pub(crate) fn discard_profile(&mut self) {
        self.run.stages.on = false;
    }

    /// The running statement has ended.
    pub(crate) fn end_profile(&mut self, text: Option<&str>) {
        if !std::mem::take(&mut self.run.stages.on) || !self.settings.profiling {
            return;
        }
        let end = self.nanos();
        let begun = &self.run.stages.begun;
        let ends = begun.iter().skip(1).map(|(_, at)| *at).chain([end]);
        let stages = begun.iter().zip(ends).map(|((name, at), end)| (*name, end.saturating_sub(*at))).collect();
        let mut profiles = self.process.profiles.lock();
        profiles.last += 1;
        let number = profiles.last;
        let text = text.map(|text| text.chars().take(MAX_TEXT).collect());
        profiles.kept.push_back(Profile { number, text, stages });
        while profiles.kept.len() > self.settings.profiling_history {
            profiles.kept.pop_front();
        }
    }

    /// SHOW PROFILES.
    pub(crate) fn list_profiles(&self) -> Vec<Vec<Value>> {
        let profiles = self.process.profiles.lock();
        let row = |profile: &Profile| {
            let text = profile.text.clone().map_or(Value::Null, Value::Str);
            vec![Value::UInt(profile.number), seconds(profile.nanos()), text]
        };
        profiles.kept.iter().map(row).collect()
    }

    /// SHOW PROFILE of a statement, or of the last one.
    pub(crate) fn list_stages(&self, query: Option<u64>, types: &[ProfileType]) -> Vec<Vec<Value>> {
        let profiles = self.process.profiles.lock();
        let found = match query {
            Some(number) => profiles.kept.iter().find(|profile| profile.number == number),
            None => profiles.kept.back(),
        };
        let unknown = ProfileType::columns(types).len();
        let row = |(name, nanos): &(&'static str, u64)| {
            let mut row = vec![Value::from(*name), seconds(*nanos)];
            row.resize(2 + unknown, Value::Null);
            row
        };
        found.map_or(Vec::new(), |profile| profile.stages.iter().map(row).collect())
    }
}

impl ProfileType {
    /// The columns that these types add to SHOW PROFILE, in MySQL's order.
    pub(crate) fn columns(types: &[ProfileType]) -> Vec<&'static str> {
        use ProfileType::*;
        const ALL: &[(ProfileType, &[&str])] = &[
            (Cpu, &["CPU_user", "CPU_system"]),
            (ContextSwitches, &["Context_voluntary", "Context_involuntary"]),
            (BlockIo, &["Block_ops_in", "Block_ops_out"]),
            (Ipc, &["Messages_sent", "Messages_received"]),
            (PageFaults, &["Page_faults_major", "Page_faults_minor"]),
            (Swaps, &["Swaps"]),
            (Source, &["Source_function", "Source_file", "Source_line"]),
        ];
        let wanted = |of: &ProfileType| types.contains(of) || types.contains(&All);
        ALL.iter().filter(|(of, _)| wanted(of)).flat_map(|(_, names)| names.iter().copied()).collect()
    }
}

/// The type of durations.
pub(crate) fn duration_type() -> DataType {
    DataType { precision: 17, scale: 8, ..DataType::new(TypeKind::Double) }
}

/// Warning 1287 of the statements.
pub(crate) fn deprecated(what: &str) -> String {
    format!("'{what}' is deprecated and will be removed in a future release. Please use Performance Schema instead")
}

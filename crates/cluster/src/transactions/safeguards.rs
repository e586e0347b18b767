//! Rules that tests switch off one at a time, to see that the tests would find what they guard against (`tests/detection.rs`).
//! Outside of tests all are on and nothing can change that: [`off`] is `false` at compile time.

/// Named after what is left out when it is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Safeguard {
    /// Who is asked and has no record writes a fence (rule 3).
    Fence,
    /// "Prepared" is said when the prepare is stable (rule 1).
    PrepareStable,
    /// A coordinator aborts only on a recorded refusal (rule 2).
    AbortOnlyOnRefusal,
    /// Who takes over has a stable prepare itself (rule 4).
    OwnPrepareStable,
    /// An outcome is confirmed when it is stable (rule 8).
    ConfirmedStable,
    /// An outcome is forgotten when all participants have confirmed it (rule 8).
    ForgetAllConfirmed,
    /// An outcome is forgotten when the coordinator knows it or is dead (rule 8).
    CoordinatorKnows,
    /// A forgotten commit leaves a tombstone (rule 9).
    Tombstone,
    /// The commit time is the largest of all least times.
    LargestTime,
    /// A commit that a dead coordinator left is told to all before it is forgotten (rule 8).
    OrphansPushed,
    /// A commit of one group is remembered, for a coordinator that asks again (rule 32).
    CommitRemembered,
}

#[cfg(not(test))]
pub(super) const fn off(_: Safeguard) -> bool {
    false
}

#[cfg(test)]
thread_local! {
    static OFF: std::cell::Cell<Option<Safeguard>> = const { std::cell::Cell::new(None) };
}

#[cfg(test)]
pub(super) fn off(safeguard: Safeguard) -> bool {
    OFF.get() == Some(safeguard)
}

/// Switches one off on this thread, or all on.
#[cfg(test)]
pub(super) fn switch_off(safeguard: Option<Safeguard>) {
    OFF.set(safeguard);
}

//! The leader with the control plane: without faults (placement), and with faults (leases, terms, late messages).

mod calm;
mod faults;
mod terms;
mod weather;

/// The leader runs in none of a test's processes.
const NOBODY: rauk_types::ProcessId = rauk_types::ProcessId(0);

/// A call of a leader that was called in time all the while.
fn steady(
    leader: &mut super::Leader,
    now: std::time::Duration,
    group: &crate::group::Group,
) -> Vec<crate::group::GroupCommand> {
    leader.ticked = now;
    leader.on_tick(now, group)
}

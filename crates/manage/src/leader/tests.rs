//! The leader with the group: in calm weather (placement), and in bad weather (leases, terms, late messages).

mod calm;
mod faults;
mod terms;
mod weather;

/// The leader runs in none of a test's processes.
const NOBODY: rauk_types::ProcessId = rauk_types::ProcessId(0);

//! The leader with the group: in calm weather (placement), and in bad weather (leases, terms, late messages).

mod calm;
mod faults;
mod terms;
mod weather;

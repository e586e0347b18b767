//! Promise: *at most one process is primary in a view*, and it is the one that the manage group named.
use super::Verdict;
use crate::cluster::record::Served;
use rauk_manage::group::Group;
use rauk_types::{GroupId, Member, ProcessId, View};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who was named for each view, over all states that the group has had.
#[derive(Default)]
pub struct Named(BTreeMap<(GroupId, View), Member>);

impl Named {
    /// Takes in one more state. Also: a view never has another primary, and views and versions do not go back.
    pub fn add(&mut self, before: &Group, after: &Arc<Group>) -> Verdict {
        for (number, state) in after.replication_groups.iter().enumerate() {
            let id = GroupId(number as u16);
            if let Some(old) = before.replication_groups.get(number)
                && (old.view > state.view || old.version > state.version)
            {
                return Err(format!("group {number} went back from {old:?} to {state:?}"));
            }
            if let Some(primary) = state.primary {
                self.name(id, state.view, primary)?;
            }
        }
        Ok(())
    }

    fn name(&mut self, group: GroupId, view: View, primary: Member) -> Verdict {
        match self.0.insert((group, view), primary) {
            Some(other) if other != primary => {
                Err(format!("view {} of group {} has two primaries: {other:?} and {primary:?}", view.0, group.0))
            }
            _ => Ok(()),
        }
    }

    /// `served`: every answer that was given.
    pub fn check(&self, served: &[Served]) -> Verdict {
        let mut by_view: BTreeMap<(GroupId, View), ProcessId> = BTreeMap::new();
        for answer in served {
            let place = (answer.group, answer.view);
            if let Some(other) = by_view.insert(place, answer.process)
                && other != answer.process
            {
                return Err(format!("two processes have answered in one view: {other:?} and {answer:?}"));
            }
            match self.0.get(&place) {
                Some(named) if named.process == answer.process => {}
                named => return Err(format!("{answer:?} was given by who was not named for the view: {named:?}")),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::record::tests::served;
    use rauk_types::NodeId;

    fn member(process: u32) -> Member {
        Member { node: NodeId(process as u16), process: ProcessId(process) }
    }

    #[test]
    fn two_primaries_are_found() {
        let mut named = Named::default();
        assert_eq!(named.name(GroupId(0), View(1), member(1)), Ok(()));
        assert_eq!(named.name(GroupId(0), View(2), member(2)), Ok(()));
        assert!(named.name(GroupId(0), View(2), member(1)).is_err());
        let mut named = Named::default();
        named.name(GroupId(0), View(1), member(1)).unwrap();
        named.name(GroupId(0), View(2), member(2)).unwrap();
        assert_eq!(named.check(&[served(1, 1, 0, 1), served(2, 2, 0, 2), served(3, 1, 0, 1)]), Ok(()));
        assert!(named.check(&[served(1, 1, 0, 1), served(2, 2, 0, 1)]).unwrap_err().contains("two processes"));
        assert!(named.check(&[served(1, 2, 0, 1)]).unwrap_err().contains("not named"));
        assert!(named.check(&[served(1, 2, 1, 7)]).is_err());
    }
}

//! What the log's entries do: the [`Group`], and the *sessions* that make a proposal count once, however often it is sent.
//!
//! A process opens a session by a log entry, whose index is the session's number, and numbers its proposals. Each proposal says which of its numbers are no longer waited for (`floor`);
//! answers above that are kept, so that a proposal that comes a second time gets the first one's answer, and one below it changes nothing. A session that was not used for a long time
//! is forgotten when there are too many; its proposals are refused from then on (`Expired`), never carried out a second time. Deterministic, and a part of the snapshot.

use rauk_manage::group::{Answer, Group, GroupCommand};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// More processes than a cluster has; each has one session, and leaves it behind when it restarts.
const MAX_SESSIONS: usize = 256;
/// Answers kept for a session whose floor does not rise.
const MAX_ANSWERS: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Proposal {
    OpenSession,
    Command(Arc<Numbered>),
}

/// A command with its place in its session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Numbered {
    pub session: u64,
    pub number: u64,
    /// Nobody waits for numbers below.
    pub floor: u64,
    pub command: GroupCommand,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// An entry of Raft itself.
    Nothing,
    Opened(u64),
    Applied(Answer),
    /// The session is gone, or nobody waits for this number any more: nothing has changed now.
    Expired,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Session {
    /// Index of the last entry that used it.
    used: u64,
    floor: u64,
    answers: BTreeMap<u64, Answer>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    group: Arc<Group>,
    sessions: BTreeMap<u64, Session>,
}

impl Machine {
    pub fn new() -> Machine {
        Machine { group: Arc::new(Group::new()), sessions: BTreeMap::new() }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("the manage group's state can always be written as JSON")
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Machine, String> {
        serde_json::from_slice(bytes).map_err(|e| e.to_string())
    }

    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// The answer that a session's proposal got, while it is kept.
    pub fn answer(&self, session: u64, number: u64) -> Option<&Answer> {
        self.sessions.get(&session)?.answers.get(&number)
    }

    pub fn knows_session(&self, session: u64) -> bool {
        self.sessions.contains_key(&session)
    }

    /// Carries out the entry at `index`. `true`: the group has changed.
    pub fn apply(&mut self, index: u64, proposal: &Proposal) -> (Outcome, bool) {
        match proposal {
            Proposal::OpenSession => {
                if self.sessions.len() >= MAX_SESSIONS {
                    let oldest = self.sessions.iter().min_by_key(|(number, session)| (session.used, **number));
                    let oldest = oldest.map(|(number, _)| *number).expect("there are sessions");
                    self.sessions.remove(&oldest);
                }
                self.sessions.insert(index, Session { used: index, floor: 0, answers: BTreeMap::new() });
                (Outcome::Opened(index), false)
            }
            Proposal::Command(numbered) => self.apply_command(index, numbered),
        }
    }

    fn apply_command(&mut self, index: u64, numbered: &Numbered) -> (Outcome, bool) {
        let Some(session) = self.sessions.get_mut(&numbered.session) else { return (Outcome::Expired, false) };
        session.used = index;
        if let Some(answer) = session.answers.get(&numbered.number) {
            return (Outcome::Applied(answer.clone()), false);
        }
        if numbered.number < session.floor {
            return (Outcome::Expired, false);
        }
        let group = Arc::make_mut(&mut self.group);
        let answer = group.apply(index, &numbered.command);
        group.index = index;
        session.answers.insert(numbered.number, answer.clone());
        session.floor = session.floor.max(numbered.floor.min(numbered.number));
        while session.answers.len() > MAX_ANSWERS {
            let (lowest, _) = session.answers.pop_first().expect("not empty");
            session.floor = session.floor.max(lowest + 1);
        }
        session.answers = session.answers.split_off(&session.floor);
        (Outcome::Applied(answer), true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_types::TableId;

    fn reserve(session: u64, number: u64, floor: u64) -> Proposal {
        let command = GroupCommand::Observe { table: TableId(1), value: number };
        Proposal::Command(Arc::new(Numbered { session, number, floor, command }))
    }

    #[test]
    fn a_proposal_counts_once() {
        let mut machine = Machine::new();
        assert_eq!(machine.apply(1, &Proposal::OpenSession), (Outcome::Opened(1), false));
        let (first, changed) = machine.apply(2, &reserve(1, 0, 0));
        assert!(changed && matches!(first, Outcome::Applied(_)));
        assert_eq!(machine.group().index, 2);
        assert_eq!(machine.apply(3, &reserve(1, 0, 0)), (first, false));
        assert_eq!(machine.group().index, 2);
        // 0 is no longer waited for: late copies of it change nothing.
        assert!(machine.apply(4, &reserve(1, 1, 1)).1);
        assert_eq!(machine.apply(5, &reserve(1, 0, 0)), (Outcome::Expired, false));
        // Numbers may come in any order, as long as they are waited for.
        assert!(machine.apply(6, &reserve(1, 5, 1)).1);
        assert!(machine.apply(7, &reserve(1, 3, 1)).1);
        assert!(machine.answer(1, 1).is_some() && machine.answer(1, 0).is_none());
        assert_eq!(machine.apply(8, &reserve(9, 0, 0)), (Outcome::Expired, false));
    }

    #[test]
    fn sessions_are_bounded_and_the_one_used_last_stays() {
        let mut machine = Machine::new();
        machine.apply(1, &Proposal::OpenSession);
        machine.apply(2, &Proposal::OpenSession);
        for i in 0..MAX_SESSIONS as u64 {
            machine.apply(10 + 2 * i, &Proposal::OpenSession);
            machine.apply(11 + 2 * i, &reserve(1, i, i));
        }
        assert_eq!(machine.sessions.len(), MAX_SESSIONS);
        assert!(machine.knows_session(1) && !machine.knows_session(2));
        assert_eq!(machine.sessions[&1].answers.len(), 1);
        assert_eq!(machine.apply(9_999, &reserve(2, 0, 0)).0, Outcome::Expired);
    }

    #[test]
    fn the_snapshot_is_everything() {
        let mut machine = Machine::new();
        machine.apply(1, &Proposal::OpenSession);
        machine.apply(2, &reserve(1, 0, 0));
        let mut copy = Machine::from_bytes(&machine.to_bytes()).unwrap();
        assert_eq!(copy.apply(3, &reserve(1, 0, 0)), machine.apply(3, &reserve(1, 0, 0)));
        assert_eq!(copy.apply(4, &reserve(1, 1, 1)), machine.apply(4, &reserve(1, 1, 1)));
        assert_eq!(copy.to_bytes(), machine.to_bytes());
        assert!(Machine::from_bytes(b"{}").is_err());
    }
}

//! Proposals that are made again after a lost answer.
//!
//! A process that proposes a change and hears nothing cannot know whether it was made. It proposes it again under the
//! same [`Origin`]; the control plane remembers the answers to the newest proposals of each process that is up, and
//! gives the same one again. What comes so late that its answer is forgotten is refused without being done; what comes
//! from a process that is not up is void, so that memory ends with the process.

use super::Group;
use super::command::{Answer, OnceCommand, Origin, Refused};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Answers remembered for each process: more than it has proposals under way at once.
const REMEMBERED: usize = 64;

/// What a process's newest proposals gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Remembered {
    answers: BTreeMap<u64, Answer>,
    /// Numbers at and below this may have been proposed and are not remembered.
    forgotten: u64,
}

impl Group {
    pub(super) fn once(&mut self, origin: Origin, command: &OnceCommand) -> Result<Answer, Answer> {
        if !self.is_up(origin.process) {
            return Err(Answer::Void);
        }
        if let Some(before) = self.origins.get(&origin.process) {
            if let Some(answer) = before.answers.get(&origin.number) {
                return Ok(answer.clone());
            }
            if origin.number <= before.forgotten {
                return Err(Answer::Refused(Refused::Forgotten));
            }
        }
        let result = match command {
            OnceCommand::Catalog { command, intent } => self.change_catalog(command, *intent),
            OnceCommand::Reserve { table, count } => self.reserve(*table, *count),
            OnceCommand::Intend { intent } => self.intend(intent),
            OnceCommand::Reopen { number, open } => self.reopen(*number, *open),
        };
        let answer = result.unwrap_or_else(|refused| refused);
        let remembered = self.origins.entry(origin.process).or_default();
        remembered.answers.insert(origin.number, answer.clone());
        if remembered.answers.len() > REMEMBERED
            && let Some((number, _)) = remembered.answers.pop_first()
        {
            remembered.forgotten = remembered.forgotten.max(number);
        }
        Ok(answer)
    }
}

//! Proposals: where they go, when they are sent again, and that each counts once.
//!
//! A proposal is numbered in this process's session ([`crate::machine`]), sent to whoever leads, and sent again, with the same number, whenever no answer comes: to the leader that is known by
//! then, or to others who may know one. The answer that counts is the one of the local state: a proposal resolves when it has been applied here, also when every answer on the way was lost.
//!
//! *Giving up.* A proposal that had no answer in time is one of two things, and the proposer is told which. If nobody has got it who may have led then, it is void ([`ProposeError::Unavailable`]). Otherwise it may be in
//! somebody's log and be carried out long after that ([`ProposeError::Unknown`]).
//!
//! *Size.* An entry is written to the journal of each voter and travels in one message: a command that is too large is refused before it is sent ([`LONGEST_COMMAND`]).

use crate::group::Core;
use crate::machine::{Numbered, Outcome, Proposal};
use crate::message::{Body, Refusal, Reply};
use crate::network::CallError;
use openraft::ServerState;
use openraft::error::{ClientWriteError, RaftError};
use parking_lot::Mutex;
use rauk_manage::consensus::ProposeError;
use rauk_manage::group::{Answer, GroupCommand};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// How long the first attempt waits for an answer; later ones wait longer.
const ATTEMPT: Duration = Duration::from_millis(300);
/// Between two attempts, unless another leader is heard of.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_ATTEMPT: Duration = Duration::from_millis(2_400);
/// Bytes of a command as JSON, as the journal has it; what a message and the journal take is several times that.
pub const LONGEST_COMMAND: u64 = 16 << 20;

#[derive(Default)]
pub struct Proposer {
    numbers: Mutex<Numbers>,
    /// Held while a session is opened, so that only one is.
    opening: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Numbers {
    session: Option<u64>,
    next: u64,
    /// Somebody waits for these.
    waited_for: BTreeSet<u64>,
}

/// A proposal's place in the session; gives it back when it is dropped.
struct Place<'a> {
    core: &'a Core,
    session: u64,
    number: u64,
    floor: u64,
    outcome: oneshot::Receiver<Outcome>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.core.shared.forget(self.session, self.number);
        let mut numbers = self.core.proposer.numbers.lock();
        if numbers.session == Some(self.session) {
            numbers.waited_for.remove(&self.number);
        }
    }
}

impl Proposer {
    fn place<'a>(&self, core: &'a Core) -> Option<Place<'a>> {
        let mut numbers = self.numbers.lock();
        let session = numbers.session?;
        let number = numbers.next;
        numbers.next += 1;
        numbers.waited_for.insert(number);
        let floor = *numbers.waited_for.first().expect("it has the number at least");
        let outcome = core.shared.wait_for(session, number);
        Some(Place { core, session, number, floor, outcome })
    }

    fn end_session(&self, session: u64) {
        let mut numbers = self.numbers.lock();
        if numbers.session == Some(session) {
            *numbers = Numbers::default();
        }
    }

    async fn place_in_session<'a>(&self, core: &'a Core, deadline: Instant) -> Result<Place<'a>, ProposeError> {
        loop {
            if let Some(place) = self.place(core) {
                return Ok(place);
            }
            let opening = timeout_at(deadline, self.opening.lock()).await;
            let _opening = opening.map_err(|_| ProposeError::Unavailable("no session could be opened".into()))?;
            if self.numbers.lock().session.is_some() {
                continue;
            }
            let opened = deliver(core, &Proposal::OpenSession, deadline).await;
            match opened.map_err(|undelivered| ProposeError::Unavailable(undelivered.why))? {
                Outcome::Opened(session) => {
                    let mut numbers = self.numbers.lock();
                    *numbers = Numbers { session: Some(session), next: 0, waited_for: BTreeSet::new() };
                }
                other => return Err(ProposeError::Unavailable(format!("opening a session gave {other:?}"))),
            }
        }
    }
}

/// See [`Consensus::propose`](rauk_manage::consensus::Consensus::propose).
pub async fn propose(core: &Core, command: GroupCommand, limit: Duration) -> Result<Answer, ProposeError> {
    let bytes = size_of_json(&command);
    if bytes > LONGEST_COMMAND {
        return Err(ProposeError::TooLarge { bytes, limit: LONGEST_COMMAND });
    }
    let deadline = Instant::now() + limit;
    let mut place = core.proposer.place_in_session(core, deadline).await?;
    let Place { session, number, floor, .. } = place;
    let proposal = Proposal::Command(Arc::new(Numbered { session, number, floor, command }));
    let applied = tokio::select! {
        biased;
        applied = &mut place.outcome => applied,
        delivered = deliver(core, &proposal, deadline) => match delivered {
            Ok(Outcome::Expired) => Ok(Outcome::Expired),
            Ok(_) => match timeout_at(deadline, &mut place.outcome).await {
                Ok(applied) => applied,
                Err(_) => return Err(ProposeError::Unknown("it was done, but has not come here in time".into())),
            },
            Err(Undelivered { why, handed_over: false }) => return Err(ProposeError::Unavailable(why)),
            Err(Undelivered { why, handed_over: true }) => return Err(ProposeError::Unknown(why)),
        },
    };
    match applied {
        Ok(Outcome::Applied(answer)) => Ok(answer),
        Ok(_) => {
            core.proposer.end_session(session);
            Err(ProposeError::Unknown("this process was silent for so long that its session was forgotten".into()))
        }
        Err(_) => Err(ProposeError::Unknown("the session was replaced meanwhile".into())),
    }
}

/// How long it is as JSON.
fn size_of_json(command: &GroupCommand) -> u64 {
    struct Count(u64);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, command).expect("a command can always be written as JSON");
    count.0
}

/// Why no attempt gave anything.
struct Undelivered {
    why: String,
    /// Somebody may have it who led, or may have led.
    handed_over: bool,
}

/// What one attempt gave.
enum Attempt {
    Done(Outcome),
    /// Somebody else leads; whoever was asked has not taken it.
    NotLeader(Option<u64>),
    Failed {
        why: String,
        /// It may have been taken.
        handed_over: bool,
    },
}

fn not_taken(why: impl Into<String>) -> Attempt {
    Attempt::Failed { why: why.into(), handed_over: false }
}

fn maybe_taken(why: impl Into<String>) -> Attempt {
    Attempt::Failed { why: why.into(), handed_over: true }
}

/// Brings a proposal into the log, whoever leads: what it gave there. Sends it again until the deadline.
async fn deliver(core: &Core, proposal: &Proposal, deadline: Instant) -> Result<Outcome, Undelivered> {
    let mut handed_over = false;
    let mut reason = "nobody is known to lead".to_string();
    let mut hint = None;
    // Who gave no answer last: others may still take it for the leader.
    let mut silent = None;
    for attempt in 0_u32.. {
        if let Some(why) = core.failure() {
            return Err(Undelivered { why, handed_over });
        }
        let now = Instant::now();
        if now >= deadline {
            break;
        }
        let longest = (ATTEMPT * 2_u32.pow((attempt / 3).min(3))).min(LONGEST_ATTEMPT);
        let limit = longest.min(deadline - now);
        let Some(target) = target(core, hint.take(), silent, attempt) else {
            core.leader_is_not(None, PAUSE.min(deadline - now)).await;
            continue;
        };
        // A new leader makes itself heard at once: then there is no point in waiting for the old one.
        let known = core.leader_id();
        let result = tokio::select! {
            result = attempt_at(core, target, proposal, limit) => result,
            () = core.leader_is_not(known, limit * 2) => {
                maybe_taken("another node leads now")
            }
        };
        match result {
            Attempt::Done(outcome) => return Ok(outcome),
            // Asked at once, where somebody is named.
            Attempt::NotLeader(Some(leader)) if leader != target && Some(leader) != silent && attempt % 4 != 3 => {
                hint = Some(leader);
                continue;
            }
            Attempt::NotLeader(_) => reason = format!("node {target} does not lead, and knows of nobody who does"),
            Attempt::Failed { why, handed_over: taken } => {
                reason = why;
                handed_over |= taken;
                silent = Some(target);
                if core.is_removed() {
                    break;
                }
            }
        }
        let known = core.leader_id();
        core.leader_is_not(known, PAUSE.min(deadline - now)).await;
    }
    Err(Undelivered { why: reason, handed_over })
}

async fn attempt_at(core: &Core, target: u64, proposal: &Proposal, limit: Duration) -> Attempt {
    if target == core.me() { here(core, proposal, limit).await } else { there(core, target, proposal, limit).await }
}

/// Whom to ask: who is named, or is known to lead. If that one has just not answered, every second time another one.
fn target(core: &Core, hint: Option<u64>, silent: Option<u64>, attempt: u32) -> Option<u64> {
    let leader = hint.or_else(|| core.leader_id());
    if leader.is_some() && (leader != silent || attempt.is_multiple_of(2)) {
        return leader;
    }
    let mut others: Vec<u64> = core.voters().into_iter().collect();
    if others.is_empty() {
        others = core.network.addresses.all().into_iter().map(|(node, _)| node).collect();
    }
    others.retain(|node| *node != core.me() && Some(*node) != leader);
    match others.len() {
        0 => leader,
        count => Some(others[(attempt as usize / 2) % count]),
    }
}

async fn here(core: &Core, proposal: &Proposal, limit: Duration) -> Attempt {
    let Some(raft) = core.raft() else { return not_taken("this process is in no cluster yet") };
    let term = || {
        let metrics = raft.metrics();
        let metrics = metrics.borrow();
        (metrics.state != ServerState::Leader).then_some(metrics.current_term)
    };
    let followed = term();
    match tokio::time::timeout(limit, raft.client_write(proposal.clone())).await {
        Ok(Ok(written)) => Attempt::Done(written.data),
        Ok(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(forward)))) => {
            // openraft says the same of an entry that it had taken, when another leader's entries took its place; others may have it still. Whoever did not lead in the only term of that time has taken nothing.
            match followed.is_some() && followed == term() {
                true => Attempt::NotLeader(forward.leader_id),
                false => maybe_taken("this node leads no more"),
            }
        }
        Ok(Err(error)) => maybe_taken(error.to_string()),
        Err(_) => maybe_taken("no majority of the manage nodes follows"),
    }
}

async fn there(core: &Core, target: u64, proposal: &Proposal, limit: Duration) -> Attempt {
    if core.network.addresses.of(target).is_none() {
        return not_taken(format!("nobody knows where node {target} is"));
    }
    match core.network.call(target, Body::Propose(proposal.clone()), limit).await {
        Ok(Reply::Proposed(outcome)) => Attempt::Done(outcome),
        Ok(Reply::NotLeader(leader)) => {
            if let Some((node, address)) = &leader
                && core.network.addresses.of(*node).is_none()
            {
                core.network.addresses.tell(*node, address);
            }
            Attempt::NotLeader(leader.map(|(node, _)| node))
        }
        Ok(_) => maybe_taken(format!("node {target} gave an answer to another question")),
        Err(why) => {
            if let CallError::Refused(Refusal::Removed(_)) = why {
                core.hear_removed();
            }
            let text = format!("node {target}: {why}");
            match why {
                CallError::Lost(_) | CallError::Late(_) | CallError::Refused(Refusal::Failed(_)) => maybe_taken(text),
                CallError::Refused(_) | CallError::OtherVersion(_) => not_taken(text),
            }
        }
    }
}

/// A proposal that came from another process: carried out if this one leads.
pub async fn carry_out(core: &Core, proposal: Proposal, limit: Duration) -> Reply {
    match here(core, &proposal, limit).await {
        Attempt::Done(outcome) => Reply::Proposed(outcome),
        Attempt::NotLeader(leader) => Reply::NotLeader(core.with_address(leader)),
        Attempt::Failed { why, .. } => Reply::Refused(Refusal::Failed(why)),
    }
}

//! Processes that stop in a group, since their rows contradict the stream (rule 80): what they have in memory counts for
//! nothing, and their log is as good as before.

use super::super::*;
use super::world::World;
use rand::Rng;

impl World {
    /// A process finds that it cannot go on.
    pub fn stop(&mut self, at: usize) {
        let Some(process) = self.nodes[at].process.as_mut() else { return };
        if !process.stopped {
            process.stopped = true;
            process.replica.stop();
            process.checkpoint = None;
            process.reads.clear();
            self.counts.stops += 1;
        }
    }

    pub fn is_stopped(&self, at: usize) -> bool {
        self.nodes[at].process.as_ref().is_some_and(|process| process.stopped)
    }

    /// Those that it has told do their part: its primary excludes a follower; of a primary a follower asks that it be
    /// removed. (That a message is of the same view is left out: what comes late is tried by the model `in_sync`.)
    pub fn help_stopped(&mut self, at: usize) {
        let Some(me) = self.nodes[at].process.as_ref().filter(|process| process.stopped).map(|process| process.me)
        else {
            return;
        };
        let Some(primary) = self.group.primary else { return };
        let leads = usize::from(primary.node.0) - 1;
        if primary != me {
            let copy = self.nodes[at].process.as_ref().map_or(0, |process| process.replica.newest_copy());
            self.act(leads, |replica, now, out| _ = replica.on_stopped(now, me, copy, out));
            return;
        }
        let goes_on = |world: &World, member: &Member| {
            *member != me && world.group.is_up(*member) && !world.is_stopped(usize::from(member.node.0) - 1)
        };
        if self.group.in_sync.iter().any(|member| goes_on(self, member)) {
            self.group_withdraw(me);
        }
    }

    /// Where nobody else can go on, the operator restarts it: its log is whole.
    pub fn restart_stopped(&mut self, at: usize) {
        if self.is_stopped(at) && self.rng.random_ratio(1, 20) {
            self.crash(at);
            self.start(at);
        }
    }
}

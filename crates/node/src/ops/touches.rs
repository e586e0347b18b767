//! Which partitions here a transaction has locks or writes in, in a cluster.
//!
//! Noted under the partition's guard, before the work: so whoever takes a note away and then undoes the work under the same guard has undone all of it.

use parking_lot::Mutex;
use rauk_types::View;
use smallvec::SmallVec;

#[derive(Debug, Default)]
pub struct Touches(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Nothing may be added any more.
    over: bool,
    list: SmallVec<[Touch; 2]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    pub partition: u16,
    pub view: View,
    /// Its fate there is the commit protocol's.
    pub prepared: bool,
}

impl Touches {
    /// Notes the partition; `false`: the transaction is over, or what it had there (`touched`: it has something there) is gone.
    pub fn enter(&self, partition: u16, view: View, touched: bool) -> bool {
        let mut state = self.0.lock();
        if state.over {
            return false;
        }
        match state.list.iter().find(|t| t.partition == partition) {
            Some(touch) => touch.view == view && !touch.prepared,
            None if touched => false,
            None => {
                state.list.push(Touch { partition, view, prepared: false });
                true
            }
        }
    }

    pub fn list(&self) -> SmallVec<[Touch; 2]> {
        self.0.lock().list.clone()
    }

    /// Whether the transaction has something there in this view that is not the commit protocol's.
    pub fn has(&self, partition: u16, view: View) -> bool {
        self.0.lock().list.iter().any(|t| t.partition == partition && t.view == view && !t.prepared)
    }

    /// The transaction ends: gives the partitions whose locks and writes are to go. Those that are prepared stay noted.
    pub fn end(&self) -> SmallVec<[u16; 4]> {
        let mut state = self.0.lock();
        state.over = true;
        let gone = state.list.iter().filter(|t| !t.prepared).map(|t| t.partition).collect();
        state.list.retain(|t| t.prepared);
        gone
    }

    /// The commit protocol has the transaction of this node from now on: gives it what is noted.
    pub fn hand_over(&self) -> SmallVec<[Touch; 2]> {
        let mut state = self.0.lock();
        state.over = true;
        std::mem::take(&mut state.list)
    }

    /// The partition is in another view now: `true` when the transaction had something there that is to go. What is prepared is no longer noted either: it is in the stream, or has gone with what was cut.
    pub fn lose(&self, partition: u16, view: View) -> bool {
        let mut state = self.0.lock();
        let is_old = |t: &Touch| t.partition == partition && t.view != view;
        let lost = state.list.iter().any(|t| is_old(t) && !t.prepared);
        state.list.retain(|t| !is_old(t));
        lost
    }

    /// `false`: in one of these partitions there is nothing in this view, and nothing has changed.
    pub fn prepare(&self, partitions: &[u16], view: View) -> bool {
        let mut state = self.0.lock();
        let is_noted = |partition: &u16| state.list.iter().any(|t| t.partition == *partition && t.view == view);
        if !partitions.iter().all(is_noted) {
            return false;
        }
        state.list.iter_mut().filter(|t| partitions.contains(&t.partition)).for_each(|t| t.prepared = true);
        true
    }

    /// Nothing of the transaction is left in these partitions. Gives whether nothing of it can come any more: it has
    /// been decided here, and is to be decided nowhere else; or nothing is noted.
    pub fn finish(&self, partitions: impl IntoIterator<Item = u16>) -> bool {
        let mut state = self.0.lock();
        let mut decided = false;
        for partition in partitions {
            decided |= state.list.iter().any(|t| t.partition == partition && t.prepared);
            state.list.retain(|t| t.partition != partition);
        }
        state.list.is_empty() || decided && !state.list.iter().any(|t| t.prepared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V: [View; 2] = [View(1), View(2)];

    #[test]
    fn what_a_view_took_is_not_entered_again() {
        let touches = Touches::default();
        assert!(touches.enter(3, V[0], false));
        assert!(touches.enter(3, V[0], true));
        assert!(!touches.lose(3, V[0]));
        assert!(touches.lose(3, V[1]));
        assert!(!touches.enter(3, V[1], true), "it believes to have locks there");
        assert!(touches.enter(3, V[1], false));
    }

    #[test]
    fn what_is_prepared_stays() {
        let touches = Touches::default();
        assert!(touches.enter(1, V[0], false) && touches.enter(2, V[0], false));
        assert!(!touches.prepare(&[1], V[1]));
        assert!(touches.prepare(&[1], V[0]));
        assert!(!touches.lose(1, V[1]));
        assert!(!touches.enter(1, V[0], true));
        assert!(!touches.finish([7]), "the new view has the stream, which knows of it");
        assert_eq!(touches.end().as_slice(), [2]);
        assert!(!touches.enter(4, V[0], false));
        assert!(touches.finish([1]));
        assert!(touches.list().is_empty());
    }

    /// Locks are verified and given back one partition after the other: that ends nothing in the next.
    #[test]
    fn what_is_decided_ends_the_rest_and_what_is_given_back_does_not() {
        let touches = Touches::default();
        assert!((1..5).all(|partition| touches.enter(partition, V[0], false)));
        assert!(touches.prepare(&[2], V[0]) && touches.prepare(&[3], V[0]));
        assert!(!touches.finish([1]));
        assert!(!touches.finish([2]), "it is to be decided in another");
        assert!(touches.finish([3]), "what is left is nobody's");
    }
}

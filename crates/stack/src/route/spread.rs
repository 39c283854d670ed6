//! Which link states this node still has to pass on, and for whom.
//!
//! A node passes a state on only while somebody is likely to lack it. For each neighbour it keeps
//! the probability of that: whoever hears the sender of a copy well probably has it now. So where
//! many nodes hear each other only a few transmit, and along a line everybody does. This is the
//! self-pruning of Peng and Lu (MobiHoc 2000) with measured deliveries in the place of a disc. What
//! is lost all the same is repaired by comparison ([`super::repair`]).

use super::hearer::Hearer;
use super::state::{Change, EVERYWHERE, Reach};
use ncmesh_engine::rng::unit;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Worth of a transmission from which a state is passed on, and from which one that is not urgent
/// is sent again. One neighbour that lacks it as likely as not is worth 0.25.
const WORTH: f64 = 0.25;
const WORTH_AGAIN: f64 = 0.5;
/// Longest wait before a copy is passed on; it is shorter, the more neighbours it serves.
pub(super) const WAIT: Duration = Duration::from_millis(100);
/// The same of a state that is not urgent: it can wait for the next hello.
const LAZY_WAIT: Duration = Duration::from_millis(1300);
/// Mean pause before the same urgent state is sent again. Each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(150);
/// Most transmissions of one version.
const MAX_SENDS: u8 = 5;
/// Items that are due so soon travel with one that is due, or with a hello.
const TOGETHER: Duration = Duration::from_millis(30);
const WITH_HELLO: Duration = Duration::from_millis(900);

/// A state that is passed on.
#[derive(Clone, Debug)]
struct Item {
    /// How far the receivers pass it on, and whether at once.
    reach: Reach,
    /// The change; `None` to tell the whole state.
    change: Option<Change>,
    due: Instant,
    sends: u8,
    /// Probability that each hearer lacks it and depends on us for it, by its index; 0 for those
    /// behind the end.
    lacking: Vec<f64>,
    /// Whether it is sent once however few probably lack it.
    owed: bool,
}

impl Item {
    /// Returns what a transmission is worth: how many hearers probably lack it and depend on us for
    /// it. The squares let those that probably have it count little. Repair finds the few of them
    /// that do not.
    fn worth(&self) -> f64 {
        self.lacking.iter().map(|lacking| lacking * lacking).sum()
    }
}

/// States to be passed on.
#[derive(Debug, Default)]
pub(super) struct Spread {
    hearers: Vec<Hearer>,
    /// For senders heard since the hearers were set: the share of its frames that each receives.
    coverage: BTreeMap<NodeId, Arc<[f64]>>,
    items: BTreeMap<NodeId, Item>,
    /// When each item is due: there are hundreds while a large mesh starts.
    schedule: BTreeSet<(Instant, NodeId)>,
}

impl Spread {
    /// Sets the neighbours that may hear this node.
    pub(super) fn set_hearers(&mut self, neighbours: Vec<Hearer>) {
        self.coverage.clear();

        // Items refer to hearers by index: without any, those that are gone can be removed.
        if self.items.is_empty() {
            self.hearers.clear();
        }

        // Indices stay valid: hearers that are gone remain, with no weight.
        for hearer in &mut self.hearers {
            (hearer.delivery, hearer.weight, hearer.relies) = (0.0, 0.0, false);
        }
        for hearer in neighbours {
            match self.index(hearer.node) {
                Some(index) => self.hearers[index] = hearer,
                None => self.hearers.push(hearer),
            }
        }
    }

    /// Returns whether `neighbours` are those that it knows to hear this node.
    pub(super) fn knows(&self, neighbours: &BTreeSet<NodeId>) -> bool {
        let present = self.hearers.iter().filter(|hearer| hearer.delivery > 0.0);
        present.clone().count() == neighbours.len()
            && present.clone().all(|hearer| neighbours.contains(&hearer.node))
    }

    /// Returns who has what `sender` sends: for each hearer the probability that it received it.
    /// `delivery` is asked once for each sender until the hearers are set again.
    pub(super) fn coverage(
        &mut self,
        sender: NodeId,
        delivery: impl Fn(NodeId, NodeId) -> f64,
    ) -> Arc<[f64]> {
        let received = |hearer: &Hearer| {
            if hearer.node == sender { 1.0 } else { delivery(sender, hearer.node) }
        };
        let coverage = || self.hearers.iter().map(received).collect();
        Arc::clone(self.coverage.entry(sender).or_insert_with(coverage))
    }

    /// Begins to tell a state of this node.
    pub(super) fn announce(
        &mut self,
        me: NodeId,
        reach: Reach,
        change: Option<Change>,
        now: Instant,
    ) {
        let lacking = self.hearers.iter().map(|hearer| hearer.weight).collect();
        // Its first transmission does not depend on known hearers: there may be others.
        let due = if reach.1 { now } else { now + LAZY_WAIT };
        self.put(me, Item { reach, change, due, sends: 0, lacking, owed: true });
    }

    /// Begins to pass on a state that was just learned from a sender with this `coverage`.
    pub(super) fn pass_on(
        &mut self,
        origin: NodeId,
        reach: Reach,
        change: Option<Change>,
        coverage: &[f64],
        now: Instant,
        rng: &mut ChaCha8Rng,
    ) {
        self.take(origin);
        // Each hearer lacks the state by as much as the frame it came in probably missed it. The
        // origin knows its own.
        let lacks = |(hearer, covered): (&Hearer, &f64)| hearer.weight * (1.0 - covered);
        let lacking: Vec<f64> = self.hearers.iter().zip(coverage).map(lacks).collect();
        let mut item = Item { reach, change, due: now, sends: 0, lacking, owed: false };
        if let Some(lacks) = self.index(origin).and_then(|index| item.lacking.get_mut(index)) {
            *lacks = 0.0;
        }

        // The node whose frame would help most hearers goes first, and the others, who overhear it,
        // then find that theirs would help none.
        let worth = item.worth();
        if worth >= WORTH {
            item.due = now
                + match reach {
                    (_, true) => WAIT.mul_f64(unit(rng) / (1.0 + worth)),
                    (_, false) => LAZY_WAIT.mul_f64(0.9 + 0.1 * unit(rng)),
                };
            self.put(origin, item);
        }
    }

    /// Returns whether this node passes a state on.
    pub(super) fn is_passing_on(&self, origin: NodeId) -> bool {
        self.items.contains_key(&origin)
    }

    /// Notes that a sender with this `coverage` was heard to send what we pass on, or something
    /// newer.
    pub(super) fn note_copy(&mut self, origin: NodeId, coverage: &[f64]) {
        let Some(item) = self.items.get_mut(&origin) else { return };
        for (lacking, covered) in item.lacking.iter_mut().zip(coverage) {
            *lacking *= 1.0 - covered;
        }
        if !item.owed && item.worth() < WORTH {
            self.take(origin);
        }
    }

    /// Notes that a neighbour knows every state that goes everywhere.
    pub(super) fn note_complete(&mut self, node: NodeId) {
        if self.items.is_empty() {
            return;
        }
        let Some(index) = self.index(node) else { return };
        let mut useless = Vec::new();

        // A state by which no hearer gains any more is dropped, unless a neighbour is owed it.
        for (origin, item) in &mut self.items {
            if item.reach.0 == EVERYWHERE && index < item.lacking.len() {
                item.lacking[index] = 0.0;
            }
            if !item.owed && item.worth() < WORTH {
                useless.push(*origin);
            }
        }

        useless.into_iter().for_each(|origin| drop(self.take(origin)));
    }

    /// Begins to tell a state again, whole, to a neighbour that lacks it, if it depends on us.
    pub(super) fn retell(&mut self, origin: NodeId, to: NodeId, due: Instant) {
        if self.hearer(to).is_some_and(Hearer::is_ours_to_repair) {
            let mut item = self.begin(origin, to, due);
            item.due = item.due.min(due);
            self.put(origin, item);
        }
    }

    /// Begins to tell a whole state to a neighbour that lacks it.
    pub(super) fn tell(&mut self, origin: NodeId, to: NodeId, due: Instant) {
        let item = self.begin(origin, to, due);
        self.put(origin, Item { owed: true, change: None, ..item });
    }

    /// Takes the item of a state, begun if need be, that `to` certainly lacks.
    fn begin(&mut self, origin: NodeId, to: NodeId, due: Instant) -> Item {
        let reach = (EVERYWHERE, true);
        let lacking = Vec::new();
        let new = Item { reach, change: None, due, sends: 0, lacking, owed: false };
        let mut item = self.take(origin).unwrap_or(new);
        item.lacking.resize(self.hearers.len(), 0.0);
        if let Some(index) = self.index(to) {
            item.lacking[index] = 1.0;
        }
        item
    }

    /// Stops passing on a state.
    pub(super) fn withdraw(&mut self, origin: NodeId) {
        self.take(origin);
    }

    /// Returns when the next state is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.schedule.first().map(|(due, _)| *due)
    }

    /// Returns the nodes whose states may share one frame at `now`: those that are due or nearly
    /// so, whole ones before changes, the longest due first.
    pub(super) fn together(&self, now: Instant, with_hello: bool) -> Vec<NodeId> {
        let soon = now + if with_hello { WITH_HELLO } else { TOGETHER };
        let near = self.schedule.iter().take_while(|(due, _)| *due <= soon).map(|(_, node)| *node);
        let mut near: Vec<NodeId> = near.collect();
        near.sort_by_key(|origin| self.items[origin].change.is_some());
        near
    }

    /// Returns how far a state goes and what changed; `None` if it is not passed on.
    pub(super) fn told(&self, origin: NodeId) -> Option<(Reach, Option<&Change>)> {
        self.items.get(&origin).map(|item| (item.reach, item.change.as_ref()))
    }

    /// Notes that a state was sent. It is sent again while enough neighbours probably lack it.
    pub(super) fn note_sent(&mut self, origin: NodeId, now: Instant, rng: &mut ChaCha8Rng) {
        // Nobody acknowledges a state. Each sending leaves each hearer a smaller chance that it
        // still lacks it.
        let Some(mut item) = self.take(origin) else { return };
        for (lacking, hearer) in item.lacking.iter_mut().zip(&self.hearers) {
            *lacking *= 1.0 - hearer.delivery;
        }

        let (pause, worth) = match item.reach {
            (_, true) => (PAUSE.mul_f64(f64::from(1u8 << item.sends) * (0.5 + unit(rng))), WORTH),
            (_, false) => (LAZY_WAIT.mul_f64(0.9 + 0.1 * unit(rng)), WORTH_AGAIN),
        };

        item.due = now + pause;
        item.sends += 1;
        item.owed = false;
        if item.sends < MAX_SENDS && item.worth() >= worth {
            self.put(origin, item);
        }
    }

    fn put(&mut self, origin: NodeId, item: Item) {
        self.take(origin);
        self.schedule.insert((item.due, origin));
        self.items.insert(origin, item);
    }

    fn take(&mut self, origin: NodeId) -> Option<Item> {
        let item = self.items.remove(&origin)?;
        self.schedule.remove(&(item.due, origin));
        Some(item)
    }

    /// Returns how a neighbour hears us.
    pub(super) fn hearer(&self, node: NodeId) -> Option<&Hearer> {
        self.hearers.iter().find(|hearer| hearer.node == node)
    }

    fn index(&self, node: NodeId) -> Option<usize> {
        self.hearers.iter().position(|hearer| hearer.node == node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::rng::stream;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn hearer(node: u16, delivery: f64) -> Hearer {
        Hearer {
            node: NodeId(node),
            delivery,
            weight: 1.0,
            quality: delivery * delivery,
            relies: true,
        }
    }

    fn spread(hearers: &[(u16, f64)]) -> Spread {
        let mut spread = Spread::default();
        spread.set_hearers(hearers.iter().map(|(node, d)| hearer(*node, *d)).collect());
        spread
    }

    #[test]
    fn along_a_line_everybody_passes_on_and_in_a_crowd_hardly_anybody() {
        let mut rng = stream(1, NodeId(1), "test", "spread");
        // Node 2 sent it; node 3 does not hear node 2.
        let mut line = spread(&[(2, 0.9), (3, 0.9)]);
        let coverage = line.coverage(NodeId(2), |_, _| 0.0);
        line.pass_on(NodeId(9), (EVERYWHERE, true), None, &coverage, at(0), &mut rng);
        assert!(line.due().is_some());

        let mut crowd = spread(&[(2, 0.9), (3, 0.9), (4, 0.9)]);
        let coverage = crowd.coverage(NodeId(2), |_, _| 0.9);
        crowd.pass_on(NodeId(9), (EVERYWHERE, true), None, &coverage, at(0), &mut rng);
        assert_eq!(crowd.due(), None);
    }

    #[test]
    fn copies_that_others_send_make_ours_unnecessary() {
        let mut rng = stream(1, NodeId(1), "test", "spread");
        let mut s = spread(&[(2, 0.9), (3, 0.9), (4, 0.9)]);
        s.pass_on(NodeId(9), (EVERYWHERE, true), None, &[1.0, 0.0, 0.0], at(0), &mut rng);
        s.note_copy(NodeId(9), &[0.0, 1.0, 0.2]);
        assert!(s.due().is_some());
        s.note_copy(NodeId(9), &[0.0, 0.0, 0.6]);
        assert_eq!(s.due(), None);
        // A neighbour that knows everything lacks nothing, and what is asked for is sent once.
        s.pass_on(NodeId(9), (EVERYWHERE, true), None, &[1.0, 1.0, 0.0], at(0), &mut rng);
        s.note_complete(NodeId(4));
        assert_eq!(s.due(), None);
        s.tell(NodeId(9), NodeId(5), at(0));
        s.note_complete(NodeId(4));
        assert_eq!(s.together(at(50), false), [NodeId(9)]);
        assert_eq!(s.told(NodeId(9)), Some(((EVERYWHERE, true), None)));
        s.note_sent(NodeId(9), at(50), &mut rng);
        assert_eq!(s.due(), None);
    }

    #[test]
    fn a_state_is_sent_again_while_neighbours_lack_it_but_a_bounded_number_of_times() {
        let mut rng = stream(1, NodeId(1), "test", "spread");
        let mut s = spread(&[(2, 0.2), (3, 0.2), (4, 0.2)]);
        s.announce(NodeId(1), (EVERYWHERE, true), None, at(0));
        let mut sends = 0;
        let mut now = at(0);
        while let Some(due) = s.due() {
            assert!(due >= now);
            now = due;
            s.note_sent(NodeId(1), now, &mut rng);
            sends += 1;
        }
        assert_eq!(sends, MAX_SENDS);
        let mut alone = spread(&[]);
        alone.announce(NodeId(1), (EVERYWHERE, true), None, at(0));
        assert!(alone.due().is_some());
        // One that nobody receives any more is not passed on for it.
        s.set_hearers(vec![hearer(3, 0.3)]);
        assert_eq!(*s.coverage(NodeId(3), |_, _| 0.5), [1.0]);
    }
}

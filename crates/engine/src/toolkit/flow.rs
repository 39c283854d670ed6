//! Identity of a tunnel's flow: its ends, and which start of its source it belongs to; and how a
//! node finds out that what it believes of a flow is wrong.

use super::sequence::Serial;
use crate::context::Context;
use crate::time::{Duration, Instant};
use ncmesh_wire::record::field;
use ncmesh_wire::{NodeId, record};

record! {
    /// One start of a flow between two nodes. A source that restarts begins a new instance, so that
    /// receivers do not mix up its generations with those from before.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct FlowInstance {
        /// node where the flow begins
        pub source: NodeId = field("packet.source", "Source"),
        /// node where it ends
        pub destination: NodeId = field("packet.destination", "Destination"),
        /// serial number (RFC 1982) of the start; a later one of the source, or of the flow, is
        /// greater
        pub incarnation: u32 = field("instance", "Incarnation of the flow").hex(),
        check differ(source, destination),
    }
}

impl FlowInstance {
    /// Returns the `begun`-th instance that this node begins in its present epoch. An epoch grows
    /// from start to start by 2^16 or more; its lower 16 bits are random.
    #[must_use]
    pub fn new(cx: &Context<'_>, destination: NodeId, begun: u32) -> Self {
        let incarnation = ((cx.epoch >> 16) as u32).wrapping_add(begun);
        Self { source: cx.me, destination, incarnation }
    }

    /// Returns the ends of the flow, which all its instances share.
    #[must_use]
    pub fn key(self) -> (NodeId, NodeId) {
        (self.source, self.destination)
    }

    /// Returns whether this instance is later than `known`, of the same flow.
    #[must_use]
    pub fn is_later(self, known: Self) -> bool {
        self.incarnation.is_newer_than(known.incarnation)
    }
}

/// Time for which all that is heard of a flow must contradict a node's state of it. Longer than any
/// engine sends a packet again.
const CONFLICT_TIME: Duration = Duration::from_secs(3);
/// Frames that must contradict it in that time.
const CONFLICT_FRAMES: u32 = 8;

/// Notices that a node's state of a flow contradicts all that it hears.
///
/// A member that lies can make a node believe in an instance that its source never began, or in
/// packets that were never sent. Then every genuine frame looks old, and the flow would stand still
/// for good. A few old frames are normal, as late copies; many of them for long, without a single
/// one that fits, show that the state is wrong, and the node begins it anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contradiction {
    since: Option<Instant>,
    frames: u32,
}

impl Contradiction {
    /// Notes a frame for this node, of the instance `heard`, where it believes in `known`. The
    /// frame fits if its instance is later, or the same and its packets are recent. Returns whether
    /// the state must be wrong.
    pub fn note(
        &mut self,
        known: FlowInstance,
        heard: FlowInstance,
        is_recent: bool,
        now: Instant,
    ) -> bool {
        // One frame that agrees is enough: the state may be right.
        if heard.is_later(known) || (heard == known && is_recent) {
            *self = Self::default();
            return false;
        }
        self.frames += 1;
        let since = *self.since.get_or_insert(now);
        self.frames >= CONFLICT_FRAMES && now.since(since) >= CONFLICT_TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn instance(incarnation: u32) -> FlowInstance {
        FlowInstance { source: NodeId(1), destination: NodeId(2), incarnation }
    }

    impl Contradiction {
        /// Notes a frame of the instance that is known.
        fn note_same(&mut self, is_recent: bool, now: Instant) -> bool {
            self.note(instance(5), instance(5), is_recent, now)
        }
    }

    #[test]
    fn an_earlier_instance_contradicts_and_a_later_one_fits() {
        let mut contradiction = Contradiction::default();
        let mut note = |heard, ms| contradiction.note(instance(5), instance(heard), true, at(ms));
        assert!((0..7).all(|i| !note(4, 1000 * i)));
        assert!(note(4, 7000));
        assert!(!note(6, 7000) && !note(4, 7000), "it begins to count anew");
    }

    #[test]
    fn only_many_frames_for_long_without_one_that_fits_are_believed() {
        let mut few = Contradiction::default();
        assert!((0..7).all(|i| !few.note_same(false, at(1000 * i))));
        assert!(few.note_same(false, at(7000)));

        let mut brief = Contradiction::default();
        assert!((0..2999).all(|ms| !brief.note_same(false, at(ms))));
        assert!(!brief.note_same(true, at(2999)), "one that fits");
        assert!((3000..6000).all(|ms| !brief.note_same(false, at(ms))));
        assert!(brief.note_same(false, at(6000)));
    }
}

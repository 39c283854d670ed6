//! Choice of the neighbour from which a node gets a stream.
//!
//! It is the one before this node on the shortest path from the source, by the ETX of both
//! directions: packets come down a link, and reports go up. A parent that is not heard any more is
//! avoided for a while, together with all ways that lead over it, so that a stream heals before
//! link state notices.

use ncmesh_engine::Context;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::average::FadingShare;
use ncmesh_engine::toolkit::hop::{self, Avoided, ChoicePolicy, Handled, Ways};
use ncmesh_engine::topology::{Metric, Paths};
use ncmesh_wire::NodeId;

/// Paths count both directions.
const METRIC: Metric = Metric::Unicast;
/// Time without a frame of the parent after which it is avoided: five reports, which come without
/// a packet, too.
pub(crate) const GONE_AFTER: Duration = Duration::from_millis(1000);
/// Time for which a parent is avoided. A stream cannot wait as a file can until it is tried again.
const AVOIDED_FOR: Duration = Duration::from_secs(8);
/// Factor on the length of ways over a node that is avoided: the only way is still one.
const AVOIDED: f64 = 8.0;
/// When another parent takes the place of the present one.
const CHOICE: ChoicePolicy = ChoicePolicy { better: 1.3, lasting: Duration::from_secs(3) };
/// Time for which a link that the parent proved counts as what it was.
const PROVEN: Duration = Duration::from_secs(3);
/// Frames of the parent after which a count of those heard has faded to half, and from which on it
/// counts.
const HALF_LIFE: f64 = 64.0;
const EVIDENCE: f64 = 16.0;
/// Numbers between two frames of the parent from which on it has started again.
const MAX_GAP: u16 = 256;
/// Hops of a way that are looked at.
const MAX_HOPS: usize = 64;

/// The neighbour that a stream comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parent {
    pub node: NodeId,
    /// When it was heard last, or chosen.
    pub heard_at: Instant,
    /// Its last frame that was handled.
    handled: Option<HandledFrame>,
    /// Share of its frames that were heard, by their numbers.
    heard: Option<FadingShare>,
    /// Share of this node's frames that it heard when it was chosen, and when it last sent
    /// something new: then it still hears them.
    back: f64,
    served_at: Instant,
}

/// A frame of the parent that was handled.
#[derive(Clone, Copy, Debug)]
struct HandledFrame {
    number: u16,
    at: Instant,
}

/// A way to this node over one of its neighbours.
#[derive(Clone, Copy, Debug)]
struct Way {
    node: NodeId,
    /// Its length; longer than it is if it leads over a node that is avoided.
    etx: f64,
}

/// Chooses the parent of one stream.
#[derive(Debug)]
pub(crate) struct Choice {
    pub parent: Option<Parent>,
    avoided: Avoided,
    choice: hop::Choice,
}

impl Default for Choice {
    fn default() -> Self {
        let avoided = Avoided::lasting(AVOIDED_FOR);
        Self { parent: None, avoided, choice: hop::Choice::default() }
    }
}

impl Choice {
    /// Returns the parent's node.
    pub(crate) fn node(&self) -> Option<NodeId> {
        self.parent.map(|parent| parent.node)
    }

    /// Notes a frame of a node with this number.
    pub(crate) fn hear(&mut self, node: NodeId, number: u16, now: Instant) {
        self.avoided.forgive(node);
        if let Some(parent) = self.parent.as_mut().filter(|parent| parent.node == node) {
            let before = parent.handled.map_or(number.wrapping_sub(1), |handled| handled.number);
            let sent = number.wrapping_sub(before);
            if (1..=MAX_GAP).contains(&sent) {
                let new = || FadingShare::starting_at(1.0, 0.0, HALF_LIFE);
                parent.heard.get_or_insert_with(new).add(f64::from(sent), 1.0);
            }

            parent.heard_at = now;
            parent.handled = Some(HandledFrame { number, at: now });
        }
    }

    /// Notes that a node sent something new.
    pub(crate) fn note_served(&mut self, node: NodeId, now: Instant) {
        if let Some(parent) = self.parent.as_mut().filter(|parent| parent.node == node) {
            parent.served_at = now;
        }
    }

    /// Returns the last frame of the parent that was handled.
    pub(crate) fn handled(&self, now: Instant) -> Handled {
        let last = self.parent.and_then(|parent| parent.handled);
        let lately = |last: HandledFrame| Handled { number: last.number, ago: now.since(last.at) };
        last.map_or_else(Handled::default, lately)
    }

    /// Chooses the parent again for a stream from `source`. `is_child` tells which nodes get the
    /// stream from here. Returns whether it is another one.
    pub(crate) fn choose(
        &mut self,
        cx: &Context<'_>,
        source: NodeId,
        is_child: impl Fn(NodeId) -> bool,
    ) -> bool {
        // A parent that fell silent is avoided for a while.
        let silent = self.parent.filter(|parent| cx.now.since(parent.heard_at) >= GONE_AFTER);
        if let Some(parent) = silent {
            self.avoided.avoid(parent.node, cx.now);
        }

        // The length of the way over each neighbour that hears this node.
        let paths = cx.topology.paths_from(source, METRIC);
        let hears = cx.topology.state(cx.me).into_iter().flat_map(|state| state.hears.iter());
        let ways = hears.filter(|(node, _)| !is_child(**node)).filter_map(|(node, there)| {
            // Frames of the parent that were heard may show that its link is better than link state
            // says.
            let there = there.max(self.counted(*node));
            let back = cx.topology.delivery(cx.me, *node).max(self.proven_back(*node, cx.now));
            let success = METRIC.success(there, back);
            let link = cx.topology.airtime(*node, cx.me) / success;
            let etx = paths.etx(*node).filter(|_| success > 0.0)? + link;
            let is_free = !self.leads_over_avoided(&paths, *node, cx.now);

            // A way through this node, or through its children, would be a circle.
            let is_loop = leads_over(&paths, *node, |at| at == cx.me);
            (!is_loop)
                .then_some(Way { node: *node, etx: if is_free { etx } else { AVOIDED * etx } })
        });

        let ways: Vec<Way> = ways.collect();
        let best = ways.iter().min_by(|a, b| a.etx.total_cmp(&b.etx));
        let Some(best) = best else {
            return self.parent.take().is_some();
        };

        // The present one stays unless another is clearly better for some time, or it is silent.
        if let Some(parent) = self.parent {
            let present = ways.iter().find(|way| way.node == parent.node);
            let present = present.map_or(f64::INFINITY, |way| way.etx);
            let lengths = Ways { present, best: best.etx };
            if !self.choice.leaves(lengths, silent.is_some(), &CHOICE, cx.now) {
                return false;
            }
        }

        self.choice.reset();
        self.parent = Some(Parent {
            node: best.node,
            heard_at: cx.now,
            handled: None,
            heard: None,
            back: cx.topology.delivery(cx.me, best.node),
            served_at: cx.now,
        });

        true
    }

    /// Returns the share of the parent's frames that arrive, if enough were counted.
    pub(crate) fn heard(&self) -> Option<f64> {
        let heard = self.parent.and_then(|parent| parent.heard);
        heard.filter(|heard| heard.trials() >= EVIDENCE).map(|heard| heard.value())
    }

    /// Returns the share of a node's frames that arrive, if it is the parent and enough were
    /// counted. Link state's frames are lost where a node is busy, and a way around it would be no
    /// better.
    fn counted(&self, node: NodeId) -> f64 {
        self.heard().filter(|_| self.node() == Some(node)).unwrap_or(0.0)
    }

    /// Returns the share of this node's frames that the parent hears at least, while it sends what
    /// this node lacks.
    fn proven_back(&self, node: NodeId, now: Instant) -> f64 {
        let parent = self.parent.filter(|parent| parent.node == node);
        let parent = parent.filter(|parent| now.since(parent.served_at) < PROVEN);
        parent.map_or(0.0, |parent| parent.back)
    }

    fn leads_over_avoided(&self, paths: &Paths, node: NodeId, now: Instant) -> bool {
        let is_avoided = |at| self.avoided.contains(at, now);
        self.avoided.has_any(now) && leads_over(paths, node, is_avoided)
    }
}

/// Returns whether the path to `node`, itself included, leads over one of these nodes.
fn leads_over(paths: &Paths, node: NodeId, is_one: impl Fn(NodeId) -> bool) -> bool {
    let way = std::iter::successors(Some(node), |at| paths.parent(*at));
    way.take(MAX_HOPS).any(is_one)
}

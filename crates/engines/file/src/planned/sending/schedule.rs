//! Which generation the source sends from, for whom, and by which plan (Pacifier, III-C).
//!
//! Generations take turns in a circle. A turn is for the receivers that lack the generation and can
//! be reached; it ends by the scheme's rule ([`Switching`]) or when none of them is left. While it
//! lasts, it is planned anew whenever one of them finishes or the mesh changes.

use super::Turns;
use super::turn::Assignment;
use crate::planned::routing::{MAX_LISTED, Routing};
use crate::planned::scheme::{Plan, Scheme, Switching};
use ncmesh_engine::Context;
use ncmesh_engine::file::ReceiverState;
use ncmesh_transfer::FileSource;
use ncmesh_wire::NodeId;
use std::collections::BTreeSet;

impl Turns {
    /// Returns the generation of the turn under way, or else the next one in the circle that
    /// somebody lacks.
    pub(super) fn next_generation(&self, source: &FileSource) -> Option<u32> {
        if !source.is_open() {
            return None;
        }
        if let Some(turn) = &self.turn {
            return Some(turn.assignment.generation);
        }

        // The circle leads from the lowest generation missing anywhere to the end of the window. It
        // begins after the generation sent from last.
        let served = || source.receivers.values().filter(|r| r.is_served());
        let lowest = served().map(|r| r.have.first_missing()).min()?;
        let end = source.manifest.geometry.generations().min(lowest.saturating_add(self.window));
        let after_last = self.last_generation.map_or(0, |generation| generation + 1);
        let mut circle = (after_last..end).chain(lowest..after_last.min(end));
        circle.find(|generation| served().any(|r| !r.have.contains(*generation)))
    }

    /// Returns the next generation with the receivers that its turn is for and a plan for them.
    ///
    /// Receivers without a plan are lost: no path leads to them over links that the scheme uses, or
    /// so long a path that its forwarders do not fit into a frame.
    pub(super) fn next_assignment(
        &self,
        cx: &Context<'_>,
        source: &mut FileSource,
        scheme: &dyn Scheme,
    ) -> Option<Assignment> {
        loop {
            let generation = self.next_generation(source)?;
            let mut receivers: BTreeSet<NodeId> = receivers_of(source, generation).collect();

            if scheme.switching() == Switching::OneByOne {
                let nearest = receivers.iter().min_by_key(|node| (source.distance(**node), **node));
                receivers = nearest.copied().into_iter().collect();
            }

            if let Some(plan) = fitting_plan(&receivers, cx, source, scheme) {
                return Some(Assignment { generation, receivers, plan });
            }

            // Without these receivers another generation may be next. Each round loses at least
            // one, so the search ends.
            for node in &receivers {
                if let Some(receiver) = source.receivers.get_mut(node) {
                    receiver.is_reachable = false;
                    receiver.state = ReceiverState::Lost;
                }
            }
        }
    }

    /// Checks the turn under way after receivers or the mesh (`mesh_changed`) have changed. Ends it
    /// if nobody needs it any more or its rule says so; replans it if fewer receivers need it or
    /// the mesh has changed.
    pub(in crate::planned) fn review(
        &mut self,
        cx: &Context<'_>,
        source: &FileSource,
        mesh_changed: bool,
        scheme: &dyn Scheme,
    ) {
        let Some(mut turn) = self.turn.take() else { return };
        let Assignment { generation, receivers, .. } = &turn.assignment;
        let left: BTreeSet<NodeId> =
            receivers_of(source, *generation).filter(|node| receivers.contains(node)).collect();
        if left.len() == receivers.len() && !mesh_changed {
            self.turn = Some(turn);
            return;
        }

        // Receivers leave the turn by acknowledging the generation, or by becoming lost or
        // unreachable. Only an acknowledgment ends a round-robin turn.
        let has_generation = |node: &NodeId| {
            source.receivers.get(node).is_some_and(|r| r.have.contains(*generation))
        };
        let is_acknowledged = receivers.iter().any(has_generation);
        let is_over = is_acknowledged && scheme.switching() == Switching::RoundRobin;
        if left.is_empty() || is_over {
            return;
        }

        if let Some(plan) = fitting_plan(&left, cx, source, scheme) {
            turn.replan(left, plan, self.me, cx.now);
            self.turn = Some(turn);
        }
    }
}

/// Returns a plan whose list of nodes fits into a frame. If that for all `receivers` does not,
/// the farthest are left out and wait for another turn. `None` if none fits even for the
/// nearest alone, or no path leads to it.
fn fitting_plan(
    receivers: &BTreeSet<NodeId>,
    cx: &Context<'_>,
    source: &FileSource,
    scheme: &dyn Scheme,
) -> Option<Plan> {
    let g = &source.manifest.geometry;
    let packets = usize::from(g.generation());
    let symbol = usize::from(g.symbol_size());
    let mut receivers: Vec<NodeId> = receivers.iter().copied().collect();
    receivers.sort_by_key(|node| source.distance(*node));

    let plan_for = |count: usize| {
        let plan = scheme.plan(cx.topology, cx.me, &receivers[..count]);
        let listed = plan.routing.listed();
        let overhead = scheme.forwarding().overhead(listed, packets);
        let leads_nowhere = matches!(&plan.routing, Routing::Tree(hops) if hops.is_empty());
        let fits = listed <= MAX_LISTED && overhead + symbol <= cx.mtu && !leads_nowhere;
        fits.then_some(plan)
    };

    // Fewer receivers mean fewer forwarders to list, and the farthest need the most, so the
    // largest number that fits can be searched for. Most often all of them do.
    let mut best = None;
    let mut fitting = 0;
    let mut too_many = receivers.len() + 1;
    let mut count = receivers.len();
    while too_many - fitting > 1 {
        match plan_for(count) {
            None => too_many = count,
            plan => (best, fitting) = (plan, count),
        }

        count = fitting.midpoint(too_many);
    }

    best
}

/// Returns the receivers that lack `generation` and can be reached.
fn receivers_of(source: &FileSource, generation: u32) -> impl Iterator<Item = NodeId> + '_ {
    source.receivers.iter().filter(move |(_, r)| r.wants(generation)).map(|(node, _)| *node)
}

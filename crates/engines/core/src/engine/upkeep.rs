//! Work that falls due with time, or follows from a change.

use super::Core;
use crate::flow::Flow;
use crate::frame::GenerationId;
use crate::generation::{Generation, Stage};
use crate::regions::{CodingRegions, RelayedFlow};
use ncmesh_engine::Context;
use ncmesh_engine::time::Instant;
use ncmesh_engine::topology::Metric;

impl Core {
    /// Brings the state up to date. Called after every frame, packet, command and timeout.
    pub(super) fn update(&mut self, cx: &mut Context<'_>) {
        if self.topology_version != cx.topology.version() {
            self.topology_version = cx.topology.version();
            self.reroute(cx);
        }

        self.serve_sources(cx);
        self.release_decoded(cx);
        self.flows.expire(cx.now);

        // Regions depend on flows, paths, measured links and parameters. They are computed once
        // after a change, before pairs that are no longer in a region are separated.
        if core::mem::take(&mut self.regions_outdated) {
            self.meter.expire(cx.now);
            let relayed: Vec<_> = self.flows.iter().filter_map(relayed).collect();
            self.regions = CodingRegions::new(&relayed, &self.parameters, &self.meter, cx);
        }

        self.unpair_finished();
    }

    /// Takes next hops from a topology that has changed.
    fn reroute(&mut self, cx: &Context<'_>) {
        self.regions_outdated = true;
        for flow in self.flows.iter_mut().filter(|flow| !flow.is_destination()) {
            let destination = flow.instance.destination;
            flow.next_hop = cx.topology.next_hop(cx.me, destination, Metric::Broadcast);
        }
    }

    /// For flows that begin here: forgets generations that are decoded, gives up those that
    /// timed out, and fills new ones with queued packets.
    fn serve_sources(&mut self, cx: &mut Context<'_>) {
        for flow in self.flows.iter_mut().filter(|flow| flow.is_source()) {
            // Finished generations and those given up make room in the window.
            flow.generations.retain(|_, generation| generation.is_open());
            let (source, destination) = flow.instance.key();
            for _ in 0..flow.give_up(&self.parameters, cx.now) {
                self.flow_counters.lost(source, destination);
            }

            // The success ratio is that of the first hop: every relay makes up for its own link.
            let success = flow
                .next_hop
                .map_or(1.0, |next_hop| self.meter.success(cx.topology, cx.me, cx.me, next_hop));
            let packets = usize::from(self.parameters.generation_size);
            let credit = self.parameters.redundancy.credit(packets, success);
            flow.fill_generations(&self.parameters, credit, cx.now);
        }
    }

    // ---- synchronised generations (section 6.1)

    /// Tells previous hops which generations are decoded, once the generations that they were
    /// combined with have come as far. So both sources go on to the next generation together, and
    /// receivers have to keep fewer generations to take combined packets apart.
    fn release_decoded(&mut self, cx: &mut Context<'_>) {
        let is_due =
            |generation: &&Generation| self.release_at(generation).is_some_and(|at| at <= cx.now);
        let flows = self.flows.iter().filter(|flow| !flow.is_source());
        let due = flows.flat_map(|flow| flow.generations.values()).filter(is_due);
        let due: Vec<GenerationId> = due.map(|generation| generation.header.id).collect();
        for id in due {
            if let Some(flow) = self.flows.get_mut(&id.flow) {
                flow.release(id.number);
            }
            self.queue_feedback(id, false, cx);
        }
    }

    /// Returns when the previous hop is to be told that a generation is decoded; `None` if it is
    /// not, or if that is done.
    fn release_at(&self, generation: &Generation) -> Option<Instant> {
        let Stage::Decoded { at: decoded_at } = generation.stage else { return None };
        let awaited = self.awaited(generation).filter(|_| self.parameters.synchronise);
        let Some(other) = awaited else { return Some(decoded_at) };

        // Waiting pays for half the time of a generation at most, and not for a silent flow: nobody
        // is to stop for a destination that has vanished, or for a slow flow.
        let half = decoded_at.since(generation.begun_at) / 2;
        let last_answer = other.sending.polling.last_answer().unwrap_or(other.begun_at);
        let last_event = other.innovative_at.max(last_answer);
        Some((decoded_at + half).min(last_event + self.parameters.poll_timeout))
    }

    /// Returns the generation that this one is combined with and should wait for: one that is more
    /// than half through.
    fn awaited(&self, generation: &Generation) -> Option<&Generation> {
        let partner = generation.sending.credits.partner()?;
        let other = self.flows.generation(&partner).filter(|other| other.is_open())?;
        (2 * other.rank() > usize::from(other.header.count)).then_some(other)
    }

    /// Ends the combination with generations that are decoded, given up or not answered for. What
    /// was combined with them goes alone, without the surcharge.
    fn unpair_finished(&mut self) {
        let is_over = |generation: &&Generation| {
            let Some(partner) = generation.sending.credits.partner() else { return false };

            // The other flow still sends, and its next hop still answers.
            let goes_on = self
                .flows
                .generation(&partner)
                .is_some_and(|other| other.is_open() && !other.sending.polling.is_silent());
            let key = generation.header.id.flow.key();
            let other_key = partner.flow.key();
            let is_combined = goes_on && self.regions.unknown(&key, &other_key).is_some();
            generation.is_open() && !is_combined
        };

        let over: Vec<GenerationId> =
            self.flows.generations().filter(is_over).map(|g| g.header.id).collect();
        for id in over {
            if let Some(generation) = self.flows.generation_mut(&id) {
                generation.sending.credits.unpair();
            }
        }
    }

    // ---- time

    /// Returns the first time later than `after` at which something falls due.
    pub(super) fn next_timeout(&self, after: Instant) -> Option<Instant> {
        let flows = self.flows.iter().flat_map(|flow| self.timeouts(flow, after));
        flows.chain(self.passing.poll_timeout(after)).filter(|at| *at > after).min()
    }

    fn timeouts<'a>(
        &'a self,
        flow: &'a Flow,
        after: Instant,
    ) -> impl Iterator<Item = Instant> + 'a {
        // A generation need not wait for another flow to be sent any longer, is polled about, or
        // the previous hop is told that it is decoded.
        let of_generation = move |generation: &'a Generation| {
            let since = generation.sending.credits.since();
            let hold_ends = generation.has_credit().then(|| since + self.parameters.hold_time);
            let poll = flow.poll_due_at(generation, &self.parameters);
            [hold_ends, poll, self.release_at(generation)]
        };

        let generations = flow.generations.values().flat_map(of_generation).flatten();

        // From then on no packet of this flow is expected, so others are not held for it.
        let expected_until = flow.last_heard + self.parameters.hold_time * 2;
        let source = flow.source_timeout(&self.parameters, after);
        generations.chain(source).chain([expected_until])
    }
}

/// Returns a flow with its hops if it comes through this node and a path is known.
fn relayed(flow: &Flow) -> Option<RelayedFlow> {
    let previous_hop = flow.previous_hop?;
    let next_hop = flow.next_hop?;
    Some(RelayedFlow { key: flow.instance.key(), previous_hop, next_hop })
}

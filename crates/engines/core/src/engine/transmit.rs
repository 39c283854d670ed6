//! Choice of the next frame: feedback, polls, data alone or combined (CORE, sections 4 and 6.3).
//!
//! Feedback goes first, because a neighbour waits for it; then polls; then data. A packet is
//! combined at the moment when the channel is granted, from all that was heard until then.

use super::{Core, FEEDBACK_METRIC};
use crate::flow::Flow;
use crate::frame::{
    COUNT, CountFrame, DataFrame, FEEDBACK, FeedbackFrame, GenerationId, Part, RELAYED,
    RelayedFeedback, without_trailing_zeros,
};
use crate::generation::Generation;
use ncmesh_engine::counters::Payload;
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::hop::passing::way;
use ncmesh_engine::tunnel::DATA;
use ncmesh_engine::{Context, Filled};
use ncmesh_wire::NodeId;

/// Difference between sums of credits that is taken for rounding.
const ROUNDING: f64 = 1e-9;

/// The frame that would be sent now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Choice {
    generation: GenerationId,
    /// Generation of another flow that it is combined with.
    partner: Option<GenerationId>,
}

/// A generation of another flow that could be combined with the one to be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Candidate {
    generation: GenerationId,
    has_credit: bool,
    /// Transmissions that are saved if the two go combined.
    saving: f64,
}

impl Core {
    // ---- choosing data

    /// Returns what would be sent now: of the flows with credit, the one that sent longest ago,
    /// unless it waits for another flow.
    pub(super) fn choose(&self, now: Instant) -> Option<Choice> {
        // Flows take turns; ties go by id, so that runs can be repeated.
        let mut sendable: Vec<_> =
            self.flows.iter().filter_map(|flow| Some((flow.last_sent, flow.sendable()?))).collect();
        sendable.sort_by_key(|(last_sent, generation)| (*last_sent, generation.header.id));
        sendable.into_iter().find_map(|(_, generation)| self.choose_partner(generation, now))
    }

    /// Returns how a generation would be sent now; `None` while it waits for a packet of another
    /// flow.
    ///
    /// The best partner has credit of its own, because then one transmission replaces two. If no
    /// partner has credit, the packet is held for a while, as long as a packet of another flow is
    /// likely to arrive. After that it is combined with a partner without credit: the other
    /// receiver may still lack packets (section 4: "XOR the novel packets with recoded packets from
    /// the remaining flow").
    fn choose_partner(&self, generation: &Generation, now: Instant) -> Option<Choice> {
        let key = generation.header.id.flow.key();

        // Find the partner that saves most, and whether holding the packet may be worth it.
        let mut others_expected = false;
        let mut best: Option<Candidate> = None;
        for partner in self.regions.partners(&key) {
            let Some(flow) = self.flows.between(&partner.key) else { continue };
            others_expected |= self.is_packet_expected(flow, now);
            let Some(candidate) = self.candidate(generation, flow, partner.unknown) else {
                continue;
            };
            let rank = |candidate: &Candidate| (candidate.has_credit, candidate.saving);
            if best.is_none_or(|best| rank(&candidate) > rank(&best)) {
                best = Some(candidate);
            }
        }

        // A partner with credit is sent with at once. Without one, waiting may bring one.
        let has_credit = best.is_some_and(|best| best.has_credit);
        let is_held = now < generation.sending.credits.since() + self.parameters.hold_time;
        if !has_credit && others_expected && is_held {
            return None;
        }
        let partner = best.map(|best| best.generation);
        Some(Choice { generation: generation.header.id, partner })
    }

    /// Returns whether a packet of a flow is likely to come while others are held for it.
    fn is_packet_expected(&self, flow: &Flow, now: Instant) -> bool {
        // A flow whose generations are all here, or finished, waits for feedback itself.
        let needs_no_more = |g: &Generation| g.has_full_rank() || !g.is_open();
        let is_finished =
            !flow.generations.is_empty() && flow.generations.values().all(needs_no_more);
        !is_finished && now < flow.last_heard + self.parameters.hold_time * 2
    }

    /// Returns what another flow offers to be combined with `generation`; `None` if it would gain
    /// nothing. `unknown` is the share of the other flow's packets that this one's next hop lacks.
    fn candidate(
        &self,
        generation: &Generation,
        other_flow: &Flow,
        unknown: f64,
    ) -> Option<Candidate> {
        other_flow.next_hop?;
        let other = other_flow.current()?;

        // Credit for a next hop that no longer answers must not hold up the other one.
        if other.sending.polling.is_silent() || generation.sending.polling.is_silent() {
            return None;
        }

        // Combined frames serve both flows at once, so the one that needs more of them decides.
        let id = generation.header.id;
        let other_id = other.header.id;
        let other_unknown = self.regions.unknown(&other_id.flow.key(), &id.flow.key())?;
        let ratio = surcharge_ratio(unknown, generation, other);
        let other_ratio = surcharge_ratio(other_unknown, other, generation);
        let credits = &generation.sending.credits;
        let other_credits = &other.sending.credits;
        let apart = credits.alone() + other_credits.alone();
        let combined =
            credits.combined(&other_id, ratio).max(other_credits.combined(&id, other_ratio));
        let saving = apart - combined;

        // Packets that are forwarded as they came are paired one to one, which always saves a
        // transmission.
        let gains = generation.forwards_verbatim() || saving >= -ROUNDING;
        let has_credit = other.has_credit();
        gains.then_some(Candidate { generation: other_id, has_credit, saving })
    }

    /// Returns the generation that the next hop is to be polled about now.
    pub(super) fn due_poll(&self, now: Instant) -> Option<GenerationId> {
        self.flows.iter().find_map(|flow| {
            let is_due = |generation: &&Generation| {
                flow.poll_due_at(generation, &self.parameters).is_some_and(|at| at <= now)
            };
            flow.generations.values().find(is_due).map(|generation| generation.header.id)
        })
    }

    // ---- filling frames

    /// Fills a feedback frame if one is queued. What it says is computed now.
    pub(super) fn fill_feedback(&mut self, cx: &Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        while let Some(queued) = self.feedback.pop() {
            let id = queued.generation;
            let Some(flow) = self.flows.get_mut(&id.flow) else { continue };
            let Some(to) = flow.previous_hop else { continue };

            // A flow that is no longer in the table is finished, as the destination has it.
            let is_destination = flow.is_destination();
            let feedback = match flow.generations.get_mut(&id.number) {
                Some(generation) if generation.is_open() => {
                    generation.feedback(&self.parameters, is_destination)
                }
                _ => Some(FeedbackFrame::next_generation(id)),
            };

            let Some(mut feedback) = feedback else { continue };
            feedback.to = to;
            feedback.number = queued.number;
            feedback.links = self.meter.report(to);

            // The previous hop may not hear this node, and another one passes the feedback on.
            let next_hop = way(cx.topology, cx.me, to, FEEDBACK_METRIC);
            let kind = if next_hop == to {
                feedback.write(out);
                FEEDBACK
            } else {
                RelayedFeedback { next_hop, author: cx.me, feedback }.write(out);
                RELAYED
            };

            let copies = self.copies(next_hop, queued.again, cx);
            self.feedback.note_sent(queued, copies);
            return Some(Filled { kind, to: copies.is_none().then_some(next_hop) });
        }

        None
    }

    /// Fills a frame with feedback of another node, if one is to be passed on.
    pub(super) fn fill_relayed(&mut self, cx: &Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let (key, relayed) = self.passing.due(cx.now)?;
        let next_hop = way(cx.topology, cx.me, relayed.feedback.to, FEEDBACK_METRIC);
        RelayedFeedback { next_hop, ..relayed.clone() }.write(out);
        self.passing.note_sent(key, cx.now);
        self.passing_on_air = Some(key);
        Some(Filled { kind: RELAYED, to: Some(next_hop) })
    }

    /// Fills a count frame if the next hop of a generation is to be polled.
    pub(super) fn fill_count(&mut self, cx: &Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        // Another copy keeps the number of its poll, so the fresh number may remain unused.
        let id = self.due_poll(cx.now)?;
        let fresh_number = self.next_number();
        let next_hop = self.flows.get(&id.flow)?.next_hop?;
        let again = self.flows.generation(&id)?.sending.polling.is_unanswered();
        let copies = self.copies(next_hop, again, cx);

        let generation = self.flows.generation_mut(&id)?;
        let number = generation.sending.polling.note_poll(copies, fresh_number, cx.now);
        let serial = self.last_serial;
        let header = generation.header;
        CountFrame { serial, number, again, header, next_hop }.write(out);
        Some(Filled { kind: COUNT, to: copies.is_none().then_some(next_hop) })
    }

    /// Returns in how many copies a count or feedback is broadcast for a neighbour. `None` means
    /// unicast: where the MAC does not contend for the channel, and where all copies were lost,
    /// which is what happens if they all collide.
    fn copies(&self, to: NodeId, again: bool, cx: &Context<'_>) -> Option<u32> {
        let copies = self.meter.copies(cx.topology, cx.me, to);
        copies.filter(|_| self.contends && !again)
    }

    /// Fills a data frame if a flow has credit.
    pub(super) fn fill_data(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        // From now on the surcharge counts for both generations, whether or not more packets of
        // them go combined.
        let Choice { generation, partner } = self.choose(cx.now)?;
        let partner = partner.filter(|partner| self.fit_one_frame(&generation, partner, cx.mtu));
        if let Some(partner) = partner {
            self.pair(generation, partner);
        }

        // Both packets are made now, from all that was received until this moment.
        let (first, mut payload) = self.take_packet(generation, partner.is_some(), cx)?;
        let second = partner.and_then(|partner| self.take_packet(partner, true, cx));
        let second = second.map(|(part, other)| {
            xor_into(&mut payload, &other);
            part
        });

        // Neighbours measure their links by the serial.
        self.last_serial = self.last_serial.wrapping_add(1);
        self.coding_status.sent += 1;
        self.coding_status.coded += u64::from(second.is_some());
        let is_native = second.is_none() && first.vector.iter().filter(|c| **c != 0).count() == 1;
        cx.counters.note_filled(if is_native { Payload::Native } else { Payload::Coded });
        let serial = self.last_serial;
        let payload = without_trailing_zeros(&payload);
        DataFrame { serial, first, second, payload }.write(out);
        Some(Filled { kind: DATA, to: None })
    }

    /// Returns whether packets of both generations fit one frame. Their sources may have chosen
    /// other sizes than this node.
    fn fit_one_frame(&self, one: &GenerationId, other: &GenerationId, mtu: usize) -> bool {
        let header = |id| self.flows.generation(id).map(|generation| generation.header);
        let (Some(one), Some(other)) = (header(one), header(other)) else { return false };
        let overhead =
            DataFrame::overhead(one.generation_size) + DataFrame::overhead(other.generation_size);
        overhead / 2 + usize::from(one.symbol_size.max(other.symbol_size)) <= mtu
    }

    /// Combines two generations from now on, each at the surcharge for what its next hop does not
    /// know of the other.
    fn pair(&mut self, one: GenerationId, other: GenerationId) {
        for (id, partner_id) in [(one, other), (other, one)] {
            let unknown = self.regions.unknown(&id.flow.key(), &partner_id.flow.key());
            let Some(partner) = self.flows.generation(&partner_id) else { return };
            let Some(generation) = self.flows.generation(&id) else { return };
            let ratio = surcharge_ratio(unknown.unwrap_or(0.0), generation, partner);
            if let Some(generation) = self.flows.generation_mut(&id) {
                generation.sending.credits.pair(partner_id, ratio);
            }
        }
    }

    /// Takes the packet of a generation that goes on the air now, and the credit for it.
    fn take_packet(
        &mut self,
        id: GenerationId,
        combined: bool,
        cx: &mut Context<'_>,
    ) -> Option<(Part, Vec<u8>)> {
        let flow = self.flows.get_mut(&id.flow)?;
        flow.last_sent = cx.now;
        let next_hop = flow.next_hop?;
        let generation = flow.generations.get_mut(&id.number)?;
        let (vector, payload) = generation.next_packet(cx.rng)?;
        generation.sending.spend(combined, cx.now);
        Some((Part { header: generation.header, next_hop, vector }, payload))
    }
}

/// Returns the surcharge for each credit of `generation` if it is combined with `partner`, of which
/// the receiver does not know the share `unknown`.
fn surcharge_ratio(unknown: f64, generation: &Generation, partner: &Generation) -> f64 {
    unknown * f64::from(partner.header.count) / f64::from(generation.header.count.max(1))
}

/// Adds `other` to a payload over GF(2^8). The shorter one counts as filled up with zeros.
fn xor_into(payload: &mut Vec<u8>, other: &[u8]) {
    if payload.len() < other.len() {
        payload.resize(other.len(), 0);
    }
    payload.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
}

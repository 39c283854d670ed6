//! Data frames heard: packets of one flow and combined ones, for this node and for others (CORE,
//! section 4).

use super::{Core, Handled};
use crate::combined::{Packet, separate_at_once};
use crate::flow::Flow;
use crate::frame::{DataFrame, GenerationHeader, GenerationId, Part};
use crate::generation::Generation;
use ncmesh_code::Separated;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::toolkit::coder::Coder;
use ncmesh_engine::topology::Metric;
use ncmesh_engine::{Context, Frame};
use std::collections::VecDeque;

/// Packets that follow from others by elimination, each with its generation.
type Found = VecDeque<(GenerationId, Packet)>;

/// How a packet came to this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reception {
    /// In a frame for this node.
    Addressed,
    /// In a frame for another node of the same flow.
    Overheard,
}

impl Core {
    /// Handles a data frame. Every frame is measured; what else it is good for depends on whether
    /// this node is the next hop of a flow in it.
    pub(super) fn handle_data(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) -> Handled {
        let data = DataFrame::parse(frame.body).map_err(|_| DropReason::Malformed)?;
        self.meter.count_frame(frame.sender, frame.start, data.serial, cx.now);
        let DataFrame { first, second, payload, .. } = data;

        // Data for this node show that the previous hop has received its feedback.
        for part in second.iter().chain([&first]).filter(|part| part.next_hop == cx.me) {
            self.drop_acknowledged_feedback(&part.header);
        }

        match second {
            None if first.next_hop == cx.me => {
                self.admit(&first.header, frame, cx)?;
                let packet = (first.vector, padded(payload, &first.header));
                self.absorb(first.header.id, &packet, Reception::Addressed, cx)
            }
            None => self.handle_overheard(first, payload, cx),
            Some(second) if first.next_hop == cx.me => {
                self.handle_combined(&first, &second, payload, frame, cx)
            }
            Some(second) if second.next_hop == cx.me => {
                self.handle_combined(&second, &first, payload, frame, cx)
            }

            // Packets combined for two other nodes are of no use here.
            Some(_) => Ok(()),
        }
    }

    /// Drops copies of feedback that data of this generation acknowledge: requests for more packets
    /// of it, and everything about generations that the previous hop has finished.
    fn drop_acknowledged_feedback(&mut self, header: &GenerationHeader) {
        let generation = self.flows.generation(&header.id);
        let lacks_packets = generation.is_some_and(|generation| !generation.has_full_rank());
        let is_acknowledged = |id: &GenerationId| {
            // More packets of this generation are what was asked for. Generations that the source
            // has finished need no feedback.
            let is_finished = id.number < header.oldest_open();
            let is_served = lacks_packets && id.number == header.id.number;
            id.flow == header.id.flow && (is_finished || is_served)
        };

        self.feedback.drop_acknowledged(is_acknowledged);
    }

    /// Makes sure that the flow and the generation of a frame for this node are in the tables, in
    /// the flow's latest instance.
    ///
    /// # Errors
    /// [`DropReason::Stale`] if the flow or the generation is finished, [`DropReason::Malformed`]
    /// if the generation had another shape or does not fit frames of this node.
    pub(super) fn admit(
        &mut self,
        header: &GenerationHeader,
        frame: &Frame<'_>,
        cx: &mut Context<'_>,
    ) -> Handled {
        // A flow does not lead back to its source. Such a frame is from before a restart, or from a
        // relay with an outdated path.
        let instance = header.id.flow;
        if instance.source == cx.me {
            return Err(DropReason::Stale);
        }
        check_fits(header, cx)?;

        // A later instance replaces the flow: its source has restarted. So does what is sent all
        // the time, if it contradicts what this node believes.
        self.flows.forget_contradicted(header.id, cx.now);
        let known = self.flows.between(&instance.key());
        if known.is_none_or(|flow| instance.is_later(flow.instance)) {
            let next_hop = cx.topology.next_hop(cx.me, instance.destination, Metric::Broadcast);
            self.flows.insert(Flow::incoming(header, cx.me, next_hop, cx.now));
            self.flow_counters.begin(instance.source, instance.destination);
            self.regions_outdated = true;
        }

        // The sender is the previous hop from now on, whoever was it before.
        let Some(flow) = self.flows.get_mut(&instance) else { return Err(DropReason::Stale) };
        self.regions_outdated |= flow.previous_hop != Some(frame.sender);
        flow.previous_hop = Some(frame.sender);
        flow.last_heard = cx.now;

        // The frame may say that the source gave up older generations. What is decoded of them is
        // handed up now.
        let now = cx.now;
        let hand_up = |packet| cx.hand_up(instance.source, packet);
        let lost = flow.update_generation(header, &self.parameters, now, hand_up);

        // The sender does not know that the generation is finished, unless it is being told so.
        if lost == Err(DropReason::Stale) && !self.feedback.contains(&header.id) {
            self.queue_feedback(header.id, false, cx);
        }
        (0..lost?).for_each(|_| self.flow_counters.lost(instance.source, instance.destination));
        Ok(())
    }

    // ---- combined packets

    /// Handles a packet of this node's flow that is combined with one of another flow.
    fn handle_combined(
        &mut self,
        own: &Part,
        other: &Part,
        payload: &[u8],
        frame: &Frame<'_>,
        cx: &mut Context<'_>,
    ) -> Handled {
        self.admit(&own.header, frame, cx)?;
        let id = own.header.id;
        let coded = self.parameters.codes_within_flows;

        // CORE keeps what it cannot take apart yet; COPE decodes at once or not at all.
        let separated = if coded {
            self.separate(own, other, payload).ok_or(DropReason::Malformed)?
        } else {
            let known = self.known_packets(&other.header.id);
            let packet = separate_at_once(own, other, payload, known);
            packet.map_or(Separated::Redundant, Separated::Wanted)
        };

        let innovative = separated == Separated::Kept;
        match separated {
            Separated::Wanted(packet) => {
                self.coding_status.decoded += 1;
                return self.absorb(id, &packet, Reception::Addressed, cx);
            }
            Separated::Kept => {}
            Separated::Redundant if coded => self.forward_substitute(id, cx),
            Separated::Redundant => self.coding_status.undecodable += 1,
        }

        self.flow_counters.heard(id.flow.source, id.flow.destination, innovative);
        cx.counters.note_payload(innovative);
        if innovative || coded { Ok(()) } else { Err(DropReason::Undecodable) }
    }

    /// Adds a combined packet to those that came before and to what was overheard of the other
    /// flow. Returns what follows, or `None` if the packet does not fit them.
    fn separate(&mut self, own: &Part, other: &Part, payload: &[u8]) -> Option<Separated> {
        let other_id = other.header.id;
        let generation = self.flows.generation(&own.header.id)?;
        if generation.has_full_rank() {
            return Some(Separated::Redundant);
        }

        // The first packet combined with this generation: everything known of it counts.
        if !generation.combined.contain(&other_id) {
            let known = self.known_packets(&other_id);
            let packets: Vec<Packet> = known.into_iter().flat_map(Coder::rows).collect();
            let generation = self.flows.generation_mut(&own.header.id)?;
            generation.combined.begin(&generation.header, &other.header)?;
            for packet in packets {
                generation.combined.insert_other(&other_id, &packet);
            }
        }

        let generation = self.flows.generation_mut(&own.header.id)?;
        generation.combined.insert(&own.vector, other, payload)
    }

    /// Returns what this node has of a generation, as one of the flow's nodes or overheard.
    fn known_packets(&self, id: &GenerationId) -> Option<&Coder> {
        let own = self.flows.generation(id).map(Generation::coder);
        own.or_else(|| self.overheard.get(id))
    }

    /// Forwards something in the place of a combined packet that brought nothing new.
    ///
    /// A relay that does not know its rank forwards all packets sent to it. This one it may be
    /// unable to take apart, and it need not: any combination of what it has of the generation is
    /// worth as much. Otherwise nothing would get past a relay that has the whole generation while
    /// the relay before it combines.
    fn forward_substitute(&mut self, id: GenerationId, cx: &mut Context<'_>) {
        let Some(flow) = self.flows.get(&id.flow) else { return };
        if flow.is_destination() || flow.next_hop.is_none() {
            return;
        }
        let generation = flow.generations.get(&id.number).filter(|g| !g.answers_requests());
        if let Some(packet) = generation.and_then(|generation| generation.coder().combine(cx.rng)) {
            self.earn_credit(id, &packet, cx);
        }
    }

    // ---- overheard packets

    /// Handles a packet for another node. If its flow comes through here too, it may be
    /// innovative; otherwise it is kept to take combined packets apart.
    fn handle_overheard(&mut self, part: Part, payload: &[u8], cx: &mut Context<'_>) -> Handled {
        let header = part.header;
        let packet = (part.vector, padded(payload, &header));

        // A source has all packets of its flow. Another node of the path takes part only in
        // generations that were sent to it, so that it knows who to answer.
        if let Some(flow) = self.flows.get(&header.id.flow) {
            let is_known = flow.generations.contains_key(&header.id.number);
            if !is_known || flow.is_source() {
                return Ok(());
            }
            return self.absorb(header.id, &packet, Reception::Overheard, cx);
        }

        // A flow of others: what is new of it may separate packets that were received before.
        check_fits(&header, cx)?;
        match self.overheard.keep(&header, &packet, cx.now) {
            None => Err(DropReason::Malformed),
            Some(false) => Ok(()),
            Some(true) => {
                let found = self.eliminate(&header.id, &packet);
                self.absorb_found(found, cx);
                Ok(())
            }
        }
    }

    /// Eliminates a packet from all combined packets that its generation is part of. Returns the
    /// packets that follow.
    fn eliminate(&mut self, id: &GenerationId, packet: &Packet) -> Found {
        let follow = |generation: &mut Generation| {
            let found = generation.combined.insert_other(id, packet)?;
            Some((generation.header.id, found))
        };
        self.flows.generations_mut().filter_map(follow).collect()
    }

    // ---- packets of one flow

    /// Takes in a packet of one flow, and all that follows from it.
    fn absorb(
        &mut self,
        id: GenerationId,
        packet: &Packet,
        reception: Reception,
        cx: &mut Context<'_>,
    ) -> Handled {
        let found = self.absorb_one(id, packet, reception, cx)?;
        self.absorb_found(found, cx);
        Ok(())
    }

    /// Takes in packets that were separated from others, and all that follows from them. From each
    /// innovative packet others may follow, in generations that its own is combined with.
    fn absorb_found(&mut self, mut found: Found, cx: &mut Context<'_>) {
        while let Some((id, packet)) = found.pop_front() {
            // The flow and the shape of these packets are known, so none is dropped.
            if let Ok(more) = self.absorb_one(id, &packet, Reception::Addressed, cx) {
                found.extend(more);
            }
        }
    }

    /// Takes in one packet. Returns the packets of other flows that follow from it.
    fn absorb_one(
        &mut self,
        id: GenerationId,
        packet: &Packet,
        reception: Reception,
        cx: &mut Context<'_>,
    ) -> Result<Found, DropReason> {
        // Take the packet in. Packets that were sent to this node count in its statistics even if
        // they are redundant, as they cost a transmission.
        let flow = self.flows.get_mut(&id.flow).ok_or(DropReason::UnknownFlow)?;
        let is_destination = flow.is_destination();
        let has_next_hop = flow.next_hop.is_some();
        let generation = flow.generations.get_mut(&id.number).ok_or(DropReason::Stale)?;

        let had_full_rank = generation.has_full_rank();
        let innovative = generation.absorb(packet, cx.now).ok_or(DropReason::Malformed)?;
        let is_complete = generation.has_full_rank() && !had_full_rank;
        let answers_requests = generation.answers_requests();
        let addressed = reception == Reception::Addressed;
        if addressed || innovative {
            self.flow_counters.heard(id.flow.source, id.flow.destination, innovative);
            cx.counters.note_payload(innovative);
        }

        // A relay that knows its rank earns credit for innovative packets. Any other earns it for
        // every packet sent to it (6.3.2).
        let earns = if answers_requests { innovative } else { addressed };
        if is_destination {
            self.deliver(id, cx);
        } else if has_next_hop && earns {
            self.earn_credit(id, packet, cx);
        }

        // With full rank, the previous hop is to stop at once, not when it polls.
        if is_complete && (is_destination || answers_requests) {
            self.queue_feedback(id, false, cx);
        }

        // Packets of other flows that were combined with this one may be separated now.
        Ok(if innovative { self.eliminate(&id, packet) } else { Found::new() })
    }

    /// Adds the credit for a packet that is to be forwarded, or queues the packet itself at a relay
    /// that forwards packets as they are.
    fn earn_credit(&mut self, id: GenerationId, packet: &Packet, cx: &mut Context<'_>) {
        let Some(flow) = self.flows.get_mut(&id.flow) else { return };
        let (Some(next_hop), Some(generation)) =
            (flow.next_hop, flow.generations.get_mut(&id.number))
        else {
            return;
        };
        if !generation.forwards_verbatim() {
            let success = self.meter.success(cx.topology, cx.me, cx.me, next_hop);
            let packets = usize::from(generation.header.generation_size);
            let credit = self.parameters.redundancy.credit(packets, success);
            generation.sending.earn(credit, cx.now);

        // The relay of COPE does not recode: what it forwards are the packets themselves.
        } else if !generation.enqueue(packet.clone(), cx.now) {
            cx.counters.drop(DropReason::Full);
        }
    }

    /// Hands up what is decoded and in order of a flow that ends here.
    pub(super) fn deliver(&mut self, id: GenerationId, cx: &mut Context<'_>) {
        let Some(flow) = self.flows.get_mut(&id.flow) else { return };
        let (from, to) = id.flow.key();
        let flow_counters = &mut self.flow_counters;
        flow.deliver(|packet| {
            if !packet.is_empty() {
                flow_counters.delivered(from, to, packet.len());
            }
            cx.hand_up(from, packet);
        });
    }
}

/// Checks that a packet of this generation fits a frame of this node.
fn check_fits(header: &GenerationHeader, cx: &Context<'_>) -> Handled {
    let room = cx.mtu.saturating_sub(DataFrame::overhead(header.generation_size) / 2);
    if usize::from(header.symbol_size) > room { Err(DropReason::Malformed) } else { Ok(()) }
}

/// Returns a payload with the zeros that were left out at its end.
fn padded(payload: &[u8], header: &GenerationHeader) -> Vec<u8> {
    let mut symbol = payload.to_vec();
    symbol.resize(usize::from(header.symbol_size), 0);
    symbol
}

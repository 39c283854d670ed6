//! One flow at one node of its path.
//!
//! A node has one of three roles in a flow. The *source* cuts packets into generations, which its
//! [`Ingress`] does. A *relay* receives and sends. The *destination* hands packets up, in order and
//! as soon as they are decoded, which need not be when the generation is complete.

use crate::frame::{GenerationHeader, GenerationId, MAX_WINDOW};
use crate::generation::{Generation, Stage};
use crate::ingress::Ingress;
use crate::parameters::Parameters;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::flow::{Contradiction, FlowInstance};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Source and destination of a flow.
pub(crate) type FlowKey = (NodeId, NodeId);

/// Role of a node in a flow.
#[derive(Debug)]
pub(crate) enum Role {
    /// The flow begins here.
    Source(Ingress),
    /// The flow comes through here.
    Relay,
    /// The flow ends here.
    Destination(Egress),
}

/// Place up to which a destination has handed packets up.
#[derive(Debug, Default)]
pub(crate) struct Egress {
    /// Position of the next packet in the flow's oldest generation.
    next: u8,
}

/// A flow as one of its nodes sees it.
#[derive(Debug)]
pub(crate) struct Flow {
    pub instance: FlowInstance,
    pub role: Role,
    /// Neighbour that it comes from; `None` at its source.
    pub previous_hop: Option<NodeId>,
    /// Neighbour that it goes to; `None` at its destination, and where no path is known.
    pub next_hop: Option<NodeId>,
    /// Generations by number.
    pub generations: BTreeMap<u32, Generation>,
    /// Number of the oldest generation that is not finished.
    pub oldest: u32,
    /// Whether frames from the previous hop contradict this state.
    contradiction: Contradiction,
    /// When a frame of it was last heard.
    pub last_heard: Instant,
    /// When this node last sent data of it, or took a packet for it.
    pub last_sent: Instant,
}

impl Flow {
    /// Returns a flow that begins here.
    pub(crate) fn outgoing(
        instance: FlowInstance,
        symbol_size: u16,
        next_hop: NodeId,
        now: Instant,
    ) -> Self {
        let role = Role::Source(Ingress::new(symbol_size));
        Self { next_hop: Some(next_hop), ..Self::new(instance, role, 0, now) }
    }

    /// Returns a flow that a frame was heard of.
    pub(crate) fn incoming(
        header: &GenerationHeader,
        me: NodeId,
        next_hop: Option<NodeId>,
        now: Instant,
    ) -> Self {
        let instance = header.id.flow;
        let is_destination = instance.destination == me;
        let role = if is_destination { Role::Destination(Egress::default()) } else { Role::Relay };
        Self { next_hop, ..Self::new(instance, role, header.oldest_open(), now) }
    }

    fn new(instance: FlowInstance, role: Role, oldest: u32, now: Instant) -> Self {
        Self {
            instance,
            role,
            previous_hop: None,
            next_hop: None,
            generations: BTreeMap::new(),
            oldest,
            contradiction: Contradiction::default(),
            last_heard: now,
            last_sent: now,
        }
    }

    pub(crate) fn is_source(&self) -> bool {
        matches!(self.role, Role::Source(_))
    }

    pub(crate) fn is_destination(&self) -> bool {
        matches!(self.role, Role::Destination(_))
    }

    /// Returns when the flow was last active here.
    pub(crate) fn last_active(&self) -> Instant {
        self.last_heard.max(self.last_sent)
    }

    // ---- receiving

    /// Notes a frame of the previous hop. Returns whether all its frames for long were of an
    /// earlier instance, or of generations that were finished long ago.
    pub(crate) fn note_conflict(&mut self, id: GenerationId, now: Instant) -> bool {
        let is_recent = id.number.saturating_add(u32::from(MAX_WINDOW)) >= self.oldest;
        self.contradiction.note(self.instance, id.flow, is_recent, now)
    }

    /// Takes over what a frame says of its generation, and begins the generation if it is new. If
    /// the source gave up earlier ones, hands up what is decoded of them. Returns how many packets
    /// are lost by that.
    ///
    /// # Errors
    /// [`DropReason::Stale`] if the generation is finished, [`DropReason::Malformed`] if it had
    /// another shape before.
    pub(crate) fn update_generation(
        &mut self,
        header: &GenerationHeader,
        parameters: &Parameters,
        now: Instant,
        hand_up: impl FnMut(Vec<u8>),
    ) -> Result<u64, DropReason> {
        if header.id.number < self.oldest {
            return Err(DropReason::Stale);
        }
        let lost = self.skip_to(header.oldest_open(), hand_up);

        let decodes = self.is_destination();
        if let Entry::Vacant(vacant) = self.generations.entry(header.id.number) {
            let generation = Generation::new(*header, decodes, parameters.relay, now);
            vacant.insert(generation.ok_or(DropReason::Malformed)?);
        }

        let generation = self.generations.get_mut(&header.id.number);
        let has_same_shape = generation.is_some_and(|known| known.update_header(header));
        if has_same_shape { Ok(lost) } else { Err(DropReason::Malformed) }
    }

    /// Drops generations before `oldest`, which the source gave up. A destination hands up what is
    /// decoded of them. Returns how many packets are lost to it.
    fn skip_to(&mut self, oldest: u32, mut hand_up: impl FnMut(Vec<u8>)) -> u64 {
        if oldest <= self.oldest {
            return 0;
        }

        let kept = self.generations.split_off(&oldest);
        let dropped = core::mem::replace(&mut self.generations, kept);
        self.oldest = oldest;

        let Role::Destination(egress) = &mut self.role else { return 0 };
        let mut lost = 0;
        for mut generation in dropped.into_values() {
            // Packets were handed up before from the first one only.
            for position in core::mem::take(&mut egress.next)..generation.header.count {
                match generation.packet(position) {
                    Some(packet) => hand_up(packet),
                    None => lost += 1,
                }
            }
        }

        egress.next = 0;
        lost
    }

    /// Hands up the packets that are next in order and decoded. Does nothing but at the
    /// destination.
    pub(crate) fn deliver(&mut self, mut hand_up: impl FnMut(Vec<u8>)) {
        let Role::Destination(egress) = &mut self.role else { return };
        while let Some(generation) = self.generations.get_mut(&self.oldest) {
            // Packets in order, up to the first that is not decoded.
            while let Some(packet) = generation.packet(egress.next) {
                egress.next += 1;
                hand_up(packet);
            }

            // The generation is finished when the source has closed it and every packet is up.
            if !generation.has_full_rank() || egress.next < generation.header.count {
                return;
            }
            self.generations.remove(&self.oldest);
            self.oldest = self.oldest.wrapping_add(1);
            egress.next = 0;
        }
    }

    // ---- sending

    /// Returns the oldest open generation with packets to send.
    pub(crate) fn current(&self) -> Option<&Generation> {
        self.generations.values().find(|g| g.is_open() && g.has_packets())
    }

    /// Returns the oldest open generation with packets and credit.
    pub(crate) fn sendable(&self) -> Option<&Generation> {
        self.next_hop?;
        self.generations.values().find(|g| g.is_open() && g.has_credit())
    }

    /// Returns when the next hop is to be polled about a generation.
    pub(crate) fn poll_due_at(
        &self,
        generation: &Generation,
        parameters: &Parameters,
    ) -> Option<Instant> {
        self.next_hop?;
        if !generation.is_open() || generation.has_credit() {
            return None;
        }

        // A source polls on its own account once the generation is closed. A relay does once it has
        // full rank and has stopped the previous hop; until then the previous hop polls.
        let own = match self.role {
            Role::Source(_) => generation.header.closed,
            Role::Relay | Role::Destination(_) => {
                generation.answers_requests() && generation.has_full_rank()
            }
        };

        generation.sending.polling.due_at(own, parameters)
    }

    // ---- the source

    /// Moves packets that wait at the source into generations, as far as the window allows. Each
    /// earns `credit`.
    pub(crate) fn fill_generations(&mut self, parameters: &Parameters, credit: f64, now: Instant) {
        let Role::Source(ingress) = &mut self.role else { return };

        // Packets go into the youngest generation. When it is closed, the window decides whether
        // another one may begin.
        while !ingress.is_empty() {
            let open = self.generations.last_key_value().filter(|(_, last)| !last.header.closed);
            let number = match open {
                Some((number, _)) => *number,
                None if self.generations.len() >= usize::from(parameters.window) => break,
                None => {
                    let begun = ingress.begin_generation(self.instance, parameters, now);
                    let Some(begun) = begun else { break };
                    let number = begun.header.id.number;
                    self.generations.insert(number, begun);
                    number
                }
            };

            let Some(generation) = self.generations.get_mut(&number) else { break };
            if ingress.move_packet(generation, parameters, credit, now).is_none() {
                break;
            }
        }

        // Sparse traffic does not fill a generation, and must not wait for one to be full.
        let flush = self.flush_at(parameters).is_some_and(|at| at <= now);
        if let Some(mut last) = self.generations.last_entry().filter(|_| flush) {
            last.get_mut().header.closed = true;
        }
        self.renumber();
    }

    /// Returns when the youngest generation is closed although it is not full.
    fn flush_at(&self, parameters: &Parameters) -> Option<Instant> {
        let last = self.generations.last_key_value()?.1;
        let open = self.is_source() && !last.header.closed;
        open.then(|| last.begun_at + parameters.flush_time)
    }

    /// Updates in each generation how many older ones there are. Receivers give up the others.
    fn renumber(&mut self) {
        let Role::Source(ingress) = &self.role else { return };
        // Without generations, the next one is the oldest.
        let first = self.generations.first_key_value().map(|(number, _)| *number);
        self.oldest = first.unwrap_or(ingress.next_generation());
        for (number, generation) in &mut self.generations {
            generation.header.older_open = number.wrapping_sub(self.oldest) as u8;
        }
    }

    /// Gives up generations of this source that the next hop does not answer for. Returns how many
    /// packets are lost.
    pub(crate) fn give_up(&mut self, parameters: &Parameters, now: Instant) -> u64 {
        if !self.is_source() {
            return 0;
        }
        let mut lost = 0;
        self.generations.retain(|_, generation| {
            let timed_out = generation.sending.polling.has_timed_out(parameters, now);
            lost += if timed_out { u64::from(generation.header.count) } else { 0 };
            !timed_out
        });

        lost
    }

    /// Returns when, later than `after`, the source closes or gives up a generation.
    pub(crate) fn source_timeout(
        &self,
        parameters: &Parameters,
        after: Instant,
    ) -> Option<Instant> {
        let own = self.generations.values().filter(|_| self.is_source());
        let give_up = own.map(|generation| generation.sending.polling.pause_ends_at(parameters));
        give_up.chain(self.flush_at(parameters)).filter(|at| *at > after).min()
    }

    // ---- the relay

    /// Notes that the previous hop is told that generation `number` is decoded. Forgets it with all
    /// before it, once these are released too.
    pub(crate) fn release(&mut self, number: u32) {
        if let Some(generation) = self.generations.get_mut(&number) {
            generation.stage = Stage::Released;
        }

        // Younger ones may be released first. They stay until then, or a late frame would begin
        // them again.
        let is_released = |generation: &Generation| generation.stage == Stage::Released;
        while self.generations.get(&self.oldest).is_some_and(is_released) {
            self.generations.remove(&self.oldest);
            self.oldest = self.oldest.wrapping_add(1);
        }
    }
}

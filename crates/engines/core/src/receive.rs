//! Data heard, for this node and for others (CORE, section 4).

use super::flow::Flow;
use super::frame::{Data, Head, Name, Part};
use super::generation::Generation;
use super::mixtures::{Packet, separate_at_once};
use super::{Core, Key};
use ncmesh_code::Separated;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::toolkit::coder::Coder;
use ncmesh_engine::{Context, Event, Frame};
use ncmesh_wire::NodeId;
use std::collections::VecDeque;

pub(super) type Heard = Result<(), DropReason>;
/// Packets that follow from others, by flow and generation.
type Found = VecDeque<(Key, u32, Packet)>;

impl Core {
    pub(super) fn hear_data(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) -> Heard {
        let data = Data::parse(frame.body).map_err(|_| DropReason::Malformed)?;
        self.meter.hear(frame.sender, frame.epoch, data.serial, cx.now);
        let Data { first, second, payload, .. } = data;
        for part in second.iter().chain([&first]).filter(|part| part.next == cx.me) {
            self.heed(&part.head);
        }
        match second {
            None if first.next == cx.me => {
                self.admit(&first.head, frame.sender, cx)?;
                let packet = (first.vector, padded(payload, &first.head));
                self.absorb(first.head.start.key(), first.head.generation, &packet, true, cx)
            }
            None => self.overhear(first, payload, cx),
            Some(second) if first.next == cx.me => {
                self.hear_combined(&first, &second, payload, frame.sender, cx)
            }
            Some(second) if second.next == cx.me => {
                self.hear_combined(&second, &first, payload, frame.sender, cx)
            }
            Some(_) => Ok(()),
        }
    }

    /// Data for this node: what was asked for, or of generations behind those that are done with.
    fn heed(&mut self, head: &Head) {
        let flow = self.flows.get(&head.start.key()).filter(|flow| flow.start == head.start);
        let of = flow.and_then(|flow| flow.generations.get(&head.generation));
        let lacks = of.is_some_and(|generation| !generation.is_whole());
        let is_asked_for = |number| lacks && number == head.generation;
        let is_heeded = |(start, number): &Name| {
            *start == head.start && (*number < head.base() || is_asked_for(*number))
        };
        self.owed.heeded(is_heeded);
    }

    /// Sees to it that the flow of a frame for this node is known, in its latest start, with the generation of the frame.
    pub(super) fn admit(&mut self, head: &Head, sender: NodeId, cx: &mut Context<'_>) -> Heard {
        let (start, key) = (head.start, head.start.key());
        if start.source == cx.me {
            return Err(DropReason::Stale);
        }
        let room = cx.mtu.saturating_sub(Data::overhead(head.room) / 2);
        if usize::from(head.symbol) > room {
            return Err(DropReason::Malformed);
        }
        if self.flows.get(&key).is_none_or(|flow| start.is_later(flow.start)) {
            self.make_room(key);
            let mut flow = Flow::heard(head, cx.me, cx.now);
            flow.next = self.next_hops.towards(cx.topology, cx.me, start.destination);
            self.flows.insert(key, flow);
            self.tallies.begin(start.source, start.destination);
            self.changed = true;
        }
        let Some(flow) = self.flows.get_mut(&key).filter(|flow| flow.start == start) else {
            return Err(DropReason::Stale);
        };
        self.changed |= flow.previous != Some(sender);
        (flow.previous, flow.heard_at) = (Some(sender), cx.now);
        let events = &mut *cx.events;
        let up = |packet| events.push_back(Event::Packet { from: start.source, packet });
        let lost = flow.learn(head, &self.rules, cx.now, up);
        if lost == Err(DropReason::Stale) {
            // Who sends it has not heard that it is done with, unless it is being told.
            if !self.owed.contains(&head.name()) {
                self.owe(head.name(), false, cx);
            }
        }
        (0..lost?).for_each(|_| self.tallies.lost(start.source, start.destination));
        Ok(())
    }

    /// A combination with a flow that may be unknown here, as are most of its packets at times.
    fn hear_combined(
        &mut self,
        mine: &Part,
        other: &Part,
        payload: &[u8],
        sender: NodeId,
        cx: &mut Context<'_>,
    ) -> Heard {
        self.admit(&mine.head, sender, cx)?;
        let (start, number) = (mine.head.start, mine.head.generation);
        let separated = if self.rules.coded {
            self.separate(mine, other, payload).ok_or(DropReason::Malformed)?
        } else {
            let known = self.known(&other.head);
            let packet = separate_at_once(&mine.head, &mine.vector, other, payload, known);
            packet.map_or(Separated::Redundant, Separated::Wanted)
        };
        match separated {
            Separated::Wanted(packet) => {
                self.coding.decoded += 1;
                self.absorb(start.key(), number, &packet, true, cx)
            }
            Separated::Kept => {
                self.tallies.heard(start.source, start.destination, true);
                Ok(())
            }
            Separated::Redundant if self.rules.coded => {
                self.tallies.heard(start.source, start.destination, false);
                self.stand_in(start.key(), number, cx);
                Ok(())
            }
            Separated::Redundant => {
                self.coding.undecodable += 1;
                self.tallies.heard(start.source, start.destination, false);
                Err(DropReason::Undecodable)
            }
        }
    }

    /// Puts a combination to those that came before, and to what was overheard. `None` if it contradicts them in shape.
    fn separate(&mut self, mine: &Part, other: &Part, payload: &[u8]) -> Option<Separated> {
        let name = other.head.name();
        let (key, number) = (mine.head.start.key(), mine.head.generation);
        let generation = self.flows.get(&key)?.generations.get(&number)?;
        if generation.is_whole() {
            return Some(Separated::Redundant);
        }
        if !generation.mixtures.contain(&name) {
            let rows: Vec<Packet> =
                self.known(&other.head).into_iter().flat_map(Coder::rows).collect();
            let generation = self.flows.get_mut(&key)?.generations.get_mut(&number)?;
            let head = generation.head;
            generation.mixtures.begin(&head, &other.head)?;
            for row in rows {
                generation.mixtures.learn(&head, &name, &row);
            }
        }
        let generation = self.flows.get_mut(&key)?.generations.get_mut(&number)?;
        let head = generation.head;
        generation.mixtures.insert(&head, &mine.vector, other, payload)
    }

    /// What this node has of a generation: as one of the flow's nodes, or overheard.
    fn known(&self, head: &Head) -> Option<&Coder> {
        let flow = self.flows.get(&head.start.key()).filter(|flow| flow.start == head.start);
        let own = flow.and_then(|flow| flow.generations.get(&head.generation));
        own.map(Generation::coder).or_else(|| self.overheard.of(&head.name()))
    }

    /// A packet for another node: of a flow that comes by here too, or one to take combinations apart with.
    fn overhear(&mut self, part: Part, payload: &[u8], cx: &mut Context<'_>) -> Heard {
        let head = part.head;
        let packet = (part.vector, padded(payload, &head));
        let key = head.start.key();
        if let Some(flow) = self.flows.get(&key).filter(|flow| flow.start == head.start) {
            return match flow.generations.contains_key(&head.generation) {
                true if flow.inlet.is_none() => {
                    self.absorb(key, head.generation, &packet, false, cx)
                }
                _ => Ok(()),
            };
        }
        let room = cx.mtu.saturating_sub(Data::overhead(head.room) / 2);
        if usize::from(head.symbol) > room {
            return Err(DropReason::Malformed);
        }
        match self.overheard.keep(&head, &packet, cx.now) {
            None => Err(DropReason::Malformed),
            Some(false) => Ok(()),
            Some(true) => {
                let found = self.follow(&head.name(), &packet);
                self.absorb_all(found, cx);
                Ok(())
            }
        }
    }

    /// More is known of a generation: what follows from that where combinations with it come apart.
    fn follow(&mut self, name: &Name, packet: &Packet) -> Found {
        let mut found = Found::new();
        for (key, flow) in &mut self.flows {
            for (number, generation) in &mut flow.generations {
                let head = generation.head;
                if let Some(packet) = generation.mixtures.learn(&head, name, packet) {
                    found.push_back((*key, *number, packet));
                }
            }
        }
        found
    }

    /// Takes a packet of one flow in, and what follows from it; `sent_here` if it was meant for this node.
    fn absorb(
        &mut self,
        key: Key,
        number: u32,
        packet: &Packet,
        sent_here: bool,
        cx: &mut Context<'_>,
    ) -> Heard {
        let found = self.absorb_one(key, number, packet, sent_here, cx)?;
        self.absorb_all(found, cx);
        Ok(())
    }

    fn absorb_all(&mut self, mut found: Found, cx: &mut Context<'_>) {
        while let Some((key, number, packet)) = found.pop_front() {
            // The flow and the shape of what was found are known.
            if let Ok(more) = self.absorb_one(key, number, &packet, true, cx) {
                found.extend(more);
            }
        }
    }

    fn absorb_one(
        &mut self,
        key: Key,
        number: u32,
        packet: &Packet,
        sent_here: bool,
        cx: &mut Context<'_>,
    ) -> Result<Found, DropReason> {
        let Some(flow) = self.flows.get_mut(&key) else { return Err(DropReason::UnknownFlow) };
        let (start, next, is_destination) = (flow.start, flow.next, flow.is_destination);
        let Some(generation) = flow.generations.get_mut(&number) else {
            return Err(DropReason::Stale);
        };
        let was_whole = generation.is_whole();
        let innovative = generation.absorb(packet, cx.now).ok_or(DropReason::Malformed)?;
        let whole = generation.is_whole() && !was_whole;
        let answers = generation.answers();
        if sent_here || innovative {
            self.tallies.heard(start.source, start.destination, innovative);
        }
        // What earns credits (6.3.2): where a relay knows its rank, what is innovative; elsewhere what is sent to it.
        let earns = if answers { innovative } else { sent_here };
        if is_destination {
            self.deliver(key, cx);
        } else if let Some(next) = next.filter(|_| earns) {
            self.credit(key, number, packet, next, cx);
        }
        if whole && (is_destination || answers) {
            self.owe((start, number), false, cx);
        }
        Ok(if innovative { self.follow(&(start, number), packet) } else { Found::new() })
    }

    /// A relay that does not know its rank passes on whatever is sent to it. Of a combination that brings it nothing, and that it
    /// need not be able to take apart, something it has of the same generation stands in for the packet.
    fn stand_in(&mut self, key: Key, number: u32, cx: &mut Context<'_>) {
        let Some(flow) = self.flows.get(&key) else { return };
        let Some(next) = flow.next.filter(|_| !flow.is_destination) else { return };
        let generation = flow.generations.get(&number).filter(|generation| !generation.answers());
        if let Some(packet) = generation.and_then(|generation| generation.coder().combine(cx.rng)) {
            self.credit(key, number, &packet, next, cx);
        }
    }

    fn credit(
        &mut self,
        key: Key,
        number: u32,
        packet: &Packet,
        next: NodeId,
        cx: &mut Context<'_>,
    ) {
        let flow = self.flows.get_mut(&key);
        let Some(generation) = flow.and_then(|flow| flow.generations.get_mut(&number)) else {
            return;
        };
        if !generation.is_verbatim() {
            let success = self.meter.success(cx.topology, cx.me, cx.me, next);
            let room = usize::from(generation.head.room);
            generation.sending.earn(self.rules.redundancy.each(room, success), cx.now);
        } else if !generation.enqueue(packet.clone(), cx.now) {
            cx.counters.drop(DropReason::Full);
        }
    }

    /// Hands up what is there in order.
    pub(super) fn deliver(&mut self, key: Key, cx: &mut Context<'_>) {
        let Some(flow) = self.flows.get_mut(&key) else { return };
        let (tallies, events) = (&mut self.tallies, &mut *cx.events);
        flow.deliver(|packet| {
            tallies.delivered(key.0, key.1);
            events.push_back(Event::Packet { from: key.0, packet });
        });
    }
}

fn padded(payload: &[u8], head: &Head) -> Vec<u8> {
    let mut symbol = payload.to_vec();
    symbol.resize(usize::from(head.symbol), 0);
    symbol
}

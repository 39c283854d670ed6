//! Sending (Fig. 4, left): which packets are coded, which are held, and which go as they are.

use super::Xor;
use super::frame::{Data, Native};
use super::hold::Outcome;
use super::numbered::Numbered;
use super::packet::{Direction, Load, Packet, PacketId};
use ncmesh_engine::counters::{DropReason, Payload};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::tunnel::DATA;
use ncmesh_engine::{Context, Filled};
use rand_core::RngCore;

impl Xor {
    /// Puts a packet of another node into the NC buffer: codes it with a packet of the opposite
    /// direction, or lets it wait for one.
    pub(crate) fn relay(&mut self, cx: &mut Context<'_>, mut packet: Packet) {
        self.note_head_ready(cx.now);

        // Both neighbours must be able to decode. If coding is stopped for one of them, the packet
        // neither looks nor waits for a partner.
        let decodes = |node| self.feedback.allows(node, cx.now);
        let direction = packet.direction().filter(|d| decodes(d.previous) && decodes(d.next));

        // Look for a partner among the packets that wait. A pair takes no more space than the
        // partner alone, so this works in a full buffer too.
        if let Some(direction) = direction
            && self.config.coding
        {
            match self.pair(packet, direction, cx.mtu) {
                Ok(()) => return,
                Err(alone) => packet = alone,
            }
        }

        if !self.buffer.has_space() {
            cx.counters.drop(DropReason::Full);
            self.counters.lost(packet.header.id.source, packet.header.destination());
            return;
        }

        // No partner yet: wait for one.
        match direction {
            Some(direction) => {
                packet.hold = self.hold_time(direction, cx.now);
                self.buffer.hold(packet, direction);
            }
            None => self.buffer.push_ready(packet),
        }
    }

    /// Codes a packet with one of the opposite direction, and learns from how long that one waited.
    ///
    /// # Errors
    /// Gives the packet back if no partner waits.
    fn pair(&mut self, packet: Packet, direction: Direction, mtu: usize) -> Result<(), Packet> {
        let min_overlap = self.config.min_overlap;
        let suits = |one: &Packet, other: &Packet| {
            let one_len = one.bytes.len();
            let other_len = other.bytes.len();
            let short = one_len.min(other_len);
            let long = one_len.max(other_len);
            let fits = Data::coded_len(&one.header, &other.header) + long <= mtu;
            fits && short as f64 >= min_overlap * long as f64
        };

        let pairing = self.buffer.pair(packet, direction, suits)?;

        // A ready packet is still paired while it waits for the channel.
        let grace_s = if self.config.late { self.channel_wait_s.value() } else { 0.0 };
        let outcome = Outcome {
            hold: pairing.hold,
            paired_after: Some(pairing.waited),
            grace: Duration::from_secs_f64(grace_s),
        };

        self.holds.learn(pairing.direction, outcome);
        Ok(())
    }

    /// Returns the time for which the next packet of a direction is held: as configured; else, if
    /// its next hop has announced packets, long enough for these; else what has paid so far.
    fn hold_time(&mut self, direction: Direction, now: Instant) -> Duration {
        if let Some(configured) = self.config.hold_time() {
            return configured;
        }
        if !self.config.coding {
            return Duration::ZERO;
        }
        let service_time = self.holds.service_time();
        let announced = self.backlogs.partner_timeout(direction.next, service_time, now);
        announced.unwrap_or_else(|| self.holds.choose(direction))
    }

    /// Notes that a frame is about to be queued. If no other one waits or is on the air, it is at
    /// the head of the queue from now on, and its service time begins.
    pub(crate) fn note_head_ready(&mut self, now: Instant) {
        if !self.buffer.can_transmit(now) && self.on_air.is_none() {
            self.head_since = now;
        }
    }

    /// Appends the next data frame to `out`.
    pub(crate) fn fill_data(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        self.buffer.release(cx.now);
        let load = self.buffer.pop_ready()?;
        self.coding.sent += 1;
        match load {
            Load::Native(mut packet) => {
                if packet.header.sequence == 0 {
                    self.note_unpaired(&packet, cx.now);
                    self.number(&mut packet);
                }

                packet.header.more = self.buffer.has_packet_to(packet.header.next());
                Data::write_native(&packet.header, &packet.bytes, out);
                let to = self.config.unicast.then(|| packet.header.next());
                self.on_air = Some(packet.header);
                cx.counters.note_filled(Payload::Native);
                Some(Filled { kind: DATA, to })
            }
            Load::Coded(mut one, mut other) => {
                self.coding.coded += 1;
                let is_first_attempt = one.header.sequence == 0;
                for packet in [&mut one, &mut other] {
                    self.feedback.note_coded(packet.header.next(), cx.now);
                    self.number(packet);
                    packet.header.more = self.buffer.has_packet_to(packet.header.next());
                }

                // If the frame is lost, both neighbours usually miss it. The sender remembers the
                // pair so that it can be coded again.
                if is_first_attempt {
                    let [one, other] = [&one.header, &other.header]
                        .map(|h| Numbered { neighbour: h.next(), number: h.sequence });
                    self.sender.pair(one, other);
                }

                Data::write_coded(Native::from(&one), Native::from(&other), out);
                self.on_air = Some(one.header);
                cx.counters.note_filled(Payload::Coded);
                Some(Filled { kind: DATA, to: None })
            }
        }
    }

    /// Numbers a packet that goes over this hop for the first time, so that it can be asked for.
    fn number(&mut self, packet: &mut Packet) {
        if self.config.recover && packet.header.sequence == 0 {
            packet.header.sequence = self.sender.number(packet.header.next(), packet);
        }
    }

    /// Learns that a packet is sent without a partner, and how long it waited for the channel.
    fn note_unpaired(&mut self, packet: &Packet, now: Instant) {
        self.channel_wait_s.add((now - packet.hold_ends()).as_secs_f64());
        if let Some(direction) = packet.direction() {
            let hold = packet.hold;
            let grace = Duration::ZERO;
            self.holds.learn(direction, Outcome { hold, paired_after: None, grace });
        }
    }

    /// Returns a name for a new packet of this node. Numbers count up from a random one, so that
    /// a restarted node does not reuse names that its neighbours remember.
    pub(crate) fn next_id(&mut self, cx: &mut Context<'_>) -> PacketId {
        let number = match self.last_number {
            Some(last) => last.wrapping_add(1),
            None => cx.rng.next_u32(),
        };
        self.last_number = Some(number);
        PacketId { source: cx.me, number }
    }
}

//! Sending (Fig. 4, left): what is coded, what is held, and what goes as it is.

use super::Xor;
use super::buffer::{Burden, Packet, Turn};
use super::frame::{Data, PacketId};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::tunnel::DATA;
use ncmesh_engine::{Context, Filled};
use rand_core::RngCore;

impl Xor {
    pub(super) fn relay(&mut self, cx: &mut Context<'_>, packet: Packet) {
        self.note_first(cx.now);
        let allowed = |node| self.feedback.allows(node, cx.now);
        let crosses = |(previous, next): &Turn| allowed(*previous) && allowed(*next);
        let turn = packet.turn().filter(crosses);
        let alone = match turn.filter(|_| self.config.coding) {
            Some(turn) => self.code(packet, turn, cx.mtu),
            None => Some(packet),
        };
        let Some(mut packet) = alone else { return };
        if !self.buffer.has_room() {
            cx.counters.drop(DropReason::Full);
            self.tallies.lost(packet.tag.id.source, packet.tag.destination());
            return;
        }
        let Some(turn) = turn else { return self.buffer.send(packet) };
        packet.hold = self.hold_time(turn, cx.now);
        self.buffer.hold(packet, turn);
    }

    /// How long the next packet of this turn is held.
    fn hold_time(&mut self, turn: Turn, now: Instant) -> Duration {
        if let Some(fixed) = self.config.hold_time() {
            return fixed;
        }
        if !self.config.coding {
            return Duration::ZERO;
        }
        let promised = self.promises.patience(turn.1, self.holds.service(), now);
        promised.unwrap_or_else(|| self.holds.next(turn))
    }

    /// Codes a packet with one that waits, for which there is always room; gives it back where none does.
    fn code(&mut self, packet: Packet, turn: Turn, mtu: usize) -> Option<Packet> {
        let (tag, length, least) =
            (packet.tag.clone(), packet.bytes.len(), self.config.min_overlap);
        let suits = |other: &Packet| {
            let (short, long) = (length.min(other.bytes.len()), length.max(other.bytes.len()));
            let fits = Data::len_of_two(&tag, &other.tag) + long <= mtu;
            fits && short as f64 >= least * long as f64
        };
        match self.buffer.pair(packet, turn, suits) {
            Ok(met) => {
                self.holds.learn(met.turn, met.hold, Some(met.waited), self.grace());
                None
            }
            Err(packet) => Some(packet),
        }
    }

    /// How long a packet that was let go may still be paired, on average.
    fn grace(&self) -> Duration {
        let wait_s = if self.config.late { self.channel_wait_s.value() } else { 0.0 };
        Duration::from_secs_f64(wait_s)
    }

    /// A packet is about to be queued: if nothing waits for the channel, it is the first in line.
    pub(super) fn note_first(&mut self, now: Instant) {
        if !self.buffer.is_ready(now) && self.on_air.is_none() {
            self.first_since = now;
        }
    }

    pub(super) fn fill_data(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        self.buffer.release(cx.now);
        let burden = self.buffer.take()?;
        self.coding.sent += 1;
        match burden {
            Burden::One(mut packet) => {
                if packet.tag.order == 0 {
                    self.note_alone(&packet, cx.now);
                    self.number(&mut packet);
                }
                packet.tag.more = self.buffer.has_more(packet.tag.next());
                Data::write_one(&packet.tag, &packet.bytes, out);
                let to = self.config.unicast.then(|| packet.tag.next());
                self.on_air = Some(packet.tag);
                Some(Filled { kind: DATA, to })
            }
            Burden::Two(mut one, mut other) => {
                self.coding.coded += 1;
                let is_new = one.tag.order == 0;
                for packet in [&mut one, &mut other] {
                    self.feedback.sent(packet.tag.next(), cx.now);
                    self.number(packet);
                    packet.tag.more = self.buffer.has_more(packet.tag.next());
                }
                if is_new {
                    let [one, other] = [&one.tag, &other.tag].map(|tag| (tag.next(), tag.order));
                    self.sender.pair(one, other);
                }
                Data::write_two((&one.tag, &one.bytes), (&other.tag, &other.bytes), out);
                self.on_air = Some(one.tag);
                Some(Filled { kind: DATA, to: None })
            }
        }
    }

    /// A packet goes out that met none.
    fn note_alone(&mut self, packet: &Packet, now: Instant) {
        let waited = now - (packet.since + packet.hold);
        self.channel_wait_s.add(waited.as_secs_f64());
        if let Some(turn) = packet.turn() {
            self.holds.learn(turn, packet.hold, None, Duration::ZERO);
        }
    }

    /// A name for a packet of this node that none of its earlier ones, of this start or others, is likely to have.
    pub(super) fn next_id(&mut self, cx: &mut Context<'_>) -> PacketId {
        let number = match self.number {
            Some(last) => last.wrapping_add(1),
            None => cx.rng.next_u32(),
        };
        self.number = Some(number);
        PacketId { source: cx.me, number }
    }
}

//! What neighbours tell each other besides packets: requests for what was missed, reports on what was decoded.

use super::Xor;
use super::buffer::{Burden, Packet};
use super::frame::{self, REPORT, REQUEST};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::toolkit::hop::{Retransmission, WINDOW};
use ncmesh_engine::{Context, Filled, Frame};

impl Xor {
    /// Numbers a packet, if it goes out for the first time.
    pub(super) fn number(&mut self, packet: &mut Packet) {
        if self.config.recover && packet.tag.order == 0 {
            packet.tag.order = self.sender.number(packet.tag.next(), packet);
        }
    }

    /// Asks for packets that were missed.
    pub(super) fn fill_request(&mut self, cx: &Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let (of, mut numbers) = self.receiver.ask(cx.now)?;
        numbers.truncate(usize::from(WINDOW));
        frame::write_request(of, &numbers, out);
        Some(Filled { kind: REQUEST, to: self.config.unicast.then_some(of) })
    }

    /// Sends what a neighbour missed again.
    pub(super) fn hear_request(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok((of, numbers)) = frame::parse_request(frame.body) else {
            cx.counters.drop(DropReason::Malformed);
            return;
        };
        self.note_first(cx.now);
        // In the order in which they were sent, before all others.
        for number in numbers.into_iter().rev().filter(|_| of == cx.me) {
            let again = self.sender.retransmit(frame.sender, number, cx.now);
            if let Some(again) = again.filter(|_| self.buffer.has_room()) {
                let Retransmission { mut packet, partner: other } = again;
                packet.tag.order = number;
                self.coding.repeated += 1;
                let other = other.map(|(mut other, number)| {
                    other.tag.order = number;
                    other
                });
                let allowed = |packet: &Packet| self.feedback.allows(packet.tag.next(), cx.now);
                self.buffer.send_first(match other {
                    Some(other) if allowed(&packet) && allowed(&other) => {
                        Burden::Two(packet, other)
                    }
                    _ => Burden::One(packet),
                });
            }
        }
    }

    /// Tells what could be decoded.
    pub(super) fn fill_report(&mut self, cx: &Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let mut entries = self.feedback.report(cx.now)?;
        entries.truncate(cx.mtu / 10);
        frame::write_report(&entries, out);
        Some(Filled { kind: REPORT, to: None })
    }

    /// A neighbour tells what it could decode.
    pub(super) fn hear_report(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok(entries) = frame::parse_report(frame.body) else {
            cx.counters.drop(DropReason::Malformed);
            return;
        };
        if let Some((_, heard)) = entries.iter().find(|(node, _)| *node == cx.me) {
            self.feedback.learn(frame.sender, *heard, cx.now);
        }
    }
}

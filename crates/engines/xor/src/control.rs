//! Control frames: requests for packets that were missed, and reports on what was decoded.

use super::Xor;
use super::frame::{REPORT, REQUEST, Report, ReportEntry, Request};
use super::packet::{Load, Packet};
use crate::numbered::{Retransmission, WINDOW};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::{Context, Filled, Frame};

impl Xor {
    /// Appends a request for packets that a neighbour sent and this node missed, if one is due.
    pub(crate) fn fill_request(&mut self, cx: &Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let (neighbour, mut missing) = self.receiver.ask(cx.now)?;
        missing.truncate(usize::from(WINDOW));
        Request { neighbour, missing }.write(out);
        Some(Filled { kind: REQUEST, to: self.config.unicast.then_some(neighbour) })
    }

    /// Handles a request: queues the packets that the neighbour missed before all other frames.
    pub(crate) fn handle_request(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok(request) = Request::parse(frame.body) else {
            cx.counters.drop(DropReason::Malformed);
            return;
        };

        self.note_head_ready(cx.now);
        if request.neighbour != cx.me {
            return;
        }

        // Each packet is put before all others, the latest one first, so that they leave in the
        // order of their numbers.
        for sequence in request.missing.into_iter().rev() {
            let found = self.sender.retransmit(frame.sender, sequence, cx.now);
            // A full buffer drops the repetition, not a packet that it holds already.
            let Some(found) = found.filter(|_| self.buffer.has_space()) else { continue };
            self.coding.repeated += 1;
            let numbered = |mut packet: Packet, sequence| {
                packet.header.sequence = sequence;
                packet
            };

            let Retransmission { packet, partner } = found;
            let packet = numbered(packet, sequence);
            let partner = partner.map(|(partner, sequence)| numbered(partner, sequence));

            // If the packet was coded, its partner was probably lost as well: code them again.
            let decodes = |p: &Packet| self.feedback.allows(p.header.next(), cx.now);
            let load = match partner {
                Some(partner) if decodes(&packet) && decodes(&partner) => {
                    Load::Coded(packet, partner)
                }
                _ => Load::Native(packet),
            };

            self.buffer.push_front(load);
        }
    }

    /// Appends a report on the coded packets that this node heard, if one is due.
    pub(crate) fn fill_report(&mut self, cx: &Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let mut entries = self.feedback.take_report(cx.now)?;
        entries.truncate(cx.mtu / ReportEntry::LEN);
        Report { entries }.write(out);
        Some(Filled { kind: REPORT, to: None })
    }

    /// Handles a report on the coded packets that a neighbour heard, some of them maybe of this
    /// node.
    pub(crate) fn handle_report(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok(report) = Report::parse(frame.body) else {
            cx.counters.drop(DropReason::Malformed);
            return;
        };
        if let Some(entry) = report.entries.iter().find(|entry| entry.neighbour == cx.me) {
            self.feedback.handle_report(frame.sender, entry.count, cx.now);
        }
    }
}

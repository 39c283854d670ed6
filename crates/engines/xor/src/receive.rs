//! Receiving (Fig. 4, right): decoding, order, and delivery or relaying.
//!
//! A frame names each packet's next hop. A packet for this node is taken as it is, or decoded with
//! the packet that it was coded with, which this node has in its cache because it sent it. What
//! cannot be decoded is counted and dropped; the reorder buffer asks for it again.

use super::Xor;
use super::frame::{self, CodedPart, Data};
use super::packet::{Header, Packet, PacketId};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::{Context, Event, Frame};
use std::sync::Arc;

impl Xor {
    /// Handles a data frame.
    pub(crate) fn handle_data(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        // A packet is accepted only from the node that its route names as sender.
        let parsed = Data::parse(frame.body, frame.sender).ok();
        let Some(data) = parsed.filter(|data| data.first().sender() == frame.sender) else {
            cx.counters.drop(DropReason::Malformed);
            return;
        };

        match data {
            Data::Native(header, packet) if header.next() == cx.me => {
                self.backlogs.note(frame.sender, header.more, cx.now);
                self.handle_packet_for_me(cx, frame, header, packet);
            }
            Data::Coded([other, own], payload) | Data::Coded([own, other], payload)
                if own.header.next() == cx.me =>
            {
                self.decode(cx, frame, own, other.header.id, payload);
            }
            // Packets for other nodes are of no use here: this node decodes with those that it
            // sent.
            _ => {}
        }
    }

    /// Decodes the packet for this node out of `payload`, in which it is xored with `other`.
    fn decode(
        &mut self,
        cx: &mut Context<'_>,
        frame: &Frame<'_>,
        own: CodedPart,
        other: PacketId,
        payload: &[u8],
    ) {
        let CodedPart { header, length, check } = own;
        self.backlogs.note(frame.sender, header.more, cx.now);

        // The checksum detects that the cache has other bytes under this name than the coder had,
        // such as after a restart.
        let decoded = self.cache.packet(other).and_then(|other| {
            let mut packet = payload.to_vec();
            frame::xor(&mut packet, other);
            packet.truncate(usize::from(length));
            (frame::checksum(&packet) == check).then_some(packet)
        });

        self.feedback.note_heard(frame.sender, decoded.is_some(), cx.now);
        match decoded {
            Some(packet) => {
                self.coding.decoded += 1;
                self.handle_packet_for_me(cx, frame, header, &packet);
            }
            None => {
                self.coding.undecodable += 1;
                self.counters.heard(header.id.source, header.destination(), false);
                cx.counters.note_payload(false);
                cx.counters.drop(DropReason::Undecodable);
            }
        }
    }

    /// Handles a packet whose next hop is this node.
    fn handle_packet_for_me(
        &mut self,
        cx: &mut Context<'_>,
        frame: &Frame<'_>,
        header: Header,
        packet: &[u8],
    ) {
        // Everything received can be coded with a packet of the opposite direction later, so it is
        // kept for decoding. A packet that is there already is a copy.
        let bytes: Arc<[u8]> = Arc::from(packet);
        let is_new = self.cache.insert(header.id, Arc::clone(&bytes));
        self.counters.heard(header.id.source, header.destination(), is_new);
        cx.counters.note_payload(is_new);
        if !is_new {
            cx.counters.drop(DropReason::Stale);
            return;
        }

        // A packet with a sequence number waits until earlier ones are here or given up.
        if header.sequence == 0 || !self.config.recover {
            self.pass_on(cx, header, bytes);
            return;
        }

        let sequence = header.sequence;
        let packet = (header, bytes);
        let ready = self.receiver.receive(frame.sender, frame.start, sequence, packet, cx.now);
        for (header, bytes) in ready {
            self.pass_on(cx, header, bytes);
        }
    }

    /// Delivers a packet at its destination, relays it elsewhere.
    pub(crate) fn pass_on(&mut self, cx: &mut Context<'_>, header: Header, bytes: Arc<[u8]>) {
        let source = header.id.source;
        let destination = header.destination();
        match header.for_next_hop() {
            Some(header) => self.relay(cx, Packet::new(header, bytes, cx.now)),
            None => {
                self.counters.delivered(source, destination, bytes.len());
                cx.events.push_back(Event::Packet { from: source, packet: bytes.to_vec() });
            }
        }
    }
}

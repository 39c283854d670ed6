//! Buffer of a forwarder that does not code: packets are kept as they are until every child in the
//! tree has them.
//!
//! Two things run side by side. Downward, the [`Arq`] sends the packets to the children. Upward,
//! this node reports to its parent what it holds, when the parent polls it and when it gets a new
//! parent.

use crate::planned::arq::{Arq, MAC_PAUSE, NextPacket, OnAir};
use crate::planned::frame::{Coding, Data};
use crate::planned::packet_set::PacketSet;
use crate::planned::routing::Routing;
use ncmesh_code::Shape;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::{Malformed, TxResult};
use ncmesh_wire::NodeId;

/// Most times that a report is sent if the MAC gives up on it. After that the parent polls again.
/// So does it after a report that is lost in any other way: unlike the toolkit's repeated messages,
/// a report has no timeout of its own.
const REPORT_TRIES: u32 = 12;

/// Packets of one generation at one node, and what its children have of them.
#[derive(Debug)]
pub(super) struct StoredBuffer {
    payloads: Vec<Option<Box<[u8]>>>,
    held: PacketSet,
    arq: Arq,
    /// The packet at the MAC.
    on_air: Option<OnAir>,
    parent: Option<NodeId>,
    /// The report that the parent is to get.
    due_report: Option<DueReport>,
    /// The report at the MAC. A newer one may fall due meanwhile.
    report_on_air: Option<DueReport>,
}

/// A report to the parent, to be filled with what is held when it is sent.
#[derive(Clone, Copy, Debug)]
struct DueReport {
    /// The poll that it answers; 0 if the parent did not poll.
    poll: u32,
    /// Times that the MAC gave up on it.
    tries: u32,
    /// It is not sent before this.
    from: Instant,
}

impl StoredBuffer {
    pub(super) fn new(me: NodeId, routing: &Routing, shape: Shape, now: Instant) -> Self {
        let packets = shape.generation_size() as u8;
        Self {
            payloads: vec![None; shape.generation_size()],
            held: PacketSet::default(),
            arq: Arq::new(routing.children(me), packets, now),
            on_air: None,
            parent: routing.parent(me),
            due_report: None,
            report_on_air: None,
        }
    }

    /// Goes on at another place in the tree. A new parent is told what is held here already.
    pub(super) fn set_routing(&mut self, me: NodeId, routing: &Routing, now: Instant) {
        let parent = routing.parent(me);
        if parent != self.parent {
            self.due_report = Some(DueReport { poll: 0, tries: 0, from: now });
            self.parent = parent;
        }
        self.arq.set_children(routing.children(me), now);
    }

    /// Stores a packet, and returns whether it is new. Only systematic packets travel hop by hop.
    pub(super) fn absorb(&mut self, data: &Data<'_>, now: Instant) -> Result<bool, Malformed> {
        let Coding::Systematic(packet) = data.coding else { return Err(Malformed) };
        let is_new = !self.held.contains(packet);
        if is_new {
            self.payloads[usize::from(packet)] = Some(data.payload.into());
            self.held.insert(packet);
            self.arq.note_gain(now);
        }

        Ok(is_new)
    }

    /// Learns from a packet, after it was absorbed, what its sender has and asks.
    pub(super) fn handle_data(&mut self, sender: NodeId, data: &Data<'_>, now: Instant) {
        // A child that passes a packet on has it: that saves a report.
        if let Coding::Systematic(packet) = data.coding {
            self.arq.note_child_has(sender, packet, now);
        }

        // A poll of the parent is answered. It also shows that the generation goes on, so that a
        // node with nothing to do should make sure that its own children have everything.
        if let Some(poll) = data.header.poll.filter(|_| self.parent == Some(sender)) {
            self.due_report = Some(DueReport { poll, tries: 0, from: now });
            self.arq.poll_if_stalled(self.held, now);
        }
    }

    /// Handles a child's report.
    pub(super) fn handle_report(&mut self, from: NodeId, poll: u32, has: PacketSet, now: Instant) {
        self.arq.handle_report(from, poll, has, now);
    }

    /// Returns the report that is to be sent now: the parent, the poll that it answers, and what is
    /// held.
    pub(super) fn due_report(&self, now: Instant) -> Option<(NodeId, u32, PacketSet)> {
        let report = self.due_report.filter(|report| report.from <= now)?;
        Some((self.parent?, report.poll, self.held))
    }

    /// Notes that the report was handed to the MAC.
    pub(super) fn note_report_sent(&mut self) {
        self.report_on_air = self.due_report.take();
    }

    /// Handles the MAC's report on the report. One that did not arrive is sent again, unless there
    /// is a newer one.
    pub(super) fn handle_report_result(&mut self, result: TxResult, now: Instant) {
        let Some(report) = self.report_on_air.take() else { return };
        let tries = report.tries + 1;
        if result == TxResult::Failed && tries < REPORT_TRIES && self.due_report.is_none() {
            let from = now + MAC_PAUSE * tries;
            self.due_report = Some(DueReport { tries, from, ..report });
        }
    }

    /// Returns the packet to send now, if there is one.
    pub(super) fn next(&self, now: Instant) -> Option<NextPacket> {
        self.arq.next(self.held, now)
    }

    /// Appends index and payload of packet `next`. Returns the child that it goes to, `None` for
    /// broadcast.
    pub(super) fn fill(
        &mut self,
        next: NextPacket,
        is_unicast: bool,
        out: &mut Vec<u8>,
    ) -> Option<NodeId> {
        out.push(next.packet);
        out.extend_from_slice(self.payloads[usize::from(next.packet)].as_deref().unwrap_or(&[]));

        // With several children one broadcast serves all, and the MAC repeats nothing.
        let to = self.arq.only_child().filter(|_| is_unicast);
        self.arq.note_sent(next, self.held);
        self.on_air = Some(OnAir { packet: next.packet, to });
        to
    }

    /// Handles the MAC's report on the packet filled last, which took `packet_time`.
    pub(super) fn handle_tx_result(
        &mut self,
        result: TxResult,
        packet_time: Duration,
        now: Instant,
    ) {
        if let Some(on_air) = self.on_air.take() {
            self.arq.handle_tx_result(on_air, result, packet_time, now);
        }
    }

    /// Returns the first time later than `after` at which there may be something to send.
    pub(super) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let report = self.due_report.map(|report| report.from).filter(|at| *at > after);
        [report, self.arq.poll_timeout(after)].into_iter().flatten().min()
    }
}

//! The engine at one node: its streams, virtual slots and what it transmits (V-A).
//!
//! Trees are soft state. A source floods announcements of its stream. A receiver, and every node on
//! the way to the source, reports to its parent in the shortest-path tree. Reports carry membership
//! (m) and backlog together, so a branch lasts as long as it is reported and ends with silence. In
//! each virtual slot, queues drop what is due and each medium chooses the queue that it serves.

mod receive;
mod report;
mod schedule;
mod streams;

use crate::config::MultirateConfig;
use crate::dropping::Dropping;
use crate::frame::{DATA, DataHeader, REPORT, ReportEntry};
use crate::link_rate::LinkRate;
use crate::parameters::Parameters;
use crate::session::{QueueLimits, Session};
use crate::utility::Utility;
use ncmesh_engine::counters::{DropReason, Payload};
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::live::{ANNOUNCEMENT, Streams, Untimed};
use ncmesh_engine::topology::{Metric, Topology};
use ncmesh_engine::{Class, Context, Engine, Filled, Frame, Offer, TxReport, TxResult};
use ncmesh_wire::{NodeId, ServiceId};
use report::ReportSchedule;
use schedule::{Medium, QueueKey};
use std::collections::BTreeMap;

/// Service number of its frames.
pub const ID: ServiceId = ServiceId(24);

/// Most packets that all queues of a node hold together. A packet in two queues counts twice.
const MAX_PACKETS: u32 = 65_536;
/// Reports that a child may miss before it counts as gone.
const MAX_MISSED_REPORTS: u32 = 5;

/// Multirate multicast at one node.
pub struct Multirate {
    config: MultirateConfig,
    parameters: Parameters,
    rules: Dropping,
    /// Its streams, and the groups that it joined, each with its utility.
    sessions: Streams<Session, Utility>,
    /// Rates of the links to children.
    links: BTreeMap<NodeId, LinkRate>,
    /// The queue that each medium serves in this slot.
    chosen: BTreeMap<Medium, QueueKey>,
    last_served: Medium,
    /// Queue of the packet that was handed to the MAC last; `None` once its outcome is known.
    on_air: Option<QueueKey>,
    /// End of this slot; `None` while there is nothing to decide.
    next_slot: Option<Instant>,
    reports: ReportSchedule,
    /// Version of the topology from which parents were chosen.
    topology_version: u64,
}

impl Multirate {
    /// Returns an engine with these settings and no streams.
    ///
    /// # Errors
    /// One line that names the setting and what is allowed.
    pub fn new(config: MultirateConfig) -> Result<Self, String> {
        let parameters = config.parameters()?;
        Ok(Self {
            rules: Dropping::new(config.policy, &parameters),
            parameters,
            config,
            sessions: Streams::default(),
            links: BTreeMap::new(),
            chosen: BTreeMap::new(),
            last_served: Medium::Radio,
            on_air: None,
            next_slot: None,
            reports: ReportSchedule::default(),
            topology_version: 0,
        })
    }

    /// Returns how many packets queues may hold now.
    fn queue_limits(&self) -> QueueLimits {
        let children =
            self.sessions.known.values().flat_map(|session| session.part.children.values());
        let held: u32 = children.map(crate::child::Child::backlog).sum();
        QueueLimits {
            each: self.parameters.q_bound() as u32,
            remaining: MAX_PACKETS.saturating_sub(held),
        }
    }

    // ---- trees

    /// Adapts to a changed topology, and starts or stops the virtual slots. Every handler and every
    /// command ends with it.
    fn update(&mut self, cx: &mut Context<'_>) {
        // Parents follow the shortest paths, so they may change with any link.
        if self.topology_version != cx.topology.version() {
            self.topology_version = cx.topology.version();
            self.reroute(cx);
        }

        // A node without a part in any stream has no slots, and need not wake up for them.
        let is_active = self.sessions.known.values().any(Session::is_active);
        match (is_active, self.next_slot) {
            (true, None) => self.next_slot = Some(cx.now + self.config.slot()),
            (false, Some(_)) => {
                self.next_slot = None;
                self.chosen.clear();
            }
            _ => {}
        }
    }

    /// Chooses the parent in every tree again. A new parent gets a report soon.
    fn reroute(&mut self, cx: &mut Context<'_>) {
        let mut is_changed = false;
        for (flow, session) in &mut self.sessions.known {
            // Only a node in the tree has something to tell. The old parent overhears the report,
            // which names the new one, and removes this node.
            let parent = parent(cx.topology, flow.source, cx.me);
            is_changed |= parent != session.parent && session.part.receivers() > 0;
            session.parent = parent;
        }

        if is_changed {
            self.report_soon(cx);
        }
    }

    // ---- time

    /// Removes children, streams and links that have been silent for too long.
    fn remove_silent(&mut self, cx: &mut Context<'_>) {
        // Children that crashed or moved away without a leave notice.
        let timeout = self.config.report_period() * MAX_MISSED_REPORTS;
        let mut has_departures = false;
        for session in self.sessions.known.values_mut() {
            let before = session.part.children.len();
            session.part.children.retain(|_, child| cx.now.since(child.heard_at) < timeout);
            if session.part.children.len() < before {
                session.part.note_departure();
                has_departures = true;
            }
        }

        self.sessions.remove_silent(cx);
        if has_departures {
            self.report_soon(cx);
        }

        // Rates of links without a child. This bounds the table, and a neighbour that comes back
        // is measured anew.
        let sessions = &self.sessions.known;
        self.links.retain(|to, _| sessions.values().any(|s| s.part.children.contains_key(to)));
    }

    // ---- filling

    /// Writes a packet of the queue to serve next, if one is to be served.
    fn fill_data(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        // The queue is chosen now, when the channel is granted, from the latest backlogs.
        let (medium, key) = self.next_queue()?;
        let child = self.sessions.known.get_mut(&key.flow)?.part.children.get_mut(&key.child)?;
        let packet = child.queue.as_mut()?.pop()?;
        let header = DataHeader {
            next: key.child,
            flow: key.flow,
            layer: packet.layer as u8,
            seq: packet.seq,
            hops: packet.hops,
        };

        header.write(out);
        out.extend_from_slice(&packet.bytes);

        // The paper allocates a whole slot to one queue (19), so the medium serves this queue until
        // the slot ends or the queue is empty.
        child.sent[packet.layer] += 1;
        self.last_served = medium;
        self.chosen.insert(medium, key);
        self.on_air = Some(key);
        debug_assert!(out.len() <= cx.mtu + ncmesh_wire::frame::OVERHEAD);
        cx.counters.note_filled(Payload::Native);
        Some(Filled { kind: DATA, to: Some(key.child) })
    }
}

/// Returns the neighbour of `me` towards `source` in the shortest-ETX tree from it.
fn parent(topology: &Topology, source: NodeId, me: NodeId) -> Option<NodeId> {
    topology.paths_from(source, Metric::Unicast).parent(me)
}

impl Engine for Multirate {
    fn hears(&self, service: ServiceId) -> bool {
        service == ID
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        // The frame belongs to the slot at its time, so earlier ones end first.
        self.run_slots(cx);
        match frame.kind {
            DATA => match DataHeader::parse(frame.body) {
                Ok((header, bytes)) => self.handle_data(cx, frame.sender, header, bytes),
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            REPORT => match ReportEntry::parse_all(frame.body) {
                Ok(entries) => self.handle_report(cx, frame.sender, &entries),
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            ANNOUNCEMENT => match Untimed::parse(frame.body) {
                Ok(announcement) => self.handle_announcement(cx, frame.sender, announcement),
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            _ => cx.counters.drop(DropReason::Malformed),
        }

        self.update(cx);
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.run_slots(cx);
        self.remove_silent(cx);
        self.sessions.announce_again(cx);
        self.update(cx);
    }

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let own = [self.next_slot, self.reports.next_at()];
        let due = own.into_iter().flatten().filter(|at| *at > after).min();
        [due, self.sessions.poll_timeout(after)].into_iter().flatten().min()
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        // Reports first: decisions are only as good as the backlogs that neighbours know.
        if self.is_report_due(now) || self.sessions.is_due(now) {
            return Some(Offer::of(Class::Control));
        }
        self.next_queue().map(|_| Offer::of(Class::Data))
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        // If the outcome of the last packet was never reported, the report on this frame must not
        // be booked on that packet's queue.
        self.on_air = None;
        self.sessions
            .fill_announcement(cx, out)
            .or_else(|| self.fill_report(cx, out))
            .or_else(|| self.fill_data(cx, out))
    }

    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: TxReport) {
        let Some(key) = self.on_air.take() else { return };

        // Every data packet probes its link (V-A).
        if let Some(link) = self.links.get_mut(&key.child) {
            link.handle_tx_report(&report);
        }

        let session = self.sessions.known.get_mut(&key.flow);
        let child = session.and_then(|session| session.part.children.get_mut(&key.child));
        match (child, report.result) {
            // Under load a child's reports may be lost. The acknowledgment shows that it is there.
            (Some(child), TxResult::Acked) => child.heard_at = cx.now,
            (Some(child), TxResult::Failed) => child.lost += 1,
            _ => {}
        }

        self.update(cx);
    }
}

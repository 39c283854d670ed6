//! Handles frames from neighbours. A neighbour may lie, so its numbers are clamped to what can be
//! true, tables are bounded, and packets are accepted from the parent only.

use super::{Multirate, parent};
use crate::child::{Child, ChildReport};
use crate::frame::{DataHeader, ReportEntry};
use crate::link_rate::LinkRate;
use crate::local_receiver::LocalReceiver;
use crate::packet_queue::Packet;
use crate::parameters::Parameters;
use crate::utility::Utility;
use ncmesh_engine::Context;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::toolkit::live::{Member, Place, Untimed};
use ncmesh_engine::topology::Topology;
use ncmesh_wire::{FlowId, NodeId};

impl Multirate {
    /// Handles a packet: hands it up if this node receives the stream, and queues it for children.
    pub(super) fn handle_data(
        &mut self,
        cx: &mut Context<'_>,
        sender: NodeId,
        header: DataHeader,
        bytes: &[u8],
    ) {
        // Radios hear packets for other nodes too. Nothing is gained from them here.
        let DataHeader { next, flow, seq, hops, .. } = header;
        if next != cx.me {
            return;
        }

        // The stream must be known, and have this layer.
        let layer = usize::from(header.layer);
        let Some(session) = self.sessions.known.get_mut(&flow) else {
            return cx.counters.drop(DropReason::UnknownFlow);
        };
        if layer >= session.part.layers.len() {
            return cx.counters.drop(DropReason::Malformed);
        }

        // Nodes may disagree about the topology for a while. Packets from anyone but the parent are
        // refused, so that they never travel in a circle.
        if session.parent != Some(sender) || !session.note_packet(layer, seq) {
            cx.counters.note_payload(false);
            return cx.counters.drop(DropReason::Stale);
        }

        cx.counters.note_payload(true);

        // The parent has missed that this node left the tree. It is told again.
        if session.part.receivers() == 0 {
            session.part.note_departure();
            self.report_soon(cx);
            return;
        }

        // To the application here, and into the queue of each child.
        let packet = Packet { layer, seq, hops: hops - 1, bytes: bytes.into() };
        if let Some(receiver) = &mut session.part.receiver {
            receiver.receive(&packet);
            cx.events.push_back(session.part.event(layer, bytes.to_vec()));
        }

        if packet.hops > 0 {
            self.replicate(cx, flow, &packet);
        }
    }

    /// Handles a report: its sender joins, stays in or leaves this node's subtree of each stream.
    pub(super) fn handle_report(
        &mut self,
        cx: &mut Context<'_>,
        sender: NodeId,
        entries: &[ReportEntry],
    ) {
        let mut is_changed = false;
        for entry in entries {
            let Some(session) = self.sessions.known.get_mut(&entry.flow) else {
                cx.counters.drop(DropReason::UnknownFlow);
                continue;
            };

            let before = session.part.receivers();

            let member = Member { node: sender, parent: entry.parent, receivers: entry.receivers };
            match session.part.place(member, cx.me, session.parent) {
                Place::Elsewhere { left: true } => session.part.note_departure(),
                Place::Elsewhere { left: false } => {}
                Place::Refused(why) => cx.counters.drop(why),
                // A child joins or stays. Its queue is made with the first packet.
                Place::Child { .. } => {
                    let is_wired = is_listed(&self.config.wired, cx.topology, sender);
                    let new = || Child::new(is_wired, cx.now);
                    let child = session.part.children.entry(sender).or_insert_with(new);
                    child.heard_at = cx.now;
                    child.report = plausible(entry, cx.topology.len(), &self.parameters);

                    // The rate of its link begins with what link-state probes found.
                    let forward = cx.topology.delivery(cx.me, sender);
                    let backward = cx.topology.delivery(sender, cx.me);
                    self.links.entry(sender).or_insert_with(|| LinkRate::new(forward, backward));
                }
            }

            is_changed |= session.part.receivers() != before;
        }

        // m has changed here, so it changes on the whole way to the source.
        if is_changed {
            self.report_soon(cx);
        }
    }

    /// Handles an announcement: a stream is new, has ended, or goes on.
    pub(super) fn handle_announcement(
        &mut self,
        cx: &mut Context<'_>,
        sender: NodeId,
        heard: Untimed,
    ) {
        let flow = heard.flow;
        if !self.sessions.handle_announcement(cx, sender, heard) {
            return;
        }
        if let Some(session) = self.sessions.known.get_mut(&flow) {
            session.parent = parent(cx.topology, flow.source, cx.me);
        }
        self.start_receiving(cx, flow);
    }

    /// Makes this node a receiver of a stream if it has joined its group.
    pub(super) fn start_receiving(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        let has_utility = self.config.policy.has_utilities();
        let parameters = &self.parameters;
        let receiver =
            |utility: &Utility| LocalReceiver::new(utility.clone(), parameters, has_utility);
        if self.sessions.start_receiving(flow, receiver) {
            // The report grafts this node onto the tree.
            self.report_soon(cx);
        }
    }
}

/// Returns a report with its numbers clamped to what can be true: at most as many receivers as
/// there are `nodes`, a backlog that this many queues can hold, and at most the pressure at which
/// receivers ask for nothing.
fn plausible(entry: &ReportEntry, nodes: usize, parameters: &Parameters) -> ChildReport {
    let max_receivers = u32::try_from(nodes.max(1)).unwrap_or(u32::MAX);
    let receivers = u32::from(entry.receivers).min(max_receivers);
    let all = f64::from(receivers);
    let q_bound = parameters.q_bound();
    ChildReport {
        receivers,
        downstream: f64::from(entry.backlog).clamp(-q_bound, (all + 1.0) * q_bound),
        pressure: f64::from(entry.pressure).clamp(0.0, all * parameters.threshold()),
    }
}

/// Returns whether `node` is in a list of names and ids.
fn is_listed(list: &[String], topology: &Topology, node: NodeId) -> bool {
    let name = topology.state(node).map(|state| state.name.as_str());
    let id = node.to_string();
    list.iter().any(|listed| Some(listed.as_str()) == name || *listed == id)
}

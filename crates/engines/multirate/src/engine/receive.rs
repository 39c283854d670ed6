//! Handles frames from neighbours. A neighbour may lie, so its numbers are clamped to what can be
//! true, tables are bounded, and packets are accepted from the parent only.

use super::{MAX_CHILDREN, MAX_SESSIONS, Multirate, parent};
use crate::child::{Child, ChildReport};
use crate::frame::{Announcement, DataHeader, ReportEntry};
use crate::link_rate::LinkRate;
use crate::local_receiver::LocalReceiver;
use crate::packet_queue::Packet;
use crate::parameters::Parameters;
use crate::session::Session;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::topology::Topology;
use ncmesh_engine::{Context, Event};
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
        let Some(session) = self.sessions.get_mut(&flow) else {
            return cx.counters.drop(DropReason::UnknownFlow);
        };
        if layer >= session.layers.len() {
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
        if session.receivers() == 0 {
            session.note_departure();
            self.report_soon(cx);
            return;
        }

        // To the application here, and into the queue of each child.
        let packet = Packet { layer, seq, hops: hops - 1, bytes: bytes.into() };
        if let Some(receiver) = &mut session.receiver {
            receiver.receive(&packet);
            let (group, layer) = (session.group.clone(), session.layers[layer].clone());
            cx.events.push_back(Event::StreamPacket { flow, group, layer, packet: bytes.to_vec() });
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
            let Some(session) = self.sessions.get_mut(&entry.flow) else {
                cx.counters.drop(DropReason::UnknownFlow);
                continue;
            };
            let before = session.receivers();

            // Reports are broadcast, so a child that has changed its parent, or leaves, is heard
            // and removed.
            if entry.parent != cx.me || entry.receivers == 0 {
                if session.children.remove(&sender).is_some() {
                    session.note_departure();
                }
            } else if session.parent == Some(sender) || entry.flow.source == sender {
                // A node's parent cannot be its child. Both routes change at the same time, or one
                // of the two lies.
                cx.counters.drop(DropReason::Stale);
            } else if session.has_ended() {
                cx.counters.drop(DropReason::UnknownFlow);
            } else if session.children.len() >= MAX_CHILDREN
                && !session.children.contains_key(&sender)
            {
                cx.counters.drop(DropReason::Full);
            } else {
                // A child joins or stays. Its queue is made with the first packet.
                let is_wired = is_listed(&self.config.wired, cx.topology, sender);
                let new = || Child::new(is_wired, cx.now);
                let child = session.children.entry(sender).or_insert_with(new);
                child.heard_at = cx.now;
                child.report = plausible(entry, cx.topology.len(), &self.parameters);

                // The rate of its link begins with what link-state probes found.
                let forward = cx.topology.delivery(cx.me, sender);
                let backward = cx.topology.delivery(sender, cx.me);
                self.links.entry(sender).or_insert_with(|| LinkRate::new(forward, backward));
            }
            is_changed |= session.receivers() != before;
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
        heard: Announcement,
    ) {
        let (flow, version) = (heard.flow, heard.version);

        // A neighbour repeats an announcement of this node, or lies about it.
        if flow.source == cx.me {
            self.flood.overheard(&flow, &version, sender);
            return self.supersede(cx, &heard);
        }

        let is_full = self.sessions.len() >= MAX_SESSIONS;
        match self.sessions.get_mut(&flow) {
            // The end of a stream that is not known here: there is nothing to end or to pass on.
            None if heard.layers.is_empty() => return,
            None if is_full => return cx.counters.drop(DropReason::Full),
            // A new stream. This node passes the announcement on, and receives the stream if it
            // has joined the group.
            None => {
                let mut session = Session::new(heard, cx.now);
                session.parent = parent(cx.topology, flow.source, cx.me);
                self.sessions.insert(flow, session);
                self.flood.publish(flow, version, cx.now, cx.rng);
                self.start_receiving(cx, flow);
            }
            Some(known) if version > known.announcement.version => {
                // Group and layers of a stream never change, so a later announcement only updates
                // its counts or ends it. An end that was a lie is revoked by the source's next
                // announcement, with which the stream begins anew.
                let ends = heard.layers.is_empty();
                let was_ended = known.has_ended();
                if ends {
                    known.end();
                } else if was_ended {
                    let parent = known.parent;
                    *known = Session::new(heard.clone(), cx.now);
                    known.parent = parent;
                }
                known.handle_announcement(version, heard.sent, cx.now);
                self.flood.publish(flow, version, cx.now, cx.rng);
                if was_ended && !ends {
                    self.start_receiving(cx, flow);
                }
            }
            // An old announcement. Its sender has it, which the flood takes note of below.
            Some(_) => {}
        }
        self.flood.overheard(&flow, &version, sender);
    }

    /// Announces one of this node's own streams again if another node announced it with a later
    /// version. The new announcement replaces the false one everywhere.
    fn supersede(&mut self, cx: &mut Context<'_>, heard: &Announcement) {
        let session = self.sessions.get_mut(&heard.flow);
        let session = session.filter(|session| session.source.is_some());
        let Some(session) = session.filter(|s| heard.version > s.announcement.version) else {
            return;
        };
        session.announce_after(heard.version, cx.now);
        self.flood.publish(heard.flow, session.announcement.version, cx.now, cx.rng);
    }

    /// Makes this node a receiver of a stream if it has joined its group.
    pub(super) fn start_receiving(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        // A source does not receive its own stream.
        let Some(session) = self.sessions.get_mut(&flow) else { return };
        let Some(utility) = self.joined.get(&*session.group) else { return };
        if session.source.is_some() || session.has_ended() {
            return;
        }
        let has_utility = self.config.policy.has_utilities();
        let receiver = LocalReceiver::new(utility.clone(), &self.parameters, has_utility);
        session.receiver = Some(receiver);

        // The report grafts this node onto the tree.
        self.report_soon(cx);
    }
}

/// Returns a report with its numbers clamped to what can be true: at most as many receivers as
/// there are `nodes`, a backlog that this many queues can hold, and at most the pressure at which
/// receivers ask for nothing.
fn plausible(entry: &ReportEntry, nodes: usize, parameters: &Parameters) -> ChildReport {
    let max_receivers = u32::try_from(nodes.max(1)).unwrap_or(u32::MAX);
    let receivers = u32::from(entry.receivers).min(max_receivers);
    let (all, q_bound) = (f64::from(receivers), parameters.q_bound());
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

//! Frames of neighbours, none of them believed further than it can do harm.

use super::Parameters;
use super::backlog::Packet;
use super::engine::{MAX_CHILDREN, MAX_SESSIONS, Multirate, parent};
use super::frame::{Announcement, Entry, Header};
use super::rate::LinkRate;
use super::session::{Child, Session};
use super::taking::Taking;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::topology::Topology;
use ncmesh_engine::{Context, Event};
use ncmesh_wire::{FlowId, NodeId};

impl Multirate {
    pub(super) fn hear_data(
        &mut self,
        cx: &mut Context<'_>,
        sender: NodeId,
        header: Header,
        bytes: &[u8],
    ) {
        let Header { next, flow, seq, hops, .. } = header;
        if next != cx.me {
            return;
        }
        let layer = usize::from(header.layer);
        let Some(session) = self.sessions.get_mut(&flow) else {
            return cx.counters.drop(DropReason::UnknownFlow);
        };
        if layer >= session.layers.len() {
            return cx.counters.drop(DropReason::Malformed);
        }
        // From nobody but the parent: whatever neighbours think, packets go down a tree.
        if session.parent != Some(sender) || !session.is_new(layer, seq) {
            return cx.counters.drop(DropReason::Stale);
        }
        if session.receivers() == 0 {
            // The sender did not hear that this node left.
            session.part();
            self.report_soon(cx);
            return;
        }
        let packet = Packet { layer, seq, hops: hops - 1, bytes: bytes.into() };
        if let Some(taking) = &mut session.taking {
            taking.receive(&packet);
            let (group, layer) = (session.group.clone(), session.layers[layer].clone());
            cx.events.push_back(Event::StreamPacket { flow, group, layer, packet: bytes.to_vec() });
        }
        if packet.hops > 0 {
            self.replicate(cx, flow, &packet);
        }
    }

    /// Puts a packet into the queue of each next hop.
    pub(super) fn replicate(&mut self, cx: &mut Context<'_>, flow: FlowId, packet: &Packet) {
        let room = self.room();
        let Some(session) = self.sessions.get_mut(&flow) else { return };
        for _ in 0..session.replicate(packet, &self.rules, room, cx.now) {
            cx.counters.drop(DropReason::Full);
        }
    }

    pub(super) fn hear_report(&mut self, cx: &mut Context<'_>, sender: NodeId, entries: &[Entry]) {
        let mut news = false;
        for entry in entries {
            let Some(session) = self.sessions.get_mut(&entry.flow) else {
                cx.counters.drop(DropReason::UnknownFlow);
                continue;
            };
            let before = session.receivers();
            if entry.parent != cx.me || entry.receivers == 0 {
                if session.children.remove(&sender).is_some() {
                    session.part();
                }
            } else if session.parent == Some(sender) || entry.flow.source == sender {
                // Two nodes that each call the other its parent are no tree.
                cx.counters.drop(DropReason::Stale);
            } else if session.has_ended() {
                cx.counters.drop(DropReason::UnknownFlow);
            } else if session.children.len() >= MAX_CHILDREN
                && !session.children.contains_key(&sender)
            {
                cx.counters.drop(DropReason::Full);
            } else {
                let wired = is_named(&self.config.wired, cx.topology, sender);
                let child =
                    session.children.entry(sender).or_insert_with(|| Child::new(wired, cx.now));
                child.heard_at = cx.now;
                (child.receivers, child.downstream, child.pressure) =
                    believable(entry, cx.topology.nodes().count(), &self.parameters);
                let (forward, backward) =
                    (cx.topology.delivery(cx.me, sender), cx.topology.delivery(sender, cx.me));
                self.links.entry(sender).or_insert_with(|| LinkRate::new(forward, backward));
            }
            news |= session.receivers() != before;
        }
        if news {
            self.report_soon(cx);
        }
    }

    pub(super) fn hear_announcement(
        &mut self,
        cx: &mut Context<'_>,
        sender: NodeId,
        heard: Announcement,
    ) {
        let (flow, version) = (heard.flow, heard.version);
        if flow.source == cx.me {
            self.flood.overheard(&flow, &version, sender);
            return self.outdo(cx, &heard);
        }
        let full = self.sessions.len() >= MAX_SESSIONS;
        match self.sessions.get_mut(&flow) {
            None if heard.layers.is_empty() => return,
            None if full => {
                return cx.counters.drop(DropReason::Full);
            }
            None => {
                let mut session = Session::new(heard, cx.now);
                session.parent = parent(cx.topology, flow.source, cx.me);
                self.sessions.insert(flow, session);
                self.flood.publish(flow, version, cx.now, cx.rng);
                self.take_up(cx, flow);
            }
            Some(known) if version > known.announcement.version => {
                // Group and layers of a stream stay what they were, but it may end, and that may have been a lie.
                let (ends, goes_on) = (heard.layers.is_empty(), known.has_ended());
                if ends {
                    known.end();
                } else if goes_on {
                    let parent = known.parent;
                    *known = Session::new(heard.clone(), cx.now);
                    known.parent = parent;
                }
                known.announced(version, heard.sent, cx.now);
                self.flood.publish(flow, version, cx.now, cx.rng);
                if goes_on && !ends {
                    self.take_up(cx, flow);
                }
            }
            Some(_) => {}
        }
        self.flood.overheard(&flow, &version, sender);
    }

    /// Somebody announced a stream of this node's as it did not itself: it says so anew, as a later version.
    fn outdo(&mut self, cx: &mut Context<'_>, heard: &Announcement) {
        let session = self.sessions.get_mut(&heard.flow).filter(|session| session.own.is_some());
        let Some(session) = session.filter(|s| heard.version > s.announcement.version) else {
            return;
        };
        session.announce(heard.version, cx.now);
        self.flood.publish(heard.flow, session.announcement.version, cx.now, cx.rng);
    }

    /// Becomes a receiver of a stream if this node joined its group.
    pub(super) fn take_up(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        let Some(session) = self.sessions.get_mut(&flow) else { return };
        let Some(utility) = self.wishes.get(&*session.group) else { return };
        if session.own.is_some() || session.has_ended() {
            return;
        }
        let has_say = self.config.policy.has_utilities();
        session.taking = Some(Taking::new(utility.clone(), &self.parameters, has_say));
        self.report_soon(cx);
    }
}

/// Receivers, backlog and virtual pressure of a report as far as they can be true: no more receivers than there are
/// nodes, a backlog that so many queues can hold, and pressures below which no receiver would take anything.
fn believable(entry: &Entry, nodes: usize, parameters: &Parameters) -> (u32, f64, f64) {
    let most = u32::try_from(nodes.max(1)).unwrap_or(u32::MAX);
    let receivers = u32::from(entry.receivers).min(most);
    let (all, q_bound) = (f64::from(receivers), parameters.q_bound());
    let backlog = f64::from(entry.backlog).clamp(-q_bound, (all + 1.0) * q_bound);
    (receivers, backlog, f64::from(entry.pressure).clamp(0.0, all * parameters.threshold()))
}

/// Whether `node` is in a list of names and ids.
fn is_named(list: &[String], topology: &Topology, node: NodeId) -> bool {
    let name = topology.state(node).map(|state| state.name.as_str());
    let id = node.to_string();
    list.iter().any(|listed| Some(listed.as_str()) == name || *listed == id)
}

//! The mesh as this node knows it and the console shows it.
//!
//! A [`View`] is kept by whoever tells the console, and looks at the node again and again: the
//! places of nodes and links in its lists must stay what they are. A node knows its own counters,
//! what it hears of its neighbours, and the link state of all. What only others know is unknown,
//! not zero; [`Meta::observer`] says whose view it is.

use super::Node;
use ncmesh_console::schema::{
    Count, Event, EventKind, Flow, FlowState, Hop, KEY_S, Key, Layer, Link, LinkTable, Meta,
    NodeTable, ReceiverState, RolloutState, SCHEMA, Source, Stage, Stream, StreamReceiverState,
    StreamState, TICK_S, Transfer, TransferState, seconds, share,
};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::{self, Direction, TransferStatus};
use ncmesh_engine::name::{harmless, harmless_file_name};
use ncmesh_engine::stream::StreamStatus;
use ncmesh_engine::time::Instant;
use ncmesh_engine::tunnel::{CodingStatus, FlowStatus};
use ncmesh_host::console::{
    GivenUp, received_values, receiving_values, sending_values, set_sent, source_values, stage,
};
use ncmesh_wire::{FlowId, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// Most transfers, flows, streams and roll-outs that are shown of one start of the daemon.
const MAX_SHOWN: usize = 4096;

/// Most links that are shown of one start of the daemon. Nodes come and go, and a member may tell
/// of links that do not exist.
const MOST_LINKS: usize = 1 << 16;

/// Drops of one reason in a second that make an event.
const MANY_DROPS: u64 = 10;

/// State of a console: all that it was told so far.
#[derive(Debug)]
pub struct View {
    meta: Meta,
    nodes: BTreeMap<NodeId, usize>,
    links: BTreeMap<(NodeId, NodeId), usize>,
    transfers: BTreeMap<(FlowId, bool), usize>,
    flows: BTreeMap<(&'static str, NodeId, NodeId), usize>,
    streams: BTreeMap<FlowId, usize>,
    rollouts: BTreeMap<Count, usize>,
    state: Key,
    neighbours: BTreeSet<NodeId>,
    hints: BTreeSet<String>,
    drops: BTreeMap<DropReason, u64>,
    drops_s: f64,
    events: Vec<Event>,
}

impl View {
    /// Returns what there is.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Sets the time between two looks, s.
    pub fn tell_every(&mut self, tick_s: f64) {
        self.meta.tick_s = tick_s;
    }

    /// Returns the state at the last look.
    #[must_use]
    pub fn state(&self) -> &Key {
        &self.state
    }

    /// Takes what happened since it was taken last.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn note(&mut self, node: NodeId, what: EventKind) {
        self.events.push(Event { time_s: self.state.time_s, node: Some(node.0), what });
    }
}

impl View {
    /// Returns a view of a node's that was told nothing.
    #[must_use]
    pub fn of(daemon: &Node) -> Self {
        // Lists begin empty. Places in them never move, because ticks tell values by place.
        let schemes = daemon.stack.registry().entries().map(|entry| entry.name.to_owned());

        Self {
            meta: Meta {
                schema: SCHEMA,
                source: Source::Daemon,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                scenario: None,
                seed: None,
                schemes: schemes.collect(),
                bit_rate_bps: None,
                tick_s: TICK_S,
                key_s: KEY_S,
                observer: Some(daemon.id().0),
                nodes: Vec::new(),
                links: Vec::new(),
                transfers: Vec::new(),
                flows: Vec::new(),
                streams: Vec::new(),
                rollouts: Vec::new(),
            },
            nodes: BTreeMap::new(),
            links: BTreeMap::new(),
            transfers: BTreeMap::new(),
            flows: BTreeMap::new(),
            streams: BTreeMap::new(),
            rollouts: BTreeMap::new(),
            state: Key::default(),
            neighbours: BTreeSet::new(),
            hints: BTreeSet::new(),
            drops: BTreeMap::new(),
            drops_s: 0.0,
            events: Vec::new(),
        }
    }

    /// Brings it up to date with what a node knows now.
    pub fn look(&mut self, daemon: &Node) {
        self.state.time_s = seconds(daemon.clock.now().as_secs_f64());
        // Nodes come before all that refers to them.
        self.look_at_nodes(daemon);
        self.look_at_links(daemon);
        for status in daemon.stack.transfers() {
            self.look_at_transfer(daemon, &status);
        }
        self.look_at_flows(daemon);
        for (scheme, status) in daemon.stack.streams() {
            self.look_at_stream(daemon, scheme, &status);
        }
        self.look_at_rollout(daemon);
        self.look_at_problems(daemon);
    }

    fn look_at_nodes(&mut self, daemon: &Node) {
        // Neighbours that are heard, and whose link state has not come, are shown too.
        let topology = daemon.stack.topology();
        let inbound: BTreeSet<NodeId> = daemon.stack.inbound().map(|(node, _)| node).collect();
        let there: BTreeSet<NodeId> =
            topology.nodes().chain(inbound.iter().copied()).chain([daemon.id()]).collect();
        for node in &there {
            let place = *self.nodes.entry(*node).or_insert_with(|| {
                let node = ncmesh_console::schema::Node {
                    id: node.0,
                    name: String::new(),
                    position: None,
                };
                self.meta.nodes.push(node);
                self.meta.nodes.len() - 1
            });
            // Name and position of a neighbour may come later.
            self.meta.nodes[place].name = harmless(&daemon.name_of(*node));
            self.meta.nodes[place].position = daemon.position_of(*node);
        }

        let mut table = NodeTable::unknown(self.meta.nodes.len());

        // A node is up while somebody hears it. Its link state is kept for longer.
        let mut up = topology.around(daemon.id());
        up.extend(&inbound);
        table.up = self.meta.nodes.iter().map(|node| up.contains(&NodeId(node.id))).collect();
        let own = self.nodes[&daemon.id()];
        set_sent(&mut table, own, daemon.stack.counters());
        let queued: u64 = daemon.stack.flows().iter().map(|(_, flow)| flow.credits).sum();
        table.queue[own] = Some(u32::try_from(queued).unwrap_or(u32::MAX));

        let before = std::mem::replace(&mut self.state.nodes, table);
        // Only changes are events, so the state before is compared.
        for (place, was_up) in before.up.into_iter().enumerate() {
            let is_up = self.state.nodes.up[place];
            if was_up != is_up {
                let node = NodeId(self.meta.nodes[place].id);
                self.note(node, if is_up { EventKind::NodeUp } else { EventKind::NodeDown });
            }
        }

        let before = std::mem::take(&mut self.neighbours);
        for neighbour in inbound.difference(&before) {
            self.note(daemon.id(), EventKind::NeighborUp { neighbor: neighbour.0 });
        }
        for neighbour in before.difference(&inbound) {
            self.note(daemon.id(), EventKind::NeighborDown { neighbor: neighbour.0 });
        }

        self.neighbours = inbound;
    }

    fn look_at_links(&mut self, daemon: &Node) {
        // Deliveries that other nodes measured, as they have told them.
        let topology = daemon.stack.topology();
        let me = daemon.id();
        let told = topology.states().flat_map(|(to, state)| {
            state.hears.iter().map(move |(from, delivery)| ((*from, to), *delivery))
        });
        // A measurement here is newer than what this node has told.
        let mut deliveries: BTreeMap<(NodeId, NodeId), f64> =
            told.filter(|((_, to), _)| *to != me).collect();
        deliveries.extend(daemon.stack.inbound().map(|(from, delivery)| ((from, me), delivery)));

        // Bounded, because the link states of others decide how many there are. A node may be heard
        // by others before anything is known of itself: then its links wait for it.
        for link in deliveries.keys() {
            let are_known = self.nodes.contains_key(&link.0) && self.nodes.contains_key(&link.1);
            let is_new = !self.links.contains_key(link);
            if are_known && is_new && self.links.len() < MOST_LINKS {
                self.links.insert(*link, self.meta.links.len());
                let from = link.0.0;
                let to = link.1.0;
                self.meta.links.push(Link { from, to, loss: None, ports: Vec::new() });
            }
        }

        let mut table = LinkTable::unknown(self.meta.links.len());
        for ((from, to), place) in &self.links {
            table.delivery[*place] = deliveries.get(&(*from, *to)).copied().map(share);
            // Only the receiver of a link knows what came over it, so these are known for links to
            // here.
            if *to == me {
                let counted = daemon.stack.counters().usefulness(*from);
                table.heard[*place] = Some(counted.frames.into());
                table.innovative[*place] = Some(counted.innovative.into());
                table.redundant[*place] = Some(counted.redundant.into());
                if daemon.ports.are_several() {
                    let ways = daemon.ports.ways_to(*from, &daemon.stack).into_iter();
                    self.meta.links[*place].ports = ways.map(|way| way.port).collect();
                }
            }
        }

        self.state.links = table;
    }

    fn look_at_transfer(&mut self, daemon: &Node, status: &TransferStatus) {
        let is_sending = status.direction == Direction::Sending;
        let me = daemon.id().0;

        // A transfer keeps its place for as long as the view exists. Beyond `MAX_SHOWN` no more are
        // shown.
        let known = self.transfers.get(&(status.flow, is_sending)).copied();
        let place = match known {
            Some(place) => place,
            None if self.meta.transfers.len() >= MAX_SHOWN => return,
            None => {
                let receivers = status.receivers.iter().map(|receiver| receiver.node.0);
                self.meta.transfers.push(Transfer {
                    id: status.flow.to_string(),
                    name: harmless_file_name(&status.name),
                    scheme: daemon.stack.transfer_scheme(status.flow).unwrap_or("").to_owned(),
                    from: status.flow.source.0,
                    to: if is_sending { receivers.collect() } else { vec![me] },
                    bytes: status.size.into(),
                    generations: None,
                });
                self.state.transfers.push(TransferState::default());
                let place = self.meta.transfers.len() - 1;
                self.transfers.insert((status.flow, is_sending), place);
                place
            }
        };

        let stage = stage(status.stage);
        let mut state = TransferState::default();
        if is_sending {
            // Only a receiver knows what it has heard.
            let others = status.receivers.iter().map(|receiver| ReceiverState {
                node: receiver.node.0,
                stage: receiver_stage(receiver.state),
                bytes: receiver.bytes.into(),
                finished_s: finished_s(receiver_stage(receiver.state), receiver.finished, status),
                ..ReceiverState::default()
            });
            source_values(status).tell(&mut state);
            state.stage = Some(stage);
            state.forwarders = Some(status.forwarders.iter().map(|node| node.0).collect());
            state.receivers = others.collect();
        } else {
            let mut own = ReceiverState { node: me, stage, ..ReceiverState::default() };
            received_values(status).tell(&mut own);
            own.finished_s = finished_s(stage, status.finished, status);
            state.receivers.push(own);
        }

        // The stage is an event when it changes. At a receiver, its own stage counts.
        let before = std::mem::replace(&mut self.state.transfers[place], state);
        let transfer = place as u32;
        let was = match before.receivers.first() {
            Some(own) if !is_sending => own.stage,
            _ => before.stage.unwrap_or_default(),
        };
        if was != stage {
            self.note(daemon.id(), EventKind::Transfer { transfer, stage });
        }

        for receiver in &status.receivers {
            let id = receiver.node.0;
            let was = before.receivers.iter().find(|r| r.node == id).map(|r| r.stage);
            // Only a receiver that was known before can have become complete.
            let is_done = receiver_stage(receiver.state) == Stage::Complete;
            if is_done && was.is_some_and(|was| was != Stage::Complete) {
                self.note(daemon.id(), EventKind::ReceiverDone { transfer, receiver: id });
            }
        }
    }

    fn look_at_flows(&mut self, daemon: &Node) {
        let coding = daemon.stack.coding();
        for (scheme, status) in daemon.stack.flows() {
            let FlowStatus { source, destination, .. } = status;

            // A flow keeps its place, as transfers do.
            let known = self.flows.get(&(scheme, source, destination)).copied();
            let place = match known {
                Some(place) => place,
                None if self.meta.flows.len() >= MAX_SHOWN => continue,
                None => {
                    self.meta.flows.push(Flow {
                        from: source.0,
                        to: destination.0,
                        protocol: None,
                        rate_bps: None,
                        packet_bytes: None,
                    });
                    self.state.flows.push(FlowState::default());
                    let place = self.meta.flows.len() - 1;
                    self.flows.insert((scheme, source, destination), place);
                    place
                }
            };

            let coding = coding.iter().find(|(name, _)| *name == scheme).map(|(_, status)| status);
            let why = coding.map(|status| status.why_not.join("; ")).unwrap_or_default();

            let values = daemon.flow_values(scheme, &status);
            let state = &mut self.state.flows[place];
            values.tell(state);
            state.bits = values.delivered_bytes.map(|bytes| Count(8 * bytes));
            scheme.clone_into(&mut state.scheme);
            state.why = why;
            state.coded_share = coding.and_then(CodingStatus::ratio).map(share);
        }
    }

    fn look_at_stream(&mut self, daemon: &Node, scheme: &str, status: &StreamStatus) {
        let known = self.streams.get(&status.flow).copied();
        let place = match known {
            Some(place) => place,
            None if self.meta.streams.len() >= MAX_SHOWN => return,
            None => {
                let layer = |name: &String| Layer { name: harmless(name), rate_bps: None };
                self.meta.streams.push(Stream {
                    group: harmless(&status.group),
                    scheme: scheme.to_owned(),
                    from: status.flow.source.0,
                    layers: status.layers.iter().map(layer).collect(),
                    to: Vec::new(),
                });
                self.state.streams.push(StreamState::default());
                let place = self.meta.streams.len() - 1;
                self.streams.insert(status.flow, place);
                place
            }
        };

        let layers = status.layers.len();
        let me = daemon.id().0;

        let GivenUp { no_room, late } = GivenUp::of(status, layers);
        let mut state = StreamState { no_room, late, ..StreamState::default() };
        if let Some(sending) = &status.sending {
            sending_values(sending, layers).tell(&mut state);
        }
        // A node knows its own reception only, so there is one receiver at most.
        if let Some(receiving) = &status.receiving {
            let mut receiver = StreamReceiverState { node: me, ..StreamReceiverState::default() };
            let values = receiving_values(receiving, layers);
            values.tell(&mut receiver);
            receiver.bits = values.bytes.iter().map(|bytes| Count(bytes * 8)).collect();
            let problem = receiving.problem.as_ref().map(ToString::to_string);
            receiver.problem = problem.unwrap_or_default();
            state.receivers.push(receiver);
        }

        state.tree.extend(status.parent.map(|parent| Hop { node: me, parent: parent.0 }));
        self.state.streams[place] = state;
    }

    /// Shows the roll-out that the node leads. One that another has replaced stays as it was.
    fn look_at_rollout(&mut self, daemon: &Node) {
        let Some((rollout, state)) = daemon.shown_rollout() else { return };
        let known = self.rollouts.get(&rollout.number).copied();
        let place = match known {
            Some(place) => place,
            None if self.meta.rollouts.len() >= MAX_SHOWN => return,
            None => {
                let place = self.meta.rollouts.len();
                self.rollouts.insert(rollout.number, place);
                self.meta.rollouts.push(rollout);
                self.state.rollouts.push(RolloutState::default());
                place
            }
        };
        self.state.rollouts[place] = state;
    }

    fn look_at_problems(&mut self, daemon: &Node) {
        // A hint is an event once, when it appears.
        let hints: BTreeSet<String> = daemon.hints().into_iter().collect();
        let before = std::mem::take(&mut self.hints);
        for text in hints.difference(&before) {
            self.note(daemon.id(), EventKind::Hint { text: text.clone() });
        }
        self.hints = hints;

        let seconds = self.state.time_s - self.drops_s;
        if seconds < 1.0 {
            return;
        }

        self.drops_s = self.state.time_s;

        // Frequent drops are a problem, single ones are normal on a radio.
        let drops: Vec<_> = daemon.stack.counters().drops().collect();
        for (reason, now) in drops {
            let frames = now.saturating_sub(self.drops.insert(reason, now).unwrap_or(0));
            if frames as f64 >= MANY_DROPS as f64 * seconds {
                let frames = u32::try_from(frames).unwrap_or(u32::MAX);
                let reason = reason.name().to_owned();
                self.note(daemon.id(), EventKind::Drops { reason, frames, seconds });
            }
        }
    }
}

/// Returns how long a transfer took to a receiver at this stage, s, if it is complete there.
fn finished_s(stage: Stage, finished: Option<Instant>, status: &TransferStatus) -> Option<f64> {
    let took = finished.filter(|_| stage == Stage::Complete)? - status.started;
    Some(seconds(took.as_secs_f64()))
}

fn receiver_stage(state: file::ReceiverState) -> Stage {
    match state {
        file::ReceiverState::Invited => Stage::Waiting,
        file::ReceiverState::Active | file::ReceiverState::Lost => Stage::Open,
        file::ReceiverState::Complete => Stage::Complete,
        file::ReceiverState::Refused(_) => Stage::Refused,
    }
}

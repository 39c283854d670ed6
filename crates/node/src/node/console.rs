//! The mesh as this node knows it and the console shows it.
//!
//! A [`View`] is kept by whoever tells the console, and goes with each call to the node: the places
//! of nodes and links in its lists must stay what they are. A node knows its own counters, what it
//! hears of its neighbours, and the link state of all. What only others know is unknown, not zero;
//! [`Meta::observer`] says whose view it is.

use super::Node;
use ncmesh_console::schema::{
    Count, Event, EventKind, Flow, FlowState, Hop, KEY_S, Key, Layer, Link, LinkTable, Meta,
    NodeTable, ReceiverState, SCHEMA, Source, Stage, Stream, StreamReceiverState, StreamState,
    TICK_S, Transfer, TransferState, seconds, share,
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

/// Most transfers, flows and streams that are shown of one start of the daemon.
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

impl Node {
    /// Returns a view that was told nothing.
    #[must_use]
    pub fn view(&self) -> View {
        // Lists begin empty. Places in them never move, because ticks tell values by place.
        let schemes = self.stack.registry().entries().map(|entry| entry.name.to_owned());
        View {
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
                observer: Some(self.id().0),
                nodes: Vec::new(),
                links: Vec::new(),
                transfers: Vec::new(),
                flows: Vec::new(),
                streams: Vec::new(),
            },
            nodes: BTreeMap::new(),
            links: BTreeMap::new(),
            transfers: BTreeMap::new(),
            flows: BTreeMap::new(),
            streams: BTreeMap::new(),
            state: Key::default(),
            neighbours: BTreeSet::new(),
            hints: BTreeSet::new(),
            drops: BTreeMap::new(),
            drops_s: 0.0,
            events: Vec::new(),
        }
    }

    /// Brings a view up to date.
    pub fn look(&self, view: &mut View) {
        view.state.time_s = seconds(self.clock.now().as_secs_f64());
        // Nodes come before links, transfers and flows, which refer to their places.
        self.look_at_nodes(view);
        self.look_at_links(view);
        for status in self.stack.transfers() {
            self.look_at_transfer(view, &status);
        }
        self.look_at_flows(view);
        for (scheme, status) in self.stack.streams() {
            self.look_at_stream(view, scheme, &status);
        }
        self.look_at_problems(view);
    }

    fn look_at_nodes(&self, view: &mut View) {
        // Neighbours that are heard, and whose link state has not come, are shown too.
        let topology = self.stack.topology();
        let inbound: BTreeSet<NodeId> = self.stack.inbound().map(|(node, _)| node).collect();
        let there: BTreeSet<NodeId> =
            topology.nodes().chain(inbound.iter().copied()).chain([self.id()]).collect();
        for node in &there {
            let place = *view.nodes.entry(*node).or_insert_with(|| {
                let node = ncmesh_console::schema::Node {
                    id: node.0,
                    name: String::new(),
                    position: None,
                };
                view.meta.nodes.push(node);
                view.meta.nodes.len() - 1
            });
            // Name and position of a neighbour may come later.
            view.meta.nodes[place].name = harmless(&self.name_of(*node));
            view.meta.nodes[place].position = self.position_of(*node);
        }

        let mut table = NodeTable::unknown(view.meta.nodes.len());

        // A node is up while somebody hears it. Its link state is kept for longer.
        let mut up = topology.around(self.id());
        up.extend(&inbound);
        table.up = view.meta.nodes.iter().map(|node| up.contains(&NodeId(node.id))).collect();
        let own = view.nodes[&self.id()];
        set_sent(&mut table, own, self.stack.counters());
        let queued: u64 = self.stack.flows().iter().map(|(_, flow)| flow.credits).sum();
        table.queue[own] = Some(u32::try_from(queued).unwrap_or(u32::MAX));

        let before = std::mem::replace(&mut view.state.nodes, table);
        // Only changes are events, so the state before is compared.
        for (place, was_up) in before.up.into_iter().enumerate() {
            let is_up = view.state.nodes.up[place];
            if was_up != is_up {
                let node = NodeId(view.meta.nodes[place].id);
                view.note(node, if is_up { EventKind::NodeUp } else { EventKind::NodeDown });
            }
        }

        let before = std::mem::take(&mut view.neighbours);
        for neighbour in inbound.difference(&before) {
            view.note(self.id(), EventKind::NeighborUp { neighbor: neighbour.0 });
        }
        for neighbour in before.difference(&inbound) {
            view.note(self.id(), EventKind::NeighborDown { neighbor: neighbour.0 });
        }

        view.neighbours = inbound;
    }

    fn look_at_links(&self, view: &mut View) {
        // Deliveries that other nodes measured, as they have told them.
        let topology = self.stack.topology();
        let me = self.id();
        let told = topology.states().flat_map(|(to, state)| {
            state.hears.iter().map(move |(from, delivery)| ((*from, to), *delivery))
        });
        // A measurement here is newer than what this node has told.
        let mut deliveries: BTreeMap<(NodeId, NodeId), f64> =
            told.filter(|((_, to), _)| *to != me).collect();
        deliveries.extend(self.stack.inbound().map(|(from, delivery)| ((from, me), delivery)));

        // Bounded, because the link states of others decide how many there are. A node may be heard
        // by others before anything is known of itself: then its links wait for it.
        for link in deliveries.keys() {
            let are_known = view.nodes.contains_key(&link.0) && view.nodes.contains_key(&link.1);
            let is_new = !view.links.contains_key(link);
            if are_known && is_new && view.links.len() < MOST_LINKS {
                view.links.insert(*link, view.meta.links.len());
                let from = link.0.0;
                let to = link.1.0;
                view.meta.links.push(Link { from, to, loss: None, ports: Vec::new() });
            }
        }

        let mut table = LinkTable::unknown(view.meta.links.len());
        for ((from, to), place) in &view.links {
            table.delivery[*place] = deliveries.get(&(*from, *to)).copied().map(share);
            // Only the receiver of a link knows what came over it, so these are known for links to
            // here.
            if *to == me {
                let counted = self.stack.counters().usefulness(*from);
                table.heard[*place] = Some(counted.frames.into());
                table.innovative[*place] = Some(counted.innovative.into());
                table.redundant[*place] = Some(counted.redundant.into());
                if self.ports.are_several() {
                    let ways = self.ports.ways_to(*from, &self.stack).into_iter();
                    view.meta.links[*place].ports = ways.map(|way| way.port).collect();
                }
            }
        }

        view.state.links = table;
    }

    fn look_at_transfer(&self, view: &mut View, status: &TransferStatus) {
        let is_sending = status.direction == Direction::Sending;
        let me = self.id().0;

        // A transfer keeps its place for as long as the view exists. Beyond `MAX_SHOWN` no more are
        // shown.
        let known = view.transfers.get(&(status.flow, is_sending)).copied();
        let place = match known {
            Some(place) => place,
            None if view.meta.transfers.len() >= MAX_SHOWN => return,
            None => {
                let receivers = status.receivers.iter().map(|receiver| receiver.node.0);
                view.meta.transfers.push(Transfer {
                    id: status.flow.to_string(),
                    name: harmless_file_name(&status.name),
                    scheme: self.stack.transfer_scheme(status.flow).unwrap_or("").to_owned(),
                    from: status.flow.source.0,
                    to: if is_sending { receivers.collect() } else { vec![me] },
                    bytes: status.size.into(),
                    generations: None,
                });
                view.state.transfers.push(TransferState::default());
                let place = view.meta.transfers.len() - 1;
                view.transfers.insert((status.flow, is_sending), place);
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
        let before = std::mem::replace(&mut view.state.transfers[place], state);
        let transfer = place as u32;
        let was = match before.receivers.first() {
            Some(own) if !is_sending => own.stage,
            _ => before.stage.unwrap_or_default(),
        };
        if was != stage {
            view.note(self.id(), EventKind::Transfer { transfer, stage });
        }

        for receiver in &status.receivers {
            let id = receiver.node.0;
            let was = before.receivers.iter().find(|r| r.node == id).map(|r| r.stage);
            // Only a receiver that was known before can have become complete.
            let is_done = receiver_stage(receiver.state) == Stage::Complete;
            if is_done && was.is_some_and(|was| was != Stage::Complete) {
                view.note(self.id(), EventKind::ReceiverDone { transfer, receiver: id });
            }
        }
    }

    fn look_at_flows(&self, view: &mut View) {
        let coding = self.stack.coding();
        for (scheme, status) in self.stack.flows() {
            let FlowStatus { source, destination, .. } = status;

            // A flow keeps its place, as transfers do.
            let known = view.flows.get(&(scheme, source, destination)).copied();
            let place = match known {
                Some(place) => place,
                None if view.meta.flows.len() >= MAX_SHOWN => continue,
                None => {
                    view.meta.flows.push(Flow {
                        from: source.0,
                        to: destination.0,
                        protocol: None,
                        rate_bps: None,
                        packet_bytes: None,
                    });
                    view.state.flows.push(FlowState::default());
                    let place = view.meta.flows.len() - 1;
                    view.flows.insert((scheme, source, destination), place);
                    place
                }
            };

            let coding = coding.iter().find(|(name, _)| *name == scheme).map(|(_, status)| status);
            let why = coding.map(|status| status.why_not.join("; ")).unwrap_or_default();

            let values = self.flow_values(scheme, &status);
            let state = &mut view.state.flows[place];
            values.tell(state);
            state.bits = values.delivered_bytes.map(|bytes| Count(8 * bytes));
            scheme.clone_into(&mut state.scheme);
            state.why = why;
            state.coded_share = coding.and_then(CodingStatus::ratio).map(share);
        }
    }

    fn look_at_stream(&self, view: &mut View, scheme: &str, status: &StreamStatus) {
        let known = view.streams.get(&status.flow).copied();
        let place = match known {
            Some(place) => place,
            None if view.meta.streams.len() >= MAX_SHOWN => return,
            None => {
                let layer = |name: &String| Layer { name: harmless(name), rate_bps: None };
                view.meta.streams.push(Stream {
                    group: harmless(&status.group),
                    scheme: scheme.to_owned(),
                    from: status.flow.source.0,
                    layers: status.layers.iter().map(layer).collect(),
                    to: Vec::new(),
                });
                view.state.streams.push(StreamState::default());
                let place = view.meta.streams.len() - 1;
                view.streams.insert(status.flow, place);
                place
            }
        };

        let layers = status.layers.len();
        let me = self.id().0;

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
        view.state.streams[place] = state;
    }

    fn look_at_problems(&self, view: &mut View) {
        // A hint is an event once, when it appears.
        let hints: BTreeSet<String> = self.hints().into_iter().collect();
        let before = std::mem::take(&mut view.hints);
        for text in hints.difference(&before) {
            view.note(self.id(), EventKind::Hint { text: text.clone() });
        }
        view.hints = hints;

        let seconds = view.state.time_s - view.drops_s;
        if seconds < 1.0 {
            return;
        }

        view.drops_s = view.state.time_s;

        // Frequent drops are a problem, single ones are normal on a radio.
        let drops: Vec<_> = self.stack.counters().drops().collect();
        for (reason, now) in drops {
            let frames = now.saturating_sub(view.drops.insert(reason, now).unwrap_or(0));
            if frames as f64 >= MANY_DROPS as f64 * seconds {
                let frames = u32::try_from(frames).unwrap_or(u32::MAX);
                let reason = reason.name().to_owned();
                view.note(self.id(), EventKind::Drops { reason, frames, seconds });
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

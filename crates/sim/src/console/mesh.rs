//! Nodes, links and neighbours.

use crate::host::Host;
use crate::observe::Snapshot;
use crate::simulation::{Knowledge, SimulationConfig, node_id};
use ncmesh_console::schema::{Count, EventKind, Link, LinkTable, Meta, NodeTable, Places, share};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_host::console::set_sent;
use ncmesh_medium::{CountedLink, Medium, RadioId};
use ncmesh_stack::Stack;
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// Time over which drops are counted, and how many of one reason make an event.
const DROPS_EVERY: Duration = Duration::from_secs(1);
const MANY_DROPS: u64 = 10;

/// State of the nodes at the last look.
pub(super) struct Mesh {
    /// Place of each link (sender, receiver), by ids.
    places: BTreeMap<(u16, u16), usize>,
    /// Name of the first channel, if there are several.
    first: Option<String>,
    /// Whether nodes measure their links.
    is_measured: bool,
    nodes: Vec<Known>,
    /// Time of the last look at drops.
    drops_at: Instant,
}

/// A node as it was at the last look.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Whether it ran; `None` before the first look.
    up: Option<bool>,
    neighbours: BTreeSet<NodeId>,
    drops: BTreeMap<DropReason, u64>,
}

impl Mesh {
    pub(super) fn new(meta: &Meta, config: &SimulationConfig) -> Self {
        let places = meta.links.iter().map(|link| (link.from, link.to)).zip(0..).collect();
        Self {
            places,
            first: config.channel_name(0).map(str::to_owned),
            is_measured: config.knowledge == Knowledge::Own,
            nodes: vec![Known::default(); meta.nodes.len()],
            drops_at: Instant::default(),
        }
    }

    /// Returns the state of nodes and links. Adds links that are seen for the first time to `meta`,
    /// and what happened at nodes to `events`.
    pub(super) fn look(
        &mut self,
        snapshot: &Snapshot<'_>,
        meta: &mut Meta,
        events: &mut Vec<(usize, EventKind)>,
    ) -> (NodeTable, LinkTable) {
        // The channels' own counters. A link that the scenario does not list has a power so low
        // that hardly a frame arrives; it is shown once one did. Only the first channel has radios
        // with positions.
        for CountedLink { from, to, counters } in snapshot.media[0].link_statistics() {
            let link = (node_id(from.0).0, node_id(to.0).0);
            if counters.decoded > 0 && !self.places.contains_key(&link) {
                self.places.insert(link, meta.links.len());
                let ports = self.first.clone().into_iter().collect();
                meta.links.push(Link { from: link.0, to: link.1, loss: None, ports });
            }
        }

        let mut links = LinkTable::unknown(meta.links.len());
        (0..meta.links.len()).for_each(|place| links.begin(place));
        let add = |counter: &mut Option<Count>, frames: u64| {
            let before = counter.map_or(0, |Count(frames)| frames);
            *counter = Some(Count(before + frames));
        };
        // Two nodes may be joined on several channels, and are one link.
        let counted = snapshot.media.iter().flat_map(Medium::link_statistics);
        for CountedLink { from, to, counters } in counted {
            if let Some(place) = self.places.get(&(node_id(from.0).0, node_id(to.0).0)) {
                add(&mut links.heard[*place], counters.decoded);
                add(&mut links.channel[*place], counters.erased);
                add(&mut links.collision[*place], counters.corrupted);
            }
        }

        // Deliveries as the receivers have measured them.
        for (place, link) in meta.links.iter().enumerate() {
            let host = usize::from(link.to).checked_sub(1).and_then(|to| snapshot.hosts.get(to));
            let Some(stack) = host.and_then(Host::stack) else { continue };
            let usefulness = stack.counters().usefulness(NodeId(link.from));
            links.innovative[place] = Some(usefulness.innovative.into());
            links.redundant[place] = Some(usefulness.redundant.into());
            if !self.is_measured {
                let delivery = stack.topology().delivery(NodeId(link.from), NodeId(link.to));
                links.delivery[place] = Some(share(delivery));
            }
        }

        // Each node has its row, and sets the deliveries of the links that it measures.
        let mut nodes = NodeTable::unknown(snapshot.hosts.len());
        for (node, host) in snapshot.hosts.iter().enumerate() {
            set_row(&mut nodes, node, host);
            self.note_neighbours(node, host, &mut links, events);
        }

        if snapshot.at.since(self.drops_at) >= DROPS_EVERY {
            self.note_drops(snapshot, events);
        }

        (nodes, links)
    }

    /// Takes the neighbours of a node, and notes those that are new or gone.
    fn note_neighbours(
        &mut self,
        node: usize,
        host: &Host,
        links: &mut LinkTable,
        events: &mut Vec<(usize, EventKind)>,
    ) {
        let known = &mut self.nodes[node];
        let is_up = host.stack().is_some();
        let was_up = known.up.replace(is_up);
        if was_up.is_some_and(|was_up| was_up != is_up) {
            events.push((node, if is_up { EventKind::NodeUp } else { EventKind::NodeDown }));
            known.drops.clear();
        }

        let mut neighbours = BTreeSet::new();
        for (neighbour, delivery) in host.stack().into_iter().flat_map(Stack::inbound) {
            neighbours.insert(neighbour);
            if let Some(place) = self.places.get(&(neighbour.0, node_id(node).0)) {
                links.delivery[*place] = Some(share(delivery));
            }
        }

        for neighbour in neighbours.difference(&known.neighbours) {
            events.push((node, EventKind::NeighborUp { neighbor: neighbour.0 }));
        }
        for neighbour in known.neighbours.difference(&neighbours) {
            events.push((node, EventKind::NeighborDown { neighbor: neighbour.0 }));
        }

        known.neighbours = neighbours;
    }

    /// Notes the nodes that dropped many frames since the last look at drops.
    fn note_drops(&mut self, snapshot: &Snapshot<'_>, events: &mut Vec<(usize, EventKind)>) {
        let seconds = snapshot.at.since(self.drops_at).as_secs_f64();
        self.drops_at = snapshot.at;
        for (node, host) in snapshot.hosts.iter().enumerate() {
            let Some(stack) = host.stack() else { continue };
            for (reason, drops) in stack.counters().drops() {
                let before = self.nodes[node].drops.insert(reason, drops).unwrap_or(0);
                let frames = drops.saturating_sub(before);
                if frames >= MANY_DROPS {
                    let frames = u32::try_from(frames).unwrap_or(u32::MAX);
                    let reason = reason.name().to_owned();
                    events.push((node, EventKind::Drops { reason, frames, seconds }));
                }
            }
        }
    }
}

/// Returns where the nodes are, as the medium has it.
pub(super) fn places(snapshot: &Snapshot<'_>) -> Places {
    let mut places = Places::default();
    for radio in (0..snapshot.hosts.len()).map(RadioId) {
        let position = snapshot.media[0].position(radio).unwrap_or_default();
        // The farthest is 10,000 km away.
        let [x, y, z] = position.map(|m| (10.0 * m).round() as i32);
        places.x_dm.push(x);
        places.y_dm.push(y);
        places.z_dm.push(z);
    }
    places
}

/// Sets the row of a node.
fn set_row(nodes: &mut NodeTable, node: usize, host: &Host) {
    let stack = host.stack();
    nodes.up[node] = stack.is_some();
    nodes.begin(node);
    if let Some(stack) = stack {
        set_sent(nodes, node, stack.counters());
    }

    // Packets wait in the gateway, in the schemes of tunnels, and in the queues of streams.
    let flows: u64 =
        stack.map(Stack::flows).into_iter().flatten().map(|(_, flow)| flow.credits).sum();
    let streams = stack.map(Stack::streams).into_iter().flatten();
    let queues = streams.flat_map(|(_, stream)| stream.queues);
    let held: u64 = queues.map(|queue| queue.held.iter().map(|n| u64::from(*n)).sum::<u64>()).sum();
    let gateway = host.gateway.as_ref().map_or(0, |gateway| gateway.waiting() as u64);
    nodes.queue[node] = Some(u32::try_from(flows + held + gateway).unwrap_or(u32::MAX));
}

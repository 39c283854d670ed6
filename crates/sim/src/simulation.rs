//! Driver on the virtual clock: runs nodes and medium, one event after the other, from a seed.
//!
//! Nodes and medium are state machines. Each says when it next wants to be called, and the earliest
//! of these times is the next event. `events` has the loop, `streams` the commands for live
//! streams.

mod config;
mod error;
mod events;
mod processing;
mod streams;

use crate::gateway::HostGateway;
use crate::host::{Host, Observation};
use crate::observe::{Observer, Snapshot, What};
use crate::observers::Observers;
use crate::spent::Spent;
pub use config::{Disturbance, Knowledge, Outage, SimulationConfig};
pub use error::SimulationError;
use ncmesh_engine::file::merkle;
use ncmesh_engine::file::{Allowance, Manifest, Outgoing, SendError};
use ncmesh_engine::rng;
use ncmesh_engine::time::Instant;
use ncmesh_engine::topology::{Metric, SharedStates, Topology};
use ncmesh_engine::tunnel::{PacketError, Relaying};
use ncmesh_engine::{PerPort, Port};
use ncmesh_engines::registry;
use ncmesh_host::gateway::GatewayConfig;
use ncmesh_medium::{MacConfig, Medium, MediumError, RadioId, SlotOrder, Statistics};
use ncmesh_stack::Stack;
use ncmesh_wire::{FlowId, NodeId, ServiceId};
use processing::Inboxes;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
pub use streams::StreamArrival;

/// A packet that arrived through a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time of the arrival.
    pub at: Instant,
    /// Node at which it arrived.
    pub to: usize,
    /// Node that sent it.
    pub from: NodeId,
    /// Bytes of the packet.
    pub packet: Vec<u8>,
}

/// An IP packet that a node's gateway handed to its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpArrival {
    /// Time of the arrival.
    pub at: Instant,
    /// Node at which it arrived.
    pub to: usize,
    /// Bytes of the packet.
    pub packet: Vec<u8>,
}

/// An observation at a node.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Time of it.
    pub at: Instant,
    /// Index of the node.
    pub node: usize,
    /// Transfer that began or ended there.
    pub observation: Observation,
}

/// A frame on its way from a medium to a node.
#[derive(Clone, Debug)]
struct Heard {
    /// The port by which it came.
    port: Port,
    frame: Arc<[u8]>,
}

/// A mesh on the virtual clock.
pub struct Simulation {
    config: SimulationConfig,
    /// The medium of each channel.
    media: Vec<Medium>,
    /// The port of each node on each channel, if it has one there.
    ports: Vec<Vec<Option<Port>>>,
    hosts: Vec<Host>,
    /// Timers of all running nodes. A node has one at most.
    timers: BTreeSet<(Instant, usize)>,
    /// Frame of each node that is delivered after the next one (disturbance `reorder`).
    delayed: Vec<Option<Heard>>,
    /// Received frames that nodes are busy with, if that takes time.
    inboxes: Option<Inboxes>,
    /// Random draws of the disturbance.
    disturbance: ChaCha8Rng,
    observers: Observers,
    observations: Vec<Observed>,
    packets: Vec<Arrival>,
    ip_packets: Vec<IpArrival>,
    stream_packets: Vec<StreamArrival>,
    now: Instant,
    /// When nodes move next; `None` if all stay where they are.
    next_move: Option<Instant>,
    /// Number of outages of the configuration that have happened.
    outages: usize,
    /// Buffer for the frame that is being filled.
    out: Vec<u8>,
    /// Whether the medium grants by the weight of offers, so that these must stay up to date.
    is_weighted: bool,
    /// Topology that all nodes know from the start; `None` if they measure it.
    known: Option<Arc<Topology>>,
    /// Link states that the nodes have learned.
    states: SharedStates,
    /// Time of the machine spent on each part, if it is measured.
    spent: Option<Spent>,
    /// Service of each node's latest frame, by channel.
    on_air: Vec<Vec<ServiceId>>,
}

/// A file to multicast.
#[derive(Clone, Debug)]
pub struct NewFile<'a> {
    /// Name of the scheme.
    pub scheme: &'static str,
    /// Index of the source.
    pub from: usize,
    /// Indices of the receivers; without them all other nodes, late joiners included.
    pub to: Option<&'a [usize]>,
    /// Contents.
    pub contents: Vec<u8>,
    /// Airtime and rate that it may take.
    pub allowance: Allowance,
}

impl<'a> NewFile<'a> {
    /// Returns an empty file from a node to others.
    #[must_use]
    pub fn new(scheme: &'static str, from: usize, to: Option<&'a [usize]>) -> Self {
        Self { scheme, from, to, contents: Vec::new(), allowance: Allowance::default() }
    }
}

impl Simulation {
    /// Returns a simulation in which all nodes are switched on at instant 0.
    ///
    /// # Errors
    /// [`SimulationError`] if a setting is invalid.
    pub fn new(config: SimulationConfig) -> Result<Self, SimulationError> {
        let radios = config.medium.radios();
        if config.names.len() != radios {
            return Err(SimulationError::Names { names: config.names.len(), radios });
        }
        config.check_channels()?;

        let media = config.media().cloned().map(Medium::new);
        let mut simulation = Self {
            media: media.collect::<Result<_, _>>()?,
            ports: (0..radios).map(|node| config.ports(node)).collect(),
            hosts: (0..radios).map(|_| Host::new()).collect(),
            timers: BTreeSet::new(),
            delayed: vec![None; radios],
            inboxes: config.processing.map(|time| Inboxes::new(time, radios, config.seed)),
            disturbance: rng::stream(config.seed, NodeId(0), "simulation", "mischief"),
            observers: Observers::default(),
            observations: Vec::new(),
            packets: Vec::new(),
            ip_packets: Vec::new(),
            stream_packets: Vec::new(),
            now: Instant::default(),
            next_move: config.mobility.as_ref().map(|mobility| Instant::default() + mobility.step),
            outages: 0,
            out: Vec::new(),
            known: config.known_beforehand()?,
            states: SharedStates::default(),
            is_weighted: matches!(
                config.medium.mac,
                MacConfig::Slotted { order: SlotOrder::Weight, .. }
            ),
            spent: config.time_parts.then(Spent::default),
            on_air: vec![vec![ServiceId(0); radios]; 1 + config.channels.len()],
            config,
        };

        // All state is there before the first node runs: it sends requests to the medium at once.
        for node in 0..radios {
            simulation.switch_on(node)?;
        }

        Ok(simulation)
    }

    /// Returns the configuration that it was built from.
    #[must_use]
    pub fn config(&self) -> &SimulationConfig {
        &self.config
    }

    /// Returns the time of the virtual clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns a node.
    #[must_use]
    pub fn host(&self, node: usize) -> &Host {
        &self.hosts[node]
    }

    /// Returns whether a node runs and knows no path to another one.
    #[must_use]
    pub fn lacks_path(&self, from: usize, to: usize, metric: Metric) -> bool {
        self.hosts[from].stack().is_some_and(|stack| {
            !stack.topology().paths_from(node_id(from), metric).reaches(node_id(to))
        })
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Returns whether there are no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Returns all observations so far.
    #[must_use]
    pub fn observations(&self) -> &[Observed] {
        &self.observations
    }

    /// Returns the counters of the medium.
    #[must_use]
    pub fn medium_statistics(&self) -> &Statistics {
        self.media[0].statistics()
    }

    /// Returns the counters of a channel's medium; the first channel is 0.
    #[must_use]
    pub fn channel_statistics(&self, channel: usize) -> &Statistics {
        self.media[channel].statistics()
    }

    /// Returns the time that the machine spent on each part so far; `None` unless the configuration
    /// asks for it.
    #[must_use]
    pub fn time_spent(&self) -> Option<&Spent> {
        self.spent.as_ref()
    }

    /// Returns the hash over every frame sent, heard and reported so far, in hexadecimal.
    #[must_use]
    pub fn trace_hash(&self) -> String {
        self.observers.trace.hash()
    }

    /// Returns the number of events that the hash covers.
    #[must_use]
    pub fn trace_events(&self) -> u64 {
        self.observers.trace.events()
    }

    /// Passes every event from now on to `observer`.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        if observer.next_look().is_some() {
            self.media.iter_mut().for_each(Medium::count_links);
        }
        self.observers.add(observer);
    }

    /// Returns whether an observer has failed. The simulation then handles no further events.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.observers.have_failed()
    }

    /// Finishes all observers and removes them.
    ///
    /// # Errors
    /// The first error of an observer, now or before.
    pub fn finish(&mut self) -> std::io::Result<()> {
        self.show(self.now, true);
        self.observers.finish()
    }

    /// Shows the state at `at` to the observers that want to look at it.
    fn show(&mut self, at: Instant, is_last: bool) {
        let Self { hosts, media, observers, .. } = self;
        observers.look(Snapshot { at, hosts, media }, is_last);
    }

    /// Changes the loss of a link.
    ///
    /// # Errors
    /// [`MediumError`] if there is no such link or loss.
    pub fn set_loss(&mut self, from: usize, to: usize, loss: f64) -> Result<(), MediumError> {
        self.media[0].set_loss(RadioId(from), RadioId(to), loss)
    }

    /// Switches a node off, as by a power failure: its memory is lost, its files stay.
    pub fn switch_off(&mut self, node: usize) {
        // The medium forgets a pending request of a radio that is switched off.
        let host = &mut self.hosts[node];
        host.stack = None;
        host.requested = PerPort::default();

        if let Some(timer) = host.timer.take() {
            self.timers.remove(&(timer, node));
        }

        // Frames on their way to the node are lost with it.
        self.delayed[node] = None;
        if let Some(inboxes) = &mut self.inboxes {
            inboxes.clear(node);
        }

        for medium in &mut self.media {
            let _ = medium.set_up(RadioId(node), false);
        }
    }

    /// Cuts a node off a channel, or brings it back. If the node `sees` it, as the link state of a
    /// cable, it uses its other ports at once.
    pub fn set_on_channel(&mut self, node: usize, channel: usize, is_on: bool, sees: bool) {
        let Some(port) = self.ports[node][channel] else { return };
        let _ = self.media[channel].set_up(RadioId(node), is_on);
        let host = &mut self.hosts[node];
        host.requested[port] = false;
        if let Some(stack) = host.stack.as_mut().filter(|_| sees) {
            stack.at(self.now, &mut host.storage).set_port_up(port, is_on);
        }
        self.handle_due(node);
    }

    /// Switches a node on. After a restart it goes on with the files that it was sending.
    ///
    /// # Errors
    /// [`SimulationError`] if a setting is invalid.
    pub fn switch_on(&mut self, node: usize) -> Result<(), SimulationError> {
        // Every start has an epoch and random draws of its own, as a daemon's has.
        let config = self.config.stack(node, self.hosts[node].starts);
        let mut stack = Stack::new(config, registry(), self.now)?;
        stack.share_states(self.states.clone());
        if let Some(known) = &self.known {
            stack.pin_topology(Arc::clone(known));
        }

        for (medium, port) in self.media.iter_mut().zip(&self.ports[node]) {
            if port.is_some_and(|port| port != Port::FIRST) {
                stack.add_port(self.now);
            }
            let _ = medium.set_up(RadioId(node), port.is_some());
        }

        // The files in `outgoing` are what a daemon would find on its disk.
        let host = &mut self.hosts[node];
        host.starts += 1;
        for (scheme, outgoing) in &host.outgoing {
            let scheme = registry().scheme(scheme).ok_or(SendError::UnknownScheme)?;
            stack.at(self.now, &mut host.storage).send_file(scheme, outgoing.clone())?;
        }

        host.stack = Some(stack);
        self.handle_due(node);
        Ok(())
    }

    /// Multicasts a file, as [`send`](Self::send) does.
    ///
    /// # Errors
    /// [`SimulationError`] if the node is switched off or the scheme refuses the file.
    pub fn send_file(
        &mut self,
        scheme: &'static str,
        from: usize,
        to: Option<&[usize]>,
        contents: Vec<u8>,
    ) -> Result<FlowId, SimulationError> {
        self.send(NewFile { contents, ..NewFile::new(scheme, from, to) })
    }

    /// Multicasts a file.
    ///
    /// # Errors
    /// [`SimulationError`] if the node is switched off or the scheme refuses the file.
    pub fn send(&mut self, file: NewFile<'_>) -> Result<FlowId, SimulationError> {
        let NewFile { scheme, from, to, contents, allowance } = file;
        let receivers = match to {
            Some(to) => to.iter().map(|i| node_id(*i)).collect(),
            None => (0..self.hosts.len()).filter(|i| *i != from).map(node_id).collect(),
        };
        let host = self.hosts.get_mut(from).ok_or(SimulationError::NotRunning(from))?;
        let stack = host.stack.as_mut().ok_or(SimulationError::NotRunning(from))?;

        // As a daemon does: the engine cuts the file into generations, and the hash tree over them
        // goes into the announcement.
        let serial = host.outgoing.len() as u32 + 1;
        let flow = FlowId { source: node_id(from), serial };

        let size = contents.len() as u64;
        let at = registry().scheme(scheme).ok_or(SendError::UnknownScheme)?;
        let geometry = stack.at(self.now, &mut host.storage).geometry_for(at, size)?;
        let digest = merkle::digest(contents.as_slice(), &geometry)
            .expect("a slice of the stated length can be read");
        let tree = merkle::MerkleTree::new(digest.leaves.clone(), geometry.depth());
        let name = format!("file-{serial}");
        let manifest = Manifest { flow, name, geometry, root: tree.root(), hash: digest.whole };
        let leaves = digest.leaves;
        let done = BTreeMap::new();

        // Without receivers the file is open to all that hear of it.
        let open = to.is_none();
        let outgoing = Outgoing { manifest, leaves, receivers, done, open, allowance };

        // The file must be readable before the engine asks for its first generation.
        host.storage.provide(flow, contents);
        host.outgoing.push((scheme, outgoing.clone()));
        stack.at(self.now, &mut host.storage).send_file(at, outgoing)?;
        self.handle_due(from);
        Ok(flow)
    }

    /// Offers a packet from a node to the tunnel `scheme`.
    ///
    /// # Errors
    /// [`SimulationError`] if the node is switched off or the scheme refuses the packet.
    pub fn send_packet(
        &mut self,
        scheme: &str,
        from: usize,
        to: usize,
        packet: &[u8],
    ) -> Result<(), SimulationError> {
        let host = self.hosts.get_mut(from).ok_or(SimulationError::NotRunning(from))?;
        let stack = host.stack.as_mut().ok_or(SimulationError::NotRunning(from))?;
        let scheme = registry().scheme(scheme).ok_or(PacketError::UnknownScheme)?;
        stack.at(self.now, &mut host.storage).send_packet(scheme, node_id(to), packet)?;
        self.handle_due(from);
        Ok(())
    }

    /// Gives a node a gateway to the tunnel `scheme`. From now on, packets that arrive through a
    /// tunnel go to its host if the gateway permits them.
    pub fn open_gateway(&mut self, node: usize, scheme: &str, config: GatewayConfig) {
        let scheme = registry().scheme(scheme);
        self.hosts[node].gateway = Some(HostGateway::new(scheme, config));
    }

    /// Passes an IP packet of a node's host to the node's gateway.
    ///
    /// # Errors
    /// [`SimulationError::NotRunning`] if the node is switched off, [`SimulationError::NoGateway`].
    pub fn send_ip_packet(&mut self, node: usize, packet: Vec<u8>) -> Result<(), SimulationError> {
        let host = self.hosts.get_mut(node).ok_or(SimulationError::NotRunning(node))?;
        let stack = host.stack.as_mut().ok_or(SimulationError::NotRunning(node))?;
        let gateway = host.gateway.as_mut().ok_or(SimulationError::NoGateway(node))?;
        self.observers.tell(self.now, node, What::Offered(&packet));
        gateway.handle_outbound(packet, stack, &mut host.storage, self.now);
        self.handle_due(node);
        Ok(())
    }

    /// Returns how many packets of the connection that `packet` belongs to wait in the gateway of a
    /// node.
    pub(crate) fn gateway_waiting(&self, node: usize, packet: &[u8]) -> usize {
        self.hosts[node].gateway.as_ref().map_or(0, |gateway| gateway.waiting_like(packet))
    }

    /// Returns how many packets from a source address the scheme took at the gateway of a node.
    pub(crate) fn packets_taken(&self, node: usize, source: Ipv4Addr) -> u64 {
        self.hosts[node].gateway.as_ref().map_or(0, |gateway| gateway.taken(source))
    }

    /// Returns whether IP packets arrived since [`take_ip_packets`](Self::take_ip_packets).
    #[must_use]
    pub fn has_ip_packets(&self) -> bool {
        !self.ip_packets.is_empty()
    }

    /// Takes the IP packets that arrived at hosts since the last call.
    pub fn take_ip_packets(&mut self) -> Vec<IpArrival> {
        core::mem::take(&mut self.ip_packets)
    }

    /// Changes how a node relays. Settings that are `None` stay.
    ///
    /// # Errors
    /// [`SimulationError::NotRunning`].
    pub fn relay_as(&mut self, node: usize, change: Relaying) -> Result<(), SimulationError> {
        let host = self.hosts.get_mut(node).ok_or(SimulationError::NotRunning(node))?;
        let stack = host.stack.as_mut().ok_or(SimulationError::NotRunning(node))?;
        stack.at(self.now, &mut host.storage).relay_as(change);
        self.handle_due(node);
        Ok(())
    }

    /// Returns whether the tunnel `scheme` would now accept a packet between two nodes.
    #[must_use]
    pub fn can_send(&self, scheme: &str, from: usize, to: usize) -> bool {
        let stack = self.hosts.get(from).and_then(Host::stack);
        let scheme = registry().scheme(scheme);
        stack.and_then(|stack| stack.can_send(scheme?, node_id(to))).unwrap_or(false)
    }

    /// Takes the packets that arrived through tunnels since the last call.
    pub fn take_packets(&mut self) -> Vec<Arrival> {
        core::mem::take(&mut self.packets)
    }

    /// Cancels a transfer at a node. Returns whether it was under way there.
    pub fn cancel(&mut self, node: usize, flow: FlowId) -> bool {
        let host = &mut self.hosts[node];
        let now = self.now;
        let ended = host.stack.as_mut().is_some_and(|s| s.at(now, &mut host.storage).cancel(flow));
        if ended {
            host.cancelled.insert(flow);
        }
        self.handle_due(node);
        ended
    }

    /// Replaces the contents of a file while a node is sending it, without telling the node.
    pub fn replace_outgoing(&mut self, node: usize, flow: FlowId, contents: Vec<u8>) {
        self.hosts[node].storage.provide(flow, contents);
    }

    /// Lets the nodes that run take every start of others for current, without a proof that it is
    /// there. For [`inject`](Self::inject).
    pub fn trust_all(&mut self) {
        self.hosts.iter_mut().filter_map(|host| host.stack.as_mut()).for_each(Stack::trust_all);
    }

    /// Passes a datagram to a node as if it had been received.
    pub fn inject(&mut self, node: usize, datagram: &[u8]) {
        let frame = Arc::from(datagram);
        self.handle_datagram(node, &Heard { port: Port::FIRST, frame });
    }
}

/// Returns the id of node `i`. Id 0 is reserved, so ids begin with 1.
#[must_use]
pub fn node_id(i: usize) -> NodeId {
    NodeId(u16::try_from(i + 1).unwrap_or(u16::MAX))
}

//! The virtual-clock driver: nodes and medium, one event after the other, from a seed.

mod config;
mod error;
mod events;
mod streams;

use crate::gateway::HostGateway;
use crate::host::{Host, Observation};
use crate::observe::Observer;
use crate::observers::Observers;
use crate::spent::Spent;
pub use config::{Disturbance, Knowledge, SimulationConfig};
pub use error::SimulationError;
use ncmesh_engine::file::merkle;
use ncmesh_engine::file::{Manifest, Outgoing};
use ncmesh_engine::rng;
use ncmesh_engine::time::Instant;
use ncmesh_engine::topology::{Metric, Topology};
use ncmesh_engine::tunnel::Relaying;
use ncmesh_engines::REGISTRY;
use ncmesh_host::gateway::{GatewayConfig, GatewayCounters};
use ncmesh_medium::{MacConfig, Medium, MediumError, RadioId, SlotOrder, Statistics};
use ncmesh_stack::Stack;
use ncmesh_wire::{FlowId, NodeId, ServiceId};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
pub use streams::StreamArrival;

/// A packet that arrived through a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Instant,
    /// At which node.
    pub to: usize,
    /// From whom.
    pub from: NodeId,
    /// Its bytes.
    pub packet: Vec<u8>,
}

/// An IP packet that a node's gateway handed to its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpArrival {
    /// When.
    pub at: Instant,
    /// At which node.
    pub to: usize,
    /// Its bytes.
    pub packet: Vec<u8>,
}

/// A mesh on the virtual clock.
pub struct Simulation {
    config: SimulationConfig,
    medium: Medium,
    hosts: Vec<Host>,
    timers: BTreeSet<(Instant, usize)>,
    held: Vec<Option<Arc<[u8]>>>,
    chaos: ChaCha8Rng,
    observers: Observers,
    observations: Vec<(Instant, usize, Observation)>,
    packets: Vec<Arrival>,
    ip_packets: Vec<IpArrival>,
    stream_packets: Vec<StreamArrival>,
    now: Instant,
    out: Vec<u8>,
    /// The medium gives way to who gains most.
    weighs: bool,
    /// What all nodes know from the start.
    known: Option<Arc<Topology>>,
    /// Time that the parts took, if it is measured.
    spent: Option<Spent>,
    /// Service of the last frame of each node.
    on_air: Vec<ServiceId>,
}

impl Simulation {
    /// All nodes switched on at instant 0.
    ///
    /// # Errors
    /// [`SimulationError`] where a setting cannot be.
    pub fn new(config: SimulationConfig) -> Result<Self, SimulationError> {
        let radios = config.medium.radios();
        if config.names.len() != radios {
            return Err(SimulationError::Names { names: config.names.len(), radios });
        }
        let mut simulation = Self {
            medium: Medium::new(config.medium.clone())?,
            hosts: (0..radios).map(|_| Host::new()).collect(),
            timers: BTreeSet::new(),
            held: vec![None; radios],
            chaos: rng::stream(config.seed, NodeId(0), "simulation", "mischief"),
            observers: Observers::default(),
            observations: Vec::new(),
            packets: Vec::new(),
            ip_packets: Vec::new(),
            stream_packets: Vec::new(),
            now: Instant::default(),
            out: Vec::new(),
            known: config.known_beforehand()?,
            weighs: matches!(
                config.medium.mac,
                MacConfig::Slotted { order: SlotOrder::Weight, .. }
            ),
            spent: config.time_parts.then(Spent::default),
            on_air: vec![ServiceId(0); radios],
            config,
        };
        for node in 0..radios {
            simulation.switch_on(node)?;
        }
        Ok(simulation)
    }

    /// What it was built from.
    #[must_use]
    pub fn config(&self) -> &SimulationConfig {
        &self.config
    }

    /// The virtual clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// A node.
    #[must_use]
    pub fn host(&self, node: usize) -> &Host {
        &self.hosts[node]
    }

    /// Whether a node runs and knows no path to another.
    #[must_use]
    pub fn lacks_path(&self, from: usize, to: usize, metric: Metric) -> bool {
        self.hosts[from].stack().is_some_and(|stack| {
            !stack.topology().paths_from(node_id(from), metric).reaches(node_id(to))
        })
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// What happened so far: when, at which node, what.
    #[must_use]
    pub fn observations(&self) -> &[(Instant, usize, Observation)] {
        &self.observations
    }

    /// The medium's counters.
    #[must_use]
    pub fn medium_statistics(&self) -> &Statistics {
        self.medium.statistics()
    }

    /// Time that the machine spent on each part so far; none unless the configuration says so.
    #[must_use]
    pub fn time_spent(&self) -> Option<&Spent> {
        self.spent.as_ref()
    }

    /// The hash over every frame sent, heard and reported so far, in hexadecimal.
    #[must_use]
    pub fn trace_hash(&self) -> String {
        self.observers.trace.hash()
    }

    /// How many events that hash is over.
    #[must_use]
    pub fn trace_events(&self) -> u64 {
        self.observers.trace.events()
    }

    /// From now on tells `observer` of every event.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.observers.add(observer);
    }

    /// Whether an observer failed: nothing more happens then.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.observers.have_failed()
    }

    /// Tells the observers that nothing more will happen, and lets them go.
    ///
    /// # Errors
    /// The first failure of an observer, now or before.
    pub fn finish(&mut self) -> std::io::Result<()> {
        self.observers.finish()
    }

    /// Changes a link's loss.
    ///
    /// # Errors
    /// [`MediumError`].
    pub fn set_loss(&mut self, from: usize, to: usize, loss: f64) -> Result<(), MediumError> {
        self.medium.set_loss(RadioId(from), RadioId(to), loss)
    }

    /// Kills a node: its memory is gone, its files stay.
    pub fn switch_off(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        host.stack = None;
        host.requested = false;
        if let Some(timer) = host.timer.take() {
            self.timers.remove(&(timer, node));
        }
        self.held[node] = None;
        let _ = self.medium.set_up(RadioId(node), false);
    }

    /// Starts a node; one that was killed goes on with its files.
    ///
    /// # Errors
    /// [`SimulationError`] where a setting cannot be.
    pub fn switch_on(&mut self, node: usize) -> Result<(), SimulationError> {
        let config = self.config.stack(node, self.hosts[node].starts);
        let mut stack = Stack::new(config, REGISTRY, self.now)?;
        if let Some(known) = &self.known {
            stack.pin_topology(Arc::clone(known));
        }
        let _ = self.medium.set_up(RadioId(node), true);
        let host = &mut self.hosts[node];
        host.starts += 1;
        for (scheme, outgoing) in &host.outgoing {
            stack.at(self.now, &mut host.storage).send_file(scheme, outgoing.clone())?;
        }
        host.stack = Some(stack);
        self.handle_due(node);
        Ok(())
    }

    /// Multicasts `contents` from a node to others (`None`: all others, late joiners too) by
    /// `scheme`.
    ///
    /// # Errors
    /// [`SimulationError`].
    pub fn send_file(
        &mut self,
        scheme: &'static str,
        from: usize,
        to: Option<&[usize]>,
        contents: Vec<u8>,
    ) -> Result<FlowId, SimulationError> {
        let receivers = match to {
            Some(to) => to.iter().map(|i| node_id(*i)).collect(),
            None => (0..self.hosts.len()).filter(|i| *i != from).map(node_id).collect(),
        };
        let host = self.hosts.get_mut(from).ok_or(SimulationError::NotRunning(from))?;
        let stack = host.stack.as_mut().ok_or(SimulationError::NotRunning(from))?;
        let serial = host.outgoing.len() as u32 + 1;
        let flow = FlowId { source: node_id(from), serial };
        let size = contents.len() as u64;
        let geometry = stack.at(self.now, &mut host.storage).geometry_for(scheme, size)?;
        let digest = merkle::digest(contents.as_slice(), &geometry)
            .expect("a slice of the stated length can be read");
        let tree = merkle::MerkleTree::new(digest.leaves.clone(), geometry.depth());
        let name = format!("file-{serial}");
        let manifest = Manifest { flow, name, geometry, root: tree.root(), hash: digest.whole };
        let (leaves, done, open) = (digest.leaves, BTreeMap::new(), to.is_none());
        let outgoing = Outgoing { manifest, leaves, receivers, done, open };
        host.storage.provide(flow, contents);
        host.outgoing.push((scheme, outgoing.clone()));
        stack.at(self.now, &mut host.storage).send_file(scheme, outgoing)?;
        self.handle_due(from);
        Ok(flow)
    }

    /// Offers a packet at a node to the tunnel `scheme`.
    ///
    /// # Errors
    /// [`SimulationError`].
    pub fn send_packet(
        &mut self,
        scheme: &str,
        from: usize,
        to: usize,
        packet: &[u8],
    ) -> Result<(), SimulationError> {
        let host = self.hosts.get_mut(from).ok_or(SimulationError::NotRunning(from))?;
        let stack = host.stack.as_mut().ok_or(SimulationError::NotRunning(from))?;
        stack.at(self.now, &mut host.storage).send_packet(scheme, node_id(to), packet)?;
        self.handle_due(from);
        Ok(())
    }

    /// Gives a node a gateway to the tunnel `scheme`. From now on packets that arrive through a
    /// tunnel go to its host, if the gateway permits them.
    pub fn open_gateway(&mut self, node: usize, scheme: &str, config: GatewayConfig) {
        self.hosts[node].gateway = Some(HostGateway::new(scheme, config));
    }

    /// Takes an IP packet that the host of a node sends, at the node's gateway.
    ///
    /// # Errors
    /// [`SimulationError::NotRunning`] if the node is switched off, [`SimulationError::NoGateway`].
    pub fn send_ip_packet(&mut self, node: usize, packet: Vec<u8>) -> Result<(), SimulationError> {
        let host = self.hosts.get_mut(node).ok_or(SimulationError::NotRunning(node))?;
        let stack = host.stack.as_mut().ok_or(SimulationError::NotRunning(node))?;
        let gateway = host.gateway.as_mut().ok_or(SimulationError::NoGateway(node))?;
        gateway.handle_outbound(packet, stack, &mut host.storage, self.now);
        self.handle_due(node);
        Ok(())
    }

    /// Returns what the gateway of a node counted.
    #[must_use]
    pub fn gateway_counters(&self, node: usize) -> Option<&GatewayCounters> {
        Some(self.hosts.get(node)?.gateway.as_ref()?.counters())
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

    /// Takes the IP packets that arrived at hosts since this was last called.
    pub fn take_ip_packets(&mut self) -> Vec<IpArrival> {
        core::mem::take(&mut self.ip_packets)
    }

    /// A node relays so from now on; what is `None` stays.
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

    /// Whether the tunnel `scheme` would take a packet at a node for another now.
    #[must_use]
    pub fn can_send(&self, scheme: &str, from: usize, to: usize) -> bool {
        let stack = self.hosts.get(from).and_then(Host::stack);
        stack.and_then(|stack| stack.can_send(scheme, node_id(to))).unwrap_or(false)
    }

    /// The packets that arrived through tunnels since this was last called.
    pub fn take_packets(&mut self) -> Vec<Arrival> {
        core::mem::take(&mut self.packets)
    }

    /// Ends a transfer at a node. Says whether it was under way there.
    pub fn cancel(&mut self, node: usize, flow: FlowId) -> bool {
        let (host, now) = (&mut self.hosts[node], self.now);
        let ended = host.stack.as_mut().is_some_and(|s| s.at(now, &mut host.storage).cancel(flow));
        if ended {
            host.cancelled.insert(flow);
        }
        self.handle_due(node);
        ended
    }

    /// Puts other contents in the place of a file a node is sending, behind its back.
    pub fn replace_outgoing(&mut self, node: usize, flow: FlowId, contents: Vec<u8>) {
        self.hosts[node].storage.provide(flow, contents);
    }

    /// Lets the nodes that run take every start of others for current, without a proof that it is
    /// there. For [`inject`](Self::inject).
    pub fn trust_all(&mut self) {
        self.hosts.iter_mut().filter_map(|host| host.stack.as_mut()).for_each(Stack::trust_all);
    }

    /// Hands a node a datagram that nobody sent.
    pub fn inject(&mut self, node: usize, datagram: &[u8]) {
        self.hear(node, datagram);
    }
}

/// The id of node `i`.
#[must_use]
pub fn node_id(i: usize) -> NodeId {
    NodeId(u16::try_from(i + 1).unwrap_or(u16::MAX))
}

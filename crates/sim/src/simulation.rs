//! The virtual-clock driver: nodes and medium, one event after the other, from a seed.

mod streams;

use crate::host::{Happening, Host, Received};
use crate::measure::measure;
use crate::observe::{Observer, Observers, What};
use crate::scenario::{Measure, Scenario};
use ncmesh_medium::{
    Access, MacConfig, Medium, MediumConfig, MediumError, Order, Output, RadioId, Statistics,
};
use ncmesh_proto::file::merkle;
use ncmesh_proto::file::{FileLimits, Manifest, Outgoing, SendError};
use ncmesh_proto::link::LinkConfig;
use ncmesh_proto::rng;
use ncmesh_proto::route::{LinkState, RouteConfig, Topology};
use ncmesh_proto::service::{TxReport, TxResult};
use ncmesh_proto::stack::{ConfigError, Stack, StackConfig};
use ncmesh_proto::stream::StreamError;
use ncmesh_proto::time::{Duration, Instant};
use ncmesh_proto::tunnel::{Refused, Relaying};
use ncmesh_wire::{Cipher, FlowId, Key, NodeId};
use rand_chacha::ChaCha8Rng;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
pub use streams::StreamArrival;

/// What a simulation is built from. Node i of the mesh has radio i and id i + 1.
#[derive(Clone, Debug)]
pub struct SimulationConfig {
    /// The ether, its seed included.
    pub medium: MediumConfig,
    /// The nodes' names, one per radio.
    pub names: Vec<String>,
    /// Seeds everything but the ether.
    pub seed: u64,
    /// The largest frame, bytes.
    pub mtu: usize,
    /// `[link]`.
    pub link: LinkConfig,
    /// `[route]`.
    pub route: RouteConfig,
    /// The engines' sections.
    pub engines: toml::Table,
    /// Frames are really encrypted; otherwise a null cipher of the same length stands in.
    pub sealed: bool,
    /// What nodes know of their links.
    pub knowledge: Knowledge,
    /// What happens to frames on their way from the medium to the nodes.
    pub mischief: Mischief,
}

/// What nodes know of their links.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Knowledge {
    /// What they measure and tell each other themselves.
    #[default]
    Own,
    /// From the start and for ever what probes measured beforehand; they measure nothing (Pacifier, IV-A).
    Measured(Measure),
    /// From the start and for ever what frames of the MTU meet where nobody interferes.
    Perfect,
}

/// Disorder that a real driver or network card may cause.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mischief {
    /// Share of frames delivered twice.
    pub duplicate: f64,
    /// Share of frames held back until after the next one of that node.
    pub reorder: f64,
}

impl SimulationConfig {
    /// The mesh of `scenario`. Its protocol sections are `link`, `route` and those of the engines; what else
    /// there is takes its default.
    ///
    /// # Errors
    /// [`SimulationError::Config`] names a setting that cannot be.
    pub fn from_scenario(scenario: &Scenario) -> Result<Self, SimulationError> {
        let mut engines = toml::Table::new();
        for (name, section) in &scenario.protocol {
            if !matches!(name.as_str(), "link" | "route") {
                engines.insert(name.clone(), toml::Value::Table(section.clone()));
            }
        }
        Ok(Self {
            medium: scenario.medium_config(),
            names: scenario.nodes.iter().map(|node| node.name.clone()).collect(),
            seed: scenario.seed,
            mtu: scenario.mtu,
            link: section(scenario, "link")?,
            route: section(scenario, "route")?,
            engines,
            sealed: scenario.sealed,
            knowledge: scenario.measure.map_or(Knowledge::Own, Knowledge::Measured),
            mischief: Mischief::default(),
        })
    }

    /// The cipher under which the mesh's frames travel; its key comes from the seed.
    #[must_use]
    pub fn cipher(&self) -> Cipher {
        if !self.sealed {
            return Cipher::Null;
        }
        Cipher::new(&Key::new(*blake3::hash(&self.seed.to_be_bytes()).as_bytes()))
    }
}

/// A protocol section of the scenario as the settings it stands for.
fn section<T: Default + DeserializeOwned>(
    scenario: &Scenario,
    name: &str,
) -> Result<T, ConfigError> {
    let Some(table) = scenario.protocol.get(name) else { return Ok(T::default()) };
    toml::Value::Table(table.clone()).try_into().map_err(|e: toml::de::Error| ConfigError {
        section: name.to_owned(),
        problem: e.message().to_owned(),
    })
}

/// Why a simulation cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimulationError {
    /// A setting of the ether.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// A setting of a node.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Names and radios do not match.
    #[error("{names} names for {radios} radios")]
    Names {
        /// Names given.
        names: usize,
        /// Radios of the medium.
        radios: usize,
    },
    /// No such scheme for files.
    #[error("no scheme here is called {0:?}")]
    UnknownScheme(String),
    /// A node that is switched off or does not exist.
    #[error("node {0} is not running")]
    NotRunning(usize),
    /// A file that cannot be sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A packet that is not taken.
    #[error(transparent)]
    Packet(#[from] Refused),
    /// A stream or membership that cannot be.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

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

/// A mesh on the virtual clock.
pub struct Simulation {
    config: SimulationConfig,
    medium: Medium,
    hosts: Vec<Host>,
    timers: BTreeSet<(Instant, usize)>,
    held: Vec<Option<Arc<[u8]>>>,
    chaos: ChaCha8Rng,
    observers: Observers,
    happenings: Vec<(Instant, usize, Happening)>,
    packets: Vec<Arrival>,
    stream_packets: Vec<StreamArrival>,
    now: Instant,
    out: Vec<u8>,
    /// The medium gives way to who gains most.
    weighs: bool,
    /// What all nodes know from the start.
    known: Option<Arc<Topology>>,
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
            happenings: Vec::new(),
            packets: Vec::new(),
            stream_packets: Vec::new(),
            now: Instant::default(),
            out: Vec::new(),
            known: known_beforehand(&config)?,
            weighs: matches!(config.medium.mac, MacConfig::Slotted { order: Order::Weight, .. }),
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
    pub fn happenings(&self) -> &[(Instant, usize, Happening)] {
        &self.happenings
    }

    /// The medium's counters.
    #[must_use]
    pub fn medium_statistics(&self) -> &Statistics {
        self.medium.statistics()
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
        let mut stack = Stack::new(self.stack_config(node), self.now)?;
        if let Some(known) = &self.known {
            stack.pin_topology(Arc::clone(known));
        }
        let _ = self.medium.set_up(RadioId(node), true);
        let host = &mut self.hosts[node];
        host.starts += 1;
        for (scheme, outgoing) in &host.outgoing {
            if let Some(sent) =
                stack.send_file(scheme, outgoing.clone(), &mut host.storage, self.now)
            {
                sent?;
            }
        }
        host.stack = Some(stack);
        self.attend(node);
        Ok(())
    }

    /// Multicasts `contents` from a node to others (`None`: all others, late joiners too) by `scheme`.
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
        let geometry = stack
            .geometry_for(scheme, contents.len() as u64, &mut host.storage)
            .ok_or_else(|| SimulationError::UnknownScheme(scheme.to_owned()))??;
        let digest = merkle::digest(contents.as_slice(), &geometry)
            .expect("a slice of the stated length can be read");
        let tree = merkle::MerkleTree::new(digest.leaves.clone(), geometry.depth());
        let name = format!("file-{serial}");
        let manifest = Manifest { flow, name, geometry, root: tree.root(), hash: digest.whole };
        let (leaves, done, open) = (digest.leaves, BTreeMap::new(), to.is_none());
        let outgoing = Outgoing { manifest, leaves, receivers, done, open };
        host.storage.provide(flow, contents);
        host.outgoing.push((scheme, outgoing.clone()));
        stack
            .send_file(scheme, outgoing, &mut host.storage, self.now)
            .ok_or_else(|| SimulationError::UnknownScheme(scheme.to_owned()))??;
        self.attend(from);
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
        stack
            .send_packet(scheme, node_id(to), packet, &mut host.storage, self.now)
            .ok_or_else(|| SimulationError::UnknownScheme(scheme.to_owned()))??;
        self.attend(from);
        Ok(())
    }

    /// A node relays so from now on; what is `None` stays.
    ///
    /// # Errors
    /// [`SimulationError::NotRunning`].
    pub fn relay_as(&mut self, node: usize, change: Relaying) -> Result<(), SimulationError> {
        let host = self.hosts.get_mut(node).ok_or(SimulationError::NotRunning(node))?;
        let stack = host.stack.as_mut().ok_or(SimulationError::NotRunning(node))?;
        stack.relay_as(change, &mut host.storage, self.now);
        self.attend(node);
        Ok(())
    }

    /// Whether the tunnel `scheme` would take a packet at a node for another now.
    #[must_use]
    pub fn has_room(&self, scheme: &str, from: usize, to: usize) -> bool {
        let stack = self.hosts.get(from).and_then(Host::stack);
        stack.and_then(|stack| stack.has_room(scheme, node_id(to))).unwrap_or(false)
    }

    /// Whether packets arrived through tunnels since [`take_packets`](Self::take_packets) was last called.
    #[must_use]
    pub fn has_packets(&self) -> bool {
        !self.packets.is_empty()
    }

    /// The packets that arrived through tunnels since this was last called.
    pub fn take_packets(&mut self) -> Vec<Arrival> {
        core::mem::take(&mut self.packets)
    }

    /// Ends a transfer at a node. Says whether it was under way there.
    pub fn cancel(&mut self, node: usize, flow: FlowId) -> bool {
        let (host, now) = (&mut self.hosts[node], self.now);
        let ended = host.stack.as_mut().is_some_and(|s| s.cancel(flow, &mut host.storage, now));
        if ended {
            host.cancelled.insert(flow);
        }
        self.attend(node);
        ended
    }

    /// Puts other contents in the place of a file a node is sending, behind its back.
    pub fn replace_outgoing(&mut self, node: usize, flow: FlowId, contents: Vec<u8>) {
        self.hosts[node].storage.provide(flow, contents);
    }

    /// Hands a node a datagram that nobody sent.
    pub fn inject(&mut self, node: usize, datagram: &[u8]) {
        self.hear(node, datagram);
    }

    /// Runs until `stop` says so or the clock reaches `until`, or an observer fails. Says whether `stop` did.
    pub fn run_until(&mut self, until: Instant, mut stop: impl FnMut(&Self) -> bool) -> bool {
        while !self.is_stopped() {
            if stop(self) {
                return true;
            }
            match self.next_event() {
                Some(at) if at <= until => self.step(at),
                _ => {
                    self.now = until;
                    return stop(self);
                }
            }
        }
        false
    }

    /// Runs for a time.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time, |_| false);
    }

    fn next_event(&self) -> Option<Instant> {
        let timer = self.timers.first().map(|(at, _)| *at);
        let medium = self.medium.poll_timeout().map(Instant::from_nanos);
        timer.into_iter().chain(medium).min()
    }

    fn step(&mut self, at: Instant) {
        self.now = at;
        if self.medium.poll_timeout().is_some_and(|t| t <= at.as_nanos()) {
            self.medium.handle_timeout(at.as_nanos());
            self.drain_medium();
        }
        while let Some((due, node)) = self.timers.first().copied().filter(|(due, _)| *due <= at) {
            self.timers.remove(&(due, node));
            let host = &mut self.hosts[node];
            host.timer = None;
            if let Some(stack) = &mut host.stack {
                stack.handle_timeout(&mut host.storage, at);
            }
            self.attend(node);
        }
    }

    fn drain_medium(&mut self) {
        while let Some(output) = self.medium.poll_output() {
            match output {
                Output::Grant { radio, .. } => self.granted(radio),
                Output::Deliver { to, from, frame, power, .. } => {
                    let what = What::Heard { from: from.0, frame: &frame, power };
                    self.observers.tell(self.now, to.0, what);
                    self.deliver(to.0, frame);
                }
                Output::Report { radio, result, attempts, airtime_ns, heard_by, .. } => {
                    let what = What::Reported { result, attempts, airtime_ns };
                    self.observers.tell(self.now, radio.0, what);
                    self.report(radio.0, result, airtime_ns, heard_by);
                }
            }
        }
    }

    fn granted(&mut self, radio: RadioId) {
        let (node, now) = (radio.0, self.now);
        let host = &mut self.hosts[node];
        host.requested = false;
        let storage = &mut host.storage;
        let filled = host.stack.as_mut().and_then(|s| s.fill(&mut self.out, storage, now));
        match filled {
            None => drop(self.medium.decline(now.as_nanos(), radio)),
            Some(sent) => {
                let access = match sent.to {
                    Some(to) => Access::Unicast(RadioId(usize::from(to.0).wrapping_sub(1))),
                    None => Access::Broadcast,
                };
                self.observers.tell(now, node, What::Sent { to: sent.to, frame: &self.out });
                let frame: Arc<[u8]> = Arc::from(self.out.as_slice());
                if self.medium.supply(now.as_nanos(), radio, access, frame).is_err() {
                    drop(self.medium.decline(now.as_nanos(), radio));
                }
            }
        }
        self.attend(node);
    }

    fn deliver(&mut self, node: usize, frame: Arc<[u8]>) {
        if rng::unit(&mut self.chaos) < self.config.mischief.reorder && self.held[node].is_none() {
            self.held[node] = Some(frame);
            return;
        }
        self.hear(node, &frame);
        if rng::unit(&mut self.chaos) < self.config.mischief.duplicate {
            self.hear(node, &frame);
        }
        if let Some(late) = self.held[node].take() {
            self.hear(node, &late);
        }
    }

    fn hear(&mut self, node: usize, datagram: &[u8]) {
        let host = &mut self.hosts[node];
        if let Some(stack) = &mut host.stack {
            stack.handle_datagram(datagram, &mut host.storage, self.now);
        }
        self.attend(node);
    }

    fn report(
        &mut self,
        node: usize,
        result: ncmesh_medium::TxResult,
        airtime_ns: u64,
        heard_by: Option<Vec<RadioId>>,
    ) {
        use ncmesh_medium::TxResult as Mac;
        let result = match result {
            Mac::Sent => TxResult::Sent,
            Mac::Acked => TxResult::Acked,
            Mac::Failed => TxResult::Failed,
        };
        let heard_by = heard_by.map(|radios| radios.iter().map(|radio| node_id(radio.0)).collect());
        let report = TxReport { result, airtime: Duration::from_nanos(airtime_ns), heard_by };
        let host = &mut self.hosts[node];
        if let Some(stack) = &mut host.stack {
            stack.handle_tx_report(report, &mut host.storage, self.now);
        }
        self.attend(node);
    }

    /// After anything was said to a node: its events, its wish to transmit, its timer.
    fn attend(&mut self, node: usize) {
        let (now, host) = (self.now, &mut self.hosts[node]);
        let (packets, stream_packets) = (&mut self.packets, &mut self.stream_packets);
        let receive = |received| match received {
            Received::Tunnel { from, packet } => {
                packets.push(Arrival { at: now, to: node, from, packet });
            }
            Received::Stream { flow, packet } => {
                stream_packets.push(StreamArrival { at: now, to: node, flow, packet });
            }
        };
        host.settle(now, receive, |happening| {
            self.observers.tell(now, node, What::Happened(&happening));
            self.happenings.push((now, node, happening));
        });
        let Some(stack) = &host.stack else { return };
        let asks = self.weighs || !host.requested;
        if let Some(offer) = asks.then(|| stack.offer(now)).flatten() {
            let _ = self.medium.weigh(RadioId(node), offer.weight);
            host.requested = true;
            let _ = self.medium.request(now.as_nanos(), RadioId(node));
        }
        let timer = stack.poll_timeout();
        if timer != host.timer {
            if let Some(old) = core::mem::replace(&mut host.timer, timer) {
                self.timers.remove(&(old, node));
            }
            self.timers.extend(timer.map(|at| (at, node)));
        }
    }

    fn stack_config(&self, node: usize) -> StackConfig {
        let starts = self.hosts[node].starts;
        StackConfig {
            node: node_id(node),
            name: self.config.names[node].clone(),
            epoch: starts + 1,
            seed: self.config.seed.wrapping_add(starts << 32),
            mtu: self.config.mtu,
            cipher: self.config.cipher(),
            link: self.config.link.clone(),
            route: self.config.route.clone(),
            engines: self.config.engines.clone(),
            file: FileLimits::default(),
        }
    }
}

/// What all nodes know from the start, if anything.
fn known_beforehand(config: &SimulationConfig) -> Result<Option<Arc<Topology>>, MediumError> {
    let loss = match config.knowledge {
        Knowledge::Own => return Ok(None),
        Knowledge::Measured(how) => measure(&config.medium, how)?,
        Knowledge::Perfect => config.medium.expected_loss(config.mtu)?,
    };
    let mut hears = vec![BTreeMap::new(); config.names.len()];
    for (from, to, p) in loss.links() {
        hears[to.0].insert(node_id(from.0), 1.0 - p);
    }
    let mut topology = Topology::new(config.route.min_delivery);
    for (i, (name, hears)) in config.names.iter().zip(hears).enumerate() {
        let state = LinkState { version: (0, 1), name: name.clone(), hears };
        topology.learn(node_id(i), state, Instant::default());
    }
    Ok(Some(Arc::new(topology)))
}

/// The id of node `i`.
#[must_use]
pub fn node_id(i: usize) -> NodeId {
    NodeId(u16::try_from(i + 1).unwrap_or(u16::MAX))
}

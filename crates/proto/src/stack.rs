//! One node: link, route and every service, behind the few calls a driver needs.
//!
//! - getters: [`Stack::topology`], [`Stack::counters`], [`Stack::transfers`], [`Stack::flows`], ...
//! - handle: [`Stack::handle_datagram`], [`Stack::handle_timeout`], [`Stack::handle_tx_report`]
//! - commands: [`Stack::send_file`], [`Stack::send_packet`], [`Stack::cancel`], ...
//! - poll: [`Stack::poll_timeout`], [`Stack::offer`] and [`Stack::fill`], [`Stack::poll_event`]
//!
//! After any handle or command, poll anew.

#[cfg(test)]
mod tests;
mod traffic;

use crate::counters::{Counters, DropReason};
use crate::egress::Egress;
use crate::file::storage::Storage;
use crate::file::{
    BatchSet, FileLimits, FileService, Geometry, Outgoing, Refusal, SendError, TransferStatus,
};
use crate::link::{self, Link, LinkConfig};
use crate::name::{MAX_NODE_NAME, is_node_name};
use crate::registry::{REGISTRY, Settings};
use crate::rng;
use crate::route::{self, Route, RouteConfig, Topology};
use crate::service::{Cx, Event, Filled, Frame, Offer, Service, TxReport};
use crate::time::Instant;
use ncmesh_wire::{Cipher, FlowId, NodeId, Opener, Sealer, ServiceId, frame};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The largest frames a radio may take, bytes: announcements and acknowledgments need some room, and UDP over
/// IPv4 carries no more.
pub const MTUS: RangeInclusive<usize> = 256..=65_507;

/// What a node is built from.
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// Its id, unique in the mesh.
    pub node: NodeId,
    /// Its name, told to the others.
    pub name: String,
    /// Which start of the node this is: higher than at any start before.
    pub epoch: u64,
    /// Seeds the node's randomness, together with its id.
    pub seed: u64,
    /// The largest frame the radio takes, bytes.
    pub mtu: usize,
    /// How frames are sealed.
    pub cipher: Cipher,
    /// `[link]`.
    pub link: LinkConfig,
    /// `[route]`.
    pub route: RouteConfig,
    /// The engines' own sections, by engine name.
    pub engines: toml::Table,
    /// Bounds for file services.
    pub file: FileLimits,
}

/// A setting that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("[{section}] {problem}")]
pub struct ConfigError {
    /// The section of the configuration.
    pub section: String,
    /// What is wrong with it and what is allowed.
    pub problem: String,
}

/// A frame that was written for the granted transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// `None`: broadcast. Otherwise unicast to this neighbour.
    pub to: Option<NodeId>,
    /// Whose frame.
    pub service: ServiceId,
    /// Which of its frames.
    pub kind: u8,
}

/// One node of the mesh.
pub struct Stack {
    node: NodeId,
    name: String,
    epoch: u64,
    mtu: usize,
    sealer: Sealer,
    opener: Opener,
    scratch: Vec<u8>,
    link: Link,
    route: Route,
    services: Vec<Box<dyn Service>>,
    /// One stream per service, in [`slot`] order.
    rngs: Vec<ChaCha8Rng>,
    egress: Egress,
    counters: Counters,
    events: VecDeque<Event>,
    /// Who filled the frame on the air.
    on_air: Option<usize>,
    now: Instant,
    /// When timers were last served.
    served: Instant,
}

/// The context of one service, borrowing the stack's other parts.
macro_rules! cx {
    ($stack:ident, $slot:expr, $storage:expr) => {
        cx!($stack, $slot, $storage, $stack.route.topology())
    };
    ($stack:ident, $slot:expr, $storage:expr, $topology:expr) => {
        Cx {
            now: $stack.now,
            me: $stack.node,
            epoch: $stack.epoch,
            mtu: $stack.mtu - frame::OVERHEAD,
            topology: $topology,
            rng: &mut $stack.rngs[$slot],
            counters: &mut $stack.counters,
            events: &mut $stack.events,
            storage: $storage,
        }
    };
}

/// Slots: link, route, then the services in registry order.
mod slot {
    pub(super) const LINK: usize = 0;
    pub(super) const ROUTE: usize = 1;
    pub(super) const SERVICES: usize = 2;
}

impl Stack {
    /// A node that comes up at `now`.
    ///
    /// # Errors
    /// [`ConfigError`] where a setting cannot be.
    pub fn new(config: StackConfig, now: Instant) -> Result<Self, ConfigError> {
        let error = |section: &str| {
            let section = section.to_owned();
            move |problem| ConfigError { section, problem }
        };
        check_node(config.node, &config.name).map_err(error("node"))?;
        config.link.check().map_err(error("link"))?;
        config.route.check().map_err(error("route"))?;
        if !MTUS.contains(&config.mtu) {
            let (min, max) = (MTUS.start(), MTUS.end());
            let problem = format!("mtu = {}: allowed is {min} to {max} bytes", config.mtu);
            return Err(error("radio")(problem));
        }
        let mut services = Vec::new();
        for entry in REGISTRY {
            let none = toml::Table::new();
            let section = match config.engines.get(entry.name) {
                None => &none,
                Some(value) => value
                    .as_table()
                    .ok_or("must be a section".to_owned())
                    .map_err(error(entry.name))?,
            };
            let settings = Settings { section, file: config.file };
            services.push((entry.build)(&settings).map_err(error(entry.name))?);
        }
        if let Some(unknown) =
            config.engines.keys().find(|k| REGISTRY.iter().all(|e| e.name != **k))
        {
            let known: Vec<&str> = REGISTRY.iter().map(|e| e.name).collect();
            let problem = format!("no such engine; there are: {}", known.join(", "));
            return Err(error(unknown)(problem));
        }
        Ok(Self::assemble(config, services, now))
    }

    fn assemble(config: StackConfig, services: Vec<Box<dyn Service>>, now: Instant) -> Self {
        let names = ["link", "route"].into_iter().chain(REGISTRY.iter().map(|e| e.name));
        let rngs = names.map(|name| rng::stream(config.seed, config.node, name, "engine"));
        let body = config.mtu - frame::OVERHEAD;
        Self {
            node: config.node,
            epoch: config.epoch,
            mtu: config.mtu,
            sealer: Sealer::new(config.cipher.clone(), config.node, config.epoch),
            opener: Opener::new(config.cipher),
            scratch: Vec::with_capacity(config.mtu),
            link: Link::new(config.link, now),
            route: Route::new(config.route, config.node, &config.name, config.epoch, body, now),
            rngs: rngs.collect(),
            egress: Egress::new(slot::SERVICES + services.len()),
            services,
            counters: Counters::default(),
            events: VecDeque::new(),
            on_air: None,
            now,
            served: now,
            name: config.name,
        }
    }

    // ---- getters

    /// This node.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// This node's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which start of this node it is. Must be remembered: the next start's must be higher.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The mesh as known here.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        self.route.topology()
    }

    /// Neighbours heard, with the share of their probes that arrives here.
    pub fn inbound(&self) -> impl Iterator<Item = (NodeId, f64)> + '_ {
        self.link.inbound(self.now)
    }

    /// This node's counters.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The latest epoch heard of each node, to be remembered across a restart.
    pub fn epochs(&self) -> impl Iterator<Item = (NodeId, u64)> + '_ {
        self.opener.epochs()
    }

    /// How every transfer stands.
    #[must_use]
    pub fn transfers(&self) -> Vec<TransferStatus> {
        self.services
            .iter()
            .filter_map(|s| s.as_file_ref())
            .flat_map(FileService::transfers)
            .collect()
    }

    // ---- handle

    /// A datagram came in from the radio. Says which other node sent it, where it is authentic and new.
    pub fn handle_datagram(
        &mut self,
        datagram: &[u8],
        storage: &mut dyn Storage,
        now: Instant,
    ) -> Option<NodeId> {
        self.now = now;
        let mut scratch = core::mem::take(&mut self.scratch);
        let mut sender = None;
        match self.opener.open(datagram, &mut scratch) {
            Err(e) => self.counters.drop(e.into()),
            Ok(o) if o.header.sender == self.node => {
                if o.header.epoch != self.epoch {
                    self.counters.drop(DropReason::DuplicateId);
                }
            }
            Ok(o) => {
                self.counters.count_heard(o.service, o.kind, datagram.len());
                self.link.hear(o.header.sender, now);
                if !matches!(o.service, link::SERVICE | route::SERVICE) {
                    self.link.is_busy(now);
                }
                let frame = Frame {
                    sender: o.header.sender,
                    epoch: o.header.epoch,
                    service: o.service,
                    kind: o.kind,
                    body: o.body,
                };
                sender = Some(o.header.sender);
                self.dispatch(&frame, storage);
            }
        }
        self.scratch = scratch;
        sender
    }

    /// A time [`poll_timeout`](Self::poll_timeout) named has come.
    pub fn handle_timeout(&mut self, storage: &mut dyn Storage, now: Instant) {
        self.now = now;
        self.served = now;
        self.route.handle_timeout(now, &mut self.link, &mut self.rngs[slot::ROUTE]);
        for i in 0..self.services.len() {
            self.with_service(i, storage, |service, cx| service.handle_timeout(cx));
        }
    }

    /// The radio's word on the frame filled last.
    pub fn handle_tx_report(&mut self, report: TxReport, storage: &mut dyn Storage, now: Instant) {
        self.now = now;
        let Some(slot) = self.on_air.take() else { return };
        self.egress.used(slot, report.airtime);
        if let Some(i) = slot.checked_sub(slot::SERVICES) {
            self.with_service(i, storage, |service, cx| service.handle_tx_report(cx, report));
        }
    }

    // ---- poll

    /// The first time at which something falls due that [`handle_timeout`](Self::handle_timeout) was not called
    /// for yet: never before the last call, and after it unless another call overtook a timer.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = [self.link_timeout(), self.route.poll_timeout(self.served)];
        let services = self.services.iter().map(|s| s.poll_timeout(self.served));
        own.into_iter().chain(services).flatten().min().map(|at| at.max(self.now))
    }

    /// Whether anything would be transmitted if the medium granted it now. Has no effects.
    #[must_use]
    pub fn offer(&self, now: Instant) -> Option<Offer> {
        let slot = self.egress.choose(self.offers(now))?;
        self.offers(now).nth(slot).flatten()
    }

    /// The medium grants a transmission now: writes the best sealed frame there is into `out`.
    pub fn fill(
        &mut self,
        out: &mut Vec<u8>,
        storage: &mut dyn Storage,
        now: Instant,
    ) -> Option<Transmission> {
        self.now = now;
        // A service may find that its offer came to nothing; then the others are asked.
        let mut asked = vec![false; self.services.len() + slot::SERVICES];
        loop {
            let offers =
                self.offers(now).zip(&asked).map(|(offer, asked)| offer.filter(|_| !asked));
            let slot = self.egress.choose(offers)?;
            asked[slot] = true;
            let service = self.service_id(slot);
            Sealer::begin(out, service, 0);
            if let Some(filled) = self.fill_slot(slot, out, storage) {
                out[frame::HEADER_LEN + 1] = filled.kind;
                self.sealer.seal(out);
                debug_assert!(out.len() <= self.mtu, "{service:?} wrote more than it may");
                self.epoch = self.sealer.epoch();
                self.counters.count_sent(service, filled.kind, out.len());
                self.on_air = Some(slot);
                if slot >= slot::SERVICES {
                    self.link.is_busy(now);
                }
                return Some(Transmission { to: filled.to, service, kind: filled.kind });
            }
        }
    }

    /// What the driver is to do or to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    // ---- commands

    /// Uses `topology` instead of measuring.
    pub fn pin_topology(&mut self, topology: Arc<Topology>) {
        self.route.pin(topology);
    }

    /// Refuses frames of `node` older than `epoch`, as remembered from before a restart.
    pub fn remember_epoch(&mut self, node: NodeId, epoch: u64) {
        self.opener.remember(node, epoch);
    }

    /// How `scheme` would cut a file of `size` bytes.
    ///
    /// # Errors
    /// [`SendError`]; `None` if there is no such scheme for files.
    pub fn geometry_for(
        &mut self,
        scheme: &str,
        size: u64,
        storage: &mut dyn Storage,
    ) -> Option<Result<Geometry, SendError>> {
        self.with_file(scheme, storage, |file, cx| file.geometry_for(cx, size))
    }

    /// Offers a file to its receivers by `scheme`.
    ///
    /// # Errors
    /// [`SendError`]; `None` if there is no such scheme for files.
    pub fn send_file(
        &mut self,
        scheme: &str,
        outgoing: Outgoing,
        storage: &mut dyn Storage,
        now: Instant,
    ) -> Option<Result<(), SendError>> {
        self.now = now;
        self.with_file(scheme, storage, |file, cx| file.send(cx, outgoing))
    }

    /// Answers [`Event::Announced`]: the file has a place, `have` is already there.
    pub fn accept(
        &mut self,
        flow: FlowId,
        have: &BatchSet,
        storage: &mut dyn Storage,
        now: Instant,
    ) {
        self.now = now;
        self.each_file(storage, |file, cx| file.accept(cx, flow, have.clone()));
    }

    /// Answers [`Event::Announced`], or ends a reception: not here.
    pub fn refuse(&mut self, flow: FlowId, why: Refusal, storage: &mut dyn Storage, now: Instant) {
        self.now = now;
        self.each_file(storage, |file, cx| file.refuse(cx, flow, why));
    }

    /// Answers [`Event::Assembled`]: the file stands under its name.
    pub fn delivered(&mut self, flow: FlowId, storage: &mut dyn Storage, now: Instant) {
        self.now = now;
        self.each_file(storage, |file, cx| file.delivered(cx, flow));
    }

    /// Ends a transfer. Says whether it was under way.
    pub fn cancel(&mut self, flow: FlowId, storage: &mut dyn Storage, now: Instant) -> bool {
        self.now = now;
        let mut ended = false;
        self.each_file(storage, |file, cx| ended |= file.cancel(cx, flow));
        ended
    }

    // ---- inside

    fn link_timeout(&self) -> Option<Instant> {
        if self.route.is_pinned() { None } else { self.link.poll_timeout(self.served) }
    }

    fn offers(&self, now: Instant) -> impl Iterator<Item = Option<Offer>> + '_ {
        let probe = if self.route.is_pinned() { None } else { self.link.offer(now) };
        let own = [probe, self.route.offer(now)];
        own.into_iter().chain(self.services.iter().map(move |s| s.offer(now)))
    }

    fn service_id(&self, slot: usize) -> ServiceId {
        match slot {
            slot::LINK => link::SERVICE,
            slot::ROUTE => route::SERVICE,
            _ => REGISTRY[slot - slot::SERVICES].id,
        }
    }

    fn dispatch(&mut self, frame: &Frame<'_>, storage: &mut dyn Storage) {
        match frame.service {
            link::SERVICE if frame.kind == link::PROBE => self.hear_probe(frame, storage),
            route::SERVICE if frame.kind == route::LINK_STATE => {
                self.hear_link_state(frame, storage);
            }
            link::SERVICE | route::SERVICE => self.counters.drop(DropReason::Malformed),
            id if REGISTRY.iter().all(|e| e.id != id) => {
                self.counters.drop(DropReason::UnknownService);
            }
            id => {
                for i in 0..self.services.len() {
                    if self.services[i].hears(id) {
                        self.with_service(i, storage, |service, cx| {
                            service.handle_frame(cx, frame);
                        });
                    }
                }
            }
        }
    }

    fn hear_probe(&mut self, frame: &Frame<'_>, storage: &mut dyn Storage) {
        let (link, mut cx) = (&mut self.link, cx!(self, slot::LINK, storage));
        link.handle_frame(&mut cx, frame);
    }

    fn hear_link_state(&mut self, frame: &Frame<'_>, storage: &mut dyn Storage) {
        // The route writes the topology it would otherwise see through its context.
        let unseen = Topology::default();
        let mut cx = cx!(self, slot::ROUTE, storage, &unseen);
        if let Some(epoch) = self.route.handle_frame(&mut cx, frame) {
            self.sealer.raise_epoch(epoch + 1);
            self.epoch = self.sealer.epoch();
            self.route.raise_epoch(self.epoch);
        }
    }

    fn fill_slot(
        &mut self,
        slot: usize,
        out: &mut Vec<u8>,
        storage: &mut dyn Storage,
    ) -> Option<Filled> {
        match slot {
            slot::LINK => {
                let (link, mut cx) = (&mut self.link, cx!(self, slot, storage));
                link.fill(&mut cx, out)
            }
            slot::ROUTE => {
                let unseen = Topology::default();
                let mut cx = cx!(self, slot, storage, &unseen);
                self.route.fill(&mut cx, out)
            }
            _ => self.with_service(slot - slot::SERVICES, storage, |s, cx| s.fill(cx, out)),
        }
    }

    fn with_service<R>(
        &mut self,
        i: usize,
        storage: &mut dyn Storage,
        call: impl FnOnce(&mut dyn Service, &mut Cx<'_>) -> R,
    ) -> R {
        let (services, mut cx) = (&mut self.services, cx!(self, slot::SERVICES + i, storage));
        call(services[i].as_mut(), &mut cx)
    }

    fn each_file(
        &mut self,
        storage: &mut dyn Storage,
        mut call: impl FnMut(&mut dyn FileService, &mut Cx<'_>),
    ) {
        for i in 0..self.services.len() {
            self.with_service(i, storage, |service, cx| {
                if let Some(file) = service.as_file() {
                    call(file, cx);
                }
            });
        }
    }

    fn with_file<R>(
        &mut self,
        scheme: &str,
        storage: &mut dyn Storage,
        call: impl FnOnce(&mut dyn FileService, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        self.with_service(service_of(scheme)?, storage, |service, cx| {
            Some(call(service.as_file()?, cx))
        })
    }
}

/// Where the engine of that name stands among the services.
fn service_of(scheme: &str) -> Option<usize> {
    REGISTRY.iter().position(|e| e.name == scheme)
}

fn check_node(node: NodeId, name: &str) -> Result<(), String> {
    if node.0 == 0 || node.0 == u16::MAX {
        return Err(format!("id = {node}: allowed is 1 to 65534"));
    }
    if !is_node_name(name) {
        return Err(format!(
            "name = {name:?}: allowed are 1 to {MAX_NODE_NAME} letters, digits, '.', '_' and '-'"
        ));
    }
    Ok(())
}

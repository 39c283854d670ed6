//! The node: the stack with its clock, its files and its memory. Nothing here waits.

mod chores;
mod coding;
mod console;
mod events;
mod fleet;
mod graph;
mod handle;
mod hook;
mod inbox;
mod measure;
pub(crate) mod metrics;
mod monitoring;
mod names;
mod neighbours;
mod path;
mod ports;
mod reload;
mod savers;
mod sending;
mod streams;
#[cfg(test)]
mod tests;
mod tunnel;
mod view;

use crate::api;
use crate::api::answers::{BandwidthRequest, Reloaded};
use crate::api::types::{ApiError, ErrorCode, Recipients, TunnelChange};
use crate::config::{NodeConfig, TunnelConfig, V6_LEAST};
use crate::identity::unix_s;
use crate::state::{Delivered, OutgoingFile, OutgoingJournal, Spool, StateDir};
use crate::store::FileStorage;
use crate::stream::Ports;
pub use console::View;
pub use fleet::FleetStart;
pub(crate) use fleet::{FleetNodes, Push, Source, not_applied};
pub use handle::{Command, Handle};
use inbox::Inbox;
use measure::{Carrying, Measuring, Named, Running};
pub(crate) use metrics::MEDIA_TYPE as METRICS_TYPE;
pub use names::Receivers;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::{
    Direction, Geometry, Outgoing, SendError, Stage, TransferStatus, merkle,
};
use ncmesh_engine::registry::{AUTO, Choice, Scheme, ServiceKind};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::tunnel::Relaying;
use ncmesh_engine::{Port, TxReport};
use ncmesh_engines::registry;
use ncmesh_host::files::Files;
use ncmesh_host::gateway::StackMesh;
use ncmesh_stack::trust::TrustConfig;
use ncmesh_stack::{Active, CarrierTime, ConfigError, Stack, StackConfig};
use ncmesh_wire::{Cipher, FlowId, NodeId, RadioAddress, Salt, Versions};
use neighbours::Noted;
pub(crate) use ports::PortChange;
pub use ports::PortNews;
use ports::Slots;
pub(crate) use reload::refused;
use savers::Savers;
use sending::Sending;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
pub use streams::Streams;
use tokio::sync::oneshot;
use tracing::Level;
pub use tunnel::{DeviceState, Tunnel};

/// A frame that was written.
#[derive(Clone, Copy, Debug)]
pub struct Filled {
    /// Where it goes; to all if absent, as for a neighbour that told no address.
    pub to: Option<RadioAddress>,
}

/// Proof that a frame gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It is authentic, new, and of this node, which has proved that it is there.
    Proven(NodeId),
    /// It is authentic, and perhaps a recording.
    Unproven,
    /// Nothing: it was dropped, and counted.
    Dropped,
}

/// A node.
pub struct Node {
    /// The configuration that holds now.
    configuration: NodeConfig,
    stack: Stack,
    storage: FileStorage,
    clock: Clock,
    state: Arc<StateDir>,
    handle: Handle,
    /// Decides about files that are received and sent.
    files: Files<PathBuf>,
    inbox: Inbox,
    sending: Sending,
    fleet: fleet::Fleet,
    hooks: hook::Hooks,
    /// Sets which messages are logged.
    set_log: Box<dyn Fn(Level)>,
    savers: Savers,
    chores: chores::Chores,
    ports: Slots,
    tunnel: Option<Tunnel>,
    measuring: Measuring,
    streams: Streams,
    noted: Noted,
}

/// Maps the machine's clock to the engines' time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// A clock whose time begins now.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    /// The engines' time.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::default() + self.origin.elapsed()
    }

    /// The machine's time at an engine's.
    #[must_use]
    pub fn at(&self, time: Instant) -> std::time::Instant {
        self.origin + time.since(Instant::default())
    }
}

/// The stack of a node at one time, for the parts that use it.
pub struct Moment<'a> {
    stack: &'a mut Stack,
    storage: &'a mut FileStorage,
    now: Instant,
}

impl<'a> Moment<'a> {
    fn now(clock: &Clock, stack: &'a mut Stack, storage: &'a mut FileStorage) -> Self {
        Self { stack, storage, now: clock.now() }
    }

    fn active(&mut self) -> Active<'_> {
        self.stack.at(self.now, self.storage)
    }

    /// Returns the mesh as a gateway sees it, by a scheme.
    fn mesh(&mut self, scheme: Option<Scheme>) -> StackMesh<'_> {
        StackMesh { stack: self.stack, storage: self.storage, scheme, now: self.now }
    }
}

/// Parts of a node besides its configuration.
pub struct Parts {
    /// Its state directory.
    pub state: StateDir,
    /// How the node trusts others.
    pub trust: TrustConfig,
    /// The list of files received.
    pub delivered: Delivered,
    /// Identity of this start.
    pub start: Start,
    /// Parts for roll-outs.
    pub fleet: FleetStart,
    /// How other threads reach it.
    pub handle: Handle,
    /// The UDP ports of its streams.
    pub ports: Ports,
    /// Sets which messages are logged.
    pub set_log: Box<dyn Fn(Level)>,
}

/// Identity of one start of a node.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Random number of this start.
    pub salt: Salt,
    /// Number of this start, higher than any before.
    pub epoch: u64,
    /// Seeds the node's randomness.
    pub seed: u64,
}

impl Node {
    /// A node that comes up now.
    ///
    /// # Errors
    /// A setting that cannot be, or with which no file could be sent over this radio.
    pub fn new(config: &NodeConfig, parts: Parts) -> Result<Self, ConfigError> {
        // The engines are made with the settings, so an impossible one is found here.
        let clock = Clock::start();
        let settings = stack_config(config, &parts.start, parts.trust);
        let mut stack = ports::stack(config, settings, clock.now())?;
        // IPv6 demands packets of this length of every link, and whole ones cost less.
        stack.make_room(V6_LEAST);
        let tunnel = Tunnel::new(config, &stack)?;

        let inboxes = parts.state.inboxes();
        let mut node = Self {
            configuration: config.clone(),
            stack,
            storage: FileStorage::new(config.inbox_limits.space),
            clock,
            state: Arc::new(parts.state),
            handle: parts.handle,
            files: Files::new(config.inbox.clone(), inboxes.clone()),
            inbox: Inbox::new(config.inbox_limits.clone(), parts.delivered),
            sending: Sending::default(),
            fleet: fleet::Fleet::new(clock.now(), config.id, config.fleet.as_ref(), parts.fleet),
            hooks: hook::Hooks::new(config.hook.clone()),
            set_log: parts.set_log,
            savers: Savers::new(inboxes),
            chores: Default::default(),
            ports: Slots::new(config),
            tunnel,
            measuring: Measuring::new(parts.start.seed as u32),
            streams: Streams::new(parts.ports),
            noted: Default::default(),
        };

        node.check_schemes()?;
        Ok(node)
    }

    /// Whether every engine for files can make packets that fit the radio.
    fn check_schemes(&mut self) -> Result<(), ConfigError> {
        for entry in registry().of(ServiceKind::File) {
            let mut stack = self.stack.at(self.clock.now(), &mut self.storage);
            let scheme = registry().scheme(entry.name).ok_or(SendError::UnknownScheme);
            if let Err(e) = scheme.and_then(|scheme| stack.geometry_for(scheme, 1)) {
                let section = entry.name.to_owned();
                return Err(ConfigError { section, problem: e.to_string() });
            }
        }
        Ok(())
    }

    /// The node's clock.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// When [`handle_timeout`](Self::handle_timeout) is next to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<std::time::Instant> {
        let times = [
            // All on the clock of the stack, and turned into the runtime's time at the end.
            self.stack.poll_timeout(),
            self.savers.poll_timeout(),
            self.chores.poll_timeout(),
            self.files.poll_timeout(),
            self.measuring.poll_timeout(),
            self.fleet.poll_timeout(),
            self.streams.poll_timeout(),
        ];
        times.into_iter().flatten().min().map(|at| self.clock.at(at))
    }

    /// A time that was named has come.
    pub fn handle_timeout(&mut self) {
        let now = self.clock.now();
        self.stack.at(now, &mut self.storage).handle_timeout();
        self.files.handle_timeout(now);
        self.do_file_actions();
        self.chores.handle_timeout(&self.handle, now);
        self.drive_fleet();
        self.streams.handle_timeout(now);
    }

    /// Does what may wait for a few seconds: saves, logs and forgets. To be called every few
    /// seconds.
    pub fn tidy(&mut self) {
        // Each receiver that is done is saved, so that a restart does not ask it again.
        let now = self.clock.now();
        let transfers = self.stack.transfers();
        for flow in self.files.take_receiver_news() {
            let journal = self.state.outgoing();
            self.sending.save_receivers(flow, &transfers, journal, &self.handle);
        }

        self.sending.keep(&transfers);
        // Clocks of routers are set long after the start.
        self.stack.at(now, &mut self.storage).set_clock(unix_s());
        // The log has a line for each change, not for each frame.
        self.noted.log_coding(&self.stack);
        self.noted.log_neighbours(&self.stack, now);
        self.noted.forget_unknown(&self.stack);

        // Looking at the disk is rare, and goes on on another thread.
        if self.inbox.takes_look(now) {
            for flow in self.inbox.given_up(&self.stack, now) {
                tracing::info!("{flow}: its source does not return, it is given up");
                self.stack.at(now, &mut self.storage).cancel(flow);
                self.files.give_up(flow);
            }
            self.do_file_actions();
            self.inbox.look(&self.files, &self.handle);
        }

        self.place_trees();
        self.measuring.forget_idle(now);
        self.drive_fleet();
    }

    /// A frame was heard on a port. Says what it proves.
    pub fn handle_datagram(&mut self, port: Port, datagram: &[u8]) -> Heard {
        let now = self.clock.now();
        // The counter before and after says why there is no sender.
        let unproven = self.stack.counters().dropped(DropReason::Unproven);
        let sender = self.stack.at(now, &mut self.storage).on(port).handle_datagram(datagram);
        let heard = match sender {
            Some(sender) => {
                self.noted.hear(sender, now);
                Heard::Proven(sender)
            }
            None if self.stack.counters().dropped(DropReason::Unproven) > unproven => {
                Heard::Unproven
            }
            None => Heard::Dropped,
        };
        self.ports.count_heard(port, heard != Heard::Dropped, datagram.len());
        heard
    }

    /// Outcome of the frame filled last for a port.
    pub fn handle_tx_report(&mut self, port: Port, report: TxReport) {
        self.stack.at(self.clock.now(), &mut self.storage).on(port).handle_tx_report(report);
    }

    /// Takes what the radio of a port tells of itself.
    pub fn handle_port_news(&mut self, port: Port, news: PortNews) {
        let now = self.clock.now();
        // With one port there is no other way: its neighbours stay known while it is down.
        if self.ports.are_several() {
            self.stack.at(now, &mut self.storage).set_port_up(port, news.is_up);
        }
        self.stack.at(now, &mut self.storage).set_unicast(port, news.unicast.clone());
        self.ports.take_news(port, news, &mut self.stack);
    }

    /// Takes what the driver of a port's radio tells of its carrier.
    pub(crate) fn handle_carrier(&mut self, port: Port, carrier: CarrierTime) {
        self.stack.note_carrier(port, carrier, self.clock.now());
    }

    /// Returns the changes that the radios are to make, once each.
    pub(crate) fn take_port_changes(&mut self) -> Vec<PortChange> {
        core::mem::take(&mut self.ports.changes)
    }

    /// Whether there is something to transmit on a port.
    #[must_use]
    pub fn wants_radio(&self, port: Port) -> bool {
        self.stack.offer_on(port, self.clock.now()).is_some()
    }

    /// Tells neighbours on a port where to send frames that are for this node alone.
    pub fn set_address(&mut self, port: Port, address: Option<RadioAddress>) {
        self.stack.set_address_on(port, address);
    }

    /// Returns the shares of this node's frames that arrive at the neighbours of a port, by link
    /// state, and their addresses there.
    pub(crate) fn deliveries(&self, port: Port) -> BTreeMap<RadioAddress, f64> {
        let topology = self.stack.topology();
        let me = self.stack.node();
        let heard = self.stack.inbound_on(port);
        let delivery =
            |node| Some((self.stack.address_on(port, node)?, topology.delivery(me, node)));
        heard.filter_map(|(node, _)| delivery(node)).collect()
    }

    /// Writes the frame to transmit now on a port, if there is one.
    pub fn fill(&mut self, port: Port, out: &mut Vec<u8>) -> Option<Filled> {
        if !self.wants_radio(port) {
            return None;
        }
        let filled = self.stack.at(self.clock.now(), &mut self.storage).on(port).fill(out)?;
        self.ports.count_sent(port, out.len());
        let to = filled.to.and_then(|neighbour| self.stack.address_on(port, neighbour));
        Some(Filled { to })
    }

    /// The nodes that are meant.
    ///
    /// # Errors
    /// [`ErrorCode::UnknownReceiver`] and [`ErrorCode::UnreachableReceiver`] name the nodes that
    /// are known.
    pub fn resolve(&self, to: &Recipients) -> Result<Receivers, ApiError> {
        names::resolve(&self.stack, to, || self.hints().into_iter().next())
    }

    fn resolve_name(&self, name: &str) -> Result<NodeId, ApiError> {
        names::resolve_name(&self.stack, name, || self.hints().into_iter().next())
    }

    /// How `scheme` cuts a file of `size` bytes.
    ///
    /// # Errors
    /// [`ErrorCode::BadRequest`] or [`ErrorCode::File`].
    pub fn cut(&mut self, scheme: &str, size: u64) -> Result<Geometry, ApiError> {
        let now = self.clock.now();
        let scheme = self.stack.scheme(scheme).ok_or(SendError::UnknownScheme);
        let mut stack = self.stack.at(now, &mut self.storage);
        scheme
            .and_then(|scheme| stack.geometry_for(scheme, size))
            .map_err(|e| ApiError::new(ErrorCode::File, e.to_string()))
    }

    /// Hands a file to its engine, which announces it at once. Without `contents` and `leaves` (it
    /// vanished or changed since it was announced) the engine withdraws it once a receiver asks for
    /// it.
    ///
    /// # Errors
    /// [`ErrorCode::BadRequest`] or [`ErrorCode::File`].
    pub fn send(
        &mut self,
        file: OutgoingFile,
        contents: Option<File>,
        leaves: Vec<merkle::Hash>,
    ) -> Result<(), ApiError> {
        let flow = file.manifest.flow;
        // A state directory that was copied from another node, or whose node was renumbered.
        if flow.source != self.id() {
            let problem = format!("it was sent by node {}, this is {} now", flow.source, self.id());
            return Err(ApiError::new(ErrorCode::BadRequest, problem));
        }

        // A file whose turn came was counted until now, as one that is about to be announced.
        let must_wait = self.sending.must_wait(flow, self.open_sources());
        self.sending.opened(flow);
        if must_wait {
            tracing::info!("{flow}: {} waits for its turn", file.path.display());
            let problem = format!("{} files wait already: try again later", sending::MAX_WAITING);
            let waits = self.sending.wait(file).then_some(());
            return waits.ok_or_else(|| ApiError::new(ErrorCode::Busy, problem));
        }

        tracing::info!("{flow}: sending {}", file.path.display());
        let outgoing = Outgoing {
            manifest: file.manifest.clone(),
            leaves,
            receivers: file.receivers.clone(),
            done: file.done.clone(),
            open: file.open,
            allowance: file.allowance,
        };

        let now = self.clock.now();
        let scheme = self.stack.scheme(&file.scheme).ok_or(SendError::UnknownScheme);
        let mut stack = self.stack.at(now, &mut self.storage);
        let sent = scheme.and_then(|scheme| stack.send_file(scheme, outgoing));
        // The engine may refuse, so nothing is kept before it has taken the file.
        sent.map_err(|e| ApiError::new(ErrorCode::File, e.to_string()))?;

        if let Some(contents) = contents {
            self.storage.provide(flow, contents);
        }
        self.files.send(flow);
        self.sending.insert(file);
        Ok(())
    }

    /// Returns how many files of this node are announced and have not ended.
    fn open_sources(&self) -> usize {
        let is_open =
            |t: &&TransferStatus| t.direction == Direction::Sending && t.stage == Stage::Open;
        self.stack.transfers().iter().filter(is_open).count()
    }

    /// Sends the files whose turn has come.
    pub(crate) fn send_waiting(&mut self) {
        while let Some(file) = self.sending.next(self.open_sources()) {
            tokio::spawn(api::send_waiting(self.handle.clone(), file));
        }
    }

    /// Notes that a file that waited cannot be sent, so that others have their turn.
    pub fn note_unsent(&mut self, flow: FlowId) {
        self.sending.opened(flow);
    }

    /// The journal of files being sent.
    #[must_use]
    pub fn outgoing_journal(&self) -> OutgoingJournal {
        self.state.outgoing()
    }

    /// Returns the contents that clients handed over.
    #[must_use]
    pub fn spool(&self) -> Spool {
        self.state.spool()
    }

    /// Returns the paths of the files that are sent.
    #[must_use]
    pub fn sent_paths(&self) -> BTreeSet<PathBuf> {
        self.sending.paths()
    }

    /// Notes entries of the journal that cannot be resumed, so that people hear of them.
    pub fn note_damaged(&mut self, damaged: BTreeSet<PathBuf>) {
        self.sending.damaged = damaged;
    }

    /// This node's id.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.stack.node()
    }

    /// Sends an echo request. Returns what gets the round trip, at `until` at the latest.
    pub(crate) fn echo(
        &mut self,
        to: NodeId,
        until: Instant,
    ) -> oneshot::Receiver<Option<Duration>> {
        self.measuring.echo(to, self.clock.now(), until)
    }

    /// Begins a bandwidth run.
    ///
    /// # Errors
    /// Errors of a receiver of that name; [`ErrorCode::BadRequest`] if a value is not allowed;
    /// [`ErrorCode::Busy`] if a run is under way.
    pub(crate) fn begin_run(&mut self, request: &BandwidthRequest) -> Result<Running, ApiError> {
        let id = self.resolve_name(&request.node)?;
        let receiver = Named { id, name: self.name_of(id) };
        let choice = self.packet_scheme();
        let longest = choice.and_then(|choice| self.stack.longest_packet(choice.scheme));

        // A build may have no tunnel scheme at all.
        let (Some(choice), Some(longest)) = (choice, longest) else {
            let problem = "this program was built without a tunnel scheme";
            return Err(ApiError::new(ErrorCode::BadRequest, problem));
        };
        let by = Carrying { scheme: choice.entry.name, longest };
        self.measuring.begin_run(request, receiver, by, self.clock.now())
    }

    /// Returns the scheme that packets leave by: the tunnel's, or the default one without a tunnel.
    fn packet_scheme(&self) -> Option<Choice> {
        let own = self.tunnel.as_ref().map(Tunnel::scheme);
        own.or_else(|| crate::config::choose(AUTO).ok())
    }

    /// Ends a transfer.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`] or [`ErrorCode::Ended`].
    pub fn cancel(&mut self, flow: FlowId) -> Result<(), ApiError> {
        if self.stack.at(self.clock.now(), &mut self.storage).cancel(flow) {
            self.files.cancel(flow);
            self.do_file_actions();
            return Ok(());
        }

        if let Some(file) = self.sending.cancel_waiting(flow) {
            self.forget_contents(flow, file.path);
            return Ok(());
        }

        // The engine has no such transfer that is open: only its part is left here, or it has
        // ended.
        if self.inbox.cancel_part(flow, &self.chores, &self.handle) {
            return Ok(());
        }
        let known = self.stack.transfers().iter().any(|t| t.flow == flow);
        Err(if known {
            ApiError::new(ErrorCode::Ended, format!("transfer {flow} has ended already"))
        } else {
            no_such_transfer(&flow.to_string())
        })
    }

    /// Calls the streams of this node.
    pub fn with_streams<R>(&mut self, call: impl FnOnce(&mut Streams, &mut Moment<'_>) -> R) -> R {
        let mut moment = Moment::now(&self.clock, &mut self.stack, &mut self.storage);
        call(&mut self.streams, &mut moment)
    }

    /// Calls the tunnel of this node, if it has one.
    pub fn with_tunnel<R>(
        &mut self,
        call: impl FnOnce(&mut Tunnel, &mut Moment<'_>) -> R,
    ) -> Option<R> {
        let mut moment = Moment::now(&self.clock, &mut self.stack, &mut self.storage);
        self.tunnel.as_mut().map(|tunnel| call(tunnel, &mut moment))
    }

    /// Returns the configuration of the device that belongs to this node's tunnel, and its MTU.
    #[must_use]
    pub fn device(&self) -> Option<(&TunnelConfig, usize)> {
        self.tunnel.as_ref().map(Tunnel::device)
    }

    /// Notes what happened to the tunnel's device.
    pub fn note_device(&mut self, state: DeviceState) {
        let at = self.clock.now();
        if let Some(tunnel) = &mut self.tunnel {
            tunnel.note_device(state, at);
        }
    }

    /// Changes the scheme that packets leave by and what this node does as a relay, until the
    /// daemon stops.
    ///
    /// # Errors
    /// Returns an error and changes nothing if the change is empty, if there is no tunnel here, or
    /// if [`Tunnel::use_scheme`] refuses.
    pub(crate) fn change_tunnel(&mut self, change: &TunnelChange) -> Result<(), ApiError> {
        let TunnelChange { scheme, relay, coding } = change;
        let relaying = Relaying { relay: *relay, coding: *coding };
        let refusal = |why: &str| ApiError::new(ErrorCode::BadRequest, why);
        // A change of nothing is a mistake of the caller.
        if scheme.is_none() && relaying == Relaying::default() {
            return Err(refusal("nothing to change: name a scheme, a relay or whether to code"));
        }

        if let Some(scheme) = scheme {
            let no_tunnel = "there is no tunnel here; give this node a [tunnel] and start it again";
            let tunnel = self.tunnel.as_mut().ok_or_else(|| refusal(no_tunnel))?;
            tunnel.use_scheme(scheme, &self.stack)?;
        }
        if relaying != Relaying::default() {
            tracing::info!("relays otherwise: {relaying:?}");
            let now = self.clock.now();
            self.stack.at(now, &mut self.storage).relay_as(relaying);
        }

        Ok(())
    }

    /// Returns the running configuration.
    #[must_use]
    pub fn configuration(&self) -> &NodeConfig {
        &self.configuration
    }

    /// Takes another configuration.
    ///
    /// # Errors
    /// The first setting that cannot be. Then nothing has changed.
    pub(crate) fn reload(&mut self, new: &NodeConfig) -> Result<Reloaded, ApiError> {
        reload::reload(self, new)
    }

    /// Where files go that are received from now on.
    pub fn use_inbox(&mut self, dir: PathBuf) {
        tracing::info!("inbox is {}", dir.display());
        self.files.use_inbox(dir);
    }

    /// Where received files go.
    #[must_use]
    pub fn inbox(&self) -> Option<&PathBuf> {
        self.files.inbox()
    }
}

fn stack_config(config: &NodeConfig, start: &Start, trust: TrustConfig) -> StackConfig {
    StackConfig {
        node: config.id,
        name: config.name.clone(),
        profile: config.profile(),
        salt: start.salt,
        epoch: start.epoch,
        seed: start.seed,
        mtu: config.mtu(),
        versions: Versions::OWN,
        cipher: Cipher::new(&config.key),
        trust,
        link: config.link.clone(),
        route: config.route.clone(),
        share: config.share.clone(),
        engines: config.engines.clone(),
        file: config.limits.profile.file_limits(),
    }
}

/// The error for an id nobody knows.
pub(crate) fn no_such_transfer(id: &str) -> ApiError {
    ApiError::new(
        ErrorCode::NotFound,
        format!("no transfer {id} here; `ncmesh transfers` lists them"),
    )
}

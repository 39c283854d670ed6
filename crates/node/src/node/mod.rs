//! The node: the stack with its clock, its files and its memory. Nothing here waits.

mod chores;
mod coding;
mod console;
mod events;
mod graph;
mod handle;
mod hook;
mod measure;
pub(crate) mod metrics;
mod monitoring;
mod neighbors;
mod path;
mod reload;
mod saving;
mod send;
mod streams;
#[cfg(test)]
mod tests;
mod tunnel;
mod unfinished;
mod view;

use crate::api::types::{ApiError, ErrorCode};
use crate::config::{InboxLimits, NodeConfig, Rate, V6_MTU_MIN};
use crate::state::{Delivered, OutgoingFile, StateDir};
use crate::store::FileStorage;
use crate::stream::Ports;
pub use console::View;
pub use handle::{Command, Handle};
pub(crate) use metrics::MEDIA_TYPE as METRICS_TYPE;
use ncmesh_engine::TxReport;
use ncmesh_engine::file::{FileLimits, SendError};
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::time::Instant;
use ncmesh_engines::REGISTRY;
use ncmesh_host::files::Files;
use ncmesh_stack::{ConfigError, Stack, StackConfig};
use ncmesh_wire::{Cipher, FlowId, NodeId, RadioAddress, Salt, Versions};
pub(crate) use reload::refused;
use saving::Savers;
pub use send::Receivers;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use streams::Streams;
use tracing::Level;
use tunnel::Tunnel;

/// A node.
pub struct Node {
    /// The configuration that holds now.
    configuration: NodeConfig,
    /// The rate that the radio is to be told of.
    rate: Option<Option<Rate>>,
    stack: Stack,
    storage: FileStorage,
    clock: Clock,
    state: Arc<StateDir>,
    handle: Handle,
    /// Decides about files that are received and sent.
    files: Files<PathBuf>,
    delivered: Delivered,
    /// Limits on received files.
    limits: InboxLimits,
    hooks: hook::Hooks,
    /// Sets which messages are logged.
    set_log: Box<dyn Fn(Level)>,
    /// What is left in the inboxes of files that nobody sends.
    unfinished: unfinished::Unfinished,
    /// Files that are sent, and ended ones that the stack still shows.
    sources: BTreeMap<FlowId, OutgoingFile>,
    /// When neighbours were heard last. At most one entry for each id.
    last_heard: BTreeMap<NodeId, Instant>,
    savers: Savers,
    /// Damaged entries of files being sent, which were moved aside when the daemon started.
    damaged: BTreeSet<PathBuf>,
    chores: chores::Chores,
    radio: String,
    /// What the radio tells people.
    radio_hints: Vec<String>,
    mtu: usize,
    tunnel: Option<Tunnel>,
    measurements: measure::Measurements,
    streams: Streams,
    /// Neighbours for whom nothing was coded, when last looked at, by scheme. As many as the
    /// engines keep.
    coding_stopped: BTreeSet<(&'static str, NodeId)>,
    noted: neighbors::Noted,
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

/// What a node is made of besides its configuration.
pub struct Parts {
    /// Its state directory.
    pub state: StateDir,
    /// The list of files received.
    pub delivered: Delivered,
    /// What tells this start from others.
    pub start: Start,
    /// How other threads reach it.
    pub handle: Handle,
    /// The radio, for people.
    pub radio: String,
    /// The ports of its streams.
    pub ports: Ports,
    /// Sets which messages are logged.
    pub set_log: Box<dyn Fn(Level)>,
}

/// What tells one start of a node from others.
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
        let clock = Clock::start();
        let mut stack = Stack::new(stack_config(config, &parts.start), REGISTRY, clock.now())?;
        stack.make_room(V6_MTU_MIN);
        let tunnel = Tunnel::new(config, &stack)?;
        let inboxes = parts.state.inboxes();
        let mut node = Self {
            configuration: config.clone(),
            rate: None,
            stack,
            storage: FileStorage::new(config.inbox_limits.space),
            clock,
            state: Arc::new(parts.state),
            handle: parts.handle,
            files: Files::new(config.inbox.clone(), inboxes.clone()),
            delivered: parts.delivered,
            limits: config.inbox_limits.clone(),
            hooks: hook::Hooks::new(config.hook.clone()),
            set_log: parts.set_log,
            unfinished: Default::default(),
            sources: BTreeMap::new(),
            last_heard: BTreeMap::new(),
            savers: Savers::new(inboxes),
            damaged: BTreeSet::new(),
            chores: Default::default(),
            radio: parts.radio,
            radio_hints: Vec::new(),
            mtu: config.radio.mtu(),
            tunnel,
            measurements: measure::Measurements::new(parts.start.seed as u32),
            streams: Streams::new(parts.ports),
            coding_stopped: BTreeSet::new(),
            noted: Default::default(),
        };
        node.check_schemes()?;
        Ok(node)
    }

    /// Whether every engine for files can make packets that fit the radio.
    fn check_schemes(&mut self) -> Result<(), ConfigError> {
        for entry in REGISTRY.of(ServiceKind::File) {
            let mut stack = self.stack.at(self.clock.now(), &mut self.storage);
            let scheme = REGISTRY.scheme(entry.name).ok_or(SendError::UnknownScheme);
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
            self.stack.poll_timeout(),
            self.savers.poll_timeout(),
            self.chores.poll_timeout(),
            self.files.poll_timeout(),
            self.measurements.poll_timeout(),
        ];
        times.into_iter().flatten().min().map(|at| self.clock.at(at))
    }

    /// A time that was named has come.
    pub fn handle_timeout(&mut self) {
        let now = self.clock.now();
        self.stack.at(now, &mut self.storage).handle_timeout();
        self.files.handle_timeout(now);
        self.do_file_actions();
        self.do_chores(now);
    }

    /// A frame was heard. Says which node sent it, if it is authentic, new, and of a node that has
    /// proved that it is there.
    pub fn handle_datagram(&mut self, datagram: &[u8]) -> Option<NodeId> {
        let now = self.clock.now();
        let sender = self.stack.at(now, &mut self.storage).handle_datagram(datagram)?;
        self.last_heard.insert(sender, now);
        Some(sender)
    }

    /// What became of the frame filled last.
    pub fn handle_tx_report(&mut self, report: TxReport) {
        self.stack.at(self.clock.now(), &mut self.storage).handle_tx_report(report);
    }

    /// What the radio tells people has changed.
    pub fn handle_radio_change(&mut self, hints: Vec<String>) {
        self.radio_hints = hints;
    }

    /// Whether there is something to transmit.
    #[must_use]
    pub fn wants_radio(&self) -> bool {
        self.stack.offer(self.clock.now()).is_some()
    }

    /// Tells neighbours where to send frames that are for this node alone.
    pub fn set_address(&mut self, address: Option<RadioAddress>) {
        self.stack.set_address(address);
    }

    /// Writes the frame to transmit now. Returns the address that it goes to; `Some(None)` if it is
    /// for all, or for a neighbour that told no address.
    pub fn fill(&mut self, out: &mut Vec<u8>) -> Option<Option<RadioAddress>> {
        if !self.wants_radio() {
            return None;
        }
        let filled = self.stack.at(self.clock.now(), &mut self.storage).fill(out)?;
        Some(filled.to.and_then(|neighbor| self.stack.address_of(neighbor)))
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

        // The engine has no such transfer that is open: only its part is left here, or it has
        // ended.
        if self.cancel_part(flow) {
            return Ok(());
        }
        let known = self.stack.transfers().iter().any(|t| t.flow == flow);
        Err(if known {
            ApiError::new(ErrorCode::Ended, format!("transfer {flow} has ended already"))
        } else {
            no_such_transfer(&flow.to_string())
        })
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

fn stack_config(config: &NodeConfig, start: &Start) -> StackConfig {
    StackConfig {
        node: config.id,
        name: config.name.clone(),
        profile: config.profile(),
        salt: start.salt,
        epoch: start.epoch,
        seed: start.seed,
        mtu: config.radio.mtu(),
        versions: Versions::OWN,
        cipher: Cipher::new(&config.key),
        link: config.link.clone(),
        route: config.route.clone(),
        share: config.share.clone(),
        engines: config.engines.clone(),
        file: FileLimits::default(),
    }
}

/// The error for an id nobody knows.
pub(crate) fn no_such_transfer(id: &str) -> ApiError {
    ApiError::new(
        ErrorCode::NotFound,
        format!("no transfer {id} here; `ncmesh transfers` lists them"),
    )
}

//! One node, behind the few calls that a driver needs.
//!
//! - getters: [`Stack::topology`], [`Stack::counters`], [`Stack::transfers`], [`Stack::flows`], ...
//! - [`Stack::at`] gives an [`Active`] node at a moment, with its storage. On it are the handlers
//!   (datagram, timeout, report), the commands (send a file, a packet, ...) and [`Active::fill`].
//! - poll: [`Stack::poll_timeout`], [`Stack::offer`], [`Stack::poll_event`]
//!
//! After any call through [`Stack::at`], poll anew.

use crate::config::{ConfigError, StackConfig};
use crate::control::{self, Control};
use crate::impostor::Impostor;
use crate::link::HIDDEN;
use crate::pairs::{End, Pairs};
use crate::port::{Origin, PortState};
use crate::share::{CarrierTime, HeardFrame, Lane, ShareConfig};
use crate::statements::Statements;
use crate::strangers::Strangers;
use crate::transfers::{self, Transfers};
use crate::trust::Known;
use ncmesh_engine::blame::Liar;
use ncmesh_engine::counters::{Counters, DropReason};
use ncmesh_engine::file::TransferStatus;
use ncmesh_engine::registry::{Entry, Registry, Scheme, ServiceKind};
use ncmesh_engine::rng;
use ncmesh_engine::storage::Storage;
use ncmesh_engine::stream::StreamStatus;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::{LEAST_FRAME, SharedStates, Topology};
use ncmesh_engine::transmission::DATA;
use ncmesh_engine::tunnel::{CodingStatus, FlowStatus};
use ncmesh_engine::{AnyEngine, At, Class, Event, Offer, Port, StreamEngine, TunnelEngine, Ways};
use ncmesh_wire::identity::{Revocations, TAG_LEN};
use ncmesh_wire::{Cipher, FlowId, NodeId, RadioAddress, Salt, Sealer, ServiceId, Versions, frame};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use std::sync::Arc;

/// A frame that was written for the granted transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// `None` for broadcast, else the neighbour it goes to.
    pub to: Option<NodeId>,
    /// Protocol that wrote it.
    pub service: ServiceId,
    /// Kind of frame.
    pub kind: u8,
}

/// Slots of the airtime scheduler: control, then the engines in registry order.
pub(crate) mod slot {
    pub(crate) const CONTROL: usize = 0;
    pub(crate) const ENGINES: usize = 1;
}

/// One node of the mesh.
pub struct Stack {
    pub(crate) node: NodeId,
    pub(crate) name: String,
    pub(crate) epoch: u64,
    pub(crate) mtu: usize,
    pub(crate) sealer: Sealer,
    pub(crate) cipher: Cipher,
    /// Versions of the wire format that this node understands.
    pub(crate) versions: Versions,
    /// Buffer for opened frames.
    pub(crate) scratch: Vec<u8>,
    pub(crate) control: Control,
    pub(crate) strangers: Strangers,
    pub(crate) impostor: Impostor,
    pub(crate) registry: Registry,
    pub(crate) engines: Vec<AnyEngine>,
    pub(crate) transfers: Transfers,
    pub(crate) statements: Statements,
    pub(crate) pairs: Pairs,
    /// One random stream per slot.
    pub(crate) rngs: Vec<ChaCha8Rng>,
    /// At least one.
    pub(crate) ports: Vec<PortState>,
    /// Ports by which frames go to neighbours.
    pub(crate) ways: Ways,
    share_config: ShareConfig,
    pub(crate) counters: Counters,
    pub(crate) events: VecDeque<Event>,
    pub(crate) now: Instant,
    /// Time of the last call of [`Active::handle_timeout`].
    pub(crate) served: Instant,
}

/// A [`Stack`] at a moment, with its storage. Everything that changes a node is a method of it.
pub struct Active<'a> {
    pub(crate) stack: &'a mut Stack,
    pub(crate) storage: &'a mut dyn Storage,
    /// Port that calls are about, unless they are about the node.
    pub(crate) port: Port,
}

impl Stack {
    /// Returns a node with the engines of `registry` that starts at `now`.
    ///
    /// # Errors
    /// [`ConfigError`] if a setting has a value that is not allowed.
    pub fn new(config: StackConfig, registry: Registry, now: Instant) -> Result<Self, ConfigError> {
        let engines = config.build_engines(registry)?;

        // Each engine draws from a stream of its own: another engine beside it changes no draws.
        let names = ["control"].into_iter().chain(registry.entries().map(|e| e.name));
        let rngs = names.map(|name| rng::stream(config.seed, config.node, name, "engine"));

        // The seal takes its part of the MTU.
        let body = config.mtu - frame::OVERHEAD;
        let control = Control::new(&config, body, now);

        Ok(Self {
            node: config.node,
            epoch: config.epoch,
            mtu: config.mtu,
            sealer: Sealer::new(config.cipher.clone(), config.node, config.salt),
            cipher: config.cipher,
            versions: config.versions,
            scratch: Vec::with_capacity(config.mtu),
            control,
            strangers: Strangers::default(),
            impostor: Impostor::default(),
            rngs: rngs.collect(),
            ports: vec![PortState::new(slot::ENGINES + engines.len(), config.share.clone())],
            ways: Ways::default(),
            share_config: config.share,
            registry,
            engines,
            transfers: Transfers::default(),
            statements: Statements::default(),
            pairs: Pairs::default(),
            counters: Counters::default(),
            events: VecDeque::new(),
            now,
            served: now,
            name: config.name,
        })
    }

    /// Returns the node at `now`, ready to be told something. `now` must not lie before that of an
    /// earlier call.
    pub fn at<'a>(&'a mut self, now: Instant, storage: &'a mut dyn Storage) -> Active<'a> {
        self.now = now;
        Active { stack: self, storage, port: Port::FIRST }
    }

    // ---- ports

    /// Adds a port, which is up. Returns it; `None` if there are as many as a node may have.
    pub fn add_port(&mut self, now: Instant) -> Option<Port> {
        let port = Port::new(self.ports.len())?;
        let slots = slot::ENGINES + self.engines.len();
        self.ports.push(PortState::new(slots, self.share_config.clone()));
        self.control.add_port(port, now);
        Some(port)
    }

    /// Bounds the share of a port's airtime that all frames take, from above 0 to 1: those of this
    /// node and those that it hears. Frames of control are counted, but never held.
    pub fn set_airtime_share(&mut self, port: Port, share: f64) {
        self.ports[port.index()].share.set_most(share);
    }

    /// Notes what the driver of a port's radio tells of its carrier. Files yield to the traffic
    /// that is not of this mesh.
    pub fn note_carrier(&mut self, port: Port, carrier: CarrierTime, now: Instant) {
        self.ports[port.index()].share.note_carrier(carrier, now);
    }

    /// Notes the channels of the ports, where they are known: those of equal ones share their
    /// airtime, and a relay does not send on one while it receives on another.
    pub fn set_channels<T: PartialEq>(&mut self, channels: &[Option<T>]) {
        self.control.links.set_channels(channels);
    }

    /// Returns the ports of this node.
    pub fn ports(&self) -> impl Iterator<Item = Port> + '_ {
        (0..self.ports.len()).filter_map(Port::new)
    }

    /// Returns the port by which frames go to a neighbour.
    #[must_use]
    pub fn port_to(&self, neighbour: NodeId) -> Port {
        self.ways.port_to(neighbour)
    }

    /// Returns the neighbours heard on a port, with the share of their long frames that arrives.
    pub fn inbound_on(&self, port: Port) -> impl Iterator<Item = (NodeId, f64)> + '_ {
        self.control.links.on(port).inbound()
    }

    /// Returns the time for which the frames of this node used the channel of a port.
    #[must_use]
    pub fn airtime_on(&self, port: Port) -> Duration {
        self.ports[port.index()].egress.total()
    }

    /// Returns the address that a neighbour's radio has on a port.
    #[must_use]
    pub fn address_on(&self, port: Port, neighbour: NodeId) -> Option<RadioAddress> {
        self.control.links.on(port).address_of(neighbour)
    }

    /// Returns what would be transmitted on a port if its medium granted it now. Has no effects.
    #[must_use]
    pub fn offer_on(&self, port: Port, now: Instant) -> Option<Offer> {
        let state = &self.ports[port.index()];
        if !state.is_up {
            return None;
        }
        let waiting = state.waiting.front().map(|_| Offer::of(Class::Control));
        waiting.or_else(|| state.egress.choose(self.offers(port, now)).map(|(_, offer)| offer))
    }

    /// Tells the neighbours on a port this address of its radio from now on.
    pub fn set_address_on(&mut self, port: Port, address: Option<RadioAddress>) {
        self.control.links.on_mut(port).set_address(address);
    }

    // ---- getters

    /// Returns this node's id.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Returns this node's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the salt of this start, by which other nodes tell it from others.
    #[must_use]
    pub fn salt(&self) -> Salt {
        self.sealer.salt()
    }

    /// Returns the number of this start of the node. The next start's should be greater, so that
    /// the mesh believes it at once.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the engines that this node was built with.
    #[must_use]
    pub fn registry(&self) -> Registry {
        self.registry
    }

    /// Returns the mesh as known here.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        self.control.topology()
    }

    /// Returns the neighbours heard, with the share of their long frames that arrives here.
    pub fn inbound(&self) -> impl Iterator<Item = (NodeId, f64)> + '_ {
        self.control.links.inbound().into_iter()
    }

    /// Returns the address of a neighbour's radio, as it told it itself in its last hello. Where a
    /// frame came from does not matter: any node can send on what it hears.
    #[must_use]
    pub fn address_of(&self, neighbour: NodeId) -> Option<RadioAddress> {
        self.address_on(self.port_to(neighbour), neighbour)
    }

    /// Returns the versions of the wire format that a neighbour understands, by its last hello.
    #[must_use]
    pub fn versions_of(&self, neighbour: NodeId) -> Option<Versions> {
        self.control.links.versions_of(neighbour)
    }

    /// Returns the newest version that this node and all its neighbours understand.
    #[must_use]
    pub fn shared_version(&self) -> u8 {
        self.control.links.shared_version()
    }

    /// Returns the nodes whose frames this one did not understand lately, with their versions.
    /// Nothing proves who sent such frames.
    pub fn strangers(&self) -> impl Iterator<Item = (NodeId, u8)> + '_ {
        self.strangers.heard(self.now)
    }

    /// Returns this node's counters.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the ids, this node's or others', that two nodes use, as was seen lately.
    pub fn duplicates(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.control.peers.duplicates(self.now)
    }

    /// Returns whether somebody sent frames of this node's start in the last minutes, with its id
    /// and salt and of counters that this node had not used.
    #[must_use]
    pub fn is_impersonated(&self) -> bool {
        self.impostor.is_known(self.now)
    }

    /// Returns the nodes whose keys this node knows, itself included.
    pub fn identities(&self) -> impl Iterator<Item = (NodeId, &Known)> + '_ {
        self.control.route.trust.known()
    }

    /// Returns the key of a node, or of this one, if it is known here.
    #[must_use]
    pub fn identity_of(&self, node: NodeId) -> Option<&Known> {
        self.control.route.trust.of(node)
    }

    /// Returns the lists of revocations that count.
    #[must_use]
    pub fn revocations(&self) -> &[Revocations] {
        self.control.route.trust.revocations()
    }

    /// Returns a number that grows when keys, certificates and revocations are to be saved. Changes
    /// that can wait are saved together, and new names of known nodes once in an hour.
    #[must_use]
    pub fn identity_changes(&self) -> u64 {
        self.control.route.trust.saves()
    }

    /// Returns the nodes under whose ids states were told lately that are not theirs.
    pub fn identity_conflicts(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.control.route.trust.conflicts(self.now)
    }

    /// Returns the neighbours under whose ids false packets came in the last minutes.
    pub fn liars(&self) -> impl Iterator<Item = Liar> + '_ {
        self.counters.blame.liars(self.now)
    }

    /// Returns the state of every file transfer.
    #[must_use]
    pub fn transfers(&self) -> Vec<TransferStatus> {
        transfers::all(&self.engines).collect()
    }

    /// Returns the name of the scheme that carries a file transfer.
    #[must_use]
    pub fn transfer_scheme(&self, flow: FlowId) -> Option<&'static str> {
        self.registry.0.get(self.transfers.engine(flow)?).map(|entry| entry.name)
    }

    /// Returns the state of every flow of every tunnel scheme, with the scheme's name.
    #[must_use]
    pub fn flows(&self) -> Vec<(&'static str, FlowStatus)> {
        let tunnels = self.tunnels();
        tunnels.flat_map(|(name, t)| t.flows().into_iter().map(move |flow| (name, flow))).collect()
    }

    /// Returns what each tunnel scheme codes of packets that cross here, with the scheme's name.
    #[must_use]
    pub fn coding(&self) -> Vec<(&'static str, CodingStatus)> {
        self.tunnels().filter_map(|(name, t)| Some((name, t.coding(self.now)?))).collect()
    }

    /// Returns whether the tunnel `scheme` would take a packet for `to` now. `None` if it is no
    /// tunnel scheme.
    #[must_use]
    pub fn can_send(&self, scheme: Scheme, to: NodeId) -> Option<bool> {
        Some(self.tunnel(scheme)?.can_send(to))
    }

    /// Returns whether the tunnel `scheme` would soon send a packet for `to`. `None` if it is no
    /// tunnel scheme.
    #[must_use]
    pub fn below_low_watermark(&self, scheme: Scheme, to: NodeId) -> Option<bool> {
        Some(self.tunnel(scheme)?.below_low_watermark(to))
    }

    /// Returns the longest packet that the tunnel `scheme` carries, bytes. `None` if it is no
    /// tunnel scheme.
    #[must_use]
    pub fn longest_packet(&self, scheme: Scheme) -> Option<usize> {
        let longest = self.tunnel(scheme)?.longest(self.mtu - frame::OVERHEAD);
        Some(longest.saturating_sub(self.longest_tag()))
    }

    /// Returns the length of the longest frame that every node of the mesh passes on, as far as is
    /// known, bytes. A relay cannot pass on longer ones, so files and packets are cut for it.
    pub(crate) fn carried(&self) -> usize {
        let shortest = self.control.topology().shortest_frame();
        let others = shortest.map_or(usize::MAX, |(_, length)| length.max(LEAST_FRAME).into());
        self.mtu.min(others)
    }

    /// Returns a node that takes no frames as long as this one's, and the length of its longest, if
    /// nothing is cut for it, since its frames are too short.
    #[must_use]
    pub fn too_short_for(&self) -> Option<(NodeId, usize)> {
        let (node, length) = self.control.topology().shortest_frame()?;
        let length = usize::from(length);
        (length < self.carried()).then_some((node, length))
    }

    /// Takes the tags off the packets that a scheme has handed up, from the event `first` on, and
    /// drops those that are not of the nodes that they are said to be from.
    pub(crate) fn check_packets(&mut self, first: usize) {
        let end = End { me: self.node, trust: &self.control.route.trust, now: self.now };
        let mut at = first;
        while let Some(event) = self.events.get_mut(at) {
            if let Event::Packet { from, packet } = event
                && !self.pairs.open(end, *from, packet)
            {
                self.events.remove(at);
                self.counters.drop(DropReason::Untrusted);
            } else {
                at += 1;
            }
        }
    }

    /// Returns the length of the tags that may stand behind packets, bytes.
    fn longest_tag(&self) -> usize {
        if self.control.route.trust.signs() { TAG_LEN } else { 0 }
    }

    /// Returns the state of every stream, with the name of its scheme.
    #[must_use]
    pub fn streams(&self) -> Vec<(&'static str, StreamStatus)> {
        let all = self.stream_engines();
        all.flat_map(|(name, s)| s.streams().into_iter().map(move |status| (name, status)))
            .collect()
    }

    /// Returns the groups that this node joined by any scheme, whether or not anybody sends to
    /// them.
    #[must_use]
    pub fn stream_groups(&self) -> Vec<String> {
        self.stream_engines().flat_map(|(_, engine)| engine.groups()).collect()
    }

    /// Returns the longest packet of a stream that `scheme` carries, bytes. `None` if it is no
    /// scheme of streams.
    #[must_use]
    pub fn longest_stream_packet(&self, scheme: Scheme) -> Option<usize> {
        match self.engines.get(scheme.index())? {
            AnyEngine::Stream(stream) => Some(stream.longest(self.mtu - frame::OVERHEAD)),
            AnyEngine::File(_) | AnyEngine::Tunnel(_) => None,
        }
    }

    /// Returns the scheme of this name, if this node was built with it.
    #[must_use]
    pub fn scheme(&self, name: &str) -> Option<Scheme> {
        self.registry.scheme(name)
    }

    /// Returns the node of this name. Of several it is the one that had the name long before the
    /// others; `None` if there is no such node.
    #[must_use]
    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        self.control.route.node_named(name)
    }

    // ---- poll

    /// Returns the first time at which something falls due for which [`Active::handle_timeout`] was
    /// not called yet: never before the last call, and after it unless another call overtook a
    /// timer.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = [self.control.poll_timeout(self.served)];
        let engines = self.engines.iter().map(|e| e.common().poll_timeout(self.served));
        let shared = self.ports.iter().map(|port| port.share.poll_timeout(self.served));
        own.into_iter().chain(engines).chain(shared).flatten().min().map(|at| at.max(self.now))
    }

    /// Returns what would be transmitted on the first port if its medium granted it now. Has no
    /// effects.
    #[must_use]
    pub fn offer(&self, now: Instant) -> Option<Offer> {
        self.offer_on(Port::FIRST, now)
    }

    /// Returns the next event for the driver.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    // ---- set-up

    /// Uses `topology` instead of measuring.
    pub fn pin_topology(&mut self, topology: Arc<Topology>) {
        self.control.pin(topology);
    }

    /// Keeps link states together with the other nodes that were given `states`.
    pub fn share_states(&mut self, states: SharedStates) {
        self.control.route.share_states(states);
    }

    /// Tells the neighbours on the first port this address of its radio from now on.
    pub fn set_address(&mut self, address: Option<RadioAddress>) {
        self.set_address_on(Port::FIRST, address);
    }

    /// Arranges that every tunnel scheme carries packets of `packet` bytes, as far as frames have
    /// room for it.
    pub fn make_room(&mut self, packet: usize) {
        let packet = packet + self.longest_tag();
        for engine in &mut self.engines {
            if let AnyEngine::Tunnel(tunnel) = engine {
                tunnel.make_room(self.mtu - frame::OVERHEAD, packet);
            }
        }
    }

    /// Takes every start of another node for current, without a proof that it is there now. For
    /// frames that no node sent.
    pub fn trust_all(&mut self) {
        self.control.peers.trust_all();
    }

    // ---- inside

    /// Returns what each slot would transmit on a port at `now`. Data of a service wait while the
    /// air is others'.
    pub(crate) fn offers(
        &self,
        port: Port,
        now: Instant,
    ) -> impl Iterator<Item = Option<Offer>> + '_ {
        let at = At { port, ways: &self.ways };
        let own = [self.control.offer(now, port)];
        let is_silent = self.is_silent(now);
        let share = &self.ports[port.index()].share;
        let services = self.registry.entries().map(Entry::service);
        let engines = services.zip(&self.engines).enumerate();
        let offers = engines.map(move |(index, (service, engine))| {
            if self.is_occupied(Origin { slot: slot::ENGINES + index, port }) {
                return None;
            }
            let offer = engine.common().offer_at(now, at)?;
            let lane = Lane::of(service, DATA, offer.background.is_some());
            let is_held = now < share.open_at(lane) || (is_silent && lane.is_of_files());
            (!is_held || offer.class == Class::Control).then_some(offer)
        });
        own.into_iter().chain(offers)
    }

    /// Returns whether another port still has a frame of an engine's slot, so that the engine fills
    /// none for this one: the frame that it filled last for this port or, if it serves no ports,
    /// any.
    fn is_occupied(&self, origin: Origin) -> bool {
        let serves_ports = |slot: usize| self.engines[slot - slot::ENGINES].common().serves_ports();
        let others = self.ports.iter().enumerate();
        let others = others.filter(|(place, _)| *place != origin.port.index());
        let mut unsent = others.flat_map(|(_, port)| port.unsent());
        unsent.any(|other| {
            other.slot == origin.slot && (other.port == origin.port || !serves_ports(origin.slot))
        })
    }

    /// Notes a frame of a service that was heard on a port.
    pub(crate) fn note_heard(&mut self, port: Port, lane: Lane, sender: NodeId, len: usize) {
        // Before this node has sent anything, it knows no airtime, and has no files that could
        // give way.
        let Some(airtime) = self.control.links.on(port).airtime(len) else { return };
        let leaves_gaps = self.ports[port.index()].share.leaves_gaps(self.now);
        let hides_answers = leaves_gaps && self.hides_others(sender);
        let heard = HeardFrame { lane, airtime, hides_answers };
        self.ports[port.index()].share.note_heard(heard, self.now);
    }

    /// Returns whether a node hears others that this node does not hear.
    fn hides_others(&self, node: NodeId) -> bool {
        let topology = self.control.topology();
        let heard = topology.state(node).into_iter().flat_map(|state| state.hears.keys());
        let is_hidden = |n: &NodeId| topology.delivery(*n, self.node) < HIDDEN;
        heard.into_iter().any(|n| *n != self.node && is_hidden(n))
    }

    /// Returns whether an engine leaves the channel to frames of other nodes.
    fn is_silent(&self, now: Instant) -> bool {
        self.engines.iter().any(|engine| engine.common().silent_until() > now)
    }

    /// Returns the service of a slot's frames; `None` for control.
    pub(crate) fn service_of(&self, slot: usize) -> Option<ServiceKind> {
        Some(self.registry.0.get(slot.checked_sub(slot::ENGINES)?)?.service())
    }

    /// Returns the service byte of a slot's frames.
    pub(crate) fn service_id(&self, slot: usize) -> ServiceId {
        match slot {
            slot::CONTROL => control::SERVICE,
            _ => self.registry.0[slot - slot::ENGINES].id,
        }
    }

    /// Returns the engines with their names.
    fn named(&self) -> impl Iterator<Item = (&'static str, &AnyEngine)> {
        self.registry.entries().map(|entry| entry.name).zip(&self.engines)
    }

    fn tunnels(&self) -> impl Iterator<Item = (&'static str, &dyn TunnelEngine)> {
        self.named().filter_map(|(name, engine)| match engine {
            AnyEngine::Tunnel(tunnel) => Some((name, tunnel.as_ref())),
            AnyEngine::File(_) | AnyEngine::Stream(_) => None,
        })
    }

    fn tunnel(&self, scheme: Scheme) -> Option<&dyn TunnelEngine> {
        match self.engines.get(scheme.index())? {
            AnyEngine::Tunnel(tunnel) => Some(tunnel.as_ref()),
            AnyEngine::File(_) | AnyEngine::Stream(_) => None,
        }
    }

    fn stream_engines(&self) -> impl Iterator<Item = (&'static str, &dyn StreamEngine)> {
        self.named().filter_map(|(name, engine)| match engine {
            AnyEngine::Stream(stream) => Some((name, stream.as_ref())),
            AnyEngine::File(_) | AnyEngine::Tunnel(_) => None,
        })
    }
}

//! A node at one moment: everything that changes it.
//!
//! The driver gets an [`Active`] node from [`Stack::at`](crate::Stack::at), with the present time
//! and the storage of its files. Each call runs one engine, or asks several, with a [`Context`]
//! that borrows the rest of the node.

use crate::control::{self, Arrival};
use crate::link::FrameHeard;
use crate::links::Unicast;
use crate::pairs::End;
use crate::peers::Trust;
use crate::port::{OnAir, Origin, PortState, Waiting};
use crate::share::{Lane, SentFrame};
use crate::stack::{Active, Transmission, slot};
use crate::statements::InFrame;
use crate::transfers::Raised;
use crate::trust::Verdict;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::{GenerationSet, Geometry, Outgoing, Refusal, SendError};
use ncmesh_engine::registry::Scheme;
use ncmesh_engine::stream::{NewStream, StreamError, StreamPacketError, UtilityConfig};
use ncmesh_engine::time::Duration;
use ncmesh_engine::topology::{Profile, Topology};
use ncmesh_engine::tunnel::{PacketError, Relaying};
use ncmesh_engine::{
    AnyEngine, At, Background, Context, Engine, Event, FileEngine, Filled, Frame, Offer, Port,
    StreamEngine, TunnelEngine, TxReport, TxResult,
};
use ncmesh_wire::identity::{Rejection, Revocations, Signature};
use ncmesh_wire::{FlowId, NodeId, OpenError, Opened, Salt, Sealer, frame};
use rand_core::RngCore;

/// The context of one slot, borrowing the stack's other parts.
macro_rules! context {
    ($active:ident, $slot:expr, $mtu:expr, $topology:expr) => {
        Context {
            now: $active.stack.now,
            me: $active.stack.node,
            epoch: $active.stack.epoch,
            mtu: $mtu - frame::OVERHEAD,
            at: At { port: $active.port, ways: &$active.stack.ways },
            topology: $topology,
            rng: &mut $active.stack.rngs[$slot],
            counters: &mut $active.stack.counters,
            events: &mut $active.stack.events,
            storage: $active.storage,
        }
    };
}

impl Active<'_> {
    /// Returns the node with a port, which the next call is about: the first, unless this says
    /// otherwise.
    #[must_use]
    pub fn on(self, port: Port) -> Self {
        Self { port, ..self }
    }

    // ---- handlers

    /// Notes that a port is up, or that nothing passes it, such as a cable that was pulled. Its
    /// neighbours are reached by other ports from now on, if they are there.
    pub fn set_port_up(&mut self, port: Port, is_up: bool) {
        let stack = &mut *self.stack;
        let state = &mut stack.ports[port.index()];
        if state.is_up == is_up {
            return;
        }
        state.is_up = is_up;
        stack.control.set_up(port, is_up, stack.now);
        self.stack.ways = self.stack.control.links.choose_ways(self.stack.now);
        if !is_up {
            let on_air = self.stack.ports[port.index()].on_air.take();
            let waiting = core::mem::take(&mut self.stack.ports[port.index()].waiting);
            let waiting = waiting.into_iter().map(|frame| frame.origin);
            for origin in waiting.chain(on_air.map(|frame| frame.origin)).collect::<Vec<_>>() {
                self.give_up(origin);
            }
        }
    }

    /// Notes which neighbours unicast serves much faster than broadcasts on a port, as its driver
    /// shows.
    pub fn set_unicast(&mut self, port: Port, unicast: Unicast) {
        let stack = &mut *self.stack;
        stack.control.links.set_unicast(port, unicast);
        stack.ways = stack.control.links.choose_ways(stack.now);
    }

    /// Handles a datagram from the radio. Returns its sender if it is another node's, authentic,
    /// new, and of a start that has proved that it is there now.
    pub fn handle_datagram(&mut self, datagram: &[u8]) -> Option<NodeId> {
        let mut scratch = core::mem::take(&mut self.stack.scratch);
        let sender = self.open(datagram, &mut scratch);
        self.stack.scratch = scratch;
        sender
    }

    /// Does what falls due now; [`Stack::poll_timeout`](crate::Stack::poll_timeout) says when to
    /// call it.
    pub fn handle_timeout(&mut self) {
        let stack = &mut *self.stack;
        stack.served = stack.now;
        stack.control.handle_timeout(stack.now);
        stack.epoch = stack.control.route.epoch();
        stack.ways = stack.control.links.choose_ways(stack.now);
        self.renew_start();
        self.give_up_waiting();
        for index in 0..self.stack.engines.len() {
            self.with_engine(index, |engine, cx| engine.handle_timeout(cx));
        }
    }

    /// Handles the radio's report on the frame that was filled last for the port.
    pub fn handle_tx_report(&mut self, report: TxReport) {
        let port = self.port;
        let stack = &mut *self.stack;
        let on_air = stack.ports[port.index()].on_air.take();
        let Some(OnAir { origin, kind, len, background, .. }) = on_air else { return };
        let slot = origin.slot;
        let service = stack.service_of(slot);
        let state = &mut stack.ports[port.index()];
        if let Some(service) = service {
            let lane = Lane::of(service, kind, background.is_some());
            let airtime = report.airtime;
            state.share.note_sent(SentFrame { lane, len, airtime }, stack.now);
        } else {
            state.share.note_control(report.airtime, stack.now);
        }

        // Data in the background have no weight: they go last.
        let weighed = service.filter(|_| background.is_none());
        let weight = weighed.map(|service| state.share.weight(service));
        state.egress.used(slot, report.airtime, weight);

        // Control learns of all airtime: it shows what a byte costs, and pays for its own frames.
        let service = stack.service_id(slot);
        stack.counters.count_airtime(service, kind, report.airtime);
        let is_control = slot == slot::CONTROL;
        stack.control.note_airtime(port, len, report.airtime, is_control, stack.now);
        self.report_to(origin, report);
    }

    /// Writes the best sealed frame that there is for the port into `out`; its medium has granted a
    /// transmission. Returns `None` if there is nothing to send.
    pub fn fill(&mut self, out: &mut Vec<u8>) -> Option<Transmission> {
        let port = self.port;
        if !self.stack.ports[port.index()].is_up {
            return None;
        }
        self.stack.ports[port.index()].is_stuck = false;

        // A frame that was filled for this port when another was granted has waited long enough,
        // but hellos go before it.
        let now = self.stack.now;
        let is_control_due = self.stack.control.offer(now, port).is_some();
        let waiting = &mut self.stack.ports[port.index()].waiting;
        if !is_control_due && let Some(waiting) = waiting.pop_front() {
            let Waiting { origin, kind, to, background, body, .. } = waiting;
            Sealer::begin(out, self.stack.service_id(origin.slot), 0);
            out.extend_from_slice(&body);
            return Some(self.send(origin, Filled { kind, to }, background, out));
        }

        // An engine may find that its offer came to nothing; then the others are asked.
        let mut asked = vec![false; self.stack.engines.len() + slot::ENGINES];
        loop {
            let offers = self.stack.offers(port, self.stack.now).zip(&asked);
            let open = offers.map(|(offer, asked)| offer.filter(|_| !asked));
            let (slot, offer) = self.stack.ports[port.index()].egress.choose(open)?;
            asked[slot] = true;

            // The kind of the frame is known only once the engine has written it behind the header.
            Sealer::begin(out, self.stack.service_id(slot), 0);
            let begin = out.len();
            self.stack.counters.begin_frame();
            let Some(filled) = self.fill_slot(slot, out) else { continue };
            let origin = Origin { slot, port };
            let Offer { background, is_local, .. } = offer;
            let body = &out[begin..];
            let is_for_here = match filled.to {
                _ if slot == slot::CONTROL => true,
                Some(to) => {
                    let way = self.stack.ways.port_to(to);
                    let is_elsewhere = way != port && self.stack.ports[way.index()].takes_frames();
                    if is_elsewhere {
                        self.let_wait(way, origin, filled, background, body);
                    }
                    !is_elsewhere
                }
                None => {
                    let others: Vec<Port> =
                        self.stack.ports().filter(|other| *other != port && !is_local).collect();
                    for other in others {
                        self.let_wait(other, origin, filled, background, body);
                    }
                    true
                }
            };

            if is_for_here {
                return Some(self.send(origin, filled, background, out));
            }
        }
    }

    // ---- commands on files

    /// Returns how `scheme` would cut a file of `size` bytes.
    ///
    /// # Errors
    /// [`SendError`] if it cannot be cut, or the scheme is of another service.
    pub fn geometry_for(&mut self, scheme: Scheme, size: u64) -> Result<Geometry, SendError> {
        // Every node has to be able to pass the packets on.
        let carried = self.stack.carried();
        self.with_file(scheme.index(), carried, |file, cx| file.geometry_for(cx, size))
            .ok_or(SendError::UnknownScheme)?
    }

    /// Offers a file to its receivers by `scheme`.
    ///
    /// # Errors
    /// [`SendError`] if it cannot be offered, or the scheme is of another service.
    pub fn send_file(&mut self, scheme: Scheme, outgoing: Outgoing) -> Result<(), SendError> {
        let flow = outgoing.manifest.flow;
        self.with_file(scheme.index(), self.stack.mtu, |file, cx| file.send(cx, outgoing))
            .ok_or(SendError::UnknownScheme)??;
        self.stack.transfers.insert(flow, scheme.index(), &self.stack.engines);
        Ok(())
    }

    /// Answers [`Event::Announced`](ncmesh_engine::Event::Announced): the file has a place, and the
    /// generations `have` are already there.
    pub fn accept(&mut self, flow: FlowId, have: &GenerationSet) {
        self.with_transfer(flow, |file, cx| file.accept(cx, flow, have.clone()));
    }

    /// Answers [`Event::Announced`](ncmesh_engine::Event::Announced) with a refusal, or ends a
    /// reception.
    pub fn refuse(&mut self, flow: FlowId, why: Refusal) {
        self.with_transfer(flow, |file, cx| file.refuse(cx, flow, why));
    }

    /// Answers [`Event::Assembled`](ncmesh_engine::Event::Assembled): the file has its name.
    pub fn delivered(&mut self, flow: FlowId) {
        self.with_transfer(flow, |file, cx| file.delivered(cx, flow));
    }

    /// Ends a transfer. Returns whether it was under way.
    pub fn cancel(&mut self, flow: FlowId) -> bool {
        self.with_transfer(flow, |file, cx| file.cancel(cx, flow)).unwrap_or(false)
    }

    // ---- commands on tunnels

    /// Offers a packet for `to` to the tunnel `scheme`.
    ///
    /// # Errors
    /// [`PacketError`] if it is not taken, or the scheme is of another service.
    pub fn send_packet(
        &mut self,
        scheme: Scheme,
        to: NodeId,
        packet: &[u8],
    ) -> Result<(), PacketError> {
        let stack = &mut *self.stack;
        let trust = &stack.control.route.trust;
        let end = End { me: stack.node, trust, now: stack.now };
        let tagged = stack.pairs.tag(end, to, packet).map(|tag| [packet, &tag].concat());
        let whole = tagged.as_deref().unwrap_or(packet);
        let tag = whole.len() - packet.len();
        let taken =
            self.with_tunnel(scheme.index(), |tunnel, cx| tunnel.handle_packet(cx, to, whole));

        // Lengths are those of the packet that was offered.
        match taken.ok_or(PacketError::UnknownScheme)? {
            Err(PacketError::TooLong { bytes, longest }) => Err(PacketError::TooLong {
                bytes: bytes - tag,
                longest: longest.saturating_sub(tag),
            }),
            other => other,
        }
    }

    /// Counts a packet from the mesh that the host's own protocols drop.
    pub fn note_drop(&mut self, why: DropReason) {
        self.stack.counters.drop(why);
    }

    /// Tells the mesh another profile from now on.
    pub fn tell(&mut self, profile: Profile) {
        self.stack.control.route.set_profile(profile);
    }

    /// Sets the time of the node's own clock, seconds since 1970. It may be wrong.
    pub fn set_clock(&mut self, unix_s: u64) {
        let now = self.stack.now;
        self.stack.control.route.trust.set_clock(unix_s, now);
    }

    /// Takes a list of revocations and tells it to the mesh.
    ///
    /// # Errors
    /// [`Rejection`] if it does not count; [`Rejection::OtherNetwork`] also if this node is in no
    /// network.
    pub fn revoke(&mut self, list: Revocations) -> Result<(), Rejection> {
        let now = self.stack.now;
        self.stack.control.route.revoke(list, now)
    }

    /// Changes how this node relays, for every tunnel scheme that leaves a choice.
    pub fn relay_as(&mut self, change: Relaying) {
        for index in 0..self.stack.engines.len() {
            self.with_tunnel(index, |tunnel, cx| tunnel.relay_as(cx, change));
        }
    }

    // ---- commands on streams

    /// Begins a stream by `scheme`.
    ///
    /// # Errors
    /// [`StreamError`] if there can be no such stream, or the scheme is of another service.
    pub fn open_stream(
        &mut self,
        scheme: Scheme,
        new: NewStream<'_>,
    ) -> Result<FlowId, StreamError> {
        self.with_stream(scheme.index(), |stream, cx| stream.open(cx, new))
            .ok_or(StreamError::UnknownScheme)?
    }

    /// Ends the stream that this node sends to `group` by `scheme`. Returns whether there was one.
    pub fn close_stream(&mut self, scheme: Scheme, group: &str) -> bool {
        self.with_stream(scheme.index(), |stream, cx| stream.close(cx, group)) == Some(true)
    }

    /// Offers a packet of a stream's layer; layer 0 is the base.
    ///
    /// # Errors
    /// [`StreamPacketError`] if it is not taken, or the scheme is of another service.
    pub fn send_stream_packet(
        &mut self,
        scheme: Scheme,
        flow: FlowId,
        layer: usize,
        packet: &[u8],
    ) -> Result<(), StreamPacketError> {
        self.with_stream(scheme.index(), |stream, cx| stream.send(cx, flow, layer, packet))
            .ok_or(StreamPacketError::UnknownScheme)?
    }

    /// Joins `group` by `scheme`, at the rate that suits `utility`.
    ///
    /// # Errors
    /// [`StreamError`] if this node cannot join so, or the scheme is of another service.
    pub fn join(
        &mut self,
        scheme: Scheme,
        group: &str,
        utility: UtilityConfig,
    ) -> Result<(), StreamError> {
        self.with_stream(scheme.index(), |stream, cx| stream.join(cx, group, utility))
            .ok_or(StreamError::UnknownScheme)?
    }

    /// Leaves `group`. Returns whether this node had joined.
    pub fn leave(&mut self, scheme: Scheme, group: &str) -> bool {
        self.with_stream(scheme.index(), |stream, cx| stream.leave(cx, group)) == Some(true)
    }

    // ---- inside

    /// Opens a datagram and handles what is in it, as [`handle_datagram`](Self::handle_datagram)
    /// says.
    fn open(&mut self, datagram: &[u8], scratch: &mut Vec<u8>) -> Option<NodeId> {
        let stack = &mut *self.stack;
        let now = stack.now;
        let me = stack.node;

        // Cheap checks come first. Nothing is kept of a frame before it is authentic: a
        // forged counter must not block genuine frames.
        let sealed = match frame::parse(datagram, stack.versions) {
            Ok(sealed) => sealed,
            Err(e) => {
                stack.counters.drop(e.into());
                if let OpenError::Version { version, sender: Some(sender) } = e {
                    stack.strangers.note(sender, version, now);
                }
                return None;
            }
        };

        let header = sealed.header;
        if header.sender == me && header.salt == stack.sealer.salt() {
            // Our own frame came back, unless it is one that we have not sent.
            if header.counter > stack.sealer.counter() {
                let opened = stack.cipher.open_parsed(&sealed, scratch);
                opened.map_err(|e| stack.counters.drop(e.into())).ok()?;
                stack.counters.drop(DropReason::DuplicateId);
                stack.impostor.note(now);
                self.renew_start();
            }

            return None;
        }

        if !stack.control.peers.is_new(&header, now) {
            stack.counters.drop(DropReason::Replayed);
            return None;
        }

        let opened = stack.cipher.open_parsed(&sealed, scratch);
        let o = opened.map_err(|e| stack.counters.drop(e.into())).ok()?;

        if stack.control.is_shut_out(&header, o.service, o.kind, now) {
            stack.counters.drop(DropReason::Untrusted);
            return None;
        }

        // Until a start has proved that it is live, only its hellos are read.
        let port = self.port;
        let standing = stack.control.peers.record(&header, &stack.cipher, now);
        let is_hello = o.service == control::SERVICE && o.kind == control::HELLO;
        let is_other = header.sender != me;
        let is_current = standing != Trust::Unproven;
        let is_overtaken = standing == Trust::Current { is_late: true };
        // A frame of another port may have overtaken it.
        let links = &stack.control.links;
        let is_quick_port = || links.on(port).is_latest_here(header.sender, header.counter);
        let is_late = is_overtaken && !(links.are_several() && is_quick_port());
        if is_other {
            stack.counters.count_heard(header.sender, o.service, o.kind, datagram.len());
        }
        let is_read = (is_current && is_other) || is_hello;
        if is_read && self.is_believed(&o) {
            let sender = header.sender;
            let start = header.salt.start();
            let service = o.service;
            let kind = o.kind;
            let body = o.body;
            let arrival = Arrival { header, is_late };
            self.dispatch(&Frame { sender, start, service, kind, body }, arrival);
        }

        let stack = &mut *self.stack;
        if stack.control.peers.is_forged() {
            stack.impostor.note(now);
            self.renew_start();
        }

        let stack = &mut *self.stack;
        if !stack.control.peers.is_current(&header) {
            stack.counters.drop(DropReason::Unproven);
            return None;
        }

        if !is_other {
            stack.counters.drop(DropReason::DuplicateId);
            stack.control.peers.note_double(now);
            return None;
        }

        let is_control = o.service == control::SERVICE;
        if let Some(entry) = stack.registry.by_id(o.service) {
            let lane = Lane::of(entry.service(), o.kind, o.is_background);
            stack.note_heard(port, lane, header.sender, datagram.len());
        } else if let Some(airtime) = stack.control.links.on(port).airtime(datagram.len()) {
            stack.ports[port.index()].share.note_control(airtime, now);
        }

        let heard = FrameHeard {
            sender: header.sender,
            start: header.salt.start(),
            len: datagram.len(),
            counter: header.counter,
            is_control,
            is_late,
        };

        stack.control.note_frame(port, heard, now);
        Some(header.sender)
    }

    /// Hands a frame to the protocol that it belongs to, and to those that overhear it.
    fn dispatch(&mut self, frame: &Frame<'_>, arrival: Arrival) {
        match frame.service {
            control::SERVICE => self.handle_control(frame, arrival),
            id if self.stack.registry.by_id(id).is_none() => {
                self.stack.counters.drop(DropReason::UnknownService);
            }
            id => {
                for index in 0..self.stack.engines.len() {
                    // Whether the frame is addressed to this node is for the engine to see:
                    // overhearing is what coding lives on.
                    if self.stack.engines[index].common().hears(id) {
                        self.with_engine(index, |engine, cx| engine.handle_frame(cx, frame));
                    }
                }

                self.stack.counters.count_payload(frame.sender);
            }
        }
    }

    /// Returns whether what a frame brings was said by its origin, as far as that can be known. If
    /// not, the frame is counted.
    fn is_believed(&mut self, opened: &Opened<'_>) -> bool {
        let Opened { header, service, kind, body, signature, .. } = *opened;
        let stack = &mut *self.stack;
        let mut engines = stack.engines.iter().map(AnyEngine::common);
        let statement = engines.find(|engine| engine.hears(service));
        let statement = statement.and_then(|engine| engine.statement(kind, body));
        let Some(statement) = statement else {
            // Nothing else is signed in this way.
            if signature.is_some() {
                stack.counters.drop(DropReason::Malformed);
            }
            return signature.is_none();
        };

        let heard = InFrame { service, kind, statement };
        let trust = &mut stack.control.route.trust;
        let verdict = stack.statements.judge(trust, heard, signature, header.sender, stack.now);
        match verdict {
            Verdict::Believed => return true,
            Verdict::Exhausted => stack.counters.drop(DropReason::Full),
            Verdict::KeyMissing | Verdict::Refused => stack.counters.drop(DropReason::Untrusted),
        }
        false
    }

    /// Appends the signature of the origin to a frame of an engine that passes on a statement.
    /// Returns whether it did.
    fn sign(&mut self, slot: usize, kind: u8, out: &mut Vec<u8>) -> bool {
        let stack = &mut *self.stack;
        let Some(index) = slot.checked_sub(slot::ENGINES) else { return false };
        let service = stack.service_id(slot);
        let body = out.get(frame::HEADER_LEN + 2..).unwrap_or_default();
        let statement = stack.engines[index].common().statement(kind, body);
        let Some(statement) = statement else { return false };

        let sent = InFrame { service, kind, statement };
        let trust = &stack.control.route.trust;
        let signature = stack.statements.signature(trust, sent, stack.node, stack.now);
        let has_room = out.len() + Signature::LEN + frame::TAG_LEN <= stack.mtu;
        let Some(signature) = signature.filter(|_| has_room) else { return false };
        out.extend_from_slice(&signature.0);
        true
    }

    fn handle_control(&mut self, frame: &Frame<'_>, arrival: Arrival) {
        // Control writes the topology that it would otherwise see through its context.
        let unseen = Topology::default();
        let mut cx = context!(self, slot::CONTROL, self.stack.mtu, &unseen);
        self.stack.control.handle_frame(&mut cx, frame, arrival);
        self.stack.epoch = self.stack.control.route.epoch();
        if let Some(told) = self.stack.control.told_uses.take() {
            let now = self.stack.now;
            self.stack.ports[self.port.index()].share.note_told(told, now);
        }
    }

    /// Begins another start of this node, if somebody writes frames of the present one and the
    /// last renewal is some time ago. Frames from then on are not taken for forged ones that came
    /// before them, and no nonce is used twice.
    fn renew_start(&mut self) {
        let stack = &mut *self.stack;
        if !stack.impostor.may_renew(stack.now) {
            return;
        }

        // The old salt keeps the new one unique, and the draw keeps it unknown to others.
        let mut salt = stack.cipher.next_salt(stack.node, stack.sealer.salt());
        let mut draw = [0; size_of::<Salt>()];
        stack.rngs[slot::CONTROL].fill_bytes(&mut draw);
        salt.0.iter_mut().zip(draw).for_each(|(byte, drawn)| *byte ^= drawn);
        stack.sealer = Sealer::new(stack.cipher.clone(), stack.node, salt);
        stack.control.begin_start(salt, stack.now);
    }

    /// Seals a frame for the port, and notes that it is at the radio.
    fn send(
        &mut self,
        origin: Origin,
        filled: Filled,
        background: Option<Background>,
        out: &mut Vec<u8>,
    ) -> Transmission {
        let mut flags = if background.is_some() { frame::BACKGROUND } else { 0 };
        if self.sign(origin.slot, filled.kind, out) {
            flags |= frame::SIGNED;
        }
        let stack = &mut *self.stack;
        let port = self.port;
        let service = stack.service_id(origin.slot);
        out[frame::HEADER_LEN + 1] = filled.kind | flags;

        // The seal covers header and body, so both are complete by now.
        let version = stack.control.version(port, service, filled.kind, stack.now);
        stack.sealer.seal(out, version);
        debug_assert!(out.len() <= stack.mtu, "{service:?} wrote more than it may");
        stack.control.peers.note_sent(stack.sealer.salt(), stack.sealer.counter());
        stack.counters.count_sent(service, filled.kind, out.len());
        let len = out.len();
        let since = stack.now;
        let on_air = OnAir { origin, kind: filled.kind, len, background, since };
        stack.ports[port.index()].on_air = Some(on_air);
        let link = stack.control.links.on_mut(port);
        link.count_frame();
        if origin.slot == slot::CONTROL {
            // Hellos tell this count. Neighbours measure the delivery of links by it.
            link.note_sent(out.len());
        }
        Transmission { to: filled.to, service, kind: filled.kind }
    }

    /// Keeps a frame for another port, until that is granted.
    fn let_wait(
        &mut self,
        port: Port,
        origin: Origin,
        filled: Filled,
        background: Option<Background>,
        body: &[u8],
    ) {
        let since = self.stack.now;
        let Filled { kind, to } = filled;
        let state = &mut self.stack.ports[port.index()];
        if state.takes_frames() {
            let body = body.to_vec();
            state.waiting.push_back(Waiting { origin, kind, to, background, body, since });
        }
    }

    /// Gives up frames that wait for ports which take none.
    fn give_up_waiting(&mut self) {
        let now = self.stack.now;
        for place in 0..self.stack.ports.len() {
            while let Some(old) = self.stack.ports[place].take_old(now) {
                self.give_up(old.origin);
            }
            // An engine that serves no ports waits for the report of the last one. The only port of
            // a node may be as slow as it likes: there is no other one to keep waiting.
            let are_several = self.stack.ports.len() > 1;
            let port = &mut self.stack.ports[place];
            if let Some(stuck) = are_several.then(|| port.take_stuck(now)).flatten() {
                self.give_up(stuck.origin);
            }
        }
    }

    /// Reports that a frame was not sent.
    fn give_up(&mut self, origin: Origin) {
        let result = TxResult::Failed;
        self.report_to(origin, TxReport { result, airtime: Duration::ZERO, heard_by: None });
    }

    /// Tells the engine of a slot what became of its frame, once no port has a copy left.
    fn report_to(&mut self, origin: Origin, report: TxReport) {
        let Some(index) = origin.slot.checked_sub(slot::ENGINES) else { return };
        if self.stack.ports.iter().flat_map(PortState::unsent).any(|other| other == origin) {
            return;
        }
        let port = core::mem::replace(&mut self.port, origin.port);
        self.with_engine(index, |engine, cx| engine.handle_tx_report(cx, report));
        self.port = port;
    }

    fn fill_slot(&mut self, slot: usize, out: &mut Vec<u8>) -> Option<Filled> {
        match slot {
            slot::CONTROL => {
                let share = &self.stack.ports[self.port.index()].share;
                self.stack.control.uses = share.uses(self.stack.now);
                let unseen = Topology::default();
                let mut cx = context!(self, slot, self.stack.mtu, &unseen);
                self.stack.control.fill(&mut cx, out)
            }
            _ => self.with_engine(slot - slot::ENGINES, |engine, cx| engine.fill(cx, out)),
        }
    }

    /// Calls the engine at `index` with its context, whatever kind it is of. Its frames have at
    /// most `mtu` bytes.
    fn with_any<R>(
        &mut self,
        index: usize,
        mtu: usize,
        call: impl FnOnce(&mut AnyEngine, &mut Context<'_>) -> R,
    ) -> R {
        let before = self.stack.events.len();
        let engines = &mut self.stack.engines;
        let mut cx = context!(self, slot::ENGINES + index, mtu, self.stack.control.topology());
        let result = call(&mut engines[index], &mut cx);
        let stack = &mut *self.stack;
        let raised = Raised {
            events: &mut stack.events,
            first: before,
            counters: &mut stack.counters,
            now: stack.now,
        };

        stack.transfers.take(raised, index, &mut stack.engines);
        stack.check_packets(before);

        // An engine was told something in our name that we have not told. The next epoch voids it.
        if stack.events.range(before..).any(|event| *event == Event::Impersonated) {
            stack.events.retain(|event| *event != Event::Impersonated);
            stack.impostor.note_told(stack.now);
            stack.control.route.outdate_epoch(stack.now);
            stack.epoch = stack.control.route.epoch();
        }

        result
    }

    fn with_engine<R>(
        &mut self,
        index: usize,
        call: impl FnOnce(&mut dyn Engine, &mut Context<'_>) -> R,
    ) -> R {
        self.with_any(index, self.stack.mtu, |engine, cx| call(engine.common_mut(), cx))
    }

    /// Calls the engine that carries the transfer `flow`. Returns `None` if none does.
    fn with_transfer<R>(
        &mut self,
        flow: FlowId,
        call: impl FnOnce(&mut dyn FileEngine, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let index = self.stack.transfers.engine(flow)?;
        self.with_file(index, self.stack.mtu, call)
    }

    fn with_file<R>(
        &mut self,
        index: usize,
        mtu: usize,
        call: impl FnOnce(&mut dyn FileEngine, &mut Context<'_>) -> R,
    ) -> Option<R> {
        self.with_any(index, mtu, |engine, cx| match engine {
            AnyEngine::File(file) => Some(call(file.as_mut(), cx)),
            AnyEngine::Tunnel(_) | AnyEngine::Stream(_) => None,
        })
    }

    /// Calls a tunnel scheme. What it takes now must fit the frames of all nodes.
    fn with_tunnel<R>(
        &mut self,
        index: usize,
        call: impl FnOnce(&mut dyn TunnelEngine, &mut Context<'_>) -> R,
    ) -> Option<R> {
        self.with_any(index, self.stack.carried(), |engine, cx| match engine {
            AnyEngine::Tunnel(tunnel) => Some(call(tunnel.as_mut(), cx)),
            AnyEngine::File(_) | AnyEngine::Stream(_) => None,
        })
    }

    /// Calls a scheme of streams. What it takes now must fit the frames of all nodes.
    fn with_stream<R>(
        &mut self,
        index: usize,
        call: impl FnOnce(&mut dyn StreamEngine, &mut Context<'_>) -> R,
    ) -> Option<R> {
        self.with_any(index, self.stack.carried(), |engine, cx| match engine {
            AnyEngine::Stream(stream) => Some(call(stream.as_mut(), cx)),
            AnyEngine::File(_) | AnyEngine::Tunnel(_) => None,
        })
    }
}

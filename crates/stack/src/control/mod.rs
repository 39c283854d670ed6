//! The control frames of a node: hellos with link states, and comparisons of link states.
//!
//! [`Link`] measures, [`Route`] tells; this module puts what both have to say into as few frames as
//! possible. A hello that is due carries the states that are due soon, and states that are due
//! travel behind a hello. Beyond hellos, control uses at most a share of the channel that the
//! neighbours divide among them, so that no storm of changes can fill it.

mod frame;

use crate::config::StackConfig;
use crate::link::{FrameHeard, Hello, Link, LinkConfig, MAX_ASKED, MAX_LATE, Received};
use crate::links::Links;
use crate::peers::{Peers, Proofs};
use crate::port::LONGEST_WAIT;
use crate::route::{Asked, Compare, Origin, Route, States, Wanted};
use crate::share::{Told, Use, Uses};
use crate::trust::{self, CERTIFICATES, KEYS, KEYS_WANTED, KNOWN_LISTS, REVOCATIONS};
pub use frame::LAYOUTS;
use frame::{begin_hello, read_hello, write_proofs};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Topology;
use ncmesh_engine::{Class, Context, Filled, Frame, Malformed, Offer, PerPort, Port, Summary};
use ncmesh_wire::{Header, Reader, Record, Salt, ServiceId, Versions};
use std::sync::Arc;

/// Service byte of control frames.
pub const SERVICE: ServiceId = ServiceId(0);
/// Kind of a hello, with link states behind it.
pub const HELLO: u8 = 0;
/// Kind of a long frame that says nothing: neighbours learn from it how length matters.
pub const PROBE: u8 = 1;
/// Kind of a comparison by digests.
pub const COMPARE: u8 = 2;
/// Kind of a comparison by versions.
pub const VERSIONS: u8 = 3;
/// Kind of a request for whole states.
pub const REQUEST: u8 = 4;

/// Greatest length of a hello without states, bytes.
const MAX_HELLO: usize =
    frame::HELLO_LEN + 2 * (MAX_ASKED + MAX_LATE) + frame::ADDRESS_LEN + frame::USES_LEN;
/// Length of the body of a probe, bytes.
const PROBE_LEN: usize = 1000;
/// Share of the airtime around a node that it and its neighbours may use for link states.
const SHARE: f64 = 0.12;
/// Part of that share, as far as nobody uses it, that one node may take. It trades the time in
/// which news pass a node on which many depend for airtime where all have much to tell.
const OF_UNUSED: f64 = 0.25;
/// Number of neighbours that a node without any reckons with.
const LEAST_NEIGHBOURS: usize = 4;
/// Time for which unused airtime may be saved up.
const SAVED: Duration = Duration::from_secs(4);

/// The outer frame of a control frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub header: Header,
    /// Whether a later frame of the same start overtook it.
    pub is_late: bool,
}

/// Control frame of one port that another one is to send, too.
#[derive(Clone, Debug)]
struct ToSay {
    kind: u8,
    /// The body; of a hello what follows its first part, which each port writes itself.
    rest: Vec<u8>,
}

/// Control frames of one node.
#[derive(Debug)]
pub(crate) struct Control {
    pub links: Links,
    pub route: Route,
    pub peers: Peers,
    /// Airtime that link states may use now, s, as of a time. Below 0 they must wait.
    budget: (f64, Instant),
    /// Airtime that control takes around this node.
    used: Use,
    /// Whether states that did not fit behind proofs are due before other proofs.
    are_proofs_late: bool,
    /// Use of the time by services around this node, if there are several, for its next hello; and
    /// around the neighbour whose hello was handled last.
    pub uses: Option<Uses>,
    pub told_uses: Option<Told>,
    /// Frames of other ports that each port still has to send, and since when. Nothing else is said
    /// before, so each has one at most.
    to_say: PerPort<Option<ToSay>>,
    to_say_since: Instant,
    /// Settings of the links of further ports.
    config: LinkConfig,
    versions: Versions,
    /// Ports that are up.
    up: Vec<Port>,
}

impl Control {
    /// Returns the control of a node that starts at `now`.
    pub(crate) fn new(config: &StackConfig, mtu: usize, now: Instant) -> Self {
        let origin = Origin {
            node: config.node,
            epoch: config.epoch,
            name: config.name.clone(),
            profile: config.profile.clone(),
            trust: config.trust.clone(),
        };
        Self {
            links: Links::new(Link::new(config.link.clone(), config.versions, now)),
            route: Route::new(config.route.clone(), origin, mtu.saturating_sub(MAX_HELLO), now),
            peers: Peers::new(config.node, config.salt),
            budget: (0.0, now),
            used: Use::default(),
            are_proofs_late: false,
            uses: None,
            told_uses: None,
            to_say: PerPort::default(),
            to_say_since: now,
            config: config.link.clone(),
            versions: config.versions,
            up: vec![Port::FIRST],
        }
    }

    /// Adds a port, which says hello at once.
    pub(crate) fn add_port(&mut self, port: Port, now: Instant) {
        if !self.links.are_several() {
            self.route.shorten(frame::ON_PORT_LEN);
        }
        self.links.add(Link::new(self.config.clone(), self.versions, now));
        self.up.push(port);
    }

    /// Notes that a port is up, or that nothing passes it.
    pub(crate) fn set_up(&mut self, port: Port, is_up: bool, now: Instant) {
        self.up.retain(|other| *other != port);
        if is_up {
            self.up.push(port);
        }
        self.to_say[port] = None;
        self.links.set_up(port, is_up, now);
    }

    /// Returns the mesh as known here.
    pub(crate) fn topology(&self) -> &Topology {
        self.route.topology()
    }

    /// Uses `topology` from now on instead of measuring.
    pub(crate) fn pin(&mut self, topology: Arc<Topology>) {
        self.route.pin(topology);
        // Nobody says hello then, so nobody could prove anything.
        self.peers.trust_all();
    }

    /// Tells the neighbours at once that this node has begun another start while it runs.
    pub(crate) fn begin_start(&mut self, salt: Salt, now: Instant) {
        self.peers.begin_start(salt);
        self.links.each_mut().for_each(|link| link.begin_start(now));
    }

    // ---- handlers

    /// Handles a control frame with this outer frame: any of a current start, and hellos of others.
    pub(crate) fn handle_frame(
        &mut self,
        cx: &mut Context<'_>,
        frame: &Frame<'_>,
        arrival: Arrival,
    ) {
        // A pinned topology was given from outside: nothing is measured or believed.
        if self.route.is_pinned() {
            return;
        }
        let handled = match frame.kind {
            HELLO => return self.handle_hello(cx, frame, arrival),
            // A probe is nothing but length. That it was heard is counted below this layer.
            PROBE => Ok(()),
            COMPARE => self.route.handle_compare(cx, frame.sender, frame.body),
            VERSIONS => self.route.handle_versions(cx, frame.sender, frame.body),
            REQUEST => self.route.handle_request(cx, frame.sender, frame.body),
            KEYS_WANTED => self.route.trust.handle_wanted(frame.body, cx.now),
            KEYS => self.route.handle_keys(cx, frame.sender, frame.body),
            CERTIFICATES => self.route.handle_certificates(cx, frame.sender, frame.body),
            REVOCATIONS => self.route.handle_revocations(cx, frame.sender, frame.body),
            KNOWN_LISTS => self.route.trust.handle_known_lists(frame.sender, frame.body, cx.now),
            _ => Err(Malformed),
        };
        if handled.is_err() {
            cx.counters.drop(DropReason::Malformed);
        }
    }

    fn handle_hello(
        &mut self,
        cx: &mut Context<'_>,
        frame: &Frame<'_>,
        Arrival { header, is_late }: Arrival,
    ) {
        let mut reader = Reader::new(frame.body);
        let Ok((mut hello, proofs)) = read_hello(&mut reader) else {
            return cx.counters.drop(DropReason::Malformed);
        };

        // Proofs come before all else: they decide whether the rest of this hello counts.
        let is_current = self.peers.handle_proofs(&header, &proofs, cx.now);
        if self.peers.take_urgency() {
            self.links.on_mut(cx.at.port).hasten(cx.now, cx.rng);
        }

        if frame.sender == cx.me {
            return;
        }

        // A start without proof may be a recording. It tells which versions it speaks, no more.
        if !is_current {
            let newest = hello.versions(header.version).newest;
            return self.links.on_mut(cx.at.port).note_greeting(newest, cx.now);
        }

        if self.route.trust.is_outcast(frame.sender, cx.now) {
            // It may have another certificate meanwhile.
            self.route.trust.want(frame.sender, frame.sender, cx.now);
            return cx.counters.drop(DropReason::Untrusted);
        }

        // A promise of a long interval would keep a dead neighbour alive, so it is bounded.
        hello.interval = hello.interval.min(self.links.on(cx.at.port).longest_promise());
        self.told_uses = hello.uses.map(|uses| Told { by: frame.sender, uses });
        let Header { version, counter, .. } = header;
        let received = Received { version, start: frame.start, counter, at: cx.now };

        // A start that is new may not know of the revocations that this node holds.
        if !self.links.knows_start(frame.sender, frame.start) {
            self.route.trust.note_new_neighbour(frame.sender, cx.now);
        }

        // A hello that another overtook brings back no neighbour that was given up.
        let link = self.links.on_mut(cx.at.port);
        if !is_late && !link.handle_hello(cx.me, frame.sender, &hello, received, cx.rng) {
            cx.counters.drop(DropReason::Full);
        }

        // States are read even if their sender finds no room as a neighbour.
        self.route.handle_states(cx, frame.sender, hello.digest, reader);
    }

    /// Notes a frame that was heard on a port from a node in its start, after it was handled.
    pub(crate) fn note_frame(&mut self, port: Port, frame: FrameHeard, now: Instant) {
        let link = self.links.on_mut(port);
        if frame.is_control
            && let Some(airtime) = link.airtime(frame.len)
        {
            self.used.add(airtime, now);
        }
        link.note_frame(frame, now);
    }

    /// Returns the version of the wire format for a frame of `service` and `kind` on a port.
    pub(crate) fn version(&self, port: Port, service: ServiceId, kind: u8, now: Instant) -> u8 {
        if service == SERVICE && kind == HELLO {
            self.links.on(port).hello_version(now)
        } else {
            self.links.on(port).shared_version()
        }
    }

    /// Does what falls due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.route.is_pinned() {
            return;
        }
        let neighbours = self.links.crowd().max(LEAST_NEIGHBOURS) as f64;
        let unused = (SHARE - self.used.now(now)).max(0.0);
        let rate = (SHARE / neighbours).max(OF_UNUSED * unused);
        let (left, at) = self.budget;
        let saved = left + rate * now.since(at).as_secs_f64();
        self.budget = (saved.min(rate * SAVED.as_secs_f64()), now);
        self.route.handle_timeout(now, &mut self.links);

        // A port that takes no frame must not keep the others silent.
        if now.since(self.to_say_since) >= LONGEST_WAIT && !self.is_all_said() {
            self.to_say = PerPort::default();
        }
    }

    /// Notes the airtime of a frame of `len` bytes, and charges one of control for it.
    pub(crate) fn note_airtime(
        &mut self,
        port: Port,
        len: usize,
        airtime: Duration,
        is_control: bool,
        now: Instant,
    ) {
        self.links.on_mut(port).note_airtime(len, airtime);
        if is_control {
            self.used.add(airtime, now);
            self.budget.0 -= airtime.as_secs_f64();
        }
    }

    // ---- poll

    /// Returns when, later than `after`, something falls due.
    pub(crate) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        if self.route.is_pinned() {
            return None;
        }
        let times = [self.links.poll_timeout(after), self.route.poll_timeout(after)];
        times.into_iter().flatten().min()
    }

    /// Returns an offer if a frame is due on a port.
    pub(crate) fn offer(&self, now: Instant, port: Port) -> Option<Offer> {
        let link = self.links.on(port);
        let due = link.is_hello_due(now)
            || link.is_long_frame_due()
            || self.to_say[port].is_some()
            || (self.may_say()
                && (self.route.are_states_due(now)
                    || self.is_asking()
                    || self.route.trust.is_due(now)));
        (due && !self.route.is_pinned()).then_some(Offer::of(Class::Control))
    }

    /// Writes the frame that is due on a port, if any. Where there are several ports, what it says
    /// besides the hello waits for the others.
    pub(crate) fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let port = cx.at.port;
        self.offer(cx.now, port)?;
        let filled = |kind| Some(Filled { kind, to: None });
        let link = self.links.on_mut(port);
        let hello_is_due = link.is_hello_due(cx.now);
        if link.is_long_frame_due() && !hello_is_due {
            // A radio that takes no long frame has none that could be lost more often.
            link.note_probe();
            out.resize(out.len() + PROBE_LEN.min(cx.mtu), 0);
            return filled(PROBE);
        }

        // The word of another port comes first. A hello that is due takes along what it can.
        let is_hello = |said: &ToSay| said.kind == HELLO;
        let to_say = self.to_say[port].take_if(|said| !hello_is_due || is_hello(said));
        if let Some(said) = to_say {
            if is_hello(&said) {
                self.begin_hello(cx, out);
            }
            out.extend_from_slice(&said.rest);
            return filled(said.kind);
        }

        // States mean nothing without the keys of their origins.
        let start = out.len();
        if !hello_is_due && self.may_say() && self.route.trust.is_due(cx.now) {
            let kind = self.route.trust.fill(cx.mtu, cx.now, out)?;
            self.say_elsewhere(cx, kind, &out[start..]);
            return filled(kind);
        }

        // Questions are answered by many bytes. They wait until hellos and states are said.
        let states_are_due = self.may_say() && self.route.are_states_due(cx.now);
        if !hello_is_due && !states_are_due {
            let kind = match self.route.fill_question(cx.mtu, out)? {
                Asked::Compare => COMPARE,
                Asked::Versions => VERSIONS,
                Asked::Request => REQUEST,
            };
            self.say_elsewhere(cx, kind, &out[start..]);
            return filled(kind);
        }

        // A hello costs a header in any case, so states that are due ride in its frame.
        self.begin_hello(cx, out);
        let behind_hello = out.len();
        if !self.is_all_said() {
            write_proofs(&Proofs::default(), out);
            return filled(HELLO);
        }

        // A long state may not fit behind proofs. If one was left out, it goes first next time.
        let longest = MAX_HELLO + if self.links.are_several() { frame::ON_PORT_LEN } else { 0 };
        let room = if self.are_proofs_late { 0 } else { cx.mtu.saturating_sub(longest) / 2 };
        let proofs = self.peers.proofs(room);
        write_proofs(&proofs, out);
        let behind_proofs = out.len();
        if self.may_spend() {
            // The hello of another port may be longer than this one.
            let said = out.len() - start;
            let others = longest + (behind_proofs - behind_hello);
            let said = if self.links.are_several() { said.max(others) } else { said };
            let room = cx.mtu.saturating_sub(said);
            self.route.fill_states(cx, room, hello_is_due, out);
        }

        // States that did not fit go before proofs next time, and the other way round after that.
        let states_wait = self.may_spend() && self.route.are_states_due(cx.now);
        self.are_proofs_late = !proofs.is_empty() && states_wait;
        if !proofs.is_empty() || out.len() > behind_proofs {
            self.say_elsewhere(cx, HELLO, &out[behind_hello..]);
        }
        filled(HELLO)
    }

    /// Appends the first part of a hello of the granted port.
    fn begin_hello(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) {
        let port = cx.at.port;
        let digest = self.route.digest();
        let on_port = self.links.on_port(port);
        let hello = self.links.on_mut(port).hello(digest, self.uses, cx.now, cx.rng);
        begin_hello(&Hello { on_port, ..hello }, out);
    }

    /// Lets the other ports say what the granted one says.
    fn say_elsewhere(&mut self, cx: &Context<'_>, kind: u8, rest: &[u8]) {
        self.to_say_since = cx.now;
        for port in self.up.iter().filter(|port| **port != cx.at.port) {
            self.to_say[*port] = Some(ToSay { kind, rest: rest.to_vec() });
        }
    }

    /// Returns whether every port has said what another one said.
    fn is_all_said(&self) -> bool {
        self.to_say.values().all(Option::is_none)
    }

    /// Returns whether something new may be said.
    fn may_say(&self) -> bool {
        self.may_spend() && self.is_all_said()
    }

    fn may_spend(&self) -> bool {
        self.budget.0 >= 0.0
    }

    fn is_asking(&self) -> bool {
        self.route.is_question_waiting()
    }

    /// Returns whether a frame of a sender whose certificate counts no more is dropped unread. What
    /// could bring it back is read.
    pub(crate) fn is_shut_out(
        &self,
        header: &Header,
        service: ServiceId,
        kind: u8,
        now: Instant,
    ) -> bool {
        let is_read = service == SERVICE && matches!(kind, HELLO | CERTIFICATES);
        !is_read && self.route.trust.is_outcast(header.sender, now)
    }
}

/// Summarises a control frame for traces.
pub(crate) fn summary(kind: u8, body: &[u8]) -> Option<Summary> {
    // Bodies of trust have layouts of their own, and the others a reader each.
    let (name, well_formed) = match kind {
        HELLO => {
            let mut reader = Reader::new(body);
            let states = read_hello(&mut reader).is_ok() && crate::route::are_well_formed(reader);
            ("hello", states)
        }
        PROBE => ("probe", true),
        COMPARE => ("compare", Compare::from_body(body).is_ok()),
        VERSIONS => ("versions", States::from_body(body).is_ok()),
        REQUEST => ("request", Wanted::from_body(body).is_ok()),
        // The kinds of trust are next to each other.
        KEYS_WANTED..=KNOWN_LISTS => {
            let layout = trust::LAYOUTS.iter().find(|layout| layout.kind == kind)?;
            (layout.name, trust::is_well_formed(kind, body))
        }
        _ => return None,
    };
    well_formed.then(|| Summary::new("control", name))
}

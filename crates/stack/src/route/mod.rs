//! Link state: every node floods which neighbours it hears how well, so that all know the mesh.
//!
//! A state has a version (epoch, sequence number); a newer one replaces an older one, and one that
//! is not repeated is dropped. A node repeats a state until all neighbours are known to have it
//! ([`Flood`]). A neighbour that has just come up is told every state.
//!
//! Source: De Couto et al., MobiCom 2003 (ETX); Pacifier, VI-B.

mod config;
mod frame;
mod layout;

#[cfg(test)]
mod tests;

use crate::link::Link;
pub use config::RouteConfig;
pub use layout::LAYOUTS;
use ncmesh_engine::Summary;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::time::{Instant, seconds};
use ncmesh_engine::toolkit::flood::Flood;
use ncmesh_engine::topology::{LinkState, Topology};
use ncmesh_engine::{Class, Context, Filled, Frame, Offer};
use ncmesh_wire::{NodeId, Reader, ServiceId};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Service byte of link state.
pub const SERVICE: ServiceId = ServiceId(1);
/// Kind of the only frame.
pub const LINK_STATE: u8 = 0;
/// Most nodes whose state is kept.
const MAX_NODES: usize = 20_000;
/// Greatest epoch that is believed when others report ours: none can really have come so far.
const MAX_EPOCH: u64 = 1 << 62;
/// Time between two looks at the link measurements, seconds.
const LOOK_S: f64 = 0.25;

/// Link state at one node.
#[derive(Debug)]
pub struct Route {
    config: RouteConfig,
    me: NodeId,
    name: String,
    epoch: u64,
    /// Longest frame body, bytes.
    mtu: usize,
    seq: u32,
    announced_at: Option<Instant>,
    next_look: Instant,
    flood: Flood<NodeId, (u64, u32)>,
    /// Shared if it was given to all nodes of a simulation.
    topology: Arc<Topology>,
    /// When the state of each node was learned.
    learned: BTreeMap<NodeId, Instant>,
    /// Whether the topology was given: then nothing is announced or learned.
    pinned: bool,
}

impl Route {
    /// Returns a node that knows nobody at `now`; a frame body takes `mtu` bytes.
    #[must_use]
    pub fn new(
        config: RouteConfig,
        me: NodeId,
        name: &str,
        epoch: u64,
        mtu: usize,
        now: Instant,
    ) -> Self {
        let topology = Arc::new(Topology::new(config.min_delivery));
        Self {
            config,
            me,
            name: name.to_owned(),
            epoch,
            mtu,
            seq: 0,
            announced_at: None,
            next_look: now,
            flood: Flood::new(),
            topology,
            learned: BTreeMap::new(),
            pinned: false,
        }
    }

    /// Returns the mesh as known here.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Uses `topology` from now on instead of measuring (Pacifier, IV-A: measured once beforehand).
    pub fn pin(&mut self, topology: Arc<Topology>) {
        self.topology = topology;
        self.pinned = true;
    }

    /// Returns whether the topology was given.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.pinned
    }

    /// Looks at the link measurements, announces changes, drops old states.
    pub fn handle_timeout(&mut self, now: Instant, link: &mut Link, rng: &mut ChaCha8Rng) {
        if self.pinned || now < self.next_look {
            return;
        }
        self.next_look = now + seconds(LOOK_S);
        link.forget_silent(now);
        let max_age = seconds(self.config.max_age_s);
        if now.since(Instant::default()) > max_age {
            let limit = Instant::from_nanos(now.as_nanos() - max_age.as_nanos() as u64);
            self.forget_before(limit);
        }
        let hears = self.best_that_fit(link.inbound(now));
        if self.is_worth_announcing(&hears, now) {
            self.announce(hears, now, rng);
        }
        let hearers = self.topology.links_from(self.me).map(|(node, _)| node);
        let neighbors: BTreeSet<NodeId> =
            hearers.chain(link.inbound(now).map(|(n, _)| n)).collect();
        self.flood.drop_acknowledged(&neighbors);
    }

    /// Returns when, later than `after`, something falls due.
    #[must_use]
    pub fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        if self.pinned {
            return None;
        }
        let times = [self.flood.poll_timeout(after), Some(self.next_look)];
        times.into_iter().flatten().filter(|t| *t > after).min()
    }

    /// Handles a link-state frame. Returns the epoch by which another node knows this one, if it is
    /// newer than our own: then ours must grow beyond it, or the mesh would not believe us.
    pub fn handle_frame(&mut self, cx: &mut Context<'_>, heard: &Frame<'_>) -> Option<u64> {
        if self.pinned {
            return None;
        }
        let mut reader = Reader::new(heard.body);
        let mut outlived = None;
        while reader.remaining() > 0 {
            match frame::read(&mut reader) {
                Ok((origin, state)) if origin == self.me => {
                    self.flood.overheard(&origin, &state.version, heard.sender);
                    let known = state.version.0;
                    let newer = known > self.epoch && known < MAX_EPOCH;
                    outlived = outlived.max(newer.then_some(known));
                }
                Ok((origin, state)) => self.learn(cx, heard.sender, origin, state),
                Err(_) => {
                    cx.counters.drop(DropReason::Malformed);
                    break;
                }
            }
        }
        outlived
    }

    /// Announces this node anew under a greater epoch.
    pub fn raise_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.announced_at = None;
    }

    /// Returns an offer if a state is due.
    #[must_use]
    pub fn offer(&self, now: Instant) -> Option<Offer> {
        let due = !self.pinned && self.flood.due(now).next().is_some();
        due.then_some(Offer::of(Class::Control))
    }

    /// Writes as many due states as fit into a frame.
    pub fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let start = out.len();
        for origin in self.flood.together(cx.now) {
            // A state that came in a larger frame than ours take goes no further here.
            let fits = |state: &&LinkState| frame::encoded_len(state) <= cx.mtu;
            let Some(state) = self.topology.state(origin).filter(fits) else {
                self.flood.withdraw(&origin);
                continue;
            };
            if out.len() - start + frame::encoded_len(state) > cx.mtu {
                break;
            }
            frame::write(out, origin, state);
            self.flood.sent(&origin, cx.now, cx.rng);
        }
        (out.len() > start).then_some(Filled { kind: LINK_STATE, to: None })
    }

    /// Returns the mesh as known here, to change it.
    fn known(&mut self) -> &mut Topology {
        Arc::make_mut(&mut self.topology)
    }

    /// Forgets the states that were learned before `oldest`.
    fn forget_before(&mut self, oldest: Instant) {
        let old = self.learned.iter().filter(|(_, learned)| **learned < oldest);
        for node in old.map(|(node, _)| *node).collect::<Vec<_>>() {
            self.learned.remove(&node);
            self.known().forget(node);
        }
    }

    fn learn(&mut self, cx: &mut Context<'_>, from: NodeId, origin: NodeId, state: LinkState) {
        let version = state.version;
        if self.topology.state(origin).is_none() && self.topology.len() >= MAX_NODES {
            return cx.counters.drop(DropReason::Full);
        }
        let known_epoch = self.topology.state(origin).map(|known| known.version.0);
        if self.known().learn(origin, state) {
            self.learned.insert(origin, cx.now);
            self.flood.publish(origin, version, cx.now, cx.rng);
            if origin == from && known_epoch.is_none_or(|epoch| epoch < version.0) {
                self.tell_everything(cx, origin);
            }
        }
        self.flood.overheard(&origin, &version, from);
    }

    /// Floods every state again for a neighbour that has just come up, so that it finds paths
    /// before the next repetitions.
    fn tell_everything(&mut self, cx: &mut Context<'_>, newcomer: NodeId) {
        let hearers = self.topology.links_from(self.me).map(|(node, _)| node);
        let others: BTreeSet<NodeId> = hearers.filter(|node| *node != newcomer).collect();
        let nodes: Vec<NodeId> = self.topology.nodes().filter(|node| *node != newcomer).collect();
        for node in nodes {
            if let Some(state) = self.topology.state(node) {
                self.flood.tell(&node, state.version, &others, cx.now, cx.rng);
            }
        }
    }

    /// Returns the links of this node's own state: all, or the best that fit into a frame. A link
    /// that was announced before is replaced only by one that is better by a change worth
    /// announcing; otherwise links of like worth would come and go.
    fn best_that_fit(&self, heard: impl Iterator<Item = (NodeId, f64)>) -> BTreeMap<NodeId, f64> {
        let said = self.topology.state(self.me).map(|state| &state.hears);
        let is_said = |node: &NodeId| said.is_some_and(|said| said.contains_key(node));
        let worth =
            |(node, d): &(NodeId, f64)| d + if is_said(node) { self.config.change } else { 0.0 };
        let mut heard: Vec<(NodeId, f64)> =
            heard.map(|(node, d)| (node, frame::as_carried(d))).collect();
        heard.sort_by(|a, b| worth(b).total_cmp(&worth(a)).then(a.0.cmp(&b.0)));
        heard.truncate(frame::links_that_fit(self.mtu, &self.name));
        heard.into_iter().collect()
    }

    fn is_worth_announcing(&self, hears: &BTreeMap<NodeId, f64>, now: Instant) -> bool {
        let Some(at) = self.announced_at else { return true };
        let since = now.since(at);
        if since >= seconds(self.config.refresh_s) {
            return true;
        }
        let known = self.topology.state(self.me).map(|state| &state.hears);
        since >= seconds(self.config.min_interval_s)
            && known.is_none_or(|known| self.has_changed(known, hears))
    }

    fn has_changed(&self, known: &BTreeMap<NodeId, f64>, hears: &BTreeMap<NodeId, f64>) -> bool {
        known.len() != hears.len()
            || hears.iter().any(|(node, d)| {
                known.get(node).is_none_or(|k| (k - d).abs() >= self.config.change)
            })
    }

    fn announce(&mut self, hears: BTreeMap<NodeId, f64>, now: Instant, rng: &mut ChaCha8Rng) {
        self.seq += 1;
        self.announced_at = Some(now);
        let version = (self.epoch, self.seq);
        let state = LinkState { version, name: self.name.clone(), hears };
        let me = self.me;
        self.known().learn(me, state);
        self.learned.insert(me, now);
        self.flood.publish(self.me, version, now, rng);
    }
}

/// Summarises a frame of this service for traces.
pub(crate) fn summary(kind: u8, body: &[u8]) -> Option<Summary> {
    let mut reader = Reader::new(body);
    while reader.remaining() > 0 {
        frame::read(&mut reader).ok()?;
    }
    (kind == LINK_STATE).then(|| Summary::new("route", "link_state"))
}

//! One flow at one node of its paths.

mod hear;

use super::access::Access;
use super::config::Mc2Config;
use super::downstream::Downstream;
use super::frame::{Data, Header, MAX_REPORTS, Request, Standing};
use super::generation::Generation;
use super::paths::PathSet;
use super::sink::{Lack, Outlet};
use super::source::Inlet;
use super::upstream::Upstream;
use ncmesh_engine::Context;
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_engine::topology::Topology;
use ncmesh_wire::NodeId;
use rand_core::RngCore;
use std::collections::BTreeMap;

/// Generations a node keeps of a flow; those before them are forgotten.
pub(super) const WINDOW: u32 = 32;

/// One flow at one node.
#[derive(Debug)]
pub(super) struct Flow {
    pub start: FlowInstance,
    paths: PathSet,
    revision: u8,
    generations: BTreeMap<u32, Generation>,
    upstream: BTreeMap<NodeId, Upstream>,
    downstream: Downstream,
    room: u8,
    symbol: usize,
    pub inlet: Option<Inlet>,
    pub outlet: Option<Outlet>,
    pub heard: u64,
    pub innovative: u64,
    pub delivered: u64,
    pub lost: u64,
    pub heard_at: Instant,
    pub sent_at: Instant,
}

impl Flow {
    /// At its source.
    pub(super) fn outgoing(
        start: FlowInstance,
        paths: PathSet,
        symbol: usize,
        room: u8,
        cx: &Context<'_>,
    ) -> Self {
        let mut flow = Self::new(start, paths, 0, (room, symbol), cx);
        // Not 0: a destination that restarts within a flow tells its place by the first generation it hears.
        flow.inlet = Some(Inlet::new(1, cx.now));
        flow
    }

    /// At another node, as a frame of it shows it.
    pub(super) fn heard(data: &Data<'_>, cx: &Context<'_>) -> Self {
        let header = &data.header;
        let shape = (header.room, usize::from(header.symbol));
        let mut flow = Self::new(header.start(), header.paths.clone(), header.revision, shape, cx);
        if header.paths.destination() == cx.me {
            flow.outlet = Some(Outlet::new(header.generation));
        }
        flow
    }

    fn new(
        start: FlowInstance,
        paths: PathSet,
        revision: u8,
        (room, symbol): (u8, usize),
        cx: &Context<'_>,
    ) -> Self {
        let downstream = Downstream::new(&paths, cx.topology, cx.me, cx.now);
        Self {
            start,
            paths,
            revision,
            generations: BTreeMap::new(),
            upstream: BTreeMap::new(),
            downstream,
            room,
            symbol,
            inlet: None,
            outlet: None,
            heard: 0,
            innovative: 0,
            delivered: 0,
            lost: 0,
            heard_at: cx.now,
            sent_at: cx.now,
        }
    }

    /// |C(n, c)|.
    pub(super) fn held(&self) -> u32 {
        self.downstream.credits.held()
    }

    // ---- handle

    /// Makes room for a generation, of which there was nothing.
    fn open(&mut self, number: u32) {
        let is_destination = self.outlet.is_some();
        if !self.generations.contains_key(&number)
            && let Some(new) = Generation::new(self.room, self.symbol, is_destination)
        {
            self.generations.insert(number, new);
            let newest = self.generations.keys().next_back().copied().unwrap_or(number);
            self.forget(newest.saturating_sub(WINDOW - 1));
        }
    }

    /// The oldest generation of which packets are taken.
    fn oldest(&self) -> u32 {
        let newest = self.generations.keys().next_back().copied().unwrap_or(0);
        let kept = newest.saturating_sub(WINDOW - 1);
        self.outlet.as_ref().map_or(kept, |outlet| outlet.oldest().max(kept))
    }

    fn forget(&mut self, oldest: u32) {
        if self.generations.keys().next().is_none_or(|first| *first >= oldest) {
            return;
        }
        self.generations = self.generations.split_off(&oldest);
        self.upstream.values_mut().for_each(|upstream| upstream.forget(oldest));
        self.lost += u64::from(self.downstream.credits.forget(oldest));
    }

    /// A node says of itself how many credits it holds and what it has heard.
    pub(super) fn stand(&mut self, sender: NodeId, standing: &Standing, me: NodeId) {
        let heard = standing.heard.iter().filter(|heard| heard.of == me);
        let is_hop = self.downstream.stand(sender, standing.credits, heard);
        if is_hop && sender == self.start.destination {
            self.downstream.credits.forget(standing.done);
        }
    }

    /// The MAC says who received the latest frame.
    pub(super) fn told(&mut self, receivers: &[NodeId]) {
        self.downstream.told(receivers);
    }

    /// Goes on over other paths.
    fn follow(&mut self, paths: PathSet, revision: u8, topology: &Topology, me: NodeId) {
        self.downstream.follow(&paths, topology, me);
        self.paths = paths;
        self.revision = revision;
    }

    /// The source chooses paths anew.
    pub(super) fn reroute(&mut self, paths: PathSet, topology: &Topology, me: NodeId) {
        if paths != self.paths {
            self.follow(paths, self.revision.wrapping_add(1), topology, me);
        }
    }

    /// A request comes by. Says whether it is answered here.
    pub(super) fn answer(&mut self, request: &Request) -> bool {
        let is_source = self.inlet.is_some();
        let Some(generation) = self.generations.get_mut(&request.generation) else {
            return is_source;
        };
        if !generation.is_whole() && !is_source {
            return false;
        }
        if generation.answered != Some(request.serial) {
            generation.answered = Some(request.serial);
            // Nobody lacks more than there is.
            let missing = usize::from(request.missing).min(generation.rank());
            self.downstream.credits.add(request.generation, missing as u32);
        }
        true
    }

    /// Whatever time brings: packets taken in, generations closed, credits transferred. Says whether anything was given up.
    pub(super) fn settle(
        &mut self,
        config: &Mc2Config,
        access: Access,
        cx: &mut Context<'_>,
    ) -> bool {
        self.downstream.expire(access, cx.now);
        if let Some(inlet) = &mut self.inlet {
            inlet.flush(&mut self.generations, config, cx.now);
            while let Some(into) =
                inlet.insert(&mut self.generations, (self.room, self.symbol), cx.now)
            {
                self.downstream.credits.add(into, 1);
                inlet.pace(self.downstream.credits.held(), config, access.frame_time(), cx.now);
            }
            let newest = inlet.filling();
            self.forget(newest.saturating_sub(WINDOW - 1));
        }
        let oldest = self.oldest();
        let mut gave_up = false;
        if let Some(outlet) = &mut self.outlet {
            let before = outlet.oldest();
            self.lost += outlet.tidy(&self.generations, oldest, config, cx.now);
            gave_up = outlet.oldest() != before;
        }
        self.downstream.transfer(cx.rng);
        gave_up
    }

    /// Hands up what is next in order.
    pub(super) fn deliver(&mut self, mut up: impl FnMut(Vec<u8>)) {
        let Some(outlet) = &mut self.outlet else { return };
        let before = outlet.oldest();
        outlet.deliver(&mut self.generations, |packet| {
            self.delivered += 1;
            up(packet);
        });
        let oldest = outlet.oldest();
        if oldest != before {
            self.forget(oldest);
        }
    }

    // ---- poll

    /// The generation to send from now, and W(n, c).
    pub(super) fn due(&self, access: Access, now: Instant) -> Option<(u32, f64)> {
        self.downstream.due(access, now)
    }

    /// Whether an upstream node has waited long to hear what arrived here.
    pub(super) fn owes_report(&self, access: Access, now: Instant) -> bool {
        let owes = self.upstream.values().any(|upstream| upstream.owes_report(now));
        owes && self.due(access, now).is_none()
    }

    pub(super) fn lack(&self, config: &Mc2Config) -> Option<Lack> {
        self.outlet.as_ref()?.lack(&self.generations, config)
    }

    /// What this node says of itself.
    pub(super) fn standing(&mut self, now: Instant) -> Standing {
        let mut asking: Vec<&mut Upstream> =
            self.upstream.values_mut().filter(|upstream| upstream.asks).collect();
        asking.sort_by_key(|upstream| upstream.unanswered == 0);
        let heard = asking.into_iter().take(MAX_REPORTS).map(|u| u.report(now)).collect();
        let done = self.outlet.as_ref().map_or(0, Outlet::oldest);
        Standing {
            credits: self.downstream.credits.held().min(u32::from(u16::MAX)) as u16,
            done,
            heard,
        }
    }

    /// Appends a data frame's body, a combination of `generation`.
    pub(super) fn fill(
        &mut self,
        generation: u32,
        access: Access,
        (rng, now): (&mut impl RngCore, Instant),
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let standing = self.standing(now);
        let packets = self.generations.get(&generation)?;
        let before = self.generations.get(&generation.wrapping_sub(1));
        let notice = self.downstream.notice(generation, access);
        let header = Header {
            incarnation: self.start.incarnation,
            paths: self.paths.clone(),
            revision: self.revision,
            serial: notice.serial,
            asks: notice.asks,
            waits: notice.waits,
            standing,
            announced: notice.announced,
            generation,
            room: self.room,
            size: packets.size,
            size_before: before.map_or(0, |before| before.size).max(packets.size_before),
            symbol: self.symbol as u16,
        };
        header.write(out);
        packets.combine(rng, out)?;
        let announcement = (header.announced, notice.nominee);
        self.downstream.sent(generation, announcement, access, (rng, now));
        self.sent_at = now;
        Some(())
    }

    /// When, later than `after`, something falls due.
    pub(super) fn poll_timeout(
        &self,
        config: &Mc2Config,
        access: Access,
        after: Instant,
    ) -> Option<Instant> {
        let times = [
            self.downstream.poll_timeout(access, after),
            self.upstream.values().filter_map(Upstream::reports_at).filter(|at| *at > after).min(),
            self.inlet.as_ref().and_then(|inlet| inlet.poll_timeout(config, after)),
            self.outlet.as_ref().and_then(|outlet| outlet.poll_timeout(config, after)),
        ];
        times.into_iter().flatten().filter(|at| *at > after).min()
    }
}

//! One flow at one node of its paths.

use super::access::Access;
use super::config::Mc2Config;
use super::credits::{Credits, HopSet};
use super::frame::{Data, Header, MAX_ANNOUNCED, MAX_REPORTS, Request, Standing};
use super::generation::Generation;
use super::log::Log;
use super::paths::{MAX_NODES, PathSet};
use super::sink::{Lack, Outlet};
use super::source::Inlet;
use super::upstream::Upstream;
use crate::counters::DropReason;
use crate::rng;
use crate::route::Topology;
use crate::service::Cx;
use crate::time::{Duration, Instant};
use crate::tunnel::Start;
use ncmesh_wire::NodeId;
use rand_core::RngCore;
use std::collections::BTreeMap;

/// Generations a node keeps of a flow; those before them are forgotten.
pub(super) const WINDOW: u32 = 32;
/// What is owed and cannot be sent, since no next hop seems to hear, is tried so often all the same.
const PROBE: Duration = Duration::from_millis(250);
/// After so many frames in a row that hops should have heard, of which none was heard to say so, and after each as many more, a
/// node waits twice as long between frames, at random up to so many frames' time: hidden from each other, two that never wait
/// would spoil all of each other's frames for ever.
const SILENCE: f64 = 8.0;
const LONGEST_WAIT: u32 = 64;
/// A node wants to be answered at once when it sent so many frames without hearing who received them.
const POLL_AFTER: u32 = 4;

/// One flow at one node.
#[derive(Debug)]
pub(super) struct Flow {
    pub start: Start,
    paths: PathSet,
    revision: u8,
    /// DST(n, c), in the order in which credits count them.
    hops: Vec<NodeId>,
    credits: Credits,
    /// How likely any of the hops hears a frame, by the link state: where all goes wrong it is not what is measured.
    likely: f64,
    generations: BTreeMap<u32, Generation>,
    upstream: BTreeMap<NodeId, Upstream>,
    log: Log,
    /// No data is sent before this.
    not_before: Instant,
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
        start: Start,
        paths: PathSet,
        symbol: usize,
        room: u8,
        cx: &Cx<'_>,
    ) -> Self {
        let mut flow = Self::new(start, paths, 0, (room, symbol), cx);
        // Not 0: a destination that restarts within a flow tells its place by the first generation it hears.
        flow.inlet = Some(Inlet::new(1, cx.now));
        flow
    }

    /// At another node, as a frame of it shows it.
    pub(super) fn heard(data: &Data<'_>, cx: &Cx<'_>) -> Self {
        let header = &data.header;
        let shape = (header.room, usize::from(header.symbol));
        let mut flow = Self::new(header.start(), header.paths.clone(), header.revision, shape, cx);
        if header.paths.destination() == cx.me {
            flow.outlet = Some(Outlet::new(header.generation));
        }
        flow
    }

    fn new(
        start: Start,
        paths: PathSet,
        revision: u8,
        (room, symbol): (u8, usize),
        cx: &Cx<'_>,
    ) -> Self {
        let hops = paths.next_hops(cx.me);
        let credits = Credits::new(&quality(&hops, cx.topology, cx.me), end(&hops, &paths));
        Self {
            start,
            likely: credits.quality_of_all(),
            credits,
            hops,
            paths,
            revision,
            generations: BTreeMap::new(),
            upstream: BTreeMap::new(),
            log: Log::default(),
            not_before: cx.now,
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
        self.credits.held()
    }

    // ---- handle

    /// A data frame of the flow was heard from `sender`, in its start `epoch`.
    ///
    /// # Errors
    /// Why it was dropped, though what its sender says of itself may have been read.
    pub(super) fn hear(
        &mut self,
        (sender, epoch): (NodeId, u64),
        data: &Data<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), DropReason> {
        let header = &data.header;
        self.heard_at = cx.now;
        let newer = header.revision.wrapping_sub(self.revision);
        if newer != 0 && newer <= u8::MAX / 2 && self.inlet.is_none() {
            self.follow(header.paths.clone(), header.revision, cx.topology, cx.me);
        }
        self.stand(sender, &header.standing, cx.me);
        // Its sender may not have heard of the latest paths yet.
        if !header.paths.leads(sender, cx.me) {
            return Ok(());
        }
        if header.room != self.room || usize::from(header.symbol) != self.symbol {
            return Err(DropReason::Malformed);
        }
        // What is made of it must fit a frame of this node, with all that may stand in one.
        let longest = Header::longest(MAX_NODES, self.room) + self.symbol;
        if !self.hops.is_empty() && longest > cx.mtu {
            return Err(DropReason::Malformed);
        }
        let first = match self.upstream.get_mut(&sender).filter(|known| known.is_of(epoch)) {
            Some(known) => known.note(header, cx.me, cx.now),
            None => {
                let back = (cx.me, cx.topology.delivery(cx.me, sender));
                let known = Upstream::new((sender, epoch), header, back, cx.now);
                self.upstream.insert(sender, known);
                true
            }
        };
        if !first {
            return Ok(());
        }
        self.heard += 1;
        self.absorb(sender, data, cx)
    }

    fn absorb(
        &mut self,
        sender: NodeId,
        data: &Data<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), DropReason> {
        let header = &data.header;
        if header.generation < self.oldest() {
            return Err(DropReason::Stale);
        }
        self.open(header.generation);
        if let Some(before) = self.generations.get_mut(&header.generation.wrapping_sub(1)) {
            before.size = before.size.max(header.size_before);
        }
        let Some(generation) = self.generations.get_mut(&header.generation) else {
            return Err(DropReason::Malformed);
        };
        generation.size = generation.size.max(header.size);
        generation.size_before = generation.size_before.max(header.size_before);
        let Some(innovative) = generation.absorb(data.coefficients, data.payload) else {
            return Err(DropReason::Malformed);
        };
        self.innovative += u64::from(innovative);
        if let (true, Some(outlet)) = (innovative, &mut self.outlet) {
            outlet.note(header.generation, cx.now);
        }
        if self.take_credits(sender, header, cx.me) { Ok(()) } else { Err(DropReason::Malformed) }
    }

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
        self.lost += u64::from(self.credits.forget(oldest));
    }

    /// Takes in what an upstream frame announces to this node, as far as packets back it. The destination's credits end
    /// with it. Says whether the sender was honest.
    fn take_credits(&mut self, sender: NodeId, header: &Header, me: NodeId) -> bool {
        let hop = header.paths.next_hops(sender).iter().position(|hop| *hop == me);
        let (Some(hop), Some(upstream)) = (hop, self.upstream.get_mut(&sender)) else {
            return true;
        };
        let honest = upstream.learn(header, hop, &mut self.generations);
        if self.outlet.is_none() {
            for (number, generation) in &mut self.generations {
                match generation.accept() {
                    0 => {}
                    credits => self.credits.add(*number, credits),
                }
            }
        }
        honest
    }

    /// A node says of itself how many credits it holds and what it has heard.
    pub(super) fn stand(&mut self, sender: NodeId, standing: &Standing, me: NodeId) {
        let Some(hop) = self.hops.iter().position(|hop| *hop == sender) else { return };
        for heard in standing.heard.iter().filter(|heard| heard.of == me) {
            self.log.report(hop, *heard, &mut self.credits);
        }
        // Its credits, those of which it has just turned out to have learned among them.
        self.credits.hear(hop, u32::from(standing.credits));
        if sender == self.start.destination {
            self.credits.forget(standing.done);
        }
    }

    /// The MAC says who received the latest frame.
    pub(super) fn told(&mut self, receivers: &[NodeId]) {
        let hop = |(i, hop): (usize, &NodeId)| HopSet::from(receivers.contains(hop)) << i;
        let heard = self.hops.iter().enumerate().map(hop).fold(0, |all, one| all | one);
        self.log.told(heard, self.hops.len(), &mut self.credits);
    }

    /// Goes on over other paths.
    fn follow(&mut self, paths: PathSet, revision: u8, topology: &Topology, me: NodeId) {
        self.hops = paths.next_hops(me);
        let end = end(&self.hops, &paths);
        self.credits.follow(&quality(&self.hops, topology, me), end);
        self.likely = self.credits.quality_of_all();
        self.log.clear();
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
            self.credits.add(request.generation, missing as u32);
        }
        true
    }

    /// Whatever time brings: packets taken in, generations closed, credits transferred. Says whether anything was given up.
    pub(super) fn settle(&mut self, config: &Mc2Config, access: Access, cx: &mut Cx<'_>) -> bool {
        self.log.expire(access.patience(), self.hops.len(), cx.now, &mut self.credits);
        if let Some(inlet) = &mut self.inlet {
            inlet.flush(&mut self.generations, config, cx.now);
            while let Some(into) =
                inlet.insert(&mut self.generations, (self.room, self.symbol), cx.now)
            {
                self.credits.add(into, 1);
                inlet.pace(self.credits.held(), config, access.frame_time, cx.now);
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
        if self.credits.transfer(cx.rng) {
            self.log.expect(&mut self.credits, None);
        }
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
        if now < self.not_before {
            return None;
        }
        let passed = |pause| self.log.latest_at().is_none_or(|at| at + pause <= now);
        self.credits
            .due()
            .or_else(|| Some((self.credits.untold().filter(|_| passed(access.pause()))?, 0.0)))
            .or_else(|| self.credits.owing().filter(|_| passed(PROBE)))
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
        Standing { credits: self.credits.held().min(u32::from(u16::MAX)) as u16, done, heard }
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
        // Whether anything would be due once this frame is in the air.
        self.log.expect(&mut self.credits, Some(generation));
        let long = self.log.unanswered() >= POLL_AFTER;
        let asks = !access.tells;
        let waits = asks && (long || self.credits.due().is_none());
        let nominated = self.log.nominated(generation);
        let (announced, nominee) = self.credits.announce(generation, nominated, MAX_ANNOUNCED);
        let header = Header {
            incarnation: self.start.incarnation,
            paths: self.paths.clone(),
            revision: self.revision,
            serial: self.log.serial(),
            asks,
            waits,
            standing,
            announced,
            generation,
            room: self.room,
            size: packets.size,
            size_before: before.map_or(0, |before| before.size).max(packets.size_before),
            symbol: self.symbol as u16,
        };
        header.write(out);
        packets.combine(rng, out)?;
        let taken = self.credits.taken(generation);
        self.log.push(generation, taken, (header.announced, nominee), now);
        self.log.expect(&mut self.credits, None);
        self.sent_at = now;
        let missed = f64::from(self.log.silent()) * self.likely;
        let doublings = ((missed / SILENCE) as u32).min(LONGEST_WAIT.ilog2());
        if doublings > 0 {
            let frames = rng::unit(rng) * f64::from(1 << doublings);
            self.not_before = now + access.frame_time.mul_f64(1.0 + frames);
        }
        Some(())
    }

    /// When, later than `after`, something falls due.
    pub(super) fn poll_timeout(
        &self,
        config: &Mc2Config,
        access: Access,
        after: Instant,
    ) -> Option<Instant> {
        let latest = self.log.latest_at();
        let times = [
            Some(self.not_before),
            self.credits.untold().and(latest).map(|at| at + access.pause()),
            self.credits.owing().and(latest).map(|at| at + PROBE),
            self.upstream.values().filter_map(Upstream::reports_at).filter(|at| *at > after).min(),
            self.inlet.as_ref().and_then(|inlet| inlet.poll_timeout(config, after)),
            self.outlet.as_ref().and_then(|outlet| outlet.poll_timeout(config, after)),
            self.log.expires_at(access.patience()),
        ];
        times.into_iter().flatten().filter(|at| *at > after).min()
    }
}

/// Which of the hops is the destination.
fn end(hops: &[NodeId], paths: &PathSet) -> Option<usize> {
    hops.iter().position(|hop| *hop == paths.destination())
}

/// Of a link on the paths that this node has not measured yet nothing is known but that the source takes it for one.
const UNMEASURED: f64 = 0.5;

fn quality(hops: &[NodeId], topology: &Topology, me: NodeId) -> Vec<f64> {
    let known = |hop: &NodeId| Some(topology.delivery(me, *hop)).filter(|delivery| *delivery > 0.0);
    hops.iter().map(|hop| known(hop).unwrap_or(UNMEASURED)).collect()
}

//! One flow at one node of its paths.
//!
//! Joins the parts: generations are what the node can combine, [`Upstream`] and [`Downstream`] are
//! its neighbours on the paths. The source has an [`Ingress`] and the destination an [`Egress`];
//! a relay has neither. All nodes run the same code otherwise.
//!
//! ```text
//!   Ingress --packets--> generations --combinations--> Downstream
//!                           ^     |
//!   Upstream --combinations-+     +--packets--> Egress
//! ```

mod receive;

use crate::channel_access::ChannelAccess;
use crate::config::Mc2Config;
use crate::credits::Candidate;
use crate::downstream::Downstream;
use crate::egress::{Egress, NeededPackets};
use crate::frame::{Data, FlowState, GenerationHeader, Request};
use crate::generation::{Generation, GenerationShape};
use crate::ingress::Ingress;
use crate::paths::PathSet;
use crate::upstream::Upstream;
use ncmesh_engine::Context;
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::flow::{Contradiction, FlowInstance};
use ncmesh_engine::topology::Topology;
use ncmesh_wire::NodeId;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Generations of a flow that a node keeps. Older ones are dropped.
pub(crate) const WINDOW: u32 = 32;

/// Number of a flow's first generation. In [`FlowState::done`] 0 stands for no generation.
const FIRST_GENERATION: u32 = 1;

/// One flow at one node.
#[derive(Debug)]
pub(crate) struct Flow {
    pub instance: FlowInstance,
    paths: PathSet,
    /// Number of the source's choice of paths.
    revision: u8,
    shape: GenerationShape,
    generations: BTreeMap<u32, Generation>,
    upstream: BTreeMap<NodeId, Upstream>,
    downstream: Downstream,
    /// At the source.
    pub ingress: Option<Ingress>,
    /// At the destination.
    egress: Option<Egress>,
    /// Data frames from previous hops.
    pub heard: u64,
    /// Innovative ones among them.
    pub innovative: u64,
    /// Packets handed up here.
    pub delivered: u64,
    /// Bytes of these packets.
    pub delivered_bytes: u64,
    /// Packets and credits given up here.
    pub lost: u64,
    /// Whether frames of the flow contradict this state.
    contradiction: Contradiction,
    pub heard_at: Instant,
    pub sent_at: Instant,
}

impl Flow {
    /// Returns a flow that begins at this node.
    pub(crate) fn outgoing(
        instance: FlowInstance,
        paths: PathSet,
        shape: GenerationShape,
        cx: &Context<'_>,
    ) -> Self {
        let mut flow = Self::new(instance, paths, 0, shape, cx);
        flow.ingress = Some(Ingress::new(FIRST_GENERATION, cx.now));
        flow
    }

    /// Returns a flow as a data frame of it shows it.
    pub(crate) fn from_frame(data: &Data<'_>, cx: &Context<'_>) -> Self {
        let header = &data.header;
        let shape = GenerationShape {
            generation_size: header.generation_size,
            symbol_size: usize::from(header.symbol_size),
        };

        let paths = header.paths.clone();
        let mut flow = Self::new(header.instance(), paths, header.revision, shape, cx);
        if header.paths.destination() == cx.me {
            flow.egress = Some(Egress::new(header.generation));
        }
        flow
    }

    fn new(
        instance: FlowInstance,
        paths: PathSet,
        revision: u8,
        shape: GenerationShape,
        cx: &Context<'_>,
    ) -> Self {
        let downstream = Downstream::new(&paths, cx.topology, cx.me, cx.now);
        Self {
            instance,
            paths,
            revision,
            shape,
            generations: BTreeMap::new(),
            upstream: BTreeMap::new(),
            downstream,
            ingress: None,
            egress: None,
            heard: 0,
            innovative: 0,
            delivered: 0,
            delivered_bytes: 0,
            lost: 0,
            contradiction: Contradiction::default(),
            heard_at: cx.now,
            sent_at: cx.now,
        }
    }

    /// Returns |C(n, c)|: credits that this node holds.
    pub(crate) fn credits(&self) -> u32 {
        self.downstream.credits.held()
    }

    // ---- window of generations

    /// Adds a generation, unless it is there, and drops those that leave the window.
    fn open_generation(&mut self, number: u32) {
        let is_destination = self.egress.is_some();
        if !self.generations.contains_key(&number)
            && let Some(new) = Generation::new(self.shape, is_destination)
        {
            self.generations.insert(number, new);
            self.drop_before(self.window_start());
        }
    }

    /// Returns the oldest generation that the window has room for.
    fn window_start(&self) -> u32 {
        let newest = self.generations.keys().next_back().copied().unwrap_or(0);
        newest.saturating_sub(WINDOW - 1)
    }

    /// Returns the oldest generation of which frames are taken in.
    fn oldest_wanted(&self) -> u32 {
        let start = self.window_start();
        self.egress.as_ref().map_or(start, |egress| egress.oldest().max(start))
    }

    /// Notes a frame of the flow. Returns whether all frames for long were of an earlier instance
    /// or of generations that left the window long ago.
    pub(crate) fn note_conflict(&mut self, header: &GenerationHeader, now: Instant) -> bool {
        let is_recent = header.generation.saturating_add(WINDOW) >= self.oldest_wanted();
        self.contradiction.note(self.instance, header.instance(), is_recent, now)
    }

    fn drop_before(&mut self, oldest: u32) {
        if self.generations.keys().next().is_none_or(|first| *first >= oldest) {
            return;
        }
        self.generations = self.generations.split_off(&oldest);
        self.upstream.values_mut().for_each(|upstream| upstream.drop_before(oldest));
        self.lost += u64::from(self.downstream.credits.drop_before(oldest));
    }

    // ---- paths

    /// Continues over other paths.
    fn use_paths(&mut self, paths: PathSet, revision: u8, topology: &Topology, me: NodeId) {
        self.downstream.reroute(&paths, topology, me);
        self.paths = paths;
        self.revision = revision;
    }

    /// Continues over other paths that this node, the source, has chosen.
    pub(crate) fn reroute(&mut self, paths: PathSet, topology: &Topology, me: NodeId) {
        if paths != self.paths {
            self.use_paths(paths, self.revision.wrapping_add(1), topology, me);
        }
    }

    // ---- feedback

    /// Handles the state of the flow at another node.
    pub(crate) fn handle_state(&mut self, sender: NodeId, state: &FlowState, me: NodeId) {
        let acks = state.acks.iter().filter(|ack| ack.of == me);
        let is_next_hop = self.downstream.handle_state(sender, state.credits, acks);
        if is_next_hop && sender == self.instance.destination {
            self.downstream.credits.drop_before(state.done);
        }
    }

    /// Handles the MAC's report on which nodes received the latest frame.
    pub(crate) fn handle_mac_report(&mut self, receivers: &[NodeId]) {
        self.downstream.handle_mac_report(receivers);
    }

    /// Handles a destination's request on its way to the source. Returns whether it was answered
    /// here.
    ///
    /// Any node with the complete generation can answer: its combinations are as good as the
    /// source's, and it is nearer. The answer is credits, which are sent on like others.
    pub(crate) fn answer_request(&mut self, request: &Request) -> bool {
        let is_source = self.ingress.is_some();
        let Some(generation) = self.generations.get_mut(&request.generation) else {
            return is_source;
        };
        if !generation.is_complete() && !is_source {
            return false;
        }

        // The same request may come over several paths.
        if generation.answered != Some(request.serial) {
            generation.answered = Some(request.serial);

            // No destination can lack more than there is.
            let missing = usize::from(request.missing).min(generation.rank());
            self.downstream.credits.add(request.generation, missing as u32);
        }

        true
    }

    // ---- time

    /// Does what is due: settles frames that timed out, inserts packets, gives up generations and
    /// transfers credits. Returns whether the destination gave up a generation, so that later
    /// packets may be next in order now.
    pub(crate) fn handle_due(
        &mut self,
        config: &Mc2Config,
        access: ChannelAccess,
        cx: &mut Context<'_>,
    ) -> bool {
        self.downstream.expire(access, cx.now);

        // At the source: insert packets as fast as congestion allows. Each comes with a credit,
        // which slows down the next one.
        if let Some(ingress) = &mut self.ingress {
            ingress.flush(&mut self.generations, config, cx.now);
            while let Some(number) = ingress.insert(&mut self.generations, self.shape, cx.now) {
                self.downstream.credits.add(number, 1);
                let credits = self.downstream.credits.held();
                ingress.pace(credits, config, access.frame_time(), cx.now);
            }

            let current = ingress.current();
            self.drop_before(current.saturating_sub(WINDOW - 1));
        }

        // At the destination: request what is missing, or give it up.
        let oldest = self.oldest_wanted();
        let mut gave_up = false;
        if let Some(egress) = &mut self.egress {
            let before = egress.oldest();
            self.lost += egress.check_timeouts(&self.generations, oldest, config, cx.now);
            gave_up = egress.oldest() != before;
        }

        // Last, credits that arrived or were created go on.
        self.downstream.transfer(cx.rng);
        gave_up
    }

    /// Hands up the packets that are next in order, at the destination.
    pub(crate) fn deliver(&mut self, mut hand_up: impl FnMut(Vec<u8>)) {
        let Some(egress) = &mut self.egress else { return };
        let before = egress.oldest();
        egress.deliver(&mut self.generations, |packet| {
            self.delivered += 1;
            self.delivered_bytes += packet.len() as u64;
            hand_up(packet);
        });

        let oldest = egress.oldest();
        if oldest != before {
            self.drop_before(oldest);
        }
    }

    // ---- poll

    /// Returns the generation to send from now.
    pub(crate) fn candidate(&self, access: ChannelAccess, now: Instant) -> Option<Candidate> {
        self.downstream.candidate(access, now)
    }

    /// Returns when this node sent the latest data frame of the flow over its present paths.
    pub(crate) fn latest_at(&self) -> Option<Instant> {
        self.downstream.latest_at()
    }

    /// Returns whether a report is due that no data frame will make needless.
    pub(crate) fn is_report_due(&self, access: ChannelAccess, now: Instant) -> bool {
        let is_due = self.upstream.values().any(|upstream| upstream.is_report_due(now));
        is_due && self.candidate(access, now).is_none()
    }

    /// Returns what to request now, at the destination.
    pub(crate) fn next_request(&self, config: &Mc2Config) -> Option<NeededPackets> {
        self.egress.as_ref()?.next_request(&self.generations, config)
    }

    /// Notes that a request was sent.
    pub(crate) fn note_request(&mut self, generation: u32, now: Instant) {
        if let Some(egress) = &mut self.egress {
            egress.note_request(generation, now);
        }
    }

    /// Returns this node's state with up to `acks` acknowledgments, and counts these as sent.
    pub(crate) fn take_state(&mut self, acks: usize, now: Instant) -> FlowState {
        // Previous hops that a report is due for go first, or it would stay due, then those with
        // most new frames. The others are told again what they may have missed.
        let mut upstream: Vec<&mut Upstream> =
            self.upstream.values_mut().filter(|upstream| upstream.wants_ack).collect();
        upstream.sort_by_key(|one| Reverse((one.is_report_due(now), one.unacknowledged)));
        let acks =
            upstream.into_iter().take(acks).map(|upstream| upstream.acknowledge(now)).collect();
        FlowState {
            credits: self.credits().min(u32::from(u16::MAX)) as u16,
            done: self.egress.as_ref().map_or(0, Egress::oldest),
            acks,
        }
    }

    /// Appends the body of a data frame: a random combination of `generation`.
    pub(crate) fn fill_data(
        &mut self,
        generation: u32,
        access: ChannelAccess,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        // The combination is made only now, from everything that has arrived so far. Its length
        // says how much feedback the frame has room for.
        let combinations = self.generations.get(&generation)?;
        let mut combination = Vec::new();
        combinations.recode(cx.rng, &mut combination)?;
        let packets = combinations.packets;
        let packets_before = combinations.packets_before;
        let nodes = self.paths.nodes().len();
        let hops = self.downstream.hops();
        let feedback = GenerationHeader::feedback(cx.mtu, combination.len(), nodes, hops);
        let state = self.take_state(feedback.acks, cx.now);

        // The frame also tells how many packets the previous generation has: all of its own frames
        // may have been sent before it was closed.
        let before = self.generations.get(&generation.wrapping_sub(1));
        let packets_before = before.map_or(0, |before| before.packets).max(packets_before);
        let fields = self.downstream.frame_fields(generation, access, feedback.announced);
        let header = GenerationHeader {
            incarnation: self.instance.incarnation,
            paths: self.paths.clone(),
            revision: self.revision,
            serial: fields.serial,
            wants_ack: fields.wants_ack,
            waits_for_ack: fields.waits_for_ack,
            state,
            announced: fields.announcement.credits.clone(),
            generation,
            generation_size: self.shape.generation_size,
            packets,
            packets_before,
            symbol_size: self.shape.symbol_size as u16,
        };

        header.write(out);
        out.extend_from_slice(&combination);
        self.downstream.note_sent(generation, fields.announcement, access, cx.rng, cx.now);
        self.sent_at = cx.now;
        Some(())
    }

    /// Returns the first time later than `after` at which something falls due.
    pub(crate) fn poll_timeout(
        &self,
        config: &Mc2Config,
        access: ChannelAccess,
        after: Instant,
    ) -> Option<Instant> {
        let reports = self.upstream.values().filter_map(Upstream::report_at);
        let times = [
            self.downstream.poll_timeout(access, after),
            reports.filter(|at| *at > after).min(),
            self.ingress.as_ref().and_then(|ingress| ingress.poll_timeout(config, after)),
            self.egress.as_ref().and_then(|egress| egress.poll_timeout(config, after)),
        ];
        times.into_iter().flatten().filter(|at| *at > after).min()
    }
}

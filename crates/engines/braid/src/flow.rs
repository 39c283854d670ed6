//! One flow at one node: what it has of the stream, and what it sends next.

use super::child::{Child, Link, Pace, Said};
use super::flight::Filling;
use super::frame::{Header, LAST, NAMED, State, WIDTH};
use super::hops::Hops;
use super::next::{Carriage, Next};
use super::route::{self, Route};
use super::symbol;
use super::upstream::Upstream;
use ncmesh_code::{Coded, Window};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::coder::pack;
use ncmesh_engine::toolkit::flow::{Contradiction, FlowInstance};
use ncmesh_engine::toolkit::hop::pacing::{Pacing, PacingPolicy};
use ncmesh_engine::{At, Context, Malformed, rng};
use ncmesh_wire::NodeId;
use rand_core::RngCore;
use std::collections::{BTreeMap, BTreeSet};

/// Nothing is repeated unless the next hop is expected to lack more than this. With less, what is
/// heard of it next costs less than a packet in vain. Half 1.01, twice 1.00: a trade between
/// airtime and delay.
const MARGIN: f64 = 0.6;
/// Packets ahead of what this node needs that it takes, at most. As many are kept behind it for the
/// combinations to come.
const CAPACITY: u32 = WIDTH as u32;
/// Packets that a node keeps though the next hop has them, to take them out of pairs. Fewer
/// separate fewer pairs (half 0.99), more take memory.
const KEPT: u32 = 32;
/// Time after which a packet that the next hop lacks is given up: TCP has sent it again by then.
const LIFETIME: Duration = Duration::from_secs(2);
/// Time for which the destination waits for a missing packet. Shorter, TCP sees losses that were
/// about to be mended; longer, one packet delays all others for longer.
const GAP: Duration = Duration::from_millis(500);
/// Time after which a way that leads elsewhere counts, whoever takes it, if none led to this node.
const UNCALLED: Duration = Duration::from_secs(1);
/// Silence after the next hop was heard to send on: its own next hop sends then, whom this node may
/// not hear. And waits where few packets arrive. Less silence collides, more idles: a slot of half
/// 0.99, of twice 0.97; waits of half 0.98, of twice 0.99.
const PACING: PacingPolicy = PacingPolicy { slot: 1.5, ease: 0.5, most_ease: 4.0 };

/// A packet that the next hop lacks.
#[derive(Clone, Copy, Debug)]
struct Lacked {
    packet: u32,
    /// Whether it was sent as it is since the next hop is the same.
    is_sent: bool,
    /// Whether it is on its way as it is.
    is_flying: bool,
}

/// The first of some packets, and the first of real-time traffic among them.
#[derive(Clone, Copy, Debug, Default)]
struct First {
    any: Option<u32>,
    urgent: Option<u32>,
}

impl First {
    /// Returns whether a further packet, of real-time traffic perhaps, may be one of the two.
    fn is_open(self, may_be_urgent: bool) -> bool {
        self.any.is_none() || (may_be_urgent && self.urgent.is_none())
    }

    fn note(&mut self, packet: u32, is_urgent: bool) {
        self.any.get_or_insert(packet);
        if is_urgent {
            self.urgent.get_or_insert(packet);
        }
    }
}

/// Part of a node in a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Source,
    Relay,
    Destination,
    /// It only overhears packets, to take them out of pairs.
    Listener,
}

/// A flow at a node.
#[derive(Debug)]
pub(crate) struct Flow {
    pub id: FlowInstance,
    role: Role,
    window: Window,
    /// Packets before this one are here, or needed no more. At the source: the next packet.
    needs: u32,
    /// The destination handed up, or gave up, the packets before this one.
    delivered: u32,
    /// Packets of real-time traffic from there on that it handed up already.
    early: BTreeSet<u32>,
    /// No packet from this one on is of real-time traffic, so that none is looked at for that.
    urgent_end: u32,
    /// Packets sent as they are since the next hop is the same.
    sent: BTreeSet<u32>,
    /// The source's newest symbol, if it was not sent to any node yet.
    open: Option<u32>,
    /// Packets that earlier next hops had.
    passed: u32,
    /// When the leads of rows came.
    since: BTreeMap<u32, Instant>,
    /// The next hop.
    pub child: Option<Child>,
    pub upstream: Upstream,
    /// Packets before this one come no more from upstream.
    no_more: u32,
    /// Whether what is sent to this node contradicts what it believes of the flow.
    contradiction: Contradiction,
    /// Since when the destination waits for a packet while it has later ones.
    gap_since: Option<Instant>,
    /// The packet that its last frame carries alone, by unicast.
    pub alone: Option<u32>,
    /// Number of its last frame.
    number: u16,
    pacing: Pacing,
    pub sent_at: Instant,
    pub heard_at: Instant,
    /// Whether so much waits here that the node before this one waits for room.
    was_full: bool,
    /// Whether more packets waited, here or on the way here, when one was sent last.
    more: bool,
    route: Route,
    hops: Hops,
    /// When it was last known that the way of the packets leads to this node.
    called_at: Instant,
    /// If it leads elsewhere: this node still sends on the packets before this one.
    owed: Option<u32>,
}

impl Flow {
    /// Returns a flow that begins at packet `first`. A node that is no end of it listens at first.
    pub(crate) fn new(cx: &mut Context<'_>, id: FlowInstance, first: u32) -> Self {
        let role = match cx.me {
            me if me == id.source => Role::Source,
            me if me == id.destination => Role::Destination,
            _ => Role::Listener,
        };

        let now = cx.now;
        Self {
            id,
            role,
            window: Window::default(),
            needs: first,
            delivered: first,
            early: BTreeSet::new(),
            urgent_end: first,
            sent: BTreeSet::new(),
            open: None,
            passed: first,
            since: BTreeMap::new(),
            child: None,
            upstream: Upstream::default(),
            no_more: first,
            contradiction: Contradiction::default(),
            gap_since: None,
            alone: None,
            number: cx.rng.next_u32() as u16,
            pacing: Pacing::new(PACING, now),
            sent_at: now,
            heard_at: now,
            was_full: false,
            more: false,
            route: Route::default(),
            hops: Hops::default(),
            called_at: now,
            owed: None,
        }
    }

    // ---- what is here
    /// Returns the packets that lead what this node has and its next hop lacked when it was last
    /// heard.
    fn lacking(&self) -> impl Iterator<Item = u32> + '_ {
        self.child.iter().flat_map(|child| {
            let leads = self.window.leads(child.state.needs);
            let end = self.owed.unwrap_or(u32::MAX);
            leads.take_while(move |lead| *lead < end).filter(|lead| !child.state.has(*lead))
        })
    }

    /// Returns the same with what became of each packet.
    fn lacked(&self) -> impl Iterator<Item = Lacked> + '_ {
        let first = self.child.as_ref().map_or(0, |child| child.state.needs);
        let flying = self.child.iter().flat_map(move |child| child.flight.packets(first));

        // All three are in order, so one way through each is enough.
        let mut flying = flying.peekable();
        let mut sent = self.sent.range(first..).copied().peekable();
        self.lacking().map(move |packet| {
            while sent.next_if(|n| *n < packet).is_some() {}
            while flying.next_if(|n| *n < packet).is_some() {}
            let is_sent = sent.peek() == Some(&packet);
            Lacked { packet, is_sent, is_flying: flying.peek() == Some(&packet) }
        })
    }

    /// Returns how many packets those are. Few of them lie where the next hop names what it has, so
    /// only these are looked at.
    fn lacking_count(&self) -> usize {
        let Some(child) = &self.child else { return 0 };
        let first = child.state.needs;
        let end = self.owed.unwrap_or(u32::MAX);
        let named =
            self.window.leads(first).take_while(|lead| lead - first <= NAMED && *lead < end);
        let here = named.filter(|lead| child.state.has(*lead)).count();

        let all = self.window.count(first);
        let not_owed = self.owed.map_or(0, |owed| self.window.count(owed.max(first)));
        all - not_owed - here
    }

    /// Returns how much the next hop is expected to lack of what this node has.
    fn lacks(&self) -> f64 {
        self.child.as_ref().map_or(0.0, |child| child.lacks(self.lacking_count()))
    }

    /// Returns what this node says of itself.
    pub(crate) fn state(&self, now: Instant) -> State {
        let next = self.child.as_ref().map(|child| child.node);
        let behind = self.window.leads(self.needs + 1).map(|lead| lead - self.needs - 1);
        State {
            needs: self.needs,
            leads: behind.take_while(|far| *far < NAMED).fold(0, |leads, far| leads | 1 << far),
            backlog: self.backlog(),
            turn: self.upstream.turn,
            collides: self.child.as_ref().is_some_and(Child::collides),
            feeds: next.is_some_and(|next| next != self.id.destination),
            ends: self.role == Role::Destination,
            more: self.more,
            handled: self.upstream.handled(now),
        }
    }

    /// Returns the node before this one, if it was heard recently and has packets that this one
    /// lacks. Its backlog leaves out packets that it sent, of which some were lost.
    pub(crate) fn waiting_parent(&self, now: Instant) -> Option<NodeId> {
        let state = &self.upstream.parent_state;
        let has_packets = state.backlog > 0 || state.needs > self.needs;
        self.upstream.present_parent(now).filter(|_| has_packets)
    }

    /// Returns how much waits here.
    pub(crate) fn backlog(&self) -> u8 {
        self.lacks().round().min(f64::from(u8::MAX)) as u8
    }

    /// Takes a packet of this node's own host. Small packets share a symbol of up to `longest`
    /// bytes while it waits: a frame takes long, however little is in it.
    pub(crate) fn push(&mut self, packet: &[u8], longest: usize, now: Instant) {
        let symbol = pack(packet);
        let is_alike = |last: &[u8]| symbol::is_real_time(last) == symbol::is_real_time(&symbol);
        let fits = |last: &[u8]| is_alike(last) && last.len() + symbol.len() <= longest;

        // A packet that joined one that was given up would never be sent.
        let given_up = self.child.as_ref().map_or(self.passed, |child| child.state.needs);
        if let Some(open) = self.open.filter(|open| *open >= given_up)
            && self.window.packet(open).is_some_and(fits)
            && self.window.append(open, &symbol)
        {
            return;
        }

        // It is the next packet of the flow, and the last for now that others may join.
        let number = self.needs;
        if symbol::is_real_time(&symbol) {
            self.urgent_end = number + 1;
        }
        self.window.absorb(Coded { first: number, coefficients: vec![1], symbol });
        self.since.insert(number, now);
        self.open = Some(number);
        self.needs += 1;
    }

    /// Returns whether a packet can be sent as it is.
    fn is_known(&self, packet: u32) -> bool {
        self.window.packet(packet).is_some()
    }

    /// Returns the packets that were not sent yet and can be sent as they are.
    pub(crate) fn unsent(&self) -> impl Iterator<Item = u32> + '_ {
        let unsent = self.lacked().filter(|lacked| !lacked.is_sent).map(|lacked| lacked.packet);
        unsent.filter(|packet| self.is_known(*packet))
    }

    /// Returns how many packets wait to be sent for the first time.
    pub(crate) fn waiting(&self) -> usize {
        self.unsent().count()
    }

    /// Takes a combination that was heard. Returns whether it was innovative; `None` if it is too
    /// far from what this node has.
    pub(crate) fn absorb(&mut self, coded: Coded, now: Instant) -> Option<bool> {
        let end = coded.first + coded.coefficients.len() as u32;
        self.listen(end);

        // Packets that are needed no more teach nothing, and a window is bounded.
        if end <= self.needs {
            return Some(false);
        }
        if coded.first.saturating_add(CAPACITY) < self.needs || end > self.needs + CAPACITY {
            return None;
        }
        // The packets of a combination may be of any class until they are known.
        if coded.coefficients != [1] || symbol::is_real_time(&coded.symbol) {
            self.urgent_end = self.urgent_end.max(end);
        }
        let is_innovative = self.window.absorb(coded);
        if is_innovative {
            // Each packet has its own time, from when something was first known of it.
            let known = &mut self.since;
            for lead in self.window.leads(0) {
                known.entry(lead).or_insert(now);
            }
            self.advance();
        }

        Some(is_innovative)
    }

    /// Notes a frame for this node, of packets from `first` on. Returns whether all such frames for
    /// long were of an earlier instance, or far behind what this node needs.
    pub(crate) fn note_conflict(&mut self, id: FlowInstance, first: u32, now: Instant) -> bool {
        let is_recent = first.saturating_add(CAPACITY) >= self.needs;
        self.contradiction.note(self.id, id, is_recent, now)
    }

    /// Counts up the packets that are here without a gap.
    fn advance(&mut self) {
        let leads = self.window.leads(self.needs);
        self.needs = leads.zip(self.needs..).take_while(|(lead, next)| lead == next).count() as u32
            + self.needs;
    }

    /// Needs no packets before `needs` any more. The source counts its own.
    fn skip_to(&mut self, needs: u32) {
        if needs > self.needs && self.role != Role::Source {
            self.needs = needs;
            self.advance();
        }
    }

    /// Notes that packets before `oldest` come no more from the node before this one.
    pub(crate) fn note_oldest(&mut self, oldest: u32) {
        self.no_more = self.no_more.max(oldest);
        self.skip_to(oldest);
    }

    /// Returns the next packets for this node's host, in order: those of one symbol. Real-time
    /// traffic waits for none before it. What is missing for too long is given up, and so is what
    /// comes no more.
    pub(crate) fn pop_packets(&mut self, now: Instant) -> Option<Vec<Vec<u8>>> {
        loop {
            // The next packet in order goes up, unless it went early.
            if let Some(symbol) = self.window.packet(self.delivered) {
                let is_new = !self.early.remove(&self.delivered);
                let packets = if is_new { symbol::packets(symbol) } else { Vec::new() };
                self.delivered += 1;
                self.skip_to(self.delivered);
                self.gap_since = None;
                if is_new {
                    return Some(packets);
                }
                continue;
            }

            // Real-time traffic goes up early, in any order.
            let mut here = self.window.leads(self.delivered).filter(|n| !self.early.contains(n));
            if let Some((early, symbol)) = here.find_map(|n| Some((n, self.real_time(n)?))) {
                let packets = symbol::packets(symbol);
                self.early.insert(early);
                return Some(packets);
            }

            // Packets that the node before has given up come no more.
            let known = self.window.leads(self.delivered).find(|n| self.is_known(*n));
            let reach = self.window.reach(self.delivered).unwrap_or(self.delivered);
            if reach < self.no_more {
                let next = self.window.leads(self.delivered + 1).next();
                self.delivered = next.map_or(self.no_more, |next| next.min(self.no_more));
                continue;
            }

            // A packet that is missing, or not decoded, holds up those behind it.
            let Some(known) = known else {
                self.gap_since = None;
                return None;
            };

            // A gap holds up the packets behind it for a while; then the missing ones are given up.
            let since = *self.gap_since.get_or_insert(now);
            if now < since + GAP {
                return None;
            }
            self.delivered = known;
        }
    }

    /// Returns the symbol of a packet of real-time traffic, if it is known here.
    fn real_time(&self, packet: u32) -> Option<&[u8]> {
        self.window.packet(packet).filter(|symbol| symbol::is_real_time(symbol))
    }

    /// Returns how many packets of its own host the source keeps for its next hop.
    pub(crate) fn kept(&self) -> usize {
        self.window.count(self.child.as_ref().map_or(0, |child| child.state.needs))
    }

    /// Returns the symbol of a combination, if it is made of what this node has.
    pub(crate) fn express(&self, coded: &Coded) -> Option<Vec<u8>> {
        self.window.express(coded.first, &coded.coefficients)
    }

    /// Returns the probability that a node has a packet: the node that sends packets to this one
    /// says so and keeps some that are here; others may have overheard that node.
    pub(crate) fn chance_at(&self, cx: &Context<'_>, node: NodeId, packet: u32) -> f64 {
        let upstream = &self.upstream;
        match upstream.parent {
            Some(_) if packet + KEPT < self.needs => 0.0,
            Some(parent) if parent == node => {
                f64::from(u8::from(upstream.parent_state.has(packet)))
            }
            Some(parent) => cx.topology.delivery(parent, node),
            None => 0.0,
        }
    }

    /// Notes that another node sends packets to this next hop. While their way leads to this node,
    /// it sends on what it has. Once it leads elsewhere, another relay does: this one sends only
    /// what it took over before.
    pub(crate) fn note_way(&mut self, me: NodeId, sender: NodeId, next_hop: NodeId, now: Instant) {
        self.hops.note(sender, next_hop);
        if self.role != Role::Relay {
            return;
        }
        let destination = self.id.destination;
        match self.hops.lead(next_hop, me, destination) {
            Some(true) => {
                self.called_at = now;
                self.owed = None;
            }
            Some(false) => {
                let is_before = sender == self.id.source || self.upstream.parent == Some(sender);

                // Where neither of the two is heard, another node's way counts, too, unless that
                // one has its packets from here.
                let is_fed = |child: &Child| self.hops.lead(child.node, sender, destination);
                let is_behind = || self.child.as_ref().and_then(is_fed) == Some(true);
                if is_before || (now.since(self.called_at) >= UNCALLED && !is_behind()) {
                    self.owed.get_or_insert(self.needs);
                }
            }
            None => {}
        }
    }

    /// Becomes a listener if the packets that this node still had to send on are sent.
    pub(crate) fn leave_when_done(&mut self) {
        let Some(owed) = self.owed.filter(|_| self.role == Role::Relay) else { return };
        if self.child.as_ref().is_none_or(|child| child.state.needs >= owed) {
            self.role = Role::Listener;
            self.child = None;
        }
    }

    /// Takes part in the flow from now on.
    pub(crate) fn take_part(&mut self) {
        if self.role == Role::Listener {
            self.role = Role::Relay;
        }
    }

    /// Only listens: what is missing of packets long before `end` is never needed.
    fn listen(&mut self, end: u32) {
        if self.role == Role::Listener {
            self.skip_to(end.saturating_sub(CAPACITY));
        }
    }

    /// Returns whether this node is the source.
    pub(crate) fn is_source(&self) -> bool {
        self.role == Role::Source
    }

    /// Returns whether the numbers of its packets are used up.
    pub(crate) fn is_used_up(&self) -> bool {
        self.needs >= LAST
    }

    /// Returns whether another node can have so much: little more than this one, which may have
    /// missed some, and no more than the source sent.
    pub(crate) fn can_have(&self, state: State) -> bool {
        let ahead = if self.is_source() { 0 } else { CAPACITY };
        state.needs <= self.needs + ahead
    }

    /// Forgets what nobody needs from here.
    pub(crate) fn forget(&mut self) {
        // Packets that the next hop has are kept to take them out of pairs, and to ask it with.
        let below = match (self.role, &self.child) {
            (Role::Destination, _) => self.delivered,
            (_, Some(child)) => child.state.needs.saturating_sub(KEPT),
            (_, None) => self.no_more,
        };

        let start = if self.role == Role::Source { below } else { below.min(self.no_more) };
        let start = start.max(self.needs.saturating_sub(2 * CAPACITY));
        self.window.forget_before(start);
        self.early = self.early.split_off(&self.delivered);
        self.since = self.since.split_off(&start);
        self.sent = self.sent.split_off(&start);
    }

    // ---- the next hop

    /// Chooses the next hop. What the old one had not seen goes to the new one.
    pub(crate) fn route(&mut self, cx: &Context<'_>) {
        if matches!(self.role, Role::Destination | Role::Listener) {
            return;
        }
        let now = self.child.as_ref().map(|child| child.node);
        let best = self.route.choose(cx, self.id.destination, self.child.as_ref());
        if let Some(child) = &mut self.child {
            child.port = cx.at.ways.port_to(child.node);
        }
        if best == now {
            return;
        }

        // The new next hop has no packet that the old one was not seen to have.
        let needs = match &self.child {
            Some(child) => child.state.needs,
            None => {
                let held = self.window.leads(0).next().unwrap_or(self.needs);
                held.min(self.needs).max(self.passed)
            }
        };

        self.passed = needs;
        self.child = best.map(|node| {
            let there = cx.topology.delivery(cx.me, node);
            let back = cx.topology.delivery(node, cx.me);
            let port = cx.at.ways.port_to(node);
            let mut child = Child::new(node, needs, Link { there, back }, cx.now);
            child.port = port;
            child
        });

        // Packets that only the old one may have are sent again.
        self.sent.clear();
        self.alone = None;
    }

    /// Returns whether its packets go out by a port.
    pub(crate) fn goes_by(&self, at: At<'_>) -> bool {
        self.child.as_ref().is_some_and(|child| at.reaches(child.node))
    }

    /// Returns whether a node that is reached by some port hears the packets of this one.
    pub(crate) fn is_heard_by(&self, cx: &Context<'_>, node: NodeId) -> bool {
        let here = cx.at.ways.port_to(node);
        self.child.as_ref().is_none_or(|child| cx.at.ways.port_to(child.node) == here)
    }

    /// Takes what another node says of itself, in a data frame if it `sends`. Returns how many
    /// frames forwarding would have sent for what the next hop gained.
    ///
    /// # Errors
    /// [`Malformed`] if no node of this flow can have what it says.
    pub(crate) fn hear(
        &mut self,
        cx: &Context<'_>,
        node: NodeId,
        said: Said,
        sends: bool,
        pace: Pace,
    ) -> Result<f64, Malformed> {
        // The way may have changed since the last frame.
        self.heard_at = cx.now;
        self.route(cx);

        // Only who sends packets on needs to know what others have.
        let Some(child) = &self.child else { return Ok(0.0) };
        let is_child = child.node == node;
        if !is_child && !route::is_nearer(cx, self.id, self.upstream.parent, node) {
            return Ok(0.0);
        }
        if !self.can_have(said.state) {
            return Err(Malformed);
        }

        // The next hop's word corrects what is believed of it. A node further on only ends what is
        // needed no more.
        if !is_child {
            self.hear_nearer(said.state.needs);
            return Ok(0.0);
        }
        let frames = self.hear_child(said, pace, cx.now);
        if sends {
            self.make_way(pace.packet_time, cx.now);
        }
        self.note_room(pace.room, cx.now);
        Ok(frames)
    }

    /// Takes what the next hop says of itself. Returns how many frames forwarding would have sent
    /// for what it gained.
    fn hear_child(&mut self, said: Said, pace: Pace, now: Instant) -> f64 {
        let state = said.state;
        let Some(child) = &mut self.child else { return 0.0 };

        // It lacks something if this node has a dimension behind what it needs.
        let from = state.needs.max(child.state.needs);
        let lacks = self.window.leads(from).any(|lead| !state.has(lead));
        let gained = child.hear(said, lacks, pace, now);
        let Some(gained) = gained else { return 0.0 };
        let frames = f64::from(gained) * child.unicast_etx();
        self.follow_next_hop();
        frames
    }

    /// Notes that the MAC of the next hop acknowledged a packet that went alone. Returns how many
    /// frames forwarding would have sent.
    pub(crate) fn acknowledge(&mut self, packet: u32, packet_time: Duration, now: Instant) -> f64 {
        let Some(child) = &mut self.child else { return 0.0 };
        child.acknowledge(packet, packet_time, now);
        let frames = child.unicast_etx();
        self.follow_next_hop();
        frames
    }

    /// Notes that a node nearer to the destination needs no packets before `needs`.
    fn hear_nearer(&mut self, needs: u32) {
        let Some(child) = &mut self.child else { return };
        child.skip_to(needs);
        self.follow_next_hop();
    }

    /// Needs nothing any more that the next hop does not need, and forgets it.
    fn follow_next_hop(&mut self) {
        if let Some(child) = &self.child {
            self.skip_to(child.state.needs);
            self.forget();
        }
    }

    /// Leaves the channel to the next hop, which was heard to send, if it feeds another relay.
    fn make_way(&mut self, packet_time: Duration, now: Instant) {
        if self.child.as_ref().is_some_and(|child| child.state.feeds) {
            self.pacing.make_way(packet_time, now);
        }
    }

    /// Waits for a random time if far fewer packets arrive than the link lets through.
    pub(crate) fn ease(&mut self, packet_time: Duration, now: Instant, random: &mut impl RngCore) {
        if let Some(child) = &self.child {
            self.pacing.ease(child.share_of_promise(), packet_time, now, random);
        }
    }

    // ---- what is sent

    /// Returns what to send now, if anything, where up to `room` packets may wait at the next hop.
    pub(crate) fn next(&self, room: u8, packet_time: Duration, now: Instant) -> Option<Next> {
        let child = self.child.as_ref().filter(|_| now >= self.pacing.until())?;
        self.lacking().next()?;
        let can_repair = self.lacking().any(|lead| self.is_sent(lead) && child.may_combine(lead));

        // If nothing is heard for long, what it lacks of the packets sent goes again, and asks. If
        // it lacks none, it is full: a packet that it has asks as well as any.
        let question = match child.state.needs.checked_sub(1) {
            _ if !child.is_overdue(now) => None,
            _ if child.is_silent() => Some(Next::Ask),
            _ if can_repair => Some(self.only_lost().map_or(Next::Repair, Next::Plain)),
            Some(last) if self.is_known(last) => Some(Next::Plain(last)),
            _ => self.unsent().next().map(Next::Plain),
        };

        if !child.answers(now) || !child.can_take(room, packet_time, now) {
            return question;
        }

        // Packets that were lost for certain come before new ones, so that the destination does not
        // wait for them. Real-time traffic goes before both: it is handed up out of order.
        let mut uncertain = 0;
        let mut lost = First::default();
        let mut new = First::default();
        for Lacked { packet, is_sent, is_flying } in self.lacked() {
            if is_flying {
                uncertain += 1;
                continue;
            }
            let may_be_urgent = packet < self.urgent_end;
            let first = if is_sent { &mut lost } else { &mut new };
            if first.is_open(may_be_urgent) && self.is_known(packet) {
                first.note(packet, may_be_urgent && self.real_time(packet).is_some());
            }
        }
        if uncertain >= child.ahead(packet_time) {
            new = First::default();
        }
        let urgent = lost.urgent.or(new.urgent);
        if let Some(packet) = urgent.or(lost.any).or(new.any) {
            return Some(Next::Plain(packet));
        }

        // Which of the others arrived is not known, but how many should have: a combination of all
        // makes up for any. Over a cable all of them are still on their way.
        let is_missing = !child.is_far(packet_time) && self.lacks() > MARGIN;
        if can_repair && is_missing { Some(Next::Repair) } else { question }
    }

    /// Returns whether this is a packet of real-time traffic that goes as it is.
    pub(crate) fn is_urgent(&self, next: Next) -> bool {
        matches!(next, Next::Plain(packet) if self.real_time(packet).is_some())
    }

    /// Returns the packet that may be lost, if there is just one and it can go as it is: a
    /// combination of one packet is that packet.
    fn only_lost(&self) -> Option<u32> {
        let mut lost = self.lacking().filter(|lead| self.is_sent(*lead));
        let only = lost.next().filter(|lead| self.is_known(*lead));
        only.filter(|_| lost.next().is_none())
    }

    /// Returns whether a packet was sent as it is, or cannot be.
    fn is_sent(&self, packet: u32) -> bool {
        self.sent.contains(&packet) || !self.is_known(packet)
    }

    /// Returns whether this is a packet that was sent to the next hop as it is.
    pub(crate) fn repeats(&self, next: Next) -> bool {
        matches!(next, Next::Plain(number) if self.sent.contains(&number))
    }

    /// Makes the frame to send: its header and the combination.
    pub(crate) fn fill(
        &mut self,
        next: Next,
        packet_time: Duration,
        carriage: Carriage,
        now: Instant,
        random: &mut impl RngCore,
    ) -> Option<(Header, Coded)> {
        let state = self.child.as_ref()?.state;
        let first = self.lacking().next()?;
        let coded = match next {
            Next::Plain(number) => {
                self.open = self.open.filter(|open| *open != number);
                self.sent.insert(number);
                let symbol = self.window.packet(number)?.to_vec();
                Some(Coded { first: number, coefficients: vec![1], symbol })
            }

            // A combination of all packets that were sent and may be lost.
            Next::Repair => {
                let start = self.lacking().find(|lead| self.is_sent(*lead))?;
                let packets = start..start.saturating_add(WIDTH.into());
                let child = self.child.as_ref()?;
                let may_be = |lead| !state.has(lead) && child.may_combine(lead);
                self.window.combine(packets, |lead| may_be(lead) && self.is_sent(lead), random)
            }
            Next::Ask => Some(Coded { first, coefficients: vec![1], symbol: Vec::new() }),
        };

        // Combinations that span too many packets cannot be sent on.
        let Some(coded) = coded else {
            self.child.as_mut()?.skip_to(first + 1);
            return None;
        };

        let known = self.lacking_count();
        let child = self.child.as_mut()?;
        if next == Next::Repair {
            child.note_combined(coded.first..coded.first + coded.coefficients.len() as u32);
        }
        let repeats = child.is_overdue(now);
        let carries = next != Next::Ask;
        let packet = if let Next::Plain(number) = next { Some(number) } else { None };

        // The last packet for now asks. If more are on their way, one of several is enough, for an
        // answer takes the time of a frame. In a turn the next hop says what it has with the next
        // turn that it gives.
        let missing = child.lacks(known) - child.delivery();
        let is_last = missing <= MARGIN;
        self.more = !is_last || self.upstream.has_more(now);
        let is_uncertain = is_last && child.is_uncertain(missing, packet_time, now);
        let is_unheard = child.node == self.id.destination || carriage.prefers_unicast;
        let asks_meanwhile = is_unheard && child.is_uncertain_meanwhile(packet_time, now);
        let has_turn = child.state.turn.is_some();
        let is_asked = child.is_asked_far(packet_time);
        let asks =
            (is_last && !self.more && !is_asked) || (!has_turn && (is_uncertain || asks_meanwhile));

        // The MAC's acknowledgment answers for a packet that goes alone.
        let is_alone = is_last && !self.more && !repeats;
        let unicast =
            carriage.alone.filter(|way| is_alone && child.prefers_unicast(way.least_chance));
        self.alone = packet.filter(|_| unicast.is_some());
        let is_acknowledged = packet.and(unicast).is_some_and(|way| way.is_acknowledged);
        let poll = (repeats || !carries || asks) && !is_acknowledged;
        self.sent_at = now;
        self.number = self.number.wrapping_add(1);
        let oldest = first.min(coded.first).min(self.needs.max(state.needs));
        let oldest = child.not_given_up(oldest, coded.first);
        let filling = Filling { number: self.number, packet, carries, repeats, asks: poll };
        child.note_filled(&filling, rng::unit(random), packet_time, now);
        let header = Header {
            flow: self.id,
            next_hop: child.node,
            number: self.number,
            state: self.state(now),
            poll,
            oldest,
        };

        Some((header, coded))
    }

    /// Returns the number of the next frame that is not data.
    pub(crate) fn next_number(&mut self) -> u16 {
        self.number = self.number.wrapping_add(1);
        self.number
    }

    // ---- time

    /// Gives up packets that wait for too long, those of real-time traffic after `deadline`.
    /// Returns how many. One behind a packet that is still of use stays with it, for the next hop
    /// is told of the first that comes.
    pub(crate) fn expire(&mut self, deadline: Duration, now: Instant) -> u64 {
        let Some(child) = &self.child else { return 0 };

        // Packets are given up from the front only: up to the first that is still of use.
        let waiting = self.since.range(child.state.needs..);
        let is_late = |lead: &u32, since: &Instant| {
            let lifetime = if self.real_time(*lead).is_some() { deadline } else { LIFETIME };
            now >= *since + lifetime
        };

        let late: Vec<u32> =
            waiting.take_while(|(n, since)| is_late(n, since)).map(|(n, _)| *n).collect();
        if let (Some(last), Some(child)) = (late.last(), &mut self.child) {
            child.skip_to(last + 1);
            self.follow_next_hop();
        }

        late.len() as u64
    }

    /// Lets the node before this one know that there is room again.
    pub(crate) fn note_room(&mut self, room: u8, now: Instant) {
        // No node before the source waits for it.
        if self.is_source() {
            return;
        }
        let waits = self.lacks();
        if waits >= f64::from(room) {
            self.was_full = true;
        } else if self.was_full && waits <= f64::from(room) / 2.0 {
            self.was_full = false;
            self.upstream.report(now);
        }
    }

    /// Returns the times at which it has something to do, where up to `room` packets may wait at
    /// the next hop.
    pub(crate) fn timeouts(
        &self,
        room: u8,
        packet_time: Duration,
    ) -> impl Iterator<Item = Instant> + '_ {
        let child = self.child.iter();
        let next_hop = child.flat_map(move |child| child.timeouts(room, packet_time));
        let gap = self.gap_since.map(|at| at + GAP);
        let own = [gap, self.upstream.due(), Some(self.pacing.until())];
        next_hop.chain(own.into_iter().flatten())
    }
}

//! One flow at one node of its path.

use super::frame::Head;
use super::generation::{Generation, unit};
use super::mixtures::Packet;
use super::rules::Rules;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::coder::symbol_of;
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_engine::tunnel::RelayMode;
use ncmesh_wire::NodeId;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// A flow as one of its nodes sees it.
#[derive(Debug)]
pub(super) struct Flow {
    pub start: FlowInstance,
    /// From whom it comes; none at its source.
    pub previous: Option<NodeId>,
    /// To whom it goes; none at its destination, and where no way is known.
    pub next: Option<NodeId>,
    pub is_destination: bool,
    pub generations: BTreeMap<u32, Generation>,
    /// Generations before it are done with.
    pub base: u32,
    /// At the source.
    pub inlet: Option<Inlet>,
    /// At the destination, the place of the packet that is handed up next.
    place: u8,
    pub heard_at: Instant,
    /// When this node last sent data of it.
    pub turn_at: Instant,
}

/// What only the source of a flow has.
#[derive(Debug, Default)]
pub(super) struct Inlet {
    waiting: VecDeque<Vec<u8>>,
    /// The number of the next generation.
    next: u32,
    symbol: u16,
}

impl Inlet {
    pub(super) fn has_room(&self, rules: &Rules) -> bool {
        self.waiting.len() < rules.queue
    }

    pub(super) fn push(&mut self, packet: Vec<u8>) {
        self.waiting.push_back(packet);
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

impl Flow {
    /// A flow that begins here, with symbols of `symbol` bytes.
    pub(super) fn outgoing(start: FlowInstance, symbol: u16, now: Instant) -> Self {
        let inlet = Some(Inlet { symbol, ..Inlet::default() });
        Self { inlet, ..Self::new(start, 0, false, now) }
    }

    /// A flow heard of.
    pub(super) fn heard(head: &Head, me: NodeId, now: Instant) -> Self {
        Self::new(head.start, head.base(), head.start.destination == me, now)
    }

    fn new(start: FlowInstance, base: u32, is_destination: bool, now: Instant) -> Self {
        Self {
            start,
            previous: None,
            next: None,
            is_destination,
            generations: BTreeMap::new(),
            base,
            inlet: None,
            place: 0,
            heard_at: now,
            turn_at: now,
        }
    }

    // ---- receiving

    /// Takes in what a frame says of the generation it belongs to. If the source gave up those before, hands up what is there of
    /// them, and says how many packets are lost.
    ///
    /// # Errors
    /// [`DropReason::Stale`] where it is done with, [`DropReason::Malformed`] where it was another one.
    pub(super) fn learn(
        &mut self,
        head: &Head,
        rules: &Rules,
        now: Instant,
        up: impl FnMut(Vec<u8>),
    ) -> Result<u64, DropReason> {
        if head.generation < self.base {
            return Err(DropReason::Stale);
        }
        let lost = self.move_on(head.base(), up);
        let decodes = self.is_destination;
        if let Entry::Vacant(vacant) = self.generations.entry(head.generation) {
            let generation = Generation::new(*head, decodes, rules.relay, now);
            vacant.insert(generation.ok_or(DropReason::Malformed)?);
        }
        let same = self.generations.get_mut(&head.generation).is_some_and(|g| g.learn(head));
        if same { Ok(lost) } else { Err(DropReason::Malformed) }
    }

    /// The source goes on without generations before `base`. Says how many packets are lost by that.
    fn move_on(&mut self, base: u32, mut up: impl FnMut(Vec<u8>)) -> u64 {
        let mut lost = 0;
        if base <= self.base {
            return 0;
        }
        let kept = self.generations.split_off(&base);
        let dropped = core::mem::replace(&mut self.generations, kept);
        for (_, mut generation) in dropped.into_iter().filter(|_| self.is_destination) {
            for place in core::mem::take(&mut self.place)..generation.head.count {
                match generation.packet(place) {
                    Some(packet) if packet.is_empty() => {}
                    Some(packet) => up(packet),
                    None => lost += 1,
                }
            }
        }
        (self.base, self.place) = (base, 0);
        lost
    }

    /// At the destination: hands up what is next in order and known.
    pub(super) fn deliver(&mut self, mut up: impl FnMut(Vec<u8>)) {
        if !self.is_destination {
            return;
        }
        while let Some(generation) = self.generations.get_mut(&self.base) {
            while let Some(packet) = generation.packet(self.place) {
                self.place += 1;
                if !packet.is_empty() {
                    up(packet);
                }
            }
            if !generation.is_whole() || self.place < generation.head.count {
                return;
            }
            self.generations.remove(&self.base);
            (self.base, self.place) = (self.base.wrapping_add(1), 0);
        }
    }

    /// At a relay: those before it know that a generation is done. It is forgotten with all before it.
    pub(super) fn release(&mut self, number: u32) {
        if let Some(generation) = self.generations.get_mut(&number) {
            generation.released = true;
        }
        while self.generations.get(&self.base).is_some_and(|generation| generation.released) {
            self.generations.remove(&self.base);
            self.base = self.base.wrapping_add(1);
        }
    }

    // ---- sending

    /// The oldest generation of which there is something to combine, and which the destination lacks.
    pub(super) fn current(&self) -> Option<(u32, &Generation)> {
        let open = |g: &&Generation| g.done_at.is_none() && g.has_something();
        self.generations.iter().find(|(_, g)| open(g)).map(|(number, g)| (*number, g))
    }

    /// The oldest generation with credit.
    pub(super) fn due(&self) -> Option<(u32, &Generation)> {
        self.next?;
        let due = |g: &&Generation| g.done_at.is_none() && g.has_credit();
        self.generations.iter().find(|(_, g)| due(g)).map(|(number, g)| (*number, g))
    }

    /// When the next node is to be asked how a generation stands there.
    pub(super) fn polls_at(&self, generation: &Generation, rules: &Rules) -> Option<Instant> {
        self.next?;
        if generation.done_at.is_some() || generation.has_credit() {
            return None;
        }
        let own = match &self.inlet {
            Some(_) => generation.head.closed,
            None => generation.answers() && generation.is_whole(),
        };
        generation.sending.polls_at(own, rules)
    }

    // ---- the source

    /// Takes packets that wait into generations, as far as the window allows; each is worth `credits`. Says whether there
    /// were any.
    pub(super) fn take_in(&mut self, rules: &Rules, credits: f64, now: Instant) -> bool {
        let mut any = false;
        while self.take_one(rules, credits, now).is_some() {
            any = true;
        }
        self.flush(rules, now);
        self.number();
        any
    }

    fn take_one(&mut self, rules: &Rules, credits: f64, now: Instant) -> Option<()> {
        let inlet = self.inlet.as_mut().filter(|inlet| !inlet.waiting.is_empty())?;
        let open = self.generations.last_key_value().filter(|(_, last)| !last.head.closed);
        let number = match open {
            Some((number, _)) => *number,
            None if self.generations.len() >= usize::from(rules.window) => return None,
            None => {
                let (generation, symbol, room) = (inlet.next, inlet.symbol, rules.room);
                let (start, count, closed) = (self.start, 0, false);
                let head = Head { start, generation, behind: 0, room, count, closed, symbol };
                inlet.next = inlet.next.wrapping_add(1);
                // A source combines what it has, or sends it as it is.
                let relay = if rules.coded { RelayMode::Core } else { RelayMode::NonRecoding };
                let begun = Generation::new(head, !rules.coded, relay, now)?;
                self.generations.insert(generation, begun);
                generation
            }
        };
        let packet = inlet.waiting.pop_front()?;
        let generation = self.generations.get_mut(&number)?;
        let place = generation.head.count;
        let symbol: Packet =
            (unit(rules.room, place), symbol_of(&packet, usize::from(inlet.symbol)));
        generation.absorb(&symbol, now)?;
        if rules.coded {
            generation.sending.earn(credits, now);
        } else {
            generation.enqueue(symbol, now);
        }
        generation.head.count += 1;
        generation.head.closed = generation.head.count >= rules.room;
        Some(())
    }

    /// Closes a generation that has been open for long.
    fn flush(&mut self, rules: &Rules, now: Instant) {
        let due = self.flushes_at(rules).is_some_and(|at| at <= now);
        if let Some(mut last) = self.generations.last_entry().filter(|_| due) {
            last.get_mut().head.closed = true;
        }
    }

    fn flushes_at(&self, rules: &Rules) -> Option<Instant> {
        self.inlet.as_ref()?;
        let last = self.generations.last_key_value()?.1;
        (!last.head.closed).then(|| last.begun_at + rules.flush())
    }

    /// Tells each generation how many there are before it.
    fn number(&mut self) {
        let next = self.inlet.as_ref().map_or(self.base, |inlet| inlet.next);
        let base = self.generations.first_key_value().map_or(next, |(number, _)| *number);
        self.base = base;
        for (number, generation) in &mut self.generations {
            generation.head.behind = number.wrapping_sub(base) as u8;
        }
    }

    /// At the source: gives up generations for which there is no hope. Says how many packets are lost.
    pub(super) fn give_up(&mut self, rules: &Rules, now: Instant) -> u64 {
        if self.inlet.is_none() {
            return 0;
        }
        let mut lost = 0;
        self.generations.retain(|_, generation| {
            let hopeless = generation.sending.is_hopeless(rules, now);
            lost += if hopeless { u64::from(generation.head.count) } else { 0 };
            !hopeless
        });
        lost
    }

    // ---- time

    /// When, later than `after`, the source has something to do.
    pub(super) fn poll_timeout(&self, rules: &Rules, after: Instant) -> Option<Instant> {
        let ends = |g: &Generation| self.inlet.as_ref().map(|_| g.sending.ends_at(rules));
        let ends = self.generations.values().filter_map(ends);
        ends.chain(self.flushes_at(rules)).filter(|at| *at > after).min()
    }

    /// Since when nothing was heard or sent of it.
    pub(super) fn idle(&self, now: Instant) -> Duration {
        now.since(self.heard_at.max(self.turn_at))
    }
}

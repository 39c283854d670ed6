//! What is sent, and when: data alone or combined, counts, answers (CORE, 6.3).

use super::flow::Flow;
use super::frame::{COUNT, Count, Data, FEEDBACK, Feedback, Part, UNKNOWN, Wish, trimmed};
use super::generation::Generation;
use super::{Core, Key};
use ncmesh_engine::time::Instant;
use ncmesh_engine::tunnel::DATA;
use ncmesh_engine::{Context, Filled};
use ncmesh_wire::NodeId;

/// Ties between sums of credits are no reason not to combine.
const EQUAL: f64 = 1e-9;

/// A generation of a flow to be sent.
type Of = (Key, u32);

/// What would be sent now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Choice {
    one: Of,
    other: Option<Of>,
}

/// What another flow is to one that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Partner {
    of: Of,
    has_credit: bool,
    /// Transmissions that it saves to send the two combined.
    saves: f64,
}

impl Core {
    /// What would be sent now: of flows with credit the one whose turn was longest ago, unless it waits for another.
    pub(super) fn choose(&self, now: Instant) -> Option<Choice> {
        let due = self.flows.iter().filter_map(|(key, flow)| {
            let (number, generation) = flow.due()?;
            Some((flow.turn_at, (*key, number), generation))
        });
        let mut due: Vec<_> = due.collect();
        due.sort_by_key(|(turn_at, of, _)| (*turn_at, *of));
        due.into_iter().find_map(|(_, of, generation)| self.turn(of, generation, now))
    }

    /// How a generation would be sent now; `None` while it waits for another flow.
    fn turn(&self, of: Of, generation: &Generation, now: Instant) -> Option<Choice> {
        let alone = Choice { one: of, other: None };
        let held = now < generation.sending.since() + self.rules.hold();
        let mut comes = false;
        let mut best: Option<Partner> = None;
        for (key, unknown) in self.regions.of_flow(&of.0) {
            let Some(flow) = self.flows.get(key) else { continue };
            comes |= self.comes(flow, now);
            let Some(partner) = self.partner((of, generation), (*key, flow), *unknown) else {
                continue;
            };
            let rank = |p: &Partner| (p.has_credit, p.saves);
            if best.is_none_or(|best| rank(&partner) > rank(&best)) {
                best = Some(partner);
            }
        }
        match best {
            Some(partner) if partner.has_credit => {
                Some(Choice { other: Some(partner.of), ..alone })
            }
            _ if comes && held => None,
            Some(partner) => Some(Choice { other: Some(partner.of), ..alone }),
            None => Some(alone),
        }
    }

    /// Whether packets of a flow are likely to come within the time that others are held.
    fn comes(&self, flow: &Flow, now: Instant) -> bool {
        let ends = !flow.generations.is_empty()
            && flow.generations.values().all(|g| g.is_whole() || g.done_at.is_some());
        !ends && now < flow.heard_at + self.rules.hold() * 2
    }

    /// Another flow's generation as a partner, if there is any sense in it.
    fn partner(
        &self,
        ((key, _), one): (Of, &Generation),
        (other_key, other_flow): (Key, &Flow),
        unknown: f64,
    ) -> Option<Partner> {
        other_flow.next?;
        let (other_number, other) = other_flow.current()?;
        if other.sending.is_quiet() || one.sending.is_quiet() {
            return None;
        }
        let back = self.regions.between(&other_key, &key)?;
        let (one_name, other_name) = (one.head.name(), other.head.name());
        let cost = [
            one.sending.combined(&other_name, ratio(unknown, one, other)),
            other.sending.combined(&one_name, ratio(back, other, one)),
        ];
        let apart = one.sending.alone() + other.sending.alone();
        let saves = apart - cost[0].max(cost[1]);
        let has_credit = other.has_credit();
        let of = (other_key, other_number);
        (one.is_verbatim() || saves >= -EQUAL).then_some(Partner { of, has_credit, saves })
    }

    /// The next node to be asked how a generation stands there, if one is to be asked now.
    pub(super) fn poll_due(&self, now: Instant) -> Option<Of> {
        self.flows.iter().find_map(|(key, flow)| {
            let due = |g: &Generation| flow.polls_at(g, &self.rules).is_some_and(|at| at <= now);
            let (number, _) = flow.generations.iter().find(|(_, g)| due(g))?;
            Some((*key, *number))
        })
    }

    // ---- filling

    pub(super) fn fill_feedback(&mut self, cx: &Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        while let Some(owed) = self.owed.next() {
            let (start, number) = owed.name;
            let flow = self.flows.get_mut(&start.key()).filter(|flow| flow.start == start);
            let Some((flow, to)) = flow.and_then(|flow| flow.previous.map(|to| (flow, to))) else {
                continue;
            };
            let is_destination = flow.is_destination;
            let answer = match flow.generations.get_mut(&number) {
                Some(g) if g.done_at.is_none() => g.answer(&self.rules, is_destination),
                _ => Some(done(start, number)),
            };
            let Some(mut feedback) = answer else { continue };
            (feedback.to, feedback.heard) = (to, self.meter.report(to));
            feedback.number = owed.number;
            feedback.write(out);
            let copies = self.copies(to, owed.again, cx);
            self.owed.sends(owed, copies);
            return Some(Filled { kind: FEEDBACK, to: copies.is_none().then_some(to) });
        }
        None
    }

    pub(super) fn fill_count(&mut self, cx: &Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let (key, number) = self.poll_due(cx.now)?;
        let fresh = self.number();
        let flow = self.flows.get(&key)?;
        let next = flow.next?;
        let again = flow.generations.get(&number)?.sending.is_asked_again();
        let copies = self.copies(next, again, cx);
        let generation = self.flows.get_mut(&key)?.generations.get_mut(&number)?;
        let number = generation.sending.polled(copies, fresh, cx.now);
        Count { serial: self.serial, number, again, head: generation.head, next }.write(out);
        Some(Filled { kind: COUNT, to: copies.is_none().then_some(next) })
    }

    /// In how many copies a question or an answer is broadcast for a neighbour; `None` by unicast, as it goes `again` where copies
    /// were in vain, and where the MAC has no contention window.
    fn copies(&self, to: NodeId, again: bool, cx: &Context<'_>) -> Option<u32> {
        let copies = self.meter.copies(cx.topology, cx.me, to);
        copies.filter(|_| !again && self.blind)
    }

    pub(super) fn fill_data(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let Choice { one, other } = self.choose(cx.now)?;
        let fits = |other: &Of| self.fits(one, *other, cx.mtu);
        let other = other.filter(fits);
        if let Some(other) = other {
            self.pair(one, other);
        }
        let (first, mut payload) = self.take(one, other.is_some(), cx)?;
        let second = other.and_then(|other| self.take(other, true, cx));
        if let Some((_, other)) = &second {
            add(&mut payload, other);
        }
        self.serial = self.serial.wrapping_add(1);
        self.coding.sent += 1;
        self.coding.coded += u64::from(second.is_some());
        let second = second.map(|(part, _)| part);
        let payload = trimmed(&payload);
        Data { serial: self.serial, first, second, payload }.write(out);
        Some(Filled { kind: DATA, to: None })
    }

    /// Whether two generations, which others may have begun with other sizes, fit one frame.
    fn fits(&self, one: Of, other: Of, mtu: usize) -> bool {
        let head = |(key, number): Of| Some(self.flows.get(&key)?.generations.get(&number)?.head);
        let (Some(one), Some(other)) = (head(one), head(other)) else { return false };
        let parts = (Data::overhead(one.room) + Data::overhead(other.room)) / 2;
        parts + usize::from(one.symbol.max(other.symbol)) <= mtu
    }

    /// Two generations are combined from now on.
    fn pair(&mut self, one: Of, other: Of) {
        for (one, other) in [(one, other), (other, one)] {
            let unknown = self.regions.between(&one.0, &other.0).unwrap_or(0.0);
            let generation = |(key, number): Of| self.flows.get(&key)?.generations.get(&number);
            let (Some(a), Some(b)) = (generation(one), generation(other)) else { return };
            let (name, ratio) = (b.head.name(), ratio(unknown, a, b));
            let flow = self.flows.get_mut(&one.0);
            if let Some(generation) = flow.and_then(|flow| flow.generations.get_mut(&one.1)) {
                generation.sending.pair(name, ratio);
            }
        }
    }

    /// A packet of a generation to go on the air now, and its credit.
    fn take(
        &mut self,
        (key, number): Of,
        combined: bool,
        cx: &mut Context<'_>,
    ) -> Option<(Part, Vec<u8>)> {
        let flow = self.flows.get_mut(&key)?;
        flow.turn_at = cx.now;
        let next = flow.next?;
        let generation = flow.generations.get_mut(&number)?;
        let (vector, payload) = generation.next_packet(cx.rng)?;
        generation.sending.spend(combined, cx.now);
        Some((Part { head: generation.head, next, vector }, payload))
    }
}

/// For each packet of `one` to be sent, so many more if it is combined with `other`, of which its receiver does not know the share
/// `unknown`.
fn ratio(unknown: f64, one: &Generation, other: &Generation) -> f64 {
    unknown * f64::from(other.head.count) / f64::from(one.head.count.max(1))
}

/// The answer that the destination has the generation.
fn done(start: ncmesh_engine::toolkit::flow::FlowInstance, generation: u32) -> Feedback {
    Feedback {
        start,
        to: start.source,
        generation,
        number: 0,
        wish: Wish::Next,
        alone: 0,
        combined: UNKNOWN,
        progress: u16::MAX,
        wanted: Vec::new(),
        heard: Vec::new(),
    }
}

/// Adds `other`, extended by zeros.
fn add(payload: &mut Vec<u8>, other: &[u8]) {
    if payload.len() < other.len() {
        payload.resize(other.len(), 0);
    }
    payload.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
}

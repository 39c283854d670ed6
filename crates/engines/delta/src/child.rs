//! A next hop: what it has of each layer, what is on its way to it, and whether it answers.

use crate::frame::{Have, State};
use crate::lane::CAPACITY;
use ncmesh_engine::stream::LAYERS;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::average::FadingShare;
use ncmesh_engine::toolkit::hop::report::ReportPolicy;
use ncmesh_engine::toolkit::hop::{self, Covered, Standing, StandingPolicy};
use ncmesh_engine::toolkit::live::Branch;
use std::collections::VecDeque;

/// How a report is sent.
pub(crate) const REPORT: ReportPolicy = ReportPolicy { loss: 0.2, copies: 3, between: 3.0 };
/// Least delivery of a link that is believed.
const LEAST_DELIVERY: f64 = 0.05;
/// Where a next hop stands. One that is silent gets new packets once, and no packet again: what
/// it lacks is not known. What is sent is bounded by its deadline, so none is on trial.
const STANDING: StandingPolicy = StandingPolicy {
    silent: 8.0,
    on_trial: f64::INFINITY,
    unheard: f64::INFINITY,
    in_vain: f64::INFINITY,
    least_chance: 0.0,
    given_up: None,
    forgotten: Some(GONE_AFTER),
    never_heard: Some(GONE_AFTER),
};
/// Silence after which a next hop is gone.
const GONE_AFTER: Duration = Duration::from_millis(2500);
/// Frames on their way to a next hop that are remembered at most.
const MAX_FLIGHT: usize = 512;
/// Packets after which a count of those that came in time has faded to half, and those that count
/// as in time before any was sent.
const SHARE_HALF_LIFE: f64 = 48.0;
const SHARE_PRIOR: f64 = 24.0;
/// Questions after which a count of answers has faded to half, and those that link state's promise
/// counts for.
const ANSWERS_HALF_LIFE: f64 = 32.0;
const ANSWERS_PRIOR: f64 = 8.0;
/// Answers that count as missed at least for each question that is not answered.
const LEAST_MISSED: f64 = 1.0 / 256.0;
/// Share of a layer's packets in time below which the layer is not sent any more.
const LEAST_SHARE: f64 = 0.15;
/// Time for which it is not sent then. Doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(4);
const LONGEST_PAUSE: Duration = Duration::from_secs(64);
/// Time for which what a next hop says of its lag counts.
const LAG_COUNTS: Duration = Duration::from_millis(500);
/// Share of the base in time below which a next hop's lag does not count any more: its path cannot
/// carry the base, and others need not wait for it.
const HOPELESS: f64 = 0.3;

/// A frame on its way to a next hop that lacked what it carries.
#[derive(Clone, Copy, Debug)]
struct Flying {
    number: u16,
    layer: usize,
    /// The packet that it carries as it is; `None` for a combination.
    packet: Option<u32>,
    at: Instant,
    /// Chance that it arrived.
    chance: f64,
}

/// One layer at a next hop.
#[derive(Clone, Debug)]
struct ChildLane {
    have: Have,
    /// The first packet that it wants, while it does not say.
    start: u32,
    /// Packets before it are given up, and counted.
    judged: u32,
    /// Packets that were in time, of those given up here.
    in_time: FadingShare,
    /// Until when the layer is not sent.
    paused_until: Instant,
    pauses: u32,
}

/// A next hop.
#[derive(Debug)]
pub(crate) struct Child {
    standing: Standing,
    pub receivers: u32,
    pub feeds: bool,
    wants: u8,
    lag: u8,
    lanes: [ChildLane; LAYERS],
    /// Share of frames that reach it: what link state promised, and what it says itself.
    promised: f64,
    delivery: f64,
    /// Questions that were answered, of those asked.
    answered: FadingShare,
    flying: VecDeque<Flying>,
    /// Frames that brought it something, by layer.
    pub sent: [u64; LAYERS],
    /// Packets that were given up and that it lacked, and those for which there was no room here.
    pub dropped: [u64; LAYERS],
    pub no_room: [u64; LAYERS],
}

/// Packets of a layer that are given up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenUp {
    /// Number behind the last of them.
    pub before: u32,
    /// Packets before this number are given up because there was no room here.
    pub crowded: u32,
}

/// Deliveries of the link to a next hop, as link state tells them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub there: f64,
    pub back: f64,
}

/// Frames on their way to a next hop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uncertain {
    pub frames: usize,
    /// When the first of them was sent.
    pub since: Instant,
}

impl Branch for Child {
    fn receivers(&self) -> u32 {
        self.receivers
    }
}

impl Child {
    /// Returns a next hop that was just heard. `ends` are the numbers behind the newest packets of
    /// each layer: one that knows of no packet begins there.
    pub(crate) fn new(ends: [u32; LAYERS], link: Link, now: Instant) -> Self {
        // Link state says how often a question and one of the answer's copies should arrive.
        let answered = link.there * (1.0 - libm::pow(1.0 - link.back, f64::from(REPORT.copies)));
        let lane = |start| ChildLane {
            // It begins with the newest packets: those before are neither owed nor counted as lost.
            have: Have { needs: Have::NEW, ..Have::default() },
            start,
            judged: start,
            in_time: FadingShare::starting_at(1.0, SHARE_PRIOR, SHARE_HALF_LIFE),
            paused_until: Instant::default(),
            pauses: 0,
        };

        Self {
            standing: Standing::new(now),
            receivers: 0,
            feeds: false,
            wants: 0,
            lag: 0,
            lanes: ends.map(lane),
            promised: link.there.max(LEAST_DELIVERY),
            delivery: link.there.max(LEAST_DELIVERY),
            answered: FadingShare::starting_at(answered, ANSWERS_PRIOR, ANSWERS_HALF_LIFE),
            flying: VecDeque::new(),
            sent: [0; LAYERS],
            dropped: [0; LAYERS],
            no_room: [0; LAYERS],
        }
    }

    // ---- what it says

    /// Takes what it says of itself. The frames `covered` would have been handled, had they
    /// arrived.
    pub(crate) fn hear(&mut self, state: &State, covered: Covered, now: Instant) {
        // A frame that another one overtook says less than is known.
        if self.standing.is_stale(state.number, now) {
            return;
        }

        // Any frame of it answers the questions that are open.
        if self.standing.asked_at().is_some() {
            self.answered.add(1.0, 1.0);
        }
        self.standing.hear(state.number, 0.0, now);
        for layer in 0..state.layers.len().min(LAYERS) {
            let given_up = GivenUp { before: state.layers[layer].oldest, crowded: 0 };
            self.judge(layer, given_up, now);
        }

        // Its word replaces what was known of it.
        self.feeds = state.feeds;
        self.wants = state.wants;
        self.lag = state.lag;
        for (lane, have) in self.lanes.iter_mut().zip(&state.layers) {
            lane.have = have.clone();
        }

        // A node that heard nothing from here yet tells no share. The prior from link state stays.
        if state.heard > 0 {
            self.delivery = (f64::from(state.heard) / 255.0).max(LEAST_DELIVERY);
        }

        // Frames that are covered did arrive, or were lost.
        self.flying.retain(|flying| !covered.covers(flying.number));
    }

    /// Returns whether it has a packet, or needs it no more.
    pub(crate) fn has(&self, layer: usize, packet: u32) -> bool {
        let lane = &self.lanes[layer];

        // A node that knows no packet yet begins with the newest ones.
        if lane.have.needs == Have::NEW {
            return packet < lane.start;
        }
        match packet.checked_sub(lane.have.needs) {
            None => true,
            Some(0) => false,
            Some(far) => {
                let bit = far as usize - 1;
                lane.have.map.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
            }
        }
    }

    /// Returns the first packet that it lacks, if it says so.
    pub(crate) fn needs(&self, layer: usize) -> Option<u32> {
        Some(self.lanes[layer].have.needs).filter(|needs| *needs != Have::NEW)
    }

    /// Returns whether it wants a layer and is to get it.
    pub(crate) fn takes(&self, layer: usize, now: Instant) -> bool {
        self.wants >> layer & 1 == 1 && now >= self.lanes[layer].paused_until
    }

    /// Returns the age of the oldest packet of the base that a node behind it lacks, in 1/255 of
    /// the deadline.
    pub(crate) fn lag(&self, now: Instant) -> u8 {
        let is_known = now.since(self.standing.heard_at()) < LAG_COUNTS && !self.is_hopeless();
        if is_known { self.lag } else { 0 }
    }

    /// Returns whether its path cannot carry the base.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.lanes[0].in_time.value() < HOPELESS
    }

    fn stands(&self, now: Instant) -> hop::State {
        self.standing.state(1.0, &STANDING, now)
    }

    /// Returns whether questions reach it, or its answers come back.
    pub(crate) fn answers(&self, now: Instant) -> bool {
        self.stands(now) < hop::State::Silent
    }

    /// Returns whether it has been silent for too long.
    pub(crate) fn is_gone(&self, now: Instant) -> bool {
        self.stands(now) == hop::State::Gone
    }

    /// Returns the share of questions that it answers.
    pub(crate) fn answered(&self) -> f64 {
        self.answered.value()
    }

    /// Returns how many answers should have come of those that did not.
    pub(crate) fn missed_answers(&self) -> f64 {
        self.standing.missed()
    }

    /// Returns the share of frames that reach it.
    pub(crate) fn delivery(&self) -> f64 {
        self.delivery
    }

    /// Returns the share of frames that reach it, of what link state promised.
    pub(crate) fn share_of_promise(&self) -> f64 {
        self.delivery / self.promised
    }

    // ---- what is sent to it

    /// Notes a frame of a layer that is about to be sent and brings it something.
    pub(crate) fn note_sent(
        &mut self,
        number: u16,
        layer: usize,
        packet: Option<u32>,
        at: Instant,
    ) {
        // The oldest of too many counts as lost.
        if self.flying.len() >= MAX_FLIGHT {
            self.flying.pop_front();
        }
        self.sent[layer] += 1;
        let chance = self.delivery();
        self.flying.push_back(Flying { number, layer, packet, at, chance });
    }

    /// Returns whether a packet is on its way to it as it is.
    pub(crate) fn is_flying(&self, layer: usize, packet: u32) -> bool {
        self.flying.iter().any(|flying| flying.layer == layer && flying.packet == Some(packet))
    }

    /// Returns how many packets of a layer should reach it with the combinations that are on their
    /// way.
    pub(crate) fn coming_combined(&self, layer: usize) -> f64 {
        let combined = self.flying_of(layer).filter(|flying| flying.packet.is_none());
        combined.map(|flying| flying.chance).sum()
    }

    /// Returns how many packets of a layer should reach it with all that is on its way.
    pub(crate) fn coming(&self, layer: usize) -> f64 {
        self.flying_of(layer).map(|flying| flying.chance).sum()
    }

    fn flying_of(&self, layer: usize) -> impl Iterator<Item = &Flying> {
        self.flying.iter().filter(move |flying| flying.layer == layer)
    }

    /// Returns the frames on their way to it, if there are any.
    pub(crate) fn uncertain(&self) -> Option<Uncertain> {
        let first = self.flying.front()?;
        Some(Uncertain { frames: self.flying.len(), since: first.at })
    }

    // ---- questions

    /// Notes that a frame asks it.
    pub(crate) fn note_asked(&mut self, now: Instant) {
        if self.standing.asked_at().is_some() {
            self.standing.note_missed(self.answered.value().max(LEAST_MISSED), now);
            self.answered.add(1.0, 0.0);

            // Had a frame arrived, an answer might have come: it is less likely now that it did.
            let back = (self.answered.value() / self.delivery()).min(1.0);
            for flying in &mut self.flying {
                let silent = flying.chance * (1.0 - back);
                flying.chance = silent / (1.0 - flying.chance * back).max(f64::EPSILON);
            }
        }

        self.standing.note_asked(now);
    }

    /// Returns when it was asked, if it has not been heard since.
    pub(crate) fn asked_at(&self) -> Option<Instant> {
        self.standing.asked_at()
    }

    // ---- layers

    /// Counts the packets of a layer that are given up, there or here. A layer of which too few
    /// come in time pauses: they cost the base airtime and are of little use.
    pub(crate) fn judge(&mut self, layer: usize, given_up: GivenUp, now: Instant) {
        let oldest = given_up.before;
        // Only what was given up since the last time is judged, and no more than the window can
        // hold.
        let from = self.lanes[layer].judged.max(oldest.saturating_sub(CAPACITY));
        if oldest <= from {
            return;
        }
        self.lanes[layer].judged = oldest;
        // A layer that it does not take costs it nothing, so nothing is counted.
        if !self.takes(layer, now) || self.needs(layer).is_none() {
            return;
        }

        // Count which of the packets that are given up it had in time.
        let has = (from..oldest).filter(|packet| self.has(layer, *packet)).count();
        let all = (oldest - from) as usize;
        self.dropped[layer] += (all - has) as u64;
        let crowded = from..oldest.min(given_up.crowded);
        let lacked = crowded.filter(|packet| !self.has(layer, *packet)).count();
        self.no_room[layer] += lacked as u64;
        let lane = &mut self.lanes[layer];
        lane.in_time.add(all as f64, has as f64);

        // The base never pauses. Other layers do, twice as long each time.
        if layer > 0 && lane.in_time.value() < LEAST_SHARE {
            let factor = 1u32.checked_shl(lane.pauses).unwrap_or(u32::MAX);
            let pause = FIRST_PAUSE.checked_mul(factor).unwrap_or(LONGEST_PAUSE);
            lane.paused_until = now + pause.min(LONGEST_PAUSE);
            lane.pauses += 1;
            lane.in_time = FadingShare::starting_at(1.0, SHARE_PRIOR, SHARE_HALF_LIFE);
        }
    }
}

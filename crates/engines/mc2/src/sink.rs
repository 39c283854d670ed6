//! A flow's destination: packets in their order, and requests for what is lacking (MC2, 3.2, 3.3).

use super::config::Mc2Config;
use super::generation::Generation;
use ncmesh_engine::time::{Duration, Instant};
use std::collections::BTreeMap;

/// A generation of which nothing was heard for as long as of others that then came by themselves is not lost yet: what is asked
/// for comes twice. It is first asked for after so many times the longest such pause of late.
const PAUSES: u32 = 2;
/// The longest time-out, in what is set.
const MOST_PATIENCE: u32 = 32;
/// What is left of the longest pause with each packet that brings news.
const FADING: f64 = 1.0 - 1.0 / 256.0;

/// What only the destination of a flow has.
#[derive(Debug)]
pub(super) struct Outlet {
    /// The packet to hand up next: of which generation, and its place in it.
    generation: u32,
    place: u8,
    /// By generation that lacks something: when there was news of it, requests made.
    wanting: BTreeMap<u32, Want>,
    /// The longest time of late without news of a generation that was not asked for.
    longest: Duration,
    /// The time-out after a request, until a generation comes whole of which nothing was asked for: pauses of those that
    /// were say nothing, and the time-out by which they were was too short (RFC 6298, 5.5 to 5.7).
    backed_off: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Want {
    news_at: Instant,
    requests: u32,
    /// After how long without news the latest request was made.
    asked_after: Duration,
    /// A request is to be sent, after so long without news.
    due: Option<Duration>,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lack {
    pub generation: u32,
    pub serial: u8,
    pub missing: u8,
}

impl Outlet {
    /// From the generation heard first on: what came before it is not known of.
    pub(super) fn new(first: u32) -> Self {
        let (wanting, longest, backed_off) = (BTreeMap::new(), Duration::ZERO, Duration::ZERO);
        Self { generation: first, place: 0, wanting, longest, backed_off }
    }

    /// Generations before it are done with.
    pub(super) fn oldest(&self) -> u32 {
        self.generation
    }

    /// There is news of a generation: all up to it are wanted, and later ones wait for their turn.
    pub(super) fn note(&mut self, generation: u32, now: Instant) {
        let fresh = Want::new(now);
        for wanted in self.generation..generation {
            self.wanting.entry(wanted).or_insert(fresh);
        }
        let want = self.wanting.entry(generation).or_insert(fresh);
        let pause = if want.requests == 0 { now.since(want.news_at) } else { Duration::ZERO };
        self.longest = self.longest.mul_f64(FADING).max(pause);
        for want in self.wanting.range_mut(generation..).map(|(_, want)| want) {
            (want.news_at, want.due) = (now, None);
        }
    }

    /// Hands up what is next in order and known.
    pub(super) fn deliver(
        &mut self,
        generations: &mut BTreeMap<u32, Generation>,
        mut up: impl FnMut(Vec<u8>),
    ) {
        while let Some(generation) = generations.get_mut(&self.generation) {
            while let Some(packet) = generation.packet(self.place) {
                self.place += 1;
                if !packet.is_empty() {
                    up(packet);
                }
            }
            if generation.size == 0 || self.place < generation.size {
                return;
            }
            let asked = self.wanting.get(&self.generation).is_some_and(|want| want.requests > 0);
            if !asked {
                self.backed_off = Duration::ZERO;
            }
            self.advance();
        }
    }

    fn advance(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.place = 0;
        self.wanting = self.wanting.split_off(&self.generation);
    }

    /// Decides what to ask for, and goes on without what was asked for too often or is before `oldest`. Says how many
    /// packets are given up.
    pub(super) fn tidy(
        &mut self,
        generations: &BTreeMap<u32, Generation>,
        oldest: u32,
        config: &Mc2Config,
        now: Instant,
    ) -> u64 {
        let newest = self.wanting.keys().next_back().copied().unwrap_or(0);
        let (next, place) = (self.generation, self.place);
        let patience = self.patience(config);
        for (number, want) in &mut self.wanting {
            let known = if *number == next { usize::from(place) } else { 0 };
            let lacks = generations.get(number).is_none_or(|g| g.lacks(*number < newest, known));
            want.due = want.due.or_else(|| want.overdue(patience, now)).filter(|_| lacks);
        }
        let mut lost = 0;
        while self.wanting.contains_key(&self.generation)
            && (self.generation < oldest || self.is_hopeless(config, now))
        {
            // At least so many: how many there were may not be known.
            let gone = generations.get(&self.generation).map_or(1, |g| g.size.max(g.rank() as u8));
            lost += u64::from(gone.max(1).saturating_sub(self.place));
            self.advance();
        }
        lost
    }

    fn is_hopeless(&self, config: &Mc2Config, now: Instant) -> bool {
        let patience = self.patience(config);
        let want = self.wanting.get(&self.generation);
        let gone = |want: &Want| want.overdue(patience, now).is_some();
        want.is_some_and(|want| want.requests >= config.requests && gone(want))
    }

    /// After how long without news a generation is first asked for.
    fn patience(&self, config: &Mc2Config) -> Patience {
        let set = Duration::from_millis(u64::from(config.request_ms));
        let most = set * MOST_PATIENCE;
        let first = self.backed_off.max(self.longest * PAUSES).clamp(set, most);
        Patience { first, most }
    }

    /// What to ask for now.
    pub(super) fn lack(
        &self,
        generations: &BTreeMap<u32, Generation>,
        config: &Mc2Config,
    ) -> Option<Lack> {
        let (number, want) = self
            .wanting
            .iter()
            .find(|(_, want)| want.due.is_some() && want.requests < config.requests)?;
        let generation = generations.get(number);
        let rank = generation.map_or(0, Generation::rank);
        let missing = size(generation, config).saturating_sub(rank as u8).max(1);
        Some(Lack { generation: *number, serial: want.requests as u8, missing })
    }

    /// It was asked for.
    pub(super) fn asked(&mut self, generation: u32, now: Instant) {
        if let Some(want) = self.wanting.get_mut(&generation) {
            let asked_after = want.due.unwrap_or_default();
            *want = Want { news_at: now, requests: want.requests + 1, asked_after, due: None };
            self.backed_off = self.backed_off.max(asked_after * 2);
        }
    }

    /// When, later than `after`, something may be to be asked for.
    pub(super) fn poll_timeout(&self, config: &Mc2Config, after: Instant) -> Option<Instant> {
        let patience = self.patience(config);
        let times = self.wanting.values().map(|want| want.news_at + want.asks_after(patience));
        times.filter(|at| *at > after).min()
    }
}

/// How many packets a generation has; as many as it can, while that is not known.
fn size(generation: Option<&Generation>, config: &Mc2Config) -> u8 {
    generation
        .map(|generation| generation.size)
        .filter(|size| *size > 0)
        .unwrap_or(config.generation)
}

/// Time-outs.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// Of a generation that was not asked for.
    first: Duration,
    /// The longest.
    most: Duration,
}

impl Want {
    fn new(now: Instant) -> Self {
        Self { news_at: now, requests: 0, asked_after: Duration::ZERO, due: None }
    }

    fn asks_after(&self, patience: Patience) -> Duration {
        if self.requests == 0 { patience.first } else { (self.asked_after * 2).min(patience.most) }
    }

    /// After how long without news it is to be asked for, if it is.
    fn overdue(&self, patience: Patience, now: Instant) -> Option<Duration> {
        let after = self.asks_after(patience);
        (now >= self.news_at + after).then_some(after)
    }
}

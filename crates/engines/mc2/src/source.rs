//! A flow's source: packets wait, and are taken into generations as congestion allows (MC2, 3.4).

use super::config::Mc2Config;
use super::generation::Generation;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::coder::symbol_of;
use std::collections::{BTreeMap, VecDeque};

/// What only the source of a flow has.
#[derive(Debug)]
pub(super) struct Inlet {
    waiting: VecDeque<Vec<u8>>,
    /// The generation being filled, and how many packets it has.
    filling: u32,
    filled: u8,
    /// When a packet last went into it.
    latest: Instant,
    /// No packet goes in before this.
    not_before: Instant,
}

impl Inlet {
    /// With generations numbered from `first` on.
    pub(super) fn new(first: u32, now: Instant) -> Self {
        Self { waiting: VecDeque::new(), filling: first, filled: 0, latest: now, not_before: now }
    }

    pub(super) fn has_room(&self, queue: usize) -> bool {
        self.waiting.len() < queue
    }

    pub(super) fn push(&mut self, packet: Vec<u8>) {
        self.waiting.push_back(packet);
    }

    /// The generation that packets go into.
    pub(super) fn filling(&self) -> u32 {
        self.filling
    }

    /// Takes a packet into the generation at hand if one waits and it is time. Says into which.
    pub(super) fn insert(
        &mut self,
        generations: &mut BTreeMap<u32, Generation>,
        (room, symbol): (u8, usize),
        now: Instant,
    ) -> Option<u32> {
        if now < self.not_before {
            return None;
        }
        let packet = self.waiting.pop_front()?;
        let (into, place) = (self.filling, self.filled);
        if place == 0 {
            generations.insert(into, Generation::new(room, symbol, false)?);
        }
        let generation = generations.get_mut(&into)?;
        let mut unit = vec![0; usize::from(room)];
        unit[usize::from(place)] = 1;
        generation.absorb(&unit, &symbol_of(&packet, symbol))?;
        self.filled += 1;
        self.latest = now;
        if self.filled == room {
            self.close(generations);
        }
        Some(into)
    }

    /// A source with |C| = `credits` takes K/|C| packets in the time of a frame.
    pub(super) fn pace(
        &mut self,
        credits: u32,
        config: &Mc2Config,
        frame_time: Duration,
        now: Instant,
    ) {
        self.not_before = now + frame_time.mul_f64(f64::from(credits.max(1)) / config.k);
    }

    /// Closes a generation that was begun and has had no packet for long.
    pub(super) fn flush(
        &mut self,
        generations: &mut BTreeMap<u32, Generation>,
        config: &Mc2Config,
        now: Instant,
    ) {
        if self.flushes_at(config).is_some_and(|at| at <= now) {
            self.close(generations);
        }
    }

    fn close(&mut self, generations: &mut BTreeMap<u32, Generation>) {
        if let Some(generation) = generations.get_mut(&self.filling) {
            generation.size = self.filled;
        }
        self.filling = self.filling.wrapping_add(1);
        self.filled = 0;
    }

    fn flushes_at(&self, config: &Mc2Config) -> Option<Instant> {
        let pause = Duration::from_millis(u64::from(config.flush_ms));
        (self.filled > 0 && self.waiting.is_empty()).then(|| self.latest + pause)
    }

    /// When, later than `after`, it has something to do.
    pub(super) fn poll_timeout(&self, config: &Mc2Config, after: Instant) -> Option<Instant> {
        let next = (!self.waiting.is_empty()).then_some(self.not_before);
        let times = [next, self.flushes_at(config)];
        times.into_iter().flatten().filter(|at| *at > after).min()
    }
}

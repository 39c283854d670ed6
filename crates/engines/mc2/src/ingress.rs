//! A flow's source: packets wait in a queue, and enter generations at the rate that congestion
//! allows (MC2, 3.4).
//!
//! A source that holds |C| credits may insert K/|C| packets in a unit of time. This rate makes
//! flows proportionally fair: it falls as credits pile up at the source, and they pile up when the
//! paths are full. The unit of time here is the airtime of a frame.

use crate::config::Mc2Config;
use crate::generation::{Generation, GenerationShape};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::coder::symbol_of;
use std::collections::{BTreeMap, VecDeque};

/// State that only a flow's source has.
#[derive(Debug)]
pub(crate) struct Ingress {
    queue: VecDeque<Vec<u8>>,
    /// The generation that packets enter now.
    current: u32,
    /// Packets that it has.
    filled: u8,
    /// When a packet last entered.
    latest: Instant,
    /// No packet enters before this.
    not_before: Instant,
}

impl Ingress {
    /// Returns an empty queue for generations numbered from `first` on.
    pub(crate) fn new(first: u32, now: Instant) -> Self {
        Self { queue: VecDeque::new(), current: first, filled: 0, latest: now, not_before: now }
    }

    /// Returns whether a queue of up to `limit` packets takes another one.
    pub(crate) fn can_push(&self, limit: usize) -> bool {
        self.queue.len() < limit
    }

    /// Appends a packet to the queue.
    pub(crate) fn push(&mut self, packet: Vec<u8>) {
        self.queue.push_back(packet);
    }

    /// Returns the generation that packets enter now.
    pub(crate) fn current(&self) -> u32 {
        self.current
    }

    /// Moves the next packet from the queue into the current generation, if the rate allows it.
    /// Returns the number of the generation.
    pub(crate) fn insert(
        &mut self,
        generations: &mut BTreeMap<u32, Generation>,
        shape: GenerationShape,
        now: Instant,
    ) -> Option<u32> {
        if now < self.not_before {
            return None;
        }
        let packet = self.queue.pop_front()?;
        let number = self.current;

        // The first packet opens its generation.
        if self.filled == 0 {
            generations.insert(number, Generation::new(shape, false)?);
        }
        let generation = generations.get_mut(&number)?;

        // A source packet is the combination with the unit vector.
        let mut unit = vec![0; usize::from(shape.generation_size)];
        unit[usize::from(self.filled)] = 1;
        generation.absorb(&unit, &symbol_of(&packet, shape.symbol_size))?;

        self.filled += 1;
        self.latest = now;
        if self.filled == shape.generation_size {
            self.close(generations);
        }
        Some(number)
    }

    /// Sets when the next packet may enter, with `credits` held: K/|C| packets enter in the time of
    /// a frame.
    pub(crate) fn pace(
        &mut self,
        credits: u32,
        config: &Mc2Config,
        frame_time: Duration,
        now: Instant,
    ) {
        self.not_before = now + frame_time.mul_f64(f64::from(credits.max(1)) / config.k);
    }

    /// Closes a generation that is not full but has had no packet for `flush_ms`. The destination
    /// can decode it then, and needs no request to learn its size.
    pub(crate) fn flush(
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
        if let Some(generation) = generations.get_mut(&self.current) {
            generation.packets = self.filled;
        }
        self.current = self.current.wrapping_add(1);
        self.filled = 0;
    }

    fn flushes_at(&self, config: &Mc2Config) -> Option<Instant> {
        let pause = Duration::from_millis(u64::from(config.flush_ms));
        (self.filled > 0 && self.queue.is_empty()).then(|| self.latest + pause)
    }

    /// Returns the first time later than `after` at which a packet enters or a generation closes.
    pub(crate) fn poll_timeout(&self, config: &Mc2Config, after: Instant) -> Option<Instant> {
        let next_packet = (!self.queue.is_empty()).then_some(self.not_before);
        let times = [next_packet, self.flushes_at(config)];
        times.into_iter().flatten().filter(|at| *at > after).min()
    }
}

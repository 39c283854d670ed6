//! Time that nodes spend on received frames.
//!
//! Between a node's radio and its engines there are a driver, a kernel and a program, which take
//! time. Frames wait in the order in which they arrived, each until the node is done with the one
//! before, and then for a time that is drawn for it.

use super::{Heard, node_id};
use crate::scenario::Processing;
use ncmesh_engine::rng;
use ncmesh_engine::time::Instant;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeSet, VecDeque};

/// Received frames of all nodes that have not reached the engines.
pub(super) struct Inboxes {
    processing: Processing,
    draws: Vec<ChaCha8Rng>,
    /// By node, the frames in their order and when the node is done with each.
    waiting: Vec<VecDeque<(Instant, Heard)>>,
    /// The first frame of each node that has one.
    due: BTreeSet<(Instant, usize)>,
}

impl Inboxes {
    /// Returns the empty inboxes of `nodes`.
    pub(super) fn new(processing: Processing, nodes: usize, seed: u64) -> Self {
        let draws = |node| rng::stream(seed, node_id(node), "simulation", "processing");
        Self {
            processing,
            draws: (0..nodes).map(draws).collect(),
            waiting: vec![VecDeque::new(); nodes],
            due: BTreeSet::new(),
        }
    }

    /// Adds a frame that arrives at `node` now.
    pub(super) fn push(&mut self, now: Instant, node: usize, frame: Heard) {
        let Processing { least, most } = self.processing;
        let time = least + most.saturating_sub(least).mul_f64(rng::unit(&mut self.draws[node]));
        let waiting = &mut self.waiting[node];
        let begin = waiting.back().map_or(now, |(done, _)| (*done).max(now));
        waiting.push_back((begin + time, frame));
        if waiting.len() == 1 {
            self.due.insert((begin + time, node));
        }
    }

    /// Returns when the next frame reaches its engines.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes the next frame that has reached its engines by `now`.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(usize, Heard)> {
        let (at, node) = self.due.first().copied().filter(|(at, _)| *at <= now)?;
        self.due.remove(&(at, node));
        let (_, frame) = self.waiting[node].pop_front()?;
        self.due.extend(self.waiting[node].front().map(|(at, _)| (*at, node)));
        Some((node, frame))
    }

    /// Forgets the frames of a node that is switched off.
    pub(super) fn clear(&mut self, node: usize) {
        self.due.retain(|(_, of)| *of != node);
        self.waiting[node].clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::Port;
    use ncmesh_engine::time::Duration;

    const MS: Duration = Duration::from_millis(1);

    fn heard(bytes: &[u8]) -> Heard {
        Heard { port: Port::FIRST, frame: bytes.into() }
    }

    fn at_ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn inboxes(least: Duration, most: Duration) -> Inboxes {
        Inboxes::new(Processing { least, most }, 2, 1)
    }

    #[test]
    fn frames_wait_for_their_turn() {
        let mut inboxes = inboxes(2 * MS, 2 * MS);
        for (ms, node, byte) in [(0, 0, 1), (1, 0, 2), (1, 1, 3), (9, 0, 4)] {
            inboxes.push(at_ms(ms), node, heard(&[byte]));
        }
        let mut seen = Vec::new();
        while let Some(at) = inboxes.next_at() {
            let (node, frame) = inboxes.pop(at).unwrap();
            seen.push((at.as_nanos() / 1_000_000, node, frame.frame[0]));
        }
        // The second frame begins when the node is done with the first one, the last one at once.
        assert_eq!(seen, [(2, 0, 1), (3, 1, 3), (4, 0, 2), (11, 0, 4)]);
    }

    #[test]
    fn times_are_uniform_and_order_is_kept() {
        let mut inboxes = inboxes(MS, 3 * MS);
        let mut last = at_ms(0);
        let mut sum = 0.0;
        let mut squares = 0.0;
        for n in 0..20_000_u64 {
            // All arrive at once, so the intervals are the times.
            inboxes.push(at_ms(0), 0, heard(&n.to_be_bytes()));
        }
        for n in 0..20_000_u64 {
            let at = inboxes.next_at().unwrap();
            assert_eq!(*inboxes.pop(at).unwrap().1.frame, n.to_be_bytes());
            let ms = at.since(last).as_secs_f64() * 1e3;
            assert!((1.0..=3.0).contains(&ms), "{ms}");
            sum += ms;
            squares += ms * ms;
            last = at;
        }
        // Mean 2 and variance 4 / 12, within four standard deviations of either.
        let mean = sum / 20_000.0;
        let variance = squares / 20_000.0 - mean * mean;
        assert!((mean - 2.0).abs() < 0.017 && (variance - 1.0 / 3.0).abs() < 0.01);
    }

    #[test]
    fn a_node_that_is_switched_off_forgets_its_frames() {
        let mut inboxes = inboxes(MS, MS);
        inboxes.push(at_ms(0), 0, heard(&[1]));
        inboxes.push(at_ms(0), 1, heard(&[2]));
        inboxes.clear(0);
        assert_eq!(inboxes.pop(at_ms(9)).map(|(node, _)| node), Some(1));
        assert_eq!(inboxes.next_at(), None);
    }
}

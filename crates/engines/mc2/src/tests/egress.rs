//! When a destination asks for what a generation lacks.

use crate::config::Mc2Config;
use crate::egress::Egress;
use crate::generation::{Generation, GenerationShape};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::coder::symbol_of;
use std::collections::BTreeMap;

const SHAPE: GenerationShape = GenerationShape { generation_size: 2, symbol_size: 7 };

/// A destination of generations of two packets, which asks after 300 ms.
struct Destination {
    egress: Egress,
    generations: BTreeMap<u32, Generation>,
    config: Mc2Config,
    now: Instant,
}

impl Destination {
    fn new() -> Self {
        let generations = BTreeMap::new();
        let config = Mc2Config::default();
        Self { egress: Egress::new(1), generations, config, now: Instant::default() }
    }

    /// Takes in one packet of a generation at `ms`.
    fn receive(&mut self, generation: u32, index: usize, ms: u64) {
        self.now = at(ms);
        let new = || Generation::new(SHAPE, true).unwrap();
        let known = self.generations.entry(generation).or_insert_with(new);
        known.packets = 2;
        let mut unit = [0, 0];
        unit[index] = 1;
        assert_eq!(known.absorb(&unit, &symbol_of(&[9], 7)), Some(true));
        self.egress.note_innovative(generation, self.now);
        self.egress.deliver(&mut self.generations, |_| {});
    }

    /// Checks the timeouts. Returns how many packets are given up.
    fn check_timeouts(&mut self, now: Instant) -> u64 {
        self.now = now;
        self.egress.check_timeouts(&self.generations, 0, &self.config, self.now)
    }

    /// Sends all requests that are due. Returns their generations.
    fn request(&mut self) -> Vec<u32> {
        let mut requested = Vec::new();
        while let Some(needed) = self.egress.next_request(&self.generations, &self.config) {
            self.egress.note_request(needed.generation, self.now);
            requested.push(needed.generation);
        }
        requested
    }

    /// Waits until it sends requests. Returns the time, ms, and their generations.
    fn wait(&mut self) -> (u64, Vec<u32>) {
        loop {
            let next = self.egress.poll_timeout(&self.config, self.now).expect("it waits");
            assert_eq!(self.check_timeouts(next), 0);
            let requested = self.request();
            if !requested.is_empty() {
                return (next.as_nanos() / 1_000_000, requested);
            }
        }
    }
}

fn at(ms: u64) -> Instant {
    Instant::default() + Duration::from_millis(ms)
}

/// RFC 6298, 5.5 to 5.7: the pause of a generation that was asked for says nothing.
#[test]
fn a_timeout_stays_backed_off_until_a_generation_comes_without_a_request() {
    let mut destination = Destination::new();
    destination.receive(1, 0, 0);
    assert_eq!(destination.wait(), (300, vec![1]));
    destination.receive(1, 1, 310);
    destination.receive(2, 0, 320);
    assert_eq!(destination.wait(), (920, vec![2]), "600 ms");
    assert_eq!(destination.wait(), (2120, vec![2]), "and 1,200 ms");
    destination.receive(2, 1, 2200);
    destination.receive(3, 0, 2210);
    destination.receive(3, 1, 3000);
    // The pause of 790 ms counts twice, slightly decayed; the 2,400 ms no longer count.
    destination.receive(4, 0, 3010);
    let (ms, requested) = destination.wait();
    assert!((4560..=4590).contains(&ms) && requested == [4], "{ms}");
}

#[test]
fn generations_that_time_out_together_are_requested_together_and_back_off_once() {
    let mut destination = Destination::new();
    destination.receive(1, 0, 0);
    destination.receive(2, 0, 0);
    assert_eq!(destination.wait(), (300, vec![1, 2]));
    destination.receive(1, 1, 310);
    destination.receive(2, 1, 310);
    destination.receive(3, 0, 320);
    assert_eq!(destination.wait(), (920, vec![3]));
}

#[test]
fn a_request_that_news_made_needless_is_not_sent() {
    let mut destination = Destination::new();
    destination.receive(1, 0, 0);
    destination.receive(2, 0, 0);
    assert_eq!(destination.check_timeouts(at(300)), 0);
    destination.receive(2, 1, 300);
    assert_eq!(destination.request(), [1]);
}

#[test]
fn timeouts_double_up_to_a_limit_and_then_the_rest_is_given_up() {
    let mut destination = Destination::new();
    destination.receive(1, 0, 0);
    let requests_at = [300, 900, 2100, 4500, 9300, 18_900];
    for ms in requests_at {
        assert_eq!(destination.wait(), (ms, vec![1]));
    }
    assert_eq!(destination.check_timeouts(at(18_900 + 9599)), 0);
    assert_eq!(destination.check_timeouts(at(18_900 + 9600)), 1);
}

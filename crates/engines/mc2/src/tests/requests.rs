//! When a destination asks for what a generation lacks.

use crate::config::Mc2Config;
use crate::generation::Generation;
use crate::sink::Outlet;
use ncmesh_engine::time::{Duration, Instant};
use std::collections::BTreeMap;

/// A destination of generations of two packets, which asks after 300 ms.
struct Destination {
    outlet: Outlet,
    generations: BTreeMap<u32, Generation>,
    config: Mc2Config,
    now: Instant,
}

impl Destination {
    fn new() -> Self {
        let (generations, config) = (BTreeMap::new(), Mc2Config::default());
        Self { outlet: Outlet::new(1), generations, config, now: Instant::default() }
    }

    /// One packet of a generation arrives at so many ms.
    fn hear(&mut self, generation: u32, place: usize, ms: u64) {
        self.now = at(ms);
        let new = || Generation::new(2, 3, true).unwrap();
        let known = self.generations.entry(generation).or_insert_with(new);
        known.size = 2;
        let mut unit = [0, 0];
        unit[place] = 1;
        assert_eq!(known.absorb(&unit, &[0, 1, 9]), Some(true));
        self.outlet.note(generation, self.now);
        self.outlet.deliver(&mut self.generations, |_| {});
    }

    /// Sees what is due. Says how many packets are given up.
    fn tidy(&mut self, now: Instant) -> u64 {
        self.now = now;
        self.outlet.tidy(&self.generations, 0, &self.config, self.now)
    }

    /// Asks for all that is to be asked for now.
    fn ask(&mut self) -> Vec<u32> {
        let mut asked = Vec::new();
        while let Some(lack) = self.outlet.lack(&self.generations, &self.config) {
            self.outlet.asked(lack.generation, self.now);
            asked.push(lack.generation);
        }
        asked
    }

    /// Waits until it asks: at how many ms, and for which generations.
    fn wait(&mut self) -> (u64, Vec<u32>) {
        loop {
            let next = self.outlet.poll_timeout(&self.config, self.now).expect("it waits");
            assert_eq!(self.tidy(next), 0);
            let asked = self.ask();
            if !asked.is_empty() {
                return (next.as_nanos() / 1_000_000, asked);
            }
        }
    }
}

fn at(ms: u64) -> Instant {
    Instant::default() + Duration::from_millis(ms)
}

/// RFC 6298, 5.5 to 5.7: what was asked for says nothing of how long it takes by itself.
#[test]
fn a_time_out_that_was_backed_off_stays_until_a_generation_comes_by_itself() {
    let mut destination = Destination::new();
    destination.hear(1, 0, 0);
    assert_eq!(destination.wait(), (300, vec![1]));
    destination.hear(1, 1, 310);
    destination.hear(2, 0, 320);
    assert_eq!(destination.wait(), (920, vec![2]), "600 ms");
    assert_eq!(destination.wait(), (2120, vec![2]), "and 1,200 ms");
    destination.hear(2, 1, 2200);
    destination.hear(3, 0, 2210);
    destination.hear(3, 1, 3000);
    // The pause of 790 ms counts twice, a little faded, and the 2,400 ms no more.
    destination.hear(4, 0, 3010);
    let (ms, asked) = destination.wait();
    assert!((4560..=4590).contains(&ms) && asked == [4], "{ms}");
}

#[test]
fn generations_that_lack_packets_at_once_are_asked_for_at_once_and_back_off_once() {
    let mut destination = Destination::new();
    destination.hear(1, 0, 0);
    destination.hear(2, 0, 0);
    assert_eq!(destination.wait(), (300, vec![1, 2]));
    destination.hear(1, 1, 310);
    destination.hear(2, 1, 310);
    destination.hear(3, 0, 320);
    assert_eq!(destination.wait(), (920, vec![3]));
}

#[test]
fn what_came_meanwhile_is_not_asked_for() {
    let mut destination = Destination::new();
    destination.hear(1, 0, 0);
    destination.hear(2, 0, 0);
    assert_eq!(destination.tidy(at(300)), 0);
    destination.hear(2, 1, 300);
    assert_eq!(destination.ask(), [1]);
}

#[test]
fn time_outs_double_up_to_a_limit_and_then_the_rest_is_given_up() {
    let mut destination = Destination::new();
    destination.hear(1, 0, 0);
    let asked = [300, 900, 2100, 4500, 9300, 18_900];
    for ms in asked {
        assert_eq!(destination.wait(), (ms, vec![1]));
    }
    assert_eq!(destination.tidy(at(18_900 + 9599)), 0);
    assert_eq!(destination.tidy(at(18_900 + 9600)), 1);
}

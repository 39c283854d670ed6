//! When the packets of a layer came: their delays, their order, and the seconds that are whole.
//!
//! Each packet has a number and its age, so no clock of another node is read. A packet belongs to
//! the second of the stream in which its source took it. A second is judged when no packet of it
//! can come in time any more.

use crate::stream::Deadline;
use crate::time::{Duration, Instant};
use crate::toolkit::histogram::DurationHistogram;
use std::collections::BTreeMap;

/// Length of the spans that are whole or not.
const SECOND: Duration = Duration::from_secs(1);
/// Time after its end at which a second is judged: no packet comes later than its deadline.
const JUDGED_AFTER: Duration = Duration::from_millis(*Deadline::RANGE.end() as u64);
/// Most seconds that wait to be judged. Packets further ahead are of a source that lies.
const MOST_SECONDS: usize = 16;

/// A packet that came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Layer, 0 is the base.
    pub layer: usize,
    /// Its length, bytes.
    pub bytes: usize,
    /// Number of the packet in its layer.
    pub number: u32,
    /// Time since its source took it.
    pub age: Duration,
}

/// Delays and order of a layer's packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    newest: Option<u32>,
    pub out_of_order: u64,
    pub delays: DurationHistogram,
}

impl Order {
    pub(super) fn note(&mut self, arrival: &Arrival) {
        self.out_of_order += u64::from(self.newest.is_some_and(|newest| arrival.number < newest));
        self.newest = self.newest.max(Some(arrival.number));
        self.delays.add(arrival.age);
    }
}

/// Packets of the base that the source took within one second.
#[derive(Clone, Copy, Debug)]
struct Second {
    lowest: u32,
    highest: u32,
    packets: u32,
}

/// Seconds of the base.
#[derive(Clone, Debug, Default)]
pub(super) struct Seconds {
    /// Seconds that are not judged yet, by their number.
    waiting: BTreeMap<u64, Second>,
    /// Latest second that was judged.
    judged: Option<Judged>,
    /// Seconds of which every packet came.
    pub whole: u64,
    /// All seconds that were judged.
    pub all: u64,
}

/// A second that was judged.
#[derive(Clone, Copy, Debug)]
struct Judged {
    index: u64,
    /// Its highest packet.
    highest: u32,
}

impl Seconds {
    /// Notes a packet of the base.
    pub(super) fn note(&mut self, arrival: &Arrival, now: Instant) {
        let number = arrival.number;
        let index = self.index_of(arrival, now);
        // A judged second is closed. A packet that is later than that counts as missing.
        if self.judged.is_some_and(|judged| index <= judged.index || number <= judged.highest) {
            return;
        }
        let first = Second { lowest: number, highest: number, packets: 0 };

        // It belongs to the second in which its source sent it. A few seconds stay open for late
        // packets.
        let second = self.waiting.entry(index).or_insert(first);
        second.lowest = second.lowest.min(number);
        second.highest = second.highest.max(number);
        second.packets += 1;
        while self.waiting.len() > MOST_SECONDS {
            self.judge_first();
        }
    }

    /// Returns the second of a packet by its age. Ages are a little wrong, so a packet whose number
    /// lies within another second belongs there.
    fn index_of(&self, arrival: &Arrival, now: Instant) -> u64 {
        let taken = now.since(Instant::default()).saturating_sub(arrival.age);
        let index = (taken.as_nanos() / SECOND.as_nanos()) as u64;

        let earlier = self.waiting.range(..index);
        let earlier = earlier.into_iter().find(|(_, second)| second.highest > arrival.number);
        let later = self.waiting.range(index + 1..).rev();
        let later = later.into_iter().find(|(_, second)| second.lowest < arrival.number);
        earlier.or(later).map_or(index, |(index, _)| *index)
    }

    /// Judges the seconds that are over.
    pub(super) fn judge(&mut self, now: Instant) {
        let now = now.since(Instant::default());
        while let Some((index, _)) = self.waiting.first_key_value()
            && SECOND.as_secs_f64() * (*index + 1) as f64 + JUDGED_AFTER.as_secs_f64()
                <= now.as_secs_f64()
        {
            self.judge_first();
        }
    }

    fn judge_first(&mut self) {
        let Some((index, second)) = self.waiting.pop_first() else { return };

        // The first second began before this node joined.
        if let Some(before) = self.judged {
            // Packets that are missing between two seconds count against the later one. Nothing
            // came of the seconds between them: the source was silent, or all was lost.
            let is_gap = second.lowest > before.highest.saturating_add(1);
            let has_all = second.highest - second.lowest < second.packets;
            self.whole += u64::from(has_all && !is_gap);
            self.all += if is_gap { index - before.index } else { 1 };
        }

        self.judged = Some(Judged { index, highest: second.highest });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets these packets of a source that takes one each 100 ms come, in this order, each with an
    /// age of 50 ms. Returns the seconds that are whole, and all.
    fn seconds(numbers: impl IntoIterator<Item = u32>) -> [u64; 2] {
        let mut seconds = Seconds::default();
        let mut last = Instant::default();
        for number in numbers {
            let age = Duration::from_millis(50);
            let now = Instant::default() + Duration::from_millis(10_050 + 100 * u64::from(number));
            seconds.note(&Arrival { layer: 0, bytes: 100, number, age }, now);
            last = last.max(now);
        }
        seconds.judge(last);
        assert!(seconds.all <= 4, "the latest may become whole");
        seconds.judge(last + Duration::from_secs(10));
        [seconds.whole, seconds.all]
    }

    #[test]
    fn seconds_are_whole_if_every_packet_came() {
        assert_eq!(seconds(0..50), [4, 4], "the first may have begun earlier");
        assert_eq!(seconds((0..50).filter(|n| *n != 25)), [3, 4]);
        // At the edge of two seconds.
        assert_eq!(seconds((0..50).filter(|n| *n != 30)), [3, 4]);
        assert_eq!(seconds((0..50).filter(|n| *n != 29)), [3, 4]);
        // Two seconds that are lost as a whole.
        assert_eq!(seconds((0..20).chain(40..50)), [1, 4]);
    }

    #[test]
    fn a_silent_source_breaks_no_second() {
        let mut seconds = Seconds::default();
        for (number, ms) in [(0, 500), (1, 1_500), (2, 7_500), (3, 8_500)] {
            let now = Instant::default() + Duration::from_millis(ms);
            let age = Duration::from_millis(5);
            seconds.note(&Arrival { layer: 0, bytes: 100, number, age }, now);
        }
        seconds.judge(Instant::default() + Duration::from_secs(20));
        assert_eq!([seconds.whole, seconds.all], [3, 3]);
    }

    #[test]
    fn packets_out_of_order_or_with_ages_that_are_a_little_wrong_break_no_second() {
        let mut seconds = Seconds::default();
        let mut order = Order::default();
        for number in 0..60u32 {
            // Pairs come in the wrong order, and each packet of a pair seems as old as the other.
            let number = number ^ 1;
            let now = Instant::default() + Duration::from_millis(5_000 + 77 * u64::from(number));
            let age = Duration::from_millis(50 + 90 * u64::from(number % 2));
            let arrival = Arrival { layer: 0, bytes: 100, number, age };
            seconds.note(&arrival, now);
            order.note(&arrival);
        }
        seconds.judge(Instant::default() + Duration::from_secs(60));
        assert_eq!(seconds.whole, seconds.all);
        assert!(seconds.all >= 3, "{}", seconds.all);
        assert_eq!(order.out_of_order, 30);
        let median = order.delays.quantile(0.5).unwrap().as_secs_f64();
        assert!((0.045..0.055).contains(&median), "{median}");
    }

    #[test]
    fn a_source_that_lies_keeps_no_more_than_some_seconds() {
        let mut seconds = Seconds::default();
        for number in 0..1000 {
            let age = Duration::from_secs(u64::from(number * 7919 % 1000));
            let now = Instant::default() + Duration::from_secs(2000);
            seconds.note(&Arrival { layer: 0, bytes: 1, number, age }, now);
            assert!(seconds.waiting.len() <= MOST_SECONDS);
        }
    }
}

//! This node's part in a stream as a receiver: what it received, and whether the base is whole.
//!
//! Each announcement says how many packets of each layer have entered the stream. What came between
//! two of them, beside what entered, tells what is missing. The latest few spans are judged
//! together. Only the base is judged: enhancement layers may be missing where links are full.

use super::timeliness::{Arrival, Order, Seconds};
use crate::stream::{
    LAYERS, Receiving, StreamError, StreamProblem, Timeliness, UtilityConfig, UtilityError,
};
use crate::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::VecDeque;

/// Spans that are judged together.
const SPANS: usize = 3;
/// Shortest span. Announcements that follow each other faster say nothing of rates.
const MIN_SPAN: Duration = Duration::from_secs(2);
/// Most packets of a layer that are known to have overtaken the next announcement.
const MAX_AHEAD: usize = 1 << 16;
/// Share of a rate from which on another counts as no less.
const NEARLY: f64 = 0.95;

/// Utilities that receivers may name.
const UTILITIES: [&str; 5] = ["linear", "log", "alpha_fair", "max_min", "table"];

/// Hears how much of a stream its source has sent.
pub trait Listener {
    /// Compares what was received with the packets that have entered the stream, by layer.
    fn handle_announcement(&mut self, sent: &[u32], now: Instant);
}

/// Returns the minimum rate of a utility, bit/s. A scheme that goes by layers and deadlines takes
/// nothing else from it.
///
/// # Errors
/// [`StreamError`] if there is no such utility, or its minimum is not a rate.
pub fn minimum_bps(utility: &UtilityConfig) -> Result<f64, StreamError> {
    if !UTILITIES.contains(&utility.name.as_str()) {
        return Err(UtilityError::Unknown(utility.name.clone()).into());
    }
    let minimum = utility.minimum.unwrap_or(0.0);
    if minimum.is_finite() && minimum >= 0.0 {
        return Ok(1e6 * minimum);
    }
    Err(StreamError::Utility(UtilityError::Setting {
        name: utility.name.clone(),
        setting: "minimum",
        value: minimum,
        allowed: "0 or more",
    }))
}

/// Counts what is missing of a stream. Packets are numbered as they enter it, so of each that came
/// it is known whether an announcement has counted it.
#[derive(Clone, Debug, Default)]
pub struct Shortfall {
    /// Packets of each layer that had entered at the first announcement and at the latest, modulo
    /// 2^32.
    counted: Option<Counted>,
    /// Packets that came, of those that entered between these two.
    came: [u64; LAYERS],
    /// Numbers of packets that no announcement has counted yet: they overtook it.
    ahead: [VecDeque<u32>; LAYERS],
}

/// Packets of each layer that had entered the stream.
#[derive(Clone, Copy, Debug)]
struct Counted {
    first: [u32; LAYERS],
    latest: [u32; LAYERS],
}

/// Returns whether a packet entered before as many had entered, modulo 2^32.
fn is_before(number: u32, entered: u32) -> bool {
    entered.wrapping_sub(number).wrapping_sub(1) < 1 << 31
}

impl Shortfall {
    /// Notes a packet that came. Whatever lies far ahead is of a source that lies: of too many, the
    /// oldest is forgotten.
    pub fn receive(&mut self, layer: usize, number: u32, counters: &mut Receiving) {
        match self.counted {
            Some(counted) if is_before(number, counted.latest[layer]) => {
                self.came[layer] += u64::from(!is_before(number, counted.first[layer]));
                self.tell(layer, counters);
            }
            _ => {
                let ahead = &mut self.ahead[layer];
                if ahead.len() >= MAX_AHEAD {
                    ahead.pop_front();
                }
                ahead.push_back(number);
            }
        }
    }

    /// Takes the packets of each layer that have entered the stream.
    pub fn handle_announcement(&mut self, sent: &[u32], counters: &mut Receiving) {
        // A frame names as many layers as there are. The others have sent nothing.
        let mut latest = [0; LAYERS];
        latest.iter_mut().zip(sent).for_each(|(padded, sent)| *padded = *sent);

        let before = self.counted.unwrap_or(Counted { first: latest, latest });
        for (layer, entered) in latest.into_iter().enumerate() {
            // Counts wrap at 32 bits, and their difference is right across the wrap.
            let more = entered.wrapping_sub(before.latest[layer]);
            counters.offered[layer] += u64::from(more);

            // A packet from before the first announcement was never counted as offered.
            let came = &mut self.came[layer];
            self.ahead[layer].retain(|number| {
                let is_counted = is_before(*number, entered);
                *came += u64::from(is_counted && !is_before(*number, before.first[layer]));
                !is_counted
            });
            self.tell(layer, counters);
        }
        self.counted = Some(Counted { first: before.first, latest });
    }

    fn tell(&self, layer: usize, counters: &mut Receiving) {
        counters.missing[layer] = counters.offered[layer].saturating_sub(self.came[layer]);
    }
}

/// A receiver at this node.
#[derive(Debug, Default)]
pub struct Receiver {
    counters: Receiving,
    shortfall: Shortfall,
    latest: Option<Snapshot>,
    spans: VecDeque<Span>,
    order: [Order; LAYERS],
    base: Seconds,
}

/// Counts at an announcement.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    at: Instant,
    sent: [u32; LAYERS],
    packets: [u64; LAYERS],
    bytes: u64,
}

/// Time from one announcement to the next.
#[derive(Clone, Copy, Debug)]
struct Span {
    seconds: f64,
    /// Bytes received, and offered by the mean length of those that were received.
    received: f64,
    offered: f64,
    /// Packets of the base.
    base_received: f64,
    base_offered: f64,
}

/// Length that is assumed of a packet until one has come, bytes.
const INITIAL_LENGTH: f64 = 1000.0;

impl Listener for Receiver {
    fn handle_announcement(&mut self, sent: &[u32], now: Instant) {
        self.shortfall.handle_announcement(sent, &mut self.counters);
        self.base.judge(now);
        let mut padded = [0; LAYERS];
        padded.iter_mut().zip(sent).for_each(|(padded, sent)| *padded = *sent);

        let Receiving { packets, bytes, .. } = &self.counters;
        let current =
            Snapshot { at: now, sent: padded, packets: *packets, bytes: bytes.iter().sum() };

        let Some(before) = self.latest else {
            self.latest = Some(current);
            return;
        };

        // Announcements in quick succession make spans too short for a rate.
        if now.since(before.at) < MIN_SPAN {
            return;
        }
        self.latest = Some(current);

        let offered =
            |layer: usize| f64::from(current.sent[layer].wrapping_sub(before.sent[layer]));
        let all: u64 = current.packets.iter().sum();

        // The source counts packets; their mean length here makes bytes of them.
        let length = if all > 0 { current.bytes as f64 / all as f64 } else { INITIAL_LENGTH };

        // The difference to the last announcement is one span.
        self.spans.push_back(Span {
            seconds: now.since(before.at).as_secs_f64(),
            received: (current.bytes - before.bytes) as f64,
            offered: (0..LAYERS).map(offered).sum::<f64>() * length,
            base_received: (current.packets[0] - before.packets[0]) as f64,
            base_offered: offered(0),
        });

        if self.spans.len() > SPANS {
            self.spans.pop_front();
        }
    }
}

impl Receiver {
    /// Returns a receiver that asks for `minimum_bps` at least.
    #[must_use]
    pub fn new(minimum_bps: f64) -> Self {
        let counters = Receiving { minimum_bps, ..Receiving::default() };
        Self { counters, ..Self::default() }
    }

    /// Counts a packet.
    pub fn receive(&mut self, arrival: &Arrival, now: Instant) {
        let Arrival { layer, bytes, number, .. } = *arrival;
        self.shortfall.receive(layer, number, &mut self.counters);
        self.counters.packets[layer] += 1;
        self.counters.bytes[layer] += bytes as u64;
        self.order[layer].note(arrival);
        if layer == 0 {
            self.base.note(arrival, now);
        }
    }

    /// Returns when packets came.
    fn timeliness(&self) -> Timeliness {
        let delays = |share: f64| {
            self.order
                .each_ref()
                .map(|order| order.delays.quantile(share).map_or(0.0, |delay| delay.as_secs_f64()))
        };

        Timeliness {
            out_of_order: self.order.each_ref().map(|order| order.out_of_order),
            delay_p50_s: delays(0.5),
            delay_p99_s: delays(0.99),
            whole_base_s: self.base.whole,
            base_s: self.base.all,
        }
    }

    fn sum(&self, of: fn(&Span) -> f64) -> f64 {
        self.spans.iter().map(of).sum()
    }

    /// Returns its state. Without a `parent` there is no path to the source.
    #[must_use]
    pub fn status(&self, parent: Option<NodeId>) -> Receiving {
        let seconds = self.sum(|span| span.seconds);
        let rate = |of| 8.0 * self.sum(of) / seconds;
        let rates =
            (seconds > 0.0).then(|| (rate(|span| span.received), rate(|span| span.offered)));
        let problem = if parent.is_none() { Some(StreamProblem::NoPath) } else { self.problem() };
        let timeliness = Some(self.timeliness());
        Receiving { rates_bps: rates, problem, timeliness, ..self.counters.clone() }
    }

    /// Returns what has kept the receiver from the base or its minimum rate over all spans.
    fn problem(&self) -> Option<StreamProblem> {
        if self.spans.len() < SPANS {
            return None;
        }

        let seconds = self.sum(|span| span.seconds);
        let rate_bps = 8.0 * self.sum(|span| span.received) / seconds;
        let offered_bps = 8.0 * self.sum(|span| span.offered) / seconds;
        let minimum_bps = self.counters.minimum_bps;
        let base = self.sum(|span| span.base_received);
        let base_offered = self.sum(|span| span.base_offered);

        // The worst problem first. A source that sends less is no fault of the path.
        if rate_bps == 0.0 && offered_bps > 0.0 {
            Some(StreamProblem::NothingArrives { offered_bps })
        } else if base < NEARLY * base_offered {
            Some(StreamProblem::BaseIncomplete { share: base / base_offered })
        } else if rate_bps >= NEARLY * minimum_bps || offered_bps == 0.0 {
            None
        } else if rate_bps >= NEARLY * offered_bps {
            Some(StreamProblem::SourceSendsLess { offered_bps, minimum_bps })
        } else {
            Some(StreamProblem::BelowMinimum { rate_bps, minimum_bps })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what was offered and what is missing, of the first two layers.
    fn counts(receiver: &Receiver) -> [[u64; 2]; 2] {
        let status = receiver.status(Some(NodeId(1)));
        [status.offered, status.missing].map(|layers| [layers[0], layers[1]])
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn receive(receiver: &mut Receiver, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            let age = Duration::from_millis(20);
            receiver.receive(&Arrival { layer: 0, bytes: 100, number, age }, at(1));
        }
    }

    #[test]
    fn what_is_missing_is_counted_from_the_first_announcement_on() {
        let mut receiver = Receiver::new(0.0);
        receive(&mut receiver, 0..3);
        receiver.handle_announcement(&[3, 7], at(1));
        assert_eq!(counts(&receiver), [[0, 0], [0, 0]]);
        receive(&mut receiver, 3..11);
        receiver.handle_announcement(&[13, 17], at(6));
        assert_eq!(counts(&receiver), [[10, 10], [2, 10]]);
        receive(&mut receiver, 11..13);
        assert_eq!(counts(&receiver), [[10, 10], [0, 10]], "they were late");
        receiver.handle_announcement(&[13, 17], at(11));
        assert_eq!(counts(&receiver), [[10, 10], [0, 10]]);

        let timeliness = receiver.status(None).timeliness.unwrap();
        assert!((0.018..0.022).contains(&timeliness.delay_p99_s[0]), "{timeliness:?}");
        assert_eq!(timeliness.delay_p99_s[1], 0.0, "nothing came");
        assert_eq!(timeliness.out_of_order, [0; LAYERS]);
    }

    #[test]
    fn packets_that_overtake_an_announcement_are_not_missing() {
        // The counts wrap meanwhile.
        let start = u32::MAX - 4;
        let number = |i: u32| start.wrapping_add(i);
        let mut receiver = Receiver::new(0.0);
        receive(&mut receiver, (0..30).map(number));
        receiver.handle_announcement(&[number(10)], at(1));
        assert_eq!(counts(&receiver), [[0, 0], [0, 0]]);

        // Twenty more are counted; all of them came, and of ten further ones one did not.
        receiver.handle_announcement(&[number(30)], at(6));
        assert_eq!(counts(&receiver), [[20, 0], [0, 0]]);
        receive(&mut receiver, (30..39).map(number));
        receiver.handle_announcement(&[number(40)], at(11));
        assert_eq!(counts(&receiver), [[30, 0], [1, 0]]);

        // One from before the first announcement was not counted, so it makes up for none.
        receive(&mut receiver, [number(9)]);
        assert_eq!(counts(&receiver), [[30, 0], [1, 0]]);
    }
}

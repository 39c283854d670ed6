//! Compares the rate that a receiver gets with the rate that its source sends.
//!
//! Each announcement says how many packets have entered the stream. The difference between two
//! announcements gives the rate offered, and the bytes received in between give the rate received.
//! The latest few such spans are compared together, because queues need that long to settle.

use ncmesh_engine::stream::{LAYERS, StreamProblem};
use ncmesh_engine::time::{Duration, Instant};
use std::collections::VecDeque;

/// Spans that are compared together.
const SPANS: usize = 3;
/// Shortest span. Announcements that follow each other faster say nothing of rates.
const MIN_SPAN: Duration = Duration::from_secs(2);
/// Share of a rate from which on another counts as no less.
const NEARLY: f64 = 0.95;

/// Compares the rates received and offered.
#[derive(Debug, Default)]
pub(crate) struct RateMonitor {
    /// Rate that the receiver asks for at least, bit/s; 0 if none.
    pub minimum_bps: f64,
    latest: Option<Snapshot>,
    spans: VecDeque<Span>,
}

/// Rates over the latest spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rates {
    pub received_bps: f64,
    pub offered_bps: f64,
}

/// State at an announcement.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    at: Instant,
    /// Packets of each layer that had entered the stream, modulo 2^32.
    sent: [u32; LAYERS],
    /// Bytes received.
    received: u64,
}

/// Time from one announcement to the next.
#[derive(Clone, Copy, Debug)]
struct Span {
    seconds: f64,
    /// Bytes.
    received: f64,
    /// Bytes, by the mean length of the packets received.
    offered: f64,
}

impl RateMonitor {
    /// Returns a monitor of a receiver that asks for `minimum_bps` at least.
    pub(crate) fn new(minimum_bps: f64) -> Self {
        Self { minimum_bps, ..Self::default() }
    }

    /// Handles an announcement that `sent` packets of each layer have entered. `received` bytes
    /// have come so far, in packets of `mean_length` bytes.
    pub(crate) fn handle_announcement(
        &mut self,
        now: Instant,
        sent: &[u32],
        received: u64,
        mean_length: f64,
    ) {
        let mut padded = [0; LAYERS];
        padded.iter_mut().zip(sent).for_each(|(padded, sent)| *padded = *sent);
        let current = Snapshot { at: now, sent: padded, received };

        // The first announcement only begins a span.
        let Some(before) = self.latest else {
            self.latest = Some(current);
            return;
        };

        // A span with few packets gives a poor rate. It goes on until a later announcement.
        if now.since(before.at) < MIN_SPAN {
            return;
        }
        self.latest = Some(current);

        // The announcement counts packets. The mean length of received packets turns them into
        // bytes. Counts are modulo 2^32, so their difference wraps as well.
        let counts = current.sent.iter().zip(before.sent);
        let packets = counts.map(|(now, before)| now.wrapping_sub(before));
        self.spans.push_back(Span {
            seconds: now.since(before.at).as_secs_f64(),
            received: received.saturating_sub(before.received) as f64,
            offered: packets.map(f64::from).sum::<f64>() * mean_length,
        });

        if self.spans.len() > SPANS {
            self.spans.pop_front();
        }
    }

    /// Returns the rates over the latest spans; `None` before two announcements have come.
    pub(crate) fn rates(&self) -> Option<Rates> {
        let seconds: f64 = self.spans.iter().map(|span| span.seconds).sum();
        let rate = |of: fn(&Span) -> f64| 8.0 * self.spans.iter().map(of).sum::<f64>() / seconds;
        let rates = || Rates {
            received_bps: rate(|span| span.received),
            offered_bps: rate(|span| span.offered),
        };
        (seconds > 0.0).then(rates)
    }

    /// Returns what has kept the receiver from its minimum rate over all spans, if anything has.
    pub(crate) fn problem(&self) -> Option<StreamProblem> {
        // Before all spans are there, a low rate may only be the beginning of the stream.
        let rates = self.rates().filter(|_| self.spans.len() == SPANS)?;
        let Rates { received_bps: rate_bps, offered_bps } = rates;
        let minimum_bps = self.minimum_bps;

        // If nearly everything that is offered arrives, the source falls short of the minimum.
        // Otherwise the network does.
        if rate_bps == 0.0 && offered_bps > 0.0 {
            Some(StreamProblem::NothingArrives { offered_bps })
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

    /// Returns a monitor after some announcements, one each 5 s, of a source that sends 100 packets
    /// of 1,000 bytes a second. The share `share` of them arrives.
    fn after(announcements: u64, minimum_bps: f64, share: f64) -> RateMonitor {
        let mut monitor = RateMonitor::new(minimum_bps);
        for n in 0..announcements {
            let sent = [u32::MAX.wrapping_add(n as u32 * 100), n as u32 * 400];
            let received = (n as f64 * 500_000.0 * share) as u64;
            let at = Instant::from_nanos(n * 5_000_000_000);
            monitor.handle_announcement(at, &sent, received, 1000.0);
        }
        monitor
    }

    #[test]
    fn troubles_are_reported_when_they_last_and_told_apart() {
        assert_eq!(after(1, 1e6, 0.5).rates(), None);
        let rates = Rates { received_bps: 400_000.0, offered_bps: 800_000.0 };
        assert_eq!(after(2, 1e6, 0.5).rates(), Some(rates));
        assert_eq!(after(3, 1e6, 0.5).problem(), None);
        let below = StreamProblem::BelowMinimum { rate_bps: 400_000.0, minimum_bps: 5e5 };
        assert_eq!(after(4, 5e5, 0.5).problem(), Some(below));
        let less = StreamProblem::SourceSendsLess { offered_bps: 800_000.0, minimum_bps: 1e6 };
        assert_eq!(after(9, 1e6, 0.97).problem(), Some(less));
        let nothing = StreamProblem::NothingArrives { offered_bps: 800_000.0 };
        assert_eq!(after(9, 0.0, 0.0).problem(), Some(nothing));
        assert_eq!((after(9, 4e5, 0.5).problem(), after(9, 0.0, 0.1).problem()), (None, None));
    }

    #[test]
    fn announcements_that_come_at_once_count_as_one() {
        let mut monitor = after(4, 1e6, 0.5);
        let rates = monitor.rates();
        let at = Instant::from_nanos(15_000_000_001);
        monitor.handle_announcement(at, &[u32::MAX, 7], 9, 1000.0);
        assert_eq!(monitor.rates(), rates);
    }
}

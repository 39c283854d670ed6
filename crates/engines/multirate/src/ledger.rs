//! What a receiver gets beside what its source sends, from one announcement to the next; and what is wrong with that.

use ncmesh_engine::stream::LAYERS;
use ncmesh_engine::stream::Trouble;
use ncmesh_engine::time::{Duration, Instant};
use std::collections::VecDeque;

/// Announcements between which rates are compared: queues take as long to find their length.
const SPANS: usize = 3;
/// Announcements that follow upon each other faster say nothing of rates.
const SHORTEST: Duration = Duration::from_secs(2);
/// A rate so near another is no less.
const NEARLY: f64 = 0.95;

/// A receiver's account.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Asked for at least, bit/s; 0 if nothing is.
    pub minimum_bps: f64,
    /// The latest announcement: when it came, packets sent until then by layer, bytes received until then.
    latest: Option<(Instant, [u32; LAYERS], u64)>,
    spans: VecDeque<Span>,
}

/// From one announcement to the next.
#[derive(Clone, Copy, Debug)]
struct Span {
    seconds: f64,
    received: f64,
    offered: f64,
}

impl Ledger {
    pub(super) fn new(minimum_bps: f64) -> Self {
        Self { minimum_bps, ..Self::default() }
    }

    /// The source announces to have `sent` so many packets by layer; `received` bytes came so far, of packets of
    /// `mean_length` bytes.
    pub(super) fn announced(
        &mut self,
        now: Instant,
        sent: &[u32],
        (received, mean_length): (u64, f64),
    ) {
        let mut all = [0; LAYERS];
        all.iter_mut().zip(sent).for_each(|(all, sent)| *all = *sent);
        let Some((at, before, bytes)) = self.latest else {
            self.latest = Some((now, all, received));
            return;
        };
        if now.since(at) < SHORTEST {
            return;
        }
        self.latest = Some((now, all, received));
        let packets = all.iter().zip(before).map(|(now, before)| now.wrapping_sub(before));
        self.spans.push_back(Span {
            seconds: now.since(at).as_secs_f64(),
            received: received.saturating_sub(bytes) as f64,
            offered: packets.map(f64::from).sum::<f64>() * mean_length,
        });
        if self.spans.len() > SPANS {
            self.spans.pop_front();
        }
    }

    /// Received and offered lately, bit/s, once two announcements have come.
    pub(super) fn rates(&self) -> Option<(f64, f64)> {
        let seconds: f64 = self.spans.iter().map(|span| span.seconds).sum();
        let rate = |of: fn(&Span) -> f64| 8.0 * self.spans.iter().map(of).sum::<f64>() / seconds;
        (seconds > 0.0).then(|| (rate(|span| span.received), rate(|span| span.offered)))
    }

    /// What has been wrong for long.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        let (rate_bps, offered_bps) = self.rates().filter(|_| self.spans.len() == SPANS)?;
        let minimum_bps = self.minimum_bps;
        if rate_bps == 0.0 && offered_bps > 0.0 {
            Some(Trouble::NothingArrives { offered_bps })
        } else if rate_bps >= NEARLY * minimum_bps || offered_bps == 0.0 {
            None
        } else if rate_bps >= NEARLY * offered_bps {
            Some(Trouble::SourceSendsLess { offered_bps, minimum_bps })
        } else {
            Some(Trouble::BelowMinimum { rate_bps, minimum_bps })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Announcements each 5 s of a source that sends 100 packets of 1,000 bytes a second, of which `share` arrive.
    fn after(announcements: u64, minimum_bps: f64, share: f64) -> Ledger {
        let mut ledger = Ledger::new(minimum_bps);
        for n in 0..announcements {
            let sent = [u32::MAX.wrapping_add(n as u32 * 100), n as u32 * 400];
            let received = (n as f64 * 500_000.0 * share) as u64;
            ledger.announced(Instant::from_nanos(n * 5_000_000_000), &sent, (received, 1000.0));
        }
        ledger
    }

    #[test]
    fn what_is_wrong_is_said_when_it_lasts_and_told_apart() {
        assert_eq!(after(1, 1e6, 0.5).rates(), None);
        assert_eq!(after(2, 1e6, 0.5).rates(), Some((400_000.0, 800_000.0)));
        assert_eq!(after(3, 1e6, 0.5).trouble(), None);
        let below = Trouble::BelowMinimum { rate_bps: 400_000.0, minimum_bps: 5e5 };
        assert_eq!(after(4, 5e5, 0.5).trouble(), Some(below));
        let less = Trouble::SourceSendsLess { offered_bps: 800_000.0, minimum_bps: 1e6 };
        assert_eq!(after(9, 1e6, 0.97).trouble(), Some(less));
        let nothing = Trouble::NothingArrives { offered_bps: 800_000.0 };
        assert_eq!(after(9, 0.0, 0.0).trouble(), Some(nothing));
        assert_eq!((after(9, 4e5, 0.5).trouble(), after(9, 0.0, 0.1).trouble()), (None, None));
    }

    #[test]
    fn announcements_that_come_at_once_count_as_one() {
        let mut ledger = after(4, 1e6, 0.5);
        let rates = ledger.rates();
        ledger.announced(Instant::from_nanos(15_000_000_001), &[u32::MAX, 7], (9, 1000.0));
        assert_eq!(ledger.rates(), rates);
    }
}

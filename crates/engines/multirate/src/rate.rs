//! What a link carries: expected transmission time (V-A; Bicket et al., MobiCom 2005), packets per slot (mu).

use ncmesh_engine::time::Duration;
use ncmesh_engine::toolkit::average::DurationAverage;
use ncmesh_engine::{TxReport, TxResult};

/// Weight of the newest airtime in the mean.
const AIRTIME_NEWEST: f64 = 0.1;
/// Airtime of a packet that is assumed until one was sent.
const FIRST: Duration = Duration::from_millis(2);
/// Weight of the newest packet in the share that arrives.
const NEWEST: f64 = 0.05;
/// No link is thought to deliver less than this share: a packet now and then finds out.
const LEAST: f64 = 0.01;

/// The link to one neighbour, as this node's own packets found it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LinkRate {
    /// Mean airtime of a packet, all its attempts together.
    airtime: DurationAverage,
    /// Share of packets that the neighbour's MAC acknowledged; where it tells nothing, share of probes that arrive.
    delivered: f64,
    acknowledges: bool,
}

impl LinkRate {
    /// A link that nothing was sent over yet, of which probes say `forward` and `backward` as shares that arrive.
    pub(super) fn new(forward: f64, backward: f64) -> Self {
        Self {
            airtime: DurationAverage::starting_at(FIRST, AIRTIME_NEWEST),
            delivered: forward * backward,
            acknowledges: false,
        }
    }

    /// Probes say that the share `forward` arrives.
    pub(super) fn measured(&mut self, forward: f64) {
        if !self.acknowledges {
            self.delivered = forward;
        }
    }

    /// A packet was sent.
    pub(super) fn sent(&mut self, report: &TxReport) {
        self.airtime.add(report.airtime);
        let share = match report.result {
            TxResult::Sent => return,
            TxResult::Acked => 1.0,
            TxResult::Failed => 0.0,
        };
        let before = if self.acknowledges { self.delivered } else { 1.0 };
        self.acknowledges = true;
        self.delivered = (1.0 - NEWEST) * before + NEWEST * share;
    }

    /// Packets per slot (mu).
    pub(super) fn per_slot(&self, slot: Duration) -> f64 {
        let airtime = self.airtime.value().max(Duration::from_nanos(1)).as_secs_f64();
        self.delivered.max(LEAST) * slot.as_secs_f64() / airtime
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(result: TxResult, us: u64) -> TxReport {
        TxReport { result, airtime: Duration::from_micros(us), heard_by: None }
    }

    #[test]
    fn a_link_is_as_fast_as_its_packets_and_what_arrives_of_them() {
        let slot = Duration::from_millis(100);
        let mut link = LinkRate::new(0.5, 0.5);
        assert!((link.per_slot(slot) - 12.5).abs() < 1e-9);
        // A MAC that acknowledges: attempts are in the airtime, and what it gives up on is lost.
        (0..200).for_each(|_| link.sent(&sent(TxResult::Acked, 1000)));
        assert!((link.per_slot(slot) - 100.0).abs() < 0.1, "{}", link.per_slot(slot));
        link.measured(0.1);
        (0..200).for_each(|_| link.sent(&sent(TxResult::Failed, 1000)));
        assert!((link.per_slot(slot) - 1.0).abs() < 0.1, "{}", link.per_slot(slot));
        // One that does not: what probes say.
        let mut link = LinkRate::new(0.5, 0.5);
        link.measured(0.7);
        (0..200).for_each(|_| link.sent(&sent(TxResult::Sent, 500)));
        assert!((link.per_slot(slot) - 140.0).abs() < 0.1, "{}", link.per_slot(slot));
    }
}

//! How many packets a link carries in a slot (mu): expected transmission time (V-A; Bicket et al.,
//! MobiCom 2005).
//!
//! A node's own packets are the probes. The rate follows from their mean airtime, all attempts
//! included, and from the share that the MAC gave up. Where the MAC reports no outcome, the
//! delivery ratio of the link state replaces that share.

use ncmesh_engine::time::Duration;
use ncmesh_engine::toolkit::average::DurationAverage;
use ncmesh_engine::{TxReport, TxResult};

/// Weight of the newest airtime in the mean.
const AIRTIME_NEWEST: f64 = 0.1;
/// Airtime of a packet that is assumed until one was sent.
const INITIAL_AIRTIME: Duration = Duration::from_millis(2);
/// Weight of the newest packet in the share that arrives.
const DELIVERY_NEWEST: f64 = 0.05;
/// Lowest delivery that a link is assumed to have. It keeps bad links in use now and then, so that
/// their packets show when they have become better.
const MIN_DELIVERY: f64 = 0.01;

/// The link to one neighbour, as this node's own packets show it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LinkRate {
    /// Mean airtime of a packet, all its attempts together.
    airtime: DurationAverage,
    /// Share of packets that the neighbour's MAC acknowledged; before the first acknowledgment the
    /// share of probes that arrive. The toolkit's average does not fit: probes replace it.
    delivery: f64,
    /// Whether the MAC reports outcomes.
    is_acknowledged: bool,
}

impl LinkRate {
    /// Returns a link that nothing was sent over yet. `forward` and `backward` are the shares of
    /// link-state probes that arrive in each direction.
    pub(crate) fn new(forward: f64, backward: f64) -> Self {
        Self {
            airtime: DurationAverage::starting_at(INITIAL_AIRTIME, AIRTIME_NEWEST),
            delivery: forward * backward,
            is_acknowledged: false,
        }
    }

    /// Sets the share of probes that arrives, for a MAC that reports no outcomes.
    pub(crate) fn set_probed_delivery(&mut self, forward: f64) {
        if !self.is_acknowledged {
            self.delivery = forward;
        }
    }

    /// Takes the report on a packet that was sent.
    pub(crate) fn handle_tx_report(&mut self, report: &TxReport) {
        self.airtime.add(report.airtime);
        let share = match report.result {
            // Broadcast: nothing is known of its reception.
            TxResult::Sent => return,
            TxResult::Acked => 1.0,
            TxResult::Failed => 0.0,
        };

        // From the first outcome on, the mean begins anew at 1. Probes count single attempts, but a
        // MAC that acknowledges repeats lost frames, and those attempts are in the airtime.
        let before = if self.is_acknowledged { self.delivery } else { 1.0 };
        self.is_acknowledged = true;
        self.delivery = (1.0 - DELIVERY_NEWEST) * before + DELIVERY_NEWEST * share;
    }

    /// Returns the packets per slot of length `slot` (mu).
    pub(crate) fn per_slot(&self, slot: Duration) -> f64 {
        // Expected transmission time is airtime / delivery; a slot holds slot / ETT packets.
        let airtime = self.airtime.value().max(Duration::from_nanos(1)).as_secs_f64();
        self.delivery.max(MIN_DELIVERY) * slot.as_secs_f64() / airtime
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(result: TxResult, us: u64) -> TxReport {
        TxReport { result, airtime: Duration::from_micros(us), heard_by: None }
    }

    #[test]
    fn the_rate_follows_from_airtime_and_delivery() {
        let slot = Duration::from_millis(100);
        let mut link = LinkRate::new(0.5, 0.5);
        assert!((link.per_slot(slot) - 12.5).abs() < 1e-9);
        // A MAC that acknowledges: attempts are in the airtime, and packets it gives up are lost.
        (0..200).for_each(|_| link.handle_tx_report(&sent(TxResult::Acked, 1000)));
        assert!((link.per_slot(slot) - 100.0).abs() < 0.1, "{}", link.per_slot(slot));
        link.set_probed_delivery(0.1);
        (0..200).for_each(|_| link.handle_tx_report(&sent(TxResult::Failed, 1000)));
        assert!((link.per_slot(slot) - 1.0).abs() < 0.1, "{}", link.per_slot(slot));
        // One that does not: probes tell the delivery.
        let mut link = LinkRate::new(0.5, 0.5);
        link.set_probed_delivery(0.7);
        (0..200).for_each(|_| link.handle_tx_report(&sent(TxResult::Sent, 500)));
        assert!((link.per_slot(slot) - 140.0).abs() < 0.1, "{}", link.per_slot(slot));
    }
}

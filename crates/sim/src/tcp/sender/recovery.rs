//! Loss detection and recovery of the sender.
//!
//! Four mechanisms work together. RACK marks segments as lost by time. Fast recovery answers these
//! losses, with a window that PRR sets. A tail loss probe provokes an acknowledgment when none
//! would come. The retransmission timeout is the last resort.

use super::{Phase, Sender, State, Undo};
use crate::tcp::congestion::Window;
use crate::tcp::rtt::MIN_VARIATION;
use ncmesh_engine::time::{Duration, Instant};

/// Segments received behind a gap from which on the gap counts as a loss and not as reordering
/// (DupThresh, RFC 8985, 6.2 step 4).
const DUP_THRESHOLD: usize = 3;

impl Sender {
    /// Marks segments as lost that were sent before one that was delivered, and are late by more
    /// than the reordering window (RACK_detect_loss, RFC 8985, 6.2 step 5). Returns how many.
    pub(super) fn detect_losses(&mut self, now: Instant) -> u32 {
        let reordering = self.reordering_window();
        let rack = self.rack;
        let deadline = self.rack_rtt + reordering;
        let mut lost = 0;
        let mut latest = None;
        for sent in self.segments.iter_mut().filter(|sent| sent.state == State::Outstanding) {
            // Nothing that was sent later has arrived, so nothing speaks for a loss.
            if sent.transmission >= rack {
                continue;
            }

            // A segment that may still come keeps a timer running. One timer is enough: the last
            // deadline, at which all of them are late.
            let at = sent.sent_at + deadline;
            if at <= now {
                sent.state = State::Lost;
                lost += 1;
            } else {
                latest = latest.max(Some(at));
            }
        }

        self.reorder_at = latest;
        lost
    }

    /// Returns how late a segment may be before it counts as lost (RFC 8985, 6.2 step 4).
    fn reordering_window(&self) -> Duration {
        // Without any sign of reordering, three segments behind a gap are proof enough.
        let received = self.segments.iter().filter(|sent| sent.state == State::Received).count();
        let is_recovering =
            matches!(self.phase, Phase::FastRecovery { .. } | Phase::Timeout { .. });
        if !self.saw_reordering && (is_recovering || received >= DUP_THRESHOLD) {
            return Duration::ZERO;
        }

        // A quarter of the shortest round-trip time, and at most an eighth of the smoothed one.
        let min = self.rtt.min.unwrap_or_default();
        (min / 4).min(self.rtt.smoothed.unwrap_or_default() / 8)
    }

    /// Begins fast recovery if there are losses and no recovery is under way.
    pub(super) fn react_to_losses(&mut self) {
        // All losses of one window are one sign of congestion, and reduce it once (RFC 5681, 4.3).
        let has_lost = self.segments.iter().any(|sent| sent.state == State::Lost);
        if self.phase == Phase::Open && has_lost {
            self.remember_window();
            self.window.threshold = self.window.threshold_after_loss();
            self.phase = Phase::FastRecovery { end: self.next, delivered: 0, sent: 0 };
            self.probe_at = None;
        }
    }

    /// Keeps the window of before a reaction, for an undo and for PRR (RecoverFS).
    fn remember_window(&mut self) {
        let Window { packets, threshold, .. } = self.window;
        self.undo = Some(Undo { packets, threshold, retransmitted_at: None });
    }

    /// Sets the window during fast recovery by proportional rate reduction (RFC 6937, 3), as Linux
    /// does. It spreads the reduction over a round-trip: each packet delivered releases
    /// threshold / prior packets. A halved window would instead be silent for half a round-trip,
    /// and then send a burst.
    pub(super) fn reduce_window(&mut self, newly_delivered: u32, lost: u32, advances: bool) {
        let in_flight = self.in_flight();
        let prior = self.undo.map_or(1, |undo| undo.packets).max(1);
        let threshold = self.window.threshold;
        let Phase::FastRecovery { delivered, sent, .. } = &mut self.phase else { return };

        // PRR compares what left with what arrived, since recovery began.
        *delivered += newly_delivered;
        let delivered = i64::from(*delivered);
        let sent = i64::from(*sent);

        let below_threshold = i64::from(threshold) - i64::from(in_flight);
        let count = if below_threshold < 0 {
            // More in flight than the threshold: proportional reduction.
            let share = (u64::from(threshold) * delivered as u64).div_ceil(u64::from(prior));
            share as i64 - sent
        } else {
            // Fewer in flight: many losses. The window grows back to the threshold as in slow
            // start, but only while recovery makes progress (PRR-SSRB).
            let slow_start = i64::from(advances && lost == 0);
            below_threshold.min((delivered - sent).max(i64::from(newly_delivered)) + slow_start)
        };

        // The first retransmission is always sent.
        let count = count.max(i64::from(sent == 0)).max(0);
        self.window.packets = (in_flight + count as u32).max(1);
    }

    /// Undoes the last reaction to a loss if it was spurious: the echoed timestamp is older than
    /// the first retransmission, so the original had arrived (Eifel, RFC 3522).
    pub(super) fn undo_if_spurious(&mut self, echoed: u32) {
        let Some(Undo { packets, threshold, retransmitted_at: Some(at) }) = self.undo else {
            return;
        };
        if (echoed.wrapping_sub(at) as i32) >= 0 {
            return;
        }

        self.window.packets = self.window.packets.max(packets);
        self.window.threshold = self.window.threshold.max(threshold);
        for sent in self.segments.iter_mut().filter(|sent| sent.state == State::Lost) {
            sent.state = State::Outstanding;
        }

        self.phase = Phase::Open;
        self.undo = None;
    }

    /// Handles a retransmission timeout: everything that is not known to have arrived is lost.
    pub(super) fn handle_rto(&mut self, now: Instant) {
        // The limit keeps the shift in `timeout` within its type; RTO_MAX is reached long before.
        self.backoff = (self.backoff + 1).min(16);
        self.probe_at = None;
        self.reorder_at = None;
        if self.phase == Phase::SynSent {
            return self.open(now);
        }

        // A second timeout of the same data must not lower the threshold again (RFC 5681, 3.1).
        if !matches!(self.phase, Phase::Timeout { .. }) {
            self.remember_window();
            self.window.threshold = self.window.threshold_after_loss();
        }

        // Slow start from one segment, since nothing in flight clocks the sender any more.
        self.window.restart();
        self.phase = Phase::Timeout { end: self.next };
        for sent in self.segments.iter_mut().filter(|sent| sent.state != State::Received) {
            sent.state = State::Lost;
        }
        self.rto_at = Some(now + self.timeout());
        self.transmit(now);
    }

    /// Sends a tail loss probe (RFC 8985, 7.3): new data if there is any, otherwise the last
    /// segment again. Its acknowledgment reveals losses at the end of a burst, behind which no
    /// segment arrives that could.
    pub(super) fn probe(&mut self, now: Instant) {
        self.probe_at = None;
        self.probe_end = Some(self.next);
        if self.new_segment().is_some() {
            self.send_new(now);
        } else if let Some(last) = self.segments.len().checked_sub(1) {
            self.retransmit(last, now);
        }
        self.rto_at = Some(now + self.timeout());
    }

    /// Arms the timer of the tail loss probe (RFC 8985, 7.2). There is no probe while a loss or a
    /// gap is known, because RACK then finds the other losses, nor while one is in flight.
    pub(super) fn arm_probe(&mut self, now: Instant) {
        let has_gap = self.segments.iter().any(|sent| sent.state == State::Received);
        let may = self.phase == Phase::Open && !has_gap && self.probe_end.is_none();
        let smoothed = self.rtt.smoothed.filter(|_| may && !self.segments.is_empty());

        // Two round-trip times, and more for a lone segment, whose acknowledgment may be delayed. A
        // probe later than the retransmission timeout would be of no use.
        let alone = if self.segments.len() == 1 { MIN_VARIATION } else { Duration::ZERO };
        let at = smoothed.map(|smoothed| now + smoothed * 2 + alone);
        self.probe_at = at.filter(|at| self.rto_at.is_none_or(|rto| *at < rto));
    }
}

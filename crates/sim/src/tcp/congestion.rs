//! Congestion control as Linux has it: CUBIC (RFC 9438) with HyStart (Ha and Rhee, 2008), and Reno
//! (RFC 5681). Windows are counted in packets.

use ncmesh_engine::time::{Duration, Instant};

/// Congestion control of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Congestion {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    #[default]
    Cubic,
    /// None: the receiver's window alone limits the sender.
    None,
}

impl Congestion {
    /// Returns its name in scenarios and results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::None => "none",
        }
    }
}

/// Window at the start, packets (RFC 6928).
const INITIAL_WINDOW: u32 = 10;
/// Multiplicative decrease of CUBIC.
const BETA: f64 = 717.0 / 1024.0;
/// Scaling constant of CUBIC, packets/s^3.
const C: f64 = 0.4;
/// Smallest window for which HyStart ends slow start, packets.
const HYSTART_LOW_WINDOW: u32 = 16;
/// Number of round-trip times in a round before HyStart compares the shortest of them.
const HYSTART_SAMPLES: u32 = 8;
/// Bounds of the increase in delay at which slow start ends.
const HYSTART_DELAY: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));
/// Longest interval between acknowledgments of one train.
const HYSTART_ACK_GAP: Duration = Duration::from_millis(2);

/// Congestion window of a sender.
#[derive(Debug)]
pub(super) struct Window {
    kind: Congestion,
    /// Congestion window (cwnd).
    pub packets: u32,
    /// Slow start threshold (ssthresh).
    pub threshold: u32,
    /// Packets delivered since the last increase, in congestion avoidance.
    credit: u32,
    cubic: Cubic,
}

/// State of CUBIC between two losses, and of HyStart in slow start.
#[derive(Debug, Default)]
struct Cubic {
    /// When the present curve began; `None` from a loss to the next increase.
    epoch: Option<Instant>,
    /// Window before the last loss, packets.
    last_max: f64,
    /// Window at the plateau of the curve, packets.
    origin: f64,
    /// Time from the epoch to the plateau, s.
    k: f64,
    /// Window that Reno would have now, packets (W_est).
    reno_window: f64,
    /// Shortest round-trip time.
    delay_min: Option<Duration>,
    round: Round,
}

/// Round of HyStart: the time in which one window is acknowledged.
#[derive(Debug, Default)]
struct Round {
    /// Offset whose acknowledgment ends the round.
    end: u64,
    start: Instant,
    last_ack: Instant,
    /// Shortest round-trip time of the round, and the number of samples.
    delay: Option<Duration>,
    samples: u32,
}

/// The part of an acknowledgment that congestion control uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack {
    /// Packets that it delivered.
    pub delivered: u32,
    /// Round-trip time of the newest of them that was not retransmitted.
    pub rtt: Option<Duration>,
    /// Lowest offset not acknowledged, and the next to be sent.
    pub una: u64,
    pub next: u64,
}

impl Window {
    pub(super) fn new(kind: Congestion) -> Self {
        let packets = if kind == Congestion::None { u32::MAX / 4 } else { INITIAL_WINDOW };
        Self { kind, packets, threshold: u32::MAX, credit: 0, cubic: Cubic::default() }
    }

    pub(super) fn is_slow_start(&self) -> bool {
        self.packets < self.threshold
    }

    /// Returns the threshold after a loss, and records the window at which the loss happened.
    pub(super) fn threshold_after_loss(&mut self) -> u32 {
        match self.kind {
            Congestion::None => self.packets,
            Congestion::Reno => (self.packets / 2).max(2),
            Congestion::Cubic => {
                let window = f64::from(self.packets);

                // Fast convergence (RFC 9438, 4.7): a flow that loses before it reached its last
                // window leaves room for a newer flow.
                let converges = window < self.cubic.last_max;
                self.cubic.last_max = if converges { window * (1.0 + BETA) / 2.0 } else { window };
                self.cubic.epoch = None;
                ((window * BETA) as u32).max(2)
            }
        }
    }

    /// Starts again with one packet, after a retransmission timeout.
    pub(super) fn restart(&mut self) {
        // The path is the same, so its shortest round-trip time stays valid.
        if self.kind != Congestion::None {
            self.packets = 1;
        }
        self.credit = 0;
        self.cubic = Cubic { delay_min: self.cubic.delay_min, ..Cubic::default() };
    }

    /// Handles the round-trip time of an acknowledgment. HyStart may end slow start.
    pub(super) fn note_rtt(&mut self, ack: Ack, now: Instant) {
        let Some(rtt) = ack.rtt.filter(|_| self.kind == Congestion::Cubic) else { return };
        let delay_min = self.cubic.delay_min.map_or(rtt, |min| min.min(rtt));
        self.cubic.delay_min = Some(delay_min);

        // HyStart ends slow start before the queue overflows, which would cost many losses at once.
        // A small window is no danger, and gives too few samples.
        if self.is_slow_start() && self.packets >= HYSTART_LOW_WINDOW {
            let round = &mut self.cubic.round;
            if ack.una > round.end {
                *round = Round { end: ack.next, start: now, last_ack: now, ..Round::default() };
            }
            if round.ends_slow_start(rtt, delay_min, now) {
                self.threshold = self.packets;
            }
        }
    }

    /// Grows the window for delivered packets. The caller checks that the sender used all of it.
    pub(super) fn grow(&mut self, ack: Ack, now: Instant) {
        let mut delivered = ack.delivered;
        if self.kind == Congestion::None {
            return;
        }

        // Slow start: one packet for each packet delivered, up to the threshold. Packets beyond it
        // count towards congestion avoidance.
        if self.is_slow_start() {
            let grown = self.packets.saturating_add(delivered).min(self.threshold);
            delivered -= grown - self.packets;
            self.packets = grown;
        }
        if delivered == 0 {
            return;
        }

        // Congestion avoidance: one packet for every `per_increase` packets delivered. With Reno
        // these are a window, so the window grows by one packet in a round-trip.
        let per_increase = match self.kind {
            Congestion::Cubic => self.cubic.packets_per_increase(self.packets, delivered, now),
            _ => self.packets,
        };
        self.credit += delivered;
        if self.credit >= per_increase {
            self.packets += self.credit / per_increase;
            self.credit %= per_increase;
        }
    }
}

impl Round {
    /// Returns whether slow start has filled the path. Records the acknowledgment.
    fn ends_slow_start(&mut self, rtt: Duration, delay_min: Duration, now: Instant) -> bool {
        // Train: acknowledgments that follow each other closely span half a round-trip, the time
        // in which one window travels one way. So the window fills the path.
        if now - self.last_ack <= HYSTART_ACK_GAP {
            self.last_ack = now;
            if now - self.start > delay_min / 2 {
                return true;
            }
        }

        // Delay: even the shortest round-trip time of this round has grown, so a queue builds up.
        self.delay = Some(self.delay.map_or(rtt, |min| min.min(rtt)));
        self.samples += 1;
        let threshold = (delay_min / 8).clamp(HYSTART_DELAY.0, HYSTART_DELAY.1);
        let has_grown = self.delay.is_some_and(|delay| delay > delay_min + threshold);
        self.samples >= HYSTART_SAMPLES && has_grown
    }
}

impl Cubic {
    /// Returns how many delivered packets make the window one packet larger.
    fn packets_per_increase(&mut self, window: u32, delivered: u32, now: Instant) -> u32 {
        // The first increase after a loss begins a curve: k seconds to the plateau at the window
        // before the loss (RFC 9438, 4.2).
        let current = f64::from(window);
        let epoch = *self.epoch.get_or_insert_with(|| {
            self.k = libm::cbrt((self.last_max - current).max(0.0) / C);
            self.origin = self.last_max.max(current);
            self.reno_window = current;
            now
        });

        // Window that the curve reaches one round-trip time from now (RFC 9438, 4.2).
        let delay = self.delay_min.unwrap_or_default();
        let t = (now - epoch + delay).as_secs_f64();
        let target = self.origin + C * libm::pow(t - self.k, 3.0);
        let ahead = target - current;
        let mut per = if ahead > 0.0 { current / ahead } else { 100.0 * current };

        // Before the first loss there is no plateau. Linux grows by at least 5 % in a round-trip.
        if self.last_max == 0.0 {
            per = per.min(20.0);
        }

        // Reno-friendly region (4.3): on short paths the curve would be slower than Reno.
        let reno_per = current * (1.0 + BETA) / (3.0 * (1.0 - BETA));
        self.reno_window += f64::from(delivered) / reno_per;
        if self.reno_window > current {
            per = per.min(current / (self.reno_window - current));
        }

        // At most half a packet for each packet delivered, as in Linux.
        per.max(2.0) as u32
    }
}

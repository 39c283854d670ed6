//! Congestion control as Linux has it: CUBIC (RFC 9438) with HyStart (Ha and Rhee, 2008), and Reno
//! (RFC 5681). Windows are counted in packets.

use ncmesh_engine::time::{Duration, Instant};

/// How a sender answers losses.
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
/// Round-trip times of which HyStart takes the least, in each round.
const HYSTART_SAMPLES: u32 = 8;
/// Bounds of the increase in delay that ends slow start.
const HYSTART_DELAY: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));
/// Acknowledgments that follow each other this closely belong to one train.
const HYSTART_ACK_GAP: Duration = Duration::from_millis(2);

/// Congestion window of a sender.
#[derive(Debug)]
pub(super) struct Window {
    kind: Congestion,
    pub packets: u32,
    pub threshold: u32,
    /// Packets acknowledged towards the next increase.
    credit: u32,
    cubic: Cubic,
}

/// State of CUBIC between two losses, and of HyStart in slow start.
#[derive(Debug, Default)]
struct Cubic {
    /// When this period of growth began.
    epoch: Option<Instant>,
    /// Window before the last loss, packets.
    last_max: f64,
    /// Window at the plateau of the curve, packets.
    origin: f64,
    /// Time from the epoch to the plateau, s.
    k: f64,
    /// Window that Reno would have by now, packets.
    reno_window: f64,
    /// Shortest round-trip time.
    delay_min: Option<Duration>,
    round: Round,
}

/// A round of HyStart: the time in which one window is acknowledged.
#[derive(Debug, Default)]
struct Round {
    /// Offset whose acknowledgment ends the round.
    end: u64,
    start: Instant,
    last_ack: Instant,
    delay: Option<Duration>,
    samples: u32,
}

/// An acknowledgment as congestion control sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack {
    /// Packets that it delivered.
    pub delivered: u32,
    /// Round-trip time of the newest of them that was sent once.
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

    /// Returns the threshold after a loss, and remembers the window that it happened at.
    pub(super) fn threshold_after_loss(&mut self) -> u32 {
        match self.kind {
            Congestion::None => self.packets,
            Congestion::Reno => (self.packets / 2).max(2),
            Congestion::Cubic => {
                let window = f64::from(self.packets);
                // Fast convergence: a flow that loses before it reached its last window gives way.
                let converges = window < self.cubic.last_max;
                self.cubic.last_max = if converges { window * (1.0 + BETA) / 2.0 } else { window };
                self.cubic.epoch = None;
                ((window * BETA) as u32).max(2)
            }
        }
    }

    /// Starts anew after a retransmission timeout.
    pub(super) fn restart(&mut self) {
        if self.kind != Congestion::None {
            self.packets = 1;
        }
        self.credit = 0;
        self.cubic = Cubic { delay_min: self.cubic.delay_min, ..Cubic::default() };
    }

    /// Takes the round-trip time of an acknowledgment; HyStart may end slow start by it.
    pub(super) fn note_rtt(&mut self, ack: Ack, now: Instant) {
        let Some(rtt) = ack.rtt.filter(|_| self.kind == Congestion::Cubic) else { return };
        let delay_min = self.cubic.delay_min.map_or(rtt, |least| least.min(rtt));
        self.cubic.delay_min = Some(delay_min);
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

    /// Grows the window for delivered packets, while the sender makes use of all of it.
    pub(super) fn grow(&mut self, ack: Ack, now: Instant) {
        let mut delivered = ack.delivered;
        if self.kind == Congestion::None {
            return;
        }
        if self.is_slow_start() {
            let grown = self.packets.saturating_add(delivered).min(self.threshold);
            delivered -= grown - self.packets;
            self.packets = grown;
        }
        if delivered == 0 {
            return;
        }
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
    /// Returns whether delay (by train or by sample) says that the path is full.
    fn ends_slow_start(&mut self, rtt: Duration, delay_min: Duration, now: Instant) -> bool {
        if now - self.last_ack <= HYSTART_ACK_GAP {
            self.last_ack = now;
            if now - self.start > delay_min / 2 {
                return true;
            }
        }
        self.delay = Some(self.delay.map_or(rtt, |least| least.min(rtt)));
        self.samples += 1;
        let threshold = (delay_min / 8).clamp(HYSTART_DELAY.0, HYSTART_DELAY.1);
        let has_grown = self.delay.is_some_and(|delay| delay > delay_min + threshold);
        self.samples >= HYSTART_SAMPLES && has_grown
    }
}

impl Cubic {
    /// Returns how many delivered packets make the window one packet larger.
    fn packets_per_increase(&mut self, window: u32, delivered: u32, now: Instant) -> u32 {
        let current = f64::from(window);
        let epoch = *self.epoch.get_or_insert_with(|| {
            self.k = ((self.last_max - current).max(0.0) / C).cbrt();
            self.origin = self.last_max.max(current);
            self.reno_window = current;
            now
        });

        // Window that the curve reaches one round-trip time from now (RFC 9438, 4.2).
        let delay = self.delay_min.unwrap_or_default();
        let t = (now - epoch + delay).as_secs_f64();
        let target = self.origin + C * (t - self.k).powi(3);
        let ahead = target - current;
        let mut per = if ahead > 0.0 { current / ahead } else { 100.0 * current };
        // The first curve has no plateau: at least 5 % per round-trip time.
        if self.last_max == 0.0 {
            per = per.min(20.0);
        }

        // No slower than Reno would be (4.3).
        let reno_per = current * (1.0 + BETA) / (3.0 * (1.0 - BETA));
        self.reno_window += f64::from(delivered) / reno_per;
        if self.reno_window > current {
            per = per.min(current / (self.reno_window - current));
        }
        per.max(2.0) as u32
    }
}

//! One radio's view of the air.

use rand_chacha::ChaCha8Rng;

use super::TxId;
use crate::channel::{Arrival, Fate};
use crate::power::Power;
use crate::random::{Purpose, stream, unit};
use crate::reception::{PREAMBLE_DETECTION_NS, Reception};

/// A reception under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lock {
    pub(super) id: TxId,
    power: Power,
    since_ns: u64,
    /// Up to when `intact` counts.
    settled_ns: u64,
    /// The probability that everything so far can be read.
    intact: f64,
}

/// What a radio hears, and whether it sends.
pub(super) struct Ear {
    pub(super) up: bool,
    /// Transmissions of its own.
    pub(super) sending: u32,
    /// Of all frames that arrive now.
    pub(super) power: Power,
    pub(super) lock: Option<Lock>,
    pub(super) busy: bool,
    pub(super) busy_since_ns: u64,
    rng: ChaCha8Rng,
}

impl Ear {
    /// An ear in silence.
    pub(super) fn new(seed: u64, radio: usize) -> Self {
        Self {
            up: true,
            sending: 0,
            power: Power::ZERO,
            lock: None,
            busy: false,
            busy_since_ns: 0,
            rng: stream(seed, Purpose::BitErrors, radio),
        }
    }

    /// Whether carrier sense finds the channel busy.
    pub(super) fn is_busy(&self, cs_threshold: Power) -> bool {
        self.sending > 0 || self.lock.is_some() || self.power >= cs_threshold
    }

    /// A frame begins here. What is being received must have been settled up to now.
    pub(super) fn hear(&mut self, now_ns: u64, id: TxId, arrival: Arrival, reception: &Reception) {
        let others = self.power;
        self.power += arrival.power;
        if !self.up || self.sending > 0 {
            return;
        }
        let receivable = arrival.fate != Fate::Sensed;
        let stronger = match &self.lock {
            None => true,
            Some(lock) if now_ns - lock.since_ns <= PREAMBLE_DETECTION_NS => {
                if arrival.power < lock.power {
                    // The one it is recognising must still stand out.
                    if !reception.detects(lock.power, self.power - lock.power) {
                        self.lock = None;
                    }
                    return;
                }
                self.lock = None;
                true
            }
            Some(_) => reception.captures(arrival.power, others),
        };
        if stronger && receivable && reception.detects(arrival.power, others) {
            let (power, since_ns) = (arrival.power, now_ns);
            self.lock = Some(Lock { id, power, since_ns, settled_ns: now_ns, intact: 1.0 });
        }
    }

    /// Counts in how well the frame being received could be read up to now, in the conditions that end now.
    /// It began at `began_ns` and is sent at `rate_bps`.
    pub(super) fn settle(
        &mut self,
        now_ns: u64,
        began_ns: u64,
        rate_bps: u64,
        reception: &Reception,
    ) {
        let Some(lock) = &mut self.lock else { return };
        if now_ns > lock.settled_ns && lock.intact > 0.0 {
            let part = (lock.settled_ns - began_ns, now_ns - began_ns);
            let interference = self.power - lock.power;
            lock.intact *= reception.survives(lock.power, interference, part, rate_bps);
        }
        lock.settled_ns = now_ns;
    }

    /// Ends the reception. Whether everything could be read.
    pub(super) fn conclude(&mut self) -> bool {
        let intact = self.lock.take().map_or(0.0, |lock| lock.intact);
        intact >= 1.0 || (intact > 0.0 && unit(&mut self.rng) < intact)
    }
}

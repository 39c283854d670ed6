//! One radio's view of the air.

use super::{MANY, TxId};
use crate::channel::{Arrival, Fate};
use crate::power::Power;
use crate::reception::{PREAMBLE_DETECTION_NS, Reception};

/// A reception under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lock {
    pub(super) id: TxId,
    /// A frame of the MAC's own.
    control: bool,
    power: Power,
    /// Up to when `errors` counts.
    settled_ns: u64,
    /// Errors expected so far.
    errors: f64,
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
}

impl Ear {
    /// An ear in silence.
    pub(super) fn new() -> Self {
        Self { up: true, sending: 0, power: Power::ZERO, lock: None, busy: false, busy_since_ns: 0 }
    }

    /// Whether carrier sense finds the channel busy.
    pub(super) fn is_busy(&self, cs_threshold: Power) -> bool {
        self.sending > 0 || self.lock.is_some() || self.power >= cs_threshold
    }

    /// A frame begins here. What is being received must have been settled up to now; it began at
    /// `lock_began_ns`.
    pub(super) fn hear(
        &mut self,
        now_ns: u64,
        (id, control): (TxId, bool),
        arrival: Arrival,
        lock_began_ns: u64,
        reception: &Reception,
    ) {
        let others = self.power;
        self.power += arrival.power;
        if !self.up || self.sending > 0 {
            return;
        }
        let receivable = arrival.fate != Fate::Sensed;
        let stronger = match &self.lock {
            None => true,
            Some(lock) if now_ns - lock_began_ns <= PREAMBLE_DETECTION_NS => {
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
            let power = arrival.power;
            self.lock = Some(Lock { id, control, power, settled_ns: now_ns, errors: 0.0 });
        }
    }

    /// Counts in what errors the frame being received, begun at `began_ns`, has met in the conditions that end
    /// now.
    pub(super) fn settle(&mut self, now_ns: u64, began_ns: u64, reception: &Reception) {
        let Some(lock) = &mut self.lock else { return };
        if now_ns > lock.settled_ns && lock.errors < MANY {
            let part = (lock.settled_ns - began_ns, now_ns - began_ns);
            lock.errors +=
                reception.errors(lock.power, self.power - lock.power, part, lock.control);
            lock.settled_ns = now_ns;
        }
    }

    /// Ends the reception. How many errors were to be expected.
    pub(super) fn conclude(&mut self) -> f64 {
        self.lock.take().map_or(f64::INFINITY, |lock| lock.errors)
    }
}

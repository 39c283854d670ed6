//! One radio's view of the air.

use super::flight::TxId;
use super::outcome::MANY;
use crate::channel::{Arrival, Fate};
use crate::power::Power;
use crate::reception::{PREAMBLE_DETECTION_NS, Reception};

/// A reception under way, or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lock {
    /// The frame; of none nothing else means anything.
    pub(super) id: Option<TxId>,
    /// Up to when `errors` counts, ns after the beginning.
    settled_ns: u32,
    began_ns: u64,
    power: Power,
    /// Errors expected so far.
    errors: f64,
    /// While all frames together are no stronger than this, those that come and go change nothing about it.
    calm: Power,
}

impl Lock {
    /// No reception.
    const NONE: Self = Self {
        id: None,
        settled_ns: 0,
        began_ns: 0,
        power: Power::ZERO,
        errors: f64::INFINITY,
        calm: Power::MAX,
    };

    /// Whether the frame is still being recognised, and a stronger one would take its place.
    fn is_recognised_at(&self, now_ns: u64) -> bool {
        now_ns - self.began_ns <= PREAMBLE_DETECTION_NS
    }
}

/// What a radio hears, and whether it sends. One line of the cache.
#[repr(align(64))]
pub(super) struct Ear {
    pub(super) up: bool,
    /// Transmissions of its own.
    pub(super) sending: u32,
    /// Of all frames that arrive now.
    pub(super) power: Power,
    pub(super) lock: Lock,
    pub(super) busy: bool,
    pub(super) busy_since_ns: u64,
}

impl Ear {
    /// An ear in silence.
    pub(super) fn new() -> Self {
        Self {
            up: true,
            sending: 0,
            power: Power::ZERO,
            lock: Lock::NONE,
            busy: false,
            busy_since_ns: 0,
        }
    }

    /// Whether carrier sense finds the channel busy.
    pub(super) fn is_busy(&self, cs_threshold: Power) -> bool {
        self.sending > 0 || self.lock.id.is_some() || self.power >= cs_threshold
    }

    /// Whether more may change than the power when `arrival` begins.
    pub(super) fn heeds_begin(
        &self,
        now_ns: u64,
        arrival: &Arrival,
        cs_threshold: Power,
        reception: &Reception,
    ) -> bool {
        let power = self.power + arrival.power;
        let free = self.lock.id.is_none() & (arrival.fate != Fate::Sensed);
        (free & reception.detects(arrival.power, self.power))
            | self.lock.is_recognised_at(now_ns)
            | (power > self.lock.calm)
            | (!self.busy & (power >= cs_threshold))
    }

    /// Whether more may change than the power when `arrival` of frame `id` ends.
    pub(super) fn heeds_end(&self, id: TxId, arrival: &Arrival, cs_threshold: Power) -> bool {
        let power = self.power - arrival.power;
        (self.lock.id == Some(id))
            | (self.power > self.lock.calm)
            | (self.busy & (power < cs_threshold))
    }

    /// A frame begins here. What is being received must have been settled up to now.
    #[inline(always)]
    pub(super) fn hear(&mut self, now_ns: u64, id: TxId, arrival: Arrival, reception: &Reception) {
        let others = self.power;
        self.power += arrival.power;
        if !self.up || self.sending > 0 {
            return;
        }
        let stronger = if self.lock.id.is_none() {
            true
        } else if self.lock.is_recognised_at(now_ns) {
            if arrival.power < self.lock.power {
                // The one it is recognising must still stand out.
                if !reception.detects(self.lock.power, self.power - self.lock.power) {
                    self.lock = Lock::NONE;
                }
                return;
            }
            self.lock = Lock::NONE;
            true
        } else {
            reception.captures(arrival.power, others)
        };
        let receivable = arrival.fate != Fate::Sensed;
        if stronger && receivable && reception.detects(arrival.power, others) {
            self.lock = Lock {
                id: Some(id),
                settled_ns: 0,
                began_ns: now_ns,
                power: arrival.power,
                errors: 0.0,
                calm: reception.calm_up_to(arrival.power),
            };
        }
    }

    /// Counts in what errors the frame being received, of the MAC's own or not, has met in the conditions that
    /// end now.
    pub(super) fn settle(&mut self, now_ns: u64, control: bool, reception: &Reception) {
        let lock = &mut self.lock;
        let until_ns = (now_ns - lock.began_ns) as u32;
        if until_ns > lock.settled_ns && self.power > lock.calm && lock.errors < MANY {
            let part = (u64::from(lock.settled_ns), u64::from(until_ns));
            lock.errors += reception.errors(lock.power, self.power - lock.power, part, control);
            if lock.errors >= MANY && !reception.may_capture() {
                lock.calm = Power::MAX;
            }
        }
        lock.settled_ns = until_ns;
    }

    /// Ends the reception, if there is one. How many errors were to be expected.
    pub(super) fn conclude(&mut self) -> f64 {
        std::mem::replace(&mut self.lock, Lock::NONE).errors
    }
}

//! The receiver of one radio: carrier sense, preamble detection, capture, expected bit errors.
//!
//! ```text
//!                  preamble detected                  4 us have passed
//!   +-----------+ ------------------> +-----------+ ------------------> +-----------+
//!   | listening |                     | detecting |                     | receiving |
//!   +-----------+ <------------------ +-----------+                     +-----------+
//!         ^      signal below the SINR   |     ^                           |     ^
//!         |      of a preamble           +-----+                           +-----+
//!         |                              a stronger frame            capture, if enabled
//!         |                              replaces it
//!         +------------------------------------------------------------------+
//!                                    the frame ends
//! ```
//! The radio's own transmission, or switching it off, ends a reception in any state.
//!
//! The states are derived from plain fields and are not an `enum`: every frame updates hundreds of
//! receivers, and most updates only compare numbers.
//!
//! The SINR of a frame changes whenever another frame begins or ends. [`Receiver::account_errors`]
//! then adds the errors expected since the last change; the sum decides about the frame at its end.

use super::outcome::HOPELESS_ERRORS;
use super::transmission::TxId;
use crate::channel::{Arrival, LinkOutcome};
use crate::power::Power;
use crate::reception::{PREAMBLE_DETECTION_NS, SinrModel};

/// The reception in progress, or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reception {
    /// The frame. Without a frame the other fields have no meaning.
    pub(super) frame: Option<TxId>,
    /// `errors` covers the frame up to this time after its start, ns.
    accounted_ns: u32,
    began_ns: u64,
    power: Power,
    /// Expected number of bit errors so far.
    errors: f64,
    /// While the power of all frames together is at most this, starts and ends of other frames do
    /// not change the reception.
    harmless_power: Power,
}

impl Reception {
    /// No reception. The values make the comparisons of an idle receiver come out as harmless.
    const NONE: Self = Self {
        frame: None,
        accounted_ns: 0,
        began_ns: 0,
        power: Power::ZERO,
        errors: f64::INFINITY,
        harmless_power: Power::MAX,
    };

    /// Returns whether the radio is still detecting the preamble, so that a stronger frame would
    /// replace this one.
    fn is_detecting(&self, now_ns: u64) -> bool {
        now_ns - self.began_ns <= PREAMBLE_DETECTION_NS
    }
}

/// State of one radio's receiver. It fills one cache line.
#[repr(align(64))]
pub(super) struct Receiver {
    /// Whether the radio is switched on.
    pub(super) up: bool,
    /// Number of the radio's own transmissions in progress.
    pub(super) transmissions: u32,
    /// Power of all frames that arrive now.
    pub(super) power: Power,
    pub(super) reception: Reception,
    /// Clear channel assessment, as last indicated to the MAC.
    pub(super) cca_busy: bool,
    pub(super) cca_busy_since_ns: u64,
}

impl Receiver {
    /// Creates the receiver of a radio that is on and hears nothing.
    pub(super) fn new() -> Self {
        Self {
            up: true,
            transmissions: 0,
            power: Power::ZERO,
            reception: Reception::NONE,
            cca_busy: false,
            cca_busy_since_ns: 0,
        }
    }

    /// Returns whether the channel is busy: the radio transmits, receives, or senses enough energy.
    pub(super) fn senses_busy(&self, cs_threshold: Power) -> bool {
        self.transmissions > 0 || self.reception.frame.is_some() || self.power >= cs_threshold
    }

    /// Returns whether the start of `arrival` may change more than the sum of the power.
    pub(super) fn is_affected_by_begin(
        &self,
        now_ns: u64,
        arrival: &Arrival,
        cs_threshold: Power,
        model: &SinrModel,
    ) -> bool {
        let power = self.power + arrival.power;
        let free = self.reception.frame.is_none() & (arrival.link != LinkOutcome::EnergyOnly);
        (free & model.detects_preamble(arrival.power, self.power))
            | self.reception.is_detecting(now_ns)
            | (power > self.reception.harmless_power)
            | (!self.cca_busy & (power >= cs_threshold))
    }

    /// Returns whether the end of `arrival`, of frame `id`, may change more than the sum of the
    /// power.
    pub(super) fn is_affected_by_end(
        &self,
        id: TxId,
        arrival: &Arrival,
        cs_threshold: Power,
    ) -> bool {
        let power = self.power - arrival.power;
        (self.reception.frame == Some(id))
            | (self.power > self.reception.harmless_power)
            | (self.cca_busy & (power < cs_threshold))
    }

    /// Handles the start of a frame at this radio. Errors of a reception in progress must be
    /// accounted up to now.
    #[inline(always)]
    pub(super) fn begin_arrival(
        &mut self,
        now_ns: u64,
        id: TxId,
        arrival: Arrival,
        model: &SinrModel,
    ) {
        let others = self.power;
        self.power += arrival.power;

        // A radio that sends or is off hears nothing. Frames that come later still meet the power.
        if !self.up || self.transmissions > 0 {
            return;
        }

        // Decide whether the radio would turn to the new frame.
        let turns = if self.reception.frame.is_none() {
            true
        } else if self.reception.is_detecting(now_ns) {
            let current = self.reception.power;
            if arrival.power < current {
                // The new frame is weaker. The present one stays if its preamble is still
                // detectable over it.
                if !model.detects_preamble(current, self.power - current) {
                    self.reception = Reception::NONE;
                }
                return;
            }

            // The new frame is as strong or stronger. It ends the present reception even if its own
            // preamble is not detectable.
            self.reception = Reception::NONE;
            true
        } else {
            model.captures(arrival.power, others)
        };

        let receivable = arrival.link != LinkOutcome::EnergyOnly;
        if turns && receivable && model.detects_preamble(arrival.power, others) {
            self.reception = Reception {
                frame: Some(id),
                accounted_ns: 0,
                began_ns: now_ns,
                power: arrival.power,
                errors: 0.0,
                harmless_power: model.harmless_power(arrival.power),
            };
        }
    }

    /// Adds the bit errors expected since the last call to those of the frame being received.
    /// Called before the interference changes. `control` tells whether the frame is one of the
    /// MAC's own.
    pub(super) fn account_errors(&mut self, now_ns: u64, control: bool, model: &SinrModel) {
        let reception = &mut self.reception;
        let until_ns = (now_ns - reception.began_ns) as u32;
        let has_errors = self.power > reception.harmless_power;
        if until_ns > reception.accounted_ns && has_errors && reception.errors < HOPELESS_ERRORS {
            let interference = self.power - reception.power;
            let part_ns = u64::from(reception.accounted_ns)..u64::from(until_ns);
            reception.errors +=
                model.expected_errors(reception.power, interference, part_ns, control);

            // Nothing can save the frame now, so later frames need not be looked at, unless one
            // of them may capture the receiver.
            if reception.errors >= HOPELESS_ERRORS && !model.has_capture() {
                reception.harmless_power = Power::MAX;
            }
        }

        reception.accounted_ns = until_ns;
    }

    /// Ends the reception in progress. Returns its expected number of bit errors, which is infinite
    /// without a reception.
    pub(super) fn end_reception(&mut self) -> f64 {
        std::mem::replace(&mut self.reception, Reception::NONE).errors
    }
}

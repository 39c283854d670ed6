//! The channel of a trial: draws losses and counts transmissions.

use crate::LIMIT;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// Purpose of a random stream. Losses and coefficients have separate streams, so that all fields
/// are compared under the same losses.
#[derive(Clone, Copy)]
enum Purpose {
    Losses = 1,
    Coefficients = 2,
}

fn stream(seed: u64, purpose: Purpose, trial: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    // The key names seed and purpose, the stream of the generator the trial.
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(b"nc-cross");
    key[16] = purpose as u8;

    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream(trial);
    rng
}

/// Links of the cross in one trial.
pub(crate) struct Air {
    e_x: f64,
    e_oh: f64,
    losses: ChaCha8Rng,
    /// Random stream for the coefficients of packets.
    pub(crate) coefficients: ChaCha8Rng,
    sent: u64,
}

impl Air {
    pub(crate) fn new(e_x: f64, e_oh: f64, seed: u64, trial: u64) -> Self {
        Self {
            e_x,
            e_oh,
            losses: stream(seed, Purpose::Losses, trial),
            coefficients: stream(seed, Purpose::Coefficients, trial),
            sent: 0,
        }
    }

    /// Returns the transmissions so far; `None` when the trial is given up.
    pub(crate) fn sent(&self) -> Option<u64> {
        (!self.is_given_up()).then_some(self.sent)
    }

    /// Says whether the trial is given up.
    pub(crate) fn is_given_up(&self) -> bool {
        self.sent >= LIMIT
    }

    /// Draws an event of probability `p`.
    pub(crate) fn draw_event(&mut self, p: f64) -> bool {
        f64::from(self.losses.next_u32()) / 4_294_967_296.0 < p
    }

    /// Broadcasts once from a source. Returns whether the relay and the other flow's destination
    /// receive the packet.
    pub(crate) fn source_sends(&mut self) -> [bool; 2] {
        self.broadcast([self.e_x, self.e_oh])
    }

    /// Broadcasts once from the relay. Returns whether each destination receives the packet.
    pub(crate) fn relay_sends(&mut self) -> [bool; 2] {
        self.broadcast([self.e_x, self.e_x])
    }

    fn broadcast(&mut self, losses: [f64; 2]) -> [bool; 2] {
        self.sent += 1;
        losses.map(|loss| !self.draw_event(loss))
    }

    /// Sends from a source until the relay has the packet. Returns whether the other flow's
    /// destination overheard it.
    pub(crate) fn source_sends_until_received(&mut self) -> bool {
        self.send_until_received(Self::source_sends)
    }

    /// Sends from the relay until the addressed destination has the packet. Returns whether the
    /// other one received it too.
    pub(crate) fn relay_sends_until_received(&mut self) -> bool {
        self.send_until_received(Self::relay_sends)
    }

    /// Retransmits as the MAC does, without a limit (section 5, r_max), until the trial is given
    /// up.
    fn send_until_received(&mut self, send: impl Fn(&mut Self) -> [bool; 2]) -> bool {
        let mut overheard = false;
        loop {
            // An attempt in vain may be overheard, and that counts.
            let [addressed, other] = send(self);
            overheard |= other;

            if addressed || self.is_given_up() {
                return overheard;
            }
        }
    }

    /// Draws the destination that the relay addresses, both with the same probability (eq. 7).
    pub(crate) fn draw_addressed(&mut self) -> usize {
        usize::from(self.draw_event(0.5))
    }
}

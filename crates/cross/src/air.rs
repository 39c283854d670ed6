//! Who hears what, and how much is sent.

use crate::LIMIT;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// What a stream is drawn for. Losses and coefficients have streams of their own, so that fields are compared
/// on the same luck.
#[derive(Clone, Copy)]
enum Purpose {
    Losses = 1,
    Coefficients = 2,
}

fn stream(seed: u64, purpose: Purpose, trial: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(b"nc-cross");
    key[16] = purpose as u8;
    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream(trial);
    rng
}

/// The links of the cross in one trial.
pub(crate) struct Air {
    e_x: f64,
    e_oh: f64,
    losses: ChaCha8Rng,
    /// For coefficients of packets.
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

    /// Transmissions so far; `None` once they are too many.
    pub(crate) fn sent(&self) -> Option<u64> {
        (!self.is_spent()).then_some(self.sent)
    }

    /// Whether there were so many transmissions that the trial ends undone.
    pub(crate) fn is_spent(&self) -> bool {
        self.sent >= LIMIT
    }

    /// Whether something of probability `p` happens.
    pub(crate) fn happens(&mut self, p: f64) -> bool {
        f64::from(self.losses.next_u32()) / 4_294_967_296.0 < p
    }

    /// A source broadcasts once: whether the relay and the other flow's destination hear it.
    pub(crate) fn source_sends(&mut self) -> [bool; 2] {
        self.broadcast([self.e_x, self.e_oh])
    }

    /// The relay broadcasts once: whether each destination hears it.
    pub(crate) fn relay_sends(&mut self) -> [bool; 2] {
        self.broadcast([self.e_x, self.e_x])
    }

    fn broadcast(&mut self, losses: [f64; 2]) -> [bool; 2] {
        self.sent += 1;
        losses.map(|loss| !self.happens(loss))
    }

    /// A source sends until the relay has the packet: whether the other flow's destination heard it meanwhile.
    pub(crate) fn source_insists(&mut self) -> bool {
        self.insist(Self::source_sends)
    }

    /// The relay sends until one destination has the packet: whether the other one heard it meanwhile.
    pub(crate) fn relay_insists(&mut self) -> bool {
        self.insist(Self::relay_sends)
    }

    /// Retransmission by the MAC, without a limit (section 5, r_max), as long as the trial lasts.
    fn insist(&mut self, send: impl Fn(&mut Self) -> [bool; 2]) -> bool {
        let mut overheard = false;
        loop {
            let [addressed, other] = send(self);
            overheard |= other;
            if addressed || self.is_spent() {
                return overheard;
            }
        }
    }

    /// Which destination the relay addresses: each as often as the other (eq. 7).
    pub(crate) fn addressed(&mut self) -> usize {
        usize::from(self.happens(0.5))
    }
}

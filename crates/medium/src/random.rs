//! Random streams, one for each (seed, purpose, radio).
//!
//! A draw for one radio or purpose never shifts the draws of another. ChaCha8 is the generator:
//! seed and purpose are its key, the radio is its stream.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// Purpose of a stream.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    /// Losses of data frames, by sender.
    Loss = 1,
    /// Losses of control frames, by their sender.
    ControlLoss = 2,
    /// Backoff of the MAC, by station.
    Backoff = 3,
    /// Fading of data frames, by sender.
    Fading = 4,
    /// Fading of control frames, by their sender.
    ControlFading = 5,
    /// Bit errors, by receiver.
    BitErrors = 6,
    /// Shadowing, by the lower of two radios.
    Shadowing = 7,
    /// Bursts of loss, by sender.
    Bursts = 8,
    /// The order of slotted access, one stream for all radios.
    Order = 9,
}

/// Returns the stream of `radio` for `purpose` under `seed`.
pub(crate) fn stream(seed: u64, purpose: Purpose, radio: usize) -> ChaCha8Rng {
    // The name of the crate keeps these streams apart from those of the protocols with the same
    // seed.
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(b"ncmedium");
    key[16] = purpose as u8;
    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream(radio as u64);
    rng
}

/// Draws a uniform integer in `0..=highest` by multiply and shift, with a bias of less than
/// (highest + 1) / 2^32.
pub(crate) fn uniform(rng: &mut ChaCha8Rng, highest: u32) -> u32 {
    let range = u64::from(highest) + 1;
    ((u64::from(rng.next_u32()) * range) >> 32) as u32
}

/// Draws a uniform number from 0 to below 1.
pub(crate) fn unit(rng: &mut ChaCha8Rng) -> f64 {
    f64::from(rng.next_u32()) / 4_294_967_296.0
}

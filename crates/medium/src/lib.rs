//! The radio medium as a sans-IO machine: propagation and medium access.
//!
//! A [`Medium`] is told what radios want and what time it is, and answers with [`Output`]s. It owns no
//! clock, socket or thread: the simulator drives it with a virtual clock, `etherd` with the wall clock.
//! Frames are opaque bytes, shared among all who hear them.
//!
//! | module | what it models | time unit | source |
//! | --- | --- | --- | --- |
//! | `channel` | whom a frame reaches: loss matrix with bursts, or path loss, shadowing and fading | m, dBm | Rappaport; Gilbert, Elliott |
//! | `reception` | which SINR a frame can be read at: threshold or bit errors | dB | Proakis; IEEE 802.15.2 |
//! | `air` | frames in flight: interference, half-duplex radios, carrier sense, capture | ns, 10^-17 W | - |
//! | `mac::dcf` | CSMA/CA: DIFS, EIFS, slotted backoff, RTS, CTS, NAV, ACK, retry | ns | IEEE 802.11-2016, 10.3 |
//! | `mac::slotted` | random maximal scheduling in slots | ns | - |
//! | `phy` | duration of a frame on the air | ns | IEEE 802.11-2016, 16.2 and 17.3 |
//!
//! # How to drive it
//! 1. [`Medium::request`] when a radio has something to send.
//! 2. At the instant [`Medium::poll_timeout`] names, [`Medium::handle_timeout`].
//! 3. After *every* call drain [`Medium::poll_output`]. A [`Output::Grant`] must be answered with
//!    [`Medium::supply`] or [`Medium::decline`] at the same instant: until it is, medium time stands still,
//!    so that the answer may take as long as it needs on the wall clock.
//!
//! The frame's bytes are asked for only when the transmission begins. Nothing waits in a queue here.
//!
//! ```
//! use ncmesh_medium::{Access, LossMatrix, Medium, MediumConfig, Output, RadioId};
//!
//! let mut loss = LossMatrix::new(2);
//! loss.set(RadioId(0), RadioId(1), 0.0)?;
//! let mut medium = Medium::new(MediumConfig::dot11b(loss, 2_000_000))?;
//! medium.request(0, RadioId(0))?;
//! let mut heard = 0;
//! while let Some(now_ns) = medium.poll_timeout() {
//!     medium.handle_timeout(now_ns);
//!     while let Some(output) = medium.poll_output() {
//!         match output {
//!             Output::Grant { radio, at_ns } => {
//!                 medium.supply(at_ns, radio, Access::Broadcast, [1, 2, 3].into())?;
//!             }
//!             Output::Deliver { frame, .. } => heard += frame.len(),
//!             Output::Report { .. } => {}
//!         }
//!     }
//! }
//! assert_eq!(heard, 3);
//! # Ok::<(), ncmesh_medium::MediumError>(())
//! ```

mod air;
mod channel;
mod config;
mod mac;
mod medium;
mod phy;
mod power;
mod random;
mod reception;
mod statistics;

pub use channel::{Fading, LEFT_OUT, LossMatrix, PathLoss};
pub use config::{
    Bursts, ChannelConfig, Conflict, LinkKind, LinkPower, LinksConfig, MAX_RADIOS, MacConfig,
    MediumConfig, MediumError, Order, RadioConfig, ReceptionConfig, ReceptionModel, Sense,
};
pub use mac::{Access, MAX_FRAME_BYTES, TxResult};
pub use medium::{Medium, Output};
pub use phy::{Modulation, Phy};
pub use power::Power;
pub use reception::bit_error_probability;
pub use statistics::{RadioStatistics, Statistics};

/// A radio, by its index in the medium: 0 to `radios - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RadioId(pub usize);

impl std::fmt::Display for RadioId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "radio {}", self.0)
    }
}

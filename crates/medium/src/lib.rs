//! The wireless medium as a sans-IO state machine: propagation, reception and medium access.
//!
//! The driver tells a [`Medium`] which radios want to send and what time it is; the medium answers
//! with [`Output`]s. It has no clock, socket or thread: the simulator drives it with a virtual
//! clock, the channel emulator with the wall clock. Frames are opaque bytes, shared by all
//! receivers.
//!
//! | module | models | units | source |
//! | --- | --- | --- | --- |
//! | `propagation` | path loss and fading | m, dB | Rappaport; Nakagami |
//! | `channel` | radios that a frame reaches: given losses with bursts, or positions | dBm | Gilbert; Elliott |
//! | `reception` | decoding at an SINR: threshold, or bit errors | dB | Proakis; IEEE 802.15.2 |
//! | `air` | frames in flight: interference, half-duplex radios, carrier sense, capture | ns, 10^-17 W | IEEE 802.11-2016, 8.3.5 |
//! | `mac::dcf` | CSMA/CA: DIFS, EIFS, backoff, RTS, CTS, NAV, ACK, retries | ns | IEEE 802.11-2016, 10.3 |
//! | `mac::slotted` | maximal scheduling in slots | ns | Multipath Code Casting, 4.1 |
//! | `phy` | airtimes and interframe spaces | ns | IEEE 802.11-2016, 15 to 17 |
//!
//! # How to drive it
//! 1. Call [`Medium::request`] when a radio has a frame to send.
//! 2. Call [`Medium::handle_timeout`] at the instant that [`Medium::poll_timeout`] returns.
//! 3. After *every* call, drain [`Medium::poll_output`]. Answer an [`Output::Grant`] with
//!    [`Medium::supply`] or [`Medium::decline`] at the same instant. Medium time stands still until
//!    the answer, so the answer may take any time on the wall clock.
//!
//! The medium asks for a frame's bytes only when the transmission begins. It has no queues.
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
mod error;
mod loss_matrix;
mod mac;
mod medium;
mod phy;
mod power;
mod propagation;
mod random;
mod reception;
mod statistics;
mod types;

pub use config::{
    BIT_RATES, Bursts, ChannelConfig, Conflict, LinkKind, LinkPower, LinksConfig,
    MAC_OVERHEAD_BYTES, MacConfig, MediumConfig, RETRY_LIMIT, RadioConfig, ReceptionConfig,
    ReceptionModel, Sense, SlotOrder,
};
pub use error::MediumError;
pub use loss_matrix::{LossMatrix, LossyLink};
pub use medium::{CountedLink, Medium};
pub use phy::{Modulation, Phy};
pub use power::Power;
pub use propagation::{Fading, PathLoss};
pub use statistics::{LinkStatistics, RadioStatistics, Statistics};
pub use types::{Access, MAX_FRAME_BYTES, MAX_RADIOS, Output, RadioId, TxResult};

//! The medium behind Linux's simulated radios: frames of `mac80211_hwsim` contend for a channel.
//!
//! The kernel's module makes radios without hardware, on which drivers, rate control, ad-hoc and
//! mesh mode of a real kernel run. Alone it delivers each frame at once to everybody. A program can
//! register for its frames instead, and decide who hears them when. This crate is such a program:
//! radio *i* of the module is node *i* of a scenario, and [`ncmesh_medium`] decides, with carrier
//! sense, hidden nodes, collisions, losses of each link, acknowledgments and repeats. So every mesh
//! program that runs on Linux's Wi-Fi stack can be measured on the channel of the simulator.
//!
//! ```text
//! mac80211 --frame--> Air::take --> queue of the radio --> Medium: contention, air
//!          <-received------------------------------------ Output::Deliver
//!          <-status (acknowledged, attempts)-------------- Output::Report
//! ```
//! [`message`] reads and writes the kernel's messages, [`Air`] is the program without socket and
//! clock, and the program `ncmesh-medium` runs it.

mod air;
pub mod message;
mod queue;
pub mod rate;

pub use air::{Air, Counts};

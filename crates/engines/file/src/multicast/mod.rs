//! Reliable multicast of files, for every scheme that sends batches of coded packets down a mesh (Pacifier
//! and its baseline MORE): announcement, coded data, acknowledgments, resumption.
//!
//! A scheme says who forwards how much and when the source moves on ([`Scheme`]); all else is here.
//! One packet's way: `source` fills it, `relay`s recombine it, `sink`s decode it, `acks` carry the
//! answer back.

mod acks;
mod announce;
mod arq;
mod coded;
mod data;
mod engine;
pub mod frame;
mod packets;
mod relay;
mod routing;
mod scheme;
mod sink;
mod source;
mod status;
mod stored;
mod visit;

#[cfg(test)]
mod hop_tests;
#[cfg(test)]
mod tests;

pub use engine::FileMulticast;
pub use routing::{Cast, Forwarder, Forwarding, Hop, Routing, Upstream};
pub use scheme::{Plan, Scheme, Switching};

//! Streams of RTP: the layers of one encoder at one port.
//!
//! At the source [`RtpSender`] finds the layer of each packet by the marks of its codec
//! ([`Marks`]); tracks without such marks, as audio, and RTCP are in the base. At a receiver
//! [`RtpReceiver`] puts the packets of all layers in order again and closes the gaps that packets
//! of an enhancement leave, so that a player does not wait for them. It leaves gaps of the base,
//! which a decoder must know of.

mod format;
mod marks;
mod packet;
mod receiver;
mod sdp;
mod sender;
#[cfg(test)]
mod tests;

pub use format::{LAYER_PREFIX, LAYERS};
pub use marks::{Codec, Mark, Marks};
pub use packet::{RtpPacket, is_rtcp};
pub use receiver::{Playable, RtpReceiver};
pub use sdp::{MAX_SDP, MAX_TRACKS, PORTS_PER_TRACK, RtpPort, SdpError, Track, check, read, write};
pub use sender::{LayerPacket, RtpSender};

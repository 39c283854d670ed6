//! Streams of RTP: the layers of one encoder at one port.
//!
//! At the source [`RtpSender`] finds the layer of each packet by the marks of its codec
//! ([`Marks`]); tracks without such marks, as audio, and RTCP are in the base. At a receiver
//! [`RtpReceiver`] puts the packets of all layers in order again and closes the gaps that packets of
//! an enhancement leave, so that a player does not wait for them. It leaves gaps of the base, which
//! a decoder must know of.
//!
//! The layers of such a stream are called [`LAYERS`]. Each of their packets has a header:
//!
//! | bytes | contents |
//! | --- | --- |
//! | 1 | kind (2 bits: RTP, RTCP, SDP), whether it begins a frame (1 bit), 1 bit 0, number of the track (4 bits) |
//! | 2 | RTP only: packets of the track's base before this one |
//! | rest | the datagram, or the session description |
//!
//! A receiver subtracts these counts from those of RTP, so it knows how many packets of which kind
//! are missing between two that arrived.

mod marks;
mod packet;
mod receiver;
mod sdp;
mod sender;
#[cfg(test)]
mod tests;

pub use marks::{Codec, Mark, Marks};
pub use packet::{RtpPacket, is_rtcp};
pub use receiver::{Playable, RtpReceiver};
pub use sdp::{MAX_TRACKS, PORTS_PER_TRACK, RtpPort, SdpError, Track, check, read, write};
pub use sender::{LayerPacket, RtpSender};

/// Names of the layers of a stream of RTP. Other streams cannot have such layers.
pub const LAYERS: [&str; 3] = ["rtp-base", "rtp-enh1", "rtp-enh2"];
/// Prefix of these names.
pub const LAYER_PREFIX: &str = "rtp-";

/// Layer of the base.
const BASE: usize = 0;
/// Bit of the header of the first packet of a frame.
const FIRST_OF_FRAME: u8 = 0x20;

/// Contents of a packet, in the first two bits of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Rtp = 0,
    Rtcp = 0x40,
    Sdp = 0x80,
}

impl Kind {
    fn of(header: u8) -> Option<Self> {
        [Self::Rtp, Self::Rtcp, Self::Sdp].into_iter().find(|kind| *kind as u8 == header & 0xC0)
    }
}

//! Format of the packets of a stream of RTP.
//!
//! The layers of such a stream are called [`LAYERS`]. Each of their packets has a header:
//!
//! | bytes | contents |
//! | --- | --- |
//! | 1 | kind (2 bits: RTP, RTCP, SDP), begin of a frame (1 bit), 0 (1 bit), track (4 bits) |
//! | 2 | RTP only: packets of the track's base before this one |
//! | rest | the datagram, or the session description |
//!
//! A receiver subtracts these counts from those of RTP, so it knows how many packets of which kind
//! are missing between two that arrived.

/// Names of the layers of a stream of RTP. Other streams cannot have such layers.
pub const LAYERS: [&str; 3] = ["rtp-base", "rtp-enh1", "rtp-enh2"];
/// Prefix of these names.
pub const LAYER_PREFIX: &str = "rtp-";

/// Layer of the base.
pub(super) const BASE: usize = 0;
/// Bit of the header of the first packet of a frame.
pub(super) const FIRST_OF_FRAME: u8 = 0x20;

/// Contents of a packet, in the first two bits of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Rtp = 0,
    Rtcp = 0x40,
    Sdp = 0x80,
}

impl Kind {
    /// Returns the kind that a header names.
    pub(super) fn of(header: u8) -> Option<Self> {
        [Self::Rtp, Self::Rtcp, Self::Sdp].into_iter().find(|kind| *kind as u8 == header & 0xC0)
    }
}

//! Fields of an RTP packet (RFC 3550, section 5.1) that layers and numbers depend on.

/// Length of the fixed header, bytes.
const FIXED: usize = 12;
/// Offset of the sequence number, bytes.
const SEQUENCE: usize = 2;

/// An RTP packet as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpPacket<'a> {
    /// Marks the last packet of a frame of video.
    pub marker: bool,
    /// Number of the codec, which a session description explains.
    pub payload_type: u8,
    /// Number of the packet.
    pub sequence: u16,
    /// Sampling time. All packets of a frame have the same.
    pub timestamp: u32,
    /// Source of the numbers.
    pub ssrc: u32,
    /// Data of the codec, without padding.
    pub payload: &'a [u8],
}

impl<'a> RtpPacket<'a> {
    /// Reads a packet; `None` if it is not RTP, or if its lengths contradict each other.
    #[must_use]
    pub fn read(packet: &'a [u8]) -> Option<Self> {
        let fixed: &[u8; FIXED] = packet.first_chunk()?;
        if fixed[0] >> 6 != 2 || is_rtcp(packet) {
            return None;
        }

        // Contributing sources, then an extension, stand before the payload.
        let sources = 4 * usize::from(fixed[0] & 0x0F);
        let mut payload = packet.get(FIXED + sources..)?;
        if fixed[0] & 0x10 != 0 {
            let extension: &[u8; 4] = payload.first_chunk()?;
            let words = u16::from_be_bytes([extension[2], extension[3]]);
            payload = payload.get(4 + 4 * usize::from(words)..)?;
        }

        // The last byte says how many bytes of padding there are, itself included.
        if fixed[0] & 0x20 != 0 {
            let padding = usize::from(*payload.last()?);
            let length = payload.len().checked_sub(padding).filter(|_| padding > 0)?;
            payload = &payload[..length];
        }

        let word = |at: usize| {
            u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]])
        };
        Some(Self {
            marker: fixed[1] & 0x80 != 0,
            payload_type: fixed[1] & 0x7F,
            sequence: u16::from_be_bytes([fixed[SEQUENCE], fixed[SEQUENCE + 1]]),
            timestamp: word(4),
            ssrc: word(8),
            payload,
        })
    }
}

/// Gives an RTP packet another number.
pub(super) fn renumber(packet: &mut [u8], sequence: u16) {
    if let Some(field) = packet.get_mut(SEQUENCE..SEQUENCE + 2) {
        field.copy_from_slice(&sequence.to_be_bytes());
    }
}

/// Returns whether a datagram is RTCP, also where it shares a port with RTP (RFC 5761, section 4).
#[must_use]
pub fn is_rtcp(packet: &[u8]) -> bool {
    matches!(packet, [first, 192..=223, _, _, ..] if first >> 6 == 2)
}

//! Layers of a video, read from the marks that its codec puts into RTP payloads.
//!
//! Layer 0 is the base. A frame that no other frame refers to is an enhancement: without it the
//! rest decodes as before. Encoders with B-frames or temporal layers mark such frames:
//!
//! | codec | mark | where |
//! | --- | --- | --- |
//! | H.264 | `nal_ref_idc` 0 of a slice | RFC 6184, section 5.3 |
//! | H.265 | temporal id, and types of sub-layer non-reference pictures | RFC 7798, section 1.1.4 |
//! | VP8 | non-reference bit and temporal id of the descriptor | RFC 7741, section 4.2 |
//! | VP9 | temporal and spatial id of the descriptor | RFC 9628, section 4.2 |
//! | AV1 | temporal and spatial id of the OBU extension | RTP payload format for AV1, 4.4 |

use std::fmt;
use std::str::FromStr;

/// A codec, by the name that its payload format has in session descriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// H.264.
    H264,
    /// H.265.
    H265,
    /// VP8.
    Vp8,
    /// VP9.
    Vp9,
    /// AV1.
    Av1,
    /// A codec without layers, such as one for audio.
    Plain,
}

/// Codec of each name; its clock, in Hz; and whether it carries audio.
const NAMES: [Named; 9] = [
    Named { name: "h264", format: "H264/90000", media: "video", codec: Codec::H264 },
    Named { name: "h265", format: "H265/90000", media: "video", codec: Codec::H265 },
    Named { name: "vp8", format: "VP8/90000", media: "video", codec: Codec::Vp8 },
    Named { name: "vp9", format: "VP9/90000", media: "video", codec: Codec::Vp9 },
    Named { name: "av1", format: "AV1/90000", media: "video", codec: Codec::Av1 },
    Named { name: "mp2t", format: "MP2T/90000", media: "video", codec: Codec::Plain },
    Named { name: "opus", format: "opus/48000/2", media: "audio", codec: Codec::Plain },
    Named { name: "pcma", format: "PCMA/8000", media: "audio", codec: Codec::Plain },
    Named { name: "pcmu", format: "PCMU/8000", media: "audio", codec: Codec::Plain },
];

/// A codec that needs no more than its name in a session description.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    name: &'static str,
    /// Name, clock and channels, as `a=rtpmap` has them.
    pub(super) format: &'static str,
    /// Kind of medium, as `m=` has it.
    pub(super) media: &'static str,
    pub(super) codec: Codec,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Returns the codec of this name, in the letters of a command.
pub(super) fn named(name: &str) -> Option<&'static Named> {
    NAMES.iter().find(|named| named.name == name)
}

/// Returns the names of all codecs, for people.
pub(super) fn names() -> String {
    NAMES.map(|named| named.name).join(", ")
}

impl FromStr for Codec {
    type Err = std::convert::Infallible;

    /// Reads the name of a payload format, such as `H264/90000`. One that is not known is plain.
    fn from_str(format: &str) -> Result<Self, Self::Err> {
        let name = format.split('/').next().unwrap_or_default();
        let known = NAMES.iter().find(|named| named.name.eq_ignore_ascii_case(name));
        Ok(known.map_or(Self::Plain, |named| named.codec))
    }
}

/// Layer of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// Layer, 0 being the base.
    Layer(u8),
    /// It goes with the frame that it stands before, such as a message about a picture.
    WithFrame,
}

const BASE: Mark = Mark::Layer(0);

/// Reads the marks of one codec.
#[derive(Clone, Debug)]
pub struct Marks {
    codec: Codec,
    /// AV1: mark of the unit that continues in the next packet.
    continued: Mark,
}

impl Marks {
    /// Returns a reader of the marks of `codec`.
    #[must_use]
    pub fn new(codec: Codec) -> Self {
        Self { codec, continued: BASE }
    }

    /// Returns how many layers the codec may mark.
    #[must_use]
    pub fn layers(&self) -> u8 {
        match self.codec {
            Codec::Plain => 1,
            Codec::H264 => 2,
            Codec::H265 | Codec::Vp8 | Codec::Vp9 | Codec::Av1 => 3,
        }
    }

    /// Returns the layer of the packet with this payload. A payload that makes no sense is the
    /// base, since only a decoder can tell what it is worth.
    pub fn mark(&mut self, payload: &[u8]) -> Mark {
        let mark = match self.codec {
            Codec::Plain => None,
            Codec::H264 => h264(payload),
            Codec::H265 => h265(payload),
            Codec::Vp8 => vp8(payload),
            Codec::Vp9 => vp9(payload),
            Codec::Av1 => self.av1(payload),
        };

        match mark.unwrap_or(BASE) {
            Mark::Layer(layer) => Mark::Layer(layer.min(self.layers() - 1)),
            Mark::WithFrame => Mark::WithFrame,
        }
    }

    /// Reads the aggregation header and the headers of the OBUs that begin in the packet.
    fn av1(&mut self, payload: &[u8]) -> Option<Mark> {
        let (&aggregation, mut rest) = payload.split_first()?;
        let continues_last = aggregation & 0x80 != 0;
        let is_continued = aggregation & 0x40 != 0;
        let count = usize::from(aggregation >> 4 & 3);

        // The packet counts as its most important element does.
        let mut lowest = Mark::WithFrame;
        let mut last = BASE;
        let mut index = 0;
        while !rest.is_empty() {
            // The last of a counted list of elements has no length.
            index += 1;
            let element = if count != 0 && index >= count {
                core::mem::take(&mut rest)
            } else {
                take_leb128(&mut rest).and_then(|length| take(&mut rest, length))?
            };

            // Only the first element can be the rest of one that another packet began.
            last = match index {
                1 if continues_last => self.continued,
                _ => obu(element)?,
            };

            lowest = lowest.min(last);
        }

        self.continued = if is_continued { last } else { BASE };
        Some(lowest)
    }
}

/// Returns the mark of the NAL units in a payload of RFC 6184.
fn h264(payload: &[u8]) -> Option<Mark> {
    const STAP_A: u8 = 24;
    const FU_A: u8 = 28;
    const FU_B: u8 = 29;
    let (&first, mut rest) = payload.split_first()?;
    match first & 0x1F {
        STAP_A => {
            let mut lowest = Mark::WithFrame;
            while !rest.is_empty() {
                let unit = take_sized(&mut rest)?;
                let header = *unit.first()?;
                // An aggregate goes with the most important of its units.
                lowest = lowest.min(h264_unit(header, header & 0x1F));
            }

            Some(lowest)
        }

        // The indicator of a fragment repeats `nal_ref_idc`.
        FU_A | FU_B => Some(h264_unit(first, rest.first()? & 0x1F)),
        kind => Some(h264_unit(first, kind)),
    }
}

fn h264_unit(header: u8, kind: u8) -> Mark {
    let is_referred_to = header & 0x60 != 0;
    match kind {
        _ if is_referred_to => BASE,
        // Slices that no other frame refers to.
        1..=4 => Mark::Layer(1),
        // SEI messages, delimiters and filler are of use with their frame alone.
        6 | 9 | 12 => Mark::WithFrame,
        _ => BASE,
    }
}

/// Returns the mark of the NAL units in a payload of RFC 7798.
fn h265(payload: &[u8]) -> Option<Mark> {
    const AGGREGATION: u8 = 48;
    const FRAGMENT: u8 = 49;
    let header: &[u8; 2] = payload.first_chunk()?;
    let mut rest = &payload[2..];
    match header[0] >> 1 & 0x3F {
        AGGREGATION => {
            let mut lowest = Mark::WithFrame;
            while !rest.is_empty() {
                let unit = take_sized(&mut rest)?;
                let header: &[u8; 2] = unit.first_chunk()?;
                lowest = lowest.min(h265_unit(header[1], header[0] >> 1 & 0x3F));
            }

            Some(lowest)
        }
        FRAGMENT => Some(h265_unit(header[1], rest.first()? & 0x3F)),
        kind => Some(h265_unit(header[1], kind)),
    }
}

fn h265_unit(second: u8, kind: u8) -> Mark {
    let temporal = (second & 7).saturating_sub(1);
    match kind {
        // Even types up to 14 are pictures that none of their sub-layer refers to.
        0..=14 if kind.is_multiple_of(2) => Mark::Layer(temporal.max(1)),
        0..=31 => Mark::Layer(temporal),
        35 | 38..=40 => Mark::WithFrame,
        _ => BASE,
    }
}

/// Returns the mark in the descriptor of RFC 7741.
fn vp8(payload: &[u8]) -> Option<Mark> {
    let (&first, mut rest) = payload.split_first()?;

    // Without the extension the descriptor has one byte, and no temporal id.
    let not_referred_to = u8::from(first & 0x20 != 0);
    if first & 0x80 == 0 {
        return Some(Mark::Layer(not_referred_to));
    }

    // Fields stand in this order, each only if its bit is set (RFC 7741, 4.2).
    let extension = take_byte(&mut rest)?;
    if extension & 0x80 != 0 {
        take_picture_id(&mut rest)?;
    }
    if extension & 0x40 != 0 {
        take_byte(&mut rest)?;
    }

    let temporal = if extension & 0x20 != 0 { take_byte(&mut rest)? >> 6 } else { 0 };
    Some(Mark::Layer(temporal.max(not_referred_to)))
}

/// Returns the mark in the descriptor of RFC 9628.
fn vp9(payload: &[u8]) -> Option<Mark> {
    let (&first, mut rest) = payload.split_first()?;
    if first & 0x80 != 0 {
        take_picture_id(&mut rest)?;
    }
    if first & 0x20 == 0 {
        return Some(BASE);
    }
    let ids = take_byte(&mut rest)?;
    Some(Mark::Layer((ids >> 5) + (ids >> 1 & 7)))
}

/// Returns the mark of an OBU by its header.
fn obu(unit: &[u8]) -> Option<Mark> {
    const SEQUENCE_HEADER: u8 = 1;
    const FRAME_HEADER: u8 = 3;
    const TILE_GROUP: u8 = 4;
    const FRAME: u8 = 6;
    const REDUNDANT_FRAME_HEADER: u8 = 7;
    let (&header, rest) = unit.split_first()?;

    let ids = if header & 4 != 0 { *rest.first()? } else { 0 };
    Some(match header >> 3 & 0x0F {
        FRAME_HEADER | TILE_GROUP | FRAME | REDUNDANT_FRAME_HEADER => {
            // Temporal and spatial id together say how many layers are below.
            Mark::Layer((ids >> 5) + (ids >> 3 & 3))
        }
        SEQUENCE_HEADER => BASE,
        _ => Mark::WithFrame,
    })
}

fn take_byte(rest: &mut &[u8]) -> Option<u8> {
    let (&first, others) = rest.split_first()?;
    *rest = others;
    Some(first)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, others) = rest.split_at_checked(length)?;
    *rest = others;
    Some(taken)
}

/// Takes a unit behind its length in two bytes.
fn take_sized<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take(rest, 2)?;
    take(rest, usize::from(u16::from_be_bytes([length[0], length[1]])))
}

/// Takes the picture id of VP8 and VP9, which has 7 or 15 bits.
fn take_picture_id(rest: &mut &[u8]) -> Option<()> {
    let is_long = take_byte(rest)? & 0x80 != 0;
    if is_long {
        take_byte(rest)?;
    }
    Some(())
}

/// Takes a number of AV1's variable length, of at most 28 bits.
fn take_leb128(rest: &mut &[u8]) -> Option<usize> {
    const LONGEST: u32 = 4;
    let mut value = 0;
    for at in 0..LONGEST {
        let byte = take_byte(rest)?;
        value |= usize::from(byte & 0x7F) << (7 * at);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }

    None
}

//! The outer frame, which is the same for every service.
//!
//! ```text
//!  0      1         3              19          23                       n-16      n
//!  +------+---------+--------------+-----------+------------------------+---------+
//!  | 0xC2 | sender  | salt         | counter   | sealed body            | tag     |
//!  +------+---------+--------------+-----------+------------------------+---------+
//! ```
//! The high half of the first byte marks an ncmesh frame; the low half is the version. The body
//! starts with the service and the kind of frame. The tag authenticates header and body; the body
//! is encrypted as well. `docs/reference/wire-format.md` is the specification.

use crate::cursor::{Reader, Truncated};
use crate::id::{NodeId, Salt, ServiceId};
use crate::identity::Signature;

/// Length of the clear header, bytes.
pub const HEADER_LEN: usize = 23;
/// Length of the authentication tag, bytes.
pub const TAG_LEN: usize = 16;
/// Bytes that the frame adds to a service's body: header, service, kind, tag.
pub const OVERHEAD: usize = HEADER_LEN + 2 + TAG_LEN;

/// Bit of the kind of a frame: whether it gives way to all frames without it.
pub const BACKGROUND: u8 = 0x80;
/// Bit of the kind of a frame: whether the signature of its origin follows the body.
pub const SIGNED: u8 = 0x40;

/// The high half of the first byte of every frame.
const MARK: u8 = 0xC0;
/// Versions of the wire format that a program understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The oldest one.
    pub oldest: u8,
    /// The newest one.
    pub newest: u8,
}

impl Versions {
    /// The versions of this program.
    pub const OWN: Self = Self { oldest: 2, newest: 2 };

    /// Returns whether `version` is one of them.
    #[must_use]
    pub fn contain(self, version: u8) -> bool {
        (self.oldest..=self.newest).contains(&version)
    }

    /// Returns the newest version that this program shares with all `others`. If there is none, it
    /// is the newest of those that it shares with most of them.
    #[must_use]
    pub fn shared(self, others: &(impl Iterator<Item = Self> + Clone)) -> u8 {
        let readers = |version: u8| others.clone().filter(|other| other.contain(version)).count();
        let versions = self.oldest..=self.newest;
        versions.max_by_key(|version| readers(*version)).unwrap_or(self.newest)
    }
}

/// A field of the clear header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderField {
    /// Its first byte in the frame.
    pub offset: usize,
    /// Length, bytes.
    pub len: usize,
    /// Name for people.
    pub label: &'static str,
    /// Its meaning. The table in `docs/reference/wire-format.md` is made of this.
    pub doc: &'static str,
}

/// The fields of the clear header, in the order of the bytes.
pub const HEADER: [HeaderField; 4] = [
    HeaderField {
        offset: 0,
        len: 1,
        label: "mark and version",
        doc: "`0xC2`: the high half `0xC` marks an ncmesh frame, the low half is the version",
    },
    HeaderField {
        offset: 1,
        len: 2,
        label: "sender",
        doc: "id of the node that transmitted this frame, 1 to 65,534; not the one that \
              originated what is in it",
    },
    HeaderField {
        offset: 3,
        len: 16,
        label: "salt",
        doc: "random number of the sender's start; its first half names the start elsewhere",
    },
    HeaderField {
        offset: 19,
        len: 4,
        label: "counter",
        doc: "the sender's frames within the start, from 1",
    },
];

/// The clear header. No two frames of a network have the same header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version of the wire format in which the frame is written.
    pub version: u8,
    /// The node that transmitted this frame, which need not be the source of its content.
    pub sender: NodeId,
    /// Random number of the sender's start.
    pub salt: Salt,
    /// Number of the frame within the start, from 1.
    pub counter: u32,
}

impl Header {
    /// Writes the header into `head`, which has [`HEADER_LEN`] bytes.
    pub(crate) fn write(&self, head: &mut [u8]) {
        head[0] = MARK | self.version;
        head[1..3].copy_from_slice(&self.sender.0.to_be_bytes());
        head[3..19].copy_from_slice(&self.salt.0);
        head[19..23].copy_from_slice(&self.counter.to_be_bytes());
    }
}

/// Reason to drop a received datagram before any service sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The datagram is not an ncmesh frame, or too short for one.
    #[error("not an ncmesh frame")]
    Foreign,
    /// The frame has a version that this program does not support.
    #[error("an ncmesh frame of version {version}")]
    Version {
        /// The version.
        version: u8,
        /// Its sender, by its own word. All versions have the sender behind the first byte.
        sender: Option<NodeId>,
    },
    /// The frame is not sealed with the network's key, or was changed in transit.
    #[error("not sealed with this network's key")]
    Unauthentic,
}

/// The parts of a datagram. Nothing is verified yet.
#[derive(Clone, Copy, Debug)]
pub struct SealedFrame<'a> {
    /// The clear header.
    pub header: Header,
    /// The bytes of the header, which the tag authenticates.
    pub head: &'a [u8],
    /// The encrypted body.
    pub body: &'a [u8],
    /// The authentication tag.
    pub tag: &'a [u8; TAG_LEN],
}

/// Splits a datagram of one of these `versions` into its parts, without verifying them.
///
/// # Errors
/// [`OpenError::Foreign`] or [`OpenError::Version`].
pub fn parse(datagram: &[u8], versions: Versions) -> Result<SealedFrame<'_>, OpenError> {
    // The mark and the version come first: a frame of another version may have another length.
    let mut r = Reader::new(datagram);
    let mark = r.u8().map_err(|_| OpenError::Foreign)?;
    if mark & 0xF0 != MARK {
        return Err(OpenError::Foreign);
    }
    let version = mark & 0x0F;
    if !versions.contain(version) {
        return Err(OpenError::Version { version, sender: r.node().ok() });
    }
    if datagram.len() < OVERHEAD {
        return Err(OpenError::Foreign);
    }

    // The length is checked, so nothing below can be cut off. No tag is verified yet: the header is
    // a claim.
    let mut fields = || {
        let sender = r.node()?;
        let salt = Salt(r.array()?);
        Ok::<_, Truncated>(Header { version, sender, salt, counter: r.u32()? })
    };
    let header = fields().map_err(|_| OpenError::Foreign)?;
    let (head, rest) = datagram.split_at(HEADER_LEN);
    let (body, tag) = rest.split_last_chunk().ok_or(OpenError::Foreign)?;
    Ok(SealedFrame { header, head, body, tag })
}

/// An authenticated and decrypted frame.
#[derive(Clone, Copy, Debug)]
pub struct Opened<'a> {
    /// The clear header.
    pub header: Header,
    /// The service that the frame belongs to.
    pub service: ServiceId,
    /// The kind of frame within the service, without [`BACKGROUND`] and [`SIGNED`].
    pub kind: u8,
    /// Whether the frame is in the background.
    pub is_background: bool,
    /// The fields of the service.
    pub body: &'a [u8],
    /// Signature of the node that says what the frame brings, behind the fields.
    pub signature: Option<Signature>,
}

impl<'a> Opened<'a> {
    /// Parses the decrypted body `plain`.
    pub(crate) fn parse(header: Header, plain: &'a [u8]) -> Result<Self, OpenError> {
        match plain {
            // The two bits are no part of the kind, so services never see them.
            [service, kind, body @ ..] => {
                let service = ServiceId(*service);
                let is_background = kind & BACKGROUND != 0;
                let mut body = body;
                let mut signature = None;

                if kind & SIGNED != 0 {
                    let (fields, last) = body.split_last_chunk().ok_or(OpenError::Foreign)?;
                    body = fields;
                    signature = Some(Signature(*last));
                }

                let kind = kind & !(BACKGROUND | SIGNED);
                Ok(Self { header, service, kind, is_background, body, signature })
            }
            _ => Err(OpenError::Foreign),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_share_the_newest_version_that_all_understand() {
        let versions = |oldest, newest| Versions { oldest, newest };
        let shared = |others: &[Versions]| versions(2, 4).shared(&others.iter().copied());
        assert_eq!(shared(&[]), 4);
        assert_eq!(shared(&[versions(3, 5), versions(2, 4)]), 4);
        assert_eq!(shared(&[versions(3, 5), versions(2, 3)]), 3);
        // Some share none.
        assert_eq!(shared(&[versions(1, 1)]), 4);
        assert_eq!(shared(&[versions(2, 2), versions(4, 5)]), 4);
        assert_eq!(shared(&[versions(2, 2), versions(4, 5), versions(2, 3)]), 2);
    }

    #[test]
    fn fields_of_the_header_are_where_their_description_says() {
        let sender = NodeId(0x0203);
        let salt = Salt([4; 16]);
        let header = Header { version: 2, sender, salt, counter: 0x0506_0708 };
        let mut head = [0; HEADER_LEN];
        header.write(&mut head);
        let written = HEADER.map(|field| head[field.offset..field.offset + field.len].to_vec());
        assert_eq!(written, [vec![0xC2], vec![2, 3], vec![4; 16], vec![5, 6, 7, 8]]);
        let ends = HEADER.map(|field| field.offset + field.len);
        let begins = HEADER.map(|field| field.offset);
        assert_eq!((begins[0], &begins[1..], ends[3]), (0, &ends[..3], HEADER_LEN));
    }
}

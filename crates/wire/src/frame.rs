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

/// Length of the clear header, bytes.
pub const HEADER_LEN: usize = 23;
/// Length of the authentication tag, bytes.
pub const TAG_LEN: usize = 16;
/// Bytes that the frame adds to a service's body: header, service, kind, tag.
pub const OVERHEAD: usize = HEADER_LEN + 2 + TAG_LEN;

/// The high half of the first byte of every frame.
const MARK: u8 = 0xC0;
/// The version of the frames that this program sends and understands.
const VERSION: u8 = 2;

/// Versions of the wire format that a program understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The oldest one, in which hellos are sent, so that all who share a version understand them.
    pub oldest: u8,
    /// The newest one.
    pub newest: u8,
}

impl Versions {
    /// The versions of this program.
    pub const OWN: Self = Self { oldest: VERSION, newest: VERSION };

    /// Returns the newest version that this program shares with all `others`; its oldest one if
    /// there is none.
    #[must_use]
    pub fn shared(self, others: impl Iterator<Item = Self>) -> u8 {
        others.fold(self.newest, |newest, other| newest.min(other.newest)).max(self.oldest)
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
    /// What it is. The table in `docs/reference/wire-format.md` is made of this.
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
        head[0] = MARK | VERSION;
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
        /// Who says that he sent it. All versions have the sender behind the first byte.
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
    pub tag: &'a [u8],
}

/// Splits a datagram into its parts, without verifying them.
///
/// # Errors
/// [`OpenError::Foreign`] or [`OpenError::Version`].
pub fn parse(datagram: &[u8]) -> Result<SealedFrame<'_>, OpenError> {
    // The mark and the version come first: a frame of another version may have another length.
    let mut r = Reader::new(datagram);
    let mark = r.u8().map_err(|_| OpenError::Foreign)?;
    if mark & 0xF0 != MARK {
        return Err(OpenError::Foreign);
    }
    let version = mark & 0x0F;
    if version != VERSION {
        return Err(OpenError::Version { version, sender: r.node().ok() });
    }
    if datagram.len() < OVERHEAD {
        return Err(OpenError::Foreign);
    }

    let mut fields = || {
        Ok::<_, Truncated>(Header { sender: r.node()?, salt: Salt(r.array()?), counter: r.u32()? })
    };
    let header = fields().map_err(|_| OpenError::Foreign)?;
    let (head, rest) = datagram.split_at(HEADER_LEN);
    let (body, tag) = rest.split_at(rest.len() - TAG_LEN);
    Ok(SealedFrame { header, head, body, tag })
}

/// An authenticated and decrypted frame.
#[derive(Clone, Copy, Debug)]
pub struct Opened<'a> {
    /// The clear header.
    pub header: Header,
    /// The service that the frame belongs to.
    pub service: ServiceId,
    /// The kind of frame within the service.
    pub kind: u8,
    /// The fields of the service.
    pub body: &'a [u8],
}

impl<'a> Opened<'a> {
    /// Parses the decrypted body `plain`.
    pub(crate) fn parse(header: Header, plain: &'a [u8]) -> Result<Self, OpenError> {
        match plain {
            [service, kind, body @ ..] => {
                Ok(Self { header, service: ServiceId(*service), kind: *kind, body })
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
        let shared = |others: &[Versions]| versions(2, 4).shared(others.iter().copied());
        assert_eq!(shared(&[]), 4);
        assert_eq!(shared(&[versions(3, 5), versions(2, 4)]), 4);
        assert_eq!(shared(&[versions(3, 5), versions(2, 3)]), 3);
        // It cannot say more to those with whom it shares none.
        assert_eq!(shared(&[versions(1, 1)]), 2);
    }

    #[test]
    fn fields_of_the_header_are_where_their_description_says() {
        let header = Header { sender: NodeId(0x0203), salt: Salt([4; 16]), counter: 0x0506_0708 };
        let mut head = [0; HEADER_LEN];
        header.write(&mut head);
        let written = HEADER.map(|field| head[field.offset..field.offset + field.len].to_vec());
        assert_eq!(written, [vec![0xC2], vec![2, 3], vec![4; 16], vec![5, 6, 7, 8]]);
        let ends = HEADER.map(|field| field.offset + field.len);
        let begins = HEADER.map(|field| field.offset);
        assert_eq!((begins[0], &begins[1..], ends[3]), (0, &ends[..3], HEADER_LEN));
    }
}

//! The outer frame, the same for every service.
//!
//! ```text
//!  0      1         3              11          15                       n-16      n
//!  +------+---------+--------------+-----------+------------------------+---------+
//!  | 0xC1 | sender  | epoch        | counter   | sealed body            | tag     |
//!  +------+---------+--------------+-----------+------------------------+---------+
//! ```
//! The high half of the first byte marks an ncmesh frame, the low half is the version. The body starts
//! with the service and the kind of frame within it. The header is authenticated, the body encrypted too.

use crate::{NodeId, Reader, ServiceId, seal};

/// Length of the clear header, bytes.
pub const HEADER_LEN: usize = 15;
/// Length of the authentication tag, bytes.
pub const TAG_LEN: usize = 16;
/// What the frame adds to a service's body, bytes: header, service, kind, tag.
pub const OVERHEAD: usize = seal::OVERHEAD;

const MARK: u8 = 0xC0;
const VERSION: u8 = 1;

/// The clear header: with it alone every frame of a network is told from every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The node that transmitted this frame (not the one that originated what is in it).
    pub sender: NodeId,
    /// Which start of the sender this is; grows from start to start.
    pub epoch: u64,
    /// Counts the sender's frames within the epoch.
    pub counter: u32,
}

impl Header {
    pub(crate) fn write(&self, head: &mut [u8]) {
        head[0] = MARK | VERSION;
        head[1..3].copy_from_slice(&self.sender.0.to_be_bytes());
        head[3..11].copy_from_slice(&self.epoch.to_be_bytes());
        head[11..15].copy_from_slice(&self.counter.to_be_bytes());
    }
}

/// Why a received datagram is dropped before any service sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Not an ncmesh frame, or too short to be one.
    #[error("not an ncmesh frame")]
    Foreign,
    /// An ncmesh frame of a version this program does not speak.
    #[error("an ncmesh frame of another version")]
    Version,
    /// Not sealed with the network's key, or changed under way.
    #[error("not sealed with this network's key")]
    Unauthentic,
    /// Heard before, or older than what was heard.
    #[error("heard before")]
    Replayed,
}

/// A datagram cut into its parts, nothing verified yet.
#[derive(Clone, Copy, Debug)]
pub struct Unsealed<'a> {
    /// The clear header.
    pub header: Header,
    /// The header's bytes, which the tag authenticates.
    pub head: &'a [u8],
    /// The encrypted body.
    pub sealed: &'a [u8],
    /// The tag.
    pub tag: &'a [u8],
}

/// Cuts a datagram into its parts.
///
/// # Errors
/// [`OpenError::Foreign`] or [`OpenError::Version`].
pub fn parse(datagram: &[u8]) -> Result<Unsealed<'_>, OpenError> {
    let mut r = Reader::new(datagram);
    let mark = r.u8().map_err(|_| OpenError::Foreign)?;
    if mark & 0xF0 != MARK {
        return Err(OpenError::Foreign);
    }
    if mark & 0x0F != VERSION {
        return Err(OpenError::Version);
    }
    if datagram.len() < OVERHEAD {
        return Err(OpenError::Foreign);
    }
    let mut fields = || {
        Ok::<_, crate::Truncated>(Header { sender: r.node()?, epoch: r.u64()?, counter: r.u32()? })
    };
    let header = fields().map_err(|_| OpenError::Foreign)?;
    let (head, rest) = datagram.split_at(HEADER_LEN);
    let (sealed, tag) = rest.split_at(rest.len() - TAG_LEN);
    Ok(Unsealed { header, head, sealed, tag })
}

/// An authenticated frame.
#[derive(Clone, Copy, Debug)]
pub struct Opened<'a> {
    /// The clear header.
    pub header: Header,
    /// The service whose frame this is.
    pub service: ServiceId,
    /// Which of the service's frames.
    pub kind: u8,
    /// The service's own fields.
    pub body: &'a [u8],
}

impl<'a> Opened<'a> {
    pub(crate) fn parse(header: Header, plain: &'a [u8]) -> Result<Self, OpenError> {
        match plain {
            [service, kind, body @ ..] => {
                Ok(Self { header, service: ServiceId(*service), kind: *kind, body })
            }
            _ => Err(OpenError::Foreign),
        }
    }
}

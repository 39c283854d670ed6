//! Messages of generic netlink, by which kernel and programs talk about Wi-Fi.
//!
//! A message has two headers and attributes. Numbers are those of `linux/netlink.h` and
//! `linux/genetlink.h`, in the byte order of the machine. What comes in is read without trust in
//! its lengths.

use std::io;

use rtnetlink::packet_core::NLM_F_REQUEST;
use rtnetlink::sys::Socket;

/// Type of messages to the controller of generic netlink, its command that asks for a family, and
/// the attributes of that.
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// Type of messages that carry an error, zero for an acknowledgment.
pub const ERROR: u16 = 2;
/// Type of the message behind the last answer.
pub const DONE: u16 = 3;
/// Length of the header of netlink, bytes.
pub const HEADER: usize = 16;
/// Where the attributes of a message begin: behind both headers, bytes.
pub const BODY: usize = HEADER + 4;
/// Bits of an attribute's type that are flags.
const FLAGS: u16 = 0xC000;

/// Headers of a message.
#[derive(Clone, Copy)]
pub struct Header {
    /// Number of the family.
    pub kind: u16,
    /// Flags of netlink.
    pub flags: u16,
    /// Command of the family.
    pub command: u8,
}

/// Attribute of a message.
pub struct Attribute<'a> {
    /// Its number in the family.
    pub kind: u16,
    /// Its value, at most 65,531 bytes.
    pub value: &'a [u8],
}

/// Returns the number that the family of this name has in messages.
///
/// # Errors
/// Any of the socket, and [`io::ErrorKind::Unsupported`] if the kernel has no such family.
pub fn family(socket: &Socket, name: &str) -> io::Result<u16> {
    let header = Header { kind: CONTROLLER, flags: NLM_F_REQUEST, command: GET_FAMILY };
    let name = [name.as_bytes(), &[0]].concat();
    socket.send(&request(header, &[Attribute { kind: FAMILY_NAME, value: &name }]), 0)?;
    let answer = socket.recv_from_full()?.0;
    let family = attribute(body(&answer), FAMILY_ID).and_then(|id| id.first_chunk().copied());
    family.map(u16::from_ne_bytes).ok_or(io::ErrorKind::Unsupported.into())
}

/// Returns a message with these attributes.
pub fn request(header: Header, attributes: &[Attribute<'_>]) -> Vec<u8> {
    // Each attribute is padded to four bytes, but its own length counts without the padding.
    let length = |attribute: &Attribute<'_>| (4 + attribute.value.len()).next_multiple_of(4);
    let length = BODY + attributes.iter().map(length).sum::<usize>();

    let mut message = Vec::with_capacity(length);
    message.extend((length as u32).to_ne_bytes());
    message.extend(header.kind.to_ne_bytes());
    message.extend(header.flags.to_ne_bytes());
    // Sequence number and port, for which a socket of one question has no use.
    message.extend([0; 8]);
    // Command, version of the interface, and two reserved bytes.
    message.extend([header.command, 1, 0, 0]);

    for Attribute { kind, value } in attributes {
        message.extend((4 + value.len() as u16).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(*value);
        message.resize(message.len().next_multiple_of(4), 0);
    }
    message
}

/// Returns the messages of a datagram.
pub fn messages(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    core::iter::from_fn(move || {
        let length = usize::try_from(u32::from_ne_bytes(*bytes.first_chunk()?)).ok()?;
        // A length below that of the header is refused, or the loop would never end.
        let message = bytes.get(..length).filter(|_| length >= HEADER)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

/// Returns the outcome that an acknowledgment tells.
///
/// # Errors
/// The kernel's error, or [`io::ErrorKind::InvalidData`] if this is no acknowledgment.
pub fn outcome(answer: &[u8]) -> io::Result<()> {
    let code = answer.get(HEADER..).and_then(|code| code.first_chunk().copied());
    match code.map(i32::from_ne_bytes) {
        Some(0) if kind(answer) == Some(ERROR) => Ok(()),
        // The kernel tells errors as negative numbers.
        Some(code) if kind(answer) == Some(ERROR) => {
            Err(io::Error::from_raw_os_error(code.saturating_neg()))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Returns the type of a message.
pub fn kind(message: &[u8]) -> Option<u16> {
    message.get(4..6).map(|kind| u16::from_ne_bytes([kind[0], kind[1]]))
}

/// Returns the command of a message; `None` of an error.
pub fn command(message: &[u8]) -> Option<u8> {
    if kind(message) == Some(ERROR) { None } else { message.get(HEADER).copied() }
}

/// Returns the attributes of a message; none of an error.
pub fn body(message: &[u8]) -> &[u8] {
    if kind(message) == Some(ERROR) {
        return &[];
    }
    message.get(BODY..).unwrap_or_default()
}

/// Returns the number that the attribute `wanted` holds.
pub fn number(bytes: &[u8], wanted: u16) -> Option<u32> {
    attribute(bytes, wanted)?.first_chunk().copied().map(u32::from_ne_bytes)
}

/// Returns the value of the attribute `wanted`.
pub fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    while let Some(header) = bytes.first_chunk::<4>() {
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]) & !FLAGS;
        // A length below that of the header is refused, or the loop would never end.
        let value = bytes.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
    None
}

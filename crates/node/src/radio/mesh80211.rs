//! Whether a Wi-Fi mesh interface (802.11s) forwards frames by itself: asked of nl80211.
//!
//! With `mesh_fwding`, which is the default, every node of the mesh hears every other one through
//! the kernel's own forwarding. There are no hops left to code over, and each broadcast is repeated
//! by all. Nodes of ncmesh then take everyone for a neighbour.

use rtnetlink::packet_core::NLM_F_REQUEST;
use rtnetlink::sys::Socket;
use rtnetlink::sys::protocols::NETLINK_GENERIC;
use std::io;

/// Type of messages to the controller of generic netlink, its command that asks for a family, and
/// the attributes of that (`linux/genetlink.h`).
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// Command of nl80211 that asks for the settings of a mesh interface, and the attributes of that
/// (`linux/nl80211.h`).
const GET_MESH_CONFIG: u8 = 28;
const IFINDEX: u16 = 3;
const MESH_CONFIG: u16 = 35;
const FORWARDING: u16 = 19;
/// Lengths of the headers of netlink and of generic netlink, bytes.
const HEADER: usize = 16;
const GENERIC_HEADER: usize = 4;
/// Type of messages that carry an error.
const ERROR: u16 = 2;
/// Bits of an attribute's type that are flags.
const FLAGS: u16 = 0xC000;

/// Returns whether the interface forwards frames by itself. `None` if it is not in a mesh, or the
/// kernel does not say.
pub(super) fn forwards(index: u32) -> Option<bool> {
    ask(index).ok().flatten()
}

fn ask(index: u32) -> io::Result<Option<bool>> {
    let socket = Socket::new(NETLINK_GENERIC)?;
    socket.send(&request(CONTROLLER, GET_FAMILY, FAMILY_NAME, b"nl80211\0"), 0)?;
    let answer = socket.recv_from_full()?.0;
    let family = attribute(body(&answer), FAMILY_ID).and_then(|id| id.first_chunk().copied());
    let Some(family) = family.map(u16::from_ne_bytes) else { return Ok(None) };
    socket.send(&request(family, GET_MESH_CONFIG, IFINDEX, &index.to_ne_bytes()), 0)?;
    Ok(parse_forwarding(&socket.recv_from_full()?.0))
}

/// Returns a request with one attribute.
fn request(kind: u16, command: u8, attribute: u16, value: &[u8]) -> Vec<u8> {
    let value_len = 4 + value.len();
    let length = HEADER + GENERIC_HEADER + value_len.next_multiple_of(4);
    let mut message = Vec::with_capacity(length);
    message.extend((length as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    // Sequence number and port, for which a socket of one question has no use.
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend((value_len as u16).to_ne_bytes());
    message.extend(attribute.to_ne_bytes());
    message.extend(value);
    message.resize(length, 0);
    message
}

fn parse_forwarding(answer: &[u8]) -> Option<bool> {
    let config = attribute(body(answer), MESH_CONFIG)?;
    attribute(config, FORWARDING)?.first().map(|forwards| *forwards != 0)
}

/// Returns the attributes of an answer; none of an error.
fn body(message: &[u8]) -> &[u8] {
    let kind = message.get(4..6).map(|kind| u16::from_ne_bytes([kind[0], kind[1]]));
    if kind == Some(ERROR) {
        return &[];
    }
    message.get(HEADER + GENERIC_HEADER..).unwrap_or_default()
}

/// Returns the value of the attribute `wanted`.
fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    while let Some(header) = bytes.first_chunk::<4>() {
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]) & !FLAGS;
        let value = bytes.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an attribute with its padding.
    fn attribute_of(kind: u16, value: &[u8]) -> Vec<u8> {
        request(0, 0, kind, value)[HEADER + GENERIC_HEADER..].to_vec()
    }

    #[test]
    fn forwarding_is_found_among_other_settings() {
        for forwarding in [0, 1] {
            let settings =
                [attribute_of(6, &[31]), attribute_of(FORWARDING, &[forwarding])].concat();
            let answer = [
                request(30, GET_MESH_CONFIG, IFINDEX, &7_u32.to_ne_bytes()),
                attribute_of(MESH_CONFIG | 0x8000, &settings),
            ];
            assert_eq!(parse_forwarding(&answer.concat()), Some(forwarding == 1));
        }
    }

    #[test]
    fn answers_that_say_nothing_are_survived() {
        let error = request(ERROR, 0, 0, &[0; 40]);
        let other = request(30, GET_MESH_CONFIG, IFINDEX, &[0; 4]);
        for answer in [&[][..], &[0; 3], &[255; 64], &[0; 64], &error, &other] {
            assert_eq!(parse_forwarding(answer), None);
        }
        // The loopback interface is in no mesh.
        assert_eq!(forwards(1), None);
    }
}

//! Watch of a network interface by rtnetlink: link, addresses, neighbours.

use super::interface::{Applied, Interface};
use rtnetlink::MulticastGroup;
use rtnetlink::packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::address::AddressMessage;
use rtnetlink::packet_route::link::LinkMessage;
use rtnetlink::packet_route::neighbour::NeighbourMessage;
use rtnetlink::sys::protocols::NETLINK_ROUTE;
use rtnetlink::sys::{AsyncSocket, AsyncSocketExt, Socket, SocketAddr, TokioSocket};
use std::io;

/// Messages that the kernel sends without being asked.
const GROUPS: [MulticastGroup; 4] = [
    MulticastGroup::Link,
    MulticastGroup::Ipv4Ifaddr,
    MulticastGroup::Ipv6Ifaddr,
    MulticastGroup::Neigh,
];

/// Keeps an [`Interface`] up to date.
pub(super) struct Watch {
    /// The configured name or pattern.
    wanted: String,
    socket: TokioSocket,
    interface: Interface,
}

impl Watch {
    /// Begins to watch the interface `wanted`, a name or a pattern, whether or not it exists. Call
    /// it within a tokio runtime.
    pub(super) fn open(wanted: &str) -> io::Result<Self> {
        // Changes while it is asked are told afterwards.
        let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
        let groups = GROUPS.iter().fold(0, |all, group| all | 1 << (*group as u32 - 1));
        socket.socket_mut().bind(&SocketAddr::new(0, groups))?;
        Ok(Self { wanted: wanted.into(), socket, interface: Self::look(wanted)? })
    }

    /// Returns the interface `name` as it is now.
    pub(super) fn look(name: &str) -> io::Result<Interface> {
        let mut interface = Interface::new(name);
        ask(&Socket::new(NETLINK_ROUTE)?, &mut interface)?;
        Ok(interface)
    }

    /// Returns the interface as it is known.
    pub(super) fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Waits until the kernel tells something. Returns whether it is about the interface.
    /// Cancel-safe.
    pub(super) async fn changed(&mut self) -> io::Result<bool> {
        let applied = match self.socket.recv_from_full().await {
            Ok((bytes, _)) => apply(&bytes, &mut self.interface).0,
            // The kernel told more than it had room for: ask for all of it.
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) => {
                Applied::Replaced
            }
            Err(e) => return Err(e),
        };
        if applied == Applied::Replaced {
            *self = Self::open(&self.wanted)?;
        }
        Ok(applied != Applied::Elsewhere)
    }
}

/// Asks the kernel for all links, addresses and neighbours, one after the other.
fn ask(socket: &Socket, interface: &mut Interface) -> io::Result<()> {
    // Addresses and neighbours refer to a link by its index, so links come first.
    for question in [
        RouteNetlinkMessage::GetLink(LinkMessage::default()),
        RouteNetlinkMessage::GetAddress(AddressMessage::default()),
        RouteNetlinkMessage::GetNeighbour(NeighbourMessage::default()),
    ] {
        let mut message = NetlinkMessage::from(question);
        message.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        message.finalize();

        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        // One dump at a time: the kernel refuses a second one until the answer has ended.
        socket.send(&bytes, 0)?;
        while let (_, false) = apply(&socket.recv_from_full()?.0, interface) {}
    }
    Ok(())
}

/// Takes the messages of one datagram. Returns what they mean, and whether an answer ended.
fn apply(mut bytes: &[u8], interface: &mut Interface) -> (Applied, bool) {
    let mut applied = Applied::Elsewhere;
    let mut ended = false;

    while !bytes.is_empty() {
        // A message that this version cannot read is of a kind that it does not need.
        let Some(length) = bytes.first_chunk().map(|length| u32::from_ne_bytes(*length) as usize)
        else {
            break;
        };

        if let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes) {
            match message.payload {
                NetlinkPayload::InnerMessage(inner) => {
                    applied = applied.max(interface.apply(&inner));
                }
                // An error ends an answer as well, or the caller would wait for ever.
                NetlinkPayload::Done(_) | NetlinkPayload::Error(_) => ended = true,
                _ => {}
            }
        }

        // Messages are aligned to four bytes.
        bytes = bytes.get(length.max(4).next_multiple_of(4)..).unwrap_or_default();
    }
    (applied, ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radio::interface::Trouble;

    #[tokio::test]
    async fn the_loopback_interface_is_found_and_another_is_not() {
        let lo = Watch::open("lo").unwrap();
        assert!(lo.interface().index().is_some());
        let nowhere = Watch::open("nowhere9").unwrap();
        assert_eq!(nowhere.interface().trouble(), Some(Trouble::Missing(None)));
    }

    #[test]
    fn messages_that_are_cut_off_or_no_messages_are_survived() {
        let mut interface = Interface::new("wlan0");
        for bytes in [&[][..], &[0; 3], &[0; 40], &[255; 40], &[16, 0, 0, 0, 1, 2]] {
            assert_eq!(apply(bytes, &mut interface).0, Applied::Elsewhere);
        }
    }
}

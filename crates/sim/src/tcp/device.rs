//! What a TCP stack has in the place of a network card: packets in, and a short queue of packets out.

use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::time::Instant;
use std::collections::VecDeque;

/// Packets that wait here at most before the stack is asked to wait: about what Linux lets a connection queue
/// below TCP.
const BACKLOG: usize = 2;

/// A card for IP packets.
#[derive(Debug)]
pub(super) struct Card {
    mtu: usize,
    pub received: VecDeque<Vec<u8>>,
    pub sent: VecDeque<Vec<u8>>,
}

impl Card {
    pub(super) fn new(mtu: usize) -> Self {
        Self { mtu, received: VecDeque::new(), sent: VecDeque::new() }
    }

    /// Whether it takes another packet of the stack's own accord; answers it takes always.
    pub(super) fn has_room(&self) -> bool {
        self.sent.len() < BACKLOG
    }
}

/// A received packet.
pub(super) struct Received(Vec<u8>);

/// Room for a packet.
pub(super) struct Room<'a>(&'a mut VecDeque<Vec<u8>>);

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl phy::TxToken for Room<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut packet = vec![0; len];
        let result = write(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Card {
    type RxToken<'a> = Received;
    type TxToken<'a> = Room<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received, Room<'_>)> {
        let packet = self.received.pop_front()?;
        Some((Received(packet), Room(&mut self.sent)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Room<'_>> {
        Some(Room(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }
}

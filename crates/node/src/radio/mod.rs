//! What the daemon asks of a radio: the pull handshake.
//!
//! The daemon [`request`](Radio::request)s the medium while it has something to send. When the medium is free
//! the radio says [`RadioEvent::Grant`]; the daemon answers at once with [`transmit`](Radio::transmit), a frame
//! made at that moment, or with [`decline`](Radio::decline). What became of a frame comes as
//! [`RadioEvent::Report`]; then the next may be requested. So never more than one frame waits in a radio.

pub mod air;
mod pacing;
pub mod udp;

use ncmesh_engine::TxReport;
use ncmesh_wire::NodeId;
use std::future::Future;
use std::io;

/// What a radio tells the daemon.
#[derive(Clone, Debug, PartialEq)]
pub enum RadioEvent<A> {
    /// The medium is free: transmit or decline.
    Grant,
    /// A frame was heard; it lies in the buffer given.
    Received {
        /// Who sent it, as far as the radio can tell.
        from: A,
    },
    /// The frame given last has left or is given up.
    Report(TxReport),
}

/// A radio. Every error means that it is of no use any more.
pub trait Radio {
    /// By what the radio tells its neighbours apart.
    type Address: Copy;

    /// What it is, for people: `udp on wlan0, port 7117`.
    fn describe(&self) -> String;

    /// An authenticated frame of `node` came from `address`.
    fn learn(&mut self, node: NodeId, address: Self::Address);

    /// Asks for the medium, for one frame. Not asked again before the grant; but a request for the next frame
    /// may come before the answer to the present grant, so that the medium need not fall idle between them.
    fn request(&mut self) -> impl Future<Output = io::Result<()>>;

    /// Answers a grant: sends `frame`, to all (`None`) or with the MAC's acknowledgment to one neighbour.
    fn transmit(
        &mut self,
        frame: &[u8],
        to: Option<NodeId>,
    ) -> impl Future<Output = io::Result<()>>;

    /// Answers a grant: nothing to send after all.
    fn decline(&mut self) -> impl Future<Output = io::Result<()>>;

    /// The next event; a received frame replaces what is in `buffer`. The future may be dropped at any time
    /// without losing anything.
    fn event(
        &mut self,
        buffer: &mut Vec<u8>,
    ) -> impl Future<Output = io::Result<RadioEvent<Self::Address>>>;
}

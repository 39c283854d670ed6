//! The frames of plain forwarding. Layout in bytes: `docs/reference/wire-format.md`.

use ncmesh_engine::Malformed;
use ncmesh_engine::time::Duration;
use ncmesh_engine::tunnel::DATA;
use ncmesh_wire::layout::Layout;
use ncmesh_wire::record::field;
use ncmesh_wire::{NodeId, Record, Writer, frame, record};

/// Kind of a frame that tells the nodes before its sender whether to wait.
pub(crate) const QUEUE: u8 = 2;

/// Frames of this engine.
pub(crate) const LAYOUTS: &[Layout] = &[
    Layout::of::<Data<'_>>(DATA, "data", "{packet.source} to {packet.destination} by {next_hop}"),
    Layout::of::<Queue>(QUEUE, "queue", "wait for {pause} ms"),
];

record! {
    /// Header of a data frame, before its packet.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Header {
        /// the node that is to send it on, or is its destination; others ignore it
        pub next: NodeId = field("next_hop", "Next hop"),
        /// where it comes from
        pub source: NodeId = field("packet.source", "Source"),
        /// where it goes
        pub destination: NodeId = field("packet.destination", "Destination"),
        check differ(source, destination),
        /// hops that it may still go, this one included; 64 at its source
        pub hops_left: u8 = field("packet.hops", "Hops left").at_least(1),
    }
}

record! {
    /// A data frame.
    struct Data<'a> {
        header: Header,
        packet: &'a [u8] = field("packet.bytes", "Packet").rest(1, usize::MAX),
    }
}

impl Header {
    /// Length of the header, bytes.
    pub(crate) const LEN: usize = <Self as Record>::LEN;

    /// Appends the header.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.put(&mut Writer::new(out));
    }

    /// Reads a frame body: the header, and the packet behind it.
    ///
    /// # Errors
    /// [`Malformed`] if it is not as [`Data`] says.
    pub(crate) fn parse(body: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        Data::from_body(body).map(|data| (data.header, data.packet))
    }
}

/// Request of a node to those that send packets to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    /// How long to send none that it has to pass on, whole ms; zero: there is room.
    pub pause: Duration,
}

frame! {
    pub(crate) impl Queue as Queue { pause } => Queue { pause: Duration::from_millis(ms.into()) } {
        /// ms for which to send it nothing that it has to pass on; 0: there is room
        ms: u16 = field("pause", "Pause") => (pause.as_secs_f64() * 1e3).ceil() as u16,
    }
}

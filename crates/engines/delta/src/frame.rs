//! Frames of the engine. Layout in bytes: `docs/reference/wire-format.md`.

use ncmesh_engine::stream::LAYERS;
use ncmesh_engine::time::Duration;
use ncmesh_engine::toolkit::hop::Handled;
use ncmesh_engine::toolkit::live::{ANNOUNCEMENT, Timed};
use ncmesh_engine::{Malformed, Summary};
use ncmesh_wire::layout::Layout;
use ncmesh_wire::record::{Named, bits, field, group};
use ncmesh_wire::{FlowId, NodeId, Record, Writer, frame, record};

/// Name of the scheme.
pub const NAME: &str = "delta";

/// Kind of a frame with a packet, or a combination of packets.
pub(crate) use ncmesh_engine::transmission::DATA;
/// Kind of a report: what a node has, and from which neighbour it wants the rest.
pub(crate) const REPORT: u8 = 2;

/// Frames of this engine.
pub(crate) const LAYOUTS: &[Layout] = &[
    Layout::of::<Data<'_>>(
        DATA,
        "data",
        "{flow} layer {stream.layer}, packets from {stream.first}",
    ),
    Layout::of::<State>(REPORT, "report", "{flow}: {membership.receivers} receivers by {parent}"),
    Layout::of::<Timed>(
        ANNOUNCEMENT,
        "announcement",
        "{flow} to group {stream.group}, {stream.layers} layers",
    ),
];

/// Most packets from the first to the last of a combination.
pub(crate) const WIDTH: u32 = 64;
/// Most next hops that one frame asks. Others are asked by the next frame.
pub(crate) const MAX_ASKED: usize = 8;
/// Bytes of the map of packets behind the first one that is missing: 256 packets.
pub(crate) const MAX_MAP: usize = 32;
/// Highest number of a packet, so that sums of numbers do not overflow.
pub(crate) const LAST: u32 = 1 << 31;

/// Unit of the ages of packets.
const AGE_UNIT: Duration = Duration::from_micros(250);

/// One layer at a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Have {
    /// Packets before it the node gave up or passed on.
    pub oldest: u32,
    /// Packets before it the node has, or needs no more; [`NEW`](Self::NEW) if it knows of none.
    pub needs: u32,
    /// Bits of the packets behind that one, the next one lowest in the first byte.
    pub map: Vec<u8>,
}

record! {
    impl Have as Have { oldest, needs, map }
        => Have { oldest, needs: Have::needs_of(oldest, ahead), map }
    {
        /// packets before it the node gave up or passed on; it sends them no more
        oldest: u32 = field("oldest", "Oldest packet").within(0, LAST as u64),
        /// from that one to the first that the node lacks and needs; 65535: it knows of none yet
        ahead: u16 = field("ahead", "Packets in a row") => Have::ahead_of(*oldest, *needs),
        /// bytes that follow
        count: u8 = field("map.length", "Length of the map").within(0, MAX_MAP as u64)
            => map.len() as u8,
        /// bits of the packets behind that one, the next one lowest in the first byte: 1 if the
        /// node has it, or a combination that it leads
        map: Vec<u8> as long as count = field("map", "Map"),
    }
}

impl Have {
    /// Stands for `needs` while a node knows of no packet.
    pub(crate) const NEW: u32 = u32::MAX;
    /// Stands for it on the air.
    const NEW_AHEAD: u16 = u16::MAX;

    fn needs_of(oldest: u32, ahead: u16) -> u32 {
        if ahead == Self::NEW_AHEAD { Self::NEW } else { oldest + u32::from(ahead) }
    }

    fn ahead_of(oldest: u32, needs: u32) -> u16 {
        if needs == Self::NEW {
            return Self::NEW_AHEAD;
        }
        needs.saturating_sub(oldest).min(u32::from(Self::NEW_AHEAD) - 1) as u16
    }
}

frame! {
    /// Everything that a node says of itself in each frame of a stream.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) struct State {
        /// the stream
        pub flow: FlowId = field("flow", "Flow"),
        /// counts the frames of this stream that the node sent, modulo 2^16
        pub number: u16 = field("frame", "Frame number"),
        /// the neighbour that it wants the stream from; itself if there is none
        pub parent: NodeId = field("parent", "Parent"),
        /// reached through the node, itself included; 0: it takes no part, or leaves
        pub receivers: u16 = field("membership.receivers", "Receivers"),
        byte {
            /// the node has next hops, so its packets say what it has
            pub feeds: bool = FEEDS,
            /// the layers that it wants, the base lowest
            pub wants: u8 = bits(0xf0, "membership.wants", "Wanted layers"),
        }
        /// age of the oldest packet of the base that a node behind it lacks, in 1/255 of the
        /// deadline
        pub lag: u8 = field("lag", "Lag"),
        pub handled: Handled,
        /// share of its parent's latest frames that it heard, in 1/255; 0: too few are known
        pub heard: u8 = field("heard", "Heard"),
        /// how many follow
        count: u8 = field("stream.layers", "Layers").within(0, LAYERS as u64)
            => layers.len() as u8,
        /// what it has of each layer, the base first
        pub layers: Vec<Have> as many as count = group("have", "Layer", "{ahead} from {oldest}"),
    }
}

/// Whether a node has next hops.
const FEEDS: Named = bits(1, "feeds", "Feeds");

impl State {
    /// Returns the length of its frame body, bytes.
    pub(crate) fn len(&self) -> usize {
        let layers = self.layers.iter().map(|layer| Have::LEN + layer.map.len());
        <Self as Record>::LEN + layers.sum::<usize>()
    }
}

record! {
    /// The combination in a data frame.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) struct Head {
        pub state: State,
        /// how many follow
        asked_count: u8 = field("asked", "Asked").within(0, MAX_ASKED as u64)
            => asked.len() as u8,
        /// the next hops that are to report, one after the other
        pub asked: Vec<NodeId> as many as asked_count = field("asked.node", "Asked node"),
        /// 0 is the base
        pub layer: u8 = field("stream.layer", "Layer").within(0, LAYERS as u64 - 1),
        /// number of the first packet in the combination
        pub first: u32 = field("stream.first", "First packet").within(0, LAST as u64),
        /// of that packet, in quarters of a millisecond
        pub age_of_first: u16 = field("age.first", "Age of the first"),
        /// of the last packet in the combination, in quarters of a millisecond
        pub age_of_last: u16 = field("age.last", "Age of the last"),
        /// behind the first one in the combination
        further: u8 = field("further", "Further packets").within(0, WIDTH as u64 - 1)
            => coefficients.len() as u8,
        /// of the further packets; that of the first one is 1
        pub coefficients: Vec<u8> as long as further = field("vector", "Coefficients"),
    }
}

record! {
    /// A data frame.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) struct Data<'a> {
        pub head: Head,
        /// combination of symbols: packets, each behind its length (2) and check (4); zeros. If
        /// empty, the frame only asks
        pub symbol: &'a [u8] = field("payload", "Payload"),
    }
}

impl Head {
    /// Coefficients for which every frame has room.
    pub(crate) const COEFFICIENTS: usize = 4;

    /// Returns the bytes that a data frame of a stream with `layers` needs besides its symbol: one
    /// state without a map for each layer, a node that is asked, and a few coefficients.
    pub(crate) const fn room(layers: usize) -> usize {
        <Self as Record>::LEN + layers * Have::LEN + 2 + Self::COEFFICIENTS
    }

    /// Returns an age as it is written.
    pub(crate) fn age_of(age: Duration) -> u16 {
        (age.as_nanos() / AGE_UNIT.as_nanos()).min(u16::MAX.into()) as u16
    }

    /// Returns an age that was written so.
    pub(crate) fn age(written: u16) -> Duration {
        AGE_UNIT * u32::from(written)
    }

    /// Returns its length without a symbol, bytes.
    pub(crate) fn len(&self) -> usize {
        let fixed = <Self as Record>::LEN - <State as Record>::LEN;
        self.state.len() + fixed + 2 * self.asked.len() + self.coefficients.len()
    }
}

impl<'a> Data<'a> {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.put(&mut Writer::new(out));
    }

    /// Reads a data frame.
    ///
    /// # Errors
    /// [`Malformed`] if it is not as its declaration says.
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        Self::from_body(body)
    }
}

/// Returns what traces show of a frame; `None` if it is malformed.
pub(crate) fn summary(kind: u8, body: &[u8]) -> Option<Summary> {
    let summary = |flow, what| Summary { flow: Some(flow), ..Summary::new(NAME, what) };
    match kind {
        DATA => Some(summary(Data::parse(body).ok()?.head.state.flow, "data")),
        REPORT => Some(summary(State::parse(body).ok()?.flow, "report")),
        ANNOUNCEMENT => Some(summary(Timed::parse(body).ok()?.flow, "announcement")),
        _ => None,
    }
}

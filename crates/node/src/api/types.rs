//! What the HTTP API says and takes, as JSON. The command line uses the same types.

use ncmesh_engine::file::ReceiverState;
use ncmesh_engine::tunnel::RelayMode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// `GET /v1/status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// The node's id.
    pub id: u16,
    /// The node's name.
    pub name: String,
    /// Which start of the node this is.
    pub epoch: u64,
    /// Seconds since the daemon started.
    pub uptime_s: f64,
    /// The radio, for people.
    pub radio: String,
    /// The largest frame, bytes.
    pub mtu: usize,
    /// Where received files go; absent where none are taken.
    pub inbox: Option<PathBuf>,
    /// Nodes heard directly.
    pub neighbors: usize,
    /// Other nodes known.
    pub nodes: usize,
    /// Transfers under way.
    pub transfers_open: usize,
    /// Frames and bytes sent, by service and kind.
    pub sent: Vec<Traffic>,
    /// Frames and bytes heard, by service and kind.
    pub heard: Vec<Traffic>,
    /// Received frames that were dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// The gateway to the tunnel, where this node has one.
    pub tunnel: Option<Tunnel>,
    /// Flows of packets through this node, by any tunnel scheme.
    pub flows: Vec<Flow>,
    /// Streams known here.
    pub streams: Vec<Stream>,
    /// What this node codes of packets that cross, by each tunnel scheme that does so.
    pub coding: Vec<Coding>,
    /// What looks wrong and what to do about it.
    pub hints: Vec<String>,
}

/// The gateway between the host and a tunnel scheme.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tunnel {
    /// The scheme.
    pub scheme: String,
    /// The TUN device.
    pub device: String,
    /// The network namespace it was put into, if another than the daemon's.
    pub namespace: Option<String>,
    /// This node's addresses, with the lengths of their prefixes.
    pub addresses: Vec<String>,
    /// The longest IP packet, bytes.
    pub mtu: usize,
    /// Packets that wait for room.
    pub waiting: usize,
    /// Packets of the host's that the scheme took.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Packets for the host.
    pub packets_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Packets that went no further, by reason.
    pub drops: BTreeMap<String, u64>,
    /// ICMP messages made for the host.
    pub icmp_sent: u64,
    /// TCP connections whose segment size was lowered, each way for itself.
    pub mss_clamped: u64,
}

/// Packets from one node to another, as this node sees them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// The scheme that carries them.
    pub scheme: String,
    /// Where they come from, by name, or by id while the name is unknown.
    pub source: String,
    /// Where they go, likewise.
    pub destination: String,
    /// Packets this node is to transfer yet: of MC2 its credits, else the packets queued here.
    pub credits: u64,
    /// Data frames of the flow heard that were sent to this node, or to more than one.
    pub heard: u64,
    /// Of those, the ones that brought something new.
    pub innovative: u64,
    /// Packets handed up here.
    pub delivered: u64,
    /// Packets given up here.
    pub lost: u64,
}

/// One of `GET /v1/streams`: a live stream as this node sees it. Lists of layers begin with the base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// The stream's id: its source and a number.
    pub id: String,
    /// The scheme that carries it.
    pub scheme: String,
    /// The group it is sent to.
    pub group: String,
    /// Where it comes from, by name, or by id while the name is unknown.
    pub source: String,
    /// Its layers' names.
    pub layers: Vec<String>,
    /// Receivers that are reached through this node, itself included (m).
    pub receivers: u32,
    /// The node it comes from, if this one is in its tree.
    pub parent: Option<String>,
    /// At its source.
    pub sending: Option<StreamSending>,
    /// At a receiver.
    pub receiving: Option<StreamReceiving>,
    /// A queue for each next hop.
    pub queues: Vec<StreamQueue>,
}

/// What the source of a stream took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamSending {
    /// Packets, by layer.
    pub packets: Vec<u64>,
    /// Packets that wait to enter: more came in a slot than may.
    pub waiting: u32,
    /// Packets refused: as many waited as can.
    pub refused: u64,
}

/// What a receiver of a stream got.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamReceiving {
    /// Packets, by layer.
    pub packets: Vec<u64>,
    /// Their bytes.
    pub bytes: Vec<u64>,
    /// Its virtual queue (Z), packets.
    pub z: f64,
    /// Its virtual pressure (Y), packets.
    pub pressure: f64,
    /// What it asks for at least, bit/s; 0 if nothing.
    pub min_rate_bps: f64,
    /// What it got lately, bit/s; absent for the first seconds.
    pub rate_bps: Option<f64>,
    /// What the source sent lately, bit/s; absent for the first seconds.
    pub offered_bps: Option<f64>,
    /// Where layers are played out to, `base=udp:6004`.
    pub playing: Vec<String>,
    /// What keeps it from the rate it asks for.
    pub problem: Option<Problem>,
}

/// What is wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// For programs: `no_path`, `nothing_arrives`, `below_minimum`, `source_sends_less`, `no_such_layer`.
    pub code: String,
    /// For people.
    pub text: String,
}

/// One of `GET /v1/streams/received`: a group that this node joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinedGroup {
    /// The group.
    pub group: String,
    /// Ids of the streams to it that are known here.
    pub streams: Vec<String>,
    /// Where layers are played out to, `base=udp:6004`.
    pub playing: Vec<String>,
}

/// The queue of a stream towards a next hop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamQueue {
    /// The next hop.
    pub to: String,
    /// Receivers behind it (m).
    pub receivers: u32,
    /// Packets held, by layer (their sum and the place-holders are Q).
    pub held: Vec<u32>,
    /// The part of Q that is no packets: the mean virtual pressure of the receivers behind it.
    pub place_holders: f64,
    /// The drop queue (D), packets.
    pub drop_queue: f64,
    /// What the next hop told of its own queues, packets.
    pub downstream: f64,
    /// The differential backlog (W), packets.
    pub weight: f64,
    /// What the link is thought to carry, packets per slot (mu).
    pub rate: f64,
    /// Packets sent, by layer.
    pub sent: Vec<u64>,
    /// Packets dropped, by layer.
    pub dropped: Vec<u64>,
    /// Packets that the radio gave up on.
    pub lost: u64,
}

/// What this node codes of packets that cross.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Coding {
    /// The scheme.
    pub scheme: String,
    /// Data frames sent.
    pub sent: u64,
    /// Of those, the ones with two packets in them.
    pub coded: u64,
    /// Coded over sent: the coding ratio of Huang et al., V-A; absent before the first.
    pub ratio: Option<f64>,
    /// Packets decoded here.
    pub decoded: u64,
    /// Frames with two packets, one of them for this node, that could not be decoded.
    pub undecodable: u64,
    /// Packets sent again because a neighbour missed them.
    pub repeated: u64,
    /// How long packets are held, where the scheme finds that out for itself.
    pub holds: Vec<Hold>,
    /// Neighbours for whom nothing is coded now.
    pub stopped: Vec<Stopped>,
    /// Which relay of CORE this node is, for generations that begin now; absent of schemes that have but one.
    pub relay: Option<RelayMode>,
    /// Whether flows that cross are combined here; absent where that cannot be chosen while the daemon runs.
    pub combines: Option<bool>,
}

/// How long packets of one direction are held for others to be coded with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hold {
    /// From whom they come, by name.
    pub previous: String,
    /// To whom they go, by name.
    pub next: String,
    /// What is best as far as known, s.
    pub hold_s: f64,
}

/// A neighbour for whom nothing is coded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// Its name.
    pub neighbor: String,
    /// What it did, in words.
    pub reason: String,
}

/// Frames of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// The service: `link`, `route` or an engine.
    pub service: String,
    /// Which of its frames.
    pub kind: u8,
    /// Frames.
    pub frames: u64,
    /// Bytes, outer frame included.
    pub bytes: u64,
}

/// One of `GET /v1/peers`: another node of the mesh.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    /// Its id.
    pub id: u16,
    /// Its name, once its link state was heard.
    pub name: Option<String>,
    /// Whether it is heard directly.
    pub neighbor: bool,
    /// Share of this node's broadcasts it receives, 0 to 1.
    pub delivery_to: Option<f64>,
    /// Share of its broadcasts received here, 0 to 1.
    pub delivery_from: Option<f64>,
    /// Expected transmissions to it along the best path; absent while it cannot be reached.
    pub etx: Option<f64>,
    /// Hops of that path.
    pub hops: Option<usize>,
    /// The first node of that path, by name.
    pub next_hop: Option<String>,
    /// Seconds since a frame of it was heard directly.
    pub last_heard_s: Option<f64>,
}

/// Which way a transfer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// This node is its source.
    Sending,
    /// This node receives it.
    Receiving,
}

/// Where a transfer or a receiver stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A receiver that has not answered yet.
    Invited,
    /// Under way.
    Active,
    /// The whole file is being verified.
    Verifying,
    /// A receiver has the whole file, verified; a source has nothing more to send.
    Complete,
    /// A receiver that was reached once and cannot be reached now.
    Lost,
    /// Withdrawn by its source.
    Withdrawn,
    /// A receiver does not take it.
    Refused,
    /// The source cannot send on.
    Failed,
}

impl From<ReceiverState> for State {
    fn from(state: ReceiverState) -> Self {
        match state {
            ReceiverState::Invited => Self::Invited,
            ReceiverState::Active => Self::Active,
            ReceiverState::Complete => Self::Complete,
            ReceiverState::Refused(_) => Self::Refused,
            ReceiverState::Lost => Self::Lost,
        }
    }
}

/// One of `GET /v1/transfers`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// The transfer's id, for instance `3-09ab12ff`.
    pub id: String,
    /// The file's name.
    pub name: String,
    /// Where the file lies here: the source's file, or the received one once it is complete.
    pub path: Option<PathBuf>,
    /// The file's size, bytes.
    pub size: u64,
    /// BLAKE3 of the file, hexadecimal.
    pub hash: String,
    /// The source's name, or its id while its name is unknown.
    pub source: String,
    /// Which way.
    pub direction: Direction,
    /// Where it stands.
    pub state: State,
    /// Why, where it was refused or failed.
    pub reason: Option<String>,
    /// Whether it needs nothing more here.
    pub ended: bool,
    /// Bytes received; at the source, bytes the poorest receiver has.
    pub bytes: u64,
    /// Seconds it took, or has taken so far, since it began or was resumed here.
    pub seconds: f64,
    /// Bytes received in those seconds, kbit/s.
    pub kbit_s: f64,
    /// Receivers, at the source.
    pub receivers: Vec<Receiver>,
    /// Data packets the source itself sent.
    pub source_packets: u64,
    /// Payload bytes of the source's packets over the file's bytes.
    pub source_redundancy: f64,
    /// Nodes that forwarded for it, by name, at the source.
    pub forwarders: Vec<String>,
    /// Packets that brought something new, at a receiver.
    pub innovative: u64,
    /// Packets that did not, at a receiver.
    pub redundant: u64,
    /// Batches whose hash was wrong, at a receiver.
    pub bad_batches: u64,
}

/// One receiver of a transfer, as its source sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receiver {
    /// Its id.
    pub id: u16,
    /// Its name, or its id while its name is unknown.
    pub name: String,
    /// How it stands.
    pub state: State,
    /// Why, where it refused.
    pub reason: Option<String>,
    /// Bytes it acknowledged.
    pub bytes: u64,
    /// Seconds it took, or has taken so far.
    pub seconds: f64,
    /// Bytes acknowledged in those seconds, kbit/s.
    pub kbit_s: f64,
}

/// Who is to get a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Recipients {
    /// The word `all`: every node known, and those that join while it is sent.
    All(All),
    /// These, by name or id.
    Named(Vec<String>),
}

/// The word `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum All {
    /// `all`.
    All,
}

/// `POST /v1/transfers`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendRequest {
    /// The file, an absolute path the daemon can read.
    pub path: PathBuf,
    /// Who is to get it.
    pub to: Recipients,
    /// The name receivers give it; left out, the file's own.
    #[serde(default)]
    pub name: Option<String>,
    /// The engine that sends it; left out, the first there is for files.
    #[serde(default)]
    pub scheme: Option<String>,
}

/// The answer to `POST /v1/transfers`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The transfer's id.
    pub id: String,
}

/// `GET` and `PUT /v1/inbox`. An inbox set so is used until the daemon stops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inbox {
    /// The directory, an absolute path the daemon can write.
    pub dir: Option<PathBuf>,
}

/// `PUT /v1/tunnel`. What is set so holds until the daemon stops; what is left out stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TunnelChange {
    /// The engine that carries what goes out.
    pub scheme: Option<String>,
    /// What this node is as a relay of `core_nc`; it needs no tunnel of its own for that.
    pub relay: Option<RelayMode>,
    /// Whether it combines flows that cross, as a relay of `core_nc` and `cope`.
    pub coding: Option<bool>,
}

/// What went wrong, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The request makes no sense.
    BadRequest,
    /// There is no such thing here.
    NotFound,
    /// The file cannot be read, or cannot be sent as it is.
    File,
    /// No node of that name is known, or none at all.
    UnknownReceiver,
    /// The node is known but cannot be reached now.
    UnreachableReceiver,
    /// The inbox cannot be written.
    Inbox,
    /// A UDP port on this host cannot be had.
    Port,
    /// The transfer ended already.
    Ended,
    /// The daemon is stopping.
    Stopping,
}

/// Every answer that is an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{error}")]
pub struct ApiError {
    /// What went wrong and what to do, one line.
    pub error: String,
    /// What went wrong, for programs.
    pub code: ErrorCode,
}

impl ApiError {
    /// An error.
    pub fn new(code: ErrorCode, error: impl Into<String>) -> Self {
        Self { error: error.into(), code }
    }
}

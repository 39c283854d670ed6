//! JSON types of the HTTP API, which the command line uses too.

pub use ncmesh_console::schema::StreamSending;
use ncmesh_console::schema::{
    CodingValues, FlowValues, NodeValues, PeerValues, PortValues, Position, QueueValues,
    ReceivedValues, SourceValues, StreamReceiverValues,
};
use ncmesh_engine::file::ReceiverState;
use ncmesh_engine::tunnel::RelayMode;
use ncmesh_stack::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use ts_rs::TS;

/// Answer to `GET /v1/status`: state of the node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// The node's id.
    pub id: u16,
    /// The node's name.
    pub name: String,
    /// Its `display_name`, if the configuration gives one.
    #[serde(default)]
    pub display_name: Option<String>,
    /// Number of this start of the node (epoch).
    pub epoch: u64,
    /// Newest version of the [wire format](wire-format.md#versions) that this node and all its
    /// neighbours understand.
    pub wire_version: u8,
    /// Nodes that sent frames of a version in the last minute that this node does not understand,
    /// by id, with that version. Nothing proves who sent them.
    #[serde(default)]
    pub strangers: BTreeMap<u16, u8>,
    /// Ids that two nodes use, this node's own among them, as was noticed in the last minutes.
    #[serde(default)]
    pub duplicates: Vec<u16>,
    /// Whether somebody sent frames in this node's name in the last minutes: with its id and the
    /// salt of its start, and of numbers that it had not used.
    #[serde(default)]
    pub somebody_sends_as_this_node: bool,
    /// Ids under which false packets of files came in the last 5 min.
    #[serde(default)]
    pub liars: Vec<u16>,
    /// Its identity, and what it knows of others'. Absent in `[trust] mode = "key"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Description of the radio, in words; with several ports of all, divided by semicolons.
    pub radio: String,
    /// Length of the largest frame, bytes.
    pub mtu: usize,
    /// Its ports, in the order of the configuration.
    #[serde(default)]
    pub ports: Vec<PortState>,
    /// Directory of received files. Absent if the node accepts none.
    pub inbox: Option<PathBuf>,
    /// Its values.
    #[serde(flatten)]
    pub values: NodeValues,
    /// Parts of files whose sources are gone.
    pub kept: KeptParts,
    /// Runs of the program after a received file (`[inbox] hook`).
    #[serde(default)]
    pub hooks: Hooks,
    /// Use of the channel.
    #[serde(flatten)]
    pub usage: Usage,
    /// Frames and bytes sent, by service and kind.
    pub sent: Vec<Traffic>,
    /// Frames and bytes heard, by service and kind.
    pub heard: Vec<Traffic>,
    /// Received frames that were dropped, by [reason](wire-format.md).
    pub drops: BTreeMap<String, u64>,
    /// The tunnel's gateway, if this node has one.
    pub tunnel: Option<Tunnel>,
    /// Flows of packets through this node, of all tunnel schemes.
    pub flows: Vec<Flow>,
    /// Streams known to this node.
    pub streams: Vec<Stream>,
    /// Coding across flows, for each tunnel scheme that does so.
    pub coding: Vec<Coding>,
    /// Possible problems and what to do about them: foreign keys, files that wait for space or
    /// descriptors, state that cannot be written.
    pub hints: Vec<String>,
}

/// A port of the node: a radio, a cable or a VPN.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortState {
    /// Its name.
    pub name: String,
    /// Description in words.
    pub radio: String,
    /// Whether frames pass it.
    pub up: bool,
    /// Its values.
    #[serde(flatten)]
    pub values: PortValues,
}

/// Port on which a neighbour is heard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeerPort {
    /// Name of the port.
    pub port: String,
    /// Share of the neighbour's broadcasts that arrives there, 0 to 1.
    pub delivery_from: f64,
    /// Whether frames to the neighbour go by this port.
    pub way: bool,
}

/// Parts of files that are kept for when their sources return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptParts {
    /// Number of files.
    pub files: usize,
    /// Bytes of them that are there.
    pub bytes: u64,
}

/// Runs of the program after a received file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hooks {
    /// Number that run now.
    pub running: usize,
    /// Number that ended with exit code 0.
    pub succeeded: u64,
    /// Number that did not start, ended otherwise, or were killed because they took too long.
    pub failed: u64,
    /// Number of files for which none was run because too many waited.
    pub skipped: u64,
}

/// Gateway between the host and a tunnel scheme.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tunnel {
    /// Name of the scheme.
    pub scheme: String,
    /// Why it is this scheme: `as asked`, or `auto: ` and the reason.
    pub scheme_reason: String,
    /// Name of the TUN device.
    pub device: String,
    /// Network namespace of the device, if it is not the daemon's.
    pub namespace: Option<String>,
    /// Addresses of this node, with prefix lengths.
    pub addresses: Vec<String>,
    /// Where addresses lead: routes of the configuration and announcements that are accepted.
    pub routes: Vec<TunnelRoute>,
    /// Multicast groups that this host is a member of and that the mesh carries.
    pub groups: Vec<String>,
    /// Length of the longest IP packet, bytes.
    pub mtu: usize,
    /// Packets that wait because the scheme's queue is full.
    pub waiting: usize,
    /// Packets from the host that the scheme accepted.
    pub packets_out: u64,
    /// Bytes of these packets.
    pub bytes_out: u64,
    /// Packets delivered to the host.
    pub packets_in: u64,
    /// Bytes of these packets.
    pub bytes_in: u64,
    /// Dropped packets by [reason](../guide/tunnel.md#the-gateway).
    pub drops: BTreeMap<String, u64>,
    /// ICMP messages sent to the host.
    pub icmp_sent: u64,
    /// TCP connections whose segment size was lowered, counted for each direction.
    pub mss_clamped: u64,
    /// Packets that were marked for their delay, where others are dropped as `late` (ECN).
    pub ecn_marked: u64,
}

/// Addresses that are reached through a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TunnelRoute {
    /// The addresses.
    pub prefix: String,
    /// Name or id of the node; none while no node has the name, or no path leads there.
    pub node: Option<String>,
    /// Nodes that announce the prefix; none for a route of the configuration.
    pub announced_by: Vec<String>,
}

/// Flow of packets from one node to another, as this node sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flow {
    /// Name of the scheme.
    pub scheme: String,
    /// Name of the source, or its id while the name is unknown.
    pub source: String,
    /// Name of the destination, or its id while the name is unknown.
    pub destination: String,
    /// Its values, as far as this node knows them.
    #[serde(flatten)]
    pub values: FlowValues,
}

/// One element of `GET /v1/streams`: a live stream as this node sees it. Lists of layers begin with
/// the base layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    /// Id of the stream: its source and a number.
    pub id: String,
    /// Name of the scheme.
    pub scheme: String,
    /// Name of the group.
    pub group: String,
    /// Name of the source, or its id while the name is unknown.
    pub source: String,
    /// Names of the layers.
    pub layers: Vec<String>,
    /// Receivers reached through this node, itself included (m).
    pub receivers: u32,
    /// Previous hop, if this node is in the stream's tree.
    pub parent: Option<String>,
    /// State of the source, if it is this node.
    pub sending: Option<StreamSending>,
    /// State of the receiver, if this node is one.
    pub receiving: Option<StreamReceiving>,
    /// Queues, one for each next hop.
    pub queues: Vec<StreamQueue>,
}

/// State of a stream at a receiver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamReceiving {
    /// Its values.
    #[serde(flatten)]
    pub values: StreamReceiverValues,
    /// Ports that layers are written to, for instance `base=udp:6004`.
    pub playing: Vec<String>,
    /// Reason why the receiver does not get the rate it asks for.
    pub problem: Option<Problem>,
}

/// Problem of a receiver and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// [Code](../guide/streams.md#when-something-is-wrong): `no_path`, `nothing_arrives`,
    /// `base_incomplete`, `below_minimum`, `source_sends_less` or `no_such_layer`.
    pub code: String,
    /// Message for people.
    pub text: String,
}

/// One element of `GET /v1/streams/received`: a group that this node joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JoinedGroup {
    /// Name of the group.
    pub group: String,
    /// Ids of the group's streams that are known to this node.
    pub streams: Vec<String>,
    /// Ports that layers are written to, for instance `base=udp:6004`.
    pub playing: Vec<String>,
    /// Session description (SDP) for a player, if the group is played as RTP and its source has
    /// sent one.
    pub sdp: Option<String>,
}

/// Queue of a stream for one next hop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamQueue {
    /// Name of the next hop.
    pub to: String,
    /// Its values.
    #[serde(flatten)]
    pub values: QueueValues,
}

/// Share of coded frames from which on a node is not said to code too little: neighbours that it
/// does not code for then hardly matter.
pub const MOSTLY_CODED: f64 = 0.5;

/// Counters of coding across flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coding {
    /// Name of the scheme.
    pub scheme: String,
    /// Its counters.
    #[serde(flatten)]
    pub values: CodingValues,
    /// Hold times of packets, if the scheme determines them itself.
    pub holds: Vec<Hold>,
    /// Neighbours that this node does not code for at present.
    pub stopped: Vec<Stopped>,
    /// Relay mode of CORE for generations that begin now. Absent for schemes with one mode.
    #[schemars(with = "Option<String>")]
    pub relay: Option<RelayMode>,
    /// Whether crossing flows are combined. Absent if that cannot be changed while the daemon runs.
    pub combines: Option<bool>,
    /// Frames that plain forwarding would have sent for what the next hops got, over those sent.
    /// Absent if the scheme does not reckon it.
    pub gain: Option<f64>,
    /// Why packets that pass here now are not coded, in words. Empty if they are, if none pass, or
    /// if the scheme does not say.
    pub why_not: Vec<String>,
}

/// Hold time: how long packets of one direction wait for others to be coded with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hold {
    /// Name of the previous hop.
    pub previous: String,
    /// Name of the next hop.
    pub next: String,
    /// Present estimate of the best hold time, s.
    pub hold_s: f64,
}

/// Neighbour that this node does not code for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stopped {
    /// Name of the neighbour.
    pub neighbor: String,
    /// Reason, in words.
    pub reason: String,
}

/// Frame counters of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// The service: `link`, `route` or an engine.
    pub service: String,
    /// Kind of frame within the service.
    pub kind: u8,
    /// Number of frames.
    pub frames: u64,
    /// Bytes, outer frame included.
    pub bytes: u64,
}

/// Identity of a node, and what it knows of others'.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Identity {
    /// Beginning of its public key, for people to compare.
    pub fingerprint: String,
    /// Number of its certificate, in a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<u32>,
    /// End of its certificate, seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// Other nodes whose keys it knows.
    pub known: u64,
    /// Certificates that it knows to be revoked.
    pub revoked: u64,
    /// Ids under which states were told in the last 10 min that their keys had not signed.
    #[serde(default)]
    pub conflicts: Vec<u16>,
}

/// One element of `GET /v1/peers`: another node of the mesh.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Peer {
    /// Id of the node.
    pub id: u16,
    /// Name of the node. Absent until its link state was heard.
    pub name: Option<String>,
    /// Where it says that it is, `{"kind": "plan", "x", "y", "z"}` in metres or `{"kind": "earth",
    /// "latitude", "longitude"}` in degrees. Absent until it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// Whether the node is heard directly.
    pub neighbor: bool,
    /// Its values.
    #[serde(flatten)]
    pub values: PeerValues,
    /// Ports on which the node is heard directly.
    #[serde(default)]
    pub ports: Vec<PeerPort>,
    /// Name of the first hop of the best path.
    pub next_hop: Option<String>,
    /// Oldest and newest version of the wire format that a neighbour understands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_versions: Option<[u8; 2]>,
    /// Beginning of its public key, if that is known here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// End of its certificate, seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// Whether states were told under its id in the last 10 min that its key had not signed.
    #[serde(default)]
    pub conflict: bool,
}

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// This node is its source.
    Sending,
    /// This node receives it.
    Receiving,
}

/// State of a transfer or of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The receiver has not answered yet, or has no room for now.
    Invited,
    /// In progress.
    Active,
    /// The whole file is being verified.
    Verifying,
    /// A receiver has the verified file, or a source has nothing more to send.
    Complete,
    /// The other end, receiver or source, was reached before and is unreachable now.
    Lost,
    /// The source is said to have withdrawn the transfer.
    Withdrawn,
    /// The receiver refused the transfer.
    Refused,
    /// The source cannot continue.
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

/// One element of `GET /v1/transfers`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transfer {
    /// Id of the transfer, for instance `3-09ab12ff`.
    pub id: String,
    /// Name of the file.
    pub name: String,
    /// Path of the file on this host: the source's file, or the received one once it is complete.
    pub path: Option<PathBuf>,
    /// Size of the file, bytes.
    pub size: u64,
    /// BLAKE3 hash of the file, hexadecimal.
    pub hash: String,
    /// Name of the source, or its id while the name is unknown.
    pub source: String,
    /// Name of the scheme. Absent if no engine of this node carries the transfer.
    pub scheme: Option<String>,
    /// Why this scheme, at the source only: `as asked`, or `auto: ` and the reason.
    pub scheme_reason: Option<String>,
    /// At the source of a file that gives way to all else: the most of the airtime around a node
    /// that it takes, percent.
    pub background: Option<u8>,
    /// At the source: the most of its data that it sends, bit/s.
    pub limit_bps: Option<u64>,
    /// Direction, as seen from this node.
    pub direction: Direction,
    /// State of the transfer.
    pub state: State,
    /// Reason, if the transfer was refused or failed or cannot go on.
    pub reason: Option<String>,
    /// Whether the transfer has ended at this node.
    pub ended: bool,
    /// How much of the file is there.
    #[serde(flatten)]
    pub values: ReceivedValues,
    /// Receivers; at the source only.
    pub receivers: Vec<Receiver>,
    /// Work of the source.
    #[serde(flatten)]
    pub sent: SourceValues,
    /// Names of the forwarders, at the source only; `cascade` lists none.
    pub forwarders: Vec<String>,
}

/// Receiver of a transfer, as the source sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Receiver {
    /// Id of the receiver.
    pub id: u16,
    /// Name of the receiver, or its id while the name is unknown.
    pub name: String,
    /// State of the receiver.
    pub state: State,
    /// Reason, if it refused.
    pub reason: Option<String>,
    /// How much of the file it has acknowledged.
    #[serde(flatten)]
    pub values: ReceivedValues,
}

/// Receivers of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(untagged)]
pub enum Recipients {
    /// The word `all`: every known node, and those that join while the file is sent.
    All(All),
    /// Nodes by name or id.
    Named(Vec<String>),
}

/// The word `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum All {
    /// `all`.
    All,
}

/// Body of `POST /v1/transfers`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct SendRequest {
    /// Absolute path of a file that the daemon can read.
    pub path: PathBuf,
    /// Receivers.
    pub to: Recipients,
    /// Name of the file at the receivers. The file's own name if absent.
    #[serde(default)]
    #[ts(optional)]
    pub name: Option<String>,
    /// Name of the file scheme; `auto`, the default one, if absent.
    #[serde(default)]
    #[ts(optional)]
    pub scheme: Option<String>,
    /// Sends the file in the background, where it gives way to all else at once: the most of the
    /// airtime around a node that it takes, also alone, 1 to 100 percent.
    #[serde(default)]
    #[ts(optional)]
    pub background: Option<u8>,
    /// The most of the file's data that the source sends, at least 1,000 bit/s. What is sent again
    /// counts, too.
    #[serde(default)]
    #[ts(optional, type = "number")]
    pub limit_bps: Option<u64>,
    /// Its turn among the files that wait, if many are sent at once: 0 to 9, the highest first; 5
    /// if absent.
    #[serde(default)]
    #[ts(optional)]
    pub priority: Option<u8>,
}

/// Answer to `POST /v1/spool`: contents that a transfer can send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spooled {
    /// Path of the contents, for `POST /v1/transfers`. They are removed when that has ended, or
    /// after an hour without one.
    pub path: PathBuf,
}

/// Answer to `POST /v1/transfers`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Started {
    /// Id of the transfer.
    pub id: String,
}

/// Body of `GET` and `PUT /v1/inbox`. A change lasts until the daemon stops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inbox {
    /// Absolute path of a directory that the daemon can write.
    pub dir: Option<PathBuf>,
}

/// Body of `PUT /v1/tunnel`. A change lasts until the daemon stops; absent fields stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TunnelChange {
    /// Tunnel scheme for outgoing packets, or `auto`.
    pub scheme: Option<String>,
    /// Relay mode of `core_nc`. Relays need no tunnel of their own.
    pub relay: Option<RelayMode>,
    /// Whether this node combines crossing flows as a relay of `core_nc` and `cope`.
    pub coding: Option<bool>,
}

/// Kind of an error, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The request is malformed.
    BadRequest,
    /// The resource does not exist.
    NotFound,
    /// The file cannot be read or is unsuitable.
    File,
    /// The release is damaged, signed by too few, or its images are not the ones it names.
    Refused,
    /// No such node is known, or none at all.
    UnknownReceiver,
    /// The node is known but cannot be reached now.
    UnreachableReceiver,
    /// The inbox cannot be written.
    Inbox,
    /// A UDP port of this host is not available.
    Port,
    /// The transfer has ended already.
    Ended,
    /// It can be done once at a time, and is being done.
    Busy,
    /// The daemon is stopping.
    Stopping,
}

/// Body of every error answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS, thiserror::Error)]
#[error("{error}")]
pub struct ApiError {
    /// One line that says what is wrong and what to do.
    pub error: String,
    /// Kind of the error.
    pub code: ErrorCode,
}

impl ApiError {
    /// Returns an error answer.
    pub fn new(code: ErrorCode, error: impl Into<String>) -> Self {
        Self { error: error.into(), code }
    }
}

//! UDP ports of the daemon's streams, and RTP at them. What they are connected to is
//! [`ncmesh_host::streams`].

pub mod ports;
pub(crate) mod rtp;

pub use ncmesh_host::streams::rtp::{MAX_SDP, MAX_TRACKS, PORTS_PER_TRACK, RtpPort};
pub use ncmesh_host::streams::{Input, Layer, ReceiveStream, SendStream, StreamSection};
pub use ports::{IngressPackets, Ports};

//! UDP ports of the daemon's streams. What they are connected to is [`ncmesh_host::streams`].

pub mod ports;

pub use ncmesh_host::streams::{Layer, ReceiveStream, SendStream, StreamSection, check_layers};
pub use ports::{IngressPackets, Ports};

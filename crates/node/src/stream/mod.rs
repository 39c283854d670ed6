//! Streams in the daemon: local UDP ports that layers come in by and are played out to.

pub mod ports;
pub mod request;

pub use ports::{Inlet, Inlets, Ports};
pub use request::{Layer, ReceiveStream, SendStream, StreamSection, check_layers};

//! The command together with real daemons.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops there")]

mod alone;
mod attacked;
mod fleet;
mod interface;
mod limits;
mod live;
mod measure;
mod multicast;
mod port;
mod ports;
mod refused;
mod relayed;
mod soak;
mod sources;
mod support;
mod transfer;
mod trees;
mod trusted;
mod tunnel;

//! Real daemons over the channel emulator: whole meshes, crashes during transfers, and the command
//! itself.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops there")]

mod channels;
mod command;
mod crashes;
mod crossing;
mod flows;
mod rtp;
mod simulated;
mod sizes;
mod streams;
mod support;

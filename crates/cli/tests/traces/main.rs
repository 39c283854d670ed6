//! Traces of `ncmesh simulate`, as Wireshark's own reader sees them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops there")]

mod capture;
mod damaged;
mod events;
mod forged;
mod judged;
mod refused;
mod shown;
mod support;

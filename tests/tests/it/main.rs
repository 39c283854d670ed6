//! Whole meshes in the simulator: what every engine must do, and what single ones promise.

#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

mod adversary;
mod always_whole;
mod braid;
mod churn;
mod claims;
mod conformance;
mod core_nc;
mod delta;
mod layouts;
mod lengths;
mod lies;
mod live;
mod mc2;
mod more;
mod never_still;
mod polluters;
mod settings;
mod starts;
mod tags;
mod traces;
mod transfers;
mod tunnels;
mod versions;
mod wormholes;
mod xor;

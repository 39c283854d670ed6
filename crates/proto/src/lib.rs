//! ncmesh protocol engines as sans-IO state machines.
//!
//! A [`Stack`](stack::Stack) is one node of the mesh: neighbour measurement ([`link`]), link state
//! ([`route`]) and the engines of the [`registry`]. It has no sockets, threads or clock: a driver (the
//! simulator or the daemon) tells it what was heard and what time it is, and asks it what to transmit when
//! the medium grants a transmission. Same configuration, same calls: same frames, byte for byte.

pub mod cope;
pub mod core_nc;
pub mod counters;
mod egress;
pub mod file;
mod flood;
pub mod forward;
pub mod link;
pub mod mc2;
pub mod more;
pub mod multirate;
pub mod name;
pub mod pacifier;
pub mod registry;
pub mod rng;
pub mod route;
pub mod service;
pub mod stack;
pub mod stream;
pub mod summary;
pub mod time;
pub mod tunnel;
pub mod uncoded;
pub mod xor;

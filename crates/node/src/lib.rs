//! The ncmesh daemon: one [`Stack`](ncmesh_stack::Stack) on a real clock, a real radio and real files.
//!
//! One loop ([`daemon`]) owns everything and never waits for a disk. Work that may block (hashing,
//! fsync, journals) runs on other threads and returns as a call on the [`node::Handle`]. The HTTP
//! [`api`] uses the same handle. The crate also has the channel emulator of the lab, [`etherd`].

pub mod alarm;
pub mod api;
pub mod config;
pub mod daemon;
mod durable;
mod error;
pub mod etherd;
pub mod generic_netlink;
pub mod identity;
pub mod node;
pub mod radio;
mod root;
pub mod state;
pub mod store;
pub mod stream;
pub mod tree;
pub mod tunnel;
#[cfg(feature = "web")]
pub mod web;

pub use config::NodeConfig;
pub use error::NodeError;

//! The contract between a node and its protocol engines, and the toolkit that engines are built
//! from.
//!
//! An engine is a state machine without sockets, threads or clock. The node tells it what was heard
//! and what time it is, and asks it for a frame at the moment the channel is granted. Everything an
//! engine may see or touch during a call is in its [`Context`].
//!
//! There are three kinds of engines, by what they do for the user: [`FileEngine`], [`TunnelEngine`]
//! and [`StreamEngine`]. Each is also an [`Engine`], the part that the node's scheduler needs. An
//! [`Entry`](registry::Entry) describes one engine; a [`Registry`](registry::Registry) lists those
//! that a program was built with. This crate knows none of them.

pub mod blame;
pub mod context;
pub mod counters;
pub mod engine;
pub mod event;
pub mod file;
pub mod name;
pub mod path;
pub mod port;
pub mod registry;
pub mod rng;
pub mod settings;
pub mod storage;
pub mod stream;
pub mod summary;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod time;
pub mod toolkit;
pub mod topology;
pub mod transmission;
pub mod tunnel;
pub mod wording;

pub use context::Context;
pub use engine::{AnyEngine, Engine, FileEngine, StreamEngine, TunnelEngine};
pub use event::Event;
pub use port::{At, PerPort, Port, Ways};
pub use summary::Summary;
pub use transmission::{
    Background, Class, Filled, Frame, Malformed, Offer, Statement, TxReport, TxResult,
};

//! The messages that describe a mesh to a console, whatever their source.
//!
//! A source sends a sequence of [`Message`]s:
//!
//! ```text
//! meta  key  (tick | event)*  key  (tick | event)*  key  ...
//! ```
//!
//! [`Meta`] names what there is: nodes, links, transfers, flows, streams, roll-outs. When something
//! joins, another meta with longer lists follows; places in these lists stay what they are. A
//! [`Key`] follows every meta, and comes at least every [`Meta::key_s`]: it is the whole state,
//! with counters since the start. A [`Tick`] is what changed since the key or tick before it:
//! counters by how much they grew, everything else by its new value. So a viewer starts or seeks at
//! a key, and adds ticks. An [`Event`] is something that happened at an instant.
//!
//! Counters of nodes and links are columns, of one length within a table: entry i of each column
//! belongs to row i. In a tick, rows in which nothing changed are left out, and so are columns that
//! have nothing but zeros.
//!
//! Each state is declared once, in `flow`, `node`, `rollout`, `stream`, `tables` and `transfer`, by
//! the macros of `declare`. What is not known is absent in a key, or null in a column: a daemon
//! knows little of other nodes.
//!
//! Counters in keys, seeds and sizes have 64 bits and are strings ([`Count`]), since numbers in
//! JavaScript are exact up to 53 bits only. Growth in a tick has 32 bits and is a number; if it has
//! more, or a counter fell because its node was started again, a key takes the tick's place. Times
//! are seconds of the run since its start. Nodes are named by their ids, everything else by its
//! place in the lists of [`Meta`].

mod count;
mod declare;
mod event;
mod field;
mod flow;
mod key;
mod meta;
mod node;
mod parts;
mod rollout;
mod stream;
mod tables;
mod tick;
mod transfer;
mod types;
mod typescript;
mod value;

pub use count::Count;
pub use event::{Event, EventKind, Stage};
pub use field::{Field, Unit};
pub use flow::{FlowState, FlowTick, FlowValues};
pub use key::Key;
pub use meta::{
    Flow, KEY_S, Layer, Link, Meta, Node, OLDEST_SCHEMA, Position, Rollout, SCHEMA, Source, Stream,
    TICK_S, Transfer,
};
pub use node::{CodingValues, NodeValues, PeerValues, PortValues};
pub use parts::{Hop, Rank};
pub use rollout::{RolloutNodeState, RolloutNodeTick, RolloutState, RolloutTick};
use serde::{Deserialize, Serialize};
pub use stream::{
    QueueValues, StreamReceiverState, StreamReceiverTick, StreamReceiverValues, StreamSending,
    StreamState, StreamTick,
};
pub use tables::{LinkTable, LinkTicks, Moves, NodeTable, NodeTicks, Places};
pub use tick::Tick;
pub use transfer::{
    ReceivedValues, ReceiverState, ReceiverTick, SourceValues, TransferState, TransferTick,
};
use ts_rs::TS;
pub use types::{declaration, typescript};
pub use value::{Change, Mismatch, NeedsKey, Numbers, Values};

/// A message to a console.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message {
    /// Nodes, links, flows and transfers of the mesh.
    Meta(Meta),
    /// Whole state at an instant.
    Key(Key),
    /// Changes since the key or tick before.
    Tick(Tick),
    /// Something that happened at an instant.
    Event(Event),
}

/// Returns a time as messages have it: seconds, rounded to microseconds.
#[must_use]
pub fn seconds(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// Returns a delay as messages have it: seconds, rounded to tenths of a millisecond so that noise
/// makes no ticks.
#[must_use]
pub fn delay(seconds: f64) -> f64 {
    (seconds * 1e4).round() / 1e4
}

/// Returns a share as messages have it, 0 to 1, rounded to hundredths so that noise makes no ticks.
#[must_use]
pub fn share(share: f64) -> f64 {
    (share.clamp(0.0, 1.0) * 100.0).round() / 100.0
}

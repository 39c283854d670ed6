//! The messages that describe a mesh to a console, whatever their source.
//!
//! A source sends a sequence of [`Message`]s:
//!
//! ```text
//! meta  key  (tick | event)*  key  (tick | event)*  key  ...
//! ```
//!
//! [`Meta`] names what there is: nodes, links, transfers, flows, streams. When something joins,
//! another meta with longer lists follows; places in these lists stay what they are. A [`Key`]
//! follows every meta, and comes at least every [`Meta::key_s`]: it is the whole state, with
//! counters since the start. A [`Tick`] is what changed since the key or tick before it: counters
//! by how much they grew, everything else by its new value. So a viewer starts or seeks at a key,
//! and adds ticks. An [`Event`] is something that happened at an instant.
//!
//! Counters of nodes and links are columns, of one length within a table: entry i of each column
//! belongs to row i. In a tick, rows in which nothing changed are left out, and so are columns that
//! have nothing but zeros.
//!
//! Counters in keys, seeds and sizes have 64 bits and are strings ([`Count`]), since numbers in
//! JavaScript are exact up to 53 bits only. Growth in a tick has 32 bits and is a number; if it has
//! more, or a counter fell because its node was started again, a key takes the tick's place. Times
//! are seconds of the run since its start. Nodes are named by their ids, everything else by its
//! place in the lists of [`Meta`].

mod change;
mod count;
mod event;
mod key;
mod meta;
mod tick;

pub use change::Mismatch;
pub use count::Count;
pub use event::{Event, EventKind, Stage};
pub use key::{
    FlowState, Hop, Key, LinkTable, NodeTable, Places, Rank, ReceiverState, StreamReceiverState,
    StreamState, TransferState,
};
pub use meta::{
    Flow, KEY_S, Layer, Link, Meta, Node, Position, SCHEMA, Source, Stream, TICK_S, Transfer,
};
use serde::{Deserialize, Serialize};
pub use tick::{
    FlowTick, LinkTicks, Moves, NodeTicks, ReceiverTick, StreamReceiverTick, StreamTick, Tick,
    TransferTick,
};
use ts_rs::TS;

/// A message to a console.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message {
    /// What there is in the mesh.
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

/// Returns the declaration of a type in TypeScript, with its doc comment.
#[must_use]
pub fn declaration<T: TS>() -> String {
    // Unions and fields begin on lines of their own, and no line ends with a space. Nor is one
    // longer than 100 columns: then it is a union of words.
    let declared = format!("export {}", T::decl().replace(" | {", "\n  | {").replace(" \n", "\n"));
    let short = |line: &str| match line.len() {
        ..=100 => line.to_owned(),
        _ => line.replace(" | \"", "\n  | \""),
    };
    let lines: Vec<String> = declared.lines().map(short).collect();
    format!("\n{}{}\n", T::docs().unwrap_or_default(), lines.join("\n"))
}

/// Returns the types of the schema in TypeScript, as the console's source has them.
#[must_use]
pub fn typescript() -> String {
    const BY: &str = "cargo run -p ncmesh-console --example types";
    let mut text = format!("// Generated; do not edit: {BY}\n");
    // From the message down.
    macro_rules! declare {
        ($($type:ty),+ $(,)?) => { $(text.push_str(&declaration::<$type>());)+ };
    }
    declare!(
        Message,
        Meta,
        Source,
        Node,
        Position,
        Link,
        Transfer,
        Flow,
        Stream,
        Layer,
        Key,
        NodeTable,
        LinkTable,
        TransferState,
        ReceiverState,
        Rank,
        FlowState,
        StreamState,
        StreamReceiverState,
        Hop,
        Places,
        Tick,
        NodeTicks,
        LinkTicks,
        TransferTick,
        ReceiverTick,
        FlowTick,
        StreamTick,
        StreamReceiverTick,
        Moves,
        Event,
        EventKind,
        Stage,
        Count,
    );
    text
}

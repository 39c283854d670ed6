//! A live stream, and its receivers.

use super::declare::{declared, state};
use super::value::{Member, Mismatch, NeedsKey, State, Value, is_same};
use super::{Count, Field, Hop, Unit, typescript};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

state! {
    /// State of a live stream.
    StreamState / StreamTick { stream: u32 } {
        /// Packets that its source has taken, by layer.
        taken: Vec<Count>, "Taken", Packets;
        /// Its receivers.
        receivers: Vec<StreamReceiverState>, "Receivers", Plain;
        /// Its tree: each node in it with its previous hop.
        tree: Vec<Hop>, "Tree", Plain;
    }
}

state! {
    /// State of a stream at a receiver.
    StreamReceiverState { node: u16 } / StreamReceiverTick { node: u16 } {
        /// Packets received, by layer.
        packets: Vec<Count>, "Packets", Packets;
        /// Bits received, by layer.
        bits: Vec<Count>, "Received", Bits;
        /// Why it gets too little, in words; empty if it does not.
        problem: String, "Problem", Plain;
    }
}

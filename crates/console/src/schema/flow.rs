//! A flow of packets through a tunnel, as a node or a simulation sees it.

use super::declare::{declared, state, values};
use super::field::last_of;
use super::value::{Mismatch, NeedsKey, State, Told, Value, Values, is_same};
use super::{Count, Field, Unit, typescript};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

state! {
    /// State of a flow. A daemon tells what it knows itself; a simulation knows both ends.
    FlowState / FlowTick { flow: u32 } as FlowValues {
        /// Packets that wait: those that this node still has to send, in `mc2` its credits. A
        /// simulation tells those at the source.
        queue: Option<u64>, "Queue", Packets;
        /// Data frames of the flow that were heard here and addressed to this node or to several.
        heard: Option<Count>, "Heard", Frames;
        /// Data frames of the flow that were heard here and were innovative.
        innovative: Option<Count>, "Innovative", Frames;
        /// Packets that have arrived at the flow's destination. Unknown at other nodes.
        delivered: Option<Count>, "Delivered", Packets;
        /// Packets lost at this node.
        lost: Option<Count>, "Lost", Packets;
        /// Round trip from the source to the destination's hosts and back, smoothed, as their
        /// packets of TCP and ping tell. Unknown if none did in the last 10 s, and away from the
        /// source.
        rtt_s: Option<f64>, "RTT", Seconds;
        /// Shortest round trip of the last 10 s. Unknown where the smoothed one is.
        min_rtt_s: Option<f64>, "Shortest RTT", Seconds;
    }
    api {
        /// Bytes of the packets that have arrived at the flow's destination. Unknown at other
        /// nodes.
        delivered_bytes: Option<Count>, "Bytes delivered", Bytes;
    }
    key {
        /// Packets that the source's host has offered. Unknown to daemons.
        offered: Option<Count>, "Offered", Packets;
        /// Bits of the packets that have arrived.
        bits: Option<Count>, "Bits delivered", Bits;
        /// Mean time on the way of the packets that arrived last. Unknown before the first, and to
        /// daemons, which have one clock each.
        delay_s: Option<f64>, "Delay", Seconds;
        /// Name of the scheme that carries it.
        scheme: String, "Scheme", Plain;
        /// Why packets of it are not coded now, in words; empty if they are, or if the scheme does
        /// not say.
        why: String, "Why not coded", Plain;
        /// Share of combinations among the frames with payload of the scheme: of all nodes in the
        /// last second in a simulation, of this node since its start in a daemon. Unknown for
        /// schemes that combine nothing, and while none is sent.
        coded_share: Option<f64>, "Coded", Share;
    }
}

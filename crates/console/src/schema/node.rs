//! A node, its neighbours, and what it codes.

use super::declare::values;
use super::field::last_of;
use super::value::{Told, Value, Values};
use super::{Count, Field, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

values! {
    /// State of a node.
    NodeValues {
        /// Seconds since the daemon started.
        uptime_s: f64, "Up", Seconds;
        /// Number of nodes heard directly.
        neighbors: u64, "Neighbours", Plain;
        /// Number of other nodes known.
        nodes: u64, "Nodes", Plain;
        /// Number of transfers in progress.
        transfers_open: u64, "Transfers", Plain;
    }
}

values! {
    /// A port of a node.
    PortValues {
        /// Number of nodes heard on it.
        neighbors: u64, "Neighbours", Plain;
        /// Time for which frames of this node used its channel, s.
        airtime_s: f64, "Airtime", Seconds;
        /// Frames sent on it.
        sent: Count, "Sent", Frames;
        /// Bytes of the frames sent.
        sent_bytes: Count, "Sent bytes", Bytes;
        /// Authentic frames of other nodes heard on it.
        heard: Count, "Heard", Frames;
        /// Bytes of these frames.
        heard_bytes: Count, "Heard bytes", Bytes;
        /// Other frames that came, which were dropped.
        dropped: Count, "Dropped", Frames;
    }
}

values! {
    /// Another node, as far as this one knows it.
    PeerValues {
        /// Share of this node's broadcasts that the peer receives, 0 to 1.
        delivery_to: Option<f64>, "Out", Share;
        /// Share of the peer's broadcasts that this node receives, 0 to 1.
        delivery_from: Option<f64>, "In", Share;
        /// Expected number of transmissions along the best path (ETX). Unknown if the peer is
        /// unreachable.
        etx: Option<f64>, "ETX", Transmissions;
        /// Number of hops of the best path.
        hops: Option<u64>, "Hops", Plain;
        /// Seconds since a frame of the peer was heard directly.
        last_heard_s: Option<f64>, "Heard", Ago;
        /// False packets of files that came under its id, if it was blamed for some in the last 5
        /// min.
        false_packets: Option<u64>, "False", Packets;
    }
}

values! {
    /// Coding of a node across flows, by one scheme.
    CodingValues {
        /// Data frames sent.
        sent: Count, "Sent", Frames;
        /// Data frames sent that carried two packets.
        coded: Count, "Coded", Frames;
        /// Coded over sent: the coding ratio of Huang et al., section V-A. Unknown before the first
        /// frame.
        ratio: Option<f64>, "Ratio", Share;
        /// Packets decoded here.
        decoded: Count, "Decoded", Packets;
        /// Coded frames with a packet for this node that could not be decoded.
        undecodable: Count, "Undecodable", Frames;
        /// Packets retransmitted because a next hop missed them.
        repeated: Count, "Repeated", Packets;
    }
}

impl CodingValues {
    /// Returns what was coded since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        // The counters of a daemon that was started again begin at zero, which must not underflow.
        let sent = self.sent.saturating_sub(before.sent);
        let coded = self.coded.saturating_sub(before.coded);
        Self {
            sent,
            coded,
            ratio: (sent > 0).then(|| coded as f64 / sent as f64),
            decoded: self.decoded.saturating_sub(before.decoded),
            undecodable: self.undecodable.saturating_sub(before.undecodable),
            repeated: self.repeated.saturating_sub(before.repeated),
        }
    }
}

//! A live stream, its source, its receivers and its queues. Lists of layers begin with the base.

use super::declare::{declared, state, values};
use super::field::last_of;
use super::value::{Member, Mismatch, NeedsKey, State, Told, Value, Values, is_same};
use super::{Count, Field, Hop, Unit, typescript};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

state! {
    /// State of a live stream at its source.
    StreamState / StreamTick { stream: u32 } as StreamSending {
        /// Packets that the source has taken from the application, by layer.
        taken ["packets"]: Vec<Count>, "Taken", Packets;
    }
    api {
        /// Packets that wait for admission, which is limited in each slot.
        waiting: u64, "Waiting", Packets;
        /// Packets refused because too many waited.
        refused: Count, "Refused", Packets;
    }
    key {
        /// Packets dropped for lack of room in a queue, by layer: here, and in a simulation at any
        /// node.
        no_room: Vec<Count>, "No room", Packets;
        /// Packets given up because their time was over before a next hop had them, by layer: here,
        /// and in a simulation at any node.
        late: Vec<Count>, "Late", Packets;
        /// Its receivers.
        receivers: Vec<StreamReceiverState>, "Receivers", Plain;
        /// Its tree: each node in it with its previous hop.
        tree: Vec<Hop>, "Tree", Plain;
    }
}

state! {
    /// State of a stream at a receiver.
    StreamReceiverState { node: u16 } / StreamReceiverTick { node: u16 } as StreamReceiverValues {
        /// Packets received, by layer.
        packets: Vec<Count>, "Packets", Packets;
        /// Packets that the source sent from the first announcement heard to the latest, by layer.
        offered: Vec<Count>, "Offered packets", Packets;
        /// Packets of these that have not come, by layer. Those on their way are among them.
        missing: Vec<u64>, "Missing", Packets;
        /// Packets that came after a later one, by layer. Empty, as are the delays, for schemes
        /// whose packets do not tell their age.
        out_of_order: Vec<Count>, "Out of order", Packets;
        /// Median time from the source's taking a packet to its arrival, by layer, s; 0 if none
        /// came.
        delay_p50_s: Vec<f64>, "Delay", Seconds;
        /// The same of the slowest of 100 packets.
        delay_p99_s: Vec<f64>, "Longest delay", Seconds;
        /// Whole seconds of the stream of which every packet of the base came.
        whole_base_s: Option<u64>, "Whole base", Seconds;
        /// All seconds of the stream that were judged so, a few after their end.
        base_s: Option<u64>, "Base", Seconds;
    }
    api {
        /// Bytes received, by layer.
        bytes: Vec<Count>, "Bytes", Bytes;
        /// Virtual queue (Z), packets.
        z: f64, "Virtual queue", Packets;
        /// Virtual pressure (Y), packets.
        pressure: f64, "Pressure", Packets;
        /// Requested minimum rate, bit/s; 0 if there is none.
        min_rate_bps: f64, "Minimum rate", BitRate;
        /// Recent rate received, bit/s. Unknown for the first seconds.
        rate_bps: Option<f64>, "Rate", BitRate;
        /// Recent rate of the source, bit/s. Unknown for the first seconds.
        offered_bps: Option<f64>, "Offered", BitRate;
    }
    key {
        /// Bits received, by layer.
        bits: Vec<Count>, "Received", Bits;
        /// Why it gets too little, in words; empty if it does not.
        problem: String, "Problem", Plain;
    }
}

values! {
    /// Queue of a stream for one next hop.
    QueueValues {
        /// Receivers reached through the next hop (m).
        receivers: u64, "M", Plain;
        /// Packets held, by layer. With the place-holders they make up Q.
        held: Vec<u64>, "Held", Packets;
        /// Place-holders in Q: the mean virtual pressure of the receivers behind the next hop.
        place_holders: f64, "Holders", Packets;
        /// Drop queue (D), packets.
        drop_queue: f64, "D", Packets;
        /// Queue length that the next hop reported, packets.
        downstream: f64, "Below", Packets;
        /// Differential backlog (W), packets.
        weight: f64, "W", Packets;
        /// Estimated capacity of the link, packets per slot (mu).
        rate: f64, "Mu", SlotRate;
        /// Packets sent, by layer.
        sent: Vec<Count>, "Sent", Packets;
        /// Packets dropped, by layer.
        dropped: Vec<Count>, "Dropped", Packets;
        /// Number of these for which there was no room, by layer. The time of the others was over.
        no_room: Vec<Count>, "No room", Packets;
        /// Packets that the radio failed to deliver.
        lost: Count, "Lost", Packets;
    }
}

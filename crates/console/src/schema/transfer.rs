//! A transfer of a file, and its receivers.

use super::declare::{declared, state};
use super::value::{Member, Mismatch, NeedsKey, Numbers, State, Value, is_same};
use super::{Count, Field, Rank, Stage, Unit, typescript};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

state! {
    /// State of a transfer.
    TransferState / TransferTick { transfer: u32 } {
        /// Its stage at the source. A receiver does not know it.
        stage: Option<Stage>, "Stage", Plain;
        /// Data packets that the source has sent. A receiver does not know it.
        packets: Option<Count>, "Packets sent", Packets;
        /// Ids of the nodes that forward. A receiver does not know them.
        forwarders: Option<Vec<u16>>, "Forwarders", Plain;
        /// Its receivers.
        receivers: Vec<ReceiverState>, "Receivers", Plain;
    }
}

state! {
    /// State of a transfer at a receiver.
    ReceiverState { node: u16 } / ReceiverTick { node: u16 } {
        /// Stage of the transfer there.
        stage: Stage, "Stage", Plain;
        /// Bytes of the file that it has.
        bytes: Count, "Received", Bytes;
        /// Innovative packets that it has heard. The source does not know it.
        innovative: Option<Count>, "Innovative", Packets;
        /// Packets that it has heard and that were not innovative. The source does not know it.
        redundant: Option<Count>, "Redundant", Packets;
        /// Numbers of the generations that it has decoded, ascending.
        complete: Numbers, "Generations", Plain;
        /// Generation that is being received, and how much of it is there.
        rank: Option<Rank>, "Rank", Plain;
    }
}

//! A transfer of a file, and its receivers.

use super::declare::{declared, state, values};
use super::field::last_of;
use super::value::{Member, Mismatch, NeedsKey, Numbers, State, Told, Value, Values, is_same};
use super::{Count, Field, Rank, Stage, Unit, typescript};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

state! {
    /// State of a transfer at its source.
    TransferState / TransferTick { transfer: u32 } as SourceValues {
        /// Data packets that the source has sent. Unknown to a receiver.
        packets ["source_packets"]: Option<Count>, "Packets sent", Packets;
    }
    api {
        /// Payload bytes of the source's packets divided by the size of the file. Unknown to a
        /// receiver.
        source_redundancy: Option<f64>, "Redundancy", Times;
    }
    key {
        /// Its stage at the source. A receiver does not know it.
        stage: Option<Stage>, "Stage", Plain;
        /// Ids of the nodes that forward. A receiver does not know them.
        forwarders: Option<Vec<u16>>, "Forwarders", Plain;
        /// Its receivers.
        receivers: Vec<ReceiverState>, "Receivers", Plain;
    }
}

state! {
    /// State of a transfer at a receiver.
    ReceiverState { node: u16 } / ReceiverTick { node: u16 } as ReceivedValues {
        /// Bytes of the file that the receiver has, as far as is known here; for a transfer at its
        /// source, that the slowest receiver has.
        bytes: Count, "Received", Bytes;
        /// Innovative packets that the receiver has heard. The source does not know it.
        innovative: Option<Count>, "Innovative", Packets;
        /// Packets that the receiver has heard and that were not innovative. The source does not
        /// know it.
        redundant: Option<Count>, "Redundant", Packets;
    }
    api {
        /// Generations with a wrong hash. The source does not know it.
        bad_generations: Option<Count>, "Bad generations", Plain;
        /// Duration so far, or in total, since the transfer began or was resumed here, s.
        seconds: f64, "Time", Seconds;
        /// Rate over that duration, kbit/s.
        kbit_s: f64, "Rate", KilobitRate;
    }
    key {
        /// Time from the beginning of the transfer, or its resumption, until the receiver had the
        /// whole file, by the clock of the daemon that tells, s. Unknown before. A simulation
        /// leaves it to the times of its ticks.
        finished_s: Option<f64>, "Finished after", Seconds;
        /// Stage of the transfer there.
        stage: Stage, "Stage", Plain;
        /// Numbers of the generations that it has decoded, ascending.
        complete: Numbers, "Generations", Plain;
        /// Generation that is being received, and how much of it is there.
        rank: Option<Rank>, "Rank", Plain;
    }
}

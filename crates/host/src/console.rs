//! Values of a stack's states for consoles and the HTTP API, in the daemon and in the simulator.

use ncmesh_console::schema::{
    CodingValues, Count, NodeTable, QueueValues, ReceivedValues, SourceValues, Stage,
    StreamReceiverValues, StreamSending,
};
use ncmesh_engine::counters::Counters;
use ncmesh_engine::file::{self, Direction, TransferStatus};
use ncmesh_engine::stream::{Receiving, Sending, StreamQueue, StreamStatus};
use ncmesh_engine::time::Duration;
use ncmesh_engine::tunnel::CodingStatus;

/// Returns the stage of a transfer at a node.
#[must_use]
pub fn stage(stage: file::Stage) -> Stage {
    match stage {
        file::Stage::Open => Stage::Open,
        file::Stage::Verifying => Stage::Verifying,
        file::Stage::Complete => Stage::Complete,
        file::Stage::Withdrawn => Stage::Withdrawn,
        file::Stage::Refused(_) => Stage::Refused,
        file::Stage::Failed(_) => Stage::Failed,
    }
}

/// Returns what a source did for a transfer; a receiver knows nothing of it.
#[must_use]
pub fn source_values(status: &TransferStatus) -> SourceValues {
    let is_source = status.direction == Direction::Sending;
    SourceValues {
        packets: is_source.then_some(status.source_packets),
        source_redundancy: is_source.then_some(status.source_redundancy),
    }
}

/// Returns how much of a transfer is there. Time and rate are left to the caller, which has the
/// clock.
#[must_use]
pub fn received_values(status: &TransferStatus) -> ReceivedValues {
    let is_receiver = status.direction == Direction::Receiving;
    ReceivedValues {
        bytes: status.bytes,
        innovative: is_receiver.then_some(status.innovative),
        redundant: is_receiver.then_some(status.redundant),
        bad_generations: is_receiver.then_some(status.bad_generations),
        ..ReceivedValues::default()
    }
}

/// Returns the values of the source of a stream of this many layers.
#[must_use]
pub fn sending_values(sending: &Sending, layers: usize) -> StreamSending {
    StreamSending {
        taken: sending.packets[..layers].to_vec(),
        waiting: sending.waiting.into(),
        refused: sending.refused,
    }
}

/// Returns the values of a receiver of a stream of this many layers.
#[must_use]
pub fn receiving_values(receiving: &Receiving, layers: usize) -> StreamReceiverValues {
    // Engines count in arrays for the most layers a stream may have. A reader wants those that it
    // has.
    let timely = receiving.timeliness.as_ref();
    StreamReceiverValues {
        packets: receiving.packets[..layers].to_vec(),
        bytes: receiving.bytes[..layers].to_vec(),
        offered: receiving.offered[..layers].to_vec(),
        missing: receiving.missing[..layers].to_vec(),
        out_of_order: timely.map_or_else(Vec::new, |t| t.out_of_order[..layers].to_vec()),
        delay_p50_s: timely.map_or_else(Vec::new, |t| t.delay_p50_s[..layers].to_vec()),
        delay_p99_s: timely.map_or_else(Vec::new, |t| t.delay_p99_s[..layers].to_vec()),
        whole_base_s: timely.map(|t| t.whole_base_s),
        base_s: timely.map(|t| t.base_s),
        z: receiving.z,
        pressure: receiving.pressure,
        min_rate_bps: receiving.minimum_bps,
        rate_bps: receiving.rates_bps.map(|(rate, _)| rate),
        offered_bps: receiving.rates_bps.map(|(_, offered)| offered),
    }
}

/// Packets of a stream that the queues of a node gave up, by layer and reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// There was no room for them.
    pub no_room: Vec<Count>,
    /// Their time was over.
    pub late: Vec<Count>,
}

impl GivenUp {
    /// Returns what a node gave up of a stream of this many layers.
    #[must_use]
    pub fn of(status: &StreamStatus, layers: usize) -> Self {
        let mut all = Self { no_room: vec![Count(0); layers], late: vec![Count(0); layers] };
        for queue in &status.queues {
            for layer in 0..layers {
                let no_room = queue.no_room[layer];
                all.no_room[layer].0 += no_room;
                all.late[layer].0 += queue.dropped[layer].saturating_sub(no_room);
            }
        }

        all
    }
}

/// Returns the counters of what a node coded.
#[must_use]
pub fn coding_values(status: &CodingStatus) -> CodingValues {
    CodingValues {
        sent: status.sent,
        coded: status.coded,
        ratio: status.ratio(),
        decoded: status.decoded,
        undecodable: status.undecodable,
        repeated: status.repeated,
    }
}

/// Returns the values of a queue of a stream of this many layers.
#[must_use]
pub fn queue_values(queue: &StreamQueue, layers: usize) -> QueueValues {
    QueueValues {
        receivers: queue.receivers.into(),
        held: queue.held[..layers].iter().copied().map(u64::from).collect(),
        place_holders: queue.place_holders,
        drop_queue: queue.drop_queue,
        downstream: queue.downstream,
        weight: queue.weight,
        rate: queue.rate,
        sent: queue.sent[..layers].to_vec(),
        dropped: queue.dropped[..layers].to_vec(),
        no_room: queue.no_room[..layers].to_vec(),
        lost: queue.lost,
    }
}

/// Sets the frames that a node sent, and their airtime.
///
/// # Panics
/// The table has no such row.
pub fn set_sent(table: &mut NodeTable, row: usize, counters: &Counters) {
    let carried = counters.carried();
    let frames = |frames: u64| Some(Count(frames));
    let micros = |time: Duration| Some(Count(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)));
    table.control[row] = frames(carried.control.0);
    table.control_us[row] = micros(carried.control.1);
    table.data[row] = frames(carried.native.0);
    table.data_us[row] = micros(carried.native.1);
    table.coded[row] = frames(carried.coded.0);
    table.coded_us[row] = micros(carried.coded.1);
}

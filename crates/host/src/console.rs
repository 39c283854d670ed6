//! What a console shows of a stack, in the daemon and in the simulator.

use ncmesh_console::schema::{Count, NodeTable, Stage};
use ncmesh_engine::counters::Counters;
use ncmesh_engine::file;
use ncmesh_engine::time::Duration;

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

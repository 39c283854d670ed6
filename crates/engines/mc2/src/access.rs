//! What a node knows of its access to the channel, by which what it waits for is timed.

use ncmesh_engine::TxReport;
use ncmesh_engine::time::Duration;
use ncmesh_engine::toolkit::average::DurationAverage;

/// Weight of the newest airtime in the mean.
const NEWEST: f64 = 0.1;
/// Airtime of a frame that is assumed until one was sent.
const FRAME_TIME: Duration = Duration::from_millis(2);
/// A hop is told of credits that packets back already, if no data does so, after so many frames' time: sooner where the MAC
/// tells who received a frame, so that few such frames are needed.
const TELL_FRAMES: f64 = 8.0;
const TELL_FRAMES_TOLD: f64 = 2.0;
/// A node waits so many frames' time to hear who received a frame of its own, and at least so long.
const PATIENCE_FRAMES: f64 = 32.0;
const PATIENCE_LEAST: Duration = Duration::from_millis(10);

/// Access to the channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// Mean airtime of this node's data frames.
    frame_time: DurationAverage,
    /// The MAC tells who received a broadcast, so nobody need report it.
    pub tells: bool,
}

impl Default for Access {
    fn default() -> Self {
        Self { frame_time: DurationAverage::starting_at(FRAME_TIME, NEWEST), tells: false }
    }
}

impl Access {
    /// Returns the mean airtime of a data frame.
    pub(super) fn frame_time(&self) -> Duration {
        self.frame_time.value()
    }

    /// A data frame was sent.
    pub(super) fn note(&mut self, report: &TxReport) {
        self.frame_time.add(report.airtime);
    }

    /// How long nothing is sent for no more than to tell a hop of credits.
    pub(super) fn pause(&self) -> Duration {
        self.frame_time().mul_f64(if self.tells { TELL_FRAMES_TOLD } else { TELL_FRAMES })
    }

    /// How long it waits to hear who received a frame.
    pub(super) fn patience(&self) -> Duration {
        self.frame_time().mul_f64(PATIENCE_FRAMES).max(PATIENCE_LEAST)
    }
}

//! A node's access to the channel, and the times that follow from it.
//!
//! Everything that a node waits for takes some frames' time: until a neighbour has said which
//! frames it received, until credits that no data announces are announced alone. The mean airtime
//! of its own data frames is the unit of these times.

use ncmesh_engine::TxReport;
use ncmesh_engine::time::Duration;
use ncmesh_engine::toolkit::average::DurationAverage;

/// Weight of the newest airtime in the mean.
const NEWEST: f64 = 0.1;
/// Airtime that is assumed for a data frame until one was sent.
const INITIAL_FRAME_TIME: Duration = Duration::from_millis(2);
/// Frames' time after which a hop is told of backed credits although no data is due. A data frame
/// that is due in the meantime tells it for free.
const ANNOUNCE_DELAY_FRAMES: f64 = 8.0;
/// The same where the MAC reports who received a frame. Few such frames are needed then.
const ANNOUNCE_DELAY_FRAMES_REPORTED: f64 = 2.0;
/// Frames' time for which a node waits to hear who received a frame of its own.
const ACK_TIMEOUT_FRAMES: f64 = 32.0;
/// Shortest time for which it waits.
const MIN_ACK_TIMEOUT: Duration = Duration::from_millis(10);

/// Access to the channel, as this node has seen it so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelAccess {
    /// Mean airtime of this node's data frames.
    frame_time: DurationAverage,
    /// Whether the MAC reports who received a broadcast. Neighbours need not say so then.
    pub mac_reports: bool,
}

impl Default for ChannelAccess {
    fn default() -> Self {
        let frame_time = DurationAverage::starting_at(INITIAL_FRAME_TIME, NEWEST);
        Self { frame_time, mac_reports: false }
    }
}

impl ChannelAccess {
    /// Updates the mean airtime with a data frame that was sent.
    pub(crate) fn note_data_frame(&mut self, report: &TxReport) {
        self.frame_time.add(report.airtime);
    }

    /// Returns the mean airtime of this node's data frames.
    pub(crate) fn frame_time(&self) -> Duration {
        self.frame_time.value()
    }

    /// Returns the time after the latest frame at which credits are announced without data being
    /// due.
    pub(crate) fn announce_delay(&self) -> Duration {
        let frames =
            if self.mac_reports { ANNOUNCE_DELAY_FRAMES_REPORTED } else { ANNOUNCE_DELAY_FRAMES };
        self.frame_time().mul_f64(frames)
    }

    /// Returns how long this node waits to hear who received a frame.
    pub(crate) fn ack_timeout(&self) -> Duration {
        self.frame_time().mul_f64(ACK_TIMEOUT_FRAMES).max(MIN_ACK_TIMEOUT)
    }
}

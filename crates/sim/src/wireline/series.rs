//! Backlogs and rates over time.

use super::error::WirelineError;

/// The most numbers of a series.
const MOST: u64 = 1 << 27;

/// A number per sample and queue, receiver or session: the sample's row after that of the one before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    /// Numbers of a row.
    pub width: usize,
    /// Row by row.
    pub values: Vec<f64>,
}

impl Track {
    fn new(width: usize) -> Self {
        Self { width, values: Vec::new() }
    }

    pub(super) fn extend(&mut self, row: impl Iterator<Item = f64>) {
        self.values.extend(row);
    }
}

/// Samples at equal distances.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Slots between samples; the first is after so many.
    pub every: u64,
    /// Transmission queues at each sample.
    pub q: Track,
    /// Drop queues at each sample.
    pub d: Track,
    /// Virtual queues at each sample, of all receivers; empty under `mmt`.
    pub z: Track,
    /// Packets per slot that each receiver got since the sample before.
    pub received: Track,
    /// Packets per slot that entered each session's source since the sample before.
    pub entered: Track,
}

impl Series {
    /// None yet; `seats` of the receivers have virtual queues.
    pub(super) fn new(
        every: u64,
        slots: u64,
        queues: usize,
        receivers: usize,
        seats: usize,
        sessions: usize,
    ) -> Result<Self, WirelineError> {
        let row = (2 * queues + seats + receivers + sessions) as u64;
        if every == 0 || every > slots || (slots / every).saturating_mul(row) > MOST {
            return Err(WirelineError::Series { every, slots, most: MOST });
        }
        let [q, d] = [queues; 2].map(Track::new);
        let [z, received, entered] = [seats, receivers, sessions].map(Track::new);
        Ok(Self { every, q, d, z, received, entered })
    }

    /// How many samples were taken.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.q.values.len() / self.q.width.max(1)
    }
}

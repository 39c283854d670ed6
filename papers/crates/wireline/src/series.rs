//! Queue lengths and rates over time.

use crate::error::WirelineError;

/// Limit of the numbers in a series.
const MOST: u64 = 1 << 27;

/// Table with a row per sample and a column per queue, receiver or session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    /// Columns of the table.
    pub width: usize,
    /// The rows, one after the other.
    pub values: Vec<f64>,
}

impl Track {
    fn new(width: usize) -> Self {
        Self { width, values: Vec::new() }
    }

    pub(crate) fn extend(&mut self, row: impl Iterator<Item = f64>) {
        self.values.extend(row);
    }
}

/// Samples at equal intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Slots between samples. The first sample is taken after the first interval.
    pub every: u64,
    /// Transmission queues at each sample.
    pub q: Track,
    /// Drop queues at each sample.
    pub d: Track,
    /// Virtual queues at each sample, of all receivers; empty under `mmt`.
    pub z: Track,
    /// Packets per slot that each receiver got since the previous sample.
    pub received: Track,
    /// Packets per slot that entered each source since the previous sample.
    pub entered: Track,
}

impl Series {
    /// Creates an empty series. `seats` is the number of receivers with virtual queues.
    pub(crate) fn new(
        every: u64,
        slots: u64,
        queues: usize,
        receivers: usize,
        seats: usize,
        sessions: usize,
    ) -> Result<Self, WirelineError> {
        // A series is refused before it would fill the memory.
        let row = (2 * queues + seats + receivers + sessions) as u64;
        if every == 0 || every > slots || (slots / every).saturating_mul(row) > MOST {
            return Err(WirelineError::Series { every, slots, most: MOST });
        }

        let [q, d] = [queues; 2].map(Track::new);
        let [z, received, entered] = [seats, receivers, sessions].map(Track::new);
        Ok(Self { every, q, d, z, received, entered })
    }

    /// Returns the number of samples.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.q.values.len() / self.q.width.max(1)
    }
}

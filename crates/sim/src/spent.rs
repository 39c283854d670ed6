//! Time that the machine spends on the parts of a simulation.

use ncmesh_engines::registry;
use ncmesh_stack::summary::services;
use ncmesh_wire::ServiceId;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A part of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The medium: contention, propagation, loss.
    Medium,
    /// Timers of nodes.
    Timers,
    /// Nodes write a frame of this service.
    Written(ServiceId),
    /// Nodes handle a frame of this service.
    Heard(ServiceId),
}

impl Part {
    /// Returns the names of the part and of its service; `-` for a part without a service.
    #[must_use]
    pub fn names(self) -> (&'static str, &'static str) {
        let name = |service| {
            let found = services(registry()).find(|known| known.id == service);
            found.map_or("unknown", |known| known.name)
        };
        match self {
            Self::Medium => ("medium", "-"),
            Self::Timers => ("timers", "-"),
            Self::Written(service) => ("frames written", name(service)),
            Self::Heard(service) => ("frames heard", name(service)),
        }
    }
}

/// Time spent on a part.
#[derive(Clone, Copy, Debug)]
pub struct SpentOn {
    /// The part.
    pub part: Part,
    /// Number of its runs.
    pub runs: u64,
    /// Time of all of them.
    pub time: Duration,
}

/// Number of runs of each part, and their total time.
#[derive(Clone, Debug, Default)]
pub struct Spent(BTreeMap<Part, (u64, Duration)>);

impl Spent {
    /// Counts one run of `part`, which has just ended.
    pub(crate) fn add(&mut self, part: Part, begun: Instant) {
        let (count, time) = self.0.entry(part).or_default();
        *count += 1;
        *time += begun.elapsed();
    }

    /// Returns all parts, the one that took longest first.
    #[must_use]
    pub fn parts(&self) -> Vec<SpentOn> {
        let spent_on = |(part, (runs, time)): (&Part, &(u64, Duration))| SpentOn {
            part: *part,
            runs: *runs,
            time: *time,
        };
        let mut parts: Vec<_> = self.0.iter().map(spent_on).collect();
        parts.sort_by_key(|spent| (core::cmp::Reverse(spent.time), spent.part));
        parts
    }
}

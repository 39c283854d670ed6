//! The observers of one simulation: the trace hash, and those that the caller added.
//!
//! The first error of an observer is kept until [`Observers::finish`]. From then on only the trace
//! hash sees further events, and the simulation stops before its next step.

use crate::observe::{Event, Observer, Snapshot, What};
use crate::trace::Trace;
use ncmesh_engine::time::Instant;
use std::io;

/// The trace hash and the other observers.
#[derive(Default)]
pub(crate) struct Observers {
    pub(crate) trace: Trace,
    others: Vec<Box<dyn Observer>>,
    failure: Option<io::Error>,
}

impl Observers {
    pub(crate) fn add(&mut self, observer: Box<dyn Observer>) {
        self.others.push(observer);
    }

    /// Passes an event to all observers, in the order in which they were added.
    pub(crate) fn tell(&mut self, at: Instant, node: usize, what: What<'_>) {
        // The trace hash cannot fail, and stays complete if another observer does.
        let event = Event { at, node, what };
        self.trace.observe(&event);
        for observer in &mut self.others {
            if self.failure.is_none() {
                self.failure = observer.observe(&event).err();
            }
        }
    }

    /// Returns when an observer next wants to look at the simulation.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        self.others.iter().filter_map(|observer| observer.next_look()).min()
    }

    /// Shows the simulation to the observers that want to look at it now or wanted to before; to
    /// all that ever want to look if it `is_last`.
    pub(crate) fn look(&mut self, snapshot: Snapshot<'_>, is_last: bool) {
        for observer in &mut self.others {
            let is_due = observer.next_look().is_some_and(|at| is_last || at <= snapshot.at);
            if is_due && self.failure.is_none() {
                self.failure = observer.look(snapshot).err();
            }
        }
    }

    /// Returns whether an observer has failed.
    pub(crate) fn have_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Finishes all observers and removes them, even if one fails. Returns the first error.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        let failed = self.failure.take().map_or(Ok(()), Err);
        let finished = self.others.drain(..).map(|mut observer| observer.finish());
        finished.fold(failed, Result::and)
    }
}

//! Filter that passes each count or feedback frame of a neighbour once.
//!
//! Over a bad link such a frame is broadcast in several copies with the same number. Without the
//! filter, a node would answer each copy of a count, and add credit for each copy of a feedback.

use ncmesh_engine::toolkit::sequence::Serial;
use ncmesh_wire::{NodeId, StartId};

/// The last frame that passed. A generation has one filter for counts and one for
/// feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CopyFilter {
    latest: Option<Latest>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Latest {
    sender: NodeId,
    /// Start of the sender. It numbers its frames from the beginning in each.
    start: StartId,
    number: u16,
}

impl CopyFilter {
    /// Returns whether a frame is neither a copy of the last one nor older, and remembers it if so.
    pub(crate) fn accept(&mut self, sender: NodeId, start: StartId, number: u16) -> bool {
        let known = self.latest.filter(|last| (last.sender, last.start) == (sender, start));
        let is_new = known.is_none_or(|last| number.is_newer_than(last.number));
        if is_new {
            self.latest = Some(Latest { sender, start, number });
        }
        is_new
    }
}

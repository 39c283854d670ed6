//! Filter that passes each count or feedback frame of a neighbour once.
//!
//! Over a bad link such a frame is broadcast in several copies with the same number. Without the
//! filter, a node would answer each copy of a count, and add credit for each copy of a feedback.

use ncmesh_engine::toolkit::sequence::Serial;
use ncmesh_wire::NodeId;

/// The last frame that passed. A generation has one filter for counts and one for
/// feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CopyFilter {
    latest: Option<Latest>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Latest {
    sender: NodeId,
    /// Epoch of the sender. It numbers its frames from the beginning in each.
    epoch: u64,
    number: u16,
}

impl CopyFilter {
    /// Returns whether a frame is neither a copy of the last one nor older, and remembers it if so.
    pub(crate) fn accept(&mut self, sender: NodeId, epoch: u64, number: u16) -> bool {
        let known = self.latest.filter(|last| (last.sender, last.epoch) == (sender, epoch));
        let is_new = known.is_none_or(|last| number.is_newer_than(last.number));
        if is_new {
            self.latest = Some(Latest { sender, epoch, number });
        }
        is_new
    }
}

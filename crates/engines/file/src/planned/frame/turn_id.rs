//! Name of one turn of a source on a generation.

use ncmesh_engine::toolkit::sequence::Serial;
use ncmesh_wire::record;
use ncmesh_wire::record::field;

record! {
    /// One turn of a source on a generation: from the moment it begins to send packets of the
    /// generation until it moves on. A generation may get several turns; each has a number of its
    /// own.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct TurnId {
        /// tells the source's starts apart: the four 16-bit parts of its epoch, xored. It has no
        /// order
        pub incarnation: u16 = field("incarnation", "Incarnation").hex(),
        /// counts the source's turns to generations, and turns begun anew, within an incarnation;
        /// compared modulo 2^32
        pub number: u32 = field("turn", "Turn"),
    }
}

impl TurnId {
    /// Returns whether a node that works on this turn must switch to `other`.
    ///
    /// A turn of another incarnation always supersedes this one: a source that restarts has
    /// forgotten its old turns. Within an incarnation the later number does, compared as serial
    /// numbers (RFC 1982).
    pub(crate) fn is_superseded_by(self, other: Self) -> bool {
        other.incarnation != self.incarnation || other.number.is_newer_than(self.number)
    }

    /// Returns the turn that the same source begins next.
    pub(crate) fn next(self) -> Self {
        Self { number: self.number.wrapping_add(1), ..self }
    }
}

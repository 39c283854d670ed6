//! Pauses that differ from node to node.

use ncmesh_wire::NodeId;

/// Makes pauses differ. Nodes that do not hear each other often want to say something because of
/// the same frame: in step, their frames would collide again and again.
#[derive(Debug)]
pub(super) struct Jitter {
    me: NodeId,
    /// Number of pauses so far.
    pauses: u16,
}

impl Jitter {
    /// Returns the jitter of the node `me`.
    pub(super) fn new(me: NodeId) -> Self {
        Self { me, pauses: 0 }
    }

    /// Returns a factor from 0.5 to 1.5 for a pause.
    pub(super) fn factor(&mut self) -> f64 {
        self.pauses = self.pauses.wrapping_add(1);
        // Multiples of the golden ratio are spread evenly (Knuth, volume 3, 6.4).
        let spread = (self.me.0 ^ self.pauses.wrapping_mul(0x3C6F)).wrapping_mul(0x9E37);
        0.5 + f64::from(spread) / 65_536.0
    }
}

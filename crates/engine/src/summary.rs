//! Summary of a frame for traces, read from its bytes alone.

use ncmesh_wire::FlowId;

/// Kind and context of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Protocol it belongs to: `link`, `route` or the name of an engine.
    pub service: &'static str,
    /// Kind of frame, such as `hello`, `probe`, `announcement`, `data`, `acknowledgment`.
    pub kind: &'static str,
    /// The transfer or flow it belongs to.
    pub flow: Option<FlowId>,
    /// The generation that is coded in it.
    pub generation: Option<u32>,
}

impl Summary {
    /// Returns a summary of a frame that belongs to no flow.
    #[must_use]
    pub fn new(service: &'static str, kind: &'static str) -> Self {
        Self { service, kind, flow: None, generation: None }
    }
}

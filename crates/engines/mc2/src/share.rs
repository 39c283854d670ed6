//! The least share of the slots that a flow gets beside others.
//!
//! By weight alone (3.4) a flow that receives little hardly begins. At a rate of x its source holds
//! K/x credits before it inserts as slowly as that, each relay nearly as many as the node before
//! it, and until they are there every node of the flow weighs less than those of faster flows. So a
//! node that had no turn for some frames' time, while it heard frames of other flows, goes first. A
//! flow that is alone is sent by weight only.

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;

/// Frames' time in which a node sends a frame of each flow that has something to send.
const FRAMES_PER_TURN: f64 = 64.0;

/// Ends of a flow: source and destination.
pub(crate) type FlowKey = (NodeId, NodeId);

/// Latest data frames of two flows, which tell whether a flow has others beside it.
#[derive(Debug, Default)]
pub(crate) struct RecentFlows {
    latest: Option<(FlowKey, Instant)>,
    /// That of another flow than the latest.
    other: Option<(FlowKey, Instant)>,
}

impl RecentFlows {
    /// Notes a data frame that was heard or sent.
    pub(crate) fn note(&mut self, flow: FlowKey, now: Instant) {
        if self.latest.is_some_and(|(latest, _)| latest != flow) {
            self.other = self.latest;
        }
        self.latest = Some((flow, now));
    }

    /// Returns when the latest frame of a flow other than `flow` was heard or sent.
    pub(crate) fn beside(&self, flow: FlowKey) -> Option<Instant> {
        let others = [self.latest, self.other].into_iter().flatten();
        others.filter(|(of, _)| *of != flow).map(|(_, at)| at).max()
    }
}

/// Returns the longest time that a flow with something to send waits for a turn beside others.
pub(crate) fn longest_wait(frame_time: Duration) -> Duration {
    frame_time.mul_f64(FRAMES_PER_TURN)
}

//! Progress of a lab's flows over time.

use ncmesh_node::api::types::Flow;
use serde::Serialize;
use std::time::Duration;

/// Number of delivered packets at several times.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Samples {
    /// Times of the samples, s from the start of the first flow.
    pub seconds: Vec<f64>,
    /// For each flow, in the scenario's order: packets that its destination had delivered to its
    /// host by then.
    pub delivered: Vec<Vec<u64>>,
}

impl Samples {
    pub(crate) fn of(flows: usize) -> Self {
        Self { seconds: Vec::new(), delivered: vec![Vec::new(); flows] }
    }

    pub(crate) fn add(&mut self, at: Duration, flows: &[Option<Flow>]) {
        self.seconds.push(at.as_secs_f64());
        for (delivered, flow) in self.delivered.iter_mut().zip(flows) {
            delivered.push(flow.as_ref().map_or(0, |flow| flow.delivered));
        }
    }
}

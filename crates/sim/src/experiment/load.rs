//! Traffic of one service during a run, and the mesh that carries it.

use super::error::RunError;
use super::step::Stage;
use crate::outcome::ServiceOutcomes;
use crate::scenario::Scenario;
use crate::simulation::Simulation;
use ncmesh_engine::time::Instant;

/// Traffic of one service during a run.
pub(super) trait Load {
    /// Returns how far it is, for callers that show it.
    fn stage(&self) -> Stage;

    /// Returns whether it is over: it sends nothing more, and its results can be collected.
    fn is_over(&self, sim: &Simulation) -> bool;

    /// Sends what it has to send now.
    fn act(&mut self, sim: &mut Simulation) -> Result<(), RunError>;

    /// Returns when it next has something to do after `now`; `None` if only events tell.
    fn due(&mut self, now: Instant) -> Option<Instant>;

    /// Returns whether it has something to do now, at a later instant than `last`. Called after
    /// every event, so it must be cheap.
    fn may_act(&mut self, sim: &Simulation, last: Instant) -> bool;

    /// Takes what arrived since the last call, and samples what is sampled over time.
    fn observe(&mut self, world: &mut World<'_>);

    /// Adds its results to those of the run.
    fn conclude(self: Box<Self>, world: &World<'_>, outcomes: &mut ServiceOutcomes);
}

/// A mesh that runs a scenario.
pub(super) struct World<'a> {
    pub scenario: &'a Scenario,
    pub sim: Simulation,
}

impl World<'_> {
    /// Returns the name of a node.
    pub(super) fn name(&self, node: usize) -> String {
        self.scenario.nodes[node].name.clone()
    }
}

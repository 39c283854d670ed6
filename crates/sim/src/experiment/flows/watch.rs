//! A flow as seen from outside, whatever it carries.

use super::{FlowOutcome, Run, RunError};
use crate::scenario::Flow;
use crate::simulation::{Simulation, SimulationError, node_id};
use ncmesh_engine::time::Instant;
use ncmesh_engine::tunnel::{FlowStatus, PacketError};
use std::ops::ControlFlow;

/// A flow from outside.
pub(super) struct Watch {
    pub scheme: &'static str,
    pub flow: Flow,
    pub begins: Instant,
    pub counts_from: Instant,
    pub ends: Instant,
    /// Packets delivered since its start.
    pub delivered: u64,
    /// What the destination had heard when measuring began.
    pub before: (u64, u64),
    pub outcome: FlowOutcome,
}

impl Watch {
    pub(super) fn new(
        scheme: &'static str,
        flow: Flow,
        packet_bytes: usize,
        start: Instant,
        (from, to): (String, String),
    ) -> Self {
        let begins = start + flow.start;
        let counts_from = begins + flow.warm_up;
        let ends = counts_from + flow.duration;
        let outcome = FlowOutcome { from, to, packet_bytes, ..FlowOutcome::default() };
        let (delivered, before) = (0, (0, 0));
        Self { scheme, flow, begins, counts_from, ends, delivered, before, outcome }
    }

    /// Whether it may offer packets.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        (self.begins..self.ends).contains(&now)
    }

    /// Whether what happens is counted.
    pub(super) fn counts(&self, now: Instant) -> bool {
        (self.counts_from..self.ends).contains(&now)
    }

    /// Whether the scheme would take a packet of the flow at a node now.
    pub(super) fn can_send(&self, s: &Simulation, from: usize, to: usize) -> bool {
        s.can_send(self.scheme, from, to)
    }

    /// Offers a packet, and says whether it was taken.
    pub(super) fn send(
        &mut self,
        s: &mut Simulation,
        (from, to): (usize, usize),
        packet: &[u8],
    ) -> Result<bool, RunError> {
        let taken = match s.send_packet(self.scheme, from, to, packet) {
            Ok(()) => true,
            Err(SimulationError::Packet(PacketError::Full | PacketError::NoPath(_))) => false,
            Err(e) => return Err(e.into()),
        };
        if self.counts(s.now()) && from == self.flow.from {
            self.outcome.taken += u64::from(taken);
            self.outcome.refused += u64::from(!taken);
        }
        Ok(taken)
    }

    fn status(&self, s: &Simulation, node: usize) -> Option<FlowStatus> {
        let (source, destination) = (node_id(self.flow.from), node_id(self.flow.to));
        let flows = s.host(node).stack()?.flows();
        let own = |(name, flow): &(&str, FlowStatus)| {
            *name == self.scheme && flow.source == source && flow.destination == destination
        };
        flows.into_iter().find(own).map(|(_, flow)| flow)
    }

    /// Frames the destination has heard, and the innovative ones of them.
    pub(super) fn heard(&self, s: &Simulation) -> (u64, u64) {
        let flow = self.status(s, self.flow.to);
        flow.map_or((0, 0), |flow| (flow.heard, flow.innovative))
    }

    pub(super) fn sample<P: FnMut(&Simulation) -> ControlFlow<()>>(&mut self, run: &Run<'_, P>) {
        let now = run.s.now();
        if now < self.begins {
            return;
        }
        let innovative = self.heard(&run.s).1;
        let series = &mut self.outcome.series;
        series.seconds.push((now - self.begins).as_secs_f64());
        series.delivered.push(self.delivered);
        series.innovative.push(innovative);
        let samples = series.seconds.len();
        for node in 0..run.s.len() {
            let credits = self.status(&run.s, node).map(|flow| flow.credits);
            let (known, name) = (&mut self.outcome.series.credits, run.name(node));
            if credits.is_some() || known.contains_key(&name) {
                let series = known.entry(name).or_insert_with(|| vec![0; samples - 1]);
                series.push(credits.unwrap_or(0));
            }
        }
    }
}

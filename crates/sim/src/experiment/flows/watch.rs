//! A flow as seen from outside, whatever it carries.

use super::{Run, RunError};
use crate::outcome::FlowOutcome;
use crate::scenario::Flow;
use crate::simulation::{Simulation, node_id};
use ncmesh_engine::time::Instant;
use ncmesh_engine::tunnel::FlowStatus;
use std::net::Ipv4Addr;
use std::ops::ControlFlow;

/// A flow from outside.
pub(super) struct Watch {
    pub scheme: &'static str,
    pub flow: Flow,
    pub begins: Instant,
    pub counts_from: Instant,
    pub ends: Instant,
    /// Addresses of the source's and the destination's host.
    pub addresses: [Ipv4Addr; 2],
    /// Packets offered at the source while it was measured.
    pub offered: u64,
    /// Packets delivered since its start.
    pub delivered: u64,
    /// What the destination had heard when measuring began.
    pub before: (u64, u64),
    /// What the scheme had taken at the source when measuring began.
    pub taken_before: u64,
    pub outcome: FlowOutcome,
}

impl Watch {
    pub(super) fn new(
        scheme: &'static str,
        flow: Flow,
        packet_bytes: usize,
        start: Instant,
        ((from, to), addresses): ((String, String), [Ipv4Addr; 2]),
    ) -> Self {
        let begins = start + flow.start;
        let counts_from = begins + flow.warm_up;
        let ends = counts_from + flow.duration;
        let protocol = flow.transport.name().to_owned();
        let outcome = FlowOutcome { from, to, protocol, packet_bytes, ..FlowOutcome::default() };
        Self {
            scheme,
            flow,
            begins,
            counts_from,
            ends,
            addresses,
            offered: 0,
            delivered: 0,
            before: (0, 0),
            taken_before: 0,
            outcome,
        }
    }

    /// Whether it may offer packets.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        (self.begins..self.ends).contains(&now)
    }

    /// Whether what happens is counted.
    pub(super) fn counts(&self, now: Instant) -> bool {
        (self.counts_from..self.ends).contains(&now)
    }

    /// Sends a packet of one end's host through the gateway of its node.
    pub(super) fn send(
        &mut self,
        s: &mut Simulation,
        from: usize,
        packet: Vec<u8>,
    ) -> Result<(), RunError> {
        s.send_ip_packet(from, packet)?;
        self.offered += u64::from(self.counts(s.now()) && from == self.flow.from);
        Ok(())
    }

    /// Returns how many packets of the source the scheme has taken.
    pub(super) fn taken(&self, s: &Simulation) -> u64 {
        s.packets_taken(self.flow.from, self.addresses[0])
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

//! Measurement of a flow from outside, whatever its transport protocol.

use super::RunError;
use crate::experiment::load::World;
use crate::outcome::FlowOutcome;
use crate::scenario::Flow;
use crate::simulation::{Simulation, node_id};
use ncmesh_engine::time::Instant;
use ncmesh_engine::tunnel::FlowStatus;
use smoltcp::wire::Ipv4Packet;
use std::net::Ipv4Addr;

/// Data frames of a flow that its destination has heard since it started.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    pub frames: u64,
    pub innovative: u64,
}

/// The two ends of a flow.
pub(super) struct Ends {
    /// Names of the nodes.
    pub from: String,
    pub to: String,
    /// Addresses of the source's and the destination's host.
    pub addresses: [Ipv4Addr; 2],
}

/// Meter of a flow: its times, its addresses and what is counted about it.
pub(super) struct FlowMeter {
    pub scheme: &'static str,
    pub flow: Flow,
    pub begins: Instant,
    /// Beginning of the measurement, after the warm-up.
    pub counts_from: Instant,
    pub ends: Instant,
    /// Addresses of the source's and the destination's host.
    pub addresses: [Ipv4Addr; 2],
    /// Packets offered at the source during the measurement.
    pub offered: u64,
    /// Packets delivered since the start of the flow.
    pub delivered: u64,
    /// Frames heard by the destination before the measurement.
    pub before: Heard,
    /// Packets that the scheme had taken at the source before the measurement.
    pub taken_before: u64,
    pub outcome: FlowOutcome,
}

impl FlowMeter {
    pub(super) fn new(
        scheme: &'static str,
        flow: Flow,
        packet_bytes: usize,
        start: Instant,
        Ends { from, to, addresses }: Ends,
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
            before: Heard::default(),
            taken_before: 0,
            outcome,
        }
    }

    /// Returns whether the flow is between its beginning and its end, and may offer packets.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        (self.begins..self.ends).contains(&now)
    }

    /// Returns whether `now` is within the measurement.
    pub(super) fn counts(&self, now: Instant) -> bool {
        (self.counts_from..self.ends).contains(&now)
    }

    /// Sends a packet of a host through the gateway of its node `from`.
    pub(super) fn send(
        &mut self,
        sim: &mut Simulation,
        from: usize,
        mut packet: Vec<u8>,
    ) -> Result<(), RunError> {
        self.mark(&mut packet);
        sim.send_ip_packet(from, packet)?;
        self.offered += u64::from(self.counts(sim.now()) && from == self.flow.from);
        Ok(())
    }

    /// Marks a packet with the class of the flow.
    pub(super) fn mark(&self, packet: &mut [u8]) {
        let mut ip = Ipv4Packet::new_unchecked(packet);
        if ip.dscp() != self.flow.dscp {
            ip.set_dscp(self.flow.dscp);
            ip.fill_checksum();
        }
    }

    /// Returns how many packets of the source the scheme has taken so far.
    pub(super) fn taken(&self, sim: &Simulation) -> u64 {
        sim.packets_taken(self.flow.from, self.addresses[0])
    }

    /// Returns the status of the flow at a node, if the scheme knows the flow there.
    fn status(&self, sim: &Simulation, node: usize) -> Option<FlowStatus> {
        let source = node_id(self.flow.from);
        let destination = node_id(self.flow.to);
        let flows = sim.host(node).stack()?.flows();
        let own = |(name, flow): &(&str, FlowStatus)| {
            *name == self.scheme && flow.source == source && flow.destination == destination
        };
        flows.into_iter().find(own).map(|(_, flow)| flow)
    }

    /// Returns what the destination has heard so far.
    pub(super) fn heard(&self, sim: &Simulation) -> Heard {
        let flow = self.status(sim, self.flow.to);
        flow.map_or_else(Heard::default, |flow| Heard {
            frames: flow.heard,
            innovative: flow.innovative,
        })
    }

    /// Appends a sample to the time series.
    pub(super) fn sample(&mut self, world: &World<'_>) {
        let now = world.sim.now();
        if now < self.begins {
            return;
        }
        let innovative = self.heard(&world.sim).innovative;
        let series = &mut self.outcome.series;
        series.seconds.push((now - self.begins).as_secs_f64());
        series.delivered.push(self.delivered);
        series.innovative.push(innovative);
        let samples = series.seconds.len();

        // A node's series of credits begins with zeros if the node learns of the flow late, so that
        // all series have one length.
        for node in 0..world.sim.len() {
            let credits = self.status(&world.sim, node).map(|flow| flow.credits);
            let known = &mut self.outcome.series.credits;
            let name = world.name(node);
            if credits.is_some() || known.contains_key(&name) {
                let series = known.entry(name).or_insert_with(|| vec![0; samples - 1]);
                series.push(credits.unwrap_or(0));
            }
        }
    }
}

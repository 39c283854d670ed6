//! Flows through a tunnel, whatever their transport protocol.
//!
//! Each flow has a [`TrafficSource`], which produces its packets and checks those that arrive, and
//! a [`FlowMeter`], which measures it from outside. The packets pass through the gateways of both
//! ends, as those of hosts behind a daemon do.

mod meter;
mod packets;
mod tcp;

use super::error::RunError;
use super::load::{Load, World};
use super::step::Stage;
use crate::outcome::{CodingOutcome, FlowOutcome, FlowsOutcome, ServiceOutcomes};
use crate::scenario::{Flow, Transport};
use crate::simulation::{IpArrival, Simulation, node_id};
use meter::{Ends, FlowMeter};
use ncmesh_engine::time::Instant;
use ncmesh_host::console::coding_values;
use ncmesh_host::gateway::{DEFAULT_QUEUE, GatewayConfig, Target};
use ncmesh_medium::MacConfig;
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

/// Number of samples of a time series over the longest flow.
const SAMPLES: u32 = 200;

/// Source and sink of a flow's packets, by transport protocol.
trait TrafficSource {
    /// Returns when its next timer after `now` is due.
    fn due(&mut self, meter: &FlowMeter, now: Instant) -> Option<Instant>;

    /// Returns whether it may have packets to send now, at a later instant than `last`. Called
    /// after every event, so it must be cheap.
    fn may_act(&self, meter: &FlowMeter, sim: &Simulation, last: Instant) -> bool;

    /// Sends the packets that it has to send now.
    fn act(&mut self, meter: &mut FlowMeter, sim: &mut Simulation) -> Result<(), RunError>;

    /// Handles a packet that arrived, if it belongs to this flow.
    fn receive(&mut self, meter: &mut FlowMeter, arrival: &IpArrival);

    /// Handles the beginning of the measurement.
    fn begin_counting(&mut self) {}

    /// Returns whether it has sent everything before the end of the flow.
    fn is_over(&self) -> bool {
        false
    }

    /// Adds its own results to those of the flow.
    fn conclude(&self, outcome: &mut FlowOutcome, begins: Instant);
}

/// A flow that is running.
struct RunningFlow {
    meter: FlowMeter,
    traffic: Box<dyn TrafficSource>,
}

/// The scenario's flows under way.
pub(super) struct Flows {
    scheme: &'static str,
    flows: Vec<RunningFlow>,
    start: Instant,
    /// End of the last flow, or of the run.
    end: Instant,
    sample_at: Instant,
}

impl Flows {
    /// Sets up all flows and the gateways at their ends. The run ends at `limit` at the latest.
    pub(super) fn begin(
        world: &mut World<'_>,
        scheme: &'static str,
        limit: Instant,
    ) -> Result<Self, RunError> {
        let start = world.sim.now();
        let flows = running_flows(world, scheme, start)?;
        open_gateways(world, scheme, &flows);
        let end = flows.iter().map(|flow| flow.meter.ends).max().unwrap_or(start).min(limit);
        Ok(Self { scheme, flows, start, end, sample_at: start })
    }
}

impl Load for Flows {
    fn stage(&self) -> Stage {
        Stage::Timed { begins: self.start, ends: self.end }
    }

    fn is_over(&self, sim: &Simulation) -> bool {
        sim.now() >= self.end || self.flows.iter().all(|flow| flow.traffic.is_over())
    }

    fn act(&mut self, sim: &mut Simulation) -> Result<(), RunError> {
        self.flows.iter_mut().try_for_each(|flow| flow.traffic.act(&mut flow.meter, sim))
    }

    fn due(&mut self, now: Instant) -> Option<Instant> {
        let due = self.flows.iter_mut().filter_map(|flow| flow.due(now));
        due.chain([self.sample_at, self.end]).min()
    }

    fn may_act(&mut self, sim: &Simulation, last: Instant) -> bool {
        self.flows.iter().any(|flow| flow.may_act(sim, last))
    }

    fn observe(&mut self, world: &mut World<'_>) {
        // Hand over what arrived meanwhile. Each flow recognises its own packets.
        for arrival in world.sim.take_ip_packets() {
            for flow in &mut self.flows {
                flow.traffic.receive(&mut flow.meter, &arrival);
            }
        }

        // The measurement of a flow begins after its warm-up: keep the counters of this instant, to
        // subtract them at the end.
        let now = world.sim.now();
        self.flows.iter_mut().filter(|flow| flow.meter.counts_from == now).for_each(|flow| {
            flow.meter.before = flow.meter.heard(&world.sim);
            flow.meter.taken_before = flow.meter.taken(&world.sim);
            flow.traffic.begin_counting();
        });

        if now >= self.sample_at {
            self.sample_at = now + (self.end - self.start) / SAMPLES;
            self.flows.iter_mut().for_each(|flow| flow.meter.sample(world));
        }
    }

    fn conclude(self: Box<Self>, world: &World<'_>, outcomes: &mut ServiceOutcomes) {
        let slot = slot_seconds(&world.sim);
        let coding = coding(world, self.scheme);
        let flows = self.flows.into_iter().map(|flow| flow.conclude(&world.sim, slot));
        outcomes.flows = Some(FlowsOutcome { flows: flows.collect(), coding, samples: None });
    }
}

/// Returns all flows of the scenario, after checking that their packets fit into frames.
fn running_flows(
    world: &World<'_>,
    scheme: &'static str,
    start: Instant,
) -> Result<Vec<RunningFlow>, RunError> {
    let running = |(number, flow): (usize, &Flow)| {
        // Packets must be long enough for their headers and short enough for the scheme.
        let stack = world.sim.host(flow.from).stack();
        let longest = stack.and_then(|stack| stack.longest_packet(stack.scheme(scheme)?));
        let longest = longest.unwrap_or(0);
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let least = match flow.transport {
            Transport::Udp => packets::SHORTEST,
            Transport::Tcp(_) => tcp::SHORTEST,
        };
        let packet = flow.packet.unwrap_or(longest).max(least);
        if packet > longest {
            return Err(RunError::TooLong { bytes: packet, scheme, longest });
        }

        // Every flow has hosts and a seed of its own, so one more flow in a scenario does not
        // change the packets of the others.
        let addresses = addresses(number);
        let ends = Ends { from: world.name(flow.from), to: world.name(flow.to), addresses };
        let meter = FlowMeter::new(scheme, flow.clone(), packet, start, ends);
        let seed = world.scenario.seed ^ u64::from(number) << 32;
        let traffic: Box<dyn TrafficSource> = match &flow.transport {
            Transport::Udp => Box::new(packets::Packets::new(number, &meter)),
            Transport::Tcp(tcp) => Box::new(tcp::Transfer::new(tcp, seed, &meter)?),
        };
        Ok(RunningFlow { meter, traffic })
    };
    world.scenario.flows.iter().enumerate().map(running).collect()
}

/// Returns the addresses of a flow's hosts, the source's first: 10.0.0.2 and 10.0.0.3 for flow 0,
/// and so on.
pub(crate) fn addresses(flow: u32) -> [Ipv4Addr; 2] {
    let [_, a, b, c] = (2 * (flow + 1)).to_be_bytes();
    [Ipv4Addr::new(10, a, b, c), Ipv4Addr::new(10, a, b, c + 1)]
}

/// Gives every node at an end of a flow a gateway that knows the hosts of all flows, as the lab's
/// daemons have one.
fn open_gateways(world: &mut World<'_>, scheme: &'static str, flows: &[RunningFlow]) {
    let hosts: BTreeMap<Ipv4Addr, usize> = flows
        .iter()
        .flat_map(|RunningFlow { meter, .. }| {
            let Flow { from, to, .. } = meter.flow;
            meter.addresses.into_iter().zip([from, to])
        })
        .collect();
    for node in hosts.values().copied().collect::<BTreeSet<_>>() {
        // A node's own hosts are its addresses. All other hosts are routed to their nodes.
        let stack = world.sim.host(node).stack();
        let mtu = stack.and_then(|stack| stack.longest_packet(stack.scheme(scheme)?));
        let mtu = mtu.unwrap_or(0);

        let (own, others): (Vec<_>, Vec<_>) = hosts.iter().partition(|(_, at)| **at == node);
        let route = |(address, at): (&Ipv4Addr, &usize)| {
            (IpAddr::from(*address).into(), Target::Id(node_id(*at)))
        };
        let config = GatewayConfig {
            addresses: own.into_iter().map(|(address, _)| (*address).into()).collect(),
            routes: others.into_iter().map(route).collect(),
            accept: Vec::new(),
            announce: Vec::new(),
            mtu,
            whole: mtu,
            clamp_mss: true,
            padding: false,
            queue: DEFAULT_QUEUE,
            multicast: None,
        };
        world.sim.open_gateway(node, scheme, config);
    }
}

/// Returns the length of the medium's slots, s; `None` if it has no slots.
fn slot_seconds(sim: &Simulation) -> Option<f64> {
    match sim.config().medium.mac {
        MacConfig::Slotted { slot_ns, .. } => Some(slot_ns as f64 * 1e-9),
        MacConfig::Dcf { .. } => None,
    }
}

/// Returns the coding statistics of each node, for schemes that have them.
fn coding(world: &World<'_>, scheme: &'static str) -> BTreeMap<String, CodingOutcome> {
    let of = |node: usize| {
        let statuses = world.sim.host(node).stack()?.coding();
        let (_, status) = statuses.into_iter().find(|(name, _)| *name == scheme)?;
        let holds = status.holds.iter().map(|hold| hold.hold_s).sum::<f64>();
        let named = |(node, why): &(NodeId, String)| {
            format!("{} {why}", world.name(usize::from(node.0.saturating_sub(1))))
        };
        let outcome = CodingOutcome {
            values: coding_values(&status),
            hold_s: (!status.holds.is_empty()).then(|| holds / status.holds.len() as f64),
            stopped: status.stopped.iter().map(named).collect(),
        };
        Some((world.name(node), outcome))
    };
    (0..world.sim.len()).filter_map(of).collect()
}

impl RunningFlow {
    /// Returns when the flow next has something to do after `now`.
    fn due(&mut self, now: Instant) -> Option<Instant> {
        let FlowMeter { begins, counts_from, ends, .. } = self.meter;
        let own = self.traffic.due(&self.meter, now);
        let times = [Some(begins), own, Some(counts_from), Some(ends)];
        times.into_iter().flatten().filter(|at| *at > now && *at <= ends).min()
    }

    /// Returns whether the flow may have packets to send now.
    fn may_act(&self, sim: &Simulation, last: Instant) -> bool {
        self.meter.is_open(sim.now()) && self.traffic.may_act(&self.meter, sim, last)
    }

    /// Returns the result of the flow. `slot` is the length of the medium's slots, s.
    fn conclude(self, sim: &Simulation, slot: Option<f64>) -> FlowOutcome {
        // A run that was cut off counts only the time that it really measured.
        let Self { meter, traffic } = self;
        let until = sim.now().min(meter.ends);
        let seconds =
            if until > meter.counts_from { (until - meter.counts_from).as_secs_f64() } else { 0.0 };

        // Counters of the nodes run from their start, so their values before the measurement are
        // subtracted. Packets offered and not taken were refused by the gateway, or still wait.
        let heard = meter.heard(sim);
        let taken = meter.taken(sim).saturating_sub(meter.taken_before);
        let mut outcome = meter.outcome;
        outcome.taken = Some(taken);
        outcome.refused = Some(meter.offered.saturating_sub(taken));
        outcome.heard = heard.frames.saturating_sub(meter.before.frames);
        outcome.innovative = heard.innovative.saturating_sub(meter.before.innovative);
        outcome.seconds = seconds;
        if seconds > 0.0 {
            outcome.packets_per_slot = slot.map(|slot| outcome.delivered as f64 * slot / seconds);
        }
        traffic.conclude(&mut outcome, meter.begins);
        outcome
    }
}

//! Flows through a tunnel: the loop that runs them, whatever their transport protocol.
//!
//! Each flow has a [`TrafficSource`], which produces its packets and checks those that arrive, and
//! a [`FlowMeter`], which measures it from outside. The packets pass through the gateways of both
//! ends, as those of hosts behind a daemon do.

mod meter;
mod packets;
mod tcp;

use super::{Run, RunError, Stage, Step};
use crate::outcome::{CodingOutcome, FlowOutcome, FlowsOutcome};
use crate::scenario::{Flow, Transport};
use crate::simulation::{IpArrival, Simulation, node_id};
use meter::{Ends, FlowMeter};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_host::gateway::{DEFAULT_QUEUE, GatewayConfig, Target};
use ncmesh_medium::MacConfig;
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::ControlFlow;

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

/// Runs the scenario's flows, for at most `limit`.
pub(super) fn run<P: FnMut(&Step<'_>) -> ControlFlow<()>>(
    run: &mut Run<'_, P>,
    limit: Duration,
) -> Result<FlowsOutcome, RunError> {
    let start = run.sim.now();
    let mut flows = running_flows(run, start)?;
    open_gateways(run, &flows);
    let end = flows.iter().map(|flow| flow.meter.ends).max().unwrap_or(start).min(start + limit);
    run.stage = Stage::Timed { begins: start, ends: end };
    let every = (end - start) / SAMPLES;
    let mut sample_at = start;
    while run.sim.now() < end && !flows.iter().all(|flow| flow.traffic.is_over()) {
        // Send what is due now.
        for flow in &mut flows {
            flow.traffic.act(&mut flow.meter, &mut run.sim)?;
        }

        // Run until the next timer or sample, or until an event lets a flow send more.
        let now = run.sim.now();
        let due = flows.iter_mut().filter_map(|flow| flow.due(now)).min();
        let until = due.into_iter().chain([sample_at, end]).min().unwrap_or(end);
        run.advance(until, |sim| flows.iter().any(|flow| flow.may_act(sim, now)))?;

        // Hand over what arrived meanwhile. Each flow recognises its own packets.
        for arrival in run.sim.take_ip_packets() {
            for flow in &mut flows {
                flow.traffic.receive(&mut flow.meter, &arrival);
            }
        }

        // The measurement of a flow begins after its warm-up: keep the counters of this instant, to
        // subtract them at the end.
        let now = run.sim.now();
        flows.iter_mut().filter(|flow| flow.meter.counts_from == now).for_each(|flow| {
            flow.meter.before = flow.meter.heard(&run.sim);
            flow.meter.taken_before = flow.meter.taken(&run.sim);
            flow.traffic.begin_counting();
        });
        if now >= sample_at {
            sample_at = now + every;
            flows.iter_mut().for_each(|flow| flow.meter.sample(run));
        }
        if run.sim.is_stopped() {
            break;
        }
    }
    let slot = slot_seconds(&run.sim);
    let outcomes = flows.into_iter().map(|flow| flow.conclude(&run.sim, slot));
    Ok(FlowsOutcome { flows: outcomes.collect(), coding: coding(run), samples: None })
}

/// Returns all flows of the scenario, after checking that their packets fit into frames.
fn running_flows<P: FnMut(&Step<'_>) -> ControlFlow<()>>(
    run: &Run<'_, P>,
    start: Instant,
) -> Result<Vec<RunningFlow>, RunError> {
    let scheme = run.scheme;
    let running = |(number, flow): (usize, &Flow)| {
        // Packets must be long enough for their headers and short enough for the scheme.
        let stack = run.sim.host(flow.from).stack();
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
        let ends = Ends { from: run.name(flow.from), to: run.name(flow.to), addresses };
        let meter = FlowMeter::new(scheme, flow.clone(), packet, start, ends);
        let seed = run.scenario.seed ^ u64::from(number) << 32;
        let traffic: Box<dyn TrafficSource> = match &flow.transport {
            Transport::Udp => Box::new(packets::Packets::new(number, &meter)),
            Transport::Tcp(tcp) => Box::new(tcp::Transfer::new(tcp, seed, &meter)?),
        };
        Ok(RunningFlow { meter, traffic })
    };
    run.scenario.flows.iter().enumerate().map(running).collect()
}

/// Returns the addresses of a flow's hosts, the source's first: 10.0.0.2 and 10.0.0.3 for flow 0,
/// and so on.
pub(crate) fn addresses(flow: u32) -> [Ipv4Addr; 2] {
    let [_, a, b, c] = (2 * (flow + 1)).to_be_bytes();
    [Ipv4Addr::new(10, a, b, c), Ipv4Addr::new(10, a, b, c + 1)]
}

/// Gives every node at an end of a flow a gateway that knows the hosts of all flows, as the lab's
/// daemons have one.
fn open_gateways<P>(run: &mut Run<'_, P>, flows: &[RunningFlow]) {
    let hosts: BTreeMap<Ipv4Addr, usize> = flows
        .iter()
        .flat_map(|RunningFlow { meter, .. }| {
            let Flow { from, to, .. } = meter.flow;
            meter.addresses.into_iter().zip([from, to])
        })
        .collect();
    for node in hosts.values().copied().collect::<BTreeSet<_>>() {
        // A node's own hosts are its addresses. All other hosts are routed to their nodes.
        let stack = run.sim.host(node).stack();
        let mtu = stack.and_then(|stack| stack.longest_packet(stack.scheme(run.scheme)?));
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
            clamp_mss: true,
            queue: DEFAULT_QUEUE,
        };
        run.sim.open_gateway(node, run.scheme, config);
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
fn coding<P: FnMut(&Step<'_>) -> ControlFlow<()>>(
    run: &Run<'_, P>,
) -> BTreeMap<String, CodingOutcome> {
    let of = |node: usize| {
        let statuses = run.sim.host(node).stack()?.coding();
        let (_, status) = statuses.into_iter().find(|(scheme, _)| *scheme == run.scheme)?;
        let holds = status.holds.iter().map(|hold| hold.hold_s).sum::<f64>();
        let named = |(node, why): &(NodeId, String)| {
            format!("{} {why}", run.name(usize::from(node.0.saturating_sub(1))))
        };
        let outcome = CodingOutcome {
            sent: status.sent,
            coded: status.coded,
            ratio: status.ratio(),
            decoded: status.decoded,
            undecodable: status.undecodable,
            repeated: status.repeated,
            hold_s: (!status.holds.is_empty()).then(|| holds / status.holds.len() as f64),
            stopped: status.stopped.iter().map(named).collect(),
        };
        Some((run.name(node), outcome))
    };
    (0..run.sim.len()).filter_map(of).collect()
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

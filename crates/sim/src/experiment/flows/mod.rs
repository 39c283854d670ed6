//! Flows through a tunnel: what each kind of traffic has in common.

mod packets;
mod tcp;
mod watch;

use super::{Run, RunError};
use crate::outcome::{CodingOutcome, FlowOutcome, FlowsOutcome};
use crate::scenario::{Flow, Transport};
use crate::simulation::{IpArrival, Simulation, node_id};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_host::gateway::{DEFAULT_QUEUE, GatewayConfig, Target};
use ncmesh_medium::MacConfig;
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::ControlFlow;
use watch::Watch;

/// How often what is told over time is looked at, in the time of the longest flow.
const SAMPLES: u32 = 200;

/// What a flow carries.
trait Traffic {
    /// When, later than `now`, it has something to do on its own account.
    fn due(&mut self, watch: &Watch, now: Instant) -> Option<Instant>;

    /// Whether it has something to do already now, at another instant than `last`.
    fn may_act(&self, watch: &Watch, s: &Simulation, last: Instant) -> bool;

    /// Offers what there is to offer.
    fn act(&mut self, watch: &mut Watch, s: &mut Simulation) -> Result<(), RunError>;

    /// Takes a packet, if it is one of its.
    fn receive(&mut self, watch: &mut Watch, arrival: &IpArrival);

    /// Measuring begins.
    fn begin_counting(&mut self) {}

    /// Whether it ended before its time.
    fn is_over(&self) -> bool {
        false
    }

    /// Adds what only it knows.
    fn conclude(&self, outcome: &mut FlowOutcome, begins: Instant);
}

/// A flow with its traffic.
struct Carriage {
    watch: Watch,
    traffic: Box<dyn Traffic>,
}

/// Carries the scenario's flows, at most for `limit`.
pub(super) fn carry<P: FnMut(&Simulation) -> ControlFlow<()>>(
    run: &mut Run<'_, P>,
    limit: Duration,
) -> Result<FlowsOutcome, RunError> {
    let start = run.s.now();
    let mut flows = carriages(run, start)?;
    open_gateways(run, &flows);
    let end = flows.iter().map(|flow| flow.watch.ends).max().unwrap_or(start).min(start + limit);
    let every = (end - start) / SAMPLES;
    let mut sample_at = start;
    while run.s.now() < end && !flows.iter().all(|flow| flow.traffic.is_over()) {
        for flow in &mut flows {
            flow.traffic.act(&mut flow.watch, &mut run.s)?;
        }
        let now = run.s.now();
        let due = flows.iter_mut().filter_map(|flow| flow.due(now)).min();
        let until = due.into_iter().chain([sample_at, end]).min().unwrap_or(end);
        run.advance(until, |s| flows.iter().any(|flow| flow.may_act(s, now)))?;
        for arrival in run.s.take_ip_packets() {
            for flow in &mut flows {
                flow.traffic.receive(&mut flow.watch, &arrival);
            }
        }
        let now = run.s.now();
        flows.iter_mut().filter(|flow| flow.watch.counts_from == now).for_each(|flow| {
            flow.watch.before = flow.watch.heard(&run.s);
            flow.watch.taken_before = flow.watch.taken(&run.s);
            flow.traffic.begin_counting();
        });
        if now >= sample_at {
            sample_at = now + every;
            flows.iter_mut().for_each(|flow| flow.watch.sample(run));
        }
        if run.s.is_stopped() {
            break;
        }
    }
    let slot = slot_seconds(&run.s);
    let outcomes = flows.into_iter().map(|flow| flow.conclude(&run.s, slot));
    Ok(FlowsOutcome { flows: outcomes.collect(), coding: coding(run), samples: None })
}

fn carriages<P: FnMut(&Simulation) -> ControlFlow<()>>(
    run: &Run<'_, P>,
    start: Instant,
) -> Result<Vec<Carriage>, RunError> {
    let scheme = run.scheme;
    let carriage = |(number, flow): (usize, &Flow)| {
        let stack = run.s.host(flow.from).stack();
        let longest = stack.and_then(|stack| stack.longest_packet(scheme)).unwrap_or(0);
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let least = match flow.transport {
            Transport::Udp => packets::SHORTEST,
            Transport::Tcp(_) => tcp::SHORTEST,
        };
        let packet = flow.packet.unwrap_or(longest).max(least);
        if packet > longest {
            return Err(RunError::TooLong { bytes: packet, scheme, longest });
        }
        let names = (run.name(flow.from), run.name(flow.to));
        let ends = (names, addresses(number));
        let watch = Watch::new(scheme, flow.clone(), packet, start, ends);
        let seed = run.scenario.seed ^ u64::from(number) << 32;
        let traffic: Box<dyn Traffic> = match &flow.transport {
            Transport::Udp => Box::new(packets::Packets::new(number, &watch)),
            Transport::Tcp(tcp) => Box::new(tcp::Transfer::new(tcp, seed, &watch)?),
        };
        Ok(Carriage { watch, traffic })
    };
    run.scenario.flows.iter().enumerate().map(carriage).collect()
}

/// Returns the addresses of a flow's hosts, the source's first.
fn addresses(flow: u32) -> [Ipv4Addr; 2] {
    let [_, a, b, c] = (2 * (flow + 1)).to_be_bytes();
    [Ipv4Addr::new(10, a, b, c), Ipv4Addr::new(10, a, b, c + 1)]
}

/// Gives every node at an end of a flow a gateway that knows the hosts of all flows, as the lab's
/// daemons have one.
fn open_gateways<P>(run: &mut Run<'_, P>, flows: &[Carriage]) {
    let hosts: BTreeMap<Ipv4Addr, usize> = flows
        .iter()
        .flat_map(|Carriage { watch, .. }| {
            let Flow { from, to, .. } = watch.flow;
            watch.addresses.into_iter().zip([from, to])
        })
        .collect();
    for node in hosts.values().copied().collect::<BTreeSet<_>>() {
        let stack = run.s.host(node).stack();
        let mtu = stack.and_then(|stack| stack.longest_packet(run.scheme)).unwrap_or(0);
        let (own, others): (Vec<_>, Vec<_>) = hosts.iter().partition(|(_, at)| **at == node);
        let route = |(address, at): (&Ipv4Addr, &usize)| {
            (IpAddr::from(*address).into(), Target::Id(node_id(*at)))
        };
        let config = GatewayConfig {
            addresses: own.into_iter().map(|(address, _)| (*address).into()).collect(),
            routes: others.into_iter().map(route).collect(),
            mtu,
            clamp_mss: true,
            queue: DEFAULT_QUEUE,
        };
        run.s.open_gateway(node, run.scheme, config);
    }
}

fn slot_seconds(s: &Simulation) -> Option<f64> {
    match s.config().medium.mac {
        MacConfig::Slotted { slot_ns, .. } => Some(slot_ns as f64 * 1e-9),
        MacConfig::Dcf { .. } => None,
    }
}

fn coding<P: FnMut(&Simulation) -> ControlFlow<()>>(
    run: &Run<'_, P>,
) -> BTreeMap<String, CodingOutcome> {
    let of = |node: usize| {
        let statuses = run.s.host(node).stack()?.coding();
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
    (0..run.s.len()).filter_map(of).collect()
}

impl Carriage {
    fn due(&mut self, now: Instant) -> Option<Instant> {
        let Watch { begins, counts_from, ends, .. } = self.watch;
        let own = self.traffic.due(&self.watch, now);
        let times = [Some(begins), own, Some(counts_from), Some(ends)];
        times.into_iter().flatten().filter(|at| *at > now && *at <= ends).min()
    }

    fn may_act(&self, s: &Simulation, last: Instant) -> bool {
        self.watch.is_open(s.now()) && self.traffic.may_act(&self.watch, s, last)
    }

    fn conclude(self, s: &Simulation, slot: Option<f64>) -> FlowOutcome {
        let Self { watch, traffic } = self;
        let until = s.now().min(watch.ends);
        let seconds =
            if until > watch.counts_from { (until - watch.counts_from).as_secs_f64() } else { 0.0 };
        let (heard, innovative) = watch.heard(s);
        let taken = watch.taken(s).saturating_sub(watch.taken_before);
        let mut outcome = watch.outcome;
        outcome.taken = Some(taken);
        outcome.refused = Some(watch.offered.saturating_sub(taken));
        outcome.heard = heard.saturating_sub(watch.before.0);
        outcome.innovative = innovative.saturating_sub(watch.before.1);
        outcome.seconds = seconds;
        if seconds > 0.0 {
            outcome.packets_per_slot = slot.map(|slot| outcome.delivered as f64 * slot / seconds);
        }
        traffic.conclude(&mut outcome, watch.begins);
        outcome
    }
}

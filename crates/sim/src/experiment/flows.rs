//! Packets through a tunnel.

use super::{Run, RunError};
use crate::scenario::Flow;
use crate::simulation::{Arrival, Simulation, SimulationError, node_id};
use ncmesh_medium::MacConfig;
use ncmesh_proto::route::Metric;
use ncmesh_proto::time::{Duration, Instant};
use ncmesh_proto::tunnel::{FlowStatus, Refused};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// How often what is told over time is looked at, in the time of the longest flow.
const SAMPLES: u32 = 200;
/// The number of a packet and of its flow stand at its beginning.
const STAMP: usize = 12;

/// What came of flows through a tunnel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowsOutcome {
    /// The scenario's name.
    pub scenario: String,
    /// The engine.
    pub scheme: String,
    /// Each flow, in the scenario's order.
    pub flows: Vec<FlowOutcome>,
    /// Data packets all nodes sent.
    pub transmissions: u64,
    /// Seconds of the mesh's clock from the start of the first flow to the end of the last.
    pub seconds: f64,
}

/// What came of one flow, while it was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowOutcome {
    /// Its source.
    pub from: String,
    /// Its destination.
    pub to: String,
    /// Length of its packets, bytes.
    pub packet_bytes: usize,
    /// Packets that the scheme took.
    pub taken: u64,
    /// Packets that it refused.
    pub refused: u64,
    /// Packets that arrived whole.
    pub delivered: u64,
    /// Of those, the ones that came after a later one.
    pub disordered: u64,
    /// Packets that arrived with other bytes than were sent, or twice.
    pub corrupt: u64,
    /// How long it was measured, s.
    pub seconds: f64,
    /// Bits of packets delivered over that time, bit/s.
    pub throughput_bps: f64,
    /// Packets delivered for each slot of that time, where access is slotted.
    pub packets_per_slot: Option<f64>,
    /// Data frames heard by the destination.
    pub heard: u64,
    /// Of those, the ones that brought something new.
    pub innovative: u64,
    /// Mean time from the source's taking a packet to its delivery, s.
    pub mean_delay_s: Option<f64>,
    /// What changes while it runs.
    pub series: FlowSeries,
}

/// A flow over time, from its start on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowSeries {
    /// When each sample was taken, s since the flow's start.
    pub seconds: Vec<f64>,
    /// Packets delivered until then.
    pub delivered: Vec<u64>,
    /// Innovative frames at the destination until then.
    pub innovative: Vec<u64>,
    /// By node, packets it was to transfer yet: of MC2 its credits, else the packets queued.
    pub credits: BTreeMap<String, Vec<u64>>,
}

/// A flow's traffic and what is known of it.
struct Sender {
    flow: Flow,
    number: u32,
    packet: usize,
    begins: Instant,
    counts_from: Instant,
    ends: Instant,
    /// When the next packet is offered, where they are evenly spaced.
    next: Instant,
    /// When each packet was taken.
    taken_at: Vec<Instant>,
    arrived: Vec<bool>,
    latest: usize,
    /// Delivered since its start.
    delivered: u64,
    delays: Duration,
    /// What the destination had heard when measuring began.
    before: (u64, u64),
    outcome: FlowOutcome,
}

/// Carries the scenario's flows, at most for `limit`.
pub(super) fn carry<P: FnMut(&Simulation) -> ControlFlow<()>>(
    run: &mut Run<'_, P>,
    limit: Duration,
) -> Result<FlowsOutcome, RunError> {
    let start = run.s.now();
    let mut senders = senders(run, start)?;
    let end = senders.iter().map(|sender| sender.ends).max().unwrap_or(start).min(start + limit);
    let every = (end - start) / SAMPLES;
    let mut sample_at = start;
    while run.s.now() < end {
        for sender in &mut senders {
            sender.offer(&mut run.s, run.scheme)?;
        }
        let due = senders.iter().filter_map(|sender| sender.due(run.s.now())).min();
        let until = due.into_iter().chain([sample_at, end]).min().unwrap_or(end);
        let (scheme, now) = (run.scheme, run.s.now());
        run.advance(until, |s| senders.iter().any(|sender| sender.may_offer(s, scheme, now)))?;
        for arrival in run.s.take_packets() {
            receive(&mut senders, &arrival);
        }
        for sender in senders.iter_mut().filter(|sender| sender.counts_from == run.s.now()) {
            sender.before = sender.heard(&run.s, run.scheme);
        }
        if run.s.now() >= sample_at {
            sample_at = run.s.now() + every;
            senders.iter_mut().for_each(|sender| sender.sample(run));
        }
        if run.s.is_stopped() {
            break;
        }
    }
    let slot = slot_seconds(&run.s);
    let flows = senders.into_iter().map(|sender| sender.conclude(&run.s, run.scheme, slot));
    Ok(FlowsOutcome {
        scenario: run.scenario.name.clone(),
        scheme: run.scheme.to_owned(),
        flows: flows.collect(),
        transmissions: run.node_transmissions().values().sum(),
        seconds: (run.s.now() - start).as_secs_f64(),
    })
}

fn senders<P: FnMut(&Simulation) -> ControlFlow<()>>(
    run: &Run<'_, P>,
    start: Instant,
) -> Result<Vec<Sender>, RunError> {
    let scheme = run.scheme;
    let sender = |(number, flow): (usize, &Flow)| {
        run.check_reach(flow.from, &[flow.to], Metric::Broadcast)?;
        let stack = run.s.host(flow.from).stack();
        let longest = stack.and_then(|stack| stack.longest_packet(scheme)).unwrap_or(0);
        let packet = flow.packet.unwrap_or(longest).max(STAMP);
        if packet > longest {
            return Err(RunError::TooLong { bytes: packet, scheme, longest });
        }
        let names = (run.name(flow.from), run.name(flow.to));
        Ok(Sender::new(flow.clone(), number as u32, packet, start, names))
    };
    run.scenario.flows.iter().enumerate().map(sender).collect()
}

fn slot_seconds(s: &Simulation) -> Option<f64> {
    match s.config().medium.mac {
        MacConfig::Slotted { slot_ns, .. } => Some(slot_ns as f64 * 1e-9),
        MacConfig::Dcf { .. } => None,
    }
}

fn receive(senders: &mut [Sender], arrival: &Arrival) {
    let number = arrival.packet.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
    let sender = number.and_then(|number| senders.get_mut(number as usize));
    if let Some(sender) = sender.filter(|sender| sender.flow.to == arrival.to) {
        sender.receive(arrival);
    }
}

/// The bytes of a flow's packet.
fn contents(flow: u32, packet: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    bytes.extend_from_slice(&flow.to_be_bytes());
    bytes.extend_from_slice(&packet.to_be_bytes());
    let salt = packet.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bytes.extend((STAMP..len).map(|i| (salt.rotate_left(i as u32 % 64) >> 7) as u8 ^ i as u8));
    bytes
}

impl Sender {
    fn new(
        flow: Flow,
        number: u32,
        packet: usize,
        start: Instant,
        names: (String, String),
    ) -> Self {
        let begins = start + flow.start;
        let counts_from = begins + flow.warm_up;
        let ends = counts_from + flow.duration;
        let (from, to) = names;
        Self {
            number,
            packet,
            begins,
            counts_from,
            ends,
            next: begins,
            taken_at: Vec::new(),
            arrived: Vec::new(),
            latest: 0,
            delivered: 0,
            delays: Duration::ZERO,
            before: (0, 0),
            outcome: FlowOutcome { from, to, packet_bytes: packet, ..FlowOutcome::default() },
            flow,
        }
    }

    /// When, later than `now`, it does something on its own account.
    fn due(&self, now: Instant) -> Option<Instant> {
        let next = self.flow.rate_bps.map(|_| self.next);
        let times = [Some(self.begins), next, Some(self.counts_from), Some(self.ends)];
        times.into_iter().flatten().filter(|at| *at > now && *at <= self.ends).min()
    }

    /// Whether it offers as much as is taken and something would be, at another instant than `last`.
    fn may_offer(&self, s: &Simulation, scheme: &str, last: Instant) -> bool {
        let open = self.flow.rate_bps.is_none() && (self.begins..self.ends).contains(&s.now());
        open && s.now() > last && s.has_room(scheme, self.flow.from, self.flow.to)
    }

    fn offer(&mut self, s: &mut Simulation, scheme: &str) -> Result<(), RunError> {
        let now = s.now();
        if !(self.begins..self.ends).contains(&now) {
            return Ok(());
        }
        match self.flow.rate_bps {
            None => {
                while s.has_room(scheme, self.flow.from, self.flow.to) && self.send(s, scheme)? {}
            }
            Some(rate_bps) => {
                let nanoseconds = (self.packet as f64 * 8e9 / rate_bps as f64).max(1.0) as u64;
                while self.next <= now {
                    self.send(s, scheme)?;
                    self.next = self.next + Duration::from_nanos(nanoseconds);
                }
            }
        }
        Ok(())
    }

    /// Says whether the packet was taken.
    fn send(&mut self, s: &mut Simulation, scheme: &str) -> Result<bool, RunError> {
        let bytes = contents(self.number, self.taken_at.len() as u64, self.packet);
        let counts = u64::from(s.now() >= self.counts_from);
        match s.send_packet(scheme, self.flow.from, self.flow.to, &bytes) {
            Ok(()) => {
                self.taken_at.push(s.now());
                self.arrived.push(false);
                self.outcome.taken += counts;
                Ok(true)
            }
            Err(SimulationError::Packet(Refused::Full | Refused::NoPath(_))) => {
                self.outcome.refused += counts;
                Ok(false)
            }
            Err(e) => Err(e.into()),
        }
    }

    fn receive(&mut self, arrival: &Arrival) {
        let number = arrival.packet.get(4..STAMP).and_then(|bytes| bytes.try_into().ok());
        let number = number.map_or(u64::MAX, u64::from_be_bytes);
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let whole = self.arrived.get(index) == Some(&false)
            && arrival.packet == contents(self.number, number, self.packet);
        let counts = (self.counts_from..self.ends).contains(&arrival.at);
        if !whole {
            self.outcome.corrupt += 1;
            return;
        }
        self.arrived[index] = true;
        self.delivered += 1;
        if counts {
            self.outcome.delivered += 1;
            self.outcome.disordered += u64::from(index < self.latest);
            self.delays += arrival.at - self.taken_at[index];
        }
        self.latest = self.latest.max(index);
    }

    fn status(&self, s: &Simulation, scheme: &str, node: usize) -> Option<FlowStatus> {
        let (source, destination) = (node_id(self.flow.from), node_id(self.flow.to));
        let flows = s.host(node).stack()?.flows();
        let own = |(name, flow): &(&str, FlowStatus)| {
            *name == scheme && flow.source == source && flow.destination == destination
        };
        flows.into_iter().find(own).map(|(_, flow)| flow)
    }

    /// Frames the destination has heard, and the innovative ones of them.
    fn heard(&self, s: &Simulation, scheme: &str) -> (u64, u64) {
        let flow = self.status(s, scheme, self.flow.to);
        flow.map_or((0, 0), |flow| (flow.heard, flow.innovative))
    }

    fn sample<P: FnMut(&Simulation) -> ControlFlow<()>>(&mut self, run: &Run<'_, P>) {
        let now = run.s.now();
        if now < self.begins {
            return;
        }
        let innovative = self.heard(&run.s, run.scheme).1;
        let series = &mut self.outcome.series;
        series.seconds.push((now - self.begins).as_secs_f64());
        series.delivered.push(self.delivered);
        series.innovative.push(innovative);
        let samples = series.seconds.len();
        for node in 0..run.s.len() {
            let credits = self.status(&run.s, run.scheme, node).map(|flow| flow.credits);
            let (known, name) = (&mut self.outcome.series.credits, run.name(node));
            if credits.is_some() || known.contains_key(&name) {
                let series = known.entry(name).or_insert_with(|| vec![0; samples - 1]);
                series.push(credits.unwrap_or(0));
            }
        }
    }

    fn conclude(mut self, s: &Simulation, scheme: &str, slot: Option<f64>) -> FlowOutcome {
        let until = s.now().min(self.ends);
        let seconds =
            if until > self.counts_from { (until - self.counts_from).as_secs_f64() } else { 0.0 };
        let (heard, innovative) = self.heard(s, scheme);
        let outcome = &mut self.outcome;
        outcome.heard = heard.saturating_sub(self.before.0);
        outcome.innovative = innovative.saturating_sub(self.before.1);
        outcome.seconds = seconds;
        if seconds > 0.0 {
            outcome.throughput_bps = (outcome.delivered * self.packet as u64 * 8) as f64 / seconds;
            outcome.packets_per_slot = slot.map(|slot| outcome.delivered as f64 * slot / seconds);
        }
        if outcome.delivered > 0 {
            outcome.mean_delay_s = Some(self.delays.as_secs_f64() / outcome.delivered as f64);
        }
        self.outcome
    }
}

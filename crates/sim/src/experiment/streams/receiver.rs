//! One receiver of a stream: when it joins and leaves, and what arrives at it.

use super::{RunError, SAMPLE};
use crate::outcome::{StreamLayerOutcome, StreamReceiverOutcome};
use crate::scenario::StreamReceiver;
use crate::simulation::{Simulation, StreamArrival};
use ncmesh_engine::registry::Scheme;
use ncmesh_engine::stream::UtilityConfig;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_stack::Stack;
use ncmesh_wire::FlowId;
use std::collections::BTreeSet;

/// Length, beginning and end of the measurement of a stream. A run may have been cut off before
/// its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measurement {
    pub seconds: f64,
    pub from: Instant,
    pub until: Instant,
}

/// A receiver of a running stream.
pub(super) struct Receiver {
    pub node: usize,
    utility: UtilityConfig,
    begins: Instant,
    /// Time at which it joins; `None` when it has joined.
    joins: Option<Instant>,
    /// Time at which it leaves; `None` when it has left, or never leaves.
    leaves: Option<Instant>,
    /// Packets that arrived, as (layer, number).
    arrived: BTreeSet<(usize, usize)>,
    /// Delays of packets that arrived during the measurement, by layer.
    delays: Vec<Vec<Duration>>,
    /// Packets of them that arrived after a later one, by layer.
    out_of_order: Vec<u64>,
    /// Highest number that arrived, by layer.
    newest: Vec<Option<usize>>,
    /// Packets in each second since the beginning of the stream.
    by_second: Vec<u64>,
    pub outcome: StreamReceiverOutcome,
}

impl Receiver {
    pub(super) fn new(
        receiver: &StreamReceiver,
        node: String,
        layers: usize,
        begins: Instant,
    ) -> Self {
        Self {
            node: receiver.node,
            utility: receiver.utility.clone(),
            begins,
            joins: Some(begins + receiver.join),
            leaves: receiver.leave.map(|leave| begins + leave),
            arrived: BTreeSet::new(),
            delays: vec![Vec::new(); layers],
            out_of_order: vec![0; layers],
            newest: vec![None; layers],
            by_second: Vec::new(),
            outcome: StreamReceiverOutcome { node, ..StreamReceiverOutcome::default() },
        }
    }

    /// Returns the times at which it still has to join or leave.
    pub(super) fn times(&self) -> impl Iterator<Item = Instant> {
        self.joins.into_iter().chain(self.leaves)
    }

    /// Joins or leaves the group, if it is time.
    pub(super) fn handle_due(
        &mut self,
        sim: &mut Simulation,
        scheme: Scheme,
        group: &str,
    ) -> Result<(), RunError> {
        let now = sim.now();
        if self.joins.take_if(|at| *at <= now).is_some() {
            sim.join(scheme, self.node, group, self.utility.clone())?;
        }
        if self.leaves.take_if(|at| *at <= now).is_some() {
            sim.leave(scheme, self.node, group);
        }
        Ok(())
    }

    /// Samples the problem that the receiver's node reports.
    pub(super) fn sample(&mut self, sim: &Simulation, flow: FlowId) {
        let streams = sim.host(self.node).stack().map(Stack::streams).unwrap_or_default();
        let own = streams.into_iter().find(|(_, status)| status.flow == flow);
        let receiving = own.and_then(|(_, status)| status.receiving);
        self.outcome.problem = receiving.and_then(|r| r.problem).map(|trouble| trouble.to_string());
    }

    /// Counts an intact packet that the source accepted at `taken_at`. `counts`
    /// says whether it arrived during the measurement.
    pub(super) fn receive(
        &mut self,
        arrival: &StreamArrival,
        layer: usize,
        number: usize,
        taken_at: Instant,
        counts: bool,
    ) {
        // A second copy is an error of the engine, even if its bytes are right.
        if !self.arrived.insert((layer, number)) {
            self.outcome.corrupt += 1;
            return;
        }

        // The time series covers the whole stream, the results only the measurement.
        let second = (arrival.at - self.begins).as_nanos() / SAMPLE.as_nanos();
        let second = usize::try_from(second).unwrap_or(usize::MAX);
        if self.by_second.len() <= second {
            self.by_second.resize(second + 1, 0);
        }
        self.by_second[second] += 1;

        let is_late = self.newest[layer] > Some(number);
        self.newest[layer] = self.newest[layer].max(Some(number));
        if counts {
            self.delays[layer].push(arrival.at - taken_at);
            self.out_of_order[layer] += u64::from(is_late);
        }
    }

    /// Returns the result of the receiver. `names` and `taken` are the names of the layers and
    /// their accepted packets, and `base` the times at which those of the base were accepted.
    pub(super) fn conclude(
        mut self,
        names: &[String],
        taken: &[u64],
        base: &[Instant],
        packet_bits: f64,
        Measurement { seconds, from, until }: Measurement,
    ) -> StreamReceiverOutcome {
        let rate =
            |packets: u64| if seconds > 0.0 { packets as f64 * packet_bits / seconds } else { 0.0 };

        // Results by layer, and over all layers.
        let all: Vec<Duration> = self.delays.iter().flatten().copied().collect();
        for (layer, name) in names.iter().enumerate() {
            let mut delays = std::mem::take(&mut self.delays[layer]);
            delays.sort_unstable();
            let delivered = delays.len() as u64;
            self.outcome.layers.push(StreamLayerOutcome {
                name: name.clone(),
                delivered,
                rate_bps: rate(delivered),
                share: delivered as f64 / taken[layer].max(1) as f64,
                out_of_order: Some(self.out_of_order[layer]),
                delay_p50_s: percentile(&delays, 50),
                delay_p99_s: percentile(&delays, 99),
            });
        }

        self.outcome.rate_bps = rate(all.len() as u64);
        if !all.is_empty() {
            let sum = all.iter().fold(Duration::ZERO, |sum, delay| sum + *delay);
            self.outcome.mean_delay_s = Some(sum.as_secs_f64() / all.len() as f64);
        }
        self.outcome.whole_base_s = Some(self.whole_base(base, from, seconds));

        // The series has whole seconds only.
        let whole = (until.since(self.begins).as_nanos() / SAMPLE.as_nanos()) as usize;
        self.by_second.resize(whole, 0);
        let series = &mut self.outcome.series;
        series.seconds = (1..=whole).map(|second| second as f64 * SAMPLE.as_secs_f64()).collect();
        let rates = self.by_second.iter().map(|n| *n as f64 * packet_bits / SAMPLE.as_secs_f64());
        series.rate_bps = rates.collect();
        self.outcome
    }
    /// Returns the whole seconds of a measurement of which every packet of the base arrived.
    fn whole_base(&self, base: &[Instant], from: Instant, seconds: f64) -> u64 {
        let whole = seconds as u64;
        let is_whole = |second: &u64| {
            let begins = from + Duration::from_secs(*second);
            let ends = begins + Duration::from_secs(1);
            let mut accepted = base.iter().enumerate();
            accepted.all(|(number, at)| {
                !(begins..ends).contains(at) || self.arrived.contains(&(0, number))
            })
        };
        (0..whole).filter(is_whole).count() as u64
    }
}

/// Returns a percentile of sorted delays in seconds; `None` of none.
fn percentile(delays: &[Duration], percent: usize) -> Option<f64> {
    let last = delays.len().checked_sub(1)?;
    Some(delays[last * percent / 100].as_secs_f64())
}

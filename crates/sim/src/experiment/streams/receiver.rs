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

/// Length and end of the measurement of a stream. A run may have been cut off before its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measurement {
    pub seconds: f64,
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
    /// Packets that arrived during the measurement, by layer.
    delivered: Vec<u64>,
    /// Sum of the delays of these packets.
    delays: Duration,
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
            delivered: vec![0; layers],
            delays: Duration::ZERO,
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

        if counts {
            self.delivered[layer] += 1;
            self.delays += arrival.at - taken_at;
        }
    }

    /// Returns the result of the receiver. `names` and `taken` are the names of the layers and
    /// their accepted packets.
    pub(super) fn conclude(
        mut self,
        names: &[String],
        taken: &[u64],
        packet_bits: f64,
        Measurement { seconds, until }: Measurement,
    ) -> StreamReceiverOutcome {
        let rate =
            |packets: u64| if seconds > 0.0 { packets as f64 * packet_bits / seconds } else { 0.0 };

        // Results by layer, and over all layers.
        let layers = names.iter().zip(taken).zip(&self.delivered);
        let layer = |((name, taken), delivered): ((&String, &u64), &u64)| StreamLayerOutcome {
            name: name.clone(),
            delivered: *delivered,
            rate_bps: rate(*delivered),
            share: *delivered as f64 / (*taken).max(1) as f64,
        };
        self.outcome.layers = layers.map(layer).collect();
        let all: u64 = self.delivered.iter().sum();
        self.outcome.rate_bps = rate(all);
        if all > 0 {
            self.outcome.mean_delay_s = Some(self.delays.as_secs_f64() / all as f64);
        }

        // The series has whole seconds only.
        let whole = (until.since(self.begins).as_nanos() / SAMPLE.as_nanos()) as usize;
        self.by_second.resize(whole, 0);
        let series = &mut self.outcome.series;
        series.seconds = (1..=whole).map(|second| second as f64 * SAMPLE.as_secs_f64()).collect();
        let rates = self.by_second.iter().map(|n| *n as f64 * packet_bits / SAMPLE.as_secs_f64());
        series.rate_bps = rates.collect();
        self.outcome
    }
}

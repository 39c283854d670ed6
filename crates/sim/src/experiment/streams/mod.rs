//! Live streams of a scenario.
//!
//! Each stream has a [`StreamSource`], which offers packets of every layer at that layer's rate and
//! checks what its receivers get. Receivers join and leave at the times that the scenario gives.
//! Every second, the run samples the queues of all nodes and the problems that receivers report.

mod receiver;
mod source;

use super::error::RunError;
use super::load::{Load, World};
use super::step::Stage;
use crate::outcome::{ServiceOutcomes, StreamOutcome, StreamQueueOutcome, StreamsOutcome};
use crate::schemes::SchemesError;
use crate::simulation::Simulation;
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::stream::StreamStatus;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engines::registry;
use ncmesh_host::console::queue_values;
use source::StreamSource;
use std::collections::BTreeMap;

/// Interval of the samples over time, as in Figure 6 of the paper.
const SAMPLE: Duration = Duration::from_secs(1);

/// The scenario's streams under way.
pub(super) struct Streams {
    scheme: &'static str,
    sources: Vec<StreamSource>,
    queues: Queues,
    start: Instant,
    /// End of the last stream, or of the run.
    end: Instant,
    sample_at: Instant,
}

impl Streams {
    /// Sets up all streams. The run ends at `limit` at the latest.
    pub(super) fn begin(
        world: &World<'_>,
        scheme: &'static str,
        limit: Instant,
    ) -> Result<Self, RunError> {
        let start = world.sim.now();
        let sources = sources(world, scheme, start)?;
        let end = sources.iter().map(|source| source.ends).max().unwrap_or(start).min(limit);
        let queues = Queues::default();
        Ok(Self { scheme, sources, queues, start, end, sample_at: start + SAMPLE })
    }
}

impl Load for Streams {
    fn stage(&self) -> Stage {
        Stage::Timed { begins: self.start, ends: self.end }
    }

    fn is_over(&self, sim: &Simulation) -> bool {
        sim.now() >= self.end
    }

    fn act(&mut self, sim: &mut Simulation) -> Result<(), RunError> {
        self.sources.iter_mut().try_for_each(|source| source.handle_due(sim))
    }

    fn due(&mut self, now: Instant) -> Option<Instant> {
        let due = self.sources.iter().filter_map(|source| source.due(now));
        due.chain([self.sample_at, self.end]).min()
    }

    fn may_act(&mut self, _: &Simulation, _: Instant) -> bool {
        false
    }

    fn observe(&mut self, world: &mut World<'_>) {
        // Check what arrived meanwhile.
        for arrival in world.sim.take_stream_packets() {
            for source in &mut self.sources {
                source.receive(&arrival);
            }
        }

        // Samples are taken at whole seconds, whatever else happened in between.
        if world.sim.now() >= self.sample_at {
            self.sample_at = self.sample_at + SAMPLE;
            self.queues.sample(world, self.scheme);
            self.sources.iter_mut().for_each(|source| source.sample(&world.sim));
        }
    }

    fn conclude(self: Box<Self>, world: &World<'_>, outcomes: &mut ServiceOutcomes) {
        let now = world.sim.now();
        outcomes.streams = Some(StreamsOutcome {
            streams: self.sources.into_iter().map(|source| source.conclude(now)).collect(),
            queues: self.queues.outcomes.into_values().collect(),
            cpu: BTreeMap::new(),
        });
    }
}

/// Returns the sources of all streams, after checking that their packets fit into frames.
fn sources(
    world: &World<'_>,
    scheme: &'static str,
    start: Instant,
) -> Result<Vec<StreamSource>, RunError> {
    let carrier =
        registry().choose(ServiceKind::Stream, scheme).map_err(SchemesError::from)?.scheme;
    let source = |(number, stream): (usize, &crate::scenario::Stream)| {
        // Packets must have room for their stamp, and fit into the scheme's frames.
        let to: Vec<usize> = stream.receivers.iter().map(|receiver| receiver.node).collect();
        let stack = world.sim.host(stream.from).stack();
        let longest = stack.and_then(|stack| stack.longest_stream_packet(carrier)).unwrap_or(0);
        let packet = stream.packet.unwrap_or(longest).max(source::STAMP);
        if packet > longest {
            return Err(RunError::TooLong { bytes: packet, scheme, longest });
        }

        let names = to.iter().map(|node| world.name(*node)).collect();
        let outcome = StreamOutcome {
            group: stream.group.clone(),
            from: world.name(stream.from),
            packet_bytes: packet,
            ..StreamOutcome::default()
        };
        Ok(StreamSource::new(carrier, number, stream.clone(), outcome, names, start))
    };
    world.scenario.streams.iter().enumerate().map(source).collect()
}

/// Every queue in any sample, by node, stream and next hop.
#[derive(Default)]
struct Queues {
    outcomes: BTreeMap<(String, String, String), StreamQueueOutcome>,
}

impl Queues {
    /// Samples the queues of all nodes.
    fn sample(&mut self, world: &World<'_>, scheme: &str) {
        for node in 0..world.sim.len() {
            let Some(stack) = world.sim.host(node).stack() else { continue };
            for (_, status) in stack.streams().iter().filter(|(name, _)| *name == scheme) {
                self.sample_stream(world, node, status);
            }
        }
    }

    /// Samples the queues of one stream at one node.
    fn sample_stream(&mut self, world: &World<'_>, node: usize, status: &StreamStatus) {
        let layers = status.layers.len();
        for queue in &status.queues {
            let to = world.name(usize::from(queue.to.0).saturating_sub(1));
            let key = (world.name(node), status.group.clone(), to);
            let (name, group, to) = key.clone();
            let fresh = StreamQueueOutcome { node: name, group, to, ..Default::default() };
            let outcome = self.outcomes.entry(key).or_insert(fresh);
            outcome.sample(queue_values(queue, layers));
        }
    }
}

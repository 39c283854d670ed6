//! Live streams of a scenario.
//!
//! Each stream has a [`StreamSource`], which offers packets of every layer at that layer's rate and
//! checks what its receivers get. Receivers join and leave at the times that the scenario gives.
//! Every second, the run samples the queues of all nodes and the problems that receivers report.

mod receiver;
mod source;

use super::{Run, RunError, Stage, Step};
use crate::outcome::{StreamOutcome, StreamQueueOutcome, StreamsOutcome};
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::stream::StreamStatus;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engines::REGISTRY;
use source::StreamSource;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Interval of the samples over time, as in Figure 6 of the paper.
const SAMPLE: Duration = Duration::from_secs(1);

/// Runs the scenario's streams, for at most `limit`.
pub(super) fn run<P: FnMut(&Step<'_>) -> ControlFlow<()>>(
    run: &mut Run<'_, P>,
    limit: Duration,
) -> Result<StreamsOutcome, RunError> {
    let start = run.sim.now();
    let mut sources = sources(run, start)?;
    let end = sources.iter().map(|source| source.ends).max().unwrap_or(start).min(start + limit);
    run.stage = Stage::Timed { begins: start, ends: end };
    let mut queues = Queues::default();
    let mut sample_at = start + SAMPLE;
    while run.sim.now() < end && !run.sim.is_stopped() {
        // Offer the packets that are due, and join or leave groups.
        for source in &mut sources {
            source.handle_due(&mut run.sim)?;
        }

        // Run until the next of these is due.
        let now = run.sim.now();
        let due = sources.iter().filter_map(|source| source.due(now));
        let until = due.chain([sample_at, end]).min().unwrap_or(end);
        run.advance(until, |_| false)?;

        // Check what arrived meanwhile.
        for arrival in run.sim.take_stream_packets() {
            for source in &mut sources {
                source.receive(&arrival);
            }
        }

        // Samples are taken at whole seconds, whatever else happened in between.
        if run.sim.now() >= sample_at {
            sample_at = sample_at + SAMPLE;
            queues.sample(run);
            sources.iter_mut().for_each(|source| source.sample(&run.sim));
        }
    }

    let now = run.sim.now();
    Ok(StreamsOutcome {
        streams: sources.into_iter().map(|source| source.conclude(now)).collect(),
        queues: queues.outcomes.into_values().collect(),
        cpu: BTreeMap::new(),
    })
}

/// Returns the sources of all streams, after checking that their packets fit into frames.
fn sources<P: FnMut(&Step<'_>) -> ControlFlow<()>>(
    run: &Run<'_, P>,
    start: Instant,
) -> Result<Vec<StreamSource>, RunError> {
    let scheme = run.scheme;
    let carrier = REGISTRY.choose(ServiceKind::Stream, scheme)?.scheme;
    let source = |(number, stream): (usize, &crate::scenario::Stream)| {
        // Packets must have room for their stamp, and fit into the scheme's frames.
        let to: Vec<usize> = stream.receivers.iter().map(|receiver| receiver.node).collect();
        let stack = run.sim.host(stream.from).stack();
        let longest = stack.and_then(|stack| stack.longest_stream_packet(carrier)).unwrap_or(0);
        let packet = stream.packet.unwrap_or(longest).max(source::STAMP);
        if packet > longest {
            return Err(RunError::TooLong { bytes: packet, scheme, longest });
        }

        let names = to.iter().map(|node| run.name(*node)).collect();
        let outcome = StreamOutcome {
            group: stream.group.clone(),
            from: run.name(stream.from),
            packet_bytes: packet,
            ..StreamOutcome::default()
        };
        Ok(StreamSource::new(carrier, number, stream.clone(), outcome, names, start))
    };
    run.scenario.streams.iter().enumerate().map(source).collect()
}

/// Every queue in any sample, by node, stream and next hop.
#[derive(Default)]
struct Queues {
    outcomes: BTreeMap<(String, String, String), StreamQueueOutcome>,
}

impl Queues {
    /// Samples the queues of all nodes.
    fn sample<P: FnMut(&Step<'_>) -> ControlFlow<()>>(&mut self, run: &Run<'_, P>) {
        for node in 0..run.sim.len() {
            let Some(stack) = run.sim.host(node).stack() else { continue };
            for (_, status) in stack.streams().iter().filter(|(scheme, _)| *scheme == run.scheme) {
                self.sample_stream(run, node, status);
            }
        }
    }

    /// Samples the queues of one stream at one node.
    fn sample_stream<P: FnMut(&Step<'_>) -> ControlFlow<()>>(
        &mut self,
        run: &Run<'_, P>,
        node: usize,
        status: &StreamStatus,
    ) {
        let layers = status.layers.len();
        for queue in &status.queues {
            let to = run.name(usize::from(queue.to.0).saturating_sub(1));
            let key = (run.name(node), status.group.clone(), to);
            let (name, group, to) = key.clone();
            let fresh = StreamQueueOutcome { node: name, group, to, ..Default::default() };
            let outcome = self.outcomes.entry(key).or_insert(fresh);

            // Backlogs are kept as maxima. The other values are totals or states, of which the
            // latest sample counts.
            outcome.receivers = queue.receivers;
            outcome.most_held = outcome.most_held.max(queue.held.iter().sum());
            outcome.most_drop_queue = outcome.most_drop_queue.max(queue.drop_queue);
            outcome.sent = queue.sent[..layers].to_vec();
            outcome.dropped = queue.dropped[..layers].to_vec();
            outcome.lost = queue.lost;
        }
    }
}

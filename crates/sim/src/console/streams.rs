//! Live streams.

use crate::host::Host;
use crate::observe::Snapshot;
use crate::scenario::Scenario;
use crate::simulation::node_id;
use ncmesh_console::schema::{Count, Hop, StreamReceiverState, StreamState};
use ncmesh_engine::stream::StreamStatus;
use ncmesh_host::console::{GivenUp, receiving_values, sending_values};
use ncmesh_stack::Stack;

/// Streams of a run, in the scenario's order.
pub(super) struct Streams {
    streams: Vec<Stream>,
}

/// A stream.
struct Stream {
    from: usize,
    group: String,
    layers: usize,
    state: StreamState,
}

/// Adds counters of layers to others.
fn add(sums: &mut [Count], counts: &[Count]) {
    sums.iter_mut().zip(counts).for_each(|(sum, count)| sum.0 += count.0);
}

impl Streams {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let streams = scenario.streams.iter().map(|stream| {
            let layers = stream.layers.len();
            let receiver = |node| StreamReceiverState {
                node: node_id(node).0,
                packets: vec![Count(0); layers],
                bits: vec![Count(0); layers],
                ..StreamReceiverState::default()
            };
            let receivers = stream.receivers.iter().map(|r| receiver(r.node)).collect();
            let taken = vec![Count(0); layers];
            let state = StreamState { taken, receivers, ..StreamState::default() };
            Stream { from: stream.from, group: stream.group.clone(), layers, state }
        });
        Self { streams: streams.collect() }
    }

    /// Returns the state of all streams.
    pub(super) fn look(&mut self, snapshot: &Snapshot<'_>) -> Vec<StreamState> {
        if self.streams.is_empty() {
            return Vec::new();
        }

        // Every host is asked once. A look at each stream would otherwise ask all hosts again.
        let statuses = |host: &Host| host.stack().map(Stack::streams).unwrap_or_default();
        let all: Vec<_> = snapshot.hosts.iter().map(statuses).collect();

        for stream in &mut self.streams {
            let source = node_id(stream.from);
            let group = stream.group.as_str();
            let is_own =
                |status: &&StreamStatus| status.flow.source == source && status.group == group;
            let at = |node: usize| {
                let statuses = all.get(node)?.iter().map(|(_, status)| status);
                statuses.into_iter().find(is_own)
            };

            if let Some(sending) = at(stream.from).and_then(|status| status.sending.as_ref()) {
                sending_values(sending, stream.layers).tell(&mut stream.state);
            }

            for receiver in &mut stream.state.receivers {
                let status = at(usize::from(receiver.node.saturating_sub(1)));
                let Some(receiving) = status.and_then(|status| status.receiving.as_ref()) else {
                    continue;
                };

                let values = receiving_values(receiving, stream.layers);
                values.tell(receiver);
                receiver.bits = values.bytes.iter().map(|bytes| Count(bytes * 8)).collect();
                let problem = receiving.problem.as_ref().map(ToString::to_string);
                receiver.problem = problem.unwrap_or_default();
            }

            // Packets that were given up are summed over all nodes that carry the stream.
            stream.state.no_room = vec![Count(0); stream.layers];
            stream.state.late = vec![Count(0); stream.layers];
            for status in (0..all.len()).filter_map(at) {
                let GivenUp { no_room, late } = GivenUp::of(status, stream.layers);
                add(&mut stream.state.no_room, &no_room);
                add(&mut stream.state.late, &late);
            }

            // The tree is told from below: each node that forwards knows its parent.
            let parents = (0..all.len()).filter_map(|node| {
                let parent = at(node).filter(|status| status.receivers > 0)?.parent?;
                Some(Hop { node: node_id(node).0, parent: parent.0 })
            });
            stream.state.tree = parents.collect();
        }

        self.streams.iter().map(|stream| stream.state.clone()).collect()
    }
}

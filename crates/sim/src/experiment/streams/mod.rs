//! Live streams: what is offered, what each receiver gets, and what queues hold meanwhile.

mod receiver;
mod source;

use super::{Run, RunError};
use crate::simulation::Simulation;
use ncmesh_engine::stream::StreamStatus;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Metric;
use serde::Serialize;
use source::Source;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Rates over time are over so long, as those of Figure 6.
const SAMPLE: Duration = Duration::from_secs(1);

/// What came of streams.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamsOutcome {
    /// The scenario's name.
    pub scenario: String,
    /// The engine.
    pub scheme: String,
    /// Each stream, in the scenario's order.
    pub streams: Vec<StreamOutcome>,
    /// Every queue of every stream.
    pub queues: Vec<StreamQueueOutcome>,
    /// Data packets all nodes sent.
    pub transmissions: u64,
    /// Seconds of the mesh's clock from the start of the first stream to the end of the last.
    pub seconds: f64,
}

/// What came of one stream, while it was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StreamOutcome {
    /// The group it was sent to.
    pub group: String,
    /// Its source.
    pub from: String,
    /// Length of its packets, bytes.
    pub packet_bytes: usize,
    /// Packets its source took, by layer.
    pub taken: Vec<u64>,
    /// Packets its source refused: as many waited there as can.
    pub refused: u64,
    /// How long it was measured, s.
    pub seconds: f64,
    /// Each receiver, in the scenario's order.
    pub receivers: Vec<StreamReceiverOutcome>,
}

/// What one receiver got, while the stream was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StreamReceiverOutcome {
    /// Its name.
    pub node: String,
    /// Bits of packets that arrived, bit/s.
    pub rate_bps: f64,
    /// The same by layer.
    pub layers: Vec<StreamLayerOutcome>,
    /// Packets that arrived with other bytes than were sent, or twice.
    pub corrupt: u64,
    /// Mean time from the source's taking a packet to its arrival, s.
    pub mean_delay_s: Option<f64>,
    /// Its rate over time.
    pub series: StreamSeries,
    /// What kept it from the rate it asks for, as its node saw it at last.
    pub problem: Option<String>,
}

/// A layer at a receiver.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StreamLayerOutcome {
    /// What it is called.
    pub name: String,
    /// Packets that arrived.
    pub delivered: u64,
    /// Their bits over the time measured, bit/s.
    pub rate_bps: f64,
    /// Packets that arrived over those that the source took meanwhile.
    pub share: f64,
}

/// A receiver's rate over time, from the stream's start on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StreamSeries {
    /// The end of each second, s since the stream's start.
    pub seconds: Vec<f64>,
    /// The rate in it, bit/s.
    pub rate_bps: Vec<f64>,
}

/// A queue of a stream: looked at every second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StreamQueueOutcome {
    /// Where it is.
    pub node: String,
    /// The stream's group.
    pub group: String,
    /// The next hop.
    pub to: String,
    /// Receivers behind it (m), at the end.
    pub receivers: u32,
    /// The most packets it was seen to hold (Q).
    pub most_held: u32,
    /// The most packets its drop queue was seen to hold (D).
    pub most_drop_queue: f64,
    /// Packets sent, by layer, since it was made.
    pub sent: Vec<u64>,
    /// Packets dropped, by layer, since it was made.
    pub dropped: Vec<u64>,
    /// Packets that the radio gave up on, since it was made.
    pub lost: u64,
}

/// Carries the scenario's streams, at most for `limit`.
pub(super) fn carry<P: FnMut(&Simulation) -> ControlFlow<()>>(
    run: &mut Run<'_, P>,
    limit: Duration,
) -> Result<StreamsOutcome, RunError> {
    let start = run.s.now();
    let mut sources = sources(run, start)?;
    let end = sources.iter().map(|source| source.ends).max().unwrap_or(start).min(start + limit);
    let mut queues = Queues::default();
    let mut sample_at = start + SAMPLE;
    while run.s.now() < end && !run.s.is_stopped() {
        for source in &mut sources {
            source.act(&mut run.s)?;
        }
        let now = run.s.now();
        let due = sources.iter().filter_map(|source| source.due(now));
        let until = due.chain([sample_at, end]).min().unwrap_or(end);
        run.advance(until, |_| false)?;
        for arrival in run.s.take_stream_packets() {
            for source in &mut sources {
                source.receive(&arrival);
            }
        }
        if run.s.now() >= sample_at {
            sample_at = sample_at + SAMPLE;
            queues.look(run);
            sources.iter_mut().for_each(|source| source.look(&run.s));
        }
    }
    let now = run.s.now();
    Ok(StreamsOutcome {
        scenario: run.scenario.name.clone(),
        scheme: run.scheme.to_owned(),
        streams: sources.into_iter().map(|source| source.conclude(now)).collect(),
        queues: queues.seen.into_values().collect(),
        transmissions: run.node_transmissions().values().sum(),
        seconds: (now - start).as_secs_f64(),
    })
}

fn sources<P: FnMut(&Simulation) -> ControlFlow<()>>(
    run: &Run<'_, P>,
    start: Instant,
) -> Result<Vec<Source>, RunError> {
    let scheme = run.scheme;
    let source = |(number, stream): (usize, &crate::scenario::Stream)| {
        let to: Vec<usize> = stream.receivers.iter().map(|receiver| receiver.node).collect();
        run.check_reach(stream.from, &to, Metric::Unicast)?;
        let stack = run.s.host(stream.from).stack();
        let longest = stack.and_then(|stack| stack.longest_stream_packet(scheme)).unwrap_or(0);
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
        Ok(Source::new(scheme, number, stream.clone(), (outcome, names), start))
    };
    run.scenario.streams.iter().enumerate().map(source).collect()
}

/// Every queue that was seen, by node, stream and next hop.
#[derive(Default)]
struct Queues {
    seen: BTreeMap<(String, String, String), StreamQueueOutcome>,
}

impl Queues {
    fn look<P: FnMut(&Simulation) -> ControlFlow<()>>(&mut self, run: &Run<'_, P>) {
        for node in 0..run.s.len() {
            let Some(stack) = run.s.host(node).stack() else { continue };
            for (_, status) in stack.streams().iter().filter(|(scheme, _)| *scheme == run.scheme) {
                self.note(run, node, status);
            }
        }
    }

    fn note<P: FnMut(&Simulation) -> ControlFlow<()>>(
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
            let seen = self.seen.entry(key).or_insert(fresh);
            seen.receivers = queue.receivers;
            seen.most_held = seen.most_held.max(queue.held.iter().sum());
            seen.most_drop_queue = seen.most_drop_queue.max(queue.drop_queue);
            seen.sent = queue.sent[..layers].to_vec();
            seen.dropped = queue.dropped[..layers].to_vec();
            seen.lost = queue.lost;
        }
    }
}

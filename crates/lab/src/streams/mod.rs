//! Live streams over the lab's daemons.
//!
//! One task for each source and each receiver plays the application: it asks the daemon for a
//! stream and exchanges packets with it by UDP on the loopback interface. Meanwhile the lab samples
//! the daemons' queues and problems.

mod receiver;
mod source;

use crate::{Lab, LabError, POLL_INTERVAL};
use ncmesh_node::api::types::Stream as StreamView;
use ncmesh_sim::outcome::{
    Outcome, ServiceOutcomes, StreamLayerOutcome, StreamOutcome, StreamQueueOutcome,
    StreamReceiverOutcome, StreamsOutcome,
};
use ncmesh_sim::scenario::Stream;
use receiver::{Received, Receiver};
use source::{Sent, StreamSource};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Interval of rates over time, and of requests for the state of queues.
const SAMPLE: Duration = Duration::from_secs(1);
/// Default length of packets, bytes. They fit frames of 1,472 bytes.
const PACKET: usize = 1400;

/// Samples of the daemons' state.
#[derive(Default)]
struct Seen {
    /// Counters and largest values of each queue, by node, group and next hop.
    queues: BTreeMap<(String, String, String), StreamQueueOutcome>,
    /// Latest problem of each receiver, by node and group.
    problems: BTreeMap<(String, String), Option<String>>,
}

/// Result of one task: numbers of the stream and the receiver, and counts.
enum Ended {
    Sender(usize, Sent),
    Receiver(usize, usize, Received),
}

/// Times at which a stream begins, is measured from, and ends.
#[derive(Clone, Copy)]
struct Times {
    begins: Instant,
    counts_from: Instant,
    ends: Instant,
}

impl Times {
    /// Returns the times of a stream in a run that starts at `start`.
    fn of(stream: &Stream, start: Instant) -> Self {
        let begins = start + stream.start;
        let counts_from = begins + stream.warm_up;
        Self { begins, counts_from, ends: counts_from + stream.duration }
    }

    /// Returns the length of the measurement, s.
    fn seconds(&self) -> f64 {
        (self.ends - self.counts_from).as_secs_f64()
    }
}

impl Lab {
    /// Waits until the links are measured and every stream's receivers can be reached.
    ///
    /// # Errors
    /// As [`wait_for_routes`](Self::wait_for_routes).
    pub async fn settle_streams(&self) -> Result<(), LabError> {
        for stream in &self.scenario.streams {
            let to: Vec<usize> = stream.receivers.iter().map(|receiver| receiver.node).collect();
            self.wait_for_routes(stream.from, &to).await?;
            for receiver in to {
                self.wait_for_routes(receiver, &[stream.from]).await?;
            }
        }

        Ok(())
    }

    /// Runs the scenario's streams by `scheme` and returns the result.
    ///
    /// # Errors
    /// [`LabError::Api`], [`LabError::System`], and those of [`check`](Self::check).
    pub async fn run_streams(&self, scheme: &str) -> Result<Outcome, LabError> {
        let outcome = self.run_measured(scheme).await;
        if outcome.is_err() {
            // If the emulator gave up, the daemon ended with it. Report the cause.
            tokio::time::sleep(POLL_INTERVAL).await;
            self.check()?;
        }
        outcome
    }

    /// Runs the streams, without looking for the cause of a failure.
    async fn run_measured(&self, scheme: &str) -> Result<Outcome, LabError> {
        let start = Instant::now();
        let streams = self.scenario.streams.clone();
        let mut running = self.start_tasks(&streams, start);
        let end = streams.iter().map(|stream| Times::of(stream, start).ends).max();
        let mut sent = BTreeMap::new();
        let mut received = BTreeMap::new();
        let mut seen = Seen::default();
        let mut sample_at = start + SAMPLE;
        let cpu_before = self.cpu_times()?;

        // Collect results as tasks end. In between, check the daemons and sample their state.
        while !running.is_empty() {
            tokio::select! {
                Some(ended) = running.join_next() => match ended.map_err(io::Error::other)?? {
                    Ended::Sender(stream, its) => drop(sent.insert(stream, its)),
                    Ended::Receiver(stream, n, its) => drop(received.insert((stream, n), its)),
                },
                () = sleep_until(sample_at) => {
                    sample_at += SAMPLE;
                    self.check()?;

                    // Queues disappear one by one at the end, so the last sample is before it.
                    if end.is_some_and(|end| Instant::now() < end) {
                        self.sample(&mut seen).await?;
                    }
                }
            }
        }

        // Combine the counts of each stream's source with those of its receivers.
        let seconds = start.elapsed().as_secs_f64();
        let cpu = cpu_before.into_iter().zip(self.cpu_times()?);
        let cpu = cpu.map(|((name, before), (_, after))| (name, (after - before) / seconds));
        let each = streams.iter().enumerate().map(|(number, stream)| {
            let sent = sent.remove(&number).unwrap_or_default();
            let its = (0..stream.receivers.len()).map(|n| received.remove(&(number, n)));
            let its = its.map(Option::unwrap_or_default).collect();
            self.outcome_of_stream(stream, &sent, its, &seen)
        });

        let outcome = StreamsOutcome {
            streams: each.collect(),
            queues: seen.queues.into_values().collect(),
            cpu: cpu.collect(),
        };

        let services = ServiceOutcomes { streams: Some(outcome), ..Default::default() };
        self.conclude(scheme, seconds, services).await
    }

    /// Starts a task for each source and receiver.
    fn start_tasks(&self, streams: &[Stream], start: Instant) -> JoinSet<Result<Ended, LabError>> {
        let mut running = JoinSet::new();
        for (number, stream) in streams.iter().enumerate() {
            let times = Times::of(stream, start);
            let packet = stream.packet.unwrap_or(PACKET);
            let client = self.client(stream.from).clone();
            let source = StreamSource { client, stream: stream.clone(), packet, start, times };
            running.spawn(async move { Ok(Ended::Sender(number, source.run().await?)) });
            for (n, receiver) in stream.receivers.iter().enumerate() {
                let client = self.client(receiver.node).clone();
                let names = stream.layers.iter().map(|layer| layer.name.clone()).collect();
                let group = stream.group.clone();
                let receiver = receiver.clone();
                let receiver = Receiver { client, group, names, receiver, packet, start, times };
                running.spawn(async move { Ok(Ended::Receiver(number, n, receiver.run().await?)) });
            }
        }

        running
    }

    /// Returns the processor time of each daemon so far, s.
    fn cpu_times(&self) -> io::Result<Vec<(String, f64)>> {
        self.nodes.iter().map(|node| Ok((node.name().to_owned(), node.cpu_seconds()?))).collect()
    }

    /// Samples the daemons' queues and the problems of receivers.
    async fn sample(&self, seen: &mut Seen) -> Result<(), LabError> {
        for node in &self.nodes {
            let streams: Vec<StreamView> = node.client().read("/v1/streams").await?;
            for stream in streams {
                if let Some(receiving) = stream.receiving {
                    let key = (node.name().to_owned(), stream.group.clone());
                    seen.problems.insert(key, receiving.problem.map(|problem| problem.text));
                }

                for queue in stream.queues {
                    let key = (node.name().to_owned(), stream.group.clone(), queue.to.clone());
                    let (name, group, to) = key.clone();
                    let fresh = StreamQueueOutcome { node: name, group, to, ..Default::default() };
                    let entry = seen.queues.entry(key).or_insert(fresh);
                    entry.sample(queue.values);
                }
            }
        }

        Ok(())
    }

    /// Returns the result of one stream from the counts of its source and its receivers.
    fn outcome_of_stream(
        &self,
        stream: &Stream,
        sent: &Sent,
        received: Vec<Received>,
        seen: &Seen,
    ) -> StreamOutcome {
        let times = Times::of(stream, Instant::now());
        let packet_bytes = stream.packet.unwrap_or(PACKET);
        let rate = |packets: u64| packets as f64 * packet_bytes as f64 * 8.0 / times.seconds();
        let name = |node: usize| self.scenario.nodes[node].name.clone();
        let receivers = stream.receivers.iter().zip(received).map(|(receiver, received)| {
            let layer = |(i, layer): (usize, &ncmesh_sim::scenario::Layer)| {
                let delivered = received.delivered.get(i).copied().unwrap_or(0);
                let offered = sent.counted.get(i).copied().unwrap_or(0).max(1);
                StreamLayerOutcome {
                    name: layer.name.clone(),
                    delivered,
                    rate_bps: rate(delivered),
                    share: delivered as f64 / offered as f64,
                    out_of_order: None,
                    delay_p50_s: None,
                    delay_p99_s: None,
                }
            };

            let layers = stream.layers.iter().enumerate().map(layer).collect();
            let node = name(receiver.node);
            let group = stream.group.clone();
            let problem = seen.problems.get(&(node.clone(), group)).cloned().flatten();
            StreamReceiverOutcome { problem, ..received.outcome(node, layers, packet_bytes, times) }
        });

        StreamOutcome {
            group: stream.group.clone(),
            from: name(stream.from),
            packet_bytes,
            taken: sent.counted.clone(),
            refused: 0,
            seconds: times.seconds(),
            receivers: receivers.collect(),
        }
    }
}

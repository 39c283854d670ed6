//! One stream under way: its source, and the check of what arrives at its receivers.
//!
//! Every packet begins with its layer and number, and its other bytes follow from them. So a packet
//! that arrives is checked without keeping what was sent.

use super::RunError;
use super::receiver::{Measurement, Receiver};
use crate::outcome::StreamOutcome;
use crate::scenario::Stream;
use crate::simulation::{Simulation, StreamArrival};
use ncmesh_engine::registry::Scheme;
use ncmesh_engine::stream::NewStream;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::FlowId;

/// Length of the layer and number at the beginning of a packet, bytes.
pub(super) const STAMP: usize = 9;

/// A stream under way.
pub(super) struct StreamSource {
    scheme: Scheme,
    stream: Stream,
    /// Index of the stream in the scenario.
    number: usize,
    /// Flow of the stream; `None` until it begins.
    flow: Option<FlowId>,
    begins: Instant,
    counts_from: Instant,
    pub ends: Instant,
    layers: Vec<Offered>,
    receivers: Vec<Receiver>,
    outcome: StreamOutcome,
    closed: bool,
}

/// Packets of one layer that the source offers.
struct Offered {
    interval: Duration,
    /// Time of the next packet.
    next: Instant,
    /// Time at which each packet was accepted, by number.
    taken_at: Vec<Instant>,
    /// Packets accepted during the measurement.
    counted: u64,
}

impl StreamSource {
    /// Returns the source of a stream that begins `stream.start` after `start`. `outcome` has what
    /// is known of its result, `names` are the names of the receivers.
    pub(super) fn new(
        scheme: Scheme,
        number: usize,
        stream: Stream,
        outcome: StreamOutcome,
        names: Vec<String>,
        start: Instant,
    ) -> Self {
        // Each layer is a clock of its own, with a fixed interval between packets.
        let begins = start + stream.start;
        let counts_from = begins + stream.warm_up;
        let ends = counts_from + stream.duration;
        let bits = outcome.packet_bytes as f64 * 8.0;
        let offered = |rate_bps: u64| Offered {
            interval: Duration::from_secs_f64(bits / rate_bps as f64).max(Duration::from_nanos(1)),
            next: begins,
            taken_at: Vec::new(),
            counted: 0,
        };

        let receivers = stream.receivers.iter().zip(names);
        let receivers = receivers
            .map(|(receiver, name)| Receiver::new(receiver, name, stream.layers.len(), begins));
        Self {
            scheme,
            number,
            flow: None,
            begins,
            counts_from,
            ends,
            layers: stream.layers.iter().map(|layer| offered(layer.rate_bps)).collect(),
            receivers: receivers.collect(),
            outcome,
            closed: false,
            stream,
        }
    }

    /// Returns the time after `now` at which [`handle_due`](Self::handle_due) has something to do.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let layers = self.layers.iter().map(|layer| layer.next);
        let members = self.receivers.iter().flat_map(Receiver::times);
        let all = layers.chain(members).chain([self.begins, self.counts_from, self.ends]);
        all.filter(|at| *at > now && *at <= self.ends).min()
    }

    /// Does everything that is due: joins and leaves, the beginning and the end of the stream, and
    /// packets of all layers.
    pub(super) fn handle_due(&mut self, sim: &mut Simulation) -> Result<(), RunError> {
        // Receivers may join before the stream begins: they wait for its announcement.
        let now = sim.now();
        let scheme = self.scheme;
        let group = &self.stream.group;
        for receiver in &mut self.receivers {
            receiver.handle_due(sim, scheme, group)?;
        }

        if now >= self.ends && !self.closed {
            self.closed = true;
            sim.close_stream(scheme, self.stream.from, group);
        }

        if !(self.begins..self.ends).contains(&now) {
            return Ok(());
        }

        // Open the stream at its first packet.
        let flow = match self.flow {
            Some(flow) => flow,
            None => {
                let names: Vec<String> =
                    self.stream.layers.iter().map(|layer| layer.name.clone()).collect();
                let deadline = self.stream.deadline;
                let new = NewStream { group, layers: &names, deadline };
                *self.flow.insert(sim.open_stream(scheme, self.stream.from, new)?)
            }
        };

        for layer in 0..self.layers.len() {
            self.offer(sim, flow, layer)?;
        }
        Ok(())
    }

    /// Offers the packets of a layer that are due. The number of a packet counts accepted packets,
    /// so a refused packet's number is used again.
    fn offer(&mut self, sim: &mut Simulation, flow: FlowId, layer: usize) -> Result<(), RunError> {
        // Like a live encoder, the source does not wait: a refused packet is lost.
        let now = sim.now();
        let offered = &mut self.layers[layer];
        while offered.next <= now {
            offered.next = offered.next + offered.interval;
            let number = offered.taken_at.len() as u64;
            let bytes = contents(self.number, layer, number, self.outcome.packet_bytes);
            let sent =
                sim.send_stream_packet(self.scheme, self.stream.from, flow, layer, &bytes)?;
            if sent.is_ok() {
                offered.taken_at.push(now);
                offered.counted += u64::from(now >= self.counts_from);
            } else {
                self.outcome.refused += u64::from(now >= self.counts_from);
            }
        }

        Ok(())
    }

    /// Samples the problems of all receivers, during the measurement.
    pub(super) fn sample(&mut self, sim: &Simulation) {
        let during = (self.counts_from..self.ends).contains(&sim.now());
        let Some(flow) = self.flow.filter(|_| during) else { return };
        self.receivers.iter_mut().for_each(|receiver| receiver.sample(sim, flow));
    }

    /// Checks a packet that arrived, if it belongs to this stream, and counts it at its receiver.
    pub(super) fn receive(&mut self, arrival: &StreamArrival) {
        if self.flow != Some(arrival.flow) {
            return;
        }
        let Some(receiver) = self.receivers.iter_mut().find(|r| r.node == arrival.to) else {
            return;
        };

        // Layer and number. Packets too short for them get values that match no packet sent.
        let number = arrival.packet.get(1..STAMP).and_then(|bytes| bytes.try_into().ok());
        let number = number.map_or(u64::MAX, u64::from_be_bytes);
        let layer = arrival.packet.first().map_or(usize::MAX, |layer| usize::from(*layer));
        let offered = self.layers.get(layer);
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let taken_at = offered.and_then(|offered| offered.taken_at.get(index)).copied();

        // A packet is intact if the source accepted this number and all bytes are as they were.
        let own = arrival.packet == contents(self.number, layer, number, self.outcome.packet_bytes);
        let counts = (self.counts_from..self.ends).contains(&arrival.at);
        match taken_at.filter(|_| own) {
            Some(taken_at) => receiver.receive(arrival, layer, index, taken_at, counts),
            None => receiver.outcome.corrupt += 1,
        }
    }

    /// Returns the result of the stream. `now` is the end of the run.
    pub(super) fn conclude(mut self, now: Instant) -> StreamOutcome {
        let until = now.min(self.ends);
        let seconds =
            if until > self.counts_from { (until - self.counts_from).as_secs_f64() } else { 0.0 };

        self.outcome.seconds = seconds;
        self.outcome.taken = self.layers.iter().map(|layer| layer.counted).collect();
        let names: Vec<String> = self.stream.layers.iter().map(|l| l.name.clone()).collect();
        let packet_bits = self.outcome.packet_bytes as f64 * 8.0;
        let measurement = Measurement { seconds, from: self.counts_from, until };

        // Layer 0 is the base: without it the other layers are of no use to a receiver.
        let base = &self.layers[0].taken_at;
        let receivers = self.receivers.into_iter();
        self.outcome.receivers = receivers
            .map(|r| r.conclude(&names, &self.outcome.taken, base, packet_bits, measurement))
            .collect();
        self.outcome
    }
}

/// Returns the bytes of a packet: layer, number, and bytes that follow from stream and number.
fn contents(stream: usize, layer: usize, number: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    bytes.push(layer as u8);
    bytes.extend_from_slice(&number.to_be_bytes());
    let salt = (number ^ (stream as u64) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bytes.extend((STAMP..len).map(|i| (salt.rotate_left(i as u32 % 64) >> 7) as u8 ^ i as u8));
    bytes
}

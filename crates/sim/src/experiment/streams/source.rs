//! One stream's packets, from its source to its receivers.

use super::receiver::Receiver;
use super::{RunError, StreamOutcome};
use crate::scenario::Stream;
use crate::simulation::{Simulation, StreamArrival};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::FlowId;

/// Layer and number of a packet stand at its beginning.
pub(super) const STAMP: usize = 9;

/// A stream under way.
pub(super) struct Source {
    scheme: &'static str,
    stream: Stream,
    /// Which of the scenario's streams.
    number: usize,
    /// Once it has begun.
    flow: Option<FlowId>,
    begins: Instant,
    counts_from: Instant,
    pub ends: Instant,
    layers: Vec<Offered>,
    receivers: Vec<Receiver>,
    outcome: StreamOutcome,
    over: bool,
}

/// What is offered of a layer.
struct Offered {
    every: Duration,
    next: Instant,
    /// When each packet was taken.
    taken_at: Vec<Instant>,
    /// Taken while it was measured.
    counted: u64,
}

impl Source {
    pub(super) fn new(
        scheme: &'static str,
        number: usize,
        stream: Stream,
        (outcome, names): (StreamOutcome, Vec<String>),
        start: Instant,
    ) -> Self {
        let begins = start + stream.start;
        let counts_from = begins + stream.warm_up;
        let ends = counts_from + stream.duration;
        let bits = outcome.packet_bytes as f64 * 8.0;
        let offered = |rate_bps: u64| Offered {
            every: Duration::from_secs_f64(bits / rate_bps as f64).max(Duration::from_nanos(1)),
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
            over: false,
            stream,
        }
    }

    /// When, later than `now`, it has something to do.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let layers = self.layers.iter().map(|layer| layer.next);
        let members = self.receivers.iter().flat_map(Receiver::times);
        let all = layers.chain(members).chain([self.begins, self.counts_from, self.ends]);
        all.filter(|at| *at > now && *at <= self.ends).min()
    }

    pub(super) fn act(&mut self, s: &mut Simulation) -> Result<(), RunError> {
        let now = s.now();
        let (scheme, group) = (self.scheme, &self.stream.group);
        for receiver in &mut self.receivers {
            receiver.act(s, scheme, group)?;
        }
        if now >= self.ends && !self.over {
            self.over = true;
            s.close_stream(scheme, self.stream.from, group);
        }
        if !(self.begins..self.ends).contains(&now) {
            return Ok(());
        }
        let flow = match self.flow {
            Some(flow) => flow,
            None => {
                let names: Vec<String> =
                    self.stream.layers.iter().map(|layer| layer.name.clone()).collect();
                *self.flow.insert(s.open_stream(scheme, self.stream.from, group, &names)?)
            }
        };
        for layer in 0..self.layers.len() {
            self.offer(s, flow, layer)?;
        }
        Ok(())
    }

    fn offer(&mut self, s: &mut Simulation, flow: FlowId, layer: usize) -> Result<(), RunError> {
        let now = s.now();
        let offered = &mut self.layers[layer];
        while offered.next <= now {
            offered.next = offered.next + offered.every;
            let number = offered.taken_at.len() as u64;
            let bytes = contents(self.number, layer, number, self.outcome.packet_bytes);
            let sent =
                s.send_stream_packet(self.scheme, self.stream.from, (flow, layer), &bytes)?;
            if sent.is_ok() {
                offered.taken_at.push(now);
                offered.counted += u64::from(now >= self.counts_from);
            } else {
                self.outcome.refused += u64::from(now >= self.counts_from);
            }
        }
        Ok(())
    }

    /// Asks receivers' nodes what is wrong.
    pub(super) fn look(&mut self, s: &Simulation) {
        let during = (self.counts_from..self.ends).contains(&s.now());
        let Some(flow) = self.flow.filter(|_| during) else { return };
        self.receivers.iter_mut().for_each(|receiver| receiver.look(s, flow));
    }

    pub(super) fn receive(&mut self, arrival: &StreamArrival) {
        if self.flow != Some(arrival.flow) {
            return;
        }
        let Some(receiver) = self.receivers.iter_mut().find(|r| r.node == arrival.to) else {
            return;
        };
        let number = arrival.packet.get(1..STAMP).and_then(|bytes| bytes.try_into().ok());
        let number = number.map_or(u64::MAX, u64::from_be_bytes);
        let layer = arrival.packet.first().map_or(usize::MAX, |layer| usize::from(*layer));
        let offered = self.layers.get(layer);
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let taken_at = offered.and_then(|offered| offered.taken_at.get(index)).copied();
        let own = arrival.packet == contents(self.number, layer, number, self.outcome.packet_bytes);
        let counts = (self.counts_from..self.ends).contains(&arrival.at);
        match taken_at.filter(|_| own) {
            Some(taken_at) => receiver.receive(arrival, (layer, index), taken_at, counts),
            None => receiver.outcome.corrupt += 1,
        }
    }

    pub(super) fn conclude(mut self, now: Instant) -> StreamOutcome {
        let until = now.min(self.ends);
        let seconds =
            if until > self.counts_from { (until - self.counts_from).as_secs_f64() } else { 0.0 };
        self.outcome.seconds = seconds;
        self.outcome.taken = self.layers.iter().map(|layer| layer.counted).collect();
        let names: Vec<String> = self.stream.layers.iter().map(|l| l.name.clone()).collect();
        let packet_bits = self.outcome.packet_bytes as f64 * 8.0;
        let receivers = self.receivers.into_iter();
        self.outcome.receivers = receivers
            .map(|r| r.conclude(&names, &self.outcome.taken, packet_bits, (seconds, until)))
            .collect();
        self.outcome
    }
}

/// The bytes of a stream's packet.
fn contents(stream: usize, layer: usize, number: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    bytes.push(layer as u8);
    bytes.extend_from_slice(&number.to_be_bytes());
    let salt = (number ^ (stream as u64) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bytes.extend((STAMP..len).map(|i| (salt.rotate_left(i as u32 % 64) >> 7) as u8 ^ i as u8));
    bytes
}

//! Packets of a flow, evenly spaced or as many as are taken.

use super::{FlowOutcome, RunError, Traffic, Watch};
use crate::simulation::{Arrival, Simulation};
use ncmesh_engine::time::{Duration, Instant};

/// The number of a packet and of its flow stand at its beginning.
pub(super) const STAMP: usize = 12;

/// A flow's packets.
pub(super) struct Packets {
    number: u32,
    length: usize,
    /// When the next packet is offered, where they are evenly spaced.
    next: Instant,
    /// When each packet was taken.
    taken_at: Vec<Instant>,
    arrived: Vec<bool>,
    latest: usize,
    delays: Duration,
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

impl Packets {
    pub(super) fn new(number: u32, watch: &Watch) -> Self {
        Self {
            number,
            length: watch.outcome.packet_bytes,
            next: watch.begins,
            taken_at: Vec::new(),
            arrived: Vec::new(),
            latest: 0,
            delays: Duration::ZERO,
        }
    }

    /// Says whether the packet was taken.
    fn send(&mut self, watch: &mut Watch, s: &mut Simulation) -> Result<bool, RunError> {
        let bytes = contents(self.number, self.taken_at.len() as u64, self.length);
        let taken = watch.send(s, (watch.flow.from, watch.flow.to), &bytes)?;
        if taken {
            self.taken_at.push(s.now());
            self.arrived.push(false);
        }
        Ok(taken)
    }

    fn is_own(&self, watch: &Watch, arrival: &Arrival) -> bool {
        let number = arrival.packet.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        number == Some(self.number) && arrival.to == watch.flow.to
    }
}

impl Traffic for Packets {
    fn due(&mut self, watch: &Watch, _: Instant) -> Option<Instant> {
        watch.flow.rate_bps.map(|_| self.next)
    }

    fn may_act(&self, watch: &Watch, s: &Simulation, last: Instant) -> bool {
        let room = || watch.can_send(s, watch.flow.from, watch.flow.to);
        watch.flow.rate_bps.is_none() && s.now() > last && room()
    }

    fn act(&mut self, watch: &mut Watch, s: &mut Simulation) -> Result<(), RunError> {
        let now = s.now();
        if !watch.is_open(now) {
            return Ok(());
        }
        match watch.flow.rate_bps {
            None => {
                while watch.can_send(s, watch.flow.from, watch.flow.to) && self.send(watch, s)? {}
            }
            Some(rate_bps) => {
                let nanoseconds = (self.length as f64 * 8e9 / rate_bps as f64).max(1.0) as u64;
                while self.next <= now {
                    self.send(watch, s)?;
                    self.next = self.next + Duration::from_nanos(nanoseconds);
                }
            }
        }
        Ok(())
    }

    fn receive(&mut self, watch: &mut Watch, arrival: &Arrival) {
        if !self.is_own(watch, arrival) {
            return;
        }
        let number = arrival.packet.get(4..STAMP).and_then(|bytes| bytes.try_into().ok());
        let number = number.map_or(u64::MAX, u64::from_be_bytes);
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let whole = self.arrived.get(index) == Some(&false)
            && arrival.packet == contents(self.number, number, self.length);
        if !whole {
            watch.outcome.corrupt += 1;
            return;
        }
        self.arrived[index] = true;
        watch.delivered += 1;
        if watch.counts(arrival.at) {
            watch.outcome.delivered += 1;
            watch.outcome.disordered += u64::from(index < self.latest);
            self.delays += arrival.at - self.taken_at[index];
        }
        self.latest = self.latest.max(index);
    }

    fn conclude(&self, outcome: &mut FlowOutcome, _: Instant) {
        let delivered = outcome.delivered;
        if outcome.seconds > 0.0 {
            outcome.throughput_bps = (delivered * self.length as u64 * 8) as f64 / outcome.seconds;
        }
        if delivered > 0 {
            outcome.mean_delay_s = Some(self.delays.as_secs_f64() / delivered as f64);
        }
    }
}

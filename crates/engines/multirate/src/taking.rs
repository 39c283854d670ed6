//! A node's part in a stream as receiver: its virtual queue, and what it got.

use super::backlog::Packet;
use super::ledger::Ledger;
use super::{Parameters, Receiver, Utility};
use ncmesh_engine::stream::{Receiving, Trouble};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;

/// What a packet is taken to be long before one has come, bytes.
const FIRST_LENGTH: f64 = 1000.0;
/// Weight of the newest packet in their mean length, once there are many.
const NEWEST: f64 = 0.01;

/// This node's part as receiver.
#[derive(Debug)]
pub(super) struct Taking {
    receiver: Receiver,
    /// Virtual pressure (Y) since the slot began.
    pub pressure: f64,
    /// Whether the policy lets receivers push back.
    has_say: bool,
    received: u32,
    mean_length: f64,
    ledger: Ledger,
    tally: Receiving,
}

impl Taking {
    pub(super) fn new(utility: Utility, parameters: &Parameters, has_say: bool) -> Self {
        let ledger = Ledger::new(1e6 * utility.minimum());
        let receiver = Receiver::eager(utility, parameters);
        let tally = Receiving::default();
        let mut taking = Self {
            receiver,
            pressure: 0.0,
            has_say,
            received: 0,
            mean_length: FIRST_LENGTH,
            ledger,
            tally,
        };
        taking.press(parameters);
        taking
    }

    /// A packet came.
    pub(super) fn receive(&mut self, packet: &Packet) {
        let bytes = packet.bytes.len();
        self.received = self.received.saturating_add(1);
        self.tally.packets[packet.layer] += 1;
        self.tally.bytes[packet.layer] += bytes as u64;
        let all: u64 = self.tally.packets.iter().sum();
        let weight = NEWEST.max(1.0 / all as f64);
        self.mean_length += weight * (bytes as f64 - self.mean_length);
    }

    pub(super) fn announced(&mut self, sent: &[u32], now: Instant) {
        let received = self.tally.bytes.iter().sum();
        self.ledger.announced(now, sent, (received, self.mean_length));
    }

    pub(super) fn next_slot(&mut self, parameters: &Parameters, slot: Duration) {
        // Packets per slot in a Mbit/s.
        self.receiver.set_unit(1e6 * slot.as_secs_f64() / (8.0 * self.mean_length.max(1.0)));
        self.receiver.advance(self.pressure, std::mem::take(&mut self.received), parameters);
        self.receiver.hold_below(parameters.z_bound());
        self.press(parameters);
    }

    /// Y as the virtual queue has it; no policy lets it exceed what a queue may hold.
    fn press(&mut self, parameters: &Parameters) {
        if self.has_say {
            self.pressure = self.receiver.pressure(parameters).min(parameters.q_bound());
        }
    }

    pub(super) fn status(&self, parent: Option<NodeId>) -> Receiving {
        let trouble = if parent.is_none() { Some(Trouble::NoPath) } else { self.ledger.trouble() };
        Receiving {
            z: self.receiver.z(),
            pressure: self.pressure,
            minimum_bps: self.ledger.minimum_bps,
            rates_bps: self.ledger.rates(),
            trouble,
            ..self.tally.clone()
        }
    }
}

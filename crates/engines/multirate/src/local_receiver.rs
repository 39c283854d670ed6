//! This node's part in a stream as a receiver: its virtual queue, and counts of what it received.

use crate::packet_queue::Packet;
use crate::parameters::Parameters;
use crate::rate_monitor::RateMonitor;
use crate::receiver::Receiver;
use crate::utility::Utility;
use ncmesh_engine::stream::{Receiving, StreamProblem};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::average::Average;
use ncmesh_engine::toolkit::live::{Listener, Shortfall};
use ncmesh_wire::NodeId;

/// Length that is assumed of a packet until one has come, bytes.
const INITIAL_LENGTH: f64 = 1000.0;
/// Weight of the newest packet in their mean length.
const NEWEST: f64 = 0.01;

/// A stream's receiver at this node.
#[derive(Debug)]
pub(crate) struct LocalReceiver {
    receiver: Receiver,
    /// Virtual pressure (Y) since the slot began; stays 0 under a policy without utilities.
    pub pressure: f64,
    /// Whether the policy lets receivers push back.
    has_utility: bool,
    /// Packets received in this slot.
    received_in_slot: u32,
    length: Average,
    monitor: RateMonitor,
    counters: Receiving,
    shortfall: Shortfall,
}

impl Listener for LocalReceiver {
    fn handle_announcement(&mut self, sent: &[u32], now: Instant) {
        self.shortfall.handle_announcement(sent, &mut self.counters);
        let received = self.counters.bytes.iter().sum();
        self.monitor.handle_announcement(now, sent, received, self.mean_length());
    }
}

impl LocalReceiver {
    /// Returns a receiver with this utility, whose rates are in Mbit/s.
    pub(crate) fn new(utility: Utility, parameters: &Parameters, has_utility: bool) -> Self {
        let monitor = RateMonitor::new(1e6 * utility.minimum());
        let mut local = Self {
            receiver: Receiver::eager(utility, parameters),
            pressure: 0.0,
            has_utility,
            received_in_slot: 0,
            length: Average::new(NEWEST),
            monitor,
            counters: Receiving::default(),
            shortfall: Shortfall::default(),
        };

        local.update_pressure(parameters);
        local
    }

    /// Counts a packet.
    pub(crate) fn receive(&mut self, packet: &Packet) {
        let bytes = packet.bytes.len();
        self.received_in_slot = self.received_in_slot.saturating_add(1);
        self.shortfall.receive(packet.layer, packet.seq, &mut self.counters);
        self.counters.packets[packet.layer] += 1;
        self.counters.bytes[packet.layer] += bytes as u64;
        self.length.add(bytes as f64);
    }

    /// Returns the mean length of packets, bytes.
    fn mean_length(&self) -> f64 {
        let has_packets = self.counters.packets.iter().any(|packets| *packets > 0);
        if has_packets { self.length.value() } else { INITIAL_LENGTH }
    }

    /// Ends a slot of length `slot`: the virtual queue takes in what was received.
    pub(crate) fn next_slot(&mut self, parameters: &Parameters, slot: Duration) {
        // Utilities are functions of Mbit/s, queues count packets per slot. The conversion follows
        // the packets' mean length.
        self.receiver.set_unit(1e6 * slot.as_secs_f64() / (8.0 * self.mean_length().max(1.0)));

        // Congestion control of the slot that ends, with the pressure that it began with (26).
        let received = std::mem::take(&mut self.received_in_slot);
        self.receiver.advance(self.pressure, received, parameters);

        // Lemma 2 bounds Z if at most mu_max packets arrive in a slot. More may come after a pause,
        // and Z must not take long to come down from there.
        self.receiver.hold_below(parameters.z_bound());
        self.update_pressure(parameters);
    }

    /// Sets Y from the virtual queue, at most the bound on transmission queues: no queue can
    /// outweigh more.
    fn update_pressure(&mut self, parameters: &Parameters) {
        if self.has_utility {
            self.pressure = self.receiver.pressure(parameters).min(parameters.q_bound());
        }
    }

    /// Returns its state and the problem that keeps it from its rate. Without a `parent` there is
    /// no path to the source.
    pub(crate) fn status(&self, parent: Option<NodeId>) -> Receiving {
        let problem =
            if parent.is_none() { Some(StreamProblem::NoPath) } else { self.monitor.problem() };
        Receiving {
            z: self.receiver.z(),
            pressure: self.pressure,
            minimum_bps: self.monitor.minimum_bps,
            rates_bps: self.monitor.rates().map(|rates| (rates.received_bps, rates.offered_bps)),
            problem,
            ..self.counters.clone()
        }
    }
}

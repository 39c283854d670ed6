//! A transfer by TCP: its packets are carried in both directions.

use super::{FlowMeter, RunError, TrafficSource};
use crate::outcome::FlowOutcome;
use crate::scenario::Tcp;
use crate::simulation::{IpArrival, Simulation};
use crate::tcp::{Behaviour, Congestion, Connection, End, HEADERS};
use ncmesh_engine::time::Instant;

/// Shortest packet that makes sense for TCP, bytes.
pub(super) const SHORTEST: usize = HEADERS + 64;

/// Default size of the send buffer and of the receive buffer, bytes: the size to which the kernel's
/// buffers grow by themselves.
const WINDOW: usize = 4 << 20;
/// Default size without congestion control, where the window alone limits the sender, bytes.
const WINDOW_ALONE: usize = 65_535;

/// Returns the congestion control that a scenario names.
fn congestion(tcp: &Tcp) -> Result<Congestion, RunError> {
    match tcp.congestion.as_deref() {
        None | Some("cubic") => Ok(Congestion::Cubic),
        Some("reno") => Ok(Congestion::Reno),
        Some("none") => Ok(Congestion::None),
        Some(other) => Err(RunError::Tcp(format!(
            "has congestion \"cubic\", \"reno\" and \"none\", not {other:?}"
        ))),
    }
}

/// TCP connection of a flow.
pub(super) struct Transfer {
    connection: Connection,
}

impl Transfer {
    pub(super) fn new(tcp: &Tcp, seed: u64, meter: &FlowMeter) -> Result<Self, RunError> {
        if meter.flow.rate_bps.is_some() {
            return Err(RunError::Tcp("sends as fast as it can, and a flow has a `rate`".into()));
        }

        // Without congestion control the window alone bounds what is in flight.
        let congestion = congestion(tcp)?;
        let window = if congestion == Congestion::None { WINDOW_ALONE } else { WINDOW };
        let behaviour = Behaviour {
            congestion,
            window: tcp.window.unwrap_or(window),
            ack_delay: tcp.ack_delay,
            min_rto: tcp.min_rto,
            packet: meter.outcome.packet_bytes,
            seed,
        };

        let connection = Connection::new(meter.addresses, behaviour, tcp.size);
        Ok(Self { connection })
    }

    /// Sends all packets of an end. Returns whether there were any.
    fn send(
        &mut self,
        meter: &mut FlowMeter,
        sim: &mut Simulation,
        end: End,
    ) -> Result<bool, RunError> {
        let mut any = false;
        while let Some(packet) = self.connection.outgoing(end).pop_front() {
            self.connection.note_sent(end, &packet, sim.now());
            meter.send(sim, node_of(meter, end), packet)?;
            any = true;
        }
        Ok(any)
    }
}

/// Returns the node behind which an end is.
fn node_of(meter: &FlowMeter, end: End) -> usize {
    match end {
        End::Client => meter.flow.from,
        End::Server => meter.flow.to,
    }
}

impl TrafficSource for Transfer {
    fn due(&mut self, _: &FlowMeter, now: Instant) -> Option<Instant> {
        self.connection.due().filter(|due| *due > now)
    }

    fn may_act(&self, _: &FlowMeter, sim: &Simulation, _: Instant) -> bool {
        sim.has_ip_packets()
    }

    fn act(&mut self, meter: &mut FlowMeter, sim: &mut Simulation) -> Result<(), RunError> {
        if !meter.is_open(sim.now()) {
            return Ok(());
        }

        // A timer may queue packets at either end, so go on until neither end has any.
        loop {
            self.connection.poll(sim.now());
            let forth = self.send(meter, sim, End::Client)?;
            let back = self.send(meter, sim, End::Server)?;
            if !forth && !back {
                return Ok(());
            }
        }
    }

    fn receive(&mut self, meter: &mut FlowMeter, arrival: &IpArrival) {
        // The addresses identify the connection. The node must be the right one too: a packet that
        // arrives elsewhere was misrouted.
        let Some(end) = self.connection.end_of(&arrival.packet) else { return };
        if arrival.to != node_of(meter, end) {
            return;
        }
        if end == End::Server {
            meter.delivered += 1;
            meter.outcome.delivered += u64::from(meter.counts(arrival.at));
        }
        self.connection.receive(end, &arrival.packet, arrival.at);
    }

    fn begin_counting(&mut self) {
        self.connection.begin_counting();
    }

    fn is_over(&self) -> bool {
        self.connection.is_finished()
    }

    fn conclude(&self, outcome: &mut FlowOutcome, begins: Instant) {
        let tcp = self.connection.outcome(begins);
        // TCP delivers in order, so reordering in the mesh is not visible.
        outcome.disordered = Some(0);
        outcome.corrupt = Some(self.connection.wrong());
        if outcome.seconds > 0.0 {
            outcome.throughput_bps = (tcp.bytes * 8) as f64 / outcome.seconds;
        }
        outcome.tcp = Some(tcp);
    }
}

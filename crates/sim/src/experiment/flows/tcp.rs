//! A transfer by TCP: its packets are carried in both directions.

use super::{RunError, Traffic, Watch};
use crate::outcome::FlowOutcome;
use crate::scenario::Tcp;
use crate::simulation::{IpArrival, Simulation};
use crate::tcp::{Behaviour, Congestion, Connection, End, HEADERS};
use ncmesh_engine::time::Instant;

/// Shortest packet of use, bytes.
pub(super) const SHORTEST: usize = HEADERS + 64;

/// Send and receive buffer each where the scenario does not say, bytes: as large as the kernel's
/// grow by themselves.
const WINDOW: usize = 4 << 20;
/// The same without congestion control, where the window alone limits the sender.
const WINDOW_ALONE: usize = 65_535;

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

/// A connection of a flow.
pub(super) struct Transfer {
    connection: Connection,
}

impl Transfer {
    pub(super) fn new(tcp: &Tcp, seed: u64, watch: &Watch) -> Result<Self, RunError> {
        if watch.flow.rate_bps.is_some() {
            return Err(RunError::Tcp("sends as fast as it can, and a flow has a `rate`".into()));
        }
        let congestion = congestion(tcp)?;
        let window = if congestion == Congestion::None { WINDOW_ALONE } else { WINDOW };
        let behaviour = Behaviour {
            congestion,
            window: tcp.window.unwrap_or(window),
            ack_delay: tcp.ack_delay,
            packet: watch.outcome.packet_bytes,
            seed,
        };
        let connection = Connection::new(watch.addresses, behaviour, tcp.size);
        Ok(Self { connection })
    }

    /// Sends what an end has to send. Returns whether there was anything.
    fn send(&mut self, watch: &mut Watch, s: &mut Simulation, end: End) -> Result<bool, RunError> {
        let mut any = false;
        while let Some(packet) = self.connection.outgoing(end).pop_front() {
            self.connection.note_sent(end, &packet, s.now());
            watch.send(s, node_of(watch, end), packet)?;
            any = true;
        }
        Ok(any)
    }
}

/// Returns the node of an end.
fn node_of(watch: &Watch, end: End) -> usize {
    match end {
        End::Client => watch.flow.from,
        End::Server => watch.flow.to,
    }
}

impl Traffic for Transfer {
    fn due(&mut self, _: &Watch, now: Instant) -> Option<Instant> {
        self.connection.due().filter(|due| *due > now)
    }

    fn may_act(&self, _: &Watch, s: &Simulation, _: Instant) -> bool {
        s.has_ip_packets()
    }

    fn act(&mut self, watch: &mut Watch, s: &mut Simulation) -> Result<(), RunError> {
        if !watch.is_open(s.now()) {
            return Ok(());
        }
        loop {
            self.connection.poll(s.now());
            let forth = self.send(watch, s, End::Client)?;
            let back = self.send(watch, s, End::Server)?;
            if !forth && !back {
                return Ok(());
            }
        }
    }

    fn receive(&mut self, watch: &mut Watch, arrival: &IpArrival) {
        let Some(end) = self.connection.end_of(&arrival.packet) else { return };
        if arrival.to != node_of(watch, end) {
            return;
        }
        if end == End::Server {
            watch.delivered += 1;
            watch.outcome.delivered += u64::from(watch.counts(arrival.at));
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
        // TCP puts segments in order before anybody sees them.
        outcome.disordered = Some(0);
        outcome.corrupt = Some(self.connection.wrong());
        if outcome.seconds > 0.0 {
            outcome.throughput_bps = (tcp.bytes * 8) as f64 / outcome.seconds;
        }
        outcome.tcp = Some(tcp);
    }
}

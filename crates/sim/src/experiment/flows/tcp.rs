//! A transfer by TCP: its packets are carried in both directions.

use super::{FlowOutcome, RunError, Traffic, Watch};
use crate::scenario::Tcp;
use crate::simulation::{Arrival, Simulation};
use crate::tcp::{Behaviour, Congestion, Connection, End, HEADERS};
use ncmesh_engine::time::Instant;

/// The shortest packet that is of use, bytes: smoltcp sends no shorter segments.
pub(super) const LEAST: usize = HEADERS + 64;

/// Send and receive buffer each where the scenario does not say, bytes: the most without window scaling (RFC 9293).
const WINDOW: usize = 65_535;

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
    pub(super) fn new(number: u32, tcp: &Tcp, seed: u64, watch: &Watch) -> Result<Self, RunError> {
        if watch.flow.rate_bps.is_some() {
            return Err(RunError::Tcp("sends as fast as it can, and a flow has a `rate`".into()));
        }
        let behaviour = Behaviour {
            congestion: congestion(tcp)?,
            window: tcp.window.unwrap_or(WINDOW),
            ack_delay: tcp.ack_delay,
            packet: watch.outcome.packet_bytes,
            seed,
        };
        let connection = Connection::new(number, behaviour, tcp.size, watch.begins);
        Ok(Self { connection })
    }

    /// Hands on what an end would send, as far as the scheme takes it. Says whether it took anything.
    fn hand_on(
        &mut self,
        watch: &mut Watch,
        s: &mut Simulation,
        end: End,
    ) -> Result<bool, RunError> {
        let way = way(watch, end);
        let mut any = false;
        while watch.can_send(s, way.0, way.1)
            && let Some(packet) = self.connection.outgoing(end).pop_front()
        {
            // What finds no path is lost, as IP's packets are.
            watch.send(s, way, &packet)?;
            self.connection.note_sent(end, &packet, s.now());
            any = true;
        }
        Ok(any)
    }
}

/// From which node to which an end's packets go.
fn way(watch: &Watch, end: End) -> (usize, usize) {
    match end {
        End::Client => (watch.flow.from, watch.flow.to),
        End::Server => (watch.flow.to, watch.flow.from),
    }
}

impl Traffic for Transfer {
    fn due(&mut self, _: &Watch, now: Instant) -> Option<Instant> {
        self.connection.due(now)
    }

    fn may_act(&self, watch: &Watch, s: &Simulation, _: Instant) -> bool {
        let waits = |end| {
            let (from, to) = way(watch, end);
            self.connection.has_outgoing(end) && watch.can_send(s, from, to)
        };
        s.has_packets() || waits(End::Client) || waits(End::Server)
    }

    fn act(&mut self, watch: &mut Watch, s: &mut Simulation) -> Result<(), RunError> {
        if !watch.is_open(s.now()) {
            return Ok(());
        }
        loop {
            self.connection.poll(s.now());
            let forth = self.hand_on(watch, s, End::Client)?;
            let back = self.hand_on(watch, s, End::Server)?;
            if !forth && !back {
                return Ok(());
            }
        }
    }

    fn receive(&mut self, watch: &mut Watch, arrival: &Arrival) {
        let Some(end) = self.connection.end_of(&arrival.packet) else { return };
        if arrival.to != way(watch, end).0 {
            return;
        }
        if end == End::Server {
            watch.delivered += 1;
            watch.outcome.delivered += u64::from(watch.counts(arrival.at));
        }
        self.connection.receive(end, arrival.packet.clone(), arrival.at);
    }

    fn begin_counting(&mut self) {
        self.connection.begin_counting();
    }

    fn is_over(&self) -> bool {
        self.connection.is_finished()
    }

    fn conclude(&self, outcome: &mut FlowOutcome, begins: Instant) {
        let tcp = self.connection.outcome(begins);
        outcome.corrupt = self.connection.wrong;
        if outcome.seconds > 0.0 {
            outcome.throughput_bps = (tcp.bytes * 8) as f64 / outcome.seconds;
        }
        outcome.tcp = Some(tcp);
    }
}

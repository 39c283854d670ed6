//! Round trips and bandwidth between two nodes, measured by packets of ncmesh's own.
//!
//! The packets (`frame`) go through the tunnel's scheme as IP packets do, so what is measured is
//! what IP packets get. Every node answers them, with a TUN device or without.
//!
//! - A round trip is the time from an echo request to its reply.
//! - A bandwidth run sends numbered packets for a while, as fast as the scheme takes them or at a
//!   rate. Then it asks the receiver what arrived, until that is all or grows no more.
//!
//! ```text
//! Sending -- time is over --> Asking -- all arrived, or nothing more --> outcome
//!                                    -- no report for 5 s ------------> no answer
//! ```
//!
//! A node remembers what it receives of a bounded number of runs, and answers a bounded number of
//! packets in a second, each by a packet that is not longer.
//!
//! - handle: [`Measurements::handle_packet`]
//! - poll: [`Measurements::drain`], [`Measurements::poll_outcome`], [`Measurements::poll_timeout`]

mod frame;
#[cfg(test)]
mod tests;

pub use frame::is_measurement;

use crate::gateway::Mesh;
use crate::rate_limit::RateLimit;
use frame::{Packet, Report};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::bounded::{IDLE, MAX_FLOWS, make_room};
use ncmesh_engine::toolkit::sequence::{self, SequenceWindow};
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, VecDeque};

/// Shortest packet of a bandwidth run, bytes.
pub const SHORTEST: usize = frame::DATA_HEADER;
/// Most echo requests of this node that wait for a reply. Beyond it the one that has waited longest
/// counts as lost.
pub const MAX_ECHOES: usize = 256;
/// Most runs of other nodes of which this one remembers what arrived.
pub const MAX_RUNS: usize = MAX_FLOWS;

/// Payload of an echo request, bytes: with its header as long as ping's default, without IP's.
const ECHO_PAYLOAD: usize = 59;
/// Replies and reports that a node sends in one second at most.
const REPLIES_PER_SECOND: u32 = 100;
/// Time between two questions for a report.
const ASK_PAUSE: Duration = Duration::from_millis(500);
/// Longest time to ask for a report. Packets that wait on the way take some of it.
const ASK_TIME: Duration = Duration::from_secs(5);
/// Time that a run at a rate makes up for at most, if it is called late. Times when the scheme took
/// nothing are longer, and are not made up for.
const CATCH_UP: Duration = Duration::from_millis(10);

/// A bandwidth run of this node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunSettings {
    /// Receiver.
    pub to: NodeId,
    /// Length of each packet, bytes; [`SHORTEST`] or more.
    pub bytes: usize,
    /// Time for which packets are sent.
    pub duration: Duration,
    /// Time between two packets. As fast as the scheme takes them if absent.
    pub interval: Option<Duration>,
}

/// Result of a bandwidth run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// Packets that the scheme took.
    pub sent: u32,
    /// Packets that arrived.
    pub received: u32,
    /// Bytes of those that arrived.
    pub bytes: u64,
    /// Time for which packets were sent, or in which they arrived if that is longer. A scheme that
    /// hands up many packets at once would otherwise seem faster than it is. At a rate, at least
    /// the time that the packets take at that rate.
    pub elapsed: Duration,
}

/// End of a measurement. `E` and `B` are what it was begun with.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome<E, B> {
    /// Round trip of an echo request; `None` if no reply came in time.
    Echo(E, Option<Duration>),
    /// Result of a bandwidth run; `None` if the receiver did not report.
    Bandwidth(B, Option<Bandwidth>),
}

/// The measurements of one node: its own, and its answers to others'.
#[derive(Debug)]
pub struct Measurements<E, B> {
    next_token: u32,
    echoes: BTreeMap<u32, Echo<E>>,
    run: Option<Run<B>>,
    /// Arrivals of other nodes' runs, by source and token.
    arrived: BTreeMap<(NodeId, u32), Arrived>,
    replies: RateLimit,
    outcomes: VecDeque<Outcome<E, B>>,
    /// Time of the last call of [`drain`](Self::drain).
    drained: Instant,
}

/// An echo request of this node.
#[derive(Debug)]
struct Echo<E> {
    to: NodeId,
    waiter: E,
    asked: Instant,
    until: Instant,
    /// Whether the scheme took it.
    is_sent: bool,
}

#[derive(Debug)]
struct Run<B> {
    settings: RunSettings,
    waiter: B,
    token: u32,
    sent: u32,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Sending {
        /// When the next packet is due, where there is an interval.
        next: Instant,
        until: Instant,
    },
    Asking {
        /// When the next question is due.
        next: Instant,
        until: Instant,
        report: Option<Report>,
    },
}

/// Arrivals of a run of another node.
#[derive(Debug)]
struct Arrived {
    window: SequenceWindow<u32>,
    packets: u32,
    bytes: u64,
    first: Instant,
    last: Instant,
}

impl<E, B> Measurements<E, B> {
    /// Returns a node's measurements. `seed` differs from those of its earlier starts, so that
    /// others tell its runs apart.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        Self {
            next_token: seed,
            echoes: BTreeMap::new(),
            run: None,
            arrived: BTreeMap::new(),
            replies: RateLimit::new(REPLIES_PER_SECOND),
            outcomes: VecDeque::new(),
            drained: Instant::default(),
        }
    }

    // ---- getters

    /// Returns the number of own echo requests that wait for a reply.
    #[must_use]
    pub fn echoes(&self) -> usize {
        self.echoes.len()
    }

    /// Returns the number of runs of others that are remembered.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.arrived.len()
    }

    /// Returns whether an own bandwidth run is under way.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// Returns whether nothing of this node's own is under way or has ended untold.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.echoes.is_empty() && self.run.is_none() && self.outcomes.is_empty()
    }

    // ---- commands

    /// Sends an echo request to `to` and waits for the reply until `until`. Call
    /// [`drain`](Self::drain) afterwards.
    pub fn echo(&mut self, to: NodeId, waiter: E, now: Instant, until: Instant) {
        let token = self.take_token();
        if let Some((_, echo)) = make_room(&mut self.echoes, &token, MAX_ECHOES, |echo| echo.asked)
        {
            self.outcomes.push_back(Outcome::Echo(echo.waiter, None));
        }
        self.echoes.insert(token, Echo { to, waiter, asked: now, until, is_sent: false });
    }

    /// Begins a bandwidth run; one that is under way ends without an outcome. Call
    /// [`drain`](Self::drain) afterwards.
    pub fn begin_run(&mut self, settings: RunSettings, waiter: B, now: Instant) {
        let stage = Stage::Sending { next: now, until: now + settings.duration };
        let token = self.take_token();
        self.run = Some(Run { settings, waiter, token, sent: 0, stage });
    }

    /// Forgets runs of others that have been silent for a minute.
    pub fn forget_idle(&mut self, now: Instant) {
        self.arrived.retain(|_, arrived| now.since(arrived.last) < IDLE);
    }

    // ---- handle

    /// Handles a packet of a measurement that came from a node of the mesh.
    ///
    /// # Errors
    /// Returns why the packet is dropped.
    pub fn handle_packet(
        &mut self,
        from: NodeId,
        packet: &[u8],
        mesh: &mut impl Mesh,
        now: Instant,
    ) -> Result<(), DropReason> {
        match Packet::parse(packet).map_err(|_| DropReason::Malformed)? {
            Packet::EchoRequest { token, payload } => {
                self.reply(from, Packet::EchoReply { token, payload }, mesh, now)
            }
            Packet::EchoReply { token, .. } => {
                // Another node must not answer in the name of the one that was asked.
                let echo = self.echoes.get(&token).filter(|echo| echo.to == from);
                let rtt = now.since(echo.ok_or(DropReason::UnknownFlow)?.asked);
                let echo = self.echoes.remove(&token).ok_or(DropReason::UnknownFlow)?;
                self.outcomes.push_back(Outcome::Echo(echo.waiter, Some(rtt)));
                Ok(())
            }
            Packet::Data { token, number, .. } => {
                self.count(from, token, number, packet.len(), now)
            }
            Packet::End { token } => {
                // A run without any arrival yields the default report.
                let report = self.arrived.get(&(from, token)).map(Arrived::report);
                let report = report.unwrap_or_default();
                self.reply(from, Packet::Report { token, report }, mesh, now)
            }
            Packet::Report { token, report } => self.handle_report(from, token, report),
        }
    }

    /// Answers a packet, unless this node has said enough in this second.
    fn reply(
        &mut self,
        to: NodeId,
        packet: Packet<'_>,
        mesh: &mut impl Mesh,
        now: Instant,
    ) -> Result<(), DropReason> {
        if !self.replies.take(now) {
            return Err(DropReason::Full);
        }
        // Whoever asked asks again, or takes the reply for lost.
        mesh.send(to, &packet.to_bytes()).map_err(|_| DropReason::Full)
    }

    /// Counts a data packet of another node's run.
    fn count(
        &mut self,
        from: NodeId,
        token: u32,
        number: u32,
        bytes: usize,
        now: Instant,
    ) -> Result<(), DropReason> {
        let key = (from, token);

        // Runs of other nodes take bounded room: the one that was silent longest makes room.
        make_room(&mut self.arrived, &key, MAX_RUNS, |arrived| arrived.last);
        match self.arrived.get_mut(&key) {
            None => {
                let window = SequenceWindow::new(number);
                self.arrived.insert(key, Arrived::new(window, bytes, now));
            }
            // Schemes hand up each packet once, and few so late that the window does not know them.
            Some(arrived) => match arrived.window.receive(number) {
                sequence::Received::Duplicate => return Err(DropReason::Stale),
                _ => arrived.count(bytes, now),
            },
        }

        Ok(())
    }

    /// Takes a report on the own run. Ends the run if all arrived, or if no more did than at the
    /// report before.
    fn handle_report(&mut self, from: NodeId, token: u32, new: Report) -> Result<(), DropReason> {
        let own = self.run.as_mut().filter(|run| run.token == token && run.settings.to == from);
        let run = own.ok_or(DropReason::UnknownFlow)?;
        // A report that comes after the outcome, or before the question, is of no use.
        let Stage::Asking { report, .. } = &mut run.stage else {
            return Err(DropReason::UnknownFlow);
        };

        // A report that is the same as the one before shows that nothing is on its way any more.
        let is_last = new.packets >= run.sent || *report == Some(new);
        *report = Some(new);
        if is_last {
            self.finish_run();
        }
        Ok(())
    }

    // ---- poll

    /// Returns when [`drain`](Self::drain) is to be called next, besides after all that may have
    /// made room in the scheme.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let run = self.run.as_ref().map(|run| match run.stage {
            // A packet that is overdue waits for room.
            Stage::Sending { next, until } if next > self.drained => next.min(until),
            Stage::Sending { until, .. } => until,
            Stage::Asking { next, until, .. } => next.min(until),
        });
        self.echoes.values().map(|echo| echo.until).chain(run).min()
    }

    /// Sends what is due and what the scheme asks for, and ends what has waited long enough. Call
    /// it after everything that the stack was told.
    pub fn drain(&mut self, mesh: &mut impl Mesh, now: Instant) {
        self.drained = now;

        // A request for which the scheme had no room is sent as soon as there is some.
        for (token, echo) in &mut self.echoes {
            if !echo.is_sent {
                let mut payload = [0; ECHO_PAYLOAD];
                frame::fill(&mut payload, *token, 0);
                let request = Packet::EchoRequest { token: *token, payload: &payload };
                echo.is_sent = mesh.send(echo.to, &request.to_bytes()).is_ok();
            }
        }

        for (_, echo) in self.echoes.extract_if(.., |_, echo| echo.until <= now) {
            self.outcomes.push_back(Outcome::Echo(echo.waiter, None));
        }

        if self.run.as_mut().is_some_and(|run| run.drain(mesh, now)) {
            self.finish_run();
        }
    }

    /// Returns the next measurement that has ended.
    pub fn poll_outcome(&mut self) -> Option<Outcome<E, B>> {
        self.outcomes.pop_front()
    }

    // ---- inside

    fn take_token(&mut self) -> u32 {
        self.next_token = self.next_token.wrapping_add(1);
        self.next_token
    }

    /// Ends the own run with what was reported last.
    fn finish_run(&mut self) {
        if let Some(run) = self.run.take() {
            let result = run.result();
            self.outcomes.push_back(Outcome::Bandwidth(run.waiter, result));
        }
    }
}

impl<B> Run<B> {
    /// Sends what is due. Returns whether the run has ended.
    fn drain(&mut self, mesh: &mut impl Mesh, now: Instant) -> bool {
        let RunSettings { to, bytes, interval, .. } = self.settings;
        let token = self.token;
        if let Stage::Sending { next, until } = &mut self.stage {
            let filler = bytes.saturating_sub(SHORTEST);
            while now < *until && *next <= now && mesh.below_low_watermark(to) {
                let packet = Packet::Data { token, number: self.sent, filler };
                if mesh.send(to, &packet.to_bytes()).is_err() {
                    break;
                }
                self.sent += 1;
                if let Some(interval) = interval {
                    // After a long stall the rate holds from now on: the packets that it missed
                    // would come as a burst.
                    let after = *next + interval;
                    *next = if now.since(after) > CATCH_UP { now } else { after };
                }
            }

            if now < *until {
                return false;
            }
            self.stage = Stage::Asking { next: now, until: now + ASK_TIME, report: None };
        }

        if let Stage::Asking { next, until, .. } = &mut self.stage {
            if *until <= now {
                return true;
            }
            if *next <= now {
                // If the scheme has no room for it, the next one is soon enough.
                let _ = mesh.send(to, &Packet::End { token }.to_bytes());
                *next = now + ASK_PAUSE;
            }
        }

        false
    }

    /// Returns what the last report says.
    fn result(&self) -> Option<Bandwidth> {
        let Stage::Asking { report: Some(report), .. } = self.stage else { return None };
        let Report { packets, bytes, elapsed_us } = report;
        // At a rate, each packet stands for the time until the next one, which the last packet of a
        // short run has not waited for.
        let paced = self.settings.interval.unwrap_or_default().saturating_mul(self.sent);
        let elapsed = self.settings.duration.max(paced).max(Duration::from_micros(elapsed_us));
        Some(Bandwidth { sent: self.sent, received: packets, bytes, elapsed })
    }
}

impl Bandwidth {
    /// Returns the rate at which bytes arrived, bit/s.
    #[must_use]
    pub fn goodput_bps(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.elapsed.as_secs_f64()
    }

    /// Returns the share of packets that did not arrive, 0 to 1.
    #[must_use]
    pub fn lost(&self) -> f64 {
        f64::from(self.sent.saturating_sub(self.received)) / f64::from(self.sent.max(1))
    }
}

impl Arrived {
    fn new(window: SequenceWindow<u32>, bytes: usize, now: Instant) -> Self {
        Self { window, packets: 1, bytes: bytes as u64, first: now, last: now }
    }

    fn count(&mut self, bytes: usize, now: Instant) {
        self.packets = self.packets.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes as u64);
        self.last = now;
    }

    fn report(&self) -> Report {
        let elapsed = self.last.since(self.first).as_micros();
        Report {
            packets: self.packets,
            bytes: self.bytes,
            elapsed_us: u64::try_from(elapsed).unwrap_or(u64::MAX),
        }
    }
}

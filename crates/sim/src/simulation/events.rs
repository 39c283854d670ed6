//! One event after the other.

use super::{Arrival, IpArrival, Simulation, StreamArrival, node_id};
use crate::host::Received;
use crate::observe::What;
use crate::spent::Part;
use ncmesh_engine::rng;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::{TxReport, TxResult};
use ncmesh_medium::{Access, Output, RadioId};
use std::sync::Arc;

impl Simulation {
    /// Runs until `stop` says so or the clock reaches `until`, or an observer fails. Says whether
    /// `stop` did.
    pub fn run_until(&mut self, until: Instant, mut stop: impl FnMut(&Self) -> bool) -> bool {
        while !self.is_stopped() {
            if stop(self) {
                return true;
            }
            match self.next_event() {
                Some(at) if at <= until => self.step(at),
                _ => {
                    self.now = until;
                    return stop(self);
                }
            }
        }
        false
    }

    /// Runs for a time.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time, |_| false);
    }

    fn next_event(&self) -> Option<Instant> {
        let timer = self.timers.first().map(|(at, _)| *at);
        let medium = self.medium.poll_timeout().map(Instant::from_nanos);
        timer.into_iter().chain(medium).min()
    }

    fn step(&mut self, at: Instant) {
        self.now = at;
        if self.medium.poll_timeout().is_some_and(|t| t <= at.as_nanos()) {
            let begun = self.begin();
            self.medium.handle_timeout(at.as_nanos());
            self.end(Part::Medium, begun);
            self.drain_medium();
        }
        while let Some((due, node)) = self.timers.first().copied().filter(|(due, _)| *due <= at) {
            self.timers.remove(&(due, node));
            let begun = self.begin();
            let host = &mut self.hosts[node];
            host.timer = None;
            if let Some(stack) = &mut host.stack {
                stack.at(at, &mut host.storage).handle_timeout();
            }
            self.handle_due(node);
            self.end(Part::Timers, begun);
        }
    }

    fn drain_medium(&mut self) {
        while let Some(output) = self.medium.poll_output() {
            match output {
                Output::Grant { radio, .. } => {
                    let begun = self.begin();
                    self.granted(radio);
                    self.end(Part::Written(self.on_air[radio.0]), begun);
                }
                Output::Deliver { to, from, frame, power, .. } => {
                    let what = What::Heard { from: from.0, frame: &frame, power };
                    self.observers.tell(self.now, to.0, what);
                    let begun = self.begin();
                    self.deliver(to.0, frame);
                    self.end(Part::Heard(self.on_air[from.0]), begun);
                }
                Output::Report { radio, result, attempts, airtime_ns, heard_by, .. } => {
                    let what = What::Reported { result, attempts, airtime_ns };
                    self.observers.tell(self.now, radio.0, what);
                    self.report(radio.0, result, airtime_ns, heard_by);
                }
            }
        }
    }

    fn granted(&mut self, radio: RadioId) {
        let (node, now) = (radio.0, self.now);
        let host = &mut self.hosts[node];
        host.requested = false;
        let storage = &mut host.storage;
        let filled = host.stack.as_mut().and_then(|s| s.at(now, storage).fill(&mut self.out));
        match filled {
            None => drop(self.medium.decline(now.as_nanos(), radio)),
            Some(sent) => {
                let access = match sent.to {
                    Some(to) => Access::Unicast(RadioId(usize::from(to.0).wrapping_sub(1))),
                    None => Access::Broadcast,
                };
                self.on_air[node] = sent.service;
                self.observers.tell(now, node, What::Sent { to: sent.to, frame: &self.out });
                let frame: Arc<[u8]> = Arc::from(self.out.as_slice());
                if self.medium.supply(now.as_nanos(), radio, access, frame).is_err() {
                    drop(self.medium.decline(now.as_nanos(), radio));
                }
            }
        }
        self.handle_due(node);
    }

    /// Returns the time of the machine, if the time of parts is measured.
    #[expect(clippy::disallowed_methods, reason = "the time of the machine is what is measured")]
    fn begin(&self) -> Option<std::time::Instant> {
        self.spent.as_ref().map(|_| std::time::Instant::now())
    }

    /// Counts a run of a part.
    fn end(&mut self, part: Part, begun: Option<std::time::Instant>) {
        if let Some((spent, begun)) = self.spent.as_mut().zip(begun) {
            spent.add(part, begun);
        }
    }

    fn deliver(&mut self, node: usize, frame: Arc<[u8]>) {
        if rng::unit(&mut self.chaos) < self.config.disturbance.reorder && self.held[node].is_none()
        {
            self.held[node] = Some(frame);
            return;
        }
        self.hear(node, &frame);
        if rng::unit(&mut self.chaos) < self.config.disturbance.duplicate {
            self.hear(node, &frame);
        }
        if let Some(late) = self.held[node].take() {
            self.hear(node, &late);
        }
    }

    pub(super) fn hear(&mut self, node: usize, datagram: &[u8]) {
        let host = &mut self.hosts[node];
        if let Some(stack) = &mut host.stack {
            stack.at(self.now, &mut host.storage).handle_datagram(datagram);
        }
        self.handle_due(node);
    }

    fn report(
        &mut self,
        node: usize,
        result: ncmesh_medium::TxResult,
        airtime_ns: u64,
        heard_by: Option<Vec<RadioId>>,
    ) {
        use ncmesh_medium::TxResult as Mac;
        let result = match result {
            Mac::Sent => TxResult::Sent,
            Mac::Acked => TxResult::Acked,
            Mac::Failed => TxResult::Failed,
        };
        let heard_by = heard_by.map(|radios| radios.iter().map(|radio| node_id(radio.0)).collect());
        let report = TxReport { result, airtime: Duration::from_nanos(airtime_ns), heard_by };
        let host = &mut self.hosts[node];
        if let Some(stack) = &mut host.stack {
            stack.at(self.now, &mut host.storage).handle_tx_report(report);
        }
        self.handle_due(node);
    }

    /// After anything was said to a node: its events, its wish to transmit, its timer.
    pub(super) fn handle_due(&mut self, node: usize) {
        let (now, host) = (self.now, &mut self.hosts[node]);
        let (packets, stream_packets) = (&mut self.packets, &mut self.stream_packets);
        let ip_packets = &mut self.ip_packets;
        let receive = |received| match received {
            Received::Tunnel { from, packet } => {
                packets.push(Arrival { at: now, to: node, from, packet });
            }
            Received::Ip(packet) => ip_packets.push(IpArrival { at: now, to: node, packet }),
            Received::Stream { flow, packet } => {
                stream_packets.push(StreamArrival { at: now, to: node, flow, packet });
            }
        };
        host.handle_events(now, receive, |observation| {
            self.observers.tell(now, node, What::Happened(&observation));
            self.observations.push((now, node, observation));
        });
        let Some(stack) = &host.stack else { return };
        let asks = self.weighs || !host.requested;
        if let Some(offer) = asks.then(|| stack.offer(now)).flatten() {
            let _ = self.medium.set_weight(RadioId(node), offer.weight);
            host.requested = true;
            let _ = self.medium.request(now.as_nanos(), RadioId(node));
        }
        let timer = stack.poll_timeout();
        if timer != host.timer {
            if let Some(old) = core::mem::replace(&mut host.timer, timer) {
                self.timers.remove(&(old, node));
            }
            self.timers.extend(timer.map(|at| (at, node)));
        }
    }
}

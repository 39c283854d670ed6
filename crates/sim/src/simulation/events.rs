//! Event loop: the medium's outputs and the nodes' timers, in the order of time.
//!
//! After anything that may have changed a node, [`Simulation::handle_due`] collects its events,
//! requests a transmission if the node offers one, and updates its timer. The medium grants the
//! request later, and only then is the frame filled.

use super::processing::Inboxes;
use super::{
    Arrival, Disturbance, Heard, IpArrival, Observed, Outage, Simulation, StreamArrival, node_id,
};
use crate::host::Received;
use crate::observe::What;
use crate::observers::Observers;
use crate::spent::Part;
use ncmesh_engine::rng;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::{Port, TxReport, TxResult};
use ncmesh_medium::{Access, Medium, Output, RadioId};
use std::sync::Arc;

impl Simulation {
    /// Runs until `stop` returns true, the clock reaches `until`, or an observer fails. Returns
    /// whether `stop` returned true.
    pub fn run_until(&mut self, until: Instant, mut stop: impl FnMut(&Self) -> bool) -> bool {
        while !self.is_stopped() {
            if stop(self) {
                return true;
            }
            match self.next_event() {
                Some(at) if at <= until => {
                    self.show_until(at);
                    if !self.is_stopped() {
                        self.step(at);
                    }
                }
                _ => {
                    self.show_until(until);
                    self.now = until;
                    return stop(self);
                }
            }
        }

        false
    }

    /// Runs for `time`.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time, |_| false);
    }

    /// Shows the simulation to observers at every instant up to `until` at which they want to look.
    fn show_until(&mut self, until: Instant) {
        let due = |observers: &Observers| observers.next_look().filter(|at| *at <= until);
        while let Some(at) = due(&self.observers).filter(|_| !self.is_stopped()) {
            self.show(at, false);
        }
    }

    /// Returns the time of the next event.
    fn next_event(&self) -> Option<Instant> {
        let timer = self.timers.first().map(|(at, _)| *at);
        let media = self.media.iter().filter_map(Medium::poll_timeout).map(Instant::from_nanos);
        let processed = self.inboxes.as_ref().and_then(Inboxes::next_at);
        let outage = self.config.outages.get(self.outages).map(|outage| outage.at);
        timer.into_iter().chain(media).chain(processed).chain(self.next_move).chain(outage).min()
    }

    /// Handles everything that is due at `at`.
    fn step(&mut self, at: Instant) {
        self.now = at;
        if self.next_move.is_some_and(|next| next <= at) {
            self.move_nodes(at);
        }
        while let Some(outage) = self.config.outages.get(self.outages).filter(|o| o.at <= at) {
            let Outage { node, channel, is_on, is_seen, .. } = *outage;
            self.outages += 1;
            self.set_on_channel(node, channel, is_on, is_seen);
        }

        // The media come first: a frame that arrives at this instant may make a timer needless.
        for channel in 0..self.media.len() {
            if self.media[channel].poll_timeout().is_some_and(|t| t <= at.as_nanos()) {
                let begun = self.begin();
                self.media[channel].handle_timeout(at.as_nanos());
                self.end(Part::Medium, begun);
                self.drain_medium(channel);
            }
        }

        // Then the frames that nodes were busy with.
        while let Some((node, frame)) = self.inboxes.as_mut().and_then(|all| all.pop(at)) {
            self.deliver(node, frame);
        }

        // Then the nodes with a due timer, in the order of their numbers. A node sets its next
        // timer in `handle_due`.
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

    /// Moves the nodes to where they are at `at`.
    fn move_nodes(&mut self, at: Instant) {
        let Some(mobility) = &self.config.mobility else { return };
        let time_s = at.as_secs_f64();
        let moves = mobility.paths.iter().enumerate();
        let moves: Vec<_> = moves.map(|(node, path)| (RadioId(node), path.at(time_s))).collect();
        // Scenarios are checked: radios have positions, and none has shadowing.
        let moved = self.media[0].move_to(&moves);
        debug_assert!(moved.is_ok(), "{moved:?}");
        // Nobody moves after the last point of all paths.
        let goes_on = mobility.paths.iter().any(|path| path.end() > Some(time_s));
        self.next_move = goes_on.then_some(at + mobility.step);
    }

    /// Handles all outputs of a channel's medium. Observers see each before the node does.
    fn drain_medium(&mut self, channel: usize) {
        while let Some(output) = self.media[channel].poll_output() {
            match output {
                Output::Grant { radio, .. } => {
                    let begun = self.begin();
                    self.handle_grant(channel, radio);
                    self.end(Part::Written(self.on_air[channel][radio.0]), begun);
                }
                Output::Deliver { to, from, frame, power, .. } => {
                    let what = What::Heard { channel, from: from.0, frame: &frame, power };
                    self.observers.tell(self.now, to.0, what);
                    let begun = self.begin();
                    let port = self.port_on(to.0, channel);
                    let heard = Heard { port, frame };
                    match &mut self.inboxes {
                        Some(inboxes) => inboxes.push(self.now, to.0, heard),
                        None => self.deliver(to.0, heard),
                    }
                    self.end(Part::Heard(self.on_air[channel][from.0]), begun);
                }
                Output::Report { radio, result, attempts, airtime_ns, heard_by, .. } => {
                    let what = What::Reported { channel, result, attempts, airtime_ns };
                    self.observers.tell(self.now, radio.0, what);
                    let port = self.port_on(radio.0, channel);
                    self.handle_report(radio.0, port, result, airtime_ns, heard_by);
                }
            }
        }
    }

    /// Handles a grant: the node fills its frame, and the medium transmits it.
    fn handle_grant(&mut self, channel: usize, radio: RadioId) {
        // The frame is made now, from everything heard so far, and not when it was offered. The
        // node may have nothing left to send.
        let node = radio.0;
        let now = self.now;
        let port = self.port_on(node, channel);
        let host = &mut self.hosts[node];
        host.requested[port] = false;
        let storage = &mut host.storage;
        let stack = host.stack.as_mut();
        let filled = stack.and_then(|s| s.at(now, storage).on(port).fill(&mut self.out));
        match filled {
            None => drop(self.media[channel].decline(now.as_nanos(), radio)),
            Some(sent) => {
                let access = match sent.to {
                    Some(to) => Access::Unicast(RadioId(usize::from(to.0).wrapping_sub(1))),
                    None => Access::Broadcast,
                };

                self.on_air[channel][node] = sent.service;
                let what = What::Sent { channel, to: sent.to, frame: &self.out };
                self.observers.tell(now, node, what);
                let frame: Arc<[u8]> = Arc::from(self.out.as_slice());

                // The medium refuses a unicast frame to a node that does not exist, and counts the
                // grant as declined.
                let _ = self.media[channel].supply(now.as_nanos(), radio, access, frame);
            }
        }

        self.handle_due(node);
    }

    /// Returns the port of a node on a channel that it is on.
    fn port_on(&self, node: usize, channel: usize) -> Port {
        self.ports[node][channel].unwrap_or_default()
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

    /// Delivers a frame to a node, subject to the configured disturbance.
    fn deliver(&mut self, node: usize, frame: Heard) {
        // Reordering: keep the frame back until the next one has been delivered.
        let Disturbance { reorder, duplicate } = self.config.disturbance;
        if rng::unit(&mut self.disturbance) < reorder && self.delayed[node].is_none() {
            self.delayed[node] = Some(frame);
            return;
        }

        self.handle_datagram(node, &frame);

        if rng::unit(&mut self.disturbance) < duplicate {
            self.handle_datagram(node, &frame);
        }
        if let Some(delayed) = self.delayed[node].take() {
            self.handle_datagram(node, &delayed);
        }
    }

    /// Passes a datagram to a node's stack, if the node is switched on.
    pub(super) fn handle_datagram(&mut self, node: usize, heard: &Heard) {
        let host = &mut self.hosts[node];
        if let Some(stack) = &mut host.stack {
            let at = stack.at(self.now, &mut host.storage);
            at.on(heard.port).handle_datagram(&heard.frame);
        }
        self.handle_due(node);
    }

    /// Passes the MAC's report on a transmission to the node.
    fn handle_report(
        &mut self,
        node: usize,
        port: Port,
        result: ncmesh_medium::TxResult,
        airtime_ns: u64,
        heard_by: Option<Vec<RadioId>>,
    ) {
        // Medium and engine know nothing of each other, so their types are translated here.
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
            stack.at(self.now, &mut host.storage).on(port).handle_tx_report(report);
        }
        self.handle_due(node);
    }

    /// Handles what a call to a node has caused: its events, its next transmission, its timer.
    pub(super) fn handle_due(&mut self, node: usize) {
        // Events: packets for the application, and observations of transfers.
        let now = self.now;
        let host = &mut self.hosts[node];
        let packets = &mut self.packets;
        let stream_packets = &mut self.stream_packets;
        let ip_packets = &mut self.ip_packets;
        let before = ip_packets.len();
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
            self.observations.push(Observed { at: now, node, observation });
        });
        for arrival in &self.ip_packets[before..] {
            self.observers.tell(now, node, What::Arrived(&arrival.packet));
        }

        // Transmission: one request to the medium is enough, however often the offer changes. Only
        // a medium that grants by weight must know of each change.
        let Some(stack) = &host.stack else { return };
        for (medium, port) in self.media.iter_mut().zip(&self.ports[node]) {
            let Some(port) = *port else { continue };
            let needs_offer = self.is_weighted || !host.requested[port];
            if let Some(offer) = needs_offer.then(|| stack.offer_on(port, now)).flatten() {
                let _ = medium.set_weight(RadioId(node), offer.weight);
                host.requested[port] = true;
                let _ = medium.request(now.as_nanos(), RadioId(node));
            }
        }

        // Timer: replace the old one if the node's next timeout has changed.
        let timer = stack.poll_timeout();
        if timer != host.timer {
            if let Some(old) = core::mem::replace(&mut host.timer, timer) {
                self.timers.remove(&(old, node));
            }
            self.timers.extend(timer.map(|at| (at, node)));
        }
    }
}

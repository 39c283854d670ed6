//! The frame exchange of one data frame: RTS and CTS if used, data, ACK.
//!
//! ```text
//! sender    [RTS]        [DATA]
//! receiver         [CTS]         [ACK]      SIFS between two frames
//! ```
//! The sender waits for a response until a timeout (IEEE 802.11-2016, 10.3.2.9). If the response is
//! arriving at that time, its end decides. Other stations set their NAV from the Duration field of
//! each frame, which covers the rest of the exchange.

use std::cmp::Reverse;
use std::sync::Arc;

use super::station::{Outgoing, State};
use super::{Dcf, Event, PendingResponse};
use crate::air::{Ended, Payload, Response, Transmission};
use crate::channel::Arrival;
use crate::mac::interface::{Context, includes};
use crate::types::{Access, Output, RadioId, TxResult};

impl Dcf {
    /// Starts an attempt to send the frame of `radio`: transmits the frame, or an RTS first.
    pub(super) fn start_attempt(&mut self, context: &mut Context<'_>, radio: usize) {
        let Some(outgoing) = &mut self.stations[radio].outgoing else {
            return;
        };

        // The number of the attempt ties responses and timeouts to it. Those of an earlier attempt
        // are then recognised and ignored.
        self.attempts += 1;
        outgoing.attempts += 1;
        outgoing.attempt = self.attempts;

        // RTS only for long unicast frames: for short ones it costs more than a collision. A
        // broadcast frame has no receiver that could answer.
        let bytes = outgoing.frame.len() + self.mac_overhead_bytes;
        let uses_rts = self.rts_threshold_bytes.is_some_and(|least| bytes >= least);
        match outgoing.access {
            Access::Unicast(to) if uses_rts => self.send_rts(context, radio, to.0, bytes),
            Access::Broadcast | Access::Unicast(_) => self.send_data(context, radio),
        }
    }

    /// Transmits an RTS for a frame of `bytes`. It reserves the medium for the whole exchange.
    fn send_rts(&mut self, context: &mut Context<'_>, radio: usize, to: usize, bytes: usize) {
        // CTS, data and ACK, with SIFS before each (IEEE 802.11-2016, 9.3.1.2).
        let timing = self.timing;
        let rate_bps = self.rate_bps(radio, Access::Unicast(RadioId(to)));
        let data_ns = self.phy.airtime_ns(bytes, rate_bps);
        let nav_ns = 3 * timing.sifs_ns + 2 * self.response_ns(radio) + data_ns;

        let station = &mut self.stations[radio];
        station.state = State::Transmitting;
        let Some(outgoing) = &mut station.outgoing else {
            return;
        };

        // The report counts all airtime that the frame has cost, RTS included.
        outgoing.airtime_ns += timing.rts_ns;
        context.air.statistics.radios[radio].rts_sent += 1;
        let payload = Payload::Rts { to, attempt: outgoing.attempt };
        let airtime_ns = timing.rts_ns;
        self.transmit(context, Transmission { sender: radio, payload, airtime_ns, nav_ns });
    }

    /// Transmits the frame of `radio`. A unicast frame reserves the medium for its ACK.
    pub(super) fn send_data(&mut self, context: &mut Context<'_>, radio: usize) {
        let Some(access) = self.stations[radio].outgoing.as_ref().map(|frame| frame.access) else {
            return;
        };
        let rate_bps = self.rate_bps(radio, access);
        let response_ns = self.response_ns(radio);
        let station = &mut self.stations[radio];
        let Some(outgoing) = &mut station.outgoing else {
            return;
        };
        let bytes = outgoing.frame.len() + self.mac_overhead_bytes;
        let airtime_ns = self.phy.airtime_ns(bytes, rate_bps);
        outgoing.airtime_ns += airtime_ns;
        station.state = State::Transmitting;
        context.air.statistics.radios[radio].frames_sent += 1;

        // The Duration field: nothing follows a broadcast frame.
        let nav_ns = match access {
            Access::Broadcast => 0,
            Access::Unicast(_) => self.timing.sifs_ns + response_ns,
        };

        let frame = Arc::clone(&outgoing.frame);
        let attempt = outgoing.attempt;
        let payload = Payload::Data { access, frame, attempt };
        self.transmit(context, Transmission { sender: radio, payload, airtime_ns, nav_ns });
    }

    /// Transmits a CTS or ACK, if its radio is on and idle. A station whose NAV is set does not
    /// send a CTS (IEEE 802.11-2016, 10.3.2.7).
    pub(super) fn send_response(&mut self, context: &mut Context<'_>, response: PendingResponse) {
        let PendingResponse { kind, from, to, attempt, nav_ns } = response;
        // The ACK is sent whatever the NAV says: its time was reserved by the frame itself.
        let reserved = kind == Response::Cts && self.contention.is_nav_set(from, context.now_ns);
        if reserved || !context.air.is_up(from) || context.air.is_transmitting(from) {
            return;
        }

        let counters = &mut context.air.statistics.radios[from];
        match kind {
            Response::Cts => counters.cts_sent += 1,
            Response::Ack => counters.acks_sent += 1,
        }
        let payload = Payload::Response { kind, to, attempt };
        let airtime_ns = self.response_ns(to);
        self.transmit(context, Transmission { sender: from, payload, airtime_ns, nav_ns });
    }

    /// Handles the end of a transmission, which the radios in `receptions` have decoded.
    pub(super) fn handle_transmission_end(
        &mut self,
        context: &mut Context<'_>,
        ended: Ended,
        receptions: &mut Vec<Arrival>,
    ) {
        let Ended { transmission, aborted } = ended;
        let sender = transmission.sender;
        let now_ns = context.now_ns;
        match transmission.payload {
            // A response that was cut short ends the wait too: a station that receives its start
            // ignores the timeout.
            Payload::Response { kind, to, attempt } => {
                let awaited = State::AwaitingResponse { response: kind, attempt };
                if self.stations[to].state == awaited {
                    self.end_wait(context, to, includes(receptions, to));
                }
            }

            // The sender was switched off and has forgotten the frame.
            _ if aborted => {}

            Payload::Rts { to, attempt } => {
                if includes(receptions, to) {
                    // The CTS reserves what remains of the exchange after it.
                    let nav_ns =
                        transmission.nav_ns - self.timing.sifs_ns - self.response_ns(sender);
                    let kind = Response::Cts;
                    let cts = PendingResponse { kind, from: to, to: sender, attempt, nav_ns };
                    self.schedule_response(now_ns, cts);
                }
                self.await_response(now_ns, Response::Cts, sender, attempt);
            }

            // Broadcast frames have no ACK and are not retransmitted (10.3.6).
            Payload::Data { access: Access::Broadcast, frame, .. } => {
                context.deliver(sender, &frame, receptions);
                self.broadcast_by_wire(context, sender, &frame);
                self.finish(context, sender, TxResult::Sent);
            }

            Payload::Data { access: Access::Unicast(to), frame, attempt } => {
                // The destination acknowledges every reception, and filters duplicates, which
                // follow a lost ACK.
                let mut duplicate = false;
                if includes(receptions, to.0) {
                    let kind = Response::Ack;
                    let ack = PendingResponse { kind, from: to.0, to: sender, attempt, nav_ns: 0 };
                    self.schedule_response(now_ns, ack);
                    if let Some(outgoing) = self.stations[sender].outgoing.as_mut() {
                        duplicate = std::mem::replace(&mut outgoing.received, true);
                    }
                    let counters = &mut context.air.statistics.radios[to.0];
                    counters.duplicates += u64::from(duplicate);
                }
                self.await_response(now_ns, Response::Ack, sender, attempt);

                // Other radios decode the frame too, but only those in monitor mode pass it to
                // their hosts.
                let keeps_others = self.overhear_unicast;
                receptions.retain(|at| if at.radio() == to.0 { !duplicate } else { keeps_others });
                context.deliver(sender, &frame, receptions);
            }
        }
    }

    /// Schedules a response, SIFS from now.
    fn schedule_response(&mut self, now_ns: u64, response: PendingResponse) {
        let due_ns = now_ns + self.timing.sifs_ns;
        self.events.push(Reverse((due_ns, Event::ResponseDue(response))));
    }

    /// Makes `sender` wait for a response, until a timeout.
    fn await_response(&mut self, now_ns: u64, response: Response, sender: usize, attempt: u64) {
        self.stations[sender].state = State::AwaitingResponse { response, attempt };
        let timeout = Event::ResponseTimeout { radio: sender, attempt };
        self.events.push(Reverse((now_ns + self.phy.response_timeout_ns(), timeout)));
    }

    /// Ends the wait of `radio` for a response: continues the exchange, retries, or gives up.
    pub(super) fn end_wait(&mut self, context: &mut Context<'_>, radio: usize, answered: bool) {
        let station = &mut self.stations[radio];
        let awaits_cts =
            matches!(station.state, State::AwaitingResponse { response: Response::Cts, .. });

        // A CTS continues the exchange, an ACK ends it. Without either the frame is sent again
        // after a longer backoff, or given up.
        if answered && awaits_cts {
            station.state = State::ClearToSend;
            let due_ns = context.now_ns + self.timing.sifs_ns;
            self.events.push(Reverse((due_ns, Event::DataDue { radio })));
        } else if answered {
            context.air.statistics.radios[radio].frames_acked += 1;
            self.finish(context, radio, TxResult::Acked);
        } else if self.note_failure(radio, awaits_cts) {
            context.air.statistics.radios[radio].frames_failed += 1;
            self.finish(context, radio, TxResult::Failed);
        } else {
            self.stations[radio].double_window(self.phy.cw_max);
            self.back_off(context.now_ns, radio);
        }
    }

    /// Counts an attempt of `radio` without an answer. Returns whether a retry limit is reached.
    fn note_failure(&mut self, radio: usize, awaits_cts: bool) -> bool {
        let Some(outgoing) = &mut self.stations[radio].outgoing else {
            return true;
        };
        let Some(long_retry_limit) = self.long_retry_limit else {
            return outgoing.attempts >= self.retry_limit;
        };

        // The short retry counter counts RTSs and frames that need none, the long one data frames
        // after RTS and CTS (10.3.4.4).
        let bytes = outgoing.frame.len() + self.mac_overhead_bytes;
        let is_long = self.rts_threshold_bytes.is_some_and(|least| bytes >= least);
        outgoing.long_failures += u32::from(is_long && !awaits_cts);
        let short_failures = outgoing.attempts - outgoing.long_failures;
        short_failures >= self.retry_limit || outgoing.long_failures >= long_retry_limit
    }

    /// Reports on the frame, resets the contention window and starts the post-backoff.
    pub(super) fn finish(&mut self, context: &mut Context<'_>, radio: usize, result: TxResult) {
        // The window is reset after success and after the retry limit (10.3.3). The post-backoff
        // lets other stations send between two frames of this one (10.3.4.3).
        let station = &mut self.stations[radio];
        station.contention_window = self.phy.cw_min;
        if let Some(Outgoing { attempts, airtime_ns, .. }) = station.outgoing.take() {
            context.outputs.push_back(Output::Report {
                radio: RadioId(radio),
                result,
                attempts,
                airtime_ns,
                heard_by: None,
                at_ns: context.now_ns,
            });
        }
        self.back_off(context.now_ns, radio);
    }
}

//! The exchange of frames that sends one of ours: RTS and CTS where asked for, data, ACK.

use std::cmp::Reverse;
use std::sync::Arc;

use super::{Dcf, Event, Outgoing, Phase};
use crate::air::{Answer, Landed, Payload, Transmission};
use crate::channel::Arrival;
use crate::mac::{Turn, is_heard_by};
use crate::{Access, Output, RadioId, TxResult};

impl Dcf {
    /// Sends the frame of `radio`, or asks for leave to.
    pub(super) fn attempt(&mut self, turn: &mut Turn<'_>, radio: usize) {
        let Some(outgoing) = &mut self.stations[radio].outgoing else {
            return;
        };
        self.attempts += 1;
        outgoing.attempts += 1;
        outgoing.attempt = self.attempts;
        let bytes = outgoing.frame.len() + self.mac_overhead_bytes;
        let announced = self.rts_threshold_bytes.is_some_and(|least| bytes >= least);
        match outgoing.access {
            Access::Unicast(to) if announced => self.send_rts(turn, radio, to.0, bytes),
            Access::Broadcast | Access::Unicast(_) => self.send_data(turn, radio),
        }
    }

    fn send_rts(&mut self, turn: &mut Turn<'_>, radio: usize, to: usize, bytes: usize) {
        let timing = self.timing;
        let rate_bps = self.rate_bps(radio, Access::Unicast(RadioId(to)));
        let data_ns = self.phy.airtime_ns(bytes, rate_bps);
        let claim_ns = 3 * timing.sifs_ns + 2 * timing.answer_ns + data_ns;
        let station = &mut self.stations[radio];
        station.phase = Phase::Sending;
        let Some(outgoing) = &mut station.outgoing else {
            return;
        };
        outgoing.airtime_ns += timing.rts_ns;
        turn.air.statistics.radios[radio].rts_sent += 1;
        let payload = Payload::Rts { to, attempt: outgoing.attempt };
        self.launch(turn, self.control(radio, payload, timing.rts_ns, claim_ns));
    }

    pub(super) fn send_data(&mut self, turn: &mut Turn<'_>, radio: usize) {
        let Some(access) = self.stations[radio].outgoing.as_ref().map(|frame| frame.access) else {
            return;
        };
        let rate_bps = self.rate_bps(radio, access);
        let station = &mut self.stations[radio];
        let Some(outgoing) = &mut station.outgoing else {
            return;
        };
        let bytes = outgoing.frame.len() + self.mac_overhead_bytes;
        let airtime_ns = self.phy.airtime_ns(bytes, rate_bps);
        outgoing.airtime_ns += airtime_ns;
        station.phase = Phase::Sending;
        turn.air.statistics.radios[radio].frames_sent += 1;
        let attempt = outgoing.attempt;
        let claim_ns = match access {
            Access::Broadcast => 0,
            Access::Unicast(_) => self.timing.sifs_ns + self.timing.answer_ns,
        };
        let frame = Arc::clone(&outgoing.frame);
        let payload = Payload::Data { access, frame, attempt };
        let data = Transmission { sender: radio, payload, airtime_ns, claim_ns };
        self.launch(turn, data);
    }

    fn control(
        &self,
        sender: usize,
        payload: Payload,
        airtime_ns: u64,
        claim_ns: u64,
    ) -> Transmission {
        Transmission { sender, payload, airtime_ns, claim_ns }
    }

    /// `from` answers `to`, unless it cannot: a CTS also waits for nobody's claim.
    pub(super) fn answer(
        &mut self,
        turn: &mut Turn<'_>,
        kind: Answer,
        (from, to): (usize, usize),
        attempt: u64,
        claim_ns: u64,
    ) {
        let claimed = kind == Answer::Cts && self.contention.is_claimed(from, turn.now_ns);
        if claimed || !turn.air.is_up(from) || turn.air.is_sending(from) {
            return;
        }
        let counters = &mut turn.air.statistics.radios[from];
        match kind {
            Answer::Cts => counters.cts_sent += 1,
            Answer::Ack => counters.acks_sent += 1,
        }
        let payload = Payload::Answer { kind, to, attempt };
        self.launch(turn, self.control(from, payload, self.timing.answer_ns, claim_ns));
    }

    /// A transmission has ended; `heard` read it.
    pub(super) fn handle_landing(
        &mut self,
        turn: &mut Turn<'_>,
        landed: Landed,
        heard: &mut Vec<Arrival>,
    ) {
        let Landed { transmission, aborted } = landed;
        let sender = transmission.sender;
        match transmission.payload {
            // Cut short too it ends the wait: whoever heard it begin had put off giving up.
            Payload::Answer { kind, to, attempt } => {
                if self.stations[to].phase == (Phase::Awaiting { answer: kind, attempt }) {
                    self.conclude(turn, to, is_heard_by(to, heard));
                }
            }
            _ if aborted => {}
            Payload::Rts { to, attempt } => {
                if is_heard_by(to, heard) {
                    let claim_ns =
                        transmission.claim_ns - self.timing.sifs_ns - self.timing.answer_ns;
                    self.owe(turn.now_ns, Answer::Cts, (to, sender), attempt, claim_ns);
                }
                self.wait_for(turn.now_ns, Answer::Cts, sender, attempt);
            }
            Payload::Data { access: Access::Broadcast, frame, .. } => {
                turn.deliver(sender, &frame, heard);
                self.broadcast_by_wire(turn, sender, &frame);
                self.finish(turn, sender, TxResult::Sent);
            }
            Payload::Data { access: Access::Unicast(to), frame, attempt } => {
                let mut duplicate = false;
                if is_heard_by(to.0, heard) {
                    self.owe(turn.now_ns, Answer::Ack, (to.0, sender), attempt, 0);
                    duplicate = self.arrives_again(turn, sender, to.0);
                }
                self.wait_for(turn.now_ns, Answer::Ack, sender, attempt);
                heard.retain(
                    |at| {
                        if at.radio() == to.0 { !duplicate } else { self.overhear_unicast }
                    },
                );
                turn.deliver(sender, &frame, heard);
            }
        }
    }

    fn owe(
        &mut self,
        now_ns: u64,
        answer: Answer,
        (from, to): (usize, usize),
        attempt: u64,
        claim_ns: u64,
    ) {
        let due = Event::AnswerDue { answer, from, to, attempt, claim_ns };
        self.events.push(Reverse((now_ns + self.timing.sifs_ns, due)));
    }

    fn wait_for(&mut self, now_ns: u64, answer: Answer, sender: usize, attempt: u64) {
        self.stations[sender].phase = Phase::Awaiting { answer, attempt };
        let missing = Event::AnswerMissing { radio: sender, attempt };
        self.events.push(Reverse((now_ns + self.phy.answer_timeout_ns(), missing)));
    }

    pub(super) fn awaits(&self, radio: usize, attempt: u64) -> bool {
        matches!(self.stations[radio].phase, Phase::Awaiting { attempt: its, .. } if its == attempt)
    }

    /// `sender`'s unicast frame has arrived at `to`. Returns whether `to` had it before.
    fn arrives_again(&mut self, turn: &mut Turn<'_>, sender: usize, to: usize) -> bool {
        let outgoing = self.stations[sender].outgoing.as_mut();
        let again = outgoing.is_some_and(|frame| std::mem::replace(&mut frame.arrived, true));
        turn.air.statistics.radios[to].duplicates += u64::from(again);
        again
    }

    /// What `radio` awaited has come, or not.
    pub(super) fn conclude(&mut self, turn: &mut Turn<'_>, radio: usize, answered: bool) {
        let station = &mut self.stations[radio];
        let attempts = station.outgoing.as_ref().map_or(0, |frame| frame.attempts);
        let counters = &mut turn.air.statistics.radios[radio];
        if answered && matches!(station.phase, Phase::Awaiting { answer: Answer::Cts, .. }) {
            station.phase = Phase::Cleared;
            let due_ns = turn.now_ns + self.timing.sifs_ns;
            self.events.push(Reverse((due_ns, Event::DataDue { radio })));
        } else if answered {
            counters.frames_acked += 1;
            self.finish(turn, radio, TxResult::Acked);
        } else if attempts >= self.retry_limit {
            counters.frames_failed += 1;
            self.finish(turn, radio, TxResult::Failed);
        } else {
            station.widen(self.phy.cw_max);
            self.back_off(turn.now_ns, radio);
        }
    }

    /// Reports on the frame and starts the post-backoff.
    pub(super) fn finish(&mut self, turn: &mut Turn<'_>, radio: usize, result: TxResult) {
        let station = &mut self.stations[radio];
        station.window = self.phy.cw_min;
        if let Some(Outgoing { attempts, airtime_ns, .. }) = station.outgoing.take() {
            let (radio, at_ns) = (RadioId(radio), turn.now_ns);
            turn.outputs.push_back(Output::Report {
                radio,
                result,
                attempts,
                airtime_ns,
                heard_by: None,
                at_ns,
            });
        }
        self.back_off(turn.now_ns, radio);
    }
}

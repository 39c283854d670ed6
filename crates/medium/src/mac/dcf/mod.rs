//! CSMA/CA, the distributed coordination function (IEEE 802.11-2016, 10.3).
//!
//! Modelled: carrier sense with DIFS, backoff with freeze and resume, post-backoff, ACK after SIFS,
//! doubling of the window, retry limit. Not modelled yet: NAV and RTS/CTS, EIFS, capture, rate changes.
//! Two readings of the standard:
//! - A request on a channel idle for less than DIFS draws a backoff, as one on a busy channel does. Relays
//!   that all answer the same frame would otherwise collide each time.
//! - A declined grant is followed by a backoff, as a frame is, so that a host which asks and declines for
//!   ever cannot hold time still.

mod contention;
mod station;
mod timers;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::air::{Payload, TxId};
use crate::config::MediumConfig;
use crate::mac::Turn;
use crate::{Access, MediumError, Output, Phy, RadioId, TxResult};
use contention::Contention;
use station::{Outgoing, Phase, Station};

/// What happens at a set time. At one instant frames end before others begin: the order of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A transmission ends.
    Landing(TxId),
    /// `from` owes `to` an acknowledgment.
    AckDue { from: usize, to: usize, attempt: u64 },
    /// `radio` has waited long enough for an acknowledgment to begin.
    AckMissing { radio: usize, attempt: u64 },
}

/// The stations of one medium.
pub(crate) struct Dcf {
    phy: Phy,
    bit_rate_bps: u64,
    mac_overhead_bytes: usize,
    ack_airtime_ns: u64,
    retry_limit: u32,
    overhear_unicast: bool,
    stations: Vec<Station>,
    contention: Contention,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    /// Grants not answered yet.
    grants: usize,
    /// Names each transmission of a data frame.
    attempts: u64,
    /// Room for the hearers of one frame, kept between frames.
    heard: Vec<usize>,
}

impl Dcf {
    /// Stations for a validated `config`.
    pub(crate) fn new(config: &MediumConfig) -> Self {
        let phy = config.phy;
        let station = |radio| Station::new(config.seed, radio, phy.cw_min);
        Self {
            phy,
            bit_rate_bps: config.bit_rate_bps,
            mac_overhead_bytes: config.mac_overhead_bytes,
            ack_airtime_ns: config.ack_airtime_ns,
            retry_limit: config.retry_limit,
            overhear_unicast: config.overhear_unicast,
            stations: (0..config.radios).map(station).collect(),
            contention: Contention::new(config.radios, phy.slot_ns, phy.difs_ns),
            events: BinaryHeap::new(),
            grants: 0,
            attempts: 0,
            heard: Vec::new(),
        }
    }

    /// Whether grants wait for an answer, so that time must not advance.
    pub(crate) fn is_waiting(&self) -> bool {
        self.grants > 0
    }

    /// When something next happens.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let event = self.events.peek().map(|Reverse((at_ns, _))| *at_ns);
        event.into_iter().chain(self.contention.next_ns()).min()
    }

    /// `radio` wants to send one frame.
    pub(crate) fn request(&mut self, turn: &mut Turn<'_>, radio: usize) {
        let station = &mut self.stations[radio];
        if station.wants || !turn.air.is_up(radio) {
            return;
        }
        station.wants = true;
        if station.phase == Phase::Idle {
            let clear = self.contention.is_clear(radio, turn.now_ns);
            let slots = if clear { 0 } else { station.draw_backoff() };
            station.phase = Phase::Backoff;
            self.contention.start(radio, slots, turn.now_ns);
        }
    }

    /// `radio` wants so no more. A grant already given stands.
    pub(crate) fn withdraw(&mut self, radio: usize) {
        self.stations[radio].wants = false;
    }

    /// Sends `frame` on the grant of `radio`.
    pub(crate) fn supply(
        &mut self,
        turn: &mut Turn<'_>,
        radio: usize,
        access: Access,
        frame: Arc<[u8]>,
    ) -> Result<(), MediumError> {
        self.take_grant(radio)?;
        self.stations[radio].outgoing = Some(Outgoing::new(access, frame));
        self.transmit(turn, radio);
        Ok(())
    }

    /// Sends nothing on the grant of `radio`.
    pub(crate) fn decline(&mut self, turn: &mut Turn<'_>, radio: usize) -> Result<(), MediumError> {
        self.take_grant(radio)?;
        turn.air.statistics.radios[radio].grants_declined += 1;
        self.back_off(turn.now_ns, radio);
        Ok(())
    }

    fn take_grant(&mut self, radio: usize) -> Result<(), MediumError> {
        let station = &mut self.stations[radio];
        if station.phase != Phase::Granted {
            return Err(MediumError::NoGrant { radio: RadioId(radio) });
        }
        station.phase = Phase::Idle;
        self.grants -= 1;
        Ok(())
    }

    /// Forgets what `radio` wanted, was granted or was sending, without a report.
    pub(crate) fn reset(&mut self, radio: usize) {
        let station = &mut self.stations[radio];
        self.grants -= usize::from(station.phase == Phase::Granted);
        station.reset(self.phy.cw_min);
        self.contention.stop(radio);
    }

    /// Does the next thing due at the turn's instant, if there is one.
    pub(crate) fn step(&mut self, turn: &mut Turn<'_>) {
        if let Some(&Reverse((at_ns, event))) = self.events.peek()
            && at_ns <= turn.now_ns
        {
            self.events.pop();
            self.handle_event(turn, event);
        } else if let Some(radio) = self.contention.take_due(turn.now_ns) {
            self.win(turn, radio);
        }
    }

    /// `radio`'s backoff has ended: a retry goes out, a waiting request is granted.
    fn win(&mut self, turn: &mut Turn<'_>, radio: usize) {
        let station = &mut self.stations[radio];
        if station.outgoing.is_some() {
            self.transmit(turn, radio);
        } else if std::mem::take(&mut station.wants) {
            station.phase = Phase::Granted;
            self.grants += 1;
            turn.outputs.push_back(Output::Grant { radio: RadioId(radio), at_ns: turn.now_ns });
        } else {
            station.phase = Phase::Idle;
        }
    }

    fn transmit(&mut self, turn: &mut Turn<'_>, radio: usize) {
        let station = &mut self.stations[radio];
        let Some(outgoing) = &mut station.outgoing else {
            return;
        };
        let bytes = outgoing.frame.len() + self.mac_overhead_bytes;
        let airtime_ns = self.phy.airtime_ns(bytes, self.bit_rate_bps);
        self.attempts += 1;
        outgoing.attempts += 1;
        outgoing.airtime_ns += airtime_ns;
        station.phase = Phase::Sending;
        turn.air.statistics.radios[radio].frames_sent += 1;
        let frame = Arc::clone(&outgoing.frame);
        let payload = Payload::Data { access: outgoing.access, frame, attempt: self.attempts };
        self.launch(turn, radio, payload, airtime_ns);
    }

    fn launch(&mut self, turn: &mut Turn<'_>, radio: usize, payload: Payload, airtime_ns: u64) {
        let (contention, now_ns) = (&mut self.contention, turn.now_ns);
        let turn_busy = |busy| contention.turn_busy(busy, now_ns);
        let id = turn.air.begin(now_ns, radio, payload, airtime_ns, turn_busy);
        self.events.push(Reverse((now_ns + airtime_ns, Event::Landing(id))));
    }

    fn handle_event(&mut self, turn: &mut Turn<'_>, event: Event) {
        match event {
            Event::Landing(id) => {
                let mut heard = std::mem::take(&mut self.heard);
                self.handle_landing(turn, id, &mut heard);
                heard.clear();
                self.heard = heard;
            }
            Event::AckDue { from, to, attempt } => {
                if turn.air.is_up(from) && !turn.air.is_sending(from) {
                    turn.air.statistics.radios[from].acks_sent += 1;
                    self.launch(turn, from, Payload::Ack { to, attempt }, self.ack_airtime_ns);
                }
            }
            Event::AckMissing { radio, attempt } => {
                // One that is arriving decides at its end.
                if self.is_awaited(radio, attempt) && !turn.air.is_receiving_ack(radio, attempt) {
                    self.conclude(turn, radio, false);
                }
            }
        }
    }

    fn is_awaited(&self, radio: usize, attempt: u64) -> bool {
        self.stations[radio].phase == (Phase::AwaitAck { attempt })
    }

    fn handle_landing(&mut self, turn: &mut Turn<'_>, id: TxId, heard: &mut Vec<usize>) {
        let (contention, now_ns) = (&mut self.contention, turn.now_ns);
        let turn_idle = |idle| contention.turn_idle(idle, now_ns);
        let Some(landed) = turn.air.land(now_ns, id, heard, turn_idle) else {
            return;
        };
        match landed.payload {
            Payload::Ack { to, attempt } => {
                if self.is_awaited(to, attempt) {
                    self.conclude(turn, to, heard.contains(&to));
                }
            }
            Payload::Data { .. } if landed.aborted => {}
            Payload::Data { access: Access::Broadcast, frame, .. } => {
                turn.deliver(landed.sender, &frame, heard);
                self.finish(turn, landed.sender, TxResult::Sent);
            }
            Payload::Data { access: Access::Unicast(to), frame, attempt } => {
                let arrived = heard.contains(&to.0);
                let duplicate = arrived && self.owe_ack(turn, landed.sender, to.0, attempt);
                self.await_ack(turn.now_ns, landed.sender, attempt);
                heard.retain(
                    |&hearer| {
                        if hearer == to.0 { !duplicate } else { self.overhear_unicast }
                    },
                );
                turn.deliver(landed.sender, &frame, heard);
            }
        }
    }

    fn await_ack(&mut self, now_ns: u64, sender: usize, attempt: u64) {
        self.stations[sender].phase = Phase::AwaitAck { attempt };
        let missing = Event::AckMissing { radio: sender, attempt };
        self.events.push(Reverse((now_ns + self.phy.ack_timeout_ns(), missing)));
    }

    /// `sender`'s unicast frame has arrived at `to`. Returns whether `to` had it before.
    fn owe_ack(&mut self, turn: &mut Turn<'_>, sender: usize, to: usize, attempt: u64) -> bool {
        let due = Event::AckDue { from: to, to: sender, attempt };
        self.events.push(Reverse((turn.now_ns + self.phy.sifs_ns, due)));
        let outgoing = self.stations[sender].outgoing.as_mut();
        let duplicate = outgoing.is_some_and(|frame| std::mem::replace(&mut frame.arrived, true));
        turn.air.statistics.radios[to].duplicates += u64::from(duplicate);
        duplicate
    }

    /// An attempt of `radio` is over, acknowledged or not.
    fn conclude(&mut self, turn: &mut Turn<'_>, radio: usize, acked: bool) {
        let attempts = self.stations[radio].outgoing.as_ref().map_or(0, |frame| frame.attempts);
        let counters = &mut turn.air.statistics.radios[radio];
        if acked {
            counters.frames_acked += 1;
            self.finish(turn, radio, TxResult::Acked);
        } else if attempts >= self.retry_limit {
            counters.frames_failed += 1;
            self.finish(turn, radio, TxResult::Failed);
        } else {
            self.stations[radio].widen(self.phy.cw_max);
            self.back_off(turn.now_ns, radio);
        }
    }

    /// Reports on the frame and starts the post-backoff.
    fn finish(&mut self, turn: &mut Turn<'_>, radio: usize, result: TxResult) {
        let station = &mut self.stations[radio];
        station.window = self.phy.cw_min;
        if let Some(Outgoing { attempts, airtime_ns, .. }) = station.outgoing.take() {
            let (radio, at_ns) = (RadioId(radio), turn.now_ns);
            turn.outputs.push_back(Output::Report { radio, result, attempts, airtime_ns, at_ns });
        }
        self.back_off(turn.now_ns, radio);
    }

    fn back_off(&mut self, now_ns: u64, radio: usize) {
        let station = &mut self.stations[radio];
        station.phase = Phase::Backoff;
        let slots = station.draw_backoff();
        self.contention.start(radio, slots, now_ns);
    }
}

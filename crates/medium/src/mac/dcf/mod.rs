//! CSMA/CA, the distributed coordination function (IEEE 802.11-2016, 10.3).
//!
//! Modelled: carrier sense with DIFS and EIFS, backoff with freeze and resume, post-backoff, ACK after SIFS,
//! doubling of the window, retry limit, RTS and CTS, NAV. Not modelled: fragments, rate changes, separate
//! limits for short and long frames, resetting a NAV that an RTS set in vain (10.3.2.4 lets a station do so).
//! Two readings of the standard:
//! - A request on a channel idle for less than DIFS draws a backoff, as one on a busy channel does. Relays
//!   that all answer the same frame would otherwise collide each time.
//! - A declined grant is followed by a backoff, as a frame is, so that a host which asks and declines for
//!   ever cannot hold time still.

mod contention;
mod exchange;
mod station;
mod timers;
mod wires;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use crate::air::{Answer, Listener, Transmission, TxId};
use crate::channel::Arrival;
use crate::config::{LinkKind, MediumConfig};
use crate::mac::{Mac, Turn};
use crate::phy::RTS_BYTES;
use crate::{Access, MediumError, Output, Phy, RadioId};
use contention::Contention;
use station::{Outgoing, Phase, Station};

/// What happens at a set time. At one instant frames end before others begin: the order of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A transmission ends.
    Landing(TxId),
    /// `from` owes `to` an answer, which claims the medium for `claim_ns` after it.
    AnswerDue { answer: Answer, from: usize, to: usize, attempt: u64, claim_ns: u64 },
    /// `radio` has got its CTS and SIFS has passed.
    DataDue { radio: usize },
    /// What `radio` sent by cable is through.
    WireEnd { radio: usize, attempt: u64 },
    /// `radio` has waited long enough for an answer to begin.
    AnswerMissing { radio: usize, attempt: u64 },
}

/// How long the MAC's own frames and gaps last, ns.
#[derive(Clone, Copy)]
struct Timing {
    sifs_ns: u64,
    rts_ns: u64,
    /// Of CTS and ACK alike.
    answer_ns: u64,
}

/// The stations of one medium.
pub(crate) struct Dcf {
    phy: Phy,
    bit_rate_bps: u64,
    /// Links that are not as the others.
    links: BTreeMap<(RadioId, RadioId), LinkKind>,
    mac_overhead_bytes: usize,
    timing: Timing,
    rts_threshold_bytes: Option<usize>,
    retry_limit: u32,
    overhear_unicast: bool,
    stations: Vec<Station>,
    contention: Contention,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    /// Grants not answered yet.
    grants: usize,
    /// Names each attempt to send a data frame.
    attempts: u64,
    /// Room for the hearers of one frame, kept between frames.
    heard: Vec<Arrival>,
}

impl Dcf {
    /// Stations for a validated `config`, which says whether there is RTS.
    pub(crate) fn new(config: &MediumConfig, rts_threshold_bytes: Option<usize>) -> Self {
        let (phy, rate_bps) = (config.phy, config.bit_rate_bps);
        let station = |radio| Station::new(config.seed, radio, phy.cw_min);
        Self {
            phy,
            bit_rate_bps: rate_bps,
            links: config.links.clone(),
            mac_overhead_bytes: config.mac_overhead_bytes,
            timing: Timing {
                sifs_ns: phy.sifs_ns,
                rts_ns: phy.control_airtime_ns(RTS_BYTES, rate_bps),
                answer_ns: phy.ack_airtime_ns(rate_bps),
            },
            rts_threshold_bytes,
            retry_limit: config.retry_limit,
            overhear_unicast: config.overhear_unicast,
            stations: (0..config.radios()).map(station).collect(),
            contention: Contention::new(config.radios(), phy),
            events: BinaryHeap::new(),
            grants: 0,
            attempts: 0,
            heard: Vec::new(),
        }
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

    /// `radio`'s backoff has ended: a retry goes out, a waiting request is granted.
    fn win(&mut self, turn: &mut Turn<'_>, radio: usize) {
        let station = &mut self.stations[radio];
        if station.outgoing.is_some() {
            self.attempt(turn, radio);
        } else if std::mem::take(&mut station.wants) {
            station.phase = Phase::Granted;
            self.grants += 1;
            turn.outputs.push_back(Output::Grant { radio: RadioId(radio), at_ns: turn.now_ns });
        } else {
            station.phase = Phase::Idle;
        }
    }

    fn launch(&mut self, turn: &mut Turn<'_>, transmission: Transmission) {
        let ends_ns = turn.now_ns + transmission.airtime_ns;
        let mut carrier = Carrier { contention: &mut self.contention, now_ns: turn.now_ns };
        let id = turn.air.begin(turn.now_ns, transmission, &mut carrier);
        self.events.push(Reverse((ends_ns, Event::Landing(id))));
    }

    fn handle_event(&mut self, turn: &mut Turn<'_>, event: Event) {
        match event {
            Event::Landing(id) => {
                let mut heard = std::mem::take(&mut self.heard);
                let mut carrier = Carrier { contention: &mut self.contention, now_ns: turn.now_ns };
                if let Some(landed) = turn.air.land(turn.now_ns, id, &mut heard, &mut carrier) {
                    self.handle_landing(turn, landed, &mut heard);
                }
                heard.clear();
                self.heard = heard;
            }
            Event::AnswerDue { answer, from, to, attempt, claim_ns } => {
                self.answer(turn, answer, (from, to), attempt, claim_ns);
            }
            Event::DataDue { radio } => {
                if self.stations[radio].phase == Phase::Cleared {
                    self.send_data(turn, radio);
                }
            }
            Event::WireEnd { radio, attempt } => self.end_wire(turn, radio, attempt),
            Event::AnswerMissing { radio, attempt } => {
                // One that is arriving decides at its end.
                if self.awaits(radio, attempt) && !turn.air.is_receiving_answer(radio, attempt) {
                    self.conclude(turn, radio, false);
                }
            }
        }
    }

    fn back_off(&mut self, now_ns: u64, radio: usize) {
        let station = &mut self.stations[radio];
        station.phase = Phase::Backoff;
        let slots = station.draw_backoff();
        self.contention.start(radio, slots, now_ns);
    }
}

impl Mac for Dcf {
    fn request(&mut self, turn: &mut Turn<'_>, radio: usize) {
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

    fn withdraw(&mut self, radio: usize) {
        self.stations[radio].wants = false;
    }

    fn supply(
        &mut self,
        turn: &mut Turn<'_>,
        radio: usize,
        access: Access,
        frame: Arc<[u8]>,
    ) -> Result<(), MediumError> {
        self.take_grant(radio)?;
        let wire = self.wire(radio, access);
        self.stations[radio].outgoing = Some(Outgoing::new(access, frame));
        match wire {
            Some(bit_rate_bps) => self.send_by_wire(turn.now_ns, radio, bit_rate_bps),
            None => self.attempt(turn, radio),
        }
        Ok(())
    }

    fn decline(&mut self, turn: &mut Turn<'_>, radio: usize) -> Result<(), MediumError> {
        self.take_grant(radio)?;
        turn.air.statistics.radios[radio].grants_declined += 1;
        self.back_off(turn.now_ns, radio);
        Ok(())
    }

    fn reset(&mut self, radio: usize) {
        let station = &mut self.stations[radio];
        self.grants -= usize::from(station.phase == Phase::Granted);
        station.reset(self.phy.cw_min);
        self.contention.stop(radio);
    }

    fn is_waiting(&self) -> bool {
        self.grants > 0
    }

    fn next_ns(&self) -> Option<u64> {
        let event = self.events.peek().map(|Reverse((at_ns, _))| *at_ns);
        event.into_iter().chain(self.contention.next_ns()).min()
    }

    fn step(&mut self, turn: &mut Turn<'_>) {
        if let Some(&Reverse((at_ns, event))) = self.events.peek()
            && at_ns <= turn.now_ns
        {
            self.events.pop();
            self.handle_event(turn, event);
        } else if let Some(radio) = self.contention.take_due(turn.now_ns) {
            self.win(turn, radio);
        }
    }
}

/// Carrier sense of all stations, as the air reports it.
struct Carrier<'a> {
    contention: &'a mut Contention,
    now_ns: u64,
}

impl Listener for Carrier<'_> {
    fn turn_busy(&mut self, radio: usize) {
        self.contention.turn_busy(radio, self.now_ns);
    }

    fn receive(&mut self, radio: usize, transmission: &Transmission, read: bool) {
        let mine = transmission.payload.addressee() == Some(radio);
        let nav_until_ns = if mine { 0 } else { self.now_ns + transmission.claim_ns };
        self.contention.receive(radio, self.now_ns, read.then_some(nav_until_ns));
    }

    fn turn_idle(&mut self, radio: usize) {
        self.contention.turn_idle(radio, self.now_ns);
    }
}

//! CSMA/CA, the distributed coordination function (IEEE 802.11-2016, 10.3).
//!
//! Modelled: carrier sense with DIFS and EIFS, backoff with freeze and resume, post-backoff, ACK
//! after SIFS, doubling of the contention window, retry limits for short and long frames, RTS and
//! CTS, NAV. Not modelled: fragments, rate adaptation, and the reset of a NAV that an RTS without a
//! CTS has set (optional by 10.3.2.4).
//!
//! Two readings of the standard:
//! - A request on a channel that has been idle for less than DIFS draws a backoff, as a request on
//!   a busy channel does. Otherwise relays that all respond to the same frame would collide each
//!   time.
//! - A declined grant is followed by a backoff, as a frame is. Otherwise a host that requests and
//!   declines forever would stop time.
//!
//! # How it works
//! [`station`] holds the states of a station, [`contention`] its carrier sense and backoff,
//! [`exchange`] the sequence of RTS, CTS, data and ACK, and [`wires`] cables and links with rates
//! of their own. This module connects them: a queue of timed events, the end of backoff, and the
//! indications from the air.

mod contention;
mod exchange;
mod station;
mod timers;
mod wires;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use crate::air::{PhyIndications, Response, Transmission, TxId};
use crate::channel::Arrival;
use crate::config::{LinkKind, MediumConfig};
use crate::error::MediumError;
use crate::mac::interface::{Context, Mac};
use crate::phy::{Phy, RTS_BYTES};
use crate::types::{Access, Output, RadioId};
use contention::Contention;
use station::{Outgoing, State, Station};

/// An event at a set time. Events of one instant are handled in the order of the variants: frames
/// end before others begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A transmission ends.
    TransmissionEnd(TxId),
    /// A radio sends a CTS or ACK.
    ResponseDue(PendingResponse),
    /// SIFS after the CTS, `radio` sends its data frame.
    DataDue { radio: usize },
    /// A frame of `radio` reaches the end of its cable.
    WireEnd { radio: usize, attempt: u64 },
    /// `radio` has waited for the start of a response for the timeout.
    ResponseTimeout { radio: usize, attempt: u64 },
}

/// A CTS or ACK that is sent SIFS after the frame it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PendingResponse {
    kind: Response,
    from: usize,
    to: usize,
    /// Number of the attempt that it answers.
    attempt: u64,
    /// Time after its end for which it reserves the medium, ns.
    nav_ns: u64,
}

/// Durations of the MAC's own frames and gaps, ns.
#[derive(Clone, Copy)]
struct Timing {
    sifs_ns: u64,
    rts_ns: u64,
}

/// The stations of one medium.
pub(crate) struct Dcf {
    phy: Phy,
    /// Links with a rate of their own, and cables.
    links: BTreeMap<(RadioId, RadioId), LinkKind>,
    mac_overhead_bytes: usize,
    timing: Timing,
    rts_threshold_bytes: Option<usize>,
    retry_limit: u32,
    long_retry_limit: Option<u32>,
    overhear_unicast: bool,
    stations: Vec<Station>,
    contention: Contention,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    /// Number of grants without an answer.
    open_grants: usize,
    /// Number of attempts of all stations so far. It identifies each attempt.
    attempts: u64,
    /// Scratch space for the receptions of one frame.
    receptions: Vec<Arrival>,
}

impl Dcf {
    /// Creates the stations of a validated `config`.
    pub(crate) fn new(
        config: &MediumConfig,
        rts_threshold_bytes: Option<usize>,
        long_retry_limit: Option<u32>,
    ) -> Self {
        let phy = config.phy;
        let rate_bps = config.bit_rate_bps;
        let station = |radio| Station::new(config.seed, radio, phy.cw_min, rate_bps);

        Self {
            phy,
            links: config.links.clone(),
            mac_overhead_bytes: config.mac_overhead_bytes,
            timing: Timing {
                sifs_ns: phy.sifs_ns,
                rts_ns: phy.control_airtime_ns(RTS_BYTES, rate_bps),
            },
            rts_threshold_bytes,
            retry_limit: config.retry_limit,
            long_retry_limit,
            overhear_unicast: config.overhear_unicast,
            stations: (0..config.radios()).map(station).collect(),
            contention: Contention::new(config.radios(), phy),
            events: BinaryHeap::new(),
            open_grants: 0,
            attempts: 0,
            receptions: Vec::new(),
        }
    }

    /// Takes the grant of `radio`, or returns an error if it has none.
    fn take_grant(&mut self, radio: usize) -> Result<(), MediumError> {
        let station = &mut self.stations[radio];
        if station.state != State::Granted {
            return Err(MediumError::NoGrant { radio: RadioId(radio) });
        }
        station.state = State::Idle;
        self.open_grants -= 1;
        Ok(())
    }

    /// Handles the end of the backoff of `radio`: sends a retry, or grants a request.
    fn handle_backoff_end(&mut self, context: &mut Context<'_>, radio: usize) {
        // A frame that is still outgoing is a retry. Without frame and request this was the
        // post-backoff, after which the station may send at once if the channel is clear.
        let station = &mut self.stations[radio];
        if station.outgoing.is_some() {
            self.start_attempt(context, radio);
        } else if std::mem::take(&mut station.requested) {
            station.state = State::Granted;
            self.open_grants += 1;
            let at_ns = context.now_ns;
            context.outputs.push_back(Output::Grant { radio: RadioId(radio), at_ns });
        } else {
            station.state = State::Idle;
        }
    }

    /// Begins a transmission and schedules its end.
    fn transmit(&mut self, context: &mut Context<'_>, transmission: Transmission) {
        // The air tells every station in reach that its channel is busy now.
        let now_ns = context.now_ns;
        let ends_ns = now_ns + transmission.airtime_ns;
        let mut carrier = CarrierSense { contention: &mut self.contention, now_ns };
        let id = context.air.begin_transmission(now_ns, transmission, &mut carrier);
        self.events.push(Reverse((ends_ns, Event::TransmissionEnd(id))));
    }

    /// Handles an event that is due now.
    fn handle_event(&mut self, context: &mut Context<'_>, event: Event) {
        match event {
            Event::TransmissionEnd(id) => {
                let now_ns = context.now_ns;
                let mut receptions = std::mem::take(&mut self.receptions);
                let mut carrier = CarrierSense { contention: &mut self.contention, now_ns };
                let ended = context.air.end_transmission(now_ns, id, &mut receptions, &mut carrier);
                if let Some(ended) = ended {
                    self.handle_transmission_end(context, ended, &mut receptions);
                }

                // The buffer goes back, so that a frame costs no allocation.
                receptions.clear();
                self.receptions = receptions;
            }
            Event::ResponseDue(response) => self.send_response(context, response),
            // The sender may have been switched off during SIFS.
            Event::DataDue { radio } => {
                if self.stations[radio].state == State::ClearToSend {
                    self.send_data(context, radio);
                }
            }
            Event::WireEnd { radio, attempt } => self.handle_wire_end(context, radio, attempt),
            Event::ResponseTimeout { radio, attempt } => {
                // The timeout is not removed when the response arrives, so it may be of an attempt
                // that has ended.
                let awaits = matches!(
                    self.stations[radio].state,
                    State::AwaitingResponse { attempt: awaited, .. } if awaited == attempt
                );

                // The end of a response that is arriving decides instead (10.3.2.9).
                if awaits && !context.air.is_receiving_response(radio, attempt) {
                    self.end_wait(context, radio, false);
                }
            }
        }
    }

    /// Draws a backoff for `radio` and starts it.
    fn back_off(&mut self, now_ns: u64, radio: usize) {
        let station = &mut self.stations[radio];
        station.state = State::Backoff;
        let slots = station.draw_backoff();
        self.contention.start(radio, slots, now_ns);
    }
}

impl Mac for Dcf {
    fn request(&mut self, context: &mut Context<'_>, radio: usize) {
        let station = &mut self.stations[radio];
        if station.requested || !context.air.is_up(radio) {
            return;
        }

        // A station that is idle begins to contend. Otherwise the request is served at the end of
        // the backoff that follows whatever the station is doing.
        station.requested = true;
        if station.state == State::Idle {
            let clear = self.contention.is_clear(radio, context.now_ns);
            let slots = if clear { 0 } else { station.draw_backoff() };
            station.state = State::Backoff;
            self.contention.start(radio, slots, context.now_ns);
        }
    }

    fn set_rate(&mut self, radio: usize, bit_rate_bps: u64) {
        self.stations[radio].bit_rate_bps = bit_rate_bps;
    }

    fn withdraw(&mut self, radio: usize) {
        self.stations[radio].requested = false;
    }

    fn supply(
        &mut self,
        context: &mut Context<'_>,
        radio: usize,
        access: Access,
        frame: Arc<[u8]>,
    ) -> Result<(), MediumError> {
        // A frame over a cable follows the same grants as a frame over the air.
        self.take_grant(radio)?;
        let wire = self.wire_rate_bps(radio, access);
        self.stations[radio].outgoing = Some(Outgoing::new(access, frame));
        match wire {
            Some(bit_rate_bps) => self.send_by_wire(context.now_ns, radio, bit_rate_bps),
            None => self.start_attempt(context, radio),
        }
        Ok(())
    }

    fn decline(&mut self, context: &mut Context<'_>, radio: usize) -> Result<(), MediumError> {
        self.take_grant(radio)?;
        context.air.statistics.radios[radio].grants_declined += 1;
        self.back_off(context.now_ns, radio);
        Ok(())
    }

    fn reset(&mut self, radio: usize) {
        // Events of the radio stay in the queue. Their handlers check state and attempt, and ignore
        // them.
        let station = &mut self.stations[radio];
        self.open_grants -= usize::from(station.state == State::Granted);
        station.reset(self.phy.cw_min);
        self.contention.stop(radio);
    }

    fn has_open_grants(&self) -> bool {
        self.open_grants > 0
    }

    fn next_ns(&self) -> Option<u64> {
        let event = self.events.peek().map(|Reverse((at_ns, _))| *at_ns);
        event.into_iter().chain(self.contention.next_ns()).min()
    }

    fn handle_next(&mut self, context: &mut Context<'_>) {
        // At one instant, frames end and responses begin before backoffs end.
        if let Some(&Reverse((at_ns, event))) = self.events.peek()
            && at_ns <= context.now_ns
        {
            self.events.pop();
            self.handle_event(context, event);
        } else if let Some(radio) = self.contention.take_due(context.now_ns) {
            self.handle_backoff_end(context, radio);
        }
    }
}

/// Passes the indications from the air to carrier sense.
struct CarrierSense<'a> {
    contention: &'a mut Contention,
    now_ns: u64,
}

impl PhyIndications for CarrierSense<'_> {
    fn cca_busy(&mut self, radio: usize) {
        self.contention.handle_busy(radio, self.now_ns);
    }

    fn rx_end(&mut self, radio: usize, transmission: &Transmission, decoded: bool) {
        if decoded {
            // A frame sets the NAV of all stations but its receiver.
            let own = transmission.payload.receiver() == Some(radio);
            let nav_until_ns = if own { 0 } else { self.now_ns + transmission.nav_ns };
            self.contention.handle_decoded(radio, nav_until_ns);
        } else {
            self.contention.handle_rx_error(radio, self.now_ns);
        }
    }

    fn cca_idle(&mut self, radio: usize) {
        self.contention.handle_idle(radio, self.now_ns);
    }
}

//! Slotted access: in each slot a maximal set of radios without conflict sends one frame each.
//!
//! This is the access that the models of some papers assume (Multipath Code Casting, section 4.1).
//! At the start of a slot, the radios that want to send are put into an order, random or by weight.
//! Each radio in turn sends unless it conflicts with a radio that already sends. The set is
//! therefore maximal: no radio could be added.
//!
//! ```text
//!  no slot --request--> scheduled --slot begins--> asking --> asking the next radio ...
//!     ^                     ^                        |
//!     |                     |                        | no radio left to ask
//!     | nothing to send     | frames to send         v
//!     +---------------------+------------------- slot asked
//! ```
//! While a granted radio prepares its frame, the asking pauses.
//!
//! Frames still suffer the losses of the channel, and they still interfere where the conflicts
//! leave room for it. A unicast frame is acknowledged within its slot and the acknowledgment is
//! never lost. The sender of a broadcast learns in the same way which radios decoded it.

use std::collections::BTreeSet;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use super::interface::{Context, Mac, includes};
use crate::air::{Ended, Payload, PhyIndications, Transmission, TxId};
use crate::config::{Conflict, MediumConfig, SlotOrder};
use crate::error::MediumError;
use crate::phy::Phy;
use crate::random::{Purpose, stream, uniform};
use crate::types::{Access, Output, RadioId, TxResult};

/// A frame from its grant to its report.
struct Outgoing {
    access: Access,
    frame: Arc<[u8]>,
    attempts: u32,
    airtime_ns: u64,
    /// Whether it is on the air. Otherwise it waits for a slot to be retransmitted.
    in_flight: bool,
}

/// One radio.
#[derive(Default)]
struct Station {
    /// Whether the host has requested the medium.
    requested: bool,
    outgoing: Option<Outgoing>,
    weight: u32,
    /// Whether it must not send in the present slot, because it conflicts with a radio that does.
    blocked: bool,
    /// The radios that conflict with it, or `None` if not computed since the links changed.
    conflicts: Option<Vec<usize>>,
}

impl Station {
    /// Returns whether the radio has something to send in the next slot.
    fn wants_slot(&self) -> bool {
        self.requested || self.outgoing.as_ref().is_some_and(|frame| !frame.in_flight)
    }
}

/// The radios of one medium and their slots.
pub(crate) struct Slotted {
    slot_ns: u64,
    conflict: Conflict,
    order: SlotOrder,
    phy: Phy,
    bit_rate_bps: u64,
    mac_overhead_bytes: usize,
    retry_limit: u32,
    overhear_unicast: bool,
    stations: Vec<Station>,
    /// Start of the present slot while it has candidates, or of the next slot. `None` while no
    /// radio wants to send.
    slot_at_ns: Option<u64>,
    /// The next slot does not begin earlier: the end of the present slot and of all frames.
    free_from_ns: u64,
    /// Radios to ask in the present slot. The last one is asked first.
    candidates: Vec<usize>,
    /// The radio with a grant that waits for its answer.
    granted: Option<usize>,
    /// Ends of the transmissions in flight.
    ends: BTreeSet<(u64, TxId)>,
    order_draws: ChaCha8Rng,
}

impl Slotted {
    /// Creates the radios of a validated `config`.
    pub(crate) fn new(
        config: &MediumConfig,
        slot_ns: u64,
        conflict: Conflict,
        order: SlotOrder,
    ) -> Self {
        Self {
            slot_ns,
            conflict,
            order,
            phy: config.phy,
            bit_rate_bps: config.bit_rate_bps,
            mac_overhead_bytes: config.mac_overhead_bytes,
            retry_limit: config.retry_limit,
            overhear_unicast: config.overhear_unicast,
            stations: (0..config.radios()).map(|_| Station::default()).collect(),
            slot_at_ns: None,
            free_from_ns: 0,
            candidates: Vec::new(),
            granted: None,
            ends: BTreeSet::new(),
            order_draws: stream(config.seed, Purpose::Order, 0),
        }
    }

    /// Schedules the next slot, if none is scheduled.
    fn schedule_slot(&mut self, now_ns: u64) {
        // Slots begin at multiples of their length, so that all radios agree on them.
        if self.slot_at_ns.is_none() {
            let from_ns = self.free_from_ns.max(now_ns);
            self.slot_at_ns = Some(from_ns.div_ceil(self.slot_ns) * self.slot_ns);
        }
    }

    /// Begins a slot: puts the radios that want to send into the order in which they are asked.
    fn begin_slot(&mut self, now_ns: u64) {
        // Only radios that want to send now take part. A request during the slot waits for the next
        // one.
        self.free_from_ns = now_ns + self.slot_ns;
        self.stations.iter_mut().for_each(|station| station.blocked = false);
        self.candidates =
            (0..self.stations.len()).filter(|&radio| self.stations[radio].wants_slot()).collect();

        // A random permutation (Fisher-Yates). Sorting by weight is stable, so radios of equal
        // weight stay in random order. The heaviest is last and is asked first.
        for last in (1..self.candidates.len()).rev() {
            let other = uniform(&mut self.order_draws, last as u32) as usize;
            self.candidates.swap(last, other);
        }
        if self.order == SlotOrder::Weight {
            self.candidates.sort_by_key(|&radio| self.stations[radio].weight);
        }

        if self.candidates.is_empty() {
            self.slot_at_ns = None;
        }
    }

    /// Asks the next candidate of the slot. After the last one, schedules the next slot if any
    /// radio still has something to send.
    fn ask_next(&mut self, context: &mut Context<'_>) {
        let Some(radio) = self.candidates.pop() else {
            self.slot_at_ns = None;
            if self.stations.iter().any(Station::wants_slot) {
                self.schedule_slot(context.now_ns);
            }
            return;
        };

        // A radio that conflicts with one asked before stays silent in this slot.
        let station = &mut self.stations[radio];
        if station.blocked || context.air.is_transmitting(radio) {
            return;
        }

        // A retry is sent at once. For a new frame the host is asked, and the slot goes on with its
        // answer.
        if station.outgoing.is_some() {
            self.transmit(context, radio);
        } else if std::mem::take(&mut station.requested) {
            self.granted = Some(radio);
            let at_ns = context.now_ns;
            context.outputs.push_back(Output::Grant { radio: RadioId(radio), at_ns });
        }
    }

    /// Transmits the frame of `radio` and blocks all radios that conflict with it.
    fn transmit(&mut self, context: &mut Context<'_>, radio: usize) {
        let station = &mut self.stations[radio];
        let Some(outgoing) = &mut station.outgoing else { return };
        let bytes = outgoing.frame.len() + self.mac_overhead_bytes;
        let airtime_ns = self.phy.airtime_ns(bytes, self.bit_rate_bps);
        outgoing.attempts += 1;
        outgoing.airtime_ns += airtime_ns;
        outgoing.in_flight = true;
        context.air.statistics.radios[radio].frames_sent += 1;

        let access = outgoing.access;
        let frame = Arc::clone(&outgoing.frame);
        let payload = Payload::Data { access, frame, attempt: 0 };

        // A frame longer than the slot also takes the following slots.
        let ends_ns = context.now_ns + airtime_ns;
        self.free_from_ns = self.free_from_ns.max(ends_ns);

        // Conflicts follow from the links and are kept until these change, since computing them
        // compares all pairs of radios.
        let conflict = self.conflict;
        let conflicts = station.conflicts.take();
        let conflicts =
            conflicts.unwrap_or_else(|| context.air.channel().conflicts(radio, conflict));
        conflicts.iter().for_each(|&other| self.stations[other].blocked = true);
        self.stations[radio].conflicts = Some(conflicts);

        let transmission = Transmission { sender: radio, payload, airtime_ns, nav_ns: 0 };
        let id = context.air.begin_transmission(context.now_ns, transmission, &mut NoCarrierSense);
        self.ends.insert((ends_ns, id));
    }

    /// Handles the end of a transmission: delivers the frame and reports on it.
    fn handle_transmission_end(&mut self, context: &mut Context<'_>, id: TxId) {
        let mut receptions = Vec::new();
        let ended =
            context.air.end_transmission(context.now_ns, id, &mut receptions, &mut NoCarrierSense);
        let Some(Ended { transmission, aborted: false }) = ended else { return };
        let Payload::Data { access, frame, .. } = transmission.payload else { return };

        // The acknowledgment is certain within the slot, so reception alone decides.
        let sender = transmission.sender;
        let result = match access {
            Access::Broadcast => TxResult::Sent,
            Access::Unicast(to) if includes(&receptions, to.0) => TxResult::Acked,
            Access::Unicast(_) => TxResult::Failed,
        };
        if let Access::Unicast(to) = access {
            receptions.retain(|at| at.radio() == to.0 || self.overhear_unicast);
        }

        context.deliver(sender, &frame, &receptions);

        // A frame without an acknowledgment is sent again in a later slot, up to the retry limit.
        let station = &mut self.stations[sender];
        let Some(outgoing) = &mut station.outgoing else { return };
        if result == TxResult::Failed && outgoing.attempts < self.retry_limit {
            outgoing.in_flight = false;
            self.schedule_slot(context.now_ns);
            return;
        }

        // The report names all radios that decoded the frame, which stands for acknowledgments of
        // a broadcast.
        let counters = &mut context.air.statistics.radios[sender];
        counters.frames_acked += u64::from(result == TxResult::Acked);
        counters.frames_failed += u64::from(result == TxResult::Failed);
        context.outputs.push_back(Output::Report {
            radio: RadioId(sender),
            result,
            attempts: outgoing.attempts,
            airtime_ns: outgoing.airtime_ns,
            heard_by: Some(receptions.iter().map(|at| RadioId(at.radio())).collect()),
            at_ns: context.now_ns,
        });
        station.outgoing = None;
    }

    /// Takes the grant of `radio`, or returns an error if it has none.
    fn take_grant(&mut self, radio: usize) -> Result<(), MediumError> {
        self.granted
            .take_if(|granted| *granted == radio)
            .map(drop)
            .ok_or(MediumError::NoGrant { radio: RadioId(radio) })
    }
}

impl Mac for Slotted {
    fn request(&mut self, context: &mut Context<'_>, radio: usize) {
        if context.air.is_up(radio) {
            self.stations[radio].requested = true;
            self.schedule_slot(context.now_ns);
        }
    }

    fn set_weight(&mut self, radio: usize, weight: u32) {
        self.stations[radio].weight = weight;
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
        self.take_grant(radio)?;
        self.stations[radio].outgoing =
            Some(Outgoing { access, frame, attempts: 0, airtime_ns: 0, in_flight: false });
        self.transmit(context, radio);
        Ok(())
    }

    fn decline(&mut self, context: &mut Context<'_>, radio: usize) -> Result<(), MediumError> {
        self.take_grant(radio)?;
        context.air.statistics.radios[radio].grants_declined += 1;
        Ok(())
    }

    fn reset(&mut self, radio: usize) {
        let station = &mut self.stations[radio];
        station.requested = false;
        station.outgoing = None;
        self.granted.take_if(|granted| *granted == radio);
    }

    fn links_changed(&mut self) {
        self.stations.iter_mut().for_each(|station| station.conflicts = None);
    }

    fn has_open_grants(&self) -> bool {
        self.granted.is_some()
    }

    fn next_ns(&self) -> Option<u64> {
        let end = self.ends.first().map(|&(at_ns, _)| at_ns);
        // The asking goes on when the grant is answered.
        let slot = self.slot_at_ns.filter(|_| self.granted.is_none());
        end.into_iter().chain(slot).min()
    }

    fn handle_next(&mut self, context: &mut Context<'_>) {
        // At one instant, frames end before others begin.
        let end = self.ends.first().copied();
        if let Some((_, id)) = end.filter(|&(at_ns, _)| at_ns <= context.now_ns) {
            self.ends.pop_first();
            self.handle_transmission_end(context, id);
        } else if self.slot_at_ns.is_some_and(|at_ns| at_ns <= context.now_ns) {
            // A slot that has begun is not free until its end.
            if self.free_from_ns <= context.now_ns {
                self.begin_slot(context.now_ns);
            } else {
                self.ask_next(context);
            }
        }
    }
}

/// Ignores the indications from the air: slots need no carrier sense.
struct NoCarrierSense;

impl PhyIndications for NoCarrierSense {
    fn cca_busy(&mut self, _: usize) {}
    fn rx_end(&mut self, _: usize, _: &Transmission, _: bool) {}
    fn cca_idle(&mut self, _: usize) {}
}

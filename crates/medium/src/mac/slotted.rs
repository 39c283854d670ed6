//! Slotted access: in each slot a maximal set of radios without conflict sends, one frame each.
//!
//! The order of those that want to is drawn anew for each slot, or is that of their weights; each in turn sends unless
//! it conflicts with one that does already. So the set is maximal: nobody could be added. Frames still meet the channel's losses
//! and each other, where conflicts leave room for that. A unicast frame is acknowledged within its slot, and
//! the acknowledgment always arrives; who read a broadcast its sender learns likewise: what the models count with
//! that this is for (Multipath Code Casting, 4.1).

use std::collections::BTreeSet;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use crate::air::{Landed, Listener, Payload, Transmission, TxId};
use crate::config::{Conflict, MediumConfig, Order};
use crate::mac::{Mac, Turn, is_heard_by};
use crate::random::{Purpose, stream, uniform};
use crate::{Access, MediumError, Output, Phy, RadioId, TxResult};

/// A unicast or broadcast frame from its grant to its report.
struct Outgoing {
    access: Access,
    frame: Arc<[u8]>,
    attempts: u32,
    airtime_ns: u64,
    flying: bool,
}

/// The radios of one medium.
pub(crate) struct Slotted {
    slot_ns: u64,
    conflict: Conflict,
    /// By radio, who conflicts with it; none if that was not asked for since links changed.
    conflicts: Vec<Option<Vec<usize>>>,
    phy: Phy,
    bit_rate_bps: u64,
    mac_overhead_bytes: usize,
    retry_limit: u32,
    overhear_unicast: bool,
    by_weight: bool,
    weights: Vec<u32>,
    wants: Vec<bool>,
    outgoing: Vec<Option<Outgoing>>,
    /// When the present slot began or the next one does; none while nobody wants to send.
    slot_at_ns: Option<u64>,
    /// No slot begins before this.
    free_from_ns: u64,
    /// Who may still send in the present slot, last first.
    candidates: Vec<usize>,
    /// Who may not, since it conflicts with one that does.
    blocked: Vec<bool>,
    granted: Option<usize>,
    landings: BTreeSet<(u64, TxId)>,
    order: ChaCha8Rng,
}

impl Slotted {
    /// Radios of a validated `config`.
    pub(crate) fn new(
        config: &MediumConfig,
        slot_ns: u64,
        conflict: Conflict,
        order: Order,
    ) -> Self {
        let radios = config.radios();
        Self {
            slot_ns,
            conflict,
            conflicts: vec![None; radios],
            phy: config.phy,
            bit_rate_bps: config.bit_rate_bps,
            mac_overhead_bytes: config.mac_overhead_bytes,
            retry_limit: config.retry_limit,
            overhear_unicast: config.overhear_unicast,
            by_weight: order == Order::Weight,
            weights: vec![0; radios],
            wants: vec![false; radios],
            outgoing: (0..radios).map(|_| None).collect(),
            slot_at_ns: None,
            free_from_ns: 0,
            candidates: Vec::new(),
            blocked: vec![false; radios],
            granted: None,
            landings: BTreeSet::new(),
            order: stream(config.seed, Purpose::Order, 0),
        }
    }

    /// Sees to it that a slot comes if somebody wants one.
    fn schedule(&mut self, now_ns: u64) {
        if self.slot_at_ns.is_none() {
            let from_ns = self.free_from_ns.max(now_ns);
            self.slot_at_ns = Some(from_ns.div_ceil(self.slot_ns) * self.slot_ns);
        }
    }

    fn waits(&self, radio: usize) -> bool {
        self.wants[radio] || self.outgoing[radio].as_ref().is_some_and(|frame| !frame.flying)
    }

    /// Draws the order of those that want to send in the slot that begins.
    fn begin_slot(&mut self, now_ns: u64) {
        self.free_from_ns = now_ns + self.slot_ns;
        self.blocked.fill(false);
        self.candidates = (0..self.wants.len()).filter(|&radio| self.waits(radio)).collect();
        for last in (1..self.candidates.len()).rev() {
            let other = uniform(&mut self.order, last as u32) as usize;
            self.candidates.swap(last, other);
        }
        if self.by_weight {
            // The last is asked first. The sort keeps the drawn order of equals.
            self.candidates.sort_by_key(|&radio| self.weights[radio]);
        }
        if self.candidates.is_empty() {
            self.slot_at_ns = None;
        }
    }

    /// Lets the next candidate send, or ends the drawing when there is none.
    fn next_candidate(&mut self, turn: &mut Turn<'_>) {
        let Some(radio) = self.candidates.pop() else {
            self.slot_at_ns = None;
            if (0..self.wants.len()).any(|radio| self.waits(radio)) {
                self.schedule(turn.now_ns);
            }
            return;
        };
        if self.blocked[radio] || turn.air.is_sending(radio) {
            return;
        }
        if self.outgoing[radio].is_some() {
            self.transmit(turn, radio);
        } else if std::mem::take(&mut self.wants[radio]) {
            self.granted = Some(radio);
            turn.outputs.push_back(Output::Grant { radio: RadioId(radio), at_ns: turn.now_ns });
        }
    }

    fn transmit(&mut self, turn: &mut Turn<'_>, radio: usize) {
        let Some(outgoing) = &mut self.outgoing[radio] else { return };
        let bytes = outgoing.frame.len() + self.mac_overhead_bytes;
        let airtime_ns = self.phy.airtime_ns(bytes, self.bit_rate_bps);
        outgoing.attempts += 1;
        outgoing.airtime_ns += airtime_ns;
        outgoing.flying = true;
        turn.air.statistics.radios[radio].frames_sent += 1;
        let (access, frame) = (outgoing.access, Arc::clone(&outgoing.frame));
        let payload = Payload::Data { access, frame, attempt: 0 };
        let frame = Transmission { sender: radio, payload, airtime_ns, claim_ns: 0 };
        let ends_ns = turn.now_ns + airtime_ns;
        self.free_from_ns = self.free_from_ns.max(ends_ns);
        let conflict = self.conflict;
        let conflicts = self.conflicts[radio]
            .get_or_insert_with(|| turn.air.channel().conflicts(radio, conflict));
        conflicts.iter().for_each(|&other| self.blocked[other] = true);
        let id = turn.air.begin(turn.now_ns, frame, &mut Deaf);
        self.landings.insert((ends_ns, id));
    }

    fn handle_landing(&mut self, turn: &mut Turn<'_>, id: TxId) {
        let mut heard = Vec::new();
        let landed = turn.air.land(turn.now_ns, id, &mut heard, &mut Deaf);
        let Some(Landed { transmission, aborted: false }) = landed else { return };
        let Payload::Data { access, frame, .. } = transmission.payload else { return };
        let sender = transmission.sender;
        let result = match access {
            Access::Broadcast => TxResult::Sent,
            Access::Unicast(to) if is_heard_by(to.0, &heard) => TxResult::Acked,
            Access::Unicast(_) => TxResult::Failed,
        };
        if let Access::Unicast(to) = access {
            heard.retain(|at| at.radio() == to.0 || self.overhear_unicast);
        }
        turn.deliver(sender, &frame, &heard);
        let heard_by = heard.iter().map(|at| RadioId(at.radio())).collect();
        self.finish(turn, sender, result, heard_by);
    }

    /// Reports on the frame, unless it is to be sent again.
    fn finish(
        &mut self,
        turn: &mut Turn<'_>,
        radio: usize,
        result: TxResult,
        heard_by: Vec<RadioId>,
    ) {
        let Some(mut outgoing) = self.outgoing[radio].take() else { return };
        if result == TxResult::Failed && outgoing.attempts < self.retry_limit {
            outgoing.flying = false;
            self.outgoing[radio] = Some(outgoing);
            self.schedule(turn.now_ns);
            return;
        }
        let counters = &mut turn.air.statistics.radios[radio];
        counters.frames_acked += u64::from(result == TxResult::Acked);
        counters.frames_failed += u64::from(result == TxResult::Failed);
        let Outgoing { attempts, airtime_ns, .. } = outgoing;
        let (radio, at_ns) = (RadioId(radio), turn.now_ns);
        turn.outputs.push_back(Output::Report {
            radio,
            result,
            attempts,
            airtime_ns,
            heard_by: Some(heard_by),
            at_ns,
        });
    }

    fn take_grant(&mut self, radio: usize) -> Result<(), MediumError> {
        self.granted
            .take_if(|granted| *granted == radio)
            .map(drop)
            .ok_or(MediumError::NoGrant { radio: RadioId(radio) })
    }
}

impl Mac for Slotted {
    fn request(&mut self, turn: &mut Turn<'_>, radio: usize) {
        if turn.air.is_up(radio) {
            self.wants[radio] = true;
            self.schedule(turn.now_ns);
        }
    }

    fn weigh(&mut self, radio: usize, weight: u32) {
        self.weights[radio] = weight;
    }

    fn withdraw(&mut self, radio: usize) {
        self.wants[radio] = false;
    }

    fn supply(
        &mut self,
        turn: &mut Turn<'_>,
        radio: usize,
        access: Access,
        frame: Arc<[u8]>,
    ) -> Result<(), MediumError> {
        self.take_grant(radio)?;
        self.outgoing[radio] =
            Some(Outgoing { access, frame, attempts: 0, airtime_ns: 0, flying: false });
        self.transmit(turn, radio);
        Ok(())
    }

    fn decline(&mut self, turn: &mut Turn<'_>, radio: usize) -> Result<(), MediumError> {
        self.take_grant(radio)?;
        turn.air.statistics.radios[radio].grants_declined += 1;
        Ok(())
    }

    fn reset(&mut self, radio: usize) {
        self.wants[radio] = false;
        self.outgoing[radio] = None;
        self.granted.take_if(|granted| *granted == radio);
    }

    fn links_changed(&mut self) {
        self.conflicts.fill(None);
    }

    fn is_waiting(&self) -> bool {
        self.granted.is_some()
    }

    fn next_ns(&self) -> Option<u64> {
        let landing = self.landings.first().map(|&(at_ns, _)| at_ns);
        // The drawing goes on when the grant is answered.
        let slot = self.slot_at_ns.filter(|_| self.granted.is_none());
        landing.into_iter().chain(slot).min()
    }

    fn step(&mut self, turn: &mut Turn<'_>) {
        let landing = self.landings.first().copied();
        if let Some((_, id)) = landing.filter(|&(at_ns, _)| at_ns <= turn.now_ns) {
            self.landings.pop_first();
            self.handle_landing(turn, id);
        } else if self.slot_at_ns.is_some_and(|at| at <= turn.now_ns) {
            if self.free_from_ns <= turn.now_ns {
                self.begin_slot(turn.now_ns);
            } else {
                self.next_candidate(turn);
            }
        }
    }
}

/// Slots need no carrier sense.
struct Deaf;

impl Listener for Deaf {
    fn turn_busy(&mut self, _: usize) {}
    fn receive(&mut self, _: usize, _: &Transmission, _: bool) {}
    fn turn_idle(&mut self, _: usize) {}
}

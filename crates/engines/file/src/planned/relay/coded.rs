//! Buffer of a forwarder that codes: fresh combinations go out as its credit allows (Pacifier,
//! III-A.2; MORE).
//!
//! The credit counter rises by the forwarder's TX_credit with each packet heard from upstream, and
//! falls by one with each packet sent. The forwarder sends while it is positive. So it sends, on
//! average, as many packets as its children need, without hearing from them.
//!
//! Packets say what credit they give, and forwarders may be upstream of one another. So one hostile
//! packet could have them feed each other for ever. The credit that a generation earns is therefore
//! bounded by what is held of it: by [`MOST_PER_PACKET`] transmissions for each innovative packet,
//! at most that many times the size of the generation. A generation that nobody could finish within
//! this earns as much again after a pause, which doubles up to 40 s.
//!
//! A forwarder that comes to hold a generation whole checks it. If it is false, nothing of it is
//! sent until the true packets among those that come are found, but what a check of the source
//! proved.

use crate::planned::frame::Data;
use ncmesh_code::{Absorbed, Decoder, Shape};
use ncmesh_engine::Malformed;
use ncmesh_engine::file::check::Nonce;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_engine::toolkit::dispute::{Dispute, Origin, Settled};
use ncmesh_transfer::frame::{self, append_coding};
use rand_core::RngCore;

/// Most transmissions that an innovative packet earns: thrice those over the poorest link that is
/// used, which delivers one frame in twenty.
const MOST_PER_PACKET: f64 = 64.0;
/// Pauses after which a generation earns credit anew.
const RENEWALS: Backoff =
    Backoff { first: Duration::from_secs(10), longest: Duration::from_secs(40) };

/// Innovative packets of one generation, and the credit to send combinations of them.
#[derive(Debug)]
pub(super) struct CodedBuffer {
    decoder: Box<Decoder>,
    check: Check,
    /// Whether a check was not the source's, since that was last asked.
    is_misled: bool,
    /// Packets that may be sent. The last one sent may take it below zero; the next packets from
    /// upstream make up for that first.
    credit: f64,
    /// Credit earned since the last renewal.
    earned: f64,
    renewals: u32,
    renewed_at: Instant,
}

/// Whether the generation is what was announced.
#[derive(Debug)]
enum Check {
    /// It is not whole yet; senders of its packets, in the order in which they came.
    Open(Vec<Origin>),
    /// It was false. The decoder has what checks proved.
    Disputed(Dispute),
    Genuine,
}

impl CodedBuffer {
    pub(super) fn new(shape: Shape, now: Instant) -> Self {
        let decoder = Box::new(Decoder::new(shape));
        let check = Check::Open(Vec::new());
        let is_misled = false;
        Self { decoder, check, is_misled, credit: 0.0, earned: 0.0, renewals: 0, renewed_at: now }
    }

    /// Empties the buffer for another generation of the same shape.
    pub(super) fn clear(&mut self, now: Instant) {
        self.decoder.clear();
        self.check = Check::Open(Vec::new());
        self.credit = 0.0;
        self.earned = 0.0;
        self.renewals = 0;
        self.renewed_at = now;
    }

    /// Takes a packet in if it is innovative, and returns whether it is.
    pub(super) fn absorb(&mut self, origin: Origin, data: &Data<'_>) -> Result<bool, Malformed> {
        let packets = data.header.packets;
        // A dispute takes packets as they are: the rank of false ones says nothing.
        if let Check::Disputed(dispute) = &mut self.check {
            data.coding.with_vector(packets, |vector| dispute.take(origin, vector, data.payload));
            return Ok(false);
        }

        let decoder = &mut self.decoder;
        let absorbed =
            data.coding.with_vector(packets, |vector| decoder.absorb(vector, data.payload));
        let is_innovative = absorbed.map(Absorbed::is_innovative).map_err(|_| Malformed)?;
        // Senders are noted in the order of the rows, so that a dispute knows whose packets it has.
        if let Check::Open(origins) = &mut self.check
            && is_innovative
        {
            origins.push(origin);
        }
        Ok(is_innovative)
    }

    /// Checks the generation if it is whole, or looks for its true packets if it is disputed and it
    /// is time. Returns what was found if that settled a dispute.
    pub(super) fn check(
        &mut self,
        rng: &mut impl RngCore,
        is_genuine: impl Fn(&[u8]) -> bool,
    ) -> Option<Settled> {
        match &mut self.check {
            Check::Open(origins) => {
                let symbols = self.decoder.decode()?;
                if is_genuine(symbols) {
                    self.check = Check::Genuine;
                } else {
                    self.check = Check::Disputed(Dispute::new(&self.decoder, origins));
                    self.decoder.clear();
                }

                None
            }
            Check::Disputed(dispute) => {
                let settled = dispute.is_due().then(|| dispute.settle(rng, is_genuine)).flatten();
                if dispute.take_misled() {
                    self.is_misled = true;
                    self.decoder.clear();
                }
                let settled = settled?;
                // The true symbols take the place of all that was held.
                self.decoder.load(&settled.symbols).ok()?;
                self.check = Check::Genuine;
                Some(settled)
            }
            Check::Genuine => None,
        }
    }

    fn dispute(&mut self) -> Option<&mut Dispute> {
        match &mut self.check {
            Check::Disputed(dispute) => Some(dispute),
            Check::Open(_) | Check::Genuine => None,
        }
    }

    /// Returns whether a check of the generation would help.
    pub(super) fn wants_check(&mut self) -> bool {
        self.dispute().is_some_and(|dispute| dispute.wants_check())
    }

    /// Begins a question for a check of the generation, with a nonce that was drawn just now.
    pub(super) fn ask(&mut self, nonce: Nonce) {
        if let Some(dispute) = self.dispute() {
            dispute.ask(nonce);
        }
    }

    /// Judges the packets of the generation by a check of the source. Returns whether any were
    /// judged.
    pub(super) fn judge(&mut self, check: &frame::Check) -> bool {
        let Check::Disputed(dispute) = &mut self.check else { return false };
        let is_judged = dispute.judge(check.of, check.nonce, &check.sums);
        // Proven packets may be sent on.
        if let Some(proven) = dispute.proven().filter(|_| is_judged) {
            *self.decoder = proven.clone();
        }
        is_judged
    }

    /// Returns whether a check has misled this node since the last call.
    pub(super) fn take_misled(&mut self) -> bool {
        core::mem::take(&mut self.is_misled)
    }

    /// Allows `credit` packets more, within the bound.
    pub(super) fn add_credit(&mut self, credit: f64, now: Instant) {
        // Packets that were lost are earned anew after a while, each time after a longer one.
        if now.since(self.renewed_at) >= RENEWALS.pause(self.renewals) {
            self.earned = 0.0;
            self.renewed_at = now;
            self.renewals = self.renewals.saturating_add(1);
        }

        let most = self.decoder.rank() as f64 * MOST_PER_PACKET;
        let credit = credit.min(most - self.earned).max(0.0);
        self.earned += credit;
        self.credit += credit;
    }

    /// Takes all credit away: this node is no forwarder of the generation any more.
    pub(super) fn stop(&mut self) {
        self.credit = 0.0;
    }

    /// Returns whether a packet may be sent, and there is something to combine.
    pub(super) fn is_ready(&self) -> bool {
        self.credit > 0.0 && self.decoder.rank() > 0
    }

    /// Appends the coding vector and payload of a fresh combination and pays for it. Returns
    /// whether there was anything to combine.
    pub(super) fn fill(&mut self, rng: &mut impl RngCore, out: &mut Vec<u8>) -> bool {
        let (coefficients, payload) = append_coding(self.decoder.shape(), out);
        let is_filled = matches!(self.decoder.recode(rng, coefficients, payload), Ok(true));
        self.credit -= 1.0;
        is_filled
    }
}

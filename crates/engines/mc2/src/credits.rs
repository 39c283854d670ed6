//! Credits of one flow at one node: back-pressure decides which next hop each goes to, and what is
//! still owed to the hops decides when the node sends (MC2, 3.4).
//!
//! The paper's algorithm has three parts, and so has this module:
//!
//! 1. **Transfer** (C update). A credit goes to a next hop for which the forwarding decision RD,
//!    eq. 7, holds: this node holds more credits than the hop, those on their way to it included.
//!    Back-pressure of this kind keeps queues bounded and finds the good paths without any node
//!    knowing a rate.
//! 2. **Weight** (scheduling). W(n, c) is the sum over all sets J of hops of |TC(n, c, J)| Q(n, J):
//!    the number of useful receptions that the next transmission may bring. The flow with the
//!    largest W sends, from the generation of its oldest transmission credit.
//! 3. **Announcement**. Frames carry for each hop how many credits it was ever given, a total
//!    rather than a difference, so that lost frames do not matter.
//!
//! A [`Ledger`] for each generation has the counts. Departures from the paper: `ERRATA.md`.

use crate::frame::GenerationCredits;
use crate::hops::{HopSet, MAX_HOPS};
use crate::ledger::{Backlogs, Ledger, PendingFrame, Reception};
use ncmesh_engine::rng;
use ncmesh_engine::toolkit::average::Average;
use rand_core::RngCore;
use std::collections::BTreeMap;

/// Frames missed in a row after which a hop counts as gone. One that receives a twentieth of the
/// frames misses as many with probability 1/700.
const GONE_AFTER: u16 = 128;
/// Frames that a hop may have sent for each that arrived from it, times the share that arrives. The
/// mean is 1, and twice as many are nothing unusual.
const SENT_PER_HEARD: f64 = 2.0;
/// Weight of the newest frame in the average of a hop's reception.
const QUALITY_WEIGHT: f64 = 1.0 / 32.0;

/// Credits of one flow at one node.
#[derive(Debug)]
pub(crate) struct Credits {
    hops: usize,
    /// The hop that is the flow's destination, if one is. Credits end there with the packet, so it
    /// holds none and need not be told of any.
    destination: Option<usize>,
    generations: BTreeMap<u32, Ledger>,
    /// Share of this node's frames that each hop receives.
    quality: [Average; MAX_HOPS],
    /// Share of each hop's frames that this node receives, by the link state.
    quality_back: [f64; MAX_HOPS],
    /// Frames that each hop missed in a row.
    missed: [u16; MAX_HOPS],
    /// |C| of each hop as it last reported it; 0 of the destination.
    reported: [u32; MAX_HOPS],
    /// Credits that each hop has learned of since.
    acknowledged_since: [u32; MAX_HOPS],
}

/// A generation that has something to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub generation: u32,
    /// Priority of this transmission among flows and, in slotted access, among nodes: W(n, c).
    pub weight: f64,
}

/// Credits that a data frame announces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Announcement {
    /// Credits that each hop was given, by generation; the frame's own generation comes first.
    pub credits: Vec<GenerationCredits>,
    /// Hop to which the frame assigns one credit of its own generation, which is not backed before
    /// the hop receives this very frame.
    pub assigned_hop: Option<usize>,
}

impl Credits {
    /// Returns no credits, towards hops that receive the shares `quality` of this node's frames.
    /// `destination` is the hop that is the flow's destination. Links back are taken to be perfect
    /// until [`set_quality_back`](Self::set_quality_back) tells.
    pub(crate) fn new(quality: &[f64], destination: Option<usize>) -> Self {
        let hops = quality.len().min(MAX_HOPS);
        let quality = core::array::from_fn(|hop| {
            Average::starting_at(quality.get(hop).copied().unwrap_or_default(), QUALITY_WEIGHT)
        });
        Self {
            hops,
            destination,
            generations: BTreeMap::new(),
            quality,
            quality_back: [1.0; MAX_HOPS],
            missed: [0; MAX_HOPS],
            reported: [0; MAX_HOPS],
            acknowledged_since: [0; MAX_HOPS],
        }
    }

    /// Sets the share of each hop's frames that arrives here.
    pub(crate) fn set_quality_back(&mut self, shares: &[f64]) {
        self.quality_back.iter_mut().zip(shares).for_each(|(known, share)| *known = *share);
    }

    // ---- credits held

    /// Returns |C(n, c)|: credits that this node has not transferred yet.
    pub(crate) fn held(&self) -> u32 {
        self.generations.values().map(|ledger| ledger.held).sum()
    }

    /// Adds credits of a generation.
    pub(crate) fn add(&mut self, generation: u32, credits: u32) {
        let hops = self.hops;
        let ledger = self.generations.entry(generation).or_insert_with(|| Ledger::new(hops));
        ledger.held += credits;
        ledger.total += credits;
    }

    /// Returns how many credits of a generation were ever added.
    pub(crate) fn total(&self, generation: u32) -> u32 {
        self.generations.get(&generation).map_or(0, |ledger| ledger.total)
    }

    /// Continues towards other hops. Credits that the old hops are not known to know of are held
    /// here again.
    pub(crate) fn reroute(&mut self, quality: &[f64], destination: Option<usize>) {
        let ledgers = self.generations.iter();
        let kept: Vec<(u32, u32)> = ledgers
            .map(|(generation, ledger)| (*generation, ledger.remaining(self.destination)))
            .filter(|(_, credits)| *credits > 0)
            .collect();

        // Nothing that is known of the old hops holds for the new ones.
        *self = Self::new(quality, destination);
        for (generation, credits) in kept {
            self.add(generation, credits);
        }
    }

    /// Drops generations before `oldest`. Returns how many credits are lost with them.
    pub(crate) fn drop_before(&mut self, oldest: u32) -> u32 {
        let kept = self.generations.split_off(&oldest);
        let dropped = core::mem::replace(&mut self.generations, kept);
        dropped.values().map(|ledger| ledger.remaining(self.destination)).sum()
    }

    // ---- transfer

    /// Transfers credits as long as the forwarding decision RD (eq. 7) holds for some hop. Returns
    /// whether any were.
    pub(crate) fn transfer(&mut self, rng: &mut impl RngCore) -> bool {
        let backlogs = self.backlogs();
        let mut any = false;

        // The oldest generation that has credits goes first: the destination waits for it.
        while let Some((generation, hop)) = self.forwarding_decision(rng) {
            let Some(ledger) = self.generations.get_mut(&generation) else { break };
            ledger.held -= 1;
            ledger.transferred[hop] += 1;

            // Packets that the hop received before may back the credit at once.
            ledger.announce_backed(&backlogs);
            any = true;
        }

        any
    }

    /// Chooses which generation's credit goes to which hop next: at random, if RD holds for several
    /// hops.
    fn forwarding_decision(&self, rng: &mut impl RngCore) -> Option<(u32, usize)> {
        let (generation, ledger) = self.generations.iter().find(|(_, ledger)| ledger.held > 0)?;

        // RD (eq. 7) for each hop that is there. Ties are broken at random, as the paper does.
        let held = f64::from(self.held());
        let takes = |hop: &usize| {
            let can = !self.is_gone(*hop) && ledger.transferred[*hop] < u16::MAX;
            can && held > self.congestion(*hop)
        };

        let hops: Vec<usize> = (0..self.hops).filter(takes).collect();
        match hops.len() {
            0 => None,
            n => Some((*generation, hops[(rng::unit(rng) * n as f64) as usize])),
        }
    }

    /// Returns |C(m, c)| + |CTC(n, c, m)| of hop m, as far as this node knows them: the right-hand
    /// side of eq. 7.
    fn congestion(&self, hop: usize) -> f64 {
        let in_ledger = |ledger: &Ledger| -> f64 {
            let sets = HopSet::nonempty(self.hops).filter(|set| set.contains(hop));
            let ctc: f64 = sets.map(|set| ledger.outstanding(set)).sum();

            // A credit whose packet the hop has received is in no TC any more, and is in the hop's
            // own count only once it knows of it.
            let is_destination = self.destination == Some(hop);
            let unknown = if is_destination { 0 } else { ledger.unacknowledged(hop) };
            ctc + f64::from(unknown)
        };

        f64::from(self.backlog(hop)) + self.generations.values().map(in_ledger).sum::<f64>()
    }

    /// Estimates |C(m, c)| of a hop: what it last reported, plus what it has learned of since, less
    /// what it may have sent on in frames that did not arrive here.
    ///
    /// By the last report alone, a hop that is seldom heard would be filled without end. By all it
    /// learned of since, a hop whose last frame was lost would be shut out.
    fn backlog(&self, hop: usize) -> u32 {
        let heard = self.quality[hop].value().min(self.quality_back[hop]);
        let sent_unheard = (SENT_PER_HEARD / heard.max(f64::EPSILON)) as u32;
        self.reported[hop] + self.acknowledged_since[hop].saturating_sub(sent_unheard)
    }

    fn backlogs(&self) -> Backlogs {
        let hops = core::array::from_fn(|hop| self.backlog(hop));
        Backlogs { own: self.held(), hops }
    }

    // ---- weight

    /// Returns Q(n, J): the probability that at least one hop of the set receives a frame.
    fn quality_of(&self, set: HopSet) -> f64 {
        1.0 - set.iter().map(|hop| 1.0 - self.quality[hop].value()).product::<f64>()
    }

    /// Returns the probability that any of the hops receives a frame.
    pub(crate) fn quality_of_all(&self) -> f64 {
        self.quality_of(HopSet::all(self.hops))
    }

    /// Returns the oldest generation that owes packets to hops which can hear, with W(n, c) of the
    /// whole flow.
    pub(crate) fn due(&self) -> Option<Candidate> {
        let mut oldest = None;
        let mut weight = 0.0;
        for (generation, ledger) in &self.generations {
            let own = self.weight(ledger);
            if own > 0.0 {
                oldest = oldest.or(Some(*generation));
                weight += own;
            }
        }

        Some(Candidate { generation: oldest?, weight })
    }

    /// Returns the share of one generation in W(n, c).
    fn weight(&self, ledger: &Ledger) -> f64 {
        let in_set = |set: HopSet| {
            let outstanding = ledger.outstanding(set);
            let all_gone = set.iter().all(|hop| self.is_gone(hop));

            // The expected gain of frames in flight is subtracted. Half a packet or less that
            // remains is no reason to send another.
            if outstanding > 0.5 && !all_gone { outstanding * self.quality_of(set) } else { 0.0 }
        };

        HopSet::nonempty(self.hops).map(in_set).sum()
    }

    /// Returns the oldest generation of which a hop that can hear received a packet but does not
    /// know of the credit for it.
    pub(crate) fn unacknowledged(&self) -> Option<u32> {
        let needs_to_know = |hop: usize| self.destination != Some(hop) && !self.is_gone(hop);
        let open = |ledger: &Ledger| {
            (0..self.hops).any(|hop| needs_to_know(hop) && !ledger.is_acknowledged(hop))
        };
        self.generations.iter().find(|(_, ledger)| open(ledger)).map(|(generation, _)| *generation)
    }

    /// Returns the oldest generation with packets to send although nothing is due: packets that
    /// hops seem not to hear, or credits that no hop seems to be there to take. The weight is their
    /// number, so that the flow is tried even where others always have something to send.
    pub(crate) fn stalled(&self) -> Option<Candidate> {
        let all_gone = (0..self.hops).all(|hop| self.is_gone(hop));
        let open = |ledger: &Ledger| {
            ledger.owed(HopSet::all(self.hops)) + if all_gone { ledger.held } else { 0 }
        };
        let mut all =
            self.generations.iter().map(|(generation, ledger)| (*generation, open(ledger)));
        let (generation, open) = all.find(|(_, open)| *open > 0)?;
        Some(Candidate { generation, weight: f64::from(open) })
    }

    // ---- announcement

    /// Returns what a frame of `generation` announces: credits of that generation, then of the
    /// oldest others that some hop does not know all of, `max_generations` in all.
    ///
    /// One hop is assigned a credit more, which the frame itself backs if the hop receives it. So
    /// packet and credit arrive together, as the paper has it. `assigned_in_flight` counts the
    /// frames in flight that do so already, by hop.
    pub(crate) fn announce(
        &self,
        generation: u32,
        assigned_in_flight: [u16; MAX_HOPS],
        max_generations: usize,
    ) -> Announcement {
        let Some(own) = self.generations.get(&generation) else { return Announcement::default() };

        // The hop with most credits that it was not told of yet gets the assignment.
        let unannounced = |hop: &usize| {
            own.transferred[*hop].saturating_sub(own.announced[*hop] + assigned_in_flight[*hop])
        };
        let assigned_hop =
            (0..self.hops).max_by_key(unannounced).filter(|hop| unannounced(hop) > 0);
        let mut totals = own.announced;
        if let Some(hop) = assigned_hop {
            totals[hop] += 1;
        }

        // Other generations are repeated as long as some hop does not know all of them: the frame
        // that announced them may have been lost.
        let others = self.generations.iter().filter(|(number, ledger)| {
            **number != generation && (0..self.hops).any(|hop| !ledger.is_acknowledged(hop))
        });
        let others = others.map(|(number, ledger)| (*number, ledger.announced));
        let all = core::iter::once((generation, totals)).chain(others).take(max_generations);
        let credits = all.map(|(generation, totals)| GenerationCredits {
            generation,
            by_hop: totals[..self.hops].to_vec(),
        });

        Announcement { credits: credits.collect(), assigned_hop }
    }

    // ---- feedback

    /// Sets the number of credits that a hop reports to hold.
    pub(crate) fn handle_backlog(&mut self, hop: usize, credits: u32) {
        (self.reported[hop], self.acknowledged_since[hop]) = (credits, 0);
    }

    /// Updates the average of a hop's reception with whether it received a frame.
    pub(crate) fn note_outcome(&mut self, hop: usize, received: bool) {
        self.missed[hop] = if received { 0 } else { self.missed[hop].saturating_add(1) };
        self.quality[hop].add(f64::from(u8::from(received)));
    }

    fn is_gone(&self, hop: usize) -> bool {
        self.missed[hop] >= GONE_AFTER
    }

    /// Replaces the frames that some hop has not reported on.
    pub(crate) fn set_pending<'a>(&mut self, frames: impl Iterator<Item = PendingFrame<'a>>) {
        self.generations.values_mut().for_each(Ledger::clear_pending);
        let mut quality = [0.0; 1 << MAX_HOPS];
        for set in HopSet::nonempty(self.hops) {
            quality[set.index()] = self.quality_of(set) as f32;
        }

        // Most frames in the log are settled, and all hops have reported on them.
        let all = HopSet::all(self.hops);
        let is_pending =
            |frame: &PendingFrame<'_>| frame.in_flight || !all.without(frame.resolved).is_empty();
        for frame in frames.filter(is_pending) {
            if let Some(ledger) = self.generations.get_mut(&frame.generation) {
                ledger.add_pending(&frame, &quality);
            }
        }
    }

    /// Handles news of who received a frame.
    pub(crate) fn handle_reception(&mut self, reception: &Reception) {
        let backlogs = self.backlogs();
        let Some(ledger) = self.generations.get_mut(&reception.generation) else { return };
        ledger.receive(reception);
        ledger.announce_backed(&backlogs);
    }

    /// Announces credits of all generations that deliveries back, after frames were resolved.
    pub(crate) fn announce_backed(&mut self) {
        let backlogs = self.backlogs();
        self.generations.values_mut().for_each(|ledger| ledger.announce_backed(&backlogs));
    }

    /// Notes that a hop received a frame, and so knows what it announced.
    pub(crate) fn acknowledge(&mut self, hop: usize, announced: &[GenerationCredits]) {
        for credits in announced {
            let ledger = self.generations.get_mut(&credits.generation);
            let (Some(ledger), Some(total)) = (ledger, credits.by_hop.get(hop)) else { continue };

            // Credits may have moved away from the hop since the frame was sent.
            let before = ledger.acknowledged[hop];
            ledger.acknowledged[hop] = before.max((*total).min(ledger.announced[hop]));
            if self.destination != Some(hop) {
                self.acknowledged_since[hop] += u32::from(ledger.acknowledged[hop] - before);
            }
        }
    }
}

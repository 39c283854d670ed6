//! Credits: who is to transfer how many packets, and what next hops have yet to receive (MC2, 3.4).
//!
//! Where this leaves the paper: ERRATA.md.

use super::ledger::{Ledger, Reception, Unclear, members};
use super::paths::MAX_HOPS;
use ncmesh_engine::rng;
use rand_core::RngCore;
use std::collections::BTreeMap;

/// A hop that missed so many frames in a row is taken for gone: one that hears a twentieth misses so many once in 700 times.
const GONE_AFTER: u16 = 128;
/// A hop from which one frame of two arrives has sent one for each that did, and twice as many are nothing unusual.
const UNHEARD_SENT: f64 = 2.0;
/// Weight of the newest frame in what is known of a hop's reception.
const QUALITY_WEIGHT: f64 = 1.0 / 32.0;

/// The credits of one flow at one node.
#[derive(Debug)]
pub(super) struct Credits {
    hops: usize,
    /// The flow's destination, if it is one of the hops: there credits end, and nobody need tell it of them.
    end: Option<usize>,
    generations: BTreeMap<u32, Ledger>,
    /// What share of this node's frames each hop receives.
    quality: [f64; MAX_HOPS],
    /// What share of each hop's frames this node receives, by the link state.
    back: [f64; MAX_HOPS],
    /// How many it missed in a row.
    missed: [u16; MAX_HOPS],
    /// |C| of each hop as it last said; 0 of the destination.
    said: [u32; MAX_HOPS],
    /// Credits that it learned of since.
    since: [u32; MAX_HOPS],
}

impl Credits {
    /// None yet, towards next hops that receive as much as `quality` says, `end` of them the destination. Links back are taken to
    /// be as good as those there.
    pub(super) fn new(quality: &[f64], end: Option<usize>) -> Self {
        let hops = quality.len().min(MAX_HOPS);
        let mut known = [0.0; MAX_HOPS];
        known[..hops].copy_from_slice(&quality[..hops]);
        let (generations, missed) = (BTreeMap::new(), [0; MAX_HOPS]);
        let (said, since) = ([0; MAX_HOPS], [0; MAX_HOPS]);
        let back = [1.0; MAX_HOPS];
        Self { hops, end, generations, quality: known, back, missed, said, since }
    }

    /// Links back from the hops deliver as much as `back` says, if those there deliver no less.
    pub(super) fn hears(&mut self, back: &[f64]) {
        self.back.iter_mut().zip(back).for_each(|(known, back)| *known = *back);
    }

    /// |C(n, c)|.
    pub(super) fn held(&self) -> u32 {
        self.generations.values().map(|ledger| ledger.held).sum()
    }

    /// Takes in credits for a generation.
    pub(super) fn add(&mut self, generation: u32, credits: u32) {
        let hops = self.hops;
        let ledger = self.generations.entry(generation).or_insert_with(|| Ledger::new(hops));
        ledger.held += credits;
        ledger.taken += credits;
    }

    /// Credits of a generation that were ever taken in.
    pub(super) fn taken(&self, generation: u32) -> u32 {
        self.generations.get(&generation).map_or(0, |ledger| ledger.taken)
    }

    /// A hop says how many credits it holds.
    pub(super) fn hear(&mut self, hop: usize, credits: u32) {
        (self.said[hop], self.since[hop]) = (credits, 0);
    }

    /// Transfers credits by the forwarding decision RD (eq. 7) while it holds for some hop, at random where for several.
    /// Says whether any were.
    pub(super) fn transfer(&mut self, rng: &mut impl RngCore) -> bool {
        let mut any = false;
        let (held, theirs) = (self.held(), self.all_theirs());
        while let Some((generation, hop)) = self.decide(rng) {
            let Some(ledger) = self.generations.get_mut(&generation) else { break };
            ledger.held -= 1;
            ledger.given[hop] += 1;
            ledger.tell(self.hops, (held, &theirs));
            any = true;
        }
        any
    }

    fn decide(&self, rng: &mut impl RngCore) -> Option<(u32, usize)> {
        let is_open = |ledger: &Ledger| ledger.held > 0;
        let (generation, ledger) = self.generations.iter().find(|(_, ledger)| is_open(ledger))?;
        let held = f64::from(self.held());
        let takes = |hop: &usize| {
            let may = !self.is_gone(*hop) && ledger.given[*hop] < u16::MAX;
            may && held > self.load(*hop)
        };
        let willing: Vec<usize> = (0..self.hops).filter(takes).collect();
        match willing.len() {
            0 => None,
            n => Some((*generation, willing[(rng::unit(rng) * n as f64) as usize])),
        }
    }

    /// |C(m, c)| as far as this node knows: what the hop last said, and what it learned of since but for what it may have
    /// sent on in frames that were not heard here.
    fn theirs(&self, hop: usize) -> u32 {
        let heard = self.quality[hop].min(self.back[hop]);
        let unheard = (UNHEARD_SENT / heard.max(f64::EPSILON)) as u32;
        self.said[hop] + self.since[hop].saturating_sub(unheard)
    }

    fn all_theirs(&self) -> [u32; MAX_HOPS] {
        core::array::from_fn(|hop| self.theirs(hop))
    }

    /// |C(m, c)| + |CTC(n, c, m)|, as this node knows them.
    fn load(&self, hop: usize) -> f64 {
        let unlearned =
            |ledger: &Ledger| if self.end == Some(hop) { 0 } else { ledger.unlearned(hop) };
        let owed = |ledger: &Ledger| -> f64 {
            let sets = (1..1 << self.hops).filter(|set| set >> hop & 1 == 1);
            sets.map(|set| ledger.outstanding(set)).sum::<f64>() + f64::from(unlearned(ledger))
        };
        f64::from(self.theirs(hop)) + self.generations.values().map(owed).sum::<f64>()
    }

    fn is_gone(&self, hop: usize) -> bool {
        self.missed[hop] >= GONE_AFTER
    }

    /// Q(n, J): how likely at least one of a set receives a frame.
    fn quality_of(&self, set: usize) -> f64 {
        1.0 - members(set).map(|hop| 1.0 - self.quality[hop]).product::<f64>()
    }

    /// How likely any of the hops receives a frame.
    pub(super) fn quality_of_all(&self) -> f64 {
        self.quality_of((1 << self.hops) - 1)
    }

    /// The generation to send from, the oldest of which packets are owed, and W(n, c) of all.
    pub(super) fn due(&self) -> Option<(u32, f64)> {
        let mut oldest = None;
        let mut weight = 0.0;
        for (generation, ledger) in &self.generations {
            let own = self.weight(ledger);
            if own > 0.0 {
                oldest = oldest.or(Some(*generation));
                weight += own;
            }
        }
        Some((oldest?, weight))
    }

    fn weight(&self, ledger: &Ledger) -> f64 {
        let owed = |set: usize| {
            let owed = ledger.outstanding(set);
            let all_gone = members(set).all(|hop| self.is_gone(hop));
            if owed > 0.5 && !all_gone { owed * self.quality_of(set) } else { 0.0 }
        };
        (1..1 << self.hops).map(owed).sum()
    }

    /// The oldest generation of which a hop that hears has received a packet and does not know of the credit for it.
    pub(super) fn untold(&self) -> Option<u32> {
        let open = |ledger: &Ledger| {
            (0..self.hops)
                .any(|hop| self.end != Some(hop) && !self.is_gone(hop) && !ledger.is_told(hop))
        };
        self.generations.iter().find(|(_, ledger)| open(ledger)).map(|(generation, _)| *generation)
    }

    /// The oldest generation of which anything is owed, though nothing be due, or credits are held that no hop seems there
    /// to take; and how much, so that it is tried where others always have something to send.
    pub(super) fn owing(&self) -> Option<(u32, f64)> {
        let full = (1 << self.hops) - 1;
        let stranded = (0..self.hops).all(|hop| self.is_gone(hop));
        let open = |ledger: &Ledger| ledger.owed(full) + if stranded { ledger.held } else { 0 };
        let mut all =
            self.generations.iter().map(|(generation, ledger)| (*generation, open(ledger)));
        all.find(|(_, open)| *open > 0).map(|(generation, open)| (generation, f64::from(open)))
    }

    /// What a frame of `generation` is to announce: of it, and of the oldest others of which a hop does not know all. Of
    /// the frame's own generation one hop, the nominee, is told of a credit more, which this very frame backs if the hop
    /// receives it. `nominated` says how many frames in the air do so for each hop.
    pub(super) fn announce(
        &self,
        generation: u32,
        nominated: [u16; MAX_HOPS],
        most: usize,
    ) -> (Vec<(u32, Vec<u16>)>, Option<usize>) {
        let Some(own) = self.generations.get(&generation) else { return (Vec::new(), None) };
        let mut told = own.told;
        let untold = |hop: &usize| own.given[*hop].saturating_sub(own.told[*hop] + nominated[*hop]);
        let nominee = (0..self.hops).max_by_key(untold).filter(|hop| untold(hop) > 0);
        nominee.iter().for_each(|hop| told[*hop] += 1);
        let others = self.generations.iter().filter(|(g, ledger)| {
            **g != generation && (0..self.hops).any(|hop| !ledger.is_told(hop))
        });
        let others = others.map(|(generation, ledger)| (*generation, ledger.told));
        let all = core::iter::once((generation, told)).chain(others).take(most);
        (all.map(|(generation, told)| (generation, told[..self.hops].to_vec())).collect(), nominee)
    }

    /// These frames are not known to have been received by all who may have.
    pub(super) fn expect<'a>(&mut self, frames: impl Iterator<Item = Unclear<'a>>) {
        self.generations.values_mut().for_each(Ledger::expect_nothing);
        for frame in frames {
            let likely = (0..1 << self.hops).map(|set| {
                if set & usize::from(frame.heard) == 0 { self.quality_of(set) as f32 } else { 0.0 }
            });
            let likely: Vec<f32> = likely.collect();
            let ledger = self.generations.get_mut(&frame.generation);
            ledger.into_iter().for_each(|ledger| ledger.expect(&frame, &likely));
        }
    }

    /// Tells hops of what is backed now that more is known of who received what.
    pub(super) fn tell(&mut self) {
        let (hops, held, theirs) = (self.hops, self.held(), self.all_theirs());
        self.generations.values_mut().for_each(|ledger| ledger.tell(hops, (held, &theirs)));
    }

    /// Hops `new` received the frame `serial`, of `generation`, that `before` had received already. The frame told a nominee
    /// of a credit, if it is among them.
    pub(super) fn receive(&mut self, received: &Reception) {
        let (hops, held, theirs) = (self.hops, self.held(), self.all_theirs());
        let Some(ledger) = self.generations.get_mut(&received.generation) else { return };
        ledger.receive(received);
        ledger.tell(hops, (held, &theirs));
    }

    /// A hop knows what a frame announced.
    pub(super) fn learn(&mut self, hop: usize, announced: &[(u32, Vec<u16>)]) {
        for (generation, given) in announced {
            if let (Some(ledger), Some(given)) =
                (self.generations.get_mut(generation), given.get(hop))
            {
                let before = ledger.learned[hop];
                ledger.learned[hop] = before.max((*given).min(ledger.told[hop]));
                if self.end != Some(hop) {
                    self.since[hop] += u32::from(ledger.learned[hop] - before);
                }
            }
        }
    }

    /// It is known whether a hop received a frame.
    pub(super) fn observe(&mut self, hop: usize, heard: bool) {
        self.missed[hop] = if heard { 0 } else { self.missed[hop].saturating_add(1) };
        let quality = &mut self.quality[hop];
        *quality += QUALITY_WEIGHT * (f64::from(u8::from(heard)) - *quality);
    }

    /// Goes on with other hops: what they do not know of is this node's again.
    pub(super) fn follow(&mut self, quality: &[f64], end: Option<usize>) {
        let back = self.generations.iter().map(|(g, ledger)| (*g, ledger.remaining(self.end)));
        let back: Vec<(u32, u32)> = back.collect();
        *self = Self::new(quality, end);
        back.into_iter().filter(|(_, held)| *held > 0).for_each(|(g, held)| self.add(g, held));
    }

    /// Forgets generations before `oldest`. Says how many credits are lost so.
    pub(super) fn forget(&mut self, oldest: u32) -> u32 {
        let kept = self.generations.split_off(&oldest);
        let gone = core::mem::replace(&mut self.generations, kept);
        gone.values().map(|ledger| ledger.remaining(self.end)).sum()
    }
}

//! What a node has heard of one before it on a flow's paths.

use super::frame::{Header, Heard};
use super::generation::Generation;
use crate::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// After so many of its frames an upstream node that asks is answered, if no data has done so, or after so long.
const REPORT_EACH: u32 = 8;
const REPORT_AFTER: Duration = Duration::from_millis(50);
/// One that waits for it is answered by its first next hop at once, by each other one so much later: what two that do not
/// hear each other say at the same time nobody hears.
const STAGGER: Duration = Duration::from_millis(2);

/// One upstream node.
#[derive(Debug)]
pub(super) struct Upstream {
    /// Which start of it this is: another one numbers its frames anew.
    epoch: u64,
    heard: Heard,
    /// Frames since its last answer, if it wants one.
    pub unanswered: u32,
    /// It wants answers. Frames for others tell it again what was told: they may be lost.
    pub asks: bool,
    /// When it is to be answered at the latest.
    answer_at: Option<Instant>,
    /// Of which choice of paths its announcements are.
    revision: u8,
    /// By generation, credits it has announced to this node.
    announced: BTreeMap<u32, u16>,
}

impl Upstream {
    /// Of which a first frame is heard.
    pub(super) fn new(
        (node, epoch): (NodeId, u64),
        header: &Header,
        me: NodeId,
        now: Instant,
    ) -> Self {
        let heard = Heard { of: node, latest: header.serial, before: 0 };
        let (unanswered, revision) = (u32::from(header.asks), header.revision);
        let answer_at = header.asks.then(|| now + delay(node, header, me));
        let asks = header.asks;
        Self { epoch, heard, unanswered, asks, answer_at, revision, announced: BTreeMap::new() }
    }

    pub(super) fn is_of(&self, epoch: u64) -> bool {
        self.epoch == epoch
    }

    /// Notes another frame. Says whether it is the first of its number.
    pub(super) fn note(&mut self, header: &Header, me: NodeId, now: Instant) -> bool {
        let ahead = header.serial.wrapping_sub(self.heard.latest);
        let behind = self.heard.latest.wrapping_sub(header.serial);
        if ahead == 0 {
            return false;
        }
        if ahead <= u16::MAX / 2 {
            let shifted = self.heard.before.checked_shl(u32::from(ahead)).unwrap_or(0);
            let latest = 1u32.checked_shl(u32::from(ahead) - 1).unwrap_or(0);
            self.heard.before = shifted | latest;
            self.heard.latest = header.serial;
        } else if let Some(bit) = 1u32.checked_shl(u32::from(behind) - 1) {
            if self.heard.before & bit != 0 {
                return false;
            }
            self.heard.before |= bit;
        }
        let at = now + delay(self.heard.of, header, me);
        self.answer_at = header.asks.then(|| self.answer_at.map_or(at, |before| before.min(at)));
        self.asks = header.asks;
        self.unanswered = if header.asks { self.unanswered + 1 } else { 0 };
        true
    }

    pub(super) fn owes_report(&self, now: Instant) -> bool {
        self.unanswered >= REPORT_EACH || self.reports_at().is_some_and(|at| at <= now)
    }

    /// When it is answered at the latest.
    pub(super) fn reports_at(&self) -> Option<Instant> {
        self.answer_at
    }

    pub(super) fn report(&mut self) -> Heard {
        self.unanswered = 0;
        self.answer_at = None;
        self.heard
    }

    /// Takes in what a frame says this node, the `hop`-th of the sender's, was given. More credits of a generation than
    /// it can have packets eight times over are a lie: some it is asked for again. Says whether there was none.
    pub(super) fn learn(
        &mut self,
        header: &Header,
        hop: usize,
        generations: &mut BTreeMap<u32, Generation>,
    ) -> bool {
        let newer = header.revision.wrapping_sub(self.revision);
        if newer > u8::MAX / 2 {
            return true;
        }
        if newer != 0 {
            self.revision = header.revision;
            self.announced.clear();
        }
        let mut honest = true;
        for (generation, given) in &header.announced {
            let Some(given) = given.get(hop).copied() else { continue };
            if given > 8 * u16::from(header.room) {
                honest = false;
                continue;
            }
            let Some(kept) = generations.get_mut(generation) else { continue };
            let known = self.announced.entry(*generation).or_default();
            kept.announced += u32::from(given.saturating_sub(*known));
            *known = given.max(*known);
        }
        honest
    }

    pub(super) fn forget(&mut self, oldest: u32) {
        self.announced = self.announced.split_off(&oldest);
    }
}

/// After what time `me` answers a frame of `node`.
fn delay(node: NodeId, header: &Header, me: NodeId) -> Duration {
    if !header.waits {
        return REPORT_AFTER;
    }
    let place = header.paths.next_hops(node).iter().position(|hop| *hop == me);
    STAGGER * place.unwrap_or(0) as u32
}

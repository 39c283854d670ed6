//! What a node has heard of one before it on a flow's paths.

use super::frame::{Header, Heard};
use super::generation::Generation;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// After so many of its frames an upstream node that asks is answered, if no data has done so, or after so long.
const REPORT_EACH: u32 = 8;
const REPORT_AFTER: Duration = Duration::from_millis(50);
/// One that waits for it is answered by its first next hop at once, by each other one so much later, and so in turn again: what
/// two that do not hear each other say at the same time nobody hears.
const STAGGER: Duration = Duration::from_millis(2);
/// It is answered so often, unless it goes on, that it hears none of the answers with a chance of no more than this.
const UNHEARD: f64 = 0.1;
/// But no more often.
const MOST_ANSWERS: u32 = 8;

/// What an upstream node is to be told, of which it may hear nothing.
#[derive(Clone, Copy, Debug)]
struct Answer {
    at: Instant,
    /// How often it is yet to be said.
    left: u32,
    /// After what time once more.
    pause: Duration,
    said: bool,
}

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
    /// What it is owed, if anything.
    answer: Option<Answer>,
    /// How likely it hears a frame of this node.
    hears: f64,
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
        (me, hears): (NodeId, f64),
        now: Instant,
    ) -> Self {
        let heard = Heard { of: node, latest: header.serial, before: 0 };
        let (unanswered, revision) = (u32::from(header.asks), header.revision);
        let mut new = Self {
            epoch,
            heard,
            unanswered,
            asks: header.asks,
            answer: None,
            hears,
            revision,
            announced: BTreeMap::new(),
        };
        new.owe(header, me, now);
        new
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
        self.owe(header, me, now);
        self.asks = header.asks;
        self.unanswered = if header.asks { self.unanswered + 1 } else { 0 };
        true
    }

    /// A frame of it is to be answered, if it asks for that. What was said already it seems to have heard, if it goes on.
    fn owe(&mut self, header: &Header, me: NodeId, now: Instant) {
        let hops = header.paths.next_hops(self.heard.of);
        let place = hops.iter().position(|hop| *hop == me).unwrap_or(0);
        let (after, left) = if header.waits {
            (STAGGER * place as u32, answers(self.hears))
        } else {
            (REPORT_AFTER, 1)
        };
        let pending = self.answer.filter(|answer| !answer.said).map(|answer| answer.at);
        let at = pending.map_or(now + after, |at| at.min(now + after));
        let pause = STAGGER * hops.len() as u32;
        self.answer = header.asks.then_some(Answer { at, left, pause, said: false });
    }

    pub(super) fn owes_report(&self, now: Instant) -> bool {
        self.unanswered >= REPORT_EACH || self.reports_at().is_some_and(|at| at <= now)
    }

    /// When it is answered at the latest.
    pub(super) fn reports_at(&self) -> Option<Instant> {
        self.answer.map(|answer| answer.at)
    }

    pub(super) fn report(&mut self, now: Instant) -> Heard {
        self.unanswered = 0;
        let again = self.answer.filter(|answer| answer.left > 1);
        self.answer = again.map(|answer| Answer {
            at: now + answer.pause,
            left: answer.left - 1,
            said: true,
            ..answer
        });
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

/// How often something is said to one that `hears` a frame with that chance.
fn answers(hears: f64) -> u32 {
    (1..MOST_ANSWERS)
        .find(|said| libm::pow(1.0 - hears, f64::from(*said)) <= UNHEARD)
        .unwrap_or(MOST_ANSWERS)
}

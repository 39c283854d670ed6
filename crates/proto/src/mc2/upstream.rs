//! What a node has heard of one before it on a flow's paths.

use super::frame::{Header, Heard};
use super::generation::Generation;
use crate::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// After so many of its frames an upstream node that asks is answered, if no data has done so, or after so long.
const REPORT_EACH: u32 = 8;
const REPORT_AFTER: Duration = Duration::from_millis(5);

/// One upstream node.
#[derive(Debug)]
pub(super) struct Upstream {
    heard: Heard,
    /// Frames since its last answer, if it wants one.
    pub unanswered: u32,
    /// When the first of them came.
    since: Instant,
    /// Of which choice of paths its announcements are.
    revision: u8,
    /// By generation, credits it has announced to this node.
    announced: BTreeMap<u32, u16>,
}

impl Upstream {
    /// Of which a first frame is heard.
    pub(super) fn new(node: NodeId, header: &Header, now: Instant) -> Self {
        let heard = Heard { of: node, latest: header.serial, before: 0 };
        let (unanswered, revision) = (u32::from(header.asks), header.revision);
        Self { heard, unanswered, since: now, revision, announced: BTreeMap::new() }
    }

    /// Notes another frame. Says whether it is the first of its number.
    pub(super) fn note(&mut self, header: &Header, now: Instant) -> bool {
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
        if self.unanswered == 0 {
            self.since = now;
        }
        self.unanswered = if header.asks { self.unanswered + 1 } else { 0 };
        true
    }

    pub(super) fn owes_report(&self, now: Instant) -> bool {
        self.unanswered >= REPORT_EACH || self.reports_at().is_some_and(|at| at <= now)
    }

    /// When it is answered at the latest.
    pub(super) fn reports_at(&self) -> Option<Instant> {
        (self.unanswered > 0).then(|| self.since + REPORT_AFTER)
    }

    pub(super) fn report(&mut self) -> Heard {
        self.unanswered = 0;
        self.heard
    }

    /// Takes in what a frame says this node, the `hop`-th of the sender's, was given. More credits of a generation than
    /// it can have packets twice over are a lie. Says whether there was none.
    pub(super) fn learn(
        &mut self,
        header: &Header,
        hop: usize,
        generations: &mut BTreeMap<u32, Generation>,
    ) -> bool {
        if header.revision != self.revision {
            self.revision = header.revision;
            self.announced.clear();
        }
        let mut honest = true;
        for (generation, given) in &header.announced {
            let Some(given) = given.get(hop).copied() else { continue };
            if given > 2 * u16::from(header.room) {
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

//! Announcements under way: every node passes on what is new.

use super::frame::{Announce, Phase};
use crate::flood::Flood;
use crate::time::Instant;
use ncmesh_wire::{FlowId, NodeId};
use rand_core::RngCore;
use std::collections::{BTreeMap, BTreeSet};

/// More transfers than this are not remembered; those that ended make room first.
const MAX_KEPT: usize = 256;

/// What a node knows of announced transfers.
#[derive(Debug)]
pub(super) struct Announces {
    kept: BTreeMap<FlowId, Announce>,
    flood: Flood<FlowId, (u64, u32)>,
}

/// What became of an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    New,
    Known,
    Full,
}

impl Announces {
    pub(super) fn new() -> Self {
        Self { kept: BTreeMap::new(), flood: Flood::new() }
    }

    /// An announcement was heard from `neighbor`, or made here (`None`).
    pub(super) fn take(
        &mut self,
        announce: &Announce,
        neighbor: Option<NodeId>,
        now: Instant,
        rng: &mut impl RngCore,
    ) -> Heard {
        let flow = announce.manifest.flow;
        let newer = self.kept.get(&flow).is_none_or(|known| announce.version > known.version);
        if newer {
            if !self.make_room(flow) {
                return Heard::Full;
            }
            self.kept.insert(flow, announce.clone());
            self.flood.publish(flow, announce.version, now, rng);
        }
        if let Some(neighbor) = neighbor {
            self.flood.overheard(&flow, &announce.version, neighbor);
        }
        if newer { Heard::New } else { Heard::Known }
    }

    /// Stops passing on what all `neighbors` have.
    pub(super) fn settle(&mut self, neighbors: &BTreeSet<NodeId>) {
        self.flood.settle(neighbors);
    }

    /// When, later than `after`, one falls due.
    pub(super) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        self.flood.poll_timeout(after)
    }

    /// The announcement to pass on next.
    pub(super) fn due(&self, now: Instant) -> Option<&Announce> {
        self.flood.due(now).find_map(|flow| self.kept.get(flow))
    }

    /// It was sent.
    pub(super) fn sent(&mut self, flow: FlowId, now: Instant, rng: &mut impl RngCore) {
        self.flood.sent(&flow, now, rng);
    }

    fn make_room(&mut self, flow: FlowId) -> bool {
        if self.kept.len() < MAX_KEPT || self.kept.contains_key(&flow) {
            return true;
        }
        let ended = self.kept.iter().find(|(_, a)| a.phase != Phase::Open).map(|(flow, _)| *flow);
        if let Some(ended) = ended {
            self.kept.remove(&ended);
            self.flood.withdraw(&ended);
        }
        ended.is_some()
    }
}

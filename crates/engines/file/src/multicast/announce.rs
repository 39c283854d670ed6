//! Announcements under way: every node passes on what is new.

use super::frame::{Announce, Phase};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::flood::Flood;
use ncmesh_wire::{FlowId, NodeId};
use rand_core::RngCore;
use std::collections::{BTreeMap, BTreeSet};

/// More transfers than this are not remembered. Those that ended make room first, then those whose source is
/// silent.
const MAX_KEPT: usize = 256;
/// A source unheard for so long is silent, and what is kept of its transfers makes room for others: it repeats
/// an announcement every few seconds.
pub(super) const SILENT: Duration = Duration::from_secs(60);

/// What a node knows of announced transfers.
#[derive(Debug)]
pub(super) struct Announces {
    kept: BTreeMap<FlowId, Kept>,
    flood: Flood<FlowId, (u64, u32)>,
}

#[derive(Debug)]
struct Kept {
    announce: Announce,
    heard_at: Instant,
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
        let known = self.kept.get(&flow).map(|known| known.announce.version);
        let newer = known.is_none_or(|version| announce.version > version);
        if newer {
            if !self.make_room(flow, neighbor.is_none(), now) {
                return Heard::Full;
            }
            self.kept.insert(flow, Kept { announce: announce.clone(), heard_at: now });
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
        self.flood.due(now).find_map(|flow| self.kept.get(flow)).map(|kept| &kept.announce)
    }

    /// It was sent.
    pub(super) fn sent(&mut self, flow: FlowId, now: Instant, rng: &mut impl RngCore) {
        self.flood.sent(&flow, now, rng);
    }

    /// Room for one more: this node's `own` always gets it, another's only where nobody misses what goes.
    fn make_room(&mut self, flow: FlowId, own: bool, now: Instant) -> bool {
        if self.kept.len() < MAX_KEPT || self.kept.contains_key(&flow) {
            return true;
        }
        let rank = |kept: &Kept| (kept.announce.phase == Phase::Open, kept.heard_at);
        let oldest = self.kept.iter().min_by_key(|(_, kept)| rank(kept));
        let Some((gone, kept)) = oldest.map(|(flow, kept)| (*flow, kept)) else { return true };
        let is_missed = kept.announce.phase == Phase::Open && now.since(kept.heard_at) < SILENT;
        if is_missed && !own {
            return false;
        }
        self.kept.remove(&gone);
        self.flood.withdraw(&gone);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::file::{Geometry, Manifest};
    use ncmesh_engine::rng::stream;

    fn announce(source: u16, serial: u32) -> Announce {
        let manifest = Manifest {
            flow: FlowId { source: NodeId(source), serial },
            name: "f".into(),
            geometry: Geometry::new(300, 2, 100).unwrap(),
            root: [0; 32],
            hash: [0; 32],
        };
        Announce { version: (1, 1), phase: Phase::Open, open: false, manifest, receivers: vec![] }
    }

    #[test]
    fn transfers_of_silent_sources_make_room_and_those_of_others_do_not() {
        let mut rng = stream(1, NodeId(1), "test", "announces");
        let mut announces = Announces::new();
        let (start, later) = (Instant::default(), Instant::default() + SILENT);
        let other = Some(NodeId(9));
        for serial in 0..MAX_KEPT as u32 {
            assert_eq!(announces.take(&announce(9, serial), other, start, &mut rng), Heard::New);
        }
        assert_eq!(announces.take(&announce(8, 1), other, start, &mut rng), Heard::Full);
        assert_eq!(announces.take(&announce(1, 1), None, start, &mut rng), Heard::New);
        assert_eq!(announces.take(&announce(8, 1), other, later, &mut rng), Heard::New);
        assert_eq!(announces.kept.len(), MAX_KEPT);
    }
}

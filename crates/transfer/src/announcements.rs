//! Announcements on their way through the mesh.
//!
//! A node keeps the latest announcement of every transfer it has heard of and floods each new
//! version: it repeats it until it has overheard every neighbour do the same. The flood itself is
//! the toolkit's; this module adds the announcements and a bound on their number.

use crate::admission::Admission;
use crate::frame::{Announcement, TransferPhase, Version};
use ncmesh_engine::Background;
use ncmesh_engine::file::Manifest;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::flood::Flood;
use ncmesh_wire::{FlowId, NodeId};
use rand_core::RngCore;
use std::collections::BTreeMap;

/// Most transfers that a node keeps an announcement of.
const MAX_KEPT: usize = 256;
/// Most neighbours that are remembered to have announced a transfer. The first ones are nearest to
/// the source.
const MAX_WAYS_BACK: usize = 8;
/// Silence after which a source counts as gone, and its transfers make room for others. A live
/// source repeats an announcement every few seconds.
pub(crate) const SILENT: Duration = Duration::from_secs(60);
/// Silence after which another file may be announced under the id of a transfer. A file that a
/// member announced in the name of a source then gives way to the true one, and a true one never to
/// a false one while its source is there.
pub(crate) const DISPUTED: Duration = Duration::from_secs(20);

/// Announcements that this node knows and passes on.
#[derive(Debug)]
pub struct Announcements {
    kept: BTreeMap<FlowId, Kept>,
    flood: Flood<FlowId, Version>,
}

#[derive(Debug)]
struct Kept {
    announcement: Announcement,
    heard_at: Instant,
    /// Neighbours from which this version was heard before this node sent it, the first ones, in
    /// order. Those that sent it later may have it from here.
    from: Vec<NodeId>,
    /// Whether this node has sent this version.
    is_sent: bool,
}

impl Default for Announcements {
    fn default() -> Self {
        Self { kept: BTreeMap::new(), flood: Flood::new() }
    }
}

impl Announcements {
    /// Takes an announcement that was heard from `neighbour`, or made here (`None`), and begins to
    /// flood it if it is new. The file of a transfer does not change, whatever the version.
    pub(crate) fn admit(
        &mut self,
        announcement: &Announcement,
        neighbour: Option<NodeId>,
        now: Instant,
        rng: &mut impl RngCore,
    ) -> Admission {
        let flow = announcement.manifest.flow;
        let version = announcement.version;
        let kept = self.kept.get(&flow);
        let is_other = kept.is_some_and(|k| k.announcement.manifest != announcement.manifest);
        if is_other && kept.is_some_and(|kept| now.since(kept.heard_at) < DISPUTED) {
            return Admission::Disputed;
        }

        // A transfer keeps its file. Another one under its id is a lie, or a source that was
        // reinstalled: it is taken after a while of silence.
        let is_new = is_other || kept.is_none_or(|kept| version > kept.announcement.version);
        if is_new {
            let is_own = neighbour.is_none();
            if !self.make_room(flow, is_own, now) {
                return Admission::Full;
            }
            let announcement = announcement.clone();
            let from = Vec::new();
            self.kept.insert(flow, Kept { announcement, heard_at: now, from, is_sent: false });
            self.flood.publish(flow, version, now, rng);
        }

        // New or not: the neighbour has it, so it need not be repeated for its sake.
        if let Some(neighbour) = neighbour {
            let kept = self.kept.get_mut(&flow);
            let same = kept.filter(|kept| kept.announcement.version == version);
            let has_room = |kept: &&mut Kept| !kept.is_sent && kept.from.len() < MAX_WAYS_BACK;
            if let Some(kept) = same.filter(has_room)
                && !kept.from.contains(&neighbour)
            {
                kept.from.push(neighbour);
            }
            self.flood.overheard(&flow, &version, neighbour);
        }
        if is_new { Admission::New } else { Admission::Known }
    }

    /// Forgets what was announced of a transfer in an epoch after `epoch`: its source has had none.
    pub(crate) fn forget_after(&mut self, flow: FlowId, epoch: u64) {
        if self.kept.get(&flow).is_some_and(|kept| kept.announcement.version.epoch > epoch) {
            self.kept.remove(&flow);
            self.flood.withdraw(&flow);
        }
    }

    /// Returns whether a transfer was announced as another file than `manifest`.
    pub(crate) fn contradict(&self, manifest: &Manifest) -> bool {
        let kept = self.kept.get(&manifest.flow);
        kept.is_some_and(|kept| kept.announcement.manifest != *manifest)
    }

    /// Returns what a transfer that goes on was announced as, if it was.
    #[must_use]
    pub fn manifest(&self, flow: FlowId) -> Option<&Manifest> {
        let open = self.kept.get(&flow).map(|kept| &kept.announcement);
        open.filter(|a| a.phase == TransferPhase::Open).map(|a| &a.manifest)
    }

    /// Returns the neighbours from which the latest announcement of a transfer came before this
    /// node sent it, the first one first. From node to node they are a way back to the source.
    pub(crate) fn heard_from(&self, flow: FlowId) -> impl Iterator<Item = NodeId> + '_ {
        self.kept.get(&flow).into_iter().flat_map(|kept| kept.from.iter().copied())
    }

    /// Returns whether a transfer gives way to all else, and its bound on airtime.
    #[must_use]
    pub fn background(&self, flow: FlowId) -> Option<Background> {
        self.kept.get(&flow)?.announcement.background
    }

    /// Returns how many receivers the latest announcement of a transfer lists.
    #[must_use]
    pub fn receivers(&self, flow: FlowId) -> u32 {
        self.kept.get(&flow).map_or(0, |kept| kept.announcement.receivers.len() as u32)
    }

    /// Stops repeating announcements that all `neighbours` have.
    pub(crate) fn drop_acknowledged<I: Iterator<Item = NodeId>>(
        &mut self,
        neighbours: impl Fn() -> I,
    ) {
        self.flood.drop_acknowledged(neighbours);
    }

    /// Returns the first time later than `after` at which an announcement falls due.
    pub(crate) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        self.flood.poll_timeout(after)
    }

    /// Returns the announcement to send next, if one is due.
    pub(crate) fn due(&self, now: Instant) -> Option<&Announcement> {
        self.flood.due(now).find_map(|flow| self.kept.get(flow)).map(|kept| &kept.announcement)
    }

    /// Notes that the announcement of `flow` was sent.
    pub(crate) fn note_sent(&mut self, flow: FlowId, now: Instant, rng: &mut impl RngCore) {
        self.flood.sent(&flow, now, rng);
        if let Some(kept) = self.kept.get_mut(&flow) {
            kept.is_sent = true;
        }
    }

    /// Makes room for an announcement of `flow`; returns whether there is room. Unlike the
    /// toolkit's bounded tables it may refuse.
    ///
    /// A full table drops an ended transfer first, then the one that was silent longest. A transfer
    /// that is open and not silent goes only if the new one is this node's own.
    fn make_room(&mut self, flow: FlowId, is_own: bool, now: Instant) -> bool {
        if self.kept.len() < MAX_KEPT || self.kept.contains_key(&flow) {
            return true;
        }

        // An ended transfer is missed by nobody; one of a silent source is announced again if the
        // source comes back.
        let is_open = |kept: &Kept| kept.announcement.phase == TransferPhase::Open;
        let least_missed = self.kept.iter().min_by_key(|(_, kept)| (is_open(kept), kept.heard_at));
        let Some((victim, kept)) = least_missed.map(|(flow, kept)| (*flow, kept)) else {
            return true;
        };

        let is_live = is_open(kept) && now.since(kept.heard_at) < SILENT;
        if is_live && !is_own {
            return false;
        }
        self.kept.remove(&victim);
        self.flood.withdraw(&victim);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::file::Geometry;
    use ncmesh_engine::rng::stream;

    fn announcement(source: u16, serial: u32) -> Announcement {
        let manifest = Manifest {
            flow: FlowId { source: NodeId(source), serial },
            name: "f".into(),
            geometry: Geometry::new(300, 2, 100).unwrap(),
            root: [0; 32],
            hash: [0; 32],
        };
        Announcement {
            version: Version { epoch: 1, number: 1 },
            phase: TransferPhase::Open,
            open_to_all: false,
            background: None,
            manifest,
            receivers: vec![],
        }
    }

    #[test]
    fn the_way_back_leads_over_nodes_that_had_the_announcement_before() {
        let mut rng = stream(1, NodeId(1), "test", "announces");
        let now = Instant::default();
        let mut known = Announcements::default();
        let mut first = announcement(1, 1);
        let flow = first.manifest.flow;
        let hear = |known: &mut Announcements, heard: &Announcement, node, rng: &mut _| {
            known.admit(heard, Some(NodeId(node)), now, rng);
        };
        let ways =
            |known: &Announcements| known.heard_from(flow).map(|node| node.0).collect::<Vec<_>>();
        for node in [7, 5, 7] {
            hear(&mut known, &first, node, &mut rng);
        }
        known.note_sent(flow, now, &mut rng);
        hear(&mut known, &first, 9, &mut rng);
        assert_eq!(ways(&known), [7, 5], "node 9 may have it from here");
        let before = first.clone();
        first.version.number += 1;
        hear(&mut known, &first, 9, &mut rng);
        hear(&mut known, &before, 5, &mut rng);
        assert_eq!(ways(&known), [9]);
        for node in 20..40 {
            hear(&mut known, &first, node, &mut rng);
        }
        assert_eq!(ways(&known).len(), MAX_WAYS_BACK);
    }

    #[test]
    fn transfers_of_silent_sources_make_room_and_those_of_others_do_not() {
        let mut rng = stream(1, NodeId(1), "test", "announces");
        let mut announcements = Announcements::default();
        let start = Instant::default();
        let later = Instant::default() + SILENT;
        let other = Some(NodeId(9));
        for serial in 0..MAX_KEPT as u32 {
            assert_eq!(
                announcements.admit(&announcement(9, serial), other, start, &mut rng),
                Admission::New
            );
        }
        assert_eq!(
            announcements.admit(&announcement(8, 1), other, start, &mut rng),
            Admission::Full
        );
        assert_eq!(announcements.admit(&announcement(1, 1), None, start, &mut rng), Admission::New);
        assert_eq!(
            announcements.admit(&announcement(8, 1), other, later, &mut rng),
            Admission::New
        );
        assert_eq!(announcements.kept.len(), MAX_KEPT);
    }
}

//! This node as one that takes part in roll-outs: the state beside its [`Member`].

use super::clock::{moment, since_start};
use super::files::{image_name, manifest_name};
use super::search::Search;
use super::serve::Wishes;
use crate::config::MemberConfig;
use ncmesh_engine::file::Manifest;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_fleet::rollout::{Action, Facts, Member, SavedMember, Standing, Why};
use ncmesh_fleet::{Image, MAX_BYTES, ReleaseId, Version};
use ncmesh_wire::{FlowId, NodeId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsString;

/// Name of its file in the state directory.
pub(super) const STATE: &str = "fleet-member";
/// Pauses between attempts to save the state.
pub(super) const PAUSES: Backoff =
    Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(64) };

/// State that survives restarts.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Saved {
    #[serde(default)]
    pub(super) member: SavedMember,
    /// Node that the last order came from.
    #[serde(default)]
    operator: Option<u16>,
}

/// A node that takes part in roll-outs.
pub(super) struct MemberSide {
    pub(super) config: MemberConfig,
    pub(super) member: Member,
    /// Node that the last order came from.
    pub(super) operator: Option<NodeId>,
    /// Release whose manifest it waits for.
    pub(super) wanted: Option<ReleaseId>,
    /// Image that it waits for.
    pub(super) fetch: Option<Fetch>,
    /// Files that it receives for one of these.
    pub(super) arriving: BTreeSet<FlowId>,
    /// Whether the state is being saved. All other actions wait for it.
    pub(super) is_saving: bool,
    /// Whether files are being removed. All other actions wait for it.
    pub(super) is_discarding: bool,
    /// When the state is saved again after a failure.
    pub(super) save_at: Option<Instant>,
    pub(super) failures: u32,
    /// Whether an order came since the start.
    pub(super) is_told: bool,
    /// Its search for what it lacks, while the operator's node is gone.
    pub(super) search: Search,
    /// Files that other nodes have asked this one for.
    pub(super) wishes: Wishes,
    /// State that the operator knows, as far as this node can tell.
    pub(super) told: Option<(Standing, Option<Why>)>,
}

/// Image that is fetched, with the ticket of the action.
#[derive(Clone)]
pub(super) struct Fetch {
    pub(super) ticket: u64,
    pub(super) image: Image,
}

impl MemberSide {
    pub(super) fn new(
        now: Instant,
        node: NodeId,
        config: MemberConfig,
        running: Version,
        saved: Saved,
    ) -> Self {
        let facts = Facts {
            node: ncmesh_fleet::rollout::Node(node.0),
            model: config.model.clone(),
            name: config.name.clone(),
            channel: config.channel.clone(),
            running,
        };

        let trust = config.trust.clone();
        let operators = config.operators.clone();

        Self {
            member: Member::new(since_start(now), facts, trust, operators, saved.member),
            config,
            operator: saved.operator.map(NodeId),
            wanted: None,
            fetch: None,
            arriving: BTreeSet::new(),
            is_saving: false,
            is_discarding: false,
            save_at: None,
            failures: 0,
            is_told: false,
            search: Search::new(now),
            wishes: Wishes::default(),
            told: None,
        }
    }

    /// Returns the state to be saved.
    pub(super) fn save(&self, now: Instant) -> Saved {
        Saved {
            member: self.member.save(since_start(now)),
            operator: self.operator.map(|node| node.0),
        }
    }

    /// Returns when the driver has something to do for it.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let due = self.member.poll_timeout().map(moment);
        let search = self.search.poll_timeout();
        due.into_iter().chain(self.save_at).chain(search).chain(self.wishes.serve_at).min()
    }

    /// Returns the next thing to do, unless one before it is under way.
    pub(super) fn poll_action(&mut self) -> Option<Action> {
        if self.is_saving || self.is_discarding { None } else { self.member.poll_action() }
    }

    /// Returns whether it waits for this file.
    pub(super) fn wants(&self, file: &Manifest) -> bool {
        let size = file.geometry.size();
        let is_image = self.fetch.as_ref().is_some_and(|Fetch { image, .. }| {
            let is_named = file.name == image_name(image);
            is_named && file.hash == image.digests.blake3 && size == image.size
        });
        let is_manifest = self.wanted.is_some_and(|release| file.name == manifest_name(release));
        is_image || is_manifest && size <= MAX_BYTES as u64
    }

    /// Returns the environment of its hooks.
    pub(super) fn variables(&self, image: Option<&Image>) -> Vec<(&'static str, OsString)> {
        let facts = self.member.facts();
        let version = self.member.version().map_or("", Version::as_str);
        let image = image.map(|image| self.config.dir.join(image_name(image)));
        vec![
            ("NCMESH_IMAGE", image.unwrap_or_default().into()),
            ("NCMESH_MODEL", facts.model.clone().into()),
            ("NCMESH_VERSION", version.into()),
            ("NCMESH_RUNNING", facts.running.as_str().into()),
        ]
    }
}

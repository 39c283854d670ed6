//! This node as one that leads roll-outs: the state beside its [`Rollout`], which says whom to tell
//! orders and whom to send files.

use super::clock::{moment, since_start};
use super::events::Events;
use super::files::{image_name, manifest_name};
use super::serve::Wishes;
use crate::api::types::{ApiError, ErrorCode};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_fleet::Manifest;
use ncmesh_fleet::rollout::{
    self, ApplyError, Report, Rollout, Settings, Stage, Standing, Step, Why,
};
use ncmesh_wire::NodeId;
use ncmesh_wire::identity::SecretKey;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Name of its file in the state directory.
pub(super) const STATE: &str = "fleet-operator";
/// Name of the file in the state directory from which the manifest is sent.
pub(super) const MANIFEST: &str = "fleet-manifest";

/// Pause after which a node that can be reached and has not answered is told again. It doubles up
/// to [`LONGEST_PAUSE`]: a node without `[fleet]` never answers.
const FIRST_PAUSE: Duration = rollout::REPEAT_AFTER;
/// Longest pause between two orders to a node, which may have lost the state that it reported.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(80);
/// Time after a start in which transfers of the earlier one are resumed.
const RESUME: Duration = Duration::from_secs(10);
/// Priority of a manifest over other files: it is short, and the images wait for it.
pub(super) const MANIFEST_PRIORITY: u8 = 9;

/// State that survives restarts.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Saved {
    /// Number of the last roll-out.
    #[serde(default)]
    pub(super) number: u64,
    #[serde(default)]
    pub(super) lead: Option<SavedLead>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SavedLead {
    pub(super) rollout: Rollout,
    pub(super) manifest: String,
    pub(super) source: Source,
    pub(super) models: BTreeMap<rollout::Node, String>,
    #[serde(default)]
    pub(super) events: Events,
}

/// Where images come from and how they are sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Source {
    /// Directory with the files of the release.
    pub(crate) images: PathBuf,
    /// Most airtime that images may take in the background, percent. All of it if absent.
    pub(crate) background: Option<u8>,
    /// Whether nodes that come up later take part as well.
    pub(crate) is_open: bool,
}

/// A roll-out that is to begin.
pub(crate) struct Push {
    /// Its release.
    pub(crate) manifest: Manifest,
    /// Where its images come from.
    pub(crate) source: Source,
    /// Nodes that take part.
    pub(crate) nodes: Vec<NodeId>,
    /// How it goes.
    pub(crate) settings: Settings,
}

/// The operator's side of a node.
pub(super) struct OperatorSide {
    pub(super) key: SecretKey,
    pub(super) number: u64,
    pub(super) lead: Option<Lead>,
    /// Whether something changed since the state was saved.
    pub(super) is_changed: bool,
    pub(super) is_saving: bool,
}

/// A roll-out that this node leads.
pub(super) struct Lead {
    pub(super) rollout: Rollout,
    pub(super) manifest: Manifest,
    pub(super) source: Source,
    pub(super) told: BTreeMap<rollout::Node, Told>,
    pub(super) models: BTreeMap<rollout::Node, String>,
    /// When each node was heard last, since this start.
    pub(super) heard: BTreeMap<rollout::Node, Instant>,
    /// Files that nodes lack, by their last report.
    pub(super) wishes: Wishes,
    /// Changes of the roll-out and its nodes.
    pub(super) events: Events,
}

/// Last order to a node.
pub(super) struct Told {
    pub(super) task: Task,
    pub(super) at: Instant,
    pub(super) pause: Duration,
}

/// Task of one node in an order. An order with the same task need not be told to it at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    Stage,
    Apply,
    Keep,
    Abort,
    Rollback,
}

impl Task {
    pub(super) fn of(step: &Step, node: rollout::Node) -> Self {
        match step {
            Step::Apply { keep, .. } if keep.contains(&node) => Self::Keep,
            Step::Apply { apply, .. } if apply.contains(&node) => Self::Apply,
            Step::Stage | Step::Apply { .. } => Self::Stage,
            Step::Abort => Self::Abort,
            Step::Rollback => Self::Rollback,
        }
    }
}

impl OperatorSide {
    pub(super) fn new(now: Instant, key: SecretKey, saved: Saved) -> Self {
        let lead = saved.lead.and_then(|saved| Lead::restore(now, saved));
        Self { key, number: saved.number, lead, is_changed: false, is_saving: false }
    }

    /// Returns when the driver has something to do for it.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let lead = self.lead.as_ref()?;
        let rollout = lead.rollout.poll_timeout().map(moment);
        rollout.into_iter().chain(lead.wishes.serve_at).min()
    }
}

impl Lead {
    pub(super) fn new(rollout: Rollout, manifest: Manifest, source: Source) -> Self {
        Self {
            rollout,
            manifest,
            source,
            told: BTreeMap::new(),
            models: BTreeMap::new(),
            heard: BTreeMap::new(),
            wishes: Wishes::default(),
            events: Events::default(),
        }
    }

    /// Goes on with a saved roll-out; `None` if it is damaged.
    pub(super) fn restore(now: Instant, saved: SavedLead) -> Option<Self> {
        let SavedLead { rollout, manifest, source, models, events } = saved;
        let manifest = Manifest::parse(manifest.as_bytes()).ok()?;
        let rollout = Rollout::restore(rollout, since_start(now))?;
        // Transfers of the earlier start go on by themselves, once their files are read.
        let wishes = Wishes::resume(now + RESUME);
        Some(Self { models, wishes, events, ..Self::new(rollout, manifest, source) })
    }

    pub(super) fn save(&self, now: Instant) -> SavedLead {
        SavedLead {
            rollout: self.rollout.save(since_start(now)),
            manifest: self.manifest.to_string(),
            source: self.source.clone(),
            models: self.models.clone(),
            events: self.events.clone(),
        }
    }

    /// Returns whether images are still sent.
    pub(super) fn is_serving(&self) -> bool {
        matches!(
            self.rollout.stage(),
            Stage::Pushing | Stage::Pushed | Stage::Scheduled | Stage::Applying(_)
        )
    }

    /// Notes what a node lacks, as it reported.
    pub(super) fn note_wish(&mut self, now: Instant, report: &Report, model: &str) {
        let release = self.manifest.release();
        let name = match (report.standing, &report.why) {
            // One that came and does not count may have been false: the true one is sent again.
            (Standing::Staging, Some(Why::Manifest | Why::Release(_))) => {
                Some(manifest_name(release.id()))
            }
            (Standing::Staging, Some(Why::Image)) => release.image(model).map(image_name),
            _ => None,
        };
        self.wishes.note(now, NodeId(report.node.0), name);
    }

    /// Returns whether a node is due to be told its task.
    pub(super) fn is_due(&self, now: Instant, node: rollout::Node, task: Task) -> bool {
        let told = self.told.get(&node);
        told.is_none_or(|told| told.task != task || now >= told.at + told.pause)
    }

    pub(super) fn note_told(&mut self, now: Instant, node: rollout::Node, task: Task) {
        let before = self.told.get(&node).filter(|told| told.task == task);
        let pause = before.map_or(FIRST_PAUSE, |told| (told.pause * 2).min(LONGEST_PAUSE));
        self.told.insert(node, Told { task, at: now, pause });
    }

    /// Returns the file of the release that has this name on the mesh.
    pub(super) fn file(&self, name: &str) -> Option<PathBuf> {
        let image = self.manifest.release().images().iter().find(|i| image_name(i) == name)?;
        Some(self.source.images.join(&image.file))
    }
}

/// Returns the answer for a release that cannot be applied.
pub(crate) fn not_applied(e: &ApplyError) -> ApiError {
    let hint = match e {
        ApplyError::Missing(_) => "; --without-missing updates the others",
        ApplyError::Stage | ApplyError::NoneStaged => "",
    };
    ApiError::new(ErrorCode::BadRequest, format!("{e}{hint}"))
}

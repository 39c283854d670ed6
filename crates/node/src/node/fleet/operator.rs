//! This node as one that leads roll-outs: tells orders, takes reports, and sends files to the nodes
//! that lack them.

use super::super::Node;
use super::files::{image_name, is_fleet_name, manifest_name};
use super::{Fleet, since_start};
use crate::api::types::{ApiError, ErrorCode, SendRequest};
use crate::api::{self};
use crate::identity::unix_s;
use crate::node::Receivers;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::{Direction, ReceiverState, Stage as FileStage};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Metric;
use ncmesh_fleet::rollout::{
    self, ApplyError, Link, Order, Packet, Report, Rollout, Settings, Stage, Standing, Step, Why,
};
use ncmesh_fleet::{Image, Known, Manifest};
use ncmesh_wire::identity::SecretKey;
use ncmesh_wire::{FlowId, NodeId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// Name of its file in the state directory.
pub(super) const STATE: &str = "fleet-operator";
/// Name of the file in the state directory from which the manifest is sent.
const MANIFEST: &str = "fleet-manifest";

/// Pause after which a node that can be reached and has not answered is told again. It doubles up
/// to [`LONGEST_PAUSE`]: a node without `[fleet]` never answers.
const FIRST_PAUSE: Duration = rollout::REPEAT_AFTER;
/// Longest pause between two orders to a node, which may have lost the state that it reported.
const LONGEST_PAUSE: Duration = Duration::from_secs(80);
/// Time in which wishes are gathered, so that nodes get a file by one transfer.
const GATHER: Duration = Duration::from_secs(1);
/// Time after which a file is sent to a node again that still lacks it. It doubles each time.
const AGAIN: Duration = Duration::from_secs(30);
/// Priority of a manifest over other files: it is short, and the images wait for it.
const MANIFEST_PRIORITY: u8 = 9;

/// State that survives restarts.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Saved {
    /// Number of the last roll-out.
    #[serde(default)]
    number: u64,
    #[serde(default)]
    lead: Option<SavedLead>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedLead {
    rollout: Rollout,
    manifest: String,
    source: Source,
    models: BTreeMap<rollout::Node, String>,
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
    key: SecretKey,
    number: u64,
    pub(super) lead: Option<Lead>,
    /// Whether something changed since the state was saved.
    is_changed: bool,
    is_saving: bool,
}

/// A roll-out that this node leads.
pub(super) struct Lead {
    pub(super) rollout: Rollout,
    pub(super) manifest: Manifest,
    source: Source,
    told: BTreeMap<rollout::Node, Told>,
    pub(super) models: BTreeMap<rollout::Node, String>,
    /// When each node was heard last, since this start.
    pub(super) heard: BTreeMap<rollout::Node, Instant>,
    /// Files that nodes lack, by their last report.
    wishes: BTreeMap<rollout::Node, Wish>,
    /// When wishes are served.
    serve_at: Option<Instant>,
}

/// Last order to a node.
struct Told {
    task: Task,
    at: Instant,
    pause: Duration,
}

/// Task of one node in an order. An order with the same task need not be told to it at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    Stage,
    Apply,
    Keep,
    Abort,
    Rollback,
}

impl Task {
    fn of(step: &Step, node: rollout::Node) -> Self {
        match step {
            Step::Apply { keep, .. } if keep.contains(&node) => Self::Keep,
            Step::Apply { apply, .. } if apply.contains(&node) => Self::Apply,
            Step::Stage | Step::Apply { .. } => Self::Stage,
            Step::Abort => Self::Abort,
            Step::Rollback => Self::Rollback,
        }
    }
}

/// A file that a node lacks, and when it was sent to it.
struct Wish {
    name: String,
    sent: Option<Sent>,
}

struct Sent {
    at: Instant,
    pause: Duration,
}

/// A transfer that is to begin.
struct Batch {
    path: PathBuf,
    priority: Option<u8>,
    background: Option<u8>,
    receivers: Vec<NodeId>,
}

impl OperatorSide {
    pub(super) fn new(now: Instant, key: SecretKey, saved: Saved) -> Self {
        let lead = saved.lead.and_then(|saved| Lead::restore(now, saved));
        Self { key, number: saved.number, lead, is_changed: false, is_saving: false }
    }

    /// Returns when [`Node::drive_fleet`] has something to do for it.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let lead = self.lead.as_ref()?;
        let rollout = lead.rollout.poll_timeout().map(|at| Instant::default() + at);
        rollout.into_iter().chain(lead.serve_at).min()
    }
}

impl Lead {
    fn new(rollout: Rollout, manifest: Manifest, source: Source) -> Self {
        Self {
            rollout,
            manifest,
            source,
            told: BTreeMap::new(),
            models: BTreeMap::new(),
            heard: BTreeMap::new(),
            wishes: BTreeMap::new(),
            serve_at: None,
        }
    }

    /// Goes on with a saved roll-out; `None` if it is damaged.
    fn restore(now: Instant, saved: SavedLead) -> Option<Self> {
        let SavedLead { rollout, manifest, source, models } = saved;
        let manifest = Manifest::parse(manifest.as_bytes()).ok()?;
        let rollout = Rollout::restore(rollout, since_start(now))?;
        Some(Self { models, ..Self::new(rollout, manifest, source) })
    }

    fn save(&self, now: Instant) -> SavedLead {
        SavedLead {
            rollout: self.rollout.save(since_start(now)),
            manifest: self.manifest.to_string(),
            source: self.source.clone(),
            models: self.models.clone(),
        }
    }

    /// Returns whether images are still sent.
    fn is_serving(&self) -> bool {
        matches!(self.rollout.stage(), Stage::Pushing | Stage::Pushed | Stage::Applying(_))
    }

    /// Notes what a node lacks, as it reported.
    fn note_wish(&mut self, now: Instant, report: &Report, model: &str) {
        let release = self.manifest.release();
        let name = match (report.standing, &report.why) {
            // One that came and does not count may have been false: the true one is sent again.
            (Standing::Staging, Some(Why::Manifest | Why::Release(_))) => {
                Some(manifest_name(release.id()))
            }
            (Standing::Staging, Some(Why::Image)) => release.image(model).map(image_name),
            _ => None,
        };
        let Some(name) = name else {
            self.wishes.remove(&report.node);
            return;
        };

        let wish =
            self.wishes.entry(report.node).or_insert(Wish { name: String::new(), sent: None });
        if wish.name != name {
            *wish = Wish { name, sent: None };
        }
        self.serve_at.get_or_insert(now + GATHER);
    }

    /// Returns whether a node is due to be told its task.
    fn is_due(&self, now: Instant, node: rollout::Node, task: Task) -> bool {
        let told = self.told.get(&node);
        told.is_none_or(|told| told.task != task || now >= told.at + told.pause)
    }

    fn note_told(&mut self, now: Instant, node: rollout::Node, task: Task) {
        let before = self.told.get(&node).filter(|told| told.task == task);
        let pause = before.map_or(FIRST_PAUSE, |told| (told.pause * 2).min(LONGEST_PAUSE));
        self.told.insert(node, Told { task, at: now, pause });
    }

    /// Returns the file of the release that has this name on the mesh.
    fn file(&self, name: &str) -> Option<PathBuf> {
        let image = self.manifest.release().images().iter().find(|i| image_name(i) == name)?;
        Some(self.source.images.join(&image.file))
    }
}

impl Fleet {
    /// Returns the file of an image, if this node leads its roll-out.
    pub(super) fn own_image(&self, image: &Image) -> Option<PathBuf> {
        self.operator.as_ref()?.lead.as_ref()?.file(&image_name(image))
    }
}

impl Node {
    /// Goes on with the roll-out that this node leads.
    pub(super) fn drive_operator(&mut self, now: Instant) {
        let known: Vec<NodeId> = self.stack.topology().nodes().collect();
        let Some(side) = &mut self.fleet.operator else { return };
        let Some(lead) = &mut side.lead else { return };

        let time = since_start(now);
        let before = lead.rollout.stage().clone();
        lead.rollout.handle_timeout(time);
        // A node that was off when the push began has its turn when it comes up.
        if lead.source.is_open {
            for node in known {
                lead.rollout.include(time, rollout::Node(node.0));
            }
        }
        if *lead.rollout.stage() != before {
            side.is_changed = true;
        }

        if let Some(order) = lead.rollout.poll_order(time) {
            self.tell_order(now, order);
        }
        self.serve_wishes(now);
        self.save_operator(now);
    }

    /// Tells each node the order, if its task in it is new or it was told long ago.
    fn tell_order(&mut self, now: Instant, order: Order) {
        let Some(side) = &self.fleet.operator else { return };
        let Some(lead) = &side.lead else { return };
        let due: Vec<(rollout::Node, Task)> = lead
            .rollout
            .rows()
            .keys()
            .map(|node| (*node, Task::of(&order.step, *node)))
            .filter(|(node, task)| lead.is_due(now, *node, *task))
            .collect();
        if due.is_empty() {
            return;
        }

        let packet = Packet::Order(Box::new(order.sign(&side.key)));
        for (node, task) in due {
            // A node without a path is told when it has one.
            if self.send_fleet(NodeId(node.0), &packet)
                && let Some(lead) = self.fleet.operator.as_mut().and_then(|s| s.lead.as_mut())
            {
                lead.note_told(now, node, task);
            }
        }
    }

    /// Takes the report of a node.
    pub(super) fn handle_fleet_report(
        &mut self,
        report: &Report,
        model: String,
    ) -> Result<(), DropReason> {
        let now = self.clock.now();
        let side = self.fleet.operator.as_mut().ok_or(DropReason::UnknownService)?;
        let lead = side.lead.as_mut().ok_or(DropReason::UnknownFlow)?;
        let is_own = report.operator == side.key.public();
        let is_this = report.rollout == lead.rollout.number();
        if !is_own || !is_this || !lead.rollout.rows().contains_key(&report.node) {
            return Err(DropReason::UnknownFlow);
        }

        lead.note_wish(now, report, &model);
        lead.heard.insert(report.node, now);
        lead.models.insert(report.node, model);
        // It answers, so it need not be asked often: it tells of itself what changes.
        if let Some(told) = lead.told.get_mut(&report.node) {
            told.pause = LONGEST_PAUSE;
        }
        lead.rollout.handle_report(since_start(now), report);
        side.is_changed = true;
        Ok(())
    }

    /// Sends files to the nodes that lack them, once for all that lack the same.
    fn serve_wishes(&mut self, now: Instant) {
        let paths = self.stack.topology().paths_from(self.id(), Metric::Unicast);
        let transfers = self.stack.transfers();
        let waiting: Vec<String> =
            self.sending.waiting_transfers(&self.stack).map(|transfer| transfer.name).collect();
        let Some(lead) = self.fleet.operator.as_mut().and_then(|side| side.lead.as_mut()) else {
            return;
        };
        if lead.serve_at.is_some_and(|at| at > now) {
            return;
        }
        lead.serve_at = None;
        if !lead.is_serving() {
            return;
        }

        // A transfer that goes on lasts as long as it needs, also while the node is off.
        let is_served = |node: rollout::Node, name: &str| {
            let sent = transfers.iter().filter(|t| {
                t.direction == Direction::Sending && t.stage == FileStage::Open && t.name == name
            });
            let mut receivers = sent.flat_map(|t| &t.receivers);
            receivers.any(|receiver| {
                let has_ended =
                    matches!(receiver.state, ReceiverState::Complete | ReceiverState::Refused(_));
                receiver.node.0 == node.0 && !has_ended
            })
        };

        let manifest = manifest_name(lead.manifest.release().id());
        let mut batches: BTreeMap<String, Batch> = BTreeMap::new();
        let mut wishes = core::mem::take(&mut lead.wishes);
        for (node, Wish { name, sent }) in &mut wishes {
            let is_recent = sent.as_ref().is_some_and(|sent| now < sent.at + sent.pause);
            let is_waiting = waiting.contains(name);
            let to = NodeId(node.0);
            if is_recent || is_waiting || is_served(*node, name) || !paths.reaches(to) {
                continue;
            }
            let (path, priority, background) = if *name == manifest {
                (self.configuration.state_dir.join(MANIFEST), Some(MANIFEST_PRIORITY), None)
            } else {
                let Some(path) = lead.file(name) else { continue };
                (path, None, Some(lead.source.background.unwrap_or(100)))
            };
            let batch = batches.entry(name.clone()).or_insert(Batch {
                path,
                priority,
                background,
                receivers: Vec::new(),
            });
            batch.receivers.push(to);
            let pause = sent.as_ref().map_or(AGAIN, |sent| sent.pause * 2);
            *sent = Some(Sent { at: now, pause });
        }
        lead.wishes = wishes;

        for (name, Batch { path, priority, background, receivers }) in batches {
            let nodes: Vec<String> = receivers.iter().map(ToString::to_string).collect();
            tracing::info!("[fleet] {name} to nodes {}", nodes.join(", "));
            let request = SendRequest {
                path,
                to: crate::api::types::Recipients::Named(nodes),
                name: Some(name),
                scheme: None,
                background,
                limit_bps: None,
                priority,
            };
            let receivers = Receivers { listed: receivers, open: false };
            tokio::spawn(api::send_to(self.handle.clone(), request, receivers));
        }
    }

    /// Saves the roll-out if it has changed.
    fn save_operator(&mut self, now: Instant) {
        let Some(side) = &mut self.fleet.operator else { return };
        if side.is_saving || !side.is_changed {
            return;
        }
        side.is_saving = true;
        side.is_changed = false;
        let lead = side.lead.as_ref().map(|lead| lead.save(now));
        let saved = Saved { number: side.number, lead };
        let state = self.state.clone();
        let work = move || state.replace(STATE, &serde_json::to_vec_pretty(&saved)?);
        self.handle.work(work, |node, written: io::Result<()>| {
            node.chores.note(STATE, &written);
            if let Some(side) = &mut node.fleet.operator {
                side.is_saving = false;
                // Tried again when it is driven next: at the latest with the next order.
                side.is_changed |= written.is_err();
            }
        });
    }

    /// Begins a roll-out. One that goes on is replaced if its nodes change nothing now.
    ///
    /// # Errors
    /// [`ErrorCode::BadRequest`] if this node leads none, [`ErrorCode::Busy`] if one is applied.
    pub(crate) fn push_fleet(&mut self, push: Push) -> Result<(), ApiError> {
        let now = self.clock.now();
        let me = self.id();
        let side = self.fleet.operator.as_mut().ok_or_else(no_operator)?;
        if let Some(lead) = &side.lead
            && matches!(lead.rollout.stage(), Stage::Applying(_) | Stage::RollingBack)
        {
            let problem = format!("a roll-out goes on: {}", lead.rollout.waits_for());
            return Err(ApiError::new(ErrorCode::Busy, problem));
        }

        // Numbers grow with the clock, and beyond the last one where a clock went back.
        side.number = unix_s().max(side.number + 1);
        let Push { manifest, source, nodes, settings } = push;
        let nodes = nodes.into_iter().map(|node| rollout::Node(node.0));
        let rollout = Rollout::new(
            since_start(now),
            side.key.public(),
            side.number,
            rollout::Node(me.0),
            Known::of(&manifest),
            nodes,
            settings,
        );
        let text = manifest.to_string();
        side.lead = Some(Lead::new(rollout, manifest, source));
        side.is_changed = true;
        self.cancel_fleet_files();

        // Sent as a file, so it must be on the disk before a node asks for it.
        let state = self.state.clone();
        self.handle.work(
            move || state.replace(MANIFEST, text.as_bytes()),
            |node, written| {
                node.chores.note(MANIFEST, &written);
                node.drive_fleet();
            },
        );
        Ok(())
    }

    /// Gives a command to the roll-out that this node leads.
    ///
    /// # Errors
    /// [`ErrorCode::BadRequest`] if it leads none, and the error of the command.
    pub(crate) fn command_fleet<R>(
        &mut self,
        command: impl FnOnce(&mut Rollout, Duration, &[Link]) -> Result<R, ApiError>,
    ) -> Result<R, ApiError> {
        let now = self.clock.now();
        let links = self.fleet_links();
        let side = self.fleet.operator.as_mut().ok_or_else(no_operator)?;
        let lead = side.lead.as_mut().ok_or_else(|| {
            ApiError::new(ErrorCode::NotFound, "no roll-out here: `ncmesh fleet push` begins one")
        })?;
        let answer = command(&mut lead.rollout, since_start(now), &links)?;
        side.is_changed = true;
        if !lead.is_serving() {
            self.cancel_fleet_files();
        }
        self.drive_fleet();
        Ok(answer)
    }

    /// Takes the manifest of the own roll-out, which this node need not be sent.
    pub(super) fn take_own_manifest(&mut self, release: ncmesh_fleet::ReleaseId) {
        let lead = self.fleet.operator.as_ref().and_then(|side| side.lead.as_ref());
        let own = lead.filter(|lead| lead.manifest.release().id() == release);
        if let Some(text) = own.map(|lead| lead.manifest.to_string()) {
            self.take_fleet_manifest(text.as_bytes());
        }
    }

    /// Ends the transfers of a roll-out that needs them no more.
    fn cancel_fleet_files(&mut self) {
        let is_open = |t: &&ncmesh_engine::file::TransferStatus| {
            t.direction == Direction::Sending
                && t.stage == FileStage::Open
                && is_fleet_name(&t.name)
        };
        let open: Vec<FlowId> =
            self.stack.transfers().iter().filter(is_open).map(|t| t.flow).collect();
        for flow in open {
            // It may have ended just now.
            let _ = self.cancel(flow);
        }
    }

    /// Returns the links of the mesh with the transmissions that a packet takes on each.
    fn fleet_links(&self) -> Vec<Link> {
        let topology = self.stack.topology();
        let mut links = Vec::new();
        for from in topology.nodes() {
            for (to, delivery) in topology.links_from(from) {
                let cost = 1.0 / (delivery * topology.delivery(to, from));
                links.push(Link { ends: [rollout::Node(from.0), rollout::Node(to.0)], cost });
            }
        }
        links
    }
}

fn no_operator() -> ApiError {
    let problem = "this node leads no roll-outs: give it [fleet] operator_key and start it again";
    ApiError::new(ErrorCode::BadRequest, problem)
}

/// Returns the answer for a release that cannot be applied.
pub(crate) fn not_applied(e: &ApplyError) -> ApiError {
    let hint = match e {
        ApplyError::Missing(_) => "; --without-missing updates the others",
        ApplyError::Stage | ApplyError::NoneStaged => "",
    };
    ApiError::new(ErrorCode::BadRequest, format!("{e}{hint}"))
}

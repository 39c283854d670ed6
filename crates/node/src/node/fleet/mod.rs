//! Roll-outs of router images: this node as one that takes part in them, and as one that leads
//! some. [`ncmesh_fleet::rollout`] decides; this module carries its messages, files and hooks.
//!
//! Orders and reports are packets of the scheme that carries IP packets, as measurements are: it
//! reaches each node over several hops, and repairs losses. Manifests and images are files, sent by
//! the scheme that files are sent by to the nodes that said that they lack them.

mod clock;
mod events;
mod files;
mod member;
mod operator;
mod search;
mod serve;
mod status;
mod words;

use super::hook::{HookError, run, run_to_its_end};
use super::names::{name_of, resolve_name};
use super::{Moment, Node, Receivers};
use crate::api;
use crate::api::fleet::{FleetEvents, FleetStatus};
use crate::api::types::{ApiError, ErrorCode, Recipients, SendRequest};
use crate::config::{FleetConfig, FleetHooks};
use crate::identity::{secret, unix_s};
use crate::state::StateDir;
use clock::since_start;
use files::{
    copy, discard, image_name, is_fleet_name, is_image, is_manifest_name, is_there, manifest_name,
    read_version, take_manifest,
};
use member::{Fetch, MemberSide};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::{self, Direction, Refusal, TransferStatus};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Metric;
use ncmesh_fleet::rollout::{
    self, Action, Dropped, Exit, HOOK_WITHIN, Lacks, Link, Order, Packet, PassedOrder, Report,
    Rollout, SignedOrder, Stage, Why,
};
use ncmesh_fleet::{Image, Manifest, ReleaseId, Trust, Version};
use ncmesh_host::files::Known;
use ncmesh_host::gateway::Mesh;
use ncmesh_wire::identity::SecretKey;
use ncmesh_wire::{FlowId, NodeId};
use operator::{LONGEST_PAUSE, Lead, MANIFEST, MANIFEST_PRIORITY, OperatorSide, Task};
pub(crate) use operator::{Push, Source, not_applied};
use serde::de::DeserializeOwned;
use serve::{Outgoing, Transfer, Wishes};
pub(crate) use status::FleetNodes;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the file in the state directory from which a holder sends the manifest.
const HELD_MANIFEST: &str = "fleet-held-manifest";
/// Exit code of a shell for a program that cannot be started.
const CANNOT_START: i32 = 127;
/// Exit code of a shell for a program that a signal ended, without the signal's number.
const KILLED: i32 = 128;
/// Most files that are remembered as arriving. Only a member that lies announces more of one name.
const MAX_ARRIVING: usize = 64;
/// Longest state that is read, bytes: a roll-out over some thousand nodes with its manifest.
const LONGEST_STATE: u64 = 16 << 20;

/// Parts of a node that takes part in roll-outs or leads them, read before it starts.
#[derive(Default)]
pub struct FleetStart {
    /// Version that runs.
    running: Option<Version>,
    member: member::Saved,
    /// Key of the operator whose node this is.
    key: Option<SecretKey>,
    operator: operator::Saved,
}

impl FleetStart {
    /// Reads the version that runs, the operator's key, and what is left of earlier starts.
    ///
    /// # Errors
    /// A file that a setting names cannot be used, in words.
    pub fn read(config: Option<&FleetConfig>, state: &StateDir) -> Result<Self, String> {
        let Some(FleetConfig { member, operator_key }) = config else { return Ok(Self::default()) };
        let mut start = Self::default();

        if let Some(member) = member {
            let file = &member.version_file;
            let failed = |e| format!("version_file: {} has no version: {e}", file.display());
            start.running = Some(read_version(file).map_err(failed)?);
            start.member = saved(state, member::STATE);
        }
        if let Some(file) = operator_key {
            start.key = Some(secret(file).map_err(|e| format!("operator_key: {e}"))?);
            start.operator = saved(state, operator::STATE);
        }
        Ok(start)
    }
}

/// Returns what an earlier start saved. A file that is damaged is as one that is not there: the
/// mesh tells again what goes on.
fn saved<T: DeserializeOwned + Default>(state: &StateDir, name: &str) -> T {
    let text = state.read(name, LONGEST_STATE);
    if text.is_empty() {
        return T::default();
    }
    serde_json::from_slice(&text).unwrap_or_else(|e| {
        tracing::warn!("{name} in the state directory is damaged: {e}");
        T::default()
    })
}

/// Roll-outs at this node.
#[derive(Default)]
pub(super) struct Fleet {
    member: Option<MemberSide>,
    operator: Option<OperatorSide>,
    /// Announced file that the node does not wait for, until its refusal is logged.
    unwanted: Option<FlowId>,
}

impl Fleet {
    pub(super) fn new(
        now: Instant,
        node: NodeId,
        config: Option<&FleetConfig>,
        start: FleetStart,
    ) -> Self {
        let config = config.and_then(|config| config.member.clone());
        let member = config
            .zip(start.running)
            .map(|(config, running)| MemberSide::new(now, node, config, running, start.member));
        let operator = start.key.map(|key| OperatorSide::new(now, key, start.operator));
        Self { member, operator, unwanted: None }
    }

    /// Returns whether a file is refused because no roll-out here waits for it.
    pub(super) fn is_unwanted(&self, flow: FlowId) -> bool {
        self.unwanted == Some(flow)
    }

    /// Returns when [`Node::drive_fleet`] has something to do.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let member = self.member.as_ref().and_then(MemberSide::poll_timeout);
        let operator = self.operator.as_ref().and_then(OperatorSide::poll_timeout);
        member.into_iter().chain(operator).min()
    }

    /// Says whether a file of a roll-out is received, and where. `None` if the node does not wait
    /// for it.
    pub(super) fn place(&mut self, file: &file::Manifest) -> Option<PathBuf> {
        let side = self.member.as_mut()?;
        if !side.wants(file) {
            return None;
        }

        if side.arriving.len() < MAX_ARRIVING {
            side.arriving.insert(file.flow);
        }
        Some(side.config.dir.clone())
    }

    /// Returns the keys that releases are checked with, if this node takes part in roll-outs.
    fn trust(&self) -> Option<&Trust> {
        self.member.as_ref().map(|side| &side.config.trust)
    }

    /// Returns whether a directory is that of images.
    pub(super) fn is_place(&self, dir: &Path) -> bool {
        self.member.as_ref().is_some_and(|side| side.config.dir == dir)
    }

    /// Returns the file of an image, if this node leads its roll-out.
    fn own_image(&self, image: &Image) -> Option<PathBuf> {
        self.operator.as_ref()?.lead.as_ref()?.file(&image_name(image))
    }
}

impl Node {
    /// Goes on with roll-outs: what is due, and what could not be done before.
    pub(super) fn drive_fleet(&mut self) {
        let now = self.clock.now();
        self.drive_member(now);
        self.drive_operator(now);
    }

    /// Takes a packet of a roll-out that came through the mesh.
    pub(super) fn handle_fleet_packet(&mut self, from: NodeId, packet: &[u8]) {
        let handled = match Packet::parse(packet) {
            Err(_) => Err(DropReason::Malformed),
            Ok(Packet::Order(order)) => self.handle_fleet_order(from, &order),
            // A report is believed of the node alone that it is about.
            Ok(Packet::Report { report, .. }) if report.node.0 != from.0 => {
                Err(DropReason::Untrusted)
            }
            Ok(Packet::Report { report, model }) => self.handle_fleet_report(&report, model),
            Ok(Packet::Ask { lacks, model }) => self.handle_fleet_ask(from, lacks, &model),
            Ok(Packet::Passed { has, passed }) => {
                self.handle_fleet_passed(from, has, passed.as_deref())
            }
            Ok(Packet::NoFleet { rollout }) => self.handle_no_fleet(from, rollout),
        };
        if let Err(why) = handled {
            self.stack.at(self.clock.now(), &mut self.storage).note_drop(why);
        }
    }

    /// Sends a packet of a roll-out. Returns whether there was a way to the node and room for it.
    fn send_fleet(&mut self, to: NodeId, packet: &Packet) -> bool {
        if to == self.id() {
            // The operator's own node takes part as others do.
            self.handle_fleet_packet(to, &packet.to_bytes());
            return true;
        }

        let paths = self.stack.topology().paths_from(self.id(), Metric::Unicast);
        if !paths.reaches(to) {
            return false;
        }

        let scheme = self.packet_scheme().map(|choice| choice.scheme);
        let mut moment = Moment::now(&self.clock, &mut self.stack, &mut self.storage);
        moment.mesh(scheme).send(to, &packet.to_bytes()).is_ok()
    }

    /// Returns what is known of an announced file, and makes place for it if it is one of a
    /// roll-out that this node waits for.
    pub(super) fn known(&mut self, file: &file::Manifest) -> Option<Known> {
        if !is_fleet_name(&file.name) {
            return self.inbox.known(&self.stack, file);
        }
        // `allow_from` has no say: a file of a roll-out counts by its hash.
        let Some(place) = self.fleet.place(file) else {
            self.fleet.unwanted = Some(file.flow);
            // An operator that sends it has missed a report: it is told again how far this node is.
            if let Some(side) = &mut self.fleet.member
                && side.operator == Some(file.flow.source)
            {
                side.told = None;
            }
            return Some(Known::Unwelcome);
        };
        self.files.expect(file.flow, place);
        self.inbox.was_delivered(file).then_some(Known::Delivered)
    }

    /// Returns whether a received file is one of a roll-out.
    pub(super) fn is_fleet_file(file: &file::Manifest) -> bool {
        is_fleet_name(&file.name)
    }

    // ---- this node takes part

    /// Takes an order that came from a node.
    fn handle_fleet_order(&mut self, from: NodeId, order: &SignedOrder) -> Result<(), DropReason> {
        let now = self.clock.now();
        let Some(side) = &mut self.fleet.member else {
            // The operator need not wait for this node.
            let rollout = order.order.number.rollout;
            self.send_fleet(from, &Packet::NoFleet { rollout });
            return Ok(());
        };
        let report =
            side.member.handle_order(since_start(now), order).map_err(|why| match why {
                Dropped::Stranger | Dropped::Signature => DropReason::Untrusted,
                Dropped::Old => DropReason::Stale,
            })?;

        side.operator = Some(from);
        side.is_told = true;
        side.told = Some((report.standing, report.why.clone()));
        let model = side.config.model.clone();
        self.send_fleet(from, &Packet::Report { report, model });
        self.do_fleet_actions();
        Ok(())
    }

    /// Ends what takes too long, saves again what could not be saved, and reports what changed.
    fn drive_member(&mut self, now: Instant) {
        let Some(side) = &mut self.fleet.member else { return };
        side.member.handle_timeout(since_start(now));
        if side.save_at.is_some_and(|at| at <= now) {
            side.save_at = None;
            self.save_member();
        }
        self.do_fleet_actions();
        self.drive_search(now);
        self.serve_held(now);
    }

    /// Does what the roll-out asks for, and tells its operator what has changed by it.
    fn do_fleet_actions(&mut self) {
        while let Some(side) = &mut self.fleet.member
            && let Some(action) = side.poll_action()
        {
            match action {
                Action::Save => self.save_member(),
                Action::FetchManifest(release) => {
                    side.wanted = Some(release);
                    self.take_own_manifest(release);
                }
                Action::Fetch(ticket, image) => self.fetch_image(ticket, image),
                Action::Check(ticket, image) => self.check_image(ticket, image),
                Action::Apply(ticket, image) => self.change_image(ticket, Some(&image)),
                Action::Rollback(ticket) => self.change_image(ticket, None),
                Action::Keep => self.keep_image(),
                Action::Discard => self.discard_image(),
            }
        }
        self.report_change();
    }

    /// Tells the operator how far this node is, if that has changed since it was told.
    fn report_change(&mut self) {
        let Some(side) = &self.fleet.member else { return };
        let (Some(operator), Some(report)) = (side.operator, side.member.report()) else { return };
        let state = Some((report.standing, report.why.clone()));
        if side.told == state {
            return;
        }

        // Not sent means told later: the node may have just restarted, and know no path yet.
        let packet = Packet::Report { report, model: side.config.model.clone() };
        if self.send_fleet(operator, &packet)
            && let Some(side) = &mut self.fleet.member
        {
            side.told = state;
        }
    }

    /// Saves the state. Actions after it wait until it is on the disk: a node that installs an
    /// image must know so after its restart.
    fn save_member(&mut self) {
        let now = self.clock.now();
        let Some(side) = &mut self.fleet.member else { return };

        side.is_saving = true;
        let saved = side.save(now);
        let state = self.state.clone();
        let work = move || state.replace(member::STATE, &serde_json::to_vec_pretty(&saved)?);

        self.handle.work(work, |node, written: io::Result<()>| {
            node.chores.note(member::STATE, &written);
            let now = node.clock.now();
            let Some(side) = &mut node.fleet.member else { return };
            if written.is_ok() {
                side.is_saving = false;
                side.failures = 0;
            } else {
                side.save_at = Some(now + member::PAUSES.pause(side.failures));
                side.failures = side.failures.saturating_add(1);
            }
            node.do_fleet_actions();
        });
    }

    /// Fetches an image: it may be there from before, and the operator's own node has its file.
    /// All others tell the operator that they lack it, and wait for it.
    fn fetch_image(&mut self, ticket: u64, image: Image) {
        let own = self.fleet.own_image(&image);
        let Some(side) = &mut self.fleet.member else { return };
        side.wanted = None;
        side.fetch = Some(Fetch { ticket, image: image.clone() });
        let now = since_start(self.clock.now());
        if side.config.max_bytes.is_some_and(|most| image.size > most) {
            side.member.handle_fetched(now, ticket, Err(Why::Space));
            return;
        }

        let dir = side.config.dir.clone();
        let work = move || match (is_there(&dir, &image)?, own) {
            (true, _) => Ok(true),
            (false, Some(file)) => copy(&file, &dir, &image).map(|()| true),
            (false, None) => Ok(false),
        };
        self.handle.work(work, move |node, found: io::Result<bool>| {
            let fetched = match found {
                Ok(true) => Ok(()),
                Ok(false) => return,
                Err(e) => {
                    tracing::warn!("the image of the roll-out cannot be stored: {e}");
                    Err(Why::Space)
                }
            };
            node.note_fetched(ticket, fetched);
        });
    }

    fn note_fetched(&mut self, ticket: u64, fetched: Result<(), Why>) {
        let now = since_start(self.clock.now());
        let Some(side) = &mut self.fleet.member else { return };
        side.fetch = None;
        side.member.handle_fetched(now, ticket, fetched);
        self.do_fleet_actions();
    }

    /// Takes a whole file of a roll-out, which was received and verified.
    pub(super) fn take_fleet_file(&mut self, file: &file::Manifest, path: &Path) {
        let Some(side) = &mut self.fleet.member else { return };
        side.arriving.remove(&file.flow);
        if let Some(Fetch { ticket, image }) = side.fetch.clone()
            && file.hash == image.digests.blake3
        {
            return self.note_fetched(ticket, Ok(()));
        }

        // An image that nobody waits for any more has come twice, or too late.
        if !is_manifest_name(&file.name) {
            return;
        }
        let dir = side.config.dir.clone();
        let name = path.file_name().map(OsString::from).unwrap_or_default();
        self.handle.work(
            move || take_manifest(&dir, &name),
            |node, read| match read {
                Ok(bytes) => node.take_fleet_manifest(&bytes),
                Err(e) => tracing::warn!("a manifest cannot be read: {e}"),
            },
        );
    }

    fn take_fleet_manifest(&mut self, bytes: &[u8]) {
        if let Some(side) = &mut self.fleet.member {
            side.member.handle_manifest(bytes);
            self.do_fleet_actions();
        }
    }

    /// Notes that a file of a roll-out was refused here.
    pub(super) fn note_fleet_refused(&mut self, flow: FlowId, why: Refusal) {
        let Some(side) = &mut self.fleet.member else { return };
        if side.arriving.remove(&flow)
            && why == Refusal::NoSpace
            && let Some(Fetch { ticket, .. }) = side.fetch
        {
            self.note_fetched(ticket, Err(Why::Space));
        }
    }

    /// Reads the image's file and lets the hook look at it.
    fn check_image(&mut self, ticket: u64, image: Image) {
        let Some(side) = &self.fleet.member else { return };
        let dir = side.config.dir.clone();
        let hook = side.config.hooks.stage.clone();
        let variables = side.variables(Some(&image));
        let work = async move {
            let read = tokio::task::spawn_blocking(move || is_image(&dir, &image)).await;
            let is_image = match read {
                Ok(Ok(is_image)) => is_image,
                Ok(Err(e)) => {
                    tracing::warn!("the image of the roll-out cannot be read: {e}");
                    false
                }
                Err(_) => false,
            };
            let exit = match is_image {
                true => exit("stage", run(&hook, variables, HOOK_WITHIN).await),
                false => Exit::Done,
            };
            (is_image, exit)
        };

        self.handle.task(work, move |node, (is_image, exit)| {
            let now = since_start(node.clock.now());
            if let Some(side) = &mut node.fleet.member {
                side.member.handle_checked(now, ticket, is_image, exit);
            }
            node.do_fleet_actions();
        });
    }

    /// Runs the hook that installs an image, or without one the hook that goes back. The hook
    /// outlives the daemon, which it may restart.
    fn change_image(&mut self, ticket: u64, image: Option<&Image>) {
        let Some(side) = &self.fleet.member else { return };
        let FleetHooks { apply, rollback, .. } = &side.config.hooks;
        let name = if image.is_some() { "apply" } else { "rollback" };
        let hook = if image.is_some() { apply } else { rollback }.clone();
        let variables = side.variables(image);
        let version = side.member.version().map(ToString::to_string).unwrap_or_default();
        tracing::info!("[fleet] {name}: version {version}");

        let version_file = side.config.version_file.clone();
        let work = async move {
            let ended = run_to_its_end(&hook, variables).await;
            let read = tokio::task::spawn_blocking(move || read_version(&version_file)).await;
            (exit(name, ended), read)
        };
        self.handle.task(work, move |node, (exit, read)| {
            let now = since_start(node.clock.now());
            let Some(side) = &mut node.fleet.member else { return };
            // Unreadable is as if it had not changed: the time limit of the phase goes on.
            let running = match read {
                Ok(Ok(running)) => running,
                _ => side.member.facts().running.clone(),
            };
            if name == "apply" {
                side.member.handle_applied(now, ticket, exit, running);
            } else {
                side.member.handle_rolled_back(ticket, exit, running);
            }
            node.do_fleet_actions();
        });
    }

    /// Makes the image permanent. Its file is not needed any more.
    fn keep_image(&mut self) {
        let Some(side) = &self.fleet.member else { return };
        let hook = side.config.hooks.confirm.clone();
        let variables = side.variables(None);
        let work = async move { run(&hook, variables, HOOK_WITHIN).await };
        self.handle.task(work, |node, ended| {
            exit("confirm", ended);
            node.discard_image();
        });
    }

    /// Removes the image. What comes after waits, as it may be the next image.
    fn discard_image(&mut self) {
        let Some(side) = &mut self.fleet.member else { return };
        side.is_discarding = true;
        let dir = side.config.dir.clone();
        self.handle.work(
            move || discard(&dir),
            |node, removed| {
                if let Err(e) = removed {
                    tracing::warn!("the image of the roll-out cannot be removed: {e}");
                }
                if let Some(side) = &mut node.fleet.member {
                    side.is_discarding = false;
                }
                node.do_fleet_actions();
            },
        );
    }

    // ---- the operator's node is gone

    /// Asks the next node for what this one lacks, if that is due.
    fn drive_search(&mut self, now: Instant) {
        let Some(side) = &mut self.fleet.member else { return };
        // An operator that was heard repeats its order.
        let lacks = side.member.lacks().filter(|lacks| *lacks != Lacks::Order || !side.is_told);
        let nearest = side.search.next(now, lacks, &self.stack, side.operator);
        if let (Some(lacks), Some(nearest)) = (lacks, nearest) {
            let model = side.config.model.clone();
            self.send_fleet(nearest, &Packet::Ask { lacks, model });
        }
    }

    /// Sends files to the nodes that lack them.
    fn serve(&self, now: Instant, wishes: &mut Wishes, file: impl Fn(&str) -> Option<Outgoing>) {
        let waiting: Vec<String> =
            self.sending.waiting_transfers(&self.stack).map(|transfer| transfer.name).collect();
        for transfer in wishes.transfers(now, &self.stack, &waiting, file) {
            let Transfer { name, file, receivers } = transfer;
            let nodes: Vec<String> = receivers.iter().map(ToString::to_string).collect();
            tracing::info!("[fleet] {name} to nodes {}", nodes.join(", "));
            let request = SendRequest {
                path: file.path,
                to: Recipients::Named(nodes),
                name: Some(name),
                scheme: None,
                background: file.background,
                limit_bps: None,
                priority: file.priority,
            };
            let receivers = Receivers { listed: receivers, open: false };
            tokio::spawn(api::send_to(self.handle.clone(), request, receivers));
        }
    }

    /// Answers a question of another node, and sends it the file that it lacks.
    fn handle_fleet_ask(
        &mut self,
        from: NodeId,
        lacks: Lacks,
        model: &str,
    ) -> Result<(), DropReason> {
        let me = self.id();
        let side = self.fleet.member.as_ref().ok_or(DropReason::UnknownService)?;
        let leader = rollout::Node(side.operator.unwrap_or(me).0);
        let order = side.member.order().cloned();
        let has = match lacks {
            Lacks::Order => order.is_some(),
            Lacks::Manifest(release) => {
                let text = side.member.manifest(release).map(str::to_owned);
                let has = text.is_some();
                if let Some(text) = text {
                    self.hold_manifest(from, manifest_name(release), text);
                }
                has
            }
            Lacks::Image(release) => {
                let name = side.member.held(release, model).map(image_name);
                let has = name.is_some();
                if has {
                    self.note_held_wish(from, name);
                }
                has
            }
        };

        let passed = order.map(|order| Box::new(PassedOrder { leader, order }));
        self.send_fleet(from, &Packet::Passed { has, passed });
        Ok(())
    }

    /// Writes a manifest down, from where it is sent to a node.
    fn hold_manifest(&mut self, to: NodeId, name: String, text: String) {
        let state = self.state.clone();
        self.handle.work(
            move || state.replace(HELD_MANIFEST, text.as_bytes()),
            move |node, written| {
                node.chores.note(HELD_MANIFEST, &written);
                if written.is_ok() {
                    node.note_held_wish(to, Some(name));
                }
            },
        );
    }

    fn note_held_wish(&mut self, from: NodeId, name: Option<String>) {
        let now = self.clock.now();
        if let Some(side) = &mut self.fleet.member {
            side.wishes.note(now, from, name);
        }
    }

    /// Sends files to the nodes that asked this one for them.
    fn serve_held(&mut self, now: Instant) {
        let Some(side) = &mut self.fleet.member else { return };
        if !side.wishes.is_due(now) {
            return;
        }

        // Each question is served once: a node that still lacks the file asks again.
        let mut wishes = core::mem::take(&mut side.wishes);
        let Some(side) = &self.fleet.member else { return };
        let release = side.member.order().map(|signed| signed.order.release);
        let image = release
            .and_then(|release| side.member.held(release, &side.config.model))
            .map(image_name);
        self.serve(now, &mut wishes, |name| {
            if release.is_some_and(|release| name == manifest_name(release)) {
                let path = self.configuration.state_dir.join(HELD_MANIFEST);
                let priority = Some(MANIFEST_PRIORITY);
                return Some(Outgoing { path, priority, background: None });
            }
            // The image may be gone since the question.
            let path = side.config.dir.join(image.as_ref().filter(|image| *image == name)?);
            Some(Outgoing { path, priority: None, background: Some(100) })
        });
    }

    /// Takes the answer of a node that was asked.
    fn handle_fleet_passed(
        &mut self,
        from: NodeId,
        has: bool,
        passed: Option<&PassedOrder>,
    ) -> Result<(), DropReason> {
        let now = self.clock.now();
        let side = self.fleet.member.as_mut().ok_or(DropReason::UnknownService)?;
        if !side.search.note_answer(now, from, has) {
            return Err(DropReason::UnknownFlow);
        }

        if let Some(PassedOrder { leader, order }) = passed {
            match side.member.handle_passed_order(since_start(now), order) {
                Ok(report) => {
                    // Reports go to the operator's node as soon as it is there.
                    let leader = NodeId(leader.0);
                    if !side.is_told {
                        side.operator = Some(leader);
                        side.is_told = true;
                        side.told = None;
                    }
                    side.search.holder = Some(from);
                    let rollout = report.rollout;
                    tracing::debug!("[fleet] node {from} passed on an order of roll-out {rollout}");
                }
                // This node knows a later one.
                Err(Dropped::Old) => {}
                Err(Dropped::Stranger | Dropped::Signature) => return Err(DropReason::Untrusted),
            }
        }
        self.do_fleet_actions();
        self.drive_search(now);
        Ok(())
    }

    // ---- this node leads

    /// Goes on with the roll-out that this node leads.
    fn drive_operator(&mut self, now: Instant) {
        let Some(side) = &mut self.fleet.operator else { return };
        let Some(lead) = &mut side.lead else { return };

        let time = since_start(now);
        let before = lead.rollout.stage().clone();
        lead.rollout.handle_timeout(time);
        // A node that was off when the push began has its turn when it comes up.
        if lead.source.is_open {
            // The own node does not if it only leads.
            let is_leader_only = self.fleet.member.is_none();
            let me = self.stack.node();
            let nodes = self.stack.topology().nodes();
            for node in nodes.filter(|node| *node != me || !is_leader_only) {
                lead.rollout.include(time, rollout::Node(node.0));
            }
        }
        if *lead.rollout.stage() != before {
            side.is_changed = true;
        }
        self.note_fleet_events();
        let Some(lead) = self.fleet.operator.as_mut().and_then(|side| side.lead.as_mut()) else {
            return;
        };

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
    fn handle_fleet_report(&mut self, report: &Report, model: String) -> Result<(), DropReason> {
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
        self.note_fleet_events();
        Ok(())
    }

    /// Notes that a node takes part in no roll-outs.
    fn handle_no_fleet(&mut self, from: NodeId, number: u64) -> Result<(), DropReason> {
        let now = self.clock.now();
        let side = self.fleet.operator.as_mut().ok_or(DropReason::UnknownService)?;
        let lead = side.lead.as_mut().ok_or(DropReason::UnknownFlow)?;
        let node = rollout::Node(from.0);
        if number != lead.rollout.number() || !lead.rollout.rows().contains_key(&node) {
            return Err(DropReason::UnknownFlow);
        }

        lead.wishes.note(now, from, None);
        lead.heard.insert(node, now);
        // It may get the section later, so it is asked now and then.
        if let Some(told) = lead.told.get_mut(&node) {
            told.pause = LONGEST_PAUSE;
        }
        lead.rollout.handle_no_fleet(since_start(now), node);
        side.is_changed = true;
        self.note_fleet_events();
        Ok(())
    }

    /// Sends files to the nodes that lack them, once for all that lack the same.
    fn serve_wishes(&mut self, now: Instant) {
        let Some(lead) = self.fleet.operator.as_mut().and_then(|side| side.lead.as_mut()) else {
            return;
        };
        if !lead.wishes.is_due(now) || !lead.is_serving() {
            return;
        }

        let manifest = manifest_name(lead.manifest.release().id());
        let mut wishes = core::mem::take(&mut lead.wishes);
        let Some(lead) = self.fleet.operator.as_ref().and_then(|side| side.lead.as_ref()) else {
            return;
        };
        self.serve(now, &mut wishes, |name| {
            if name == manifest {
                let path = self.configuration.state_dir.join(MANIFEST);
                return Some(Outgoing {
                    path,
                    priority: Some(MANIFEST_PRIORITY),
                    background: None,
                });
            }
            let background = Some(lead.source.background.unwrap_or(100));
            Some(Outgoing { path: lead.file(name)?, priority: None, background })
        });
        if let Some(lead) = self.fleet.operator.as_mut().and_then(|side| side.lead.as_mut()) {
            lead.wishes = wishes;
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
        let saved = operator::Saved { number: side.number, lead };
        let state = self.state.clone();
        let work = move || state.replace(operator::STATE, &serde_json::to_vec_pretty(&saved)?);
        self.handle.work(work, |node, written: io::Result<()>| {
            node.chores.note(operator::STATE, &written);
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
            ncmesh_fleet::Known::of(&manifest),
            nodes,
            settings,
        );

        let longest = rollout.longest_order().sign(&side.key);
        self.check_order(longest)?;

        let text = manifest.to_string();
        let Some(side) = &mut self.fleet.operator else { return Ok(()) };
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
    fn take_own_manifest(&mut self, release: ReleaseId) {
        let lead = self.fleet.operator.as_ref().and_then(|side| side.lead.as_ref());
        let own = lead.filter(|lead| lead.manifest.release().id() == release);
        if let Some(text) = own.map(|lead| lead.manifest.to_string()) {
            self.take_fleet_manifest(text.as_bytes());
        }
    }

    /// Ends the transfers of a roll-out that needs them no more.
    fn cancel_fleet_files(&mut self) {
        let is_open = |t: &&TransferStatus| {
            t.direction == Direction::Sending
                && t.stage == file::Stage::Open
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

    // ---- the API

    /// Returns how far roll-outs are.
    pub(crate) fn fleet_status(&self) -> FleetStatus {
        let Fleet { member, operator, .. } = &self.fleet;
        let lead = operator.as_ref().and_then(|side| side.lead.as_ref());
        let member = member.as_ref().map(|side| status::taken(&side.member));
        let rollout = lead.map(|lead| status::led(&self.stack, lead, self.clock.now()));
        FleetStatus { member, rollout }
    }

    /// Checks a release that is to be pushed as the nodes will, where this node knows how: it has
    /// the keys if it takes part itself.
    pub(crate) fn check_release(&self, manifest: &Manifest) -> Result<(), ncmesh_fleet::Refusal> {
        let trust = self.fleet.trust();
        trust.map_or(Ok(()), |trust| trust.check(manifest).map(drop))
    }

    /// Returns the latest events of the roll-out that this node leads.
    pub(crate) fn fleet_events(&self) -> FleetEvents {
        let lead = self.fleet.operator.as_ref().and_then(|side| side.lead.as_ref());
        let events = lead.map(|lead| lead.events.kept.iter().cloned().collect());
        FleetEvents { events: events.unwrap_or_default() }
    }

    /// Notes what has changed in the roll-out that this node leads.
    fn note_fleet_events(&mut self) {
        let stack = &self.stack;
        let lead = self.fleet.operator.as_mut().and_then(|side| side.lead.as_mut());
        if let Some(Lead { events, rollout, .. }) = lead {
            events.note(unix_s(), rollout, |node| name_of(stack, NodeId(node.0)));
        }
    }

    /// Checks that all orders of the roll-out that this node leads fit a packet.
    ///
    /// # Errors
    /// [`ErrorCode::BadRequest`] if it has too many nodes.
    pub(crate) fn check_fleet_orders(&self) -> Result<(), ApiError> {
        let Some(side) = &self.fleet.operator else { return Ok(()) };
        let longest = side.lead.as_ref().map(|lead| lead.rollout.longest_order().sign(&side.key));
        longest.map_or(Ok(()), |order| self.check_order(order))
    }

    fn check_order(&self, order: SignedOrder) -> Result<(), ApiError> {
        let nodes = match &order.order.step {
            rollout::Step::Apply { apply, .. } => apply.len(),
            _ => 0,
        };
        let bytes = Packet::Order(Box::new(order)).to_bytes().len();
        let scheme = self.packet_scheme().map(|choice| choice.scheme);
        let room = scheme.and_then(|scheme| self.stack.longest_packet(scheme)).unwrap_or(0);
        if bytes <= room {
            return Ok(());
        }

        let problem = format!(
            "a roll-out to {nodes} nodes has orders of {bytes} bytes, and packets of this mesh \
             carry {room}: name fewer nodes by --to, one part of the mesh after the other"
        );
        Err(ApiError::new(ErrorCode::BadRequest, problem))
    }

    /// Returns the nodes that are meant. One that is off may be named by its id.
    pub(crate) fn fleet_nodes(&self, to: &Recipients) -> Result<FleetNodes, ApiError> {
        let me = self.id();
        let takes_part = self.fleet.member.is_some();
        let names = match to {
            Recipients::All(_) => {
                let others = self.stack.topology().nodes().filter(|node| *node != me);
                let nodes = others.chain(takes_part.then_some(me)).collect();
                return Ok(FleetNodes { nodes, is_open: true });
            }
            Recipients::Named(names) => names,
        };

        let mut nodes = Vec::new();
        for name in names {
            let own = *name == me.to_string() || *name == self.stack.name();
            let node = match resolve_name(&self.stack, name, || None) {
                _ if own => me,
                Ok(node) => node,
                Err(e) => name
                    .parse()
                    .ok()
                    .filter(|id| (1..u16::MAX).contains(id))
                    .map(NodeId)
                    .ok_or(e)?,
            };
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        if nodes.is_empty() {
            return Err(ApiError::new(ErrorCode::BadRequest, "no nodes given"));
        }
        Ok(FleetNodes { nodes, is_open: false })
    }
}

/// Returns the meaning of how a hook ended, and logs it.
fn exit(name: &str, ended: Result<(), HookError>) -> Exit {
    let code = match &ended {
        Ok(()) => return Exit::Done,
        Err(HookError::Ended(status)) => status.code().unwrap_or(KILLED),
        Err(HookError::Start(_) | HookError::TooLong(_)) => CANNOT_START,
    };
    if let Err(e) = ended {
        tracing::warn!("[fleet] {name}: {e}");
    }
    Exit::of(code)
}

fn no_operator() -> ApiError {
    let problem = "this node leads no roll-outs: give it [fleet] operator_key and start it again";
    ApiError::new(ErrorCode::BadRequest, problem)
}

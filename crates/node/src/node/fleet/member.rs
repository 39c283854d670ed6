//! This node as one that takes part in roll-outs: does what [`Member`] asks for, on the disk and by
//! hooks, and tells it what came of it.

use super::super::Node;
use super::super::hook::{HookError, run, run_to_its_end};
use super::files::{
    copy, discard, image_name, is_image, is_there, manifest_name, read_version, take_manifest,
};
use super::{Fleet, since_start};
use crate::config::{FleetHooks, MemberConfig};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::{Manifest, Refusal};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_fleet::rollout::{
    Action, Dropped, Exit, Facts, HOOK_WITHIN, Member, Packet, SavedMember, SignedOrder, Standing,
    Why,
};
use ncmesh_fleet::{Image, MAX_BYTES, ReleaseId, Trust, Version};
use ncmesh_wire::{FlowId, NodeId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Name of its file in the state directory.
pub(super) const STATE: &str = "fleet-member";
/// Exit code of a shell for a program that cannot be started.
const CANNOT_START: i32 = 127;
/// Exit code of a shell for a program that a signal ended, without the signal's number.
const KILLED: i32 = 128;
/// Pauses between attempts to save the state.
const PAUSES: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(64) };

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
    config: MemberConfig,
    pub(super) member: Member,
    /// Node that the last order came from.
    operator: Option<NodeId>,
    /// Release whose manifest it waits for.
    wanted: Option<ReleaseId>,
    /// Image that it waits for.
    fetch: Option<Fetch>,
    /// Files that it receives for one of these.
    arriving: BTreeSet<FlowId>,
    /// Whether the state is being saved. All other actions wait for it.
    is_saving: bool,
    /// Whether files are being removed. All other actions wait for it.
    is_discarding: bool,
    /// When the state is saved again after a failure.
    save_at: Option<Instant>,
    failures: u32,
    /// What the operator was told last without having asked.
    told: Option<(Standing, Option<Why>)>,
}

/// Image that is fetched, with the ticket of the action.
#[derive(Clone)]
struct Fetch {
    ticket: u64,
    image: Image,
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
            told: None,
        }
    }

    /// Returns when [`Node::drive_fleet`] has something to do for it.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let due = self.member.poll_timeout().map(|at| Instant::default() + at);
        due.into_iter().chain(self.save_at).min()
    }

    /// Returns the next thing to do, unless one before it is under way.
    fn poll_action(&mut self) -> Option<Action> {
        if self.is_saving || self.is_discarding { None } else { self.member.poll_action() }
    }

    /// Returns whether it waits for this file.
    fn wants(&self, file: &Manifest) -> bool {
        let size = file.geometry.size();
        let is_image = self.fetch.as_ref().is_some_and(|Fetch { image, .. }| {
            let is_named = file.name == image_name(image);
            is_named && file.hash == image.digests.blake3 && size == image.size
        });
        let is_manifest = self.wanted.is_some_and(|release| file.name == manifest_name(release));
        is_image || is_manifest && size <= MAX_BYTES as u64
    }

    /// Returns the environment of its hooks.
    fn variables(&self, image: Option<&Image>) -> Vec<(&'static str, OsString)> {
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

impl Fleet {
    /// Says whether a file of a roll-out is received, and where. `None` if the node does not wait
    /// for it.
    pub(in crate::node) fn place(&mut self, file: &Manifest) -> Option<PathBuf> {
        let side = self.member.as_mut()?;
        if !side.wants(file) {
            return None;
        }
        side.arriving.insert(file.flow);
        Some(side.config.dir.clone())
    }

    /// Returns the keys that releases are checked with, if this node takes part in roll-outs.
    pub(super) fn trust(&self) -> Option<&Trust> {
        self.member.as_ref().map(|side| &side.config.trust)
    }

    /// Returns whether a directory is that of images.
    pub(in crate::node) fn is_place(&self, dir: &Path) -> bool {
        self.member.as_ref().is_some_and(|side| side.config.dir == dir)
    }
}

impl Node {
    /// Takes an order that came from a node.
    pub(super) fn handle_fleet_order(
        &mut self,
        from: NodeId,
        order: &SignedOrder,
    ) -> Result<(), DropReason> {
        let now = self.clock.now();
        let side = self.fleet.member.as_mut().ok_or(DropReason::UnknownService)?;
        let report =
            side.member.handle_order(since_start(now), order).map_err(|why| match why {
                Dropped::Stranger | Dropped::Signature => DropReason::Untrusted,
                Dropped::Old => DropReason::Stale,
            })?;

        side.operator = Some(from);
        side.told = Some((report.standing, report.why.clone()));
        let model = side.config.model.clone();
        self.send_fleet(from, &Packet::Report { report, model });
        self.do_fleet_actions();
        Ok(())
    }

    /// Ends what takes too long, saves again what could not be saved, and reports what changed.
    pub(super) fn drive_member(&mut self, now: Instant) {
        let Some(side) = &mut self.fleet.member else { return };
        side.member.handle_timeout(since_start(now));
        if side.save_at.is_some_and(|at| at <= now) {
            side.save_at = None;
            self.save_member();
        }
        self.do_fleet_actions();
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
                Action::Apply(ticket, image) => self.change_image(ticket, Some(image)),
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
        let saved = Saved {
            member: side.member.save(since_start(now)),
            operator: side.operator.map(|node| node.0),
        };
        let state = self.state.clone();
        let work = move || state.replace(STATE, &serde_json::to_vec_pretty(&saved)?);

        self.handle.work(work, |node, written: io::Result<()>| {
            node.chores.note(STATE, &written);
            let now = node.clock.now();
            let Some(side) = &mut node.fleet.member else { return };
            if written.is_ok() {
                side.is_saving = false;
                side.failures = 0;
            } else {
                side.save_at = Some(now + PAUSES.pause(side.failures));
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
    pub(in crate::node) fn take_fleet_file(&mut self, file: &Manifest, path: &Path) {
        let Some(side) = &mut self.fleet.member else { return };
        side.arriving.remove(&file.flow);
        if let Some(Fetch { ticket, image }) = side.fetch.clone()
            && file.hash == image.digests.blake3
        {
            return self.note_fetched(ticket, Ok(()));
        }

        // Anything else is a manifest, or has come too late.
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

    pub(super) fn take_fleet_manifest(&mut self, bytes: &[u8]) {
        if let Some(side) = &mut self.fleet.member {
            side.member.handle_manifest(bytes);
            self.do_fleet_actions();
        }
    }

    /// Notes that a file of a roll-out was refused here.
    pub(in crate::node) fn note_fleet_refused(&mut self, flow: FlowId, why: Refusal) {
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
    fn change_image(&mut self, ticket: u64, image: Option<Image>) {
        let Some(side) = &self.fleet.member else { return };
        let FleetHooks { apply, rollback, .. } = &side.config.hooks;
        let name = if image.is_some() { "apply" } else { "rollback" };
        let hook = if image.is_some() { apply } else { rollback }.clone();
        let variables = side.variables(image.as_ref());
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

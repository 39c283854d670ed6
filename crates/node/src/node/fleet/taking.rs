//! This node takes part in roll-outs: the packets and files that come, what it does with its image,
//! and how it goes on and helps others while the operator's node is gone.

use super::clock::since_start;
use super::files::{
    copy, discard, image_name, is_fleet_name, is_image, is_manifest_name, is_there, manifest_name,
    read_version, take_manifest,
};
use super::member::{self, Fetch};
use super::operator::MANIFEST_PRIORITY;
use super::serve::{Outgoing, Transfer, Wishes};
use crate::api;
use crate::api::types::{Recipients, SendRequest};
use crate::config::FleetHooks;
use crate::node::hook::{HookError, run, run_to_its_end};
use crate::node::{Moment, Node, Receivers};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::{self, Refusal};
use ncmesh_engine::time::Instant;
use ncmesh_engine::topology::Metric;
use ncmesh_fleet::Image;
use ncmesh_fleet::rollout::{
    self, Action, Dropped, Exit, HOOK_WITHIN, Lacks, Packet, PassedOrder, SignedOrder, Why,
};
use ncmesh_host::files::Known;
use ncmesh_host::gateway::Mesh;
use ncmesh_wire::{FlowId, NodeId};
use std::ffi::OsString;
use std::io;
use std::path::Path;

/// Name of the file in the state directory from which a holder sends the manifest.
const HELD_MANIFEST: &str = "fleet-held-manifest";
/// Exit code of a shell for a program that cannot be started.
const CANNOT_START: i32 = 127;
/// Exit code of a shell for a program that a signal ended, without the signal's number.
const KILLED: i32 = 128;

impl Node {
    // ---- packets and files

    /// Goes on with roll-outs: what is due, and what could not be done before.
    pub(in crate::node) fn drive_fleet(&mut self) {
        let now = self.clock.now();
        self.drive_member(now);
        self.drive_operator(now);
    }

    /// Takes a packet of a roll-out that came through the mesh.
    pub(in crate::node) fn handle_fleet_packet(&mut self, from: NodeId, packet: &[u8]) {
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
    pub(super) fn send_fleet(&mut self, to: NodeId, packet: &Packet) -> bool {
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
    pub(in crate::node) fn known(&mut self, file: &file::Manifest) -> Option<Known> {
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
    pub(in crate::node) fn is_fleet_file(file: &file::Manifest) -> bool {
        is_fleet_name(&file.name)
    }

    // ---- orders and the state

    /// Takes an order that came from a node.
    pub(super) fn handle_fleet_order(
        &mut self,
        from: NodeId,
        order: &SignedOrder,
    ) -> Result<(), DropReason> {
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
    pub(super) fn drive_member(&mut self, now: Instant) {
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
    pub(super) fn do_fleet_actions(&mut self) {
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
    pub(super) fn report_change(&mut self) {
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
    pub(super) fn save_member(&mut self) {
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

    // ---- the image

    /// Fetches an image: it may be there from before, and the operator's own node has its file.
    /// All others tell the operator that they lack it, and wait for it.
    pub(super) fn fetch_image(&mut self, ticket: u64, image: Image) {
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

    pub(super) fn note_fetched(&mut self, ticket: u64, fetched: Result<(), Why>) {
        let now = since_start(self.clock.now());
        let Some(side) = &mut self.fleet.member else { return };
        side.fetch = None;
        side.member.handle_fetched(now, ticket, fetched);
        self.do_fleet_actions();
    }

    /// Takes a whole file of a roll-out, which was received and verified.
    pub(in crate::node) fn take_fleet_file(&mut self, file: &file::Manifest, path: &Path) {
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

    pub(super) fn take_fleet_manifest(&mut self, bytes: &[u8]) {
        if let Some(side) = &mut self.fleet.member {
            side.member.handle_manifest(bytes);
            self.do_fleet_actions();
        }
    }

    /// Notes that a file of a roll-out was refused here.
    pub(in crate::node) fn note_fleet_refused(&mut self, flow: FlowId, why: Refusal) {
        let Some(side) = &mut self.fleet.member else { return };
        if !side.arriving.remove(&flow) || why != Refusal::NoSpace {
            return;
        }

        if let Some(Fetch { ticket, .. }) = side.fetch {
            self.note_fetched(ticket, Err(Why::Space));
        } else {
            side.member.handle_no_space(since_start(self.clock.now()));
            self.report_change();
        }
    }

    /// Reads the image's file and lets the hook look at it.
    pub(super) fn check_image(&mut self, ticket: u64, image: Image) {
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
    pub(super) fn change_image(&mut self, ticket: u64, image: Option<&Image>) {
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
    pub(super) fn keep_image(&mut self) {
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
    pub(super) fn discard_image(&mut self) {
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
    pub(super) fn drive_search(&mut self, now: Instant) {
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
    pub(super) fn serve(
        &self,
        now: Instant,
        wishes: &mut Wishes,
        file: impl Fn(&str) -> Option<Outgoing>,
    ) {
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
    pub(super) fn handle_fleet_ask(
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
    pub(super) fn hold_manifest(&mut self, to: NodeId, name: String, text: String) {
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

    pub(super) fn note_held_wish(&mut self, from: NodeId, name: Option<String>) {
        let now = self.clock.now();
        if let Some(side) = &mut self.fleet.member {
            side.wishes.note(now, from, name);
        }
    }

    /// Sends files to the nodes that asked this one for them.
    pub(super) fn serve_held(&mut self, now: Instant) {
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
    pub(super) fn handle_fleet_passed(
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

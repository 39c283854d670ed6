//! This node leads a roll-out: its orders, the reports that come, the files that it sends, and the
//! commands of its operator.

use super::clock::since_start;
use super::files::{is_fleet_name, manifest_name};
use super::operator::{self, LONGEST_PAUSE, Lead, MANIFEST, MANIFEST_PRIORITY, Push, Task};
use super::serve::Outgoing;
use super::status::{self, FleetNodes};
use crate::api::fleet::{FleetEvents, FleetStatus};
use crate::api::types::{ApiError, ErrorCode, Recipients};
use crate::identity::unix_s;
use crate::node::Node;
use crate::node::names::{name_of, resolve_name};
use ncmesh_console::schema::{self, RolloutState};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::{self, Direction, TransferStatus};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_fleet::rollout::{self, Link, Order, Packet, Report, Rollout, SignedOrder, Stage};
use ncmesh_fleet::{Manifest, ReleaseId};
use ncmesh_wire::{FlowId, NodeId};
use std::io;

impl Node {
    /// Goes on with the roll-out that this node leads.
    pub(super) fn drive_operator(&mut self, now: Instant) {
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
    pub(super) fn tell_order(&mut self, now: Instant, order: Order) {
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
        self.note_fleet_events();
        Ok(())
    }

    /// Notes that a node takes part in no roll-outs.
    pub(super) fn handle_no_fleet(&mut self, from: NodeId, number: u64) -> Result<(), DropReason> {
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
    pub(super) fn serve_wishes(&mut self, now: Instant) {
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
    pub(super) fn save_operator(&mut self, now: Instant) {
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

    /// Takes the manifest of the own roll-out, which this node need not be sent.
    pub(super) fn take_own_manifest(&mut self, release: ReleaseId) {
        let lead = self.fleet.operator.as_ref().and_then(|side| side.lead.as_ref());
        let own = lead.filter(|lead| lead.manifest.release().id() == release);
        if let Some(text) = own.map(|lead| lead.manifest.to_string()) {
            self.take_fleet_manifest(text.as_bytes());
        }
    }

    /// Ends the transfers of a roll-out that needs them no more.
    pub(super) fn cancel_fleet_files(&mut self) {
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
    pub(super) fn fleet_links(&self) -> Vec<Link> {
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

    /// Notes what has changed in the roll-out that this node leads.
    pub(super) fn note_fleet_events(&mut self) {
        let stack = &self.stack;
        let lead = self.fleet.operator.as_mut().and_then(|side| side.lead.as_mut());
        if let Some(Lead { events, rollout, .. }) = lead {
            events.note(unix_s(), rollout, |node| name_of(stack, NodeId(node.0)));
        }
    }

    // ---- commands and status

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

    /// Returns how far roll-outs are.
    pub(crate) fn fleet_status(&self) -> FleetStatus {
        let lead = self.fleet.operator.as_ref().and_then(|side| side.lead.as_ref());
        let member = self.fleet.member.as_ref().map(|side| status::taken(&side.member));
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

    /// Returns the roll-out that this node leads, as a console shows it.
    pub(in crate::node) fn shown_rollout(&self) -> Option<(schema::Rollout, RolloutState)> {
        let lead = self.fleet.operator.as_ref()?.lead.as_ref()?;
        let head = lead.manifest.release().head();
        let rollout = schema::Rollout {
            number: lead.rollout.number().into(),
            name: head.name.clone(),
            version: head.version.to_string(),
            from: self.id().0,
        };
        Some((rollout, status::shown(lead)))
    }
}

fn no_operator() -> ApiError {
    let problem = "this node leads no roll-outs: give it [fleet] operator_key and start it again";
    ApiError::new(ErrorCode::BadRequest, problem)
}

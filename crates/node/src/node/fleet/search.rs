//! Roll-outs without their operator: a node that heard no order, or that waits for a file while the
//! operator's node cannot be reached, asks others, and those that hold the file send it.
//!
//! It asks one node at a time, the nearest first, so one holder near enough answers and a mesh that
//! comes up at once has no storm. Questions become rarer while nobody has it.

use super::super::Node;
use super::files::{image_name, is_fleet_name, manifest_name};
use super::serve::Outgoing;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::{self, Direction};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_engine::topology::Metric;
use ncmesh_fleet::rollout::{self, Dropped, Lacks, Packet, PassedOrder};
use ncmesh_wire::NodeId;
use std::collections::BTreeSet;

use super::clock::since_start;
use super::operator::MANIFEST_PRIORITY;

/// Name of the file in the state directory from which a holder sends the manifest.
const HELD_MANIFEST: &str = "fleet-held-manifest";
/// Time after a start in which an order may come by itself.
const FIRST_ASK: Duration = Duration::from_secs(3);
/// Time that an operator's node that can be reached has to begin to send a file.
const SERVED_WITHIN: Duration = Duration::from_secs(30);
/// Time that a node which has the file has to begin to send it.
const BEGUN_WITHIN: Duration = Duration::from_secs(30);
/// Pause between two looks whether a question is due.
const LOOK: Duration = Duration::from_secs(2);
/// Pauses between questions.
const ASKS: Backoff = Backoff { first: Duration::from_secs(5), longest: Duration::from_secs(3600) };
/// Questions after which the pause between two doubles.
const DOUBLED_AFTER: usize = 8;

/// Search of a node for another one that has what it lacks.
pub(super) struct Search {
    /// The thing that it lacks.
    lacks: Option<Lacks>,
    /// Since when.
    since: Instant,
    /// When it looks next whether to ask.
    at: Instant,
    /// Nodes that were asked since all were asked last.
    asked: BTreeSet<NodeId>,
    /// Questions since it lacks this.
    asks: usize,
    /// Node that had an order. It is asked first for the files.
    holder: Option<NodeId>,
}

impl Search {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            lacks: None,
            since: now,
            at: now + FIRST_ASK,
            asked: BTreeSet::new(),
            asks: 0,
            holder: None,
        }
    }

    /// Returns when it is to be driven.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.lacks.map(|_| self.at)
    }

    /// Notes what the node lacks now. Something new is asked for soon, and of all nodes.
    fn note(&mut self, now: Instant, lacks: Option<Lacks>) {
        if self.lacks != lacks {
            self.lacks = lacks;
            self.since = now;
            self.asked.clear();
            self.asks = 0;
            // The first wait is over once an order was passed on.
            self.at = if lacks == Some(Lacks::Order) { now + FIRST_ASK } else { now };
        }
    }
}

impl Node {
    /// Asks the next node for what this one lacks, if that is due.
    pub(super) fn drive_search(&mut self, now: Instant) {
        let me = self.id();
        let Some(side) = &mut self.fleet.member else { return };
        // An operator that was heard repeats its order.
        let lacks = side.member.lacks().filter(|lacks| *lacks != Lacks::Order || !side.is_told);
        side.search.note(now, lacks);
        let Some(lacks) = lacks.filter(|_| side.search.at <= now) else { return };

        // The operator's node comes first, and a transfer that goes on is waited for.
        let paths = self.stack.topology().paths_from(me, Metric::Unicast);
        let is_led = side.operator.is_some_and(|operator| paths.reaches(operator));
        let transfers = self.stack.transfers();
        let is_arriving = transfers.iter().any(|t| {
            t.direction == Direction::Receiving
                && t.stage == file::Stage::Open
                && is_fleet_name(&t.name)
                && paths.reaches(t.flow.source)
        });
        let search = &mut side.search;
        if is_arriving || is_led && now < search.since + SERVED_WITHIN {
            search.at = now + LOOK;
            return;
        }

        // All were asked, or there is none yet: from the beginning.
        let operator = side.operator;
        let others = self.stack.topology().nodes();
        let is_open =
            |node: &NodeId| *node != me && Some(*node) != operator && paths.reaches(*node);
        let others: Vec<NodeId> =
            others.filter(is_open).filter(|node| !search.asked.contains(node)).collect();
        let nearest = others
            .iter()
            .min_by_key(|node| (search.holder != Some(**node), paths.distance(**node)))
            .copied();
        let Some(nearest) = nearest else {
            search.asked.clear();
            search.at = now + ASKS.pause((search.asks / DOUBLED_AFTER) as u32).max(LOOK);
            return;
        };

        search.asked.insert(nearest);
        search.at = now + ASKS.pause((search.asks / DOUBLED_AFTER) as u32);
        search.asks += 1;
        let model = side.config.model.clone();
        self.send_fleet(nearest, &Packet::Ask { lacks, model });
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
    pub(super) fn serve_held(&mut self, now: Instant) {
        let Some(side) = &mut self.fleet.member else { return };
        if !side.wishes.is_due(now) {
            return;
        }

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
        if let Some(side) = &mut self.fleet.member {
            side.wishes = wishes;
        }
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
        if side.search.lacks.is_none() || !side.search.asked.contains(&from) {
            return Err(DropReason::UnknownFlow);
        }

        // A node that sends the file has some time to begin; else it is the next one's turn.
        side.search.at = if has { now + BEGUN_WITHIN } else { now };
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
                    tracing::info!(
                        "[fleet] node {from} passed on an order of roll-out {}",
                        report.rollout
                    );
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

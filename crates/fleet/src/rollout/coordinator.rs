//! The operator's side of a roll-out.

use super::order::{Node, Number, Order, Report, Standing, Step, Why, saved_key};
use super::plan::{Batch, Link, batches};
use crate::judge::Known;
use crate::version::Version;
use core::fmt;
use core::time::Duration;
use ncmesh_wire::identity::PublicKey;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Time after which the order is told again.
pub const REPEAT_AFTER: Duration = Duration::from_secs(10);

/// Distance of order numbers before and after a restart: more than can go unsaved between.
const RESTART_STEP: u64 = 1 << 20;

/// How a roll-out goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Time after which nodes that have not staged the release are listed as missing.
    pub stage_within: Duration,
    /// Time in which the nodes of a batch must run the new image and be confirmed.
    pub update_within: Duration,
    /// Time that a node waits for its confirmation before it goes back.
    pub confirm_within: Duration,
    /// Size of a batch.
    pub batch: Batch,
    /// Nodes that are updated before all others.
    pub canaries: BTreeSet<Node>,
    /// Whether nodes may go to an older version.
    pub may_downgrade: bool,
    /// Whether nodes on trial are kept by [`Rollout::confirm`] alone, not as soon as they are
    /// heard.
    pub by_hand: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            stage_within: Duration::from_secs(86_400),
            update_within: Duration::from_secs(1200),
            confirm_within: Duration::from_secs(600),
            batch: Batch::Percent(10),
            canaries: BTreeSet::new(),
            may_downgrade: false,
            by_hand: false,
        }
    }
}

/// State of a node, as the roll-out knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// How far it is; `None` if it was never heard.
    pub standing: Option<Standing>,
    /// Why.
    pub why: Option<Why>,
    /// Version that it runs.
    pub running: Option<Version>,
}

/// Reason why a roll-out stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// A node failed.
    Failed(Node, Standing, Option<Why>),
    /// Nodes did not come back in time.
    NotBack(Vec<Node>),
    /// Another roll-out is under way at a node.
    Other(Node, Why),
    /// The operator ended it.
    Operator,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(node, standing, why) => {
                write!(f, "node {node}: {}", standing.name())?;
                why.as_ref().map_or(Ok(()), |why| write!(f, ", {why}"))
            }
            Self::NotBack(nodes) => write!(f, "not back in time: {}", list(nodes)),
            Self::Other(node, why) => write!(f, "node {node}: {why}"),
            Self::Operator => f.write_str("ended by the operator"),
        }
    }
}

/// Stage of a roll-out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Nodes get the image.
    Pushing,
    /// All that will have it have it, and the operator decides.
    Pushed,
    /// The first batch begins at a time that was given.
    Scheduled,
    /// The batch of this index is updated.
    Applying(usize),
    /// All batches are updated.
    Done,
    /// No further node is updated.
    Stopped(Stop),
    /// Nodes go back.
    RollingBack,
    /// They went back.
    RolledBack,
}

/// Reason why a release is not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// It was applied before, or the roll-out has stopped.
    #[error("the release is not only staged")]
    Stage,
    /// Nodes lack it.
    #[error("{} nodes have not staged it: {}", .0.len(), list(.0))]
    Missing(Vec<Node>),
    /// No node has it.
    #[error("no node has staged it")]
    NoneStaged,
}

/// Roll-out of a release, at its operator. Saved as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollout {
    #[serde(with = "saved_key")]
    operator: PublicKey,
    node: Node,
    number: Number,
    release: Known,
    settings: Settings,
    stage: Stage,
    rows: BTreeMap<Node, Row>,
    batches: Vec<Vec<Node>>,
    keep: BTreeSet<Node>,
    /// When the stage ends; in a saved state, the time that is left.
    until: Option<Duration>,
    /// When the order is told next; `None` once nobody waits for it.
    #[serde(skip)]
    tell_at: Option<Duration>,
}

impl Rollout {
    /// Begins a roll-out to nodes. `number` is larger than those of all earlier ones of the
    /// operator; `node` is the operator's own.
    #[must_use]
    pub fn new(
        now: Duration,
        operator: PublicKey,
        number: u64,
        node: Node,
        release: Known,
        nodes: impl IntoIterator<Item = Node>,
        settings: Settings,
    ) -> Self {
        let until = Some(now + settings.stage_within);

        // Nothing is known of any node until it answers the first order, which is due at once.
        Self {
            operator,
            node,
            number: Number { rollout: number, sequence: 0 },
            release,
            settings,
            stage: Stage::Pushing,
            rows: nodes.into_iter().map(|node| (node, Row::default())).collect(),
            batches: Vec::new(),
            keep: BTreeSet::new(),
            until,
            tell_at: Some(now),
        }
    }

    /// Returns the state to be saved.
    #[must_use]
    pub fn save(&self, now: Duration) -> Self {
        let until = self.until.map(|until| until.saturating_sub(now));
        Self { until, ..self.clone() }
    }

    /// Continues with a saved state. Returns `None` if its parts do not fit each other.
    #[must_use]
    pub fn restore(saved: Self, now: Duration) -> Option<Self> {
        // A file that was edited or torn must not lead to an index that is not there.
        let is_known = |node: &Node| saved.rows.contains_key(node);
        let fits = match saved.stage {
            Stage::Applying(at) => at < saved.batches.len(),
            _ => true,
        };
        if !fits || !saved.batches.iter().flatten().all(is_known) {
            return None;
        }

        // Orders go on, under larger numbers: the last one may not have been saved.
        let sequence = saved.number.sequence.saturating_add(RESTART_STEP);
        let number = Number { sequence, ..saved.number };

        let until = saved.until.map(|left| now.saturating_add(left));
        // A roll-out that has told its last order for long enough stays silent.
        let is_told = until.is_some() || saved.stage == Stage::Pushed;
        Some(Self { until, number, tell_at: is_told.then_some(now), ..saved })
    }

    /// Returns its number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number.rollout
    }

    /// Returns its settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Changes the settings. Times of the stage under way stay as they are.
    pub fn adjust(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Takes a node into the roll-out that was not known when it began. Only while the release is
    /// staged: batches are made once.
    pub fn include(&mut self, now: Duration, node: Node) {
        if matches!(self.stage, Stage::Pushing | Stage::Pushed) && !self.rows.contains_key(&node) {
            self.rows.insert(node, Row::default());
            self.tell_at = Some(now);
        }
    }

    /// Returns the stage.
    #[must_use]
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Returns what is known of each node.
    #[must_use]
    pub fn rows(&self) -> &BTreeMap<Node, Row> {
        &self.rows
    }

    /// Returns the batches, once the release is applied.
    #[must_use]
    pub fn batches(&self) -> &[Vec<Node>] {
        &self.batches
    }

    /// Says in one line what the roll-out waits for, or how it ended.
    #[must_use]
    pub fn waits_for(&self) -> String {
        match &self.stage {
            Stage::Pushing => format!("staging at nodes {}", list(&self.missing())),
            Stage::Pushed if self.missing().is_empty() => {
                "staged everywhere; waits for the operator".into()
            }
            Stage::Pushed => format!("waits for the operator; missing: {}", list(&self.missing())),
            Stage::Scheduled => format!("the time of the first of {} batches", self.batches.len()),
            Stage::Applying(at) => {
                let number = at + 1;
                let all = self.batches.len();
                format!("batch {number} of {all}, nodes {}", list(&self.open(*at)))
            }
            Stage::Done => "done".into(),
            Stage::Stopped(why) => format!("stopped: {why}"),
            Stage::RollingBack => format!("nodes {} go back", list(&self.not_back())),
            Stage::RolledBack => "rolled back".into(),
        }
    }

    /// Returns the moment at which the first batch begins, if that is to come.
    #[must_use]
    pub fn begins_at(&self) -> Option<Duration> {
        self.until.filter(|_| self.stage == Stage::Scheduled)
    }

    /// Returns the longest order that it can come to: all of its nodes install and keep.
    #[must_use]
    pub fn longest_order(&self) -> Order {
        let all: BTreeSet<Node> = self.rows.keys().copied().collect();
        let within = self.settings.confirm_within;
        self.order(Step::Apply { apply: all.clone(), keep: all, within })
    }

    /// Begins to update the nodes that have staged the release, once this time has passed. With
    /// `without_missing` it does so though some have not.
    ///
    /// # Errors
    /// [`ApplyError`].
    pub fn apply(
        &mut self,
        now: Duration,
        links: &[Link],
        after: Duration,
        without_missing: bool,
    ) -> Result<(), ApplyError> {
        if !matches!(self.stage, Stage::Pushing | Stage::Pushed) {
            return Err(ApplyError::Stage);
        }

        // Nodes that are missing are left out only if the operator has said so: they would run the
        // old image beside the new one.
        let missing = self.missing();
        if !missing.is_empty() && !without_missing {
            return Err(ApplyError::Missing(missing));
        }

        // Only nodes that say that they have the image are asked to install it.
        let is_staged = |(_, row): &(&Node, &Row)| row.standing == Some(Standing::Staged);
        let staged: BTreeSet<Node> =
            self.rows.iter().filter(is_staged).map(|(node, _)| *node).collect();
        if staged.is_empty() {
            return Err(ApplyError::NoneStaged);
        }

        let Settings { batch, canaries, .. } = &self.settings;
        self.batches = batches(self.node, links, &staged, canaries, *batch);
        if after.is_zero() {
            self.enter(now, Stage::Applying(0));
        } else {
            self.enter(now, Stage::Scheduled);
            self.until = Some(now.saturating_add(after));
        }
        Ok(())
    }

    /// Keeps the nodes that are on trial. Returns how many.
    pub fn confirm(&mut self, now: Duration) -> usize {
        let is_trial = |(_, row): &(&Node, &Row)| row.standing == Some(Standing::Trial);
        let trial: Vec<Node> = self.rows.iter().filter(is_trial).map(|(node, _)| *node).collect();
        for node in &trial {
            self.keep(now, *node);
        }
        trial.len()
    }

    /// Ends the roll-out: no further node is updated, and those on trial go back.
    pub fn abort(&mut self, now: Duration) {
        if matches!(
            self.stage,
            Stage::Pushing | Stage::Pushed | Stage::Scheduled | Stage::Applying(_)
        ) {
            self.enter(now, Stage::Stopped(Stop::Operator));
        }
    }

    /// Sends all nodes that were updated back to their old image.
    pub fn rollback(&mut self, now: Duration) {
        if !matches!(self.stage, Stage::RollingBack | Stage::RolledBack) {
            self.enter(now, Stage::RollingBack);
            self.progress(now);
        }
    }

    /// Takes the report of a node. One that is not in the roll-out, or of another roll-out, is
    /// ignored.
    pub fn handle_report(&mut self, now: Duration, report: &Report) {
        let Report { node, operator, rollout, standing, why, running } = report;
        if *operator != self.operator || *rollout != self.number.rollout {
            return;
        }
        let Some(row) = self.rows.get_mut(node) else { return };
        *row = Row { standing: Some(*standing), why: why.clone(), running: Some(running.clone()) };

        // Two roll-outs at once would leave nodes with different images, so the later one gives
        // way.
        let is_open = matches!(
            self.stage,
            Stage::Pushing | Stage::Pushed | Stage::Scheduled | Stage::Applying(_)
        );
        if let (true, Some(other @ Why::Busy { .. })) = (is_open, why) {
            self.enter(now, Stage::Stopped(Stop::Other(*node, other.clone())));
        }

        // A node that is kept already needs no confirmation, which may wait for the operator.
        let is_trial = *standing == Standing::Trial && !self.settings.by_hand;
        if is_trial || *standing == Standing::Kept {
            self.keep(now, *node);
        }
        self.progress(now);
    }

    /// Notes that a node takes part in no roll-outs. Nothing waits for it any more.
    pub fn handle_no_fleet(&mut self, now: Duration, node: Node) {
        if let Some(row) = self.rows.get_mut(&node) {
            *row = Row { standing: Some(Standing::NoFleet), ..Row::default() };
            self.progress(now);
        }
    }

    /// Ends a stage whose time is over.
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.until.is_none_or(|until| until > now) {
            return;
        }

        // Time being over is good news only for a push, which may be applied to those that have it.
        match &self.stage {
            Stage::Pushing => self.enter(now, Stage::Pushed),
            Stage::Scheduled => self.enter(now, Stage::Applying(0)),
            Stage::Applying(at) => {
                let late = self.open(*at);
                self.enter(now, Stage::Stopped(Stop::NotBack(late)));
            }
            Stage::RollingBack => {
                let late = self.not_back();
                self.enter(now, Stage::Stopped(Stop::NotBack(late)));
            }
            // A node that has not heard the last order by now ends by its own time limits.
            Stage::Done | Stage::Stopped(_) | Stage::RolledBack => {
                self.tell_at = None;
                self.until = None;
            }
            Stage::Pushed => {}
        }
    }

    /// Returns when [`Rollout::handle_timeout`] or [`Rollout::poll_order`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.until.into_iter().chain(self.tell_at).min()
    }

    /// Returns the order to be signed and flooded now.
    pub fn poll_order(&mut self, now: Duration) -> Option<Order> {
        self.tell_at.filter(|at| *at <= now)?;
        self.tell_at = Some(now + REPEAT_AFTER);

        // Every stage has one order that says all that a node must know, whatever it missed before.
        let step = match &self.stage {
            Stage::Pushing | Stage::Pushed | Stage::Scheduled => Step::Stage,
            Stage::Applying(at) => self.applying(at + 1),
            Stage::Done => self.applying(self.batches.len()),
            Stage::Stopped(_) => Step::Abort,
            Stage::RollingBack | Stage::RolledBack => Step::Rollback,
        };
        Some(self.order(step))
    }

    fn order(&self, step: Step) -> Order {
        Order {
            operator: self.operator,
            number: self.number,
            release: self.release.id,
            may_downgrade: self.settings.may_downgrade,
            step,
        }
    }

    /// Orders a node to keep the image, if its turn has come. Each such order is a new one.
    fn keep(&mut self, now: Duration, node: Node) {
        let Stage::Applying(at) = self.stage else { return };
        let has_turn = self.batches[..=at].iter().flatten().any(|other| *other == node);
        if has_turn && self.keep.insert(node) {
            self.tell(now);
        }
    }

    fn applying(&self, batches: usize) -> Step {
        // Earlier batches stay in the order: a node of theirs that was off still gets its turn.
        let apply = self.batches[..batches].iter().flatten().copied().collect();
        let within = self.settings.confirm_within;
        Step::Apply { apply, keep: self.keep.clone(), within }
    }

    /// Tells a changed order at once, under the next number.
    fn tell(&mut self, now: Duration) {
        self.number.sequence += 1;
        self.tell_at = Some(now);
    }

    fn enter(&mut self, now: Duration, stage: Stage) {
        let Settings { update_within, confirm_within, .. } = &self.settings;
        self.until = match &stage {
            Stage::Pushing | Stage::Pushed | Stage::Scheduled => None,
            Stage::Applying(_) | Stage::RollingBack => Some(now + *update_within),
            // The last order is told until all trials are over.
            Stage::Done | Stage::Stopped(_) | Stage::RolledBack => {
                Some(now + *update_within + *confirm_within)
            }
        };

        self.stage = stage;
        self.tell(now);
    }

    /// Goes on when a stage has what it waits for.
    fn progress(&mut self, now: Duration) {
        match self.stage {
            Stage::Pushing => {
                // Refusals are answers, too: such nodes are listed as missing.
                let is_open = |row: &Row| matches!(row.standing, None | Some(Standing::Staging));
                if !self.rows.values().any(is_open) {
                    self.enter(now, Stage::Pushed);
                }
            }
            Stage::Applying(at) => {
                // A node of an earlier batch may fail later, too.
                let mut updated = self.batches[..=at].iter().flatten();
                let failed = updated.find_map(|node| {
                    let row = &self.rows[node];
                    let standing = row.standing.filter(|standing| has_failed(*standing))?;
                    Some(Stop::Failed(*node, standing, row.why.clone()))
                });

                // One failure stops all: the next batch would most likely fail the same way.
                if let Some(stop) = failed {
                    self.enter(now, Stage::Stopped(stop));
                } else if self.open(at).is_empty() {
                    let next = at + 1;
                    let is_last = next == self.batches.len();
                    self.enter(now, if is_last { Stage::Done } else { Stage::Applying(next) });
                }
            }
            Stage::RollingBack if self.not_back().is_empty() => {
                self.enter(now, Stage::RolledBack);
            }
            _ => {}
        }
    }

    /// Returns the nodes that have not staged the release and do not run it. Nodes that take part
    /// in no roll-outs are none of them.
    fn missing(&self) -> Vec<Node> {
        use Standing::{Kept, NoFleet, Staged};
        let has = |row: &Row| matches!(row.standing, Some(Staged | Kept | NoFleet));
        self.rows.iter().filter(|(_, row)| !has(row)).map(|(node, _)| *node).collect()
    }

    /// Returns the nodes of a batch that are not updated.
    fn open(&self, batch: usize) -> Vec<Node> {
        let is_kept = |node: &Node| self.rows[node].standing == Some(Standing::Kept);
        self.batches[batch].iter().filter(|node| !is_kept(node)).copied().collect()
    }

    /// Returns the nodes that may still run the new image.
    fn not_back(&self) -> Vec<Node> {
        // A node that was never heard may have installed the image, so it counts as one that runs
        // it.
        let may_run = |node: &Node| {
            use Standing::{Applying, Kept, RollingBack, Trial};
            let standing = self.rows[node].standing;
            matches!(standing, None | Some(Applying | Trial | Kept | RollingBack))
        };
        self.batches.iter().flatten().filter(|node| may_run(node)).copied().collect()
    }
}

fn has_failed(standing: Standing) -> bool {
    use Standing::{Aborted, Failed, NoFleet, Refused, RolledBack, RollingBack};
    matches!(standing, Aborted | Failed | NoFleet | Refused | RolledBack | RollingBack)
}

fn list(nodes: &[Node]) -> String {
    let shown: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    shown.join(", ")
}

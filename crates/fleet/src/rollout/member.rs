//! A node that takes part in a roll-out.

use super::order::{Node, Number, Order, Report, SignedOrder, Standing, Step, Why, saved_key};
use super::packet::{Lacks, save_order, saved_order};
use crate::image::Image;
use crate::judge::{Known, Refusal, Station, Trust};
use crate::manifest::Manifest;
use crate::release::ReleaseId;
use crate::version::Version;
use core::time::Duration;
use ncmesh_wire::identity::PublicKey;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// Time in which a hook that checks an image, or one that goes back, must end.
pub const HOOK_WITHIN: Duration = Duration::from_secs(300);
/// Time in which a node must run the new image once the hook that installs it was started.
pub const RESTART_WITHIN: Duration = Duration::from_secs(600);
/// Pause after which what failed for a while is tried again: a full disk, a hook that asks for it.
pub const RETRY_AFTER: Duration = Duration::from_secs(60);
/// Times that a hook may ask for another attempt to install the image.
pub const MAX_RETRIES: u32 = 5;
/// Time without an order after which another operator may take over a node that has installed
/// nothing.
pub const OPERATOR_SILENT: Duration = Duration::from_secs(3600);

/// Exit code of a hook that wants to be tried again later: `EX_TEMPFAIL` of sysexits.h.
const LATER: i32 = 75;

/// Meaning of a hook's exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: done, or handed over to what restarts the node.
    Done,
    /// 75: try again later.
    Later,
    /// Another one: refused.
    Refused(i32),
}

impl Exit {
    /// Returns the meaning of an exit code.
    #[must_use]
    pub fn of(code: i32) -> Self {
        match code {
            0 => Self::Done,
            LATER => Self::Later,
            code => Self::Refused(code),
        }
    }
}

/// Reason why an order is not obeyed. Nobody is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// No operator of this node.
    Stranger,
    /// The signature is false.
    Signature,
    /// A later order of this operator was heard.
    Old,
}

/// Something that the driver does, in this order. An answer carries the ticket, so that one which
/// comes too late changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Save the state. The next action begins when it is on the disk.
    Save,
    /// Get the manifest of a release for [`Member::handle_manifest`].
    FetchManifest(ReleaseId),
    /// Get an image, and call [`Member::handle_fetched`].
    Fetch(u64, Image),
    /// Compare the file with the image and let the hook look at it, and call
    /// [`Member::handle_checked`].
    Check(u64, Image),
    /// Run the hook that installs the image, and call [`Member::handle_applied`] if it ends.
    Apply(u64, Image),
    /// Run the hook that goes back to the image before, and call [`Member::handle_rolled_back`] if
    /// it ends.
    Rollback(u64),
    /// Make the image permanent. Asked again after each restart, as it has no answer.
    Keep,
    /// Remove the image's file.
    Discard,
}

/// Phase of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It lacks the manifest.
    Wanting,
    /// It lacks the image.
    Fetching(Option<Why>),
    /// The image is checked.
    Checking,
    /// The image is there; a reason if it could not be installed yet.
    Staged(Option<Why>),
    /// The image is checked once more before it is installed.
    Rechecking,
    /// The hook installs it.
    Applying,
    /// The new image runs.
    Trial,
    /// It runs for good.
    Kept,
    /// The node goes back.
    RollingBack(Why),
    /// It went back.
    RolledBack(Why),
    /// The release or its image is not taken.
    Refused(Why),
    /// The node could not change its image.
    Failed(Why),
    /// The roll-out ended before.
    Aborted,
}

impl Phase {
    fn standing(&self) -> (Standing, Option<Why>) {
        match self {
            Self::Wanting => (Standing::Staging, Some(Why::Manifest)),
            Self::Fetching(why) => (Standing::Staging, Some(why.clone().unwrap_or(Why::Image))),
            Self::Checking => (Standing::Staging, None),
            Self::Staged(why) => (Standing::Staged, why.clone()),
            Self::Rechecking | Self::Applying => (Standing::Applying, None),
            Self::Trial => (Standing::Trial, None),
            Self::Kept => (Standing::Kept, None),
            Self::RollingBack(why) => (Standing::RollingBack, Some(why.clone())),
            Self::RolledBack(why) => (Standing::RolledBack, Some(why.clone())),
            Self::Refused(why) => (Standing::Refused, Some(why.clone())),
            Self::Failed(why) => (Standing::Failed, Some(why.clone())),
            Self::Aborted => (Standing::Aborted, None),
        }
    }

    /// Returns whether the image is changing, so that nothing else may begin.
    fn is_changing(&self) -> bool {
        matches!(self, Self::Applying | Self::Trial | Self::RollingBack(_))
    }

    fn is_over(&self) -> bool {
        matches!(
            self,
            Self::Kept | Self::RolledBack(_) | Self::Refused(_) | Self::Failed(_) | Self::Aborted
        )
    }
}

/// Facts about the node.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The node.
    pub node: Node,
    /// Its model.
    pub model: String,
    /// Firmware that it follows.
    pub name: String,
    /// Channel that it follows.
    pub channel: String,
    /// Version that it runs.
    pub running: Version,
}

/// Way by which an order came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// From its operator.
    Direct,
    /// From another member.
    PassedOn,
}

/// Last order of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Heard {
    #[serde(with = "saved_key")]
    operator: PublicKey,
    number: Number,
}

/// A roll-out as its member knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Job {
    #[serde(with = "saved_key")]
    operator: PublicKey,
    rollout: u64,
    release: ReleaseId,
    may_downgrade: bool,
    /// Text of the manifest, which is checked again after a restart.
    manifest: Option<String>,
    /// Why a manifest of this release that came does not count, or could not be stored.
    #[serde(default)]
    doubt: Option<Why>,
    /// Image and version of the manifest.
    #[serde(skip)]
    target: Option<Target>,
    phase: Phase,
    /// Last order, to be passed on.
    #[serde(default, serialize_with = "save_order", deserialize_with = "saved_order")]
    order: Option<SignedOrder>,
    /// Whether the image was installed by this roll-out.
    is_installed: bool,
    /// Longest trial.
    within: Duration,
    retries: u32,
    /// When the phase ends; in a saved state, the time that is left.
    until: Option<Duration>,
    /// When its operator was heard last; in a saved state, how long ago.
    heard: Duration,
}

impl Job {
    /// Returns how far it is, and why.
    fn standing(&self) -> (Standing, Option<Why>) {
        match (&self.phase, &self.doubt) {
            // More than that a manifest is missing: one came, and too few had signed it.
            (Phase::Wanting, Some(doubt)) => (Standing::Staging, Some(doubt.clone())),
            (phase, _) => phase.standing(),
        }
    }

    /// Returns whether an order is of this roll-out.
    fn is_of(&self, order: &Order) -> bool {
        self.operator == order.operator
            && self.rollout == order.number.rollout
            && self.release == order.release
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    image: Image,
    version: Version,
}

/// State that survives restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedMember {
    newest: Option<Known>,
    /// One for each operator that was heard.
    heard: Vec<Heard>,
    job: Option<Job>,
}

/// A node that takes part in roll-outs.
#[derive(Debug)]
pub struct Member {
    facts: Facts,
    trust: Trust,
    operators: BTreeSet<PublicKey>,
    state: SavedMember,
    /// Ticket of the action whose answer counts.
    ticket: Option<u64>,
    tickets: u64,
    actions: VecDeque<Action>,
}

impl Member {
    /// Starts a member, the first time with an empty state. `trust` says which releases count,
    /// `operators` whose orders.
    #[must_use]
    pub fn new(
        now: Duration,
        facts: Facts,
        trust: Trust,
        operators: BTreeSet<PublicKey>,
        state: SavedMember,
    ) -> Self {
        let mut member = Self {
            facts,
            trust,
            operators,
            state,
            ticket: None,
            tickets: 0,
            actions: VecDeque::new(),
        };

        // A state without a job has nothing to continue.
        member.restart(now);
        member
    }

    /// Returns the state to be saved.
    #[must_use]
    pub fn save(&self, now: Duration) -> SavedMember {
        let mut state = self.state.clone();
        if let Some(job) = &mut state.job {
            job.until = job.until.map(|until| until.saturating_sub(now));
            job.heard = now.saturating_sub(job.heard);
        }
        state
    }

    /// Returns its phase, if it takes part in a roll-out.
    #[must_use]
    pub fn phase(&self) -> Option<&Phase> {
        self.state.job.as_ref().map(|job| &job.phase)
    }

    /// Returns what it would answer to the last order; `None` if it takes part in no roll-out. A
    /// member may tell its operator so at any time.
    #[must_use]
    pub fn report(&self) -> Option<Report> {
        let job = self.state.job.as_ref()?;
        let (standing, why) = job.standing();
        Some(Report {
            node: self.facts.node,
            operator: job.operator,
            rollout: job.rollout,
            standing,
            why,
            running: self.facts.running.clone(),
        })
    }

    /// Returns the last order of the roll-out that it takes part in, to be passed on.
    #[must_use]
    pub fn order(&self) -> Option<&SignedOrder> {
        self.state.job.as_ref()?.order.as_ref()
    }

    /// Returns the manifest of a release, if it has it and enough keys have signed it.
    #[must_use]
    pub fn manifest(&self, release: ReleaseId) -> Option<&str> {
        let job = self.state.job.as_ref().filter(|job| job.release == release)?;
        job.manifest.as_deref()
    }

    /// Returns the image of a release for a model, if it has checked it and still has its file.
    #[must_use]
    pub fn held(&self, release: ReleaseId, model: &str) -> Option<&Image> {
        let job = self.state.job.as_ref().filter(|job| job.release == release)?;
        let has = matches!(
            job.phase,
            Phase::Staged(_) | Phase::Rechecking | Phase::Applying | Phase::Trial
        );
        let image = &job.target.as_ref()?.image;
        (has && image.model == model).then_some(image)
    }

    /// Returns the thing that it would ask another node for.
    #[must_use]
    pub fn lacks(&self) -> Option<Lacks> {
        match &self.state.job {
            None => Some(Lacks::Order),
            // A node that has no space for it gets it from nobody.
            Some(Job { phase: Phase::Wanting, doubt: Some(Why::Space), .. }) => None,
            Some(Job { phase: Phase::Wanting, release, .. }) => Some(Lacks::Manifest(*release)),
            Some(Job { phase: Phase::Fetching(None), release, .. }) => Some(Lacks::Image(*release)),
            Some(job) => job.phase.is_over().then_some(Lacks::Order),
        }
    }

    /// Returns the facts about the node.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Returns the version of the roll-out that it takes part in, once it has the manifest.
    #[must_use]
    pub fn version(&self) -> Option<&Version> {
        Some(&self.state.job.as_ref()?.target.as_ref()?.version)
    }

    /// Returns the next thing to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Returns when [`Member::handle_timeout`] is to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.state.job.as_ref().and_then(|job| job.until)
    }

    /// Continues after a restart of the daemon or of the whole node.
    fn restart(&mut self, now: Duration) {
        let Some(mut job) = self.state.job.take() else { return };
        job.until = job.until.map(|left| now.saturating_add(left));
        job.heard = now.saturating_sub(job.heard);

        // The disk may have lost or changed what was written: a manifest counts once its
        // signatures do.
        if let Some(text) = &job.manifest {
            let read = Manifest::parse(text.as_bytes()).ok();
            let read = read.filter(|manifest| manifest.release().id() == job.release);
            let Some(manifest) = read.filter(|manifest| self.trust.check(manifest).is_ok()) else {
                return;
            };
            job.target = self.target(&manifest);
        }

        // The version that runs says how the last step ended: no hook could report it.
        let runs_target =
            job.target.as_ref().is_some_and(|target| target.version.is_same(&self.facts.running));
        let running = self.facts.running.clone();
        self.state.job = Some(job);

        // Work that the restart cut short begins again. A change of the image does not: it is over
        // by now, well or badly.
        let Some(job) = &mut self.state.job else { return };
        match job.phase.clone() {
            Phase::Wanting => self.actions.push_back(Action::FetchManifest(job.release)),
            Phase::Fetching(_) => self.fetch(),
            Phase::Checking => self.check(now, Phase::Checking),
            // The order to install it is repeated.
            Phase::Rechecking => self.enter(Phase::Staged(None), None),
            // The hook may have outlived the daemon: whoever runs the new image is on trial.
            Phase::Applying | Phase::Failed(_) if runs_target && !job.is_installed => {
                job.is_installed = true;
                let until = now.saturating_add(job.within);
                self.enter(Phase::Trial, Some(until));
            }
            Phase::Applying => self.enter(Phase::Failed(Why::OldVersion(running)), None),
            // The boot loader went back.
            Phase::Trial | Phase::Kept if job.is_installed && !runs_target => {
                self.enter(Phase::RolledBack(Why::OldVersion(running)), None);
            }
            // Power may have gone before the platform was told.
            Phase::Kept if job.is_installed => self.actions.push_back(Action::Keep),
            Phase::RollingBack(why) if !runs_target => self.enter(Phase::RolledBack(why), None),
            Phase::RollingBack(why) => self.roll_back(now, why),
            _ => {}
        }
    }

    /// Takes an order. Returns the answer to its operator.
    ///
    /// # Errors
    /// [`Dropped`] if nobody is to be answered.
    pub fn handle_order(&mut self, now: Duration, signed: &SignedOrder) -> Result<Report, Dropped> {
        self.take_order(now, signed, Way::Direct)
    }

    /// Takes an order that another member has passed on. Returns the answer to its operator.
    ///
    /// # Errors
    /// [`Dropped`] if nobody is to be answered.
    pub fn handle_passed_order(
        &mut self,
        now: Duration,
        signed: &SignedOrder,
    ) -> Result<Report, Dropped> {
        self.take_order(now, signed, Way::PassedOn)
    }

    fn take_order(
        &mut self,
        now: Duration,
        signed: &SignedOrder,
        way: Way,
    ) -> Result<Report, Dropped> {
        let SignedOrder { order, .. } = signed;
        if !self.operators.contains(&order.operator) {
            return Err(Dropped::Stranger);
        }
        // An order that is repeated by somebody costs no check of a signature.
        let last = self.state.heard.iter().position(|heard| heard.operator == order.operator);
        if last.is_some_and(|at| self.state.heard[at].number > order.number) {
            return Err(Dropped::Old);
        }
        if !signed.is_signed() {
            return Err(Dropped::Signature);
        }

        // A node in the middle of another roll-out stays with it. It leaves one that is over, an
        // earlier one of the same operator, or one whose operator is silent.
        if let Some(job) = self.state.job.as_ref().filter(|job| !job.is_of(order)) {
            let is_own = job.operator == order.operator;
            let is_silent = now.saturating_sub(job.heard) >= OPERATOR_SILENT;
            let may_leave = job.phase.is_over() || is_own || is_silent;
            if job.phase.is_changing() || !may_leave {
                let operator = job.operator.to_string();
                let why = Why::Busy { operator, rollout: job.rollout };
                return Ok(self.answer(order, Standing::Refused, Some(why)));
            }
        }

        // The number is saved with the next phase. An order that changes none may come again.
        match last {
            Some(at) => self.state.heard[at].number = order.number,
            None => {
                self.state.heard.push(Heard { operator: order.operator, number: order.number });
            }
        }
        self.obey(now, order, way);
        if let Some(job) = self.state.job.as_mut().filter(|job| job.is_of(order)) {
            job.order = Some(signed.clone());
        }

        // No job means that the order ended a roll-out in which this node never took part.
        let job = self.state.job.as_ref().filter(|job| job.is_of(order));
        let (standing, why) = job.map_or((Standing::Aborted, None), Job::standing);
        Ok(self.answer(order, standing, why))
    }

    fn answer(&self, order: &Order, standing: Standing, why: Option<Why>) -> Report {
        Report {
            node: self.facts.node,
            operator: order.operator,
            rollout: order.number.rollout,
            standing,
            why,
            running: self.facts.running.clone(),
        }
    }

    fn obey(&mut self, now: Duration, order: &Order, way: Way) {
        let Order { operator, number, release, may_downgrade, step } = order;
        let Some(job) = self.state.job.as_mut().filter(|job| job.is_of(order)) else {
            // A node that hears of a roll-out late begins to stage it, unless it is over.
            if matches!(step, Step::Stage | Step::Apply { .. }) {
                self.state.job = Some(Job {
                    operator: *operator,
                    rollout: number.rollout,
                    release: *release,
                    may_downgrade: *may_downgrade,
                    manifest: None,
                    doubt: None,
                    target: None,
                    phase: Phase::Wanting,
                    order: None,
                    is_installed: false,
                    within: Duration::ZERO,
                    retries: 0,
                    until: None,
                    heard: now,
                });
                self.ticket = None;
                self.actions.extend([Action::Save, Action::FetchManifest(*release)]);
            }
            return;
        };

        if way == Way::Direct {
            job.heard = now;
        }
        let phase = job.phase.clone();
        // An order holds for whoever has yet to obey it: its repetition meets a later phase, and
        // nothing happens.
        match (step, phase) {
            // Its operator may have thought better of it, where the other node did not hear it.
            (Step::Apply { .. }, _) if way == Way::PassedOn => {}
            (Step::Apply { keep, .. }, Phase::Trial) if keep.contains(&self.facts.node) => {
                self.keep();
            }
            // A node that waits before another attempt is left to its own time limit.
            (Step::Apply { apply, within, .. }, Phase::Staged(None))
                if apply.contains(&self.facts.node) =>
            {
                job.within = *within;
                self.check(now, Phase::Rechecking);
            }
            (Step::Abort | Step::Rollback, Phase::Trial) => self.roll_back(now, Why::Ended),
            // A node that ran the version before does not lose it.
            (Step::Rollback, Phase::Kept) if job.is_installed => self.roll_back(now, Why::Ended),
            (Step::Abort | Step::Rollback, phase) if !phase.is_over() && !phase.is_changing() => {
                self.enter(Phase::Aborted, None);
                self.actions.push_back(Action::Discard);
            }
            _ => {}
        }
    }

    /// Takes a manifest, from whomever it came.
    pub fn handle_manifest(&mut self, bytes: &[u8]) {
        let Some(job) = self.state.job.as_ref().filter(|job| job.phase == Phase::Wanting) else {
            return;
        };
        // One of another release, or of none, is as if it had not come.
        let Ok(manifest) = Manifest::parse(bytes) else { return };
        if manifest.release().id() != job.release {
            return;
        }

        // A manifest with signatures missing may come again with them.
        if let Err(refusal) = self.trust.check(&manifest) {
            if let Some(job) = &mut self.state.job {
                job.doubt = Some(refusal.into());
            }
            return;
        }

        // Signed, but perhaps not for this node: wrong model, older version, another channel.
        let station = Station {
            name: Some(self.facts.name.clone()),
            channel: Some(self.facts.channel.clone()),
            model: Some(self.facts.model.clone()),
            running: Some(self.facts.running.clone()),
            newest: self.state.newest.clone(),
            may_downgrade: job.may_downgrade,
        };
        let judged = station.judge(&manifest).map(drop);
        let target = self.target(&manifest);

        // The manifest is kept whatever the verdict: after a restart it says what the verdict is
        // about.
        let Some(job) = &mut self.state.job else { return };
        job.manifest = Some(manifest.to_string());
        job.target = target;
        match judged {
            Ok(()) => {
                self.remember(&Known::of(&manifest));
                self.enter(Phase::Fetching(None), None);
                self.fetch();
            }
            // Installed by other means: the operator sees it as updated, and no rollback touches
            // it.
            Err(Refusal::Runs(_)) => self.enter(Phase::Kept, None),
            Err(refusal) => self.enter(Phase::Refused(refusal.into()), None),
        }
    }

    /// Notes that the node has no space for the manifest. It is wanted again after a pause.
    pub fn handle_no_space(&mut self, now: Duration) {
        let wants = |job: &&mut Job| {
            // Offers that go on do not lengthen the pause.
            job.phase == Phase::Wanting && job.doubt != Some(Why::Space)
        };
        if let Some(job) = self.state.job.as_mut().filter(wants) {
            job.doubt = Some(Why::Space);
            job.until = Some(now + RETRY_AFTER);
        }
    }

    /// Takes the end of a fetch: the image's file is there, or a reason why not.
    pub fn handle_fetched(&mut self, now: Duration, ticket: u64, fetched: Result<(), Why>) {
        if !self.takes(ticket) || !matches!(self.phase(), Some(Phase::Fetching(_))) {
            return;
        }

        match fetched {
            Ok(()) => self.check(now, Phase::Checking),
            Err(why) => self.enter(Phase::Fetching(Some(why)), Some(now + RETRY_AFTER)),
        }
    }

    /// Takes the end of a check: whether the file is the image, and what the hook said of it.
    pub fn handle_checked(&mut self, now: Duration, ticket: u64, is_image: bool, exit: Exit) {
        if !self.takes(ticket) {
            return;
        }

        // The first check decides whether the node can stage the image, the second one whether it
        // installs it. A refusal by the second one is a failure of the roll-out.
        match (self.phase().cloned(), is_image, exit) {
            // The image is fetched again: its sender may have lied.
            (Some(Phase::Checking | Phase::Rechecking), false, _) => {
                let until = now + RETRY_AFTER;
                self.enter(Phase::Fetching(Some(Why::Damaged)), Some(until));
                self.actions.push_back(Action::Discard);
            }
            (Some(Phase::Checking), true, Exit::Done) => self.enter(Phase::Staged(None), None),
            (Some(Phase::Checking), true, Exit::Later) => {
                self.enter(Phase::Fetching(Some(Why::Later)), Some(now + RETRY_AFTER));
            }
            (Some(Phase::Checking), true, Exit::Refused(code)) => {
                self.enter(Phase::Refused(Why::Hook(code)), None);
            }
            (Some(Phase::Rechecking), true, Exit::Done) => {
                // On the disk before the hook begins: a node that restarts knows what it did.
                self.enter(Phase::Applying, Some(now + RESTART_WITHIN));
                let ticket = self.ticket();
                let image = self.image();
                self.actions.extend(image.map(|image| Action::Apply(ticket, image)));
            }
            (Some(Phase::Rechecking), true, Exit::Later) => self.later(now),
            (Some(Phase::Rechecking), true, Exit::Refused(code)) => {
                self.enter(Phase::Failed(Why::Hook(code)), None);
            }
            _ => {}
        }
    }

    /// Takes the end of the hook that installs the image, and the version that runs now. Most
    /// images restart the node, and [`Member::new`] continues.
    pub fn handle_applied(&mut self, now: Duration, ticket: u64, exit: Exit, running: Version) {
        if !self.takes(ticket) || self.phase() != Some(&Phase::Applying) {
            return;
        }

        self.facts.running = running;
        let Some(job) = &mut self.state.job else { return };
        let runs_target =
            job.target.as_ref().is_some_and(|t| t.version.is_same(&self.facts.running));
        match exit {
            Exit::Done if runs_target => {
                job.is_installed = true;
                let until = now.saturating_add(job.within);
                self.enter(Phase::Trial, Some(until));
            }
            // Handed over to a restart, which has a time limit of its own.
            Exit::Done => {}
            Exit::Later => self.later(now),
            Exit::Refused(code) => self.enter(Phase::Failed(Why::Hook(code)), None),
        }
    }

    /// Takes the end of the hook that goes back, and the version that runs now.
    pub fn handle_rolled_back(&mut self, ticket: u64, exit: Exit, running: Version) {
        if !self.takes(ticket) {
            return;
        }
        let Some(Phase::RollingBack(why)) = self.phase().cloned() else { return };
        self.facts.running = running;
        let target = self.state.job.as_ref().and_then(|job| job.target.as_ref());
        let runs_target = target.is_some_and(|t| t.version.is_same(&self.facts.running));

        // Nobody repeats the order for a single node, so a hook that asks for time has failed.
        match exit {
            Exit::Done if !runs_target => self.enter(Phase::RolledBack(why), None),
            // The restart into the old image is still to come.
            Exit::Done => {}
            Exit::Later => self.enter(Phase::Failed(Why::Later), None),
            Exit::Refused(code) => self.enter(Phase::Failed(Why::Hook(code)), None),
        }
    }

    /// Ends a phase whose time is over.
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.poll_timeout().is_none_or(|until| until > now) {
            return;
        }

        let Some(phase) = self.phase().cloned() else { return };
        match phase {
            Phase::Wanting => {
                if let Some(job) = &mut self.state.job {
                    job.doubt = None;
                    job.until = None;
                }
            }
            Phase::Fetching(_) => {
                self.enter(Phase::Fetching(None), None);
                self.fetch();
            }
            // A hook that does not end counts as one that refuses.
            Phase::Checking => self.enter(Phase::Refused(Why::Endless), None),
            Phase::Staged(_) => self.check(now, Phase::Rechecking),
            Phase::Rechecking => self.enter(Phase::Failed(Why::Endless), None),
            Phase::Applying => self.enter(Phase::Failed(Why::NoRestart), None),
            Phase::Trial => self.roll_back(now, Why::Unconfirmed),
            Phase::RollingBack(_) => self.enter(Phase::Failed(Why::Endless), None),
            _ => {}
        }
    }

    /// Enters a phase and saves it. The answer to an action of the phase before counts no more.
    fn enter(&mut self, phase: Phase, until: Option<Duration>) {
        self.ticket = None;
        if let Some(job) = &mut self.state.job {
            job.phase = phase;
            job.until = until;
        }
        self.actions.push_back(Action::Save);
    }

    fn fetch(&mut self) {
        let ticket = self.ticket();
        let image = self.image();
        self.actions.extend(image.map(|image| Action::Fetch(ticket, image)));
    }

    fn check(&mut self, now: Duration, phase: Phase) {
        // The time limit covers reading the file as well as the hook.
        self.enter(phase, Some(now + HOOK_WITHIN));
        let ticket = self.ticket();
        let image = self.image();
        self.actions.extend(image.map(|image| Action::Check(ticket, image)));
    }

    fn later(&mut self, now: Duration) {
        // Counted over the whole roll-out: a hook that never gets ready must not hold it up for
        // ever.
        let Some(job) = &mut self.state.job else { return };
        job.retries += 1;
        if job.retries > MAX_RETRIES {
            self.enter(Phase::Failed(Why::Later), None);
        } else {
            self.enter(Phase::Staged(Some(Why::Later)), Some(now + RETRY_AFTER));
        }
    }

    fn roll_back(&mut self, now: Duration, why: Why) {
        self.enter(Phase::RollingBack(why), Some(now + HOOK_WITHIN));
        let ticket = self.ticket();
        self.actions.push_back(Action::Rollback(ticket));
    }

    fn keep(&mut self) {
        // After a permitted step down the older version is the newest that counts.
        if let Some(job) = &self.state.job
            && let Some(Target { version, .. }) = &job.target
        {
            self.state.newest = Some(Known { version: version.clone(), id: job.release });
        }

        // Saved first: the platform is told once the node will not go back by itself.
        self.enter(Phase::Kept, None);
        self.actions.push_back(Action::Keep);
    }

    fn remember(&mut self, known: &Known) {
        let newest = &mut self.state.newest;
        if newest.as_ref().is_none_or(|newest| known.version.is_newer_than(&newest.version)) {
            *newest = Some(known.clone());
        }
    }

    fn target(&self, manifest: &Manifest) -> Option<Target> {
        let release = manifest.release();
        let image = release.image(&self.facts.model)?.clone();
        Some(Target { image, version: release.head().version.clone() })
    }

    fn image(&self) -> Option<Image> {
        Some(self.state.job.as_ref()?.target.as_ref()?.image.clone())
    }

    fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.ticket = Some(self.tickets);
        self.tickets
    }

    /// Returns whether an answer is to the last action. Each action has one answer.
    fn takes(&mut self, ticket: u64) -> bool {
        let is_last = self.ticket == Some(ticket);
        if is_last {
            self.ticket = None;
        }
        is_last
    }
}
